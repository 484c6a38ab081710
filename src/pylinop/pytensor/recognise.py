"""A variable as a tree of pylinop's kinds over variables, one function for each Op; or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt

from . import constants
from ._compat import (
    AdvancedSubtensor,
    Alloc,
    AllocDiag,
    BlockDiagonal,
    Blockwise,
    Constant,
    DimShuffle,
    Dot,
    Elemwise,
    Eye,
    KroneckerProduct,
    MatrixInverse,
    scalars,
)

__all__ = ["Refused", "plain", "recognise"]

SIMPLE = {"identity", "constant", "diagonal", "off"}  # multiples of them are they themselves
PAYS = {"kron", "toeplitz", "blocks", "root", "weighted", "congruence", *SIMPLE} - {"identity"}
DEFINITE = {"kron", "toeplitz", "blocks", "diagonal", "identity"}  # others are semidefinite


class Refused(Exception):
    """There is no structure to use; the message says why."""


class Leaves:
    """The variables of a tree, each once."""

    def __init__(self) -> None:
        self.variables: list[Any] = []

    def at(self, v: Any) -> int:
        """The number of a variable."""
        for k, known in enumerate(self.variables):
            if known is v:
                return k
        self.variables.append(v)
        return len(self.variables) - 1


# -- views of variables ----------------------------------------------------------------------------


def _op(v: Any) -> Any:
    """The Op that made v, its core if blockwise; None for what is given."""
    if v.owner is None:
        return None
    op = v.owner.op
    return op.core_op if isinstance(op, Blockwise) else op


def plain(v: Any) -> Any:
    """v without dimensions of 1 in front: what a batch of one is one of; None for other batches."""
    while v.ndim > 2 and isinstance(_op(v), DimShuffle):
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


def _seen(v: Any) -> Any:
    """A matrix as the rows look at it: what is elementwise in a batch of one as it is."""
    core = plain(v)
    if core is not None and core.owner is not None and core.owner.inputs[0] is v:
        return v if isinstance(_op(v), Elemwise) else core
    return core


def _number(v: Any) -> Any:
    """v as a number, where all its dimensions are 1; else None."""
    if not all(v.type.broadcastable):
        return None
    if isinstance(v, Constant):
        return pt.constant(np.asarray(v.data).reshape(()))
    if isinstance(_op(v), DimShuffle) and v.owner.inputs[0].ndim == 0:
        return v.owner.inputs[0]
    return v.dimshuffle(()) if v.ndim else v


def _transposed(v: Any) -> Any:
    """What v is the transpose of; None where it is not one."""
    is_one = isinstance(_op(v), DimShuffle) and v.owner.op.new_order == (1, 0)
    return v.owner.inputs[0] if is_one else None


def _are_transposes(a: Any, b: Any) -> bool:
    return _transposed(a) is b or _transposed(b) is a


def _is_scalar_op(v: Any, kind: Any) -> bool:
    op = _op(v)
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, kind)


# -- Toeplitz: entries that depend on |i - j| alone ------------------------------------------------


def _column(v: Any) -> Any:
    """The first column of a symmetric Toeplitz matrix, as a variable; None for other ones."""
    if isinstance(v, Constant):
        core = plain(v)
        found = None if core is None else constants.toeplitz_column(np.asarray(core.data))
        return None if found is None else pt.constant(found)
    op = _op(v)
    if isinstance(op, AdvancedSubtensor) and len(v.owner.inputs) == 2:
        of, at = v.owner.inputs
        if of.ndim == 1 and isinstance(at, Constant):
            found = constants.toeplitz_column(np.asarray(at.data))
            return None if found is None else of[found]
        return None
    if not isinstance(op, Elemwise) or len(v.owner.outputs) > 1:
        return None
    made = []
    for x in v.owner.inputs:
        number = _number(x)
        if number is None:
            column = _column(x)
            if column is None:
                return None
            made.append(column)
        else:
            made.append(number.dimshuffle("x"))
    if all(x.type.broadcastable == (True,) for x in made):
        return None
    return op(*made)


# -- one function for each Op ----------------------------------------------------------------------


def _eye(v: Any, leaves: Leaves) -> Any:
    n, m, k = v.owner.inputs
    same = n is m or (isinstance(n, Constant) and isinstance(m, Constant) and n.data == m.data)
    if not same or not isinstance(k, Constant) or k.data != 0:
        return None
    return ("identity", leaves.at(pt.constant(np.ones((), v.dtype))))


def _alloc_diag(v: Any, leaves: Leaves) -> Any:
    d = v.owner.inputs[0]
    if d.ndim != 1:
        return None
    if v.owner.op.offset != 0:
        return ("off", str(v.owner.op.offset), leaves.at(d))
    if isinstance(_op(d), Alloc) and d.owner.inputs[0].ndim == 0:
        return ("identity", leaves.at(d.owner.inputs[0]))
    return ("diagonal", leaves.at(d))


def _kron(v: Any, leaves: Leaves) -> Any:
    factors: list[Any] = []
    for x in v.owner.inputs:
        tree = _kron(x, leaves) if isinstance(_op(x), KroneckerProduct) else None
        if x.ndim != 2:
            return None
        factors += tree[1:] if tree else [("symmetric", leaves.at(x))]
    return ("kron", *factors)


def _blocks(v: Any, leaves: Leaves) -> Any:
    made = []
    for x in v.owner.inputs:
        core = plain(x)
        if core is None:
            return None
        made.append(_tree(core, leaves) or ("dense", leaves.at(core)))
    return ("blocks", *made)


def _dot(v: Any, leaves: Leaves) -> Any:
    left, right = v.owner.inputs
    if left.ndim != 2 or right.ndim != 2:
        return None
    if _are_transposes(left, right):
        return ("root", leaves.at(left))
    if isinstance(_op(left), Dot):
        W, C = left.owner.inputs
        if _are_transposes(W, right):
            return ("congruence", leaves.at(W), leaves.at(C))
    if isinstance(_op(right), Dot):
        C, back = right.owner.inputs
        if _are_transposes(left, back):
            return ("congruence", leaves.at(left), leaves.at(C))
    if _is_scalar_op(left, scalars.Mul) and len(left.owner.inputs) == 2:
        for W, c in (left.owner.inputs, left.owner.inputs[::-1]):
            is_row = isinstance(_op(c), DimShuffle) and c.owner.op.new_order == ("x", 0)
            if is_row and W.ndim == 2 and _are_transposes(W, right):
                return ("weighted", leaves.at(W), leaves.at(c.owner.inputs[0]))
    return None


def _add(v: Any, leaves: Leaves) -> Any:
    terms: list[Any] = []
    for x in v.owner.inputs:
        number = _number(x)
        if number is not None:
            terms.append(("constant", leaves.at(number)))
            continue
        core = _seen(x)
        tree = None if core is None else _tree(core, leaves)
        if tree is None:
            return None
        terms += tree[1:] if tree[0] == "sum" else [tree]
    return ("sum", *terms)


def _sub(v: Any, leaves: Leaves) -> Any:
    made: list[Any] = []
    for k, x in enumerate(v.owner.inputs):
        core = _seen(x)
        tree = None if core is None else _tree(core, leaves)
        if tree is not None and k == 1:
            tree = _multiple(pt.constant(-np.ones((), v.dtype)), tree, leaves)
        if tree is None:
            return None
        made += tree[1:] if tree[0] == "sum" else [tree]
    return ("sum", *made)


def _mul(v: Any, leaves: Leaves) -> Any:
    numbers: list[Any] = []
    rest: list[Any] = []
    for x in v.owner.inputs:
        number = _number(x)
        (rest if number is None else numbers).append(x if number is None else number)
    if len(rest) != 1 or not numbers or (core := _seen(rest[0])) is None:
        return None
    return _times(pt.mul(*numbers) if len(numbers) > 1 else numbers[0], core, leaves)


def _divided(v: Any, leaves: Leaves) -> Any:
    x, y = v.owner.inputs
    number, core = _number(y), _seen(x)
    if number is None or core is None:
        return None
    return _times(pt.reciprocal(number), core, leaves)


def _times(number: Any, core: Any, leaves: Leaves) -> Any:
    tree = _tree(core, leaves)
    return None if tree is None else _multiple(number, tree, leaves)


def _multiple(number: Any, tree: Any, leaves: Leaves) -> Any:
    """number times a tree: what is simple takes it up."""
    if tree[0] in SIMPLE:
        return (*tree[:-1], leaves.at(number * leaves.variables[tree[-1]]))
    if tree[0] == "sum" and all(t[0] in SIMPLE for t in tree[1:]):
        return ("sum", *(_multiple(number, t, leaves) for t in tree[1:]))
    return ("scaled", leaves.at(number), tree)


def _inverse(v: Any, leaves: Leaves) -> Any:
    """Of a precision matrix."""
    core = _seen(v.owner.inputs[0])
    tree = None if core is None else _tree(core, leaves)
    return None if tree is None else ("inverse", tree)


def _flipped(tree: Any) -> Any:
    """The transpose: all but vectors beside the diagonal are symmetric."""
    if tree[0] == "off":
        return ("off", str(-int(tree[1])), tree[2])
    return tuple(_flipped(t) if isinstance(t, tuple) else t for t in tree)


_ROWS: tuple[tuple[Any, Callable[[Any, Leaves], Any]], ...] = (
    (Eye, _eye),
    (AllocDiag, _alloc_diag),
    (KroneckerProduct, _kron),
    (BlockDiagonal, _blocks),
    (Dot, _dot),
    (MatrixInverse, _inverse),
)
_SCALAR_ROWS: tuple[tuple[Any, Callable[[Any, Leaves], Any]], ...] = (
    (scalars.Add, _add),
    (scalars.Sub, _sub),
    (scalars.Mul, _mul),
    (scalars.TrueDiv, _divided),
)


def _constant(v: Any, leaves: Leaves) -> Any:
    kind, a = constants.what(np.asarray(v.data))
    if kind == "dense":
        return None
    if kind != "band":
        return (kind, leaves.at(pt.constant(np.asarray(a))))
    terms = [("off", str(k), leaves.at(pt.constant(d))) for k, d in a.items()]
    return ("sum", *(("diagonal", t[2]) if t[1] == "0" else t for t in terms))


def _tree(v: Any, leaves: Leaves) -> Any:
    """The tree of a matrix; None where it has no structure that is known."""
    if isinstance(v, Constant) and v.data.ndim == 2 and v.data.shape[0] == v.data.shape[1] > 0:
        found = _constant(v, leaves)
        if found is not None:
            return found
    turned = _transposed(v)
    if turned is not None:
        tree = _tree(turned, leaves)
        return None if tree is None else _flipped(tree)
    for kind, row in _ROWS:
        if isinstance(_op(v), kind):
            return row(v, leaves)
    if isinstance(_op(v), Elemwise):
        for kind, row in _SCALAR_ROWS:
            if _is_scalar_op(v, kind):
                found = row(v, leaves)
                if found is not None:
                    return found
    column = _column(v)
    return None if column is None else ("toeplitz", leaves.at(column))


def _kinds(tree: Any) -> set[str]:
    inner = set().union(*(_kinds(t) for t in tree[1:] if isinstance(t, tuple)))
    return {tree[0]} | inner


def _numbered(tree: Any, places: dict[int, int]) -> Any:
    """The tree with its leaves numbered in the order in which they stand in it."""
    return tuple(
        _numbered(t, places)
        if isinstance(t, tuple)
        else t
        if isinstance(t, str)
        else places.setdefault(t, len(places))
        for t in tree
    )


def recognise(K: Any) -> tuple[Any, list[Any]]:
    """The tree of a positive definite matrix, and the variables that its numbers stand for."""
    core = _seen(K)
    if core is None:
        raise Refused("a batch of matrices")
    leaves = Leaves()
    tree = _tree(core, leaves)
    if tree is None:
        raise Refused(f"no structure is known of {core.owner.op if core.owner else core}")
    kinds = _kinds(tree)
    if not kinds & PAYS:
        raise Refused("nothing to gain: a multiple of the identity")
    core = tree[1] if tree[0] == "inverse" else tree
    terms = core[1:] if core[0] == "sum" else (core,)
    if not any(_kinds(t) & DEFINITE for t in terms):
        raise Refused("a product of factors without a diagonal beside it is singular")
    places: dict[int, int] = {}
    tree = _numbered(tree, places)
    return tree, [leaves.variables[k] for k in places]
