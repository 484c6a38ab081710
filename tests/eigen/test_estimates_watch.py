"""callback= and progress= of estimates and eigensolvers: what they are told, that ^C in them or in
a product leaves everything usable, and wrong ones."""

import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 120
G = np.random.default_rng(0)
A = pl.Toeplitz(0.5 ** np.arange(float(N))) + pl.Diag(np.linspace(0.01, 30, N))
S = pl.Sparse(sp.csr_array(A.toarray()))
W = np.linalg.eigvalsh(A.toarray())
X = G.standard_normal((N, 3))
X.flags.writeable = False  # SciPy's lobpcg writes into it

ESTIMATES = {
    "hutchinson": lambda op, **how: pl.estimate_trace(op, rng=0, **how),
    "hutch++": lambda op, **how: pl.estimate_trace(op, method="hutch++", rng=0, **how),
    "xtrace": lambda op, **how: pl.estimate_trace(op, method="xtrace", rng=0, **how),
    "inv": lambda op, **how: pl.estimate_trace(op, "inv", rng=0, **how),
    "slq": lambda op, **how: pl.estimate_logdet(op, rng=0, **how),
    "slq, 7 steps": lambda op, **how: pl.estimate_logdet(op, steps=7, rng=0, **how),
    "diagonal": lambda op, **how: pl.estimate_diagonal(op, rng=0, **how),
    "diagonal ++": lambda op, **how: pl.estimate_diagonal(op, method="hutch++", rng=0, **how),
    "density": lambda op, **how: pl.spectral_density(op, [1.0, 2.0], steps=20, rng=0, **how),
}
SOLVERS = {
    "eigsh": lambda op, **how: pl.eigsh(op, 3, ncv=12, **how)[0],
    "sigma": lambda op, **how: pl.eigsh(op, 3, sigma=1.0, **how)[0],
    "M": lambda op, **how: pl.eigsh(op, 3, M=pl.Diag(np.linspace(1, 2, N)), **how)[0],
    "svds": lambda op, **how: pl.svds(op, 3, ncv=12, **how)[1],
    "propack": lambda op, **how: pl.svds(op, 3, solver="propack", maxiter=100, rng=0, **how)[1],
    "eigs": lambda op, **how: pl.eigs(op, 3, **how)[0],
    "lobpcg": lambda op, **how: pl.lobpcg(op, X, tol=1e-3, maxiter=40, **how)[0],
    "bounds": lambda op, **how: pl.spectral_bounds(op, method="lanczos", **how),
    "eigh": lambda op, **how: pl.eigh(op, method="iterative", k=3, **how)[0],
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_tell(name):
    run, told, shown = ESTIMATES[name], [], []
    quiet = run(A)
    e = run(A, callback=told.append, progress=lambda k, error: shown.append((k, error)))
    assert np.array_equal(e.value, quiet.value) and np.array_equal(e.error, quiet.error)
    assert told and all(isinstance(x, pl.Estimate) for x in told)
    last = told[-1]
    assert np.allclose(last.value, e.value) and np.allclose(last.error, e.error)
    assert last.matvecs == e.matvecs and last.method == e.method
    products = [k for k, _ in shown]
    assert products == sorted(products) and products[-1] == e.matvecs
    if name in ("slq", "inv"):  # from step to step the brackets close
        assert len(told) > 1 and told[0].bias > told[-1].bias


def test_estimates_tell_of_both_stages():
    told = []
    e = pl.estimate_logdet(A, rtol=0.001, rng=0, callback=told.append)
    assert e.samples > 30 and {t.samples for t in told} == {30, e.samples}
    assert told[-1].matvecs == e.matvecs
    told.clear()
    batch = pl.Dense(np.stack([A.toarray(), 2 * A.toarray()]))
    pl.estimate_trace(batch, rng=0, callback=told.append)
    assert told[0].value.shape == (2,)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_tell(name):
    run, told, shown = SOLVERS[name], [], []
    quiet = run(S)
    w = run(S, callback=told.append, progress=lambda k, r: shown.append(k))
    assert same(w, quiet)
    assert told and len(shown) == len(told) and shown == sorted(shown)
    if name in ("eigsh", "svds", "sigma"):
        assert told[-1]["values"].shape == told[-1]["residuals"].shape == (3,)
        assert told[-1]["restarts"] == len(told) - 1 and told[-1]["products"] == shown[-1]
    elif name in ("M", "propack", "eigs", "lobpcg"):
        assert told[-1]["products"] == len(told) and "SciPy" in told[-1]["method"]


def same(a, b):
    """Bit by bit."""
    a, b = (x if isinstance(x, tuple) else (x,) for x in (a, b))
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def stop(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", [*ESTIMATES, *SOLVERS])
def test_interrupts_leave_all_usable(name):
    """In the callback, in the progress, and by a signal between products."""
    run, op = (ESTIMATES[name], A) if name in ESTIMATES else (SOLVERS[name], S)
    before = run(op)
    for how in ({"callback": stop}, {"progress": stop}):
        with pytest.raises(KeyboardInterrupt):
            run(op, **how)
    count = [0]

    def product(x):
        count[0] += 1
        if count[0] == (1 if name in ("hutchinson", "xtrace", "diagonal") else 2):
            signal.raise_signal(signal.SIGINT)
        return op @ x

    blind = pl.MatVec((N, N), product, rmatvec=product, matmat=product, dtype=float)
    with pytest.raises(KeyboardInterrupt):
        run(blind)
    after = run(op)
    if isinstance(before, pl.Estimate):
        before, after = before.value, after.value
    assert same(before, after)


def test_bars_are_closed(capsys, monkeypatch):
    """tqdm's where it is there, lines elsewhere."""
    pytest.importorskip("tqdm")
    pl.estimate_logdet(A, rng=0, progress=True)
    with pytest.raises(KeyboardInterrupt):
        pl.eigsh(S, 3, progress=True, callback=stop)
    said = capsys.readouterr().err
    assert "estimate_logdet" in said and "eigsh" in said and "error" in said
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert pl.estimate_trace(A, rng=0, progress=True).samples == 30


def test_errors():
    for wrong, error, words in (
        (lambda: pl.estimate_trace(A, callback=3), TypeError, "callback must be callable"),
        (lambda: pl.estimate_logdet(A, progress="yes"), TypeError, "progress"),
        (lambda: pl.estimate_diagonal(A, sample=30), TypeError, "argument 'sample'"),
        (lambda: pl.eigsh(S, 3, callback=3), TypeError, "eigsh: callback"),
        (lambda: pl.svds(S, 3, progress="yes"), TypeError, "progress"),
        (lambda: pl.eigs(S, 3, callback=()), TypeError, "eigs: callback"),
        (lambda: pl.lobpcg(S, X, callback=3), TypeError, "lobpcg: callback"),
    ):
        with pytest.raises(error, match=words):
            wrong()
