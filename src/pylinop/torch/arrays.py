"""Tensors in and out: what is taken as a leaf, seen as an array of NumPy without a copy, and what
is refused, since its numbers are not there or are not what its memory holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .._programs.formulas import operations

__all__ = [
    "LETTERS",
    "as_array",
    "as_leaf",
    "dtype_of",
    "is_array",
    "narrowed",
    "numpys",
    "operation",
    "out_dtype",
]

_DTYPES: dict[Any, Any] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
    torch.int64: np.dtype(np.int64),
    torch.int32: np.dtype(np.int32),
    torch.int16: np.dtype(np.int16),
    torch.int8: np.dtype(np.int8),
    torch.uint8: np.dtype(np.uint8),
    torch.bool: np.dtype(bool),
}
_SINGLE = {torch.float64: torch.float32, torch.complex128: torch.complex64}
_SINGLE |= {k: torch.float32 for k, v in _DTYPES.items() if v.kind in "iub"}
LETTERS = {k: v.str for k, v in _DTYPES.items()}
_TORCH = {v: k for k, v in _DTYPES.items()}


def is_array(x: Any) -> bool:
    """Is x a tensor, or an array of NumPy?"""
    return isinstance(x, (torch.Tensor, np.ndarray, np.generic))


def dtype_of(x: Any) -> Any:
    """The dtype of a tensor, as NumPy's."""
    return numpys(x.dtype, x.shape)


def numpys(dtype: Any, shape: Any) -> Any:
    """NumPy's dtype for one of torch, of a tensor of this shape."""
    found = _DTYPES.get(dtype)
    if found is None:
        raise TypeError(
            f"pylinop.torch has no tensors of dtype {dtype} (this one has shape "
            f"{tuple(shape)}): use x.float() or x.double()"
        )
    return found


def out_dtype(dtype: Any) -> Any:
    """The dtype of torch for one of NumPy."""
    return _TORCH[np.dtype(dtype)]


def as_leaf(x: Any) -> Any:
    """A dense tensor on any device; arrays of NumPy become tensors on the same memory."""
    if not isinstance(x, torch.Tensor) and torch.compiler.is_dynamo_compiling():
        x = torch.as_tensor(x)
    if not isinstance(x, torch.Tensor):
        a = np.asarray(x)
        if a.dtype not in _TORCH:
            raise TypeError(f"pylinop.torch takes arrays of numbers, got dtype {a.dtype}")
        return torch.from_numpy(a if a.flags.writeable else a.copy())
    if x.layout is not torch.strided:
        raise TypeError(
            f"a tensor of layout {x.layout} and shape {tuple(x.shape)}: pylinop.torch takes dense "
            "tensors; a sparse matrix is pylinop.torch.Sparse of its parts, or x.to_dense()"
        )
    dtype_of(x)
    return x


def narrowed(c: Any, operator: Any) -> Any:
    """A number by which an operator is multiplied: what has no dimensions does not widen one of
    single precision, as ever in torch. (One of no dtype of its own, an identity, takes c's.)"""
    if not is_array(c):
        return c
    x = as_leaf(c)
    due = _SINGLE.get(x.dtype)
    if due is None or operator.dtype not in (torch.float32, torch.complex64):
        return x
    return x.to(due)


def as_array(x: Any) -> Any:
    """The numbers of a plain tensor, not copied where its memory holds them."""
    if x._is_zerotensor():  # torch's own conversion ends the process
        return np.zeros(tuple(x.shape), dtype_of(x))
    return x.detach().resolve_conj().resolve_neg().numpy()


operation = operations(
    lambda x: as_leaf(x) if is_array(x) else None, torch.compiler.is_dynamo_compiling
)
