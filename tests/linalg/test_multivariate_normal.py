"""pl.MultivariateNormal: densities, parts, conditions, maps and draws, by covariance and precision,
compared with scipy.stats and the textbook's formulas on dense matrices."""

import copy
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from scipy.optimize import minimize
from scipy.stats import multivariate_normal as reference

import pylinop as pl


def fresh():
    return np.random.default_rng([int(os.environ["PYLINOP_SEED"]), 22])


def definite(n, rng, kind=float):
    a = rng.standard_normal((n, n))
    if kind is complex:
        a = a + 1j * rng.standard_normal((n, n))
    return a @ a.conj().T + n * np.eye(n)


def band(n, rng):
    D = pl.Diag(np.ones(n)) - pl.Diag(0.8 * np.ones(n - 1), k=-1)
    return D.T @ pl.Diag(rng.uniform(1, 2, n)) @ D


def blocks(n, rng):
    H = pl.Kron(pl.Identity(n // 2), rng.standard_normal((1, 2)))
    D = pl.Identity(n) - pl.Kron(pl.Diag(np.ones(n // 2 - 1), k=-1), 0.3 * np.eye(2) + 0.1)
    return D.T @ D + H.T @ H


KINDS = {
    "array": definite,
    "dense": lambda n, rng: pl.Dense(definite(n, rng)),
    "number": lambda n, rng: rng.uniform(1, 2),
    "vector": lambda n, rng: rng.uniform(1, 2, n),
    "diag": lambda n, rng: pl.Diag(rng.uniform(1, 2, n)),
    "identity": lambda n, rng: 3.0 * pl.Identity(n),
    "low rank": lambda n, rng: (
        pl.LowRank(rng.standard_normal((n, 3))) + pl.Diag(rng.uniform(1, 2, n))
    ),
    "kron": lambda n, rng: pl.Kron(definite(2, rng), definite(n // 2, rng)),
    "toeplitz": lambda n, rng: pl.Toeplitz(np.exp(-np.arange(n) / rng.uniform(1, 4))),
    "circulant": lambda n, rng: pl.Circulant(np.r_[4.0, 1, np.zeros(n - 3), 1]),
    "tridiagonal": lambda n, rng: pl.Tridiagonal(
        -np.ones(n - 1), rng.uniform(2.5, 3, n), -np.ones(n - 1)
    ),
    "quasiseparable": lambda n, rng: (
        pl.quasiseparable("matern32", np.sort(rng.uniform(0, n, n)), length_scale=2.0)
        + 0.3 * pl.Identity(n)
    ),
    "kernel": lambda n, rng: (
        pl.Kernel("rbf", rng.standard_normal((n, 2)), length_scale=1.0) + 0.3 * pl.Identity(n)
    ),
    "sparse": lambda n, rng: pl.Sparse(
        sp.diags_array(
            [np.full(n - 1, -1.0), rng.uniform(2.5, 3, n), np.full(n - 1, -1.0)], offsets=[-1, 0, 1]
        ).tocsr()
    ),
    "scipy": lambda n, rng: sp.diags_array(rng.uniform(1, 2, n)).tocsc(),
    "blockdiag": lambda n, rng: pl.BlockDiag(definite(2, rng), definite(n - 2, rng)),
    "inverse": lambda n, rng: pl.inv(pl.Dense(definite(n, rng), "pos")),
    "callable": lambda n, rng: pl.MatVec((n, n), definite(n, rng).__matmul__, dtype=float),
    "band of products": band,
    "sparse of products": blocks,
}
SIZES = [6, 30, 210]  # what has few entries a row is assembled from 200 rows on


def dense(A, n):
    if isinstance(A, pl.LinearOperator) or sp.issparse(A):
        return np.asarray(A.toarray())
    return A * np.eye(n) if np.ndim(A) < 2 else A


class Case:
    def __init__(self, kind, by, n):
        self.rng = rng = fresh()
        self.n, self.by = n, by
        A = KINDS[kind](n, rng)
        S = dense(A, n)
        C = S if by == "cov" else np.linalg.inv(S)
        self.C = (C + C.T) / 2
        self.m = rng.standard_normal(n)
        self.d = pl.MultivariateNormal(self.m, **{by: A})
        self.rtol = 1e-9 * max(1.0, np.linalg.cond(S) / 100)

    def same(self, d, m, C):
        """Is d the normal distribution of m and C?"""
        C = (C + C.T) / 2
        size = np.abs(C).max()
        np.testing.assert_allclose(d.mean, m, rtol=self.rtol, atol=self.rtol * (1 + abs(m).max()))
        np.testing.assert_allclose(d.cov.toarray(), C, rtol=0, atol=self.rtol * size)
        np.testing.assert_allclose(d.var(), np.diag(C), rtol=self.rtol, atol=self.rtol * size)
        x = m + self.rng.standard_normal((3, len(m)))
        want = reference(m, C).logpdf(x)
        np.testing.assert_allclose(d.logpdf(x), want, rtol=self.rtol, atol=self.rtol)


CASES = [(k, by, n) for k in KINDS for by in ("cov", "precision") for n in SIZES]
CASES = [c for c in CASES if c[2] < 200 or "products" in c[0] or c[0] == "tridiagonal"]


@pytest.fixture(params=CASES, ids=lambda p: "-".join(map(str, p)))
def case(request):
    return Case(*request.param)


def test_densities(case):
    d, m, C, rng = case.d, case.m, case.C, case.rng
    ref = reference(m, C)
    case.same(d, m, C)
    x = rng.standard_normal((2, 5, case.n))
    np.testing.assert_allclose(d.logpdf(x), ref.logpdf(x), rtol=case.rtol)
    one = d.logpdf(x[0, 0])
    assert np.ndim(one) == 0 and isinstance(one, np.floating)
    np.testing.assert_allclose(one, ref.logpdf(x[0, 0]), rtol=case.rtol)
    np.testing.assert_allclose(d.pdf(x[0]), np.exp(d.logpdf(x[0])))
    np.testing.assert_allclose(d.entropy(), ref.entropy(), rtol=case.rtol, atol=case.rtol * case.n)
    quad = np.einsum("ij,ji->i", x[0] - m, np.linalg.solve(C, (x[0] - m).T))
    np.testing.assert_allclose(d.mahalanobis(x[0]), quad**0.5, rtol=case.rtol)
    assert np.isnan(d.logpdf(np.where(np.arange(case.n) == 2, np.nan, x[0]))).all()
    np.testing.assert_allclose(d.std(), np.diag(C) ** 0.5, rtol=case.rtol)
    np.testing.assert_allclose(d.precision.toarray() @ C, np.eye(case.n), atol=1e3 * case.rtol)


def test_parts_and_conditions(case):
    d, m, C, rng, n = case.d, case.m, case.C, case.rng, case.n
    for i in (np.array([3]), rng.permutation(n)[:3], rng.permutation(n)[: n - 2]):
        case.same(d.marginal(i), m[i], C[np.ix_(i, i)])
    i = rng.permutation(n)[: rng.integers(1, n - 1)]
    a = np.setdiff1d(np.arange(n), i)
    y = rng.standard_normal(len(i))
    K = np.linalg.solve(C[np.ix_(i, i)], C[np.ix_(i, a)]).T
    case.same(d.condition(y, i), m[a] + K @ (y - m[i]), C[np.ix_(a, a)] - K @ C[np.ix_(i, a)])


def test_observations(case):
    d, m, C, rng, n = case.d, case.m, case.C, case.rng, case.n
    for rows in (1, n + 3):
        H = rng.standard_normal((rows, n))
        for R in (0.5, rng.uniform(0.5, 1, rows), definite(rows, rng)):
            y = rng.standard_normal(rows)
            noise = np.diag(R) if np.ndim(R) == 1 else dense(R, rows)
            K = np.linalg.solve(H @ C @ H.T + noise, H @ C).T
            case.same(d.condition(y, H=H, noise=R), m + K @ (y - H @ m), C - K @ H @ C)
    i = rng.permutation(n)[: n // 2]
    H = np.eye(n)[i]
    K = np.linalg.solve(H @ C @ H.T + 0.1 * np.eye(len(i)), H @ C).T
    y = rng.standard_normal(len(i))
    case.same(d.condition(y, i, noise=0.1), m + K @ (y - H @ m), C - K @ H @ C)


def test_maps_and_divergence(case):
    d, m, C, rng, n = case.d, case.m, case.C, case.rng, case.n
    A = rng.standard_normal((3, n))
    case.same(d.affine(A, [1.0, 2.0, 3.0]), A @ m + [1, 2, 3], A @ C @ A.T)
    case.same(A @ d - 1, A @ m - 1, A @ C @ A.T)
    case.same(pl.Selection([1, 0], n) @ d, m[[1, 0]], C[np.ix_([1, 0], [1, 0])])
    case.same(2 - d / 2, 2 - m / 2, C / 4)
    case.same(d[1:4], m[1:4], C[1:4, 1:4])
    B, b = definite(n, rng), rng.standard_normal(n)
    e = pl.MultivariateNormal(b, B)
    for p, q, (m0, C0), (m1, C1) in ((d, e, (m, C), (b, B)), (e, d, (b, B), (m, C))):
        X = np.linalg.inv(C1)
        want = (np.trace(X @ C0) - n + (m1 - m0) @ X @ (m1 - m0)) / 2
        want += (np.linalg.slogdet(C1)[1] - np.linalg.slogdet(C0)[1]) / 2
        np.testing.assert_allclose(p.kl_divergence(q), want, rtol=10 * case.rtol)
        assert p.kl(q) == p.kl_divergence(q)
    assert abs(d.kl_divergence(d)) < 1e2 * case.rtol * n


def covariance_is(x, m, C):
    """Are draws those of N(m, C)? Each entry of the sample covariance has the standard error
    ((C_ij^2 + C_ii C_jj) / k)^1/2: 6 of them are not reached."""
    k = len(x)
    off = x - m
    v = np.diag(C)
    assert (np.abs(off.mean(0)) < 6 * (v / k) ** 0.5).all()
    assert (np.abs(off.T @ off / k - C) < 6 * ((C**2 + np.outer(v, v)) / k) ** 0.5).all()


@pytest.mark.parametrize("by", ["cov", "precision"])
@pytest.mark.parametrize("kind", KINDS)
def test_draws(kind, by):
    case = Case(kind, by, 6)
    d, m, C, rng = case.d, case.m, case.C, np.random.default_rng(3)
    k = 2000
    x = d.sample(k, rng)
    assert x.shape == (k, 6)
    covariance_is(x, m, C)
    np.testing.assert_array_equal(d.sample(k, np.random.default_rng(3)), x)
    np.testing.assert_array_equal(d.rvs(2, 5), d.sample(2, 5))
    assert d.rvs(random_state=1).shape == (6,) == d.sample(rng=1).shape
    assert d.sample((2, 3)).shape == (2, 3, 6)
    H = case.rng.standard_normal((9, 6))
    for e in (d.condition([0.3, 0.1], [4, 1]), d.condition(np.ones(9), H=H, noise=0.5),
              d.condition([1.0, 2.0], H=H[:2], noise=definite(2, rng)),
              H[:3] @ d, (2 * d.condition([0.3], [4]) + 1)[[3, 1]]):  # fmt: skip
        covariance_is(e.sample(k, rng), e.mean, e.cov.toarray())


def test_draws_without_a_dense_form():
    n = 1 << 17
    prior = pl.MultivariateNormal(0, pl.Toeplitz(0.5 ** np.minimum(np.arange(n), 900.0)))
    with pl.config(memory_limit=400_000_000):
        x = prior.condition([5.0], index=[7]).sample(2, rng=0)
    assert x.shape == (2, n - 1) and np.abs(x[:, 6:8].mean() - 2.5) < 3


def test_observations_without_noise():
    rng = fresh()
    C, H = definite(5, rng), rng.standard_normal((2, 5))
    d = pl.MultivariateNormal(0, C).condition([1.0, 2.0], H=H)
    np.testing.assert_allclose(H @ d.mean, [1, 2])
    np.testing.assert_allclose(H @ d.sample(3, rng=0).T, [[1] * 3, [2] * 3])
    with pytest.raises(NotImplementedError, match="without noise"):
        pl.MultivariateNormal(0, precision=C).condition([1.0, 2.0], H=H)


@pytest.mark.parametrize("by", ["cov", "precision"])
def test_complex_is_circular(by):
    rng = fresh()
    A = definite(4, rng, complex)
    m = rng.standard_normal(4) + 1j * rng.standard_normal(4)
    d = pl.MultivariateNormal(m, **{by: A})
    C = A if by == "cov" else np.linalg.inv(A)

    def pair(z, K):
        """As a real vector of twice the length."""
        return np.r_[z.real, z.imag], np.block([[K.real, -K.imag], [K.imag, K.real]]) / 2

    x = m + rng.standard_normal(4) + 1j * rng.standard_normal(4)
    mean, K = pair(m, C)
    K = (K + K.T) / 2
    both = reference(mean, K)
    np.testing.assert_allclose(d.logpdf(x), both.logpdf(pair(x, C)[0]))
    np.testing.assert_allclose(d.entropy(), both.entropy())
    np.testing.assert_allclose(d.var(), np.diag(C).real)
    given = d.condition(x[:1], index=[0])
    want = m[1:] + C[1:, 0] * (x[0] - m[0]) / C[0, 0]
    np.testing.assert_allclose(given.mean, want)
    assert d.sample(3).dtype == np.complex128


def test_batches():
    rng = fresh()
    A = np.stack([definite(4, rng) for _ in range(3)])
    m = rng.standard_normal((3, 4))
    x = rng.standard_normal((5, 3, 4))
    for by, C in (("cov", A), ("precision", np.linalg.inv(A))):
        d = pl.MultivariateNormal(m, **{by: A})
        want = [[reference(m[i], (C[i] + C[i].T) / 2).logpdf(v[i]) for i in range(3)] for v in x]
        np.testing.assert_allclose(d.logpdf(x), want)
        np.testing.assert_allclose(d.logpdf(x[0]), want[0])
        np.testing.assert_allclose(d.logpdf(x[0, 1])[1], want[0][1])
        assert d.batch_shape == (3,) and d.entropy().shape == (3,) and d.var().shape == (3, 4)
        assert d.sample(7).shape == (7, 3, 4)
    several = pl.MultivariateNormal(m, A[0])
    assert several.logpdf(x).shape == (5, 3) and several.sample(2).shape == (2, 3, 4)
    rows = several.condition(rng.standard_normal((3, 2)), [0, 1])
    assert rows.mean.shape == (3, 2) and rows.batch_shape == (3,)


def test_one_factor(monkeypatch):
    from pylinop._api import normal_parts

    made = []
    tried = normal_parts.Held._look
    monkeypatch.setattr(normal_parts.Held, "_look", lambda F: made.append(F) or tried(F))
    d = pl.MultivariateNormal(0, definite(30, fresh()))
    with pl.explaining() as e:
        for _ in range(3):
            d.logpdf(np.ones((4, 30))), d.entropy(), d.condition([1.0], [0])
    factors = [p for p in e.plans if any(s["name"] == "potrf" and s["took"] for s in p.steps)]
    assert made.count(d._held) == 1
    assert sum(any(slot["shape"] == (30, 30) for slot in p.slots) for p in factors) == 1


def test_arrays_are_read_once():
    a = definite(3, fresh())
    d, x = pl.MultivariateNormal(np.zeros(3), a), np.ones(3)
    before = d.logpdf(x)
    a *= 5
    assert d.logpdf(x) == before


@pytest.mark.parametrize("by", ["cov", "precision"])
def test_gradients(by):
    rng = fresh()
    n = 12
    t, y, U = np.arange(n) * 0.3, rng.standard_normal(n), rng.standard_normal((n, 2))

    def loss(p, mean):
        A = pl.Kernel("rbf", t[:, None], length_scale=np.exp(p[0])) * np.exp(p[1])
        A = A + np.exp(p[2]) * pl.Identity(n) + pl.LowRank(U)
        return -pl.MultivariateNormal(mean, **{by: A}).logpdf(y)

    p, mean = np.array([0.1, -0.2, -0.5]), rng.standard_normal(n)
    value, (g, gm) = pl.value_and_grad(loss, argnums=(0, 1))(p, mean)

    def plain(p, mean):
        K = np.exp(-((t[:, None] - t) ** 2) / 2 / np.exp(2 * p[0])) * np.exp(p[1])
        K = K + np.exp(p[2]) * np.eye(n) + U @ U.T
        K = K if by == "cov" else np.linalg.inv(K)
        return -reference(mean, (K + K.T) / 2).logpdf(y)

    np.testing.assert_allclose(value, plain(p, mean))
    for k in range(3):
        h = 1e-6 * np.eye(3)[k]
        diff = (plain(p + h, mean) - plain(p - h, mean)) / 2e-6
        np.testing.assert_allclose(g[k], diff, rtol=1e-5, atol=1e-5)
    h = 1e-6 * np.eye(n)[4]
    np.testing.assert_allclose(gm[4], (plain(p, mean + h) - plain(p, mean - h)) / 2e-6, rtol=1e-5)
    fit = minimize(pl.value_and_grad(lambda p: loss(p, mean)), p, jac=True, options={"maxiter": 5})
    assert fit.fun < value


def test_lazy_arguments():
    rng = fresh()
    A, x = definite(4, rng), rng.standard_normal((3, 4))
    want = reference(np.zeros(4), A).logpdf(x)
    for d, at in (
        (pl.MultivariateNormal(0, A), pl.lazy(x)),
        (pl.MultivariateNormal(0, pl.lazy(A)), x),
        (pl.MultivariateNormal(pl.lazy(np.zeros(4)), precision=np.linalg.inv(A + A.T) * 2), x),
    ):
        found = d.logpdf(at)
        assert type(found) is pl.LazyArray
        np.testing.assert_allclose(np.asarray(found), want)
        np.testing.assert_allclose(np.asarray(d.pdf(at)), np.exp(want))
    d = pl.MultivariateNormal(0, pl.lazy(A))
    with pytest.raises(NotImplementedError, match="LazyArray"):
        d.entropy()
    with pytest.raises(NotImplementedError, match="LazyArray"):
        d.condition([1.0], [0])
    with pytest.raises(NotImplementedError, match="one matrix"):
        d.logpdf(np.ones((2, 3, 4)))
    assert d.sample(2, rng=0).shape == (2, 4)


def test_scipy_covariances():
    a = definite(3, fresh())
    C = scipy.stats.Covariance.from_cholesky(np.linalg.cholesky(a))
    x = np.ones(3)
    want = scipy.stats.multivariate_normal(np.zeros(3), a).logpdf(x)
    np.testing.assert_allclose(pl.MultivariateNormal(cov=C).logpdf(x), want)
    inverse = scipy.stats.Covariance.from_precision(np.linalg.inv(a), a)
    np.testing.assert_allclose(pl.MultivariateNormal(precision=inverse).cov.toarray(), a)


def test_means():
    d = pl.MultivariateNormal(cov=np.eye(3))
    np.testing.assert_array_equal(d.mean, np.zeros(3))
    np.testing.assert_array_equal(pl.MultivariateNormal(2, np.eye(3)).mean, [2, 2, 2])
    one = pl.MultivariateNormal(2.0, 4.0)
    assert one.dim == 1 and one.logpdf(1.0) == pytest.approx(scipy.stats.norm(2, 2).logpdf(1.0))
    with pytest.raises(ValueError, match="read-only"):
        d.mean[0] = 1


def test_text_and_copies():
    d = pl.MultivariateNormal(0, pl.Toeplitz([2.0, 1.0, 0.5]))
    assert repr(d) == ("<MultivariateNormal, dimension 3, cov=<3x3 Toeplitz with dtype=float64>>")
    assert "precision=<2x2 Diag" in repr(pl.MultivariateNormal(0, precision=[1.0, 2.0]))
    assert "<svg" in d._repr_html_() and "by its covariance" in d._repr_html_()
    x = np.ones(3)
    made = d.condition([1.0], [0])
    for e in (pickle.loads(pickle.dumps(d)), copy.copy(d), copy.deepcopy(d)):
        assert e.logpdf(x) == d.logpdf(x) and type(e.cov) is pl.Toeplitz
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.sample(3, rng=1), made.sample(3, rng=1))
    np.testing.assert_allclose(again.logpdf(x[:2]), made.logpdf(x[:2]))


BAD = [
    (lambda: pl.MultivariateNormal(0), TypeError, "neither was given: cov=A, or precision=P"),
    (lambda: pl.MultivariateNormal(0, 1.0, 1.0), TypeError, "both were given"),
    (lambda: pl.MultivariateNormal(0, np.ones((2, 3))), ValueError, r"square .* shape \(2, 3\)"),
    (lambda: pl.MultivariateNormal(0, pl.Zeros((2, 3))), pl.LinAlgError, r"square: \(2, 3\)"),
    (lambda: pl.MultivariateNormal(0, [[1.0, np.nan], [np.nan, 1.0]]), ValueError,
     r"cov must be finite, got nan at \(0, 1\)"),
    (lambda: pl.MultivariateNormal(0, [[2.0, 1.0], [0.0, 2.0]]), ValueError,
     r"symmetric .*: entry \(0, 1\) is 1.0, entry \(1, 0\) is 0.0"),
    (lambda: pl.MultivariateNormal(0, -1.0), ValueError, "cov must be positive, got"),
    (lambda: pl.MultivariateNormal(np.ones(3), np.eye(2)), ValueError,
     r"mean of shape \(3,\) does not fit a matrix of shape \(2, 2\)"),
    (lambda: pl.MultivariateNormal(np.ones((2, 2)), np.ones((3, 1, 1)) * np.eye(2)), ValueError,
     r"means of shape \(2, 2\) do not fit"),
    (lambda: pl.MultivariateNormal(["a", "b"], np.eye(2)), TypeError, "mean of dtype"),
    (lambda: pl.MultivariateNormal(0, [[1.0, 2.0], [2.0, 1.0]]).logpdf([0, 0]), pl.LinAlgError,
     "a covariance of a normal distribution must be positive definite, and this one"),
    (lambda: pl.MultivariateNormal(0, precision=[1.0, -2.0]).logpdf([0, 0]), pl.LinAlgError,
     "a precision of .* this one has -2 on its diagonal"),
    (lambda: pl.MultivariateNormal(0, [1.0, 0.0]).entropy(), pl.LinAlgError, "0 on its diagonal"),
    (lambda: pl.MultivariateNormal(0, [1.0, np.nan]).entropy(), ValueError, "holds NaN"),
    (lambda: pl.MultivariateNormal(0, pl.Toeplitz([1.0, 2.0])).entropy(), pl.LinAlgError,
     "determinant that is not positive"),
    (lambda: pl.MultivariateNormal(0, pl.LowRank(np.ones((3, 1)))).entropy(), pl.LinAlgError,
     "determinant that is not positive"),
    (lambda: N2.logpdf([1.0, 2.0, 3.0]), ValueError, r"x must have shape \(2,\)"),
    (lambda: N2.logpdf(1.0), ValueError, r"got \(\)"),
    (lambda: N2.logpdf(["a", "b"]), TypeError, "x of dtype"),
    (lambda: N2.marginal([0, 2]), IndexError, "index 2 is out of bounds for .* dimension 2"),
    (lambda: N2.marginal([0, 0]), ValueError, "each entry once"),
    (lambda: N2.marginal([True]), IndexError, r"a mask must have shape \(2,\), got \(1,\)"),
    (lambda: N2.marginal([0.5]), TypeError, "integers, a slice or a mask"),
    (lambda: N2.condition([1.0]), TypeError, "index= .* or H="),
    (lambda: N2.condition([1.0], [0], H=np.eye(2)), TypeError, "index= .* or H="),
    (lambda: N2.condition([1.0, 2.0], [0]), ValueError, r"y must have shape \(1,\)"),
    (lambda: N2.condition([np.nan, 1.0], [0, 1]), ValueError, "1 values are not, the first at 0"),
    (lambda: N2.condition([1.0], H=np.ones((1, 3)), noise=1.0), ValueError, r"H must have shape"),
    (lambda: N2.condition([1.0], [0], noise=[1.0, 2.0]), ValueError, "noise must be a variance, 1"),
    (lambda: N2.condition([1.0], [0], noise=0.0), ValueError, "noise must be positive"),
    (lambda: N2.affine(np.ones((2, 3))), ValueError, r"A must have shape \(m, 2\), got \(2, 3\)"),
    (lambda: N2.kl_divergence(3), TypeError, "must be a MultivariateNormal, got int"),
    (lambda: N2.kl_divergence(pl.MultivariateNormal(0, np.eye(3))), ValueError, "2 and 3"),
    (lambda: N2 + N2, TypeError, "independent"),
    (lambda: N2 * [1.0, 2.0], TypeError, r"pl.Diag\(c\) @ d"),
    (lambda: 0 * N2, ValueError, "other than 0"),
    (lambda: pl.MultivariateNormal(0, -np.eye(2)).sample(), pl.LinAlgError, "not positive semidef"),
]  # fmt: skip
N2 = pl.MultivariateNormal(0, np.eye(2))


@pytest.mark.parametrize("k", range(len(BAD)))
def test_errors(k):
    call, error, says = BAD[k]
    with pytest.raises(error, match=says):
        call()


def test_full_checks_find_what_a_factor_does_not():
    q = np.linalg.qr(fresh().standard_normal((4, 4)))[0]
    A = pl.Dense(q @ np.diag([5.0, 5.0, -0.1, -0.1]) @ q.T) + 0.0 * pl.Identity(4)
    with pl.config(check="full"), pytest.raises(pl.LinAlgError, match="eigenvalue -0.1"):
        pl.MultivariateNormal(0, A).entropy()


def test_long_sums():
    n = 300
    A = pl.Diag(np.ones(n))
    P = A @ pl.Tridiagonal(np.zeros(n - 1), np.ones(n), np.zeros(n - 1))
    for _ in range(5000):
        P = P + A
    assert pl.MultivariateNormal(0, P).dim == n
