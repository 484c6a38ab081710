"""What `torch_callers.py` and `jax_callers.py` share: data of three likelihoods, times of calls."""

import statistics
import time

import numpy as np

RNG = np.random.default_rng(0)
HEAD = "| work | | contender | min us | median us | to {} |\n|---|---|---|---|---|---|"


def lowrank(n, k):
    """(d, U, y) of diag(d) + U U^T."""
    return RNG.random(n) + 2, RNG.standard_normal((n, k)) / 3, RNG.standard_normal(n)


def toeplitz(n):
    """(c, y) of a covariance that decays, with noise."""
    t = np.arange(n) / 50.0
    return np.exp(-t) + 0.1 * (t == 0), RNG.standard_normal(n)


def kron(m):
    """(A, B, s, y) of kron(A, B) + s I, both positive definite, m x m."""
    a, b = (x @ x.T + m * np.eye(m) for x in RNG.standard_normal((2, m, m)))
    return a, b, np.array(0.7), RNG.standard_normal(m * m)


def symmetric(gradient):
    """That of a matrix by hand, as of one that is declared symmetric."""
    square = gradient.ndim == 2 and gradient.shape[0] == gradient.shape[1]
    return (gradient + gradient.T) / 2 if square else gradient


def measured(calls, rounds):
    """{name: (minimum, median)} in microseconds, of calls without arguments, by turns."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, f in calls.items():
            start = time.perf_counter()
            f()
            times[name].append(1e6 * (time.perf_counter() - start))
    return {name: (min(t), statistics.median(t)) for name, t in times.items()}


def print_rows(title, what, found, peer):
    """Lines of a table: `found` of `measured`, as a ratio to `peer`'s minimum."""
    for name, (low, middle) in found.items():
        print(
            f"| {title} | {what} | {name} | {low:.0f} | {middle:.0f} | {low / found[peer][0]:.2f} |"
        )
