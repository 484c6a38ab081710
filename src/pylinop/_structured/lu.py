"""LU and LDL factors: by LAPACK on the dense form, and what the rows in `kinds` share.

The answers of LU are triples (P, L, U) with A = P L U, those of LDL are (L, D, perm) with A = L D
L^H (or L^T), as in SciPy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .cholesky import real_diagonal
from .dispatch import Question
from .qr import identity_of, upper

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
    dtype = inexact(a.dtype).newbyteorder("=")
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


def _itself(op: Any) -> tuple[Any, Any, Any]:
    one = identity_of(op, op.shape[-1], op.shape[-1])
    return one, one, op


def _joined(join: Callable[..., Any], factors: Any) -> Generator[Any, Any, Any]:
    found = []
    for f in factors:
        found.append((yield (f,)))
    return tuple(join(*one) for one in zip(*found, strict=True))


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
    arrays=5.3,
)
