"""A derivative that an expression does not lead to is zero where the expression has nothing of what
it is by; else it is an error that names the function."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._gradients import held, sweep
from pylinop._gradients.pieces import Through, one

A0 = np.random.default_rng(0).normal(size=(4, 4)) + 4 * np.eye(4)


def test_what_is_apart_is_told_from_what_is_not_led_to():
    A, B = pl.lazy(A0), pl.lazy(A0.copy())
    view = A.T
    y = pl.expm(A)
    for made, part, apart in (
        ((A @ A).sum(), view, False),  # of the same array, which no view of it leads to
        ((A @ A).sum(), B, True),
        ((A @ A).sum(), B.T, True),
        (pl.stop_gradient(A).sum(), A, True),
    ):
        through = Through(made, one(made.dtype), ())
        assert held.is_apart(made, part, frozenset()) is apart
        if apart:
            assert sweep._through(through, part, y) is None
        else:
            with pytest.raises(
                NotImplementedError, match=r"(?s)derivative of expm .*test_no_silent"
            ):
                sweep._through(through, part, y)
        ends = Through(made, one(made.dtype), (A,))
        assert sweep._through(ends, view, y) is None


def test_arrays_are_told_by_their_memory():
    op = pl.Dense(A0[:3, :3])
    value = pl.lazy(op).sum()
    assert not held.is_apart(value, A0, frozenset())
    assert held.is_apart(value, A0.copy(), frozenset())
    assert held.is_apart(value, A0[3:], frozenset())


def test_unused_arguments_are_zeros():
    def f(x, y):
        return (x * x).sum()

    a = np.arange(3.0)
    for got in pl.grad(f, argnums=(0, 1))(a, a), pl.hvp(f, argnums=(0, 1))(a, a, (a, a)):
        assert np.array_equal(got[1], np.zeros(3)) and np.array_equal(got[0], 2 * a)
    value, tangent = pl.jvp(f, (a, a), (0 * a, a))
    assert tangent == 0
    inner = pl.grad(lambda x: (pl.grad(f, argnums=1)(x, x) * x).sum())
    assert np.array_equal(inner(a), np.zeros(3))


def test_a_function_s_value_is_that_of_lazy_arrays():
    """Of operators `**` is the power of matrices; within a function all is a LazyArray."""

    def f(A):
        return np.sum(np.real(pl.expm(A)) ** 2) + pl.trace(pl.expm(A) * np.ones((4, 4)))

    for A in (A0, pl.Dense(A0)):
        value = pl.value_and_grad(f)(A)[0]
        np.testing.assert_allclose(value, float(f(pl.lazy(A))), rtol=1e-12)
        E = pl.expm(pl.Dense(A0)).toarray()
        np.testing.assert_allclose(value, np.sum(E**2) + np.trace(E), rtol=1e-12)

    def g(A):
        E = pl.expm(A)
        return pl.trace(pl.matrix_power(E, 2)) + np.sum(pl.multiply(E, E))

    for A in (A0, pl.Dense(A0)):
        np.testing.assert_allclose(pl.value_and_grad(g)(A)[0], float(g(A)), rtol=1e-12)


def test_comparisons_have_no_derivatives():
    """What is chosen by signs or places is chosen likewise nearby."""
    a = np.array([1.5, -0.5, 0.25, -2.0])
    v = np.array([1.0, 2.0, -1.0, 0.5])
    for f, second in (
        (lambda x: np.sum(np.where(x > 0, x, 0.1 * x)), 0),
        (lambda x: np.sum(np.where(x > 0, x, 0.0) ** 2), 2 * (a > 0)),
        (lambda x: np.sum(np.maximum(A0 @ x, 0)) + np.max(x), 0),
        (lambda x: np.sum(np.clip(x, -1, 1)) + np.sum(np.where(np.isnan(x), 0, x)), 0),
        (lambda x: np.sum((A0 @ x > 0) * 1.0), 0),
    ):
        assert np.array_equal(pl.hvp(f)(a, v), second * v)
        assert np.array_equal(pl.hessian(f)(a), np.diag(second * np.ones(4)))
        assert np.array_equal(pl.jvp(pl.grad(f), (a,), (v,))[1], second * v)
