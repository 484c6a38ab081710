"""PyMC's models: what fires unasked, the same log-density and gradient, the same draws."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt
from frameworks.pytensor.pytensor_graphs import distances
from frameworks.pytensor.test_pytensor_rewrites import small_sizes, used  # noqa: F401
from pymc.blocking import DictToArrayBijection

import pylinop.pytensor as pp

R = np.random.default_rng(0)


def factors():
    W = pm.Normal("W", 0, 1, shape=(20, 2))
    psi = pm.HalfNormal("psi", 1, shape=20)
    pm.MvNormal("y", np.zeros(20), cov=W @ W.T + pt.diag(psi), observed=R.standard_normal((7, 20)))


def grid():
    length, s = pm.HalfNormal("length", 1), pm.HalfNormal("s", 1)
    K = pt.exp(-distances(25) / length) + s**2 * pt.eye(25)
    pm.MvNormal("y", np.zeros(25), cov=K, observed=R.standard_normal(25))


def kron():
    a, b, s = (pm.HalfNormal(name, 1) for name in "abs")
    K = pt.linalg.kron(pt.exp(-a * distances(4)), pt.exp(-b * distances(6))) + s**2 * pt.eye(24)
    pm.MvNormal("y", np.zeros(24), cov=K, observed=R.standard_normal(24))


def marginal():
    length, s = pm.HalfNormal("length", 1), pm.HalfNormal("s", 1)
    gp = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, length))
    X = np.sort(R.random(15))[:, None]
    gp.marginal_likelihood("y", X, np.sin(9 * X[:, 0]), sigma=s)


def regular():
    """A Gaussian process on a grid, nothing said of it."""
    length, s, a = (pm.HalfNormal(name, 1) for name in ("length", "s", "a"))
    gp = pm.gp.Marginal(cov_func=a**2 * pm.gp.cov.Matern52(1, length))
    X = np.linspace(0.0, 4.0, 49)[:, None]
    gp.marginal_likelihood("y", X, np.sin(9 * X[:, 0]), sigma=s)


def symmetry():
    s, c = pm.HalfNormal("s", 1, shape=18), pm.HalfNormal("c", 1)
    pm.MvNormal("y", np.zeros(18), cov=pt.diag(s) + c, observed=R.standard_normal(18))


MODELS = {
    factors: "sum(root, diagonal)",
    grid: "sum(toeplitz, identity)",
    kron: "sum(kron(symmetric, symmetric), identity)",
    marginal: "dense",
    regular: "sum(toeplitz, identity, identity)",
    symmetry: "sum(diagonal, constant)",
}


def density(model):
    found = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    found.set_extra_values({})
    return found


@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_models_fire_unasked(build):
    with pm.Model() as model:
        build()
    [report] = pp.explain(model)
    assert report.structure == MODELS[build] and set(report.asked) == {"logdet", "squares"}
    on = density(model)
    with pp.off():
        off = density(model)
    if build is factors:  # made anew, whatever was compiled and thrown away since
        assert [r[:5] for r in pp.explain(model)] == [report[:5]]
    start = DictToArrayBijection.map(model.initial_point())
    for scale in (0.0, 0.5, -0.7):
        x = start.data + scale * np.random.default_rng(1).standard_normal(start.data.shape)
        a, b = on(x), off(x)
        np.testing.assert_allclose(a[0], b[0], rtol=1e-10)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-7, atol=1e-8 * np.abs(b[1]).max())


@pytest.mark.slow
@pytest.mark.parametrize("build", [kron, grid, symmetry])
def test_nutpie_draws_the_same(build):
    nutpie = pytest.importorskip("nutpie")
    with pm.Model() as model:
        build()

    def drawn():
        compiled = nutpie.compile_pymc_model(model, backend="numba")
        found = nutpie.sample(
            compiled, draws=10, tune=20, chains=2, cores=2, seed=1, progress_bar=False
        )
        return found.posterior

    on = drawn()
    with pp.off():
        off = drawn()
    for name in on.data_vars:
        assert np.isfinite(on[name]).all()
        np.testing.assert_allclose(on[name][:, :3], off[name][:, :3], rtol=1e-5, atol=1e-8)
