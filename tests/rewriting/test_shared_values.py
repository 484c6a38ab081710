"""What the fast branches of several results need is made once in front of them; where it fails each
result takes its own safer way."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core

DENSE, DIAGONAL, TRACE, DET = 0, 1, 2, 4
N, K = 120, 3


def draw(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x).astype(dtype)


def tridiagonal(rng, dtype, first=9.0, batch=()):
    d = draw(rng, dtype, *batch, N) + 9
    d[..., 0] = first
    lower = draw(rng, dtype, *batch, N - 1)
    upper = draw(rng, dtype, *batch, N - 1)
    if not first:
        lower[..., 0] = 0
    return pl.Tridiagonal(lower, d, upper)


def toeplitz(rng, dtype):
    c, r = 0.1 * draw(rng, dtype, N), 0.1 * draw(rng, dtype, N)
    c[0] = r[0] = 9
    return pl.Toeplitz(c, r)


def circulant(rng, dtype):
    c = 0.1 * draw(rng, dtype, N)
    c[0] = 9
    return pl.Circulant(c)


BASES = {
    "tridiagonal": (tridiagonal, {"gtsv", "tridiagonal"}),
    "Toeplitz": (toeplitz, {"toeplitz-solve"}),
    "circulant": (circulant, {"circulant-solve"}),
    "sparse": (
        lambda rng, dtype: pl.Sparse(
            (sp.random_array((N, N), density=0.02, rng=rng) + 9 * sp.eye_array(N)).astype(dtype)
        ),
        {"sparse-solve"},
    ),
    "Diag": (lambda rng, dtype: pl.Diag(draw(rng, dtype, N) + 9), {"rowscale", "div"}),
}


def asked(a, b, which):
    inverse = pl.inv(a)
    every = {
        "det": (a, DET, 0, 0),
        "solution": (inverse @ b, DENSE, 0, 0),
        "left": (b.T @ inverse, DENSE, 0, 0),
        "diagonal": (inverse, DIAGONAL, 0, 0),
        "trace": (inverse, TRACE, 0, 0),
    }
    return [every[name] for name in which.split()]


def together(a, b, which):
    """The same by evaluate, which tells of what is ill-conditioned."""
    lazy = pl.lazy(a)
    inverse = np.linalg.inv(lazy)
    every = {
        "det": lambda: np.linalg.slogdet(lazy)[1],
        "solution": lambda: np.linalg.solve(lazy, b),
        "left": lambda: b.T @ inverse,
        "diagonal": lambda: pl.diagonal(inverse),
        "trace": lambda: pl.trace(inverse),
    }
    return pl.evaluate(*(every[name]() for name in which.split()))


def dense_answers(a, b, which):
    inverse = np.linalg.inv(a)
    every = {
        "solution": inverse @ b,
        "left": b.T @ inverse,
        "diagonal": np.diagonal(inverse, axis1=-2, axis2=-1),
        "trace": np.trace(inverse, axis1=-2, axis2=-1),
    }
    return [every.get(name) for name in which.split()]


def ran(ask):
    _core._clear_store()
    with pl.config(check_plans=True), pl.explaining() as e:
        values = _core._results(ask)
    return values, [s for p in e.plans for s in p.steps if s["took"] is not None]


def compare(values, a, b, which, tol=1e-9):
    for got, want in zip(values, dense_answers(a, b, which), strict=True):
        if want is None:
            continue
        size = np.abs(want).max()
        assert np.abs(np.reshape(got, want.shape) - want).max() <= tol * size


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("which", ["det solution", "solution diagonal trace", "diagonal det left"])
@pytest.mark.parametrize("base", BASES)
def test_the_base_solves_for_the_columns_once(base, which, dtype):
    rng = np.random.default_rng(5)
    make, names = BASES[base]
    B, b = make(rng, dtype), pl.Dense(draw(rng, dtype, N, 1))
    U, V = draw(rng, dtype, N, K), draw(rng, dtype, N, K)
    A = pl.LowRankUpdate(B, U, V)
    values, steps = ran(asked(A, b, which))
    wide = [s for s in steps if s["name"] in names and f"({N}, {K})" in s["writes"]]
    # B^-1 U, of the others V^H B^-1; from the left a recursion for the columns of the transpose
    most = 1 + (which != "det solution") + (base == "Toeplitz" and "left" in which)
    assert len(wide) <= most, [s["name"] for s in steps]
    compare(values, A.toarray(), b.toarray(), which)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("zeros", [1, 2])
@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("which", ["det solution", "solution diagonal trace left", "trace det"])
@pytest.mark.parametrize("base", ["tridiagonal", "Diag", "circulant"])
def test_of_a_singular_base_each_goes_its_safer_way(base, which, zeros, dtype):
    """B is singular, B + U V^H is not, or is where U has too few columns: then all is an error."""
    rng = np.random.default_rng(6)
    U, V = draw(rng, dtype, N, zeros), draw(rng, dtype, N, zeros)
    if base == "tridiagonal":
        B = tridiagonal(rng, dtype, 0.0)
    elif base == "Diag":
        d = draw(rng, dtype, N) + 9
        d[:zeros] = 0
        B = pl.Diag(d)
    else:
        spectrum = np.full(N, 9.0)
        spectrum[0] = 0
        B = pl.Circulant(
            np.fft.ifft(spectrum).astype(dtype)
            if dtype == "complex128"
            else np.fft.ifft(spectrum).real
        )
    b = draw(rng, dtype, N, 1)
    A = pl.LowRankUpdate(B, U, V)
    with pl.config(check_plans=True):
        compare(together(A, b, which), A.toarray(), b, which, 1e-7)
        few = pl.LowRankUpdate(B, np.zeros_like(U), V)
        if base == "Diag" and which != "trace det":  # exactly singular
            with pytest.raises(np.linalg.LinAlgError):
                together(few, b, which)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_one_of_a_batch_fails(bad):
    rng = np.random.default_rng(7)
    d = rng.standard_normal((3, N)) + 9
    d[bad, 4] = 0
    A = pl.Diag(d) + pl.LowRank(rng.standard_normal((3, N, K)), rng.standard_normal((3, N, K)))
    b = pl.Dense(rng.standard_normal((3, N, 1)))
    inverse = pl.inv(A)
    ask = [(A, DET, 0, 0), (inverse @ b, DENSE, 0, 0), (inverse, DIAGONAL, 0, 0)]
    values, _ = ran(ask)
    dense = np.linalg.inv(A.toarray())
    np.testing.assert_allclose(values[1], dense @ b.toarray(), atol=1e-8)
    np.testing.assert_allclose(values[2], np.diagonal(dense, 0, -2, -1), atol=1e-8)


def test_what_is_needed_in_any_case_comes_first():
    """The product is a result of its own and part of a checked solution."""
    rng = np.random.default_rng(8)
    T, y = tridiagonal(rng, "float64"), rng.standard_normal(N)
    U = rng.standard_normal((N, K))
    lazy = pl.lazy(T + pl.LowRank(U))
    z = pl.lazy(rng.standard_normal((N, N))) @ y
    with pl.config(check_plans=True), pl.explaining() as e:
        x, own = pl.evaluate(np.linalg.solve(lazy, z), z)
    steps = [s for p in e.plans for s in p.steps if s["took"] is not None]
    assert sum(s["name"] in ("gemv", "gemm") and s["flops"] >= 2 * N * N for s in steps) == 1
    np.testing.assert_allclose(np.asarray(lazy) @ x, own, atol=1e-8 * np.abs(own).max())
