"""Index equations and groups that were met before: found by text, sizes and shapes, and read in C
of the arrays as they come."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._contractions import equations

CALLS = [
    ("(2*o + w), w -> o", [(9,), (3,)], {}),
    ("(2*o + w), w -> o", [(9,), (3,)], {"sizes": {"o": 2}}),
    ("(2*o + w), w -> o", [(12,), (3,)], {}),
    ("(2*o + w - 1), w -> o", [(9,), (3,)], {"sizes": {"o": 5}, "outside": 0}),
    ("(2*o + w - 1), w -> o", [(9,), (3,)], {"sizes": {"o": 5}, "outside": "wrap"}),
    ("(o - w) c, w c -> c o", [(5, 2), (7, 2)], {"sizes": {"o": 6}, "outside": "wrap"}),
    ("(o - 2*w + 3) c, w c -> (c o)", [(5, 2), (2, 2)], {"sizes": {"o": 4}, "outside": 0}),
    ("(h w) 1 c, w -> h (c)", [(6, 1, 2), (3,)], {}),
    ("(a a2) (a2 + a), a -> a2", [(6, 4), (2,)], {}),
    ("i (i + j), j -> i", [(3, 4), (1,)], {"sizes": {"j": 2}}),
]


@pytest.mark.parametrize("text, shapes, how", CALLS)
@pytest.mark.parametrize("dtype", ["f", "D", "i"])
def test_a_second_call_is_the_first(text, shapes, how, dtype, rng):
    for k in range(4):
        arrays = [rng.integers(-9, 9, s).astype(dtype) for s in shapes]
        if k == 2:  # other strides, of the same shapes
            arrays = [np.repeat(a[::-1], 2, axis=-1)[::-1][..., ::2] for a in arrays]
        with pl.config(verify=True):
            want = pl.einsum(text, *arrays, **how)
        made = pl.einsum(text, *arrays, **how)
        np.testing.assert_array_equal(made, want)
        assert made.dtype == want.dtype
        out = np.empty(want.shape, want.dtype)
        assert pl.einsum(text, *arrays, out=out, **how) is out
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(pl.einsum(text, *map(pl.lazy, arrays), **how), want)


@pytest.mark.parametrize("text, shapes, how", CALLS)
def test_it_is_looked_up(text, shapes, how, rng, monkeypatch):
    arrays = [rng.normal(size=s) for s in shapes]

    def read(*_args):
        raise AssertionError("read again")

    with pl.config(verify=False):  # what is verified is read each time
        want = pl.einsum(text, *arrays, **how)
        monkeypatch.setattr(equations, "task_of", read)
        monkeypatch.setattr(equations, "run", read)
        np.testing.assert_array_equal(pl.einsum(text, *arrays, **how), want)


def test_mistakes_are_said_at_each_call(rng):
    x, w = rng.normal(size=9), rng.normal(size=3)
    for _ in range(3):
        assert pl.einsum("(2*o + w), w -> o", x, w).shape == (4,)
        with pytest.raises(ValueError, match="runs from 0 to 10"):
            pl.einsum("(2*o + w), w -> o", x, w, sizes={"o": 5})
        with pytest.raises(TypeError, match="no integer"):
            pl.einsum("(2*o + w), w -> o", x, w, sizes={"o": 4.0})
        assert pl.einsum("(2*o + w), w -> o", x, w, sizes={"o": 4}).shape == (4,)
        with pytest.raises(TypeError, match="mapping"):
            pl.einsum("(2*o + w), w -> o", x, w, sizes=[4])
        with pytest.raises(ValueError, match="outside must be"):
            pl.einsum("(2*o + w), w -> o", x, w, outside=1)
        with pytest.raises(ValueError, match="out has shape"):
            pl.einsum("(2*o + w), w -> o", x, w, out=np.empty(3))
        with pytest.raises(ValueError, match="3 operands"):
            pl.einsum("(2*o + w), w -> o", x, w, w)
        assert pl.view(x, "(2*o + w) -> o w", sizes={"w": 3}).shape == (4, 3)
        with pytest.raises(TypeError, match="no integer"):
            pl.view(x, "(2*o + w) -> o w", sizes={"w": 3.0})
        with pytest.raises(ValueError, match="not in the result"):
            pl.view(x, "(2*o + w) -> o", sizes={"w": 3})


@pytest.mark.parametrize("dtype", ["d", "i2", "O", "S3", ">f8", "M8[s]"])
def test_views_of_any_dtype_are_read_only_and_on_the_array(dtype, rng):
    a = np.arange(24).reshape(4, 6).astype(dtype)
    for array in (a, a[::-1, ::2], a.T):
        for _ in range(3):
            m, n = array.shape
            seen = pl.view(array, "(o + w) c -> c o w", sizes={"w": 2})
            assert seen.dtype == a.dtype
            assert not seen.flags.writeable
            assert np.may_share_memory(seen, a)
            want = np.lib.stride_tricks.sliding_window_view(array, 2, axis=0)
            np.testing.assert_array_equal(seen, want.transpose(1, 0, 2))
            np.testing.assert_array_equal(pl.view(array, "x y -> y x"), array.T)
            k = min(m, n)
            corner = array[:k, :k]
            np.testing.assert_array_equal(pl.view(corner, "x x -> x"), np.diagonal(corner))
    with pytest.raises(ValueError, match="read-only"):
        pl.view(a, "x y -> y x")[0, 0] = a[0, 0]


BAD_VIEWS = [
    (((4,), (0,), ((0, 1, 5),)),),  # a step too many
    (((4,), (0,), ((0, -1, 2),)),),
    (((4,), (3,), ((0, 1, 2),)),),
    (((4,), (4,), ((0, 1, 1),)),),
    (((4,), (-1,), ((0, 1, 2),)),),
    (((4,), (0,), ((0, 2**62, 3),)),),
    (((4,), (0,), ((0, -(2**63), 3),)),),
    (((4,), (0,), ((1, 1, 2),)),),
    (((4,), (0,), ((0, 1, 0),)),),
    (((0,), (0,), ((0, 1, 1),)),),
    (((4,), (0,), ()),),
    (((4,), (), ((0, 1, 1),)),),
    (),
]


@pytest.mark.parametrize("views", BAD_VIEWS)
def test_the_core_takes_no_view_that_leaves_its_array(views):
    with pytest.raises(ValueError, match=r"view"):
        _core._Equation(((0,),), (0,), None, False, views)


@pytest.mark.parametrize("view", ["abc", ((4,), (0,), ([0, 1, 2],)), ((4,), (0,), (None,))])
def test_the_core_takes_no_view_that_is_no_tuple(view):
    with pytest.raises(TypeError, match="a view"):
        _core._Equation(((0,),), (0,), None, False, (view,))


def test_the_core_looks_at_shapes(rng):
    made = _core._Equation(((0, 1),), (0,), None, False, (((5,), (1,), ((0, 1, 3), (0, 1, 2))),))
    x = rng.normal(size=5)
    np.testing.assert_allclose(made(x), [x[1] + x[2], x[2] + x[3], x[3] + x[4]])
    assert made(x[:4]) is NotImplemented
    assert made(x[None]) is NotImplemented
    assert made.view(x) is not NotImplemented
    with pytest.raises(ValueError, match="one operand"):
        _core._Equation(((0,), (0,)), (0,)).view(x)
