"""What gradients cost by kind and by what the value is made of: the table of docs/gradients.md.

    python tools/gradient_costs.py          prints the table
    python tools/gradient_costs.py --write  puts it into the page
    python tools/gradient_costs.py --check  exits with 1 where the page has another

For each kind a value and its gradient are computed at two sizes; the exponents are those of the
flops of the plans' steps and of the largest array that a step writes."""

import argparse
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import pylinop as pl

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gradients.md"
START, END = "<!-- costs -->", "<!-- /costs -->"
SIZES = (576, 1296)  # squares, of numbers that are no primes

Make = Callable[..., Any]


def _near(n: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(n).standard_normal(n)


def _first(n: int) -> np.ndarray:
    return 0.5 ** np.arange(n) + 2.0 * (np.arange(n) == 0)


def _blocks(n: int) -> list[np.ndarray]:
    ones = np.ones((n // 3, 3, 3))
    return [0.1 * ones[1:], ones + 9 * np.eye(3)]


def _square(n: int) -> np.ndarray:
    m = math.isqrt(n)
    a = np.random.default_rng(n).standard_normal((m, m))
    return a @ a.T + m * np.eye(m)


def _sparse(n: int) -> Any:
    w = math.isqrt(n)
    ends = [np.full(n - k, -1.0) for k in (1, w)]
    return sp.diags_array([*ends, np.full(n, 5.0), *ends], offsets=[-1, -w, 0, 1, w]).tocsr()


def _banded(n: int) -> np.ndarray:
    return np.ones((5, n)) + 9 * (np.arange(5) == 2)[:, None]


class Kind(NamedTuple):
    """What is shown; what makes it of LazyArrays; its arrays, at n rows."""

    name: str
    make: Callable[[int], Make]
    arrays: Callable[[int], list[np.ndarray]]


def _update(n: int) -> list[np.ndarray]:
    return [2 + np.cos(np.arange(n)), _near(8 * n).reshape(n, 8)]


def _tridiagonal(n: int) -> list[np.ndarray]:
    return [np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1)]


def _noisy_toeplitz(n: int) -> Make:
    return lambda c, s: pl.Toeplitz(c) + s * pl.Identity(n)


def _noisy_kron(n: int) -> Make:
    return lambda a, b, s: pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos")) + s * pl.Identity(n)


def _of_grid(n: int) -> Make:
    S = _sparse(n)
    return lambda x: pl.Sparse(S, x)


def _markov(n: int) -> Make:
    t = np.arange(n) / 9
    return lambda s: pl.quasiseparable("matern32", t, length_scale=s) + pl.Identity(n)


def _kernel(n: int) -> Make:
    x = np.arange(n)[:, None] / 9
    return lambda s, c: pl.Kernel("rbf", x, length_scale=s) + c * pl.Identity(n)


HALF, LENGTH = np.array(0.5), np.array(1.5)
KINDS = [
    Kind("`Dense`", lambda n: lambda a: pl.Dense(a, "pos"), lambda n: [np.eye(n) + 1]),
    Kind("`Diag`", lambda n: pl.Diag, lambda n: [2 + np.cos(np.arange(n))]),
    Kind("`Diag + LowRank`", lambda n: lambda d, U: pl.Diag(d) + pl.LowRank(U), _update),
    Kind("`Tridiagonal`", lambda n: pl.Tridiagonal, _tridiagonal),
    Kind("`Banded`", lambda n: lambda ab: pl.Banded((2, 2), ab), lambda n: [_banded(n)]),
    Kind("`Toeplitz`", lambda n: pl.Toeplitz, lambda n: [_first(n)]),
    Kind("`Toeplitz + c I`", _noisy_toeplitz, lambda n: [_first(n), HALF]),
    Kind("`Circulant`", lambda n: pl.Circulant, lambda n: [_first(n)]),
    Kind("`Hankel`", lambda n: pl.Hankel, lambda n: [_first(n)[::-1].copy()]),
    Kind("`Kron`", lambda n: pl.Kron, lambda n: [_square(n), _square(n)]),
    Kind("`Kron + c I`", _noisy_kron, lambda n: [_square(n), _square(n), HALF]),
    Kind("`BlockDiag` of 2", lambda n: pl.BlockDiag, lambda n: [np.eye(n // 2) + 1] * 2),
    Kind("`BlockTridiagonal`", lambda n: pl.BlockTridiagonal, _blocks),
    Kind("`Sparse`, a grid", _of_grid, lambda n: [_sparse(n).data]),
    Kind("`QuasiSeparable + I`", _markov, lambda n: [LENGTH]),
    Kind("`Kernel + c I`", _kernel, lambda n: [LENGTH, HALF]),
]
VALUES: list[tuple[str, Callable[[Any, np.ndarray], Any]]] = [
    ("`sum((K @ x)**2)`", lambda K, x: np.sum((K @ x) ** 2)),
    ("`x @ solve(K, x)`", lambda K, x: x @ pl.solve(K, x)),
    ("`slogdet(K)[1]`", lambda K, x: pl.slogdet(K)[1]),
]


def measured(make: Make, arrays: list[np.ndarray], value: Any, n: int) -> tuple[float, float]:
    """Flops, and the numbers of the largest array that a step writes."""
    x = np.cos(np.arange(n))
    with pl.explaining() as record:
        pl.value_and_grad(lambda *p: value(make(*p), x), tuple(range(len(arrays))))(*arrays)
    steps = [s for plan in record.plans for s in plan.steps if not s["conditional"]]
    shapes = [re.findall(r"\d+", s["writes"].partition("(")[2]) for s in steps]
    largest = max((math.prod(map(int, shape)) for shape in shapes), default=1)
    return sum(s["flops"] for s in steps), largest


def power(low: float, high: float) -> str:
    """n^p, p to halves, of what grows from low to high."""
    p = round(2 * math.log(max(high, 1) / max(low, 1)) / math.log(SIZES[1] / SIZES[0])) / 2
    names = {0.0: "1", 0.5: "n^1/2", 1.0: "n", 1.5: "n^3/2", 2.0: "n^2", 2.5: "n^5/2", 3.0: "n^3"}
    return names[p]


def row(kind: Kind) -> str:
    cells = []
    for _, value in VALUES:
        found = [measured(kind.make(n), kind.arrays(n), value, n) for n in SIZES]
        flops, numbers = (power(a, b) for a, b in zip(*found, strict=True))
        cells.append(f"{flops}, {numbers}")
    return f"| {kind.name} | " + " | ".join(cells) + " |"


def table() -> str:
    lines = ["| kind | " + " | ".join(name for name, _ in VALUES) + " |", "|---" * 4 + "|"]
    return "\n".join(lines + [row(kind) for kind in KINDS])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    made, text = table(), PAGE.read_text()
    head, _, rest = text.partition(START)
    there, _, tail = rest.partition(END)
    if asked.check:
        return int(there.strip() != made)
    if asked.write:
        PAGE.write_text(f"{head}{START}\n{made}\n{END}{tail}")
    else:
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
