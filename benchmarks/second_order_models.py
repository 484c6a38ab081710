"""Values, gradients and products with Hessians of models that were written before anything was
tuned for them: python benchmarks/second_order_models.py [ROWS [NAME ...]]

Milliseconds, minima of three calls in turn of the same numbers, and the largest error of the
gradient and of the product beside sixth-order differences, relative; 1,000 rows if nothing is
given. Threads: OPENBLAS_NUM_THREADS, 1 if it is not set.
"""

import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import pylinop as pl

I = pl.Identity
MODELS = {}


def model(f):
    MODELS[f.__name__.replace("_", " ")] = f
    return f


def rng(n):
    return np.random.default_rng(n)


@model
def var_smoother(n):
    r = rng(n)
    m = n // 4
    Q = r.standard_normal((4, 4)) / 4
    y = r.standard_normal(4 * m)

    def f(th):
        A = np.exp(th[0]) * Q
        D = np.eye(4) * np.exp(th[1]) + A.T @ A
        P = pl.BlockTridiagonal(np.ones((m - 1, 1, 1)) * (-A)[None], np.ones((m, 1, 1)) * D[None])
        P = (P + P.T) * 0.5
        return y @ pl.solve(P, y) - pl.logdet(P)

    return f, [np.array([-0.5, 0.9])]


@model
def fitc(n):
    r = rng(n)
    x = np.sort(r.random(n)) * 10
    z = np.linspace(0, 10, 30)
    y = np.sin(x)

    def f(th):
        Kxz = np.exp(-0.5 * ((x[:, None] - z) / np.exp(th[0])) ** 2)
        Kzz = np.exp(-0.5 * ((z[:, None] - z) / np.exp(th[0])) ** 2) + 1e-6 * np.eye(30)
        W = pl.solve(Kzz, Kxz.T)
        q = (Kxz * W.T).sum(axis=1)
        A = pl.Diag(1.0 - q + np.exp(th[1])) + pl.LowRank(Kxz, W.T)
        return pl.inv_quad_logdet(A, y)[0] + pl.logdet(A)

    return f, [np.array([0.1, -1.0])]


@model
def multitask(n):
    r = rng(n)
    t = 8
    m = n // 8
    B = r.standard_normal((t, 2))
    x = r.random(m)
    y = r.standard_normal(t * m)

    def f(B, th):
        C = pl.Dense(B @ B.T + np.eye(t) * np.exp(th[0]), "pos")
        K = pl.Kernel("matern52", x[:, None], length_scale=np.exp(th[1]))
        A = pl.Kron(C, K) + np.exp(th[2]) * I(t * m)
        return y @ pl.solve(A, y) + pl.logdet(A)

    return f, [B, np.array([0.0, -1.0, -1.0])]


@model
def multitask_hetero(n):
    r = rng(n)
    t = 8
    m = n // 8
    B = r.standard_normal((t, 2))
    x = r.random(m)
    y = r.standard_normal(t * m)

    def f(B, th):
        C = pl.Dense(B @ B.T + np.eye(t) * np.exp(th[0]), "pos")
        K = pl.Kernel("matern52", x[:, None], length_scale=np.exp(th[1]))
        A = pl.Kron(C, K) + pl.Kron(pl.Diag(np.exp(th[2:])), I(m))
        return y @ pl.solve(A, y) + pl.logdet(A)

    return f, [B, np.r_[0.0, -1.0, -np.ones(t)]]


def W_of(n, r):
    q = sp.random_array((n, n), density=3 / n, rng=r)
    q = q + q.T
    d = np.maximum(np.asarray(q.sum(1)).ravel(), 1e-9)
    return sp.csr_array(sp.diags_array(1 / d) @ q)


@model
def sar(n):
    r = rng(n)
    W = pl.Sparse(W_of(n, r))
    y = r.standard_normal(n)

    def f(th):
        A = I(n) - np.tanh(th[0]) * W
        e = A @ y
        return (e @ e) * np.exp(-th[1]) - 2 * pl.slogdet(A)[1] + n * th[1]

    return f, [np.array([0.3, 0.1])]


@model
def matrix_normal(n):
    r = rng(n)
    p, q = n // 20, 20
    X = r.standard_normal((p, q))
    a = r.standard_normal((q, 3))

    def f(a, th):
        U = pl.Toeplitz(np.exp(-np.arange(p) * np.exp(th[0]))) + np.exp(th[1]) * I(p)
        V = pl.Diag(np.exp(th[2]) * np.ones(q)) + pl.LowRank(a)
        return pl.trace(pl.inv(V) @ X.T @ pl.inv(U) @ X) + q * pl.logdet(U) + p * pl.logdet(V)

    return f, [a, np.array([0.0, -1.0, 0.2])]


@model
def trend_filter(n):
    r = rng(n)
    y = np.cumsum(r.standard_normal(n))
    e = np.ones(n)
    D = pl.Sparse(
        sp.csr_array(
            sp.diags_array([e[:-2], -2 * e[:-2], e[:-2]], offsets=[0, 1, 2], shape=(n - 2, n))
        )
    )

    def f(th, w):
        A = I(n) + np.exp(th[0]) * D.T @ pl.Diag(np.exp(w)) @ D
        m = pl.solve(A, y)
        return ((m - y) ** 2).sum() + pl.trace(pl.inv(A))

    return f, [np.array([1.0]), 0.1 * r.standard_normal(n - 2)]


@model
def whittle(n):
    r = rng(n)
    y = r.standard_normal(n)
    k = np.minimum(np.arange(n), n - np.arange(n))

    def f(th):
        C = pl.Circulant(
            np.exp(th[0]) * np.exp(-((k * np.exp(th[1])) ** 2) / 2 / n) + np.exp(th[2]) * (k == 0)
        )
        return y @ pl.solve(C, y) + pl.logdet(C)

    return f, [np.array([0.0, 1.0, -1.0])]


@model
def d_optimal(n):
    r = rng(n)
    X = r.standard_normal((n, 20))

    def f(w):
        e = np.exp(w)
        p = e / e.sum()
        return -pl.logdet(pl.Dense(X.T) @ pl.Diag(p) @ pl.Dense(X))

    return f, [0.1 * r.standard_normal(n)]


@model
def a_optimal(n):
    r = rng(n)
    X = r.standard_normal((n, 20))

    def f(w):
        e = np.exp(w)
        p = e / e.sum()
        return pl.trace(pl.inv(pl.Dense(X.T) @ pl.Diag(p) @ pl.Dense(X) + 1e-3 * I(20)))

    return f, [0.1 * r.standard_normal(n)]


@model
def edge_weights(n):
    r = rng(n)
    m = 2 * n
    i = r.integers(0, n, m)
    j = (i + r.integers(1, 6, m)) % n
    k = np.arange(m)
    B = pl.Sparse(
        sp.csr_array((np.r_[np.ones(m), -np.ones(m)], (np.r_[k, k], np.r_[i, j])), shape=(m, n))
    )
    y = r.standard_normal(n)

    def f(w, c):
        L = B.T @ pl.Diag(np.exp(w)) @ B + np.exp(c[0]) * I(n)
        return y @ pl.solve(L, y) + pl.logdet(L) - w.sum()

    return f, [0.1 * r.standard_normal(m), np.array([-1.0])]


@model
def edge_kirchhoff(n):
    r = rng(n)
    m = 2 * n
    i = r.integers(0, n, m)
    j = (i + r.integers(1, 6, m)) % n
    k = np.arange(m)
    B = pl.Sparse(
        sp.csr_array((np.r_[np.ones(m), -np.ones(m)], (np.r_[k, k], np.r_[i, j])), shape=(m, n))
    )

    def f(w, c):
        L = B.T @ pl.Diag(np.exp(w)) @ B + np.exp(c[0]) * I(n)
        return pl.trace(pl.inv(L)) + np.exp(w).sum()

    return f, [0.1 * r.standard_normal(m), np.array([-1.0])]


@model
def ar1_hetero(n):
    r = rng(n)
    y = r.standard_normal(n)

    def f(th, s):
        A = pl.Toeplitz(np.exp(th[0]) * np.tanh(th[1]) ** np.arange(n)) + pl.Diag(np.exp(s))
        return y @ pl.solve(A, y) + pl.logdet(A)

    return f, [np.array([0.0, 0.6]), 0.1 * r.standard_normal(n)]


@model
def pde_2d(n):
    r = rng(n)
    m = int(n**0.5)
    T = pl.Tridiagonal(-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1))
    y = r.standard_normal(m * m)

    def f(th):
        A = np.exp(th[0]) * pl.KronSum(T, T) + np.exp(th[1]) * I(m * m)
        u = pl.solve(A, y)
        return ((u - 0.3 * y) ** 2).sum() + pl.logdet(A)

    return f, [np.array([0.0, -1.0])]


@model
def pde_reaction(n):
    r = rng(n)
    m = int(n**0.5)
    T = pl.Tridiagonal(-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1))
    y = r.standard_normal(m * m)

    def f(k):
        A = pl.KronSum(T, T) + pl.Diag(np.exp(k))
        u = pl.solve(A, y)
        return ((u - 0.3 * y) ** 2).sum() + 1e-2 * (k**2).sum()

    return f, [0.1 * r.standard_normal(m * m)]


@model
def ppca(n):
    r = rng(n)
    Y = r.standard_normal((n, 60))
    W = r.standard_normal((n, 5))

    def f(W, s):
        C = pl.LowRank(W) + np.exp(s[0]) * I(n)
        return pl.trace(pl.inv(C) @ pl.Dense(Y) @ pl.Dense(Y.T)) / 60 + pl.logdet(C)

    return f, [W, np.array([0.0])]


@model
def factor_heywood(n):
    r = rng(n)
    Y = r.standard_normal((n, 2 * n))
    S = Y @ Y.T / (2 * n)
    W = r.standard_normal((n, 5))

    def f(W, s):
        C = pl.LowRank(W) + pl.Diag(np.exp(s))
        return pl.trace(pl.inv(C) @ S) + pl.logdet(C)

    return f, [W, 0.1 * r.standard_normal(n)]


@model
def sylvester(n):
    r = rng(n)
    m = int(n**0.5)
    A0 = r.standard_normal((m, m)) / m**0.5 / 3
    C = r.standard_normal(m * m)

    def f(A):
        K = pl.KronSum(pl.Dense(A + 3 * np.eye(m)), pl.Dense(A + 2 * np.eye(m)))
        x = pl.solve(K, C)
        return x @ x

    return f, [A0]


@model
def lyapunov(n):
    r = rng(n)
    m = int(n**0.5)
    A0 = r.standard_normal((m, m)) / m**0.5 / 3
    Q = np.eye(m)

    def f(A):
        K = pl.Identity(m * m) - pl.Kron(pl.Dense(A), pl.Dense(A))
        x = pl.solve(K, Q.ravel())
        return x[0] + (x * x).sum()

    return f, [A0]


@model
def groups(n):
    r = rng(n)
    g = n // 20
    Z = r.standard_normal((g, 20, 3))
    u = r.standard_normal((n, 2))
    y = r.standard_normal(n)

    def f(L, th):
        blocks = pl.BlockDiag(Z @ (L @ L.T) @ np.swapaxes(Z, 1, 2) + np.exp(th[0]) * np.eye(20))
        A = blocks + np.exp(th[1]) * pl.LowRank(u)
        return y @ pl.solve(A, y) + pl.logdet(A)

    return f, [np.eye(3) + 0.1 * r.standard_normal((3, 3)), np.array([0.0, -1.0])]


@model
def deconv(n):
    r = rng(n)
    y = r.standard_normal(n)
    t = np.arange(-20, 21)

    def f(th):
        h = np.exp(-0.5 * (t * np.exp(th[0])) ** 2)
        H = pl.Convolution(h, n, mode="same")
        A = H.T @ H + np.exp(th[1]) * I(n)
        x = pl.solve(A, H.T @ y)
        return ((H @ x - y) ** 2).sum()

    return f, [np.array([-1.0, -1.0])]


@model
def dpp(n):
    r = rng(n)
    V = r.standard_normal((n, 20)) / 5
    S = np.sort(r.choice(n, 10, replace=False))

    def f(V):
        K = pl.LowRank(V) + 1e-2 * I(n)
        H = pl.Selection(S, n)
        return pl.logdet(H @ K @ H.T) - pl.logdet(I(n) + K)

    return f, [V]


@model
def wishart(n):
    r = rng(n)
    p = max(n // 8, 40)
    L = np.tril(r.standard_normal((p, p)) / p) + 2 * np.eye(p)
    S = np.cov(r.standard_normal((p, 2 * p)))

    def f(L):
        T = pl.Dense(L, "lower triangular")
        return pl.trace(pl.inv(T @ T.T) @ S) + 2 * pl.logdet(T)

    return f, [L]


@model
def state_space_ll(n):
    r = rng(n)
    x = np.sort(r.random(n)) * n / 10
    y = r.standard_normal(n)

    def f(th):
        K = pl.Kernel(
            "matern32", x[:, None], length_scale=np.exp(th[0]), variance=np.exp(th[1])
        ) + np.exp(th[2]) * I(n)
        return pl.inv_quad_logdet(K, y)[0] + pl.logdet(K)

    return f, [np.array([0.0, 0.0, -1.0])]


@model
def gmrf_posterior(n):
    r = rng(n)
    m = int(n**0.5)
    N = m * m
    e = np.ones(m)
    T = sp.diags_array([-e[1:], 2 * e, -e[1:]], offsets=[-1, 0, 1])
    G = pl.Sparse(sp.csr_array(sp.kron(T, sp.eye_array(m)) + sp.kron(sp.eye_array(m), T)))
    y = r.standard_normal(N)

    def f(th, w):
        Q = np.exp(th[0]) * (G @ G) + np.exp(th[1]) * G + 1e-3 * I(N)
        P = Q + pl.Diag(np.exp(w))
        mu = pl.solve(P, np.exp(w) * y)
        return ((mu - y) ** 2 * np.exp(w)).sum() - pl.logdet(Q) + pl.logdet(P)

    return f, [np.array([-1.0, 0.0]), 0.1 * r.standard_normal(N)]


@model
def portfolio(n):
    r = rng(n)
    F = r.standard_normal((n, 8))
    mu = r.standard_normal(n)
    one = np.ones(n)

    def f(F, d):
        S = pl.LowRank(F) + pl.Diag(np.exp(d))
        a = pl.solve(S, mu)
        b = pl.solve(S, one)
        return (mu @ a) - (one @ a) ** 2 / (one @ b)

    return f, [F, 0.1 * r.standard_normal(n)]


@model
def bayes_linear_evidence(n):
    r = rng(n)
    X = r.standard_normal((n, 40))
    y = r.standard_normal(n)

    def f(a, s):
        V = pl.Dense(X) @ pl.Diag(np.exp(a)) @ pl.Dense(X.T) + np.exp(s[0]) * I(n)
        return y @ pl.solve(V, y) + pl.logdet(V)

    return f, [0.1 * r.standard_normal(40), np.array([0.0])]


@model
def heat_graph(n):
    r = rng(n)
    m = int(n**0.5)
    e = np.ones(m)
    T = pl.Tridiagonal(-e[1:], 2 * e, -e[1:])
    y = r.standard_normal(m * m)

    def f(t):
        A = pl.KronSum(T, T)
        u = pl.expm(-np.exp(t[0]) * A) @ y
        return ((u - y) ** 2).sum()

    return f, [np.array([-1.0])]


@model
def periodic_gp_lowrank_mean(n):
    r = rng(n)
    k = np.minimum(np.arange(n), n - np.arange(n))
    H = r.standard_normal((n, 4))
    y = r.standard_normal(n)

    def f(th):
        C = pl.Circulant(np.exp(th[0] - k * np.exp(th[1]) / 10)) + np.exp(th[2]) * I(n)
        G = H.T @ pl.solve(C, H)
        b = pl.solve(G, H.T @ pl.solve(C, y))
        e = y - H @ b
        return e @ pl.solve(C, e) + pl.logdet(C) + pl.logdet(G)

    return f, [np.array([0.0, 0.0, -1.0])]


@model
def two_krons(n):
    r = rng(n)
    p = 20
    q = n // p
    y = r.standard_normal(p * q)

    def S(k):
        x = r.standard_normal((k, k))
        return pl.Dense(x @ x.T / k + np.eye(k), "pos")

    A, B, C, D = S(p), S(q), S(p), S(q)

    def f(th):
        M = np.exp(th[0]) * pl.Kron(A, B) + np.exp(th[1]) * pl.Kron(C, D)
        return y @ pl.solve(M, y) + pl.logdet(M)

    return f, [np.array([0.1, -0.2])]


@model
def two_krons_factors(n):
    r = rng(n)
    p = 10
    q = n // p
    y = r.standard_normal(p * q)

    def S(k):
        x = r.standard_normal((k, k))
        return x @ x.T / k + np.eye(k)

    A, D = S(p), 1 + r.random(q)

    def f(A, L, d):
        M = pl.Kron(
            pl.Dense(0.5 * (A + A.T), "sym"), pl.Dense(L @ L.T + np.eye(q), "pos")
        ) + pl.Kron(pl.Identity(p), pl.Diag(np.exp(d)))
        return y @ pl.solve(M, y) + pl.logdet(M)

    return f, [A, r.standard_normal((q, 2)), np.log(D)]


def best(f, p):
    """The least time of a call, in ms, at points that are new each time: nothing is kept."""
    f(*p)
    times = []
    for i in range(3):
        new = [x + 1e-9 * (i + 1) for x in p]
        start = time.perf_counter()
        f(*new)
        times.append(time.perf_counter() - start)
        if sum(times) > 5:
            break
    return 1e3 * min(times)


def differences(at, h=1e-3):
    return (45 * (at(h) - at(-h)) - 9 * (at(2 * h) - at(-2 * h)) + at(3 * h) - at(-3 * h)) / (
        60 * h
    )


def flat(found):
    return np.concatenate([np.ravel(x) for x in (found if isinstance(found, tuple) else (found,))])


def measured(name, n):
    f, p = MODELS[name](n)
    r, every = rng(5), tuple(range(len(p)))
    d = tuple(r.standard_normal(x.shape) for x in p)
    both, second = pl.value_and_grad(f, argnums=every), pl.hvp(f, argnums=every)

    def at(t):
        return both(*(x + t * y for x, y in zip(p, d, strict=True)))

    value = best(lambda *x: float(pl.evaluate(f(*map(pl.lazy, x)))), p)
    gradient, product = best(both, p), best(lambda *x: second(*x, d), p)
    slope, due = flat(at(0)[1]) @ flat(d), differences(lambda t: float(at(t)[0]))
    twice, want = flat(second(*p, d)), differences(lambda t: flat(at(t)[1]))
    errors = abs(slope / due - 1), np.abs(twice - want).max() / np.abs(want).max()
    print(
        f"{name:28}{value:10.2f}{gradient:10.2f}{gradient / value:8.1f}{product:10.2f}"
        f"{product / gradient:8.1f}   {errors[0]:.0e} {errors[1]:.0e}",
        flush=True,
    )


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(
        f"{n} rows, ms: value, gradient, over it, product, over that; load {os.getloadavg()[0]:.1f}"
    )
    warnings.simplefilter("ignore")
    for name in sys.argv[2:] or MODELS:
        measured(name, n)


if __name__ == "__main__":
    main()
