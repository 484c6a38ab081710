"""Sums with Matern kernels of points on a line, within an expression that is differentiated by
their numbers, in the order of the points: there they are quasi-separable, and derivatives of their
inverses go by sweeps, which those of a `Kernel` do not.

    A = sum of kernels + diagonals + thin products, P the order of the points, A' = P A P^T
      --> A^-1 B = P^T A'^-1 P B,   log |A| = log |A'|,   diag(A^-1) = P^T diag(A'^-1)

The points are read and sorted when it is computed, not before. `likelihoods.shortened` asks for it,
where one sweep with derivatives (markov_jets.py) does not say all."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._lazy import evaluate as _evaluate
from .._lazy import text
from .._lazy.build import inverse, slogdet, view
from .._lazy.kinds import Kind
from .._lazy.leaves import lazy
from .._lazy.numpy_functions import diagonal, trace
from .._structured import determinants
from .matrices import given_by_name, head_of
from .pieces import call

_THIN = 8  # rows a column of what is put into order as an array, at least


# -- what runs -------------------------------------------------------------------------------------


def order_of(points: Any) -> Any:
    """The places of points on a line, in order."""
    return np.argsort(np.asarray(points).reshape(-1), kind="stable")


def positive(length: Any) -> Any:
    """A length as it is, which a `Kernel` looks at too."""
    if length <= 0:
        raise ValueError(f"Kernel(length_scale=...): expected positive numbers, got {length}")
    return length


def steps_of(points: Any, order: Any) -> Any:
    """Between points on a line, in order; 0 before the first. NaN where one is not finite."""
    t = np.asarray(points).reshape(-1)
    if not np.isfinite(t).all():
        return np.full(t.shape, np.nan)
    t = t[order]
    return np.diff(t, prepend=t[:1])


def in_order(order: Any, a: Any, back: bool = False) -> Any:
    """The rows of a in the order of the points; ``back``: from it into theirs."""
    if not back:
        return a[order]
    found = np.empty_like(a)
    found[order] = a
    return found


def cotangent(y: Any, g: Any, k: int) -> Any:
    """Of the rows, or of a length; the points have none here."""
    if y._more[0] is positive:
        return g
    if y._more[0] in (order_of, steps_of) or k == 0:
        return None
    return call(in_order, (y._args[0], g), y.shape, g.dtype, back=not y._more[1]["back"])


FUNCTIONS = frozenset((order_of, steps_of, in_order, positive))


# -- what a sum is of ------------------------------------------------------------------------------


def _is_made_low(x: Any) -> bool:
    kind = x._more[0] if x._head == "made" else None
    return isinstance(kind, Kind) and head_of(kind.cls) == "lowrank"


def low_rank(x: Any) -> Any:
    """U of a thin U U^T; None of others, which need not be symmetric."""
    if x._head == "operator":
        op = x._args[0]
        if op._head != "lowrank" or op._init is None:
            return None
        held = dict(zip("UVC", op._given("U", "V", "C"), strict=True))
    elif _is_made_low(x):
        held = given_by_name(x)
    elif x._head == "matmul" and all(a.ndim == 2 for a in x._args):
        u, v = x._args
        turned = v._head == "view" and v._args[0] is u and v._more in (1, 3)
        held = {"U": u} if turned else {"V": v, "U": u}
    else:
        return None
    if held.get("V") is not None or held.get("C") is not None:
        return None
    U = _array(held["U"])
    return U if U is not None and U.dtype == np.float64 and _is_thin(U) else None


def _array(a: Any) -> Any:
    """An array as a LazyArray, also of a Dense; None of other operators."""
    op = a._args[0] if is_lazy(a) and a._head == "operator" else a
    if not isinstance(op, _core.Operator):
        return lazy(a)
    plain = op._head == "dense" and op._init is not None and op._given("assume_a") is None
    return lazy(op._given("a")) if plain else None


def _is_thin(a: Any) -> bool:
    """Is it an array of few columns?"""
    if a.ndim == 1:
        return True
    return a.ndim == 2 and a.shape[1] * _THIN <= a.shape[0] and a._head not in ("operator", "made")


# By the id of the steps: a sum, and what stands for it while that is there.
_stands_for: dict[int, tuple[Any, Any]] = {}


def lost(steps: Any, part: Any) -> bool | None:
    """Is a LazyArray within a sum, and not within what stands for it? None: these are not known
    any more."""
    if id(steps) not in _stands_for:
        return None
    A, made = _stands_for[id(steps)]
    kept = made()
    inner = any(x is part for x in text.postorder(A))
    return inner and (kept is None or all(x is not part for x in text.postorder(kept)))


def sum_of(steps: Any) -> Any:
    return _stands_for[id(steps)][0] if id(steps) in _stands_for else None


class Sorted:
    """A in the order of its points; `kernels`: (multiple, function of the steps that gives its
    generators), `noises`: (number, array or None), `low`: (multiple, U of U U^T)."""

    def __init__(
        self, A: Any, points: Any, kernels: list[Any], noises: list[Any], low: list[Any]
    ) -> None:
        self.points = lazy(points)
        self.known: dict[int, Any] = {}
        n = self.points.shape[0]
        self.places = call(order_of, (self.points,), (n,), np.intp)
        h = call(steps_of, (self.points, self.places), (n,), np.float64)
        parts: list[Any] = [_core.QuasiSeparable(*made(h)) * times for times, made in kernels]
        for number, scale in noises:
            noise = _core.Identity(n) if scale is None else _core.Diag(self.order(lazy(scale)))
            parts.append(noise * number)
        for times, U in low:
            parts.append(_core.LowRank(self.order(U)) * times)
        self.sum = lazy(sum(parts[1:], parts[0]))
        _stands_for[id(h)] = A, weakref.ref(self.sum)
        weakref.finalize(h, _stands_for.pop, id(h), None)
        self.inverse = inverse(self.sum)

    def order(self, a: Any) -> Any:
        """The rows of an array in order, the same node each time."""
        if _is_back(a) and a._args[0] is self.places:
            return a._args[1]
        if id(a) not in self.known:
            self.known[id(a)] = call(in_order, (self.places, a), a.shape, a.dtype, back=False)
        return self.known[id(a)]

    def back(self, a: Any) -> Any:
        return call(in_order, (self.places, a), a.shape, a.dtype, back=True)


def _is_back(x: Any) -> bool:
    return is_lazy(x) and x._head == "call" and x._more[0] is in_order and bool(x._more[1]["back"])


# -- what stands for its uses ----------------------------------------------------------------------


def _behind_views(x: Any) -> Any:
    while is_lazy(x) and x._head == "view":
        x = x._args[0]
    return x


class Uses:
    """What stands for uses of sums; `sorted_of` has the `Sorted` of a matrix, or None."""

    def __init__(self, sorted_of: Callable[[Any], Sorted | None]) -> None:
        self.sorted_of = sorted_of
        # By the id of P^T z, or of z^T P: that, of what, z, is it the latter?
        self._back: dict[int, tuple[Any, Sorted, Any, bool]] = {}

    def _inverted(self, x: Any) -> Sorted | None:
        """Of A where x is its inverse, both symmetric."""
        x = _behind_views(x)
        if not is_lazy(x) or x._head != "inverse":
            return None
        return self.sorted_of(_behind_views(x._args[0]))

    def of(self, x: Any, args: tuple[Any, ...]) -> Any:
        """Of a node, whose arguments are these by now; None where it is no such use."""
        if x._head == "matmul" and all(map(is_lazy, args)):
            return self._product(x, args)
        if x._head == "call" and x._more[0] in (determinants.logabs_of, determinants.sign_of):
            s = self.sorted_of(_behind_views(x._args[0]._args[0]))
            return None if s is None else slogdet(s.sum)[x._more[0] is determinants.logabs_of]
        if x._head != "of form":
            return None
        f, a = x._more[0], x._args[0]
        if f is determinants.logdet:
            s = self.sorted_of(_behind_views(a))
            return s and _core._LazyArray("of form", (s.sum,), (), x.dtype, x._more)
        if f not in (_evaluate.trace, _evaluate.diagonal) or x._more[1].get("offset", 0):
            return None
        s = self._inverted(a)
        if s is None:
            return None
        return trace(s.inverse) if f is _evaluate.trace else s.back(diagonal(s.inverse))

    def _product(self, x: Any, args: tuple[Any, ...]) -> Any:
        for at in range(2):
            s, other = self._inverted(x._args[at]), args[1 - at]
            if s is None:
                continue
            turned = at == 1 and other.ndim == 2
            rows = view(other, 1) if turned else other
            if not _is_thin(rows):
                return None
            z = s.inverse @ s.order(rows)
            found = view(s.back(z), 1) if turned else s.back(z)
            self._back[id(found)] = found, s, z, turned
            return found
        return self._sandwich(*args)

    def _sandwich(self, left: Any, right: Any) -> Any:
        """C (P^T z) = (C P^T) z, so that what is symmetric is seen to be."""
        if id(right) in self._back and not self._back[id(right)][3]:
            _, s, z, _ = self._back[id(right)]
            rows = left if left.ndim == 1 else view(left, 1)
            if _is_thin(rows):
                return s.order(rows) @ z if left.ndim == 1 else view(s.order(rows), 1) @ z
        if id(left) in self._back and (self._back[id(left)][3] or left.ndim == 1):
            _, s, z, turned = self._back[id(left)]
            if _is_thin(right):
                return (view(z, 1) if turned else z) @ s.order(right)
        return None
