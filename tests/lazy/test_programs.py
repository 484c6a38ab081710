"""`pl.evaluate`: values of any shape and dtype by one plan."""

import warnings

import numpy as np
import pytest
from drawn import DTYPES, close, positive, values

import pylinop as pl

N = 20


def plans(*expressions):
    with pl.explaining() as e:
        got = pl.evaluate(*expressions)
    return got, e.plans


def steps(found):
    return [s["name"] for p in found for s in p.steps]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_a_likelihood_is_one_plan_with_one_factor(rng, dtype, n):
    a, y = positive(rng, n, dtype), values(rng, n, dtype)
    K, b = pl.lazy(a, "pos"), pl.lazy(y)
    s = pl.solve(K, b)
    wide = a.astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    asked = (b @ s, s, pl.logdet(K), np.trace(K), np.diagonal(pl.inv(K)), pl.inv(K))
    got, found = plans(*asked)
    inverse = np.linalg.inv(wide)
    want = y @ inverse @ y, inverse @ y, np.linalg.slogdet(wide)[1], wide.trace()
    for g, w, e in zip(got, (*want, inverse.diagonal(), inverse), asked, strict=True):
        close(g, w)
        assert g.shape == e.shape and g.dtype == e.dtype and not g.flags.writeable
    assert len(found) == 1
    assert steps(found).count("potrf") == 1 and "getrf" not in steps(found)


def test_dtypes_and_batches_are_mixed(rng):
    a, b = values(rng, (N, N), "complex128"), values(rng, (N, N), "float32")
    c, d = values(rng, (3, 5, 5), "float64"), values(rng, (N, 7), "complex64")
    A, B, C, D = map(pl.lazy, (a, b, c, d))
    got, found = plans(B @ D, np.linalg.det(C), A @ A, C @ C, B @ B, np.trace(B), np.diagonal(A))
    want = b @ d, np.linalg.det(c), a @ a, c @ c, b @ b, b.trace(), a.diagonal()
    for g, w in zip(got, want, strict=True):
        close(g, w)
        assert g.dtype == w.dtype and g.shape == w.shape
    assert len(found) == 1


def test_numbers_and_functions_of_results(rng):
    a, y = positive(rng, N, "float64"), values(rng, N, "float64")
    K = pl.lazy(a, "pos")
    s = pl.solve(K, y)
    got, found = plans(-0.5 * (y @ s) - 0.5 * pl.logdet(K), np.exp(s), np.abs(K @ y)[3])
    want = np.linalg.solve(a, y)
    close(got[0], -0.5 * y @ want - 0.5 * np.linalg.slogdet(a)[1])
    close(got[1], np.exp(want))
    close(got[2], abs(a @ y)[3])
    assert steps(found).count("potrf") == 1


@pytest.mark.parametrize("count", [2, 8, 9, 40])
def test_any_number_of_results(rng, count):
    a, x = values(rng, (N, N), "float64"), values(rng, N, "float64")
    A = pl.lazy(a)
    got, found = plans(*(A @ (x * k) for k in range(count)), *(np.trace(k * A) for k in range(3)))
    for k in range(count):
        close(got[k], a @ (x * k))
    for k in range(3):
        close(got[count + k], k * a.trace())
    assert len(found) == 1


def test_a_result_twice_and_within_another(rng):
    a, b = values(rng, (N, N), "float64"), values(rng, (N, N), "float64")
    A, B = pl.lazy(a), pl.lazy(b)
    S = A @ B
    got, found = plans(S, S, S.T, S @ A, np.trace(S), np.trace(S), A + 0)
    for g, w in zip(got[:4], (a @ b, a @ b, (a @ b).T, a @ b @ a), strict=True):
        close(g, w)
    assert steps(found).count("gemm") == 2
    assert got[4] == got[5]


def test_slogdet_is_deferred(rng):
    a = values(rng, (3, N, N), "complex128")
    for x in (a[0], a, a.real, a[0].astype("complex64"), np.zeros((2, 2)), np.ones((0, 0))):
        A = pl.lazy(x)
        for found in (pl.slogdet(A), np.linalg.slogdet(A)):
            assert isinstance(found.sign, pl.LazyArray) and isinstance(found[1], pl.LazyArray)
            want = np.linalg.slogdet(x)
            for g, w in zip(pl.evaluate(*found), want, strict=True):
                assert np.array_equal(g, w) if np.isinf(w).any() else close(g, w) is None
                assert g.dtype == w.dtype and g.shape == w.shape
    _, found = plans(*pl.slogdet(pl.lazy(a[0])), pl.inv(pl.lazy(a[1])))
    assert len(found) == 1
    with pytest.raises(np.linalg.LinAlgError, match=r"must be square: \(2, 3\)"):
        pl.slogdet(pl.lazy(np.ones((2, 3))))


def test_what_is_singular_says_so_by_itself(rng):
    A, B = pl.lazy(np.zeros((3, 3))), pl.lazy(np.eye(3))
    bad, good = pl.inv(A), B @ B
    with pytest.raises(np.linalg.LinAlgError) as error:
        pl.evaluate(good, bad, pl.logdet(B))
    notes = getattr(error.value, "__notes__", [])
    assert "test_programs.py" in "".join(notes) + str(error.value)
    close(good.toarray(), np.eye(3))


def test_warnings_name_their_operator(rng):
    a = positive(rng, N, "float64")
    a[0] = a[1] * (1 + 1e-15)
    near, fine = pl.lazy(a), pl.lazy(positive(rng, N, "float64"), "pos")
    with pytest.warns(pl.IllConditionedWarning) as found:
        pl.evaluate(pl.inv(near) @ np.ones(N), pl.logdet(fine))
    assert "Dense" in str(found[0].message) or "LazyArray" in str(found[0].message)
    wrong = pl.lazy(np.diag([1.0, -1.0]), "pos")
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.evaluate(pl.logdet(fine), pl.logdet(wrong))
    with pytest.warns(pl.FallbackWarning, match="positive definite"):
        got = pl.evaluate(pl.solve(wrong, np.ones(2)), np.trace(fine))
    close(got[0], [1, -1])


def test_memory_that_one_plan_has_not(rng):
    a = values(rng, (200, 200), "float64")
    A, B = pl.lazy(a), pl.lazy(a[::-1].copy())
    with pl.config(memory_limit=700_000):
        got = pl.evaluate(A @ B, B @ A)
    close(got[0], a @ a[::-1])
    close(got[1], a[::-1] @ a)


def test_a_dense_form_that_nobody_asked_for_is_announced(rng):
    k = positive(rng, 30, "float64")
    K = pl.lazy(pl.Kron(pl.Dense(k, "pos"), pl.Dense(k, "pos")) + pl.Diag(rng.uniform(1, 2, 900)))
    with pl.config(warn_limit=1 << 20), pytest.warns(pl.MaterializationWarning, match="900"):
        pl.evaluate(pl.logdet(K), np.trace(K))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.evaluate(np.trace(K), np.diagonal(K))


def test_empty_results(rng):
    A, B = pl.lazy(np.ones((0, 4))), pl.lazy(np.ones((4, 0)))
    got = pl.evaluate(A @ B, B @ A, np.trace(A @ B), np.diagonal(A @ B), pl.logdet(A @ B))
    assert [g.shape for g in got] == [(0, 0), (4, 4), (), (0,), ()]
    assert got[2] == 0 and got[4] == 0 and not got[1].any()


def test_new_numbers_find_the_plan(rng):
    """A program's plan serves other coefficients too, and gives what theirs would."""
    a, y = positive(rng, N, "float64"), values(rng, N, "float64")
    for c in (0.5, 0.25, 3.0, -0.125):
        K = pl.lazy(pl.Dense(a, "sym") + c * pl.Identity(N))
        got = pl.evaluate(pl.solve(K, y), pl.logdet(K) * 2, np.trace(K))
        m = a + c * np.eye(N)
        for g, w in zip(got, (np.linalg.solve(m, y), 2 * pl.logdet(m), m.trace()), strict=True):
            close(g, w)


def test_operators_of_users_go_apart(rng):
    class Mine(pl.LinearOperator):
        def __init__(self, a):
            self.a = a
            super().__init__(a.dtype, a.shape)

        def _matvec(self, x):
            return self.a @ x

    a = values(rng, (5, 5), "float64")
    K, B = pl.lazy(Mine(a)), pl.lazy(a)
    got = pl.evaluate(K @ B, np.trace(K), B @ B, np.diagonal(B))
    for g, w in zip(got, (a @ a, a.trace(), a @ a, a.diagonal()), strict=True):
        close(g, w)


def test_one_expression_is_one_plan():
    r = np.random.default_rng()
    for n in (40, 200):
        x, y = r.standard_normal((n, n)), r.standard_normal(n)
        A = x @ x.T + n * np.eye(n)

        def formula(A=A, y=y):
            K = pl.lazy(A.copy(), assume_a="pos")
            return 0.5 * (y @ pl.solve(K, pl.lazy(y))) + np.log(pl.trace(pl.inv(K))) + pl.logdet(K)

        want = 0.5 * y @ np.linalg.solve(A, y) + np.linalg.slogdet(A)[1]
        want += np.log(np.trace(np.linalg.inv(A)))
        with pl.explaining() as e:
            got = pl.evaluate(formula())
        assert len(e.plans) == 1
        np.testing.assert_allclose(got, want, rtol=1e-10)
        np.testing.assert_allclose(float(formula()), want, rtol=1e-10)
        assert isinstance(got, np.ndarray) and got.shape == ()
    singular = pl.lazy(np.zeros((3, 3)))
    with pytest.raises(np.linalg.LinAlgError):
        pl.evaluate(1.0 + (np.ones(3) @ pl.solve(singular, np.ones(3))) + pl.logdet(singular))
    assert pl.evaluate() == ()
