"""Programs on arrays of NumPy: the structured way where the matrix is as its structure says and
positive definite, else as it is written, where Cholesky decides as PyTensor's does: NaN for what is
not definite, never an exception."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._base import conditioning, config
from .._programs.freezing import Freezable
from .._programs.programs import as_results
from .definite import proved
from .program import arrays_of, dense, is_open, like, parsed, program
from .proofs import Untold, rows

__all__ = ["freezable", "results", "shape_of", "shapes", "written_into"]


def shape_of(kind: tuple[str, int], given: Any) -> tuple[int, ...]:
    """The shape of a result, of those of the arrays."""
    what, j = kind
    if what == "number":
        return ()
    shape = tuple(given[j])
    return shape if what == "same" else shape[:-1]


def shapes(text: str, given: Any) -> list[tuple[int, ...]]:
    """The shapes of a program's values, of those of its arrays."""
    spec = parsed(text)
    if len(given) != arrays_of(spec):
        raise ValueError(f"a program of {arrays_of(spec)} arrays was given {len(given)}")
    return [shape_of(kind, given) for kind in like(spec)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Definite or NaN, and nothing is said of it."""
    quiet = config.config(not_definite="nan", slow_limit=None, warn_limit=1 << 62)
    with quiet, conditioning.collecting(), np.errstate(all="ignore"):
        yield


def freezable(text: str, arrays: Any) -> Freezable | None:
    """The structured way of a program, with the proof that it may be taken; None where that is not
    what these arrays go."""
    spec = parsed(text)
    try:
        proof = rows(spec)
    except Untold:
        return None
    if not proved(spec, arrays):
        return None
    own = program(spec)

    def run(given: Any) -> list[Any]:
        with _quiet():
            return own(given)

    return Freezable(run, True, proof)


def results(text: str, arrays: Any, dtypes: Any) -> list[Any]:
    """The values of a program, in the dtypes that were promised."""
    spec = parsed(text)
    given = [a.shape for a in arrays]
    kinds = [(shape_of(k, given), np.dtype(d)) for k, d in zip(like(spec), dtypes, strict=True)]
    with _quiet():
        for way in (spec, dense(spec)):
            if way is spec and not proved(spec, arrays):
                continue
            try:
                found = as_results(program(way)(arrays), kinds, np.dtype)
            except np.linalg.LinAlgError:
                continue
            if way is spec and is_open(spec) and any(np.isnan(x).any() for x in found):
                continue
            return found
    return [np.full(shape, np.nan, dtype) for shape, dtype in kinds]


def written_into(text: str, arrays: Any, outs: Any) -> None:
    """The values of a program, into arrays that are there."""
    for out, value in zip(outs, results(text, arrays, [o.dtype for o in outs]), strict=True):
        out[...] = value
