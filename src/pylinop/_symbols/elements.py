"""Element-wise functions, reductions and what puts elements elsewhere, on symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_kept
from .._lazy import numpy_functions
from .._lazy.build import ufunc_dtype
from .expressions import Size, product, quotient
from .placeholder import RULES, Sides, formula, named, operand, shape_of, shown


def rule(*functions: Any) -> Callable[[Any], Any]:
    def register(run: Any) -> Any:
        for f in functions:
            RULES[f] = run
        return run

    return register


def _of(f: Any, args: Any) -> Sides:
    name = f if isinstance(f, str) else f.__name__
    return Sides(f"{name} of {' and '.join(named(a) for a in args)}")


@rule("ufunc")
def _ufunc(ufunc: Any, *inputs: Any, **kwargs: Any) -> Any:
    if ufunc.nout > 1 or ufunc.signature is not None:
        raise NotImplementedError(f"np.{ufunc.__name__} of placeholders")
    if set(kwargs) - {"dtype", "casting"}:
        raise NotImplementedError(f"np.{ufunc.__name__} of placeholders with {', '.join(kwargs)}")
    args = tuple(map(operand, inputs))
    if ufunc is np.multiply and any(isinstance(a, _core.Operator) for a in args):
        raise TypeError("operator * placeholder: write @ for the product")
    sides = _of(ufunc, args)
    shape = sides.together([shape_of(a) for a in args])
    dtype = kwargs.get("dtype") or ufunc_dtype(ufunc, *args)
    return formula(ufunc, args, shape, dtype, sides, **kwargs)


def cast(a: Any, dtype: Any) -> Any:
    return a.astype(dtype)


@rule("astype")
def _astype(a: Any, dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    return a if dtype == a.dtype else formula(cast, (a, dtype), a.shape, dtype)


@rule(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise NotImplementedError("np.where of a placeholder alone: its shape depends on values")
    args = tuple(map(operand, (condition, *choices)))
    sides = _of(np.where, args)
    shape = sides.together([shape_of(a) for a in args])
    return formula(np.where, args, shape, ufunc_dtype(np.add, *args[1:]), sides)


@rule(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    low = a if a_min is None else np.maximum(a, a_min)
    return low if a_max is None else np.minimum(low, a_max)


@rule(np.round)
def _round(a: Any, decimals: int = 0) -> Any:
    dtype = np.round(np.zeros((), a.dtype), decimals).dtype  # of booleans float16
    return formula(np.round, (a, decimals), a.shape, dtype)


@rule(np.real)
def _real(a: Any) -> Any:
    return a if a.dtype.kind != "c" else formula(np.real, (a,), a.shape, _real_of(a.dtype))


@rule(np.imag)
def _imag(a: Any) -> Any:
    return formula(np.imag, (a,), a.shape, _real_of(a.dtype))


def conjugated(a: Any) -> Any:
    """The conjugate, which booleans have not: NumPy's are int8."""
    return np.conjugate(a) if a.dtype.kind == "c" else a


def _real_of(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


# -- reductions ------------------------------------------------------------------------------------


def _reduction(func: Any, dtype_of: Callable[[Any], Any], empty: bool) -> Any:
    def run(a: Any, axis: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if more:
            raise NotImplementedError(
                f"{func.__name__} of placeholders takes axis and keepdims, not {', '.join(more)}"
            )
        kept = is_kept(keepdims)
        shape = numpy_functions.reduced(a, axis, kept)
        sides = _of(func, (a,))
        if not empty:
            for n in shape_of(a):
                sides.least(n, 1)
        kwargs = {"axis": axis, **({"keepdims": True} if kept else {})}
        return formula(func, (a,), shape, dtype_of(a.dtype), sides, **kwargs)

    return run


def _inexact(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.dtype(float)


for _f, _dtype, _empty in (
    (np.sum, numpy_functions.summed, True),
    (np.prod, numpy_functions.summed, True),
    (np.mean, _inexact, True),
    (np.var, lambda d: _real_of(_inexact(d)), True),
    (np.std, lambda d: _real_of(_inexact(d)), True),
    (np.max, lambda d: d, False),
    (np.min, lambda d: d, False),
    (np.any, lambda d: np.dtype(bool), True),
    (np.all, lambda d: np.dtype(bool), True),
    (np.argmax, lambda d: np.dtype(np.intp), False),
    (np.argmin, lambda d: np.dtype(np.intp), False),
):
    RULES[_f] = _reduction(_f, _dtype, _empty)


@rule(np.cumsum)
def _cumsum(a: Any, axis: Any = None) -> Any:
    shape = a.shape if axis is not None else (a.size,)
    return formula(np.cumsum, (a,), shape, numpy_functions.summed(a.dtype), axis=axis)


@rule(np.sort)
def _sort(a: Any, axis: int = -1) -> Any:
    return formula(np.sort, (a,), a.shape, a.dtype, axis=axis)


@rule(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    more = {"axis": axis, "keepdims": keepdims}
    return np.subtract(np.max(a, **more), np.min(a, **more))


def _filled(number: Any) -> Any:
    def run(a: Any, dtype: Any = None) -> Any:
        one = np.full((), number, a.dtype if dtype is None else dtype)
        return formula(np.broadcast_to, (one, a.shape), a.shape, one.dtype)

    return run


RULES[np.zeros_like], RULES[np.ones_like] = _filled(0), _filled(1)


@rule(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    if np.ndim(fill_value):
        raise NotImplementedError("np.full_like of placeholders takes a number: broadcast_to")
    return _filled(fill_value)(a, dtype)


# -- axes ------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim, "axis"))


def turned(a: Any) -> Any:
    return a.T


@rule(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Any:
    order = tuple(range(a.ndim))[::-1] if axes is None else axes_of(tuple(axes), a.ndim)
    if len(order) != a.ndim:
        raise ValueError("axes don't match array")
    if order == tuple(range(a.ndim)):
        return a
    shape = tuple(a.shape[k] for k in order)
    if order == (1, 0):
        return formula(turned, (a,), shape, a.dtype)
    return formula(np.transpose, (a, order), shape, a.dtype)


@rule(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    i, j = axes_of((axis1,), a.ndim)[0], axes_of((axis2,), a.ndim)[0]
    order[i], order[j] = order[j], order[i]
    return _transpose(a, order)


RULES[np.matrix_transpose] = RULES[np.linalg.matrix_transpose] = lambda a: _swapaxes(a, -1, -2)


@rule(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    given, to = axes_of(source, a.ndim), axes_of(destination, a.ndim)
    order = [k for k in range(a.ndim) if k not in given]
    for at, k in sorted(zip(to, given, strict=True)):
        order.insert(at, k)
    return _transpose(a, order)


def reshaped(a: Any, shape: Any) -> Any:
    return np.reshape(a, shape)


def divided(a: Any, b: Any) -> Any:
    """a / b where that is an expression, else None."""
    if not isinstance(b, Size):
        if isinstance(a, Size) and b > 0 and all(c % b == 0 for c in a.terms.values()):
            return quotient(a, b)
        return a // b if not isinstance(a, Size) and b > 0 and a % b == 0 else None
    if not isinstance(a, Size) or len(b.terms) != 1:
        return 1 if a == b else None
    ((n, d),) = b.terms.items()
    terms: dict[Any, int] = {}
    for m, c in a.terms.items():
        left = list(m)
        for atom in n:
            if atom not in left:
                return None
            left.remove(atom)
        if c % d:
            return None
        terms[tuple(left)] = c // d
    found = Size(terms)
    return found.constant if set(terms) <= {()} else found


@rule(np.reshape)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", **more: Any) -> Any:
    if order != "C" or shape is None or more:
        raise NotImplementedError("np.reshape of placeholders: with a shape, in C order")
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    open_ = [k for k, n in enumerate(sizes) if not isinstance(n, Size) and n == -1]
    sides = Sides(f"reshape of {named(a)} to {shown(sizes)}")
    if len(open_) > 1:
        raise ValueError("can only specify one unknown dimension")
    if open_:
        rest = product(n for k, n in enumerate(sizes) if k != open_[0])
        found = divided(a.size, rest)
        if found is None and isinstance(rest, int):
            found = quotient(a.size, rest)
        if found is None:
            raise ValueError(f"{sides.why}: ({a.size}) / ({rest}) is no expression; give all sizes")
        sizes[open_[0]] = found
    sides.same(product(sizes), a.size)
    return formula(reshaped, (a, tuple(sizes)), sizes, a.dtype, sides)


@rule(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    return _reshape(a, (-1,), order)


@rule(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    many = axis if isinstance(axis, tuple) else (axis,)
    at = axes_of(many, a.ndim + len(many))
    rest = iter(a.shape)
    return _reshape(a, tuple(1 if k in at else next(rest) for k in range(a.ndim + len(many))))


@rule(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    if axis is None:
        at: tuple[int, ...] = tuple(k for k, n in enumerate(a.shape) if n == 1)
    else:
        at = axes_of(axis, a.ndim)
    sides = _of(np.squeeze, (a,))
    for k in at:
        sides.same(a.shape[k], 1)
    made = _reshape(a, tuple(n for k, n in enumerate(a.shape) if k not in at))
    made._equations += tuple(sides.made)
    return made


@rule(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any) -> Any:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sides = Sides(f"broadcast_to of {named(array)} to {shown(sizes)}")
    if len(sizes) < array.ndim:
        raise ValueError(f"{sides.why}: fewer dimensions")
    for n, m in zip(array.shape[::-1], sizes[::-1]):
        if isinstance(n, Size) or n != 1:
            sides.same(n, m)
    return formula(np.broadcast_to, (array, sizes), sizes, array.dtype, sides)


# -- joined ----------------------------------------------------------------------------------------


def joined(arrays: Any, axis: int) -> Any:
    return np.concatenate(arrays, axis=axis)


@rule(np.concatenate)
def _concatenate(arrays: Any, axis: int = 0) -> Any:
    parts = [operand(a) for a in arrays]
    ndim = len(parts[0].shape)
    at = axes_of((axis,), ndim)[0]
    sides = _of("concatenate", parts)
    if any(len(p.shape) != ndim for p in parts):
        raise ValueError(f"{sides.why}: all need {ndim} dimensions")
    shape = list(shape_of(parts[0]))
    for p in parts[1:]:
        for k, n in enumerate(shape_of(p)):
            shape[k] = shape[k] + n if k == at else sides.same(shape[k], n)
    return formula(joined, (parts, at), shape, np.result_type(*(p.dtype for p in parts)), sides)


@rule(np.stack)
def _stack(arrays: Any, axis: int = 0) -> Any:
    parts = [operand(a) for a in arrays]
    return _concatenate([np.expand_dims(a, axis) for a in parts], axis)


@rule(np.hstack)
def _hstack(tup: Any) -> Any:
    parts = [operand(a) for a in tup]
    return _concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


@rule(np.vstack)
def _vstack(tup: Any) -> Any:
    parts = [operand(a) for a in tup]
    return _concatenate([a if len(a.shape) > 1 else np.reshape(a, (1, *a.shape)) for a in parts], 0)


@rule(np.column_stack)
def _column_stack(tup: Any) -> Any:
    parts = [operand(a) for a in tup]
    return _concatenate([np.reshape(a, (-1, 1)) if len(a.shape) < 2 else a for a in parts], 1)


@rule(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    parts = [operand(arr), operand(values)]
    if axis is None:
        parts, axis = [np.reshape(a, (-1,)) for a in parts], 0
    return _concatenate(parts, axis)


def _block_leaves(x: Any) -> list[Any]:
    return [y for part in x for y in _block_leaves(part)] if type(x) is list else [operand(x)]


@rule(np.block)
def _block(arrays: Any) -> Any:
    def depth(x: Any) -> int:
        return 1 + max(map(depth, x), default=0) if type(x) is list else 0

    levels = depth(arrays)
    ndim = max(levels, *(np.ndim(shape_of(a)) and len(shape_of(a)) for a in _block_leaves(arrays)))

    def along(x: Any, axis: int) -> Any:
        if type(x) is list:
            return _concatenate([along(y, axis + 1) for y in x], axis)
        shape = shape_of(operand(x))
        return np.reshape(x, (1,) * (ndim - len(shape)) + tuple(shape)) if len(shape) < ndim else x

    return along(arrays, ndim - levels)


del _f, _dtype, _empty
