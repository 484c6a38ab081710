# ruff: noqa: E501  # a formula stays on its line
"""Losses of other people's papers, of many fields, that no rule was written for: formulas whose
result is a number, and by what one derives them. See formulas_strangers.py; a row has, last, the
operands by which the derivatives are taken.
"""

import numpy as np
import scipy.sparse as sp
from formulas import spd
from formulas_strangers import degrees, graph, normal, part, waves, weighted


def chain(g, n):
    """Transition probabilities, and a weight of a rank-one correction."""
    p = g.random((n, n)) + 5 * np.eye(n)
    return {"P": p / p.sum(1, keepdims=True), "o": np.ones((n, 1)), "w": np.full((n, 1), 1 / n)}


def neighbours(g, n):
    w = graph(g, n)
    return sp.csr_array(sp.diags_array(1 / degrees(w)) @ w)


def number(x):
    return np.array(float(x))


def covariances(g, n):
    c = spd(g, n)
    return {"C": c, "D": c.diagonal().copy(), "X": normal(g, n, 3), "y": normal(g, n)}


def rates(n):
    t = np.linspace(0, 4, n)
    return {"t": t, "a": np.array([0.4, 3.0])}


ROWS = [
    (  # Schweppe (1965): the likelihood of an innovation of an (extended) Kalman filter
        "innovation-likelihood",
        600,
        lambda g, n: {
            "P": spd(g, n),
            "H": normal(g, part(n, 6), n),
            "R": g.random(part(n, 6)) + 0.5,
            "v": normal(g, part(n, 6)),
        },
        {"P": "pos", "R": "diag"},
        "0.5 * (v @ inv(H @ P @ H.T + R) @ v + logdet(H @ P @ H.T + R))",
        "S = h.blas.dsymm(1.0, P.T, H.T); M = h.blas.dgemm(1.0, H, S); M.flat[:: len(M) + 1] += R; c = h.chol(M); u = h.blas.dtrsv(c, v, trans=1); _ = 0.5 * (u @ u) + np.log(np.diag(c)).sum()",
        ("H", "R"),
    ),
    (  # Freckleton, Harvey and Pagel (2002): Pagel's lambda, profiled over the regression
        "pagels-lambda",
        400,
        lambda g, n: {**covariances(g, n), "lam": number(0.7)},
        {"C": "pos", "D": "diag"},
        "V = lam * C + (1 - lam) * D; b = inv(X.T @ inv(V) @ X) @ X.T @ inv(V) @ y; r = y - X @ b; _ = n * log(r @ inv(V) @ r / n) + logdet(V)",
        "V = (lam * C).T; V.flat[:: len(D) + 1] += (1 - lam) * D; c = h.chol(V); Z = h.blas.dtrsm(1.0, c, np.c_[X, y], trans_a=1); A, z = Z[:, :-1], Z[:, -1]; r = z - A @ np.linalg.solve(A.T @ A, A.T @ z); _ = n * np.log(r @ r / n) + 2 * np.log(np.diag(c)).sum()",
        ("lam",),
    ),
    (  # Harville (1977), equation 4.2: restricted likelihood of a variance component
        "restricted-likelihood",
        800,
        lambda g, n: {
            "Z": normal(g, n, part(n, 16)),
            "X": normal(g, n, 4),
            "y": normal(g, n),
            "v": number(0.8),
            "s": number(0.6),
        },
        {},
        "V = v * Z @ Z.T + s * eye(n); P = inv(V) - inv(V) @ X @ inv(X.T @ inv(V) @ X) @ X.T @ inv(V); _ = 0.5 * (logdet(V) + logdet(X.T @ inv(V) @ X) + y @ P @ y)",
        """
S = h.gram(Z); q = len(S); S.flat[:: q + 1] += s / v; c = h.chol(S); A = np.c_[X, y]
B = h.blas.dtrsm(1.0, c, Z.T @ A, trans_a=1); G = (A.T @ A - B.T @ B) / s
e = np.linalg.cholesky(G)
_ = 0.5 * (2 * np.log(np.diag(c)).sum() + q * np.log(v) + (len(y) - q) * np.log(s) + 2 * np.log(np.diag(e)[:-1]).sum() + e[-1, -1] ** 2)
""",
        ("v", "s"),
    ),
    (  # Cuturi, Sinkhorn distances (2013), algorithm 1: the cost after a sweep
        "sinkhorn-cost",
        500,
        lambda g, n: {
            "M": g.random((n, n)),
            "a": np.full(n, 1 / n),
            "b": np.full(n, 1 / n),
            "v": g.random(n),
        },
        {},
        "K = exp(-M / 0.3); u = a / (K @ v); w = b / (K.T @ u); _ = (u * ((K * M) @ w)).sum()",
        "K = np.exp(M * (-1 / 0.3)); u = a / (K @ v); w = b / (u @ K); K *= M; _ = u @ (K @ w)",
        ("M",),
    ),
    (  # Dowson and Landau (1982); Heusel et al. (2017): Frechet's distance of two normal distributions
        "frechet-distance",
        200,
        lambda g, n: {"A": spd(g, n), "B": spd(g, n), "a": normal(g, n), "b": normal(g, n)},
        {"A": "pos", "B": "pos"},
        "((a - b) ** 2).sum() + trace(A) + trace(B) - 2 * trace(sqrtm(sqrtm(A) @ B @ sqrtm(A)))",
        "c = np.triu(h.chol(A.T.copy('F'))); w = h.lapack.dsyevd(c @ B @ c.T, compute_v=0)[0]; _ = (a - b) @ (a - b) + np.trace(A) + np.trace(B) - 2 * np.sqrt(w).sum()",
        ("A",),
    ),
    (  # Kemeny and Snell (1960), 4.3: the fundamental matrix, its trace
        "kemenys-constant",
        400,
        chain,
        {},
        "trace(inv(eye(n) - P + o @ w.T))",
        "M = o * w.T - P; M.flat[:: len(M) + 1] += 1.0; c, p, _i = h.lapack.dgetrf(M.T, overwrite_a=1); _ = np.trace(h.lapack.dgetri(c, p, overwrite_lu=1)[0])",
        ("P",),
    ),
    (  # Shi and Malik, Normalized cuts (2000), equation 5
        "normalised-cut",
        1000,
        lambda g, n: weighted(g, n, lambda w: {"y": normal(g, n)}),
        {"W": "sparse", "D": "diag"},
        "(y @ (D - W) @ y) / (y @ D @ y)",
        "z = D @ (y * y); _ = (z - y @ (W @ y)) / z",
        ("y",),
    ),
    (  # Andrew, Arora, Bilmes and Livescu, Deep canonical correlation analysis (2013), section 3
        "total-correlation",
        600,
        lambda g, n: {"X": normal(g, n, part(n, 8)), "Y": normal(g, n, part(n, 10))},
        {},
        "A = X.T @ X / n + 0.1 * eye(X.shape[1]); C = Y.T @ Y / n + 0.1 * eye(Y.shape[1]); B = X.T @ Y / n; _ = nuclear(inv(sqrtm(A)) @ B @ inv(sqrtm(C)))",
        "A = h.blas.dsyrk(1 / n, X.T); A.flat[:: len(A) + 1] += 0.1; C = h.blas.dsyrk(1 / n, Y.T); C.flat[:: len(C) + 1] += 0.1; T = h.blas.dtrsm(1.0, h.chol(A), X.T @ Y / n, trans_a=1); T = h.blas.dtrsm(1.0, h.chol(C), T, side=1); _ = np.linalg.svd(T, compute_uv=False).sum()",
        ("X",),
    ),
    (  # Joereskog (1967), equation 10: maximum likelihood factor analysis
        "factor-analysis",
        600,
        lambda g, n: {"L": normal(g, n, part(n, 40)), "D": g.random(n) + 0.5, "S": spd(g, n)},
        {"D": "diag", "S": "pos"},
        "V = L @ L.T + D; _ = logdet(V) + trace(inv(V) @ S)",
        "Z = L / D[:, None]; M = L.T @ Z; M.flat[:: len(M) + 1] += 1.0; c = h.chol(M.T); W = h.blas.dtrsm(1.0, c, Z.T, trans_a=1); _ = np.log(D).sum() + 2 * np.log(np.diag(c)).sum() + (S.diagonal() / D).sum() - np.vdot(W, W @ S)",
        ("L", "D"),
    ),
    (  # Allen (1974): the prediction sum of squares of ridge regression
        "prediction-sum-of-squares",
        1000,
        lambda g, n: {"X": normal(g, n, part(n, 16)), "y": normal(g, n)},
        {},
        "H = X @ inv(X.T @ X + 0.5 * eye(X.shape[1])) @ X.T; _ = (((y - H @ y) / (1 - diagonal(H))) ** 2).sum()",
        "S = h.gram(X); S.flat[:: len(S) + 1] += 0.5; Z = h.blas.dtrsm(1.0, h.chol(S), X.T, trans_a=1); r = (y - (Z @ y) @ Z) / (1 - np.einsum('ij,ij->j', Z, Z)); _ = r @ r",
        ("X",),
    ),
    (  # Golub, Heath and Wahba (1979), equation 1.4: generalised cross-validation of a kernel smoother
        "generalised-cross-validation",
        400,
        lambda g, n: {"K": spd(g, n), "y": normal(g, n), "lam": number(0.4)},
        {"K": "pos"},
        "A = K @ inv(K + lam * eye(n)); _ = n * ((y - A @ y) ** 2).sum() / trace(eye(n) - A) ** 2",
        "S = K.T.copy('F'); S.flat[:: len(S) + 1] += lam; c = h.chol(S); z = h.solve(c, y); t = np.trace(h.lapack.dpotri(c, overwrite_c=1)[0]); _ = n * (z @ z) / t**2",
        ("lam",),
    ),
    (  # Rasmussen and Williams, Gaussian processes (2006), equations 5.10 to 5.12: leave-one-out
        "leave-one-out",
        400,
        lambda g, n: {"K": spd(g, n), "y": normal(g, n), "s": number(0.3)},
        {"K": "pos"},
        "Q = inv(K + s * eye(n)); m = Q @ y / diagonal(Q); _ = 0.5 * (m**2 * diagonal(Q) - log(diagonal(Q))).sum()",
        "S = K.T.copy('F'); S.flat[:: len(S) + 1] += s; c = h.chol(S); z = h.solve(c, y); q = np.diag(h.lapack.dpotri(c, overwrite_c=1)[0]); _ = 0.5 * (z * z / q - np.log(q)).sum()",
        ("s",),
    ),
    (  # Titsias (2009), equation 9: the variational bound of a sparse Gaussian process
        "collapsed-bound",
        900,
        lambda g, n: {
            "F": normal(g, n, part(n, 15)),
            "K": spd(g, part(n, 15)) + np.eye(part(n, 15)),
            "y": normal(g, n),
            "s": number(0.5),
        },
        {"K": "pos"},
        "Q = F @ inv(K) @ F.T; _ = 0.5 * (logdet(Q + s * eye(n)) + y @ inv(Q + s * eye(n)) @ y) + (100.0 * n - trace(Q)) / (2 * s)",
        """
Z = h.blas.dtrsm(1.0, h.chol(K.T.copy('F')), F.T, trans_a=1); S = h.blas.dsyrk(1.0, Z); t = np.trace(S); S.flat[:: len(S) + 1] += s
c = h.chol(S); z = h.blas.dtrsv(c, Z @ y, trans=1)
_ = np.log(np.diag(c)).sum() + 0.5 * (n - len(S)) * np.log(s) + 0.5 * (y @ y - z @ z) / s + (100.0 * n - t) / (2 * s)
""",
        ("F", "s"),
    ),
    (  # Bishop (2006), equation 3.86, over the random features of Rahimi and Recht (2007)
        "evidence-of-features",
        800,
        lambda g, n: {
            "X": normal(g, n, 4),
            "W": normal(g, 4, part(n, 10)),
            "b": 6 * g.random(part(n, 10)),
            "y": normal(g, n),
        },
        {},
        "F = cos(X @ W + b); A = 0.5 * eye(F.shape[1]) + 2.0 * F.T @ F; m = 2.0 * inv(A) @ F.T @ y; r = y - F @ m; _ = 0.5 * (2.0 * r @ r + 0.5 * m @ m + logdet(A))",
        "F = np.cos(X @ W + b); A = h.blas.dsyrk(2.0, F.T); A.flat[:: len(A) + 1] += 0.5; c = h.chol(A); z = h.blas.dtrsv(c, 2.0 * (F.T @ y), trans=1); _ = y @ y - 0.5 * (z @ z) + np.log(np.diag(c)).sum()",
        ("W",),
    ),
    (  # Telatar (1999), theorem 1: the capacity of an array
        "array-capacity",
        200,
        lambda g, n: {"H": waves(g, part(n, 2), n) / n**0.5},
        {},
        "real(logdet(eye(len(H)) + 2.0 * H @ H.conj().T))",
        "R = h.blas.zherk(2.0, H.T, trans=2); R.flat[:: len(R) + 1] += 1.0; _ = 2 * np.log(np.diag(h.lapack.zpotrf(R, overwrite_a=1)[0]).real).sum()",
        ("H",),
    ),
    (  # Feynman, Statistical mechanics (1972), 2.1: an expectation in thermal equilibrium
        "thermal-expectation",
        160,
        lambda g, n: (lambda a, b: {"H": a + a.T, "O": b + b.T})(
            normal(g, n, n) / n**0.5, normal(g, n, n)
        ),
        {"H": "sym", "O": "sym"},
        "trace(expm(-0.5 * H) @ O) / trace(expm(-0.5 * H))",
        "w, V, _i = h.lapack.dsyevd(H.T); p = np.exp(-0.5 * w); _ = (np.einsum('ij,ij->j', V, O @ V) @ p) / p.sum()",
        ("H",),
    ),
    (  # Heisenberg's chain, any text on quantum spins: its energy in a state, three sites
        "chain-energy",
        1000,
        lambda g, n: {
            "A": normal(g, int(np.cbrt(n) + 1e-9), int(np.cbrt(n) + 1e-9)),
            "B": normal(g, int(np.cbrt(n) + 1e-9), int(np.cbrt(n) + 1e-9)),
            "p": normal(g, int(np.cbrt(n) + 1e-9) ** 3),
        },
        {},
        "I = eye(len(A)); _ = p @ (kron(A, A, I) + kron(I, A, A) + 0.5 * kron(B, I, I)) @ p",
        "d = len(A); P = p.reshape(d, d, d); T = (A @ P.reshape(d, -1)).reshape(d, d, d); U = A @ P; _ = np.vdot(P, A @ T) + np.vdot(P, U @ A.T) + 0.5 * np.vdot(P.reshape(d, -1), B @ P.reshape(d, -1))",
        ("p",),
    ),
    (  # McArdle and McDonald (1984), RAM; Joereskog's fit: a structural equation model
        "structural-equations",
        240,
        lambda g, n: {
            "A": 0.1 * normal(g, n, n) / n**0.5,
            "S": g.random(n) + 0.5,
            "F": np.arange(part(n, 2)),
            "C": spd(g, part(n, 2)),
        },
        {"S": "diag", "F": "select", "C": "pos"},
        "B = inv(eye(n) - A); V = F @ B @ S @ B.T @ F.T; _ = logdet(V) + trace(inv(V) @ C)",
        """
M = -A; M.flat[:: len(M) + 1] += 1.0; E = np.zeros((len(M), len(F)), order='F'); E[F, np.arange(len(F))] = 1.0
c, p, _i = h.lapack.dgetrf(M.T, overwrite_a=1); Z = h.lapack.dgetrs(c, p, E, overwrite_b=1)[0]
V = h.blas.dsyrk(1.0, np.sqrt(S)[:, None] * Z, trans=1); c = h.chol(V); l = 2 * np.log(np.diag(c)).sum(); V = h.lapack.dpotri(c)[0]; V = np.triu(V) + np.triu(V, 1).T
_ = l + np.vdot(V, C)
""",
        ("A", "S"),
    ),
    (  # Merton (1972): the efficient frontier, the least variance of a wanted mean
        "efficient-frontier",
        500,
        lambda g, n: {"S": spd(g, n), "M": normal(g, n, 2), "c": np.array([1.0, 0.1])},
        {"S": "pos"},
        "c @ inv(M.T @ inv(S) @ M) @ c",
        "Z = h.blas.dtrsm(1.0, h.chol(S.T.copy('F')), M, trans_a=1); _ = c @ np.linalg.solve(Z.T @ Z, c)",
        ("S", "M"),
    ),
    (  # Ord (1975), equation 2.10: a spatial autoregression, concentrated
        "spatial-autoregression",
        800,
        lambda g, n: {
            "W": neighbours(g, n),
            "X": normal(g, n, 4),
            "y": normal(g, n),
            "rho": number(0.6),
        },
        {"W": "sparse"},
        "z = y - rho * (W @ y); e = z - X @ inv(X.T @ X) @ X.T @ z; _ = 0.5 * n * log(e @ e) - logdet(eye(n) - rho * W)",
        "z = y - rho * (W @ y); e = z - X @ np.linalg.solve(X.T @ X, X.T @ z); f = splu(sp.csc_array(sp.eye_array(len(y)) - rho * W)); _ = 0.5 * n * np.log(e @ e) - np.log(np.abs(f.U.diagonal())).sum()",
        ("rho",),
    ),
    (  # Bonilla, Chai and Williams (2008), equation 2: several tasks, each with its noise
        "multi-task-process",
        600,
        lambda g, n: {
            "B": spd(g, part(n, 100)),
            "K": spd(g, part(n, 6)),
            "D": g.random(part(n, 100)) + 0.3,
            "y": normal(g, part(n, 100) * part(n, 6)),
        },
        {"B": "pos", "K": "pos", "D": "diag"},
        "V = kron(B, K) + kron(D, eye(len(K))); _ = y @ inv(V) @ y + logdet(V)",
        "r = D**-0.5; a, Q, _i = h.lapack.dsyevd(r[:, None] * B * r); b, R, _i = h.lapack.dsyevd(K.T); w = np.multiply.outer(a, b) + 1; Y = Q.T @ (r[:, None] * y.reshape(len(D), -1)) @ R; _ = (Y * Y / w).sum() + np.log(w).sum() + len(K) * np.log(D).sum()",
        ("B", "D"),
    ),
    (  # Wilson, Hu, Salakhutdinov and Xing, Deep kernel learning (2016), equation 5
        "deep-kernel",
        400,
        lambda g, n: {
            "X": normal(g, n, 5),
            "A": normal(g, 5, 12) / 3,
            "B": normal(g, 12, 3),
            "y": normal(g, n),
        },
        {},
        "Z = tanh(X @ A) @ B; q = (Z * Z).sum(1); K = exp(-0.5 * (q[:, None] + q[None, :] - 2 * Z @ Z.T)) + 0.1 * eye(n); _ = y @ inv(K) @ y + logdet(K)",
        "Z = np.tanh(X @ A) @ B; q = 0.5 * (Z * Z).sum(1); K = Z @ Z.T; K -= q[:, None]; K -= q; np.exp(K, out=K); K.flat[:: len(K) + 1] += 0.1; c = h.chol(K.T); z = h.blas.dtrsv(c, y, trans=1); _ = z @ z + 2 * np.log(np.diag(c)).sum()",
        ("A", "B"),
    ),
    (  # Boyd and Vandenberghe, Convex optimization (2004), equation 7.26: D-optimal design
        "d-optimal-design",
        1000,
        lambda g, n: {"X": normal(g, n, part(n, 20)), "w": g.random(n) + 0.1},
        {"w": "diag"},
        "-logdet(X.T @ w @ X)",
        "_ = -2 * np.log(np.diag(h.chol(h.gram(np.sqrt(w)[:, None] * X)))).sum()",
        ("w",),
    ),
    (  # Friedman, Hastie and Tibshirani (2008), equation 1: the graphical lasso
        "graphical-lasso",
        400,
        lambda g, n: {"S": spd(g, n), "T": spd(g, n)},
        {"S": "sym", "T": "pos"},
        "trace(S @ T) - logdet(T) + 0.1 * abs(T).sum()",
        "_ = np.vdot(S, T) - 2 * np.log(np.diag(h.chol(T.T.copy('F')))).sum() + 0.1 * np.abs(T).sum()",
        ("T",),
    ),
    (  # Ledoit and Wolf (2004), equation 14, chosen by the likelihood of data set aside
        "shrinkage-likelihood",
        800,
        lambda g, n: {
            "X": normal(g, part(n, 12), n),
            "Y": normal(g, part(n, 16), n),
            "rho": number(0.3),
        },
        {},
        "V = (1 - rho) * X.T @ X / len(X) + rho * eye(n); _ = logdet(V) + diagonal(Y @ inv(V) @ Y.T).sum() / len(Y)",
        "m = len(X); S = h.gram(X.T); S.flat[:: m + 1] += m * rho / (1 - rho); c = h.chol(S); Z = h.blas.dtrsm(1.0, c, X @ Y.T, trans_a=1); _ = 2 * np.log(np.diag(c)).sum() + m * np.log((1 - rho) / m) + (n - m) * np.log(rho) + (np.vdot(Y, Y) - np.vdot(Z, Z)) / (rho * len(Y))",
        ("rho",),
    ),
    (  # Golub and Pereyra, Variable projection (1973), equation 1.5: exponentials
        "variable-projection",
        1000,
        lambda g, n: {**rates(n), "y": normal(g, n)},
        {},
        "E = exp(-t[:, None] * a[None, :]); r = y - E @ inv(E.T @ E) @ E.T @ y; _ = 0.5 * (r @ r)",
        "E = np.exp(-np.multiply.outer(a, t)); r = y - np.linalg.solve(E @ E.T, E @ y) @ E; _ = 0.5 * (r @ r)",
        ("a",),
    ),
]
