"""Templates over symbolic sizes: a call of a size that was met before beside the same formula
written again and NumPy by hand, a call of a new size, and `unify`; prints the table of
RESULTS_einsum.md.

    python benchmarks/templates.py"""

import statistics
import time

import numpy as np

import pylinop as pl

ROUNDS, CALLS, NEW = 9, 2000, 40


def ridge():
    """Six operations: inv(X.T @ X + E) @ (X.T @ y)."""
    N, K = pl.symbols("N K")
    X, y, E = pl.placeholder((N, K)), pl.placeholder(N), 0.1 * np.eye(3)
    f = pl.function((X, y), pl.inv(X.T @ X + E) @ (X.T @ y))
    lazy = pl.lazy(E)

    def again(a, b):
        a = pl.lazy(a)
        return pl.inv(a.T @ a + lazy) @ (a.T @ b)

    return f, again, lambda a, b: np.linalg.inv(a.T @ a + E) @ (a.T @ b)


def arrays(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 3)), rng.normal(size=n)


def minima(**functions):
    """The least time a call of each in us, by turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, f in functions.items():
            start = time.process_time()
            for _ in range(CALLS):
                f()
            best[name] = min(best[name], (time.process_time() - start) / CALLS)
    return {name: 1e6 * t for name, t in best.items()}


def new_sizes(f, sizes):
    times = []
    for n in sizes:
        given = arrays(n)
        start = time.process_time()
        f(*given).toarray()
        times.append(time.process_time() - start)
    return 1e6 * statistics.median(times)


def unified():
    n, w = pl.symbols("n w")
    X, W, C = pl.placeholder(n), pl.placeholder(w), pl.placeholder((128, 20))
    Y = pl.einsum("c x, x -> c x", C, X)
    for _ in range(2):
        Y = pl.einsum("c (o + k), k -> c o", Y, W)
    return lambda: pl.unify((Y, (128, 16)))


def main():
    f, again, by_numpy = ridge()
    a, b = arrays(8)
    assert np.allclose(f(a, b).toarray(), by_numpy(a, b))
    found = minima(
        template=lambda: f(a, b).toarray(),
        built=lambda: f(a, b),
        formula=lambda: again(a, b).toarray(),
        numpy=lambda: by_numpy(a, b),
    )
    print("| ridge regression of 8 x 3, six operations | us |\n|---|---|")
    print(f"| template, value included | {found['template']:.3g} |")
    print(f"| of that, binding and nodes | {found['built']:.3g} |")
    print(f"| the formula written again | {found['formula']:.3g} |")
    print(f"| NumPy by hand | {found['numpy']:.3g} |")
    print(f"| template, a new size (median of {NEW}) | {new_sizes(f, range(50, 50 + NEW)):.3g} |")
    print(
        f"| the formula written again, a new size | {new_sizes(again, range(150, 150 + NEW)):.3g} |"
    )
    print(f"| `unify` of loop_tool's program | {minima(unify=unified())['unify']:.3g} |")


if __name__ == "__main__":
    main()
