"""Blocks of dask collections: the chunks of arrays, the partitions of DataFrames of triplets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .blocks import Csr, InMemory, csr_of

__all__ = ["Chunk", "Lying", "Persisted", "Triplets", "blocks_of_array", "blocks_of_frame"]


def computed(delayed: Any) -> Any:
    """The value of a delayed object, computed here."""
    import dask  # type: ignore[import-untyped, unused-ignore]

    return dask.compute(delayed, scheduler="synchronous")[0]


def _futures(collection: Any) -> bool:
    """Does it rest on what lies on a cluster already?"""
    distributed = sys.modules.get("distributed")
    return distributed is not None and bool(distributed.client.futures_of(collection))


def _lying(collection: Any, keys: Any) -> Any:
    """The future behind each key of a collection that lies on a cluster, in lists as they are."""
    graph, by_key = collection.__dask_graph__(), {}
    for future in sys.modules["distributed"].client.futures_of(collection):
        by_key[future.key] = future

    def find(key: Any) -> Any:
        if isinstance(key, list):
            return [find(k) for k in key]
        for _ in range(len(graph) + 1):  # a key may be an alias of another
            there = by_key.get(key, graph.get(key))
            if hasattr(there, "result"):
                return there
            key = getattr(there, "target", None)
        raise ValueError(
            f"the {type(collection).__name__.lower()} is to be computed from what lies on a "
            "cluster: persist() it too"
        )

    return find(keys)


class Chunk:
    """Rows of a dask array: a delayed array, computed where the block is used."""

    mapped = False

    def __init__(self, delayed: Any, shape: tuple[int, int], dtype: Any) -> None:
        self.delayed = delayed
        self.shape: tuple[int, ...] = (int(shape[0]), int(shape[1]))
        self.dtype = np.dtype(dtype)
        # the array, and its chunks while they are joined
        self.nbytes = 2 * self.shape[0] * self.shape[1] * self.dtype.itemsize

    def load(self) -> Any:
        """The rows."""
        return computed(self.delayed)


class Lying:
    """A block that lies on a cluster's workers, behind futures.

    Used by that cluster it goes from worker to worker: `cluster.Dask` hands the futures' values to
    the actor, which says `made` of them. Elsewhere they are fetched. Futures do not travel with the
    block: they stay with the client that knows them."""

    mapped = False
    futures: tuple[Any, ...] = ()

    def made(self, values: Sequence[Any]) -> InMemory:
        """The block of the futures' values."""
        raise NotImplementedError

    def load(self) -> Any:
        """The block, fetched."""
        return self.made([f.result() for f in self.futures]).load()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "futures": ()}


class Persisted(Lying):
    """Rows of an array whose chunks lie on workers."""

    def __init__(self, futures: Sequence[Any], shape: tuple[int, int], dtype: Any) -> None:
        self.futures = tuple(futures)
        self.shape: tuple[int, ...] = (int(shape[0]), int(shape[1]))
        self.dtype = np.dtype(dtype)
        self.nbytes = 2 * self.shape[0] * self.shape[1] * self.dtype.itemsize

    def made(self, values: Sequence[Any]) -> InMemory:
        """The chunks beside each other."""
        return InMemory(np.concatenate([np.asarray(v) for v in values], axis=1))


def blocks_of_array(x: Any) -> list[Chunk] | list[Persisted]:
    """A block for each range of rows that a dask array has chunks of."""
    if any(np.isnan(c) for along in x.chunks for c in along):
        raise ValueError(f"chunk sizes are not known: {x.chunks}; call compute_chunk_sizes()")
    n = x.shape[1]
    if _futures(x):
        lie = _lying(x, x.__dask_keys__())
        return [Persisted(f, (m, n), x.dtype) for f, m in zip(lie, x.chunks[0], strict=True)]
    x = x.rechunk({1: -1})
    return [
        Chunk(row[0], (rows, n), x.dtype)
        for row, rows in zip(x.to_delayed(), x.chunks[0], strict=True)
    ]


class Triplets:
    """A partition of a DataFrame of triplets, as sparse rows ``first`` to ``first + shape[0]``."""

    mapped = False

    def __init__(
        self,
        delayed: Any,
        first: int,
        shape: tuple[int, int],
        dtype: Any,
        columns: Sequence[str],
        nbytes: int,
    ) -> None:
        self.delayed, self.first, self.columns = delayed, int(first), tuple(columns)
        self.shape: tuple[int, ...] = (int(shape[0]), int(shape[1]))
        self.dtype, self.nbytes = np.dtype(dtype), int(nbytes)

    def load(self) -> Csr:
        """The rows; triplets of one place add."""
        return csr_of(self.rows(computed(self.delayed)))

    def rows(self, frame: Any) -> Any:
        """A sparse array of a partition."""
        import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

        row, col = (_whole(_column(frame, name), name) for name in self.columns[:2])
        row, value = row - self.first, np.asarray(frame[self.columns[2]], self.dtype)
        (m, n) = self.shape
        for name, index, limit, base in ((0, row, m, self.first), (1, col, n, 0)):
            if len(index) and not (0 <= index.min() and index.max() < limit):
                raise ValueError(
                    f"column {self.columns[name]!r} of a partition holds {index.min() + base} to "
                    f"{index.max() + base}; its block has {base} to {base + limit - 1}"
                )
        return scipy.sparse.coo_array((value, (row, col)), shape=(m, n)).tocsr()


class LyingTriplets(Lying, Triplets):
    """A partition that lies on a worker."""

    def __init__(self, future: Any, *said: Any) -> None:
        Triplets.__init__(self, None, *said)
        self.futures = (future,)

    def made(self, values: Sequence[Any]) -> InMemory:
        """The rows of the partition."""
        return InMemory(self.rows(values[0]))


def _column(frame: Any, name: str) -> Any:
    """A column of a partition, or its index."""
    return frame.index if name not in frame.columns and frame.index.name == name else frame[name]


def _whole(column: Any, name: str) -> Any:
    """Indices as int64; a ValueError for what is no whole number."""
    given = np.asarray(column)
    if given.dtype.kind in "iu":
        return given.astype(np.int64)
    try:
        index = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} holds {given.dtype}, not whole numbers") from None
    if not np.array_equal(index, np.rint(index)):
        first = index[index != np.rint(index)][0]
        raise ValueError(f"column {name!r} holds {first}: rows and columns are whole numbers")
    return index.astype(np.int64)


def _edges(frame: Any, row: str, m: int, rows: Any, lying: Any) -> tuple[list[int], int | None]:
    """First rows of the partitions, and m; the length of the largest, where it was looked at."""
    count = frame.npartitions
    if rows is not None:
        edges = [int(r) for r in rows]
        if len(edges) != count + 1 or edges[0] != 0 or edges[-1] != m or sorted(edges) != edges:
            raise ValueError(f"rows= is {count + 1} ascending numbers from 0 to {m}, got {edges}")
        return edges, None
    if frame.known_divisions and frame.index.name == row:
        inner = [int(d) for d in frame.divisions[1:-1]]
        return [0, *inner, m], None
    found = _spans(frame, row, lying)
    edges, last = [0], -1
    for low, high, length in found:
        if length and low < 0:
            raise ValueError(f"column {row!r} holds {low}: rows are numbered from 0 to {m - 1}")
        if length and low <= last:
            raise ValueError(f"partitions share rows: one ends at row {last}, the next has {low}")
        last = high if length else last
        edges.append(last + 1)
    edges[-1] = m
    return edges, max((length for _, _, length in found), default=0)


def _spans(frame: Any, row: str, lying: Any) -> Any:
    """(first row, last, length) of each partition."""
    if lying is not None:
        client = lying[0].client
        return client.gather([client.submit(_ends, f, row) for f in lying])
    import dask  # type: ignore[import-untyped, unused-ignore]

    return dask.compute(*(dask.delayed(_ends)(p, row) for p in frame[[row]].to_delayed()))


def _ends(frame: Any, name: str) -> tuple[int, int, int]:
    if not len(frame):
        return 0, -1, 0
    rows = _whole(_column(frame, name), name)
    return int(rows.min()), int(rows.max()), len(rows)


def blocks_of_frame(
    frame: Any,
    shape: tuple[int, int],
    columns: Sequence[str],
    rows: Sequence[int] | None,
    nbytes: int | None,
) -> list[Triplets]:
    """A block for each partition."""
    if not hasattr(frame, "npartitions"):
        raise TypeError(
            f"from_triplets takes a dask DataFrame, got {type(frame).__name__}; "
            "dask.dataframe.from_pandas makes one"
        )
    if len(shape) != 2:
        raise ValueError(f"shape={shape}: rows and columns of a matrix")
    m, n = (int(k) for k in shape)
    lying = _lying(frame, frame.__dask_keys__()) if _futures(frame) else None
    if len(columns) != 3:
        raise ValueError(f"columns= names row, column and value, got {tuple(columns)}")
    row, _, value = columns
    there = [*frame.columns, *([row] if frame.index.name == row else [])]
    if lying is None and row not in frame.columns and row in there:
        frame = frame.assign(**{row: frame.index})
    for name in columns:
        if name not in there:
            raise ValueError(f"the frame has the columns {list(frame.columns)}, not {name!r}")
    held = frame.dtypes[value]
    held = getattr(held, "numpy_dtype", held)  # pandas' nullable numbers
    if not (isinstance(held, np.dtype) and held.kind in "biufc"):
        raise TypeError(f"column {value!r} holds {frame.dtypes[value]}, not numbers")
    dtype = held
    edges, longest = _edges(frame, row, m, rows, lying)
    if nbytes is None:
        if longest is None:
            longest = max(length for _, _, length in _spans(frame, row, lying))
        # the frame's three columns, the triplets, and the rows that are made of them
        nbytes = longest * 3 * (16 + dtype.itemsize)
    kind: Any = Triplets if lying is None else LyingTriplets
    sources: Any = frame[list(columns)].to_delayed() if lying is None else lying
    return [
        kind(d, lo, (hi - lo, n), dtype, columns, nbytes + 8 * (hi - lo))
        for d, lo, hi in zip(sources, edges[:-1], edges[1:], strict=True)
    ]
