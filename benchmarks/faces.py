"""Value and gradient of likelihoods in NumPy, PyTorch and JAX: the faces beside each other.

    python benchmarks/faces.py [--rounds 60] [--large]

One program in each: `pylinop.value_and_grad`, `pylinop.torch.program` and `backward()`,
`jax.jit(jax.value_and_grad(pylinop.jax.program))`; for LowRank + Diag also `jax.numpy` by hand. By
turns in one process, wall time of a call; answers are compared before anything is timed."""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import callers
import jax
import jax.numpy as jnp
import numpy as np
import torch

import pylinop as pl
import pylinop.jax as pj
import pylinop.torch as pt

jax.config.update("jax_enable_x64", True)
torch.set_num_threads(1)


def toeplitz(c, y):
    quad, logdet = pl.inv_quad_logdet(pl.Toeplitz(c), y)
    return quad + logdet


def kron(a, b, s, y):
    m = len(a)
    K = pl.Kron(pl.Dense(a, assume_a="sym"), pl.Dense(b, assume_a="sym"))
    quad, logdet = pl.inv_quad_logdet(K + s * pl.Identity(m * m), y)
    return quad + logdet


def quasi(d, p, q, a, y):
    K = pl.QuasiSeparable(d, p, q, a)
    return y @ pl.solve(K, y) + pl.logdet(K)


def lowrank(d, U, y):
    quad, logdet = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
    return quad + logdet


def lowrank_by_hand(d, U, y):
    W = U / d[:, None]
    L = jnp.linalg.cholesky(jnp.eye(U.shape[1]) + U.T @ W)
    z = jax.scipy.linalg.solve_triangular(L, W.T @ y, lower=True)
    return y @ (y / d) - z @ z + jnp.sum(jnp.log(d)) + 2 * jnp.sum(jnp.log(jnp.diagonal(L)))


def quasi_arrays(n):
    """(d, p, q, a, y): a process of two states that forget."""
    rng = callers.RNG
    p, q = rng.random((2, n, 2))
    return rng.random(n) + 8, p, q, 0.3 + 0.4 * rng.random((n, 2)), rng.standard_normal(n)


def contenders(f, arrays, by_hand=None):
    """{name: call}, each to (value, gradients by all but the last array)."""
    number = tuple(range(len(arrays) - 1))
    own = pl.value_and_grad(f, number)
    tensors = [torch.from_numpy(np.asarray(a)).clone().requires_grad_() for a in arrays]
    tensors[-1].requires_grad_(False)
    program = pt.program(f)

    def in_torch():
        for t in tensors:
            t.grad = None
        value = program(*tensors)
        value.backward()
        return value.detach(), [t.grad for t in tensors[:-1]]

    given = [jnp.asarray(a) for a in arrays]

    def compiled(g):
        run = jax.jit(jax.value_and_grad(g, number))
        return lambda: jax.block_until_ready(run(*given))

    found = {"NumPy": lambda: own(*arrays), "PyTorch": in_torch, "JAX": compiled(pj.program(f))}
    return found | ({"jnp by hand": compiled(by_hand)} if by_hand else {})


def report(title, f, arrays, rounds, by_hand=None):
    calls = contenders(f, arrays, by_hand)
    value, gradients = calls["NumPy"]()
    for name, call in calls.items():
        for _ in range(4):
            v, gs = call()
        assert abs(float(v) - value) < 1e-8 * abs(value), f"{title}, {name}"
        for g, h in zip(gs, gradients, strict=True):
            g, h = np.asarray(g), np.asarray(h)
            assert np.allclose(g, h, rtol=1e-6, atol=1e-7 * np.abs(h).max()), f"{title}, {name}"
    callers.print_rows(title, "value + grad", callers.measured(calls, rounds), "NumPy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--large", action="store_true", help="also LowRank + Diag of 10,000")
    given = parser.parse_args()
    print(callers.HEAD.format("NumPy"))
    report(
        "LowRank + Diag, n = 100", lowrank, callers.lowrank(100, 10), given.rounds, lowrank_by_hand
    )
    report("Toeplitz, n = 100", toeplitz, callers.toeplitz(100), given.rounds)
    report("Toeplitz, n = 500", toeplitz, callers.toeplitz(500), given.rounds)
    report("Kron 12 x 12 + s I", kron, callers.kron(12), given.rounds)
    report("QuasiSeparable, n = 100", quasi, quasi_arrays(100), given.rounds)
    report("QuasiSeparable, n = 1000", quasi, quasi_arrays(1000), given.rounds)
    if given.large:
        big = callers.lowrank(10000, 10)
        report("LowRank + Diag, n = 10000", lowrank, big, given.rounds, lowrank_by_hand)
