"""Square roots of positive semidefinite operators, for A^-1/2 b and draws from N(0, A).

There are two questions. ``power`` gives the Hermitian A^p for p = 1/2 or -1/2, as an operator.
``root`` gives some R with R R^H = A, chosen by the kind and never by cost, so that a seed gives the
same draws again."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import TRANSPOSED, inexact, real_of
from .._operators import quasiseparable
from .._operators.convert import as_operator, inverse
from .._operators.parameters import written
from . import cholesky_sparse
from .cholesky import (
    NotDefinite,
    cholesky,
    is_hermitian,
    multiple_of,
    nearly,
    not_definite,
    real_diagonal,
    rounding,
)
from .dispatch import Question, dense, diagonal_of, factors_of, one_call
from .eigh import eigenbasis, has_basis
from .qr import orthonormal
from .questions import hermitian
from .singular_values import adjoint, circulant_of, floats, spectrum_of, toeplitz_of
from .unitary import is_unitary

# -- eigenvalues --


def nonnegative(
    w: Any, singular: bool = True, axes: tuple[int, ...] = (-1,), exact: bool = False
) -> Any:
    """Checks the eigenvalues of a positive (semi)definite matrix: those negative by no more than
    rounding are set to 0, with a warning that says how much; more negative ones raise. If the
    matrix may not be ``singular``, values no larger than rounding raise, unless w is ``exact``."""
    n = math.prod(w.shape[k] for k in axes)
    top = np.abs(w).max(axis=axes, initial=0)
    least = w.min(axis=axes, initial=np.inf)
    allowed = n * np.finfo(w.dtype).eps * top
    bad = ~(least >= -16 * allowed) if singular else ~(least > (0 if exact else allowed))
    if bad.any():
        where = np.unravel_index(np.argmax(bad), bad.shape)
        words = "not positive semidefinite" if singular else "not positive definite"
        raise not_definite(
            bad,
            f"is {words}: its least eigenvalue is {least[where]:.3g}, its largest {top[where]:.3g}",
        )
    if (least < 0).any():
        worst = np.max(-least / np.where(top > 0, top, 1))
        warnings.warn(
            f"{np.count_nonzero(w < 0)} eigenvalues of {w.size} were negative by rounding, at most "
            f"{worst:.2g} of the largest, and are taken as 0",
            errors.FallbackWarning,
            stacklevel=errors.outside(),
        )
        w = np.maximum(w, 0)
    return w


def require_hermitian(a: Any) -> None:
    if not nearly(a):
        gap = np.abs(a - adjoint(a)).max(axis=(-2, -1))
        raise not_definite(
            gap > rounding(a) * np.abs(a).max(axis=(-2, -1)),
            f"is not Hermitian: elements differ from those of its adjoint by up to {gap.max():.3g}",
        )


def _powers(w: Any, p: Any) -> Any:
    return w**p if p > 0 else 1 / np.sqrt(w)


# -- A^p --


def _by_eigenvectors(a: Any, p: Any, op: Any) -> Any:
    require_hermitian(a)
    w, q = eigenbasis.of_dense(op, "L", array=a)
    return _core.Eigen(q, _powers(nonnegative(w, p > 0), p))


power = Question(
    _by_eigenvectors,
    "sqrt_inv_matmul",
    how="LAPACK's syevd; Q f(w) Q^H b",
    cost="9 n^3",
    whole=True,
    arrays=0,
)


def by_basis(op: Any, p: Any) -> Any:
    """A^p by the eigenvectors that the kind has."""
    w, q = eigenbasis(op, "L")
    return _core.Eigen(q, _powers(nonnegative(w.astype(real_of(op.dtype), copy=False), p > 0), p))


@power.row("diag", how="element by element", cost="O(n)")
def _(op: Any, p: Any) -> Any:
    d = diagonal_of(op)
    w = nonnegative(real_diagonal(d), p > 0, exact=True)
    return _core.Diag(_powers(w, p).astype(d.dtype, copy=False))


@power.row("identity", how="itself", cost="O(1)")
def _(op: Any, p: Any) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


@power.row(
    "scaled",
    how="c^-1/2 times A's, for c > 0; of -c times a Kron or what `eigh` knows too",
    cost="A's",
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    if c is not None:
        return c**p * (yield inner, p)
    if inner._head not in ("laplacian", "kronsum", "sum") or not has_basis(inner):
        return NotImplemented
    if complex(op._operands[1]).imag:
        return NotImplemented
    return by_basis(op, p)  # -c times what is negative definite, as a Laplacian


@power.row("view", how="A's, seen so", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    return _core._build("view", (yield op._operands[0], p), None, op._mode)


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


@power.row("kron", how="a Kron of the factors', Hermitian ones", cost="sum of the factors'")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    factors = _semidefinite_factors(op)
    if factors is None:
        return NotImplemented
    found = []
    for f in factors:
        found.append((yield f, p))
    return _core.Kron(*found)


@power.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield f, p))
    return _core.BlockDiag(*found)


@power.row("circulant", how="a Circulant, by the spectrum", cost="O(n log n)")
def _(op: Any, p: Any) -> Any:
    w = spectrum_of(op)
    axes = tuple(range(len(op.shape) - 2 - w.ndim, 0))
    size = 16 * math.log2(2 * op.shape[-1]) * np.finfo(w.dtype).eps * np.abs(w).max(axis=axes)
    bad = np.abs(w.imag).max(axis=axes) > size
    if bad.any():
        raise not_definite(bad, "is not Hermitian: its spectrum is not real")
    return circulant_of(_powers(nonnegative(w.real, p > 0, axes), p), op)


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


@power.row(
    "kronsum",
    how="eigenvectors of the factors, a Kron",
    cost="sum of the factors'",
    guard="given",
    asks=lambda op, p: [("eigh", f, "L") for f in factors_of(op)],
)
def _(op: Any, p: Any) -> Any:
    bases, w = [], np.zeros(1)
    for f in factors_of(op):
        a = dense(f)
        require_hermitian(a)
        one, q = eigenbasis.of_dense(f, "L", array=a)
        bases.append(q)
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
    w = nonnegative(w.astype(real_of(op.dtype), copy=False), p > 0)
    return _core.Eigen(_core.Kron(*bases), _powers(w, p))


# -- R with R R^H = A --


def _lower_or_symmetric(a: Any, op: Any) -> Any:
    """The Cholesky factor if op is definite, else the symmetric root with negative values
    clipped."""
    require_hermitian(a)
    try:
        return cholesky.of_dense(op, "L", array=a)
    except NotDefinite:
        w, q = eigenbasis.of_dense(op, "L", array=a)
        return q @ _core.Diag(np.sqrt(nonnegative(w)))


root = Question(
    _lower_or_symmetric,
    "sample",
    how="Cholesky; where that fails Q w^1/2 of eigh, negative w clipped and told of",
    cost="n^3 / 3; 9 n^3 where that fails",
    whole=True,
    arrays=0,
)


@root.row("diag", "identity", how="square roots", cost="O(n)")
def _(op: Any) -> Any:
    return power(op, 0.5)


@root.row("zeros", how="itself", cost="O(1)")
def _(op: Any) -> Any:
    square = op.shape[-1] == op.shape[-2]
    return _core.Zeros(op.shape, inexact(op.dtype)) if square else NotImplemented


@root.row("scaled", how="c^1/2 times A's, for c > 0; of -c times a Kron too", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    c, inner = multiple_of(op)
    return NotImplemented if c is None else math.sqrt(c) * (yield (inner,))


@root.row("view", how="A's, conjugated for `.T` and `.conj()`", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    found = yield (op._operands[0],)
    return found.conj() if op._mode in (TRANSPOSED, 2) else found


@root.row("kron", how="a Kron of the factors', Hermitian ones", cost="sum of the factors'")
def _(op: Any) -> Generator[Any, Any, Any]:
    factors = _semidefinite_factors(op)
    if factors is None:
        return NotImplemented
    found = []
    for f in factors:
        found.append((yield (f,)))
    return _core.Kron(*found)


@root.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    found = []
    for f in blocks:
        found.append((yield (f,)))
    return _core.BlockDiag(*found)


def _power_of(op: Any) -> Any:
    return [("sqrt_inv_matmul", op, 0.5)]


@root.row("circulant", how="the Hermitian root, a Circulant", cost="O(n)", asks=_power_of)
@root.row(
    "kronsum",
    how="the Hermitian root, by eigenvectors of the factors",
    cost="the factors'",
    asks=_power_of,
)
def _(op: Any) -> Any:
    return power(op, 0.5)


@root.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    called="bands",
    how="Cholesky within the band; where that fails as a dense one",
    cost="O(n w^2)",
    guard="hermitian",
    calls=3,
)
def _(op: Any) -> Any:
    try:
        return cholesky(op, "L")
    except NotDefinite:
        return NotImplemented


@root.row(
    "quasiseparable",
    how="Cholesky, a QuasiSeparable; where that fails as a dense one",
    cost="O(n J^2)",
    calls=3,
)
def _(op: Any) -> Any:
    if quasiseparable.is_triangular(op):
        return NotImplemented
    factor, bad = quasiseparable.cholesky_of(op)
    return NotImplemented if bad.any() else factor


@root.row("root", how="L itself", cost="O(1)")
def _(op: Any) -> Any:
    return NotImplemented if op._init is None else op._given("L")


@root.row("lowrank", how="U times C's, V left out", cost="O(k^3)", guard="given")
def _(op: Any) -> Generator[Any, Any, Any]:
    u, v, c = op._given("U", "V", "C")
    if v is not None and v is not u:
        return NotImplemented
    u = as_operator(u)
    return u if c is None else u @ (yield (as_operator(c),))


@root.row(
    "sparse",
    "laplacian",
    how="Cholesky, sparse; where that fails as a dense one",
    cost="a sparse solve",
    asks=lambda op: [("solve", op)] if cholesky_sparse.is_sparse(op) else None,
)
def _(op: Any) -> Any:
    a = cholesky_sparse.matrix_of(op)
    if a is None or not cholesky_sparse.is_hermitian(a):
        return NotImplemented
    try:
        return cholesky(op, "L")
    except NotDefinite:
        return NotImplemented


def _beside(terms: Any) -> Any:
    """The roots of positive semidefinite terms side by side, which are a root of their sum;
    NotImplemented where a term is not semidefinite."""
    try:
        return _core.Block([[root(as_operator(t)) for t in terms]])
    except NotDefinite:
        return NotImplemented


def _two_terms(op: Any) -> Any:
    if op._init is None:
        return op._operands if op._by == "sum" else ()
    base, u, v, c = op._given("base", "U", "V", "C")
    return base, _core.LowRank(u, v, c)


@root.row(
    "lowrankupdate",
    how="the base's beside U times C's, V left out",
    cost="both roots'",
    asks=lambda op: [("sample", as_operator(t)) for t in _two_terms(op)],
)
def _(op: Any) -> Any:
    if op._init is None:
        return _beside(op._operands) if op._by == "sum" else NotImplemented
    base, u, v, c = op._given("base", "U", "V", "C")
    thin = _core.LowRank(u, v, c)
    return _beside((base, thin)) if v is None or v is u else NotImplemented


def _terms(op: Any) -> list[Any] | None:
    """The terms of a sum, if there are at most 16, all of kinds with a root of their own; else
    None."""
    found: list[Any] = []
    stack = [op]
    while stack:
        o = stack.pop()
        if written(o, "sum") and len(found) + len(stack) < 16:
            stack += o._operands[::-1]
            continue
        inner = o
        while written(inner, "view", "scaled"):
            inner = inner._operands[0]
        if o._head == "sum" or inner._head not in root.rows:
            return None
        found.append(o)
    return found


def _term_asks(op: Any) -> Any:
    terms = _terms(op)
    return None if terms is None else [("sample", as_operator(t)) for t in terms]


@root.row(
    "sum",
    how="roots beside each other, of semidefinite terms in this table",
    cost="theirs",
    asks=_term_asks,
)
def _(op: Any) -> Any:
    terms = _terms(op)
    return NotImplemented if terms is None else _beside(terms)


@root.row("congruence", how="A times B's", cost="B's", guard="given")
def _(op: Any) -> Any:
    inner = _beside([op._given("B")])
    return inner if inner is NotImplemented else as_operator(op._given("A")) @ inner


@root.row("eigen", how="Q d^1/2", cost="O(n)", guard="given")
def _(op: Any) -> Any:
    w = real_diagonal(floats(op._given("d")))
    if (w < 0).any() and not is_unitary(op._given("Q")):
        return NotImplemented
    return as_operator(op._given("Q")) @ _core.Diag(np.sqrt(nonnegative(w)))


@root.row(
    "inverse",
    how="the inverse of L^H of A's Cholesky",
    cost="A's",
    asks=lambda op: [("cholesky", op._operands[0], "L")] if op._operands else None,
)
def _(op: Any) -> Any:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    inner = op._operands[0]
    if not is_hermitian(inner):
        return NotImplemented
    return inverse(cholesky(inner, "L").H)


def _embedding(c: Any) -> Any:
    """The spectrum of the smallest circulant around a Hermitian Toeplitz matrix with first column
    c: of size 2 n - 2, or 2 n - 1 if c is complex."""
    last = -1 if np.iscomplexobj(c) else -2
    ring = np.concatenate([c, c[..., last:0:-1].conj()], axis=-1)
    return np.fft.fft(ring, axis=-1).real


@root.row(
    "toeplitz",
    how="n rows of the root of the Circulant around it (size 2 n - 2) where that is semidefinite",
    cost="O(n log n)",
    calls=3,
)
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    n = op.shape[-1]
    if found is None or not hermitian(op) or n < 3:
        return NotImplemented
    c = np.broadcast_to(found[0], (*op.shape[:-2], n))
    w = _embedding(c)
    least, top = w.min(axis=-1), w.max(axis=-1)
    if not (least >= -4 * math.log2(2 * n) * np.finfo(w.dtype).eps * top).all():
        return NotImplemented
    half: Any = np.fft.ifft(np.sqrt(np.maximum(w, 0)), axis=-1)
    half = half if np.iscomplexobj(c) else half.real
    rows = _core.Selection(np.arange(n), w.shape[-1], inexact(op.dtype))
    return rows @ _core.Circulant(np.ascontiguousarray(half.astype(c.dtype, copy=False)))


@root.row(
    "multitoeplitz",
    how="rows of the root of the Circulant of as many levels around it (sizes 2 n - 1) where that "
    "is semidefinite",
    cost="O(n log n)",
)
def _(op: Any) -> Any:
    if op._init is None or op.ndim != 2:
        return NotImplemented
    t = np.asarray(op._given("t"))
    sizes = tuple((m + 1) // 2 for m in t.shape)
    odd = t.shape == tuple(2 * n - 1 for n in sizes)
    if not odd or op.shape[-1] != math.prod(sizes) or op.shape[-1] == 0:
        return NotImplemented
    t = t.astype(inexact(op.dtype), copy=False)
    if not np.array_equal(t, np.flip(t).conj()):
        return NotImplemented
    w = np.fft.fftn(np.roll(t, [1 - n for n in sizes], range(t.ndim))).real
    if not w.min() >= -4 * math.log2(2 * w.size) * np.finfo(w.dtype).eps * w.max():
        return NotImplemented
    half: Any = np.fft.ifftn(np.sqrt(np.maximum(w, 0)))
    half = half if np.iscomplexobj(t) else half.real
    inside = np.ravel_multi_index(np.indices(sizes).reshape(t.ndim, -1), t.shape)
    rows = _core.Selection(inside, w.size, t.dtype)
    return rows @ _core.Circulant(np.ascontiguousarray(half.astype(t.dtype)), levels=t.ndim)


@one_call("sample")
def draws(op: Any, count: int, rng: Any) -> Any:
    """``count`` draws from N(0, A): (count, ..., n)."""
    found = root(op)
    dtype, batch = inexact(op.dtype), op.shape[:-2]
    z = normals((count, *batch, found.shape[-1]), dtype, rng)
    return np.moveaxis(found @ np.moveaxis(z, 0, -1), -1, 0)


def normals(shape: tuple[int, ...], dtype: np.dtype[Any], rng: Any) -> Any:
    """Standard normal numbers, circular ones where they are complex."""
    if dtype.kind == "c":
        z = rng.standard_normal((*shape, 2)).view(np.complex128)[..., 0] * math.sqrt(0.5)
    else:
        z = rng.standard_normal(shape)
    return z.astype(dtype, copy=False)
