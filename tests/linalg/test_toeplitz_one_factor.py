"""Solves and determinants of one Toeplitz or Hankel matrix in one plan come from one recursion."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl


def matrices(n, dtype):
    t = np.exp(-np.arange(n) / 7.0).astype(dtype)
    if np.dtype(dtype).kind == "c":
        t = t * np.exp(0.3j * np.arange(n))
    definite = t.copy()
    definite[0] = definite[0].real + 0.5
    indefinite = t.copy()
    indefinite[0] = 0.1
    other = (0.4 * t * np.cos(3.0 * np.arange(n))).astype(dtype)
    other[0] = definite[0]
    low = np.r_[other[:0:-1], definite]
    return {
        "definite": (pl.Toeplitz(definite), scipy.linalg.toeplitz(definite)),
        "indefinite": (pl.Toeplitz(indefinite), scipy.linalg.toeplitz(indefinite)),
        "general": (pl.Toeplitz(definite, other), scipy.linalg.toeplitz(definite, other)),
        "Hankel": (pl.Hankel(low[:n], low[n - 1 :]), scipy.linalg.hankel(low[:n], low[n - 1 :])),
        "T + c I": (
            pl.Toeplitz(definite) + 0.5 * pl.Identity(n),
            scipy.linalg.toeplitz(definite) + 0.5 * np.eye(n),
        ),
    }


def factors(explanations):
    return [
        s["name"]
        for e in explanations
        for s in e.steps
        if s["took"] is not None
        and s["name"] in ("toeplitz-factor", "getrf", "potrf")
        and s["kept"]
    ]


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n", [30, 100, 257, 600])
@pytest.mark.parametrize("which", ["definite", "indefinite", "general", "Hankel", "T + c I"])
def test_solve_and_determinant_together(which, n, dtype):
    a, dense = matrices(n, dtype)[which]
    b = np.random.default_rng(0).standard_normal((n, 2)).astype(dtype)
    with pl.explaining() as e:
        lazy = pl.lazy(a)
        x, sign, log = pl.evaluate(pl.solve(lazy, b), *pl.slogdet(lazy))
    eps = np.finfo(dtype).eps
    wide = dense.astype(np.result_type(dtype, np.float64))
    size = np.linalg.norm(wide, 2) * np.linalg.norm(x) + np.linalg.norm(b)
    assert np.linalg.norm(wide @ x - b) <= 10 * n * eps * size
    s, v = np.linalg.slogdet(wide)
    cond = np.linalg.cond(wide)
    np.testing.assert_allclose(log, v, rtol=1e-10, atol=100 * n * eps * cond)
    assert abs(sign - s) <= 100 * n * eps * cond
    many = factors(e.plans)
    if which in ("general", "Hankel"):  # determinants of those go by LU up to another size
        assert many.count("toeplitz-factor") <= 1
    else:
        assert len(many) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 300])
def test_a_negative_definite_one_differs_in_signs_alone(n, dtype):
    """The recursion of -T takes the steps of that of T, bit by bit; an elimination does not."""
    rng = np.random.default_rng(n)
    c = (0.9 ** np.arange(n) * np.exp(0.2j * np.arange(n))).astype(dtype, casting="unsafe")
    c[0] += 0.5 + rng.random()
    T = pl.Toeplitz(c, c.conj())
    b = rng.standard_normal(n)
    with pl.config(check_plans=True, verify=True):
        (sign, value), (other, same) = pl.slogdet(T), pl.slogdet(-T)
        x, y = pl.evaluate(pl.solve(pl.lazy(-T), b), pl.logdet(pl.lazy(T)))
    if n == 300 and dtype is np.float64:  # small ones go by the dense form
        assert same == value
    assert abs(sign - 1) < 1e-13 * n and abs(other - (-1) ** n) < 1e-13 * n
    want = np.linalg.slogdet(T.toarray())[1]
    for got in (value, same, y):
        assert abs(got - want) <= 1e-13 * n * (1 + abs(want))
    np.testing.assert_allclose(-T.toarray() @ x, b, atol=1e-12 * n)


def test_a_solve_alone_may_take_gradients_and_the_same_bits_come_again():
    n = 2000
    c = 0.9 ** np.arange(n) + (np.arange(n) == 0)
    b = np.ones(n)
    alone = pl.solve(pl.Toeplitz(c), b)
    for _ in range(2):
        t = pl.lazy(pl.Toeplitz(c.copy()))
        x, log = pl.evaluate(pl.solve(t, b), pl.logdet(t))
        np.testing.assert_allclose(x, alone, rtol=1e-12)
        again = pl.solve(pl.Toeplitz(c.copy()), b)
        assert (again == alone).all()
    want = np.linalg.slogdet(scipy.linalg.toeplitz(c))[1]
    np.testing.assert_allclose(log, want, rtol=1e-12)


def test_a_singular_one_is_told_of():
    t = pl.lazy(pl.Toeplitz(np.ones(100)))
    with pytest.raises(np.linalg.LinAlgError):
        pl.evaluate(pl.solve(t, np.ones(100)), pl.logdet(t))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [17, 130, 300])
@pytest.mark.parametrize("cut", [slice(8, None), slice(None, None, 2), slice(-2, 1, -1)])
def test_the_same_rows_as_columns_are_hermitian_too(cut, n, dtype):
    """Their determinants took a Cholesky factor of the dense form, 14 times as long."""
    a, dense = matrices(n + 8, dtype)["T + c I"]
    part, want = a[cut, cut], dense[cut, cut]
    for sign in (1, -1):
        with pl.config(check_plans=True, verify=True), pl.explaining() as e:
            got = pl.slogdet(sign * part)
        np.testing.assert_allclose(got, np.linalg.slogdet(sign * want), rtol=1e-10, atol=1e-9)
        names = {s["name"] for p in e.plans for s in p.steps if s["took"] is not None}
        assert len(want) < 96 or not names & {"potrf", "getrf"}
    b = np.random.default_rng(0).standard_normal(len(want))
    np.testing.assert_allclose(pl.solve(-part, b), np.linalg.solve(-want, b), rtol=1e-9, atol=1e-9)
    other = pl.Toeplitz(dense[:, 0], dense[0] + (np.arange(n + 8) == 3))[1:, 1:]  # not Hermitian
    want = np.linalg.slogdet(other.toarray())
    np.testing.assert_allclose(pl.slogdet(other), want, rtol=1e-10, atol=1e-9)
