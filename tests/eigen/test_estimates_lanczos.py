"""Below the estimates: Gauss rules in C, and bases that stay as orthogonal as they have to."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._stochastic import lanczos_batch

G = np.random.default_rng(0)
N = 200
SPECTRA = {
    "even": np.linspace(0.1, 1, N),
    "outliers": np.r_[np.linspace(0.1, 1, N - 4), 10, 100, 1e3, 1e5],
    "graded": np.logspace(-10, 0, N),
    "both signs": np.linspace(-1, 1, N),
    "two": np.repeat([1.0, 2.0], N // 2),
    "cluster": 1 + 1e-10 * G.random(N),
    "low rank": np.r_[np.ones(3), np.zeros(N - 3)],
}


def gauss(d, e):
    w, weights = d.copy(), np.empty_like(d)
    assert _core._gauss(d.shape[-1], w, e.copy(), weights)
    return w, weights


@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_gauss_rules(n, scale):
    d, e = G.standard_normal((5, n)) * scale, G.standard_normal((5, n)) * scale
    e[1, n // 2 :] = 0  # splits
    d[2], e[2] = 0, scale
    d[3] = scale * np.logspace(0, -12, n)
    e[3] *= d[3] / scale
    w, weights = gauss(d, e)
    for i in range(5):
        t = np.diag(d[i]) + np.diag(e[i, :-1], 1) + np.diag(e[i, :-1], -1)
        values, q = np.linalg.eigh(t / scale)
        order = np.argsort(w[i])
        size = np.abs(values).max(initial=1e-30)
        assert np.abs(w[i][order] / scale - values).max() < 1e-13 * size
        assert abs(weights[i].sum() - 1) < 1e-13 and (weights[i] >= 0).all()
        for k in range(1, 4):  # moments do not ask which of two equal values is which
            want = (q[0] ** 2 * values**k).sum()
            assert abs((weights[i] * (w[i] / scale) ** k).sum() - want) <= 1e-12 * size**k


def test_gauss_rules_of_what_is_no_matrix():
    bad = np.array([[1.0, np.nan, 2.0]])
    assert not _core._gauss(3, bad, np.ones((1, 3)), np.empty((1, 3)))
    assert not _core._gauss(3, np.ones((1, 3)), bad, np.empty((1, 3)))
    for n, shapes in ((3, (3, 3, 2)), (2, (3, 3, 3)), (0, (0, 0, 0)), (-1, (3, 3, 3))):
        with pytest.raises(ValueError, match="rows of n"):
            _core._gauss(n, *(np.ones(s) for s in shapes))
    with pytest.raises(ValueError, match="rows of n"):
        _core._gauss(3, *(np.ones(3, "f4") for _ in range(3)))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SPECTRA)
def test_bases_stay_orthogonal(name, dtype):
    """To sqrt(eps), and so the quadrature is exact to rounding."""
    d = SPECTRA[name]
    a = G.standard_normal((N, N)) + (1j * G.standard_normal((N, N)) if dtype == "complex128" else 0)
    q = np.linalg.qr(a)[0]
    a = (q * d) @ q.conj().T
    a = (a + a.conj().T) / 2
    starts = G.choice([-1.0, 1.0], (4, N))
    run = lanczos_batch.Run(pl.Dense(a), starts, True)
    run.steps(80)
    v = np.concatenate(run.blocks, -2)[:, : len(run.alpha)]
    there = np.linalg.norm(v, axis=-1) > 0  # no more after an invariant subspace
    overlap = np.abs(v @ np.swapaxes(v.conj(), -1, -2) - np.eye(v.shape[1]))
    assert (overlap * there[..., None] * there[:, None]).max() < 1e-7
    w, weights = run.gauss()
    f = (q * np.exp(-np.abs(d))) @ q.conj().T if name != "both signs" else (q * d**3) @ q.conj().T
    call = (lambda x: x**3) if name == "both signs" else (lambda x: np.exp(-np.abs(x)))
    want = np.einsum("ki,ij,kj->k", starts, f, starts).real
    got = (call(w) * weights).sum(-1)
    assert np.abs(got - want).max() < 1e-11 * np.abs(want).max() * max(1, np.abs(d).max())
    if name in ("even", "both signs"):  # mostly the recurrence is enough
        assert run.passes < 20


def test_callables_may_keep_their_memory():
    """What a product gives is not written into."""
    d, out = np.linspace(1, 2, 50), np.empty((50, 12))

    def product(x):
        out[:, : x.shape[1]] = d[:, None] * x
        return out[:, : x.shape[1]]

    A = pl.MatVec((50, 50), lambda x: d * x, matmat=product, dtype=float)
    want = pl.estimate_logdet(pl.Diag(d), num_samples=12, steps=6, rng=0, bounds=(1, 2))
    got = pl.estimate_logdet(A, num_samples=12, steps=6, rng=0, bounds=(1, 2))
    assert abs(got.value - want.value) < 1e-12
