"""Hermitian matrices that reversing all rows and columns conjugates (centrohermitian), such as
Hermitian `Toeplitz` matrices of any number of levels. Real ones split into a symmetric and a skew
half; complex ones are unitarily similar to a real matrix. Each entry is rounded once or twice.

Cantoni and Butler 1976, Eigenvalues and eigenvectors of symmetric centrosymmetric matrices; Lee
1980, Centrohermitian and skew-centrohermitian matrices. A quarter of the flops."""

import math
from typing import Any

import numpy as np


def _parts(a: Any) -> tuple[Any, Any, Any, Any]:
    """A + B J and A - B J of the upper half [A x B]; for odd n also x and the element in the
    middle."""
    n = a.shape[-1]
    m = n // 2
    first, last = a[..., :m, :m], a[..., :m, : n - m - 1 : -1]
    if n % 2 == 0:
        return first + last, first - last, None, None
    return first + last, first - last, math.sqrt(2.0) * a[..., :m, m], a[..., m, m].real


def _bordered(inner: Any, x: Any, middle: Any) -> Any:
    """[inner x; x^T middle]."""
    m = inner.shape[-1]
    out = np.empty((*inner.shape[:-2], m + 1, m + 1), inner.dtype)
    out[..., :m, :m] = inner
    out[..., :m, m] = out[..., m, :m] = x
    out[..., m, m] = middle
    return out


def reduced(a: Any) -> tuple[Any, ...]:
    """Real symmetric matrices with the eigenvalues of the centrohermitian array: two of half its
    size if it is real, else one of its size."""
    plus, minus, x, middle = _parts(a)
    if not np.iscomplexobj(a):
        return (plus if x is None else _bordered(plus, x, middle)), minus
    top = np.concatenate([plus.real, -minus.imag], axis=-1)
    low = np.concatenate([plus.imag, minus.real], axis=-1)
    whole = np.concatenate([top, low], axis=-2)
    if x is None:
        return (whole,)
    return (_bordered(whole, np.concatenate([x.real, x.imag], axis=-1), middle),)


def values(a: Any) -> Any:
    """The eigenvalues, ascending."""
    found = [np.linalg.eigvalsh(part) for part in reduced(a) if part.shape[-1]]
    return np.sort(np.concatenate(found, axis=-1), axis=-1)


def basis(a: Any) -> tuple[Any, Any]:
    """Eigenvalues, in no order, and a unitary array of eigenvectors."""
    n, parts = a.shape[-1], reduced(a)
    m, at, out = n // 2, 0, np.zeros(a.shape, a.dtype)
    w = np.empty(a.shape[:-1], a.real.dtype)
    for k, part in enumerate(parts):
        size = part.shape[-1]
        if size == 0:
            continue
        w[..., at : at + size], v = np.linalg.eigh(part)
        here = slice(at, at + size)
        half = v[..., :m, :] * math.sqrt(0.5)
        if np.iscomplexobj(a):
            half = half + 1j * (v[..., m : 2 * m, :] * math.sqrt(0.5))
        out[..., :m, here] = half
        out[..., n - m :, here] = (-1 if k else 1) * half[..., ::-1, :].conj()
        if n % 2 and k == 0:
            out[..., m, here] = v[..., -1, :]
        at += size
    return w, out
