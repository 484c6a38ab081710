"""The work on a block that has been read: products, the fused step, Gram matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base.sparse_arrays import checked
from .blocks import Csr, csr_of

# Entries of a sparse block that are paired at once for a preconditioner.
_PAIRED = 1 << 18

__all__ = ["DenseWork", "SparseWork", "worker_of"]

# Rows of a dense block are taken by so many bytes: both products then read them from the cache.
_NEAR = 1 << 18
# (entries, vectors): entries that kernels widen as they read them, so that they stay narrow.
_HALVES = {("f", "d"), ("F", "D")}


def worker_of(loaded: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The loaded block in a dtype, with its products. A ValueError where it has another shape."""
    sparse = isinstance(loaded, Csr)
    if isinstance(loaded, np.ma.MaskedArray):
        raise TypeError("a masked block came: fill it first")
    if not sparse:
        if hasattr(loaded, "tocsr"):
            loaded, sparse = csr_of(loaded), True
        else:
            loaded = np.asarray(loaded)
    if tuple(loaded.shape) != tuple(shape):
        raise ValueError(
            f"a block of shape {tuple(loaded.shape)} came where {tuple(shape)} was said"
        )
    found = loaded.data.dtype if sparse else loaded.dtype
    if found.kind not in "biufc" or (found.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"a block of dtype {found} came where {dtype} was said")
    return SparseWork(loaded, dtype) if sparse else DenseWork(loaded, dtype)


class DenseWork:
    """A dense block as it was loaded; pieces of it become of the dtype that is asked for."""

    def __init__(self, a: Any, dtype: np.dtype[Any]) -> None:
        self.a, self.own, self.shape = a, dtype, a.shape

    @property
    def nbytes(self) -> int:
        """Bytes it holds."""
        return int(self.a.nbytes)

    def step(self, alpha: float, v: Any, u: Any, w: Any) -> float:
        """See `pylinop._core._csr_step`: u <- A v - alpha u, w <- w + A^H u; |u|^2."""
        total = 0.0
        for at, piece in self._pieces(u.dtype):
            out = u[at]
            if v is not None:
                t = piece @ v
                if alpha != 0:
                    t -= alpha * out
                out[...] = t
            if w is not None:
                w += (out.conj() @ piece).conj() if np.iscomplexobj(w) else out @ piece
            total += float(np.vdot(out, out).real)
        return total

    def matmat(self, X: Any) -> Any:
        """A X."""
        if X.dtype == self.a.dtype:
            return self.a @ X
        Y = np.empty((self.shape[0], X.shape[1]), X.dtype)
        for at, piece in self._pieces(X.dtype):
            np.matmul(piece, X, out=Y[at])
        return Y

    def rmatmat(self, X: Any) -> Any:
        """A^H X."""
        if X.dtype == self.a.dtype:
            return self.a.conj().T @ X
        Y = np.zeros((self.shape[1], X.shape[1]), X.dtype)
        for at, piece in self._pieces(X.dtype):
            Y += piece.conj().T @ X[at]
        return Y

    def _pieces(self, dtype: Any) -> Any:
        """(rows, those of the block in a dtype), which fit into a cache."""
        (m, n), size = self.shape, np.dtype(dtype).itemsize
        rows = max(1, _NEAR // max(1, n * size))
        for i in range(0, m, rows):
            at = slice(i, min(i + rows, m))
            yield at, self.a[at].astype(dtype, copy=False)

    def diagonal(self, k: int) -> Any:
        """The entries (i, i + k)."""
        return np.diagonal(self.a, k).astype(self.own)

    def gram(self) -> Any:
        """A^H A."""
        a = self.dense()
        return a.conj().T @ a

    def squares(self) -> float:
        """The sum of |entries|^2, in double precision."""
        wide = np.result_type(self.own, np.float64)
        return math.fsum(float(np.vdot(p, p).real) for _, p in self._pieces(wide))

    def column_grams(self, k: int) -> Any:
        """The blocks of k columns on the diagonal of A^H A, side by side in an (n, k) array."""
        n, wide = self.shape[1], np.result_type(self.own, np.float64)
        if k == 1:
            squares = (np.einsum("ij,ij->j", p.conj(), p) for _, p in self._pieces(wide))
            return sum(squares, np.zeros(n, wide))[:, np.newaxis]
        groups = -(-n // k)
        total = np.zeros((groups, k, k), wide)
        for _, piece in self._pieces(wide):
            if groups * k != n:
                piece = np.pad(piece, ((0, 0), (0, groups * k - n)))
            cut = piece.reshape(-1, groups, k)
            total += np.matmul(cut.transpose(1, 2, 0).conj(), cut.transpose(1, 0, 2))
        return total.reshape(groups * k, k)[:n]

    def diagonal_blocks(self, first: int, k: int, axis: int) -> Any:
        """Blocks of k on A's diagonal, of the entries that are here: see `SparseWork`."""
        m = self.shape[axis]
        square = self.a[:, first : first + m] if axis == 0 else self.a[first : first + m].T
        found = np.zeros((m, k), np.result_type(self.own, np.float64))
        for i in range(0, m, k):
            block = square[i : i + k, i : i + k]
            found[i : i + k, : len(block)] = block
        return found

    def dense(self) -> Any:
        """The dense form."""
        return self.a.astype(self.own, copy=False)


class SparseWork:
    """A sparse block, by rows. Indices are checked by the kernels, each time."""

    def __init__(self, a: Csr, dtype: np.dtype[Any]) -> None:
        kind = np.result_type(a.indptr.dtype, a.indices.dtype)
        if kind != np.int32:
            kind = np.dtype(np.int64)
        self.index = "i" if kind == np.int32 else "q"
        self.indptr = np.require(a.indptr, kind, ["C", "A"])
        self.indices = np.require(a.indices, kind, ["C", "A"])
        self.own = dtype
        given = a.data.dtype
        kept = given if (given.char, dtype.char) in _HALVES and given.isnative else dtype
        self.data = np.require(a.data, kept, ["C", "A"])
        self.shape = a.shape

    @property
    def nbytes(self) -> int:
        """Bytes it holds."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.data.nbytes)

    def step(self, alpha: float, v: Any, u: Any, w: Any) -> float:
        """u <- A v - alpha u (without v: u stays), w <- w + A^H u (if w is there); |u|^2."""
        data = self.data if self._takes(u.dtype) else self.data.astype(u.dtype)
        return _core._csr_step(
            data.dtype.char,
            self.index,
            u.dtype.char,
            *self.shape,
            self.indptr,
            self.indices,
            data,
            alpha,
            v,
            u,
            w,
        )

    def _scipy(self) -> Any:
        """As scipy.sparse has it, the arrays shared and nothing checked: for checking kernels."""
        import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

        A = scipy.sparse.csr_array(self.shape, dtype=self.data.dtype)
        A.data, A.indices, A.indptr = self.data, self.indices, self.indptr
        return A

    def _takes(self, dtype: np.dtype[Any]) -> bool:
        own = self.data.dtype
        return own == dtype or (own.char, dtype.char) in _HALVES

    def matmat(self, X: Any) -> Any:
        """A X."""
        if X.shape[1] == 1 and self._takes(X.dtype):
            u = np.zeros(self.shape[0], X.dtype)
            self.step(0.0, np.ascontiguousarray(X[:, 0]), u, None)
            return u[:, np.newaxis]
        return _core.Sparse(self._scipy()) @ X

    def rmatmat(self, X: Any) -> Any:
        """A^H X."""
        if X.shape[1] == 1 and self._takes(X.dtype):
            w = np.zeros(self.shape[1], X.dtype)
            self.step(0.0, None, np.array(X[:, 0]), w)
            return w[:, np.newaxis]
        return _core.Sparse(self._scipy()).H @ X

    def _checked(self) -> Any:
        A = checked(self._scipy())
        return A.astype(self.own, copy=False)

    def diagonal(self, k: int) -> Any:
        """The entries (i, i + k)."""
        return self._checked().diagonal(k)

    def gram(self) -> Any:
        """A^H A, dense."""
        A = self._checked()
        return (A.conj().T @ A).toarray()

    def squares(self) -> float:
        """The sum of |entries|^2 in double precision; entries of one place are added before."""
        return DenseWork(self._canonical().data[:, np.newaxis], self.own).squares()

    def _canonical(self) -> Any:
        A = self._checked()
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        return A

    def _triplets(self) -> Any:
        """(row, column, entry), some rows after the other, each row's columns ascending."""
        A = self._canonical()
        wide, ptr = np.result_type(self.own, np.float64), A.indptr
        first = 0
        while first < A.shape[0]:
            last = int(np.searchsorted(ptr, int(ptr[first]) + _PAIRED, "right")) - 1
            last = max(first + 1, min(last, A.shape[0]))
            at = slice(int(ptr[first]), int(ptr[last]))
            row = np.repeat(np.arange(first, last), np.diff(ptr[first : last + 1]))
            yield row, A.indices[at].astype(np.int64), A.data[at].astype(wide)
            first = last

    def column_grams(self, k: int) -> Any:
        """The blocks of k columns on the diagonal of A^H A, side by side in an (n, k) array."""
        n = self.shape[1]
        total = np.zeros(n * k, np.result_type(self.own, np.float64))
        for row, j, a in self._triplets():
            np.add.at(total, j * k + j % k, a.conj() * a)
            for d in range(1, min(k, len(a))):  # pairs d entries apart; in groups they lie together
                pairs = np.flatnonzero((row[d:] == row[:-d]) & (j[d:] // k == j[:-d] // k))
                if not len(pairs):
                    break
                p, q = pairs, pairs + d
                np.add.at(total, j[p] * k + j[q] % k, a[p].conj() * a[q])
                np.add.at(total, j[q] * k + j[p] % k, a[q].conj() * a[p])
        return total.reshape(n, k)

    def diagonal_blocks(self, first: int, k: int, axis: int) -> Any:
        """Blocks of k on A's diagonal: row i (of a block of columns: column i) in row i.

        ``first`` is the block's first row or column in A; there the first block begins."""
        m = self.shape[axis]
        found = np.zeros((m, k), np.result_type(self.own, np.float64))
        for row, column, a in self._triplets():
            i, j = (row, column - first) if axis == 0 else (column, row - first)
            here = (j >= 0) & (j < m) & (i // k == j // k)
            found[i[here], j[here] % k] = a[here]
        return found

    def dense(self) -> Any:
        """The dense form."""
        return self._checked().toarray()
