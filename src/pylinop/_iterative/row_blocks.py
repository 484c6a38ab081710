"""Matrices and right sides in blocks of rows or columns, read where they lie.

A block of a CSR matrix is a scipy.sparse array on views of the same memory; a block of an array is
a view (a memmap is read from the disk when the block is used); a block of any other operator is the
dense form of those rows alone."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import config, scipy_bridge, sparse_arrays
from .._base.dlpack import as_array
from .._base.dtypes import inexact
from .._base.memory import room
from .._operators.parameters import written

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT = 8 << 20  # bytes of a block that has to be made


def _bytes() -> int:
    """Bytes of a block, few enough for the memory limit, where one is set."""
    limit = config.get("memory_limit")
    return _LIMIT if limit is None else max(1024, min(_LIMIT, limit // 16))


class _Csr:
    """Blocks of lines: the rows of a CSR array, or the columns of a CSC array."""

    def __init__(self, S: Any, dtype: Any) -> None:
        self.S, self.dtype, self.length = S, dtype, len(S.indptr) - 1
        self.per_line, self.kept = S.nnz / max(self.length, 1), 0
        self.sorted = bool(sparse_arrays.renewed(S).has_canonical_format)

    def made(self, step: int) -> tuple[int, int]:
        """The most bytes that the arrays of a block of so many lines take, and the most entries."""
        ends = np.append(self.S.indptr[: self.length : max(step, 1)], self.S.indptr[-1])
        count = int(np.diff(ends).max(initial=0))
        cast = count * self.dtype.itemsize if self.S.dtype != self.dtype or not self.sorted else 0
        cast += 0 if self.sorted else count * self.S.indices.itemsize
        return cast + (step + 1) * self.S.indptr.itemsize + 2 * ends.nbytes, count

    def block(self, i: int, j: int) -> Any:
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        S = self.S
        p, q = int(S.indptr[i]), int(S.indptr[j])
        parts = S.data[p:q].astype(self.dtype, copy=False), S.indices[p:q], S.indptr[i : j + 1] - p
        if S.format == "csc":
            B = sp.csc_array(parts, shape=(S.shape[0], j - i), copy=not self.sorted)
        else:
            B = sp.csr_array(parts, shape=(j - i, S.shape[1]), copy=not self.sorted)
        if not self.sorted:  # as abs() and other functions of SciPy would, in the user's own memory
            B.sum_duplicates()
        return B


class _Array:
    """Blocks of rows (axis 0) or columns of an array."""

    def __init__(self, a: Any, dtype: Any, axis: int) -> None:
        self.a, self.dtype, self.axis, self.length = a, dtype, axis, a.shape[axis]
        self.per_line, self.kept = a.shape[1 - axis], 0

    def made(self, step: int) -> tuple[int, int]:
        count = step * self.per_line
        return count * self.dtype.itemsize if self.a.dtype != self.dtype else 0, count

    def block(self, i: int, j: int) -> Any:
        part = self.a[i:j] if self.axis == 0 else self.a[:, i:j]
        return np.asarray(part, self.dtype)


class _Sliced:
    """Blocks of any operator: the dense form of a few of its lines."""

    def __init__(self, op: Any, dtype: Any, axis: int) -> None:
        self.op, self.dtype, self.axis, self.length = op, dtype, axis, op.shape[axis]
        self.per_line, self.kept = op.shape[1 - axis], 0

    def made(self, step: int) -> tuple[int, int]:
        count = step * self.per_line
        return 2 * count * self.dtype.itemsize, count

    def block(self, i: int, j: int) -> Any:
        part = self.op[i:j] if self.axis == 0 else self.op[:, i:j]
        return part.toarray().astype(self.dtype, copy=False)


def _piece(op: Any, dtype: Any, axis: int, held: int) -> Any:
    if op._head == "sparse" and op._init is not None:
        S, want = sparse_arrays.matrix_of(op), "csr" if axis == 0 else "csc"
        if S.format != want:
            nbytes = S.data.nbytes + S.nnz * 8 + 8 * (S.shape[axis] + 1)
            room(op, held + nbytes, f"{want.upper()} of a {S.format.upper()} matrix")
            made = _Csr(S.asformat(want), dtype)
            made.kept = nbytes
            return made
        return _Csr(S, dtype)
    if op._head == "dense" and op._init is not None and op._given("assume_a") is None:
        return _Array(op._given("a"), dtype, axis)
    if written(op, "scaled") and op._operands[0]._head == "identity":
        return _diagonal(op, dtype)
    return _Sliced(op, dtype, axis)


def _diagonal(op: Any, dtype: Any) -> Any:
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

    n = op.shape[0]
    data = np.full(n, op._operands[1], dtype)
    return _Csr(sp.csr_array((data, np.arange(n), np.arange(n + 1)), shape=(n, n)), dtype)


def _pieces(op: Any, dtype: Any, axis: int, held: int) -> list[Any]:
    """The operators that the lines lie in: stacked operators are taken one by one."""
    stacked = axis == 0 and op._head == "block" and op._init is not None
    rows = op._given("blocks") if stacked else [[op]]
    made = []
    for one in [row[0] for row in rows] if len(rows[0]) == 1 else [op]:
        made.append(_piece(one, dtype, axis, held))
        held += made[-1].kept
    return made


class Lines:
    """The rows (axis 0) or columns of an operator in blocks of `size`. None chooses a size that
    suits Gram matrices, or (with ``wide``) that memory allows. ``like`` is a Lines of the same
    axis, whose pieces are reused; ``held`` counts the bytes that are taken already."""

    def __init__(
        self, op: Any, dtype: Any, size: int | None, axis: int = 0, wide: bool = False,
        like: Lines | None = None, held: int = 0,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.axis = op.shape, dtype, axis
        self.pieces: list[Any] = _pieces(op, dtype, axis, held) if like is None else like.pieces
        self.steps: list[int] = []
        self.first = [0]
        for piece in self.pieces:
            most = _default_size(piece, op.shape, dtype, wide or size is not None)
            self.steps.append(most if size is None else min(size, most))
            self.first.append(self.first[-1] - piece.length // -self.steps[-1])

    def memory(self, method: str = "") -> int:
        """Bytes of one block and what a step makes from it (four vectors, a Gram matrix, the
        squares for sgd's scales), and of an order of the blocks."""
        most, item = 0, self.dtype.itemsize
        for piece, step in zip(self.pieces, self.steps, strict=True):
            step = min(step, piece.length)
            made, entries = piece.made(step)
            made += 4 * step * item
            if method == "block_kaczmarz":
                made += 3 * step**2 * item
            if method == "sgd":
                made += 2 * entries * (item + 8)
            most = max(most, made)
        return int(most + 64 * len(self))

    def __len__(self) -> int:
        return int(self.first[-1])

    def at(self, k: int) -> tuple[int, int, Any]:
        """Block k: where it begins, where it ends, and the block."""
        at = bisect.bisect_right(self.first, k) - 1
        piece, step = self.pieces[at], self.steps[at]
        own = (k - self.first[at]) * step
        end = min(own + step, piece.length)
        start = sum(p.length for p in self.pieces[:at])
        return start + own, start + end, piece.block(own, end)

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        return (self.at(k) for k in range(len(self)))


def _default_size(piece: Any, shape: Any, dtype: Any, wide: bool) -> int:
    """As many lines as make a step worthwhile, but few enough for their Gram matrix and for
    memory."""
    room_for = max(1, int(_bytes() / dtype.itemsize / max(piece.per_line, 1)))
    gram = max(1, math.isqrt(_bytes() // dtype.itemsize))
    return room_for if wide else max(1, min(128, gram, room_for, min(shape)))


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
    """The columns of b (each a column of a CSC array, if b is sparse), whether b is one vector, and
    its dtype."""
    if scipy_bridge.issparse(b):
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        vector = b.ndim == 1
        b = sparse_arrays.checked(b)
        b = sp.coo_array(b.reshape(-1, 1) if vector else b)
        if b.shape[0] != m and 1 in b.shape and b.shape[1] == m:
            b, vector = b.T, True
        fits, shape = b.shape[0] == m, b.shape
        S = b.tocsc()
        S.sum_duplicates()
        columns = [S[:, [k]] for k in range(S.shape[1])] if fits else []
    else:
        b = as_array(b)
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
