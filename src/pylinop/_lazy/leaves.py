"""`lazy`: LazyArrays of arrays and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._operators.convert import arrays_of, as_array

if TYPE_CHECKING:
    from .array import LazyArray

__all__ = ["lazy"]


def lazy(x: Any, assume_a: str | None = None) -> LazyArray:
    """A `LazyArray` of an array or an operator: operations on it are computed when needed.

    Parameters
    ----------
    x : array_like, operator or LazyArray
        Borrowed, not copied.
    assume_a : str, optional
        What to assume of a square matrix, in scipy.linalg.solve's words: 'sym', 'her', 'pos',
        'lower triangular', 'upper triangular', 'diagonal', 'tridiagonal'. As 'diagonal' or
        'tridiagonal' it is taken for a `Diag` or `Tridiagonal` wherever it stands as a matrix.

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
    if is_lazy(x):
        if assume_a is None:
            made: LazyArray = x
            return made
        _square(x, assume_a)
        assumed: Any = _core.Dense(x, assume_a=assume_a)
        return cast("LazyArray", assumed)
    if isinstance(x, _core.Operator):
        if assume_a is not None:
            raise ValueError("assume_a is for arrays: an operator knows its properties")
        return _core._LazyArray("operator", (x,), x.shape, x.dtype or _dtype_of_arrays(x))
    a = as_array(x)
    if a.dtype.kind not in "biufc":
        raise TypeError(f"lazy takes arrays of numbers, got dtype {a.dtype}")
    if assume_a is not None:
        _square(a, assume_a)
        form = _core.Dense(a, assume_a=assume_a)  # raises now if the word is unknown
        made = _core._LazyArray("leaf", (a,), a.shape, a.dtype, assume_a)
        made._form = form
        return made
    return _core._LazyArray("leaf", (a,), a.shape, a.dtype)


def _square(a: Any, assume_a: str) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"assume_a={assume_a!r} is for square matrices, got shape {a.shape}")


def _dtype_of_arrays(op: Any) -> np.dtype[Any]:
    """The dtype of an operator that does not say it: that of its arrays together."""
    arrays = arrays_of(op)
    if not arrays:
        raise TypeError(
            f"lazy takes operators that say their dtype, this {type(op).__name__} "
            f"{op.shape} does not: give it dtype="
        )
    return np.result_type(*arrays)
