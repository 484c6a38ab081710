"""Direct solves by structure warn of a matrix that is singular to working precision, kind by kind:
on either side of the threshold, and LinAlgError where it is singular; explanations show it."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_conditioning import warned

import pylinop as pl

DTYPES = "fdFD"


def eps_of(dtype):
    return float(np.finfo(dtype).eps)


def ends(dtype, n, last):
    """Ones, and one element that is `last` eps."""
    d = np.ones(n, dtype)
    d[n // 2] = last * eps_of(dtype)
    return d


def diag(dtype, last, n=50):
    return pl.Diag(ends(dtype, n, last) * (1j if dtype in "FD" else -1))


def circulant(dtype, last, n=60):
    """Eigenvalues 1 - (1 - last eps) w^k: `last` eps the least and 2 the largest."""
    c = np.zeros(n, dtype)
    c[0], c[1] = 1, -(1 - last * eps_of(dtype))
    return pl.Circulant(c)


def levels(dtype, last):
    c = np.zeros((6, 8), dtype)
    c[0, 0], c[0, 1] = 1, -(1 - last * eps_of(dtype))
    return pl.Circulant(c, levels=2)


def toeplitz(dtype, last, n=200):
    """2 cos(pi / (n + 1)) and -1 beside it is singular; that is a number only in rounding."""
    if last == 0:
        return pl.Toeplitz(np.ones(n, dtype))
    c = np.zeros(n, dtype)
    c[0] = 2 * np.cos(np.pi / (n + 1)) + (last * eps_of(dtype) if last > 1 else 0)
    c[1] = 1j if dtype in "FD" else -1
    return pl.Toeplitz(c)


def hankel(dtype, last, n=120):
    c = toeplitz(dtype, last, n).toarray()
    full = np.r_[c[0, ::-1], c[1:, 0]]
    return pl.Hankel(full[:n], full[n - 1 :])


def blocks(dtype, last, assume=None, b=20):
    N = 6
    D = np.broadcast_to(np.eye(b, dtype=dtype), (N, b, b)).copy()
    L = np.zeros((N - 1, b, b), dtype)
    L[0, 0, 1] = 0.25
    U = None if assume else L.conj().transpose(0, 2, 1).copy()
    D[-2, 3, 3] = last * eps_of(dtype)
    return pl.BlockTridiagonal(L, D, U, assume) if assume else pl.BlockTridiagonal(L, D, U)


def positive_blocks(dtype, last):
    return blocks(dtype, last, "pos")


def quasi(dtype, last, n=200, triangular=False):
    p, q = np.zeros((n, 2), dtype), np.zeros((n, 2), dtype)
    p[:3] = q[:3] = 0.25
    a = np.full((n, 2), 0.5, dtype)
    return pl.QuasiSeparable(ends(dtype, n, last), p, q, a, triangular=triangular)


def quasi_triangle(dtype, last):
    return quasi(dtype, last, triangular=True)


def grid(side):
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sp.kron(one, sp.eye_array(side)) + sp.kron(sp.eye_array(side), one)


def sparse(dtype, last, side=24):
    """Of a five-point grid one row and column is small: the rest stays well conditioned."""
    n = side * side
    d = np.ones(n)
    d[n // 3] = np.sqrt(last * eps_of(dtype))
    a = sp.diags_array(d) @ grid(side) @ sp.diags_array(d)
    turn = sp.diags_array(np.exp(1j * np.arange(n))) if dtype in "FD" else sp.eye_array(n)
    return pl.Sparse(sp.csr_array(turn @ a @ turn.conj()).astype(dtype))


def sparse_band(dtype, last, n=500):
    off = np.zeros(n - 1, dtype)
    off[:5] = 0.5
    return pl.Sparse(
        sp.csr_array(sp.diags_array([ends(dtype, n, last), off], offsets=[0, -1], dtype=dtype))
    )


def sparse_triangle(dtype, last, n=100):
    a = sp.csr_array(sp.diags_array([ends(dtype, n, last), np.ones(5)], offsets=[0, -95]))
    return pl.SparseTriangular(a.astype(dtype), lower=True)


def woodbury(dtype, last, n=400):
    """I - (1 - last eps) u u^H with |u| = 1 exactly."""
    u = np.full((n, 1), 0.05, dtype)
    if last:
        u = np.zeros((n, 1), dtype)
        u[:64] = 0.125 * (1j if dtype in "FD" else 1)
    c = np.array([[-(1 - last * eps_of(dtype))]], dtype)
    base = pl.Identity(n) if last else pl.Diag(ends(dtype, n, 0))
    return pl.LowRankUpdate(base, u, u, c) if last else base


def definite_band(dtype, last, u=2, n=100):
    ab = np.zeros((2 * u + 1, n), dtype)
    ab[u] = ends(dtype, n, last)
    ab[u + 1, 0], ab[u - 1, 1] = (0.5j, -0.5j) if dtype in "FD" else (0.5, 0.5)
    return pl.Banded((u, u), ab, "pos")


def wide_definite_band(dtype, last):
    return definite_band(dtype, last, 20)


def definite_tridiagonal(dtype, last, n=100):
    off = np.zeros(n - 1, dtype)
    off[0] = 0.5
    return pl.Tridiagonal(off, ends(dtype, n, last), off.conj(), "pos")


def kron(dtype, last):
    return pl.Kron(diag(dtype, last, 6), np.eye(4, dtype=dtype) + 1)


KINDS = [
    diag, circulant, levels, toeplitz, hankel, blocks, positive_blocks, quasi, quasi_triangle,
    sparse, sparse_band, sparse_triangle, woodbury, definite_band, wide_definite_band,
    definite_tridiagonal, kron,
]  # fmt: skip


def solved(op):
    """All ways to a solution, each with what to solve for."""
    n = op.shape[0]
    rng = np.random.default_rng(1)
    b = rng.standard_normal((n, 3)) + 1
    b = b.astype(op.dtype)
    return [
        lambda: pl.solve(op, b[:, 0]),
        lambda: pl.solve(op, b),
        lambda: pl.inv(op) @ b,
    ]


@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_of_the_threshold(kind, dtype):
    for f in solved(kind(dtype, 1e4)):
        assert warned(f) == []
    for f in solved(kind(dtype, 0.5)):
        found = warned(f)
        assert len(found) == 1, found
        assert found[0] < eps_of(dtype)
    for f in solved(kind(dtype, 0)):
        with pytest.raises(np.linalg.LinAlgError):
            f()


@pytest.mark.parametrize("kind", [blocks, positive_blocks, quasi, sparse, sparse_band, diag])
@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_of_inverses(kind, dtype):
    assert warned(lambda: pl.inv(kind(dtype, 1e4)).diagonal()) == []
    assert len(warned(lambda: pl.inv(kind(dtype, 0.5)).diagonal())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_kept_factors_warn_again_and_give_the_same_bits(kind):
    op = kind("d", 0.5)
    b = np.random.default_rng(2).standard_normal(op.shape[0]) + 1
    answers = []

    def once():
        answers.append(pl.solve(op, b))

    first, second = warned(once), warned(once)
    assert first == second and len(first) == 1
    np.testing.assert_array_equal(*answers)


def chain(n, b, by=2.0):
    """L L^T, L of ones on the diagonal and -by below: the pivots say nothing of by^-2n."""
    low = -by * np.eye(b)
    D = np.array([np.eye(b) + (low @ low.T if i else 0) for i in range(n)])
    return np.array([low] * (n - 1)), D


@pytest.mark.parametrize("b", [1, 3, 16])
@pytest.mark.parametrize("assume", [None, "pos"])
def test_pivots_that_hide_it(b, assume):
    for n, found in ((60, 1), (15, 0)):
        L, D = chain(n, b)
        U = () if assume else (L.transpose(0, 2, 1).copy(),)
        op = pl.BlockTridiagonal(L, D, *(U or (None, assume)))
        x = np.random.default_rng(3).standard_normal(n * b)
        assert len(warned(lambda op=op, x=x: pl.solve(op, x))) == found


@pytest.mark.parametrize("assume", [None, "pos"])
def test_bands_and_triangles_whose_pivots_hide_it(assume):
    for n, found in ((60, 1), (15, 0)):
        x = np.random.default_rng(4).standard_normal(n)
        ab = np.array([np.full(n, -2.0), np.full(n, 5.0), np.full(n, -2.0)])
        ab[1, 0] = 1
        low = np.tril(-2 * np.ones((n, n)), -1) + np.eye(n)
        ops = [
            pl.Tridiagonal(ab[0, 1:], ab[1], ab[0, 1:], *([assume] if assume else [])),
            pl.Banded((1, 1), ab, *([assume] if assume else [])),
            pl.Triangular(low),
            pl.SparseTriangular(sp.csr_array(low)),
        ]
        for op in ops:
            assert len(warned(lambda op=op, x=x: pl.solve(op, x))) == found, op


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 6, 50])
def test_zeros_beside_the_diagonal_are_no_pivots(dtype, n):
    """An identity assumed definite was said to have rcond 0."""
    off, one = np.zeros(n - 1, dtype), np.ones(n, dtype)
    assert warned(lambda: pl.solve(pl.Tridiagonal(off, one, off, "pos"), one)) == []
    assert warned(lambda: pl.solve(pl.Tridiagonal(off + 1e-20, one, off + 1e-20, "pos"), one)) == []


def test_what_is_nearly_singular_on_the_way_is_not_told():
    """The base of an update is, the sum is not."""
    rng = np.random.default_rng(5)
    n = 300
    d = np.ones(n)
    d[-1] = 1e-17
    u = rng.standard_normal((n, 4))
    op = pl.LowRankUpdate(pl.Diag(d), u)
    assert np.linalg.cond(op.toarray()) < 1e6
    b = rng.standard_normal(n)
    assert warned(lambda: pl.solve(op, b)) == []


def test_a_formula_is_told_of_as_a_whole():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((400, 10))
    for c, found in ((1e-17, 1), (1e-8, 0)):
        op = pl.Dense(x) @ pl.Dense(x).T + c * pl.Identity(400)
        assert len(warned(lambda op=op: pl.solve(op, rng.standard_normal(400)))) == found


def test_words_for_a_diagonal():
    with pytest.warns(pl.IllConditionedWarning, match=r"range of a diagonal(.|\n)*Diag \(50, 50\)"):
        pl.solve(diag("d", 0.5), np.ones(50))


def test_nan_and_inf_are_no_matter_of_conditioning():
    for value in (np.nan, np.inf):
        d = np.ones(40)
        d[3], d[5] = value, 1e-20
        with np.errstate(all="ignore"):
            for op in (pl.Diag(d), pl.Triangular(np.diag(d)), pl.Circulant(d)):
                assert warned(lambda op=op: pl.solve(op, np.ones(40))) == []


def test_explanations_show_it():
    c = np.r_[3.0, 1, np.zeros(14)]
    low, high = 2.0, 4.0  # of the moduli of 3 + w^k
    for ask in (lambda A: pl.solve(A, np.ones(16)), lambda A: pl.inv(A) @ np.ones(16)):
        with pl.explaining() as e:
            ask(pl.Circulant(c))
        assert e.rcond == pytest.approx(low / high)
        assert "rcond     0.5 at most" in str(e) and "rcond" in e._repr_html_()
    run = pl.explain(pl.Circulant(c), "solve", np.ones(16), run=True)
    assert run.rcond == pytest.approx(low / high)
    assert pl.explain(pl.Circulant(c), "solve", np.ones(16)).rcond is None  # Nothing was run.
    with pl.explaining() as e:
        pl.Circulant(c) @ np.ones(16)
    assert e.rcond is None and "rcond" not in str(e)


@pytest.mark.parametrize("assume", [None, "pos"])
def test_determinants_show_it_and_do_not_warn(assume):
    a = np.diag(np.r_[np.ones(40), 1e-20])
    with pl.explaining() as e:
        assert warned(lambda: pl.logdet(pl.Dense(a, assume))) == []
    assert e.rcond == pytest.approx(1e-20)


def test_the_least_of_several_is_shown():
    with pl.explaining() as e:
        pl.solve(pl.Diag(np.r_[np.ones(9), 0.25]), np.ones(10))
        pl.solve(pl.Diag(np.r_[np.ones(9), 0.5]), np.ones(10))
    assert e.rcond == pytest.approx(0.25)
    assert [p.rcond for p in e.plans] == pytest.approx([0.25, 0.5])
