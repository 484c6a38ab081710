"""`expm(A) @ x` by products with A: against mpmath, in every view and place, and when."""

import pickle

import mpmath
import numpy as np
import pytest
import scipy.linalg as sla
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core
from pylinop._eigen import exponential_action as action

N = 300


def exact(a, x):
    with mpmath.workdps(80):
        y = mpmath.expm(mpmath.matrix(a.tolist()), method="taylor") * mpmath.matrix(x.tolist())
        y = np.array([complex(v) for v in y])
    return y if np.iscomplexobj(a) else y.real


def symmetric(rng, w):
    q = np.linalg.qr(rng.standard_normal((len(w), len(w))))[0]
    a = (q * w) @ q.T
    return (a + a.T) / 2


def path(n):
    a = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    a[0, 0] = a[-1, -1] = 1
    return a


def hard(name, rng, n=8):
    z = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    k = rng.standard_normal((n, n))
    rates = np.abs(k) * 20
    return {
        "laplacian": lambda: -path(n),
        "laplacian, long": lambda: -1000 * path(n),
        "one eigenvalue far below": lambda: symmetric(rng, -np.r_[800.0, np.full(n - 1, 0.4)]),
        "graded and negative": lambda: symmetric(rng, -np.logspace(-6, 3, n)),
        "far negative": lambda: symmetric(rng, np.linspace(-300, -100, n)),
        "far positive": lambda: symmetric(rng, np.linspace(100, 300, n)),
        "hermitian": lambda: 10 * (z + z.conj().T),
        "rotation": lambda: 20 * (k - k.T),
        "schroedinger": lambda: 5j * (z + z.conj().T),
        "not normal": lambda: 30 * np.eye(n, k=1) - np.eye(n),
        "triangle, not normal": lambda: np.triu(z) * 10,
        "graded columns": lambda: k * np.logspace(1, -5, n),
        "negative, not normal": lambda: 15 * k - 60 * np.eye(n),
        "rates": lambda: rates - np.diag(rates.sum(axis=1)),
        "zero": lambda: np.zeros((n, n)),
        "multiple of the identity": lambda: -3.0 * np.eye(n),
        "nilpotent": lambda: np.eye(n, k=1),
    }[name]()


HARD = (
    "laplacian",
    "laplacian, long",
    "one eigenvalue far below",
    "graded and negative",
    "far negative",
    "far positive",
    "hermitian",
    "rotation",
    "schroedinger",
    "not normal",
    "triangle, not normal",
    "graded columns",
    "negative, not normal",
    "rates",
    "zero",
    "multiple of the identity",
    "nilpotent",
)


@pytest.fixture
def always(monkeypatch):
    """Products with A, also of tiny matrices."""
    monkeypatch.setattr(action, "_LEAST", 2)
    monkeypatch.setattr(action, "_WORTH", 0.0)
    monkeypatch.setattr(action, "_GAIN", 1e12)


@pytest.mark.parametrize("name", HARD)
def test_hard_matrices_against_mpmath(name, always):
    """The error is that of roundings of A: u |A| |exp(A)| |x|, as the dense form's is."""
    rng = np.random.default_rng(7)
    a = hard(name, rng)
    x = rng.standard_normal(len(a))
    want = exact(a, x)
    size = np.linalg.norm(sla.expm(a), 2) * np.linalg.norm(x) * (1 + np.linalg.norm(a, 2))
    for A in (pl.lazy(a), pl.Sparse(sp.csr_array(a))):
        e = pl.expm(A)
        e = e if isinstance(e, pl.LinearOperator) else _core._lazy_operator(e)
        if type(e) is not action.Exponential:
            assert name in ("zero", "multiple of the identity")
            continue
        way = e.way(x.astype(a.dtype))
        assert np.linalg.norm(way - want) <= 16 * 2.0**-53 * size
        np.testing.assert_array_equal(e @ x, way)
        single = action.Exponential.__matmul__(
            pl.expm(
                pl.Sparse(sp.csr_array(a * 1e-3)).astype(
                    np.complex64 if a.dtype.kind == "c" else np.float32
                )
            ),
            x.astype(np.float32),
        )
        assert single.dtype.itemsize == (8 if a.dtype.kind == "c" else 4)
        near = exact(a * 1e-3, x)
        assert np.linalg.norm(single - near) <= 1e-5 * (1 + np.linalg.norm(a, 2)) * np.linalg.norm(
            near
        )


def matrix(dtype, hermitian, rng, n=N):
    a = sp.random_array((n, n), density=3 / n, rng=rng, format="csr")
    if dtype.kind == "c":
        a = a + 1j * sp.random_array((n, n), density=3 / n, rng=rng, format="csr")
    return (0.5 * (a + a.conj().T) if hermitian else a).tocsr().astype(dtype)


def close(got, want, tol=1e-11):
    got = np.asarray(got.toarray() if hasattr(got, "toarray") else got)
    assert got.shape == np.shape(want)
    assert np.linalg.norm(got - want) <= tol * np.linalg.norm(want)


@pytest.mark.parametrize("how", ["operator", "lazy operator", "lazy array"])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [np.dtype("f8"), np.dtype("c16")])
def test_every_view_and_place(dtype, hermitian, how):
    rng = np.random.default_rng(3)
    s = matrix(dtype, hermitian, rng)
    A = {"operator": pl.Sparse, "lazy operator": lambda a: pl.lazy(pl.Sparse(a))}.get(
        how, lambda a: pl.lazy(a.toarray())
    )(s)
    E = sla.expm(0.7 * s.toarray())
    x, X = rng.standard_normal(N), rng.standard_normal((N, 3))
    e = pl.expm(0.7 * A)
    form = e if how == "operator" else _core._lazy_operator(e)
    assert type(form) is action.Exponential
    assert form.is_by_products(1)
    for got, want in (
        (e @ x, E @ x), (e @ X, E @ X), (x @ e, x @ E), (X.T @ e, X.T @ E), (e.T @ x, E.T @ x),
        (e.H @ X, E.conj().T @ X), (e.conj() @ x, E.conj() @ x), (e @ pl.lazy(x), E @ x),
        (pl.lazy(x) @ e @ pl.lazy(x), x @ E @ x), ((2 * e + pl.Identity(N)) @ x, 2 * E @ x + x),
        ((e @ e) @ x, E @ (E @ x)), (e, E), (pl.trace(e), np.trace(E)),
        (pl.diagonal(e), np.diagonal(E)), (e[:, 1], E[:, 1]), (e[2:5], E[2:5]),
        (pl.norm(e), np.linalg.norm(E)),
    ):  # fmt: skip
        close(got, want)
    close(pl.solve(e, x), np.linalg.solve(E, x), 1e-6)
    close(pl.slogdet(e)[1], np.linalg.slogdet(E)[1], 1e-9)
    whole = e if how != "operator" else pl.lazy(e)
    both = pl.evaluate(e @ pl.lazy(x), whole, pl.trace(whole))
    for got, want in zip(both, (E @ x, E, np.trace(E)), strict=True):
        close(got, want)


def test_it_is_of_the_matrix_as_it_was_and_pickles():
    rng = np.random.default_rng(5)
    s = matrix(np.dtype("f8"), False, rng)
    x = rng.standard_normal(N)
    e = pl.expm(pl.Sparse(s) + pl.Diag(np.ones(N)))
    y = e @ x
    s.data[:] = 0
    np.testing.assert_array_equal(e @ x, y)
    e.toarray()  # what ran before changes nothing
    np.testing.assert_array_equal(e @ x, y)
    for again in (pickle.loads(pickle.dumps(e)), e.copy()):
        np.testing.assert_array_equal(again @ x, y)


def test_who_goes_by_products():
    """By price: thin operands of matrices of some size whose exponential is dear."""
    rng = np.random.default_rng(11)
    x, ones = rng.standard_normal(N), np.ones(N)
    kinds = {
        "Toeplitz": pl.Toeplitz(0.5 ** np.arange(N)),
        "Toeplitz, not Hermitian": pl.Toeplitz(0.5 ** np.arange(N), 0.3 ** np.arange(N)),
        "Tridiagonal": pl.Tridiagonal(np.ones(N - 1), -2 * np.ones(N), np.ones(N - 1)),
        "Banded": pl.Banded((2, 2), np.full((5, N), 0.1)),
        "Triangular": pl.Triangular(np.tril(np.ones((N, N))) / N),
        "LowRank + Diag": pl.LowRank(np.ones((N, 1)) / N) + pl.Diag(np.arange(N) / N),
        "integers": pl.Sparse(sp.eye_array(N, k=1, dtype=int).tocsr()),
        "sum": pl.Sparse(sp.eye_array(N, k=3)) + pl.Tridiagonal(ones[1:], ones, ones[1:]),
    }  # fmt: skip
    for name, A in kinds.items():
        e = pl.expm(A)
        assert type(e) is action.Exponential, name
        E = sla.expm(A.toarray().astype(float))
        close(e @ x, E @ x)
        close(x @ e, x @ E)
        wide = rng.standard_normal((N, N))
        close(e @ wide, E @ wide)
    far = pl.Sparse(1e5 * matrix(np.dtype("f8"), False, rng))  # of a large norm: the dense form
    small = pl.Sparse(matrix(np.dtype("f8"), False, rng, 60))
    quick = pl.KronSum(np.eye(20), np.eye(20)), pl.Diag(x), pl.Circulant(x), pl.Laplacian((20, 15))
    callable_ = pl.MatVec((N, N), lambda v: v / 2, dtype=float)
    read = pl.Dense(np.tril(np.ones((N, N))) / N, assume_a="lower triangular") + pl.Identity(N)
    for A in (far, small, *quick, callable_, pl.Dense(np.eye(N)), read):
        with np.errstate(all="ignore"):
            assert type(pl.expm(A)) is not action.Exponential


def test_one_triangle_is_read_of_what_is_assumed_hermitian():
    rng = np.random.default_rng(13)
    a = symmetric(rng, np.linspace(-1, 1, N))
    other = np.triu(a) + np.tril(rng.standard_normal((N, N)), -1)
    x = rng.standard_normal(N)
    y = pl.expm(pl.lazy(other, assume_a="sym")) @ x
    close(y, pl.expm(pl.Dense(other, assume_a="sym")).toarray() @ x)


def test_what_is_not_finite_goes_by_the_dense_form():
    rng = np.random.default_rng(17)
    e = pl.expm(pl.Sparse(matrix(np.dtype("f8"), True, rng)))
    x = rng.standard_normal(N)
    x[3] = np.nan
    assert np.isnan(e @ x).all()


def test_explain_names_the_way():
    rng = np.random.default_rng(19)
    A = pl.Sparse(matrix(np.dtype("f8"), True, rng))
    assert "columns by products, a Chebyshev series of degree" in " ".join(
        str(A.explain("expm")).split()
    )
    with pl.explaining() as e:
        pl.expm(A) @ np.ones(N)
    assert "products with A: a Chebyshev series of degree" in str(e)


def test_derivatives():
    rng = np.random.default_rng(23)
    n = 120
    a, d = (rng.standard_normal((n, n)) / (2 * n) for _ in range(2))
    y = rng.standard_normal(n)

    def f(A):
        return np.sum((pl.expm(A) @ y) ** 2)

    assert type(_core._lazy_operator(pl.expm(pl.lazy(a)))) is action.Exponential
    value, g = pl.value_and_grad(f)(a)
    close(value, f(pl.lazy(a)).toarray(), 1e-13)
    E, F = sla.expm_frechet(a, d)
    close(np.sum(np.asarray(g) * d), 2 * (E @ y) @ (F @ y), 1e-10)
    h = 1e-4
    ends = [np.asarray(pl.grad(f)(a + t * d)) for t in (h, -h)]
    close(np.asarray(pl.hvp(f)(a, d)), (ends[0] - ends[1]) / (2 * h), 1e-6)


@pytest.mark.parametrize("also", [lambda e: e, pl.trace, lambda e: e[2:5].sum()])
def test_the_whole_serves_its_products_in_one_evaluation(also):
    rng = np.random.default_rng(29)
    s = matrix(np.dtype("f8"), True, rng)
    x = rng.standard_normal(N)
    e = pl.expm(pl.lazy(pl.Sparse(s)))
    with pl.explaining() as said:
        y, _ = pl.evaluate(e @ x, also(e))
    assert "products with A" not in str(said)
    close(y, sla.expm(s.toarray()) @ x)
    with pl.explaining() as said:
        pl.evaluate(pl.expm(pl.lazy(pl.Sparse(s))) @ x, pl.lazy(x) * 2)
    assert "products with A" in str(said)


def test_explain_of_the_exponential_itself(rng):
    """What each product takes, without making it; all else as of the dense form."""
    s = sp.random(600, 600, 0.01, random_state=1, format="csr")
    s = -0.1 * (s + s.T)
    E = pl.expm(pl.Sparse(s))
    assert type(E) is action.Exponential
    e = E.explain("apply", rng.standard_normal(600))
    assert "a Chebyshev series" in str(e)
    assert e.flops == 2 * s.nnz * E.way.products
    assert "Chebyshev" not in str(E.explain("apply", np.ones((600, 600))))
    assert E.explain("solve", np.ones(600)).flops > 0
    assert E.explain("logdet").flops <= 600 * 2
    np.testing.assert_allclose(E.logdet(), s.diagonal().sum(), rtol=1e-12)
