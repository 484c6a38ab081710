"""One run of a Krylov method: what it is asked for, and the call of the loop in C, which is one
function for all methods (solvers/krylov.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config
from .._base.memory import room
from .._base.progress import in_notebook, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_CALL, CALL_X, CALL_NORM = 0, 1, 2  # styles of a callback


@dataclass(kw_only=True, repr=False, eq=False)  # made at import: the fewer methods the quicker
class Run:
    """What one run is asked for; `_core._krylov` takes each field by its name.

    ``x`` is the first iterate where ``has_x0`` says so, and is overwritten by the last one.
    ``strict``: cg ends where p^H A p is not positive, minres where |r| <= max(atol, rtol |b|).
    ``inner``: maxiter counts gmres's inner iterations. ``flexible``: gmres has M on the right, and
    M may change between them. ``goals`` are the norms that the columns' residuals have to reach;
    ``var`` takes lsqr's variances. A ``callback`` gets what ``style`` says."""

    name: str
    op: Any
    M: Any
    b: NDArray[Any]
    x: NDArray[Any]
    maxiter: int
    has_x0: bool = False
    rtol: float = 0.0
    atol: float = 0.0
    restart: int = 0
    shift: float = 0.0
    damp: float = 0.0
    conlim: float = 0.0
    strict: bool = False
    inner: bool = False
    flexible: bool = False
    callback: Callable[..., Any] | None = None
    style: int = CALL_X
    progress: Any = None
    bnorm: float = 0.0
    var: NDArray[Any] | None = None
    goals: NDArray[Any] | None = None


# Columns of m, of n, and of n for M.
_VECTORS = {
    "cg": (0, 3, 1),
    "minres": (0, 7, 1),
    "bicgstab": (0, 5, 2),
    "gmres": (0, 4, 0),
    "lsqr": (2, 5, 0),
    "lsmr": (2, 6, 0),
}


def vectors(name: str, M: bool) -> tuple[int, int]:
    """How many columns of m and of n a method has beside b and x; gmres with no step in a cycle."""
    of_m, of_n, with_m = _VECTORS[name]
    return of_m, of_n + with_m * M


def parts(name: str, op: Any) -> int:
    """How many vectors of n lsqr and lsmr keep for their sweep (k_csr_sweep.h), at the most."""
    if name not in ("lsqr", "lsmr"):
        return 0
    of = op._operands[0] if op._head == op._by == "view" else op
    tall = of._head == "sparse" and of._init is not None and of._given("A").nnz >= 64 * op.shape[1]
    return 7 if tall else 0


def _check_room(asked: Run) -> None:
    """Raises where the vectors of a run would pass the memory limit, or what is free."""
    m, n = asked.op.shape
    of_m, of_n = vectors(asked.name, asked.M is not None)
    if asked.name == "gmres":
        bases = 2 if asked.flexible and asked.M is not None else 1
        of_n += max(min(asked.restart, n), 1) * bases
    length = of_m * m + (of_n + parts(asked.name, asked.op)) * n
    size = length * (asked.b.size // max(m, 1)) * asked.b.itemsize
    if size > 1 << 20 or config.get("memory_limit") is not None:
        room(asked.op, size, asked.name)


def run(asked: Run) -> Any:
    """The loop in C: (info, iterations, matvecs, seconds, residuals, why, at, numbers)."""
    _check_room(asked)
    if asked.callback is None:
        asked.style = NO_CALL
    if asked.progress is None and not in_notebook() and asked.style != CALL_NORM:
        return _core._krylov(vars(asked))
    asked.progress, bar = shown(asked.progress, asked.name)
    asked.bnorm = float(np.linalg.norm(asked.b))
    try:
        return _core._krylov(vars(asked))
    finally:
        if bar is not None:
            bar.close()
