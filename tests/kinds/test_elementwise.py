"""HadamardProduct and KhatriRao by structure: the same values, and no dense form on the way."""

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from samples import values
from test_kinds_comp import agrees, each_dtype, same

import pylinop as pl


@each_dtype
def test_of_one_kind(dtype, rng):
    """Structure stays: entries multiply within the kind."""

    def v(*shape):
        return values(rng, shape, dtype)

    T = [pl.Toeplitz(v(4), v(5)) for _ in "ab"]
    C = [pl.Circulant(v(5)) for _ in "ab"]
    H = [pl.Hankel(v(4), v(4)) for _ in "ab"]
    B = [pl.Banded((1, 2), v(4, 5)) for _ in "ab"]
    R = [pl.Tridiagonal(v(4), v(5), v(4)) for _ in "ab"]
    K = [pl.Kron(v(2, 3), v(3, 2)) for _ in "ab"]
    D = [pl.BlockDiag(v(2, 3), v(2, 1)) for _ in "ab"]
    for (A, E), rule in (
        (T, "toeplitz"),
        (C, "circulant"),
        (H, "hankel"),
        (B, "banded"),
        (R, "tridiagonal"),
        (K, "kron"),
        (D, "blockdiag"),
    ):
        P = pl.HadamardProduct(A, E)
        agrees(P, A.toarray() * E.toarray(), rng, dtype)
        assert f"first-elementwise-{rule}" in P.explain().fired
    crossed = pl.HadamardProduct(pl.Kron(v(2, 3), v(3, 2)), pl.Kron(v(3, 2), v(2, 3)))
    agrees(crossed, crossed.toarray(), rng, dtype)  # other partitions: dense


@each_dtype
def test_with_trivial_kinds(dtype, rng):
    a = values(rng, (4, 4), dtype)
    one = np.dtype(dtype).type(1)
    for A, want in (
        (pl.HadamardProduct(pl.Identity(4), a), np.diag(np.diag(a))),
        (pl.HadamardProduct(a, pl.Zeros((4, 4))), np.zeros_like(a)),
        (pl.HadamardProduct(pl.Zeros((4, 4)), a), np.zeros_like(a)),
        (pl.HadamardProduct(a, pl.Full((4, 4), one)), a * one),
        (pl.HadamardProduct(pl.Full((4, 4), one), a), a * one),
    ):
        agrees(A, want.astype(A.dtype), rng, dtype)
    nan = pl.Dense(np.full((2, 2), np.nan))
    same(pl.HadamardProduct(pl.Zeros((2, 2)), nan) @ np.ones(2), np.zeros(2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (1, 1), (0, 3)])
def test_low_ranks(dtype, shape, rng):
    m, n = shape
    u, v, w, z = (values(rng, (k, r), dtype) for k, r in ((m, 2), (n, 2), (m, 3), (n, 3)))
    A, B = pl.LowRank(u, v), pl.LowRank(w, z)
    a = (u @ v.conj().T) * (w @ z.conj().T)
    P = pl.HadamardProduct(A, B)
    x = values(rng, (n, 3), dtype)
    same(P @ x, a @ x)
    same(P.T @ np.ones(m, dtype), a.T @ np.ones(m, dtype))
    same(P.H @ np.ones(m, dtype), a.conj().T @ np.ones(m, dtype))
    assert ("first-elementwise-lowrank" in P.explain().fired) == (min(shape) >= 12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_low_rank_times_what_multiplies_fast(dtype, rng):
    m, n = 60, 50
    u, v, c, r = (values(rng, s, dtype) for s in ((m, 2), (n, 2), (m,), (n,)))
    T = pl.Toeplitz(c, r)
    L = pl.LowRank(u, v)
    a = (u @ v.conj().T) * T.toarray()
    for P in (pl.HadamardProduct(L, T), pl.HadamardProduct(T, L)):
        for k in (1, 4):
            x, y = values(rng, (n, k), dtype), values(rng, (m, k), dtype)
            same(P @ x, a @ x)
            same(P.T @ y, a.T @ y)
            same(P.H @ y, a.conj().T @ y)
            same(P.conj() @ x, a.conj() @ x)
        x = values(rng, (3, n, 2), dtype)
        same(P @ x, a @ x)
    S = pl.HadamardProduct(pl.Sparse(sp.eye_array(m, dtype=dtype)), pl.LowRank(u))
    assert "apply-elementwise-lowrank" in S.explain().fired and "rowmix" in S.explain()
    same(S @ np.ones(m, dtype), np.diag(u @ u.conj().T).astype(dtype))


def test_large_ones_take_no_dense_memory(rng):
    n = 20_000  # a dense form would be 3.2 GB
    u, c, d = rng.standard_normal((n, 2)), rng.standard_normal(n), rng.standard_normal(n)
    x = rng.standard_normal(n)
    with pl.config(memory_limit=2**24):
        T, S = pl.Toeplitz(c), pl.Toeplitz(d)
        same(pl.HadamardProduct(T, S) @ x, pl.Toeplitz(c * d) @ x)
        P = pl.HadamardProduct(pl.LowRank(u), T) @ x
        want = sum(u[:, i] * (T @ (u[:, i] * x)) for i in range(2))
        np.testing.assert_allclose(P, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
        a, b = rng.standard_normal((2, 300, 1000))
        K = pl.KhatriRao(a, b)  # 90,000 x 1000: 720 MB
        y = K @ x[:1000]
        np.testing.assert_allclose(y, ((a * x[:1000]) @ b.T).ravel(), rtol=1e-9, atol=1e-9)
        back = K.T @ y
        want = np.einsum("il,jl,ij->l", a, b, y.reshape(300, 300), optimize=True)
        np.testing.assert_allclose(back, want, rtol=1e-9)


@each_dtype
@pytest.mark.parametrize("shapes", [(3, 2, 4), (1, 5, 2), (5, 1, 2), (0, 2, 3), (2, 2, 0)])
def test_khatri_rao(shapes, dtype, rng):
    m, p, n = shapes
    a, b = values(rng, (m, n), dtype), values(rng, (p, n), dtype)
    want = (a[:, None] * b).reshape(m * p, n)
    agrees(pl.KhatriRao(a, b), want, rng, dtype)
    agrees(pl.KhatriRao(a, b).T, want.T, rng, dtype)
    batch = values(rng, (2, m, n), dtype)
    for A, B in ((batch, b), (a, values(rng, (2, p, n), dtype))):
        want = (A[..., :, None, :] * B[..., None, :, :]).reshape(2, m * p, n)
        agrees(pl.KhatriRao(A, B), want, rng, dtype)


def test_khatri_rao_keeps_the_structure_of_its_first(rng):
    T = pl.Toeplitz(rng.standard_normal(6), rng.standard_normal(5))
    b = rng.standard_normal((3, 5))
    K, k = pl.KhatriRao(T, b), sl.khatri_rao(T.toarray(), b)
    agrees(K, k, rng, "float64")
    assert "apply-khatrirao" in K.explain().fired and "dense-khatrirao" not in K.explain().fired
    agrees(pl.KhatriRao(b, T), sl.khatri_rao(b, T.toarray()), rng, "float64")
    S = pl.KhatriRao(b[:, :3], b[:, 2:])
    x = rng.standard_normal(9)
    square = sl.khatri_rao(b[:, :3], b[:, 2:])
    np.testing.assert_allclose(S.T @ x, square.T @ x)
    np.testing.assert_allclose((S @ S.T @ x), square @ square.T @ x)


@each_dtype
@pytest.mark.parametrize("view", ["T", "H"])
def test_a_view_is_multiplied_along_lines(view, dtype, rng):
    """Both factors were read across theirs: the product with a vector took 2.7 times as long."""
    a, c, r = values(rng, (17, 17), dtype), values(rng, (17,), dtype), values(rng, (17,), dtype)
    A = getattr(pl.HadamardProduct(a, pl.Toeplitz(c, r)), view)
    x = values(rng, (17, 2), dtype)
    with pl.config(check_plans=True, verify=True), pl.explaining() as e:
        got = A @ x
    want = (a * sl.toeplitz(c, r)).T
    want = want.conj() if view == "H" else want
    same(got, want @ x)
    same(A.toarray(), want)
    names = [s["name"] for p in e.plans for s in p.steps]
    assert names.index("mul") < names.index("swap") and names.count("swap") == 1
