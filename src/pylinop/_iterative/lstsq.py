"""Least squares too large for a factorisation: ``lstsq(A, b, method=...)``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, errors, sparse_arrays
from .._base.config import near
from .._base.dtypes import inexact, real_of
from .._base.memory import room
from .._base.progress import shown
from . import record
from .krylov_run import parts
from .lstsq_columns import peak, together, width_of
from .lstsq_kaczmarz_sgd import block_kaczmarz, largest, measure, sgd
from .memory import product_of
from .row_blocks import Lines, Right, right_sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHODS = ("lsmr", "lsqr", "block_kaczmarz", "sgd")


class LeastSquares(tuple[Any, ...]):
    """The result of ``lstsq(..., method=...)``: NumPy's (x, residuals, rank, s), the last two None,
    and the record of the run, in lists for several columns.

    Attributes
    ----------
    method, problem : str
        The method that ran, and whether it sought a solution ("consistent") or the least squares.
    error : float
        |A^H r| / (|A| |r|) of the recomputed residual, or |r| / |b| where that is smaller; |A| is a
        lower bound, by the power method.
    residual : float
        |b - A x|, recomputed.
    iterations : int
        Iterations of lsmr and lsqr, passes over A of the others.
    """

    method: str
    problem: Any
    error: Any
    residual: Any
    iterations: Any


class Watch:
    """Decides by the recomputed residual when a method is done, and reports progress."""

    def __init__(self, rtol: float, most: int, norm: float, b: float, tell: Any) -> None:
        self.rtol, self.most, self.norm, self.b, self.tell = rtol, most, norm, b, tell
        self.passes, self.error, self.residual = 0, np.inf, np.inf
        self.problem, self.best, self.least = "consistent", None, np.inf

    def judge(self, x: Any, residual: float, g: Any) -> float:
        """The error of x, from |r| and A^H r."""
        size, gradient = float(np.linalg.norm(x)), float(np.linalg.norm(g))
        whole = self.b if self.b > 0 else self.norm * size
        small = residual / whole if whole > 0 else 0.0
        scale = self.norm * residual
        slope = gradient / scale if scale > 0 else 0.0
        self.error = float(min(small, slope)) if np.isfinite(gradient) else np.inf
        if self.best is None or self.error < self.least:
            self.best, self.least, self.residual = x.copy(), self.error, residual
            self.problem = "consistent" if small <= slope else "least squares"
        return self.error

    def done(self, x: Any, residual: float, g: Any) -> bool:
        self.passes += 1
        self.judge(x, residual, g)
        self.tell(x, self.passes, self.error)
        return self.error <= self.rtol or self.passes >= self.most


def _teller(callback: Any, progress: Any, name: str) -> tuple[Any, Any]:
    """Returns (tell, bar): tell(x, iteration, error) each iteration; close bar at the end."""
    show, bar = shown(progress, name)

    def tell(x: Any, k: int, error: float) -> None:
        if show is not None:
            show(k, error)
        if callback is not None:
            callback(x)

    return tell, bar


def _krylov(op: Any, b: Any, x: Any, watch: Watch, method: str, callback: Any) -> int:
    """LSMR or LSQR, restarted from where it stopped until the recomputed residual is small
    enough."""
    spent, target = 0, watch.rtol
    while True:
        r = b - op @ x
        watch.judge(x, float(np.linalg.norm(r)), op.H @ r)
        if spent:
            watch.tell(x, spent, watch.error)
        if watch.error <= watch.rtol:
            return spent
        left = watch.most - spent
        if left <= 0:
            return spent
        step, used = _engine(op, r, method, target, left, callback, x)
        if used == 0 or not bool(np.isfinite(step).all()):
            return spent
        spent += used
        x += step.astype(x.dtype)
        target = max(target / 10, np.finfo(x.dtype).eps)


def _engine(op: Any, r: Any, method: str, tol: float, left: int, callback: Any, x: Any) -> Any:
    """(correction, iterations) by this package's solvers, or by SciPy's where these are missing."""
    import scipy.sparse.linalg as sl  # type: ignore[import-untyped, unused-ignore]

    limit = {"maxiter" if method == "lsmr" else "iter_lim": left}
    own = getattr(sys.modules[__package__], method, None)
    if own is None:
        with np.errstate(over="ignore"):  # SciPy's estimate of the condition, in float32
            found = getattr(sl, method)(op, r, atol=tol, btol=tol, conlim=0, **limit)
    else:
        tell = None if callback is None else lambda step: callback(x + step)
        found = own(op, r, atol=tol, btol=tol, conlim=0, callback=tell, **limit)
    return found[0], int(found[2])


def _stacked(op: Any, columns: list[Any], damp: float) -> tuple[Any, list[Any]]:
    """[A; damp I] and (b, 0): the damped problem as an undamped one."""
    n = op.shape[1]
    made = _core.Block([[op], [damp * _core.Identity(n, inexact(op.dtype))]])

    def longer(b: Any) -> Any:
        if hasattr(b, "indices"):
            import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

            return sp.csc_array((b.data, b.indices, b.indptr), shape=(b.shape[0] + n, 1))
        return np.concatenate([b, np.zeros(n, b.dtype)])

    return made, [longer(b) for b in columns]


def _start(x0: Any, n: int, k: int, dtype: Any) -> NDArray[Any]:
    """The first iterates, (n, k); sparse ones spread out."""
    x = np.zeros((n, k), dtype)
    if x0 is not None:
        given = sparse_arrays.as_dense(x0)
        given = given.reshape(-1, 1) if given.ndim == 1 or given.shape == (1, n) else given
        if given.shape != (n, k) and given.shape != (n, 1):
            raise ValueError(f"x0 must have shape ({n},) or ({n}, {k}), got {np.shape(x0)}")
        x[...] = given
    return x


def solve(A: Any, b: Any, method: str, **how: Any) -> LeastSquares:
    """`lstsq` by an iterative method; `pl.explaining()` shows it as one, in place of its
    products."""
    seen, needed = config.record(), [0]
    if seen is None:
        return _solve(A, b, method, needed, **how)
    started, found = time.perf_counter(), None
    try:
        with record.quiet():
            found = _solve(A, b, method, needed, **how)
    except errors.ConvergenceError as error:
        found = error.record
        raise
    finally:
        if found is not None:
            took = time.perf_counter() - started
            seen.append(record.least_squares_data(A, found, needed[0], took))
    return found


def _solve(
    A: Any, b: Any, method: str, needed: list[int], *, rtol: Any, maxiter: Any, damp: Any,
    x0: Any, rng: Any, block: Any, extended: Any, callback: Any, progress: Any,
) -> LeastSquares:  # fmt: skip
    """The answer; ``needed`` is told the bytes that it takes."""
    if method not in METHODS:
        raise ValueError(f"no method {method!r}; there are {METHODS}{near(str(method), METHODS)}")
    if A.ndim != 2:
        raise ValueError(f"method={method!r} takes one matrix, got a batch of shape {A.shape}")
    if A._opaque and method in ("block_kaczmarz", "sgd"):
        raise ValueError(f"{method} reads rows, and callables have none: use method='lsmr'")
    if not 0 <= damp < np.inf:
        raise ValueError(f"damp must be a number of at least 0, got {damp}")
    if block is not None and (isinstance(block, bool) or block != int(block) or block < 1):
        raise ValueError(f"block must be a number of rows of at least 1, got {block!r}")
    columns, vector, kind = right_sides(b, A.shape[0], A)
    dtype = inexact(np.result_type(inexact(A.dtype), kind))
    if x0 is not None and getattr(x0, "dtype", np.asarray(x0).dtype).kind == "c":
        dtype = np.result_type(dtype, np.complex64)
    if rtol is None:
        rtol = 1e-4 if real_of(dtype).itemsize == 4 else 1e-6
    if not 0 < rtol < 1:
        raise ValueError(f"rtol must lie between 0 and 1, got {rtol}")
    n, k = A.shape[1], len(columns)
    width = 1 if callback is not None or progress else width_of(A, method, dtype, k)
    krylov = method in ("lsmr", "lsqr")
    need = _peak(A, method, dtype, k) if width == 1 else peak(A, dtype, k, width)
    need += _of_right(columns, damp, n) + (_of_products(A, dtype, width) if krylov else 0)
    room(A, need, f"lstsq by {method}")
    needed[0] = need
    op, rights = (A, columns) if not damp else _stacked(A, columns, float(damp))
    if method == "sgd" and block is None:
        block = max(128, -(-A.shape[0] // 256))  # no more than 256 steps a pass
    lines = None if krylov else _lines(op, dtype, block, need, method)
    x = _start(x0, n, k, dtype)
    tell, bar = _teller(callback, progress, method)
    runs = []
    try:
        norm = _norm(op, dtype) if lines is None else largest(lines[1], n, dtype)
        if width > 1:
            runs = _groups(op, [Right(r, dtype) for r in rights], x, method, width, float(rtol),
                           norm, maxiter)  # fmt: skip
        for c, right in enumerate(rights if width == 1 else ()):
            watch = Watch(float(rtol), 0, norm, 0.0, tell)
            own = np.ascontiguousarray(x[:, c])
            generator = np.random.default_rng(rng)
            run = _one(op, lines, Right(right, dtype), own, watch, method, generator,
                       (maxiter, block, extended, callback))  # fmt: skip
            x[:, c] = watch.best if watch.best is not None else own
            runs.append((watch, run))
    finally:
        if bar is not None:
            bar.close()
    if damp:
        for c, (watch, _) in enumerate(runs):
            watch.residual = _plain_residual(A, lines, Right(columns[c], dtype), x[:, c])
    found = _result(x, vector, method, runs)
    bad = [c for c, (watch, _) in enumerate(runs) if not watch.least <= rtol]
    if bad:
        watch, run = runs[bad[0]]
        where = "" if vector else f" in column {bad[0]}"
        raise errors.ConvergenceError(
            f"{method} came to |A^H r| / (|A| |r|) = {watch.least:.3g}{where} in {run} "
            f"{'iterations' if lines is None else 'passes'}, rtol is {rtol:.3g}: take more "
            "(maxiter=), or another method; the best x is the attribute x",
            found[0],
            found,
        )
    return found


def _groups(
    op: Any, rights: list[Right], x: Any, method: str, width: int, rtol: float, norm: float,
    maxiter: Any,
) -> list[tuple[Watch, int]]:  # fmt: skip
    """Runs LSMR or LSQR on all columns, `width` at a time; returns their watches and iterations."""
    runs = []
    m, n = op.shape
    most = max(4 * min(m, n), 100) if maxiter is None else int(maxiter)
    for j in range(0, len(rights), width):
        some = rights[j : j + width]
        watches = [Watch(rtol, most, norm, right.norm, None) for right in some]
        B = np.stack([right.whole(m) for right in some], axis=1)
        own = np.ascontiguousarray(x[:, j : j + width])
        used = together(op, B, own, watches, method)
        for i, watch in enumerate(watches):
            x[:, j + i] = own[:, i] if watch.best is None else watch.best
        runs += list(zip(watches, used))
    return runs


def _plain_residual(A: Any, lines: Any, right: Right, x: Any) -> float:
    """|b - A x| without the rows that the damping adds."""
    if lines is None:
        return float(np.linalg.norm(right.whole(A.shape[0]) - A @ x))
    return measure(Lines(A, x.dtype, None, wide=True), right, np.ascontiguousarray(x))[0]


def _peak(A: Any, method: str, dtype: Any, k: int) -> int:
    """The most bytes that the vectors take: of length n, and of length m for lsmr and lsqr."""
    m, n = A.shape
    krylov = method in ("lsmr", "lsqr")
    of_n = 2 * k + (8 + parts(method, A) if krylov else 14)
    item = _double(dtype).itemsize if krylov else dtype.itemsize
    return int(item * (n * of_n + (4 * m if krylov else 0)))


def _double(dtype: Any) -> Any:
    """The dtype that lsmr and lsqr run in."""
    return np.result_type(dtype, np.float64)


def _of_products(A: Any, dtype: Any, width: int = 1) -> int:
    """Bytes of workspace for products with A and A^H, asked only where a memory limit is set."""
    if config.get("memory_limit") is None:
        return 0
    v, u = (np.empty((n, width), _double(dtype)) for n in A.shape[::-1])  # for their shapes
    return product_of(A, v) + product_of(A.H, u)


def _of_right(columns: list[Any], damp: Any, n: int) -> int:
    """Bytes of copies of the right sides."""
    most = total = 0
    for b in columns:
        if hasattr(b, "indices"):
            total += 40 * b.nnz
            continue
        if b.dtype.kind not in "fc" or not b.flags.c_contiguous:
            most = max(most, b.size * max(8, b.itemsize))  # for its norm
        total += (b.size + n) * b.itemsize if damp else 0
    return most + total


def _lines(op: Any, dtype: Any, block: Any, need: int, method: str) -> tuple[Lines, Lines, int]:
    """The blocks of rows to project onto or draw, those that are only multiplied, and the bytes of
    all, which fit in memory."""
    small = Lines(op, dtype, block, held=need)
    wide = Lines(op, dtype, None, wide=True, like=small)
    kept = sum(piece.kept for piece in small.pieces)
    need += kept + max(small.memory(method), wide.memory())
    room(op, need, f"lstsq by {method}")
    return small, wide, need


def _norm(op: Any, dtype: Any) -> float:
    """A lower bound of |A|, by six steps of the power method."""
    v = np.random.default_rng(0).standard_normal(op.shape[1]).astype(dtype)
    norm = 0.0
    for _ in range(6):
        size = float(np.linalg.norm(v))
        if not size > 0:
            break
        y = op @ (v / size)
        norm, v = max(norm, float(np.linalg.norm(y))), op.H @ y
    return norm


def _one(op: Any, lines: Any, right: Right, x: Any, watch: Watch, method: str, rng: Any,
         how: Any) -> int:  # fmt: skip
    """Solves for one column; returns how many iterations or passes it took."""
    maxiter, block, extended, callback = how
    watch.b = right.norm
    m, n = op.shape
    if right.norm == 0 and not x.any():
        watch.best, watch.least, watch.error, watch.residual = x, 0.0, 0.0, 0.0
        return 0
    if lines is None:
        watch.most = max(4 * min(m, n), 100) if maxiter is None else int(maxiter)
        return _krylov(op, right.whole(m), x, watch, method, callback)
    watch.most = 100 if maxiter is None else int(maxiter)
    if watch.judge(x, *measure(lines[1], right, x)) <= watch.rtol:
        return 0
    if watch.most > 0 and method == "block_kaczmarz":
        block_kaczmarz(op, lines[0], right, x, watch, rng, block, extended, *lines[1:])
    elif watch.most > 0:
        sgd(lines[0], right, x, watch, rng, lines[1])
    return watch.passes


def _result(x: Any, vector: bool, method: str, runs: list[Any]) -> LeastSquares:
    real = real_of(x.dtype)
    squares = np.array([watch.residual**2 for watch, _ in runs], real)
    found = LeastSquares((x[:, 0] if vector else x, squares, None, None))
    found.method = method

    def each(f: Any) -> Any:
        return f(*runs[0]) if vector else [f(*r) for r in runs]

    found.problem = each(lambda w, _: w.problem)
    found.error = each(lambda w, _: w.least)
    found.residual = each(lambda w, _: w.residual)
    found.iterations = each(lambda _, k: k)
    return found
