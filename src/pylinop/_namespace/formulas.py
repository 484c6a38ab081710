"""Programs on the arrays of other libraries, where they lie: LazyArrays of arrays without memory
say what is to be computed, `walk.py` does what their operators are, and other functions go by name.

A coefficient that is an array has a placeholder's value while rules are applied: they say what they
compute of it (src/c/expr/coefficients.h). Nothing is decided by a value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config
from .._base.checks import is_lazy
from .._base.dlpack import is_fixed
from .._base.kind_flags import heads
from .._gradients.watched import watched
from .._lazy import evaluate, kinds
from .._lazy.leaves import lazy
from .._lazy.matrix_functions import OfForm, Piece
from .._structured import determinants
from . import functions, matrix_functions, walk
from .arrays import Namespace, device_text, is_traced, namespace_of
from .heads import named_part
from .told import Told

__all__ = ["computed", "on_one_device", "settings"]

_DENSE, _DIAGONAL, _TRACE, _DET = 8, 9, 10, 12
_CONSTANT = heads("constant")
_SETTINGS = (
    *("fft", "warn_limit", "memory_limit", "disable_rules", "not_definite", "precision"),
    *("accuracy", "iterate", "check", "costs"),
)
_LINEAR = ("matmul", "add", "scale", "over", "view", "inverse", "operator", "made")


def settings() -> tuple[Any, ...]:
    """Of what is asked for: other ones may ask for something else."""
    return tuple([config.get(name) for name in _SETTINGS])


def on_one_device(arrays: Any) -> None:
    """Raises where arrays lie on different devices. What JAX traces lies on none yet."""
    seen: dict[str, Any] = {}
    for x in arrays:
        if not is_traced(x):
            seen.setdefault(device_text(x), x)
    if len(seen) > 1:
        first, second = list(seen)[:2]
        raise ValueError(
            f"arrays on {first} (shape {tuple(seen[first].shape)}) and on {second} (shape "
            f"{tuple(seen[second].shape)}): move them to one device, nothing is copied unasked"
        )


# Stand-ins for numbers that are arrays start here: nobody writes these.
_NAMES = (1.2718281828459045, 1.3247179572447460)
_WITHIN = 8  # numbers that one product is of, at most
_OF_MULTIPLES = ("scale", "over", "view", "inverse")  # whose numbers meet those within
_LOST = (
    "a coefficient that is an array went into the numbers of a kind: give it as a Python number, "
    "or multiply by Diag"
)


class _Evaluation:
    """One program's LazyArrays and their values on the arrays of a library."""

    def __init__(self, ns: Namespace, leaves: Any, arrays: Any, held: list[Any]) -> None:
        self.ns, self.held = ns, held
        self.known: dict[int, Any] = {id(a): x for a, x in zip(leaves, arrays, strict=True)}
        self.arrays: dict[int, Any] = {}  # by where their stand-ins would lie
        for a, x in zip(leaves, arrays, strict=True):
            self.arrays[_address(a._args[0])] = x
        self.placed: list[Any] = []
        self.names: dict[int, int] = {}  # of numbers within operators
        self.hollows: dict[int, Any] = {}  # what stands for a part that is a leaf of an operator
        self.shared = walk.Shared()
        self.kept = list(leaves)  # so that ids stay their own

    # -- numbers that are LazyArrays

    def _place(self, root: Any, first: float = _NAMES[0]) -> dict[float, Callable[[], Any]]:
        """Gives each number within an operator a value to be named by, from `first` on: {value:
        what gives the array}, with what operators of multiples of multiples may hold."""
        numbers: dict[int, _Multiple] = {}
        multiples: list[Any] = []
        stack, seen = [root], set()
        while stack:
            a = stack.pop()
            if id(a) in seen or not is_lazy(a):
                continue
            seen.add(id(a))
            c = _coefficient(a)
            if c is not None:
                multiples.append(a)
            if _is_named(c):
                at = self.names.setdefault(id(c), len(self.names))
                held = _stand_in(a, c, first + 0.0078125 * at)
                numbers[id(c)] = _Multiple(float(held), functools.partial(self.value, c), True)
                self.kept.append(c)
                self._hold(c, held)
            stack += [x for x in a._args if is_lazy(x)]
        return {m.name: m.value for m in _products(multiples, numbers)} if numbers else {}

    def _hold(self, a: Any, value: Any) -> None:
        """Puts an array without memory, or a placeholder, where a value would be."""
        if a._value is None:
            a._value = value
            self.placed.append(a)

    def _leafed(self, root: Any) -> None:
        """Parts of an operator that are no operators themselves: values, as its leaves. So are
        multiples by complex numbers that are arrays, which have no name among coefficients."""
        stack, seen = [root], {id(root)}
        while stack:
            a = stack.pop()
            made = a._head == "made"
            # a function of a form would read what stands for arrays
            if made and isinstance(a._more[0], (OfForm, Piece)):
                raise NotImplementedError(
                    f"{a._more[0].__name__} of shape {a.shape} has no form on the arrays of other "
                    "libraries yet: compute it on the CPU"
                )
            for k, x in enumerate(a._args[:1] if a._head in ("scale", "over") else a._args):
                if not is_lazy(x):
                    continue
                form = not _is_value(x) and (not made or a._more[1][k] == kinds.FORM)
                form = form and not _wraps(a, x)
                if form and id(x) not in seen:
                    seen.add(id(x))
                    stack.append(x)
                elif not form and x._head != "leaf":
                    self._hold(x, self._hollow(x))

    def own(self, a: Any) -> Any:
        """A copy on the device of an array that the program holds itself."""
        if not is_fixed(a):
            self.held.append(a)
        return self.ns.constant(a)

    def _hollow(self, x: Any) -> Any:
        if id(x) not in self.hollows:
            hollow = _without_memory(x.dtype, x.shape)
            self.arrays[_address(hollow)] = self.value(x)
            self.hollows[id(x)] = hollow
            self.kept += [x, hollow]
        return self.hollows[id(x)]

    def _release(self) -> None:
        for a in self.placed:
            a._value = None
        self.placed = []

    # -- values

    def value(self, a: Any) -> Any:
        """Of a LazyArray, an operator, an array of NumPy or a number."""
        if not is_lazy(a):
            return functions.plain(self, a)
        if id(a) not in self.known:
            self.kept.append(a)
            self.known[id(a)] = self._found(a)
        return self.known[id(a)]

    def _found(self, a: Any) -> Any:
        if a._value is not None and a._head != "leaf":
            return self.own(a._value)
        if a._head == "leaf":
            found = self._leaf(np.asarray(a._args[0]))
            return found if a._more is None else named_part(self.ns, found, a._more)
        if a._head == "of form":
            return self._of_form(a)
        if matrix_functions.is_function(a):
            parts = matrix_functions.by_parts(a)
            return matrix_functions.value(self, a) if parts is a else self.value(parts)
        if not _is_value(a) and (a.ndim >= 2 or a._head in ("matmul", "view", "inverse")):
            if a._head == "matmul" and min(x.ndim for x in a._args) < 2:
                return self._vector_product(a)
            return self._asked(a, _DENSE, a)
        return self._called(a)

    def _called(self, a: Any) -> Any:
        found = functions.called(self, a)
        if self.shared.told is not None:
            name = getattr(a._more[0], "__name__", a._head) if a._head == "call" else a._head
            self.shared.told.step(
                name, a.shape, [f"{tuple(x.shape)}" for x in a._args if is_lazy(x)]
            )
        return found

    def _vector_product(self, a: Any) -> Any:
        left, right = a._args
        if left.ndim < 2 and right.ndim < 2:
            return self.ns.dot(self.value(left), self.value(right))
        if left.ndim < 2:
            column = self._column(left, _core._lazy_view(right, 1))
        else:
            column = self._column(right, left)
        return self.ns.cast(self.ns.reshape(column, a.shape), a.dtype.name)

    def _column(self, x: Any, matrix: Any) -> Any:
        """matrix @ x by the matrix's structure."""
        value = self.value(x)[..., None]
        if _is_value(matrix):
            return self.ns.matmul(self.value(matrix), value)
        return self._asked(matrix, 0, None, value)

    def _of_form(self, a: Any) -> Any:
        f, kwargs = a._more
        form = a._args[0]
        if f is evaluate.trace and not kwargs.get("offset"):
            return self._asked(form, _TRACE, a)
        if f is evaluate.diagonal:
            return self._asked(form, _DIAGONAL, a, None, kwargs.get("offset", 0))
        finish = _DETERMINANTS.get(f)
        if finish is None:
            return functions.called(self, a)
        found = self._asked(form, _DET, None)
        return finish(self.ns, *found, a.dtype.name)

    def _asked(self, form: Any, action: int, like: Any, x: Any = None, k: int = 0) -> Any:
        """An action of the operator that a LazyArray is."""
        form = matrix_functions.by_parts(form, lambda a: lazy(self._hollow(a)))
        self.kept.append(form)
        if _is_value(form):
            form = lazy(self._hollow(form))
        outer, self.placed = self.placed, []  # values on the way are asked for within
        shape = None if x is None else tuple(x.shape)
        rhs = None if x is None else _without_memory(self.ns.name_of(x), shape)
        try:
            op, sources = self._formed(form, _NAMES[0])
            canonical = walk.canonical(op, action, rhs, k, 0, tuple(sources))
            if self.shared.told is not None:
                self.shared.told.rows(op, action, rhs, k)
            if sources and any(_is_odd(c) for c in _unnamed(canonical)):
                self._look_again(form, canonical, (action, rhs, k))
        finally:
            self._release()
            self.placed = outer
        leaves = {s: self._leaf(held) for s, held in canonical[1].items()}
        marks = {s: self._mark(held) for s, held in canonical[1].items()}
        if x is not None:
            leaves[canonical[2]], marks[canonical[2]] = x, self._mark(rhs)
        how = {"asked": action == _DENSE, "shared": self.shared, "marks": marks}
        found = walk.run(self.ns, canonical, leaves, sources, **how)
        if isinstance(found, tuple) or like is None:
            return found
        return self.ns.cast(found, like.dtype.name)

    def _formed(self, form: Any, first: float) -> tuple[Any, dict[float, Callable[[], Any]]]:
        """The operator that a LazyArray is, and what its numbers stand for."""
        sources = self._place(form, first)
        self._leafed(form)
        op = _core._lazy_operator(form)
        if op is None or op._opaque:
            raise NotImplementedError(
                f"{form!r} holds a callable or a dtype that has no form on the arrays of other "
                "libraries"
            )
        return op, sources

    def _look_again(self, form: Any, canonical: Any, asked: tuple[Any, ...]) -> None:
        """Raises where a number that stands for another went into one that has no name: by other
        names it is another one."""
        self._release()
        _forget_forms(form)
        try:
            op, sources = self._formed(form, _NAMES[1])
            other = walk.canonical(op, *asked, 0, tuple(sources))
        finally:
            _forget_forms(form)
        if _unnamed(other) != _unnamed(canonical):
            raise NotImplementedError(_LOST)

    def about(self, form: Any, ask: Callable[[Any], Any]) -> Any:
        """What is known of the operator that a LazyArray is, by how it is written."""
        if _is_value(form):
            return None
        outer, self.placed = self.placed, []
        try:
            self._place(form)
            self._leafed(form)
            op = _core._lazy_operator(form)
            return None if op is None or op._opaque else ask(op)
        finally:
            self._release()
            self.placed = outer

    def _mark(self, held: Any) -> Any:
        """What tells an array from all others, as long as it is kept."""
        self.kept.append(held)
        return _address(held), held.shape, held.strides, held.dtype.str, held.size or id(held)

    def _leaf(self, held: Any) -> Any:
        """What an array of NumPy stands for: itself, or one of the library's, seen alike."""
        found = self.arrays.get(_address(held))
        if found is None or not held.size:
            return self.own(held)
        if tuple(held.shape) == tuple(found.shape) and _is_c_order(held):
            return found
        if _is_c_order(held) and held.size == int(np.prod(found.shape)):
            return self.ns.reshape(found, held.shape)
        if held.ndim >= 2 and _is_c_order(np.swapaxes(held, -1, -2)):
            turned = np.swapaxes(held, -1, -2).shape
            return self.ns.mT(self.ns.reshape(found, turned))
        raise NotImplementedError(
            f"a part of an array of shape {tuple(found.shape)}, seen as {held.shape}, has no form "
            "on the arrays of other libraries"
        )


def _coefficient(a: Any) -> Any:
    """The number that an operator is a multiple by."""
    return a._args[1] if a._head in ("scale", "over") else None


def _is_named(c: Any) -> bool:
    return is_lazy(c) and c.ndim == 0 and c.dtype.kind != "c" and not functions.is_one(c)


def _stand_in(a: Any, c: Any, name: float) -> Any:
    """A number for c, by which a is a multiple. That of an integer is none, which would be as small
    a number as any that is written."""
    if a.dtype.kind in "iub":
        raise NotImplementedError(
            "an operator of integers times an array of one number has no form on the arrays of "
            "other libraries: give the number as a Python number"
        )
    return np.full((), name, c.dtype if c.dtype.kind == "f" else np.result_type(c, np.float32))


class _Multiple(NamedTuple):
    """A number that an operator holds, what gives it, and does it stand for something else?"""

    name: float
    value: Callable[[], Any]
    stands: bool = False

    def inverted(self) -> _Multiple:
        return _Multiple(1 / self.name, lambda: 1 / self.value(), self.stands)

    def times(self, other: _Multiple) -> _Multiple:
        both = lambda: self.value() * other.value()  # noqa: E731
        return _Multiple(self.name * other.name, both, self.stands or other.stands)


def _products(multiples: Any, numbers: dict[int, _Multiple]) -> list[_Multiple]:
    """What operators of multiples of multiples may hold: the products of numbers within each other,
    the inmost ones first, as they are rounded. Where a product is not exact they may stay apart."""
    known: dict[int, list[_Multiple]] = {}  # of a multiple: the products that begin with its number
    found: list[_Multiple] = []
    for a in multiples:
        chain: list[Any] = []
        while is_lazy(a) and id(a) not in known and a._head in _OF_MULTIPLES:
            chain.append(a)
            a = a._args[0]
        now = known[id(a)] if id(a) in known else _of_operator(a)
        for x in chain[::-1]:
            known[id(x)] = now = _around(x, now, numbers)
            found += [m for m in now if m.stands]
    return found


def _of_operator(a: Any) -> list[_Multiple]:
    if not is_lazy(a) or a._head != "operator" or a._args[0]._head != "scaled":
        return []
    c = a._args[0]._operands[1]
    return [] if np.iscomplexobj(c) else [_Multiple(float(c), lambda: float(c))]


def _around(x: Any, within: list[_Multiple], numbers: dict[int, _Multiple]) -> list[_Multiple]:
    """Of x, which is made of what has `within`; complex numbers have no name."""
    c = _coefficient(x)
    if x._head == "inverse":
        return [m.inverted() for m in within]
    if x._head == "view" or (is_lazy(c) and functions.is_one(c)):
        return within
    if id(c) in numbers:
        own = numbers[id(c)]
    elif is_lazy(c) or np.iscomplexobj(c):
        return []
    else:
        own = _Multiple(float(c), lambda: float(c))
    own = own.inverted() if x._head == "over" else own
    return [own, *(own.times(m) for m in within[: _WITHIN - 1])]


def _forget_forms(root: Any) -> None:
    """So that operators are made anew of all that is below."""
    stack, seen = [root], {id(root)}
    while stack:
        a = stack.pop()
        if a._head not in ("leaf", "operator"):
            a._form = None
        for x in a._args:
            if is_lazy(x) and id(x) not in seen:
                seen.add(id(x))
                stack.append(x)


def _unnamed(canonical: Any) -> list[complex]:
    """The coefficients of a canonical expression that are the numbers that they are."""
    return [row[3] for row in canonical[0] if not row[-1]]


def _is_odd(c: complex) -> bool:
    """Is it no small fraction, as those that rules make?"""
    return c.imag != 0 or c.real * 48 != round(c.real * 48)


def _wraps(a: Any, x: Any) -> bool:
    """Is an operand of a taken by its value, since integers, or bools, would not wrap in a's wider
    dtype? As the core has it (py_lazy_eval.c)."""
    if x.dtype.kind not in "iub" or x.dtype == a.dtype:
        return False
    while x._head == "view":
        x = x._args[0]
    return x._head not in ("leaf", "operator")


def _is_value(root: Any) -> bool:
    """Is it no operator here? Nor are multiples by complex numbers that are arrays, which have no
    names, those of kinds that take the number in, and what is made of these."""
    known: dict[int, bool] = {}
    stack = [root]
    while stack:
        a = stack[-1]
        if a._head not in _LINEAR or id(a) in known or matrix_functions.is_function(a):
            known.setdefault(id(a), True)
            stack.pop()
            continue
        c = _coefficient(a)
        of: Any = a._args[0] if a._args else None
        inner = of._args[0]._head if is_lazy(of) and of._head == "operator" else ""
        if is_lazy(c) and (c.dtype.kind == "c" or inner in _CONSTANT):
            known[id(a)] = True
            continue
        below = [] if a._head == "made" else [x for x in a._args if is_lazy(x) and x is not c]
        below = [x for x in below if x._head in _LINEAR and x.ndim >= 2]
        wait = [x for x in below if id(x) not in known]
        if wait:
            stack += wait
        else:
            known[id(a)] = any(known[id(x)] for x in below)
    return known[id(root)]


def _without_memory(dtype: Any, shape: Any) -> Any:
    """An array that stands for one elsewhere: nothing reads or writes it, so that its pages are
    never there. It has a place of its own, and strides, which tell how it is seen."""
    if not len(shape) and np.dtype(dtype).kind in "fc":
        return np.full((), np.nan, dtype)  # a number that is read would be seen
    return np.zeros(tuple(shape), dtype)


def _address(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


def _is_c_order(a: Any) -> bool:
    return bool(a.flags.c_contiguous)


def _det(ns: Namespace, sign: Any, log: Any, dtype: str) -> Any:
    return ns.cast(sign * ns.exp(log), dtype)


def _logdet(ns: Namespace, sign: Any, log: Any, dtype: str) -> Any:
    """Of a negative determinant of a real matrix NaN."""
    if dtype.startswith("complex"):
        return ns.cast(log + ns.log(sign), dtype)
    return ns.cast(ns.or_nan(ns.real(sign) >= 0, log), dtype)


def _pair(ns: Namespace, sign: Any, log: Any, dtype: str) -> Any:
    return _known_sign(ns, sign, log), log


def _known_sign(ns: Namespace, sign: Any, log: Any) -> Any:
    """NaN where the logarithm is."""
    return ns.or_nan(log == log, sign)


def _sign(ns: Namespace, sign: Any, log: Any, dtype: str) -> Any:
    return ns.cast(_known_sign(ns, sign, log), dtype)


def _logabs(ns: Namespace, sign: Any, log: Any, dtype: str) -> Any:
    return ns.cast(log, dtype)


_DETERMINANTS: dict[Any, Callable[..., Any]] = {
    determinants.det: _det,
    determinants.logdet: _logdet,
    determinants.pair: _pair,
    determinants.sign_of: _sign,
    determinants.logabs_of: _logabs,
}


def computed(
    program: Any, arrays: Any, held: list[Any] | None = None, like: Any = None
) -> list[Any]:
    """The values of a program, on the device of its arrays; of none where `like` lies. Arrays of
    NumPy that it holds itself, and others may write to, are put into `held`."""
    on_one_device(arrays)
    like = arrays[0] if arrays else like
    ns = namespace_of(like)
    leaves = [watched(_without_memory(ns.name_of(x), x.shape)) for x in arrays]
    try:
        roots = [lazy(r) for r in program.build(leaves)]
        run = _Evaluation(ns, leaves, arrays, [] if held is None else held)
        run.shared.told = told = Told() if config.recording() else None
        with ns.current():
            found = [run.value(r) for r in roots]
        if told is not None:
            told.record(program, ns.xp.__name__, ns.where_text())
        return found
    except TypeError as error:
        if "was asked for while" not in str(error):
            raise
        raise NotImplementedError(
            f"{program!r} looks at the values of its arrays, which stay on {device_text(like)}"
            ": compute it on the CPU"
        ) from error
