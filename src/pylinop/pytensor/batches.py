"""Stacks of matrices: what is written of a stack along one dimension, as it is of one matrix of it.
Programs are of the one; PyTensor repeats them along the stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import AllocDiag, Blockwise, Constant, DimShuffle, Elemwise, vectorize_graph

__all__ = ["Batch", "batch_of"]


class Batch:
    """A stack of matrices along the last of `lead` dimensions in front, those before it being 1.

    `core` is one of them, an expression of variables of which `given` has the stacks."""

    def __init__(self, K: Any) -> None:
        self.lead = K.ndim - 2
        self.length: int | None = K.type.shape[self.lead - 1]
        self.given: dict[Any, Any] = {}
        self._known: dict[Any, Any] = {}
        self.core = self._one(K, self.lead)

    def _one(self, v: Any, lead: int) -> Any:
        """Of v, whose first `lead` dimensions are those of the stack."""
        if lead == 0:
            return v
        key = v, lead
        if key not in self._known:
            made = self._of_node(v, lead)
            self._known[key] = self._stand_in(v, lead) if made is None else made
        return self._known[key]

    def _stand_in(self, v: Any, lead: int) -> Any:
        if all(v.type.broadcastable[:lead]):  # the same for all
            if isinstance(v, Constant):
                return pt.constant(np.asarray(v.data).reshape(v.data.shape[lead:]))
            return v.dimshuffle(*range(lead, v.ndim))
        if not all(v.type.broadcastable[: lead - 1]):
            raise ValueError("a stack along several dimensions")
        one = pt.tensor(dtype=v.type.dtype, shape=v.type.shape[lead:])
        self.given[one] = v.dimshuffle(*range(lead - 1, v.ndim)) if lead > 1 else v
        return one

    def _of_node(self, v: Any, lead: int) -> Any:
        """By what made v; None where v is taken as it is."""
        if v.owner is None or len(v.owner.outputs) > 1:
            return None
        op, inputs = v.owner.op, v.owner.inputs
        if isinstance(op, DimShuffle):
            return self._of_shuffled(v, lead)
        if isinstance(op, Elemwise):
            return op(*(self._one(x, lead) for x in inputs))
        if isinstance(op, Blockwise) and op.batch_ndim(v.owner) == lead:
            return op.core_op(*(self._one(x, lead) for x in inputs))
        if isinstance(op, AllocDiag) and (op.axis1, op.axis2) == (v.ndim - 2, v.ndim - 1) != (0, 1):
            return pt.diag(self._one(inputs[0], lead), op.offset) if v.ndim == lead + 2 else None
        return None

    def _of_shuffled(self, v: Any, lead: int) -> Any:
        order, inner = v.owner.op.new_order, v.owner.inputs[0]
        front = [o for o in order[:lead] if o != "x"]
        fits = not front or (front == list(range(len(front))) and order[lead - 1] == front[-1])
        if not fits or len([o for o in order if o != "x"]) != inner.ndim:
            return None
        one = self._one(inner, len(front))
        return one.dimshuffle(*(o if o == "x" else o - len(front) for o in order[lead:]))

    def operand(self, b: Any, axis: int) -> Any:
        """One of b, whose stack is along `axis`; b as it is without it where it is the same for
        all."""
        others = [k for k in range(b.ndim) if k != axis]
        if b.type.broadcastable[axis]:
            return b.dimshuffle(*others)
        one = pt.tensor(dtype=b.type.dtype, shape=[b.type.shape[k] for k in others])
        self.given[one] = b.dimshuffle(axis, *others)
        return one

    def back(self, found: Any, axis: int) -> Any:
        """Results, the stack in front, with it along `axis`."""
        others = list(range(1, found.ndim))
        return found.dimshuffle(*others[:axis], 0, *others[axis:])

    def repeated(self, made: list[Any]) -> list[Any]:
        """Results of one as those of the stack."""
        return list(vectorize_graph(made, self.given))


def batch_of(K: Any) -> Batch | None:
    """K as a stack along one dimension; None where it is one matrix, or a stack along several."""
    if K.ndim < 3 or K.type.broadcastable[-3] or not all(K.type.broadcastable[:-3]):
        return None
    try:
        return Batch(K)
    except ValueError:
        return None
