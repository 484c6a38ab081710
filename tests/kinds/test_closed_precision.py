"""What an operation closed to (a Diag of a conjugate, of a power, of a quotient, ...) is computed
in the promotion of operator and array from its leaves on, as the written formula would be: single
precision applied to arrays of double precision keeps the digits of double precision."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import pylinop as pl

N = 6


def _entries(rng, dtype, *shape):
    a = rng.uniform(0.5, 1.5, shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.uniform(0.5, 1.5, shape)
    return a.astype(dtype)


def leaves(rng, dtype):
    def v(*shape):
        return _entries(rng, dtype, *shape)

    def square(n):
        return (2 * n * np.eye(n) + v(n, n)).astype(dtype)

    dtype_of = np.dtype(dtype).type
    first = np.r_[[9], v(N - 1)].astype(dtype)
    return {
        "Identity": pl.Identity(N),
        "Diag": pl.Diag(first + 1),
        "off": pl.Diag(v(N - 1), k=1),
        "Dense": pl.Dense(square(N)),
        "Triangular": pl.Triangular(square(N)),
        "Toeplitz": pl.Toeplitz(first, first * 2),
        "Circulant": pl.Circulant(first),
        "Hankel": pl.Hankel(v(N), v(N)),
        "Banded": pl.Banded((1, 1), v(3, N) + np.array([[0], [4], [0]], dtype)),
        "Tridiagonal": pl.Tridiagonal(v(N - 1), first, v(N - 1)),
        "Kron": pl.Kron(square(2), square(3)),
        "KronSum": pl.KronSum(square(2), square(3)),
        "BlockDiag": pl.BlockDiag(square(2), square(4)),
        "LowRank": pl.LowRank(v(N, 2), v(N, 2), v(2, 2)),
        "LowRankUpdate": pl.LowRankUpdate(pl.Diag(first), v(N, 2), v(N, 2)),
        "Convolution": pl.Convolution(first[:3], N, "same"),
        "Householder": pl.Householder(v(N)),
        "QuasiSeparable": pl.QuasiSeparable(first.real, v(N, 2), v(N, 2), v(N, 2) * dtype_of(0.25)),
        "BlockTridiagonal": pl.BlockTridiagonal(
            v(N // 2 - 1, 2, 2), v(N // 2, 2, 2) + first[0] * np.eye(2, dtype=dtype), v(2, 2, 2)
        ),
        "Sparse": pl.Sparse(scipy.sparse.csr_array(np.triu(square(N)))),
    }


ONE = {
    "H": lambda a: a.conj().T,
    "conj": lambda a: a.conj(),
    "third": lambda a: a * (1 / 3),
    "inverse": lambda a: pl.inv(a) if isinstance(a, pl.LinearOperator) else np.linalg.inv(a),
    "imag": np.imag,
    "ninth": lambda a: (
        (a * 0.1) ** 9 if isinstance(a, pl.LinearOperator) else np.linalg.matrix_power(a * 0.1, 9)
    ),
    "rows": lambda a: a[1:4],
    "block": lambda a: a[1:5:2, 1:5:2],
    "index": lambda a: a[[0, 3, 3]],
}
TWO = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "matmul": lambda a, b: a @ b,
    "multiply": lambda a, b: (
        pl.multiply(a, b) if isinstance(a, pl.LinearOperator) else np.multiply(a, b)
    ),
}


def check(A, a, xs, what):
    for x in xs:
        y = A @ x
        near = (np.abs(a) @ np.abs(x)).max() + 0.01
        assert np.abs(y - a @ x).max(initial=0) < 1e-12 * near, what


def right_sides(rng):
    x = rng.uniform(0.5, 1.5, (N, 3))
    return {n: (x[:n, 0], x[:n] + 1j * x[:n, ::-1]) for n in range(N + 1)}


def chains():
    return [*itertools.product(ONE, ONE), ("third", "conj", "inverse"), ("conj", "ninth", "H")]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_leaf_after_several_operations(dtype, rng):
    sides = right_sides(rng)
    for kind, A in leaves(rng, dtype).items():
        a = A @ np.eye(N)
        for how in chains():
            B, b = A, a
            for name in how:
                if name == "inverse" and (b.shape[0] != b.shape[1] or np.linalg.cond(b) > 100):
                    break
                if (name == "ninth" or name in ("block", "index")) and b.shape != (N, N):
                    break
                if name == "ninth" and kind == "LowRankUpdate":
                    break
                B, b = ONE[name](B), ONE[name](b)
                check(B, b, sides[b.shape[1]], (kind, how))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_two_leaves_and_an_operation_on_them(dtype, rng):
    sides = right_sides(rng)
    known = {k: (A, A @ np.eye(N)) for k, A in leaves(rng, dtype).items()}
    for (first, second), (how, f) in itertools.product(
        itertools.product(known, known), TWO.items()
    ):
        (A, a), (B, b) = known[first], known[second]
        C, c = f(A, B), f(a, b)
        for after in ("H", "third", "ninth") if type(C).__name__ == "Diag" else ("H", "third"):
            D, d = ONE[after](C), ONE[after](c)
            check(D, d, sides[N], (first, how, second, after))
            check(D.conj(), d.conj(), sides[N], (first, how, second, after, "conj"))
