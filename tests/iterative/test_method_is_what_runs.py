"""`method=` runs what it names, of every function that takes it and whatever the structure: seen by
the steps that `pl.explaining()` records, and by the answers."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 36
NAMES = {  # of each function, its methods but "auto", and those of them that give estimates
    pl.eigh: (("direct", "iterative"), ()),
    pl.eigvalsh: (("direct", "iterative"), ()),
    pl.solve: (
        ("direct", "iterative", "cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr")
        + ("block_cg",),
        (),
    ),
    pl.lstsq: (("lsmr", "lsqr", "block_kaczmarz"), ()),
    pl.trace: (("direct", "hutchinson", "hutch++", "xtrace"), ("hutchinson", "hutch++", "xtrace")),
    pl.diagonal: (("direct", "hutchinson", "hutch++"), ("hutchinson", "hutch++")),
    pl.logdet: (("direct", "slq"), ("slq",)),
}
ITERATIVE = {name for methods, _ in NAMES.values() for name in methods} - {"direct"}


def definite(seed, n):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def sparse():
    ones = np.ones(N - 1)
    return sp.diags_array([ones, np.full(N, 4.0), ones], offsets=[-1, 0, 1], format="csr")


OPERATORS = {
    "Dense": lambda: pl.Dense(definite(1, N)),
    "Kron": lambda: pl.Kron(definite(1, 6), definite(2, 6)),
    "BlockDiag": lambda: pl.BlockDiag(*(definite(k, 9) for k in range(4))),
    "Circulant": lambda: pl.Circulant(np.r_[4, 1, np.zeros(N - 3), 1.0]),
    "Diag": lambda: pl.Diag(np.linspace(1, 3, N)),
    "2 I": lambda: 2 * pl.Identity(N),
    "Tridiagonal": lambda: pl.Tridiagonal(np.ones(N - 1), np.full(N, 4.0), np.ones(N - 1)),
    "Toeplitz": lambda: pl.Toeplitz(0.5 ** np.arange(N)),
    "update": lambda: pl.LowRankUpdate(pl.Diag(np.linspace(1, 2, N)), np.ones((N, 1))),
    "Sparse": lambda: pl.Sparse(sparse()),
    "sum": lambda: pl.Toeplitz(0.5 ** np.arange(N)) + pl.Diag(np.linspace(1, 2, N)),
}


def arguments(f, method):
    if f in (pl.eigh, pl.eigvalsh):
        return (), {"k": 2}
    if f in (pl.solve, pl.lstsq):
        return (np.ones(N),), {}
    return (), {} if method == "direct" else {"rng": 0}


def wanted(f, a):
    if f in (pl.eigh, pl.eigvalsh):
        return np.linalg.eigvalsh(a)[-2:]
    if f in (pl.solve, pl.lstsq):
        return np.linalg.solve(a, np.ones(N))
    return {pl.trace: np.trace, pl.diagonal: np.diagonal}.get(f, lambda x: np.linalg.slogdet(x)[1])(
        a
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", OPERATORS)
def test_what_is_named_runs(kind):
    a = OPERATORS[kind]().toarray()
    for f, (methods, estimates) in NAMES.items():
        for method in methods:
            args, how = arguments(f, method)
            with pl.explaining() as e:
                found = f(OPERATORS[kind](), *args, method=method, **how)
            ran = {step["name"] for plan in e.plans for step in plan.steps}
            one = "cg" if method == "iterative" and f is pl.solve else method
            assert ran & ITERATIVE == ({one} - {"direct"}), (f.__name__, method, ran)
            value = found[0] if f in (pl.eigh, pl.lstsq) else found
            want = wanted(f, a)
            if method in estimates:  # the value, with its error, is not of this page
                continue
            np.testing.assert_allclose(value, want, rtol=0, atol=2e-5 * np.abs(want).max())
    for f in NAMES:
        args, _ = arguments(f, "direct")
        with pytest.raises(ValueError, match="method"):
            f(OPERATORS[kind](), *args, method="magic")


@pytest.mark.parametrize("method", ["lsmr", "lsqr", "block_kaczmarz", "sgd"])
def test_iterative_least_squares_are_one_record(rng, method):
    """As solves are: with the method, its products' price, and the time; also where it fails."""
    A = pl.Dense(rng.standard_normal((40, 8)))
    for b in (np.ones(40), np.ones((40, 3))):
        with pl.explaining() as e:
            pl.lstsq(A, b, method=method)
        (plan,) = e.plans
        assert [step["name"] for step in plan.steps] == [method] and plan.took > 0
        assert plan.flops > 2 * 2 * 40 * 8 and plan.memory > 0
        assert f"lstsq by {method}" in str(e) or "lstsq Dense (40, 8)" in str(e)
    with pytest.raises(pl.ConvergenceError), pl.explaining() as e:
        pl.lstsq(A, rng.standard_normal(40), method=method, rtol=1e-13, maxiter=1)
    assert len(e.plans) == 1
