"""`pylinop.jax` under `jax.jit` beside the same by hand in `jax.numpy` under `jax.jit`.

    python benchmarks/jax_callers.py [--rounds 60] [--large]

Interleaved in one process, wall time of one call that is waited for; minimum and median over the
rounds. Each answer is checked against the other's before anything is timed. One thread of OpenBLAS
and of XLA, where the environment says so (the script asks for it before JAX is imported)."""

import argparse
import functools
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import callers
import jax
import jax.numpy as jnp
import numpy as np

import pylinop as pl
import pylinop.jax as pj

jax.config.update("jax_enable_x64", True)


def lowrank(n, k=10):
    """solve and logdet of LowRank + Diag: one likelihood."""
    arrays = callers.lowrank(n, k)

    def ours(d, U, y):
        quad, logdet = pj.inv_quad_logdet(pj.Diag(d) + pj.LowRank(U), y)
        return quad + logdet

    @pj.program
    def program(d, U, y):
        quad, logdet = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
        return quad + logdet

    def hand(d, U, y):
        W = U / d[:, None]
        L = jnp.linalg.cholesky(jnp.eye(k) + U.T @ W)
        z = jax.scipy.linalg.solve_triangular(L, W.T @ y, lower=True)
        return y @ (y / d) - z @ z + jnp.sum(jnp.log(d)) + 2 * jnp.sum(jnp.log(jnp.diag(L)))

    return arrays, {"pylinop": ours, "pylinop, one program": program, "jnp by hand": hand}


def toeplitz(n):
    """Likelihood of a Toeplitz covariance; by hand it is dense."""
    arrays = callers.toeplitz(n)

    def ours(c, y):
        quad, logdet = pj.inv_quad_logdet(pj.Toeplitz(c), y)
        return quad + logdet

    def hand(c, y):
        at = np.abs(np.arange(n)[:, None] - np.arange(n))
        L = jnp.linalg.cholesky(c[at])
        z = jax.scipy.linalg.solve_triangular(L, y, lower=True)
        return z @ z + 2 * jnp.sum(jnp.log(jnp.diag(L)))

    return arrays, {"pylinop": ours, "jnp by hand": hand}


def kron(m):
    """Likelihood of a Kron of two m x m and a multiple of the identity: by eigenvalues by hand."""
    arrays = callers.kron(m)

    def ours(a, b, s, y):
        K = pj.Kron(pj.Dense(a, assume_a="sym"), pj.Dense(b, assume_a="sym"))
        quad, logdet = pj.inv_quad_logdet(K + s * pj.Identity(m * m), y)
        return quad + logdet

    def hand(a, b, s, y):
        (wa, Qa), (wb, Qb) = jnp.linalg.eigh(a), jnp.linalg.eigh(b)
        D = wa[:, None] * wb[None] + s
        z = Qa.T @ y.reshape(m, m) @ Qb
        return jnp.sum(z * z / D) + jnp.sum(jnp.log(D))

    return arrays, {"pylinop": ours, "jnp by hand": hand}


def waited(f, arrays):
    """One call, to its end."""
    return jax.block_until_ready(f(*arrays))


def report(title, arrays, contenders, rounds):
    """One work, its value and its value with the gradient by all but the last array."""
    arrays = tuple(map(jnp.asarray, arrays))
    number = tuple(range(len(arrays) - 1))
    for what, made in (
        ("value", jax.jit),
        ("value + grad", lambda f: jax.jit(jax.value_and_grad(f, number))),
    ):
        functions = {name: made(f) for name, f in contenders.items()}
        found = {name: jax.tree.leaves(f(*arrays)) for name, f in functions.items()}
        for leaves in found.values():
            for a, b in zip(leaves, found["jnp by hand"], strict=True):
                off = np.max(np.abs(a - callers.symmetric(b))) / max(1, np.max(np.abs(b)))
                assert off < 1e-7, f"{title}, {what}: off by {off:.1e}"
        calls = {name: functools.partial(waited, f, arrays) for name, f in functions.items()}
        callers.print_rows(title, what, callers.measured(calls, rounds), "jnp by hand")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--large", action="store_true", help="also n = 1e4 and Kron 30 x 30")
    given = parser.parse_args()
    print(callers.HEAD.format("jnp by hand"))
    report("LowRank + Diag, n = 100", *lowrank(100), given.rounds)
    report("Toeplitz, n = 500", *toeplitz(500), given.rounds)
    report("Kron 12 x 12 + s I", *kron(12), given.rounds)
    if given.large:
        report("LowRank + Diag, n = 10000", *lowrank(10000), given.rounds)
        report("Kron 30 x 30 + s I", *kron(30), max(5, given.rounds // 10))
