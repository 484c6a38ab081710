"""Shifts, thin updates and powers: which are Hermitian, and their eigenvalues and singular values.

A + c I has the eigenvectors of A, and c I + U C U^H those of the thin part: the helpers here find
them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .._base.multiples import product
from .._operators.convert import as_operator
from .._operators.parameters import written
from . import banded_svd
from .centrohermitian import is_centrohermitian, values
from .dispatch import GUARDS, OPERAND, Guard, _as_precise, dense, diagonal_of
from .questions import eigvalsh, hermitian, svdvals
from .singular_values import bands_of, descending, determinant, undoes_transform

# -- Hermitian because of its parts --
from .unitary import is_unitary


@hermitian.row("lowrank")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    u, v, c = op._given("U", "V", "C")
    if v is not None and v is not u and not np.array_equal(dense(u), dense(v)):
        return False  # not by its factors
    return c is None or hermitian(as_operator(c)) or NotImplemented


@hermitian.row("lowrankupdate")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = update_parts(op)
    if parts is None:
        return NotImplemented
    for part in parts:
        if not (yield (part,)):
            return NotImplemented
    return True


@hermitian.row("full")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return complex(op._given("c")).imag == 0 and op.shape[-1] == op.shape[-2]


@hermitian.row("congruence")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    return (yield (as_operator(op._given("B")),)) or NotImplemented


@hermitian.row("inverse", "power")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._operands[0].shape[-1] != op._operands[0].shape[-2]:
        return NotImplemented
    return (yield (op._operands[0],)) or NotImplemented


@hermitian.row("sum")
def _(op: Any) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None or complex(found[1]).imag:
        return NotImplemented
    return (yield (found[0],))


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


def shifted_thin(op: Any) -> tuple[Any, Any] | None:
    """(U C U^H, c) of a Hermitian matrix c I + U C U^H, else None."""
    parts = update_parts(op)
    if parts is None or parts[0].shape[-1] != parts[0].shape[-2]:
        return None
    c = constant_of(parts[0])
    return None if c is None or complex(c).imag or not hermitian(parts[1]) else (parts[1], c)


# -- values alone, for heads that eigvalsh and svdvals do not have yet --


@eigvalsh.row("sum", how="of A + c I: those of A, + c", cost="those of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None or complex(found[1]).imag:
        return NotImplemented
    return (yield found[0], uplo) + complex(found[1]).real


@eigvalsh.row(
    "banded",
    "blocktridiagonal",
    called="bands",
    how="SciPy's eigvals_banded",
    cost="6 n^2 w",
    by="band",
)
def _(op: Any, uplo: str) -> Any:
    """The eigenvalues by LAPACK's sbevd within the band, where SciPy is installed."""
    bands = bands_of(op)
    if bands is None or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    try:
        from scipy.linalg import eigvals_banded  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return NotImplemented
    batch, n = op.shape[:-2], op.shape[-1]
    side = {-k if uplo == "L" else k: d for k, d in bands}
    below = np.zeros((*batch, max(side) + 1, n), inexact(op.dtype))
    for k in range(max(side) + 1):
        below[..., k, : n - k] = side[k] if uplo == "L" else side[k].conj()
    w = np.empty((*batch, n), real_of(op.dtype))
    for i in np.ndindex(*batch):
        w[i] = eigvals_banded(below[i], lower=True)
    return w


def halves(op: Any, question: Any, found: Any, uplo: str) -> Any:
    """The answer of ``found`` for a Hermitian Toeplitz matrix, else the question's dense answer."""
    if op.shape[-1] < 2 or (op._head == "toeplitz" and not hermitian(op)):
        return NotImplemented
    a = dense(op)
    good = np.isfinite(a).all() and is_centrohermitian(a)
    return found(a) if good else question.dense(a, uplo)


@eigvalsh.row(
    "toeplitz",
    "multitoeplitz",
    by="dense",
    how="Hermitian: two real problems of half the size, or one where complex",
    cost="n^3 / 3",
    kept=True,
)
def _(op: Any, uplo: str) -> Any:
    return halves(op, eigvalsh, values, uplo)


@svdvals.row(
    "toeplitz",
    "hankel",
    how="real square ones: moduli of the eigenvalues of a symmetric Hankel matrix, as of Hermitian",
    cost="4 n^3 / 3; n^3 / 3 Hermitian",
    kept=True,
)
def _(op: Any) -> Any:
    if op.shape[-1] != op.shape[-2]:
        return NotImplemented
    if op._head == "toeplitz" and hermitian(op):
        return descending(np.abs(eigvalsh(op, "L")))
    if op.dtype.kind == "c":
        return NotImplemented
    a = dense(op)
    if not np.isfinite(a).all():
        return NotImplemented
    return descending(np.abs(np.linalg.eigvalsh(a if op._head == "hankel" else a[..., ::-1, :])))


@eigvalsh.row(
    "lowrankupdate", how="of c I + U U^H: QR of U, + c", cost="O(n k^2)", guard="thin_shift"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shifted_thin(op)
    if found is None:
        return NotImplemented
    return (yield found[0], uplo) + complex(found[1]).real


@eigvalsh.row(
    *("inverse", "power", "congruence"),
    called="composites",
    how="of a Hermitian A: 1 / w, w^p; of Q A Q^H, Q unitary: those of A",
    cost="those of A",
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


@svdvals.row(
    "banded",
    "tridiagonal",
    "blocktridiagonal",
    called="bands",
    how="LAPACK's gbbrd, bdsqr; of a Hermitian A moduli of `eigvalsh`",
    cost="12 n^2 w",
    kept=True,
)
def _(op: Any) -> Any:
    if hermitian(op):
        return descending(np.abs(eigvalsh(op, "L")))
    bands = bands_of(op)
    if not bands or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    return banded_svd.values(op, bands)


@svdvals.row(
    *("sum", "congruence", "inverse", "power"),
    called="hermitian",
    how="of a Hermitian A where `eigvalsh` knows it: moduli of those",
    cost="that of `eigvalsh`",
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
