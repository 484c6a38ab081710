"""Operators on the arrays of another library: formulas, computed when an array is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import formulas
from .formulas import Node
from .programs import Formula, Program

__all__ = ["Face", "Operator", "computed", "made"]

_KINDS = 64  # of one formula, that are kept


class Face(NamedTuple):
    """The parts of a library's front end: its arrays, its operators, how it runs a program."""

    name: str  # "pylinop.jax"
    library: str  # "JAX"
    is_array: Callable[[Any], bool]
    operation: Callable[..., Node]
    dtype_of: Callable[[Any], Any]  # of an array, as NumPy's
    out_dtype: Callable[[Any], Any]  # the library's for one of NumPy's
    run: Callable[[Any, Any], list[Any]]  # a program; where it is `traced` the parts of a formula
    kind: Callable[[formulas.Parts, Any], Any] | None = None  # of a value, where not by `Formula`
    traced: Callable[[], bool] | None = None  # into a graph, where shapes may be open yet?
    number: Callable[[Any, Operator], Any] | None = None  # one by which an operator is multiplied


def computed(face: Face, node: Node, items: int = 0) -> list[Any]:
    """The value of a node, or its first `items` values, by one program."""
    if face.traced is not None and face.traced():
        return face.run(*formulas.flat(_asked(face, node, items), True, True))
    shape, arrays = node.shape, node.arrays
    if shape is None:
        return face.run(*_flat(face, node, items))
    if len(arrays) != len(set(map(id, arrays))):  # what is one array is one in the program
        return face.run(*_flat(face, node, items))
    program = shape.programs.get(items)
    if program is None:
        program = shape.programs[items] = _flat(face, node, items)[0]
    return face.run(program, arrays)


def _asked(face: Face, node: Node, items: int) -> list[Node]:
    return [face.operation("item", node, k) for k in range(items)] if items else [node]


def _flat(face: Face, node: Node, items: int) -> tuple[Program, Any]:
    parts, arrays = formulas.flat(_asked(face, node, items), True)
    return Formula(parts), arrays


class Operator:
    """A matrix by its structure, on the arrays of a library, which a subclass names by its `face`.

    ``A @ x`` and ``x @ A`` with arrays are arrays; ``A @ B``, ``A + B``, ``c * A``, ``A / c``,
    ``A.T``, ``A.H``, ``A ** p`` are operators, and nothing is computed.
    """

    face: ClassVar[Face]
    __slots__ = ("_node", "_aval", "__weakref__")
    __array_ufunc__ = None  # NumPy's arrays leave the operation to us
    __array_priority__ = 1000.0

    def __init__(self, node: Node) -> None:
        self._node = node
        self._aval: Any = None

    def _kind(self) -> Any:
        if self._aval is None:
            self._aval = self._known_kind()
        return self._aval

    def _known_kind(self) -> Any:
        """Of one that is alike but for its arrays it is known."""
        traced, shape = self.face.traced, self._node.shape
        if shape is None or (traced is not None and traced()):
            return self._found_kind()
        given = tuple([(x.shape, x.dtype) for x in self._node.arrays])
        try:
            known = shape.kinds.get(given)
        except TypeError:  # sizes that are open
            return self._found_kind()
        if known is None:
            if len(shape.kinds) >= _KINDS:
                shape.kinds.clear()
            known = shape.kinds[given] = self._found_kind()
        return known

    def _found_kind(self) -> Any:
        parts, arrays = formulas.flat([self._node], False)
        if self.face.kind is not None:
            return self.face.kind(parts, arrays)
        avals = tuple((tuple(a.shape), self.face.dtype_of(a)) for a in arrays)
        return Formula(parts).kinds(avals)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; with batches in front."""
        return tuple(self._kind()[0])

    @property
    def dtype(self) -> Any:
        """The dtype of its dense form."""
        return self.face.out_dtype(self._kind()[1])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        try:
            shape = "x".join(map(str, self.shape))
        except AttributeError:  # a pytree of other things
            return f"<{self.face.name} operator without its arrays: {self._node.name}>"
        return f"<{shape} {self.face.name} operator with dtype={self.dtype}: {self._node.name}>"

    # -- operations -------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        return _product(self, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(self, other, self)

    def __add__(self, other: Any) -> Any:
        return _sum(self, "add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _sum(self, "add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _sum(self, "subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _sum(self, "subtract", other, self)

    def __neg__(self) -> Any:
        return type(self)(self.face.operation("negative", self))

    def __mul__(self, c: Any) -> Any:
        return _scaled("scale", self, c)

    __rmul__ = __mul__

    def __truediv__(self, c: Any) -> Any:
        return _scaled("over", self, c)

    def __pow__(self, p: int) -> Any:
        return type(self)(self.face.operation("matrix_power", self, p))

    def __getitem__(self, key: Any) -> Any:
        node = self.face.operation("index", self, key)
        part = made(type(self), node)
        return part if part.ndim >= 2 else computed(self.face, node)[0]

    def __bool__(self) -> bool:
        raise ValueError(f"an operator of shape {self.shape} is neither true nor false")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"an operator of shape {self.shape} on arrays of {self.face.library} is not made an "
            f"array of NumPy by itself: take .toarray(), or a function of {self.face.name}"
        )

    @property
    def T(self) -> Any:
        """The transpose."""
        return type(self)(self.face.operation("view", self, 1))

    mT = T

    @property
    def H(self) -> Any:
        """The adjoint."""
        return type(self)(self.face.operation("view", self, 3))

    def conj(self) -> Any:
        """The conjugate."""
        return type(self)(self.face.operation("view", self, 2))

    def toarray(self) -> Any:
        """The dense form, an array."""
        return computed(self.face, self._node)[0]

    todense = toarray

    def trace(self) -> Any:
        """The trace."""
        return computed(self.face, self.face.operation("trace", self))[0]

    def diagonal(self, offset: int = 0) -> Any:
        """A diagonal."""
        return computed(self.face, self.face.operation("diagonal", self, offset=offset))[0]


def made(cls: type[Operator], node: Node) -> Any:
    """An operator of a node, whose shapes fit; values are not looked at."""
    op = cls(node)
    if cls.face.traced is None or not cls.face.traced():
        op._kind()
    return op


def _is_scalar(face: Face, c: Any) -> bool:
    return isinstance(c, (int, float, complex)) or (face.is_array(c) and c.ndim == 0)


def _matrix(face: Face, x: Any) -> Any:
    """A factor or a summand: an operator or an array; None: it is neither."""
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    return x if isinstance(x, Operator) or face.is_array(x) else None


def _product(op: Operator, a: Any, b: Any) -> Any:
    face = op.face
    a, b = _matrix(face, a), _matrix(face, b)
    if a is None or b is None:
        return NotImplemented
    for x in (a, b):
        if face.is_array(x) and x.ndim == 0:
            raise ValueError("matmul: scalar operands are not allowed, use '*' instead")
    node = face.operation("matmul", a, b)
    both = isinstance(a, Operator) and isinstance(b, Operator)
    return made(type(op), node) if both else computed(face, node)[0]


def _sum(op: Operator, name: str, a: Any, b: Any) -> Any:
    face = op.face
    a, b = _matrix(face, a), _matrix(face, b)
    if a is None or b is None:
        return NotImplemented
    for x, y in ((a, b), (b, a)):
        if face.is_array(x) and x.ndim < 2:
            raise ValueError(
                f"an array of shape {tuple(x.shape)} is no matrix: it cannot be added to an "
                f"operator of shape {y.shape}; a multiple of the identity is "
                f"c * {face.name}.Identity(n)"
            )
    return made(type(op), face.operation(name, a, b))


def _scaled(name: str, a: Operator, c: Any) -> Any:
    face = a.face
    if _is_scalar(face, c):
        c = c if face.number is None else face.number(c, a)
        return type(a)(face.operation(name, a, c))
    if isinstance(c, Operator):
        raise ValueError(
            f"the product of operators is @, the element-wise one {face.name}.multiply"
        )
    if face.is_array(c):
        raise ValueError(
            f"operators are multiplied by numbers, not by what has shape {tuple(c.shape)}: "
            f"products are @, element-wise ones {face.name}.multiply"
        )
    return NotImplemented
