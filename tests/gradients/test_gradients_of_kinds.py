"""Gradients by the parameters of every kind, for what each action makes of it: a pair, an inverse,
a dense cotangent."""

import numpy as np
import pytest
import scipy.sparse as sp
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

    def first(self, n):
        return self.a(n) + 4 * n * (np.arange(n) == 0)

    def square(self, n):
        return self.a(n, n) + 3 * n * np.eye(n)


def csr():
    """A pattern of twelve entries, the diagonal among them."""
    rows, cols = [*range(N), 0, 2, 2, 5, 6], [*range(N), 3, 0, 5, 1, 4]
    return sp.coo_array((np.ones(12), (rows, cols)), shape=(N, N)).tocsr()


def coo():
    """Some entries twice."""
    rows, cols = [*range(N), 0, 2, 2, 4], [*range(N), 3, 0, 0, 4]
    return sp.coo_array((np.ones(N + 4), (rows, cols)), shape=(N, N))


def on_diagonal(S):
    S = S.tocoo()
    return S.row == S.col


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
    "toeplitz": lambda m: (pl.Toeplitz, [m.a(N), m.a(N + 2)]),
    "toeplitz, square": lambda m: (pl.Toeplitz, [m.first(N), m.first(N)]),
    "toeplitz, c": lambda m: (pl.Toeplitz, [m.first(N)]),
    "circulant": lambda m: (pl.Circulant, [m.first(N)]),
    "hankel": lambda m: (pl.Hankel, [m.a(N), m.a(N - 2)]),
    "hankel, c": lambda m: (pl.Hankel, [m.a(N)]),
    "banded": lambda m: (
        lambda ab: pl.Banded((1, 2), ab),
        [m.a(4, N) + 9 * (np.arange(4) == 2)[:, None]],
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
    "kron": lambda m: (pl.Kron, [m.square(1), m.square(N)]),
    "kron, rectangles": lambda m: (pl.Kron, [m.a(2, 3), m.a(4, 2), m.a(2, 2)]),
    "kron, three": lambda m: (pl.Kron, [m.square(7), m.square(1), m.square(1)]),
    "kronsum": lambda m: (pl.KronSum, [m.square(1), m.square(N)]),
    "kronsum, two": lambda m: (pl.KronSum, [m.square(3), m.square(2), m.square(2)]),
    "congruence": lambda m: (pl.Congruence, [m.square(N), m.square(N)]),
    "root": lambda m: (pl.Root, [m.square(N)]),
    "eigen": lambda m: (pl.Eigen, [m.square(N), m.big(N)]),
    "elementwise": lambda m: (
        pl.HadamardProduct,
        [m.square(N), m.square(N)],
    ),
    "circulant, two levels": lambda m: (
        lambda c: pl.Circulant(c, levels=2),
        [m.first(6).reshape(2, 3)],
    ),
    "convolution": lambda m: (lambda k: pl.Convolution(k, N), [m.a(3)]),
    "convolution, same": lambda m: (
        lambda k: pl.Convolution(k, N, mode="same"),
        [m.a(3) + 9 * (np.arange(3) == 1)],
    ),
    "convolution, valid": lambda m: (lambda k: pl.Convolution(k, N, mode="valid"), [m.a(3)]),
    "convolution, long and valid": lambda m: (
        lambda k: pl.Convolution(k, 3, mode="valid"),
        [m.a(N)],
    ),
    "convolution, wrapped twice": lambda m: (
        lambda k: pl.Convolution(k, 4, mode="circular"),
        [m.first(N)],
    ),
    "convolution, image": lambda m: (
        lambda k: pl.Convolution(k, (3, 4), mode="same"),
        [m.a(3, 2) + 20 * (np.arange(6) == 2).reshape(3, 2)],
    ),
    "multitoeplitz": lambda m: (
        pl.MultilevelToeplitz,
        [m.a(3, 5) + 30 * (np.arange(15) == 7).reshape(3, 5)],
    ),
    "multitoeplitz, rectangles": lambda m: (
        lambda t: pl.MultilevelToeplitz(t, (2, 2)),
        [m.a(4, 3)],
    ),
    "blocktridiagonal": lambda m: (
        pl.BlockTridiagonal,
        [m.a(2, 3, 3), m.a(3, 3, 3) + 9 * np.eye(3), m.a(2, 3, 3)],
    ),
    "blocktridiagonal, adjoint": lambda m: (
        pl.BlockTridiagonal,
        [m.a(2, 2, 2), m.a(3, 2, 2) + 9 * np.eye(2)],
    ),
    "quasiseparable": lambda m: (
        pl.QuasiSeparable,
        [m.big(N) * 4, m.a(N, 2), m.a(N, 2), 0.4 * m.a(N, 2)],
    ),
    "quasiseparable, full": lambda m: (
        pl.QuasiSeparable,
        [m.big(N) * 4, m.a(N, 3), m.a(N, 3), 0.3 * m.a(N, 9)],
    ),
    "quasiseparable, triangular": lambda m: (
        lambda d, p, q, a: pl.QuasiSeparable(d, p, q, a, True),
        [m.big(N), m.a(N, 1), m.a(N, 1), m.a(N, 1)],
    ),
    "sparse": lambda m: (lambda x: pl.Sparse(csr(), x), [m.a(12) + 9 * on_diagonal(csr())]),
    "sparse, columns": lambda m: (lambda x: pl.Sparse(csr().tocsc(), x), [m.a(12)]),
    "sparse, twice": lambda m: (lambda x: pl.Sparse(coo(), x), [m.big(N + 4)]),
    "sparse, rectangle": lambda m: (lambda x: pl.Sparse(csr()[:3], x), [m.a(csr()[:3].nnz)]),
    "sparsetriangular": lambda m: (
        lambda x: pl.SparseTriangular(pl.Sparse(csr(), x)),
        [m.a(12) + 9 * on_diagonal(csr())],
    ),
    "sparsetriangular, upper unit": lambda m: (
        lambda x: pl.SparseTriangular(pl.Sparse(csr(), x), lower=False, unit_diagonal=True),
        [m.a(12)],
    ),
    "khatrirao": lambda m: (pl.KhatriRao, [m.a(3, 4), m.a(2, 4)]),
    "khatrirao, square": lambda m: (pl.KhatriRao, [m.a(3, 6), m.a(2, 6)]),
    "khatrirao, one row": lambda m: (pl.KhatriRao, [m.square(N), m.big(1, N)]),
    "householder": lambda m: (pl.Householder, [m.a(N)]),
    "householder, tau": lambda m: (pl.Householder, [m.a(N), m.a()]),
    "reflections": lambda m: (lambda v: pl.Reflections(v, N), [m.a(5, 3)]),
    "reflections, all": lambda m: (lambda v: pl.Reflections(v, N), [m.a(N, 2)]),
    "full": lambda m: (lambda c: pl.Full((N, N - 1), c), [m.a()]),
    "blockdiag": lambda m: (pl.BlockDiag, [m.square(3), m.square(4)]),
    "block": lambda m: (
        lambda a, b, c, d: pl.Block([[a, b], [c, d]]),
        [m.square(3), m.a(3, 4), m.a(4, 3), m.square(4)],
    ),
}
POINTS = np.random.default_rng(6).standard_normal((2, N, 3))
FAMILIES = {
    "rbf": {},
    "matern12": {},
    "matern32": {},
    "matern52": {},
    "rational_quadratic": {"alpha": np.array(1.3)},
    "periodic": {"period": np.array(2.3)},
    "polynomial": {"offset": np.array(0.7)},
    "linear": {},
}
_ALGEBRA = {"sum", "prod", "scaled", "power", "view", "inverse", "part"}


def _real(x):
    return np.real(x)


def test_every_differentiable_kind_is_here():
    heads = {row["head"] for row in pl.kinds() if row["differentiable"]}
    named = {name.split(",")[0] for name in KINDS} | {"kernel"}
    assert named - {"offdiag", "full"} == heads - _ALGEBRA - {"offdiag"}


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
    n = pl.evaluate(make(*map(pl.lazy, arrays))).shape[0]
    b, w = m.a(n), m.a(n)

    def f(b, *p):
        K = make(*p)
        return _real(np.vdot(w, pl.solve(K, b))) + pl.slogdet(K)[1]

    check(f, b, *arrays)
    check(lambda *p: _real(pl.trace(pl.inv(make(*p)) @ np.diag(w))), *arrays)
    check(lambda *p: np.sum(np.abs(pl.diagonal(pl.inv(make(*p)))) ** 2), *arrays)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_determinant_of_a_kron_alone(dtype):
    m = Make("float64" if dtype == "f" else "complex128")
    arrays = [m.square(3), m.square(2), m.square(4)]
    found = check(lambda *p: pl.slogdet(pl.Kron(*p))[1], *arrays)
    assert np.allclose(found[1], 8 * np.linalg.inv(arrays[0]).conj().T)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [np.array(1.4), np.array([1.4, 0.9, 2.0])])
@pytest.mark.parametrize("n", [(N, N), (17, 515), (600, 16)])
def test_kernel(family, lengths, n):
    """Sizes on both sides of the blocks of 16 rows and 512 columns."""
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((n[0], 3)), rng.standard_normal((n[1], 3))
    w = rng.standard_normal(n)
    own = FAMILIES[family]

    def f(x, y, v, length, *more):
        given = dict(zip(own, more, strict=True))
        K = pl.Kernel(family, x, y, variance=v, length_scale=length, **given)
        return np.sum(w * K) + (K @ w[0]) @ w[:, 0]

    check(f, x, y, np.array(0.8), lengths, *own.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_of_one_set_of_points(family):
    x, own, b = POINTS[0], FAMILIES[family], POINTS[1, :, 0]

    def f(x, v, length, *more):
        given = dict(zip(own, more, strict=True))
        K = pl.Kernel(family, x, variance=v, length_scale=length, **given) + 0.3 * pl.Identity(N)
        quad, log = pl.inv_quad_logdet(K, b)
        return quad + log

    check(f, x, np.array(0.8), np.array(1.4), *own.values())


def test_kernel_without_a_variance_and_with_equal_points():
    x = np.repeat(POINTS[0][:3], 2, axis=0)
    w = np.random.default_rng(1).standard_normal((6, 6))
    g = pl.grad(lambda v: np.sum(w * pl.Kernel("rbf", x, variance=v)))(0.0)
    assert np.isclose(g, np.sum(w * pl.Kernel("rbf", x).toarray()))
    for family in ("matern12", "matern32"):
        g = pl.grad(lambda x, f=family: np.sum(w * pl.Kernel(f, x)))(x)
        assert np.isfinite(g).all()


def test_reflections_that_are_none_and_vectors_out_of_range():
    v = np.random.default_rng(4).standard_normal((4, 2))
    w = np.arange(25.0).reshape(5, 5) ** 2
    f = lambda v: np.sum(w * pl.Reflections(v, 5))
    found = pl.grad(f)(np.where(np.arange(4)[:, None] == 1, 0, v))
    assert (found[1] == 0).all() and np.abs(found[[0, 2, 3]]).min() > 0
    for scale in (1e-300, 1e-180, 1e180):
        assert np.allclose(pl.grad(f)(scale * v) * scale, pl.grad(f)(v), rtol=1e-12)
        h = lambda v: np.sum(w * pl.Householder(v))
        assert np.allclose(pl.grad(h)(scale * w[1]) * scale, pl.grad(h)(w[1]), rtol=1e-12)


@pytest.mark.parametrize("shape, n", [((4, 2), 5), ((3, 3), 3), ((2, 4, 2), 5), ((1, 6), 6)])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_tangents_of_reflections(shape, n, dtype):
    r = np.random.default_rng(5)
    v, t = r.standard_normal((2, *shape)) + (
        1j * r.standard_normal((2, *shape)) if dtype == "c" else 0
    )
    f = lambda v: pl.Reflections(v, n) @ np.eye(n)
    value, found = pl.jvp(f, (v,), (t,))
    h = 1e-6
    at = [pl.evaluate(pl.Reflections(v + s * t, n).toarray()) for s in (h, -h)]
    assert np.allclose(found, (at[0] - at[1]) / (2 * h), atol=1e-8)
    w = r.standard_normal(found.shape)
    back = pl.grad(lambda v: np.sum(w * np.real(f(v))))(v)
    assert np.isclose(np.sum(w * np.real(found)), np.sum(np.real(np.conj(back) * t)))


@pytest.mark.parametrize("shape, n", [((1, 1), 1), ((3, 2), 4), ((17, 4), 17), ((2, 3, 3), 4)])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_second_derivatives_of_products_of_reflections(shape, n, dtype):
    r = np.random.default_rng(6)
    v, A, w = (
        r.standard_normal(s) + (1j * r.standard_normal(s) if dtype == "c" else 0)
        for s in (shape, (n, n), (n, n))
    )

    def f(v):
        Q = pl.Reflections(v, n)
        return np.sum(np.real((Q @ A @ np.conj(np.swapaxes(Q, -1, -2))) * w))

    check_second(f, v)


def test_third_derivatives_of_reflections():
    r = np.random.default_rng(7)
    v, w, *d = r.standard_normal((5, 3, 3))
    f = lambda v: np.sum(np.sin(pl.Reflections(v, 3)) * w)
    slope = lambda v: np.sum(np.sin(pl.gradients(f(v), v)) * d[0])
    curve = lambda v: np.sum(pl.gradients(slope(v), v) * d[1])
    got = np.sum(pl.grad(curve)(v) * d[2])
    at = [float(curve(pl.lazy(v + k * 1e-3 * d[2]))) for k in (-2, -1, 1, 2)]
    assert np.isclose(got, (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / 12e-3, rtol=1e-5)


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


@pytest.mark.parametrize("word", ["sym", "pos", "her"])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_assumptions_on_formulas(word, dtype):
    """A LazyArray that is assumed Hermitian stays lazy; its gradient is Hermitian."""
    m = Make("float64" if dtype == "f" else "complex128")
    x, w = m.a(N, N), m.a(N, N)
    of = (lambda x: x @ x.T) if word == "sym" else (lambda x: x @ x.conj().T)

    def f(x):
        K = pl.lazy(of(x) + 9 * np.eye(N), assume_a=word)
        return np.sum(np.real(np.conj(w) * pl.inv(K))) + pl.slogdet(K)[1]

    check(f, x)
    G = pl.grad(lambda a: np.real(np.vdot(w, pl.inv(pl.lazy(a, assume_a=word)))))(of(x) + np.eye(N))
    assert np.allclose(G, G.T if word == "sym" else G.conj().T)


def test_assumptions_on_formulas_that_are_not_square():
    with pytest.raises(ValueError, match=r"is for square matrices, got shape \(2, 3\)"):
        pl.lazy(np.ones((2, 3)) + pl.lazy(np.ones(3)), assume_a="pos")
    with pytest.raises(ValueError, match="assume_a"):
        pl.lazy(2 * pl.lazy(np.eye(2)), assume_a="nonsense")
