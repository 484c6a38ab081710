"""Operators on arrays of JAX: formulas, computed when an array is asked for."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from . import formulas
from .arrays import is_array, out_dtype
from .formulas import Node, operation
from .primitive import run
from .programs import Formula

__all__ = ["Operator", "computed", "kind", "made"]


def computed(*nodes: Node) -> list[Any]:
    """The values of nodes, by one program."""
    parts, arrays = formulas.flat(list(nodes), True)
    return run(Formula(parts), arrays)


@jax.tree_util.register_pytree_node_class
class Operator:
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

    __slots__ = ("_node", "_aval", "__weakref__")
    __array_ufunc__ = None  # NumPy's arrays leave the operation to us
    __array_priority__ = 1000.0

    def __init__(self, node: Node) -> None:
        self._node = node
        self._aval: Any = None

    def tree_flatten(self) -> tuple[Any, Any]:
        """The arrays, and the formula of them."""
        parts, arrays = formulas.flat([self._node], False)
        return tuple(arrays), parts

    @classmethod
    def tree_unflatten(cls, parts: Any, arrays: Any) -> Operator:
        """The formula of other arrays."""
        return cls(formulas.nodes_of(parts, arrays)[0])

    def _kind(self) -> Any:
        if self._aval is None:
            parts, arrays = formulas.flat([self._node], False)
            avals = tuple((tuple(a.shape), np.dtype(a.dtype)) for a in arrays)
            self._aval = Formula(parts).kinds(avals)[0]
        return self._aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; with batches in front."""
        return tuple(self._kind()[0])

    @property
    def dtype(self) -> Any:
        """The dtype of its dense form."""
        return out_dtype(self._kind()[1])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"<{shape} pylinop.jax operator with dtype={self.dtype}: {self._node.name}>"

    # -- operations -------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    def __add__(self, other: Any) -> Any:
        return _sum("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _sum("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _sum("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _sum("subtract", other, self)

    def __neg__(self) -> Operator:
        return Operator(operation("negative", self))

    def __mul__(self, c: Any) -> Any:
        return _scaled("scale", self, c)

    __rmul__ = __mul__

    def __truediv__(self, c: Any) -> Any:
        return _scaled("over", self, c)

    def __pow__(self, p: int) -> Operator:
        return Operator(operation("matrix_power", self, p))

    def __getitem__(self, key: Any) -> Any:
        node = operation("index", self, key)
        part = made(node)
        return part if part.ndim >= 2 else computed(node)[0]

    def __bool__(self) -> bool:
        raise ValueError(f"an operator of shape {self.shape} is neither true nor false")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"an operator of shape {self.shape} on arrays of JAX is not made an array by itself: "
            "take .toarray(), or a function of pylinop.jax"
        )

    @property
    def T(self) -> Operator:
        """The transpose."""
        return Operator(operation("view", self, 1))

    @property
    def H(self) -> Operator:
        """The adjoint."""
        return Operator(operation("view", self, 3))

    def conj(self) -> Operator:
        """The conjugate."""
        return Operator(operation("view", self, 2))

    def toarray(self) -> Any:
        """The dense form, an array of JAX."""
        return computed(self._node)[0]

    todense = toarray

    def trace(self) -> Any:
        """The trace."""
        return computed(operation("trace", self))[0]

    def diagonal(self, offset: int = 0) -> Any:
        """A diagonal."""
        return computed(operation("diagonal", self, offset=offset))[0]


def made(node: Node) -> Operator:
    """An operator of a node, whose shapes fit; values are not looked at."""
    op = Operator(node)
    op._kind()
    return op


def _is_scalar(c: Any) -> bool:
    return isinstance(c, (int, float, complex)) or (is_array(c) and np.ndim(c) == 0)


def _matrix(x: Any) -> Any:
    """A factor or a summand: an operator or an array; None: it is neither."""
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    return x if isinstance(x, Operator) or is_array(x) else None


def _product(a: Any, b: Any) -> Any:
    a, b = _matrix(a), _matrix(b)
    if a is None or b is None:
        return NotImplemented
    for x in (a, b):
        if is_array(x) and np.ndim(x) == 0:
            raise ValueError("matmul: scalar operands are not allowed, use '*' instead")
    node = operation("matmul", a, b)
    both = isinstance(a, Operator) and isinstance(b, Operator)
    return made(node) if both else computed(node)[0]


def _sum(name: str, a: Any, b: Any) -> Any:
    a, b = _matrix(a), _matrix(b)
    if a is None or b is None:
        return NotImplemented
    for x, y in ((a, b), (b, a)):
        if is_array(x) and np.ndim(x) < 2:
            raise ValueError(
                f"an array of shape {np.shape(x)} is no matrix: it cannot be added to an operator "
                f"of shape {y.shape}; a multiple of the identity is c * pylinop.jax.Identity(n)"
            )
    return made(operation(name, a, b))


def _scaled(name: str, a: Operator, c: Any) -> Any:
    if _is_scalar(c):
        return Operator(operation(name, a, c))
    if isinstance(c, Operator) or is_array(c):
        raise ValueError(
            f"operators are multiplied by numbers, not by what has shape {np.shape(c)}: products "
            "are @, element-wise ones pylinop.jax.multiply"
            if not isinstance(c, Operator)
            else "the product of operators is @, the element-wise one pylinop.jax.multiply"
        )
    return NotImplemented


def kind(name: str, *args: Any, **kwargs: Any) -> Operator:
    """An operator of a kind."""
    return made(operation(name, *args, **kwargs))
