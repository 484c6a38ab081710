"""Trees as programs take them: a constant matrix without other structure, times a number and with a
multiple of the identity, by its eigenvectors, which are computed once when a graph is compiled."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytensor.scalar
import pytensor.tensor as pt

__all__ = ["eigen_pays", "in_blocks", "settled"]

MOST = 2048  # rows: of more the eigenvectors take longer than tens of factors
_GRADED = 4096  # the largest diagonal entry, or row, by the smallest
_APART = 1 / 16  # from the nearest multiple of the identity, by the largest entry
_BYTES = 1 << 26  # of what is kept
_found: dict[tuple[bytes, str], tuple[Any, Any]] = {}


def eigen_pays(a: Any) -> bool:
    """Is it symmetric to rounding, finite, and of few enough rows? Its eigenvalues are right to
    rounding of the largest one. Factors give more of a graded matrix, whose small numbers have
    their own digits, and near a multiple of the identity, which may be taken away."""
    if a.dtype.char not in "fd" or a.shape != a.T.shape or not 2 <= len(a) <= MOST:
        return False
    if not np.isfinite(a).all():
        return False
    sizes = np.abs(a).max(axis=1)
    with np.errstate(over="ignore"):
        off = np.abs(a - a.T).max()
    if not off <= 8 * np.finfo(a.dtype).eps * sizes.max():
        return False
    diagonal = np.diagonal(a)
    centre = diagonal.astype(float).mean()
    apart = max(np.abs(diagonal - centre).max(), np.abs(np.tril(a, -1)).max())
    own = diagonal[sizes > 0] if (diagonal[sizes > 0] > 0).all() else sizes[sizes > 0]
    return bool(own.size and own.max() <= _GRADED * own.min() and apart >= _APART * sizes.max())


def _eigen(a: Any, dtype: str) -> tuple[Any, Any]:
    """(V, w) of V diag(w) V' of its lower triangle; the last few are kept, as a graph is rewritten
    in several passes."""
    key = hashlib.blake2b(a.astype(float).tobytes()).digest(), dtype
    found = _found.pop(key, None)
    if found is None:
        w, V = np.linalg.eigh(a.astype(float))
        found = pt.constant(V.astype(dtype)), pt.constant(w.astype(dtype))
    _found[key] = found
    while len(_found) > 1 and sum(V.data.nbytes for V, _ in list(_found.values())) > _BYTES:
        _found.pop(next(iter(_found)), None)
    return found


def _rotated(terms: Any, leaves: Any) -> Any:
    """c C + s I of one constant C; None where there is anything else."""
    of = {t[1] for t in terms if t[0] == "known"}
    if len(of) != 1 or any(t[0] not in ("known", "identity") for t in terms):
        return None
    constant = leaves.variables[of.pop()]
    parts = [leaves.variables[t[-1]] for t in terms]
    dtype = pytensor.scalar.upcast(constant.dtype, *(x.dtype for x in parts))
    V, w = _eigen(np.asarray(constant.data), dtype)
    d = [x * w if t[0] == "known" else x for t, x in zip(terms, parts, strict=True)]
    return ("rotated", leaves.at(V), leaves.at(pt.add(*d) if len(d) > 1 else d[0]))


def in_blocks(tree: Any, dense: Any) -> Any:
    """A block: by its structure, or dense where that does not stand beside other terms."""
    if tree is None or tree[0] == "dense":
        return dense
    return ("either", dense, tree) if tree[0] in ("rotated", "framed", "blocks") else tree


def settled(tree: Any, leaves: Any) -> Any:
    """The tree with rotations in place of constants; None where these, or deviations on both sides
    of a matrix, stand beside other terms, of which there is no way by structure."""
    name, *rest = tree
    if name == "known" or (name == "sum" and any(t[0] == "known" for t in rest)):
        return _rotated(rest if name == "sum" else [tree], leaves)
    if name == "framed":
        inner = settled(rest[1], leaves)
        return None if inner is None else ("framed", rest[0], inner)
    if name == "blocks":
        made = [t[2] if t[0] == "either" else settled(t, leaves) for t in rest]
        return None if None in made else (name, *made)
    if name == "inverse":
        return _inverse(rest[0], leaves)
    return None if _has(tree) else _among_others(tree)


def _among_others(tree: Any) -> Any:
    if tree[0] == "either":
        return tree[1]
    return tuple(_among_others(t) if isinstance(t, tuple) else t for t in tree)


def _inverse(tree: Any, leaves: Any) -> Any:
    inner = settled(tree, leaves)
    if inner is None:
        return None
    if inner[0] == "rotated":
        return (*inner[:2], leaves.at(pt.reciprocal(leaves.variables[inner[2]])))
    if inner[0] == "framed":
        back = _inverse(inner[2], leaves)
        return ("framed", leaves.at(pt.reciprocal(leaves.variables[inner[1]])), back)
    return ("inverse", inner)


def _has(tree: Any) -> bool:
    return tree[0] != "either" and _is_in(tree)


def _is_in(tree: Any) -> bool:
    return tree[0] in ("known", "framed") or any(_has(t) for t in tree if isinstance(t, tuple))
