"""A real diagonal with an update of low rank: its check costs k numbers beside the solution, no
probe runs through the matrix, and what is graded, nearly singular or indefinite is as accurate as
a dense factor makes it."""

import numpy as np
import pytest

import pylinop as pl

SIZES = [(12, 1), (40, 3), (130, 15), (130, 16), (130, 65), (260, 40)]
DTYPES = ["f4", "f8", "c8", "c16"]


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def diagonals(rng, n, real):
    """Diagonals on which a check may go wrong: even, graded, of both signs."""
    low = -12 if real == np.float64 else -5
    return {
        "even": (rng.random(n) + 0.5).astype(real),
        "graded": (10.0 ** np.linspace(low, 0, n)).astype(real),
        "one small": np.where(np.arange(n) == n // 2, 10.0**low, 1.0).astype(real),
        "indefinite": (np.where(np.arange(n) % 2, 1.0, -1.0) * (rng.random(n) + 0.5)).astype(real),
    }


CASES = list(diagonals(np.random.default_rng(0), 4, np.float64))


def updates(rng, n, k, dtype):
    """Factors U: even, large, small, of columns of many sizes, of columns that are nearly one."""
    u = drawn(rng, dtype, n, k)
    near = (drawn(rng, dtype, n, 1) + 1e-5 * u).astype(dtype)
    return {
        "even": u,
        "1e6": (1e6 * u).astype(dtype),
        "1e-6": (1e-6 * u).astype(dtype),
        "graded": (u * 10.0 ** np.linspace(-4, 4, k)).astype(dtype),
        "nearly of rank one": near,
    }


FACTORS = list(updates(np.random.default_rng(0), 2, 1, "f8"))


def backward_error(a, x, b):
    a, x, b = (np.asarray(v, np.clongdouble) for v in (a, x, b))
    r = np.linalg.norm(b - a @ x, axis=0)
    size = np.linalg.norm(a.astype(complex), 2)
    return float(np.max(r / (size * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0))))


def explained(ask):
    with pl.explaining() as e:
        value = ask()
    return value, [s for p in e.plans for s in p.steps]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, k", SIZES)
@pytest.mark.parametrize("diagonal", CASES)
@pytest.mark.sweep(3)
def test_solutions_and_determinants_keep_the_promise(rng, n, k, dtype, diagonal):
    real = np.dtype(dtype).type(0).real.dtype
    u_of_dtype = np.finfo(dtype).eps / 2
    d = diagonals(rng, n, real)[diagonal]
    for name, u in updates(rng, n, k, dtype).items():
        for c in (1.0, 0.5, -0.25):
            a = pl.Diag(d) + (pl.LowRank(u) if c == 1 else c * pl.LowRank(u))
            wide = np.diag(d.astype(complex)) + c * (u.astype(complex) @ u.conj().T.astype(complex))
            if np.linalg.cond(wide) > 0.01 / u_of_dtype:
                continue
            b = drawn(rng, dtype, n, 2)
            x = pl.solve(a, b)
            assert backward_error(wide, x, b) <= 12 * n * u_of_dtype, (name, c)
            got, want = pl.slogdet(a), np.linalg.slogdet(wide)
            bound = 10 * n * u_of_dtype * (np.linalg.cond(wide) + abs(want[1]) + 1)
            assert abs(got[1] - want[1]) <= bound, (name, c)
            assert abs(got[0] - want[0]) <= 10 * n * u_of_dtype * np.linalg.cond(wide)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("n, k", [(40, 3), (400, 20)])
def test_no_probe_runs_where_nothing_cancels(rng, n, k, order):
    u = rng.standard_normal((n, 2 * k))[:, ::2]
    u = u if order == "strided" else np.array(u, order=order)
    d, b = rng.random(n) + 0.5, rng.standard_normal(n)
    for a in (pl.Diag(d) + pl.LowRank(u), 2.0 * pl.Identity(n) + 0.5 * pl.LowRank(u)):
        x, steps = explained(lambda a=a: pl.solve(a, b))
        always = [s["name"] for s in steps if not s["conditional"]]
        assert "weighted-gram" in always
        assert "probe" not in always
        assert not [s for s in steps if s["name"] in ("probe", "getrf") and s["took"] is not None]
        # U^H z, U y and U^H x: no fourth product with U, and nothing of its size is written
        assert always.count("gemm") == 3
        assert backward_error(a.toarray(), x[:, None], b[:, None]) < 10 * n * 1.2e-16
        got, steps = explained(lambda a=a: pl.logdet(a))
        assert not [s for s in steps if s["name"] in ("probe", "getrf") and s["took"] is not None]
        always = [s["name"] for s in steps if not s["conditional"]]
        assert "gemm" not in always and "probe" not in always
        np.testing.assert_allclose(got, np.linalg.slogdet(a.toarray())[1], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [2, 16, 65])
@pytest.mark.parametrize("columns", ["even", "graded", "alike"])
def test_determinants_of_large_updates_need_no_probe(rng, dtype, k, columns):
    """The small matrix is far from the identity, and well conditioned but for its scaling; where
    columns are nearly alike it is not, and a probe tells."""
    n, unit = 20 * k, np.finfo(dtype).eps / 2
    # tr S above 1 / (100 k u), so that the trace alone proves nothing
    large = 3 * (1 / (100 * k * unit) / (k * n)) ** 0.5
    u = drawn(rng, dtype, n, k)
    if columns == "alike":
        u = u[:, :1] + np.sqrt(unit) * u
    if columns == "graded":
        u *= 10.0 ** np.linspace(-1, 1, k)
    u = (large * u).astype(dtype)
    d = (rng.random(n) + 0.5).astype(u.real.dtype)
    with pl.config(check_plans=True):
        got, steps = explained(lambda: pl.logdet(pl.Diag(d) + pl.LowRank(u)))
    probes = [s for s in steps if s["name"] == "probe" and s["took"] is not None]
    assert bool(probes) == (columns == "alike")
    wide = np.clongdouble if dtype == "c16" else np.longdouble if dtype == "f8" else complex
    small = np.eye(k) + (u.astype(wide).conj().T / d) @ u.astype(wide)
    scale = np.sqrt(np.diagonal(small).real)
    even = (small / scale / scale[:, None]).astype(complex)
    want = np.linalg.slogdet(even)[1] + 2 * np.log(scale).sum() + np.log(d.astype(float)).sum()
    # the sums of n terms, the factor, and log det D, a sum of n numbers of size 1
    bound = unit * (n * np.trace(np.linalg.inv(even)).real * k + 4 * n + abs(want))
    assert abs(got - float(want)) <= bound


def test_the_check_takes_no_notice_of_units(rng):
    """Rescaling A changes neither accuracy nor the way that is taken."""
    n, k = 60, 4
    u, d, b = rng.standard_normal((n, k)), rng.random(n) + 0.5, rng.standard_normal(n)
    want = np.linalg.solve(np.diag(d) + u @ u.T, b)
    for p in (-200, -60, 60, 200):
        a = pl.Diag(np.ldexp(d, 2 * p)) + pl.LowRank(np.ldexp(u, p))
        np.testing.assert_allclose(np.ldexp(pl.solve(a, b), 2 * p), want, rtol=1e-10)
        np.testing.assert_allclose(
            pl.logdet(a),
            np.linalg.slogdet(np.diag(d) + u @ u.T)[1] + 2 * p * n * np.log(2),
            rtol=1e-12,
        )


def test_singular_is_told_and_a_zero_on_the_diagonal_is_none(rng):
    n, k = 30, 3
    u, d = rng.standard_normal((n, k)), rng.random(n) + 0.5
    d[4] = 0
    a, b = pl.Diag(d) + pl.LowRank(u), rng.standard_normal(n)
    dense = np.diag(d) + u @ u.T
    np.testing.assert_allclose(pl.solve(a, b), np.linalg.solve(dense, b), rtol=1e-9)
    np.testing.assert_allclose(pl.slogdet(a), np.linalg.slogdet(dense), rtol=1e-10)
    d[:] = 0
    with pytest.warns(pl.IllConditionedWarning):
        pl.solve(a, b)
    assert not pl.logdet(a) > -800


def test_a_solution_of_zero_and_numbers_that_are_none(rng):
    n, k = 30, 3
    u, d = rng.standard_normal((n, k)), rng.random(n) + 0.5
    a = pl.Diag(d) + pl.LowRank(u)
    b = np.zeros((n, 2))
    b[:, 1] = rng.standard_normal(n)
    x = pl.solve(a, b)
    assert not x[:, 0].any()
    np.testing.assert_allclose(x, np.linalg.solve(np.diag(d) + u @ u.T, b), rtol=1e-9)
    d[3] = np.nan
    assert np.isnan(pl.logdet(a))
    assert np.isnan(pl.solve(a, b)).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_branch_alone(rng, dtype):
    """One element's update is too large for the quick check; the others do not notice."""
    n, k = 40, 3
    real = np.dtype(dtype).type(0).real.dtype
    u, d = drawn(rng, dtype, 3, n, k), (rng.random((3, n)) + 0.5).astype(real)
    d[1] = -d[1]
    a, b = pl.Diag(d) + pl.LowRank(u), drawn(rng, dtype, 3, n, 2)
    dense = np.stack([np.diag(e) for e in d]) + u @ u.conj().transpose(0, 2, 1)
    tol = 1e-3 if real == np.float32 else 1e-9
    np.testing.assert_allclose(pl.solve(a, b), np.linalg.solve(dense, b), rtol=tol, atol=tol)
    np.testing.assert_allclose(pl.slogdet(a)[1], np.linalg.slogdet(dense)[1], rtol=tol)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("batch", [(2,), (3,), (7,), (8,), (9,), (17,), (2, 3), (3, 9)])
@pytest.mark.parametrize("k", [3, 31, 32, 33])
def test_whichever_elements_branch(rng, dtype, batch, k):
    """Small Choleskys go eight at a time; in a branch only some of the eight are asked for."""
    n = 40
    tol = 2e-2 if dtype == "f4" else 1e-7
    for _ in range(4):
        u, d = drawn(rng, dtype, *batch, n, k), (rng.random((*batch, n)) + 0.5).astype(dtype)
        d[rng.random(batch) < 0.3] *= -1
        b = drawn(rng, dtype, *batch, n, 2)
        dense = d[..., None] * np.eye(n) + u.astype(float) @ np.swapaxes(u, -1, -2)
        well = np.linalg.cond(dense) < (1e3 if dtype == "f4" else 1e6)
        a = pl.Diag(d) + pl.LowRank(u)
        got, want = pl.slogdet(a), np.linalg.slogdet(dense)
        np.testing.assert_allclose(got[1][well], want[1][well], rtol=tol, atol=tol)
        np.testing.assert_array_equal(got[0][well], want[0][well])
        x = pl.solve(a, b)
        np.testing.assert_allclose(
            x[well], np.linalg.solve(dense, b.astype(float))[well], rtol=tol, atol=tol
        )
