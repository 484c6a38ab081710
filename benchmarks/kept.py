"""Factors that are kept, beside LAPACK's called by hand; and solves that go by iteration because
that is cheaper, beside the factor and SciPy's cg."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def factors():
    """A.T A + I: the operand is large, its factor small. Then a plain definite matrix."""
    linalg = peer("scipy.linalg")
    if not linalg:
        return

    def normal():
        g = rng()
        a, b = g.standard_normal((30_000, 50)), g.standard_normal(50)
        gram = a.T @ a + np.eye(50)
        case = Case("", "", np.linalg.solve(gram, b), rtol=1e-9)
        eye = pl.Identity(50)
        frozen = pl.Dense(pl.freeze(a))
        F = pl.factorized(pl.Dense(a).T @ pl.Dense(a) + eye)
        s = pl.solve
        case.add("pylinop", "pylinop solve, frozen", "s(A, b)", s=s, A=frozen.T @ frozen + eye, b=b)
        case.add("pylinop", "pylinop factorized", "F.solve(b)", F=F, b=b)
        A = pl.Dense(a)
        case.add("pylinop", "pylinop solve, fingerprint", "s(A, b)", s=s, A=A.T @ A + eye, b=b)
        f = linalg.cho_factor(gram)
        case.add("hand", "scipy cho_solve", "c(f, b)", c=linalg.cho_solve, f=f, b=b)
        case.goal("pylinop solve, frozen", "scipy cho_solve", 1.0, "a kept, frozen factor", "1 x")
        return case

    def plain():
        g = rng()
        a = g.standard_normal((1500, 1500))
        a, b = a @ a.T + 1500 * np.eye(1500), g.standard_normal(1500)
        case = Case("", "", np.linalg.solve(a, b), rtol=1e-9)
        s = pl.solve
        A = pl.Dense(pl.freeze(a), assume_a="pos")
        case.add("pylinop", "pylinop solve, frozen", "s(A, b)", s=s, A=A, b=b)
        F = pl.factorized(a, assume_a="pos")
        case.add("pylinop", "pylinop factorized", "F.solve(b)", F=F, b=b)
        f = linalg.cho_factor(a)
        case.add("hand", "scipy cho_solve", "c(f, b)", c=linalg.cho_solve, f=f, b=b)
        return case

    yield "kept/normal-30000x50", normal
    yield "kept/definite-1500", plain


def by_price():
    """Kron + Diag of 3,300 rows."""
    linalg = peer("scipy.sparse.linalg")
    if not linalg:
        return

    def build():
        g = rng()
        c, r = 0.5 ** np.arange(60), 0.6 ** np.arange(55)
        d, b = g.uniform(0.5, 2, 3300), g.standard_normal(3300)
        T, S = pl.Toeplitz(c).toarray(), pl.Toeplitz(r).toarray()
        A = pl.Kron(pl.Toeplitz(c), pl.Toeplitz(r)) + pl.Diag(d)
        case = Case("", "", pl.solve(A, b, method="direct"), rtol=1e-9)
        s = pl.solve
        case.add("pylinop", "pylinop solve", "s(A, b)", s=s, A=A, b=b)
        case.add(
            "pylinop", "pylinop solve, anew", "s(pl.Kron(T, S) + pl.Diag(d), b)",
            s=s, pl=pl, T=T, S=S, d=d, b=b,
        )  # fmt: skip
        direct = {"s": s, "A": A, "d": d, "b": b}
        case.add("pylinop", "pylinop direct, kept", 's(A, b, method="direct")', **direct)
        hand = linalg.LinearOperator(
            (3300, 3300),
            matvec=lambda v: (T @ v.reshape(60, 55) @ S.T).ravel() + d * v,
            dtype=float,
        )
        cg = linalg.cg
        case.add("hand", "scipy cg to 1e-14", "cg(A, b, rtol=1e-14)[0]", cg=cg, A=hand, b=b)
        case.goal("pylinop solve", "scipy cg to 1e-14", 2.0, "Kron + Diag, 3,300 rows", "2 x cg")
        return case

    yield "kept/kron-plus-diag-3300", build


MAKERS = [factors, by_price]
