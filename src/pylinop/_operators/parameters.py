"""The parameters of a kind, also where an operation closed to it.

What a constructor was given is asked for by name: ``op._given("l_and_u", "ab")``. ``_init`` holds
all of it, for what treats all parameters alike (pickling, casts, `arrays_of`). A result that closed
to a kind (a slice of a Kron, a product of two) has no parameters, and its ``_init`` is None: its
``_operands`` are what was written, as SciPy's ``args``. Code
that needs the kind's list of factors asks here."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import _core
from .._base import kind_flags
from .._base.trampoline import run
from .convert import as_operator, inverse
from .indexing import sliced

_LISTS = kind_flags.heads("joins")


def written(op: Any, *operations: str) -> bool:
    """Is ``op`` one of these operations as written, and not a kind that a different operation
    closed to? If it is, ``_operands`` are the operands of that operation. (The inverse of a
    Hadamard is a multiple too, but not of one of its operands.)"""
    return op._by in operations and op._head == op._by


def declared(op: Any) -> Any:
    """A Dense that is assumed diagonal or tridiagonal as that kind, of views of its array, as plans
    read it, and an exponential that is not made yet as what it is; all others as they are."""
    if op._head != "dense" or op._init is None:
        whole = getattr(type(op), "_whole", None) if op._opaque else None
        return op if whole is None else whole(op)
    a, word = op._given("a", "assume_a")
    if word not in ("diagonal", "tridiagonal"):
        return op
    below, middle, above = (np.diagonal(np.asarray(a), k, -2, -1) for k in (-1, 0, 1))
    return _core.Diag(middle) if word == "diagonal" else _core.Tridiagonal(below, middle, above)


def factors(op: Any) -> list[Any]:
    """The factors of a Kron or KronSum, or the blocks of a BlockDiag, whatever operation closed to
    it, as operators, each in its own precision."""
    if op._init is not None:
        return [f if type(f) is _core.Dense else as_operator(f) for f in op._init]
    return list(run(_factor_steps, op))


def _factor_steps(op: Any) -> Any:
    if op._init is not None:
        return [as_operator(f) for f in op._init]
    if op._head not in _LISTS or op._by not in _CLOSED:
        raise NotImplementedError(f"the factors of a {op._head} by {op._by or 'nothing'}")
    if op._by in ("sum", "prod") and op._head == "blockdiag":
        a, b = op._operands[:2]
        first = (yield (a,)) if a._head == "blockdiag" else []
        second = (yield (b,)) if b._head == "blockdiag" else _cut(b, [f.shape[-1] for f in first])
        first = first or _cut(a, [f.shape[-2] for f in second])
        join = operator.add if op._by == "sum" else operator.matmul
        return [join(f, g) for f, g in zip(first, second, strict=True)]
    first = yield (op._operands[0],)
    if op._by in ("sum", "prod"):
        second = yield (op._operands[1],)
        join = operator.add if op._by == "sum" else operator.matmul
        return [join(f, g) for f, g in zip(first, second, strict=True)]
    return _CLOSED[op._by](op, first)


def _cut(op: Any, sizes: list[int]) -> list[Any]:
    """A multiple of the identity, or I (x) G, as what it gives to blocks of these sizes."""
    if op._head == "kron":
        g = factors(op)[1]
        return [_core.Kron(_core.Identity(n // g.shape[0]), g) for n in sizes]
    if op._head == "scaled":
        return [op._operands[1] * f for f in _cut(op._operands[0], sizes)]
    return [_core.Identity(n, None if op._weak else op.dtype) for n in sizes]


def _sliced(op: Any, parts: list[Any]) -> list[Any]:
    """The factors of a slice that is a Kron again, by the core's own steps, one after the other."""
    batch = list(op._operands[0].shape[:-2])
    for step in op._operands[1]:
        parts = _of_batch(step, batch, parts) if step[0] > 1 else _of_lines(step, parts)
    return parts


def _of_lines(step: Any, parts: list[Any]) -> list[Any]:
    """Takes lines: whole blocks from the first factor, lines within one block from the others."""
    axis, start, by, count = step
    first, rest = parts[0], parts[1:]
    joined = rest if len(rest) < 2 else [_core.Kron(*rest)]  # as the core leaves them
    each = 1
    for f in rest:
        each *= f.shape[-2 + axis]
    if by == 1 and start % each == 0 and count % each == 0:
        return [_line(first, axis, start // each, 1, count // each), *joined]
    inner = [_line(f, axis, start % each, by, count) for f in joined]
    return [_line(first, axis, start // each, 1, 1), *inner]


def _line(f: Any, axis: int, start: int, by: int, count: int) -> Any:
    whole = (start, by, count) == (0, 1, f.shape[-2 + axis])
    return f if whole else sliced(f, [(axis, start, by, count)])


def _of_batch(step: Any, batch: list[int], parts: list[Any]) -> list[Any]:
    """Takes elements of a batch. Batches broadcast: a factor that has the axis is indexed along
    it."""
    at = step[0] - 1  # from the right
    drops = len(step) == 4 and step[3] < 0
    one = batch[-at] == 1
    found = []
    for f in parts:
        mine = f.shape[:-2]
        if len(mine) < at:
            found.append(f)
        elif mine[-at] == 1 and not one:
            found.append(sliced(f, [(step[0], 0, 1, -1 if drops else 1)]))
        else:
            found.append(sliced(f, [step]))
    if drops:
        del batch[-at]
    else:
        batch[-at] = len(step[1]) if len(step) == 2 else step[3]
    return found


def _view(f: Any, mode: int) -> Any:
    return _core._build("view", f, None, mode)


_CLOSED: dict[str, Any] = {
    "sum": None,
    "prod": None,
    "view": lambda op, parts: [_view(f, op._mode) for f in parts],
    "inverse": lambda op, parts: [inverse(f) for f in parts],
    "scaled": lambda op, parts: [op._operands[1] * f for f in parts],
    "sliced": _sliced,
}
