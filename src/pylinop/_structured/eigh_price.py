"""Prices of eigenpairs of a Hermitian operator: by structure, part by part; by a band; by a dense
form; by Lanczos. `eigh` and `eigsh` compare these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from . import banded_eigh, trees
from .eigh import eigenbasis
from .prices import Price
from .questions import eigvalsh

_RESTARTS = 4  # with which Lanczos is priced


def reduction(n: int, vectors: bool) -> tuple[float, float]:
    """(flops, seconds) of LAPACK on a dense form, at gemm's rate over 1.7."""
    flops = (9.0 if vectors else 4 / 3) * float(n) ** 3
    return flops, flops / _core._costs()["gemm_rate"] * 1.7


def tree(op: Any, vectors: bool, uplo: str = "L") -> trees.Node:
    """What `eigh`, or `eigvalsh`, does for all pairs, priced."""
    return trees.planned(eigenbasis if vectors else eigvalsh, op, uplo)


def direct(op: Any, vectors: bool) -> Price:
    """The price of all pairs, as `eigh` computes them."""
    return tree(op, vectors).total


def within_band(op: Any, k: int) -> Price | None:
    """The price of all values and k vectors by inverse iteration within a band of more than three
    diagonals; None for anything else, and where the dense form is cheaper."""
    w = banded_eigh.width_of(op)
    if w < 2:
        return None
    n = op.shape[-1]
    flops, seconds = banded_eigh.price(op, k, _core._costs())
    if seconds > reduction(n, k > 0)[1]:
        return None
    memory = n * (4 * w + 2 + 3 * k) * np.dtype(np.complex128).itemsize
    return Price("band", flops, seconds, 8.0 * memory, memory)


def iterative(op: Any, k: int, inner: Any) -> Price:
    """The price of k pairs by Lanczos, with products of ``inner``: op, or a shifted inverse of it.
    A callable has no price."""
    n, m = op.shape[-1], min(2 * k + 20, op.shape[-1])
    item = inexact(op.dtype).itemsize
    products, memory = m + _RESTARTS * (m - k), (2 * m + 4) * n * item
    if op._opaque:
        return Price("iterative", 0.0, math.inf, 0.0, memory)
    one = inner.explain("apply")
    flops = products * (one.flops + 4.0 * m * n)
    seconds = products * (one.seconds + 4.0 * m * n / _core._costs()["flop_rate"] / 2)
    return Price("iterative", flops, seconds, products * (one.bytes + m * n * item), memory)
