"""Applies the kinds as their definitions say, in plain NumPy, for verified answers (`compare.py`).

Nothing here is shared with the C kernels or with the plain walk: each kind is read from its
constructor's arguments and applied by its formula, or made dense entry by entry. With ``bound`` all
numbers are replaced by their absolute values, so that the same function gives |A| |x|.
Kinds that are convolutions are accurate normwise only: their bound is the norm of the symbol times
that of x."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import reference_fft as by_fft
from .reference_leaf import Leaf, NotVerified, fits, sizes, thin, zeros

# -- kinds of few entries --


def _diagonals(leaf: Any, x: Any, diagonals: Any) -> Any:
    """Of pairs (offset, numbers)."""
    y = zeros(leaf, x, *(d for _, d in diagonals))
    for k, d in diagonals:
        i, j, count = max(-k, 0), max(k, 0), d.shape[-1]
        i, j = (j, i) if leaf.turned else (i, j)
        y[..., i : i + count, :] += d[..., None] * x[..., j : j + count, :]
    return y


def _diag(leaf: Any, x: Any) -> Any:
    d, k = leaf.given("d", "k")
    return _diagonals(leaf, x, [(int(k), leaf.get(d))])


def _half(leaf: Any) -> bool:
    """Is the half above the diagonal all of it?"""
    word = leaf.given("assume_a")
    return word in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")


def _below(leaf: Any, above: Any) -> Any:
    return above if leaf.given("assume_a")[0] == "s" else np.conjugate(above)


def _tridiagonal(leaf: Any, x: Any) -> Any:
    dl, d, du = (leaf.get(a) for a in leaf.given("dl", "d", "du"))
    if _half(leaf):
        dl, d = _below(leaf, du), d if leaf.given("assume_a")[0] == "s" else d.real
    return _diagonals(leaf, x, [(-1, dl), (0, d), (1, du)] if d.shape[-1] > 1 else [(0, d)])


def _banded(leaf: Any, x: Any) -> Any:
    (low, up), ab = leaf.given("l_and_u", "ab")
    n, ab = leaf.op.shape[-1], leaf.get(ab)
    ks = range(-min(low, n - 1), min(up, n - 1) + 1)
    d = {k: ab[..., up - k, max(k, 0) : n + min(k, 0)] for k in ks}
    for k in ks if _half(leaf) else ():
        if k < 0:
            d[k] = _below(leaf, d[-k])
        elif k == 0 and leaf.given("assume_a")[0] != "s":
            d[k] = d[k].real
    return _diagonals(leaf, x, list(d.items()))


def _identity(leaf: Any, x: Any) -> Any:
    return x


def _nothing(leaf: Any, x: Any) -> Any:
    return zeros(leaf, x)


def _full(leaf: Any, x: Any) -> Any:
    c = leaf.get(leaf.given("c"))
    y = zeros(leaf, x, c)
    y[...] = c * x.sum(-2, keepdims=True, dtype=y.dtype)
    return y


def _picked(leaf: Any, x: Any) -> Any:
    """Row i of the matrix has its one at index[i]."""
    name = "p" if leaf.op._head == "permutation" else "index"
    index = np.asarray(leaf.given(name)).astype(np.int64)
    if index.ndim > 1:
        return leaf.seen(np.eye(leaf.op.shape[-1], dtype=leaf.work)[index]) @ x
    if not leaf.turned:
        return x[..., index, :]
    y = zeros(leaf, x)
    at: Any = (..., index, slice(None))
    np.add.at(y, at, x)
    return y


def _entries(a: Any, data: Any) -> tuple[Any, ...]:
    """(rows, columns, numbers) of SciPy's sparse matrix, its own unless others are given. The
    arrays may have room at the ends."""
    if not hasattr(a, "format"):
        raise NotVerified("a sparse matrix that is not SciPy's")
    if a.format not in ("csr", "csc", "coo"):
        a = a.tocoo()
    data = a.data if data is None else data
    if a.format == "coo":
        return a.row, a.col, data
    used = slice(int(a.indptr[0]), int(a.indptr[-1]))
    major = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
    pair = (major, a.indices[used]) if a.format == "csr" else (a.indices[used], major)
    return *pair, data[used]


def _sparse(leaf: Any, x: Any) -> Any:
    a = leaf.given("A")
    if getattr(a, "_head", "") == "sparse" and a._init is not None:
        row, col, v = _entries(a._given("A"), a._given("data"))
    else:
        row, col, v = _entries(a, leaf.given("data") if leaf.op._head == "sparse" else None)
    i, j = (col, row) if leaf.turned else (row, col)
    y = zeros(leaf, x, v := leaf.get(v))
    if leaf.op._head == "sparsetriangular":
        lower, unit = leaf.given("lower", "unit_diagonal")
        keep = (row > col) if lower else (row < col)
        keep = keep if unit else keep | (row == col)
        i, j, v = i[keep], j[keep], v[keep]
        y = y + x if unit else y
    order = np.argsort(i, kind="stable")
    i, j, v = i[order], j[order], v[order]
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    if len(i) and y.dtype.kind == "b":
        at: Any = (..., i, slice(None))
        np.logical_or.at(y, at, v[:, None] & x[..., j, :])
    elif len(i):
        y[..., i[starts], :] += np.add.reduceat(v[:, None] * x[..., j, :], starts, axis=-2)
    return y


def _reflecting(v: Any) -> Any:
    """Multiples of vectors, along the last axis, of which |v|^2 = 2, so that I - v v^H reflects;
    the zero vector as it is. By their largest entries first, whose squares are in the range."""
    top = np.abs(v).max(-1, keepdims=True, initial=0)
    v = v / np.where(top > 0, top, 1)
    square = (np.abs(v) ** 2).sum(-1, keepdims=True)
    return v / np.sqrt(np.where(square > 0, square, 1) / 2)


def _householder(leaf: Any, x: Any) -> Any:
    """x - v tau (v^H x); with the absolute values of all parts their sum."""
    v, tau = leaf.given("v", "tau")
    v = leaf.plain(v)
    if tau is None:
        v, tau = _reflecting(v), np.ones(v.shape[:-1])
    else:
        tau = leaf.plain(tau)
    v, tau = v[..., None], np.asarray(tau)[..., None, None]
    if leaf.bound:
        v, tau = np.abs(v), np.abs(tau)
    else:
        v = v.conj() if leaf.turned != leaf.conj else v
        tau = tau.conj() if leaf.conj else tau
    y = v @ (tau * (np.swapaxes(v, -1, -2).conj() @ x))
    if y.dtype.kind == "b":
        return x | y
    return x + y if leaf.bound else x - y


def _reflections(leaf: Any, x: Any) -> Any:
    """One reflection after the other, on the rows that are its own."""
    rows, n = leaf.plain(leaf.given("v")), leaf.op.shape[-1]
    rows = np.abs(rows) if leaf.bound else rows
    y = zeros(leaf, x, rows)
    y[...] = x
    count = rows.shape[-2]
    for j in range(count) if leaf.turned else range(count - 1, -1, -1):
        v = _reflecting(rows[..., j, : n - j])[..., None]
        at = slice(j, j + v.shape[-2])
        v = v.conj() if leaf.turned != leaf.conj else v
        change = v @ (np.swapaxes(v, -1, -2).conj() @ y[..., at, :])
        y[..., at, :] += change if leaf.bound else -change
    return y


# -- kinds of all entries: their rows lo to hi --


def _rows(leaf: Any, x: Any, piece: Any) -> Any:
    """mode(A) x from blocks of rows of A, `piece(lo, hi)`, that stay in the cache."""
    m, n = leaf.op.shape[-2:]
    step = m if m * n <= 1 << 16 else max((1 << 17) // max(n, 1), 16)
    if step >= m:
        a = piece(0, m)
        return (np.swapaxes(a, -1, -2) if leaf.turned else a) @ x
    parts, total = [], 0
    for lo in range(0, m, step):
        a = piece(lo, min(lo + step, m))
        if leaf.turned:
            total = total + np.swapaxes(a, -1, -2) @ x[..., lo : lo + step, :]
        else:
            parts.append(a @ x)
    return total if leaf.turned else np.concatenate(parts, axis=-2)


def _dense(leaf: Any, x: Any) -> Any:
    a = np.asarray(leaf.given("a"))
    if leaf.bound and x.ndim == 2:
        return sizes(np.swapaxes(a, -1, -2) if leaf.turned else a, x)
    if not leaf.bound and a.dtype == leaf.work and not leaf.conj:
        return thin(np.swapaxes(a, -1, -2) if leaf.turned else a, x)
    return _rows(leaf, x, lambda lo, hi: leaf.get(a[..., lo:hi, :]))


def _triangular(leaf: Any, x: Any) -> Any:
    a, lower, unit = leaf.given("a", "lower", "unit_diagonal")
    a = np.asarray(a)

    def piece(lo: int, hi: int) -> Any:
        i, j = np.arange(lo, hi)[:, None], np.arange(a.shape[-1])
        b = leaf.get(a[..., lo:hi, :])
        inside = (j < i) if lower else (j > i)
        b = np.where(inside if unit else inside | (i == j), b, np.zeros((), b.dtype))
        return b + (i == j).astype(b.dtype) if unit else b

    return _rows(leaf, x, piece)


def _blocktridiagonal(leaf: Any, x: Any) -> Any:
    blocks = leaf.given("lower", "diag", "upper")
    parts: Any = (None if a is None else leaf.plain(a) for a in blocks)
    low, d, up = parts
    if _half(leaf):
        right, main = np.triu(d, 1), np.triu(np.tril(d))
        up = _below(leaf, np.swapaxes(low, -1, -2))
        main = main if leaf.given("assume_a")[0] == "s" else main.real
        d = right + main + _below(leaf, np.swapaxes(right, -1, -2))
    up = np.conjugate(np.swapaxes(low, -1, -2)) if up is None else up
    size, b = d.shape[-3], d.shape[-1]
    y = zeros(leaf, x, low, d, up)
    places = [(d, i, i, i) for i in range(size)]
    places += [(low, i, i + 1, i) for i in range(size - 1)]
    places += [(up, i, i, i + 1) for i in range(size - 1)]
    for a, at, i, j in places:
        i, j = (j, i) if leaf.turned else (i, j)
        part = leaf.seen(a[..., at, :, :]) @ x[..., j * b : (j + 1) * b, :]
        y[..., i * b : (i + 1) * b, :] += part
    return y


def _quasiseparable(leaf: Any, x: Any) -> Any:
    """The dense form below the diagonal column by column: d, p^T a ... a q."""
    d, p, q, a = (leaf.plain(v) for v in leaf.given("d", "p", "q", "a"))
    triangular = leaf.given("triangular")
    if leaf.bound:
        d, p, q, a = (np.abs(v) for v in (d, p, q, a))
    n, size = d.shape[-1], p.shape[-1]
    fits(leaf)
    batch = leaf.op.shape[:-2]
    if a.shape[-1] == size:
        a = a[..., None] * np.eye(size)
    else:
        a = a.reshape(*a.shape[:-1], size, size)
    out = np.zeros((*batch, n, n), np.result_type(d, p, q, a, np.float64))
    state = np.zeros((*batch, size, 0), out.dtype)  # of all columns before this row
    for i in range(1, n):
        if i > 1:
            state = a[..., i - 1, :, :] @ state
        new = np.broadcast_to(q[..., i - 1, :, None], (*batch, size, 1))
        state = np.concatenate([state, new], axis=-1)
        out[..., i, :i] = (p[..., i, None, :] @ state)[..., 0, :]
    whole = out if triangular else out + np.swapaxes(out, -1, -2).conj()
    at = np.arange(n)
    whole[..., at, at] = d if triangular else np.real(d)
    return leaf.seen(whole) @ x


# -- kernels --


def _kernel_entries(leaf: Any, lo: int, hi: int) -> tuple[Any, Any]:
    """Rows of k(x_i, y_j), and of a bound on the errors of the formula in units of rounding."""
    word, x, y, variance, length = leaf.given("function", "x", "y", "variance", "length_scale")
    alpha, period, degree, offset = leaf.given("alpha", "period", "degree", "offset")
    x = np.asarray(x, float)
    y = x if y is None else np.asarray(y, float)
    length = np.ones(1) if length is None else np.atleast_1d(np.asarray(length, float))
    length = length[..., None, None, :]
    variance, alpha, period, offset = (
        np.ones(()) if v is None else np.asarray(v, float)[..., None, None]
        for v in (variance, alpha, period, offset)
    )
    left, right = x[..., lo:hi, None, :], y[..., None, :, :]
    if word in ("polynomial", "linear"):
        s = 0.0 if word == "linear" else offset
        power = 1 if word == "linear" else 3 if degree is None else int(degree)
        inner = (left * right / length**2).sum(-1)
        size = (np.abs(left * right) / length**2).sum(-1) + np.abs(s)
        return variance * (inner + s) ** power, np.abs(variance) * (power + 1) * size**power
    difference = left - right
    if word == "periodic":
        difference = np.pi * difference / period[..., None]
        u = 2 * ((np.sin(difference) / length) ** 2).sum(-1)
        slope = u + (np.abs(np.sin(2 * difference) * difference) / length**2).sum(-1) * 2
        k = variance * np.exp(-u)
        return k, np.abs(k) * (4 + 4 * slope)
    square = ((difference / length) ** 2).sum(-1)
    r = np.sqrt(square)
    if word == "rbf":
        k, slope = np.exp(-square / 2), square
    elif word == "rational_quadratic":
        s = alpha
        k, slope = (1 + square / (2 * s)) ** -s, s * np.log1p(square / (2 * s)) + square
    elif word in ("matern12", "matern32", "matern52"):
        b = r * {"1": 1.0, "3": np.sqrt(3), "5": np.sqrt(5)}[word[-2]]
        more = {"1": 0 * b, "3": b, "5": b + b**2 / 3}[word[-2]]
        k, slope = (1 + more) * np.exp(-b), b
    else:
        raise NotVerified(f"a kernel {word!r}")
    return variance * k, np.abs(variance) * k * (4 + 4 * slope)


def _kernel(leaf: Any, x: Any) -> Any:
    at = 1 if leaf.bound else 0
    return _rows(leaf, x, lambda lo, hi: _kernel_entries(leaf, lo, hi)[at])


# -- differences on grids --


def _weights(order: Any, kind: str) -> Any:
    """Weights of a difference, and where the first of them stands."""
    w = np.ones(1)
    for _ in range(order):
        w = np.convolve(w, [-1.0, 1.0])
    first = {"forward": 0, "backward": -order}.get(kind, -(order // 2))
    if kind == "central" and order % 2:
        w, first = np.convolve(w, [0.5, 0.5]), -((order + 1) // 2)
    return w, first


def _difference(leaf: Any, x: Any) -> Any:
    n, order, kind, boundary = leaf.given("n", "order", "kind", "boundary")
    n = int(n)
    w, first = _weights(int(order), kind)
    m = leaf.op.shape[-2]
    if boundary == "valid":
        first = 0
    y = zeros(leaf, x)
    rows = np.arange(m)
    for place, weight in enumerate(w.astype(leaf.work) if leaf.work.kind in "fc" else w):
        weight = np.array(abs(weight) if leaf.bound else weight)
        # of integers modulo 2^w, which a float's cast is not
        weight = (weight.astype(np.int64) if y.dtype.kind in "iu" else weight).astype(y.dtype)
        j = rows + first + place
        inside = slice(None) if boundary == "periodic" else (j >= 0) & (j < n)
        j = j % max(n, 1) if boundary == "periodic" else j
        i, j = rows[inside], j[inside]
        i, j = (j, i) if leaf.turned else (i, j)
        at: Any = (..., i, slice(None))
        np.add.at(y, at, weight * x[..., j, :])
    return y


def _laplacian(leaf: Any, x: Any) -> Any:
    grid, boundary = leaf.given("grid_shape", "boundary_conditions")
    grid, k = tuple(int(v) for v in np.atleast_1d(np.asarray(grid, int))), x.shape[-1]
    y = np.zeros_like(x) if x.size else zeros(leaf, x)
    box = x.reshape(*x.shape[:-2], *grid, k)
    total = np.zeros_like(box)
    for axis, n in enumerate(grid):
        at = box.ndim - 1 - len(grid) + axis
        u = np.moveaxis(box, at, 0)
        v = np.zeros_like(u)
        two = np.array(2).astype(v.dtype)
        v += two * u if leaf.bound else -(two * u)
        v[1:] += u[:-1]
        v[:-1] += u[1:]
        if boundary == "neumann" and n:
            v[0] += u[0]
            v[-1] += u[-1]
        if boundary == "periodic" and n:
            v[0] += u[-1]
            v[-1] += u[0]
        total += np.moveaxis(v, 0, at)
    return total.reshape(x.shape) if x.size else y


KINDS = {
    "dense": _dense,
    "identity": _identity,
    "zeros": _nothing,
    "diag": _diag,
    "offdiag": _diag,
    "selection": _picked,
    "permutation": _picked,
    "toeplitz": by_fft.toeplitz,
    "sparse": _sparse,
    "sparsetriangular": _sparse,
    "circulant": by_fft.circulant,
    "hankel": by_fft.hankel,
    "multitoeplitz": by_fft.multitoeplitz,
    "convolution": by_fft.convolution,
    "dft": by_fft.dft,
    "dct": by_fft.dct,
    "hadamard": by_fft.hadamard,
    "tridiagonal": _tridiagonal,
    "banded": _banded,
    "triangular": _triangular,
    "full": _full,
    "householder": _householder,
    "reflections": _reflections,
    "difference": _difference,
    "laplacian": _laplacian,
    "quasiseparable": _quasiseparable,
    "kernel": _kernel,
    "blocktridiagonal": _blocktridiagonal,
}


def apply(op: Any, x: Any, mode: int, work: Any, bound: Any) -> Any:
    """mode(A) x, or |A| x with `bound`, of a kind as constructed; x of shape (..., n, k)."""
    kind = KINDS.get(op._head)
    if kind is None or op._init is None:
        raise NotVerified(f"{type(op).__name__} has no independent form")
    return kind(Leaf(op, work, mode, bound), x)
