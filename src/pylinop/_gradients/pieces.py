"""What derivatives are written with: columns, pairs, multiples, calls, stops."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import fixed
from .._lazy.build import scaled
from .._lazy.kinds import COLUMN, FORM, lazily
from .._lazy.leaves import lazy


def call(function: Any, args: tuple[Any, ...], shape: Any, dtype: Any, /, **kwargs: Any) -> Any:
    """A function of values, deferred."""
    return _core._LazyArray("call", args, tuple(shape), np.dtype(dtype), (function, kwargs))


@functools.lru_cache(maxsize=16)
def _one(dtype: Any) -> Any:
    return fixed(np.ones((), dtype))


def one(dtype: Any) -> Any:
    """The cotangent of a number: a constant that nobody writes to."""
    return lazy(_one(dtype))


def dtype_of(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def conj(x: Any) -> Any:
    """The conjugate where x is complex; x itself where it is real."""
    return np.conjugate(x) if dtype_of(x).kind == "c" else x


def column_form(form: Any) -> Any:
    return form


def column(v: Any) -> Any:
    """A vector as a matrix of one column, which keeps how it is made."""
    return lazily(column_form, (v,), bytes((COLUMN,)), (v.shape[0], 1), v.dtype)


def pair(u: Any, v: Any) -> Any:
    """u v^H, of vectors."""
    return column(u) @ column(v).H


def real_form(form: Any) -> Any:
    return form.real if form.dtype.kind == "c" else form


def real_of(g: Any) -> Any:
    """The real part; of a matrix by its form."""
    if g.dtype.kind != "c":
        return g
    if g.ndim < 2:
        return np.real(g)
    dtype = np.empty(0, g.dtype).real.dtype
    return lazily(real_form, (g,), bytes((FORM,)), g.shape, dtype)


def along_rows(c: Any, n: int) -> Any:
    """Each number of c n times, along a new last axis."""
    spread = np.reshape(c, (*c.shape, 1))
    return call(np.broadcast_to, (spread,), (*c.shape, n), c.dtype, shape=(*c.shape, n))


def times(a: Any, c: Any) -> Any:
    """A matrix times a number, which may be a LazyArray of no dimensions; each of a stack times its
    own, where c has the stack's dimensions."""
    if is_lazy(c) and c.ndim:
        one = c._args[0] if c._head == "call" and c._more[0] is np.broadcast_to else c
        if one.ndim == 0:
            return scaled(a, one)
        return _core.Diag(along_rows(c, a.shape[-2])) @ a
    if not is_lazy(c) and np.ndim(c) == 0 and complex(c) == 1:
        return a
    return scaled(a, c if is_lazy(c) else c.item() if isinstance(c, np.generic) else c)


def stop(x: Any) -> Any:
    """x itself, as the value of a function without a derivative."""
    return x


def stopped(x: Any) -> Any:
    """x as a constant: no cotangent passes."""
    if x.ndim >= 2:
        return lazily(stop, (x,), bytes((FORM,)), x.shape, x.dtype)
    return call(stop, (x,), x.shape, x.dtype)


class Through(NamedTuple):
    """The cotangent of a part is what a sweep through this expression finds for it, where what the
    `ends` are made of does not count: each of them has a cotangent of its own. They are not stopped
    for good, since what is found depends on them."""

    expression: Any
    cotangent: Any
    ends: tuple[Any, ...]


class ThroughGradient(NamedTuple):
    """The cotangent of a part is what a sweep finds for it through the gradient, by `of`, that a
    sweep through `first` finds; the same ends."""

    first: Through
    of: Any
    cotangent: Any
