"""Makes the LazyArrays that the core does not make by itself: from integers, mixed dtypes, lists,
keywords, ufuncs without a row in py_lazy_arith.c, indices by arrays; and the messages of their
errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack, errors
from .._base.checks import is_lazy, is_symbolic
from .._base.dtypes import real_of
from .._contractions import equations
from .._structured import determinants
from . import contraction_parts
from .contractions import contraction
from .leaves import lazy

inverse = _core._lazy_inverse
scaled = _core._lazy_scaled
view = _core._lazy_view


def node(x: Any) -> Any:
    """x as a LazyArray; None if it cannot be one."""
    if is_lazy(x):
        return x
    if isinstance(x, (_core.Operator, np.ndarray, list, tuple, np.generic)) or np.isscalar(x):
        return lazy(x)
    if is_symbolic(x):
        return None
    return lazy(x) if hasattr(x, "__dlpack__") or hasattr(x, "__array__") else None


_OURS = (_core.Operator, np.ndarray, np.generic, list, tuple, bool, int, float, complex)


def from_elsewhere(x: Any) -> Any:
    """A foreign array whose dtype NumPy does not know, as a NumPy array; otherwise x."""
    if is_lazy(x) or isinstance(x, _OURS):
        return x
    if dlpack.given(x):
        return dlpack.taken(x)
    return np.asarray(x) if hasattr(x, "__array__") else x


def _shape(x: Any) -> Any:
    """The shape of a LazyArray or an array_like."""
    return x.shape if is_lazy(x) else np.shape(x)


def _promoted(a: Any, b: Any) -> Any:
    for x, y in ((a, b), (b, a)):
        if x._adopts and not y._adopts and y.dtype.kind in "fc":
            return np.result_type(y.dtype, np.complex64) if x.dtype.kind == "c" else y.dtype
    same = a.dtype is b.dtype and a.dtype.isnative
    return a.dtype if same else np.result_type(a.dtype, b.dtype)


# -- products --------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Any:
    """``a @ b``, deferred."""
    a, b = node(a), node(b)
    return NotImplemented if a is None or b is None else a @ b


def solve(a: Any, b: Any) -> Any:
    """``solve(a, b)``, deferred: a vector b only if it is 1-D. Integers in b count as float64, as
    in NumPy, also beside a matrix in single precision."""
    for x in (a, b):
        if is_symbolic(x):
            x._no_value()
    right = node(b)
    if right is not None and right._head != "operator" and right.dtype.kind in "biu":
        right = cast(right, np.dtype(float))
    return matmul(inverse(node(a)), right)


def mismatch(a: Any, b: Any) -> None:
    """Raises the error of a product whose shapes do not fit; a hook."""
    left, right = a.shape, b.shape
    if not left or not right:
        text = "matmul: scalar operands are not allowed, use '*' instead"
    else:
        inner = right[-2] if len(right) > 1 else right[0]
        if left[-1] == inner:
            text = f"matmul: the batch dimensions do not broadcast, {left} @ {right}"
        else:
            text = f"matmul: the inner dimensions differ, {left} @ {right}: {left[-1]} and {inner}"
    raise ValueError(text + "".join(errors.built(x) for x in (a, b)))


def not_square(a: Any) -> None:
    """Raises the error of an inverse that is not square; a hook."""
    raise errors.LinAlgError(
        f"an inverse or a solve needs a square matrix, got shape {a.shape}: pl.pinv(A) and "
        "pl.lstsq(A, b) take others" + errors.built(a)
    )


def inverse_dtype(a: Any) -> Any:
    """The dtype of an inverse of a matrix that is not float32, float64 or their complex
    counterparts; a hook."""
    dtype = a.dtype
    if dtype.char in "fdFD":
        return dtype
    return np.result_type(dtype, np.float32 if dtype.kind in "fc" else np.float64)


# -- multiples -------------------------------------------------------------------------------------


def over(a: Any, c: Any) -> Any:
    """``a / c`` for a matrix and a number: a multiple where 1 / c is in range."""
    adopts = a._adopts and is_lazy(c) and c.dtype.kind in "fc"
    dtype = scaled(a, c).dtype if adopts else ufunc_dtype(np.true_divide, a, c)
    return _core._LazyArray("over", (a, c), a.shape, dtype)


def as_dtype(x: Any) -> Any:
    """x as resolve_dtypes takes it: a dtype, or Python's type for a weak number."""
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return type(x) if not isinstance(x, bool) else np.dtype(bool)
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


_known: dict[Any, Any] = {}  # dtypes of ufuncs: NumPy takes 2 us to find one
_MOST = 256


def ufunc_dtype(ufunc: Any, *args: Any) -> Any:
    """The dtype of the result of a ufunc that has one result; also a hook."""
    key = (ufunc, *map(as_dtype, args))
    dtype = _known.get(key)
    if dtype is None:
        dtype = ufunc.resolve_dtypes((*key[1:], None))[-1]
        if len(_known) < _MOST:
            _known[key] = dtype
    return dtype


def _is_single(x: Any, ndim: int) -> bool:
    """Is x one number, of at most ndim dimensions?"""
    if isinstance(x, _core.Operator):
        return False
    shape = _shape(x)
    return len(shape) <= ndim and all(n == 1 for n in shape)


def _as_number(x: Any) -> Any:
    """The number that x holds, of no dimensions."""
    if is_lazy(x):
        return x[(0,) * x.ndim] if x.ndim else x
    if np.ndim(x) or isinstance(x, np.ndarray):
        return dlpack.as_array(x).reshape(())[()]
    return x


def _is_matrix_form(x: Any) -> Any:
    """Is x a matrix or stack of floats that a formula makes, not one that exists already?"""
    made = is_lazy(x) and x._head not in ("leaf", "call", "operator")
    return made and x.ndim >= 2 and x.dtype.kind in "fc"


def _is_assumed(x: Any) -> bool:
    """Is x a matrix of floats of which something is assumed?"""
    return is_lazy(x) and x._head == "leaf" and x._more is not None and x.dtype.kind in "fc"


def _stays(x: Any) -> Any:
    """Does x stay in the formula when it is divided by a number?"""
    if isinstance(x, _core.Operator) or (is_lazy(x) and x._head == "operator"):
        return True
    return _is_matrix_form(x) or _is_assumed(x)


# -- ufuncs ----------------------------------------------------------------------------------------


def _linear_ufunc(name: str, inputs: Any) -> Any:
    """The linear form of a ufunc on matrices; None where there is none."""
    if name == "matmul":
        return matmul(*inputs)
    if name == "conjugate" and inputs[0].ndim >= 2:
        return view(inputs[0], 2)
    if name == "negative" and inputs[0].ndim >= 2 and inputs[0].dtype.kind != "b":
        return scaled(inputs[0], -1)
    if name == "multiply":
        a, b = inputs
        if _is_single(a, 0 if isinstance(b, _core.Operator) else len(_shape(b))):
            a, b = b, a
        if isinstance(a, _core.Operator):
            a = lazy(a)
        if is_lazy(a) and a.ndim >= 2 and _is_single(b, a.ndim):
            return scaled(a, _as_number(b))
        if _is_matrix_form(a) and _is_number_each(b, a):
            return _each_times(a, node(b))
        if _is_assumed(a) and _is_assumed(b) and a.shape == b.shape:
            return lazy(_core.HadamardProduct(a, b))  # Schur: definite where both are
    if name == "divide" and _stays(inputs[0]) and _is_single(inputs[1], inputs[0].ndim):
        return over(node(inputs[0]), _as_number(inputs[1]))
    if name in ("add", "subtract"):
        return _sum(node(inputs[0]), node(inputs[1]), name == "subtract")
    return None


def _is_number_each(b: Any, a: Any) -> bool:
    """Is b a stack of numbers, (..., 1, 1), as many as a stack of matrices `a` has or of more?"""
    shape = _shape(b)
    if isinstance(b, _core.Operator) or not 3 <= len(shape) <= 8 or shape[-2:] != (1, 1):
        return False
    return all(m in (1, n) or n == 1 for m, n in zip(shape[-3::-1], a.shape[-3::-1], strict=False))


def _each_times(a: Any, c: Any) -> Any:
    """Each matrix of a stack times its own number, as a product with diagonal matrices."""
    shape = (*c.shape[:-2], a.shape[-2])
    d = c[..., 0]
    made = _core._LazyArray("call", (d,), shape, c.dtype, (np.broadcast_to, {"shape": shape}))
    return _core.Diag(made) @ a


def is_each_times(x: Any) -> bool:
    """Is x what `_each_times` makes, an array as a product with diagonal matrices?"""
    made: Any = x._args[0] if x._head == "matmul" else None
    if not is_lazy(made) or made._head != "made":
        return False
    if not issubclass(getattr(made._more[0], "cls", object), _core.Diag):
        return False
    d: Any = made._args[0]
    if not is_lazy(d) or d._head != "call" or d._more[0] is not np.broadcast_to:
        return False
    one: Any = d._args[0]
    return is_lazy(one) and one._head == "index" and one._more == (..., 0)


def _sum(a: Any, b: Any, minus: bool) -> Any:
    """The sum of matrices, also of stacks of them of which one is a formula; None for others."""
    if a is None or b is None or min(a.ndim, b.ndim) < 2 or a.shape[-2:] != b.shape[-2:]:
        return None
    shape = a.shape
    if a.shape != b.shape:
        if not any(_is_matrix_form(x) or x._head == "operator" for x in (a, b)):
            return None
        shape = together(np.add, (a, b))
        if len(shape) > 8:
            return None
    if minus and (b.dtype.kind == "b" or (b.dtype.kind in "iu" and _promoted(a, b) != b.dtype)):
        return None  # -b would wrap before it meets a wider a; NumPy refuses it of booleans
    b = scaled(b, -1) if minus else b
    dtype = _promoted(a, b)
    return None if dtype.kind == "b" else _core._LazyArray("add", (a, b), shape, dtype)


def apply_ufunc(ufunc: Any, method: Any, inputs: Any, out: Any = None, kwargs: Any = None) -> Any:
    """A ufunc or one of its methods, deferred."""
    kwargs = kwargs or {}
    if method == "__call__":  # of methods an axis that is None is an axis
        kwargs = {k: v for k, v in kwargs.items() if v is not None}
    inputs = tuple(map(from_elsewhere, inputs))
    name = ufunc.__name__
    if out is not None:
        values = tuple(x._computed() if is_lazy(x) else x for x in inputs)
        if any(is_lazy(o) for o in (out if isinstance(out, tuple) else (out,))):
            raise TypeError("a LazyArray cannot be the out= of a ufunc: its value never changes")
        return getattr(ufunc, method)(*values, out=out, **kwargs)
    if method == "__call__" and name == "multiply":
        _refuse_operators(*inputs)
    if method == "__call__" and not kwargs:
        linear = _linear_ufunc(name, inputs)
        if linear is not None:
            return linear
    return _elementwise(ufunc, method, inputs, kwargs)


def _refuse_operators(a: Any, b: Any) -> None:
    for x, other in ((a, b), (b, a)):
        if isinstance(x, _core.Operator) and (
            isinstance(other, _core.Operator) or _shape(other) != ()
        ):
            raise TypeError(
                "LazyArray * operator: element-wise or the product? "
                "write @ for the product, pl.multiply for element-wise"
            )


def array_ufunc(ufunc: Any, method: Any, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
    """``__array_ufunc__`` for the cases that the core leaves; a hook."""
    if len(inputs) == 1 and method == "__call__" and out is None and not kwargs:
        return unary(ufunc, inputs[0])
    return apply_ufunc(ufunc, method, inputs, out, kwargs)


def binary(ufunc: Any, a: Any, b: Any) -> Any:
    """A binary operator of Python between a LazyArray and anything; a hook."""
    if node(a) is None or node(b) is None:
        return NotImplemented
    return apply_ufunc(ufunc, "__call__", (a, b))


def unary(ufunc: Any, a: Any) -> Any:
    """A ufunc of one LazyArray; a hook."""
    if ufunc.nout > 1 or ufunc.signature is not None or ufunc in (np.negative, np.conjugate):
        return apply_ufunc(ufunc, "__call__", (a,))
    return _core._LazyArray("call", (a,), a.shape, ufunc_dtype(ufunc, a), (ufunc, {}))


def value_of(x: Any) -> Any:
    if isinstance(x, _core.Lazy):
        return x._computed()
    if type(x) in (list, tuple):
        return type(x)(value_of(y) for y in x)
    return x


def by_value(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls NumPy's own function now, on the values."""
    return func(*(value_of(a) for a in args), **{k: value_of(v) for k, v in kwargs.items()})


def as_plain(x: Any) -> Any:
    """An argument as a node keeps it: no operator, no subclass of NumPy's arrays."""
    if isinstance(x, np.ndarray):
        return dlpack.as_array(x)
    return lazy(x) if isinstance(x, _core.Operator) else x


def _elementwise(ufunc: Any, method: Any, inputs: Any, kwargs: dict[str, Any]) -> Any:
    args = tuple(map(as_plain, inputs))
    if method == "__call__" and ufunc.__name__ in _CONTRACTED and not kwargs:
        return _contracted(ufunc.__name__, [node(x) for x in args])
    if method != "__call__" and ufunc.signature is None:
        found = _method(ufunc, method, args, kwargs)
        if found is not NotImplemented:
            return found
    plain = method == "__call__" and ufunc.nout == 1 and ufunc.signature is None
    if not plain or set(kwargs) - {"dtype", "casting"}:
        return by_value(getattr(ufunc, method), args, kwargs)
    dtype = np.dtype(kwargs["dtype"]) if "dtype" in kwargs else ufunc_dtype(ufunc, *args)
    return _core._LazyArray("call", args, together(ufunc, args), dtype, (ufunc, kwargs))


_REDUCE: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
}
_ACCUMULATE: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


def _method(ufunc: Any, method: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Methods of ufuncs that are functions of NumPy's too, deferred."""
    if method == "outer" and len(args) == 2 and not kwargs and ufunc.nout == 1:
        a, b = map(node, args)
        if a is None or b is None:
            return NotImplemented
        return ufunc(np.reshape(a, (*a.shape, *(1,) * b.ndim)), b)
    known = {"reduce": _REDUCE, "accumulate": _ACCUMULATE}.get(method, {}).get(ufunc)
    a, how = args[0], {"axis": 0, **kwargs}
    if known is None or len(args) != 1 or not a.ndim or a.dtype.kind not in "iufc":
        return NotImplemented
    allowed = {"axis", "keepdims"} if method == "reduce" else {"axis"}
    if set(how) - allowed or (method == "accumulate" and how["axis"] is None):
        return NotImplemented
    return known(a, **how)


def together(ufunc: Any, args: tuple[Any, ...]) -> Any:
    """The shape that the arguments broadcast to."""
    shapes = [_shape(x) for x in args]
    widest = max(shapes, key=len)
    if all(shape in (widest, ()) for shape in shapes):
        return widest
    try:
        return np.broadcast_shapes(*shapes)  # 5 us
    except ValueError:
        text = f"{ufunc.__name__}: the shapes do not broadcast, {' and '.join(map(str, shapes))}"
        lines = "".join(errors.built(x) for x in args if is_lazy(x))
        raise ValueError(text + lines) from None


# NumPy's products of stacks of vectors and matrices, as equations; conjugated on the left; the axis
# of the right that is summed.
_CONTRACTED = {
    "vecdot": ("...i,...i->...", True, -1),
    "matvec": ("...ij,...j->...i", False, -1),
    "vecmat": ("...i,...ij->...j", True, -2),
}


def inner_fits(name: str, a: Any, b: Any, left: int, right: int) -> None:
    """The axes that are summed are of one size: in equations a 1 broadcasts, in products not."""
    one, other = np.shape(a), np.shape(b)
    m, n = (s[k] if len(s) >= -k else 0 for s, k in ((one, left), (other, right)))
    if m != n:
        lines = "".join(errors.built(x) for x in (a, b) if is_lazy(x))
        raise ValueError(
            f"{name}: the inner dimensions differ, {one} and {other}: {m} and {n}" + lines
        )


def _contracted(name: str, operands: list[Any]) -> Any:
    text, conjugated, summed = _CONTRACTED[name]
    a, b = operands
    inner_fits(name, a, b, -1, summed)
    if conjugated and np.result_type(a).kind == "c":  # of bool NumPy makes int8
        a = np.conjugate(a)
    task, held = equations.task_of((text, a, b), None, None, None, "safe", True)
    return contraction(task, held)


def cast(a: Any, dtype: Any) -> Any:
    """``a.astype(dtype)``."""
    if a.dtype == dtype:
        return a
    return _core._LazyArray("call", (a,), a.shape, dtype, (_astype, {"dtype": dtype}))


def _astype(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


# -- indices and numbers ---------------------------------------------------------------------------


def index(a: Any, key: Any) -> Any:
    """``a[key]``, deferred; the shape is NumPy's, found on an array without memory. A hook."""
    parts = key if isinstance(key, tuple) else (key,)
    hollow = np.broadcast_to(np.zeros((), bool), a.shape)
    if any(is_lazy(k) for k in parts):
        if all(k.dtype.kind in "iu" for k in parts if is_lazy(k)):
            return _index_later(a, parts, hollow)
        parts = tuple(k._computed() if is_lazy(k) else k for k in parts)
        key = parts if isinstance(key, tuple) else parts[0]
    shape = np.shape(hollow[key])
    made = contraction_parts.part(a, key)
    return made if made is not None else _core._LazyArray("index", (a,), shape, a.dtype, key)


class LATER:
    """The place of a LazyArray of integers in an index."""


def _index_later(a: Any, parts: tuple[Any, ...], hollow: Any) -> Any:
    """``a[parts]`` where some of them are LazyArrays of integers: computed when the value is."""
    held = tuple(k for k in parts if is_lazy(k))
    key = tuple(LATER if is_lazy(k) else k for k in parts)
    places = tuple(np.zeros(k.shape, np.intp) if is_lazy(k) else k for k in parts)
    shape = np.shape(np.broadcast_to(hollow, np.maximum(a.shape, 1))[places] if a.size else ())
    return _core._LazyArray("call", (a, *held), shape, a.dtype, (picked, {"key": key}))


def _filled_key(key: Any, places: Any) -> Any:
    found = iter(places)
    return tuple(next(found) if k is LATER else k for k in key)


def picked(x: Any, *places: Any, key: Any) -> Any:
    """``x[key]``, the places put in."""
    return np.asarray(x[_filled_key(key, places)])


def put(g: Any, *places: Any, key: Any, shape: Any) -> Any:
    """Zeros with g added where the key says."""
    made = np.zeros(shape, g.dtype)
    np.add.at(made, _filled_key(key, places), g)
    return made


def _square(a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.LinAlgError(
            f"Last 2 dimensions of the array must be square: {a.shape}" + errors.built(a)
        )


def number_of(a: Any, f: Any) -> Any:
    """``f`` of a square matrix, a number, deferred; of the operator form."""
    _square(a)
    dtype = a.dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    return _core._LazyArray("of form", (a,), a.shape[:-2], dtype, (f, {}))


def slogdet(a: Any) -> Any:
    """Sign and logarithm of the determinant, deferred: both are made of one determinant."""
    _square(a)
    dtype, shape = inverse_dtype(a), a.shape[:-2]
    whole = np.result_type(dtype, np.float64)
    pair = _core._LazyArray("of form", (a,), (*shape, 2), whole, (determinants.pair, {}))
    return determinants.SlogdetResult(
        _core._LazyArray("call", (pair,), shape, dtype, (determinants.sign_of, {})),
        _core._LazyArray("call", (pair,), shape, real_of(dtype), (determinants.logabs_of, {})),
    )
