"""Functions of dense matrices that are not Hermitian, by SciPy: each result is checked, or its
error is estimated, and a wrong one is refused."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._base.dtypes import inexact, real_of

_EPS = float(np.finfo(np.float64).eps)
_HALF = 1e-8  # half the digits: the most that the caller's own function may lose


def _scipy(what: str) -> Any:
    try:
        import scipy.linalg  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(
            f"{what} of a matrix that is not Hermitian, nor of a kind that knows it, is computed "
            "by SciPy, which is not installed: pip install scipy"
        ) from None
    return scipy.linalg


def general(a: Any, f: Any) -> Any:
    """f of each square matrix of a batch, computed in double precision, real where the function
    is."""
    linalg = _scipy({"exp": "expm", "log": "logm", "any": "funm"}.get(f.name, "a matrix power"))
    n = a.shape[-1]
    a = f.scale * a + f.shift * np.eye(n, dtype=a.dtype) if f.shift or f.scale != 1 else a
    precision = real_of(a.dtype)
    if f.name == "exp":
        return linalg.expm(a).astype(inexact(a.dtype), copy=False)
    wide = a.astype(np.complex128 if np.iscomplexobj(a) else np.float64, copy=False)
    parts = [_ONE[f.name](linalg, m, f) for m in wide.reshape(-1, n, n)]
    if not parts:
        return a
    out = np.stack(parts).reshape(a.shape)
    complex_ = np.iscomplexobj(out)
    return out.astype(np.result_type(precision, np.complex64) if complex_ else precision)


def _triangular(linalg: Any, a: Any) -> tuple[Any, Any, bool]:
    """(T, Z, real) with a = Z T Z^H; ``real`` says whether a primary function of it is real: a is
    real, without eigenvalues on the closed negative axis (0 is treated separately)."""
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
    real = not np.iscomplexobj(a)
    z = None
    if not (a == np.triu(a)).all():
        t, z = linalg.schur(a, output="real" if real else "complex")
    else:
        t = a
    if real:
        below = np.diagonal(t, -1)
        single = np.ones(a.shape[-1], bool)
        single[1:] &= below == 0
        single[:-1] &= below == 0
        negative = (np.diagonal(t)[single] < 0).any()
        if below.any():
            t, z = linalg.rsf2csf(t, np.eye(a.shape[-1]) if z is None else z)
        elif negative:
            t = t.astype(complex)
        real = not negative
    return t, z, real


def _back(f_of_t: Any, z: Any, real: Any) -> Any:
    whole = f_of_t if z is None else z @ f_of_t @ z.conj().T
    return np.ascontiguousarray(whole.real) if real else whole


def _quiet(call: Any, *args: Any) -> Any:
    """SciPy's answer without its warnings, since the answer is checked here."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call(*args)


_NONE = "the matrix is too near one for which there is none"
_CLOSE = "its eigenvalues are too close together, for so many rows, to go by its triangle"


def _refused(what: str, size: Any, limit: Any, why: str = _NONE) -> None:
    raise np.linalg.LinAlgError(
        f"{what}: relative error {size:.1e} where {limit:.1e} is allowed; {why}"
    )


def _log(linalg: Any, a: Any, f: Any) -> Any:
    t, z, real = _triangular(linalg, a)
    _regular(t, f)
    x = _back(_quiet(linalg.logm, t), z, real)
    norm = np.linalg.norm(x, 1)
    limit = 1e3 * a.shape[-1] * _EPS * (1 + norm)
    off = np.linalg.norm(_quiet(linalg.expm, x) - a, 1) / np.linalg.norm(a, 1)
    if not off <= limit:
        _refused("expm(logm(A)) is not A", off, limit)
    return x


def _regular(t: Any, f: Any) -> None:
    if (np.diagonal(t) == 0).any():
        raise np.linalg.LinAlgError(f"Singular matrix: {f.words} needs a regular one")


def _regular_enough(t: Any, f: Any) -> None:
    """Are computed eigenvalues more than roundings of the largest?"""
    w = np.abs(np.diagonal(t))
    if w.size and w.min() <= w.size * np.finfo(w.dtype).eps * w.max():
        raise np.linalg.LinAlgError(
            f"Singular matrix: {f.words} needs a regular one, and an eigenvalue is "
            f"{w.min():.1e} beside one of {w.max():.1e}"
        )


def _power(linalg: Any, a: Any, f: Any) -> Any:
    if f.p == 0.5:
        return _root(linalg, a)
    t, z, real = _triangular(linalg, a)
    if f.p < 0 and z is not None:
        _regular_enough(t, f)
    elif f.p < 0:
        _regular(t, f)
    if (np.diagonal(t) == 0).any():
        whole = math.floor(f.p)
        part = _parlett(linalg, t, lambda x: x ** (f.p - whole))
        return _back(np.linalg.matrix_power(t, whole) @ part, z, real)
    x = _quiet(linalg.fractional_matrix_power, t, f.p)
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError(f"the power {f.p} of a matrix near a singular one failed")
    return _back(x, z, real)


def _root(linalg: Any, a: Any) -> Any:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
    x = _quiet(linalg.sqrtm, a)
    limit = 1e2 * a.shape[-1] * _EPS
    with np.errstate(all="ignore"):
        left, size, whole = (np.linalg.norm(m) for m in (x @ x - a, x, a))
        off = left / size**2 if size else 0.0
        of_a = left / whole if whole else 0.0
    if not off <= limit:
        _refused("sqrtm(A) squared is not A", off, limit)
    if not of_a <= _HALF:  # of a matrix without a root what comes is as large as one likes
        _refused("sqrtm(A) squared is not A", of_a, _HALF)
    return x


def _any(linalg: Any, a: Any, f: Any) -> Any:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
    w, v = np.linalg.eig(a)
    if a.shape[-1] * _EPS * np.linalg.cond(v) <= _HALF:
        x = np.linalg.solve(v.T, (v * f._called(w.astype(complex))).T).T
    else:
        t, z = linalg.schur(a, output="complex")
        x = z @ _parlett(linalg, t, f._called) @ z.conj().T
    if not np.iscomplexobj(a) and np.abs(x.imag).max() <= 1e3 * _EPS * np.abs(x).max():
        x = np.ascontiguousarray(x.real)
    return x


def _parlett(linalg: Any, t: Any, call: Any) -> Any:
    """f of an upper triangle, column by column from f(T) T = T f(T) (Parlett, 1976). The columns
    are solves with T - t_jj I, which lose digits where eigenvalues are close, and more with each
    column: the loss is estimated from their distance, as SciPy does, and from what a change of T by
    rounding does, and refused if it is more than half the digits."""
    n = t.shape[-1]
    t = t.astype(complex)
    d = np.diagonal(t).copy()
    upper = np.abs(np.triu(t, 1)).sum(axis=0).max(initial=0)
    if upper <= n * _EPS * np.abs(d).max(initial=0):
        return np.diag(np.asarray(call(d)).astype(complex))  # normal: only the diagonal counts
    gap = np.abs(d[:, None] - d[None, :])[np.triu_indices(n, 1)].min(initial=np.inf)
    estimate = _EPS * max(1.0, upper / gap) if gap > 0 else np.inf
    if not estimate <= _HALF:
        _refused(f"eigenvalues {gap:.1e} apart", estimate, _HALF)
    x = _columns(linalg, t, call)
    near = t * (1 + _EPS * np.random.default_rng(0).uniform(-1, 1, t.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(x).max()
        change = np.abs(_columns(linalg, near, call) - x).max() / (size if size else 1.0)
    if np.isfinite(x).all() and not change <= _HALF:
        _refused("f(A) changes as the triangle of A is rounded", change, _HALF, _CLOSE)
    return x


def _columns(linalg: Any, t: Any, call: Any) -> Any:
    d = np.diagonal(t).copy()
    x = np.diag(np.asarray(call(d)).astype(complex))
    for j in range(1, t.shape[-1]):
        below = t[:j, :j] - d[j] * np.eye(j)
        right = x[:j, :j] @ t[:j, j] - t[:j, j] * x[j, j]
        x[:j, j] = linalg.solve_triangular(below, right)
    return x


_ONE = {"log": _log, "power": _power, "any": _any}
