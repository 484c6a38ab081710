"""`einsum` and `view` of placeholders: sizes of labels as expressions, bounds of indices as
equations.

An index equation (2*o + w - 1) of an axis of size n, where w is known, says
o = (n - 1 - high) // 2 + 1 with high the greatest index at o = 0, as `_contractions/sizes.py` does
it in numbers; and that no index lies outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._api import contraction_operator, contractions
from .._contractions import equations, grammar
from .._contractions.grammar import Axis, Equation, Group, Index, fail, labels_of, shown
from .._contractions.sizes import dotted, expanded, implicit
from .elements import conjugated, divided, rule
from .expressions import Size, Symbol, product, quotient
from .placeholder import RULES, Sides, formula, named, operand, shape_of
from .provenance import Known


class _Labels:
    """Sizes of labels, as they are found."""

    def __init__(self, e: Equation, sides: Sides, given: Mapping[str, Any] | None) -> None:
        self.e, self.sides = e, sides
        self.sizes: dict[str, Any] = {**dict(e.fixed), **(given or {})}

    def set(self, label: str, n: Any) -> None:
        known = self.sizes.get(label)
        n = n.labelled(label) if isinstance(n, Known) else n
        if known is None or (not isinstance(known, Size) and known == 1):
            self.sizes[label] = n
        elif isinstance(n, Size) or n != 1 or "#" in label:
            self.sizes[label] = self.sides.same(known, n, label)

    def group(self, axis: Group, n: Any) -> None:
        open_ = [x for x in axis.labels if x not in self.sizes]
        if len(open_) > 1:
            raise fail(
                self.e.text, f"say the size of {shown(open_[0])!r} of {shown(axis)} by sizes="
            )
        known = product(self.sizes[x] for x in axis.labels if x in self.sizes)
        if open_:
            found = quotient(n, known) if isinstance(known, int) else divided(n, known)
            # where no expression says it, a symbol of its own with the equation below
            fresh = Size({(Symbol(open_[0]),): 1})
            self.sizes[open_[0]] = fresh if found is None else found
        self.sides.same(product(self.sizes[x] for x in axis.labels), n)

    def index(self, axis: Index, n: Any, outside: Any) -> bool:
        """The one open label, and that the axis is not left; False: more are open."""
        open_ = [(x, c) for x, c in axis.terms if x not in self.sizes]
        if len(open_) > 1:
            return False
        for label, c in open_:
            if not isinstance(c, int):
                raise NotImplementedError(
                    f"einsum {self.e.text!r}: the size of {label!r}, which a symbol multiplies, is"
                    " open: say it by sizes="
                )
            low, high = self.extremes(axis, {**self.sizes, label: 1})
            room = quotient(n - 1 - high, c) if c > 0 else quotient(low, -c) if c else 0
            self.sizes[label] = room + 1
            self.sides.least(room + 1, 1)
        if outside is None:
            low, high = self.extremes(axis, self.sizes)
            self.sides.least(low, 0)
            self.sides.least(n - 1, high)
        return True

    def extremes(self, axis: Index, sizes: Mapping[str, Any]) -> tuple[Any, Any]:
        low: Any = axis.constant
        high: Any = axis.constant
        for label, c in axis.terms:
            end = c * (sizes[label] - 1)
            low, high = (low, high + end) if _positive(c) else (low + end, high)
        return low, high


def _positive(c: Any) -> bool:
    """A coefficient's sign; a symbol is none below 0."""
    if not isinstance(c, Size):
        return bool(c > 0)
    signs = {n > 0 for n in c.terms.values()}
    if len(signs) > 1:
        raise NotImplementedError(f"einsum: the sign of the coefficient {c} depends on its symbols")
    return signs.pop()


def _labelled(
    e: Equation, operands: Sequence[Any], given: Mapping[str, Any] | None, outside: Any
) -> tuple[tuple[Any, ...], Sides]:
    """(the result's sizes, equations)."""
    shapes = [shape_of(x) for x in operands]
    sides = Sides(f"einsum {e.text!r} of {', '.join(map(named, operands))}")
    if len(shapes) != len(e.operands):
        raise fail(e.text, f"{len(shapes)} operands for an equation of {len(e.operands)}")
    terms = [expanded(e, axes, len(s), i) for i, (axes, s) in enumerate(zip(e.operands, shapes))]
    labels = _Labels(e, sides, given)
    later: list[tuple[Axis, Any]] = []
    for axes, shape in zip(terms, shapes):
        for axis, n in zip(axes, shape):
            if isinstance(axis, str):
                labels.set(axis, n)
            elif axis == 1:
                sides.same(n, 1)
            else:
                later.append((axis, n))
    groups = [(a, n) for a, n in later if isinstance(a, Group)]
    while groups:  # what one says, another may need
        known = [sum(x not in labels.sizes for x in a.labels) < 2 for a, _ in groups]
        labels.group(*groups.pop(known.index(True) if any(known) else 0))
    todo = [(a, n) for a, n in later if isinstance(a, Index)]
    while todo:
        left = [(a, n) for a, n in todo if not labels.index(a, n, outside)]
        if len(left) == len(todo):
            open_ = [x for x, _ in left[0][0].terms if x not in labels.sizes]
            raise fail(e.text, f"the sizes of {' and '.join(open_)} are open: say one by sizes=")
        todo = left
    result = implicit(terms) if e.result is None else dotted(e, terms)
    return tuple(_sized(e, axis, labels.sizes) for axis in result), sides


def _sized(e: Equation, axis: Axis, sizes: Mapping[str, Any]) -> Any:
    for label in labels_of(axis):
        if label not in sizes:
            raise fail(e.text, f"axis {label!r} of the result is in no operand")
    if isinstance(axis, Group):
        return product(sizes[x] for x in axis.labels)
    return 1 if axis == 1 else sizes[axis]  # type: ignore[index]


def _einsum(
    *args: Any,
    sizes: Mapping[str, Any] | None = None,
    outside: Any = None,
    out: Any = None,
    dtype: Any = None,
    casting: str = "safe",
    optimize: Any = True,
    order: str = "K",
) -> Any:
    if out is not None:
        raise TypeError("einsum(out=) of a placeholder: it has no value yet")
    rest = sizes
    if isinstance(args[0], str):
        e, rest = grammar.read(args[0], sizes)
        held = [operand(x) for x in args[1:]]
    else:
        task, operands = equations.task_of(args, None, outside, dtype, casting, optimize)
        e, held = task.equation, [operand(x) for x in operands]
    shape, sides = _labelled(e, held, rest, outside)
    kwargs = {"sizes": dict(sizes) if sizes else None, "outside": outside, "dtype": dtype}
    found = np.result_type(*(x.dtype for x in map(_typed, held))) if dtype is None else dtype
    call = tuple(args) if not isinstance(args[0], str) else (args[0], *held)
    return formula(
        contractions.einsum, call, shape, found, sides, **kwargs, casting=casting, optimize=optimize
    )


def _typed(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)


RULES[contractions.einsum] = RULES[np.einsum] = _einsum


def _summed(name: str, text: str, x1: Any, x2: Any, axis: int) -> Any:
    """A product of stacks: what is summed is of one size, where equations let a 1 broadcast."""
    a, b = operand(x1), operand(x2)
    sides = Sides(f"{name} of {named(a)} and {named(b)}")
    if len(shape_of(a)) and len(shape_of(b)) >= -axis:
        sides.same(shape_of(a)[-1], shape_of(b)[axis])
    made = _einsum(text, a, b)
    made._equations += tuple(sides.made)
    return made


@rule(np.vecdot)
def _vecdot(x1: Any, x2: Any) -> Any:
    return _summed("vecdot", "...i,...i->...", conjugated(operand(x1)), x2, -1)


@rule(np.linalg.vecdot)
def _linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _vecdot(*(np.moveaxis(operand(x), axis, -1) for x in (x1, x2)))


def _matvec(x1: Any, x2: Any) -> Any:
    return _summed("matvec", "...ij,...j->...i", x1, x2, -1)


def _vecmat(x1: Any, x2: Any) -> Any:
    return _summed("vecmat", "...i,...ij->...j", conjugated(operand(x1)), x2, -2)


if hasattr(np, "matvec"):  # NumPy 2.2
    RULES[np.matvec], RULES[np.vecmat] = _matvec, _vecmat


def seen(x: Any, equation: str, sizes: Any) -> Any:
    """The view of an array, a contraction of one operand that sums nothing."""
    return contractions.einsum(equation, x, sizes=sizes)


def _view(x: Any, equation: str, *, sizes: Mapping[str, Any] | None = None) -> Any:
    e, rest = grammar.read(equation, sizes)
    shape, sides = _labelled(e, [x], rest, None)
    there = {label for axes in e.operands for axis in axes for label in labels_of(axis)}
    kept = {label for axis in e.result or () for label in labels_of(axis)}
    if e.result is None or there - kept:
        missing = sorted(there - kept)
        raise fail(equation, f"axis {missing[0]!r} is not in the result: einsum sums over it")
    return formula(seen, (x, equation, dict(sizes) if sizes else None), shape, x.dtype, sides)


RULES[contraction_operator.view] = _view


def _windows(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    if subok or writeable:
        raise NotImplementedError("sliding_window_view of placeholders is read-only")
    given = np.atleast_1d(window_shape)
    if any(type(n) in (int, np.int64) and n == 0 for n in given):
        raise NotImplementedError("sliding_window_view of placeholders: no windows of 0 elements")
    axes = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) != len(given) or len(set(axes)) < len(axes):
        raise NotImplementedError("sliding_window_view of placeholders: each axis once")
    inside = {k: f"w{k}" for k in axes}
    read = [f"(a{k} + w{k})" if k in inside else f"a{k}" for k in range(x.ndim)]
    made = [f"a{k}" for k in range(x.ndim)] + list(inside.values())
    sizes = dict(zip(inside.values(), given))
    return _view(x, f"{' '.join(read)} -> {' '.join(made)}", sizes=sizes)


RULES[sliding_window_view] = _windows
