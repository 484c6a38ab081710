"""`gradients`: derivatives of an expression, as expressions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._base.dlpack import as_array, fixed
from .._lazy.kinds import Kind, handed
from .._lazy.leaves import lazy
from . import matrices, operands
from .held import alike, is_apart, others
from .pieces import Through, ThroughGradient, one, real_of
from .rules import RULES, Formula, sources
from .shapes import unbroadcast
from .unchanged import Unchanged

__all__ = ["gradients"]

_Order = list[tuple[Any, list[tuple[Any, Any]]]]


def _parts(x: Any, deep: bool) -> list[tuple[Any, Any]]:
    """(key, part) of what x is made of; `deep`: arrays and operators count."""
    if not isinstance(x, _core.Lazy):
        return [] if isinstance(x, np.ndarray) else matrices.parts(x)
    if x._head in ("leaf", "operator"):
        return [(0, x._args[0])] if deep else []
    kinds = (_core.Lazy, _core.Operator, np.ndarray) if deep else _core.Lazy
    return [(k, p) for k, p in sources(x) if isinstance(p, kinds) and _is_smooth(p)]


def _is_smooth(x: Any) -> bool:
    """Can x have a derivative? Integers and truth values cannot."""
    return x.dtype is None or x.dtype.kind in "fc"


def _order(root: Any, wanted: dict[int, Any], ends: frozenset[int]) -> _Order:
    """What depends on what is wanted, arguments first, with those of its parts that do; what is
    behind `ends` does not count."""
    order: _Order = []
    live: dict[int, bool] = {}
    deep = any(not isinstance(x, _core.Lazy) for x in wanted.values())
    stack: list[Any] = [(root, None)]
    while stack:
        x, parts = stack.pop()
        at = id(x)
        if parts is not None:
            parts = [kp for kp in parts if live[id(kp[1])]]
            if parts or at in wanted:
                live[at] = True
                order.append((x, parts))
        elif at not in live:
            live[at] = False
            parts = [] if at in ends else _parts(x, deep)
            if is_lazy(x) and x._head == "call" and isinstance(x._more[0], Formula):
                _closed(x, wanted)
            stack.append((x, parts))
            stack += [(p, None) for _, p in parts if id(p) not in live]
    return order


def _closed(x: Any, wanted: dict[int, Any]) -> None:
    """Raises ValueError where a formula with a rule of its own reads what a gradient is wanted by
    past its arguments, which the rule alone is asked about."""
    given = frozenset(map(id, x._args[1:]))
    rest = {at: y for at, y in wanted.items() if at not in given}
    if rest and _order(x._args[0], rest, given):
        name = x._more[0].__name__
        raise ValueError(
            f"{name}, of pl.custom_vjp, reads what the gradient is by beside its arguments, of "
            "which alone its rule gives cotangents: make it an argument, or read "
            "pl.stop_gradient of it" + errors.built(x)
        )


def _through(t: Through, part: Any, x: Any) -> Any:
    """The cotangent of a part of x through an expression; None where that has nothing of the part.
    One that has its arrays, and does not lead to it, is no way to a derivative."""
    ends, wanted = frozenset(map(id, t.ends)), {id(part): part}
    order = _order(t.expression, wanted, ends)
    if order:
        return _swept(order, t.expression, wanted, t.cotangent).get(id(part))
    if not is_apart(t.expression, part, ends - {id(part)}):
        raise NotImplementedError(
            f"a derivative of {_function(x)} is not known here: the expression that it is found "
            "through holds the arrays of its operand without leading to it" + errors.built(x)
        )
    return None


def _function(x: Any) -> str:
    """What is to be named of a node."""
    if isinstance(x, _core.Operator):
        return f"a {type(x).__name__}"
    made = x._more[0] if x._head in ("made", "call", "of form") else x._head
    return str(getattr(made, "__name__", made))


def _cotangent(x: Any, g: Any, key: Any, part: Any) -> Any:
    """The cotangent of one part; real where the part is."""
    if isinstance(x, _core.Operator):
        found = matrices.of_part(x, g, key, part)
    elif x._head in ("leaf", "operator"):
        found = g
    else:
        found = RULES[x._head](x, g, key)
        if isinstance(found, ThroughGradient):
            made = _through(found.first, found.of, x)
            found = made if made is None else Through(made, found.cotangent, found.first.ends)
    if isinstance(found, Through):
        found = _through(found, part, x)
    if found is None:
        return None
    dtype = part.dtype
    if dtype is not None and dtype.kind != "c" and is_lazy(found) and found.dtype.kind == "c":
        found = real_of(found)
    return found


def _assumed(g: Any, leaf: Any) -> Any:
    """Projects a gradient onto what is assumed of its matrix: Hermitian, triangular, diagonal."""
    word, made = leaf._more, _core
    if word in (None, "gen", "general") or leaf.ndim < 2:
        return g
    if word in ("sym", "symmetric"):
        return (g + g.T) / 2
    if word in ("her", "hermitian", "pos", "positive definite"):
        return (g + g.H) / 2
    if word in ("lower triangular", "upper triangular"):
        return made.Triangular(g, word.startswith("lower"))
    if word == "diagonal":
        return made.Diag(g.diagonal())
    if word == "tridiagonal":
        return made.Tridiagonal(*(g.diagonal(k) for k in (-1, 0, 1)))
    raise NotImplementedError(
        f"a matrix that is assumed {word!r} has no gradient yet" + errors.built(leaf)
    )


def sweep(
    value: Any, wanted: dict[int, Any], cotangent: Any, ends: frozenset[int] = frozenset()
) -> dict[int, Any]:
    """The cotangents of what is wanted, by its id; what the value does not lead to has none."""
    return _swept(_order(value, wanted, ends), value, wanted, cotangent)


def sweep_of_derivative(value: Any, wanted: dict[int, Any], cotangent: Any) -> dict[int, Any]:
    """Likewise of an expression that a sweep has made: what it does not lead to it has nothing of,
    or that is an error."""
    order = _order(value, wanted, frozenset())
    reached = {id(x) for x, _ in order}
    for at, x in wanted.items():
        if at not in reached and not is_apart(value, x, frozenset()):
            raise NotImplementedError(
                f"a derivative holds the arrays of {_named(x)} in another form, which does not "
                "lead to it: there is no further derivative by it" + errors.built(value)
            )
    return _swept(order, value, wanted, cotangent)


def _swept(order: _Order, value: Any, wanted: dict[int, Any], cotangent: Any) -> dict[int, Any]:
    """Likewise, of what depends on it, in order."""
    found: dict[int, Any] = {}
    gathered: dict[int, Any] = {id(value): cotangent}
    for x, parts in reversed(order):
        g = gathered.pop(id(x), None)
        if g is None:
            continue
        if is_lazy(x) and x._head == "leaf":
            g = _assumed(g, x)
        if id(x) in wanted:
            found[id(x)] = g
        for key, part in parts:
            more = _cotangent(x, g, key, part)
            if more is None:
                continue
            if id(part) in wanted or not _takes_stacks(part):
                more = unbroadcast(more, part)
            gathered[id(part)] = _both(gathered.get(id(part)), more, part)
    return found


def along(value: Any, wanted: dict[int, Any], vector: Callable[[Any], Any]) -> dict[int, Any]:
    """The gradient of <gradient, vectors> of a real number, by the ids of what is wanted; of each
    of those the vector is asked for."""
    slopes = sweep_of_derivative(value, wanted, one(value.dtype))
    total = None
    for x in wanted.values():
        g = slopes.get(id(x))
        if g is not None:
            term = np.sum(np.real(np.conjugate(g) * vector(x)))
            total = term if total is None else total + term
    if total is None:
        return {}
    return sweep_of_derivative(total, wanted, one(total.dtype))


def _takes_stacks(x: Any) -> bool:
    """May the cotangent of x have more batch dimensions than x? What it holds has their sum."""
    if isinstance(x, _core.Operator) or x._head in _LINEAR:
        return True
    return x._head == "made" and isinstance(x._more[0], Kind)


_LINEAR = frozenset(("operator", "add", "view", "scale", "over"))


def _both(before: Any, more: Any, part: Any) -> Any:
    """The sum of two cotangents of one part."""
    if before is None:
        return more
    if before.shape != more.shape:
        before, more = unbroadcast(before, part), unbroadcast(more, part)
    return before + more


def _checked(x: Any) -> Any:
    """Checks the argument that a derivative is wanted by."""
    if not (is_lazy(x) or isinstance(x, (_core.Operator, np.ndarray))):
        raise TypeError(
            f"gradients by a {type(x).__name__}: give LazyArrays, or arrays and operators that the "
            "expression holds"
        )
    if x.dtype is None or x.dtype.kind not in "fc":
        raise TypeError(
            f"gradients by {_named(x)} of dtype {x.dtype}: it has to be real or complex"
        )
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
    order = _order(value, wanted, frozenset())
    found = _swept(order, value, wanted, _start(value, cotangent))
    for at, (_, x) in twins.items():
        if at in found:
            found[id(x)] = _both(found.get(id(x)), found[at], x)
    unchanged = Unchanged(value, [x for x, _ in order], wanted)
    made = []
    for x in asked:
        g = found.get(id(first[id(x)]))
        if g is None and not allow_unused:
            raise ValueError(
                f"the value does not depend on {_named(x)}: give allow_unused=True for zeros"
            )
        if isinstance(x, _core.Operator):
            made.append(_of_operator(x, g, unchanged))
        else:
            made.append(lazy(_zeros(x)) if g is None else unchanged.guarding(g))
    return made if several else made[0]


def _named(x: Any) -> str:
    said = "" if isinstance(x, np.ndarray) else errors.built(x)
    return f"the {type(x).__name__} of shape {tuple(x.shape)}{said}"


def _zeros(x: Any) -> Any:
    return fixed(np.zeros(x.shape, x.dtype))


def _of_operator(op: Any, g: Any, unchanged: Unchanged) -> Any:
    """An operator of the same kind that holds the cotangents of its arrays, of its own."""
    mine, arrays = operands.own(op)
    found = {} if g is None else sweep(mine, {id(a): a for a in arrays}, g)
    held = [unchanged.guarding(found[id(a)]) if id(a) in found else lazy(_zeros(a)) for a in arrays]
    made = handed(functools.partial(operands.filled, mine), held, type(op).__name__)
    return unchanged.guarding(made)
