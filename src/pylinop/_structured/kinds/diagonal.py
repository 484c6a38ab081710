"""Functions of diagonals, identities, zeros and constants.

Rows of `Diag`, also beside the main diagonal, `Identity`, `Zeros` and `Full`: which questions they
answer, and how."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact, real_of
from ..._base.lengths import length
from ..cholesky import cholesky, not_definite, real_diagonal
from ..eig import _pair, pairs_row
from ..eigh import eigenbasis, eye
from ..least_squares import frames
from ..lu import ldl, lu
from ..matrix_functions import _one_apart, functions_row
from ..norms import frobenius, sums
from ..operands import diagonal_of, modulus
from ..pinv import _reciprocals, _relative
from ..qr import _of, identity_of, qr
from ..questions import cond, eigvalsh, hermitian, norm, norm_of_values, pinv, svdvals
from ..singular_values import _padded, descending, floats, vector_room
from ..square_roots import _powers, nonnegative, power, root
from ..svd import Matched, _matched, _turned, phases, singular
from ..unitary import reflector

# -- singular values, norms, eigenvalues --


@svdvals.row("diag", "identity", how="moduli, sorted", cost="O(n log n)")
def _(op: Any) -> Any:
    return np.sort(np.abs(diagonal_of(op)), axis=-1)[..., ::-1]


@svdvals.row("zeros", how="zeros", cost="O(n)")
def _(op: Any) -> Any:
    return np.zeros((*op.shape[:-2], min(op.shape[-2:])), real_of(op.dtype))


@norm.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, ord: Any) -> Any:
    return norm_of_values(np.abs(diagonal_of(op)), ord)


@norm.row("zeros", how="0", cost="O(1)")
def _(op: Any, ord: Any) -> Any:
    return np.zeros(op.shape[:-2])


@cond.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, p: Any) -> Any:
    s = np.abs(diagonal_of(op))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if p in (2, -2):
            c = norm_of_values(s, p) / norm_of_values(s, -p)
        else:
            c = norm_of_values(s, p) * norm_of_values(1 / s, p)
            c = np.where((s == 0).any(axis=-1) & ~np.isnan(s).any(axis=-1), np.inf, c)
    return np.where(np.isnan(c) & ~np.isnan(s).any(axis=-1), np.inf, c)  # 0/0: singular


@cond.row("zeros", how="inf", cost="O(1)")
def _(op: Any, p: Any) -> Any:
    return np.full(op.shape[:-2], np.inf)


@hermitian.row("diag", "identity")
def _(op: Any) -> bool:
    return not np.iscomplexobj(d := diagonal_of(op)) or not d.imag.any()


@hermitian.row("zeros")
def _(op: Any) -> Any:
    return op.shape[-1] == op.shape[-2]


@eigvalsh.row("diag", "identity", how="sorted", cost="O(n log n)")
def _(op: Any, uplo: str) -> Any:
    return np.sort(diagonal_of(op).real, axis=-1)


@eigvalsh.row("zeros", how="zeros", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    return np.zeros(op.shape[:-1], real_of(op.dtype))


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


@svdvals.row("offdiag", how="moduli, sorted", cost="O(n log n)", guard="given")
def _(op: Any) -> Any:
    return _padded(descending(np.abs(floats(op._given("d")))), op)


@svdvals.row("full", how="one", cost="O(n)", guard="given")
def _(op: Any) -> Any:
    one = np.full((*op.shape[:-2], 1), modulus(op._given("c")))
    return _padded(one * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2]), op)


@eigvalsh.row("full", how="n c and zeros", cost="O(n)", guard="given real_constant")
def _(op: Any, uplo: str) -> Any:
    c = complex(op._given("c")).real
    w = np.zeros((*op.shape[:-2], op.shape[-1]))
    w[..., 0 if c < 0 else -1] = c * op.shape[-1]
    return w


@hermitian.row("full")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return complex(op._given("c")).imag == 0 and op.shape[-1] == op.shape[-2]


# -- norms --


@sums.row("diag", "identity")
def _(op: Any, axis: int) -> Any:
    return np.abs(diagonal_of(op))


@sums.row("zeros")
def _(op: Any, axis: int) -> Any:
    return np.zeros((*op.shape[:-2], op.shape[-1 if axis == -2 else -2]))


@sums.row("full")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    other, own = (-2, -1) if axis == -2 else (-1, -2)
    return np.full((*op.shape[:-2], op.shape[own]), modulus(op._given("c")) * op.shape[other])


@frobenius.row("diag", "identity")
def _(op: Any) -> Any:
    return length(diagonal_of(op))


@frobenius.row("zeros")
def _(op: Any) -> Any:
    return np.zeros(op.shape[:-2])


@frobenius.row("full")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    size = modulus(op._given("c")) * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2])
    return np.full(op.shape[:-2], size)


# -- pseudo-inverses --


@pinv.row("full", how="a Full", cost="O(1)", guard="given")
def _(op: Any, how: Any) -> Any:
    c, (m, n) = op._given("c"), op.shape[-2:]
    shape = (*op.shape[:-2], n, m)
    return _core.Full(shape, 1 / c / m / n) if c else _core.Zeros(shape, inexact(op.dtype))


# -- eigh --


@eigenbasis.row("diag", "identity", how="the diagonal; Q is the identity", cost="O(n)", calls=5)
def _(op: Any, uplo: str) -> tuple[Any, Any]:
    return diagonal_of(op).real, eye(op)


@eigenbasis.row("zeros", how="zeros; Q is the identity", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    return np.zeros(op.shape[:-1], real_of(op.dtype)), eye(op)


@eigenbasis.row(
    "full", how="one value; Q is a Householder", cost="O(n)", guard="given real_constant square"
)
def _(op: Any, uplo: str) -> Any:
    w = np.zeros(op.shape[:-1])
    w[..., 0] = complex(op._given("c")).real * op.shape[-1]
    return w, reflector(np.ones(op.shape[-1], inexact(op.dtype)))


# -- eig --


@pairs_row("diag", "identity", how="the diagonal; V is the identity", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    return _pair(diagonal_of(op), lambda: eye(op), vectors)


@pairs_row("zeros", how="zeros; V is the identity", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    return _pair(np.zeros(op.shape[:-1], real_of(op.dtype)), lambda: eye(op), vectors)


@pairs_row("full", how="one value, c n; V is a Householder", cost="O(n)", guard="given square")
def _(op: Any, vectors: bool) -> Any:
    c = np.asarray(op._given("c")).astype(inexact(op.dtype))
    w = np.zeros(op.shape[:-1], inexact(op.dtype))
    w[..., 0] = c * op.shape[-1]
    return _pair(w, lambda: reflector(np.ones(op.shape[-1], inexact(op.dtype))), vectors)


# -- svd --


@singular.row("diag", "identity", how="moduli; U takes the signs", cost="O(n)", calls=10)
def _(op: Any, full: bool) -> Any:
    d = diagonal_of(op)
    return _matched(_turned(eye(op), phases(d)), np.abs(d), eye(op))


@singular.row("offdiag", how="moduli; U takes the signs", cost="O(n)", guard="given")
def _(op: Any, full: bool) -> Any:
    d, k = op._given("d", "k")
    d, k = floats(d), int(k)
    m, n = op.shape[-2:]
    at, dtype = np.arange(d.shape[-1]), inexact(op.dtype)
    signs = np.ones((*d.shape[:-1], m), dtype)
    signs[..., at + max(-k, 0)] = phases(d)
    u, v = _core.Identity(m, dtype), _core.Identity(n, dtype)
    return Matched(_turned(u, signs), np.abs(d), v, at + max(-k, 0), at + max(k, 0))


@singular.row("zeros", how="identities", cost="O(1)")
def _(op: Any, full: bool) -> Any:
    m, n = op.shape[-2:]
    dtype = None if op._weak else inexact(op.dtype)
    none = np.zeros(0, np.int64)
    s = np.zeros((*op.shape[:-2], 0), real_of(op.dtype))
    return Matched(_core.Identity(m, dtype), s, _core.Identity(n, dtype), none, none)


@singular.row("full", how="one value; Householder reflections", cost="O(m + n)", guard="given")
def _(op: Any, full: bool) -> Any:
    m, n = op.shape[-2:]
    dtype = inexact(op.dtype)
    c = np.asarray(op._given("c")).astype(dtype)
    u, v = (reflector(np.ones(k, dtype)) for k in (m, n))
    sign = phases(c)  # both first columns are -1, scaled
    s = np.full((*op.shape[:-2], 1), np.abs(c) * float(m) ** 0.5 * float(n) ** 0.5)
    at = np.zeros(1, np.int64)
    return Matched(u if sign == 1 else sign * u, s, v, at, at)


# -- cholesky --


@cholesky.row("diag", how="square roots, a Diag", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    d = diagonal_of(op)
    w = real_diagonal(d)
    bad = ~(w > 0).all(axis=-1)
    if bad.any():
        raise not_definite(bad)
    return _core.Diag(np.sqrt(w).astype(d.dtype, copy=False))


@cholesky.row("identity", how="itself", cost="O(1)")
def _(op: Any, uplo: str) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


# -- qr --


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
    return _of(mode, identity_of(op, m, k), _core.Zeros((*op.shape[:-2], k, n), inexact(op.dtype)))


# -- lu, ldl --


@lu.row("diag", "identity", how="U is itself", cost="O(1)")
def _(op: Any) -> Any:
    one = identity_of(op, op.shape[-1], op.shape[-1])
    if op._head == "identity":
        return one, one, one
    return one, one, op if op.dtype.kind in "fc" else _core.Diag(diagonal_of(op))


@lu.row("zeros", how="Identities and Zeros", cost="O(1)")
def _(op: Any) -> Any:
    m, n = op.shape[-2:]
    k = min(m, n)
    shape = (*op.shape[:-2], k, n)
    return identity_of(op, m, m), identity_of(op, m, k), _core.Zeros(shape, inexact(op.dtype))


@ldl.row("diag", "identity", how="D is itself", cost="O(1)")
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    n = op.shape[-1]
    d = diagonal_of(op)
    order = np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()
    d = real_diagonal(d).astype(d.dtype) if hermitian else d
    return identity_of(op, n, n), _core.Diag(d), order


# -- least squares, null spaces, ranges --


@frames.row("diag", "identity", how="element by element", cost="O(n)")
def _(op: Any, want: str) -> Any:
    d = diagonal_of(op)
    return _core.Diag(phases(d)), np.abs(d), identity_of(op, d.shape[-1], d.shape[-1])


@frames.row("zeros", how="an Identity, no values", cost="O(n)")
def _(op: Any, want: str) -> Any:
    m, n = op.shape[-2:]
    vector_room(op)
    k = n if want == "null" else min(m, n)
    return (
        identity_of(op, m, min(m, n)),
        np.zeros((*op.shape[:-2], k), real_of(op.dtype)),
        identity_of(op, n, k),
    )


@frames.row("full", how="its one row and column", cost="O(m + n)", guard="given")
def _(op: Any, want: str) -> Any:
    (m, n), dtype = op.shape[-2:], inexact(op.dtype)
    c = np.asarray(op._given("c")).astype(dtype)
    size = np.abs(c) * float(m) ** 0.5 * float(n) ** 0.5
    if want == "null":
        s = np.zeros((*op.shape[:-2], n), real_of(op.dtype))
        s[..., 0] = size
        return None, s, reflector(np.ones(n, dtype))
    u, v = (np.full((*op.shape[:-2], k, 1), k**-0.5, dtype) for k in (m, n))
    s = np.full((*op.shape[:-2], 1), size, real_of(op.dtype))
    return _core.Dense(phases(c) * u), s, _core.Dense(v)


# -- exp, log, powers --


@functions_row("diag", how="of the diagonal", cost="O(n)", calls=1)
def _(op: Any, f: Any) -> Any:
    return _core.Diag(f(diagonal_of(op)))


@functions_row("identity", how="f(1) I", cost="O(1)")
def _(op: Any, f: Any) -> Any:
    one = _core.Identity(op.shape, None if op._weak else inexact(op.dtype))
    c = f(np.ones(1, None if op._weak else real_of(op.dtype))).tolist()[0]
    return one if c == 1 else c * one


@functions_row("zeros", how="f(0) I", cost="O(n)")
def _(op: Any, f: Any) -> Any:
    return _core.Diag(f(np.zeros(op.shape[:-1], real_of(op.dtype))))


@functions_row(
    "full", how="f(0) I and one rank", cost="O(n)", guard="given",
    asks=lambda op, f: [] if op.shape[-1] > 1 else None,
)  # fmt: skip
def _(op: Any, f: Any) -> Any:
    n, dtype = op.shape[-1], inexact(op.dtype)
    if n == 1:
        return NotImplemented
    c = np.asarray(op._given("c")).astype(dtype)
    w = np.broadcast_to(np.stack([0 * c, n * c], axis=-1), (*op.shape[:-2], 2))
    return _one_apart(op, f, w, np.full(n, n**-0.5, dtype))


# -- square roots, samples --


@power.row("diag", how="element by element", cost="O(n)")
def _(op: Any, p: Any) -> Any:
    d = diagonal_of(op)
    w = nonnegative(real_diagonal(d), p > 0, exact=True)
    return _core.Diag(_powers(w, p).astype(d.dtype, copy=False))


@power.row("identity", how="itself", cost="O(1)")
def _(op: Any, p: Any) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


@root.row(
    "diag", "identity", how="square roots", cost="O(1)",
    asks=lambda op: [("sqrt_inv_matmul", op, 0.5)],
)  # fmt: skip
def _(op: Any) -> Any:
    return power(op, 0.5)


@root.row("zeros", how="itself", cost="O(1)")
def _(op: Any) -> Any:
    square = op.shape[-1] == op.shape[-2]
    return _core.Zeros(op.shape, inexact(op.dtype)) if square else NotImplemented


# -- by known eigenvectors --


@pinv.row(
    "offdiag", how="reciprocals on the other side of the diagonal", cost="O(n)", guard="given"
)
def _(op: Any, how: Any) -> Any:
    d, k = op._given("d", "k")
    d = floats(d)
    cut = _relative(how, op) * np.abs(d).max(axis=-1, initial=0)
    shape = (op.shape[-1], op.shape[-2])
    return _core.Diag(_reciprocals(d, np.asarray(cut)[..., None]), -int(k), shape)
