"""Gradients of formulas of a BlockDiag, or a sparse matrix, and a low rank: by the entries of the
blocks, by the low rank and by numbers within, with no array of n x n numbers that the value does
not need."""

import numpy as np
import pytest

import pylinop as pl

scipy_sparse = pytest.importorskip("scipy.sparse")


def slope(f, p, d, h=1e-2):
    """The derivative along d, by differences of sixth order."""
    w = {1: 45, 2: -9, 3: 1}

    def at(t):
        return f({k: p[k] + t * d[k] for k in p})

    return sum(c * (at(i * h) - at(-i * h)) for i, c in w.items()) / (60 * h)


def along(grads, d):
    return sum(np.sum(np.conj(grads[k]) * d[k]).real for k in d)


def random_like(rng, p):
    def one(x):
        x = np.asarray(x)
        made = rng.standard_normal(x.shape)
        return made + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else made

    return {k: one(x) for k, x in p.items()}


def block_diag(blocks):
    n = sum(len(b) for b in blocks)
    out, at = np.zeros((n, n), np.result_type(*blocks)), 0
    for b in blocks:
        out[at : at + len(b), at : at + len(b)] = b
        at += len(b)
    return out


def dense_loss(A, y):
    return np.real(np.linalg.slogdet(A)[1] + np.vdot(y, np.linalg.solve(A, y)))


def lazy_loss(A, y):
    return np.real(pl.slogdet(A)[1]) + np.real(np.conj(y) @ pl.solve(A, y))


def squares(f, p, n):
    """The steps that ran and wrote n x n numbers."""
    with pl.explaining() as e:
        pl.value_and_grad(f)(p)
    return [s["name"] for s in e.steps if s["took"] and f"({n}, {n})" in s["writes"]]


def problem(rng, sizes, dtype, rank=2):
    n = sum(sizes)

    def matrix(*shape):
        a = rng.standard_normal(shape)
        return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(
            dtype
        )

    blocks = [matrix(g, g) + 4 * g * np.eye(g, dtype=dtype) for g in sizes]
    return blocks, 0.5 * matrix(n, rank), 0.5 * matrix(n, rank), matrix(n)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("sizes", [[5, 5], [4] * 15, [4] * 16, [3] * 70, [4, 7, 4, 2], [40, 8]])
def test_by_a_list_of_blocks(sizes, dtype):
    rng = np.random.default_rng(len(sizes))
    blocks, U, V, y = problem(rng, sizes, dtype)
    p = {f"b{i}": b for i, b in enumerate(blocks)} | {"U": U, "V": V}

    def matrix(p, kind, low):
        return kind([p[f"b{i}"] for i in range(len(sizes))]) + low(p["U"], p["V"])

    def f(p):
        return lazy_loss(matrix(p, lambda b: pl.BlockDiag(*b), pl.LowRank), y)

    def g(p):
        return dense_loss(matrix(p, block_diag, lambda u, v: u @ v.conj().T), y)

    value, grads = pl.value_and_grad(f)(p)
    d = random_like(rng, p)
    assert value == pytest.approx(g(p), rel=1e-12)
    assert along(grads, d) == pytest.approx(slope(g, p, d), rel=1e-8, abs=1e-8)
    assert sum(sizes) < 40 or not squares(f, p, sum(sizes))


@pytest.mark.parametrize("count", [3, 24])
def test_by_a_stack(count):
    rng = np.random.default_rng(count)
    blocks, U, _, y = problem(rng, [6] * count, np.float64)
    p = {"S": np.array([b + b.T for b in blocks]), "U": U}

    def f(p):
        return lazy_loss(pl.BlockDiag(*p["S"]) + pl.LowRank(p["U"]), y)

    def g(p):
        return dense_loss(block_diag(list(p["S"])) + p["U"] @ p["U"].T, y)

    d = random_like(rng, p)
    grads = pl.grad(f)(p)
    assert along(grads, d) == pytest.approx(slope(g, p, d), rel=1e-8)
    assert count < 20 or not squares(f, p, 6 * count)
    with pl.explaining() as e:
        pl.value_and_grad(f)({k: 1.5 * x for k, x in p.items()})
    ran = [s["name"] for s in e.steps if s["took"]]
    at_once = 1 if count < 4 else 2  # of the update; of the pair too
    assert ran.count("entry-sums-pair") == at_once


@pytest.mark.parametrize("count", [4, 20])
def test_by_numbers_within_blocks(count):
    rng = np.random.default_rng(count)
    X, (blocks, U, _, y) = (
        rng.standard_normal((count, 5, 2)),
        problem(rng, [5] * count, np.float64),
    )
    fixed = pl.BlockDiag(*[b @ b.T for b in blocks])
    wide = block_diag([b @ b.T for b in blocks])
    p = {"l": np.array(0.8), "s": np.array(0.3), "t": np.array(0.7), "v": np.array(1.2)}
    n = 5 * count

    def kernels(p):
        K = [pl.Kernel("rbf", x, length_scale=p["l"]) + p["s"] * pl.Identity(5) for x in X]
        return lazy_loss(pl.BlockDiag(*K) + p["t"] * pl.LowRank(U), y)

    def kernels_dense(p):
        K = [
            np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1) / p["l"] ** 2) + p["s"] * np.eye(5)
            for x in X
        ]
        return dense_loss(block_diag(K) + p["t"] * U @ U.T, y)

    def multiples(p):
        A = p["v"] * fixed + p["s"] * pl.Identity(n) + p["t"] * pl.LowRank(U)
        return lazy_loss(A, y) + p["l"]

    def multiples_dense(p):
        return dense_loss(p["v"] * wide + p["s"] * np.eye(n) + p["t"] * U @ U.T, y) + p["l"]

    d = random_like(rng, p)
    for f, g in ((kernels, kernels_dense), (multiples, multiples_dense)):
        grads = pl.grad(f)(p)
        assert along(grads, d) == pytest.approx(slope(g, p, d, 2e-3), rel=1e-7)
        assert n < 60 or not squares(f, p, n)


def test_single_precision():
    rng = np.random.default_rng(5)
    blocks, U, V, y = problem(rng, [4] * 20, np.float32)
    p = {"S": np.array(blocks), "U": U, "V": V}

    def f(p):
        return lazy_loss(pl.BlockDiag(*p["S"]) + pl.LowRank(p["U"], p["V"]), y)

    exact = pl.grad(f)({k: x.astype(np.float64) for k, x in p.items()})
    grads = pl.grad(f)(p)
    for k, x in grads.items():
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, exact[k], atol=2e-4 * np.abs(exact[k]).max())
    mixed = pl.grad(f)(p | {"U": U.astype(np.float64)})  # what is double stays so
    np.testing.assert_allclose(mixed["U"], exact["U"], atol=1e-12)


@pytest.mark.parametrize("sizes", [[4] * 5, [4] * 18, [4, 3, 4]])
def test_a_block_that_is_singular(sizes):
    """B^-1 is none, the sum is regular: by the dense form. Where the sum is singular: an error."""
    rng = np.random.default_rng(1)
    blocks, U, _, _ = problem(rng, sizes, np.float64)
    blocks[1] = np.diag(np.r_[np.ones(sizes[1] - 1), 0])
    n = sum(sizes)

    def f(p):
        B = pl.BlockDiag(*[p[f"b{i}"] for i in range(len(sizes))])
        return pl.slogdet(B + pl.LowRank(p["U"]))[1]

    p = {f"b{i}": b for i, b in enumerate(blocks)} | {"U": U}
    inverse = np.linalg.inv(block_diag(blocks) + U @ U.T).T
    grads = pl.grad(f)(p)
    at = np.r_[0, np.cumsum(sizes)]
    for i in range(len(sizes)):
        own = slice(at[i], at[i + 1])
        np.testing.assert_allclose(grads[f"b{i}"], inverse[own, own], rtol=1e-8, atol=1e-10)
    U = U.copy()
    U[at[1] : at[2]] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(f)(p | {"U": U})
    nearly = blocks[1] + 1e-13 * np.eye(sizes[1])
    blocks[1] = nearly
    inverse = np.linalg.inv(block_diag(blocks) + p["U"] @ p["U"].T).T
    grads = pl.grad(f)(p | {"b1": nearly})
    np.testing.assert_allclose(grads["b0"], inverse[: at[1], : at[1]], rtol=1e-7, atol=1e-9)
    assert n == len(inverse)


def laplacian(n):
    a = int(n**0.5)
    line = scipy_sparse.diags_array(
        [-np.ones(a - 1), 2 * np.ones(a), -np.ones(a - 1)], offsets=[-1, 0, 1]
    )
    eye = scipy_sparse.eye_array(a)
    return scipy_sparse.csr_array(scipy_sparse.kron(line, eye) + scipy_sparse.kron(eye, line))


@pytest.mark.parametrize("a", [8, 21, 23])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_sparse_matrix_beside_a_low_rank(a, symmetric):
    rng = np.random.default_rng(a)
    n, L = a * a, laplacian(a * a)
    if not symmetric:
        L = scipy_sparse.csr_array(L + 0.3 * scipy_sparse.triu(L, 1))
    y = rng.standard_normal(n)
    p = {"c": np.array(0.7), "s": np.array(0.4), "U": rng.standard_normal((n, 2))}
    G = pl.Sparse(L)

    def f(p):
        return lazy_loss(p["c"] * G + p["s"] * pl.Identity(n) + pl.LowRank(p["U"]), y)

    def g(p):
        return dense_loss(p["c"] * L.toarray() + p["s"] * np.eye(n) + p["U"] @ p["U"].T, y)

    d = random_like(rng, p)
    assert along(pl.grad(f)(p), d) == pytest.approx(slope(g, p, d, 2e-3), rel=1e-7)
    if a > 20:
        assert n < 60 or not squares(f, p, n)


@pytest.mark.parametrize("sign", [1, -1, 0.3])
def test_precisions_of_random_fields(sign):
    """t (k^4 C + 2 k^2 G + G C^-1 G): traces with factors on both sides of the inverse, one of them
    diagonal, within a multiple."""
    rng = np.random.default_rng(3)
    n = 784
    L, c, y = laplacian(n), 1 + 0.2 * rng.random(n), rng.standard_normal(n)
    G, C, inverse = pl.Sparse(L), pl.Diag(c), pl.Diag(1 / c)
    p = {"t": np.array(1.1), "k": np.array(0.7)}

    def f(p):
        k = p["k"]
        Q = p["t"] * (k**4 * C + 2 * k**2 * G + G @ inverse @ G)
        return y @ (Q @ y) + sign * pl.logdet(Q)

    def g(p):
        k, D = p["k"], L.toarray()
        Q = p["t"] * (k**4 * np.diag(c) + 2 * k**2 * D + D @ np.diag(1 / c) @ D)
        return y @ Q @ y + sign * np.linalg.slogdet(Q)[1]

    d = random_like(rng, p)
    assert along(pl.grad(f)(p), d) == pytest.approx(slope(g, p, d, 2e-3), rel=1e-8)
    assert not squares(f, p, n)


def test_functions_of_more_arrays_than_a_key_has():
    p = {f"x{i}": np.arange(3.0) + i for i in range(70)}

    def f(p):
        return sum(np.sum(x * x) for x in p.values())

    for _ in range(4):
        grads = pl.grad(f)(p)
    np.testing.assert_array_equal(grads["x69"], 2 * p["x69"])
