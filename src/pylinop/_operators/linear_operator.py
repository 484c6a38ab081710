"""LinearOperator, SciPy's class on top of our core; and MatVec, the operator of callables.

Fast paths live in C (py_operator.c, py_expressions.c). The hooks that a user's subclass may leave
out are in callables.py, the arguments of the methods in array_arguments.py."""

from __future__ import annotations

import copy as _copy
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Never, NoReturn, Self, SupportsIndex, overload

import numpy as np

from .. import _core
from .._base import errors, scipy_bridge
from .._base.lazy_import import Later
from .._base.signatures import OfInit
from . import callables, convert, draw, numpy_protocols, pickling, refusals, repr
from .array_arguments import rmatmul

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    import pylinop as _methods

    from .._base import explanation

__all__ = ["LinearOperator", "MatVec"]

# Methods that are functions of layers above.
_explain, _numpy_functions = Later("_api.explain"), Later("_api.numpy_functions")
_tosparse = Later("_sparse.tosparse")


class LinearOperator(_core.Operator):
    """A linear operator: the base of all kinds, and a drop-in for SciPy's class of that name.

    ``LinearOperator(shape, matvec, rmatvec=None, matmat=None, dtype=None, rmatmat=None)`` makes an
    operator of callables (a `MatVec`). Subclasses define ``_matvec`` or ``_matmat`` and, if they
    can, ``_rmatvec``, ``_rmatmat`` or ``_adjoint``; they set ``shape`` and ``dtype`` or call
    ``super().__init__(dtype, shape)``. Optional ``_solve(b)``, ``_diagonal(k)`` and ``_logdet()``
    are used where they are defined.

    Notes
    -----
    ``A @ x`` computes an array now; ``A @ B``, ``A + B``, ``c * A``, ``A.T``, ``A.H`` are operators
    and compute nothing. An operator always sees later writes to its arrays.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.LinearOperator((2, 2), matvec=lambda x: np.array([2 * x[0], 3 * x[1]]), dtype=float)
    >>> A @ np.array([1.0, 1.0])
    array([2., 3.])
    """

    __slots__ = ()
    __array_priority__ = 20.0
    __signature__: Any = OfInit()
    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls is LinearOperator:  # type.__call__ runs its __init__, once
            return _core.Operator.__new__(MatVec)  # type: ignore[return-value]
        self = _core.Operator.__new__(cls)
        if cls._matvec is LinearOperator._matvec and cls._matmat is LinearOperator._matmat:
            warnings.warn(
                "LinearOperator subclass should implement at least one of _matvec and _matmat.",
                category=RuntimeWarning,
                stacklevel=2,
            )
        return self

    # For subclasses: super().__init__(dtype, shape); for the class itself: the arguments of MatVec.
    @overload
    def __init__(
        self, dtype: DTypeLike | None, shape: Sequence[SupportsIndex], xp: Any = None
    ) -> None: ...
    @overload
    def __init__(
        self,
        shape: Sequence[SupportsIndex],
        matvec: Callable[[Any], Any],
        rmatvec: Callable[[Any], Any] | None = None,
        matmat: Callable[[Any], Any] | None = None,
        dtype: DTypeLike | None = None,
        rmatmat: Callable[[Any], Any] | None = None,
        xp: Any = None,
    ) -> None: ...
    def __init__(self, dtype: Any, shape: Any, xp: Any = None) -> None:  # type: ignore[misc]
        if (
            xp is not None
            and xp is not np
            and getattr(xp, "__name__", "").split(".")[-1] not in ("numpy",)
        ):
            raise NotImplementedError(f"xp={xp!r}: only NumPy's namespace is supported so far")
        self.dtype = dtype
        self.shape = shape

    @property  # type: ignore[misc]  # object's can be set
    def __class__(self) -> Any:
        # What isinstance sees where the type alone does not match: SciPy's class too, once loaded.
        return scipy_bridge.shadow(type(self))

    # -- SciPy's hooks -----------------------------------------------------------------------------

    def _matvec(self, x: Any) -> Any:
        return callables.default_matvec(self, x)

    def _matmat(self, X: Any) -> Any:
        return callables.default_matmat(self, X)

    def _rmatvec(self, x: Any) -> Any:
        return callables.default_rmatvec(self, x)

    def _rmatmat(self, X: Any) -> Any:
        return callables.default_rmatmat(self, X)

    def _adjoint(self) -> Any:
        return _core._build("view", self, None, 3)

    def _transpose(self) -> Any:
        return _core._build("view", self, None, 1)

    # -- products ----------------------------------------------------------------------------------

    def dot(self, x: Any, out: NDArray[Any] | None = None) -> Any:
        """The product with an operator, a number or an array, as ``@`` and ``*`` (SciPy's
        ``dot``)."""
        if np.isscalar(x):
            return self * x
        return self @ x if out is None else np.matmul(self, x, out=out)

    def rdot(self, x: Any) -> Any:
        """The product with the operator on the right, ``x @ self``."""
        if isinstance(x, _core.Operator):
            return x @ self
        return rmatmul(self, x)

    def __call__(self, x: Any) -> Any:
        return self.dot(x)

    # -- functions as methods ----------------------------------------------------------------------

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

    # -- other forms -------------------------------------------------------------------------------

    def todense(self, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The dense form as an ndarray; same as `toarray`."""
        return self.toarray(out=out)

    def tosparse(self, format: str = "csr") -> Any:
        """The operator as a scipy.sparse array; sparse structure is used where there is any."""
        return _tosparse.tosparse(self, format)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return numpy_protocols.as_dense(self, dtype, copy)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return _numpy_functions.array_function(self, func, types, args, kwargs)

    @property
    def real(self) -> LinearOperator:
        """The real part, lazy; the operator itself when it is real."""
        return convert.real_part(self)

    @property
    def imag(self) -> LinearOperator:
        """The imaginary part, lazy; zeros for a real operator."""
        return convert.imag_part(self)

    @property
    def size(self) -> int:
        """Number of entries of the dense form."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the operator is made of, each counted once."""
        return convert.nbytes(self)

    def astype(self, dtype: DTypeLike, copy: bool = False) -> LinearOperator:
        """The operator cast to a dtype; the operator itself if it has that dtype and ``copy`` is
        False."""
        return convert.astype(self, dtype, copy)

    def copy(self) -> Self:
        """A deep copy: the arrays are copied, so later writes to the originals are not seen."""
        return _copy.deepcopy(self)

    def __deepcopy__(self, memo: Any) -> Self:
        made: Self = pickling.deepcopy(self, memo)
        return made

    def __copy__(self) -> Self:
        return self if type(self).__module__ == "pylinop" else pickling.shallow(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return pickling.reduce(self, protocol)

    def clear_cache(self) -> None:
        """Forget what is cached of the operator: factors, spectra, functions of it.

        Notes
        -----
        Only time is lost: a result that is asked for again is computed again, with the same bits.
        Cached results of expressions that share an array with it are dropped too, and sometimes a
        little more. ``pl.config(cache_limit=...)`` bounds the cache of all operators together. Two
        workspaces of up to 128 MB each, kept for the next call, are given back.

        Examples
        --------
        >>> import numpy as np, pylinop as pl
        >>> A = pl.Dense(2 * np.eye(3))
        >>> w = pl.eigvalsh(A)  # kept
        >>> A.clear_cache()
        """
        _core._forget(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        # Rows, as arrays have them: pandas asks whether there are any.
        return (self[i] for i in range(self.shape[0]))

    # -- what is refused, with what to write instead -----------------------------------------------

    def __pow__(self, value: SupportsIndex, mod: None = None, /) -> LinearOperator:
        refusals.power(value)
        return _core.Operator.__pow__(self, value, mod)

    def __setitem__(self, key: Never, value: Never, /) -> NoReturn:
        refusals.write(self)

    def __delitem__(self, key: Never, /) -> NoReturn:
        refusals.write(self)

    def __abs__(self) -> NoReturn:
        refusals.absolute()

    def __lt__(self, value: Never, /) -> Any:
        return refusals.order(value, "<")

    def __le__(self, value: Never, /) -> Any:
        return refusals.order(value, "<=")

    def __gt__(self, value: Never, /) -> Any:
        return refusals.order(value, ">")

    def __ge__(self, value: Never, /) -> Any:
        return refusals.order(value, ">=")

    def __dir__(self) -> list[str]:
        names = super().__dir__()
        return [name for name in names if name not in refusals.ELSEWHERE or hasattr(self, name)]

    def explain(
        self, action: str = "apply", *args: Any, run: bool = False, **kwargs: Any
    ) -> explanation.Explanation:
        """The plan for an action: rules, steps, flops, bytes, memory; text, and data.

        Parameters
        ----------
        action : str
            ``explain("apply", x)``, or ``"matvec"``: the product with ``x``;
            ``explain("solve", b)``: ``pl.inv(self) @ b``; ``"dense"``; ``explain("diagonal",
            offset)``; ``"trace"``; ``explain("element", i, j)``; ``"det"``. Or a function by its
            name, with its arguments: ``explain("svd", full_matrices=False)``, ``"eigh"``,
            ``"cholesky"``, ``"qr"``, ``"lu"``, ``"lstsq"``, ``"pinv"``, ``"expm"``, ``"cond"``, ...
        *args, **kwargs
            The arguments of the action. ``x`` and ``b`` may be left out, and stand for a vector of
            the operator's dtype then; only their shape and dtype matter.
        run : bool
            Run the plan once, and show the time that each step took. Otherwise nothing is computed.

        Returns
        -------
        Explanation
            Text; ``.rules``, ``.steps``, ``.alternatives`` and totals as data (``pl.explain``).

        Raises
        ------
        ValueError
            For an action that does not exist.

        Examples
        --------
        >>> import numpy as np, pylinop as pl
        >>> print(pl.Diag(np.ones(3)).explain("trace"))  # doctest: +ELLIPSIS
        trace by a sum: about ..., 3 flop, 8 B at most, exact to rounding
        ...
        """
        found: explanation.Explanation = _explain.of_operator(self, action, args, kwargs, run)
        return found

    def spy(self, ax: Any = None, precision: float = 0, **kwargs: Any) -> Any:
        """Draw where the entries are, with matplotlib; returns the axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The current ones when not given.
        precision : float
            Entries of at most this modulus count as zero.
        **kwargs
            Passed on to matplotlib's ``Axes.spy``.

        Notes
        -----
        The entries are computed some rows at a time; for a matrix with more than 400 rows or
        columns, each point stands for several entries.
        """
        return draw.spy(self, ax, precision, **kwargs)

    def to_dot(self) -> str:
        """The expression as Graphviz text; computes nothing."""
        return draw.to_dot(self)

    def __repr__(self) -> str:
        return repr.text(self)

    def _repr_html_(self) -> str:
        return draw.html(self)


class MatVec(LinearOperator):
    """An operator of callables, as SciPy's ``LinearOperator(shape, matvec, ...)``.

    Parameters
    ----------
    shape : tuple
        (m, n), with leading batch dimensions if the callables broadcast.
    matvec : callable
        A x for x of shape (n,) or (..., n).
    rmatvec, matmat, rmatmat : callable, optional
        A^H x, A X, A^H X.
    dtype : dtype, optional
        When None, matvec is called once on int8 zeros to find the dtype.

    Notes
    -----
    It never closes and is never rewritten; the callables get what SciPy would pass (columns as 1-D
    arrays).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.MatVec((2, 2), lambda x: 2 * x, dtype=float) @ np.ones(2)
    array([2., 2.])
    """

    def __init__(
        self,
        shape: Sequence[SupportsIndex],
        matvec: Callable[[Any], Any],
        rmatvec: Callable[[Any], Any] | None = None,
        matmat: Callable[[Any], Any] | None = None,
        dtype: DTypeLike | None = None,
        rmatmat: Callable[[Any], Any] | None = None,
        xp: Any = None,
    ) -> None:
        LinearOperator.__init__(self, dtype, shape, xp)
        for name, f in (("rmatvec", rmatvec), ("matmat", matmat), ("rmatmat", rmatmat)):
            if f is not None and not callable(f):
                raise TypeError(f"{name} must be callable, got {type(f).__name__}")
        if not callable(matvec):
            raise TypeError(f"matvec must be callable, got {type(matvec).__name__}")
        self._callables = (matvec, rmatvec, matmat, rmatmat)
        if dtype is None:
            self.dtype = callables.infer_dtype(self)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return _core.Operator.__new__(cls)

    def _matvec(self, x: Any) -> Any:
        return self._callables[0](x)

    def _matmat(self, X: Any) -> Any:
        f = self._callables[2]
        return callables.default_matmat(self, X) if f is None else f(X)

    def _rmatvec(self, x: Any) -> Any:
        f = self._callables[1]
        if f is None:
            if self._callables[3] is not None:
                return callables.default_rmatvec(self, x)
            raise NotImplementedError(
                "rmatvec is not defined: give rmatvec= (or rmatmat=) to the operator"
                + errors.built(self)
            )
        return f(x)

    def _rmatmat(self, X: Any) -> Any:
        f = self._callables[3]
        return callables.default_rmatmat(self, X) if f is None else f(X)


LinearOperator.__module__ = MatVec.__module__ = "pylinop"
vars(LinearOperator)["__signature__"].like[LinearOperator] = MatVec
for _name, _instead in refusals.ELSEWHERE.items():
    setattr(LinearOperator, _name, refusals.Elsewhere(_name, f"write {_instead}"))
