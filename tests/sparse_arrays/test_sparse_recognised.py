"""Kinds that are sparse by what they are beside `Sparse`: in sums, products and congruences the
solve goes by a sparse factor or a band, and never by a dense form that nothing asked for."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._sparse import assemble_program

SIDE = 22
N = SIDE * SIDE  # 484 rows: above the size from which a factor is made outside


def grid(n=N, dtype=float):
    side = int(n**0.5)
    line = sp.diags_array([-1.0, 2.2, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line)).astype(dtype)


def tridiagonal(n=N):
    return pl.Tridiagonal(-np.ones(n - 1), np.full(n, 2.3), -np.ones(n - 1))


def taken(op, *args):
    """The names of the steps that run whatever the others find: no arms."""
    return [s["name"] for s in op.explain("solve", *args).steps if not s["conditional"]]


def eta(a, x, b):
    size = np.linalg.norm(a, np.inf) * abs(x).max() + abs(b).max()
    return abs(b - a @ x).max() / size


def selection(rng, n=N, m=120, repeats=False):
    index = rng.choice(n, m, replace=repeats)
    index[::3] -= n  # negative ones count from the end
    return pl.Selection(index, n)


def formulas(rng):
    """(name, operator): each of N rows and sparse by how it is written."""
    Q, H, D = pl.Sparse(grid()), selection(rng), pl.Diag(1 + rng.random(N))
    F, W = pl.FiniteDifference(N), pl.FiniteDifference(N, boundary="periodic")
    R, P = selection(rng, repeats=True), pl.Permutation(rng.permutation(N))
    c3, c9 = np.array([0.2, 1.0, 0.2]), np.array([[0.1, 1.0, 0.2]])
    C, B = pl.Convolution(c3, N, "same"), pl.Convolution(c9, (SIDE, SIDE), "same")
    E = pl.Diag(1 + rng.random(H.shape[0]))
    small = pl.Sparse(grid(SIDE**2))
    yield "selection", Q + H.T @ H
    yield "selection repeated", Q + R.T @ R
    yield "selection weighted", Q + H.T @ E @ H
    yield "multiple", 2.5 * Q - 0.1 * (H.T @ H)
    yield "difference", Q + F.T @ F
    yield "difference, ring", W.T @ W + H.T @ H + 0.01 * pl.Identity(N)
    yield "second difference", Q + pl.FiniteDifference(N, 2, "central", "zero")
    yield "odd central", Q + pl.FiniteDifference(N, 3, "central", "zero")
    yield "backward ring", Q + pl.FiniteDifference(N, 2, "backward", "periodic")
    yield "permuted", Q + P.T @ pl.Diag(1 + rng.random(N)) @ P
    yield "permuted sparse", P.T @ Q @ P + D
    yield "convolution", Q + C.T @ C
    yield "convolution ring", Q + pl.Convolution(c3, N, "circular")
    yield "convolution plane", B.T @ B + H.T @ H
    yield "full", (pl.Convolution(c3, N, "full").T @ pl.Convolution(c3, N, "full")) + Q
    yield (
        "kron",
        Q
        + pl.Kron(pl.FiniteDifference(SIDE), pl.Identity(SIDE)).T
        @ pl.Kron(pl.FiniteDifference(SIDE), pl.Identity(SIDE)),
    )
    yield "blocks", pl.BlockDiag(pl.Sparse(grid(N // 4)), tridiagonal(N - N // 4)) + H.T @ H
    V = pl.Block([[F], [H]])
    yield "stacked", V.T @ V + 1e-3 * pl.Identity(N)
    yield "banded", pl.Banded((1, 1), np.full((3, N), 0.1) + [[0], [2], [0]]) + W.T @ W
    yield "laplacian", pl.Laplacian((SIDE, SIDE), dtype=float) - H.T @ H
    yield "power", small**2 + H.T @ H
    yield "slice", pl.Sparse(grid(23 * 23))[:N, :N] + H.T @ H


@pytest.mark.parametrize("which", range(len(list(formulas(np.random.default_rng(0))))))
def test_what_is_sparse_is_solved_as_sparse(which, rng):
    name, A = list(formulas(rng))[which]
    a, b = A.toarray(), rng.standard_normal(N)
    names = taken(A, b)
    assert "getrf" not in names and "potrf" not in names, (name, names)
    assert A.explain("solve", b).flops < N**3 / 50, name
    x = pl.solve(A, b)
    assert eta(a, x, b) < 1e-14
    sign, log = np.linalg.slogdet(a)
    told = pl.slogdet(A)
    assert told[0] == pytest.approx(sign) and told[1] == pytest.approx(log, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("which", range(len(list(formulas(np.random.default_rng(0))))))
def test_the_assembled_matrix_is_the_operator(which, rng):
    """`tosparse` and the program for the factor are two ways to the same entries."""
    name, A = list(formulas(rng))[which]
    assert abs(A.tosparse() - A.toarray()).max() < 1e-13, name


def test_every_difference_and_mode_of_convolution_is_assembled_right(rng):
    """The rows of assemble_program for kinds without arrays, against the kind's own dense form."""
    identity = pl.Identity(0)
    assert identity.shape == (0, 0)
    for n in (1, 2, 5, 9):
        for order in range(5):
            for kind in ("forward", "backward", "central"):
                for boundary in ("valid", "zero", "periodic"):
                    D = pl.FiniteDifference(n, order, kind, boundary)
                    t = assemble_program._Term.__new__(assemble_program._Term)
                    t.attr, t.shape = list(D._attrs[:4]), D.shape
                    found = assemble_program._ROWS["difference"](t).toarray()
                    np.testing.assert_array_equal(found, D.toarray(), str((n, order, kind)))
    for taps, size in (((3,), (7,)), ((5,), (3,)), ((2, 3), (4, 5)), ((1,), (1,))):
        for number, mode in enumerate(("full", "same", "valid", "circular")):
            g = rng.standard_normal(taps)
            K = pl.Convolution(g, size, mode)
            t = assemble_program._Term.__new__(assemble_program._Term)
            t.attr, t.shape = [number], K.shape
            found = assemble_program._ROWS["convolution"](t, g.ravel(), taps, size).toarray()
            np.testing.assert_allclose(found, K.toarray(), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("n", [30, 3000])
def test_a_selection_beside_a_band_is_a_band(n, rng):
    """Each row of a Selection has one entry: H.T @ H and H.T @ D @ H are diagonal."""
    H = selection(rng, n, n // 4)
    F, E = pl.FiniteDifference(n), pl.Diag(1 + rng.random(n // 4))
    for A in (
        tridiagonal(n) + H.T @ H,
        F.T @ F + H.T @ H + 0.1 * pl.Identity(n),
        F.T @ F + 0.01 * pl.Identity(n) + H.T @ E @ H,
        tridiagonal(n) + pl.Diag(np.ones(n)) @ H.T @ E @ H @ pl.Diag(np.ones(n)),
    ):
        b = rng.standard_normal(n)
        a = A.toarray()
        told = A.explain("solve", b)
        assert told.flops < 400 * n
        assert eta(a, pl.solve(A, b), b) < 1e-14
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(a)[1], rtol=1e-11)
    D = pl.Diag(1 + rng.random(n)) + H.T @ H
    assert D.explain("solve", np.ones(n)).flops < 10 * n  # a quotient
    np.testing.assert_allclose(pl.solve(D, np.ones(n)), 1 / D.diagonal(), rtol=1e-15)
    P = pl.Permutation(rng.permutation(n))
    G = P.T @ D @ P
    np.testing.assert_allclose(pl.solve(G, np.ones(n)), 1 / G.diagonal(), rtol=1e-14)


def test_selections_that_differ_are_not_taken_for_one(rng):
    n = 60
    H, G = selection(rng, n, 20), selection(rng, n, 20)
    A = tridiagonal(n) + 0.3 * (H.T @ G) + 0.3 * (G.T @ H)
    b = rng.standard_normal(n)
    assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    S = pl.Selection(np.arange(n)[::-1], n)
    B = S @ S + 3 * pl.Identity(n)  # S itself, not its transpose
    assert eta(B.toarray(), pl.solve(B, b), b) < 1e-14


def test_an_index_written_to_is_seen(rng):
    index = rng.choice(N, 100, replace=False)
    H = pl.Selection(index, N)
    A = pl.Sparse(grid()) + H.T @ H
    b = rng.standard_normal(N)
    pl.solve(A, b)
    index[:] = rng.choice(N, 100, replace=False)
    assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    index[0] = N
    with pytest.raises(IndexError):
        pl.solve(A, b)


def test_complex_formulas_keep_their_structure(rng):
    H = selection(rng)
    Q = pl.Sparse(grid(dtype=complex) + 0.3j * sp.eye_array(N))
    w = rng.standard_normal(H.shape[0]) + 1j * rng.standard_normal(H.shape[0])
    for A in (Q + H.T @ pl.Diag(w) @ H, (Q + H.T @ pl.Diag(w) @ H).H, Q.T + H.conj().T @ H):
        b = rng.standard_normal(N) + 1j * rng.standard_normal(N)
        assert A.explain("solve", b).flops < N**3 / 50
        assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14


def test_woodbury_stays_where_it_is_the_cheaper_way(rng):
    """Few rows of a Selection beside a Diag: a quotient; a dense thin update: still Woodbury."""
    n = 600
    U = pl.Dense(rng.standard_normal((n, 5)))
    A = pl.Diag(1 + rng.random(n)) + U @ U.T
    b = rng.standard_normal(n)
    assert A.explain("solve", b).flops < n * n
    assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    H = selection(rng, n, 5)
    B = pl.Diag(1 + rng.random(n)) + U @ U.T + H.T @ H
    assert eta(B.toarray(), pl.solve(B, b), b) < 1e-13


def test_an_update_by_a_selection_is_no_matter_of_integers(rng):
    """Its indices are integers, its numbers are not: LowRankUpdate(base, H.T) goes by Woodbury."""
    n = 800
    H = selection(rng, n, 12)
    C = pl.Circulant(np.r_[4.0, 1, np.zeros(n - 3), 1])
    A = C + H.T @ H
    b = rng.standard_normal(n)
    assert A.explain("solve", b).flops < n**3 / 20
    assert eta(A.toarray(), pl.solve(A, b), b) < 1e-13
