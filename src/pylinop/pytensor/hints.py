"""What a model says of a matrix itself: that it is to be left alone."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt

from ._compat import Apply, DimShuffle, TypeCastingOp, register_universal_assumption
from .views import op_of

__all__ = ["Hint", "hint", "is_left_alone"]


class Hint(TypeCastingOp):  # type: ignore[misc]
    """The matrix as it is, with a word for the rewriter. It stays in the graph, as gradients are
    taken between two passes, and costs nothing."""

    __props__ = ("what",)

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def __str__(self) -> str:
        return f"hint{{{self.what}}}"

    def make_node(self, x: Any) -> Any:
        """The node of a matrix."""
        return Apply(self, [x], [x.type()])

    def do_constant_folding(self, fgraph: Any, node: Any) -> bool:
        """A constant would forget it."""
        return False

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """That of the matrix."""
        return shapes

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """The cotangents as they are."""
        return list(cotangents)


@register_universal_assumption(Hint)  # type: ignore[untyped-decorator]
def _kept(key: Any, op: Any, feature: Any, fgraph: Any, node: Any, states: Any) -> list[Any]:
    """What is assumed of the matrix holds with the word too."""
    return [states[0]]


def hint(K: Any, what: str) -> Any:
    """The matrix, with a word on how it is to be taken.

    Parameters
    ----------
    K : TensorVariable
        A matrix, or a stack of them.
    what : str
        ``"dense"``: it is left to PyTensor, whatever its structure; where it is a part of another
        matrix, that one is taken as having a dense part.

    Returns
    -------
    TensorVariable
        The same values.

    Raises
    ------
    ValueError
        For another word, and for what is no matrix.

    Examples
    --------
    >>> import pytensor.tensor as pt, pylinop.pytensor as pp
    >>> W, d = pt.dmatrix("W"), pt.dvector("d")
    >>> K = pp.hint(W @ W.T + pt.diag(d), "dense")
    >>> pp.explain(pt.sum(pt.log(pt.diag(pt.linalg.cholesky(K)))))
    hint{dense}.0 (?, ?): left as it is: hint(K, 'dense') asks for that
    left dense: 1 Cholesky of (?, ?)
    """
    if what != "dense":
        raise ValueError(f"a hint is 'dense', not {what!r}")
    x = pt.as_tensor_variable(K)
    if x.ndim < 2:
        raise ValueError(f"a hint is on a matrix, not on an array of {x.ndim} dimensions")
    return Hint(what)(x)


def is_left_alone(v: Any) -> bool:
    """Was it said of v, be it with dimensions of 1 in front or turned?"""
    while isinstance(op_of(v), DimShuffle):
        v = v.owner.inputs[0]
    return isinstance(op_of(v), Hint)
