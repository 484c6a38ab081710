"""Functions of `LowRank` and `LowRankUpdate`, by matrices of k or 2 k rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._operators import quasiseparable
from ..._operators.convert import as_operator
from ..cholesky import cholesky, not_definite
from ..dispatch import mirrored
from ..eig import _pair, _split, by_eigh, eigvals, pairs, pairs_row
from ..eigenvalues_hermitian import constant_of, update_parts
from ..eigh import eigenbasis, thin_hermitian
from ..least_squares import frames
from ..lu import ldl
from ..matrix_functions import _hermitian_only, _thin, functions_row
from ..norms import frobenius
from ..pinv import _reciprocals, _relative
from ..questions import eigvalsh, hermitian, looks_hermitian, pinv, read_hermitian, svdvals
from ..rows import GUARDS
from ..singular_values import _padded, adjoint, core_of, descending
from ..square_roots import _beside, _powers, nonnegative, power, root
from ..svd import _adjoint, _matched, singular
from ..thin_shifts import moved
from ..thin_updates import _asks, _in_precision, as_quasiseparable
from ..unitary import begun_by, completed

# -- singular values, norms, eigenvalues --


@svdvals.row(
    "lowrank", how="QR of U and V, SVD of what is between", cost="O((m + n) k^2)", guard="thin"
)
def _(op: Any) -> Any:
    found = core_of(op)
    if found is None:
        return NotImplemented
    return _padded(np.linalg.svdvals(found[1]), op)


def _own_adjoint(op: Any, *args: Any) -> Any:
    """What a Hermitian U C U^H asks: nothing; None where V is another than U."""
    return [] if mirrored(*op._given("U", "V")) else None


def _c_doubt(op: Any, *args: Any) -> Any:
    c = op._given("C")
    sure = c is None or looks_hermitian(as_operator(c))
    return None if sure else ("where C is not Hermitian", None)


@eigvalsh.row(
    "lowrank",
    how="QR of U, of what is between; V left out",
    cost="O(n k^2)",
    guard="thin",
    asks=_own_adjoint,
    doubt=_c_doubt,
)
def _(op: Any, uplo: str) -> Any:
    found = None
    if op._init is not None and mirrored(*op._given("U", "V")):
        found = core_of(op)
    if found is None or not np.array_equal(found[1], found[1]):
        return NotImplemented
    inner = op._given("C")
    if inner is not None and not hermitian(as_operator(inner)):
        return NotImplemented
    w = np.linalg.eigvalsh((found[1] + adjoint(found[1])) / 2)
    return np.sort(_padded(w, op), axis=-1)


@hermitian.row("lowrank")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    u, v, c = op._given("U", "V", "C")
    if not mirrored(u, v):
        return False  # not by its factors
    return c is None or hermitian(as_operator(c)) or NotImplemented


@hermitian.row("lowrankupdate")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = update_parts(op)
    if parts is None:
        return NotImplemented
    for part in parts:
        if not (yield (part,)):
            return NotImplemented
    return True


def _is_thin_enough(op: Any) -> bool:
    """Is it c I and a thin part of fewer columns than rows?"""
    parts = update_parts(op)
    shift = parts is not None and GUARDS["thin_shift"].holds(op)
    return shift and parts is not None and GUARDS["thin"].holds(parts[1])


def shifted_thin(op: Any) -> tuple[Any, Any] | None:
    """(U C U^H, c) of a Hermitian matrix c I + U C U^H, else None."""
    parts = update_parts(op)
    if parts is None or parts[0].shape[-1] != parts[0].shape[-2]:
        return None
    c = constant_of(parts[0])
    return None if c is None or complex(c).imag or not hermitian(parts[1]) else (parts[1], c)


def _thin_asks(question: Any) -> Any:
    """What c I + U C V^H asks: the same of U C V^H."""

    def asks(op: Any, *args: Any) -> Any:
        parts = update_parts(op)
        square = parts is not None and parts[0].shape[-1] == parts[0].shape[-2]
        return [(question, parts[1], *args)] if parts is not None and square else None

    return asks


@eigvalsh.row(
    "lowrankupdate", how="of c I + U U^H: QR of U, + c", cost="that of U C V^H, O(n)",
    guard="thin_shift hermitian", asks=_thin_asks(eigvalsh),
)  # fmt: skip
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shifted_thin(op)
    if found is None:
        return NotImplemented
    return (yield found[0], uplo) + complex(found[1]).real


# -- norms --


@frobenius.row("lowrank")
def _(op: Any) -> Any:
    found = core_of(op)
    return NotImplemented if found is None else np.linalg.norm(found[1], axis=(-2, -1))


# -- pseudo-inverses --


@pinv.row("lowrank", how="a LowRank, by QR of U and V", cost="O((m + n) k^2)", guard="thin")
def _(op: Any, how: Any) -> Any:
    found = core_of(op)
    if found is None:
        return NotImplemented
    q, middle, p = found
    return _core.LowRank(p, q, np.linalg.pinv(middle, rcond=_relative(how, op)))


# -- eigh --


@eigenbasis.row(
    "lowrank",
    how="QR of U, eigh of k x k; Q by k reflections",
    cost="O(n k^2); Q in n k numbers",
    guard="thin hermitian",
)
def _(op: Any, uplo: str) -> Any:
    found = thin_hermitian(op)
    if found is None:
        return NotImplemented
    q, m = found
    values, vectors = np.linalg.eigh(m)
    k, n = m.shape[-1], op.shape[-1]
    w = np.zeros((*values.shape[:-1], n), values.dtype)
    w[..., :k] = values
    return w, begun_by(q, vectors)


@eigenbasis.row(
    "lowrankupdate",
    how="of c I + U C U^H: as U C U^H, c added",
    cost="that of U C V^H, O(n)",
    guard="thin_shift hermitian",
    asks=_thin_asks(eigenbasis),
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shifted_thin(op)
    if found is None:
        return NotImplemented
    w, q = yield found[0], uplo
    return w + complex(found[1]).real, q


# -- eig --


def _pairs_asks(op: Any, vectors: bool) -> Any:
    if looks_hermitian(op):
        return [("eigh" if vectors else "eigvalsh", op, "L")]
    return None if vectors and read_hermitian(op) is False else []


def _pairs_doubt(op: Any, vectors: bool) -> Any:
    if read_hermitian(op) is not None:
        return None
    where = "where it is Hermitian, or, with vectors, not" if vectors else "where it is Hermitian"
    asked = ("eigh" if vectors else "eigvalsh", op, "L")
    return where, [asked, None] if vectors else [asked]


@pairs_row(
    "lowrank",
    how="QR of the factors; Hermitian: eigh of k x k",
    cost="O(n k^2)",
    guard="thin",
    asks=_pairs_asks,
    doubt=_pairs_doubt,
)
def _(op: Any, vectors: bool) -> Any:
    if hermitian(op):
        return by_eigh(op, vectors)
    found = core_of(op)
    if found is None or not np.isfinite(found[1]).all():
        return NotImplemented
    q, middle, p = found
    if not vectors:  # those of (P^H Q) M and zeros
        small = np.swapaxes(p, -1, -2).conj() @ q @ middle
        return _padded(np.linalg.eigvals(small), op)
    return NotImplemented


@pairs_row(
    "lowrankupdate",
    how="of c I + U C V^H: as U C V^H, c added",
    cost="that of U C V^H, O(n)",
    guard="thin_shift",
    asks=lambda op, vectors: _thin_asks(pairs if vectors else eigvals)(op),
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    parts = update_parts(op)
    c = None if parts is None else constant_of(parts[0])
    if parts is None or c is None or parts[0].shape[-1] != parts[0].shape[-2]:
        return NotImplemented
    w, v = _split((yield (parts[1],)), vectors)
    return _pair(w + c, lambda: v, vectors)


# -- svd --


@singular.row(
    "lowrank",
    how="QR of U and V, svd of k x k; reflections",
    cost="O((m + n) k^2)",
    guard="thin",
)
def _(op: Any, full: bool) -> Any:
    found = core_of(op)
    if found is None or not np.isfinite(found[1]).all():
        return NotImplemented
    q, middle, p = found
    x, s, yh = np.linalg.svd(middle)
    return _matched(begun_by(q, x), s, begun_by(p, _adjoint(yh)))


# -- least squares, null spaces, ranges --


@frames.row(
    "lowrank",
    how="QR of U and V, SVD of what is between; not null spaces",
    cost="O((m + n) k^2)",
    guard="thin",
    asks=lambda op, want: None if want == "null" else [],
)
def _(op: Any, want: str) -> Any:
    found = None if want == "null" else core_of(op)
    if found is None:
        return NotImplemented
    q, middle, p = found
    u, s, vh = np.linalg.svd(middle)
    return _core.Dense(q @ u), s, _core.Dense(p @ np.swapaxes(vh, -1, -2).conj())


# -- exp, log, powers --


@functions_row("lowrank", how="of k x k, QR of U", cost="O(n k^2)", guard="thin hermitian")
def _(op: Any, f: Any) -> Any:
    return _thin(op, f)


@functions_row(
    "lowrankupdate",
    how="of c I + U C U^H: f(c) I and a low rank; of another base that is Hermitian by eigh",
    cost="O(n k^2)",
    guard="hermitian",
    asks=lambda op, f: [] if _is_thin_enough(op) else [("eigh", op, "L")],
)
def _(op: Any, f: Any) -> Any:
    found = shifted_thin(op)
    answer = NotImplemented if found is None else _thin(found[0], f, found[1])
    return _hermitian_only(op, f) if answer is NotImplemented else answer


# -- square roots, samples --


def _c_asks(op: Any) -> Any:
    u, v, c = op._given("U", "V", "C")
    if not mirrored(u, v):
        return None
    return [] if c is None else [("sample", as_operator(c))]


@root.row("lowrank", how="U times C's, V left out", cost="O(k^3)", guard="given", asks=_c_asks)
def _(op: Any) -> Generator[Any, Any, Any]:
    u, v, c = op._given("U", "V", "C")
    if not mirrored(u, v):
        return NotImplemented
    u = as_operator(u)
    return u if c is None else u @ (yield (as_operator(c),))


def _two_terms(op: Any) -> Any:
    if op._init is None:
        return op._operands if op._by == "sum" else ()
    base, u, v, c = op._given("base", "U", "V", "C")
    return base, _core.LowRank(u, v, c)


def _term_asks(op: Any) -> Any:
    terms = [as_operator(t) for t in _two_terms(op)]
    v = op._given("V") if op._init is not None else None
    whole = v is not None and v is not op._given("U")
    return None if whole or not terms else [("sample", t) for t in terms]


@root.row(
    "lowrankupdate",
    how="the base's beside U times C's, V left out",
    cost="both roots'",
    asks=_term_asks,
    doubt=lambda op: ("where a term is not semidefinite", [*(_term_asks(op) or ()), None]),
)
def _(op: Any) -> Any:
    if op._init is None:
        return _beside(op._operands) if op._by == "sum" else NotImplemented
    base, u, v, c = op._given("base", "U", "V", "C")
    return _beside((base, _core.LowRank(u, None, c))) if mirrored(u, v) else NotImplemented


# -- by known eigenvectors --


# -- c I and a thin part --


@svdvals.row(
    "lowrankupdate",
    how="of c I + U C V^H: |c| and those of 2k x 2k",
    cost="O(n k^2)",
    guard="thinner_shift",
)
def _(op: Any) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, _, m = found
    s = np.linalg.svdvals(m)
    rest = np.full((*s.shape[:-1], op.shape[-1] - s.shape[-1]), abs(complex(c)), s.dtype)
    return descending(np.concatenate([s, rest], axis=-1))


@singular.row(
    "lowrankupdate",
    how="of c I + U C V^H: QR of [U V], svd of 2k x 2k; reflections",
    cost="O(n k^2)",
    guard="thinner_shift",
)
def _(op: Any, full: bool) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, q, m = found
    u, s, vh = np.linalg.svd(m)
    whole, r = completed(q)
    turn = np.sign(np.diagonal(r, 0, -2, -1).real)[..., :, None]  # q has whole's columns, rotated
    rest = op.shape[-1] - s.shape[-1]
    size = abs(complex(c))
    one = _core.Identity(rest, m.dtype)
    phase = complex(c) / size if size else 1.0
    phase = phase if np.imag(phase) else np.real(phase)
    left = whole @ _core.BlockDiag(_core.Dense(turn * u), one if phase == 1 else phase * one)
    right = whole @ _core.BlockDiag(_core.Dense(turn * np.swapaxes(vh, -1, -2).conj()), one)
    s = np.concatenate([s, np.full((*s.shape[:-1], rest), size, s.dtype)], axis=-1)
    return _matched(left, s, right)


@frames.row(
    "lowrankupdate", how="of c I + U C V^H: as svd", cost="svd's", guard="thinner_shift",
    asks=lambda op, want: [("svd", op, True)],
)  # fmt: skip
def _(op: Any, want: str) -> Any:
    found = singular(op, True)
    return found.u, found.s, found.v


@pinv.row(
    "lowrankupdate",
    how="of c I + U C V^H: 1/c I and a thin part, by the pinv of 2k x 2k",
    cost="O(n k^2)",
    guard="single thinner_shift",
)
def _(op: Any, how: Any) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, q, m = found
    u, s, vh = np.linalg.svd(m)
    cut = float(_relative(how, op) * max(s.max(initial=0), abs(complex(c))))
    inner = (np.swapaxes(vh, -1, -2).conj() * _reciprocals(s, cut)) @ np.swapaxes(u, -1, -2).conj()
    if abs(complex(c)) <= cut:
        return _core.LowRank(q, None, inner)
    one = 1 / np.asarray(c).astype(m.dtype)
    base = _core.Diag(np.full(op.shape[-1], one))
    return _core.LowRankUpdate(base, q, None, inner - one * np.eye(m.shape[-1], dtype=m.dtype))


@power.row(
    "lowrankupdate",
    how="of c I + U C U^H: f(c) I and a low rank",
    cost="O(n k^2)",
    guard="thin_shift hermitian",
    asks=lambda op, p: [] if _is_thin_enough(op) else None,
)
def _(op: Any, p: Any) -> Any:
    found = shifted_thin(op)
    thin = None if found is None else thin_hermitian(found[0])
    if found is None or thin is None:
        return NotImplemented
    q, m = thin
    w, v = np.linalg.eigh(m)
    c = complex(found[1]).real
    every = np.concatenate([np.full((*w.shape[:-1], 1), c, w.dtype), w + c], axis=-1)
    f = _powers(nonnegative(every, p > 0), p)
    base = np.broadcast_to(f[..., :1], (*f.shape[:-1], op.shape[-1])).astype(m.dtype)
    return _core.LowRankUpdate(
        _core.Diag(base.copy()), q @ v, None, _core.Diag(f[..., 1:] - f[..., :1])
    )


# -- a diagonal and a thin part --


@cholesky.row(
    "lowrankupdate",
    how="of a diagonal base and k < n / 8: L D L^H in O(n), a QuasiSeparable of k states",
    cost="O(n k^2)",
    kept=True,
    asks=_asks,
    doubt=lambda op, uplo: None if read_hermitian(op) else ("where it is not Hermitian", None),
)
def _(op: Any, uplo: str) -> Any:
    whole = as_quasiseparable(op)
    if whole is None:
        return NotImplemented
    factor, bad = quasiseparable.cholesky_of(whole)
    if bad.any():
        raise not_definite(bad)
    return _in_precision(factor, op)


def _complex(op: Any) -> bool:
    return bool(op.dtype.kind == "c")


@ldl.row(
    "lowrankupdate",
    how="of definite ones with a diagonal base, k < n / 8: L a QuasiSeparable, D a Diag",
    cost="O(n k^2)",
    asks=lambda op, low, hermitian: _asks(op) if low and (hermitian or not _complex(op)) else None,
    doubt="where it is not Hermitian and definite",
)
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    if not lower or not (hermitian or op.dtype.kind != "c"):
        return NotImplemented
    whole = as_quasiseparable(op)
    if whole is None:
        return NotImplemented
    outer, d, bad = quasiseparable.ldl_of(whole)
    if bad.any():
        return NotImplemented
    n = op.shape[-1]
    order = np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()
    return _in_precision(outer, op), _core.Diag(d.astype(op.dtype, copy=False)), order
