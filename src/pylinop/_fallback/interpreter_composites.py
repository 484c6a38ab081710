"""The plain walk through composites of several operands: as written, with NumPy's operators.

Each function is a generator that yields requests (op, x, mode, vec) and returns the product."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from .._base import memory
from .._base.dtypes import C, H, N, T
from . import dense_forms


def _joined(parts: Any, vec: bool) -> Any:
    """Stacks the pieces of a result on top of each other; their batches broadcast."""
    axis = -1 if vec else -2
    batch = np.broadcast_shapes(*(p.shape[:axis] for p in parts))
    parts = [np.broadcast_to(p, (*batch, *p.shape[axis:])) for p in parts]
    return np.concatenate(parts, axis=axis)


def _piece(x: Any, start: Any, count: int, vec: bool) -> Any:
    return x[..., start : start + count] if vec else x[..., start : start + count, :]


def _block_diag(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    at, out = 0, []
    for block in op._init:
        count = block.shape[-2 if mode & T else -1]
        out.append((yield block, _piece(x, at, count, vec), mode, vec))
        at += count
    return _joined(out, vec)


def _block(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    rows = op._given("blocks")
    rows = [list(row) for row in zip(*rows)] if mode & T else rows
    out = []
    for row in rows:
        at, total = 0, None
        for block in row:
            count = block.shape[-2 if mode & T else -1]
            y = yield block, _piece(x, at, count, vec), mode, vec
            total = y if total is None else total + y
            at += count
        out.append(total)
    return _joined(out, vec)


def _low_rank_update(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    base, u, v, c = op._given("base", "U", "V", "C")
    v = u if v is None else v
    y = yield base, x, mode, vec
    if mode & T:
        u, v = v, u
    conj = C if mode in (C, T) else N  # U* and V* stand where T or C is asked
    x = yield v, x, H ^ conj, vec
    if c is not None:
        x = yield c, x, mode, vec
    return y + (yield u, x, conj, vec)


def _kron_sum(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Applies each operand along its own axis of x, and adds the results."""
    x = x[..., None] if vec else x
    k = x.shape[-1]
    total: Any = 0
    sizes = [f.shape[-1] for f in op._init]
    for i, f in enumerate(op._init):
        lead = int(np.prod(sizes[:i], dtype=np.int64))
        after = int(np.prod(sizes[i + 1 :], dtype=np.int64)) * k
        y = np.moveaxis(x.reshape(*x.shape[:-2], lead, sizes[i], after), -3, -2)
        y = yield f, y.reshape(*y.shape[:-3], sizes[i], lead * after), mode, False
        y = np.moveaxis(y.reshape(*y.shape[:-1], lead, after), -2, -3)
        y = y.reshape(*y.shape[:-3], x.shape[-2], k)
        total = y if i == 0 else total + y
    return total[..., 0] if vec else total


def sandwiched(op: Any) -> Any:
    """(A, B) of a kind that is A B A^H: a Congruence, a Root, which has no B, or an Eigen, whose B
    is the vector of a diagonal."""
    if op._head == "root":
        return op._given("L"), None
    return op._given("Q", "d") if op._head == "eigen" else op._given("A", "B")


def _sandwich(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Applies A B A^H; B may be missing (Root) or a vector (Eigen)."""
    a, b = sandwiched(op)
    conj = mode in (C, T)
    x = yield a, x, T if conj else H, vec
    if isinstance(b, np.ndarray):
        b = np.conjugate(b) if mode & C else b
        x = (b if vec else b[..., None]) * x
    elif b is not None:
        x = yield b, x, mode, vec
    return (yield a, x, C if conj else N, vec)


def _dense(op: Any, whole: Any) -> Generator[Any, Any, Any]:
    """The dense form in the dtype of the whole, by requests where the core cannot make it: what is
    computed of integers would wrap, of single precision be rounded."""
    dtype = np.dtype(np.float64 if op.dtype is None else op.dtype)
    if dtype.kind != "c":
        whole = np.empty(0, whole).real.dtype  # functions may take real columns alone
    known = whole.char in "fdFD" or (dtype.kind in "biu" and whole.kind in "fc")
    wider = dtype != whole and known  # not every kind is made in long double
    dtype = whole if wider else dtype
    if not op._opaque:
        return (op.astype(dtype) if wider else op).toarray()
    memory.materialising(op, op.size * dtype.itemsize, True)
    y = yield op, np.eye(op.shape[-1], dtype=dtype), N, False
    return np.broadcast_to(y, (*op.shape[:-2], *y.shape[-2:]))


def _elements(op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
    """Applies HadamardProduct and KhatriRao by their dense forms."""
    a, b = op._operands if op._init is None else op._given("A", "B")
    whole = np.result_type(np.float64 if op.dtype is None else op.dtype, x.dtype)
    a = yield from _dense(a, whole)
    b = yield from _dense(b, whole)
    if op._head != "khatrirao":
        a = a * b
    else:
        a = a[..., :, None, :] * b[..., None, :, :]
        a = a.reshape(*a.shape[:-3], a.shape[-3] * a.shape[-2], a.shape[-1])
    if op.dtype is not None:  # a weak operand's dense form is float64
        a = a.astype(whole, copy=False)
    a = dense_forms.seen(a, mode)
    return (a @ x[..., None])[..., 0] if vec else a @ x


WALKS = {
    "blockdiag": _block_diag,
    "block": _block,
    "kronsum": _kron_sum,
    "lowrankupdate": _low_rank_update,
    "congruence": _sandwich,
    "root": _sandwich,
    "eigen": _sandwich,
    "elementwise": _elements,
    "khatrirao": _elements,
}
