"""Derivatives of products to third order, also where elements are zero; of elements by masks, of
methods of ufuncs, of vector norms."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl


def real(y):
    return 0.3 * np.sum(np.real(y * np.conj(y))) + np.sum(np.real(y))


FUNCTIONS = (
    lambda a: np.prod(a),
    lambda a: np.prod(a, axis=-1),
    lambda a: np.cumprod(a),
    lambda a: np.cumprod(a, axis=0),
    lambda a: a.cumprod(axis=-1),
    lambda a: np.multiply.reduce(a),
)
OF_MORE = (
    lambda a: np.prod(a, axis=(0, 1)),
    lambda a: np.prod(a, axis=(-1, 0), keepdims=True) * a,
    lambda a: np.multiply.accumulate(a, 1),
)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (130,)])
def test_products(shape, is_complex, zeros, rng):
    x = rng.uniform(0.9, 1.1, shape)
    if is_complex:
        x = x + 0.2j * rng.standard_normal(shape)
    x.flat[:zeros] = 0
    if zeros == 3:
        x.flat[-1] = 0
    t = rng.standard_normal(shape) / 4
    for f in FUNCTIONS + (OF_MORE if len(shape) > 1 else ()):
        check(lambda a, f=f: real(f(a)), x)
        check_second(lambda a, f=f: real(f(a)), x)
        slope = lambda a, f=f: np.sum(np.real(t * pl.grad(lambda a: real(f(a)))(a)))
        check_second(slope, x)


def test_products_of_wide_range():
    """Products over neighbours overflow on the way, the recurrence itself does not."""
    x = np.array([1.0, 0.0, *[1e150] * 100])
    got = pl.grad(lambda a: np.cumprod(a)[2])(x)
    np.testing.assert_array_equal(got, [0.0, 1e150, *[0.0] * 100])


def test_products_in_another_precision():
    x = np.array([0.1, 0.7, 1.3], np.float32)
    y = np.prod(pl.lazy(x), dtype=np.float64)
    assert y.dtype == np.float64
    a, b, c = x.astype(float)
    np.testing.assert_allclose(pl.gradients(y, x), [b * c, a * c, a * b], rtol=1e-15)


@pytest.mark.parametrize("f", [np.prod, np.cumprod])
def test_no_elements(f):
    for shape in ((0,), (0, 3), (3, 0)):
        assert pl.grad(lambda a: np.sum(f(a)))(np.zeros(shape)).shape == shape


KEYS = (
    np.tri(4, dtype=bool),
    np.eye(4, dtype=bool),
    (Ellipsis, np.eye(4, dtype=bool)),
    [[0, 1], [1, 3]],
    (slice(None), [[0, 1], [1, 1]]),
    (np.array([True, False, True, True]), 2),
)


@pytest.mark.parametrize("key", range(len(KEYS)))
def test_elements_by_masks_and_matrices_of_indices(key, rng):
    key = KEYS[key]
    for A in (rng.standard_normal((4, 4)), rng.standard_normal((4, 4)) * (1 + 1j)):
        check(lambda a: real(a[key]), A)
        check(lambda a: real((a @ a)[key]), A)
        check_second(lambda a: real(a[key] ** 3), A)


def test_methods_of_ufuncs(rng):
    A, x = rng.standard_normal((3, 4)), rng.standard_normal(5)
    W = rng.standard_normal((5, 5))
    check(lambda a: np.sum(np.add.reduce(a, axis=None) ** 2), A)
    check(lambda a: np.sum(np.maximum.reduce(a, axis=1) ** 2), A)
    check(lambda a: np.sum(np.add.accumulate(a, 1) ** 3), A)
    check_second(lambda a: np.sum(W * np.exp(-(np.subtract.outer(a, a) ** 2))), x)


@pytest.mark.parametrize("ord", [1, 2, 3])
def test_vector_norms(ord, rng):
    A = rng.standard_normal((3, 4))
    check(lambda a: np.linalg.vector_norm(a, ord=ord), A)
    check(lambda a: real(np.linalg.vector_norm(a, axis=(1, 0), keepdims=True, ord=ord) * a), A)
    check_second(lambda a: real(np.linalg.vector_norm(a, axis=1, ord=ord)), A)
    assert not pl.grad(lambda a: np.linalg.vector_norm(a, ord=ord))(np.zeros(3)).any()


@pytest.mark.parametrize("shape", [(6,), (80,), (2, 5), (70, 3)])
def test_real_cotangents_of_complex_products(shape, rng):
    """The parts of a complex product have real derivatives, which stay complex on the way back."""
    x = 1 + 0.2 * rng.standard_normal(shape) + 0.2j * rng.standard_normal(shape)
    w = rng.standard_normal(shape)
    for f in (
        lambda a: np.sum(w * np.cumprod(a, axis=0).real),
        lambda a: np.sum(w * np.cumprod(a, axis=-1).imag ** 2),
        lambda a: np.linalg.norm(np.cumprod(a).real),
    ):
        check(f, x)
        check_second(f, x)
