"""Derivatives of functions within a function that is differentiated."""

import numpy as np
import pytest
from gradients.differences import number

import pylinop as pl

N = 5


def f(a):
    return pl.logdet(pl.Diag(np.exp(a)) + pl.LowRank(np.reshape(a * a, (-1, 1)))) + np.sum(a**3)


def points():
    rng = np.random.default_rng(2)
    return rng.standard_normal(N), rng.standard_normal(N)


def test_second_derivatives_by_first_ones_twice():
    x, v = points()
    H, g = pl.hessian(f)(x), pl.grad(f)(x)
    close = lambda a, b: np.allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(H).max())
    assert close(pl.jacobian(pl.grad(f))(x), H)
    assert close(pl.grad(lambda a: np.sum(pl.grad(f)(a) ** 2))(x), 2 * H @ g)
    assert close(pl.grad(lambda a: pl.value_and_grad(f)(a)[0] * np.sum(a))(x), g * x.sum() + f(x))
    assert close(pl.jvp(pl.grad(f), (x,), (v,))[1], H @ v)
    assert close(pl.jvp(lambda a: pl.jvp(f, (a,), (v,))[1], (x,), (v,))[1], v @ H @ v)
    assert close(pl.vjp(pl.grad(f), x)[1](v)[0], H @ v)
    assert close(
        pl.grad(lambda a: pl.vjp(f, a)[1](a[0])[0] @ v)(x),
        x[0] * H @ v + (g @ v) * (np.arange(N) == 0),
    )
    assert close(
        pl.hvp(lambda a: pl.grad(f)(a) @ v)(x, v) @ v, pl.grad(lambda a: pl.hvp(f)(a, v) @ v)(x) @ v
    )


def test_all_derivatives_within_a_function():
    x, _ = points()
    third = pl.jacobian(pl.hessian(f))(x)
    close = lambda a, b: np.allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(third).max())
    H = pl.hessian(f)(x)
    assert close(
        pl.grad(lambda a: np.sum(pl.hessian(f)(a) ** 2))(x), 2 * np.einsum("ij,ijk", H, third)
    )
    assert close(pl.grad(lambda a: np.sum(pl.jacobian(pl.grad(f))(a)))(x), third.sum((0, 1)))
    g = pl.grad(lambda a: np.sum(pl.jacobian(lambda b, c: c * b * b, (0, 1))(a, a)[0] ** 2))(x)
    assert np.allclose(g, 16 * x**3)  # diag(2 a b) by both, squared
    assert np.allclose(
        pl.grad(lambda a: np.sum(pl.jacobian(lambda b: b[:0])(a)) + a[0])(x), np.eye(N)[0]
    )
    wanted = [(pl.hessian(f)(x + h) - pl.hessian(f)(x - h)) / 2e-5 for h in 1e-5 * np.eye(N)]
    assert np.allclose(third, wanted, rtol=0, atol=1e-7 * np.abs(third).max())


def test_third_derivatives():
    x, v = points()
    third = pl.grad(lambda a: pl.hvp(f)(a, v) @ v)(x) @ v
    h, second = 1e-3, lambda t: v @ pl.hvp(f)(x + t * v, v)
    wanted = sum(w * second(k * h) for k, w in ((-2, 1), (-1, -8), (1, 8), (2, -1))) / (12 * h)
    assert abs(third - wanted) < 1e-7 * (1 + abs(wanted))


def test_what_the_inner_function_holds_is_a_constant_to_it():
    x, _ = points()
    g = pl.grad(lambda a: np.sum(pl.grad(lambda b: np.sum(a * b * b))(a)))(x)  # d/da of 2 a a
    assert np.allclose(g, 4 * x)
    g = pl.grad(lambda a: pl.grad(lambda b: np.sum(a * b), 0)(a) @ np.ones(N))(x)
    assert np.allclose(g, 1)
    inner = pl.grad(lambda b, c: np.sum(b * np.exp(c)), (0, 1))
    g = pl.grad(lambda a: sum(map(np.sum, inner(a, 2.0 * a))))(x)
    assert np.allclose(g, 2 * np.exp(2 * x) + (1 + 2 * x) * np.exp(2 * x))
    unused = pl.grad(lambda a: np.sum(pl.grad(lambda b, c: np.sum(b), (0, 1))(a, a)[1] * a + a))(x)
    assert np.allclose(unused, 1)


def test_nested_arguments_and_aux():
    x, _ = points()
    inner = pl.grad(lambda d: (np.sum(d["a"] ** 3) + d["b"][0], d["a"]), has_aux=True)

    def outer(a):
        g, aux = inner({"a": a, "b": (a[0],)})
        return np.sum(g["a"] * aux) + g["b"][0]

    assert np.allclose(pl.grad(outer)(x), 9 * x * x)


def test_what_is_refused():
    x, v = points()
    D = pl.Diag(1 + x * x)
    with pytest.raises(TypeError, match="value of a LazyArray"):  # the vector alone is watched
        pl.grad(lambda a: np.sum(pl.hvp(f)(x, a)))(v)
    with pytest.raises(NotImplementedError, match="operators within"):
        pl.grad(lambda a: pl.grad(lambda b, D: b @ (D @ b), (0, 1))(a, D)[0] @ a)(x)
    with pytest.raises(ValueError, match="a gradient is of one real number"):
        pl.grad(lambda a: np.sum(pl.grad(lambda b: b * b)(a)))(x)
    with pytest.raises(TypeError, match="value of a LazyArray"):
        pl.grad(lambda a: np.sum(pl.grad(lambda b: np.sum(b) * float(b[0]))(a)))(x)
    assert isinstance(number(lambda a: pl.grad(f)(x) @ a, [x]), float)


def test_programs_of_nested_arguments():
    p = pl.program(lambda t: np.sum(t["x"] * t["x"] * t["y"][0]))
    at = {"x": np.array([1.0, 2.0]), "y": [np.array([3.0, 4.0])]}
    value, slope = pl.value_and_grad(p)(at)
    assert value == p(at) == 19.0
    np.testing.assert_allclose(slope["x"], [6.0, 16.0])
    np.testing.assert_allclose(slope["y"][0], [1.0, 4.0])
