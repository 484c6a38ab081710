"""Norms and condition numbers of the kinds.

Two more questions serve them: the sums of moduli along rows or columns, and the Frobenius norm."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from .._base import memory, scipy_bridge, sparse_arrays
from .._base.dtypes import TRANSPOSED, real_of
from .._operators.convert import inverse
from .dispatch import Question, blocks_of, diagonal_of, factors_of, modulus, within
from .questions import cond, norm, norm_of_values, outer, svdvals
from .singular_values import (
    TRANSFORMS,
    axes_of,
    bands_of,
    check_permutation,
    circulant_of,
    core_of,
    eigenvalues_of,
    floats,
    joined,
    spectrum_of,
    toeplitz_of,
    undoes_transform,
    vector_room,
)

# -- sums of moduli: axis -2 of columns, -1 of rows --

sums = Question(lambda a, axis: np.abs(a).sum(axis=axis))


@sums.row("diag", "identity")
def _(op: Any, axis: int) -> Any:
    return np.abs(diagonal_of(op))


@sums.row("zeros")
def _(op: Any, axis: int) -> Any:
    return np.zeros((*op.shape[:-2], op.shape[-1 if axis == -2 else -2]))


@sums.row("scaled")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield within(op), axis)


@sums.row("view")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], -3 - axis if op._mode & TRANSPOSED else axis)


@sums.row("kron")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    memory.materialising(op, max(op.shape[-2:]) * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in factors_of(op):
        s = outer(s, (yield f, axis))
    return s


@sums.row("blockdiag")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        parts.append((yield block, axis))
    return joined(op, parts)


@sums.row("block")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    rows: Any = blocks_of(op)
    rows = rows if axis == -1 else list(zip(*rows, strict=True))
    parts = []
    for line in rows:
        total = 0.0
        for block in line:
            total = total + (yield block, axis)
        parts.append(total)
    return joined(op, parts)


@sums.row("permutation")
def _(op: Any, axis: int) -> Any:
    check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


@sums.row("full")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    other, own = (-2, -1) if axis == -2 else (-1, -2)
    return np.full((*op.shape[:-2], op.shape[own]), modulus(op._given("c")) * op.shape[other])


@sums.row("inverse", "dft", "hadamard")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    if op._init is None:
        if op._by != "inverse" or op._operands[0]._head not in ("dft", "hadamard"):
            return NotImplemented
        return op.shape[-1] / (yield op._operands[0], axis)  # moduli are all the same
    n = op.shape[-1]
    norm: Any = op._given("norm") if op._head == "dft" else None
    return np.full(n, {"ortho": math.sqrt(n), "forward": 1.0}.get(norm, float(n)))


@sums.row("circulant")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    s = (
        np.abs(floats(op._given("c")))
        .reshape(*op.shape[:-2], op.shape[-1])
        .sum(axis=-1, keepdims=True)
    )
    return np.broadcast_to(s, (*op.shape[:-2], op.shape[-1]))


@sums.row("householder")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    v, tau = op._given("v", "tau")
    v = floats(v)
    if tau is None:
        top = np.abs(v).max(axis=-1, keepdims=True)
        if not (np.isfinite(top) & (top > 0)).all():
            return NotImplemented
        v = v / top
        tau = 2 / (np.abs(v) ** 2).sum(axis=-1)
    tau = floats(tau)[..., None]
    size = np.abs(v)
    rest = size.sum(axis=-1, keepdims=True) - size
    return np.abs(1 - tau * size**2) + np.abs(tau) * size * rest


@sums.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any, axis: int) -> Any:
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for k, d in bands:
        at = max(k, 0) if axis == -2 else max(-k, 0)
        total[..., at : at + d.shape[-1]] += np.abs(d)
    return total


def _row_blocks(op: Any) -> Iterator[Any]:
    """Yields the triangle some rows at a time, as (first row, rows)."""
    a, lower, unit = op._given("a", "lower", "unit_diagonal")
    n = a.shape[-1]
    for at in range(0, n, 256):
        end = min(at + 256, n)
        rows, keep = floats(a[..., at:end, :]), np.arange(at, end)[:, None] - np.arange(n)
        inside = keep >= (1 if unit else 0) if lower else keep <= (-1 if unit else 0)
        rows = np.where(inside, rows, 0)
        if unit:
            rows[..., np.arange(end - at), np.arange(at, end)] = 1
        yield at, rows


@sums.row("triangular")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for at, rows in _row_blocks(op):
        if axis == -2:
            total += np.abs(rows).sum(axis=-2)
        else:
            total[..., at : at + rows.shape[-2]] = np.abs(rows).sum(axis=-1)
    return total


def _entries(op: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of a Sparse, without duplicates."""
    a = sparse_arrays.matrix_of(op)
    parts = a.tocsr(copy=True) if a.format != "csr" else a.copy()
    parts.sum_duplicates()
    parts = parts.tocoo()
    return parts.row, parts.col, floats(parts.data)


@sums.row("sparse")
def _(op: Any, axis: int) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    i, j, v = _entries(op)
    own = -1 if axis == -2 else -2
    return np.bincount(j if axis == -2 else i, weights=np.abs(v), minlength=op.shape[own])


def _windows(line: Any, width: Any, count: int) -> Any:
    """Sums of ``width`` neighbours, ``count`` of them, by sums from both sides of each multiple of
    the width: nothing is subtracted."""
    blocks = -(-(count + width - 1) // width)
    padded = np.zeros((*line.shape[:-1], blocks * width), line.dtype)
    padded[..., : line.shape[-1]] = line
    cells = padded.reshape(*line.shape[:-1], blocks, width)
    before = np.cumsum(cells, axis=-1).reshape(padded.shape)
    after = np.cumsum(cells[..., ::-1], axis=-1)[..., ::-1].reshape(padded.shape)
    start = np.arange(count)
    return after[..., start] + np.where(start % width, before[..., start + width - 1], 0)


@sums.row("toeplitz")
def _(op: Any, axis: int) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    c, r = np.abs(found[0]), np.abs(found[1])
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = np.broadcast_to(c, (*batch, c.shape[-1])), np.broadcast_to(r, (*batch, r.shape[-1]))
    line = np.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)  # a column moves along it
    if axis == -2:
        return _windows(line, c.shape[-1], r.shape[-1])
    return _windows(line, r.shape[-1], c.shape[-1])[..., ::-1]


@sums.row("laplacian")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    vector_room(op)
    s = np.zeros(1)
    for n, bc in axes_of(op):
        one = np.full(n, 4.0 if n > 1 or bc == "dirichlet" else 0.0)
        less = {"dirichlet": 1.0, "neumann": 2.0 if n > 1 else 0.0, "periodic": 0.0}[bc]
        one[:1] -= less
        one[-1:] -= less
        s = np.add.outer(s, one).ravel()
    return s


# -- Frobenius norms --

frobenius = Question(lambda a: norm.dense(a, "fro"))


def _root_of_squares(parts: Any) -> Any:
    """sqrt of a sum of squares that neither over- nor underflows."""
    return functools.reduce(np.hypot, parts, np.zeros(()))


def _length(v: Any) -> Any:
    """The 2-norm along the last axis, which neither over- nor underflows."""
    top = np.abs(v).max(axis=-1, keepdims=True, initial=0)
    scale = np.where((top > 0) & np.isfinite(top), top, 1)
    return scale[..., 0] * np.linalg.norm(v / scale, axis=-1)


@frobenius.row("diag", "identity")
def _(op: Any) -> Any:
    return _length(diagonal_of(op))


@frobenius.row("zeros")
def _(op: Any) -> Any:
    return np.zeros(op.shape[:-2])


@frobenius.row("scaled")
def _(op: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield (within(op),))


@frobenius.row("view")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@frobenius.row("kron")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for f in factors_of(op):
        parts.append((yield (f,)))
    return functools.reduce(operator.mul, parts)


@frobenius.row("blockdiag")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


@frobenius.row("block")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    parts = []
    for line in blocks_of(op):
        for block in line:
            parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


@frobenius.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any) -> Any:
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    return _root_of_squares([_length(d) for _, d in bands]) + np.zeros(op.shape[:-2])


@frobenius.row("triangular")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return _root_of_squares([_length(_length(rows)) for _, rows in _row_blocks(op)])


@frobenius.row("sparse")
def _(op: Any) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    return _length(_entries(op)[2])


@frobenius.row("toeplitz")
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    (c, r), (m, n) = found, op.shape[-2:]
    down = np.minimum(m - np.arange(m), n)  # how often each occurs
    across = np.minimum(n - np.arange(1, n), m)
    return np.hypot(_length(c * np.sqrt(down)), _length(r[..., 1:] * np.sqrt(across)))


@frobenius.row("circulant")
def _(op: Any) -> Any:
    if op._init is None:
        return _length(eigenvalues_of(op))  # it is normal
    c = floats(op._given("c")).reshape(*op.shape[:-2], op.shape[-1])
    return math.sqrt(op.shape[-1]) * _length(c)


@frobenius.row("full")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    size = modulus(op._given("c")) * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2])
    return np.full(op.shape[:-2], size)


@frobenius.row("lowrank")
def _(op: Any) -> Any:
    found = core_of(op)
    return NotImplemented if found is None else np.linalg.norm(found[1], axis=(-2, -1))


@frobenius.row("permutation", "householder", "inverse", "offdiag", "eigen", "root", *TRANSFORMS)
@frobenius.row("kronsum", "laplacian", "reflections")
def _(op: Any) -> Any:
    known = op._head in ("permutation", "householder", "reflections") or undoes_transform(op)
    if op._init is None and not known:
        return NotImplemented
    try:
        return _length(svdvals(op))
    except np.linalg.LinAlgError:  # of entries that are not finite: so is their norm
        return NotImplemented


# -- norms and condition --

VALUED: tuple[str, ...]
VALUED = ("permutation", "householder", "dft", "dct", "hadamard", "circulant", "blockdiag", "full")
VALUED += ("inverse", "offdiag", "eigen", "root", "kronsum", "laplacian", "lowrank", "tridiagonal")
VALUED += ("banded", "blocktridiagonal", "reflections")
SUMMED = ("block", "triangular", "sparse", "toeplitz")


def _norm_asks(op: Any, ord: Any) -> Any:
    if ord in (2, -2, "nuc"):
        return [("svdvals", op)] if _by_svdvals(op) else None
    return []


def _by_svdvals(op: Any) -> bool:
    """Has the kind singular values that are cheaper than those of the dense form?"""
    return op._head not in SUMMED or op._head in svdvals.rows


def _cond_asks(op: Any, p: Any) -> Any:
    if p in (2, -2):
        return [("svdvals", op)]
    known = op._head in ("permutation", "circulant", "blockdiag", "householder", *TRANSFORMS)
    return [("matrix_norm", op, p)] if known else None


@norm.row(
    *VALUED,
    *SUMMED,
    called="values",
    how="from `svdvals` or by the parameters ([which](linalg.md))",
    cost="O(n); `svdvals` where these are needed",
    asks=_norm_asks,
)
def _(op: Any, ord: Any) -> Any:
    if ord == "fro":
        return frobenius(op)
    if ord in (1, -1, np.inf, -np.inf):
        s = sums(op, -2 if abs(ord) == 1 else -1)
        return s.max(axis=-1) if ord > 0 else s.min(axis=-1)
    return norm_of_values(svdvals(op), ord) if _by_svdvals(op) else NotImplemented


def _of_inverse(op: Any, p: Any) -> Any:
    """The norm of a structured inverse; None where there is none, inf where op is singular."""
    if op._head == "circulant":
        w = spectrum_of(op)
        if (w == 0).any():
            return None if op.shape[:-2] else np.inf
        return norm(circulant_of(1 / w, op), p)
    if op._head == "blockdiag" and any(f.shape[-1] != f.shape[-2] for f in factors_of(op)):
        return None
    try:
        return norm(inverse(op), p)
    except np.linalg.LinAlgError:
        return None if op.shape[:-2] else np.inf


def cond_of_values(s: Any, p: Any) -> Any:
    """The condition number (2 or -2) by singular values in descending order."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        c = s[..., 0] / s[..., -1] if p == 2 else s[..., -1] / s[..., 0]
    return np.where(np.isnan(c) & ~np.isnan(s).any(axis=-1), np.inf, c)  # 0/0: singular


@cond.row(
    *VALUED,
    called="values",
    how="from `svdvals` (2, -2), or by norms of it and of its inverse ([which](linalg.md))",
    cost="`svdvals`",
    asks=_cond_asks,
)
def _(op: Any, p: Any) -> Any:
    if p in (2, -2):
        return cond_of_values(svdvals(op), p)
    if op._head == "householder" and op._init is not None and op._given("tau") is None:
        return norm(op, p) ** 2
    if op._head not in ("permutation", "circulant", "blockdiag", *TRANSFORMS):
        return NotImplemented
    other = _of_inverse(op, p)
    return NotImplemented if other is None else norm(op, p) * other
