"""LazyArray: NumPy's contract, deferred.

A LazyArray is a head, its arguments, a shape and a dtype: a node of the core (src/c/py/lazy/py_lazy.c),
with the methods here that are NumPy's functions under another name. *Linear* heads (leaf, operator,
matmul, add, scale, over, view, inverse) have an operator form: a formula of them goes to the
planner as one expression. All other heads name a NumPy function that runs on the values of its
arguments. ``_lazy_build`` makes the nodes that the core does not; ``_lazy_eval`` helps to compute.
"""

import operator
from typing import Any

import numpy as np

from .. import _core

__all__ = ["LazyArray", "evaluate", "lazy"]


class LazyArray(_core.Lazy):
    """An array computed when its value is needed; made by `lazy`.

    Every operation that touches one gives another: arithmetic and NumPy's element-wise functions,
    ``@``, ``.T``, reductions, indexing. ``np.asarray``, ``float``, ``bool``, ``.toarray()``
    compute; the result is kept and handed out read-only. Printing does not compute.

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

    def __repr__(self):
        from . import text

        return f"<LazyArray shape={self.shape} dtype={self.dtype}: {text.formula(self)}>"

    # -- values -----------------------------------------------------------------------------------

    def item(self, *args):
        """One element as a Python number."""
        return self._computed().item(*args)

    def __float__(self):
        return float(self._computed())

    def __int__(self):
        return int(self._computed())

    def __complex__(self):
        return complex(self._computed())

    def __bool__(self):
        return bool(self._computed())

    def __index__(self):
        return operator.index(self._computed()[()])

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __reduce__(self):
        from . import text

        return text.rebuild, (text.program(self),)

    def explain(self, run=False):
        """How the value is computed: an Explanation, text and data. Computes nothing; with ``run``
        a copy of the formula is computed, and the times are shown."""
        from . import evaluate as _evaluate

        return _evaluate.explain(self, run)

    # -- NumPy's functions ------------------------------------------------------------------------

    def __array_function__(self, func, types, args, kwargs):
        from . import numpy_functions

        return numpy_functions.call(func, args, kwargs)

    def conj(self):
        """The complex conjugate."""
        return np.conjugate(self)

    conjugate = conj

    @property
    def real(self):
        """The real part."""
        return np.real(self)

    @property
    def imag(self):
        """The imaginary part."""
        return np.imag(self)

    def transpose(self, *axes):
        """The axes in another order."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0]
        return np.transpose(self, axes or None)

    def dot(self, other):
        """``np.dot``."""
        return np.dot(self, other)

    def trace(self, offset=0):
        """The sum of a diagonal; of a product without forming it."""
        from . import numpy_functions

        return numpy_functions.trace(self, offset) if self.ndim == 2 else np.trace(self, offset)

    def diagonal(self, offset=0):
        """A diagonal; of a product without forming it."""
        from . import numpy_functions

        return (
            numpy_functions.diagonal(self, offset) if self.ndim == 2 else np.diagonal(self, offset)
        )

    def sum(self, axis=None, dtype=None, keepdims=False):
        """The sum over axes."""
        return np.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis=None, dtype=None, keepdims=False):
        """The mean over axes."""
        return np.mean(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis=None, keepdims=False):
        """The maximum over axes."""
        return np.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis=None, keepdims=False):
        """The minimum over axes."""
        return np.min(self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape):
        """Another shape of the same numbers."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype, copy=True):
        """Another dtype."""
        from . import build

        return build.cast(self, np.dtype(dtype))

    def copy(self):
        """Itself: a value that cannot change."""
        return self


# -- making them -----------------------------------------------------------------------------------


def lazy(x: Any, assume_a: str | None = None) -> LazyArray:
    """A `LazyArray` of an array or an operator: what is done with it is computed when needed.

    Parameters
    ----------
    x : array_like or operator
        Borrowed, not copied.
    assume_a : str, optional
        A promise about a square matrix in scipy.linalg.solve's words: 'sym', 'her', 'pos',
        'lower triangular', 'upper triangular'.

    Returns
    -------
    LazyArray

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> X = pl.lazy(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]))
    >>> b = pl.inv(X.T @ X) @ X.T @ np.array([1.0, 3.0, 5.0])
    >>> np.round(b, 12).toarray()
    array([1., 2.])
    """
    plain: LazyArray | None = _core._lazy_leaf(x) if assume_a is None else None
    if plain is not None:
        return plain
    if issubclass(type(x), LazyArray):  # isinstance asks operators for their __class__: slow
        if assume_a is None:
            return x
        x = x._computed()
    if isinstance(x, _core.Operator):
        if assume_a is not None:
            raise ValueError("assume_a is for arrays: an operator knows its properties")
        return LazyArray("operator", (x,), x.shape, x.dtype or _dtype_of_arrays(x))
    from .._operators.convert import as_array

    a = as_array(x)
    if a.dtype.kind not in "biufc":
        raise TypeError(f"lazy takes arrays of numbers, got dtype {a.dtype}")
    if assume_a is not None and (a.ndim < 2 or a.shape[-1] != a.shape[-2]):
        raise ValueError(f"assume_a={assume_a!r} is for square matrices, got shape {a.shape}")
    if assume_a is not None:
        form = _core.Dense(a, assume_a=assume_a)  # says now what is wrong with the word
        made = LazyArray("leaf", (a,), a.shape, a.dtype, assume_a)
        made._form = form
        return made
    return LazyArray("leaf", (a,), a.shape, a.dtype)


def _dtype_of_arrays(op):
    """The dtype of an operator that does not say it: of its arrays together."""
    from .._operators.convert import arrays_of

    arrays = arrays_of(op)
    if not arrays:
        raise TypeError(
            f"lazy takes operators that say their dtype, this {type(op).__name__} "
            f"{op.shape} does not: give it dtype="
        )
    return np.result_type(*arrays)


def evaluate(*expressions: Any) -> Any:
    """Compute several expressions together; parts they share are computed once.

    Parameters
    ----------
    *expressions : LazyArray

    Returns
    -------
    ndarray or tuple of ndarray
        One array for one expression, else a tuple. Read-only: they are what the expressions keep;
        results of one plan lie in one block of memory, which lives as long as one of them.

    Notes
    -----
    Linear expressions of one dtype are one plan, at most 8 of them: what they share is chosen by
    cost for all together.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.lazy(np.eye(2))
    >>> S = A @ A.T
    >>> pl.evaluate(S, S.trace())[1]
    array(2.)
    """
    roots = [lazy(e) for e in expressions]
    if len(roots) > 1:
        from . import evaluate as _evaluate

        _evaluate.together(roots)
    values = tuple(r._computed() for r in roots)
    return values[0] if len(values) == 1 else values


LazyArray.__module__ = "pylinop"
