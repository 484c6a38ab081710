"""QR factors: by NumPy on the dense form, and what the rows in `kinds` share.

Answers are pairs (Q, R) of operators, or R alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from . import mixed_shapes
from .banded_qr import bands_within
from .banded_qr import qr as banded
from .dispatch import Question, dense
from .operands import factors_of
from .singular_values import check_permutation


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


def identity_of(op: Any, rows: Any, columns: Any, dtype: Any = None) -> Any:
    """A rectangular identity with the batch of ``op``."""
    batch, dtype = op.shape[:-2], inexact(op.dtype) if dtype is None else dtype
    if rows == columns:
        return _core.Identity((*batch, rows, rows), dtype)
    ones = np.ones((*batch, min(rows, columns)), dtype)
    return _core.Diag(ones, 0, (rows, columns))


def _of(mode: str, q: Any, r: Any) -> Any:
    return r if mode == "r" else (q, r)


@qr.row(
    *("permutation", "householder", "reflections", "dct"),
    called="unitary",
    how="Q is itself where it is unitary, R an Identity",
    cost="O(1); a Permutation's indices are read",
    guard="unitary",
)
def _(op: Any, mode: str) -> Any:
    if op._head == "permutation":
        check_permutation(op)
    if op.dtype is None or op.dtype.kind not in "fc":
        return _of(mode, op, identity_of(op, op.shape[-1], op.shape[-1]))
    return _of(mode, op, _core.Identity(op.shape, op.dtype))


@qr.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    "sliced",
    called="bands",
    how="of bands and contiguous parts of them: Reflections and a Banded, in part where not square",
    cost="4 n l (l + u)",
    kept=True,
    holds="4 n l + 2 n u + 5 n",
    asks=lambda op, mode: [] if bands_within(op) else None,
)
def _(op: Any, mode: str) -> Any:
    bands = bands_within(op)
    return NotImplemented if not bands else banded(op, bands, mode)


def alike(factors: Any, mode: str) -> bool:
    """Are all tall, or all wide? Then Krons and block diagonals of the parts' factors have the
    right shapes. Complete factors only where they equal the reduced ones."""
    shapes = [f.shape[-2:] for f in factors]
    wide = all(m <= n for m, n in shapes)
    return wide or (mode != "complete" and all(m >= n for m, n in shapes))


def qr_asks(op: Any, mode: str) -> list[Any]:
    """What the QR of a Kron or BlockDiag asks of its parts."""
    parts = factors_of(op)
    if alike(parts, mode):
        return [(qr, f, mode) for f in parts]
    return mixed_shapes.qr_asks(qr, parts, mode)


def _joined(join: Callable[..., Any], factors: Any, mode: str) -> Generator[Any, Any, Any]:
    found = []
    for f in factors:
        found.append((yield f, mode))
    if mode == "r":
        return join(*found)
    return join(*(q for q, _ in found)), join(*(r for _, r in found))


def raw(op: Any) -> Any:
    """The arrays (h, tau) of NumPy's mode 'raw'."""
    return np.linalg.qr(dense(op, 3), mode="raw")
