"""A formula that was built once, for other arrays: its LazyArrays one by one, without the sweeps
and checks that made them. Not for formulas that were made of the values of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import is_fixed
from .._lazy.leaves import lazy

__all__ = ["Recipe", "recorded", "replayed"]


class Recipe(NamedTuple):
    """What makes LazyArrays of those of arrays: nodes to build again, each with the places of its
    arguments among all that are made, the arrays first (-1: what does not depend on them), and
    which ones are the values, by place or themselves."""

    rows: tuple[tuple[Any, tuple[int, ...]], ...]
    values: tuple[Any, ...]


def _may_change(a: Any) -> bool:
    """Is it an array that others may write to, or an operator, which holds some?"""
    if a._head == "leaf":
        return not is_fixed(a._args[0])
    return bool(a._head == "operator")


def _holds_arrays(x: Any) -> bool:
    """Is there an array in an argument or in what a function is given, such as an index?"""
    if isinstance(x, dict):
        return any(map(_holds_arrays, x.values()))
    if isinstance(x, (tuple, list)):
        return isinstance(x, list) or any(map(_holds_arrays, x))
    return isinstance(x, np.ndarray)


def _dependent(roots: list[Any], leaves: list[Any]) -> list[Any]:
    """LazyArrays that depend on the leaves, or on arrays that may change, arguments first."""
    live: dict[int, bool] = {id(x): True for x in leaves}
    order: list[Any] = []
    stack = [(r, False) for r in roots]
    while stack:
        a, ready = stack.pop()
        if ready:
            on_others = any(live[id(x)] for x in a._args if is_lazy(x))
            if on_others or _holds_arrays(a._args) or _holds_arrays(a._more):
                live[id(a)] = True
                order.append(a)
        elif id(a) not in live:
            live[id(a)] = _may_change(a)
            if live[id(a)]:
                continue
            stack.append((a, True))
            stack += [(x, False) for x in a._args if is_lazy(x) and id(x) not in live]
    return order


def recorded(roots: list[Any], leaves: list[Any]) -> Recipe:
    """The recipe of what was built of leaves that were watched."""
    places = {id(x): k for k, x in enumerate(leaves)}
    rows = []
    for a in _dependent(roots, leaves):
        rows.append((a, tuple([places.get(id(x), -1) for x in a._args])))
        places[id(a)] = len(leaves) + len(rows) - 1
    return Recipe(tuple(rows), tuple(places.get(id(x), x) for x in roots))


def replayed(recipe: Recipe, arrays: Any) -> list[Any]:
    """The LazyArrays of other arrays, of the same shapes and dtypes."""
    made = _core._lazy_replay(recipe.rows, [lazy(a) for a in arrays])
    return [made[x] if type(x) is int else x for x in recipe.values]
