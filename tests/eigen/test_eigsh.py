"""eigsh, svds, eigs, lobpcg, expm_multiply, lanczos, arnoldi against dense answers and SciPy's."""

import inspect

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import pylinop as pl
from pylinop._base.trampoline import run
from pylinop._eigen import eigsh, thick_restart_lanczos

rng0 = np.random.default_rng(0)


def sym(n, dtype="float64"):
    a = rng0.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng0.standard_normal((n, n))
    return (a + a.conj().T).astype(dtype)


def graph(n):
    w = sp.random_array((n, n), density=6 / n, rng=1)
    return sp.csr_array(sp.csgraph.laplacian(w + w.T))


def turned(c):
    return (c + np.roll(c[::-1], 1)) / 2


CASES = {
    "Kron": (pl.Kron(sym(12), sym(10)), "structure"),
    "skew Kron": (pl.Kron([[0.0, 1], [-1, 0]], np.tri(30) - np.tri(30).T), "Lanczos"),
    "KronSum and shift": (pl.KronSum(sym(12), sym(10)) + 2 * pl.Identity(120), "structure"),
    "Laplacian": (pl.Laplacian((9, 11), "dirichlet"), "structure"),
    "Circulant": (pl.Circulant(turned(rng0.standard_normal(80))), "structure"),
    "BlockDiag": (pl.BlockDiag(sym(20), sym(30), pl.Diag(rng0.standard_normal(40))), "structure"),
    "LowRank": (pl.LowRank(rng0.standard_normal((90, 7))), "structure"),
    "Dense": (pl.Dense(sym(90)), "Lanczos"),
    "complex": (pl.Dense(sym(70, "complex128")), "Lanczos"),
    "float32": (pl.Dense(sym(90, "float32")), "Lanczos"),
    "integers": (pl.Dense(np.diag(np.arange(60)) + 1), "Lanczos"),
    "graph": (pl.Sparse(graph(120)), "Lanczos"),
    "Toeplitz and Diag": (
        pl.Toeplitz(0.5 ** np.arange(100.0)) + pl.Diag(np.linspace(0, 5, 100)),
        "Lanczos",
    ),
    "callable": (pl.MatVec((50, 50), lambda x: np.arange(50.0) * x, dtype=float), "Lanczos"),
}  # fmt: skip


def wanted(values, k, which, sigma):
    if sigma is None:
        return np.sort(values[thick_restart_lanczos.picked(values, k, which)])
    nu = 1 / (values - sigma)
    order = np.argsort(nu)
    return np.sort(values[order][thick_restart_lanczos.picked(nu[order], k, which)])


@pytest.mark.parametrize("sigma", [None, 0.37])
@pytest.mark.parametrize("which", ["LM", "LA", "SA", "BE"])
@pytest.mark.parametrize("name", CASES)
def test_eigsh(name, which, sigma):
    A, how = CASES[name]
    a = A.toarray()
    values = np.linalg.eigvalsh(a.astype(np.result_type(a, np.float64)))
    found = pl.eigsh(A, 5, which=which, sigma=sigma)
    w, v = found
    size = np.abs(values).max()
    tol = (2e-4 if name == "float32" else 1e-9) * size
    assert isinstance(found, tuple) and (how in found.record["method"])
    assert w.dtype == ("float32" if name == "float32" else "float64") and (np.diff(w) >= 0).all()
    want = wanted(values, 5, which, sigma)
    if which == "LM" and sigma is None:  # of two of one modulus either
        assert np.abs(np.sort(np.abs(w)) - np.sort(np.abs(want))).max() < tol
    else:
        assert np.abs(w - want).max() < tol
    assert np.abs(a @ v - v * w).max() < tol
    assert np.abs(v.conj().T @ v - np.eye(5)).max() < (1e-4 if name == "float32" else 1e-9)
    only = pl.eigsh(A, 5, which=which, sigma=sigma, return_eigenvectors=False)
    assert np.array_equal(only, w)


def test_smallest_modulus():
    A = pl.Diag(np.arange(-20.0, 30)) @ pl.Identity(50)
    assert pl.eigsh(A, 3, which="SM")[0].round(9).tolist() == [-1, 0, 1]
    w = pl.eigsh(pl.Sparse(graph(60)), 3, which="SM")[0]
    assert np.abs(w - np.linalg.eigvalsh(graph(60).toarray())[:3]).max() < 1e-9


def test_an_eigenvalue_of_zero_is_found():
    """SciPy 1.17's ARPACK leaves it out: [1, 2, 3]."""
    A = pl.Sparse(sp.diags_array(np.arange(100.0)).tocsr())
    assert pl.eigsh(A, 3, which="SA")[0].round(9).tolist() == [0, 1, 2]


@pytest.mark.parametrize("which", ["SA", "SM"])
def test_small_values_of_a_large_operator(which):
    """Their residuals are rounding of |A|, not of the values."""
    L = pl.Sparse((-pl.Laplacian(150, "dirichlet")).tosparse()) @ pl.Identity(150)
    want = np.linalg.eigvalsh(L.toarray())[:3]
    found = pl.eigsh(L, 3, which=which)
    assert np.abs(found[0] - want).max() < 1e-12 and found.record["products"] > 0
    big = 1e8 * np.arange(1.0, 81) + 0.0
    big[:2] = 1e-7, 2e-7
    w = pl.eigsh(pl.MatVec((80, 80), lambda x: big * x, dtype=float), 2, which=which)[0]
    assert np.abs(w).max() < 1e-4  # 1e-14 of the norm


def test_multiple_eigenvalues():
    d = np.repeat([5.0, 4.0, 1.0], [3, 2, 35])
    q = np.linalg.qr(rng0.standard_normal((40, 40)))[0]
    w, v = pl.eigsh(pl.Dense((q * d) @ q.T), 6, which="LA")
    assert np.abs(w - [1, 4, 4, 5, 5, 5]).max() < 1e-10
    assert np.abs(v.T @ v - np.eye(6)).max() < 1e-10
    w = pl.eigsh(pl.Dense(np.eye(30)), 4)[0]
    assert np.abs(w - 1).max() < 1e-12


def ring(n):
    """Eigenvalues 2 - 2 cos(2 pi j / n): pairs, but for the ends."""
    return pl.Sparse(
        sp.csr_array(
            sp.diags_array(
                [2 * np.ones(n), -np.ones(n - 1), -np.ones(n - 1), [-1.0], [-1.0]],
                offsets=[0, 1, -1, n - 1, 1 - n],
            )
        )
    )


def grid(n):
    line = sp.diags_array([2 * np.ones(n), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1])
    return pl.Sparse(sp.csr_array(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("which", ["LA", "SA", "BE", "LM"])
@pytest.mark.parametrize(("k", "make"), [(3, lambda: ring(200)), (6, lambda: grid(20))])
def test_copies_that_one_vector_does_not_show(k, make, which, seed):
    """A copy comes up slowly where the eigenvalues lie close: some steps from another vector did
    not show it."""
    A = make()
    values = np.linalg.eigvalsh(A.toarray())
    w, v = pl.eigsh(A, k, which=which, rng=seed)
    assert np.abs(w - wanted(values, k, which, None)).max() < 1e-11
    assert np.abs(v.T @ v - np.eye(k)).max() < 1e-9
    assert np.abs(A @ v - v * w).max() < 1e-11


@pytest.mark.parametrize("copies", [2, 5, 9])
@pytest.mark.parametrize("which", ["LA", "BE", "LM"])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_many_copies_beside_close_values(copies, which, dtype):
    tail = np.linspace(0, 2.9, 300 - 2 * copies)
    d = np.random.default_rng(1).permutation(
        np.concatenate([tail, np.full(copies, 3.0), np.full(copies, 3.1)])
    )
    A = pl.MatVec((300, 300), lambda x: (d * x.T).T.astype(dtype), dtype=dtype)
    k = copies + 2
    w, v = pl.eigsh(A, k, which=which)
    off = 1e-4 if dtype == "float32" else 1e-11
    assert np.abs(w - wanted(np.sort(d), k, which, None)).max() < off
    assert np.abs(v.conj().T @ v - np.eye(k)).max() < 10 * off


def test_a_start_without_what_is_wanted():
    """Of a user's start nothing is taken for granted, one pair or more."""
    d = np.concatenate([np.linspace(0, 1, 150), np.linspace(2, 3, 150)])
    A = pl.MatVec((300, 300), lambda x: (d * x.T).T, dtype=float)
    for k in (1, 3):
        w = pl.eigsh(A, k, which="LA", v0=np.repeat([1.0, 0.0], 150))[0]
        assert np.abs(w - d[-k:]).max() < 1e-11


def test_singular_values_that_are_pairs():
    n = 150
    shift = sp.diags_array([np.full(n - 1, 1.0), [1.0]], offsets=[1, 1 - n])
    A = pl.Sparse(sp.csr_array(sp.eye_array(n) - shift))  # moduli of 1 - exp(2 pi i j / n)
    s = pl.svds(A, 4)[1]
    assert np.abs(s - np.linalg.svdvals(A.toarray())[3::-1]).max() < 1e-11


def test_same_bits_again():
    A = pl.Sparse(graph(200))
    first, second = pl.eigsh(A, 4), pl.eigsh(A, 4)
    assert np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1])
    assert not np.array_equal(first[1], pl.eigsh(A, 4, rng=1)[1])
    assert np.array_equal(pl.eigsh(A, 4, v0=np.ones(200))[1], pl.eigsh(A, 4, v0=np.ones(200))[1])


def test_no_convergence_is_scipys():
    A = pl.Toeplitz(0.9 ** np.arange(300.0))
    with pytest.raises(sl.ArpackNoConvergence, match="eigenvectors converged") as info:
        pl.eigsh(A, 4, which="BE", maxiter=2, ncv=12)
    e = info.value
    assert len(e.eigenvalues) == e.eigenvectors.shape[1] < 4
    with pytest.raises(sl.ArpackNoConvergence):
        pl.svds(A, 4, maxiter=1, ncv=6)


def test_what_is_not_hermitian_is_found_out():
    with pytest.raises((pl.LinAlgError, sl.ArpackNoConvergence)):
        pl.eigsh(pl.Dense(rng0.standard_normal((60, 60))), 4, maxiter=50)


def test_pencils_go_to_scipy():
    a, m = sym(40), np.diag(np.arange(1.0, 41))
    w, v = pl.eigsh(pl.Dense(a), 3, M=m, which="LA")
    assert np.abs(w - scipy.linalg.eigh(a, m)[0][-3:]).max() < 1e-8
    assert pl.eigsh(a, 3, M=m, which="LA").record["method"] == "ARPACK (SciPy)"
    assert np.allclose(pl.eigsh(a, 40)[0], np.linalg.eigvalsh(a))


@pytest.mark.parametrize(
    "wrong, error",
    [
        (lambda: pl.eigsh(np.ones((2, 3))), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 0), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 9), TypeError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 2, which="XX"), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 4, ncv=4), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 4, maxiter=0), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 4, v0=np.zeros(9)), ValueError),
        (lambda: pl.eigsh(pl.Dense(sym(9)), 4, sigma=1j), ValueError),
        (lambda: pl.svds(pl.Dense(sym(9)), 9), ValueError),
        (lambda: pl.svds(pl.Dense(sym(9)), 2, which="LA"), ValueError),
        (lambda: pl.eigs(np.ones((2, 3))), ValueError),
        (lambda: pl.lobpcg(np.eye(9), np.ones(9)), ValueError),
        (lambda: pl.lanczos(np.eye(3), np.ones(4), 2), ValueError),
        (lambda: pl.lanczos(np.eye(3), np.zeros(3), 2), ValueError),
        (lambda: pl.lanczos(np.eye(3), np.ones(3), 4), ValueError),
        (lambda: pl.lanczos(np.tri(6), np.arange(6.0), 4), pl.LinAlgError),
        (lambda: pl.arnoldi(np.ones((2, 3)), np.ones(3), 2), pl.LinAlgError),
        (lambda: pl.expm_multiply(np.ones((2, 3)), np.ones(3)), pl.LinAlgError),
        (lambda: pl.expm_multiply(np.eye(3), np.ones(4)), ValueError),
        (lambda: pl.eigh(np.eye(3), method="iterative"), ValueError),
        (lambda: pl.eigh(np.eye(3), k=4), ValueError),
        (lambda: pl.eigh(np.eye(3), method="magic", k=2), ValueError),
    ],
)
def test_errors(wrong, error):
    with pytest.raises(error):
        wrong()


@pytest.mark.parametrize("name", ["eigsh", "eigs", "svds", "lobpcg", "expm_multiply"])
def test_signatures_are_scipys(name):
    """The names and defaults that both have, in the same order; ours has two more, by name."""
    ours = inspect.signature(getattr(pl, name)).parameters
    theirs = inspect.signature(getattr(sl, name)).parameters
    shared = [n for n in ours if n in theirs]
    assert shared == [n for n in theirs if n in ours]
    more = set(ours) - set(theirs) - {"rng"}
    assert more == (set() if name == "expm_multiply" else {"callback", "progress"})
    assert all(ours[n].kind is inspect.Parameter.KEYWORD_ONLY for n in more) and set(theirs) <= set(
        ours
    ) | {"random_state"}
    for n in shared:
        assert ours[n].default == theirs[n].default


def test_eigh_by_name():
    A = pl.Dense(sym(50))
    w, Q = pl.eigh(A, method="iterative", k=3)
    assert np.abs(w - np.linalg.eigvalsh(A.toarray())[-3:]).max() < 1e-10
    assert isinstance(Q, pl.LinearOperator) and Q.shape == (50, 3)
    assert np.array_equal(pl.eigh(A, method="exact")[0], pl.eigh(A)[0])


# -- singular triplets --


@pytest.mark.parametrize("which", ["LM", "SM"])
@pytest.mark.parametrize("name", ["tall", "wide", "complex", "LowRank", "Kron", "sparse"])
def test_svds(name, which):
    g = np.random.default_rng(3)
    A = {
        "tall": pl.Dense(g.standard_normal((60, 25))),
        "wide": pl.Dense(g.standard_normal((25, 60))),
        "complex": pl.Dense(g.standard_normal((40, 25)) + 1j * g.standard_normal((40, 25))),
        "LowRank": pl.LowRank(g.standard_normal((70, 9)), g.standard_normal((50, 9))),
        "Kron": pl.Kron(g.standard_normal((8, 6)), g.standard_normal((7, 9))),
        "sparse": pl.Sparse(sp.random_array((80, 50), density=0.2, rng=0).tocsr()),
    }[name]
    if name in ("LowRank",) and which == "SM":
        which = "LM"
    a = A.toarray()
    s = np.linalg.svdvals(a)
    want = np.sort(s[:4] if which == "LM" else s[-4:])
    u, got, vh = pl.svds(A, 4, which=which)
    assert np.abs(got - want).max() < 1e-7 * s[0]
    assert u.shape == (a.shape[0], 4) and vh.shape == (4, a.shape[1])
    assert np.abs(a @ vh.conj().T - u * got).max() < 1e-6 * s[0]
    assert np.abs(u.conj().T @ u - np.eye(4)).max() < 1e-6
    assert np.abs(pl.svds(A, 4, which=which, return_singular_vectors=False) - got).max() < 1e-9
    assert pl.svds(A, 4, return_singular_vectors="u")[2] is None
    assert pl.svds(A, 4, return_singular_vectors="vh")[0] is None


def test_svds_by_scipy():
    A = pl.Dense(rng0.standard_normal((30, 20)))
    u, s, vh = found = pl.svds(A, 3, solver="propack", rng=np.random.default_rng(0))
    assert np.abs(np.sort(s)[::-1] - np.linalg.svdvals(A.toarray())[:3]).max() < 1e-8
    assert found.record["method"] == "propack (SciPy)"


# -- SciPy's own --


def test_eigs():
    g = np.random.default_rng(0)
    A = pl.Toeplitz(0.5 ** np.arange(60.0), 0.2 ** np.arange(60.0)) + pl.Diag(np.arange(60.0))
    a = A.toarray()
    w, v = pl.eigs(A, 4, which="LR")
    assert np.abs(np.sort(w.real)[::-1] - np.sort(np.linalg.eigvals(a).real)[::-1][:4]).max() < 1e-8
    assert np.abs(a @ v - v * w).max() < 1e-8
    for B, sigma in ((A, 20.3), (pl.Dense(a + 1j * g.standard_normal(a.shape)), 20.3 + 1j)):
        b = B.toarray()
        w, v = pl.eigs(B, 3, sigma=sigma)
        full = np.linalg.eigvals(b)
        near = full[np.argsort(np.abs(full - sigma))[:3]]
        assert np.abs(np.sort_complex(w) - np.sort_complex(near)).max() < 1e-8


def test_lobpcg_with_our_preconditioner():
    n = 300
    A = pl.Tridiagonal(np.full(n - 1, -1.0), np.linspace(2, 9, n), np.full(n - 1, -1.0))
    X = np.random.default_rng(0).standard_normal((n, 3))
    w, v = pl.lobpcg(A, X, M=pl.inv(A), largest=False, tol=1e-9, maxiter=60)
    assert np.abs(np.sort(w) - np.linalg.eigvalsh(A.toarray())[:3]).max() < 1e-8


# -- bases --


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_lanczos(dtype):
    A = pl.Dense(sym(40, dtype))
    v = rng0.standard_normal(40).astype(dtype)
    V, alpha, beta = pl.lanczos(A, v, 12)
    tol = 1e-4 if dtype == "float32" else 1e-11
    assert V.dtype == dtype and alpha.shape == beta.shape == (12,) and V.shape == (40, 12)
    assert np.abs(V.conj().T @ V - np.eye(12)).max() < tol
    T = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
    off = A @ V - V @ T
    assert np.abs(off[:, :-1]).max() < 20 * tol
    assert abs(np.linalg.norm(off[:, -1]) - beta[-1]) < 20 * tol
    V, alpha, beta = pl.lanczos(pl.Diag(np.repeat([1.0, 2.0], 20)), np.ones(40), 9)
    assert alpha.shape == (2,) and beta[-1] == 0


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_arnoldi(dtype):
    a = rng0.standard_normal((30, 30)).astype(dtype)
    V, H = pl.arnoldi(a, np.ones(30), 8)
    assert V.shape == (30, 9) and H.shape == (9, 8) and V.dtype == dtype
    assert np.abs(a @ V[:, :8] - V @ H).max() < 1e-11
    assert np.abs(V.conj().T @ V - np.eye(9)).max() < 1e-11 and not np.tril(H, -2).any()
    V, H = pl.arnoldi(a, np.ones(30), 30)
    assert V.shape == H.shape == (30, 30) and np.abs(a @ V - V @ H).max() < 1e-10
    V, H = pl.arnoldi(np.eye(5), np.ones(5), 3)
    assert V.shape == (5, 1) and H.shape == (1, 1) and abs(H[0, 0] - 1) < 1e-14


# -- exp(A) B --


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("name", ["KronSum", "Laplacian", "Diag", "Dense", "sparse"])
def test_expm_multiply(name, columns):
    A = {
        "KronSum": pl.KronSum(sym(6) / 3, sym(5) / 3),
        "Laplacian": 0.3 * pl.Laplacian((5, 6), "neumann", "float64"),
        "Diag": pl.Diag(np.linspace(-1, 1, 30)),
        "Dense": pl.Dense(rng0.standard_normal((30, 30)) / 5),
        "sparse": pl.Sparse(graph(30)) * -0.1,
    }[name]
    B = rng0.standard_normal((30, *columns))
    e = scipy.linalg.expm(A.toarray())
    assert np.abs(pl.expm_multiply(A, B) - e @ B).max() < 1e-10 * max(1, np.abs(e).max())
    got = pl.expm_multiply(A, B, start=0.0, stop=1.0, num=3)
    assert got.shape == (3, *B.shape) and np.abs(got[2] - e @ B).max() < 1e-9
    assert np.abs(got[0] - B).max() < 1e-12
    if name in ("KronSum", "Laplacian", "Diag"):
        assert run(eigsh._small_parts, A)


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (15, 15)])
def test_svds_of_callables(shape):
    a = np.random.default_rng(0).standard_normal(shape)
    op = pl.MatVec(shape, lambda x: a @ x, rmatvec=lambda x: a.T @ x, dtype=float)

    class Mine(pl.LinearOperator):
        def _matvec(self, x):
            return a @ x

        def _rmatvec(self, x):
            return a.T @ x

    want = np.linalg.svd(a, compute_uv=False)[:3]
    for A, dense in ((op, a), (op.H, a.T), (Mine(np.dtype(float), shape), a), (pl.lazy(a), a)):
        u, s, vh = pl.svds(A, k=3)
        np.testing.assert_allclose(np.sort(s)[::-1], want, rtol=1e-10)
        np.testing.assert_allclose((u.conj() * (dense @ vh.conj().T)).sum(0), s, rtol=1e-10)
