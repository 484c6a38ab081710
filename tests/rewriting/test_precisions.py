"""inv(S) + H^H inv(R) H: solves, its determinant, the diagonal of its inverse, without that of S;
diagonals with updates that are negative."""

import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

DTYPES = ["float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (15, 3), (16, 16), (17, 4), (100, 9)])
def test_a_precision(rng, dtype, n, m):
    s, r, h = positive(rng, n, dtype, 0.5), positive(rng, m, dtype, 0.5), values(rng, (m, n), dtype)
    b = values(rng, (n, 3), dtype)
    A = pl.inv(pl.Dense(s, "pos")) + pl.Dense(h).H @ pl.inv(pl.Dense(r, "pos")) @ pl.Dense(h)
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    s, r, h = (x.astype(wide) for x in (s, r, h))
    a = np.linalg.inv(s) + h.conj().T @ np.linalg.inv(r) @ h
    most = 50 * n * np.finfo(dtype).eps * np.linalg.cond(a)
    inverse = np.linalg.inv(a)
    with pl.config(check_plans=True, verify=True):
        x, det, d = pl.solve(A, b), pl.logdet(A), pl.inv(A).diagonal()
    assert np.abs(x - inverse @ b).max() <= most * np.linalg.norm(inverse, 2) * np.abs(b).max() * n
    assert abs(det - np.linalg.slogdet(a)[1]) <= most * n
    assert np.abs(d - np.diagonal(inverse)).max() <= most * np.linalg.norm(inverse, 2)


def test_no_inverse_is_made(rng):
    n, m = 300, 12
    S, R = (
        pl.Dense(positive(rng, n, "float64"), "pos"),
        pl.Dense(positive(rng, m, "float64"), "pos"),
    )
    H = pl.Dense(values(rng, (m, n), "float64"))
    A = pl.inv(S) + H.T @ pl.inv(R) @ H
    for e in (
        A.explain("solve", np.ones(n)),
        A.explain("logdet"),
        pl.inv(A).explain("diagonal"),
    ):
        assert "potri" not in [s["name"] for s in e.steps if not s["conditional"]]
        assert e.flops < 0.6 * n**3


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("power", [4, 8, 12])
def test_a_precision_that_is_graded(rng, power):
    """The backward error is that of a direct solve, whatever S is."""
    n, m = 80, 6
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    s = q * 10.0 ** -np.linspace(0, power, n) @ q.T
    s = (s + s.T) / 2
    h, b = rng.standard_normal((m, n)), rng.standard_normal(n)
    H = pl.Dense(h)
    A = pl.inv(pl.Dense(s, "pos")) + H.T @ H
    a = np.linalg.inv(s) + h.T @ h
    x = pl.solve(A, b)
    size = np.linalg.norm(a, 2) * np.linalg.norm(x) + np.linalg.norm(b)
    # what inv(s) is off in NumPy's own form of it counts as well
    assert np.linalg.norm(b - a @ x) <= (10 * n + 10.0**power) * np.finfo(float).eps * size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 15, 16, 17, 100])
def test_negative_updates(rng, dtype, n):
    u, b = values(rng, (n, 2), dtype), values(rng, (n, 2), dtype)
    d = (1 + rng.random(n)).astype(np.empty(0, dtype).real.dtype)
    turned = d * np.where(np.arange(n) % 2, -1, 1).astype(d.dtype)
    low = pl.LowRank(u)
    for A in (
        -pl.Diag(d) - low,
        -pl.Diag(d) + 0.01 * low,
        pl.Diag(turned) - low,
        -2.0 * pl.Diag(d) - 3.0 * low,
        -pl.Diag(d) - pl.LowRank(u, None, pl.Diag(np.array([1.0, 2.0], d.dtype))),
        -pl.Diag(d) - pl.LowRank(u, None, pl.Diag(np.array([1.0, -2.0], d.dtype))),
    ):
        a = A.toarray().astype("complex128")
        with pl.config(check_plans=True, verify=True):
            x, (sign, log) = pl.solve(A, b), pl.slogdet(A)
        most = 50 * n * np.finfo(dtype).eps * np.linalg.cond(a)
        want = np.linalg.solve(a, b)
        assert np.linalg.norm(x - want) <= most * np.linalg.norm(want)
        s, v = np.linalg.slogdet(a)
        assert abs(sign - s) <= most
        assert abs(log - v) <= most * n


def test_a_negative_one_takes_the_short_way(rng):
    n = 200
    A = -pl.Diag(1 + rng.random(n)) - pl.LowRank(rng.standard_normal((n, 4)))
    with pl.explaining() as e:
        pl.solve(A, rng.standard_normal(n))
    assert not [s for s in e.explanation.steps if s["name"] == "probe" and s.get("took")]
