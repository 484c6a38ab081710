"""Operators made of blocks: the arguments of constructors, and functions with NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .convert import as_operator

__all__ = ["block", "block_diag", "block_tridiag", "hstack", "multiply", "vstack"]


def grid_of(blocks: Any, copy: bool = False) -> Any:
    """(operators row by row, rows, columns) of nested lists; None becomes a Zeros that fits."""
    if isinstance(blocks, (str, bytes, _core.Operator)) or not hasattr(blocks, "__len__"):
        raise TypeError(f"expected nested lists of blocks, got {type(blocks).__name__}")
    rows: list[Any] = []
    for row in blocks:
        here = isinstance(row, (list, tuple)) or (
            isinstance(row, np.ndarray) and row.dtype == object and row.ndim == 1
        )
        if not here:
            what = f"{type(row).__name__} of shape {row.shape}" if hasattr(row, "shape") else ""
            raise TypeError(
                f"expected nested lists of blocks, row {len(rows)} is a "
                f"{what or type(row).__name__}: [[A, B]] puts blocks side by side, [[A], [B]] one "
                "above the other"
            )
        rows.append([None if b is None else as_operator(b) for b in row])
    r, c = len(rows), len(rows[0]) if rows else 0
    if not r or not c:
        raise ValueError("there is no block to put together")
    for i, row in enumerate(rows):
        if len(row) != c:
            raise ValueError(f"row {i} has {len(row)} blocks, row 0 has {c}")
    heights = [_size(row, -2, f"row {i}", "rows") for i, row in enumerate(rows)]
    widths = [_size(col, -1, f"column {j}", "columns") for j, col in enumerate(zip(*rows))]
    flat = [
        _core.Zeros((heights[i], widths[j])) if b is None else b.copy() if copy else b
        for i, row in enumerate(rows)
        for j, b in enumerate(row)
    ]
    return tuple(flat), r, c


def _size(line: Any, axis: Any, name: str, what: str) -> Any:
    """The size of a row or column of blocks; the node checks that all agree when it is made."""
    for b in line:
        if b is not None:
            return b.shape[axis]
    raise ValueError(f"{name} of the blocks is None throughout: its number of {what} is not known")


def block(blocks: Any) -> Any:
    """A `Block` of nested lists, as ``np.block``; None stands for zeros that fit.

    Parameters
    ----------
    blocks : list of lists of operators, arrays or None
        Rows of blocks; one flat list is one row.

    Returns
    -------
    Block

    Raises
    ------
    ValueError
        When sizes do not fit; the message names the blocks.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.block([[pl.Identity(2), None], [None, pl.Diag([3.0])]]) @ np.ones(3)
    array([1., 1., 3.])
    """
    rows = list(blocks)
    if any(b is None or isinstance(b, (_core.Operator, np.ndarray)) for b in rows):
        rows = [rows]
    return _core.Block(rows)


def hstack(ops: Any) -> Any:
    """Operators side by side, as ``np.hstack``: a `Block` of one row.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.hstack([pl.Identity(2), np.ones((2, 1))]) @ np.array([1.0, 2.0, 3.0])
    array([4., 5.])
    """
    return _core.Block([list(ops)])


def vstack(ops: Any) -> Any:
    """Operators on top of each other, as ``np.vstack``: a `Block` of one column.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.vstack([pl.Identity(2), np.ones((1, 2))]) @ np.array([1.0, 2.0])
    array([1., 2., 3.])
    """
    return _core.Block([[a] for a in ops])


def block_diag(*ops: Any) -> Any:
    """Operators along the diagonal, as ``scipy.linalg.block_diag``: a `BlockDiag`.

    One list of operators is accepted too. Vectors are errors, since SciPy takes them as rows.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.block_diag(pl.Identity(1), np.ones((2, 2))).trace()
    np.float64(3.0)
    """
    return _core.BlockDiag(*ops)


def block_tridiag(lower: Any, diagonal: Any, upper: Any = None, assume_a: str | None = None) -> Any:
    """A block tridiagonal matrix of square blocks of one size: a `BlockTridiagonal`.

    Parameters
    ----------
    lower, diagonal, upper : array_like, shape (..., N - 1, b, b), of diagonal (..., N, b, b)
        The blocks: block (k + 1, k) is ``lower[k]``, block (k, k + 1) is ``upper[k]``. If ``upper``
        is None, the adjoints of ``lower``. The arrays are borrowed.
    assume_a : str, optional
        What to assume of the whole matrix: 'pos', 'her', 'sym' or 'gen'.

    Returns
    -------
    BlockTridiagonal
        Of N b rows.

    Raises
    ------
    ValueError
        When the blocks are not square, or do not fit each other.

    Notes
    -----
    Nothing is computed or copied. Solves, determinants and the diagonal of the inverse sweep block
    by block: 7/3 N b^3 flops for a Cholesky factor, 14/3 for LU, where a band takes 4 and 16.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.block_tridiag(-np.ones((2, 1, 1)), 2 * np.ones((3, 1, 1)))
    >>> pl.solve(A, [1.0, 0.0, 1.0])
    array([1., 1., 1.])
    """
    return _core.BlockTridiagonal(lower, diagonal, upper, assume_a=assume_a)


def multiply(A: Any, B: Any) -> Any:
    """The element-wise product: a `HadamardProduct` of operators, a multiple for a number.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.multiply(pl.Toeplitz([1.0, 2.0]), np.full((2, 2), 3.0)).toarray()
    array([[3., 6.],
           [6., 3.]])
    """
    for a, b in ((A, B), (B, A)):
        if np.ndim(a) == 0 and not isinstance(a, _core.Operator):
            return as_operator(b) * a
    if isinstance(A, _core.Operator) and isinstance(B, _core.Operator):
        if A._head == B._head == "quasiseparable":
            return _core._build("elementwise", A, B)  # closed
    return _core.HadamardProduct(A, B)
