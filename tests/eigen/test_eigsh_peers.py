"""eigsh, svds and lobpcg beside SciPy's and dense answers where they are hard: pencils, shifts,
clusters, zeros, complex, float32."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import pylinop as pl

N = 90
DTYPES = ("float32", "float64", "complex64", "complex128")
SPECTRA = {
    "even": np.linspace(-2, 5, N),
    "clusters": np.repeat([-3.0, 1.0, 1.0 + 1e-9, 4.0, 4.0, 4.0, 7.0, 7.0, 9.0], 10),
    "zeros": np.r_[np.zeros(70), np.linspace(1, 4, 10), -np.linspace(1, 3, 10)],
    "graded": np.r_[-np.logspace(-9, 3, N - 1), 0.0, 1e-3, 50.0],
}


def made(d, dtype, seed=0):
    g = np.random.default_rng(seed)
    q = g.standard_normal((d.size, d.size))
    if np.dtype(dtype).kind == "c":
        q = q + 1j * g.standard_normal(q.shape)
    q = np.linalg.qr(q)[0]
    a = (q * d) @ q.conj().T
    return ((a + a.conj().T) / 2).astype(dtype)


def wanted(values, k, which, sigma=None):
    of = values if sigma is None else 1 / (values - sigma)
    order = np.argsort(of)
    at = {
        "LA": order[-k:],
        "SA": order[:k],
        "BE": np.r_[order[: k // 2], order[len(order) - (k + 1) // 2 :]],
        "LM": np.argsort(np.abs(of))[-k:],
        "SM": np.argsort(np.abs(of))[:k],
    }[which]
    return np.sort(values[at])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", ["LM", "LA", "SA", "BE", "SM"])
@pytest.mark.parametrize("name", SPECTRA)
def test_eigsh(name, which, dtype):
    if name == "graded" and which in ("SM", "BE", "LA"):
        pytest.skip("nothing but a shift finds these")
    a = made(SPECTRA[name], dtype)
    double = a.astype(np.result_type(a, np.float64))
    values = np.linalg.eigvalsh(double)
    size, eps = np.abs(values).max(), np.finfo(dtype).eps
    tol = 2e3 * eps * size
    w, v = pl.eigsh(pl.Dense(a), 7, which=which)
    assert np.abs(np.sort(np.abs(w)) - np.sort(np.abs(wanted(values, 7, which)))).max() < tol
    assert np.linalg.norm(double @ v - v * w, axis=0).max() < tol
    assert np.abs(v.conj().T @ v - np.eye(7)).max() < 1e3 * eps
    assert w.dtype == np.zeros(1, dtype).real.dtype and v.dtype == dtype


@pytest.mark.parametrize("sigma", [0.31, -2.5, 1.0 + 1e-5, 100.0])
@pytest.mark.parametrize("name", ["even", "clusters", "zeros"])
def test_shifts_beside_scipys(name, sigma):
    a = made(SPECTRA[name], "complex128")
    for which in ("LM", "LA", "SA", "BE"):
        want = wanted(np.linalg.eigvalsh(a), 5, which, sigma)
        w, v = pl.eigsh(pl.Dense(a), 5, sigma=sigma, which=which)
        assert np.abs(w - want).max() < 1e-7 and np.abs(a @ v - v * w).max() < 1e-7
    if name == "even":  # of clusters SciPy's leaves copies out
        b = made(SPECTRA[name], "float64")
        for which in ("LM", "LA", "SA", "BE"):
            theirs = np.sort(sl.eigsh(b, 4, sigma=sigma, which=which)[0])
            w = pl.eigsh(pl.Dense(b), 4, sigma=sigma, which=which)[0]
            assert np.abs(w - theirs).max() < 1e-7


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "sigma, mode", [(None, "normal"), (0.4, "normal"), (0.4, "cayley"), (0.4, "buckling")]
)
def test_pencils_beside_scipys(dtype, sigma, mode):
    if mode != "normal" and dtype == "complex128":
        pytest.skip("SciPy's has these modes for real ones only")
    d = np.linspace(0.5, 5, N) if mode == "buckling" else SPECTRA["even"]
    a, m = made(d, dtype), made(np.linspace(1, 3, N), dtype, 1)
    tol = 1e-3 if dtype == "float32" else 1e-8
    double = [x.astype(np.result_type(x, np.float64)) for x in (a, m)]
    if mode == "buckling":  # A x = w M x with A definite, M of any sign
        m = made(SPECTRA["even"], dtype, 1)
        double[1] = m.astype(double[0].dtype)
        values = 1 / scipy.linalg.eigh(double[1], double[0])[0]
        want = values[np.argsort(np.abs(values / (values - sigma)))[-4:]]
    elif mode == "cayley":
        values = scipy.linalg.eigh(*double)[0]
        want = values[np.argsort(np.abs((values + sigma) / (values - sigma)))[-4:]]
    else:
        want = wanted(scipy.linalg.eigh(*double)[0], 4, "LM", sigma)
    for A, M in ((pl.Dense(a), pl.Dense(m)), (a, m), (sp.csr_array(a), pl.Dense(m))):
        found = w, v = pl.eigsh(A, 4, M=M, sigma=sigma, mode=mode)
        assert np.abs(w - np.sort(want)).max() < tol * np.abs(want).max()
        off = double[0] @ v - double[1] @ v * w
        assert np.abs(off).max() < tol * np.abs(double[0] @ v).max()
        assert found.record["products"] > 0 and (found.record["residuals"] < 1).all()


def test_pencils_are_solved_with_by_structure():
    """M and A - sigma M are tridiagonal: nothing is made dense."""
    n = 20_000
    A = pl.Tridiagonal(np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0))
    M = pl.Tridiagonal(np.full(n - 1, 1 / 6), np.full(n, 4 / 6), np.full(n - 1, 1 / 6))
    theta = np.arange(1, n + 1) * np.pi / (n + 1)
    values = (2 - 2 * np.cos(theta)) / ((4 + 2 * np.cos(theta)) / 6)
    with pl.config(memory_limit=n * 8 * 200):
        for sigma in (0.5, 7.0):
            w = pl.eigsh(A, 4, M=M, sigma=sigma)[0]
            assert np.abs(w - wanted(values, 4, "LM", sigma)).max() < 1e-9
        w = pl.eigs(A, 4, M=M, sigma=0.5)[0]
        assert np.abs(np.sort(w.real) - wanted(values, 4, "LM", 0.5)).max() < 1e-9
    w = pl.eigsh(pl.Dense(np.diag(np.arange(60))), 2, M=np.diag(np.arange(1, 61)))[0]
    assert np.abs(w - [58 / 59, 59 / 60]).max() < 1e-12  # integers


def test_what_is_no_pencil_raises():
    a = made(SPECTRA["even"], "float64")
    skew = np.random.default_rng(0).standard_normal((N, N))
    with pytest.raises((pl.LinAlgError, sl.ArpackNoConvergence)):
        pl.eigsh(skew, 3, M=np.eye(N) * 2, maxiter=30)
    with pytest.raises((pl.LinAlgError, sl.ArpackNoConvergence)):
        pl.eigsh(a, 3, M=np.diag(np.linspace(-1, 1, N)), maxiter=30)
    for bad in (np.full((N, N), np.nan), np.zeros((N, N))):
        with pytest.raises(pl.LinAlgError, match="no basis"):
            pl.eigs(bad, 2)
    with pytest.raises(pl.LinAlgError, match="not finite"):
        pl.eigsh(np.full((N, N), np.inf), 2)
    for call in (lambda x: pl.eigsh(x, 2), lambda x: pl.eigs(x, 2), lambda x: pl.svds(x, 2, tol=1)):
        with pytest.raises((TypeError, ValueError)):
            call(a.astype(np.longdouble))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(70, 40), (40, 70)])
def test_svds(shape, dtype):
    g = np.random.default_rng(0)
    r = min(shape)
    clusters, zeros = np.repeat([1.0, 2.0, 5.0, 5.0], r // 4), np.r_[[4.0, 3.0], np.zeros(r - 2)]
    for s in (np.linspace(1, 3, r), clusters, zeros):
        u, v = (np.linalg.qr(g.standard_normal((n, r)))[0] for n in shape)
        a = ((u * s) @ v.T).astype(dtype)
        if a.dtype.kind == "c":
            a = a * np.exp(1j * np.arange(shape[1])).astype(dtype)
        eps = np.finfo(dtype).eps
        for which, want in (("LM", np.sort(s)[-4:]), ("SM", np.sort(s)[:4])):
            x, got, yh = pl.svds(pl.Dense(a), 4, which=which)
            tol = 2e3 * eps * s.max() if which == "LM" else np.sqrt(eps) * s.max()
            assert np.abs(got - want).max() < tol and got.dtype == np.zeros(1, dtype).real.dtype
            assert np.abs(a @ yh.conj().T - x * got).max() < tol
            assert np.abs(a.conj().T @ x - yh.conj().T * got).max() < tol  # SciPy's is not
            assert np.abs(x.conj().T @ x - np.eye(4)).max() < 1e3 * eps
            assert np.abs(yh @ yh.conj().T - np.eye(4)).max() < 1e3 * eps


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_lobpcg_beside_scipys(dtype):
    g = np.random.default_rng(0)
    a, m = made(np.linspace(1, 50, N), dtype), made(np.linspace(1, 2, N), dtype, 1)
    X = g.standard_normal((N, 4)).astype(dtype)
    tol, goal = (1e-2, 1e-3) if dtype == "float32" else (1e-5, 1e-8)
    full = scipy.linalg.eigh(a, m)[0]
    for B, largest, values in (
        (None, False, np.linspace(1, 50, N)),
        (pl.Dense(m), False, full),
    ):
        begin = X.copy()
        how = {"largest": largest, "tol": goal, "maxiter": 300}
        w, v = pl.lobpcg(pl.Dense(a), begin, B=B, M=pl.inv(pl.Dense(a)), **how)
        assert np.array_equal(begin, X)  # SciPy's writes into it
        assert np.abs(np.sort(w) - np.sort(values[:4])).max() < tol * np.abs(values[:4]).max()
        off = a @ v - (v if B is None else m @ v) * w
        assert np.abs(off).max() < tol * 50
        theirs = sl.lobpcg(a, X.copy(), B=None if B is None else m, M=np.linalg.inv(a), **how)[0]
        assert np.abs(np.sort(w) - np.sort(theirs)).max() < 2 * tol * np.abs(values[:4]).max()
