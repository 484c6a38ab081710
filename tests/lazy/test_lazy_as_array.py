"""LazyArrays where arrays go: formats, rounding, membership, text and HTML in a notebook."""

import math

import numpy as np
import pytest

import pylinop as pl

X = np.array([[1.5, -2.25, 3.0], [0.0, 5.125, -6.5]])


def lazy(x=X):
    return pl.lazy(x)


def number():
    A = lazy()
    return (A @ A.T).trace()


VALUE = float((X @ X.T).trace())


def test_formats():
    s = number()
    assert f"{s:.3f}" == f"{VALUE:.3f}" and f"{s:>12.1e}" == f"{VALUE:>12.1e}"
    assert f"{s:.2f}" == f"{VALUE:.2f}" and f"{lazy(np.array(3)):d}" == "3"
    assert f"{lazy(np.array(1 + 2j)):.1f}" == "1.0+2.0j"
    fresh = number()
    assert f"{fresh}" == str(fresh) and "not" not in str(fresh) and fresh._value is None
    with pytest.raises(TypeError, match=r"the format '.2f' is for numbers, .* shape \(3,\)"):
        f"{lazy()[0]:.2f}"
    with pytest.raises(ValueError, match="Unknown format code|Invalid format"):
        f"{s:q}"


def test_rounding():
    s = number()
    assert round(s) == round(VALUE) and type(round(s)) is int
    assert round(s, 1) == round(VALUE, 1)
    assert math.trunc(s) == math.trunc(VALUE) and math.floor(s) == math.floor(VALUE)
    assert type(round(lazy(), 1)) is pl.LazyArray
    np.testing.assert_array_equal(np.asarray(round(lazy(), 1)), np.round(X, 1))
    np.testing.assert_array_equal(np.asarray(lazy().round(1)), X.round(1))


DEFERRED = {
    "take": lambda x: x.take([2, 0], axis=1),
    "take all": lambda x: x.take([3, 1]),
    "cumsum": lambda x: x.cumsum(0),
    "any": lambda x: (x > 1).any(axis=0),
    "all": lambda x: (x > -9).all(),
    "invert": lambda x: ~(x > 1),
    "divmod": lambda x: divmod(x, 2)[1],
    "rdivmod": lambda x: divmod(7, x + 10)[0],
    "std": lambda x: x.std(axis=1, ddof=1),
    "var": lambda x: x.var(),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "clip": lambda x: x.clip(-1, 2),
    "sort": lambda x: np.sort(x, axis=1),
    "argsort": lambda x: x.argsort(0),
    "squeeze": lambda x: x[:1].squeeze(0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "repeat": lambda x: x.repeat(2, axis=0),
    "prod": lambda x: x.prod(1),
}


@pytest.mark.parametrize("name", DEFERRED)
def test_deferred(name):
    found = DEFERRED[name](lazy())
    assert type(found) is pl.LazyArray and found._value is None
    want = DEFERRED[name](X)
    assert found.shape == np.shape(want) and found.dtype == np.asarray(want).dtype
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-14)


def test_computed():
    x = lazy()
    assert x.tolist() == X.tolist() and type(x.sum().tolist()) is float
    assert 5.125 in x and 77 not in x
    for i, j in zip(x.nonzero(), X.nonzero(), strict=True):
        np.testing.assert_array_equal(i, j)
    np.testing.assert_array_equal(x.cumprod(axis=1), X.cumprod(axis=1))
    assert (x.itemsize, x.nbytes) == (8, 48)
    assert bool(lazy(np.array(2.0)) > 1)


@pytest.mark.parametrize("name", ["flags", "strides", "fill", "view", "searchsorted", "tobytes"])
def test_what_is_of_the_value(name):
    with pytest.raises(AttributeError, match=rf"'{name}': np\.asarray\(x\)\.{name} is that of its"):
        getattr(lazy(), name)
    assert not hasattr(lazy(), name) and hasattr(np.asarray(lazy()), name)


def test_other_names():
    with pytest.raises(AttributeError, match="no attribute 'zzz'$"):
        lazy().zzz
    with pytest.raises(AttributeError, match="no attribute '_zzz'$"):
        lazy()._zzz
    with pytest.raises(AttributeError):
        lazy().nothing = 3


def test_they_are_not_written_to():
    x = lazy()
    with pytest.raises(TypeError, match=r"np\.where\(mask, a, x\) is a new one, x\.toarray\(\)"):
        x[0, 0] = 1
    y = x
    y += 1  # another LazyArray under this name
    np.testing.assert_array_equal(np.asarray(x), X)
    np.testing.assert_array_equal(np.asarray(y), X + 1)


def test_html():
    s = number() < 3
    text = s._repr_html_()
    assert s._value is None and "not computed yet" in text
    for part in ("less(", "()", "bool", "test_lazy_as_array.py", "s = number() &lt; 3"):
        assert part in text
    assert not bool(s)
    assert "<code>False</code>" in s._repr_html_()
    big = lazy(np.arange(1e6))
    assert len((big + 1)._repr_html_()) < 2000
    big = big + 1
    np.asarray(big)
    assert len(big._repr_html_()) < 2000 and "..." in big._repr_html_()


def test_explain():
    A = lazy(np.ones((200, 3)))
    y = A @ A.T @ np.ones(200)
    e = y.explain()
    assert isinstance(e, pl.Explanation) and e.steps and y._value is None
    assert "gem" in str(e) and e.flops < 1e4


def test_explain_what_is_computed_already():
    A = lazy(np.ones((200, 3)))
    y = A @ (A.T @ np.ones(200))
    before = y.explain()
    np.asarray(y)
    e = y.explain()
    assert y._value is not None and e.steps == before.steps
    assert "(its value is kept; this is how it is computed anew)" in " ".join(str(e).split())
    assert "kept" not in str(before).partition("total")[0]
    ran = y.explain(run=True)
    assert ran.took is not None and [s["name"] for s in ran.steps]


def test_arrays_of_lazy_arrays_are_not_asked_through_python():
    # NumPy asks for __array_interface__ and its like first: a __getattr__ makes that 3 us a call.
    assert not any("__getattr__" in vars(cls) for cls in pl.LazyArray.__mro__)
    x = pl.lazy(np.ones(2))
    assert "flags" not in dir(x) and not hasattr(x, "flags")
