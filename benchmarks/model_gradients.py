"""Values and gradients of whole models that were written before anything was tuned for them:
python benchmarks/model_gradients.py [ROWS]

Wall time, minima of three calls in turn, with fresh parameters each, so that nothing is kept; 2,400
rows if nothing is given. The last column has the steps that make an array of n x n numbers, where
the model is not of a dense matrix itself. Threads: OPENBLAS_NUM_THREADS, 1 if it is not set.
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pylinop as pl

RNG = np.random.default_rng(0)
MODELS = {}


def model(f):
    MODELS[f.__name__.replace("_", " ")] = f
    return f


def on_a_line(n):
    t = np.sort(RNG.uniform(0, n / 10, n))
    return t[:, None], np.c_[np.ones(n), t / n], RNG.standard_normal(n)


def likelihood(K, y):
    return y @ pl.solve(K, y) + pl.logdet(K)


def matern(x, p, name="matern32"):
    return pl.Kernel(name, x, variance=p["v"], length_scale=p["l"])


NUMBERS = {"v": np.array(1.1), "l": np.array(1.3), "s": np.array(0.3)}


@model
def mean_and_covariance(n):
    x, X, y = on_a_line(n)

    def f(p):
        return likelihood(matern(x, p) + p["s"] * pl.Identity(n), y - X @ p["b"])

    return f, NUMBERS | {"b": RNG.standard_normal(2)}


@model
def noise_of_each_point(n):
    x, _, y = on_a_line(n)

    def f(p):
        return likelihood(matern(x, p) + pl.Diag(np.exp(p["h"])), y)

    return f, NUMBERS | {"h": 0.1 * RNG.standard_normal(n)}


@model
def two_markov_kernels(n):
    x, _, y = on_a_line(n)

    def f(p):
        K = matern(x, p, "matern52") + pl.Kernel("matern12", x, length_scale=10 * p["l"])
        return likelihood(K + p["s"] * pl.Identity(n), y)

    return f, NUMBERS


@model
def markov_and_low_rank(n):
    x, X, y = on_a_line(n)

    def f(p):
        return likelihood(matern(x, p) + p["s"] * pl.Identity(n) + pl.LowRank(X), y)

    return f, NUMBERS


@model
def restricted_likelihood(n):
    x, X, y = on_a_line(n)

    def f(p):
        K = matern(x, p, "matern12") + p["s"] * pl.Identity(n)
        Xl = pl.lazy(X)
        return likelihood(K, y) + pl.logdet(Xl.T @ pl.inv(K) @ Xl)

    return f, NUMBERS


@model
def left_out_points(n):
    x, _, y = on_a_line(n)

    def f(p):
        W = pl.inv(matern(x, p) + p["s"] * pl.Identity(n))
        return np.sum((W @ y / pl.diagonal(W)) ** 2)

    return f, NUMBERS


@model
def linear_flow(n):
    x, y = RNG.standard_normal((2, n))

    def f(p):
        r = pl.expm(pl.LowRank(p["u"], p["w"]) - pl.Diag(np.exp(p["d"]))) @ x - y
        return r @ r

    u, w = RNG.standard_normal((2, n, 2)) / n**0.5
    return f, {"u": u, "w": w, "d": 0.2 * RNG.standard_normal(n)}


@model
def field_on_a_grid(n):
    a = int(n**0.5)
    T = pl.Tridiagonal(-np.ones(a - 1), np.full(a, 2.0), -np.ones(a - 1))
    y, eye = RNG.standard_normal(a * a), pl.Identity(a)

    def f(p):
        Q = p["v"] * (pl.Kron(T, eye) + pl.Kron(eye, T)) + p["s"] * pl.Identity(a * a)
        return y @ (Q @ y) - pl.logdet(Q @ Q) + pl.trace(pl.inv(Q))

    return f, NUMBERS


@model
def equal_correlations(n):
    y = RNG.standard_normal(n)

    def f(p):
        R = (1 - p["s"]) * pl.Identity(n) + p["s"] * pl.Full((n, n), 1.0)
        D = pl.Diag(np.exp(p["h"]))
        return likelihood(D @ R @ D, y)

    return f, NUMBERS | {"h": 0.2 * RNG.standard_normal(n)}


@model
def diffusion_map(n):
    x, g = RNG.standard_normal((n, 2)), RNG.standard_normal(n)

    def f(p):
        K = pl.Kernel("rbf", x, length_scale=p["l"])
        D = pl.Diag(1 / np.sqrt(K @ np.ones(n)))
        P = D @ K @ D
        return g @ (P @ (P @ g)) + pl.trace(P)

    return f, NUMBERS


@model
def predicted_covariance(n):
    x, _, y = on_a_line(n)
    z = np.linspace(0, n / 10, 15)[:, None]

    def f(p):
        K = pl.Kernel("rbf", x, length_scale=p["l"]) + p["s"] * pl.Identity(n)
        k = pl.Kernel("rbf", z, x, length_scale=p["l"])
        C = pl.Kernel("rbf", z, length_scale=p["l"]) - k @ pl.inv(K) @ k.T + pl.Identity(15)
        return likelihood(C, k @ pl.solve(K, y))

    return f, NUMBERS


@model
def whitened_by_cholesky(n):
    x, _, y = on_a_line(n)

    def f(p):
        L = pl.cholesky(matern(x, p, "matern52") + p["s"] * pl.Identity(n))
        w = pl.solve(L, y)
        return 0.5 * w @ w + np.sum(np.log(pl.diagonal(L)))

    return f, NUMBERS


DENSE = {"diffusion map", "predicted covariance", "whitened by cholesky"}  # matrices of n x n


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2400
    print(f"{n} rows, ms: value, value and gradient, over it; load {os.getloadavg()[0]:.1f}")
    for name, make in MODELS.items():
        f, p = make(n)
        whole = pl.value_and_grad(f)
        f(p), whole(p)
        times = []
        for i in range(3):
            q = {k: v * (1 + 1e-3 * (i + 1)) for k, v in p.items()}
            start = time.perf_counter()
            float(f(q))
            middle = time.perf_counter()
            whole(q)
            times.append((middle - start, time.perf_counter() - middle))
        value, both = (1e3 * min(t) for t in zip(*times, strict=True))
        with pl.explaining() as e:
            whole(p)
        large = f"{n}, {n}", f"{int(n**0.5) ** 2}, {int(n**0.5) ** 2}"
        steps = [s["name"] for s in e.steps if s["took"] and any(x in s["writes"] for x in large)]
        made = "" if name in DENSE else " ".join(dict.fromkeys(steps))
        print(f"{name:24}{value:10.2f}{both:10.2f}{both / value:8.1f}  {made}", flush=True)


if __name__ == "__main__":
    main()
