"""NumPy's functions as methods, for whatever NumPy asks by ``__array_function__``."""

from __future__ import annotations

from typing import Any

import numpy

__all__ = ["ArrayMethods"]
np: Any = numpy  # whose types know arrays alone


class ArrayMethods:
    """Methods of arrays that are NumPy's functions of the object."""

    __slots__ = ()

    @property
    def real(self) -> Any:
        """The real part."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return np.imag(self)

    def conj(self) -> Any:
        """The complex conjugate."""
        return np.conjugate(self)

    conjugate = conj

    def transpose(self, *axes: Any) -> Any:
        """The axes in a new order."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            return np.transpose(self, axes[0] or None)
        return np.transpose(self, axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two axes exchanged."""
        return np.swapaxes(self, axis1, axis2)

    def reshape(self, *shape: Any) -> Any:
        """The same numbers in a new shape."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Any:
        """In one dimension."""
        return np.reshape(self, (-1,))

    flatten = ravel

    def dot(self, other: Any) -> Any:
        """``np.dot``."""
        return np.dot(self, other)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """The sum over axes."""
        if dtype is None:
            return np.sum(self, axis=axis, keepdims=keepdims)
        return np.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """The mean over axes."""
        if dtype is None:
            return np.mean(self, axis=axis, keepdims=keepdims)
        return np.mean(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The maximum over axes."""
        return np.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The minimum over axes."""
        return np.min(self, axis=axis, keepdims=keepdims)
