"""Gradients of NumPy's functions, of sums and shapes, of what is asked of a matrix."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl
from pylinop._gradients.functions import ELEMENTWISE

RNG = np.random.default_rng(2)
X, Y = RNG.uniform(0.2, 0.8, 5), RNG.uniform(0.2, 0.8, 5)
Z, W = X + 1j * RNG.uniform(0.2, 0.8, 5), Y - 1j * RNG.uniform(0.2, 0.8, 5)
_PAIRS = "add subtract multiply divide power float_power maximum minimum fmax fmin logaddexp hypot"
PAIRS = [*_PAIRS.split(), "arctan2"]
_REAL = {"cbrt", "fabs", "maximum", "minimum", "fmax", "fmin", "logaddexp", "hypot", "arctan2"}
# of real numbers; where they are of more than one argument, and what they are of
SPECIAL = {
    "copysign": lambda f, x: f(x, np.cos(2 * x)),
    "fmod": lambda f, x: f(3 * x, 1.3 + x * x),
    "remainder": lambda f, x: f(-3 * x, 1.3 + x * x),
    "heaviside": lambda f, x: x * f(x, x * x),
    "xlogy": lambda f, x: f(x, 1 + x * x) + f(0.0 * x, x * x),
    "xlog1py": lambda f, x: f(x, x * x) + f(0.0 * x, x * x - 1),
    "logaddexp2": lambda f, x: f(x, 1 - x) + f(x, x),
    "logit": lambda f, x: f(1 / (1 + np.exp(x))),
    "ndtri": lambda f, x: f(1 / (1 + np.exp(x))),
    "erfinv": lambda f, x: f(np.tanh(x)),
    "erfcinv": lambda f, x: f(1 + np.tanh(x)),
    **dict.fromkeys(("gammaln", "loggamma", "gamma", "psi"), lambda f, x: f(0.3 + x * x)),
    **dict.fromkeys(("floor", "ceil", "trunc", "rint"), lambda f, x: x * f(2.9 * x)),
    **dict.fromkeys("exp10 expit log_expit ndtr log_ndtr erfcx".split(), lambda f, x: f(x)),
    **dict.fromkeys("i0 i0e i1 i1e".split(), lambda f, x: f(x)),
    **dict.fromkeys("deg2rad radians rad2deg degrees".split(), lambda f, x: f(x)),
}
_KINKS = "copysign heaviside floor ceil trunc fmod remainder i0e i1e".split()  # at 0
PLAIN = sorted(set(ELEMENTWISE) - set(SPECIAL))


@pytest.mark.parametrize("name", SPECIAL)
def test_special(name):
    f = getattr(pytest.importorskip("scipy.special"), name, None) or getattr(np, name)
    x = np.array([-1.43, -0.68, -0.21, 0.0, 0.12, 0.39, 0.83, 1.64])
    x = x[x != 0] if name in _KINKS else x
    w = np.cos(np.arange(1.0, 1 + x.size))
    check(lambda x: np.sum(w * SPECIAL[name](f, x)), x)
    check_second(lambda x: np.sum(w * SPECIAL[name](f, x)), x)
    zero = pl.grad(lambda x: np.sum(SPECIAL[name](f, x)))(np.zeros(2))
    assert np.isfinite(zero).all()


def _ufunc(name):
    if name.startswith("erf"):
        return getattr(pytest.importorskip("scipy.special"), name)
    return getattr(np, name)


@pytest.mark.parametrize("name", PLAIN)
def test_elementwise(name):
    f, w = _ufunc(name), RNG.standard_normal(5)
    if name in PAIRS:
        check(lambda x, y: np.sum(w * f(x, y)), X, Y)
        check(lambda x: np.sum(w * f(x, 0.5)), X)
        check(lambda x: np.sum(w * f(0.5, x)), X)
    else:
        check(lambda x: np.sum(w * f(x)), X)


@pytest.mark.parametrize("name", sorted(set(PLAIN) - _REAL - {"sign", "erf", "erfc"}))
def test_elementwise_complex(name):
    f, w = _ufunc(name), RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    if name in PAIRS:
        check(lambda x, y: np.sum(np.real(w * f(x, y))), Z, W)
        check(lambda x, y: np.sum(np.real(w * f(x, y))), X, W)
        check(lambda x, y: np.sum(np.real(w * f(x, y))), Z, Y)
    else:
        check(lambda x: np.sum(np.real(w * f(x))), Z)


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"sign", "maximum", "minimum"}))
def test_elementwise_second(name):
    f, w = _ufunc(name), RNG.standard_normal(5)
    if name in PAIRS:
        check_second(lambda x, y: np.sum(w * f(x, y) ** 2), X, Y)
    else:
        check_second(lambda x: np.sum(w * f(x) ** 2), X)


SHAPES = {
    "sum": lambda a, v: np.sum(a * a) * np.sum(v),
    "sum 0": lambda a, v: np.sum(np.sum(a * a, axis=0) * v),
    "sum -1": lambda a, v: np.sum(np.sum(a * a, axis=-1) * v[:3]),
    "sum kept": lambda a, v: np.sum(np.sum(a, axis=1, keepdims=True) * a * v),
    "sum of all axes": lambda a, v: np.sum(a * a, axis=(0, 1)) * v[0],
    "mean": lambda a, v: np.mean(a * a) * np.mean(v),
    "mean 1": lambda a, v: np.sum(np.mean(a, axis=1) * v[:3]),
    "mean of 3-D": lambda a, v: np.sum(np.mean(np.reshape(a, (3, 2, 2)), axis=(0, 2)) * v[:2]),
    "prod": lambda a, v: np.prod(a) + np.prod(v),
    "max": lambda a, v: np.max(a) * np.min(v),
    "max 0": lambda a, v: np.sum(np.max(a, axis=0) * v),
    "broadcast": lambda a, v: np.sum((a + v) ** 2),
    "broadcast a number": lambda a, v: np.sum(a * v[1] + v[2]),
    "transpose": lambda a, v: np.sum(a.T @ a @ v),
    "transpose 3-D": lambda a, v: np.sum(
        np.transpose(np.reshape(a, (3, 2, 2)), (1, 2, 0)) * np.reshape(a, (2, 2, 3)) * v[0]
    ),
    "reshape": lambda a, v: np.sum(np.reshape(a, (4, 3)) @ v[:3] * v),
    "ravel": lambda a, v: np.sum(np.ravel(a)[2:6] * v),
    "expand": lambda a, v: np.sum(np.expand_dims(v, 0) * a),
    "squeeze": lambda a, v: np.sum(np.squeeze(a[:1]) * v),
    "where": lambda a, v: np.sum(np.where(a > 0.5, a * a, v)),
    "clip": lambda a, v: np.sum(np.clip(a, 0.3, 0.6) * v),
    "outer": lambda a, v: np.sum(np.outer(v, v) @ v) + np.sum(a),
    "dot": lambda a, v: np.dot(v, v) + np.vdot(v, a[0]) + np.inner(a[1], v),
    "vdot of matrices": lambda a, v: np.vdot(a, a) * v[0],
    "index": lambda a, v: a[1, 2] * v[3] + np.sum(a[1:, ::2]) + np.sum(a[:, 0] * v[:3]),
    "index twice": lambda a, v: np.sum(v[np.array([0, 0, 2])] * a[0, :3]),
    "new axis": lambda a, v: np.sum((v[:, None] * v[None, :]) ** 2) + np.sum(a),
    "trace": lambda a, v: pl.trace(a.T @ a) + np.trace(a @ a.T, 1) * v[0],
    "diagonal": lambda a, v: np.sum(np.diagonal(a.T @ a) * v) + np.sum(pl.diagonal(a, 1)),
    "norm": lambda a, v: np.linalg.norm(a) * v[0],
    "stack of matrices": lambda a, v: np.sum(
        np.reshape(a, (3, 2, 2)) @ np.reshape(a, (3, 2, 2)) * v[0]
    ),
    "stack by one": lambda a, v: np.sum((np.reshape(a, (3, 2, 2)) @ np.reshape(v, (2, 2))) ** 2),
    "numbers": lambda a, v: np.sum((2 * a - 3) / (1 - a / 4) ** 2) - v[0] ** 3 / v[1],
    "same twice": lambda a, v: np.sum((a @ a.T) @ (a @ a.T)) + np.sum((v + v) * v),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    a, v = np.linspace(0.205, 0.795, 12), RNG.uniform(0.2, 0.8, 4)  # at none of the kinks
    check(SHAPES[name], np.reshape(RNG.permutation(a), (3, 4)), v)


@pytest.mark.parametrize("name", [n for n in SHAPES if not n.startswith(("max", "clip", "where"))])
def test_shapes_second(name):
    a, v = RNG.uniform(0.2, 0.8, (3, 4)), RNG.uniform(0.2, 0.8, 4)
    check_second(lambda a, v: SHAPES[name](a, v) ** 2, a, v)


def test_what_is_complex():
    a = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))
    b = RNG.standard_normal(4)
    check(lambda a, b: np.sum(np.imag(a @ b)) + np.sum(np.real(a)[0]), a, b)
    check(lambda a, b: np.sum(np.abs(a.conj() @ b) ** 2), a, b)
    check(lambda a: np.real(pl.det(a)) + np.imag(pl.det(a)), a)
    check(lambda a: np.imag(np.linalg.slogdet(a)[0]), a)
    check(lambda a, b: np.real(np.vdot(b, a.H @ (a.T @ (a.conj() @ b)))), a, b)
    # PyTorch's convention: of |z|^2 / 2 it is z, of Re(z (3 + 4j)) it is 3 - 4j
    z = np.array([1 + 2j])
    assert pl.grad(lambda z: np.sum(np.abs(z) ** 2) / 2)(z)[0] == 1 + 2j
    assert pl.grad(lambda z: np.sum(np.real(z * (3 + 4j))))(z)[0] == 3 - 4j


def test_where_there_is_none():
    """What documentation says of points without a derivative."""
    zero = np.zeros(2)
    assert (pl.grad(lambda x: np.sum(np.abs(x)))(zero) == 0).all()
    assert (pl.grad(lambda x: np.sum(np.abs(x)))(zero.astype(complex)) == 0).all()
    assert (pl.grad(lambda x: np.sum(np.maximum(x, 0.0)))(zero) == 0.5).all()
    assert (pl.grad(lambda x: np.sum(np.hypot(x, x)))(zero) == 0).all()
    assert (pl.grad(lambda x: np.linalg.norm(np.reshape(x, (1, 2))))(zero) == 0).all()
    assert (pl.grad(lambda x: np.sum(x**2))(zero) == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(dtype):
    d = np.arange(1, 5).astype(dtype)
    g = pl.grad(lambda d: np.real(pl.slogdet(pl.Diag(d))[1]) + np.sum(np.real(d * d)))(d)
    assert g.dtype == d.dtype
    assert np.allclose(g, 1 / d.conj() + 2 * d.conj(), rtol=1e-6)


def test_shared_nodes_are_counted_once():
    A = RNG.standard_normal((4, 4))
    w = RNG.standard_normal((4, 4))
    assert np.allclose(pl.grad(lambda A: np.sum((A + A) * w))(A), 2 * w)
    g = pl.grad(lambda A: np.sum((A @ A) * w))(A)
    assert np.allclose(g, w @ A.T + A.T @ w)


def test_a_long_chain():
    x = np.array([1.0, 2.0])

    def f(x):
        y = x
        for _ in range(20_000):
            y = y + x
        return np.sum(y)

    assert pl.grad(f)(x).tolist() == [20_001.0, 20_001.0]


AT_ZERO = {
    "abs": lambda x: np.sum(np.abs(x)),
    "sqrt": lambda x: np.sum(np.sqrt(x)),
    "root of a square": lambda x: np.sum(np.sqrt(x * x)),
    "cbrt": lambda x: np.sum(np.cbrt(x)),
    "power": lambda x: np.sum(x**0.5),
    "power of an array": lambda x: np.sum(x ** np.array([0.0, 0.3, 0.9])),
    "arctan2": lambda x: np.sum(np.arctan2(x, x)),
    "std": lambda x: np.std(x),
    "hypot": lambda x: np.sum(np.hypot(x, 2 * x)),
    "norm": lambda x: np.linalg.norm(x),
    "nothing": lambda x: np.sum(x**0),
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_where_there_is_no_derivative_it_is_zero(name):
    x = np.zeros(3)
    np.testing.assert_array_equal(pl.grad(AT_ZERO[name])(x), x)
    second = pl.hvp(AT_ZERO[name])(x, np.ones(3))
    assert np.isfinite(second).all() and (name in ("hypot", "norm") or (second == 0).all())
    assert pl.jvp(AT_ZERO[name], (x,), (np.ones(3),))[1] == 0


def test_powers_at_zero():
    x = np.array([0.0, 0.0, 2.0])
    for p, slope, second in ((1, 1.0, 0.0), (2, 0.0, 2.0), (3.0, 0.0, 0.0), (1.5, 0.0, 0.0)):
        f = lambda x, p=p: np.sum(x**p)
        np.testing.assert_array_equal(pl.grad(f)(x)[:2], slope)
        np.testing.assert_array_equal(pl.hvp(f)(x, np.ones(3))[:2], second)
        np.testing.assert_allclose(pl.grad(f)(x)[2], p * 2.0 ** (p - 1))
    check(lambda x, p: np.sum(x**p), np.array([0.4, 1.3, 2.0]), np.array([0.5, -1.5, 2.5]))


def test_slopes_of_roots_on_arrays_of_other_libraries():
    """By the functions that these have, here NumPy's own."""
    from pylinop._namespace.formulas import computed
    from pylinop._programs.programs import WithGradients, Written

    f = lambda x: [np.sum(np.sqrt(x[0]) * x[0])]
    x = np.array([0.0, 1.0, 4.0, 9.0])
    value, slope = computed(WithGradients(Written(f, f, 1), (0,)), [x])
    assert value == 36
    np.testing.assert_allclose(slope, 1.5 * np.sqrt(x))
