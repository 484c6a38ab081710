"""Products of several matrices, and lazy pseudo-inverses: `multi_dot`, `PseudoInverse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.dtypes import inexact
from .._base.errors import LinAlgError
from .._base.signatures import listed
from .._lazy.array import LazyArray
from .._lazy.leaves import lazy
from .._operators.convert import as_operator
from .._operators.linear_operator import LinearOperator
from .._structured import questions
from .._structured.pinv import Rtol, pinv_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._core import _OperatorLike

__all__ = ["PseudoInverse", "multi_dot"]


def multi_dot(arrays: Sequence[Any], *, out: NDArray[Any] | None = None) -> Any:
    """The product of two or more matrices in the cheapest order; numpy.linalg.multi_dot.

    Parameters
    ----------
    arrays : sequence of operators, LazyArrays and array_like
        Matrices (..., m, n) whose sizes fit one after another. The first may be a vector, taken as
        a row; the last may be one, taken as a column.
    out : ndarray, optional
        Where the result goes; it is then computed now, whatever the operands are.

    Returns
    -------
    ndarray, LinearOperator or LazyArray
        An operator, not yet computed, if all are operators; a LazyArray if one of them is;
        otherwise an array, computed now. A number if both ends are vectors.

    Raises
    ------
    ValueError
        Fewer than two matrices, or sizes that do not fit.

    Cost
    ----
    That of the cheapest order, with structure counted: the planner's dynamic program for chains
    decides, as it does for ``A @ B @ C`` of operators or LazyArrays.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A, B = np.ones((1000, 2)), np.ones((2, 1000))
    >>> pl.multi_dot([A, B, pl.Diag(np.ones(1000)), A]).shape
    (1000, 2)
    """
    parts = list(arrays)
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    parts = [p if isinstance(p, (_core.Operator, LazyArray)) else _matrix(p) for p in parts]
    of_operators = all(isinstance(p, _core.Operator) for p in parts)
    made = parts[0] if of_operators else lazy(parts[0])
    for p in parts[1:]:
        made = made @ (p if of_operators else lazy(p))
    if out is None and (of_operators or any(isinstance(p, LazyArray) for p in parts)):
        return made
    found = made.toarray()
    if out is None:
        return found if found.ndim else found[()]
    if out.shape != found.shape:
        raise ValueError(f"multi_dot(out=...): expected shape {found.shape}, got {out.shape}")
    np.copyto(out, found)
    return out


def _matrix(x: Any) -> Any:
    a = dlpack.as_array(x)
    if a.ndim == 0:
        raise LinAlgError("multi_dot takes matrices, and vectors at the ends, got a number")
    return a


class PseudoInverse(LinearOperator):
    """The pseudo-inverse of an operator, computed when it is used.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    rcond, hermitian, rtol
        As `pinv` takes them.

    Raises
    ------
    LinAlgError
        When used: the SVD does not converge.

    Cost
    ----
    It is built in O(1). Each use costs what `pinv` costs; factors are cached while A stays the
    same.

    Notes
    -----
    It follows later writes to A, unlike the result of `pinv`, which is computed at once. For the
    structures that `pinv` knows (Diag, Kron, BlockDiag, ...), products use the structure.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> a = np.diag([2.0, 0.0])
    >>> P = pl.PseudoInverse(a)
    >>> a[1, 1] = 4
    >>> P @ np.ones(2)
    array([0.5 , 0.25])
    """

    def __init__(self, A: _OperatorLike, rcond: Any = None, hermitian: bool = False,
                 **rtol: Unpack[Rtol]) -> None:  # fmt: skip
        self.A, self._how = as_operator(A), pinv_words(rcond, hermitian, rtol)
        *batch, m, n = self.A.shape
        LinearOperator.__init__(self, inexact(self.A.dtype), (*batch, n, m))

    listed(__init__, Rtol)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return _core.Operator.__new__(cls)

    @property
    def args(self) -> tuple[Any, ...]:
        """The operator that this is the pseudo-inverse of."""
        return (self.A,)

    def _now(self) -> Any:
        return questions.pinv(self.A, self._how)

    def _matmat(self, X: Any) -> Any:
        return self._now() @ X

    def _rmatmat(self, X: Any) -> Any:
        return self._now().H @ X

    def _diagonal(self, k: int) -> Any:
        return self._now().diagonal(k)

    def _adjoint(self) -> Any:
        made = type(self).__new__(type(self))
        made.A, made._how = self.A.H, self._how
        *batch, m, n = self.A.shape
        LinearOperator.__init__(made, self.dtype, (*batch, m, n))
        return made

    def toarray(self, out: Any = None) -> Any:
        """The dense form."""
        found = self._now().toarray()
        if out is None:
            return found
        np.copyto(out, found)
        return out


PseudoInverse.__module__ = "pylinop"
