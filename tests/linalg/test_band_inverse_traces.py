"""tr(A^-1 B) of bands by the diagonals of A^-1 within A's band, and diagonals of parts of inverses
by those of the whole."""

import numpy as np
import pytest

import pylinop as pl


def tridiagonal(n, dtype, seed):
    r = np.random.default_rng(seed)
    z = [r.standard_normal(n - 1), 4 + r.random(n), r.standard_normal(n - 1)]
    if np.dtype(dtype).kind == "c":
        z = [x + 1j * r.standard_normal(x.shape) for x in z]
    return pl.Tridiagonal(*(x.astype(dtype) for x in z))


def banded(n, dtype, seed):
    r = np.random.default_rng(seed)
    ab = r.standard_normal((5, n))
    ab[2] += 9
    return pl.Banded((2, 2), ab.astype(dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n", [2, 3, 9, 10, 11, 12, 40, 200])
@pytest.mark.parametrize("side", ["left", "right"])
def test_traces(n, dtype, side):
    a, b = tridiagonal(n, dtype, 1), tridiagonal(n, dtype, 2)
    pairs = [(a, b), (a, pl.Diag(b.diagonal())), (2 * a, b), (a.T, b)]
    if n > 3:
        pairs += [(banded(n, dtype, 3), b), (a, banded(n, dtype, 3)), (a + b, b)]
    for x, y in pairs:
        got = pl.trace(pl.inv(x) @ y if side == "left" else y @ pl.inv(x))
        want = np.trace(np.linalg.solve(x.toarray(), y.toarray()))
        np.testing.assert_allclose(got, want, rtol=2e-4 if dtype == "float32" else 1e-11)


def test_the_price_is_that_of_the_band():
    n = 1500
    a, b = tridiagonal(n, "float64", 1), tridiagonal(n, "float64", 2)
    for op in (pl.inv(a) @ b, b @ pl.inv(a)):
        e = op.explain("trace")
        assert e.flops < 100 * n and e.memory < 8 * n * 60
    e = pl.inv(a)[2:50, 2:50].explain("diagonal")
    assert e.flops < 40 * n


def test_of_a_singular_one():
    a = pl.Tridiagonal(np.zeros(9), np.r_[0.0, np.ones(9)], np.zeros(9))
    with pytest.raises(np.linalg.LinAlgError):
        pl.trace(pl.inv(a) @ tridiagonal(10, "float64", 1))


@pytest.mark.parametrize(
    "n, kind, fires",
    [(5, tridiagonal, True), (7, tridiagonal, True), (9, tridiagonal, True)]
    + [(n, banded, n >= 14) for n in (8, 13, 14, 40)],
)
def test_bands_that_fill_half_of_the_matrix_go_the_dense_way(n, kind, fires):
    a, b = kind(n, "float64", 1), tridiagonal(n, "float64", 2)
    with pl.explaining() as e:
        got = pl.trace(pl.inv(a) @ b)
    rules = [q for p in e.plans for q in p.rules if q["name"] == "trace-inverse-band"]
    assert any(q["outcome"] == "fired" for q in rules) == fires
    np.testing.assert_allclose(got, np.trace(np.linalg.solve(a.toarray(), b.toarray())), rtol=1e-12)
