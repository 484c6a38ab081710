"""Contractions that are computed together and share a part: the part is computed once.

Each contraction is a tree of pairs, in its own cheapest order. A subtree of one that another has
too (the same arrays, with the same labels up to their names, of which the same ones stay) is a
contraction by itself, and stands in its place in both. The orders are not changed for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import errors
from .._contractions import equations, show
from .._contractions.equations import Task
from .._contractions.grammar import Equation
from .._contractions.recorded import Deferred

_Terms = tuple[tuple[str, ...], ...]
_MOST = 32  # operands


class _Network(NamedTuple):
    """A contraction of LazyArrays, and which of them stand together in its order: sets of places,
    the largest first."""

    node: Any
    args: tuple[Any, ...]
    terms: _Terms
    result: tuple[str, ...]
    parts: tuple[frozenset[int], ...]


def _contractions(roots: Sequence[Any]) -> list[Any]:
    """Nodes without a value that are contractions of three operands and more."""
    stack, seen, found = list(roots), set(), []
    while stack:
        a = stack.pop()
        if id(a) in seen or a._value is not None:
            continue
        seen.add(id(a))
        if a._head == "call" and type(a._more[0]) is Deferred and 2 < len(a._args) <= _MOST:
            found.append(a)
        stack += [x for x in a._args if isinstance(x, _core.Lazy)]
    return found


def _parts(path: Sequence[Any], n: int) -> tuple[frozenset[int], ...]:
    live = [frozenset((k,)) for k in range(n)]
    made = []
    for pair in path:
        if len(pair) != 2:
            return ()
        i, j = sorted(pair)
        made.append(live[i] | live[j])
        live = [x for k, x in enumerate(live) if k not in (i, j)] + [made[-1]]
    return tuple(sorted(made[:-1], key=len, reverse=True))


def _network(node: Any) -> _Network | None:
    """None: its parts are nothing to share. Its labels are plain ones, its arrays of one dtype."""
    task = node._more[0].task
    args = tuple(node._args)
    if task.outside is not None or task.sizes or task.dtype is not None:
        return None
    if node.dtype.char not in "fdFD" or any(x.dtype != node.dtype for x in args):
        return None
    shapes = tuple(tuple(x.shape) for x in args)
    s = equations.resolved(task.equation, shapes, ())
    if not all(isinstance(x, str) for t in (*s.operands, s.result) for x in t):
        return None
    if any(n != s.sizes[str(x)] for t, d in zip(s.operands, shapes) for x, n in zip(t, d)):
        return None  # sizes of 1 that broadcast
    hollow = [np.broadcast_to(np.ones((), x.dtype), x.shape) for x in args]
    try:
        path = show.path(task, hollow)[0][1:]
    except errors.MaterializationError:
        return None
    terms = tuple(tuple(str(x) for x in t) for t in s.operands)
    return _Network(node, args, terms, tuple(map(str, s.result)), _parts(path, len(args)))


def _same(a: Any) -> int:
    """Alike for LazyArrays of one array."""
    return id(a._args[0]) if a._head == "leaf" else id(a)


def _signed(net: _Network, part: frozenset[int]) -> tuple[Any, list[int], dict[str, str]]:
    """What a part is but for the names of its labels; its places in that order; the names."""
    places = sorted(part, key=lambda k: (_same(net.args[k]), k))
    names: dict[str, str] = {}
    terms = tuple(
        tuple(names.setdefault(x, f"x{len(names)}") for x in net.terms[k]) for k in places
    )
    outside = {x for k, t in enumerate(net.terms) if k not in part for x in t} | {*net.result}
    kept = tuple(names[x] for x in names if x in outside)
    return (tuple(_same(net.args[k]) for k in places), terms, kept), places, names


def _shared(nets: Sequence[_Network]) -> Iterator[tuple[Any, list[tuple[_Network, Any]]]]:
    """Parts that several have, largest first, and who has them."""
    found: dict[Any, list[tuple[_Network, Any]]] = {}
    for net in nets:
        for part in net.parts:
            found.setdefault(_signed(net, part)[0], []).append((net, part))
    of_many = [(k, v) for k, v in found.items() if len({id(net.node) for net, _ in v}) > 1]
    yield from sorted(of_many, key=lambda x: -len(x[0][0]))


def _call(args: Sequence[Any], terms: _Terms, result: tuple[str, ...], dtype: Any) -> Any:
    text = f"{', '.join(' '.join(t) or '1' for t in terms)} -> {' '.join(result)}"
    task = Task(Equation(terms, result, False, text))
    sizes = {x: n for t, a in zip(terms, args) for x, n in zip(t, a.shape)}
    shape = tuple(sizes[x] for x in result)
    return _core._LazyArray("call", tuple(args), shape, dtype, (Deferred(task), {}))


def compute(roots: Sequence[Any]) -> None:
    """Computes contractions below the roots that share parts, each part once."""
    nodes = _contractions(roots)
    if len(nodes) < 2:
        return
    nets = [net for net in map(_network, nodes) if net is not None]
    taken: dict[int, list[tuple[frozenset[int], Any, tuple[str, ...]]]] = {}
    for key, who in _shared(nets):
        free = [
            (net, part)
            for net, part in who
            if not any(part & p for p, _, _ in taken.get(id(net.node), ()))
        ]
        if len({id(net.node) for net, _ in free}) < 2:
            continue
        first, part = free[0]
        _, terms, kept = key
        places = _signed(first, part)[1]
        made = _call([first.args[k] for k in places], terms, kept, first.node.dtype)
        for net, part in free:
            back = {new: old for old, new in _signed(net, part)[2].items()}
            labels = tuple(back[x] for x in kept)
            taken.setdefault(id(net.node), []).append((part, made, labels))
    whole, again = [], []
    for net in nets:
        if id(net.node) not in taken:
            continue
        parts = taken[id(net.node)]
        gone = frozenset[int]().union(*(p for p, _, _ in parts))
        left = [k for k in range(len(net.args)) if k not in gone]
        args = [*(made for _, made, _ in parts), *(net.args[k] for k in left)]
        terms = (*(labels for _, _, labels in parts), *(net.terms[k] for k in left))
        whole.append(net.node)
        again.append(_call(args, terms, net.result, net.node.dtype))
    if again:
        _core._lazy_run(list({id(m): m for p in taken.values() for _, m, _ in p}.values()), None)
        _core._lazy_run(again, None)
        for node, a in zip(whole, again):
            node._value = a._computed()
