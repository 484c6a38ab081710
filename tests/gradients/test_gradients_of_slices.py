"""Gradients through rows and columns of matrices, and by operators that operations made."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(77)


def noise(*shape, dtype="f"):
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape) if dtype == "c" else x


def weighed(y):
    """One real number of an array, in which all elements count differently."""
    w = np.cos(1 + np.arange(y.size)).reshape(y.shape)
    return np.sum(w * np.real(y)) + np.sum(np.imag(w * y) if y.dtype.kind == "c" else 0 * w)


KEYS = {
    "rows": np.s_[1:4],
    "corner": np.s_[:3, 2:],
    "steps": np.s_[::-2, 1::2],
    "row": 2,
    "column": np.s_[:, -1],
    "part of a column": np.s_[1:, 3],
    "part of a row": np.s_[..., 4, ::3],
    "rows by number": [3, 0, 0],
    "mask": np.s_[:, np.arange(5) % 2 == 0],
    "both": np.ix_([4, 1], [0, 0, 2]),
    "elements": ([0, 4, 4], [1, 2, 2]),
    "element": (3, -2),
    "new": np.s_[None, :, 1],
    "nothing": np.s_[4:1],
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_slices_of_lazy_matrices(key, dtype):
    d, U, A = noise(5, dtype=dtype), noise(5, 2, dtype=dtype), noise(5, 5, dtype=dtype)
    f = lambda d, U, A: weighed((pl.Diag(d) + pl.LowRank(U) @ A)[key])
    check(f, d, U, A)
    check_second(f, d, U, A)


@pytest.mark.parametrize("key", [np.s_[1], np.s_[:, 1:4, ::2], np.s_[..., 2], np.s_[1:, [0, 3]]])
def test_slices_of_stacks(key):
    check(lambda A, d: weighed((A + pl.Diag(d))[key]), noise(3, 5, 5), noise(5))


@pytest.mark.no_verify  # whose own plans would be counted
def test_slices_of_large_matrices_make_no_square():
    n = 400
    x, c = noise(n), 5.0 * (np.arange(n) == 0) + noise(n) / n
    for f in (
        lambda c: np.sum((pl.Toeplitz(c)[: n // 2] @ x) ** 2),
        lambda c: np.sum((pl.Toeplitz(c)[1::3, ::-1] @ x) ** 2),
        lambda c: np.sum(pl.Toeplitz(c)[7] ** 2) + np.sum(pl.Toeplitz(c)[:, 3] ** 3),
    ):
        with pl.explaining() as record:
            pl.grad(f)(c)
        run = [s for p in record.plans for s in p.steps if not s["conditional"]]
        large = [s["name"] for s in run if f"({n}, {n})" in s["writes"]]
        assert not large, large
        check(f, c)


OPERATIONS = {
    "sum": lambda A, B: A + B,
    "product": lambda A, B: A @ B,
    "multiple": lambda A, B: 2.5 * A - B / 3,
    "transpose": lambda A, B: A.T @ B.H,
    "inverse": lambda A, B: pl.inv(A + 9 * pl.Identity(6)) + B,
    "power": lambda A, B: pl.matrix_power(A + B, 3),
    "power that says nothing": lambda A, B: pl.matrix_power(A, 0) + pl.matrix_power(B, 1),
    "high power": lambda A, B: pl.matrix_power((A + B) / 20, 13),
    "parts": lambda A, B: A.real + (1j * B).imag,
    "slice": lambda A, B: (A + B)[:4, 1:5] + (A @ B)[4:0:-1, [0, 2, 2, 5]],
    "nested": lambda A, B: pl.Kron((B + A)[:2, :2], (A + B)[:3, ::2]),
}
KINDS = {
    "dense": lambda t: pl.Dense(noise(6, 6, dtype=t)),
    "toeplitz": lambda t: pl.Toeplitz(noise(6, dtype=t)),
    "diagonal": lambda t: pl.Diag(noise(6, dtype=t)),
    "low rank": lambda t: pl.LowRank(noise(6, 2, dtype=t), noise(6, 2, dtype=t)),
}


def _arrays(op):
    """The arrays that an operator holds, each once, and where."""
    found, stack = {}, [op]
    while stack:
        x = stack.pop()
        if isinstance(x, np.ndarray):
            found[id(x)] = x
        elif isinstance(x, pl.LinearOperator):
            held = x.args if x._init is None else x._init
            stack += [y for y in held if y is not None][::-1]
    return list(found.values())


def _alike(op, arrays):
    """An operator of a kind, of arrays instead of its own."""
    if isinstance(op, pl.LinearOperator):
        return type(op)(*[_alike(y, arrays) for y in op._init])
    return arrays.get(id(op), op)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("kinds", [("dense", "toeplitz"), ("diagonal", "low rank")])
def test_by_operators_that_operations_made(operation, dtype, kinds):
    """The gradient is made by the same operations, of operators that hold the gradients of the
    arrays; along a tangent that is made alike it is the derivative."""
    A, B = (KINDS[k](dtype) for k in kinds)
    K = operation(A, B)
    f = lambda K: weighed(K @ np.linspace(1, 2, K.shape[1]))
    g = pl.grad(f)(K)
    assert type(g) is type(K)
    assert (g.shape, g.dtype) == (K.shape, K.dtype)
    held, slopes = _arrays(K), _arrays(g)
    way = [noise(*a.shape, dtype="c" if a.dtype.kind == "c" else "f") for a in held]
    other = dict(zip(map(id, held), way, strict=True))
    _, slope = pl.jvp(f, (K,), (operation(_alike(A, other), _alike(B, other)),))
    got = sum(float(np.sum(np.conj(s) * d).real) for s, d in zip(slopes, way, strict=True))
    assert np.isclose(got, slope, rtol=1e-10, atol=1e-12)

    def moved(*arrays):
        lazies = dict(zip(map(id, held), arrays, strict=True))
        a, b = (pl.lazy(_alike(x, lazies)) for x in (A, B))
        return f(operation(a, b))

    found = pl.grad(moved, tuple(range(len(held))))(*held)
    for s, t in zip(slopes, found, strict=True):
        np.testing.assert_allclose(s, t, rtol=1e-9, atol=1e-9)


def test_second_derivatives_through_powers_and_parts_of_operators():
    A, T = noise(5, 5), noise(5, dtype="c")
    K = ((pl.Dense(A) + pl.Toeplitz(T)) ** 3).real + (pl.Dense(A) @ pl.Toeplitz(T)).imag[::-1]
    x, v = noise(5), [noise(5, 5), noise(5, dtype="c")]

    def slope(k=0.0):
        held = [A + k * v[0], T + k * v[1]]
        lazies = [pl.lazy(a) for a in held]
        D, S = pl.Dense(lazies[0]), pl.Toeplitz(lazies[1])
        M = D + S
        M = np.real(M @ M @ M) + np.imag(D @ S)[::-1]
        value = np.sum((M @ x) ** 2)
        return pl.evaluate(*pl.gradients(value, lazies))

    value = np.sum((pl.lazy(K) @ x) ** 2)
    first = pl.gradients(value, [A, T])
    inner = sum(np.sum(np.real(np.conj(d) * g)) for d, g in zip(v, first, strict=True))
    for g, h in zip(pl.evaluate(*first), slope(), strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-10, atol=1e-10)
    found = pl.evaluate(*pl.gradients(inner, [A, T]))
    h = 1e-3
    sides = [slope(k * h) for k in (-2, -1, 1, 2)]
    for at, g in enumerate(found):
        wanted = (sides[0][at] - 8 * sides[1][at] + 8 * sides[2][at] - sides[3][at]) / (12 * h)
        np.testing.assert_allclose(g, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_one_sparse_matrix_within_a_stack():
    sp = pytest.importorskip("scipy.sparse")
    S, d = sp.csr_array(np.eye(4) + np.eye(4, k=1)), noise(3, 4)
    f = lambda v, d: np.sum(pl.logdet(pl.Sparse(S, 2 + v * v) + pl.Diag(5 + d * d)))
    v = noise(7)
    check(f, v, d)
    check_second(f, v, d)
