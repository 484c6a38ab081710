"""What a graph asks of a matrix by its Cholesky factor L: all of it is told as results of one
program, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from ._compat import (
    Blockwise,
    CAReduce,
    CholeskySolve,
    Constant,
    Det,
    DimShuffle,
    Elemwise,
    ExtractDiag,
    Solve,
    SolveTriangular,
    scalars,
)
from .recognise import Refused

__all__ = ["Want", "anchors", "general_wants", "wants"]


class Want(NamedTuple):
    """What takes the place of `old`: `made` of what is asked, of an operand beside it or not."""

    old: Any
    asked: str  # "squares", "solve", "logdet", "logabsdet"
    operand: Any
    made: Any  # of the result to the new variable


def _core(op: Any) -> Any:
    return op.core_op if isinstance(op, Blockwise) else op


def _uses(fgraph: Any, v: Any) -> Iterator[tuple[Any, Any]]:
    """(node, the variable as the node sees it) of all that use v, through dimensions of 1 in
    front."""
    for node, _ in fgraph.clients[v]:
        op = node.op
        if isinstance(op, DimShuffle):
            front = len(op.new_order) - v.ndim
            if front > 0 and op.new_order == ("x",) * front + tuple(range(v.ndim)):
                yield from _uses(fgraph, node.outputs[0])
                continue
        yield node, v


def _refused(node: Any, of: str) -> Refused:
    op = node.op
    name = "the function's result" if type(op).__name__ == "Output" else str(_core(op))
    return Refused(f"{of} is used by {name}")


def _is_turned(node: Any, v: Any) -> bool:
    """Does it transpose the last two dimensions?"""
    order = tuple(range(v.ndim - 2)) + (v.ndim - 1, v.ndim - 2)
    return isinstance(node.op, DimShuffle) and node.op.new_order == order


def _padded(x: Any, ndim: int) -> Any:
    return pt.shape_padleft(x, ndim - x.ndim) if x.ndim < ndim else x


def _as_rows(b: Any, ndim: int) -> Any:
    """The right-hand sides of a solve, as vectors along the last axis."""
    return b.mT if ndim == 2 else b


def _from_rows(found: Any, ndim: int) -> Any:
    return found.mT if ndim == 2 else found


def _squares(fgraph: Any, s: Any, b: Any, ndim: int) -> Iterator[Want]:
    """Sums of squares of L^-1 b over its rows."""
    axis = s.ndim - 1 if ndim == 1 else s.ndim - 2
    for node, _ in fgraph.clients[s]:
        op = node.op
        squared = isinstance(op, Elemwise) and (
            isinstance(op.scalar_op, scalars.Sqr)
            or (
                isinstance(op.scalar_op, scalars.Pow)
                and isinstance(node.inputs[1], Constant)
                and (np.asarray(node.inputs[1].data) == 2).all()
            )
        )
        if not squared:
            raise _refused(node, "a triangular solve")
        for user, _ in fgraph.clients[node.outputs[0]]:
            is_sum = isinstance(user.op, CAReduce) and isinstance(user.op.scalar_op, scalars.Add)
            if not is_sum:
                raise _refused(user, "the square of a triangular solve")
            axes = user.op.axis
            axes = tuple(range(s.ndim)) if axes is None else tuple(axes)
            if axis not in axes:
                raise Refused("squares are summed over the columns alone")
            rest = tuple(a - (a > axis) for a in axes if a != axis)
            yield Want(
                user.outputs[0],
                "squares",
                _padded(_as_rows(b, ndim), s.ndim),
                lambda found, rest=rest: found.sum(axis=rest) if rest else found,
            )


def _pair(fgraph: Any, node: Any, v: Any, b: Any, ndim: int) -> Iterator[Want]:
    """L^-1 b, and what is made of it."""
    s = node.outputs[0]
    backs = [
        user
        for user, _ in fgraph.clients[s]
        if isinstance(_core(user.op), SolveTriangular) and user.inputs[1] is s
    ]
    if not backs:
        yield from _squares(fgraph, s, b, ndim)
        return
    for user in backs:
        back = user.inputs[0]
        turned = back.owner is not None and _is_turned(back.owner, back.owner.inputs[0])
        same = turned and back.owner.inputs[0] in (v, node.inputs[0])
        op = _core(user.op)
        if not same or op.lower or op.unit_diagonal or op.b_ndim != ndim:
            raise _refused(user, "a triangular solve")
    if len(backs) < len(fgraph.clients[s]):
        raise Refused("a triangular solve has other uses beside the second one")
    for user in backs:
        yield _solution(user.outputs[0], b, ndim)


def _solution(old: Any, b: Any, ndim: int) -> Want:
    if old.ndim > ndim:
        raise Refused("a solve of a batch of right-hand sides")
    return Want(old, "solve", b, lambda found: found)


def _diagonal(fgraph: Any, node: Any) -> Iterator[Want]:
    """Sums of logarithms of diag(L), and whether it is positive."""
    d = node.outputs[0]
    for user, _ in fgraph.clients[d]:
        op = user.op
        scalar = op.scalar_op if isinstance(op, Elemwise) else None
        is_log = isinstance(scalar, scalars.Log)
        zero = user.inputs[-1]
        is_sign = (
            isinstance(scalar, scalars.GT)
            and user.inputs[0] is d
            and isinstance(zero, Constant)
            and not np.any(zero.data)
        )
        if not (is_log or is_sign):
            raise _refused(user, "diag(L)")
        for last, _ in fgraph.clients[user.outputs[0]]:
            due = scalars.Add if is_log else scalars.AND
            reduce = last.op
            if not isinstance(reduce, CAReduce) or not isinstance(reduce.scalar_op, due):
                raise _refused(last, "log(diag(L))" if is_log else "diag(L) > 0")
            axes = reduce.axis
            if axes is not None and d.ndim - 1 not in axes:
                raise Refused("a reduction of diag(L) over other axes")
            shown = last.outputs[0].ndim
            yield Want(
                last.outputs[0],
                "logdet",
                None,
                (lambda x, n=shown: pt.shape_padleft(x / 2, n))
                if is_log
                else (lambda x, n=shown: pt.shape_padleft(~pt.isnan(x), n)),
            )


def wants(fgraph: Any, L: Any) -> list[Want]:
    """All that is asked of L = cholesky(K), as results of one program."""
    found: list[Want] = []
    for node, v in _uses(fgraph, L):
        op = _core(node.op)
        if isinstance(op, ExtractDiag) and op.offset == 0 and _are_last(op, v.ndim):
            found += _diagonal(fgraph, node)
        elif isinstance(op, SolveTriangular) and node.inputs[0] is v:
            if not op.lower or op.unit_diagonal:
                raise _refused(node, "L")
            found += _pair(fgraph, node, v, node.inputs[1], op.b_ndim)
        elif isinstance(op, CholeskySolve) and node.inputs[0] is v and op.lower:
            found.append(_solution(node.outputs[0], node.inputs[1], op.b_ndim))
        elif _is_turned(node, v):
            if not all(_is_second(user) for user, _ in fgraph.clients[node.outputs[0]]):
                raise Refused("L' is used alone")
        else:
            raise _refused(node, "L")
    if not found:
        raise Refused("nothing is asked of it")
    return found


def _is_second(user: Any) -> bool:
    """A triangular solve with L', looked at from its right-hand side."""
    if not isinstance(_core(user.op), SolveTriangular) or _core(user.op).lower:
        return False
    before = user.inputs[1].owner
    return before is not None and isinstance(_core(before.op), SolveTriangular)


def _are_last(op: Any, ndim: int) -> bool:
    return bool((op.axis1 % ndim, op.axis2 % ndim) == (ndim - 2, ndim - 1))


# -- matrices that nobody said are positive definite -----------------------------------------------


def anchors(fgraph: Any) -> list[Any]:
    """The matrices of solves and determinants, each once, in the order of the graph."""
    found: dict[Any, None] = {}
    for node in fgraph.toposort():
        if isinstance(_core(node.op), Solve | Det):
            found.setdefault(node.inputs[0])
    return list(found)


def _logarithm(fgraph: Any, node: Any) -> Iterator[Want]:
    """log |det K| and log det K."""
    det = node.outputs[0]
    for user, _ in fgraph.clients[det]:
        asked, old = "logdet", user
        if isinstance(user.op, Elemwise) and isinstance(user.op.scalar_op, scalars.Abs):
            asked = "logabsdet"
            clients = fgraph.clients[user.outputs[0]]
            if len(clients) != 1:
                raise Refused("|det| has other uses beside its logarithm")
            old = clients[0][0]
        is_log = isinstance(old.op, Elemwise) and isinstance(old.op.scalar_op, scalars.Log)
        if not is_log:
            raise _refused(old, "the determinant")
        yield Want(old.outputs[0], asked, None, lambda found: found)


def general_wants(fgraph: Any, K: Any) -> list[Want]:
    """What is asked of K itself by solves and determinants, whatever else it is used for."""
    found: list[Want] = []
    for node, _ in fgraph.clients[K]:
        op = _core(node.op)
        if isinstance(op, Solve) and node.inputs[0] is K:
            found.append(_solution(node.outputs[0], node.inputs[1], op.b_ndim))
        elif isinstance(op, Det):
            found += _logarithm(fgraph, node)
    if not found:
        raise Refused("nothing is asked of it")
    return found
