"""What the factors of `factorized` are made of beside other factors: thin arrays, norms, sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import dlpack, errors
from .._base.dtypes import inexact


def sides(op: Any, b: Any) -> Any:
    """A right side as an array that fits."""
    x = dlpack.as_array(b)
    n = op.shape[-1]
    if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else -2] != n:
        raise errors.shape_error(op, "solve", f"({n},) or (..., {n}, k)", x.shape)
    return x.astype(np.float64) if x.dtype.kind in "iub" else x


def size_of(op: Any) -> int:
    """Bytes of the arrays of an expression, each once."""
    found: dict[int, int] = {}
    for part in errors.parts(op):
        for a in part._arrays or ():
            found[a.__array_interface__["data"][0]] = a.nbytes
    return sum(found.values())


def adjoint_of(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def columns(name: str, x: Any, n: int) -> Any:
    """A vector or matrix of n rows as a matrix of floats that nobody can write to."""
    a = dlpack.as_array(x)
    a = a[:, None] if a.ndim == 1 else a
    if a.ndim != 2 or a.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {np.shape(x)}")
    if a.dtype.kind not in "biufc":
        raise TypeError(f"{name} of dtype {a.dtype}: numbers are taken")
    return dlpack.immutable_copy(a.astype(inexact(a.dtype), copy=False))


def plain(a: Any) -> Any:
    """An array that pickles as such."""
    return None if a is None else np.array(a)


def either(U: Any, V: Any) -> Any:
    """V, or U where there is none."""
    return U if V is None else V


def norms(x: Any) -> Any:
    """The 2-norm of each column."""
    return np.linalg.norm(x, axis=-1 if x.ndim == 1 else -2)


def norm_below(op: Any, dtype: Any) -> float:
    """A lower bound of |op|, by steps of a power iteration."""
    v = np.random.default_rng(20).standard_normal(op.shape[-1]).astype(dtype)
    best = 0.0
    for _ in range(4):
        size = float(np.linalg.norm(v))
        if not 0 < size < np.inf:
            break
        v = (op @ (v / v.real.dtype.type(size))).astype(dtype, copy=False)
        found = float(np.linalg.norm(v))
        best = found if found > best else best
    return best


def finer(dtype: Any, other: Any) -> bool:
    """Does the first dtype carry more digits?"""
    return bool(np.finfo(dtype).eps < np.finfo(other).eps)


def normal(like: Any, shape: Any, generator: Any) -> Any:
    """Standard normal numbers for each column; complex ones are circular."""
    size = (*shape, like.shape[1])
    w = generator.standard_normal(size)
    if like.dtype.kind == "c":
        w = (w + 1j * generator.standard_normal(size)) / np.sqrt(2)
    return w.astype(like.dtype, copy=False)


def product(a: Any, b: Any) -> Any:
    """The slogdet of a product, of those of its factors."""
    return type(a)(a.sign * b.sign, a.logabsdet + b.logabsdet)
