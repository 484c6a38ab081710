"""A variable as a tree of pylinop's kinds over variables, one function for each Op; or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt

from . import constants
from ._compat import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    Alloc,
    AllocDiag,
    BlockDiagonal,
    CholeskySolve,
    Constant,
    DimShuffle,
    Dot,
    Einsum,
    Elemwise,
    Eye,
    IncSubtensor,
    KroneckerProduct,
    MatrixInverse,
    Shape,
    SolveTriangular,
    SpecifyShape,
    Subtensor,
    clone_replace,
    scalars,
)
from .bands import by_entries, gram
from .framing import framed, paired
from .gathers import gathered
from .products import factors
from .settled import eigen_pays, in_blocks, settled
from .stationary import lags
from .views import (
    are_transposes,
    is_scalar_op,
    number_of,
    op_of,
    plain,
    seen,
    transposed,
    vector_of,
)

__all__ = ["Refused", "by_precision", "kinds", "recognise"]

SIMPLE = {
    "identity",
    "constant",
    "diagonal",
    "off",
    "sparse",
    "toeplitz",
    "known",
}  # multiples of them are they themselves
PAYS = {"kron", "blocks", "root", "weighted", "congruence", "rotated", *SIMPLE} - {"identity"}
DEFINITE = {
    "kron",
    "toeplitz",
    "blocks",
    "diagonal",
    "identity",
    "sparse",
    "rotated",
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
    if not (same or _are_of_a_square(n, m)) or not isinstance(k, Constant) or k.data != 0:
        return None
    return ("identity", leaves.at(pt.constant(np.ones((), v.dtype))))


def _are_of_a_square(n: Any, m: Any) -> bool:
    """Are they the lengths of one product W W', as `identity_like` asks for them?"""
    lengths = []
    for k, v in enumerate((n, m)):
        if not isinstance(op_of(v), Subtensor) or not isinstance(op_of(v.owner.inputs[0]), Shape):
            return False
        shape, *at = v.owner.inputs
        if len(at) != 1 or not isinstance(at[0], Constant) or at[0].data != k:
            return False
        lengths.append(shape.owner.inputs[0])
    x, y = lengths
    return x is y and isinstance(op_of(x), Dot) and x.ndim == 2 and are_transposes(*x.owner.inputs)


def _alloc(v: Any, leaves: Any) -> Any:
    number = number_of(v.owner.inputs[0])
    if number is None or v.ndim != 2 or any(v.type.broadcastable):
        return None
    return ("constant", leaves.at(number))


def _specified(v: Any, leaves: Any) -> Any:
    """Of a size that is said: a diagonal and W W' have it themselves, and it is checked there."""
    x, *sizes = v.owner.inputs
    told = [np.ndim(n.data) == 0 and n.data is not None for n in sizes if isinstance(n, Constant)]
    if v.ndim != 2 or len(told) != 2 or not all(told):
        return None
    n, m = (int(size.data) for size in sizes)
    if n != m or x.owner is None:
        return None
    op, inner = op_of(x), x.owner.inputs
    if isinstance(op, AllocDiag) and inner[0].ndim == 1:
        d = pt.specify_shape(inner[0], (n - abs(op.offset),))
        return _alloc_diag(pt.diag(d, op.offset), leaves)
    if isinstance(op, Dot) and are_transposes(*inner):
        W = pt.specify_shape(inner[0], (n, None))
        return _dot(pt.dot(W, W.T), leaves)
    return None


def _gathered(v: Any, leaves: Any) -> Any:
    """Of groups."""
    found = gathered(v)
    if found is None:
        return None
    name, X, Y = found
    if name == "congruence":
        return ("congruence", leaves.at(X), leaves.at(Y))
    return _by_columns(X, Y, True, leaves)


def _einsum(v: Any, leaves: Any) -> Any:
    """As what it is made of."""
    inner = v.owner.op.fgraph.unfreeze()
    given = dict(zip(inner.inputs, v.owner.inputs, strict=True))
    return _tree(clone_replace(inner.outputs[0], given), leaves) if v.ndim == 2 else None


def _entries(v: Any, leaves: Any) -> Any:
    tree = _tree(v.owner.inputs[0], leaves) if v.ndim == 2 else None
    return None if tree is None else by_entries(v, tree, leaves)


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
        tree = _sized(core, _tree(core, leaves), leaves)
        made.append(in_blocks(tree and settled(tree, leaves), ("dense", leaves.at(core))))
    return ("blocks", *made)


def _dot(v: Any, leaves: Leaves) -> Any:
    left, right = v.owner.inputs
    if left.ndim != 2 or right.ndim != 2:
        return None
    if are_transposes(left, right):
        return _product(left, right, leaves)
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
    return _by_columns(left, right, True, leaves) or _by_columns(right, left, False, leaves)


def _product(left: Any, right: Any, leaves: Leaves) -> Any:
    """W W', of a band as a band."""
    whole = Leaves()
    tree = _tree(left, whole) if left.ndim == 2 else None
    band = None if tree is None else gram(tree, whole, left)
    if band is None:
        return ("root", leaves.at(transposed(right) if transposed(right) is not None else left))
    return _moved(band, whole, leaves)


def _moved(tree: Any, source: Leaves, leaves: Leaves) -> Any:
    """The tree with its numbers among other variables."""
    *most, last = tree
    if not isinstance(last, tuple):
        return (*most, leaves.at(source.variables[last]))
    return (tree[0], *(_moved(t, source, leaves) for t in tree[1:]))


def _by_columns(W: Any, back: Any, is_left: bool, leaves: Leaves) -> Any:
    """W diag(c) W' where the columns of W, or the rows of its transpose, are multiplied."""
    if is_scalar_op(W, scalars.Mul):
        given = list(W.owner.inputs)
    elif is_scalar_op(W, scalars.TrueDiv):
        given = [W.owner.inputs[0], pt.reciprocal(W.owner.inputs[1])]
    else:
        return None
    at = next((k for k, x in enumerate(given) if are_transposes(x, back)), None)
    if at is None:
        return None
    own = given.pop(at)
    if not all(x.type.broadcastable[0 if is_left else 1] for x in given):
        return None
    c = pt.mul(*given) if len(given) > 1 else given[0]
    whole = leaves.at(own if is_left else back)
    number = number_of(c)
    if number is not None:
        return _multiple(number, ("root", whole), leaves)
    return ("weighted", whole, leaves.at(vector_of(c)))


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
    return _merged(terms, leaves)


def _merged(terms: list[Any], leaves: Leaves) -> Any:
    """Their sum, with one Toeplitz matrix in place of several."""
    columns = [t[1] for t in terms if t[0] == "toeplitz"]
    if len(columns) < 2:
        return ("sum", *terms)
    one = ("toeplitz", leaves.at(pt.add(*(leaves.variables[k] for k in columns))))
    at = next(k for k, t in enumerate(terms) if t[0] == "toeplitz")
    rest = [one if k == at else t for k, t in enumerate(terms) if k == at or t[0] != "toeplitz"]
    return ("sum", *rest) if len(rest) > 1 else one


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
    return _merged(made, leaves)


def _mul(v: Any, leaves: Leaves) -> Any:
    numbers: list[Any] = []
    rest: list[Any] = []
    for x in v.owner.inputs:
        number = number_of(x)
        (rest if number is None else numbers).append(x if number is None else number)
    if len(rest) > 1:
        by = _by_pair(rest, numbers, leaves)
        if by is not None:
            return by
        masked = _masked(rest, numbers, leaves) if len(rest) == 2 else None
        return masked or _on_pairs(rest, numbers, leaves)
    if len(rest) != 1 or not numbers or (core := seen(rest[0])) is None:
        return None
    return _times(pt.mul(*numbers) if len(numbers) > 1 else numbers[0], core, leaves)


def _by_pair(rest: list[Any], numbers: list[Any], leaves: Leaves) -> Any:
    """u_i u_j, alone or times the entries of a matrix."""
    found = paired(rest)
    if found is None or len(found[1]) > 1:
        return None
    u, inner = found
    if inner:
        core = seen(inner[0])
        tree = None if core is None else _tree(core, leaves)
        tree = None if tree is None else framed(u, leaves, tree)
    else:
        tree = ("root", leaves.at(u[:, None]))
    if tree is None or not numbers:
        return tree
    return _multiple(pt.mul(*numbers) if len(numbers) > 1 else numbers[0], tree, leaves)


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
    if core is None:
        return None
    if number is None:
        by = y.owner.inputs if is_scalar_op(y, scalars.Mul) else []
        below = [pt.reciprocal(v) for v in by if number_of(v) is None]
        numbers = [pt.reciprocal(number_of(v)) for v in by if number_of(v) is not None]
        above = [x]
        if (number := number_of(x)) is not None:  # s / (u_i u_j)
            numbers, above = [number, *numbers], []
        return _by_pair([*above, *below], numbers, leaves) if below else None
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
    if tree[0] == "framed":
        return (*tree[:2], _multiple(number, tree[2], leaves))
    return ("scaled", leaves.at(number), tree)


def _inverse(v: Any, leaves: Leaves) -> Any:
    """Of a precision matrix."""
    core = seen(v.owner.inputs[0])
    tree = None if core is None else _tree(core, leaves)
    return None if tree is None else ("inverse", _sized(core, tree, leaves))


def _sized(v: Any, tree: Any, leaves: Leaves) -> Any:
    """The tree of v with its number of rows in it: numbers alone, c I and c 1 1', have none."""
    if tree is None or not kinds(tree) <= {"sum", "identity", "constant"}:
        return tree
    terms = list(tree[1:]) if tree[0] == "sum" else [tree]
    n = v.shape[-1]
    kind, i = terms[0]
    c = leaves.variables[i]
    if kind == "identity":
        terms[0] = ("diagonal", leaves.at(pt.alloc(c, n)))
    else:
        terms[0] = ("weighted", leaves.at(pt.ones((n, 1), c.dtype)), leaves.at(c[None]))
    return ("sum", *terms) if tree[0] == "sum" else terms[0]


def _flipped(tree: Any, leaves: Leaves) -> Any:
    """The transpose: vectors beside the diagonal change sides, and factors of which nobody said
    that they are symmetric are transposed. All others are symmetric."""
    kind, *rest = tree
    if kind == "off":
        return ("off", str(-int(rest[0])), rest[1])
    if kind in ("dense", "symmetric", "congruence"):
        return (kind, *rest[:-1], leaves.at(leaves.variables[rest[-1]].mT))
    return tuple(_flipped(t, leaves) if isinstance(t, tuple) else t for t in tree)


_ROWS: tuple[tuple[Any, Callable[[Any, Leaves], Any]], ...] = (
    (Eye, _eye),
    (Alloc, _alloc),
    (AllocDiag, _alloc_diag),
    (KroneckerProduct, _kron),
    (BlockDiagonal, _blocks),
    (Dot, _dot),
    (Einsum, _einsum),
    (SpecifyShape, _specified),
    (IncSubtensor, _entries),
    (AdvancedIncSubtensor, _entries),
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
        return None if tree is None else _flipped(tree, leaves)
    for kind, row in _ROWS:
        if isinstance(op_of(v), kind):
            return row(v, leaves)
    if isinstance(op_of(v), AdvancedSubtensor) and (found := _gathered(v, leaves)) is not None:
        return found
    if isinstance(op_of(v), Elemwise):
        for kind, row in _SCALAR_ROWS:
            if is_scalar_op(v, kind):
                found = row(v, leaves)
                if found is not None:
                    return found
    found = lags(v)
    if found is not None and not found.odd:
        return ("toeplitz", leaves.at(found.values))
    return _known(v, leaves)


def _known(v: Any, leaves: Leaves) -> Any:
    """A constant, times one."""
    if not isinstance(v, Constant) or v.ndim != 2 or not eigen_pays(np.asarray(v.data)):
        return None
    return ("known", leaves.at(v), leaves.at(pt.constant(np.ones((), v.dtype))))


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
    try:
        tree = _sized(core, _tree(core, leaves), leaves)
    except RecursionError:
        raise Refused("its graph is too deep to be read") from None
    tree = tree and settled(tree, leaves)
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
