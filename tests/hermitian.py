"""Hermitian operators of every kind, for tests of spectra and functions: name -> what makes one of
a Generator and a dtype."""

import numpy as np
from samples import values

import pylinop as pl


def her(rng, n, dtype, batch=()):
    """A Hermitian array."""
    a = values(rng, (*batch, n, n), dtype)
    return (a + np.swapaxes(a, -1, -2).conj()) / 2


def pos(rng, n, dtype, batch=()):
    """A positive definite array, not far from the identity."""
    a = values(rng, (*batch, n, n), dtype)
    return (a @ np.swapaxes(a, -1, -2).conj() / n + np.eye(n, dtype=dtype)).astype(dtype)


def uni(rng, n, dtype):
    """A unitary array."""
    return np.linalg.qr(values(rng, (n, n), dtype))[0]


def real(rng, shape, dtype):
    return values(rng, shape, np.empty(0, dtype).real.dtype)


def turn(c):
    """A first column that makes a Hermitian circulant, one level."""
    return (c + np.roll(c[..., ::-1], 1, -1).conj()) / 2


def levels(c):
    return (c + np.roll(c[::-1, ::-1], 1, (0, 1)).conj()) / 2


def tridiagonal(rng, n, dtype, batch=()):
    e = values(rng, (*batch, n - 1), dtype)
    return pl.Tridiagonal(e, real(rng, (*batch, n), dtype).astype(dtype), e.conj())


def exchanges(n):
    p = np.arange(n)
    p[[0, 2, 3, 4]] = p[[2, 0, 4, 3]]
    return p


def callable_of(a):
    return pl.MatVec(a.shape, lambda x: a @ x, lambda x: a @ x, dtype=a.dtype)


KINDS = {
    "Dense": lambda r, t: pl.Dense(her(r, 5, t)),
    "Dense batch": lambda r, t: pl.Dense(her(r, 4, t, (2, 3))),
    "Dense assumed": lambda r, t: pl.Dense(her(r, 5, t), "her"),
    "Identity": lambda r, t: pl.Identity(4, t),
    "Identity batch": lambda r, t: pl.Identity((2, 3, 3), t),
    "Zeros": lambda r, t: pl.Zeros((3, 3), t),
    "Diag": lambda r, t: pl.Diag(real(r, 5, t).astype(t)),
    "Diag batch": lambda r, t: pl.Diag(real(r, (2, 5), t).astype(t)),
    "Kron": lambda r, t: pl.Kron(her(r, 2, t), her(r, 3, t), pl.Diag(real(r, 2, t))),
    "Kron batch": lambda r, t: pl.Kron(her(r, 2, t, (2, 1)), her(r, 3, t, (3,))),
    "Kron of Identity": lambda r, t: pl.Kron(pl.Identity(3), her(r, 2, t)),
    "Kron of complex and real": lambda r, t: pl.Kron(her(r, 2, t), her(r, 2, "complex64")),
    "KronSum": lambda r, t: pl.KronSum(her(r, 2, t), her(r, 3, t)),
    "KronSum batch": lambda r, t: pl.KronSum(her(r, 2, t, (2,)), her(r, 3, t)),
    "BlockDiag": lambda r, t: pl.BlockDiag(her(r, 2, t), pl.Diag(real(r, 2, t)), her(r, 1, t)),
    "BlockDiag batch": lambda r, t: pl.BlockDiag(her(r, 2, t, (3,)), her(r, 2, t)),
    "BlockDiag of empty": lambda r, t: pl.BlockDiag(np.zeros((0, 0), t), her(r, 2, t)),
    "BlockDiag of Kron": lambda r, t: pl.BlockDiag(
        pl.Kron(her(r, 2, t), her(r, 2, t)), pl.Circulant(turn(values(r, 3, t)))
    ),
    "Circulant": lambda r, t: pl.Circulant(turn(values(r, 6, t))),
    "Circulant odd": lambda r, t: pl.Circulant(turn(values(r, 5, t))),
    "Circulant batch": lambda r, t: pl.Circulant(turn(values(r, (2, 5), t))),
    "Circulant 2": lambda r, t: pl.Circulant(levels(values(r, (3, 4), t)), 2),
    "Circulant sum": lambda r, t: (
        pl.Circulant(turn(values(r, 4, t))) + pl.Circulant(turn(values(r, 4, t)))
    ),
    "Tridiagonal": lambda r, t: tridiagonal(r, 6, t),
    "Tridiagonal of 1": lambda r, t: tridiagonal(r, 1, t),
    "Tridiagonal batch": lambda r, t: tridiagonal(r, 4, t, (2,)),
    "Tridiagonal with zeros": lambda r, t: pl.Tridiagonal(
        np.zeros(3, t), real(r, 4, t).astype(t), np.zeros(3, t)
    ),
    "Laplacian dirichlet": lambda r, t: pl.Laplacian(6, "dirichlet", t),
    "Laplacian neumann": lambda r, t: pl.Laplacian((3, 4), "neumann", t),
    "Laplacian periodic": lambda r, t: pl.Laplacian((5, 2), "periodic", t),
    "Laplacian of 1": lambda r, t: pl.Laplacian((1, 2), "dirichlet", t),
    "Permutation": lambda r, t: pl.Permutation(exchanges(6), t),
    "Householder": lambda r, t: pl.Householder(values(r, 5, t)),
    "Householder of 1": lambda r, t: pl.Householder(values(r, 1, t)),
    "Householder batch": lambda r, t: pl.Householder(values(r, (2, 4), t)),
    "Householder tau": lambda r, t: pl.Householder(values(r, 5, t), real(r, (), t)),
    "Hadamard": lambda r, t: pl.Hadamard(8, t),
    "Hadamard of 2": lambda r, t: pl.Hadamard(2, t),
    "Full": lambda r, t: pl.Full((4, 4), np.dtype(t).type(-2)),
    "Eigen": lambda r, t: pl.Eigen(pl.Dense(uni(r, 4, t), "orthogonal"), real(r, 4, t)),
    "Eigen of Kron": lambda r, t: pl.Eigen(
        pl.Kron(pl.Dense(uni(r, 2, t), "orthogonal"), pl.Identity(2)), real(r, 4, t)
    ),
    "Root": lambda r, t: pl.Root(values(r, (5, 2), t)),
    "Root wide": lambda r, t: pl.Root(values(r, (3, 5), t)),
    "Root of Kron": lambda r, t: pl.Root(pl.Kron(values(r, (3, 2), t), values(r, (2, 2), t))),
    "LowRank": lambda r, t: pl.LowRank(values(r, (7, 2), t)),
    "LowRank C": lambda r, t: pl.LowRank(values(r, (7, 2), t), C=her(r, 2, t)),
    "LowRank batch": lambda r, t: pl.LowRank(values(r, (2, 5, 2), t)),
    "LowRankUpdate": lambda r, t: pl.LowRankUpdate(
        2.0 * pl.Identity(6, t), values(r, (6, 2), t), None, her(r, 2, t)
    ),
    "Diag + LowRank": lambda r, t: pl.Diag(np.full(6, 3, t)) + pl.LowRank(values(r, (6, 1), t)),
    "Congruence": lambda r, t: pl.Congruence(pl.Dense(uni(r, 4, t), "orthogonal"), her(r, 4, t)),
    "Toeplitz": lambda r, t: pl.Toeplitz(np.concatenate([real(r, 1, t), values(r, 4, t)])),
    "Banded": lambda r, t: pl.Banded((0, 0), real(r, (1, 4), t).astype(t)),
    "multiple": lambda r, t: -2.0 * pl.Kron(her(r, 2, t), her(r, 2, t)),
    "shifted Kron": lambda r, t: pl.Kron(her(r, 2, t), her(r, 3, t)) + 0.5 * pl.Identity(6, t),
    "shifted twice": lambda r, t: pl.Identity(4) + (2 * pl.Dense(her(r, 4, t)) - pl.Identity(4)),
    "sum": lambda r, t: pl.Dense(her(r, 4, t)) + pl.Dense(her(r, 4, t)),
    "power": lambda r, t: pl.Kron(her(r, 2, t), her(r, 2, t)) ** 3,
    "inverse": lambda r, t: pl.inv(pl.Dense(pos(r, 4, t))),
    "MatVec": lambda r, t: callable_of(her(r, 4, t)),
}
