"""Multiples of operators by numbers of NumPy: quotients, and products of two coefficients.

A number of NumPy's in single precision has the digits of float32, but what is computed with it need
not: ``A / np.float32(3)`` of a float64 A is float64 in NumPy, and so is the quotient here. The
reciprocal is taken in double precision (or in the quotient's own, where that is wider)."""

import math
from typing import Any

import numpy as np

_TINY = {kind: float(np.finfo(kind).tiny) for kind in "fFdD"}
_PART = {kind: 2.0**60 if kind in "fF" else 2.0**600 for kind in "fFdD"}


def quotient_dtype(op: Any, number: Any) -> np.dtype[Any]:
    """The dtype of ``op / number`` by NumPy's rules; that of an operator without a dtype of its own
    follows the number."""
    own: Any = op.dtype
    if op._weak:
        own = {"c": complex, "f": float}.get(own.kind, int)
    return np.true_divide.resolve_dtypes((own, number.dtype, None))[-1]


def divide(op: Any, number: Any) -> Any:
    """``op / number`` for a number of Python or NumPy: a multiple by its reciprocal."""
    number = number[()] if isinstance(number, np.ndarray) else number
    if op.dtype is None or not isinstance(number, (np.number, np.bool_)):
        return _times_reciprocal(op, number, "d")
    dtype = quotient_dtype(op, number)
    if dtype.char in "gGO":  # wider than C's numbers
        return op * (dtype.type(1) / dtype.type(number))
    wide = np.complex128 if number.dtype.kind == "c" else np.float64
    found = _times_reciprocal(op, wide(number), dtype.char)
    return found if found.dtype == dtype else _times_reciprocal(op.astype(dtype), wide(number), "d")


def _times_reciprocal(op: Any, number: Any, char: str) -> Any:
    """op times 1 / number, a number of Python. It takes two steps where the reciprocal is not a
    normal number in that dtype, although the quotient may be one."""
    with np.errstate(over="ignore", under="ignore"):
        r = 1.0 / number
    r = r.item() if isinstance(r, np.generic) else r
    size, tiny = abs(r), _TINY.get(char, _TINY["d"])
    if tiny <= size <= 1 / tiny or not (0 < abs(number) < math.inf):
        return op * r
    part = _PART.get(char, _PART["d"])
    part = part if size > 1 else 1 / part
    rest = 1.0 / (number * part)
    return (op * part) * (rest.item() if isinstance(rest, np.generic) else rest)


def product(a: Any, b: Any) -> Any:
    """a b for two coefficients, in double precision where they have less; otherwise the kind of
    number that NumPy gives, but integers are Python's: what asks computes in the dtype of its
    answer, where a product does not wrap as theirs would."""
    a, b = (int(x) if isinstance(x, np.integer) else x for x in (a, b))
    single = any(getattr(x, "dtype", None) in _SINGLE for x in (a, b))
    if not single:  # NumPy's first: Python's complex takes its float64 for a float of Python's
        return b * a if isinstance(b, np.generic) else a * b
    c = complex(a) * complex(b)
    return c if isinstance(a * b, (complex, np.complexfloating)) else c.real


def total(a: Any, b: Any) -> Any:
    """a + b for two coefficients, likewise."""
    if not any(getattr(x, "dtype", None) in _SINGLE for x in (a, b)):
        return a + b
    c = complex(a) + complex(b)
    return c if isinstance(a + b, (complex, np.complexfloating)) else c.real


_SINGLE = (np.dtype("f2"), np.dtype("f4"), np.dtype("c8"))
