"""Functions of NumPy's on a tape (freezing.py), by the inner loops of its ufuncs, whose bits are
NumPy's own (src/c/exec/tape_loops.c)."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np

from .._base.checks import is_lazy
from .._lazy import build
from .tape_words import What
from .views import Unfit, View, c_strides, in_c_order

__all__ = ["ROWS", "of_products", "of_ufunc"]

_MOST = 3  # arguments of a loop
_LETTERS = set("?fdFD")


def _is_of_module(f: np.ufunc) -> bool:
    """Does it live as long as the process?"""
    return any(
        getattr(sys.modules.get(name), f.__name__, None) is f for name in ("numpy", "scipy.special")
    )


def _kind(x: Any) -> Any:
    """What NumPy's promotion sees of an argument: a dtype, or the class of a number."""
    return x.dtype if is_lazy(x) or isinstance(x, (np.ndarray, np.generic)) else type(x)


def of_ufunc(tape: Any, a: Any, v: View, f: np.ufunc) -> None:
    """A ufunc of values, elementwise."""
    if f.nout != 1 or f.signature is not None or f.nin > _MOST or not _is_of_module(f):
        raise Unfit(f"the function {f!r}")
    due = f.resolve_dtypes((*map(_kind, a._args), None))
    if not all(d.char in _LETTERS and d.isnative for d in due) or due[-1].char != v.letter:
        raise Unfit(f"the function {f!r} of these dtypes")
    args = [_argument(tape, x, d) for x, d in zip(a._args, due, strict=False)]
    tape.step(What.LOOP, args, tape.placed(v), by=f, letters=_letters(due))


def _letters(dtypes: Any) -> bytes:
    return "".join(d.char for d in dtypes).encode()


def _argument(tape: Any, x: Any, dtype: Any) -> Any:
    return tape.cast(tape.value(x, dtype), dtype)


def _where(tape: Any, a: Any, v: View, f: Any, **more: Any) -> None:
    mask, *both = a._args
    kind = _kind(mask)
    if more or not isinstance(kind, np.dtype) or kind.char != "?" or a.dtype.char not in "fdFD":
        raise Unfit("this choice")
    args = [tape.value(mask, kind), *(_argument(tape, x, a.dtype) for x in both)]
    tape.step(What.CHOOSE, args, tape.placed(v))


def _astype(tape: Any, a: Any, v: View, f: Any, dtype: Any) -> None:
    place = tape.value(a._args[0], _kind(a._args[0]))
    if not {place[2], v.letter} <= set("fdFD"):
        raise Unfit("a cast between these dtypes")
    tape.step(What.COPY, [place], tape.placed(v))


# -- reductions ------------------------------------------------------------------------------------


def _in_three(place: Any, axes: Any, out: Any) -> tuple[Any, Any] | None:
    """The view as (p, n, q), reduced along n, as NumPy goes through the memory, and the result as
    (p, q). None: the axes are no run of neighbours there."""
    slot, offset, letter, shape, strides = place
    kept = [k for k in range(len(shape)) if k not in axes]
    if len(out[3]) == len(shape):  # kept with a length of one
        out = (*out[:3], *(tuple(t[k] for k in kept) for t in out[3:]))
    own = dict(zip(kept, out[4], strict=True))
    order = sorted((k for k, n in enumerate(shape) if n != 1), key=lambda k: -strides[k])
    run = [i for i, k in enumerate(order) if k in axes]
    if any(s < 0 for s in strides) or run != list(range(run[0], run[0] + len(run)) if run else []):
        return None
    first, last = (run[0], run[-1] + 1) if run else (0, 0)
    groups = order[:first], order[first:last], order[last:]
    sizes, steps, to = [], [], []
    for group, is_kept in zip(groups, (True, False, True), strict=True):
        dims = [shape[k] for k in group]
        step = strides[group[-1]] if group else 1
        if not in_c_order(dims, [strides[k] // step for k in group] if step else [0] * len(dims)):
            return None
        end = own[group[-1]] if group and is_kept else 1
        if is_kept and end and not in_c_order(dims, [own[k] // end for k in group]):
            return None
        sizes.append(math.prod(dims))
        steps.append(step)
        to.append(end)
    ends = (sizes[0], sizes[2]), (to[0], to[2])
    return (slot, offset, letter, tuple(sizes), tuple(steps)), (*out[:3], *ends)


def _axes(shape: Any, axis: Any) -> list[int]:
    if axis is None:
        return list(range(len(shape)))
    return [int(k) for k in np.lib.array_utils.normalize_axis_tuple(axis, len(shape))]


def _reduced(tape: Any, what: int, by: np.ufunc, place: Any, axis: Any, out: Any) -> None:
    axes = _axes(place[3], axis)
    letter = place[2]
    if letter not in "fd" or out[2] != letter or not all(place[3]):
        raise Unfit("a reduction of this dtype, or of nothing")
    found = _in_three(place, axes, out)
    if found is None:
        raise Unfit("a reduction over these axes of a view")
    tape.step(what, [found[0]], found[1], by=by, letters=3 * letter.encode())


def _plain(more: Any) -> None:
    if any(x not in (None, False, True) for x in more.values()) or "dtype" in more:
        raise Unfit("this reduction")


def _given(tape: Any, a: Any, place: Any) -> Any:
    return tape.value(a._args[0], a.dtype) if place is None else tape.cast(place, a.dtype)


def _sum(
    tape: Any, a: Any, v: View, f: Any, axis: Any = None, place: Any = None, **more: Any
) -> None:
    _plain(more)
    _reduced(tape, What.SUMS, np.add, _given(tape, a, place), axis, tape.placed(v))


def _mean(
    tape: Any, a: Any, v: View, f: Any, axis: Any = None, place: Any = None, **more: Any
) -> None:
    _plain(more)
    place = _given(tape, a, place)
    total = tape.room(a.dtype, v.shape)
    _reduced(tape, What.SUMS, np.add, place, axis, total)
    count = math.prod(place[3][k] for k in _axes(place[3], axis))
    tape.step(What.DIVIDE, [total, tape.value(float(count), a.dtype)], tape.placed(v))


def _extreme(tape: Any, a: Any, v: View, f: Any, axis: Any = None, **more: Any) -> None:
    _plain(more)
    by = np.maximum if f is np.max else np.minimum
    _reduced(tape, What.REDUCE, by, tape.value(a._args[0], a.dtype), axis, tape.placed(v))


def _prod(tape: Any, a: Any, v: View, f: Any, axis: Any = None, **more: Any) -> None:
    _plain(more)
    _reduced(tape, What.REDUCE, np.multiply, tape.value(a._args[0], a.dtype), axis, tape.placed(v))


def _around(place: Any, axis: int) -> Any:
    """The view as (p, n, q), n along the axis."""
    slot, offset, letter, shape, strides = place
    sizes, steps = [], []
    for dims in (range(axis), (axis,), range(axis + 1, len(shape))):
        kept = [k for k in dims if shape[k] != 1]
        step = strides[kept[-1]] if kept else 1
        if any(strides[k] != strides[m] * shape[m] for k, m in itertools.pairwise(kept)):
            raise Unfit("a running sum of a view")
        sizes.append(math.prod(shape[k] for k in dims))
        steps.append(step)
    return slot, offset, letter, tuple(sizes), tuple(steps)


def _running(tape: Any, a: Any, v: View, f: Any, axis: int) -> None:
    by = np.add if f is np.cumsum else np.multiply
    place, out = tape.value(a._args[0], a.dtype), tape.placed(v)
    if place[2] not in "fd" or out[2] != place[2] or not all(place[3]):
        raise Unfit("a running sum of this dtype, or of nothing")
    letters = 3 * place[2].encode()
    tape.step(What.RUN, [_around(place, axis)], _around(out, axis), by=by, letters=letters)


def _norm(
    tape: Any, a: Any, v: View, f: Any, axis: Any = None, ord: Any = None, **more: Any
) -> None:
    """As NumPy computes it along an axis: of all elements it is a product of BLAS's."""
    _plain(more)
    if axis is None or ord not in (None, 1, 2, np.inf, -np.inf) or a.dtype.char not in "fd":
        raise Unfit("this norm")
    place, letter = _argument(tape, a._args[0], a.dtype), a.dtype.char.encode()
    if a._args[0].dtype != a.dtype or not all(place[3]):
        raise Unfit("a norm of this dtype, or of nothing")
    sizes, out = tape.room(a.dtype, place[3]), tape.placed(v)
    if ord in (None, 2):
        tape.step(What.LOOP, [place, place], sizes, by=np.multiply, letters=3 * letter)
        total = tape.room(a.dtype, v.shape)
        _reduced(tape, What.SUMS, np.add, sizes, axis, total)
        tape.step(What.LOOP, [total], out, by=np.sqrt, letters=2 * letter)
        return
    tape.step(What.LOOP, [place], sizes, by=np.absolute, letters=2 * letter)
    if ord == 1:
        _reduced(tape, What.SUMS, np.add, sizes, axis, out)
    else:
        by = np.maximum if ord > 0 else np.minimum
        _reduced(tape, What.REDUCE, by, sizes, axis, out)


def of_products(tape: Any, a: Any, v: View, made: Any, f: Any) -> None:
    """A sum or mean of a matrix, of what a plan made: its product with ones; of a stack itself."""
    slot, offset, letter, shape, strides = made
    if a._args[0].ndim > 2 and shape == a._args[0].shape:
        (_sum if f is np.sum else _mean)(tape, a, v, f, place=made, **a._more[1])
        return
    if not in_c_order(shape, strides):
        raise Unfit("a value of another layout than its plan's")
    flat = (slot, offset, letter, (math.prod(shape),), (1,))
    if math.prod(shape) != math.prod(v.shape):  # of all: the sum of the rows'
        if math.prod(v.shape) != 1:
            raise Unfit("a value of another size than its plan's")
        total = tape.room(a.dtype, ())
        tape.step(What.SUM, [tape.cast(flat, a.dtype)], total)
        flat = (*total[:3], (1,), (1,))
    place = (*flat[:3], v.shape, c_strides(v.shape))
    out = tape.placed(v)
    if f is np.sum:
        tape.step(What.COPY, [place], out)
        return
    over = tape.value(float(a._args[0].size // math.prod(v.shape)), a.dtype)
    tape.step(What.DIVIDE, [tape.cast(place, a.dtype), over], out)


ROWS: dict[Any, Any] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _extreme,
    np.min: _extreme,
    np.prod: _prod,
    np.cumsum: _running,
    np.cumprod: _running,
    np.linalg.norm: _norm,
    np.where: _where,
    build._astype: _astype,
}
