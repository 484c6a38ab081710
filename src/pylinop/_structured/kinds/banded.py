"""Functions of bands: `Tridiagonal`, `Banded`, `BlockTridiagonal`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._base import memory
from ..._base.dtypes import inexact, real_of
from ..._base.kind_flags import BAND
from ..._base.lengths import length
from ..._fallback.dense_forms import named_blocks
from .. import banded_lu, banded_svd
from ..cholesky import NotDefinite, cholesky, not_definite, real_diagonal
from ..eigh import eigenbasis
from ..lu import inverse_order, ldl, lu
from ..norms import _root_of_squares, frobenius, sums
from ..properties import known
from ..questions import eigvalsh, hermitian, read_hermitian, svdvals
from ..singular_values import bands_of, descending, floats
from ..square_roots import root
from ..unitary import unitary

# -- singular values, norms, eigenvalues --


@hermitian.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any) -> Any:
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    d = dict(bands)
    return all(np.array_equal(d.get(-k, np.zeros_like(v)), v.conj()) for k, v in d.items())


@eigvalsh.row("tridiagonal", how="LAPACK's sterf", cost="20 n^2", by="band", holds="9 n")
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    lower, main, upper = (d for _, d in bands)
    batch, n = op.shape[:-2], op.shape[-1]
    d = np.broadcast_to(main.real, (*batch, n)).astype(np.float64)
    e = np.abs(lower if uplo == "L" else upper)  # a diagonal unitary makes them real
    e = np.broadcast_to(e, (*batch, n - 1)).astype(np.float64)
    for i in np.ndindex(*batch):
        if not _core._sterf(d[i], e[i]):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return d


@eigvalsh.row(
    "banded",
    "blocktridiagonal",
    called="bands",
    how="SciPy's eigvals_banded",
    cost="6 n^2 w",
    by="band",
    holds="5 n w + 5 n",
)
def _(op: Any, uplo: str) -> Any:
    """The eigenvalues by LAPACK's sbevd within the band, where SciPy is installed."""
    bands = bands_of(op)
    if bands is None or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    try:
        from scipy.linalg import eigvals_banded  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return NotImplemented
    batch, n = op.shape[:-2], op.shape[-1]
    side = {-k if uplo == "L" else k: d for k, d in bands}
    below = np.zeros((*batch, max(side) + 1, n), inexact(op.dtype))
    for k in range(max(side) + 1):
        below[..., k, : n - k] = side[k] if uplo == "L" else side[k].conj()
    w = np.empty((*batch, n), real_of(op.dtype))
    for i in np.ndindex(*batch):
        w[i] = eigvals_banded(below[i], lower=True)
    return w


def _values_doubt(op: Any) -> Any:
    unknown = read_hermitian(op) is None
    return ("where it is Hermitian", [("eigvalsh", op, "L")]) if unknown else None


@svdvals.row(
    "banded",
    "tridiagonal",
    "blocktridiagonal",
    called="bands",
    how="LAPACK's gbbrd, bdsqr; of a Hermitian A moduli of `eigvalsh`",
    cost="12 n^2 w",
    kept=True,
    holds="5 n w + 5 n",
    asks=lambda op: [("eigvalsh", op, "L")] if read_hermitian(op) else [],
    doubt=_values_doubt,
    instead=lambda op: "O(n)" if read_hermitian(op) else None,
)
def _(op: Any) -> Any:
    if hermitian(op):
        return descending(np.abs(eigvalsh(op, "L")))
    bands = bands_of(op)
    if not bands or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    return banded_svd.values(op, bands)


# -- norms --


@sums.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any, axis: int) -> Any:
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for k, d in bands:
        at = max(k, 0) if axis == -2 else max(-k, 0)
        total[..., at : at + d.shape[-1]] += np.abs(d)
    return total


@frobenius.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any) -> Any:
    if op._head == "blocktridiagonal" and op._init is not None:
        parts = (floats(x) for x in named_blocks(op))
        flat = (x.reshape(*x.shape[:-3], math.prod(x.shape[-3:])) for x in parts)
        return _root_of_squares([length(x) for x in flat]) + np.zeros(op.shape[:-2])
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    return _root_of_squares([length(d) for _, d in bands]) + np.zeros(op.shape[:-2])


# -- eigh --


def _phases(e: Any) -> Any:
    """A diagonal unitary that makes the subdiagonal e (..., n - 1) positive."""
    size = np.abs(e)
    turn = np.where(size > 0, e, 1) / np.where(size > 0, size, 1)
    ones = np.ones((*e.shape[:-1], 1), e.dtype)
    return np.concatenate([ones, np.cumprod(turn, axis=-1)], axis=-1)


@eigenbasis.row(
    "tridiagonal",
    "banded",
    called="bands",
    how="of three diagonals: stemr (SciPy, else dense); some vectors (`k=`) of wider ones: inverse "
    "iteration",
    cost="120 n^2; O(n^2 w + n k w^2)",
    kept=True,
    by="band",
    asks=lambda op, uplo: [] if max(known(op, "band")) <= 1 < op.shape[-1] else None,
    holds="3 n^2",
)
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or op.shape[-1] < 2 or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    if any(abs(k) > 1 for k, _ in bands):
        return NotImplemented  # sbevd turns vectors no faster than heevd does (docs/decisions.md)
    try:
        from scipy.linalg import eigh_tridiagonal  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return NotImplemented
    memory.materialising(op, op.size * inexact(op.dtype).itemsize, False)
    batch, n = op.shape[:-2], op.shape[-1]
    none, at = np.zeros(n - 1, inexact(op.dtype)), dict(bands)
    lower, main, upper = at.get(-1, none), at.get(0, np.zeros(n)), at.get(1, none)
    e = lower if uplo == "L" else upper.conj()
    real, turned = np.abs(e).astype(np.float64), _phases(e)
    d = np.broadcast_to(main.real, (*batch, n)).astype(np.float64)
    real = np.broadcast_to(real, (*batch, n - 1))
    if batch:
        w, q = np.empty((*batch, n)), np.empty((*batch, n, n))
        for i in np.ndindex(*batch):
            w[i], q[i] = eigh_tridiagonal(d[i], real[i])
    else:
        w, q = eigh_tridiagonal(d, real)
    if (turned != 1).any():
        q = turned[..., :, None] * q
    return w, unitary(q.astype(inexact(op.dtype), copy=False))


# -- cholesky --


def _lower_half(bands: Any, op: Any, uplo: str) -> Any:
    """The half that is read, as a lower one: element (j + t, j) at [..., j, t]."""
    n, sign = op.shape[-1], -1 if uplo == "L" else 1
    wanted = {sign * k: d for k, d in bands if sign * k >= 0}
    half = np.zeros((*op.shape[:-2], n, max(wanted, default=0) + 1), inexact(op.dtype))
    for t, d in wanted.items():
        half[..., : n - t, t] = np.conj(d) if uplo == "U" else d
    return half


def _band_factor(half: Any) -> Any:
    """The Cholesky factor of bands, in place."""
    n, rows = half.shape[-2:]
    bad = np.zeros(half.shape[:-2], bool)
    for i in np.ndindex(*half.shape[:-2]):
        bad[i] = _core._band_cholesky(half.dtype.char, rows, n, half[i]) != 0
        if bad[i]:
            raise not_definite(bad)
    return half


@cholesky.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    called="bands",
    how="within the band (pbtrf), a Banded",
    cost="n w^2",
    holds="2 n w + 4 n",
    kept=True,
)
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or op.shape[-1] != op.shape[-2]:
        return NotImplemented
    main = dict(bands).get(0)
    if main is None:
        raise not_definite(np.ones(op.shape[:-2], bool))
    real_diagonal(main)
    half = _band_factor(_lower_half(bands, op, uplo))
    return _core.Banded((half.shape[-1] - 1, 0), np.ascontiguousarray(np.swapaxes(half, -1, -2)))


# -- lu, ldl --


BANDS = sorted(BAND)


@lu.row(
    *BANDS,
    called="bands",
    how="gbtrf (SciPy); U a Banded, L one too or, where rows were exchanged, a SparseTriangular",
    cost="2 n l (l + u)",
    holds="10 n l + 2 n u + 8 n",
)
def _(op: Any) -> Any:
    bands = bands_of(op)
    if bands is None or op.ndim != 2 or not bands:
        return NotImplemented
    found = banded_lu.lu(op, bands)
    if found is None:
        return NotImplemented
    order, low, up = found
    return _core.Permutation(inverse_order(order), inexact(op.dtype)), low, up


def _ldl_asks(op: Any, lower: bool, hermitian: bool) -> Any:
    return [("cholesky", op, "L")] if lower and (hermitian or op.dtype.kind != "c") else None


@ldl.row(
    *BANDS,
    called="bands",
    how="of definite ones within the band, L a Banded, D a Diag",
    cost="A's, 2 n w",
    holds="5 n w + 5 n",
    asks=_ldl_asks,
    doubt="where it is not definite",
)
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    if not lower or not (hermitian or op.dtype.kind != "c"):
        return NotImplemented
    try:
        factor = cholesky(op, "L")
    except NotDefinite:
        return NotImplemented
    if factor._head != "banded" or factor._init is None:
        return NotImplemented
    n = op.shape[-1]
    return *banded_lu.ldl(factor), np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()


# -- square roots, samples --


@root.row(
    "tridiagonal",
    "banded",
    "blocktridiagonal",
    called="bands",
    how="Cholesky within the band; where that fails as a dense one",
    cost="that of `cholesky`",
    guard="hermitian",
    holds="5 n w + 5 n",
    asks=lambda op: [("cholesky", op, "L")],
    doubt=lambda op: ("where it is not definite", [("cholesky", op, "L"), ("eigh", op, "L")]),
)
def _(op: Any) -> Any:
    try:
        return cholesky(op, "L")
    except NotDefinite:
        return NotImplemented
