"""Contractions with LazyArrays and operators in them: what is products, transposes, scalings,
traces, diagonals, outer and Kronecker products of matrices is written as these, so that their
structure counts, and the formula around them; all else is one node."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import is_lazy, is_symbolic
from .._contractions import equations, grammar
from .._contractions.equations import Task
from .._contractions.grammar import Equation, Group
from .._contractions.recorded import Deferred
from .._operators import einsum
from .contraction_operators import applied, as_dtype, dtype_among
from .leaves import lazy


def _labels(axis: Any) -> tuple[str, ...]:
    return axis.labels if isinstance(axis, Group) else (axis,)


@functools.lru_cache(maxsize=1024)
def _steps(
    e: Equation, shapes: tuple[tuple[int, ...], ...], stacks: bool
) -> tuple[einsum.Step, ...] | None:
    """How the equation is linear algebra, for operands of these shapes; None: it is not."""
    s = equations.resolved(e, shapes, ())
    if not all(isinstance(x, str) for t in s.operands for x in t):
        return None
    if not all(isinstance(x, (str, Group)) for x in s.result):
        return None
    terms = tuple(tuple(str(x) for x in t) for t in s.operands)
    fits = [
        n == s.sizes[x] for t, shape in zip(terms, shapes) for x, n in zip(t, shape, strict=True)
    ]
    if all(fits):
        found = einsum.steps(terms, tuple(map(_labels, s.result)))
        if found is not None:
            return found
    if not stacks or any(isinstance(x, Group) for x in s.result):
        return None
    result = tuple(str(x) for x in s.result)
    for t, shape in zip(terms, shapes):
        if any(n != s.sizes[x] for x, n in zip(t[-2:], shape[-2:])):
            return None  # a size of 1 is for stacks alone
    return einsum.steps_of_stacks(terms, result)


def structured(task: Task, operands: Sequence[Any]) -> Any:
    """By products, traces, ... of matrices; NotImplemented where the equation is none of these."""
    if task.path is not None or task.outside is not None or task.sizes or task.dtype is not None:
        return NotImplemented
    lazily = all(is_lazy(x) for x in operands)
    dtype = dtype_among(operands)
    shapes = tuple([x.shape if is_lazy(x) else tuple(np.shape(x)) for x in operands])
    if lazily and any(0 in shape for shape in shapes):
        return NotImplemented  # a sum of nothing is 0, where 0 times a factor may be NaN
    found = _steps(task.equation, shapes, lazily and dtype.char in "fdFD")
    if found is None:
        return NotImplemented
    if lazily or dtype.char in "fdFD":
        operands = [as_dtype(x, dtype) for x in operands]
    made = einsum.values(found, operands) if lazily else einsum.run(found, operands)
    if made is NotImplemented:
        return made
    return made if made.dtype == dtype else made.astype(dtype)  # NumPy's sums widen integers


@functools.lru_cache(maxsize=1024)
def _of_text(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[einsum.Step, ...] | None:
    """How it is linear algebra for LazyArrays of one floating-point dtype; None where it is not, or
    something is to be said about it."""
    try:
        e, _ = grammar.read(text, None)
        return None if any(0 in shape for shape in shapes) else _steps(e, shapes, True)
    except (TypeError, ValueError, NotImplementedError):
        return None


def by_text(args: Sequence[Any]) -> Any:
    """Of a text that was met before with LazyArrays like these, alone; else NotImplemented."""
    text, *operands = args
    kind, dtype = type(operands[0]), operands[0].dtype
    if not issubclass(kind, _core.Lazy) or is_symbolic(operands[0]) or dtype.char not in "fdFD":
        return NotImplemented
    if not all(type(x) is kind and x.dtype is dtype for x in operands) or not dtype.isnative:
        return NotImplemented
    found = _of_text(text, tuple([x.shape for x in operands]))
    made = NotImplemented if found is None else einsum.values(found, operands)
    return made if made is NotImplemented or made.dtype == dtype else NotImplemented


def contraction(task: Task, operands: Sequence[Any]) -> Any:
    """The result as a LazyArray."""
    operands = [
        x if is_lazy(x) else lazy(x if isinstance(x, _core.Operator) else dlpack.as_array(x))
        for x in operands
    ]
    made = structured(task, operands)
    if made is not NotImplemented:
        return made
    operators = [x._args[0] if x._head == "operator" else x for x in operands]
    task, left = applied(task, operators)
    operands = [x if is_lazy(x) else lazy(x) for x in left]
    shape = equations.shape_of(task, [tuple(x.shape) for x in operands])
    dtype = equations.dtype_of(task, operands)
    return _core._LazyArray("call", tuple(operands), shape, dtype, (Deferred(task), {}))
