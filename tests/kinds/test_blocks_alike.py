"""A BlockDiag of many small blocks of one make: products, solves, determinants and dense forms as
one batch, also as the base of an update and of blocks that are formulas, against dense NumPy."""

import numpy as np
import pytest

import pylinop as pl


def eta(a, x, b):
    size = np.linalg.norm(a, np.inf) * abs(x).max() + abs(b).max()
    return abs(b - a @ x).max() / size


def definite(rng, g, k, dtype="d"):
    a = rng.standard_normal((g, k, k)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((g, k, k))
    return a @ a.conj().swapaxes(-1, -2) + k * np.eye(k)


def steps(A, action, *args):
    return [s["name"] for s in A.explain(action, *args).steps]


@pytest.mark.parametrize("dtype", "dDf")
@pytest.mark.parametrize("g", [1, 15, 16, 63, 64, 90])
def test_one_array_is_its_blocks(g, dtype, rng):
    a = definite(rng, g, 3, dtype).astype(dtype)
    A, listed = pl.BlockDiag(a), pl.BlockDiag(*a)
    assert A.shape == (3 * g, 3 * g) and A.dtype == a.dtype and type(A) is pl.BlockDiag
    dense = A.toarray()
    np.testing.assert_array_equal(dense, listed.toarray())
    for i in range(g):
        np.testing.assert_array_equal(dense[3 * i : 3 * i + 3, 3 * i : 3 * i + 3], a[i])
    assert np.count_nonzero(dense) <= 9 * g
    tolerance = 1e-5 if dtype == "f" else 1e-13
    for k in (1, 7, 8, 20):
        b = rng.standard_normal((3 * g, k)).astype(dtype)
        np.testing.assert_allclose(A @ b, dense @ b, rtol=tolerance, atol=10 * tolerance)
        assert eta(dense, pl.solve(A, b), b) < tolerance
    np.testing.assert_allclose(
        pl.logdet(A), np.linalg.slogdet(dense.astype("D"))[1], rtol=max(tolerance, 1e-12)
    )
    a[0] *= 2  # the array is borrowed
    np.testing.assert_allclose(A.toarray()[:3, :3], a[0])


def test_other_arrays_stay_what_they_are(rng):
    a = rng.standard_normal((4, 2, 2))
    assert pl.BlockDiag(pl.Dense(a)).shape == (4, 2, 2)  # an operator with a batch is a batch
    assert pl.BlockDiag(a, a).shape == (4, 4, 4)  # and so are several arrays
    assert pl.BlockDiag(a[0]).shape == (2, 2)
    assert pl.BlockDiag(rng.standard_normal((3, 2, 5))).shape == (6, 15)
    assert pl.Kron(a, a).shape == (4, 4, 4)
    assert pl.BlockDiag(rng.standard_normal((5, 3, 2, 2))).shape == (5, 3, 2, 2)


@pytest.mark.parametrize("g", [15, 64, 300])
def test_blocks_of_any_shape(g, rng):
    blocks = [rng.standard_normal((4, 2)) for _ in range(g)]
    Z = pl.BlockDiag(*blocks)
    for A in (Z, Z.T, 2 * Z, Z.H):
        dense = A.toarray()
        for k in (1, 9):
            x = rng.standard_normal((A.shape[1], k))
            np.testing.assert_allclose(A @ x, dense @ x, rtol=1e-13, atol=1e-13)
    if g >= 64:
        assert len(steps(Z, "apply", np.ones((2 * g, 9)))) < g


@pytest.mark.parametrize("g", [20, 90])
@pytest.mark.parametrize("m", [1, 2])
def test_the_mixed_model(g, m, rng):
    """Z @ Kron(I, G) @ Z.T + LowRank(W) + c I: block by block, then Woodbury."""
    k, q = 5, 2
    Z = pl.BlockDiag(rng.standard_normal((g, k, m * q)))
    G = np.array([[2.0, 0.5], [0.5, 1.0]])
    W, n = rng.standard_normal((g * k, 3)), g * k
    V = Z @ pl.Kron(pl.Identity(m * g), G) @ Z.T
    assert isinstance(V, pl.BlockDiag)
    want = Z.toarray() @ np.kron(np.eye(m * g), G) @ Z.toarray().T
    np.testing.assert_allclose(V.toarray(), want, rtol=1e-12, atol=1e-12)
    whole = want + W @ W.T + 0.7 * np.eye(n)
    L, s = pl.LowRank(W), 0.7 * pl.Identity(n)
    b = rng.standard_normal((n, 2))
    for A in (V + L + s, V + s + L, L + V + s, s + V + L, s + (L + V)):
        assert isinstance(A, pl.LowRankUpdate)
        np.testing.assert_allclose(A.toarray(), whole, rtol=1e-12, atol=1e-12)
        assert eta(whole, pl.solve(A, b), b) < 1e-14
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(whole)[1], rtol=1e-12)
    told = (V + L + s).explain("solve", b[:, 0])
    assert told.flops < 3000 * n
    left = pl.Kron(pl.Identity(m * g), G) @ Z.T
    assert isinstance(left, pl.BlockDiag)
    np.testing.assert_allclose(
        left.toarray(), np.kron(np.eye(m * g), G) @ Z.toarray().T, rtol=1e-13, atol=1e-13
    )


def test_steps_do_not_grow_with_the_blocks(rng):
    """A LowRankUpdate of thousands of blocks: as many steps as blocks take to be piled up."""
    counts = []
    for g in (500, 1000):
        A = pl.BlockDiag(definite(rng, g, 4)) + pl.LowRank(rng.standard_normal((4 * g, 2)))
        counts.append(len(steps(A, "solve", np.ones(4 * g))))
        if g == 500:
            b = rng.standard_normal(4 * g)
            assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    assert counts[1] < 12 * 1000


def test_shifts_of_blocks(rng):
    a = definite(rng, 6, 3)
    B, eye = pl.BlockDiag(a), pl.Identity(18)
    for A, c in ((B + eye, 1), (eye + B, 1), (B - 0.5 * eye, -0.5), (2j * eye + B, 2j)):
        assert isinstance(A, pl.BlockDiag)
        np.testing.assert_allclose(A.toarray(), B.toarray() + c * np.eye(18))
    mixed = pl.BlockDiag(np.ones((2, 3)), np.ones((4, 3)))  # square as a whole only
    np.testing.assert_array_equal((mixed + pl.Identity(6)).toarray(), mixed.toarray() + np.eye(6))
    assert pl.solve(mixed + 5 * pl.Identity(6), np.ones(6)) == pytest.approx(
        np.linalg.solve(mixed.toarray() + 5 * np.eye(6), np.ones(6))
    )


def test_one_block_many_times(rng):
    a = definite(rng, 1, 4)[0]
    block = pl.Dense(a)
    A = pl.BlockDiag(*[block] * 40)
    b = rng.standard_normal((160, 9))
    np.testing.assert_allclose(A @ b, np.kron(np.eye(40), a) @ b, rtol=1e-13, atol=1e-13)
    assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    S = pl.BlockDiag(*[block + pl.Identity(4)] * 70)
    b = rng.standard_normal(280)
    assert eta(S.toarray(), pl.solve(S, b), b) < 1e-14


def test_singular_blocks_raise(rng):
    a = definite(rng, 30, 3)
    a[7] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(pl.BlockDiag(a), np.ones(90))
    assert pl.det(pl.BlockDiag(a)) == 0


def test_the_safer_way_reads_all_blocks(rng):
    """Woodbury with a block that is nearly zero: its answer is refused, and the dense form's taken,
    whose pile of blocks is made within a guarded branch."""
    g, k = 20, 3
    a = rng.standard_normal((g, k, k))
    a[0] = 1e-17 * rng.standard_normal((k, k))
    W = rng.standard_normal((g * k, 4))
    b = rng.standard_normal(g * k)
    for A in (pl.BlockDiag(a) + pl.LowRank(W), pl.LowRankUpdate(pl.BlockDiag(*a), W)):
        dense = a_dense(a) + W @ W.T
        assert eta(dense, pl.solve(A, b), b) < 1e-14
        np.testing.assert_allclose(pl.logdet(A @ A.T), 2 * np.linalg.slogdet(dense)[1], rtol=1e-10)


def a_dense(a):
    g, k, _ = a.shape
    out = np.zeros((g * k, g * k))
    for i in range(g):
        out[i * k : i * k + k, i * k : i * k + k] = a[i]
    return out


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("g", [2, 15, 16, 17, 100])
def test_inverses_seen_through_views(g, dtype, rng):
    """`y @ inv(A)` is as many steps as `inv(A) @ y`, whatever the number of blocks."""
    a = definite(rng, g, 3, dtype) + 0.5 * rng.standard_normal((g, 3, 3))  # not Hermitian
    A, y = pl.BlockDiag(*a.astype(dtype)), rng.standard_normal((3 * g, 2))
    dense = A.toarray()
    asked = [(pl.inv(A), dense), (pl.inv(A).T, dense.T), (pl.inv(A).H, dense.conj().T)]
    if dtype == "D":
        asked.append((pl.inv(A).conj(), dense.conj()))
    with pl.config(check_plans=True, verify=True):
        for inverse, b in asked:
            assert eta(b, inverse @ y, y) < 1e-13
            assert eta(b.T, (y.T @ inverse).T, y) < 1e-13
            if g >= 16:
                assert len(steps(inverse, "apply", y)) <= 10 + g // 8


@pytest.mark.parametrize("g", [3, 4, 17, 100])
@pytest.mark.parametrize("c", [2, -0.5, 1, 3j, np.float32(3)])
def test_a_multiple_is_one_multiple_of_the_product(g, c, rng):
    """Each block was multiplied and scaled in steps of its own: 2.7 times the product of B."""
    B = pl.BlockDiag(*rng.standard_normal((g, 4, 3)).astype(np.float32))
    for x in (rng.standard_normal(3 * g), rng.standard_normal((3 * g, 2)).astype(np.float32)):
        with pl.config(check_plans=True, verify=True):
            got = (c * B) @ x
        want = c * (B.toarray() @ x)
        assert got.dtype == np.result_type((c * B).dtype, x.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        if g >= 4:
            assert len(steps(c * B, "apply", x)) <= len(steps(B, "apply", x)) + 3
    other = pl.BlockDiag(*[(1 + i) * pl.Dense(rng.standard_normal((2, 2))) for i in range(g)])
    x = rng.standard_normal(2 * g)
    np.testing.assert_allclose(other @ x, other.toarray() @ x, rtol=1e-12, atol=1e-12)
