"""The plain walk runs an expression node by node, without a plan.

Expressions with callables, user subclasses or foreign dtypes run as written: right to left, with
NumPy's operators and no rules. The walk is a loop over generators, so there is no depth limit."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors, memory, scipy_bridge
from .._base.dtypes import C, H, N, T
from .._base.index_steps import as_slice, taken
from .._base.trampoline import run
from . import dense_forms, interpreter_composites

# -- the walk --


def run_plain(request: tuple[Any, ...]) -> Any:
    """Answers a request (op, x, mode, vec)."""
    __tracebackhide__ = True
    return run(_steps, *request)


def _swapped(mode: int) -> int:
    return mode & T


def _steps(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """One node of the walk, applied to an array x: (..., n) when vec, else (..., n, k)."""
    __tracebackhide__ = True
    if not op._opaque:
        y = op._apply(x, mode, False, vec, None)
        if y is not NotImplemented:
            return y
    below = op._operands
    head = op._by if below else op._head  # a closed result runs as it was written
    if head == "sum":
        left = yield below[0], x, mode, vec
        right = yield below[1], x, mode, vec
        return left + right
    if head == "prod":
        first, second = below if _swapped(mode) else below[::-1]
        y = yield first, x, mode, vec
        return (yield second, y, mode, vec)
    if head == "scaled":
        y = yield below[0], x, mode, vec
        return _multiple(below[1].conjugate() if mode & C else below[1], y)
    if head == "part":
        mode &= T  # a part is real: its conjugate is itself
        y = yield below[0], x, mode, vec
        if np.iscomplexobj(x):
            z = yield below[0], x, mode ^ C, vec
            return (y - z) * -0.5j if op._mode else (y + z) * 0.5
        return y.imag if op._mode else y.real
    if head == "power":
        if below[1] == 0:
            return _identical(below[0], x, vec)
        for _ in range(below[1]):
            x = yield below[0], x, mode, vec
        return x
    if head == "view":
        return (yield below[0], x, mode ^ op._mode, vec)
    if head == "inverse":
        return (yield from _inverse(below[0], x, mode, vec))
    if head == "sliced":
        return (yield from _sliced(op, x, mode, vec))
    if head == "kron":
        return (yield from _kron(op, x, mode, vec))
    if head == "lowrank":
        return (yield from _lowrank(op, x, mode, vec))
    if head in interpreter_composites.WALKS:
        return (yield from interpreter_composites.WALKS[head](op, x, mode, vec))
    if type(op).__module__ == "pylinop" and op._init is not None:
        a = dense_forms.seen(dense_forms.dense(op), mode)
        return (a @ x[..., None])[..., 0] if vec else a @ x
    return _call(op, x, mode, vec)


def _inverse(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Solves by the user's _solve, also for factors and multiples; else by LU of the dense form."""
    if hasattr(type(op), "_solve") and not mode & T:
        y = np.asarray(op._solve(dense_forms.conjugated(x) if mode & C else x))
        return dense_forms.conjugated(y) if mode & C else y
    below, by = op._operands, op._by if op._opaque else None
    if by == "prod" and below[0].shape[-1] == below[0].shape[-2]:
        for factor in below[::-1] if mode & T else below:
            x = yield _core._build("inverse", factor), x, mode, vec
        return x
    if by == "scaled" and below[1] != 0:
        y = yield _core._build("inverse", below[0]), x, mode, vec
        return y / (below[1].conjugate() if mode & C else below[1])  # Python numbers stay weak
    if by == "view":
        return (yield _core._build("inverse", below[0]), x, mode ^ op._mode, vec)
    a = dense_forms.seen(_wide(op, x.dtype), mode)
    return np.linalg.solve(a, x[..., None])[..., 0] if vec else np.linalg.solve(a, x)


def _wide(op: Any, dtype: Any) -> Any:
    """The dense form for a solve in that dtype, rounded to it and not to the operator's own."""
    if op.dtype is None:
        return toarray(op)
    whole = np.result_type(op.dtype, dtype)
    if op.dtype.kind != "c":
        whole = np.empty(0, whole).real.dtype  # functions may take real columns alone
    if whole == op.dtype or whole.char not in "fdFD":
        return toarray(op)
    return toarray(op, dtype=whole) if op._opaque else op.astype(whole).toarray()


def _identical(op: Any, x: Any, vec: bool) -> Any:
    """op^0 x: x in the dtype and with the batch dimensions that a product would give it."""
    dtype = x.dtype if op.dtype is None else np.result_type(op.dtype, x.dtype)
    core = 1 if vec else 2
    batch = _broadcast(op.shape[:-2], x.shape[:-core])
    return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])).astype(dtype)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """np.broadcast_shapes with the error message of np.matmul."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        words = " and ".join(map(str, shapes))
        raise ValueError(f"batch dimensions could not be broadcast together: {words}") from None


def _multiple(c: Any, y: Any) -> Any:
    """c y; a Python integer wraps in y's dtype, as the core's does."""
    if isinstance(c, int) and not isinstance(c, bool) and y.dtype.kind in "iu":
        c = np.array(c).astype(y.dtype)
    return c * y


def _sliced(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Scatters x to where it was taken from, applies the whole operator, takes the slice."""
    below, steps = op._operands
    if any(s[0] > 1 for s in steps):
        a = dense_forms.seen(taken(toarray(below), steps), mode)
        return (a @ x[..., None])[..., 0] if vec else a @ x
    take = {s[0]: s[1] if len(s) == 2 else as_slice(s) for s in steps}
    into, out = (0, 1) if mode & T else (1, 0)
    if into in take:
        at: Any = (..., take[into]) if vec else (..., take[into], slice(None))
        size = below.shape[-2 + into]
        full = np.zeros(
            (*x.shape[:-1], size) if vec else (*x.shape[:-2], size, x.shape[-1]), x.dtype
        )
        np.add.at(full, at, x)
        x = full
    y = yield below, x, mode, vec
    if out in take:
        y = y[(..., take[out]) if vec else (..., take[out], slice(None))]
    return y


def _kron(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Applies each factor along its own axis of x."""
    x = x[..., None] if vec else x
    batch, k = x.shape[:-2], x.shape[-1]
    factors = op._init if op._init is not None else op._operands
    sizes = [f.shape[-2] if mode & T else f.shape[-1] for f in factors]
    for i in reversed(range(len(factors))):
        lead = int(np.prod(sizes[:i], dtype=np.int64))
        after = int(np.prod(sizes[i + 1 :], dtype=np.int64)) * k
        y = x.reshape(*batch, lead, sizes[i], after)
        # the axes before the factor's own become columns: callables see what SciPy's would
        y = np.moveaxis(y, -3, -2).reshape(*batch, sizes[i], lead * after)
        y = yield factors[i], y, mode, False
        sizes[i] = y.shape[-2]
        y = np.moveaxis(y.reshape(*y.shape[:-1], lead, after), -2, -3)
        batch = _broadcast(batch, y.shape[:-3])
        x = y.reshape(*batch, int(np.prod(sizes, dtype=np.int64)), k)
    return x[..., 0] if vec else x


def _lowrank(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    u, v, c = op._given("U", "V", "C")
    v = u if v is None else v
    if mode & T:
        u, v = v, u
    conj = C if mode in (C, T) else N  # U* and V* stand where T or C is asked
    x = yield v, x, H ^ conj, vec
    if c is not None:
        x = yield c, x, mode, vec
    return (yield u, x, conj, vec)


def shaped(op: Any, x: Any, y: Any, m: int | None = None, vec: bool = True) -> Any:
    """The result of a callable as the expected array: reshaped if needed; sparse stays sparse."""
    m = op.shape[-2] if m is None else m
    if y is NotImplemented:
        raise NotImplementedError(f"{type(op).__name__} gave NotImplemented")
    if not scipy_bridge.issparse(y):
        y = np.asarray(y)
        batch = _broadcast(op.shape[:-2], x.shape[: -1 if vec else -2])
        want = (*batch, m) if vec else (*batch, m, x.shape[-1])
        if y.shape != want:
            if y.size != int(np.prod(want)):
                raise errors.make_error(
                    "ValueError",
                    f"a callable returned an array of shape {y.shape} where {want} was due",
                    op,
                    "apply",
                    -1,
                )
            y = y.reshape(want)
    return y


def _call(op: Any, x: Any, mode: int, vec: bool) -> Any:
    """Calls the hooks of a user's operator; transposes go through conjugates."""
    __tracebackhide__ = True
    flip = mode in (T, C)
    x = dense_forms.conjugated(x) if flip else x
    m = op.shape[-1] if mode & T else op.shape[-2]
    if mode & T:
        y = op._rmatvec(x) if vec else op._rmatmat(x)
    else:
        y = op._matvec(x) if vec else op._matmat(x)
    y = shaped(op, x, y, m, vec)
    return dense_forms.conjugated(y) if flip else y


def apply(op: Any, x: Any, mode: int = N, vec: bool = False, out: Any = None) -> Any:
    """mode(op) x for an array that fits: by C where possible, otherwise by the walk."""
    __tracebackhide__ = True
    y = NotImplemented
    if not op._opaque:
        y = op._apply(x, mode, False, vec, out)
    if y is NotImplemented:
        y = run_plain((op, x, mode, vec))
        if out is not None:
            np.copyto(out, y, casting="same_kind")
            return out
    return y


# -- dense forms and diagonals of expressions that C cannot run --


def _is_diagonal(op: Any) -> bool:
    """A `Diag` that was built as one; the result of an expression holds no numbers."""
    return type(op) is _core.Diag and op._init is not None and op._given("k") == 0


def _formed(op: Any, dtype: Any, mode: int) -> Generator[Any, Any, Any]:
    """The dense form of one node in that dtype: of sums, multiples and views that of what is within
    them, where a product with the identity would make 0 NaN or 0 inf of other entries; of all else
    that product."""
    below = op._operands
    head = op._by if below else op._head
    if head == "sum":
        left = yield below[0], dtype, mode
        right = yield below[1], dtype, mode
        return left + right
    if head == "scaled":
        y = yield below[0], dtype, mode
        return _multiple(below[1].conjugate() if mode & C else below[1], y)
    if head == "view":
        return (yield below[0], dtype, mode ^ op._mode)
    if head == "prod" and _is_diagonal(below[1]):
        d = below[1]._given("d")  # multiples by numbers of foreign dtypes are such products
        d = np.asarray(d.conj() if mode & C else d)
        y = yield below[0], dtype, mode
        return y * (d[..., None] if mode & T else d[..., None, :])
    if not below and type(op).__module__ == "pylinop" and op._init is not None:
        a = dense_forms.placed(op)
        if a is not None:
            a = dense_forms.seen(a, mode)
            return a.astype(np.result_type(a, dtype), copy=False)
    return run_plain((op, np.eye(op.shape[-2 if mode & T else -1], dtype=dtype), mode, False))


def toarray(op: Any, out: Any = None, dtype: Any = None) -> Any:
    """dtype: what an opaque one is asked for its columns in; its own."""
    if not op._opaque:
        return op.toarray() if out is None else op.toarray(out=out)
    if dtype is None:
        dtype = op.dtype if op.dtype is not None else np.float64
    memory.materialising(op, op.size * np.dtype(dtype).itemsize, True)
    y = run(_formed, op, np.dtype(dtype), N)
    y = np.broadcast_to(y, (*op.shape[:-2], *y.shape[-2:])) if y.ndim < op.ndim else y
    y = np.array(y)
    if out is not None:
        np.copyto(out, y, casting="same_kind")
        return out
    return y


def diagonal(op: Any, k: int) -> Any:
    """The user's _diagonal if there is one; else by blocks of columns, never by the dense form."""
    if hasattr(type(op), "_diagonal"):
        return np.asarray(op._diagonal(k))
    return _by_columns(op, k, 1 << 25)


def _by_columns(op: Any, k: int, room: Any) -> Any:
    """Products with unit vectors, at a time as many as take about `room` bytes."""
    m, n = op.shape[-2:]
    i0, j0 = max(-k, 0), max(k, 0)
    length = max(min(m - i0, n - j0), 0)
    dtype = np.dtype(op.dtype if op.dtype is not None else np.float64)
    block = max(room // (dtype.itemsize * max(m, n, 1)), 1)

    def piece(lo: int, hi: int) -> Any:
        at = np.arange(hi - lo)
        unit = np.zeros((n, hi - lo), dtype=dtype)
        unit[j0 + lo + at, at] = 1
        return apply(op, unit, N, False)[..., i0 + lo + at, at]

    pieces = in_pieces(length, block, piece)
    if not pieces:
        return np.zeros((*op.shape[:-2], 0), dtype=dtype)
    return np.concatenate(pieces, axis=-1)


def in_pieces(length: int, most: int, piece: Callable[[int, int], Any]) -> list[Any]:
    """Joins piece(lo, hi) over 0 to length, `most` at a time, or fewer under a memory limit."""
    lo = 0
    found: list[Any] = []
    while lo < length:
        hi = min(lo + most, length)
        try:
            found.append(piece(lo, hi))
        except MemoryError:
            if most == 1:
                raise
            most = max(min(most, length - lo) // 4, 1)
        else:
            lo = hi
    return found


def trace(op: Any) -> Any:
    return diagonal(op, 0).sum(axis=-1)


def in_blocks(op: Any, k: int, error: Any) -> Any:
    """A diagonal (k None: the trace) from products in blocks, where the dense factors do not fit,
    as `error` says. None if the error is a different one, or the blocks need a dense form too."""
    if not isinstance(error, MemoryError):
        return None
    limit = config.get("memory_limit")
    try:
        d = _by_columns(op, k or 0, 1 << 25 if limit is None else limit // 4)
    except MemoryError:
        return None
    return d if k is not None else d.sum(axis=-1)
