"""The questions about operators that have immediate answers: singular values, norms, condition
numbers, ranks, Hermitian eigenvalues, pseudo-inverses. Their rows are in `kinds`; those that kinds
share, in singular_values.py, eigenvalues_hermitian.py, norms.py and known_bases.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.kind_flags import OF_PARTS, heads
from .dispatch import Question
from .operands import has_small_parts, small_array
from .properties import known, measured
from .rows import GUARDS, Guard

# -- singular values --


def outer(a: Any, b: Any) -> Any:
    """All products of an element of a and an element of b, in a row."""
    both = a[..., :, None] * b[..., None, :]
    return both.reshape(*both.shape[:-2], a.shape[-1] * b.shape[-1])


svdvals = Question(
    lambda a: np.linalg.svdvals(a),
    "svdvals",
    how="LAPACK's gesdd",
    cost="4 m n^2",
    kept="svdvals",
)


# -- norms --

ORDERS = ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def _norm_of_array(a: Any, ord: Any) -> Any:
    """NumPy's norm; where only its squares leave the range, of the array scaled to one."""
    with np.errstate(over="ignore", under="ignore"):
        if ord == "fro" and a.ndim == 2:
            found = np.linalg.norm(a)  # without an array of squares
        else:
            found = np.linalg.matrix_norm(a, ord=ord)
    if ord != "fro" or not a.size or (np.isfinite(found) & (found > 0)).all():
        return found
    if a.dtype.kind == "c":
        size = np.abs(a).max(axis=(-2, -1), keepdims=True)
    else:  # without another array
        size = np.maximum(a.max((-2, -1), keepdims=True), -a.min((-2, -1), keepdims=True))
    if not size.any():
        return found
    scale = np.where(np.isfinite(size) & (size > 0), size, 1)
    found = scale[..., 0, 0] * np.linalg.matrix_norm(a / scale, ord=ord)
    return np.where(np.isposinf(size[..., 0, 0]), size[..., 0, 0], found)[()]


norm = Question(
    _norm_of_array,
    "matrix_norm",
    how="from all elements, 2, -2 and nuc by gesdd",
    cost="4 m n^2; m n from all elements",
    instead=lambda op, ord: None if ord in (2, -2, "nuc") else "m n",
    kept=lambda ord: f"norm {ord}" if ord in (2, -2, "nuc") else "",
)


def norm_of_values(s: Any, ord: Any) -> Any:
    """The norm of diag(s), s not negative."""
    if ord == "fro":
        return np.linalg.norm(s, axis=-1)
    if ord == "nuc":
        return s.sum(axis=-1)
    return s.max(axis=-1) if ord > 0 else s.min(axis=-1)


# -- condition, rank --


def _cond_of_array(a: Any, p: Any) -> Any:
    """NumPy's condition number; in the nuclear norm, where NumPy raises for a singular matrix, inf
    as in the other norms."""
    if p != "nuc":
        return np.linalg.cond(a, p)
    found = np.full(a.shape[:-2], np.inf)
    for i in np.ndindex(*a.shape[:-2]):
        if np.isnan(a[i]).any():
            found[i] = np.nan
            continue
        try:
            other = np.linalg.inv(a[i])
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(a[i]).all() and np.isfinite(other).all():
            found[i] = np.linalg.norm(a[i], "nuc") * np.linalg.norm(other, "nuc")
    return found


cond = Question(
    _cond_of_array,
    "cond",
    how="from gesdd, or the inverse",
    cost="4 m n^2; 3 n^3 by the inverse",
    instead=lambda op, p: None if p in (2, -2) else "11 n^3" if p == "nuc" else "3 n^3",
    kept="cond",
    arrays=4,
)


# -- eigenvalues of Hermitian operators --


hermitian = Question(lambda a: measured(a, "hermitian"), known="hermitian")
_READ = heads("tells")


def read_hermitian(op: Any) -> bool | None:
    """Is it Hermitian, by how it is written or by its parameters? None: not known before its
    entries are there."""
    found: bool | None = known(op, "hermitian")
    if found is None and op._head in _READ and op._init is not None:
        return bool(hermitian(op))
    if found is None and op._head in OF_PARTS and op._init is not None:  # their row says so
        return None if all(f.shape[-1] == f.shape[-2] for f in op._init) else False
    return found


def _is_hermitian(op: Any) -> Any:
    """Likewise, by its entries; of small arrays at once, each."""
    if not has_small_parts(op):
        return hermitian(op)
    for f in op._init:
        if not measured(small_array(f), "hermitian"):
            return False
    return True


GUARDS["hermitian"] = Guard(
    "Hermitian, as it is written or by its entries", _is_hermitian, read_hermitian
)


def looks_hermitian(op: Any) -> bool:
    """Is it known to be Hermitian, or an array that is? Prices ask this: nothing is computed."""
    found = read_hermitian(op)
    if found is None and op._head == "dense" and op._init is not None:
        return bool(hermitian.dense(np.asarray(op._given("a"))))
    return bool(found)


def refuse_two_of_nan(a: Any) -> None:
    """Raises for 2 x 2 with NaN: LAPACK finds finite eigenvalues there; larger ones it refuses."""
    if a.shape[-1] == 2 and not np.isfinite(a).all():
        raise np.linalg.LinAlgError("Eigenvalues did not converge")


def _dense_eigenvalues(a: Any, uplo: Any) -> Any:
    refuse_two_of_nan(a)
    return np.linalg.eigvalsh(a, uplo)


eigvalsh = Question(
    _dense_eigenvalues,
    "eigvalsh",
    how="LAPACK's syevd",
    cost="4 n^3 / 3",
    kept="eigvalsh",
    defaults=("L",),
)


# -- pseudo-inverse --

pinv = Question(
    lambda a, how: _core.Dense(np.linalg.pinv(a, **how)),
    "pinv",
    how="SVD, a Dense",
    cost="14 m n^2; as an SVD with vectors",
    defaults=({},),
    kept="pinv",
    arrays=9,
)
