"""What the core asks of the sparse solver (sparse_solver.h): a factor, and answers by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import fill
from .checked import DECLINED, SINGULAR
from .thin_update import factor_of


def _made(program: Any, arrays: Any) -> Any:
    factor = factor_of(program, arrays)
    return factor, factor.nbytes


def _solve(factor: Any, mode: Any, b: Any) -> Any:
    if b.ndim == 2 and fill.dense_is_sooner(factor, b.shape[1]):
        return DECLINED
    return factor.solve(b, mode)


def _det(factor: Any) -> Any:
    return factor.det()


def _diagonal(factor: Any, k: int) -> Any:
    return factor.diagonal(k)


def _trace(factor: Any, program: Any, arrays: Any) -> Any:
    return factor.trace(program, arrays)


def _rows(factor: Any, program: Any, arrays: Any) -> Any:
    return factor.rows(program, arrays)


def _singular(factor: Any) -> Any:
    """Has it told that there is no answer?"""
    return SINGULAR if factor.none else None


def _entries(factor: Any, program: Any, arrays: Any) -> Any:
    """Of the inverse, or of its corner on the right, where a sparse matrix has numbers; places out
    of range are declined."""
    index, other = (a.ravel().astype(np.int64) for a in arrays)
    kind, blocks = (int(k) for k in np.frombuffer(program, np.int64)[:2])
    n = factor.n // max(1, blocks)
    if kind != _COO:
        count = np.diff(other)
        if other[0] != 0 or other[-1] != len(index) or (count < 0).any():
            return DECLINED
        other = np.repeat(np.arange(n), count)
    if not all(((x >= 0) & (x < n)).all() for x in (index, other)):
        return DECLINED
    row, col = (other, index) if kind == _CSR else (index, other)
    return factor.entries(row, col + max(0, blocks - 1) * n)


_CSR, _COO = 0, 2

CALLS: dict[str, Any] = {
    "factor": _made,
    "solve": _solve,
    "det": _det,
    "diagonal": _diagonal,
    "trace": _trace,
    "rows": _rows,
    "singular": _singular,
    "entries": _entries,
}


def solver(what: str, *args: Any) -> Any:
    """Answers what the core asks of the sparse solver; a hook."""
    answer = CALLS[what](*args)
    if answer is SINGULAR:
        args[0].none = True
    return answer
