"""Determinants for verified answers (`compare.py`): by NumPy's LU of the dense form; for many rows
or few entries, if the expression as written is positive definite, by stochastic Lanczos quadrature.

log det A = tr log A is estimated by n v^H log(A) v over N vectors v, uniform on the sphere, with
products by the written nodes alone. Nothing is taken from the structure; the error bars hold with a
probability of at least 1 - `_MISSED` over the draw of the vectors:

- the mean is off by at most 2 F (t / N)^1/2 + 2 b t / N with probability 1 - 2 e^-t, F and b being
  the Frobenius and the spectral norm of log(A) - c I (Laurent and Massart 2000, for Gaussian
  vectors, whose moments bound those of the sphere, where any c gives the same sum);
- F by the mean of n |(log(A) - c) v|^2, whose lower tail is bounded likewise;
- the least eigenvalue by the inverse: one of N Gaussian vectors z has a part of at least d along
  its eigenvector, so that it is at least (d - |r|) / |w| where A w = z - r (Dixon 1983); w comes
  from the same steps as conjugate gradients would give it. Where all of them have |r| << d and all
  Ritz values are positive, an eigenvalue below zero is excluded by the same argument: the
  residual's polynomial is larger than 1 there;
- the quadrature lies between Gauss's rule and Radau's at that least eigenvalue (Golub, Meurant)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import reference
from .reference import Walk
from .reference_leaf import NotVerified, has_room

_LU = 1024  # rows up to which it is by LU
_PROBES = 32
_STEPS = 240
_MISSED = 1e-9  # how probably a right result lies beyond the error bars, at most
_EACH = math.log(4 / _MISSED)  # of four events, each of e^-t; of the first both sides
_PART = math.exp(-_EACH / _PROBES) * math.sqrt(math.pi / 2)  # of one probe along one vector
_RESIDUAL = 0.1  # where conjugate gradients have settled
_MOST_PRODUCTS = 1 << 34  # multiplications of all steps
_MOST_NUMBERS = 1 << 26  # of the probes
# Kinds that are triangles by name.
_OF_DIAGONALS = ("diag", "identity", "triangular", "sparsetriangular")
_FAR = 500  # powers of 2 from which a matrix is brought near to one


def compared(op: Any, y: Any, named: bool = False) -> Any:
    """(how, error, allowed) of mantissa times 2^exponent, for each matrix of a batch."""
    n = op.shape[-1]
    with np.errstate(all="ignore"):
        mantissa, power = y[..., 0], y[..., 1].real
        found = np.log(np.abs(mantissa)) + power * np.log(2.0)
        direction = mantissa / np.abs(mantissa)
    kind = op.dtype.kind if op.dtype is not None else "f"
    precision = op.dtype if kind in "fc" else np.dtype(float)
    asked = op, found, direction, np.finfo(precision).eps / 2, named
    room = has_room(op.size)
    if room and (n <= _LU or _entries(op) >= op.size // 4):
        return _by_lu(*asked)
    try:
        return _by_quadrature(*asked)
    except NotVerified:
        if not room:
            raise
        return _by_lu(*asked)


def _entries(op: Any) -> int:
    """Of all matrices that a product multiplies by."""
    stack, total = [op], 0
    while stack and total < op.size:
        part = stack.pop()
        inner = reference.below(part)
        stack += inner
        if not inner:
            total += reference.entries(part)
    return total


def _work(op: Any) -> Any:
    return complex if op.dtype is not None and op.dtype.kind == "c" else float


def _off(found: Any, log: Any) -> Any:
    """|found - log|; nan is infinitely far."""
    return np.abs(np.where(np.isnan(found), np.inf, found) - log)


def _by_lu(op: Any, found: Any, direction: Any, unit: Any, named: bool) -> Any:
    n = op.shape[-1]
    walk = Walk(_work(op), None, named, op.dtype)
    base, mode = op, 0
    while reference.written(base) == "view":
        base, mode = base._operands[0], mode ^ base._mode
    a = walk.dense(base)
    a = walk._seen(reference.solved_form(base, a) if named else a, mode)
    a, up = _near_one(a)
    sign, log = _slogdet(a)
    log = log - n * math.log(2.0) * up
    if n and np.any(np.isneginf(log) != np.isneginf(found)):
        raise NotVerified("a determinant of a singular matrix")
    error = _off(found, log) + np.abs(direction - sign)
    count = reference.steps(op, np.dtype(float) if op.dtype is None else op.dtype)
    allowed = 10 * unit * count * (1 + np.abs(log))
    known = np.isfinite(log)
    if np.any(known & ~(error <= allowed)):  # of a nearby matrix
        with np.errstate(all="ignore"):  # sums of logarithms may cancel
            logs = np.abs(np.log(np.abs(a)) - math.log(2.0) * up[..., None, None])
        logs = n * np.where(np.isfinite(logs), logs, 0).max((-1, -2), initial=0)
        size = _times_power(walk.dense(op, True), up)
        named_so = reference.assumed(base) in reference.TRIANGLES
        change = _change(a, size, named_so or reference.written(base) in _OF_DIAGONALS)
        allowed = 10 * unit * count * (1 + np.abs(log) + change + logs)
        allowed = allowed + n * (np.finfo(float).eps / 2) * logs
    return "by NumPy's LU", np.where(known, error, 0), allowed


def _near_one(a: Any) -> tuple[Any, Any]:
    """a times 2^up, near one where a is so far from it that LAPACK's LU, which multiplies by
    reciprocals, or its inverse would leave the range of numbers; and up."""
    largest = np.abs(a).max((-1, -2), initial=0)
    up = -np.frexp(np.where(np.isfinite(largest), largest, 1))[1]
    up = np.where(np.abs(up) > _FAR, up, 0)
    return (_times_power(a, up) if up.any() else a), up


def _times_power(a: Any, up: Any) -> Any:
    """a 2^up, one `up` for each matrix; 2^up alone may overflow."""
    up = np.asarray(up)[..., None, None]
    if a.dtype.kind != "c":
        return np.ldexp(a, up)
    return np.ldexp(a.real, up) + 1j * np.ldexp(a.imag, up)


def _is_triangular(a: Any) -> bool:
    return not (np.triu(a, 1).any() and np.tril(a, -1).any())


def _slogdet(a: Any) -> Any:
    """NumPy's; of triangular matrices from the diagonal, for LU with pivots is not accurate there
    where they are as ill-conditioned as random ones are."""
    if not _is_triangular(a):
        return np.linalg.slogdet(a)
    d = np.diagonal(a, axis1=-2, axis2=-1)
    size = np.abs(d)
    with np.errstate(all="ignore"):
        return (d / np.where(size == 0, 1, size)).prod(-1), np.log(size).sum(-1)


def _change(a: Any, size: Any, named: bool) -> Any:
    """By how much errors of `size` move the logarithm: |A^-1| |A| summed up, the diagonals' alone
    where that is all of the determinant: of a triangle that is named one. Of another LU with
    pivots may be taken, which does not see the zeros."""
    if _is_triangular(a):
        d, off = (np.abs(np.diagonal(x, axis1=-2, axis2=-1)) for x in (a, size))
        diagonals = (off / d).sum(-1)
        if named:
            return diagonals
        with np.errstate(all="ignore"):
            return np.fmax(diagonals, _change_by_inverse(a, size))
    return _change_by_inverse(a, size)


def _change_by_inverse(a: Any, size: Any) -> Any:
    try:
        inverse = np.abs(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        raise NotVerified("a determinant of a singular matrix") from None
    # LU fills in where A has zeros: the largest entry of each column
    return (inverse.sum(-1) * np.maximum(size, np.abs(a)).max(-2)).sum(-1)


# -- by quadrature --


def _by_quadrature(op: Any, found: Any, direction: Any, unit: Any, named: bool) -> Any:
    n = op.shape[-1]
    try:
        low, high, steps, size = _interval(op, unit, named)
    except NotVerified as why:
        raise NotVerified(f"a determinant of {n} rows, too many for LU, and {why}") from None
    count = reference.steps(op, op.dtype)
    middle, half = (low + high) / 2, (high - low) / 2
    half = half + 10 * unit * count * (1 + np.abs(middle) + size)
    # the sign of a definite matrix is known: whatever the error bars are, another is a miss
    turned = np.abs(direction - 1) > 10 * unit * count
    error = np.where(turned, np.inf, _off(found, middle))
    how = f"by {_PROBES} probes of Lanczos in {steps} steps: within +- {np.max(half):.3g}"
    return how, error, half


def _probes(op: Any, work: Any) -> Any:
    rng = np.random.default_rng(20261122)
    z = rng.standard_normal((op.shape[-1], _PROBES))
    if work is complex:
        z = (z + 1j * rng.standard_normal(z.shape)) / math.sqrt(2)
    return np.broadcast_to(z, (*op.shape[:-2], *z.shape))


def _interval(op: Any, unit: Any, named: bool) -> tuple[Any, Any, Any, Any]:
    """(low, high) of the log-determinant, the steps that it took, and by how much the promised
    accuracy of a nearby matrix may move it in units of rounding."""
    n, work = op.shape[-1], _work(op)
    if math.prod(op.shape[:-1]) * _PROBES > _MOST_NUMBERS or not has_room(n):
        raise NotVerified(f"the probes of {op.shape} are too large")
    walk = Walk(work, None, named)
    walk.most = _MOST_PRODUCTS
    z = _probes(op, work)
    norm = np.linalg.norm(z, axis=-2)
    alpha: list[Any] = []
    beta: list[Any] = []
    look = 8
    previous, v = 0, z / norm[..., None, :]
    while len(alpha) < _STEPS:
        x = walk.apply(op, v)
        if not alpha:
            _is_hermitian(op, v, x, unit)
        a = (v.conj() * x).sum(-2).real
        if alpha:
            dead = beta[-1] == 0  # an invariant space: what follows has no weight
            a = np.where(dead, alpha[0], a)
            x = x - beta[-1][..., None, :] * previous
        x = x - a[..., None, :] * v
        b = np.linalg.norm(x, axis=-2)
        b = np.where(b <= 1e-13 * np.abs(alpha[0] if alpha else a), 0, b)
        previous, v = v, x / np.where(b == 0, np.inf, b)[..., None, :]
        alpha.append(a)
        beta.append(b)
        if len(alpha) in (look, n, _STEPS) or not b.any():
            look = look + max(look // 4, 4)
            found = _looked(np.stack(alpha, -1), np.stack(beta, -1), norm, n)
            if found is not None:
                return found
            if not b.any():
                break
    raise NotVerified(f"Lanczos has not settled within {len(alpha)} steps: it is ill-conditioned")


def _is_hermitian(op: Any, v: Any, x: Any, unit: Any) -> None:
    """Raises where V^H A V is not, beyond what rounding does."""
    inner = np.swapaxes(v, -1, -2).conj() @ x
    off = np.abs(inner - np.swapaxes(inner, -1, -2).conj())
    size = np.linalg.norm(x, axis=-2).max(-1)[..., None, None]
    if not np.all(off <= 10 * unit * reference.steps(op, op.dtype) * size):
        raise NotVerified("it is not symmetric as written")


def _tridiagonal(alpha: Any, beta: Any) -> Any:
    """Eigenvalues, and the first and the last component of each eigenvector."""
    m = alpha.shape[-1]
    t = np.zeros((*alpha.shape, m))
    i = np.arange(m)
    t[..., i, i] = alpha
    t[..., i[1:], i[:-1]] = beta[..., : m - 1]
    if not np.isfinite(t).all():
        raise NotVerified("products with it are not finite")
    w, u = np.linalg.eigh(t)
    return w, u[..., 0, :], u[..., -1, :]


def _looked(alpha: Any, beta: Any, norm: Any, n: int) -> tuple[Any, Any, Any, Any] | None:
    """The interval after these steps (along the last axis), or None: more are needed."""
    if _left(alpha[..., :1, :], beta[..., :1, :], norm[..., :1])[0].max() > _RESIDUAL:
        return None  # one probe tells it, at a part of the price of all
    left, w, first, last = _left(alpha, beta, norm)
    weight = first**2
    inverse = norm * np.sqrt((weight / w**2).sum(-1))
    if left.max() > _RESIDUAL:
        return None
    # half of it: what rounding may do to the steps
    low = (_PART - left.max(-1)) / inverse.max(-1) / 2
    low = np.minimum(low, w.min((-1, -2)) / 1.01)
    k, high = alpha.shape[-1] - 1, w.max((-1, -2))
    grown = norm * np.sqrt((weight * (w / high[..., None, None]) ** (2 * k)).sum(-1))
    high = high * np.maximum(grown.max(-1) / _PART, 1.01) ** (1 / max(k, 1))
    if not beta[..., -1].any():  # all that there is
        low, high = w.min((-1, -2)) / 1.01, w.max((-1, -2)) * 1.01
    gauss = n * (weight * np.log(w)).sum(-1)
    gap = np.maximum(gauss - _radau(alpha, beta, low, n), 0).mean(-1)
    mean = gauss.mean(-1)
    c = mean / n
    norm2 = np.maximum(np.log(high) - c, c - np.log(low))
    square = n * (weight * (np.log(w) - c[..., None, None]) ** 2).sum(-1).mean(-1)
    error = _deviation(square + 2 * norm2 * gap, norm2, n)
    if np.any(gap > 0.1 * error + 1e-10 * (1 + np.abs(mean))) and beta[..., -1].any():
        return None
    # tr(A^-1) |A| bounds what a nearby matrix changes
    size = high * n * (weight / w).sum(-1).mean(-1)
    return mean - gap - error, mean + error, alpha.shape[-1], size


def _left(alpha: Any, beta: Any, norm: Any) -> tuple[Any, Any, Any, Any]:
    """Residuals of A^-1 z for the probes z, with the eigenvalues and what belongs to them."""
    w, first, last = _tridiagonal(alpha, beta)
    if not (w > 0).all():
        raise NotVerified("it is not positive definite")
    return norm * beta[..., -1] * np.abs((first * last / w).sum(-1)), w, first, last


def _radau(alpha: Any, beta: Any, end: Any, n: int) -> Any:
    """Radau's rule of the logarithm, a node being at `end`: below the integral."""
    end = end[..., None, None]
    w, _, last = _tridiagonal(alpha - end, beta)
    b2 = beta[..., -1] ** 2
    more = end[..., 0] + b2 * (last**2 / w).sum(-1)
    live = b2 > 0
    more = np.where(live, more, alpha[..., 0])
    alpha = np.concatenate([alpha, more[..., None]], -1)
    w, first, _ = _tridiagonal(alpha, beta)
    return n * (first**2 * np.log(np.maximum(w, end / 2))).sum(-1)


def _deviation(square: Any, norm: Any, n: int) -> Any:
    """What the mean may be off by, from the mean of the squares and the spectral norm."""
    t = _EACH + math.log(2)
    error = np.zeros_like(square)
    for _ in range(3):  # the squares are around the found mean, not around the true one
        total = _frobenius(square + error**2 / n, norm, n)
        error = 2 * np.sqrt(total * t / _PROBES) + 2 * norm * t / _PROBES
    return error


def _frobenius(mean: Any, norm: Any, n: int) -> Any:
    """The largest F^2 of which a mean as small as this is seen with probability e^-t at least:
    N F^2 / (2 norm^2) (h - 1 - log h) = t, where h = mean / F^2; at most n norm^2."""
    low, high = np.maximum(mean, 1e-300), np.maximum(n * norm**2, mean) + 1e-300
    base, most = low, high
    for _ in range(60):
        at = np.sqrt(low) * np.sqrt(high)
        h = base / at
        beyond = _PROBES * at * (h - 1 - np.log(h)) > 2 * norm**2 * _EACH
        low, high = np.where(beyond, low, at), np.where(beyond, at, high)
    return np.minimum(high, most)
