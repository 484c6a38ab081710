"""NumPy's functions on operators: ``__array_function__``.

One table has the function, the route it takes, and what runs. *structured* gives a number or an
array, computed from the structure. *lazy* gives an operator and computes nothing. *operators*
computes, on the dense form unless the note says otherwise, and returns the matrices as operators.
Every other function materialises: the dense form is made, with a MaterializationWarning above a
size, and NumPy runs on it."""

from __future__ import annotations

import functools
import operator as _operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, linalg
from .._base.checks import is_kept, square
from .._contractions import grammar
from .._contractions.equations import Task
from .._lazy import contractions
from .._operators import block_constructors, numpy_protocols
from .._operators.convert import arrays_of, as_operator
from . import solve
from .products import multi_dot

if TYPE_CHECKING:
    from .._base.type_variables import Registered

_TABLE: dict[Any, Any] = {}
_FEW_ONES = 1 << 14


def _row(route: str, *functions: str, note: str = "") -> Callable[[Registered], Registered]:
    """Registers what it decorates for NumPy's ``functions``; those a NumPy lacks are skipped."""

    def register(run: Registered) -> Registered:
        for name in functions:
            owner: Any = np
            f: Any = None
            for part in name.split("."):
                f = getattr(owner, part, None)
                owner = f
            if f is not None:
                _TABLE[f] = (name, route, run, note)
        return run

    return register


def table() -> list[tuple[str, str, str]]:
    """Rows (function, route, note) for the docs, by name."""
    return sorted((name, route, note) for name, route, _, note in _TABLE.values())


def array_function(
    self: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``np.func(*args, **kwargs)`` with an operator somewhere in it."""
    row = _TABLE.get(func)
    if row:
        result = row[2](*args, **kwargs)
        if result is not NotImplemented:
            return result
    return materialised(func, args, kwargs)


def materialised(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's own function on the dense forms, under the memory rule."""
    return func(*(_dense(a) for a in args), **{k: _dense(v) for k, v in kwargs.items()})


def _dense(x: Any) -> Any:
    if isinstance(x, _core.Operator):
        return numpy_protocols.dense_form(x)
    if type(x) in (list, tuple):
        return type(x)(_dense(y) for y in x)
    if type(x) is dict:
        return {k: _dense(v) for k, v in x.items()}
    return x


def _ours(x: Any) -> bool:
    return isinstance(x, _core.Operator)


def _op(x: Any) -> Any:
    return as_operator(x)


def _into(result: Any, out: Any) -> Any:
    """``result``, or written into the caller's ``out``."""
    if out is None:
        return result
    np.copyto(out, result, casting="same_kind")
    return out


def _last_two(a: Any, axis1: int, axis2: int) -> int:
    """Are these the two dimensions of the matrix? 1 in order, -1 exchanged, 0 not."""
    axes = tuple(k + a.ndim if k < 0 else k for k in (axis1, axis2))
    if axes == (a.ndim - 2, a.ndim - 1):
        return 1
    return -1 if axes == (a.ndim - 1, a.ndim - 2) else 0


# -- answers that need no values, only shapes
# -------------------------------------------------------


@_row("structured", "shape")
def _shape(a: Any) -> Any:
    return a.shape


@_row("structured", "ndim")
def _ndim(a: Any) -> Any:
    return a.ndim


@_row("structured", "size")
def _size(a: Any, axis: Any = None) -> Any:
    if axis is None:
        return a.size
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = 1
    for k in axes:
        n *= a.shape[k]
    return n


@_row("structured", "iscomplexobj")
def _iscomplexobj(x: Any) -> Any:
    return x.dtype.kind == "c"


@_row("structured", "isrealobj")
def _isrealobj(x: Any) -> Any:
    return x.dtype.kind != "c"


@_row("structured", "result_type")
def _result_type(*args: Any) -> np.dtype[Any]:
    return np.result_type(*(a.dtype if _ours(a) else a for a in args))


@_row("structured", "can_cast")
def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_.dtype if _ours(from_) else from_, to, casting)


@_row("structured", "common_type")
def _common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, a.dtype) if _ours(a) else a for a in arrays))


@_row("structured", "may_share_memory", "shares_memory", note="the arrays it is made of")
def _shares(a: Any, b: Any, max_work: Any = None) -> bool:
    mine = arrays_of(a) if _ours(a) else [a]
    other = arrays_of(b) if _ours(b) else [b]
    return any(np.shares_memory(x, y) for x in mine for y in other)


# -- operators out of operators --------------------------------------------------------------------


@_row("lazy", "transpose", "permute_dims", note="of the last two axes")
def _transpose(a: Any, axes: Any = None) -> Any:
    axes = tuple(axes) if axes is not None else tuple(range(a.ndim))[::-1]
    axes = tuple(k + a.ndim if k < 0 else k for k in axes)
    batch = tuple(range(a.ndim - 2))
    if axes == batch + (a.ndim - 1, a.ndim - 2):
        return a.T
    return a if axes == tuple(range(a.ndim)) else NotImplemented


@_row("lazy", "matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Any, /) -> Any:
    return x.T


@_row("lazy", "swapaxes", note="of the last two axes")
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    if _last_two(a, axis1, axis2):
        return a.T
    return NotImplemented


@_row("lazy", "moveaxis", note="of the last two axes")
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    if isinstance(source, int) and isinstance(destination, int):
        return _swapaxes(a, source, destination)
    return NotImplemented


@_row("lazy", "real")
def _real(val: Any) -> Any:
    return val.real


@_row("lazy", "imag")
def _imag(val: Any) -> Any:
    return val.imag


@_row("lazy", "copy", note="the arrays are copied")
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy()


@_row("lazy", "astype")
def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype, copy)


@_row("lazy", "zeros_like", note="`Zeros`")
def _zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    if not subok:
        return np.zeros(a.shape if shape is None else shape, dtype or a.dtype)
    return _core.Zeros(a.shape if shape is None else shape, np.dtype(dtype or a.dtype))


@_row("lazy", "kron", note="of two matrices, no batches")
def _kron(a: Any, b: Any) -> Any:
    if np.ndim(a) != 2 or np.ndim(b) != 2:
        return NotImplemented
    return _core.Kron(a, b)


@_row("lazy", "linalg.matrix_power", note="a negative power through `inv`")
def _matrix_power(a: Any, n: Any) -> Any:
    n = _operator.index(n)
    square(a)
    if n < 0:
        return _core._build("inverse", a) ** -n
    return a**n


def _join(f: Callable[[Any, list[Any]], Any]) -> Callable[..., Any]:
    """hstack, vstack and kin as `Block` operators, where each part has two dimensions."""

    def run(parts: Any, **more: Any) -> Any:
        parts = list(parts)
        if any(v is not None and v != "same_kind" for v in more.values()):
            return NotImplemented
        if any(np.ndim(p) != 2 for p in parts):
            return NotImplemented
        return f(block_constructors, parts)

    return run


_row("lazy", "hstack", "column_stack", note="`Block`")(_join(lambda m, parts: m.hstack(parts)))
_row("lazy", "vstack", note="`Block`")(_join(lambda m, parts: m.vstack(parts)))


@_row("lazy", "concatenate", "concat", note="`Block`; of two-dimensional parts along 0 or 1")
def _concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    if out is not None or dtype is not None or axis not in (0, 1, -1, -2):
        return NotImplemented
    if any(np.ndim(p) != 2 for p in arrays):
        return NotImplemented
    return (block_constructors.vstack if axis in (0, -2) else block_constructors.hstack)(
        list(arrays)
    )


@_row("lazy", "block", note="`Block`; of a nested list of matrices")
def _block(arrays: Any) -> Any:
    if not isinstance(arrays, list):
        return arrays
    rows = arrays if all(isinstance(r, list) for r in arrays) else [arrays]
    if any(np.ndim(p) != 2 for row in rows for p in row):
        return NotImplemented
    return block_constructors.block(rows)


# -- products --------------------------------------------------------------------------------------


@_row("structured", "dot", "linalg.matmul", note="lazy between operators; a number scales")
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _into(a * b, out)
    if out is not None:
        return np.matmul(a, b, out=out)
    return a @ b


@_row(
    "structured",
    "linalg.multi_dot",
    note="in the planner's order; lazy between operators",
)
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    return multi_dot(arrays, out=out)


@_row("structured", "inner", note="lazy between operators")
def _inner(a: Any, b: Any, /) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    return a @ (b if np.ndim(b) == 1 else b.T)


@_row("structured", "vdot", note="of two operators by the trace of A^H B")
def _vdot(a: Any, b: Any, /) -> Any:
    if np.ndim(a) == 2 and np.ndim(b) == 2 and a.shape == b.shape:
        return (_op(a).H @ _op(b)).trace()
    return NotImplemented


@_row("structured", "tensordot", "linalg.tensordot", note="matrix products; lazy between operators")
def _tensordot(a: Any, b: Any, /, axes: Any = 2) -> Any:
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        return NotImplemented
    if isinstance(axes, int):
        if axes == 0:
            return NotImplemented
        if axes == 1:
            return a @ b
        first, second = [0, 1], [0, 1]
    else:
        first, second = ([k] if isinstance(k, int) else list(k) for k in axes)
    first = [k % np.ndim(a) for k in first]
    second = [k % np.ndim(b) for k in second]
    if len(first) == len(second) == 2:
        return _vdot(a.conj(), b if first == second else b.T)
    if len(first) != 1 or len(second) != 1:
        return NotImplemented
    left = a if first[0] == np.ndim(a) - 1 else a.T
    right = b if second[0] == 0 else b.T
    return left @ right


@_row(
    "structured",
    "einsum",
    note="what is products, scalings, traces and diagonals of matrices and vectors",
)
def _einsum(*operands: Any, out: Any = None, optimize: bool = False, **kwargs: Any) -> Any:
    if kwargs or not isinstance(operands[0], str):
        return NotImplemented
    result = contractions.structured(Task(grammar.parse(operands[0])), operands[1:])
    return result if result is NotImplemented or out is None else _into(np.asarray(result), out)


# -- numbers and vectors ---------------------------------------------------------------------------


@_row("structured", "trace", note="of the last two axes, without `dtype=`")
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    if dtype is not None or _last_two(a, axis1, axis2) == 0:
        return NotImplemented
    k = offset * _last_two(a, axis1, axis2)
    return _into(a.trace() if k == 0 else a.diagonal(k).sum(axis=-1), out)


@_row("structured", "linalg.trace")
def _linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return _trace(x, offset, -2, -1, dtype)


@_row("structured", "diagonal", note="of the last two axes")
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    order = _last_two(a, axis1, axis2)
    return a.diagonal(offset * order) if order else NotImplemented


@_row("structured", "linalg.diagonal")
def _linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return x.diagonal(offset)


@_row("structured", "diag", note="of a matrix: its diagonal")
def _diag(v: Any, k: int = 0) -> Any:
    return v.diagonal(k) if v.ndim == 2 else NotImplemented


def _given(*values: Any) -> bool:
    """Was any of these keywords given?"""
    return any(v is not None and v is not np._NoValue for v in values)


@functools.lru_cache(maxsize=8)
def _kept_ones(n: int, dtype: Any) -> Any:
    ones = np.ones(n, dtype)
    ones.setflags(write=False)
    return ones


def _ones(n: int, dtype: Any) -> Any:
    """Ones that nobody writes to; few of them are the same each time, as a tape wants constants."""
    return _kept_ones(n, dtype) if n <= _FEW_ONES else np.ones(n, dtype)


@_row(
    "structured",
    "sum",
    note="a product with ones; no batches, without `dtype=`, `where=`, `initial=`",
)
def _sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    if a.ndim != 2 or a.dtype is None or _given(dtype, initial, where):
        return NotImplemented
    wide = a.dtype
    if wide.kind in "biu":  # as np.sum: small integers are added in the machine's
        wide = np.dtype(np.uint64 if wide.kind == "u" else np.int64)
    axes = (0, 1) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axes, 2, "axis")))
    if axes == (0,):
        y = a.T @ _ones(a.shape[0], wide)
    elif axes == (1,):
        y = a @ _ones(a.shape[1], wide)
    elif axes == (0, 1):
        y = np.sum(a @ _ones(a.shape[1], wide))
    else:
        return NotImplemented
    if is_kept(keepdims):
        y = np.expand_dims(y, axes)
    return _into(y, out)


@_row("structured", "mean", note="a product with ones; no batches, without `dtype=`, `where=`")
def _mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = None,
) -> Any:
    if a.dtype is None:
        return NotImplemented
    if a.dtype.kind not in "fc":
        a = a.astype(np.float64)
    y = _sum(a, axis, dtype, None, keepdims, where=where)
    if y is NotImplemented:
        return y
    n = a.size if axis is None else _size(a, axis)
    return _into(y / np.asarray(n, a.real.dtype), out)


@_row("structured", "array_equal", "array_equiv", note="the same object at once; else row by row")
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    if np.shape(a1) != np.shape(a2):
        return False
    return all(np.array_equal(x, y, equal_nan=equal_nan) for x, y in zip(_strips(a1), _strips(a2)))


@_row("structured", "allclose", note="row by row, in strips")
def _allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    if np.shape(a) != np.shape(b):
        return NotImplemented
    return all(np.allclose(x, y, rtol, atol, equal_nan) for x, y in zip(_strips(a), _strips(b)))


@_row("structured", "any", note="in strips of rows; of all elements")
def _any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None
) -> Any:
    if _given(axis, out, where) or is_kept(keepdims):
        return NotImplemented
    return np.bool_(any(x.any() for x in _strips(a)))


@_row("structured", "all", note="in strips of rows; of all elements")
def _all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None
) -> Any:
    if _given(axis, out, where) or is_kept(keepdims):
        return NotImplemented
    return np.bool_(all(x.all() for x in _strips(a)))


def _strips(a: Any) -> Iterator[Any]:
    """The rows of a matrix, some at a time, as arrays: memory for about 2^16 numbers."""
    if np.ndim(a) != 2:
        yield a.toarray() if _ours(a) else np.asarray(a)
        return
    a = a if _ours(a) else np.asarray(a)
    m, n = a.shape
    some = max(1, (1 << 16) // max(1, n))
    for i in range(0, m, some):
        rows = a if some >= m else a[i : i + some]
        yield rows.toarray() if _ours(rows) else rows


# -- numpy.linalg ----------------------------------------------------------------------------------


def _from_linalg(name: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return getattr(solve if name == "direct" else linalg, name)(*args, **kwargs)

    return run


_IN_PART = "of the kinds in [the table](linalg.md), multiples and views; else the dense form"
_FUNCTIONS = "kind by kind as in [the table](factorisations.md), vectors as operators"
_WHERE_CLOSED = "where the kind has a closed form; else LU of the dense form, kept"
_row("structured", "linalg.solve", note=_WHERE_CLOSED)(_from_linalg("direct"))
for _name in "det slogdet".split():
    _row("structured", f"linalg.{_name}", note=_WHERE_CLOSED)(_from_linalg(_name))
for _name in "cond matrix_rank eigvalsh svdvals norm matrix_norm".split():
    _row("structured", f"linalg.{_name}", note=_IN_PART)(_from_linalg(_name))
_FACTORS = (
    "of the kinds in [the table](factorisations.md), multiples and views; else the dense form"
)
for _name in "cholesky qr".split():
    _row("operators", f"linalg.{_name}", note=_FACTORS)(_from_linalg(_name))
_row("structured", "linalg.lstsq", note=_FACTORS)(_from_linalg("lstsq"))
_row("lazy", "linalg.inv", note="used, it goes as `solve`")(_from_linalg("inv"))
_row("lazy", "linalg.pinv", note=_IN_PART + ", at once")(_from_linalg("pinv"))


for _name in "eigvals svd eigh eig".split():
    _row("structured", f"linalg.{_name}", note=_FUNCTIONS)(_from_linalg(_name))
del _name
