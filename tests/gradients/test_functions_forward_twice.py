"""Forward mode of what forward mode gives, and reverse mode of it, of functions of matrices: they
were zero, as the derivative is taken at A^H, whose adjoint led past A."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._programs.programs import Pullback, Pushforward, Written

N = 3


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm"])
def test_second_derivatives_by_forward_mode_first(name, dtype):
    rng = np.random.default_rng(61)

    def draw():
        x = rng.standard_normal((N, N))
        return x + 1j * rng.standard_normal((N, N)) if dtype == "complex128" else x

    a, along, step, g = 4 * np.eye(N) + draw() / 2, draw(), draw(), draw()
    f = getattr(pl, name)
    first = Pushforward(Written(lambda leaves: [f(leaves[0])], name, 1), (0,))

    def value(program, *arrays):
        return np.asarray(program([np.asarray(x, dtype) for x in arrays])[0])

    e = 1e-5
    due = (value(first, a + e * step, along) - value(first, a - e * step, along)) / (2 * e)
    size = np.abs(due).max()
    assert size > 1e-3
    found = value(Pushforward(first, (0,)), a, along, step)
    assert np.abs(found - due).max() < 1e-6 * size
    back = value(Pullback(first, (0,), 1), a, along, g)
    inner = np.real(np.sum(back * step) - np.sum(g * due))  # as JAX pairs complex numbers
    assert abs(inner) < 1e-5 * np.linalg.norm(g) * size


@pytest.mark.parametrize("view", ["itself", "T", "conj", "H"])
@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm"])
def test_second_derivatives_of_views(name, view):
    """Of the transpose and the conjugate of a complex matrix a part was missing: the adjoint of a
    view is one of what it is a view of, and does not lead to the view."""
    rng = np.random.default_rng(62)

    def draw():
        return rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N))

    views = {"itself": lambda A: A, "T": lambda A: A.T, "conj": lambda A: A.conj(), "H": None}
    seen = views[view] or (lambda A: A.H)
    a, along, w = 4 * np.eye(N) + draw() / 2, draw(), draw()

    def f(a):
        return np.sum(np.real(getattr(pl, name)(seen(pl.Dense(a))) * w))

    first, e = pl.grad(f), 1e-5
    due = (first(a + e * along) - first(a - e * along)) / (2 * e)
    found = pl.hvp(f)(a, along)
    assert np.abs(found - due).max() < 1e-6 * np.abs(due).max()
