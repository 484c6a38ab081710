"""Solves with b B + c U M V, B an inverse, whose right sides are sums of what B and U (M) are
applied to (Black and Litterman's formula, fusion of estimates): neither B nor M is inverted, and
the backward error is that of the formula as written where parts cancel or are graded."""

import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

DTYPES = ["f4", "f8", "c8", "c16"]
SIZES = [(6, 1), (40, 5), (90, 12), (90, 89)]
FUSED = "inv(inv(P) + inv(Q)) @ (inv(P) @ x + inv(Q) @ z)"


def eta(S, x, b):
    """The normwise backward error, the worst of the columns."""
    S, x, b = (np.asarray(a, "clongdouble").reshape(len(S), -1) for a in (S, x, b))
    r = np.linalg.norm(b - S @ x, axis=0)
    size = float(np.linalg.norm(S.astype("c16"), 2))
    return float(
        np.max(r / (size * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)), initial=0)
    )


class Hermitian(np.ndarray):
    """An array that has .H too."""

    @property
    def H(self):
        return self.conj().T


def numbers(rng, n, k, dtype, columns=()):
    w = (rng.random(k) + 0.5).astype(dtype)
    return {
        "U": values(rng, (n, k), dtype),
        "P": positive(rng, n, dtype, 0.1),
        "Q": positive(rng, n, dtype, 0.1),
        "W": np.diag(w),
        "x": values(rng, (n, *columns), dtype),
        "z": values(rng, (n, *columns), dtype),
        "y": values(rng, (k, *columns), dtype),
    }


def names(a):
    """The formula's names as operators, and as arrays of the same dtype."""
    ops = {
        k: pl.Dense(v, assume_a="pos" if k in "PQ" else None) for k, v in a.items() if k in "UPQ"
    }
    ops |= {k: pl.lazy(a[k]) for k in "xyz"}
    ops |= {"W": pl.Diag(np.diagonal(a["W"]).copy()), "inv": pl.inv}
    return ops, {k: v.view(Hermitian) for k, v in a.items()} | {"inv": np.linalg.inv}


def explained(e):
    with pl.explaining() as seen:
        value = np.asarray(e)
    return value, [s for p in seen.plans for s in p.steps]


def as_written(a, left, right):
    """S^-1 b by NumPy, in the numbers' own dtype."""
    _, plain = names(a)
    return np.asarray(np.linalg.inv(eval(left, {}, plain)) @ eval(right, {}, plain))


def exactly(a, left, right):
    """S and the right side by inverses that are right to long double."""

    def inv(m):
        m = np.asarray(m)
        x = np.linalg.inv(m.astype("c16")).astype("clongdouble")
        for _ in range(3):
            x = x + x @ (np.eye(len(m)) - m @ x)
        return x.view(Hermitian)

    plain = {k: v.astype("clongdouble").view(Hermitian) for k, v in a.items()} | {"inv": inv}
    return tuple(np.asarray(eval(f, {}, plain)) for f in (left, right))


SUMS = {
    "inv(0.05 * P) + U @ inv(W) @ U.H": [
        "inv(0.05 * P) @ x + U @ inv(W) @ y",
        "U @ (inv(W) @ y) + inv(0.05 * P) @ x",
        "inv(P) @ x - 3.0 * (U @ inv(W) @ y)",
        "inv(P) @ x + U @ y",
        "inv(P) @ x",
        "inv(P) @ x - 0.5 * (inv(P) @ z) + U @ inv(W) @ y",
    ],
    "2.0 * inv(P) + 0.5 * U @ U.H": ["inv(P) @ x + U @ y", "inv(P) @ (x - z)"],
    "inv(P) - 0.01 * U @ U.H": ["inv(P) @ x + U @ y"],
    "inv(P) + inv(Q)": ["inv(P) @ x + inv(Q) @ z", "inv(Q) @ z - inv(P) @ x", "inv(P) @ x"],
    "inv(P) + 0.3 * inv(Q)": ["2.0 * (inv(P) @ x) + inv(Q) @ z"],
    "inv(P) - 0.3 * inv(Q)": ["inv(P) @ x + inv(Q) @ z"],
}
PAIRS = [(left, right) for left, rights in SUMS.items() for right in rights]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, k", SIZES)
@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.sweep(5)
def test_sums_are_solved_to_the_promise(rng, left, right, n, k, dtype):
    columns = (3,) if k % 2 else ()
    a = numbers(rng, n, k, dtype, columns)
    ops, _ = names(a)
    x = np.asarray(pl.inv(eval(left, {}, ops)) @ eval(right, {}, ops))
    S, b = exactly(a, left, right)
    written = eta(S, as_written(a, left, right), b)
    assert x.dtype == dtype and x.shape == (n, *columns)
    assert eta(S, x, b) <= max(10 * written, 10 * n * np.finfo(dtype).eps / 2)


@pytest.mark.parametrize("power", [4, 8, 12])
@pytest.mark.parametrize("case", ["P", "W", "both", "cancels", "large p"])
@pytest.mark.parametrize(
    "left, right",
    [PAIRS[0], PAIRS[3], ("inv(P) + inv(Q)", "inv(P) @ x + inv(Q) @ z")],
)
def test_graded_and_cancelling_parts(rng, left, right, case, power):
    n, k = 60, 7
    a = numbers(rng, n, k, "f8")
    v, _ = np.linalg.qr(rng.standard_normal((n, n)))
    if case in ("P", "both"):
        a["P"] = v * np.logspace(0, -power, n) @ v.T
        a["P"] = (a["P"] + a["P"].T) / 2 + 1e-16 * np.eye(n)
    if case in ("W", "both"):
        a["W"] = np.diag(np.logspace(0, -power, k))
    if case == "large p":
        a["x"] = 10.0**power * a["x"]
    if case == "cancels":
        # what y asks for leaves next to nothing of x
        a["U"], a["x"] = 10.0 ** (power / 2) * a["U"], a["U"] @ np.ones(k)
        a["y"], a["z"] = np.zeros(k), np.zeros(n)
    ops, _ = names(a)
    x = np.asarray(pl.inv(eval(left, {}, ops)) @ eval(right, {}, ops))
    S, b = exactly(a, left, right)
    written = eta(S, as_written(a, left, right), b)
    assert eta(S, x, b) <= max(10 * written, 10 * n * 2.0**-53)


@pytest.mark.parametrize("n, k", [(60, 7), (200, 20)])
def test_neither_matrix_is_factored(rng, n, k):
    a = numbers(rng, n, k, "f8")
    ops, _ = names(a)
    for left, right in PAIRS[:8]:
        _, steps = explained(pl.inv(eval(left, {}, ops)) @ eval(right, {}, ops))
        ran = [s for s in steps if s["took"] is not None]
        called = [s["name"] for s in ran]
        read = [r for s in ran if s["name"] == "potrf" for r in s["reads"]]
        assert not [r for r in read if f"({n}, {n})" in r]
        assert "potri" not in called and "lu-inverse" not in called
        assert sum(s["flops"] for s in ran) < 2 * n * n * (k + 12) + 4 * n * k * k + 40 * n * k
    _, steps = explained(eval(FUSED, {}, ops))
    ran = [s["name"] for s in steps if s["took"] is not None]
    assert ran.count("potrf") == 1 and "potri" not in ran and "lu-inverse" not in ran


def test_signs_of_the_middle_are_looked_at_each_time(rng):
    """A diagonal M that turns negative is another matrix: not semidefinite, and solved as it is."""
    n, k = 60, 7
    a = numbers(rng, n, k, "f8")
    d = np.diagonal(a["W"]).copy()
    ops, _ = names(a)
    ops["W"] = pl.Diag(d)
    left, right = PAIRS[0]
    for change in (1.0, -1.0, 1.0):
        d[2] = change * abs(d[2])
        a["W"] = np.diag(d)
        ops |= {v: pl.lazy(a[v]) for v in "xy"}
        x = np.asarray(pl.inv(eval(left, {}, ops)) @ eval(right, {}, ops))
        S, b = exactly(a, left, right)
        assert eta(S, x, b) <= 10 * n * 2.0**-53


def test_integers_wrap_where_they_stand(rng):
    """A product asked for in small integers is not computed in floats."""
    n, k = 30, 3
    p = positive(rng, n, "f8", 0.1)
    u = rng.integers(-90, 90, (n, k)).astype("i1")
    y = rng.integers(-90, 90, k).astype("i1")
    P, U = pl.Dense(p, assume_a="pos"), pl.Dense(u)
    x = rng.standard_normal(n)
    got = pl.inv(pl.inv(P) + U @ U.T) @ (pl.inv(P) @ pl.lazy(x) + U @ pl.lazy(y))
    b = np.linalg.solve(p, x) + (u @ y)
    assert np.linalg.norm(np.asarray(u @ y, "f8") - u.astype("f8") @ y) > 1
    want = np.linalg.solve(np.linalg.inv(p) + u.astype("f8") @ u.T, b)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-7, atol=1e-9)
