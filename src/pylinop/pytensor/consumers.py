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
    Cholesky,
    CholeskySolve,
    Constant,
    Det,
    DimShuffle,
    Dot,
    Elemwise,
    ExtractDiag,
    Eye,
    MatrixInverse,
    Solve,
    SolveTriangular,
    ancestors,
    scalars,
)
from .batches import Batch
from .recognise import Refused
from .views import op_of

__all__ = ["Want", "anchors", "general_wants", "is_inverse_of", "wants"]


class Want(NamedTuple):
    """What takes the place of `old`: `made` of what is asked, of an operand beside it or not."""

    old: Any
    asked: str  # "squares", "solve", "inverse", "logdet", "logabsdet"
    operand: Any
    made: Any  # of the result to the new variable
    is_product: bool = False  # of two triangular solves, in place of which there is a whole one
    needs_size: bool = False  # may cost more than PyTensor's way where the rank is not low


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


def _is_squared(node: Any) -> bool:
    """Is it the elementwise square of its first input?"""
    if not isinstance(node.op, Elemwise):
        return False
    if isinstance(node.op.scalar_op, scalars.Sqr):
        return True
    by = node.inputs[-1]
    is_power = isinstance(node.op.scalar_op, scalars.Pow) and isinstance(by, Constant)
    return bool(is_power and (np.asarray(by.data) == 2).all())


def _squares(
    fgraph: Any, node: Any, s: Any, b: Any, ndim: int, batch: Batch | None
) -> Iterator[Want]:
    """Sums of squares of s = L^-1 b over its rows."""
    axis = s.ndim - 1 if ndim == 1 else s.ndim - 2
    for user, _ in fgraph.clients[node.outputs[0]]:
        is_sum = isinstance(user.op, CAReduce) and isinstance(user.op.scalar_op, scalars.Add)
        if not is_sum:
            raise _refused(user, "the square of a triangular solve")
        axes = user.op.axis
        axes = tuple(range(s.ndim)) if axes is None else tuple(axes)
        if axis not in axes:
            raise Refused("squares are summed over the columns alone")
        rest = tuple(a - (a > axis) for a in axes if a != axis)
        rows = _padded(_as_rows(b, ndim), s.ndim)
        at = s.ndim - 1 - ndim

        def made(found: Any, rest: Any = rest, at: int = at) -> Any:
            found = found if batch is None else batch.back(found, at)
            return found.sum(axis=rest) if rest else found

        operand = rows if batch is None else batch.operand(rows, at)
        yield Want(user.outputs[0], "squares", operand, made)


def _half(x: Any, L: Any, is_left: bool) -> Any:
    """The b of x = L^-1 b, in a product from the left of (L^-1 b)'; None: it is none of them."""
    ndim = 2
    if isinstance(op_of(x), DimShuffle):
        order, x = x.owner.op.new_order, x.owner.inputs[0]
        if order == (("x", 0) if is_left else (0, "x")):
            ndim = 1
        elif not is_left or order != (1, 0):
            return None
    elif is_left:
        return None
    op = op_of(x)
    fits = isinstance(op, SolveTriangular) and op.lower and not op.unit_diagonal
    if not fits or x.owner.inputs[0] is not L:
        return None
    b = x.owner.inputs[1]
    return b if op.b_ndim == ndim == b.ndim else None


def _columns(b: Any) -> float:
    return 1 if b.ndim == 1 else b.type.shape[1] or np.inf


def _product(node: Any, L: Any) -> Want:
    """(L^-1 a)' (L^-1 b) = a' inv(K) b, as predictions of a Gaussian process are."""
    left, right = node.inputs
    a, b = _half(left, L, True), _half(right, L, False)
    if a is None or b is None:
        raise _refused(node, "a triangular solve")

    def rows(x: Any) -> Any:
        return x[None, :] if x.ndim == 1 else x.mT

    def columns(x: Any) -> Any:
        return x[:, None] if x.ndim == 1 else x

    old = node.outputs[0]
    if a is b and a.ndim == 1:
        return Want(old, "squares", b, lambda found: found[None, None])
    if _columns(a) < _columns(b):
        return Want(old, "solve", a, lambda found: pt.dot(rows(found), columns(b)), True, True)
    return Want(old, "solve", b, lambda found: pt.dot(rows(a), columns(found)), True, True)


def _pair(fgraph: Any, node: Any, v: Any, b: Any, batch: Batch | None) -> Iterator[Want]:
    """What is made of s = L^-1 b."""
    s, ndim = node.outputs[0], _core(node.op).b_ndim
    for user, _ in fgraph.clients[s]:
        op = _core(user.op)
        if isinstance(op, SolveTriangular) and user.inputs[1] is s:
            back = user.inputs[0]
            turned = back.owner is not None and _is_turned(back.owner, back.owner.inputs[0])
            same = turned and back.owner.inputs[0] in (v, node.inputs[0])
            if not same or op.lower or op.unit_diagonal or op.b_ndim != ndim:
                raise _refused(user, "a triangular solve")
            yield _solution(user.outputs[0], b, ndim, batch)
        elif _is_squared(user):
            yield from _squares(fgraph, user, s, b, ndim, batch)
        elif isinstance(op, Dot) and s.ndim < 3:
            yield _product(user, node.inputs[0])
        elif isinstance(op, DimShuffle) and s.ndim < 3:
            for last, _ in fgraph.clients[user.outputs[0]]:
                if not isinstance(_core(last.op), Dot):
                    raise _refused(user, "a triangular solve")
                yield _product(last, node.inputs[0])
        else:
            raise _refused(user, "a triangular solve")


def _solution(old: Any, b: Any, ndim: int, batch: Batch | None = None) -> Want:
    if old.ndim > ndim + (0 if batch is None else batch.lead):
        raise Refused("a solve of a batch of right-hand sides")
    if batch is not None:
        one = _padded(b, old.ndim)
        if not all(one.type.broadcastable[: batch.lead - 1]):
            raise Refused("a solve of a batch of right-hand sides")
        one = one.dimshuffle(*range(batch.lead - 1, old.ndim))
        return Want(
            old, "solve", batch.operand(one, 0), lambda x: pt.shape_padleft(x, batch.lead - 1)
        )
    return Want(old, "inverse" if _is_identity(b) else "solve", b, lambda x: x)


def _is_identity(b: Any) -> bool:
    """Is it written so?"""
    if isinstance(b, Constant) and b.ndim == 2:
        return np.array_equal(b.data, np.eye(len(b.data)))
    if not isinstance(op_of(b), Eye):
        return False
    n, m, k = b.owner.inputs
    return n is m and isinstance(k, Constant) and k.data == 0


def _diagonal(fgraph: Any, node: Any, batch: Batch | None) -> Iterator[Want]:
    """Sums of logarithms of diag(L), its product, and whether it is positive."""
    d = node.outputs[0]
    front = d.ndim - 1 - (batch is not None)  # dimensions of 1
    for user, _ in fgraph.clients[d]:
        op = user.op
        if isinstance(op, CAReduce) and isinstance(op.scalar_op, scalars.Mul) and d.ndim == 1:
            yield Want(user.outputs[0], "logdet", None, lambda x: pt.exp(x / 2), False, True)
            continue
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
            rest = tuple(k for k in range(d.ndim - 1) if axes is None or k in axes)

            def made(x: Any, rest: Any = rest, is_log: bool = is_log) -> Any:
                x = pt.shape_padleft(x / 2 if is_log else ~pt.isnan(x), front)
                return (x.sum(axis=rest) if is_log else x.all(axis=rest)) if rest else x

            yield Want(last.outputs[0], "logdet", None, made)


def wants(fgraph: Any, L: Any, batch: Batch | None = None) -> list[Want]:
    """All that is asked of L = cholesky(K), as results of one program."""
    found: list[Want] = []
    for node, v in _uses(fgraph, L):
        op = _core(node.op)
        if isinstance(op, ExtractDiag) and op.offset == 0 and _are_last(op, v.ndim):
            found += _diagonal(fgraph, node, batch)
        elif isinstance(op, SolveTriangular) and node.inputs[0] is v:
            if not op.lower or op.unit_diagonal:
                raise _refused(node, "L")
            found += _pair(fgraph, node, v, node.inputs[1], batch)
        elif isinstance(op, CholeskySolve) and node.inputs[0] is v and op.lower:
            found.append(_solution(node.outputs[0], node.inputs[1], op.b_ndim, batch))
        elif _is_turned(node, v):
            if not all(_is_second(user) for user, _ in fgraph.clients[node.outputs[0]]):
                raise Refused("L' is used alone")
        else:
            raise _refused(node, "L")
    if not found:
        raise Refused("nothing is asked of it")
    return list({want.old: want for want in found}.values())  # a product is met from both sides


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
    """The matrices of solves, determinants and inverses, each once, in the order of the graph."""
    found: dict[Any, None] = {}
    for node in fgraph.toposort():
        if isinstance(_core(node.op), Solve | Det | MatrixInverse):
            found.setdefault(node.inputs[0])
    return list(found)


def _whole(fgraph: Any, node: Any) -> Want:
    """The inverse itself; not where it is a part of a matrix that is asked of: that one's structure
    tells more."""
    made = node.outputs[0]
    for other in fgraph.apply_nodes:
        is_asked = isinstance(_core(other.op), Cholesky | Solve | Det | MatrixInverse)
        if is_asked and other is not node and made in ancestors([other.inputs[0]]):
            raise Refused("its inverse is a part of a matrix that is asked of itself")
    unit = pt.eye(node.inputs[0].shape[-1], dtype=made.dtype)
    return Want(made, "inverse", unit, lambda found: found, False, True)


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


def is_inverse_of(fgraph: Any, K: Any) -> bool:
    """Is nothing but the inverse of K asked?"""
    return all(isinstance(_core(node.op), MatrixInverse) for node, _ in fgraph.clients[K])


def general_wants(fgraph: Any, K: Any) -> list[Want]:
    """What is asked of K itself by solves, determinants and inverses, whatever else it is used
    for."""
    found: list[Want] = []
    for node, _ in fgraph.clients[K]:
        op = _core(node.op)
        if isinstance(op, Solve) and node.inputs[0] is K:
            found.append(_solution(node.outputs[0], node.inputs[1], op.b_ndim))
        elif isinstance(op, Det):
            found += _logarithm(fgraph, node)
        elif isinstance(op, MatrixInverse):
            found.append(_whole(fgraph, node))
    if not found:
        raise Refused("nothing is asked of it")
    return found
