"""Upper bounds of an operator's norms by columns and by rows, from its structure alone.

    of(A) --> (|A|_1, |A|_inf), each at most some times too high, or None
    shifted(A) --> (m, (|A - m I|_1, |A - m I|_inf)): m the mean of the diagonals that A is a sum of

Sums add, products multiply; a low rank goes by the moduli of its sides. What steps of Taylor's
series are counted by: too high a bound makes more steps, never a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.kind_flags import DIAGONAL
from .._base.trampoline import run
from .._operators.convert import as_operator
from .._operators.parameters import written
from .._structured import norms, operands

Pair = tuple[float, float]
_THIN = 4  # rows a column of a low rank whose sides are read, at least
_OPERATORS = 64  # of a formula, that are looked at


def _moduli(array: Any) -> Any:
    """In floating point: the modulus of the least int8 is none of them."""
    return np.abs(np.asarray(array, np.result_type(array, np.float32)))


def _ends(array: Any) -> Pair:
    a = _moduli(array)
    return float(a.sum(axis=0).max(initial=0)), float(a.sum(axis=1).max(initial=0))


def _low_rank(U: Any, V: Any, C: Any) -> Pair | None:
    """Of U C V^H: the moduli times each other, which is at least the moduli of the product."""
    n, k = U.shape
    if _THIN * k > n:
        return None
    left = _moduli(as_operator(U).toarray())
    right = left if V is None else _moduli(as_operator(V).toarray())
    c = np.eye(k) if C is None else _moduli(as_operator(C).toarray())
    rows, columns = left @ (c @ right.sum(axis=0)), right @ (c.T @ left.sum(axis=0))
    return float(columns.max(initial=0)), float(rows.max(initial=0))


def _parts(op: Any) -> tuple[str, Any]:
    """How its parts are joined, and these."""
    if op._init is None:
        if op._by == "sum" or written(op, "prod"):
            return op._by, [as_operator(f) for f in op._operands]
        return "", ()
    how = {"kron": "prod", "kronsum": "sum", "blockdiag": "max"}.get(op._head, "")
    return how, operands.factors_of(op) if how else ()


def _power(found: Pair, k: int) -> Pair | None:
    with np.errstate(over="ignore"):
        columns, rows = np.float64(found[0]) ** k, np.float64(found[1]) ** k
    return (float(columns), float(rows)) if k >= 0 else None


_JOIN: dict[str, tuple[float, Callable[[float, float], float]]] = {
    "sum": (0.0, float.__add__), "prod": (1.0, float.__mul__), "max": (0.0, max),
}  # fmt: skip


def _steps(op: Any) -> Any:
    """A generator as `trampoline.run` takes them."""
    if op._opaque or op.ndim != 2:
        return None
    if op._init is None and op._by in ("scaled", "view"):
        found = yield (as_operator(op._operands[0]),)
        if found is None or op._by == "view":
            return found if found is None or not op._mode & 1 else found[::-1]
        c = abs(complex(op._operands[1]))
        return c * found[0], c * found[1]
    if op._init is None and op._by == "power":
        found = yield (as_operator(op._operands[0]),)
        return None if found is None else _power(found, int(op._operands[1]))
    how, parts = _parts(op)
    if not how:
        return (yield from _of_kind(op))
    columns = rows = _JOIN[how][0]
    for f in parts:
        found = yield (f,)
        if found is None:
            return None
        columns, rows = (_JOIN[how][1](a, b) for a, b in zip((columns, rows), found, strict=True))
    return columns, rows


def _of_kind(op: Any) -> Any:
    if op._head in DIAGONAL:
        top = float(_moduli(operands.diagonal_of(op)).max(initial=0))
        return top, top
    if op._init is None:
        return None
    if op._head == "lowrank":
        return _low_rank(*op._given("U", "V", "C"))
    if op._head == "lowrankupdate":
        base, U, V, C = op._given("base", "U", "V", "C")
        found, more = (yield (as_operator(base),)), _low_rank(U, V, C)
        return None if found is None or more is None else (found[0] + more[0], found[1] + more[1])
    if op._head == "dense":
        return _ends(op.toarray())
    if norms.sums.row_of(op) is None or op.dtype.kind not in "fc":
        return None
    return tuple(float(np.max(norms.sums(op, axis), initial=0)) for axis in (-2, -1))


def of(op: Any) -> Pair | None:
    """(|A|_1, |A|_inf) or more; None where its structure does not say."""
    found: Pair | None = run(_steps, op)
    return found


def _terms(op: Any) -> tuple[Any, list[tuple[Any, Any]]] | None:
    """(d, [(B, c), ...]): A = diag(d) + sum of c B; None of very many."""
    d, others = np.zeros(op.shape[-1], op.dtype), list[tuple[Any, Any]]()
    stack = [(op, op.dtype.type(1))]
    for _ in range(_OPERATORS):
        if not stack:
            return d, others
        f, c = stack.pop()
        if f._head in DIAGONAL:
            d = d + c * operands.diagonal_of(f)
        elif f._by == "scaled" and f._init is None:
            stack.append((as_operator(f._operands[0]), c * f._operands[1]))
        elif f._by == "sum" and f._init is None:
            stack += [(as_operator(g), c) for g in f._operands]
        elif f._head == "lowrankupdate" and f._init is not None:
            stack.append((as_operator(f._given("base")), c))
            others.append((f, c))
        else:
            others.append((f, c))
    return None


def shifted(op: Any) -> tuple[Any, Pair] | None:
    """(m, (|A - m I|_1, |A - m I|_inf)); None where its structure does not say."""
    found = _terms(op)
    if found is None:
        return None
    d, others = found
    mid = d.sum() / max(len(d), 1)
    columns = rows = float(np.abs(d - mid).max(initial=0))
    for f, c in others:
        whole = f._head == "lowrankupdate" and f._init is not None
        one = _low_rank(*f._given("U", "V", "C")) if whole else of(f)
        if one is None:
            return None
        columns, rows = columns + abs(c) * one[0], rows + abs(c) * one[1]
    return mid, (float(columns), float(rows))
