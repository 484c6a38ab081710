"""The questions about operators that have immediate answers: singular values, norms, condition
numbers, ranks, Hermitian eigenvalues, pseudo-inverses; with the rows of composites and diagonals.
The rows of the other kinds are in singular_values.py, eigenvalues_hermitian.py, norms.py and
pinv.py."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import memory, multiples
from .._base.dtypes import TRANSPOSED, inexact, real_of
from .dispatch import GUARDS, Guard, Question, _view, diagonal_of, factors_of, modulus, within

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


@svdvals.row("diag", "identity", how="moduli, sorted", cost="O(n log n)")
def _(op: Any) -> Any:
    return np.sort(np.abs(diagonal_of(op)), axis=-1)[..., ::-1]


@svdvals.row("zeros", how="zeros", cost="O(n)")
def _(op: Any) -> Any:
    return np.zeros((*op.shape[:-2], min(op.shape[-2:])), real_of(op.dtype))


@svdvals.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield (within(op),))


@svdvals.row("view", how="A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@svdvals.row("kron", how="all products of the factors', sorted", cost="the factors', n log n")
def _(op: Any) -> Generator[Any, Any, Any]:
    k = min(op.shape[-2:])
    memory.materialising(op, k * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in factors_of(op):
        s = outer(s, (yield (f,)))
    rest = np.zeros((*s.shape[:-1], k - s.shape[-1]))  # tall and wide factors together
    return np.concatenate([np.sort(s, axis=-1)[..., ::-1], rest], axis=-1)


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


def _turned(ord: Any, mode: int) -> Any:
    """The order of the transpose's norm that equals this one."""
    other = {1: np.inf, np.inf: 1, -1: -np.inf, -np.inf: -1}
    return other.get(ord, ord) if mode & TRANSPOSED else ord


def norm_of_values(s: Any, ord: Any) -> Any:
    """The norm of diag(s), s not negative."""
    if ord == "fro":
        return np.linalg.norm(s, axis=-1)
    if ord == "nuc":
        return s.sum(axis=-1)
    return s.max(axis=-1) if ord > 0 else s.min(axis=-1)


@norm.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, ord: Any) -> Any:
    return norm_of_values(np.abs(diagonal_of(op)), ord)


@norm.row("zeros", how="0", cost="O(1)")
def _(op: Any, ord: Any) -> Any:
    return np.zeros(op.shape[:-2])


@norm.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield within(op), ord)


@norm.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(ord, op._mode))


@norm.row("kron", how="product of the factors'", cost="sum of the factors'")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    if ord == -2 and not _full_rank_possible(op):
        return np.zeros(op.shape[:-2])
    whole = np.ones(())
    for f in factors_of(op):
        whole = whole * (yield f, ord)
    return whole


def _full_rank_possible(op: Any) -> bool:
    """Are all factors of a Kron tall, or all wide? If not, the least singular value is 0."""
    shapes = [f.shape[-2:] for f in factors_of(op)]
    return all(m >= n for m, n in shapes) or all(m <= n for m, n in shapes)


# -- condition, rank --

cond = Question(
    lambda a, p: np.linalg.cond(a, p),
    "cond",
    how="from gesdd, or the inverse",
    cost="4 m n^2",
    kept="cond",
    arrays=4,
)


@cond.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, p: Any) -> Any:
    s = np.abs(diagonal_of(op))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if p in (2, -2):
            c = norm_of_values(s, p) / norm_of_values(s, -p)
        else:
            c = norm_of_values(s, p) * norm_of_values(1 / s, p)
    return np.where(np.isnan(c) & ~np.isnan(s).any(axis=-1), np.inf, c)  # 0/0: singular


@cond.row("zeros", how="inf", cost="O(1)")
def _(op: Any, p: Any) -> Any:
    return np.full(op.shape[:-2], np.inf)


@cond.row("scaled", how="A's", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not 0 < modulus(op._operands[1]) < np.inf:
        return NotImplemented
    return (yield within(op), p)


@cond.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(p, op._mode))


@cond.row(
    "kron",
    how="product of the factors'; inf where some are tall, some wide",
    cost="sum of the factors'",
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not _full_rank_possible(op):
        return np.full(op.shape[:-2], 0.0 if p == -2 else np.inf)
    whole = np.ones(())
    for f in factors_of(op):
        whole = whole * (yield f, p)
    return whole


# -- eigenvalues of Hermitian operators --


hermitian = Question(
    lambda a: bool(np.array_equal(a, np.swapaxes(a, -1, -2).conj())), known="hermitian"
)
# Kinds whose parameters, few and at hand, say whether they are Hermitian.
_READ = frozenset(
    "diag banded tridiagonal blocktridiagonal toeplitz circulant permutation householder "
    "sparse".split()
)


def read_hermitian(op: Any) -> bool | None:
    """Is it Hermitian, by how it is written or by its parameters? None: not known before its
    entries are there."""
    found: bool | None = op._known("hermitian")
    if found is None and op._head in _READ and op._init is not None:
        return bool(hermitian(op))
    return found


GUARDS["hermitian"] = Guard(
    "Hermitian, as it is written or by its entries", hermitian, read_hermitian
)


def looks_hermitian(op: Any) -> bool:
    """Is it known to be Hermitian, or an array that is? Prices ask this: nothing is computed."""
    found = read_hermitian(op)
    if found is None and op._head == "dense" and op._init is not None:
        return bool(hermitian.dense(np.asarray(op._given("a"))))
    return bool(found)


@hermitian.row("diag", "identity")
def _(op: Any) -> bool:
    return not np.iscomplexobj(d := diagonal_of(op)) or not d.imag.any()


@hermitian.row("zeros")
def _(op: Any) -> Any:
    return op.shape[-1] == op.shape[-2]


@hermitian.row("scaled")
def _(op: Any) -> Generator[Any, Any, Any]:
    return complex(op._operands[1]).imag == 0 and (yield (op._operands[0],))


@hermitian.row("view")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@hermitian.row("kron")
def _(op: Any) -> Generator[Any, Any, Any]:
    for f in factors_of(op):
        if f.shape[-1] != f.shape[-2] or not (yield (f,)):
            return False
    return True


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


@eigvalsh.row("diag", "identity", how="sorted", cost="O(n log n)")
def _(op: Any, uplo: str) -> Any:
    return np.sort(diagonal_of(op).real, axis=-1)


@eigvalsh.row("zeros", how="zeros", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    return np.zeros(op.shape[:-1], real_of(op.dtype))


@eigvalsh.row("scaled", how="c times A's, c real", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    if c.imag:
        return NotImplemented
    return np.sort(c.real * (yield within(op), uplo), axis=-1)


@eigvalsh.row("view", how="A's", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], {"L": "U", "U": "L"}[uplo] if op._mode & TRANSPOSED else uplo)


@eigvalsh.row(
    "kron",
    how="all products of the factors', Hermitian ones, sorted",
    cost="the factors', n log n",
    guard="hermitian",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    w = np.ones(1)
    for f in factors_of(op):
        w = outer(w, (yield f, uplo))
    return np.sort(w, axis=-1)


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


@pinv.row("diag", how="reciprocals, a Diag", cost="O(n)")
def _(op: Any, how: Any) -> Any:
    d = diagonal_of(op)
    s = np.abs(d)
    r = how.get("rtol", how.get("rcond"))
    r = 1e-15 if r is None and "rtol" not in how else r
    r = d.shape[-1] * np.finfo(s.dtype).eps if r is None else np.asarray(r)[..., None]
    keep = s > r * s.max(axis=-1, keepdims=True)
    return _core.Diag(np.divide(1, d, where=keep, out=np.zeros_like(d)))


@pinv.row("identity", how="itself", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


@pinv.row("zeros", how="Zeros", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    dtype = None if op._weak else inexact(op.dtype)
    return _core.Zeros((*op.shape[:-2], op.shape[-1], op.shape[-2]), dtype)


@pinv.row("scaled", how="1/c times A's", cost="A's")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    c = op._operands[1]
    size = modulus(c)
    if not 0 < size < math.inf or math.isinf(1 / size):
        return NotImplemented
    return multiples.divide((yield within(op), how), c)


@pinv.row("view", how="A's, seen so", cost="A's")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    return _view((yield op._operands[0], how), op._mode)


@pinv.row("kron", how="a Kron of the factors', each with its own cut", cost="sum of the factors'")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    found = []
    for f in factors_of(op):
        found.append((yield f, how))
    return _core.Kron(*found)
