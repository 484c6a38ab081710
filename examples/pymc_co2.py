"""A PyMC model of the weekly CO2 record: what trend and seasons leave is a Gaussian process on a
regular grid plus noise, its covariance Toeplitz. Nothing in the model is pylinop's: after the
import its log-density and gradient run by that structure, in nutpie's threads.

Checks that the density is the one without pylinop, and that the posterior is as narrow as 2,000
weeks make it.

    python examples/pymc_co2.py [--quick]
"""

import argparse
import sys
import time

import _needs  # noqa: F401
import numpy as np
import nutpie
import pymc as pm
import pytensor.tensor as pt
import statsmodels.api as sm

import pylinop.pytensor as pp


def residuals(count):
    """The last `count` weeks without trend and seasons, by least squares; gaps filled linearly."""
    record = sm.datasets.co2.load_pandas().data["co2"].interpolate().to_numpy()[-count:]
    t = np.arange(count) / 52.1775
    waves = [f(2 * np.pi * k * t) for k in (1, 2, 3) for f in (np.sin, np.cos)]
    X = np.column_stack([np.ones(count), t, t**2, *waves])
    return record - X @ np.linalg.lstsq(X, record, rcond=None)[0]


def model_of(y):
    """As anybody writes it in PyMC."""
    apart = np.abs(np.subtract.outer(np.arange(len(y)), np.arange(len(y))))
    with pm.Model() as model:
        length = pm.LogNormal("length", 3.0, 1.0)  # weeks
        scale = pm.HalfNormal("scale", 1.0)
        noise = pm.HalfNormal("noise", 1.0)
        K = scale**2 * pt.exp(-apart / length) + noise**2 * pt.eye(len(y))
        pm.MvNormal("y", np.zeros(len(y)), cov=K, observed=y)
    return model


def seconds(f, x, times=5):
    """The least of some runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        f(x)
        taken.append(time.perf_counter() - start)
    return min(taken)


def density(model):
    """Value and gradient, and a point for them."""
    f = model.logp_dlogp_function(ravel_inputs=True)
    f.set_extra_values({})
    return f, np.array([3.0, -0.7, -1.2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="400 weeks, few draws")
    quick = parser.parse_args().quick
    y = residuals(400 if quick else 2000)
    model = model_of(y)
    print(pp.explain(model))

    on, x = density(model)
    with pp.off():
        off, _ = density(model)
    value, gradient = on(x)
    due, slope = off(x)
    print(
        f"log-density {value:.6f}, {abs(value - due) / abs(due):.1e} from the one without pylinop"
    )
    a, b = seconds(on, x), seconds(off, x)
    print(f"value and gradient {1e3 * a:.1f} ms, without {1e3 * b:.1f} ms")

    start = time.perf_counter()
    draws = 50 if quick else 300
    found = nutpie.sample(
        nutpie.compile_pymc_model(model),
        draws=draws,
        tune=draws,
        chains=2,
        seed=1,
        progress_bar=False,
    ).posterior
    print(f"{2 * draws} draws and as many to tune: {time.perf_counter() - start:.1f} s")
    for name in ("length", "scale", "noise"):
        v = found[name].to_numpy()
        print(f"{name:7} {v.mean():.3f} +- {v.std():.3f}")

    apart = abs(found["scale"].mean(axis=1).diff(found["scale"].dims[0])).max()
    checks = {
        "fires": any(r.structure and not r.reason for r in pp.explain(model)),
        "density": abs(value - due) < 1e-9 * abs(due),
        "gradient": np.allclose(gradient, slope, rtol=1e-6),
        "chains agree": float(apart) < 4 * float(found["scale"].std()),
        "noise is found": 0 < float(found["noise"].mean()) < float(y.std()),
    }
    for name, ok in checks.items():
        print("ok  " if ok else "FAIL", name)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
