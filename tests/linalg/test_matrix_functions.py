"""expm, logm, sqrtm, fractional powers, funm of every kind, against SciPy and mpmath."""

import hermitian
import mpmath
import numpy as np
import pytest
import ref
import scipy.linalg
from samples import values
from test_norms_svdvals import KINDS, instance

import pylinop as pl

CLOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def third(A):
    return pl.fractional_matrix_power(A, 1 / 3)


def cosine(A):
    return pl.funm(A, np.cos)


# what is computed, and the same of eigenvalues
FUNCTIONS = {
    "expm": (pl.expm, np.exp),
    "sqrtm": (pl.sqrtm, np.emath.sqrt),
    "power": (third, lambda w: np.emath.power(w, 1 / 3)),
    "logm": (pl.logm, np.emath.log),
    "funm": (cosine, np.cos),
}


def by_eigh(a, f, eps):
    w, q = np.linalg.eigh(a)
    w = np.where((w < 0) & (w > -eps), 0, w)  # negative by rounding alone
    return (q * f(w)[..., None, :]) @ ref.adj(q)


@pytest.mark.parametrize("name", hermitian.KINDS)
def test_of_hermitian(name, rng):
    for dtype in ref.FLOATS:
        whole = hermitian.KINDS[name](rng, dtype)
        whole = whole * (2.0 / max(2.0, np.linalg.norm(whole.toarray(), axis=(-2, -1)).max()))
        for A in (whole, whole.T, whole.conj(), whole.H, -2.0 * whole):
            a = A.toarray().astype("c16" if A.dtype.kind == "c" else "f8")
            w = np.linalg.eigvalsh(a)
            for label, (ours, scalar) in FUNCTIONS.items():
                singular = (abs(w) < 1e-4 * abs(w).max()).any()
                if label == "logm" and (singular or not a.any()):
                    continue
                eps = 10 * np.finfo(A.dtype).eps * abs(w).max(axis=-1, keepdims=True)
                X, want = ours(A), by_eigh(a, scalar, eps)
                assert isinstance(X, pl.LinearOperator) and X.shape == A.shape
                assert np.iscomplexobj(want) or X.dtype == A.dtype
                allowed = 80 * CLOSE[str(A.dtype)] * max(1, np.abs(want).max())
                if singular and label in ("sqrtm", "power"):  # eps is the root of it there
                    allowed = max(allowed, 10 * np.finfo(A.dtype).eps ** (1 / 3))
                assert np.abs(X.toarray() - want).max() <= allowed, (label, dtype, type(A))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_all_kinds(kind, dtype, rng):
    """Those that need not be Hermitian."""
    for batch in ((), (2,)):
        found = instance(kind, rng, 4, 4, dtype, batch)
        if found is None:
            continue
        A, a = found
        scale = 1 / max(1.0, np.linalg.norm(a, axis=(-2, -1)).max())
        B, b = (scale * A, scale * a) if batch else ((scale * A).T, scale * a.T)
        shifted = B + 2 * pl.Identity(4, B.dtype)
        c = b + 2 * np.eye(4)
        tol = 50 * CLOSE[str(B.dtype)]
        X = pl.expm(B)
        assert X.dtype == B.dtype and X.shape == b.shape
        np.testing.assert_allclose(X.toarray(), scipy.linalg.expm(b), atol=tol)
        R = pl.sqrtm(shifted)
        assert R.dtype == shifted.dtype
        r = R.toarray().astype("c16")
        np.testing.assert_allclose(r @ r, c, atol=tol)
        assert (np.linalg.eigvals(r).real > 0).all()  # the principal one
        L = pl.logm(shifted)
        assert L.dtype == shifted.dtype
        back = scipy.linalg.expm(L.toarray().astype("c16"))
        np.testing.assert_allclose(back, c, atol=tol)
        q = pl.fractional_matrix_power(shifted, -0.25).toarray().astype("c16")
        np.testing.assert_allclose(q @ q @ q @ q @ c, 0 * c + np.eye(4), atol=tol)


def test_of_views(rng):
    """Conjugates of what has eigenvalues on the branch cut."""
    c = values(rng, 5, "complex128")
    a = values(rng, (3, 3), "complex128")
    for A in (pl.Circulant(c), pl.Dense(a), pl.Triangular(a), pl.BlockDiag(a, pl.Circulant(c))):
        for B in (A, A.T, A.conj(), A.H, 2j * A.H, (3 * A).conj() + 1j * pl.Identity(A.shape[0])):
            b = B.toarray()
            np.testing.assert_allclose(pl.expm(B).toarray(), scipy.linalg.expm(b), atol=1e-9)
            np.testing.assert_allclose(pl.logm(B).toarray(), scipy.linalg.logm(b), atol=1e-9)
            np.testing.assert_allclose(pl.sqrtm(B).toarray(), scipy.linalg.sqrtm(b), atol=1e-9)
    minus = pl.Circulant(np.array([-1 + 0j, 0, 0]))  # log is i pi, its conjugate is not
    for A in (minus, minus.conj(), minus.H, minus.T, pl.Diag([-1 + 0j]).conj()):
        d = pl.logm(A).diagonal()
        np.testing.assert_allclose(d, np.full(len(d), 1j * np.pi), atol=1e-12)


# -- structure --


def test_structure_is_kept(rng):
    """Under a limit that no dense form keeps."""
    k, p = (pl.Dense(hermitian.pos(rng, 40, "f8")) for _ in range(2))
    g = rng.standard_normal((40, 40)) / 10 + 3 * np.eye(40)
    thin = rng.standard_normal((4000, 3)) / 50
    roots = {
        "Kron": (pl.Kron(k, p, pl.Identity(3)), pl.Kron),
        "Kron of general": (pl.Kron(k, g), pl.Kron),
        "BlockDiag": (pl.BlockDiag(*[k, g] * 50), pl.BlockDiag),
        "Circulant": (pl.Circulant([3.0, *rng.standard_normal(4999) / 5000]), pl.Circulant),
        "Diag": (pl.Diag(rng.random(5000) + 1), pl.Diag),
        "LowRank": (pl.LowRank(thin), pl.LowRank),
        "Root": (pl.Root(thin), pl.LowRank),
        "noise": (pl.LowRank(thin) + 0.5 * pl.Identity(4000), pl.LowRankUpdate),
        "Householder": (2 * pl.Identity(3000) + pl.Householder(rng.random(3000)), None),
        "Laplacian": (-pl.Laplacian((60, 60), "dirichlet"), pl.Eigen),
        "KronSum": (pl.KronSum(k, p), pl.Eigen),
        "shifted Kron": (pl.Kron(k, p) + 0.1 * pl.Identity(1600), pl.Eigen),
        "Permutation": (pl.Permutation(rng.permutation(3000)), pl.Congruence),
        "Full": (pl.Full((3000, 3000), 2.0), pl.LowRank),
        "multiple": (3 * pl.Kron(k, p), pl.Kron),
        "transpose": (pl.Kron(k, g).T, pl.Kron),
        "beside identities": (pl.Kron(pl.Identity(30), 2 * pl.Identity(3), g), pl.Kron),
    }
    x = rng.standard_normal(4)
    with pl.config(memory_limit=2**22):
        for name, (A, kind) in roots.items():
            x = rng.standard_normal(A.shape[-1])
            R = pl.sqrtm(A)
            assert kind is None or type(R) is kind, (name, type(R))
            np.testing.assert_allclose(R @ (R @ x), A @ x, atol=1e-8 * abs(A @ x).max())
            F = pl.fractional_matrix_power(A, 1.5)
            np.testing.assert_allclose(F @ x, A @ (R @ x), atol=1e-7 * abs(F @ x).max())
            assert R.dtype == np.float64 or name == "Permutation"
            if name not in ("LowRank", "Root", "Full"):
                L = pl.logm(A)
                h = pl.expm(0.5 * L)
                np.testing.assert_allclose(h @ x, R @ x, atol=1e-8 * abs(R @ x).max())
        assert type(pl.logm(roots["Kron of general"][0])) is pl.KronSum
        E = pl.expm(-2.0 * pl.KronSum(k, g))
        assert type(E) is pl.Kron
        x = rng.standard_normal(1600)
        want = np.kron(scipy.linalg.expm(-2 * k.toarray()), scipy.linalg.expm(-2 * g)) @ x
        np.testing.assert_allclose(E @ x, want, atol=1e-12 * abs(want).max())
        K = pl.Kron(pl.Identity(30), -2 * pl.Identity(3), g) + 0.5 * pl.Identity(3600)
        want = scipy.linalg.expm(-2 * g + 0.5 * np.eye(40))
        assert type(pl.expm(K)) is pl.Kron
        np.testing.assert_allclose(pl.expm(K).ops[2].toarray(), want, rtol=1e-9, atol=1e-12)
        assert type(pl.expm(pl.LowRank(thin))) is pl.LowRankUpdate
        T = pl.expm(pl.Permutation(rng.permutation(1000)))
        assert T.dtype == np.float64
    upper = pl.Triangular(rng.random((5, 5)) + np.eye(5), lower=False)
    for f in (pl.expm, pl.logm, pl.sqrtm, third):
        assert type(f(upper)) is type(f(upper.T)) is pl.Triangular
        np.testing.assert_allclose(f(upper.T).toarray(), f(upper).toarray().T, atol=1e-13)
    e = pl.expm(hermitian.her(rng, 5, "f8"))
    assert type(e) is pl.Eigen
    np.testing.assert_allclose(
        pl.inv(e) @ np.ones(5), np.linalg.solve(e.toarray(), np.ones(5)), rtol=1e-9
    )
    np.testing.assert_allclose(pl.logm(e).toarray(), e.Q.toarray() * np.log(e.d) @ e.Q.T.toarray())


def test_expm_of_kronsum(rng):
    parts = [values(rng, (2, k, k), "complex128") / 3 for k in (2, 3, 2)]
    A = pl.KronSum(*parts)
    for B in (A, -1.5j * A, A + 0.5 * pl.Identity(12), A.T, A.H, (2j * A).conj()):
        X = pl.expm(B)
        np.testing.assert_allclose(X.toarray(), scipy.linalg.expm(B.toarray()), atol=1e-11)


def test_branches_of_krons(rng):
    """The root of a product is the product of roots only where arguments add up to less than pi."""
    minus, turn = np.diag([-1.0, -2.0]), np.array([[0.0, -1.0], [1.0, 0.0]])
    slow = 0.5 * turn + np.eye(2)
    for parts in (
        (minus, minus),
        (minus, slow),
        (turn, turn),
        (slow, slow, slow),
        (slow, -slow),
        (hermitian.her(rng, 3, "f8"), slow),
        (1j * np.eye(2), 1j * np.eye(2)),
    ):
        K = pl.Kron(*map(pl.Dense, parts))
        a = K.toarray()
        for A, b in ((K, a), (-2.0 * K, -2 * a), (1j * K, 1j * a)):
            w = np.linalg.eigvals(b)
            if (np.abs(np.abs(np.angle(w)) - np.pi) < 1e-9).any() and not (w.imag == 0).all():
                continue  # on the cut by rounding alone
            np.testing.assert_allclose(pl.sqrtm(A).toarray(), scipy.linalg.sqrtm(b), atol=1e-12)
            np.testing.assert_allclose(pl.logm(A).toarray(), scipy.linalg.logm(b), atol=1e-11)
            np.testing.assert_allclose(
                pl.fractional_matrix_power(A, 0.3).toarray(),
                scipy.linalg.fractional_matrix_power(b, 0.3),
                atol=1e-11,
            )


def test_real_where_the_function_is(rng):
    g = rng.standard_normal((5, 5)) / 3 + 2 * np.eye(5)
    c = rng.standard_normal(6) / 6
    for A in (g, pl.Circulant([2.0, *c]), pl.Permutation([1, 2, 0]), pl.Kron(g, g @ g.T)):
        for f in (pl.expm, pl.logm, pl.sqrtm, third, cosine):
            assert f(A).dtype == np.float64, (f, A)
    for A in (-g, pl.Circulant([-2.0, *c]), pl.Permutation([1, 0]), pl.Diag([-1.0, 2.0])):
        for f in (pl.logm, pl.sqrtm, third):
            X = f(A)
            assert X.dtype == np.complex128
        assert pl.expm(A).dtype == pl.funm(A, np.sin).dtype == np.float64
        r = pl.sqrtm(A).toarray()
        np.testing.assert_allclose(r @ r, pl.aslinearoperator(A).toarray(), atol=1e-12)
    psd = np.ones((3, 3))  # zeros that rounding makes negative stay zeros
    for A in (psd, pl.Kron(psd, psd), pl.Dense(psd) @ pl.Dense(psd), pl.Root(psd)):
        assert pl.sqrtm(A).dtype == np.float64


def test_nearly_hermitian_products(rng):
    """X^T W X of rank below its size: Hermitian but for rounding, and taken so."""
    x, w = rng.standard_normal((3, 6)), rng.random(3)
    a = (x.T * w) @ x
    a[0, 1] = np.nextafter(a[0, 1], 9)
    r = pl.sqrtm(a)
    assert r.dtype == np.float64
    np.testing.assert_allclose((r @ r).toarray(), a, atol=1e-13)
    tiny = np.array([[1e20, 1.0], [0.0, 1.0]])  # small beside the largest, and not rounding
    np.testing.assert_allclose(pl.sqrtm(tiny).toarray()[1, 0], 0)


# -- what must not pass --


def test_singular():
    ones = np.ones((2, 2))
    for A in (
        pl.Zeros((2, 2)),
        pl.Diag([1.0, 0.0]),
        ones,
        pl.Dense([[0.0, 1.0], [0.0, 0.0]]),
        pl.Kron(ones, np.eye(2)),
        pl.Kron(pl.Diag([1.0, 0.0]), pl.Dense([[1.0, 5.0], [2.0, 3.0]])),
        pl.Circulant([1.0, 1.0, 1.0]),
        pl.LowRank(np.ones((4, 1))),
        pl.Full((3, 3), 1.0),
        pl.Laplacian((3, 4), "neumann"),
        pl.BlockDiag(np.eye(2), ones),
        pl.Triangular([[0.0, 1.0], [1.0, 1.0]]),
        pl.Identity(3) - pl.Identity(3),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            pl.logm(A)
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            pl.fractional_matrix_power(A, -0.5)
        if not np.array_equal(pl.aslinearoperator(A).toarray(), [[0, 1], [0, 0]]):
            r = pl.sqrtm(A).toarray()
            np.testing.assert_allclose(r @ r, pl.aslinearoperator(A).toarray(), atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="squared is not A"):
        pl.sqrtm(pl.Dense([[0.0, 1.0], [0.0, 0.0]]))  # it has none
    for jordan in ([[1.0, 1.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1 + 1e-10]]):
        with pytest.raises(np.linalg.LinAlgError, match="apart"):
            pl.funm(pl.Dense(jordan), np.exp)
    with pytest.raises(np.linalg.LinAlgError, match="NaN"):
        pl.logm([[np.nan, 1.0], [0.0, 1.0]])


def test_arguments():
    A = pl.Diag([4.0, 9.0])
    for bad in (1j, [0.5], "x", None):
        with pytest.raises((TypeError, ValueError)):
            pl.fractional_matrix_power(A, bad)
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="finite"):
            pl.fractional_matrix_power(A, bad)
    with pytest.raises(ValueError, match="a non-negative integer, got 0.5"):
        A**0.5
    B = pl.Dense([[1.0, 2.0], [0.0, 3.0]])
    for p in (0, 1, 3, -2, 2.0):
        got = pl.fractional_matrix_power(B, p)
        np.testing.assert_allclose(got.toarray(), np.linalg.matrix_power(B.a, int(p)))
    with pytest.raises(ValueError, match="gave shape"):
        pl.funm(A, np.sum)
    with pytest.raises(ZeroDivisionError):
        pl.funm(A, lambda w: 1 // 0)
    for f in (pl.expm, pl.logm, pl.sqrtm, third, cosine):
        for shape in ((0, 0), (2, 0, 0)):
            assert f(pl.Zeros(shape)).shape == shape
        assert f(pl.Dense(np.ones((0, 2, 2)))).shape == (0, 2, 2)
        assert f([[2, 1], [1, 2]]).dtype == np.float64
        assert f(pl.Dense(np.array([[2, 1], [0, 3]], "f4"))).dtype == np.float32
        assert f(pl.Kron(pl.Identity(2), np.array([[2, 1], [0, 3]], "c8"))).dtype == np.complex64


def test_funm_is_asked(rng):
    """With real values of Hermitian operators; with complex ones where real ones give NaN."""
    seen = []

    def root(w):
        seen.append(w.dtype.kind)
        return np.sqrt(w)

    a = hermitian.her(rng, 4, "f8")
    r = pl.funm(a, root)
    assert seen == ["f", "c"] and r.dtype == np.complex128
    np.testing.assert_allclose((r @ r).toarray(), a, atol=1e-12)
    K = pl.Kron(a, hermitian.her(rng, 3, "c16"))
    X = pl.funm(K, np.abs)
    u, s, _ = np.linalg.svd(K.toarray(), hermitian=True)
    np.testing.assert_allclose(X.toarray(), (u * s) @ u.conj().T, atol=1e-11)
    g = rng.standard_normal((6, 6))
    np.testing.assert_allclose(pl.funm(g, np.sin).toarray(), scipy.linalg.sinm(g), atol=1e-10)
    q = scipy.linalg.block_diag(*[[[0.0, -1.0], [1.0, 0.0]]] * 3)  # normal, values repeated
    np.testing.assert_allclose(pl.funm(q, np.exp).toarray(), scipy.linalg.expm(q), atol=1e-13)
    step = pl.funm(pl.Circulant(rng.standard_normal(5)), lambda w: (w.real > 0) * 1)
    np.testing.assert_allclose((step @ step).toarray(), step.toarray(), atol=1e-13)


@pytest.mark.parametrize("n, right", [(6, True), (48, False)])
def test_funm_of_triangles_is_right_or_refused(n, right):
    """Parlett's recurrence lost all digits of 48 rows with eigenvalues near each other: errors of
    the size of the result, and more, were returned."""
    a = np.tril(np.random.default_rng(16).standard_normal((n, n))) + 3 * n * np.eye(n)
    want = scipy.linalg.cosm(a)
    for A in (pl.Triangular(a), pl.Dense(a)):
        if right:
            np.testing.assert_allclose(pl.funm(A, np.cos).toarray(), want, atol=1e-8)
            continue
        with pytest.raises(np.linalg.LinAlgError, match="too close together, for so many rows"):
            pl.funm(A, np.cos)


def test_funm_of_what_is_zero():
    """Nothing is as large as what is lost of zero: it was refused."""
    a = np.tril(np.random.default_rng(16).standard_normal((20, 20))) + 60 * np.eye(20)
    assert not pl.funm(pl.Dense(a), lambda x: 0 * x).toarray().any()


@pytest.mark.parametrize("make", [
    lambda: pl.Diag([2.0, 0.5], 4, (6, 6)),
    lambda: pl.Triangular(np.triu(np.ones((3, 3)), 1), lower=False),
    lambda: pl.Selection([1, 3, 0, 3, 4, 0], 6),
])  # fmt: skip
def test_what_has_no_square_root(make):
    """Nilpotent blocks: SciPy gives entries of 1e290, their square as far from A as A is large."""
    with pytest.raises(np.linalg.LinAlgError, match="squared is not A"):
        pl.sqrtm(make())


def test_without_scipy(python):
    code = """
import sys
sys.modules["scipy"] = sys.modules["scipy.linalg"] = None
import numpy as np, pylinop as pl
for f in (pl.expm, pl.logm, pl.sqrtm, lambda A: pl.funm(A, np.cos)):
    f(np.array([[2.0, 1.0], [1.0, 2.0]]))
    try:
        f(np.array([[2.0, 1.0], [0.0, 3.0]]))
    except ImportError as error:
        print("SciPy, which is not installed: pip install scipy" in str(error))
print(pl.eigh(pl.Tridiagonal([1.0], [2.0, 2.0], [1.0])).eigenvalues.round(9).tolist())
"""
    assert python(code).split() == ["True"] * 4 + ["[1.0,", "3.0]"]


# -- ill-conditioned, against mpmath --


def exactly(a, f):
    with mpmath.workdps(40):
        x = f(mpmath.matrix(a.tolist()))
        return np.array([[complex(v) for v in x[i, :]] for i in range(x.rows)])


@pytest.mark.parametrize("n", [3, 6])
def test_hilbert(n):
    h = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)
    want = exactly(h, mpmath.sqrtm).real
    got = pl.sqrtm(h)
    back = (got @ got).toarray()
    assert np.linalg.norm(back - h) <= 1e-15 * n * np.linalg.norm(h)
    # sqrt moves by |E| / (2 sqrt(smallest)) for a change E of h
    small = np.linalg.eigvalsh(h)[0]
    assert np.linalg.norm(got.toarray() - want) <= 1e-15 * n / np.sqrt(small)
    K = pl.sqrtm(pl.Kron(h, h))
    assert type(K) is pl.Kron
    both = np.kron(want, want)
    assert np.linalg.norm(K.toarray() - both) <= 4e-15 * n / np.sqrt(small)
    log = exactly(h, mpmath.logm).real
    assert np.linalg.norm(pl.logm(h).toarray() - log) <= 1e-15 * n / small


def test_expm_against_mpmath(rng):
    stiff = np.array([[-49.0, 24.0], [-64.0, 31.0]])  # Moler and Van Loan, 1978
    grown = np.triu(rng.standard_normal((6, 6))) * 10
    for a in (stiff, grown, 30 * hermitian.her(rng, 5, "f8"), rng.standard_normal((6, 6))):
        want = exactly(a, mpmath.expm).real
        for got in (pl.expm(a), pl.expm(2.0 * pl.Dense(a / 2)), pl.expm(pl.Dense(a).T).T):
            off = np.linalg.norm(got.toarray() - want) / np.linalg.norm(want)
            assert off <= 1e-13 * max(1, np.linalg.norm(a))
        if np.array_equal(a, np.triu(a)):
            X = pl.expm(pl.Triangular(a, False)).toarray()
            np.testing.assert_allclose(np.diag(X), np.exp(np.diag(a)), rtol=1e-12)


def test_graded(rng):
    """Values over thirty orders: each is exact where it is known to be."""
    d = 10.0 ** -np.arange(0, 30, 3)
    for A in (pl.Diag(d), pl.BlockDiag(*[[[x]] for x in d]), pl.Kron(pl.Diag(d), pl.Diag(d))):
        w = A.diagonal()
        np.testing.assert_allclose(pl.logm(A).diagonal(), np.log(w), rtol=1e-14)
        np.testing.assert_allclose(
            pl.fractional_matrix_power(A, -0.5).diagonal(), w**-0.5, rtol=1e-14
        )


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [4, 30])
def test_negative_powers_of_singular_matrices(n, dtype):
    """An eigenvalue that is a rounding of 0 is none: an error, where it was a matrix of 1e5."""
    rng = np.random.default_rng(n)
    U, V = rng.standard_normal((2, n, 2)).astype(dtype)
    for A in (pl.LowRank(U, V), pl.Dense(U @ V.conj().T)):
        for p in (-0.3, -1.5):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                pl.fractional_matrix_power(A, p).toarray()
        root = pl.fractional_matrix_power(A, 0.5).toarray()
        np.testing.assert_allclose(root @ root, A.toarray(), atol=1e-6)
    graded = np.array([[1, 0.5], [0, 1e-20]])  # whose eigenvalues are there as they are
    found = pl.fractional_matrix_power(graded.astype(dtype), -0.5).toarray()
    np.testing.assert_allclose(found @ found @ graded, np.eye(2), atol=1e-9)
