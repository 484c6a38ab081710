"""sparse_matmul and related functions: products of sparse matrices as a whole, in part, in blocks,
or on disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base import config, errors, replace_file
from .._base.lazy_import import Later, Standard

if TYPE_CHECKING:
    from .._core import _OperatorLike
    from .spgemm import Product, ProductSize

__all__ = ["load_sparse", "sparse_matmul", "sparse_product_size", "sparse_row_blocks"]
_products = Later("_sparse.spgemm")
_json = Standard("json")

_FORMAT = 1
_HEADER = "sparse.json"


def sparse_product_size(A: _OperatorLike, B: _OperatorLike, *, exact: bool = True) -> ProductSize:
    """The size of the product of two sparse matrices, before it is computed.

    Parameters
    ----------
    A, B : scipy.sparse matrix or operator
        As in `sparse_matmul`.
    exact : bool
        Count the entries. False: extrapolate from 64 evenly spaced rows.

    Returns
    -------
    ProductSize
        Named tuple: ``shape``, ``dtype``, ``nnz``, ``nbytes`` (as CSR), ``products`` (the
        multiplications it takes), ``exact``. Its text is a sentence.

    Raises
    ------
    ValueError
        When the shapes do not fit.

    Notes
    -----
    The indices of the multiplications are read once, which takes about a third of the time of the
    product itself; ``exact=False`` costs next to nothing. Entries that cancel to zero count.

    Examples
    --------
    >>> import scipy.sparse as sp, pylinop as pl
    >>> S = sp.eye_array(1000, k=1, format="csr")
    >>> pl.sparse_product_size(S, S).nnz
    998
    >>> print(pl.sparse_product_size(S, S.T))
    1,000 x 1,000 float64, 999 entries, 15,992 bytes as CSR, 999 multiplications
    """
    p = _products.Product(A, B)
    exact = exact or p.shape[0] <= 64
    nnz = int(_products.counted(p)[-1]) if exact else p.estimate()
    size: ProductSize = _products.ProductSize(
        p.shape, p.dtype, nnz, p.nbytes(nnz), p.products, exact
    )
    return size


def sparse_row_blocks(
    A: _OperatorLike,
    B: _OperatorLike,
    *,
    mask: _OperatorLike | None = None,
    threshold: float | None = None,
    topk: int | None = None,
    block_rows: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
    progress: bool = False,
) -> Iterator[tuple[int, Any]]:
    """The product of two sparse matrices by blocks of rows, for products that do not fit in memory.

    Parameters
    ----------
    A, B, mask, threshold, topk, callback, progress
        As in `sparse_matmul`.
    block_rows : int, optional
        Rows of a block. If not given, as many as take 64 MiB (or what
        ``pl.config(memory_limit=...)`` leaves for them) while they are computed.

    Returns
    -------
    iterator of (int, scipy.sparse.csr_array)
        The first row of a block, and the block.

    Raises
    ------
    ValueError
        When shapes do not fit, or an option is out of its range.

    Notes
    -----
    Blocks are computed ahead by as many threads as OpenBLAS has (``pl.config(threads=...)``).

    Examples
    --------
    >>> import scipy.sparse as sp, pylinop as pl
    >>> S = sp.eye_array(5, k=1, format="csr")
    >>> [(start, block.nnz) for start, block in pl.sparse_row_blocks(S, S.T, block_rows=2)]
    [(0, 2), (2, 2), (4, 0)]
    """
    p = _products.Product(A, B)
    k = _products.kept(p, mask, threshold, topk)

    def blocks() -> Iterator[tuple[int, Any]]:
        for lo, count, index, data in _products.streamed(p, k, block_rows, callback, progress):
            at = _products._starts(count)
            yield lo, _products.as_scipy((at, index, data, count.size, p.shape[1]))

    return blocks()


def sparse_matmul(
    A: _OperatorLike,
    B: _OperatorLike,
    *,
    mask: _OperatorLike | None = None,
    threshold: float | None = None,
    topk: int | None = None,
    out: str | os.PathLike[str] | None = None,
    block_rows: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
    progress: bool = False,
) -> Any:
    """The product of two sparse matrices, computed now: all of it, or the wanted part.

    ``A @ B`` of operators stays lazy, and its products with arrays, its diagonals and traces never
    need the matrix; this function is for the matrix itself.

    Parameters
    ----------
    A, B : scipy.sparse matrix, array_like or operator, shapes (m, n) and (n, k)
        Operators that are sparse by structure (`Sparse`, `Banded`, a `Kron` of these, sums,
        products, ...) are written out sparsely.
    mask : scipy.sparse matrix or operator, shape (m, k), optional
        Only entries where the mask has a nonzero are computed or kept.
    threshold : float, optional
        Entries of modulus below it are dropped.
    topk : int, optional
        At most so many entries of each row are kept, those of largest modulus; of equal ones the
        first columns.
    out : path, optional
        A folder to write to, one block of rows after the other: ``data.npy``, ``indices.npy``,
        ``indptr.npy`` and ``sparse.json``. The arrays of the result are mapped from there;
        `load_sparse` opens it again.
    block_rows : int, optional
        As in `sparse_row_blocks`; not for a whole product in memory.
    callback : callable, optional
        Called with (rows done, rows) after each block.
    progress : bool
        Show a bar, where tqdm is installed.

    Returns
    -------
    scipy.sparse.csr_array
        It has sorted columns and the promotion of the dtypes; integers wrap. Entries that cancel to
        zero stay. Only one triangle of A A^T and A A^H is computed where that pays off.

    Raises
    ------
    MaterializationError
        When it would not fit in memory; the message says how large it is and what to do.
    ValueError, TypeError
        When shapes do not fit, an option is out of its range, or the core does not know the dtype.
    IndexError
        When an index of A or B lies outside.

    Notes
    -----
    Gustavson's algorithm goes row by row, in two passes (the first counts); a row is collected in
    an array as long as a row of the result, or in a hash table if it is short (Gustavson 1978;
    Nagasaka, Matsuoka, Azad and Buluc 2018). With a mask of few entries, each entry is computed as
    a product of a row and a column. Each entry is the sum that SciPy computes, in the same order,
    on any number of threads.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, pylinop as pl
    >>> S = sp.csr_array([[1.0, 2.0], [0.0, 3.0]])
    >>> pl.sparse_matmul(S, S.T).toarray()
    array([[5., 6.],
           [6., 9.]])
    >>> pl.sparse_matmul(S, S.T, topk=1).toarray()
    array([[0., 6.],
           [0., 9.]])
    """
    p = _products.Product(A, B)
    k = _products.kept(p, mask, threshold, topk)
    if out is not None:
        return _write(p, k, os.fspath(out), block_rows, callback, progress)
    whole = k.all and block_rows is None and callback is None and not progress
    if whole:
        return _products.as_scipy(_products.whole(p))
    if k.all:
        _products.refuse(p, int(_products.counted(p)[-1]), True)
    counts, columns, entries, nnz = [np.zeros(0, np.int64)], [], [], 0
    for _, count, index, data in _products.streamed(p, k, block_rows, callback, progress):
        nnz += index.size
        counts.append(count)
        columns.append(index)
        entries.append(data)
        _within(p, nnz)
    at = _products._starts(np.concatenate(counts))
    index = np.concatenate(columns) if columns else np.empty(0, p.a[1].dtype)
    data = np.concatenate(entries) if entries else np.empty(0, p.dtype)
    return _products.as_scipy((at, index, data, *p.shape))


def _within(p: Product, nnz: int) -> None:
    """Checks that the entries kept so far fit twice: they are joined at the end."""
    most = config.get("memory_limit")
    if most is not None and 2 * p.nbytes(nnz) > most:
        raise errors.MaterializationError(
            f"{nnz:,} entries of the product of shape {p.shape} were kept when the memory_limit of "
            f"{most:,} bytes was passed: raise threshold, keep fewer (topk=), or give out="
        )


# -- on disk ---------------------------------------------------------------------------------------


class _Npy:
    """A one-dimensional .npy file that grows; its header has room for any length."""

    def __init__(self, path: str, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.n = 0
        self.place = replace_file.replacing(path)
        self.file = self.place.__enter__()
        self._head()
        self.begin = self.file.tell()

    def _head(self) -> None:
        d = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.n,)}
        np.lib.format.write_array_header_1_0(self.file, d)

    def append(self, a: np.ndarray) -> None:
        np.ascontiguousarray(a, self.dtype).tofile(self.file)
        self.n += a.size

    def __enter__(self) -> _Npy:
        return self

    def __exit__(self, *raised: Any) -> None:
        if raised[0] is not None:
            self.place.__exit__(*raised)
            return
        self.file.seek(0)
        self._head()
        if self.file.tell() != self.begin:
            error = RuntimeError(f"the header of {self.file.name} has outgrown its room")
            self.place.__exit__(RuntimeError, error, None)
        self.place.__exit__(None, None, None)


def _write(
    p: Product, k: Any, folder: str, block_rows: int | None, callback: Any, progress: Any
) -> Any:
    os.makedirs(folder, exist_ok=True)
    header = os.path.join(folder, _HEADER)
    if os.path.exists(header):
        os.remove(header)  # until everything is written there is no matrix here
    most = p.most if k.most < 0 else min(p.most, p.shape[0] * k.most)
    ix = p.a[1].dtype if most <= _products._WIDE else np.int64  # SciPy wants one for both
    parts, nnz = (("data", p.dtype), ("indices", ix), ("indptr", np.int64)), 0
    with contextlib.ExitStack() as stack:  # A and B may be mapped from files of these names
        files = [
            stack.enter_context(_Npy(os.path.join(folder, f"{name}.npy"), dtype))
            for name, dtype in parts
        ]
        files[2].append(np.zeros(1, np.int64))
        for _, count, index, data in _products.streamed(p, k, block_rows, callback, progress):
            files[0].append(data)
            files[1].append(index)
            files[2].append(nnz + np.cumsum(count))
            nnz += index.size
    about = {
        "format": "pylinop CSR",
        "version": _FORMAT,
        "shape": list(p.shape),
        "dtype": p.dtype.str,
        "nnz": nnz,
    }
    with replace_file.replacing(header) as f:
        f.write(_json.dumps(about).encode())
    return load_sparse(folder, mmap_mode="r")


def load_sparse(path: str | os.PathLike[str], mmap_mode: Literal["r", "c"] | None = None) -> Any:
    """The matrix that `sparse_matmul` wrote to a folder.

    Parameters
    ----------
    path : path
        The folder.
    mmap_mode : {None, 'r', 'c'}
        As in `numpy.load`: with 'r' the arrays stay on disk and are read where they are used.

    Returns
    -------
    scipy.sparse.csr_array

    Raises
    ------
    FileNotFoundError
        When there is no such folder, or writing it was not finished.
    ValueError
        When the files do not fit together.

    Notes
    -----
    The arrays are plain .npy files: ``numpy.load(folder + "/data.npy", mmap_mode="r")`` opens them
    too.

    Examples
    --------
    >>> import tempfile, scipy.sparse as sp, pylinop as pl
    >>> S = sp.eye_array(3, format="csr")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = pl.sparse_matmul(S, S, out=folder)
    ...     pl.load_sparse(folder).nnz
    3
    """
    folder = os.fspath(path)
    with open(os.path.join(folder, _HEADER), encoding="ascii") as f:
        about = _json.load(f)
    if about.get("format") != "pylinop CSR" or about.get("version") != _FORMAT:
        raise ValueError(f"{folder} holds no matrix of this version: {about}")
    data, index, ptr = (
        np.load(os.path.join(folder, f"{name}.npy"), mmap_mode=mmap_mode)
        for name in ("data", "indices", "indptr")
    )
    m, n = about["shape"]
    if ptr.shape != (m + 1,) or not data.size == index.size == about["nnz"] == ptr[-1]:
        raise ValueError(f"the arrays in {folder} do not fit its header: {about}")
    if about["nnz"] <= np.iinfo(index.dtype).max:
        ptr = np.asarray(ptr, dtype=index.dtype)
    return _products.as_scipy((ptr, index, data, m, n))
