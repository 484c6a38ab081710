"""The engine that a word or a dask client stands for."""

from __future__ import annotations

from typing import Any

from .cluster import Dask
from .engines import MPI, Engine, Serial, Threads
from .processes import Processes


def engine_of(engine: Any, workers: int | None) -> Engine:
    """The engine that a word, a dask client or an engine stands for."""
    if isinstance(engine, Engine):
        return engine
    if engine == "serial":
        return Serial(1)
    if engine == "threads":
        return Threads(workers)
    if engine == "processes":
        return Processes(workers)
    if engine == "mpi":
        return MPI()
    if engine == "dask":
        return Dask(None, workers)
    if hasattr(engine, "scheduler_info") or hasattr(engine, "submit"):
        return Dask(engine, workers)
    raise ValueError(
        f"engine={engine!r}: 'serial', 'threads', 'processes', 'dask', 'mpi', a dask client or an "
        "Engine"
    )
