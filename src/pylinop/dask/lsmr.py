"""LSMR over blocks: an iteration takes one sweep and one exchange of vectors.

Fong and Saunders 2011, LSMR: An iterative algorithm for sparse least-squares problems, with the
names and stopping rules of SciPy's function. The difference is where vectors live: those along the
columns here, whole or a piece on each rank (held.py), those along the rows with the parts. Since u
is not scaled to norm one, the sweep that makes u also gives A^H u:

    u' = A v - (alpha / beta) u,   beta' = |u'|,   w = A^H u',   alpha' v' = w / beta' - beta' v

so a part gets v and gives (|u'|^2, w), and its share of u never moves.

A lost share of u is restored from what is kept here: u = c b + A g, where c and g follow the same
recurrence (c' = -(alpha / beta) c, g' = v - (alpha / beta) g). That loses about
eps (|c| |b| + |A| |g|) / beta; where this passes 1e-8, the iteration begins anew from x."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .arguments import damping, first, operator_of, resumed, right_side
from .bidiagonalization import Restart, Rotations, Run
from .operator import BlockOperator
from .precondition import parsed
from .precondition import said as said_of
from .record import Record, Result, Watch, load
from .wide import Wide

__all__ = ["lsmr"]

_RESTARTS = 3  # because the true residual does not confirm the estimate


class _Rules(NamedTuple):
    """SciPy's stopping rules."""

    atol: float
    btol: float
    ctol: float

    def stop(self, s: Rotations, normx: float, normb: float, last: bool) -> int:
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
        self, istop: int, s: Rotations, true: tuple[float, float, float], x: float, b: float
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
    """Minimise |b - A x|^2 + damp^2 |x - x0|^2 over blocks of rows or of columns.

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
        one, or groups of k columns next to each other made orthonormal (k is 8 when not given).
        An array of shape (n,) is the preconditioner's diagonal.
    callback : callable, optional
        ``callback(x)`` after each iteration; x is the iterate itself, not to be kept or changed.
    progress : bool or callable
        True: tqdm's bar, a line now and then without tqdm. A callable gets (iteration, |r|,
        |A^H r|).
    checkpoint : path, optional
        An ``.npz`` file for all that the iteration needs, which is written whole or not at all.
    checkpoint_every : int or float
        An int: iterations between checkpoints; a float: seconds.
    resume : path or True, optional
        Go on from this checkpoint; True: from ``checkpoint`` where that file is there, else begin.

    Returns
    -------
    Result
        SciPy's (x, istop, itn, normr, normar, norma, conda, normx), with ``record``. normr and
        normar are norms of the true residual b - A x and of A^H times it. istop is 7 also where
        these do not confirm the rule that stopped the iteration, and beginning anew did not help.

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
    run = (Wide if A.axis == 1 else Run)(
        A, values, None if found else x0, dtype, damp, turn
    )  # a checkpoint has its own x0
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
    run: Run, rules: _Rules, maxiter: int, watch: Watch, record: Record, said: Any, found: Any
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
        except Restart:
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


def _confirmed(run: Run, rules: _Rules, istop: int, normb: float) -> bool:
    if istop in (3, 6):
        return True
    return rules.holds(istop, run.s, run.true(), run.norm_x(), normb)


def _write(run: Run, watch: Watch, record: Record, said: Any, itn: int, normb: float) -> None:
    def arrays() -> Any:
        for name, value in {**said, "itn": itn, "normb": normb}.items():
            yield name, np.array(value)
        yield "restarts", np.array(record.restarts)
        yield "residuals", np.array(record.residuals)
        yield "normal_residuals", np.array(record.normal_residuals)
        yield from run.arrays()

    watch.save(arrays())


def _finish(run: Run, istop: int, itn: int, watch: Watch, record: Record, losses: int) -> Result:
    normr, normar, _ = run.true()
    run.end()
    record.iterations, record.losses = itn, run.engine.losses - losses
    record.true_residual, record.true_normal_residual = normr, normar
    record.seconds = watch.seconds()
    s, columns = run.s, run.columns
    x, record.piece = columns.given(run.x), columns.piece
    values = (x, istop, itn, normr, normar, s.normA, s.condA, columns.norm(run.x))
    return Result(values, record)
