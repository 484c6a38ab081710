"""op[...] as NumPy defines it: numbers and 1-D arrays are computed now, 2-D results stay lazy.

A key is read once into one entry for each axis: an int, a range (for a slice) or an int64 array.
For keys that add or move axes, NumPy computes the result at once, from the part that the key is
about (`_by_numpy`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import N, T
from .._base.index_steps import as_slice, taken
from .._fallback import interpreter
from .._fallback.dense_forms import HALVES

_WORDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)
_BLOCK = 256  # columns (or rows) whose elements are read at a time
_FEW = 8  # elements that are read one by one

# -- reading a key --


def _array(key: Any) -> Any:
    """A key's entry as an index array: booleans as they are, all else copied to int64."""
    given = isinstance(key, np.ndarray)
    a = np.asarray(key)
    if a.size == 0 and not given:
        a = a.astype(np.int64)
    if a.dtype == bool and a.ndim:
        return a.copy()
    if a.dtype.kind not in "iu":
        raise IndexError(
            "arrays used as indices must be of integer (or boolean) type" if given else _WORDS
        )
    return a.astype(np.int64) if a.ndim else int(a)


class _AddsAxes(Exception):
    """The result of a key has axes that are added or moved."""


def _is_bool(key: Any) -> Any:
    return isinstance(key, (bool, np.bool_)) or (
        isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype == bool
    )


def _entry(key: Any) -> Any:
    if key is None or _is_bool(key):
        raise _AddsAxes
    if isinstance(key, slice) or key is Ellipsis:
        return key
    if isinstance(key, (int, np.integer)):
        return int(key)
    if isinstance(key, (str, bytes, dict, set, _core.Operator)):
        raise IndexError(_WORDS)
    if isinstance(key, (list, tuple, range, np.ndarray)) or hasattr(key, "__array__"):
        return _array(key)
    if hasattr(key, "__index__"):
        return key.__index__()
    raise IndexError(_WORDS)


def _spread(shape: tuple[int, ...], key: Any) -> Any:
    """One entry for each axis, masks as index arrays; and the axis of the ellipsis, or -1."""
    key = key if isinstance(key, tuple) else (key,)
    entries = [_entry(k) for k in key]
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(e.ndim if _is_mask(e) else 1 for e in entries if e is not Ellipsis)
    if used > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, "
            f"but {used} were indexed"
        )
    rest = [slice(None)] * (len(shape) - used)
    if not dots:
        entries += rest
    spread: list[Any] = []
    gap = -1
    for e in entries:
        axis = len(spread)
        if e is Ellipsis:
            gap = axis
            spread += rest
        elif _is_mask(e):
            for i, (n, size) in enumerate(zip(shape[axis:], e.shape, strict=False)):
                if size and n != size:  # as NumPy does, which ignores empty masks
                    raise IndexError(
                        f"boolean index did not match indexed array along axis {axis + i}; size "
                        f"of axis is {n} but size of corresponding boolean axis is {size}"
                    )
            spread += [a.astype(np.int64) for a in e.nonzero()]
        else:
            spread.append(e)
    return spread, gap


def _is_mask(e: Any) -> Any:
    return isinstance(e, np.ndarray) and e.dtype == bool


def _inside(e: Any, n: Any, axis: Any) -> Any:
    """The entry for an axis of n: in bounds, none negative."""
    if isinstance(e, slice):
        return range(*e.indices(n))
    bad = e[(e < -n) | (e >= n)] if isinstance(e, np.ndarray) else [] if -n <= e < n else [e]
    if len(bad):
        raise IndexError(f"index {bad[0]} is out of bounds for axis {axis} with size {n}")
    if isinstance(e, np.ndarray):
        return np.where(e < 0, e + n, e)
    return e + n if e < 0 else e


def _is_array(e: Any) -> bool:
    return isinstance(e, np.ndarray)


# -- what stays an operator --


def _step(axis: Any, e: Any, n: Any) -> Any:
    """One step for the core; None where all is taken."""
    if isinstance(e, int):
        return (axis, e, 1, -1)
    if _is_array(e):
        return (axis, e)
    if e == range(n):
        return None
    return (axis, e.start if len(e) else 0, e.step if len(e) > 1 else 1, len(e))


def _merged(inner: Any, outer: Any) -> tuple[Any, ...] | None:
    """Two keys of rows and columns as one; None where batches are concerned."""
    if any(s[0] > 1 for s in inner + outer):
        return None
    steps = {s[0]: s for s in inner}
    for s in outer:
        was = steps.get(s[0])
        if was is None:
            steps[s[0]] = s
        elif len(was) == 2:
            steps[s[0]] = (s[0], was[1][s[1] if len(s) == 2 else as_slice(s)])
        elif len(s) == 2:
            steps[s[0]] = (s[0], was[1] + was[2] * s[1])
        else:
            start = was[1] + was[2] * s[1] if s[3] else 0
            steps[s[0]] = (s[0], start, was[2] * s[2], s[3])
    return tuple(steps[axis] for axis in sorted(steps))


_WHOLE = (None, "gen", "general")


def is_whole(op: Any) -> bool:
    """Is all that the array of a Dense holds the matrix? Of what is assumed of a matrix a part of
    the array alone is."""
    return op._given("assume_a") in (*_WHOLE, "orthogonal")


def _of_dense(op: Any, steps: Any) -> Any:
    """A Dense on a view of the same memory; None where that holds what is no part of the matrix."""
    a, word = op._given("a", "assume_a")
    core = {s[0]: s[1:] for s in steps if s[0] < 2}
    if word in _WHOLE or not core:
        return _core.Dense(taken(a, steps), word if not core else None)
    if word == "orthogonal":
        return _core.Dense(taken(a, steps))
    m, n = a.shape[-2:]
    rows, columns = core.get(0, (0, 1, m)), core.get(1, (0, 1, n))
    if rows == columns and (rows[1] > 0 or word == "diagonal"):
        even = word != "tridiagonal" or rows[1] == 1
        return _core.Dense(taken(a, steps), word if even else "diagonal")
    if word in HALVES and max(rows[0], _last(rows)) < min(columns[0], _last(columns)):
        return _core.Dense(taken(a, steps))
    return None


def _last(step: Any) -> Any:
    start, by, count = step
    return start + by * (count - 1) if count else start


def sliced(op: Any, steps: Any) -> Any:
    """The operator of the part that the steps select: see py_index.c."""
    steps = tuple(s for s in steps if s is not None)
    if not steps:
        return op
    if type(op) is _core.Dense and op._init is not None and all(len(s) == 4 for s in steps):
        made = _of_dense(op, steps)
        if made is not None:
            return made
    if op._by == "sliced":
        both = _merged(op._operands[1], steps)
        if both is not None:
            op, steps = op._operands[0], both
            m, n = op.shape[-2:]
            whole = ((0, 0, 1, m), (1, 0, 1, n))
            steps = tuple(s for s in steps if len(s) == 2 or s not in whole)
            if not steps:
                return op
    return _core._sliced(op, steps)


def _operator(op: Any, batch: Any, r: Any, c: Any) -> Any:
    m, n = op.shape[-2:]
    steps = [
        _step(len(batch) - i + 1, e, op.shape[i]) for i, e in enumerate(batch)
    ]  # from the left: dropping an axis does not renumber those to its right
    return sliced(op, [*steps, _step(0, r, m), _step(1, c, n)])


# -- what is computed now --


def _element(op: Any, i: int, j: int) -> Any:
    y = op._element(i, j)
    if y is NotImplemented:
        unit = np.zeros(op.shape[-1], dtype=op.dtype)
        unit[j] = 1
        y = interpreter.apply(op, unit, N, True)[..., i][()]
    return y


def _opaque_row(op: Any, i: int) -> Any:
    """Row i by a product from the left; None where the operator has none."""
    unit = np.zeros(op.shape[-2], dtype=op.dtype)
    unit[i] = 1
    try:
        return interpreter.apply(op, unit, T, True)
    except NotImplementedError:
        return None


def _line(op: Any, batch: Any, r: Any, c: Any) -> Any:
    """A row or column (of each batch element), the other entry a range or a vector of indices."""
    if isinstance(r, int):
        if op._opaque and op._head == "opaque" and op._init is None and not batch:
            y = _opaque_row(op, r)
            if y is not None:
                return y[c if _is_array(c) else as_slice(_numbers(c))]
        return _values(_operator(op, batch, range(r, r + 1), c))[..., 0, :]
    return _values(_operator(op, batch, r, range(c, c + 1)))[..., 0]


def _values(op: Any) -> Any:
    """The dense form; that of a Dense is a copy, made without a plan."""
    if type(op) is _core.Dense and op._init is not None and is_whole(op):
        a = op._given("a")
        return a.astype(a.dtype.newbyteorder("="))
    return interpreter.toarray(op)


def _numbers(e: Any) -> tuple[int, Any, Any, int]:
    return (0, e.start, e.step, len(e))


def _elements(op: Any, batch: Any, r: Any, c: Any) -> Any:
    """The elements (r[t], c[t]), read by blocks of the columns or rows that they lie in."""
    op = _operator(op, batch, range(op.shape[-2]), range(op.shape[-1]))
    if type(op) is _core.Dense and op._init is not None and is_whole(op):
        a = op._given("a")
        return a[..., r, c].astype(a.dtype.newbyteorder("="), copy=False)
    if len(r) <= _FEW and not op._opaque:
        each = [op._element(int(i), int(j)) for i, j in zip(r, c, strict=True)]
        return np.stack(each, axis=-1) if each else np.zeros((*op.shape[:-2], 0), op.dtype)
    by_row = len(np.unique(r)) < len(np.unique(c))
    first, second = (r, c) if by_row else (c, r)
    lines, place = np.unique(first, return_inverse=True)
    out = np.empty((*op.shape[:-2], len(r)), op.dtype)
    for at in range(0, len(lines), _BLOCK):
        mine = (place >= at) & (place < at + _BLOCK)
        other, where = np.unique(second[mine], return_inverse=True)
        pair = (lines[at : at + _BLOCK], other)
        i, j = (place[mine] - at, where) if by_row else (where, place[mine] - at)
        block = interpreter.toarray(_operator(op, (), *(pair if by_row else pair[::-1])))
        out[..., mine] = block[..., i, j]
    return out


# -- op[key] --


def _is_number(k: Any) -> bool:
    return type(k) is int or isinstance(k, np.integer)


def getitem(op: Any, key: Any) -> Any:
    """op[key]: docs/tutorial says which keys give a number, an array or an operator, at what
    cost."""
    shape = op.shape
    if type(key) is tuple and len(key) == len(shape) == 2:
        i, j = key
        if _is_number(i) and _is_number(j):
            return _element(op, _inside(int(i), shape[0], 0), _inside(int(j), shape[1], 1))
    try:
        return _taken_by(op, shape, key)
    except _AddsAxes:
        return _by_numpy(op, shape, key)


def _taken_by(op: Any, shape: tuple[int, ...], key: Any) -> Any:
    spread, gap = _spread(shape, key)
    entries = [_inside(e, n, axis) for axis, (e, n) in enumerate(zip(spread, shape, strict=True))]
    _check_order(entries, gap, shape)
    batch, (r, c) = entries[:-2], entries[-2:]
    arrays = [e for e in entries if _is_array(e)]
    if any(_is_array(e) for e in batch):
        if len(arrays) > 1 or arrays[0].ndim > 1:
            raise _AddsAxes
    elif len(arrays) == 2 and not _is_open_mesh(r, c):
        return _pointwise(op, batch, r, c)
    elif len(arrays) == 2:
        r, c = r.ravel(), c.ravel()
    elif arrays and arrays[0].ndim > 1:
        if isinstance(r, range) or isinstance(c, range):
            raise _AddsAxes
        flat = [e.ravel() if _is_array(e) else e for e in (r, c)]
        y = _line(op, batch, *flat)
        return y.reshape(*y.shape[:-1], *arrays[0].shape)
    if isinstance(r, int) and isinstance(c, int):
        if batch:
            op = _operator(op, batch, *map(range, shape[-2:]))
        return _element(op, r, c)
    if isinstance(r, int) or isinstance(c, int):
        return _line(op, batch, r, c)
    return _operator(op, batch, r, c)


def _check_order(entries: Any, gap: Any, shape: tuple[int, ...]) -> None:
    """Raises _AddsAxes where index arrays, and integers beside them, stand apart: NumPy then moves
    their axes to the front."""
    at = [i for i, e in enumerate(entries) if not isinstance(e, range)]
    if not any(_is_array(e) for e in entries) or len(at) == len(entries):
        return
    apart = at[-1] - at[0] != len(at) - 1
    if apart or at[0] < gap <= at[-1]:
        raise _AddsAxes


def _is_open_mesh(r: Any, c: Any) -> Any:
    return r.ndim == c.ndim == 2 and r.shape[1] == c.shape[0] == 1


def _pointwise(op: Any, batch: Any, r: Any, c: Any) -> Any:
    try:
        r, c = np.broadcast_arrays(r, c)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            f"{r.shape} {c.shape}"
        ) from None
    y = _elements(op, batch, r.ravel(), c.ravel())
    return y.reshape(*y.shape[:-1], *r.shape)


# -- axes that are added or moved --


def _by_numpy(op: Any, shape: tuple[int, ...], key: Any) -> Any:
    """The result of NumPy's indexing on the rows and columns that the key is about, as an array."""
    key = key if isinstance(key, tuple) else (key,)
    adding = [k if k is None or _is_bool(k) else _entry(k) for k in key]
    rest = [k for k in adding if k is not None and not _is_bool(k)]
    spread, gap = _spread(shape, tuple(rest))
    entries = [_inside(e, n, axis) for axis, (e, n) in enumerate(zip(spread, shape, strict=True))]
    steps, local = list[Any](), list[Any]()
    for i, e in enumerate(entries):
        axis = i - len(shape) + 2 if i >= len(shape) - 2 else len(shape) - 1 - i
        if _is_array(e):
            e, at = np.unique(e, return_inverse=True)
            local.append(at.reshape(spread[i].shape))
        else:
            local.append(0 if isinstance(e, int) else slice(None))
            e = range(e, e + 1) if isinstance(e, int) else e
        steps.append(_step(axis, e, shape[i]))
    part = _values(sliced(op, steps))
    return part[_with_added(adding, local, len(shape))]


def _with_added(adding: list[Any], local: Any, ndim: int) -> tuple[Any, ...]:
    """The entries put back between those that add axes, with the ellipsis spelled out."""
    used = sum(1 if not _is_mask(k) else k.ndim for k in adding if _takes_axis(k))
    spelled, at = [], 0
    for k in adding:
        count = ndim - used if k is Ellipsis else 0
        if _takes_axis(k):
            count = k.ndim if _is_mask(k) else 1
        elif count == 0:  # an ellipsis of no axes separates index arrays too
            spelled.append(k)
        spelled += local[at : at + count]
        at += count
    return (*spelled, *local[at:])


def _takes_axis(k: Any) -> bool:
    return k is not None and k is not Ellipsis and not _is_bool(k)
