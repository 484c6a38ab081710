"""A variable as a tree of pylinop's kinds over variables, one function for each Op; or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt

from . import constants
from ._compat import (
    Alloc,
    AllocDiag,
    BlockDiagonal,
    CholeskySolve,
    Constant,
    DimShuffle,
    Dot,
    Elemwise,
    Eye,
    KroneckerProduct,
    MatrixInverse,
    SolveTriangular,
    scalars,
)
from .products import factors
from .stationary import lags
from .views import are_transposes, is_scalar_op, number_of, op_of, plain, seen, transposed

__all__ = ["Refused", "by_precision", "kinds", "recognise"]

SIMPLE = {
    "identity",
    "constant",
    "diagonal",
    "off",
    "sparse",
}  # multiples of them are they themselves
PAYS = {"kron", "toeplitz", "blocks", "root", "weighted", "congruence", *SIMPLE} - {"identity"}
DEFINITE = {
    "kron",
    "toeplitz",
    "blocks",
    "diagonal",
    "identity",
    "sparse",
}  # others are semidefinite


class Refused(Exception):
    """There is no structure to use; the message says why. `few`: there is, and too few rows."""

    def __init__(self, why: str, few: bool = False) -> None:
        super().__init__(why)
        self.few = few


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
    if isinstance(op_of(d), Alloc) and d.owner.inputs[0].ndim == 0:
        return ("identity", leaves.at(d.owner.inputs[0]))
    return ("diagonal", leaves.at(d))


def _kron(v: Any, leaves: Leaves) -> Any:
    factors: list[Any] = []
    for x in v.owner.inputs:
        tree = _kron(x, leaves) if isinstance(op_of(x), KroneckerProduct) else None
        if x.ndim != 2:
            return None
        kind = "unit" if _is_unit(x) else "symmetric"
        factors += tree[1:] if tree else [(kind, leaves.at(x))]
    return ("kron", *factors)


def _is_unit(x: Any) -> bool:
    if isinstance(x, Constant) and x.data.shape[0] == x.data.shape[1] > 0:
        kind, number = constants.what(np.asarray(x.data))
        return bool(kind == "identity" and number == 1)
    return isinstance(op_of(x), Eye) and _eye(x, Leaves()) is not None


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
    if are_transposes(left, right):
        return ("root", leaves.at(left))
    if isinstance(op_of(left), Dot):
        W, C = left.owner.inputs
        if are_transposes(W, right):
            return ("congruence", leaves.at(W), leaves.at(C))
    half = _half_of(left, right)
    if half is not None:
        return ("root", leaves.at(half.mT))
    if isinstance(op_of(right), Dot):
        C, back = right.owner.inputs
        if are_transposes(left, back):
            return ("congruence", leaves.at(left), leaves.at(C))
    if is_scalar_op(left, scalars.Mul) and len(left.owner.inputs) == 2:
        for W, c in (left.owner.inputs, left.owner.inputs[::-1]):
            is_row = isinstance(op_of(c), DimShuffle) and c.owner.op.new_order == ("x", 0)
            if is_row and W.ndim == 2 and are_transposes(W, right):
                return ("weighted", leaves.at(W), leaves.at(c.owner.inputs[0]))
    return None


def _half_of(left: Any, right: Any) -> Any:
    """V = L^-1 A where A' K^-1 A = V' V is written by a solve with K = L L'; None: it is not."""
    if isinstance(op_of(right), CholeskySolve) and op_of(right).lower:
        L, A = right.owner.inputs
        return pt.linalg.solve_triangular(L, A, lower=True) if are_transposes(left, A) else None
    if not isinstance(op_of(right), SolveTriangular):
        return None
    back, V = right.owner.inputs
    if not isinstance(op_of(V), SolveTriangular) or V.ndim != 2:
        return None
    L, A = V.owner.inputs
    first, second = op_of(V), op_of(right)
    fits = are_transposes(back, L) and first.lower and not second.lower and are_transposes(left, A)
    return V if fits and not (first.unit_diagonal or second.unit_diagonal) else None


def _add(v: Any, leaves: Leaves) -> Any:
    terms: list[Any] = []
    for x in v.owner.inputs:
        number = number_of(x)
        if number is not None:
            terms.append(("constant", leaves.at(number)))
            continue
        core = seen(x)
        tree = None if core is None else _tree(core, leaves)
        if tree is None:
            return None
        terms += tree[1:] if tree[0] == "sum" else [tree]
    return ("sum", *terms)


def _sub(v: Any, leaves: Leaves) -> Any:
    made: list[Any] = []
    for k, x in enumerate(v.owner.inputs):
        core = seen(x)
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
        number = number_of(x)
        (rest if number is None else numbers).append(x if number is None else number)
    if len(rest) > 1:
        masked = _masked(rest, numbers, leaves) if len(rest) == 2 else None
        return masked or _on_pairs(rest, numbers, leaves)
    if len(rest) != 1 or not numbers or (core := seen(rest[0])) is None:
        return None
    return _times(pt.mul(*numbers) if len(numbers) > 1 else numbers[0], core, leaves)


def _masked(rest: list[Any], numbers: list[Any], leaves: Leaves) -> Any:
    """A row or a column times the identity, as a diagonal is written for a stack."""
    for unit, x in (rest, rest[::-1]):
        if not isinstance(op_of(x), DimShuffle) or x.owner.op.new_order not in ((0, "x"), ("x", 0)):
            continue
        tree = _tree(unit, leaves) if unit.ndim == 2 else None
        if tree is not None and tree[0] in ("identity", "diagonal"):
            d = pt.mul(x.owner.inputs[0], leaves.variables[tree[1]], *numbers)
            return ("diagonal", leaves.at(d))
    return None


def _on_pairs(rest: list[Any], numbers: list[Any], leaves: Leaves) -> Any:
    """Kernels of the two coordinates of all pairs of points."""
    cores = [seen(x) for x in rest]
    found = None if any(x is None for x in cores) else factors(cores)
    if found is None:
        return None
    tree = ("kron", *(("symmetric", leaves.at(x)) for x in found))
    if not numbers:
        return tree
    return _multiple(pt.mul(*numbers) if len(numbers) > 1 else numbers[0], tree, leaves)


def _divided(v: Any, leaves: Leaves) -> Any:
    x, y = v.owner.inputs
    number, core = number_of(y), seen(x)
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
    core = seen(v.owner.inputs[0])
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
    if kind == "sparse":
        return ("sparse", a[0], leaves.at(pt.constant(a[1])))
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
    turned = transposed(v)
    if turned is not None:
        tree = _tree(turned, leaves)
        return None if tree is None else _flipped(tree)
    for kind, row in _ROWS:
        if isinstance(op_of(v), kind):
            return row(v, leaves)
    if isinstance(op_of(v), Elemwise):
        for kind, row in _SCALAR_ROWS:
            if is_scalar_op(v, kind):
                found = row(v, leaves)
                if found is not None:
                    return found
    found = lags(v)
    return None if found is None or found.odd else ("toeplitz", leaves.at(found.values))


def kinds(tree: Any) -> set[str]:
    """Those in a tree."""
    inner = set().union(*(kinds(t) for t in tree[1:] if isinstance(t, tuple)))
    return {tree[0]} | inner


def by_precision(tree: Any) -> bool:
    """Is it positive definite, and computed by the inverse of some of it?"""
    return tree[0] != "general" and "inverse" in kinds(tree)


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
    core = seen(K)
    if core is None:
        raise Refused("a batch of matrices")
    leaves = Leaves()
    tree = _tree(core, leaves)
    if tree is None:
        raise Refused(f"no structure is known of {core.owner.op if core.owner else core}")
    if not kinds(tree) & PAYS:
        raise Refused("nothing to gain: a multiple of the identity")
    core = tree[1] if tree[0] == "inverse" else tree
    terms = core[1:] if core[0] == "sum" else (core,)
    if not any(kinds(t) & DEFINITE for t in terms):
        raise Refused("a product of factors without a diagonal beside it is singular")
    places: dict[int, int] = {}
    tree = _numbered(tree, places)
    return tree, [leaves.variables[k] for k in places]
