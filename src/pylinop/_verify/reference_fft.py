"""Applies the kinds whose products may go through an FFT as their definitions say
(`reference_kinds.py`): by their dense forms, large ones of one level by NumPy's FFT."""

from __future__ import annotations

from typing import Any

import numpy as np

from .reference_leaf import LARGEST, NotVerified, fits, zeros


def _symbol(leaf: Any, x: Any, symbol: Any, levels: Any) -> Any:
    """The bound of a convolution: the norm of the symbol times that of x, everywhere."""
    axes = tuple(range(-levels, 0))
    norm = np.sqrt((np.abs(symbol) ** 2).sum(axis=axes))[..., None, None]
    y = zeros(leaf, x, norm)
    y[...] = norm * np.sqrt((np.abs(x) ** 2).sum(-2, keepdims=True))
    return y


def _by_fft(leaf: Any, x: Any, table: Any, shift: Any) -> Any:
    """y[i] = sum_j table[i - j + shift] x[j], one level, by NumPy's FFT: for large ones."""
    m, n = leaf.op.shape[-2:]
    table = table if not leaf.turned else np.flip(table, -1)
    shift = shift if not leaf.turned else table.shape[-1] - 1 - shift
    m = n if leaf.turned else m
    size = 1 << (table.shape[-1] + x.shape[-2]).bit_length()
    product = np.fft.fft(table, size)[..., None] * np.fft.fft(x, size, axis=-2)
    y = np.fft.ifft(product, axis=-2)[..., shift : shift + m, :]
    return y if np.iscomplexobj(table) or np.iscomplexobj(x) else y.real


def _shifted(leaf: Any, x: Any, table: Any, shift: Any, step: int = 1) -> Any:
    """A[i, j] = table[i - step j + shift], of one level."""
    if leaf.op.size > LARGEST // 16 and leaf.work.kind in "fc":
        if step < 0:  # the columns the other way round
            n = leaf.op.shape[-1]
            if leaf.turned:
                return np.flip(_by_fft(leaf, x, table, shift + n - 1), -2)
            return _by_fft(leaf, np.flip(x, -2), table, shift + n - 1)
        return _by_fft(leaf, x, table, shift)
    fits(leaf)
    m, n = leaf.op.shape[-2:]
    columns = step * np.arange(n)
    at = np.arange(m)[:, None] - columns + shift
    a = table[..., at] if m * n else np.zeros((*table.shape[:-1], m, n), table.dtype)
    return (np.swapaxes(a, -1, -2) if leaf.turned else a) @ x


def _joined(a: Any, b: Any) -> Any:
    """One behind the other, of batches that broadcast."""
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    return np.concatenate([np.broadcast_to(v, (*batch, v.shape[-1])) for v in (a, b)], axis=-1)


def toeplitz(leaf: Any, x: Any) -> Any:
    c, r = leaf.given("c", "r")
    c, r = leaf.plain(c), np.conjugate(leaf.plain(c)) if r is None else leaf.plain(r)
    table = _joined(np.flip(r[..., 1:], -1), c)
    if leaf.bound:
        return _symbol(leaf, x, table, 1)
    table = np.conjugate(table) if leaf.conj else table
    return _shifted(leaf, x, table, leaf.op.shape[-1] - 1)


def hankel(leaf: Any, x: Any) -> Any:
    c, r = leaf.given("c", "r")
    c = leaf.get(c)
    r = np.zeros_like(c) if r is None else leaf.get(r)
    table = _joined(c, r[..., 1:])
    m, n = leaf.op.shape[-2:]
    table = np.concatenate(  # where c is empty, or r is
        [table, np.zeros((*table.shape[:-1], max(m + n - 1 - table.shape[-1], 0)), table.dtype)], -1
    )
    return _symbol(leaf, x, table, 1) if leaf.bound else _shifted(leaf, x, table, 0, -1)


def _boxes(sizes: Any) -> Any:
    return np.indices(tuple(sizes)).reshape(len(sizes), -1)


def circulant(leaf: Any, x: Any) -> Any:
    c, levels = leaf.given("c", "levels")
    c, levels = leaf.get(c), 1 if levels is None else int(levels)
    if leaf.bound:
        return _symbol(leaf, x, c, levels)
    sizes = c.shape[c.ndim - levels :]
    n = leaf.op.shape[-1]
    if leaf.op.size > LARGEST // 16 and leaf.work.kind in "fc":
        axes = tuple(range(-levels - 1, -1))
        spectrum = np.fft.fftn(c, axes=tuple(range(-levels, 0)))
        if leaf.turned:  # C^T = conj(C^H), whose eigenvalues are those at the opposite places
            spectrum = np.fft.fftn(_opposite(c, levels), axes=tuple(range(-levels, 0)))
        box = np.fft.fftn(x.reshape(*x.shape[:-2], *sizes, x.shape[-1]), axes=axes)
        y = np.fft.ifftn(spectrum[..., None] * box, axes=axes)
        y = y.reshape(*y.shape[: -levels - 1], n, x.shape[-1])
        return y if np.iscomplexobj(c) or np.iscomplexobj(x) else y.real
    fits(leaf)
    if not n:
        return zeros(leaf, x, c)
    at = _boxes(sizes)
    d = (at[:, :, None] - at[:, None, :]) % np.reshape(sizes, (-1, 1, 1))
    a = c[(..., *d)]
    return (np.swapaxes(a, -1, -2) if leaf.turned else a) @ x


def _opposite(c: Any, levels: Any) -> Any:
    """c at the negative places."""
    for axis in range(-levels, 0):
        c = np.roll(np.flip(c, axis), 1, axis)
    return c


def _folded(table: Any, n: Any) -> Any:
    """The table wrapped round a box of sizes n."""
    levels = len(n)
    folded = np.zeros((*table.shape[: table.ndim - levels], *n), table.dtype)
    for at in np.ndindex(*table.shape[table.ndim - levels :]) if 0 not in n else ():
        folded[(..., *np.mod(at, n))] += table[(..., *at)]
    return folded


def _around(leaf: Any, x: Any, c: Any) -> Any:
    """A large circulant of one level, of first column c."""
    c = _opposite(c, 1) if leaf.turned else c
    y = np.fft.ifft(np.fft.fft(c)[..., None] * np.fft.fft(x, axis=-2), axis=-2)
    return y if np.iscomplexobj(c) or np.iscomplexobj(x) else y.real


def _levels(
    leaf: Any, x: Any, table: Any, m: Any, n: Any, shift: Any, wrapped: bool = False
) -> Any:
    """A[i, j] = table[i - j + shift] for multi-indices, zero outside of it or wrapped round."""
    levels = len(n)
    if leaf.bound:
        return _symbol(leaf, x, table, levels)
    if levels == 1 and leaf.op.size > LARGEST // 16 and leaf.work.kind in "fc":
        if not wrapped:
            return _by_fft(leaf, x, table, int(shift[0]))
        return _around(leaf, x, _folded(table, n))
    fits(leaf)
    i, j = _boxes(m), _boxes(n)
    d = i[:, :, None] - j[:, None, :] + np.reshape(shift, (-1, 1, 1))
    sizes = table.shape[table.ndim - levels :]
    if wrapped:
        a = _folded(table, n)[(..., *(d % np.reshape(n, (-1, 1, 1))))]
    else:
        bounds = np.reshape(sizes, (-1, 1, 1))
        inside = ((d >= 0) & (d < bounds)).all(0)
        if 0 in sizes or not d.size:
            a = np.zeros((*table.shape[: table.ndim - levels], *inside.shape), table.dtype)
        else:
            a = table[(..., *np.clip(d, 0, bounds - 1))]
            a = np.where(inside, a, np.zeros((), a.dtype))
    return (np.swapaxes(a, -1, -2) if leaf.turned else a) @ x


def multitoeplitz(leaf: Any, x: Any) -> Any:
    table, sizes = leaf.given("t", "n")
    table = leaf.get(table)
    n = (np.array(table.shape) + 1) // 2 if sizes is None else sizes
    n = np.atleast_1d(np.asarray(n, int))
    m = np.array(table.shape[table.ndim - len(n) :]) - n + 1
    return _levels(leaf, x, table, m, n, n - 1)


def convolution(leaf: Any, x: Any) -> Any:
    kernel, n, mode = leaf.given("kernel", "n", "mode")
    kernel, n = leaf.get(kernel), np.atleast_1d(np.asarray(n, int))
    k = np.array(kernel.shape[kernel.ndim - len(n) :])
    less = np.minimum(k, n)
    m = {"full": n + k - 1, "valid": np.abs(n - k) + 1}.get(mode, n)
    shift = {"same": (k - 1) // 2, "valid": less - 1}.get(mode, 0 * n)
    return _levels(leaf, x, kernel, np.where(n, m, 0), n, shift, mode == "circular")


def _transformed(leaf: Any, x: Any, one: Any) -> Any:
    """A transform as the product of those of its axes, `one(n)`."""
    sizes = tuple(int(v) for v in np.atleast_1d(np.asarray(leaf.given("n"), int)))
    if max(sizes, default=0) > 2048:
        raise NotVerified(f"a transform of {max(sizes)} points")
    k = x.shape[-1]
    y = x.reshape(*x.shape[:-2], *sizes, k)
    for axis, n in enumerate(sizes):
        a = one(n)
        if leaf.bound:
            a = np.full(a.shape, np.sqrt((np.abs(a) ** 2).sum(0).max(initial=0)))
        else:
            a = leaf.seen(a)
        y = np.moveaxis(np.tensordot(a, y, ([1], [y.ndim - 1 - len(sizes) + axis])), 0, 0)
        y = np.moveaxis(y, 0, y.ndim - 1 - len(sizes) + axis)
    return y.reshape(*x.shape[:-2], -1, k) if y.size else zeros(leaf, x, y)


def dft(leaf: Any, x: Any) -> Any:
    norm = leaf.given("norm")

    def one(n: int) -> Any:
        turn = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
        scale = {"ortho": max(n, 1) ** -0.5, "forward": 1 / max(n, 1)}.get(norm, 1.0)
        return scale * np.exp(-2j * np.pi * turn / max(n, 1))

    return _transformed(leaf, x, one)


def _cosines(n: int, kind: int) -> Any:
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    if kind == 1:
        a = 2 * np.cos(np.pi * (k * j % (2 * (n - 1))) / (n - 1))
        a[:, [0, -1]] /= 2
    elif kind == 2:
        a = 2 * np.cos(np.pi * (k * (2 * j + 1) % (4 * n)) / (2 * n))
    elif kind == 3:
        a = 2 * np.cos(np.pi * ((2 * k + 1) * j % (4 * n)) / (2 * n))
        a[:, :1] /= 2
    else:
        a = 2 * np.cos(np.pi * ((2 * k + 1) * (2 * j + 1) % (8 * n)) / (4 * n))
    return a


def dct(leaf: Any, x: Any) -> Any:
    kind, norm = leaf.given("type", "norm")
    kind = 2 if kind is None else int(kind)

    def one(n: int) -> Any:
        if not n:
            return np.zeros((0, 0))
        a = _cosines(n, kind)
        twice = 2 * (n - 1) if kind == 1 else 2 * n
        if norm == "forward":
            return a / twice
        if norm != "ortho":
            return a
        a = a / np.sqrt(twice)
        ends = [0, -1] if kind == 1 else [0]
        if kind in (1, 2):
            a[ends, :] /= np.sqrt(2)
        if kind in (1, 3):
            a[:, ends] *= np.sqrt(2)
        return a

    return _transformed(leaf, x, one)


def hadamard(leaf: Any, x: Any) -> Any:
    n, half = leaf.op.shape[-1], 1
    y = x
    if x.dtype.kind == "b":  # -1 is True: each entry is
        return np.broadcast_to(x.any(-2, keepdims=True), x.shape)
    while half < n:
        y = y.reshape(*x.shape[:-2], n // (2 * half), 2, half, x.shape[-1])
        up, down = y[..., 0, :, :], y[..., 1, :, :]
        y = np.stack([up + down, up + down if leaf.bound else up - down], axis=-3)
        half *= 2
    return y.reshape(x.shape)
