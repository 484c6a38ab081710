"""The kinds on arrays of a namespace: products. What has none of its own goes by its dense form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import kinds

__all__ = ["apply", "by_spectrum", "spectrum", "turned"]

_T, _C = 1, 2


def _fft_product(w: Any, row: Any, t: Any, x: Any, m: int, n: int) -> Any:
    """y[i] = sum_j t[i - j + n - 1] x[j] by a circular convolution of length m + n - 1."""
    ns = w.ns
    pad = ns.zeros((*x.shape[:-2], m - 1, x.shape[-1]), ns.name_of(x))
    long = ns.concat([x, pad], -2)
    turned = ns.fft(t, t.ndim - 1)[..., None] * ns.fft(long, long.ndim - 2)
    y = ns.fft(turned, turned.ndim - 2, True)[..., n - 1 : n - 1 + m, :]
    return y if row.dtype.startswith("complex") else ns.real(y)


_FFT = ("float32", "float64", "complex64", "complex128")
_FFT_LEAST = 64  # rows: below, the dense form is less work


def _toeplitz_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    m, n = row.shape[-2:]
    hankel = row.head == "hankel"
    if min(m, n) < _FFT_LEAST or row.dtype not in _FFT:
        return _by_dense(w, row, mode, x)
    t = kinds.hankel_numbers(w, row) if hankel else kinds.toeplitz_numbers(w, row)
    t = w.ns.conj(t) if mode & _C else t
    if mode & _T:
        m, n = n, m
        t = t if hankel else w.ns.flip(t, (-1,))
    return _fft_product(w, row, t, w.ns.flip(x, (-2,)) if hankel else x, m, n)


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
    y = ns.reshape(y, (*y.shape[: y.ndim - 1 - len(sizes)], -1, k))
    return ns.real(y) if real else y


def turned(w: Any, c: Any, sizes: Any, mode: int) -> Any:
    """The first column of a circulant through a mode."""
    c = w.ns.conj(c) if mode & _C else c
    return w.ns.take(c, kinds.flipped(sizes), c.ndim - 1) if mode & _T else c


def _circulant_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    sizes = kinds.levels(w, row, 1)
    if row.shape[-1] < _FFT_LEAST or row.dtype not in _FFT:
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


def _by_dense(w: Any, row: Any, mode: int, x: Any) -> Any:
    a = w.ns.cast(kinds.DENSE[row.head](w, row), _wide(w, row, x))
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
    "householder": kinds.householder_apply,
    "selection": _selection_apply,
    "permutation": _selection_apply,
    "sparse": kinds.sparse_apply,
}


def apply(w: Any, at: int, mode: int, x: Any, dtype: str) -> Any:
    """mode(A) x, of x with two dimensions of its own."""
    row, mode = kinds.through_views(w, at, mode)
    x = w.ns.cast(x, dtype)
    if row.head not in kinds.DENSE:
        raise kinds.no_form(row)
    product: Any = APPLY.get(row.head, _by_dense)
    return product(w, row, mode, x)
