"""Arrays in and out: what is taken as a leaf, and what would lose digits without a word."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._programs.formulas import operations

__all__ = ["as_leaf", "is_array", "narrow", "operation", "out_dtype", "strong"]

_WIDE = ("float64", "complex128")
_TAKEN = frozenset(map(np.dtype, "?bBhHiIlLqQfdFD"))


def is_array(x: Any) -> bool:
    """Is x an array, traced or not?"""
    return isinstance(x, (jax.Array, np.ndarray, np.generic))


def narrow() -> bool:
    """Are JAX's arrays of 32 bits?"""
    return bool(not jax.config.jax_enable_x64)


def as_leaf(x: Any) -> Any:
    """An array of JAX. One of NumPy in double precision is refused where JAX would round it."""
    if isinstance(x, jax.Array):
        if x.dtype not in _TAKEN:
            raise TypeError(
                f"pylinop.jax has no arrays of dtype {x.dtype} (this one has shape "
                f"{tuple(x.shape)}): use x.astype('float32')"
            )
        if isinstance(x, jax.core.Tracer) and not x.ndim and getattr(x, "weak_type", False):
            # what JAX differentiates by may be a number of Python, without a shape, within it
            return jax.lax.convert_element_type(x, x.dtype)
        return x
    a = x if isinstance(x, np.ndarray) else np.asarray(x)
    if a.dtype.kind not in "biufc":
        raise TypeError(f"pylinop.jax takes arrays of numbers, got dtype {a.dtype}")
    if isinstance(x, np.ndarray) and a.dtype.name in _WIDE and narrow():
        small = np.empty(0, np.complex64 if a.dtype.kind == "c" else np.float32).dtype
        raise TypeError(
            f"an array of dtype {a.dtype} and shape {a.shape}, but JAX runs in 32 bits and would "
            "round it without a word: jax.config.update('jax_enable_x64', True) before the first "
            f"array, or give x.astype('{small}')"
        )
    return jnp.asarray(a)


def strong(c: Any, operator: Any) -> Any:
    """A number by which an operator is multiplied. One whose dtype is weak takes JAX's for both; an
    integer does not widen one of single precision, as ever in JAX."""
    whole = is_array(c) and c.dtype.kind in "iub"
    if whole and operator.dtype in (np.float32, np.complex64):
        return jnp.asarray(c, np.float32)
    if not getattr(c, "weak_type", False):
        return c
    return jax.lax.convert_element_type(c, jnp.result_type(operator.dtype, c))


def out_dtype(dtype: Any) -> Any:
    """The dtype of a result: in JAX without x64 all numbers have 32 bits."""
    return jax.dtypes.canonicalize_dtype(dtype)


operation = operations(lambda x: as_leaf(x) if is_array(x) else None)
