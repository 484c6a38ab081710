# ruff: noqa: E501  # a formula stays on its line
"""Whole formulas, written as in the paper through `pl.lazy`, beside what one writes by hand.

Contenders: *as written* (pylinop), *careful* (NumPy and SciPy as someone who knows linear algebra
would write it: solves instead of inverses, vectors first, shared parts named), *by hand* (the
LAPACK and BLAS routines that fit: potrf, potrs, syrk, symm, trsm), and *numpy as written*, with
np.linalg.inv. Formulas are those that Linnea's papers collect and some from statistics.

Before each call all contenders change one element of each operand by its last bit, so that nothing
that was kept from the call before may be used again.
"""

import functools

import numpy as np
from harness import Case, peer

import pylinop as pl


def spd(g, n, r=None):
    a = g.standard_normal((n, r or 2 * n))
    return a @ a.T / (r or 2 * n) + 0.1 * np.eye(n)


class Hand:
    """LAPACK and BLAS by SciPy's wrappers, the flags set so that C-ordered arrays are not copied."""

    def __init__(self):
        la = peer("scipy.linalg")
        self.blas, self.lapack, self.la = la.blas, la.lapack, la

    def gram(self, x):
        """The upper triangle (Fortran's) of x' x."""
        return self.blas.dsyrk(1.0, x.T)

    def chol(self, s, lower=0):
        c, info = self.lapack.dpotrf(s, lower=lower, overwrite_a=1, clean=0)
        if info:
            raise ArithmeticError("not positive definite")
        return c

    def solve(self, c, b, lower=0):
        return self.lapack.dpotrs(c, b, lower=lower)[0]

    def gemm(self, a, b):
        return a @ b


# -- the formulas: operands, then what each contender runs ------------------------------------------
# A row: text as written (over the lazy operands), assumptions, careful, by hand.


n, m = 1000, 200  # sizes; a row: title, operands, assumptions, as written, careful, by hand
ROWS = [
    (
        "least-squares",
        lambda g: {"X": g.standard_normal((2 * n, m)), "y": g.standard_normal(2 * n)},
        {},
        "inv(X.T @ X) @ X.T @ y",
        "solve(X.T @ X, X.T @ y, assume_a='pos')",
        "h.solve(h.chol(h.gram(X)), X.T @ y)",
    ),
    (
        "generalised-least-squares",
        lambda g: {"X": g.standard_normal((n, m)), "M": spd(g, n), "y": g.standard_normal(n)},
        {"M": "pos"},
        "inv(X.T @ inv(M) @ X) @ X.T @ inv(M) @ y",
        "c = cho_factor(M, lower=True); Z = solve_triangular(c[0], X, lower=True); "
        "_ = solve(Z.T @ Z, Z.T @ solve_triangular(c[0], y, lower=True), assume_a='pos')",
        "c = h.chol(M.T.copy('F')); Z = h.blas.dtrsm(1.0, c, X, lower=0, trans_a=1); "
        "w = h.blas.dtrsv(c, y, lower=0, trans=1); _ = h.solve(h.chol(h.gram(Z)), Z.T @ w)",
    ),
    (
        "ridge-tall",
        lambda g: {
            "X": g.standard_normal((2 * n, m)),
            "y": g.standard_normal(2 * n),
            "I": np.eye(m),
        },
        {"I": pl.Identity},
        "inv(X.T @ X + 0.5 * I) @ X.T @ y",
        "solve(X.T @ X + 0.5 * I, X.T @ y, assume_a='pos')",
        "G = h.gram(X); G.flat[:: len(G) + 1] += 0.5; _ = h.solve(h.chol(G), X.T @ y)",
    ),
    (
        "ridge-wide",
        lambda g: {
            "X": g.standard_normal((m, 2 * n)),
            "y": g.standard_normal(m),
            "I": np.eye(2 * n),
        },
        {"I": pl.Identity},
        "inv(X.T @ X + 0.5 * I) @ X.T @ y",
        "X.T @ solve(X @ X.T + 0.5 * np.eye(len(X)), y, assume_a='pos')",
        "G = h.gram(X.T); G.flat[:: len(G) + 1] += 0.5; _ = X.T @ h.solve(h.chol(G), y)",
    ),
    (
        "kalman-gain",
        lambda g: {"P": spd(g, n), "H": g.standard_normal((m, n)), "R": spd(g, m)},
        {"P": "pos", "R": "pos"},
        "P @ H.T @ inv(H @ P @ H.T + R)",
        "S = H @ P; _ = solve(S @ H.T + R, S, assume_a='pos').T",
        "S = h.blas.dsymm(1.0, P.T, H.T, lower=1); "
        "_ = h.solve(h.chol(h.blas.dgemm(1.0, H, S, 1.0, R)), S.T).T",
    ),
    (
        "kalman-covariance",
        lambda g: {"P": spd(g, n), "H": g.standard_normal((m, n)), "R": spd(g, m)},
        {"P": "pos", "R": "pos"},
        "P - P @ H.T @ inv(H @ P @ H.T + R) @ H @ P",
        "S = H @ P; Z = solve_triangular(cholesky(S @ H.T + R, lower=True), S, lower=True); "
        "_ = P - Z.T @ Z",
        "S = h.blas.dsymm(1.0, P.T, H.T, lower=1); c = h.chol(h.blas.dgemm(1.0, H, S, 1.0, R)); "
        "Z = h.blas.dtrsm(1.0, c, S, side=1); _ = h.blas.dsyrk(-1.0, Z, 1.0, P.T.copy('F'));"
        "i = np.tril_indices(0); _ = np.triu(_) + np.triu(_, 1).T",
    ),
    (
        "kalman-state",
        lambda g: {
            "P": spd(g, n),
            "H": g.standard_normal((m, n)),
            "R": spd(g, m),
            "x": g.standard_normal(n),
            "z": g.standard_normal(m),
        },
        {"P": "pos", "R": "pos"},
        "x + P @ H.T @ inv(H @ P @ H.T + R) @ (z - H @ x)",
        "S = H @ P; _ = x + S.T @ solve(S @ H.T + R, z - H @ x, assume_a='pos')",
        "S = h.blas.dsymm(1.0, P.T, H.T, lower=1); "
        "c = h.chol(h.blas.dgemm(1.0, H, S, 1.0, R)); _ = x + S @ h.solve(c, z - H @ x)",
    ),
    (
        "ensemble-kalman",
        lambda g: {
            "B": spd(g, n),
            "H": g.standard_normal((m, n)),
            "R": spd(g, m),
            "Xb": g.standard_normal((n, 40)),
            "Y": g.standard_normal((m, 40)),
        },
        {"B": "pos", "R": "pos"},
        "Xb + inv(inv(B) + H.T @ inv(R) @ H) @ H.T @ inv(R) @ (Y - H @ Xb)",
        "S = H @ B; _ = Xb + S.T @ solve(S @ H.T + R, Y - H @ Xb, assume_a='pos')",
        "S = h.blas.dsymm(1.0, B.T, H.T, lower=1); "
        "c = h.chol(h.blas.dgemm(1.0, H, S, 1.0, R)); _ = Xb + S @ h.solve(c, Y - H @ Xb)",
    ),
    (
        "tikhonov",
        lambda g: {
            "A": g.standard_normal((2 * n, m)),
            "G": g.standard_normal((m, m)),
            "b": g.standard_normal(2 * n),
            "I": np.eye(m),
        },
        {"I": pl.Identity},
        "inv(A.T @ A + G.T @ G + 0.25 * I) @ A.T @ b",
        "solve(A.T @ A + G.T @ G + 0.25 * I, A.T @ b, assume_a='pos')",
        "S = h.gram(A); S = h.blas.dsyrk(1.0, G.T, 1.0, S, overwrite_c=1); "
        "S.flat[:: len(S) + 1] += 0.25; _ = h.solve(h.chol(S), A.T @ b)",
    ),
    (
        "mmse",
        lambda g: {
            "A": g.standard_normal((m, n)),
            "C": spd(g, n),
            "Z": spd(g, m),
            "x": g.standard_normal(n),
            "y": g.standard_normal(m),
        },
        {"C": "pos", "Z": "pos"},
        "C @ A.T @ inv(A @ C @ A.T + Z) @ (y - A @ x) + x",
        "S = A @ C; _ = S.T @ solve(S @ A.T + Z, y - A @ x, assume_a='pos') + x",
        "S = h.blas.dsymm(1.0, C.T, A.T, lower=1); "
        "_ = S @ h.solve(h.chol(h.blas.dgemm(1.0, A, S, 1.0, Z)), y - A @ x) + x",
    ),
    (
        "mmse-dual",
        lambda g: {
            "A": g.standard_normal((n, m)),
            "C": spd(g, m),
            "Z": spd(g, n),
            "x": g.standard_normal(m),
            "y": g.standard_normal(n),
        },
        {"C": "pos", "Z": "pos"},
        "inv(A.T @ inv(Z) @ A + inv(C)) @ A.T @ inv(Z) @ (y - A @ x) + x",
        "c = cholesky(Z, lower=True); W = solve_triangular(c, A, lower=True); "
        "_ = solve(W.T @ W + inv(C), W.T @ solve_triangular(c, y - A @ x, lower=True), assume_a='pos') + x",
        "c = h.chol(Z.T.copy('F')); W = h.blas.dtrsm(1.0, c, A, lower=0, trans_a=1); "
        "w = h.blas.dtrsv(c, y - A @ x, lower=0, trans=1); S = h.lapack.dpotri(h.chol(C.T.copy('F')))[0]; "
        "_ = h.solve(h.chol(h.blas.dsyrk(1.0, W, 1.0, S, trans=1, overwrite_c=1)), W.T @ w) + x",
    ),
    (
        "constrained-least-squares",
        lambda g: {
            "A": g.standard_normal((2 * n, m)),
            "b": g.standard_normal(2 * n),
            "B": g.standard_normal((m // 4, m)),
            "c": g.standard_normal(m // 4),
        },
        {},
        "inv(A.T @ A) @ (A.T @ b - B.T @ inv(B @ inv(A.T @ A) @ B.T) @ "
        "(B @ inv(A.T @ A) @ A.T @ b - c))",
        "L = cholesky(A.T @ A, lower=True); W = solve_triangular(L, B.T, lower=True); "
        "v = solve_triangular(L, A.T @ b, lower=True); "
        "_ = solve_triangular(L, v - W @ solve(W.T @ W, W.T @ v - c, assume_a='pos'), lower=True, trans='T')",
        "L = h.chol(h.gram(A)); W = h.blas.dtrsm(1.0, L, B.T, trans_a=1); "
        "v = h.blas.dtrsv(L, A.T @ b, trans=1); "
        "u = h.solve(h.chol(h.gram(W)), W.T @ v - c); _ = h.blas.dtrsv(L, v - W @ u)",
    ),
    (
        "quasi-newton",
        lambda g: {
            "H": spd(g, n),
            "s": g.standard_normal((n, 1)),
            "y": g.standard_normal((n, 1)),
            "I": np.eye(n),
        },
        {"I": pl.Identity, "H": "sym"},
        "(I - s @ y.T / 3.0) @ H @ (I - y @ s.T / 3.0) + s @ s.T / 3.0",
        "w = H @ y; _ = H - (s @ w.T + w @ s.T) / 3.0 + ((y.T @ w)[0, 0] / 9.0 + 1 / 3.0) * (s @ s.T)",
        "w = h.blas.dsymv(1.0, H.T, y[:, 0]); v = s[:, 0]; S = H.copy(); "
        "S = h.blas.dsyr2(-1 / 3.0, v, w, a=S.T, overwrite_a=1); "
        "S = h.blas.dsyr((y[:, 0] @ w) / 9.0 + 1 / 3.0, v, a=S, overwrite_a=1); _ = np.triu(S) + np.triu(S, 1).T",
    ),
    (
        "sandwich",
        lambda g: {"X": g.standard_normal((2 * n, m)), "d": g.random(2 * n)},
        {"d": pl.Diag},
        "inv(X.T @ X) @ X.T @ d @ X @ inv(X.T @ X)",
        "c = cho_factor(X.T @ X); _ = cho_solve(c, cho_solve(c, X.T @ (d[:, None] * X)).T)",
        "c = h.chol(h.gram(X)); W = np.sqrt(d)[:, None] * X; S = h.gram(W); S = np.triu(S) + np.triu(S, 1).T; "
        "_ = h.solve(c, h.solve(c, S).T)",
    ),
    (
        "randomised-inverse",
        lambda g: {
            "A": g.standard_normal((n, n)),
            "W": spd(g, n),
            "S": g.standard_normal((n, 50)),
            "X": g.standard_normal((n, n)),
            "I": np.eye(n),
        },
        {"I": pl.Identity, "W": "pos"},
        "S @ inv(S.T @ A.T @ W @ A @ S) @ S.T @ A.T "
        "+ (I - S @ inv(S.T @ A.T @ W @ A @ S) @ S.T @ A.T @ W @ A) @ X",
        "Q = A @ S; V = W @ Q; T = solve(Q.T @ V, S.T, assume_a='pos'); "
        "_ = X + T.T @ (Q.T - (V.T @ A) @ X)",
        "Q = A @ S; V = h.blas.dsymm(1.0, W.T, Q, lower=1); T = h.solve(h.chol(h.blas.dgemm(1.0, Q.T, V)), S.T); "
        "_ = X + T.T @ (Q.T - (V.T @ A) @ X)",
    ),
    (
        "stochastic-newton",
        lambda g: {
            "B": spd(g, n),
            "A": g.standard_normal((m, n)),
            "W": g.standard_normal((m, 20)),
            "I": np.eye(n),
            "J": np.eye(20),
        },
        {"I": pl.Identity, "J": pl.Identity, "B": "pos"},
        "2.0 * B @ (I - A.T @ W @ inv(2.0 * J + W.T @ A @ B @ A.T @ W) @ W.T @ A @ B)",
        "Q = W.T @ A; V = Q @ B; _ = 2.0 * (B - V.T @ solve(2.0 * J + V @ Q.T, V, assume_a='pos'))",
        "Q = W.T @ A; V = h.blas.dsymm(1.0, B.T, Q.T, lower=1); "
        "c = h.chol(h.blas.dgemm(1.0, Q, V, 1.0, 2.0 * J)); Z = h.blas.dtrsm(2.0**0.5, c, V, side=1); "
        "S = h.blas.dsyrk(-1.0, Z, 2.0, B.T); _ = np.triu(S) + np.triu(S, 1).T",
    ),
    (
        "signal-processing",
        lambda g: {
            "A": np.eye(n) + g.standard_normal((n, n)) / n,
            "B": g.standard_normal((n - 1, n)),
            "R": g.standard_normal((n - 1, n)),
            "L": g.random(n - 1),
            "y": g.standard_normal(n),
        },
        {"L": pl.Diag},
        "inv(inv(A).T @ B.T @ B @ inv(A) + R.T @ L @ R) @ inv(A).T @ B.T @ B @ inv(A) @ y",
        "Z = solve(A.T, B.T).T; _ = solve(Z.T @ Z + R.T @ (L[:, None] * R), Z.T @ (Z @ y), assume_a='pos')",
        "lu = h.lapack.dgetrf(A.T); Z = h.lapack.dgetrs(*lu[:2], B.T)[0]; "
        "S = h.blas.dsyrk(1.0, Z); S = h.blas.dsyrk(1.0, (np.sqrt(L)[:, None] * R).T, 1.0, S, overwrite_c=1); "
        "_ = h.solve(h.chol(S), Z @ (Z.T @ y))",
    ),
    (
        "gaussian-process-mean",
        lambda g: {
            "K": spd(g, n),
            "k": g.standard_normal((m, n)),
            "y": g.standard_normal(n),
            "I": np.eye(n),
        },
        {"I": pl.Identity, "K": "pos"},
        "k @ inv(K + 0.1 * I) @ y",
        "k @ solve(K + 0.1 * I, y, assume_a='pos')",
        "S = K.copy(); S.flat[:: len(S) + 1] += 0.1; _ = k @ h.solve(h.chol(S.T), y)",
    ),
    (
        "gaussian-process-covariance",
        lambda g: {
            "K": spd(g, n),
            "k": g.standard_normal((m, n)),
            "C": spd(g, m),
            "I": np.eye(n),
        },
        {"I": pl.Identity, "K": "pos", "C": "sym"},
        "C - k @ inv(K + 0.1 * I) @ k.T",
        "Z = solve_triangular(cholesky(K + 0.1 * I, lower=True), k.T, lower=True); _ = C - Z.T @ Z",
        "S = K.copy(); S.flat[:: len(S) + 1] += 0.1; Z = h.blas.dtrsm(1.0, h.chol(S.T), k.T, trans_a=1); "
        "S = h.blas.dsyrk(-1.0, Z, 1.0, C.T, trans=1); _ = np.triu(S) + np.triu(S, 1).T",
    ),
    (
        "gaussian-process-likelihood",
        lambda g: {"K": spd(g, n), "y": g.standard_normal(n)},
        {"K": "pos"},
        "-0.5 * (y @ inv(K) @ y) - 0.5 * logdet(K)",
        "L = cholesky(K, lower=True); v = solve_triangular(L, y, lower=True); "
        "_ = -0.5 * (v @ v) - np.log(np.diag(L)).sum()",
        "L = h.chol(K.T.copy('F')); v = h.blas.dtrsv(L, y, trans=1); _ = -0.5 * (v @ v) - np.log(np.diag(L)).sum()",
    ),
    (
        "leverages",
        lambda g: {"X": g.standard_normal((2 * n, m))},
        {},
        "(X @ inv(X.T @ X) @ X.T).diagonal()",
        "Z = solve_triangular(cholesky(X.T @ X, lower=True), X.T, lower=True); _ = (Z * Z).sum(0)",
        "Z = h.blas.dtrsm(1.0, h.chol(h.gram(X)), X.T, trans_a=1); _ = np.einsum('ij,ij->j', Z, Z)",
    ),
    (
        "residual",
        lambda g: {"X": g.standard_normal((2 * n, m)), "y": g.standard_normal(2 * n)},
        {},
        "y - X @ inv(X.T @ X) @ X.T @ y",
        "y - X @ solve(X.T @ X, X.T @ y, assume_a='pos')",
        "y - X @ h.solve(h.chol(h.gram(X)), X.T @ y)",
    ),
    (
        "weighted-least-squares",
        lambda g: {
            "X": g.standard_normal((2 * n, m)),
            "W": g.random(2 * n) + 0.1,
            "y": g.standard_normal(2 * n),
        },
        {"W": pl.Diag},
        "inv(X.T @ W @ X) @ X.T @ W @ y",
        "Z = W[:, None] * X; _ = solve(X.T @ Z, Z.T @ y, assume_a='pos')",
        "Z = np.sqrt(W)[:, None] * X; _ = h.solve(h.chol(h.gram(Z)), X.T @ (W * y))",
    ),
    (
        "factor-model",
        lambda g: {
            "F": g.standard_normal((2 * n, 30)),
            "d": g.random(2 * n) + 0.5,
            "b": g.standard_normal(2 * n),
        },
        {"d": pl.Diag},
        "inv(d + F @ F.T) @ b",
        "Z = F / d[:, None]; v = b / d; _ = v - Z @ solve(np.eye(30) + F.T @ Z, F.T @ v, assume_a='pos')",
        "Z = F / d[:, None]; v = b / d; S = h.blas.dgemm(1.0, F.T, Z); S.flat[::31] += 1.0; "
        "_ = v - Z @ h.solve(h.chol(S), F.T @ v)",
    ),
    (
        "trace-of-a-solve",
        lambda g: {"K": spd(g, n), "D": g.standard_normal((n, n))},
        {"K": "pos"},
        "(inv(K) @ D).trace()",
        "np.trace(solve(K, D, assume_a='pos'))",
        "S = h.lapack.dpotri(h.chol(K.T.copy('F')))[0]; S = np.triu(S) + np.triu(S, 1).T; _ = np.vdot(S, D)",
    ),
    (
        "symmetric-half",
        lambda g: {"A": g.standard_normal((n, m)), "B": g.standard_normal((n, m))},
        {},
        "A @ B.T + B @ A.T + A @ A.T",
        "T = A @ (B + 0.5 * A).T; _ = T + T.T",
        "S = h.blas.dsyr2k(1.0, A.T, (B + 0.5 * A).T, trans=1); _ = np.triu(S) + np.triu(S, 1).T",
    ),
    (
        "normal-equations-two",
        lambda g: {
            "A": g.standard_normal((n, n)),
            "B": g.standard_normal((n, m)),
            "C": g.standard_normal((m, n)),
            "x": g.standard_normal(n),
        },
        {},
        "A @ B @ C @ x + inv(A) @ B @ C @ x",
        "v = B @ (C @ x); _ = A @ v + solve(A, v)",
        "v = B @ (C @ x); _ = A @ v + h.lapack.dgesv(A, v)[2]",
    ),
]


def scope_of(operands, assume, more=None):
    """The lazy operands and what formulas call."""
    names = {"inv": pl.inv, "logdet": pl.logdet, "solve": pl.solve, **(more or {})}
    for k, a in operands.items():
        how = assume.get(k)
        if how is pl.Identity:
            names[k] = pl.lazy(pl.Identity(len(a)))
        elif how is pl.Toeplitz:
            names[k] = how(a)  # an operator: as an operand of Kron a LazyArray is evaluated, once
        elif callable(how):
            names[k] = pl.lazy(how(a))
        else:
            names[k] = pl.lazy(a, how)
    return names


def plain_scope(operands):
    """The arrays and what is called by hand."""
    la = peer("scipy.linalg")
    called = "solve solve_triangular cholesky cho_factor cho_solve inv eigh toeplitz solveh_banded"
    names = {k: getattr(la, k) for k in called.split()}
    return {**names, **operands, "h": Hand(), "np": np}


def numpy_scope(operands, assume, more=None):
    """The same formula over dense arrays."""
    names = {"inv": np.linalg.inv, "logdet": lambda a: np.linalg.slogdet(a)[1], "kron": np.kron}
    for k, a in (more or {}).items():
        names.setdefault(k, a.toarray() if isinstance(a, pl.LinearOperator) else a)
    for k, a in operands.items():
        how = assume.get(k)
        dense = callable(how) and how is not pl.Identity
        names[k] = how(a).toarray() if dense else a
    return names


class Turn:
    """Called: the first element of each array becomes the next larger number, never one it was."""

    def __init__(self, operands):
        self.words = [a.reshape(-1)[:1].view(np.int64) for a in operands.values()]

    def __call__(self):
        for w in self.words:
            w += 1


def case_of(row, more):
    """One formula with its contenders."""
    _title, make, assume, written, careful, hand = row
    operands = make(np.random.default_rng(7))
    dense = numpy_scope(operands, assume, more)
    case = Case("", "", np.asarray(eval(written, dense)), 1e-6)
    turn = Turn(operands)

    def add(role, name, code, names):
        code = code if "_ = " in code else f"_ = {code}"
        case.add(role, name, f"turn(); {code}", turn=turn, **names)

    add(
        "pylinop", "pylinop, as written", f"np.asarray({written})", scope_of(operands, assume, more)
    )
    if peer("scipy"):
        plain = plain_scope(operands)
        add("hand", "careful NumPy and SciPy", careful, plain)
        add("floor", "LAPACK by hand", hand, plain)
    add("peer", "NumPy, as written", written, numpy_scope(operands, assume, more))
    return case.goal(
        "pylinop, as written",
        "LAPACK by hand",
        1.3,
        f"formula: {written}",
        "1.3 x LAPACK by hand",
    )


def cases(rows, group, more=None):
    """A benchmark for each row; the operands are made when it runs."""
    for row in rows:
        yield f"{group}/{row[0]}", functools.partial(case_of, row, more)


def formulas():
    yield from cases(ROWS, "formulas")


MAKERS = [formulas]
