"""Estimates: intervals hold as often as they say, brackets are brackets, and what is not known is
said not to be known."""

import warnings

import hermitian
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import pylinop as pl
from pylinop._stochastic import estimate, lanczos_batch
from pylinop._structured import spectral_bounds_proven

SEEDS = 500
SLACK = 3 * np.sqrt(0.95 * 0.05 / SEEDS)


def toeplitz_and_diag(n):
    return pl.Toeplitz(0.5 ** np.arange(float(n))) + pl.Diag(np.linspace(0.1, 1, n))


def spectrum(A):
    return np.linalg.eigvalsh(A.toarray())


# -- quantiles --


def test_quantiles_are_students():
    for df in (9, 10, 29, 63, 500, 1999, 2001, 50_000):
        for c in (0.5, 0.9, 0.95, 0.99, 0.9999):
            want = scipy.stats.t.ppf((1 + c) / 2, df)
            assert abs(estimate.quantile(c, df) - want) < 1e-9 * want


# -- coverage --

N = 40
A40 = toeplitz_and_diag(N)
W40 = spectrum(A40)
GRAPH = sp.csr_array(sp.csgraph.laplacian((g := sp.random_array((N, N), density=0.1, rng=0)) + g.T))
SPARSE = pl.Sparse(GRAPH) + 0.5 * pl.Identity(N)
KRON = pl.Kron(np.array([[2.0, 1.0], [1.0, 3.0]]), pl.Toeplitz(0.3 ** np.arange(20.0)))
SKEW = pl.Dense(np.random.default_rng(0).standard_normal((N, N)))

COVERED = {
    "hutchinson": (lambda s: pl.estimate_trace(A40, rng=s), W40.sum()),
    "hutchinson 10 at 0.8": (
        lambda s: pl.estimate_trace(A40, rng=s, num_samples=10, confidence=0.8),
        W40.sum(),
    ),
    "not symmetric": (lambda s: pl.estimate_trace(SKEW, rng=s), SKEW.trace()),
    "hutch++": (
        lambda s: pl.estimate_trace(A40, method="hutch++", num_samples=24, rng=s),
        W40.sum(),
    ),
    "slq": (lambda s: pl.estimate_logdet(A40, rng=s), np.log(W40).sum()),
    "slq of 2 steps": (lambda s: pl.estimate_logdet(A40, steps=2, rng=s), np.log(W40).sum()),
    "slq of a graph": (
        lambda s: pl.estimate_logdet(SPARSE, steps=6, rng=s),
        np.log(spectrum(SPARSE)).sum(),
    ),
    "slq of a Kron": (
        lambda s: pl.estimate_logdet(KRON, steps=6, rng=s),
        np.log(spectrum(KRON)).sum(),
    ),
    "tolerance": (lambda s: pl.estimate_trace(A40, "inv", rtol=0.04, rng=s), (1 / W40).sum()),
    "sqrt": (lambda s: pl.estimate_trace(A40, "sqrt", steps=3, rng=s), np.sqrt(W40).sum()),
    "exp": (lambda s: pl.estimate_trace(A40, "exp", steps=3, rng=s), np.exp(W40).sum()),
}


@pytest.mark.parametrize("name", COVERED)
def test_coverage(name):
    """Of 500 intervals (150 of the rarer kinds) as many hold the true value as they say, and not by
    being endless."""
    make, true = COVERED[name]
    hits, level = 0, None
    seeds = SEEDS if name in ("hutchinson", "hutch++", "slq", "slq of 2 steps") else 150
    for seed in range(seeds):
        with warnings.catch_warnings():  # a tolerance may be missed
            warnings.simplefilter("ignore", RuntimeWarning)
            e = make(seed)
        low, high = e.interval
        level = e.confidence
        assert np.isfinite(low) and np.isfinite(high) and high - low <= 3 * (e.error + e.bias)
        hits += low <= true <= high
    assert hits / seeds >= level - 3 * np.sqrt(level * (1 - level) / seeds)


def test_coverage_of_diagonals():
    for method in ("hutchinson", "hutch++"):
        hits = 0.0
        for seed in range(SEEDS // 5):
            e = pl.estimate_diagonal(SKEW, method=method, rng=seed)
            low, high = e.interval
            d = SKEW.diagonal()
            hits += ((low <= d) & (d <= high)).mean()
        assert hits / (SEEDS // 5) >= 0.95 - SLACK


def test_means_are_unbiased():
    for method in ("hutchinson", "hutch++", "xtrace"):
        got = [
            float(pl.estimate_trace(A40, method=method, num_samples=20, rng=s)) for s in range(150)
        ]
        assert abs(np.mean(got) - W40.sum()) < 4 * np.std(got) / np.sqrt(150)


# -- what an estimate says --


def test_what_it_says():
    e = pl.estimate_logdet(A40, rng=3)
    assert isinstance(e, pl.Estimate) and float(e) == e.value == float(np.asarray(e))
    assert type(e.value) is float and type(e.error) is float and type(e.bias) is float
    assert e.confidence == 0.95 and e.error_kind == "t" and e.met is None and e.samples == 30
    assert e.matvecs == e.samples * e.steps and e.method == "slq"
    low, high = e.interval
    assert np.isclose(high - e.value, e.error + e.bias) and np.isclose(
        e.value - low, high - e.value
    )
    assert "at 95 %, 30 probes" in repr(e) and "bias at most" in repr(e)
    assert "heuristic" in repr(pl.estimate_trace(A40, method="xtrace", num_samples=12, rng=0))
    assert complex(e) == e.value


def test_bias_unknown_without_a_low_bound():
    A = pl.MatVec((N, N), lambda x: A40 @ x, dtype=float)
    e = pl.estimate_logdet(A, rng=0)
    assert e.bias is None and "bias unknown" in repr(e)
    assert e.interval[0] == -np.inf and np.isfinite(e.interval[1])  # Gauss's rule is above
    with pytest.warns(RuntimeWarning, match="the bias is not known"):
        e = pl.estimate_logdet(A, rng=0, rtol=10.0)
    assert e.met is False and "TOLERANCE NOT MET" in repr(e)
    e = pl.estimate_logdet(A, rng=0, bounds=(0.3, None), rtol=0.5)
    assert e.met is True and e.bias is not None
    e = pl.estimate_trace(A40, np.cos, rng=0)
    assert e.bias is None and e.interval == (-np.inf, np.inf)


def test_a_tolerance_is_met_or_it_says_so():
    e = pl.estimate_trace(A40, "inv", rtol=0.03, rng=0)
    assert e.met and e.error + e.bias <= 0.03 * abs(e.value) and e.samples > 30
    with pytest.warns(RuntimeWarning, match="was not met with 50 probes"):
        e = pl.estimate_trace(A40, atol=1e-3, rng=0, max_samples=50)
    assert e.met is False and e.samples == 50
    assert pl.estimate_trace(A40, atol=100.0, rng=0).samples == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pl.estimate_trace(A40, method="xtrace", rtol=0.01, num_samples=12, rng=0).met


@pytest.mark.parametrize("f", ["log", "inv", "sqrt", "entropy", "exp"])
@pytest.mark.parametrize("steps", [1, 2, 4, 8])
def test_brackets_hold_each_probe(f, steps):
    """Gauss and Radau stand on both sides of x^H f(A) x."""
    from pylinop._stochastic import lanczos_quadrature

    w, q = np.linalg.eigh(A40.toarray())
    F = (q * lanczos_quadrature.FUNCTIONS[f].call(w)) @ q.T
    x = np.sign(np.random.default_rng(0).standard_normal((8, N)))
    true = np.einsum("ki,ij,kj->k", x, F, x)
    found = lanczos_quadrature.sampled(
        A40,
        lambda k: x[:k],
        8,
        lanczos_quadrature.FUNCTIONS[f],
        spectral_bounds_proven.proven(A40),
        steps,
    )
    slack = 1e-12 * np.abs(true)
    assert found.bracketed and (found.low <= true + slack).all()
    assert (true <= found.high + slack).all() and (found.high >= found.low).all()


def test_all_steps_are_exact():
    A = pl.Dense(np.diag([1.0, 2.0, 5.0]))
    e = pl.estimate_logdet(A, rng=0, steps=10)
    assert e.steps <= 3 and e.bias < 1e-11 and abs(e.value - np.log(10)) < 1e-12
    B = pl.MatVec((3, 3), lambda x: np.array([1.0, 2.0, 5.0]) * x, dtype=float)
    e = pl.estimate_logdet(B, rng=0, steps=3)  # no bound is needed then
    assert e.bias is not None and e.bias < 1e-11


def test_rounding_of_small_eigenvalues_is_in_the_bias():
    """Ritz values are right to some eps of the largest; logarithms of the smallest feel it."""
    for small in (-15, -12, -6):
        d = np.logspace(small, 0, 30)
        e = pl.estimate_logdet(pl.Diag(d), rng=0)
        true = np.log(d).sum()
        assert e.interval[0] <= true <= e.interval[1] and abs(e.value - true) <= e.error + e.bias
        B = pl.MatVec((30, 30), lambda x, d=d: d * x, dtype=float)
        e = pl.estimate_logdet(B, rng=0, num_samples=10)
        assert e.bias is None or e.interval[0] <= true <= e.interval[1]
    e = pl.estimate_logdet(pl.Identity(50), rng=0)
    assert e.error <= 1e-12 and e.interval[0] <= 0 <= e.interval[1]


def test_nan_goes_through():
    A = pl.Diag(np.r_[np.nan, np.ones(20)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(float(pl.estimate_trace(A, rng=0)))
        assert np.isnan(float(pl.estimate_logdet(A, rng=0)))


@pytest.mark.parametrize("method", ["hutch++", "xtrace"])
def test_low_rank_is_found_out(method):
    A = pl.LowRank(np.random.default_rng(0).standard_normal((400, 4)))
    e = pl.estimate_trace(A, method=method, rng=0)
    true = float(A.trace())
    assert abs(e.value - true) <= 1e-9 * true and e.error <= 1e-9 * true
    assert abs(float(pl.estimate_trace(pl.Zeros((50, 50)), method=method, rng=0))) == 0


@pytest.mark.parametrize("method", ["hutch++", "xtrace"])
def test_few_rows_are_exact(method):
    e = pl.estimate_trace(np.diag([1.0, 2.0, 3.0]), method=method, rng=0)
    assert e.value == 6 and e.error == 0 and e.error_kind == "exact" and "nothing random" in repr(e)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int32"])
def test_dtypes(dtype):
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (30, 30)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + 1j * rng.integers(-3, 4, (30, 30)).astype(dtype)
    a = (a @ a.conj().T + 30 * np.eye(30)).astype(dtype)
    w = np.linalg.eigvalsh(a.astype(np.result_type(a, np.float64)))
    e = pl.estimate_logdet(a, rng=0)
    assert abs(e.value - np.log(w).sum()) < 2.5 * (e.error + e.bias) and isinstance(e.value, float)
    t = pl.estimate_trace(a, rng=0)
    assert abs(t.value - w.sum()) < 2.5 * (t.error + t.bias)
    d = pl.estimate_diagonal(a, num_samples=200, rng=0)
    assert (np.abs(d.value - a.diagonal()) < 4 * d.error + d.bias).all()


def test_complex_traces_have_a_rectangle():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 60)) + 1j * rng.standard_normal((60, 60))
    e = pl.estimate_trace(a, rng=0, num_samples=100)
    low, high = e.interval
    t = np.trace(a)
    assert low.real < t.real < high.real and low.imag < t.imag < high.imag


def test_batches():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 1, 25, 25))
    a = a @ np.swapaxes(a, -1, -2) + 5 * np.eye(25)
    A = pl.Dense(a)
    w = np.linalg.eigvalsh(a)
    for e, true in (
        (pl.estimate_logdet(A, rng=0, bounds=(5, None)), np.log(w).sum(-1)),
        (pl.estimate_trace(A, rng=0), w.sum(-1)),
        (pl.estimate_trace(A, method="hutch++", num_samples=20, rng=0), w.sum(-1)),
        (pl.estimate_trace(A, method="xtrace", num_samples=10, rng=0), w.sum(-1)),
    ):
        assert e.value.shape == e.error.shape == (2, 1)
        assert (np.abs(e.value - true) < 3 * (e.error + e.bias)).all()
    d = pl.estimate_diagonal(A, rng=0)
    assert d.value.shape == (2, 1, 25) and "array of shape" in repr(d)


@pytest.mark.parametrize("n", [0, 1])
def test_tiny(n):
    A = pl.Diag(np.full(n, 3.0))
    for e in (
        pl.estimate_logdet(A, rng=0),
        *(pl.estimate_trace(A, method=m, rng=0) for m in ("hutchinson", "hutch++", "xtrace")),
    ):
        want = n * np.log(3) if e.method == "slq" else 3.0 * n
        assert abs(e.value - want) < 1e-12
    assert pl.estimate_diagonal(A, rng=0).value.tolist() == [3.0] * n


def test_same_seed_same_bits_whatever_the_blocks(monkeypatch):
    first = pl.estimate_logdet(A40, rng=5, steps=6)
    assert pl.estimate_logdet(A40, rng=np.random.default_rng(5), steps=6).value == first.value
    monkeypatch.setattr(lanczos_batch, "_ROOM", 3 * N * 8 * 12)  # three probes at once
    assert abs(pl.estimate_logdet(A40, rng=5, steps=6).value - first.value) < 1e-9
    monkeypatch.setattr(lanczos_batch, "_ROOM", N * 8 * 9)  # one, and no room for its basis
    e = pl.estimate_logdet(A40, rng=5, steps=6)
    assert abs(e.value - first.value) < 1e-9 and e.info["reorthogonalised"] is False
    assert first.info["reorthogonalised"] is True


def test_memory_limit():
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError):
        pl.estimate_logdet(pl.Diag(np.ones(10_000)), rng=0)


# -- errors --


def test_errors():
    for wrong, error, words in (
        (lambda: pl.estimate_trace(np.ones((2, 3))), pl.LinAlgError, "square"),
        (lambda: pl.estimate_trace(A40, num_samples=9), ValueError, "at least 10, got 9"),
        (lambda: pl.estimate_trace(A40, method="hutch++", num_samples=19), ValueError, "20"),
        (lambda: pl.estimate_trace(A40, method="best"), ValueError, "hutchinson"),
        (lambda: pl.estimate_trace(A40, "log", method="xtrace"), ValueError, "function"),
        (lambda: pl.estimate_trace(A40, steps=3), ValueError, "function="),
        (lambda: pl.estimate_trace(A40, "tan"), ValueError, "no function 'tan'"),
        (lambda: pl.estimate_trace(A40, 3), TypeError, "callable"),
        (lambda: pl.estimate_trace(A40, num_samples=12.5), TypeError, "integer"),
        (lambda: pl.estimate_trace(A40, confidence=1.0), ValueError, "confidence"),
        (lambda: pl.estimate_trace(A40, rtol=-1), ValueError, "rtol"),
        (lambda: pl.estimate_logdet(A40, bounds=3), TypeError, "bounds"),
        (lambda: pl.estimate_logdet(A40, bounds=(2, 1)), ValueError, "low <= high"),
        (lambda: pl.estimate_logdet(A40, bounds=(1.0, None)), ValueError, "Ritz value"),
        (lambda: pl.estimate_logdet(A40 - pl.Identity(N)), pl.LinAlgError, "positive definite"),
        (lambda: pl.estimate_trace(A40 - pl.Identity(N), "sqrt"), pl.LinAlgError, "semidefinite"),
        (lambda: pl.estimate_logdet(SKEW), pl.LinAlgError, "not Hermitian"),
        (lambda: pl.estimate_trace(A40, lambda w: w[0]), ValueError, "gave shape"),
        (lambda: pl.estimate_diagonal(A40, method="xtrace"), ValueError, "hutch"),
        (lambda: pl.spectral_bounds(A40, method="guess"), ValueError, "structure"),
        (lambda: pl.spectral_bounds(SKEW, method="lanczos"), pl.LinAlgError, "Hermitian"),
        (lambda: pl.spectral_density(A40, num_samples=3), ValueError, "at least 10"),
        (lambda: pl.spectral_density(A40, width=0.0), ValueError, "width"),
        (lambda: pl.spectral_density(np.ones((2, 3, 3))), pl.LinAlgError, "one matrix"),
    ):
        with pytest.raises(error, match=words):
            wrong()


# -- method= and accuracy= --


def test_methods_by_name():
    n = 64
    A = toeplitz_and_diag(n)
    assert pl.trace(A) == pl.trace(A, method="exact") == pl.trace(A, method="auto")
    assert pl.logdet(A) == pl.logdet(A, method="exact")
    e = pl.logdet(A, method="slq", rng=0)
    assert isinstance(e, pl.Estimate) and e.info["why"] == "method='slq'"
    for m in ("hutchinson", "hutch++", "xtrace"):
        assert pl.trace(A, method=m, rng=0).method == m
    with pytest.raises(ValueError, match="method must be one of"):
        pl.logdet(A, method="xtrace")
    with pytest.raises(TypeError, match="belongs to an estimate"):
        pl.trace(A, num_samples=30)
    x = pl.lazy(A.toarray())
    assert isinstance(pl.trace(x), pl.LazyArray)
    assert isinstance(pl.logdet(x, method="slq"), pl.LazyArray)  # as other functions of them


def test_accuracy_leaves_auto_exact_unless_told():
    big, small = toeplitz_and_diag(2500), toeplitz_and_diag(8)
    with pl.config(accuracy="estimate"):
        e = pl.logdet(big, rng=0, num_samples=10)
        assert isinstance(e, pl.Estimate) and "accuracy='estimate'" in e.info["why"]
        assert e.info["alternatives"][0]["text"] == "direct"
        assert not isinstance(pl.logdet(small), pl.Estimate)
        assert not isinstance(pl.trace(big), pl.Estimate)  # exact is cheaper
    assert not isinstance(pl.logdet(small), pl.Estimate)
    with pytest.raises(ValueError, match="accuracy must be"):
        pl.config(accuracy="rough")


def test_explanations_show_the_choice():
    A = toeplitz_and_diag(500)
    e = A.explain("logdet", method="slq")
    assert "method    slq (method='slq')" in e and e.alternatives[0]["text"] == "direct"
    assert e.steps[0]["name"] == "slq" and e.seconds > 0
    assert [r["text"] for r in A.explain("trace", method="auto").alternatives] == [
        "hutchinson", "hutch++", "xtrace",
    ]  # fmt: skip
    with pl.explaining() as said:
        pl.logdet(A, method="slq", rng=0, num_samples=10)
    assert "method    slq" in str(said) and said._repr_html_()


# -- bounds --


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", hermitian.KINDS)
def test_proven_bounds_hold(name, dtype, rng):
    A = hermitian.KINDS[name](rng, dtype)
    if 0 in A.shape:
        return
    w = np.linalg.eigvalsh(A.toarray().astype(np.result_type(A.dtype, np.float64)))
    slack = (1e-6 if dtype in ("float32", "complex64") else 1e-13) * np.abs(w).max()
    for op, values in ((A, w), (-2.0 * A, -2 * w), (A + A, 2 * w), (A.H, w)):
        low, high = spectral_bounds_proven.proven(op)
        assert low is None or low <= values.min() + slack
        assert high is None or high >= values.max() - slack
    b = pl.spectral_bounds(A, method="lanczos")
    assert b.certified == (False, False)


def test_what_is_not_hermitian_proves_nothing(rng):
    a = rng.standard_normal((5, 5))
    for op in (
        pl.Dense(a),
        pl.Sparse(sp.csr_array(a)),
        pl.Toeplitz(a[0], a[1]),
        pl.Circulant(a[0]),
    ):
        assert spectral_bounds_proven.proven(op) == (None, None)
        low, high = spectral_bounds_proven.proven(
            op + op.T
        )  # which may close to one of a kind, then proven
        w = spectrum(op + op.T)
        assert (low is None or low <= w[0]) and (high is None or high >= w[-1])
    assert spectral_bounds_proven.proven(pl.Dense(a) + pl.Dense(a).T) == (None, None)
    low, high = spectral_bounds_proven.proven(pl.Dense(a) @ pl.Dense(a).T + pl.Identity(5))
    assert 1 - 1e-12 <= low <= 1 and high >= np.linalg.norm(a, 2) ** 2 + 1
    b = pl.spectral_bounds(pl.Dense(a) @ pl.Dense(a).T, method="structure")
    assert b.low == 0 and b.certified == (True, True)
    b = pl.spectral_bounds(pl.MatVec((5, 5), lambda x: 2 * x, dtype=float))
    assert b.certified == (False, False) and abs(b.low - 2) < 1e-12
    b = pl.spectral_bounds(pl.MatVec((5, 5), lambda x: 2 * x, dtype=float), method="structure")
    assert (b.low, b.high) == (-np.inf, np.inf)


def test_real_cases():
    n = 300
    A = toeplitz_and_diag(n)
    b = pl.spectral_bounds(A)
    w = spectrum(A)
    assert all(b.certified) and 0.9 * w[0] < b.low <= w[0] and w[-1] <= b.high < 1.1 * w[-1]
    e = pl.estimate_logdet(A, rng=0)
    assert abs(e.value - float(pl.logdet(A))) < 2 * e.error
    K = pl.KronSum(
        pl.Laplacian(30, "dirichlet", "float64"), pl.Laplacian(30, "dirichlet", "float64")
    )
    e = pl.estimate_logdet(-K + pl.Identity(900), rng=0)
    assert (
        e.bias is not None and abs(e.value - float(pl.logdet(-K + pl.Identity(900)))) < 2 * e.error
    )


# -- densities --


def test_density_against_the_spectrum():
    A = toeplitz_and_diag(150)
    e = pl.spectral_density(A, rng=0, steps=40)
    s, w = e.info["width"], spectrum(A)
    bell = np.exp(-0.5 * ((e.points[:, None] - w) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    want = bell.mean(axis=1)
    assert e.bias is None and e.points.shape == e.value.shape == e.error.shape == (200,)
    assert (np.abs(e.value - want) <= e.error + 1e-9).mean() > 0.85
    assert abs(np.trapezoid(e.value, e.points) - 1) < 0.01
    assert pl.spectral_density(A, 1.5, rng=0, width=0.1).value.shape == (1,)
