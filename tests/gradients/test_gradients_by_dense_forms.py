"""Gradients in the structure of each kind against those by the formulas for dense matrices, to what
the condition of the matrix allows: of products, of solves and determinants, of all entries."""

import numpy as np
import pytest
from gradients.test_gradients_of_kinds import KINDS, Make

import pylinop as pl


def tangents(make, arrays, K):
    """dK along each number of each array, by the difference that is exact but for rounding where
    the entries are polynomials: sixth order, with a step that is large."""
    found = []
    weights = ((-3, -1), (-2, 9), (-1, -45), (1, 45), (2, -9), (3, 1))
    for k, a in enumerate(arrays):
        units = [1.0, 1j] if a.dtype.kind == "c" else [1.0]
        rows = np.zeros((a.size, len(units), *K.shape), complex)
        for i in range(a.size):
            for j, unit in enumerate(units):
                e = np.zeros(a.size, a.dtype)
                e[i] = 0.25 * unit
                at = [
                    dense(make, [*arrays[:k], a + s * e.reshape(a.shape), *arrays[k + 1 :]])
                    for s, _ in weights
                ]
                rows[i, j] = sum(w * x for (_, w), x in zip(weights, at, strict=True)) / 15
        found.append(rows)
    return found


def dense(make, arrays):
    return np.asarray(make(*map(pl.lazy, arrays)) @ np.eye(columns(make, arrays)))


def columns(make, arrays):
    return make(*map(pl.lazy, arrays)).shape[-1]


def compare(found, G, steps, arrays, factor):
    """dL = Re sum(conj(G) dK) for each number."""
    for g, rows, a in zip(found, steps, arrays, strict=True):
        by = np.real(np.sum(np.conj(G) * rows, axis=(-2, -1)))
        wanted = by[:, 0] if a.dtype.kind != "c" else by[:, 0] + 1j * by[:, 1]
        scale = max(np.abs(wanted).max(initial=0), np.linalg.norm(G) * np.abs(rows).max(initial=0))
        assert np.abs(g.ravel() - wanted).max(initial=0) <= factor * scale


# whose entries are no polynomials of degree six at most in each number
_CURVED = ("householder", "reflections", "quasiseparable")
LINEAR = [name for name in KINDS if not name.startswith(_CURVED)]


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", LINEAR)
def test_against_dense(name, dtype):
    m = Make("float64" if dtype == "f" else "complex128")
    make, arrays = KINDS[name](m)
    every = tuple(range(len(arrays)))
    K = dense(make, arrays)
    steps = tangents(make, arrays, K)
    x, w, W = m.a(K.shape[1]), m.a(K.shape[0]), m.a(*K.shape)
    f = lambda *p: np.real(np.vdot(w, make(*p) @ x))
    compare(pl.grad(f, every)(*arrays), np.outer(w, np.conj(x)), steps, arrays, 1e-12)
    f = lambda *p: np.sum(np.real(np.conj(W) * make(*p)))
    compare(pl.grad(f, every)(*arrays), W, steps, arrays, 1e-12)
    if K.shape[0] != K.shape[1] or np.linalg.cond(K) > 1e6:
        return
    bound = 1e-12 * max(1.0, np.linalg.cond(K))
    inverse = np.linalg.inv(K).conj().T
    f = lambda *p: pl.slogdet(make(*p))[1]
    compare(pl.grad(f, every)(*arrays), inverse, steps, arrays, bound)
    f = lambda *p: np.real(np.vdot(w, pl.solve(make(*p), x)))
    G = -np.outer(inverse @ w, np.conj(np.linalg.solve(K, x)))
    compare(pl.grad(f, every)(*arrays), G, steps, arrays, bound)
