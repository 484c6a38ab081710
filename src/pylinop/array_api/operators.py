"""Operators on arrays of the array API: formulas, computed where the arrays lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._namespace import formulas as in_place
from .._namespace.arrays import namespace_of
from .._programs import operators as neutral
from .._programs.contractions import einsum_by
from .._programs.formulas import operations
from .._programs.functions import Functions
from .._programs.programs import Program, Written

__all__ = ["FUNCTIONS", "Operator", "einsum", "kind"]


def is_array(x: Any) -> bool:
    """Is x an array of the array API?"""
    cupy = type(x).__module__.partition(".")[0] == "cupy"  # whose arrays do not say so
    return (cupy or hasattr(x, "__array_namespace__")) and not isinstance(x, Operator)


def _leaf(x: Any) -> Any:
    if not is_array(x):
        return None
    dtype_of(x)
    return x


def dtype_of(x: Any) -> Any:
    """The dtype of an array, as NumPy's."""
    name = namespace_of(x).name_of(x)
    try:
        return np.dtype(name)
    except TypeError:
        raise TypeError(
            f"pylinop.array_api has no arrays of dtype {name} (this one has shape "
            f"{tuple(x.shape)}): cast it to float32 or float64"
        ) from None


def _run(program: Program, arrays: Any) -> list[Any]:
    if not arrays:
        raise ValueError(
            f"{program!r} is of no arrays: which library and device is meant follows from arrays"
        )
    kinds = program.kinds(tuple((tuple(x.shape), dtype_of(x)) for x in arrays))
    ns = namespace_of(arrays[0])
    made = []
    for value, (shape, dtype) in zip(in_place.computed(program, arrays), kinds, strict=True):
        real = ns.name_of(value).startswith("complex") and dtype.kind != "c"
        value = ns.cast(ns.real(value) if real else value, dtype.name)
        made.append(ns.copied(ns.reshape(ns.expand(value, shape), shape)))
    return made


def _program(function: Any) -> Any:
    """A function of LazyArrays as one of arrays."""

    def called(*arrays: Any) -> Any:
        for x in arrays:
            if not is_array(x):
                raise TypeError(f"einsum takes arrays of one library, not a {type(x).__name__}")
        made = Written(lambda leaves: [function(*leaves)], function, len(arrays))
        return _run(made, arrays)[0]

    return called


operation = operations(_leaf)
FACE = neutral.Face(
    "pylinop.array_api", "the array API", is_array, operation, dtype_of, np.dtype, _run
)


class Operator(neutral.Operator):
    """A matrix by its structure, on arrays of one library on one device.

    ``A @ x`` and ``x @ A`` with arrays are arrays there; ``A @ B``, ``A + B``, ``c * A``,
    ``A / c``, ``A.T``, ``A.H``, ``A ** p`` and ``pylinop.array_api.inv(A)`` are operators, and
    nothing is computed.

    Examples
    --------
    >>> import numpy as np, pylinop.array_api as pa
    >>> A = pa.Diag(np.array([1.0, 2.0])) + pa.LowRank(np.ones((2, 1)))
    >>> A @ np.ones(2)
    array([3., 4.])
    """

    __slots__ = ()
    face = FACE


FUNCTIONS = Functions(FACE, Operator)
einsum = einsum_by(_program, FUNCTIONS)


def kind(name: str, *args: Any, **kwargs: Any) -> Operator:
    """An operator of a kind."""
    op: Operator = neutral.made(Operator, operation(name, *args, **kwargs))
    return op
