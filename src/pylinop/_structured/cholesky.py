"""Cholesky factors: of the dense form, what the rows in `kinds` share, and updates of a given
factor.

As in NumPy, the factorisation trusts one triangle and does not read the other; answers are lower
factors, whichever triangle was read."""

from __future__ import annotations

import functools
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import TRANSPOSED, inexact
from .._base.kind_flags import OF_PARTS
from .._operators.parameters import written
from .dispatch import Question, dense, shared_form
from .operands import factors_of, small_array
from .properties import ROUNDED, known, largest, measured, rounding
from .questions import hermitian
from .singular_values import adjoint


class NotDefinite(np.linalg.LinAlgError):
    """Raised where there is no Cholesky factor; the public function adds which operator it was."""


def element_text(bad: Any) -> str:
    """' (batch element 3)' for the first True of a batch, '' where there is none."""
    if np.ndim(bad) == 0:
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f" (batch element {at[0] if len(at) == 1 else at})"


def not_definite(bad: Any, why: str = "is not positive definite") -> Any:
    return NotDefinite(f"The matrix {why}{element_text(bad)}")


def is_hermitian(f: Any) -> Any:
    """Is a factor its own adjoint, up to rounding?"""
    held = f._head == "dense" and f._init is not None
    if not held and hermitian(f):
        return True
    a = small_array(f) if held else None
    return (held or f.size <= 1 << 24) and measured(f if a is None else a, "hermitian", ROUNDED)


def refuse_symmetric(a: Any) -> None:
    """Raises where a complex matrix is symmetric, not Hermitian: then neither triangle was
    meant."""
    if a.dtype.kind != "c" or 0 in a.shape:
        return
    real_diagonal(np.diagonal(a, axis1=-2, axis2=-1))
    apart = largest(a, np.swapaxes(a, -1, -2))
    refuse_where_symmetric(apart, largest(a.imag), rounding(a) * largest(a))


def refuse_where_symmetric(apart: Any, imaginary: Any, size: Any) -> None:
    """Likewise by the largest entries of A - A^T and A's imaginary part, and what is rounding."""
    bad = (apart <= size) & (imaginary > size)
    if bad.any():
        raise not_definite(bad, "is complex symmetric, not Hermitian")


def real_diagonal(d: Any) -> Any:
    """The real part of a Hermitian operator's diagonal."""
    if np.iscomplexobj(d):
        size = 16 * np.finfo(d.dtype).eps * np.abs(d).max(axis=-1, initial=0)
        bad = np.abs(d.imag).max(axis=-1, initial=0) > size
        if bad.any():
            raise not_definite(bad, "has a diagonal that is not real: it is not Hermitian")
    return d.real


def _lapack(a: Any, uplo: str = "L") -> Any:
    """The lower factor of an array, by LAPACK."""
    refuse_symmetric(a)
    try:
        factor = np.linalg.cholesky(a, upper=uplo == "U")
    except np.linalg.LinAlgError as error:
        if a.ndim == 2 or "square" in str(error):
            raise NotDefinite(str(error)) from None
        for i in np.ndindex(*a.shape[:-2]):
            try:
                np.linalg.cholesky(a[i], upper=uplo == "U")
            except np.linalg.LinAlgError:
                bad = np.zeros(a.shape[:-2], bool)
                bad[i] = True
                raise not_definite(bad) from None
        raise
    return adjoint(factor) if uplo == "U" else factor


def _of_plans(op: Any, uplo: str) -> Any:
    """The factor that solves keep, if they go by Cholesky: op is assumed or written to be its own
    adjoint, so that they choose the triangle (the upper one)."""
    if op.shape[-1] != op.shape[-2]:
        return NotImplemented
    shared = shared_form(op)
    if shared is None or not known(op, "hermitian as written"):
        found = op._factored(1)
    else:
        found = _core.Dense(shared, assume_a="pos")._factored(1)
    if found is NotImplemented:
        return found
    # Products of inverses that are Hermitian as written have no real diagonal to the last bits.
    if op.dtype.kind == "c" and not known(op, "hermitian as written"):
        real_diagonal(op.diagonal())
    if isinstance(found, tuple):
        flags, (triangle, _, _) = found
        bad = flags != 0
    else:
        triangle = found
        bad = np.isnan(found[..., 0, 0])
    if bad.any():
        raise not_definite(bad)
    return _core.Triangular(triangle)


cholesky = Question(
    lambda a, uplo: _core.Triangular(_lapack(a, uplo)),
    "cholesky",
    how="LAPACK's potrf, a Triangular",
    cost="n^3 / 3",
    kept="cholesky",
    plans=_of_plans,
    arrays=3,
    defaults=("L",),
)


def times(c: Any, factor: Any) -> Any:
    """c times a factor, within its kind where c is an array."""
    if factor._init is not None and factor._head == "triangular":
        a, lower, unit = factor._given("a", "lower", "unit_diagonal")
        if not unit:
            return _core.Triangular(c * a, lower)
    if factor._init is not None and factor._head == "banded":
        widths, ab = factor._given("l_and_u", "ab")
        return _core.Banded(widths, c * ab)
    if factor._head == "kron":
        first, *rest = factors_of(factor)
        return _core.Kron(times(c, first), *rest)
    return c * factor


# -- bands --


def _adjoint(factor: Any) -> Any:
    """The adjoint of a Banded factor, as a Banded."""
    (low, up), ab = factor._given("l_and_u", "ab")
    n, other = ab.shape[-1], np.zeros_like(ab)
    for k in range(-min(low, n - 1), min(up, n - 1) + 1):
        other[..., low + k, max(-k, 0) : n - max(k, 0)] = ab[
            ..., up - k, max(k, 0) : n + min(k, 0)
        ].conj()
    return _core.Banded((up, low), other)


def upper_of(factor: Any) -> Any:
    """The adjoint of a factor; that of a Banded is a Banded."""
    if factor._head == "banded" and factor._init is not None:
        return _adjoint(factor)
    if factor._head in OF_PARTS:
        join = _core.Kron if factor._head == "kron" else _core.BlockDiag
        return join(*map(upper_of, factors_of(factor)))
    if written(factor, "scaled"):  # by a real number
        return times(factor._operands[1], upper_of(factor._operands[0]))
    return factor.H


# -- L L^H --


def is_lower(op: Any) -> Any:
    """True for a lower Triangular."""
    if op._head != "triangular" or (op._init is None and op._by != "view"):
        return False
    lower = (op if op._init is not None else op._operands[0])._given("lower")
    return lower if op._init is not None or not op._mode & TRANSPOSED else not lower


# -- updates of a factor --


def lower_array(factor: Any) -> Any:
    """A factor as an array, whose lower triangle counts."""
    op = factor
    if op.shape[-1] != op.shape[-2]:
        raise ValueError(f"a Cholesky factor is square, got shape {op.shape}")
    if op._init is not None and is_lower(op) and not op._given("unit_diagonal"):
        return np.asarray(op._given("a"))
    a = dense(op)
    if op._init is not None and op._head == "dense":
        return a
    if np.triu(a, 1).any():
        raise ValueError("a lower factor is due: give L, or U.H of an upper one")
    return a


def updated(factor: Any, v: Any, down: bool) -> Any:
    """The factor of L L^H + V V^H, or with ``down`` of L L^H - V V^H, for V (..., n, k)."""
    a = lower_array(factor)
    dtype = inexact(np.result_type(a.dtype, v.dtype))
    batch = np.broadcast_shapes(a.shape[:-2], v.shape[:-2])
    n, k = v.shape[-2:]
    work = np.empty((*batch, n, n), dtype)
    work[...] = np.swapaxes(a, -1, -2)
    columns = np.empty((*batch, k, n), dtype)
    columns[...] = np.swapaxes(v, -1, -2)
    bad = np.zeros(batch, bool)
    for i in np.ndindex(*batch):
        for column in columns[i]:
            info = _core._cholup(dtype.char, n, work[i], column, down)
            if info:
                bad[i] = True
                where = f"row {info - 1}" if info > 0 else ""
                raise not_definite(
                    bad,
                    f"has a factor whose diagonal is not positive and finite in {where}"
                    if where
                    else "without the columns taken away is not positive definite",
                )
    return _core.Triangular(np.swapaxes(work, -1, -2))


def appended(factor: Any, b: Any, c: Any) -> Any:
    """The factor of [[L L^H, B], [B^H, C]]."""
    a = lower_array(factor)
    n, k = b.shape[-2:]
    dtype = inexact(functools.reduce(np.result_type, (a.dtype, b.dtype, c.dtype)))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    side = _core._build("solver", _core.Triangular(a.astype(dtype, copy=False))) @ b.astype(dtype)
    whole = np.zeros((*batch, n + k, n + k), dtype)
    whole[..., :n, :n] = a
    whole[..., n:, :n] = adjoint(side)
    whole[..., n:, n:] = _lapack(c - adjoint(side) @ side)
    return _core.Triangular(whole)


def jittered(ask: Callable[..., Any], op: Any, side: str, jitter: Any) -> Any:
    """The factor of op; or, with a warning, that of op plus a multiple of the identity."""
    __tracebackhide__ = True
    real = isinstance(jitter, numbers.Real) and not isinstance(jitter, bool)
    if not real:
        raise TypeError(f"jitter must be a positive number or None, got {jitter!r}")
    if not 0 < jitter < math.inf:
        raise ValueError(f"jitter must be a positive number or None, got {jitter!r}")
    try:
        return ask(op, side)
    except np.linalg.LinAlgError as error:
        first = str(error)
        mean = float(np.mean(np.abs(op.diagonal())))
        if not 0 < mean < math.inf:
            raise
    for share in (jitter, 10 * jitter, 100 * jitter):
        added = op.dtype.type(share * mean) if op.dtype.kind in "fc" else share * mean
        try:
            factor = ask(op + added * _core.Identity(op.shape[-1]), side)
        except np.linalg.LinAlgError:
            continue
        warnings.warn(
            f"not positive definite: {share * mean:.3g}, {share:g} of the mean of the diagonal, "
            "was added to the diagonal",
            errors.FallbackWarning,
            stacklevel=4,
        )
        return factor
    what, _, where = first.partition("\n")
    what = what.partition("; ")[0]  # without what else to do: jitter was given
    raise np.linalg.LinAlgError(
        f"{what}, nor with {share * mean:.3g}, {share:g} of the mean of its diagonal, added to the "
        f"diagonal\n{where}"
    )
