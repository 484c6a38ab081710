"""The size of each label of an equation, from the operands' shapes, `sizes=` and what follows."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .grammar import DOTS, Axis, Ellipsis_, Equation, Group, Index, fail, labels_of, shown

_BROADCAST = DOTS  # labels of an ellipsis: "...0" is its last axis


class Sized(NamedTuple):
    """An equation for given shapes: no ellipsis left."""

    operands: tuple[tuple[Axis, ...], ...]
    result: tuple[Axis, ...]
    sizes: dict[str, int]
    spread: frozenset[str] = frozenset()  # labels of which all arrays have size 1, and sizes= more


def _reading(e: Equation, axes: Sequence[Axis]) -> str:
    """How the text was read, and how it might have been, where it has more than one label."""
    word = "".join(a for a in axes if isinstance(a, str))
    if any(isinstance(a, str) and a[:1] == "_" for a in axes):
        return ""  # NumPy's lists, which are no text
    if not e.letters:
        return " (read as names between blanks; with no blank in a term, each letter is an axis)"
    if len(word) < 2:
        return ""
    return (
        f" ({word!r} is read as {len(word)} labels of a letter each; a name of an axis has"
        " blanks around it, and another axis beside it in some operand)"
    )


def expanded(e: Equation, axes: tuple[Axis, ...], ndim: int, i: int) -> tuple[Axis, ...]:
    own = len([a for a in axes if not isinstance(a, Ellipsis_)])
    has = own < len(axes)
    if own > ndim or (own < ndim and not has):
        raise fail(
            e.text,
            f"operand {i} has {ndim} dimensions, its axes are {own}{' or more' * has}"
            f"{_reading(e, axes)}",
        )
    out: list[Axis] = []
    for a in axes:
        if isinstance(a, Ellipsis_):
            out += [f"{_BROADCAST}{k}" for k in range(ndim - own - 1, -1, -1)]
        else:
            out.append(a)
    return tuple(out)


def implicit(operands: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """NumPy's rule: an ellipsis' axes, then the labels that are there once, in their order."""
    times: dict[str, int] = {}
    for axes in operands:
        for axis in axes:
            for label in labels_of(axis):
                times[label] = times.get(label, 0) + 1
    dots = {label for label in times if label.startswith(_BROADCAST)}
    once = sorted(label for label, n in times.items() if n == 1 and label not in dots)
    return (*sorted(dots, key=lambda d: -int(d[len(_BROADCAST) :])), *once)


def _set(
    e: Equation, sizes: dict[str, int], from_: dict[str, str], label: str, n: int, where: str
) -> None:
    known = sizes.get(label)
    if known is None or (known == 1 != n and from_[label] != "sizes="):
        sizes[label] = n
        from_[label] = where
    elif n not in (known, 1) or (n != known and "#" in label):
        if "#" in label:
            raise fail(e.text, f"an axis written {shown(label)} has size {n} in {where}")
        name = "an axis of the ellipsis" if label.startswith(_BROADCAST) else f"axis {label!r}"
        wide = max((t for t in e.operands if label in t), key=len, default=())
        raise fail(
            e.text,
            f"{name} has size {known} in {from_[label]} and {n} in {where}{_reading(e, wide)}",
        )


def _groups(e: Equation, sized: list[tuple[Axis, int, str]], sizes: dict[str, int]) -> None:
    """The one unknown part of a group is the quotient, group by group until all are known."""
    todo = [(a, n, where) for a, n, where in sized if isinstance(a, Group)]
    while todo:
        left = []
        for axis, n, where in todo:
            unknown = [label for label in axis.labels if label not in sizes]
            known = math.prod(sizes[label] for label in axis.labels if label in sizes)
            group = shown(axis)
            if len(unknown) > 1:
                left.append((axis, n, where))
                continue
            if unknown and (known == 0 or n % known):
                raise fail(e.text, f"{group} of {where} has size {n}, no multiple of {known}")
            if unknown:
                sizes[unknown[0]] = n // known
            elif known != n:
                raise fail(e.text, f"{group} of {where} has size {n}, its parts {known}")
        if len(left) == len(todo):
            axis, n, where = left[0]
            first = next(label for label in axis.labels if label not in sizes)
            group = shown(axis)
            raise fail(
                e.text, f"{group} of {where} has size {n}: say the size of {first!r} by sizes="
            )
        todo = left


def extremes(axis: Index, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The least and the greatest index."""
    ends = [c * (sizes[label] - 1) for label, c in axis.terms]
    return (
        axis.constant + sum(min(0, x) for x in ends),
        axis.constant + sum(max(0, x) for x in ends),
    )


def _indexed(e: Equation, sized: list[tuple[Axis, int, str]], sizes: dict[str, int]) -> None:
    """The one unknown label of an index equation goes as far as the axis."""
    todo = [(a, n, where) for a, n, where in sized if isinstance(a, Index)]
    while todo:
        left = []
        for axis, n, where in todo:
            unknown = [(label, c) for label, c in axis.terms if label not in sizes]
            if len(unknown) > 1:
                left.append((axis, n, where))
                continue
            for label, c in unknown:
                low, high = extremes(axis, {**sizes, label: 1})
                room = (n - 1 - high) // c if c > 0 else low // -c if c < 0 else 0
                if room < 0:
                    raise fail(
                        e.text,
                        f"({axis.text}) runs from {low} to {high} for one {label!r} already;"
                        f" {where} has size {n} there",
                    )
                sizes[label] = room + 1
        if len(left) == len(todo):
            axis, n, where = left[0]
            open_ = [label for label, _ in axis.terms if label not in sizes]
            raise fail(
                e.text,
                f"({axis.text}) of {where}, of size {n}, leaves the sizes of "
                f"{' and '.join(map(repr, open_))} open: say one by sizes=",
            )
        todo = left


def dotted(e: Equation, operands: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """The written result, its ellipsis as the axes of the longest one."""
    assert e.result is not None
    known = {a for axes in operands for a in axes if isinstance(a, str)}
    dots = sorted(
        (a for a in known if a.startswith(_BROADCAST)), key=lambda d: -int(d[len(_BROADCAST) :])
    )
    out: list[Axis] = []
    merged = False
    for axis in e.result:
        if isinstance(axis, Group) and DOTS in axis.labels:
            at, merged = axis.labels.index(DOTS), True
            axis = Group((*axis.labels[:at], *map(str, dots), *axis.labels[at + 1 :]))
        out += dots if isinstance(axis, Ellipsis_) else [axis]
    there = merged or any(isinstance(axis, Ellipsis_) for axis in e.result)
    if dots and not there and not e.sums_dots:
        raise fail(e.text, "the operands' ellipsis has axes, and the result has no ellipsis")
    return tuple(out)


def given(e: Equation, sizes: Any) -> tuple[tuple[str, int], ...]:
    """`sizes=` of a call, looked at."""
    if sizes is None:
        return e.fixed
    if not isinstance(sizes, Mapping):
        raise TypeError(f"sizes= is a mapping of names to sizes, not {type(sizes).__name__}")
    known = {x for axes in (*e.operands, e.result or ()) for axis in axes for x in labels_of(axis)}
    for name, n in sizes.items():
        if name not in known and not str(name).startswith(_BROADCAST):
            raise fail(e.text, f"sizes= has {name!r}, which is none of its axes")
        try:
            negative = operator.index(n) < 0
        except TypeError:
            raise TypeError(f"sizes: {name} = {n!r} is no integer") from None
        if negative:
            raise ValueError(f"sizes: {name} = {n} is negative")
    return tuple(sorted([*e.fixed, *((name, int(n)) for name, n in sizes.items())]))


def sized(e: Equation, shapes: Sequence[tuple[int, ...]], known: Mapping[str, int] | None) -> Sized:
    if len(shapes) != len(e.operands):
        raise fail(e.text, f"{len(shapes)} operands for an equation of {len(e.operands)}")
    operands = tuple(
        expanded(e, axes, len(shape), i) for i, (axes, shape) in enumerate(zip(e.operands, shapes))
    )
    sizes: dict[str, int] = {}
    from_: dict[str, str] = {}
    sized_axes: list[tuple[Axis, int, str]] = []
    for label, n in (known or {}).items():
        sizes[label], from_[label] = n, "sizes="
    for i, (axes, shape) in enumerate(zip(operands, shapes)):
        for axis, n in zip(axes, shape):
            where = f"operand {i} of shape {shape}"
            if isinstance(axis, str):
                _set(e, sizes, from_, axis, n, where)
            elif axis == 1 and n != 1:
                raise fail(e.text, f"an axis written 1 has size {n} in {where}")
            else:
                sized_axes.append((axis, n, where))
    _groups(e, sized_axes, sizes)
    _indexed(e, sized_axes, sizes)
    result = implicit(operands) if e.result is None else dotted(e, operands)
    spread = {x for t in operands for x in t if isinstance(x, str) and sizes[x] != 1}
    for axes, shape in zip(operands, shapes):
        spread -= {x for axis, n in zip(axes, shape) if n != 1 for x in labels_of(axis)}
    seen: set[str] = set()
    for axis in result:
        for label in labels_of(axis):
            if label not in sizes:
                raise fail(e.text, f"axis {label!r} of the result is in no operand")
            if label in seen:
                raise fail(e.text, f"axis {label!r} is twice in the result")
            seen.add(label)
    return Sized(operands, result, sizes, frozenset(spread))
