"""The methods of ``solve`` whose loops are in Python; those of the others are in C (solvers/).

A loop gets ``(op, M, r, d, goals, maxiter, callback, progress)`` and puts the solution of A d = r
into d, which is 0: r is a block (n, k), and a column is done when its residual norm is at most its
goal. It gives what ``_core._krylov`` gives: (0, or 1 where it did not get there, iterations,
products with A, seconds, residual norms, what broke down or None, the number that did, ())."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .block_cg import block_cg


class Loop(NamedTuple):
    """A loop, and how many vectors of n it keeps for each column; one more where there is an M."""

    run: Callable[..., Any]
    vectors: int


IN_PYTHON = {
    "block_cg": Loop(block_cg, 7),
}
