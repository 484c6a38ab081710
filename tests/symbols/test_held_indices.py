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


def test_arrays_of_no_dimensions_are_integers_of_when_the_formula_is_written(rng):
    at, x = np.array(1), rng.standard_normal((6, 3))
    functions = [pl.function(X, y) for y in (X[at], X[:, at], np.take(X, at, axis=0))]
    at[...] = 2
    for f, expected in zip(functions, (x[1], x[:, 1], x[1]), strict=True):
        np.testing.assert_array_equal(f(x), expected)


def test_what_is_no_index_of_a_placeholder():
    for key in (True, "a", 1.5, [0.5], np.array(True), np.array(1.5), (np.array(False), [0])):
        with pytest.raises(NotImplementedError, match="arrays of integers and masks, got"):
            X[key]
    for mask in (X > 0, pl.lazy(np.array([True, False]))):
        with pytest.raises(NotImplementedError, match="how many it takes, its values say"):
            X[mask]
    with pytest.raises(IndexError, match="of integers or booleans"):
        X[V]
    with pytest.raises(IndexError, match=r"could not be broadcast together: \(2,\) \(3,\)"):
        X[[0, 1], [0, 1, 2]]
    with pytest.raises(NotImplementedError, match="mode='clip'"):
        np.take(X, [0], mode="clip")
    with pytest.raises(TypeError, match="a mask is an index"):
        np.take(X, [True])
    with pytest.raises(ValueError, match="counts are integers from 0 on"):
        np.repeat(X, -1)


def test_masks_that_are_known_say_sizes(rng):
    x, mask = rng.standard_normal((4, 3)), np.array([True, False, True, True])
    rows, whole = pl.function(X, X[mask]), pl.function(X, X[rng.random((4, 3)) < 2])
    mask[:] = False  # the formula holds what it was
    for _ in range(3):
        np.testing.assert_array_equal(rows(x), x[[0, 2, 3]])
        np.testing.assert_array_equal(whole(x), x.ravel())
    for f in (rows, whole):
        with pytest.raises(ValueError, match="M = 4"):
            f(rng.standard_normal((5, 3)))


def test_indices_that_are_arguments(rng):
    J = pl.placeholder(N, int)
    templates = [
        (pl.function((X, J), y), f)
        for y, f in (
            (X[:, J], lambda x, j: x[:, j]),
            (np.take(X, J, axis=1), lambda x, j: x[:, j]),
            (X[J[:2], J[:2]], lambda x, j: x[j[:2], j[:2]]),
            (X[0, ..., J], lambda x, j: x[0, ..., j]),
        )
    ]
    for m, n in ((5, 3), (4, 2), (5, 3), (5, 3)):
        x, j = rng.standard_normal((m, n)), rng.integers(0, 2, n)
        for g, f in templates:
            np.testing.assert_array_equal(g(x, j), f(x, j))
    with pytest.raises(IndexError, match="out of bounds"):
        templates[0][0](x, j + 9).toarray()


def test_drawn_indices_are_numpys(rng):
    names = "ABCD"
    for _ in range(200):
        shape = tuple(rng.integers(2, 5, rng.integers(1, 5)))
        x, key = rng.standard_normal(shape), []
        for n in shape:
            key += [
                [int(rng.integers(-n, n))],
                [slice(None)],
                [slice(1, n, 2)],
                [rng.integers(-n, n, (2,))],
                [rng.integers(-n, n, (3, 1)).tolist()],
                [None, slice(-1, None)],
                [rng.random(n) < 2],
            ][rng.integers(7)]
        if rng.random() < 0.3:
            key[rng.integers(len(key)) :] = [Ellipsis]
        try:
            expected = x[tuple(key)]
        except IndexError:  # masks beside arrays of other lengths
            with pytest.raises(IndexError):
                pl.placeholder(shape)[tuple(key)]
            continue
        P = pl.placeholder([pl.symbols(names[k]) for k in range(len(shape))])
        formula = P[tuple(key)]
        found = pl.function(P, formula)(x)
        sizes = pl.unify((P, shape), (formula, expected.shape))
        assert sizes[P] == shape
        np.testing.assert_array_equal(found, expected, strict=True)


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
