"""NumPy's functions as methods, for whatever NumPy asks by ``__array_function__``."""

from __future__ import annotations

from typing import Any

import numpy

__all__ = ["ArrayMethods", "given"]
np: Any = numpy  # whose types know arrays alone
_NONE = numpy._NoValue


def given(**keywords: Any) -> dict[str, Any]:
    """Those of NumPy's keywords that say something: functions are deferred with fewer of them."""
    return {k: v for k, v in keywords.items() if not (v is None or v is True or v is _NONE)}


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

    def ravel(self, order: str = "C") -> Any:
        """In one dimension."""
        return np.reshape(self, (-1,)) if order == "C" else np.ravel(self, order=order)

    def flatten(self, order: str = "C") -> Any:
        """In one dimension."""
        return self.ravel(order)

    def dot(self, b: Any, out: Any = None) -> Any:
        """``np.dot``."""
        return np.dot(self, b, **given(out=out))

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _NONE,
        where: Any = True,
    ) -> Any:
        """The sum over axes."""
        more = given(dtype=dtype, out=out, initial=initial, where=where)
        return np.sum(self, axis=axis, keepdims=keepdims, **more)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """The mean over axes."""
        more = given(dtype=dtype, out=out, where=where)
        return np.mean(self, axis=axis, keepdims=keepdims, **more)

    def max(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _NONE,
        where: Any = True,
    ) -> Any:
        """The maximum over axes."""
        more = given(out=out, initial=initial, where=where)
        return np.max(self, axis=axis, keepdims=keepdims, **more)

    def min(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _NONE,
        where: Any = True,
    ) -> Any:
        """The minimum over axes."""
        more = given(out=out, initial=initial, where=where)
        return np.min(self, axis=axis, keepdims=keepdims, **more)
