"""A formula that was built once, for other arrays: its LazyArrays one by one, without the sweeps
and checks that made them. Not for formulas that were made of the values of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _core
from .._base.checks import is_lazy
from .._lazy.leaves import lazy

__all__ = ["Recipe", "recorded", "replayed"]


class Place(NamedTuple):
    """The place of a LazyArray among those that were made, the arrays first."""

    at: int


class Recipe(NamedTuple):
    """What makes LazyArrays of those of arrays: (head, arguments, shape, dtype, more) of each, and
    which ones are the values. Parts that do not depend on the arrays are what they are."""

    rows: tuple[Any, ...]
    values: tuple[Any, ...]


def _dependent(roots: list[Any], leaves: list[Any]) -> list[Any]:
    """LazyArrays that depend on the leaves, arguments first."""
    live: dict[int, bool] = {id(x): True for x in leaves}
    order: list[Any] = []
    stack = [(r, False) for r in roots]
    while stack:
        a, ready = stack.pop()
        if ready:
            if any(live[id(x)] for x in a._args if is_lazy(x)):
                live[id(a)] = True
                order.append(a)
        elif id(a) not in live:
            live[id(a)] = False
            stack.append((a, True))
            stack += [(x, False) for x in a._args if is_lazy(x) and id(x) not in live]
    return order


def recorded(roots: list[Any], leaves: list[Any]) -> Recipe:
    """The recipe of what was built of leaves that were watched."""
    places = {id(x): Place(k) for k, x in enumerate(leaves)}
    rows = []
    for a in _dependent(roots, leaves):
        args = tuple(places.get(id(x), x) for x in a._args)
        rows.append((a._head, args, a.shape, a.dtype, a._more))
        places[id(a)] = Place(len(leaves) + len(rows) - 1)
    return Recipe(tuple(rows), tuple(places.get(id(x), x) for x in roots))


def replayed(recipe: Recipe, arrays: Any) -> list[Any]:
    """The LazyArrays of other arrays, of the same shapes and dtypes."""
    made: list[Any] = [lazy(a) for a in arrays]
    for head, args, shape, dtype, more in recipe.rows:
        known = tuple(made[x.at] if type(x) is Place else x for x in args)
        made.append(_core._LazyArray(head, known, shape, dtype, more))
    return [made[x.at] if type(x) is Place else x for x in recipe.values]
