"""What SciPy's methods, @, * and + accept beside an operator: vectors, columns, matrices, sparse
matrices and numbers; and the errors for anything else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack, errors, multiples, scipy_bridge
from .._base.checks import is_symbolic
from .._base.dtypes import H, N, T
from .._fallback import interpreter
from . import convert, refusals
from .sparse_products import product, rproduct

# -- matvec and kin --


def _plain_array(op: Any, x: Any) -> Any:
    x = dlpack.as_array(x)
    if x.dtype == object and not op._opaque:
        what = "None" if x.ndim == 0 and x[()] is None else "an array of dtype object"
        raise TypeError(f"{what} is not multiplied: give numbers, as x.astype(float) has them")
    if x.dtype.kind in "SUmM":
        raise TypeError(f"an array of dtype {x.dtype} is not multiplied: give numbers")
    if x.dtype.fields is not None:
        raise TypeError(f"structured arrays are not taken, got dtype {x.dtype}")
    return x


def _refuse_masked(x: Any) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are not taken: fill them first")


def _vector(op: Any, x: Any, out: Any, mode: int, name: str) -> Any:
    n = op.shape[-2] if mode & T else op.shape[-1]
    m = op.shape[-1] if mode & T else op.shape[-2]
    _refuse_masked(x)
    matrix = isinstance(x, np.matrix)
    x = _plain_array(op, x)
    column = x.ndim == 2 and x.shape == (n, 1)
    if column:
        if not matrix:
            warnings.warn(
                f"Calling `{name}` on 'column vectors' of shape (N, 1) is deprecated; "
                "use `matmat`, or a vector (N,)",
                FutureWarning,
                stacklevel=3,
            )
        y = interpreter.apply(op, x[:, 0], mode, True).reshape(*op.shape[:-2], m, 1)
    elif x.ndim < 1 or x.shape[-1] != n:
        raise errors.shape_error(op, name, f"({n},) or (..., {n})", x.shape)
    else:
        y = interpreter.apply(op, x, mode, True, out)
    if matrix:
        y = np.asmatrix(y.reshape(m, 1) if column else y)
    if out is not None and y is not out:
        np.copyto(out, y.reshape(out.shape), casting="same_kind")
        return out
    return y


def _matrix(op: Any, X: Any, out: Any, mode: int, name: str) -> Any:
    n = op.shape[-2] if mode & T else op.shape[-1]
    if scipy_bridge.issparse(X):
        return product(op if mode == N else op.H, X)
    _refuse_masked(X)
    matrix = isinstance(X, np.matrix)
    X = _plain_array(op, X)
    if X.ndim < 2:
        raise ValueError(f"Expected at least 2-d ndarray or matrix, not {X.ndim}-d")
    if X.shape[-2] != n:
        raise errors.shape_error(op, name, f"(..., {n}, k)", X.shape)
    y = interpreter.apply(op, X, mode, False, out)
    return np.asmatrix(y) if matrix else y


def matvec(op: Any, x: Any, out: Any) -> Any:
    return _vector(op, x, out, N, "matvec")


def rmatvec(op: Any, x: Any, out: Any) -> Any:
    return _vector(op, x, out, H, "rmatvec")


def matmat(op: Any, X: Any, out: Any) -> Any:
    return _matrix(op, X, out, N, "matmat")


def rmatmat(op: Any, X: Any, out: Any) -> Any:
    return _matrix(op, X, out, H, "rmatmat")


# -- @ and * with what is not an operator --


def _is_scalar(x: Any) -> Any:
    return np.isscalar(x) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype != object)


def _as_other(x: Any) -> Any:
    """An operator for sparse matrices, SciPy's operators and those of libraries alike (PyLops);
    None for everything else."""
    if scipy_bridge.issparse(x) or scipy_bridge.is_scipy_operator(x) or _is_alike(x):
        return convert.as_operator(x)
    return None


def _is_alike(x: Any) -> bool:
    """Has x products with vectors, and no way to NumPy?"""
    return (
        hasattr(x, "matvec")
        and len(getattr(x, "shape", ())) == 2
        and not hasattr(x, "__array__")
        and getattr(x, "__array_ufunc__", 0) is not None
    )


def matmul(op: Any, x: Any, out: Any = None) -> Any:
    if isinstance(x, _core.Operator):
        return op @ x
    if _is_scalar(x):
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    if scipy_bridge.issparse(x):
        return product(op, x)
    other = _as_other(x)
    if other is not None:
        return op @ other
    if _defers(x):
        return NotImplemented
    _refuse_masked(x)
    x = _plain_array(op, x)
    n = op.shape[-1]
    vec = x.ndim == 1
    if x.ndim == 0 or x.shape[-1 if vec else -2] != n:
        raise errors.shape_error(op, "@", f"({n},) or (..., {n}, k)", x.shape)
    return interpreter.apply(op, x, N, vec, out)


def rmatmul(op: Any, x: Any, out: Any = None) -> Any:
    if _is_scalar(x):
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    if scipy_bridge.issparse(x):
        return rproduct(op, x)
    other = _as_other(x)
    if other is not None:
        return other @ op
    if _defers(x):
        return NotImplemented
    _refuse_masked(x)
    x = _plain_array(op, x)
    m = op.shape[-2]
    if x.ndim == 0 or x.shape[-1] != m:
        raise errors.shape_error(op, "x @", f"({m},) or (..., k, {m})", x.shape)
    if x.ndim == 1:
        return interpreter.apply(op, x, T, True, out)
    if not op._opaque:
        y = op._apply(x, N, True, False, out)
        if y is not NotImplemented:
            return y
    y = np.swapaxes(interpreter.run_plain((op, np.swapaxes(x, -1, -2), T, False)), -1, -2)
    if out is not None:
        np.copyto(out, y, casting="same_kind")
        return out
    return y


_TO_NUMPY = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")


def _defers(x: Any) -> bool:
    """Does x handle @ and + itself: is it no array, and has it a reflected method (as variables of
    modelling languages have)?"""
    if isinstance(x, _core.Lazy):
        return True
    if isinstance(x, (np.ndarray, list, tuple)):
        return False
    own = hasattr(type(x), "__rmatmul__") or getattr(x, "__array_ufunc__", 0) is None
    return (own and not any(hasattr(x, name) for name in _TO_NUMPY)) or is_symbolic(x)


def multiply(op: Any, x: Any) -> Any:
    if isinstance(x, _core.Lazy):
        return NotImplemented
    return _times(op, x) if _is_scalar(x) else matmul(op, x)


def rmultiply(x: Any, op: Any) -> Any:
    """x * op; the hook gets the operands in the order written."""
    if isinstance(x, _core.Lazy):
        return NotImplemented
    return _times(op, x) if _is_scalar(x) else rmatmul(op, x)


def _times(op: Any, x: Any) -> Any:
    if not isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)):
        raise TypeError(
            f"an operator is scaled by numbers of Python and NumPy, got {type(x).__name__}"
        )
    return op * (dlpack.as_array(x)[()] if isinstance(x, np.ndarray) else x)


def scale(op: Any, number: Any) -> Any:
    """c * op for numbers that C does not know: longdouble and float16 go through a Diag of that
    dtype."""
    if isinstance(number, np.ndarray) and number.ndim == 0:
        number = number[()]
    if isinstance(number, (np.longdouble, np.clongdouble, np.float16)):
        return op @ _core.Diag(np.full(op.shape[-1], number))
    return NotImplemented


def divide(op: Any, number: Any) -> Any:
    if isinstance(number, _core.Lazy) and isinstance(op, _core.Operator) and number.ndim == 0:
        return NotImplemented  # its own method makes the node
    if not isinstance(op, _core.Operator) or not _is_scalar(number):
        raise ValueError("Can only divide a linear operator by a scalar.")
    number = dlpack.as_array(number) if isinstance(number, np.ndarray) else number
    return multiples.divide(op, number)


def _addend(x: Any, to: Any) -> Any:
    """The operator to add for x, or None: numbers of NumPy and unknown objects are not added."""
    if type(x) in (bool, int, float, complex):
        refusals.addend(to, x)
    other = _as_other(x)
    if other is not None:
        return other
    if _is_scalar(x) or isinstance(x, (str, bytes, dict)) or x is None or _defers(x):
        return None
    op = convert.as_operator(x)
    if op.shape[-2:] != to.shape[-2:] and np.ndim(x) == 1:
        n = op.shape[-1]
        raise ValueError(
            f"a vector of shape ({n},) is not added to an operator of shape {to.shape}: Diag(b) "
            "adds it to the diagonal; pl.lazy(A) broadcasts it as NumPy does"
        )
    return op


def add(a: Any, b: Any) -> Any:
    left = isinstance(a, _core.Operator)
    op = _addend(*((b, a) if left else (a, b)))
    if op is None:
        return NotImplemented
    return a + op if left else op + b


def subtract(a: Any, b: Any) -> Any:
    left = isinstance(a, _core.Operator)
    op = _addend(*((b, a) if left else (a, b)))
    if op is None:
        return NotImplemented
    return a - op if left else op - b
