"""Is a fast way as good as C asks before it accepts it (op_checked_or_fallback.c,
op_checked_parts.c, where each test is derived)? C takes the safe way else. Here nothing waits for a
device: a test is a truth value on it, by which the result is NaN.

Each function on a device costs as much as a pass over a long vector, so that fewer numbers are
looked at than in C:
- Backward errors are in the norm of the largest modulus where two are compared (Rigal and Gaches
  1967 hold in any): one function each, and nothing leaves the range as squares do.
- |A| is bounded by |A v| of the probe, |v| <= 1, from below and so on the safe side: one product
  less.
- Of a determinant and of values like it the growth |W| / |U| alone is compared with that of the
  probe's solution x, whose residual is not formed. What cancels in x is some u |W| / |U|, so that
  errors of x do not hide a growth above 10 n as long as 10 n u is small.

Under `pl.config(check="none")` nothing is tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import config
from .._base.dtypes import real_of

__all__ = ["HEADS", "is_on", "nan_unless", "probe", "reads"]


def is_on() -> bool:
    """Are fast ways looked at?"""
    return bool(config.get("check") != "none")


def nan_unless(ns: Any, sound: Any, x: Any, core: int) -> Any:
    """NaN where a truth value, or those of a batch of matrices, vectors or numbers, are not."""
    if isinstance(x, (tuple, list)):  # a determinant: its sign is NaN where the logarithm is
        return type(x)([x[0], nan_unless(ns, sound, x[1], 0)])
    return ns.or_nan(sound[(..., *[None] * core)] if sound.ndim else sound, x)


def probe(w: Any, row: Any) -> Any:
    """Numbers of modulus 1 at most without an order, a column: waves that grow shorter."""
    at = w.ns.arange(row.shape[-2], real_of(np.dtype(row.dtype)).name) * 0.8287
    return w.ns.cast(w.ns.sin(at * at + 1.0)[:, None], row.dtype)


def _unit(w: Any, row: Any, k: int = 0) -> float:
    """The rounding unit of a child."""
    return float(np.finfo(w.rows[row.children[k]].dtype).eps) / 2


def _norms(w: Any, row: Any, k: int) -> Any:
    return w.ns.norms(w.values[row.children[k]])


def _frobenius(w: Any, row: Any, k: int) -> Any:
    """Of a probe's column."""
    return _norms(w, row, k)[..., :1]


def _all(w: Any, test: Any) -> Any:
    """Of all columns. inf - inf >= 0 is false, and so are tests where the left side overflows."""
    return test[..., 0] if test.shape[-1] == 1 else w.ns.all(test, -1)


_BESIDE = 16  # columns that are put beside each other, to be looked at by one function


def _each_largest(w: Any, places: list[int]) -> list[Any]:
    """The largest moduli of the columns of several nodes."""
    found = [w.values[at] for at in places]
    counts = [int(x.shape[-1]) for x in found]
    alike = len({(tuple(x.shape[:-1]), w.ns.name_of(x)) for x in found}) == 1
    if not (w.ns.fuses and alike and sum(counts) <= _BESIDE):
        return [w.ns.largest(x) for x in found]
    most, parts, at = w.ns.largest(w.ns.concat(found, -1)), [], 0
    for count in counts:
        parts.append(most[..., at : at + count])
        at += count
    return parts


def _solution(w: Any, row: Any) -> Any:
    """Of x, r, b: the backward error."""
    x, r, b, bound = _each_largest(w, [*row.children[:3], _probed(w.rows, row)])
    n = max(1, w.rows[row.children[0]].shape[-2])
    size = w.ns.plus_times(b, bound[..., :1], x, 1)
    return _all(w, w.ns.plus_scaled(size, r, -1 / (10 * n * _unit(w, row))) >= 0)


def _probed(rows: Any, row: Any) -> int:
    """The product of the matrix with a probe: what is near one, or of the first check is there."""
    at: int = row.children[3] if row.i[0] else rows[row.children[4]].children[0]
    return at


def _by_probe(w: Any, row: Any) -> Any:
    """W has not grown more than x, which answers a probe; nor have the base's own answers to it and
    to ones."""
    n = w.rows[row.children[1]].shape[-2]
    x, grown, start = (w.ns.largest(w.values[row.children[k]]) for k in (1, 6, 7))
    over = w.ns.plus_times(grown, x[..., :1], start, -10 * n)
    sound = _all(w, over * 0 >= over)  # so that inf and NaN do not pass
    if len(row.children) == 9:
        return sound
    size, own, ones = (_norms(w, row, k) for k in (1, 8, 9))
    room = 10 * n if row.head == "checked_det" else 10
    return sound & _all(w, room * size - own >= 0) & _all(w, 10 * n * size - ones >= 0)


def _difference(w: Any, row: Any) -> Any:
    ns, (x, d, small) = w.ns, (w.whole(row, k) for k in range(3))
    k = small.shape[-1]
    trace = ns.sum(ns.real(ns.diagonal(small, 0)), -1)
    real, from_ = ns.real(x), ns.real(d)
    signs = ns.all(real >= 0, -1) & ns.all((from_ > 0) & (ns.imag(d) == 0), -1)
    if 0 in x.shape:
        return signs
    grown = ns.max(from_, -1) <= 10 * ns.max(real, -1)
    return signs & grown & (100 * _unit(w, row) * k * trace <= 1)


def _beside(w: Any, row: Any) -> Any:
    ns, u = w.ns, _unit(w, row)
    n = row.shape[-2]
    x, z, left, v, y = (_norms(w, row, k) for k in (0, 1, 2, 3, 8))
    b = _frobenius(w, row, 4) / _frobenius(w, row, 5)
    a = ns.where((z > 0) & (v > b * z), v / z, b)
    lost = 3 * u * _frobenius(w, row, 6) * _frobenius(w, row, 7) * y
    sound = _all(w, (10 * n * u) * (a * x) - (left + lost * a) >= 0)
    if not row.i[0]:
        return sound
    d = w.whole(row, 9)
    return sound & ns.all((ns.real(d) > 0) & (ns.imag(d) == 0), -1)


def _parallel(w: Any, row: Any) -> Any:
    u, n, last = _unit(w, row), row.shape[-2], len(row.children) - 1
    x, e, y = (_norms(w, row, k) for k in range(3))
    t = _norms(w, row, 5) if last == 6 else y
    lost = _frobenius(w, row, 3) * y + _frobenius(w, row, 4) * t
    return _all(w, (10 * n * u) * x - (e + 3 * u * lost) >= 0)


# By head: the truth value of a node.
HEADS: dict[str, Callable[..., Any]] = {
    "checked": _solution,
    "checked_value": _by_probe,
    "checked_det": _by_probe,
    "checked_difference": _difference,
    "checked_beside": _beside,
    "checked_parallel": _parallel,
}


def reads(rows: Any, row: Any) -> tuple[int, ...]:
    """The nodes that the fast way and its test are made of: all children but the last, or fewer."""
    below = row.children
    if row.head == "checked":
        return (*below[:3], _probed(rows, row))
    if row.head in ("checked_value", "checked_det"):
        return (*below[:2], *below[6:-1])
    return tuple(below[:-1])
