"""Gram matrices, tall QR and traces of block operators; each takes one or two sweeps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._base import config
from .._base.errors import MaterializationError
from .._operators.convert import as_operator
from .arguments import operator_of
from .blocks import Block
from .operator import BlockOperator
from .work import worker_of

__all__ = ["Estimate", "gram", "norm_squared", "qr", "trace_estimate"]


def room(m: int, n: int, itemsize: int, copies: int) -> None:
    """A MaterializationError where m x n matrices pass the memory limit."""
    limit = config.get("memory_limit")
    if limit is None:
        limit = config.free_memory()
    need = m * n * itemsize * copies
    if limit is not None and need > limit:
        raise MaterializationError(
            f"{copies} matrices of {m} x {n} need {need:,} bytes; there are {limit:,}"
        )


def gram(A: BlockOperator) -> Any:
    """Compute A^H A, dense, in one sweep: sums over the blocks of each part, then over the parts.

    Parameters
    ----------
    A : BlockOperator
        An operator in blocks of rows, with columns few enough for an n x n matrix.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    ValueError
        For blocks of columns.
    MaterializationError
        Where n x n matrices, one a part and one more, pass ``pl.config(memory_limit=...)``.

    Notes
    -----
    It takes 2 m n^2 operations for dense blocks. The condition number is squared: for least
    squares rather take `qr` or `lsmr`.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> pld.gram(pld.BlockOperator([np.eye(2), np.ones((1, 2))], engine="serial"))
    array([[2., 1.],
           [1., 2.]])
    """
    operator_of(A, "gram")
    engine = A.engine
    room(A.shape[1], A.shape[1], A.dtype.itemsize, engine.split + 1)
    return engine.total("gram")


class Solved:
    """A block times an inverse triangle, made when it is read: rows of Q = A R^-1."""

    mapped = False

    def __init__(self, block: Block, triangles: tuple[Any, ...]) -> None:
        self.block, self.triangles = block, triangles
        self.shape: tuple[int, ...] = tuple(block.shape)
        self.dtype = np.result_type(block.dtype, *(t.dtype for t in triangles))
        dense = self.shape[0] * self.shape[1] * self.dtype.itemsize
        self.nbytes = block.nbytes + 2 * dense

    def load(self) -> Any:
        """A R^-1, triangle after triangle."""
        import scipy.linalg  # type: ignore[import-untyped, unused-ignore]

        rows = worker_of(self.block.load(), self.block.shape, self.dtype).dense()
        for R in self.triangles:
            rows = scipy.linalg.solve_triangular(R, rows.T, trans="T", check_finite=False).T
        return np.ascontiguousarray(rows)


def _with(A: BlockOperator, triangles: tuple[Any, ...]) -> BlockOperator:
    engine, workers, limit, parts = A._settings
    return BlockOperator(
        [Solved(b, triangles) for b in A.blocks],
        engine=engine if isinstance(engine, str) else "threads",
        workers=workers,
        memory_limit=limit,
        parts=parts,
    )


def _triangle(G: Any) -> Any:
    """R with R^H R = G and a positive diagonal, or None."""
    try:
        return np.linalg.cholesky(G).conj().T
    except np.linalg.LinAlgError:
        return None


def _positive(R: Any) -> Any:
    """R with its rows turned so that the diagonal is real and not negative."""
    d = np.diagonal(R).copy()
    size = np.abs(d)
    turn = np.where(size == 0, 1, d.conj() / np.where(size == 0, 1, size))
    return np.triu(turn[:, np.newaxis] * R)


def qr(A: BlockOperator, method: str = "auto") -> tuple[BlockOperator, Any]:
    """Factor a tall operator in blocks of rows as Q R; Q's blocks are made when they are read.

    Parameters
    ----------
    A : BlockOperator
        m x n with m >= n, blocks of rows, n small enough for dense blocks and n x n matrices.
    method : {'auto', 'cholesky', 'tsqr'}
        ``'cholesky'``: R of the Gram matrix, for a condition number up to about 1e7.
        ``'tsqr'``: R of the QR factorisations of the blocks, stacked and factored again.
        ``'auto'``: ``'cholesky'``, and ``'tsqr'`` where that is not accurate.

    Returns
    -------
    Q : BlockOperator
        An operator with orthonormal columns, on an engine of the kind that A has, or on threads.
    R : ndarray, shape (n, n)
        Upper triangular, its diagonal positive.

    Raises
    ------
    ValueError
        For m < n, blocks of columns, another method.
    LinAlgError
        Where the columns are dependent to working precision; or ``'cholesky'`` was asked for and
        the columns are too close to that.

    Notes
    -----
    Both methods form Q1 = A R1^-1, and mend R1 once by the Gram matrix of Q1, which costs a
    second sweep: CholeskyQR2 (Yamamoto et al. 2015), and indirect TSQR with a refinement (Benson,
    Gleich and Demmel 2013). R1 was not good enough if that Gram matrix is 0.5 or more away from the
    identity.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> Q, R = pld.qr(pld.BlockOperator([np.eye(2), 2 * np.eye(2)], engine="serial"))
    >>> R.round(6)
    array([[2.236068, 0.      ],
           [0.      , 2.236068]])
    """
    operator_of(A, "qr")
    m, n = A.shape
    if m < n:
        raise ValueError(f"qr takes a tall operator, got shape {A.shape}")
    if method not in ("auto", "cholesky", "tsqr"):
        raise ValueError(f"method={method!r}: 'auto', 'cholesky' or 'tsqr'")
    room(n, n, A.dtype.itemsize, 3 * A.engine.split + 3)
    for way in ("cholesky", "tsqr") if method == "auto" else (method,):
        if way == "cholesky":
            R1 = _triangle(gram(A))
        else:
            stacked = [R for R in A.engine.gather("triangle") if R is not None]
            R1 = _positive(np.linalg.qr(np.vstack(stacked), mode="r"))
            if not np.all(np.isfinite(R1)) or np.any(np.diagonal(R1) == 0):
                R1 = None
        if R1 is None:
            continue
        with _with(A, (R1,)) as once:
            G2 = gram(once)
        if not np.linalg.norm(G2 - np.eye(n)) < 0.5:
            continue
        R2 = _triangle(G2)
        return _with(A, (R1, R2)), np.triu(R2 @ R1)
    if not np.isfinite(norm_squared(A)):
        raise np.linalg.LinAlgError(f"qr of {A.shape[0]} x {n}: numbers are not finite")
    raise np.linalg.LinAlgError(
        f"qr of {A.shape[0]} x {n} by {method!r}: the columns are dependent to working precision"
        + ("; method='tsqr' stands more" if method == "cholesky" else "")
    )


def norm_squared(A: BlockOperator) -> float:
    """Compute the trace of A^H A, the sum of the squared entries, exactly and in one sweep.

    Parameters
    ----------
    A : BlockOperator

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> pld.norm_squared(pld.BlockOperator([np.eye(2), np.ones((1, 2))], engine="serial"))
    4.0
    """
    return float(operator_of(A, "norm_squared", rows=False).engine.total("squares"))


class Estimate(NamedTuple):
    """A stochastic estimate and its statistical error (one standard deviation); it has no bias."""

    value: float
    error: float
    samples: int


def trace_estimate(
    A: Any, samples: int = 32, rng: Any = None, normal: bool = False, columns: int = 8
) -> Estimate:
    """Estimate trace(A) by Hutchinson's method, or trace(A^H A A^H A) with ``normal``.

    Parameters
    ----------
    A : BlockOperator, or what `aslinearoperator` takes
        Square, unless ``normal``.
    samples : int
        At least two random vectors of signs.
    rng : Generator, seed, optional
    normal : bool
        Estimate the squared Frobenius norm of A^H A, the sum of fourth powers of A's singular
        values, which no sweep over the entries gives.
    columns : int
        Vectors that go through the blocks together, in one sweep.

    Returns
    -------
    Estimate
        ``value``, ``error`` (of the mean, one standard deviation), ``samples``.

    Raises
    ------
    ValueError
        For fewer than two samples, or an A that is not square.

    Notes
    -----
    ``pl.trace(A)`` gives the exact trace of blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> A = pld.BlockOperator([np.diag([1.0, 2.0, 3.0])], engine="serial")
    >>> pld.trace_estimate(A, 4, rng=0)
    Estimate(value=6.0, error=0.0, samples=4)
    """
    samples, columns = int(samples), max(1, int(columns))
    if samples < 2:
        raise ValueError(f"samples={samples}: at least two, for the error")
    A = as_operator(A)
    m, n = A.shape
    if m != n and not normal:
        raise ValueError(f"the trace is that of a square operator, got shape {A.shape}")
    rng = np.random.default_rng(rng)
    found: list[float] = []
    while len(found) < samples:
        k = min(columns, samples - len(found))
        Z = rng.integers(0, 2, (n, k)) * 2.0 - 1.0
        Y = A.matmat(Z)
        if normal:
            Y = A.rmatmat(Y)
            found += np.einsum("ij,ij->j", Y.conj(), Y).real.tolist()
        else:
            found += np.einsum("ij,ij->j", Z, Y).real.tolist()
    value = math.fsum(found) / samples
    spread = math.fsum((f - value) ** 2 for f in found) / (samples - 1)
    return Estimate(value, math.sqrt(spread / samples), samples)
