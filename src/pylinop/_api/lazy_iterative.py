"""Formulas with a solve whose dense form would pass the memory limit: ``inv(A) @ b`` is then solved
by iteration, to working accuracy, as by ``pl.solve``'s "auto", and the rest of the formula is
computed from its result."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.explanation import Explanation
from .._iterative import explain, scipy_api, solve
from .._lazy import text

_busy = threading.local()


def sides(a: Any) -> Any:
    """(A, b, is b on the left?) of ``inv(A) @ b`` or ``b @ inv(A)``; None for anything else."""
    if a._head != "matmul":
        return None
    x, y = a._args
    if x._head == "inverse":
        return x._args[0], y, False
    if y._head == "inverse" and x.ndim <= 2 and y.ndim == 2:
        return y._args[0], x, True
    return None


def _below(a: Any) -> list[Any]:
    """The solves below a and the nodes between, arguments before the nodes that use them."""
    holds: dict[int, bool] = {}
    stack, found = [(a, False)], []
    while stack:
        x, ready = stack.pop()
        if x._value is not None or id(x) in holds:
            continue
        args = [y for y in x._args if isinstance(y, _core.Lazy)]
        if not ready:
            stack.append((x, True))
            stack += [(y, False) for y in args]
            continue
        holds[id(x)] = sides(x) is not None or any(holds.get(id(y)) for y in args)
        if holds[id(x)] and x is not a:
            found.append(x)
    return found


def _system(a: Any, given: Any) -> Any:
    """(operator, right side) of a solve."""
    A, b, left = given
    op = scipy_api.operator_of(A)
    value = np.asarray(b)
    return (op.T, value.T) if left else (op, value)


def instead(a: Any, error: Any) -> Any:
    """The value of a where its plan has no memory; None where there is no solve in it."""
    busy = _busy.__dict__.setdefault("ids", set())
    if not isinstance(error, errors.MaterializationError) or id(a) in busy:
        return None
    given = sides(a)
    if given is not None:
        op, b = _system(a, given)
        x = solve.instead(op, b, error)
        return np.ascontiguousarray(x.T) if given[2] else x
    parts = _below(a)
    if not parts:
        return None
    busy.add(id(a))
    try:
        for x in parts:
            x._computed()
        a._form = None  # made of nodes that have values now
        return a._computed()
    finally:
        busy.discard(id(a))


def explained(a: Any, plan: Any) -> Any:
    """The explanation of a formula whose plan would pass the memory limit; otherwise its plan."""
    if plan is None:
        return plan
    given = sides(a)
    parts = [a] if given is not None else [x for x in _below(a) if sides(x) is not None]
    if not parts or not explain.passes(plan.memory):
        return plan
    made = []
    for x in parts:
        op, b = _system(x, sides(x))
        title = f"its solves first, since all as one would pass the limit: {text.formula(x)}\n"
        made.append((title, explain.explained(op, False, b)))
    return made[0][1] if given is not None else Explanation._joined(made)
