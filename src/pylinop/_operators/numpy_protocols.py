"""NumPy's protocols: __array__, __array_ufunc__."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack, errors
from .._base.dtypes import N, T
from .._base.memory import materialising
from .._fallback import interpreter
from .array_arguments import add, matmul, rmatmul, rmultiply, subtract

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _is_operand_of_sparse(frame: Any) -> bool:
    """Does a sparse array of SciPy look what it is added to or multiplied with? A constructor of
    one, which wants the entries, looks alike."""
    within = False
    for _ in range(3):  # lil_array asks by a function of its base
        if frame is None or not frame.f_globals.get("__name__", "").startswith("scipy.sparse._"):
            break
        if frame.f_code.co_name == "__init__":
            return False
        within, frame = True, frame.f_back
    return within


def as_dense(op: Any, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
    """op.__array__: the dense form; but a 0-d object for scipy.sparse's dispatch, so that it
    defers."""
    __tracebackhide__ = True
    if _is_operand_of_sparse(sys._getframe(2)):
        hidden = np.empty((), dtype=object)
        hidden[()] = op
        return hidden
    if copy is False:
        raise ValueError(
            "an operator has no array to hand out without copying; use copy=None or toarray()"
        )
    _say_instead(op, sys._getframe(2))
    a = dense_form(op)
    return a if dtype is None else a.astype(dtype, copy=False)


_SAME = (
    *("solve", "inv", "det", "cholesky", "eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals"),
    *("lu", "qr", "ldl", "expm", "logm", "sqrtm", "funm", "norm", "pinv", "lstsq", "null_space"),
    *("orth", "fractional_matrix_power"),
)
_INSTEAD = {name: f"pl.{name}" for name in _SAME} | {
    "lu_factor": "pl.factorized",
    "cho_factor": "pl.factorized",
    "solve_triangular": "pl.solve",
    "solve_banded": "pl.solve",
    "pinvh": "pl.pinv",
}


def _say_instead(op: Any, frame: Any) -> None:
    """Warns where a function of scipy.linalg asked for the array: SciPy has no way to tell it what
    an operator is, and pylinop has the same function."""
    found, level = "", 4
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(("scipy.", "numpy.")):
            break
        name = frame.f_code.co_name
        if name == "wrapper":  # of batches, which has the function in hand
            inner = frame.f_locals.get("f")
            module, name = getattr(inner, "__module__", ""), getattr(inner, "__name__", "")
        if module.startswith("scipy.linalg.") and name in _INSTEAD:
            found = name
        frame, level = frame.f_back, level + 1
    if found:
        warnings.warn(
            f"scipy.linalg.{found} takes arrays: this {type(op).__name__} {op.shape} was made "
            f"dense. {_INSTEAD[found]} takes operators, with their structure",
            errors.MaterializationWarning,
            stacklevel=level,
        )


def dense_form(op: Any) -> NDArray[Any]:
    """A dense form that nobody asked for by name: under the memory rule, with a warning if
    large."""
    __tracebackhide__ = True
    materialising(op, op.size * (op.dtype.itemsize if op.dtype is not None else 8), False)
    a: NDArray[Any] = op.toarray()
    return a


def _first_out(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _linear(ufunc: str, a: Any, b: Any, out: Any) -> Any:
    """matmul, matvec, vecmat with an operator on either side."""
    ours = isinstance(a, _core.Operator)
    if ours and isinstance(b, _core.Operator):
        return a @ b
    if ufunc == "matvec":
        if not ours:
            return NotImplemented
        b = dlpack.as_array(b)
        if b.ndim < 1 or b.shape[-1] != a.shape[-1]:
            raise errors.shape_error(a, "matvec", f"(..., {a.shape[-1]})", b.shape)
        return interpreter.apply(a, b, N, True, out)
    if ufunc == "vecmat":
        if ours:
            return NotImplemented
        a = np.conjugate(dlpack.as_array(a))
        if a.ndim < 1 or a.shape[-1] != b.shape[-2]:
            raise errors.shape_error(b, "vecmat", f"(..., {b.shape[-2]})", a.shape)
        return interpreter.apply(b, a, T, True, out)
    if ours:
        return matmul(a, b, out)
    return rmatmul(b, a, out)


_BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "true_divide": lambda a, b: a / b,
    "divide": lambda a, b: a / b,
}
_UNARY = {
    "negative": lambda a: -a,
    "positive": lambda a: a,
    "conjugate": lambda a: a.conj(),
}


def _reflected(name: str, a: Any, b: Any) -> Any:
    """a <op> b with at least one operator; for arrays our own slots are used."""
    if isinstance(a, _core.Operator):
        return _BINARY[name](a, b)
    if name in ("add", "subtract") and np.isscalar(a):
        return NotImplemented  # np.add(1, A) is dense
    if name == "add":
        return add(a, b)
    if name == "subtract":
        return subtract(a, b)
    if name == "multiply":
        return rmultiply(a, b)
    raise ValueError("Can only divide a linear operator by a scalar.")


# The axes that x @= A names, of vectors and of matrices: those that matmul has anyway.
_IN_PLACE = ([(-1,), (-2, -1), (-1,)], [(-2, -1)] * 3)


def array_ufunc(
    self: Any, ufunc: Any, method: Any, *inputs: Any, out: Any = None, **kwargs: Any
) -> Any:
    """NumPy's ufuncs on operators; a result without an operator form is dense, with a warning."""
    name = ufunc.__name__
    target = _first_out(out)
    if any(isinstance(o, _core.Operator) for o in (out if isinstance(out, tuple) else (out,))):
        raise TypeError("an operator cannot be the out= of a ufunc")
    if kwargs.get("axes") in _IN_PLACE and name == "matmul":
        del kwargs["axes"]
    if method == "__call__" and not kwargs:
        if name in ("matmul", "matvec", "vecmat"):
            a, b = inputs
            return _linear(name, a, b, target)
        if out is None and name in _BINARY:
            result = _reflected(name, *inputs)
            if result is NotImplemented and _is_number(inputs):
                return _dense_call(ufunc, method, inputs, out, kwargs)
            return result
        if out is None and name in _UNARY:
            return _UNARY[name](*inputs)
        if out is None and name == "power" and isinstance(inputs[0], _core.Operator):
            return inputs[0] ** inputs[1]
    return _dense_call(ufunc, method, inputs, out, kwargs)


def _is_number(inputs: Any) -> bool:
    return any(np.isscalar(x) or (isinstance(x, np.ndarray) and x.ndim == 0) for x in inputs)


def _dense_call(ufunc: Any, method: Any, inputs: Any, out: Any, kwargs: dict[str, Any]) -> Any:
    if out is not None:
        kwargs["out"] = out
    if ufunc.__name__ not in ("equal", "not_equal"):
        warnings.warn(
            f"np.{ufunc.__name__} has no form for operators: the dense form is used",
            errors.MaterializationWarning,
            stacklevel=errors.outside(),
        )
    dense = [as_dense(x) if isinstance(x, _core.Operator) else x for x in inputs]
    return getattr(ufunc, method)(*dense, **kwargs)
