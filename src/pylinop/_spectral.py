"""Where a spectrum lies: bounds of it, and its density."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _estimate
from ._errors import LinAlgError
from ._estimate import Estimate
from ._estimates import Ask, count_of
from ._later import Later

if TYPE_CHECKING:
    from ._bounds import SpectralBounds

__all__ = ["spectral_bounds", "spectral_density"]

_bounds, _lanczos, _quadrature = Later("_bounds"), Later("_lanczos"), Later("_quadrature")


def spectral_bounds(
    A: Any,
    *,
    method: str = "auto",
    steps: int = 40,
    rng: np.random.Generator | int | None = None,
) -> SpectralBounds:
    """Bounds of the spectrum of a Hermitian operator, and which of them are proven.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Hermitian. Of batches one interval for all.
    method : {'auto', 'structure', 'lanczos'}
        What the structure proves; Ritz values of a few Lanczos runs, moved out by their residuals,
        which is no proof; the first, and the second where it says nothing.
    steps : int, optional
        Of Lanczos.
    rng : numpy.random.Generator or int, optional
        Where Lanczos starts: 0 when not given.

    Returns
    -------
    SpectralBounds
        Named tuple: ``low``, ``high``, ``certified``, a bool for either. Infinite where nothing is
        known ('structure').

    Raises
    ------
    LinAlgError
        When A is not square, or seen not to be Hermitian.

    Notes
    -----
    Proven: diagonals, spectra in closed form, Gershgorin's discs of arrays, bands and sparse
    matrices, Toeplitz matrices as corners of circulants, X^H M X, and sums, multiples, Kronecker
    products and sums, blocks, inverses and powers of these.

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
    ask = Ask(A, None, 0 if rng is None else rng, 0.95, None, None, None)
    steps = count_of("steps", steps, 1)
    low, high = (None, None) if method == "lanczos" else _bounds.proven(ask.op)
    certified = (low is not None, high is not None)
    if method == "structure" or None not in (low, high):
        found: SpectralBounds = _bounds.SpectralBounds(
            -math.inf if low is None else low, math.inf if high is None else high, certified
        )
        return found
    if 0 in ask.op.shape:
        empty: SpectralBounds = _bounds.SpectralBounds(0.0, 0.0, (True, True))
        return empty
    starts = ask.probes(2)
    steps = min(steps, _lanczos.KEPT)
    run = _lanczos.Run(ask.op, starts, _lanczos.together(ask.op, 2, steps + 6) >= 2)
    run.steps(steps)
    _quadrature.check_hermitian(run, starts)
    w, s = np.linalg.eigh(run.tridiagonal())
    off = run.beta[-1][..., None] * np.abs(s[..., -1, :])
    a, b = float((w - off)[..., 0].min()), float((w + off)[..., -1].max())
    near: SpectralBounds = _bounds.SpectralBounds(
        a if low is None else low, b if high is None else high, certified
    )
    return near


def _ritz(ask: Ask, count: int, steps: int) -> tuple[Any, Any, bool]:
    """Nodes and weights (..., count, steps), the weights of a probe adding up to one."""
    op = ask.op
    keep = _lanczos.together(op, count, steps + 6) > 0 and steps <= _lanczos.KEPT
    width = _lanczos.together(op, count, steps + 6 if keep else 8)
    nodes, weights = [], []
    for at in range(0, count, max(width, 1)):
        starts = ask.probes(min(max(width, 1), count - at))
        run = _lanczos.Run(op, starts, keep)
        run.steps(steps)
        _quadrature.check_hermitian(run, starts)
        w, weight = run.gauss()
        nodes.append(w)
        weights.append(weight / run.size2[..., None])
    return np.concatenate(nodes, -2), np.concatenate(weights, -2), keep


def spectral_density(
    A: Any,
    points: Any = None,
    *,
    num_samples: int = 30,
    steps: int = 60,
    width: float | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The density of the eigenvalues of a Hermitian operator, smoothed, from random probes.

    Each eigenvalue counts as a normal distribution of standard deviation ``width`` and mass 1 / n.

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
    points : array_like, optional
        Where: 200 points over the Ritz values when None.
    num_samples, steps : int, optional
        Random probes, at least 10; steps of Lanczos for each.
    width : float, optional
        A 40th of the spread of the Ritz values when None.
    rng : numpy.random.Generator or int, optional
    confidence : float
        Of each point for itself.

    Returns
    -------
    Estimate
        ``points``, and ``value`` and ``error`` of the smoothed density there. The bias is unknown:
        what steps are too few to resolve within a width is not told apart.

    Raises
    ------
    LinAlgError
        When A is not one square matrix, or seen not to be Hermitian.
    ValueError
        For fewer probes than 10, and a width that is not positive.

    Notes
    -----
    num_samples * steps products (Lin, Saad, Yang, 2016).

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
    ask = Ask(A, num_samples, rng, confidence, None, None, None)
    if ask.op.ndim != 2 or 0 in ask.op.shape:
        raise LinAlgError(f"a density is of one matrix that is not empty, not {ask.op.shape}")
    steps = min(count_of("steps", steps, 1), ask.op.shape[-1])
    w, weight, kept = _ritz(ask, ask.number(30), steps)
    real = weight > 0
    low, high = float(w[real].min()), float(w[real].max())
    if width is None:
        width = max((high - low) / 40, 1e-12 * max(abs(low), abs(high)), 1e-300)
    if not (np.isfinite(width) and width > 0):
        raise ValueError(f"width must be positive, got {width!r}")
    if points is None:
        t = np.linspace(low - 3 * width, high + 3 * width, 200)
    else:
        t = np.atleast_1d(np.asarray(points, np.float64))
    samples = np.empty((*t.shape, w.shape[0]))
    for i, (one, mass) in enumerate(zip(w, weight, strict=True)):
        bell = np.exp(-0.5 * ((t[..., None] - one) / width) ** 2)
        samples[..., i] = bell @ mass / (width * math.sqrt(2 * math.pi))
    mean, se = _estimate.spread(samples)
    count = w.shape[0]
    info = {"width": width, "reorthogonalised": kept}
    return Estimate(
        mean, _estimate.quantile(confidence, count - 1) * se, confidence=confidence, samples=count,
        matvecs=count * steps, steps=steps, method="lanczos density", points=t, info=info,
    )  # fmt: skip
