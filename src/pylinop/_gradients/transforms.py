"""Derivatives of functions of arrays and operators: `grad`, `value_and_grad`, `vjp`, `jvp`, `hvp`,
`jacobian`, `hessian`; `stop_gradient`, `custom_vjp`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.checks import is_lazy
from .._base.dlpack import as_array
from .._base.lazy_import import Later
from .._lazy.build import value_of
from .._lazy.leaves import lazy
from .._lazy.program import evaluate
from . import estimate_errors, trees
from .contents import Contents
from .dense_way import simplified
from .pieces import one, stopped
from .rules import Differentiated, Formula
from .sweep import along, sweep_of_derivative
from .trace import OfOperator, Trace, finished

__all__ = [
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

_Function = Callable[..., Any]
_REPEATED = Later("_programs.repeated")


def value_and_grad(
    f: _Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    has_error: bool = False,
) -> _Function:
    """The function that computes the value of ``f`` and its gradient, by one plan.

    Parameters
    ----------
    f : callable
        A function of arrays and operators (also in nested tuples, lists and dicts), which it gets
        as LazyArrays, to one real number: a LazyArray.
    argnums : int or tuple of int, optional
        Which arguments the gradient is by.
    has_aux : bool, optional
        ``f`` returns (value, aux); aux is handed out beside it, LazyArrays computed.
    has_error : bool, optional
        Hand out (error of the value, errors of the gradient) as a third result: the statistical
        errors, at 95 % or the ``confidence`` that was given, that estimates within ``f``
        (``logdet(K, method="slq")``) bring in; 0 where there are none.

    Returns
    -------
    callable
        With the arguments of ``f``, giving (value, gradient) or ((value, aux), gradient): floats
        and arrays of the shapes, dtypes and nesting of the arguments; an operator for an operator,
        of its kind.

    Raises
    ------
    TypeError
        ``f`` asks for the value of an argument (``float(x)``, ``if x > 0``, ``np.asarray(x)``), or
        returns what is not a LazyArray, or an argument holds integers.
    ValueError
        ``f`` returns an array.
    NotImplementedError
        A function on the way has no derivative here; the message names it and the line.

    Notes
    -----
    ``f`` runs at each call; what it builds is planned once for each structure. The convention is
    `gradients`'.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> def f(d):
    ...     return pl.logdet(pl.Diag(d)) + np.sum(d * d)
    >>> value, g = pl.value_and_grad(f)(np.array([1.0, 2.0]))
    >>> round(float(value), 6), g
    (5.693147, array([3. , 4.5]))
    """

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        plain = not (has_aux or has_error or kwargs)
        if plain and (of_program := _REPEATED.of_program(f, argnums, args)) is not None:
            return of_program
        trace = Trace(f, argnums, has_aux, args, kwargs)
        value = trace.number()
        if plain and not trace.is_nested:
            known = _REPEATED.gradients(trace, value)
            if known is not None:
                return known[0][()], trace.shaped(trace.converted(known[1:]))
        if not (trace.is_nested or has_error):
            value = simplified(value, trace.wanted())
        found = sweep_of_derivative(value, trace.wanted(), one(value.dtype))
        (number,), made = finished(trace, [value], trace.gathered(found))
        if trace.is_nested:
            if has_error:
                raise NotImplementedError("has_error within a function that is differentiated")
            return ((number, trace.aux) if has_aux else number), trace.shaped(made)
        shown = (number[()], value_of_aux(trace.aux)) if has_aux else number[()]
        found_both = shown, trace.shaped(made)
        return (*found_both, estimate_errors.errors(trace, value)) if has_error else found_both

    return computed


def value_of_aux(aux: Any) -> Any:
    """What was returned beside the value, computed."""
    found: list[Any] = []
    structure = trees.flatten(aux, found)
    return trees.filled(structure, [value_of(x) for x in found])


def grad(f: _Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> _Function:
    """The function that computes the gradient of ``f``.

    Parameters
    ----------
    f : callable
        As `value_and_grad` takes it.
    argnums : int or tuple of int, optional
        Which arguments the gradient is by.
    has_aux : bool, optional
        ``f`` returns (value, aux); the new function returns (gradient, aux).

    Returns
    -------
    callable
        With the arguments of ``f``.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.grad(lambda x: np.sum(np.exp(x)))(np.array([0.0, 1.0])).round(4)
    array([1.    , 2.7183])
    """

    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        value, made = both(*args, **kwargs)
        return (made, value[1]) if has_aux else made

    return computed


def vjp(f: _Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and the function that takes a cotangent of it to those of the arguments.

    Parameters
    ----------
    f : callable
        To a LazyArray of any shape.
    *primals : array_like, operator, or nested tuples, lists and dicts of them
        The arguments.
    has_aux : bool, optional
        ``f`` returns (value, aux).

    Returns
    -------
    value : ndarray
    pullback : callable
        Of an array of the value's shape; gives a tuple with one gradient an argument.
    aux : optional

    Raises
    ------
    RuntimeError
        By the pullback, where an array that ``f`` holds beside its arguments has been written to
        since. (The arguments are copied.)

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> y, pullback = pl.vjp(lambda x: np.sin(x), np.array([0.0, 1.0]))
    >>> pullback(np.array([1.0, 0.0]))[0]
    array([1., 0.])
    """
    trace = Trace(f, tuple(range(len(primals))), has_aux, primals, {})
    value = trace.lazy_value()

    def pullback(cotangent: Any) -> Any:
        if contents is not None:
            contents.check()
        g = cotangent if trace.is_nested and is_lazy(cotangent) else as_array(cotangent)
        if g.shape != value.shape:
            raise ValueError(
                f"a cotangent of shape {g.shape} for a value of shape {value.shape}"
                + errors.built(value)
            )
        start = (
            g if is_lazy(g) else lazy(np.ascontiguousarray(g, np.result_type(g.dtype, value.dtype)))
        )
        found = sweep_of_derivative(value, trace.wanted(), start)
        return trace.shaped(finished(trace, [], trace.gathered(found))[1])

    contents = None if trace.is_nested else Contents(value)
    if trace.is_nested:
        return (value, pullback, trace.aux) if has_aux else (value, pullback)
    shown = evaluate(value)[()]
    return (shown, pullback, value_of_aux(trace.aux)) if has_aux else (shown, pullback)


def _tangents(trace: Trace, tangents: Any) -> list[list[Any]]:
    """For each parameter the tangents of the arrays that it is, or that it holds."""
    due = len(trace.structures)
    if not isinstance(tangents, (tuple, list)) and not (np.ndim(tangents) and len(tangents) == due):
        what = f"an array of shape {np.shape(tangents)}" if np.ndim(tangents) else "a number"
        raise ValueError(
            f"{what} as tangents of {due} arguments: a tuple is due, with one for each; where "
            "argnums is a tuple, so is the vector"
        )
    if len(tangents) != due:
        raise ValueError(f"{due} arguments, but {len(tangents)} tangents: one each is due")
    flat: list[Any] = []
    for t in tangents:
        trees.flatten(t, flat)
    if len(flat) != len(trace.parameters):
        raise ValueError(
            f"tangents of {len(flat)} arrays and operators for arguments of "
            f"{len(trace.parameters)}: they are nested as the arguments are"
        )
    return [p.tangents(t) for p, t in zip(trace.parameters, flat, strict=True)]


def _paired(trace: Trace, found: dict[int, Any], tangents: list[list[Any]]) -> Iterator[Any]:
    """(cotangent, tangent) of each array that has a cotangent."""
    for p, held in zip(trace.parameters, tangents, strict=True):
        for x, t in zip(p.wanted(), held, strict=True):
            if (g := found.get(id(x))) is not None:
                yield g, t


def _pushed(value: Any, trace: Trace, tangents: list[list[Any]]) -> Any:
    """The tangent of the value: the adjoint of the pullback, which is linear."""
    u = lazy(np.zeros(value.shape, value.dtype))
    total = None
    for g, t in _paired(trace, sweep_of_derivative(value, trace.wanted(), u), tangents):
        term = np.sum(np.conjugate(g) * t) if g.dtype.kind == "c" else np.sum(g * np.real(t))
        total = term if total is None else total + term
    if total is None:
        return u
    got = sweep_of_derivative(total, {id(u): u}, one(total.dtype)).get(id(u))
    return u if got is None else got


def jvp(f: _Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and its derivative along a direction.

    Parameters
    ----------
    f : callable
        To a LazyArray of any shape.
    primals, tangents : tuple or list
        The arguments, arrays, operators or nested tuples, lists and dicts of them, and a direction
        for each: for an operator one of its kind and shape.
    has_aux : bool, optional
        ``f`` returns (value, aux).

    Returns
    -------
    value, derivative : ndarray
    aux : optional

    Notes
    -----
    The pullback of `vjp` is linear in its cotangent; its own pullback is this derivative. So there
    is one set of rules.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> y, dy = pl.jvp(lambda x: np.exp(x), (np.array([0.0, 1.0]),), (np.array([1.0, 0.0]),))
    >>> dy
    array([1., 0.])
    """
    trace = Trace(f, tuple(range(len(primals))), has_aux, tuple(primals), {})
    value = trace.lazy_value()
    made = _pushed(value, trace, _tangents(trace, tangents))
    if trace.is_nested:
        return (value, made, trace.aux) if has_aux else (value, made)
    y, dy = evaluate(value, made)
    if config.get("not_definite") == "nan" and y.ndim == 0 and np.isnan(y):
        dy = np.full_like(dy, np.nan)
    y, dy = y[()], dy[()]
    return (y, dy, value_of_aux(trace.aux)) if has_aux else (y, dy)


def _along(trace: Trace, value: Any, vectors: Any) -> list[list[Any]]:
    """The gradient of <gradient, vectors>."""
    tangents = _tangents(trace, vectors)
    by = {
        id(x): t
        for p, held in zip(trace.parameters, tangents, strict=True)
        for x, t in zip(p.wanted(), held, strict=True)
    }
    return trace.gathered(along(value, trace.wanted(), lambda x: by[id(x)]))


def hvp(f: _Function, argnums: int | tuple[int, ...] = 0) -> _Function:
    """The function that multiplies the Hessian of ``f`` with a vector.

    Parameters
    ----------
    f : callable
        To one real number.
    argnums : int or tuple of int, optional
        Which arguments the Hessian is by.

    Returns
    -------
    callable
        ``(*args, vector)``, the vector nested as the argument (a tuple of them where ``argnums`` is
        one), giving what has the same nesting.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.hvp(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        *rest, vector = args
        trace = Trace(f, argnums, False, tuple(rest), kwargs)
        value, vectors = trace.number(), vector if trace.several else (vector,)
        tangents = _tangents(trace, vectors)
        known = None if trace.is_nested else _REPEATED.products(trace, value, tangents)
        if known is not None:
            return trace.shaped(trace.converted(known))
        if not trace.is_nested:
            value = simplified(value, trace.wanted())
        groups = _along(trace, value, vectors)
        return trace.shaped(finished(trace, [], groups)[1])

    return computed


def _rows(trace: Trace, value: Any) -> list[Any]:
    """For each parameter the array of derivatives, (*value.shape, *parameter.shape)."""
    size = int(np.prod(value.shape))
    whole: list[Any] = [[] for _ in trace.parameters]
    for k in range(size):
        unit = np.zeros(size, value.dtype)
        unit[k] = 1
        found = sweep_of_derivative(value, trace.wanted(), lazy(unit.reshape(value.shape)))
        _, made = finished(trace, [], trace.gathered(found))
        for rows, row in zip(whole, made, strict=True):
            if isinstance(row, _core.Operator):
                raise NotImplementedError("jacobian by an operator: give its arrays as arguments")
            rows.append(np.conjugate(row))
    return [
        _one_array(rows, (*value.shape, *p.lazy.shape), p.lazy.dtype)
        for rows, p in zip(whole, trace.parameters, strict=True)
    ]


def _one_array(rows: list[Any], shape: Any, dtype: Any) -> Any:
    """Rows of derivatives, LazyArrays where the function is one within another."""
    if not rows:
        return np.zeros(shape, dtype)
    return np.reshape(np.stack(rows) if is_lazy(rows[0]) else rows, shape)


def jacobian(f: _Function, argnums: int | tuple[int, ...] = 0) -> _Function:
    """The function that computes all derivatives of ``f``, an array for each argument.

    Parameters
    ----------
    f : callable
        To a LazyArray of any shape.
    argnums : int or tuple of int, optional
        Which arguments the derivatives are by.

    Returns
    -------
    callable
        With the arguments of ``f``, giving arrays of shape ``(*value.shape, *argument.shape)``,
        nested as the arguments are. Of complex arguments the derivative of a holomorphic function.

    Notes
    -----
    One sweep back for each element of the value.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(f, argnums, False, args, kwargs)
        return trace.shaped(_rows(trace, trace.lazy_value()))

    return computed


def hessian(f: _Function, argnums: int = 0) -> _Function:
    """The function that computes the second derivatives of ``f`` by one array.

    Parameters
    ----------
    f : callable
        To one real number.
    argnums : int, optional
        Which argument they are by, a real array.

    Returns
    -------
    callable
        With the arguments of ``f``, giving an array of shape
        ``(*argument.shape, *argument.shape)``.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(f, argnums, False, args, kwargs)
        if len(trace.parameters) != 1 or isinstance(trace.parameters[0], OfOperator):
            raise TypeError("hessian is by one array: for more use pl.hvp")
        x = trace.parameters[0].lazy
        if x.dtype.kind == "c":
            raise TypeError("hessian is by a real array, got a complex one")
        value = trace.number()
        rows = []
        for k in range(x.size):
            unit = np.zeros(x.size, x.dtype)
            unit[k] = 1
            groups = _along(trace, value, (unit.reshape(x.shape),))
            rows.append(finished(trace, [], groups)[1][0])
        return _one_array(rows, (*x.shape, *x.shape), x.dtype)

    return computed


def stop_gradient(x: Any) -> Any:
    """x as a constant: no derivative passes through it.

    Parameters
    ----------
    x : LazyArray, array_like or operator

    Returns
    -------
    LazyArray

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.grad(lambda x: np.sum(x * pl.stop_gradient(x)))(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return stopped(lazy(x))


def custom_vjp(f: _Function, rule: _Function, shape: Any = None, dtype: Any = None) -> _Function:
    """A function with a derivative of its own.

    Parameters
    ----------
    f : callable
        A formula of LazyArrays. With ``shape``, any function of NumPy arrays to an array of that
        shape, run when its value is needed.
    rule : callable
        ``rule(value, args, g)``: a tuple with the cotangent of each argument (None: it has none),
        for the cotangent ``g`` of the value; LazyArrays all.
    shape : tuple of int, optional
    dtype : dtype, optional
        Of the value, with ``shape``; float64.

    Returns
    -------
    callable
        Of arrays and LazyArrays, to a LazyArray.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> clipped = pl.custom_vjp(lambda x: x * x, lambda y, args, g: (np.clip(g, -1, 1),))
    >>> pl.grad(lambda x: np.sum(5 * clipped(x)))(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    if not callable(f) or not callable(rule):
        raise TypeError("custom_vjp takes a function and its rule, both callable")

    @functools.wraps(f)
    def made(*args: Any) -> Any:
        held = tuple(lazy(x) for x in args)
        if shape is not None:
            more: tuple[Any, dict[str, Any]] = (Differentiated(f, rule), {})
            return _core._LazyArray("call", held, tuple(shape), np.dtype(dtype or float), more)
        value = f(*held)
        if not is_lazy(value):
            raise TypeError(
                f"{getattr(f, '__name__', 'the function')} gave a {type(value).__name__}, not a "
                "LazyArray: for a function of values say shape="
            )
        more = (Formula(f, rule), {})
        return _core._LazyArray("call", (value, *held), value.shape, value.dtype, more)

    return made
