"""Dense forms by plain NumPy, for kinds whose arrays have a dtype that C does not know (float16,
longdouble). There is one function for each kind; a kind without one raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import sparse_arrays
from .._base.dtypes import C, T
from .._base.kind_flags import names


def conjugated(a: Any) -> Any:
    return np.conjugate(a) if np.iscomplexobj(a) else a


def seen(a: Any, mode: int) -> Any:
    """An array transposed and conjugated as the mode of a view says."""
    a = np.swapaxes(a, -1, -2) if mode & T else a
    return conjugated(a) if mode & C else a


def _diag(op: Any) -> Any:
    d, k = op._given("d", "k")
    out = np.zeros(op.shape, d.dtype)
    at = np.arange(d.shape[-1])
    out[..., at + max(-k, 0), at + max(k, 0)] = d
    return out


def index_of(op: Any) -> Any:
    """The index of a Permutation or Selection, counted from 0; checked as in their products, with
    the same messages."""
    name = "p" if isinstance(op, _core.Permutation) else "index"
    given, n = np.asarray(op._given(name)), op.shape[-1]
    wrong = (given < -n) | (given >= n)
    if wrong.any():
        at = np.argwhere(wrong)[0]
        raise IndexError(
            f"index {given[tuple(at)]} at position {at[-1]} is out of bounds for size {n}"
        )
    index = given.astype(np.int64)
    index[index < 0] += n
    if isinstance(op, _core.Permutation):
        order = np.argsort(index, axis=-1, kind="stable")
        there = np.take_along_axis(index, order, axis=-1)
        twice = np.argwhere(there[..., 1:] == there[..., :-1])
        if twice.size:
            *batch, at = twice[0]
            at = order[(*batch, at + 1)]
            raise ValueError(
                f"a permutation holds each index once; {given[(*batch, at)]} at position {at} is "
                "there before (use Selection for repeated rows)"
            )
    return index


def _permutation(op: Any) -> Any:
    return np.eye(op.shape[-1], dtype=op._given("dtype"))[index_of(op)]


def _on(d: Any, k: int, n: int) -> Any:
    out = np.zeros((*d.shape[:-1], n, n), d.dtype)
    at = np.arange(n - abs(k))
    out[..., at + max(-k, 0), at + max(k, 0)] = d
    return out


HALVES = ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")


def _tridiagonal(op: Any) -> Any:
    n = op.shape[-1]
    dl, d, du = named_lines(op)
    return (_on(dl, -1, n) + _on(du, 1, n) if n > 1 else 0) + _on(d, 0, n)


def _banded(op: Any) -> Any:
    n = op.shape[-1]
    out = np.zeros(op.shape, op._given("ab").dtype)
    for k, d in named_diagonals(op):
        out += _on(d, k, n)
    return out


def named_diagonals(op: Any) -> Any:
    """(offset, diagonal) of all of a Banded; of what is assumed by its upper half."""
    (low, up), ab, word = op._given("l_and_u", "ab", "assume_a")
    n, ab = op.shape[-1], np.asarray(ab)
    for k in range(-min(low, n - 1), min(up, n - 1) + 1):
        at = -k if k < 0 and word in HALVES else k
        d = ab[..., up - at, max(at, 0) : n + min(at, 0)]
        if word in HALVES and word[0] != "s" and k <= 0:
            d = np.conjugate(d) if k < 0 else np.real(d)
        yield k, d


def named_lines(op: Any) -> Any:
    """dl, d, du of a Tridiagonal; of what is assumed by d and du."""
    dl, d, du, word = op._given("dl", "d", "du", "assume_a")
    if word not in HALVES:
        return dl, d, du
    if word[0] == "s":
        return du, d, du
    return np.conjugate(du), np.real(d), du


def named_blocks(op: Any) -> Any:
    """lower, diag, upper of a BlockTridiagonal; of what is assumed by the lower blocks and the
    upper triangles of the others."""
    low, d, up, word = op._given("lower", "diag", "upper", "assume_a")
    if word in HALVES:
        up, d = None, named_form(np.asarray(d), word)
    if up is None:
        up = np.swapaxes(low if word in HALVES and word[0] == "s" else np.conjugate(low), -1, -2)
    return low, d, up


def _blocktridiagonal(op: Any) -> Any:
    low, d, up = named_blocks(op)
    N, b = d.shape[-3], d.shape[-1]
    out = np.zeros(op.shape, np.result_type(low, d, up))
    for i in range(N):
        here, after = slice(i * b, (i + 1) * b), slice((i + 1) * b, (i + 2) * b)
        out[..., here, here] = d[..., i, :, :]
        if i + 1 < N:
            out[..., after, here] = low[..., i, :, :]
            out[..., here, after] = up[..., i, :, :]
    return out


def _quasiseparable(op: Any) -> Any:
    d, p, q, a, triangular = op._given("d", "p", "q", "a", "triangular")
    n, J = d.shape[-1], p.shape[-1]
    batch = np.broadcast_shapes(d.shape[:-1], p.shape[:-2], q.shape[:-2], a.shape[:-2])
    diagonal = np.asarray(d if triangular else np.real(d))
    out = np.zeros((*batch, n, n), np.result_type(d, p, q, a, np.float32))
    out[..., np.arange(n), np.arange(n)] = diagonal
    full = np.zeros((*a.shape[:-1], J, J), a.dtype)
    if a.shape[-1] == J:
        full[..., np.arange(J), np.arange(J)] = a
    else:
        full = a.reshape(*a.shape[:-1], J, J)
    for j in range(n - 1):
        s = q[..., j, :]
        for i in range(j + 1, n):
            s = s if i == j + 1 else (full[..., i - 1, :, :] * s[..., None, :]).sum(-1)
            out[..., i, j] = (p[..., i, :] * s).sum(-1)
            out[..., j, i] = 0 if triangular else np.conj(out[..., i, j])
    return out


def _triangular(op: Any) -> Any:
    a, lower, unit = op._given("a", "lower", "unit_diagonal")
    out = (np.tril if lower else np.triu)(a, (-1 if lower else 1) if unit else 0)
    return out + np.eye(a.shape[-1], dtype=a.dtype) if unit else out


def _householder(op: Any) -> Any:
    v, tau = op._given("v", "tau")
    dtype = np.result_type(v, 1.0) if tau is None else np.result_type(v, tau)
    v = v.astype(dtype)
    tau = 2 / np.sum(abs(v) ** 2, -1) if tau is None else tau
    both = v[..., :, None] * np.conjugate(v)[..., None, :]
    return np.eye(v.shape[-1], dtype=dtype) - np.asarray(tau)[..., None, None] * both


def _reflections(op: Any) -> Any:
    v, n = op._given("v", "n")
    v = v.astype(np.result_type(v, np.float32))
    out = np.broadcast_to(np.eye(n, dtype=v.dtype), (*v.shape[:-2], n, n)).copy()
    for j in range(v.shape[-2]):
        u = v[..., j, : n - j, None]
        at = slice(j, j + u.shape[-2])
        square = (np.abs(u) ** 2).sum(axis=(-2, -1), keepdims=True)
        u = u / np.sqrt(np.where(square > 0, square, 1) / 2)
        out[..., at] -= (out[..., at] @ u) @ np.swapaxes(u, -1, -2).conj()
    return out.astype(np.result_type(op._given("v"), np.float16))


def _of_weights(op: Any, *names: str) -> Any:
    """The dense form of a kind without numbers of its own: in float64, then cast to its dtype."""
    made = type(op)(*op._given(*names), "float64")
    return made.toarray().astype(op._given("dtype"))


def _toeplitz(op: Any) -> Any:
    c, r = op._given("c", "r")
    r = np.conjugate(c) if r is None else r
    m, n = c.shape[-1], r.shape[-1]
    both = np.concatenate([np.flip(r[..., 1:], -1), c], axis=-1)
    return both[..., (n - 1) + np.arange(m)[:, None] - np.arange(n)]


def _circulant(op: Any) -> Any:
    c, levels = op._given("c", "levels")
    n = c.shape[-(levels or 1) :]
    index = np.indices(n).reshape(len(n), -1)
    d = (index[:, :, None] - index[:, None, :]) % np.reshape(n, (-1, 1, 1))
    return c[(..., *d)]


def _hankel(op: Any) -> Any:
    c, r = op._given("c", "r")
    r = np.zeros_like(c) if r is None else r
    both = np.concatenate([c, r[..., 1:]], axis=-1)
    return both[..., np.arange(c.shape[-1])[:, None] + np.arange(r.shape[-1])]


def _selection(op: Any) -> Any:
    return np.eye(op.shape[-1], dtype=op._given("dtype"))[index_of(op)]


def named_form(a: Any, word: Any) -> Any:
    """The matrix that an array is declared to be by scipy.linalg.solve's word: what is no part of
    it is not read."""
    if word in ("lower triangular", "upper triangular"):
        return np.tril(a) if word[0] == "l" else np.triu(a)
    if word in ("diagonal", "tridiagonal"):
        k = int(word == "tridiagonal")
        return np.triu(np.tril(a, k), -k)
    if word not in HALVES:
        return a
    below = np.swapaxes(np.triu(a, 1), -1, -2)
    if word[0] == "s" or a.dtype.kind != "c":
        return np.triu(a) + below
    made = np.triu(a) + np.conjugate(below)
    at = np.arange(a.shape[-1])
    made[..., at, at] = made[..., at, at].real
    return made


_DENSE: dict[str, Callable[[Any], Any]] = {
    "Dense": lambda op: named_form(*op._given("a", "assume_a")),
    "Diag": _diag,
    "Toeplitz": _toeplitz,
    "Circulant": _circulant,
    "Hankel": _hankel,
    "Selection": _selection,
    "Permutation": _permutation,
    "FiniteDifference": lambda op: _of_weights(op, "n", "order", "kind", "boundary"),
    "Laplacian": lambda op: _of_weights(op, "grid_shape", "boundary_conditions"),
    "Triangular": _triangular,
    "Full": lambda op: np.full(op.shape, op._given("c")),
    "Householder": _householder,
    "Reflections": _reflections,
    "Tridiagonal": _tridiagonal,
    "Banded": _banded,
    "BlockTridiagonal": _blocktridiagonal,
    "QuasiSeparable": _quasiseparable,
    "Identity": lambda op: np.eye(op.shape[-1], dtype=op._given("dtype")),
    "Zeros": lambda op: np.zeros(op.shape, dtype=op._given("dtype")),
    "Sparse": lambda op: sparse_arrays.matrix_of(op).toarray(),
}


_PLACED = names("entries") & names("linear") & frozenset(_DENSE)


def placed(op: Any) -> Any:
    """The dense form of a leaf kind whose numbers are its entries; None: it is none."""
    name = type(op).__name__
    return np.asarray(_DENSE[name](op)) if name in _PLACED else None


def dense(op: Any) -> Any:
    """The dense form of a leaf kind with foreign arrays."""
    for cls in type(op).__mro__:
        if cls.__name__ in _DENSE:
            return _DENSE[cls.__name__](op)
    raise NotImplementedError(
        f"{type(op).__name__} has no form for dtypes outside float32/64, complex64/128, integers"
    )
