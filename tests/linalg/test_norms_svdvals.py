"""Norms, singular values, ranks, eigenvalues, pseudo-inverses and determinants of every kind by its
structure, against numpy.linalg on the dense form; more of determinants is in test_determinants."""

import numpy as np
import pytest
import ref
import scipy.linalg
import scipy.sparse as sp
from samples import leaf

import pylinop as pl

ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
KINDS = [*ref.LEAVES, "Hadamard"]
CLOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def instance(kind, rng, m, n, dtype, batch=(), invertible=False):
    """An operator and its dense form in floats, or None."""
    if kind == "Hadamard":
        if m != n or m & (m - 1) or batch or m == 0:
            return None
        return pl.Hadamard(n, dtype), scipy.linalg.hadamard(n).astype(dtype)
    d = leaf(kind, rng, m, n, dtype, batch, invertible=invertible)
    if d is None:
        return None
    a = ref.dense(d)
    return ref.build(d), np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-2]), *a.shape[-2:]))


def close(got, want, dtype, size=1.0):
    tol = CLOSE[str(np.dtype(dtype))] * np.max(size)
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert np.array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(invalid="ignore"):
        ok = (np.abs(got - want) <= tol) | (got == want)
    assert np.all(ok | np.isnan(want)), (got, want, tol)


@pytest.mark.parametrize("kind", KINDS)
def test_empty(kind, rng):
    """No rows, no columns, no batch elements: NumPy's values, or its exceptions."""
    for m, n in ((0, 0), (0, 2), (3, 0), (2, 2)):
        for batch in ((), (0,)):
            found = instance(kind, rng, m, n, "float64", batch)
            if found is None or (0 not in (m, n) and not batch):
                continue
            A, a = found
            for order in ORDERS:
                alike(pl.matrix_norm, np.linalg.norm, A, a, order)
            alike(pl.svdvals, np.linalg.svdvals, A, a)
            if a.size:
                alike(pl.matrix_rank, np.linalg.matrix_rank, A, a)
            else:  # an error in NumPy 2.0
                rank = np.asarray(pl.matrix_rank(A))
                assert rank.shape == a.shape[:-2] and (rank == 0).all()
            if m == n:
                alike(pl.det, np.linalg.det, A, a)
                alike(pl.eigvalsh, np.linalg.eigvalsh, A, a)
            alike(lambda A: pl.pinv(A).toarray(), np.linalg.pinv, A, a)


def alike(ours, theirs, A, a, *args):
    try:
        more = {"axis": (-2, -1)} if theirs is np.linalg.norm else {}
        want = theirs(a, *args, **more)
    except Exception as error:
        with pytest.raises(type(error)):
            ours(A, *args)
        return
    np.testing.assert_allclose(ours(A, *args), want, atol=1e-12)


def shapes(kind):
    return ((4, 4), (3, 5), (5, 3), (1, 1)) if kind != "Hadamard" else ((4, 4), (2, 2), (1, 1))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_against_numpy(kind, dtype, rng):
    for m, n in shapes(kind):
        for batch in ((), (2,)):
            for _ in range(3):
                found = instance(kind, rng, m, n, dtype, batch)
                if found is None:
                    continue
                for A, a in views(*found):
                    same_answers(A, a, A.dtype)


def views(A, a):
    yield A, a
    yield A.T, np.swapaxes(a, -1, -2)
    yield A.H, ref.adj(a)
    yield 3 * A, 3 * a


def same_answers(A, a, dtype):
    norm = max(1.0, np.linalg.norm(a, axis=(-2, -1)).max())
    s = np.linalg.svdvals(a)
    for order in ORDERS:
        got = pl.matrix_norm(A, order)
        close(got, np.linalg.matrix_norm(a, ord=order), dtype, 8 * norm)
        assert np.asarray(got).dtype == np.empty(0, dtype).real.dtype
    close(pl.svdvals(A), s, dtype, 8 * norm)
    k = 0.5 * norm
    if np.all(np.abs(s - k) > 1e-3 * norm):
        np.testing.assert_array_equal(pl.matrix_rank(A, tol=k), (s > k).sum(-1))
    if a.shape[-1] == a.shape[-2]:
        close(pl.det(A), np.linalg.det(a), dtype, 50 * norm ** a.shape[-1])
    with np.errstate(all="ignore"):
        worst = np.where(s[..., -1] > 0, s[..., 0] / s[..., -1], np.inf)
    if np.all(worst < 1e3):
        for p in ORDERS if a.shape[-1] == a.shape[-2] else (2, -2):
            want = np.linalg.cond(a, p)
            close(pl.cond(A, p), want, dtype, 8 * worst.max() ** 2 * a.shape[-1])
        P = pl.pinv(A, 1e-5)
        close(P.toarray(), np.linalg.pinv(a, 1e-5), dtype, 50 * worst.max() ** 2 / s[..., -1].min())
    else:
        cut = 1e-2
        if np.all(np.abs(s - cut * s[..., :1]) > 1e-4 * s[..., :1]):
            P = pl.pinv(A, cut)
            close(P.toarray(), np.linalg.pinv(a, cut), dtype, 1e6 / max(s.max(), 1e-3))


# -- by structure: under a memory limit that the dense form does not keep --

N = 64


def vectors(rng, *shapes):
    return [rng.standard_normal(s) for s in shapes]


STRUCTURED = {
    "Permutation": (lambda r: pl.Permutation(r.permutation(N)), "norms cond pinv det"),
    "Householder": (lambda r: pl.Householder(r.standard_normal(N)), "norms cond pinv det eig"),
    "Householder tau": (lambda r: pl.Householder(r.standard_normal(N), 0.3), "norms cond2 det eig"),
    "DFT": (lambda r: pl.DFT(N), "norms cond pinv det"),
    "inverse of DFT": (lambda r: pl.inv(pl.DFT((8, 8))), "norms det"),
    "DFT ortho": (lambda r: pl.DFT((4, 4, 4), "ortho"), "norms cond pinv det"),
    "DCT": (lambda r: pl.DCT((8, 8)), "values cond2 pinv det"),
    "DCT 3": (lambda r: pl.DCT((4, 16), 3, "forward"), "values cond2 pinv det"),
    "Hadamard": (lambda r: pl.Hadamard(N), "norms cond pinv det eig"),
    "inverse of Hadamard": (lambda r: pl.inv(pl.Hadamard(N)), "norms det"),
    "Circulant": (lambda r: pl.Circulant(r.standard_normal(N)), "norms cond pinv det"),
    "Circulant 2": (lambda r: pl.Circulant(r.standard_normal((8, 8)), 2), "norms cond pinv det"),
    "Circulant H": (
        lambda r: pl.Circulant(np.fft.ifft(r.standard_normal((2, N)))),
        "norms cond pinv det",
    ),
    "Circulant sum": (
        lambda r: pl.Circulant(r.standard_normal(N)) @ pl.Circulant(r.standard_normal(N)),
        "values cond2 det",
    ),
    "BlockDiag": (
        lambda r: pl.BlockDiag(*r.standard_normal((16, 4, 4))),
        "norms cond pinv det eig",
    ),
    "BlockDiag closed": (
        lambda r: (
            2 * pl.BlockDiag(*r.standard_normal((16, 4, 4)))
            + pl.BlockDiag(*r.standard_normal((16, 4, 4)))
            @ pl.inv(pl.BlockDiag(*r.standard_normal((16, 4, 4))))
        ),
        "norms cond pinv det",
    ),
    "BlockDiag oblong": (
        lambda r: pl.BlockDiag(r.standard_normal((3, 4)), pl.Identity(57), np.ones((4, 3))),
        "norms cond2 pinv det singular",
    ),
    "Block": (
        lambda r: pl.Block(
            [
                [pl.Identity(32), pl.Toeplitz(r.standard_normal(32))],
                [None, 1.0 * pl.Permutation(r.permutation(32))],
            ]
        ),
        "sums",
    ),
    "Banded": (lambda r: pl.Banded((2, 1), r.standard_normal((4, N)) + 1), "sums det"),
    "Tridiagonal": (lambda r: pl.Tridiagonal(*vectors(r, N - 1, N, N - 1)), "sums det"),
    "Tridiagonal H": (
        lambda r: (lambda e: pl.Tridiagonal(e, r.standard_normal(N), e.conj()))(
            r.standard_normal(N - 1) + 1j * r.standard_normal(N - 1)
        ),
        "norms cond2 det eig",
    ),
    "Tridiagonal closed": (
        lambda r: 2 * pl.Tridiagonal(*vectors(r, N - 1, N, N - 1)) + pl.Identity(N),
        "sums det",
    ),
    "Triangular": (
        lambda r: pl.Triangular(0.05 * r.standard_normal((N, N)), True, True),
        "sums det",
    ),
    "Sparse": (
        lambda r: pl.Sparse(sp.random_array((N, N), density=0.05, rng=r, format="coo")),
        "sums",
    ),
    "Toeplitz": (lambda r: pl.Toeplitz(*vectors(r, N, N)), "sums"),
    "Full": (lambda r: pl.Full((N, N), -2.5), "norms cond2 pinv det eig singular"),
    "Diag off": (lambda r: pl.Diag(r.standard_normal(N - 1), 1), "values det singular"),
    "Laplacian": (lambda r: pl.Laplacian((8, 8), "dirichlet", float), "norms cond2 det eig"),
    "Laplacian periodic": (
        lambda r: pl.Laplacian((4, 16), "periodic", float),
        "norms det eig singular",
    ),
    "FiniteDifference": (lambda r: pl.FiniteDifference(N, 3, "backward", "zero"), "det"),
    "KronSum": (
        lambda r: pl.KronSum(*(a + a.T for a in vectors(r, (8, 8), (8, 8)))),
        "values cond2 eig",
    ),
    "LowRank": (lambda r: pl.LowRank(*vectors(r, (N, 3), (N, 3), (3, 3))), "values det singular"),
    "LowRank H": (lambda r: pl.LowRank(r.standard_normal((N, 3))), "values pinv det eig singular"),
    "Eigen": (
        lambda r: pl.Eigen(pl.DCT(N, norm="ortho"), r.standard_normal(N)),
        "values pinv det eig",
    ),
    "Root": (lambda r: pl.Root(r.standard_normal((N, 2)) @ np.eye(2)), "det singular"),
    "LowRankUpdate": (
        lambda r: pl.Diag(r.uniform(1, 2, N)) + pl.LowRank(r.standard_normal((N, 3))),
        "det",
    ),
    "Tridiagonal update": (
        lambda r: pl.LowRankUpdate(
            pl.Tridiagonal(np.ones(N - 1), np.full(N, 3.0), np.ones(N - 1)),
            *vectors(r, (N, 2), (N, 2), (2, 2)),
        ),
        "det",
    ),
}


def fired(A):
    lines = [line for line in A.explain("det").splitlines() if line.startswith("rules")]
    return lines[0].split("fired: ")[1].split(", ")


@pytest.mark.parametrize("name", STRUCTURED)
def test_without_a_dense_form(name, rng):
    make, what = STRUCTURED[name]
    A = make(rng)
    a = A.toarray()
    what = what.split()
    orders = ORDERS if "norms" in what else []
    orders = ["fro", "nuc", 2, -2] if "values" in what else orders
    orders = ["fro", 1, -1, np.inf, -np.inf] if "sums" in what else orders
    big = np.linalg.norm(a, axis=(-2, -1)).max()
    with pl.config(memory_limit=25_000):  # their dense forms have 32,768 bytes
        with pytest.raises(pl.MaterializationError):
            pl.cond(A + pl.Hankel(np.ones(N)), 1)
        for order in orders:
            want = np.linalg.matrix_norm(a, ord=order)
            np.testing.assert_allclose(
                pl.matrix_norm(A, order), want, rtol=1e-11, atol=1e-12 * big * N
            )
        if "norms" in what or "values" in what:
            s = pl.svdvals(A)
            np.testing.assert_allclose(s, np.linalg.svdvals(a), rtol=1e-11, atol=1e-13 * big)
            rank = pl.matrix_rank(A, rtol=1e-9)
            np.testing.assert_array_equal(rank, np.linalg.matrix_rank(a, rtol=1e-9))
        for p in ORDERS if "cond" in what else (2, -2) if "cond2" in what else ():
            got, want = pl.cond(A, p), np.linalg.cond(a, p)
            if np.all(np.linalg.cond(a) < 1e12):
                np.testing.assert_allclose(got, want, rtol=1e-7)
            else:
                assert got > 1e12 if p != -2 else got < 1e-12
        if "pinv" in what:
            P = pl.pinv(A, 1e-10)
        if "eig" in what:
            for uplo in "LU":
                w = np.linalg.eigvalsh(a, uplo)
                np.testing.assert_allclose(pl.eigvalsh(A, uplo), w, rtol=1e-11, atol=1e-12 * big)
        if "det" in what:
            sign, log = pl.slogdet(A)
            rules = fired(A)  # blocks may go by their dense forms
            assert (
                any(r.startswith("scaledet-blockdiag") for r in rules)
                or "scaledet-dense" not in rules
            )
    if "pinv" in what:
        want = np.linalg.pinv(a, 1e-10)
        np.testing.assert_allclose(P.toarray(), want, atol=1e-9 * np.abs(want).max())
    if "det" in what:
        want_sign, want_log = np.linalg.slogdet(a)
        if "singular" in what:
            assert sign == 0 and log == -np.inf
        else:
            np.testing.assert_allclose(log, want_log, rtol=1e-11, atol=1e-9)
            np.testing.assert_allclose(sign, want_sign, atol=1e-9)


# -- eigenvalues, pseudo-inverses --


def test_eigenvalues_read_one_triangle(rng):
    e, f = rng.standard_normal((2, 20)) + 1j * rng.standard_normal((2, 20))
    d = rng.standard_normal((3, 21)) + 0.5j
    T = pl.Tridiagonal(e, d, f)
    for uplo in "LU":
        np.testing.assert_allclose(
            pl.eigvalsh(T, uplo), np.linalg.eigvalsh(T.toarray(), uplo), atol=1e-12
        )
    K = pl.KronSum(rng.standard_normal((3, 3)), rng.standard_normal((2, 4, 4)))
    B = pl.BlockDiag(rng.standard_normal((3, 3)), rng.standard_normal((2, 4, 4)))
    for A in (K, B, -2 * B.T, 3 * K):
        for uplo in "LU":
            np.testing.assert_allclose(
                pl.eigvalsh(A, uplo), np.linalg.eigvalsh(A.toarray(), uplo), atol=1e-12
            )
    swap = pl.Permutation([[1, 0, 2], [0, 1, 2]])
    np.testing.assert_array_equal(pl.eigvalsh(swap), [[-1, 1, 1], [1, 1, 1]])
    cycle = pl.Permutation([1, 2, 0])  # not symmetric: as NumPy reads it
    np.testing.assert_allclose(pl.eigvalsh(cycle), np.linalg.eigvalsh(cycle.toarray()))
    for c in ([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0, 2j, -2j]):
        C = pl.Circulant(np.array(c))
        np.testing.assert_allclose(pl.eigvalsh(C), np.linalg.eigvalsh(C.toarray()), atol=1e-13)
    F = pl.Full((3, 3), -2 + 0j)
    np.testing.assert_allclose(pl.eigvalsh(F), np.linalg.eigvalsh(F.toarray()), atol=1e-14)
    for Q in (pl.BlockDiag(np.ones((3, 3))), pl.Dense(np.eye(3), "orthogonal"), pl.Identity(3).T):
        E = pl.Eigen(Q, np.array([3.0, -1.0, 2.0]))
        np.testing.assert_allclose(pl.eigvalsh(E), np.linalg.eigvalsh(E.toarray()), atol=1e-13)
        np.testing.assert_allclose(pl.svdvals(E), np.linalg.svdvals(E.toarray()), atol=1e-13)
    L = pl.LowRank(rng.standard_normal((9, 2)), None, np.diag([1.0, -2.0]))
    np.testing.assert_allclose(pl.eigvalsh(L), np.linalg.eigvalsh(L.toarray()), atol=1e-12)


def test_pinv_cuts_blocks_as_numpy(rng):
    """What counts as zero is relative to the largest singular value of all blocks."""
    B = pl.BlockDiag(1e3 * np.eye(2), np.diag([1.0, 1e-3]), np.zeros((2, 1)))
    for how in ({}, {"rcond": 1e-4}, {"rcond": 1e-2}, {"rtol": None}, {"rtol": 1e-4}):
        P = pl.pinv(B, **how)
        assert type(P) is pl.BlockDiag
        np.testing.assert_allclose(P.toarray(), np.linalg.pinv(B.toarray(), **how))
    C = pl.Circulant([1.0, -1.0, 0.0, 0.0])
    assert type(pl.pinv(C)) is pl.Circulant
    np.testing.assert_allclose(pl.pinv(C).toarray(), np.linalg.pinv(C.toarray()), atol=1e-14)
    assert pl.cond(C) > 1e15 and pl.cond(C, 1) == np.inf


@pytest.mark.parametrize("name", ["Circulant", "Tridiagonal", "BlockDiag", "Banded", "Triangular"])
def test_integers(name):
    i = np.array([[100, 50, 7], [3, 100, 2], [9, 4, 100]], np.int8)
    A = {
        "Circulant": lambda: pl.Circulant(i[0]) @ pl.Circulant(i[1]),
        "Tridiagonal": lambda: 2 * pl.Tridiagonal(i[0, :2], i[1], i[2, :2]),
        "BlockDiag": lambda: pl.BlockDiag(i, i[:2, :2]) @ pl.BlockDiag(i, i[:2, :2]),
        "Banded": lambda: pl.Banded((1, 1), i),
        "Triangular": lambda: pl.Triangular(i),
    }[name]()
    a = (A @ pl.Identity(A.shape[-1], float)).toarray()  # from the leaves on
    for order in ORDERS:
        np.testing.assert_allclose(pl.matrix_norm(A, order), np.linalg.norm(a, order))
    np.testing.assert_allclose(pl.det(A), np.linalg.det(a))
    np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(a))


def test_writes_are_seen(rng):
    c, d = rng.standard_normal((2, 8))
    A, B = pl.Circulant(c), pl.Tridiagonal(c[1:], d, c[1:])
    for _ in range(2):
        for X in (A, B):
            a = X.toarray()
            np.testing.assert_allclose(pl.svdvals(X), np.linalg.svdvals(a), atol=1e-12)
            np.testing.assert_allclose(pl.matrix_norm(X, 1), np.linalg.norm(a, 1))
            np.testing.assert_allclose(pl.det(X), np.linalg.det(a), rtol=1e-9)
        c[2] += 1
        d[1] -= 3


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, np.inf, -np.inf])
def test_cond_of_singular_matrices_is_inf(p):
    """In every norm but 2 and -2, where rounding may hide it, also where NumPy's SVD gives up."""
    rng = np.random.default_rng()
    one = np.ones((3, 3))
    regular = rng.standard_normal((3, 3)) + 5 * np.eye(3)
    singular = [
        one,
        np.zeros((3, 3)),
        pl.Diag([1.0, 0.0, 2.0]),
        pl.Zeros(3),
        pl.Toeplitz([1.0, 1.0]),
    ]
    singular += [pl.Kron(one, np.eye(2)), pl.Kron(pl.Diag([1.0, 0.0]), regular), 2 * pl.Dense(one)]
    singular += [pl.Circulant([1.0, 1.0]), pl.BlockDiag(one, regular), 1j * pl.Dense(one)]
    for A in singular:
        assert pl.cond(A, p) == np.inf, A
    both = pl.cond(np.stack([one, regular]), p)
    assert both[0] == np.inf
    np.testing.assert_allclose(both[1], np.linalg.cond(regular, p), rtol=1e-12)
    np.testing.assert_allclose(pl.cond(1j * regular, p), np.linalg.cond(regular, p), rtol=1e-12)
    bad = regular.copy()
    bad[0, 0] = np.nan
    assert np.isnan(pl.cond(bad, p))


def test_blocks_of_one_array_taken_in_two_ways_are_not_the_same():
    a, b = np.array([[1.0, 2], [3, 4]]), np.array([[0.0, 1], [5, 2]])
    upper = pl.Dense(a, assume_a="upper triangular")
    op = pl.Block([[pl.Dense(a), pl.Dense(b)], [pl.Dense(b), upper]])
    np.testing.assert_allclose(pl.svdvals(op), np.linalg.svdvals(op.toarray()), rtol=1e-12)
    np.testing.assert_allclose(pl.norm(op, 2), np.linalg.norm(op.toarray(), 2), rtol=1e-12)
    both = pl.Block([[upper, pl.Dense(b)], [pl.Dense(b), pl.Dense(a, assume_a="upper triangular")]])
    np.testing.assert_allclose(pl.svdvals(both), np.linalg.svdvals(both.toarray()), rtol=1e-12)


def test_block_circulants_hold_no_more_than_they_may(rng):
    blocks = [pl.Dense(rng.standard_normal((50, 50))) for _ in range(20)]
    op = pl.Block([[blocks[(i - j) % 20] for j in range(20)] for i in range(20)])
    with pl.config(memory_limit=100_000):
        for ask in (pl.svdvals, lambda op: pl.norm(op, 2), pl.matrix_rank):
            with pytest.raises(pl.MaterializationError, match="DFT of its blocks"):
                ask(op)
    with pl.config(memory_limit=10**7):
        assert pl.svdvals(op).shape == (1000,)


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, np.inf, -np.inf])
def test_condition_numbers_of_what_is_singular_or_nan(p):
    nan, zero = pl.Diag(np.array([0.0, np.nan])), np.zeros((1, 1))
    assert np.isnan(pl.cond(nan, p))
    assert pl.cond(pl.BlockDiag(zero, zero), p) == np.inf
    assert pl.cond(pl.BlockDiag(zero, np.ones((1, 1))), p) == np.inf
    if p != "nuc":  # gesdd refuses NaN
        assert np.isnan(pl.cond(pl.BlockDiag(np.full((1, 1), np.nan), np.ones((1, 1))), p))


@pytest.mark.parametrize("shape", [(0, 3, 3), (0, 0), (2, 0, 0)])
def test_empty_triangles_under_a_limit(shape):
    op = pl.Triangular(np.zeros(shape))
    for p in (1, np.inf, "fro"):
        want = pl.matrix_norm(op, p)
        with pl.config(memory_limit=10**6):
            np.testing.assert_array_equal(pl.matrix_norm(op, p), want)


@pytest.mark.parametrize("ord", ["fro", 1, np.inf, 2, "nuc"])
def test_sums_of_integer_toeplitz_matrices_do_not_wrap(ord):
    """They close to a Toeplitz of the integers' dtype, in which entries read one by one wrap."""
    c, r = np.array([100, 50, 90, 3], np.int8), np.array([100, 7, -90, 3], np.int8)
    A = pl.Toeplitz(c, r) + pl.Toeplitz(c, r)
    want = np.linalg.norm(2.0 * np.asarray(pl.Toeplitz(c, r)), ord)
    assert abs(pl.matrix_norm(A, ord=ord) - want) <= 1e-13 * want
