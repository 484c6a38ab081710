"""Gradients of log det by stochastic Lanczos quadrature, and their statistical errors; of iterative
solves of stacks."""

import numpy as np
import pytest
from gradients.differences import check

import pylinop as pl

RNG = np.random.default_rng(41)
N = 40
X = RNG.standard_normal((N, 2))
THETA = np.array([1.2, 0.9, 0.3])


def covariance(theta):
    K = pl.Kernel("rbf", X, variance=theta[0], length_scale=theta[1])
    return K + theta[2] * pl.Identity(N)


def estimated(theta, seed, **how):
    return pl.logdet(covariance(theta), method="slq", rng=seed, **how)


def test_the_gradient_is_of_the_same_probes():
    """z^T A^-1 dA z, of the signs that the value is of."""
    value, g, (wide, width) = pl.value_and_grad(
        lambda t: estimated(t, 3, num_samples=12), has_error=True
    )(THETA)
    K = pl.evaluate(covariance(THETA))
    kernel = pl.Kernel("rbf", X, variance=THETA[0], length_scale=THETA[1])
    eager = pl.estimate_logdet(kernel + THETA[2] * pl.Identity(N), rng=3, num_samples=12)
    assert np.isclose(value, eager.value, rtol=1e-9)
    assert eager.error / 2 <= wide <= eager.error  # which has the quadrature's brackets too
    words = np.random.default_rng(3).integers(0, 2**64, (12, 1), np.uint64)
    Z = np.unpackbits(words.view(np.uint8), axis=-1, count=N) * 2.0 - 1.0
    h = 1e-5
    each = []
    for e in np.eye(3):
        up, down = (pl.evaluate(covariance(THETA + s * h * e)) for s in (1, -1))
        dK = (up - down) / (2 * h)
        each.append([z @ np.linalg.solve(K, dK @ z) for z in Z])
    each = np.array(each)
    np.testing.assert_allclose(g, each.mean(axis=1), rtol=1e-5)
    t = 2.200985  # Student's at 95 %, 11 degrees of freedom
    np.testing.assert_allclose(width, t * each.std(axis=1, ddof=1) / np.sqrt(12), rtol=1e-5)


def test_errors_hold_what_they_say():
    f = lambda t: pl.logdet(covariance(t))
    value, g = pl.value_and_grad(f)(THETA)
    held = np.zeros(4)
    for seed in range(60):
        got, by, (wide, width) = pl.value_and_grad(
            lambda t, s=seed: estimated(t, s, num_samples=20), has_error=True
        )(THETA)
        held += [abs(got - value) <= wide, *(np.abs(by - g) <= width)]
    assert (held >= 0.8 * 60).all(), held  # 95 % each: fewer than 48 once in 10,000


def test_more_probes_and_a_wider_confidence():
    f = lambda t, n, **how: estimated(t, 1, num_samples=n, **how)
    few = pl.value_and_grad(lambda t: f(t, 20), has_error=True)(THETA)[2]
    many = pl.value_and_grad(lambda t: f(t, 320), has_error=True)(THETA)[2]
    wide = pl.value_and_grad(lambda t: f(t, 20, confidence=0.99), has_error=True)(THETA)[2]
    assert many[0] < few[0] / 2 < wide[0]
    assert (many[1] < few[1] / 2).all() and (few[1] < wide[1]).all()


def test_a_likelihood_with_an_estimate_in_it():
    y = RNG.standard_normal(N)

    def nll(theta):
        K = covariance(theta)
        return 0.5 * (y @ pl.solve(K, y, method="cg") + estimated(theta, 0, num_samples=400))

    def exact(theta):
        quad, log = pl.inv_quad_logdet(covariance(theta), y)
        return 0.5 * (quad + log)

    value, g, (wide, width) = pl.value_and_grad(nll, has_error=True)(THETA)
    wanted, by = pl.value_and_grad(exact)(THETA)
    assert abs(value - wanted) <= 2 * wide and (np.abs(g - by) <= 2 * width).all()
    assert 0 < wide < 0.1 * abs(wanted)


def test_nested_arguments_and_values_without_estimates():
    d = {"d": np.array([1.0, 2.0, 3.0]), "U": np.ones((3, 1))}
    f = lambda p: pl.logdet(pl.Diag(p["d"]) + pl.LowRank(p["U"]), method="slq", rng=0)
    _, g, (_, width) = pl.value_and_grad(f, has_error=True)(d)
    assert g["d"].shape == width["d"].shape == (3,) and width["U"].shape == (3, 1)
    _, _, (wide, width) = pl.value_and_grad(lambda x: np.sum(x * x), has_error=True)(d["d"])
    assert wide == 0 and (width == 0).all()
    (_, aux), _, (wide, _) = pl.value_and_grad(lambda p: (f(p), 7), has_aux=True, has_error=True)(d)
    assert aux == 7 and wide > 0
    D = pl.Diag(d["d"])
    by = pl.value_and_grad(lambda D: pl.logdet(D, method="slq", rng=0), has_error=True)(D)
    assert isinstance(by[1], pl.Diag) and isinstance(by[2][1], pl.Diag)


def test_complex_matrices():
    c = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))
    H = c @ c.conj().T + 5 * np.eye(4)
    f = lambda a: np.real(pl.logdet(pl.Dense(a, "pos"), method="slq", rng=0, num_samples=500))
    value, g, (wide, _) = pl.value_and_grad(f, has_error=True)(H)
    assert abs(value - np.linalg.slogdet(H)[1]) <= 2 * wide
    assert np.allclose(g, g.conj().T)
    np.testing.assert_allclose(g, np.linalg.inv(H), atol=0.02)


def test_second_derivatives_are_those_of_the_estimated_gradient():
    f = lambda t: estimated(t, 2)
    h, v = 1e-4, np.array([0.3, -0.2, 0.5])
    along = lambda t: pl.grad(f)(t) @ v
    wanted = [(along(THETA + h * e) - along(THETA - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(pl.hvp(f)(THETA, v), wanted, rtol=1e-4)


def test_wrong_use():
    A = pl.lazy(np.eye(3))
    for how, error, match in (
        ({"rtol": 0.1}, TypeError, "rtol: an estimate that is computed later"),
        ({"num_samples": 3}, ValueError, "at least 10"),
        ({"samples": 20}, TypeError, "unexpected keyword"),
    ):
        with pytest.raises(error, match=match):
            pl.logdet(A, method="slq", **how)
    with pytest.raises(np.linalg.LinAlgError, match=r"square matrix, got shape \(3, 2\)"):
        pl.logdet(pl.lazy(np.ones((3, 2))), method="slq")
    a = np.diag([1.0, -1.0, 2.0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.logdet(pl.lazy(a), method="slq", rng=0).toarray()
    with pytest.raises(pl.ConvergenceError, match="not Hermitian positive definite"):
        pl.grad(lambda a: pl.logdet(a, method="slq", rng=0))(a)


@pytest.mark.parametrize("shape", [(5, 1), (2, 5, 2), (5,)])
def test_iterative_solves_of_stacks(shape):
    a, b = RNG.standard_normal((2, 5, 5)), RNG.standard_normal(shape)
    A = a @ a.mT + 5 * np.eye(5)
    f = lambda A, b: np.sum(pl.solve(A, b, method="cg", rtol=1e-13) ** 2)
    value, found = pl.value_and_grad(f, (0, 1))(A, b)
    columns = b if b.ndim > 1 else b[:, None]
    g = lambda A, b: np.sum(pl.solve(A, b) ** 2)
    wanted, by = pl.value_and_grad(g, (0, 1))(A, columns)
    assert np.isclose(value, wanted)
    np.testing.assert_allclose(found[0], by[0], atol=1e-10)
    np.testing.assert_allclose(found[1], by[1].reshape(shape), atol=1e-10)
    check(lambda b: f(A, b), b)


def test_an_adjoint_solve_that_does_not_converge_raises():
    """A x = e_0 is solved at once, A^H z = g in as many steps as A has rows."""
    n = 60
    A, b = np.diag(np.linspace(1, 1e3, n)), np.eye(n)[0]
    A[0, 1:] = 1
    f = lambda A: pl.solve(A, b, method="gmres", maxiter=2) @ np.arange(n)
    assert pl.evaluate(f(pl.lazy(A))) == 0
    with pytest.raises(pl.ConvergenceError, match="did not converge in 2 iterations"):
        pl.grad(f)(A)
