"""LSMR over blocks: one sweep and one exchange of vectors an iteration.

Fong and Saunders 2011, LSMR: An iterative algorithm for sparse least-squares problems, with the
names and stopping rules of SciPy's function. What differs is where vectors live: those of the
columns here, whole or a piece on each rank (held.py), those of the rows with the parts. With u not
scaled to norm one, A^H of it is had in the same sweep that makes it:

    u' = A v - (alpha / beta) u,   beta' = |u'|,   w = A^H u',   alpha' v' = w / beta' - beta' v

so a part gets v and gives (|u'|^2, w), and its share of u never moves.

A lost share of u comes back from what is here: u = c b + A g, where c and g follow the same
recurrence (c' = -(alpha / beta) c, g' = v - (alpha / beta) g). That loses about
eps (|c| |b| + |A| |g|) / beta; where this passes 1e-8, the iteration begins anew from x."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .arguments import damping, first, operator_of, resumed, right_side, started
from .operator import BlockOperator
from .precondition import of_least_squares, parsed
from .precondition import said as said_of
from .record import Record, Result, Watch, load, stored

__all__ = ["lsmr"]

# What may be lost in a share of u that is had back; beyond it the iteration begins anew.
_FAITHFUL = 1e-8
_NEAR = 16384  # numbers: 128 kB of each vector
_RESTARTS = 3  # because the true residual does not confirm the estimate


def power_of_two(x: float) -> float:
    """A power of two near x, by which numbers scale without rounding; 1 where x has none."""
    if not 0 < x < math.inf:
        return 1.0
    return math.ldexp(1.0, min(1000, max(-1000, math.frexp(x)[1])))


def near(n: int) -> Any:
    """Ranges of n numbers, few enough that all vectors' are in a cache at once."""
    return (slice(i, min(i + _NEAR, n)) for i in range(0, n, _NEAR))


class _Restart(Exception):
    """A lost share of u cannot be had back accurately."""


def _ortho(a: float, b: float) -> tuple[float, float, float]:
    """(c, s, r) of the rotation that takes (a, b) to (r, 0)."""
    r = math.hypot(a, b)
    if r == 0:
        return 1.0, 0.0, 0.0
    return a / r, b / r, r


class _Rotations:
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
        chat, shat, alphahat = _ortho(self.alphabar, self.damp)
        rhoold = self.rho
        c, s, self.rho = _ortho(alphahat, beta)
        thetanew, self.alphabar = s * alpha, c * alpha
        rhobarold, zetaold = self.rhobar, self.zeta
        thetabar, rhotemp = self.sbar * self.rho, self.cbar * self.rho
        self.cbar, self.sbar, self.rhobar = _ortho(rhotemp, thetanew)
        self.zeta, self.zetabar = self.cbar * self.zetabar, -self.sbar * self.zetabar

        betaacute, betacheck = chat * self.betadd, -shat * self.betadd
        betahat, self.betadd = c * betaacute, -s * betaacute
        thetatildeold = self.thetatilde
        ctilde, stilde, rhotilde = _ortho(self.rhodold, thetabar)
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


class _Rules(NamedTuple):
    """SciPy's stopping rules."""

    atol: float
    btol: float
    ctol: float

    def stop(self, s: _Rotations, normx: float, normb: float, last: bool) -> int:
        """istop, or 0."""
        test1 = s.normr / normb
        test2 = s.normar / (s.normA * s.normr) if s.normA * s.normr != 0 else math.inf
        test3 = 1 / s.condA
        t1 = test1 / (1 + s.normA * normx / normb)
        rtol = self.btol + self.atol * s.normA * normx / normb
        found = 7 if last else 0
        for number, holds in (
            (6, 1 + test3 <= 1),
            (5, 1 + test2 <= 1),
            (4, 1 + t1 <= 1),
            (3, test3 <= self.ctol),
            (2, test2 <= self.atol),
            (1, test1 <= rtol),
        ):
            if holds:
                found = number
        return found

    def holds(
        self, istop: int, s: _Rotations, true: tuple[float, float, float], x: float, b: float
    ) -> bool:
        """Do the true residuals confirm the rule that stopped it, to a factor of ten?"""
        normr, _, normar = true
        eps = float(np.finfo(float).eps)
        if istop in (1, 4):
            rtol = self.btol + self.atol * s.normA * x / b
            floor = eps * (1 + s.normA * x / b)
            return normr / b <= 10 * max(rtol if istop == 1 else 0, 10 * floor)
        if istop in (2, 5):
            reached = normar / (s.normA * normr) if s.normA * normr != 0 else 0.0
            floor = eps * (b / normr + s.normA * x / normr) if normr else math.inf
            return reached <= 10 * max(self.atol if istop == 2 else 0, 10 * floor)
        return True


class _Run:
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
        self.s = _Rotations(self.alpha, self.beta, 0.0 if self.tail is not None else self.damp)
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
                raise _Restart
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
        yield "rotations", np.array([getattr(self.s, k) for k in _Rotations.names])
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
        self.s = _Rotations(0.0, 0.0, 0.0)
        for k, value in zip(_Rotations.names, z["rotations"].tolist(), strict=True):
            setattr(self.s, k, value)
        for k in self._VECTORS:
            setattr(self, k, stored(z, k, self.columns.at))
        for k in ("x0", "tail"):
            setattr(self, k, stored(z, k, self.columns.at) if k in z.files else None)
        self.turned()
        self.take_shares(z)


def lsmr(
    A: BlockOperator,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    x0: Any = None,
    *,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    progress: Any = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 300.0,
    resume: str | os.PathLike[str] | bool | None = None,
) -> Result:
    """Least squares over blocks of rows or of columns: min |b - A x|^2 + damp^2 |x - x0|^2.

    Parameters
    ----------
    A : BlockOperator
        Tall in blocks of rows (``axis=0``), or wide in blocks of columns (``axis=1``).
    b : array_like, shape (m,), or path of a ``.npy`` file
        With a path each part of a tall A reads its own rows.
    damp, atol, btol, conlim, maxiter, x0
        As in `scipy.sparse.linalg.lsmr`.
    M : {'jacobi', 'block_jacobi'}, ('block_jacobi', k) or array_like, shape (n,), optional
        A preconditioner near (A^H A + damp^2)^-1, made in one more sweep: columns scaled to norm
        one, or groups of k (8) columns next to each other made orthonormal. Or the diagonal of one.
    callback : callable, optional
        ``callback(x)`` after each iteration; x is the iterate itself, not to be kept or changed.
    progress : bool or callable
        True: tqdm's bar, a line now and then without tqdm. A callable gets (iteration, |r|,
        |A^H r|).
    checkpoint : path, optional
        An ``.npz`` with all that the iteration needs, written whole or not at all.
    checkpoint_every : int or float
        An int: iterations between checkpoints; a float: seconds.
    resume : path or True, optional
        Go on from this checkpoint; True: from ``checkpoint`` where that file is there, else begin.

    Returns
    -------
    Result
        SciPy's (x, istop, itn, normr, normar, norma, conda, normx), with ``record``. normr and
        normar are those of the true residual b - A x. istop is 7 too where that does not confirm
        the rule that stopped the iteration, and beginning anew did not help.

    Raises
    ------
    ValueError
        For shapes that do not fit, a checkpoint of another problem; for M with fewer rows than
        columns and no damping, where the least solution is meant.
    TypeError
        Where A is no BlockOperator, or b or x0 are not numbers of at most double precision.
    LinAlgError
        Where numbers are not finite.

    Notes
    -----
    One sweep an iteration makes u = A v - alpha u and A^H u, so that each block is read once and
    of each part 2 n numbers travel; beside the blocks, a part keeps its rows of u and b. Of blocks
    of columns one sweep makes w = A^H u - beta v and A w: of each part 2 m numbers travel and 2 of
    each of its own columns, and it keeps nothing, nor any vector of all the columns.

    At the end the residual is computed from x: where it does not confirm the rule that stopped the
    iteration, the iteration begins anew from x, at most three times (``record.restarts``).

    With M = F F^H it solves for y in x = F y: atol, btol, conlim, norma and conda are then those of
    A F and y. Where columns depend on each other it finds the x of least |F^-1 (x - x0)|. A column
    of zeros keeps x0. Block Jacobi holds k numbers for each column, as often as there are parts
    here while it is made; a group that is dependent to 1e-5 is only scaled. Of blocks of columns a
    group lies within one block, and F travels with each question.

    With the same parts the iterates have the same bits on every engine, and after a resumption,
    but for MPI's own order of sums. After a worker's death they differ by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> rows = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])]
    >>> A = pld.BlockOperator(rows, engine="serial")
    >>> x, istop, *_ = pld.lsmr(A, np.array([1.0, 0.0, 1.0]))
    >>> abs(x - [1.0, 0.0]).max() < 1e-6, istop
    (np.True_, 1)
    """
    (m, n), damp = operator_of(A, "lsmr", rows=False).shape, damping(damp)
    rules = _Rules(atol, btol, 1 / conlim if conlim > 0 else 0.0)
    maxiter = min(m, n) if maxiter is None else int(maxiter)
    values, b_dtype = right_side(b, m)
    A.engine  # noqa: B018  # the parts are placed
    turn = parsed(M, n, "lsmr")
    x0 = first(x0, A, turn[1])
    dtype = A._vector_dtype(b_dtype, *(() if x0 is None else (x0.dtype,)))
    resume = resumed(resume, checkpoint)
    said = {"method": "lsmr", "shape": [m, n], "dtype": dtype.str, "damp": damp, "axis": A.axis}
    said["M"] = said_of(A, turn)
    found = load(resume, said) if resume else None
    if found:
        A._use_parts(int(found["parts"]))
    kind: Any = _Run
    if A.axis == 1:
        from .wide import Wide as kind
    run = kind(A, values, None if found else x0, dtype, damp, turn)  # a checkpoint has its own x0
    engine = A.engine
    watch = Watch(engine, maxiter, callback, progress, checkpoint, checkpoint_every)
    record = Record("lsmr", parts=len(A._specs))
    try:
        return _iterate(run, rules, maxiter, watch, record, said, found)
    finally:
        watch.close()
        engine.recover = None
        if found:
            found.close()


def _iterate(
    run: _Run, rules: _Rules, maxiter: int, watch: Watch, record: Record, said: Any, found: Any
) -> Result:
    losses, itn, istop = run.engine.losses, 0, 0
    if found:
        run.take(found)
        itn = record.resumed = int(found["itn"])
        run.normb = normb = float(found["normb"])
        record.residuals = found["residuals"].tolist()
        record.normal_residuals = found["normal_residuals"].tolist()
        record.restarts = int(found["restarts"])
    else:
        run.begin(False)
        run.normb = normb = run.norm_b()
    if found is None and (run.s.normar == 0 or normb == 0):
        if normb == 0:
            run.x[...] = 0
        return _finish(run, 0, 0, watch, record, losses)
    anew = 0
    while itn < maxiter:
        try:
            run.step()
        except _Restart:
            record.restarts += 1
            run.begin(True)
            continue
        itn += 1
        record.residuals.append(run.s.normr)
        record.normal_residuals.append(run.s.normar)
        normx = run.norm_x()
        istop = rules.stop(run.s, normx, normb, itn >= maxiter)
        watch.tell(itn, run.columns, run.x, run.s.normr, run.s.normar)
        if istop and istop != 7 and not _confirmed(run, rules, istop, normb):
            istop = 0 if itn < maxiter and anew < _RESTARTS else 7
            if istop == 7:
                break
            anew += 1
            record.restarts += 1
            run.begin(True)
            if run.s.normar == 0:
                istop = 2
                break
        elif istop:
            break
        if watch.due(itn):
            _write(run, watch, record, said, itn, normb)
    return _finish(run, istop, itn, watch, record, losses)


def _confirmed(run: _Run, rules: _Rules, istop: int, normb: float) -> bool:
    if istop in (3, 6):
        return True
    return rules.holds(istop, run.s, run.true(), run.norm_x(), normb)


def _write(run: _Run, watch: Watch, record: Record, said: Any, itn: int, normb: float) -> None:
    def arrays() -> Any:
        for name, value in {**said, "itn": itn, "normb": normb}.items():
            yield name, np.array(value)
        yield "restarts", np.array(record.restarts)
        yield "residuals", np.array(record.residuals)
        yield "normal_residuals", np.array(record.normal_residuals)
        yield from run.arrays()

    watch.save(arrays())


def _finish(run: _Run, istop: int, itn: int, watch: Watch, record: Record, losses: int) -> Result:
    normr, normar, _ = run.true()
    run.end()
    record.iterations, record.losses = itn, run.engine.losses - losses
    record.true_residual, record.true_normal_residual = normr, normar
    record.seconds = watch.seconds()
    s, columns = run.s, run.columns
    x, record.piece = columns.given(run.x), columns.piece
    values = (x, istop, itn, normr, normar, s.normA, s.condA, columns.norm(run.x))
    return Result(values, record)
