"""Functions of what is given decomposed: `Eigen`, `Root`, `Congruence`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base.kind_flags import DIAGONAL, OF_PARTS
from ..._operators.convert import as_operator
from .. import qr
from ..cholesky import cholesky, is_lower, not_definite, real_diagonal, upper_of
from ..dispatch import dense
from ..eig import _pair, _split, pairs_row
from ..eigh import eigenbasis
from ..least_squares import frames
from ..matrix_functions import _by_basis, _hermitian_only, _thin, functions_row, named
from ..operands import _as_precise, diagonal_of, factors_of
from ..pinv import _reciprocals, _relative
from ..qr import orthonormal
from ..questions import eigvalsh, hermitian, pinv, read_hermitian, svdvals
from ..rows import GUARDS
from ..singular_values import _padded, descending, floats
from ..square_roots import _beside, _powers, nonnegative, power, root
from ..svd import Matched, _matched, of_basis, phases, singular
from ..unitary import begun_by, is_unitary

# -- singular values, norms, eigenvalues --


@svdvals.row(
    "eigen",
    how="moduli of d where Q is known to be unitary",
    cost="O(n log n)",
    guard="given unitary_q",
)
def _(op: Any) -> Any:
    return _padded(descending(np.abs(floats(op._given("d")))), op)


@svdvals.row("root", how="squares of L's", cost="L's", guard="given")
def _(op: Any) -> Generator[Any, Any, Any]:
    return _padded((yield (op._given("L"),)) ** 2, op)


@hermitian.row("eigen")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return not np.imag(op._given("d")).any() or NotImplemented


@hermitian.row("root")
def _(op: Any) -> bool:
    return True


@eigvalsh.row(
    "eigen",
    how="d, sorted, where Q is known to be unitary",
    cost="O(n log n)",
    guard="given unitary_q hermitian",
)
def _(op: Any, uplo: str) -> Any:
    w = np.sort(floats(op._given("d")).real, axis=-1)
    return np.broadcast_to(w, (*op.shape[:-2], op.shape[-1]))


@eigvalsh.row("root", how="squares of L's singular values", cost="`svdvals`", guard="given")
def _(op: Any, uplo: str) -> Any:
    return svdvals(op)[..., ::-1]


@hermitian.row("congruence")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    return (yield (as_operator(op._given("B")),)) or NotImplemented


# -- pseudo-inverses --


@pinv.row(
    "eigen", how="an Eigen where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, how: Any) -> Any:
    d = floats(op._given("d"))
    cut = _relative(how, op) * np.abs(d).max(axis=-1)
    return _core.Eigen(op._given("Q"), _reciprocals(d, np.asarray(cut)[..., None]))


# -- eigh --


@eigenbasis.row(
    "eigen",
    how="its own, where Q is known to be unitary",
    cost="O(1)",
    guard="given unitary_q hermitian",
)
def _(op: Any, uplo: str) -> Any:
    return floats(op._given("d")).real, op._given("Q").copy()


@eigenbasis.row(
    "congruence",
    how="A Q of B's, where A is known to be unitary",
    cost="that of B",
    guard="given unitary_a hermitian",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if not hermitian(as_operator(op._given("B"))):
        return NotImplemented
    w, q = yield as_operator(op._given("B")), uplo
    return w, op._given("A").copy() @ q


# -- svd --


@singular.row(
    "congruence", how="of Hermitian ones: eigh, where A is known to be unitary",
    cost="that of eigh", guard="given unitary_a hermitian",
)  # fmt: skip
def _(op: Any, full: bool) -> Any:
    return of_basis(*eigenbasis(op, "L"))


# -- eig --


@pairs_row(
    "eigen", how="its own, where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, vectors: bool) -> Any:
    return _pair(floats(op._given("d")), lambda: op._given("Q").copy(), vectors)


@pairs_row(
    "congruence",
    how="A V of B's, where A is known to be unitary",
    cost="that of B",
    guard="given unitary_a",
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    w, v = _split((yield (as_operator(op._given("B")),)), vectors)
    return _pair(w, lambda: op._given("A").copy() @ v, vectors)


# -- svd --


@singular.row(
    "eigen", how="moduli of d, where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, full: bool) -> Any:
    return of_basis(floats(op._given("d")), op._given("Q").copy())


def _thin_l(op: Any) -> Any:
    """The L of a Root, where it is dense and thin; else None."""
    inner = _as_precise(as_operator(op._given("L")), op)
    thin = inner._head == "dense" and 0 < 4 * inner.shape[-1] <= inner.shape[-2]
    return inner if thin else None


def _of_thin(op: Any) -> Any:
    """The singular values and all left vectors of a thin L, in n k numbers; else None."""
    inner = _thin_l(op)
    if inner is None:
        return None
    q, s, _ = np.linalg.svd(dense(inner), full_matrices=False)
    u = begun_by(q, np.eye(q.shape[-1], dtype=q.dtype))
    return _matched(u, s, u)


def _root_asks(op: Any, *args: Any) -> Any:
    return [] if _thin_l(op) is not None else [("svd", as_operator(op._given("L")), True)]


def _root_price(op: Any) -> str | None:
    return "14 n k^2" if op._init is not None and _thin_l(op) is not None else None


@singular.row(
    "root",
    how="squares of L's; U is L's, of a thin L reflections",
    cost="that of L",
    guard="given",
    asks=_root_asks,
    instead=_root_price,
)
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    found = _of_thin(op)
    if found is None:
        found = yield _as_precise(as_operator(op._given("L")), op), True
    return Matched(found.u, found.s**2, found.u, found.rows, found.rows)


@eigenbasis.row(
    "root",
    how="by the svd of L, all of its U; of a thin L reflections",
    cost="svd of L",
    guard="given",
    asks=_root_asks,
    instead=_root_price,
)
def _(op: Any, uplo: str) -> Any:
    found = _of_thin(op)
    if found is None:
        found = singular(op._given("L"), True)
    w = np.zeros((*found.s.shape[:-1], op.shape[-1]), found.s.dtype)
    w[..., found.rows] = found.s**2
    return w, found.u


# -- cholesky --


def positive(factor: Any) -> Any:
    """A lower triangular operator with its columns scaled so that its diagonal is real and
    positive; None where its kind is not known to be triangular, or its diagonal has zeros."""
    if factor._head in OF_PARTS:
        join = _core.Kron if factor._head == "kron" else _core.BlockDiag
        found = [positive(f) for f in factors_of(factor)]
        return None if any(f is None for f in found) else join(*found)
    banded = factor._head == "banded" and factor._init is not None
    banded = banded and factor._given("l_and_u")[1] == 0
    if not (banded or is_lower(factor) or factor._head in DIAGONAL):
        return None
    d = diagonal_of(factor) if factor._head in DIAGONAL else factor.diagonal()
    if not (np.abs(d) > 0).all():
        return None
    phase = np.conj(d / np.abs(d))
    if (phase == 1).all():
        return factor
    if factor._head == "triangular":
        return _core.Triangular(dense(factor) * phase[..., None, :])
    if banded:
        widths, ab = factor._given("l_and_u", "ab")
        return _core.Banded(widths, ab * phase[..., None, :])
    return _core.Diag(np.abs(d).astype(d.dtype, copy=False))


def _qr_asks(op: Any, uplo: str) -> Any:
    inner = as_operator(op._given("L"))
    if inner.shape[-1] < op.shape[-1]:
        return None
    itself = inner.shape[-1] == inner.shape[-2] and (
        inner._head in (*OF_PARTS, *DIAGONAL, "banded") or is_lower(inner)
    )
    return [] if itself else [(qr.qr, inner.H, "r")]


@cholesky.row(
    "root",
    how="L itself where it is lower triangular, else by QR of L^H, which nothing squares",
    cost="qr of L^H",
    guard="given",
    asks=_qr_asks,
    doubt="where L has fewer independent columns than rows",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if op._given("L").shape[-1] < op.shape[-1]:
        return NotImplemented
    inner = op._given("L")
    found = positive(inner) if inner.shape[-1] == inner.shape[-2] else None
    if found is None:
        found = positive(upper_of(qr.qr(inner.H, "r")))
    return NotImplemented if found is None else found
    yield  # a row is a generator


# -- least squares, null spaces, ranges --


@frames.row(
    "eigen", how="Q and d where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, want: str) -> Any:
    d = floats(op._given("d"))
    phase, size = phases(d), np.abs(d)
    return op._given("Q") @ _core.Diag(phase), size, op._given("Q")


@frames.row("root", how="by eigh", cost="that of eigh", guard="given")
def _(op: Any, want: str) -> Any:
    w, q = eigenbasis(op, "L")
    return q, w, q


@pinv.row("root", how="by eigh, an Eigen", cost="that of eigh", guard="given")
def _(op: Any, how: Any) -> Any:
    w, q = eigenbasis(op, "L")
    cut = np.asarray(_relative(how, op))[..., None] * np.abs(w).max(axis=-1, keepdims=True)
    return _core.Eigen(q, _reciprocals(w, cut))


# -- exp, log, powers --


def _asks_beside(guard: str, ask: Any) -> tuple[Any, Any]:
    """(asks, doubt) of f of what has a unitary factor: ``ask``; of others, eigh of Hermitian
    ones."""

    def has(op: Any) -> bool:
        return op._init is not None and bool(GUARDS[guard].holds(op))

    def asks(op: Any, f: Any) -> Any:
        if has(op):
            return ask(op, f)
        return None if read_hermitian(op) is False else [("eigh", op, "L")]

    def doubt(op: Any, f: Any) -> Any:
        sure = has(op) or read_hermitian(op) is not None
        return None if sure else ("where it is not Hermitian", None)

    return asks, doubt


_EIGEN = _asks_beside("unitary_q", lambda op, f: [])
_CONGRUENCE = _asks_beside(
    "unitary_a", lambda op, f: [(named(f), _as_precise(as_operator(op._given("B")), op), f)]
)


@functions_row(
    "eigen", how="of d, where Q is known to be unitary", cost="O(n)",
    asks=_EIGEN[0], doubt=_EIGEN[1],
)  # fmt: skip
def _(op: Any, f: Any) -> Any:
    if op._init is None or not is_unitary(as_operator(op._given("Q"))):
        return _hermitian_only(op, f)
    return _core.Eigen(op._given("Q").copy(), f(floats(op._given("d"))))


@functions_row(
    "congruence", how="A f(B) A^H where A is known to be unitary", cost="that of B",
    asks=_CONGRUENCE[0], doubt=_CONGRUENCE[1],
)  # fmt: skip
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    if op._init is None or not is_unitary(op._given("A")):
        return _hermitian_only(op, f)
    inner = yield _as_precise(as_operator(op._given("B")), op), f
    return _core.Congruence(op._given("A").copy(), inner)


@functions_row(
    "root", how="as the low rank it is, L thin; by the svd of L", cost="O(n k^2)", guard="given",
    asks=lambda op, f: [] if _half(op) is not None else [("eigh", op, "L")],
    instead=lambda op: None if _half(op) is not None else "O(n)",
)  # fmt: skip
def _(op: Any, f: Any) -> Any:
    root = _half(op)
    return _by_basis(op, f) if root is None else _thin(_core.LowRank(root), f)


def _half(op: Any) -> Any:
    """The L of a Root, where it is dense and has at most half as many columns as rows."""
    root = _as_precise(as_operator(op._given("L")), op)
    return root if root._head == "dense" and 2 * root.shape[-1] <= root.shape[-2] else None


# -- square roots, samples --


@power.row(
    "eigen", how="Q f(d) Q^H where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, p: Any) -> Any:
    w = nonnegative(real_diagonal(floats(op._given("d"))), p > 0, exact=True)
    return _core.Eigen(op._given("Q"), _powers(w, p))


@power.row("root", how="SVD of L, which nothing squares", cost="14 n k^2", guard="given")
def _(op: Any, p: Any) -> Any:
    n, k = op._given("L").shape[-2:]
    if n > k and p < 0:
        raise not_definite(np.ones(op.shape[:-2], bool), f"has rank {k} at most")
    q, s, _ = np.linalg.svd(dense(op._given("L")), full_matrices=False)
    s = nonnegative(s, p > 0)
    return _core.Eigen(orthonormal(q), s if p > 0 else 1 / s)


@root.row("root", how="L itself", cost="O(1)")
def _(op: Any) -> Any:
    return NotImplemented if op._init is None else op._given("L")


@root.row(
    "congruence", how="A times B's", cost="B's", guard="given",
    doubt=lambda op: (
        "where B is not semidefinite", [("sample", as_operator(op._given("B"))), None]
    ),
)  # fmt: skip
def _(op: Any) -> Any:
    inner = _beside([op._given("B")])
    return inner if inner is NotImplemented else as_operator(op._given("A")) @ inner


@root.row("eigen", how="Q d^1/2", cost="O(n)", guard="given")
def _(op: Any) -> Any:
    w = real_diagonal(floats(op._given("d")))
    if (w < 0).any() and not is_unitary(op._given("Q")):
        return NotImplemented
    return as_operator(op._given("Q")) @ _core.Diag(np.sqrt(nonnegative(w)))


# -- by known eigenvectors --


@power.row(
    "congruence", how="A f(B) A^H where A is known to be unitary", cost="that of B",
    guard="given unitary_a",
)  # fmt: skip
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    inner = yield _as_precise(as_operator(op._given("B")), op), p
    return _core.Congruence(op._given("A").copy(), inner)


@pinv.row(
    "congruence", how="A pinv(B) A^H where A is known to be unitary", cost="that of B",
    guard="given unitary_a",
)  # fmt: skip
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    inner = yield _as_precise(as_operator(op._given("B")), op), how
    return _core.Congruence(op._given("A").copy(), inner)


@frames.row(
    "congruence",
    how="A times B's where A is known to be unitary",
    cost="that of B",
    guard="given unitary_a",
)
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    u, s, v = yield _as_precise(as_operator(op._given("B")), op), want
    outer = op._given("A")
    return None if u is None else outer @ u, s, outer @ v
