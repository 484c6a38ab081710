"""Contractions that are computed together: a part that they share is computed once."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._contractions import equations

SIZE = dict(zip("abcdefgh", (3, 4, 5, 6, 7, 2, 3, 4)))


@pytest.fixture
def runs(monkeypatch):
    """Equations that were run, as text."""
    found = []
    run = equations.run

    def counted(task, arrays, out=None):
        found.append(task.equation.text)
        return run(task, arrays, out)

    monkeypatch.setattr(equations, "run", counted)
    return found


def arrays(rng, *terms, dtype=float):
    return [rng.normal(size=[SIZE[x] for x in t]).astype(dtype) for t in terms]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_a_part_of_two_is_computed_once(dtype, rng, runs):
    x, y, u, v = arrays(rng, "abc", "bcd", "dae", "dah", dtype=dtype)
    with pl.config(check_plans=True, verify=True):
        one = np.einsum("abc,bcd,dae->e", pl.lazy(x), y, u)
        two = np.einsum("PQR,QRS,SPh->h", pl.lazy(x), y, v)  # other names
        first, second = pl.evaluate(one, two)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    for made, text, last in ((first, "abc,bcd,dae->e", u), (second, "abc,bcd,dah->h", v)):
        want = np.einsum(text, x, y, last, optimize=True)
        np.testing.assert_allclose(made, want, rtol=tolerance, atol=tolerance * abs(want).max())
    assert len(runs) == 3 and len(set(runs)) == 3, runs


def test_what_stays_otherwise_is_another_part(rng, runs):
    x, y, u = arrays(rng, "abc", "bcd", "dae")
    one = np.einsum("abc,bcd,dae->e", pl.lazy(x), y, u)
    two = np.einsum("abc,bcd,dae->ce", pl.lazy(x), y, u)  # c is summed later
    first, second = pl.evaluate(one, two)
    np.testing.assert_allclose(first, np.einsum("abc,bcd,dae->e", x, y, u))
    np.testing.assert_allclose(second, np.einsum("abc,bcd,dae->ce", x, y, u))
    assert len(runs) == 2


def test_parts_of_formulas_and_of_values(rng, runs):
    x, y, u = arrays(rng, "abc", "bcd", "dae")
    common = pl.lazy(x) * 2
    one = np.einsum("abc,bcd,dae->e", common, y, u)
    two = np.einsum("abc,bcd,dag->g", common, y, u)
    first, second, total = pl.evaluate(one, np.exp(two), one.sum() + two.sum())
    want = np.einsum("abc,bcd,dae->e", 2 * x, y, u)
    np.testing.assert_allclose(first, want)
    np.testing.assert_allclose(second, np.exp(want))
    np.testing.assert_allclose(total, 2 * want.sum())


def test_random_networks_are_numpys(rng):
    for _ in range(40):
        letters = list("abcdef")
        pool = ["".join(rng.permutation(letters)[: rng.integers(2, 4)]) for _ in range(5)]
        held = [pl.lazy(a) for a in arrays(rng, *pool)]
        made, want = [], []
        for _ in range(int(rng.integers(2, 5))):
            some = rng.integers(0, 5, int(rng.integers(3, 6)))
            known = sorted({x for k in some for x in pool[k]})
            out = "".join(rng.permutation(known)[: rng.integers(0, 3)])
            text = ",".join(pool[k] for k in some) + "->" + out
            made.append(np.einsum(text, *(held[k] for k in some)))
            given = [np.asarray(held[k]) for k in some]
            want.append((np.einsum(text, *given), np.einsum(text, *map(abs, given))))
        for got, (value, size) in zip(pl.evaluate(*made), want):
            assert np.all(np.abs(got - value) <= 1e-12 * size)


def test_one_alone_is_left_as_it_is(rng, runs):
    x, y, u = arrays(rng, "abc", "bcd", "dae")
    pl.evaluate(np.einsum("abc,bcd,dae->e", pl.lazy(x), y, u), pl.lazy(x) + 1)
    assert runs == ["abc,bcd,dae->e"]
