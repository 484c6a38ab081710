"""Derivatives by differences of sixth order, to compare with."""

import numpy as np

import pylinop as pl

_WEIGHTS = ((-3, -1), (-2, 9), (-1, -45), (1, 45), (2, -9), (3, 1))
_STEP = 2e-3


def number(f, args):
    """The value of a formula of LazyArrays on arrays."""
    return float(np.real(pl.evaluate(f(*map(pl.lazy, args)))))


def along(f, args, directions):
    """d f / dt at args + t directions."""
    moved = lambda k: [a + k * _STEP * d for a, d in zip(args, directions, strict=True)]
    return sum(w * number(f, moved(k)) for k, w in _WEIGHTS) / (60 * _STEP)


def directions(rng, args):
    made = []
    for a in args:
        d = rng.standard_normal(a.shape)
        if a.dtype.kind == "c":
            d = d + 1j * rng.standard_normal(a.shape)
        made.append(d / max(1.0, np.linalg.norm(d.ravel())))
    return made


def check(f, *args, rtol=1e-8, seed=0):
    """Gradients of a real formula by all its arguments against differences in one direction."""
    rng = np.random.default_rng(seed)
    held = [pl.lazy(a) for a in args]
    value = f(*held)
    found = pl.gradients(value, held)
    values = pl.evaluate(value, *found)
    for g, a in zip(values[1:], args, strict=True):
        assert g.shape == a.shape, (g.shape, a.shape)
        assert (g.dtype.kind == "c") <= (a.dtype.kind == "c"), (g.dtype, a.dtype)
    way = directions(rng, args)
    got = sum(float(np.sum(np.conj(g) * d).real) for g, d in zip(values[1:], way, strict=True))
    wanted = along(f, args, way)
    scale = max(
        abs(wanted), *(np.linalg.norm(np.ravel(g)) for g in values[1:]), abs(float(values[0].real))
    )
    assert abs(got - wanted) <= rtol * max(scale, 1e-3), (got, wanted, scale)
    return values


def check_second(f, *args, rtol=1e-7, seed=0):
    """Hessian times a vector against differences of the gradient."""
    rng = np.random.default_rng(seed)
    every = tuple(range(len(args)))
    way = directions(rng, args)
    found = pl.hvp(f, every)(*args, tuple(way))
    grad = pl.grad(f, every)
    h = 1e-3
    slopes = [
        sum(
            w * np.asarray(g, complex)
            for g, w in zip(
                [
                    grad(*[a + k * h * d for a, d in zip(args, way, strict=True)])[i]
                    for k, _ in _WEIGHTS
                ],
                [w for _, w in _WEIGHTS],
                strict=True,
            )
        )
        / (60 * h)
        for i in every
    ]
    for got, wanted in zip(found, slopes, strict=True):
        scale = max(1e-3, np.abs(wanted).max(), *(np.abs(s).max() for s in slopes))
        assert np.abs(got - wanted).max() <= rtol * scale, np.abs(got - wanted).max() / scale
