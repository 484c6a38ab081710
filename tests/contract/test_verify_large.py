"""Verified answers of more rows than are made dense: determinants by an estimate with error bars,
inverses within formulas by their residuals, entries of what has no room for a vector."""

import functools

import numpy as np
import pytest

import pylinop as pl
from pylinop._verify import compare, determinants


@pytest.fixture(autouse=True)
def verified():
    with pl.config(verify=True):
        compare.tally.clear()
        compare.strict = True
        yield
        compare.perturb = None


def said():
    assert len(compare.tally) == 1
    return next(text for _, text in compare.tally)


# -- determinants --


def definite(rng, n):
    """(name, operator whose logarithm of the determinant is known, that logarithm)."""
    d = np.exp(rng.uniform(0, 5, n))
    yield "diagonal", pl.Diag(d), np.log(d).sum()
    H = pl.Householder(rng.standard_normal(n))
    yield "turned", H @ pl.Diag(d) @ H.T, np.log(d).sum()
    few = np.ones(n)
    few[:3] = 1e-5, 1e5, 3
    yield "few eigenvalues", pl.Diag(few), np.log(3)
    u = rng.standard_normal((n, 2))
    yield "update", pl.Identity(n) + pl.Root(u), np.linalg.slogdet(np.eye(2) + u.T @ u)[1]
    k = n // 60
    a = np.eye(k) + 0.3
    yield "kron", pl.Kron(a, np.diag(d[:60])), 60 * np.log(1 + 0.3 * k) + k * np.log(d[:60]).sum()
    v = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    H = pl.Householder(v)
    yield "complex", H @ pl.Diag(d) @ H.H, np.log(d).sum()
    yield "multiple", 3.0 * pl.Identity(n), n * np.log(3.0)


NAMES = [name for name, *_ in definite(np.random.default_rng(0), 1200)]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("n", [1080, 2100])
@pytest.mark.parametrize("name", NAMES)
def test_error_bars_hold_the_logarithm(name, n, rng):
    op, log = {name: more for name, *more in definite(rng, n)}[name]
    low, high, steps, _ = determinants._interval(op, 2.0**-53, False)
    assert low - 1e-9 <= log <= high + 1e-9
    assert high - low < 0.6 * n and 1 <= steps <= determinants._STEPS


@pytest.mark.sweep(3)
@pytest.mark.parametrize("n", [1080, 2100])
@pytest.mark.parametrize("name", NAMES)
def test_determinants_of_many_rows_pass_and_wrong_ones_are_found(name, n, rng, monkeypatch):
    op, log = {name: more for name, *more in definite(rng, n)}[name]
    # The estimate takes seconds: what is compared with it changes here, the operator does not.
    monkeypatch.setattr(determinants, "_interval", functools.cache(determinants._interval))
    np.testing.assert_allclose(pl.logdet(op), log, rtol=1e-9, atol=1e-9)
    assert compare.tally["det", "verified"] == 1

    def negative(y):
        y[..., 0] *= -1

    def far(y):
        y[..., 1] += n

    def inverted(y):
        y[...] = 1 / y[..., 0], -y[..., 1]

    def nothing(y):
        y[...] = np.nan

    for fault in (negative, far, nothing, *([inverted] if log > n / 2 else [])):
        compare.perturb = lambda action, y, fault=fault: fault(y)
        with pytest.raises(pl.VerificationError):
            pl.slogdet(op)


def test_error_bars_grow_no_wider_than_they_must(rng):
    """Of eigenvalues within [1, 2] the logarithms are 0.2 apart: a tenth of n is found."""
    n = 4000
    H = pl.Householder(rng.standard_normal(n))
    op = H @ pl.Diag(1 + rng.random(n)) @ H.T
    pl.logdet(op)

    def off(action, y):
        y[..., 1] += 0.1 * n / np.log(2)

    compare.perturb = off
    with pytest.raises(pl.VerificationError, match="32 probes of Lanczos"):
        pl.logdet(op)


def test_many_draws_stay_within_the_error_bars(rng, monkeypatch):
    """Each is within a third of what is allowed: the bound is of six deviations and more."""
    n = 1100
    for seed in range(20):
        rng = np.random.default_rng(seed)
        d = np.exp(rng.uniform(0, 4, n)) if seed % 2 else 1 + 300.0 * (rng.random(n) < 0.02)
        H = pl.Householder(rng.standard_normal(n))
        z = rng.standard_normal((n, 32))
        monkeypatch.setattr(determinants, "_probes", lambda op, work, z=z: z)
        low, high, *_ = determinants._interval(H @ pl.Diag(d) @ H.T, 2.0**-53, False)
        assert abs(np.log(d).sum() - (low + high) / 2) < 0.5 * (high - low) / 2


def test_what_no_estimate_is_made_of_is_said(rng):
    n = 2100
    d = 1 + rng.random(n)
    bad = np.exp(rng.uniform(-20, 20, n))
    H = pl.Householder(rng.standard_normal(n))
    for op, why in (
        (pl.Tridiagonal(0.1 * d[1:], d, 0.2 * d[1:]), "it is not symmetric as written"),
        (pl.Diag(np.r_[-1.0, d[1:]]), "it is not positive definite"),
        (H @ pl.Diag(bad) @ H.T, "ill-conditioned"),
    ):
        compare.tally.clear()
        pl.slogdet(op)
        assert said().startswith("not verified: a determinant of 2100 rows") and why in said()


def test_rows_up_to_which_it_is_by_lu(rng):
    """Where the other way is no way, or no cheaper one, up to what has room for a dense form."""
    for n in (1025, 1200):
        a = rng.standard_normal((n, n))
        d = rng.standard_normal(n)
        for op in (pl.Dense(a), pl.Diag(d), pl.Triangular(np.tril(a))):
            compare.tally.clear()
            compare.perturb = None
            with pl.explaining() as e:
                pl.slogdet(op)
            assert "by NumPy's LU" in str(e)
            compare.perturb = lambda action, y: y.__imul__(1 + 1e-6)
            with pytest.raises(pl.VerificationError):
                pl.slogdet(op)


def test_batches_of_determinants(rng):
    d = np.exp(rng.uniform(0, 3, (3, 2100)))
    pl.slogdet(pl.Diag(d))
    assert said() == "verified"

    def last(action, y):
        y[-1, 1] -= 2100

    compare.perturb = last
    with pytest.raises(pl.VerificationError):
        pl.slogdet(pl.Diag(d))


# -- inverses within formulas --

N = 1100


def formulas(rng):
    """(name, formula, is its inverse well-conditioned?)"""
    a, b = rng.standard_normal((2, N, N))
    x = rng.standard_normal(N)
    A, B, D = pl.Dense(a), pl.Dense(b), pl.Diag(abs(x) + 1)
    s = b @ b.T + N * np.eye(N)
    S = pl.Dense(s, assume_a="pos")
    upper = pl.Dense(np.triu(s), assume_a="pos")
    T = pl.Toeplitz(np.r_[4.0, x[1:] / N])
    L = pl.Laplacian((20, 60), dtype=float) - 10 * pl.Identity(1200)
    yield "product", lambda: (A @ pl.inv(S)) @ x, True
    yield "of any matrix", lambda: (A @ pl.inv(B)) @ x, False
    yield "sum", lambda: (D + pl.inv(S)) @ x, True
    yield "named triangle", lambda: (D + pl.inv(upper)) @ x, True
    yield "adjoint", lambda: (D + 1j * pl.inv(T)).H @ (x + 1j * x[::-1]), True
    yield "dense form", lambda: (A + pl.inv(S)).toarray(), True
    yield "many rows", lambda: (L @ pl.inv(2 * L @ L)) @ np.arange(1200.0), True
    yield "within an inverse", lambda: (A @ pl.inv(pl.inv(S) + D)) @ x, True
    yield "diagonal", lambda: (A @ pl.inv(S)).diagonal(), True
    yield "element", lambda: (A @ pl.inv(S))[3, 4], True
    yield "lazy", lambda: (pl.lazy(a) @ pl.inv(pl.lazy(s)) @ pl.lazy(x)).toarray(), True
    yield "lazy sum", lambda: (pl.lazy(a) + pl.inv(pl.lazy(b) + N * np.eye(N))).toarray(), True
    single = pl.Dense(s.astype("f4") / N)
    yield "single", lambda: (A @ pl.inv(single)) @ x, True


@pytest.mark.parametrize("name", [name for name, *_ in formulas(np.random.default_rng(0))])
def test_inverses_of_many_rows_pass_and_wrong_ones_are_found(name, rng):
    compute, good = {name: more for name, *more in formulas(rng)}[name]
    with pl.explaining() as e:
        compute()
    assert all(text == "verified" for _, text in compare.tally), compare.tally
    assert len(e.plans) <= 2  # the solve that its residual judges is none of the user's

    def scaled(y):
        y *= 1 + (1e-6 if good else 1e-2)

    def edge(y):
        y[(..., -1) if y.ndim else ()] += abs(y).max() * (1e-5 if good else 1)

    for fault in (scaled, edge):
        compare.perturb = lambda action, y, fault=fault: fault(y)
        with pytest.raises(pl.VerificationError):
            compute()


def test_an_inverse_is_judged_by_its_residual_whatever_solved_it(rng, monkeypatch):
    """A solver that is wrong in the same way as the plan does not verify it."""
    from pylinop._verify import reference_inverse

    b = rng.standard_normal((N, N)) + N * np.eye(N)
    op, x = pl.Diag(np.ones(N)) + pl.inv(pl.Dense(b)), rng.standard_normal(N)
    op @ x
    solve = reference_inverse._solve

    def off(A, mode, z):
        y = solve(A, mode, z).copy()
        y[5] = 0
        return y

    monkeypatch.setattr(reference_inverse, "_solve", off)
    compare.tally.clear()
    op @ x
    assert "no solution has a residual as small as is promised" in said()


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
def test_inverses_that_cannot_be_judged_are_said(rng):
    b = rng.standard_normal((N, N)) * 10.0 ** np.linspace(0, -12, N)
    with np.errstate(all="ignore"):
        (pl.Diag(np.ones(N)) + pl.inv(pl.Dense(b))) @ np.ones(N)
    assert said().startswith(f"not verified: an inverse of {N} rows within an expression: its cond")


# -- entries of what has no room for a vector --


def test_entries_of_huge_operators_are_said_not_to_be_verified():
    for n, known in ((10**5, True), (10**9, False), (2**61, False)):
        op = pl.Identity(n) * 2.0
        asks = [lambda op=op: op[3, 3], lambda op=op: op[:4, :4].toarray()]
        for ask in asks:
            compare.tally.clear()
            assert np.max(ask()) == 2
            assert said() == "verified" if known else "no room for that" in said()


def test_entries_keep_to_the_memory_limit():
    op = pl.Identity(10**6) * 2.0
    with pl.config(memory_limit=1 << 20):
        assert op[3, 3] == 2
    assert said() == (
        "not verified: a vector of 1,000,000 entries on the way as written: no room for that"
    )


# -- LazyArrays are compared once --


def test_lazy_arrays_are_compared_once(rng):
    a, x = rng.standard_normal((30, 30)), rng.standard_normal(30)
    A, u = pl.lazy(a), pl.lazy(x)
    for ask in (
        lambda: (A @ A).toarray(),
        lambda: (A @ u).toarray(),
        lambda: (A + pl.inv(A)).toarray(),
        lambda: (A @ A)[3, 4].toarray(),
        lambda: pl.evaluate(A @ A, A + A),
    ):
        compare.tally.clear()
        ask()
        assert set(compare.tally) == {("evaluate", "verified")}
        assert compare.tally["evaluate", "verified"] <= 2


def test_what_is_no_formula_is_compared_by_its_plans(rng):
    """Where the whole cannot be compared the results of its plans are, as they were made."""
    calls = []
    a = rng.standard_normal((8, 8))

    def matvec(x):
        calls.append(1)
        return a @ x

    part = pl.MatVec((8, 8), matvec, dtype=float) + pl.Dense(a) @ pl.Dense(a)
    y = (pl.lazy(a) @ (pl.lazy(part) @ a[0])).toarray()
    np.testing.assert_allclose(y, a @ (a @ a[0] + a @ (a @ a[0])), rtol=1e-10, atol=1e-10)
    assert len(calls) == 1
    assert any(action == "apply" and text == "verified" for action, text in compare.tally)
    assert any(action == "evaluate" and text != "verified" for action, text in compare.tally)
    assert not compare._held.lists

    def wrong(action, made):
        made *= 1.01

    compare.perturb = wrong
    with pytest.raises(pl.VerificationError, match="'apply'"):
        (pl.lazy(a) @ (pl.lazy(part) @ a[0])).toarray()
    assert not compare._held.lists
    trace = (pl.lazy(a) @ pl.lazy(a)).trace()  # a function of a form: by its plan alone
    with pytest.raises(pl.VerificationError, match="'trace'"):
        trace.toarray()


def test_values_that_fail_leave_nothing_held(rng):
    A = pl.lazy(np.zeros((5, 5)))
    for ask in (
        lambda: (pl.inv(A) @ A).toarray(),
        lambda: pl.evaluate(pl.inv(A) @ A, pl.inv(A) + A),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            ask()
        assert not compare._held.lists
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(pl.Dense(np.zeros((5, 5))), np.ones(5))
    pl.Dense(np.eye(5)) @ np.ones(5)
    assert compare.tally["apply", "verified"] == 1
