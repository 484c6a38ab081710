"""NumPy's functions that are written with others: values, shapes and dtypes as NumPy's, and their
derivatives."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(5)
A, V = RNG.standard_normal((4, 6)), RNG.standard_normal(7)
Z, S = A + 1j * RNG.standard_normal((4, 6)), RNG.standard_normal((2, 4, 6))


def _joined(parts):
    """One array of several, so that they compare."""
    parts = list(parts)
    return np.concatenate([np.reshape((1.0 + k) * p, -1) for k, p in enumerate(parts)])


CASES = {
    "split": (lambda a: _joined(np.split(a, 3, axis=1)), A),
    "split at": (lambda a: _joined(np.split(a, [2, 1, -1, 9])), V),
    "array_split": (lambda a: _joined(np.array_split(a, 3)), V),
    "hsplit": (lambda a: _joined(np.hsplit(a, [1])), A),
    "hsplit of a vector": (lambda a: _joined(np.hsplit(a, 7)), V),
    "vsplit": (lambda a: _joined(np.vsplit(a, 2)), Z),
    "dsplit": (lambda a: _joined(np.dsplit(a, 3)), S),
    "rot90": (lambda a: np.rot90(a), Z),
    "rot90 thrice": (lambda a: np.rot90(a, -1, (2, 0)), S),
    "rot90 twice": (lambda a: np.rot90(a, 6, (0, 1)), A),
    "pad": (lambda a: np.pad(a, 2), A),
    "pad with": (lambda a: np.pad(a, ((1, 0), (2, 3)), constant_values=4.0), Z),
    "pad a vector": (lambda a: np.pad(a, (3, 0)), V),
    "pad edge": (lambda a: np.pad(a, 3, "edge"), A),
    "pad reflect": (lambda a: np.pad(a, ((1, 2), (9, 4)), "reflect"), A),
    "pad wrap": (lambda a: np.pad(a, (2, 3), "wrap"), V),
    "pad symmetric": (lambda a: np.pad(a, 5, mode="symmetric"), S),
    "average": (lambda a: np.average(a, axis=1), Z),
    "average by": (lambda a: np.average(a, axis=1, weights=np.arange(6.0)), Z),
    "average by a vector": (lambda a: np.average(a, axis=0, weights=np.arange(4)), A),
    "average of all": (lambda a: np.average(a, weights=1 + A * A), A),
    "trapezoid": (lambda a: np.trapezoid(a), V),
    "trapezoid over": (lambda a: np.trapezoid(a, np.arange(4.0) ** 2, axis=0), Z),
    "trapezoid of dx": (lambda a: np.trapezoid(a, dx=0.3, axis=1), S),
    "trapezoid over fewer": (lambda a: np.trapezoid(a, np.cos(A), axis=-2), S),
    "trapezoid over one more": (lambda a: np.trapezoid(a[:, :2, :2], A[:2, 1:3], axis=-2), S),
    "ptp": (lambda a: np.ptp(a, axis=0), A),
    "ptp of all": (lambda a: np.ptp(a, keepdims=True), S),
    "angle": (lambda a: np.angle(a), Z),
    "angle of real": (lambda a: np.angle(a) + a, A),
    "angle in degrees": (lambda a: np.angle(a, deg=True), Z),
    "vecdot": (lambda a: np.linalg.vecdot(a, a[::-1]), Z),
    "vecdot along": (lambda a: np.linalg.vecdot(a, a[:1], axis=1), S),
    "vecdot counted": (lambda a: np.linalg.vecdot(V[:4], a[:, 1:5], axis=0), A),
    "gradient": (lambda a: np.gradient(a), V),
    "gradient of two": (lambda a: np.gradient(a[:2], 0.5, axis=0), Z),
    "gradient along all": (lambda a: _joined(np.gradient(a, 0.5, 2, 3.0)), S),
    "ediff1d": (lambda a: np.ediff1d(a), A),
    "polyval": (lambda a: np.polyval(a[0], a), A),
    "polyval at": (lambda a: np.polyval(a[0], 2.0), Z),
    "trace over": (lambda a: np.trace(a, 1, 2, 0), S),
    "trace of a stack": (lambda a: np.trace(a, axis1=-2, axis2=-1), S),
    "diagonal over": (lambda a: np.diagonal(a, -1, 0, 1), S),
    "alike": (
        lambda a: np.ones_like(a) * a + np.zeros_like(a) + np.full_like(a, 2.0, dtype=int),
        Z,
    ),
    "select": (lambda a: np.select([a > 1, a < -0.5], [a * a, np.sin(a)], 2.0), A),
}


def weighed(y):
    w = np.cos(1 + np.arange(y.size)).reshape(y.shape)
    return np.sum(w * np.real(y)) + (np.sum(w * np.imag(y)) if y.dtype.kind == "c" else 0.0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_values_and_derivatives(case):
    f, a = case
    found, wanted = f(pl.lazy(a)), f(a)
    assert isinstance(found, pl.LazyArray)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13, atol=1e-14)
    check(lambda a: weighed(f(a)), a)
    check_second(lambda a: weighed(f(a)) ** 2, a)


def test_arrays_alike_read_no_value():
    a = pl.lazy(A.astype(np.float32)) * 1
    for f in (np.zeros_like, np.ones_like, np.empty_like, lambda x, **k: np.full_like(x, 3, **k)):
        for more in ({}, {"shape": (2, 3)}, {"dtype": complex}, {"order": "F", "subok": False}):
            found, wanted = f(a, **more), f(A.astype(np.float32), **more)
            assert type(found) is np.ndarray
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            assert f is np.empty_like or (found == wanted).all()
    assert a._value is None
    assert (np.full_like(A, pl.lazy(np.array(2.0))) == 2).all()


def test_what_numpy_refuses():
    a = pl.lazy(A)
    for bad in (
        lambda: np.trace(pl.lazy(S), axis1=1, axis2=1),
        lambda: np.diagonal(pl.lazy(S), axis1=1, axis2=4),
        lambda: np.gradient(a, 1.0, axis=5),
        lambda: np.split(a, 4, axis=1),
        lambda: np.rot90(a, axes=(0, 0)),
        lambda: np.pad(a, ((1, 2), (3, 4), (5, 6))),
        lambda: np.pad(a, -1),
        lambda: np.linalg.vecdot(a, pl.lazy(V)),
    ):
        with pytest.raises(ValueError, match="."):
            bad()
    with pytest.raises(ZeroDivisionError, match="Weights"):
        np.average(a, axis=0, weights=np.array([1.0, -1.0, 1.0, -1.0]))


def test_selected_numbers_have_no_dtype():
    a = pl.lazy(A.astype(np.float32))
    for choices, default in (
        ([a, 1.0], 0),
        ([2, 1], np.float32(3)),
        ([a, np.float64(1)], 2),
        ([a, 2 * a], [1, 2, 3, 4, 5, 6]),
        ([a, a], a[0]),
    ):
        found = np.select([a > 1, a < -0.5], choices, default)
        plain = [np.asarray(x) if isinstance(x, pl.LazyArray) else x for x in choices]
        rest = np.asarray(default) if isinstance(default, pl.LazyArray) else default
        wanted = np.select([np.asarray(a) > 1, np.asarray(a) < -0.5], plain, rest)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_polynomials_of_a_poly1d_have_all_terms(rng):
    """Whose length is its degree."""
    x = rng.standard_normal((3, 4))
    for p in (np.poly1d([2.0, -1.0, 3.0]), np.poly1d([4.0])):
        got = np.asarray(np.polyval(p, pl.lazy(x)))
        np.testing.assert_allclose(got, np.polyval(p, x), rtol=0, atol=1e-13)


def test_a_gradient_along_an_axis_twice_raises(rng):
    with pytest.raises(ValueError, match="axis"):
        np.gradient(pl.lazy(rng.standard_normal((3, 4))), axis=(1, 1))
