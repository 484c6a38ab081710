"""LazyArray: NumPy's contract, deferred. Building is here; ``_lazy_eval`` computes.

A LazyArray is a head, its arguments, a shape and a dtype. *Linear* heads (leaf, operator, matmul,
add, scale, over, view, inverse) have an operator form: a formula of them goes to the planner as one
expression. All other heads name a NumPy function that runs on the values of its arguments."""

import operator
from typing import Any

import numpy as np

from . import _core, _errors

__all__ = ["LazyArray", "evaluate", "lazy"]


def _binary(ufunc: Any) -> tuple[Any, Any]:
    """The method of an operator and the reflected one."""

    def forward(self, other):
        if node(other) is None:
            return NotImplemented
        return apply_ufunc(ufunc, "__call__", (self, other))

    def reflected(self, other):
        if node(other) is None:
            return NotImplemented
        return apply_ufunc(ufunc, "__call__", (other, self))

    return forward, reflected


class LazyArray:
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

    __slots__ = (
        *("_head", "_args", "_more", "_value", "_form", "_shape", "_dtype", "_height"),
        "__weakref__",
    )
    __array_priority__ = 30.0
    __hash__: Any = None  # type: ignore[assignment]  # == is element-wise

    def __init__(self, head, args, shape, dtype, more=None):
        self._head = head
        self._args = args
        self._more = more
        self._value = None
        self._form = None
        self._shape = shape
        self._dtype = dtype
        height = 0
        for x in args:
            if type(x) is LazyArray and x._height > height:
                height = x._height
        self._height = height + 1

    # -- what is known ----------------------------------------------------------------------------

    @property
    def shape(self):
        """The shape, a tuple."""
        return self._shape

    @property
    def dtype(self):
        """The dtype."""
        return self._dtype

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self):
        """Number of entries."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        from . import _lazy_text

        return f"<LazyArray shape={self.shape} dtype={self.dtype}: {_lazy_text.formula(self)}>"

    # -- values -----------------------------------------------------------------------------------

    def _computed(self):
        if self._value is None:
            _lazy_eval.compute(self)
        return self._value

    def toarray(self):
        """The value, in an array of its own."""
        return self._computed().copy()

    def __array__(self, dtype=None, copy=None):
        a = self._computed()
        if dtype is not None and np.dtype(dtype) != a.dtype:
            if copy is False:
                raise ValueError(f"a copy is needed to cast {a.dtype} to {np.dtype(dtype)}")
            return a.astype(dtype)
        return a.copy() if copy else a

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
        from . import _lazy_text

        return _lazy_text.rebuild, (_lazy_text.program(self),)

    def explain(self, run=False):
        """How the value is computed: an Explanation, text and data. Computes nothing; with ``run``
        a copy of the formula is computed, and the times are shown."""
        return _lazy_eval.explain(self, run)

    # -- arithmetic -------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        return apply_ufunc(ufunc, method, inputs, out, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        from . import _lazy_numpy

        return _lazy_numpy.call(func, args, kwargs)

    __add__, __radd__ = _binary(np.add)
    __sub__, __rsub__ = _binary(np.subtract)
    __mul__, __rmul__ = _binary(np.multiply)
    __truediv__, __rtruediv__ = _binary(np.true_divide)
    __floordiv__, __rfloordiv__ = _binary(np.floor_divide)
    __mod__, __rmod__ = _binary(np.remainder)
    __and__, __rand__ = _binary(np.bitwise_and)
    __or__, __ror__ = _binary(np.bitwise_or)
    __xor__, __rxor__ = _binary(np.bitwise_xor)
    __eq__: Any = _binary(np.equal)[0]
    __ne__: Any = _binary(np.not_equal)[0]
    __lt__: Any = _binary(np.less)[0]
    __le__: Any = _binary(np.less_equal)[0]
    __gt__: Any = _binary(np.greater)[0]
    __ge__: Any = _binary(np.greater_equal)[0]

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other):
        return matmul(other, self)

    def __neg__(self):
        return scaled(self, -1) if self.ndim >= 2 else apply_ufunc(np.negative, "__call__", (self,))

    def __pos__(self):
        return self

    def __abs__(self):
        return np.absolute(self)

    def __pow__(self, p):
        return np.power(self, p)

    def __rpow__(self, p):
        return np.power(p, self)

    # -- views ------------------------------------------------------------------------------------

    @property
    def T(self):
        """The transpose (NumPy's: of all axes)."""
        ndim = len(self._shape)
        if ndim < 2:
            return self
        return view(self, 1) if ndim == 2 else self.transpose()

    @property
    def mT(self):
        """The transpose of the last two axes."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return view(self, 1)

    @property
    def H(self):
        """The conjugate transpose of the last two axes."""
        return view(self, 3) if self.ndim >= 2 else self.conj()

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

    def __getitem__(self, key):
        return index(self, key)

    # -- functions --------------------------------------------------------------------------------

    def dot(self, other):
        """``np.dot``."""
        return np.dot(self, other)

    def trace(self, offset=0):
        """The sum of a diagonal; of a product without forming it."""
        return np.trace(self, offset)

    def diagonal(self, offset=0):
        """A diagonal; of a product without forming it."""
        return np.diagonal(self, offset)

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
        return cast(self, np.dtype(dtype))

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
    if assume_a is None and type(x) is np.ndarray and x.dtype.kind in "fc" and x.dtype.isnative:
        return LazyArray("leaf", (x,), x.shape, x.dtype)
    if isinstance(x, LazyArray):
        if assume_a is None:
            return x
        x = x._computed()
    if isinstance(x, _core.Operator):
        if assume_a is not None:
            raise ValueError("assume_a is for arrays: an operator knows its properties")
        return LazyArray("operator", (x,), x.shape, x.dtype)
    from ._forms import as_array

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


def evaluate(*expressions: Any) -> Any:
    """Compute several expressions together; parts they share are computed once.

    Parameters
    ----------
    *expressions : LazyArray

    Returns
    -------
    ndarray or tuple of ndarray
        One array for one expression, else a tuple. Read-only: they are what the expressions keep.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.lazy(np.eye(2))
    >>> S = A @ A.T
    >>> pl.evaluate(S, S.trace())[1]
    array(2.)
    """
    roots = [e if isinstance(e, LazyArray) else lazy(e) for e in expressions]
    _lazy_eval.compute(*roots)
    values = tuple(r._value for r in roots)
    return values[0] if len(values) == 1 else values


def node(x):
    """x as a LazyArray; None for what cannot be one."""
    if type(x) is LazyArray:
        return x
    if isinstance(x, (_core.Operator, np.ndarray, list, tuple, np.generic)) or np.isscalar(x):
        return lazy(x)
    return lazy(x) if hasattr(x, "__dlpack__") or hasattr(x, "__array__") else None


def _promoted(a, b):
    return a._dtype if a._dtype is b._dtype else np.result_type(a._dtype, b._dtype)


def matmul(a, b):
    """``a @ b``, deferred."""
    a, b = node(a), node(b)
    if a is None or b is None:
        return NotImplemented
    left, right = a._shape, b._shape
    if not left or not right:
        raise ValueError("matmul: scalar operands are not allowed, use '*' instead")
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise ValueError(
            f"matmul: the inner dimensions differ, {left} @ {right}: {left[-1]} and {inner}"
        )
    shape = left[-2:-1] + (right[-1:] if len(right) > 1 else ())
    if len(left) > 2 or len(right) > 2:
        shape = np.broadcast_shapes(left[:-2], right[:-2]) + shape
    return LazyArray("matmul", (a, b), shape, _promoted(a, b))


def view(a, mode):
    """Mode 1 transposed, 2 conjugated, 3 both; of the last two axes."""
    if mode & 2 and a._dtype.kind != "c":
        mode &= 1
    if a._head == "view":
        mode ^= a._more
        a = a._args[0]
    if mode == 0:
        return a
    shape = a._shape
    if mode & 1:
        shape = shape[:-2] + shape[:-3:-1]
    return LazyArray("view", (a,), shape, a._dtype, mode)


def scaled(a, c):
    """``c * a`` for a number or a 0-d LazyArray."""
    if isinstance(c, LazyArray):
        return LazyArray("scale", (a, c), a.shape, _promoted(a, c))
    dtype = np.multiply.resolve_dtypes((a.dtype, _as_dtype(c), None))[-1]
    return LazyArray("scale", (a, c), a.shape, dtype)


def over(a, c):
    """``a / c`` for a matrix and a number: a multiple where 1 / c is in range."""
    dtype = np.true_divide.resolve_dtypes((a.dtype, _as_dtype(c), None))[-1]
    return LazyArray("over", (a, c), a.shape, dtype)


def _as_dtype(x):
    """What resolve_dtypes takes: a dtype, or Python's type for a weak number."""
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return type(x) if not isinstance(x, bool) else np.dtype(bool)
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _is_scalar(x):
    return np.ndim(x) == 0 if not isinstance(x, (LazyArray, _core.Operator)) else x.shape == ()


def _is_single(x, ndim):
    """Is x one number, of at most ndim dimensions?"""
    if isinstance(x, _core.Operator):
        return False
    shape = np.shape(x)
    return len(shape) <= ndim and all(n == 1 for n in shape)


def _as_number(x):
    """The number that x holds, of no dimensions."""
    if isinstance(x, LazyArray):
        return index(x, (0,) * x.ndim) if x.ndim else x
    return np.asarray(x).reshape(())[()] if np.ndim(x) or isinstance(x, np.ndarray) else x


def _is_matrix_form(x):
    """A matrix or stack of floats that a formula makes, not one that is there."""
    made = isinstance(x, LazyArray) and x._head not in ("leaf", "call", "operator")
    return made and x.ndim >= 2 and x.dtype.kind in "fc"


def _linear_ufunc(name, inputs):
    """The linear form of a ufunc on matrices; None where there is none."""
    if name == "matmul":
        return matmul(*inputs)
    if name == "conjugate" and inputs[0].ndim >= 2:
        return view(inputs[0], 2)
    if name == "negative" and inputs[0].ndim >= 2:
        return scaled(inputs[0], -1)
    if name == "multiply":
        a, b = inputs
        if _is_single(a, np.ndim(b) if not isinstance(b, _core.Operator) else 0):
            a, b = b, a
        if isinstance(a, LazyArray) and a.ndim >= 2 and _is_single(b, a.ndim):
            return scaled(a, _as_number(b))
    if name == "divide" and _is_matrix_form(inputs[0]) and _is_single(inputs[1], inputs[0].ndim):
        return over(inputs[0], _as_number(inputs[1]))
    if name in ("add", "subtract"):
        a, b = (node(x) for x in inputs)
        if a is not None and b is not None and a.ndim >= 2 and a.shape == b.shape:
            b = b if name == "add" else scaled(b, -1)
            if _promoted(a, b).kind != "b":
                return LazyArray("add", (a, b), a.shape, _promoted(a, b))
    return None


def apply_ufunc(ufunc, method, inputs, out=None, kwargs=None):
    """A ufunc or one of its methods, deferred."""
    kwargs = {k: v for k, v in (kwargs or {}).items() if v is not None}
    name = ufunc.__name__
    if out is not None:
        values = tuple(x._computed() if isinstance(x, LazyArray) else x for x in inputs)
        if any(isinstance(o, LazyArray) for o in (out if isinstance(out, tuple) else (out,))):
            raise TypeError("a LazyArray cannot be the out= of a ufunc: its value never changes")
        return getattr(ufunc, method)(*values, out=out, **kwargs)
    for x in inputs:
        if isinstance(x, _core.Operator) and method == "__call__" and name == "multiply":
            other = inputs[0] if inputs[1] is x else inputs[1]
            if not _is_scalar(other):
                raise TypeError(
                    "LazyArray * operator: element-wise or the product? "
                    "write @ for the product, pl.multiply for element-wise"
                )
    if method == "__call__" and not kwargs:
        linear = _linear_ufunc(name, inputs)
        if linear is not None:
            return linear
    return _elementwise(ufunc, method, inputs, kwargs)


def _elementwise(ufunc, method, inputs, kwargs):
    from . import _lazy_numpy

    args = tuple(lazy(x) if isinstance(x, _core.Operator) else x for x in inputs)
    plain = method == "__call__" and ufunc.nout == 1 and ufunc.signature is None
    if not plain or set(kwargs) - {"dtype", "casting"}:
        return _lazy_numpy.by_value(getattr(ufunc, method), args, kwargs)
    if "dtype" in kwargs:
        dtype = np.dtype(kwargs["dtype"])
    else:
        dtype = ufunc.resolve_dtypes(tuple(map(_as_dtype, args)) + (None,))[-1]
    shape = np.broadcast_shapes(*(np.shape(a) for a in args))
    return LazyArray("call", args, shape, dtype, (ufunc, kwargs))


def cast(a, dtype):
    """``a.astype(dtype)``."""
    if a.dtype == dtype:
        return a
    return LazyArray("call", (a,), a.shape, dtype, (_astype, {"dtype": dtype}))


def _astype(x, dtype):
    return np.asarray(x).astype(dtype)


def _plain_shape(shape, parts):
    """The shape of an array indexed by integers and slices; None where NumPy is to say."""
    left = []
    if len(parts) > len(shape):
        return None
    for n, k in zip(shape, parts):  # noqa: B905  # what is not named stays
        if type(k) is slice:
            left.append(len(range(*k.indices(n))))
        elif type(k) is not int or not -n <= k < n:
            return None
    return (*left, *shape[len(parts) :])


def index(a, key):
    """``a[key]``, deferred; the shape is NumPy's, found on an array without memory."""
    parts = key if isinstance(key, tuple) else (key,)
    shape = _plain_shape(a._shape, parts)
    if shape is not None:
        return LazyArray("index", (a,), shape, a._dtype, key)
    hollow = np.broadcast_to(np.zeros((), bool), a.shape)
    if any(isinstance(k, LazyArray) for k in parts):
        parts = tuple(k._computed() if isinstance(k, LazyArray) else k for k in parts)
        key = parts if isinstance(key, tuple) else parts[0]
    shape = np.shape(hollow[key])
    return LazyArray("index", (a,), shape, a.dtype, key)


def inverse(a):
    """``inv(a)``, deferred; applied as a solve."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise _errors.LinAlgError(f"inv needs a square matrix, got shape {a.shape}")
    dtype = a._dtype
    if dtype.char not in "fdFD":
        dtype = np.result_type(dtype, np.float32 if dtype.kind in "fc" else np.float64)
    return LazyArray("inverse", (a,), a._shape, dtype)


def solve(a, b):
    """``solve(a, b)``, deferred: a vector b only if it is 1-D."""
    return matmul(inverse(node(a)), b)


def number_of(a, f):
    """``f`` of a square matrix, a number, deferred; of the operator form."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise _errors.LinAlgError(f"Last 2 dimensions of the array must be square: {a.shape}")
    dtype = a.dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    return LazyArray("of form", (a,), a.shape[:-2], dtype, (f, {}))


LazyArray.__module__ = "pylinop"

from . import _lazy_eval  # noqa: E402  # it needs the class
