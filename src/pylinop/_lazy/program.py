"""Several LazyArrays computed by one plan: `pl.evaluate`.

    roots --> pieces: what a plan can compute, at the roots or as arguments of NumPy's functions
          --> asked: an action of an operator each; dense forms of one dtype as one joint column,
              so that what they share is chosen by price
          --> results: one column of bytes with all values, one plan
          --> NumPy's functions on the values

Where one plan will not do (it has no memory, a matrix is singular, a word is due about one of its
operators), each piece is computed by itself, and says so by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, errors, explanation, memory
from .._base.lazy_import import Later
from .._operators.parameters import written
from .._structured import determinants, dispatch
from . import evaluate as _evaluate
from . import shared_contractions, shared_forms
from .kinds import Handed
from .leaves import lazy

_VERIFY, _BY_PRICE = Later("_verify.compare"), Later("_iterative.by_price")

_MOST = 8  # dense forms that are searched together
_LOOKED = 64  # nodes among which an inverse is looked for
_ROOM = 24  # arrays of pieces that have nothing to do with each other, in one plan
_LINEAR = ("add", "scale", "over", "view", "inverse", "made")
_DENSE, _DIAGONAL, _TRACE, _DET = 0, 1, 2, 4  # as in op_results.c
_NUMBERS = {
    determinants.pair: None,
    determinants.det: determinants.det_of,
    determinants.logdet: determinants.logdet_of,
}


def of_one(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that speaks of an operator: not of a program, whose results are then computed by
    themselves. The dense form of one is what was asked for."""

    def run(op: Any, *rest: Any) -> Any:
        __tracebackhide__ = True
        if op._head != "results":
            return hook(op, *rest)
        if hook is memory.slow and not memory.is_slow(rest[0]):
            return None
        if hook is not memory.materialising or (not rest[1] and memory.warns(rest[0])):
            raise errors.Apart
        return hook(op, rest[0], True, *rest[2:])

    return run


class Asked(NamedTuple):
    """An action of an operator, and the LazyArrays whose values are made of its result."""

    op: Any
    action: int
    offset: int
    width: int  # bytes of an element of the result
    nodes: Any


def _asks(a: Any) -> int | None:
    """The action that a node asks of its argument's form, or of its own; None: it is for no
    plan."""
    head = a._head
    if head == "of form":
        f, kwargs = a._more
        if f in _NUMBERS:
            return _DET
        if f is _evaluate.diagonal:
            return _DIAGONAL
        return _TRACE if f is _evaluate.trace and not kwargs.get("offset") else None
    if head == "matmul" or (head in _LINEAR and a.ndim >= 2) or _core._lazy_is_deep(a):
        return _DENSE
    return None


def _is_taken(a: Any) -> bool:
    """Is it elements of a value, not a part of an operator?"""
    if a._head != "index":
        return False
    of = a._args[0]
    return of.ndim < 2 or of._head in ("call", "index")


def _called(a: Any) -> list[Any]:
    """The terms of a sum of arrays that functions give, as the gradients by parts of an array are;
    none where another term is among them."""
    stack, found = [a], []
    while stack:
        x = stack.pop()
        if x._head == "call" and x._value is None:
            found.append(x)
        elif x._head == "add" and x._value is None:
            stack += x._args[::-1]
        else:
            return []
    return found


def _pieces(roots: Any, functions: list[Any]) -> list[tuple[Any, int]]:
    """What a plan may compute, outermost first, with its action. What may be made by functions of
    operators, and operands that may be, is added to ``functions``."""
    stack, seen, found = list(roots)[::-1], set(), []
    while stack:
        a = stack.pop()
        if a._value is not None or id(a) in seen:
            continue
        seen.add(id(a))
        if a._head == "add" and (terms := _called(a)):
            stack += terms[::-1]
            continue
        action = _asks(a)
        if a._head == "matmul":
            left, right = a._args
            if left._head == "made" or right._head == "made":
                functions += left, right
        if action is not None:
            found.append((a, action))
            if a._head == "made":
                functions.append(a)
        elif a._head == "of form":
            functions.append(a)
        elif a._head in ("call", "scale", "over") or _is_taken(a):
            stack += [x for x in a._args[::-1] if isinstance(x, _core.Lazy)]
    return found


def _is_input(x: Any) -> bool:
    """Is it an array to a plan that it is part of?"""
    held = x._value is not None or x._head in ("call", "index")
    return held or x._head in ("leaf", "operator")


def _grouped(pieces: list[tuple[Any, int]]) -> list[tuple[set[int], list[tuple[Any, int]]]]:
    """Pieces that are formulas of the same arrays, by way of others too, with these arrays as a
    plan sees them: numbers are coefficients. Each node is looked at once."""
    leads = list(range(len(pieces)))  # a piece before it of its group, or itself
    first: dict[int, int] = {}  # by node or array, the first piece that it is of

    def leader(k: int) -> int:
        while leads[k] != k:
            leads[k] = k = leads[leads[k]]
        return k

    def is_known(x: Any, k: int) -> bool:
        """Has it been met? Then piece k is of the group of those that met it."""
        one, other = sorted((leader(first.setdefault(id(x), k)), leader(k)))
        known = first[id(x)] != k
        leads[other] = one
        return known

    own: list[set[int]] = []
    for k, (a, _) in enumerate(pieces):
        stack, seen, arrays = list(a._args), set(), set()
        while stack:
            x = stack.pop()
            if id(x) in seen or not isinstance(x, _core.Lazy):
                continue
            seen.add(id(x))
            if not _is_input(x):
                if not is_known(x, k):
                    stack += x._args
            elif x.ndim:
                array = x._args[0] if x._head in ("leaf", "operator") else x
                is_known(array, k)
                arrays.add(id(array))
        own.append(arrays)
    found: dict[int, tuple[set[int], list[tuple[Any, int]]]] = {}
    for k, piece in enumerate(pieces):
        held, members = found[leader(k)] = found.pop(leader(k), (set(), []))
        held |= own[k]
        members.append(piece)
    return list(found.values())


def _apart(pieces: list[tuple[Any, int]]) -> list[list[tuple[Any, int]]]:
    """Pieces for one plan each: those of an array stay together, the others do as long as there is
    room: a small plan is made anew for less, and is found by more programs."""
    if len(pieces) <= _MOST:
        return [pieces]
    plans: list[tuple[set[int], list[tuple[Any, int]]]] = []
    for arrays, members in _grouped(pieces):
        last = plans[-1] if plans else None
        if last is not None and len(last[0] | arrays) <= _ROOM:
            plans[-1] = last[0] | arrays, last[1] + members
        else:
            plans.append((arrays, members))
    return [members for _, members in plans]


def _form(a: Any, action: int) -> Any:
    """The operator whose action a piece is; None where it is for no plan."""
    if a._head == "of form":
        form = _core._lazy_operator(a._args[0])
        if action == _DET and hasattr(type(form), "_logdet"):
            return None
    else:
        form = _core._lazy_operator(a)
        if form is not None and form.dtype != a.dtype:
            return None
    plain = form is not None and form.dtype.char in "fdFD" and not (form._opaque or form._weak)
    return form if plain else None


def _questions(pieces: list[tuple[Any, int]]) -> list[Asked]:
    """What is asked of which operators, wide elements first."""
    asked: list[Asked] = []
    dense: dict[Any, Any] = {}
    for a, action in pieces:
        form = _form(a, action)
        if form is None:
            continue
        width = form.dtype.itemsize
        if action == _DENSE and form.ndim == 2:
            dense.setdefault(form.dtype, []).append((form, a))
        elif action == _DET:
            asked.append(Asked(form, _DET, 0, 8 if form.dtype.kind == "f" else 16, (a,)))
        else:
            offset = a._more[1].get("offset", 0) if action == _DIAGONAL else 0
            asked.append(Asked(form, action, offset, width, (a,)))
    for found in dense.values():
        for i in range(0, len(found), _MOST):
            forms, nodes = zip(*found[i : i + _MOST], strict=True)
            column = forms[0]
            for form in forms[1:]:
                column = _core._build("joint", column, form)
            asked.append(Asked(column, _DENSE, 0, column.dtype.itemsize, nodes))
    return sorted(asked, key=lambda q: -q.width)


def _value(a: Any, found: Any) -> Any:
    """A piece's value of the result of its action."""
    finish = _NUMBERS.get(a._more[0]) if a._head == "of form" else None
    if finish is None:
        return found.astype(a.dtype, copy=False).reshape(a.shape)
    value = np.asarray(finish(*determinants.split(found), a.dtype))
    value.setflags(write=False)
    return value


def _run(asked: list[Asked]) -> None:
    """One plan for all."""
    values = _core._results([(q.op, q.action, q.offset, 0) for q in asked])
    for q, found in zip(asked, values, strict=True):
        if len(q.nodes) == 1:
            _core._tape_note(q.nodes[0], found)
            q.nodes[0]._value = _value(q.nodes[0], found)
            continue
        start = 0
        for a in q.nodes:
            stop = start + a.size
            a._value = found[start:stop].reshape(a.shape)
            start = stop


def planned(roots: Any) -> list[explanation.Explanation]:
    """The plans by which LazyArrays would be computed together. What a plan takes that is no part
    of one (NumPy's functions of arrays) is computed."""
    return [
        explanation.Explanation._of(
            _core._results_explained([(q.op, q.action, q.offset, 0) for q in asked])
        )
        for asked in map(_questions, _apart(_pieces(roots, [])))
        if asked
    ]


def _inverses(op: Any) -> list[Any]:
    """The inverses in a formula of operators, of the nodes that are looked at."""
    stack, found = [op], []
    for _ in range(_LOOKED):
        if not stack:
            break
        f = stack.pop()
        if written(f, "inverse") and f.ndim == 2:
            found.append(f)
        elif f._init is None:
            stack += [g for g in f._operands if isinstance(g, _core.Operator)]
    return found


def _is_iterated(asked: list[Asked]) -> bool:
    """Products alone, whose solves may go by iteration, which a plan of all would not try?"""
    if any(q.action != _DENSE for q in asked):
        return False
    within = [q.op for q in asked if q.op._known("large inverse")]
    inverses = [f for op in within for f in _inverses(op)]
    if not inverses:
        return False
    unasked, seconds = _core._results_priced([(q.op, q.action, q.offset, 0) for q in asked])
    offers: bool = _BY_PRICE.is_offered_of(inverses, unasked, seconds)
    return offers


def _verified(asked: list[Asked]) -> None:
    """One plan for all; a value that is wrong is not kept."""
    nodes = [a for q in asked for a in q.nodes]
    _VERIFY.evaluated(None)
    try:
        _run(asked)
    finally:
        held = _VERIFY.released()
    try:
        _VERIFY.compared(nodes, held)
    except Exception:
        for a in nodes:
            a._value = None
        raise


def _tried(asked: list[Asked]) -> None:
    """One plan for all, where one will do."""
    try:
        if not _is_iterated(asked):
            (_verified if config.get("verify") else _run)(asked)
    except (errors.Apart, errors.LinAlgError, MemoryError):
        pass  # each by itself


def together(roots: Any) -> None:
    """Computes several LazyArrays; what they have to do with each other is found by one plan."""
    try:
        _together(list({id(a): a for a in roots if a._value is None}.values()))
    finally:
        forget_looks()


def forget_looks() -> None:
    """Forms that hold what arrays were when they were looked at (py_lazy_given.c) are dropped."""
    _core._lazy_run([], None)


def _together(unique: list[Any]) -> None:
    if len(unique) > 1:
        shared_contractions.compute(unique)
    functions: list[Any] = []
    pieces = _pieces(unique, functions)
    if any(a._head == "made" for a in functions):
        _as_wholes(pieces, functions)
    if functions and len(unique) > 1 and any(map(shared_forms.function_of, functions)):
        with dispatch.one_evaluation():
            shared_forms.ahead(pieces, functions, _apart, _questions, _tried)
            _compute(unique, [p for p in pieces if p[0]._value is None], shared_forms.is_held_for)
    else:
        _compute(unique, pieces)


def _as_wholes(pieces: list[tuple[Any, int]], functions: list[Any]) -> None:
    """An exponential that something takes as a whole is not made by products for others."""
    asked = [a for a, _ in pieces if a._head != "matmul"] + [
        x for a in functions if a._head == "of form" for x in a._args
    ]
    asked += [x for a in asked for x in a._args if isinstance(x, _core.Lazy)]
    for a in asked:
        f = shared_forms.function_of(a)
        if f is not None and f.name == "expm" and a._head == "made" and a._value is None:
            form: Any = _core._lazy_operator(a)
            if hasattr(type(form), "_whole"):
                form.once = False


def _compute(
    unique: list[Any], pieces: list[tuple[Any, int]], held: Callable[[Any], bool] | None = None
) -> None:
    """What is not known yet: the pieces by plans, the rest by itself."""
    for group in _apart(pieces):
        asked = _questions(group)
        if sum(len(q.nodes) for q in asked) > 1:
            _tried(asked)
    _core._lazy_run(_shared([a for a in unique if a._value is None], held), None)
    for a in unique:
        a._computed()


def _is_outer(a: Any) -> bool:
    """A product that is larger than both of its factors together: its value is no gain."""
    return bool(a._head == "matmul" and a.size > sum(x.size for x in a._args))


def _is_read_off(a: Any) -> bool:
    """What is read off a larger matrix, as the bands of a cotangent are."""
    sizes = [x.size for x in a._args if isinstance(x, _core.Lazy)]
    return bool(a._head == "made" and sizes and a.size < max(sizes))


def _shared(roots: list[Any], held: Callable[[Any], bool] | None = None) -> list[Any]:
    """Products and calls that two roots share, and what they share of what is read off matrices; of
    those that are larger than what they are made of, that. ``held``: does what a node is made of
    lie ready otherwise?"""
    first: set[int] = set()
    found: dict[int, Any] = {}
    for root in roots:
        stack, seen = [root], set()
        while stack:
            a = stack.pop()
            if id(a) in seen or id(a) in found or a._value is not None:
                continue
            seen.add(id(a))
            kept = a._head in ("matmul", "call", "of form") and not _is_outer(a)
            kept = kept or _is_read_off(a)
            if kept and id(a) in first:
                found[id(a)] = a
            elif held is None or not held(a):
                stack += [x for x in a._args if isinstance(x, _core.Lazy)]
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
        Of a gradient by an operator, an operator of its kind.

    Notes
    -----
    One plan computes all that is linear, diagonals, traces and determinants, of any shapes and
    dtypes, also where they are arguments of NumPy's functions: ``y @ s``, ``logdet(K)`` and
    ``inv(K)`` take one factor of K, in several expressions or within one. Dense results of one
    dtype are planned together, up to 8 at a time: what they share is chosen by cost for all. Where
    one plan will not do (it passes the
    memory limit, a matrix is singular), each is computed by itself.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.lazy(np.eye(2))
    >>> S = A @ A.T
    >>> pl.evaluate(S, S.trace())[1]
    array(2.)
    """
    asked = [lazy(e) for e in expressions]
    for r in asked:  # before any of them is known
        r._guarded()
    roots = [x for r in asked for x in (r._args if _is_handed(r) else (r,))]
    if len(roots) > 1 or (roots and roots[0]._head == "call"):
        together(roots)
    values = tuple(_given(r) for r in asked)
    return values[0] if len(values) == 1 else values


def _is_handed(r: Any) -> bool:
    return r._head == "made" and isinstance(r._more[0], Handed)


def _given(r: Any) -> Any:
    return r._more[0](*(x._computed() for x in r._args)) if _is_handed(r) else r._computed()
