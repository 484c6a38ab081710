"""Runs LSMR over blocks: the bidiagonalization of Golub and Kahan, and its rotations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arguments import started
from .operator import BlockOperator
from .precondition import of_least_squares
from .record import stored

# What may be lost in restoring a share of u; beyond it the iteration begins anew.
_FAITHFUL = 1e-8
_NEAR = 16384  # numbers: 128 kB of each vector


def power_of_two(x: float) -> float:
    """A power of two near x, by which numbers scale without rounding; 1 where x has none."""
    if not 0 < x < math.inf:
        return 1.0
    return math.ldexp(1.0, min(1000, max(-1000, math.frexp(x)[1])))


def near(n: int) -> Any:
    """Ranges of n numbers, few enough that all vectors' are in a cache at once."""
    return (slice(i, min(i + _NEAR, n)) for i in range(0, n, _NEAR))


class Restart(Exception):
    """A lost share of u cannot be had back accurately."""


def ortho(a: float, b: float) -> tuple[float, float, float]:
    """(c, s, r) of the rotation that takes (a, b) to (r, 0)."""
    r = math.hypot(a, b)
    if r == 0:
        return 1.0, 0.0, 0.0
    return a / r, b / r, r


class Rotations:
    """The scalars of LSMR: two QR factorisations and the estimates; one `turn` an iteration."""

    names = (
        "alphabar zetabar rho rhobar cbar sbar betadd betad rhodold tautildeold thetatilde zeta d "
        "normA2 maxrbar minrbar normA condA normr normar damp"
    ).split()

    def __init__(self, alpha: float, beta: float, damp: float) -> None:
        self.alphabar, self.zetabar, self.damp = alpha, alpha * beta, damp
        self.rho = self.rhobar = self.cbar = self.rhodold = self.condA = 1.0
        self.sbar = self.betad = self.tautildeold = self.thetatilde = self.zeta = self.d = 0.0
        self.betadd = self.normr = beta
        self.normA2, self.normA = alpha * alpha, alpha
        self.maxrbar, self.minrbar = 0.0, 1e100
        self.normar = alpha * beta

    def turn(self, alpha: float, beta: float, first: bool) -> tuple[float, float, float]:
        """Take up alpha and beta; the factors of hbar, of its share in x, and of h."""
        chat, shat, alphahat = ortho(self.alphabar, self.damp)
        rhoold = self.rho
        c, s, self.rho = ortho(alphahat, beta)
        thetanew, self.alphabar = s * alpha, c * alpha
        rhobarold, zetaold = self.rhobar, self.zeta
        thetabar, rhotemp = self.sbar * self.rho, self.cbar * self.rho
        self.cbar, self.sbar, self.rhobar = ortho(rhotemp, thetanew)
        self.zeta, self.zetabar = self.cbar * self.zetabar, -self.sbar * self.zetabar

        betaacute, betacheck = chat * self.betadd, -shat * self.betadd
        betahat, self.betadd = c * betaacute, -s * betaacute
        thetatildeold = self.thetatilde
        ctilde, stilde, rhotilde = ortho(self.rhodold, thetabar)
        self.thetatilde, self.rhodold = stilde * self.rhobar, ctilde * self.rhobar
        self.betad = -stilde * self.betad + ctilde * betahat
        self.tautildeold = (zetaold - thetatildeold * self.tautildeold) / rhotilde
        taud = (self.zeta - self.thetatilde * self.tautildeold) / self.rhodold
        self.d = math.hypot(self.d, betacheck)
        self.normr = math.hypot(self.d, self.betad - taud, self.betadd)

        self.normA2 += beta * beta
        self.normA = math.sqrt(self.normA2)
        self.normA2 += alpha * alpha
        self.maxrbar = max(self.maxrbar, rhobarold)
        if not first:
            self.minrbar = min(self.minrbar, rhobarold)
        self.condA = max(self.maxrbar, rhotemp) / min(self.minrbar, rhotemp)
        self.normar = abs(self.zetabar)
        return (
            -thetabar * self.rho / (rhoold * rhobarold),
            self.zeta / (self.rho * self.rhobar),
            -thetanew / self.rho,
        )


class Run:
    """One LSMR iteration: the vectors here, the steps on the parts."""

    def __init__(self, op: BlockOperator, b: Any, x0: Any, dtype: Any, damp: float, M: Any) -> None:
        self.op, self.engine = op, op.engine
        self.rows, self.columns = op._held(0), op._held(1, M[1])
        self.M = of_least_squares(op, M, self.columns, damp)
        x0 = started(x0, self.columns, dtype)
        self.n, self.dtype, self.damp = self.columns.size, dtype, damp
        self.x0, self.x = x0, np.zeros(self.n, dtype) if x0 is None else x0.copy()
        self.take_b(b)
        self.known: tuple[int, tuple[float, float, float]] | None = None  # (count, true residuals)
        self.normb = 1.0
        self.tail: Any = None  # the share of u below A, where a damped problem began anew

    def take_b(self, b: Any) -> None:
        """The right side: each part gets its rows of it."""
        self.pieces = self.op._slices(b)

    def sweep(self, method: str, *args: Any, each: Any = None) -> tuple[float, Any]:
        """(|u|^2, what is here of A^H u), of all parts' answers."""
        answers = self.engine.here(method, *args, each=each)
        w = self.columns.add([share for _, share in answers], self.dtype)
        return self.columns.sum([ssq for ssq, _ in answers]), w

    def begin(self, again: bool) -> tuple[float, float]:
        """u = b - A x, the first alpha and beta; ``again`` where damping is to be kept by rows."""
        self.count, self.known = 0, None
        self.c, self.g = 1.0, -self.x
        self.engine.recover = self.recover
        g = self.columns.whole(self.g)
        ssq, w = self.sweep("begin", 0, 1.0, g, True, each=self.pieces)
        self.tail = None
        if self.damp and (again or self.M is not None):
            self.tail = -self.damp * (self.x if self.x0 is None else self.x - self.x0)
            ssq += self.columns.dot(self.tail, self.tail)
            w += self.damp * self.tail
        if self.M is not None:
            w = self.M.left(w)
        self.beta = self.first = self._norm(ssq)
        if self.beta > 0:
            w /= self.beta
            self.alpha = self.columns.norm(w)
        else:
            self.alpha = 0.0
        self._check()
        self.v = w / self.alpha if self.alpha > 0 else w
        self.turned()
        self.h, self.hbar = self.p.copy(), np.zeros(self.n, self.dtype)
        self.s = Rotations(self.alpha, self.beta, 0.0 if self.tail is not None else self.damp)
        return self.alpha, self.beta

    def turned(self) -> None:
        """The direction that v stands for in x: F v with a preconditioner."""
        self.p = self.v if self.M is None else self.M.right(self.v)

    def norm_b(self) -> float:
        """|b|: that of the first residual where x0 is zero."""
        if self.x0 is None:
            return self.first
        self.engine.recover = None
        zero, scale = np.zeros(self.columns.n, self.dtype), power_of_two(self.first)
        ssq, _ = self.sweep("residual", zero, scale, each=self.pieces)
        self.engine.recover = self.recover
        return scale * math.sqrt(ssq)

    def _norm(self, ssq: float) -> float:
        """|u| from its square; from u itself where the square is out of range."""
        if 1e-280 < ssq < 1e280:
            return math.sqrt(ssq)
        parts = self.engine.gather("norm")
        if self.tail is not None:
            parts.append(self.columns.norm(self.tail))
        return math.hypot(*parts)

    def _check(self) -> None:
        if not (math.isfinite(self.beta) and math.isfinite(self.alpha)):
            raise np.linalg.LinAlgError(
                f"lsmr: numbers are not finite at iteration {self.count}: A, b or x0 hold NaN or "
                f"infinity, or their scale overflows (|u| {self.beta:g}, |A^H u| {self.alpha:g})"
            )

    def recover(self, number: int) -> list[tuple[str, tuple[Any, ...]]]:
        """What brings a part made anew to this iteration: u = c b + A g."""
        if self.count > 0:
            size = abs(self.c) * self.first + self.s.normA * self.columns.norm(self.g)
            if not np.finfo(self.dtype).eps * size <= _FAITHFUL * self.beta:
                raise Restart
        b = self.pieces[number][0]
        return [("begin", (self.count, self.c, self.g, False, b))]

    def advance(self) -> float:
        """The next alpha and beta, and v, which is still to be divided by the number returned."""
        ratio = self.alpha / self.beta if self.beta > 0 else 0.0
        ssq, w = self.sweep("step", self.count + 1, self.columns.whole(self.p), ratio)
        if self.tail is not None:
            self.tail = self.damp * self.p - ratio * self.tail
            ssq += self.columns.dot(self.tail, self.tail)
            w += self.damp * self.tail
        if self.M is not None:
            w = self.M.left(w)
        self.count += 1
        self.c *= -ratio
        self.beta = self._norm(ssq)
        for at in near(self.n):
            v, g = self.v[at], self.g[at]
            g *= -ratio
            g += self.p[at]
            if self.beta > 0:
                w[at] /= self.beta
                w[at] -= self.beta * v
        if self.beta == 0:
            return 1.0
        self.v, self.alpha = w, self.columns.norm(w)
        return self.alpha if self.alpha > 0 else 1.0

    def step(self) -> None:
        """The next x."""
        size = self.advance()
        self._check()
        try:
            of_hbar, of_x, of_h = self.s.turn(self.alpha, self.beta, self.count == 1)
        except ZeroDivisionError:
            raise np.linalg.LinAlgError(
                f"lsmr: numbers underflow at iteration {self.count}: scale A up "
                f"(|A| is about {self.s.normA:g})"
            ) from None
        if self.M is not None:
            self.v /= size
            size = 1.0
        self.turned()
        for at in near(self.n):
            v, h, hbar = self.p[at], self.h[at], self.hbar[at]
            v /= size
            hbar *= of_hbar
            hbar += h
            self.x[at] += of_x * hbar
            h *= of_h
            h += v

    def true(self) -> tuple[float, float, float]:
        """(|r|, |A^H r|, |F^H A^H r|) of the damped problem, from x itself; one sweep, once an
        iteration."""
        if self.known is not None and self.known[0] == self.count:
            return self.known[1]
        scale = power_of_two(self.normb)
        normr, w = self.residual(scale)
        if self.damp:
            tail = self.damp / scale * (self.x if self.x0 is None else self.x - self.x0)
            normr = math.hypot(normr, self.columns.norm(tail))
            w -= self.damp * tail
        normar = turned = scale * self.columns.norm(w)
        if self.M is not None:
            turned = scale * self.columns.norm(self.M.left(w))
        self.known = (self.count, (scale * normr, normar, turned))
        return self.known[1]

    def norm_x(self) -> float:
        """|x|, or that of what a preconditioner makes of it: what the rules speak of."""
        return self.columns.norm(self.x if self.M is None else self.M.back(self.x))

    def residual(self, scale: float) -> tuple[float, Any]:
        """(|r|, A^H r) of r = (b - A x) / scale."""
        self.engine.recover = None
        minus = self.columns.whole(self.x / -scale)
        ssq, w = self.sweep("residual", minus, scale, each=self.pieces)
        return math.sqrt(ssq), w

    # -- checkpoints -------------------------------------------------------------------------------

    _SCALARS: tuple[str, ...] = ("alpha", "beta", "c", "first", "count")
    _VECTORS: tuple[str, ...] = ("v", "h", "hbar", "x", "g")

    def arrays(self) -> Any:
        """(name, array) of all that the iteration needs, u last."""
        yield "parts", np.array(len(self.op._specs))
        yield "scalars", np.array([float(getattr(self, k)) for k in self._SCALARS])
        yield "rotations", np.array([getattr(self.s, k) for k in Rotations.names])
        for k in self._VECTORS:
            yield k, self.columns.stream(getattr(self, k))
        for k in ("x0", "tail"):
            if getattr(self, k) is not None:
                yield k, self.columns.stream(getattr(self, k))
        yield from self.shares()

    def shares(self) -> Any:
        """(name, array) of what is of the rows' length."""
        yield "u", self.rows.stream(self.rows.joined(self.engine.here("get_u"), self.dtype))

    def take_shares(self, z: Any) -> None:
        """Put them back, cut anew: the blocks may be other ones."""
        self.engine.recover = self.recover
        u = stored(z, "u", self.rows.at)
        self.engine.here("set_u", self.count, each=self.rows.each(u))

    def end(self) -> None:
        """The parts need keep nothing any more."""
        self.engine.here("forget")

    def take(self, z: Any) -> None:
        """Put back what `arrays` gave."""
        for k, value in zip(self._SCALARS, z["scalars"].tolist(), strict=True):
            setattr(self, k, value)
        self.count = int(self.count)
        self.s = Rotations(0.0, 0.0, 0.0)
        for k, value in zip(Rotations.names, z["rotations"].tolist(), strict=True):
            setattr(self.s, k, value)
        for k in self._VECTORS:
            setattr(self, k, stored(z, k, self.columns.at))
        for k in ("x0", "tail"):
            setattr(self, k, stored(z, k, self.columns.at) if k in z.files else None)
        self.turned()
        self.take_shares(z)
