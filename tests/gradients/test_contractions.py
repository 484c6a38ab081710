"""Gradients of einsum: against sixth-order differences, to the second order."""

import numpy as np
import pytest

import pylinop as pl

EQUATIONS = [
    ("abc,bcd->ad", ((3, 4, 2), (4, 2, 5))),
    ("abc,cd,de->abe", ((2, 3, 4), (4, 5), (5, 2))),
    ("...ij,...jk->...ik", ((2, 3, 4), (1, 4, 2))),
    ("abc,b->ca", ((2, 3, 4), (3,))),
    ("abc->", ((2, 3, 4),)),
    ("abc,abc,b->a", ((2, 3, 4), (2, 1, 4), (3,))),
    ("b (h w) c, h c -> w b", ((2, 6, 3), (2, 3))),
    ("abc,d->b", ((2, 3, 4), (5,))),
    ("aab,b->a", ((3, 3, 2), (2,))),
    ("b (o + i) c, i c d -> b o d", ((2, 7, 3), (3, 3, 2))),
    ("b (2*o + 3*i) c, i c d -> b o d", ((2, 8, 3), (2, 3, 2))),
    ("(y + i) (2*x + j), i j -> y x", ((5, 6), (2, 3))),
    ("(5 - o - i), i -> o", ((6,), (3,))),
    ("(o + i) o, i -> o", ((5, 3), (3,))),
    ("iji, j -> i", ((3, 2, 3), (2,))),
    ("(h w) 1, w -> h", ((6, 1), (3,))),
]
OUTSIDE = [
    ("b (2*o + i - 1) c, i c -> b o", ((2, 7, 3), (3, 3)), 0, None),
    ("(o - i), i -> o", ((6,), (3,)), "wrap", {"o": 6}),
    ("(o + 4*i), i -> o", ((5,), (3,)), "wrap", {"o": 7}),
    ("(o + i) o, i -> o", ((3, 4), (3,)), 0, {"o": 4}),
]


def differences(f, x, h=1e-2):
    """Of sixth order, element by element."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = h
        out[i] = (
            45 * (f(x + e) - f(x - e))
            - 9 * (f(x + 2 * e) - f(x - 2 * e))
            + f(x + 3 * e)
            - f(x - 3 * e)
        ) / (60 * h)
    return out


@pytest.mark.parametrize("text, shapes", EQUATIONS, ids=[e[0] for e in EQUATIONS])
def test_gradients(text, shapes, rng):
    arrays = [rng.normal(size=s) for s in shapes]

    def value(*x):
        return np.sum(np.tanh(pl.einsum(text, *x)))

    for k in range(len(arrays)):
        got = pl.grad(value, argnums=k)(*arrays)
        want = differences(lambda x: value(*arrays[:k], x, *arrays[k + 1 :]), arrays[k])
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("text, shapes, outside, sizes", OUTSIDE, ids=[e[0] for e in OUTSIDE])
def test_gradients_by_what_an_index_equation_reads(text, shapes, outside, sizes, rng):
    """Padded and circular ones, to the second order."""
    arrays = [rng.normal(size=s) for s in shapes]

    def value(x):
        return np.sum(np.tanh(pl.einsum(text, x, *arrays[1:], outside=outside, sizes=sizes)))

    want = differences(value, arrays[0])
    np.testing.assert_allclose(pl.grad(value)(arrays[0]), want, rtol=1e-8, atol=1e-8)
    v, step = rng.normal(size=shapes[0]), 1e-4
    ends = [pl.grad(value)(arrays[0] + s * v) for s in (step, -step)]
    second = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(pl.hvp(value)(arrays[0], v), second, rtol=1e-5, atol=1e-5)


def test_second_order_and_complex(rng):
    a, b = rng.normal(size=(3, 4, 2)), rng.normal(size=(2, 4))

    def value(x):
        return np.sum(np.square(pl.einsum("abc,cd->ad", x, b)) ** 2)

    v = rng.normal(size=a.shape)
    got = pl.hvp(value)(a, v)
    step = 1e-4
    want = (pl.grad(value)(a + step * v) - pl.grad(value)(a - step * v)) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    z = rng.normal(size=(3, 4, 2)) + 1j * rng.normal(size=(3, 4, 2))

    def real(x):
        made = pl.einsum("abc,abd->acd", x, np.conj(x))
        return np.sum(np.abs(made) ** 2)

    g = pl.grad(real)(z)
    e = rng.normal(size=z.shape) + 1j * rng.normal(size=z.shape)
    want = (real(z + step * e) - real(z - step * e)) / (2 * step)
    np.testing.assert_allclose(np.sum(np.conj(g) * e).real, want, rtol=1e-6)
