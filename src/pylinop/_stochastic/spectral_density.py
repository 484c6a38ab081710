"""Where a spectrum lies: its bounds, and its density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import LinAlgError
from .._base.lazy_import import Later
from . import estimate
from .estimate import Estimate
from .sampling import Ask, count_of

if TYPE_CHECKING:
    from .._structured.spectral_bounds_proven import SpectralBounds

__all__ = ["spectral_bounds", "spectral_density"]

_EVERY = 5  # steps of Lanczos between two looks
_bounds, _lanczos, _quadrature = (
    Later("_structured.spectral_bounds_proven"),
    Later("_stochastic.lanczos_batch"),
    Later("_stochastic.lanczos_quadrature"),
)


def spectral_bounds(
    A: Any,
    *,
    method: str = "auto",
    steps: int = 40,
    rng: np.random.Generator | int | None = None,
    callback: Callable[[SpectralBounds], Any] | None = None,
    progress: bool | Callable[[int, float], Any] | None = None,
) -> SpectralBounds:
    """Bounds of the spectrum of a Hermitian operator, and whether each is proven.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Hermitian. A batch gets one interval for all its elements.
    method : {'auto', 'structure', 'lanczos'}
        'structure' gives what the structure proves; 'lanczos' gives Ritz values of a few Lanczos
        runs, moved out by their residuals, which is no proof; 'auto' gives the first, or the second
        for a bound that the structure does not prove.
    steps : int, optional
        Steps of Lanczos.
    rng : numpy.random.Generator or int, optional
        Draws the start of Lanczos: the seed 0 when not given.
    callback : callable, optional
        Called with the bounds so far, every five steps of Lanczos.
    progress : bool or callable, optional
        True shows a bar (tqdm's, if installed); a callable gets (products, how far the ends moved).

    Returns
    -------
    SpectralBounds
        A named tuple: ``low``, ``high``, and ``certified`` with a bool for each. A bound is
        infinite where nothing is known ('structure').

    Raises
    ------
    LinAlgError
        When A is not square, or turns out not to be Hermitian.

    Notes
    -----
    Bounds are proven for diagonals, spectra in closed form, arrays, bands and sparse matrices (by
    Gershgorin's discs), Toeplitz matrices (as corners of circulants), X^H M X, and sums, multiples,
    Kronecker products and sums, blocks, inverses and powers of these.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> X = pl.Dense(np.ones((3, 5)))
    >>> b = pl.spectral_bounds(X.T @ X + 0.5 * pl.Identity(5))
    >>> round(b.low, 9), round(b.high, 9), b.certified
    (0.5, 15.5, (True, True))
    """
    if method not in ("auto", "structure", "lanczos"):
        raise ValueError(f"method must be 'auto', 'structure' or 'lanczos', got {method!r}")
    start = 0 if rng is None else rng
    with Ask("spectral_bounds", A, rng=start, callback=callback, progress=progress) as ask:
        steps = count_of("steps", steps, 1)
        low, high = (None, None) if method == "lanczos" else _bounds.proven(ask.op)
        if 0 in ask.op.shape:
            low, high = 0.0, 0.0
        if method == "structure" or None not in (low, high):
            found: SpectralBounds = _bounds.SpectralBounds(
                -math.inf if low is None else low,
                math.inf if high is None else high,
                (low is not None, high is not None),
            )
            return found
        return _by_ritz(ask, steps, low, high, callback)


def _by_ritz(ask: Ask, steps: int, low: Any, high: Any, callback: Any) -> SpectralBounds:
    """Ritz values of two runs, moved out by their residuals, where an end is None."""
    steps = min(steps, _lanczos.KEPT, ask.op.shape[-1])
    run = _lanczos.Run(ask.op, ask.probes(2), _lanczos.together(ask.op, 2, steps + 6) >= 2)
    ends = (math.inf, -math.inf)
    while True:
        run.steps(min(steps, len(run.alpha) + _EVERY) if ask.watched else steps)
        _quadrature.check_hermitian(run)
        if not np.isfinite(run.gram).all():
            raise LinAlgError(f"{ask.op!r} has products that are not finite")
        w, s = np.linalg.eigh(run.tridiagonal())
        off = run.beta[-1][..., None] * np.abs(s[..., -1, :])
        a, b = float((w - off)[..., 0].min()), float((w + off)[..., -1].max())
        moved, ends = max(abs(a - ends[0]), abs(b - ends[1])), (a, b)
        near: SpectralBounds = _bounds.SpectralBounds(
            a if low is None else low,
            b if high is None else high,
            (low is not None, high is not None),
        )
        ask.count(2 * len(run.alpha), moved)
        if callback is not None:
            callback(near)
        if len(run.alpha) >= steps:
            return near


def _ritz(ask: Ask, count: int, steps: int, tell: Callable[[Any, Any, int], None]) -> Any:
    """Nodes and weights (count, steps), where the weights of a probe add up to one, and whether
    bases were kept; ``tell`` is called with what is known so far."""
    op = ask.op
    keep = _lanczos.together(op, count, steps + 6) > 0 and steps <= _lanczos.KEPT
    width = max(_lanczos.together(op, count, steps + 6 if keep else 8), 1)
    nodes: list[Any] = []
    weights: list[Any] = []
    for at in range(0, count, width):
        run = _lanczos.Run(op, ask.probes(min(width, count - at)), keep)
        while len(run.alpha) < steps:
            run.steps(min(steps, len(run.alpha) + _EVERY))
            ask.count(at * steps + run.size2.size * len(run.alpha), math.nan)
        _quadrature.check_hermitian(run)
        w, weight = run.gauss()
        nodes.append(w)
        weights.append(weight / run.size2[..., None])
        if ask.watched:
            tell(np.concatenate(nodes), np.concatenate(weights), (at + len(w)) * steps)
    return np.concatenate(nodes), np.concatenate(weights), keep


def spectral_density(
    A: Any,
    points: Any = None,
    *,
    num_samples: int = 30,
    steps: int = 60,
    width: float | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
    callback: Callable[[Estimate], Any] | None = None,
    progress: bool | Callable[[int, float], Any] | None = None,
) -> Estimate:
    """The density of the eigenvalues of a Hermitian operator, smoothed, from random probes.

    Each eigenvalue counts as a normal distribution of standard deviation ``width`` and mass 1 / n.

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
    points : array_like, optional
        Where to evaluate the density: at 200 points over the Ritz values when None.
    num_samples, steps : int, optional
        The number of random probes, at least 10, and of Lanczos steps for each.
    width : float, optional
        The standard deviation; a 40th of the spread of the Ritz values when None.
    rng : numpy.random.Generator or int, optional
    confidence : float
        The confidence at each point by itself.
    callback : callable, optional
        Called with the estimate so far, after each group of probes that fits into memory.
    progress : bool or callable, optional
        True shows a bar (tqdm where it is there); a callable gets (products, error).

    Returns
    -------
    Estimate
        ``points``, and ``value`` and ``error`` of the smoothed density there. The bias is unknown:
        it is not known which details the steps were too few to resolve within a width.

    Raises
    ------
    LinAlgError
        When A is not a single square matrix, or turns out not to be Hermitian.
    ValueError
        For fewer probes than 10, and a width that is not positive.

    Notes
    -----
    It takes num_samples * steps products (Lin, Saad, Yang, 2016).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Tridiagonal(np.ones(999), np.zeros(1000), np.ones(999))
    >>> e = pl.spectral_density(A, [0.0, 1.9], rng=0)
    >>> s, w = e.info["width"], np.linalg.eigvalsh(A.toarray())
    >>> bells = np.exp(-0.5 * ((e.points[:, None] - w) / s) ** 2) / s / np.sqrt(2 * np.pi)
    >>> want = bells.mean(axis=1)
    >>> bool((np.abs(e.value - want) < 2 * e.error).all())
    True
    """
    if width is not None and not (np.isfinite(width) and width > 0):
        raise ValueError(f"width must be positive, got {width!r}")
    with Ask(
        "spectral_density", A, num_samples=num_samples, rng=rng, confidence=confidence,
        callback=callback, progress=progress,
    ) as ask:  # fmt: skip
        return _density(ask, points, steps, width)


def _density(ask: Ask, points: Any, steps: Any, width: float | None) -> Estimate:
    if ask.op.ndim != 2 or 0 in ask.op.shape:
        raise LinAlgError(f"a density is of one matrix that is not empty, not {ask.op.shape}")
    steps = min(count_of("steps", steps, 1), ask.op.shape[-1])
    info: dict[str, Any] = {}

    def made(w: Any, weight: Any, used: int) -> Any:
        """(value, error, the other fields of an `Estimate`)."""
        t, wide = _points(w, weight, points, info.get("width", width))
        info["width"] = wide
        samples = np.empty((*t.shape, w.shape[0]))
        for i, (one, mass) in enumerate(zip(w, weight, strict=True)):
            bell = np.exp(-0.5 * ((t[..., None] - one) / wide) ** 2)
            samples[..., i] = bell @ mass / (wide * math.sqrt(2 * math.pi))
        mean, se = estimate.spread(samples)
        count = w.shape[0]
        error = np.full(se.shape, np.inf)
        if count > 1:
            error = estimate.quantile(ask.confidence, count - 1) * se
        more = {"samples": count, "steps": steps, "method": "lanczos density", "points": t}
        return mean, error, more | {"matvecs": used, "info": dict(info)}

    def tell(w: Any, weight: Any, used: int) -> None:
        mean, error, more = made(w, weight, used)
        ask.tell(more.pop("matvecs"), mean, error, None, **more)

    w, weight, kept = _ritz(ask, ask.number(30), steps, tell)
    info["reorthogonalised"] = kept
    mean, error, more = made(w, weight, w.shape[0] * steps)
    return Estimate(mean, error, confidence=ask.confidence, **more)


def _points(w: Any, weight: Any, points: Any, width: float | None) -> tuple[Any, float]:
    """Where the density is asked for, and how wide an eigenvalue is."""
    real = weight > 0
    low, high = float(w[real].min()), float(w[real].max())
    if width is None:
        size = max(abs(low), abs(high))
        width = max((high - low) / 40, 1e-12 * size) if size > 0 else 1.0
    if points is None:
        return np.linspace(low - 3 * width, high + 3 * width, 200), width
    return np.atleast_1d(np.asarray(points, np.float64)), width
