"""Least squares, null spaces and ranges from frames: A = U diag(s) V^H, where U and V are operators
with orthonormal columns and s is in any order.

The frames of a Kron are Krons, and its s are all the products, in one array: so the singular
values of the whole matrix decide which of them count as zero, as in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import memory
from .._base.dtypes import inexact, real_of
from . import banded_qr, prices, trees
from .dispatch import Question, dense, one_call, step
from .operands import tolerance_of
from .properties import known
from .qr import identity_of, orthonormal, qr
from .questions import svdvals
from .singular_values import check_permutation, padded_to


def _lapack(a: Any, want: str) -> Any:
    m, n = a.shape[-2:]
    u, s, vh = np.linalg.svd(a, full_matrices=want == "null" and m < n)
    v = orthonormal(np.swapaxes(vh, -1, -2).conj())
    return (None, padded_to(s, n), v) if want == "null" else (orthonormal(u), s, v)


def _arrays(m: int, n: int, want: str) -> float:
    return 8 + (2.5 * n / m if want == "null" and m < n else 0)


# (op, want) -> (U, s, V), for a "solve", a "range" or a "null" space. Values not in s are zero. For
# a null space V is square, s has a value for each of its columns, and U is not needed. Bases of #
# real spaces are real.
frames = Question(
    _lapack,
    "lstsq, null_space, orth",
    how="LAPACK's gelsd; gesdd for spaces and batches",
    cost="4 m n^2 + 8 n^3",
    kept=lambda want: "frames null" if want == "null" else "frames",
    arrays=_arrays,
    instead=lambda op, want: "14 m n min(m, n)",  # as a part; `tree` has gelsd's of the whole
)


@frames.row(
    *("permutation", "householder", "reflections"),
    called="unitary",
    how="itself where it is unitary",
    cost="a product",
    guard="unitary",
)
def _(op: Any, want: str) -> Any:
    if op._head == "permutation":
        check_permutation(op)
    n = op.shape[-1]
    return op, np.ones((*op.shape[:-2], n), real_of(op.dtype)), identity_of(op, n, n)


def _joined(join: Callable[..., Any], found: Any, want: str) -> tuple[Any, Any]:
    """U and V of a Kron or BlockDiag from those of its parts."""
    u = None if want == "null" else join(*(one[0] for one in found))
    return u, join(*(one[2] for one in found))


# -- least squares --


def cut_of(op: Any, s: Any, rcond: Any) -> Any:
    """The threshold that singular values must pass to count, as an array that fits s."""
    eps = np.finfo(s.dtype).eps
    if rcond is None:
        return max(op.shape[-2:]) * eps * s.max(axis=-1, keepdims=True, initial=0)
    rcond = tolerance_of("rcond", rcond)
    rcond = np.where(rcond < 0, eps, rcond)[..., None]
    return rcond * s.max(axis=-1, keepdims=True, initial=0)


def _gelsd(a: Any, b: Any, rcond: Any) -> tuple[Any, ...]:
    if b.ndim == 2:
        return np.linalg.lstsq(a, b, rcond=rcond)
    columns = np.moveaxis(b, -2, 0).reshape(b.shape[-2], -1)  # one factor for all
    x, rest, rank, s = np.linalg.lstsq(a, columns, rcond=rcond)
    x = np.moveaxis(x.reshape(-1, *b.shape[:-2], b.shape[-1]), 0, -2)
    return x, rest.reshape(*b.shape[:-2], b.shape[-1]) if rest.size else rest, rank, s


def _structured(op: Any, said: trees.Node | None = None) -> bool:
    """Has the operand, below views and multiples, frames of its own? LAPACK's gelsd is quicker than
    frames by an SVD. ``said`` is told which rows may not act."""
    while op._by in ("view", "scaled") and op._head in ("view", "scaled"):
        row = frames.row_of(op)
        if row is None or not frames.allows(row, op, said, True):
            return False
        op = op._operands[0]
    row = frames.row_of(op)
    return row is not None and frames.allows(row, op, said, True)


def _of_band(op: Any, b: Any, cut: Any) -> Any:
    """The four results of numpy.linalg.lstsq for a band of full rank, b (..., m, k); None for
    anything else. ``cut`` says which singular values count."""
    if op._head not in (*banded_qr.KINDS, "view", "sliced") or 0 in op.shape[-2:]:
        return None
    bands = banded_qr.bands_within(op)
    if not bands or not all(np.isfinite(d).all() for _, d in bands) or not np.isfinite(b).all():
        return None
    m, n = op.shape[-2:]
    tall = op if m >= n else op.H
    with step("lstsq-within-band", op, _band_price(tall, b)):
        q, r = qr(tall, "reduced")
        s = svdvals(r)
        if not (s > cut(s)).all():
            return None
        if m >= n:
            x = _core._build("solver", r) @ (q.H @ b)
        else:
            x = q @ (_core._build("solver", r.H) @ b)
        rest = np.empty(0, s.dtype)
        if m > n and b.shape[-1]:
            rest = (np.abs(b - op @ x) ** 2).sum(axis=-2)
    rank = np.full(op.shape[:-2], n if m >= n else m)
    return x, rest, rank, np.broadcast_to(s, (*op.shape[:-2], s.shape[-1])).copy()


def _band_price(tall: Any, b: Any) -> prices.Price:
    """Q^H b, a solve with R and what is left, beside the factors."""
    columns = math.prod(b.shape[-1:])
    own = prices.read("O(n w)").price(tall, "band")
    return own._replace(flops=own.flops * columns, seconds=own.seconds + prices.ROW * columns / 9)


def _dense_price(op: Any, b: Any) -> prices.Price:
    """gelsd of the dense form: as two SVDs without vectors, and b once."""
    columns = math.prod(b.shape[-1:])
    own = prices.read("4 m n min(m, n)").price(op, "dense", 2.0)
    return own.plus(prices.rated("dense", 4.0 * op.size * columns, b.nbytes, b.nbytes))


def tree(op: Any, b: Any, rcond: Any = None) -> trees.Node:
    """What `lstsq` does, priced; nothing is computed."""
    if _is_banded(op):
        tall = op if op.shape[-2] >= op.shape[-1] else op.H
        found = trees.planned(qr, tall, "reduced")
        if found.rule:  # and the singular values of R, which say whether the rank is full
            n, (low, up) = tall.shape[-1], known(tall, "band")
            w = int(min(low + up, n - 1))
            dtype = inexact(op.dtype)
            r = _core.Banded((0, w), np.broadcast_to(np.ones((), dtype), (w + 1, n)))
            node = trees.leaf("lstsq-within-band", op, _band_price(tall, b))
            node.parts = [found, trees.planned(svdvals, r)]
            node.unsure, node.instead = "where the rank is not full", _otherwise(op, b)
            return node
        refused = [row for part in found.walk() for row in part.refused]
        return _otherwise(op, b, refused)
    return _otherwise(op, b)


def _otherwise(op: Any, b: Any, refused: list[dict[str, Any]] | None = None) -> trees.Node:
    said = trees.Node(frames.word, op)
    if len(op.shape) > 2 or _structured(op, said):
        node = trees.planned(frames, op, "solve")
    else:
        node = trees.leaf("lstsq-dense", op, _dense_price(op, b))
        node.refused = said.refused
    node.refused += refused or []
    return node


def _is_banded(op: Any) -> bool:
    known = op._head in (*banded_qr.KINDS, "view", "sliced") and 0 not in op.shape[-2:]
    return known and bool(banded_qr.bands_within(op))


@one_call("lstsq")
def lstsq(op: Any, b: Any, rcond: Any) -> Any:
    """The four results of numpy.linalg.lstsq, for a matrix b (..., m, k)."""
    if rcond is not None:
        tolerance_of("rcond", rcond)
    found = _of_band(op, b, lambda s: cut_of(op, s, rcond))
    if found is not None:
        return found
    said = None if trees.here() is None else trees.Node(frames.word, op)
    if len(op.shape) == 2 and not _structured(op, said):
        price = _dense_price(op, b)
        taken = inexact(op.dtype).itemsize * (3 * op.size + 3 * b.size)
        memory.slow(op, price.seconds, taken, -1, "lstsq")
        a = dense(op, 2 + 3 * b.size / max(op.size, 1))
        with step("lstsq-dense", op, price) as node:
            if node is not None and said is not None:
                node.refused = said.refused
            return _gelsd(a, b, rcond)
    m, n = op.shape[-2:]
    u, s, v = frames(op, "solve")
    if s.ndim > 1 or op.ndim > 2:
        s = np.broadcast_to(s, (*op.shape[:-2], s.shape[-1]))
    keep = s > cut_of(op, s, rcond)
    inverses = np.zeros(keep.shape, s.dtype)
    np.divide(1, s, out=inverses, where=keep)
    x = v @ (inverses[..., None] * (u.H @ b))
    if x.dtype.kind == "c" and not (b.dtype.kind == "c" or op.dtype.kind == "c"):
        x = np.ascontiguousarray(x.real)
    rank = keep.sum(axis=-1)
    rest = np.empty((*np.shape(rank), 0), s.dtype)
    if m > n and (rank == n).all() and 0 not in b.shape[-1:]:
        rest = (np.abs(b - op @ x) ** 2).sum(axis=-2)
    return x, rest, rank, padded_to(np.sort(s, axis=-1)[..., ::-1], min(m, n))


# -- null space, range --


def _columns(q: Any, keep: Any, what: str) -> Any:
    """The marked columns of an operator, the same number in each element of a batch."""
    count = keep.sum(axis=-1)
    if count.size and (count != count.flat[0]).any():
        raise ValueError(
            f"the {what}s of a batch have different dimensions, {count.min()} to {count.max()}: "
            "take one element after the other"
        )
    n, k = q.shape[-1], int(count.flat[0]) if count.size else 0
    if k == n:
        return q
    if k == 0:
        return _core.Zeros((*q.shape[:-1], 0), inexact(q.dtype))
    at = np.argsort(~keep, axis=-1, kind="stable")[..., :k]
    if q._head == "dense" and q._init is not None:
        return _core.Dense(np.take_along_axis(np.asarray(q._given("a")), at[..., None, :], -1))
    return q @ _core.Selection(at, n, inexact(q.dtype)).T


@one_call("null_space")
def null_space(op: Any, rcond: Any) -> Any:
    _, s, v = frames(op, "null")
    s = np.broadcast_to(s, (*op.shape[:-2], s.shape[-1]))
    return _columns(v, ~(s > cut_of(op, s, rcond)), "null space")


@one_call("orth")
def orth(op: Any, rcond: Any) -> Any:
    u, s, _ = frames(op, "range")
    s = np.broadcast_to(s, (*op.shape[:-2], s.shape[-1]))
    return _columns(u, s > cut_of(op, s, rcond), "range")
