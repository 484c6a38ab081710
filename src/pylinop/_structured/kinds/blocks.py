"""Functions of `BlockDiag` and `Block`, block by block."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact
from .. import block_circulant, mixed_shapes
from ..cholesky import _lapack, cholesky, real_diagonal
from ..dispatch import dense
from ..eig import _pair, _split, pairs_row
from ..eigh import eigenbasis
from ..least_squares import _joined as least_squares_joined
from ..least_squares import frames
from ..lu import _joined as lu_joined
from ..lu import ldl, lu
from ..matrix_functions import functions_row
from ..norms import _root_of_squares, frobenius, sums
from ..operands import blocks_of, factors_of
from ..pinv import _relative
from ..qr import _joined, alike, qr
from ..questions import eigvalsh, norm, pinv, svdvals
from ..singular_values import _padded, descending
from ..square_roots import power, root
from ..svd import Matched, _same_side, singular
from ..unitary import fourier, unitary

# -- singular values, norms, eigenvalues --


def joined(op: Any, parts: Any) -> Any:
    """Joins the vectors of the blocks, over the whole batch."""
    batch = op.shape[:-2]
    return np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


@svdvals.row("blockdiag", how="the blocks', joined", cost="sum of the blocks'")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        if 0 not in block.shape[-2:]:
            parts.append((yield (block,)))
    if not parts:
        return np.zeros((*op.shape[:-2], min(op.shape[-2:])))
    return _padded(descending(joined(op, parts)), op)


@eigvalsh.row("blockdiag", how="the blocks', joined", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        if block.shape[-1] != block.shape[-2]:
            return NotImplemented
        if block.shape[-1]:
            parts.append((yield block, uplo))
    return np.sort(joined(op, parts), axis=-1)


# -- norms --


@sums.row("blockdiag")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        parts.append((yield block, axis))
    return joined(op, parts)


@sums.row("block")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    rows: Any = blocks_of(op)
    rows = rows if axis == -1 else list(zip(*rows, strict=True))
    parts = []
    for line in rows:
        total = 0.0
        for block in line:
            total = total + (yield block, axis)
        parts.append(total)
    return joined(op, parts)


@frobenius.row("blockdiag")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


@frobenius.row("block")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    parts = []
    for line in blocks_of(op):
        for block in line:
            parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


# -- pseudo-inverses --


@pinv.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[:-2] != op.shape[:-2] for f in blocks):  # each batch element has its own cut-off
        return NotImplemented
    tops = [np.zeros(()) if 0 in f.shape[-2:] else norm(f, 2) for f in blocks]
    cut = _relative(how, op) * functools.reduce(np.maximum, tops)
    parts = []
    for f, top in zip(blocks, tops, strict=True):
        if 0 in f.shape[-2:]:
            parts.append(_core.Zeros((*f.shape[:-2], f.shape[-1], f.shape[-2]), inexact(f.dtype)))
            continue
        own = np.divide(cut, top, where=np.asarray(top) > 0, out=np.ones(np.shape(cut + top)))
        hermitian_too = {"hermitian": True} if how.get("hermitian") else {}
        parts.append((yield f, {"rcond": own} | hermitian_too))
    return _core.BlockDiag(*parts)


# -- eigh --


@eigenbasis.row("blockdiag", how="block by block; Q is a BlockDiag", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts, vectors = [], []
    for block in factors_of(op):
        if block.shape[-1] != block.shape[-2]:
            return NotImplemented
        one, q = yield block, uplo
        parts.append(one)
        vectors.append(q)
    return joined(op, parts), _core.BlockDiag(*vectors)


# -- eig --


@pairs_row(
    "blockdiag", how="block by block, square ones; V is a BlockDiag", cost="sum of the blocks'"
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    values, parts = [], []
    for block in blocks:
        one, v = _split((yield (block,)), vectors)
        values.append(one)
        parts.append(v)
    return _pair(joined(op, values), lambda: _core.BlockDiag(*parts), vectors)


# -- svd --


@singular.row("blockdiag", how="block by block; U and V are BlockDiags", cost="sum of the blocks'")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    full = full or not _same_side([f.shape[-2:] for f in blocks])
    us, vs, parts, rows, cols = [], [], [], [], []
    at = beside = 0
    for block in blocks:
        one = yield block, full
        us.append(one.u)
        vs.append(one.v)
        parts.append(one.s)
        rows.append(one.rows + at)
        cols.append(one.cols + beside)
        at, beside = at + one.u.shape[-1], beside + one.v.shape[-1]
    s = joined(op, parts)
    u, v = _core.BlockDiag(*us), _core.BlockDiag(*vs)
    return Matched(u, s, v, np.concatenate(rows), np.concatenate(cols))


# -- cholesky --


@cholesky.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield f, uplo))
    return _core.BlockDiag(*found)


# First blocks whose factor is cheap to have and to solve with.
_FIRST = frozenset("diag identity banded tridiagonal blocktridiagonal kron blockdiag".split())


def bordered(op: Any) -> Any:
    """The four blocks of a matrix [A B; C D] with a square A of structure and a D of at most an
    eighth of its rows, as an arrowhead has; None for anything else."""
    if op._init is None or op.ndim != 2:
        return None
    rows = blocks_of(op)
    if len(rows) != 2 or len(rows[0]) != 2:
        return None
    (a, b), (c, d) = rows
    fits = a.shape[0] == a.shape[1] and 8 * d.shape[-1] <= a.shape[-1]
    return (a, b, c, d) if fits and a._head in _FIRST else None


def _bordered_asks(op: Any, uplo: str) -> Any:
    found = bordered(op)
    return None if found is None else [("cholesky", found[0], uplo)]


@cholesky.row(
    "block",
    how="of [A B; B^H D] with a Diag, band, Kron or BlockDiag A and few rows in D, as arrowheads: "
    "A's, and of the Schur complement, a Block",
    cost="O(n k^2)",
    asks=_bordered_asks,
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = bordered(op)
    if found is None:
        return NotImplemented
    a, b, c, d = found
    first = yield a, uplo
    dtype = inexact(op.dtype)
    side = dense(c).conj().T if uplo == "L" else dense(b)
    left = np.asarray(_core._build("solver", first) @ side.astype(dtype)).conj().T
    rest = dense(d).astype(dtype)
    np.fill_diagonal(rest, real_diagonal(np.diagonal(rest)))
    rest -= left @ left.conj().T
    np.fill_diagonal(rest, np.diagonal(rest).real)
    zeros = _core.Zeros((a.shape[0], d.shape[1]), dtype)
    last = _core.Triangular(_lapack(rest, uplo))
    return _core.Block([[first, zeros], [_core.Dense(left), last]])


# -- qr --


@qr.row(
    "blockdiag",
    how="BlockDiags of the blocks', columns exchanged of tall and wide ones",
    cost="sum of the blocks'",
)
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if not alike(blocks, mode):
        return (yield from mixed_shapes.qr(op, _core.BlockDiag, blocks, mode))
    return (yield from _joined(_core.BlockDiag, blocks, mode))


# -- lu, ldl --


@lu.row(
    "blockdiag",
    how="BlockDiags of the blocks', rows exchanged of tall ones",
    cost="sum of the blocks'",
)
def _(op: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if not all(f.shape[-2] <= f.shape[-1] for f in blocks):
        return (yield from mixed_shapes.lu(op, _core.BlockDiag, blocks))
    return (yield from lu_joined(_core.BlockDiag, blocks))


@ldl.row("blockdiag", how="BlockDiags of the blocks'", cost="sum of the blocks'")
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    outer, middle, orders, at = [], [], [], 0
    for f in blocks:
        one, d, order = yield f, lower, hermitian
        outer.append(one)
        middle.append(d)
        orders.append(np.broadcast_to(order, (*op.shape[:-2], f.shape[-1])) + at)
        at += f.shape[-1]
    return _core.BlockDiag(*outer), _core.BlockDiag(*middle), np.concatenate(orders, axis=-1)


# -- least squares, null spaces, ranges --


@frames.row("blockdiag", how="BlockDiags of the blocks', of any rank", cost="sum of the blocks'")
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    found = []
    for f in factors_of(op):
        found.append((yield f, want))
    u, v = least_squares_joined(_core.BlockDiag, found, want)
    return u, joined(op, [one[1] for one in found]), v


# -- exp, log, powers --


@functions_row("blockdiag", how="block by block, square ones", cost="sum of the blocks'")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    blocks, found = factors_of(op), []
    if any(b.shape[-1] != b.shape[-2] for b in blocks):
        return NotImplemented
    for block in blocks:
        found.append((yield block, f) if block.shape[-1] else block)
    return _core.BlockDiag(*found)


# -- square roots, samples --


@power.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield f, p))
    return _core.BlockDiag(*found)


@root.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield (f,)))
    return _core.BlockDiag(*found)


# -- block circulants --


@svdvals.row(
    "block",
    how="of block circulants (one object along each diagonal): of the p blocks of its DFT",
    cost="O(n k^2)",
    asks=block_circulant.asks,
)
def _(op: Any) -> Any:
    found = block_circulant.spectrum(op)
    if found is None:
        return NotImplemented
    return descending(np.linalg.svdvals(found[0]).ravel())


@eigvalsh.row(
    "block",
    how="of Hermitian block circulants (one object along each diagonal): of the blocks of its DFT",
    cost="O(n k^2)",
    asks=block_circulant.asks,
)
def _(op: Any, uplo: str) -> Any:
    found = block_circulant.spectrum(op)
    if found is None or not found[1]:
        return NotImplemented
    return np.sort(np.linalg.eigvalsh(found[0]).ravel())


@eigenbasis.row(
    "block",
    how="of complex Hermitian block circulants: Q is a DFT times a BlockDiag; real ones dense",
    cost="O(n k^2)",
    asks=lambda op, uplo: block_circulant.asks(op) if op.dtype.kind == "c" else None,
)
def _(op: Any, uplo: str) -> Any:
    found = block_circulant.spectrum(op) if op.dtype.kind == "c" else None
    if found is None or not found[1]:
        return NotImplemented
    w, q = np.linalg.eigh(found[0])
    p, m = w.shape
    turn = _core.Kron(fourier((p,), op.dtype), _core.Identity(m))
    return w.ravel(), turn @ _core.BlockDiag(*map(unitary, q))
