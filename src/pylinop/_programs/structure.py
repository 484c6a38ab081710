"""The structure of a formula: all of it but the contents of its arrays. Two formulas of one
structure are one program of their arrays.

An array of the formula is an input of the program, wherever it stands: as a leaf, as an argument of
a function, as a parameter of a kind. What is not known to be the same again (a function made within
another, an object of somebody's class, a value that is there already) has no structure."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.kind_flags import names
from .._gradients.trace import OfArray
from .._lazy.decompositions import Function, Result
from .._lazy.kinds import FORM, VALUE, Hole, Kind, parameters
from .._lazy.matrix_functions import OfForm

__all__ = ["Structure", "key_of", "structure_of"]

_NODES = 20_000  # of a formula: those of some thousand arrays
_WIDE = 64  # rows and columns of a constant matrix; what is made of larger ones pays to be kept
_TOTAL = 1 << 20  # elements of all arrays
_OBJECTS = {
    OfForm: ("name", "function", "dtype", "kwargs"),
    Function: ("name", "parts"),
    Result: ("__name__", "part", "start", "at"),
}
_OPENED = frozenset(getattr(_core, name) for name in names("anew"))
_PLAIN = frozenset((int, bool, str, bytes, type(None), type, types.EllipsisType))
_DISPATCHER = type(np.sum)
_FUNCTIONS: tuple[Any, ...] = (types.FunctionType, types.BuiltinFunctionType, np.ufunc)
# What the core tells formulas apart by: kinds that are opened, attributes that count, functions.
_TABLES = _OPENED, {**_OBJECTS, Hole: ("at",)}, frozenset((*_FUNCTIONS, _DISPATCHER)), Kind


class Structure(NamedTuple):
    """A key, the arrays, the rows of a recipe (replay.py), and the places of the values."""

    key: Any
    arrays: list[Any]
    rows: tuple[tuple[Any, tuple[int, ...]], ...]
    values: tuple[int, ...]


class _Unknown(Exception):
    """There is no structure."""


def _constant(x: Any) -> Any:
    """A key for what no array is in."""
    cls = type(x)
    if cls in _PLAIN:
        return x if cls is str or x is None else (cls, x)
    if cls is float or cls is complex:
        return cls, repr(x)
    if cls is tuple or cls is list:
        return cls, tuple([_constant(y) for y in x])
    if cls is dict:
        return dict, tuple([(k, _constant(y)) for k, y in x.items()])
    if isinstance(x, _FUNCTIONS):
        if isinstance(x, types.FunctionType) and (x.__closure__ or "<" in x.__qualname__):
            raise _Unknown
        return x
    if cls is slice:
        return slice, _constant(x.start), _constant(x.stop), _constant(x.step)
    if cls is Hole:
        return Hole, x.at
    if isinstance(x, np.dtype) or cls is _DISPATCHER:
        return x
    if isinstance(x, _core.Operator):
        return _operator(x)
    if isinstance(x, np.generic):
        return cls, repr(x)
    names = _OBJECTS.get(cls)
    if names is None:
        raise _Unknown
    return cls, tuple([_constant(getattr(x, name)) for name in names])


class _Reader:
    """Reads a formula, arguments first."""

    def __init__(self, params: list[Any], limited: bool) -> None:
        self.limited = limited
        self.arrays = [p.array for p in params]
        self.places = {id(p.lazy): k for k, p in enumerate(params)}
        self.inputs: dict[int, int] = {}  # by the ids of arrays that are no parameters
        self.nodes: list[Any] = []  # (node, arguments, places of those), inputs counted later
        self.key: list[Any] = []

    def input(self, a: Any) -> int:
        """The place of an array that is no parameter."""
        at = self.inputs.get(id(a))
        if at is None:
            wide = self.limited and a.ndim > 1 and min(a.shape[-2:]) > _WIDE
            if type(a) is not np.ndarray or wide:
                raise _Unknown
            at = self.inputs[id(a)] = len(self.arrays)
            self.arrays.append(a)
        return at

    def argument(self, x: Any) -> Any:
        """The place of an argument of a node: of node k it is -2 - k; of a constant its key."""
        if is_lazy(x):
            return self.places[id(x)]
        if isinstance(x, np.ndarray):
            return self.input(x)
        return _constant(x)

    def kind(self, a: Any) -> Any:
        """A kind whose arrays are arguments as well; its key."""
        made, takes = a._more
        args, holes, more = list(a._args), list(made.holes), bytearray(takes)
        names = [name for name, _ in parameters(made.cls)]

        def opened(x: Any, number: int, place: int) -> Any:
            if isinstance(x, np.ndarray):
                args.append(x)
                holes.append((number, place))
                more.append(VALUE)
                return Hole(len(args) - 1)
            return x

        given = tuple([opened(x, k, 0) for k, x in enumerate(made.args)])
        named = {
            k: opened(x, names.index(k) if k in names else -1, 0) for k, x in made.kwargs.items()
        }
        if len(args) > len(a._args):
            made = Kind(made.cls, given, named, tuple(holes))
            a = _core._LazyArray("made", tuple(args), a.shape, a.dtype, (made, bytes(more)))
        key = made.cls, _constant(given), _constant(named), made.holes, a._more[1]
        return a, key

    def operator(self, a: Any) -> Any:
        """An operator, as a kind of its arrays where it has some; its key, its arguments."""
        (op,) = a._args
        cls = type(op)
        if cls not in _OPENED or op._init is None:
            return a, _operator(op), [None]
        parts, takes = zip(*map(_content, op._init), strict=True)
        numbers = [k for k, x in enumerate(parts) if type(x) is np.ndarray]
        if not numbers:
            return a, _operator(op), [None]
        filled = tuple([Hole(numbers.index(k)) if k in numbers else x for k, x in enumerate(parts)])
        made = Kind(cls, filled, {}, tuple([(k, 0) for k in numbers]))
        arrays = tuple([parts[k] for k in numbers])
        more = made, bytes([takes[k] for k in numbers])
        of = _core._LazyArray("made", arrays, a.shape, a.dtype, more)
        return of, (cls, _constant(filled), more[1]), [self.input(x) for x in arrays]

    def node(self, a: Any) -> None:
        head, more = a._head, a._more
        if head == "leaf":
            if more is not None:
                raise _Unknown
            self.places[id(a)] = self.input(a._args[0])
            return
        of, key = a, None
        if head == "operator":
            of, key, found = self.operator(a)
        else:
            if a._value is not None or a._form is not None:
                raise _Unknown
            if head == "made" and type(more[0]) is Kind:
                of, key = self.kind(a)
            elif more is not None:
                key = _constant(more)
            found = [self.argument(x) for x in of._args]
        self.places[id(a)] = -2 - len(self.nodes)
        self.nodes.append((of, tuple([x if type(x) is int else -1 for x in found])))
        self.key.append((head, key, tuple(found), a.shape, a.dtype))


def _content(x: Any) -> tuple[Any, int]:
    """A parameter of an operator, of a matrix without more its array, and how a kind takes it."""
    if type(x) is _core.Dense and x._init is not None:
        array = x._given("a")
        if type(array) is np.ndarray and sum(y is not None for y in x._init) == 1:
            return array, FORM
    return x, VALUE


def _operator(op: Any) -> Any:
    """The key of an operator without arrays, or of a multiple of one."""
    if op._init is None:
        if op._by != "scaled":
            raise _Unknown
        inner, by = op._operands
        return type(op), _constant(by), _operator(inner), op.shape, op.dtype
    return type(op), _constant(tuple(op._init)), op.shape, op.dtype


def structure_of(values: list[Any], params: list[Any], limited: bool = True) -> Structure | None:
    """The structure of formulas; its arrays are those of the parameters first, in their order.
    None: they have none. `limited`: nor have those of arrays that pay to be looked at at each
    call, as what is made of them is kept."""
    if not all(type(p) is OfArray for p in params):
        return None
    reader = _Reader(params, limited)
    stack, known = list(values), reader.places
    try:
        while stack:
            a = stack[-1]
            if id(a) in known:
                stack.pop()
                continue
            below = [x for x in a._args if is_lazy(x) and id(x) not in known]
            if below:
                stack += below
            else:
                stack.pop()
                reader.node(a)
        return _whole(reader, values)
    except _Unknown:
        return None


def key_of(value: Any, params: list[Any]) -> tuple[Any, list[Any]] | None:
    """A key of a formula and its arrays, by the core: formulas of one key have one structure. None:
    it has none there, as those of other than common parts and of more than some hundred nodes."""
    if not all(type(p) is OfArray for p in params):
        return None
    return _core._lazy_key(value, [p.lazy for p in params], [p.array for p in params], _TABLES)


def _whole(reader: _Reader, values: list[Any]) -> Structure:
    arrays, total = reader.arrays, 0
    for a in arrays:
        if a.dtype.char not in "fdFD" or not a.dtype.isnative or not a.flags.aligned:
            raise _Unknown
        total += a.size
    if reader.limited and (total > _TOTAL or len(reader.nodes) > _NODES):
        raise _Unknown
    n = len(arrays)

    def counted(places: Any) -> tuple[int, ...]:
        return tuple([x if x >= -1 else n - 2 - x for x in places])

    rows = tuple([(a, counted(places)) for a, places in reader.nodes])
    ends = counted([reader.places[id(v)] for v in values])
    kinds = tuple([(a.shape, a.dtype) for a in arrays])
    return Structure((kinds, tuple(reader.key), ends), arrays, rows, ends)
