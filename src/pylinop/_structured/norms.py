"""Norms and condition numbers: what kinds share.

Two more questions serve them: the sums of moduli along rows or columns, and the Frobenius norm."""

from __future__ import annotations

import functools
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .._base import config
from .._base.kind_flags import BAND, OF_PARTS, heads
from .._base.lengths import length
from .._operators.convert import inverse
from .dispatch import Question
from .operands import blocks_of, factors_of, within
from .questions import cond, norm, norm_of_values, svdvals
from .singular_values import (
    TRANSFORMS,
    circulant_of,
    spectrum_of,
    undoes_transform,
)

# -- sums of moduli: axis -2 of columns, -1 of rows --

sums = Question(lambda a, axis: np.abs(a).sum(axis=axis))


@sums.row("inverse", "dft", "hadamard")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    if op._init is None:
        of = op._operands[0] if op._by == "inverse" else None
        if of is None or of._init is None or sums.row_of(of) is not sums.rows["inverse"]:
            return NotImplemented  # of a transform alone
        return op.shape[-1] / (yield of, axis)  # moduli are all the same
    n = op.shape[-1]
    norm: Any = op._given("norm") if op._head == "dft" else None
    return np.full(n, {"ortho": math.sqrt(n), "forward": 1.0}.get(norm, float(n)))


# -- Frobenius norms --

frobenius = Question(lambda a: norm.dense(a, "fro"))


def _root_of_squares(parts: Any) -> Any:
    """sqrt of a sum of squares that neither over- nor underflows."""
    return functools.reduce(np.hypot, parts, np.zeros(()))


_BY_VALUES = frozenset(
    ["inverse", "offdiag", "eigen", "root", "laplacian", "permutation", "householder"]
    + ["reflections", *TRANSFORMS]
)


def _has_values(op: Any) -> bool:
    """Are its singular values known by structure, without an SVD?"""
    row = svdvals.row_of(op)
    given = op._init is not None or undoes_transform(op) or op._head not in TRANSFORMS
    return given and row is not None and svdvals.allows(row, op, None, False)


@frobenius.row(*sorted(_BY_VALUES))
def _length_of_values(op: Any) -> Any:
    if not _has_values(op):
        return NotImplemented
    try:
        return length(svdvals(op))
    except np.linalg.LinAlgError:  # of entries that are not finite: so is their norm
        return NotImplemented


# -- norms and condition --

_INVERTED = heads("own_inverse")


def _values_within(op: Any) -> list[Any]:
    """The singular values that its Frobenius norm takes: its own, or those of its parts."""
    found, stack = [], [op]
    while stack:
        one = stack.pop()
        row = frobenius.row_of(one)
        if row is None or 0 in one.shape:
            continue
        if row in (frobenius.rows["scaled"], frobenius.rows["view"]):
            stack.append(within(one))
        elif one._head in OF_PARTS:
            stack += factors_of(one)[::-1]
        elif one._head == "block" and one._init is not None:
            stack += [block for line in blocks_of(one) for block in line][::-1]
        elif row.answer is _length_of_values and _has_values(one):
            found.append(("svdvals", one))
    return found


def _norm_asks(op: Any, ord: Any) -> Any:
    if ord in (2, -2, "nuc"):
        return [("svdvals", op)] if _by_svdvals(op) else None
    by = frobenius if ord == "fro" else sums
    if by.row_of(op) is None:
        return None
    return _values_within(op) if by is frobenius else []


def _held(op: Any) -> str | None:
    """The entries that a norm reads, of kinds that hold many."""
    return "n w" if op._head in BAND or op._head == "blockdiag" else None


def _by_svdvals(op: Any) -> bool:
    """Has the kind singular values that are cheaper than those of the dense form?"""
    return op._head in svdvals.rows


def _cond_asks(op: Any, p: Any) -> Any:
    if p in (2, -2):
        return [("svdvals", op)]
    known = op._head == "householder" or op._head in _INVERTED
    return [("matrix_norm", op, p)] if known else None


@norm.row(
    "sparse",
    called="values",
    how="from `svdvals` or by the parameters ([which](linalg.md))",
    cost="O(n); `svdvals` where these are needed",
    asks=_norm_asks,
    instead=_held,
    calls=2,
)
@norm.row(
    "triangular",
    how="from `svdvals` or by the parameters ([which](linalg.md))",
    cost="O(m n)",
    asks=_norm_asks,
)
def _(op: Any, ord: Any) -> Any:
    if ord == "fro":
        return frobenius(op) if frobenius.row_of(op) is not None else NotImplemented
    if ord in (1, -1, np.inf, -np.inf):
        if sums.row_of(op) is None:
            return NotImplemented
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
    if op._head not in _INVERTED:
        return NotImplemented
    other = _of_inverse(op, p)
    if other is None:
        return NotImplemented
    own = norm(op, p)
    with np.errstate(invalid="ignore"):
        c = own * other
    return np.where(np.isnan(c) & ~np.isnan(own), np.inf, c)  # 0 * inf: singular


def complete() -> None:
    """Every kind with singular values of its own has norms and condition numbers by them, unless it
    has rows of its own for these."""
    for question in (norm, cond):
        row = config.structure_rules[f"{question.word}-values"]
        for head in svdvals.rows:
            question.rows.setdefault(head, row)
