"""Functions of operators on the arrays of another library: arrays and numbers are computed by one
program."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .operators import Face, Operator, computed, made

__all__ = ["EighResult", "Functions", "InvQuadLogdet", "SVDResult", "SlogdetResult"]


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the modulus of a determinant."""

    sign: Any
    logabsdet: Any


class InvQuadLogdet(NamedTuple):
    """b^H A^-1 b and log det A."""

    inv_quad: Any
    logdet: Any


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """A = U diag(S) Vh, the singular values descending."""

    U: Any
    S: Any
    Vh: Any


class Functions:
    """The functions of a face."""

    def __init__(self, face: Face, operator: type[Operator]) -> None:
        self.face, self.operator = face, operator

    def _made(self, node: Any) -> Any:
        return made(self.operator, node)

    def _node(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.face.operation(name, *args, **kwargs)

    def _value(self, node: Any) -> Any:
        return computed(self.face, node)[0]

    def _operand(self, A: Any) -> Any:
        if isinstance(A, Operator):
            return A
        if isinstance(A, (list, tuple)):
            A = np.asarray(A)
        if not self.face.is_array(A):
            raise TypeError(
                f"{self.face.name} takes its own operators and arrays, not a "
                f"{type(A).__name__}: make it with the same name in {self.face.name}"
            )
        return A

    def solve(self, A: Any, b: Any) -> Any:
        """The x with A x = b: an array; for an operator b the operator ``inv(A) @ b``."""
        A, b = self._operand(A), self._operand(b)
        node = self._node("solve", A, b)
        return self._made(node) if isinstance(b, Operator) else self._value(node)

    def inv(self, A: Any) -> Any:
        """The inverse, an operator; nothing is computed."""
        return self._of_matrix("inv", A)

    def trace(self, A: Any) -> Any:
        """The trace."""
        return self._value(self._node("trace", self._operand(A)))

    def diagonal(self, A: Any, offset: int = 0) -> Any:
        """A diagonal."""
        return self._value(self._node("diagonal", self._operand(A), offset=offset))

    def det(self, A: Any) -> Any:
        """The determinant."""
        return self._value(self._node("det", self._operand(A)))

    def logdet(self, A: Any) -> Any:
        """The logarithm of the determinant; nan for a negative one of a real matrix."""
        return self._value(self._node("logdet", self._operand(A)))

    def _values(self, name: str, count: int, *args: Any) -> list[Any]:
        """Several values of one function, by one program."""
        node = self._node(name, *args)
        return computed(self.face, node, count)

    def _of_matrix(self, name: str, A: Any) -> Any:
        return self._made(self._node(name, self._node("lazy", self._operand(A))))

    def slogdet(self, A: Any) -> SlogdetResult:
        """Sign and logarithm of the modulus of the determinant."""
        return SlogdetResult(*self._values("slogdet", 2, self._operand(A)))

    def inv_quad_logdet(self, A: Any, b: Any) -> InvQuadLogdet:
        """``b^H A^-1 b``, a number for each column, and ``log det A``, by one plan."""
        return InvQuadLogdet(
            *self._values("inv_quad_logdet", 2, self._operand(A), self._operand(b))
        )

    def eigh(self, A: Any) -> EighResult:
        """Eigenvalues and eigenvectors of a Hermitian matrix, arrays."""
        return EighResult(*self._values("eigh", 2, self._node("lazy", self._operand(A))))

    def svd(self, A: Any) -> SVDResult:
        """The reduced singular value decomposition, arrays."""
        return SVDResult(*self._values("svd", 3, self._node("lazy", self._operand(A))))

    def einsum(self, equation: str, operands: Any, **given: Any) -> Any:
        """A contraction with operators in it; one where only such meet and two axes stay."""
        node = self._node("einsum", equation, *map(self._operand, operands), **given)
        if all(isinstance(x, Operator) for x in operands):
            found = self._made(node)
            if found.ndim == 2:
                return found
        return self._value(node)

    def expm(self, A: Any) -> Any:
        """The matrix exponential, an operator."""
        return self._of_matrix("expm", A)

    def sqrtm(self, A: Any) -> Any:
        """The principal square root, an operator."""
        return self._of_matrix("sqrtm", A)

    def logm(self, A: Any) -> Any:
        """The principal logarithm, an operator."""
        return self._of_matrix("logm", A)

    def cholesky(self, A: Any) -> Any:
        """The lower Cholesky factor, an operator."""
        return self._of_matrix("cholesky", A)

    def eigvalsh(self, A: Any) -> Any:
        """The eigenvalues of a Hermitian matrix, ascending."""
        return self._value(self._node("eigvalsh", self._node("lazy", self._operand(A))))

    def svdvals(self, A: Any) -> Any:
        """The singular values, descending."""
        return self._value(self._node("svdvals", self._node("lazy", self._operand(A))))

    def pinv(self, A: Any) -> Any:
        """The pseudo-inverse, an operator."""
        return self._of_matrix("pinv", A)

    def matrix_norm(self, A: Any) -> Any:
        """The Frobenius norm."""
        return self._value(self._node("norm", self._node("lazy", self._operand(A))))

    def matrix_power(self, A: Any, n: int) -> Any:
        """A power, an operator."""
        return self._made(self._node("matrix_power", self._node("lazy", self._operand(A)), n))

    def multiply(self, A: Any, B: Any) -> Any:
        """The element-wise product, an operator."""
        return self._made(self._node("HadamardProduct", self._operand(A), self._operand(B)))

    def multi_dot(self, factors: Any) -> Any:
        """The product of several factors in the cheapest order: an operator where all are."""
        parts = [self._operand(x) for x in factors]
        if not parts:
            raise ValueError("multi_dot takes at least one factor")
        node = self._node("lazy", parts[0])
        for x in parts[1:]:
            node = self._node("matmul", node, x)
        return (
            self._made(node) if all(isinstance(x, Operator) for x in parts) else self._value(node)
        )
