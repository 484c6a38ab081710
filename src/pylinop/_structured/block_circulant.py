"""Block circulants: a `Block` of p x p blocks, the same arrays or operators along its diagonals.

C_(i - j mod p) at (i, j) is (F^H (x) I) diag(B_0, ..., B_(p-1)) (F (x) I) with the unitary DFT F of
p points and B_f = sum of C_k exp(-2 pi i f k / p): p problems of m rows in place of one of p m.
Which blocks are the same is seen by the objects, no entry is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import config, memory
from .dispatch import dense
from .operands import blocks_of
from .unitary import fourier, hartley, unitary

_HELD = 5 * 16  # bytes an entry of a block: the blocks, their DFT, what LAPACK copies


def _same(a: Any, b: Any) -> bool:
    """Are two blocks one object, or made of one array in one way?"""
    if a is b:
        return True
    if type(a) is _core.Dense and type(b) is _core.Dense:
        if a._init is None or b._init is None:
            return False
        (one, as_one), (two, as_two) = a._given("a", "assume_a"), b._given("a", "assume_a")
        return one is two and as_one == as_two
    return bool(a._head == b._head == "zeros" and a.shape == b.shape)


def _is_slow(p: int, n: int) -> bool:
    """Does looking at p^2 blocks take longer than LAPACK?"""
    return p > 32 and p * p > 1e-4 * n**3


def first_column(op: Any) -> list[Any] | None:
    """The blocks C_0, ..., C_(p-1) of a block circulant with square blocks; else None."""
    if op._init is None or op.ndim != 2 or op.dtype.kind not in "fc":
        return None
    rows = op._given("blocks")
    p, m = len(rows), rows[0][0].shape[0]
    if p < 2 or op.shape != (p * m, p * m) or _is_slow(p, p * m):
        return None
    first = [row[0] for row in rows]
    if any(block.shape != (m, m) for block in first) or any(len(row) != p for row in rows):
        return None
    for i, row in enumerate(rows):
        for j, block in enumerate(row):
            if not _same(block, first[i - j]):
                return None
    return [row[0] for row in blocks_of(op, 1)]


def price(values: float, complex_values: float) -> Callable[[Any], str | None]:
    """The cost of so many flops n k^2, of real and complex operators, where LAPACK's blocks are
    long, and of the look at all blocks."""

    def said(op: Any) -> str | None:
        if op._init is None:
            return None
        p, m = len(op._given("blocks")), max(1, int(op._given("blocks")[0][0].shape[0]))
        own = complex_values if op.dtype.kind == "c" else values
        return f"{own * (1 + 300 / m) / 1.3:.1f} n k^2, {1000 * p * p}"

    return said


def asks(op: Any, *args: Any) -> Any:
    """What its rows ask: nothing, or None where they refuse."""
    return None if first_column(op) is None else []


def spectrum(op: Any) -> tuple[Any, bool] | None:
    """(B, is it Hermitian?) with B (p, m, m), of a real operator B_0, ..., B_(p // 2) alone, since
    B_(p - f) is conj(B_f); None where the operator is no block circulant, or has entries that are
    not finite."""
    column = first_column(op)
    if column is None:
        return None
    limit, needed = config.get("memory_limit"), _HELD * len(column) * column[0].size
    if limit is not None and needed > limit:
        raise memory.beyond(op, needed, "for the DFT of its blocks")
    c = np.stack([dense(block) for block in column]).astype(op.dtype, copy=False)
    if not np.isfinite(c).all():
        return None
    mirrored = np.roll(c[::-1], 1, axis=0).swapaxes(-1, -2).conj()
    turned = np.fft.fft(c, axis=0) if c.dtype.kind == "c" else np.fft.rfft(c, axis=0)
    return turned, bool((c == mirrored).all())


def values(op: Any, found: Any) -> Any:
    """All values, those of the blocks given."""
    p = op.shape[0] // found.shape[-1]
    twins = found[1 : (p + 1) // 2] if len(found) < p else found[:0]
    return np.concatenate([found.ravel(), twins.ravel()])


def basis(op: Any) -> tuple[Any, Any] | None:
    """(eigenvalues, eigenvectors) of a Hermitian block circulant; None for anything else."""
    found = spectrum(op)
    if found is None or not found[1]:
        return None
    w, q = np.linalg.eigh(found[0])
    if op.dtype.kind == "c":
        p, m = w.shape
        turn = _core.Kron(fourier((p,), op.dtype), _core.Identity(m))
        return w.ravel(), turn @ _core.BlockDiag(*map(unitary, q))
    return _real_basis(op.shape[0] // w.shape[-1], w, q, op.dtype)


def _real_basis(p: int, w: Any, q: Any, dtype: Any) -> tuple[Any, Any]:
    """Of a real one: B_(p - f) is conj(B_f), so the real and imaginary part of (wave f) (x) q
    are two vectors of one value. In Hartley's basis, (wave f +- wave p - f) / sqrt(2), they are

        [Re q - Im q, Re q + Im q]
        [Re q + Im q, Im q - Re q] / sqrt(2).

    The waves that are real themselves, 0 and p / 2, have real vectors."""
    m = w.shape[-1]
    alone = [0, p // 2] if p % 2 == 0 else [0]
    twins = range(1, (p + 1) // 2)
    blocks = [unitary(np.ascontiguousarray(q[f].real)) for f in alone]
    values, places = [w[f] for f in alone], list(alone)
    for f in twins:
        less, more = (q[f].real - q[f].imag) / 2**0.5, (q[f].real + q[f].imag) / 2**0.5
        blocks.append(unitary(np.block([[less, more], [more, -less]])))
        values += [w[f], w[f]]
        places += [f, p - f]
    order = np.argsort(places)
    turn = _core.Kron(hartley((p,), dtype) @ _core.Permutation(order), _core.Identity(m))
    return np.concatenate(values), turn @ _core.BlockDiag(*blocks)
