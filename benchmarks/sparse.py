"""Sparse solves beside scipy.sparse.linalg.splu by hand, and diagonals of inverses beside solves
with unit vectors."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

SIDES = (12, 16, 20, 25, 32, 100, 300)  # of the grid; the first say where the outside pays


def grid(side):
    """Minus the second differences on a square, zeros beyond its edges: CSC."""
    sp = peer("scipy.sparse")
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csc_array(sp.kron(line, eye) + sp.kron(eye, line))


def by_cholmod(case, a, b):
    cholmod = peer("sksparse.cholmod")
    if hasattr(cholmod, "cho_factor"):
        case.add("hand", "CHOLMOD", "f(a, lower=True).solve(b)", f=cholmod.cho_factor, a=a, b=b)
    elif cholmod:
        case.add("hand", "CHOLMOD", "f(a)(b)", f=cholmod.cholesky, a=a, b=b)


def anew(S, b):
    pl._core._clear_store()
    return pl.solve(S, b)


def diagonal(S):
    pl._core._clear_store()
    return pl.diagonal(pl.inv(S))


SYMMETRIC = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}


def solves():
    if not peer("scipy"):
        return
    for side in SIDES:
        for fresh in (True, False):

            def build(side=side, fresh=fresh):
                splu = peer("scipy.sparse.linalg").splu
                a = grid(side)
                x = rng().standard_normal(side * side)
                S, b = pl.Sparse(a), a @ x
                case = Case("", "", x, rtol=1e-8)
                if fresh:
                    case.add("pylinop", "pylinop, anew", "f(S, b)", f=anew, S=S, b=b)
                    case.add("peer", "splu", "f(a).solve(b)", f=splu, a=a, b=b)
                    code = "f(a, **how).solve(b)"
                    case.add("hand", "splu, symmetric", code, f=splu, a=a, b=b, how=SYMMETRIC)
                    by_cholmod(case, a, b)
                else:
                    case.add("pylinop", "pylinop solve(S, b)", "f(S, b)", f=pl.solve, S=S, b=b)
                    lu = splu(a, **SYMMETRIC)
                    case.add("hand", "splu, kept", "lu.solve(b)", lu=lu, b=b)
                return case

            yield f"sparse/solve-{'anew-' if fresh else 'kept-'}grid-{side}", build


def by_units(solve, n):
    """The diagonal of the inverse from solves with 64 unit vectors at a time."""
    d = np.empty(n)
    for j in range(0, n, 64):
        at = np.arange(j, min(j + 64, n))
        unit = np.zeros((n, len(at)))
        unit[at, at - j] = 1
        d[at] = solve(unit)[at, at - j]
    return d


def diagonals():
    if not peer("scipy"):
        return

    def of_grid():
        a = grid(100)
        lu = peer("scipy.sparse.linalg").splu(a, **SYMMETRIC)
        case = Case("", "")
        case.add("pylinop", "pylinop, anew", "f(S)", f=diagonal, S=pl.Sparse(a))
        return case.add(
            "hand", "unit vectors, LU kept", "f(s, n)", f=by_units, s=lu.solve, n=10_000
        )

    def of_band(n):
        ab = rng().standard_normal((5, n))
        ab[2] += 6
        B = pl.Banded((2, 2), ab)
        case = Case("", "")
        case.add("pylinop", "pylinop, anew", "f(B)", f=diagonal, S=B, B=B)
        if n <= 10_000:  # beyond, it takes hours
            code = "f(lambda u: s((2, 2), ab, u), n)"
            s = peer("scipy.linalg").solve_banded
            case.add("hand", "unit vectors", code, f=by_units, s=s, ab=ab, n=n)
        return case

    yield "sparse/inverse-diagonal-grid-100", of_grid
    for n in (10_000, 100_000):
        yield f"sparse/inverse-diagonal-band-{n}", lambda n=n: of_band(n)


def mixed_models():
    """Crossed random effects: the covariance of the rows, by hand by Henderson's equations."""
    if not peer("scipy"):
        return
    sparse, splu = peer("scipy.sparse"), peer("scipy.sparse.linalg").splu

    def by_hand(Z, t, y):
        small = sparse.csc_array(sparse.diags_array(1 / t) + Z.T @ Z)
        return y - Z @ splu(small, **SYMMETRIC).solve(Z.T @ y)

    def of_groups(n, *counts):
        draw, at = rng(), np.arange(n)
        parts = [
            sparse.csr_array((np.ones(n), (at, draw.integers(0, g, n))), (n, g)) for g in counts
        ]
        Z = sparse.csr_array(sparse.hstack(parts))
        t, y = draw.uniform(0.5, 1, Z.shape[1]), draw.standard_normal(n)

        def ours(Z, t, y):
            S = pl.Sparse(Z)
            t[0] += 1e-9  # a new value: nothing is kept
            return np.asarray(pl.inv(S @ pl.Diag(t) @ S.T + pl.Identity(n)) @ y)

        case = Case("", "")
        case.add("pylinop", "pylinop, anew", "f(Z, t, y)", f=ours, Z=Z, t=t, y=y)
        return case.add("hand", "small matrix, splu", "f(Z, t, y)", f=by_hand, Z=Z, t=t, y=y)

    for n, counts in ((5000, (1000,)), (5000, (800, 300)), (20_000, (2000, 500))):
        name = "-".join(str(g) for g in counts)
        yield f"sparse/mixed-model-{n}-{name}", lambda n=n, counts=counts: of_groups(n, *counts)


MAKERS = [solves, diagonals, mixed_models]
