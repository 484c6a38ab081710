"""Sums of products over named axes: `einsum`, `einsum_path`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _core
from .._base import config, dlpack, errors
from .._base.checks import is_lazy, is_symbolic
from .._contractions import equations, recorded, show, weighted
from .._contractions.grammar import parse
from .._lazy import contractions as lazily
from .._lazy.contraction_operators import applied

__all__ = ["einsum", "einsum_path"]

# Equations of letters alone, for calls that ask for nothing else; of all others, those of each
# outside=, sizes= and shapes.
_known: dict[str, Any] = {}
_MOST, _MOST_SHAPES, _MOST_KEPT = 1024, 64, 8192  # of 2 kB each
_kept = [0]


def _learn(text: str) -> None:
    """So that the next call with this text goes to C at once."""
    if "*" in text:
        return  # coefficients may come from sizes=
    e = parse(text)
    if e.fixed:
        return
    axes = (*e.operands, *([e.result] if e.result is not None else []))
    if e.result is None or not all(isinstance(x, str) for t in axes for x in t):
        return
    if len(_known) >= _MOST:
        _known.clear()
    number = equations.numbered(e.operands)  # type: ignore[arg-type]
    if set(e.result) <= set(number) and len(set(e.result)) == len(e.result):
        equation = _core._Equation(
            tuple(tuple(number[x] for x in t) for t in e.operands),  # type: ignore[index]
            tuple(number[x] for x in e.result),  # type: ignore[index]
            None,
            True,
        )
        gram = weighted.places(e.operands, e.result)
        _known[text] = equation if gram is None else (equation, 1 + gram.one)


def _key(args: Any, sizes: Any, outside: Any) -> Any:
    """What the views of a call depend on beside its text, or None."""
    given = None if sizes is None else (*sizes.items(), *map(type, sizes.values()))
    return (outside, given, *[a.shape for a in args[1:]])


def _learn_shapes(args: Any, sizes: Any, outside: Any, task: equations.Task, arrays: Any) -> None:
    """So that the next call with this text, sizes and shapes goes to C at once."""
    if task.path is not None or task.dtype is not None:
        return
    shapes = tuple(a.shape for a in arrays)
    if shapes != tuple(getattr(a, "shape", None) for a in args[1:]):
        return  # axes are repeated
    found = equations.direct(task.equation, shapes, task.sizes, outside, None)
    if found is None:
        return
    if len(_known) >= _MOST or _kept[0] >= _MOST_KEPT:
        _known.clear()
        _kept[0] = 0
    of_shapes = _known.setdefault(args[0], {})
    if type(of_shapes) is dict and all(hasattr(a, "shape") for a in args[1:]):
        if len(of_shapes) >= _MOST_SHAPES:
            of_shapes.clear()
        with contextlib.suppress(TypeError):  # sizes that have no hash: arrays without axes
            of_shapes[_key(args, sizes, outside)] = found
            _kept[0] += 1


def _again(of_shapes: dict[Any, Any], args: Any, sizes: Any, outside: Any, out: Any) -> Any:
    """By a plan of these shapes, or NotImplemented."""
    try:
        found = of_shapes.get(_key(args, sizes, outside))
    except (AttributeError, TypeError):  # lists as operands, sizes that are no mapping
        return NotImplemented
    return NotImplemented if found is None else found(args[1:], out)


def einsum(
    *args: Any,
    sizes: Mapping[str, int] | None = None,
    outside: Any = None,
    out: Any = None,
    dtype: Any = None,
    casting: str = "safe",
    optimize: Any = True,
    order: str = "K",
) -> Any:
    """Sums of products over named axes: Einstein's convention, as `numpy.einsum`, and more.

    Parameters
    ----------
    *args : str and array_like, LazyArrays or operators
        The equation, then its operands: ``einsum("bij,bjk->bik", A, B)``. An axis is a letter, or
        a name between blanks: ``"b q head d, b k head d -> b head q k"``. What two operands share
        and the result has not is summed; a label twice in one operand is its diagonal; a size of
        1 broadcasts; ``...`` stands for all further axes. ``(h w)`` is one axis that is two, row
        by row. ``(2*o + w - 1)`` is an axis read at that index: windows, strides, dilations and
        flips (``x - w``), as views, without a copy. Or NumPy's lists:
        ``einsum(A, [0, 1], B, [1, 2], [0, 2])``.
    sizes : mapping of str to int, optional
        Sizes of labels that no operand says: parts of a group, outputs of an index equation, which
        go as far as the axis else.
    outside : None, 0 or "wrap", optional
        What an index equation reads beyond its axis: an error (None), zeros, or the axis from its
        other end. The array is then copied once, with that around it.
    out : ndarray, optional
        Where the result goes; it is computed now. It may overlap the operands.
    dtype, casting : dtype, str, optional
        The dtype to compute in, and which casts of operands to it are taken; numpy.einsum's.
    optimize : optional
        A path of `numpy.einsum_path` or opt_einsum is taken. All else (True, False, "greedy", ...)
        means the planner's order, which is exact up to 10 operands.
    order : "K", "C", "F" or "A", optional
        How the result lies in memory: as it comes, in C's or Fortran's order, in Fortran's where
        all operands do. With one that is named the result is an array, computed now.

    Returns
    -------
    ndarray, LazyArray or LinearOperator
        A LazyArray, nothing computed, if an operand is one. Products, transposes, traces and
        diagonals of operators keep their structure. Otherwise an array, computed now; a number if
        it has no axes. Its axes lie in memory as the product of matrices leaves them where C order
        would cost a copy.

    Raises
    ------
    ValueError
        An equation that cannot be read, sizes that do not fit (with the axis, the operands and both
        sizes), an index beyond its axis (with its range).
    TypeError
        A cast that `casting` does not allow.
    NotImplementedError
        More than 256 labels (52 where NumPy's loops compute).
    MaterializationError
        Temporaries beyond ``pl.config(memory_limit=...)``, also one index of each axis at a time:
        what passes the limit is computed in halves along an axis of the result, or of a sum.

    Cost
    ----
    Pairs go as loops around products of matrices (BLAS) on the arrays as they lie; an array is
    copied into another order where that is cheaper by price, and what no product of matrices
    covers is a nest of loops. The plan is found again for the same equation, dtypes, shapes and
    strides (half a microsecond). `einsum_path` shows it. Integers, booleans and other dtypes go by
    numpy.einsum's loops, as written.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> q, k = np.ones((2, 5, 3, 4)), np.ones((2, 6, 3, 4))
    >>> pl.einsum("b q head d, b k head d -> b head q k", q, k).shape
    (2, 3, 5, 6)

    A convolution with stride 2, without a copy of windows:

    >>> x, w = np.arange(8.0), np.array([1.0, -1.0])
    >>> pl.einsum("(2*o + w), w -> o", x, w)
    array([-1., -1., -1., -1.])
    >>> pl.einsum("(o + w), w -> o", x, w, outside="wrap", sizes={"o": 8})
    array([-1., -1., -1., -1., -1., -1., -1.,  7.])
    """
    if order != "K":
        how = {"sizes": sizes, "outside": outside, "out": out, "dtype": dtype}
        return _in_order(order, args, {**how, "casting": casting, "optimize": optimize})
    if args and type(args[0]) is str and config.record() is None:
        equation = _known.get(args[0])
        if type(equation) is dict:
            made = NotImplemented
            if dtype is None and type(optimize) is bool:
                made = _again(equation, args, sizes, outside, out)
            if made is not NotImplemented:
                return made
            equation = None
        if type(equation) is tuple:  # a weighted Gram matrix: by another road where it is large
            equation, at = equation
            if len(args) <= at or np.size(args[at]) >= weighted.LEAST:
                equation = None
        if (
            equation is not None
            and sizes is None
            and dtype is None
            and outside is None
            and type(optimize) is bool
        ):
            try:
                made = equation(*args[1:], out=out)
            except (ValueError, errors.MaterializationError):
                made = NotImplemented  # said below with the names of the axes, or done in parts
            if made is not NotImplemented:
                return made
    return _general(args, sizes, outside, out, dtype, casting, optimize)


def _in_order(order: Any, args: Any, how: Any) -> Any:
    """The result as an array in the order that is asked for."""
    if not isinstance(order, str) or order.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be 'K', 'C', 'F' or 'A', not {order!r}")
    order = order.upper()
    if order == "K":
        return einsum(*args, **how)
    if any(is_symbolic(a) for a in args):
        raise TypeError("einsum: a formula of placeholders has no order in memory")
    made = einsum(*args, **how)
    if how["out"] is not None or np.ndim(made) == 0:
        return made
    if order == "A":
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        order = "F" if arrays and all(a.flags.f_contiguous for a in arrays) else "C"
    return np.asarray(made, order="F" if order == "F" else "C")


def _stand_in(a: Any) -> Any:
    """What is planned for: no value is computed of what has none yet."""
    if is_symbolic(a):
        if all(isinstance(n, int) for n in a.shape):
            return np.zeros(a.shape, a.dtype)
    elif is_lazy(a) and a._head != "leaf":
        return np.zeros(a.shape, a.dtype)
    return dlpack.as_array(a)


def _general(
    args: Any, sizes: Any, outside: Any, out: Any, dtype: Any, casting: str, optimize: Any
) -> Any:
    for a in args:
        if is_symbolic(a):
            how = {"outside": outside, "dtype": dtype, "casting": casting, "optimize": optimize}
            return a._of(einsum, args, {"sizes": sizes, "out": out, **how}, None)
    task, operands = equations.task_of(args, sizes, outside, dtype, casting, optimize)
    if any(is_lazy(a) for a in operands) and out is None:
        return lazily.contraction(task, operands)
    if out is not None and (not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray)):
        raise TypeError(f"out must be an ndarray, not {type(out).__name__}")
    operators = any(isinstance(a, _core.Operator) for a in operands)
    if operators:
        found = lazily.structured(task, operands)
        if found is not NotImplemented and out is None:
            return found
        task, operands = applied(task, operands)
    arrays = [dlpack.as_array(a) for a in operands]
    made = recorded.run(task, arrays, out)
    if isinstance(args[0], str):
        if args[0] not in _known:
            _learn(args[0])  # what can be run: an equation of too many labels cannot be kept
        if not operators and type(_known.get(args[0], {})) is dict:
            _learn_shapes(args, sizes, outside, task, arrays)
    return made


def einsum_path(
    *args: Any,
    sizes: Mapping[str, int] | None = None,
    outside: Any = None,
    dtype: Any = None,
    optimize: Any = True,
) -> tuple[list[Any], str]:
    """How `einsum` would compute it: the path, and the plan as text; nothing is computed.

    Parameters
    ----------
    *args, sizes, outside, dtype, optimize
        As of `einsum`. Of placeholders of known sizes and of LazyArrays the shapes count.

    Returns
    -------
    path : list
        ``["einsum_path", (0, 1), ...]``, as numpy.einsum_path gives it and ``optimize=`` takes it.
    text : str
        Each step: a product of matrices and its sizes (``gemm m1152 n32 k75``), how often it is
        called, which arrays are copied, nests of loops; flops, bytes of temporaries, the price.

    Raises
    ------
    ValueError
        As of `einsum`.

    Cost
    ----
    That of the plan: microseconds for a few operands, milliseconds for ten.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A, x = np.ones((100, 100)), np.ones(100)
    >>> path, text = pl.einsum_path("ij,jk,k->i", A, A, x)
    >>> path
    ['einsum_path', (1, 2), (0, 1)]
    """
    task, operands = equations.task_of(args, sizes, outside, dtype, "unsafe", optimize)
    return show.path(task, [_stand_in(a) for a in operands])
