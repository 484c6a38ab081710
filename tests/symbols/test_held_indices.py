"""Templates, windows and powers: what stands beside LazyArrays is read, kept or refused."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import pylinop as pl

M, N = pl.symbols("M N")
X, Q, V = pl.placeholder((M, N)), pl.placeholder((N, N)), pl.placeholder((N,))


def test_indices_and_masks_that_a_template_holds_are_read(rng):
    held = rng.standard_normal(3)
    held.flags.writeable = False
    index, mask, v = np.array([0, 1, 2]), np.array([True, False, True]), rng.standard_normal(3)
    templates = [
        (pl.function(V, pl.lazy(held)[index] * V), lambda: held[index] * v),
        (pl.function(V, np.take(pl.lazy(held), index) * V), lambda: held[index] * v),
        (
            pl.function(V, np.where(mask, pl.lazy(held), 0.0) * V),
            lambda: np.where(mask, held, 0) * v,
        ),
    ]
    for _ in range(4):
        for f, expected in templates:
            np.testing.assert_allclose(f(v), expected())
        index[:] = np.roll(index, 1)
        mask[:] = ~mask


@pytest.mark.parametrize("kind", [np.array, list])
def test_indices_of_placeholders_are_those_of_when_the_formula_is_written(kind, rng):
    index, x = kind([0, 5]), rng.standard_normal((6, 3))
    formulas = [V[index], V[..., index], X[index], X[1:, index]]
    functions = [pl.function(V if k < 2 else X, y) for k, y in enumerate(formulas)]
    index[:] = kind([0, 1])
    for k, f in enumerate(functions):
        if k == 3:
            wide = rng.standard_normal((2, 6))
            np.testing.assert_array_equal(f(wide), wide[1:, [0, 5]])
        else:
            given = x if k == 2 else x[:, 0]
            np.testing.assert_array_equal(f(given), given[[0, 5]])
            with pytest.raises(ValueError, match=r">= 6"):
                f(given[:3])


def test_what_is_no_index_of_a_placeholder():
    for key in (np.array([True, False]), (np.array([0, 1]), np.array([0, 1]))):
        with pytest.raises(NotImplementedError, match="one array of integers"):
            X[key]
    with pytest.raises(NotImplementedError):
        np.diagonal(Q, 1)


@pytest.mark.parametrize("ord", [0, 1, 2, 3, np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), 0, (1,), None])
def test_vector_norms_over_axes(ord, keepdims, axis, rng):
    x = rng.standard_normal((5, 3))
    how = {"axis": axis, "ord": ord, "keepdims": keepdims}
    f = pl.function(X, np.linalg.vector_norm(X, **how))
    expected = np.linalg.vector_norm(x, **how)
    found = np.asarray(f(x))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected)


def test_windows_keep_the_shape_they_were_given(rng):
    z, shape = rng.standard_normal((4, 3)), np.array([2, 2])
    windows = sliding_window_view(pl.lazy(z), shape)
    shape[:] = 1
    np.testing.assert_array_equal(np.asarray(windows), sliding_window_view(z, (2, 2)))
    axes = [1]
    windows = sliding_window_view(pl.lazy(z), 2, axes)
    axes[0] = 0
    np.testing.assert_array_equal(np.asarray(windows), sliding_window_view(z, 2, 1))


def test_powers(rng):
    stack = rng.standard_normal((2, 4, 4))
    for n in (0, 1, 3, -1):
        found = np.asarray(pl.matrix_power(pl.lazy(stack), n))
        np.testing.assert_allclose(found, np.linalg.matrix_power(stack, n), rtol=1e-8, atol=1e-10)
    with pytest.raises(TypeError, match="integer"):
        np.linalg.matrix_power(Q, 1.5)


def test_pseudo_determinants_of_placeholders(rng):
    q = rng.standard_normal((4, 4))
    q = q @ q.T + np.eye(4)
    assert float(pl.function(Q, pl.log_pdet(Q))(q)) == pytest.approx(np.linalg.slogdet(q)[1])
    f = pl.function(V, pl.log_pdet(pl.Diag(V)))
    assert float(f(np.array([1.0, 2.0, 0.0]))) == pytest.approx(np.log(2))


def test_what_is_refused_says_so():
    with pytest.raises(NotImplementedError, match="sum of placeholders takes axis and keepdims"):
        np.sum(V, where=np.array([True]))
    with pytest.raises(NotImplementedError, match="not initial"):
        np.max(V, initial=3.0)
    with pytest.raises(NotImplementedError, match="windows of 0"):
        sliding_window_view(V, 0)
    for derivative in (
        lambda: pl.hvp(lambda z: np.sum(z**4))(np.ones(2), 1j * np.ones(2)),
        lambda: pl.jvp(lambda z: np.sum(z**4), (np.ones(2),), (1j * np.ones(2),)),
    ):
        with pytest.raises(TypeError, match="complex128 for an array of float64"):
            derivative()


def test_a_start_of_one_column(rng):
    a, b = rng.standard_normal((6, 6)), rng.standard_normal(6)
    a = a @ a.T + np.eye(6)
    found = pl.solve(pl.lazy(a), b, method="cg", x0=np.ones(6), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(found), np.linalg.solve(a, b), rtol=1e-6)
