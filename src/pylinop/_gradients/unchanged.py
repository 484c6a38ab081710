"""Gradients that are computed after their value was: do the values that were kept still belong to
the arrays? What is kept of a formula is of its arrays as they were, what is not yet computed reads
them as they are: a gradient of both would be that of nothing.

Arrays have no versions, and to read them at each evaluation would be a price for all. So where a
part of the value is known before its gradient is computed, the formula is computed once more, of
the arrays as they are, and what it gives is compared with what was kept. Where that is not
the same, it is seen how far rounding goes (roundings.py) before anything is said."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._lazy import text
from .pieces import call
from .roundings import Roundings, again, belong

__all__ = ["Unchanged"]


def _dependent(value: Any, order: list[Any]) -> list[Any]:
    """All that is made of what the gradient is by, arguments first: also what a rule passes over,
    such as the pair that sign and logarithm of a determinant are of."""
    live = {id(x) for x in order}
    found = []
    for x in text.postorder(value):
        if id(x) in live or any(id(a) in live for a in x._args):
            live.add(id(x))
            found.append(x)
    return found


class Unchanged:
    """What is called before a gradient is computed: raises RuntimeError where values that were kept
    are not those of the arrays any more."""

    def __init__(self, value: Any, order: list[Any], wanted: dict[int, Any]) -> None:
        self.value, self.wanted = value, wanted
        self.order = [x for x in order if is_lazy(x)]
        self.nodes = {id(y) for x in self.order for y in (x, *x._args)}
        self.looking: set[int] = set()  # threads, which do not look from within

    def guarding(self, g: Any) -> Any:
        """The gradient, guarded; a node of its own, where it is one of the formula."""
        if not is_lazy(g):
            return g
        if id(g) in self.nodes:
            g = call(np.positive, (g,), g.shape, g.dtype) if g.ndim < 2 else _twice_turned(g)
        g._guard = self
        return g

    def __call__(self) -> None:
        """Looks, which costs nothing where no part of the value is known yet."""
        me = threading.get_ident()
        if me in self.looking or all(x._value is None for x in self.order):
            return
        self.looking.add(me)
        try:
            self._look()
        finally:
            self.looking.discard(me)

    def _look(self) -> None:
        nodes = _dependent(self.value, self.order)
        made = again(nodes, self.wanted)
        roundings: Roundings | None = None
        for x in nodes:
            if x._value is None or made[id(x)] is x:
                continue
            try:
                now = made[id(x)]._computed()
            except Exception as error:
                raise RuntimeError(self._text(x)) from error
            if not belong(x._value, now):
                roundings = roundings or Roundings(self.value, nodes, self.wanted)
                if not roundings.reach(x, x._value, now):
                    raise RuntimeError(self._text(x))

    def _text(self, x: Any) -> str:
        return (
            "an array has been written to between a value and its gradient: "
            f"{text.formula(x)} of shape {x.shape}, computed before, is not what its arrays give "
            "now, so that the derivative would be that of something else. Compute both by "
            "pl.evaluate(value, *gradients), or give the formula a copy" + errors.built(self.value)
        )


def _twice_turned(g: Any) -> Any:
    """A matrix itself, as another node."""
    turned = _core._LazyArray("view", (g,), (*g.shape[:-2], *g.shape[:-3:-1]), g.dtype, 1)
    return _core._LazyArray("view", (turned,), g.shape, g.dtype, 1)
