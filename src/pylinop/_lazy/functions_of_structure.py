"""Functions of matrices that are written as those of their parts, so that derivatives have the
structure too: ``expm`` of a KronSum is the Kron of its terms' exponentials, and a function of a
BlockDiag that of its blocks. A term c I and factors go to the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dtypes import inexact, real_of
from .build import scaled, view
from .kinds import Kind, filled
from .leaves import lazy
from .matrix_functions import made, square

__all__ = ["family", "function", "kind_of", "terms"]

_MOST = 64  # sums, multiples and views within each other that are taken apart, and blocks


def terms(A: Any) -> list[tuple[Any, list[Any], int]] | None:
    """The terms of a sum, each with the numbers that it is multiplied by and how it is seen; a
    number that it is divided by counts as its reciprocal. None: there are too many, or a 0."""
    found: list[tuple[Any, list[Any], int]] = []
    stack: list[tuple[Any, list[Any], int]] = [(A, [], 0)]
    for _ in range(_MOST):
        if not stack:
            return found
        x, numbers, mode = stack.pop()
        if x._head == "add":
            stack += [(term, numbers, mode) for term in x._args[::-1]]
        elif x._head == "view":
            stack.append((x._args[0], numbers, mode ^ x._more))
        elif x._head in ("scale", "over"):
            c = x._args[1]
            if x._head == "over":
                if not is_lazy(c) and c == 0:
                    return None  # it has no reciprocal
                c = 1.0 / c
            c = np.conjugate(c) if mode & 2 else c
            stack.append((x._args[0], [*numbers, c], mode))
        elif x._head == "operator" and _is_shift(x._args[0]):
            one, c = x._args[0]._operands
            found.append((lazy(one), [*numbers, np.conjugate(c) if mode & 2 else c], mode))
        else:
            found.append((x, numbers, mode))
    return None


def _is_shift(op: Any) -> bool:
    return op._head == "scaled" and type(op._operands[0]) is _core.Identity


def kind_of(x: Any) -> Any:
    """The class of a kind that LazyArrays are parameters of, and an operator's own; else None."""
    if x._head == "operator":
        return type(x._args[0])
    is_kind = x._head == "made" and isinstance(x._more[0], Kind)
    return x._more[0].cls if is_kind else None


def family(x: Any) -> Any:
    """What is the same of two terms that commute by their kind, being diagonal, or circulant of the
    same levels; None of other terms."""
    cls = kind_of(x)
    if cls is _core.Diag:  # not one off the main diagonal
        return cls if _parameter_shape(x) == (x.shape[-1],) else None
    shape = _parameter_shape(x) if cls is _core.Circulant else None
    return None if shape is None else (cls, *shape)


def _parameter_shape(x: Any) -> Any:
    return x._args[0].shape if x._head == "made" else _shape_of_parameter(x._args[0])


def _shape_of_parameter(op: Any) -> Any:
    """The shape of the diagonal, or of the first column by levels; None: not known."""
    if op._head == "diag":
        return (op.shape[-1],)
    column = getattr(op, "c", None)
    if column is not None:
        return column.shape
    found = (_shape_of_parameter(x) for x in op._operands if isinstance(x, _core.Circulant))
    return next(found, None)


def function(name: str, of: Callable[..., Any], A: Any) -> Any:
    """The function ``of`` of a LazyArray, by parts where it can be."""
    square(A, name)
    parts = terms(A) if A.ndim == 2 and A._head not in ("leaf", "call") else None
    found = None if parts is None else _by_parts(name, of, A, parts)
    return made(name, of, A, A.shape) if found is None else found


def _by_parts(name: str, of: Callable[..., Any], A: Any, parts: list[Any]) -> Any:
    shift = [numbers for x, numbers, _ in parts if kind_of(x) is _core.Identity]
    rest = [p for p in parts if kind_of(p[0]) is not _core.Identity]
    if len(rest) != 1 or rest[0][0]._head != "made":
        return None
    x, numbers, mode = rest[0]
    cls = kind_of(x)
    if cls is not _core.BlockDiag and not (cls is _core.KronSum and name == "expm"):
        return None
    args, _ = filled((x._more[0].args, x._more[0].kwargs), x._args)
    args = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
    seen = [_times(view(a if is_lazy(a) else lazy(a), mode), numbers) for a in args]
    if len(seen) > _MOST or any(a.ndim != 2 or a.shape[0] != a.shape[1] for a in seen):
        return None
    shifted = len(seen) if cls is _core.BlockDiag else 1  # how many have the terms c I
    seen = [_shifted(a, shift) if i < shifted else a for i, a in enumerate(seen)]
    if not all(_is_as_exact(name, a.dtype, A.dtype) for a in seen):
        return None
    found = [made(name, of, a, a.shape) for a in seen]
    return _core.Kron(*found) if cls is _core.KronSum else _core.BlockDiag(*found)


def _is_as_exact(name: str, dtype: Any, whole: Any) -> bool:
    """Is the function of a part, in its own dtype, that in the dtype of the whole? Only the
    exponential of what is real is real."""
    if name == "expm":
        return bool(real_of(dtype) == real_of(whole))
    return bool(inexact(dtype) == inexact(whole))


def _times(a: Any, numbers: list[Any]) -> Any:
    for c in numbers:
        a = scaled(a, c)
    return a


def _shifted(a: Any, shift: list[list[Any]]) -> Any:
    for numbers in shift:
        a = a + _times(lazy(_core.Identity(a.shape[-1])), numbers)
    return a
