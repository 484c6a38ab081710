"""Dense forms that functions of operators share with a plan, within `pl.evaluate`.

    functions of x, large --> their trees, as `explain` plans them: whose dense forms do they take?
                          --> products and sums among these, as further values of the plan of what
                              else is asked: taken where it is cheaper than to form them once more
                          --> held for the functions, which run behind the plan

The values are the plan's alone. No node of the formula has them: a solve that fails in the plan
still knows how its matrix is written, of which rank it is at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._structured import dispatch, trees
from .._structured.rows import QUESTIONS
from .._structured.scalar_function import Function as Scalar
from .decompositions import Function
from .matrix_functions import OfForm, Piece

_LEAST = 1 << 13  # entries from which a function takes longer than to ask whether it shares
_WORTH = 3e-4  # seconds of forming from which it is asked: about what asking takes (2026-11-27)
_GAIN = 0.5  # of forming it, that has to be saved

_DENSE = 0  # the action, as in op_results.c
_Piece = tuple[Any, int]
_ANY = Scalar("any", call=np.cos)
_ASKED: dict[str, tuple[str, tuple[Any, ...]]] = {  # the question of a function, its arguments
    "eigh": ("eigh", ("L",)),
    "eigvalsh": ("eigvalsh", ("L",)),
    "eig": ("eig", ()),
    "eigvals": ("eigvals", ()),
    "svd": ("svd", (False,)),
    "svdvals": ("svdvals", ()),
    "qr": ("qr", ("reduced",)),
    "r of qr": ("qr", ("r",)),
    "lu": ("lu", ()),
    "ldl": ("ldl", (True, True)),
    "pinv": ("pinv", ({},)),
    "norm": ("matrix_norm", ("fro",)),
    "cond": ("cond", (2,)),
    "matrix_rank": ("svdvals", ()),
    "expm": ("expm", (Scalar("exp"),)),
    "logm": ("logm", (Scalar("log"),)),
    "sqrtm": ("sqrtm, fractional_matrix_power", (Scalar("power", 0.5),)),
    "fractional_matrix_power": ("sqrtm, fractional_matrix_power", (Scalar("power", 0.5),)),
    "funm": ("funm", (_ANY,)),
}


def function_of(a: Any) -> Any:
    """The function of operators that a node is the result of; None of another."""
    if a._head not in ("of form", "made"):
        return None
    f = a._more[0]
    if isinstance(f, Piece):
        return f.joint
    return f if isinstance(f, (Function, OfForm)) else None


def _is_made(a: Any) -> bool:
    """Is a node the result of a function, or an operand of it?"""
    found = a._args if a._head == "matmul" else (a,)
    return any(function_of(x) is not None for x in found)


def is_held_for(a: Any) -> bool:
    """Is a node the result of a function of a product, whose dense form functions share?"""
    if function_of(a) is None:
        return False
    x = a._args[0]
    terms = [f for f in x._args if f is not x] if x._head == "add" else [x]
    return bool(
        x.ndim == 2
        and any(getattr(f, "_head", "") == "matmul" for f in terms)
        and dispatch.may_hold(x.size * x.itemsize)
    )


def _products(x: Any) -> list[Any]:
    """The products whose dense forms functions of x may take: x, or terms of it."""
    found = (x, *x._args) if x._head == "add" else (x,)
    return [a for a in found if isinstance(a, _core.Lazy) and a._value is None and a.ndim == 2]


def _taken(
    functions: list[Any], pieces: list[_Piece], ask: Callable[[list[_Piece]], list[Any]]
) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """The products, with their forms, whose dense forms functions take; of size. And the forms of
    those that several functions ask for.

    A Cholesky factor is the one that solves keep, whose plan forms the product: it is made of a
    form that others take where no such plan runs."""
    by: dict[int, tuple[Any, set[str]]] = {}
    for a in functions:
        f = function_of(a)
        if f is None:
            continue
        x, name = a._args[0], f.name
        if x._value is None and x.size >= _LEAST and x._head in ("matmul", "add"):
            by.setdefault(id(x), (x, set()))[1].add(name)
    found: dict[int, tuple[Any, Any]] = {}
    several: list[Any] = []
    asked_for = {id(a) for a, action in pieces if action == _DENSE}
    for x, names in by.values():
        whole = _core._lazy_operator(x)
        if x.ndim != 2 or whole is None or whole._opaque or whole.dtype.char not in "fdFD":
            continue
        if _seconds(ask([(_again(x), _DENSE)])) < _WORTH:  # so would be each term of it
            continue
        asked = [_ASKED[name] for name in names if name in _ASKED]
        forms: set[int] = set()
        for name, args in asked:
            forms |= trees.dense_forms(QUESTIONS[name], whole, *args)
        if "cholesky" in names and id(x) in asked_for:
            forms.add(id(whole))
        if len(names) > 1:
            several.append(whole)
        for a in _products(x):
            form: Any = _core._lazy_operator(a)
            if id(form) in forms and form.dtype == a.dtype and form._head in ("prod", "sum"):
                found[id(a)] = a, form
    return list(found.values()), several


def _again(a: Any) -> Any:
    """The same formula, as a node of its own."""
    return _core._LazyArray(a._head, a._args, a.shape, a.dtype, a._more)


def _seconds(asked: Any) -> float:
    if not asked:
        return 0.0
    return _core._results_priced([(q.op, q.action, q.offset, 0) for q in asked])[1]


def _apart(nodes: list[Any]) -> None:
    """Values in memory of their own: beside dense forms that they would keep alive they lie in one
    block."""
    for a in nodes:
        value = a._value
        if value is not None and value.base is not None:
            value = value.copy()
            value.setflags(write=False)
            a._value = value


def ahead(
    pieces: list[_Piece],
    functions: list[Any],
    groups: Callable[[list[_Piece]], list[list[_Piece]]],
    ask: Callable[[list[_Piece]], list[Any]],
    run: Callable[[list[Any]], None],
) -> None:
    """Computes the pieces that share a product's dense form with functions, and holds that for
    the functions. ``groups``: which pieces one plan computes, ``ask`` and ``run``: such a plan."""
    taken, several = _taken(functions, pieces, ask)
    left = [(a, form) for a, form in taken if dispatch.may_hold(a.size * a.itemsize)]
    for group in groups([p for p in pieces if not _is_made(p[0])] if left else []):
        asked = ask(group)
        held: list[tuple[Any, Any]] = []
        for a, form in left if asked else ():
            node = _again(a)
            alone = _seconds(ask([(node, _DENSE)]))
            if alone < _WORTH:
                continue
            both = ask([*group, *((n, _DENSE) for n, _ in held), (node, _DENSE)])
            if _seconds(both) <= _seconds(asked) + (1 - _GAIN) * alone:
                held.append((node, form))
                asked = both
        if held:
            run(asked)
            _apart([a for a, _ in group])
        for node, form in held:
            if node._value is not None:
                dispatch.hold(form, node._value)
        left = [(a, form) for a, form in left if all(form is not f for _, f in held)]
    lacking = {id(form) for _, form in left}
    for whole in several:
        if any(id(form) in lacking for form in (whole, *whole._operands)):
            dispatch.want(whole)
