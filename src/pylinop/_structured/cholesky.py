"""Cholesky factors, of the kinds by their structure, of all others by NumPy on the dense form; and
updates of a given factor.

As in NumPy, the factorisation trusts one triangle and does not read the other; answers are lower
factors, whichever triangle was read."""

from __future__ import annotations

import functools
import math
import numbers
import warnings
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact
from .._operators import quasiseparable
from .._operators.parameters import written
from . import qr
from .dispatch import Question, dense, diagonal_of, factors_of, within
from .questions import hermitian
from .singular_values import adjoint, bands_of


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


def rounding(op_or_array: Any) -> Any:
    """How far two elements that should be equal may differ, relative to the largest."""
    a = op_or_array
    return 16 * max(a.shape[-1], 1) * np.finfo(inexact(a.dtype)).eps


def _largest(a: Any) -> Any:
    return np.abs(a).max(axis=(-2, -1), initial=0)


def nearly(a: Any, hermitian: bool = True) -> bool:
    """Is the array its own adjoint, or its own transpose, up to rounding?"""
    other = adjoint(a) if hermitian else np.swapaxes(a, -1, -2)
    return bool((_largest(a - other) <= rounding(a) * _largest(a)).all())


def is_hermitian(f: Any) -> Any:
    """Is a factor its own adjoint, up to rounding?"""
    if f._head == "dense" and f._init is not None:
        a = dense(f)
        return np.array_equal(a, adjoint(a)) or nearly(a)
    if hermitian(f):
        return True
    return f.size <= 1 << 24 and nearly(dense(f))


def refuse_symmetric(a: Any) -> None:
    """Raises where a complex matrix is symmetric, not Hermitian: then neither triangle was
    meant."""
    if not np.iscomplexobj(a) or 0 in a.shape:
        return
    real_diagonal(np.diagonal(a, axis1=-2, axis2=-1))
    apart = _largest(a - np.swapaxes(a, -1, -2))
    refuse_where_symmetric(apart, _largest(a.imag), rounding(a) * _largest(a))


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
    found = op._factored(1)
    if found is NotImplemented:
        return found
    if op.dtype.kind == "c":
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


@cholesky.row("diag", how="square roots, a Diag", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    d = diagonal_of(op)
    w = real_diagonal(d)
    bad = ~(w > 0).all(axis=-1)
    if bad.any():
        raise not_definite(bad)
    return _core.Diag(np.sqrt(w).astype(d.dtype, copy=False))


@cholesky.row("identity", how="itself", cost="O(1)")
def _(op: Any, uplo: str) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


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


def multiple_of(op: Any) -> tuple[Any, Any]:
    """(c, A) for a multiple c A with a positive c; the sign of a negative c goes into the first
    factor of a Kron. None for anything else."""
    c, inner = complex(op._operands[1]), within(op)
    if c.imag or not 0 < abs(c.real) < math.inf or (c.real < 0 and inner._head != "kron"):
        return None, inner
    if c.real < 0:
        first, *rest = factors_of(inner)
        inner = _core.Kron(-first, *rest)
    return abs(c.real), inner


@cholesky.row("scaled", how="sqrt(c) times A's, for c > 0; of -c times a Kron too", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    if c is None:  # -c times a negative definite operator
        return cholesky._keep(op, (uplo,), lambda: cholesky.rows["sparse"](op, uplo), lambda: None)
    return times(math.sqrt(c), (yield inner, uplo))


@cholesky.row("view", how="A's, conjugated for `.T` and `.conj()`", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    other = {"L": "U", "U": "L"}[uplo] if op._mode & TRANSPOSED else uplo
    factor = yield op._operands[0], other
    return conjugate(factor) if op._mode in (TRANSPOSED, CONJUGATED) else factor


def conjugate(factor: Any) -> Any:
    """The conjugate of a factor; that of a Banded is a Banded."""
    if factor._head == "banded" and factor._init is not None:
        widths, ab = factor._given("l_and_u", "ab")
        return _core.Banded(widths, np.conj(ab))
    return factor.conj()


def _first(f: Any) -> Any:
    """The first element of each matrix of a batch, real."""
    held = f._head == "dense" and f._init is not None
    return np.real(dense(f)[..., 0, 0] if held else f.diagonal()[..., 0])


@cholesky.row(
    "kron",
    how="a Kron of the factors', of Hermitian factors, all definite, an even number negative",
    cost="sum of the factors'",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] or not is_hermitian(f) for f in factors):
        return NotImplemented  # (iA) (x) (-iB) may be definite
    negative = [_first(f) < 0 for f in factors]
    if any(s.ndim and s.any() != s.all() for s in negative):
        return NotImplemented
    turned = [bool(s.any()) for s in negative]
    if sum(turned) % 2:
        raise not_definite(np.ones(op.shape[:-2], bool))
    found = []
    for f, minus in zip(factors, turned, strict=True):
        found.append((yield -f if minus else f, uplo))
    return _core.Kron(*found)


@cholesky.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield f, uplo))
    return _core.BlockDiag(*found)


# -- bands --


def _lower_half(bands: Any, op: Any, uplo: str) -> Any:
    """The half that is read, as a lower one: element (j + t, j) at [..., j, t]."""
    n, sign = op.shape[-1], -1 if uplo == "L" else 1
    wanted = {sign * k: d for k, d in bands if sign * k >= 0}
    half = np.zeros((*op.shape[:-2], n, max(wanted, default=0) + 1), inexact(op.dtype))
    for t, d in wanted.items():
        half[..., : n - t, t] = np.conj(d) if uplo == "U" else d
    return half


def _adjoint(factor: Any) -> Any:
    """The adjoint of a Banded factor, as a Banded."""
    (low, up), ab = factor._given("l_and_u", "ab")
    n, other = ab.shape[-1], np.zeros_like(ab)
    for k in range(-min(low, n - 1), min(up, n - 1) + 1):
        other[..., low + k, max(-k, 0) : n - max(k, 0)] = ab[
            ..., up - k, max(k, 0) : n + min(k, 0)
        ].conj()
    return _core.Banded((up, low), other)


def _band_factor(half: Any) -> Any:
    """The Cholesky factor of bands, in place."""
    n, rows = half.shape[-2:]
    bad = np.zeros(half.shape[:-2], bool)
    for i in np.ndindex(*half.shape[:-2]):
        bad[i] = _core._band_cholesky(half.dtype.char, rows, n, half[i]) != 0
        if bad[i]:
            raise not_definite(bad)
    return half


@cholesky.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    called="bands",
    how="within the band (pbtrf), a Banded",
    cost="n w^2",
    kept=True,
)
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or op.shape[-1] != op.shape[-2]:
        return NotImplemented
    main = dict(bands).get(0)
    if main is None:
        raise not_definite(np.ones(op.shape[:-2], bool))
    real_diagonal(main)
    half = _band_factor(_lower_half(bands, op, uplo))
    return _core.Banded((half.shape[-1] - 1, 0), np.ascontiguousarray(np.swapaxes(half, -1, -2)))


@cholesky.row("quasiseparable", how="L D L^H in O(n), a QuasiSeparable", cost="O(n J^2)", kept=True)
def _(op: Any, uplo: str) -> Any:
    if quasiseparable.is_triangular(op):
        return NotImplemented
    factor, bad = quasiseparable.cholesky_of(op)
    if bad.any():
        raise not_definite(bad)
    return factor


def upper_of(factor: Any) -> Any:
    """The adjoint of a factor; that of a Banded is a Banded."""
    if factor._head == "banded" and factor._init is not None:
        return _adjoint(factor)
    if factor._head in ("kron", "blockdiag"):
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


def positive(factor: Any) -> Any:
    """A lower triangular operator with its columns scaled so that its diagonal is real and
    positive; None where its kind is not known to be triangular, or its diagonal has zeros."""
    if factor._head in ("kron", "blockdiag"):
        join = _core.Kron if factor._head == "kron" else _core.BlockDiag
        found = [positive(f) for f in factors_of(factor)]
        return None if any(f is None for f in found) else join(*found)
    banded = factor._head == "banded" and factor._init is not None
    banded = banded and factor._given("l_and_u")[1] == 0
    if not (banded or is_lower(factor) or factor._head in ("diag", "identity")):
        return None
    d = diagonal_of(factor) if factor._head in ("diag", "identity") else factor.diagonal()
    if not (np.abs(d) > 0).all():
        return None
    phase = np.conj(d / np.abs(d))
    if (phase == 1).all():
        return factor
    if factor._head == "triangular":
        return _core.Triangular(dense(factor) * phase[..., None, :])
    if banded:
        widths, ab = factor._given("l_and_u", "ab")
        return _core.Banded(widths, ab * phase[..., None, :])
    return _core.Diag(np.abs(d).astype(d.dtype, copy=False))


@cholesky.row(
    "root",
    how="L itself where it is lower triangular, else by QR of L^H, which nothing squares",
    cost="qr of L^H",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if op._init is None or op._given("L").shape[-1] < op.shape[-1]:
        return NotImplemented
    inner = op._given("L")
    found = positive(inner) if inner.shape[-1] == inner.shape[-2] else None
    if found is None:
        found = positive(upper_of(qr.qr(inner.H, "r")))
    return NotImplemented if found is None else found
    yield  # a row is a generator


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
    if jitter is not None and not real:
        raise TypeError(f"jitter must be a positive number or None, got {jitter!r}")
    if jitter is not None and not 0 < jitter < math.inf:
        raise ValueError(f"jitter must be a positive number or None, got {jitter!r}")
    try:
        return ask(op, side)
    except np.linalg.LinAlgError as error:
        first = str(error)
        mean = float(np.mean(np.abs(op.diagonal()))) if jitter is not None else 0.0
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
