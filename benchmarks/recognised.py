"""Structure that is recognised in formulas as users write them, beside the best by hand: sparse
kinds in sums, blocks as a batch, the mixed model, Laplacians by transforms.

The operands' values are new in each call (`pl._core._clear_store()`), so that no factor is kept."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def anew(A, b):
    pl._core._clear_store()
    return pl.solve(A, b)


def case(A, b, rtol, *ways):
    x = pl.solve(A, b)
    made = Case("", "", x, rtol=rtol)
    made.add("pylinop", "pylinop", "f(A, b)", f=anew, A=A, b=b)
    for label, f in ways:
        made.add("hand", label, "f()", f=f)
    return made


def with_selection():
    sp, sla = peer("scipy.sparse"), peer("scipy.sparse.linalg")
    g, side = rng(), 55
    n = side * side
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    Q = sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))
    index = g.choice(n, n // 4, replace=False)
    H, b = pl.Selection(index, n), g.standard_normal(n)

    def by_hand():
        S = sp.csr_array(
            (np.ones(len(index)), (np.arange(len(index)), index)), shape=(len(index), n)
        )
        return sla.spsolve(sp.csc_array(Q + S.T @ S), b)

    return case(pl.Sparse(Q) + H.T @ H, b, 1e-9, ("scipy spsolve", by_hand))


def smoothing():
    sl, g, n = peer("scipy.linalg"), rng(), 3000
    index = g.choice(n, n // 4, replace=False)
    H, F, b = pl.Selection(index, n), pl.FiniteDifference(n), g.standard_normal(n)

    def by_hand():
        ab = np.zeros((2, n))
        ab[0, 1:] = -1
        ab[1] = 2
        ab[1, [0, -1]] = 1
        ab[1, index] += 1
        return sl.solveh_banded(ab, b)

    return case(F.T @ F + H.T @ H, b, 1e-8, ("scipy solveh_banded", by_hand))


def laplacian(side, boundary):
    sf, g = peer("scipy.fft"), rng()
    n, b = side * side, g.standard_normal(side * side)
    k = np.arange(side)
    if boundary == "dirichlet":
        line, there, back, c = -4 * np.sin(np.pi * (k + 1) / (2 * (side + 1))) ** 2, 1, sf.idstn, 0
        forth = sf.dstn
    else:
        line, there, back, c = -4 * np.sin(np.pi * k / (2 * side)) ** 2, 2, sf.idctn, 0.5
        forth = sf.dctn
    values = line[:, None] + line - c

    def by_hand():
        return back(forth(b.reshape(side, side), there) / values, there).ravel()

    L = pl.Laplacian((side, side), boundary)
    A = L - c * pl.Identity(n) if c else L
    return case(A, b, 1e-8, ("scipy.fft dstn, dctn", by_hand))


def blocks(g, k, listed):
    r = rng()
    a = r.standard_normal((g, k, k))
    a = a @ a.swapaxes(-1, -2) + k * np.eye(k)
    b = r.standard_normal(g * k)
    A = pl.BlockDiag(*[m.copy() for m in a]) if listed else pl.BlockDiag(a)
    return case(A, b, 1e-8, ("numpy", lambda: np.linalg.solve(a, b.reshape(g, k, 1)).ravel()))


def thin(solve_blocks, b, W):
    """Woodbury by hand."""
    y = solve_blocks(np.concatenate([b[:, None], W], 1))
    small = np.eye(W.shape[1]) + W.T @ y[:, 1:]
    return y[:, 0] - y[:, 1:] @ np.linalg.solve(small, W.T @ y[:, 0])


def updated_blocks():
    r, g, k = rng(), 5000, 10
    a = r.standard_normal((g, k, k))
    a = a @ a.swapaxes(-1, -2) + k * np.eye(k)
    W, b = r.standard_normal((g * k, 3)), r.standard_normal(g * k)
    A = pl.LowRankUpdate(pl.BlockDiag(*[m.copy() for m in a]), W)

    def by_hand():
        return thin(lambda c: np.linalg.solve(a, c.reshape(g, k, -1)).reshape(g * k, -1), b, W)

    return case(A, b, 1e-8, ("numpy", by_hand))


def mixed_model():
    r, g, k, q = rng(), 5000, 10, 2
    Zs, G = r.standard_normal((g, k, q)), np.array([[2.0, 0.5], [0.5, 1.0]])
    n, W = g * k, r.standard_normal((g * k, 3))
    Z, b = pl.BlockDiag(*[z.copy() for z in Zs]), r.standard_normal(n)
    A = Z @ pl.Kron(pl.Identity(g), G) @ Z.T + pl.LowRank(W) + 0.7 * pl.Identity(n)

    def by_hand():
        a = Zs @ G @ Zs.swapaxes(-1, -2) + 0.7 * np.eye(k)
        return thin(lambda c: np.linalg.solve(a, c.reshape(g, k, -1)).reshape(n, -1), b, W)

    return case(A, b, 1e-8, ("numpy", by_hand))


def recognised():
    if not peer("scipy"):
        return
    yield "recognised/sparse-selection-3025", with_selection
    yield "recognised/smoothing-3000", smoothing
    for side in (64, 300):
        for boundary in ("dirichlet", "neumann"):
            yield (
                f"recognised/laplacian-{boundary}-{side}x{side}",
                lambda side=side, boundary=boundary: laplacian(side, boundary),
            )
    yield "recognised/blocks-array-1000x20", lambda: blocks(1000, 20, False)
    yield "recognised/blocks-list-1000x20", lambda: blocks(1000, 20, True)
    yield "recognised/blocks-updated-5000x10", updated_blocks
    yield "recognised/mixed-model-50000", mixed_model


MAKERS = [recognised]
