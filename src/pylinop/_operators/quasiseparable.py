"""Quasi-separable operators: covariances of state-space processes, their generators, and
likelihoods from one sweep over the generators."""

from __future__ import annotations

import functools
import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import is_lazy
from .._base.config import near
from .._base.dtypes import inexact
from .._base.signatures import listed
from .._base.trampoline import run
from .quasiseparable_formulas import generators

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._core import Product, QuasiSeparable

__all__ = ["quasiseparable"]

_FLOAT, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


# -- generators of closed results --


def _square(a: Any, J: Any) -> Any:
    """Transitions as matrices, (..., n, J, J)."""
    if a.shape[-1] != J:
        return a.reshape(*a.shape[:-1], J, J)
    out = np.zeros((*a.shape, J), a.dtype)
    out[..., np.arange(J), np.arange(J)] = a
    return out


def _pairs(x: Any, y: Any) -> Any:
    both = x[..., :, None] * y[..., None, :]
    return both.reshape(*both.shape[:-2], x.shape[-1] * y.shape[-1])


def _beside(parts: Any) -> Any:
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in parts))
    parts = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in parts]
    return np.concatenate(parts, axis=-1)


def _summed(terms: Any) -> Any:
    """The generators of a sum: states beside each other; a diagonal term has d alone."""
    d = functools.reduce(np.add, (t[0] for t in terms))
    terms = [t for t in terms if len(t) > 1]
    if len(terms) == 1:
        return (d, *terms[0][1:])
    p, q = (_beside([t[k] for t in terms]) for k in (1, 2))
    if all(t[3].shape[-1] == t[1].shape[-1] for t in terms):
        return d, p, q, _beside([t[3] for t in terms])
    batch = np.broadcast_shapes(*(t[3].shape[:-2] for t in terms))
    J, at = p.shape[-1], 0
    a = np.zeros((*batch, p.shape[-2], J, J), np.result_type(*(t[3] for t in terms)))
    for t in terms:
        j = t[1].shape[-1]
        if t[3].shape[-1] == j:
            a[..., np.arange(at, at + j), np.arange(at, at + j)] = t[3]
        else:
            a[..., at : at + j, at : at + j] = _square(t[3], j)
        at += j
    return d, p, q, a.reshape(*a.shape[:-2], J * J)


def _multiplied(one: Any, two: Any) -> tuple[Any, Any, Any, Any]:
    """The generators of an element-wise product: all pairs of states."""
    (d, p, q, a), (e, u, v, b) = one, two
    j, k = p.shape[-1], u.shape[-1]
    first = (d * e, _pairs(p, u), _pairs(q, v))
    if a.shape[-1] == j and b.shape[-1] == k:
        return (*first, _pairs(a, b))
    x, y = _square(a, j), _square(b, k)
    full = x[..., :, None, :, None] * y[..., None, :, None, :]
    return (*first, full.reshape(*full.shape[:-4], (j * k) ** 2))


def _terms(op: Any) -> list[Any]:
    """The terms of a sum, in order."""
    found, stack = [], [op]
    while stack:
        o = stack.pop()
        if o._head == "quasiseparable" and o._init is None and o._by == "sum":
            stack += o._operands[::-1]
        else:
            found.append(o)
    return found


def _in_double(x: Any) -> Any:
    """An array or operator in double precision: sums and products of single precision would be
    rounded to it before they are anything's generators."""
    dtype = _COMPLEX if x.dtype.kind == "c" else _FLOAT
    return x if x.dtype == dtype else x.astype(dtype)


def _generators(leaf: Any) -> tuple[Any, ...]:
    return tuple(_in_double(np.asarray(g)) for g in leaf._given("d", "p", "q", "a"))


def _steps(op: Any) -> Generator[Any, Any, Any]:
    """The generators d, p, q, a of an operand; d alone for a diagonal one."""
    if op._head != "quasiseparable":
        return (_in_double(op).diagonal(),)
    if op._init is not None:
        return _generators(op)
    if op._by == "view":
        found = yield (op._operands[0],)
        return tuple(map(np.conj, found)) if op._mode in (1, 2) else found
    if op._by == "scaled":
        d, p, q, a = yield (op._operands[0],)
        return d * op._operands[1], p, q * op._operands[1], a
    parts = []
    for term in _terms(op) if op._by == "sum" else op._operands:
        parts.append((yield (term,)))
    return _summed(parts) if op._by == "sum" else _multiplied(*parts)


def _plain_sum(op: Any) -> tuple[Any, ...] | None:
    """The generators of a leaf, or of a leaf plus a diagonal, as likelihoods have it, found without
    a stack."""
    if op._init is not None:
        return _generators(op)
    if op._by != "sum":
        return None
    leaf, other = op._operands
    if leaf._head != "quasiseparable" or leaf._init is None or other._head == leaf._head:
        return None
    d, *rest = _generators(leaf)
    noise = other._given("d") if other._head == "diag" and other._init is not None else None
    if noise is None or noise.dtype != d.dtype:
        noise = _in_double(other).diagonal()
    return d + noise, *rest


def generators_of(op: Any) -> list[Any]:
    """The generators d, p, q, a of a QuasiSeparable, closed or not: C-contiguous, of one dtype, in
    double precision, each with the batch of the whole. If it is Hermitian, d is real in value."""
    found = _plain_sum(op) or run(_steps, op)
    dtype = _COMPLEX if op.dtype.kind == "c" else _FLOAT
    batch = op.shape[:-2]
    out = []
    for g, core in zip(found, (1, 2, 2, 2), strict=True):
        if g.dtype is not dtype or g.ndim != core or batch or not g.flags.c_contiguous:
            shape = (*batch, *g.shape[g.ndim - core :])
            g = np.ascontiguousarray(np.broadcast_to(g, shape), dtype)
        out.append(g)
    return out


def is_triangular(op: Any) -> bool:
    """Is op a lower triangle?"""
    while op._init is None:
        left, right = (*op._operands, None)[:2]
        op = right if left._head != "quasiseparable" else left
    return bool(op._given("triangular"))


def factor_of(op: Any) -> Any:
    """D, W, p, a of A = L D L^H, and which matrices of the batch are not positive definite."""
    d, p, q, a = generators_of(op)
    pivots, w = np.zeros(d.shape), np.zeros(q.shape, q.dtype)
    bad = np.zeros(op.shape[:-2], bool)
    for i in np.ndindex(*bad.shape):
        where = _core._quasi_ldl(d.dtype.char, p.shape[-1], d[i], p[i], q[i], a[i], pivots[i], w[i])
        bad[i] = where < d.shape[-1]
    return pivots, w, p, a, bad


def ldl_of(op: Any) -> Any:
    """Unit lower triangular L and D with A = L D L^H, in A's dtype, and where they are unusable."""
    pivots, w, p, a, bad = factor_of(op)
    dtype = inexact(op.dtype)
    parts = (np.ones(pivots.shape), p, w, a)
    d, p, q, a = (g.astype(dtype, copy=False) for g in parts)
    outer = _core.QuasiSeparable(d, p, q, a, True)
    return outer, pivots.astype(dtype, copy=False), bad


def cholesky_of(op: Any) -> Any:
    """The lower Cholesky factor, and where there is none."""
    pivots, w, p, a, bad = factor_of(op)
    dtype = inexact(op.dtype)
    root = np.sqrt(np.maximum(pivots, 0))
    parts = (root, p, w * root[..., None], a)
    d, p, q, a = (g.astype(dtype, copy=False) for g in parts)
    return _core.QuasiSeparable(d, p, q, a, True), bad


def likelihood_of(op: Any, b: Any) -> tuple[float, float] | None:
    """(b^H A^-1 b, log det A) of one matrix and vector, in one sweep that keeps nothing; None where
    a checked solve has to decide."""
    shape = op.shape
    if len(shape) != 2 or b.shape != shape[1:] or not shape[0] or b.dtype.kind not in "biufc":
        return None
    if op.dtype.kind not in "fc" or is_triangular(op):
        return None
    found = generators_of(op)
    dtype = found[0].dtype
    if b.dtype.kind == "c" and dtype.kind != "c":
        dtype = _COMPLEX
        found = [g.astype(dtype) for g in found]
    right = b if b.dtype is dtype and b.flags.c_contiguous else np.ascontiguousarray(b, dtype)
    d, p, q, a = found
    return _core._quasi_quad(dtype.char, p.shape[-1], d, p, q, a, right)


# -- covariances --


def _matern(order: Any, variance: Any, length_scale: Any) -> tuple[Any, Any, Any, float, float]:
    """Generators of exp(-x) times a polynomial of degree `order` in x = r |t - s|: one Jordan
    block."""
    return order, variance, math.sqrt(2 * order + 1) / length_scale, 0.0, 0.0


def _celerite(a: Any, b: Any, c: Any, d: Any) -> tuple[int, Any, Any, Any, Any]:
    """exp(-c |t - s|) (a cos(d |t - s|) + b sin(d |t - s|)); the rotations are put into p and q."""
    return (3, a, b, c, d) if d != 0 else (0, a, c, 0.0, 0.0)


def _oscillator(variance: Any, frequency: Any, quality: Any) -> tuple[int, Any, Any, Any, Any]:
    """The covariance of a damped harmonic oscillator driven by white noise."""
    c = frequency / (2 * quality)
    if not math.isfinite(c):
        raise ValueError(
            f"quasiseparable('oscillator', frequency={frequency!r}, quality={quality!r}): their "
            "ratio is too large for a number"
        )
    if quality > 0.6:
        eta = math.sqrt(2 * quality - 1) * math.sqrt(2 * quality + 1)
        return 3, variance, variance / eta, c, c * eta
    f = 2 * quality
    return 4, variance, f, math.sqrt(abs((1 - f) * (1 + f))), c


def _rows(t: Any, which: int, c0: float, c1: float, c2: float, c3: float) -> Any:
    """d, p, q, a at the times t. None where they are not sorted."""
    n, J = t.size, which + 1 if which < 3 else 2
    moves = J if which == 3 else J * J
    room = np.empty(n * (1 + 2 * J + moves))  # one block: fewer page faults
    shape, q_at, a_at = t.shape, n * (1 + J), n * (1 + 2 * J)
    found = (
        room[:n].reshape(shape),
        room[n:q_at].reshape(*shape, J),
        room[q_at:a_at].reshape(*shape, J),
        room[a_at:].reshape(*shape, moves),
    )
    if t.ndim == 1:
        sorted_to = _core._quasi_covariance(which, c0, c1, c2, c3, t, *found)
        return found if sorted_to == n else None
    for i in np.ndindex(*shape[:-1]):
        d, p, q, a = (g[i] for g in found)
        if _core._quasi_covariance(which, c0, c1, c2, c3, t[i], d, p, q, a) < shape[-1]:
            return None
    return found


_PARAMETERS = {
    "matern12": {"variance": 1.0, "length_scale": 1.0},
    "matern32": {"variance": 1.0, "length_scale": 1.0},
    "matern52": {"variance": 1.0, "length_scale": 1.0},
    "oscillator": {"variance": 1.0, "frequency": 1.0, "quality": 1.0},
    "celerite": {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0},
}
_POSITIVE = ("length_scale", "frequency", "quality")


def _values(kernel: Any, given: Any) -> dict[str, Any]:
    known = _PARAMETERS.get(kernel)
    if known is None:
        raise ValueError(
            f"quasiseparable(kernel={kernel!r}): expected one of {', '.join(_PARAMETERS)}"
        )
    for name, value in given.items():
        if name not in known:
            raise TypeError(
                f"quasiseparable({kernel!r}) has the parameters {', '.join(known)}, got {name!r}"
                f"{near(name, known)}"
            )
        if is_lazy(value):
            if value.ndim or value.dtype.kind not in "biuf":
                raise ValueError(
                    f"quasiseparable({kernel!r}, {name}=...): expected one real number, got a "
                    f"LazyArray of shape {value.shape}, {value.dtype}"
                )
            continue
        try:
            fits = type(value) is float or not np.ndim(value)
            fits = fits and math.isfinite(value) and (name not in _POSITIVE or value > 0)
        except (TypeError, OverflowError):  # not a real number
            fits = False
        if not fits:
            word = "positive number" if name in _POSITIVE else "finite number"
            raise ValueError(f"quasiseparable({kernel!r}, {name}={value!r}): expected a {word}")
    c = given.get("c", 0.0)
    if kernel == "celerite" and not is_lazy(c) and c < 0:
        raise ValueError(f"quasiseparable('celerite', c={c!r}): expected c >= 0")
    return {**known, **{k: v if is_lazy(v) else float(v) for k, v in given.items()}}


def _leaf(c: float) -> Any:
    return _core._lazy_leaf(np.array(c))


def _unsorted(t: Any) -> Any:
    """The error that says where the times are not sorted."""
    at = tuple(int(i) for i in np.argwhere(~(np.diff(t) >= 0))[0])
    i = at[-1]
    return ValueError(
        f"the times of a quasi-separable covariance are to be sorted, but t[{i + 1}] = "
        f"{t[(*at[:-1], i + 1)]} after t[{i}] = {t[at]}; sort them, and the data with them"
    )


def _times(t: Any, name: str) -> Any:
    """t and the dtype of its covariance."""
    times = dlpack.as_array(t)
    if times.ndim == 0 or times.dtype.kind not in "biuf":
        raise ValueError(
            f"quasiseparable: {name} is to be real and of one dimension or more, got {times.dtype} "
            f"of shape {times.shape}"
        )
    dtype = np.float32 if times.dtype.itemsize <= 4 and times.dtype.kind == "f" else np.float64
    return np.ascontiguousarray(times, np.float64), dtype


def _between(kernel: Any, t: Any, x: Any, parameters: Any) -> Any:
    """The covariance between t and x: rows and columns of that at all times, sorted."""
    (t, one), (x, other) = _times(t, "t"), _times(x, "x")
    if t.ndim != 1 or x.ndim != 1 or not (np.isfinite(t).all() and np.isfinite(x).all()):
        raise ValueError(
            "quasiseparable between t and x: both are to be finite and of one dimension, got "
            f"shapes {t.shape} and {x.shape}"
        )
    every = np.concatenate([t, x]).astype(np.result_type(one, other), copy=False)
    order = np.argsort(every, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    K = quasiseparable(kernel, every[order], **parameters)
    rows, columns = place[: t.size], place[t.size :]
    return _core.Selection(rows, order.size) @ K @ _core.Selection(columns, order.size).T


class Parameters(TypedDict, total=False):
    """The parameters of all kernels; each takes some."""

    variance: Any
    length_scale: Any
    frequency: Any
    quality: Any
    a: Any
    b: Any
    c: Any
    d: Any


@overload
def quasiseparable(
    kernel: str, t: ArrayLike, x: None = None, /, **parameters: Unpack[Parameters]
) -> QuasiSeparable: ...
@overload
def quasiseparable(
    kernel: str, t: ArrayLike, x: ArrayLike, /, **parameters: Unpack[Parameters]
) -> Product: ...
def quasiseparable(
    kernel: str, t: ArrayLike, x: ArrayLike | None = None, /, **parameters: Unpack[Parameters]
) -> QuasiSeparable | Product:
    """The covariance of a Markov process at sorted times, a `QuasiSeparable`, or between times.

    Matern kernels and kin of time points, one-dimensional Gaussian processes, in O(n): products,
    solves, `logdet`, `cholesky`, `sample`, ``inv(K).diagonal()``. Sums and element-wise products
    (`multiply`) of these operators, real multiples of them, and sums with diagonals are
    `QuasiSeparable` again. For other kernels, or times of more dimensions, take dense matrices.

    Parameters
    ----------
    kernel : {'matern12', 'matern32', 'matern52', 'oscillator', 'celerite'}
        With r = |t - s|: Matern kernels of smoothness 1/2, 3/2, 5/2 (``variance``,
        ``length_scale``); a damped oscillator driven by noise, celerite's SHO (``variance``,
        ``frequency`` in radians, ``quality``); ``exp(-c r) (a cos(d r) + b sin(d r))`` (``a``,
        ``b``, ``c``, ``d``), which is a covariance where ``|b d| <= a c``.
    t : array_like, shape (..., n)
        Times in ascending order; equal times are allowed. They are read now: later writes are not
        seen.
    x : array_like, shape (m,), optional
        Other times: the result is the covariance between t and x, both of one dimension and in any
        order, as predictions need it: with ``w = solve(K + noise, y)`` at x the mean at t is
        ``quasiseparable(kernel, t, x) @ w``.
    **parameters : float or LazyArray of no dimensions
        The parameters of the kernel; the default is 1, but 0 for ``b``, ``c`` and ``d``. With a
        LazyArray the result is one too, which derivatives by it go through; its value is not
        checked.

    Returns
    -------
    QuasiSeparable
        Shape (..., n, n); float32 for float32 times, else float64. The Matern kernels have 1 to 3
        states, the others 2 (1 where d is 0). With x an operator of shape (n, m), rows and
        columns of the covariance at all times: its products are O(n + m).

    Raises
    ------
    ValueError
        Times that are not sorted (without x), or not a number; an unknown kernel; a parameter out
        of range.
    TypeError
        A parameter the kernel does not have.

    Notes
    -----
    Transitions are exp(-c (t[i] - t[i-1])) between neighbours, so nothing overflows, however long
    the series is. The cost is O(n). Hartikainen and Sarkka 2010, MLSP; Foreman-Mackey et al. 2017,
    Astron. J. 154, and 2018, RNAAS 2 (the oscillator).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> t = np.array([0.0, 0.5, 2.0])
    >>> K = pl.quasiseparable("matern32", t, variance=2.0) + 0.1 * pl.Identity(3)
    >>> type(K).__name__, pl.solve(K, np.ones(3)).round(3)
    ('QuasiSeparable', array([0.325, 0.132, 0.399]))
    >>> pl.quasiseparable("matern32", [1.0, 3.0], t, variance=2.0) @ pl.solve(K, np.ones(3))
    array([0.9066474 , 0.42687563])
    """
    if x is not None:
        product: Product = _between(kernel, t, x, parameters)
        return product
    values = _values(kernel, parameters)
    times, dtype = _times(t, "t")
    if times.ndim == 1:
        finite = not times.size or (math.isfinite(times[0]) and math.isfinite(times[-1]))
    else:
        finite = not times.shape[-1] or np.isfinite(times[..., [0, -1]]).all()
    if not finite:
        raise ValueError("quasiseparable: the times are to be finite")
    if any(map(is_lazy, values.values())):
        if not (np.diff(times) >= 0).all():
            raise _unsorted(times)
        if kernel.startswith("matern"):  # all numbers alike, so that the process is known by them
            values = {k: v if is_lazy(v) else _leaf(v) for k, v in values.items()}
        made: QuasiSeparable = _core.QuasiSeparable(*generators(kernel, times, values, dtype))
        return made
    if kernel.startswith("matern"):
        numbers = _matern({"1": 0, "3": 1, "5": 2}[kernel[-2]], **values)
    else:
        numbers = (_oscillator if kernel == "oscillator" else _celerite)(**values)
    found = _rows(times, *numbers)
    if found is None:
        raise _unsorted(times)
    if dtype is not np.float64:
        found = (g.astype(dtype) for g in found)
    return _core.QuasiSeparable(*found)


listed(quasiseparable, Parameters, ...)
