"""NumPy's functions that put elements elsewhere, of LazyArrays: deferred, equal to NumPy's, with
derivatives."""

import pickle

import numpy as np
import pytest
from gradients.differences import check, check_second
from numpy.lib.stride_tricks import sliding_window_view

import pylinop as pl

CASES = {
    "concatenate": lambda a, v: np.concatenate([v, 2 * v, v[:2]]),
    "concatenate 1": lambda a, v: np.concatenate([a, a[:, :1] * 3], axis=1),
    "concatenate -2": lambda a, v: np.concatenate([a, a], axis=-2),
    "concatenate flat": lambda a, v: np.concatenate([a, v], axis=None),
    "stack": lambda a, v: np.stack([v, v * v]),
    "stack -1": lambda a, v: np.stack([a, a], axis=-1),
    "hstack": lambda a, v: np.hstack([v, v[0]]),
    "hstack of matrices": lambda a, v: np.hstack([a, a]),
    "vstack": lambda a, v: np.vstack([a, v]),
    "column_stack": lambda a, v: np.column_stack([v, v * 2]),
    "append": lambda a, v: np.append(a, v),
    "append 0": lambda a, v: np.append(a, a[:1], axis=0),
    "block": lambda a, v: np.block([[a, 2 * a], [np.ones((3, 8))]]),
    "block of vectors": lambda a, v: np.block([v, v]),
    "block of a formula": lambda a, v: np.block([[a @ a.T, a], [a.T, np.zeros((4, 4))]]),
    "block of three": lambda a, v: np.block([[[v]], [[v * 2]]]),
    "flip": lambda a, v: np.flip(a),
    "flip 1": lambda a, v: np.flip(a, 1),
    "flipud": lambda a, v: np.flipud(a),
    "fliplr": lambda a, v: np.fliplr(a),
    "roll": lambda a, v: np.roll(a, 5),
    "roll 1": lambda a, v: np.roll(a, -1, axis=1),
    "roll twice": lambda a, v: np.roll(a, (1, 2), axis=(0, 1)),
    "repeat": lambda a, v: np.repeat(a, 2),
    "repeat by": lambda a, v: np.repeat(a, [1, 0, 2, 1], axis=1),
    "tile": lambda a, v: np.tile(v, 3),
    "tile 2": lambda a, v: np.tile(a, (2, 1, 2)),
    "take": lambda a, v: np.take(v, [3, 0, 0]),
    "take 1": lambda a, v: np.take(a, [3, 0, 0], axis=1),
    "swapaxes": lambda a, v: np.swapaxes(a[None], 0, 2),
    "moveaxis": lambda a, v: np.moveaxis(a[None], (0, 2), (1, 0)),
    "rollaxis": lambda a, v: np.rollaxis(a[None], 2),
    "rollaxis to": lambda a, v: np.rollaxis(a[None], -3, -1),
    "windows": lambda a, v: sliding_window_view(a, 2, axis=1),
    "windows of both": lambda a, v: sliding_window_view(a, (2, 3)),
    "windows of windows": lambda a, v: sliding_window_view(v, (2, 2), axis=(0, 0)),
    "broadcast_to": lambda a, v: np.broadcast_to(v, (2, 3, 4)),
    "atleast": lambda a, v: np.atleast_2d(v) + np.atleast_1d(v[0]),
    "tril": lambda a, v: np.tril(a, 1),
    "triu": lambda a, v: np.triu(a, -1),
    "tril of a vector": lambda a, v: np.tril(v) + np.triu(v, 1),
    "tril square": lambda a, v: np.tril(a @ a.T),
    "triu square": lambda a, v: np.triu(a[:, :3]),
    "triu of a stack": lambda a, v: np.triu(np.reshape(a, (3, 2, 2))),
    "diag": lambda a, v: np.diag(v),
    "diag 1": lambda a, v: np.diag(v, -1) @ np.ones(5),
    "diag of a matrix": lambda a, v: np.diag(a, 1),
    "kron": lambda a, v: np.kron(a, a[:2]),
    "kron of vectors": lambda a, v: np.kron(v, v),
    "kron of both": lambda a, v: np.kron(a, v),
    "tensordot": lambda a, v: np.tensordot(a, a, axes=([0, 1], [0, 1])),
    "tensordot 1": lambda a, v: np.tensordot(a, v, 1),
    "tensordot 0": lambda a, v: np.tensordot(a, v, 0),
    "tensordot swapped": lambda a, v: np.tensordot(np.reshape(a, (3, 2, 2)), a, axes=([0], [0])),
    "cumsum": lambda a, v: np.cumsum(v),
    "cumsum 0": lambda a, v: np.cumsum(a, axis=0),
    "cumsum flat": lambda a, v: a.cumsum(),
    "diff": lambda a, v: np.diff(v),
    "diff 2": lambda a, v: np.diff(a, 2, axis=1),
    "var": lambda a, v: np.var(a),
    "var 0": lambda a, v: a.var(axis=0, ddof=1),
    "std": lambda a, v: np.std(a, axis=1, keepdims=True),
    "sort": lambda a, v: np.sort(a),
    "sort 0": lambda a, v: np.sort(a, axis=0) * np.arange(4.0),
    "pick": lambda a, v: v[np.argmax(a, axis=1)] * a[np.argmin(a, axis=0), 1][:3],
    "prod 0": lambda a, v: np.prod(a, axis=0) * np.prod(a, axis=1, keepdims=True),
    "methods": lambda a, v: a.ravel()[:4] * v.clip(0.3, 0.6) + a.swapaxes(0, 1).squeeze()[:, 0]
    + v.repeat(2)[:4] + a.flatten()[2] + a.prod(axis=0),
}  # fmt: skip


class Plain(np.ndarray):
    """What NumPy's arrays lack of LazyArrays' methods that give a new array."""

    H = property(lambda self: self.conj().T)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int32])
@pytest.mark.parametrize("name", CASES)
def test_as_in_numpy(name, dtype, rng):
    a, v = (10 * rng.uniform(0.2, 0.8, shape) for shape in ((3, 4), 4))
    if dtype is np.complex128:
        a, v = a + 1j * a[::-1], v - 2j * v
        if "clip" in name or name == "methods":
            pytest.skip("NumPy clips no complex numbers")
    a, v = a.astype(dtype), v.astype(dtype)
    got = CASES[name](pl.lazy(a), pl.lazy(v))
    want = CASES[name](a.view(Plain), v.view(Plain))
    assert isinstance(got, pl.LazyArray)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    eps = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(np.asarray(got), want, rtol=eps, atol=eps * 10)
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(got))), np.asarray(got))


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name, rng):
    a, v = rng.uniform(0.2, 0.8, (3, 4)), rng.uniform(0.2, 0.8, 4)
    w = rng.standard_normal(CASES[name](pl.lazy(a), pl.lazy(v)).shape)
    used = lambda a, v: np.sum(w * CASES[name](a, v) ** 2) + np.sum(a) + np.sum(v)
    check(used, a, v)
    check_second(used, a, v)


def test_products_beside_zeros():
    x = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]])
    g = pl.grad(lambda x: np.sum(np.prod(x, axis=1)))(x)
    assert np.array_equal(g, [[0, 6, 0], [0, 0, 0]])
    assert np.array_equal(pl.grad(np.prod)(x[0]), g[0])
    assert np.array_equal(pl.hvp(np.prod)(x[0], x[0]), [0, 12, 0])


def test_nothing_is_computed(rng):
    calls = []
    x = pl.lazy(rng.standard_normal((3, 3)))
    counted = pl.custom_vjp(lambda x: calls.append(1) or x, lambda y, a, g: (g,), shape=(3, 3))
    for name in ("concatenate 1", "tril square", "cumsum 0", "sort", "kron", "std", "roll"):
        CASES[name](counted(x), counted(x)[0])
    assert not calls


def test_matrices_keep_their_structure(rng):
    a, b = (pl.lazy(rng.standard_normal((200, 200))) for _ in range(2))
    n = 200 * 200
    with pl.config(memory_limit=8_000_000):
        y = np.kron(a, b) @ np.ones(n)  # 12 GB dense
        np.testing.assert_allclose(
            np.asarray(y), np.kron(np.asarray(a).sum(1), np.asarray(b).sum(1)), rtol=1e-9, atol=1e-9
        )
        big = pl.lazy(np.arange(1.0, n + 1))
        np.testing.assert_allclose(np.asarray(np.linalg.solve(np.diag(big), np.ones(n))), 1 / big)
    text = str(np.linalg.solve(np.tril(a), np.ones(200)).explain())
    assert "trsv" in text or "trsm" in text


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.concatenate([x, x[0]]), ValueError),
        (lambda x: np.concatenate([x, x[:, :2]]), ValueError),
        (lambda x: np.concatenate([x, x], axis=2), np.exceptions.AxisError),
        (lambda x: np.stack([x, x[0]]), ValueError),
        (lambda x: np.tensordot(x, x, 1)[0] @ np.tensordot(x, x[:2], 1), ValueError),
        (lambda x: np.diff(x, -1), ValueError),
        (lambda x: np.cumsum(x, axis=3), np.exceptions.AxisError),
        (lambda x: x[np.argmax(x, axis=0), 9], IndexError),
    ],
)
def test_wrong_use(call, error):
    with pytest.raises(error):
        call(pl.lazy(np.arange(9.0).reshape(3, 3)))


def test_an_index_out_of_range_is_found_when_it_is_computed():
    x, k = pl.lazy(np.arange(3.0)), pl.lazy(np.array([5]))
    y = x[k]
    assert y.shape == (1,)
    with pytest.raises(IndexError):
        np.asarray(y)
