"""Functions of a `Permutation`, by its cycles; of a `Selection`, by how often it selects each."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact, real_of
from ..eig import _pair, asks_eigh, by_eigh, doubt_eigh, eigvals, pairs_row
from ..eigh import eigenbasis
from ..lu import lu
from ..matrix_functions import functions_row, named
from ..norms import sums
from ..pinv import _relative
from ..qr import identity_of
from ..questions import eigvalsh, hermitian, pinv, svdvals
from ..singular_values import check_permutation, descending
from ..svd import _ones, singular
from ..unitary import complex_of, fourier, hartley

# -- singular values, norms, eigenvalues --


@svdvals.row("permutation", how="ones; its indices are read", cost="O(n)")
def _(op: Any) -> Any:
    check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


@hermitian.row("permutation")
def _(op: Any) -> bool:
    at = np.arange(op.shape[-1], dtype=float)[:, None]
    return bool((op @ (op @ at) == at).all())


@eigvalsh.row(
    "permutation", how="-1 and 1, where it is its own inverse", cost="O(n)", guard="hermitian"
)
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    minus = np.round((n - np.asarray(op.trace().real, float)) / 2)
    return np.where(np.arange(n) < minus[..., None], -1.0, 1.0)


# -- norms --


@sums.row("permutation")
def _(op: Any, axis: int) -> Any:
    check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


# -- pseudo-inverses --


@pinv.row("permutation", how="the transpose", cost="O(n); its indices are read")
def _(op: Any, how: Any) -> Any:
    check_permutation(op)
    return op.T


# -- eigh --


def cycles_of(op: Any) -> Any:
    """(order, lengths, counts) of a Permutation: its rows in that order fall into cycles,
    ``counts`` of them of each length; None for batches."""
    if op.ndim != 2:
        return None
    p = np.rint((op @ np.arange(op.shape[-1], dtype=np.float64)).real).astype(np.int64)
    seen = np.zeros(p.size, bool)
    cycles: dict[int, list[int]] = {}
    for start in range(p.size):
        cycle, at = [], start
        while not seen[at]:
            seen[at] = True
            cycle.append(at)
            at = p[at]
        if cycle:
            cycles.setdefault(len(cycle), []).extend(cycle)
    lengths = sorted(cycles)
    order = np.concatenate([np.array(cycles[k], np.int64) for k in lengths])
    return order, lengths, [len(cycles[k]) // k for k in lengths]


def by_cycles(op: Any, one: Any) -> Any:
    """S^T diag(I (x) one(length)) S, the cycles of each length together."""
    order, lengths, counts = cycles_of(op)
    blocks = [_core.Kron(_core.Identity(m), one(k)) for k, m in zip(lengths, counts, strict=True)]
    return _core.Congruence(_core.Permutation(order).T, _core.BlockDiag(*blocks))


def cycle_vectors(op: Any, one: Any) -> Any:
    """S^T diag(I (x) one(length)): vectors of the cycles."""
    order, lengths, counts = cycles_of(op)
    blocks = [_core.Kron(_core.Identity(m), one(k)) for k, m in zip(lengths, counts, strict=True)]
    return _core.Permutation(order).T @ _core.BlockDiag(*blocks)


def cycle_values(op: Any) -> Any:
    """The eigenvalues in the order of `cycle_vectors`: roots of unity."""
    _, lengths, counts = cycles_of(op)
    return np.concatenate(
        [np.tile(np.exp(2j * np.pi * np.arange(k) / k), m) for k, m in zip(lengths, counts)]
    )


@eigenbasis.row(
    "permutation", how="of exchanges: 2 x 2 blocks", cost="O(n)", guard="single hermitian"
)
def _(op: Any, uplo: str) -> Any:
    q = cycle_vectors(op, lambda k: hartley((k,), inexact(op.dtype)))
    return np.rint(cycle_values(op).real), q


# -- eig --


@pairs_row(
    "permutation", how="roots of unity, a DFT a cycle length", cost="O(n)", calls=10,
    guard="single", asks=asks_eigh, doubt=doubt_eigh,
)  # fmt: skip
def _(op: Any, vectors: bool) -> Any:
    check_permutation(op)
    if hermitian(op):
        return by_eigh(op, vectors)
    complex_ = np.result_type(inexact(op.dtype), np.complex64)
    basis = lambda: cycle_vectors(op, lambda k: fourier((k,), complex_))
    return _pair(cycle_values(op), basis, vectors)


# -- svd --


@singular.row("permutation", how="itself; ones", cost="O(n)")
def _(op: Any, full: bool) -> Any:
    check_permutation(op)
    return _ones(op, op.copy())


# -- lu, ldl --


@lu.row("permutation", how="P is itself", cost="O(n); its indices are read")
def _(op: Any) -> tuple[Any, Any, Any]:
    check_permutation(op)
    one = identity_of(op, op.shape[-1], op.shape[-1])
    return op, one, one


# -- exp, log, powers --


def _turn(k: int, op: Any) -> Any:
    """One cycle of k rows."""
    first = np.zeros(k, inexact(op.dtype))
    first[-1] = 1
    return _core.Circulant(first)


@functions_row(
    "permutation", how="a circulant a cycle length", cost="O(n log n)", guard="single", calls=15,
    asks=lambda op, f: [(named(f), _turn(k, op), f) for k in cycles_of(op)[1]],
)  # fmt: skip
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    op.diagonal()  # each index once
    found = {}
    for k in cycles_of(op)[1]:
        found[k] = yield _turn(k, op), f
    return by_cycles(op, lambda k: found[k])


# -- Selection --


def _counts(op: Any) -> Any:
    """How often each column is selected."""
    index, n = np.asarray(op._given("index")), op.shape[-1]
    at = index % n if n else index
    counts = np.zeros((*index.shape[:-1], n))
    for i in np.ndindex(*index.shape[:-1]):
        counts[i] = np.bincount(at[i], minlength=n)
    return counts


@svdvals.row(
    "selection", how="roots of how often it selects each column", cost="O(m + n log n)",
    guard="given",
)  # fmt: skip
def _(op: Any) -> Any:
    op.diagonal()  # each index once
    k = min(op.shape[-2:])
    return np.sqrt(descending(_counts(op))[..., :k])


@pinv.row("selection", how="means of what it copies", cost="O(m + n)", guard="given")
def _(op: Any, how: Any) -> Any:
    op.diagonal()
    counts = _counts(op)
    kept = np.sqrt(counts) > _relative(how, op) * np.sqrt(counts.max(axis=-1, keepdims=True))
    means = np.divide(1, counts, where=kept, out=np.zeros_like(counts))
    return _core.Diag(means.astype(real_of(op.dtype))) @ op.T


@eigvals.row(
    "selection", how="roots of one by its cycles, else zeros", cost="O(n log n)",
    guard="given single square", called="selection",
    asks=lambda op: [("eigvals", _within_cycles(op)[1])],
)  # fmt: skip
def _(op: Any) -> Any:
    op.diagonal()
    within, turn = _within_cycles(op)
    w = np.zeros(op.shape[-1], complex_of(op.dtype))
    if within.size:
        w[: within.size] = eigvals(turn)
    return w


def _within_cycles(op: Any) -> tuple[Any, Any]:
    """The indices of a square Selection that lead back to themselves, and what it does to these:
    a Permutation."""
    n = op.shape[-1]
    to = np.asarray(op._given("index")) % n
    far = to  # 2^k steps on, at last n or more: where those lead is in a cycle
    for _ in range(n.bit_length()):
        far = far[far]
    within = np.unique(far)
    place = np.zeros(n, np.int64)
    place[within] = np.arange(within.size)
    return within, _core.Permutation(place[to[within]])
