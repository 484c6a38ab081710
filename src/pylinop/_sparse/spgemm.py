"""Products of sparse matrices by the kernels of k_spgemm.c, as a whole or in blocks of rows.

A matrix goes to the kernels as (indptr, indices, data, rows, columns), CSR. The whole product uses
all threads in C, and ^C ends it; blocks are computed by Python threads side by side (the kernels
release the GIL) and handed out in order. An entry is the same sum for any blocks and any number of
threads."""

from __future__ import annotations

import collections
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, errors, scipy_bridge, sparse_arrays
from .._operators.convert import as_operator

_BLOCK = 64 << 20  # bytes that the rows of a block take at most while it is computed
_WIDE = 2**31 - 1
DTYPES = frozenset("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()) | frozenset(
    "float32 float64 complex64 complex128".split()
)
CSR = tuple[np.ndarray, np.ndarray, np.ndarray, int, int]


class ProductSize(NamedTuple):
    """The size of a product of two sparse matrices, before it is computed."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nnz: int
    nbytes: int
    products: int
    exact: bool

    def __str__(self) -> str:
        about = "" if self.exact else "about "
        return (
            f"{self.shape[0]:,} x {self.shape[1]:,} {self.dtype}, {about}{self.nnz:,} entries, "
            f"{about}{self.nbytes:,} bytes as CSR, {self.products:,} multiplications"
        )


def _sp() -> Any:
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse


# -- matrices as the kernels take them -------------------------------------------------------------


def sparse_form(X: Any) -> Any:
    """x as a scipy.sparse matrix, without a dense form if it is sparse by structure."""
    if scipy_bridge.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"a sparse product takes matrices, got shape {X.shape}")
        return sparse_arrays.checked(X)
    op = as_operator(X)
    if op._head == "sparse" and op._init is not None:
        return sparse_arrays.matrix_of(op)
    return op.tosparse()


def _narrowed(a: np.ndarray, ix: Any) -> np.ndarray:
    """Casts indices to a dtype; one that does not fit is an error, and is never changed."""
    if a.dtype != ix and a.size and np.dtype(ix) == np.int32:
        low, high = int(a.min()), int(a.max())
        if low < 0 or high > _WIDE:
            raise IndexError(f"a sparse index is out of bounds: {low if low < 0 else high}")
    return np.ascontiguousarray(a, dtype=ix)


def as_csr(S: Any, dtype: Any, ix: Any) -> CSR:
    """The arrays of a scipy.sparse matrix; those of a CSR are borrowed where they fit."""
    if S.format not in ("csr", "csc"):
        S = S.tocsr()
    m, n = S.shape
    data = np.ascontiguousarray(S.data, dtype=dtype)
    parts = (_narrowed(S.indptr, ix), _narrowed(S.indices, ix), data)
    return (*parts, m, n) if S.format == "csr" else transposed((*parts, n, m))


def transposed(a: CSR, conj: bool = False) -> CSR:
    """A^T or A^H; its rows are sorted."""
    ptr, index, data = _core._csr_transpose(a, conj)
    nnz = int(ptr[-1])
    return ptr, index[:nnz], data[:nnz], a[4], a[3]


def as_scipy(a: CSR) -> Any:
    """A scipy.sparse array of the arrays themselves."""
    ptr, index, data, m, n = a
    if index.dtype == np.int32 and ptr[-1] > _WIDE:
        index = index.astype(np.int64)  # as SciPy needs them: of one dtype
    S = _sp().csr_array((m, n), dtype=data.dtype)
    S.indptr, S.indices, S.data = ptr.astype(index.dtype, copy=False), index, data
    S.has_sorted_indices = S.has_canonical_format = True
    return S


def _index_dtype(*sizes: int) -> Any:
    return np.int32 if max(sizes, default=0) <= _WIDE else np.int64


# -- a product -------------------------------------------------------------------------------------


class Product:
    """Two matrices that fit, and the most that the rows of their product take."""

    def __init__(self, A: Any, B: Any, dtype: Any = None) -> None:
        A, B = sparse_form(A), sparse_form(B)
        if A.shape[1] != B.shape[0]:
            raise ValueError(f"matrices of shapes {A.shape} and {B.shape} do not multiply")
        self.dtype = np.result_type(A.dtype, B.dtype) if dtype is None else np.dtype(dtype)
        if self.dtype.name not in DTYPES:
            raise TypeError(f"sparse products are not computed in {self.dtype}")
        self.shape = (A.shape[0], B.shape[1])
        ix = _index_dtype(*A.shape, *B.shape, A.nnz, B.nnz)
        self.a, self.b = as_csr(A, self.dtype, ix), as_csr(B, self.dtype, ix)
        self.bound = _core._spgemm_bound(self.a, self.b, False, 0, self.shape[0])
        self._before = np.concatenate([[0], np.cumsum(np.minimum(self.bound, self.shape[1]))])
        self.each = self.dtype.itemsize + self.a[1].itemsize  # bytes of an entry of a block

    @property
    def products(self) -> int:
        return int(self.bound.sum())

    @property
    def most(self) -> int:
        """An upper bound of the number of entries."""
        return int(self._before[-1])

    def room(self, lo: int, hi: int) -> int:
        return int(self._before[hi] - self._before[lo])

    def nbytes(self, nnz: int) -> int:
        index = 4 if nnz <= _WIDE and self.a[1].dtype == np.int32 else 8
        each: int = self.dtype.itemsize + index
        return int(nnz * each + (self.shape[0] + 1) * index)

    def count(self, lo: int, hi: int, upper: bool = False, threads: bool = False) -> np.ndarray:
        return _core._spgemm_count(self.a, self.b, upper, lo, hi, self.bound[lo:hi], threads)

    def estimate(self, rows: int = 64) -> int:
        """About how many entries there are, from evenly spaced rows."""
        m = self.shape[0]
        at = range(0, m, max(1, m // rows))
        seen = sum(self.room(i, i + 1) for i in at)
        found = sum(int(self.count(i, i + 1)[0]) for i in at) if seen else 0
        return round(self.most * (found / seen)) if seen else 0

    def symmetry(self) -> int:
        """1 for A A^T, 2 for A A^H, where computing one triangle pays off; else 0.

        B's rows are then sorted, as the kernel of one triangle needs them; each entry is still the
        same sum."""
        m = self.shape[0]
        a = self.a
        if m != self.shape[1] or self.products < 8 * m * m or not m or a[2].size != self.b[2].size:
            return 0
        t = transposed(self.b)
        if not all(np.array_equal(x, y) for x, y in zip(t[:2], a[:2])):
            return 0
        how = next((k for k, v in ((1, t[2]), (2, t[2].conj())) if np.array_equal(v, a[2])), 0)
        if how:
            self.b = transposed(t)
        return how

    def blocks(self, block_rows: int | None, share: int) -> list[tuple[int, int]]:
        """Blocks of rows: of a fixed number, or of at most so many bytes while computed."""
        m = self.shape[0]
        if block_rows is not None:
            return [(lo, min(lo + block_rows, m)) for lo in range(0, m, block_rows)]
        edges, lo, most = [0], 0, max(1, share // self.each)
        while lo < m:
            end = int(np.searchsorted(self._before, self._before[lo] + most, "right")) - 1
            lo = min(max(lo + 1, end), m)
            edges.append(lo)
        return list(zip(edges, edges[1:]))


# -- threads ---------------------------------------------------------------------------------------


def _threads() -> int:
    return int(_core._blas()["threads"])


def in_order(work: Any, jobs: list[Any], ahead: int = 2) -> Any:
    """work(*job) for each job, in order, by as many threads as OpenBLAS has."""
    threads = min(_threads(), len(jobs))
    if threads < 2:
        for job in jobs:
            yield work(*job)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: collections.deque[Any] = collections.deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(work, *job))
            if len(waiting) >= threads + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for f in waiting:
            f.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


# -- the whole product -----------------------------------------------------------------------------


def limit() -> int | None:
    given: int | None = config.get("memory_limit")
    return given if given is not None else config.free_memory()


def refuse(p: Product, nnz: int, exact: bool) -> None:
    """Raises MaterializationError where so many entries do not fit; it names the ways that need
    less."""
    nbytes, most = p.nbytes(nnz), limit()
    if most is None or nbytes <= most:
        return
    size = ProductSize(p.shape, p.dtype, nnz, nbytes, p.products, exact)
    raise errors.MaterializationError(
        f"the product is {size}; {most:,} bytes are allowed or free. "
        "pl.sparse_matmul(A, B, out=folder) writes it to disk, pl.sparse_row_blocks(A, B) gives it "
        "in blocks of rows, mask=, threshold= and topk= keep less of it; diagonal(A @ B), "
        "trace(A @ B) and products with arrays do not need it"
    )


def counted(p: Product, upper: bool = False) -> np.ndarray:
    """Where each row begins, exactly."""
    return _starts(p.count(0, p.shape[0], upper, True))


def whole(p: Product) -> CSR:
    """The whole product. No count is needed where almost no two products fall on the same entry."""
    m, n = p.shape
    symmetry = p.symmetry()
    most = limit()
    if most is not None and p.nbytes(p.most) > most:
        guess = p.estimate()
        if p.nbytes(guess) > 1.25 * most:  # no need to count
            refuse(p, guess, False)
        refuse(p, int(counted(p)[-1]), True)
    loose = symmetry or p.most <= 1.25 * p.estimate()
    at = np.zeros(1, np.int64) if loose else counted(p)
    room = p.most if loose else int(at[-1])
    index, data = np.empty(room, p.a[1].dtype), np.empty(room, p.dtype)
    args = (p.a, p.b, bool(symmetry), 0, m, p.bound, at, index, data, True)
    found = _core._spgemm_fill(*args)
    if loose:
        at = _starts(found)
        index, data = index[: at[-1]], data[: at[-1]]
    if symmetry:
        at, index, data = _core._csr_mirror(symmetry == 2, at, index, data)
    return at, index, data, m, n


def product(A: Any, B: Any, dtype: Any = None) -> Any:
    """A B as a CSR array."""
    return as_scipy(whole(Product(A, B, dtype)))


# -- rows in blocks, with less kept of them --------------------------------------------------------


class Kept(NamedTuple):
    """What is kept of each row."""

    mask: CSR | None = None
    right: CSR | None = None  # B^T, where the mask's entries are computed one by one
    least: float = 0.0
    most: int = -1

    @property
    def all(self) -> bool:
        return self.mask is None and self.least <= 0 and self.most < 0


def kept(p: Product, mask: Any, threshold: float | None, topk: int | None) -> Kept:
    least = 0.0 if threshold is None else float(threshold)
    if not least >= 0:
        raise ValueError(f"threshold must be a number from 0 on, got {threshold!r}")
    if topk is not None:
        topk = config._number("topk", topk, "a number of entries a row", 0, _WIDE)
    most = -1 if topk is None else topk
    if mask is None:
        return Kept(None, None, least, most)
    M = _sp().csr_array(sparse_form(mask))
    if M.shape != p.shape:
        raise ValueError(f"mask has shape {M.shape}, the product {p.shape}")
    if not M.has_canonical_format:
        M = M.copy()  # the user's own arrays are not sorted
        M.sum_duplicates()
    M = M != 0
    ix = p.a[1].dtype
    places = (_narrowed(M.indptr, ix), _narrowed(M.indices, ix), np.empty(M.nnz, p.dtype), *M.shape)
    right = transposed(p.b)
    each = np.diff(right[0])
    dots = int(each[places[1]].sum(dtype=np.int64)) if M.nnz else 0
    return Kept(places, right if dots <= p.products else None, least, most)


def block(p: Product, k: Kept, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows lo to hi - 1: their lengths, columns and entries."""
    if k.right is not None and k.mask is not None:
        ptr = k.mask[0]
        at = (ptr[lo : hi + 1] - ptr[lo]).astype(np.int64)
        index, data = np.empty(at[-1], ptr.dtype), np.empty(at[-1], p.dtype)
        count = _core._spgemm_sampled(p.a, k.right, k.mask, lo, hi, at, index, data)
        if count.sum() < at[-1]:
            stays = np.arange(at[-1]) < np.repeat(at[:-1] + count, np.diff(at))
            index, data = index[stays], data[stays]
    else:
        room = p.room(lo, hi)
        index, data = np.empty(room, p.a[1].dtype), np.empty(room, p.dtype)
        rows = p.bound[lo:hi], np.zeros(1, np.int64), index, data
        count = _core._spgemm_fill(p.a, p.b, False, lo, hi, *rows)
        if k.mask is not None:
            count = _core._csr_meet(_starts(count), index, data, k.mask, lo)
    if k.least > 0 or k.most >= 0:
        count = _core._csr_keep(_starts(count), index, data, k.least, k.most)
    nnz = int(count.sum())
    if nnz < 0.75 * index.size:  # do not hold memory that was spare room only
        return count, index[:nnz].copy(), data[:nnz].copy()
    return count, index[:nnz], data[:nnz]


def _starts(count: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], count]).cumsum()


def share() -> int:
    """Bytes for one block while it is computed."""
    given = config.get("memory_limit")
    return _BLOCK if given is None else max(1, min(_BLOCK, given // (8 * _threads())))


def streamed(p: Product, k: Kept, block_rows: int | None, callback: Any, progress: Any) -> Any:
    """Yields (start, counts, indices, data) of one block of rows after the other."""
    if block_rows is not None:
        block_rows = config._number("block_rows", block_rows, "a number of rows", 1, 2**62)
    jobs = [(p, k, lo, hi) for lo, hi in p.blocks(block_rows, share())]
    bar = _bar(p.shape[0]) if progress else None
    try:
        for (_, _, lo, hi), found in zip(jobs, in_order(block, jobs)):
            yield lo, *found
            if bar is not None:
                bar.update(hi - lo)
            if callback is not None:
                callback(hi, p.shape[0])
    finally:
        if bar is not None:
            bar.close()


def _bar(total: int) -> Any:
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return tqdm(total=total, unit="rows")
