"""Gaussian process regression on the weekly Mauna Loa CO2 record, without a dense matrix.

The record (2,284 weeks from March 1958, 59 missing; it ships with statsmodels) lies on a regular
weekly grid, so a stationary covariance on the grid, run on ten years past the end, is a Toeplitz
matrix, and the covariance of the weeks that were observed is, as one writes it on paper,

    A = S @ T @ S.T + noise * I        S selects the observed weeks out of the grid

SciPy's own ``cg`` solves with A. That fills the missing weeks, forecasts ten years, and (one solve
a week) gives the standard deviation at a few dozen weeks. The same is done with dense matrices and
a Cholesky factor, and the two must agree.

The covariance is the sum in Rasmussen and Williams, "Gaussian Processes for Machine Learning"
(2006), section 5.4.3, with the parameters given there (t in years, values in ppm, mean taken off):

    trend       66^2   exp(-t^2 / (2 67^2))
    season      2.4^2  exp(-t^2 / (2 90^2) - 2 sin^2(pi t) / 1.3^2)
    medium      0.66^2 (1 + t^2 / (2 0.78 1.2^2))^-0.78
    weather     0.18^2 exp(-t^2 / (2 (1.6/12)^2))
    noise       0.33^2 on the diagonal

One value is scaled: their noise, 0.19 ppm, is that of monthly means. Single weeks scatter more
(0.19 sqrt(4.35) = 0.40 if they were independent), and 0.33 is, to two digits, where the likelihood
of the weekly record is highest with all else left alone. With 0.19 cg needs 550 steps for the mean,
with 0.33 it needs 330.

Second part: the parameters of a like covariance, of Markov processes, are fitted to the record by
the exact log-likelihood, which is O(n) then (``_fit.py``, with SciPy's L-BFGS-B).

Third part: a record 100 times as long (228,400 weeks; the dense matrix would take 396 GB),
simulated by circulant embedding (Dietrich and Newsam 1997, SIAM J. Sci. Comput. 18) with the gaps
of the real record repeated. With the covariance above cg would need thousands of steps at this
length, and pylinop has no preconditioner yet; so the model is of short correlation:

    season      2.4^2  exp(-t^2 / (2 1^2) - 2 sin^2(pi t) / 1.3^2)      changes within a year
    weather     0.66^2 (1 + u) exp(-u), u = sqrt(3) t / 0.5             Matern 3/2, half a year
    noise       0.33^2

Here the truth is known, so the filled weeks can be held against it.

Run ``python examples/mauna_loa.py``; ``--quick`` takes a small part of everything. The exit status
is 1 when a check fails.
"""

import argparse
import sys
from typing import NamedTuple

import _needs  # noqa: F401
import numpy as np
from _fit import fitted_record
from _meter import Checks, Meter, size
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import cho_solve, solve_triangular
from scipy.sparse.linalg import cg

import pylinop as pl

WEEK = 7 / 365.25  # years
NOISE = 0.33**2  # ppm^2
RTOL = 1e-8  # of the true residual of every solve
MAX_STEPS = 1000
SEED = 1958


class Sizes(NamedTuple):
    """How much of everything to do."""

    weeks: int = 2284  # of the real record
    ahead: int = 522  # weeks to forecast: ten years
    sd_gaps: int = 12  # missing weeks that get a standard deviation
    sd_ahead: int = 24  # forecast weeks that get one
    fit_steps: int = 60  # of the search for parameters, at most
    copies: int = 100  # length of the simulated record, in real records
    window: int = 1000  # weeks on either side for the dense check of the simulated record


QUICK = Sizes(weeks=600, ahead=104, sd_gaps=3, sd_ahead=5, fit_steps=5, copies=20, window=700)


class Record(NamedTuple):
    """A series on a regular weekly grid of n weeks, of which some were observed."""

    n: int
    observed: np.ndarray  # week numbers, rising
    missing: np.ndarray  # the other weeks of the record
    y: np.ndarray  # observed values less their mean, ppm
    mean: float
    start: float  # decimal year of week 0


class Solution(NamedTuple):
    """What ``solve`` found: A x = b to a relative ``residual``, recomputed."""

    x: np.ndarray
    left: np.ndarray  # b - A @ x
    steps: int
    residual: float


# ------------------------------------------------------------------------------------------- models


def textbook_kernels(n):
    """Return the four covariances of the module's docstring at lags of 0 ... n-1 weeks."""
    t = WEEK * np.arange(n)
    season = -(t**2) / (2 * 90**2) - 2 * np.sin(np.pi * t) ** 2 / 1.3**2
    return {
        "trend": 66**2 * np.exp(-(t**2) / (2 * 67**2)),
        "season": 2.4**2 * np.exp(season),
        "medium": 0.66**2 * (1 + t**2 / (2 * 0.78 * 1.2**2)) ** -0.78,
        "weather": 0.18**2 * np.exp(-(t**2) / (2 * (1.6 / 12) ** 2)),
    }


def short_kernel(lags):
    """Return the covariance of short correlation at lags in weeks."""
    t = WEEK * np.asarray(lags)
    u = np.sqrt(3) * t / 0.5
    season = 2.4**2 * np.exp(-(t**2) / (2 * 1.0**2) - 2 * np.sin(np.pi * t) ** 2 / 1.3**2)
    return season + 0.66**2 * (1 + u) * np.exp(-u)


def load_record(weeks):
    """Return the first ``weeks`` weeks of the Mauna Loa record."""
    from statsmodels.datasets import co2

    data = co2.load_pandas().data["co2"].iloc[:weeks]
    values = data.to_numpy()
    seen = np.isfinite(values)
    mean = values[seen].mean()
    start = data.index[0].year + (data.index[0].day_of_year - 1) / 365.25
    observed, missing = np.flatnonzero(seen), np.flatnonzero(~seen)
    return Record(len(values), observed, missing, values[seen] - mean, mean, start)


def simulate(real, copies, rng):
    """Return a record with the gaps of ``real`` repeated, and the truth it was drawn from.

    Circulant embedding: the covariance on a circle of m >= 2n weeks has the eigenvalues rfft(c), so
    irfft(sqrt(eigenvalues) * rfft(white noise)) has exactly that covariance.
    """
    n = copies * real.n
    m = next_fast_len(2 * n, real=True)
    circle = np.arange(m)
    spectrum = rfft(short_kernel(np.minimum(circle, m - circle))).real
    if spectrum.min() < -1e-12 * spectrum.max():
        raise ValueError(f"the embedding is indefinite: eigenvalue {spectrum.min():.2e}")
    white = rfft(rng.standard_normal(m))
    truth = irfft(np.sqrt(spectrum.clip(0)) * white, m)[:n]
    shift = real.n * np.arange(copies)[:, None]
    observed, missing = (shift + real.observed).ravel(), (shift + real.missing).ravel()
    y = truth[observed] + np.sqrt(NOISE) * rng.standard_normal(len(observed))
    return Record(n, observed, missing, y, 0.0, 0.0), truth


# ---------------------------------------------------------------------------- with linear operators


def solve(A, b):
    """Solve A x = b by SciPy's cg to RTOL of the true residual, within MAX_STEPS steps.

    cg stops on a residual that it updates from step to step and that may have drifted; so the true
    one is computed after it, and cg is started again from where it stands when that is not there.
    """
    steps = 0

    def count(_):
        nonlocal steps
        steps += 1

    x, scale = None, np.linalg.norm(b)
    for _attempt in range(3):
        x, _ = cg(A, b, x0=x, rtol=RTOL, maxiter=MAX_STEPS - steps, callback=count)
        left = b - A @ x
        residual = np.linalg.norm(left) / scale
        if residual <= RTOL or steps >= MAX_STEPS:
            break
    return Solution(x, left, steps, residual)


def standard_deviations(A, kernel, observed, weeks):
    """Return the posterior standard deviation at each of ``weeks`` and the worst solve's figures.

    The variance is k(0) - b' A^-1 b, b the covariances of the week with the observed ones. For any
    x, b' A^-1 b = b'x + x'(b - Ax) + e'Ae with e the error of x: leaving out the last term errs by
    the error squared, and never makes the deviation too small.
    """
    variances, steps, residual = [], 0, 0.0
    for week in weeks:
        b = kernel[np.abs(observed - week)]
        s = solve(A, b)
        variances.append(kernel[0] - b @ s.x - s.left @ s.x)
        steps, residual = max(steps, s.steps), max(residual, s.residual)
    return np.sqrt(variances), steps, residual


def far_apart_deviations(A, T, S, weeks):
    """Return the posterior standard deviations at weeks too far apart to matter to each other.

    Their covariances with the data hardly overlap, so one solve with the sum of the right-hand
    sides does for all of them.
    """
    ones = np.zeros(T.shape[0])
    ones[weeks] = 1
    s = solve(A, S @ (T @ ones))
    explained = T @ (S.T @ s.x)
    return np.sqrt(T.diagonal()[weeks] - explained[weeks]), s


# ------------------------------------------------------------------------------ with dense matrices


def dense_factor(kernel, observed):
    """Return the Cholesky factor of the dense covariance of the observed weeks."""
    K = kernel[np.abs(observed[:, None] - observed)]
    K[np.diag_indices_from(K)] += NOISE
    return np.linalg.cholesky(K)


def dense_mean(L, kernel, observed, y, weeks):
    """Return the posterior mean at ``weeks``."""
    weights = cho_solve((L, True), y)
    return kernel[np.abs(weeks[:, None] - observed)] @ weights


def dense_deviations(L, kernel, observed, weeks):
    """Return the posterior standard deviation at ``weeks``."""
    B = kernel[np.abs(observed[:, None] - weeks)]
    return np.sqrt(kernel[0] - (solve_triangular(L, B, lower=True) ** 2).sum(axis=0))


# ------------------------------------------------------------------------ the first and third parts


def real_record(real, sizes, checks):
    """Fill and forecast the real record both ways; return the mean and the deviations."""
    grid = real.n + sizes.ahead
    weeks = np.concatenate(
        [spread(real.missing, sizes.sd_gaps), spread(np.arange(real.n, grid), sizes.sd_ahead)]
    )
    parts = textbook_kernels(grid)
    kernel = sum(parts.values())

    with Meter() as lazy:
        S = pl.Selection(real.observed, grid)
        T = pl.Toeplitz(parts["trend"])
        for name in ("season", "medium", "weather"):
            T = T + pl.Toeplitz(parts[name])
        A = S @ T @ S.T + NOISE * pl.Identity(len(real.observed))
        s = solve(A, real.y)
        mean = T @ (S.T @ s.x)
    with Meter() as lazy_sd:
        sd, worst_steps, worst = standard_deviations(A, kernel, real.observed, weeks)
    with Meter() as dense:
        L = dense_factor(kernel, real.observed)
        mean_dense = dense_mean(L, kernel, real.observed, real.y, np.arange(grid))
    with Meter() as dense_sd:
        sd_dense = dense_deviations(L, kernel, real.observed, weeks)

    print(f"Mauna Loa: {real.n} weeks, {len(real.missing)} missing, {sizes.ahead} ahead")
    print(f"  A = {A!r}")
    print(
        f"  cg: {s.steps} steps, true residual {s.residual:.1e}; "
        f"for a deviation at most {worst_steps} steps, {worst:.1e}"
    )
    print(f"  deviations from {sd.min():.2f} (in gaps) to {sd.max():.2f} ppm (forecast)")
    print(f"  mean, all {grid} weeks   operators {lazy}    dense {dense}")
    print(f"  deviation, {len(weeks):3d} weeks    operators {lazy_sd}    dense {dense_sd}")
    checks.at_most("true residual of the mean's solve", s.residual, RTOL)
    checks.at_most("true residual of the deviations' solves", worst, RTOL)
    checks.at_most("mean against dense, ppm", np.abs(mean - mean_dense).max(), 1e-4)
    checks.at_most("deviation against dense, ppm", np.abs(sd - sd_dense).max(), 1e-4)
    return mean, weeks, sd


def long_record(real, sizes, checks):
    """Fill the missing weeks of the simulated long record and hold them against the truth."""
    with Meter() as making:
        record, truth = simulate(real, sizes.copies, np.random.default_rng(SEED))
    kernel, n_obs = short_kernel(np.arange(record.n)), len(record.observed)
    print(
        f"Simulated: {record.n} weeks, {len(record.missing)} missing (seed {SEED}); "
        f"dense: {size(8 * n_obs**2)}"
    )
    print(
        "  season 2.4 ppm, period 1 year, 1.3, changes within 1 year; "
        f"weather 0.66 ppm, Matern 3/2, 0.5 year; noise {NOISE**0.5:.2f} ppm"
    )

    with Meter() as solving:
        S, T = pl.Selection(record.observed, record.n), pl.Toeplitz(kernel)
        A = S @ T @ S.T + NOISE * pl.Identity(n_obs)
        s = solve(A, record.y)
        mean = T @ (S.T @ s.x)
    print(f"  A = {A!r}, {size(A.nbytes)}")
    print(f"  simulating               {making}\n  cg, {s.steps:4d} steps           {solving}")
    checks.at_most("steps of cg", s.steps, MAX_STEPS)
    checks.at_most("true residual", s.residual, RTOL)
    held_out(record, truth, mean, (A, T, S), real, checks)
    against_window(record, kernel, mean, sizes.window, checks)


def held_out(record, truth, mean, operators, real, checks):
    """Compare filled weeks with the truth: error over stated deviation, and the 2-sd band."""
    scores = []
    for name, week in probe_weeks(real).items():
        weeks = np.arange(week, record.n, real.n)
        with Meter() as m:
            sd, s = far_apart_deviations(*operators, weeks)
        error = mean[weeks] - truth[weeks]
        scores.append(error / sd)
        print(
            f"  {name}, {len(weeks)} of them: rms error {np.sqrt(np.mean(error**2)):.3f}, "
            f"stated deviation {np.median(sd):.3f} ppm ({s.steps} steps, {m.seconds:.1f} s)"
        )
        checks.at_most("true residual", s.residual, RTOL)
    z = np.concatenate(scores)
    error = mean[record.missing] - truth[record.missing]
    print(
        f"  all {len(record.missing)} missing weeks: rms error {np.sqrt(np.mean(error**2)):.3f} ppm"
    )
    # z is standard normal if the deviations are right; the limits are four standard errors
    wide = 4 * np.sqrt(2 / len(z))
    checks.between("mean of (error / deviation)^2", np.mean(z**2), max(0, 1 - wide), 1 + wide)
    low = 0.9545 - 4 * np.sqrt(0.9545 * 0.0455 / len(z))
    checks.between("share within 2 deviations", np.mean(np.abs(z) <= 2), low, 1)


def against_window(record, kernel, mean, half, checks):
    """Compare the mean about the middle with a dense solve that sees only a window around it.

    What lies ``half`` weeks away has lost its influence: correlation is short.
    """
    middle = record.n // 2
    inside = np.abs(record.observed - middle) <= half
    observed, y = record.observed[inside], record.y[inside]
    weeks = np.arange(middle - 26, middle + 27)
    L = dense_factor(kernel, observed)
    far = np.abs(mean[weeks] - dense_mean(L, kernel, observed, y, weeks)).max()
    checks.at_most(f"mean of the middle year against {len(y)} weeks dense, ppm", far, 1e-4)


def spread(values, count):
    """Return ``count`` of the values, evenly spread from first to last."""
    return values[np.unique(np.linspace(0, len(values) - 1, count).round().astype(int))]


def probe_weeks(real):
    """Return two missing weeks: the middle of the longest gap, and the last one alone."""
    gaps = np.split(real.missing, np.flatnonzero(np.diff(real.missing) > 1) + 1)
    longest = max(gaps, key=len)
    alone = [gap[0] for gap in gaps if len(gap) == 1]
    return {
        f"middle of the {len(longest)}-week gap": longest[len(longest) // 2],
        "a week missing alone": alone[-1],
    }


# ------------------------------------------------------------------------------------------ picture


def picture(real, mean, weeks, sd, path):
    """Save the record with its filled gaps (and a closer look at them) and the forecast."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
    }
    with plt.rc_context(style):
        fig, axes = plt.subplot_mosaic("AA;BC", figsize=(11, 7.5), layout="constrained")
        for ax in axes.values():
            draw(ax, real, mean, weeks, sd)
            ax.set_ylabel("CO$_2$, ppm")
        axes["A"].set_title(
            "Weekly CO$_2$ at Mauna Loa: Gaussian process with a sum of four "
            "kernels, solved by cg on S T S$^T$ + noise I",
            loc="left",
        )
        axes["A"].legend(loc="upper left", markerscale=3)
        last = real.start + WEEK * real.n
        zoom(axes["B"], real.start, real.start + 9, "The gaps of the first years, filled")
        zoom(axes["C"], last - 3, real.start + WEEK * len(mean), "The forecast")
        fig.savefig(path, dpi=150)
        plt.close(fig)
    print(f"picture saved as {path}")


def draw(ax, real, mean, weeks, sd):
    """Draw observations, filled weeks, forecast, and the bands of two standard deviations.

    The bands are those of a weekly measurement (noise included), drawn between the weeks computed.
    """
    years = real.start + WEEK * np.arange(len(mean))
    ppm, ahead, filled = mean + real.mean, slice(real.n - 1, None), weeks[weeks < real.n]
    reach = 2 * np.sqrt(sd**2 + NOISE)
    band = np.interp(np.arange(real.n, len(mean)), weeks[weeks >= real.n], reach[weeks >= real.n])
    low, high = ppm[real.n :] - band, ppm[real.n :] + band
    ax.fill_between(years[real.n :], low, high, color="C1", alpha=0.3, lw=0, label="2 deviations")
    ax.plot(years[: real.n], ppm[: real.n], color="0.5", lw=0.8, zorder=1)
    ax.plot(years[ahead], ppm[ahead], color="C1", lw=1.2, label="forecast")
    ax.plot(years[real.observed], real.y + real.mean, ".", color="C0", ms=2, label="observed")
    ax.plot(years[real.missing], ppm[real.missing], ".", color="C3", ms=4, label="filled")
    bars = reach[weeks < real.n]
    ax.errorbar(years[filled], ppm[filled], bars, fmt="none", ecolor="C3", elinewidth=0.8)


def zoom(ax, first, last, title):
    """Show the years from first to last only, the ordinate fitted to the lines drawn there."""
    inside = [
        y for line in ax.lines for x, y in zip(*line.get_data(), strict=True) if first <= x <= last
    ]
    ax.set_xlim(first, last)
    ax.set_ylim(min(inside) - 3, max(inside) + 4)
    ax.set_title(title, loc="left")


def main(argv=None):
    """Run all parts; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--out", default="mauna_loa.png", help="where to save the picture")
    options = parser.parse_args(argv)
    sizes, checks = QUICK if options.quick else Sizes(), Checks()
    real = load_record(sizes.weeks)
    mean, weeks, sd = real_record(real, sizes, checks)
    picture(real, mean, weeks, sd, options.out)
    fitted_record(real, WEEK, weeks, sizes.ahead, sizes.fit_steps, checks)
    long_record(real, sizes, checks)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
