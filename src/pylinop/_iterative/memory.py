"""How many columns an iterative solve takes at once, how long its cycles are, and how much memory
that takes."""

from __future__ import annotations

from typing import Any

from .._base import config
from . import krylov_run
from .loops import IN_PYTHON

CYCLES = ("gmres", "fgmres")  # methods that keep a basis for each column
CHECKS = 8  # vectors: b, x, the residual, the correction, and temporaries
_BASES = 32  # columns at once, at most: products gain nothing from more
RESTART = 60


def _vectors(name: str, p: Any) -> tuple[int, int]:
    """How many vectors of n a method keeps beside those of the checks, and how many at once."""
    M = p.M is not None
    k = width_of(name, p)
    wide = 1 if p.eps < 1e-10 else 2  # lsqr and lsmr run in double precision
    if name in IN_PYTHON:
        return IN_PYTHON[name].vectors + M, k
    count = sum(krylov_run.vectors("gmres" if name in CYCLES else name, M)) + krylov_run.parts(
        name, p.op
    )
    return count * (wide if name in ("lsqr", "lsmr") else 1), k


def memory_of(name: str, p: Any, restart: int | None = None) -> int:
    """Bytes of the vectors of a run, at most."""
    count, k = _vectors(name, p)
    if name in CYCLES:
        restart = restart_of(p, name) if restart is None else restart
        count += restart * (2 if name == "fgmres" and p.M is not None else 1)
    own = 1 if p.b.ndim == 1 else p.b.shape[1]
    checks = CHECKS + 2 * p.batch  # a batch's product splits its columns
    return int((count * k + checks * own) * p.n * p.dtype.itemsize)


def product_of(op: Any, b: Any) -> int:
    """Bytes that a product takes beside its vectors, where a memory limit is set."""
    if op._opaque or config.get("memory_limit") is None:
        return 0
    plan = op._explain(0, b, 0, 0)
    result = op.shape[-2] * (b.size // max(op.shape[-1], 1))
    return int(plan["memory"]) - int(result) * int(b.itemsize)


def products_of(p: Any, name: str) -> int:
    """The same for all products of a method."""
    if p.product is None:
        p.product = product_of(p.op, p.b)
    back = product_of(p.op.H, p.b) if name in ("lsqr", "lsmr") else 0
    return int(p.product + back)


def limit_of(p: Any) -> int | None:
    """Bytes that all vectors may take: what a product leaves of the memory limit, or half of the
    free memory."""
    if p.room is ...:
        p.room = config.get("memory_limit")
        if p.room is not None:
            p.room -= products_of(p, "")
        elif p.b.size > 10_000:  # asking takes longer than a small solve
            free = config.free_memory()
            p.room = None if free is None else free // 2
    room: int | None = p.room
    return room


def restart_of(p: Any, name: str) -> int:
    """The length of a cycle: the usual one, or shorter where its vectors would pass the memory
    limit."""
    limit = limit_of(p)
    most = min(RESTART, max(p.n, 1))
    if limit is None:
        return int(most)
    each = memory_of(name, p, 1) - memory_of(name, p, 0)
    fits = (limit - memory_of(name, p, 0)) // max(each, 1)
    return int(max(min(2, most), min(most, fits)))


def width_of(name: str, p: Any) -> int:
    """How many columns run together: all, where the product takes most of the time; as many as fill
    a cache line, where the vectors do, since more would leave the cache. In gmres, where each
    column has a basis of its own: as many as fit in memory, and one where the vectors take most of
    the time."""
    k = 1 if p.b.ndim == 1 else int(p.b.shape[1])
    if k == 1 or p.batch or name in IN_PYTHON or p.options.get("callback") is not None:
        return k
    line = 64 // p.dtype.itemsize
    if name in CYCLES:
        limit, k = limit_of(p), min(k, _BASES)
        if limit is not None:
            cycle = min(RESTART, p.n) * (2 if name == "fgmres" and p.M is not None else 1) + 4
            k = max(1, min(k, (limit // (p.n * p.dtype.itemsize) - CHECKS * p.b.shape[1]) // cycle))
        line = 1
    small = 1 << (12 if name in CYCLES else 16)
    if k <= line or p.n * k < small or p.op._opaque:
        return k
    if p.light is None:
        plan = p.op._explain(0, p.b, 0, 0)
        p.light = plan["flops"] + plan["bytes"] < 16 * p.b.nbytes
    return line if p.light else k
