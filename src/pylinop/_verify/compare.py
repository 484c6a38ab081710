"""Verified answers, ``pl.config(verify=True)``: compares results of plans with the expression as
written.

The comparison takes a different road: it runs the written nodes, one by one, by NumPy
(`reference.py`). Matrices are compared on two Gaussian projections from the right (Freivalds 1977;
Gaussian draws: Ji, Mascagni and Li 2017): an error whose norm in one row is t times what is allowed
there is missed with probability at most (0.8 / t)^2. In addition the first column, the last one and
a random one are compared entry by entry, since faults like edges. Vectors and small matrices are
compared in full, inverses at the front by their residuals, determinants with a factorisation or an
estimate with error bars, made only for this (`determinants.py`). What is allowed is the promise of
the docs (docs/verified.md): 10 u times the roundings on the way times |A| |x| as the walk carries
it. Draws come from a generator of their own with a fixed seed: the same result is judged alike each
time."""

from __future__ import annotations

import collections
import functools
import threading
import warnings
from typing import Any

import numpy as np

from .._base import config, errors
from .._base.checks import is_lazy
from .._lazy import text as _text
from . import determinants, programs, reference
from .programs import DENSE, DET, DIAGONAL, ELEMENT, TRACE
from .reference import Walk
from .reference_leaf import NotVerified, sizes, thin, top, units

_DRAWS = 2
_EDGES = 3  # columns that are compared entry by entry beside the projections
_FULL = 1 << 20  # multiplications up to which all columns are compared
_FULL_WHOLE = 1 << 18  # likewise of integers and truth values
_SAMPLED = 32
_COLUMNS = 256

perturb = None  # for tests: a function of (action, result) that may change it in place
strict = False  # for tests: is a failure of the other road itself an error?
tally: collections.Counter[Any] = collections.Counter()  # how many of which kind, for tests


class Verdict:
    """What was found of one result: the largest error as a part of what is allowed."""

    def __init__(
        self, how: Any, ratio: float = 0.0, error: float = 0.0, allowed: float = 0.0
    ) -> None:
        self.how, self.ratio, self.error, self.allowed = how, ratio, error, allowed

    def worse(self, other: Any) -> Any:
        return other if other.ratio > self.ratio or other.ratio != other.ratio else self


# -- how errors are judged --


def _unit(dtype: Any) -> Any:
    """u of a dtype."""
    return np.finfo(dtype).eps / 2


def judged(how: Any, found: Any, wanted: Any, size: Any, steps: Any, dtype: Any) -> Any:
    """|found - wanted| against 10 u steps size, entry by entry."""
    if dtype.kind in "biu":
        found, wanted = np.broadcast_arrays(found, wanted)
        bad = np.asarray(found != wanted)
        if not bad.any():
            return Verdict(how)
        where = np.unravel_index(int(np.argmax(bad)), bad.shape)
        gap = abs(int(found[where]) - int(wanted[where]))
        return Verdict(how, np.inf, gap, 0.0)
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        allowed = 10 * _unit(dtype) * steps * size + info.tiny * steps
        error = np.abs(found - wanted)
        # as written: what is not finite there, or would overflow, is not judged
        known = np.isfinite(wanted) & np.isfinite(allowed) & (size < info.max / 16)
        error = np.where(known, error, 0)
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(error == 0, 0.0, error / np.where(known, allowed, 1))
    if not ratio.size:
        return Verdict(how)
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    allowed = np.broadcast_to(allowed, ratio.shape)
    return Verdict(how, float(ratio[at]), float(error[at]), float(allowed[at]))


# -- products and dense forms: mode(op) x = y --


def _draws(count: int, columns: Any, dtype: Any) -> Any:
    rng = np.random.default_rng(20261122)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, (count, columns), dtype=dtype, endpoint=True)
    r = np.zeros((count, columns + _EDGES))
    r[:, :columns] = rng.standard_normal((count, columns))
    r[[0, -1, int(rng.integers(count))], columns + np.arange(_EDGES)] = 1
    return r


def _columns(x: Any, y: Any, n: int, solving: Any) -> tuple[Any, Any, Any, Any, str]:
    """(x, |x|, y, |y|, how) on the columns or projections that are compared; |y| where a residual
    is taken."""
    k, dtype = y.shape[-1], y.dtype
    exact = dtype.kind in "biu"
    work = dtype if exact else np.dtype(complex if dtype.kind == "c" else float)
    small = _FULL_WHOLE if exact else _FULL
    wide = np.dtype(complex) if x is not None and x.dtype.kind == "c" else work
    if k <= _DRAWS + _EDGES or y.size * n <= small:
        x = np.eye(n, dtype=work) if x is None else x.astype(wide, copy=False)
        y = y.astype(work, copy=False)
        how = "in full"
        return x, np.abs(x), y, np.abs(y), how
    if dtype.kind == "b":
        at = np.sort(np.random.default_rng(20261122).permutation(k)[: 2 * _DRAWS])
        x = np.eye(n, dtype=bool)[:, at] if x is None else x[..., at]
        return x, x, y[..., at], y[..., at], f"by {len(at)} of {k} columns"
    how = f"by {_DRAWS} projections" + ("" if exact else f" and {_EDGES} columns")
    r = _draws(k, _DRAWS, dtype)
    if exact:
        right = y @ r
        return (r if x is None else x.astype(dtype, copy=False) @ r), None, right, None, how
    right, left = _times(y, r, work), r if x is None else _times(x, r, wide)
    good: Any = slice(None)
    if not (np.isfinite(right).all() and np.isfinite(left).all()):
        finite = np.isfinite(y).all(axis=tuple(range(y.ndim - 1)))
        if x is not None:
            finite &= np.isfinite(x).all(axis=tuple(range(x.ndim - 1)))
        good = np.flatnonzero(finite)
        if not len(good):
            raise NotVerified("no column of the result is finite")
        r = r[good]
        r = np.concatenate([r[:, :_DRAWS], r[:, _DRAWS:][:, r[:, _DRAWS:].any(0)]], axis=1)
        how = f"by {_DRAWS} projections and {r.shape[1] - _DRAWS} columns"
        how = f"{how} of {len(good)} finite columns of {k}"
        y, x = y[..., good], x if x is None else x[..., good]
        right = _times(y, r, work)
        left = np.zeros((n, r.shape[1])) if x is None else _times(x, r, wide)
        if x is None:
            left[good] = r
    size = np.abs(left) if x is None else sizes(x, np.abs(r))
    return left, size, right, sizes(y, np.abs(r)) if solving else None, how


def _times(a: Any, r: Any, work: Any) -> Any:
    """a r in the working dtype, by blocks of rows where that takes a copy."""
    if a.ndim == 2 and a.dtype == work and a.size > 1 << 15:
        at = r[:, _DRAWS:].argmax(0)  # single columns, each with its 1, are taken, not multiplied
        return np.concatenate([thin(a, r[:, :_DRAWS]), a[:, at]], axis=1)
    if a.dtype == work or a.ndim > 2 or a.size <= 1 << 17:
        return a.astype(work, copy=False) @ r
    step = max((1 << 15) // max(a.shape[-1], 1), 16)
    return np.concatenate([a[lo : lo + step].astype(work) @ r for lo in range(0, a.shape[0], step)])


def _compared(op: Any, mode: int, x: Any, y: Any, named: bool = False) -> Any:
    """The verdict on y = mode(op) x, x None for the identity; all of shape (..., rows, columns)."""
    dtype = y.dtype
    exact = dtype.kind in "biu"
    n = op.shape[-2 if mode & 1 else -1]
    count = reference.steps(op, dtype)
    left, right, c = reference.peeled(op, mode)
    if exact or not left:
        left, right, c = [], [(op, mode)], []
    xs, ax, ys, ay, how = _columns(x, y, n, bool(left))
    work = dtype if exact else complex if dtype.kind == "c" or xs.dtype.kind == "c" else float
    walk = Walk(work, op, named, dtype)
    if left:
        try:
            found = _by_residual(walk, left, right, c, (xs, ax, ys, ay), count, dtype, how)
        except NotVerified:
            if len(left) == 1 and not right:
                raise
        else:
            if found.ratio <= 1 or (len(left) == 1 and not right):
                return found
        # a product in front of which an inverse stands may have been computed in another order
    wanted = walk.apply(op, xs, mode)
    if exact:
        return judged(how, ys, wanted.astype(dtype, copy=False), None, count, dtype)
    return judged(how, ys, wanted, walk.apply(op, ax, mode, True), count, dtype)


def _by_residual(
    walk: Any, left: Any, right: Any, c: Any, arrays: Any, count: int, dtype: Any, how: Any
) -> Any:
    """A_p ... A_1 y against c B_1 ... B_q x, by |A| |y| + |B| |x| in the largest norm."""
    xs, ax, ys, ay = arrays
    for op, mode in reversed(right):
        xs, ax = walk.apply(op, xs, mode), walk.apply(op, ax, mode, True)
    for number, mode in c:
        xs = walk._number(number, mode) * xs
        ax = np.abs(complex(number)) * ax
    for op, mode in left:
        form = solved(walk, op)  # None: all of it is read
        if form is None:
            ys = walk.apply(op, ys, mode)
        else:
            ys = walk._seen(form, mode) @ ys
        ay = top(walk.apply(op, top(ay), mode, True))
    with np.errstate(all="ignore"):
        size = ay + top(np.broadcast_to(ax, np.broadcast_shapes(ax.shape, ay.shape)))
    found = judged(f"{how}, by the residual", ys, xs, size, count, dtype)
    if found.ratio > 1 and len(left) == 1:
        op, mode = left[0]
        size = size + _growth(walk, op, mode, xs, count, dtype)
        found = judged(f"{how}, by the residual, beside LAPACK's LU", ys, xs, size, count, dtype)
    return found


def _growth(walk: Walk, op: Any, mode: int, x: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """What elements that grow in LU by partial pivoting add: 4 times the residual that LAPACK's
    leaves of the dense form in that precision."""
    if op.shape[-1] > reference.LARGEST_INVERSE or len(op.shape) > 2:
        return 0.0
    a = walk._seen(walk.dense(op), mode)
    try:
        y = np.linalg.solve(a.astype(dtype), x.astype(dtype))
    except np.linalg.LinAlgError:
        return 0.0
    with np.errstate(all="ignore"):
        return 4 * top(np.abs(a @ y - x)) / (10 * _unit(dtype) * count)


def solved(walk: Any, op: Any) -> Any:
    """The form of which a solve reads a triangle alone, or None."""
    if not walk.named or reference.assumed(op) is None:
        return None
    a = op._args[0] if is_lazy(op) else op._given("a")
    return reference.solved_form(op, np.asarray(a).astype(walk.work))


# -- diagonals, traces, elements, determinants --


def _diagonal(op: Any, k: int, y: Any, named: bool = False) -> Any:
    m, n = op.shape[-2:]
    i0, j0, length = max(-k, 0), max(k, 0), y.shape[-1]
    dtype, exact = y.dtype, y.dtype.kind in "biu"
    found = _short(op, y, named, False) if k == 0 and m == n and not exact else None
    if found is not None:
        return found
    at = np.arange(length)
    how = "in full"
    if length > _SAMPLED and (op.size * length > _FULL << 10 or (exact and length > 128)):
        at = np.sort(np.random.default_rng(20261122).permutation(length)[:_SAMPLED])
        how = f"by {_SAMPLED} of {length} entries"
    worst = Verdict(how)
    walk = Walk(dtype if exact else complex if dtype.kind == "c" else float, None, named, y.dtype)
    count = reference.steps(op, dtype)
    for lo in range(0, len(at), _COLUMNS):
        some = at[lo : lo + _COLUMNS]
        unit = units(n, j0 + some, walk.work)
        rows = i0 + some, np.arange(len(some))
        wanted = walk.apply(op, unit)[(..., *rows)]
        size = None if exact else walk.apply(op, np.abs(unit), 0, True)[(..., *rows)]
        worst = worst.worse(judged(how, y[..., some], wanted, size, count, dtype))
    return worst


def _array(walk: Any, op: Any, mode: int, bound: Any) -> Any:
    """The array that op is, seen as `mode` says, or None: nothing is computed."""
    while op._operands and op._by == "view":
        op, mode = op._operands[0], mode ^ op._mode
    return walk._seen(walk.dense(op, bound), mode) if reference.is_plain(op) else None


def _short_diagonal(walk: Any, op: Any, bound: bool) -> Any:
    """The main diagonal of a sum of arrays and of products of two arrays: by definition, in one
    pass over them; None for all else."""
    stack: list[tuple[Any, Any, int]] = [(op, 1, 0)]
    total: Any = 0
    while stack:
        op, c, mode = stack.pop()
        head, parts = reference.written(op), op._operands
        if head == "sum":
            stack += [(o, c, mode) for o in parts]
        elif head == "view":
            stack.append((parts[0], c, mode ^ op._mode))
        elif head == "scaled":
            stack.append((parts[0], c * walk._number(parts[1], mode), mode))
        elif head == "prod":
            left, right = (_array(walk, o, mode, bound) for o in parts)
            if left is None or right is None:
                return None
            if mode & 1:
                left, right = right, left
            total = total + c * np.einsum("...ij,...ji->...i", left, right)
        elif reference.is_plain(op):
            a = walk.dense(op, bound)
            a = np.conjugate(a) if mode & 2 and not bound else a
            total = total + c * np.diagonal(a, axis1=-2, axis2=-1)
        else:
            return None
    return total


def _short(op: Any, y: Any, named: bool, trace: bool) -> Any:
    """The verdict on a trace or a main diagonal from `_short_diagonal`; None."""
    walk = Walk(complex if y.dtype.kind == "c" else float, None, named, y.dtype)
    diagonal = _short_diagonal(walk, op, False)
    if diagonal is None:
        return None
    walk.bound = True  # numbers and arrays by their absolute values from here on
    size = _short_diagonal(walk, op, True)
    count = reference.steps(op, y.dtype)
    if trace:
        diagonal, size, count = diagonal.sum(-1), size.sum(-1), count + op.shape[-1]
    return judged("in full", y, diagonal, size, count, y.dtype)


def _trace(op: Any, y: Any, named: bool = False) -> Any:
    n, dtype = min(op.shape[-2:]), y.dtype
    exact = dtype.kind in "biu"
    found = None if exact else _short(op, y, named, True)
    if found is not None:
        return found
    if op.size * n > _FULL << (6 if exact else 11):
        raise NotVerified(f"a trace of {op.shape}, as written of too many products")
    work = op.dtype if exact else complex if dtype.kind == "c" else float
    walk = Walk(work, None, named, dtype)
    total, size = np.zeros(op.shape[:-2], dtype if exact else walk.work), 0
    for lo in range(0, n, _COLUMNS):
        some = np.arange(lo, min(lo + _COLUMNS, n))
        unit = units(op.shape[-1], some, walk.work)
        rows = some, some - lo
        total = total + walk.apply(op, unit)[(..., *rows)].sum(-1, dtype=total.dtype)
        if not exact:
            size = size + walk.apply(op, np.abs(unit), 0, True)[(..., *rows)].sum(-1)
    return judged("in full", y, total, size, reference.steps(op, dtype) + n, dtype)


def _element(op: Any, i: Any, j: Any, y: Any, named: bool = False) -> Any:
    dtype, exact = y.dtype, y.dtype.kind in "biu"
    walk = Walk(dtype if exact else complex if dtype.kind == "c" else float, None, named, y.dtype)
    unit = units(op.shape[-1], [j], walk.work)
    wanted = walk.apply(op, unit)[..., i, 0]
    size = None if exact else walk.apply(op, np.abs(unit), 0, True)[..., i, 0]
    return judged("in full", y, wanted, size, reference.steps(op, dtype), dtype)


def _determinant(op: Any, y: Any, named: bool = False) -> Any:
    """Sign and logarithm of mantissa times 2^exponent."""
    with np.errstate(all="ignore"):
        how, error, allowed = determinants.compared(op, y, named)
        error, allowed = np.broadcast_arrays(error, allowed)
        ratio = np.where(error == 0, 0.0, error / allowed)
    if not ratio.size:
        return Verdict(how)
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return Verdict(how, float(ratio[at]), float(error[at]), float(allowed[at]))


# -- hooks of the core --


def applied(op: Any, x: Any, mode: int, right: Any, vec: bool, made: Any) -> None:
    """y = mode(op) x, or x mode(op) from the right, has been computed."""
    x, y = (x[..., None], made[..., None]) if vec else (x, made)
    if right and not vec:
        x, y = np.swapaxes(x, -1, -2), np.swapaxes(y, -1, -2)
    mode = mode ^ 1 if right else mode
    explained = (mode, x[..., 0] if vec else x, 0, 0)
    _asked(op, "apply", made, explained, lambda named: _compared(op, mode, x, y, named))


def valued(op: Any, act: Any, i: Any, j: Any, made: Any) -> None:
    """A dense form, diagonal, trace, element or determinant has been computed, or the results of a
    program."""
    if op._head == "results":
        for part, its, k, l, found in programs.apart(op, made):
            _valued(part, its, k, l, found, (DENSE, None, 0, 0, op))
    else:
        _valued(op, act, i, j, made, (act, None, i, j))


def _valued(op: Any, act: Any, i: Any, j: Any, made: Any, explained: Any) -> None:
    name = {DENSE: "dense", DIAGONAL: "diagonal", TRACE: "trace", ELEMENT: "element", DET: "det"}
    if act in name:
        way = _WAYS[act]
        _asked(op, name[act], made, explained, lambda named: way(op, i, j, made, named))


class _Held(threading.local):
    """Results of the plans that values of LazyArrays take, one list for each that is computed."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []


_held = _Held()


def evaluated(a: Any) -> None:
    """A LazyArray's value has been computed, by plans (not by NumPy on values). None: it will be;
    False: it could not be."""
    if a is None:
        _held.lists.append([])
        return
    held = _held.lists.pop()
    if a is not False:
        compared([a], held)


def released() -> Any:
    """What the plans made since `evaluated(None)`."""
    return _held.lists.pop()


def compared(arrays: Any, held: Any) -> None:
    """LazyArrays with their formulas; where one of them is not verified, the plans' results by
    themselves."""
    whole = True
    for a in arrays:
        if a._head in ("matmul", "add", "scale", "over", "view", "inverse", "index"):
            value = a._value
            way = functools.partial(_formula, a, value)
            whole &= _judge(a, "evaluate", None, way)
        else:
            whole = False
    for asked in () if whole else held:
        _judge(*asked)


def _formula(a: Any, y: Any, named: bool = False) -> Any:
    """The formula as written against its value."""
    if a.ndim >= 2:
        if a._head == "matmul" and min(x.ndim for x in a._args) < 2:
            raise NotVerified("a stack of products with a vector")
        return _compared(a, 0, None, y, named)
    dtype, exact = y.dtype, y.dtype.kind in "biu"
    if dtype.char not in "?bBhHiIlLqQfdFD":
        raise NotVerified(f"an array of dtype {dtype}")
    if dtype.kind in "fc" and config.get("not_definite") == "nan" and np.isnan(y).all():
        raise NotVerified("not definite, of which NaN is said")
    found = y.reshape(-1, 1)
    count = reference.steps(a, dtype)
    solve = _vector_solve(a)
    walk = Walk(dtype if exact else complex if dtype.kind == "c" else float, a, named, dtype)
    if solve is not None:
        A, b, mode = solve
        form = solved(walk, A)
        left = walk.apply(A, found, mode) if form is None else walk._seen(form, mode) @ found
        right, size = walk.apply(b, None), walk.apply(b, None, 0, True)
        size = top(walk.apply(A, top(np.abs(found)), mode, True)) + top(size)
        return judged("in full, by the residual", left, right, size, count, dtype)
    wanted = walk.apply(a, None)
    if exact:
        return judged("in full", found, wanted.astype(dtype, copy=False), None, count, dtype)
    return judged("in full", found, wanted, walk.apply(a, None, 0, True), count, dtype)


def _vector_solve(a: Any) -> tuple[Any, Any, int] | None:
    """(A, b, mode) of a vector inv(A) @ b or b @ inv(A); None."""
    if a._head != "matmul" or a.dtype.kind not in "fc":
        return None
    x, y = a._args
    A, b, mode = (x, y, 0) if x.ndim == 2 else (y, x, 1)
    while A.ndim == 2 and A._value is None and A._head == "view":
        A, mode = A._args[0], mode ^ A._more
    if A.ndim != 2 or A._value is not None or A._head != "inverse" or b.ndim != 1:
        return None
    return A._args[0], b, mode


def _dense(op: Any, y: Any, named: bool = False) -> Any:
    """Of several in one column each of them."""
    parts = []
    while op._by == "joint":
        op, last = op._operands
        parts.append(last)
    parts.append(op)
    if len(parts) == 1:
        return _compared(op, 0, None, y, named)
    worst, start = Verdict("in full"), 0
    for part in parts[::-1]:
        stop = start + part.shape[-2] * part.shape[-1]
        worst = worst.worse(_compared(part, 0, None, y[start:stop].reshape(part.shape), named))
        start = stop
    return worst


_WAYS: dict[int, Any] = {
    DENSE: lambda op, i, j, y, named: _dense(op, y, named),
    DIAGONAL: lambda op, i, j, y, named: _diagonal(op, i, y, named),
    TRACE: lambda op, i, j, y, named: _trace(op, y, named),
    ELEMENT: lambda op, i, j, y, named: _element(op, i, j, y, named),
    DET: lambda op, i, j, y, named: _determinant(op, y, named),
}


def _asked(op: Any, action: str, made: Any, explained: Any, way: Any) -> None:
    """Runs a verification, or keeps it until a LazyArray's value has been compared as a whole."""
    if perturb is not None:
        perturb(action, made)
    if _held.lists:
        _held.lists[-1].append((op, action, explained, way))
    else:
        _judge(op, action, explained, way)


def _judge(op: Any, action: str, explained: Any, way: Any) -> bool:
    """Runs a verification, writes down what became of it, raises for a miss. Is it verified?"""
    try:
        with np.errstate(all="ignore"):
            verdict = _either(op, way)
    except NotVerified as why:
        note(action, f"not verified: {why}", None)
        return False
    except MemoryError:
        note(action, "not verified: no memory for it", None)
        return False
    except Exception as error:
        if strict:
            raise
        said = f"not verified: the other road failed, {type(error).__name__}: {error}"
        warnings.warn(f"{action} {said}", RuntimeWarning, stacklevel=errors.outside())
        note(action, said, None)
        return False
    if not verdict.ratio <= 1:
        raise _miss(op, action, verdict, explained)
    note(action, f"verified {verdict.how}", verdict.ratio)
    return True


def _either(op: Any, way: Any) -> Any:
    """The verdict, with what is named of assumed matrices, where that is not all of their
    arrays."""
    return way(reference.has_named(op))


def note(action: str, text: str, ratio: float | None) -> None:
    """Into the record of a `pl.explaining` block, with the plan that was run last."""
    tally[action, text if ratio is None else "verified"] += 1
    record = config.record()
    if record:
        said = text if ratio is None else f"{text}, error at most {ratio:.2g} of what is allowed"
        last = record[-1]
        before = last.get("verified")
        said = f"{said} ({action})" if before else said
        if before is None or (ratio is not None and (before["ratio"] or 0) < ratio):
            last["verified"] = {"text": said, "ratio": ratio}
        last["text"] = last["text"].rstrip("\n") + f"\nverified  {said}\n"


def _miss(op: Any, action: str, verdict: Any, explained: Any) -> Any:
    try:
        plan = _plan(op, explained)
    except Exception as error:  # the miss is what is to be said
        plan = f"no plan to show: {error}"
    made = f"\n  in: {_described(op)}{errors.built(op)}"
    text = (
        f"the result of {action!r} is not that of the expression as written: an error of "
        f"{verdict.error:.3g} where {verdict.allowed:.3g} is allowed (compared {verdict.how})"
        f"{made}\n  the plan:\n    " + plan.rstrip("\n").replace("\n", "\n    ") + "\n"
        "  This is a fault of pylinop, or a property that was assumed (assume_a=...) does not "
        "hold.\n  Please report it with this text, pl.show_config() and the operands' shapes and "
        "dtypes;\n  pl.config(disable_rules=[...]) with the rules that the plan names may get you "
        "on."
    )
    missed = errors.VerificationError(text)
    missed.error, missed.allowed, missed.plan = verdict.error, verdict.allowed, plan
    return missed


def _described(op: Any) -> str:
    if not is_lazy(op):
        return errors.describe(op)
    return f"{_text.formula(op)}  {op.shape} {op.dtype}"


def _plan(op: Any, explained: Any) -> Any:
    """The plan of what was asked, as text."""
    if explained is None:  # of a LazyArray, whose value goes after this
        op._value = None
        return str(op.explain())
    act, x, i, j, *program = explained
    op = program[0] if program else op
    if x is not None and x.ndim > 1 and act < DENSE:
        x = np.ascontiguousarray(x)
    return op._explain(act, x, i, j)["text"]
