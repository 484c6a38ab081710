"""What factors keep of the structure, without a dense form; what is refused; accuracy on
ill-conditioned families."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import pylinop as pl

N = 64


def spd(rng, n, dtype=float):
    a = rng.standard_normal((n, n))
    a = a + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else a
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


def band(rng, w, n, dtype=float):
    ab = rng.standard_normal((2 * w + 1, n))
    ab = ab + 1j * rng.standard_normal((2 * w + 1, n)) if np.dtype(dtype).kind == "c" else ab
    for k in range(1, w + 1):  # Hermitian
        ab[w + k, : n - k] = ab[w - k, k:].conj()
    ab[w] = ab[w].real + 4 * w + 4
    return pl.Banded((w, w), ab.astype(dtype))


def tridiagonal(rng, n):
    e = rng.standard_normal(n - 1) + 1j * rng.standard_normal(n - 1)
    return pl.Tridiagonal(e, np.full(n, 6.0), e.conj())


def ring(rng, n):
    c = rng.standard_normal(n) / n
    return pl.Circulant(c + np.roll(c[::-1], 1) + 4 * (np.arange(n) == 0))


# name: (operator, Cholesky's type, names of the functions that need no dense form)
DEFINITE = {
    "Diag": (lambda r: pl.Diag(r.uniform(1, 2, N)), "Diag", "root power"),
    "Diag batch": (lambda r: pl.Diag(r.uniform(1, 2, (3, N))), "Diag", "root power"),
    "Identity": (lambda r: pl.Identity(N), "Identity", "root power"),
    "Scaled": (lambda r: 3 * pl.Identity(N), "Scaled", "root power"),
    "Kron": (lambda r: pl.Kron(spd(r, 8), spd(r, 8)), "Kron", "root power"),
    "Kron complex": (lambda r: pl.Kron(spd(r, 8, complex), spd(r, 8)).T, "Kron", "root power"),
    "Kron negative": (lambda r: -pl.Kron(-spd(r, 8), spd(r, 8)), "Kron", "root power"),
    "Kron batch": (
        lambda r: pl.Kron(np.stack([spd(r, 8), spd(r, 8)]), pl.Diag(r.uniform(1, 2, 8))),
        "Kron",
        "root power",
    ),
    "Kron inverse": (lambda r: pl.inv(pl.Kron(spd(r, 8), spd(r, 8))), "Kron", "root power"),
    "Kron of bands": (lambda r: 2 * pl.Kron(band(r, 1, 8), ring(r, 8)), "Kron", "root power"),
    "BlockDiag": (lambda r: pl.BlockDiag(spd(r, 8), *[pl.Diag(r.uniform(1, 2, 8))] * 7),
                  "BlockDiag", "root power"),
    "Banded": (lambda r: band(r, 2, N), "Banded", "root"),
    "Banded complex": (lambda r: band(r, 3, N, complex), "Banded", "root"),
    "Banded T": (lambda r: band(r, 2, N, complex).T, "Banded", "root"),
    "Banded wide": (lambda r: band(r, 25, N, complex), "Banded", ""),
    "Tridiagonal": (lambda r: tridiagonal(r, N), "Banded", "root"),
    "Tridiagonal batch": (
        lambda r: pl.Tridiagonal(*(r.uniform(1, 2, (2, k)) + 2 * (k == N) for k in (N - 1, N)),
                                 np.zeros((2, N - 1))),
        "Banded",
        "",
    ),
    "Circulant": (lambda r: ring(r, N), None, "root power"),
    "Root": (lambda r: pl.Root(pl.Kron(spd(r, 8), pl.Diag(-r.uniform(1, 2, 8)))), "Kron", "root"),
    "Root triangle": (lambda r: pl.Root(pl.Diag(r.standard_normal(N)) * 2), "Diag", "root"),
    "KronSum": (lambda r: pl.KronSum(spd(r, 8), spd(r, 8)), None, "root power"),
    "Circulant product": (lambda r: ring(r, N) @ ring(r, N), None, "root power"),
    "Circulant 2": (
        lambda r: pl.Circulant(np.fft.ifft2(r.uniform(1, 2, (8, 8))), 2), None, "root power"
    ),
    "Update batch": (
        lambda r: pl.Diag(r.uniform(1, 2, (3, N))) + pl.LowRank(r.standard_normal((N, 2))),
        "QuasiSeparable",
        "root",
    ),
    "Eigen": (lambda r: pl.Eigen(pl.DFT(N, "ortho"), r.uniform(1, 2, N)), None, "root power"),
    "Update": (lambda r: pl.Diag(r.uniform(1, 2, N)) + pl.LowRank(r.standard_normal((N, 2))),
               "QuasiSeparable", "root"),
    "Congruence": (lambda r: pl.Congruence(pl.Permutation(r.permutation(N)), band(r, 1, N)),
                   None, "root"),
    "Toeplitz": (lambda r: pl.Toeplitz(0.5 ** np.arange(2 * N)), None, "root"),
    "Toeplitz complex": (lambda r: pl.Toeplitz((0.5j) ** np.arange(N)), None, "root"),
    "Sum": (lambda r: pl.Kron(spd(r, 8), spd(r, 8)) + 3 * pl.Identity(N), None, "root"),
    "Precision": (lambda r: pl.inv(band(r, 1, N)), None, "root"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINITE)
def test_roots_without_a_dense_form(name, rng):
    from pylinop._structured import square_roots

    make, kind, what = DEFINITE[name]
    A = make(rng)
    a = A.toarray()
    n = A.shape[-1]
    x = rng.standard_normal((n, 2))
    with pl.config(memory_limit=a.itemsize * n * n - (a.ndim == 2)):
        if kind:
            L, U = pl.cholesky(A), pl.cholesky(A, upper=True)
            assert type(L).__name__ == kind
            assert type(U).__name__ == ("Adjoint" if kind == "QuasiSeparable" else kind)
        else:
            with pytest.raises(pl.MaterializationError):
                pl.cholesky(A)
        if "root" in what:
            R = square_roots.root(A)
            draw = pl.sample(A, 3, 0)
        if "power" in what:
            y = pl.sqrt_inv_matmul(A, x)
    if kind:
        low = np.tril(a)
        full = low + np.swapaxes(np.tril(a, -1), -1, -2).conj()
        np.testing.assert_allclose(L.toarray(), np.linalg.cholesky(full), rtol=0, atol=1e-12 * N)
        want = np.linalg.cholesky(a, upper=True)
        np.testing.assert_allclose(U.toarray(), want, rtol=0, atol=1e-12 * N)
    if "root" in what:
        r = R.toarray()
        np.testing.assert_allclose(r @ np.swapaxes(r, -1, -2).conj(), a, atol=1e-11 * N)
        assert draw.shape == (3, *A.shape[:-1])
        assert draw.dtype == A.dtype
        first = pl.sample(A, 2, 0)[0]  # by other loops: two columns instead of three
        np.testing.assert_allclose(first, draw[0], rtol=0, atol=1e-14 * N)
    if "power" in what:
        w, q = np.linalg.eigh(a)
        want = (q / np.sqrt(w)[..., None, :]) @ (np.swapaxes(q, -1, -2).conj() @ x)
        np.testing.assert_allclose(y, want, atol=1e-12)


def test_triangle_read_is_the_one_asked_for(rng):
    """As in NumPy, what lies in the other triangle does not count, in the kinds either."""
    for A in (
        pl.Tridiagonal(np.ones(3), np.full(4, 3.0), np.full(3, -1.5)),
        pl.Banded((1, 2), rng.standard_normal((4, 4)) + 6 * (np.arange(4) == 2)[:, None]),
        pl.BlockDiag(spd(rng, 2) + np.triu(np.ones((2, 2)), 1), spd(rng, 2)),
        pl.Dense(spd(rng, 4) + np.triu(np.ones((4, 4)), 1)),
    ):
        for B in (A, A.T, 2 * A, A.conj(), (2 * A).T):
            b = B.toarray()
            for upper in (False, True):
                got = pl.cholesky(B, upper=upper).toarray()
                np.testing.assert_allclose(got, np.linalg.cholesky(b, upper=upper), atol=1e-14)


def test_lower_factors_are_solved_with(rng):
    A = pl.Kron(spd(rng, 5), band(rng, 1, 4))
    L = pl.cholesky(A)
    b = rng.standard_normal(20)
    x = pl.solve(L.H, pl.solve(L, b))
    np.testing.assert_allclose(A @ x, b, atol=1e-12)


# name: (operator, types of Q and R, of P, L and U)
OTHERS = {
    "Kron": (lambda r: pl.Kron(r.standard_normal((9, 8)), r.standard_normal((8, 8))),
             "Kron Kron", "Kron Kron Kron"),
    "Kron wide": (lambda r: pl.Kron(r.standard_normal((4, 5)), pl.Zeros((2, 3)), np.eye(8)),
                  "Kron Kron", "Kron Kron Kron"),
    "BlockDiag": (lambda r: pl.BlockDiag(*r.standard_normal((8, 8, 8)), pl.Identity(2)),
                  "BlockDiag BlockDiag", "BlockDiag BlockDiag BlockDiag"),
    "Diag": (lambda r: pl.Diag(r.standard_normal(N) + 1j), "Diag Diag", "Identity Identity Diag"),
    "Permutation": (lambda r: pl.Permutation(r.permutation(N)), "Permutation Identity",
                    "Permutation Identity Identity"),
    "Permutation T": (lambda r: pl.Permutation(r.permutation(N), float).T, "Permutation Identity",
                      "Permutation Identity Identity"),
    "DFT": (lambda r: pl.DFT(N, "ortho"), "DFT Identity", None),
    "DCT": (lambda r: pl.DCT(N, norm="ortho").T, "DCT Identity", None),
    "Householder": (lambda r: pl.Householder(r.standard_normal(N)), "Householder Identity", None),
    "Hadamard": (lambda r: pl.Hadamard(N), "Scaled Diag", None),
    "Triangular": (lambda r: pl.Triangular(r.standard_normal((N, N)), False),
                   "Identity Triangular", "Identity Identity Triangular"),
    "Triangular T": (lambda r: -pl.Triangular(r.standard_normal((N, N))).T,
                     "Identity Scaled", "Identity Identity Scaled"),
    "Zeros": (lambda r: pl.Zeros((N, N + 1), float), "Identity Zeros", "Identity Identity Zeros"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_qr_and_lu_without_a_dense_form(name, rng):
    make, kinds, lu_kinds = OTHERS[name]
    A = make(rng)
    with pl.config(memory_limit=8 * 32 * 32):
        Q, R = np.linalg.qr(A)
        factors = pl.lu(A) if lu_kinds else None
        assert pl.qr(A, "r").shape == R.shape
    a, q, r = A.toarray(), Q.toarray(), R.toarray()
    assert f"{type(Q).__name__} {type(R).__name__}" == kinds
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=1e-12)
    if factors:
        assert " ".join(type(f).__name__ for f in factors) == lu_kinds
        p, low, up = (f.toarray() for f in factors)
        np.testing.assert_allclose(p @ low @ up, a, atol=1e-12)


def test_ldl_without_a_dense_form(rng):
    A = -pl.Kron(spd(rng, 5, complex), pl.Diag(rng.standard_normal(6)))
    B = pl.BlockDiag(A, np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pl.config(memory_limit=16 * 30 * 30 - 1):
        L, D, order = pl.ldl(A)
        M, E, other = pl.ldl(B)
    assert [type(f) for f in (L, M, E)] == [pl.Kron, pl.BlockDiag, pl.BlockDiag]
    np.testing.assert_allclose((L @ D @ L.H).toarray(), A.toarray(), atol=1e-12)
    np.testing.assert_allclose((M @ E @ M.H).toarray(), B.toarray(), atol=1e-12)
    assert not np.triu(L.toarray()[order], 1).any()
    assert not np.triu(M.toarray()[other], 1).any()
    assert type(pl.ldl(np.array([[0.0, 1.0], [1.0, 0.0]]))[1]) is pl.Tridiagonal
    half = pl.Kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2))  # of 4 x 4 blocks by its factors
    L, D, _ = pl.ldl(half)
    np.testing.assert_allclose((L @ D @ L.H).toarray(), half.toarray())
    a = spd(rng, 2) + 1j * np.ones((2, 2))
    L, D, _ = pl.ldl(pl.Kron(a, a), hermitian=False)
    np.testing.assert_allclose((L @ D @ L.T).toarray(), np.kron(a, a), atol=1e-12)


def test_least_squares_without_a_dense_form(rng):
    n = 300
    a, b = rng.standard_normal((n, 20)), rng.standard_normal((30, 10))
    A = pl.Kron(a, b)
    y = rng.standard_normal(n * 30)
    with pl.config(memory_limit=10_000_000 // 2):
        x, rest, rank, s = pl.lstsq(A, y)
        thin = pl.lstsq(pl.LowRank(a, rng.standard_normal((5 * n, 20))), y[:n])
        ring = pl.lstsq(pl.Circulant(np.ones(10_000)), np.ones(10_000))
        both = pl.Kron(a, b.T)  # one tall, one wide: of rank 200 at most, with zeros beside
        z, _, both_rank, both_s = pl.lstsq(both, y[: 10 * n])
    assert rank == 200
    np.testing.assert_allclose(A.T @ (A @ x - y), 0, atol=1e-9)
    np.testing.assert_allclose(rest, [np.sum((A @ x - y) ** 2)])
    np.testing.assert_allclose(s[[0, -1]], pl.svdvals(A)[[0, -1]])
    assert both_rank == 200
    assert both_s.shape == (600,)
    assert not both_s[200:].any()
    np.testing.assert_allclose(both.T @ (both @ z - y[: 10 * n]), 0, atol=1e-9)
    assert thin[2] == 20
    assert ring[2] == 1
    np.testing.assert_allclose(ring[0], 1e-4)


def test_least_squares_counts_zeros_on_the_whole():
    """A Kron's own factors would each keep their small value; their product is below the cut."""
    d = np.diag([1.0, 1e-9])
    A = pl.Kron(d, d)
    b = np.ones(4)
    for rcond in (None, 1e-12, 1e-19):
        want = np.linalg.lstsq(A.toarray(), b, rcond)
        x, _, rank, _ = np.linalg.lstsq(A, b, rcond)
        assert rank == want[2]
        np.testing.assert_allclose(x, want[0], rtol=1e-12)


def test_spaces_without_a_dense_form(rng):
    v = rng.standard_normal((40, 1))
    A = pl.Kron(pl.LowRank(v), pl.Identity(40))
    with pl.config(memory_limit=8 * 1600 * 1600 - 1):
        Z, Q = pl.null_space(A), pl.orth(A)
    assert Z.shape == (1600, 39 * 40)
    assert Q.shape == (1600, 40)
    np.testing.assert_allclose(A @ (Z @ np.ones(Z.shape[1])), 0, atol=1e-10)
    np.testing.assert_allclose(Q.T @ (Q @ np.ones(40)), 1, atol=1e-12)
    B = pl.BlockDiag(pl.Kron(rng.standard_normal((30, 40)), pl.Identity(30)), np.ones((9, 1)))
    with pl.config(memory_limit=8 * 1201 * 1201 - 1):
        Z = pl.null_space(B)
    assert Z.shape == (1201, 300)
    np.testing.assert_allclose(B @ (Z @ np.ones(300)), 0, atol=1e-10)
    assert pl.null_space(pl.Identity(10**6)).shape == (10**6, 0)


# -- refused --


def test_not_definite_is_named(rng):
    a = np.stack([np.eye(3)] * 4)
    a[2, 1, 1] = -1
    d, zeros = np.diagonal(a, axis1=1, axis2=2), np.zeros((4, 2))
    for A in (pl.Dense(a), pl.Diag(d), pl.Kron(a, np.eye(2)), pl.BlockDiag(np.eye(2), a),
              pl.Banded((0, 0), d[:, None]), pl.Tridiagonal(zeros, d, zeros)):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match=r"batch element 2\).*\n *in: ") as error:
            pl.cholesky(A)
        assert "test_factor_structure.py" in str(error.value)
        with pytest.raises(np.linalg.LinAlgError, match="semidefinite|definite"):
            pl.sample(A)
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            pl.sqrt_inv_matmul(A, np.ones(A.shape[-1]))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.cholesky(np.ones((2, 3)))


def test_complex_symmetric_is_not_hermitian(rng):
    s = spd(rng, 3) + 1j * np.ones((3, 3))
    t = spd(rng, 3) + 1j * (np.ones((3, 3)) - np.eye(3))
    for a in (s, t):
        for A in (pl.Dense(a), pl.Kron(a, np.eye(2)), pl.BlockDiag(a, np.eye(2)), 2 * pl.Dense(a)):
            for f in (
                pl.cholesky,
                pl.sample,
                lambda A: pl.sqrt_inv_matmul(A, np.ones(6)[: len(A)]),
            ):
                with pytest.raises(np.linalg.LinAlgError, match="Hermitian"):
                    f(A)
    with pytest.raises(np.linalg.LinAlgError, match="not real"):
        pl.cholesky(pl.Diag([1.0, 1j]))
    for A in (pl.Dense(s), pl.Diag([1.0, 1j]), pl.BlockDiag(s, np.eye(2))):
        with pytest.raises(np.linalg.LinAlgError, match="not real"):
            pl.ldl(A)
    L, D, _ = pl.ldl(s, hermitian=False)
    np.testing.assert_allclose((L @ D @ L.T).toarray(), s, atol=1e-12)


def test_kron_of_factors_that_are_not_hermitian(rng):
    a, b = spd(rng, 3, complex), spd(rng, 2, complex)
    A = pl.Kron(1j * a, -1j * b)
    np.testing.assert_allclose(
        pl.cholesky(A).toarray(), np.linalg.cholesky(np.kron(a, b)), atol=1e-12
    )


def test_not_hermitian_has_no_root(rng):
    a = spd(rng, 4) + np.triu(np.ones((4, 4)), 1)
    for A in (pl.Dense(a), pl.Toeplitz(np.ones(4), np.arange(1.0, 5))):
        with pytest.raises(np.linalg.LinAlgError, match="not Hermitian"):
            pl.sample(A)
        with pytest.raises(np.linalg.LinAlgError, match="not Hermitian"):
            pl.sqrt_inv_matmul(A, np.ones(4))


def test_bad_arguments():
    with pytest.raises(ValueError, match="Unrecognized mode"):
        pl.qr(np.eye(2), "full")
    with pytest.raises(np.linalg.LinAlgError, match="Incompatible dimensions"):
        pl.lstsq(pl.Identity(2), np.ones(3))
    with pytest.raises(ValueError, match="negative"):
        pl.sample(pl.Identity(2), -1)
    with pytest.raises(ValueError, match="lower factor"):
        pl.linalg.cholesky_update(pl.Triangular(np.ones((2, 2)), False), np.ones(2))
    with pytest.raises(ValueError, match=r"cholesky_update.*\(2,\)"):
        pl.linalg.cholesky_update(pl.Identity(2), np.ones(3))
    with pytest.raises(ValueError, match="cholesky_append"):
        pl.linalg.cholesky_append(pl.Identity(2), np.ones(2), np.ones((2, 2)))


# -- accuracy --


def hilbert(n):
    return 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)


def exact_logdet(a):
    with mpmath.workdps(120):
        return float(mpmath.log(mpmath.det(mpmath.matrix(a.tolist()))))


GRADES = 10.0 ** -np.arange(8)
FAMILIES = {
    "Hilbert": hilbert(9),
    "graded": GRADES[:, None] * (np.eye(8) + scipy.linalg.toeplitz(0.5 ** np.arange(8))) * GRADES,
    "nearly singular": scipy.linalg.toeplitz([2.0, -1.0] + [0.0] * 10) * 1e-3,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_log_determinants_of_factors(name):
    """Twice the logarithm of the factor's diagonal, and inv_quad_logdet's, against 120 digits; a
    Kron's is the sum, where the determinant itself would underflow."""
    a = FAMILIES[name]
    n, want = len(a), exact_logdet(a)
    scale = np.sqrt(np.diagonal(a))
    error = 4 * n * 2.2e-16 * np.linalg.cond(a / scale / scale[:, None])
    L = pl.cholesky(a)
    assert abs(2 * np.log(L.diagonal()).sum() - want) <= error
    K = pl.Kron(a, pl.Kron(a, a))
    whole = 3 * n * n * want
    got = 2 * np.log(pl.cholesky(K).diagonal()).sum()
    assert abs(got - whole) <= 3 * n * n * error + 1e-12 * abs(whole)
    q, log = pl.inv_quad_logdet(pl.Dense(a, "pos"), np.ones(n))
    assert abs(log - want) <= error
    with mpmath.workdps(120):
        m = mpmath.matrix(a.tolist())
        exact = float(sum(mpmath.lu_solve(m, mpmath.matrix([1] * n))))
    assert abs(q - exact) <= error * abs(exact)


def test_roots_of_grams_are_not_squared():
    """L L^H has the square of L's condition number: its factor is had from L."""
    a = hilbert(10)[:, ::-1].copy()
    R = pl.cholesky(pl.Root(a))
    with mpmath.workdps(60):
        m = mpmath.matrix(a.tolist())
        want = mpmath.cholesky(m * m.T)
        want = np.array([[float(want[i, j]) for j in range(10)] for i in range(10)])
    got = R.toarray()
    assert np.linalg.cond(a) > 1e12
    np.testing.assert_allclose(np.diagonal(got), np.diagonal(want), rtol=1e-3)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(a @ a.T)


def test_singular_has_no_inverse_root():
    for A in (pl.Dense(hilbert(14)), pl.Dense(np.ones((3, 3))), pl.Diag([1.0, 0.0]),
              pl.Root(np.ones((3, 1))), pl.Circulant(np.ones(4))):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match="definite|rank"):
            pl.sqrt_inv_matmul(A, np.ones(A.shape[-1]))
    for A in (pl.LowRank(np.eye(4, 2)), pl.Root(np.eye(4, 2)), pl.Dense(np.ones((4, 4)))):
        with pytest.raises(np.linalg.LinAlgError):  # nor has its inverse, as there is none
            pl.sqrt_inv_matmul(pl.inv(A), np.ones(4))
    tiny = pl.sqrt_inv_matmul(pl.Diag([1.0, 1e-300]), np.ones(2))  # exact, not rounding
    np.testing.assert_allclose(tiny, [1, 1e150])


# -- NumPy's names, freshness --


def test_every_answer_says_what_it_does():
    """The printed table has an algorithm and a cost for each, and every function of linalg that is
    a question."""
    from pylinop._structured.dispatch import QUESTIONS

    for name, question in QUESTIONS.items():
        for head, said in {**question.texts, "dense": question.text}.items():
            assert all(said), f"{name} of {head} has no how= or no cost="
        assert set(question.texts) == set(question.rows)
    names = {n.strip() for key in QUESTIONS for n in key.split(",")}
    assert names >= set("cholesky qr lu ldl lstsq null_space orth sample svdvals pinv".split())
    assert names <= set(pl.linalg.__all__)


def test_memory_is_checked_in_c():
    core = pl._core
    a, p = np.zeros((3, 2)), np.zeros(2, np.int64)
    for call in (
        lambda: core._getrf("d", 3, 3, a, p),
        lambda: core._getrf("d", 2, 3, a, p[:1]),
        lambda: core._getrf("d", -2, -3, a, p),
        lambda: core._getrf("d", 2**40, 2**40, a, p),
        lambda: core._getrf("i", 2, 3, a, p),
        lambda: core._band_cholesky("d", 2, 4, a),
        lambda: core._band_cholesky("d", 0, 0, a[:0]),
        lambda: core._cholup("d", 2, a, a[0], False),
        lambda: core._cholup("d", 2, a[:2].copy(), a[0][:1], False),
    ):
        with pytest.raises(ValueError, match="sizes named"):
            call()
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    with pytest.raises((TypeError, ValueError, BufferError)):
        core._cholup("d", 2, frozen, np.zeros(2), False)


def test_numpy_functions_take_operators(rng):
    A = pl.Kron(spd(rng, 3), spd(rng, 2))
    assert type(np.linalg.cholesky(A)) is pl.Kron
    assert type(np.linalg.qr(A)) is type(np.linalg.qr(np.eye(2)))
    assert type(np.linalg.qr(A).Q) is pl.Kron
    h, tau = np.linalg.qr(A, "raw")
    assert h.shape == (6, 6)
    assert len(np.linalg.lstsq(A, np.ones(6))) == 4
    x = np.linalg.lstsq(np.ones((6, 2)), pl.Dense(np.ones((6, 1))))[0]
    np.testing.assert_allclose(x, 0.5)


def test_writes_are_seen(rng):
    a = spd(rng, 4)
    A, K = pl.Dense(a, "pos"), pl.Kron(pl.Dense(a), pl.Dense(a))
    b = np.ones(4)
    first = pl.inv_quad_logdet(A, b)
    pl.cholesky(K), pl.sample(K, 1, 0), pl.lstsq(K, np.ones(16))
    a *= 4.0
    second = pl.inv_quad_logdet(A, b)
    np.testing.assert_allclose(second.inv_quad, first.inv_quad / 4)
    np.testing.assert_allclose(second.logdet, first.logdet + 4 * np.log(4))
    want = np.linalg.cholesky(np.kron(a, a))
    np.testing.assert_allclose(pl.cholesky(K).toarray(), want, atol=1e-12)
    assert pl.inv_quad_logdet(pl.Dense(a.copy(), "pos"), b) == second  # cold as warm


def test_integers_are_floats(rng):
    a = np.array([[4, 2], [2, 3]], np.int8)
    K = pl.Kron(a, a)
    np.testing.assert_allclose(pl.cholesky(K).toarray(), np.linalg.cholesky(K.toarray() * 1.0))
    for A in (pl.Kron(a, a, a, a), pl.Diag(a[0]), pl.Identity(3, int), pl.Zeros((2, 2), np.int8),
              pl.Permutation([1, 0], int), pl.Triangular(a, False), 3 * pl.Dense(a)):  # fmt: skip
        for f in (*pl.qr(A), *pl.lu(A)[1:]):
            assert f.dtype.kind == "f" or f._head in ("permutation", "identity"), f
        Q, R = pl.qr(A)
        want = (A @ pl.Identity(A.shape[-1], float)).toarray()  # small ones would wrap
        np.testing.assert_allclose((Q @ R).toarray(), want, atol=1e-9)


def test_ldl_without_scipy(python):
    code = """
import sys
sys.modules["scipy"] = sys.modules["scipy.linalg"] = None
import numpy as np, pylinop as pl
print(pl.ldl(pl.Diag([1.0, -1.0]))[1].diagonal())
print(pl.cholesky(np.eye(2)).shape, pl.lu(np.eye(2))[0].shape, pl.sample(np.eye(2)).shape)
try:
    pl.ldl(np.eye(2))
except ImportError as error:
    print(error)
"""
    assert "pip install scipy" in python(code)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("n, k", [(16, 4), (16, 5), (17, 1), (100, 7)])
def test_bases_of_thin_roots_are_reflections(n, k, dtype, rng):
    """In n k numbers, from L itself, so that small values keep their digits."""
    left = rng.standard_normal((n, k)) * 10.0 ** -np.arange(k)
    left = (left * (1 + 0.5j) if dtype == "c16" else left).astype(dtype)
    A, a = pl.Root(left), left @ left.conj().T
    tolerance = {"rtol": 0, "atol": 50 * n**0.5 * np.finfo(dtype).eps * np.linalg.norm(a, 2)}
    thin = 4 * k <= n
    w, Q = pl.eigh(A)
    U, s, Vh = pl.svd(A)
    q = Q.toarray()
    np.testing.assert_allclose(q * w @ q.conj().T, a, **tolerance)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(n), atol=100 * np.finfo(dtype).eps * n**0.5)
    np.testing.assert_allclose((U.toarray() * s) @ Vh.toarray(), a, **tolerance)
    want = np.zeros(n)
    want[:k] = np.linalg.svd(left, compute_uv=False) ** 2
    np.testing.assert_allclose(s[:k], want[:k], rtol=100 * k * np.finfo(dtype).eps * 10.0**k)
    assert w.dtype == s.dtype == np.finfo(dtype).dtype and q.dtype == np.dtype(dtype)
    if thin and n == 100:
        with pl.config(memory_limit=n * n * np.dtype(dtype).itemsize - 1):
            pl.eigh(pl.Root(left.copy())), pl.svd(pl.Root(left.copy()))
    batch = pl.Root(np.stack([left, 2 * left]))
    np.testing.assert_allclose(pl.eigh(batch)[0][1], 4 * w, **tolerance)
