# ruff: noqa: E501  # a formula stays on its line
"""Formulas of other people's papers, of many fields, that no rule was written for: those whose
result is an array. Those with a number as a result, and its derivatives: strangers_losses.py.

They were chosen, with their spelling and their way by hand, before anybody looked at what the engine
makes of them. A row: title, n, operands, what is known of these, the formula as the paper has it,
and the best way known by hand. `strangers.py` measures, and says what the names in the texts are.
"""

import numpy as np
import scipy.sparse as sp
from formulas import spd


def part(n, k, least=3):
    """A k-th of n, as many at the least."""
    return max(least, n // k)


def graph(g, n, degree=6):
    """Weights of a connected symmetric graph."""
    a = sp.random_array((n, n), density=degree / (2 * n), rng=g, format="csr")
    ring = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    a = sp.csr_array(a + a.T + ring)
    a.setdiag(0.0)
    a.eliminate_zeros()
    return a


def degrees(w):
    return np.asarray(w.sum(axis=1)).reshape(-1)


def weighted(g, n, then):
    """A graph, its degrees, and what else a formula needs of it."""
    w = graph(g, n)
    return {"W": w, "D": degrees(w), **then(w)}


def precision(g, n):
    w = graph(g, n)
    return sp.csc_array(sp.diags_array(degrees(w) + 0.3) - w)


def normal(g, *shape):
    return g.standard_normal(shape)


def waves(g, *shape):
    return g.standard_normal(shape) + 1j * g.standard_normal(shape)


def line(n, rate):
    return np.exp(-rate * np.arange(n))


ROWS = [
    (  # Anderson and Moore, Optimal control (1990), 2.4: a step of the difference Riccati equation
        "riccati-step",
        300,
        lambda g, n: {
            "P": spd(g, n),
            "Q": spd(g, n),
            "R": spd(g, part(n, 8)),
            "A": normal(g, n, n) / n**0.5,
            "B": normal(g, n, part(n, 8)),
        },
        {"P": "pos", "Q": "pos", "R": "pos"},
        "Q + A.T @ P @ A - A.T @ P @ B @ inv(R + B.T @ P @ B) @ B.T @ P @ A",
        "W = P @ A; V = B.T @ W; Z = h.blas.dtrsm(1.0, h.chol((R + B.T @ (P @ B)).T), V, trans_a=1); _ = Q + A.T @ W - Z.T @ Z",
    ),
    (  # Rauch, Tung and Striebel (1965), equations 3.30 and 3.31: a step back of the smoother
        "smoother-step",
        220,
        lambda g, n: {
            "P": spd(g, n),
            "Ps": spd(g, n),
            "Q": spd(g, n),
            "A": normal(g, n, n) / n**0.5,
            "x": normal(g, n),
            "xs": normal(g, n),
        },
        {"P": "pos", "Ps": "pos", "Q": "pos"},
        "G = P @ A.T @ inv(A @ P @ A.T + Q); _ = both(x + G @ (xs - A @ x), P + G @ (Ps - (A @ P @ A.T + Q)) @ G.T)",
        "W = A @ P; M = W @ A.T + Q; G = h.solve(h.chol(M.T.copy('F')), W); _ = both(x + (xs - A @ x) @ G, P + G.T @ (Ps - M) @ G)",
    ),
    (  # Maybeck, Stochastic models (1979), 5.7: prediction by the information filter
        "information-prediction",
        300,
        lambda g, n: {"Y": spd(g, n), "A": normal(g, n, n) / n**0.5, "Q": g.random(n) + 0.5},
        {"Y": "pos", "Q": "diag"},
        "inv(A @ inv(Y) @ A.T + Q)",
        "Z = h.blas.dtrsm(1.0, h.chol(Y.T.copy('F')), A.T, trans_a=1); S = h.blas.dsyrk(1.0, Z, trans=1); S.flat[:: len(S) + 1] += Q; V = h.lapack.dpotri(h.chol(S))[0]; _ = np.triu(V) + np.triu(V, 1).T",
    ),
    (  # Gilmour, Thompson and Cullis (1995), equation 8: the average information of a variance
        "average-information",
        800,
        lambda g, n: {"Z": normal(g, n, part(n, 16)), "X": normal(g, n, 4), "y": normal(g, n)},
        {},
        "V = Z @ Z.T + 0.7 * eye(n); P = inv(V) - inv(V) @ X @ inv(X.T @ inv(V) @ X) @ X.T @ inv(V); _ = 0.5 * (y @ P @ Z @ Z.T @ P @ Z @ Z.T @ P @ y)",
        """
S = h.gram(Z); S.flat[:: len(S) + 1] += 0.7; c = h.chol(S)
def once(b): return (b - Z @ h.solve(c, Z.T @ b)) / 0.7
VX = once(X); M = X.T @ VX
def proj(b): return once(b) - VX @ np.linalg.solve(M, VX.T @ b)
u = Z.T @ proj(y); v = Z @ u; _ = 0.5 * (v @ proj(v))
""",
    ),
    (  # Cressie, Statistics for spatial data (1993), equation 3.4.5: universal kriging
        "universal-kriging",
        500,
        lambda g, n: {
            "C": spd(g, n),
            "F": normal(g, n, 3),
            "k": normal(g, n),
            "f": normal(g, 3),
            "z": normal(g, n),
        },
        {"C": "pos"},
        "(k + F @ inv(F.T @ inv(C) @ F) @ (f - F.T @ inv(C) @ k)) @ inv(C) @ z",
        "c = h.chol(C.T.copy('F')); Z = h.blas.dtrsm(1.0, c, F, trans_a=1); u = h.blas.dtrsv(c, k, trans=1); w = h.blas.dtrsv(c, z, trans=1); _ = (u + Z @ np.linalg.solve(Z.T @ Z, f - Z.T @ u)) @ w",
    ),
    (  # Zhou, Bousquet, Lal, Weston and Schoelkopf (2004), equation 4: local and global consistency
        "label-spreading",
        1000,
        lambda g, n: weighted(g, n, lambda w: {"Y": g.random((n, 3))}),
        {"W": "sparse", "D": "diag"},
        "R = inv(sqrtm(D)); _ = inv(eye(n) - 0.9 * R @ W @ R) @ Y",
        "r = 1 / np.sqrt(D); S = sp.csc_array(sp.diags_array(D / 0.9) - W); _ = splu(S, 'MMD_AT_PLUS_A', 0.0, options={'SymmetricMode': True}).solve(Y / r[:, None]) / (0.9 * r[:, None])",
    ),
    (  # Langville and Meyer, Deeper inside PageRank (2004), section 5.2: with dangling nodes
        "pagerank-system",
        1000,
        lambda g, n: weighted(
            g, n, lambda w: {"d": 1.0 * (g.random(n) < 0.1), "v": np.full(n, 1 / n)}
        ),
        {"W": "sparse", "D": "diag"},
        "S = W @ inv(D) @ (eye(n) - diag(d)) + outer(v, d); _ = 0.15 * inv(eye(n) - 0.85 * S) @ v",
        "M = sp.csc_array(sp.eye_array(len(v)) - 0.85 * (W @ sp.diags_array((1 - d) / D))); z = splu(M).solve(v); _ = 0.15 * z / (1 - 0.85 * (d @ z))",
    ),
    (  # Wold (1966): a component is taken out, partial least squares
        "deflation",
        900,
        lambda g, n: {"X": normal(g, n, part(n, 3)), "t": normal(g, n, 1)},
        {},
        "X - t @ t.T @ X / (t.T @ t)",
        "X - np.outer(t, (t.T @ X) / (t.T @ t))",
    ),
    (  # Tipping and Bishop, Probabilistic PCA (1999), equation 29, with S = X' X / N
        "probabilistic-pca-step",
        700,
        lambda g, n: {"X": normal(g, part(n, 2), n), "W": normal(g, n, part(n, 60))},
        {},
        "N = X.shape[0]; k = W.shape[1]; S = X.T @ X / N; M = W.T @ W + 0.4 * eye(k); _ = S @ W @ inv(0.4 * eye(k) + inv(M) @ W.T @ S @ W)",
        "SW = X.T @ (X @ W) / len(X); k = W.shape[1]; M = W.T @ W + 0.4 * np.eye(k); _ = np.linalg.solve((0.4 * np.eye(k) + np.linalg.solve(M, W.T @ SW)).T, SW.T).T",
    ),
    (  # Rubin and Thayer, EM algorithms for factor analysis (1982): new loadings
        "factor-analysis-step",
        600,
        lambda g, n: {"L": normal(g, n, part(n, 40)), "D": g.random(n) + 0.5, "S": spd(g, n)},
        {"D": "diag", "S": "pos"},
        "B = L.T @ inv(L @ L.T + D); _ = S @ B.T @ inv(eye(L.shape[1]) - B @ L + B @ S @ B.T)",
        "Z = L / D[:, None]; M = L.T @ Z; M.flat[:: len(M) + 1] += 1.0; B = np.linalg.solve(M, Z.T).T; T = S @ B; K = B.T @ T - B.T @ L; K.flat[:: len(K) + 1] += 1.0; _ = np.linalg.solve(K.T, T.T).T",
    ),
    (  # Holland and Welsch, Robust regression (1977): a step with Huber's weights
        "robust-step",
        1000,
        lambda g, n: {
            "X": normal(g, n, part(n, 20)),
            "y": 2 * normal(g, n),
            "b": normal(g, part(n, 20)),
        },
        {},
        "W = diag(1.345 / maximum(abs(y - X @ b), 1.345)); _ = inv(X.T @ W @ X) @ X.T @ W @ y",
        "w = 1.345 / np.maximum(np.abs(y - X @ b), 1.345); Z = np.sqrt(w)[:, None] * X; _ = h.solve(h.chol(h.gram(Z)), X.T @ (w * y))",
    ),
    (  # McCullagh and Nelder, Generalized linear models (1989), 2.5: a step of Fisher's scoring, logistic
        "scoring-step",
        1000,
        lambda g, n: {
            "X": normal(g, n, part(n, 20)),
            "y": np.round(g.random(n)),
            "b": normal(g, part(n, 20)) / 9,
        },
        {},
        "p = 1 / (1 + exp(-(X @ b))); _ = b + inv(X.T @ diag(p * (1 - p)) @ X) @ X.T @ (y - p)",
        "p = 1 / (1 + np.exp(-(X @ b))); Z = np.sqrt(p * (1 - p))[:, None] * X; _ = b + h.solve(h.chol(h.gram(Z)), X.T @ (y - p))",
    ),
    (  # Hensman, Matthews and Ghahramani (2015), equation 16: variances of a sparse variational process
        "variational-variances",
        1000,
        lambda g, n: {
            "K": spd(g, part(n, 12)),
            "S": spd(g, part(n, 12)),
            "F": normal(g, n, part(n, 12)),
            "d": g.random(n) + 3,
        },
        {"K": "pos", "S": "pos"},
        "d + diagonal(F @ inv(K) @ (S - K) @ inv(K) @ F.T)",
        "A = h.solve(h.chol(K.T.copy('F')), F.T); _ = d + np.einsum('ij,ij->j', A, (S - K) @ A)",
    ),
    (  # Martens and Grosse, K-FAC (2015), section 6.3: factored Tikhonov damping
        "factored-curvature",
        900,
        lambda g, n: {
            "A": spd(g, part(n, 10)),
            "G": spd(g, part(n, 12)),
            "v": normal(g, part(n, 10) * part(n, 12)),
        },
        {"A": "pos", "G": "pos"},
        "inv(kron(A + 0.3 * eye(len(A)), G + 0.2 * eye(len(G)))) @ v",
        "a = A.T.copy('F'); a.flat[:: len(a) + 1] += 0.3; b = G.T.copy('F'); b.flat[:: len(b) + 1] += 0.2; V = h.solve(h.chol(b), v.reshape(len(A), -1).T); _ = h.solve(h.chol(a), V.T).reshape(-1)",
    ),
    (  # Gupta, Koren and Singer, Shampoo (2018), algorithm 1
        "shampoo-step",
        200,
        lambda g, n: {"L": spd(g, n), "R": spd(g, part(n, 2)), "G": normal(g, n, part(n, 2))},
        {"L": "pos", "R": "pos"},
        "power(L, -0.25) @ G @ power(R, -0.25)",
        "a, U, _i = h.lapack.dsyevd(L.T); b, V, _i = h.lapack.dsyevd(R.T); _ = U @ (a[:, None] ** -0.25 * (U.T @ G @ V) * b ** -0.25) @ V.T",
    ),
    (  # Ren and Goldfarb, Efficient subsampled Gauss-Newton and natural gradient (2019), equation 10
        "natural-gradient",
        1000,
        lambda g, n: {"J": normal(g, part(n, 12), n), "q": normal(g, n)},
        {},
        "inv(J.T @ J / len(J) + 0.01 * eye(n)) @ q",
        "S = h.gram(J.T); S.flat[:: len(S) + 1] += 0.01 * len(J); _ = 100.0 * (q - J.T @ h.solve(h.chol(S), J @ q))",
    ),
    (  # Byrd, Nocedal and Schnabel (1994), equation 3.5: the compact form of BFGS of limited memory, applied
        "compact-bfgs",
        1000,
        lambda g, n: (
            lambda s: {"S": s, "Y": s * np.linspace(1, 3, n)[:, None], "v": normal(g, n)}
        )(normal(g, n, 4)),
        {},
        "A = S.T @ Y; L = tril(A, -1); W = hstack([2.0 * S, Y]); M = block([[2.0 * S.T @ S, L], [L.T, -fulldiag(diagonal(A))]]); _ = 2.0 * v - W @ inv(M) @ W.T @ v",
        "A = S.T @ Y; L = np.tril(A, -1); W = np.hstack([2.0 * S, Y]); M = np.block([[2.0 * S.T @ S, L], [L.T, -np.diag(np.diag(A))]]); _ = 2.0 * v - W @ np.linalg.solve(M, W.T @ v)",
    ),
    (  # Boyd, Parikh, Chu, Peleato and Eckstein (2011), 6.4: the first step of ADMM for the lasso
        "lasso-admm",
        1000,
        lambda g, n: {
            "A": normal(g, part(n, 5), n),
            "b": normal(g, part(n, 5)),
            "z": normal(g, n),
            "u": normal(g, n),
        },
        {},
        "inv(A.T @ A + 2.0 * eye(n)) @ (A.T @ b + 2.0 * (z - u))",
        "q = A.T @ b + 2.0 * (z - u); S = h.gram(A.T); S.flat[:: len(S) + 1] += 2.0; _ = 0.5 * (q - A.T @ h.solve(h.chol(S), A @ q))",
    ),
    (  # Beck and Teboulle (2009), equation 1.4: a step of iterative shrinkage
        "shrinkage-step",
        1000,
        lambda g, n: {
            "A": normal(g, part(n, 2), n) / n**0.5,
            "b": normal(g, part(n, 2)),
            "x": normal(g, n),
        },
        {},
        "w = x - 0.3 * A.T @ (A @ x - b); _ = sign(w) * maximum(abs(w) - 0.1, 0)",
        "w = x - 0.3 * (A.T @ (A @ x - b)); _ = np.sign(w) * np.maximum(np.abs(w) - 0.1, 0)",
    ),
    (  # Vanderbei, Symmetric quasidefinite matrices (1995), equation 3: a step of an interior point method
        "quasidefinite-system",
        900,
        lambda g, n: {
            "D": g.random(n) + 0.1,
            "A": normal(g, part(n, 6), n),
            "E": g.random(part(n, 6)) + 0.1,
            "r": normal(g, n + part(n, 6)),
        },
        {"D": "diag", "E": "diag"},
        "inv(block([[-D, A.T], [A, E]])) @ r",
        "m = len(E); p, q = r[:-m], r[-m:]; Z = A / np.sqrt(D); S = h.gram(Z.T); S.flat[:: m + 1] += E; y = h.solve(h.chol(S), q + A @ (p / D)); _ = np.concatenate([(A.T @ y - p) / D, y])",
    ),
    (  # Hansen, Nagy and O'Leary, Deblurring images (2006), 6.4: Tikhonov, a separable blur
        "separable-deblurring",
        900,
        lambda g, n: {
            "s": line(int(n**0.5), 0.6),
            "t": line(int(n**0.5), 0.3),
            "b": normal(g, int(n**0.5) ** 2),
        },
        {"s": "toeplitz", "t": "toeplitz"},
        "A = kron(s, t); _ = inv(A.T @ A + 0.01 * eye(len(b))) @ A.T @ b",
        "k = len(s); a, Q, _i = h.lapack.dsyevd(toeplitz(s)); c, R, _i = h.lapack.dsyevd(toeplitz(t)); w = np.multiply.outer(a, c); _ = (Q @ (w / (w * w + 0.01) * (Q.T @ b.reshape(k, k) @ R)) @ R.T).reshape(-1)",
    ),
    (  # Gregor and Benson (2008), equation 1: a step of SIRT, tomography
        "tomography-step",
        1000,
        lambda g, n: {
            "A": sp.csr_array(
                sp.random_array((2 * n, n), density=min(1.0, 20 / n), rng=g)
                + sp.eye_array(2 * n, n)
                + sp.eye_array(2 * n, n, k=-n)
            ),
            "R": g.random(2 * n) + 1,
            "C": g.random(n) + 1,
            "b": normal(g, 2 * n),
            "x": normal(g, n),
        },
        {"A": "sparse", "R": "diag", "C": "diag"},
        "x + inv(C) @ A.T @ inv(R) @ (b - A @ x)",
        "x + (A.T @ ((b - A @ x) / R)) / C",
    ),
    (  # Capon (1969): the spectrum over directions, with diagonal loading
        "capon-spectrum",
        300,
        lambda g, n: {"X": waves(g, part(n, 3), n), "S": waves(g, part(n, 3), n)},
        {},
        "R = X @ X.conj().T / X.shape[1] + 0.1 * eye(len(X)); _ = 1 / real(diagonal(S.conj().T @ inv(R) @ S))",
        "R = h.blas.zherk(1 / X.shape[1], X.T, trans=2); R.flat[:: len(R) + 1] += 0.1; c = h.lapack.zpotrf(R, overwrite_a=1)[0]; Z = h.blas.ztrsm(1.0, c, S.conj(), trans_a=2); _ = 1 / (Z.real**2 + Z.imag**2).sum(0)",
    ),
    (  # Schmidt, Multiple emitter location (1986): the MUSIC spectrum
        "music-spectrum",
        300,
        lambda g, n: {"X": waves(g, part(n, 3), n), "S": waves(g, part(n, 3), n)},
        {},
        "R = X @ X.conj().T / X.shape[1]; w, V = eigh(R); N = V[:, :-2]; _ = 1 / (abs(N.conj().T @ S) ** 2).sum(0)",
        "R = h.blas.zherk(1 / X.shape[1], X.T, trans=2); w, V, _i = h.lapack.zheevd(R, lower=0, overwrite_a=1); Z = V[:, :-2].T @ S; _ = 1 / (Z.real**2 + Z.imag**2).sum(0)",
    ),
    (  # Rue and Held, Gaussian Markov random fields (2005), equation 2.30: conditioned by kriging
        "conditioned-field",
        1000,
        lambda g, n: {
            "Q": precision(g, n),
            "A": normal(g, 5, n),
            "x": normal(g, n),
            "e": normal(g, 5),
        },
        {"Q": "sparse"},
        "x - inv(Q) @ A.T @ inv(A @ inv(Q) @ A.T) @ (A @ x - e)",
        "V = splu(Q, 'MMD_AT_PLUS_A', 0.0, options={'SymmetricMode': True}).solve(A.T); _ = x - V @ np.linalg.solve(A @ V, A @ x - e)",
    ),
    (  # Guyan (1965): static condensation of the inner degrees of freedom
        "static-condensation",
        1000,
        lambda g, n: {
            "K": precision(g, n),
            "C": sp.csr_array(sp.random_array((n, part(n, 20)), density=3 / n, rng=g)),
            "B": spd(g, part(n, 20)),
        },
        {"K": "sparse", "C": "sparse", "B": "pos"},
        "B - C.T @ inv(K) @ C",
        "B - C.T @ splu(K, 'MMD_AT_PLUS_A', 0.0, options={'SymmetricMode': True}).solve(C.toarray())",
    ),
    (  # Kolda and Bader, Tensor decompositions (2009), equation 3.4: a step of CP by alternating least squares
        "alternating-least-squares",
        900,
        lambda g, n: {
            "X": normal(g, part(n, 20), n),
            "C": normal(g, int(n**0.5), 8),
            "B": normal(g, int(n**0.5), 8),
        },
        {},
        "n = len(B) * len(C); _ = X[:, :n] @ khatri_rao(C, B) @ inv((C.T @ C) * (B.T @ B))",
        "n = len(B) * len(C); V = (C[:, None, :] * B[None, :, :]).reshape(n, -1); _ = h.solve(h.chol(((C.T @ C) * (B.T @ B)).T), (X[:, :n] @ V).T).T",
    ),
    (  # Kondor and Lafferty, Diffusion kernels (2002), equation 8
        "heat-on-a-graph",
        800,
        lambda g, n: weighted(g, n, lambda w: {"y": normal(g, n)}),
        {"W": "sparse", "D": "diag"},
        "expm(-0.2 * (D - W)) @ y",
        "expm_multiply(-0.2 * (sp.diags_array(D, format='csr') - W), y, traceA=-0.2 * D.sum())",
    ),
]
