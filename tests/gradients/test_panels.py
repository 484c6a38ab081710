"""Derivatives by numbers that the blocks of a BlockDiag are multiples of: one trace for each."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

T, K = 6, 5


def definite(rng, k=K):
    a = rng.standard_normal((k, k))
    return a @ a.T / k


def once(rng):
    R = pl.Dense(definite(rng))
    return lambda c: [c[0] * pl.lazy(R) + c[1] * pl.Identity(K) for _ in range(T)]


def several(rng):
    R = [pl.Dense(definite(rng, k)) for k in (3, 5, 4, 5, 2, 7)]
    return lambda c: [c[0] * pl.lazy(r) + c[1] * pl.Identity(r.shape[0]) for r in R]


def through_functions(rng):
    R = [pl.Dense(definite(rng)) for _ in range(T)]
    return lambda c: [
        np.exp(c[0]) * (2.0 * pl.lazy(r) + np.exp(c[1]) * pl.Identity(K)) + c[0] * c[0] * pl.lazy(r)
        for r in R
    ]


def some_alone(rng):
    R = [pl.Dense(definite(rng)) for _ in range(T)]
    return lambda c: [
        (c[0] * pl.lazy(r) if k % 3 else pl.lazy(r)) + c[1] * c[k % 2] * pl.Identity(K)
        for k, r in enumerate(R)
    ]


def structured(rng):
    made = [pl.Toeplitz(np.r_[2.0, rng.random(K - 1) / K]) for _ in range(3)]
    made += [pl.Diag(rng.random(K) + 1), pl.Dense(definite(rng)), pl.Kron(np.eye(1), definite(rng))]
    return lambda c: [c[0] * pl.lazy(r) + c[1] * pl.Identity(K) for r in made]


def complex_ones(rng):
    made = []
    for _ in range(T):
        a = rng.standard_normal((K, K)) + 1j * rng.standard_normal((K, K))
        made.append(pl.Dense(a @ a.conj().T / K))
    return lambda c: [c[0] * pl.lazy(r) + c[1] * pl.Identity(K) for r in made]


BLOCKS = [once, several, through_functions, some_alone, structured, complex_ones]


def likelihood(y):
    return lambda B: np.real(pl.logdet(B)) + np.real(np.conj(y) @ pl.solve(B, y))


def inverse_parts(w):
    return lambda B: np.real(pl.trace(pl.inv(B))) + np.sum(w * np.real(pl.inv(B).diagonal()))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("beside", ["nothing", "low rank", "identity"])
@pytest.mark.parametrize("what", ["likelihood", "parts", "product"])
def test_beside_differences(blocks, beside, what):
    rng = np.random.default_rng(BLOCKS.index(blocks))
    made = blocks(rng)
    n = pl.BlockDiag(*[pl.evaluate(b) for b in made(pl.lazy(np.ones(2)))]).shape[0]
    y, w, U = rng.standard_normal(n), rng.random(n), rng.standard_normal((n, 2))
    last = {
        "likelihood": likelihood(y),
        "parts": inverse_parts(w),
        "product": lambda B: np.sum(np.abs(B @ y) ** 2),
    }[what]

    def f(c):
        B = pl.BlockDiag(*made(c))
        if beside == "low rank":
            B = B + pl.LowRank(U)
        if beside == "identity":
            B = B + c[1] * c[0] * pl.Identity(n)
        return last(B)

    at = np.array([0.7, 0.6])
    with pl.config(check_plans=True):
        check(f, at, rtol=1e-8)
        check_second(f, at, rtol=1e-6)


def test_by_blocks_and_numbers_at_once():
    """The numbers of a multiple and the matrix in it."""
    rng = np.random.default_rng(7)
    R = [definite(rng) for _ in range(T)]
    y = rng.standard_normal(T * K)

    def f(a, s, *R):
        B = pl.BlockDiag(*[a * r + s * pl.Identity(K) for r in R])
        return pl.logdet(B) + y @ pl.solve(B, y) + a * s

    check(f, np.array(0.8), np.array(0.5), *R)
    check_second(f, np.array(0.8), np.array(0.5), *R, rtol=1e-6)


def test_a_block_used_outside_too():
    rng = np.random.default_rng(8)
    R = [pl.Dense(definite(rng)) for _ in range(T)]
    y = rng.standard_normal(T * K)

    def f(c):
        blocks = [c[0] * pl.lazy(r) + c[1] * pl.Identity(K) for r in R]
        B, C = pl.BlockDiag(*blocks), pl.BlockDiag(*blocks[::-1])
        return pl.logdet(B) + y @ pl.solve(C, B @ y) + pl.logdet(blocks[2]) * c[0]

    check(f, np.array([0.8, 0.5]))
    check_second(f, np.array([0.8, 0.5]), rtol=1e-6)


def test_of_many_blocks_hessians_take_few_traces():
    """100 blocks of 20 rows beside a low rank: a product of 2,000 x 2,000 matrices is 1.6e10."""
    rng = np.random.default_rng(9)
    R = [pl.Dense(definite(rng, 20)) for _ in range(100)]
    U = rng.standard_normal((2000, 3))
    c = pl.lazy(np.array([1.0, 0.5]))
    B = pl.BlockDiag(*[c[0] * pl.lazy(r) + c[1] * pl.Identity(20) for r in R])
    y = rng.standard_normal(2000)
    S = B + pl.LowRank(U)
    value = pl.logdet(S) + y @ pl.solve(S, y)
    slopes = pl.gradients(value, c)
    along = pl.gradients(np.sum(slopes * np.array([0.3, 0.4])), c)
    plan = along.explain()
    flops = sum(s["flops"] for s in plan.steps if not s["conditional"])
    assert flops < 1e8, flops
