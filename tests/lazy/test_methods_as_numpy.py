"""Methods of LazyArrays take NumPy's keywords, in NumPy's order, with the same results."""

import numpy as np
import pytest

import pylinop as pl

MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
CALLS = [
    ("sum", (), {"initial": 2.0}),
    ("sum", (), {"where": MASK}),
    ("sum", (1,), {"where": MASK, "keepdims": True}),
    ("sum", (), {"where": MASK, "initial": 1.0, "axis": 0}),
    ("sum", (0, None, None, True), {}),
    ("sum", (), {"axis": 0, "keepdims": 1}),
    ("sum", (), {"dtype": np.float32}),
    ("prod", (), {"where": MASK}),
    ("prod", (), {"initial": 2.0, "axis": 1}),
    ("max", (), {"initial": 0.5}),
    ("max", (), {"initial": np.float64(50), "axis": 1}),
    ("max", (1,), {"initial": -5, "where": MASK}),
    ("min", (), {"initial": -1, "axis": 0, "keepdims": True}),
    ("mean", (), {"where": MASK}),
    ("mean", ((0, 1),), {}),
    ("var", (), {"ddof": 1, "axis": 1}),
    ("var", (), {"where": MASK, "axis": 1}),
    ("std", (0,), {"keepdims": True}),
    ("any", (), {"where": MASK, "axis": 0}),
    ("all", (1,), {"keepdims": True}),
    ("argmax", (), {"axis": 1, "keepdims": True}),
    ("argmin", (), {}),
    ("argsort", (0, "stable"), {}),
    ("cumsum", (1, np.float32), {}),
    ("cumprod", (), {"dtype": np.float32}),
    ("ravel", ("F",), {}),
    ("flatten", (), {"order": "F"}),
    ("dot", (), {"b": np.ones(4)}),
    ("take", ([1, 7],), {"mode": "wrap", "axis": 1}),
    ("clip", (0.2,), {"max": 0.7}),
    ("round", (), {"decimals": 1}),
    ("trace", (1, 1, 0), {}),
    ("diagonal", (), {"axis1": 1, "axis2": 0, "offset": -1}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_as_of_arrays(name, args, kwargs, dtype, rng):
    a = (8 * rng.random((3, 4))).astype(dtype)
    expected = getattr(a, name)(*args, **kwargs)
    found = getattr(pl.lazy(a), name)(*args, **kwargs)
    value = np.asarray(found)
    assert (value.shape, value.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "any", "cumsum"])
def test_out(name, rng):
    a = rng.random((3, 4))
    expected = getattr(a, name)(axis=0)
    out = np.zeros_like(expected)
    assert getattr(pl.lazy(a), name)(axis=0, out=out) is out
    np.testing.assert_allclose(out, expected)


def test_masked_sums_and_extremes_have_derivatives(rng):
    a = rng.random((3, 4))
    slope = pl.grad(lambda x: np.sum(x**2, where=MASK))(a)
    np.testing.assert_allclose(slope, 2 * a * MASK)
    slope = pl.grad(lambda x: np.sum(np.max(x, axis=1, initial=0.0)))(a)
    np.testing.assert_array_equal(slope, a == a.max(axis=1, keepdims=True))
    positive = a @ a.T + np.eye(3)
    slope = pl.grad(pl.log_pdet)(positive)
    np.testing.assert_allclose(slope, np.linalg.inv(positive), rtol=1e-9)


def test_a_mask_that_does_not_fit(rng):
    a = rng.random((3, 4))
    with pytest.raises(ValueError, match="broadcast"):
        np.asarray(pl.lazy(a).sum(where=np.ones(3, bool)))
