"""Some eigenvectors of a Hermitian band of more than three diagonals: LAPACK computes the
eigenvalues within the band, then inverse iteration takes one band LU for each vector.

Vectors of eigenvalues closer than 1e-6 of the norm are made orthogonal to each other on the way, as
LAPACK's stein does (Peters and Wilkinson 1979; Dhillon 1997 says where that is hard); the others by
the Rayleigh-Ritz method in their span, which also removes rounding from the values. Results are
tested for their residuals and orthogonality; if they fail, the caller takes the dense form."""

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .._base.kind_flags import BAND
from .singular_values import bands_of

KINDS = BAND - {"tridiagonal"}  # which LAPACK takes as it is
_SWEEPS = 2  # solves of each vector
_NEAR = 1e-6  # of the norm: vectors of closer values are made orthogonal on the way
_SOUND = 64.0  # residuals in units of eps |A| sqrt(n)


def width_of(op: Any) -> int:
    """The number of diagonals below the main one, if op is a band that `some` takes; else 0."""
    if op._head not in KINDS or op.ndim != 2 or op.shape[-1] < 2:
        return 0
    if op._head == "banded":
        if op._init is None:
            return 0
        return int(min(max(op._given("l_and_u")), op.shape[-1] - 1))
    return int(min(2 * op._attrs[0], op.shape[-1])) - 1


def price(op: Any, k: int, costs: dict[str, float]) -> tuple[float, float]:
    """(flops, seconds) of the values and k vectors: for each row 22 + 2.2 w ns a value and 350 + 30
    w ns a vector at 2 Gflop/s; measured 2026-11-22 on an AMD EPYC (Zen 3), n = 500 to 2000."""
    n, w = float(op.shape[-1]), width_of(op)
    loops = n * n * (44 + 4.4 * w) + n * k * (700 + 60 * w)
    gemms = 8.0 * n * k * k
    flops = 6 * n * n * w + 2.0 * n * k * (2 * w * (w + 1) + 2 * _SWEEPS * (3 * w + 1)) + gemms
    return flops, loops / costs["flop_rate"] + gemms / costs["gemm_rate"]


def _hermitian_band(op: Any, uplo: str) -> Any:
    """The band ab (2 w + 1, n) in double precision, from one triangle; None if op is not a band."""
    bands = bands_of(op)
    if not bands or not all(np.isfinite(d).all() for _, d in bands):
        return None
    n, w = op.shape[-1], width_of(op)
    ab = np.zeros((2 * w + 1, n), np.result_type(inexact(op.dtype), np.float64))
    for k, d in bands:
        if (k > 0 and uplo == "L") or (k < 0 and uplo == "U"):
            continue
        d = np.conj(d) if k > 0 else d
        k = abs(k)
        ab[w + k, : n - k] = d if k else d.real
        ab[w - k, k:] = np.conj(d) if k else d.real
    return ab


def _solves(ab: Any, w: int, shift: float) -> Any:
    """x -> (A - shift)^-1 x, overwriting x; None where a pivot is exactly zero."""
    from scipy.linalg import get_lapack_funcs  # type: ignore[import-untyped, unused-ignore]

    n = ab.shape[-1]
    work = np.zeros((3 * w + 1, n), ab.dtype, order="F")
    work[w:] = ab
    work[2 * w] -= shift
    gbtrf, gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), (work,))
    factor, pivots, info = gbtrf(work, w, w, overwrite_ab=1)
    if info:
        return None
    return lambda x: gbtrs(factor, w, w, x, pivots, overwrite_b=1)[0]


def _clusters(values: Any, norm: float) -> list[slice]:
    """Finds runs of ascending values that lie close together."""
    cuts = np.flatnonzero(np.diff(values) > _NEAR * norm) + 1
    edges = [0, *cuts.tolist(), values.size]
    return [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]


def _apart(x: Any, before: Any) -> Any:
    """x made orthogonal to the columns before it, in two passes, and of length 1."""
    for _ in range(2 if before.shape[-1] else 0):
        x = x - before @ (before.conj().T @ x)
    return x / np.linalg.norm(x)


def _vectors(ab: Any, w: int, values: Any, norm: float) -> Any:
    """Columns for ascending values; None where a solve fails."""
    n, rng = ab.shape[-1], np.random.default_rng(0)  # the same starts each time: the same bits
    q = np.empty((n, values.size), ab.dtype, order="F")
    least = 2 * np.finfo(np.float64).eps * norm
    for run in _clusters(values, norm):
        shift = -np.inf
        for j in range(run.start, run.stop):
            shift = max(values[j], shift + least)  # equal values: a little apart
            solve = _solves(ab, w, shift) or _solves(ab, w, shift + least)
            if solve is None:
                return None
            x = rng.standard_normal(n).astype(ab.dtype)
            for _ in range(_SWEEPS):
                x = solve(x)
                size = np.abs(x).max()
                if not 0 < size < np.inf:
                    return None
                x = _apart(x / size, q[:, run.start : j])
            q[:, j] = x
    return q


def some(op: Any, uplo: str, at: Any, values: Any) -> Any:
    """(values, an array of vectors) of the eigenvalues with the numbers ``at``, ascending; None
    where the dense form has to be used."""
    ab = _hermitian_band(op, uplo)
    if ab is None:
        return None
    try:
        import scipy.linalg  # type: ignore[import-untyped, unused-ignore]  # noqa: F401
    except ImportError:
        return None
    w, n = width_of(op), op.shape[-1]
    norm = float(np.abs(ab).sum(axis=0).max())
    chosen = np.asarray(values, np.float64)[at]
    q = _vectors(ab, w, chosen, norm) if 0 < norm < 1e150 and norm > 1e-150 else None
    if q is None:
        return None
    A = _core.Banded((w, w), ab)
    q = np.linalg.qr(q)[0]
    image = A @ q
    small = q.conj().T @ image
    found, turn = np.linalg.eigh((small + small.conj().T) / 2)
    q, image = q @ turn, image @ turn
    unit = np.finfo(np.float64).eps * np.sqrt(n)
    away = np.abs(image - q * found).max(initial=0)
    drift = np.abs(found - chosen).max(initial=0)
    eps = np.finfo(inexact(op.dtype)).eps
    if not (away <= _SOUND * unit * norm and drift <= 4 * n * eps * norm):
        return None
    return found.astype(values.dtype), q.astype(inexact(op.dtype), copy=False)
