"""Gradients of drawn equations: one of several operands is linear in each, so that the derivative
along a direction is the equation of that direction, without a difference."""

import numpy as np
import pytest

import pylinop as pl


def drawn(rng):
    """An equation over 2 to 5 labels of 1 to 3 operands; sizes of 1 broadcast."""
    labels = "abcde"[: rng.integers(2, 6)]
    size = dict(zip(labels, rng.integers(1, 5, len(labels))))
    terms = [
        "".join(rng.choice(list(labels), rng.integers(1, 4))) for _ in range(rng.integers(1, 4))
    ]
    there = sorted(set("".join(terms)))
    result = "".join(x for x in rng.permutation(there) if rng.random() < 0.5)
    shapes = [[1 if rng.random() < 0.1 else size[x] for x in t] for t in terms]
    return f"{','.join(terms)}->{result}", shapes


@pytest.mark.parametrize("char", "dD")
@pytest.mark.parametrize("seed", range(4))
def test_against_the_derivative_along_a_direction(seed, char):
    rng = np.random.default_rng(100 + seed)

    def numbers(shape):
        x = rng.normal(size=shape)
        return x + 1j * rng.normal(size=shape) if char == "D" else x

    for _ in range(25):
        text, shapes = drawn(rng)
        arrays = [numbers(s) for s in shapes]
        leaves = [pl.lazy(a) for a in arrays]
        y = pl.einsum(text, *leaves)
        weight = numbers(y.shape)
        value = np.sum(weight * y)
        if char == "D":
            value = np.real(value)
        for k, grad in enumerate(pl.gradients(value, leaves)):
            d = numbers(shapes[k])
            moved = pl.einsum(text, *arrays[:k], d, *arrays[k + 1 :])
            scale = np.sum(
                abs(weight)
                * pl.einsum(text, *map(abs, arrays[:k]), abs(d), *map(abs, arrays[k + 1 :]))
            )
            want = np.sum(weight * moved).real
            assert abs(np.vdot(np.asarray(grad), d).real - want) <= 1e-13 * scale, (text, shapes, k)
