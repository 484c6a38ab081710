"""The sweep back through the graph of an expression: its order, and what is added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._lazy.kinds import Kind
from . import matrices
from .folded import Numbers
from .held import is_apart
from .pieces import Through, ThroughGradient, one, real_of
from .rules import RULES, Formula, sources
from .shapes import elements_together, unbroadcast

_Order = list[tuple[Any, list[tuple[Any, Any]]]]


def _parts(x: Any, deep: bool) -> list[tuple[Any, Any]]:
    """(key, part) of what x is made of; `deep`: arrays and operators count."""
    if not isinstance(x, _core.Lazy):
        return [] if isinstance(x, np.ndarray) else matrices.parts(x)
    if x._head in ("leaf", "operator"):
        return [(0, x._args[0])] if deep else []
    kinds = (_core.Lazy, _core.Operator, np.ndarray) if deep else _core.Lazy
    return [(k, p) for k, p in sources(x) if isinstance(p, kinds) and _is_smooth(p)]


def _is_smooth(x: Any) -> bool:
    """Can x have a derivative? Integers and truth values cannot."""
    return x.dtype is None or x.dtype.kind in "fc"


def order_of(root: Any, wanted: dict[int, Any], ends: frozenset[int] = frozenset()) -> _Order:
    """What depends on what is wanted, arguments first, with those of its parts that do; what is
    behind `ends` does not count."""
    order: _Order = []
    live: dict[int, bool] = {}
    deep = any(not isinstance(x, _core.Lazy) for x in wanted.values())
    stack: list[Any] = [(root, None)]
    while stack:
        x, parts = stack.pop()
        at = id(x)
        if parts is not None:
            parts = [kp for kp in parts if live[id(kp[1])]]
            if parts or at in wanted:
                live[at] = True
                order.append((x, parts))
        elif at not in live:
            live[at] = False
            parts = [] if at in ends else _parts(x, deep)
            if is_lazy(x) and x._head == "call" and isinstance(x._more[0], Formula):
                _closed(x, wanted)
            stack.append((x, parts))
            stack += [(p, None) for _, p in parts if id(p) not in live]
    return order


def _closed(x: Any, wanted: dict[int, Any]) -> None:
    """Raises ValueError where a formula with a rule of its own reads what a gradient is wanted by
    past its arguments, which the rule alone is asked about."""
    given = frozenset(map(id, x._args[1:]))
    rest = {at: y for at, y in wanted.items() if at not in given}
    if rest and order_of(x._args[0], rest, given):
        name = x._more[0].__name__
        raise ValueError(
            f"{name}, of pl.custom_vjp, reads what the gradient is by beside its arguments, of "
            "which alone its rule gives cotangents: make it an argument, or read "
            "pl.stop_gradient of it" + errors.built(x)
        )


def _through(t: Through, part: Any, x: Any) -> Any:
    """The cotangent of a part of x through an expression; None where that has nothing of the part.
    One that has its arrays, and does not lead to it, is no way to a derivative."""
    ends, wanted = frozenset(map(id, t.ends)), {id(part): part}
    order = order_of(t.expression, wanted, ends)
    if order:
        return swept(order, t.expression, wanted, t.cotangent).get(id(part))
    if not is_apart(t.expression, part, ends - {id(part)}):
        raise NotImplementedError(
            f"a derivative of {_function(x)} is not known here: the expression that it is found "
            "through holds the arrays of its operand without leading to it" + errors.built(x)
        )
    return None


def _function(x: Any) -> str:
    """What is to be named of a node."""
    if isinstance(x, _core.Operator):
        return f"a {type(x).__name__}"
    made = x._more[0] if x._head in ("made", "call", "of form") else x._head
    return str(getattr(made, "__name__", made))


def _cotangent(x: Any, g: Any, key: Any, part: Any) -> Any:
    """The cotangent of one part; real where the part is."""
    if isinstance(x, _core.Operator):
        found = matrices.of_part(x, g, key, part)
    elif x._head in ("leaf", "operator"):
        found = g
    else:
        found = RULES[x._head](x, g, key)
        if isinstance(found, ThroughGradient):
            made = _through(found.first, found.of, x)
            found = made if made is None else Through(made, found.cotangent, found.first.ends)
    if isinstance(found, Through):
        found = _through(found, part, x)
    return None if found is None else _real_of_real(found, part)


def _real_of_real(found: Any, part: Any) -> Any:
    dtype = part.dtype
    if dtype is not None and dtype.kind != "c" and is_lazy(found) and found.dtype.kind == "c":
        return real_of(found)
    return found


def _assumed(g: Any, leaf: Any) -> Any:
    """Projects a gradient onto what is assumed of its matrix: Hermitian, triangular, diagonal."""
    word, made = leaf._more, _core
    if word in (None, "gen", "general") or leaf.ndim < 2:
        return g
    if word in ("sym", "symmetric"):
        return (g + g.T) / 2
    if word in ("her", "hermitian", "pos", "positive definite"):
        return (g + g.H) / 2
    if word in ("lower triangular", "upper triangular"):
        return made.Triangular(g, word.startswith("lower"))
    if word == "diagonal":
        return made.Diag(g.diagonal())
    if word == "tridiagonal":
        return made.Tridiagonal(*(g.diagonal(k) for k in (-1, 0, 1)))
    raise NotImplementedError(
        f"a matrix that is assumed {word!r} has no gradient yet" + errors.built(leaf)
    )


def sweep(
    value: Any, wanted: dict[int, Any], cotangent: Any, ends: frozenset[int] = frozenset()
) -> dict[int, Any]:
    """The cotangents of what is wanted, by its id; what the value does not lead to has none."""
    return swept(order_of(value, wanted, ends), value, wanted, cotangent)


def named(x: Any) -> str:
    said = "" if isinstance(x, np.ndarray) else errors.built(x)
    return f"the {type(x).__name__} of shape {tuple(x.shape)}{said}"


def sweep_of_derivative(value: Any, wanted: dict[int, Any], cotangent: Any) -> dict[int, Any]:
    """Likewise of an expression that a sweep has made: what it does not lead to it has nothing of,
    or that is an error."""
    order = order_of(value, wanted, frozenset())
    reached = {id(x) for x, _ in order}
    for at, x in wanted.items():
        if at not in reached and not is_apart(value, x, frozenset()):
            raise NotImplementedError(
                f"a derivative holds the arrays of {named(x)} in another form, which does not "
                "lead to it: there is no further derivative by it" + errors.built(value)
            )
    return swept(order, value, wanted, cotangent)


class _Lists:
    """Cotangents by the operands of one list, which are found together when the first of them is
    reached, which is the last: what they are made of is before it."""

    def __init__(self, order: _Order) -> None:
        self.first: dict[Any, int] = {}
        self.held: dict[Any, list[tuple[Any, Any]]] = {}
        for x, parts in order:
            if parts and (at := matrices.list_of(x)) is not None:
                self.first.setdefault(at, id(x))

    def with_others(self, x: Any, g: Any) -> list[tuple[Any, Any]]:
        """Each cotangent that is due with x, and its own: none while others of its list are to
        come."""
        at = matrices.list_of(x) if self.first else None
        due = [] if at is None else self.held.setdefault(at, [])
        if g is not None:
            due.append((x, g))
        return [] if at is not None and self.first.get(at) != id(x) else due


def _parted(
    parts: list[tuple[Any, Any]], due: list[tuple[Any, Any]], numbers: Numbers
) -> Iterator[tuple[Any, Any]]:
    """The parts of what is due, and the cotangent of each that has one now."""
    for key, part in parts if due else ():
        x, g = due[0]
        if len(due) == 1 and numbers.take(x, g, key, part):
            continue
        if len(due) == 1:
            more = _cotangent(x, g, key, part)
        else:
            more = _real_of_real(matrices.of_list(due), part) if key < 0 else None
        if more is not None:
            yield part, more


def swept(order: _Order, value: Any, wanted: dict[int, Any], cotangent: Any) -> dict[int, Any]:
    """Likewise, of what depends on it, in order."""
    found: dict[int, Any] = {}
    gathered: dict[int, list[Any]] = {id(value): [cotangent]}
    lists, numbers = _Lists(order), Numbers(order, wanted)
    for x, parts in reversed(order):
        g = _sum_of(gathered.pop(id(x), []), x)
        if (folded := numbers.due(x)) is not None:
            g = both(g, folded, x)
        if g is not None and is_lazy(x) and x._head == "leaf":
            g = _assumed(g, x)
        if g is not None and id(x) in wanted:
            found[id(x)] = g
        for part, more in _parted(parts, lists.with_others(x, g), numbers):
            if id(part) in wanted or not _takes_stacks(part):
                more = unbroadcast(more, part)
            gathered.setdefault(id(part), []).append(more)
    return found


_FEW = 8  # terms that are added one by one


def _sum_of(terms: list[Any], part: Any) -> Any:
    """The sum of the cotangents of one part; those of its elements along the first axis, of which
    there may be as many as that is long, side by side."""
    if len(terms) > _FEW:
        terms = elements_together(terms)
    total = None
    for g in terms:
        total = both(total, g, part)
    return total


def along(value: Any, wanted: dict[int, Any], vector: Callable[[Any], Any]) -> dict[int, Any]:
    """The gradient of <gradient, vectors> of a real number, by the ids of what is wanted; of each
    of those the vector is asked for."""
    slopes = sweep_of_derivative(value, wanted, one(value.dtype))
    total = None
    for x in wanted.values():
        g = slopes.get(id(x))
        if g is not None:
            term = np.sum(np.real(np.conjugate(g) * vector(x)))
            total = term if total is None else total + term
    if total is None:
        return {}
    return sweep_of_derivative(total, wanted, one(total.dtype))


def _takes_stacks(x: Any) -> bool:
    """May the cotangent of x have more batch dimensions than x? What it holds has their sum."""
    if isinstance(x, _core.Operator) or x._head in _LINEAR:
        return True
    return x._head == "made" and isinstance(x._more[0], Kind)


_LINEAR = frozenset(("operator", "add", "view", "scale", "over"))


def both(before: Any, more: Any, part: Any) -> Any:
    """The sum of two cotangents of one part."""
    if before is None:
        return more
    if before.shape != more.shape:
        before, more = unbroadcast(before, part), unbroadcast(more, part)
    return before + more
