"""u_i K_ij u_j of a tree, as correlations with standard deviations on both sides are written, and
products of vectors alone, u_i u_j."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from .patterns import unpacked
from .views import are_transposes, vector_of

__all__ = ["framed", "paired"]


def paired(given: list[Any]) -> tuple[Any, list[Any]] | None:
    """(u, the rest) where what is multiplied has columns and rows, and they are u and its
    transpose; None where it has none, or others."""
    if not all(x.ndim >= 2 and all(x.type.broadcastable[:-2]) for x in given):
        return None
    cores = [x if x.ndim == 2 else x.dimshuffle(x.ndim - 2, x.ndim - 1) for x in given]
    if any(all(x.type.broadcastable) for x in cores):
        return None
    columns = [x for x in cores if x.type.broadcastable == (False, True)]
    rows = [x for x in cores if x.type.broadcastable == (True, False)]
    if not columns or len(columns) != len(rows):
        return None
    if not _fit(columns, rows):
        return None
    column = pt.mul(*columns) if len(columns) > 1 else columns[0]
    rest = [x for x, core in zip(given, cores, strict=True) if not any(core.type.broadcastable)]
    return vector_of(column), rest


def _fit(columns: list[Any], rows: list[Any]) -> bool:
    """Is each of the columns one of the rows, in any order?"""
    left = list(rows)
    for x in columns:
        at = next((k for k, y in enumerate(left) if are_transposes(x, y)), None)
        if at is None:
            return False
        del left[at]
    return True


def _diagonal(u: Any, leaves: Any, i: int) -> Any:
    return ("diagonal", leaves.at(u * u * leaves.variables[i]))


def _off(u: Any, leaves: Any, k: str, i: int) -> Any:
    by = abs(int(k))
    return ("off", k, leaves.at(u[:-by] * leaves.variables[i] * u[by:]))


def _root(u: Any, leaves: Any, i: int) -> Any:
    return ("root", leaves.at(u[:, None] * leaves.variables[i]))


def _constant(u: Any, leaves: Any, i: int) -> Any:
    return ("weighted", leaves.at(u[:, None]), leaves.at(leaves.variables[i][None]))


def _by_factor(name: str) -> Callable[..., Any]:
    return lambda u, leaves, i, j: (name, leaves.at(u[:, None] * leaves.variables[i]), j)


def _sparse(u: Any, leaves: Any, pattern: str, i: int) -> Any:
    entries = unpacked(pattern).tocoo()
    rows, columns = (x.astype("int64") for x in entries.coords)
    return ("sparse", pattern, leaves.at(leaves.variables[i] * u[rows] * u[columns]))


def _scaled(u: Any, leaves: Any, i: int, tree: Any) -> Any:
    inner = framed(u, leaves, tree)
    return None if inner[0] == "framed" else ("scaled", i, inner)


def _sum(u: Any, leaves: Any, *terms: Any) -> Any:
    """Where one of them keeps its frame all of them are within one."""
    made = [framed(u, leaves, t) for t in terms]
    return None if any(t[0] == "framed" for t in made) else ("sum", *made)


_KINDS: dict[str, Callable[..., Any]] = {
    "identity": _diagonal,
    "diagonal": _diagonal,
    "off": _off,
    "constant": _constant,
    "root": _root,
    "weighted": _by_factor("weighted"),
    "congruence": _by_factor("congruence"),
    "sparse": _sparse,
    "scaled": _scaled,
    "sum": _sum,
}


def framed(u: Any, leaves: Any, tree: Any) -> Any:
    """The tree of u_i K_ij u_j."""
    row = _KINDS.get(tree[0])
    made = None if row is None else row(u, leaves, *tree[1:])
    return ("framed", leaves.at(u), tree) if made is None else made
