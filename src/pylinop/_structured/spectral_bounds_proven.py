"""Bounds of the spectrum of Hermitian operators: proven ones from structure, else Ritz values.

Proven bounds hold in exact arithmetic; they are widened by the rounding of their own computation.
A sum is bounded by the sum of its terms' bounds (Weyl), a Hermitian Toeplitz matrix by the
spectrum of a circulant that it is a corner of (Cauchy), entries by Gershgorin's discs. There are no
bounds for an operand that is not known to be Hermitian."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import scipy_bridge, sparse_arrays
from .._base.kind_flags import AT_HAND
from .._base.trampoline import run
from .._operators.convert import as_operator
from .._operators.parameters import written
from . import norms, operands, questions
from .dispatch import dense
from .properties import measured
from .singular_values import bands_of, eigenvalues_of, floats, toeplitz_of

EPS = 2.0**-52
_EXACT = 400  # rows of a factor up to which its eigenvalues are computed
_WORDS = ("pos", "positive definite")
Pair = tuple[float | None, float | None]
NOTHING: Pair = (None, None)


class SpectralBounds(NamedTuple):
    """Ends of a spectrum; ``certified`` says of each whether it is proven."""

    low: float
    high: float
    certified: tuple[bool, bool]


_ROWS: dict[str, Callable[[Any], Any]] = {}


def _row(*heads: str) -> Callable[[Any], Any]:
    def add(answer: Any) -> Any:
        _ROWS.update(dict.fromkeys(heads, answer))
        return answer

    return add


def _steps(op: Any) -> Any:
    head = op._head
    by = op._by if op._init is None else ""
    if by in ("view", "scaled", "inverse", "power") and head not in AT_HAND:
        head = by
    row = _ROWS.get(head)
    if row is None or op.shape[-1] != op.shape[-2] or op.dtype is None or op._opaque:
        return NOTHING
    found = row(op)
    if isinstance(found, types.GeneratorType):
        found = yield from found
    if found == NOTHING and by == "sum" and head != "sum":  # closed, without its parameters
        found = yield from _ROWS["sum"](op)
    low, high = found
    good_low, good_high = (x is not None and bool(np.isfinite(x)) for x in (low, high))
    return (float(low) if good_low else None, float(high) if good_high else None)


def proven(op: Any) -> Pair:
    """(low, high) of the spectrum as far as the structure proves them; None for the rest."""
    if 0 in op.shape:
        return 0.0, 0.0
    found: Pair = run(_steps, op)
    return found


def _eps(w: Any) -> float:
    return float(np.finfo(w.dtype).eps)


def _ends(w: Any, ulps: float = 4) -> Pair:
    """The ends of computed eigenvalues, moved out by some roundings of the largest."""
    off = ulps * _eps(w) * float(np.abs(w).max(initial=0))
    if not np.isfinite(off):
        return NOTHING
    return float(w.min()) - off, float(w.max()) + off


@_row("diag", "identity")
def _(op: Any) -> Pair:
    d = operands.diagonal_of(op)
    return NOTHING if np.iscomplexobj(d) and d.imag.any() else _ends(d.real, 0)


@_row("zeros")
def _(op: Any) -> Pair:
    return 0.0, 0.0


@_row("scaled")
def _(op: Any) -> Any:
    c = complex(op._operands[1])
    low, high = yield (op._operands[0],)
    if c.imag:
        return NOTHING
    ends = [None if x is None else c.real * x for x in (low, high)]
    return (ends[0], ends[1]) if c.real >= 0 else (ends[1], ends[0])


@_row("view")
def _(op: Any) -> Any:
    return (yield (op._operands[0],))


def _plus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _summed(pairs: list[Pair]) -> Pair:
    low: float | None = 0.0
    high: float | None = 0.0
    size = 0.0
    for a, b in pairs:
        low, high = _plus(low, a), _plus(high, b)
        size += max(abs(a or 0.0), abs(b or 0.0))
    off = EPS * size * len(pairs) if len(pairs) > 1 else 0.0
    return _plus(low, -off), _plus(high, off)


@_row("sum")
def _(op: Any) -> Any:
    pairs = []
    for part in op._operands:
        pairs.append((yield (as_operator(part),)))
    return _summed(pairs)


def _operand_ends(f: Any) -> Any:
    """The ends of a factor's spectrum: from its eigenvalues if it is small, else its bounds."""
    if f.shape[-1] != f.shape[-2] or f._opaque:
        return NOTHING
    if f.shape[-1] <= _EXACT:
        if not questions.hermitian(f):
            return NOTHING
        return _ends(questions.eigvalsh(f, "L"), 4 * f.shape[-1])
    return (yield (f,))


@_row("kron")
def _(op: Any) -> Any:
    ends: Any = (1.0, 1.0)
    for f in operands.factors_of(op):
        pair = yield from _operand_ends(f)
        if None in pair:
            both = ends[0] is not None and min(ends[0], pair[0] if pair[0] is not None else -1) >= 0
            ends = (0.0 if both else None, None)
            continue
        if None in ends:
            ends = (0.0 if ends[0] == 0.0 and pair[0] >= 0 else None, None)
            continue
        products = [x * y for x in ends for y in pair]
        off = EPS * max(abs(p) for p in products)
        ends = (min(products) - off, max(products) + off)
    return ends


@_row("kronsum")
def _(op: Any) -> Any:
    pairs = []
    for f in operands.factors_of(op):
        pairs.append((yield from _operand_ends(f)))
    return _summed(pairs)


@_row("blockdiag")
def _(op: Any) -> Any:
    lows, highs = [], []
    for f in operands.factors_of(op):
        if 0 in f.shape:
            continue
        low, high = yield from _operand_ends(f)
        lows.append(low)
        highs.append(high)
    return (
        None if None in lows or not lows else min(lows),
        None if None in highs or not highs else max(highs),
    )


@_row("inverse")
def _(op: Any) -> Any:
    low, high = yield (op._operands[0],)
    sign = 1.0 if low is not None and low >= 0 else -1.0 if high is not None and high <= 0 else 0.0
    if not sign:
        return NOTHING
    a, b = (None if not x else 1 / x * (1 - 2 * EPS) for x in (high, low))
    c = None if not low else 1 / low * (1 + 2 * EPS)
    d = None if not high else 1 / high * (1 + 2 * EPS)
    return (a if a is not None else 0.0, c) if sign > 0 else (d, b if b is not None else 0.0)


@_row("power")
def _(op: Any) -> Any:
    low, high = yield (op._operands[0],)
    p = op._operands[1]
    if low is None or high is None:
        return (0.0, None) if p % 2 == 0 and low is not None else NOTHING
    off = 1 + 4 * p * EPS
    ends = sorted((low**p, high**p))
    if p % 2 == 0 and low < 0 < high:
        ends[0] = 0.0
    return (
        ends[0] / off if ends[0] > 0 else ends[0] * off,
        ends[1] * off if ends[1] > 0 else ends[1] / off,
    )


def _chain(op: Any) -> list[Any]:
    """The factors of a product, left to right."""
    factors: list[Any] = []
    stack = [op]
    while stack and len(factors) < 64:
        o = stack.pop()
        if written(o, "prod"):
            stack += [as_operator(p) for p in o._operands[::-1]]
        else:
            factors.append(o)
    return factors if not stack else [*factors, *stack]


def _same(a: Any, b: Any) -> bool:
    """Are they the same operator, or the same array?"""
    return a is b or (
        a._head == b._head == "dense"
        and bool(a._init and b._init)
        and a._given("a") is b._given("a")
        and a._given("assume_a") == b._given("assume_a")
    )


def _adjoint_of(a: Any, b: Any) -> bool:
    """Is one of them written as the adjoint of the other?"""
    for x, y in ((a, b), (b, a)):
        if x._by == "view" and _same(x._operands[0], y):
            return bool(x._mode == 3 or (x._mode == 1 and y.dtype.kind != "c"))
    return False


def _norm2(f: Any) -> float | None:
    """A bound of the square of the 2-norm, where the sums of moduli are available."""
    while f._by == "view":
        f = f._operands[0]
    if f._head not in norms.sums.rows and not (f._head == "dense" and f._init):
        return None
    try:
        rows, cols = (float(np.max(norms.sums(f, axis), initial=0)) for axis in (-1, -2))
    except (TypeError, NotImplementedError):
        return None
    return float(rows * cols) * float(1 + 4 * EPS * max(f.shape[-2:]))


@_row("prod")
def _(op: Any) -> Any:
    factors = _chain(op)
    norm2: float | None = 1.0
    while len(factors) > 1 and _adjoint_of(factors[0], factors[-1]):
        one = None if norm2 is None else _norm2(factors[0])
        norm2 = None if one is None or norm2 is None else norm2 * one
        factors = factors[1:-1]
    if len(factors) > 1:
        return NOTHING
    low, high = (yield (factors[0],)) if factors else (1.0, 1.0)
    if low is None or low < 0 or len(_chain(op)) == 1:
        return NOTHING
    return 0.0, None if high is None or norm2 is None else high * norm2


def _gershgorin(op: Any) -> Pair:
    d = floats(op.diagonal()).real
    sums = norms.sums(op, -1)
    off = 2 * _eps(d) * op.shape[-1] * float(np.max(sums, initial=0))
    radius = sums - np.abs(d)
    return float((d - radius).min()) - off, float((d + radius).max()) + off


@_row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any) -> Pair:
    bands = bands_of(op)
    if bands is None:
        return NOTHING
    at = dict(bands)
    for k, d in bands:
        other = at.get(-k)
        if other is None:
            other = np.zeros_like(d)
        if not np.array_equal(d, other.conj()):
            return NOTHING
    return _gershgorin(op)


@_row("sparse")
def _(op: Any) -> Pair:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "biu":
        return NOTHING
    a = sparse_arrays.matrix_of(op)
    if (a != a.conj().T).nnz:
        return NOTHING
    return _gershgorin(op)


@_row("dense")
def _(op: Any) -> Pair:
    if op._init is None:
        return NOTHING
    assumed, a = op._given("assume_a"), dense(op)
    if not np.isfinite(a).all():
        return NOTHING
    if not measured(a, "hermitian"):
        return (0.0, None) if assumed in _WORDS else NOTHING
    if op.shape[-1] <= _EXACT and op.ndim == 2:
        return _ends(np.linalg.eigvalsh(floats(a)), 4 * op.shape[-1])
    low, high = _gershgorin(op)
    return (max(low or 0.0, 0.0) if assumed in _WORDS else low), high


@_row("toeplitz")
def _(op: Any) -> Pair:
    found = toeplitz_of(op)
    if found is None:
        return NOTHING
    c, r = (np.asarray(a, np.result_type(a, np.float64)) for a in found)
    if c.shape != r.shape or not np.array_equal(c, r.conj()):
        return NOTHING
    ends = []
    for tail in (c[..., :0:-1], c[..., -2:0:-1]):  # of 2 n - 1 and 2 n - 2 rows
        if tail.shape[-1] < c.shape[-1] - 1 and (np.iscomplexobj(c) and c[..., -1].imag.any()):
            continue
        w = np.fft.fft(np.concatenate([c, tail.conj()], axis=-1), axis=-1).real
        ends.append(_ends(w, 16 * np.log2(2 * w.shape[-1])))
    ends.append(_gershgorin(op))
    lows = [low for low, _ in ends if low is not None]
    highs = [high for _, high in ends if high is not None]
    return max(lows, default=None), min(highs, default=None)


@_row("circulant")
def _(op: Any) -> Pair:
    w = eigenvalues_of(op)
    off = 64 * _eps(w) * np.log2(2 * w.shape[-1]) * float(np.abs(w).max(initial=0))
    return _ends(w.real, 16 * np.log2(2 * w.shape[-1])) if np.abs(w.imag).max() <= off else NOTHING


@_row("lowrank", "laplacian", "hadamard", "full", "householder", "permutation")
def _(op: Any) -> Pair:
    if op._head == "lowrank":
        if op._init is None:
            return NOTHING
        v, c = op._given("V", "C")
        if v is not None or (c is not None and not questions.hermitian(as_operator(c))):
            return NOTHING
    elif op._head == "full":
        if op._init is None or complex(op._given("c")).imag:
            return NOTHING
    elif not questions.hermitian(op):
        return NOTHING
    low, high = _ends(questions.eigvalsh(op, "L"), 4 * op.shape[-1])
    if op._head == "lowrank" and op._given("C") is None:
        low = 0.0  # U U^H
    if op._head == "laplacian":
        high = min(high or 0.0, 0.0) if high is not None else None
    return low, high


@_row("lowrankupdate")
def _(op: Any) -> Any:
    if op._init is None:
        pairs = []
        for part in op._operands:
            pairs.append((yield (as_operator(part),)))
        return _summed(pairs) if op._by == "sum" else NOTHING
    base = yield (as_operator(op._given("base")),)
    update = yield (_core.LowRank(*op._given("U", "V", "C")),)
    return _summed([base, update])


@_row("root")
def _(op: Any) -> Pair:
    return 0.0, None
