"""Assembles a sparse expression, as the core writes it down, into one scipy.sparse matrix.

The core's sparse_solver.h defines the form: terms in post-order, eleven integers each, on the
arrays that come with them. Everything is computed in float64 or complex128."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.type_variables import Registered

_WORDS = 11
_ROWS: dict[str, Any] = {}
_HEADS: list[str] = []  # of the kinds, looked up once


def _row(*heads: str) -> Callable[[Registered], Registered]:
    def add(run: Registered) -> Registered:
        _ROWS.update(dict.fromkeys(heads, run))
        return run

    return add


def _sp() -> Any:
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse


class _Term:
    """One operator of a program: its integers, and its scalar where it has one."""

    def __init__(self, words: Any) -> None:
        self.attr = [int(v) for v in words[2:6]]
        re, im = np.ascontiguousarray(words[6:8]).view(np.float64)
        self.number = complex(re, im) if im else float(re)
        self.shape = int(words[8]), int(words[9])


def form_of(program: Any, arrays: Any) -> Any:
    """The matrix as CSR or CSC of float64 or complex128, its indices checked."""
    return _as_form(_replayed(program, arrays, _assembled))


def has_thin_product(program: Any) -> bool:
    """May there be a product in a sum with fewer columns within than rows? Told by the program."""
    words = _words(program)
    operators = words[words[:, 0] >= 0]
    heads = {_HEADS[i] for i in operators[:, 0].tolist()}
    return {"sum", "prod"} <= heads and bool(operators[:, 9].min() < operators[-1, 8])


def blocks_of(program: Any) -> int:
    """How many a side of [B X; 0 C] of halves and [A X 0; 0 A Y; 0 0 A], as they are written; 1 of
    others."""
    words = _words(program)
    top = words[-1]
    b = int(top[2])
    if top[0] < 0 or _HEADS[top[0]] != "block" or top[3] != b or b not in (2, 3):
        return 1
    starts: list[int] = []  # of what is on the stack
    for k, w in enumerate(words[:-1]):
        n = int(w[1]) if w[0] >= 0 else 0
        below = starts[len(starts) - n :]
        starts[len(starts) - n :] = [below[0] if n else k]
    ends = [*starts[1:], len(words) - 1]
    one = [words[i:j] for i, j in zip(starts, ends, strict=True)]
    zeros = [i * b + j for i in range(b) for j in range(b) if j < i or j > i + 1]
    square = all(w[-1, 8] == w[-1, 9] and b * w[-1, 8] == top[8] for w in one)
    empty = all(one[k][-1, 0] >= 0 and _HEADS[one[k][-1, 0]] == "zeros" for k in zeros)
    alike = b == 2 or all(np.array_equal(one[0], one[k]) for k in (4, 8))
    return b if square and empty and alike else 1


def terms_of(program: Any, arrays: Any) -> list[tuple[complex | float, list[Any]]]:
    """The sum as it is written: of each term its number and the matrices of its product, left to
    right, assembled. One term of one matrix where it is no sum of products."""
    return [
        (c, [_as_form(f) for f in factors]) for c, factors in _replayed(program, arrays, _apart)
    ]


def _words(program: Any) -> Any:
    if not _HEADS:
        _HEADS.extend(_core._heads())
    return np.frombuffer(program, dtype=np.int64).reshape(-1, _WORDS)


def _replayed(program: Any, arrays: Any, run: Callable[[str, _Term, Any], Any]) -> Any:
    """What ``run`` makes of the last operator, given its head, its numbers and what is below it."""
    stack: list[Any] = []
    for w in _words(program):
        if w[0] < 0:
            stack.append(arrays[w[1]] if w[0] == -1 else tuple(int(n) for n in w[2 : 2 + w[1]]))
            continue
        n = int(w[1])
        below, stack = stack[len(stack) - n :], stack[: len(stack) - n]
        stack.append(run(_HEADS[w[0]], _Term(w), below))
    return stack[0]


def _assembled(head: str, t: _Term, below: Any) -> Any:
    return _ROWS[head](t, *below)


def _apart(head: str, t: _Term, below: Any) -> Any:
    """As `terms_of` says; what is neither sum, product nor a multiple or view of one is whole."""
    if head == "sum":
        below[0].extend(below[1])  # of no other: a long chain is linear
        return below[0]
    if head == "scaled":
        return [(t.number * c, factors) for c, factors in below[0]]
    if head == "view":
        return [_seen(t, c, factors) for c, factors in below[0]]
    if head == "prod" and len(below[0]) == len(below[1]) == 1:
        (c, left), (d, right) = below[0][0], below[1][0]
        return [(c * d, left + right)]
    return [(1.0, [_ROWS[head](t, *(_whole(b) if isinstance(b, list) else b for b in below))])]


def _seen(t: _Term, c: complex | float, factors: list[Any]) -> Any:
    order = factors[::-1] if t.attr[0] & 1 else factors
    number = c.conjugate() if t.attr[0] & 2 else c
    return number, [_ROWS["view"](t, f) for f in order]


def _whole(terms: Any) -> Any:
    """The matrix that the terms are."""
    total: Any = None
    for c, factors in terms:
        one = factors[0]
        for f in factors[1:]:
            one = _sp().csr_array(one) @ _sp().csr_array(f)
        one = one if c == 1 else one * c
        total = one if total is None else total + one
    return total


def _as_form(a: Any) -> Any:
    a = a if a.format in ("csr", "csc") else _sp().csr_array(a)
    return a.astype(np.result_type(a.dtype, np.float64), copy=False)


# -- composites ------------------------------------------------------------------------------------


@_row("sum")
def _(t: Any, a: Any, b: Any) -> Any:
    return a + b


@_row("prod")
def _(t: Any, a: Any, b: Any) -> Any:
    return _sp().csr_array(a) @ _sp().csr_array(b)


@_row("scaled")
def _(t: Any, a: Any) -> Any:
    return a * t.number


@_row("view")
def _(t: Any, a: Any) -> Any:
    a = a.T if t.attr[0] & 1 else a
    return a.conj() if t.attr[0] & 2 else a


@_row("part")
def _(t: Any, a: Any) -> Any:
    return a.imag if t.attr[0] else a.real


@_row("power")
def _(t: Any, a: Any) -> Any:
    a, b, p = _sp().csr_array(a), _eye(t.shape[0]), t.attr[0]
    while p:
        b = a @ b if p & 1 else b
        p >>= 1
        a = a @ a if p else a
    return b


@_row("sliced")
def _(t: Any, a: Any, index: Any = None) -> Any:
    axis, start, step, count = t.attr
    index = start + step * np.arange(count) if index is None else index
    index = _wrapped(index, a.shape[axis], a.shape)
    return _sp().csr_array(a)[index] if axis == 0 else _sp().csc_array(a)[:, index]


@_row("sparsetriangular")
def _(t: Any, a: Any) -> Any:
    lower, unit = t.attr[:2]
    a = _sp().csr_array(a)
    a.sum_duplicates()
    a = (_sp().tril if lower else _sp().triu)(a, (-1 if lower else 1) if unit else 0, format="csr")
    return a + _eye(t.shape[0]) if unit else a


@_row("kron")
def _(t: Any, *factors: Any) -> Any:
    a = factors[0]
    for b in factors[1:]:
        a = _sp().kron(a, b, format="csr")
    return a


@_row("kronsum")
def _(t: Any, *parts: Any) -> Any:
    total = parts[0]
    for b in parts[1:]:
        left, right = _eye(total.shape[0]), _eye(b.shape[0])
        total = _sp().kron(total, right, format="csr") + _sp().kron(left, b, format="csr")
    return total


@_row("blockdiag")
def _(t: Any, *blocks: Any) -> Any:
    return _sp().block_diag([_sp().coo_array(b) for b in blocks], format="csr")


@_row("block")
def _(t: Any, *blocks: Any) -> Any:
    c = t.attr[1]
    rows = [[_sp().coo_array(b) for b in blocks[i : i + c]] for i in range(0, len(blocks), c)]
    return _sp().block_array(rows, format="csr")


# -- kinds -----------------------------------------------------------------------------------------


def _eye(n: int) -> Any:
    return _sp().eye_array(n, format="csr")


def _checked(index: Any, size: int, shape: tuple[int, ...]) -> Any:
    index = index.ravel().astype(np.int64, copy=False)
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError(f"a sparse index is out of bounds for the {shape[0]} x {shape[1]} matrix")
    return index


@_row("sparse")
def _(t: Any, data: Any, first: Any, second: Any) -> Any:
    layout, m, n = t.attr[:3]
    data = data.ravel()
    if data.dtype.kind not in "fc":
        data = data.astype(np.float64)
    if layout == 2:
        at = _checked(first, m, (m, n)), _checked(second, n, (m, n))
        return _sp().coo_array((data, at), shape=(m, n))
    major, minor = (m, n) if layout == 0 else (n, m)
    pointers = second.ravel().astype(np.int64, copy=False)
    index = _checked(first, minor, (m, n))
    if pointers[0] < 0 or pointers[-1] > len(data) or (np.diff(pointers) < 0).any():
        raise IndexError(f"indptr is not ascending within the {len(data)} elements of the matrix")
    begin, end = int(pointers[0]), int(pointers[-1])
    ix = np.int32 if max(m, n, end) < 2**31 else np.int64
    form = _sp().csr_array if layout == 0 else _sp().csc_array
    parts = data[begin:end], index[begin:end].astype(ix), (pointers - begin).astype(ix)
    return form(parts, shape=(m, n))


@_row("diag")
def _(t: Any, d: Any) -> Any:
    return _diagonals(t.shape, [d.ravel()], [0])


@_row("offdiag")
def _(t: Any, d: Any) -> Any:
    return _diagonals(t.shape, [d.ravel()], [t.attr[0]])


def _diagonals(shape: tuple[int, ...], values: Any, offsets: Any) -> Any:
    """scipy.sparse.diags_array, for any sizes."""
    row, col = [], []
    for v, k in zip(values, offsets):
        at = np.arange(len(v))
        row.append(at + max(-k, 0))
        col.append(at + max(k, 0))
    places = np.concatenate(row), np.concatenate(col)
    return _sp().coo_array((np.concatenate(values), places), shape=shape)


@_row("dense")
def _(t: Any, a: Any) -> Any:
    return _sp().coo_array(a)


@_row("identity")
def _(t: Any) -> Any:
    return _eye(t.shape[0])


@_row("zeros")
def _(t: Any) -> Any:
    return _sp().coo_array(t.shape)


@_row("tridiagonal")
def _(t: Any, low: Any, middle: Any, up: Any) -> Any:
    return _diagonals(t.shape, [low.ravel(), middle.ravel(), up.ravel()], [-1, 0, 1])


@_row("banded")
def _(t: Any, ab: Any) -> Any:
    up, n = t.attr[1], t.shape[0]
    offsets = [k for k in range(-t.attr[0], up + 1) if abs(k) < n]
    lines = [ab[up - k, max(k, 0) : n + min(k, 0)] for k in offsets]
    return _diagonals(t.shape, lines, offsets)


@_row("blocktridiagonal")
def _(t: Any, low: Any, diag: Any, up: Any = None) -> Any:
    b = t.attr[0]
    low, diag = low.reshape(-1, b, b), diag.reshape(-1, b, b)
    up = low.conj().swapaxes(-1, -2) if up is None else up.reshape(-1, b, b)
    parts = []
    for k, blocks in ((-1, low), (0, diag), (1, up)):
        at = np.arange(len(blocks))[:, None, None] * b
        row, col = at + max(-k, 0) * b + np.arange(b)[:, None], at + max(k, 0) * b + np.arange(b)
        row, col = np.broadcast_arrays(row, col)
        parts.append((blocks.ravel(), row.ravel(), col.ravel()))
    data, row, col = (np.concatenate(one) for one in zip(*parts, strict=True))
    return _sp().coo_array((data, (row, col)), shape=t.shape)


def _wrapped(index: Any, size: int, shape: tuple[int, ...]) -> Any:
    """Indices as NumPy reads them: negative ones count from the end."""
    index = index.ravel().astype(np.int64)
    return _checked(np.where(index < 0, index + size, index), size, shape)


@_row("permutation", "selection")
def _(t: Any, index: Any) -> Any:
    m, n = t.shape
    index = _wrapped(index, n, t.shape)
    return _sp().coo_array((np.ones(m), (np.arange(m), index)), shape=t.shape)


@_row("difference")
def _(t: Any) -> Any:
    """Row i has its weights from column i + `first` on."""
    n, order, kind, boundary = t.attr
    weights = np.array([(-1.0) ** (order - j) * math.comb(order, j) for j in range(order + 1)])
    first = (0, -order, -(order // 2))[kind]
    if kind == 2 and order % 2:  # central: the mean of the two half a step aside
        weights = 0.5 * (np.append(weights, 0) + np.insert(weights, 0, 0))
        first = -((order + 1) // 2)
    row = np.arange(t.shape[0])[:, None]
    col = row + (0 if boundary == 0 else first) + np.arange(len(weights))
    row, weights = np.broadcast_arrays(row, col)[0], np.broadcast_to(weights, col.shape)
    col = col % n if boundary == 2 and n else col
    there = (col >= 0) & (col < n)
    return _sp().coo_array((weights[there], (row[there], col[there])), shape=t.shape)


@_row("convolution")
def _(t: Any, taps: Any, sizes: tuple[int, ...], into: tuple[int, ...]) -> Any:
    """Tap k of row i meets column i + shift - k, on each axis; SciPy's modes."""
    row, col = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64)
    there = np.ones((1, 1), bool)
    for k, n in zip(sizes, into, strict=True):
        full, same, valid = n + k - 1, (k - 1) // 2, min(k, n) - 1
        out, shift = ((full, 0), (n, same), (abs(n - k) + 1, valid), (n, 0))[t.attr[0]]
        out = out if n else 0
        i = np.arange(out)
        j = i + shift - np.arange(k)[:, None]
        j = j % n if t.attr[0] == 3 and n else j
        within = (j >= 0) & (j < n)
        row = _outer(row * out, np.broadcast_to(i, j.shape), np.add)
        col = _outer(col * n, j, np.add)
        there = _outer(there, within, np.logical_and)
    data = np.broadcast_to(taps.reshape(-1, 1), row.shape)
    return _sp().coo_array((data[there], (row[there], col[there])), shape=t.shape)


def _outer(a: Any, b: Any, join: Any) -> Any:
    """All pairs, along both axes: those of `a` are the slower ones."""
    both = join(a[:, None, :, None], b[None, :, None, :])
    return both.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])


@_row("laplacian")
def _(t: Any, *axes: Any) -> Any:
    sizes = [a.shape[0] for a in axes]
    total = _sp().csr_array(t.shape)
    for i, n in enumerate(sizes):
        line = _second_difference(n, t.attr[0])
        left = _eye(int(np.prod(sizes[:i], dtype=np.int64)))
        right = _eye(int(np.prod(sizes[i + 1 :], dtype=np.int64)))
        total = total + _sp().kron(_sp().kron(left, line), right, format="csr")
    return total


def _second_difference(n: int, boundary: int) -> Any:
    """A second difference with zeros beyond the ends (0), no flux (1), or a ring (2)."""
    ones = np.ones(max(n - 1, 0))
    line = _diagonals((n, n), [ones, np.full(n, -2.0), ones], [-1, 0, 1]).tolil()
    if boundary == 1 and n:
        line[0, 0] += 1
        line[n - 1, n - 1] += 1
    if boundary == 2 and n:
        line[0, n - 1] += 1
        line[n - 1, 0] += 1
    return _sp().csr_array(line)
