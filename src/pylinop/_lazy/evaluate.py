"""What the core's evaluator of LazyArrays (src/c/py/lazy/py_lazy_eval.c) leaves to Python:
indexing, quotients of matrices, the text around an error, parts shared by several expressions,
explanations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors, multiples
from .._base.lazy_import import Later
from .leaves import lazy

_VERIFY = Later("_verify.compare")

_LEAST = 2.0**-100  # whose reciprocal is in range in float32 too


def array_of(x: Any) -> Any:
    """The value of an argument, for NumPy's functions."""
    if not isinstance(x, _core.Lazy):
        return x
    return x._args[0] if x._value is None and x._head == "leaf" else x._value


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
    return form.trace() if offset == 0 else np.trace(form, offset)


def diagonal(form: Any, offset: int = 0) -> Any:
    """A diagonal of an operator."""
    return form.diagonal(offset)


def failed(a: Any, error: Any) -> None:
    """Adds to an error the line that built its node; a hook."""
    if isinstance(error, Exception) and "built at" not in str(error):
        error.add_note(f"in: {a!r}{errors.built(a)}")


_MOST = 8  # results of one plan


def together(roots: Any) -> None:
    """Computes several LazyArrays, shared parts once. Linear ones of one dtype make one plan."""
    linear: dict[Any, list[Any]] = {}
    rest: list[Any] = []
    for a in {id(a): a for a in roots}.values():
        if a._value is None:
            joins = a._head in _JOINS or _core._lazy_is_deep(a)
            joins = joins and a.ndim <= 2 and a.dtype.char in "fdFD"
            (linear.setdefault(a.dtype, []) if joins else rest).append(a)
    _core._lazy_run(_shared(rest, sum(linear.values(), [])), None)
    for group in linear.values():
        for i in range(0, len(group), _MOST):
            _compute_joint(group[i : i + _MOST])
    for a in roots:
        a._computed()


_JOINS = ("matmul", "add", "scale", "view", "inverse")


def _compute_joint(group: Any) -> None:
    """Computes linear LazyArrays by one plan, where their forms allow it."""
    found = [(a, _core._lazy_operator(a)) for a in group]
    forms = [(a, f) for a, f in found if f is not None and _joins(a, f)]
    if len(forms) < 2:
        return
    column = forms[0][1]
    for _, f in forms[1:]:
        column = _core._build("joint", column, f)
    verify, held = config.get("verify"), []
    if verify:
        _VERIFY.evaluated(None)
    try:
        values, start = column.toarray(), 0
    finally:
        if verify:
            held = _VERIFY.released()
    for a, f in forms:
        stop = start + f.shape[0] * f.shape[1]
        part = values[start:stop].reshape(a.shape)
        part.setflags(write=False)
        a._value = part
        start = stop
    if verify:
        _compare([a for a, _ in forms], held)


def _compare(arrays: Any, held: Any) -> None:
    """Verifies values; a wrong value is not cached."""
    try:
        _VERIFY.compared(arrays, held)
    except Exception:
        for a in arrays:
            a._value = None
        raise


def _joins(a: Any, form: Any) -> Any:
    return form.ndim == 2 and form.dtype == a.dtype and not (form._opaque or form._weak)


def _shared(rest: Any, linear: Any) -> list[Any]:
    """Products, inverses and calls that one of `rest` shares with a second root; what only `linear`
    roots share is left to their plan."""
    first, found = set(), {}
    for i, root in enumerate(rest + linear):
        stack, seen = [root], set()
        while stack:
            a = stack.pop()
            if id(a) in seen or id(a) in found:
                continue
            seen.add(id(a))
            if id(a) in first and a._head in ("matmul", "call", "of form"):
                found[id(a)] = a
            else:
                stack += [x for x in a._args if isinstance(x, _core.Lazy)]
        if i < len(rest):
            first |= seen
    return list(found.values())


def evaluate(*expressions: Any) -> Any:
    """Compute several expressions together; parts they share are computed once.

    Parameters
    ----------
    *expressions : LazyArray

    Returns
    -------
    ndarray or tuple of ndarray
        One array for one expression, else a tuple. They are read-only, as the expressions cache
        them; results of one plan lie in one block of memory, which lives as long as any of them.

    Notes
    -----
    Linear expressions of one dtype make one plan, at most 8 to a plan: what they share is chosen by
    cost for all together.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.lazy(np.eye(2))
    >>> S = A @ A.T
    >>> pl.evaluate(S, S.trace())[1]
    array(2.)
    """
    roots = [lazy(e) for e in expressions]
    if len(roots) > 1:
        together(roots)
    values = tuple(r._computed() for r in roots)
    return values[0] if len(values) == 1 else values
