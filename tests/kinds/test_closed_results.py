"""Every function of what an operation closed to: Diag @ Diag, a slice of a Kron, 2 * Toeplitz.

Such a result is of its kind, but its operands are what was written, not the kind's own parameters:
a function that reads the one for the other fails, or is wrong. Each is compared with NumPy on the
dense form."""

import functools
import operator
import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import pylinop as pl

N = 8  # rows of each; a power of two for Hadamard


def _square(rng, n, dtype):
    a = rng.standard_normal((n, n))
    return (a + 1j * rng.standard_normal((n, n)) if dtype == "complex128" else a) + 3 * np.eye(n)


def _vector(rng, n, dtype):
    a = rng.standard_normal(n)
    return a + 1j * rng.standard_normal(n) if dtype == "complex128" else a


def leaves(kind, rng, dtype):
    """One of N x N, each call another."""
    square = functools.partial(_square, rng, dtype=dtype)
    vector = functools.partial(_vector, rng, dtype=dtype)
    tall = rng.standard_normal((N, 2)).astype(dtype)

    def two(n):
        return pl.Dense(square(n))

    return {
        "Dense": lambda: pl.Dense(square(N)),
        "Diag": lambda: pl.Diag(vector(N)),
        "Identity": lambda: pl.Identity(N),
        "Zeros": lambda: pl.Zeros((N, N)),
        "Full": lambda: pl.Full((N, N), vector(1)[0]),
        "Kron": lambda: pl.Kron(square(4), square(2)),
        "Kron3": lambda: pl.Kron(square(2), two(2), square(2)),
        "KronWide": lambda: pl.Kron(square(4)[:2], square(4)[:, :2]),
        "KronSum": lambda: pl.KronSum(square(4), square(2)),
        "BlockDiag": lambda: pl.BlockDiag(square(5), square(3)),
        "Block": lambda: pl.Block([[square(4), two(4)], [square(4), square(4)]]),
        "Toeplitz": lambda: pl.Toeplitz(vector(N), vector(N)),
        "Circulant": lambda: pl.Circulant(vector(N)),
        "Circulant2": lambda: pl.Circulant(vector(N).reshape(4, 2), 2),
        "Hankel": lambda: pl.Hankel(vector(N), vector(N)),
        "MultilevelToeplitz": lambda: pl.MultilevelToeplitz(square(9)[:7, :3], (4, 2)),
        "Convolution": lambda: pl.Convolution(vector(3), N, "same"),
        "LowRank": lambda: pl.LowRank(tall, rng.standard_normal((N, 2))),
        "LowRankC": lambda: pl.LowRank(tall, None, square(2)),
        "LowRankUpdate": lambda: pl.LowRankUpdate(two(N), tall),
        "Tridiagonal": lambda: pl.Tridiagonal(vector(N - 1), 4 + vector(N), vector(N - 1)),
        "Banded": lambda: pl.Banded((1, 2), square(N)[:4]),
        "BlockTridiagonal": lambda: pl.BlockTridiagonal(
            square(3 * 2).reshape(-1, 2, 2)[:3],
            6 * np.eye(2) + square(4 * 2).reshape(-1, 2, 2)[:4],
            square(3 * 2).reshape(-1, 2, 2)[:3],
        ),
        "OffDiag": lambda: pl.Diag(vector(N - 2), 2),
        "Triangular": lambda: pl.Triangular(square(N)),
        "Permutation": lambda: pl.Permutation(rng.permutation(N)),
        "Selection": lambda: pl.Selection(rng.integers(0, N, N), N),
        "DFT": lambda: pl.DFT(N),
        "DCT": lambda: pl.DCT(N),
        "DCT1": lambda: pl.DCT(N, 1),
        "DCT3": lambda: pl.DCT(N, 3, "ortho"),
        "DCT4": lambda: pl.DCT((4, 2), 4),
        "DFTs": lambda: pl.DFT((4, 2), "forward"),
        "Hadamard": lambda: pl.Hadamard(N),
        "Householder": lambda: pl.Householder(vector(N)),
        "Laplacian": lambda: pl.Laplacian((4, 2)),
        "Congruence": lambda: pl.Congruence(square(N), pl.Diag(vector(N))),
        "Root": lambda: pl.Root(square(N)),
        "Eigen": lambda: pl.Eigen(np.linalg.qr(square(N))[0], vector(N)),
        "HadamardProduct": lambda: pl.HadamardProduct(square(N), two(N)),
        "KhatriRao": lambda: pl.KhatriRao(square(N)[:4], square(N)[:2]),
        "Kernel": lambda: pl.Kernel("rbf", rng.standard_normal((N, 2))),
        "QuasiSeparable": lambda: pl.quasiseparable("matern32", np.sort(rng.random(N))),
        "Sparse": lambda: pl.Sparse(scipy.sparse.csr_array(square(N) * (rng.random((N, N)) < 0.4))),
    }[kind]()


KINDS = (
    "Dense Diag Identity Zeros Full Kron Kron3 KronWide KronSum BlockDiag Block Toeplitz Circulant "
    "Circulant2 Hankel MultilevelToeplitz Convolution LowRank LowRankC LowRankUpdate Tridiagonal "
    "Banded BlockTridiagonal OffDiag Triangular Permutation Selection DFT DFTs DCT DCT1 DCT3 DCT4 "
    "Hadamard Householder Laplacian Congruence Root Eigen HadamardProduct KhatriRao Kernel "
    "QuasiSeparable Sparse"
).split()

WAYS = {
    "A.T": lambda A, B: A.T,
    "A.H": lambda A, B: A.H,
    "conj(A)": lambda A, B: A.conj(),
    "2 A": lambda A, B: 2 * A,
    "2 A.T": lambda A, B: 2 * A.T,
    "A + B": lambda A, B: A + B,
    "A @ B": lambda A, B: A @ B,
    "(A @ B).T": lambda A, B: (A @ B).T,
    "A + D": lambda A, B: A + pl.Diag(np.arange(1.0, N + 1)),
    "A + 3 I": lambda A, B: A + 3 * pl.Identity(N),
    "inv(A)": lambda A, B: pl.inv(A),
    "inv(A) @ inv(B)": lambda A, B: pl.inv(A) @ pl.inv(B),
    "A[:2]": lambda A, B: A[:2],
    "A[2:4]": lambda A, B: A[2:4],
    "A[1:2]": lambda A, B: A[1:2],
    "A[:, 2:6]": lambda A, B: A[:, 2:6],
    "A[:4, :4]": lambda A, B: A[:4, :4],
    "A[::2, ::2]": lambda A, B: A[::2, ::2],
    "A[idx]": lambda A, B: A[[0, 3, 3]],
    "2 A[:4]": lambda A, B: 2 * A[:4],
    "A[:4].T": lambda A, B: A[:4].T,
    "A[2:6] @ B": lambda A, B: A[2:6] @ B,
    "(A + B)[:4, :4]": lambda A, B: (A + B)[:4, :4],
    "(A @ B)[:4]": lambda A, B: (A @ B)[:4],
    "(2 A)[4:, 4:]": lambda A, B: (2 * A)[4:, 4:],
}
DENSE = {  # what NumPy does otherwise
    "A.T": lambda a, b: a.T,
    "A.H": lambda a, b: a.conj().T,
    "conj(A)": lambda a, b: a.conj(),
    "2 A.T": lambda a, b: 2 * a.T,
    "A + D": lambda a, b: a + np.diag(np.arange(1.0, N + 1)),
    "A + 3 I": lambda a, b: a + 3 * np.eye(N),
    "inv(A)": lambda a, b: np.linalg.inv(a),
    "inv(A) @ inv(B)": lambda a, b: np.linalg.inv(a) @ np.linalg.inv(b),
}


def same(got, want, scale=1.0):
    got = got.toarray() if hasattr(got, "toarray") else np.asarray(got)
    want = np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9 * scale)


def _product(*parts):
    return functools.reduce(
        operator.matmul, [p.toarray() if hasattr(p, "toarray") else p for p in parts]
    )


def values(A, a, scale):
    """Functions of any matrix."""
    m, n = a.shape
    s = np.linalg.svdvals(a)
    same(A.toarray(), a, scale)
    same(A @ np.eye(n), a, scale)
    same((2 * A).toarray(), 2 * a, scale)
    same(A.T.toarray(), a.T, scale)
    same(A[0], a[0], scale)
    same(A[:, n - 1], a[:, n - 1], scale)
    same(A[m // 2 :].toarray(), a[m // 2 :], scale)
    same(pl.diagonal(A), np.diagonal(a), scale)
    same(A.tosparse().toarray(), a, scale)
    same(pickle.loads(pickle.dumps(A)).toarray(), a, scale)
    same(pl.svdvals(A), s, scale)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        same(pl.matrix_norm(A, order), np.linalg.norm(a, order), scale)
    same(np.linalg.norm(A), np.linalg.norm(a), scale)
    tell = s[-1] > 1e-8 * s[0] or np.all((s > 1e-8 * s[0]) | (s < 1e-14 * s[0]))
    if not tell:
        return
    rank = int((s > 1e-10 * s[0]).sum())
    assert pl.matrix_rank(A, rtol=1e-10) == rank
    u, w, vh = pl.svd(A, full_matrices=False)
    same(w, s, scale)
    same(_product(u, np.diag(w), vh), a, scale)
    q, r = pl.qr(A)
    same(_product(q, r), a, scale)
    q = q.toarray()
    same(q.conj().T @ q, np.eye(q.shape[1]))
    p, low, up = pl.lu(A)
    same(_product(p, low, up), a, scale)
    same(_product(pl.orth(A, 1e-10), pl.orth(A, 1e-10).H, a), a, scale)
    same(a @ pl.null_space(A, 1e-10).toarray(), np.zeros((m, n - rank)), scale)
    repr(A), A.explain("apply")
    if rank == min(m, n):
        size = scale * max(1, 1 / s[-1]) ** 2
        b = np.arange(1.0, m + 1)
        same(pl.lstsq(A, b)[0], np.linalg.lstsq(a, b, rcond=None)[0], size)
        same(pl.pinv(A), np.linalg.pinv(a), size)
        if 0 < s[-1]:
            same(pl.cond(A), np.linalg.cond(a), size * s[0] / s[-1])


def square_values(A, a, scale):
    n = a.shape[0]
    same(pl.trace(A), np.trace(a), scale)
    s = np.linalg.svdvals(a)
    same(pl.det(A), np.linalg.det(a), scale**n)
    w = np.linalg.eigvals(a)
    got = np.asarray(pl.eigvals(A))
    for x in w:  # one another's nearest, whatever the order
        assert np.abs(got - x).min() <= 1e-4 * scale, (got, w)
    w, v = pl.eig(A)
    same(_product(a, v), v.toarray() * w, scale)
    same(pl.expm(0.1 * A / scale), scipy.linalg.expm(0.1 * a / scale))
    if s[-1] > 1e-6 * s[0]:
        size = scale * max(1, 1 / s[-1]) ** 2
        b = np.arange(1.0, n + 1)
        same(pl.solve(A, b), np.linalg.solve(a, b), size)
        same(pl.inv(A).toarray(), np.linalg.inv(a), size)
        pl.preconditioner(A) @ b
        for got, want in zip(pl.slogdet(A), np.linalg.slogdet(a), strict=True):
            same(got, want, size)
    if np.allclose(a, a.conj().T, rtol=0, atol=0):
        w, q = pl.eigh(A)
        same(w, np.linalg.eigvalsh(a), scale)
        same(pl.eigvalsh(A), np.linalg.eigvalsh(a), scale)
        low, high = pl.spectral_bounds(A)[:2]
        assert low <= w[0] + 1e-9 * scale and w[-1] <= high + 1e-9 * scale
        same(_product(q, np.diag(w), q.H), a, scale)
        if w[0] > 1e-6 * w[-1]:
            same(_product(pl.cholesky(A), pl.cholesky(A).H), a, scale)
            same(_product(pl.sqrtm(A), pl.sqrtm(A)), a, scale)
            same(pl.expm(pl.logm(A)), a, scale)
            quad, log = pl.inv_quad_logdet(A, b)
            same(quad, b @ np.linalg.solve(a, b), size)
            same(log, np.linalg.slogdet(a)[1], size)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_functions(kind, way, dtype, rng):
    A, B = leaves(kind, rng, dtype), leaves(kind, rng, dtype)
    if "inv" in way and np.linalg.cond(A.toarray()) > 1e6:
        pytest.skip("singular")
    C = WAYS[way](A, B)
    c = DENSE.get(way, WAYS[way])(A.toarray(), B.toarray())
    scale = max(1.0, float(np.abs(c).sum()))
    values(C, c, scale)
    if c.shape[0] == c.shape[1]:
        square_values(C, c, scale)


BATCHES = {
    "K[0]": lambda K: K[0],
    "K[1:]": lambda K: K[1:],
    "K[:, :4]": lambda K: K[..., :4, :],
    "K[0][2:4]": lambda K: K[0][2:4],
    "K[..., 2:6][1]": lambda K: K[..., 2:6][1],
    "K[[0, 0, 2]]": lambda K: K[[0, 0, 2]],
    "2 K[1]": lambda K: 2 * K[1],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", BATCHES)
@pytest.mark.parametrize(
    "batches", [((3,), (3,)), ((3,), ()), ((1,), (3,)), ((), (3,)), ((1,), (1,))]
)
def test_batches_of_krons(batches, way, rng):
    """Slices along an axis of a batch, which the factors have, lack, or broadcast."""
    made = [rng.standard_normal((*b, n, n)) for b, n in zip(batches, (4, 2), strict=True)]
    K = pl.Kron(*made)
    k = K.toarray()
    try:
        want = BATCHES[way](k)
    except IndexError:
        with pytest.raises(IndexError):
            BATCHES[way](K)
        return
    A = BATCHES[way](K)
    scale = np.abs(want).sum()
    same(A, want, scale)
    same(pl.svdvals(A), np.linalg.svdvals(want), scale)
    same(pl.matrix_norm(A), np.linalg.norm(want, axis=(-2, -1)), scale)
    same(pl.pinv(A), np.linalg.pinv(want), scale * 1e3)
