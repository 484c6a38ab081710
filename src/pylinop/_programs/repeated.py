"""Functions that are differentiated again and again. What one builds of its arguments is known by
its structure (structure.py); from the second time on that it comes it is a program: without a
sweep, and from the third on without Python where it leaves a tape (freezing.py).

The function itself runs at each call, so that what it reads, decides and holds counts anew."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._base import config
from .._gradients.dense_way import simplified
from .._gradients.sweep import along
from . import tapes
from .called import NumpyProgram
from .programs import Derived, Met, Program, WithGradients, gradient_by
from .structure import key_of, structure_of

__all__ = ["forget", "gradients", "of_program", "products"]

_MOST = 256  # structures that are known
_never: set[Program] = set()  # of which there is no derivative without values
_known: dict[Any, Any] = {}  # False: it came once
_by_key: dict[Any, Met] = {}  # of those, by the core's key: what is found without its structure


class AlongVectors(Derived):
    """The gradient of <gradient, vectors> of a real number: takes the arrays, and a vector for each
    of those in `by`."""

    def __init__(self, base: Program, by: tuple[int, ...]) -> None:
        super().__init__(base, by)
        self.arrays = base.arrays + len(by)

    def _kinds(self, avals: Any) -> Any:
        super()._kinds(avals)
        return [avals[k] for k in self.by]

    def build(self, leaves: Any) -> list[Any]:
        own, vectors = leaves[: self.base.arrays], leaves[self.base.arrays :]
        wanted = self.wanted(own)
        value = simplified(self.base.build(own)[0], wanted)
        pairs = {id(own[k]): v for k, v in zip(self.by, vectors, strict=True)}
        found = along(value, wanted, lambda x: pairs[id(x)])
        return [gradient_by(found, own[k]) for k in self.by]


def _usual() -> bool:
    """Is nothing asked for that is of the formula itself, not of its values?"""
    told = config.get("not_definite") != "fallback" or config.get("verify")
    return not (told or config.recording())


def of_program(f: Any, argnums: Any, args: Any) -> Any:
    """(value, gradients) of a program; None of any other function, or for the usual way."""
    if type(f) is not NumpyProgram or not _usual():
        return None
    try:
        return f.value_and_gradients(argnums, args)
    except Exception:  # what is wrong is said of the function's own lines
        return None


def _met(trace: Any, value: Any) -> tuple[Met, list[Any]] | None:
    """The program of what a function has built, and its arrays, those of the parameters first; None
    where this comes for the first time, or is for no program."""
    if not _usual():
        return None
    quick = key_of(value, trace.parameters)
    if quick is not None and (program := _by_key.get(quick[0])) is not None:
        return program, quick[1]
    found = structure_of([value], trace.parameters)
    if found is None:
        return None
    program = _known.get(found.key)
    if program is None:
        if len(_known) >= _MOST:
            forget()
        _known[found.key] = False
        return None
    if program is False:
        program = _known[found.key] = Met(found)
    if quick is not None and list(map(id, quick[1])) == list(map(id, found.arrays)):
        if len(_by_key) >= _MOST:
            _by_key.clear()
        _by_key[quick[0]] = program
    return program, found.arrays


def _computed(program: Program, arrays: list[Any]) -> list[Any] | None:
    if program in _never:
        return None
    try:
        kinds = program.kinds(tuple([(a.shape, a.dtype) for a in arrays]))
    except Exception:  # a rule looks at values
        if len(_never) >= _MOST:
            _never.clear()
        _never.add(program)
        return None
    try:
        found = tapes.values(program, arrays, kinds, tapes.LONGEST)
    except Exception:  # what is wrong is said of the function's own lines
        return None
    return [a if a.flags.writeable else a.copy() for a in found]


def forget() -> None:
    """Forgets what functions have built."""
    _known.clear()
    _by_key.clear()
    _with_gradients.cache_clear()
    _never.clear()


def gradients(trace: Any, value: Any) -> list[Any] | None:
    """The value and the gradient by each parameter; None: the usual way."""
    met = _met(trace, value)
    if met is None:
        return None
    program, arrays = met
    return _computed(_with_gradients(program, len(trace.parameters)), arrays)


@functools.lru_cache(maxsize=_MOST)
def _with_gradients(program: Met, count: int) -> WithGradients:
    return WithGradients(program, tuple(range(count)))


def products(trace: Any, value: Any, vectors: list[list[Any]]) -> list[Any] | None:
    """The Hessian times vectors, those of each parameter's arrays; None: the usual way."""
    met = _met(trace, value)
    if met is None:
        return None
    program, arrays = met
    by = tuple(range(len(trace.parameters)))
    given = []
    for (v,), p in zip(vectors, trace.parameters, strict=True):
        if v.dtype != p.array.dtype and v.dtype.kind not in "biu":
            return None
        given.append(np.asarray(v, p.array.dtype))
    return _computed(AlongVectors(program, by), [*arrays, *given])
