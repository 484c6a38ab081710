"""Products, solves, determinants and diagonals of symbolic matrices, and kinds of operators."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from .._api import basic, determinants, solve
from .._lazy import kinds, leaves, numpy_functions
from .._lazy.build import inverse_dtype
from .elements import conjugated, rule
from .expressions import least
from .placeholder import (
    RULES,
    Sides,
    formula,
    held,
    named,
    operand,
    shape_of,
    shown,
)


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any, Sides]:
    a, b = operand(a), operand(b)
    return a, b, Sides(f"{name} of {named(a)} and {named(b)}")


def multiplied(a: Any, b: Any) -> Any:
    return a @ b


@rule(np.matmul)
def _matmul(a: Any, b: Any) -> Any:
    a, b, sides = _pair("matmul", a, b)
    left, right = shape_of(a), shape_of(b)
    if not left or not right:
        raise ValueError("matmul: scalar operands are not allowed, use '*' instead")
    sides.same(left[-1], right[-2] if len(right) > 1 else right[0])
    shape = sides.together([left[:-2], right[:-2]])
    shape += (left[-2:-1] if len(left) > 1 else ()) + (right[-1:] if len(right) > 1 else ())
    return formula(multiplied, (a, b), shape, np.result_type(a.dtype, b.dtype), sides)


RULES[np.linalg.matmul] = _matmul


@rule(np.dot)
def _dot(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    if not np.shape(shape_of(a)) or not shape_of(a) or not shape_of(b):
        return np.multiply(a, b)
    if len(shape_of(b)) > 2 or len(shape_of(a)) > 2:
        raise NotImplementedError("np.dot of placeholders of more than two dimensions")
    return _matmul(a, b)


@rule(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    return _matmul(conjugated(np.reshape(a, (-1,))), np.reshape(b, (-1,)))


@rule(np.inner)
def _inner(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    return np.tensordot(a, b, ((-1,), (-1,)))


@rule(np.outer)
def _outer(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    return np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1)))


@rule(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b, sides = _pair("tensordot", a, b)
    one, other = shape_of(a), shape_of(b)
    if isinstance(axes, (int, np.integer)):
        axes = (tuple(range(len(one) - axes, len(one))), tuple(range(axes)))
    norm = np.lib.array_utils.normalize_axis_tuple
    left, right = norm(axes[0], len(one)), norm(axes[1], len(other))
    for i, j in zip(left, right, strict=True):
        sides.same(one[i], other[j])
    shape = [n for k, n in enumerate(one) if k not in left]
    shape += [n for k, n in enumerate(other) if k not in right]
    dtype = np.result_type(a.dtype, b.dtype)
    return formula(np.tensordot, (a, b), shape, dtype, sides, axes=(left, right))


@rule(np.linalg.tensordot)
def _linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return _tensordot(x1, x2, axes)


@rule(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any, /) -> Any:
    if len(shape_of(operand(x1))) != 1 or len(shape_of(operand(x2))) != 1:
        raise ValueError("np.linalg.outer takes vectors")
    return _outer(x1, x2)


@rule(np.linalg.multi_dot)
def _multi_dot(arrays: Any) -> Any:
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    dims = [len(shape_of(operand(a))) for a in arrays]
    if set(dims[1:-1]) - {2} or {dims[0], dims[-1]} - {1, 2}:
        raise ValueError(f"multi_dot takes matrices, first and last vectors too; dimensions {dims}")
    return functools.reduce(_matmul, arrays)  # the planner finds the order


@rule(np.kron)
def _kron(a: Any, b: Any) -> Any:
    a, b, sides = _pair("kron", a, b)
    one, other = shape_of(a), shape_of(b)
    ndim = max(len(one), len(other))
    one, other = ((1,) * (ndim - len(s)) + s for s in (one, other))
    shape = tuple(i * j for i, j in zip(one, other))
    return formula(np.kron, (a, b), shape, np.result_type(a.dtype, b.dtype), sides)


# -- of one matrix ---------------------------------------------------------------------------------


def square(a: Any, what: str) -> tuple[Any, Sides]:
    """A matrix whose sides are made equal."""
    a = operand(a)
    sides = Sides(f"{what} of {named(a)}")
    shape = shape_of(a)
    if len(shape) < 2:
        raise ValueError(f"{what} takes a matrix, got shape {shown(shape)}")
    sides.same(shape[-1], shape[-2])
    return a, sides


@rule(np.linalg.trace, basic.trace)
def _trace(a: Any) -> Any:
    a, sides = square(a, "trace")
    return formula(basic.trace, (a,), a.shape[:-2], numpy_functions.summed(a.dtype), sides)


@rule(np.trace)
def _array_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    if a.ndim == 2 and offset == 0:
        return _trace(a)
    return np.sum(_array_diagonal(a, offset, axis1, axis2), axis=-1)


def diagonals(a: Any, offset: int) -> Any:
    return np.linalg.diagonal(a, offset=offset)


@rule(basic.diagonal)
def _diagonal(x: Any, offset: int = 0) -> Any:
    offset = operator.index(offset)
    if x.ndim < 2:
        raise ValueError(f"diagonal takes a matrix, got shape {shown(x.shape)}")
    sides = Sides(f"diagonal of {named(x)}")
    rows, columns = shape_of(x)[-2:]
    if offset < 0:
        sides.least(rows, -offset)
        rows = rows + offset
    else:
        sides.least(columns, offset)
        columns = columns - offset
    shape = (*x.shape[:-2], least(rows, columns))
    return formula(diagonals, (x, offset), shape, x.dtype, sides)


@rule(np.linalg.diagonal)
def _linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return _diagonal(x, offset)


@rule(np.diagonal)
def _array_diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return _diagonal(np.moveaxis(a, (axis1, axis2), (-2, -1)), offset)


@rule(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    if v.ndim == 2:
        return _array_diagonal(v, k)
    n = v.shape[0] + abs(k)
    return formula(np.diag, (v, k), (n, n), v.dtype)


def _triangle(func: Any) -> Any:
    def run(m: Any, k: int = 0) -> Any:
        shape = m.shape if m.ndim > 1 else (*m.shape, *m.shape)  # of a vector each row is that
        return formula(func, (m, k), shape, m.dtype)

    return run


RULES[np.tril], RULES[np.triu] = _triangle(np.tril), _triangle(np.triu)


@rule(np.linalg.inv, basic.inv)
def _inv(a: Any) -> Any:
    a, sides = square(a, "inv")
    return formula(np.linalg.inv, (a,), a.shape, inverse_dtype(a), sides)


@rule(np.linalg.det, determinants.det)
def _det(a: Any) -> Any:
    a, sides = square(a, "det")
    return formula(np.linalg.det, (a,), a.shape[:-2], inverse_dtype(a), sides)


@rule("logdet", determinants.logdet)
def _logdet(a: Any) -> Any:
    a, sides = square(a, "logdet")
    return formula(determinants.logdet, (a,), a.shape[:-2], inverse_dtype(a), sides)


@rule(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    a, sides = square(a, "matrix_power")
    n = operator.index(n)
    dtype = a.dtype if n >= 0 else inverse_dtype(a)
    return formula(np.linalg.matrix_power, (a, n), a.shape, dtype, sides)


@rule(np.linalg.solve, solve.solve)
def _solve(
    a: Any,
    b: Any,
    assume_a: str | None = None,
    method: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    precision: str | None = None,
) -> Any:
    a, matrix = square(a, "solve")
    b = operand(b)
    sides = Sides(f"solve of {named(a)} and {named(b)}")
    sides.made += matrix.made
    left, right = shape_of(a), shape_of(b)
    if len(right) < 1:
        raise ValueError("solve takes a vector or columns, got a number")
    sides.same(left[-1], right[0] if len(right) == 1 else right[-2])
    batch = sides.together([left[:-2], right[:-2]])
    shape = batch + (right[-2:] if len(right) > 1 else left[-1:])
    dtype = np.result_type(inverse_dtype(a), inverse_dtype(b))
    how = {"method": method, "rtol": rtol, "atol": atol, "maxiter": maxiter, "precision": precision}
    given = {k: v for k, v in how.items() if v is not None}
    return formula(solve.solve, (a, b), shape, dtype, sides, assume_a=assume_a, **given)


# -- kinds of operators ----------------------------------------------------------------------------


def built(cls: Any, args: Any, kwargs: Any) -> Any:
    return cls(*args, **kwargs)


def _vector_of(x: Any) -> Any:
    shape = shape_of(x)
    if len(shape) != 1:
        raise ValueError(f"a vector is due, got shape {shown(shape)}")
    return shape[0]


def _matrices(parts: Any, name: str) -> list[tuple[Any, Any]]:
    shapes = [shape_of(operand(x)) for x in parts]
    if any(len(s) != 2 for s in shapes):
        raise ValueError(
            f"{name} of placeholders takes matrices, got {', '.join(map(shown, shapes))}"
        )
    return [(s[0], s[1]) for s in shapes]


def _square(name: str, given: dict[str, Any], many: Any, sides: Sides) -> Any:
    n = _vector_of(next(iter(given.values()))) if len(given) == 1 else None
    return None if n is None else (n, n)


def _by_ends(name: str, given: dict[str, Any], many: Any, sides: Sides) -> Any:
    if not set(given) <= {"c", "r"}:
        return None
    rows = _vector_of(given["c"])
    return rows, (_vector_of(given["r"]) if given.get("r") is not None else rows)


def _low_rank(name: str, given: dict[str, Any], many: Any, sides: Sides) -> Any:
    if not set(given) <= {"U", "V"}:
        return None
    ((m, r),) = _matrices([given["U"]], name)
    if given.get("V") is None:
        return m, m
    ((n, s),) = _matrices([given["V"]], name)
    sides.same(r, s)
    return m, n


def _kron_shape(name: str, given: dict[str, Any], many: Any, sides: Sides) -> Any:
    shape: tuple[Any, Any] = (1, 1)
    for m, n in _matrices(many, name):
        shape = (shape[0] * m, shape[1] * n)
    return shape


def _block_shape(name: str, given: dict[str, Any], many: Any, sides: Sides) -> Any:
    shape: tuple[Any, Any] = (0, 0)
    for m, n in _matrices(many, name):
        shape = (shape[0] + m, shape[1] + n)
    return shape


# (rows, columns) of a kind; None where that is not written down here.
_SHAPES = {
    "Diag": _square,
    "Circulant": _square,
    "Toeplitz": _by_ends,
    "Hankel": _by_ends,
    "LowRank": _low_rank,
    "Kron": _kron_shape,
    "BlockDiag": _block_shape,
}


@rule("kind")
def kind(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A kind of operators of placeholders."""
    found = list(held(args, kwargs))
    rows = kinds.parameters(cls)
    given = {**dict(zip((name for name, _ in rows), args, strict=False)), **kwargs}
    sides = Sides(f"{cls.__name__} of {' and '.join(named(x) for x in found)}")
    many = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
    shape_of = _SHAPES.get(cls.__name__)
    shape = None if shape_of is None else shape_of(cls.__name__, given, many, sides)
    if shape is None:
        raise NotImplementedError(
            f"{cls.__name__} of placeholders: Diag, Toeplitz, Hankel, Circulant, LowRank, Kron and"
            " BlockDiag are there; or give the operator itself for a placeholder of its shape"
        )
    dtype = np.result_type(*(x.dtype for x in found))
    return formula(built, (cls, args, kwargs), shape, dtype, sides)


def lazily(x: Any, assume_a: str | None = None) -> Any:
    """`lazy` of a formula is the formula."""
    if assume_a is not None:
        raise ValueError("say assume_a= where the placeholder is made")
    return x


RULES[leaves.lazy] = lazily
