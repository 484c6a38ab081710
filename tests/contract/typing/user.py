"""Ordinary code of a user. `mypy --strict` must pass on it (tests/contract/test_typing.py)."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import pylinop as pl

Vector = NDArray[np.float64]


def posterior(K: pl.LinearOperator, noise: float, y: Vector) -> Vector:
    A = K + noise * pl.Identity(K.shape[0])
    assert_type(A, pl.LinearOperator)
    mean: Vector = pl.inv(A) @ y
    return mean


def double(x: Vector) -> Vector:
    return 2 * x


class Shift(pl.LinearOperator):
    def __init__(self, n: int) -> None:
        super().__init__(np.float64, (n, n))

    def _matvec(self, x: Vector) -> Vector:
        return np.roll(x, 1)

    def _rmatvec(self, x: Vector) -> Vector:
        return np.roll(x, -1)


class Plain(pl.LinearOperator):
    def __init__(self) -> None:
        self.shape = (2, 2)
        self.dtype = np.dtype("f8")

    def _matmat(self, X: NDArray[Any]) -> NDArray[Any]:
        return X


x = np.ones(3)
T = pl.Toeplitz([2.0, -1.0, 0.0], copy=True)
D = pl.Diag(np.arange(3.0), copy=False)
assert_type(T @ x, NDArray[Any])
assert_type(T @ D, pl.LinearOperator)
assert_type(T.T @ D + 2 * T - D / 2, pl.LinearOperator)
assert_type(T.shape, tuple[int, ...])
K = pl.Kron(T, np.eye(2), copy=True)
posterior(pl.Dense(np.eye(3), assume_a="pos"), 0.1, x)
total: float = float(pl.trace(K))
assert_type(pl.diagonal(T, offset=1), NDArray[Any])
assert_type(pl.freeze(x), NDArray[np.float64])
assert_type(pl.aslinearoperator([[1.0, 2.0]]), pl.LinearOperator)
assert_type(T.inv(), pl.LinearOperator)
assert_type(T.sample(2, rng=1), NDArray[Any])
print(T.solve(x, method="direct"), T.logdet(), T.norm(2), (T @ T).cholesky(upper=True), T.svd())
print(pl.lazy(np.eye(3)).inv())
frozen = pl.Selection(pl.freeze([0, 1]), 3)

M = pl.MatVec((3, 3), matvec=double, rmatvec=double, dtype=float)
L = pl.LinearOperator((3, 3), matvec=lambda v: 2 * v, dtype=np.float32)
assert_type(L, pl.LinearOperator)
assert_type(M @ M, pl.LinearOperator)
assert_type(Shift(3).matvec(x, out=np.empty(3)), NDArray[Any])
assert_type(Shift(3).H, pl.LinearOperator)
assert_type(Plain() @ np.ones((2, 2)), NDArray[Any])

pl.config(fft=False, memory_limit=None, cache_limit=1 << 20)
with pl.config(warn_limit=1 << 20, provenance=False) as options:
    assert_type(options, pl.config)
    value: float = K[0, 1]
text: str = T.explain("solve", x)
print(T, T.real, T.imag, T.astype(np.complex64), T.copy(), T.nbytes, T.size, len(T), text)
pl.show_config()
names = [row["name"] for row in pl.kinds() + pl.rules()]
try:
    pl.inv(pl.Zeros((3, 3))) @ x
except (pl.LinAlgError, pl.MaterializationError) as error:
    print(error)
print(np.matmul(T, x, out=x), np.asarray(T), T.todense(), T.tosparse("csc"), T.dot(x), T(x))
