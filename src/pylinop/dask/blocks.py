"""Blocks of a large operator: each knows where it lies, how large it is, and how it is read.

A block knows ``shape``, ``dtype`` and ``nbytes`` before it is read; ``load()`` reads it, as an
ndarray or as `Csr`. Blocks are small descriptions: they are pickled to where the work is done."""

from __future__ import annotations

import mmap
import os
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._base.sparse_arrays import checked

__all__ = ["Block", "Call", "Csr", "CsrFiles", "InMemory", "Npy", "Npz", "Zarr", "as_block"]

_INDEX = (np.dtype(np.int32), np.dtype(np.int64))


class Csr(NamedTuple):
    """A sparse block that was loaded, as the arrays of compressed sparse rows."""

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]


@runtime_checkable
class Block(Protocol):
    """A block of a matrix: its sizes are known beforehand, and `load` reads it.

    ``nbytes`` is at least what the result of ``load()`` takes. ``mapped`` says that these bytes
    are pages of a file, which the system can take back.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    mapped: bool

    def load(self) -> Any:
        """Return the block, as an ndarray or a `Csr`."""


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    count = dtype.itemsize
    for n in shape:
        count *= int(n)
    return count


def _header(f: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, in Fortran's order?, dtype) of a .npy file; it then stands at the numbers."""
    version = np.lib.format.read_magic(f)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    return read(f)


def csr_of(matrix: Any) -> Csr:
    """The arrays of a scipy.sparse matrix, with indices that the kernels take."""
    A = checked(matrix).tocsr()
    kind = np.result_type(A.indptr.dtype, A.indices.dtype)
    if kind not in _INDEX:
        kind = np.dtype(np.int64)
    return Csr(
        A.indptr.astype(kind, copy=False), A.indices.astype(kind, copy=False), A.data, A.shape
    )


class InMemory:
    """A block that is there: an array, or a scipy.sparse matrix. It travels with its values."""

    mapped = False

    def __init__(self, array: Any) -> None:
        if hasattr(array, "tocsr"):
            self.value: Any = csr_of(array)
            parts = [self.value.indptr, self.value.indices, self.value.data]
            self.nbytes = sum(int(p.nbytes) for p in parts)
            self.dtype = np.dtype(self.value.data.dtype)
        else:
            if isinstance(array, np.ma.MaskedArray):
                raise TypeError("masked arrays are not taken: fill them first")
            self.value = np.asarray(array)
            self.nbytes, self.dtype = int(self.value.nbytes), self.value.dtype
        self.shape: tuple[int, ...] = tuple(int(n) for n in self.value.shape)

    def load(self) -> Any:
        """Return the array itself."""
        return self.value


class Npy:
    """Rows ``start`` to ``stop`` of a ``.npy`` file, mapped."""

    mapped = True

    def __init__(
        self, path: str | os.PathLike[str], start: int = 0, stop: int | None = None
    ) -> None:
        self.path = os.path.abspath(path)
        self._known: Any = None  # what tells whether the file has changed, and what its header says
        whole = self._open()
        self.start, self.stop, _ = slice(start, stop).indices(whole.shape[0])
        self.shape: tuple[int, ...] = (max(self.stop - self.start, 0), *whole.shape[1:])
        self.dtype = whole.dtype
        self.nbytes = _size(self.shape, self.dtype)

    def _open(self) -> Any:
        """The whole array, mapped. The header is read again where the file has changed."""
        with open(self.path, "rb") as f:
            stat = os.fstat(f.fileno())
            stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if self._known is None or self._known[0] != stamp:
                said = _header(f)
                if not said[0]:
                    raise ValueError(f"{self.path} holds a single number, not rows")
                if said[2].hasobject:
                    raise ValueError(f"{self.path} holds objects")
                self._known = (stamp, *said, f.tell())
            _, shape, fortran, dtype, offset = self._known
            end = offset + _size(shape, dtype)
            if end > stat.st_size:
                raise ValueError(
                    f"{self.path} has {stat.st_size} bytes; its header says {dtype}{list(shape)}, "
                    f"which ends at {end}"
                )
            if 0 in shape:  # nothing that could be mapped
                return np.zeros(shape, dtype)
            memory = mmap.mmap(f.fileno(), end, access=mmap.ACCESS_READ)
        return np.ndarray(shape, dtype, memory, offset, order="F" if fortran else "C")

    def load(self) -> Any:
        """The rows, mapped."""
        return self._open()[self.start : self.stop]


class CsrFiles:
    """A sparse block in three ``.npy`` files: ``indptr``, ``indices`` and ``data``, mapped."""

    mapped = True

    def __init__(
        self,
        indptr: str | os.PathLike[str],
        indices: str | os.PathLike[str],
        data: str | os.PathLike[str],
        shape: tuple[int, int],
    ) -> None:
        self.parts = (Npy(indptr), Npy(indices), Npy(data))
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)
        self.dtype = self.parts[2].dtype
        self.nbytes = sum(p.nbytes for p in self.parts)
        rows = self.parts[0].shape[0] - 1
        if rows != self.shape[0]:
            raise ValueError(f"{self.parts[0].path} is of {rows} rows, the block of shape {shape}")

    def load(self) -> Csr:
        """The three arrays, mapped."""
        indptr, indices, data = (p.load() for p in self.parts)
        return Csr(indptr, indices, data, (self.shape[0], self.shape[1]))


def _headers(path: str) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of each array of a .npz file, by its headers alone."""
    found = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            with z.open(name) as f:
                shape, _, dtype = _header(f)
            found[name.removesuffix(".npy")] = (shape, dtype)
    return found


class Npz:
    """A block in a ``.npz`` file of ``scipy.sparse.save_npz``, or a named array of ``numpy.savez``.

    A block that is not kept is read again each time; ``.npy`` files are mapped and cost less.
    """

    mapped = False

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        self.path, self.name = os.path.abspath(path), name
        headers = _headers(self.path)
        self.sparse = name is None and {"format", "shape", "data"} <= headers.keys()
        if self.sparse:
            with np.load(self.path) as z:
                self.shape: tuple[int, ...] = tuple(int(n) for n in z["shape"])
                self.format = z["format"].item()
            if isinstance(self.format, bytes):
                self.format = self.format.decode()
            total = sum(_size(*h) for h in headers.values())
            self.nbytes = total if self.format == "csr" else 2 * total  # both, while it changes
            self.dtype = headers["data"][1]
            return
        if name is None:
            if len(headers) != 1:
                raise ValueError(f"{path} holds {sorted(headers)}: say which by name=")
            self.name = next(iter(headers))
        elif name not in headers:
            raise ValueError(f"{path} holds {sorted(headers)}, not {name!r}")
        self.shape, self.dtype = headers[str(self.name)]
        self.nbytes = _size(self.shape, self.dtype)

    def load(self) -> Any:
        """Read the array, or the sparse block's arrays, anew."""
        with np.load(self.path) as z:
            if not self.sparse:
                return z[str(self.name)]
            if self.format == "csr":
                return Csr(z["indptr"], z["indices"], z["data"], (self.shape[0], self.shape[1]))
        import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

        return csr_of(scipy.sparse.load_npz(self.path))


class Zarr:
    """Rows ``start`` to ``stop`` of a two-dimensional zarr array; needs zarr where it is read."""

    mapped = False

    def __init__(
        self, store: str, path: str | None = None, start: int = 0, stop: int | None = None
    ) -> None:
        self.store, self.path = store, path
        whole = self._open()
        self.start, self.stop, _ = slice(start, stop).indices(whole.shape[0])
        self.shape: tuple[int, ...] = (max(self.stop - self.start, 0), *whole.shape[1:])
        self.dtype = np.dtype(whole.dtype)
        self.nbytes = _size(self.shape, self.dtype)

    def _open(self) -> Any:
        import zarr  # type: ignore[import-not-found, unused-ignore]

        found = zarr.open(self.store, mode="r")
        return found if self.path is None else found[self.path]

    def load(self) -> Any:
        """The rows, read anew."""
        return np.asarray(self._open()[self.start : self.stop])


class Call:
    """A block that a function makes: ``function(*args)`` gives an array or a scipy.sparse matrix.

    Parameters
    ----------
    function : callable
        Pickled to where it is called, so not a lambda where other processes do the work.
    shape : (int, int)
    dtype : dtype
    nbytes : int, optional
        Bytes of the result; for a dense one they follow from shape and dtype.
    args : tuple
    """

    mapped = False

    def __init__(
        self,
        function: Callable[..., Any],
        shape: tuple[int, int],
        dtype: Any = float,
        nbytes: int | None = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        self.function, self.args = function, args
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = _size(self.shape, self.dtype) if nbytes is None else int(nbytes)

    def load(self) -> Any:
        """Return what the function gives."""
        made = self.function(*self.args)
        return csr_of(made) if hasattr(made, "tocsr") else made


def as_block(x: Any) -> Block:
    """Make a block of a block, an array, a sparse matrix or a path."""
    if isinstance(x, str | os.PathLike):
        name = os.fspath(x)
        if name.endswith(".npz"):
            return Npz(name)
        if name.endswith(".npy"):
            return Npy(name)
        raise ValueError(f"{name!r} ends neither in .npy nor in .npz")
    if hasattr(x, "load") and hasattr(x, "nbytes"):
        return x  # type: ignore[no-any-return]
    if isinstance(x, np.memmap) and x.filename is not None and x.ndim == 2:
        mapped = _npy_rows(x)
        if mapped is not None:
            return mapped
    if isinstance(x, np.ndarray) or hasattr(x, "tocsr"):
        return InMemory(x)
    raise TypeError(
        f"a block is an array, a scipy.sparse matrix, a path or has load(); got {type(x).__name__}"
    )


def _npy_rows(x: Any) -> Npy | None:
    """The rows of a .npy file that a memmap shows, where it shows whole rows of one."""
    try:
        whole = Npy(x.filename)
    except (OSError, ValueError):
        return None
    base = whole.load()
    row = _size(base.shape[1:], base.dtype)
    if not (base.flags.c_contiguous and x.flags.c_contiguous and row and x.dtype == base.dtype):
        return None
    if x.shape[1:] != base.shape[1:]:
        return None
    top = x
    while isinstance(top.base, np.memmap):
        top = top.base
    if top.shape != base.shape or top.offset != whole._known[4]:
        return None
    start, rest = divmod(x.ctypes.data - top.ctypes.data, row)
    return None if rest else Npy(whole.path, start, start + x.shape[0])
