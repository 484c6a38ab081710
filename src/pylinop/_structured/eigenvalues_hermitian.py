"""Shifts, thin updates and powers, and their eigenvalues and singular values.

A + c I has the eigenvectors of A, and c I + U C U^H those of the thin part: the helpers here find
them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.multiples import product
from .._operators.convert import as_operator
from .._operators.parameters import written
from .operands import _as_precise, diagonal_of
from .questions import eigvalsh, hermitian, read_hermitian, svdvals
from .rows import GUARDS, OPERAND, Guard, guard_of
from .singular_values import descending, determinant, undoes_transform
from .unitary import is_unitary

# -- shifts --


def multiple_of_identity(op: Any) -> Any:
    """c if op is written as c I, else None."""
    c = 1
    while written(op, "scaled"):
        c, op = product(c, op._operands[1]), op._operands[0]
    return c if op._head == "identity" and not op._operands else None


def shift_of(op: Any) -> tuple[Any, Any] | None:
    """(A, c) of a sum A + c I, else None."""
    if not written(op, "sum"):
        return None
    for one, other in (op._operands, op._operands[::-1]):
        c = multiple_of_identity(other)
        if c is not None and other.ndim == 2:
            return _as_precise(one, op), c
    return None


def _shifted(op: Any) -> Any:
    found = shift_of(op)
    return None if found is None else found[0]


OPERAND["sum"] = _shifted


def _is_real_shift(op: Any) -> bool:
    found = shift_of(op)
    return found is not None and not complex(found[1]).imag


GUARDS["real_shift"] = guard_of("A + c I with a real c", _is_real_shift)


def _of_operand(ask: Any) -> Any:
    """Is it an inverse or power, as it is written, of a Hermitian matrix?"""

    def holds(op: Any) -> Any:
        written = op._init is None and op._by in ("inverse", "power")
        return ask(op._operands[0]) if written and op.dtype.kind not in "biu" else False

    return holds


GUARDS["hermitian_operand"] = Guard(
    "an inverse or power of a Hermitian matrix", _of_operand(hermitian), _of_operand(read_hermitian)
)


def update_parts(op: Any) -> tuple[Any, Any] | None:
    """(base, U C V^H) of a LowRankUpdate, in the precision of the whole; None where they are not
    available."""
    if op._init is not None:
        base, *given = op._given("base", "U", "V", "C")
        thin = _core.LowRank(*given)
    elif op._by == "sum" and {p._head for p in op._operands} == {"diag", "lowrank"}:
        base, thin = sorted(op._operands, key=lambda p: p._head)
    else:
        return None
    return _as_precise(as_operator(base), op), _as_precise(as_operator(thin), op)


def constant_of(op: Any) -> Any:
    """c if op is c I, as written or by its values, else None."""
    c = multiple_of_identity(op)
    if c is not None:
        return c
    if op._head != "diag" or op.ndim != 2:
        return None
    d = diagonal_of(op)
    return d[0] if d.size and (d == d[0]).all() else None


def _is_thin_shift(op: Any) -> bool:
    parts = update_parts(op)
    return parts is not None and constant_of(parts[0]) is not None


GUARDS["thin_shift"] = Guard(
    "c I and a thin part, not another base", _is_thin_shift, _is_thin_shift
)


# -- values alone, for heads that eigvalsh and svdvals do not have yet --


def _inner_asks(op: Any, uplo: str) -> Any:
    """The eigenvalues of what stands within."""
    if op._head == "congruence":
        known = op._init is not None and is_unitary(op._given("A"))
        return [("eigvalsh", as_operator(op._given("B")), uplo)] if known else None
    known = op._init is None and op._by in ("inverse", "power") and op.dtype.kind not in "biu"
    return [("eigvalsh", op._operands[0], uplo)] if known else None


@eigvalsh.row(
    *("inverse", "power", "congruence"),
    called="composites",
    how="of a Hermitian A: 1 / w, w^p; of Q A Q^H, Q unitary: those of A",
    cost="those of A",
    guard="hermitian",
    asks=_inner_asks,
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    """The values as `eigh` finds them, without the vectors."""
    if op._head == "congruence":
        if op._init is None or not is_unitary(op._given("A")) or not hermitian(op):
            return NotImplemented
        return (yield as_operator(op._given("B")), uplo)
    if op._init is not None or op._by not in ("inverse", "power") or op.dtype.kind in "biu":
        return NotImplemented
    if not hermitian(op._operands[0]):
        return NotImplemented
    w = yield op._operands[0], uplo
    if op._by == "power":
        return np.sort(w ** op._operands[1], axis=-1)
    return np.sort(reciprocal(w, op._operands[0]), axis=-1)


def _moduli_asks(op: Any) -> Any:
    if op._by == "inverse" and undoes_transform(op):
        return [("svdvals", op._operands[0])]
    known = op._head != "sum" or shift_of(op) is not None
    return [("eigvalsh", op, "L")] if known and read_hermitian(op) is not False else None


def _moduli_doubt(op: Any) -> Any:
    sure = undoes_transform(op) or read_hermitian(op) is not None
    return None if sure else ("where it is not Hermitian", None)


@svdvals.row(
    *("sum", "congruence", "inverse", "power"),
    called="hermitian",
    how="of a Hermitian A where `eigvalsh` knows it: moduli of those",
    cost="that of `eigvalsh`",
    asks=_moduli_asks,
    doubt=_moduli_doubt,
)
def _(op: Any) -> Any:
    if op._by == "inverse" and undoes_transform(op):
        return 1 / svdvals(op._operands[0])[..., ::-1]
    known = op._head != "sum" or shift_of(op) is not None
    return descending(np.abs(eigvalsh(op, "L"))) if known and hermitian(op) else NotImplemented


def reciprocal(w: Any, op: Any) -> Any:
    """1 / w for the eigenvalues of op. A value that is zero to working precision may be so by
    rounding: the determinant says whether it is exactly zero, as for `inv`."""
    size = np.abs(w)
    cut = w.shape[-1] * np.finfo(w.dtype).eps * size.max(axis=-1, keepdims=True, initial=0)
    if (w == 0).any() or ((size <= cut).any() and (determinant(op) == 0).any()):
        raise np.linalg.LinAlgError("Singular matrix")
    return 1 / w
