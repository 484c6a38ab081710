"""Gradients of banded matrices that are assumed Hermitian: projected on what is assumed."""

import numpy as np
import pytest

import pylinop as pl

WORDS = ["sym", "her", "pos"]


def bands(rng, word, dtype, n=6):
    """dl, d, du of a definite matrix, and a change of it, as `word` says."""
    more = (lambda k: 1j * rng.standard_normal(k)) if dtype is complex else (lambda k: 0.0)
    mirrored = (lambda a: a) if word == "sym" else np.conj
    made = []
    for big in (4.0, 0.0):
        du = rng.standard_normal(n - 1) + more(n - 1)
        d = big + rng.random(n) + (0.1 * more(n) if word == "sym" else 0.0)
        made.append((mirrored(du), d.astype(du.dtype), du))
    return made


def tridiagonal(p, **word):
    return pl.Tridiagonal(*p, **word)


def banded(p, **word):
    dl, d, du = p
    zero = np.zeros(1, d.dtype)
    rows = [np.concatenate([zero, du]), d, np.concatenate([dl, zero])]
    return pl.Banded((1, 1), np.stack(rows), **word)


def blocks(p, **word):
    """Of 2 x 2: the corners of those beside the diagonal are numbers of the band."""
    dl, d, du = p
    one = lambda i, j: np.outer(np.eye(2)[i], np.eye(2)[j])
    diag = np.reshape(d, (-1, 2, 1)) * np.eye(2)
    diag = diag + np.reshape(dl[::2], (-1, 1, 1)) * one(1, 0)
    diag = diag + np.reshape(du[::2], (-1, 1, 1)) * one(0, 1)
    lower = np.reshape(dl[1::2], (-1, 1, 1)) * one(0, 1)
    upper = np.reshape(du[1::2], (-1, 1, 1)) * one(1, 0)
    return pl.BlockTridiagonal(lower, diag, upper, **word)


def losses(rng, dtype, n=6):
    more = (lambda k: 1j * rng.standard_normal(k)) if dtype is complex else (lambda k: 0.0)
    x, y = (rng.standard_normal(n) + more(n) for _ in range(2))
    return {
        "a product": lambda K: np.real(np.sum(np.conj(y) * (K @ x))),
        "a solution": lambda K: np.real(np.sum(np.conj(y) * pl.solve(K, x))),
        "of the transpose": lambda K: np.real(np.sum(np.conj(y) * (K.T @ x))),
        "an element": lambda K: np.real(K[1, 2] * (1 + 2j) if dtype is complex else K[1, 2]),
        "a diagonal": lambda K: np.sum(np.real(pl.diagonal(K, offset=-1) * y[1:]) ** 2),
        "a determinant": lambda K: pl.slogdet(K)[1] + np.real(K[0, 1]),
    }


def projected(g, word):
    mirrored = (lambda a: a) if word == "sym" else np.conj
    half = (g[0] + mirrored(g[2])) / 2
    return half, g[1] if word == "sym" else np.real(g[1]), mirrored(half)


def close(got, due):
    for a, b in zip(got, due, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("kind", [tridiagonal, banded, blocks])
@pytest.mark.parametrize("name", losses(np.random.default_rng(0), float))
def test_they_are_those_of_nothing_assumed_projected(name, kind, word, dtype, rng):
    p, t = bands(rng, word, dtype)
    loss = losses(rng, dtype)[name]
    declared = lambda *p: loss(kind(p, assume_a=word))
    plain = lambda *p: loss(kind(p))
    every = (0, 1, 2)
    got = pl.grad(declared, every)(*p)
    due = pl.grad(plain, every)(*p)
    close(got, projected(due, word))
    got = pl.hvp(declared, every)(*p, t)
    due = pl.hvp(plain, every)(*p, t)
    close(got, projected(due, word))
