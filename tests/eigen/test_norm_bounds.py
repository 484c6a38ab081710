"""Upper bounds of norms from structure, and exponentials that go by products because of them."""

import numpy as np
import pytest
import scipy.linalg as sla
from every_kind import MADE, built

import pylinop as pl
from pylinop._eigen import exponential_action as action
from pylinop._eigen import norm_bounds

N = 120


def true(a):
    return np.abs(a).sum(axis=0).max(), np.abs(a).sum(axis=1).max()


def parts(rng, dtype):
    def draw(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)

    d, root = draw(N), N**-0.5
    return {
        "D": pl.Diag(d),
        "L": pl.LowRank(root * draw(N, 2), root * draw(N, 2)),
        "C": pl.LowRank(root * draw(N, 3), root * draw(N, 2), draw(3, 2)),
        "T": pl.Toeplitz(draw(N) / 15, draw(N) / 15),
        "B": pl.Tridiagonal(d[1:], draw(N), d[:-1]),
        "K": pl.Kron(draw(10, 10) / 4, draw(12, 12) / 4),
        "P": pl.BlockDiag(*[draw(12, 12) / 4 for _ in range(10)]),
        "A": pl.Dense(draw(N, N) / 15),
    }


FORMULAS = {
    "L": lambda p: p["L"],
    "K": lambda p: p["K"],
    "L - D": lambda p: p["L"] - p["D"],
    "C + D": lambda p: p["C"] + p["D"],
    "-0.5 (L - D)": lambda p: -0.5 * (p["L"] - p["D"]),
    "(C - D)^T": lambda p: (p["C"] - p["D"]).T,
    "(C + B)^H": lambda p: (p["C"] + p["B"]).H,
    "update": lambda p: pl.LowRankUpdate(p["B"], p["L"] @ np.ones((N, 1)), p["T"] @ np.eye(N, 1)),
    "T - D": lambda p: p["T"] - p["D"],
    "D T": lambda p: p["D"] @ p["T"],
    "B B - 2 I": lambda p: p["B"] @ p["B"] - 2 * pl.Identity(N),
    "K + D": lambda p: p["K"] + p["D"],
    "P - L": lambda p: p["P"] - p["L"],
    "P T / 4": lambda p: p["P"] @ p["T"] / 4,
    "A D": lambda p: p["A"] @ p["D"],
    "2 A - D + L": lambda p: 2 * p["A"] - p["D"] + p["L"],
}


@pytest.mark.parametrize("dtype", ["f4", "D"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_products_of_formulas(formula, dtype, monkeypatch):
    """Bounds are bounds, not far off; products from both sides are as by the dense form."""
    monkeypatch.setattr(action, "_WORTH", 0.0)
    monkeypatch.setattr(action, "_GAIN", np.inf)
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(sorted(FORMULAS).index(formula))
    A = FORMULAS[formula](parts(rng, dtype))
    a = A.toarray()
    exact = true(a)
    for found, t in zip(norm_bounds.of(A), exact, strict=True):
        assert t * (1 - 1e-5) <= found <= 12 * t
    mid, shifted = norm_bounds.shifted(A)
    for found, t in zip(shifted, true(a - mid * np.eye(N)), strict=True):
        assert t * (1 - 1e-5) <= found <= 20 * t
    e = pl.expm(A)
    assert type(e) is action.Exponential
    E = sla.expm(a.astype(np.result_type(dtype, "f8")))
    x = rng.standard_normal((N, 3)).astype(dtype)
    u, size = np.finfo(dtype).eps, np.linalg.norm(sla.expm(np.abs(a).astype("f8")) @ np.abs(x))
    size *= max(1.0, *exact)  # some roundings of A
    assert np.linalg.norm(e @ x - E @ x) <= 20 * u * size
    assert np.linalg.norm(x.T @ e - x.T @ E) <= 20 * u * size


@pytest.mark.parametrize("kind", MADE)
def test_bounds_of_every_kind(kind):
    A = built(kind)
    found = None if A is None else norm_bounds.of(A)
    if found is not None and 0 not in A.shape:
        for one, t in zip(found, true(A.toarray()), strict=True):
            assert t * (1 - 1e-6) <= one


def test_what_has_no_bound_goes_by_the_dense_form():
    rng = np.random.default_rng(3)
    D = pl.Diag(np.linspace(0, 1, N))
    A = pl.inv(pl.Toeplitz(0.5 ** np.arange(N))) @ D
    assert norm_bounds.of(A) is None and norm_bounds.shifted(A) is None
    x = rng.standard_normal(N)
    np.testing.assert_allclose(pl.expm(A) @ x, sla.expm(A.toarray()) @ x, rtol=1e-9)
    wide = rng.standard_normal((N, N // 2)) / N
    assert norm_bounds.of(pl.LowRank(wide)) is None  # whose sides are no less than the matrix


def test_gradients_of_a_linear_flow():
    """exp(U V^H - D) x: values, gradients, second derivatives, none by an n x n array."""
    rng = np.random.default_rng(5)
    n = 700
    x, y = rng.standard_normal((2, n))
    u, v = rng.standard_normal((2, n, 2)) / n**0.5
    d = rng.uniform(0.5, 1.5, n)

    def f(p):
        r = pl.expm(pl.LowRank(p["u"], p["v"]) - pl.Diag(p["d"])) @ x - y
        return r @ r

    p = {"u": u, "v": v, "d": d}
    with pl.explaining() as e:
        value, g = pl.value_and_grad(f)(p)
    assert max(s.get("bytes", 0) for s in e.steps) <= 5 * 8 * n * 16 * 4
    a = u @ v.T - np.diag(d)
    r = sla.expm(a) @ x - y
    np.testing.assert_allclose(value, r @ r, rtol=1e-12)
    t = {k: rng.standard_normal(w.shape) * 0.1 for k, w in p.items()}
    along = t["u"] @ v.T + u @ t["v"].T - np.diag(t["d"])
    d1 = 2 * r @ sla.expm_frechet(a, along, compute_expm=False) @ x
    np.testing.assert_allclose(sum(np.sum(g[k] * t[k]) for k in p), d1, rtol=1e-9)


def test_high_powers():
    A = pl.Tridiagonal(np.full(N - 1, 0.25), np.full(N, 0.5), np.full(N - 1, 0.26))
    for k in (2, 63, 64, 65, 200):
        P = pl.matrix_power(20 ** (1 / k) / 1.01 * A, k)
        for found, t in zip(norm_bounds.of(P), true(P.toarray()), strict=True):
            assert found >= t * (1 - 1e-9)
        expected = sla.expm(P.toarray()) @ np.ones(N)
        np.testing.assert_allclose(pl.expm(P) @ np.ones(N), expected, rtol=1e-10)


def test_the_least_integers():
    """Whose moduli are none of their dtype."""
    u, v = np.full((N, 1), -128, np.int8), np.zeros((N, 1), np.int8)
    v[0] = 1
    ones = np.ones(N, np.int8)
    A = pl.LowRank(u, v) + pl.Tridiagonal(ones[1:], 0 * ones, ones[1:])
    for op in (A, pl.Dense(np.diag(u[:, 0])) * 1.0 + A):
        found = norm_bounds.of(op)
        assert found is None or found[0] >= true(op.toarray().astype(float))[0] * (1 - 1e-9)
        e = sla.expm(op.toarray().astype(float)) @ np.ones(N)
        np.testing.assert_allclose(pl.expm(op) @ np.ones(N), e, rtol=1e-9, atol=1e-9 * abs(e).max())


def test_a_bound_that_is_none_is_noticed(monkeypatch):
    rng = np.random.default_rng(3)
    A = pl.LowRank(*rng.standard_normal((2, N, 2))) - pl.Diag(rng.uniform(1, 2, N))
    expected = sla.expm(A.toarray()) @ np.ones(N)
    shifted = norm_bounds.shifted
    monkeypatch.setattr(norm_bounds, "shifted", lambda op: (shifted(op)[0], (0.1, 0.1)))
    monkeypatch.setattr(action, "_GAIN", np.inf)
    found = pl.expm(A) @ np.ones(N)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * abs(expected).max())
