"""Matrices of random programs, each well conditioned."""

import numpy as np
import scipy.sparse as sp
from gradients.drawer import KERNELS, Skip, makes, takes, up

import pylinop as pl


@makes
def diag(d):
    k = d.vector()
    d.add("Diag(up)", lambda v: pl.Diag(up(v)), k)


@makes
def update(d):
    k = d.vector()
    n = d.env[k].shape[0]
    u = d.one(lambda a: a.ndim == 2 and a.shape[0] == n)
    low = d.choice(
        ("LowRank", lambda U: pl.LowRank(U)),
        ("Root", lambda U: pl.Root(pl.Dense(U))),
        ("U @ U.H", lambda U: U @ U.conj().T),
    )
    d.add("Diag(up) + " + low[0], lambda v, U: pl.Diag(up(v)) + low[1](U), k, u)


@makes
def gram(d):
    k, c = d.matrix(), d.scalar(real=True)
    m = d.env[k].shape[0]
    d.add("A @ A.H + up(c) I", lambda A, c: A @ A.conj().T + up(c) * pl.Identity(m), k, c)


@makes
def toeplitz(d):
    k = d.vector(real=True)
    n = d.env[k].shape[0]
    unit = (np.arange(n) == 0) * (2.0 + 2 * n)
    if d.chance(0.3):
        j = d.vector(n)
        d.add("Toeplitz(c + u, r)", lambda c, r: pl.Toeplitz(c + unit, r + unit), k, j)
    else:
        d.add("Toeplitz(c + u)", lambda c: pl.Toeplitz(np.tanh(c) + unit), k)


@makes
def circulant(d):
    k = d.vector()
    n = d.env[k].shape[0]
    unit = (np.arange(n) == 0) * (2.0 + 2 * n)
    d.add("Circulant", lambda c: pl.Circulant(c + unit), k)


@makes
def hankel(d):
    k = d.vector()
    n = d.env[k].shape[0]
    unit = (np.arange(n) == n - 1) * (2.0 + 2 * n)
    d.add("Hankel", lambda c: pl.Hankel(c + unit, c[::-1] + unit[::-1]), k)


@makes
def tridiagonal(d):
    k = d.vector(real=True)
    j = d.vector(d.env[k].shape[0])
    d.add("Tridiagonal", lambda a, b: pl.Tridiagonal(0.3 * b[1:], 2.0 + a * a, 0.2 * b[:-1]), k, j)


@makes
def triangular(d):
    k = d.matrix(square=True)
    n, lower, unit = d.env[k].shape[0], d.chance(0.5), d.chance(0.3)
    d.add(
        f"Triangular(lower={lower}, unit={unit})",
        lambda A: pl.Triangular(A + 2.0 * np.eye(n), lower=lower, unit_diagonal=unit),
        k,
    )


@makes
def dense(d):
    k = d.matrix(square=True)
    n = d.env[k].shape[0]
    d.add("A + 4 I", lambda A: A + 4.0 * pl.Identity(n), k)


@makes
def kernel(d):
    s, t = d.scalar(real=True), d.scalar(real=True)
    name, n, more = d.choice(*KERNELS), int(d.rng.integers(1, 12)), {}
    x = d.array(n, 2, real=True)
    if name == "polynomial":
        more["degree"] = 2
    both = d.chance(0.5)

    def made(a, b):
        given = dict(more)
        if name == "periodic":
            given["period"] = 2.0 + np.tanh(b)
        if name == "rational_quadratic":
            given["alpha"] = up(b)
        K = pl.Kernel(name, x, variance=up(a), length_scale=1.0 + up(b), **given)
        return K + up(a) * pl.Identity(n) if both else K + 2.0 * pl.Identity(n)

    d.add(f"Kernel({name!r}) + c I", made, s, t)


@makes
def kernel_of_points(d):
    k = d.one(lambda a: a.ndim == 2 and a.dtype.kind != "c" and min(a.shape) > 0)
    s = d.scalar(real=True)
    n, name = d.env[k].shape[0], d.choice("rbf", "matern52", "rational_quadratic", "linear")
    d.add(
        f"Kernel({name!r}, points) + c I",
        lambda X, b: pl.Kernel(name, X, length_scale=1.0 + up(b)) + up(b) * pl.Identity(n),
        k,
        s,
    )


@makes
def markov(d):
    s, t = d.scalar(real=True), d.scalar(real=True)
    n, name = int(d.rng.integers(1, 12)), d.choice("matern12", "matern32", "matern52")
    at = np.sort(d.rng.random(n)) * n

    def made(a, b):
        K = pl.quasiseparable(name, at, variance=up(a), length_scale=up(b))
        return K + up(a) * pl.Identity(n)

    d.add(f"quasiseparable({name!r}) + c I", made, s, t)


@makes
def kron(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    p, q = d.env[a].shape[0], d.env[b].shape[0]
    if p * q > 150:
        raise Skip
    shift = d.chance(0.6)

    def made(A, B):
        A, B = (X @ X.conj().T / (1.0 + len(X)) + 1.0 * pl.Identity(len(X)) for X in (A, B))
        K = pl.Kron(A, B)
        return K + 0.7 * pl.Identity(p * q) if shift else K

    d.add(f"Kron(A A.H + I, B B.H + I){' + c I' if shift else ''}", made, a, b)


@makes
def kronsum(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    if d.env[a].size * d.env[b].size > 150**2:
        raise Skip

    def made(A, B):
        A, B = (X @ X.conj().T / (1.0 + len(X)) + 1.0 * pl.Identity(len(X)) for X in (A, B))
        return pl.KronSum(A, B)

    d.add("KronSum", made, a, b)


@makes
def blocks(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    p, q = d.env[a].shape[0], d.env[b].shape[0]
    if d.chance(0.5):
        d.add("BlockDiag(A + 4 I, B + 4 I)", lambda A, B: pl.BlockDiag(
            A + 4.0 * pl.Identity(p), B + 4.0 * pl.Identity(q)), a, b)  # fmt: skip
        return
    C = d.array(p, q)
    d.add("Block([[A + 6 I, C], [C.H, B + 6 I]])", lambda A, B: pl.Block(
        [[A + 6.0 * pl.Identity(p), C], [C.conj().T, B + 6.0 * pl.Identity(q)]]), a, b)  # fmt: skip


@makes
def blocktridiagonal(d):
    k = d.matrix(square=True)
    b, n = d.env[k].shape[0], int(d.rng.integers(1, 4))
    if n * b > 40:
        raise Skip
    side = d.array(n - 1, b, b)
    eye = 6.0 * np.broadcast_to(np.eye(b), (n, b, b))

    def made(A):
        stack = np.stack([A * (1.0 + 0.3 * j) for j in range(n)]) + eye
        return pl.BlockTridiagonal(side, stack, 0.5 * side)

    d.add("BlockTridiagonal", made, k)


@makes
def hadamard(d):
    k = d.one(lambda a: a.ndim == 2 and min(a.shape) > 0 and a.shape[0] == a.shape[1])
    n = d.env[k].shape[0]
    B = d.array(n, n)
    d.add("A o B + 4 I", lambda A: pl.HadamardProduct(A, B) + 4.0 * pl.Identity(n), k)


@makes
def squares(d):
    k = d.matrix(square=True)
    n = d.env[k].shape[0]
    d.add("(A / 2) @ (A / 2) + 4 I", lambda A: A @ A / 4.0 + 4.0 * pl.Identity(n), k)


@makes
def congruence(d):
    a, k = d.matrix(square=True), d.vector()
    n = d.env[a].shape[0]
    if d.env[k].shape[0] != n:
        raise Skip
    d.add(
        "Congruence(A + 3 I, Diag) + c I",
        lambda A, v: pl.Congruence(A + 3.0 * np.eye(n), pl.Diag(up(v))),
        a,
        k,
    )


@makes
def convolution(d):
    k = d.vector(real=True)
    n = d.env[k].shape[0]
    unit = (np.arange(n) == n // 2) * (3.0 + n)
    mode = d.choice("same", "circular")
    m = n + int(d.rng.integers(0, 4))
    d.add(f"Convolution({mode!r})", lambda c: pl.Convolution(np.tanh(c) + unit, m, mode), k)


@makes
def multilevel(d):
    k = d.vector()
    n = (d.env[k].shape[0] + 1) // 2
    unit = (np.arange(2 * n - 1) == n - 1) * (4.0 + 2 * n)
    d.add("MultilevelToeplitz", lambda t: pl.MultilevelToeplitz(t[: 2 * n - 1] + unit, n), k)


@makes
def reflected(d):
    k = d.one(lambda a: a.ndim == 2 and a.shape[0] >= a.shape[1] > 0)
    n = d.env[k].shape[0]
    D = np.diag(1.0 + np.arange(n))
    d.add("Reflections @ D @ Reflections.H", lambda V: _turned(pl.Reflections(V.T, n), D), k)


def _turned(Q, D):
    return Q @ D @ Q.conj().T


@makes
def householder(d):
    k = d.vector()
    n = d.env[k].shape[0]
    d.add("Householder + 3 I", lambda v: pl.Householder(v) + 3.0 * pl.Identity(n), k)


@makes
def sparse(d):
    k = d.vector(real=True)
    n = d.env[k].shape[0]
    S = sp.random_array((n, n), density=0.4, rng=d.rng, format="csr") + 4.0 * sp.eye_array(n)
    S = sp.csr_array(S)
    at = np.arange(S.nnz) % n
    base = np.where(S.tocoo().row == S.tocoo().col, 4.0, 0.3)
    d.add("Sparse(S, data)", lambda v: pl.Sparse(S, base + 0.2 * np.tanh(v)[at]), k)


@makes
def columnwise(d):
    a = d.matrix()
    m, n = d.env[a].shape
    B = d.array(2, n)
    d.add(
        "KhatriRao(A, B) K.H + I",
        lambda A: (lambda K: K @ K.conj().T + pl.Identity(2 * m))(pl.KhatriRao(A, B)),
        a,
    )


@makes
def updated(d):
    a = d.matrix()
    n = d.env[a].shape[0]
    d.add(
        "LowRankUpdate(Tridiagonal, A) + I",
        lambda A: pl.LowRankUpdate(
            pl.Tridiagonal(0.2 * np.ones(n - 1), 2.0 * np.ones(n), 0.2 * np.ones(n - 1)), A
        ),
        a,
    )


@makes
def toeplitz_and_noise(d):
    k, j = d.vector(real=True), d.vector(real=True)
    n = d.env[k].shape[0]
    if d.env[j].shape[0] != n:
        raise Skip
    unit = (np.arange(n) == 0) * (2.0 + 2 * n)
    d.add("Toeplitz + Diag(up)", lambda c, v: pl.Toeplitz(np.tanh(c) + unit) + pl.Diag(up(v)), k, j)


@takes
def stacked(d):
    k = d.one_of(d.definite)
    n = d.env[k].shape[0]
    how = d.choice("logdet", "solve", "inv", "eigvalsh", "cholesky", "slogdet", "trace")
    b = d.array(n)

    def f(A):
        S = np.stack([A, 1.5 * A + np.eye(n), A @ A])
        if how == "solve":
            return np.sum(np.linalg.solve(S, np.broadcast_to(b[:, None], (3, n, 1))), axis=(0, 2))
        if how == "trace":
            return np.linalg.trace(S @ S)
        if how == "slogdet":
            return np.linalg.slogdet(S)[1]
        found = {"logdet": pl.logdet, "inv": np.linalg.inv, "eigvalsh": np.linalg.eigvalsh,
                 "cholesky": np.linalg.cholesky}[how](S)  # fmt: skip
        return np.sum(found, axis=0)

    d.add(f"stack {how}", f, k)
