"""Gradients through Cholesky factors, eigenvalues and eigenvectors, singular values,
pseudo-inverses."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(4)
N = 5


def matrix(dtype, m=N, n=N):
    a = RNG.standard_normal((m, n))
    return a + 1j * RNG.standard_normal((m, n)) if dtype == "c" else a


def definite(a):
    return a @ a.H + 3 * pl.Identity(N)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, upper):
    a, w = matrix(dtype), matrix(dtype)
    check(lambda a: np.sum(np.real(w * np.linalg.cholesky(definite(a), upper=upper))), a)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_eigenvalues(dtype):
    a, w = matrix(dtype), RNG.standard_normal(N)
    check(lambda a: np.sum(w * np.linalg.eigvalsh(definite(a))), a)
    check(lambda a: np.sum(w * np.linalg.eigh(definite(a))[0]), a)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_eigenvectors_up_to_their_phase(dtype):
    a, w = matrix(dtype), matrix(dtype)

    def f(a):
        values, Q = np.linalg.eigh(definite(a))
        return np.sum(np.abs(w @ Q) ** 2 * values)

    check(f, a)


def test_repeated_eigenvalues():
    """Values, and vectors of other values, have a derivative, what is made of their vectors none:
    not even of Q f(w) Q^H, a function of the matrix, can it be told from cotangents of w and Q."""
    a = np.diag([1.0, 1.0, 2.0])
    g = pl.grad(lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2)))(a)
    assert np.allclose(g, np.eye(3))

    v = RNG.standard_normal(3)
    check(lambda a: np.abs(v @ np.linalg.eigh((a + a.T) / 2)[1][:, 2]), a)
    w = RNG.standard_normal((3, 3))
    for function in (np.exp, lambda values: 0 * values + 1):
        for scale in (1.0, 1e-30):

            def f(a, function=function, scale=scale):
                values, Q = np.linalg.eigh((a + a.T) / 2)
                return scale * np.sum(w * ((Q * function(values)) @ Q.T))

            with pytest.raises(np.linalg.LinAlgError, match="repeated eigenvalues"):
                pl.grad(f)(a)
    with pytest.raises(np.linalg.LinAlgError, match="repeated eigenvalues"):
        pl.grad(lambda a: np.sum(w * np.linalg.eigh((a + a.T) / 2)[1]))(a)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_singular_values_and_pseudo_inverse(dtype, shape):
    a = matrix(dtype, *shape)
    w, x = RNG.standard_normal(min(shape)), matrix(dtype, *shape[::-1])
    check(lambda a: np.sum(w * np.linalg.svdvals(a)), a)
    check(lambda a: np.sum(w * np.linalg.svd(a, full_matrices=False)[1]), a)
    check(lambda a: np.sum(np.real(x * np.linalg.pinv(a))), a)


def test_second_derivatives():
    a, w = matrix("f"), RNG.standard_normal(N)
    check_second(lambda a: np.sum(w * np.linalg.cholesky(definite(a)) @ w), a)
    check_second(lambda a: np.sum(w * np.linalg.eigvalsh(definite(a))), a, rtol=1e-6)


def cut_matrix(dtype, m, n, hermitian=False, batch=()):
    """Of singular values 3, 2.2, 1 and smaller."""
    k = min(m, n)
    s = np.concatenate([[3, 2.2, 1], 0.3 / np.arange(1, k)])[:k]
    q = lambda size: np.linalg.qr(np.asarray([matrix(dtype, size, size) for _ in range(4)]))[0]
    U = q(m)[..., :k]
    made = (U * (s * (-1) ** np.arange(k))) @ (U if hermitian else q(n)[..., :k]).conj().mT
    return made if batch else made[0]


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (3, 5), (6, 6), (40, 20)])
@pytest.mark.parametrize("how", [{"rcond": 0.2}, {"rtol": 0.5}, {"rcond": 0.9}, {"rcond": 1e-9}])
def test_pseudo_inverse_whose_tolerance_cuts_values(dtype, shape, how):
    a, x = cut_matrix(dtype, *shape), matrix(dtype, *shape[::-1])
    check(lambda a: np.sum(np.real(x * np.linalg.pinv(a, **how))), a)
    check(lambda a: np.sum(np.real(x * pl.pinv(a, **how))), a)
    check(lambda a: np.sum(np.real(x * np.linalg.pinv(1e-80 * a, **how))) * 1e-80, a)
    t, step = matrix(dtype, *shape), 1e-7
    pinv = lambda a: np.linalg.pinv(a, **how)
    _, along = pl.jvp(pinv, (a,), (t,))
    wanted = (pinv(a + step * t) - pinv(a - step * t)) / (2 * step)
    assert np.abs(along - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_pseudo_inverse_that_cuts_values_of_stacks_hermitian_matrices_and_krons():
    a = cut_matrix("f", 5, 4, batch=(4,))
    x = RNG.standard_normal((4, 4, 5))
    check(lambda a: np.sum(x * np.linalg.pinv(a, rcond=0.5)), a)
    a, x = cut_matrix("c", 6, 6, hermitian=True), matrix("c", 6, 6)
    pinv = lambda a: np.linalg.pinv((a + a.H) / 2, rcond=0.5, hermitian=True)
    check(lambda a: np.sum(np.real(x * pinv(a))), a)
    a, b = cut_matrix("f", 3, 3), 0.9 * cut_matrix("f", 4, 4)
    x = RNG.standard_normal((12, 12))
    check(lambda a, b: np.sum(x * pl.pinv(pl.Kron(a, b), rcond=0.5)), a, b)
    a = np.diag([3.0, 1.0])
    g = pl.grad(lambda a: np.linalg.pinv(a, rcond=0.5)[0, 1])(a)
    assert np.allclose(g, [[0, 1 / 24], [1 / 8, 0]])


def test_where_a_pseudo_inverse_that_cuts_values_has_no_derivative():
    def f(a):
        return np.sum(pl.pinv(pl.Kron(a, np.diag([1.0, 0.64])), rcond=0.5))

    with pytest.raises(np.linalg.LinAlgError, match="equal singular values"):
        pl.grad(f)(np.diag([1.0, 0.64, 0.64**2]))
    x = matrix("f", 5, 5)
    g = lambda a: np.sum(x * np.linalg.pinv(a, rcond=0.5))
    with pytest.raises(np.linalg.LinAlgError, match="cuts no singular value; it cuts 3 of 5"):
        pl.hvp(g)(cut_matrix("f", 5, 5), x)
    check_second(lambda a: np.sum(x * np.linalg.pinv(a, rcond=1e-9)), matrix("f"), rtol=1e-6)


def test_second_derivatives_where_values_are_equal_and_their_slope_is_zero():
    """Of sums of squares they are 2, of a projection 0: what the first derivative is does not tell
    which, and 0 came out of both."""
    a = np.diag([3.0, 2.0, 0.0, 0.0])
    squares = {
        "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2) ** 2),
        "eigh": lambda a: np.sum(np.linalg.eigh((a + a.T) / 2)[0] ** 2),
        "svdvals": lambda a: np.sum(np.linalg.svdvals(a) ** 2),
        "svd": lambda a: np.sum(np.linalg.svd(a)[1] ** 2),
        "shifted": lambda a: np.sum((np.linalg.eigvalsh((a + a.T) / 2) - 1.0) ** 2),
        "tall": lambda a: np.sum(np.linalg.svdvals(a[:, :3]) ** 2),
    }
    v = np.arange(16.0).reshape(4, 4) - 7
    for name, f in squares.items():
        at = np.eye(4) if name == "shifted" else a
        with pytest.raises(np.linalg.LinAlgError, match="repeated"):
            pl.hvp(f)(at, v)
    stack = lambda a: np.sum(np.linalg.svdvals(a) ** 2)
    with pytest.raises(np.linalg.LinAlgError, match="repeated"):
        pl.hvp(stack)(np.stack([a, a]), np.stack([1e15 * a, v]))
    b = np.diag([3.0, 2.0, 1.0, 0.0])
    np.testing.assert_allclose(pl.hvp(squares["svdvals"])(b, v), 2 * v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pl.hvp(squares["svd"])(b, v), 2 * v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pl.hvp(squares["eigvalsh"])(b, v), v + v.T, rtol=1e-9, atol=1e-9)


def test_second_derivatives_of_a_low_rank():
    """Which moves no zero."""
    c = np.random.default_rng(7).standard_normal((5, 2))
    v = np.random.default_rng(8).standard_normal((5, 2))
    gram = lambda c: np.sum((c.T @ c) ** 2)
    for f in (
        lambda c: np.sum(np.linalg.svdvals(c @ c.T) ** 2),
        lambda c: np.sum(np.linalg.svdvals(c @ c.T)[:2] ** 2),
        lambda c: np.sum(np.linalg.eigvalsh(c @ c.T)[3:] ** 2),
    ):
        due = pl.hvp(gram)(c, v)
        np.testing.assert_allclose(pl.hvp(f)(c, v), due, rtol=1e-8, atol=1e-8)
