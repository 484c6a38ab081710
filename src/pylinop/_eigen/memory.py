"""The memory that solvers for a few eigenpairs and expm_multiply take, checked against
pl.config(memory_limit=...) before they run."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config
from .._base.dtypes import inexact
from .._base.memory import room
from .._iterative.memory import product_of

_TERMS = 56  # the most vectors that SciPy's expm_multiply keeps for a grid of times
_LOBPCG = 15  # blocks of SciPy's lobpcg; measured 2026-11 at 14


def _lanczos(k: int, m: int) -> int:
    """How many vectors thick_restart_lanczos.py takes: the basis, those it is rotated into, the
    pairs and their check."""
    turned = k + k // 2 + max((m - k) // 3, 0)
    return max(m + 4 + turned, 6 * k)


def basis_within(op: Any, n: int, k: int, m: int, given: bool, inner: Any, more: int = 0) -> int:
    """How many vectors of n a basis for k pairs may have: m, or fewer where the limit says so and
    the user has not ``given`` m. Raises where no basis fits. ``inner`` is the operator whose
    products are taken; ``more`` counts bytes beside all of that."""
    limit = config.get("memory_limit")
    if limit is None:
        return m
    one = np.broadcast_to(np.zeros((), inexact(op.dtype)), inner.shape[-1:])
    more += product_of(inner, one)
    item, least = inexact(op.dtype).itemsize, min(k + max(k // 2, 4), m)
    while not given and m > least and _lanczos(k, m) * n * item + more > limit:
        m -= 1
    room(
        op,
        _lanczos(k, m) * n * item + more,
        f"a Lanczos basis of {m} vectors and what is made of it,",
    )
    return m


def arpack(op: Any, k: int, ncv: Any, pairs: int = 1) -> None:
    """Raises where ARPACK's basis, workspace and vectors would not fit; ``pairs`` is 2 for real
    matrices with complex vectors."""
    n = op.shape[-1]
    m = min(n, max(2 * k + 1, 20)) if ncv is None else int(ncv)
    vectors = m + 4 + pairs * (k + 2) + 3 * k
    room(
        op,
        vectors * n * inexact(op.dtype).itemsize,
        f"ARPACK's basis of {m} vectors and what it works on,",
    )


def lobpcg(op: Any, k: int) -> None:
    room(
        op,
        _LOBPCG * k * op.shape[-1] * inexact(op.dtype).itemsize,
        f"lobpcg's blocks of {k} vectors,",
    )


def expm_multiply(op: Any, x: Any, times: int | None) -> None:
    """Raises where SciPy's expm_multiply would not fit; ``times`` is the size of the grid of times,
    None for a single time."""
    columns = 1 if x.ndim == 1 else x.shape[1]
    count = 8 if times is None else times + _TERMS + 8
    nbytes = count * columns * op.shape[-1] * inexact(op.dtype).itemsize
    room(op, nbytes, "the terms and results of expm_multiply,")
