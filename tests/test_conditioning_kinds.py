"""Direct solves by structure warn of a matrix that is singular to working precision, kind by kind:
on either side of the threshold, and LinAlgError where it is singular; explanations show the number."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_conditioning import warned

import pylinop as pl

DTYPES = "fdFD"


def eps_of(dtype):
    return float(np.finfo(dtype).eps)


def ends(dtype, n, last):
    """Ones, and one element that is `last` eps."""
    d = np.ones(n, dtype)
    d[n // 2] = last * eps_of(dtype)
    return d


def diag(dtype, last, n=50):
    return pl.Diag(ends(dtype, n, last) * (1j if dtype in "FD" else -1))


def circulant(dtype, last, n=60):
    """Eigenvalues 1 - (1 - last eps) w^k: `last` eps the least and 2 the largest."""
    c = np.zeros(n, dtype)
    c[0], c[1] = 1, -(1 - last * eps_of(dtype))
    return pl.Circulant(c)


def levels(dtype, last):
    c = np.zeros((6, 8), dtype)
    c[0, 0], c[0, 1] = 1, -(1 - last * eps_of(dtype))
    return pl.Circulant(c, levels=2)


def toeplitz(dtype, last, n=200):
    """2 cos(pi / (n + 1)) and -1 beside it is singular; that is a number only in rounding."""
    if last == 0:
        return pl.Toeplitz(np.ones(n, dtype))
    c = np.zeros(n, dtype)
    c[0] = 2 * np.cos(np.pi / (n + 1)) + (last * eps_of(dtype) if last > 1 else 0)
    c[1] = 1j if dtype in "FD" else -1
    return pl.Toeplitz(c)


def hankel(dtype, last, n=120):
    c = toeplitz(dtype, last, n).toarray()
    full = np.r_[c[0, ::-1], c[1:, 0]]
    return pl.Hankel(full[:n], full[n - 1 :])


def blocks(dtype, last, assume=None, b=20):
    N = 6
    D = np.broadcast_to(np.eye(b, dtype=dtype), (N, b, b)).copy()
    L = np.zeros((N - 1, b, b), dtype)
    L[0, 0, 1] = 0.25
    U = None if assume else L.conj().transpose(0, 2, 1).copy()
    D[-2, 3, 3] = last * eps_of(dtype)
    return pl.BlockTridiagonal(L, D, U, assume) if assume else pl.BlockTridiagonal(L, D, U)


def positive_blocks(dtype, last):
    return blocks(dtype, last, "pos")


def quasi(dtype, last, n=200, triangular=False):
    p, q = np.zeros((n, 2), dtype), np.zeros((n, 2), dtype)
    p[:3] = q[:3] = 0.25
    a = np.full((n, 2), 0.5, dtype)
    return pl.QuasiSeparable(ends(dtype, n, last), p, q, a, triangular=triangular)


def quasi_triangle(dtype, last):
    return quasi(dtype, last, triangular=True)


def grid(side):
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sp.kron(one, sp.eye_array(side)) + sp.kron(sp.eye_array(side), one)


def sparse(dtype, last, side=24):
    """Of a five-point grid one row and column is small: the rest stays well conditioned."""
    n = side * side
    d = np.ones(n)
    d[n // 3] = np.sqrt(last * eps_of(dtype))
    a = sp.diags_array(d) @ grid(side) @ sp.diags_array(d)
    turn = sp.diags_array(np.exp(1j * np.arange(n))) if dtype in "FD" else sp.eye_array(n)
    return pl.Sparse(sp.csr_array(turn @ a @ turn.conj()).astype(dtype))


def sparse_band(dtype, last, n=500):
    off = np.zeros(n - 1, dtype)
    off[:5] = 0.5
    return pl.Sparse(
        sp.csr_array(sp.diags_array([ends(dtype, n, last), off], offsets=[0, -1], dtype=dtype))
    )


def sparse_triangle(dtype, last, n=100):
    a = sp.csr_array(sp.diags_array([ends(dtype, n, last), np.ones(5)], offsets=[0, -95]))
    return pl.SparseTriangular(a.astype(dtype), lower=True)


def woodbury(dtype, last, n=400):
    """I - (1 - last eps) u u^H with |u| = 1 exactly."""
    u = np.full((n, 1), 0.05, dtype)
    if last:
        u = np.zeros((n, 1), dtype)
        u[:64] = 0.125 * (1j if dtype in "FD" else 1)
    c = np.array([[-(1 - last * eps_of(dtype))]], dtype)
    base = pl.Identity(n) if last else pl.Diag(ends(dtype, n, 0))
    return pl.LowRankUpdate(base, u, u, c) if last else base


def definite_band(dtype, last, u=2, n=100):
    ab = np.zeros((2 * u + 1, n), dtype)
    ab[u] = ends(dtype, n, last)
    ab[u + 1, 0], ab[u - 1, 1] = (0.5j, -0.5j) if dtype in "FD" else (0.5, 0.5)
    return pl.Banded((u, u), ab, "pos")


def wide_definite_band(dtype, last):
    return definite_band(dtype, last, 20)


def definite_tridiagonal(dtype, last, n=100):
    off = np.zeros(n - 1, dtype)
    off[0] = 0.5
    return pl.Tridiagonal(off, ends(dtype, n, last), off.conj(), "pos")


def kron(dtype, last):
    return pl.Kron(diag(dtype, last, 6), np.eye(4, dtype=dtype) + 1)


KINDS = [
    diag, circulant, levels, toeplitz, hankel, blocks, positive_blocks, quasi, quasi_triangle,
    sparse, sparse_band, sparse_triangle, woodbury, definite_band, wide_definite_band,
    definite_tridiagonal, kron,
]  # fmt: skip


def solved(op):
    """All ways to a solution, each with what to solve for."""
    n = op.shape[0]
    rng = np.random.default_rng(1)
    b = rng.standard_normal((n, 3)) + 1
    b = b.astype(op.dtype)
    return [
        lambda: pl.solve(op, b[:, 0]),
        lambda: pl.solve(op, b),
        lambda: pl.inv(op) @ b,
    ]


@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_of_the_threshold(kind, dtype):
    for f in solved(kind(dtype, 1e4)):
        assert warned(f) == []
    for f in solved(kind(dtype, 0.5)):
        found = warned(f)
        assert len(found) == 1, found
        assert found[0] < eps_of(dtype)
    for f in solved(kind(dtype, 0)):
        with pytest.raises(np.linalg.LinAlgError):
            f()
