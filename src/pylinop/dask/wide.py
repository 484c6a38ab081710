"""LSMR over blocks of columns: for A with more columns than a worker holds vectors of.

The steps of lsmr.py with the two vectors' parts exchanged: u, of the rows' length, is here and has
norm one, and a part that gets it and its own piece of v answers

    w = A^H u - beta v   (its piece),    t = A w   (its share of a sum),    v' = w / alpha = w / |w|

so that A v' = t / alpha is there when the next u is made. Each block is loaded once an iteration
and gone through twice, as all of its w comes before t. Parts keep nothing between iterations: a
lost one costs what reading its blocks again costs, and the iterates do not change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .lsmr import _Rotations, _Run, power_of_two
from .part import scaled_norm

__all__ = ["Wide"]


class Wide(_Run):
    """One LSMR iteration over blocks of columns."""

    def __init__(self, op: Any, b: Any, x0: Any, dtype: Any, damp: float) -> None:
        super().__init__(op, b, x0, dtype, damp)
        self.b = np.array(np.load(b) if isinstance(b, str) else b, dtype)

    def begin(self, again: bool) -> tuple[float, float]:
        """u = b - A x, the first alpha and beta; ``again`` where damping is to be kept by rows."""
        self.count, self.known = 0, None
        self.c, self.g = 1.0, np.zeros(0, self.dtype)  # of no use here
        self.engine.recover = None
        self.u = self.b.copy() if not self.x.any() else self.b - self.op.matvec(self.x)
        self.tail = None
        if again and self.damp:
            self.tail = -self.damp * (self.x if self.x0 is None else self.x - self.x0)
        self.v = np.zeros(self.n, self.dtype)
        self.alpha = 0.0
        self._beta()
        self.first = self.beta
        size = self._alpha()
        self.v /= size
        self._check()
        self.h, self.hbar = self.v.copy(), np.zeros(self.n, self.dtype)
        self.s = _Rotations(self.alpha, self.beta, 0.0 if self.tail is not None else self.damp)
        return self.alpha, self.beta

    def norm_b(self) -> float:
        """|b|."""
        return scaled_norm(self.b)

    def _beta(self) -> None:
        """The norm of u, and of what stands below it; both divided by it."""
        tail = 0.0 if self.tail is None else scaled_norm(self.tail)
        self.beta = math.hypot(scaled_norm(self.u), tail)
        if self.beta > 0:
            self.u /= self.beta
            if self.tail is not None:
                self.tail /= self.beta

    def _alpha(self) -> float:
        """w = A^H u - beta v, which is v times the number returned, and A v; one sweep."""
        add = -self.beta * self.v
        if self.tail is not None:
            add += self.damp * self.tail
        each = [(piece,) for (piece,) in self.op._slices(add)]
        answers = self.engine.gather("across", self.u, each=each)
        self.v = np.concatenate([piece for piece, _ in answers])
        self.t = np.zeros_like(self.u)
        for _, share in answers:
            self.t += share
        self.alpha = scaled_norm(self.v)
        if self.alpha == 0:
            return 1.0
        self.t /= self.alpha
        return self.alpha

    def advance(self) -> float:
        """The next alpha and beta, and v, which is still to be divided by the number returned."""
        self.u *= -self.alpha
        self.u += self.t
        if self.tail is not None:
            self.tail = self.damp * self.v - self.alpha * self.tail
        self.count += 1
        self._beta()
        return self._alpha() if self.beta > 0 else 1.0

    def true(self) -> tuple[float, float]:
        """(|r|, |A^H r|) of the damped problem, from x itself."""
        if self.known is not None and self.known[0] == self.count:
            return self.known[1]
        scale = power_of_two(self.normb)
        r = self.b / scale - self.op.matvec(self.x / scale)
        normr, w = scaled_norm(r), self.op.rmatvec(r)
        if self.damp:
            tail = self.damp / scale * (self.x if self.x0 is None else self.x - self.x0)
            normr = math.hypot(normr, scaled_norm(tail))
            w -= self.damp * tail
        self.known = (self.count, (scale * normr, scale * scaled_norm(w)))
        return self.known[1]

    def shares(self) -> Any:
        """(name, array) of what belongs to the rows."""
        yield "u", self.u
        yield "t", self.t

    def take_shares(self, z: Any) -> None:
        """Put them back."""
        self.u, self.t = z["u"], z["t"]

    def end(self) -> None:
        """The parts keep nothing."""
