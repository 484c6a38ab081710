"""The first or last rows and columns of an inverse: what solves with them, their determinants and
inverses are by the Schur complement of the others, of any kind, beside NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from drawn import values

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")
inv = pl.inv
N = 90
KINDS = ["dense", "pos", "band", "sparse", "toeplitz", "update", "sum", "blocks", "kron"]


def one(kind, dtype, r, n=N):
    """An operator and its dense form."""
    real = np.zeros(1, dtype).real.dtype
    d, e = r.uniform(2, 3, n).astype(real), (r.random(n - 1) / 3).astype(real)
    if kind == "dense":
        A = pl.Dense((values(r, (n, n), dtype) / 9 + 2 * np.eye(n)).astype(dtype))
    elif kind == "pos":
        x = values(r, (n, n), dtype)
        A = pl.Dense((x @ x.conj().T / n + np.eye(n)).astype(dtype), "pos")
    elif kind == "band":
        A = pl.Tridiagonal(e, d, -e)
    elif kind == "sparse":
        q = sp.random_array((n, n), density=1.5 / n, rng=r)
        A = pl.Sparse((q + q.T + 4 * sp.eye_array(n)).tocsr().astype(real))
    elif kind == "toeplitz":
        c = np.exp(-np.arange(n) / 3.0).astype(dtype)
        A = pl.Toeplitz(c, c * np.exp(-np.arange(n) / 9.0).astype(real))
    elif kind == "update":
        u, v = (values(r, (n, 3), dtype) / 9 for _ in range(2))
        A = pl.Diag(d) + pl.Dense(u) @ pl.Dense(v).H
    elif kind == "sum":
        A = one("pos", dtype, r, n)[0] + pl.Diag(d)
    elif kind == "kron":
        A = pl.Kron(*(one("dense", dtype, r, k)[0] for k in (n // 10, 10)))
    else:
        A = pl.BlockDiag(*(one("dense", dtype, r, n // 6)[0] for _ in range(6)))
    return A, A.toarray().astype(np.result_type(dtype, np.float64))


def looked_at(A, x, b, digits):
    def close(got, want):
        np.testing.assert_allclose(got, want, rtol=digits, atol=digits * np.abs(want).max())

    close(pl.solve(A, b), np.linalg.solve(x, b))
    close(pl.solve(A.H, b[:, 0]), np.linalg.solve(x.conj().T, b[:, 0]))
    sign, log = pl.slogdet(A)
    want = np.linalg.slogdet(x)
    assert abs(sign - want[0]) < 20 * digits
    assert abs(log - want[1]) < 20 * digits * (1 + abs(want[1]))
    whole = np.linalg.inv(x)
    close(inv(A).diagonal(), np.diagonal(whole))
    close(pl.trace(inv(A)), np.trace(whole))
    close(inv(A).toarray(), whole)
    close(inv(A) @ b, whole @ b)
    close(A.diagonal(), np.diagonal(x))
    close(A @ b, x @ b)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cut", [slice(0, 60), slice(60, None), slice(0, 1), slice(N - 7, None), slice(0, N - 1)]
)
def test_beside_dense(kind, cut, dtype):
    r = np.random.default_rng([KINDS.index(kind), len(dtype)])
    A, a = one(kind, dtype, r)
    x = np.linalg.inv(a)[cut, cut]
    digits = 1e-2 if dtype == "float32" else 1e-9
    looked_at(inv(A)[cut, cut], x, values(r, (len(x), 2), dtype), digits)
    looked_at(2 * inv(A)[cut][:, cut], 2 * x, values(r, (len(x), 2), dtype), digits)


@pytest.mark.parametrize("cut", [slice(3, 50), slice(0, 60, 2), np.array([4, 1, 7])])
def test_other_cuts(cut):
    r = np.random.default_rng(2)
    for kind in KINDS:
        A, a = one(kind, "float64", r)
        x = np.linalg.inv(a)[cut][:, cut]
        looked_at(inv(A)[cut][:, cut], x, values(r, (len(x), 2), "float64"), 1e-9)


@pytest.mark.parametrize("kind", ["band", "sparse", "toeplitz", "update"])
def test_the_whole_is_not_made_dense(kind):
    """Of 480 rows, the first 320."""
    n, k = 480, 320
    A, _ = one(kind, "float64", np.random.default_rng(3), n)
    X = inv(A)[:k, :k]
    assert X.explain("solve", np.ones(k)).flops < 0.1 * n**3
    assert X.explain("logdet").flops < 0.1 * n**3


@pytest.mark.parametrize("size", [1e3, 1e7])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_diagonals_of_complements_keep_their_digits(size, written, dtype):
    """Where the inverse of the other block times the blocks beside it is much less than their
    sizes let fear."""
    r = np.random.default_rng(0)
    n, k = 40, 30
    size = size if dtype == "float64" else np.sqrt(size)
    u = r.standard_normal((n, 3))
    m = (np.eye(n) + size * u @ u.T).astype(dtype)
    parts = m[:k, :k], m[:k, k:], m[k:, :k], m[k:, k:]
    M = pl.Block([[*map(pl.Dense, parts[:2])], [*map(pl.Dense, parts[2:])]])
    M = M if written else pl.Dense(m)
    small = np.linalg.inv(np.eye(3) / size + u[k:].T @ u[k:])
    due = 1 + np.sum((u[:k] @ small) * u[:k], axis=1)
    eps, cond = np.finfo(dtype).eps, np.linalg.cond(m.astype(float))
    X = inv(inv(M)[:k, :k])
    assert np.abs(X.diagonal() - due).max() <= 10 * eps * cond * np.abs(due).max()
    assert abs(pl.trace(X) - due.sum()) <= 10 * k * eps * cond * np.abs(due).max()


def test_of_a_singular_matrix_there_is_none():
    x = np.random.default_rng(1).standard_normal((40, 40))
    x[:, 0] = 0
    A = inv(pl.Dense(x))[:39, :39]
    d = np.r_[0.0, np.ones(39)]
    for B in (A, inv(pl.Diag(d) + pl.LowRank(np.eye(40)[:, 3:4]))[:39, :39]):
        for f in (
            lambda B=B: pl.solve(B, np.ones(39)),
            lambda B=B: inv(B).diagonal(),
            lambda B=B: pl.slogdet(B),
        ):
            with pytest.raises(np.linalg.LinAlgError):
                f()


@pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-12])
def test_beside_what_is_nearly_singular(small):
    """Of a block that is nearly singular while the whole is not: its complement is large, and the
    corner small; as accurate as the corner's condition lets it be."""
    r = np.random.default_rng(4)
    n, k = 40, 24
    x = values(r, (n, n), "float64")
    w, _, v = np.linalg.svd(x[k:, k:])
    x[k:, k:] = w @ np.diag(np.r_[np.ones(n - k - 1), small]) @ v
    own = x[:k, :k] - x[:k, k:] @ np.linalg.solve(x[k:, k:], x[k:, :k])
    A, b = inv(pl.Dense(x))[:k, :k], values(r, (k, 2), "float64")
    want, digits = own @ b, 1e-13 * np.linalg.cond(x[k:, k:])
    assert np.linalg.norm(pl.solve(A, b) - want) <= digits * np.linalg.norm(want)
    assert abs(pl.slogdet(A)[1] + np.linalg.slogdet(own)[1]) < 1e-9 + digits


def test_singular_ones_say_so():
    x = np.diag(np.r_[1.0, 2.0, 0.0, 3.0])
    x[0, 2] = x[2, 0] = 1.0  # not singular; its last two rows and columns are
    A = inv(pl.Dense(x))
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(A[:2, :2], np.ones(2))
    assert pl.logdet(A[:2, :2]) == -np.inf
    for part in (slice(0, 3), slice(1, None)):
        with pytest.raises(np.linalg.LinAlgError):
            inv(pl.Dense(np.diag([1.0, 0.0, 2.0, 3.0])))[part, part].toarray()
