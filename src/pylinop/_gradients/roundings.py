"""How far rounding goes: a formula computed again with numbers that are moved by a few roundings.

Two plans of one formula round differently, and what cancels, or is ill-conditioned, makes of that a
difference of any size: in a sum beside its own negative no digit is the same. So each node's
numbers are moved at random, by factors of their own, and it is seen how far what is made of them
moves."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._lazy import text
from .._lazy.build import scaled
from .._lazy.leaves import lazy
from .pieces import call

__all__ = ["Roundings", "again", "belong"]

DRAWS = 12  # as many may be on the same side of a step; where it is rounding, few are computed
EACH = 16  # roundings by which a number is moved
TIMES = 16  # how much further than the draws a plan may be
HARDLY = 1e-3  # of a number: it has hardly a digit, and another plan may find infinity


def again(nodes: list[Any], given: Collection[int], moved: Any = None) -> dict[int, Any]:
    """Nodes, arguments first, built again without their values; by id. The given ones are leaves,
    with the values they have. Each is `moved`, if that is given."""
    made: dict[int, Any] = {}
    for x in nodes:
        leaf = x._head in ("leaf", "operator")
        if id(x) in given and not leaf:
            made[id(x)] = moved.node(x) if moved else x
            continue
        args = tuple([made.get(id(a), a) if is_lazy(a) else a for a in x._args])
        if moved and leaf:
            args = (moved.leaf(x), *args[1:])
        y = _core._LazyArray(x._head, args, x.shape, x.dtype, x._more)
        if x._head == "leaf" and x._more is not None:
            y._form = _core.Dense(args[0], assume_a=x._more)
        made[id(x)] = moved.node(y) if moved else y
    return made


def belong(kept: Any, now: Any) -> bool:
    """Is each number the same to half of its digits? Plans of several results may round
    otherwise."""
    if np.array_equal(kept, now, equal_nan=True):
        return True
    finite = np.isfinite(kept)
    if not (np.isfinite(now) == finite).all():
        return False
    if not np.array_equal(kept[~finite], now[~finite], equal_nan=True):
        return False
    return kept.dtype.kind in "fc" and bool(_close(kept, now)[finite].all())


def _close(kept: Any, now: Any) -> Any:
    """Which numbers are the same to half of their digits?"""
    digits = np.sqrt(np.finfo(kept.dtype).eps)
    with np.errstate(all="ignore"):  # of infinities
        return np.abs(kept - now) <= digits * (np.abs(kept) + np.abs(now))


def _is_each(x: Any, known: dict[int, bool]) -> bool:
    """Is each number of x made of some numbers of arrays, but for those at its place of none that
    may be larger? Then it rounds by itself."""
    stack = [x]
    while stack:
        y = stack[-1]
        args = [z for z in y._args if is_lazy(z)]
        rest = [z for z in args if id(z) not in known]
        if y._head in ("leaf", *_EACH) or (y._head == "call" and _is_function(y._more[0])):
            if rest and y._head != "leaf":
                stack += rest
                continue
            known[id(y)] = all(known[id(z)] for z in args)
        else:
            known[id(y)] = False
        stack.pop()
    return known[id(x)]


_EACH = ("add", "scale", "over", "view", "index")


def _is_function(f: Any) -> bool:
    return isinstance(f, np.ufunc) or f in (np.where, np.reshape, np.broadcast_to, np.clip)


class _Moved:
    """Moves numbers by some roundings of the coarsest dtype, each by its own."""

    def __init__(self, eps: float, seed: int) -> None:
        self.by, self.rng = EACH * eps, np.random.default_rng(seed)

    def factors(self, shape: Any, dtype: Any) -> Any:
        by = 1 + self.by * self.rng.uniform(-1, 1, shape)
        return np.asarray(by, np.empty(0, dtype).real.dtype)

    def array(self, a: Any) -> Any:
        if a.dtype.kind not in "fc":
            return a
        by = self.factors(a.shape, a.dtype)
        if a.ndim >= 2 and a.shape[-1] == a.shape[-2]:  # what is symmetric stays it
            by = (by + by.swapaxes(-1, -2)) / 2
        return np.asarray(a * by, a.dtype)

    def leaf(self, x: Any) -> Any:
        given = x._args[0]
        if x._head == "operator":
            return _of_arrays(given, self.array)
        return self.array(given) if type(given) is np.ndarray else given

    def node(self, x: Any) -> Any:
        """A node times a number; a vector times one each. A matrix keeps how it is made."""
        if x.dtype.kind not in "fc":
            return x
        if x.ndim >= 2:
            return scaled(x, float(self.factors((), x.dtype)))
        return call(np.multiply, (x, lazy(self.factors(x.shape, x.dtype))), x.shape, x.dtype)


def _is_other(x: Any, now: Any) -> bool:
    """Is the value that is kept, and is read, not that of the arrays any more?"""
    if x._value is None or x._head in ("leaf", "operator"):
        return False
    try:
        return not belong(x._value, now._computed())
    except Exception:
        return True


class _OfArrays(pickle.Pickler):
    """Writes what `of` makes of each array in its place."""

    def __init__(self, file: Any, of: Any) -> None:
        super().__init__(file)
        self.of = of

    def reducer_override(self, x: Any) -> Any:
        return self.of(x).__reduce__() if type(x) is np.ndarray else NotImplemented


def _of_arrays(op: Any, of: Any) -> Any:
    """An operator of other arrays: as a copy of it is made."""
    written = io.BytesIO()
    try:
        _OfArrays(written, of).dump(op)
    except Exception:  # of callables, which are not copied
        return op
    return pickle.loads(written.getvalue())


class Roundings:
    """Whether what was kept of a node may be what it gives now but for rounding."""

    def __init__(self, value: Any, dependent: list[Any], wanted: Collection[int]) -> None:
        nodes = text.postorder(value)
        ours = {id(x) for x in dependent}
        now = again(nodes, wanted)
        known = {id(x) for x in nodes if id(x) not in ours and _is_other(x, now[id(x)])}
        floating = [x.dtype for x in nodes if x.dtype.kind in "fc"]
        eps = max((float(np.finfo(t).eps) for t in floating), default=0.0)
        given = known.union(wanted)
        self.each: dict[int, bool] = {}
        self.draws = [again(nodes, given, _Moved(eps, seed)) for seed in range(DRAWS)]

    def reach(self, x: Any, kept: Any, now: Any) -> bool:
        """Is the difference one of rounding? Where what is moved is singular, or finite elsewhere,
        nothing can be said, and nothing is. A number that is made of others of any size rounds
        as the largest does."""
        kept, now = np.asarray(kept), np.asarray(now)
        each = _is_each(x, self.each)
        furthest = np.zeros(now.shape)
        with np.errstate(all="ignore"):
            finite = np.isfinite(now)
            same = bool((np.isfinite(kept) == finite).all())
            apart, size = _distances(kept, now), np.abs(now[finite]).max(initial=0)
            if kept.dtype.kind in "fc":
                apart = np.where(_close(kept, now), 0, apart)
            for made in self.draws:
                try:
                    moved = np.asarray(made[id(x)]._computed())
                except np.linalg.LinAlgError:
                    return True
                furthest = np.maximum(furthest, _distances(moved, now))
                if (np.isfinite(moved) != finite).any():
                    return True
                top = furthest.max(initial=0)
                if (
                    (apart <= TIMES * (furthest if each else top)).all()
                    if same
                    else (top > HARDLY * size)
                ):
                    return True
        return False


def _distances(a: Any, b: Any) -> Any:
    """The differences of what is finite."""
    kind = complex if "c" in (a.dtype.kind, b.dtype.kind) else float
    both = np.isfinite(a) & np.isfinite(b)
    return np.where(both, np.abs(a.astype(kind) - b.astype(kind)), 0.0)
