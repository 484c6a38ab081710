"""Operators as scipy.sparse arrays, without a dense form where they are sparse by structure.

Each head has one row. A row yields (operand, dtype) and gets the operand as a CSR array of that
dtype, so that no expression is too deep; a head without a row is made dense. Everything is computed
in the dtype of the whole, as dense forms are."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.index_steps import as_slice
from .._base.kind_flags import AT_HAND, heads
from .._base.lazy_import import Later
from .._base.sparse_arrays import matrix_of
from .._base.trampoline import run
from .._fallback import interpreter
from .._fallback.dense_forms import index_of
from .._fallback.interpreter_composites import sandwiched
from .._operators.convert import as_operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.type_variables import Registered

_products = Later("_sparse.spgemm")

_ROWS: dict[str, Any] = {}


def _row(*heads: str) -> Callable[[Registered], Registered]:
    """Registers what it decorates: a function (op, dtype), or a generator."""

    def add(run: Registered) -> Registered:
        _ROWS.update(dict.fromkeys(heads, run))
        return run

    return add


def tosparse(op: Any, format: str = "csr") -> Any:
    """The operator as a scipy.sparse array of a format."""
    if op.ndim != 2:
        raise ValueError(f"scipy.sparse has no batches here; the operator has shape {op.shape}")
    if op._head == "sparse" and op._init is not None:
        S = matrix_of(op)
        S = S.copy() if format in ("lil", "dok", "dia") else S  # SciPy sorts it in place for these
        return (_sp().csr_array(S) if format == "csr" else S).asformat(format)
    return run(_steps, op, op.dtype).asformat(format)


def _sp() -> Any:
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse


def _steps(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    """One node, as a CSR array."""
    written = op._operands and op._by in _WRITTEN
    if written and not (op._head in AT_HAND and op.dtype == dtype):
        row = _ROWS[op._by]  # a closed result goes as it was written
    elif op._init is None and op._head not in AT_HAND:
        row = _dense
    else:
        row = _ROWS.get(op._head, _dense)
    found = row(op, dtype)
    if hasattr(found, "send"):
        found = yield from found
    return found if dtype is None else _sp().csr_array(found).astype(dtype, copy=False)


# -- composites ------------------------------------------------------------------------------------

_WRITTEN = ("sum", "prod", "scaled", "view", "part", "power", "sliced")


@_row("sum")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], dtype
    b = yield op._operands[1], dtype
    return a + b


@_row("prod")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], dtype
    b = yield op._operands[1], dtype
    return _product(a, b)


def _product(a: Any, b: Any) -> Any:
    """Multiplies by our kernel where it knows the dtype (not float16, longdouble)."""
    return _products.product(a, b) if a.dtype.name in _products.DTYPES else a @ b


@_row("scaled")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], dtype
    return a * np.array(op._operands[1]).astype(dtype)[()]


@_row("view")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], dtype
    a = a.T if op._mode & 1 else a
    return a.conj() if op._mode & 2 else a


@_row("part")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], np.result_type(dtype, op._operands[0].dtype)
    return a.imag if op._mode else a.real


@_row("power")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a = yield op._operands[0], dtype
    b = _sp().eye_array(op.shape[0], dtype=dtype, format="csr")
    p = op._operands[1]
    while p:
        b = _product(a, b) if p & 1 else b
        p >>= 1
        a = _product(a, a) if p else a
    return b


@_row("sliced")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    below, steps = op._operands
    if below.ndim != 2:
        return _dense(op, dtype)
    a = yield below, dtype
    for s in steps:
        what = s[1] if len(s) == 2 or s[3] < 0 else as_slice(s)
        a = a[what] if s[0] == 0 else a[:, what]
    return a


@_row("kron")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    first, *rest = op._given("ops")
    a = yield first, dtype
    a = a if rest else a.copy()  # not the memory of a Sparse
    for f in rest:
        b = yield f, dtype
        _kron_room(op, int(a.nnz) * int(b.nnz), dtype)
        a = _sp().kron(a, b, format="csr")
    return a


def _kron_room(op: Any, count: int, dtype: Any) -> None:
    """Checks the memory of each entry's value and indices twice: in SciPy's coordinates, and as
    CSR."""
    memory.room(op, 2 * count * (np.dtype(dtype).itemsize + 8), "the sparse form")


@_row("kronsum")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    first, *rest = op._given("ops")
    total = yield first, dtype
    total = total if rest else total.copy()
    for f in rest:
        b = yield f, dtype
        left = _sp().eye_array(total.shape[0], dtype=dtype)
        right = _sp().eye_array(b.shape[0], dtype=dtype)
        both = int(total.nnz) * b.shape[0] + total.shape[0] * int(b.nnz)
        _kron_room(op, both, dtype)
        total = _sp().kron(total, right, format="csr") + _sp().kron(left, b, format="csr")
    return total


@_row("blockdiag")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    blocks = []
    for f in op._given("ops"):
        blocks.append((yield f, dtype))
    ends = np.cumsum([(0, 0), *(b.shape for b in blocks)], axis=0)
    return _at(blocks, ends.tolist(), op.shape)


@_row("block")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    blocks, rows = [], op._given("blocks")
    for f in (f for row in rows for f in row):
        blocks.append((yield f, dtype))
    return _at(blocks, _corners(rows), op.shape)


FEW, _JOINED = heads("few_entries"), heads("joins")


def _is_sparse(op: Any) -> bool:
    """Is op made only of kinds that hold few entries?"""
    stack = [op]
    while stack:
        o = stack.pop()
        if o._operands and o._by in _WRITTEN:
            stack += o._operands[: 2 if o._by in ("sum", "prod") else 1]
        elif (o._head in _JOINED or o._head == "block") and o._init is not None:
            stack += [as_operator(f) for f in o._init]
        elif o._head not in FEW:
            return False
    return True


@_row("elementwise")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    """The product of the sparse factors, times the other factors' entries at its places."""
    factors, stack = [], [op]
    while stack:  # products of products
        f = as_operator(stack.pop())
        if f._head == "elementwise" and f._init is not None:
            stack += f._given("B", "A")
        else:
            factors.append(f)
    few = [f for f in factors if _is_sparse(f)]
    if not few or dtype is None:
        return _dense(op, dtype)
    a = (yield few[0], dtype).copy()
    for f in few[1:]:
        b = yield f, dtype
        a = _sp().csr_array(a.multiply(b))
    a.sum_duplicates()
    for f in factors:
        if not any(f is other for other in few):
            a.data *= _entries(f, a, dtype)
    return a


def _entries(op: Any, a: Any, dtype: Any) -> Any:
    """The entries of an operator at the places of a CSR array, from blocks of rows."""
    limit = config.get("memory_limit")
    room = 1 << 25 if limit is None else limit // 4
    m, n = op.shape
    block = min(max(room // (np.dtype(dtype).itemsize * max(m, n, 1)), 1), 256)
    found = np.empty(a.nnz, dtype)

    def piece(lo: int, hi: int) -> None:
        ptr = a.indptr[lo : hi + 1]
        if ptr[0] == ptr[-1]:
            return
        rows = op[lo:hi].toarray()
        at = np.repeat(np.arange(hi - lo), np.diff(ptr))
        found[ptr[0] : ptr[-1]] = rows[at, a.indices[ptr[0] : ptr[-1]]]

    interpreter.in_pieces(m, block, piece)
    return found


def _corners(rows: Any) -> list[tuple[int, int]]:
    """Row and column of each block's first element."""
    i, found = 0, []
    for row in rows:
        j = 0
        for f in row:
            found.append((i, j))
            j += f.shape[1]
        i += row[0].shape[0]
    return found


def _at(blocks: Any, corners: Any, shape: tuple[int, ...]) -> Any:
    """Puts blocks at their corners; they may have any size, even 0."""
    parts = [_sp().coo_array(b) for b in blocks]
    row, col, data = [], [], []
    for p, (i, j) in zip(parts, corners):
        row.append(p.coords[0].astype(np.int64) + i)
        col.append(p.coords[1].astype(np.int64) + j)
        data.append(p.data)
    return _sp().coo_array(
        (np.concatenate(data), (np.concatenate(row), np.concatenate(col))), shape=shape
    )


@_row("congruence", "root", "eigen")
def _(op: Any, dtype: Any) -> Generator[Any, Any, Any]:
    a, b = sandwiched(op)
    a = yield a, dtype
    right = a.conj().T
    if isinstance(b, np.ndarray):
        d = b.astype(dtype)[None, :]
        right = _sp().dia_array((d, [0]), shape=(b.shape[0], b.shape[0])) @ right
    elif b is not None:
        right = _product((yield b, dtype), _sp().csr_array(right))
    return _product(a, _sp().csr_array(right))


# -- kinds -----------------------------------------------------------------------------------------


def _dense(op: Any, dtype: Any) -> Any:
    if dtype is not None and op.dtype is not None and op.dtype != dtype:
        op = op @ _core.Identity(op.shape[-1], dtype)
    return _sp().coo_array(op.toarray())


def _diagonals(op: Any, dtype: Any, offsets: Any) -> Any:
    """A matrix that is zero off these diagonals."""
    m, n = op.shape
    row, col, data = [], [], []
    for k in sorted({k for k in offsets if -m < k < n}):
        d = op.diagonal(k)
        at = np.flatnonzero(d)
        row.append(at + max(-k, 0))
        col.append(at + max(k, 0))
        data.append(d[at].astype(dtype))
    if not row:
        return _sp().coo_array(op.shape, dtype=dtype)
    return _sp().coo_array(
        (np.concatenate(data), (np.concatenate(row), np.concatenate(col))), shape=op.shape
    )


@_row("sparse")
def _(op: Any, dtype: Any) -> Any:
    return matrix_of(op)


@_row("sparsetriangular")
def _(op: Any, dtype: Any) -> Any:
    below, lower, unit = op._given("A", "lower", "unit_diagonal")
    part = _sp().tril if lower else _sp().triu
    found = part(matrix_of(below), (-1 if lower else 1) if unit else 0, format="csr")
    found.sum_duplicates()
    return found + _sp().eye_array(op.shape[0], dtype=dtype) if unit else found


@_row("diag")
def _(op: Any, dtype: Any) -> Any:
    d = op.diagonal()
    return _sp().dia_array((d[None, :], [0]), shape=op.shape)


@_row("identity")
def _(op: Any, dtype: Any) -> Any:
    return _sp().eye_array(op.shape[0], dtype=dtype)


@_row("zeros")
def _(op: Any, dtype: Any) -> Any:
    return _sp().coo_array(op.shape, dtype=dtype)


@_row("offdiag")
def _(op: Any, dtype: Any) -> Any:
    return _diagonals(op, dtype, [op._attrs[0]])


@_row("tridiagonal")
def _(op: Any, dtype: Any) -> Any:
    return _diagonals(op, dtype, (-1, 0, 1))


@_row("banded")
def _(op: Any, dtype: Any) -> Any:
    low, up = op._attrs[:2]
    n = op.shape[0]
    return _diagonals(op, dtype, range(-min(low, n), min(up, n) + 1))


@_row("blocktridiagonal")
def _(op: Any, dtype: Any) -> Any:
    w = min(2 * op._attrs[0], op.shape[0]) - 1
    return _diagonals(op, dtype, range(-w, w + 1))


@_row("selection", "permutation")
def _(op: Any, dtype: Any) -> Any:
    m = op.shape[0]
    at = (np.arange(m), index_of(op))
    return _sp().coo_array((np.ones(m, dtype), at), shape=op.shape)


@_row("difference")
def _(op: Any, dtype: Any) -> Any:
    n, reach = op.shape[1], op._given("order") + 1
    near = range(-reach, reach + 1)
    round_again = [s * (n - j) for j in range(reach + 1) for s in (1, -1)]
    return _diagonals(op, dtype, [*near, *round_again])


@_row("laplacian")
def _(op: Any, dtype: Any) -> Any:
    grid = op._given("grid_shape")
    offsets, stride = [0], 1
    for g in reversed(grid if isinstance(grid, tuple) else (grid,)):
        offsets += [stride, -stride, stride * (g - 1), -stride * (g - 1)]
        stride *= g
    return _diagonals(op, dtype, offsets)
