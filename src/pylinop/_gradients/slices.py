"""Cotangents through rows and columns of a matrix: S^H G T, with S and T rows of the identity, so
that what is a pair, a band, an inverse stays one; through elements and batches by putting back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dlpack import fixed
from .._lazy.build import view
from .._lazy.leaves import lazy
from .pieces import call, conj, pair, times
from .shapes import scattered, unbroadcast

_Place = int | np.ndarray[Any, Any] | None  # one row, some rows, all of them


def cotangent(shape: Any, key: Any, g: Any) -> Any:
    """Of what ``[key]`` is taken from, an array of this shape."""
    places = _places(shape, key)
    if places is not None:
        found = _put_back(shape, *places, g)
        if found is not None:
            return found
    return call(scattered, (g,), shape, g.dtype, key=key, shape=tuple(shape))


def _places(shape: Any, key: Any) -> tuple[_Place, _Place] | None:
    """Which rows and columns of each matrix a key takes; None where it does something else."""
    parts = list(key) if type(key) is tuple else [key]
    dots = [k for k, x in enumerate(parts) if x is Ellipsis]
    if len(dots) > 1 or len(shape) < 2 or any(x is None for x in parts):
        return None
    at = dots[0] if dots else len(parts)
    missing = len(shape) - len(parts) + len(dots)
    parts[at : at + len(dots)] = [slice(None)] * missing
    if len(parts) != len(shape) or any(
        type(k) is not slice or k != slice(None) for k in parts[:-2]
    ):
        return None
    rows, cols = parts[-2:]
    if all(np.ndim(k) == 2 for k in (rows, cols) if type(k) is not slice):  # np.ix_
        if np.shape(rows)[1:] == (1,) and np.shape(cols)[:1] == (1,):
            rows, cols = np.reshape(rows, -1), np.reshape(cols, -1)
    elif type(rows) is not slice and type(cols) is not slice and np.ndim(rows) + np.ndim(cols):
        return None  # elements, one by one
    found = [_place(n, k) for n, k in zip(shape[-2:], (rows, cols), strict=True)]
    return None if any(k is NotImplemented for k in found) else (found[0], found[1])


def _place(n: int, k: Any) -> Any:
    if type(k) is slice:
        return None if k.indices(n) == (0, n, 1) else np.arange(n)[k]
    k = np.asarray(k)
    if k.ndim > 1 or k.dtype.kind not in "iub" or (k.ndim == 0 and k.dtype.kind == "b"):
        return NotImplemented
    found = np.arange(n)[k]
    return int(found) if k.ndim == 0 else found


def _put_back(shape: Any, rows: _Place, cols: _Place, g: Any) -> Any:
    m, n = shape[-2:]
    if type(rows) is not int and type(cols) is not int:
        return _selected(m, rows, g.dtype, _selected(n, cols, g.dtype, g, True), False)
    if len(shape) > 2:
        return None
    if type(rows) is int and type(cols) is int:
        return times(pair(_unit(m, rows), _unit(n, cols)), g)
    if type(rows) is int:
        return pair(_unit(m, rows), conj(_spread(n, cols, g)))
    return pair(_spread(m, rows, g), _unit(n, cols))


def _unit(n: int, k: Any) -> Any:
    made = np.zeros(n)
    made[k] = 1.0
    return lazy(fixed(made))


def _spread(n: int, places: _Place, v: Any) -> Any:
    """A vector of n numbers, with those of v at their places."""
    if places is None:
        return v
    return call(scattered, (v,), (n,), v.dtype, key=places, shape=(n,))


def _selected(n: int, places: _Place, dtype: Any, g: Any, right: bool) -> Any:
    if places is None:
        return g
    real = np.empty(0, dtype).real.dtype
    S: Any = lazy(_core.Selection(fixed(np.asarray(places, np.int64)), n, real))
    return g @ S if right else view(S, 1) @ g


# -- operators -------------------------------------------------------------------------------------


def of_operator(op: Any, g: Any) -> Any:
    """Of the operator that `op` is a slice of: its axes are cut one after the other."""
    A, steps = op._operands
    at = [np.arange(n) for n in A.shape]
    left = list(range(A.ndim))
    for axis, *how in steps:
        k = left[len(left) - 2 + axis if axis < 2 else len(left) - 1 - axis]
        if len(how) == 1:
            at[k] = at[k][how[0]]
            continue
        start, step, count = how
        at[k] = at[k][start : start + 1] if count < 0 else at[k][start + step * np.arange(count)]
        if count < 0:
            left.remove(k)
    moved = [
        a.shape[0] != n or bool(np.any(a != np.arange(n))) for a, n in zip(at, A.shape, strict=True)
    ]
    if not any(moved[:-2]):
        rows, cols = (a if m else None for a, m in zip(at[-2:], moved[-2:], strict=True))
        return _put_back(A.shape, rows, cols, g)
    key = np.ix_(*at)
    g = np.reshape(unbroadcast(g, op), tuple(a.shape[0] for a in at))
    return call(scattered, (g,), A.shape, g.dtype, key=key, shape=tuple(A.shape))


def at_entries(A: Any, h: Any) -> Any:
    """Rows of numbers at the entries of one sparse matrix, as a stack of dense matrices: there are
    no stacks of sparse ones."""
    entries = A.tocoo()
    shape = (*h.shape[:-1], *A.shape)
    key = (..., entries.coords[0], entries.coords[1])
    return call(scattered, (h,), shape, h.dtype, key=key, shape=shape)
