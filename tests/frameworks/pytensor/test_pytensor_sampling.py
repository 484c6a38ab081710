"""Five models of PyMC from data to draws: the same draws with and without pylinop from one seed, in
threads and in processes."""

import multiprocessing

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor
import pytensor.tensor as pt
from frameworks.pytensor.pytensor_graphs import distances
from frameworks.pytensor.test_pytensor_rewrites import small_sizes  # noqa: F401

import pylinop.pytensor as pp
from pylinop.pytensor import ops

R = np.random.default_rng(7)


def factor_model():
    W = pm.Normal("W", 0, 1, shape=(12, 2))
    psi = pm.HalfNormal("psi", 1, shape=12)
    pm.MvNormal("y", np.zeros(12), cov=W @ W.T + pt.diag(psi), observed=R.standard_normal((9, 12)))


def process_on_a_grid():
    length, s, a = (pm.HalfNormal(name, 1) for name in ("length", "s", "a"))
    gp = pm.gp.Marginal(cov_func=a**2 * pm.gp.cov.Matern52(1, length))
    X = np.linspace(0.0, 4.0, 33)[:, None]
    gp.marginal_likelihood("y", X, np.sin(3 * X[:, 0]) + R.standard_normal(33) / 9, sigma=s)


def kron():
    a, b, s = (pm.HalfNormal(name, 1) for name in "abs")
    K = pt.linalg.kron(pt.exp(-a * distances(5)), pt.exp(-b * distances(7))) + s**2 * pt.eye(35)
    pm.MvNormal("y", np.zeros(35), cov=K, observed=R.standard_normal(35))


def autoregression_and_noise():
    rho, scale, s = pm.Uniform("rho", 0.1, 0.9), pm.HalfNormal("scale", 1), pm.HalfNormal("s", 1)
    K = scale**2 * rho ** distances(40) + s**2 * pt.eye(40)
    pm.MvNormal("y", np.zeros(40), cov=K, observed=np.cumsum(R.standard_normal(40)) / 4)


def random_field():
    """On a line, by its precision."""
    rho, t = pm.Uniform("rho", 0.1, 0.9), pm.HalfNormal("t", 1)
    W = (distances(40) == 1).astype(float)
    pm.MvNormal("y", np.zeros(40), tau=t * (np.diag(W.sum(1)) - rho * W), observed=R.random(40))


MODELS = {
    factor_model: "sum(root, diagonal)",
    process_on_a_grid: "sum(toeplitz, identity, identity)",
    kron: "sum(kron(symmetric, symmetric), identity)",
    autoregression_and_noise: "sum(toeplitz, identity)",
    random_field: "sum(diagonal, off, off)",
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__),
]


def model_of(build):
    global R
    R = np.random.default_rng(7)
    with pm.Model() as model:
        build()
    return model


def same(on, off):
    assert set(on.data_vars) == set(off.data_vars)
    for name in on.data_vars:
        assert np.isfinite(on[name]).all() and on[name].std() > 0
        np.testing.assert_allclose(on[name], off[name], rtol=1e-6, atol=1e-9)


def test_nutpie_in_four_threads(build):
    nutpie = pytest.importorskip("nutpie")

    def drawn():
        compiled = nutpie.compile_pymc_model(model_of(build), backend="numba")
        settings = {"draws": 5, "tune": 5, "chains": 4, "cores": 4, "seed": 1}
        return nutpie.sample(compiled, progress_bar=False, **settings).posterior

    [report] = pp.explain(model_of(build))
    assert report.structure == MODELS[build]
    on = drawn()
    with pp.off():
        off = drawn()
    same(on, off)


def sampled(build, **more):
    """By PyMC's own sampler, in PyTensor's graphs without compiled code: quick to start."""
    with model_of(build), pytensor.config.change_flags(mode="FAST_COMPILE", linker="py", cxx=""):
        found = pm.sample(
            draws=4,
            tune=4,
            chains=2,
            random_seed=3,
            nuts_sampler="pymc",
            progressbar=False,
            compute_convergence_checks=False,
            **more,
        )
    return found.posterior


def test_sample_in_processes(build, monkeypatch):
    """One after the other, in two processes that are forked, in two that start anew; and without
    pylinop."""
    computed, run = [], ops.results
    monkeypatch.setattr(ops, "results", lambda *args: computed.append(1) or run(*args))
    on = sampled(build, cores=1)
    assert len(computed) > 20
    with pp.off():
        same(on, sampled(build, cores=1))
    for how in ("fork", "spawn"):
        if how in multiprocessing.get_all_start_methods():
            same(on, sampled(build, cores=2, mp_ctx=how))
