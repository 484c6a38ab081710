"""`program`: a function of LazyArrays as a function of arrays, planned as a whole, which may be cut
in two: values now, cotangents later; and from compiled code by its text.

    arrays --kinds--> the formula that f builds for them, once --> a program of them and of what f
    holds, which is read at each call"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import as_array
from .._gradients import trees
from .._gradients.contents import printed
from .._gradients.trace import OfArray
from . import tapes
from .freezing import Freezable
from .halves import Kept
from .programs import Cotangents, Met, Program, WithGradients, as_results, hollow
from .structure import structure_of

__all__ = ["NumpyProgram", "Residual", "program"]

_numbers = itertools.count(1)
_by_number: weakref.WeakValueDictionary[int, NumpyProgram] = weakref.WeakValueDictionary()


@functools.lru_cache(maxsize=64)
def _row(n: int) -> tuple[trees.Leaf, ...]:
    """How n arguments are nested that are arrays."""
    return tuple(map(trees.Leaf, range(n)))


_SHORT = 1 << 16  # bytes of arrays of which a value takes as long as its gradient does


class _Entry(NamedTuple):
    """What f builds of arrays of certain kinds: the arrays that it holds, the values' nesting."""

    program: Met
    held: list[Any]
    nested: Any


class Residual:
    """The second half of a program that was cut: takes cotangents of the values to those of the
    arguments, as often as it is called. What it keeps of the first half goes when it is dropped.

    Attributes
    ----------
    nbytes : int
        Bytes of the arguments, of the values and of the factors that are kept."""

    def __init__(self, entry: _Entry, kept: Kept, printed: Any, structure: Any, kinds: Any) -> None:
        self._entry, self._kept, self._structure, self._kinds = entry, kept, structure, kinds
        self._printed = printed

    @property
    def nbytes(self) -> int:
        return self._kept.nbytes

    def __repr__(self) -> str:
        count = len(self._kept.arrays)
        return f"<the second half of a program of {count} arrays, {self.nbytes} bytes>"

    def __call__(self, cotangents: Any) -> Any:
        """Cotangents of the arguments, of those of the values, which are nested as the values
        are; RuntimeError where an array that the function holds was written to in between."""
        for a, before in zip(self._entry.held, self._printed, strict=True):
            if printed(a) != before:
                raise RuntimeError(
                    f"an array of shape {a.shape} that the function holds has been written to "
                    "since the first half was run: the derivative would be that of something else"
                )
        given: list[Any] = []
        trees.flatten(cotangents, given)
        if len(given) != len(self._kinds):
            raise ValueError(f"{len(given)} cotangents for {len(self._kinds)} values")
        made = [_cotangent(g, *kind) for g, kind in zip(given, self._kinds, strict=True)]
        by = self._kept.gradients
        if by is None and _is_short(self._entry, self._kept, self._kinds):
            by = _with_gradients(self._entry, self._kept)[1:]
        if by is not None:
            times = [np.multiply(g, made[0], dtype=g.dtype) for g in by]
            return trees.filled(self._structure, [g[()] for g in times])
        found = self._kept.second(made) if self._kept.shares() else None
        if found is None:
            arrays = self._kept.arrays
            back = Cotangents(self._entry.program, tuple(range(len(arrays))), len(made))
            found = _values(back, [*arrays, *self._entry.held, *made])
        return trees.filled(self._structure, [_own(g)[()] for g in found])


def _is_short(entry: _Entry, kept: Kept, kinds: Any) -> bool:
    """Is the value one real number, of so little that it takes as long as its gradient does? Then
    the first half makes that too, and the second one multiplies it by the cotangent."""
    if len(kinds) != 1 or kinds[0][0] != () or kinds[0][1].kind != "f":
        return False
    return sum(a.nbytes for a in [*kept.arrays, *entry.held]) <= _SHORT and not kept.shares()


def _with_gradients(entry: _Entry, kept: Kept) -> list[Any]:
    program = WithGradients(entry.program, tuple(range(len(kept.arrays))))
    value, *kept.gradients = _values(program, [*kept.arrays, *entry.held])
    return [value, *kept.gradients]


def _cotangent(g: Any, shape: Any, dtype: Any) -> Any:
    a = as_array(g)
    if a.shape != shape:
        raise ValueError(f"a cotangent of shape {a.shape} for a value of shape {shape}")
    if a.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("a complex cotangent for a real value")
    return np.ascontiguousarray(a, dtype).reshape(shape)


def _values(program: Program, arrays: list[Any]) -> list[Any]:
    kinds = program.kinds(tuple([(a.shape, a.dtype) for a in arrays]))
    return list(map(_own, tapes.values(program, arrays, kinds, tapes.LONGEST)))


def _own(a: Any) -> Any:
    """An array that the caller may write to."""
    return a if a.flags.writeable else a.copy()


def _holds_lazies(x: Any) -> bool:
    if type(x) in (np.ndarray, float):
        return False
    parts: list[Any] = []
    trees.flatten(x, parts)
    return any(map(is_lazy, parts))


class NumpyProgram:
    """A function of arrays that `program` made."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f, self._known = f, {}  # type: ignore[var-annotated]
        self._number = next(_numbers)
        _by_number[self._number] = self
        functools.update_wrapper(self, f)

    def __repr__(self) -> str:
        return f"<program {self._name()}>"

    def _name(self) -> str:
        return getattr(self._f, "__name__", "function")

    # -- what f builds

    def _read(self, args: Any) -> tuple[Any, list[Any]]:
        """How the arguments are nested, and their arrays."""
        if all(type(x) is np.ndarray and x.dtype.char in "fdFD" for x in args):
            return _row(len(args)), list(args)
        parts: list[Any] = []
        structure = trees.flatten(tuple(args), parts)
        for k, x in enumerate(parts):
            if isinstance(x, _core.Operator):
                raise TypeError(
                    f"{self._name()}, argument {k}: a program takes arrays, not a "
                    f"{type(x).__name__}: make operators within it"
                )
        return structure, [trees.as_parameter(x, self._name()) for x in parts]

    def _entry(self, structure: Any, avals: Any) -> _Entry:
        key = avals, len(structure) if structure is _row(len(structure)) else repr(structure)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(structure, avals)
        return found

    def _made(self, structure: Any, avals: Any) -> _Entry:
        params = [OfArray(hollow(a, False)._args[0]) for a in avals]
        args = trees.filled(structure, [p.lazy for p in params])
        values: list[Any] = []
        nested = trees.flatten(self._f(*args), values)
        for x in values:
            if not is_lazy(x):
                raise TypeError(
                    f"{self._name()} gave a {type(x).__name__} where a LazyArray is due: use "
                    "pylinop's and NumPy's functions of its arguments"
                )
        found = structure_of(values, params, limited=False)
        if found is None:
            raise NotImplementedError(
                f"{self._name()} builds what no program is made of: an operator that holds arrays "
                "of its own, a function made within another, or integers. pl.value_and_grad, "
                "pl.vjp and pl.evaluate take it as it is"
            )
        return _Entry(Met(found), found.arrays[len(params) :], nested)

    # -- runs

    def __call__(self, *args: Any) -> Any:
        """The values, as arrays, nested as f returns them; of LazyArrays LazyArrays."""
        if any(_holds_lazies(x) for x in args):
            return self._f(*args)
        structure, arrays = self._read(args)
        entry = self._entry(structure, tuple([(a.shape, a.dtype) for a in arrays]))
        found = _values(entry.program, [*arrays, *entry.held])
        return trees.filled(entry.nested, [a[()] for a in found])

    def _first(self, entry: _Entry, kept: Kept, kinds: Any) -> list[Any]:
        """The values of the first half."""
        if _is_short(entry, kept, kinds):
            try:
                return _with_gradients(entry, kept)[:1]
            except (np.linalg.LinAlgError, NotImplementedError):  # for the second half to say
                return _values(entry.program, [*kept.arrays, *entry.held])
        if kept.shares() or kept.values is not None:
            return [_own(a) for a in as_results(kept.first(), kinds, np.dtype)]
        return _values(entry.program, [*kept.arrays, *entry.held])

    def cut(self, *args: Any) -> tuple[Any, Residual]:
        """The program in two halves: the values, and the function that takes their cotangents to
        those of the arguments, a tuple, later and as often as wanted.

        The arguments are copied. Of arrays that f holds the second half raises RuntimeError where
        they were written to in between."""
        structure, arrays = self._read(args)
        entry = self._entry(structure, tuple([(a.shape, a.dtype) for a in arrays]))
        before = [printed(a) for a in entry.held]
        whole = [*arrays, *entry.held]
        kinds = entry.program.kinds(tuple([(a.shape, a.dtype) for a in whole]))
        kept = Kept(entry.program, arrays, entry.held)
        found = self._first(entry, kept, kinds)
        shown = trees.filled(entry.nested, [a[()] for a in found])
        return shown, Residual(entry, kept, before, structure, kinds)

    def value_and_gradients(self, argnums: Any, args: Any) -> Any:
        """The value and the gradients by some arguments, as `pl.value_and_grad` gives them; None
        where that has to look at them more closely."""
        several = isinstance(argnums, (tuple, list))
        by = tuple(argnums) if several else (argnums,)
        structure, arrays = self._read(args)
        n = len(args)
        if structure is not _row(n) or not all(type(k) is int and 0 <= k < n for k in by):
            return None
        entry = self._entry(structure, tuple([(a.shape, a.dtype) for a in arrays]))
        whole = [*arrays, *entry.held]
        kinds = entry.program.kinds(tuple([(a.shape, a.dtype) for a in whole]))
        if type(entry.nested) is not trees.Leaf or kinds[0][0] != () or kinds[0][1].kind != "f":
            return None
        value, *found = _values(WithGradients(entry.program, by), whole)
        made = tuple([g if g.ndim else g[()] for g in found])
        return value[()], made if several else made[0]

    # -- for compiled callers (entry.py)

    def text(self) -> bytes:
        """The text by which compiled code calls the program (`lop_capi_call`): arrays in the order
        of the arguments, which are no nests, to the values. It holds as long as the program
        lives."""
        return f"numpy\n{self._number}".encode()

    def pullback_text(self, arguments: int) -> bytes:
        """Likewise of the second half: so many arguments and a cotangent of each value, to the
        cotangents of all arguments."""
        if isinstance(arguments, bool) or not hasattr(arguments, "__index__") or arguments < 1:
            raise ValueError(f"the number of arguments is 1 or more, not {arguments!r}")
        return f"numpy\n{self._number} {arguments.__index__()}".encode()

    def gradients_text(self, arguments: int) -> bytes:
        """Likewise of the values, real numbers, and behind them of the gradients of each by all of
        so many arguments: for callers who want both, of which nothing is computed twice. Of one
        number the second half is its gradient times the cotangent."""
        return self.pullback_text(arguments) + b" gradients"


def _of_text(text: str, avals: Any) -> tuple[Program, int, list[Any]]:
    """The program of a text, which of its arrays are arguments, and what stands behind these."""
    number, _, rest = text.partition(" ")
    cut, _, gradients = rest.partition(" ")
    owner = _by_number.get(int(number))
    if owner is None:
        raise ValueError(
            "the program of this text is gone: it has to be kept as long as it is called"
        )
    count = int(cut) if cut else len(avals)
    if gradients and len(avals) != count:
        raise ValueError(f"{len(avals)} arrays for {count} arguments")
    entry = owner._entry(_row(count), tuple(avals[:count]))
    if not cut:
        return entry.program, count, entry.held
    if gradients:
        return WithGradients(entry.program, tuple(range(count))), count, entry.held
    values = len(entry.program.values)
    if len(avals) != count + values:
        raise ValueError(f"{len(avals)} arrays for {count} arguments and {values} values")
    return Cotangents(entry.program, tuple(range(count)), values), count, entry.held


def _runner(text: str, arrays: Any) -> tuple[Program, Callable[[Any], list[Any]]]:
    whole, count, held = _of_text(text, [(a.shape, a.dtype) for a in arrays])
    return whole, lambda given: whole([*given[:count], *held, *given[count:]])


def written_into(text: str, arrays: Any, outs: Any) -> None:
    """The values of a program, into arrays that are there."""
    _, run = _runner(text, arrays)
    found = run(arrays)
    if len(found) != len(outs):
        raise ValueError(f"{len(outs)} arrays for {len(found)} values")
    for out, value in zip(outs, found, strict=True):
        if out.shape != value.shape:
            raise ValueError(f"an array of shape {out.shape} for a value of shape {value.shape}")
        out[...] = value


def freezable(text: str, arrays: Any) -> Freezable:
    """A program for a tape; not where the function holds arrays that others write to."""
    return Freezable(_runner(text, arrays)[1], False, open=True)


def shapes(text: str, given: Any) -> list[tuple[int, ...]]:
    """The shapes of a program's values, of those of its arrays, which are float64."""
    avals = [(tuple(shape), np.dtype(float)) for shape in given]
    whole, count, held = _of_text(text, avals)
    own = [(a.shape, a.dtype) for a in held]
    return [shape for shape, _ in whole.kinds((*avals[:count], *own, *avals[count:]))]


def program(f: Callable[..., Any]) -> NumpyProgram:
    """A function of LazyArrays as a function of arrays, planned as a whole.

    Parameters
    ----------
    f : callable
        Gets LazyArrays in place of the arrays in its arguments (nested tuples, lists, dicts) and
        returns LazyArrays, nested. It runs once for each set of shapes and dtypes: it must give the
        same formula for them. Arrays that it holds are read at each call; numbers are not.

    Returns
    -------
    NumpyProgram
        ``p(*arrays)`` gives the values. ``values, residual = p.cut(*arrays)`` runs the first half;
        ``residual(cotangents)``, nested as the values, gives the cotangents of the arguments, a
        tuple, later and as often as wanted. ``p.text()`` and ``p.pullback_text(arguments)`` are
        what compiled code calls them by.

    Raises
    ------
    TypeError
        An argument is no array of floats or complex numbers, or ``f`` gives no LazyArray or asks
        for values.
    NotImplementedError
        ``f`` builds what no program is made of: integers, operators that hold many arrays.
    RuntimeError
        By the second half, where an array that ``f`` holds was written to in between.

    Notes
    -----
    From the third call with arrays of the same kinds on small programs run from C, without the GIL,
    several at once. `value_and_grad` and its kin take a program as any function, and do not run
    ``f`` again. Convention of cotangents: `gradients`'.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> p = pl.program(lambda d, b: pl.solve(pl.Diag(d), b))
    >>> x, residual = p.cut(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> x
    array([3., 2.])
    >>> residual(np.ones(2))
    (array([-3., -1.]), array([1. , 0.5]))
    """
    if not callable(f):
        raise TypeError(f"program takes a function, not a {type(f).__name__}")
    return NumpyProgram(f)
