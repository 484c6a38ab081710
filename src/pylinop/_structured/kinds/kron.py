"""Functions of `Kron` and `KronSum`, factor by factor."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base import memory
from ..._base.dtypes import real_of
from ..._base.kind_flags import DIAGONAL
from ..._base.lengths import length
from .. import mixed_shapes
from ..cholesky import cholesky, is_hermitian, not_definite
from ..dispatch import dense
from ..eig import _pair, _split, pairs_row
from ..eigh import eigenbasis
from ..kron_branches import (
    all_square,
    alone_asks,
    alone_doubt,
    branches_asks,
    branches_doubt,
    each_alone,
    otherwise,
)
from ..least_squares import _joined as least_squares_joined
from ..least_squares import frames
from ..lu import _joined as lu_joined
from ..lu import ldl, lu
from ..matrix_functions import _by_basis, expm, functions_row, funm, logm, power
from ..norms import _root_of_squares, frobenius, sums
from ..operands import factors_of, small_array
from ..properties import ROUNDED, measured
from ..qr import _joined, alike, qr, qr_asks
from ..questions import (
    cond,
    eigvalsh,
    hermitian,
    norm,
    outer,
    pinv,
    svdvals,
)
from ..scalar_function import Function
from ..singular_values import descending, vector_room
from ..square_roots import _powers, nonnegative, require_hermitian, root
from ..square_roots import power as square_roots_power
from ..svd import Matched, _same_side, singular

# -- singular values, norms, eigenvalues --


@svdvals.row("kron", how="all products of the factors', sorted", cost="the factors', n log n")
def _(op: Any) -> Generator[Any, Any, Any]:
    k = min(op.shape[-2:])
    memory.materialising(op, k * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in factors_of(op):
        s = outer(s, (yield (f,)))
    rest = np.zeros((*s.shape[:-1], k - s.shape[-1]))  # tall and wide factors together
    return np.concatenate([np.sort(s, axis=-1)[..., ::-1], rest], axis=-1)


def _norm_asks(op: Any, ord: Any) -> Any:
    none = ord == -2 and not _full_rank_possible(op)
    return [] if none else [("matrix_norm", f, ord) for f in factors_of(op)]


@norm.row("kron", how="product of the factors'", cost="sum of the factors'", asks=_norm_asks)
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


@cond.row(
    "kron",
    how="product of the factors'; inf where some are tall, some wide",
    cost="sum of the factors'",
    asks=lambda op, p: [("cond", f, p) for f in factors_of(op)] if _full_rank_possible(op) else [],
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not _full_rank_possible(op):
        return np.full(op.shape[:-2], 0.0 if p == -2 else np.inf)
    whole = np.ones(())
    for f in factors_of(op):
        whole = whole * (yield f, p)
    return whole


@hermitian.row("kron")
def _(op: Any) -> Generator[Any, Any, Any]:
    for f in factors_of(op):
        if f.shape[-1] != f.shape[-2] or not (yield (f,)):
            return False
    return True


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


@pinv.row("kron", how="a Kron of the factors', each with its own cut", cost="sum of the factors'")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    found = []
    for f in factors_of(op):
        found.append((yield f, how))
    return _core.Kron(*found)


@svdvals.row(
    "kronsum",
    how="moduli of its eigenvalues, Hermitian",
    cost="that of `eigvalsh`, n log n",
    guard="hermitian",
)
def _(op: Any) -> Any:
    return descending(np.abs(eigvalsh(op, "L")))


@eigvalsh.row(
    "kronsum", how="all sums of the factors'", cost="the factors', n log n", guard="given"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w = np.zeros(1)
    for f in factors_of(op):
        one = yield f, uplo
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
    return np.sort(w, axis=-1)


# -- norms --


@sums.row("kron")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    memory.materialising(op, max(op.shape[-2:]) * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in factors_of(op):
        s = outer(s, (yield f, axis))
    return s


@frobenius.row("kron")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for f in factors_of(op):
        parts.append((yield (f,)))
    return functools.reduce(operator.mul, parts)


@frobenius.row("kronsum")
def _(op: Any) -> Any:
    """By the diagonals of the operands, which meet, and their other entries, which do not."""
    if op._init is None or op.ndim != 2:
        return NotImplemented
    main, parts = np.zeros(1), []
    for f in factors_of(op):
        a = dense(f)
        if not np.isfinite(a).all():  # 0 times these is in the dense form
            return NotImplemented
        beside = a.copy()
        np.fill_diagonal(beside, 0)
        parts.append(math.sqrt(op.shape[-1] / a.shape[-1]) * norm.dense(beside, "fro"))
        main = np.add.outer(main, np.diagonal(a)).ravel()
    return _root_of_squares([*parts, length(main)])


# -- eigh --


@eigenbasis.row(
    "kron",
    how="factor by factor, where each is Hermitian; Q is a Kron",
    cost="sum of the factors'",
    guard="hermitian",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w, vectors = np.ones(1), []
    for f in factors_of(op):
        one, q = yield f, uplo
        w = outer(w, one)
        vectors.append(q)
    return w, _core.Kron(*vectors)


@eigenbasis.row(
    "kronsum", how="operand by operand; Q is a Kron", cost="sum of the operands'", guard="given"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w, vectors = np.zeros(1), []
    for f in factors_of(op):
        one, q = yield f, uplo
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
        vectors.append(q)
    return w, _core.Kron(*vectors)


# -- eig --


@pairs_row(
    "kron",
    how="factor by factor, square ones; V is a Kron",
    cost="sum of the factors'",
    guard="square_parts",
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    vector_room(op)
    w, parts = np.ones(1), []
    for f in factors:
        one, v = _split((yield (f,)), vectors)
        w = outer(w, one)
        parts.append(v)
    return _pair(w, lambda: _core.Kron(*parts), vectors)


@pairs_row(
    "kronsum", how="operand by operand; V is a Kron", cost="sum of the operands'", guard="given"
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    vector_room(op)
    w, parts = np.zeros(1), []
    for f in factors_of(op):
        one, v = _split((yield (f,)), vectors)
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
        parts.append(v)
    return _pair(w, lambda: _core.Kron(*parts), vectors)


# -- svd --


@singular.row("kron", how="factor by factor; U and V are Krons", cost="sum of the factors'")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    full = full or not _same_side([f.shape[-2:] for f in factors])
    vector_room(op)
    us, vs = [], []
    s, rows, cols = np.ones(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
    for f in factors:
        one = yield f, full
        s = outer(s, one.s)
        rows = np.add.outer(rows * one.u.shape[-1], one.rows).ravel()
        cols = np.add.outer(cols * one.v.shape[-1], one.cols).ravel()
        us.append(one.u)
        vs.append(one.v)
    return Matched(_core.Kron(*us), s, _core.Kron(*vs), rows, cols)


# -- cholesky --


def _asks_of_square(name: str) -> Any:
    """The same of each factor, where all are square."""

    def asks(op: Any, *args: Any) -> Any:
        factors = factors_of(op)
        return [(name, f, *args) for f in factors] if all_square(factors) else None

    return asks


_SIGNS = "where a factor is not Hermitian, or the signs of the traces do not multiply to 1"


def _is_turned(f: Any) -> Any:
    """Is the first element of each matrix of a batch negative? None: it is not Hermitian."""
    a = small_array(f) if type(f) is _core.Dense else None
    if a is not None and a.ndim == 2:
        return a.item(0).real < 0 if measured(a, "hermitian", ROUNDED) else None
    if f.shape[-1] != f.shape[-2] or not is_hermitian(f):
        return None
    if f._head == "dense" and f._init is not None:
        a = np.asarray(f._given("a"))
        return a.item(0).real < 0 if a.ndim == 2 else a[..., 0, 0].real < 0
    first = f.diagonal()[..., 0].real < 0
    return first if first.ndim else bool(first)


@cholesky.row(
    "kron",
    how="a Kron of the factors', of Hermitian factors, all definite, an even number negative",
    cost="sum of the factors'",
    asks=_asks_of_square("cholesky"),
    doubt="where a factor is not Hermitian",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    turned = []
    for f in factors:
        negative = _is_turned(f)
        if negative is None:
            return NotImplemented  # (iA) (x) (-iB) may be definite
        if type(negative) is not bool:
            if negative.any() != negative.all():
                return NotImplemented
            negative = bool(negative.any())
        turned.append(negative)
    if sum(turned) % 2:
        raise not_definite(np.ones(op.shape[:-2], bool))
    found = []
    for f, minus in zip(factors, turned, strict=True):
        found.append((yield -f if minus else f, uplo))
    return _core.Kron(*found)


# -- qr --


@qr.row(
    "kron",
    how="Krons of the factors', columns exchanged of tall and wide ones",
    cost="sum of the factors'",
    asks=qr_asks,
)
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if not alike(factors, mode):
        return (yield from mixed_shapes.qr(op, _core.Kron, factors, mode))
    return (yield from _joined(_core.Kron, factors, mode))


# -- lu, ldl --


@lu.row(
    "kron", how="Krons of the factors', rows exchanged of tall ones", cost="sum of the factors'"
)
def _(op: Any) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if not all(f.shape[-2] <= f.shape[-1] for f in factors):
        return (yield from mixed_shapes.lu(op, _core.Kron, factors))
    return (yield from lu_joined(_core.Kron, factors))


@ldl.row(
    "kron",
    how="Krons of the factors', where each has a diagonal D",
    cost="sum of the factors'",
    guard="square_parts",
    doubt="where a factor is not its own adjoint, or has a D that is not diagonal",
)
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if not all(symmetric(f, hermitian) for f in factors):
        return NotImplemented
    outer, middle, order = [], [], np.zeros(1, np.intp)
    for f in factors:
        one, d, own = yield f, lower, hermitian
        if d._head not in DIAGONAL:
            return NotImplemented
        outer.append(one)
        middle.append(d)
        both = order[..., :, None] * f.shape[-1] + own[..., None, :]
        order = both.reshape(*both.shape[:-2], order.shape[-1] * f.shape[-1])
    order = np.broadcast_to(order, (*op.shape[:-2], op.shape[-1])).copy()
    return _core.Kron(*outer), _core.Kron(*middle), order


def symmetric(f: Any, hermitian: bool) -> Any:
    """Is a factor its own adjoint, or transpose, up to rounding?"""
    if hermitian or f.dtype.kind != "c":
        return is_hermitian(f)
    return f._head in DIAGONAL or (f.size <= 1 << 24 and measured(f, "symmetric", ROUNDED))


# -- least squares, null spaces, ranges --


@frames.row("kron", how="Krons of the factors', of any rank", cost="sum of the factors'")
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    found, s = [], np.ones(1, real_of(op.dtype))
    for f in factors_of(op):
        found.append((yield f, want))
        s = outer(s, found[-1][1])
    u, v = least_squares_joined(_core.Kron, found, want)
    return u, s, v


# -- exp, log, powers --


@power.row(
    "kron",
    how="factor by factor where the branches add up, or all but one are c I; Hermitian: by eigh",
    cost="sum of the factors'",
    asks=branches_asks,
    doubt=branches_doubt,
)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    factors = each_alone(op, f)
    if factors is None:
        return (yield from otherwise(op, f))
    found: list[Any] = []
    for factor in factors:
        found.append((yield factor, f if not found else Function("power", f.p)))
    return _core.Kron(*found)


@logm.row(
    "kron",
    how="KronSum of the factors' where the branches add up, else as `funm`",
    cost="sum of the factors'",
    asks=branches_asks,
    doubt=branches_doubt,
)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    factors = each_alone(op, f)
    if factors is None:
        return (yield from otherwise(op, f))
    found: list[Any] = []
    for factor in factors:
        found.append((yield factor, f if not found else Function("log")))
    return _core.KronSum(*found)


@functions_row(
    "kron",
    of=(expm, funm),
    how="all factors but one are c I: of that one; Hermitian: by eigh, a Kron of vectors",
    cost="sum of the factors'",
    asks=alone_asks,
    doubt=alone_doubt,
)
def _(op: Any, f: Any) -> Any:
    return otherwise(op, f)


@expm.row("kronsum", how="Kron of the operands'", cost="sum of the operands'", guard="given")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    found: list[Any] = []
    for operand in factors_of(op):
        inside = f if not found else Function("exp", scale=f.scale)
        found.append((yield operand, inside))
    return _core.Kron(*found)


@functions_row(
    "kronsum",
    of=(logm, power, funm),
    how="Hermitian: by eigh, a Kron of vectors",
    cost="eigh's",
    guard="given hermitian",
)
def _(op: Any, f: Any) -> Any:
    return _by_basis(op, f)


# -- square roots, samples --


def _semidefinite_factors(op: Any) -> list[Any] | None:
    """Hermitian factors, where those with a negative trace are negated; None where that does not
    make them semidefinite."""
    factors = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] or not is_hermitian(f) for f in factors):
        return None
    negative = [np.real(f.trace()) < 0 for f in factors]
    if any(np.any(s) != np.all(s) for s in negative) or sum(bool(np.all(s)) for s in negative) % 2:
        return None
    return [-f if np.all(s) else f for f, s in zip(factors, negative, strict=True)]


@square_roots_power.row(
    "kron",
    how="a Kron of the factors', Hermitian ones",
    cost="sum of the factors'",
    asks=_asks_of_square("sqrt_inv_matmul"),
    doubt=_SIGNS,
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    factors = _semidefinite_factors(op)
    if factors is None:
        return NotImplemented
    found = []
    for f in factors:
        found.append((yield f, p))
    return _core.Kron(*found)


@square_roots_power.row(
    "kronsum",
    how="eigenvectors of the factors, a Kron",
    cost="sum of the factors'",
    guard="given",
    asks=lambda op, p: [("eigh", f, "L") for f in factors_of(op)],
)
def _(op: Any, p: Any) -> Any:
    bases, w = [], np.zeros(1)
    for f in factors_of(op):
        if not hermitian(f):
            require_hermitian(dense(f))
        one, q = eigenbasis(f, "L")
        bases.append(q)
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
    w = nonnegative(w.astype(real_of(op.dtype), copy=False), p > 0)
    return _core.Eigen(_core.Kron(*bases), _powers(w, p))


@root.row(
    "kron",
    how="a Kron of the factors', Hermitian ones",
    cost="sum of the factors'",
    asks=_asks_of_square("sample"),
    doubt=_SIGNS,
)
def _(op: Any) -> Generator[Any, Any, Any]:
    factors = _semidefinite_factors(op)
    if factors is None:
        return NotImplemented
    found = []
    for f in factors:
        found.append((yield (f,)))
    return _core.Kron(*found)
