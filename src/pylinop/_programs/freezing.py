"""A program as a tape, which C runs without Python (src/c/exec/tape.h).

    run(arrays) twice, on other numbers --written down--> what was computed, in order
                --places in memory--> steps on slots --_core._tape_new--> a tape
                --compared bit for bit--> kept under the key of the call, or not

What a step takes is known by where it lies: in an argument, in what an earlier step made, or, if
both runs take the very same memory there, in a constant. Anything else (a function that has no form
on a tape, a step of Python's own) makes no tape; nor does one whose bits differ from the program's.
A program may choose by shapes alone (`programs.by_shapes`), as PyTensor's do."""

from __future__ import annotations

import ctypes
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config
from .._base.checks import is_lazy
from .._base.dlpack import is_fixed, is_own
from .._gradients.pieces import stop
from .._gradients.shapes import scattered
from .._lazy import evaluate, numpy_functions, numpy_shapes
from .._structured import determinants
from . import loops
from .coefficients import Sources, known_of, reads
from .marks import is_even, moved, probes, twins
from .programs import Program, by_shapes
from .tape_words import What
from .views import Unfit, View, c_strides, in_c_order, of_views, view_of

__all__ = ["Freezable", "consider"]

_UFUNCS = {
    np.add: What.ADD,
    np.subtract: What.SUBTRACT,
    np.multiply: What.MULTIPLY,
    np.negative: What.NEGATIVE,
    np.conjugate: What.CONJ,
}
_VIEWS: tuple[Any, ...] = (numpy_functions.reshaped, np.broadcast_to, np.transpose, np.reshape)
_VIEWS += (np.swapaxes, np.real, np.imag)
_OF_PLANS = (determinants.pair, evaluate.diagonal, evaluate.trace)
_ALL, _EQUAL = 8, 13  # of exec/tape_proof.h
_FIRST, _TRIES, _MOST = 1, 3, 1024  # calls before the first try, tries, programs that are counted
_LARGEST = 1 << 21  # elements of all arrays of a call
_LONG = 0.1  # seconds of a try that count as a call
_calls: dict[bytes, int] = {}
_pinned: set[bytes] = set()  # keys of tapes that hold for certain numbers alone
_why: dict[bytes, str] = {}  # there is no tape


class Freezable(NamedTuple):
    """How a program is run: its values of arrays, as they are computed, and whether it says
    nothing of matrices that are singular to working precision. `proof` (exec/tape_proof.h) is what
    must be so of the arguments. `open`: it may hold arrays that others write to, whose content a
    tape would keep as it was."""

    run: Callable[[Any], list[Any]]
    quiet: bool
    proof: tuple[Any, ...] = ()
    open: bool = False


class _Wrong(Unfit):
    """Likewise, and none is to be made again."""


class _Tape:
    """The slots and steps, while they are found."""

    def __init__(self, arrays: Any) -> None:
        self.slots: list[Any] = []
        self.places: list[tuple[int, int]] = []
        self.steps: list[Any] = []
        self.constants: list[int | bytes] = []  # where they lie; of our own what they hold
        self.may_change = False  # one of them
        for a in arrays:
            self.placed(view_of(a))

    def placed(self, view: View, content: bytes | None = None) -> Any:
        """A new slot for the memory of a view."""
        low, high = view.reach()
        self.slots.append(high - low if content is None else content)
        self.places.append((low, high))
        return self.found(view)

    def found(self, view: View) -> Any:
        """The view in its slot, the last one: a value may be made once more. None: in none."""
        low, high = view.reach()
        for k in range(len(self.places) - 1, -1, -1):
            start, end = self.places[k]
            if start <= low and high <= end:
                return (k, view.at - start, view.letter, view.shape, view.strides)
        return None

    def taken(self, view: View, of: Any = None) -> Any:
        """Likewise; a constant where it is nothing that is known: the memory of that array."""
        place = self.found(view)
        if place is None:
            self.note(of)
            low, high = view.reach()
            self.constants.append(view.at)
            place = self.placed(view, ctypes.string_at(low, high - low))
        return place

    def own(self, view: View) -> None:
        """An array of the package's own, such as a gradient that is zero: each run makes one anew,
        and it hangs on no numbers, so what it holds is compared."""
        low, high = view.reach()
        content = ctypes.string_at(low, high - low)
        self.constants.append(content)
        self.placed(view, content)

    def note(self, a: Any) -> None:
        self.may_change = self.may_change or not is_fixed(a)

    def value(self, x: Any, like: Any) -> Any:
        """An argument of a function: of a LazyArray its value, of a number a constant."""
        if is_lazy(x):
            known = known_of(x)
            if known is None:
                raise Unfit("an argument without a value")
            return self.array(known, like)
        if isinstance(x, np.ndarray):
            return self.array(x, like)
        content = np.asarray(x, like).tobytes()
        self.slots.append(content)
        self.places.append((0, 0))
        return (len(self.slots) - 1, 0, np.dtype(like).char, (), ())

    def array(self, a: Any, like: Any) -> Any:
        """An array in memory; a constant in the dtype that the function computes in."""
        view = view_of(a)
        if a.dtype == like or self.found(view) is not None:
            return self.taken(view, a)
        self.note(a)
        self.constants.append(view.at)
        self.slots.append(np.ascontiguousarray(a, like).tobytes())
        self.places.append((0, 0))
        return len(self.slots) - 1, 0, np.dtype(like).char, a.shape, c_strides(a.shape)

    def step(
        self, what: int, args: Any, out: Any, axis: int = -1, by: Any = None, letters: bytes = b""
    ) -> None:
        self.steps.append((what, axis, by, letters, tuple(args), (), out))

    def halves(self, a: Any, agree: int) -> None:
        """Whether a matrix was symmetric decided which plans ran."""
        self.step(What.HALVES, [self.taken(view_of(a), a)], self.room(np.dtype("d"), ()), agree)

    def cast(self, place: Any, dtype: Any) -> Any:
        """The same elements in another dtype."""
        if place[2] == dtype.char:
            return place
        if not {place[2], dtype.char} <= set("fdFD"):
            raise Unfit("an operand of another dtype")
        made = self.room(dtype, place[3])
        self.step(What.COPY, [place], made)
        return made

    def room(self, dtype: Any, shape: Any) -> Any:
        """A new slot, which no array lies in."""
        self.slots.append(dtype.itemsize * math.prod(shape))
        self.places.append((0, 0))
        return len(self.slots) - 1, 0, dtype.char, shape, c_strides(shape)

    # -- what was computed

    def plan(self, row: Any, sources: Any) -> None:
        """A plan that ran."""
        plan, keys, numbers, views, _, given_arrays = row
        leaves = tuple(self.leaf(View(*v), a) for v, a in zip(views, given_arrays, strict=False))
        given = tuple(self.source(*pair) for pair in zip(numbers, sources, strict=True))
        out = self.placed(View(*views[-1]))
        self.steps.append((What.PLAN, -1, plan, keys, leaves, given, out))

    def leaf(self, view: View, given: Any) -> Any:
        """A leaf of a plan; of an array that was laid out anew for it a copy."""
        if given is None or self.found(view) is not None:
            return self.taken(view, given)
        seen = view_of(given)
        if self.found(seen) is None or seen.letter != view.letter:
            return self.taken(view, given)
        if seen.shape != view.shape:
            if math.prod(seen.shape) != math.prod(view.shape):
                raise Unfit("a leaf of another shape")
            seen = view_of(given.reshape(view.shape))
        place = self.placed(view)
        self.step(What.COPY, [self.taken(seen)], place)
        return place

    def source(self, number: float, read: Any) -> Any:
        """A coefficient: the number in a slot, times or by a factor; or a constant."""
        return (None, number, False) if read is None else read

    def computed(self, a: Any, last: Any) -> None:
        """A value; `last` is what the plan that ran for it gave, or None."""
        v = view_of(a._value)
        if self.found(v):
            return
        if a._head == "leaf":
            if is_own(a._args[0]):
                self.own(v)
            return
        head, more = a._head, a._more
        if head == "call":
            self.call(a, v, *more)
        elif head in ("scale", "over") and a.ndim < 2:
            args = [self.value(x, a.dtype) for x in a._args]
            self.step(What.MULTIPLY if head == "scale" else What.DIVIDE, args, self.placed(v))
        elif head == "index":
            x = a._args[0]
            known = known_of(x)
            if known is None or (x._form is not None and last is not None):
                raise Unfit("an index of an operator")
            self.copy(known, known[of_views(more)], v)
        elif last is None:
            raise Unfit(f"the value of {head!r} is not of a plan")
        elif head == "of form" and more[0] in (determinants.logdet, determinants.logdet_of):
            self.step(What.LOGDET, [self.found(last)], self.placed(v))
        elif head == "of form" and more[0] in (np.sum, np.mean):
            loops.of_products(self, a, v, self.found(last), more[0])
        elif head == "of form" and more[0] not in _OF_PLANS:
            raise Unfit(f"the function {more[0]!r}")
        else:
            self.step(What.COPY, [self.alike(last, v)], self.placed(v))

    def alike(self, view: View, v: View) -> Any:
        """The result of a plan in the shape of a value."""
        slot, offset, letter, shape, strides = self.found(view)
        if shape != v.shape:
            if math.prod(shape) != math.prod(v.shape) or not in_c_order(shape, strides):
                raise Unfit("a value of another size than its plan's")
            strides = c_strides(v.shape)
        return slot, offset, letter, v.shape, strides

    def copy(self, of: Any, seen: Any, v: View) -> None:
        if not np.shares_memory(of, seen):
            raise Unfit("a view that is none")
        self.step(What.COPY, [self.taken(view_of(seen))], self.placed(v))

    def call(self, a: Any, v: View, function: Any, kwargs: Any) -> None:
        """A function of NumPy's, of values."""
        if function in _UFUNCS and not kwargs and (a.dtype.char in "fd" or len(a._args) == 1):
            args = [self.cast(self.value(x, a.dtype), a.dtype) for x in a._args]
            self.step(_UFUNCS[function], args, self.placed(v))
        elif isinstance(function, np.ufunc) and not kwargs:
            loops.of_ufunc(self, a, v, function)
        elif function in loops.ROWS:
            loops.ROWS[function](self, a, v, function, **kwargs)
        elif function in _VIEWS:
            (x,) = a._args
            of = known_of(x) if is_lazy(x) else x
            self.copy(of, function(of, **kwargs), v)
        elif function is numpy_shapes.joined:
            self.joined(a, v, **kwargs)
        elif function is scattered:
            self.scattered(a, v, **kwargs)
        elif function is determinants.logabs_of:
            self.step(What.LOGABS, [self.value(a._args[0], a.dtype)], self.placed(v))
        elif function is stop:
            self.step(What.COPY, [self.value(a._args[0], a.dtype)], self.placed(v))
        else:
            raise Unfit(f"the function {function!r}")

    def joined(self, a: Any, v: View, axis: int) -> None:
        parts = [self.value(x, a.dtype) for x in a._args]
        slot, offset, letter, _, strides = self.placed(v)
        step = strides[axis] * np.dtype(letter).itemsize
        for part in parts:
            self.step(What.COPY, [part], (slot, offset, letter, part[3], strides))
            offset += part[3][axis] * step

    def scattered(self, a: Any, v: View, key: Any, shape: Any) -> None:
        seen = a._value[of_views(key)]
        if not np.may_share_memory(seen, a._value):
            raise Unfit("elements by their indices")
        part, zero = self.value(a._args[0], a.dtype), self.value(0.0, a.dtype)
        self.step(What.COPY, [zero], self.placed(v))
        self.step(What.COPY, [part], self.found(view_of(seen)))


# -- two runs --------------------------------------------------------------------------------------


def _written(run: Callable[[Any], list[Any]], arrays: Any) -> tuple[list[Any], list[Any]]:
    """What was computed, in order, and the values."""
    events: list[Any] = []
    if not _core._tape_record(events):
        raise Unfit("another program is written down")
    try:
        values = run(arrays)
    finally:
        _core._tape_record(None)
    return events, values


def _same_kind(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        if type(a) is not type(b) or len(a) != len(b):
            return False
        if len(a) <= 3:
            return view_of(a[1])[1:] == view_of(b[1])[1:] and a[2:] == b[2:]
        return [v[1:] for v in a[3]] == [v[1:] for v in b[3]]
    return a._head == b._head and view_of(a._value)[1:] == view_of(b._value)[1:]


def _tape(
    freezable: Freezable, first: Any, second: Any, pinned: tuple[int, ...] = ()
) -> tuple[Any, list[Any], list[Any]]:
    """The tape, and the values of both sets of arrays."""
    one, values = _written(freezable.run, first)
    two, others = _written(freezable.run, second)
    if len(one) != len(two) or not all(map(_same_kind, one, two)):
        raise Unfit("what is computed depends on the numbers")
    tapes: list[Any] = []
    both = reads(one, first), reads(two, second)
    sources = Sources(*both, first, pinned)
    for events, arrays, read in ((one, first, both[0]), (two, second, both[1])):
        tape, last = _Tape(arrays), None
        for k, e in enumerate(events):
            if not isinstance(e, tuple):
                tape.computed(e, last)
                last = None
                continue
            if len(e) == 2:
                last = view_of(e[1])
                continue
            if len(e) == 3:
                tape.halves(*e[1:])
                continue
            found = sources.of(one[k][2], two[k][2])
            tape.plan(e, [s and (tape.found(read[s[0]].view), *s[1:]) for s in found])
            last = View(*e[3][-1])
        tapes.append((tape, [tape.taken(view_of(v), v) for v in (values, others)[len(tapes)]]))
    (tape, out), (again, _) = tapes
    if tape.constants != again.constants:
        raise Unfit("a step that is not written down")
    if freezable.open and tape.may_change:
        raise Unfit("it holds an array of its own, which may change")
    made = _core._tape_new(
        len(first),
        tuple(tape.slots),
        tuple(tape.steps),
        tuple(out),
        freezable.quiet,
        freezable.proof,
    )
    return made, values, others


def _agrees(tape: Any, arrays: Any, values: Any, outs: Any) -> bool | None:
    """Does the tape give the same bits? None: it is not for these numbers."""
    found = tuple(np.empty_like(o, order="C") for o in outs)
    if not _core._tape_run(tape, tuple(arrays), found):
        return None
    for a, value in zip(found, values, strict=True):
        due = np.asarray(value)
        due = due.real if due.dtype.kind == "c" and a.dtype.kind != "c" else due
        if a.tobytes() != np.ascontiguousarray(due, a.dtype).reshape(a.shape).tobytes():
            return False
    return True


def _tried(freezable: Freezable, tape: Any, arrays: Any, outs: Any, pinned: Any) -> None:
    """Compares a tape with the program on numbers that it was not made of, far from them if it may
    be: whatever was taken for another number or for a constant shows."""
    for given in probes(arrays, pinned, twins(freezable.proof, arrays)):
        try:
            values = freezable.run(given)
        except Exception:  # no numbers for this program: nearer ones are
            continue
        agrees = _agrees(tape, given, values, outs)
        if agrees is False:
            raise _Wrong("the tape's bits differ from the program's on other numbers")
        if agrees:
            return
    raise Unfit("there are no other numbers to try the tape on")


def _frozen(freezable: Freezable, arrays: Any, outs: Any) -> tuple[Any, tuple[int, ...]]:
    """A tape of the program on arrays of this kind, and which numbers it holds for alone."""
    if any(a.dtype.char not in "fdFD" for a in (*arrays, *outs)):
        raise Unfit("arrays of other dtypes")
    if sum(a.size for a in (*arrays, *outs)) > _LARGEST:
        raise Unfit("arrays so large that a call takes much longer than what a tape saves")
    if isinstance(freezable.run, Program) and not by_shapes(freezable.run, arrays):
        raise Unfit("a value decides what is computed")
    if not all(np.isfinite(a).all() for a in arrays):
        raise Unfit("numbers that are not finite")
    numbers = [k for k, a in enumerate(arrays) if a.ndim == 0 and a.dtype.char in "fd"]
    tries = [(), *((k,) for k in numbers[::-1]), tuple(numbers)]
    for pinned in dict.fromkeys(tries):
        tape = _for_numbers(freezable, arrays, outs, pinned)
        if tape is not None:
            return tape, pinned
    raise Unfit("its plans are for other numbers than these")


def _for_numbers(freezable: Freezable, arrays: Any, outs: Any, pinned: tuple[int, ...]) -> Any:
    """A tape that holds for any numbers but the pinned ones, which are special to its plans; None
    where these arrays are not among them."""
    proof = (*map(_equal, pinned, (arrays[k] for k in pinned)), *freezable.proof)
    if pinned:
        proof = ((_ALL, 1 + len(proof), (), ()), *proof)
    proved = freezable._replace(proof=proof)
    try:
        return _of_runs(proved, arrays, outs, pinned, False)
    except _Wrong:
        raise
    except Exception:  # perhaps because what was symmetric is not any more
        if not any(map(is_even, arrays)):
            raise
    return _of_runs(proved, arrays, outs, pinned, True)


def _of_runs(
    freezable: Freezable, arrays: Any, outs: Any, pinned: tuple[int, ...], even: bool
) -> Any:
    alike = twins(freezable.proof, arrays)
    first, second = (moved(arrays, by, pinned, even, alike) for by in (2.0**-13, 2.0**-11))
    tape, values, others = _tape(freezable, first, second, pinned)
    if not _runs(tape, arrays, outs):
        return None
    for given, due in ((first, values), (second, others)):
        agrees = _agrees(tape, given, due, outs)
        if agrees is None:
            raise Unfit("the tape is not for numbers near these")
        if not agrees:
            raise Unfit("the tape's bits differ from the program's")
    _tried(freezable, tape, arrays, outs, pinned)
    return tape


def _equal(k: int, a: Any) -> Any:
    """The row of a proof: this argument is this number."""
    return _EQUAL, 1, (k,), (int(a.view(f"i{a.itemsize}")),)


def _runs(tape: Any, arrays: Any, outs: Any) -> bool:
    given = tuple(np.ascontiguousarray(a) if _is_strided(a) else a for a in arrays)
    done: bool = _core._tape_run(tape, given, tuple(np.empty_like(o, order="C") for o in outs))
    return done


def _is_strided(a: Any) -> bool:
    return not (a.flags.c_contiguous or a.flags.f_contiguous)


def consider(
    key: bytes, freezable: Callable[[], Freezable | None], arrays: Any, outs: Any
) -> str | None:
    """After a call of a program in Python: makes a tape of it, if it comes again. Why there is
    none, or None."""
    if config.get("verify") or config.get("check") != "cheap" or config.recording():
        return "not asked for"
    if len(_calls) >= _MOST:
        for known in (_calls, _pinned, _why):
            known.clear()
    if key not in _pinned and _core._tape_there(key):
        return "its tape is not for these values"
    calls = _calls[key] = _calls.get(key, 0) + 1
    if not _FIRST < calls <= _FIRST + _TRIES:
        return _why.get(key, "it comes for the first time")
    start, epoch = time.monotonic(), _core._tape_counts()[3]
    try:
        found = freezable()
        if found is None:
            return "its matrix is not definite for sure, or is not of one plan"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call itself has warned
            tape, pinned = _frozen(found, arrays, outs)
    except Exception as why:  # the call itself is done: nothing is to fail for this
        _calls[key] += int((time.monotonic() - start) / _LONG)  # long ones are not tried again
        if isinstance(why, _Wrong):
            _calls[key] += _TRIES
        _why[key] = str(why) or type(why).__name__
        return _why[key]
    (_pinned.add if pinned else _pinned.discard)(key)
    _core._tape_put(key, tape, epoch)
    return None
