"""Variables without what is around them: dimensions of 1, Blockwise, transposes; and whether two
are written alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import AllocDiag, Blockwise, Constant, DimShuffle, Elemwise, ExtractDiag

__all__ = [
    "are_transposes",
    "is_scalar_op",
    "number_of",
    "op_of",
    "plain",
    "seen",
    "transposed",
    "vector_of",
]


def op_of(v: Any) -> Any:
    """The Op that made v, its core if blockwise; None for what is given."""
    if v.owner is None:
        return None
    op = v.owner.op
    return op.core_op if isinstance(op, Blockwise) else op


def plain(v: Any) -> Any:
    """v without dimensions of 1 in front: what a batch of one is one of; None for other batches."""
    while v.ndim > 2 and isinstance(op_of(v), DimShuffle):
        order, inner = v.owner.op.new_order, v.owner.inputs[0]
        front = len(order) - inner.ndim
        if front < 1 or order != ("x",) * front + tuple(range(inner.ndim)):
            break
        v = inner
    if v.ndim == 2:
        return v
    if v.ndim < 2 or not all(v.type.broadcastable[:-2]):
        return None
    if isinstance(v, Constant):
        return pt.constant(v.data.reshape(v.data.shape[-2:]))
    return v.dimshuffle(v.ndim - 2, v.ndim - 1)


def seen(v: Any) -> Any:
    """A matrix as the rows look at it: what is elementwise in a batch of one as it is."""
    core = plain(v)
    if core is not None and core.owner is not None and core.owner.inputs[0] is v:
        return v if isinstance(op_of(v), Elemwise) else core
    return core


def number_of(v: Any) -> Any:
    """v as a number, where all its dimensions are 1; else None."""
    if not all(v.type.broadcastable):
        return None
    if isinstance(v, Constant):
        return pt.constant(np.asarray(v.data).reshape(()))
    if isinstance(op_of(v), DimShuffle) and v.owner.inputs[0].ndim == 0:
        return v.owner.inputs[0]
    return v.dimshuffle(()) if v.ndim else v


def transposed(v: Any) -> Any:
    """What v is the transpose of; None where it is not one."""
    is_one = isinstance(op_of(v), DimShuffle) and v.owner.op.new_order == (1, 0)
    return v.owner.inputs[0] if is_one else None


def _parts(v: Any, order: tuple[int, ...]) -> list[tuple[Any, tuple[int, ...]]]:
    """What v is made of, element by element, and which axes of the whole theirs are."""
    op = op_of(v)
    if isinstance(op, DimShuffle):
        inner = v.owner.inputs[0]
        at = {source: order[k] for k, source in enumerate(op.new_order) if source != "x"}
        return [(inner, tuple(at.get(k, -1) for k in range(inner.ndim)))]
    if isinstance(op, Elemwise) and len(v.owner.outputs) == 1:
        return [(x, order) for x in v.owner.inputs]
    return []


class _Keys:
    """Numbers of variables that are written alike, whatever transposes and dimensions of 1 are
    within. `order` says which axis of the whole each axis of v is."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.known: dict[Any, int] = {}

    def of(self, v: Any, order: tuple[int, ...]) -> int:
        """That of v: the same for what is alike."""
        stack = [(v, order)]
        while stack:
            at = stack[-1]
            parts = _parts(*at)
            lacking = [] if at in self.known else [x for x in parts if x not in self.known]
            if lacking:
                stack += lacking
                continue
            if at not in self.known:
                self.known[at] = self._number(*at, [self.known[x] for x in parts])
            stack.pop()
        return self.known[v, order]

    def _number(self, v: Any, order: tuple[int, ...], parts: list[int]) -> int:
        if isinstance(op_of(v), DimShuffle):
            return parts[0]
        made = (op_of(v), *parts) if parts else _alone(v, order)
        return self.numbers.setdefault(made, len(self.numbers))


def _alone(v: Any, order: tuple[int, ...]) -> Any:
    """What tells a variable that is taken as it is from others."""
    one = v.type.broadcastable
    own = tuple(o for k, o in enumerate(order) if not one[k])
    if not isinstance(v, Constant):
        return v, own
    data = np.asarray(v.data)
    data = data.reshape([n for k, n in enumerate(data.shape) if not one[k]])
    if own == (1, 0):
        data, own = data.T, (0, 1)
    return data.dtype.str, data.shape, own, data.tobytes()


def are_transposes(a: Any, b: Any) -> bool:
    """Is one written as the transpose of the other?"""
    if transposed(a) is b or transposed(b) is a:
        return True
    if a.ndim != 2 or b.ndim != 2 or a.type.dtype != b.type.dtype:
        return False
    if a.type.broadcastable != b.type.broadcastable[::-1]:
        return False
    if isinstance(a, Constant) != isinstance(b, Constant):
        return False
    keys = _Keys()
    return keys.of(a, (1, 0)) == keys.of(b, (0, 1))


def vector_of(v: Any) -> Any:
    """A row or a column as a vector."""
    inner = v.owner.inputs[0] if isinstance(op_of(v), DimShuffle) else v
    if inner.ndim == 1:
        return _undone(inner)
    return v.dimshuffle(0 if v.type.broadcastable[1] else 1)


def _undone(v: Any) -> Any:
    """d of diag(diag(d)), whose length PyTensor does not know."""
    D = v.owner.inputs[0] if isinstance(op_of(v), ExtractDiag) else v
    is_own = (
        D is not v and isinstance(op_of(D), AllocDiag) and op_of(D).offset == op_of(v).offset == 0
    )
    return D.owner.inputs[0] if is_own else v


def is_scalar_op(v: Any, kind: Any) -> bool:
    """Is v elementwise, by an Op of this kind?"""
    op = op_of(v)
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, kind)
