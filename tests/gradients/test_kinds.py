"""Gradients by the parameters of every kind, for what each action makes of it: a pair, an inverse,
a dense cotangent."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

N = 7


class Make:
    def __init__(self, dtype):
        self.rng, self.complex = np.random.default_rng(5), np.dtype(dtype).kind == "c"

    def a(self, *shape):
        x = self.rng.standard_normal(shape)
        return x + 1j * self.rng.standard_normal(shape) if self.complex else x

    def big(self, *shape):
        return self.a(*shape) * 0.3 + 4

    def square(self, n):
        return self.a(n, n) + 3 * n * np.eye(n)


# name -> (make, arrays): the operator made of LazyArrays, and its parameters' values
KINDS = {
    "dense": lambda m: (pl.Dense, [m.square(N)]),
    "diag": lambda m: (pl.Diag, [m.big(N)]),
    "offdiag": lambda m: (lambda d: pl.Diag(d, 2, (N, N + 1)), [m.a(N - 1)]),
    "tridiagonal": lambda m: (pl.Tridiagonal, [m.a(N - 1), m.big(N) * 2, m.a(N - 1)]),
    "triangular": lambda m: (pl.Triangular, [m.square(N)]),
    "triangular, upper unit": lambda m: (
        lambda a: pl.Triangular(a, lower=False, unit_diagonal=True),
        [m.a(N, N)],
    ),
    "lowrank": lambda m: (pl.LowRank, [m.a(N, 2), m.a(N + 1, 3), m.a(2, 3)]),
    "lowrank, U": lambda m: (pl.LowRank, [m.a(N, 2)]),
    "lowrankupdate": lambda m: (
        lambda d, U, V, C: pl.LowRankUpdate(pl.Diag(d), U, V, C),
        [m.big(N) * 3, m.a(N, 2), m.a(N, 3), m.a(2, 3)],
    ),
    "lowrankupdate, U": lambda m: (
        lambda d, U: pl.LowRankUpdate(pl.Diag(d), U),
        [m.big(N), m.a(N, 2)],
    ),
    "congruence": lambda m: (pl.Congruence, [m.square(N), m.square(N)]),
    "root": lambda m: (pl.Root, [m.square(N)]),
    "eigen": lambda m: (pl.Eigen, [m.square(N), m.big(N)]),
    "elementwise": lambda m: (
        pl.HadamardProduct,
        [m.square(N), m.square(N)],
    ),
    "blockdiag": lambda m: (pl.BlockDiag, [m.square(3), m.square(4)]),
    "block": lambda m: (
        lambda a, b, c, d: pl.Block([[a, b], [c, d]]),
        [m.square(3), m.a(3, 4), m.a(4, 3), m.square(4)],
    ),
}
_ALGEBRA = {"sum", "prod", "scaled", "power", "view", "inverse", "part"}


def _real(x):
    return np.real(x)


def test_every_differentiable_kind_is_here():
    heads = {row["head"] for row in pl.kinds() if row["differentiable"]}
    assert {name.split(",")[0] for name in KINDS} - {"offdiag"} == heads - _ALGEBRA - {"offdiag"}


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", KINDS)
def test_applied(name, dtype):
    m = Make("float64" if dtype == "f" else "complex128")
    make, arrays = KINDS[name](m)
    rows, cols = pl.evaluate(make(*map(pl.lazy, arrays))).shape
    x, w = m.a(cols), m.a(rows)
    check(lambda *p: _real(np.vdot(w, make(*p) @ x)), *arrays)
    check(lambda x, *p: _real(np.vdot(w, make(*p).H.H @ x)), x, *arrays)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", KINDS)
def test_dense_cotangent(name, dtype):
    m = Make("float64" if dtype == "f" else "complex128")
    make, arrays = KINDS[name](m)
    shape = pl.evaluate(make(*map(pl.lazy, arrays))).shape
    w = m.a(*shape)
    check(lambda *p: np.sum(np.abs(make(*p) * w) ** 2), *arrays)


def _square(name, m):
    make, arrays = KINDS[name](m)
    shape = pl.evaluate(make(*map(pl.lazy, arrays))).shape
    if shape[0] != shape[1] or name in ("lowrank, U", "offdiag"):
        pytest.skip("not square, or singular")
    return make, arrays


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", KINDS)
def test_solved_and_determinant(name, dtype):
    m = Make("float64" if dtype == "f" else "complex128")
    make, arrays = _square(name, m)
    b, w = m.a(N), m.a(N)

    def f(b, *p):
        K = make(*p)
        return _real(np.vdot(w, pl.solve(K, b))) + pl.slogdet(K)[1]

    check(f, b, *arrays)
    check(lambda *p: _real(pl.trace(pl.inv(make(*p)) @ np.diag(w))), *arrays)
    check(lambda *p: np.sum(np.abs(pl.diagonal(pl.inv(make(*p)))) ** 2), *arrays)


@pytest.mark.parametrize("name", KINDS)
def test_second_order(name):
    m = Make("float64")
    make, arrays = KINDS[name](m)
    rows, cols = pl.evaluate(make(*map(pl.lazy, arrays))).shape
    x, w = m.a(cols), m.a(rows)
    check_second(lambda *p: np.sum((make(*p) @ x - w) ** 2), *arrays)


@pytest.mark.parametrize("name", ["diag", "tridiagonal", "lowrankupdate, U", "root", "blockdiag"])
def test_second_order_of_likelihoods(name):
    m = Make("float64")
    make, arrays = KINDS[name](m)
    b = m.a(N)

    def f(*p):
        K = make(*p)
        quad, log = pl.inv_quad_logdet(K @ K.T + 2 * pl.Identity(N), b)
        return quad + log

    check_second(f, *arrays)
