"""Formulas over arrays that are not there yet: nodes, and their flat form, which is hashable and so
can be the static part of a pytree and the parameter of a primitive.

A node is a function by name and its arguments, with nodes and arrays in their places. The flat form
is the nodes in the order in which they are computed, each a (name, arguments) where `Ref(i)` stands
for node i and `Slot(k)` for array k. It is run on LazyArrays: what comes out is a formula that
pylinop plans as a whole."""

from __future__ import annotations

import copy
import itertools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._lazy.leaves import lazy
from . import table

__all__ = [
    "Held",
    "Kept",
    "Node",
    "Parts",
    "Several",
    "flat",
    "held",
    "kept_in",
    "leaf",
    "made_of",
    "nodes_of",
    "number_of",
    "numbered",
    "operand",
    "operations",
    "run",
    "with_held",
]


class Ref(NamedTuple):
    """The place of a node."""

    at: int


class Slot(NamedTuple):
    """The place of an array."""

    at: int


class Number(NamedTuple):
    """A Python number or word, or a dtype: equal to another one only with its type and sign."""

    type: type
    shown: str
    value: Any


class Several(NamedTuple):
    """A list, tuple, dict or slice of arguments."""

    type: type
    parts: tuple[Any, ...]


class Held:
    """An object that is passed on unchanged: a NumPy operator, a callable, a matrix of SciPy. With
    `memory`, the arrays of such a matrix, it is that of these arrays, as an operator is."""

    def __init__(self, held: Any, memory: tuple[Any, ...] | None = None) -> None:
        self.held, self.memory = held, memory
        self._key = id(held) if memory is None else (type(held), held.shape, *map(id, memory))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other._key == self._key  # what is held keeps its id

    def __hash__(self) -> int:
        return hash(self._key)


_INDICES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr")),
    "coo": ("coords",),
    "dia": ("offsets",),
}


def held(x: Any) -> Held:
    """An object, and of a matrix of SciPy, in which other arrays may be put, what it is now."""
    of_scipy = any(c.__module__.startswith("scipy.sparse.") for c in type(x).__mro__)
    if not of_scipy or not hasattr(x, "tocsr"):
        return Held(x)
    if x.format not in _INDICES:
        x = x.tocsr()  # lists and dictionaries
    memory: list[Any] = [x.data]
    for name in _INDICES[x.format]:
        found = getattr(x, name)
        memory += found if type(found) is tuple else [found]
    return Held(copy.copy(x), tuple(memory))


class Kept(NamedTuple):
    """An object in a compiled graph, by its number: its compiler takes numbers for constants."""

    number: int


_numbers = itertools.count()
_kept: dict[int, Any] = {}  # by number: references to what others hold
_by_id: dict[int, int] = {}
_made: dict[int, set[Any]] = {}  # by number: what was made of it


def number_of(thing: Any) -> int:
    """The number of an object that a graph is to find again, as long as it is somewhere. (Its
    compiler drops a graph when an object is gone that it was made for.)"""
    number = _by_id.get(id(thing))
    if number is not None and _kept[number]() is thing:
        return number
    number = _by_id[id(thing)] = next(_numbers)

    def gone(_: Any, number: int = number, at: int = id(thing)) -> None:
        _kept.pop(number, None)
        _made.pop(number, None)
        if _by_id.get(at) == number:
            del _by_id[at]

    try:
        _kept[number] = weakref.ref(thing, gone)
    except TypeError:  # there is no such reference to it
        _kept[number] = lambda: thing
    return number


def made_of(number: int, made: Any) -> None:
    """Keeps something as long as the object of a number."""
    _made.setdefault(number, set()).add(made)


def numbered(number: int) -> Held:
    """The object of a number, as it is now."""
    found = _kept.get(number, lambda: None)()
    if found is None:
        raise RuntimeError(
            "an object that a compiled graph was made with, a matrix of SciPy say, is gone: keep "
            "it, or compile anew"
        )
    return held(found)


def _thing(x: Any) -> Any:
    return x.held if type(x) is Held else numbered(x.number).held if type(x) is Kept else x


def kept_in(parts: Parts) -> tuple[int, ...]:
    """The numbers of objects in the flat form of a graph."""
    found: list[int] = []

    def look(x: Any) -> None:
        if type(x) is Kept:
            found.append(x.number)
        elif type(x) is Several:
            for y in x.parts:
                look(y[1] if x.type is dict else y)

    for _, *given in parts.code:
        for x in given:
            look(x)
    return tuple(found)


def with_held(parts: Parts, things: Any) -> Parts:
    """The flat form with objects in the places of their numbers, in order."""
    left = iter(things)

    def put(x: Any) -> Any:
        if type(x) is Kept:
            return next(left)
        if type(x) is not Several:
            return x
        pairs = x.type is dict
        return Several(x.type, tuple((y[0], put(y[1])) if pairs else put(y) for y in x.parts))

    code = tuple((name, put(args), put(words)) for name, args, words in parts.code)
    return Parts(code, parts.asked, parts.arrays)


class Shape:
    """What nodes have in common that are alike but for their arrays, and what is known of it: the
    kinds of their value by those of the arrays, and their programs by what is asked of them."""

    __slots__ = ("kinds", "programs")

    def __init__(self) -> None:
        self.kinds: dict[Any, Any] = {}
        self.programs: dict[int, Any] = {}


class Node:
    """A function of nodes, arrays and constants; or, without a name, an array. Of small ones the
    shape is known, and the arrays in it, one for each place."""

    __slots__ = ("name", "args", "shape", "arrays")

    def __init__(
        self, name: str, args: Any, shape: Shape | None = None, arrays: tuple[Any, ...] = ()
    ) -> None:
        self.name, self.args, self.shape, self.arrays = name, args, shape, arrays

    def __reduce__(self) -> Any:
        """Copies, in other processes too, look their shapes up again."""
        known = self.shape is not None
        return (_again if known else Node), (self.name, self.args)


def leaf(array: Any) -> Node:
    """The node of an array."""
    return Node("", array)


_WORDS: tuple[Any, ...] = (bool, int, float, complex, str)
_NO_KEYWORDS = Several(dict, ())
_LEAF = Shape()
_MOST = 4096  # shapes that are kept
_SMALL = 32  # arrays in what is looked up as a whole
_shapes: dict[Any, Shape] = {}


def _shaped(name: str, args: Any, words: Any) -> Node:
    """A node, with its shape where it is a function of nodes, arrays and numbers alone."""
    key: list[Any] = [name]
    arrays: tuple[Any, ...] = ()
    for x in args.parts:
        if type(x) is Node:
            if x.shape is None:
                return Node(name, (args, words))
            key.append(x.shape)
            arrays += x.arrays
        elif type(x) is Number:
            key.append(x)
        else:
            return Node(name, (args, words))
    for _, x in words.parts:
        if type(x) is not Number:
            return Node(name, (args, words))
    if len(arrays) > _SMALL:
        return Node(name, (args, words))
    whole = (*key, words) if words.parts else tuple(key)
    shape = _shapes.get(whole)
    if shape is None:
        if len(_shapes) >= _MOST:
            _shapes.clear()
        shape = _shapes[whole] = Shape()
    return Node(name, (args, words), shape, arrays)


def _again(name: str, args: Any) -> Node:
    return _shaped(name, *args) if name else Node("", args, _LEAF, (args,))


def _word(x: Any) -> Any:
    """NumPy's words, and JAX's numbers, as those of Python."""
    for own in _WORDS:
        if isinstance(x, own):
            return own(x)
    return x


def _argument(x: Any, taken: Callable[[Any], Any], other: Any = held) -> Any:
    if type(x) is tuple:
        return Several(tuple, tuple([_argument(y, taken, other) for y in x]))
    if type(x) is Node:
        return x
    node = getattr(x, "_node", None)
    if type(node) is Node:
        return node
    array = taken(x)
    if array is not None:
        return Node("", array, _LEAF, (array,))
    if type(x) is list:
        return Several(list, tuple([_argument(y, taken, other) for y in x]))
    if type(x) is dict:
        return Several(dict, tuple((k, _argument(v, taken, other)) for k, v in sorted(x.items())))
    if type(x) is slice:
        whole = x.start, x.stop, x.step
        return Several(slice, tuple(_argument(y, taken, other) for y in whole))
    if x is None or x is Ellipsis or isinstance(x, (bool, int, float, complex, str)):
        x = _word(x)
        return Number(type(x), repr(x), x)
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        dtype = np.dtype(x)
        return Number(np.dtype, dtype.str, dtype)
    return other(x)


def operations(
    taken: Callable[[Any], Any], traced: Callable[[], bool] | None = None
) -> Callable[..., Node]:
    """The function that makes nodes of a library's arrays: `taken` gives what an array is as a
    leaf, None of what is no array. While a graph is `traced` nothing is looked up: its tracer would
    hold on to what was known then."""

    def operation(name: str, *args: Any, **kwargs: Any) -> Node:
        """A function of `table`, or a kind, of its arguments."""
        seen = traced is not None and traced()
        other = Held if seen else held
        words = _argument(kwargs, taken, other) if kwargs else _NO_KEYWORDS
        given = _argument(args, taken, other)
        if seen:
            for x in (*given.parts, *(y for _, y in words.parts)):
                if type(x) is Held and callable(x.held):
                    raise TypeError(
                        f"{name} of a {type(x.held).__name__}, which is no part of a graph: "
                        "compile a function that calls a program(f), with it in f"
                    )
            return Node(name, (given, words))
        return _shaped(name, given, words)

    return operation


def _children(x: Any, found: list[Node]) -> None:
    if type(x) is Node:
        found.append(x)
    elif type(x) is Several:
        for y in x.parts:
            _children(y[1] if x.type is dict else y, found)


def _below(node: Node) -> list[Node]:
    found: list[Node] = []
    if node.name:
        for x in node.args:
            _children(x, found)
    return found


def _placed(x: Any, places: dict[int, Any]) -> Any:
    if type(x) is Node:
        return places[id(x)]
    if type(x) is Several and x.parts:
        if x.type is dict:
            return Several(dict, tuple([(k, _placed(v, places)) for k, v in x.parts]))
        return Several(x.type, tuple([_placed(y, places) for y in x.parts]))
    return x


class Parts(NamedTuple):
    """The flat form: nodes, which of them are asked for, and how many arrays they are of."""

    code: tuple[Any, ...]
    asked: tuple[Any, ...]
    arrays: int


def _found(array: Any, held: list[Any]) -> int:
    """The place of an array among others, which may be one that has no id, as in PyTorch's tracer
    (2.11) one that is made in the graph."""
    for k, x in enumerate(held):
        if x is array:
            return k
    return len(held)


def flat(roots: list[Node], merged: bool, traced: bool = False) -> tuple[Parts, list[Any]]:
    """The flat form of some nodes, and their arrays: one for each node of an array, or with
    `merged` one for each array. (In a pytree the arrays may be replaced by anything, also by one
    object for all: what is one leaf must not depend on that.) While a graph is `traced` nothing is
    asked of arrays but whether they are the same."""
    places: dict[int, Any] = {}
    arrays: dict[int, Slot] = {}
    held: list[Any] = []
    code: list[Any] = []
    stack: list[tuple[Node, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if id(node) in places:
            continue
        if not node.name:
            if not merged:
                key = id(node)
            else:
                key = _found(node.args, held) if traced else id(node.args)
            if key not in arrays:
                arrays[key] = Slot(len(held))
                held.append(node.args)
            places[id(node)] = arrays[key]
        elif ready:
            args, words = node.args
            code.append((node.name, _placed(args, places), _placed(words, places)))
            places[id(node)] = Ref(len(code) - 1)
        else:
            stack.append((node, True))
            stack += [(x, False) for x in _below(node)[::-1]]
    asked = tuple(places[id(r)] for r in roots)
    return Parts(tuple(code), asked, len(held)), held


def _places(x: Any) -> list[Slot]:
    """The places of arrays in an argument, each time that they are there."""
    if type(x) is Slot:
        return [x]
    if type(x) is Several:
        return [s for y in x.parts for s in _places(y[1] if x.type is dict else y)]
    return []


def operand(parts: Parts) -> frozenset[int]:
    """The array that an operator is applied to by a product or a solve, if nothing else is asked
    for, nor made of this array: the value is linear in it."""
    if len(parts.asked) != 1 or parts.asked[0] != Ref(len(parts.code) - 1):
        return frozenset()
    name, args, words = parts.code[-1]
    if name not in ("matmul", "solve") or words.parts:
        return frozenset()
    a, b = args.parts
    slot = a if name == "matmul" and type(b) is Ref else b
    other = b if slot is a else a
    if type(slot) is not Slot or type(other) is not Ref:
        return frozenset()
    used = [s for _, *given in parts.code for x in given for s in _places(x)]
    return frozenset([slot.at] if used.count(slot) == 1 else [])


def _filled(x: Any, nodes: list[Any], arrays: Any, made: bool) -> Any:
    """An argument with values, or with nodes (`made` is false), in the places."""
    if type(x) is Ref:
        return nodes[x.at]
    if type(x) is Slot:
        return arrays[x.at]
    if type(x) is Several:
        if x.type is dict:
            parts: Any = tuple((k, _filled(v, nodes, arrays, made)) for k, v in x.parts)
            return dict(parts) if made else Several(dict, parts)
        parts = tuple(_filled(y, nodes, arrays, made) for y in x.parts)
        if not made:
            return Several(x.type, parts)
        return slice(*parts) if x.type is slice else x.type(parts)
    if made and type(x) is Number:
        return x.value
    return _thing(x) if made else x


def nodes_of(parts: Parts, arrays: Any) -> list[Node]:
    """The nodes of a flat form."""
    leaves = [leaf(a) for a in arrays]
    made: list[Any] = []
    for name, args, kwargs in parts.code:
        made.append(
            Node(name, (_filled(args, made, leaves, False), _filled(kwargs, made, leaves, False)))
        )
    return [_filled(x, made, leaves, False) for x in parts.asked]


def run(parts: Parts, arrays: Any) -> list[Any]:
    """The LazyArrays that a flat form makes of LazyArrays."""
    made: list[Any] = []
    for name, args, kwargs in parts.code:
        found = table.FUNCTIONS[name](
            *_filled(args, made, arrays, True), **_filled(kwargs, made, arrays, True)
        )
        made.append(lazy(found) if isinstance(found, _core.Operator) else found)
    return [_filled(x, made, arrays, True) for x in parts.asked]
