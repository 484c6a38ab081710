"""Value and gradient of losses of elementwise functions and reductions, by a function called again
and by a `pl.program`, beside PyTorch: python benchmarks/elementwise_losses.py [NAME ...]

By turns in one process, CPU time of the thread, one thread each; minima and, in brackets, medians
of 80 rounds of 5 calls, in microseconds and over PyTorch's. Values are compared first, to 1e-10.
"""

import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import pylinop as pl

torch.set_num_threads(1)
G = np.random.default_rng(0)
normal, tensor = G.standard_normal, torch.tensor


def softmax():
    X, t = normal((200, 20)), G.integers(0, 5, 200)
    Y, X2, t2 = np.eye(5)[t], tensor(X), tensor(t)

    def ours(W):
        Z = pl.lazy(X) @ W
        Z = Z - np.max(Z, axis=1, keepdims=True)
        return np.mean(np.log(np.sum(np.exp(Z), axis=1)) - np.sum(Y * Z, axis=1))

    return ours, lambda W: torch.nn.functional.cross_entropy(X2 @ W, t2), (0.1 * normal((20, 5)),)


def logistic():
    X, t = normal((500, 20)), G.integers(0, 2, 500) * 2.0 - 1
    X2, t2 = tensor(X), tensor(t)

    def ours(w):
        return np.sum(np.log1p(np.exp(-t * (pl.lazy(X) @ w)))) + 0.5 * w @ w

    def theirs(w):
        return torch.nn.functional.softplus(-t2 * (X2 @ w)).sum() + 0.5 * w @ w

    return ours, theirs, (0.1 * normal(20),)


def barlow_twins():
    A = normal((100, 16))
    views = A, A + 0.1 * normal((100, 16))

    def ours(W):
        Z = [pl.lazy(x) @ W for x in views]
        Z = [(z - np.mean(z, axis=0)) / np.std(z, axis=0) for z in Z]
        C = Z[0].T @ Z[1] / 100
        d = np.diagonal(C)
        return np.sum(np.square(d - 1)) + 0.01 * (np.sum(C * C) - np.sum(np.square(d)))

    def theirs(W):
        Z = [tensor(x) @ W for x in views]
        Z = [(z - z.mean(0)) / z.std(0, unbiased=False) for z in Z]
        C = Z[0].T @ Z[1] / 100
        d = torch.diagonal(C)
        return ((d - 1) ** 2).sum() + 0.01 * ((C * C).sum() - (d**2).sum())

    return ours, theirs, (normal((16, 8)),)


def masked_factors():
    R, M = normal((60, 40)), 1.0 * (G.random((60, 40)) < 0.3)
    R2, M2 = tensor(R), tensor(M)

    def ours(U, V):
        E = M * (R - U @ V.T)
        return np.sum(E * E) + 0.1 * (np.sum(U * U) + np.sum(V * V))

    def theirs(U, V):
        return ((M2 * (R2 - U @ V.T)) ** 2).sum() + 0.1 * ((U * U).sum() + (V * V).sum())

    return ours, theirs, (normal((60, 4)), normal((40, 4)))


def network():
    X, y = normal((200, 10)), normal(200)
    X2, y2 = tensor(X), tensor(y)

    def ours(W, v):
        r = np.tanh(pl.lazy(X) @ W) @ v - y
        return np.mean(r * r)

    def theirs(W, v):
        return ((torch.tanh(X2 @ W) @ v - y2) ** 2).mean()

    return ours, theirs, (0.3 * normal((10, 16)), normal(16))


def poisson():
    X, y = normal((500, 10)), 1.0 * G.poisson(2, 500)
    X2, y2 = tensor(X), tensor(y)

    def ours(w):
        e = pl.lazy(X) @ w
        return np.sum(np.exp(e) - y * e)

    def theirs(w):
        e = X2 @ w
        return (e.exp() - y2 * e).sum()

    return ours, theirs, (0.1 * normal(10),)


def student():
    X, y = normal((300, 8)), normal(300)
    X2, y2 = tensor(X), tensor(y)

    def ours(w, s):
        r = (y - pl.lazy(X) @ w) * np.exp(-s)
        return np.sum(2.5 * np.log1p(r * r / 4)) + 300 * s

    def theirs(w, s):
        r = (y2 - X2 @ w) * torch.exp(-s)
        return (2.5 * torch.log1p(r * r / 4)).sum() + 300 * s

    return ours, theirs, (0.1 * normal(8), np.array(0.3))


CASES = [softmax, logistic, barlow_twins, masked_factors, network, poisson, student]


def measured(make):
    ours, theirs, start = make()
    numbers = tuple(range(len(start)))
    leaves = [torch.tensor(x, requires_grad=True) for x in start]

    def torchs(*_):
        value = theirs(*leaves)
        return value, torch.autograd.grad(value, leaves)

    by_function = pl.value_and_grad(ours, numbers)
    by_program = pl.value_and_grad(pl.program(ours), numbers)
    calls = by_function, by_program, torchs
    for _ in range(12):
        *found, (value, due) = (call(*start) for call in calls)
    for own, gradients in found:
        assert abs(own - value.item()) < 1e-10 * abs(own)
        for a, b in zip(gradients, due, strict=True):
            assert np.abs(a - b.numpy()).max() < 1e-10 * max(1, np.abs(a).max())
    times = [[], [], []]
    for _ in range(80):
        for to, call in zip(times, calls, strict=True):
            before = time.thread_time()
            for _ in range(5):
                call(*start)
            to.append((time.thread_time() - before) / 5e-6)
    return [(min(t), float(np.median(t))) for t in times]


def main():
    print("| loss | function | program | PyTorch | function over it | program over it |")
    print("|---|---|---|---|---|---|")
    for make in CASES:
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        rows = measured(make)
        base = rows[-1]
        cells = [f"{least:.0f} ({mid:.0f}) us" for least, mid in rows]
        cells += [f"{a / base[0]:.2f} ({b / base[1]:.2f})" for a, b in rows[:2]]
        print(f"| {make.__name__} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
