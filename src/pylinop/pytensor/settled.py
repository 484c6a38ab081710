"""Trees as programs take them: a constant matrix without other structure, times a number and with a
multiple of the identity, by its eigenvectors, which are computed once when a graph is compiled."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import numpy as np
import pytensor.tensor as pt

__all__ = ["eigen_pays", "settled"]

MOST = 2048  # rows: of more the eigenvectors take longer than tens of factors
_KEPT = 8
_found: OrderedDict[tuple[bytes, str], tuple[Any, Any]] = OrderedDict()


def eigen_pays(a: Any) -> bool:
    """Is it symmetric to rounding, finite, and of few enough rows?"""
    if a.dtype.char not in "fd" or a.shape != a.T.shape or not 2 <= len(a) <= MOST:
        return False
    if not np.isfinite(a).all():
        return False
    return bool(np.abs(a - a.T).max() <= 8 * np.finfo(a.dtype).eps * np.abs(a).max())


def _eigen(a: Any) -> tuple[Any, Any]:
    """(V, w) of V diag(w) V', in the precision of a, of its lower triangle; the last few are kept,
    as a graph is rewritten in several passes."""
    key = hashlib.blake2b(a.tobytes()).digest(), a.dtype.str
    if key not in _found:
        w, V = np.linalg.eigh(a.astype(float))
        _found[key] = pt.constant(V.astype(a.dtype)), pt.constant(w.astype(a.dtype))
    _found.move_to_end(key)
    while len(_found) > _KEPT:
        _found.popitem(last=False)
    return _found[key]


def _rotated(terms: Any, leaves: Any) -> Any:
    """c C + s I of one constant C; None where there is anything else."""
    of = {t[1] for t in terms if t[0] == "known"}
    if len(of) != 1 or any(t[0] not in ("known", "identity") for t in terms):
        return None
    V, w = _eigen(np.asarray(leaves.variables[of.pop()].data))
    parts = [leaves.variables[t[-1]] for t in terms]
    d = [x * w if t[0] == "known" else x for t, x in zip(terms, parts, strict=True)]
    return ("rotated", leaves.at(V), leaves.at(pt.add(*d) if len(d) > 1 else d[0]))


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
        made = [settled(t, leaves) for t in rest]
        return None if None in made else (name, *made)
    if name == "inverse":
        return _inverse(rest[0], leaves)
    return None if _has(tree) else tree


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
    return tree[0] in ("known", "framed") or any(_has(t) for t in tree if isinstance(t, tuple))
