"""Matrices and right sides in blocks of rows or columns, read where they lie.

A block of a CSR matrix is a scipy.sparse array on views of the same memory, one of an array a view
(of a memmap: read from the disk when it is used), one of any other operator the dense form of those
rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._answers import inexact
from ._precondition_parts import room

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT = 8 << 20  # bytes of a block that is made for the purpose


class _Csr:
    """Blocks of lines of a CSR array (or, of a CSC array, its columns)."""

    def __init__(self, S: Any, dtype: Any) -> None:
        self.S, self.dtype, self.length = S, dtype, len(S.indptr) - 1
        self.per_line = S.nnz / max(self.length, 1)

    def block(self, i: int, j: int) -> Any:
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        S = self.S
        p, q = int(S.indptr[i]), int(S.indptr[j])
        parts = S.data[p:q].astype(self.dtype, copy=False), S.indices[p:q], S.indptr[i : j + 1] - p
        if S.format == "csc":
            return sp.csc_array(parts, shape=(S.shape[0], j - i), copy=False)
        return sp.csr_array(parts, shape=(j - i, S.shape[1]), copy=False)


class _Array:
    """Blocks of rows (axis 0) or columns of an array."""

    def __init__(self, a: Any, dtype: Any, axis: int) -> None:
        self.a, self.dtype, self.axis, self.length = a, dtype, axis, a.shape[axis]
        self.per_line = a.shape[1 - axis]

    def block(self, i: int, j: int) -> Any:
        part = self.a[i:j] if self.axis == 0 else self.a[:, i:j]
        return np.asarray(part, self.dtype)


class _Sliced:
    """Blocks of any operator: the dense form of a few of its lines."""

    def __init__(self, op: Any, dtype: Any, axis: int) -> None:
        self.op, self.dtype, self.axis, self.length = op, dtype, axis, op.shape[axis]
        self.per_line = op.shape[1 - axis]

    def block(self, i: int, j: int) -> Any:
        part = self.op[i:j] if self.axis == 0 else self.op[:, i:j]
        return part.toarray().astype(self.dtype, copy=False)


def _piece(op: Any, dtype: Any, axis: int) -> Any:
    if op._head == "sparse" and op._init is not None:
        S, want = op._init[0], "csr" if axis == 0 else "csc"
        if S.format != want:
            nbytes = S.data.nbytes + S.nnz * 8 + 8 * (S.shape[axis] + 1)
            room(op, nbytes, f"{want.upper()} of a {S.format.upper()} matrix")
            S = S.asformat(want)
        return _Csr(S, dtype)
    if op._head == "dense" and op._init is not None and op._init[1] is None:
        return _Array(op._init[0], dtype, axis)
    if op._head == "scaled" and op._operands[0]._head == "identity":
        return _diagonal(op, dtype)
    return _Sliced(op, dtype, axis)


def _diagonal(op: Any, dtype: Any) -> Any:
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

    n = op.shape[0]
    data = np.full(n, op._operands[1], dtype)
    return _Csr(sp.csr_array((data, np.arange(n), np.arange(n + 1)), shape=(n, n)), dtype)


class Lines:
    """The rows (axis 0) or columns of an operator in blocks of `size`; None: of a size for Gram
    matrices, or (wide) of what memory is good for."""

    def __init__(
        self, op: Any, dtype: Any, size: int | None, axis: int = 0, wide: bool = False
    ) -> None:
        self.shape, self.dtype, self.axis = op.shape, dtype, axis
        stacked = axis == 0 and op._head == "block" and op._init is not None
        stacked = stacked and len(op.blocks[0]) == 1
        pieces = [r[0] for r in op.blocks] if stacked else [op]
        self.bounds: list[tuple[int, int, Any, int]] = []
        start = 0
        for p in pieces:
            piece = _piece(p, dtype, axis)
            most = _default_size(piece, op.shape, dtype, wide or size is not None)
            step = most if size is None else min(size, most)
            for i in range(0, piece.length, step):
                j = min(i + step, piece.length)
                self.bounds.append((start + i, start + j, piece, i))
            start += piece.length

    def __len__(self) -> int:
        return len(self.bounds)

    def at(self, k: int) -> tuple[int, int, Any]:
        """Block k: where it begins and ends, and what it is."""
        i, j, piece, own = self.bounds[k]
        return i, j, piece.block(own, own + j - i)

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        return (self.at(k) for k in range(len(self)))


def _default_size(piece: Any, shape: Any, dtype: Any, wide: bool) -> int:
    """Lines enough to be worth a step, few enough for their Gram matrix and for memory."""
    room_for = max(1, int(_LIMIT / dtype.itemsize / max(piece.per_line, 1)))
    return room_for if wide else max(1, min(128, room_for, min(shape)))


class Right:
    """One column of the right sides, an array or sparse, read in blocks."""

    def __init__(self, b: Any, dtype: Any) -> None:
        self.dtype, self.sparse = dtype, hasattr(b, "indices")
        if self.sparse:
            order = np.argsort(b.indices, kind="stable")
            self.index, self.data = b.indices[order], b.data[order].astype(dtype)
            self.norm = float(np.linalg.norm(self.data))
        else:
            self.b = b
            self.norm = float(np.linalg.norm(b))

    def block(self, i: int, j: int) -> Any:
        if not self.sparse:
            return np.asarray(self.b[i:j], self.dtype)
        p, q = np.searchsorted(self.index, (i, j))
        out = np.zeros(j - i, self.dtype)
        np.add.at(out, self.index[p:q] - i, self.data[p:q])
        return out

    def whole(self, m: int) -> Any:
        return self.block(0, m)


def right_sides(b: Any, m: int, op: Any) -> tuple[list[Any], bool, Any]:
    """The columns of b (one column of a CSC array each, where it is sparse), whether it is one
    vector, and its dtype."""
    from . import _scipy

    if _scipy.issparse(b):
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        vector = b.ndim == 1
        b = sp.coo_array(b.reshape(-1, 1) if vector else b)
        if b.shape[0] != m and 1 in b.shape and b.shape[1] == m:
            b, vector = b.T, True
        fits, shape = b.shape[0] == m, b.shape
        S = b.tocsc()
        S.sum_duplicates()
        columns = [S[:, [k]] for k in range(S.shape[1])] if fits else []
    else:
        b = np.asanyarray(b)
        vector, shape = b.ndim == 1, b.shape
        fits = b.ndim in (1, 2) and shape[0] == m
        columns = ([b] if vector else [b[:, k] for k in range(shape[1])]) if fits else []
    if not fits:
        raise np.linalg.LinAlgError(
            f"Incompatible dimensions: an operator of shape {op.shape} takes ({m},) or ({m}, k), "
            f"got shape {shape}"
        )
    return columns, vector, inexact(b.dtype)


__all__ = ["Lines", "Right", "right_sides"]
