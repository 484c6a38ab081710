"""A factor model of the American economy, fitted by the gradient of its likelihood.

The record is statsmodels' "macrodata": 203 quarters from 1959 on, of which nine series are taken as
growth rates or differences, and standardised. What moves them together is a factor that
nobody sees, the business cycle; as one writes it on paper, each quarter x is a draw from

    N(0, W @ W.T + diag(psi))        W has a column a factor, psi is what each series does by itself

``pl.value_and_grad`` of the log-likelihood, written with ``pl.Diag`` and ``pl.LowRank``, goes to
SciPy's L-BFGS-B: value and gradient are one plan (Woodbury), no p x p matrix is made.

Checked: the likelihood agrees with the dense formula; the fit is as likely as that of statsmodels'
``Factor(method="ml")``, to 1e-8 of it; there the gradient is nothing.

Second part: 5,000 series of a known model (simulated: 3 factors, 400 draws), where the dense
covariance takes 200 MB and its inverse as much again, is fitted by the same lines.

Run ``python examples/factor_model.py``; ``--quick`` takes 500 series in the second part. The exit
status is 1 when a check fails.
"""

import argparse
import sys

import _needs  # noqa: F401
import numpy as np
from _meter import Checks, Meter, size
from scipy.optimize import minimize
from statsmodels.datasets import macrodata
from statsmodels.multivariate.factor import Factor

import pylinop as pl

GROWTH = ("realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "pop")
DIFFERENCES = ("tbilrate", "unemp")
SEED = 1959


def record():
    """The nine series, a row each, standardised."""
    table = macrodata.load_pandas().data
    growth = [np.diff(np.log(table[name].to_numpy())) for name in GROWTH]
    rows = np.array(growth + [np.diff(table[name].to_numpy()) for name in DIFFERENCES])
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / rows.std(axis=1, keepdims=True)


def negative_log_likelihood(theta, x, factors):
    """Of all columns of x, divided by their number: theta holds W and the logarithms of psi."""
    p = x.shape[0]
    W = theta[: p * factors].reshape(p, factors)
    C = pl.Diag(np.exp(theta[p * factors :])) + pl.LowRank(W)
    quad, logdet = pl.inv_quad_logdet(C, x)
    return 0.5 * (np.mean(quad) + logdet + p * np.log(2 * np.pi))


def fit(x, factors, steps=2000):
    """The parameters of highest likelihood from a small random start."""
    p = x.shape[0]
    rng = np.random.default_rng(SEED)
    start = np.concatenate([0.1 * rng.standard_normal(p * factors), np.zeros(p)])
    f = pl.value_and_grad(lambda theta: negative_log_likelihood(theta, x, factors))
    options = {"maxiter": steps, "maxfun": 4 * steps, "ftol": 1e-15, "gtol": 1e-7}
    return minimize(f, start, jac=True, method="L-BFGS-B", options=options)


def dense(theta, x, factors):
    """The same likelihood by the p x p matrix."""
    p, n = x.shape
    W = theta[: p * factors].reshape(p, factors)
    C = W @ W.T + np.diag(np.exp(theta[p * factors :]))
    sign, logdet = np.linalg.slogdet(2 * np.pi * C)
    assert sign > 0
    return 0.5 * (np.sum(x * np.linalg.solve(C, x)) / n + logdet)


def real(checks):
    """The first part."""
    x, factors = record(), 1
    p, n = x.shape
    print(f"{p} series, {n} quarters, {factors} factor")
    with Meter() as fitting:
        found = fit(x, factors)
    print(f"  {found.nfev} likelihoods with gradients: {fitting}")
    checks.at_most(
        "likelihood and dense formula", abs(found.fun - dense(found.x, x, factors)), 1e-12
    )
    checks.at_most("the gradient at the end", np.abs(found.jac).max(), 1e-5)
    theirs = Factor(x.T, n_factor=factors, method="ml").fit(maxiter=10_000)
    best = np.concatenate([theirs.loadings.ravel(), np.log(theirs.uniqueness)])
    checks.at_most(
        "less likely than statsmodels' fit by", found.fun - dense(best, x, factors), 1e-8
    )
    psi = np.exp(found.x[p * factors :])
    print(
        "  explained by the factors: "
        + ", ".join(f"{name} {100 * (1 - v):.0f} %" for name, v in zip(GROWTH + DIFFERENCES, psi))
    )


def many(checks, p):
    """The second part."""
    rng, factors, n = np.random.default_rng(SEED), 3, 400
    W, psi = rng.standard_normal((p, factors)), rng.uniform(0.5, 2, p)
    x = W @ rng.standard_normal((factors, n)) + np.sqrt(psi)[:, None] * rng.standard_normal((p, n))
    print(f"{p} series, {n} draws; the dense covariance would take {size(8 * p * p)}")
    with Meter() as fitting:
        found = fit(x, factors, 60)
    each = fitting.seconds / found.nfev
    print(f"  {found.nfev} likelihoods with gradients: {fitting}, {1e3 * each:.1f} ms each")
    truth = np.concatenate([W.ravel(), np.log(psi)])
    f = pl.value_and_grad(lambda theta: negative_log_likelihood(theta, x, factors))
    checks.at_most("less likely than the truth by", found.fun - f(truth)[0], 0)
    way = rng.standard_normal(truth.size) / np.sqrt(truth.size)
    h = 1e-4
    slope = (f(truth + h * way)[0] - f(truth - h * way)[0]) / (2 * h)
    checks.at_most("gradient and differences", abs(f(truth)[1] @ way - slope), 1e-5)
    by_itself = np.exp(found.x[p * factors :])
    checks.at_most("psi, typical error", np.median(np.abs(by_itself / psi - 1)), 0.1)


def main(argv=None):
    """Both parts; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 series in the second part")
    options = parser.parse_args(argv)
    checks = Checks()
    real(checks)
    many(checks, 500 if options.quick else 5000)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
