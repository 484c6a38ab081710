"""Values, gradients and products with Hessians of twenty further models, written on 2026-11-29
before anything was tuned for them: python benchmarks/fourth_models.py [ROWS [NAME ...]], as
second_order_models.py, which measures them."""

import numpy as np
import scipy.sparse as sp
import second_order_models as measuring

import pylinop as pl

I = pl.Identity
MODELS = measuring.MODELS
MODELS.clear()
model, rng = measuring.model, measuring.rng


def grid_laplacian(g):
    path = sp.diags([1.0, 1.0], [-1, 1], shape=(g, g))
    W = sp.csc_array(sp.kron(sp.eye(g), path) + sp.kron(path, sp.eye(g)))
    return sp.csc_array(sp.diags(np.asarray(W.sum(0)).ravel()) - W), W


@model
def student_process(n):
    """A multivariate t: log(1 + y' S^-1 y / nu)."""
    r = rng(n)
    t = np.sort(r.random(n)) * 10
    y = r.standard_normal(n)

    def f(th):
        K = pl.Kernel("matern32", t[:, None], length_scale=np.exp(th[0]))
        S = np.exp(th[1]) * K + np.exp(th[2]) * I(n)
        nu = np.exp(th[3])
        return (nu + n) / 2 * np.log1p(y @ pl.solve(S, y) / nu) + 0.5 * pl.logdet(S)

    return f, [np.array([0.1, 0.2, -1.0, 1.0])]


@model
def variational_gaussian(n):
    """KL(N(m, D + L L') | N(0, T)) of a Toeplitz prior."""
    r = rng(n)
    k = 5
    m, s, L = r.standard_normal(n), r.standard_normal(n) / 4, r.standard_normal((n, k)) / 4

    def f(m, s, L, ls):
        T = pl.Toeplitz(np.exp(-np.arange(n) * np.exp(ls) / 5) + 0.1 * (np.arange(n) == 0))
        S = pl.Diag(np.exp(s)) + pl.LowRank(L)
        return 0.5 * (pl.trace(pl.inv(T) @ S) + m @ pl.solve(T, m) + pl.logdet(T) - pl.logdet(S))

    return f, [m, s, L, np.array(0.1)]


@model
def vfe_bound(n):
    """Titsias: a low rank plus noise, and the trace of what it leaves out."""
    r = rng(n)
    x = np.sort(r.random(n))[:, None] * 6
    z = np.linspace(0, 6, 25)[:, None]
    y = r.standard_normal(n)

    def f(th):
        Kuu = pl.Kernel("rbf", z, length_scale=np.exp(th[0])) + 1e-6 * I(25)
        Kuf = pl.Kernel("rbf", z, x, length_scale=np.exp(th[0]))
        s = np.exp(th[1])
        Q = Kuf.T @ pl.inv(Kuu) @ Kuf
        S = Q + s * I(n)
        return y @ pl.solve(S, y) + pl.logdet(S) + (n - pl.trace(Q)) / s

    return f, [np.array([0.1, -1.0])]


@model
def tera_lasso(n):
    """trace(S (A + B)) - logdet of a Kronecker sum."""
    r = rng(n)
    p = 25
    q = n // p
    A, B = (np.eye(k) * 3 + 0.1 * r.standard_normal((k, k)) for k in (p, q))
    SA, SB = r.standard_normal((p, p)), r.standard_normal((q, q))
    SA, SB = SA @ SA.T / p, SB @ SB.T / q

    def f(A, B):
        As, Bs = (A + A.T) / 2, (B + B.T) / 2
        P = pl.KronSum(pl.Dense(As, "sym"), pl.Dense(Bs, "sym"))
        return np.sum(As * SA) * q + np.sum(Bs * SB) * p - pl.logdet(P)

    return f, [A, B]


@model
def intraclass(n):
    """Kron(I, A) + Kron(1 1', B): repeated vectors within groups."""
    r = rng(n)
    k, m = 4, 5
    g = n // (k * m)
    a, b = np.eye(k) + 0.1 * r.standard_normal((k, k)), np.eye(k) + 0.1 * r.standard_normal((k, k))
    y = r.standard_normal(g * m * k)
    ones = np.ones((m, m))

    def f(a, b):
        A, B = a @ a.T + 0.1 * np.eye(k), b @ b.T
        V = pl.Kron(I(g), pl.Kron(I(m), A) + pl.Kron(pl.Dense(ones, "sym"), B))
        return y @ pl.solve(V, y) + pl.logdet(V)

    return f, [a, b]


@model
def spatial_durbin(n):
    """logdet(I - a W) and logdet(I - b W): a lag and an error of the same neighbours."""
    r = rng(n)
    g = int(np.sqrt(n))
    _, W = grid_laplacian(g)
    N = g * g
    W = sp.csr_array(sp.diags(1 / np.asarray(W.sum(1)).ravel()) @ W)
    X = r.standard_normal((N, 3))
    y = r.standard_normal(N)
    Ws = pl.Sparse(W)

    def f(th):
        P = I(N) - np.tanh(th[0]) * Ws
        R = I(N) - np.tanh(th[1]) * Ws
        e = R @ (P @ y - X @ th[2:5])
        return np.exp(-th[5]) * (e @ e) + N * th[5] - 2 * pl.slogdet(P)[1] - 2 * pl.slogdet(R)[1]

    return f, [np.array([0.3, 0.2, 0.1, 0.2, 0.3, 0.1])]


@model
def effective_resistance(n):
    """trace((L + 11'/N)^-1) of weights of edges, and the current between two nodes."""
    r = rng(n)
    g = int(np.sqrt(n))
    N = g * g
    at = np.arange(N).reshape(g, g)
    pairs = np.r_[
        np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]
    ]
    m = len(pairs)
    rows = np.repeat(np.arange(m), 2)
    B = pl.Sparse(sp.csr_array((np.tile([1.0, -1.0], m), (rows, pairs.ravel())), shape=(m, N)))
    b = np.zeros(N)
    b[0], b[-1] = 1, -1
    one = np.ones((N, 1)) / np.sqrt(N)

    def f(w):
        L = B.T @ pl.Diag(np.exp(w)) @ B + pl.LowRank(one)
        return pl.trace(pl.inv(L)) + b @ pl.solve(L, b)

    return f, [r.standard_normal(m) / 3]


@model
def c_optimal(n):
    """c' (X' W X)^-1 c of a design's weights."""
    r = rng(n)
    X = r.standard_normal((n, 30))
    c = r.standard_normal(30)
    Xd = pl.Dense(X)

    def f(w):
        M = Xd.T @ pl.Diag(np.exp(w)) @ Xd
        return c @ pl.solve(M, c) - 0.1 * pl.logdet(M)

    return f, [r.standard_normal(n) / 3]


@model
def plda(n):
    """Between and within classes: Kron(11', F F') + Kron(I, G G' + D) of m vectors of a class."""
    r = rng(n)
    d, m = n // 5, 5
    F, G = r.standard_normal((d, 4)) / 2, r.standard_normal((d, 3)) / 2
    s = r.standard_normal(d) / 4
    y = r.standard_normal(d * m)
    one = np.ones((m, 1))

    def f(F, G, s):
        within = pl.Diag(np.exp(s)) + pl.LowRank(G)
        V = pl.Kron(I(m), within) + pl.LowRank(pl.Kron(pl.Dense(one), pl.Dense(F)))
        return y @ pl.solve(V, y) + pl.logdet(V)

    return f, [F, G, s]


@model
def wiener_power(n):
    """A circulant signal and blur: the expected error of Wiener's filter, and a fit."""
    r = rng(n)
    lag = np.minimum(np.arange(n), n - np.arange(n))
    y = r.standard_normal(n)

    def f(th):
        H = pl.Circulant(np.exp(-np.exp(th[0]) * lag**2))
        S = pl.Circulant(np.exp(-np.exp(th[1]) * lag) + 0.01 * (lag == 0))
        C = H @ S @ H.T + np.exp(th[2]) * I(n)
        return pl.trace(S - S @ H.T @ pl.inv(C) @ H @ S) + y @ pl.solve(C, y) + pl.logdet(C)

    return f, [np.array([-2.0, -1.0, -1.0])]


@model
def sylvester_flow(n):
    """log|det(I + diag(h) Q R)|, thin, and a push of the density."""
    r = rng(n)
    k = 8
    Q, R = r.standard_normal((n, k)) / np.sqrt(n), r.standard_normal((k, n)) / np.sqrt(n)
    z = r.standard_normal(n)

    def f(Q, R):
        h = 1 - np.tanh(R @ z) ** 2
        J = I(n) + pl.Dense(Q) @ pl.Diag(h) @ pl.Dense(R)
        x = z + Q @ np.tanh(R @ z)
        return 0.5 * (x @ x) - pl.slogdet(J)[1]

    return f, [Q, R]


@model
def ou_smoother(n):
    """An Ornstein-Uhlenbeck state under noise of each point, a trend taken out by GLS."""
    r = rng(n)
    t = np.sort(r.random(n)) * 20
    X = np.c_[np.ones(n), t]
    y = r.standard_normal(n)
    e = 0.3 + r.random(n)

    def f(th):
        K = np.exp(th[0]) * pl.Kernel("matern12", t[:, None], length_scale=np.exp(th[1]))
        S = K + pl.Diag(np.exp(th[2]) * e)
        Z = pl.solve(S, X)
        M = X.T @ Z
        b = pl.solve(pl.Dense(M), Z.T @ y)
        res = y - X @ b
        return res @ pl.solve(S, res) + pl.logdet(S) + pl.logdet(pl.Dense(M))

    return f, [np.array([0.0, 0.3, -0.5])]


@model
def var_precision(n):
    """A vector autoregression as a block tridiagonal precision, seen with noise."""
    r = rng(n)
    k = 4
    T = n // k
    A = 0.4 * np.eye(k) + 0.05 * r.standard_normal((k, k))
    q = r.standard_normal(k) / 4
    y = r.standard_normal(T * k)
    shift = pl.Sparse(sp.eye_array(T, k=-1, format="csr"))

    def f(A, q, s):
        Q = np.exp(q)
        inner = pl.Dense(A.T @ (Q[:, None] * A))
        D = pl.Kron(I(T), pl.Diag(Q)) + pl.Kron(pl.Diag(np.r_[np.ones(T - 1), 0]), inner)
        C = pl.Kron(shift, pl.Dense(Q[:, None] * A))
        P = D - C - C.T
        return (
            y @ pl.solve(P + np.exp(s) * I(T * k), y)
            - pl.logdet(P)
            + pl.logdet(P + np.exp(s) * I(T * k))
        )

    return f, [A, q, np.array(0.2)]


@model
def hierarchical_shrinkage(n):
    """A regression of more columns than rows with a variance of each column."""
    r = rng(n)
    m = n // 10
    X = r.standard_normal((m, n)) / np.sqrt(n)
    y = r.standard_normal(m)
    Xd = pl.Dense(X)

    def f(s, noise):
        V = Xd @ pl.Diag(np.exp(s)) @ Xd.T + np.exp(noise) * I(m)
        return y @ pl.solve(V, y) + pl.logdet(V) + np.sum(np.log1p(np.exp(2 * s)))

    return f, [r.standard_normal(n) / 3, np.array(-1.0)]


@model
def ssm_with_inputs(n):
    """A tridiagonal system's response to loads: least squares by the parameters of the medium."""
    r = rng(n)
    F = r.standard_normal((n, 4))
    data = r.standard_normal((n, 4))

    def f(a):
        c = np.exp(a)
        K = pl.Tridiagonal(-c[1:-1], c[:-1] + c[1:], -c[1:-1]) + 0.01 * I(n)
        u = pl.solve(K, F)
        return np.sum((u - data) ** 2) + 0.1 * np.sum((a[1:] - a[:-1]) ** 2)

    return f, [r.standard_normal(n + 1) / 3]


@model
def gcca(n):
    """A sum of projectors onto views with ridges: how much of M they keep."""
    r = rng(n)
    X, Y = r.standard_normal((n, 20)), r.standard_normal((n, 15))
    M = r.standard_normal((n, 3))

    def f(th, W):
        A, B = pl.Dense(X), pl.Dense(Y @ W)
        P = A @ pl.inv(A.T @ A + np.exp(th[0]) * I(20)) @ A.T
        R = B @ pl.inv(B.T @ B + np.exp(th[1]) * I(15)) @ B.T
        S = P + R + np.exp(th[2]) * I(n)
        return np.sum(M * pl.solve(S, M)) + pl.logdet(S) + pl.trace(P @ R)

    return f, [np.array([0.5, 0.2, -0.3]), np.eye(15) + r.standard_normal((15, 15)) / 10]


@model
def separable_plus_low_rank(n):
    """Space by time, and a few fixed effects with wide priors."""
    r = rng(n)
    p = 25
    q = n // p
    a, b = r.standard_normal((p, p)) / 6 + np.eye(p), r.standard_normal((q, q)) / 9 + np.eye(q)
    U = r.standard_normal((p * q, 4))
    y = r.standard_normal(p * q)

    def f(a, b, th):
        K = pl.Kron(pl.Dense(a @ a.T, "pos"), pl.Dense(b @ b.T, "pos"))
        S = K + np.exp(th[0]) * I(p * q) + np.exp(th[1]) * pl.LowRank(U)
        return y @ pl.solve(S, y) + pl.logdet(S)

    return f, [a, b, np.array([-1.0, 0.5])]


@model
def toeplitz_factor(n):
    """Stationary noise and loadings: T + U U', U and the spectrum sought."""
    r = rng(n)
    U = r.standard_normal((n, 3))
    Y = r.standard_normal((n, 6))
    lags = np.arange(n)

    def f(U, th):
        c = np.exp(th[0]) * np.exp(-lags * np.exp(th[1])) + np.exp(th[2]) * (lags == 0)
        S = pl.Toeplitz(c) + pl.LowRank(U)
        return np.sum(Y * pl.solve(S, Y)) + 6 * pl.logdet(S)

    return f, [U, np.array([0.1, -1.0, -0.5])]


@model
def banded_regression(n):
    """A precision by its banded Cholesky factor, a spline basis of sparse rows."""
    r = rng(n)
    d, e, g = r.standard_normal(n) / 5, r.standard_normal(n - 1) / 5, r.standard_normal(n - 2) / 5
    Y = r.standard_normal((n, 5))

    def f(d, e, g):
        ab = np.stack([np.exp(d), np.concatenate([e, [0.0]]), np.concatenate([g, [0.0, 0.0]])])
        L = pl.Banded((2, 0), ab)
        P = L @ L.T
        return np.sum(Y * (P @ Y)) - 5 * pl.logdet(P) + np.sum(pl.diagonal(pl.inv(P)) ** 2)

    return f, [d, e, g]


@model
def mean_field_ising(n):
    """A determinant of I - B J B of saturations, as in adaptive mean field methods."""
    r = rng(n)
    U = r.standard_normal((n, 6)) / np.sqrt(n)
    h = r.standard_normal(n)

    def f(m, U):
        s = 1 - np.tanh(m) ** 2
        J = pl.LowRank(U)
        A = pl.inv(pl.Diag(s)) - 0.2 * J
        return pl.logdet(A) + h @ pl.solve(A, h) + np.sum(pl.diagonal(pl.inv(A)) * s)

    return f, [r.standard_normal(n) / 2, U]


if __name__ == "__main__":
    measuring.main()
