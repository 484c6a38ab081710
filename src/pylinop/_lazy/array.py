"""LazyArray: NumPy's contract, deferred.

A LazyArray is a head, its arguments, a shape and a dtype: a node of the core (py_lazy.c), with the
methods here that are NumPy's functions under another name. *Linear* heads (leaf, operator,
matmul, add, scale, over, view, inverse) have an operator form: a formula of them goes to the
planner as one expression. All other heads name a NumPy function that runs on the values of its
arguments. ``build.py`` makes the nodes that the core does not; ``evaluate.py`` helps to compute.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Never, NoReturn

import numpy as np

from .. import _core
from .._base.array_methods import ArrayMethods, given
from .._base.lazy_import import Later
from .._operators import refusals
from . import build, numpy_functions, text
from .numpy_pieces import call

if TYPE_CHECKING:
    import pylinop as _methods

__all__ = ["LazyArray"]

_explain = Later("_api.explain")  # a layer above


class LazyArray(ArrayMethods, _core.Lazy):
    """An array computed when its value is needed; made by `lazy`.

    Every operation on a LazyArray gives a LazyArray: arithmetic and NumPy's element-wise functions,
    ``@``, ``.T``, reductions, indexing. ``np.asarray``, ``float``, ``bool``, ``.toarray()``
    compute; the result is cached and handed out read-only. Printing does not compute.

    Notes
    -----
    The value is that of the operands at the first evaluation. ``*`` and ``==`` are element-wise.
    Formulas are planned as a whole: products in the cheapest order, ``inv(A) @ b`` as a solve,
    the trace of a product without the product.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.lazy(np.arange(4.0).reshape(2, 2))
    >>> y = A.T @ A @ np.ones(2)
    >>> y
    <LazyArray shape=(2,) dtype=float64: A0.T @ A0 @ a1>
    >>> np.asarray(y)
    array([10., 16.])
    """

    __slots__ = ()
    __array_priority__ = 30.0

    def __repr__(self) -> str:
        return f"<LazyArray shape={self.shape} dtype={self.dtype}: {text.formula(self)}>"

    if TYPE_CHECKING:  # the functions themselves, set by pylinop/__init__.py
        cholesky = _methods.cholesky
        det = _methods.det
        eigh = _methods.eigh
        eigvalsh = _methods.eigvalsh
        factorized = _methods.factorized
        inv = _methods.inv
        logdet = _methods.logdet
        norm = _methods.norm
        pinv = _methods.pinv
        sample = _methods.sample
        slogdet = _methods.slogdet
        solve = _methods.solve
        svd = _methods.svd

    # -- values -----------------------------------------------------------------------------------

    def item(self, *args: Any) -> Any:
        """One element as a Python number."""
        return self._computed().item(*args)

    def __float__(self) -> float:
        return float(self._computed())

    def __int__(self) -> int:
        return int(self._computed())

    def __complex__(self) -> complex:
        return complex(self._computed())

    def __bool__(self) -> bool:
        return bool(self._computed())

    def __index__(self) -> int:
        return operator.index(self._computed()[()])

    def __dlpack__(self, *, copy: bool | None = None, **how: Any) -> Any:
        """The value for another library: a copy, since libraries may write to what they are given
        and the value is everyone's."""
        value = self._computed()
        return (value if copy is False else np.array(value)).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU

    def __format__(self, spec: str) -> str:
        """A number in a format; without one, and for arrays, the text of the expression."""
        if not spec:
            return str(self)
        if self.shape:
            raise TypeError(
                f"the format {spec!r} is for numbers, and this is a LazyArray of shape "
                f"{self.shape}: format its elements, or np.asarray(x)"
            )
        return format(self._computed()[()], spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.shape:
            return np.round(self, ndigits or 0)
        known: Any = self._computed()[()]
        return round(known, ndigits)

    def __trunc__(self) -> int:
        return int(self._computed())

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __invert__(self) -> Any:
        return np.invert(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __setitem__(self, key: Never, value: Never) -> NoReturn:
        raise TypeError(
            "a LazyArray cannot be written to, since its value cannot change: np.where(mask, a, x) "
            "is a new one, x.toarray() an array of your own"
        )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _ARRAYS_ONLY]

    def _repr_html_(self) -> str:
        return text.html(self)

    def tolist(self) -> Any:
        """The value as nested lists of Python's numbers."""
        return self._computed().tolist()

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the value, once it is computed."""
        return int(self.size * self.dtype.itemsize)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __reduce__(self) -> Any:
        for x in text.postorder(self):
            x._guarded()  # a copy has no guard
        return text.rebuild, (text.program(self),)

    def explain(self, run: bool = False) -> Any:
        """Explain how the value is computed: an Explanation, as text and data. Nothing is computed,
        except with ``run``: then a copy of the formula is computed, and the times are shown."""
        return _explain.of_lazy(self, run)

    # -- NumPy's functions ------------------------------------------------------------------------

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        return call(func, args, kwargs)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
    ) -> Any:
        """The sum of a diagonal; of a product without forming it."""
        more = given(dtype=dtype, out=out)
        if self.ndim == 2 and not more and (axis1, axis2) == (0, 1):
            return numpy_functions.trace(self, offset)
        return np.trace(self, offset, axis1, axis2, **more)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """A diagonal; of a product without forming it."""
        if self.ndim == 2 and (axis1, axis2) == (0, 1):
            return numpy_functions.diagonal(self, offset)
        return np.diagonal(self, offset, axis1, axis2)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Any:
        """The product over axes."""
        more = given(dtype=dtype, out=out, initial=initial, where=where)
        return np.prod(self, axis=axis, keepdims=keepdims, **more)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Any:
        """The variance over axes."""
        more = given(dtype=dtype, out=out, where=where, mean=mean)
        return np.var(self, axis=axis, ddof=ddof, keepdims=keepdims, **more)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Any:
        """The standard deviation over axes."""
        more = given(dtype=dtype, out=out, where=where, mean=mean)
        return np.std(self, axis=axis, ddof=ddof, keepdims=keepdims, **more)

    def any(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Is any element true?"""
        return np.any(self, axis=axis, keepdims=keepdims, **given(out=out, where=where))

    def all(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Are all elements true?"""
        return np.all(self, axis=axis, keepdims=keepdims, **given(out=out, where=where))

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Where the maximum is."""
        return np.argmax(self, axis=axis, keepdims=keepdims, **given(out=out))

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Where the minimum is."""
        return np.argmin(self, axis=axis, keepdims=keepdims, **given(out=out))

    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
        """The indices that sort along an axis."""
        return np.argsort(self, axis=axis, kind=kind, order=order)

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
        """Sorted along an axis: a new LazyArray, since the value of this one cannot change."""
        return np.sort(self, axis=axis, kind=kind, order=order)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sums up to each element."""
        return np.cumsum(self, axis=axis, **given(dtype=dtype, out=out))

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The products up to each element."""
        return np.cumprod(self, axis=axis, **given(dtype=dtype, out=out))

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """Elements along an axis."""
        more = given(out=out, mode=None if mode == "raise" else mode)
        return np.take(self, indices, axis=axis, **more)

    def nonzero(self) -> Any:
        """Where elements are not zero: arrays of indices, computed now."""
        return self._computed().nonzero()

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Limited to an interval."""
        return np.clip(self, min, max, **given(out=out))

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Rounded to decimals."""
        return np.round(self, decimals, **given(out=out))

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of length 1."""
        return np.squeeze(self, axis)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Elements repeated."""
        return np.repeat(self, repeats, axis)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The same numbers in a new dtype."""
        return build.cast(self, np.dtype(dtype))

    def copy(self) -> Any:
        """The LazyArray itself, since its value cannot change."""
        return self


LazyArray.__module__ = "pylinop"


# What arrays have and LazyArrays have not.
_ARRAYS_ONLY = {name for name in dir(np.ndarray) if name[0] != "_" and not hasattr(LazyArray, name)}
for _name in sorted(_ARRAYS_ONLY):
    _instead = f"np.asarray(x).{_name} is that of its value"
    setattr(LazyArray, _name, refusals.Elsewhere(_name, _instead))
