"""Equations computed: plans in C for arrays of the four floating-point dtypes, NumPy's loops for
all others."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, dlpack, errors
from .._base.lazy_import import Later
from . import grammar, toeplitz, views, weighted
from .grammar import Equation, fail
from .sizes import Sized, given, sized

_VERIFY = Later("_verify.contractions")

_Pairs = tuple[tuple[int, int], ...]
_LETTERS = 52  # labels that NumPy takes
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


class Task(NamedTuple):
    """What of a call of `einsum` is no array."""

    equation: Equation
    sizes: tuple[tuple[str, int], ...] = ()
    outside: Any = None
    dtype: Any = None
    casting: str = "safe"
    path: _Pairs | None = None


def pairs(path: Any, n: int, ones: bool = False) -> _Pairs | None:
    """NumPy's path as pairs of places, the made one behind the others; None: the planner's. With
    ``ones`` an operand comes behind the n that are written, as `_repeated` adds it: a path names
    it, as that of `einsum_path` does, or it comes last."""
    if isinstance(path, str) or not isinstance(path, Sequence) or len(path) == 0:
        return None
    steps = list(path[1:] if path[0] == "einsum_path" else path)
    if not all(isinstance(step, Sequence) and not isinstance(step, str) for step in steps):
        return None  # ("greedy", memory)
    if ones and sum(len(step) - 1 for step in steps) == n - 1:
        at = n
        for i, step in enumerate(steps):
            steps[i] = tuple(k + (k >= at) for k in step)
            at -= sum(k < at for k in step)
        steps.append((0, 1))
    n += ones
    live = list(range(n))
    made: list[tuple[int, int]] = []
    new = n
    for step in steps:
        if not all(0 <= i < len(live) for i in step) or len(set(step)) != len(step):
            raise ValueError(f"einsum: the path's step {tuple(step)} for {len(live)} operands")
        taken = [live[i] for i in step]
        while len(taken) > 1:
            a, b = live.index(taken.pop(0)), live.index(taken.pop(0))
            made.append((min(a, b), max(a, b)))
            live = [x for k, x in enumerate(live) if k not in (a, b)] + [new]
            taken.insert(0, new)
            new += 1
    if len(live) != 1:
        raise ValueError(f"einsum: the path leaves {len(live)} operands")
    return tuple(made)


def numbered(labels: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """A number for each label, by first appearance."""
    number: dict[str, int] = {}
    for axes in labels:
        for label in axes:
            number.setdefault(label, len(number))
    return number


@functools.lru_cache(maxsize=1024)
def _equation(
    operands: tuple[tuple[str, ...], ...],
    result: tuple[str, ...],
    path: _Pairs | None,
    any_order: bool,
) -> Any:
    number = numbered(operands)
    return _core._Equation(
        tuple(tuple(number[x] for x in axes) for axes in operands),
        tuple(number[x] for x in result),
        path,
        any_order,
    )


@functools.lru_cache(maxsize=1024)
def resolved(
    e: Equation, shapes: tuple[tuple[int, ...], ...], given: tuple[tuple[str, int], ...]
) -> Sized:
    __tracebackhide__ = True
    return sized(e, shapes, dict(given))


def any_order(s: Sized) -> bool:
    """May the result lie in another order than C's? Not where axes of it are merged."""
    return all(isinstance(axis, str) for axis in s.result)


def shape_of(task: Task, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return views.merged_shape(resolved(task.equation, tuple(shapes), task.sizes))


def dtype_of(task: Task, arrays: Sequence[Any]) -> np.dtype[Any]:
    found: np.dtype[Any] = np.result_type(*(a.dtype for a in arrays))
    if task.dtype is None:
        return found
    wanted: np.dtype[Any] = np.dtype(task.dtype)
    for a in arrays:
        if not np.can_cast(a.dtype, wanted, casting=task.casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast operand of dtype {a.dtype} to {wanted} according to the rule"
                f" '{task.casting}'"
            )
    return wanted


def _by_plan(
    labels: Sequence[tuple[str, ...]],
    result: tuple[str, ...],
    path: _Pairs | None,
    free: bool,
    arrays: list[Any],
) -> Any:
    """By a plan in C; where its temporaries pass the memory limit, in halves along an axis: of the
    result, or else of what is summed, whose parts are added."""
    try:
        return _equation(tuple(labels), result, path, free)(*arrays)
    except errors.MaterializationError:
        sizes: dict[str, int] = {}
        for axes, a in zip(labels, arrays):
            for x, n in zip(axes, a.shape):
                sizes[x] = max(n, sizes.get(x, 0))
        outer = [x for x in result if sizes[x] > 1] or [x for x in sizes if sizes[x] > 1]
        if len(arrays) < 3 or not outer:
            raise  # nothing in between gets smaller
        cut = max(outer, key=lambda x: sizes[x])
    half, made = sizes[cut] // 2, []
    for part in (slice(0, half), slice(half, None)):
        own = [_part(a, axes, cut, part) for a, axes in zip(arrays, labels)]
        made.append(_by_plan(labels, result, path, free, own))
    if cut in result:
        return np.concatenate(made, axis=result.index(cut))
    return np.add(*made)


def _part(a: Any, axes: tuple[str, ...], label: str, part: slice) -> Any:
    if not axes:
        return a  # indexed, an array without axes is a scalar, which C does not take
    return a[tuple(part if x == label and n > 1 else slice(None) for x, n in zip(axes, a.shape))]


def _by_numpy(arrays: Sequence[Any], labels: Sequence[tuple[str, ...]], result: Any) -> Any:
    number = numbered(labels)
    if len(number) > _LETTERS:
        raise NotImplementedError(
            f"einsum of {arrays[0].dtype} over {len(number)} labels: NumPy's loops take {_LETTERS}"
        )
    flat: list[Any] = []
    for a, axes in zip(arrays, labels):
        if len(set(axes)) < len(axes):  # NumPy takes no diagonal of sizes 1 and n
            there = dict(zip(axes, a.shape)) | {x: n for x, n in zip(axes, a.shape) if n != 1}
            wide = [there[x] for x in axes]
            a = np.broadcast_to(a, wide)
        flat += [a, [number[x] for x in axes]]
    return np.einsum(*flat, [number[x] for x in result])


def _normal(a: Any) -> Any:
    """As C takes it: aligned, native, with strides that count elements."""
    fits = all(s % a.itemsize == 0 for s, n in zip(a.strides, a.shape) if n > 1)
    if a.flags.aligned and a.dtype.isnative and fits and type(a) is np.ndarray:
        return a
    return np.array(a, a.dtype.newbyteorder("="), order="C", subok=False)


def _recognised(task: Task, s: Sized, dtype: np.dtype[Any], arrays: Sequence[Any]) -> Any:
    """By an operator that the equation is, or None."""
    if dtype.char not in "fdFD" or task.path is not None or s.spread:
        return None
    found = toeplitz.found(s)
    if found is not None:
        return toeplitz.product(s, arrays, dtype, task.outside, found)
    if all(isinstance(x, str) for t in (*s.operands, s.result) for x in t):
        if all(a.dtype == dtype for a in arrays):
            return weighted.product(s.operands, s.result, arrays)  # type: ignore[arg-type]
    return None


def _computed(task: Task, s: Sized, dtype: np.dtype[Any], arrays: Sequence[Any]) -> Any:
    seen = [
        views.view(task.equation, s, i, a.astype(dtype, copy=False), task.outside)
        for i, a in enumerate(arrays)
    ]
    labels, result = tuple(x[1] for x in seen), views.result_labels(s)
    if dtype.char in "fdFD":
        made = _by_plan(labels, result, task.path, any_order(s), [_normal(a) for a, _ in seen])
    else:
        made = _by_numpy([a for a, _ in seen], labels, result)
    return made


class Direct(NamedTuple):
    """A contraction that C reads of the arrays as they come."""

    equation: Any
    merged: tuple[int, ...] | None  # the result's shape, where axes of it are merged
    around: tuple[Any, ...] | None  # of each operand, where something is read beyond its axes
    outside: Any

    def __call__(self, arrays: Sequence[Any], out: Any) -> Any:
        """The result, or NotImplemented: what is not for C, passes a limit or has to be said."""
        if out is not None and (self.merged is not None or self.around is not None):
            return NotImplemented
        if self.around is not None:
            if not all(type(a) is np.ndarray and a.dtype.char in "fdFD" for a in arrays):
                return NotImplemented
            arrays = [views.padded(a, w, self.outside) for a, w in zip(arrays, self.around)]
        try:
            made = self.equation(*arrays, out=out)
        except (ValueError, errors.MaterializationError):
            return NotImplemented
        if self.merged is None or made is NotImplemented:
            return made
        return made.reshape(self.merged)


@functools.lru_cache(maxsize=1024)
def direct(
    e: Equation,
    shapes: tuple[tuple[int, ...], ...],
    given: tuple[tuple[str, int], ...],
    outside: Any,
    path: _Pairs | None,
) -> Direct | None:
    """None where an operator is recognised, or something has to be copied before."""
    s = resolved(e, shapes, given)
    plain = all(isinstance(x, str) for t in (*s.operands, s.result) for x in t)
    gram = plain and weighted.places(s.operands, s.result) is not None
    if toeplitz.found(s) is not None or gram:
        return None
    read = [views.reading(e, s, i, shape, outside) for i, shape in enumerate(shapes)]
    labels = [r.labels for r in read]
    if any(r.empty or 0 in r.shape for r in read):
        return None
    result = views.result_labels(s)
    if not set(result) <= {x for t in labels for x in t}:
        return None
    number = numbered(labels)
    try:
        made = _core._Equation(
            tuple(tuple(number[x] for x in t) for t in labels),
            tuple(number[x] for x in result),
            path,
            any_order(s),
            tuple((r.shape, r.starts, r.along) for r in map(views.Reading.inside, read)),
        )
    except (NotImplementedError, ValueError):
        return None  # too many labels: said where it is computed
    around = tuple(r.around for r in read) if any(r.around for r in read) else None
    return Direct(made, None if any_order(s) else views.merged_shape(s), around, outside)


def run(task: Task, arrays: Sequence[Any], out: Any = None) -> Any:
    """The contraction of NumPy arrays, now."""
    __tracebackhide__ = True
    if task.dtype is None:
        shapes = tuple([a.shape for a in arrays])
        found = direct(task.equation, shapes, task.sizes, task.outside, task.path)
        made = found(arrays, out) if found is not None else NotImplemented
        if made is not NotImplemented:
            return made
    s = resolved(task.equation, tuple(a.shape for a in arrays), task.sizes)
    dtype = dtype_of(task, arrays)
    made = _recognised(task, s, dtype, arrays)
    if made is None:
        made = _computed(task, s, dtype, arrays)
    made = np.asarray(made, dtype)
    if config.get("verify") and dtype.char in "fdFD":
        _VERIFY.checked(task, s, arrays, made)
    made = views.merged(s, made)
    if out is None:
        return made if made.ndim else made[()]
    if out.shape != made.shape:
        raise fail(task.equation.text, f"out has shape {out.shape}, the result has {made.shape}")
    np.copyto(out, made, casting=task.casting)  # type: ignore[arg-type]
    return out


def plan(task: Task, arrays: Sequence[Any]) -> tuple[Any, Sized, tuple[tuple[str, ...], ...]]:
    """(the plan as data or None where NumPy computes, sizes, labels of the operands)."""
    s = resolved(task.equation, tuple(a.shape for a in arrays), task.sizes)
    dtype = dtype_of(task, arrays)
    seen = [
        views.view(task.equation, s, i, a.astype(dtype, copy=False), task.outside)
        for i, a in enumerate(arrays)
    ]
    labels = tuple(x[1] for x in seen)
    if dtype.char not in "fdFD":
        return None, s, labels
    equation = _equation(labels, views.result_labels(s), task.path, any_order(s))
    data = equation.plan(*(_normal(a) for a, _ in seen))
    data["slots"] = _slots(data, seen, s, dtype)
    return data, s, labels


def _slots(data: Any, seen: Sequence[Any], s: Sized, dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """What the numbers `a`, `b`, `c` of a plan's steps are: operands as the equation reads them,
    the result, and temporaries, which are written whole, without gaps."""
    n = data["operands"]
    shapes = {k: tuple(a.shape) for k, (a, _) in enumerate(seen)}
    shapes[n] = tuple(s.sizes[x] for x in views.result_labels(s))
    for step in data["steps"]:
        if step["c"] > n:
            kept = [loop["size"] for loop in step["loops"] if not loop["summed"]]
            matrix = step["sizes"][:2] if step["how"] != "nest" else ()
            shapes[step["c"]] = (math.prod((*kept, *matrix)),)
    names = (
        [f"a{k}" for k in range(n)] + ["out"] + [f"t{k + 1}" for k in range(len(shapes) - n - 1)]
    )
    return [{"name": name, "shape": shapes[k], "dtype": dtype.name} for k, name in enumerate(names)]


def from_sublists(args: Sequence[Any]) -> tuple[Equation, list[Any]]:
    """NumPy's other way of writing it: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""

    def axes(labels: Any) -> tuple[grammar.Axis, ...]:
        try:
            found = [x if x is Ellipsis else operator.index(x) for x in labels]
        except TypeError:
            raise TypeError(
                "einsum: each operand is followed by a list of its labels, integers or Ellipsis;"
                f" there is {labels!r}"
            ) from None
        if any(x is not Ellipsis and x < 0 for x in found):
            raise ValueError(f"einsum: labels are 0 or more, not {labels!r}")
        return tuple(grammar.Ellipsis_() if x is Ellipsis else f"_{x}" for x in found)

    operands = list(args[: 2 * (len(args) // 2) : 2])
    terms = tuple(axes(x) for x in args[1 : 2 * (len(args) // 2) : 2])
    result = axes(args[-1]) if len(args) % 2 else None
    named = ",".join(_shown(t) for t in terms) + (
        "->" + _shown(result) if result is not None else ""
    )
    if result is None:
        wide = max((int(a[1:]) for t in terms for a in t if isinstance(a, str)), default=0)
        pad = len(str(wide))

        def even(t: tuple[grammar.Axis, ...]) -> tuple[grammar.Axis, ...]:
            return tuple(f"_{a[1:].zfill(pad)}" if isinstance(a, str) else a for a in t)

        terms = tuple(even(t) for t in terms)  # in their order as numbers
    return Equation(terms, result, False, named), operands


def _shown(axes: tuple[grammar.Axis, ...]) -> str:
    return " ".join("..." if isinstance(a, grammar.Ellipsis_) else str(a) for a in axes)


def task_of(
    args: Sequence[Any],
    sizes: Mapping[str, int] | None,
    outside: Any,
    dtype: Any,
    casting: str,
    optimize: Any,
) -> tuple[Task, list[Any]]:
    """(what is asked, its operands) of the arguments of a call."""
    if not args:
        raise ValueError("einsum: an equation and its operands are wanted; there are none")
    if casting not in _CASTINGS:
        raise ValueError(f"casting must be one of {', '.join(_CASTINGS)}, not {casting!r}")
    if outside is not None and not any(outside is x or outside == x for x in views.OUTSIDE):
        raise ValueError(f"outside must be None, 0 or 'wrap', not {outside!r}")
    if isinstance(args[0], str):
        e, sizes = grammar.read(args[0], sizes)
        operands = list(args[1:])
    elif len(args) > 1:
        e, operands = from_sublists(args)
    else:
        raise TypeError("einsum: an equation as text, or operands each followed by its labels")
    if any(issubclass(type(a), np.ma.MaskedArray) for a in operands):
        raise TypeError("einsum: masked arrays are not taken: fill them first")
    said = given(e, sizes)
    written = len(operands)
    e, operands = _repeated(e, said, operands)
    path = pairs(optimize, written, len(operands) > written)
    return Task(e, said, outside, dtype, casting, path), operands


def _repeated(
    e: Equation, said: tuple[tuple[str, int], ...], operands: list[Any]
) -> tuple[Equation, list[Any]]:
    """With axes of the result that no operand has and whose sizes are said: of one operand, which
    is not multiplied, it is read again along them; of several they are those of ones."""
    if not said or e.result is None or len(operands) != len(e.operands):
        return e, operands
    there = {x for axes in e.operands for axis in axes for x in grammar.labels_of(axis)}
    sizes = dict(said)
    wanted = (x for axis in e.result for x in grammar.labels_of(axis))
    new = tuple(x for x in dict.fromkeys(wanted) if x in sizes and x not in there)
    if not new:
        return e, operands
    shape = tuple(sizes[x] for x in new)
    if len(operands) > 1 or isinstance(operands[0], _core.Operator):
        ones = np.broadcast_to(np.ones((), np.bool_), shape)
        return e._replace(operands=(*e.operands, new)), [*operands, ones]
    x = operands[0] if isinstance(operands[0], _core.Lazy) else dlpack.as_array(operands[0])
    wide = np.broadcast_to(x, (*shape, *x.shape))
    return e._replace(operands=((*new, *e.operands[0]),)), [wide]
