"""lineax and pylinop.jax, both ways.

    lx_op = pjl.LinearOperator(K)                       # ours, to lineax's solvers
    lx.linear_solve(lx_op, b, pjl.Structured())         # and ours among them
    K = pjl.as_operator(lx_op)                          # lineax's, to pylinop.jax's functions

Examples
--------
>>> import jax.numpy as jnp, lineax as lx
>>> import pylinop.jax as pj, pylinop.jax.lineax as pjl
>>> A = pjl.LinearOperator(pj.Diag(jnp.array([1.0, 3.0])) + pj.LowRank(jnp.ones((2, 1))))
>>> lx.linear_solve(A, jnp.array([3.0, 5.0]), pjl.Structured()).value.round(3)
Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

from .._base.kind_flags import names
from .operators import FUNCTIONS as functions
from .operators import Operator, kind

__all__ = ["LinearOperator", "Structured", "as_operator"]

_DIAGONAL = names("diagonal") | {"Zeros"}


class LinearOperator(lx.AbstractLinearOperator):  # type: ignore[misc]
    """An operator of pylinop.jax as one of lineax.

    Parameters
    ----------
    operator : Operator
        Of two dimensions.
    tags : object or iterable of object, optional
        lineax's, of what is known: ``lx.positive_semidefinite_tag``, ``lx.symmetric_tag``, ...
    """

    operator: Operator
    tags: frozenset[object] = eqx.field(static=True)

    def __init__(self, operator: Operator, tags: Any = ()) -> None:
        if not isinstance(operator, Operator) or operator.ndim != 2:
            raise TypeError(
                f"LinearOperator takes an operator of pylinop.jax of two dimensions, not "
                f"{operator!r}"
            )
        self.operator = operator
        many = isinstance(tags, (tuple, list, set, frozenset))
        self.tags = frozenset(tags if many else (tags,))

    def mv(self, vector: Any) -> Any:
        """The product with a vector."""
        return self.operator @ vector

    def as_matrix(self) -> Any:
        """The dense form."""
        return self.operator.toarray()

    def transpose(self) -> LinearOperator:
        """The transpose."""
        return LinearOperator(self.operator.T, lx.transpose_tags(self.tags))

    def in_structure(self) -> Any:
        """Shape and dtype of vectors that it takes."""
        return jax.ShapeDtypeStruct(self.operator.shape[1:], self.operator.dtype)

    def out_structure(self) -> Any:
        """Shape and dtype of its products with them."""
        return jax.ShapeDtypeStruct(self.operator.shape[:1], self.operator.dtype)


def _tagged(*tags: object) -> Any:
    return lambda A: any(t in A.tags for t in tags)


def _is_diagonal(A: LinearOperator) -> bool:
    op = A.operator
    square = op.shape[0] == op.shape[1]
    named = op._node.name in _DIAGONAL and square and _without_offset(op)
    return op.shape == (1, 1) or named or lx.diagonal_tag in A.tags


def _without_offset(op: Operator) -> bool:
    """Is it a Diag of its main diagonal?"""
    args, kwargs = op._node.args
    return op._node.name != "Diag" or (len(args.parts) == 1 and not kwargs.parts)


def _is_symmetric(A: LinearOperator) -> bool:
    definite = _tagged(lx.positive_semidefinite_tag, lx.negative_semidefinite_tag)(A)
    real = not jnp.issubdtype(A.operator.dtype, jnp.complexfloating)
    return _is_diagonal(A) or lx.symmetric_tag in A.tags or (definite and real)


lx.is_diagonal.register(LinearOperator, _is_diagonal)
lx.is_symmetric.register(LinearOperator, _is_symmetric)
lx.is_tridiagonal.register(
    LinearOperator, lambda A: _is_diagonal(A) or lx.tridiagonal_tag in A.tags
)
lx.has_unit_diagonal.register(LinearOperator, _tagged(lx.unit_diagonal_tag))
lx.is_lower_triangular.register(
    LinearOperator, lambda A: _is_diagonal(A) or lx.lower_triangular_tag in A.tags
)
lx.is_upper_triangular.register(
    LinearOperator, lambda A: _is_diagonal(A) or lx.upper_triangular_tag in A.tags
)
lx.is_positive_semidefinite.register(LinearOperator, _tagged(lx.positive_semidefinite_tag))
lx.is_negative_semidefinite.register(LinearOperator, _tagged(lx.negative_semidefinite_tag))
lx.linearise.register(LinearOperator, lambda A: A)
lx.materialise.register(LinearOperator, lambda A: A)
lx.diagonal.register(LinearOperator, lambda A: A.operator.diagonal())
lx.conj.register(LinearOperator, lambda A: LinearOperator(A.operator.conj(), A.tags))


def _tridiagonal(A: LinearOperator) -> Any:
    K = A.operator
    return K.diagonal(), K.diagonal(-1), K.diagonal(1)


lx.tridiagonal.register(LinearOperator, _tridiagonal)


class _Solved(eqx.Module):  # type: ignore[misc]
    """An operator, and how the vectors of its products and of its solutions are nested: structures
    of JAX, and shapes."""

    operator: Operator
    given: Any = eqx.field(static=True)
    found: Any = eqx.field(static=True)


def _nested(structure: Any) -> Any:
    leaves, whole = jax.tree.flatten(structure)
    return whole, tuple(tuple(x.shape) for x in leaves)


def _raveled(vector: Any) -> Any:
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(vector)]
    if len(leaves) == 1:
        return leaves[0].reshape(-1)
    dtype = jnp.result_type(*leaves)
    return jnp.concatenate([x.astype(dtype).reshape(-1) for x in leaves])


def _unraveled(x: Any, nested: Any) -> Any:
    whole, shapes = nested
    if len(shapes) == 1:
        return jax.tree.unflatten(whole, [x.reshape(shapes[0])])
    ends = np.cumsum([math.prod(s) for s in shapes])
    parts = jnp.split(x, [int(k) for k in ends[:-1]])
    return jax.tree.unflatten(whole, [y.reshape(s) for y, s in zip(parts, shapes, strict=True)])


class Structured(lx.AbstractLinearSolver):  # type: ignore[misc]
    """pylinop's direct solve, by the structure, for operators that `as_operator` takes. The matrix
    has to be square and of full rank: a singular one is an error."""

    def init(self, operator: Any, options: dict[str, Any]) -> Any:
        """The operator, and how its vectors are nested."""
        K = as_operator(operator)
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"Structured solves with square matrices, not with {K.shape}")
        return _Solved(K, _nested(operator.out_structure()), _nested(operator.in_structure()))

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> Any:
        """The solution."""
        x = functions.solve(state.operator, _raveled(vector))
        return _unraveled(x, state.found), lx.RESULTS.successful, {}

    def transpose(self, state: Any, options: dict[str, Any]) -> Any:
        """The solver of the transpose."""
        return _Solved(state.operator.T, state.found, state.given), {}

    def conj(self, state: Any, options: dict[str, Any]) -> Any:
        """The solver of the conjugate."""
        return _Solved(state.operator.conj(), state.given, state.found), {}

    def assume_full_rank(self) -> bool:
        """It does."""
        return True


@functools.singledispatch
def as_operator(A: Any) -> Operator:
    """An operator of lineax as one of pylinop.jax, with its structure.

    Parameters
    ----------
    A : lineax.AbstractLinearOperator
        Matrices, pytrees of them (which are one dense matrix), diagonals, tridiagonals, identities,
        sums, products, multiples, tagged ones; and `LinearOperator`.

    Returns
    -------
    Operator

    Raises
    ------
    TypeError
        There is no structure to read off: a function, a Jacobian. Give
        ``lineax.MatrixLinearOperator(A.as_matrix())``.
    """
    raise TypeError(
        f"a {type(A).__name__} has no structure to read off; its dense form is "
        "lineax.MatrixLinearOperator(A.as_matrix())"
    )


as_operator.register(LinearOperator, lambda A: A.operator)


@as_operator.register(lx.MatrixLinearOperator)
def _matrix(A: Any) -> Operator:
    return _dense(A.matrix, A.tags)


@as_operator.register(lx.PyTreeLinearOperator)
def _several(A: Any) -> Operator:
    return _dense(A.as_matrix(), A.tags)


def _dense(matrix: Any, tags: Any) -> Operator:
    real = not jnp.iscomplexobj(matrix)
    if lx.diagonal_tag in tags:
        return kind("Diag", jnp.diagonal(matrix))
    if lx.lower_triangular_tag in tags or lx.upper_triangular_tag in tags:
        lower = lx.lower_triangular_tag in tags
        return kind("Triangular", matrix, lower=lower)
    if lx.symmetric_tag in tags and real:
        return kind("Dense", matrix, assume_a="sym")
    return kind("Dense", matrix)


@as_operator.register(lx.DiagonalLinearOperator)
def _diagonal(A: Any) -> Operator:
    return kind("Diag", lx.diagonal(A))


@as_operator.register(lx.TridiagonalLinearOperator)
def _bands(A: Any) -> Operator:
    return kind("Tridiagonal", A.lower_diagonal, A.diagonal, A.upper_diagonal)


@as_operator.register(lx.IdentityLinearOperator)
def _identity(A: Any) -> Operator:
    return kind("Identity", A.in_size())


@as_operator.register(lx.TaggedLinearOperator)
def _tags(A: Any) -> Operator:
    inner = A.operator
    if isinstance(inner, (lx.MatrixLinearOperator, lx.PyTreeLinearOperator)):
        return _dense(inner.as_matrix(), frozenset(inner.tags) | frozenset(A.tags))
    return as_operator(inner)


as_operator.register(
    lx.AddLinearOperator, lambda A: as_operator(A.operator1) + as_operator(A.operator2)
)
as_operator.register(
    lx.ComposedLinearOperator, lambda A: as_operator(A.operator1) @ as_operator(A.operator2)
)
as_operator.register(lx.MulLinearOperator, lambda A: as_operator(A.operator) * A.scalar)
as_operator.register(lx.DivLinearOperator, lambda A: as_operator(A.operator) / A.scalar)
as_operator.register(lx.NegLinearOperator, lambda A: -as_operator(A.operator))
