"""pylinop's functions from matrices to matrices, of LazyArrays: deferred, computed from the form,
and themselves with a form: the Cholesky factor of a Kron stays a Kron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import inexact
from .._structured import least_squares
from . import decompositions
from .build import node
from .kinds import FORM, VALUE, lazily
from .leaves import lazy


class OfForm:
    """``function(form, *values, **kwargs)`` as an operator; `name` finds its derivative."""

    def __init__(
        self, name: str, function: Callable[..., Any], dtype: Any, kwargs: dict[str, Any]
    ) -> None:
        self.name, self.function, self.dtype, self.kwargs = name, function, dtype, kwargs
        self.__name__ = name

    def __call__(self, form: Any, *values: Any) -> Any:
        found = self.function(form, *values, **self.kwargs)
        op: Any = found if isinstance(found, _core.Operator) else _core.Dense(np.asarray(found))
        if op.dtype.kind == "c" and self.dtype.kind != "c":
            raise errors.make_error(
                "LinAlgError",
                f"{self.name} of this real matrix is complex: give it as a complex LazyArray, "
                "A.astype(complex)",
                form,
                "compute",
                -1,
            )
        return op if op.dtype == self.dtype else op.astype(self.dtype)


class Joint:
    """A function with several results, called once for all of them."""

    def __init__(self, name: str, function: Callable[..., Any], kwargs: dict[str, Any]) -> None:
        self.name, self.function, self.kwargs = name, function, kwargs
        self.last: Any = None

    def __call__(self, form: Any) -> Any:
        if self.last is None or self.last[0] is not form:
            self.last = form, self.function(form, **self.kwargs)
        return self.last[1]

    def __reduce__(self) -> Any:
        return Joint, (self.name, self.function, self.kwargs)


class Piece:
    """One result of a `Joint`; `parts` holds the shape and dtype of each result."""

    def __init__(self, joint: Joint, at: int, parts: Any) -> None:
        self.joint, self.at, self.parts = joint, at, parts
        self.__name__ = f"{joint.name}[{at}]"

    def __call__(self, form: Any, **kwargs: Any) -> Any:
        return self.joint(form)[self.at]

    def node(self, A: Any, at: int) -> Any:
        """The result number `at`, of the same call: operators for matrices, arrays for vectors."""
        shape, dtype = self.parts[at]
        piece = Piece(self.joint, at, self.parts)
        if len(shape) == A.ndim:
            return lazily(piece, (A,), bytes((FORM,)), shape, dtype)
        return _core._LazyArray("of form", (A,), tuple(shape), dtype, (piece, {}))


def square(A: Any, name: str) -> Any:
    """A, which has to be a square matrix."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise errors.LinAlgError(
            f"{name} needs a square matrix, got shape {A.shape}" + errors.built(A)
        )
    return A


def made(name: str, function: Callable[..., Any], A: Any, shape: Any, **kwargs: Any) -> Any:
    """The matrix that a function makes of a matrix."""
    dtype = inexact(A.dtype)
    return lazily(OfForm(name, function, dtype, kwargs), (A,), bytes((FORM,)), shape, dtype)


def several(name: str, function: Callable[..., Any], A: Any, parts: Any, **kwargs: Any) -> Any:
    """The results of a function of a matrix, each a LazyArray."""
    first = Piece(Joint(name, function, kwargs), 0, parts)
    return [first.node(A, k) for k in range(len(parts))]


def solved(
    name: str, function: Callable[..., Any], A: Any, b: Any, rows: int, **kwargs: Any
) -> Any:
    """``function(A, b, **kwargs)``, a vector or a matrix with as many columns as b has."""
    dtype = np.result_type(inexact(A.dtype), inexact(b.dtype))
    columns = b if b.ndim > 1 else np.reshape(b, (-1, 1))
    x0 = kwargs.get("x0")
    if b.ndim == 1 and x0 is not None and np.ndim(x0) == 1:
        kwargs["x0"] = np.reshape(x0, (-1, 1))
    batch = np.broadcast_shapes(tuple(A.shape[:-2]), tuple(columns.shape[:-2]))
    shape = (*batch, rows, columns.shape[-1])
    f = OfForm(name, function, dtype, kwargs)
    x = lazily(f, (A, columns), bytes((FORM, VALUE)), shape, dtype)
    return x if b.ndim > 1 else x[..., 0]


# -- least squares ---------------------------------------------------------------------------------


def _in_dtype(op: Any, dtype: Any) -> Any:
    return op if op.dtype == dtype else op.astype(dtype)


def least_norm(form: Any, b: Any, rcond: Any) -> Any:
    """The x of least norm that makes |b - A x| least."""
    dtype = np.result_type(inexact(form.dtype), inexact(b.dtype))
    return least_squares.lstsq(_in_dtype(form, dtype), b.astype(dtype, copy=False), rcond)[0]


def of_full_rank(form: Any, b: Any, rcond: Any) -> Any:
    """As `least_norm`; a matrix without full rank is an error."""
    dtype = np.result_type(inexact(form.dtype), inexact(b.dtype))
    x, _, rank, _ = least_squares.lstsq(_in_dtype(form, dtype), b.astype(dtype, copy=False), rcond)
    full = min(form.shape[-2:])
    if np.any(np.asarray(rank) < full):
        raise errors.make_error(
            "LinAlgError",
            f"lstsq has a derivative where the matrix has full rank; this one has rank {rank}, "
            f"not {full}",
            form,
            "differentiate",
            -1,
        )
    return x


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """``(x, residuals, rank, s)`` of LazyArrays; residuals are those of full column rank."""
    a, b = node(a), node(b)
    if a is None or b is None or a.ndim < 2 or not b.ndim:
        return NotImplemented
    m, n = a.shape[-2:]
    if b.shape[-1 if b.ndim == 1 else -2] != m:
        raise errors.LinAlgError(
            f"Incompatible dimensions: a matrix of shape {a.shape} and a right-hand side of shape "
            f"{b.shape}" + errors.built(a)
        )
    one = b.ndim == 1 and a.ndim > 2  # a vector for each matrix of a stack
    b = np.reshape(b, (-1, 1)) if one else b
    x = solved("lstsq", least_norm, a, b, n, rcond=rcond)
    r = b - a @ x
    square = np.real(r * np.conjugate(r)) if r.dtype.kind == "c" else r * r
    columns = square if b.ndim > 1 else np.reshape(square, (*square.shape, 1))
    rest = np.sum(columns, axis=-2)
    batch, more = tuple(a.shape[:-2]), {"rcond": rcond}
    rank = _core._LazyArray("of form", (a,), batch, np.dtype(np.intc), (rank_of, more))
    x = x[..., 0] if one else x
    if m <= n:
        rest = lazy(np.zeros((*batch, 0), rest.dtype))
    return x, rest, rank, decompositions.svdvals(a)


def rank_of(form: Any, rcond: Any) -> Any:
    """The rank that least squares find."""
    b = np.zeros((form.shape[-2], 1), inexact(form.dtype))
    return np.asarray(least_squares.lstsq(_in_dtype(form, b.dtype), b, rcond)[2], np.intc)
