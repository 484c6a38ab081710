"""pl.config(not_definite=...): what comes of a matrix that is not positive definite as assumed."""

import warnings

import numpy as np
import pytest

import pylinop as pl

GOOD = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
BAD = GOOD - 4 * np.eye(3)
B = np.ones((3, 2))


def large(n):
    """Positive definite but for one eigenvalue."""
    a = np.random.default_rng(0).standard_normal((n, n))
    a = a @ a.T / n + np.eye(n)
    a[-1, -1] = -1
    return a


@pytest.fixture(autouse=True)
def _no_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


ASKED = {
    "solve": lambda A: pl.solve(A, B),
    "solve one": lambda A: pl.solve(A, B[:, 0]),
    "from the right": lambda A: B.T @ pl.inv(A),
    "logdet": pl.logdet,
    "logabsdet": lambda A: pl.slogdet(A)[1],
    "det": pl.det,
    "inverse": lambda A: pl.inv(A).toarray(),
    "diagonal": lambda A: pl.inv(A).diagonal(),
    "trace": lambda A: pl.inv(A).trace(),
    "quad": lambda A: pl.inv_quad_logdet(A, B[:, 0])[0],
    "quad's logdet": lambda A: pl.inv_quad_logdet(A, B[:, 0])[1],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", ASKED)
def test_nan(name, dtype):
    with pl.config(not_definite="nan"):
        got = np.asarray(ASKED[name](pl.Dense(BAD.astype(dtype), "pos")))
        assert np.isnan(got).all()
        good = np.asarray(ASKED[name](pl.Dense(GOOD.astype(dtype), "pos")))
        assert np.isfinite(good).all()
    wanted = np.asarray(ASKED[name](pl.Dense(GOOD)))
    np.testing.assert_allclose(good, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [15, 16, 17, 100, 300])
def test_nan_at_several_sizes(n):
    with pl.config(not_definite="nan"):
        for made in (pl.Dense(large(n), "pos"), pl.Kron(pl.Dense(large(n), "pos"), np.eye(2))):
            assert np.isnan(pl.logdet(made))
            assert np.isnan(pl.solve(made, np.ones(made.shape[0]))).all()


@pytest.mark.parametrize("name", ["solve", "logdet", "inverse", "diagonal"])
def test_only_the_elements_of_a_batch_that_fail(name):
    stack = np.stack([GOOD, BAD, 2 * GOOD, BAD])
    with pl.config(not_definite="nan"):
        got = ASKED[name](pl.Dense(stack, "pos"))
        grid = ASKED[name](pl.Dense(stack.reshape(2, 2, 3, 3), "pos"))
    np.testing.assert_array_equal(grid.reshape(got.shape), got)
    assert [bool(np.isnan(x).all()) for x in got] == [False, True, False, True]
    for k in (0, 2):
        np.testing.assert_allclose(got[k], ASKED[name](pl.Dense(stack[k])), rtol=1e-12, atol=1e-15)


def test_formulas():
    with pl.config(not_definite="nan"):
        K = pl.lazy(BAD, assume_a="pos")
        x, det, other = pl.evaluate(pl.solve(K, B), pl.logdet(K), pl.lazy(GOOD) @ B)
    assert np.isnan(x).all() and np.isnan(det)
    np.testing.assert_array_equal(other, GOOD @ B)


def test_gradients():
    def nll(a):
        quad, log = pl.inv_quad_logdet(pl.Dense(a, "pos"), B[:, 0])
        return quad + log

    f = pl.value_and_grad(nll)
    with pl.config(not_definite="nan"):
        value, g = f(BAD)
        assert np.isnan(value) and np.isnan(g).all()
        value, g = f(GOOD)
    x = np.linalg.solve(GOOD, B[:, 0])
    np.testing.assert_allclose(g, np.linalg.inv(GOOD) - np.outer(x, x), atol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            f(BAD)


def test_out_and_verified_answers():
    A = pl.Dense(BAD, "pos")
    with pl.config(not_definite="nan", verify=True):
        assert np.isnan(pl.solve(A, B)).all()
        assert np.isnan(pl.logdet(A))
    with pl.config(not_definite="nan"):
        out = np.zeros((4, 3))[::2].T  # 3 x 2, with strides
        (pl.inv(A)).matmul(B, out=out) if hasattr(A, "matmul") else np.copyto(out, pl.inv(A) @ B)
        assert np.isnan(out).all()
        assert (out.base[1::2] == 0).all()


@pytest.mark.parametrize("name", ASKED)
def test_an_error(name):
    A = pl.Dense(BAD, "pos")
    with pl.config(not_definite="raise"):
        with pytest.raises(np.linalg.LinAlgError, match=r"Dense \(3, 3\).*positive definite"):
            ASKED[name](A)
        assert np.isfinite(ASKED[name](pl.Dense(GOOD, "pos"))).all()


def test_without_it_a_solve_goes_on_by_lu():
    A = pl.Dense(BAD, "pos")
    with pl.config(not_definite="nan"):
        assert np.isnan(pl.solve(A, B)).all()
    with pytest.warns(pl.FallbackWarning):
        x = pl.solve(A, B)
    np.testing.assert_allclose(x, np.linalg.solve(BAD, B), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="not_definite='nan'"):
        pl.logdet(A)


def test_words():
    with pytest.raises(ValueError, match="'fallback', 'raise' or 'nan', got 'NaN'"):
        pl.config(not_definite="NaN")


def test_gradients_of_what_is_nan_are_nan():
    """Also where a part of them would be a number, as the trace of an inverse by LU."""
    A, n = pl.Dense(np.diag([1.0, -2.0, 3.0, -4.0]), "pos"), 4
    y = np.ones(n)
    f = lambda c: sum(pl.inv_quad_logdet(A + c * pl.Identity(n), y))  # noqa: E731
    with pl.config(not_definite="nan"):
        value, g = pl.value_and_grad(f)(0.1)
        assert np.isnan(value) and np.isnan(g)
        assert np.isnan(pl.grad(f)(0.1))
        assert np.isfinite(pl.grad(f)(5.0))


def of_kind(kind, d):
    """Assumed positive definite, d on the diagonal and faint beside it."""
    n = len(d)
    if kind == "Dense":
        return pl.Dense(np.diag(d) + 0.01, "pos")
    if kind == "Tridiagonal":
        return pl.Tridiagonal(0.01 + 0 * d[1:], d, 0.01 + 0 * d[1:], assume_a="pos")
    ab = np.full((5, n), 0.01)
    ab[2] = d
    return pl.Banded((2, 2), ab, assume_a="pos")


def gram(P, X):
    return P + 0.1 * (X.T @ X)


SUMS = {
    "shifted": lambda P, n: P + 0.5 * pl.Identity(n),
    "from the left": lambda P, n: 0.5 * pl.Identity(n) + 2 * P,
    "of low rank": lambda P, n: P + pl.LowRank(np.full((n, 1), 0.1)),
    "of a Gram matrix": lambda P, n: gram(P, pl.Dense(np.eye(n)[:3])),
    "of two": lambda P, n: P + of_kind("Dense", np.full(n, 0.1)),
    "LazyArray": lambda P, n: pl.lazy(P) + 0.5 * pl.Identity(n),
}


@pytest.mark.parametrize("n", [6, 17, 100])
@pytest.mark.parametrize("kind", ["Dense", "Tridiagonal", "Banded"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_that_are_definite_if_their_terms_are(name, kind, n):
    """Solves say what determinants say; of what is true nothing is said."""
    b = np.ones(n)
    good = SUMS[name](of_kind(kind, np.full(n, 2.0)), n)
    bad = SUMS[name](of_kind(kind, np.where(np.arange(n) < 2, -3.0, 2.0)), n)
    asked = (
        lambda A: pl.solve(A, b),
        lambda A: pl.inv(A).toarray() if not hasattr(A, "_args") else pl.inv(A),
        lambda A: pl.diagonal(pl.inv(A)),
        lambda A: pl.inv_quad_logdet(A, b)[0],
        lambda A: pl.inv_quad_logdet(A, b)[1],
        pl.logdet,
    )
    for f in asked:
        with pl.config(check_plans=True):
            assert np.isfinite(np.asarray(f(good))).all()
            with pl.config(not_definite="nan"):
                assert np.isnan(np.asarray(f(bad))).all()
                assert np.isfinite(np.asarray(f(good))).all()
            with (
                pl.config(not_definite="raise"),
                pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"),
            ):
                np.asarray(f(bad))
    with pytest.warns(pl.FallbackWarning, match="assumed positive definite"):
        got = np.asarray(pl.solve(bad, b))
    dense = np.asarray(bad.toarray())
    np.testing.assert_allclose(got, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("kind", ["Dense", "Tridiagonal", "Banded"])
def test_sums_of_which_nothing_is_assumed(kind, n):
    b = np.ones(n)
    for P in (
        of_kind(kind, np.where(np.arange(n) < 2, -3.0, 2.0)),
        of_kind(kind, np.full(n, 0.3)),
    ):
        A = P - 0.5 * pl.Identity(n)
        want = np.linalg.slogdet(A.toarray())
        for then in ("fallback", "nan", "raise"):
            with pl.config(not_definite=then):
                np.testing.assert_allclose(A.toarray() @ pl.solve(A, b), b, rtol=1e-9)
                np.testing.assert_allclose(pl.slogdet(A), want, rtol=1e-10)
    A = of_kind(kind, np.full(n, 2.0)) + pl.Diag(np.where(np.arange(n) < 2, -9.0, 0.1))
    for then in ("fallback", "nan", "raise"):
        with pl.config(not_definite=then):
            np.testing.assert_allclose(A.toarray() @ pl.solve(A, b), b, rtol=1e-9)
            np.testing.assert_allclose(pl.slogdet(A), np.linalg.slogdet(A.toarray()), rtol=1e-10)


@pytest.mark.parametrize("join", [pl.BlockDiag, pl.Kron])
def test_of_an_empty_batch_nothing_has_to_be_definite(join):
    none = np.zeros((0, 2, 2))
    for op in (join(none, -np.eye(3)), join(-np.eye(3), none), 2 * join(none, -np.eye(1))):
        L = pl.cholesky(op)
        assert L.shape == op.shape == np.linalg.cholesky(op.toarray()).shape
        assert pl.sqrt_inv_matmul(op, np.ones(op.shape[-1:] + (4,))).shape == (*op.shape[:-1], 4)
        assert pl.sample(op, 3, rng=0).shape == pl.sample(pl.Dense(op.toarray()), 3, rng=0).shape
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(join(np.eye(2)[None], -np.eye(3)))
