"""`function`: a formula of placeholders as a function of arrays.

    formulas --> rows: (function, arguments) one by one, sizes still symbols
    a call   --> sizes of the symbols from the arrays' shapes, all equations checked
             --> LazyArrays, function by function; at the second call with these sizes a recipe of
                 them (`_programs/replay.py`) is kept, and from then on it alone is run

Nodes have sizes that are numbers, and plans are those of these sizes: a size that was not met
before costs one recording and one plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._api import explain as explaining
from .._base.checks import is_lazy
from .._base.explanation import Explanation
from .._gradients.watched import watched
from .._lazy import build, leaves
from .._programs.replay import Recipe, recorded, replayed
from . import contract, decompositions, elements, indices, linear  # noqa: F401, their rules
from .expressions import Size, Symbol, atoms, replaced, value
from .placeholder import Symbolic, below, shown
from .provenance import Equation, equal, here
from .unify import solved

__all__ = ["Memory", "Template", "function"]

_MOST = 256  # sizes of which recipes are kept


class Ref(NamedTuple):
    """The place of an array or of a formula among all, the arrays first."""

    at: int


class Captured(NamedTuple):
    """The place of a LazyArray that was in the formula among these."""

    at: int


class Input(NamedTuple):
    """What a placeholder was."""

    name: str
    shape: tuple[Any, ...]
    dtype: np.dtype[Any]
    assume_a: str | None

    def __str__(self) -> str:
        return f"{self.name} {shown(self.shape)}"


class Memory(NamedTuple):
    """Bytes: of the arrays given, of the values that NumPy's functions leave, of the results, of
    what the largest plan takes besides."""

    operands: int
    values: int
    results: int
    work: int

    @property
    def total(self) -> int:
        """All together."""
        return sum(self)


class _Met(NamedTuple):
    """Sizes of which there is no recipe. Once: whether one can be made was not tried."""

    sizes: dict[Symbol, int]
    once: bool


class _Parts(NamedTuple):
    inputs: tuple[Input, ...]
    rows: tuple[tuple[Any, tuple[Any, ...], dict[str, Any]], ...]
    captured: tuple[Any, ...]  # LazyArrays, which each call makes anew
    outputs: tuple[Ref, ...]
    shapes: tuple[tuple[Any, ...], ...]
    single: bool
    equations: tuple[Equation, ...]


class Template:
    """A function of arrays that `function` made: ``f(x, w)`` is a LazyArray, or a tuple of them."""

    def __init__(self, parts: _Parts, fixed: Mapping[Symbol, int]) -> None:
        self._parts, self._fixed = parts, dict(fixed)
        every: dict[Symbol, None] = {}
        for shape in (*(i.shape for i in parts.inputs), *parts.shapes):
            for n in shape:
                every.update(dict.fromkeys(atoms(n)))
        for e in parts.equations:
            every.update(dict.fromkeys([*atoms(e.left), *atoms(e.right)]))
        self._symbols = tuple(every)
        self._met: dict[Any, _Met] = {}  # by the tuple of shapes, as the recipes
        self._recipes: dict[Any, tuple[Any, Any]] = {}  # rows and values, a tuple where several
        self._plain = all(i.assume_a is None for i in parts.inputs)
        self._dtypes = [i.dtype for i in parts.inputs]
        self._single = parts.single
        self._in_c = (self._recipes, tuple(self._dtypes))
        self._read, self._others = _reader(parts.inputs)
        self._places = [_places(args, kwargs) for _, args, kwargs in parts.rows]
        self._captured = recorded(list(parts.captured), [])
        self._sides = tuple({(e.left, e.right, e.at_least): e for e in parts.equations}.values())

    def __reduce__(self) -> Any:
        return Template, (self._parts, self._fixed)

    def __repr__(self) -> str:
        given = ", ".join(map(str, self._parts.inputs))
        made = ", ".join(map(shown, self._parts.shapes))
        fixed = "".join(f", {s} = {n}" for s, n in self._fixed.items())
        return f"<function {given} -> {made}{fixed}>"

    # -- sizes -------------------------------------------------------------------------------------

    def _facts(self, shapes: Sequence[tuple[int, ...]]) -> list[Equation]:
        line = here()
        found = []
        for i, shape in zip(self._parts.inputs, shapes):
            if len(shape) != len(i.shape):
                raise ValueError(f"{i} has {len(i.shape)} dimensions, the array {shape}")
            what = f"the argument {i.name} {shape}"
            found += [equal(n, m, what, line) for n, m in zip(i.shape, shape)]
        found += [equal(Size({(s,): 1}), n, "bind", None) for s, n in self._fixed.items()]
        return found

    def _at_once(self, shapes: Sequence[tuple[int, ...]]) -> dict[Symbol, int] | None:
        """The symbols' sizes where each is an axis of an array and all fits; None: it has to be
        looked at closer."""
        known = dict(self._fixed)
        if [len(s) for s in shapes] != [len(i.shape) for i in self._parts.inputs]:
            return None
        for k, axis, symbol in self._read:
            n = shapes[k][axis]
            if n < symbol.least or known.setdefault(symbol, n) != n:
                return None
        if len(known) != len(self._symbols):
            return None
        fits = all(value(size, known) == shapes[k][axis] for k, axis, size in self._others)
        if fits and all(e.holds(value(e.left, known), value(e.right, known)) for e in self._sides):
            return known
        return None

    def _bound(self, facts: list[Equation]) -> dict[Symbol, int]:
        """The symbols' sizes from what is known; ValueError where they do not fit or are open."""
        known: dict[Symbol, int] = {}
        for e in facts:
            only = list(e.left.terms.items()) if isinstance(e.left, Size) else []
            if len(only) == 1 and len(only[0][0]) == 1 and only[0][1] == 1:
                atom = only[0][0][0]
                if isinstance(atom, Symbol) and e.right >= atom.least:
                    known.setdefault(atom, int(e.right))
        every = [*self._parts.equations, *facts]
        if all(s in known for s in self._symbols) and all(
            e.holds(value(e.left, known), value(e.right, known)) for e in every
        ):
            return known
        found = solved(every, self._symbols)
        for s in self._symbols:
            low, high, _ = found[s]
            if low != high:
                text = f"between {low} and {high}" if high is not None else f"{low} or more"
                raise ValueError(f"the arguments leave {s} open, {text}: f.bind({s}=...) says it")
        return {s: int(found[s].low or 0) for s in self._symbols}

    def _by_name(self, sizes: Mapping[str, int]) -> list[Equation]:
        facts = []
        for name, n in sizes.items():
            found = [s for s in self._symbols if s.name == name]
            if len(found) != 1:
                there = ", ".join(sorted({s.name for s in self._symbols}))
                raise ValueError(
                    f"{name} is the name of {len(found)} symbols; there are {there or 'none'}"
                )
            if isinstance(n, bool) or not hasattr(n, "__index__"):
                raise TypeError(f"{name} is an integer, not {n!r}")
            facts.append(equal(Size({(found[0],): 1}), n.__index__(), "given", None))
        return facts

    def bind(self, **sizes: int) -> Template:
        """The same function with sizes of some symbols: arrays of others are refused."""
        facts = self._by_name(sizes)
        solved([*self._parts.equations, *self._facts(()), *facts], self._symbols)
        own = {next(iter(atoms(e.left))): int(e.right) for e in facts}
        return Template(self._parts, {**self._fixed, **own})

    def sizes(self, **sizes: int) -> dict[str, int]:
        """All symbols' sizes by name, from some of them; ValueError as of a call."""
        return {s.name: n for s, n in self._at(sizes).items()}

    def _at(self, sizes: Mapping[str, int]) -> dict[Symbol, int]:
        return self._bound([*self._facts(()), *self._by_name(sizes)])

    # -- formulas ----------------------------------------------------------------------------------

    def _build(self, given: Sequence[Any], known: Mapping[Symbol, int]) -> list[Any]:
        """The outputs as LazyArrays, function by function."""
        made = list(given)
        captured = replayed(self._captured, ())

        def filled(x: Any) -> Any:
            if type(x) is Ref:
                return made[x.at]
            if type(x) is Captured:
                return captured[x.at]
            if type(x) in (list, tuple):
                return type(x)(filled(y) for y in x)
            if type(x) is dict:
                return {k: filled(v) for k, v in x.items()}
            return replaced(x, lambda n: value(n, known)) if type(x) in (Size, slice) else x

        for (f, args, kwargs), places in zip(self._parts.rows, self._places):
            if places is None:
                x = f(*filled(args), **filled(kwargs))
            else:
                x = f(*[a if k < 0 else made[k] for k, a in zip(places, args)])
            # a tuple: all results of a function, of which others are to be taken
            made.append(x if is_lazy(x) or isinstance(x, tuple) else leaves.lazy(x))
        return [made[r.at] for r in self._parts.outputs]

    def _recipe(self, known: Mapping[Symbol, int]) -> Recipe | None:
        """How the LazyArrays are made at these sizes; None where functions ask for values."""
        try:
            given = [watched(a) for a in self._hollow(known)]
            return recorded(self._build(given, known), given)
        except TypeError as error:
            if "differentiated" in str(error):
                return None
            raise

    def _hollow(self, known: Mapping[Symbol, int]) -> list[Any]:
        """Arrays of the inputs' sizes, without memory."""
        return [
            np.broadcast_to(np.ones((), i.dtype), tuple(value(n, known) for n in i.shape))
            for i in self._parts.inputs
        ]

    def __call__(self, *arrays: Any) -> Any:
        """The formula of the arrays, deferred."""
        if self._plain:
            made = _core._lazy_template(self._in_c, arrays)
            if made is not None:
                return made
            given = [leaves.lazy(a) for a in arrays]
        else:
            given = self._assumed(arrays)
        if [a.dtype for a in given] != self._dtypes:
            given = self._cast(given)
        made = _core._lazy_template(self._in_c, tuple(given))
        if made is not None:
            return made
        built = self._built(tuple([a.shape for a in given]), given)
        return built[0] if self._single else tuple(built)

    def _assumed(self, arrays: Sequence[Any]) -> list[Any]:
        inputs = self._parts.inputs
        own = [*inputs, *inputs[:1] * len(arrays)]  # too many arrays are refused behind this
        return [leaves.lazy(a, i.assume_a) for a, i in zip(arrays, own)]

    def _cast(self, given: list[Any]) -> list[Any]:
        """The arrays in the placeholders' dtypes, where these hold all their numbers."""
        inputs = self._parts.inputs
        if len(given) != len(inputs):
            raise TypeError(f"{self!r} takes {len(inputs)} arrays, got {len(given)}")
        for a, i in zip(given, inputs):
            if not np.can_cast(a.dtype, i.dtype, "safe"):
                raise TypeError(f"{i} is of {i.dtype}, the array of {a.dtype}: cast it with astype")
        return [build.cast(a, i.dtype) for a, i in zip(given, inputs)]

    def _built(self, shapes: Any, given: Sequence[Any]) -> list[Any]:
        """The outputs at sizes of which there is no recipe: it is made when they are met again, as
        many sizes are met once."""
        met = self._met.get(shapes)
        if met is None:
            if len(self._met) >= _MOST:
                self._met.clear()
                self._recipes.clear()
            sizes = self._at_once(shapes)
            if sizes is None:
                sizes = self._bound(self._facts(shapes))
            met = self._met[shapes] = _Met(sizes, True)
        elif met.once:
            recipe = self._recipe(met.sizes)
            self._met[shapes] = met._replace(once=False)
            if recipe is not None:
                values = recipe.values
                self._recipes[shapes] = (recipe.rows, values[0] if self._single else values)
        return self._build(given, met.sizes)

    # -- what it does ------------------------------------------------------------------------------

    def _roots(self, sizes: Mapping[str, int]) -> list[Any]:
        known = self._at(sizes)
        given = [
            leaves.lazy(a, i.assume_a) for a, i in zip(self._hollow(known), self._parts.inputs)
        ]
        return self._build(given, known)

    def explain(self, **sizes: int) -> Explanation:
        """How it is computed at some sizes, as `LazyArray.explain`. Nothing is computed."""
        parts = [explaining.of_lazy(root) for root in self._roots(sizes)]
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return Explanation._joined([(f"result {k}", p) for k, p in enumerate(parts)])

    def memory(self, **sizes: int) -> Memory:
        """Bytes that a call takes at some sizes: of the arrays given, of values by NumPy, of the
        results, and of the largest plan besides; each value counts once."""
        roots = self._roots(sizes)
        inputs = self._parts.inputs
        known = self._at(sizes)
        operands = sum(
            i.dtype.itemsize * math.prod(value(n, known) for n in i.shape) for i in inputs
        )
        ends = {id(r): r for r in roots}
        values = {
            id(a): a
            for root in roots
            for a in _nodes(root)
            if a._head in ("call", "of form") and id(a) not in ends
        }
        work = max((r.explain().memory for r in roots if r._head != "leaf"), default=0)
        held = sum(a.size * a.dtype.itemsize for a in values.values())
        results = sum(r.size * r.dtype.itemsize for r in ends.values())
        return Memory(operands, held, results, int(work))


def _reader(inputs: Sequence[Input]) -> Any:
    """Where the arrays' shapes say a symbol, (array, axis, symbol), and all their other axes,
    (array, axis, size)."""
    read, others = [], []
    for k, i in enumerate(inputs):
        for axis, n in enumerate(i.shape):
            only = list(n.terms.items()) if isinstance(n, Size) else []
            if len(only) == 1 and only[0][1] == 1 and len(only[0][0]) == 1:
                atom = only[0][0][0]
                if isinstance(atom, Symbol):
                    read.append((k, axis, atom))
                    continue
            others.append((k, axis, n))
    return read, others


def _places(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[int] | None:
    """Of a function's arguments that are formulas the place, of others -1; None where sizes or
    formulas may be within them."""
    if kwargs or any(
        isinstance(a, (list, tuple, dict, slice, Size)) and type(a) is not Ref for a in args
    ):
        return None
    return [a.at if type(a) is Ref else -1 for a in args]


def _nodes(root: Any) -> Iterable[Any]:
    stack, seen = [root], set()
    while stack:
        a = stack.pop()
        if id(a) not in seen:
            seen.add(id(a))
            yield a
            stack += [x for x in a._args if is_lazy(x)]


def _flat(inputs: Sequence[Symbolic], outputs: Sequence[Symbolic]) -> Any:
    """Rows of the formulas, LazyArrays within them, and the places of the outputs."""
    places: dict[int, Ref] = {id(x): Ref(k) for k, x in enumerate(inputs)}
    captured: list[Any] = []

    def placed(x: Any, within: bool = False) -> Any:
        if isinstance(x, Symbolic):
            return places[id(x)]
        if is_lazy(x) and x._head != "leaf":
            captured.append(x)
            return Captured(len(captured) - 1)
        if is_lazy(x) and x.ndim == 0:  # one that was computed keeps its number
            return leaves.lazy(x._args[0])
        if type(x) in (list, tuple):
            return type(x)(placed(y, True) for y in x)
        if type(x) is dict:
            return {k: placed(v) for k, v in x.items()}
        if type(x) is np.ndarray and x.ndim == 0:  # operators read numbers when they are made
            return x[()] if within else leaves.lazy(x)
        return x

    rows: list[Any] = []
    for x in below(outputs):
        if id(x) in places:
            continue
        if x._function is None:
            raise ValueError(f"{x._named()} is in the formula, and not among the arguments")
        rows.append((x._function, tuple([placed(y) for y in x._args]), placed(x._kwargs)))
        places[id(x)] = Ref(len(inputs) + len(rows) - 1)
    return tuple(rows), tuple(captured), tuple(places[id(x)] for x in outputs)


def function(inputs: Any, outputs: Any) -> Template:
    """A function of arrays from a formula of placeholders.

    Parameters
    ----------
    inputs : placeholder or tuple of them
        The arguments, in order. Arrays, operators and LazyArrays come in their place.
    outputs : formula or tuple of them
        What it gives: a LazyArray, or a tuple. Arrays, operators and LazyArrays in the formula are
        not copied: each result is that of what they hold when it is computed. Indices of
        placeholders are copied as they are written.

    Returns
    -------
    Template
        ``f(x, w)`` finds the symbols' sizes from the shapes, checks all equations, and gives the
        formula of the arrays as LazyArrays. ``f.bind(N=100)`` fixes sizes, ``f.sizes(N=100)`` says
        the others, ``f.explain(N=100)`` how it is computed, ``f.memory(N=100)`` the bytes.
        It pickles, and may be called from several threads.

    Raises
    ------
    ValueError
        A placeholder that is not among the arguments, or twice; sizes that fit no arrays at all. Of
        a call: shapes that do not fit, with the fewest equations in conflict and their lines.
    TypeError
        Arguments that are no placeholders. Of a call: a dtype that is not safely the placeholder's.

    Cost
    ----
    A call with sizes that were met before makes the LazyArrays alone, microseconds; of new sizes it
    checks, records and plans once.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> N, K = pl.symbols("N K")
    >>> X, y = pl.placeholder((N, K)), pl.placeholder(N)
    >>> f = pl.function((X, y), pl.solve(X.T @ X, X.T @ y))
    >>> A, b = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0])
    >>> f(A, b).toarray().round(9)
    array([1., 2.])
    """
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    single = not isinstance(outputs, (tuple, list))
    made = (outputs,) if single else tuple(outputs)
    for x in given:
        if not isinstance(x, Symbolic) or x._function is not None:
            raise TypeError(f"the arguments of a function are placeholders, not {x!r}")
        x._label()
    if len({id(x) for x in given}) < len(given):
        raise ValueError("a placeholder is twice among the arguments")
    for x in made:
        if not isinstance(x, Symbolic):
            raise TypeError(f"a formula of placeholders is due, not a {type(x).__name__}")
    rows, captured, places = _flat(given, made)
    own = [Input(x._label(), x.shape, x.dtype, x._assume) for x in given]
    equations = [e for x in below([*given, *made]) for e in x._equations]
    unique = tuple(dict.fromkeys(equations))
    parts = _Parts(tuple(own), rows, captured, places, tuple(x.shape for x in made), single, unique)
    template = Template(parts, {})
    solved(unique, template._symbols)
    return template
