"""Operators on arrays of JAX: formulas, computed when an array is asked for."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._programs import formulas
from .._programs import operators as neutral
from .._programs.functions import Functions
from .arrays import is_array, operation, out_dtype, strong
from .primitive import run

__all__ = ["FUNCTIONS", "Operator", "kind"]

FACE = neutral.Face(
    "pylinop.jax",
    "JAX",
    is_array,
    operation,
    lambda a: np.dtype(a.dtype),
    out_dtype,
    run,
    number=strong,
)


@jax.tree_util.register_pytree_node_class
class Operator(neutral.Operator):
    """A matrix by its structure, on arrays of JAX, traced or not: a pytree of these arrays.

    ``A @ x`` and ``x @ A`` with arrays are arrays of JAX; ``A @ B``, ``A + B``, ``c * A``,
    ``A / c``, ``A.T``, ``A.H``, ``A ** p`` and ``pylinop.jax.inv(A)`` are operators, and nothing is
    computed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import pylinop.jax as pj
    >>> A = pj.Diag(jnp.array([1.0, 2.0])) + pj.LowRank(jnp.ones((2, 1)))
    >>> A @ jnp.ones(2)
    Array([3., 4.], dtype=float32)
    """

    __slots__ = ()
    face = FACE

    def tree_flatten(self) -> tuple[Any, Any]:
        """The arrays, and the formula of them."""
        parts, arrays = formulas.flat([self._node], False)
        return tuple(arrays), parts

    @classmethod
    def tree_unflatten(cls, parts: Any, arrays: Any) -> Operator:
        """The formula of other arrays."""
        return cls(formulas.nodes_of(parts, arrays)[0])


FUNCTIONS = Functions(FACE, Operator)


def kind(name: str, *args: Any, **kwargs: Any) -> Operator:
    """An operator of a kind."""
    op: Operator = neutral.made(Operator, operation(name, *args, **kwargs))
    return op
