# ruff: noqa: E501  # a formula stays on its line
"""Twenty-five formulas of textbooks, papers and users' threads that no rule was written for.

They were chosen, with their spelling, before anybody looked at what the engine makes of them, and
are kept as they came: what is slow here is a fault of the engine or a missing rule, not of the
formula. Contenders and rules are those of formulas.py.
"""

import numpy as np
from formulas import cases, spd

import pylinop as pl


def orders(g, k, n):
    """A stochastic-looking k x n matrix, as views, instruments or designs are."""
    return g.standard_normal((k, n)) / np.sqrt(n)


def decay(n, rate=0.7):
    return np.exp(-np.arange(n) * rate)


n, m, k = 600, 120, 25
ROWS = [
    (  # Gupta and Nagar, Matrix variate distributions (1999), section 2.2
        "matrix-normal-trace",
        lambda g: {
            "X": g.standard_normal((n, m)),
            "M": g.standard_normal((n, m)),
            "U": spd(g, n),
            "V": spd(g, m),
        },
        {"U": "pos", "V": "pos"},
        "(inv(V) @ (X - M).T @ inv(U) @ (X - M)).trace()",
        "D = X - M; Z = solve_triangular(cholesky(U, lower=True), D, lower=True); W = solve_triangular(cholesky(V, lower=True), Z.T, lower=True); _ = np.vdot(W, W)",
        "Z = h.blas.dtrsm(1.0, h.chol(U.T.copy('F')), X - M, trans_a=1); W = h.blas.dtrsm(1.0, h.chol(V.T.copy('F')), Z.T, trans_a=1); _ = np.vdot(W, W)",
    ),
    (  # Kullback-Leibler divergence of two normal distributions, Wikipedia
        "kullback-leibler",
        lambda g: {
            "S": spd(g, n),
            "P": spd(g, n),
            "a": g.standard_normal(n),
            "b": g.standard_normal(n),
        },
        {"S": "pos", "P": "pos"},
        "0.5 * ((inv(S) @ P).trace() + (a - b) @ inv(S) @ (a - b) + logdet(S) - logdet(P))",
        "c = cholesky(S, lower=True); e = cholesky(P, lower=True); Z = solve_triangular(c, e, lower=True); z = solve_triangular(c, a - b, lower=True);"
        "_ = 0.5 * (np.vdot(Z, Z) + z @ z + 2 * np.log(np.diag(c)).sum() - 2 * np.log(np.diag(e)).sum())",
        "c = h.chol(S.T.copy('F')); e = h.chol(P.T.copy('F')); l = np.log(np.diag(c)).sum() - np.log(np.diag(e)).sum(); z = h.blas.dtrsv(c, a - b, trans=1);"
        "V = h.lapack.dpotri(c)[0]; V = np.triu(V) + np.triu(V, 1).T; _ = 0.5 * (np.vdot(V, P) + z @ z) + l",
    ),
    (  # Bishop, Pattern recognition and machine learning (2006), equation 3.59
        "predictive-variance",
        lambda g: {
            "X": g.standard_normal((4 * n, m)),
            "T": g.standard_normal((n, m)),
            "I": np.eye(m),
        },
        {"I": pl.Identity},
        "(T @ inv(X.T @ X / 0.3 + 2.0 * I) @ T.T).diagonal()",
        "c = cholesky(X.T @ X / 0.3 + 2.0 * np.eye(len(I)), lower=True); Z = solve_triangular(c, T.T, lower=True); _ = (Z * Z).sum(0)",
        "G = h.blas.dsyrk(1 / 0.3, X.T); G.flat[:: len(G) + 1] += 2.0; Z = h.blas.dtrsm(1.0, h.chol(G), T.T, trans_a=1); _ = np.einsum('ij,ij->j', Z, Z)",
    ),
    (  # Mahalanobis distances of many points (stackoverflow 27686240)
        "mahalanobis",
        lambda g: {"Y": g.standard_normal((4 * n, m)), "S": spd(g, m)},
        {"S": "pos"},
        "(Y @ inv(S) @ Y.T).diagonal()",
        "Z = solve_triangular(cholesky(S, lower=True), Y.T, lower=True); _ = (Z * Z).sum(0)",
        "Z = h.blas.dtrsm(1.0, h.chol(S.T.copy('F')), Y.T, trans_a=1); _ = np.einsum('ij,ij->j', Z, Z)",
    ),
    (  # Fisher's discriminant (1936), with two groups' scatter
        "fisher-discriminant",
        lambda g: {
            "A": g.standard_normal((3 * n, m)),
            "B": g.standard_normal((3 * n, m)),
            "a": g.standard_normal(m),
            "b": g.standard_normal(m),
        },
        {},
        "inv(A.T @ A + B.T @ B) @ (a - b)",
        "solve(A.T @ A + B.T @ B, a - b, assume_a='pos')",
        "S = h.blas.dsyrk(1.0, B.T, 1.0, h.gram(A), overwrite_c=1); _ = h.solve(h.chol(S), a - b)",
    ),
    (  # Robinson, That BLUP is a good thing (1991), section 1
        "blup",
        lambda g: {
            "Z": g.standard_normal((3 * n, m)),
            "G": g.random(m) + 0.5,
            "X": g.standard_normal((3 * n, 8)),
            "b": g.standard_normal(8),
            "y": g.standard_normal(3 * n),
            "I": np.eye(3 * n),
        },
        {"G": pl.Diag, "I": pl.Identity},
        "G @ Z.T @ inv(Z @ G @ Z.T + 0.4 * I) @ (y - X @ b)",
        "r = y - X @ b; _ = solve(Z.T @ Z + np.diag(0.4 / G), Z.T @ r, assume_a='pos')",
        "S = h.gram(Z); S.flat[:: len(S) + 1] += 0.4 / G; _ = h.solve(h.chol(S), Z.T @ (y - X @ b))",
    ),
    (  # Black and Litterman (1992), as in Idzorek's guide
        "black-litterman",
        lambda g: {
            "S": spd(g, n),
            "P": orders(g, k, n),
            "O": g.random(k) + 0.1,
            "p": g.standard_normal(n),
            "q": g.standard_normal(k),
        },
        {"S": "pos", "O": pl.Diag},
        "inv(inv(0.05 * S) + P.T @ inv(O) @ P) @ (inv(0.05 * S) @ p + P.T @ inv(O) @ q)",
        "T = 0.05 * (S @ P.T); _ = p + T @ solve(P @ T + np.diag(O), q - P @ p, assume_a='pos')",
        "T = h.blas.dsymm(0.05, S.T, P.T); M = P @ T; M.flat[:: len(M) + 1] += O; _ = p + T @ h.solve(h.chol(M), q - P @ p)",
    ),
    (  # Markowitz (1952): the portfolio of least variance
        "minimum-variance",
        lambda g: {"S": spd(g, n), "o": np.ones(n)},
        {"S": "pos"},
        "inv(S) @ o / (o @ inv(S) @ o)",
        "w = solve(S, o, assume_a='pos'); _ = w / w.sum()",
        "w = h.solve(h.chol(S.T.copy('F')), o); _ = w / (o @ w)",
    ),
    (  # A factor model of returns with correlated factors (BARRA's form), the tangency portfolio
        "factor-portfolio",
        lambda g: {
            "B": g.standard_normal((5 * n, k)),
            "F": spd(g, k),
            "D": g.random(5 * n) + 0.5,
            "u": g.standard_normal(5 * n),
        },
        {"F": "pos", "D": pl.Diag},
        "inv(B @ F @ B.T + D) @ u",
        "Z = B / D[:, None]; _ = u / D - Z @ solve(inv(F) + B.T @ Z, Z.T @ u, assume_a='pos')",
        "Z = B / D[:, None]; M = h.lapack.dpotri(h.chol(F.T.copy('F')))[0]; M = h.blas.dgemm(1.0, B.T, Z, 1.0, M); _ = u / D - Z @ h.solve(h.chol(M), Z.T @ u)",
    ),
    (  # The Schur complement, as any text on Gaussian conditioning has it
        "schur-complement",
        lambda g: {"A": spd(g, m), "B": g.standard_normal((m, n)), "D": spd(g, n)},
        {"A": "pos", "D": "pos"},
        "A - B @ inv(D) @ B.T",
        "Z = solve_triangular(cholesky(D, lower=True), B.T, lower=True); _ = A - Z.T @ Z",
        "Z = h.blas.dtrsm(1.0, h.chol(D.T.copy('F')), B.T, trans_a=1); S = h.blas.dsyrk(-1.0, Z, 1.0, A.T.copy('F'), trans=1); _ = np.triu(S) + np.triu(S, 1).T",
    ),
    (  # Sherman and Morrison (1950): one correction of a general matrix, two right sides
        "sherman-morrison",
        lambda g: {
            "A": g.standard_normal((n, n)) + 30 * np.eye(n),
            "u": g.standard_normal((n, 1)),
            "v": g.standard_normal((n, 1)),
            "b": g.standard_normal(n),
        },
        {},
        "inv(A + u @ v.T) @ b",
        "solve(A + u @ v.T, b)",
        "M = h.blas.dger(1.0, v[:, 0], u[:, 0], a=A.T.copy('F'), overwrite_a=1); c, p, _i = h.lapack.dgetrf(M, overwrite_a=1); _ = h.lapack.dgetrs(c, p, b, trans=1)[0]",
    ),
    (  # Broyden (1965): the good update of a Jacobian
        "broyden",
        lambda g: {
            "J": g.standard_normal((n, n)),
            "d": g.standard_normal((n, 1)),
            "y": g.standard_normal((n, 1)),
        },
        {},
        "J + (y - J @ d) @ d.T / (d.T @ d)",
        "J + np.outer((y - J @ d)[:, 0] / np.vdot(d, d), d)",
        "h.blas.dger(1 / np.vdot(d, d), d[:, 0], (y - J @ d)[:, 0], a=J.T.copy('F'), overwrite_a=1).T",
    ),
    (  # Davidon, Fletcher and Powell, Nocedal and Wright (2006), equation 6.15
        "dfp",
        lambda g: {"H": spd(g, n), "s": g.standard_normal((n, 1)), "y": g.standard_normal((n, 1))},
        {"H": "pos"},
        "H - H @ y @ y.T @ H / (y.T @ H @ y) + s @ s.T / (y.T @ s)",
        "w = (H @ y)[:, 0]; _ = H - np.outer(w / (w @ y[:, 0]), w) + np.outer(s / np.vdot(y, s), s)",
        "w = h.blas.dsymv(1.0, H.T, y[:, 0]); _ = h.blas.dger(-1 / (w @ y[:, 0]), w, w, a=H.T.copy('F'), overwrite_a=1); _ = h.blas.dger(1 / np.vdot(y, s), s[:, 0], s[:, 0], a=_, overwrite_a=1)",
    ),
    (  # Marquardt (1963), scaled: the step of a damped Gauss-Newton method
        "levenberg-marquardt",
        lambda g: {
            "J": g.standard_normal((5 * n, m)),
            "D": g.random(m) + 0.5,
            "r": g.standard_normal(5 * n),
        },
        {"D": pl.Diag},
        "-inv(J.T @ J + 0.01 * D) @ J.T @ r",
        "-solve(J.T @ J + np.diag(0.01 * D), J.T @ r, assume_a='pos')",
        "S = h.gram(J); S.flat[:: len(S) + 1] += 0.01 * D; _ = -h.solve(h.chol(S), J.T @ r)",
    ),
    (  # Boyd and Vandenberghe, Convex optimization (2004), section 10.4: a quadratic programme
        "equality-constrained",
        lambda g: {
            "H": spd(g, n),
            "A": g.standard_normal((m, n)),
            "b": g.standard_normal(m),
            "c": g.standard_normal(n),
        },
        {"H": "pos"},
        "inv(H) @ (A.T @ inv(A @ inv(H) @ A.T) @ (b + A @ inv(H) @ c) - c)",
        "f = cho_factor(H); Z = cho_solve(f, A.T); w = solve(A @ Z, b + Z.T @ c, assume_a='pos'); _ = Z @ w - cho_solve(f, c)",
        "f = h.chol(H.T.copy('F')); Z = h.blas.dtrsm(1.0, f, A.T, trans_a=1); z = h.blas.dtrsv(f, c, trans=1); S = h.blas.dsyrk(1.0, Z, trans=1);"
        "_ = h.blas.dtrsv(f, Z @ h.solve(h.chol(S), b + Z.T @ z) - z)",
    ),
    (  # Fusion of two estimates by their precisions (any text on tracking)
        "fusion",
        lambda g: {
            "P": spd(g, n),
            "Q": spd(g, n),
            "x": g.standard_normal(n),
            "z": g.standard_normal(n),
        },
        {"P": "pos", "Q": "pos"},
        "inv(inv(P) + inv(Q)) @ (inv(P) @ x + inv(Q) @ z)",
        "x + P @ solve(P + Q, z - x, assume_a='pos')",
        "x + h.blas.dsymv(1.0, P.T, h.solve(h.chol((P + Q).T), z - x))",
    ),
    (  # Joseph's form of the covariance after a measurement, Brown and Hwang (1997), 5.5.11
        "joseph",
        lambda g: {
            "P": spd(g, n),
            "K": g.standard_normal((n, k)),
            "H": g.standard_normal((k, n)),
            "R": spd(g, k),
            "I": np.eye(n),
        },
        {"P": "pos", "R": "pos", "I": pl.Identity},
        "(I - K @ H) @ P @ (I - K @ H).T + K @ R @ K.T",
        "W = P - K @ (H @ P); _ = W - (W @ H.T) @ K.T + K @ (R @ K.T)",
        "V = h.blas.dsymm(1.0, P.T, H.T); W = P - K @ V.T; _ = W + (K @ R - W @ H.T) @ K.T",
    ),
    (  # Two-stage least squares, Greene, Econometric analysis (2012), section 8.3
        "two-stage-least-squares",
        lambda g: {
            "X": g.standard_normal((4 * n, k)),
            "Z": g.standard_normal((4 * n, m)),
            "y": g.standard_normal(4 * n),
        },
        {},
        "inv(X.T @ Z @ inv(Z.T @ Z) @ Z.T @ X) @ X.T @ Z @ inv(Z.T @ Z) @ Z.T @ y",
        "V = solve_triangular(cholesky(Z.T @ Z, lower=True), Z.T @ np.c_[X, y], lower=True); _ = solve(V[:, :-1].T @ V[:, :-1], V[:, :-1].T @ V[:, -1], assume_a='pos')",
        "c = h.chol(h.gram(Z)); V = h.blas.dtrsm(1.0, c, Z.T @ X, trans_a=1); v = h.blas.dtrsv(c, Z.T @ y, trans=1); _ = h.solve(h.chol(h.blas.dsyrk(1.0, V, trans=1)), V.T @ v)",
    ),
    (  # Hansen (1982): the covariance of a method of moments with a weight that is not the best
        "moments-covariance",
        lambda g: {"G": g.standard_normal((n, m)), "W": spd(g, n), "S": spd(g, n)},
        {"W": "pos", "S": "pos"},
        "inv(G.T @ W @ G) @ G.T @ W @ S @ W @ G @ inv(G.T @ W @ G)",
        "V = W @ G; B = solve(G.T @ V, V.T, assume_a='pos'); _ = B @ S @ B.T",
        "V = h.blas.dsymm(1.0, W.T, G); B = h.solve(h.chol(h.blas.dgemm(1.0, G.T, V)), V.T); _ = B @ h.blas.dsymm(1.0, S.T, B.T)",
    ),
    (  # Hotelling (1936): the matrix of canonical correlations
        "canonical-correlations",
        lambda g: {
            "A": spd(g, n // 2),
            "B": spd(g, n // 2),
            "C": g.standard_normal((n // 2, n // 2)),
        },
        {"A": "pos", "B": "pos"},
        "inv(A) @ C @ inv(B) @ C.T",
        "solve(A, C @ solve(B, C.T, assume_a='pos'), assume_a='pos')",
        "Z = h.blas.dtrsm(1.0, h.chol(B.T.copy('F')), C.T, trans_a=1); S = h.blas.dsyrk(1.0, Z, trans=1); S = np.triu(S) + np.triu(S, 1).T; _ = h.solve(h.chol(A.T.copy('F')), S)",
    ),
    (  # Quinonero-Candela and Rasmussen (2005), equation 20b: deterministic training conditional
        "inducing-points",
        lambda g: {
            "k": g.standard_normal((40, m)),
            "K": spd(g, m),
            "F": g.standard_normal((m, 5 * n)),
            "y": g.standard_normal(5 * n),
        },
        {"K": "pos"},
        "k @ inv(0.1 * K + F @ F.T) @ F @ y",
        "k @ solve(0.1 * K + F @ F.T, F @ y, assume_a='pos')",
        "k @ h.solve(h.chol(h.blas.dsyrk(1.0, F.T, 1.0, (0.1 * K).T, trans=1, overwrite_c=1)), F @ y)",
    ),
    (  # Whittaker (1923), Eilers (2003): a smoother by second differences
        "whittaker",
        lambda g: {"y": g.standard_normal(5000), "I": np.ones(1)},
        {"I": lambda _a: pl.Identity(5000)},
        "inv(I + 10.0 * D2.T @ D2) @ y",
        "ab = np.zeros((3, 5000)); ab[2] = 60; ab[2, [1, -2]] = 50; ab[2, [0, -1]] = 10; ab[2] += 1; ab[1, 1:] = -40; ab[1, [1, -1]] = -20; ab[0, 2:] = 10; _ = solveh_banded(ab, y)",
        "ab = np.zeros((3, 5000)); ab[2] = 60; ab[2, [1, -2]] = 50; ab[2, [0, -1]] = 10; ab[2] += 1; ab[1, 1:] = -40; ab[1, [1, -1]] = -20; ab[0, 2:] = 10; _ = h.lapack.dpbsv(ab, y, overwrite_ab=1)[1]",
    ),
    (  # Schulz (1933): a step of Newton's iteration for the inverse
        "newton-schulz",
        lambda g: {"X": g.standard_normal((n, n)), "A": g.standard_normal((n, n)), "I": np.eye(n)},
        {"I": pl.Identity},
        "X @ (2.0 * I - A @ X)",
        "2.0 * X - X @ (A @ X)",
        "h.blas.dgemm(-1.0, (A @ X).T, X.T, 2.0, X.T).T",
    ),
    (  # Cayley (1846): an orthogonal matrix of a skew-symmetric one, applied to a frame
        "cayley",
        lambda g: {"A": g.standard_normal((n, n)), "V": g.standard_normal((n, k)), "I": np.eye(n)},
        {"I": pl.Identity},
        "inv(I + (A - A.T)) @ (I - (A - A.T)) @ V",
        "S = A - A.T; _ = solve(np.eye(len(S)) + S, V - S @ V)",
        "S = A - A.T; W = V - S @ V; S.flat[:: len(S) + 1] += 1.0; c, p, _i = h.lapack.dgetrf(S.T, overwrite_a=1); _ = h.lapack.dgetrs(c, p, W, trans=1)[0]",
    ),
    (  # A stationary process seen in noise, on a grid of two axes (gpytorch #1734)
        "grid-wiener-filter",
        lambda g: {
            "s": decay(60),
            "t": decay(50, 0.4),
            "y": g.standard_normal(3000),
            "I": np.ones(1),
        },
        {
            "s": pl.Toeplitz,
            "t": pl.Toeplitz,
            "I": lambda _a: pl.Identity(3000),
        },
        "kron(s, t) @ inv(kron(s, t) + 0.5 * I) @ y",
        "a, Q = eigh(toeplitz(s)); b, R = eigh(toeplitz(t)); w = np.multiply.outer(a, b); _ = (Q @ (w / (w + 0.5) * (Q.T @ y.reshape(60, 50) @ R)) @ R.T).reshape(-1)",
        "a, Q, _i = h.lapack.dsyevd(toeplitz(s), overwrite_a=1); b, R, _i = h.lapack.dsyevd(toeplitz(t), overwrite_a=1); w = np.multiply.outer(a, b); _ = (Q @ (w / (w + 0.5) * (Q.T @ y.reshape(60, 50) @ R)) @ R.T).reshape(-1)",
    ),
]


def more():
    """Names that some rows call besides inv, logdet and solve."""
    return {"D2": pl.FiniteDifference(5000, order=2), "kron": pl.Kron}


def formulas_elsewhere():
    yield from cases(ROWS, "elsewhere", more())


MAKERS = [formulas_elsewhere]
