"""LSMR over blocks of columns: for A with more columns than a worker holds vectors of.

The steps of lsmr.py with the two vectors' parts exchanged: u, of the rows' length, is held here and
has norm one, and a part that gets all of it and its own piece of v answers

    w = A^H u - beta v   (its piece),    t = A w   (its share of a sum),    v' = w / alpha = w / |w|

so that A v' = t / alpha is there when the next u is made. Each block is loaded once an iteration
and used twice, since all of its w is needed before t. Parts keep nothing between iterations: a lost
part costs as much as reading its blocks again, and the iterates do not change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arguments import held_right_side
from .bidiagonalization import Rotations, Run
from .record import stored

__all__ = ["Wide"]


class Wide(Run):
    """One LSMR iteration over blocks of columns."""

    _SCALARS = ("alpha", "beta", "first", "count")
    _VECTORS = ("v", "h", "hbar", "x")

    def take_b(self, b: Any) -> None:
        """The right side, here."""
        self.b = held_right_side(b, self.rows, self.dtype)

    def begin(self, again: bool) -> tuple[float, float]:
        """u = b - A x, the first alpha and beta; ``again`` where damping is to be kept by rows."""
        self.count, self.known = 0, None
        self.engine.recover = None
        if self.engine.any(bool(self.x.any())):
            self.u = self.b - self.op._between(self.x, self.columns, self.rows)
        else:
            self.u = self.b.copy()
        self.tail = None
        if self.damp and (again or self.M is not None):
            self.tail = -self.damp * (self.x if self.x0 is None else self.x - self.x0)
        self.v = np.zeros(self.n, self.dtype)
        self.alpha = 0.0
        self._beta()
        self.first = self.beta
        size = self._alpha()
        self.v /= size
        self._check()
        self.turned()
        self.h, self.hbar = self.p.copy(), np.zeros(self.n, self.dtype)
        self.s = Rotations(self.alpha, self.beta, 0.0 if self.tail is not None else self.damp)
        return self.alpha, self.beta

    def norm_b(self) -> float:
        """|b|."""
        return self.rows.norm(self.b)

    def _beta(self) -> None:
        """Normalises u and the part below it together; their norm becomes beta."""
        tail = 0.0 if self.tail is None else self.columns.norm(self.tail)
        self.beta = math.hypot(self.rows.norm(self.u), tail)
        if self.beta > 0:
            self.u /= self.beta
            if self.tail is not None:
                self.tail /= self.beta

    def _alpha(self) -> float:
        """w = A^H u - beta v, which is v times the number returned, and A v; one sweep."""
        add = -self.beta * self.v
        each: Any = self.columns.each(add)
        if self.M is not None:
            x = np.zeros_like(add) if self.tail is None else self.damp * self.tail
            turns = self.columns.each(self.M)
            each = {i: (*w, *turns[i], *each[i]) for i, w in self.columns.each(x).items()}
        elif self.tail is not None:
            add += self.damp * self.tail
        answers = self.engine.here("across", self.rows.whole(self.u), each=each)
        self.v = self.columns.joined([piece for piece, _ in answers], self.dtype)
        self.t = self.rows.add([share for _, share in answers], self.dtype)
        self.alpha = self.columns.norm(self.v)
        if self.alpha == 0:
            return 1.0
        self.t /= self.alpha
        return self.alpha

    def advance(self) -> float:
        """The next alpha and beta, and v, which is still to be divided by the number returned."""
        self.u *= -self.alpha
        self.u += self.t
        if self.tail is not None:
            self.tail = self.damp * self.p - self.alpha * self.tail
        self.count += 1
        self._beta()
        return self._alpha() if self.beta > 0 else 1.0

    def residual(self, scale: float) -> tuple[float, Any]:
        """(|r|, A^H r) of r = (b - A x) / scale."""
        r = self.b / scale - self.op._between(self.x / scale, self.columns, self.rows)
        return self.rows.norm(r), self.op._between(r, self.rows, self.columns, True)

    def shares(self) -> Any:
        """(name, array) of what is of the rows' length."""
        yield "u", self.rows.stream(self.u)
        yield "t", self.rows.stream(self.t)

    def take_shares(self, z: Any) -> None:
        """Put them back."""
        self.u, self.t = (stored(z, k, self.rows.at) for k in "ut")

    def end(self) -> None:
        """The parts keep nothing."""
