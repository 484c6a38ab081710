"""QR and LU of Krons and BlockDiags with tall parts beside wide ones.

The factors of the parts give Q = Q_1 (x) Q_2 and an R = R_1 (x) R_2 that is upper trapezoidal,
with fewer columns than Q is to have: with each tall part's Q completed to a square one the
missing columns are among those that no part's own columns make, and R has zeros there. For L the
rows with the pivots come first, and the missing columns are unit vectors."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .dispatch import dense
from .unitary import completed


def _firsts(join: Any, sizes: list[int], own: list[int]) -> Any:
    """Of the joined rows, which are of the first ``own`` of each part."""
    marks = [np.arange(m) < k for m, k in zip(sizes, own, strict=True)]
    if join is _core.BlockDiag:
        return np.concatenate(marks)
    return functools.reduce(lambda a, b: (a[:, None] & b).ravel(), marks)


def _order(join: Any, parts: list[Any]) -> tuple[Any, int]:
    """The joined rows, those first that the parts' own columns make, and how many these are."""
    own = [min(f.shape[-2:]) for f in parts]
    first = _firsts(join, [f.shape[-2] for f in parts], own)
    return np.argsort(~first, kind="stable"), int(first.sum())


def _grown(op: Any, upper: Any, rows: int) -> Any:
    """The upper factor with rows of zeros below."""
    zeros = rows - upper.shape[-2]
    if not zeros:
        return upper
    empty = _core.Zeros((*op.shape[:-2], zeros, op.shape[-1]), inexact(op.dtype))
    return _core.Block([[upper], [empty]])


def _square_q(f: Any) -> Generator[Any, Any, Any]:
    """(Q, R) of a part with a square Q and as many rows of R as are not zero by its shape."""
    m, n = f.shape[-2:]
    if m <= n:
        return (yield f, "reduced")
    if f._head == "dense" and f._init is not None:  # in m n numbers
        q, r = completed(dense(f))
        return q, _core.Triangular(np.triu(r[..., :n, :]), False)
    q, r = yield f, "complete"
    return q, r[..., :n, :]


def qr_asks(question: Any, parts: list[Any], mode: str) -> list[Any]:
    """What `qr` asks of the parts: not of tall arrays, whose reflections it takes itself."""
    found = []
    for f in parts:
        m, n = f.shape[-2:]
        if mode == "r" or m <= n:
            found.append((question, f, "r" if mode == "r" else "reduced"))
        elif f._head != "dense" or f._init is None:
            found.append((question, f, "complete"))
    return found


def qr(op: Any, join: Any, parts: list[Any], mode: str) -> Generator[Any, Any, Any]:
    """The QR factors; a generator that asks for those of the parts."""
    m, n = op.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    left, right = [], []
    for f in parts:
        if mode == "r":
            right.append((yield f, "r"))
            continue
        q, r = yield from _square_q(f)
        left.append(q)
        right.append(r)
    r = _grown(op, join(*right), k)
    if mode == "r":
        return r
    order, _ = _order(join, parts)
    whole = join(*left)
    if k < m:
        return whole @ _core.Selection(order[:k], m, whole.dtype).T, r
    return whole @ _core.Permutation(order, whole.dtype).T, r


def lu(op: Any, join: Any, parts: list[Any]) -> Generator[Any, Any, Any]:
    """P, L and U; a generator that asks for those of the parts."""
    m, n = op.shape[-2:]
    k, dtype, found = min(m, n), inexact(op.dtype), []
    for f in parts:
        found.append((yield (f,)))
    p, low, up = (join(*one) for one in zip(*found, strict=True))
    order, own = _order(join, parts)
    if (order != np.arange(m)).any():
        rows = _core.Permutation(order, dtype)
        p, low = p @ rows.T, rows @ low
    if own < k:
        unit = _core.Diag(np.ones(k - own, dtype), -own, (m, k - own))
        low = _core.Block([[low, unit]])
    return p, low, _grown(op, up, k)
