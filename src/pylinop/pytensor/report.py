"""What became of each matrix of a graph, for reading: its structure, what is asked of it, the flops
of that and of a dense factor, and what dense work is left."""

from __future__ import annotations

import html
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .._lazy.leaves import lazy
from .._lazy.program import planned
from ._compat import (
    OTHERS,
    Cholesky,
    CholeskySolve,
    Det,
    Solve,
    SolveTriangular,
    toposorted,
)
from .program import offset_of, operator_of, program
from .views import op_of

__all__ = ["Explanation", "Report", "census", "named", "priced", "shown"]

DENSE = (Cholesky, CholeskySolve, Solve, SolveTriangular, Det, *OTHERS)


class Report(NamedTuple):
    """What became of one matrix."""

    matrix: str
    structure: str  # "" where it was refused
    asked: tuple[str, ...]
    reason: str  # "" where it fired
    road: str = ""  # in a compiled function: how it ran when it was last called
    before: float | None = None  # flops of a dense factor and solves by it; None: a size is unknown
    after: float | None = None  # of the plans
    plans: tuple[Any, ...] = ()  # pylinop's own explanations, in most cases one for all


class Explanation(list[Report]):
    """What became of each matrix; its text is for reading, in a notebook it is a table. `left`
    counts what dense factors, solves, determinants and decompositions are in the graph still."""

    left: Counter[str]

    def __init__(self, reports: Any = (), left: Counter[str] | None = None) -> None:
        super().__init__(reports)
        self.left = Counter() if left is None else left

    def _lines(self) -> list[str]:
        lines = []
        for r in self:
            if r.reason:
                lines.append(f"{r.matrix}: left as it is: {r.reason}")
                continue
            line = f"{r.matrix}: {r.structure} -> {', '.join(r.asked)}, by pylinop"
            line += f", {_flops(r)}" if r.after is not None else ""
            lines.append(f"{line}, {r.road}" if r.road else line)
        return lines

    def _census(self) -> str:
        return "left dense: " + ", ".join(f"{n} {what}" for what, n in sorted(self.left.items()))

    def __str__(self) -> str:
        if not self:
            return "no solve, determinant or factor of a matrix was met"
        return "\n".join([*self._lines(), *([self._census()] if self.left else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self:
            return f"<div>{self}</div>"
        heads = ("matrix", "structure", "asked", "left as it is, because", "flops", "runs")
        rows = [_row("th", heads)]
        for r in self:
            flops = "" if r.after is None else _flops(r)
            cells = (r.matrix, r.structure, ", ".join(r.asked), r.reason, flops, r.road)
            rows.append(_row("td", cells))
        table = f"<table>{''.join(rows)}</table>"
        plans = "".join(
            f"<details><summary>{html.escape(f'{r.matrix}: the plan')}</summary>"
            f"<pre>{html.escape(str(plan))}</pre></details>"
            for r in self
            for plan in r.plans
        )
        left = f"<div>{html.escape(self._census())}</div>" if self.left else ""
        return table + left + plans


def _row(tag: str, texts: Any) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in texts)}</tr>"


def _flops(r: Report) -> str:
    before, after = r.before or 0.0, r.after or 0.0
    said = f"about {after:.2g} flops in place of {before:.2g}"
    if after < before or r.structure == "dense":
        return said
    return f"{said}: no way by this structure is cheaper than a dense factor"


def named(K: Any) -> str:
    """A matrix by its name and size."""
    return f"{K} ({_sizes(K)})"


def _sizes(K: Any) -> str:
    return ", ".join("?" if n is None else str(n) for n in K.type.shape)


def shown(tree: Any) -> str:
    """The structure of a tree, without its arrays."""
    inner = [shown(t) for t in tree[1:] if isinstance(t, tuple)]
    return f"{tree[0]}({', '.join(inner)})" if inner else str(tree[0])


def census(expr: Any) -> Counter[str]:
    """Factors, solves, determinants and decompositions of dense matrices in a graph, by size."""
    found: Counter[str] = Counter()
    for v in toposorted(expr):
        op = op_of(v)
        if isinstance(op, DENSE):
            found[f"{type(op).__name__} of ({_sizes(v.owner.inputs[0])})"] += 1
    return found


# -- prices ----------------------------------------------------------------------------------------


def _numbers(*shape: int) -> Any:
    """Numbers that are like no special ones; without memory."""
    return np.broadcast_to(np.full((), 1.5), shape)


def _known(tree: Any, shapes: list[Any]) -> list[Any]:
    """The shapes, with lengths that PyTensor does not know, as of diag(diag(c)), by the tree."""
    if tree[0] == "weighted":
        _, i, j = tree
        shapes = [(*shapes[i][-1:],) if k == j else shape for k, shape in enumerate(shapes)]
    for t in tree[1:]:
        shapes = _known(t, shapes) if isinstance(t, tuple) else shapes
    return shapes


def priced(
    spec: Any, arrays: list[Any], times: int | None = 1
) -> tuple[float | None, float | None, tuple[Any, ...]]:
    """`before`, `after` and `plans` of a report on a program of these variables, which is run so
    many times."""
    _, tree, asked, _ = spec
    shapes = _known(tree, [x.type.shape for x in arrays])
    is_general = tree[0] == "general"
    if times is None or any(None in shape for shape in shapes):
        return None, None, ()
    leaves = [lazy(_numbers(*shape)) for shape in shapes]
    try:
        n = _rows_of(tree[1] if is_general else tree, leaves, shapes, asked)
        plans = planned([lazy(x) for x in program(spec).build(leaves)])
    except (TypeError, ValueError, NotImplementedError):
        return None, None, ()
    before = (2 if is_general else 1) * n**3 / 3
    for what, *rest in asked:
        if what == "inverse":
            before += (4 if is_general else 2) * n**3 / 3
        elif rest:
            columns = math.prod(shapes[rest[0]]) // n if n else 0
            before += (1 if what == "squares" else 2) * n**2 * columns
    return times * before, times * sum(p.flops for p in plans), tuple(plans)


def _rows_of(tree: Any, leaves: list[Any], shapes: list[Any], asked: Any) -> int:
    """How many rows the matrix has: as a right-hand side, if there is one."""
    for what, *rest in asked:
        if rest:
            shape = shapes[rest[0]]
            return int(shape[-1] if what == "squares" or len(shape) == 1 else shape[-2])
    if tree[0] == "sum" and any(t[0] == "off" for t in tree[1:]):
        off = next(t for t in tree[1:] if t[0] == "off")
        return int(leaves[off[2]].shape[-1]) + abs(offset_of(off))
    return int(operator_of(leaves, tree).shape[-1])
