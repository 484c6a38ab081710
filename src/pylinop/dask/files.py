"""Opens operators from files and collections, and writes matrices as blocks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._base.replace_file import replacing
from .._base.sparse_arrays import checked
from .blocks import CsrFiles, InMemory, Npy, Zarr, as_block, csr_of
from .collections import blocks_of_array, blocks_of_frame
from .operator import BlockOperator

__all__ = ["from_array", "from_triplets", "open_blocks", "write_blocks"]

_INDEX_FILE = "blocks.json"


def _cuts(A: Any, block_bytes: int) -> list[int]:
    """Rows at which a matrix is cut, so that a block has about ``block_bytes``."""
    m = A.shape[0]
    if hasattr(A, "indptr"):
        size = A.data.itemsize + A.indices.itemsize
        # entries before each row, and the pointers
        before = A.indptr.astype(np.int64) * size + np.arange(m + 1) * A.indptr.itemsize
    else:
        row = int(np.prod(A.shape[1:], dtype=np.int64)) * A.dtype.itemsize
        before = np.arange(m + 1, dtype=np.int64) * max(row, 1)
    wanted = np.arange(block_bytes, int(before[-1]), block_bytes)
    inner = np.searchsorted(before, wanted)
    return sorted({0, m, *np.clip(inner, 1, m).tolist()} - ({0} if m == 0 else set())) or [0]


def write_blocks(A: Any, folder: str | os.PathLike[str], block_bytes: int = 64 << 20) -> None:
    """Write a matrix as blocks of rows that `open_blocks` maps.

    Parameters
    ----------
    A : array, memmap, scipy.sparse matrix, or an iterable of them
        An iterable gives blocks of rows one after the other, each written as it comes; so the
        whole need not fit into memory.
    folder : path
        The folder, which is made if it does not exist. An operator that it held is replaced.
    block_bytes : int
        About how large a block becomes; blocks of an iterable stay as they are.

    Raises
    ------
    ValueError
        Where blocks differ in their number of columns, or there is no block.

    Notes
    -----
    Dense blocks are ``.npy`` files, sparse ones three of them; ``blocks.json``, written last, says
    which belong together.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pld.write_blocks(np.arange(6.0).reshape(3, 2), folder)
    ...     pld.open_blocks(folder, engine="serial") @ np.ones(2)
    array([1., 5., 9.])
    """
    if int(block_bytes) < 1:
        raise ValueError(f"block_bytes={block_bytes!r} must be at least 1")
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    index = os.path.join(folder, _INDEX_FILE)
    if os.path.exists(index):
        os.unlink(index)
    rows: list[dict[str, Any]] = []
    columns: int | None = None
    for i, block in enumerate(_pieces(A, int(block_bytes))):
        if len(block.shape) != 2 or (columns is not None and block.shape[1] != columns):
            before = "" if columns is None else f", those before {columns} columns"
            raise ValueError(f"block {i} has shape {block.shape}{before}: blocks are matrices")
        columns = int(block.shape[1])
        name = f"{i:06d}"
        entry: dict[str, Any] = {"name": name, "shape": [int(n) for n in block.shape]}
        if hasattr(block, "tocsr"):
            entry["kind"] = "csr"
            csr = csr_of(block)
            for part in ("indptr", "indices", "data"):
                _save(os.path.join(folder, f"{name}.{part}.npy"), getattr(csr, part))
        else:
            entry["kind"] = "dense"
            _save(os.path.join(folder, f"{name}.npy"), np.ascontiguousarray(block))
        rows.append(entry)
    if not rows:
        raise ValueError("there is no block to write")
    with replacing(index) as f:
        f.write(json.dumps({"version": 1, "blocks": rows}).encode())


def _save(path: str, array: Any) -> None:
    """A .npy file in the place of one that may be mapped, by what is written too."""
    with replacing(path) as f:
        np.save(f, array, False)


def _plain(block: Any) -> Any:
    """An array of numbers."""
    if isinstance(block, np.ma.MaskedArray):
        raise TypeError("masked arrays are not taken: fill them first")
    block = np.asarray(block)
    if block.dtype.kind not in "biufc":
        raise TypeError(f"a block of dtype {block.dtype} is not one of numbers")
    return block


def _pieces(A: Any, block_bytes: int) -> Iterable[Any]:
    if not hasattr(A, "shape"):
        for block in A:
            yield block if hasattr(block, "tocsr") else _plain(block)
        return
    A = checked(A).tocsr() if hasattr(A, "tocsr") else _plain(A)
    if A.ndim != 2:
        raise ValueError(f"a matrix has two dimensions, got shape {A.shape}")
    cuts = _cuts(A, block_bytes)
    for lo, hi in zip(cuts[:-1], cuts[1:], strict=True):
        yield A[lo:hi]
    if len(cuts) < 2:
        yield A


def open_blocks(folder: str | os.PathLike[str], **settings: Any) -> BlockOperator:
    """Open the operator that `write_blocks` wrote: its files are mapped, nothing is read.

    Parameters
    ----------
    folder : path
    **settings
        Arguments of `BlockOperator`: engine, workers, memory_limit, parts, dtype.

    Returns
    -------
    BlockOperator

    Raises
    ------
    FileNotFoundError
        Where the folder holds no ``blocks.json``.
    ValueError
        Where a file does not have the shape that ``blocks.json`` says.
    """
    folder = os.fspath(folder)
    with open(os.path.join(folder, _INDEX_FILE), encoding="utf-8") as f:
        index = json.load(f)
    if index.get("version") != 1:
        raise ValueError(f"{folder} is of version {index.get('version')!r}, this reads 1")
    blocks: list[Any] = []
    for entry in index["blocks"]:
        name = os.path.join(folder, entry["name"])
        shape = tuple(entry["shape"])
        if entry["kind"] == "csr":
            indptr, indices, data = (f"{name}.{p}.npy" for p in ("indptr", "indices", "data"))
            blocks.append(CsrFiles(indptr, indices, data, shape))
            continue
        block = Npy(f"{name}.npy")
        if block.shape != shape:
            raise ValueError(f"{block.path} holds shape {block.shape}, the index says {shape}")
        blocks.append(block)
    return BlockOperator(blocks, **settings)


def from_array(x: Any, block_bytes: int = 64 << 20, **settings: Any) -> BlockOperator:
    """Make an operator of blocks of rows of an array of NumPy, scipy.sparse, zarr or dask.

    Parameters
    ----------
    x : array, or scipy.sparse matrix
        Of a dask array the chunks along the rows are the blocks; columns in several chunks are
        joined as a block is made.
    block_bytes : int
        About how large a block is; blocks of a dask array are its chunks.
    **settings
        Arguments of `BlockOperator`.

    Returns
    -------
    BlockOperator

    Raises
    ------
    ValueError
        Where the array does not have two dimensions, or a dask array has unknown chunk sizes.
    """
    if not hasattr(x, "shape") or hasattr(x, "_computed"):  # lists, a LazyArray
        x = np.asarray(x)
    if len(x.shape) != 2:
        raise ValueError(f"an operator is made of two dimensions, got shape {x.shape}")
    if hasattr(x, "dask") and hasattr(x, "chunks"):
        return BlockOperator(blocks_of_array(x), **settings)
    if hasattr(x, "store") and hasattr(x, "chunks"):
        return BlockOperator(_zarr_blocks(x, block_bytes), **settings)
    if hasattr(x, "tocsr"):
        x = checked(x).tocsr()
    cuts = _cuts(x, block_bytes)
    pairs = list(zip(cuts[:-1], cuts[1:], strict=True)) or [(0, 0)]
    return BlockOperator([as_block(x[lo:hi]) for lo, hi in pairs], **settings)


def _zarr_blocks(x: Any, block_bytes: int) -> list[Any]:
    """Blocks of whole chunks of a zarr array; read where they are needed, if it lies in files."""
    root = getattr(x.store, "root", None) or getattr(x.store, "path", None)
    chunk = max(1, int(x.chunks[0]))
    row = max(1, int(x.shape[1]) * np.dtype(x.dtype).itemsize)
    rows = max(1, int(block_bytes) // (row * chunk)) * chunk
    starts = range(0, int(x.shape[0]), rows)
    if root is None:
        return [InMemory(np.asarray(x[i : i + rows])) for i in starts]
    return [Zarr(str(root), x.path or None, i, i + rows) for i in starts]


def from_triplets(
    frame: Any,
    shape: tuple[int, int],
    columns: Sequence[str] = ("row", "col", "value"),
    rows: Sequence[int] | None = None,
    nbytes: int | None = None,
    **settings: Any,
) -> BlockOperator:
    """Make an operator of a dask DataFrame of triplets that is partitioned by row.

    Parameters
    ----------
    frame : dask DataFrame
        Each partition holds the triplets of a range of rows; values at one place are added.
    shape : (int, int)
    columns : three names
        The names of the columns with row, column and value.
    rows : sequence of int, optional
        The first row of each partition and, last, ``shape[0]``. When not given they come from the
        frame's divisions if its index is the row; else from one pass over the row column.
    nbytes : int, optional
        Bytes of the largest partition as a block; found in the same pass when not given.
    **settings
        Arguments of `BlockOperator`.

    Returns
    -------
    BlockOperator

    Raises
    ------
    ValueError
        Where partitions share rows or are not in their order; at a product, where a triplet lies
        outside its partition's rows or the columns.
    """
    return BlockOperator(blocks_of_frame(frame, shape, columns, rows, nbytes), **settings)
