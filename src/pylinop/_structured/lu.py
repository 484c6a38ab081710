"""LU and LDL factors, of the kinds by their structure, of all others by LAPACK on the dense form.

The answers of LU are triples (P, L, U) with A = P L U, those of LDL are (L, D, perm) with A = L D
L^H (or L^T), as in SciPy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import TRANSPOSED, inexact
from .._operators import quasiseparable
from . import banded_lu, mixed_shapes
from .cholesky import NotDefinite, cholesky, is_hermitian, nearly, real_diagonal
from .dispatch import Question, dense, diagonal_of, factors_of, within
from .qr import eye, upper
from .singular_values import bands_of, check_permutation

# -- LU --


def _rows_of(pivots: Any, m: int) -> Any:
    """The order of the rows after LAPACK's exchanges (1-based), in a batch."""
    order = np.empty((*pivots.shape[:-1], m), np.intp)
    for i in np.ndindex(*pivots.shape[:-1]):
        rows = list(range(m))
        for j, other in enumerate(pivots[i].tolist()):
            rows[j], rows[other - 1] = rows[other - 1], rows[j]
        order[i] = rows
    return order


def inverse_order(order: Any) -> Any:
    return np.argsort(order, axis=-1)


def _of_plans(op: Any) -> Any:
    """The factors of square matrices that solves keep."""
    found = op._factored(0) if op.shape[-1] == op.shape[-2] else NotImplemented
    if found is NotImplemented:
        return found
    both, pivots, _ = found[1]
    p = _core.Permutation(inverse_order(_rows_of(pivots, op.shape[-1])), both.dtype)
    return p, _core.Triangular(both, True, True), _core.Triangular(both, False)


def _getrf(a: Any) -> Any:
    """The factors of an array by getrf, as operators."""
    a = np.asarray(a)
    dtype = inexact(a.dtype)
    if dtype.char not in "fdFD":
        raise TypeError(f"array type {a.dtype} is unsupported in linalg")
    (m, n), k = a.shape[-2:], min(a.shape[-2:])
    work = np.empty((*a.shape[:-2], n, m), dtype)
    work[...] = np.swapaxes(a, -1, -2)
    pivots = np.empty((*a.shape[:-2], k), np.int64)
    for i in np.ndindex(*a.shape[:-2]):
        _core._getrf(dtype.char, m, n, work[i], pivots[i])
    both = np.swapaxes(work, -1, -2)
    order = _rows_of(pivots, m)
    p = _core.Permutation(inverse_order(order), dtype)
    if m == n:
        return p, _core.Triangular(both, True, True), _core.Triangular(both, False)
    low = np.tril(both[..., :k], -1)
    low[..., np.arange(k), np.arange(k)] = 1
    lower = _core.Triangular(low, True, True) if m <= n else _core.Dense(low)
    return p, lower, upper(np.triu(both[..., :k, :]))


lu = Question(
    _getrf,
    "lu",
    how="LAPACK's getrf, a Permutation and two Triangulars",
    cost="2 m n min(m, n) / 3",
    kept="lu",
    plans=_of_plans,
    arrays=3,
)


@lu.row("diag", "identity", how="U is itself", cost="O(1)")
def _(op: Any) -> Any:
    one = eye(op, op.shape[-1], op.shape[-1])
    if op._head == "identity":
        return one, one, one
    return one, one, op if op.dtype.kind in "fc" else _core.Diag(diagonal_of(op))


@lu.row("zeros", how="Identities and Zeros", cost="O(1)")
def _(op: Any) -> Any:
    m, n = op.shape[-2:]
    k = min(m, n)
    shape = (*op.shape[:-2], k, n)
    return eye(op, m, m), eye(op, m, k), _core.Zeros(shape, inexact(op.dtype))


@lu.row("permutation", how="P is itself", cost="O(n); its indices are read")
def _(op: Any) -> tuple[Any, Any, Any]:
    check_permutation(op)
    one = eye(op, op.shape[-1], op.shape[-1])
    return op, one, one


@lu.row("triangular", how="an upper one itself: P and L are Identities", cost="O(1)", guard="upper")
def _(op: Any) -> Any:
    return _itself(op) if op.dtype.kind in "fc" else NotImplemented


def _itself(op: Any) -> tuple[Any, Any, Any]:
    one = eye(op, op.shape[-1], op.shape[-1])
    return one, one, op


@lu.row("scaled", how="A's, U times c", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    p, low, up = yield (within(op),)
    return p, low, op._operands[1] * up


@lu.row("view", how="of `.conj()` A's, conjugated; of a triangle turned upper, itself", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._mode & TRANSPOSED:
        below = op._operands[0]
        if op._head == "permutation":
            check_permutation(op)
            one = eye(op, op.shape[-1], op.shape[-1])
            return op, one, one
        if op._head != "triangular" or below._init is None or not below._given("lower"):
            return NotImplemented
        return _itself(op) if op.dtype.kind in "fc" else NotImplemented
    p, low, up = yield (op._operands[0],)
    return p, low.conj(), up.conj()


def _joined(join: Callable[..., Any], factors: Any) -> Generator[Any, Any, Any]:
    found = []
    for f in factors:
        found.append((yield (f,)))
    return tuple(join(*one) for one in zip(*found, strict=True))


@lu.row(
    "kron", how="Krons of the factors', rows exchanged of tall ones", cost="sum of the factors'"
)
def _(op: Any) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if not all(f.shape[-2] <= f.shape[-1] for f in factors):
        return (yield from mixed_shapes.lu(op, _core.Kron, factors))
    return (yield from _joined(_core.Kron, factors))


@lu.row(
    "blockdiag",
    how="BlockDiags of the blocks', rows exchanged of tall ones",
    cost="sum of the blocks'",
)
def _(op: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if not all(f.shape[-2] <= f.shape[-1] for f in blocks):
        return (yield from mixed_shapes.lu(op, _core.BlockDiag, blocks))
    return (yield from _joined(_core.BlockDiag, blocks))


BANDS = ("tridiagonal", "banded", "blocktridiagonal")


@lu.row(
    *BANDS,
    called="bands",
    how="gbtrf (SciPy); U a Banded, L one too or, where rows were exchanged, a SparseTriangular",
    cost="2 n l (l + u)",
)
def _(op: Any) -> Any:
    bands = bands_of(op)
    if bands is None or op.ndim != 2 or not bands:
        return NotImplemented
    found = banded_lu.lu(op, bands)
    if found is None:
        return NotImplemented
    order, low, up = found
    return _core.Permutation(inverse_order(order), inexact(op.dtype)), low, up


# -- L D L^H --


def _scipy_ldl(a: Any, lower: bool, hermitian: bool) -> Any:
    try:
        import scipy.linalg  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(
            "ldl of a dense form is SciPy's: pip install scipy (Diag and kin need none)"
        ) from None
    a = np.asarray(a)
    if hermitian and np.iscomplexobj(a):
        main, a = real_diagonal(np.diagonal(a, axis1=-2, axis2=-1)), a.copy()
        a[..., np.arange(a.shape[-1]), np.arange(a.shape[-1])] = main
    batch, n, dtype = a.shape[:-2], a.shape[-1], inexact(a.dtype)
    turned, middle = np.empty(a.shape, dtype), np.empty(a.shape, dtype)
    order = np.empty((*batch, n), np.intp)
    for i in np.ndindex(*batch):
        turned[i], middle[i], order[i] = scipy.linalg.ldl(a[i], lower=lower, hermitian=hermitian)
    return _permuted(turned, order, lower), middle_of(middle), order


def _permuted(turned: Any, order: Any, lower: bool) -> Any:
    """SciPy's outer factor: a unit triangle with its rows exchanged."""
    return _permuted_by(order, np.take_along_axis(turned, order[..., :, None], -2), lower)


def _permuted_by(order: Any, triangle: Any, lower: bool) -> Any:
    """The rows of a unit triangle in that order."""
    if (order == np.arange(order.shape[-1])).all():
        return _core.Triangular(triangle, lower, True)
    rows = _core.Permutation(inverse_order(order), triangle.dtype)
    return rows @ _core.Triangular(triangle, lower, True)


def middle_of(d: Any) -> Any:
    """The middle factor with blocks of 1 x 1 and 2 x 2: a Diag if none is 2 x 2."""
    low, main, up = (np.diagonal(d, k, axis1=-2, axis2=-1).copy() for k in (-1, 0, 1))
    if not low.any() and not up.any():
        return _core.Diag(main)
    return _core.Tridiagonal(low, main, up)


def _ldl_of_plans(op: Any, lower: bool, hermitian: bool) -> Any:
    """The factor that solves keep of a Dense assumed symmetric or Hermitian, from its upper
    triangle seen as the lower one."""
    found = op._factored(3 if hermitian else 2) if lower else NotImplemented
    if found is NotImplemented or found[0].any():  # a pivot is 0, or all are NaN
        return NotImplemented
    if hermitian and op.dtype.kind == "c":
        real_diagonal(op.diagonal())
    both, exchanges, beside = found[1]
    order = _rows_of(np.abs(exchanges), op.shape[-1])
    main, below = np.diagonal(both, axis1=-2, axis2=-1).copy(), beside[..., :-1].copy()
    middle: Any = _core.Diag(main)
    if below.any():
        middle = _core.Tridiagonal(below, main, below.conj() if hermitian else below)
    return _permuted_by(order, both, lower), middle, order


ldl = Question(
    _scipy_ldl,
    "ldl",
    how="LAPACK's sytrf, hetrf by SciPy; L a Triangular, its rows exchanged, D a Tridiagonal",
    cost="n^3 / 3",
    kept="ldl",
    plans=_ldl_of_plans,
    arrays=3.3,
)


@ldl.row(
    *BANDS,
    called="bands",
    how="of definite ones within the band, L a Banded, D a Diag",
    cost="n w^2",
)
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    if not lower or not (hermitian or op.dtype.kind != "c"):
        return NotImplemented
    try:
        factor = cholesky(op, "L")
    except NotDefinite:
        return NotImplemented
    if factor._head != "banded" or factor._init is None:
        return NotImplemented
    n = op.shape[-1]
    return *banded_lu.ldl(factor), np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()


@ldl.row(
    "quasiseparable", how="of definite ones in O(n), L a QuasiSeparable, D a Diag", cost="O(n J^2)"
)
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    if not lower or not (hermitian or op.dtype.kind != "c") or quasiseparable.is_triangular(op):
        return NotImplemented
    outer, d, bad = quasiseparable.ldl_of(op)
    if bad.any():
        return NotImplemented
    n = op.shape[-1]
    return outer, _core.Diag(d), np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()


@ldl.row("diag", "identity", how="D is itself", cost="O(1)")
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    n = op.shape[-1]
    d = diagonal_of(op)
    order = np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()
    d = real_diagonal(d).astype(d.dtype) if hermitian else d
    return eye(op, n, n), _core.Diag(d), order


@ldl.row("scaled", how="A's, D times c; c real", cost="A's")
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    if hermitian and c.imag:
        return NotImplemented
    outer, middle, order = yield within(op), lower, hermitian
    return outer, (c if c.imag else c.real) * middle, order


@ldl.row("view", how="of `.conj()` A's, conjugated", cost="A's")
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    if op._mode & TRANSPOSED:
        return NotImplemented
    outer, middle, order = yield op._operands[0], lower, hermitian
    return outer.conj(), middle.conj(), order


@ldl.row("blockdiag", how="BlockDiags of the blocks'", cost="sum of the blocks'")
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    outer, middle, orders, at = [], [], [], 0
    for f in blocks:
        one, d, order = yield f, lower, hermitian
        outer.append(one)
        middle.append(d)
        orders.append(np.broadcast_to(order, (*op.shape[:-2], f.shape[-1])) + at)
        at += f.shape[-1]
    return _core.BlockDiag(*outer), _core.BlockDiag(*middle), np.concatenate(orders, axis=-1)


@ldl.row(
    "kron", how="Krons of the factors', where each has a diagonal D", cost="sum of the factors'"
)
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] or not symmetric(f, hermitian) for f in factors):
        return NotImplemented
    outer, middle, order = [], [], np.zeros(1, np.intp)
    for f in factors:
        one, d, own = yield f, lower, hermitian
        if d._head not in ("diag", "identity"):
            return NotImplemented
        outer.append(one)
        middle.append(d)
        both = order[..., :, None] * f.shape[-1] + own[..., None, :]
        order = both.reshape(*both.shape[:-2], order.shape[-1] * f.shape[-1])
    order = np.broadcast_to(order, (*op.shape[:-2], op.shape[-1])).copy()
    return _core.Kron(*outer), _core.Kron(*middle), order


def symmetric(f: Any, hermitian: bool) -> Any:
    """Is a factor its own adjoint, or transpose, up to rounding?"""
    if hermitian or f.dtype.kind != "c":
        return is_hermitian(f)
    return f._head in ("diag", "identity") or (f.size <= 1 << 24 and nearly(dense(f), False))
