"""Operators and LazyArrays among other packages' objects, where these are installed (`make
test-packages` installs them)."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import pylinop as pl

D = scipy.linalg.toeplitz([4.0, 1.0, 0.5])
b = np.array([1.0, -2.0, 0.5])


def A():
    return pl.Toeplitz([4.0, 1.0, 0.5])


class Test_pandas:
    pd = property(lambda self: pytest.importorskip("pandas"))

    def test_out(self):
        pd = self.pd
        for x in (A(), pl.Dense(D) + pl.Zeros((3, 3)), pl.lazy(D)):
            frame = pd.DataFrame(x, index=list("abc"), columns=list("xyz"))
            np.testing.assert_array_equal(frame.to_numpy(), D)
        np.testing.assert_array_equal(pd.Series(A() @ b).to_numpy(), D @ b)
        np.testing.assert_array_equal(pd.Series(pl.lazy(b)).to_numpy(), b)

    def test_in(self):
        pd = self.pd
        frame, series = pd.DataFrame(D, index=list("abc")), pd.Series(b)
        np.testing.assert_array_equal(pl.Dense(frame).toarray(), D)
        np.testing.assert_array_equal(pl.Diag(series).toarray(), np.diag(b))
        np.testing.assert_array_equal(A() @ series, D @ b)
        np.testing.assert_allclose(A() @ frame, D @ D)
        np.testing.assert_allclose(frame @ A(), D @ D)
        np.testing.assert_allclose(pl.solve(frame, series), np.linalg.solve(D, b))
        np.testing.assert_array_equal((A() + frame).toarray(), D + D)
        np.testing.assert_array_equal(np.asarray(pl.lazy(frame) @ series), D @ b)
        np.testing.assert_allclose(
            pl.MultivariateNormal(series, frame).logpdf(series),
            pl.MultivariateNormal(b, D).logpdf(b),
        )
        with pytest.raises(TypeError, match="dtype object"):
            A() @ pd.Series(["a", 1, None], dtype=object)


class Test_polars:
    def test_in_and_out(self):
        polars = pytest.importorskip("polars")
        frame, series = polars.DataFrame(D), polars.Series(b)
        np.testing.assert_array_equal(pl.Dense(frame).toarray(), D)
        np.testing.assert_array_equal(pl.Diag(series).toarray(), np.diag(b))
        np.testing.assert_array_equal(A() @ series, D @ b)
        np.testing.assert_allclose(A() @ frame, D @ D)
        np.testing.assert_array_equal(polars.DataFrame(A().toarray()).to_numpy(), D)
        np.testing.assert_array_equal(polars.DataFrame(np.asarray(A())).to_numpy(), D)


class Test_xarray:
    def test_in_and_out(self):
        xr = pytest.importorskip("xarray")
        x, v = xr.DataArray(D, dims=("i", "j")), xr.DataArray(b, dims="j")
        np.testing.assert_array_equal(pl.Dense(x).toarray(), D)
        np.testing.assert_array_equal(A() @ v, D @ b)
        np.testing.assert_allclose(pl.solve(x, v), np.linalg.solve(D, b))
        found = xr.apply_ufunc(lambda u: A() @ u, v, input_core_dims=[["j"]],
                               output_core_dims=[["i"]])  # fmt: skip
        assert found.dims == ("i",)
        np.testing.assert_array_equal(found.values, D @ b)
        np.testing.assert_array_equal(xr.DataArray(A().toarray(), dims=("i", "j")).values, D)


class Test_processes:
    def test_cloudpickle(self):
        cloudpickle = pytest.importorskip("cloudpickle")
        made = A() + pl.MatVec((3, 3), lambda v: 2 * v, dtype=float)
        again = pickle.loads(cloudpickle.dumps(made))
        np.testing.assert_array_equal(again @ b, made @ b)
        normal = pl.MultivariateNormal(b, A())
        assert pickle.loads(cloudpickle.dumps(normal)).logpdf(b) == normal.logpdf(b)

    def test_joblib(self, tmp_path):
        joblib = pytest.importorskip("joblib")
        jobs = (joblib.delayed(pl.logdet)(k * A()) for k in (1.0, 2.0))
        found = joblib.Parallel(n_jobs=2, prefer="threads")(jobs)
        np.testing.assert_allclose(found, [pl.logdet(k * A()) for k in (1.0, 2.0)])
        assert joblib.hash(A()) == joblib.hash(A()) != joblib.hash(2 * A())
        joblib.dump(A(), tmp_path / "a")
        np.testing.assert_array_equal(joblib.load(tmp_path / "a").toarray(), D)
        calls = []

        def det(op):
            calls.append(1)
            return float(pl.det(op))

        kept = joblib.Memory(tmp_path / "kept", verbose=0).cache(det)
        assert kept(A()) == kept(A()) and len(calls) == 1


class Test_statsmodels:
    def test_least_squares(self):
        sm = pytest.importorskip("statsmodels.api")
        X, y = np.c_[np.ones(3), b], np.array([1.0, 2.0, 4.0])
        want = sm.GLS(y, X, sigma=D).fit().params
        np.testing.assert_allclose(sm.GLS(y, X, sigma=A()).fit().params, want)
        np.testing.assert_allclose(
            sm.OLS(y, pl.Dense(X)).fit().params, np.linalg.lstsq(X, y, rcond=None)[0]
        )


class Test_sklearn:
    def test_check_estimator(self, monkeypatch):
        checks = pytest.importorskip("sklearn.utils.estimator_checks")
        import importlib.util
        from pathlib import Path

        at = Path(__file__).resolve().parents[2] / "examples" / "sklearn_low_rank_ridge.py"
        spec = importlib.util.spec_from_file_location("sklearn_low_rank_ridge", at)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)  # where pickling looks for it
        spec.loader.exec_module(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks.check_estimator(module.KernelRidge())
        module.main()

    def test_pipeline(self):
        pytest.importorskip("sklearn")
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        X, y = np.arange(12.0).reshape(4, 3) ** 1.5, np.arange(4.0)
        want = make_pipeline(StandardScaler(), Ridge()).fit(X, y).predict(X)
        found = make_pipeline(StandardScaler(), Ridge()).fit(pl.Dense(X), y).predict(pl.Dense(X))
        np.testing.assert_allclose(found, want)


class Test_pylops:
    pylops = property(lambda self: pytest.importorskip("pylops"))

    def test_both_ways(self):
        P = self.pylops.MatrixMult(np.diag([1.0, 2.0, 3.0]))
        E = np.diag([1.0, 2.0, 3.0])
        for found, want in (
            (A() @ P, D @ E), (P @ A(), E @ D), (A() + P, D + E), (P + A(), E + D),
            (A() - P, D - E), (P.H @ A(), E @ D), (pl.aslinearoperator(P), E),
            (self.pylops.aslinearoperator(A()), D),
        ):  # fmt: skip
            np.testing.assert_allclose(found @ b, want @ b)
            np.testing.assert_allclose(found.H @ b, want.T @ b)
        assert isinstance(A() @ P, pl.LinearOperator)
        np.testing.assert_allclose(pl.vstack([A(), P]) @ b, np.r_[D @ b, E @ b])
        np.testing.assert_allclose(pl.Kron(A(), P) @ np.ones(9), np.kron(D, E) @ np.ones(9))
        np.testing.assert_allclose(pl.solve(A() @ P, b, method="gmres"), np.linalg.solve(D @ E, b))

    def test_its_solvers_take_ours(self):
        ours = self.pylops.aslinearoperator(A())
        assert self.pylops.utils.dottest(ours, 3, 3)
        x = self.pylops.optimization.basic.cgls(ours, b, niter=10)[0]
        np.testing.assert_allclose(x, np.linalg.solve(D, b))


def test_least_squares_says_why_not():
    def run(method):
        return scipy.optimize.least_squares(
            lambda v: A() @ v - b, np.zeros(3), jac=lambda v: A(), method=method
        )

    np.testing.assert_allclose(run("trf").x, np.linalg.solve(D, b), atol=1e-6)
    with pytest.raises(ValueError, match="method='lm' works only with dense Jacobian"):
        run("lm")


@pytest.mark.parametrize(
    "name, ours",
    [
        *((n, n) for n in "solve inv det cholesky eigh eigvalsh eig eigvals svd svdvals".split()),
        *((n, n) for n in "lu qr ldl expm logm sqrtm norm pinv lstsq null_space orth".split()),
        ("lu_factor", "factorized"), ("cho_factor", "factorized"), ("pinvh", "pinv"),
    ],
)  # fmt: skip
def test_scipy_linalg_says_which_of_ours(name, ours):
    f = getattr(scipy.linalg, name)
    more = (b,) if name in ("solve", "lstsq") else ()
    with pytest.warns(pl.MaterializationWarning) as seen:
        found = f(A(), *more)
    said = [w for w in seen if f"scipy.linalg.{name} takes arrays" in str(w.message)]
    assert said and f"pl.{ours} takes operators" in str(said[0].message)
    assert said[0].filename == __file__ and hasattr(pl, ours)
    want = f(D, *more)
    for x, y in zip(found if isinstance(found, tuple) else [found],
                    want if isinstance(want, tuple) else [want], strict=True):  # fmt: skip
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_arrays_asked_for_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(np.asarray(A()), D)
        scipy.linalg.inv(A().toarray())
        np.linalg.cholesky(A())


def test_rows_one_by_one():
    rows = list(A())
    assert len(rows) == 3 and all(type(r) is np.ndarray for r in rows)
    np.testing.assert_array_equal(rows, D)
    first, *_ = pl.Kron(D, D)
    np.testing.assert_array_equal(first, np.kron(D, D)[0])
    np.testing.assert_array_equal(np.array([A(), A()]), [D, D])


def test_means_of_draws():
    mean = np.array([10.0, 20.0, 30.0])
    np.testing.assert_allclose(pl.sample(A(), 4, rng=1, mean=mean), pl.sample(A(), 4, rng=1) + mean)
    assert A().sample(2, mean=1).shape == (2, 3)
    batch = pl.Dense(np.stack([D, 2 * D]))
    np.testing.assert_allclose(
        pl.sample(batch, 5, rng=1, mean=np.ones((2, 3))), pl.sample(batch, 5, rng=1) + 1
    )
    for bad in (np.ones(2), np.ones((5, 3)), np.ones((2, 2, 3))):
        with pytest.raises(ValueError, match="mean of shape .* does not fit an operator of shape"):
            pl.sample(A(), 5, mean=bad)
    with pytest.raises(TypeError, match="mean of dtype"):
        pl.sample(A(), mean=["a", "b", "c"])


def test_residuals_of_a_batch():
    rng = np.random.default_rng(2)
    for batch, n in ((5, 3), (2, 3), (7, 4)):
        a = rng.standard_normal((batch, n, n))
        a = a @ a.mT + n * np.eye(n)
        r = rng.standard_normal((batch, n))
        quad, log = pl.inv_quad_logdet(a, r)
        want = [x @ np.linalg.solve(m, x) for m, x in zip(a, r, strict=True)]
        np.testing.assert_allclose(quad, want)
        np.testing.assert_allclose(log, np.linalg.slogdet(a)[1])


def estimates():
    A = pl.Toeplitz(0.5 ** np.arange(60))
    return pl.estimate_trace(A, rng=0), pl.estimate_logdet(A, rng=1)


def test_estimates_do_arithmetic():
    e, f = estimates()
    for made, value, error in (
        (e + 1, e.value + 1, e.error), (1 + e, e.value + 1, e.error), (1 - e, 1 - e.value, e.error),
        (-e, -e.value, e.error), (+e, e.value, e.error), (-0.5 * e, -e.value / 2, e.error / 2),
        (e / 4, e.value / 4, e.error / 4), (np.float64(2) * e, 2 * e.value, 2 * e.error),
        (np.float64(2) - e, 2 - e.value, e.error),
        (e + f, e.value + f.value, e.error + f.error),
        (e - f, e.value - f.value, e.error + f.error),
    ):  # fmt: skip
        assert type(made) is pl.Estimate
        assert made.value == pytest.approx(value) and made.error == pytest.approx(error)
        low, high = made.interval
        assert low <= made.value <= high
    assert (1 - e).interval == pytest.approx((1 - e.interval[1], 1 - e.interval[0]))
    assert (e + f).confidence == pytest.approx(0.9) and (e + 1).confidence == 0.95
    assert (e + f).samples == e.samples + f.samples and (2 * f).bias == pytest.approx(2 * f.bias)
    many = e * np.array([1.0, -2.0])
    assert many.value.shape == (2,) and (many.interval[0] <= many.interval[1]).all()
    assert np.exp(e) == pytest.approx(np.exp(e.value)) and f"{e:.1f}" == f"{e.value:.1f}"
    assert f"{e}" == str(e) == repr(e)
    for bad in (lambda: e * f, lambda: e / f):
        with pytest.raises(TypeError, match="no known error: float"):
            bad()
    for bad in (lambda: e + "x", lambda: "x" * e, lambda: e - None, lambda: None / e):
        with pytest.raises(TypeError):
            bad()


def test_names_of_the_design():
    assert pl.norm(A()) == pytest.approx(np.linalg.norm(D)) and pl.norm is pl.linalg.norm
    np.testing.assert_allclose(pl.multi_dot([A(), A(), b]), D @ D @ b)
    np.testing.assert_allclose(pl.PseudoInverse(A()) @ b, np.linalg.solve(D, b))
    np.testing.assert_allclose(pl.einsum("ij,j->i", A(), b), D @ b)
