"""Arrays of symbolic shapes: placeholders, and formulas of them. A formula is a function, its
arguments, a shape and a dtype; it is called on LazyArrays when the sizes are known
(`template.py`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base.array_methods import ArrayMethods
from .._base.checks import is_lazy
from .._base.errors import NoValue
from .expressions import Size, product, smallest
from .provenance import Equation, Known, Line, equal, here, name_of

__all__ = ["RULES", "Symbolic", "placeholder"]

RULES: dict[Any, Callable[..., Any]] = {}  # what a function makes of symbolic shapes


def _ufunc(ufunc: Any, a: Any, b: Any) -> Any:
    """A ufunc of operands of which one may be an operator: NumPy would ask that first."""
    return RULES["ufunc"](ufunc, a, b)


def _both_ways(ufunc: Any) -> Any:
    """A ufunc as an operator, and as that of a number or an array on the left."""

    def run(self: Any, other: Any) -> Any:
        return _ufunc(ufunc, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return _ufunc(ufunc, other, self)

    return run, reflected


def _method(f: Any) -> Any:
    """A function of NumPy's as a method."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return f(self, *args, **kwargs)

    run.__doc__ = f"``np.{f.__name__}``."
    return run


class Symbolic(ArrayMethods):
    """A placeholder, or a formula of placeholders: NumPy's operators and functions of it are
    formulas again. It has no value; `function` makes a function of it."""

    _symbolic = True
    __array_priority__ = 40.0

    def __init__(
        self,
        shape: Iterable[Any],
        dtype: Any,
        function: Any = None,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
        equations: Iterable[Equation] = (),
    ) -> None:
        self.shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._function, self._args, self._kwargs = function, args, kwargs or {}
        self._equations = tuple(equations)
        self._name = ""
        self._assume: str | None = None
        self._line: Line | None = None

    # -- what it is --------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """How many elements: an int or a Size."""
        return product(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __repr__(self) -> str:
        what = f"placeholder {self._name}".rstrip() if self._function is None else "formula"
        return f"<{what} shape={shown(self.shape)} dtype={self.dtype}>"

    def _named(self) -> str:
        """With its name, for messages."""
        if self._function is not None:
            return f"the formula of shape {shown(self.shape)}"
        return f"{self._label()} {shown(self.shape)}"

    def _label(self) -> str:
        if not self._name:
            self._name = name_of(self)
        return self._name or "placeholder"

    def _gathered(self) -> list[Equation]:
        """The equations of everything that it is made of."""
        return [e for x in below([self]) for e in x._equations]

    def _of(self, function: Any, args: Any, kwargs: Any, error: Any) -> Any:
        rule = RULES.get(function)
        if rule is None:
            raise error
        return _ruled(rule, "pl.", function, args, kwargs)

    def _kind(self, cls: Any, args: Any, kwargs: Any) -> Any:
        return RULES["kind"](cls, args, kwargs)

    # -- no value ----------------------------------------------------------------------------------

    def _no_value(self, *_: Any, **__: Any) -> Any:
        what = "placeholder " if self._function is None else ""
        raise NoValue(
            f"{what}{self._named()} has no value: f = pl.function(placeholders, formula) makes a"
            " function of arrays",
            self,
        )

    __float__ = __int__ = __complex__ = __bool__ = __index__ = __array__ = _no_value
    item = toarray = tolist = _no_value

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    # -- NumPy's protocols -------------------------------------------------------------------------

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        if out is not None:
            raise TypeError(f"np.{ufunc.__name__}(out=) of a placeholder: it has no value yet")
        if method != "__call__":
            raise NotImplementedError(f"np.{ufunc.__name__}.{method} of placeholders")
        rule = RULES.get(ufunc) or RULES["ufunc"]
        return rule(*((ufunc, *inputs) if ufunc not in RULES else inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        rule = RULES.get(func)
        if rule is None:
            raise NotImplementedError(
                f"np.{getattr(func, '__name__', func)} of placeholders: what it makes of symbolic"
                " shapes is not known here; call it on the function's result"
            )
        return _ruled(rule, "np.", func, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        return RULES["index"](self, key)

    __add__, __radd__ = _both_ways(np.add)
    __sub__, __rsub__ = _both_ways(np.subtract)
    __mul__, __rmul__ = _both_ways(np.multiply)
    __truediv__, __rtruediv__ = _both_ways(np.true_divide)
    __floordiv__, __rfloordiv__ = _both_ways(np.floor_divide)
    __mod__, __rmod__ = _both_ways(np.remainder)
    __and__, __rand__ = _both_ways(np.bitwise_and)
    __or__, __ror__ = _both_ways(np.bitwise_or)
    __xor__, __rxor__ = _both_ways(np.bitwise_xor)
    __lshift__, __rlshift__ = _both_ways(np.left_shift)
    __rshift__, __rrshift__ = _both_ways(np.right_shift)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and other == 2:
            return np.square(self)  # as NumPy does, which has another dtype of booleans
        return _ufunc(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _ufunc(np.power, other, self)

    def __matmul__(self, other: Any) -> Any:
        return RULES[np.matmul](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return RULES[np.matmul](other, self)

    def __invert__(self) -> Any:
        return np.invert(self)

    def __neg__(self) -> Any:
        return np.negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return np.absolute(self)

    def __eq__(self, other: object) -> Any:
        return _ufunc(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return _ufunc(np.not_equal, self, other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Any:
        return _ufunc(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _ufunc(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return _ufunc(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return _ufunc(np.greater_equal, self, other)

    # -- methods -----------------------------------------------------------------------------------

    prod, any, all, std, var = map(_method, (np.prod, np.any, np.all, np.std, np.var))
    argmax, argmin, cumsum, clip = map(_method, (np.argmax, np.argmin, np.cumsum, np.clip))
    take, repeat, round, squeeze = map(_method, (np.take, np.repeat, np.round, np.squeeze))

    @property
    def T(self) -> Any:
        """The axes in the opposite order."""
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        """The matrices transposed."""
        return np.swapaxes(self, -1, -2)

    @property
    def H(self) -> Any:
        """The matrices transposed and conjugated."""
        return np.conjugate(self.mT)

    def astype(self, dtype: Any) -> Any:
        """The same numbers in a new dtype."""
        return RULES["astype"](self, dtype)

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return np.trace(self)

    def diagonal(self, offset: int = 0) -> Any:
        """A diagonal."""
        return np.diagonal(self, offset)

    def inv(self) -> Any:
        """The inverse."""
        return np.linalg.inv(self)

    def solve(self, b: Any) -> Any:
        """The x with A x = b."""
        return np.linalg.solve(self, b)

    def det(self) -> Any:
        """The determinant."""
        return np.linalg.det(self)

    def logdet(self) -> Any:
        """The logarithm of the determinant."""
        return RULES["logdet"](self)


def _ruled(rule: Any, package: str, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function's rule makes of these arguments, or an error that names those that the rule
    does not know."""
    name = f"{package}{getattr(f, '__name__', f)}"
    known = inspect.signature(rule)
    try:
        known.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        return rule(*args, **kwargs)
    try:
        given = inspect.signature(f).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    more = [k for k in kwargs if k not in known.parameters] or list(given)[len(known.parameters) :]
    raise NotImplementedError(
        f"{name} of placeholders takes no {', '.join(more) or 'such arguments'}: call it in a"
        " function of arrays"
    )


def shown(shape: Sequence[Any]) -> str:
    """A shape as Python shows it."""
    inner = ", ".join(str(n) for n in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def below(roots: Iterable[Symbolic]) -> list[Symbolic]:
    """Formulas that some are made of, arguments first, each once."""
    order: list[Symbolic] = []
    seen: set[int] = set()
    stack = [(r, False) for r in list(roots)[::-1]]
    while stack:
        x, ready = stack.pop()
        if ready:
            order.append(x)
        elif id(x) not in seen:
            seen.add(id(x))
            stack.append((x, True))
            stack += [(y, False) for y in list(held(x._args, x._kwargs))[::-1]]
    return order


def held(*values: Any) -> Iterator[Symbolic]:
    """The formulas in arguments, through tuples, lists and dicts."""
    for x in values:
        if isinstance(x, Symbolic):
            yield x
        elif type(x) in (list, tuple):
            yield from held(*x)
        elif type(x) is dict:
            yield from held(*x.values())


def operand(x: Any) -> Any:
    """Something with a shape and a dtype: a formula, or what has a value already."""
    if isinstance(x, (Symbolic, _core.Operator, np.ndarray)) or is_lazy(x):
        return x
    a = np.asarray(x)
    if a.dtype.kind not in "biufc":
        raise TypeError(f"formulas are of arrays of numbers, got {type(x).__name__}")
    return a if a.ndim else x


def shape_of(x: Any) -> tuple[Any, ...]:
    """The sizes of an operand; each number with whose it is."""
    if isinstance(x, Symbolic):
        return x.shape
    shape = tuple(int(n) for n in np.shape(x))
    line = here()
    return tuple(Known.made(n, f"{type(x).__name__} {shape}", line) for n in shape)


def named(x: Any) -> str:
    """An operand for messages."""
    if isinstance(x, Symbolic):
        return x._named() if x._function is None else shown(x.shape)
    return shown(np.shape(x)) if np.ndim(x) else repr(x)


class Sides:
    """Equations that one operation makes."""

    def __init__(self, why: str) -> None:
        self.why, self.line = why, here()
        self.made: list[Equation] = []

    def same(self, a: Any, b: Any, label: str = "") -> Any:
        """The size that two are, after which they are equal: a number where one is."""
        if a == b:
            return a if isinstance(a, Known) else b
        if label:
            a, b = (x.labelled(label) if isinstance(x, Known) else x for x in (a, b))
        a, b = (b, a) if isinstance(b, Size) and not isinstance(a, Size) else (a, b)
        e = equal(a, b, self.why, self.line)
        if not isinstance(a, Size):
            from_both = f"{e}"
            raise ValueError(f"no sizes fit:\n  {from_both}")
        self.made.append(e)
        return b if not isinstance(b, Size) or len(b.terms) < len(a.terms) else a

    def least(self, a: Any, b: Any) -> None:
        """a >= b."""
        if isinstance(a, Size) or isinstance(b, Size):
            if smallest(a - b) >= 0:
                return
            self.made.append(Equation(a, b, True, self.why, self.line))
        elif a < b:
            raise ValueError(f"no sizes fit:\n  {Equation(a, b, True, self.why, self.line)}")

    def together(self, shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """The shape that some broadcast to: a 1 broadcasts, a symbol never does."""
        ndim = max(map(len, shapes), default=0)
        made: list[Any] = []
        for k in range(ndim, 0, -1):
            sizes = [s[-k] for s in shapes if len(s) >= k]
            wide = [n for n in sizes if isinstance(n, Size) or n != 1]
            total = wide[0] if wide else 1
            for n in wide[1:]:
                total = self.same(total, n)
            made.append(total)
        return tuple(made)


def formula(
    function: Any,
    args: tuple[Any, ...],
    shape: Iterable[Any],
    dtype: Any,
    sides: Sides | None = None,
    /,
    **kwargs: Any,
) -> Symbolic:
    """The formula of a function."""
    return Symbolic(shape, dtype, function, args, kwargs, sides.made if sides else ())


def placeholder(
    shape: Any, dtype: Any = float, assume_a: str | None = None, name: str = ""
) -> Symbolic:
    """An array of which only shape and dtype are known, in symbols.

    Parameters
    ----------
    shape : size or tuple of sizes
        Integers and what `symbols` gives: ``(N, 2 * K + 1)``.
    dtype : dtype
        Of the arrays that come in its place.
    assume_a : str, optional
        What to assume of a square matrix, as in `lazy`: 'sym', 'her', 'pos', 'diagonal', ...
    name : str, optional
        For messages; else the variable's that holds it.

    Returns
    -------
    Symbolic
        NumPy's operators and functions of it, `einsum`, `view`, `solve`, `inv`, `logdet` and kinds
        of operators make formulas; `function` makes a function of them, `unify` finds sizes.

    Raises
    ------
    ValueError
        Negative sizes; `assume_a` of what is not square.
    TypeError
        Sizes that are no integers; a dtype that is no number.

    Cost
    ----
    Microseconds, as each operation on it.

    Examples
    --------
    >>> import pylinop as pl
    >>> N, K = pl.symbols("N K")
    >>> X, y = pl.placeholder((N, K)), pl.placeholder(N)
    >>> X.T @ y
    <formula shape=(K,) dtype=float64>
    """
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    made = []
    for n in sizes:
        if not isinstance(n, Size):
            if isinstance(n, bool) or not hasattr(n, "__index__"):
                raise TypeError(f"a size is an integer or made of symbols, not {n!r}")
            n = int(n.__index__())
            if n < 0:
                raise ValueError(f"a size is not negative: {sizes}")
        made.append(n)
    x = Symbolic(made, dtype)
    if x.dtype.kind not in "biufc":
        raise TypeError(f"placeholders are of numbers, got dtype {x.dtype}")
    x._name, x._line = name, here()
    x.shape = tuple(Known.made(n, x, x._line) for n in made)
    what = f"{name or 'placeholder'} {shown(made)}"
    sides = Sides(what)
    for n in made:
        sides.least(n, 0)
    if assume_a is not None:
        if len(made) < 2:
            raise ValueError(
                f"assume_a={assume_a!r} is for square matrices, got shape {shown(made)}"
            )
        _core.Dense(np.empty((0, 0)), assume_a)  # is it one of the words?
        sides.same(made[-1], made[-2])
        x._assume = assume_a
    x._equations = tuple(sides.made)
    return x
