"""Results that were errors: batches of vectors, arrays of other libraries, more dimensions than
operators have, norms of what is not finite, products of many, pseudo-inverses that wait."""

import operator
import pickle

import numpy as np
import pytest

import pylinop as pl

# -- a vector for each matrix --


def spd(rng, *shape):
    a = rng.standard_normal(shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize("make", [pl.Dense, lambda a: pl.Dense(a, "pos"), lambda a: a])
def test_residuals(make, rng):
    """b of shape A.shape[:-1] is a vector for each matrix of the batch."""
    for batch in ((4,), (2, 5), (1,)):
        a, b = spd(rng, *batch, 3, 3), rng.standard_normal((*batch, 3))
        quad, log = pl.inv_quad_logdet(make(a), b)
        want = (b * np.linalg.solve(a, b[..., None])[..., 0]).sum(-1)
        assert quad.shape == batch
        np.testing.assert_allclose(quad, want)
        np.testing.assert_allclose(log, np.linalg.slogdet(a)[1])


def test_two_meanings_are_refused(rng):
    """As many matrices as rows: neither is guessed; both can be said."""
    a, b = spd(rng, 3, 3, 3), rng.standard_normal((3, 3))
    with pytest.raises(ValueError, match=r"b\[\.\.\., None\]"):
        pl.inv_quad_logdet(a, b)
    each = pl.inv_quad_logdet(a, b[..., None])[0]
    np.testing.assert_allclose(each, (b[..., None] * np.linalg.solve(a, b[..., None])).sum(-2))
    same = pl.inv_quad_logdet(a, b[None])[0]
    np.testing.assert_allclose(same, (b * np.linalg.solve(a, b[None])).sum(-2))


def test_columns_stay_columns(rng):
    """What has one meaning only has that: columns for all matrices, one matrix, one vector."""
    a = spd(rng, 4, 3, 3)
    b = rng.standard_normal((3, 2))
    assert pl.inv_quad_logdet(a, b)[0].shape == (4, 2)
    assert pl.inv_quad_logdet(a[0], b)[0].shape == (2,)
    assert pl.inv_quad_logdet(a, b[:, 0])[0].shape == (4,)
    with pytest.raises(ValueError):
        pl.inv_quad_logdet(a, rng.standard_normal((5, 3)))


# -- arrays of other libraries --


class ByArray:
    """An array of a library with __array__ alone."""

    def __init__(self, a):
        self.a = np.asarray(a)

    def __array__(self, dtype=None, copy=None):
        return self.a if dtype is None else self.a.astype(dtype)


class ByDlpack:
    """One with DLPack, shape and a dtype that is not NumPy's, as a tensor's."""

    def __init__(self, a):
        self.a = np.asarray(a)
        self.shape, self.dtype = self.a.shape, "library.float64"

    def __dlpack__(self, *args, **kwargs):
        return self.a.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class Tensor(ByDlpack, ByArray):
    """One with both, which has operators of its own, that know nothing of others."""

    __array_priority__ = 1000

    def _unknown(self, other):
        return NotImplemented

    __mul__ = __rmul__ = __add__ = __radd__ = __matmul__ = __rmatmul__ = _unknown


@pytest.mark.parametrize("library", [ByArray, ByDlpack, Tensor])
@pytest.mark.parametrize(
    "f", [operator.mul, operator.add, operator.sub, operator.truediv, operator.matmul, operator.lt,
          operator.pow, np.multiply, np.add, np.matmul],
)  # fmt: skip
def test_lazy_arrays_beside_them(library, f, rng):
    """Every operation of a LazyArray takes them, on either side."""
    for a in (rng.random((3, 3)) + 1, rng.random(3) + 1):
        for x in (rng.random(3) + 1, rng.random((3, 3)) + 1):
            for got, want in (
                (f(pl.lazy(a), library(x)), f(a, x)),
                (f(library(x), pl.lazy(a)), f(x, a)),
            ):
                assert isinstance(got, pl.LazyArray)
                assert got.shape == want.shape and got.dtype == want.dtype
                np.testing.assert_allclose(got.toarray(), want)


def test_operators_of_array_alone(rng):
    a = rng.random((3, 3))
    for A in (pl.aslinearoperator(ByArray(a)), pl.Diag([1.0, 1, 1]) @ ByArray(a)):
        np.testing.assert_allclose(A.toarray() if hasattr(A, "toarray") else A, a)


# -- more dimensions than operators have --

MANY = {
    "2a": lambda x, m: 2 * x,
    "-a": lambda x, m: -x,
    "a + a": lambda x, m: x + x,
    "a - 2a": lambda x, m: x - 2 * x,
    "a / 2": lambda x, m: (x @ m) / 2,
    "a.mT": lambda x, m: x.mT,
    "conj": lambda x, m: np.conj(1j * x),
    "a @ m": lambda x, m: x @ m,
    "m @ a": lambda x, m: m @ x,
    "a @ v": lambda x, m: x @ m[0],
    "v @ a": lambda x, m: m[0] @ x,
    "inv": lambda x, m: np.linalg.inv(x),
    "solve": lambda x, m: np.linalg.solve(x, m),
    "det": lambda x, m: np.linalg.det(x),
    "sum": lambda x, m: (2 * x).sum(),
    "part": lambda x, m: (2 * x)[0],
}


@pytest.mark.parametrize("way", MANY)
@pytest.mark.parametrize("ndim", [8, 9, 12])
def test_many_dimensions(way, ndim, rng):
    """Operators have at most 8 dimensions, LazyArrays as many as NumPy's."""
    a = rng.standard_normal((1, 2, *(1,) * (ndim - 4), 3, 3))
    m = rng.standard_normal((3, 3))
    got, want = MANY[way](pl.lazy(a), m), MANY[way](a, m)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9)


def test_an_example_of_nine():
    assert (pl.lazy(np.ones((1,) * 9)) @ np.ones((1, 1))).toarray().shape == (1,) * 9
    D = pl.Diag(np.arange(3.0))
    a = np.ones((1,) * 7 + (3, 3))
    np.testing.assert_array_equal((pl.lazy(a) @ D).toarray(), a @ D.toarray())
    with pytest.raises(ValueError, match="dimensions"):
        pl.lazy(a + np.eye(3), assume_a="pos")  # which is for operators


# -- norms of what is not finite --


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_frobenius_norms(bad, rng):
    """numpy.linalg.norm gives a number, and so do the kinds that go by singular values."""
    a, v = rng.standard_normal((3, 3)), rng.standard_normal(3)
    a[0, 1] = v[1] = bad
    for A in (
        pl.KronSum(a, np.eye(2)), pl.KronSum(np.eye(2), a).T, pl.Root(a), pl.Eigen(np.eye(3), v),
        pl.Householder(v),
    ):  # fmt: skip
        want = np.linalg.norm(A.toarray())
        assert not np.isfinite(want)
        got = np.linalg.norm(A)
        assert not np.isfinite(got) and np.isnan(got) >= np.isnan(want)


# -- products of many --


@pytest.mark.parametrize("f", [pl.multi_dot, pl.linalg.multi_dot, np.linalg.multi_dot])
def test_multi_dot(f, rng):
    a, b, c = (rng.standard_normal(s) for s in ((4, 3), (3, 5), (5, 2)))
    x, y = rng.standard_normal(4), rng.standard_normal(2)
    A, B = pl.Dense(a), pl.Dense(b)
    for parts in ([a, b, c], [A, b, c], [a, B, c, y], [x, a, B, c], [x, A, b, c, y], [x, a, B]):
        plain = [p.toarray() if isinstance(p, pl.LinearOperator) else p for p in parts]
        if f is np.linalg.multi_dot and not any(isinstance(p, pl.LinearOperator) for p in parts):
            continue
        got, want = f(parts), np.linalg.multi_dot(plain)
        assert isinstance(got, np.ndarray | np.floating) and np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want)
    both = f([A, B])
    assert isinstance(both, pl.LinearOperator) and both.shape == (4, 5)
    out = np.empty((4, 5))
    assert f([A, B], out=out) is out
    np.testing.assert_allclose(out, a @ b)
    assert isinstance(f([pl.lazy(a), B, c]), pl.LazyArray)
    with pytest.raises(ValueError, match="at least two"):
        f([A])
    with pytest.raises(ValueError):
        f([A, A])


def test_the_order_is_the_cheapest():
    """A B C x of thin and wide matrices: no 3000 x 3000 matrix, whatever the brackets."""
    wide, tall = np.ones((2, 3000)), np.ones((3000, 2))
    with pl.explaining() as e, pl.config(memory_limit=10_000_000):
        pl.multi_dot([tall, wide, tall, wide, tall])
    assert sum(p.flops for p in e.plans) < 500_000


# -- pseudo-inverses that wait --


def test_pseudo_inverse(rng):
    for shape in ((5, 3), (3, 5), (2, 4, 3)):
        a = rng.standard_normal(shape)
        want = np.linalg.pinv(a)
        P = pl.PseudoInverse(a)
        assert (
            P.shape == want.shape and isinstance(P, pl.LinearOperator) and P.args[0].shape == shape
        )
        np.testing.assert_allclose(P.toarray(), want, atol=1e-12)
        np.testing.assert_allclose(P @ np.ones(shape[-2]), want @ np.ones(shape[-2]), atol=1e-12)
        np.testing.assert_allclose(P.mT.toarray(), np.swapaxes(want, -1, -2), atol=1e-12)
        np.testing.assert_allclose((2 * P[..., 1:, :]).toarray(), 2 * want[..., 1:, :], atol=1e-12)
        np.testing.assert_allclose((P @ pl.Dense(a)).toarray(), want @ a, atol=1e-12)
        again = pickle.loads(pickle.dumps(P))
        np.testing.assert_allclose(again.toarray(), want, atol=1e-12)


def test_pseudo_inverse_follows_and_waits():
    """Nothing is computed when it is built; later writes are seen; the words are pinv's."""
    a = np.diag([2.0, 0.0, 1e-5])
    a[1, 1] = np.nan
    P = pl.PseudoInverse(pl.Dense(a), rcond=1e-3)
    a[1, 1] = 4
    np.testing.assert_allclose(P @ np.ones(3), [0.5, 0.25, 0])
    a[1, 1] = 0
    np.testing.assert_allclose(P.diagonal(), [0.5, 0, 0])
    assert type(pl.PseudoInverse(pl.Diag([1, 2])) @ pl.Identity(2)).__name__ != "ndarray"
    assert pl.PseudoInverse(pl.Diag([1, 2])).dtype == np.float64
    for wrong, error in (
        (lambda: pl.PseudoInverse(a, rcond=1, rtol=1), ValueError),
        (lambda: pl.PseudoInverse(a, magic=1), TypeError),
        (lambda: pl.PseudoInverse(a, rcond="x"), TypeError),
    ):
        with pytest.raises(error):
            wrong()


# -- kernels of functions in batches --


def test_callable_kernels_in_batches(rng):
    def f(X, Y):
        assert X.ndim == Y.ndim == 2
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1))

    x, y = rng.standard_normal((3, 1, 5, 2)), rng.standard_normal((2, 4, 2))
    K = pl.Kernel(f, x, y)
    k = np.exp(-((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1))
    assert K.shape == k.shape
    z = rng.standard_normal((3, 2, 4, 2))
    for got, want in (
        (K, k), (K @ np.ones(4), k.sum(-1)), (K @ z, k @ z), (K.mT @ np.ones(5), k.sum(-2)),
        (K.diagonal(1), np.diagonal(k, 1, -2, -1)), (K[1, 0], k[1, 0]), (2 * K, 2 * k),
        (K[..., 1:3, :], k[..., 1:3, :]), (pl.svdvals(K), np.linalg.svdvals(k)),
    ):  # fmt: skip
        got = got.toarray() if isinstance(got, pl.LinearOperator) else got
        np.testing.assert_allclose(got, want, atol=1e-12)
    S = pl.Kernel(f, x)
    s = S.toarray()
    np.testing.assert_allclose(pl.solve(S, np.ones(5)), np.linalg.solve(s, np.ones(5)), rtol=1e-6)
    np.testing.assert_allclose(pl.logdet(S), np.linalg.slogdet(s)[1])
    for wrong in (np.ones(3), (np.ones((2, 3, 1)), np.ones((3, 3, 1)))):
        with pytest.raises(ValueError):
            pl.Kernel(f, *(wrong if isinstance(wrong, tuple) else (wrong,)))
