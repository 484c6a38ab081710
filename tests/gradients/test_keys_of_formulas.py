"""What is found by the core's key of a formula is what its structure says: of two formulas with one
key the structures are the same, and the arrays come in the same order."""

import itertools

import numpy as np
import pytest
import scipy.special

import pylinop as pl
from pylinop._gradients.trace import Trace
from pylinop._programs.structure import key_of, structure_of

N = 4
U, W, T = (np.random.default_rng(k).standard_normal((N, 2)) for k in range(3))
A = np.eye(N) + 0.1
HELD = np.arange(1.0, 1 + N)


def by(count):
    """A function that is made within another one: it has no structure."""
    return lambda x: x * count


# Formulas of a vector d and a number s, some of which differ by very little.
FORMULAS = [
    lambda d, s: np.sum(d),
    lambda d, s: np.sum(d * 2),
    lambda d, s: np.sum(d * 2.0),
    lambda d, s: np.sum(d * True),
    lambda d, s: np.sum(d * 0.0),
    lambda d, s: np.sum(d * -0.0),
    lambda d, s: np.sum(d * np.float64(2)),
    lambda d, s: np.sum(d * np.float32(2)),
    lambda d, s: np.sum(d * HELD),
    lambda d, s: np.sum(HELD * d),
    lambda d, s: np.sum(d * HELD) + np.sum(HELD),
    lambda d, s: np.sum(d * HELD[::-1]) + np.sum(HELD),
    lambda d, s: np.sum(d + d),
    lambda d, s: np.sum(d + d[:]),
    lambda d, s: np.sum(d[1:]),
    lambda d, s: np.sum(d[:-1]),
    lambda d, s: np.sum(d[::2]),
    lambda d, s: d[1],
    lambda d, s: d[2],
    lambda d, s: np.sum(d[None, :, ...]),
    lambda d, s: np.sum(d[[0, 1]]),
    lambda d, s: np.sum(d[[1, 0]]),
    lambda d, s: np.sum(d, axis=0),
    lambda d, s: np.sum(d, axis=-1),
    lambda d, s: np.mean(d),
    lambda d, s: np.sum(np.exp(d)),
    lambda d, s: np.sum(scipy.special.erf(d)),
    lambda d, s: np.sum(d**2),
    lambda d, s: np.sum(d**2.5),
    lambda d, s: np.sum(np.maximum(d, 2)),
    lambda d, s: np.sum(np.clip(d, 0, 2)),
    lambda d, s: np.sum(np.where(d > 1, d, s)),
    lambda d, s: s + np.sum(d),
    lambda d, s: s * np.sum(d),
    lambda d, s: s,
    lambda d, s: np.sum(d) - s,
    lambda d, s: np.sum(by(2)(d)),
    lambda d, s: pl.logdet(pl.Diag(d)),
    lambda d, s: pl.slogdet(pl.Diag(d))[1],
    lambda d, s: pl.slogdet(pl.Diag(d))[0],
    lambda d, s: pl.logdet(pl.Diag(d) + pl.LowRank(U)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.LowRank(U, W)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.LowRank(U, U)),
    lambda d, s: pl.logdet(pl.LowRank(U) + pl.Diag(d)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.LowRank(np.asfortranarray(W))),
    lambda d, s: pl.logdet(pl.Diag(d) + s * pl.Identity(N)),
    lambda d, s: pl.logdet(pl.Diag(d) + 2 * pl.Identity(N)),
    lambda d, s: pl.logdet(pl.Diag(d) + 3 * pl.Identity(N)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.Identity(N)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.Dense(A)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.Dense(A, "pos")),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.lazy(A)),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.lazy(A, "pos")),
    lambda d, s: pl.logdet(pl.Diag(d) + pl.Toeplitz(HELD)),
    lambda d, s: pl.slogdet(pl.Toeplitz(d))[1],
    lambda d, s: pl.slogdet(pl.Toeplitz(d, HELD))[1],
    lambda d, s: pl.slogdet(pl.Circulant(d))[1],
    lambda d, s: pl.slogdet(pl.Hankel(d, HELD))[1],
    lambda d, s: pl.slogdet(pl.Tridiagonal(HELD[1:], d, HELD[1:]))[1],
    lambda d, s: pl.slogdet(pl.Tridiagonal(HELD[1:], d, HELD[:-1]))[1],
    lambda d, s: np.sum(pl.Triangular(pl.lazy(A) * d)),
    lambda d, s: np.sum(pl.Triangular(pl.lazy(A) * d, lower=False)),
    lambda d, s: np.sum(pl.Triangular(pl.lazy(A) * d, False)),
    lambda d, s: np.sum(pl.Triangular(pl.lazy(A) * d, unit_diagonal=True)),
    lambda d, s: np.sum(pl.Diag(d, 1)),
    lambda d, s: np.sum(pl.Diag(d, -1)),
    lambda d, s: np.sum(pl.Kernel("rbf", U, variance=s)),
    lambda d, s: np.sum(pl.Kernel("matern32", U, variance=s)),
    lambda d, s: np.sum(pl.Kernel("rbf", U, W, variance=s)),
    lambda d, s: np.sum(pl.Kernel("rbf", U, variance=s, length_scale=0.5)),
    lambda d, s: np.sum(pl.Kernel("rbf", U, length_scale=s)),
    lambda d, s: np.sum(pl.Kron(pl.Diag(d), pl.Dense(A))),
    lambda d, s: np.sum(pl.Kron(pl.Dense(A), pl.Diag(d))),
    lambda d, s: np.sum(pl.lazy(A).T @ d),
    lambda d, s: np.sum(pl.lazy(A) @ d),
    lambda d, s: np.sum(pl.Dense(A) @ d),
    lambda d, s: np.sum(d @ pl.Dense(A)),
    lambda d, s: np.sum(pl.solve(pl.Dense(A), d)),
    lambda d, s: np.sum(pl.solve(pl.Dense(A), d, assume_a="pos")),
    lambda d, s: np.sum(pl.inv(pl.Diag(d)) @ HELD),
    lambda d, s: np.sum(pl.expm(pl.Diag(d) @ pl.Dense(A)) @ HELD),
    lambda d, s: np.sum(np.linalg.eigvalsh(pl.Diag(d) + pl.Dense(A))),
    lambda d, s: np.sum(np.linalg.svd(pl.Diag(d) + pl.Dense(A))[0]),
    lambda d, s: np.sum(np.linalg.svd(pl.Diag(d) + pl.Dense(A))[1]),
    lambda d, s: pl.trace(pl.Diag(d) @ pl.Dense(A)),
    lambda d, s: np.sum(pl.diagonal(pl.Diag(d) @ pl.Dense(A), 1)),
    lambda d, s: np.sum(np.reshape(d, (2, 2)) @ T[:2]),
    lambda d, s: np.sum(np.concatenate([d, HELD])),
    lambda d, s: np.sum(np.concatenate([HELD, d])),
    lambda d, s: np.sum(np.einsum("i,j->ij", d, d)),
    lambda d, s: np.sum(np.einsum("i,j->ji", d, d)),
    lambda d, s: np.linalg.norm(d, ord=1),
    lambda d, s: np.linalg.norm(d, ord=2),
]
ARGUMENTS = [
    (HELD + 1, np.array(1.5)),
    (HELD + 2, np.array(2.5)),
    ((HELD + 1).astype(np.float32), np.array(1.5)),
    (HELD + 1j, np.array(1.5)),
    (np.repeat(HELD, 2)[::2], np.array(1.5)),
]


def _found():
    for (number, f), args in itertools.product(enumerate(FORMULAS), ARGUMENTS):
        try:
            trace = Trace(f, (0, 1), False, args, {})
        except (TypeError, ValueError):
            continue
        value = trace.lazy_value()
        yield number, key_of(value, trace.parameters), structure_of([value], trace.parameters)


def test_one_key_is_one_structure():
    known, both, keyed = {}, 0, 0
    for number, quick, found in _found():
        if quick is None:
            continue
        keyed += 1
        key, arrays = quick
        assert known.setdefault(key, found and found.key) == (found and found.key), number
        if found is not None:
            both += 1
            assert list(map(id, arrays)) == list(map(id, found.arrays)), number
    assert both > 250
    assert both > 0.9 * keyed


def test_formulas_that_differ_have_other_keys():
    keys = {}
    for number, quick, found in _found():
        if quick is not None and found is not None:
            keys.setdefault(quick[0], set()).add(number)
    same = sorted(sorted(n) for n in keys.values() if len(n) > 1)
    spelled = [[f.__code__.co_firstlineno for f in map(FORMULAS.__getitem__, n)] for n in same]
    structures = {}
    for number, _, found in _found():
        if found is not None:
            structures.setdefault(found.key, set()).add(number)
    allowed = [n for n in structures.values() if len(n) > 1]
    assert all(any(set(n) <= a for a in allowed) for n in same), spelled


@pytest.mark.parametrize("first", [2.0, -0.0, 3])
def test_numbers_within_a_formula_are_its_own(first):
    """A function whose constant, index, or kind changes is another formula, call by call."""
    held = {"c": first, "lower": True, "at": 1}
    x = np.arange(1.0, 5.0)

    def f(d):
        L = pl.Triangular(np.reshape(np.concatenate([d, d, d, d]), (4, 4)), lower=held["lower"])
        return np.sum(L @ x) * held["c"] + d[held["at"]]

    g = pl.value_and_grad(f)
    for c, lower, at in itertools.product((first, 5.0), (True, False), (1, 2)):
        held.update(c=c, lower=lower, at=at)
        M = np.ones((4, 1)) * x
        expected = np.sum((np.tril if lower else np.triu)(M) @ x) * c + x[at]
        for _ in range(4):
            value, slope = g(x)
            mask = (np.tril if lower else np.triu)(np.ones((4, 4)))
            assert np.isclose(value, expected)
            assert np.allclose(slope, mask.sum(0) * x * c + (np.arange(4) == at))


def test_what_has_no_key():
    x = np.arange(1.0, 5.0)
    for f in (
        lambda d: np.sum(np.where(np.arange(4) > 1, d, 0.0)),  # an array of truth values
        lambda d: np.sum(pl.MatVec((4, 4), np.negative, np.negative, dtype=float) @ d),
        lambda d: np.sum(d[np.array([0, 2])]),
    ):
        trace = Trace(f, 0, False, (x,), {})
        assert key_of(trace.value, trace.parameters) is None
    trace = Trace(lambda d: np.sum(d * np.ones(4, ">f8")), 0, False, (x,), {})
    found = key_of(trace.value, trace.parameters)
    assert found is None or all(a.dtype.isnative for a in found[1])


@pytest.mark.parametrize("n", [1, 40, 63, 64, 65, 130, 300, 2000])
def test_long_formulas_have_keys(n):
    keys = [
        key_of(trace.value, trace.parameters)[0]
        for size, depth in ((4, n), (4, n), (5, n), (4, n + 1))
        for trace in [Trace(lambda d, k=depth: _chain(d, k), 0, False, (np.ones(size),), {})]
    ]
    assert keys[0] == keys[1] and len(set(keys)) == 3


@pytest.mark.parametrize("n", [2, 30, 63, 64, 65, 129, 500])
def test_many_parameters(n):
    """Values and gradients of many matrices, of which the first stands twice, other ones at each
    call: from the third on by the key."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal(3)

    def loss(*p):
        total = p[0] @ x @ (p[n // 2] @ x)
        for k, q in enumerate(p):
            v = q @ x
            total = total + (1.5 + k % 3) * (v @ v)
        return total

    g = pl.value_and_grad(loss, argnums=tuple(range(n)))
    for _ in range(4):
        a = rng.standard_normal((n, 3, 3))
        v, w = a @ x, (1.5 + np.arange(n) % 3)[:, None]
        value, slopes = g(*a)
        want = 2 * w * v
        want[0] += v[n // 2]
        want[n // 2] += v[0]
        assert np.isclose(value, v[0] @ v[n // 2] + np.sum(w * v * v))
        np.testing.assert_allclose(np.array(slopes), want[:, :, None] * x, atol=1e-10)


def test_many_results_with_arrays_in_common():
    """Results are parted by the arrays that they share, however those chain them together."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((40, 3, 3)) + 4 * np.eye(3)
    for _ in range(3):
        lazy = [pl.lazy(m) for m in a]
        order = rng.permutation(40)
        near = [(k, (k * 7 + 1) % 40 if k % 3 else k) for k in order]
        got = pl.evaluate(*[lazy[i] @ lazy[j] for i, j in near])
        for (i, j), value in zip(near, got, strict=True):
            np.testing.assert_allclose(value, a[i] @ a[j], rtol=1e-12)


def _chain(d, n):
    y = d
    for _ in range(n):
        y = np.sin(y)
    return np.sum(y)


@pytest.mark.parametrize("n", [15, 16, 17, 40, 200])
def test_many_coefficients(n):
    """Numbers that are parameters: the coefficients of one plan, also on a tape."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, 3, 3))
    x, y = rng.standard_normal((2, 3))

    def value(*c):
        total = c[0] * pl.lazy(a[0])
        for k in range(1, n):
            total = total + c[k] * pl.lazy(a[k])
        return x @ (total @ y)

    g = pl.value_and_grad(value, argnums=tuple(range(n)))
    each = np.einsum("i,kij,j->k", x, a, y)
    for turn in range(5):
        c = rng.uniform(0.5, 2, n) * (1 if turn < 3 else -1)
        got, slopes = g(*[np.array(v) for v in c])
        np.testing.assert_allclose(got, c @ each, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(np.array(slopes), each, rtol=1e-9, atol=1e-11)
