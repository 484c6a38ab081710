"""`gradients`: derivatives of an expression, as expressions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._base.dlpack import as_array, fixed
from .._lazy.kinds import handed
from .._lazy.leaves import lazy
from . import operands
from .dense_way import simplified
from .held import alike, others
from .likelihoods import within
from .pieces import one
from .sweep import both, named, order_of, sweep, swept
from .unchanged import Unchanged

__all__ = ["gradients"]


def _checked(x: Any) -> Any:
    """Checks the argument that a derivative is wanted by."""
    if not (is_lazy(x) or isinstance(x, (_core.Operator, np.ndarray))):
        raise TypeError(
            f"gradients by a {type(x).__name__}: give LazyArrays, or arrays and operators that the "
            "expression holds"
        )
    if x.dtype is None or x.dtype.kind not in "fc":
        raise TypeError(f"gradients by {named(x)} of dtype {x.dtype}: it has to be real or complex")
    return x


def _start(value: Any, cotangent: Any) -> Any:
    """The cotangent of the value."""
    if value.dtype.kind not in "fc":
        raise TypeError(f"a value of dtype {value.dtype} has no gradient" + errors.built(value))
    if cotangent is None:
        if value.shape != ():
            raise ValueError(
                f"a value of shape {value.shape} has a gradient for a cotangent of that shape: "
                "give cotangent=, or sum it up" + errors.built(value)
            )
        return one(value.dtype)
    given = cotangent if is_lazy(cotangent) else lazy(np.asarray(as_array(cotangent), value.dtype))
    if given.shape != value.shape:
        raise ValueError(
            f"a cotangent of shape {given.shape} for a value of shape {value.shape}"
            + errors.built(value)
        )
    return given


def gradients(value: Any, wrt: Any, cotangent: Any = None, allow_unused: bool = False) -> Any:
    """Gradients of an expression by what it is made of, as expressions.

    Parameters
    ----------
    value : LazyArray
        Of no dimensions, unless ``cotangent`` is given.
    wrt : LazyArray, ndarray, operator, or a list or tuple of them
        Leaves and other parts of the expression, by identity: an array in all places that hold it,
        a LazyArray or an operator alone, also where others are of the same array.
    cotangent : array_like or LazyArray, optional
        Of the shape of ``value``; 1 where it has no dimensions.
    allow_unused : bool, optional
        Zeros for what the value does not depend on; else that is an error.

    Returns
    -------
    LazyArray or list of LazyArray
        One for each of ``wrt``, of its shape, not yet computed: ``pl.evaluate(value, *found)``
        computes value and gradients by one plan. Of one by an operator that is an operator of the
        same kind, or made by the same operations, which holds the gradients of its arrays.

    Raises
    ------
    TypeError
        ``wrt`` is not real or complex, or ``value`` is not a LazyArray.
    ValueError
        The value has dimensions and no cotangent is given, or does not depend on one of ``wrt``, or
        holds other views of one of its arrays too, which would lack in the gradient.
    NotImplementedError
        A function on the way has no derivative here; the message names it.
    RuntimeError
        When a gradient is computed, where (parts of) the value were computed before, of arrays that
        have been written to since, and the value moved further than rounding may move it.

    Notes
    -----
    Lazy: nothing is computed. Where the value is known before its gradients are computed, it is
    computed once more with the first of them, to see whether its arrays are as they were;
    ``pl.evaluate`` of both does not. The gradient G of a real number L says
    dL = Re sum(conj(G) dp), as PyTorch's does; JAX's is the conjugate. Gradients of an operator's
    parameters are made in its structure: of ``Diag(d)`` a vector, of ``LowRank(U)`` thin products,
    without an m x n array. Arrays that are assumed symmetric or positive definite
    (``pl.lazy(a, assume_a='pos')``) have a gradient that is Hermitian.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> d = pl.lazy(np.array([1.0, 2.0, 4.0]))
    >>> value = pl.logdet(pl.Diag(d)) + (d * d).sum()
    >>> g = pl.gradients(value, d)
    >>> g.toarray()
    array([3.  , 4.5 , 8.25])
    """
    if not is_lazy(value):
        raise TypeError(
            f"gradients of a {type(value).__name__}: give a LazyArray, which is made by operations "
            "on pl.lazy(...)"
        )
    several = isinstance(wrt, (list, tuple))
    asked = [_checked(x) for x in (wrt if several else (wrt,))]
    first = alike(asked)
    wanted = {id(x): x for x in first.values()}
    twins = others(value, [x for x in wanted.values() if not is_lazy(x)])
    wanted.update((at, x) for at, (x, _) in twins.items())
    within(value, wanted.values())
    order = order_of(value, wanted)
    start, short = _start(value, cotangent), simplified(value, wanted)
    found = swept(order if short is value else order_of(short, wanted), short, wanted, start)
    for at, (_, x) in twins.items():
        if at in found:
            found[id(x)] = both(found.get(id(x)), found[at], x)
    unchanged = Unchanged(value, [x for x, _ in order], wanted)
    made = []
    for x in asked:
        g = found.get(id(first[id(x)]))
        if g is None and not allow_unused:
            raise ValueError(
                f"the value does not depend on {named(x)}: give allow_unused=True for zeros"
            )
        if isinstance(x, _core.Operator):
            made.append(_of_operator(x, g, unchanged))
        else:
            made.append(lazy(_zeros(x)) if g is None else unchanged.guarding(g))
    return made if several else made[0]


def _zeros(x: Any) -> Any:
    return fixed(np.zeros(x.shape, x.dtype))


def _of_operator(op: Any, g: Any, unchanged: Unchanged) -> Any:
    """An operator of the same kind that holds the cotangents of its arrays, of its own."""
    mine, arrays = operands.own(op)
    found = {} if g is None else sweep(mine, {id(a): a for a in arrays}, g)
    held = [unchanged.guarding(found[id(a)]) if id(a) in found else lazy(_zeros(a)) for a in arrays]
    made = handed(functools.partial(operands.filled, mine), held, type(op).__name__)
    return unchanged.guarding(made)
