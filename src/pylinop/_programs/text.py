"""Programs as text, for compilers whose graphs hold numbers and words alone; and back.

    Formula       its flat form, which any process reads
    Written       a number in this process, which another one refuses; so formulas of objects
    the others    what they are made of

The text is that of tuples of words and numbers, as Python writes them."""

from __future__ import annotations

import ast
import functools
import itertools
import uuid
import weakref
from typing import Any

import numpy as np

from .formulas import Number, Parts, Ref, Several, Slot, kept_in, made_of, numbered, with_held
from .programs import Formula, Program, Pullback, Pushforward, WithGradients, Written

__all__ = ["kept", "now", "of_program", "program_of"]

_HERE = uuid.uuid4().hex
_numbers: weakref.WeakKeyDictionary[Program, int] = weakref.WeakKeyDictionary()
_numbered: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
_next = itertools.count()
_TYPES: dict[str, type] = {
    t.__name__: t for t in (list, tuple, dict, slice, bool, int, float, complex, str)
}
_NAMES = {t: name for name, t in _TYPES.items()}
_SINGLE = {"None": None, "Ellipsis": Ellipsis, "True": True, "False": False}
_DERIVED: dict[str, Any] = {t.__name__: t for t in (WithGradients, Pullback, Pushforward)}


class _UntoldError(Exception):
    """An object of which there is no text."""


def _told(x: Any) -> Any:
    """An argument of a node as words and numbers."""
    if isinstance(x, Ref):
        return "node", x.at
    if isinstance(x, Slot):
        return "array", x.at
    if isinstance(x, Several):
        if x.type is dict:
            return "dict", tuple((k, _told(v)) for k, v in x.parts)
        return _NAMES[x.type], tuple(_told(y) for y in x.parts)
    if isinstance(x, Number):
        if x.type in (int, float, complex, str):
            return "number", _NAMES[x.type], x.value if x.type is str else x.shown
        return ("dtype" if x.type is np.dtype else "single"), x.shown
    raise _UntoldError


def _meant(x: Any) -> Any:
    """The argument of its words."""
    what, *rest = x
    if what == "node":
        return Ref(*rest)
    if what == "array":
        return Slot(*rest)
    if what == "number":
        kind = _TYPES[rest[0]]
        value = kind(rest[1])
        return Number(kind, repr(value), value)
    if what == "single":
        value = _SINGLE[rest[0]]
        return Number(type(value), rest[0], value)
    if what == "dtype":
        return Number(np.dtype, rest[0], np.dtype(rest[0]))
    parts = rest[0]
    if what == "dict":
        return Several(dict, tuple((k, _meant(v)) for k, v in parts))
    return Several(_TYPES[what], tuple(_meant(y) for y in parts))


def _numbered_text(program: Program) -> str:
    number = _numbers.get(program)
    if number is None:
        number = _numbers[program] = next(_next)
        _numbered[number] = program
    return repr(("Here", _HERE, number))


@functools.lru_cache(maxsize=2048)
def of_program(program: Program) -> str:
    """The text of a program."""
    if isinstance(program, Written):
        return _numbered_text(program)
    if isinstance(program, Formula):
        code, asked, arrays = program.flat
        try:
            rows = tuple((name, _told(args), _told(kwargs)) for name, args, kwargs in code)
        except _UntoldError:
            return _numbered_text(program)
        return repr(("Formula", rows, tuple(map(_told, asked)), arrays))
    base, *rest = program.parts
    more = (program.arrays - base.arrays,) if isinstance(program, Pullback) else ()
    return repr((type(program).__name__, of_program(base), *rest, *more))


def kept(program: Program) -> str:
    """The text of a program, for a graph that lives on; of a written one as long as its caller
    keeps it."""
    text = of_program(program)
    if _HERE in text:  # a number here, to which its objects belong
        for number in _objects(text):
            made_of(number, program)
    return text


def program_of(text: str) -> Program:
    """The program of a text, which may know objects by their numbers."""
    return _read(text, ())


def now(text: str) -> Program:
    """The program of a text, of objects as they are now."""
    return _read(text, tuple(map(numbered, _objects(text))) if _HERE in text else ())


@functools.lru_cache(maxsize=2048)
def _objects(text: str) -> tuple[int, ...]:
    """The numbers of the objects in a program of this process."""
    what, *rest = ast.literal_eval(text)
    if what != "Here":
        return _objects(rest[0])
    found = _found(*rest)
    return kept_in(found.flat) if isinstance(found, Formula) else ()


def _found(process: str, number: int) -> Program:
    found = _numbered.get(number) if process == _HERE else None
    if found is None:
        raise RuntimeError(
            "a compiled graph holds a function that pylinop's program took in another process, or "
            "that is gone: keep it, or compile anew"
        )
    return found


@functools.lru_cache(maxsize=2048)
def _read(text: str, things: Any) -> Program:
    what, *rest = ast.literal_eval(text)
    if what == "Formula":
        code, asked, arrays = rest
        rows = tuple((name, _meant(args), _meant(kwargs)) for name, args, kwargs in code)
        return Formula(Parts(rows, tuple(_meant(x) for x in asked), arrays))
    if what == "Here":
        found = _found(*rest)
        return Formula(with_held(found.flat, things)) if things else found  # type: ignore[attr-defined]
    base, *more = rest
    derived: Program = _DERIVED[what](_read(base, things), *more)
    return derived
