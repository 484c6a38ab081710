"""What cotangents mean for the numbers of a kind: sums along diagonals, over places, over a factor
of a Kron; pieces of arrays put side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import kernels, kinds, products

__all__ = ["HEADS"]

_CSR, _CSC, _COO, _BLOCKS, _BOXES = range(5)
# Which entries of a sparse matrix count where only a triangle of it does.
_COUNTS: dict[int, Callable[..., Any]] = {
    1: lambda i, j: j <= i,
    2: lambda i, j: j < i,
    3: lambda i, j: j >= i,
    4: lambda i, j: j > i,
}


def _line_sums(ns: Any, a: Any, anti: bool, circular: bool, flip: bool) -> Any:
    """Sums of entries over i - j (flip: j - i; anti: i + j): rows are shifted by reshaping."""
    m, n = a.shape[-2:]
    dtype = ns.name_of(a)
    if not m or not n:
        return ns.zeros((*a.shape[:-2], n if circular else max(m + n - 1, 0)), dtype)
    a = a if anti else ns.flip(a, (-1,))
    wide = ns.concat([a, ns.zeros((*a.shape[:-1], m), dtype)], -1)
    flat = ns.reshape(wide, (*a.shape[:-2], m * (m + n)))[..., : m * (m + n - 1)]
    s = ns.sum(ns.reshape(flat, (*a.shape[:-2], m, m + n - 1)), -2)
    return _as_asked(ns, s, n, anti, circular, flip)


def _as_asked(ns: Any, s: Any, n: int, anti: bool, circular: bool, flip: bool) -> Any:
    """Sums over i - j + n - 1, or i + j, as they are asked for."""
    dtype = ns.name_of(s)
    if not circular:
        return ns.flip(s, (-1,)) if flip else s
    if anti:
        head, tail = s[..., :n], s[..., n:]
        return head + ns.concat([tail, ns.zeros((*s.shape[:-1], 1), dtype)], -1)
    head, tail = s[..., n - 1 :], s[..., : n - 1]
    s = head + ns.concat([ns.zeros((*s.shape[:-1], 1), dtype), tail], -1)
    if not flip:
        return s
    return ns.concat([s[..., :1], ns.flip(s[..., 1:], (-1,))], -1)


def _flags(row: Any) -> tuple[bool, bool, bool]:
    return bool(row.i[0]), bool(row.i[1]), bool(row.i[2])


def _diagonal_sums(w: Any, row: Any) -> Any:
    a = w.ns.cast(kinds.dense(w, row.children[0]), row.dtype)
    return _line_sums(w.ns, a, *_flags(row))


def _array_sums(w: Any, row: Any) -> Any:
    return _line_sums(w.ns, w.whole(row, 0), *_flags(row))


def _pair_sums(w: Any, row: Any) -> Any:
    """Of a product: a convolution of the columns of its left and the rows of its right factor."""
    ns, a, b = w.ns, w.whole(row, 0), w.whole(row, 1)
    (m, k), n = a.shape[-2:], b.shape[-1]
    anti, circular, flip = _flags(row)
    if not k or not products.fft_pays(m, n, row.dtype):
        return _line_sums(ns, ns.matmul(a, b), anti, circular, flip)
    b = ns.mT(b) if anti else ns.flip(ns.mT(b), (-2,))
    s = products.convolved(ns, a, b, [(-2, m + n - 1)])[..., : m + n - 1, :]
    return _as_asked(ns, ns.sum(s, -1), n, anti, circular, flip)


def _one_line_sums(w: Any, row: Any) -> Any:
    bits, m, n, k = row.i
    at = row._replace(head="offdiag", i=(k, m, n, 0), shape=(*row.shape[:-1], m, n))
    return _line_sums(w.ns, kinds.form(w, at), *(bool(bits & b) for b in (1, 2, 4)))


def _band_join(w: Any, row: Any) -> Any:
    up, columns = row.i[1], row.i[3]
    lines = []
    for t in range(len(row.children)):
        d = w.whole(row, t)
        front = min(max(up - t, 0), columns)
        back = columns - front - d.shape[-1]
        pads = [w.ns.zeros((*d.shape[:-1], k), row.dtype) for k in (front, back)]
        line = w.ns.concat([pads[0], d, pads[1]], -1)
        lines.append(w.ns.expand(line, (*row.shape[:-2], columns)))
    return w.ns.stack(lines, -1)


def _kron_partial(w: Any, row: Any) -> Any:
    ns, x = w.ns, w.whole(row, 1)
    if row.head == "kron_partial":
        g = ns.cast(kinds.dense(w, row.children[0]), row.dtype)
    else:
        g = w.whole(row, 0)
    (p, q), (m, n) = x.shape[-2:], row.shape[-2:]
    x = ns.conj(x)
    if row.i[0]:  # X (x) A
        g = ns.reshape(g, (*g.shape[:-2], p, m, q, n))
        return ns.sum(g * x[..., :, None, :, None], (-4, -2))
    g = ns.reshape(g, (*g.shape[:-2], m, p, n, q))
    return ns.sum(g * x[..., None, :, None, :], (-3, -1))


def _picked(w: Any, row: Any, a: Any, names: Any) -> Any:
    """The sums of a's entries where the numbers of a kind stand."""
    ns, where = w.ns, row.i[0]
    m, n = a.shape[-2:]
    if where == _BLOCKS:
        return _block_entries(w, row, a, w.rows[names[0]].shape[0])
    if where == _BOXES:
        return _box_entries(w, row, a, names)
    i, j = (w.value(k) for k in names[:2])
    if where != _COO:
        count = ns.arange(i.shape[-1], ns.name_of(j))
        major = ns.xp.searchsorted(j, count, side="right") - 1
        i, j = (major, i) if where == _CSR else (i, major)
    flat = ns.reshape(a, (*a.shape[:-2], m * n))
    found = ns.take(flat, i * n + j, flat.ndim - 1)
    return found * ns.cast(_COUNTS[row.i[1]](i, j), row.dtype) if row.i[1] else found


def _block_entries(w: Any, row: Any, a: Any, b: int) -> Any:
    n = a.shape[-1] // b if b else 0
    at, found = row.i[1], []
    for k in range(n - abs(at)):
        i, j = k + max(-at, 0), k + max(at, 0)
        block = a[..., i * b : (i + 1) * b, j * b : (j + 1) * b]
        found.append(w.ns.reshape(block, (*a.shape[:-2], b * b)))
    return w.ns.concat(found, -1) if found else w.ns.zeros(row.shape, row.dtype)


def _box_entries(w: Any, row: Any, a: Any, names: Any) -> Any:
    numbers, into = (w.rows[k].shape for k in names[:2])
    total = w.ns.zeros(row.shape, row.dtype)
    count = int(np.prod(numbers))
    for at, inside in kinds.places(row.i[1], numbers, into):
        flat = w.ns.reshape(a * w.ns.constant(inside, row.dtype), (*a.shape[:-2], at.size, 1))
        index = w.ns.constant(np.where(inside, at, 0).reshape(-1), "int64")
        total = total + w.ns.scatter(flat, index, count)[..., 0]
    return total


def _entry_sums(w: Any, row: Any) -> Any:
    a = w.ns.cast(kinds.dense(w, row.children[0]), row.dtype)
    return _picked(w, row, a, row.children[1:])


def _array_entry_sums(w: Any, row: Any) -> Any:
    return _picked(w, row, w.whole(row, 0), row.children[1:])


def _pair_entry_sums(w: Any, row: Any) -> Any:
    last = len(row.children) - 1
    product = w.ns.matmul(w.whole(row, 0), w.whole(row, last))
    return _picked(w, row, product, row.children[1:last])


def _band_entry_sums(w: Any, row: Any) -> Any:
    """Of an array of diagonals: entry (i, j) is at [j, up + i - j]."""
    ns, ab, m, up = w.ns, w.whole(row, 0), row.i[2], row.i[3] & 0xFFFF
    n, lines = ab.shape[-2:]
    j = np.arange(n)[None]
    t = np.arange(m)[:, None] - j + up
    inside = (t >= 0) & (t < lines)
    flat = ns.reshape(ab, (*ab.shape[:-2], n * lines))
    at = ns.constant((j * lines + np.where(inside, t, 0)).reshape(-1), "int64")
    a = ns.reshape(ns.take(flat, at, flat.ndim - 1), (*ab.shape[:-2], m, n))
    return _picked(w, row, a * ns.constant(inside, row.dtype), row.children[1:])


def _toeplitz_sums(w: Any, row: Any) -> Any:
    """Of a Toeplitz matrix: each diagonal has its number as often as it is long."""
    ns, (c, r) = w.ns, (w.whole(row, k) for k in (0, 1))
    m, n, batch = c.shape[-1], r.shape[-1], tuple(row.shape[:-1])
    if not m or not n:
        return ns.zeros(row.shape, row.dtype)
    offset = np.arange(1 - n, m)
    length = np.minimum(m - 1, n - 1 + offset) - np.maximum(0, offset) + 1
    parts = [ns.expand(x, (*batch, x.shape[-1])) for x in (ns.flip(r[..., 1:], (-1,)), c)]
    s = ns.concat(parts, -1) * ns.constant(length, row.dtype)
    return _as_asked(ns, s, n, *_flags(row))


def _generator_sums(w: Any, row: Any) -> Any:
    return _by_generators(w, row, w.ns.cast(kinds.dense(w, row.children[0]), row.dtype))


def _pair_generator_sums(w: Any, row: Any) -> Any:
    return _by_generators(w, row, w.ns.matmul(w.whole(row, 0), w.whole(row, 1)))


def _by_generators(w: Any, row: Any, g: Any) -> Any:
    """Of a cotangent, those of p, q, a, one after the other, row by row: `before` are the states
    that row i meets, `behind` what the rows after it make of its own."""
    ns, batch, n = w.ns, row.shape[:-1], g.shape[-1]
    if not n:
        return ns.zeros(row.shape, row.dtype)
    g = ns.expand(g + ns.mT(g) if row.i[0] else g, (*batch, n, n))
    p, q, a = (
        ns.expand(x, (*batch, *x.shape[-2:]))
        for x in (ns.conj(w.whole(row, k)) for k in range(len(row.children) - 3, len(row.children)))
    )
    states = p.shape[-1]
    full = a.shape[-1] != states
    steps = ns.reshape(a, (*batch, n, states, states)) if full else a
    before = [ns.zeros((*batch, states, 0), row.dtype)]
    behind = [ns.zeros((*batch, 0, states), row.dtype)]
    for i in range(n - 1):
        s, r, k = before[-1], behind[-1], n - 1 - i
        s = ns.matmul(steps[..., i, :, :], s) if full else steps[..., i, :, None] * s
        r = ns.matmul(r, steps[..., k, :, :]) if full else r * steps[..., k, None, :]
        before.append(ns.concat([s, q[..., i, :, None]], -1))
        behind.append(ns.concat([p[..., k, None, :], r], -2))
    found: list[list[Any]] = [[], [], []]
    for i, (s, r) in enumerate(zip(before, behind[::-1], strict=True)):
        found[0].append(ns.sum(s * g[..., i, None, :i], -1))
        found[1].append(ns.sum(r * g[..., i + 1 :, i, None], -2))
        both = ns.matmul(ns.mT(r), ns.matmul(g[..., i + 1 :, :i], ns.mT(s)))
        whole = ns.reshape(both, (*batch, states * states))
        found[2].append(whole if full else ns.diagonal(both, 0))
    parts = [ns.reshape(ns.stack(x, -2), (*batch, -1)) for x in found]
    return ns.concat(parts, -1)


def _axis(x: Any, core: int, axis: int) -> int:
    batch = x.ndim - core
    return int(batch + axis if axis < 2 else batch - axis + 1)


def _array_slice(w: Any, row: Any) -> Any:
    axis, start, step, count = row.i
    x = w.child(row, 0)
    at = _axis(x, w.rows[row.children[0]].core, axis)
    if len(row.children) > 1:
        index = w.value(row.children[1])
        return w.ns.take(x, w.ns.where(index < 0, index + x.shape[at], index), at)
    if count == -1:
        return w.ns.reshape(x[(*[slice(None)] * at, start, ...)], row.shape)
    return w.ns.take(x, start + step * w.ns.arange(count), at)


def _scatter_slice(w: Any, row: Any) -> Any:
    rows, start, step, count = row.i
    x = w.child(row, 0)
    if len(row.children) > 1:
        index = w.value(row.children[1])
        index = w.ns.where(index < 0, index + rows, index)
    else:
        index = start + step * w.ns.arange(count)
    if x.ndim >= 2 and row.core == 2:
        return w.ns.scatter(x, index, rows)
    return w.ns.scatter(x[..., None], index, rows)[..., 0]


def _blockband(w: Any, row: Any) -> Any:
    """A BlockTridiagonal as Banded stores it."""
    n = row.shape[-1]
    a = kinds.form(w, row._replace(head="blocktridiagonal", shape=(*row.shape[:-2], n, n)))
    lines = row.shape[-2]
    up, j = (lines - 1) // 2, np.arange(n)[None]
    i = j + np.arange(lines)[:, None] - up
    inside = (i >= 0) & (i < n)
    flat = w.ns.reshape(a, (*a.shape[:-2], n * n))
    found = w.ns.take(flat, (np.where(inside, i, 0) * n + j).reshape(-1), flat.ndim - 1)
    found = w.ns.reshape(found, (*flat.shape[:-1], lines, n))
    return found * w.ns.constant(inside, row.dtype)


HEADS: dict[str, Callable[..., Any]] = {
    "diagonal_sums": _diagonal_sums,
    "array_diagonal_sums": _array_sums,
    "pair_diagonal_sums": _pair_sums,
    "line_diagonal_sums": _one_line_sums,
    "band_join": _band_join,
    "kron_partial": _kron_partial,
    "array_kron_partial": _kron_partial,
    "entry_sums": _entry_sums,
    "array_entry_sums": _array_entry_sums,
    "pair_entry_sums": _pair_entry_sums,
    "band_entry_sums": _band_entry_sums,
    "toeplitz_diagonal_sums": _toeplitz_sums,
    "generator_sums": _generator_sums,
    "pair_generator_sums": _pair_generator_sums,
    "array_slice": _array_slice,
    "scatter_slice": _scatter_slice,
    "blockband": _blockband,
    "kernel_number_sums": kernels.number_sums,
    "kernel_point_sums": kernels.point_sums,
}
