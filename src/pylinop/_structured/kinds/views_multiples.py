"""Functions of `A.T`, `A.H`, `A.conj()` and `c * A`.

A view or a multiple comes here first, whatever kind it closed to."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from ... import _core
from ..._base import multiples
from ..._base.dtypes import CONJUGATED, TRANSPOSED, inexact
from ..._base.kind_flags import heads
from .. import cholesky_sparse
from ..banded_qr import bands_within
from ..banded_qr import qr as banded
from ..cholesky import cholesky, times
from ..eig import _pair, _split, eigvals, pairs, pairs_row
from ..eigh import eigenbasis, has_basis
from ..least_squares import frames
from ..lu import _itself, ldl, lu
from ..matrix_functions import functions_row, named
from ..norms import frobenius, sums
from ..operands import _view, factors_of, modulus, within
from ..qr import _of, identity_of, qr
from ..questions import (
    cond,
    eigvalsh,
    hermitian,
    looks_hermitian,
    norm,
    pinv,
    read_hermitian,
    svdvals,
)
from ..rows import GUARDS, guard_of
from ..singular_values import check_permutation
from ..square_roots import by_basis, power, root
from ..svd import Matched, singular
from ..unitary import is_unitary

_COMPOSED = heads("composed")
GUARDS["real_multiple"] = guard_of("c is real", lambda op: not complex(op._operands[1]).imag)
GUARDS["not_turned"] = guard_of("rows remain rows", lambda op: not op._mode & TRANSPOSED)

# -- singular values, norms, eigenvalues --


@svdvals.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield (within(op),))


@svdvals.row("view", how="A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


def _turned(ord: Any, mode: int) -> Any:
    """The order of the transpose's norm that equals this one."""
    other = {1: np.inf, np.inf: 1, -1: -np.inf, -np.inf: -1}
    return other.get(ord, ord) if mode & TRANSPOSED else ord


@norm.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield within(op), ord)


@norm.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(ord, op._mode))


@cond.row("scaled", how="A's", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not 0 < modulus(op._operands[1]) < np.inf:
        return NotImplemented
    return (yield within(op), p)


@cond.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(p, op._mode))


@hermitian.row("scaled")
def _(op: Any) -> Generator[Any, Any, Any]:
    return complex(op._operands[1]).imag == 0 and (yield (op._operands[0],))


@hermitian.row("view")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@eigvalsh.row("scaled", how="c times A's, c real", cost="A's", guard="real_multiple")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    return np.sort(c.real * (yield within(op), uplo), axis=-1)


@eigvalsh.row("view", how="A's", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], {"L": "U", "U": "L"}[uplo] if op._mode & TRANSPOSED else uplo)


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


# -- norms --


@sums.row("scaled")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield within(op), axis)


@sums.row("view")
def _(op: Any, axis: int) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], -3 - axis if op._mode & TRANSPOSED else axis)


@frobenius.row("scaled")
def _(op: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield (within(op),))


@frobenius.row("view")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


# -- eigh --


@eigenbasis.row(
    "scaled", how="A's Q, c times its values, c real", cost="that of A", guard="real_multiple"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    w, q = yield within(op), uplo
    return c.real * w, q


@eigenbasis.row("view", how="A's Q, conjugated where one of .T, .conj() stands", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    mode = op._mode
    if mode & TRANSPOSED:
        uplo = {"L": "U", "U": "L"}[uplo]
    w, q = yield op._operands[0], uplo
    return w, q if mode in (0, TRANSPOSED | CONJUGATED) else q.conj()


# -- eig --


@pairs_row("scaled", how="A's V, c times its values", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    w, v = _split((yield (within(op),)), vectors)
    return _pair(op._operands[1] * w, lambda: v, vectors)


def _left_asks(op: Any) -> Any:
    """The vectors of A; not of a transposed array whose vectors are no basis for it."""
    below = op._operands[0]
    held = below._head == "dense" and below._init is not None
    return (
        None if op._mode & TRANSPOSED and held and not looks_hermitian(below) else [("eig", below)]
    )


def _left_doubt(op: Any) -> Any:
    sure = not op._mode & TRANSPOSED or looks_hermitian(op._operands[0])
    return (
        None if sure else ("where V is not known to be unitary", [("eig", op._operands[0]), None])
    )


@pairs.row(
    "view",
    how="A's V, conjugated; of .T where V is known to be unitary",
    cost="that of A",
    asks=_left_asks,
    doubt=_left_doubt,
)
def _(op: Any) -> Generator[Any, Any, Any]:
    if _left_asks(op) is None:
        return NotImplemented
    w, v = yield (op._operands[0],)
    mode = op._mode
    if mode & TRANSPOSED and not is_unitary(v):
        return NotImplemented
    return w.conj() if mode & CONJUGATED else w, v.conj() if mode in (TRANSPOSED, CONJUGATED) else v


@eigvals.row("view", how="A's, conjugated", cost="that of A")
def _(op: Any) -> Generator[Any, Any, Any]:
    w = yield (op._operands[0],)
    return w.conj() if op._mode & CONJUGATED else w


# -- svd --


@singular.row("scaled", how="A's, |c| times; U takes c / |c|", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    c, size = op._operands[1], modulus(op._operands[1])
    found = yield within(op), full
    if size in (0, complex(c)):
        return found._replace(s=size * found.s)
    turn = complex(c) / size
    return found._replace(s=size * found.s, u=(turn if turn.imag else turn.real) * found.u)


@singular.row("view", how="A's, U and V exchanged or conjugated", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    found, mode = (yield op._operands[0], full), op._mode
    u, v, rows, cols = found.u, found.v, found.rows, found.cols
    if mode & TRANSPOSED:
        u, v, rows, cols = v, u, cols, rows
    if mode in (TRANSPOSED, CONJUGATED):
        u, v = u.conj(), v.conj()
    return Matched(u, found.s, v, rows, cols)


# -- cholesky --


def multiple_of(op: Any) -> tuple[Any, Any]:
    """(c, A) for a multiple c A with a positive c; the sign of a negative c goes into the first
    factor of a Kron. None for anything else."""
    c, inner = complex(op._operands[1]), within(op)
    if c.imag or not 0 < abs(c.real) < math.inf or (c.real < 0 and inner._head != "kron"):
        return None, inner
    if c.real < 0:
        first, *rest = factors_of(inner)
        inner = _core.Kron(-first, *rest)
    return abs(c.real), inner


def _asks_of_multiple(name: str) -> Any:
    """What c times A asks: the same of A, for c > 0; else of sparse ones nothing."""

    def asks(op: Any, *args: Any) -> Any:
        c, inner = multiple_of(op)
        return cholesky_sparse.asks(op) if c is None else [(name, inner, *args)]

    return asks


def _price_of_multiple(op: Any) -> str | None:
    return cholesky_sparse.price(op) if multiple_of(op)[0] is None else None


@cholesky.row(
    "scaled",
    how="sqrt(c) times A's, for c > 0; of -c times a Kron too; of -c times what is sparse its own",
    cost="A's",
    asks=_asks_of_multiple("cholesky"),
    instead=_price_of_multiple,
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    if c is None:  # -c times a negative definite operator
        return cholesky._keep(op, (uplo,), lambda: cholesky.rows["sparse"](op, uplo), lambda: None)
    return times(math.sqrt(c), (yield inner, uplo))


@cholesky.row("view", how="A's, conjugated for `.T` and `.conj()`", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    other = {"L": "U", "U": "L"}[uplo] if op._mode & TRANSPOSED else uplo
    factor = yield op._operands[0], other
    return conjugate(factor) if op._mode in (TRANSPOSED, CONJUGATED) else factor


def conjugate(factor: Any) -> Any:
    """The conjugate of a factor; that of a Banded is a Banded."""
    if factor._head == "banded" and factor._init is not None:
        widths, ab = factor._given("l_and_u", "ab")
        return _core.Banded(widths, np.conj(ab))
    return factor.conj()


# -- qr --


@qr.row("scaled", how="A's Q, c times A's R", cost="A's")
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    found = yield within(op), mode
    c = op._operands[1]
    if op.dtype is not None and op.dtype.kind not in "fc":  # R is of floats, as of all integers
        c = inexact(op.dtype).type(c)
    return c * found if mode == "r" else (found[0], c * found[1])


def _is_turned_upper(op: Any) -> bool:
    """Is it a lower triangle turned upper?"""
    below = op._operands[0]
    lower = op._head == "triangular" and below._init is not None and below._given("lower")
    return bool(lower and op._mode & TRANSPOSED and op.dtype.kind in "fc")


def _qr_asks(op: Any, mode: str) -> Any:
    if not op._mode & TRANSPOSED:
        return [(qr, op._operands[0], mode)]
    known = _is_turned_upper(op) or bands_within(op) or op._head == "permutation" or is_unitary(op)
    return [] if known else None


def _qr_price(op: Any) -> str | None:
    banded = op._mode & TRANSPOSED and not _is_turned_upper(op) and bands_within(op)
    return "4 n l (l + u)" if banded else None


@qr.row(
    "view", how="of `.conj()` A's, conjugated; of a triangle turned upper, itself", cost="A's",
    asks=_qr_asks, instead=_qr_price,
)  # fmt: skip
def _(op: Any, mode: str) -> Generator[Any, Any, Any]:
    if _is_turned_upper(op):
        return _of(mode, identity_of(op, op.shape[-1], op.shape[-1]), op)
    if op._mode & TRANSPOSED:
        if (bands := bands_within(op)) is not None:
            return banded(op, bands, mode)
        if not (op._head == "permutation" or is_unitary(op)):
            return NotImplemented
        return _of(mode, op, identity_of(op, op.shape[-1], op.shape[-1]))
    found = yield op._operands[0], mode
    return found.conj() if mode == "r" else (found[0].conj(), found[1].conj())


# -- lu, ldl --


@lu.row("scaled", how="A's, U times c", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    p, low, up = yield (within(op),)
    return p, low, op._operands[1] * up


def _lu_asks(op: Any) -> Any:
    if not op._mode & TRANSPOSED:
        return [("lu", op._operands[0])]
    return [] if op._head == "permutation" or _is_turned_upper(op) else None


@lu.row(
    "view", how="of `.conj()` A's, conjugated; of a triangle turned upper, itself", cost="A's",
    asks=_lu_asks,
)  # fmt: skip
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._mode & TRANSPOSED:
        if op._head == "permutation":
            check_permutation(op)
            one = identity_of(op, op.shape[-1], op.shape[-1])
            return op, one, one
        return _itself(op) if _is_turned_upper(op) else NotImplemented
    p, low, up = yield (op._operands[0],)
    return p, low.conj(), up.conj()


def _ldl_asks(op: Any, lower: bool, hermitian: bool) -> Any:
    c = complex(op._operands[1])
    if (hermitian and c.imag) or not 0 < abs(c) < np.inf:  # 0 A is Hermitian, whatever A is
        return None
    return [("ldl", within(op), lower, hermitian)]


@ldl.row("scaled", how="A's, D times c; c real", cost="A's", asks=_ldl_asks)
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    if _ldl_asks(op, lower, hermitian) is None:
        return NotImplemented
    outer, middle, order = yield within(op), lower, hermitian
    return outer, (c if c.imag else c.real) * middle, order


@ldl.row("view", how="of `.conj()` A's, conjugated", cost="A's", guard="not_turned")
def _(op: Any, lower: bool, hermitian: bool) -> Generator[Any, Any, Any]:
    outer, middle, order = yield op._operands[0], lower, hermitian
    return outer.conj(), middle.conj(), order


# -- least squares, null spaces, ranges --


@frames.row("scaled", how="A's", cost="A's")
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])  # in double precision, whatever the number's own is
    size = abs(c)
    if not 0 < size < np.inf:
        return NotImplemented
    u, s, v = yield within(op), want
    if want != "null" and c != size:
        u = (c / size if c.imag else c.real / size) * u
    return u, size * s, v


def _frames_asks(op: Any, want: str) -> Any:
    turned = want == "null" and op._mode & TRANSPOSED
    return None if turned else [(frames, op._operands[0], want)]


@frames.row("view", how="A's, exchanged for a transpose", cost="A's", asks=_frames_asks)
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    if want == "null" and op._mode & TRANSPOSED:
        return NotImplemented
    u, s, v = yield op._operands[0], want
    u, v = (v, u) if op._mode & TRANSPOSED else (u, v)
    if op._mode in (TRANSPOSED, 2):
        u, v = None if want == "null" else u.conj(), v.conj()
    return u, s, v


# -- exp, log, powers --


@functions_row(
    "scaled", how="of A, the multiple within the function", cost="that of A",
    asks=lambda op, f: [(named(f), within(op), f.scaled(op._operands[1]))],
)  # fmt: skip
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    return (yield within(op), f.scaled(op._operands[1]))


def _seen_asks(op: Any, f: Any) -> Any:
    below = op._operands[0]
    if not op._mode & CONJUGATED or f.name == "exp":
        return [(named(f), below, f.conj() if op._mode & CONJUGATED else f)]
    held = below._head == "dense" and below._init is not None
    known = looks_hermitian(below) if held else read_hermitian(below)
    return None if known is False else [(named(f), below, f)]


def _seen_doubt(op: Any, f: Any) -> Any:
    cut = op._mode & CONJUGATED and f.name != "exp" and not looks_hermitian(op._operands[0])
    return ("where A is not Hermitian", None) if cut else None


@functions_row(
    "view", how="of A, seen so; .conj() beside a branch cut only of Hermitian A", cost="A's",
    asks=_seen_asks, doubt=_seen_doubt,
)  # fmt: skip
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    mode, below = op._mode, op._operands[0]
    if mode & CONJUGATED and f.name != "exp":
        if not hermitian(below):
            return NotImplemented
        mode ^= TRANSPOSED | CONJUGATED  # A^H is A
    elif mode & CONJUGATED:
        f = f.conj()
    found = yield below, f
    return _core._build("view", found, None, mode) if mode else found


# -- square roots, samples --


def _asks_of_power(op: Any, p: Any) -> Any:
    c, inner = multiple_of(op)
    if c is not None:
        return [("sqrt_inv_matmul", inner, p)]
    known = inner._head in _COMPOSED & eigenbasis.rows.keys() and not complex(op._operands[1]).imag
    return [("eigh", op, "L")] if known else None


@power.row(
    "scaled",
    how="c^-1/2 times A's, for c > 0; of -c times a Kron or what `eigh` knows too",
    cost="A's",
    asks=_asks_of_power,
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    if c is not None:
        return c**p * (yield inner, p)
    if inner._head not in _COMPOSED & eigenbasis.rows.keys() or not has_basis(inner):
        return NotImplemented
    if complex(op._operands[1]).imag:
        return NotImplemented
    return by_basis(op, p)  # -c times what is negative definite, as a Laplacian


@power.row("view", how="A's, seen so", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    return _core._build("view", (yield op._operands[0], p), None, op._mode)


@root.row(
    "scaled",
    how="c^1/2 times A's, for c > 0; of -c times a Kron too; of -c times what is sparse its own",
    cost="A's",
    asks=_asks_of_multiple("sample"),
    instead=_price_of_multiple,
)
def _(op: Any) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    return root.rows["sparse"](op) if c is None else math.sqrt(c) * (yield (inner,))


@root.row("view", how="A's, conjugated for `.T` and `.conj()`", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    found = yield (op._operands[0],)
    return found.conj() if op._mode in (TRANSPOSED, 2) else found
