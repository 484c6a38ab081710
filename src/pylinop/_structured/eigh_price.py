"""Prices of eigenpairs of a Hermitian operator: by structure, part by part; by a band; by a dense
form; by Lanczos. `eigh` and `eigsh` compare these."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .._base.trampoline import run
from .._operators import parameters
from .._operators.convert import as_operator
from . import banded_eigh
from .eigenvalues_hermitian import shift_of

_RESTARTS = 8  # with which Lanczos is priced
_SEE_THROUGH = ("scaled", "view", "power", "inverse")
_CLOSED = frozenset(
    "diag identity zeros circulant laplacian hadamard full householder permutation eigen".split()
)
_LISTS = ("kron", "kronsum", "blockdiag")


class Price(NamedTuple):
    """An estimate; ``by`` is "structure", "band", "dense" or "iterative"."""

    by: str
    flops: float
    seconds: float
    bytes: float
    memory: int


def _of_flops(by: str, flops: float, nbytes: float, memory: float) -> Price:
    costs = _core._costs()
    seconds = max(flops / costs["flop_rate"], nbytes / costs["bandwidth"])
    return Price(by, flops, seconds, nbytes, int(memory))


def _joined(by: str, parts: list[Price]) -> Price:
    return Price(
        by,
        sum(p.flops for p in parts),
        sum(p.seconds for p in parts),
        sum(p.bytes for p in parts),
        sum(p.memory for p in parts),
    )


def reduction(n: int, vectors: bool) -> tuple[float, float]:
    """(flops, seconds) of LAPACK on a dense form, at a third of gemm's rate."""
    flops = (9.0 if vectors else 4 / 3) * float(n) ** 3
    return flops, flops / _core._costs()["gemm_rate"] * 3


def _dense(op: Any, vectors: bool) -> Price:
    n, item = op.shape[-1], inexact(op.dtype).itemsize
    count = math.prod(op.shape[:-2])
    flops, seconds = reduction(n, vectors)
    made = [Price("dense", count * flops, count * seconds, 8.0 * count * n * n * item,
                  int(count * (4.6 if vectors else 1.5) * n * n * item))]  # fmt: skip
    held = op._head == "dense" and op._init is not None
    if not op._opaque and not held and 0 not in op.shape:
        form = op.explain("dense")
        made.append(Price("dense", form.flops, form.seconds, form.bytes, 0))
    return _joined("dense", made)


def _vector(op: Any, each: float) -> Price:
    """The price of a closed form, or a sort: so many flops for each value."""
    n = math.prod(op.shape[:-1])
    item = inexact(op.dtype).itemsize
    return _of_flops("structure", each * n * math.log2(n + 2), 4.0 * n * item, 3 * n * item)


def _thin(op: Any, k: int) -> Price:
    """The price of a low rank: QR of n x k and an eigh of k x k."""
    n, item = math.prod(op.shape[:-1]), inexact(op.dtype).itemsize
    flops = 8.0 * n * k * k + 9.0 * k**3
    return _of_flops("structure", flops, 4.0 * n * k * item, 3 * n * k * item)


def _three(op: Any, vectors: bool) -> Price:
    """The price of three diagonals: 60 ns an entry of the vectors (stemr), 10 ns without (sterf),
    at 2 Gflop/s; measured 2026-11-22 on two cores of an AMD EPYC, n = 500 to 3000."""
    n, item = op.shape[-1], inexact(op.dtype).itemsize
    count = math.prod(op.shape[:-2]) * n
    width = n if vectors else 4
    flops = count * n * (120.0 if vectors else 20.0)
    return _of_flops("band", flops, float(count * width * item), 2 * count * width * item)


def _steps(op: Any, vectors: bool) -> Any:
    head, by = op._head, op._by if op._init is None else ""
    if op.shape[-1] != op.shape[-2] or 0 in op.shape:
        return _dense(op, vectors)
    if head in _CLOSED:
        return _vector(op, 5.0)
    seen = op._operands if by in _SEE_THROUGH else shift_of(op)  # None of all but a sum A + c I
    if seen is not None:
        inner = seen[0]
        found = yield inner, vectors
        return _joined(found.by, [found, _vector(op, 1.0)]) if found.by != "dense" else found
    if head in _LISTS:
        parts = []
        for f in parameters.factors(op):
            parts.append((yield f, vectors))
        return _joined("structure", [*parts, _vector(op, 1.0)])
    if head == "lowrank" and op._init is not None:
        return _thin(op, as_operator(op._given("U")).shape[-1])
    if head == "tridiagonal":
        return _three(op, vectors)
    return _dense(op, vectors)


def direct(op: Any, vectors: bool) -> Price:
    """The price of all pairs, as `eigh` computes them."""
    made: Price = run(_steps, op, vectors)
    return made


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
