"""Second derivatives by the numbers and points of kernel matrices read inv(K) @ dK @ inv(K), where
dK is a dense matrix: two products by the inverse, which the gradient makes anyway, in place of two
solves with n columns by the factor. Their error has the same bound, eps |inv(K)| |K| times the
result; it is no solve that the user wrote."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .._base.checks import is_lazy
from .._lazy.build import scaled, view
from . import kernel_sums
from .pieces import call

_LEAST = 48  # rows: of fewer the factor's solves take less than another plan (2026-11-27)
_DEEPEST = 16
_TANGENTS = (kernel_sums.tangent, kernel_sums.twice)
_dense: dict[int, tuple[Any, Any]] = {}
_held: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def held(a: Any) -> Any:
    """A matrix that is computed once, whatever is made of it."""
    return a


def value(a: Any) -> Any:
    """A LazyArray's value, the same node each time."""
    found = _held.get(id(a))
    if found is None or found._args[0] is not a:
        found = _held[id(a)] = call(held, (a,), a.shape, a.dtype)
    return found


def _is_dense(g: Any, depth: int = _DEEPEST) -> bool:
    """Is a term what a kernel matrix grows by, of points in more than one dimension? (Those of one
    may be quasi-separable.)"""
    if not is_lazy(g) or g.ndim != 2 or depth == 0:
        return False
    if g._head == "call":
        return g._more[0] in _TANGENTS and g._args[0].shape[-1] > 1
    if g._head in ("view", "scale"):
        return _is_dense(g._args[0], depth - 1)
    return g._head == "add" and any(_is_dense(x, depth - 1) for x in g._args)


def between(h: Any, g: Any) -> Any:
    """h g h by the value of h, a view of an inverse; None where solves are to do it."""
    if g.shape[-1] < _LEAST or not _is_dense(g):
        return None
    if h._head == "view" and h._args[0]._head == "inverse":
        by = view(value(h._args[0]), h._more)
        return value(by @ value(g) @ by)
    return None


def by_values(g: Any) -> Any:
    """A cotangent that is wanted as a dense matrix, with the values of the inverses in it: the same
    node each time."""
    known = _dense.get(id(g))
    found = None if known is None or known[0]() is not g else known[1]()
    if found is None:
        found = _replaced(g, _DEEPEST)
        if found is not g:
            _dense[id(g)] = weakref.ref(g, functools.partial(_forget, id(g))), weakref.ref(found)
    return found


def _forget(at: int, _: Any) -> None:
    _dense.pop(at, None)


def _replaced(g: Any, depth: int) -> Any:
    if not is_lazy(g) or g.ndim != 2 or g.shape[-1] < _LEAST or depth == 0:
        return g
    if g._head == "inverse":
        return value(g)
    parts = [_replaced(x, depth - 1) for x in g._args[: 2 if g._head == "add" else 1]]
    if all(x is y for x, y in zip(parts, g._args, strict=False)):
        return g
    if g._head == "view":
        return view(parts[0], g._more)
    if g._head == "scale":
        return scaled(parts[0], g._args[1])
    return parts[0] + parts[1] if g._head == "add" else g
