"""The second part of mauna_loa.py: kernel parameters fitted by the exact log-likelihood, in O(n).

The covariance is a sum of Markov processes, each a ``QuasiSeparable`` over the observed weeks (t in
years, values in ppm, mean taken off), so that one likelihood of 2,225 weeks is one sweep over them:

    trend     Matern 5/2                           two parameters
    medium    Matern 3/2                           two
    season    three harmonics of a year, exp(-t / life) cos(2 pi k t), one life      four
    weather   Matern 1/2                           two
    noise     on the diagonal                      one

A smooth year that changes slowly is what the sum of harmonics stands for; Rasmussen and Williams'
periodic kernel is one of infinitely many. The logarithms of the eleven are found by L-BFGS-B with
gradients by ``pl.value_and_grad``.
"""

import functools
import operator

import numpy as np
from _meter import Meter
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

import pylinop as pl

# name, unit, where the search begins
PARAMETERS = (
    ("trend, deviation", "ppm", 40.0),
    ("trend, length", "years", 40.0),
    ("medium, deviation", "ppm", 0.6),
    ("medium, length", "years", 1.0),
    ("season, first harmonic", "ppm", 2.5),
    ("season, second harmonic", "ppm", 0.8),
    ("season, third harmonic", "ppm", 0.1),
    ("season, life", "years", 90.0),
    ("weather, deviation", "ppm", 0.2),
    ("weather, length", "years", 0.1),
    ("noise, deviation", "ppm", 0.3),
)


def covariance(t, theta):
    """Return the covariance at sorted times, without the noise: a QuasiSeparable."""
    sd_trend, trend, sd_medium, medium, *season, life, sd_weather, weather, _noise = np.exp(theta)
    trend = pl.quasiseparable("matern52", t, variance=sd_trend**2, length_scale=trend)
    medium = pl.quasiseparable("matern32", t, variance=sd_medium**2, length_scale=medium)
    harmonics = [
        pl.quasiseparable("celerite", t, a=sd**2, c=1 / life, d=2 * np.pi * k)
        for k, sd in enumerate(season, 1)
    ]
    weather = pl.quasiseparable("matern12", t, variance=sd_weather**2, length_scale=weather)
    return functools.reduce(operator.add, harmonics) + weather + medium + trend


def log_likelihood(theta, t, y):
    """Return log N(y; 0, K + noise) in one sweep."""
    A = covariance(t, theta) + np.exp(2 * theta[-1]) * pl.Identity(len(t))
    quad, logdet = pl.inv_quad_logdet(A, y)
    return -0.5 * (quad + logdet + len(t) * np.log(2 * np.pi))


def dense_covariance(s, t, theta):
    """Return the same covariance between times s and t as an array, from the formulas."""
    sd_trend, trend, sd_medium, medium, *season, life, sd_weather, weather, _noise = np.exp(theta)
    r = np.abs(s[:, None] - t)
    u, v = np.sqrt(5) * r / trend, np.sqrt(3) * r / medium
    K = sd_trend**2 * (1 + u + u * u / 3) * np.exp(-u) + sd_medium**2 * (1 + v) * np.exp(-v)
    for k, sd in enumerate(season, 1):
        K += sd**2 * np.exp(-r / life) * np.cos(2 * np.pi * k * r)
    return K + sd_weather**2 * np.exp(-r / weather)


def fit(t, y, steps):
    """Return the parameters' logarithms where the likelihood is highest, and the record of it."""
    start = np.log([value for *_, value in PARAMETERS])
    bounds = [(v - np.log(100), v + np.log(100)) for v in start]

    def cost(theta):
        return -log_likelihood(theta, t, y) / len(t)

    options = {"maxiter": steps, "ftol": 1e-10}
    found = minimize(
        pl.value_and_grad(cost), start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return start, found


def predict(theta, times, observed, y, weeks):
    """Return the posterior mean at all of ``times`` and the deviation at ``weeks`` of them."""
    K = covariance(times, theta)
    A = covariance(times[observed], theta) + np.exp(2 * theta[-1]) * pl.Identity(len(y))
    S = pl.Selection(observed, len(times))
    mean = K @ (S.T @ pl.solve(A, y))
    units = np.zeros((len(times), len(weeks)))
    units[weeks, np.arange(len(weeks))] = 1
    B = S @ (K @ units)
    variance = K.diagonal()[weeks] - (B * pl.solve(A, B)).sum(axis=0)
    return mean, np.sqrt(variance)


def fitted_record(real, week, weeks, ahead, steps, checks):
    """Fit the parameters to the real record, fill and forecast with them, both ways."""
    times = week * np.arange(real.n + ahead)
    t, y = times[real.observed], real.y
    with Meter() as fitting:
        start, found = fit(t, y, steps)
    theta = found.x
    before = log_likelihood(start, t, y)
    with Meter() as one:
        value = log_likelihood(theta, t, y)
    with Meter() as lazy:
        mean, sd = predict(theta, times, real.observed, y, weeks)
    with Meter() as dense:
        a = dense_covariance(t, t, theta)
        a[np.diag_indices_from(a)] += np.exp(2 * theta[-1])
        L = cho_factor(a, lower=True, overwrite_a=True)
        weights = cho_solve(L, y)
        logdet = 2 * np.log(np.diag(L[0])).sum()
        value_dense = -0.5 * (y @ weights + logdet + len(y) * np.log(2 * np.pi))
    mean_dense = dense_covariance(times, t, theta) @ weights
    B = dense_covariance(t, times[weeks], theta)
    top = dense_covariance(times[:1], times[:1], theta)[0, 0]
    sd_dense = np.sqrt(top - (B * cho_solve(L, B)).sum(axis=0))

    print(f"Fitted to the {len(y)} weeks: {found.nit} steps, {found.nfev} likelihoods, {fitting}")
    for (name, unit, first), v in zip(PARAMETERS, np.exp(theta), strict=True):
        print(f"  {name:24s} {first:8.4g} -> {v:8.4g} {unit}")
    print(f"  log-likelihood {before:.1f} -> {value:.1f}")
    print(f"  one likelihood       QuasiSeparable {one}    dense {dense}")
    print(f"  mean of {len(times)} weeks, deviation of {len(weeks)}      {lazy}")
    print(f"  deviations from {sd.min():.2f} (in gaps) to {sd.max():.2f} ppm (forecast)")
    checks.at_most("likelihood against dense, relative", abs(value / value_dense - 1), 1e-8)
    checks.at_most("fitted mean against dense, ppm", np.abs(mean - mean_dense).max(), 1e-4)
    checks.at_most("fitted deviation against dense, ppm", np.abs(sd - sd_dense).max(), 1e-4)
    checks.at_most("log-likelihood at the start less the fitted one", before - value, 0)
