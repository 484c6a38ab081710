"""Functions of operators on arrays of JAX: arrays and numbers are computed by one program."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import is_array
from .formulas import operation
from .operators import Operator, computed, made

__all__ = [
    "InvQuadLogdet",
    "SlogdetResult",
    "cholesky",
    "det",
    "diagonal",
    "eigvalsh",
    "inv",
    "inv_quad_logdet",
    "logdet",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "multiply",
    "pinv",
    "slogdet",
    "solve",
    "svdvals",
    "trace",
]


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the modulus of a determinant."""

    sign: Any
    logabsdet: Any


class InvQuadLogdet(NamedTuple):
    """b^H A^-1 b and log det A."""

    inv_quad: Any
    logdet: Any


def _operand(A: Any) -> Any:
    if isinstance(A, Operator):
        return A
    if isinstance(A, (list, tuple)):
        A = np.asarray(A)
    if not is_array(A):
        raise TypeError(
            f"pylinop.jax takes its own operators and arrays, not a {type(A).__name__}: make it "
            "with the same name in pylinop.jax"
        )
    return A


def solve(A: Any, b: Any) -> Any:
    """The x with A x = b: an array of JAX; for an operator b the operator ``inv(A) @ b``."""
    A, b = _operand(A), _operand(b)
    node = operation("solve", A, b)
    return made(node) if isinstance(b, Operator) else computed(node)[0]


def inv(A: Any) -> Operator:
    """The inverse, an operator; nothing is computed."""
    return made(operation("inv", operation("lazy", _operand(A))))


def trace(A: Any) -> Any:
    """The trace."""
    return computed(operation("trace", _operand(A)))[0]


def diagonal(A: Any, offset: int = 0) -> Any:
    """A diagonal."""
    return computed(operation("diagonal", _operand(A), offset=offset))[0]


def det(A: Any) -> Any:
    """The determinant."""
    return computed(operation("det", _operand(A)))[0]


def logdet(A: Any) -> Any:
    """The logarithm of the determinant; nan for a negative one of a real matrix."""
    return computed(operation("logdet", _operand(A)))[0]


def slogdet(A: Any) -> SlogdetResult:
    """Sign and logarithm of the modulus of the determinant."""
    node = operation("slogdet", _operand(A))
    return SlogdetResult(*computed(operation("item", node, 0), operation("item", node, 1)))


def inv_quad_logdet(A: Any, b: Any) -> InvQuadLogdet:
    """``b^H A^-1 b``, a number for each column, and ``log det A``, by one plan."""
    node = operation("inv_quad_logdet", _operand(A), _operand(b))
    return InvQuadLogdet(*computed(operation("item", node, 0), operation("item", node, 1)))


def cholesky(A: Any) -> Operator:
    """The lower Cholesky factor, an operator."""
    return made(operation("cholesky", operation("lazy", _operand(A))))


def eigvalsh(A: Any) -> Any:
    """The eigenvalues of a Hermitian matrix, ascending."""
    return computed(operation("eigvalsh", operation("lazy", _operand(A))))[0]


def svdvals(A: Any) -> Any:
    """The singular values, descending."""
    return computed(operation("svdvals", operation("lazy", _operand(A))))[0]


def pinv(A: Any) -> Operator:
    """The pseudo-inverse, an operator."""
    return made(operation("pinv", operation("lazy", _operand(A))))


def matrix_norm(A: Any) -> Any:
    """The Frobenius norm."""
    return computed(operation("norm", operation("lazy", _operand(A))))[0]


def matrix_power(A: Any, n: int) -> Operator:
    """A power, an operator."""
    return made(operation("matrix_power", operation("lazy", _operand(A)), n))


def multiply(A: Any, B: Any) -> Operator:
    """The element-wise product, an operator."""
    return made(operation("HadamardProduct", _operand(A), _operand(B)))


def multi_dot(factors: Any) -> Any:
    """The product of several factors in the cheapest order: an operator where all are."""
    parts = [_operand(x) for x in factors]
    if not parts:
        raise ValueError("multi_dot takes at least one factor")
    node = operation("lazy", parts[0])
    for x in parts[1:]:
        node = operation("matmul", node, x)
    return made(node) if all(isinstance(x, Operator) for x in parts) else computed(node)[0]
