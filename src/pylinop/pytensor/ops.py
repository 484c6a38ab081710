"""The Op of a program: what is asked of a structured matrix, as one node of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from ._compat import Apply, DisconnectedType, Op
from .program import arrays_of, innermost, like, parsed
from .running import results

__all__ = ["Structured"]


class Structured(Op):  # type: ignore[misc]
    """A program on tensors. Its derivatives are programs too, of any order.

    Parameters
    ----------
    text : str
        The program (``pylinop.pytensor.program``). Equal text is an equal Op, in any process.
    """

    __props__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
        self.spec = parsed(text)

    def __str__(self) -> str:
        spec, ups = innermost(self.spec)
        asked = ", ".join(what for what, *_ in spec[2])
        name = "Structured.joined" if self.spec[0] == "joined" else f"Structured{'.pullback' * ups}"
        return f"{name}{{{spec[1][0]}: {asked}}}"

    def make_node(self, *inputs: Any) -> Any:
        """The node of `inputs`, tensors."""
        given = [pt.as_tensor_variable(x) for x in inputs]
        if len(given) != arrays_of(self.spec):
            raise ValueError(
                f"{self}: takes {arrays_of(self.spec)} tensors, and was given {len(given)}"
            )
        dtype = pytensor.scalar.upcast(*(x.dtype for x in given), "float32")
        made = []
        values = 0 if self.spec[0] == "pullback" else len(innermost(self.spec)[0][2])
        for k, (what, j) in enumerate(like(self.spec)):
            if what == "number":
                made.append(pt.scalar(dtype=dtype))
                continue
            shape = given[j].type.shape
            own = dtype if k < values else given[j].dtype
            made.append(pt.tensor(dtype=own, shape=shape if what == "same" else shape[:-1]))
        return Apply(self, given, made)

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Computes the values."""
        arrays = [np.asarray(x) for x in inputs]
        found = results(self.text, arrays, [o.dtype for o in node.outputs])
        held = [*arrays]  # nodes behind this one may write into their inputs
        for cell, value in zip(outputs, found, strict=True):
            own = value.flags.writeable and not any(np.may_share_memory(value, a) for a in held)
            cell[0] = value if own else value.copy()
            held.append(cell[0])

    def infer_shape(self, node: Any, shapes: Any) -> list[Any]:
        """The shapes of the results, of those of the arrays."""
        made = []
        for what, j in like(self.spec):
            made.append(
                () if what == "number" else tuple(shapes[j] if what == "same" else shapes[j][:-1])
            )
        return made

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """All results depend on all arrays of floats."""
        return [[x.dtype.startswith("float")] * len(node.outputs) for x in node.inputs]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """The cotangents of the inputs, by the program's pullback."""
        by = tuple(k for k, x in enumerate(inputs) if x.dtype.startswith("float"))
        given = [
            pt.zeros_like(y) if isinstance(g.type, DisconnectedType) else g
            for y, g in zip(outputs, cotangents, strict=True)
        ]
        spec = ("pullback", self.spec, by, len(outputs))
        found = Structured(repr(spec))(*inputs, *given, return_list=True)
        back = dict(zip(by, found, strict=True))
        return [back.get(k, DisconnectedType()()) for k in range(len(inputs))]

    L_op = pullback
