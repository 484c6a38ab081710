"""NumPy's ``numpy.linalg`` for operators: the same names, signatures and results.

Matrices given in are operators (or arrays, which are wrapped); a function whose result is a matrix
made of operators alone returns an operator. A function without a structured form runs in NumPy on
the dense form, under the memory rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from ._api.basic import diagonal, inv
from ._api.covariance import inv_quad_logdet, sample, sqrt_inv_matmul
from ._api.determinants import det, logdet, slogdet
from ._api.factorizations import (
    cholesky,
    cholesky_append,
    cholesky_update,
    ldl,
    lstsq,
    lu,
    null_space,
    orth,
    qr,
)
from ._api.norms import cond, eigvalsh, matrix_norm, matrix_rank, norm, pinv, svdvals
from ._api.products import multi_dot
from ._api.solve import solve
from ._api.spectra import (
    eig,
    eigh,
    eigvals,
    expm,
    fractional_matrix_power,
    funm,
    log_pdet,
    logm,
    sqrtm,
    svd,
)
from ._base.checks import is_lazy, square
from ._base.errors import deferrable
from ._eigen.scipy_api import eigs, eigsh, expm_multiply, lobpcg, svds
from ._iterative.scipy_api import bicgstab, cg, gmres, minres
from ._iterative.scipy_api_least_squares import lsmr, lsqr
from ._operators.convert import as_operator

if TYPE_CHECKING:
    from ._operators.linear_operator import LinearOperator

__all__ = [
    "LinAlgError",
    "bicgstab",
    "cg",
    "cholesky",
    "cholesky_append",
    "cholesky_update",
    "cond",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigs",
    "eigsh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expm_multiply",
    "fractional_matrix_power",
    "funm",
    "gmres",
    "inv",
    "inv_quad_logdet",
    "ldl",
    "lobpcg",
    "log_pdet",
    "logdet",
    "logm",
    "lsmr",
    "lsqr",
    "lstsq",
    "lu",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "minres",
    "multi_dot",
    "norm",
    "null_space",
    "orth",
    "pinv",
    "qr",
    "sample",
    "slogdet",
    "solve",
    "sqrt_inv_matmul",
    "sqrtm",
    "svd",
    "svds",
    "svdvals",
    "trace",
]


def matmul(A: Any, B: Any, /) -> Any:
    """The product ``A @ B``, with at least one of them an operator.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.linalg.matmul(pl.Diag([1.0, 2.0]), np.ones(2))
    array([1., 2.])
    """
    return A @ B


def matrix_transpose(A: Any, /) -> LinearOperator:
    """The transpose, lazy; same as ``A.T``.

    Examples
    --------
    >>> import pylinop as pl
    >>> pl.linalg.matrix_transpose(pl.Zeros((2, 3))).shape
    (3, 2)
    """
    return as_operator(A).T


@deferrable
def matrix_power(A: Any, n: Any) -> LinearOperator:
    """The integer power of a square operator, lazy; a negative power is a power of the inverse.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    n : int

    Returns
    -------
    LinearOperator
        ``A ** n``, or ``inv(A) ** -n``; a Diag of a Diag, a Kron of a Kron, ...

    Raises
    ------
    LinAlgError
        A is not square; or, when the power is used, A is singular and n negative.
    TypeError
        The exponent is not an integer (`fractional_matrix_power` takes real ones).

    Notes
    -----
    Nothing is computed before the power is used. A product with a vector is n products with A; no
    power of A is formed where that would cost more.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.linalg.matrix_power(pl.Diag([1.0, 2.0]), -2) @ np.ones(2)
    array([1.  , 0.25])
    """
    if is_lazy(A):
        deferred: LinearOperator = np.linalg.matrix_power(A, n)  # type: ignore[assignment]
        return deferred
    op = square(as_operator(A))
    try:
        n = n.__index__()
    except AttributeError:
        raise TypeError("exponent must be an integer") from None
    power: LinearOperator = op**n if n >= 0 else inv(op) ** -n
    return power


def trace(A: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal, computed now.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.linalg.trace(pl.Toeplitz([1.0, 2.0, 3.0]), offset=1))
    4.0
    """
    op = as_operator(A)
    if offset == 0 and dtype is None:
        return op.trace()
    return op.diagonal(offset).sum(axis=-1, dtype=dtype)
