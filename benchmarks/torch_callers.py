"""`pylinop.torch` beside the same by hand in torch, and beside linear_operator where it is there.

    python benchmarks/torch_callers.py [--rounds 200] [--large]

Interleaved in one process, wall time of one call; minimum and median over the rounds. Each answer
is checked against that by hand before anything is timed. One thread of OpenBLAS and of torch."""

import argparse
import functools
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import callers
import numpy as np
import torch
from torch_by_hand import low_rank_by_program_and_hand

import pylinop.torch as pt

try:
    import linear_operator as lo
except ImportError:
    lo = None

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def lowrank(n, k=10):
    """solve and logdet of LowRank + Diag: one likelihood."""
    arrays = callers.lowrank(n, k)

    def ours(d, U, y):
        quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
        return quad + logdet

    def theirs(d, U, y):
        C = lo.operators.LowRankRootLinearOperator(U).add_diagonal(d)
        quad, log = C.inv_quad_logdet(y[:, None], logdet=True)
        return quad + log

    found = {"pylinop": ours} | low_rank_by_program_and_hand()
    return arrays, found | ({"linear_operator": theirs} if lo else {})


def toeplitz(n):
    """Likelihood of a Toeplitz covariance; by hand it is dense."""
    arrays = callers.toeplitz(n)
    at = torch.abs(torch.arange(n)[:, None] - torch.arange(n))

    def ours(c, y):
        quad, logdet = pt.inv_quad_logdet(pt.Toeplitz(c), y)
        return quad + logdet

    def hand(c, y):
        L = torch.linalg.cholesky(c[at])
        z = torch.linalg.solve_triangular(L, y[:, None], upper=False)
        return (z * z).sum() + 2 * torch.log(torch.diagonal(L)).sum()

    return arrays, {"pylinop": ours, "torch by hand": hand}


def kron(m):
    """Likelihood of a Kron of two m x m and a multiple of the identity: by eigenvalues by hand."""
    arrays = callers.kron(m)

    def ours(a, b, s, y):
        K = pt.Kron(pt.Dense(a, assume_a="sym"), pt.Dense(b, assume_a="sym"))
        quad, logdet = pt.inv_quad_logdet(K + s * pt.Identity(m * m), y)
        return quad + logdet

    def hand(a, b, s, y):
        (wa, Qa), (wb, Qb) = torch.linalg.eigh(a), torch.linalg.eigh(b)
        D = wa[:, None] * wb[None] + s
        z = Qa.T @ y.reshape(m, m) @ Qb
        return (z * z / D).sum() + torch.log(D).sum()

    return arrays, {"pylinop": ours, "torch by hand": hand}


def value_and_grad(f, tensors):
    """(value, gradients by all but the last tensor), gradients as torch's optimizers take them."""
    for t in tensors[:-1]:
        t.grad = None
    value = f(*tensors)
    value.backward()
    return value.detach(), [t.grad for t in tensors[:-1]]


def report(title, arrays, contenders, rounds):
    """One work, its value and its value with the gradient."""
    tensors = [torch.from_numpy(np.asarray(a)).clone().requires_grad_() for a in arrays]
    tensors[-1].requires_grad_(False)
    ways = {
        "value": lambda f: (f(*[t.detach() for t in tensors]), []),
        "value + grad": lambda f: value_and_grad(f, tensors),
    }
    for what, way in ways.items():
        found = {name: way(f) for name, f in contenders.items()}
        value, grads = found["torch by hand"]
        for name, (v, gs) in found.items():
            assert abs(v - value) < 1e-7 * abs(value), f"{title}, {name}: {v} for {value}"
            for g, h in zip(gs, grads, strict=True):
                h = callers.symmetric(h)
                assert torch.allclose(g, h, rtol=1e-6, atol=1e-7), f"{title}, {name}"
        calls = {name: functools.partial(way, f) for name, f in contenders.items()}
        callers.print_rows(title, what, callers.measured(calls, rounds), "torch by hand")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--large", action="store_true", help="also n = 1e4 and Kron 30 x 30")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of linear_operator's own
    print(callers.HEAD.format("torch by hand"))
    report("LowRank + Diag, n = 100", *lowrank(100), given.rounds)
    report("Toeplitz, n = 500", *toeplitz(500), given.rounds)
    report("Kron 12 x 12 + s I", *kron(12), given.rounds)
    if given.large:
        report("LowRank + Diag, n = 10000", *lowrank(10000), given.rounds // 4)
        report("Kron 30 x 30 + s I", *kron(30), given.rounds // 4)
