"""QR factors, of the kinds by their structure, of all others by NumPy on the dense form.

Answers are pairs (Q, R) of operators, or R alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import TRANSPOSED, inexact
from . import mixed_shapes
from .banded_qr import bands_within
from .banded_qr import qr as banded
from .dispatch import Question, dense, diagonal_of, factors_of, within
from .singular_values import check_permutation
from .unitary import is_unitary


def upper(r: Any) -> Any:
    """R from an array: a Triangular where it is square."""
    return _core.Triangular(r, False) if r.shape[-1] == r.shape[-2] else _core.Dense(r)


def orthonormal(q: Any) -> Any:
    return _core.Dense(q, "orthogonal") if q.shape[-1] == q.shape[-2] else _core.Dense(q)


def _lapack(a: Any, mode: Any) -> Any:
    if mode == "r":
        return upper(np.linalg.qr(a, mode="r"))
    q, r = np.linalg.qr(a, mode=mode)
    return orthonormal(q), upper(r)


def _arrays(m: int, n: int, mode: str) -> float:
    return (
        2.6 if mode == "r" else 2.6 + (2.3 * m * (m if mode == "complete" else min(m, n))) / (m * n)
    )


qr = Question(
    _lapack,
    "qr",
    how="LAPACK's geqrf, a Dense and a Triangular",
    cost="4 m n^2; half of it without Q",
    kept="qr",
    defaults=("reduced",),
    arrays=_arrays,
)


def eye(op: Any, rows: Any, columns: Any, dtype: Any = None) -> Any:
    """A rectangular identity with the batch of ``op``."""
    batch, dtype = op.shape[:-2], inexact(op.dtype) if dtype is None else dtype
    if rows == columns:
        return _core.Identity((*batch, rows, rows), dtype)
    ones = np.ones((*batch, min(rows, columns)), dtype)
    return _core.Diag(ones, 0, (rows, columns))


def _of(mode: str, q: Any, r: Any) -> Any:
    return r if mode == "r" else (q, r)


@qr.row("diag", how="phases and moduli, Diags", cost="O(n)")
def _(op: Any, mode: str) -> Any:
    d = diagonal_of(op)
    size = np.abs(d)
    r = _core.Diag(size.astype(d.dtype, copy=False))
    if mode == "r":
        return r
    return _core.Diag(np.divide(d, size, where=size != 0, out=np.ones_like(d))), r


@qr.row("identity", how="itself, twice", cost="O(1)")
def _(op: Any, mode: str) -> Any:
    one = op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)
    return _of(mode, one, one)


@qr.row("zeros", how="an Identity and Zeros", cost="O(1)")
def _(op: Any, mode: str) -> Any:
    m, n = op.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return _of(mode, eye(op, m, k), _core.Zeros((*op.shape[:-2], k, n), inexact(op.dtype)))


@qr.row(
    *("permutation", "householder", "reflections", "dft", "dct"),
    called="unitary",
    how="Q is itself where it is unitary, R an Identity",
    cost="O(1); a Permutation's indices are read",
)
def _(op: Any, mode: str) -> Any:
    if not is_unitary(op):
        return NotImplemented
    if op._head == "permutation":
        check_permutation(op)
    if op.dtype is None or op.dtype.kind not in "fc":
        return _of(mode, op, eye(op, op.shape[-1], op.shape[-1]))
    return _of(mode, op, _core.Identity(op.shape, op.dtype))


@qr.row(
    "hadamard",
    how="Q is itself / sqrt(n), R a multiple of the Identity",
    cost="O(1)",
    guard="given",
)
def _(op: Any, mode: str) -> Any:
    n, dtype = op.shape[-1], inexact(op.dtype)
    root = float(np.sqrt(n))
    r = _core.Diag(np.full(n, root, dtype))
    return _of(mode, (1 / root) * (op if op.dtype == dtype else op.astype(dtype)), r)


@qr.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    "sliced",
    called="bands",
    how="of bands and contiguous parts of them: Reflections and a Banded, in part where not square",
    cost="4 n l (l + u)",
    kept=True,
)
def _(op: Any, mode: str) -> Any:
    bands = bands_within(op)
    return NotImplemented if not bands else banded(op, bands, mode)


@qr.row("scaled", how="A's Q, c times A's R", cost="A's")
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    found = yield within(op), mode
    c = op._operands[1]
    return c * found if mode == "r" else (found[0], c * found[1])


@qr.row("view", how="of `.conj()` A's, conjugated; of a triangle turned upper, itself", cost="A's")
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    triangle = op._head == "triangular" and op._operands[0]._init is not None
    if triangle and op._operands[0]._given("lower") and op._mode & TRANSPOSED:
        return _of(mode, eye(op, op.shape[-1], op.shape[-1]), op)
    if op._mode & TRANSPOSED:
        if (bands := bands_within(op)) is not None:
            return banded(op, bands, mode)
        if not (op._head == "permutation" or is_unitary(op)):
            return NotImplemented
        return _of(mode, op, eye(op, op.shape[-1], op.shape[-1]))
    found = yield op._operands[0], mode
    return found.conj() if mode == "r" else (found[0].conj(), found[1].conj())


@qr.row("triangular", how="an upper one itself: Q is an Identity", cost="O(1)", guard="upper")
def _(op: Any, mode: str) -> Any:
    if op.dtype.kind not in "fc":
        return NotImplemented
    return _of(mode, eye(op, op.shape[-1], op.shape[-1]), op)


def alike(factors: Any, mode: str) -> bool:
    """Are all tall, or all wide? Then Krons and block diagonals of the parts' factors have the
    right shapes. Complete factors only where they equal the reduced ones."""
    shapes = [f.shape[-2:] for f in factors]
    wide = all(m <= n for m, n in shapes)
    return wide or (mode != "complete" and all(m >= n for m, n in shapes))


def _joined(join: Callable[..., Any], factors: Any, mode: str) -> Generator[Any, Any, Any]:
    found = []
    for f in factors:
        found.append((yield f, mode))
    if mode == "r":
        return join(*found)
    return join(*(q for q, _ in found)), join(*(r for _, r in found))


@qr.row(
    "kron",
    how="Krons of the factors', columns exchanged of tall and wide ones",
    cost="sum of the factors'",
)
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if not alike(factors, mode):
        return (yield from mixed_shapes.qr(op, _core.Kron, factors, mode))
    return (yield from _joined(_core.Kron, factors, mode))


@qr.row(
    "blockdiag",
    how="BlockDiags of the blocks', columns exchanged of tall and wide ones",
    cost="sum of the blocks'",
)
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if not alike(blocks, mode):
        return (yield from mixed_shapes.qr(op, _core.BlockDiag, blocks, mode))
    return (yield from _joined(_core.BlockDiag, blocks, mode))


def raw(op: Any) -> Any:
    """The arrays (h, tau) of NumPy's mode 'raw'."""
    return np.linalg.qr(dense(op, 3), mode="raw")
