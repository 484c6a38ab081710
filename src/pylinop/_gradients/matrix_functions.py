"""Cotangents of the arguments of pylinop's functions from matrices to matrices: exponential,
logarithm, square root, factors, least squares, iterative solves.

Formulas: Higham, Functions of matrices (2008), section 3.2: the derivative of f at X along E stands
at the top right of f([[X, E], [0, X]]), and so on for orders above; Golub and
Pereyra (1973) for least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._api.spectra import sqrtm
from .._base import errors
from .._base.dtypes import inexact
from .._eigen.exponential_derivative import along_pair
from .._lazy.build import inverse, scaled, view
from .._lazy.functions_of_structure import family, kind_of, terms
from .._lazy.kinds import FORM, VALUE, lazily
from .._lazy.matrix_functions import OfForm, of_full_rank, solved
from .._structured.function_derivatives import DIFFERENCES, derivative
from .._structured.function_second_derivatives import second_derivative
from . import decompositions
from .multiples import ALONG_PAIR, SLOPES, THIN
from .pieces import Through, pair


def _frechet(y: Any, g: Any, k: int) -> Any:
    """The adjoint of a function's derivative at A is its derivative at A^H."""
    f, A = y._more[0], y._args[0]
    found = _commuted(y, g)
    return _derived(A, g, {"by": f.function, "of": f.name, **f.kwargs}) if found is None else found


def _commuted(y: Any, g: Any) -> Any:
    """f'(A)^H g where all that A depends on moves it along what commutes with it: a sum of diagonal
    matrices and c I, or of circulant ones of the same levels; or g, a multiple of I, does. Else
    None.
    By f(A), as f(A^H) is another one where a number is on the cut of a root."""
    A, slope = y._args[0], SLOPES.get(y._more[0].name)
    if slope is None or A.ndim != 2:
        return None
    parts = terms(A)
    found = {family(x) for x, _, _ in parts or () if kind_of(x) is not _core.Identity}
    one_family = len(found) == 1 and None not in found
    if one_family or (_is_of_trace(g) and (y._more[0].name == "expm" or _is_regular(A, parts))):
        return view(slope(A, y), 3) @ g
    return None


def _is_of_trace(g: Any) -> bool:
    """Is it a multiple of the identity by how it is written?"""
    parts = terms(g) if g.ndim == 2 else None
    return bool(parts) and all(kind_of(x) is _core.Identity for x, _, _ in parts or ())


def _is_regular(A: Any, parts: Any) -> bool:
    """Is it real, so that no number on a cut has a function, and not by a dense form, of which the
    eigenvalues say more?"""
    return A.dtype.kind != "c" and all(
        kind_of(x) not in (None, _core.Dense) for x, _, _ in parts or ((A, (), 0),)
    )


def _derived(A: Any, g: Any, more: Any) -> Any:
    """The derivative at A^H along g; of exp along a pair of few columns that may be one too."""
    fits = more["of"] == "expm" and A.ndim == 2 and g.ndim == 2 and g._head == "matmul"
    if not fits or THIN * g._args[0].shape[-1] > A.shape[-1]:
        return _along(A, g, **more)
    u, v = g._args[0], view(g._args[1], 3)
    dtype = np.result_type(inexact(A.dtype), inexact(g.dtype))
    f = OfForm(ALONG_PAIR, along_pair, dtype, more)
    return lazily(f, (A, u, v), bytes((FORM, VALUE, VALUE)), A.shape, dtype)


def _of_pair(y: Any, h: Any, k: int) -> Any:
    """Of that at A^H along u v^H: as below, with what u v^H is made of."""
    (A, u, v), more = y._args, y._more[0].kwargs
    if k == 0:
        return _twice(A, u @ view(v, 3), h, more)
    back = _derived(view(A, 3), h, more)
    return back @ v if k == 1 else view(back, 3) @ u


def _along(A: Any, g: Any, **more: Any) -> Any:
    return solved(f"derivative of {more['of']}", derivative, A, g, A.shape[-1], **more)


def _of_derivative(y: Any, h: Any, k: int) -> Any:
    """Of a derivative at A^H along g: by g the derivative at A; by A the second one at A^H along g
    and h^H, as tr(h^H L(g, E)) = tr(E L(g, h^H))."""
    (A, g), more = y._args, y._more[0].kwargs
    return _derived(view(A, 3), h, more) if k == 1 else _twice(A, g, h, more)


def _twice(A: Any, g: Any, h: Any, more: Any) -> Any:
    """The second derivative at A^H along g and h^H."""
    dtype = np.result_type(inexact(A.dtype), inexact(g.dtype), inexact(h.dtype))
    f = OfForm(f"second derivative of {more['of']}", second_derivative, dtype, more)
    batch = np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in (A, g, h)))
    kinds = bytes((FORM, VALUE, VALUE))
    return lazily(f, (A, g, h), kinds, (*batch, *A.shape[-2:]), dtype)


def _of_second(y: Any, z: Any, k: int) -> Any:
    """Of a second derivative: by g and h likewise; by A what a sweep through the block form
    finds."""
    (A, g, h), more = y._args, y._more[0].kwargs
    if k:
        return _twice(view(A, 3), z, view(h, 3), more) if k == 1 else _twice(A, g, z, more)
    n, batch = A.shape[-1], y.shape[:-2]
    size: Any = np.linalg.norm(np.reshape(h, (*h.shape[:-2], 1, n * n)), axis=-1, keepdims=True)
    size = np.where(size == 0, 1.0, size)
    size = size if h.ndim > 2 else np.reshape(size, ())
    # The derivative along h^H stands within the function of a block matrix, of which A itself is a
    # block, as no view of it need lead to it (that of a transpose is one of what it is the
    # transpose of).
    zeros = np.zeros((*batch, n, n))
    whole = np.block([[A, zeros], [h / size, A]])
    along = np.block([[g, zeros], [zeros, g]])
    return Through(_along(whole, along, **more)[..., :n, n:] * size, z, (g, h))


def _cholesky(y: Any, g: Any, k: int) -> Any:
    return decompositions.cholesky(y, g, y._more[0].kwargs["upper"])


def _pinv(y: Any, g: Any, k: int) -> Any:
    return decompositions.pinv(y, g, y._more[0].kwargs)


def _r_of_qr(y: Any, g: Any, k: int) -> Any:
    Q, R = y._more[0].function(y._args[0])
    return decompositions.qr(y, False, Q, R, g)


def _least(f: Any, A: Any, b: Any) -> Any:
    """Least-squares solutions within derivatives, which assume full rank."""
    return solved("lstsq", of_full_rank, A, b, A.shape[-1], **f.kwargs)


def _lstsq(y: Any, g: Any, k: int) -> Any:
    f, (A, b) = y._more[0], y._args
    back = view(A, 3)
    z = _least(f, back, g)
    if k == 1:
        return z
    m, n = A.shape[-2:]
    if m >= n:
        r = b - A @ y
        return _outer(r, _least(f, A, z)) - _outer(z, y)
    return _outer(_least(f, back, y), g - back @ z) - _outer(z, y)


def _outer(u: Any, v: Any) -> Any:
    return pair(u[:, 0], v[:, 0]) if u.shape[1:] == (1,) else u @ view(v, 3)


def _solve(y: Any, g: Any, k: int) -> Any:
    """The adjoint system by the same method, to the same tolerances."""
    f, A = y._more[0], y._args[0]
    more = {k: v for k, v in f.kwargs.items() if k not in ("x0", "callback", "progress")}
    M = more.get("M")
    if M is not None and not isinstance(M, str):
        if not hasattr(M, "H"):
            raise NotImplementedError(
                "a solve with a callable for M has no derivative: the adjoint system needs M^H; "
                "give an operator" + errors.built(y)
            )
        more["M"] = M.H
    z = solved(f.name, f.function, view(A, 3), g, A.shape[-2], **more)
    return z if k == 1 else scaled(_outer(z, y), -1)


def _sqrt_inv_matmul(y: Any, g: Any, k: int) -> Any:
    """Of A^-1/2 b; A is Hermitian."""
    f, (A, b) = y._more[0], y._args
    if k == 1:
        return solved(f.name, f.function, A, g, A.shape[-1])
    return Through(inverse(sqrtm(A)) @ b, g, (b,))


ROWS: dict[str, Callable[[Any, Any, int], Any]] = {
    **dict.fromkeys(DIFFERENCES, _frechet),
    **{f"derivative of {name}": _of_derivative for name in DIFFERENCES},
    ALONG_PAIR: _of_pair,
    **{f"second derivative of {name}": _of_second for name in DIFFERENCES},
    "cholesky": _cholesky,
    "pinv": _pinv,
    "r of qr": _r_of_qr,
    "lstsq": _lstsq,
    "solve": _solve,
    "sqrt_inv_matmul": _sqrt_inv_matmul,
}


def of_form(y: Any, g: Any, k: int) -> Any:
    """The cotangent of argument k of a matrix function."""
    f: OfForm = y._more[0]
    row = ROWS.get(f.name)
    if row is None:
        raise NotImplementedError(f"{f.name} has no derivative here" + errors.built(y))
    return row(y, g, k)
