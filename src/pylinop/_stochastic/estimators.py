"""Estimates of traces, determinants and diagonals from random probes: the public functions.

Each returns an `Estimate`: value, statistical error, a bound of the bias, the interval of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from .._base.lazy_import import Later
from .._base.signatures import listed
from . import estimate
from .estimate import Estimate
from .sampling import (
    Ask,
    Sampling,
    count_of,
    enough,
    exactly,
    in_two_stages,
    judged,
    rounding,
    scalar,
)

__all__ = ["Estimate", "estimate_diagonal", "estimate_logdet", "estimate_trace"]

_bounds, _lanczos, _quadrature = (
    Later("_structured.spectral_bounds_proven"),
    Later("_stochastic.lanczos_batch"),
    Later("_stochastic.lanczos_quadrature"),
)


# -- traces --


class _Forms:
    """``take`` of x^H A x for `in_two_stages`."""

    def __init__(self, ask: Ask, draw: Callable[[int], Any], **more: Any) -> None:
        self.ask, self.draw, self.more = ask, draw, more
        self.apply = _lanczos.Products(ask.op)
        self.products = more.pop("matvecs", 0)
        self.size = 0.0  # size of the sums, for rounding
        self.values: list[Any] = []

    def take(self, count: int, goal: Any) -> Any:
        width = max(_lanczos.together(self.ask.op, min(count, 64), 4), 1)
        first = len(self.values)
        for at in range(0, count, width):
            x = self.draw(min(width, count - at))
            y = self.apply(x)
            self.values.append(np.vecdot(x, y))
            self.size = max(self.size, float(np.abs(y).sum(axis=-1).max(initial=0)))
            self.products += x.shape[-2]
            if self.ask.watched:
                mid = np.concatenate(self.values, -1)
                self.ask.tell_samples(self.products, mid, np.zeros(mid.shape), **self.more)
        found = np.concatenate(self.values[first:], -1)
        return found, np.zeros(found.shape)


def _hutchinson(ask: Ask) -> Estimate:
    forms = _Forms(ask, ask.probes, method="hutchinson")
    mid, _, error = in_two_stages(ask, ask.number(30), forms.take)
    n = mid.shape[-1]
    bias = np.full(np.shape(error), rounding(ask, forms.size))
    return judged(ask, mid.mean(axis=-1), error, bias, samples=n, matvecs=n, method="hutchinson")


def _range(ask: Ask, count: int) -> Any:
    """An orthonormal basis of A times `count` probes, columns (..., n, count)."""
    y = np.swapaxes(_lanczos.Products(ask.op)(ask.probes(count)), -1, -2)
    return np.linalg.qr(np.broadcast_to(y, (*ask.op.shape[:-2], *y.shape[-2:])))[0]


def _times(op: Any, q: Any) -> Any:
    """A times the columns of q, which lie one after the other in the product: that is fast."""
    return np.swapaxes(_lanczos.Products(op)(np.swapaxes(q, -1, -2)), -1, -2)


def _off(q: Any, x: Any) -> Any:
    """(I - Q Q^H) x for rows x (..., k, n)."""
    c = np.matmul(x, q.conj())
    return x - np.matmul(c, np.swapaxes(q, -1, -2))


def _hutchpp(ask: Ask) -> Estimate:
    """Meyer, Musco, Musco, Woodruff (2021): the trace on a sketched range, the rest by probes."""
    count, least = ask.number(40, 2 * estimate.LEAST), estimate.LEAST
    sketch, n = count // 2, ask.op.shape[-1]
    if sketch >= n:
        return _by_columns(ask)
    q = _range(ask, sketch)
    aq = _times(ask.op, q)
    known = (q.conj() * aq).sum(axis=(-2, -1))
    size = float(np.abs(q * aq).sum(axis=(-2, -1)).max(initial=0))

    def draw(k: int) -> Any:
        return _off(q, ask.probes(k))

    forms = _Forms(ask, draw, method="hutch++", matvecs=2 * sketch, known=known)
    mid, _, error = in_two_stages(ask, max(count - sketch, least), forms.take)
    value = known + mid.mean(axis=-1)
    bias = np.full(np.shape(error), rounding(ask, size + forms.size))
    used = mid.shape[-1]
    return judged(
        ask, value, error, bias, samples=sketch + used, matvecs=2 * sketch + used, method="hutch++"
    )


def _by_columns(ask: Ask) -> Estimate:
    """The exact trace, from as many products as there are columns."""
    value = ask.op.trace()
    n = ask.op.shape[-1]
    size = np.abs(ask.op.diagonal()).sum(axis=-1)
    return exactly(ask, value, "exact, no fewer products", n, rounding(ask, size))


def _xtrace(ask: Ask) -> Estimate:
    """Epperly, Tropp and Webber (2024): each probe is judged by the range of all others."""
    count, op = ask.number(30), ask.op
    n = op.shape[-1]
    if count >= n:
        return _by_columns(ask)
    omega, used = ask.probes(count).T, 0
    while True:
        values, size = _leave_one_out(op, omega)
        used += 2 * count
        value, se = estimate.spread(values)
        error = estimate.quantile(ask.confidence, count - 1) * se
        how = {"samples": count, "method": "xtrace", "error_kind": "heuristic"}
        if ask.watched:
            ask.tell(used, value, error, np.zeros(error.shape), **how)
        if not ask.tolerant or np.all(error <= ask.goal(value)):
            break
        more = min(2 * count, ask.most, n)
        if more <= count:
            break
        if more >= n:
            return _by_columns(ask)
        omega = np.concatenate([omega, ask.probes(more - count).T], axis=-1)
        count = more
    bias = np.full(np.shape(error), rounding(ask, size))
    return judged(ask, value, error, bias, matvecs=used, **how)


def _leave_one_out(op: Any, omega: Any) -> Any:
    """XTrace's estimates (..., k), and the size of what they sum."""
    n, k = omega.shape
    y = np.broadcast_to(_times(op, omega), (*op.shape[:-2], n, k))
    q, r = np.linalg.qr(y)
    d = np.abs(np.diagonal(r, 0, -2, -1))
    top = d.max(axis=-1, keepdims=True)
    tiny = np.where(top > 0, 4 * _lanczos.EPS * top, 1.0)
    i = np.arange(k)
    safe = r.copy()
    safe[..., i, i] = np.where(d > tiny, np.diagonal(r, 0, -2, -1), tiny)
    s = np.swapaxes(np.linalg.inv(safe), -1, -2).conj()
    s = s / np.linalg.norm(s, axis=-2, keepdims=True)
    z = _times(op, q)
    qh = np.swapaxes(q, -1, -2).conj()
    h, w, t = qh @ z, qh @ omega, np.swapaxes(z, -1, -2).conj() @ omega

    def dots(a: Any, b: Any) -> Any:
        return (a.conj() * b).sum(axis=-2)

    sw = dots(s, w)
    x = w - s * sw[..., None, :]
    rest = sw.conj() * dots(s, r) - dots(t, x) + dots(x, h @ x)
    # the projected probe, brought back to its length in n - k + 1 dimensions
    length = n - dots(w, w).real + np.abs(sw) ** 2
    scale = (n - k + 1) / np.maximum(length, 1e-300)
    whole = np.trace(h, axis1=-2, axis2=-1)[..., None] - dots(s, h @ s) + scale * rest
    return whole, float(np.abs(q * z).sum(axis=(-2, -1)).max(initial=0))


def bounds_of(op: Any, bounds: Any) -> Any:
    """The user's bounds, or those that the structure proves."""
    if bounds is None:
        return _bounds.proven(op)
    try:
        low, high = (None if b is None else float(b) for b in tuple(bounds)[:2])
    except (TypeError, ValueError):
        raise TypeError(
            f"bounds must be (low, high), either of them None, got {bounds!r}"
        ) from None
    if low is not None and high is not None and not low <= high:
        raise ValueError(f"bounds must be low <= high, got {bounds!r}")
    return low, high


class _Watch:
    """Reports how far a quadrature is: the samples taken before, and those being taken."""

    def __init__(self, ask: Ask, seen: list[Any], method: str) -> None:
        self.ask, self.seen, self.method = ask, seen, method

    def __call__(self, now: Any) -> None:
        parts = [*self.seen, now]
        mid, half = (np.concatenate([getattr(p, x) for p in parts], -1) for x in ("mid", "half"))
        self.ask.tell_samples(
            sum(p.products for p in parts), mid, half, bracketed=all(p.bracketed for p in parts),
            steps=max(p.steps for p in parts), method=self.method,
        )  # fmt: skip


def _of_function(ask: Ask, f: Any, bounds: Any, steps: Any, method: str) -> Estimate:
    """tr f(A) by Lanczos quadrature (Ubaru, Chen and Saad, 2017), between Gauss and Radau rules."""
    f, op = _quadrature.function_of(f), ask.op
    steps = None if steps is None else count_of("steps", steps, 1)
    if 0 in op.shape:
        return exactly(ask, np.zeros(op.shape[:-2]), method, 0)
    bounds = bounds_of(op, bounds)
    seen: list[Any] = []
    watch = _Watch(ask, seen, method) if ask.watched else None

    def take(count: int, goal: Any) -> Any:
        if goal is None and ask.rtol is None and ask.atol is not None:
            goal = ask.atol
        found = _quadrature.sampled(op, ask.probes, count, f, bounds, steps, goal, watch)
        seen.append(found)
        return found.mid, found.half

    mid, half, error = in_two_stages(ask, ask.number(30), take)
    known = all(s.bracketed for s in seen)
    value, most = mid.mean(axis=-1), max(s.steps for s in seen)
    bias = half.mean(axis=-1) + rounding(ask, np.abs(mid).mean(axis=-1))
    info = {"reorthogonalised": all(s.kept for s in seen), "function": f.name}
    sides = None
    if not known:
        side = seen[0].sided
        sides = (
            scalar(value - error - bias) if side > 0 else -math.inf,
            scalar(value + error + bias) if side < 0 else math.inf,
        )
    return judged(
        ask, value, error, bias if known else None, sides=sides,
        samples=mid.shape[-1], matvecs=sum(s.products for s in seen), steps=most,
        bounds=tuple(bounds), method=method, info=info,
    )  # fmt: skip


_TRACES = {"hutchinson": _hutchinson, "hutch++": _hutchpp, "xtrace": _xtrace}


def estimate_trace(
    A: Any,
    function: str | Callable[[Any], Any] | None = None,
    *,
    method: str = "hutchinson",
    bounds: tuple[float | None, float | None] | None = None,
    steps: int | None = None,
    **how: Unpack[Sampling],
) -> Estimate:
    """The trace of a square operator, or of a function of a Hermitian one, from random probes.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Only products with it are used. Hermitian where ``function`` is given.
    function : {'log', 'inv', 'sqrt', 'entropy', 'exp'} or callable, optional
        Estimate the trace of f(A), by Lanczos quadrature; 'entropy' is x log x. A callable takes an
        array of eigenvalues and returns as many values.
    bounds : (low, high), optional
        Bounds of the spectrum, which are trusted; either may be None. When not given, those that
        the structure proves (`spectral_bounds`).
    steps : int, optional
        Steps of Lanczos; when None, as many as the statistical error justifies, 100 at most.
    method : {'hutchinson', 'hutch++', 'xtrace'}
        'hutchinson' takes the mean of x^H A x over random signs x; 'hutch++' computes the trace on
        a sketched range and samples the rest; 'xtrace' judges each probe by the range of the
        others. The last two pay off where few eigenvalues dominate. With ``function`` only the
        first is possible.
    num_samples : int, optional
        The number of random vectors, at least 10: 30 when None. For 'hutch++', which uses half of
        them for the sketch, at least 20, and 40 when None.
    rtol, atol : float, optional
        Take more probes until error and bias together are at most max(atol, rtol |value|); if that
        tolerance cannot be met, ``met`` is False and a RuntimeWarning says so.
    rng : numpy.random.Generator or int, optional
    confidence : float
        The confidence of the statistical error.
    max_samples : int, optional
        The most probes to take for a tolerance: 10,000 when None.
    callback : callable, optional
        Called with the `Estimate` so far, as often as one can be made: after some steps of
        quadrature, some probes, a round of 'xtrace'.
    progress : bool or callable, optional
        True shows a bar (tqdm where it is there); a callable gets (products, error).

    Returns
    -------
    Estimate
        It is computed in double precision. Batches give arrays.

    Raises
    ------
    LinAlgError
        When A is not square; with ``function`` also when A turns out not to be Hermitian, or not to
        be positive where the function needs it.
    ValueError
        For fewer probes than 10, unknown names, and bounds that a Ritz value passes.

    Notes
    -----
    For each probe 'hutchinson' takes one product; 'hutch++' takes 1.5, 'xtrace' two, and both O(n
    m^2) flops in all. Quadrature takes ``steps`` products a probe and steps^2 n flops for
    reorthogonalisation, with steps n numbers of memory a probe (up to 100 steps; beyond that
    neither). Hutchinson (1989); Meyer, Musco, Musco, Woodruff (2021); Epperly, Tropp, Webber
    (2024), whose error is a heuristic; Ubaru, Chen, Saad (2017) with the brackets of Golub and
    Meurant (2010).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Toeplitz(0.5 ** np.arange(1000.0))
    >>> e = pl.estimate_trace(A, num_samples=50, rng=1)
    >>> low, high = e.interval
    >>> low <= 1000 <= high, e.bias < 1e-9, e.samples
    (True, True, 50)
    """
    if method not in _TRACES:
        raise ValueError(f"method must be one of {', '.join(_TRACES)}, got {method!r}")
    if function is not None and method != "hutchinson":
        raise ValueError(f"a function goes by method='hutchinson', not {method!r}")
    if function is None and (bounds is not None or steps is not None):
        raise ValueError("bounds= and steps= belong to function=")
    with Ask("estimate_trace", A, **how) as ask:
        if function is not None:
            return _of_function(ask, function, bounds, steps, "lanczos quadrature")
        if 0 in ask.op.shape:
            return exactly(ask, np.zeros(ask.op.shape[:-2]), method, 0)
        return _TRACES[method](ask)


listed(estimate_trace, Sampling, confidence=0.95)


def estimate_logdet(
    A: Any,
    *,
    bounds: tuple[float | None, float | None] | None = None,
    steps: int | None = None,
    **how: Unpack[Sampling],
) -> Estimate:
    """The logarithm of the determinant of a positive definite operator, from products alone.

    Stochastic Lanczos quadrature: log det A = tr log A, ``estimate_trace(A, "log")``.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Hermitian positive definite.
    bounds : (low, high), optional
        Bounds of the spectrum. A lower bound > 0, given or proven from the structure, brackets the
        bias; without one the bias is unknown, and no tolerance is met.
    steps, num_samples, rtol, atol, rng, confidence, max_samples, callback, progress
        As in `estimate_trace`.

    Returns
    -------
    Estimate

    Raises
    ------
    LinAlgError
        When A is not square, or turns out not to be positive definite or Hermitian.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Toeplitz(0.5 ** np.arange(2000.0)) + pl.Diag(np.linspace(0.1, 1, 2000))
    >>> e = pl.estimate_logdet(A, rng=1)
    >>> low, high = e.interval
    >>> low <= float(pl.logdet(A)) <= high, high - low < 40
    (True, True)
    """
    with Ask("estimate_logdet", A, **how) as ask:
        return _of_function(ask, "log", bounds, steps, "slq")


listed(estimate_logdet, Sampling, confidence=0.95)


# -- diagonals --


def estimate_diagonal(
    A: Any,
    *,
    method: str = "hutchinson",
    **how: Unpack[Sampling],
) -> Estimate:
    """The main diagonal of a square operator from random probes.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Only products with A are used, and with its adjoint for 'hutch++'.
    method : {'hutchinson', 'hutch++'}
        'hutchinson' takes the mean of x * (A x) over random signs x; 'hutch++' computes the
        diagonal on a sketched range and samples the rest.
    num_samples, rtol, atol, rng, confidence, max_samples, callback, progress
        As in `estimate_trace`; a tolerance holds for each entry.

    Returns
    -------
    Estimate
        Its arrays have shape (..., n); the confidence is that of each entry by itself.

    Raises
    ------
    LinAlgError
        When A is not square.

    Notes
    -----
    The variance of an entry is the sum of squares of the others in its row, over the number of
    probes. Bekas, Kokiopoulou, Saad (2007); Baston, Nakatsukasa (2022).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Toeplitz(0.1 ** np.arange(100.0))
    >>> e = pl.estimate_diagonal(A, num_samples=100, rng=0)
    >>> bool(np.abs(e.value - 1).max() < 0.1)
    True
    """
    if method not in ("hutchinson", "hutch++"):
        raise ValueError(f"method must be 'hutchinson' or 'hutch++', got {method!r}")
    with Ask("estimate_diagonal", A, **how) as ask:
        return _diagonal(ask, method)


listed(estimate_diagonal, Sampling, confidence=0.95)


def _diagonal(ask: Ask, method: str) -> Estimate:
    op, n = ask.op, ask.op.shape[-1]
    if 0 in op.shape:
        return exactly(ask, np.zeros(op.shape[:-1]), method, 0)
    known: Any = 0.0
    used, q = 0, None
    if method == "hutch++":
        count = ask.number(40, 2 * estimate.LEAST)
        sketch = count // 2
        if sketch >= n:
            value = op.diagonal()
            return exactly(ask, value, "exact, no fewer products", n)
        q = _range(ask, sketch)
        known = (q * _times(op.H, q).conj()).sum(axis=-1)
        used, first = 3 * sketch, count - sketch
    else:
        first = ask.number(30)
    e = _Entries(ask, q, known, method, used)
    error, size, taken = e.taken_for(first), np.sqrt(e.square / e.taken), e.taken
    value = known + e.mean
    bias = rounding(ask, (size + np.abs(value)) / math.sqrt(n))
    return judged(
        ask, value, error, bias, samples=taken + used // 3, matvecs=taken + used, method=method
    )


class _Entries:
    """The mean of x * (A x) and its error, without keeping samples."""

    def __init__(self, ask: Ask, q: Any, known: Any, method: str, used: int) -> None:
        self.ask, self.q, self.known, self.method, self.used = ask, q, known, method, used
        self.times = _lanczos.Products(ask.op)
        self.total: Any = 0.0
        self.square: Any = 0.0
        self.centre: Any = None
        self.taken = 0

    def run(self, count: int) -> None:
        width = max(_lanczos.together(self.ask.op, min(count, 64), 4), 1)
        for at in range(0, count, width):
            x = self.ask.probes(min(width, count - at))
            y = self.times(x)
            s = x * (y if self.q is None else _off(self.q, y))
            if self.centre is None:
                self.centre = s.mean(axis=-2)
            off = s - self.centre[..., None, :]
            self.total = self.total + off.sum(axis=-2)
            parts = off.real**2, off.imag**2
            self.square = self.square + np.maximum(*(p.sum(axis=-2) for p in parts))
            self.taken += x.shape[-2]
            if self.ask.watched:
                self._tell()

    def _tell(self) -> None:
        n, error = self.taken, np.full(self.square.shape, np.inf)
        if n > 1:
            error = estimate.quantile(self.ask.confidence, n - 1) * self.spread / math.sqrt(n)
        self.ask.tell(
            n + self.used, self.known + self.mean, error, np.zeros(error.shape), samples=n,
            method=self.method,
        )  # fmt: skip

    @property
    def mean(self) -> Any:
        return self.centre + self.total / self.taken

    @property
    def spread(self) -> Any:
        n = self.taken
        return np.sqrt(np.maximum(self.square - np.abs(self.total) ** 2 / n, 0) / max(n - 1, 1))

    def taken_for(self, first: int) -> Any:
        """The error after `first` probes and as many more as the tolerance needs."""
        self.run(first)
        error = estimate.quantile(self.ask.confidence, first - 1) * self.spread
        if self.ask.tolerant:
            more = enough(self.ask, first, self.mean, error / math.sqrt(first), 0.0) - first
            if more > 0:
                self.run(more)
        return error / math.sqrt(self.taken)
