"""NumPy's functions within formulas, by name, on arrays of a namespace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.checks import is_lazy
from .._base.dlpack import is_fixed
from . import contractions

__all__ = ["called", "is_one", "plain"]


def plain(run: Any, x: Any) -> Any:
    """An argument that is no LazyArray: a number stays one, arrays of NumPy are constants."""
    if isinstance(x, (np.ndarray, np.generic)):
        return run.own(x)
    return x


def _binary(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def applied(run: Any, a: Any, kwargs: Any, x: Any, y: Any) -> Any:
        x, y = (run.ns.cast(v, _due(run, v, a)) if hasattr(v, "ndim") else v for v in (x, y))
        return f(x, y)

    return applied


def _due(run: Any, v: Any, a: Any) -> str:
    """The dtype of the result; real ones stay real beside complex ones."""
    due, have = str(a.dtype.name), run.ns.name_of(v)
    if due.startswith("complex") and not have.startswith("complex"):
        return {"complex64": "float32", "complex128": "float64"}[due]
    return due if due != "bool" else have


def _unary(name: str) -> Callable[..., Any]:
    def applied(run: Any, a: Any, kwargs: Any, x: Any) -> Any:
        return getattr(run.ns.xp, name)(run.ns.cast(x, a.dtype.name))

    return applied


def _sum(run: Any, a: Any, kwargs: Any, x: Any) -> Any:
    axis = kwargs.get("axis")
    axes = tuple(range(x.ndim)) if axis is None else axis
    x = run.ns.cast(x, a.dtype.name)
    return run.ns.sum(x, axes, bool(kwargs.get("keepdims"))) if x.ndim else x


def _mean(run: Any, a: Any, kwargs: Any, x: Any) -> Any:
    found = _sum(run, a, kwargs, x)
    return found / (math.prod(x.shape) // max(1, math.prod(found.shape)))


def _max(run: Any, a: Any, kwargs: Any, x: Any) -> Any:
    axis = kwargs.get("axis")
    axes = tuple(range(x.ndim)) if axis is None else axis
    return run.ns.max(x, axes, bool(kwargs.get("keepdims"))) if x.ndim else x


def _reshape(run: Any, a: Any, kwargs: Any, x: Any, *rest: Any) -> Any:
    return run.ns.reshape(x, a.shape)


def _transpose(run: Any, a: Any, kwargs: Any, x: Any, *rest: Any) -> Any:
    axes = kwargs.get("axes")
    return run.ns.moved(x, axes or range(x.ndim - 1, -1, -1))


def _swapaxes(run: Any, a: Any, kwargs: Any, x: Any, i: Any = None, j: Any = None) -> Any:
    i, j = (kwargs.get("axis1", i), kwargs.get("axis2", j))
    order = list(range(x.ndim))
    order[i], order[j] = order[j], order[i]
    return run.ns.moved(x, order)


def _where(run: Any, a: Any, kwargs: Any, test: Any, *choices: Any) -> Any:
    due = str(a.dtype.name)
    return run.ns.where(
        test,
        *(
            run.ns.cast(v, due) if hasattr(v, "ndim") else run.ns.zeros((), due) + v
            for v in choices
        ),
    )


def _astype(run: Any, a: Any, kwargs: Any, x: Any, *dtype: Any) -> Any:
    """As in NumPy a complex number's real part; `called` casts."""
    is_narrowed = run.ns.name_of(x).startswith("complex") and a.dtype.kind != "c"
    return run.ns.real(x) if is_narrowed else x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sign_of": lambda run, a, kwargs, x: x[0],
    "logabs_of": lambda run, a, kwargs, x: x[1],
    "_astype": _astype,
    "stop": lambda run, a, kwargs, x: x,
    "spectral cotangent": lambda run, a, kwargs, x, *about: x,
    "add": _binary(lambda x, y: x + y),
    "subtract": _binary(lambda x, y: x - y),
    "multiply": _binary(lambda x, y: x * y),
    "divide": _binary(lambda x, y: x / y),
    "true_divide": _binary(lambda x, y: x / y),
    "power": lambda run, a, kwargs, x, y: x**y,
    "equal": _binary(lambda x, y: x == y),
    "where": _where,
    "negative": lambda run, a, kwargs, x: -x,
    "square": lambda run, a, kwargs, x: x * x,
    "reciprocal": lambda run, a, kwargs, x: 1 / x,
    "exp": _unary("exp"),
    "log": _unary("log"),
    "sqrt": _unary("sqrt"),
    "sin": _unary("sin"),
    "cos": _unary("cos"),
    "tanh": _unary("tanh"),
    "absolute": lambda run, a, kwargs, x: run.ns.abs(x),
    "conjugate": lambda run, a, kwargs, x: run.ns.conj(x),
    "imag": lambda run, a, kwargs, x: run.ns.imag(x),
    "real": lambda run, a, kwargs, x: run.ns.real(x),
    "sum": _sum,
    "mean": _mean,
    "max": _max,
    "amax": _max,
    "reshape": _reshape,
    "ravel": _reshape,
    "expand_dims": _reshape,
    "squeeze": _reshape,
    "transpose": _transpose,
    "swapaxes": _swapaxes,
    "broadcast_to": lambda run, a, kwargs, x, *rest: run.ns.expand(x, a.shape),
    "einsum": contractions.einsum,
    "matrix_transpose": lambda run, a, kwargs, x: run.ns.mT(x),
}


def is_one(x: Any) -> bool:
    """Is it a number 1 that nobody writes to, such as that by which a sweep begins?"""
    if is_lazy(x):
        x = x._args[0] if x._head == "leaf" else None
    if isinstance(x, np.ndarray) and (x.ndim or not is_fixed(x)):
        return False
    return isinstance(x, (int, float, complex, np.ndarray, np.generic)) and bool(x == 1)


def _product(run: Any, a: Any) -> Any:
    """Of a factor that is 1 nothing is computed; None of others."""
    for x, y in (a._args, a._args[::-1]):
        if is_one(x) and is_lazy(y) and y.shape == a.shape:
            return run.ns.cast(run.value(y), a.dtype.name)
    return None


def _scaled(run: Any, a: Any) -> Any:
    if is_one(a._args[1]):
        return run.ns.cast(run.value(a._args[0]), a.dtype.name)
    x, c = (run.value(v) for v in a._args)
    x = run.ns.cast(x, _due(run, x, a))
    return x * c if a._head == "scale" else x / c


def _elements(run: Any, a: Any) -> Any:
    """By an index; PyTorch has no steps backwards."""
    key = a._more if isinstance(a._more, tuple) else (a._more,)
    x, axis = run.value(a._args[0]), 0
    count = sum(k is not None and k is not Ellipsis for k in key)
    turned, at = [], []
    for k in key:
        if isinstance(k, slice) and (k.step or 1) < 0:
            n = int(x.shape[axis])
            start, stop, step = k.indices(n)
            turned.append(axis)
            k = slice(n - 1 - start, n - 1 - stop, -step)
        at.append(k)
        axis += x.ndim - count if k is Ellipsis else k is not None
    return run.ns.flip(x, tuple(turned))[tuple(at)] if turned else x[a._more]


def called(run: Any, a: Any) -> Any:
    """The value of a LazyArray whose head is a function, an index, a multiple or a sum."""
    if a._head in ("scale", "over"):
        return _scaled(run, a)
    if a._head == "add":
        x, y = (run.ns.cast(run.value(v), a.dtype.name) for v in a._args)
        return x + y
    if a._head == "index":
        return _elements(run, a)
    if a._head == "view":
        x = run.value(a._args[0])
        x = run.ns.mT(x) if a._more & 1 and x.ndim >= 2 else x
        return run.ns.conj(x) if a._more & 2 else x
    if a._head == "matmul":
        return run.ns.matmul(*(run.ns.cast(run.value(v), a.dtype.name) for v in a._args))
    if a._head == "inverse":
        return run.ns.inv(run.ns.cast(run.value(a._args[0]), a.dtype.name))
    f, kwargs = a._more if a._head in ("call", "of form") else (None, {})
    name = getattr(f, "__name__", a._head)
    known = FUNCTIONS.get(name) if a._head == "call" or f in (np.sum, np.mean) else None
    if known is None or any(is_lazy(v) for v in kwargs.values()):
        raise NotImplementedError(
            f"{name!r} of shape {a.shape} has no form on the arrays of other libraries yet: "
            "compute it on the CPU"
        )
    if name == "multiply" and len(a._args) == 2 and not kwargs:
        other = _product(run, a)
        if other is not None:
            return other
    values = [run.value(v) for v in a._args]
    found = known(run, a, kwargs, *values)
    return found if isinstance(found, tuple) else run.ns.cast(found, a.dtype.name)
