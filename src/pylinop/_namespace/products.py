"""The kinds on arrays of a namespace: products. What has none of its own goes by its dense form."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import config
from . import kinds

__all__ = ["apply", "by_spectrum", "convolved", "fft_pays", "spectrum", "turned"]

_T, _C = 1, 2


_FFT = ("float32", "float64", "complex64", "complex128")
_FFT_LEAST = 64 * 64  # entries: below, the dense form is less work


def _by_fft(row: Any) -> bool:
    return fft_pays(row.shape[-2], row.shape[-1], row.dtype)


def fft_pays(m: int, n: int, dtype: str) -> bool:
    """For a product with an m x n matrix of m + n - 1 numbers, or for their sums."""
    return m * n >= _FFT_LEAST and dtype in _FFT and bool(config.get("fft"))


@functools.lru_cache(maxsize=256)
def _good_length(n: int) -> int:
    """The least product of powers of 2, 3, 5 and 7 that is not below n: others take longer."""
    best = 1 << max(n - 1, 0).bit_length()
    for odd in (3**a * 5**b * 7**c for a in range(13) for b in range(9) for c in range(8)):
        if odd < best:
            best = min(best, odd << max(-(-n // odd) - 1, 0).bit_length())
    return best


def convolved(ns: Any, a: Any, b: Any, pairs: Any) -> Any:
    """The circular convolution of arrays of as many dimensions, along some of their axes;
    `pairs` are (axis, least length)."""
    real = not any(ns.name_of(x).startswith("complex") for x in (a, b))
    lengths = [(axis, _good_length(n)) for axis, n in pairs]
    last, length = lengths[-1]
    if real:
        a, b = ns.rfft(a, last, length), ns.rfft(b, last, length)
    for axis, n in lengths[:-1] if real else lengths:
        a, b = ns.fft(a, axis, False, n), ns.fft(b, axis, False, n)
    y = a * b
    for axis, _ in lengths[:-1] if real else lengths:
        y = ns.fft(y, axis, True)
    return ns.irfft(y, last, length) if real else y


def _box_product(w: Any, mode: int, t: Any, into: Any, x: Any) -> Any:
    """y[i] = sum_j t[i - j + n - 1] x[j] on each level, by circular convolutions of length
    m + n - 1 or more; through a mode of that matrix. `into` are the n, t has the levels last."""
    ns, count, k = w.ns, len(into), x.shape[-1]
    axes = range(t.ndim - count, t.ndim)
    total = [t.shape[a] for a in axes]
    t = ns.conj(t) if mode & _C else t
    if mode & _T:
        t, into = ns.flip(t, axes), [g - n + 1 for g, n in zip(total, into, strict=True)]
    y = ns.reshape(x, (*x.shape[:-2], *into, k))
    y = convolved(ns, t[..., None], y, [(level - 1 - count, g) for level, g in enumerate(total)])
    cuts = [slice(n - 1, g) for n, g in zip(into, total, strict=True)]
    y = y[(..., *cuts, slice(None))]
    levels = y.shape[y.ndim - 1 - count : -1]
    return ns.reshape(y, (*y.shape[: y.ndim - 1 - count], math.prod(levels), k))


def _toeplitz_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    n = row.shape[-1]
    if not _by_fft(row):
        return _by_dense(w, row, mode, x)
    if row.head == "toeplitz":
        return _box_product(w, mode, kinds.toeplitz_numbers(w, row), [n], x)
    n = row.shape[-2] if mode & _T else n  # a Hankel matrix is symmetric in its numbers
    t = kinds.hankel_numbers(w, row)
    return _box_product(w, mode & _C, t, [n], w.ns.flip(x, (-2,)))


def _multitoeplitz_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    if not _by_fft(row):
        return _by_dense(w, row, mode, x)
    total, into = kinds.levels(w, row, 1), kinds.levels(w, row, 2)
    t = w.child(row, 0)
    t = w.ns.reshape(t, (*t.shape[:-1], *total))
    return _box_product(w, mode, t, list(into), x)


def _convolution_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """As a Toeplitz matrix on each level: its numbers are taken from the kernel with a zero."""
    g, into, ns = kinds.levels(w, row, 1), list(kinds.levels(w, row, 2)), w.ns
    if not _by_fft(row) or not min(into):
        return _by_dense(w, row, mode, x)
    t = w.child(row, 0)
    t = ns.reshape(t, (*t.shape[:-1], *g))
    for level, (k, n) in enumerate(zip(g, into, strict=True)):
        axis = t.ndim - len(into) + level
        longer = kinds.padded(ns, t, axis, 0, k + 1)
        t = sum(
            ns.take(longer, np.where((at >= 0) & (at < k), at, k), axis)
            for at in kinds.numbers_at(row.i[0], k, n)
        )
    return _box_product(w, mode, t, into, x)


def _along(w: Any, sizes: Any, x: Any, one: Callable[..., Any]) -> Any:
    """one(y, axis, size) on each level of the rows of x."""
    y = w.ns.reshape(x, (*x.shape[:-2], *sizes, x.shape[-1]))
    for level, n in enumerate(sizes):
        y = one(y, y.ndim - 1 - len(sizes) + level, n)
    return w.ns.reshape(y, x.shape)


def _dft_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    if not _by_fft(row):
        return _by_dense(w, row, mode, x)
    power = (0.0, -0.5, -1.0)[row.i[0]] + (1 if mode & _C else 0)  # ifft divides by n

    def one(y: Any, axis: int, n: int) -> Any:
        return w.ns.fft(y, axis, bool(mode & _C)) * float(n) ** power

    return _along(w, kinds.levels(w, row, 0), x, one)


def _dct_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """The cosines are real parts of an FFT of twice the length, turned before and after it."""
    if not _by_fft(row):
        return _by_dense(w, row, mode, x)
    ns, kind, norm = w.ns, row.i[0], row.i[3] % 3
    turned = (row.i[3] >= 3) != bool(mode & _T)
    high = ns.name_of(x)
    pair = ns.concat([ns.real(x), ns.imag(x)], -1) if high.startswith("complex") else x

    def one(y: Any, axis: int, n: int) -> Any:
        period, (before, after), (weights, factors) = _cosines(kind, norm, n, turned)
        shape = [-1 if a == axis else 1 for a in range(y.ndim)]
        real = ns.name_of(y)
        wide = "complex64" if real == "float32" else "complex128"
        y = y * ns.reshape(ns.constant(before * weights, wide), shape)
        y = ns.fft(y, axis, False, period)[(*[slice(None)] * axis, slice(0, n), ...)]
        return ns.cast(ns.real(y * ns.reshape(ns.constant(after * factors, wide), shape)), real)

    y = _along(w, kinds.levels(w, row, 0), pair, one)
    k = x.shape[-1]
    return y[..., :k] + 1j * ns.cast(y[..., k:], high) if high.startswith("complex") else y


def _cosines(kind: int, norm: int, n: int, turned: bool) -> Any:
    """cos(pi (j + a) (k + b) / m), weighed by j and by k as SciPy's dct does."""
    a, b = (0.5 if kind in (2, 4) else 0.0), (0.5 if kind in (3, 4) else 0.0)
    m = n - 1 if kind == 1 else n
    j, weights, factors = np.arange(n), np.full(n, 2.0), np.ones(n)
    if kind == 1:
        weights[[0, -1]] = 1
    elif kind == 3:
        weights[0] = 1
    if norm == 1:  # orthogonal
        ends = [0, -1] if kind == 1 else [0] if kind in (2, 3) else []
        weights[ends] *= np.sqrt(2) if kind in (1, 3) else 1
        factors[ends] *= np.sqrt(0.5) if kind in (1, 2) else 1
    factors *= (1, np.sqrt(0.5 / m), 0.5 / m)[norm]
    if turned:
        a, b, weights, factors = b, a, factors, weights
    turns = np.exp(-1j * np.pi * b * j / m), np.exp(-1j * np.pi * a * (j + b) / m)
    return 2 * m, turns, (weights, factors)


def _hadamard_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    n, half = row.shape[-1], 1
    while half < n:
        y = w.ns.reshape(x, (*x.shape[:-2], n // (2 * half), 2, half, x.shape[-1]))
        a, b = y[..., 0, :, :], y[..., 1, :, :]
        x = w.ns.reshape(w.ns.stack([a + b, a - b], -3), x.shape)
        half *= 2
    return x


def _full_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    c = w.coefficient(row)
    if isinstance(c, complex):
        c = c.conjugate() if mode & _C else c
    elif mode & _C and hasattr(c, "ndim"):
        c = w.ns.conj(c)
    rows = row.shape[-1 if mode & _T else -2]
    y = w.ns.sum(x, -2, True) * c
    return w.ns.expand(y, (*y.shape[:-2], rows, y.shape[-1]))


def _zeros_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    rows = row.shape[-1 if mode & _T else -2]
    return w.ns.zeros((*x.shape[:-2], rows, x.shape[-1]), w.ns.name_of(x))


def _blocks_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """Block by block, as `_diagonals_apply`."""
    ns, b = w.ns, row.i[0]
    if not row.shape[-1]:
        return _zeros_apply(w, row, mode, x)
    n, k = row.shape[-1] // b, x.shape[-1]
    x = ns.reshape(x, (*x.shape[:-2], n, b, k))
    total = ns.zeros((n, b, k), ns.name_of(x))
    for at, blocks in kinds.block_diagonals(w, row):
        at, length = (-at if mode & _T else at), blocks.shape[-3]
        if length:
            y = ns.matmul(
                kinds.seen(ns, blocks, mode), x[..., max(at, 0) :, :, :][..., :length, :, :]
            )
            total = total + kinds.padded(ns, y, y.ndim - 3, max(-at, 0), n)
    return ns.reshape(total, (*total.shape[:-3], n * b, k))


def _diagonals_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """Rows of x times the numbers of each diagonal, put where they belong."""
    m, n = row.shape[-2:]
    m, n, ns = (n, m, w.ns) if mode & _T else (m, n, w.ns)
    total = ns.zeros((*x.shape[:-2], m, x.shape[-1]), ns.name_of(x))
    for k, d in kinds.diagonals(w, row):
        k, length = (-k if mode & _T else k), d.shape[-1]
        if length:
            d = ns.conj(d) if mode & _C else d
            y = d[..., None] * x[..., max(k, 0) : max(k, 0) + length, :]
            total = total + kinds.padded(ns, y, y.ndim - 2, max(-k, 0), m)
    return total


def spectrum(w: Any, c: Any, sizes: Any) -> Any:
    """The eigenvalues of a circulant, by levels."""
    c = w.ns.reshape(c, (*c.shape[:-1], *sizes))
    for axis in range(c.ndim - len(sizes), c.ndim):
        c = w.ns.fft(c, axis)
    return c


def by_spectrum(w: Any, values: Any, sizes: Any, x: Any, real: bool) -> Any:
    """F^-1 diag(values) F x."""
    ns, k = w.ns, x.shape[-1]
    y = ns.reshape(x, (*x.shape[:-2], *sizes, k))
    axes = range(y.ndim - 1 - len(sizes), y.ndim - 1)
    for axis in axes:
        y = ns.fft(y, axis)
    y = values[..., None] * y
    for axis in range(y.ndim - 1 - len(sizes), y.ndim - 1):
        y = ns.fft(y, axis, True)
    y = ns.reshape(y, (*y.shape[: y.ndim - 1 - len(sizes)], math.prod(sizes), k))
    return ns.real(y) if real else y


def turned(w: Any, c: Any, sizes: Any, mode: int) -> Any:
    """The first column of a circulant through a mode."""
    c = w.ns.conj(c) if mode & _C else c
    return w.ns.take(c, kinds.flipped(sizes), c.ndim - 1) if mode & _T else c


def _circulant_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    sizes = kinds.levels(w, row, 1)
    if not _by_fft(row):
        return _by_dense(w, row, mode, x)
    c = turned(w, w.child(row, 0), sizes, mode)
    real = not w.ns.name_of(x).startswith("complex") and not w.ns.name_of(c).startswith("complex")
    return by_spectrum(w, spectrum(w, c, sizes), sizes, x, real)


def _diag_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    d = w.child(row, 0)
    return (w.ns.conj(d) if mode & _C else d)[..., None] * x


def _identity_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    return x


def _selection_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    index = kinds.selection_index(w, row)
    if index.ndim > 1:
        return _by_dense(w, row, mode, x)
    if mode & _T:
        return w.ns.scatter(x, index, row.shape[-1])
    return w.ns.take(x, index, x.ndim - 2)


def _kron_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """Factor by factor: the rows of x are a box, of which each turns one level."""
    ns, k = w.ns, x.shape[-1]
    factors = [w.rows[at].shape[-2:] for at in row.children]
    sizes = [pair[0 if mode & _T else 1] for pair in factors]
    for level, at in enumerate(row.children):
        before, behind = math.prod(sizes[:level]), math.prod(sizes[level + 1 :])
        x = ns.reshape(x, (*x.shape[:-2], before, sizes[level], behind * k))
        x = _apply_to_boxes(w, at, mode, x)
        sizes[level] = x.shape[-2]
        x = ns.reshape(x, (*x.shape[:-3], math.prod(sizes), k))
    return x


def _apply_to_boxes(w: Any, at: int, mode: int, x: Any) -> Any:
    """A factor times the matrices before it: one product, for which they go side by side."""
    ns, before = w.ns, x.shape[-3]
    if before == 1:
        y = apply(w, at, mode, x[..., 0, :, :], ns.name_of(x))
        return y[..., None, :, :]
    front, (rows, columns) = x.ndim - 3, x.shape[-2:]
    x = ns.moved(x, [*range(front), front + 1, front, front + 2])
    x = ns.reshape(x, (*x.shape[:front], rows, before * columns))
    y = apply(w, at, mode, x, ns.name_of(x))
    y = ns.reshape(y, (*y.shape[:-1], before, columns))
    front = y.ndim - 3
    return ns.moved(y, [*range(front), front + 1, front, front + 2])


def _sum_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    a, b = (apply(w, at, mode, x, w.ns.name_of(x)) for at in row.children)
    return a + b


def _prod_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    for at in row.children if mode & _T else reversed(row.children):
        x = apply(w, at, mode, x, w.ns.name_of(x))
    return x


def _scaled_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    c = w.coefficient(row)
    c = c.conjugate() if isinstance(c, complex) and mode & _C else c
    return apply(w, row.children[0], mode, x, w.ns.name_of(x)) * c


def _by_dense(w: Any, row: Any, mode: int, x: Any) -> Any:
    wide = _wide(w, row, x)
    a = w.ns.cast(kinds.form(w, row, wide), wide)
    return w.ns.matmul(kinds.seen(w.ns, a, mode), x)


def _wide(w: Any, row: Any, x: Any) -> str:
    have: str = w.ns.name_of(x)
    if row.dtype.startswith("complex") and not have.startswith("complex"):
        have = row.dtype
    return have


APPLY: dict[str, Callable[..., Any]] = {
    "diag": _diag_apply,
    "identity": _identity_apply,
    "toeplitz": _toeplitz_apply,
    "hankel": _toeplitz_apply,
    "circulant": _circulant_apply,
    "multitoeplitz": _multitoeplitz_apply,
    "convolution": _convolution_apply,
    "dft": _dft_apply,
    "dct": _dct_apply,
    "hadamard": _hadamard_apply,
    "full": _full_apply,
    "offdiag": _diagonals_apply,
    "tridiagonal": _diagonals_apply,
    "banded": _diagonals_apply,
    "zeros": _zeros_apply,
    "blocktridiagonal": _blocks_apply,
    "reflections": kinds.reflections_apply,
    "householder": kinds.householder_apply,
    "selection": _selection_apply,
    "permutation": _selection_apply,
    "sparse": kinds.sparse_apply,
    "kron": _kron_apply,
    "sum": _sum_apply,
    "prod": _prod_apply,
    "scaled": _scaled_apply,
}


def apply(w: Any, at: int, mode: int, x: Any, dtype: str) -> Any:
    """mode(A) x, of x with two dimensions of its own."""
    row, mode = kinds.through_views(w, at, mode)
    x = w.ns.cast(x, dtype)
    if row.head not in kinds.DENSE:
        raise kinds.no_form(row)
    row = kinds.widened(row, dtype)
    product: Any = APPLY.get(row.head, _by_dense)
    return product(w, row, mode, x)
