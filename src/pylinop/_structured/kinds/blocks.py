"""Functions of `BlockDiag` and `Block`, block by block."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact, real_of
from ..._base.kind_flags import BAND, DIAGONAL, OF_PARTS
from .. import arrowhead, block_circulant, mixed_shapes
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
from ..operands import blocks_of, factors_of, keep_within
from ..pinv import _relative
from ..properties import known
from ..qr import _joined, alike, qr, qr_asks
from ..questions import eigvalsh, norm, pinv, svdvals
from ..singular_values import _padded, descending
from ..square_roots import power, root
from ..svd import Matched, _same_side, singular
from ..unitary import unitary

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


@eigvalsh.row(
    "blockdiag",
    how="the blocks', joined",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
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


def _pinv_asks(op: Any, how: Any) -> Any:
    """The pseudo-inverses of the blocks, and the norms that say what counts as zero in them."""
    blocks = factors_of(op)
    if any(f.shape[:-2] != op.shape[:-2] for f in blocks):
        return None
    some = [f for f in blocks if 0 not in f.shape[-2:]]
    return [("matrix_norm", f, 2) for f in some] + [("pinv", f, how) for f in some]


@pinv.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'", asks=_pinv_asks)
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


@eigenbasis.row(
    "blockdiag",
    how="block by block; Q is a BlockDiag",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts, vectors = [], []
    for block in factors_of(op):
        one, q = yield block, uplo
        parts.append(one)
        vectors.append(q)
    return joined(op, parts), _core.BlockDiag(*vectors)


# -- eig --


@pairs_row(
    "blockdiag",
    how="block by block, square ones; V is a BlockDiag",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
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


@cholesky.row(
    "blockdiag",
    how="a BlockDiag of the blocks'",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if 0 in op.shape:
        return NotImplemented  # of an empty batch no block has to be definite
    found = []
    for f in blocks:
        found.append((yield f, uplo))
    return _core.BlockDiag(*found)


# First blocks whose factor is cheap to have and to solve with.
_FIRST = DIAGONAL | BAND | OF_PARTS


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
    asks=qr_asks,
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


@ldl.row(
    "blockdiag",
    how="BlockDiags of the blocks'",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
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


@functions_row(
    "blockdiag",
    how="block by block, square ones",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    blocks, found = factors_of(op), []
    for block in blocks:
        found.append((yield block, f) if block.shape[-1] else block)
    return _core.BlockDiag(*found)


# -- square roots, samples --


@power.row(
    "blockdiag",
    how="a BlockDiag of the blocks'",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if 0 in op.shape:
        return NotImplemented  # as above
    found = []
    for f in blocks:
        found.append((yield f, p))
    return _core.BlockDiag(*found)


@root.row(
    "blockdiag",
    how="a BlockDiag of the blocks'",
    cost="sum of the blocks'",
    guard="square_parts",
)
def _(op: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if 0 in op.shape:
        return NotImplemented  # as above
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
    instead=block_circulant.price(6.0, 2.2),
)
def _(op: Any) -> Any:
    found = block_circulant.spectrum(op)
    if found is None:
        return NotImplemented
    return descending(block_circulant.values(op, np.linalg.svdvals(found[0])))


# -- arrowheads, and block circulants --

_VALUES, _VECTORS = 400, 200  # rows from which arrowheads are quicker than LAPACK's eigvalsh, eigh


def _arrow(op: Any, least: int) -> Any:
    """The four blocks of an arrowhead of so many rows, with one row and column beside a structured
    block; None for anything else."""
    found = bordered(op) if op.shape[-1] >= least else None
    return found if found is not None and found[3].shape == (1, 1) else None


def _arrow_asks(least: int) -> Any:
    def asks(op: Any, uplo: str) -> Any:
        found = _arrow(op, least)
        if found is None:
            return block_circulant.asks(op)
        return [] if found[0]._head in DIAGONAL else [("eigh", found[0], uplo)]

    return asks


def _block_price(least: int, arrow: str, circulant: Any) -> Any:
    return lambda op: circulant(op) if _arrow(op, least) is None else arrow


def _doubt(least: int) -> Any:
    """Only the numbers say whether a block circulant is Hermitian."""

    def doubt(op: Any, uplo: str) -> tuple[str, None] | None:
        sure = _arrow(op, least) is not None or known(op, "hermitian")
        return None if sure else ("where it is not Hermitian", None)

    return doubt


def _of_arrow(op: Any, found: Any, uplo: str, vectors: bool) -> Any:
    """(eigenvalues, eigenvectors or None) by those of the first block."""
    a, b, c, d = found
    border = dense(c)[0].conj() if uplo == "L" else dense(b)[:, 0]
    last = dense(d)[0, 0].real
    if a._head in DIAGONAL:
        values, q = np.asarray(a.diagonal()).real, None
    else:
        values, q = eigenbasis(a, uplo)
        border = q.H @ border
    if not all(np.isfinite(x).all() for x in (values, border, last)):
        return NotImplemented
    if vectors:
        keep_within(op, 4)
    w, v = arrowhead.pairs(values, border, float(last), vectors)
    dtype = inexact(op.dtype)
    w = w.astype(real_of(dtype), copy=False)
    if v is None:
        return w, None
    v = unitary(v.astype(dtype, copy=False))
    return w, v if q is None else _core.BlockDiag(q, _core.Identity(1)) @ v


@eigvalsh.row(
    "block",
    how="of Hermitian block circulants (one object along each diagonal): of the blocks of its DFT; "
    "of arrowheads of 400 rows: the secular equation",
    cost="O(n k^2); of arrowheads 60 n^2",
    kept=True,
    asks=_arrow_asks(_VALUES),
    instead=_block_price(_VALUES, "60 n^2", block_circulant.price(5.0, 1.9)),
    doubt=_doubt(_VALUES),
)
def _(op: Any, uplo: str) -> Any:
    arrow = _arrow(op, _VALUES)
    if arrow is not None:
        found = _of_arrow(op, arrow, uplo, False)
        return found if found is NotImplemented else np.sort(found[0])
    found = block_circulant.spectrum(op)
    if found is None or not found[1]:
        return NotImplemented
    return np.sort(block_circulant.values(op, np.linalg.eigvalsh(found[0])))


@eigenbasis.row(
    "block",
    how="of Hermitian block circulants: Q is a DFT or Hartley's transform times a BlockDiag; of "
    "arrowheads of 200 rows: the secular equation",
    cost="O(n k^2); of arrowheads 150 n^2, Q in n^2 numbers",
    kept=True,
    asks=_arrow_asks(_VECTORS),
    instead=_block_price(_VECTORS, "150 n^2", block_circulant.price(10.0, 3.2)),
    doubt=_doubt(_VECTORS),
)
def _(op: Any, uplo: str) -> Any:
    arrow = _arrow(op, _VECTORS)
    if arrow is not None:
        return _of_arrow(op, arrow, uplo, True)
    found = block_circulant.basis(op)
    return NotImplemented if found is None else found
