"""Numbers of a kind that are made of those of two others, and the sums that are their gradients:
each had no form on the arrays of other libraries before."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from formulas import elsewhere

import pylinop as pl
from pylinop._namespace import walk

LIBRARIES = ["numpy", "torch", "jax", "strict"]


@pytest.fixture(params=LIBRARIES)
def library(request):
    pytest.importorskip(elsewhere.LIBRARIES[request.param][0].partition(".")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.MaterializationWarning)
        yield elsewhere.Library(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(20261127)


def walked(library, head, arrays, i=(), shape=(), dtype="float64", core=1):
    """A node of arrays alone; sizes are tuples."""
    rows, leaves = [], {}
    for k, a in enumerate(arrays):
        if isinstance(a, tuple):
            rows.append(("sizes", (), (0, 0, 0, 0), 0j, "float64", a, 1, 0, 0))
            continue
        rows.append(("array", (), (0, 0, 0, 0), 0j, str(a.dtype), a.shape, 1, k + 1, 0))
        leaves[k + 1] = library.put(a)
    i = (*i, *[0] * (4 - len(i)))
    rows.append((head, tuple(range(len(arrays))), i, 0j, dtype, shape, core, 0, 0))
    return np.asarray(library.back(walk.run(library.namespace, (rows, None, None, ()), leaves)))


def close(got, due):
    assert got.shape == np.shape(due)
    np.testing.assert_allclose(got, due, rtol=0, atol=1e-12 * max(1, np.abs(due).max(initial=0)))


def test_index_vectors(library, rng):
    p = np.stack([rng.permutation(5) for _ in range(3)])
    q = np.stack([rng.permutation(5) for _ in range(3)])
    wrapped = np.where(p % 2, p, p - 5)  # some count from the end
    due = np.argsort(p, -1)
    close(walked(library, "inverse_permutation", [wrapped], (), (3, 5), "int64"), due)
    found = walked(library, "compose", [p, np.where(q % 2, q, q - 5)], (), (3, 5), "int64")
    close(found, np.take_along_axis(p, q, -1))
    close(walked(library, "compose", [p[0], q[1]], (), (5,), "int64"), p[0][q[1]])


TWICE = np.array([0, 2, 2, 1])


def test_a_permutation_that_holds_an_index_twice(library):
    """C says where; elsewhere nobody waits for the device: NaN. Integers have none."""
    P, x = pl.Permutation(TWICE), np.ones((4, 1))
    close(library.walked(pl.Permutation([0, 2, -1, 1]), elsewhere.APPLY, x), x)
    for A in (P, pl.inv(P), P.T, P + pl.Identity(4)):
        assert np.all(np.isnan(library.walked(A, elsewhere.APPLY, x)))
    for action in (elsewhere.DENSE, elsewhere.DIAGONAL, elsewhere.DET):
        assert np.all(np.isnan(library.walked(pl.inv(P), action)))
    with pytest.raises(ValueError, match="each index once"):
        walked(library, "inverse_permutation", [TWICE], (), (4,), "int64")
    with pytest.raises(ValueError, match="each index once"):
        walked(library, "inverse_permutation", [np.stack([TWICE, TWICE])], (), (2, 4), "int64")
    if library.name in ("numpy", "jax"):  # which wrap -5 + 4 once more; torch says that itself
        with pytest.raises(ValueError, match="each index once"):
            walked(library, "inverse_permutation", [np.array([0, 1, 2, -5])], (), (4,), "int64")


def test_a_permutation_that_is_traced():
    jax = pytest.importorskip("jax")
    library = elsewhere.Library("jax")
    P = pl.Permutation(TWICE)
    canonical = pl.inv(P)._canonical(elsewhere.APPLY, np.ones((4, 1)), 0, 0)
    (index,) = dict(canonical[1])

    def of(p, x):
        return walk.run(library.namespace, canonical, {index: p, canonical[2]: x})

    x = np.arange(4.0)[:, None]
    assert np.all(np.isnan(jax.jit(of)(TWICE, x)))
    fine = np.array([1, 2, 3, 0])
    close(np.asarray(jax.jit(of)(fine, x)), x[[3, 0, 1, 2]])
    both = np.asarray(jax.vmap(of, (0, None))(np.stack([TWICE, fine]), x))
    assert np.all(np.isnan(both[0])) and np.all(np.isfinite(both[1]))


def test_of_no_numbers(library, rng):
    c = rng.standard_normal(3)
    close(walked(library, "concat", [c, c[:0]], (), (3,)), c)


def test_blocks_with_a_diagonal(library, rng):
    blocks, v = rng.standard_normal(3 * 4), rng.standard_normal(6)
    due = blocks.reshape(3, 2, 2) + v.reshape(3, 2, 1) * np.eye(2)
    close(walked(library, "blockplus", [blocks, v], (2,), (12,)), due.reshape(-1))
    close(walked(library, "blockplus", [blocks[:0], v], (0,), (0,)), blocks[:0])


def test_toeplitz_pieces(library, rng):
    c, r = rng.standard_normal(4), rng.standard_normal(3)
    A = scipy.linalg.toeplitz(c, r)
    close(walked(library, "diagrun", [c, r], (3, -2, 3), (3,)), [c[3], c[1], r[1]])
    due = [np.trace(A, -k) for k in range(-2, 4)]
    sums = "toeplitz_diagonal_sums"
    close(walked(library, sums, [c, r], (), (6,)), due)
    close(walked(library, sums, [c, r], (0, 0, 1), (6,)), due[::-1])
    B = scipy.linalg.toeplitz(c[:3], r)
    i, j = np.indices(B.shape)
    for flip in (0, 1):
        around = [B[((j - i) if flip else (i - j)) % 3 == k].sum() for k in range(3)]
        close(walked(library, sums, [c[:3], r], (0, 1, flip), (3,)), around)


def test_circulants(library, rng):
    a, b = rng.standard_normal(6), rng.standard_normal(6) + 1j * rng.standard_normal(6)
    due = np.fft.ifft(np.fft.fft(a) * np.fft.fft(b))
    found = walked(library, "circular_convolution", [a.astype(complex), b, (6,)], (), (6,),
                   "complex128")  # fmt: skip
    close(found, due)
    c = rng.standard_normal(6)
    boxes = [np.fft.fft2(x.reshape(2, 3)) for x in (a, c)]
    due = np.fft.ifft2(boxes[0] * boxes[1]).real.reshape(-1)
    close(walked(library, "circular_convolution", [a, c, (2, 3)], (), (6,)), due)


def test_entries_of_a_band_and_of_triangles(library, rng):
    """Entry (i, j) of the band at [j, up + i - j]; of triangles what lies outside is 0."""
    m, n, low, up = 6, 5, 1, 2
    ab, dense = rng.standard_normal((n, low + 1 + up)), np.zeros((m, n))
    for i in range(m):
        for j in range(n):
            if -up <= i - j <= low:
                dense[i, j] = ab[j, up + i - j]
    rows, columns = np.array([0, 5, 3, 1, 1]), np.array([2, 0, 3, 3, 0])
    where = (2, 0, m, (low << 16) | up)
    due = dense[rows, columns]
    close(walked(library, "band_entry_sums", [ab, rows, columns], where, (5,)), due)
    counts = [columns <= rows, columns < rows, columns >= rows, columns > rows]
    full = rng.standard_normal((m, n))
    for k, mask in enumerate(counts, 1):
        found = walked(library, "array_entry_sums", [full, rows, columns], (2, k), (5,))
        close(found, full[rows, columns] * mask)


def test_operators_that_had_no_form(library, rng):
    n = 12
    one, other = (
        scipy.sparse.random_array((n, n), density=0.2, rng=rng) + k * scipy.sparse.eye_array(n)
        for k in (3, 4)
    )
    S, R = pl.Sparse(one.tocsr()), pl.Sparse(other.tocsc())
    D = pl.Diag(rng.standard_normal(n) + 3)
    blocks = rng.standard_normal((3, 4, 4)) + 9 * np.eye(4)
    T = pl.BlockTridiagonal(0.1 * blocks[1:], blocks, 0.1 * blocks[1:])
    P = pl.Permutation(rng.permutation(n))
    kinds = {
        "S D R": S @ D @ R,
        "blocks + D": T + D,
        "P' S": P.T @ S,
        "circulants": pl.Circulant(rng.standard_normal(n)) @ pl.Circulant(rng.standard_normal(n)),
        "kron sum": pl.KronSum(pl.Dense(blocks[0]), pl.Dense(blocks[1][:3, :3])),
    }
    asked = 0
    for what, A in kinds.items():
        for name, op, action, x, due in elsewhere.questions(A, rng):
            got = library.walked(op, action, x)
            size = max(1, np.abs(due).max(initial=0))
            off = np.abs(got - due).max(initial=0) / size
            assert off <= elsewhere.tolerance(op, action, x), (what, name)
            asked += 1
    assert asked >= 30
