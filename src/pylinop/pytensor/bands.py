"""Trees of bands: products of one with its transpose, as precisions of autoregressions are written,
and entries of a diagonal that are set or added to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import Constant
from .program import BAND, offset_of

__all__ = ["by_entries", "gram"]

SPREAD = 4  # diagonals from the lowest to the highest one of a factor: 9 of the product


def _terms(tree: Any) -> list[Any] | None:
    """Those of a band; None of another tree."""
    terms = list(tree[1:]) if tree[0] == "sum" else [tree]
    return terms if all(t[0] in BAND for t in terms) else None


def _rows(X: Any) -> Any:
    n = X.type.shape[0] if X.type.shape[0] is not None else X.type.shape[1]
    return X.shape[0] if n is None else n


def _diagonals(terms: list[Any], leaves: Any, X: Any) -> dict[int, Any]:
    """The vectors on the diagonals of X."""
    found: dict[int, Any] = {}
    for t in terms:
        k, v = offset_of(t), leaves.variables[t[-1]]
        v = pt.alloc(v, _rows(X)) if t[0] == "identity" else v
        found[k] = found[k] + v if k in found else v
    return found


def _part(v: Any, first: int, last: int) -> Any:
    """Without the first and the last entries."""
    return v[first:] if last == 0 else v[first:-last]


def _padded(v: Any, first: int, last: int) -> Any:
    """With so many zeros on either side."""
    around = [pt.zeros(size, v.dtype) if size else None for size in (first, last)]
    parts = [x for x in (around[0], v, around[1]) if x is not None]
    return pt.concatenate(parts) if len(parts) > 1 else v


def gram(tree: Any, leaves: Any, X: Any) -> Any:
    """The tree of X X' by that of X, a band of few diagonals; None of other ones.

    Entry (i, i + m) is the sum over k of X[i, i + k] X[i + m, i + k], for the rows i that have
    both."""
    terms = _terms(tree)
    if terms is None or not any(t[0] == "off" for t in terms):
        return None
    offsets = [offset_of(t) for t in terms]
    spread = max(offsets) - min(offsets)
    n = X.type.shape[0]
    if spread > SPREAD or (n is not None and n <= 2 * SPREAD):
        return None
    x = _diagonals(terms, leaves, X)
    made: list[Any] = []
    for m in range(spread + 1):
        parts = []
        for k, of in x.items():
            q = k - m
            if q not in x:
                continue
            first = max(-k, -q - m, 0)
            end = max(k, q + m, m, 0)
            product = _part(of, first - max(-k, 0), end - max(k, 0)) * _part(
                x[q], first + m - max(-q, 0), end - m - max(q, 0)
            )
            parts.append(_padded(product, first, end - m))
        if parts:
            at = leaves.at(pt.add(*parts) if len(parts) > 1 else parts[0])
            made += [("diagonal", at)] if m == 0 else [("off", str(s * m), at) for s in (1, -1)]
    return ("sum", *made)


def by_entries(v: Any, tree: Any, leaves: Any) -> Any:
    """The tree of a matrix with constant entries of its diagonal set, where it is a band, or added
    to; `tree` is that of the one before. None where it is not seen."""
    before, value, *at = v.owner.inputs
    op = v.owner.op
    if op.idx_list != (0, 1) or len(at) != 2 or not all(isinstance(k, Constant) for k in at):
        return None
    rows, columns = (np.asarray(k.data) for k in at)
    if rows.ndim > 1 or not np.array_equal(rows, columns) or rows.dtype.kind not in "iu":
        return None
    if getattr(op, "ignore_duplicates", False):
        return None
    n = _rows(before)
    if not op.set_instead_of_inc:
        d = pt.inc_subtensor(pt.zeros(n, v.dtype)[rows], value)
        return ("sum", *(tree[1:] if tree[0] == "sum" else [tree]), ("diagonal", leaves.at(d)))
    terms = _terms(tree)
    if terms is None:
        return None
    d = _diagonals([t for t in terms if t[0] != "off"], leaves, before).get(0, pt.zeros(n, v.dtype))
    d = pt.set_subtensor(d[rows], value)
    off = [t for t in terms if t[0] == "off"]
    return ("sum", ("diagonal", leaves.at(d)), *off) if off else ("diagonal", leaves.at(d))
