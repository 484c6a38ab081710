"""Functions of shifts, thin updates and other kinds whose spectra are known, against NumPy on the
dense form: real and complex, singular and definite, below and above the sizes at which a way
begins."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl

DTYPES = [np.float64, np.complex128, np.float32]


def full(rng, *shape, dtype=np.float64):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def herm(rng, n, dtype=np.float64):
    a = full(rng, n, n, dtype=dtype)
    return a + a.conj().T


def spd(rng, n, dtype=np.float64):
    a = full(rng, n, n, dtype=dtype)
    a = a @ a.conj().T + n * np.eye(n)
    return ((a + a.conj().T) / 2).astype(dtype)


def eps(A):
    return 300 * A.shape[-1] * np.finfo(np.real(np.zeros(1, A.dtype)).dtype).eps


def shift(A, c):
    return A + c * pl.Identity(A.shape[-1])


def thin(rng, n, k, dtype, c, v=True, inner=True):
    return pl.LowRankUpdate(
        c * pl.Identity(n, dtype),
        full(rng, n, k, dtype=dtype),
        full(rng, n, k, dtype=dtype) if v else None,
        full(rng, k, k, dtype=dtype) if inner else None,
    )


# Square operators: any function of singular values.
MADE = {
    "shifted Kron": lambda r, d: shift(pl.Kron(herm(r, 3, d), herm(r, 5, d)), 0.7),
    "shifted KronSum": lambda r, d: shift(
        pl.KronSum(herm(r, 3, d), herm(r, 2, d), herm(r, 3, d)), -1.5
    ),
    "KronSum of three": lambda r, d: pl.KronSum(herm(r, 3, d), herm(r, 4, d), herm(r, 2, d)),
    "KronSum, singular": lambda r, d: pl.KronSum(
        np.zeros((2, 2), d), np.diag([0.0, 1, 2]).astype(d)
    ),
    "Laplacian": lambda r, d: pl.Laplacian(
        (4, 5), "neumann", np.float32 if d == np.float32 else float
    ),
    "shifted Laplacian": lambda r, d: shift(pl.Laplacian((3, 4)), 4.0),
    "shifted Kron, singular": lambda r, d: shift(
        pl.Kron(np.ones((2, 2), d), np.eye(3, dtype=d)), -2.0
    ),
    "thin": lambda r, d: thin(r, 17, 3, d, 1.3),
    "thin, complex c": lambda r, d: thin(r, 16, 2, np.complex128, 1 - 2j),
    "thin, one side": lambda r, d: thin(r, 15, 4, d, -0.8, v=False),
    "thin, Hermitian": lambda r, d: thin(r, 100, 5, d, 2.0, v=False, inner=False),
    "thin, c is 0": lambda r, d: thin(r, 12, 2, d, 0.0),
    "thin, dependent": lambda r, d: pl.LowRankUpdate(
        pl.Identity(9, d), np.ones((9, 2), d), np.ones((9, 2), d)
    ),
    "thin, singular": lambda r, d: pl.LowRankUpdate(
        pl.Identity(9, d), -np.ones((9, 1), d) / 9, np.ones((9, 1), d)
    ),
    "thin of many": lambda r, d: thin(r, 6, 3, d, 1.0),  # 2 k is n: the dense form
    "moved": lambda r, d: pl.Congruence(pl.Permutation(r.permutation(6)), pl.Dense(herm(r, 6, d))),
    "reflected": lambda r, d: pl.Congruence(
        pl.Householder(full(r, 6, dtype=d)), pl.Diag(r.integers(-1, 2, 6).astype(d))
    ),
    "Hadamard": lambda r, d: pl.Hadamard(8, dtype=d),
    "Toeplitz": lambda r, d: pl.Toeplitz(np.r_[3, full(r, 8, dtype=d)].astype(d)),
    "Toeplitz, not Hermitian": lambda r, d: pl.Toeplitz(full(r, 9, dtype=d), full(r, 9, dtype=d)),
    "Hankel": lambda r, d: pl.Hankel(full(r, 9, dtype=d), full(r, 9, dtype=d)),
    "power": lambda r, d: pl.KronSum(herm(r, 2, d), herm(r, 3, d)) ** 3,
}


@pytest.fixture(params=MADE)
def made(request, rng):
    return {d: MADE[request.param](rng, d) for d in DTYPES}


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_norms_condition(made, dtype):
    A = made[dtype]
    a = A.toarray()
    s = np.linalg.svd(a, compute_uv=False)
    tol = eps(A) * s[0]
    np.testing.assert_allclose(pl.svdvals(A), s, rtol=0, atol=tol)
    for order in (2, -2, "nuc", "fro", 1, np.inf):
        want = np.linalg.norm(a, order)
        np.testing.assert_allclose(pl.matrix_norm(A, order), want, rtol=0, atol=tol * len(s))
    for p in (2, -2):
        if s[-1] > 1e-3 * s[0]:
            np.testing.assert_allclose(pl.cond(A, p), np.linalg.cond(a, p), rtol=1e3 * eps(A))
        else:
            assert pl.cond(A) > 900


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(made, dtype):
    A = made[dtype]
    a = A.toarray()
    U, s, Vh = pl.svd(A)
    u, vh = U.toarray(), Vh.toarray()
    tol = eps(A)
    np.testing.assert_allclose((u * s) @ vh, a, rtol=0, atol=tol * s[0])
    np.testing.assert_allclose(u.conj().T @ u, np.eye(len(a)), rtol=0, atol=tol)
    np.testing.assert_allclose(vh @ vh.conj().T, np.eye(len(a)), rtol=0, atol=tol)
    assert (s[1:] <= s[:-1]).all() and (s >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_pinv_lstsq_spaces(made, dtype, rng):
    A = made[dtype]
    a, n = A.toarray(), A.shape[-1]
    s = np.linalg.svd(a, compute_uv=False)
    rank = int((s > 1e-10 * s[0]).sum())
    tol = eps(A) * s[0] / s[rank - 1]
    want = np.linalg.pinv(a, rcond=1e-10)
    size = np.abs(want).max()
    np.testing.assert_allclose(pl.pinv(A, rcond=1e-10).toarray(), want, rtol=0, atol=tol * size)
    b = full(rng, n, dtype=A.dtype)
    x, rest, found, values = pl.lstsq(A, b, rcond=1e-10)
    assert found == rank
    np.testing.assert_allclose(x, want @ b, rtol=0, atol=tol * size * np.abs(b).max() * n)
    np.testing.assert_allclose(values, s, rtol=0, atol=eps(A) * s[0])
    Z, Q = pl.null_space(A, rcond=1e-10), pl.orth(A, rcond=1e-10)
    assert Z.shape == (n, n - rank) and Q.shape == (n, rank)
    z, q = Z.toarray(), Q.toarray()
    np.testing.assert_allclose(a @ z, 0, atol=eps(A) * s[0])
    np.testing.assert_allclose(q @ (q.conj().T @ a), a, rtol=0, atol=eps(A) * s[0])


DEFINITE = {
    "shifted Kron": (lambda r, d: shift(pl.Kron(spd(r, 3, d), spd(r, 5, d)), 0.7), "hermitian"),
    "Laplacian": (lambda r, d: -2.0 * pl.Laplacian((4, 5), "dirichlet", float), "scaled"),
    "shifted Laplacian": (
        lambda r, d: shift(-pl.Laplacian((3, 4), "neumann", float), 1e-3),
        "hermitian",
    ),
    "thin": (lambda r, d: thin(r, 100, 5, d, 2.0, v=False, inner=False), "lowrankupdate"),
    "thin down": (
        lambda r, d: pl.LowRankUpdate(
            pl.Identity(9, d), np.ones((9, 1), d) / 3, None, np.array([[-0.9]], d)
        ),
        "lowrankupdate",
    ),
    "inverse": (lambda r, d: pl.inv(shift(pl.Kron(spd(r, 3, d), spd(r, 4, d)), 0.1)), "inverse"),
    "moved": (
        lambda r, d: pl.Congruence(pl.Permutation(r.permutation(6)), pl.Dense(spd(r, 6, d))),
        "congruence",
    ),
    "Tridiagonal": (
        lambda r, d: pl.Tridiagonal(np.full(8, 0.5, d), np.full(9, 3.0, d), np.full(8, 0.5, d)),
        "hermitian",
    ),
    "Toeplitz": (
        lambda r, d: pl.Toeplitz(
            (0.5 * np.exp(1j * (d == np.complex128))) ** np.arange(17)
            if d == np.complex128
            else 0.5 ** np.arange(17)
        ),
        "hermitian",
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", DEFINITE)
def test_roots(name, dtype, rng):
    make, rule = DEFINITE[name]
    A = make(rng, dtype)
    a = A.toarray()
    b = full(rng, A.shape[-1], 2, dtype=A.dtype)
    w, q = np.linalg.eigh(a)
    assert w[0] > 0
    want = (q / np.sqrt(w)) @ (q.conj().T @ b)
    with pl.explaining() as e:
        got = pl.sqrt_inv_matmul(A, b)
    size = np.abs(b).max() * A.shape[-1] / np.sqrt(w[0])
    np.testing.assert_allclose(got, want, rtol=0, atol=eps(A) * w[-1] / w[0] * size)
    assert f"sqrt_inv_matmul-{rule}" in {r["name"] for r in e.rules if r["outcome"] == "fired"}


@pytest.mark.parametrize("name", DEFINITE)
def test_single_precision_stays(name, rng):
    A = DEFINITE[name][0](rng, np.float32).astype(np.float32)
    b = np.ones(A.shape[-1], np.float32)
    w, q = np.linalg.eigh(A.toarray().astype(float))
    got = pl.sqrt_inv_matmul(A, b)
    assert got.dtype == pl.pinv(A).dtype == pl.lstsq(A, b)[0].dtype == np.float32
    want = (q / np.sqrt(w)) @ (q.T @ b)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * w[-1] / w[0] * np.abs(want).max())


def test_what_has_no_root(rng):
    for A in (
        shift(pl.Kron(herm(rng, 3), herm(rng, 3)), -100.0),
        thin(rng, 20, 2, np.float64, -1.0, v=False, inner=False),
        pl.LowRank(full(rng, 9, 2)),
        pl.Laplacian((3, 3)),
        pl.KronSum(np.zeros((2, 2)), np.diag([0.0, 1.0])),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="definite"):
            pl.sqrt_inv_matmul(A, np.ones(A.shape[-1]))


def test_only_by_structure_within_memory(rng):
    """None of these makes the dense form."""
    n = 60
    A = shift(pl.Kron(spd(rng, n), spd(rng, n)), 0.5)
    B = thin(rng, n * n, 3, np.float64, 2.0, v=False, inner=False)
    b = rng.standard_normal(n * n)
    with pl.config(memory_limit=n**4):
        for M in (A, B):
            x = pl.sqrt_inv_matmul(M, pl.sqrt_inv_matmul(M, b))
            np.testing.assert_allclose(M @ x, b, atol=1e-9)
            np.testing.assert_allclose(M @ (pl.pinv(M) @ b), b, atol=1e-9)
            np.testing.assert_allclose(M @ pl.lstsq(M, b)[0], b, atol=1e-9)
            assert pl.cond(M) * pl.matrix_norm(M, -2) == pytest.approx(pl.matrix_norm(M, 2))
            U, s, Vh = pl.svd(M)
            np.testing.assert_allclose(U @ (s * (Vh @ b)), M @ b, atol=1e-8)
    with pl.config(memory_limit=n**4):
        low = pl.cholesky(B)
        np.testing.assert_allclose(low @ (low.H @ b), B @ b, atol=1e-9)


def test_batches(rng):
    B = pl.LowRankUpdate(2 * pl.Identity(20), full(rng, 3, 20, 2))
    b = B.toarray()
    np.testing.assert_allclose(pl.svdvals(B), np.linalg.svd(b, compute_uv=False), rtol=1e-12)
    np.testing.assert_allclose(pl.pinv(B).toarray(), np.linalg.pinv(b), atol=1e-12)
    x = full(rng, 3, 20, 1)
    w, q = np.linalg.eigh(b)
    want = (q / np.sqrt(w)[..., None, :]) @ np.swapaxes(q, -1, -2) @ x
    np.testing.assert_allclose(pl.sqrt_inv_matmul(B, x), want, atol=1e-12)
    np.testing.assert_allclose(pl.cholesky(B).toarray(), np.linalg.cholesky(b), atol=1e-13)
    d = pl.Diag(rng.uniform(1, 2, (3, 20))) + pl.LowRank(full(rng, 20, 2))
    np.testing.assert_allclose(
        pl.cholesky(d).toarray(), np.linalg.cholesky(d.toarray()), atol=1e-13
    )


# -- Cholesky of thin updates and of Toeplitz matrices --


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, k", [(8, 1), (15, 2), (16, 2), (17, 2), (17, 3), (100, 3)])
def test_cholesky_of_thin_updates(n, k, dtype, rng):
    u = full(rng, n, k, dtype=dtype)
    d = rng.uniform(1, 2, n).astype(np.float32 if dtype == np.float32 else np.float64)
    inner = spd(rng, k, dtype)
    for inner in (
        None,
        spd(rng, k, dtype),
        (-0.5 / (n * k) / np.abs(u).max() ** 2) * np.eye(k, dtype=dtype),
    ):
        A = pl.LowRankUpdate(pl.Diag(d), u, None, inner)
        a = A.toarray()
        L = pl.cholesky(A)
        assert L.dtype == a.dtype
        assert (type(L) is pl.QuasiSeparable) == (8 * k <= n)
        low, tol = L.toarray(), eps(A)
        np.testing.assert_allclose(low, np.linalg.cholesky(a), rtol=0, atol=tol * np.abs(a).max())
        np.testing.assert_allclose(low @ low.conj().T, a, rtol=0, atol=tol * np.abs(a).max())
        up = pl.cholesky(A, upper=True).toarray()
        np.testing.assert_allclose(up, low.conj().T, rtol=0, atol=tol * np.abs(a).max())
        M, D, order = pl.ldl(A)
        np.testing.assert_allclose((M @ D @ M.H).toarray(), a, rtol=0, atol=tol * np.abs(a).max())
        assert not np.triu(M.toarray()[order], 1).any()


def test_thin_updates_that_are_not_definite(rng):
    u = np.ones((20, 1))
    for A in (
        pl.LowRankUpdate(pl.Identity(20), u, None, np.array([[-1.0]])),
        pl.LowRankUpdate(pl.Diag(-np.ones(20)), u),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            pl.cholesky(A)
        L, D, order = pl.ldl(A)  # by the dense form
        a = A.toarray()
        np.testing.assert_allclose((L @ D @ L.H).toarray(), a, atol=1e-12)
    one = pl.LowRankUpdate(pl.Identity(20), u, 2 * u)  # Hermitian only by its entries
    np.testing.assert_allclose(pl.cholesky(one).toarray(), np.linalg.cholesky(one.toarray()))


@pytest.fixture
def small_schur(monkeypatch):
    """The rotations at any size."""
    from pylinop._structured import cholesky_toeplitz

    monkeypatch.setattr(cholesky_toeplitz, "_ROWS", 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_schur(n, dtype, rng, small_schur):
    turn = np.exp(0.3j) if dtype == np.complex128 else 1.0
    c = ((0.9 * turn) ** np.arange(n)).astype(dtype)
    c[0] += np.float32(0.1)
    for A in (
        pl.Toeplitz(c),
        pl.Toeplitz(c) + 0.5 * pl.Identity(n),
        pl.Toeplitz(np.stack([c, 2 * c])),
    ):
        a = A.toarray()
        L = pl.cholesky(A)
        assert type(L) is pl.Triangular and L.dtype == a.dtype
        low, tol = L.toarray(), eps(A)
        np.testing.assert_allclose(low @ np.swapaxes(low, -1, -2).conj(), a, rtol=0, atol=tol)
        np.testing.assert_allclose(low, np.linalg.cholesky(a), rtol=0, atol=30 * tol)
        np.testing.assert_allclose(
            pl.cholesky(A.T).toarray(),
            np.linalg.cholesky(np.swapaxes(a, -1, -2)),
            rtol=0,
            atol=30 * tol,
        )


@pytest.mark.parametrize("n", [40, 300])
def test_schur_of_ill_conditioned_ones(n, small_schur):
    """The backward error does not grow with the condition."""
    for c in (np.exp(-((np.arange(n) / 4.0) ** 2)), 0.999999 ** np.arange(n)):
        c[0] += 1e-9
        a = scipy.linalg.toeplitz(c)
        low = pl.cholesky(pl.Toeplitz(c)).toarray()
        assert np.abs(low @ low.T - a).max() < 4 * n * np.finfo(float).eps


def test_schur_reads_the_triangle_asked_for(small_schur, rng):
    c, r = np.r_[4.0, 1.0, 0.5], np.r_[-7.0, -1.0, 0.3]  # the corner is c's
    A = pl.Toeplitz(c, r)
    a = A.toarray()
    for upper in (False, True):
        np.testing.assert_allclose(
            pl.cholesky(A, upper=upper).toarray(), np.linalg.cholesky(a, upper=upper)
        )


def test_schur_refuses(small_schur):
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(pl.Toeplitz(np.r_[1.0, 2.0, 0.0]))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(pl.Toeplitz(np.r_[0.0, 0.0]))
    with pytest.raises(np.linalg.LinAlgError, match=r"batch element 1\)"):
        pl.cholesky(pl.Toeplitz(np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.9]])))
    s = np.r_[4.0 + 0j, 1j, 0.5]
    with pytest.raises(np.linalg.LinAlgError, match="complex symmetric"):
        pl.cholesky(pl.Toeplitz(s, s))
    with pytest.raises(np.linalg.LinAlgError, match="not real"):
        pl.cholesky(pl.Toeplitz(np.r_[4.0 + 1j, 1j]))
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError):
        pl.cholesky(pl.Toeplitz(0.5 ** np.arange(40)))


def test_schur_begins_where_it_is_quicker():
    for n, rule in ((699, False), (700, True)):
        with pl.explaining() as e:
            pl.cholesky(pl.Toeplitz(0.5 ** np.arange(n)))
        assert (
            "cholesky-toeplitz" in {r["name"] for r in e.rules if r["outcome"] == "fired"}
        ) == rule
