"""What the core's evaluator of LazyArrays (src/c/py/lazy/py_lazy_eval.c) leaves to Python:
indexing, quotients of matrices, the text around an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors, multiples

_LEAST = 2.0**-100  # whose reciprocal is in range in float32 too


def array_of(x: Any) -> Any:
    """The value of an argument, for NumPy's functions."""
    if not isinstance(x, _core.Lazy):
        return x
    given = x._value is None and x._head == "leaf" and x._more is None
    return x._args[0] if given else x._value


def _part(form: Any, key: Any) -> Any:
    """``form[key]``, on the dense form where operators do not take the key."""
    try:
        return form[key]
    except NotImplementedError:
        return form.toarray()[key]


def part_form(a: Any) -> Any:
    """The form of an index into a form; a hook."""
    part = _part(a._args[0]._form, a._more)
    return part if isinstance(part, _core.Operator) else _core.Dense(part)


def indexed(a: Any) -> Any:
    """The value of an index, read from the argument's value where that is known; a hook."""
    x = a._args[0]
    array = array_of(x)
    part = _part(x._form, a._more) if array is None else array[a._more]
    return part.toarray() if isinstance(part, _core.Operator) else part


def over_form(a: Any) -> Any:
    """The form of a matrix over a number; a hook."""
    form, c = a._args[0]._form, a._args[1]
    c = array_of(c)[()] if isinstance(c, _core.Lazy) else c
    if _LEAST < abs(c) < 1 / _LEAST:
        return multiples.divide(form, c)
    return _core.Dense(form.toarray() / c)


def beyond(a: Any) -> Any:
    """The value of a node of more dimensions than operators have, by NumPy; a hook."""
    x, *rest = (array_of(y) for y in a._args)
    if a._head == "of form":
        f, kwargs = a._more
        found = f(_core.Dense(x.reshape(-1, *x.shape[-2:])), **kwargs)
        return np.asarray(found).reshape(a.shape)
    if a._head == "view":
        seen = np.swapaxes(x, -1, -2) if a._more & 1 else x
        return seen.conj() if a._more & 2 else seen
    if a._head == "inverse":
        return np.linalg.inv(x)
    return _OF_ARRAYS[a._head](x, rest[0])


def passes_limit(a: Any, needed: int) -> None:
    """Called for a value that, with its arguments, passes the memory limit; a hook."""
    raise errors.make_error(
        "MaterializationError",
        f"the value of shape {a.shape} and those that it is made of need {needed:,} bytes; "
        f"pl.config(memory_limit=...) allows {config.get('memory_limit'):,}: take it in parts, "
        "x[i:j]",
        None,
        "evaluate",
        -1,
    )


_OF_ARRAYS = {
    "matmul": np.matmul,
    "add": np.add,
    "scale": np.multiply,
    "over": np.true_divide,
}


def trace(form: Any, offset: int = 0) -> Any:
    """The trace of an operator."""
    return form.trace() if offset == 0 else np.sum(form.diagonal(offset), axis=-1)


def diagonal(form: Any, offset: int = 0) -> Any:
    """A diagonal of an operator."""
    return form.diagonal(offset)


def failed(a: Any, error: Any) -> None:
    """Adds to an error the line that built its node; a hook."""
    if isinstance(error, Exception) and "built at" not in str(error):
        error.add_note(f"in: {a!r}{errors.built(a)}")
