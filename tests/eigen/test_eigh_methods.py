"""method= and k= of eigh, eigvalsh and diagonal: every way gives the same, and says what it is."""

import warnings

import numpy as np
import pytest

import pylinop as pl

G = np.random.default_rng(0)


def sym(n, dtype="float64"):
    a = G.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * G.standard_normal((n, n))
    return (a + a.conj().T).astype(dtype)


CASES = {
    "Dense": pl.Dense(sym(150)),
    "complex": pl.Dense(sym(90, "complex128")),
    "float32": pl.Dense(sym(90, "float32")),
    "Toeplitz": pl.Toeplitz(0.9 ** np.arange(120.0)) + pl.Diag(np.linspace(0, 9, 120)),
    "Kron": pl.Kron(sym(9), sym(11)),
    "callable": pl.MatVec((240, 240), lambda x: np.linspace(-3, 5, 240) * x, dtype=float),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("which, sigma", [("LA", None), ("SA", None), ("BE", None), ("LM", 1.3)])
@pytest.mark.parametrize("method", ["auto", "direct", "exact", "iterative"])
@pytest.mark.parametrize("name", CASES)
def test_all_ways_give_the_same(name, method, which, sigma):
    A = CASES[name]
    a = A.toarray()
    tol = (1e-4 if name == "float32" else 1e-9) * np.linalg.norm(a, 2)
    how = {"which": which} if sigma is None else {"sigma": sigma, "which": which}
    w, Q = pl.eigh(A, method=method, k=4, **how)
    with np.errstate(divide="ignore"):
        full = np.linalg.eigvalsh(a)
        at = {"LA": full[-4:], "SA": full[:4], "BE": np.r_[full[:2], full[-2:]]}
        want = at.get(which, np.sort(full[np.argsort(np.abs(full - (sigma or 0)))[:4]]))
    assert isinstance(Q, pl.LinearOperator) and Q.shape == (*a.shape[:1], 4)
    assert Q.dtype == A.dtype and w.dtype == full.dtype and (np.diff(w) >= 0).all()
    assert np.abs(w - want).max() < tol
    q = Q.toarray()
    assert np.abs(a @ q - q * w).max() < tol and np.abs(q.conj().T @ q - np.eye(4)).max() < 1e-4
    only = pl.eigvalsh(A, method=method, k=4, **how)
    assert only.dtype == w.dtype and np.abs(only - w).max() < tol


def test_all_pairs_and_few():
    A = CASES["Dense"]
    full = np.linalg.eigvalsh(A.toarray())
    for method in ("auto", "direct", "exact"):
        assert np.allclose(pl.eigh(A, method=method)[0], full)
        assert np.allclose(pl.eigvalsh(A, method=method), full)
    for method in ("auto", "direct", "iterative"):  # as many as there are
        for n in (1, 2, 5):
            a = sym(n)
            w, Q = pl.eigh(a, method=method, k=n)
            assert np.allclose(w, np.linalg.eigvalsh(a)) and Q.shape == (n, n)


def test_the_choice_shows():
    small, large = (
        pl.Dense(sym(60)),
        (pl.Tridiagonal(np.ones(2999), np.linspace(0, 9, 3000), np.ones(2999))),
    )
    assert "method    direct (method='auto', the cheaper)" in small.explain("eigh", k=3)
    said = large.explain("eigvalsh", k=3)
    assert "method    iterative (method='auto', the cheaper)" in said
    assert said.alternatives[0]["text"] == "direct"
    assert said.alternatives[0]["seconds"] > said.seconds > 0
    assert "structure" in CASES["Kron"].explain("eigh", k=3)
    assert "direct" in small.explain("eigh") and "iterative" in small.explain(
        "eigh", k=3, method="iterative"
    )
    with pl.config(memory_limit=8 * 150 * 100):
        assert "passes the memory limit" in CASES["Dense"].explain("eigh", k=3)
        w = pl.eigvalsh(CASES["Dense"], k=3)
    assert np.allclose(w, np.linalg.eigvalsh(CASES["Dense"].toarray())[-3:])
    with pl.explaining() as e:
        pl.eigh(large, k=2)
    assert "iterative" in str(e)
    d = pl.Toeplitz(np.ones(50)).explain("diagonal", method="hutchinson", num_samples=20)
    assert "method    hutchinson" in d and d.alternatives[0]["text"] == "direct"
    assert pl.Toeplitz(np.ones(50)).explain("diagonal", method="direct").steps


def test_what_does_not_converge_goes_by_the_dense_form():
    blind = pl.MatVec((600, 600), lambda x: np.linspace(0, 1, 600) * x, dtype=float)
    with pytest.warns(pl.FallbackWarning, match="Lanczos gave up"):
        w = pl.eigvalsh(blind, k=3, which="SM", maxiter=1)
    assert np.allclose(w, np.linspace(0, 1, 600)[:3], atol=1e-12)
    with pytest.raises(Exception, match="No convergence"):
        pl.eigvalsh(blind, method="iterative", k=3, which="SM", maxiter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.eigvalsh(blind, k=3)


def test_diagonals_by_name():
    A = pl.Toeplitz(0.1 ** np.arange(100.0))
    assert np.array_equal(pl.diagonal(A, method="direct"), pl.diagonal(A))
    assert np.array_equal(pl.diagonal(A, 1, method="exact"), pl.diagonal(A, 1))
    for method in ("hutchinson", "hutch++"):
        e = pl.diagonal(A, method=method, num_samples=40, rng=0)
        assert isinstance(e, pl.Estimate) and e.method == method
        assert (np.abs(e.value - 1) < 4 * e.error).all()
        same = pl.estimate_diagonal(A, method=method, num_samples=40, rng=0)
        assert np.array_equal(e.value, same.value)
    with pl.config(accuracy="estimate"):
        assert isinstance(pl.diagonal(A), np.ndarray)


def test_errors():
    A, blind = CASES["Dense"], CASES["callable"]
    known = "'auto', 'direct', 'iterative'"
    for wrong, error, words in (
        (lambda: pl.eigh(A, method="magic"), ValueError, known),
        (lambda: pl.eigvalsh(A, method="magic", k=2), ValueError, known),
        (lambda: pl.eigh(A, method="iterative"), ValueError, "takes k="),
        (lambda: pl.eigh(A, k=0), ValueError, "from 1 to 150, got 0"),
        (lambda: pl.eigh(A, k=151), ValueError, "from 1 to 150, got 151"),
        (lambda: pl.eigh(A, k=2.5), TypeError, "integer"),
        (lambda: pl.eigh(A, which="SA"), TypeError, "goes with k="),
        (lambda: pl.eigh(A, k=2, method="direct", tol=1e-3), TypeError, "iterative"),
        (lambda: pl.eigh(A, k=2, which="XX"), ValueError, "LM LA SA SM BE"),
        (lambda: pl.eigh(A, k=2, sigma=1j, method="direct"), ValueError, "sigma"),
        (lambda: pl.eigh(blind, k=2, sigam=1), TypeError, "sigam"),
        (lambda: pl.eigh(pl.Dense(np.ones((2, 3, 3))), k=2), ValueError, "not a batch"),
        (lambda: pl.eigh(np.ones((2, 3)), k=1), pl.LinAlgError, "square"),
        (lambda: A.explain("eigh", method="magic"), ValueError, known),
        (lambda: pl.diagonal(A, method="xtrace"), ValueError, "'hutchinson', 'hutch"),
        (lambda: pl.diagonal(A, 1, method="hutchinson"), ValueError, "offset 1"),
        (lambda: pl.diagonal(A, num_samples=30), TypeError, "belongs to an estimate"),
        (lambda: pl.trace(A, method="iterative"), ValueError, "'auto', 'direct', 'hutchinson'"),
        (lambda: pl.logdet(A, method="iterative"), ValueError, "'auto', 'direct', 'slq'"),
    ):
        with pytest.raises(error, match=words):
            wrong()
