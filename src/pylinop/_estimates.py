"""Estimates of traces, determinants and diagonals from random probes: what users call.

Each gives an `Estimate`: value, statistical error, a bound of the bias, the interval of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _estimate
from ._errors import LinAlgError
from ._estimate import Estimate
from ._forms import as_operator
from ._later import Later

__all__ = ["Estimate", "estimate_diagonal", "estimate_logdet", "estimate_trace"]

_bounds, _lanczos, _quadrature = Later("_bounds"), Later("_lanczos"), Later("_quadrature")
_MOST = 10_000  # probes that a tolerance may ask for, unless said


# -- what is asked --


class Ask:
    """The arguments that all estimates share, checked."""

    def __init__(
        self, A: Any, samples: Any, rng: Any, confidence: float, rtol: Any, atol: Any, most: Any
    ) -> None:
        self.op = op = as_operator(A)
        if op.shape[-1] != op.shape[-2]:
            raise LinAlgError(f"Last 2 dimensions of the array must be square: {op.shape}")
        if op.dtype is None or op.dtype.kind not in "biufc":
            raise TypeError(f"estimates take operators of numbers, got dtype {op.dtype}")
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
        for name, tol in (("rtol", rtol), ("atol", atol)):
            if tol is not None and not tol >= 0:
                raise ValueError(f"{name} must be >= 0, got {tol!r}")
        self.samples, self.confidence = samples, confidence
        self.rtol, self.atol = rtol, atol
        self.most = _MOST if most is None else count_of("max_samples", most, 1)
        self.rng = np.random.default_rng(rng)

    @property
    def tolerant(self) -> bool:
        return self.rtol is not None or self.atol is not None

    def goal(self, value: Any) -> Any:
        """The error that is allowed, of each number."""
        return np.maximum(self.atol or 0.0, (self.rtol or 0.0) * np.abs(value))

    def probes(self, count: int) -> Any:
        """Random signs, as rows; the same whatever the number drawn at once."""
        n = self.op.shape[-1]
        words = self.rng.integers(0, 2**64, (count, -(-n // 64)), np.uint64)
        return np.unpackbits(words.view(np.uint8), axis=-1, count=n) * 2.0 - 1.0

    def number(self, count: int, least: int = _estimate.LEAST) -> int:
        return count if self.samples is None else count_of("num_samples", self.samples, least)


def count_of(name: str, value: Any, least: int) -> int:
    n = int(value.__index__()) if hasattr(value, "__index__") else None
    if n is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if n < least:
        raise ValueError(f"{name} must be at least {least}, got {n}")
    return n


def _scalar(x: Any) -> Any:
    """A Python number of what has no dimensions."""
    return x.item() if isinstance(x, np.generic | np.ndarray) and x.ndim == 0 else x


def _exactly(ask: Ask, value: Any, method: str, matvecs: int, bias: Any = 0.0) -> Estimate:
    zero = np.zeros(np.shape(value))
    return Estimate(
        _scalar(np.asarray(value)), _scalar(zero), bias=_scalar(zero + bias), error_kind="exact",
        confidence=ask.confidence, matvecs=matvecs, method=method,
        met=bool(np.all(bias <= ask.goal(value))) if ask.tolerant else None,
    )  # fmt: skip


# -- samples until they do --


def _enough(ask: Ask, taken: int, mean: Any, error: Any, bias: Any) -> int:
    """How many samples bring the error of these below the goal (Stein's second stage)."""
    left = ask.goal(np.maximum(np.abs(mean) - error, 0)) - bias
    with np.errstate(divide="ignore", invalid="ignore"):
        need = np.where(error > 0, taken * (error / np.maximum(left, 0)) ** 2 * 1.05, 0)
    worst = float(np.max(need, initial=0))
    return ask.most if not worst < ask.most else max(taken, math.ceil(worst))


def _in_two_stages(ask: Ask, count: int, take: Callable[[int, Any], Any]) -> Any:
    """(samples (..., N), half-widths of their brackets, error): `count` samples, and as many more
    as the tolerance needs, judged by the spread of the first ones with their quantile (Stein, 1945:
    so the interval keeps its confidence). ``take(k, goal)`` gives k more."""
    mid, half = take(count, None)
    t = _estimate.quantile(ask.confidence, count - 1)
    mean, se = _estimate.spread(mid)
    more = 0
    if ask.tolerant:
        bias = half.mean(axis=-1)
        more = min(_enough(ask, count, mean, t * se, bias), ask.most) - count
    if more <= 0:
        return mid, half, t * (se + _root_mean(half) / math.sqrt(count))
    rest = take(more, ask.goal(mean))
    mid, half = (np.concatenate(pair, -1) for pair in zip((mid, half), rest, strict=True))
    n = count + more
    first = se * math.sqrt(count) + _root_mean(half)
    return mid, half, t * first / math.sqrt(n)


def _root_mean(half: Any) -> Any:
    """What the spread of the true samples may exceed that of the middles of their brackets by."""
    n = half.shape[-1]
    return np.sqrt((half**2).sum(axis=-1) / max(n - 1, 1))


def _rounding(ask: Ask, size: Any) -> Any:
    """An allowance for rounding, of sums of moduli `size`."""
    return 2 * math.sqrt(max(ask.op.shape[-1], 1)) * _lanczos.EPS * size


def _judged(ask: Ask, value: Any, error: Any, bias: Any, **more: Any) -> Estimate:
    met = None
    if ask.tolerant:
        met = bias is not None and bool(np.all(error + bias <= ask.goal(value)))
    value, error, bias = (_scalar(x) for x in (value, error, bias))
    e = Estimate(value, error, bias=bias, confidence=ask.confidence, met=met, **more)
    _estimate.say_unmet(e, ask.goal(value))
    return e


# -- traces --


def _forms_of(ask: Ask, apply: Callable[[Any], Any], draw: Callable[[int], Any]) -> Any:
    """``take`` of x^H A x for `_in_two_stages`; sizes of the sums are kept beside, for rounding."""
    sizes: list[float] = []

    def take(count: int, goal: Any) -> Any:
        values = []
        width = max(_lanczos.together(ask.op, min(count, 64), 4), 1)
        for at in range(0, count, width):
            x = draw(min(width, count - at))
            y = apply(x)
            values.append(np.vecdot(x, y))
            sizes.append(float(np.abs(y).sum(axis=-1).max(initial=0)))
        found = np.concatenate(values, -1)
        return found, np.zeros(found.shape)

    return take, sizes


def _hutchinson(ask: Ask) -> Estimate:
    take, sizes = _forms_of(ask, _lanczos.Products(ask.op), ask.probes)
    mid, _, error = _in_two_stages(ask, ask.number(30), take)
    n = mid.shape[-1]
    bias = np.full(np.shape(error), _rounding(ask, max(sizes, default=0)))
    return _judged(ask, mid.mean(axis=-1), error, bias, samples=n, matvecs=n, method="hutchinson")


def _range(ask: Ask, count: int, shape: Any) -> Any:
    """An orthonormal basis of A times `count` probes, columns (..., n, count)."""
    y = ask.op @ ask.probes(count).T
    return np.linalg.qr(np.broadcast_to(y, (*shape, *y.shape[-2:])))[0]


def _off(q: Any, x: Any) -> Any:
    """(I - Q Q^H) x, of rows x (..., k, n)."""
    c = np.matmul(x, q.conj())
    return x - np.matmul(c, np.swapaxes(q, -1, -2))


def _hutchpp(ask: Ask) -> Estimate:
    """Meyer, Musco, Musco, Woodruff (2021): the trace on a sketched range, the rest by probes."""
    count, least = ask.number(40, 2 * _estimate.LEAST), _estimate.LEAST
    sketch, n = count // 2, ask.op.shape[-1]
    if sketch >= n:
        return _by_columns(ask)
    q = _range(ask, sketch, ask.op.shape[:-2])
    aq = ask.op @ q
    known = (q.conj() * aq).sum(axis=(-2, -1))
    size = float(np.abs(q * aq).sum(axis=(-2, -1)).max(initial=0))

    def draw(k: int) -> Any:
        return _off(q, ask.probes(k))

    take, sizes = _forms_of(ask, _lanczos.Products(ask.op), draw)
    mid, _, error = _in_two_stages(ask, max(count - sketch, least), take)
    value = known + mid.mean(axis=-1)
    bias = np.full(np.shape(error), _rounding(ask, size + max(sizes, default=0)))
    used = mid.shape[-1]
    return _judged(
        ask, value, error, bias, samples=sketch + used, matvecs=2 * sketch + used, method="hutch++"
    )


def _by_columns(ask: Ask) -> Estimate:
    """As many products as columns give it exactly."""
    value = ask.op.trace()
    n = ask.op.shape[-1]
    size = np.abs(ask.op.diagonal()).sum(axis=-1)
    return _exactly(ask, value, "exact, no fewer products", n, _rounding(ask, size))


def _xtrace(ask: Ask) -> Estimate:
    """Epperly, Tropp and Webber (2024): each probe is judged by the range of all others."""
    count, op = ask.number(30), ask.op
    n = op.shape[-1]
    if count >= n:
        return _by_columns(ask)
    omega = ask.probes(count).T
    while True:
        values, size = _leave_one_out(op, omega)
        value, se = _estimate.spread(values)
        error = _estimate.quantile(ask.confidence, count - 1) * se
        if not ask.tolerant or np.all(error <= ask.goal(value)):
            break
        more = min(2 * count, ask.most, n)
        if more <= count:
            break
        if more >= n:
            return _by_columns(ask)
        omega = np.concatenate([omega, ask.probes(more - count).T], axis=-1)
        count = more
    bias = np.full(np.shape(error), _rounding(ask, size))
    return _judged(
        ask, value, error, bias, samples=count, matvecs=2 * count, method="xtrace",
        error_kind="heuristic",
    )  # fmt: skip


def _leave_one_out(op: Any, omega: Any) -> Any:
    """XTrace's estimates (..., k), and the size of what they sum."""
    n, k = omega.shape
    y = op @ omega
    y = np.broadcast_to(y, (*op.shape[:-2], n, k))
    q, r = np.linalg.qr(y)
    d = np.abs(np.diagonal(r, 0, -2, -1))
    top = d.max(axis=-1, keepdims=True)
    tiny = np.where(top > 0, 4 * _lanczos.EPS * top, 1.0)
    i = np.arange(k)
    safe = r.copy()
    safe[..., i, i] = np.where(d > tiny, np.diagonal(r, 0, -2, -1), tiny)
    s = np.swapaxes(np.linalg.inv(safe), -1, -2).conj()
    s = s / np.linalg.norm(s, axis=-2, keepdims=True)
    z = op @ q
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


def _bounds_of(op: Any, bounds: Any) -> Any:
    """The user's, or what the structure proves."""
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


def _of_function(ask: Ask, f: Any, bounds: Any, steps: Any, method: str) -> Estimate:
    """tr f(A) by Lanczos quadrature (Ubaru, Chen and Saad, 2017), bracketed by Gauss and Radau."""
    f, op = _quadrature.function_of(f), ask.op
    steps = None if steps is None else count_of("steps", steps, 1)
    if 0 in op.shape:
        return _exactly(ask, np.zeros(op.shape[:-2]), method, 0)
    bounds = _bounds_of(op, bounds)
    seen: list[Any] = []

    def take(count: int, goal: Any) -> Any:
        if goal is None and ask.rtol is None and ask.atol is not None:
            goal = ask.atol
        found = _quadrature.sampled(op, ask.probes, count, f, bounds, steps, goal)
        seen.append(found)
        return (found.low + found.high) / 2, (found.high - found.low) / 2

    mid, half, error = _in_two_stages(ask, ask.number(30), take)
    known = all(s.bracketed for s in seen)
    value, most = mid.mean(axis=-1), max(s.steps for s in seen)
    rounding = _rounding(ask, np.abs(mid).mean(axis=-1))
    bias = half.mean(axis=-1) + rounding
    info = {"reorthogonalised": all(s.kept for s in seen), "function": f.name}
    sides = None
    if not known:
        side = seen[0].sided
        sides = (
            _scalar(value - error - bias) if side > 0 else -math.inf,
            _scalar(value + error + bias) if side < 0 else math.inf,
        )
    return _judged(
        ask, value, error, bias if known else None, sides=sides,
        samples=mid.shape[-1], matvecs=mid.shape[-1] * most, steps=most, bounds=tuple(bounds),
        method=method, info=info,
    )  # fmt: skip


_TRACES = {"hutchinson": _hutchinson, "hutch++": _hutchpp, "xtrace": _xtrace}


def estimate_trace(
    A: Any,
    function: str | Callable[[Any], Any] | None = None,
    *,
    method: str = "hutchinson",
    num_samples: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
    max_samples: int | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    steps: int | None = None,
) -> Estimate:
    """The trace of a square operator, or of a function of a Hermitian one, from random probes.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Only products with it are used. Hermitian where ``function`` is given.
    function : {'log', 'inv', 'sqrt', 'entropy', 'exp'} or callable, optional
        The trace of f(A), by Lanczos quadrature; 'entropy' is x log x. A callable takes an array of
        eigenvalues and gives as many values.
    method : {'hutchinson', 'hutch++', 'xtrace'}
        The mean of x^H A x over random signs x; with the trace on a sketched range taken out; each
        probe judged by the range of the others. The last two pay where few eigenvalues dominate.
        With ``function`` only the first.
    num_samples : int, optional
        Random vectors: 30 when None, 40 for 'hutch++', half of which sketch. At least 10 (20).
    rtol, atol : float, optional
        More probes until error and bias together are at most max(atol, rtol |value|); when it could
        not be met, ``met`` is False and a RuntimeWarning says so.
    rng : numpy.random.Generator or int, optional
    confidence : float
        Of the statistical error.
    max_samples : int, optional
        At most as many for a tolerance: 10,000 when None.
    bounds : (low, high), optional
        Of the spectrum, either may be None: a promise. When not given, what the structure proves
        (`spectral_bounds`).
    steps : int, optional
        Of Lanczos; when None as many as the statistical error is worth, 100 at most.

    Returns
    -------
    Estimate
        Computed in double precision. Of batches arrays.

    Raises
    ------
    LinAlgError
        When A is not square; with ``function`` when it is seen not to be Hermitian, or not to be
        positive where the function needs it.
    ValueError
        For fewer probes than 10, names that do not exist, and bounds that a Ritz value passes.

    Notes
    -----
    Cost: 'hutchinson' one product a probe, 'hutch++' 1.5 and O(n m^2), 'xtrace' two and O(n m^2),
    quadrature ``steps`` a probe and steps^2 n for reorthogonalisation, with steps n numbers of
    memory a probe (up to 100 steps; beyond that none). Hutchinson (1989); Meyer, Musco, Musco,
    Woodruff (2021); Epperly, Tropp, Webber (2024), whose error is a heuristic; Ubaru, Chen, Saad
    (2017) with the brackets of Golub and Meurant (2010).

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
    ask = Ask(A, num_samples, rng, confidence, rtol, atol, max_samples)
    if function is not None:
        return _of_function(ask, function, bounds, steps, "lanczos quadrature")
    if 0 in ask.op.shape:
        return _exactly(ask, np.zeros(ask.op.shape[:-2]), method, 0)
    return _TRACES[method](ask)


def estimate_logdet(
    A: Any,
    *,
    num_samples: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
    max_samples: int | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    steps: int | None = None,
) -> Estimate:
    """The logarithm of the determinant of a positive definite operator, from products alone.

    Stochastic Lanczos quadrature: log det A = tr log A, ``estimate_trace(A, "log")``.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Hermitian positive definite.
    num_samples, rtol, atol, rng, confidence, max_samples, steps
        As in `estimate_trace`.
    bounds : (low, high), optional
        Of the spectrum. A low bound > 0, given or proven from the structure, brackets the bias;
        without one it is unknown, and no tolerance is met.

    Returns
    -------
    Estimate

    Raises
    ------
    LinAlgError
        When A is not square, or seen not to be positive definite or Hermitian.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Toeplitz(0.5 ** np.arange(2000.0)) + pl.Diag(np.linspace(0.1, 1, 2000))
    >>> e = pl.estimate_logdet(A, rng=1)
    >>> low, high = e.interval
    >>> low <= float(pl.logdet(A)) <= high, high - low < 40
    (True, True)
    """
    ask = Ask(A, num_samples, rng, confidence, rtol, atol, max_samples)
    return _of_function(ask, "log", bounds, steps, "slq")


# -- diagonals --


def estimate_diagonal(
    A: Any,
    *,
    method: str = "hutchinson",
    num_samples: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
    max_samples: int | None = None,
) -> Estimate:
    """The main diagonal of a square operator from random probes.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Only products with it are used; with 'hutch++' with its adjoint too.
    method : {'hutchinson', 'hutch++'}
        The mean of x * (A x) over random signs x; with the diagonal on a sketched range taken out.
    num_samples, rtol, atol, rng, confidence, max_samples
        As in `estimate_trace`; a tolerance is of each entry.

    Returns
    -------
    Estimate
        Arrays (..., n); the confidence is that of each entry for itself.

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
    ask = Ask(A, num_samples, rng, confidence, rtol, atol, max_samples)
    op, n = ask.op, ask.op.shape[-1]
    if 0 in op.shape:
        return _exactly(ask, np.zeros(op.shape[:-1]), method, 0)
    known, used = 0.0, 0
    q: Any = None
    if method == "hutch++":
        count = ask.number(40, 2 * _estimate.LEAST)
        sketch = count // 2
        if sketch >= n:
            value = op.diagonal()
            return _exactly(ask, value, "exact, no fewer products", n)
        q = _range(ask, sketch, op.shape[:-2])
        known = (q * (op.H @ q).conj()).sum(axis=-1)
        used, first = 3 * sketch, count - sketch
    else:
        first = ask.number(30)
    mean, error, size, taken = _entries(ask, q, first)
    value = known + mean
    bias = _rounding(ask, (size + np.abs(value)) / math.sqrt(n))
    return _judged(
        ask, value, error, bias, samples=taken + used // 3, matvecs=taken + used, method=method
    )


def _entries(ask: Ask, q: Any, first: int) -> Any:
    """Mean of x * (A x), its error, its size and the number of probes; no samples are kept."""
    op = ask.op
    shape = op.shape[:-1]
    dtype, times = _lanczos.double(op), _lanczos.Products(op)
    total, square = np.zeros(shape, dtype), np.zeros(shape)
    centre: Any = None
    taken = 0

    def run(count: int) -> None:
        nonlocal total, square, taken, centre
        width = max(_lanczos.together(op, min(count, 64), 4), 1)
        for at in range(0, count, width):
            x = ask.probes(min(width, count - at))
            y = times(x)
            s = x * (y if q is None else _off(q, y))
            if centre is None:
                centre = s.mean(axis=-2)
            off = s - centre[..., None, :]
            total = total + off.sum(axis=-2)
            parts = off.real**2, off.imag**2
            square = square + np.maximum(*(p.sum(axis=-2) for p in parts))
            taken += x.shape[-2]

    run(first)
    t = _estimate.quantile(ask.confidence, first - 1)
    spread = np.sqrt(np.maximum(square - np.abs(total) ** 2 / first, 0) / (first - 1))
    if ask.tolerant:
        mean = centre + total / taken
        more = _enough(ask, first, mean, t * spread / math.sqrt(first), 0.0) - first
        if more > 0:
            run(more)
    mean = centre + total / taken
    return mean, t * spread / math.sqrt(taken), np.sqrt(square / taken), taken
