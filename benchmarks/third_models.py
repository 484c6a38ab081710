"""Values, gradients and products with Hessians of twenty-two further models, written on 2026-11-29
before anything was tuned for them: python benchmarks/third_models.py [ROWS [NAME ...]], as
second_order_models.py, which measures them."""

import numpy as np
import scipy.sparse as sp
import second_order_models as measuring

import pylinop as pl

I = pl.Identity
MODELS = measuring.MODELS
MODELS.clear()
model, rng = measuring.model, measuring.rng


def neighbours(g):
    """The adjacency of a grid of g x g."""
    path = sp.diags([1.0, 1.0], [-1, 1], shape=(g, g))
    return sp.csc_array(sp.kron(sp.eye(g), path) + sp.kron(path, sp.eye(g)))


@model
def separable_nugget_by_time(n):
    r = rng(n)
    m = 20
    t = n // m
    xs = np.sort(r.random(m)) * 3
    ts = np.sort(r.random(t)) * 5
    y = r.standard_normal(m * t)

    def f(th):
        K = pl.Kron(
            pl.Kernel("matern32", ts[:, None], length_scale=np.exp(th[0])),
            pl.Kernel("rbf", xs[:, None], length_scale=np.exp(th[1])),
        )
        S = K + np.exp(th[2]) * I(m * t)
        return y @ pl.solve(S, y) + pl.logdet(S)

    return f, [np.array([0.1, -0.2, -1.0])]


@model
def car_prior(n):
    r = rng(n)
    g = int(np.sqrt(n))
    W = neighbours(g)
    D = np.asarray(W.sum(0)).ravel()
    N = g * g
    y = r.standard_normal(N)
    Ws = pl.Sparse(W)
    Ds = pl.Diag(D)

    def f(th):
        Q = np.exp(th[0]) * (Ds - np.tanh(th[1]) * Ws)
        return y @ (Q @ y) - pl.logdet(Q)

    return f, [np.array([0.3, 0.8])]


@model
def leroux_posterior_var(n):
    r = rng(n)
    g = int(np.sqrt(n))
    W = neighbours(g)
    N = g * g
    L = pl.Sparse(sp.csc_array(sp.diags(np.asarray(W.sum(0)).ravel()) - W))
    w = r.random(N) + 0.5
    c = r.random(N)

    def f(th):
        rho = 1 / (1 + np.exp(-th[0]))
        Q = np.exp(th[1]) * (rho * L + (1 - rho) * I(N)) + pl.Diag(w)
        return np.sum(c * pl.diagonal(pl.inv(Q))) + pl.logdet(Q)

    return f, [np.array([0.3, 0.1])]


@model
def ar_precision_obs(n):
    r = rng(n)
    y = r.standard_normal(n)

    def f(th):
        a = np.tanh(th[0])
        one = np.ones(n)
        s = np.exp(th[1])
        P = pl.Tridiagonal(-a * np.ones(n - 1), (1 + a * a) * one, -a * np.ones(n - 1))
        A = P + s * I(n)
        return y @ y - s * (y @ pl.solve(A, y)) + pl.logdet(A) - pl.logdet(P)

    return f, [np.array([0.5, -0.3])]


@model
def toeplitz_plus_trend(n):
    r = rng(n)
    X = np.vander(np.linspace(-1, 1, n), 3)
    y = r.standard_normal(n)
    lag = np.arange(n)

    def f(th):
        T = pl.Toeplitz(np.exp(th[0] - lag * np.exp(th[1])) + np.exp(th[2]) * (lag == 0))
        G = X.T @ pl.solve(T, X)
        b = X.T @ pl.solve(T, y)
        return (
            y @ pl.solve(T, y) - b @ np.linalg.solve(G, b) + pl.logdet(T) + np.linalg.slogdet(G)[1]
        )

    return f, [np.array([0.0, -1.0, -1.0])]


@model
def gcv_smoother(n):
    r = rng(n)
    y = r.standard_normal(n)
    D = pl.FiniteDifference(n, order=2)
    P = D.T @ D

    def f(th):
        A = I(n) + np.exp(th[0]) * P
        e = y - pl.solve(A, y)
        return np.log(e @ e) - 2 * np.log(n - pl.trace(pl.inv(A)))

    return f, [np.array([1.0])]


@model
def loo_ridge(n):
    r = rng(n)
    X = r.standard_normal((n, 12))
    y = r.standard_normal(n)

    def f(th):
        A = np.exp(th[0]) * pl.LowRank(X * np.exp(th[1:13])) + I(n)
        return np.sum((pl.solve(A, y) / pl.diagonal(pl.inv(A))) ** 2)

    return f, [np.concatenate([[0.2], r.standard_normal(12) * 0.1])]


@model
def laplace_gp(n):
    r = rng(n)
    x = np.sort(r.random(n)) * 6
    w = r.random(n) + 0.1
    y = r.standard_normal(n)

    def f(th):
        K = np.exp(th[0]) * pl.Kernel("matern52", x[:, None], length_scale=np.exp(th[1]))
        S = pl.Diag(np.sqrt(w))
        B = I(n) + S @ K @ S
        return y @ (K @ y) * 0.01 + pl.logdet(B) + y @ pl.solve(B, y)

    return f, [np.array([0.0, -0.5])]


@model
def bayes_quadrature(n):
    r = rng(n)
    x = np.sort(r.random(n))
    z = np.exp(-x)

    def f(th):
        K = pl.Kernel("matern32", x[:, None], length_scale=np.exp(th[0])) + np.exp(th[1]) * I(n)
        k = z * np.exp(-x * np.exp(th[0]))
        return k @ pl.solve(K, k)

    return f, [np.array([-0.4, -3.0])]


@model
def three_krons(n):
    r = rng(n)
    a = max(3, int(round(n ** (1 / 3))))
    A = [(lambda M: M @ M.T / a + np.eye(a))(r.standard_normal((a, a))) for _ in range(3)]
    y = r.standard_normal(a**3)

    def f(th):
        K = pl.Kron(*[pl.Dense(np.exp(t) * M + np.eye(a)) for t, M in zip(th[:3], A)]) + np.exp(
            th[3]
        ) * I(a**3)
        return y @ pl.solve(K, y) + pl.logdet(K) + pl.trace(pl.inv(K))

    return f, [np.array([0.1, -0.1, 0.2, -0.5])]


@model
def kl_gaussians(n):
    r = rng(n)
    U = r.standard_normal((n, 5))
    d = r.random(n) + 0.5
    V = r.standard_normal((n, 4))
    e = r.random(n) + 0.5

    def f(th):
        A = pl.Diag(d * np.exp(th[0])) + pl.LowRank(U * np.exp(th[1]))
        B = pl.Diag(e) + np.exp(th[2]) * pl.LowRank(V)
        return pl.trace(pl.inv(B) @ A) + pl.logdet(B) - pl.logdet(A)

    return f, [np.array([0.1, -1.0, -0.2])]


@model
def pagerank(n):
    r = rng(n)
    P = sp.random(n, n, 8 / n, random_state=1, format="csc") + sp.eye(n, format="csc")
    P = sp.csc_array(P @ sp.diags(1 / np.asarray(P.sum(0)).ravel()))
    Ps = pl.Sparse(P)
    c = r.standard_normal(n)
    v = np.ones(n) / n

    def f(th):
        a = 1 / (1 + np.exp(-th[0]))
        u = v * np.exp(th[1] * c)
        u = u / np.sum(u)
        x = (1 - a) * pl.solve(I(n) - a * Ps, u)
        return np.sum(c * x) + np.sum(np.log(x + 0.1))

    return f, [np.array([1.0, 0.1])]


@model
def heat_chain(n):
    r = rng(n)
    u = r.standard_normal(n)
    y = r.standard_normal(n)
    k0 = np.linspace(0, 1, n - 1)

    def f(th):
        k = np.exp(th[0] + th[1] * k0)
        d = np.concatenate([k, [0.0]]) + np.concatenate([[0.0], k])
        A = I(n) + pl.Tridiagonal(-k, d, -k)
        x = u
        for _ in range(6):
            x = pl.solve(A, x)
        return np.sum((x - y) ** 2)

    return f, [np.array([0.1, 0.4])]


@model
def deblur_tv(n):
    r = rng(n)
    y = r.standard_normal(n)
    h = np.exp(-(np.linspace(-2, 2, 9) ** 2))
    w = r.random(n - 1) + 0.5
    D = pl.FiniteDifference(n, order=1)

    def f(th):
        H = pl.Convolution(h * np.exp(-np.exp(th[0]) * np.linspace(-1, 1, 9) ** 2), n, mode="same")
        A = H.T @ H + np.exp(th[1]) * (D.T @ pl.Diag(w) @ D) + 1e-2 * I(n)
        return y @ (H @ pl.solve(A, H.T @ y))

    return f, [np.array([-0.5, -1.0])]


@model
def lowrank_process_diag(n):
    r = rng(n)
    x = np.sort(r.random(n))
    F = np.stack([np.cos(j * x) for j in range(1, 11)], 1)
    y = r.standard_normal(n)

    def f(th):
        s = np.exp(-np.exp(th[0]) * np.arange(10))
        N = np.exp(th[1] + th[2] * x)
        A = pl.Diag(N) + pl.Dense(F) @ pl.Diag(s) @ pl.Dense(F).T
        return y @ pl.solve(A, y) + pl.logdet(A) + np.sum(pl.diagonal(pl.inv(A)) * x)

    return f, [np.array([-1.0, -0.5, 0.3])]


@model
def block_cca(n):
    r = rng(n)
    m = n // 2
    U = r.standard_normal((m, 3))
    V = r.standard_normal((m, 3))
    y = r.standard_normal(2 * m)

    def f(th):
        A = np.exp(th[0]) * I(m) + pl.LowRank(U)
        B = np.exp(th[1]) * I(m) + pl.LowRank(V)
        C = np.exp(th[2]) * (pl.Dense(U) @ pl.Dense(V).T)
        M = pl.Block([[A, C], [C.T, B]])
        return y @ pl.solve(M, y) + pl.logdet(M)

    return f, [np.array([0.3, 0.2, -1.0])]


@model
def random_slopes(n):
    r = rng(n)
    g = n // 10
    Z = np.stack([np.ones(10), np.linspace(0, 1, 10)], 1)
    y = r.standard_normal(10 * g)
    X = pl.LowRank(r.standard_normal((10 * g, 2)))

    def f(th):
        L = (
            np.array([[1.0, 0], [0, 0]]) * np.exp(th[0])
            + np.array([[0.0, 0], [1, 0]]) * th[1]
            + np.array([[0.0, 0], [0, 1]]) * np.exp(th[2])
        )
        b = pl.Dense(Z) @ pl.Dense(L @ L.T) @ pl.Dense(Z).T + np.exp(th[3]) * I(10)
        A = pl.Kron(I(g), b) + 10.0 * X
        return y @ pl.solve(A, y) + pl.logdet(A)

    return f, [np.array([0.1, 0.2, -0.3, -0.5])]


@model
def dynamic_factor(n):
    r = rng(n)
    p = 6
    t = n // p
    lam = r.standard_normal((p, 2))
    y = r.standard_normal(p * t)
    lag = np.arange(t)

    def f(th):
        K = pl.Kron(
            pl.Toeplitz(np.exp(-lag * np.exp(th[0]))), pl.Dense(np.exp(th[1]) * (lam @ lam.T))
        ) + pl.Kron(I(t), pl.Diag(np.exp(th[2:8])))
        return y @ pl.solve(K, y) + pl.logdet(K)

    return f, [np.concatenate([[-1.0, 0.1], r.standard_normal(6) * 0.1 - 0.5])]


@model
def circulant_gp(n):
    r = rng(n)
    y = r.standard_normal(n)
    lag = np.minimum(np.arange(n), n - np.arange(n))

    def f(th):
        C = pl.Circulant(np.exp(-lag * np.exp(th[0]))) + np.exp(th[1]) * I(n)
        return y @ pl.solve(C, y) + pl.logdet(C) + pl.diagonal(pl.inv(C))[0]

    return f, [np.array([-1.0, -1.0])]


@model
def hetero_toeplitz(n):
    r = rng(n)
    y = r.standard_normal(n)
    lag = np.arange(n)
    x = np.linspace(0, 1, n)

    def f(th):
        s = np.exp(th[0] * np.sin(6 * x))
        S = pl.Diag(s)
        T = pl.Toeplitz(np.exp(-lag * np.exp(th[1])) + 0.1 * (lag == 0))
        K = S @ T @ S
        return y @ pl.solve(K, y) + pl.logdet(K)

    return f, [np.array([0.3, -1.0])]


@model
def schur_marginal(n):
    r = rng(n)
    k = 8
    X = r.standard_normal((n, k))
    d0 = r.random(n) + 0.5

    def f(th):
        D = pl.Diag(d0 * np.exp(th[0]))
        M = pl.Block([[D, pl.Dense(X)], [pl.Dense(X.T), -np.exp(th[1]) * I(k)]])
        return (
            pl.logdet(np.exp(th[1]) * I(k) + pl.Dense(X.T) @ pl.inv(D) @ pl.Dense(X))
            + pl.slogdet(M)[1]
        )

    return f, [np.array([0.3, 0.1])]


@model
def multi_output_lmc(n):
    r = rng(n)
    p = 3
    t = n // p
    x = np.sort(r.random(t)) * 4
    a = r.standard_normal((p, 1))
    b = r.standard_normal((p, 1))
    y = r.standard_normal(p * t)

    def f(th):
        K = (
            pl.Kron(
                pl.Dense(a @ a.T), pl.Kernel("matern12", x[:, None], length_scale=np.exp(th[0]))
            )
            + pl.Kron(
                pl.Dense(b @ b.T), pl.Kernel("matern32", x[:, None], length_scale=np.exp(th[1]))
            )
            + np.exp(th[2]) * I(p * t)
        )
        return y @ pl.solve(K, y) + pl.logdet(K)

    return f, [np.array([-0.3, 0.4, -1.0])]


if __name__ == "__main__":
    measuring.main()
