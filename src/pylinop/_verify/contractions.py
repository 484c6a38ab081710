"""Verified answers of contractions: the result against NumPy's own loops on parts of it.

Nothing is shared with the plan: index equations are read by lists of indices, groups by reshaping,
and the sums are `numpy.einsum`'s, as written, where that takes at most 2^22 products, and in
NumPy's order of pairs beyond. A small result is compared in full. Of a large one the first index,
the last and a drawn one of each axis, two Gaussian projections along its longest axis at these
indices of the others, and two along all axes at once; where an operand's part (windows of a large
image) would have more than 2^24 entries, at as many drawn indices of each axis as stay below. What
is allowed is 10 u times the terms of a sum times the sum of absolute values; by FFT times the norms
of what is multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import errors
from .._contractions import toeplitz
from .._contractions.equations import Task
from .._contractions.grammar import Group, Index, labels_of
from .._contractions.sizes import Sized
from . import compare
from .compare import Verdict, judged
from .reference_leaf import NotVerified

_FULL = 1 << 22  # products up to which all is compared, as written
_MOST = 1 << 24  # entries of an operand's part
_LABELS = 50  # NumPy takes 52; two are for projections
_DRAWS = 2
_SEED = 20261126


class _Part(NamedTuple):
    """Indices of each label at which the result is compared."""

    at: dict[str, Any]
    along: tuple[str, ...] = ()  # labels that projections sum over


def _taken(a: Any, k: int, at: Any, size: int) -> Any:
    if a.shape[k] == 1 != size:
        return np.broadcast_to(a, (*a.shape[:k], len(at), *a.shape[k + 1 :]))
    return a if len(at) == size else np.take(a, at, k)


def _read(a: Any, k: int, axis: Index, at: dict[str, Any], outside: Any) -> Any:
    """Axis k at the numbers that the equation gives for all its labels."""
    names = [label for label, _ in axis.terms]
    where: Any = axis.constant
    for i, (label, c) in enumerate(axis.terms):
        where = where + c * at[label].reshape([-1 if j == i else 1 for j in range(len(names))])
    n = a.shape[k]
    there = np.asarray((where >= 0) & (where < n))
    if outside is None and not there.all():
        raise NotVerified("an index beyond its axis")
    if n == 0:
        return np.zeros((*a.shape[:k], *there.shape, *a.shape[k + 1 :]), a.dtype)
    if a.size // n * there.size > 4 * _MOST:  # on the way; further axes may make it smaller
        raise NotVerified("a part of an operand has more than 2^26 entries on the way")
    where = np.asarray(where) % n
    seen = np.take(a, where.reshape(-1), k)
    seen = seen.reshape(*a.shape[:k], *there.shape, *a.shape[k + 1 :])
    if outside == 0:
        keep = there.reshape(*there.shape, *(1,) * (a.ndim - k - 1))
        seen = np.where(keep, seen, np.zeros((), a.dtype))
    return seen


def _operand(a: Any, axes: Any, s: Sized, part: _Part, outside: Any) -> tuple[Any, list[str]]:
    """What of an operand the part needs, and its labels."""
    labels: list[str] = []
    for k, axis in enumerate(axes):  # what gets smaller first
        if isinstance(axis, str):
            a = _taken(a, k, part.at[axis], s.sizes[axis])
    for axis in axes:
        k = len(labels)
        if isinstance(axis, int):
            a = a.reshape(a.shape[:k] + a.shape[k + 1 :])
        elif isinstance(axis, str):
            labels.append(axis)
        elif isinstance(axis, Group):
            a = a.reshape(*a.shape[:k], *(s.sizes[x] for x in axis.labels), *a.shape[k + 1 :])
            for i, x in enumerate(axis.labels):
                a = _taken(a, k + i, part.at[x], s.sizes[x])
            labels += axis.labels
        else:
            a = _read(a, k, axis, part.at, outside)
            labels += [label for label, _ in axis.terms]
    return a, labels


def _by_numpy(arrays: Sequence[Any], terms: Any, result: Any, work: int) -> Any:
    number: dict[str, int] = {}
    flat: list[Any] = []
    for a, t in zip(arrays, terms):
        flat += [a, [number.setdefault(x, len(number)) for x in t]]
    with np.errstate(all="ignore"):
        return np.einsum(*flat, [number[x] for x in result], optimize=work > _FULL)


def _judge_part(
    task: Task, s: Sized, arrays: Sequence[Any], made: Any, part: _Part, how: str, by_fft: bool
) -> Verdict:
    """made: one axis a label of the result."""
    work_type = np.dtype(complex if made.dtype.kind == "c" else float)
    seen = [_operand(a, t, s, part, task.outside) for a, t in zip(arrays, s.operands)]
    values = [a.astype(made.dtype, copy=False).astype(work_type) for a, _ in seen]
    terms = [t for _, t in seen]
    result = _result_labels(s)
    there = {x for t in terms for x in t}
    for x in set(result) | set(s.sizes):
        if x not in there and (x in result or s.sizes[x] != 1):
            values.append(np.ones(len(part.at[x])))  # `sizes=` alone says it
            terms.append([x])
    found = made[np.ix_(*(part.at[x] for x in result))] if result else made
    found = found.astype(work_type)
    work = math.prod(len(part.at[x]) for x in s.sizes)
    summed = math.prod(n for x, n in s.sizes.items() if x not in result)
    size_of_found: Any = 0.0
    out = [x for x in result if x not in part.along]
    if part.along:
        rng = np.random.default_rng(_SEED)
        drawn = [(rng.standard_normal((len(part.at[x]), _DRAWS)), [x, "to"]) for x in part.along]
        values += [r for r, _ in drawn]
        terms += [t for _, t in drawn]
        out.append("to")
        work *= _DRAWS
        there_of = [list(result), *(t for _, t in drawn)]
        projected = [found, *(r for r, _ in drawn)]
        size_of_found = _by_numpy([np.abs(x) for x in projected], there_of, out, _FULL + 1)
        found = _by_numpy(projected, there_of, out, _FULL + 1)
    wanted = _by_numpy(values, terms, out, work)
    size = _by_numpy([np.abs(v) for v in values], terms, out, work) + size_of_found
    if by_fft:
        size = np.maximum(size, math.prod(float(np.linalg.norm(a)) for a in arrays))
    per_operand = sum(
        math.prod(s.sizes[x] for axis in t for x in set(labels_of(axis)) if x not in result)
        for t in s.operands
    )
    count = min(summed, per_operand) + len(values) + 8
    count += sum(len(part.at[x]) for x in part.along)
    verdict: Verdict = judged(how, found, wanted, size, count, made.dtype)
    return verdict


def _result_labels(s: Sized) -> tuple[str, ...]:
    return tuple(label for axis in s.result for label in labels_of(axis))


def _verdict(task: Task, s: Sized, arrays: Sequence[Any], made: Any) -> Verdict:
    if len(s.sizes) > _LABELS:
        raise NotVerified(f"an equation of more than {_LABELS} labels")
    by_fft = task.path is None and toeplitz.found(s) is not None
    whole = {x: np.arange(n) for x, n in s.sizes.items()}
    if made.size == 0 or math.prod(s.sizes.values()) <= _FULL:
        return _judge_part(task, s, arrays, made, _Part(whole), "in full", by_fft)
    result = _result_labels(s)
    rng = np.random.default_rng(_SEED)
    some = dict(whole)
    for x in result:
        n = s.sizes[x]
        some[x] = np.unique([0, n - 1, int(rng.integers(n))])
    some, _ = _fitting(s, some, result, rng)
    how = f"by {math.prod(len(some[x]) for x in result)} entries"
    verdict = _judge_part(task, s, arrays, made, _Part(some), how, by_fft)
    if not result:
        return verdict
    along = max(result, key=lambda x: s.sizes[x])
    ways: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        (f"along {along!r}", {**some, along: whole[along]}, (along,)),
        ("along all axes", whole, result),
    ]
    for said, at, over in ways:
        at, less = _fitting(s, at, result, rng)
        part = _Part(at, over)
        verdict = verdict.worse(_judge_part(task, s, arrays, made, part, how, by_fft))
        how += f", {_DRAWS} projections {said}{less}"
    verdict.how = how
    return verdict


def _fitting(s: Sized, at: dict[str, Any], result: Any, rng: Any) -> tuple[dict[str, Any], str]:
    """Indices of which no operand's part has more than 2^24 entries, and a text that says so: of
    the longest axes of the result half are drawn, until it is so."""
    at, before = dict(at), math.prod(len(at[x]) for x in result)
    for axes in s.operands:
        own = [x for axis in axes for x in labels_of(axis)]
        while math.prod(len(at[x]) for x in set(own)) > _MOST:
            x = max((x for x in own if x in result), key=lambda x: len(at[x]), default="")
            if not x or len(at[x]) == 1:
                raise NotVerified("a sum over more than 2^24 entries of an operand")
            half = rng.choice(len(at[x]), len(at[x]) // 2, replace=False)
            at[x] = at[x][np.sort(half)]
    after = math.prod(len(at[x]) for x in result)
    return at, f" at {after} drawn entries" if after < before else ""


def checked(task: Task, s: Sized, arrays: Sequence[Any], made: Any) -> None:
    """Raises VerificationError where the result, its groups not merged yet, is not the
    contraction's."""
    made = made.reshape([s.sizes[x] for x in _result_labels(s)])
    if compare.perturb is not None:
        compare.perturb("einsum", made)
    try:
        verdict = _verdict(task, s, arrays, made)
    except (NotVerified, MemoryError) as why:
        compare.note("einsum", f"not verified: {str(why) or 'no memory for it'}", None)
        return
    if verdict.ratio <= 1:
        compare.note("einsum", f"verified {verdict.how}", verdict.ratio)
        return
    shapes = ", ".join(str(a.shape) for a in arrays)
    missed = errors.VerificationError(
        f"the result of 'einsum' is not that of {task.equation.text!r} as written: an error of "
        f"{verdict.error:.3g} where {verdict.allowed:.3g} is allowed (compared {verdict.how})\n"
        f"  of arrays {shapes}, {made.dtype}\n"
        "  This is a fault of pylinop. Please report it with this text, pl.show_config() and "
        "pl.einsum_path's\n  text; optimize=path with another order may get you on."
    )
    missed.error, missed.allowed = verdict.error, verdict.allowed
    raise missed
