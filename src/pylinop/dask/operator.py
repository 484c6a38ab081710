"""BlockOperator: a linear operator of blocks that lie in files, processes or on other machines."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._base import config
from .._operators.linear_operator import LinearOperator
from .blocks import Block, Npy, as_block
from .choose_engine import engine_of
from .engines import Engine
from .held import Held
from .part import Spec

__all__ = ["BlockOperator", "Plan"]


class Plan:
    """What an operator needs of each worker, stated before anything is read.

    Attributes
    ----------
    parts : list of dict
        For each part: ``rows``, ``columns``, ``blocks``, ``bytes`` of its blocks, ``largest``
        (one block while it is read), ``vectors``, ``kept`` (blocks that stay), ``memory`` (all).
    bytes_per_iteration : int
        What travels to and from one part in an iteration of LSMR.
    """

    def __init__(self, op: BlockOperator, specs: list[Spec], limit: int | None) -> None:
        size = op._vector_dtype().itemsize
        self.limit = limit
        self.parts: list[dict[str, Any]] = []
        for spec in specs:
            sizes = [b.nbytes for b in spec.blocks]
            along = sum(b.shape[spec.axis] for b in spec.blocks)
            rows, columns = (along, op.shape[1]) if spec.axis == 0 else (op.shape[0], along)
            kept, largest = 0, max(sizes, default=0)
            for n in sizes:
                if spec.budget is None or kept + n <= spec.budget:
                    kept += n
            one = 0 if kept == sum(sizes) else largest
            vectors = size * (2 * rows + 3 * columns)
            self.parts.append(
                {
                    "rows": rows,
                    "columns": columns,
                    "blocks": len(sizes),
                    "bytes": sum(sizes),
                    "largest": largest,
                    "vectors": vectors,
                    "kept": kept,
                    "memory": vectors + kept + one,
                }
            )
        across = max((p["columns"] for p in self.parts), default=0) if op.axis == 1 else 0
        self.bytes_per_iteration = 2 * size * (op.shape[1 - op.axis] + across)

    def __str__(self) -> str:
        lines = ["part      rows    blocks   bytes of blocks      kept   vectors    memory"]
        for i, p in enumerate(self.parts):
            lines.append(
                f"{i:4} {p['rows']:9} {p['blocks']:9} {p['bytes']:17,} {p['kept']:9,} "
                f"{p['vectors']:9,} {p['memory']:9,}"
            )
        limit = "none" if self.limit is None else f"{self.limit:,} bytes a worker"
        lines.append(
            f"limit: {limit}; to and from a part, an iteration: {self.bytes_per_iteration:,} bytes"
        )
        return "\n".join(lines)

    __repr__ = __str__


class BlockOperator(LinearOperator):
    """An operator whose blocks, above or beside each other, need not all fit into memory.

    Parameters
    ----------
    blocks : sequence
        What `as_block` takes: arrays, scipy.sparse matrices, paths of ``.npy`` and ``.npz`` files,
        blocks. All have one number of columns (``axis=0``) or of rows (``axis=1``).
    axis : {0, 1}
        0: blocks of rows, 1: blocks of columns.
    dtype : dtype, optional
        The dtype of products. When not given, the blocks' dtypes are promoted, integers as float64.
    engine : str, Engine or distributed.Client
        ``"threads"`` of this process, ``"processes"`` that it starts, ``"serial"``, ``"dask"``,
        ``"mpi"``; or a dask client, or an `Engine`.
    workers : int, optional
        How many threads, processes or dask workers.
    memory_limit : int, optional
        Bytes that a worker may use (threads of one process share them). Blocks beyond them
        are read again in every sweep. None: ``pl.config(memory_limit=...)`` at first use counts;
        without one, all blocks stay where half of this machine's free memory holds them.
    parts : int, optional
        How many parts the blocks are divided into; as many as workers when not given. Sums are
        made in the order of the parts: the same parts give the same bits, whatever the engine.

    Raises
    ------
    ValueError
        Where shapes do not fit together.
    TypeError
        For dtypes wider than double precision unless ``dtype`` is given, complex blocks of a real
        ``dtype``, objects, masked arrays.
    MemoryError
        At first use, where ``memory_limit`` does not hold the vectors and the largest block.

    Notes
    -----
    Nothing is read at construction. A product with a vector is one sweep over the blocks: each
    part reads its own, one after the other. `plan()` says beforehand what a worker needs. Used in
    expressions it is an operator like a user's own: it is not rewritten.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> A = pld.BlockOperator([np.eye(2), np.ones((1, 2))], engine="serial")
    >>> A @ np.array([1.0, 2.0])
    array([1., 2., 3.])
    >>> A.T @ np.ones(3)
    array([2., 2.])
    """

    def __init__(
        self,
        blocks: Iterable[Any],
        axis: int = 0,
        dtype: Any = None,
        engine: Any = "threads",
        workers: int | None = None,
        memory_limit: int | None = None,
        parts: int | None = None,
    ) -> None:
        self.blocks: tuple[Block, ...] = tuple(as_block(b) for b in blocks)
        self.axis = int(axis)
        if self.axis not in (0, 1):
            raise ValueError(f"axis={axis!r}: 0 for blocks of rows, 1 for blocks of columns")
        if not self.blocks:
            raise ValueError("a BlockOperator has at least one block")
        across = self.blocks[0].shape[1 - self.axis] if len(self.blocks[0].shape) == 2 else -1
        for i, b in enumerate(self.blocks):
            if len(b.shape) != 2:
                raise ValueError(f"block {i} has shape {tuple(b.shape)}, not two dimensions")
            if b.shape[1 - self.axis] != across:
                raise ValueError(
                    f"block {i} has shape {tuple(b.shape)}, block 0 {tuple(self.blocks[0].shape)}: "
                    f"they need one number of {('columns', 'rows')[self.axis]}"
                )
        dtype = self._dtype_of(dtype)
        along = sum(b.shape[self.axis] for b in self.blocks)
        shape = (along, across) if self.axis == 0 else (across, along)
        super().__init__(dtype, shape)
        for name, value in (("workers", workers), ("parts", parts), ("memory_limit", memory_limit)):
            if value is not None and int(value) < 1:
                raise ValueError(f"{name}={value!r} must be at least 1")
        self._settings = (engine, workers, memory_limit, parts)
        self._engine: Engine | None = None
        self._specs: list[Spec] = []

    def _dtype_of(self, asked: Any) -> np.dtype[Any]:
        """That of the products; a TypeError for blocks that it would not hold."""
        dtype = None if asked is None else np.dtype(asked)
        for i, b in enumerate(self.blocks):
            d = b.dtype
            if d.kind not in "biufc" or (d.char in "gG" and dtype is None):
                raise TypeError(
                    f"block {i} has dtype {d}: numbers of at most double precision are taken"
                    + ("; dtype= rounds to others" if d.kind in "fc" else "")
                )
            if d.kind == "c" and dtype is not None and dtype.kind != "c":
                raise TypeError(f"block {i} has dtype {d}, which dtype={dtype} does not hold")
        found = np.result_type(*(b.dtype for b in self.blocks)) if dtype is None else dtype
        if found.kind not in "biufc":
            raise TypeError(f"dtype={found}: float32, float64, complex64 or complex128")
        if found.char not in "fdFD":
            found = np.dtype(complex if found.kind == "c" else float)
        return found

    # -- where it runs -----------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine, which is started and gets its parts at first use."""
        if self._engine is None:
            made = engine_of(self._settings[0], self._settings[1])
            self._start(made)
            if not isinstance(self._settings[0], Engine):
                weakref.finalize(self, made.close)
        assert self._engine is not None
        if self._engine.placed is not self._specs:  # another operator has it, or it was closed
            self._start(self._engine, len(self._specs))
        return self._engine

    def _start(self, engine: Engine, parts: int | None = None) -> None:
        specs = self._split(engine, parts)
        self._within(specs, engine)
        engine.placed = None
        engine.start(specs)
        self._engine, self._specs, engine.placed = engine, specs, specs

    def _use_parts(self, parts: int) -> Engine:
        """The engine with so many parts: a resumed iteration has those it began with."""
        engine = self.engine
        if len(self._specs) != parts:
            self._start(engine, parts)
        return engine

    def _split(self, engine: Engine, parts: int | None = None) -> list[Spec]:
        """Consecutive blocks, near the same bytes in each part."""
        count = min(parts or self._settings[3] or engine.workers, len(self.blocks))
        sizes = np.array([max(1, b.nbytes) for b in self.blocks], float)
        middles = np.cumsum(sizes) - sizes / 2
        which = np.minimum((middles / sizes.sum() * count).astype(int), count - 1)
        for i in range(1, len(which)):  # no part may be empty
            which[i] = min(which[i], which[i - 1] + 1)
        which[0] = 0
        for i in range(len(which) - 1, -1, -1):
            which[i] = max(which[i], count - (len(which) - i))
        budget = self._budget(engine, count)
        return [
            Spec(
                p,
                tuple(b for b, w in zip(self.blocks, which, strict=True) if w == p),
                self.axis,
                self.dtype,
                budget,
            )
            for p in range(count)
        ]

    def _limit(self) -> Any:
        limit = self._settings[2]
        return config.get("memory_limit") if limit is None else limit

    def _budget(self, engine: Engine, count: int) -> int | None:
        """Bytes for blocks that a part keeps."""
        limit = self._limit()
        if limit is None:
            free = config.free_memory()
            return None if free is None else int(free) // 2 // count
        share = int(limit) // min(engine.split, count)
        if engine.split == 1:
            share = int(limit) // -(-count // engine.workers)
        size = self._vector_dtype().itemsize
        each = [-(-k // count) if at == self.axis else k for at, k in enumerate(self.shape)]
        largest = max(b.nbytes for b in self.blocks)
        return max(0, share - size * (2 * each[0] + 3 * each[1]) - largest)

    def _within(self, specs: list[Spec], engine: Engine) -> None:
        """A MemoryError where even one block at a time does not fit."""
        limit = self._limit()
        if limit is None:
            return
        plan = Plan(self, specs, limit)
        together = max(1, -(-len(specs) // engine.workers)) if engine.split == 1 else len(specs)
        least = together * max(p["vectors"] + p["largest"] for p in plan.parts)
        if least > int(limit):
            raise MemoryError(
                f"memory_limit={int(limit):,} bytes, but a worker needs {least:,}: "
                f"{max(p['vectors'] for p in plan.parts):,} for vectors of a part and "
                f"{max(p['largest'] for p in plan.parts):,} for the largest block, "
                f"{together} part(s) at once. Use smaller blocks or more workers"
            )

    def plan(self) -> Plan:
        """Say how many bytes each part needs for blocks, for vectors and in all; reads no block.

        Returns
        -------
        Plan
            Text; ``.parts`` and ``.bytes_per_iteration`` as data.
        """
        engine = self._engine or engine_of(self._settings[0], self._settings[1])
        specs = self._specs or self._split(engine)
        if self._engine is None and engine is not self._settings[0]:
            engine.close()
        return Plan(self, specs, self._limit())

    def close(self) -> None:
        """End what the engine started and forget what was read; the next use starts anew."""
        if self._engine is not None and (
            self._engine.placed is self._specs or not isinstance(self._settings[0], Engine)
        ):
            self._engine.close()
            self._engine.placed = None
        self._engine, self._specs = None, []

    def __enter__(self) -> BlockOperator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        engine, workers, limit, parts = self._settings
        if not isinstance(engine, str):
            engine = "threads"
        return BlockOperator, (self.blocks, self.axis, self.dtype, engine, workers, limit, parts)

    # -- products ----------------------------------------------------------------------------------

    def _vector_dtype(self, *others: Any) -> np.dtype[Any]:
        return np.result_type(self.dtype, *others, np.float64)

    def _edges(self) -> list[int]:
        sizes = [sum(b.shape[self.axis] for b in s.blocks) for s in self._specs]
        return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]

    def _slices(self, x: Any) -> list[tuple[Any]]:
        """A vector cut along the blocks, one piece a part; a path of a .npy file too."""
        edges = self._edges()
        pairs = list(zip(edges[:-1], edges[1:], strict=True))
        if isinstance(x, str):
            return [(Npy(x, lo, hi),) for lo, hi in pairs]
        return [(x[lo:hi],) for lo, hi in pairs]

    def _product(self, X: Any, adjoint: bool) -> Any:
        engine = self.engine
        if X.dtype.kind == "c" and self.dtype.kind != "c":  # two real columns each
            real = np.ascontiguousarray(X).view(X.real.dtype).reshape(X.shape[0], -1)
            Y = np.ascontiguousarray(self._product(real, adjoint))
            return Y.view(np.result_type(Y.dtype, np.complex64)).reshape(Y.shape[0], -1)
        X = np.asarray(X, np.result_type(self.dtype, X.dtype))
        method = "rapply" if adjoint else "apply"
        if (self.axis == 0) is adjoint:
            return engine.total(method, each=self._slices(X))
        return np.concatenate(engine.gather(method, X))

    def _matmat(self, X: Any) -> Any:
        return self._any(np.asarray(X), False)

    def _rmatmat(self, X: Any) -> Any:
        return self._any(np.asarray(X), True)

    def _held(self, axis: int, grain: int = 1) -> Held:
        """How solvers hold vectors of the rows' (0) or the columns' (1) length."""
        engine = self.engine
        return engine.held(self.shape[axis], self._edges() if axis == self.axis else None, grain)

    def _between(self, x: Any, given: Held, wanted: Held, adjoint: bool = False) -> Any:
        """A x or A^H x of a vector as solvers hold it."""
        if not given.split:
            return (self.rmatvec if adjoint else self.matvec)(x)
        method, engine = "rapply" if adjoint else "apply", self.engine
        if (self.axis == 0) is adjoint:
            shares = engine.here(method, each=given.each(x[:, np.newaxis]))
            return wanted.add([y[:, 0] for y in shares], x.dtype)
        pieces = engine.here(method, given.whole(x)[:, np.newaxis])
        return wanted.joined([y[:, 0] for y in pieces], x.dtype)

    def _any(self, X: Any, adjoint: bool) -> Any:
        """Batches of right-hand sides as more columns; numbers beyond float64 are refused."""
        dtype = np.result_type(self.dtype, X.dtype)
        if dtype.char not in "fdFD":
            raise TypeError(f"a BlockOperator does not compute in {dtype}")
        if X.ndim == 2:
            return self._product(X, adjoint)
        flat = np.moveaxis(X, -2, 0).reshape(X.shape[-2], -1)
        Y = self._product(flat, adjoint)
        return np.moveaxis(Y.reshape(Y.shape[0], *X.shape[:-2], X.shape[-1]), 0, -2)

    def _matvec(self, x: Any) -> Any:
        return self._matmat(np.asarray(x)[..., np.newaxis])[..., 0]

    def _rmatvec(self, x: Any) -> Any:
        return self._rmatmat(np.asarray(x)[..., np.newaxis])[..., 0]

    def _diagonal(self, k: int = 0) -> Any:
        engine, k = self.engine, int(k)
        each = [(first, k) for first in self._edges()[:-1]]
        return np.concatenate(engine.gather("diagonal", each=each))
