"""The kinds on arrays of a namespace: their dense forms. A kind is a node of a walk; where nothing
of the user's is in it (transforms, stencils) its dense form is a constant."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import memory
from .._base.kind_flags import heads
from . import kernels

__all__ = [
    "DENSE",
    "block_diagonals",
    "dense",
    "diagonal",
    "diagonals",
    "flipped",
    "form",
    "is_operator",
    "levels",
    "numbers_at",
    "padded",
    "places",
    "through_views",
]

_T, _C = 1, 2


def seen(ns: Any, a: Any, mode: int) -> Any:
    """A matrix through a mode: transposed, conjugated."""
    a = ns.mT(a) if mode & _T else a
    return ns.conj(a) if mode & _C else a


# -- dense forms: (walk, node) -> matrix --


def _array(w: Any, row: Any) -> Any:
    return w.child(row, 0)


def _identity(w: Any, row: Any) -> Any:
    return w.ns.eye(*row.shape[-2:], 0, row.dtype)


def _zeros(w: Any, row: Any) -> Any:
    return w.ns.zeros(row.shape, row.dtype)


def _of_diagonals(w: Any, row: Any, diagonals: Any) -> Any:
    """Of (offset, numbers): each is put beside the rows, and the diagonal picked by ones."""
    m, n = row.shape[-2:]
    total = w.ns.zeros(row.shape, row.dtype)
    for k, d in diagonals:
        if not d.shape[-1]:  # it lies beside the matrix
            continue
        by_rows = padded(w.ns, w.ns.cast(d, row.dtype), d.ndim - 1, max(-k, 0), m)
        total = total + by_rows[..., None] * w.ns.eye(m, n, k, row.dtype)
    return total


def padded(ns: Any, x: Any, axis: int, front: int, length: int) -> Any:
    """Zeros in front of an array and behind, along an axis, up to a length."""
    back = length - front - x.shape[axis]
    rest = [(*x.shape[:axis], k, *x.shape[axis + 1 :]) for k in (front, back)]
    zeros = [ns.zeros(shape, ns.name_of(x)) if shape[axis] else None for shape in rest]
    return ns.concat([a for a in (zeros[0], x, zeros[1]) if a is not None], axis)


def diagonals(w: Any, row: Any) -> list[tuple[int, Any]]:
    """(offset, numbers) of the diagonals of a kind that is stored by these."""
    n = row.shape[-1]
    if row.head == "tridiagonal":
        parts = [(k - 1, w.child(row, k)) for k in range(3)]
        return parts if n > 1 else parts[1:2]
    if row.head == "banded":
        (low, up), ab = row.i[:2], w.child(row, 0)
        ks = range(-min(low, n - 1), min(up, n - 1) + 1)
        return [(k, ab[..., up - k, max(k, 0) : n + min(k, 0)]) for k in ks]
    return [(row.i[0] if row.head == "offdiag" else 0, w.child(row, 0))]


def _by_diagonals(w: Any, row: Any) -> Any:
    return _of_diagonals(w, row, diagonals(w, row))


def _triangular(w: Any, row: Any) -> Any:
    a = w.child(row, 0)
    lower, unit = row.i[:2]
    cut = w.ns.tril if lower else w.ns.triu
    if not unit:
        return cut(a)
    return cut(a, -1 if lower else 1) + w.ns.eye(row.shape[-1], row.shape[-1], 0, row.dtype)


def _index_matrix(w: Any, at: Any, of: Any) -> Any:
    """Entries are those of a vector, by number."""
    flat = w.ns.take(of, w.ns.reshape(at, (-1,)), of.ndim - 1)
    return w.ns.reshape(flat, (*of.shape[:-1], *at.shape))


def _toeplitz(w: Any, row: Any) -> Any:
    m, n = row.shape[-2:]
    at = w.ns.arange(m)[:, None] - w.ns.arange(n) + (n - 1)
    return _index_matrix(w, at, toeplitz_numbers(w, row))


def toeplitz_numbers(w: Any, row: Any) -> Any:
    """t with T[i, j] = t[i - j + n - 1]."""
    c, r = w.whole(row, 0), w.whole(row, 1)
    batch = tuple(row.shape[:-2])
    c, r = (w.ns.expand(x, (*batch, x.shape[-1])) for x in (c, r))
    return w.ns.concat([w.ns.flip(r[..., min(1, r.shape[-1]) :], (-1,)), c], -1)


def hankel_numbers(w: Any, row: Any) -> Any:
    m, n = row.shape[-2:]
    h, due = w.child(row, 0), max(m + n - 1, 0)
    if h.shape[-1] >= due:
        return h[..., :due]
    pad = w.ns.zeros((*h.shape[:-1], due - h.shape[-1]), w.ns.name_of(h))
    return w.ns.concat([h, pad], -1)


def _hankel(w: Any, row: Any) -> Any:
    m, n = row.shape[-2:]
    at = w.ns.arange(m)[:, None] + w.ns.arange(n)
    return _index_matrix(w, at, hankel_numbers(w, row))


def _level_by_level(ns: Any, levels: Any) -> Any:
    """The numbers of a box, of those on each of its levels and how many there are."""
    at = ns.zeros((1, 1), "int64")
    for one, count in levels:
        shape = (at.shape[0] * one.shape[0], at.shape[1] * one.shape[1])
        at = ns.reshape(at[:, None, :, None] * count + one[None, :, None, :], shape)
    return at


def _box_at(ns: Any, out: Any, into: Any) -> Any:
    """The numbers of a box of sizes out + into - 1 at i - j + into - 1."""
    sizes = zip(out, into, strict=True)
    levels = [(ns.arange(m)[:, None] - ns.arange(n) + (n - 1), m + n - 1) for m, n in sizes]
    return _level_by_level(ns, levels)


def flipped(sizes: Any) -> Any:
    """Where c[-k mod n] is, on every level."""
    at = np.zeros(1, int)
    for n in sizes:
        at = (at[:, None] * n + (-np.arange(n)) % max(n, 1)).reshape(-1)
    return at


def _circulant(w: Any, row: Any) -> Any:
    ns, sizes = w.ns, levels(w, row, 1)
    steps = [((ns.arange(n)[:, None] - ns.arange(n)) % max(n, 1), n) for n in sizes]
    return _index_matrix(w, _level_by_level(ns, steps), w.child(row, 0))


def levels(w: Any, row: Any, k: int) -> Any:
    return w.rows[row.children[k]].shape


def _multitoeplitz(w: Any, row: Any) -> Any:
    total, into = levels(w, row, 1), levels(w, row, 2)
    out = [g - n + 1 for g, n in zip(total, into, strict=True)]
    return _index_matrix(w, _box_at(w.ns, out, into), w.child(row, 0))


def _convolution(w: Any, row: Any) -> Any:
    g, into = levels(w, row, 1), levels(w, row, 2)
    kernel, total = w.child(row, 0), w.ns.zeros(row.shape, row.dtype)
    for at, inside in places(row.i[0], g, into):
        values = _index_matrix(w, w.ns.constant(np.where(inside, at, 0), "int64"), kernel)
        total = total + values * w.ns.constant(inside, row.dtype)
    return total


def places(how: int, g: Any, into: Any) -> Any:
    """Which number of a box stands where, and whether one does: several where it is wrapped."""
    entries: Any = None
    for k, n in zip(g, into, strict=True):
        i, shift = _geometry(how, k, n)
        at = i[:, None] + shift - np.arange(n)[None]
        one = [at]
        if how == 3:
            one = [at % max(n, 1) + c * n for c in range(-(-k // max(n, 1)))]
        entries = _crossed(entries, one, k)
    return entries


def _geometry(how: int, k: int, n: int) -> Any:
    """Rows, and their shift: full, same, valid, circular, a Toeplitz matrix's diagonals."""
    if how == 0:
        return np.arange(n + k - 1 if n else 0), 0
    if how == 1:
        return np.arange(n), (k - 1) // 2
    if how == 2:
        return np.arange(abs(n - k) + 1), min(n, k) - 1
    if how == 4:
        return np.arange(k - n + 1), n - 1
    return np.arange(n), 0


def numbers_at(how: int, k: int, n: int) -> list[Any]:
    """Which number of a kernel stands on diagonal i - j, from -(n - 1) up: several where it is
    wrapped; outside of 0 ... k - 1 there is none."""
    i, shift = _geometry(how, k, n)
    at = np.arange(i.size + n - 1) - (n - 1) + shift
    return [at % n + c * n for c in range(-(-k // n))] if how == 3 else [at]


def _crossed(known: Any, parts: Any, k: int) -> Any:
    """Levels together: places in the raveled kernel, and where they are within it."""
    found = []
    for at, inside in known or [(np.zeros((1, 1), int), np.ones((1, 1), bool))]:
        for one in parts:
            fits = (one >= 0) & (one < k)
            a = at[:, None, :, None] * k + one[None, :, None, :]
            b = inside[:, None, :, None] & fits[None, :, None, :]
            shape = (at.shape[0] * one.shape[0], at.shape[1] * one.shape[1])
            found.append((a.reshape(shape), b.reshape(shape)))
    return found


_NORMS = ("backward", "ortho", "forward")


@functools.lru_cache(maxsize=64)
def _transform(head: str, sizes: Any, i: Any) -> Any:
    """The matrix of a kind without arrays, by pylinop itself: it holds nothing of the user's."""
    if head == "dft":
        return _core.DFT(sizes, _NORMS[i[0]]).toarray()
    if head == "dct":
        a = _core.DCT(sizes, i[0], _NORMS[i[3] % 3]).toarray()
        return a.T if i[3] >= 3 else a
    if head == "hadamard":
        return _core.Hadamard(sizes[0]).toarray()
    if head == "laplacian":
        words = ("dirichlet", "neumann", "periodic")
        return _core.Laplacian(sizes, boundary_conditions=words[i[0]]).toarray()
    kind, boundary = ("forward", "backward", "central"), ("valid", "zero", "periodic")
    return _core.FiniteDifference(i[0], i[1], kind=kind[i[2]], boundary=boundary[i[3]]).toarray()


def _constant(w: Any, row: Any) -> Any:
    if row.head == "laplacian":
        sizes = tuple(w.rows[k].shape[-1] for k in row.children)
    elif row.children:
        sizes = tuple(levels(w, row, 0))
    else:
        sizes = tuple(row.shape[-1:])
    return w.ns.constant(_transform(row.head, sizes, row.i), row.dtype)


def _full(w: Any, row: Any) -> Any:
    return w.ns.ones(row.shape, row.dtype) * w.coefficient(row)


def _householder(w: Any, row: Any) -> Any:
    return householder_apply(w, row, 0, _identity(w, row))


def householder_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    ns, v = w.ns, w.whole(row, 0)
    if len(row.children) > 1:
        tau = w.whole(row, 1)[..., None, None]
    else:
        square = ns.sum(ns.conj(v) * v, -1)[..., None, None]
        tau = 2 / ns.where(square != 0, square, ns.ones((), row.dtype))
    v = ns.conj(v) if mode in (_T, _C) else v
    tau = ns.conj(tau) if mode & _C else tau
    v = v[..., None]
    return x - ns.matmul(v, tau * ns.matmul(ns.conj(ns.mT(v)), x))


def _reflections(w: Any, row: Any) -> Any:
    return reflections_apply(w, row, 0, w.ns.expand(_identity(w, row), row.shape))


def reflections_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    """One after the other; each is Hermitian, so that transposes are in the other order."""
    ns, rows, n = w.ns, w.whole(row, 0), row.shape[-1]
    rows = ns.conj(rows) if mode in (_T, _C) else rows
    order = range(rows.shape[-2])
    for j in order if mode & _T else reversed(order):
        v = rows[..., j, : min(n - j, rows.shape[-1])]
        v = padded(ns, v, v.ndim - 1, j, n)[..., None]
        square = ns.sum(ns.conj(v) * v, -2, True)
        tau = 2 / ns.where(square != 0, square, ns.ones((), row.dtype))
        x = x - ns.matmul(v, tau * ns.matmul(ns.conj(ns.mT(v)), x))
    return x


def selection_index(w: Any, row: Any) -> Any:
    index = w.value(row.children[0])
    return w.ns.where(index < 0, index + row.shape[-1], index)


def _selection(w: Any, row: Any) -> Any:
    """Also of a batch of index vectors: where they are the number of the column."""
    index = selection_index(w, row)
    columns = w.ns.arange(row.shape[-1], w.ns.name_of(index))
    return w.ns.cast(index[..., None] == columns, row.dtype)


def _identity_of(w: Any, row: Any) -> Any:
    return w.ns.eye(row.shape[-1], row.shape[-1], 0, row.dtype)


def triplets(w: Any, row: Any) -> Any:
    """(rows, columns, numbers) of a Sparse; how many there are follows from the shapes alone."""
    data, i, j = (w.value(k) for k in row.children)
    if row.i[0] == 2:
        return i, j, data
    count = w.ns.arange(data.shape[-1], w.ns.name_of(j))
    major = w.ns.xp.searchsorted(j, count, side="right") - 1
    return (major, i, data) if row.i[0] == 0 else (i, major, data)


def _sparse(w: Any, row: Any) -> Any:
    return sparse_apply(w, row, 0, _identity_of(w, row))


def sparse_apply(w: Any, row: Any, mode: int, x: Any) -> Any:
    i, j, v = triplets(w, row)
    i, j = (j, i) if mode & _T else (i, j)
    v = w.ns.conj(v) if mode & _C else v
    rows = w.ns.take(x, j, x.ndim - 2)
    count = row.shape[-1 if mode & _T else -2]
    return w.ns.scatter(w.ns.cast(v, w.ns.name_of(x))[..., None] * rows, i, count)


def _sparse_triangle(w: Any, row: Any) -> Any:
    a = _sparse(w, w.rows[row.children[0]])
    lower, unit = row.i[:2]
    cut = w.ns.tril if lower else w.ns.triu
    if not unit:
        return cut(a)
    return cut(a, -1 if lower else 1) + _identity_of(w, row)


def block_diagonals(w: Any, row: Any) -> list[tuple[int, Any]]:
    """(offset, blocks) of a BlockTridiagonal."""
    b, ns = row.i[0], w.ns
    parts = [w.whole(row, k) for k in range(len(row.children))]
    found = [ns.reshape(x, (*x.shape[:-1], -1, b, b)) for x in parts]
    if len(found) == 2:
        found.append(ns.conj(ns.mT(found[0])))
    return list(zip((-1, 0, 1), found, strict=True))


def _block_tridiagonal(w: Any, row: Any) -> Any:
    b, ns = row.i[0], w.ns
    n = row.shape[-1] // b if b else 0
    zero = ns.zeros((*row.shape[:-2], b, b), row.dtype)
    lines = [[zero] * n for _ in range(n)]
    for k, blocks in block_diagonals(w, row) if n else ():
        for i in range(max(-k, 0), n - max(k, 0)):
            lines[i][i + k] = ns.expand(blocks[..., min(i, i + k), :, :], zero.shape)
    rows = [ns.concat(line, -1) for line in lines]
    return ns.concat(rows, -2) if rows else ns.zeros(row.shape, row.dtype)


def _quasiseparable(w: Any, row: Any) -> Any:
    """Row by row: what stands left of the diagonal is moved on by one transition each time."""
    ns, n, batch, dtype = w.ns, row.shape[-1], row.shape[:-2], row.dtype
    d, *generators = (w.whole(row, k) for k in range(4))
    p, q, a = (ns.expand(x, (*batch, *x.shape[-2:])) for x in generators)
    states = p.shape[-1]
    lines, state = [], ns.zeros((*batch, states, 0), dtype)
    for i in range(n):
        left = ns.sum(p[..., i, :, None] * state, -2)
        lines.append(ns.concat([left, ns.zeros((*batch, n - i), dtype)], -1))
        if a.shape[-1] == states:
            state = a[..., i, :, None] * state
        elif i:
            step = ns.reshape(a[..., i, :], (*batch, states, states))
            state = ns.matmul(step, state)
        state = ns.concat([state, q[..., i, :, None]], -1)
    if not n:
        return ns.zeros(row.shape, dtype)
    below = ns.stack(lines, -2)
    if row.i[0]:
        return _of_diagonals(w, row, [(0, d)]) + below
    on = _of_diagonals(w, row, [(0, ns.cast(ns.real(d), dtype))])
    return on + below + ns.conj(ns.mT(below))


def _kron(w: Any, row: Any) -> Any:
    out = None
    for k in row.children:
        a = w.ns.cast(_dense(w, k), row.dtype)
        if out is None:
            out = a
            continue
        both = out[..., :, None, :, None] * a[..., None, :, None, :]
        shape = (out.shape[-2] * a.shape[-2], out.shape[-1] * a.shape[-1])
        out = w.ns.reshape(both, (*both.shape[:-4], *shape))
    return out


def _kronsum(w: Any, row: Any) -> Any:
    """Each operand on its own axis, identities on the others."""
    ns, sizes = w.ns, [w.rows[k].shape[-1] for k in row.children]
    total, n = ns.zeros(row.shape, row.dtype), row.shape[-1]
    for level, k in enumerate(row.children):
        before, own, behind = math.prod(sizes[:level]), sizes[level], math.prod(sizes[level + 1 :])
        a = ns.cast(_dense(w, k), row.dtype)
        left, right = (ns.eye(size, size, 0, row.dtype) for size in (before, behind))
        part = left[:, None, None, :, None, None] * a[..., None, :, None, None, :, None]
        part = part * right[None, None, :, None, None, :]
        shape = (*a.shape[:-2], before * own * behind, n)
        total = total + ns.reshape(part, shape)
    return total


def _sum(w: Any, row: Any) -> Any:
    return _dense(w, row.children[0]) + _dense(w, row.children[1])


def _prod(w: Any, row: Any) -> Any:
    a, b = (_dense(w, k) for k in row.children)
    return w.ns.matmul(a, b)


def _scaled(w: Any, row: Any) -> Any:
    return _dense(w, row.children[0]) * w.coefficient(row)


DENSE: dict[str, Callable[..., Any]] = {
    "dense": _array,
    "identity": _identity,
    "zeros": _zeros,
    "diag": _by_diagonals,
    "offdiag": _by_diagonals,
    "tridiagonal": _by_diagonals,
    "banded": _by_diagonals,
    "triangular": _triangular,
    "toeplitz": _toeplitz,
    "hankel": _hankel,
    "circulant": _circulant,
    "multitoeplitz": _multitoeplitz,
    "convolution": _convolution,
    "dft": _constant,
    "dct": _constant,
    "hadamard": _constant,
    "laplacian": _constant,
    "difference": _constant,
    "full": _full,
    "householder": _householder,
    "reflections": _reflections,
    "selection": _selection,
    "permutation": _selection,
    "sparse": _sparse,
    "sparsetriangular": _sparse_triangle,
    "blocktridiagonal": _block_tridiagonal,
    "quasiseparable": _quasiseparable,
    "kernel": kernels.matrix,
    "kron": _kron,
    "kronsum": _kronsum,
    "sum": _sum,
    "prod": _prod,
    "scaled": _scaled,
}
_OTHERS = ("view", "opaque", "inverse", "power", "part")


def is_operator(head: str) -> bool:
    """Is it a node that stands for a matrix, and has no value of its own?"""
    return head in DENSE or head in _OTHERS


def through_views(w: Any, at: int, mode: int) -> Any:
    row = w.rows[at]
    while row.head == "view":
        mode ^= row.i[0]
        row = w.rows[row.children[0]]
    return row, mode


def no_form(row: Any) -> NotImplementedError:
    return NotImplementedError(
        f"{row.head!r} of shape {row.shape} has no form on the arrays of other libraries yet: "
        "compute it on the CPU"
    )


_NAMES = {name.lower(): name for name in dir(_core) if name[0].isupper()} | {
    "multitoeplitz": "MultilevelToeplitz",
    "difference": "FiniteDifference",
    "offdiag": "a diagonal",
    "sum": "a sum",
    "prod": "a product",
    "scaled": "a multiple",
}
_HELD, _BY_DIAGONALS = heads("held"), heads("diagonals")


def announced(w: Any, row: Any, dtype: str) -> None:
    """Says that a kind is made dense: a warning, or an error, as the sizes of pl.config have it."""
    if row.head not in _HELD:
        nbytes = math.prod(row.shape) * np.dtype(dtype).itemsize
        name = _NAMES.get(row.head, row.head)
        memory.materialising_elsewhere(name, row.shape, nbytes, w.ns.where_text(), w.asked)


def form(w: Any, row: Any, dtype: str | None = None) -> Any:
    """The dense form of a node, announced; it is then cast to the dtype."""
    announced(w, row, dtype or row.dtype)
    return DENSE[row.head](w, row)


def _dense(w: Any, at: int) -> Any:
    """Of a part of what is made dense, and announced."""
    row, mode = through_views(w, at, 0)
    if row.head not in DENSE:
        raise no_form(row)
    return seen(w.ns, w.ns.expand(DENSE[row.head](w, row), row.shape), mode)


def dense(w: Any, at: int) -> Any:
    """The dense form, announced."""
    row, _ = through_views(w, at, 0)
    announced(w, row, row.dtype)
    return _dense(w, at)


def diagonal(w: Any, at: int, k: int) -> Any:
    """A diagonal, of the dense form but where it is at hand."""
    row, mode = through_views(w, at, 0)
    if row.head in _BY_DIAGONALS:
        for offset, d in diagonals(w, row):
            if (-offset if mode & _T else offset) == k:
                return w.ns.conj(d) if mode & _C else d
        m, n = row.shape[-2:]
        return w.ns.zeros((*row.shape[:-2], max(min(m, n) - abs(k), 0)), row.dtype)
    return w.ns.diagonal(dense(w, at), k)
