"""Decompositions, norms and functions of symbolic matrices. What has several results is one formula
of the whole, of which each result takes its own: it is computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import linalg
from .._api import covariance, determinants, factorizations, norms, spectra
from .._api import solve as solving
from .._base.dtypes import inexact, real_of
from .._lazy.decompositions import is_number
from .._structured.pinv import BOTH_TOLERANCES
from .elements import rule
from .expressions import least, product
from .linear import square
from .placeholder import RULES, Sides, formula, named, operand, shape_of, shown

_ONE = np.ones((1, 1))


@functools.cache
def _kept_type(f: Callable[..., Any]) -> Any:
    """The named tuple that a function gives, made of its parts."""
    kind = type(f(_ONE))
    return kind if hasattr(kind, "_fields") else lambda *parts: tuple(parts)


def taken(results: Any, k: int) -> Any:
    """One of a function's results."""
    return results[k]


def _several(
    f: Any, args: tuple[Any, ...], parts: Sequence[Any], sides: Sides, /, **kwargs: Any
) -> Any:
    """The results of a function, of these shapes and dtypes."""
    whole = formula(f, args, (), float, sides, **kwargs)
    return _kept_type(f)(*(formula(taken, (whole, k), *part) for k, part in enumerate(parts)))


def _matrix(a: Any, what: str) -> tuple[Any, Any, Any, Any, Sides]:
    """(matrix, its batch, rows, columns, equations)."""
    a = operand(a)
    shape = shape_of(a)
    if len(shape) < 2:
        raise ValueError(f"{what} takes a matrix, got shape {shown(shape)}")
    return a, shape[:-2], shape[-2], shape[-1], Sides(f"{what} of {named(a)}")


def each(*functions: Any) -> Callable[[Any], Any]:
    """A rule that is given which of these functions was called."""

    def register(run: Any) -> Any:
        for f in functions:
            RULES[f] = functools.partial(run, f)
        return run

    return register


# -- of square matrices ----------------------------------------------------------------------------


@each(np.linalg.slogdet, determinants.slogdet)
def _slogdet(f: Any, A: Any) -> Any:
    A, sides = square(A, "slogdet")
    dtype, batch = inexact(A.dtype), A.shape[:-2]
    return _several(f, (A,), [(batch, dtype), (batch, real_of(dtype))], sides)


@each(np.linalg.eigh, spectra.eigh)
def _eigh(f: Any, a: Any, UPLO: str = "L") -> Any:
    a, sides = square(a, "eigh")
    dtype = inexact(a.dtype)
    parts = [(a.shape[:-1], real_of(dtype)), (a.shape, dtype)]
    return _several(f, (a,), parts, sides, UPLO=UPLO)


@each(np.linalg.eigvalsh, norms.eigvalsh)
def _eigvalsh(f: Any, a: Any, UPLO: str = "L") -> Any:
    a, sides = square(a, "eigvalsh")
    return formula(f, (a,), a.shape[:-1], real_of(inexact(a.dtype)), sides, UPLO=UPLO)


@each(np.linalg.cholesky, factorizations.cholesky)
def _cholesky(f: Any, a: Any, *, upper: bool = False) -> Any:
    a, sides = square(a, "cholesky")
    return formula(f, (a,), a.shape, inexact(a.dtype), sides, upper=upper)


@each(spectra.expm, spectra.logm, spectra.sqrtm)
def _like(f: Any, A: Any) -> Any:
    A, sides = square(A, f.__name__)
    return formula(f, (A,), A.shape, inexact(A.dtype), sides)


@rule(spectra.funm)
def _funm(A: Any, func: Any) -> Any:
    A, sides = square(A, "funm")
    return formula(spectra.funm, (A,), A.shape, inexact(A.dtype), sides, func=func)


@rule(spectra.fractional_matrix_power)
def _fractional_matrix_power(A: Any, t: Any) -> Any:
    A, sides = square(A, "fractional_matrix_power")
    f = spectra.fractional_matrix_power
    return formula(f, (A,), A.shape, inexact(A.dtype), sides, t=t)


def _complex(A: Any, name: str) -> tuple[Any, Sides]:
    A, sides = square(A, name)
    if A.dtype.kind != "c":
        raise NotImplementedError(
            f"{name} of {named(A)}: whether the result of a real matrix is real or complex depends "
            f"on its values. Give a complex one, A.astype(complex), or call {name} on the "
            "function's result"
        )
    return A, sides


@each(np.linalg.eig, spectra.eig)
def _eig(f: Any, a: Any) -> Any:
    a, sides = _complex(a, "eig")
    dtype = inexact(a.dtype)
    return _several(f, (a,), [(a.shape[:-1], dtype), (a.shape, dtype)], sides)


@each(np.linalg.eigvals, spectra.eigvals)
def _eigvals(f: Any, a: Any) -> Any:
    a, sides = _complex(a, "eigvals")
    return formula(f, (a,), a.shape[:-1], inexact(a.dtype), sides)


@each(factorizations.null_space, factorizations.orth)
def _frame(f: Any, A: Any, rcond: Any = None) -> Any:
    raise NotImplementedError(
        f"{f.__name__} of {named(operand(A))}: how many columns the basis has depends on the "
        f"values, so there is no formula of it; call {f.__name__} on the function's result"
    )


RULES[linalg.matrix_power] = lambda A, n: np.linalg.matrix_power(A, n)


@rule(factorizations.ldl)
def _ldl(A: Any, lower: bool = True, hermitian: bool = True) -> Any:
    A, sides = square(A, "ldl")
    whole = (A.shape, inexact(A.dtype))
    parts = [whole, whole, (A.shape[:-1], np.intp)]
    return _several(factorizations.ldl, (A,), parts, sides, lower=lower, hermitian=hermitian)


@rule(covariance.sqrt_inv_matmul)
def _sqrt_inv_matmul(A: Any, b: Any) -> Any:
    solved = solving.solve(A, b)  # of its shape, dtype and equations
    args = tuple(map(operand, (A, b)))
    made = formula(covariance.sqrt_inv_matmul, args, solved.shape, solved.dtype)
    made._equations = solved._equations
    return made


@rule(covariance.inv_quad_logdet)
def _inv_quad_logdet(A: Any, b: Any) -> Any:
    b = operand(b)
    if len(shape_of(b)) == 1:
        quad = np.conjugate(b) @ solving.solve(A, b)
    elif len(shape_of(b)) == len(shape_of(operand(A))) == 2:
        quad = np.sum(np.conjugate(b) * solving.solve(A, b), axis=-2)
    else:
        raise NotImplementedError(
            "inv_quad_logdet of placeholders: of a matrix, and a vector or columns"
        )
    return covariance.InvQuadLogdet(quad, determinants.logdet(A))


# -- of any matrices -------------------------------------------------------------------------------


@each(np.linalg.qr, factorizations.qr)
def _qr(f: Any, A: Any, mode: str = "reduced") -> Any:
    A, batch, m, n, sides = _matrix(A, "qr")
    k, dtype = least(m, n), inexact(A.dtype)
    if mode == "r":
        return formula(f, (A,), (*batch, k, n), dtype, sides, mode=mode)
    if mode not in ("reduced", "complete"):
        raise NotImplementedError(f"qr of placeholders in mode {mode!r}")
    inner = m if mode == "complete" else k
    parts = [((*batch, m, inner), dtype), ((*batch, inner, n), dtype)]
    return _several(f, (A,), parts, sides, mode=mode)


@each(np.linalg.svd, spectra.svd)
def _svd(
    f: Any,
    A: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:
    A, batch, m, n, sides = _matrix(A, "svd")
    if hermitian:
        raise NotImplementedError("svd(hermitian=True) of placeholders")
    k, dtype = least(m, n), inexact(A.dtype)
    values = ((*batch, k), real_of(dtype))
    if not compute_uv:
        return formula(norms.svdvals, (A,), *values, sides)
    parts = [
        ((*batch, m, m if full_matrices else k), dtype),
        values,
        ((*batch, n if full_matrices else k, n), dtype),
    ]
    return _several(f, (A,), parts, sides, full_matrices=full_matrices)


@rule(np.linalg.svdvals, norms.svdvals)
def _svdvals(x: Any) -> Any:
    return _svd(spectra.svd, x, compute_uv=False)


@rule(factorizations.lu)
def _lu(A: Any, permute_l: bool = False, *, p_indices: bool = False) -> Any:
    A, batch, m, n, sides = _matrix(A, "lu")
    k, dtype = least(m, n), inexact(A.dtype)
    parts: list[Any] = [((*batch, m, k), dtype), ((*batch, k, n), dtype)]
    if not permute_l:
        parts.insert(0, ((*batch, m), np.intp) if p_indices else ((*batch, m, m), dtype))
    how = {"permute_l": permute_l, "p_indices": p_indices}
    return _several(factorizations.lu, (A,), parts, sides, **how)


def _cut(what: str, m: Any, n: Any, sides: Sides, hermitian: bool, **given: Any) -> dict[str, Any]:
    """The arguments of a function that counts singular values up to a tolerance as zero."""
    for name, x in given.items():
        if not is_number(x):
            raise NotImplementedError(
                f"{what} of placeholders: {name} is a number, got {type(x).__name__}"
            )
    if hermitian:
        sides.same(m, n)
    return {
        k: v
        for k, v in (given | {"hermitian": hermitian}).items()
        if v is not None and v is not False
    }


@rule(np.linalg.pinv, norms.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, **rtol: Any) -> Any:
    a, batch, m, n, sides = _matrix(a, "pinv")
    if rtol.keys() - {"rtol"}:
        raise TypeError(f"pinv takes no {', '.join(rtol.keys() - {'rtol'})}")
    if rcond is not None and rtol:
        raise ValueError(BOTH_TOLERANCES)
    how = _cut("pinv", m, n, sides, hermitian, rcond=rcond, **rtol) | rtol
    return formula(np.linalg.pinv, (a,), (*batch, n, m), inexact(a.dtype), sides, **how)


@rule(np.linalg.lstsq, factorizations.lstsq)
def _lstsq(A: Any, b: Any, rcond: Any = None) -> Any:
    A, batch, m, n, sides = _matrix(A, "lstsq")
    b = operand(b)
    right = shape_of(b)
    if batch or not 0 < len(right) < 3:
        raise NotImplementedError("lstsq of placeholders: of a matrix, and a vector or columns")
    sides.same(m, right[0])
    dtype = np.result_type(inexact(A.dtype), inexact(b.dtype))
    tall = least(1, -least(n - m, 0))  # 1 of more rows than columns, else 0: of these no residuals
    parts = [
        ((n, *right[1:]), dtype),
        ((tall * right[1] if len(right) > 1 else tall,), real_of(dtype)),
        ((), np.intc),
        ((least(m, n),), real_of(dtype)),
    ]
    whole = formula(factorizations.lstsq, (A, b), (), float, sides, rcond=rcond)
    return tuple(formula(taken, (whole, k), *part) for k, part in enumerate(parts))


@rule(spectra.log_pdet)
def _log_pdet(A: Any, *, rtol: Any = None) -> Any:
    A, sides = square(A, "log_pdet")
    dtype = real_of(inexact(A.dtype))
    return formula(spectra.log_pdet, (A,), A.shape[:-2], dtype, sides, rtol=rtol)


# -- norms -----------------------------------------------------------------------------------------


@rule(np.linalg.norm, norms.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    over = range(x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    if not (axis is None and ord is None) and len(tuple(over)) > 2:
        raise ValueError("a norm is of vectors along one axis, or of matrices along two")
    shape = [n for k, n in enumerate(x.shape) if k not in over]
    if keepdims:
        shape = [1 if k in over else n for k, n in enumerate(x.shape)]
    how = {"ord": ord, "axis": axis, "keepdims": keepdims}
    kwargs = {k: v for k, v in how.items() if v is not None and v is not False}
    return formula(np.linalg.norm, (x,), shape, real_of(inexact(x.dtype)), **kwargs)


@rule(np.linalg.vector_norm)
def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if axis is None:
        found = _norm(np.reshape(x, (-1,)), ord)
        return np.reshape(found, (1,) * x.ndim) if keepdims else found
    axes = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    if len(axes) == 1:
        return _norm(x, ord, axes[0], keepdims)
    rest = [k for k in range(x.ndim) if k not in axes]
    one = (*(x.shape[k] for k in rest), product([x.shape[k] for k in axes]))
    found = _norm(np.reshape(np.transpose(x, (*rest, *axes)), one), ord, -1)
    kept = tuple([1 if k in axes else n for k, n in enumerate(x.shape)])
    return np.reshape(found, kept) if keepdims else found


@rule(np.linalg.matrix_norm)
def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _norm(x, ord, (-2, -1), keepdims)


@rule(norms.matrix_norm)
def _our_matrix_norm(A: Any, ord: Any = "fro", *, keepdims: bool = False) -> Any:
    return _norm(A, ord, (-2, -1), keepdims)


@rule(np.linalg.cond, norms.cond)
def _cond(x: Any, p: Any = None) -> Any:
    x, batch, m, n, sides = _matrix(x, "cond")
    if p not in (None, 2, -2):
        sides.same(m, n)
    kwargs = {} if p is None else {"p": p}
    return formula(np.linalg.cond, (x,), batch, real_of(inexact(x.dtype)), sides, **kwargs)


@rule(np.linalg.matrix_rank, norms.matrix_rank)
def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    A, batch, m, n, sides = _matrix(A, "matrix_rank")
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    how = _cut("matrix_rank", m, n, sides, hermitian, tol=tol, rtol=rtol)
    return formula(np.linalg.matrix_rank, (A,), batch, np.intp, sides, **how)
