"""All pairs of kinds under +, - and @, inside solve and slogdet, and all sums of three with signs:

    python -m formulas.exhaustive [pairs|triples] [n ...]

Each case is a program (program.py), put together from operands that are built once a size."""

import itertools
import sys
import time
import warnings

import numpy as np

import pylinop as pl

from . import leaves, reference, shrink
from .known import known
from .program import Program, written
from .run import QUIET, Wrong, agree, attempt

PAIRED = ("add", "sub", "matmul")
SIGNS = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
COLUMNS = 17


def line_of(kind, n, seed, dtype):
    """The first line of a leaf of the kind that there is at this size; None where there is none."""
    for good in (True, False):
        for s in range(seed, seed + 20):
            of = leaves.draw(kind, np.random.default_rng(s), n, n, dtype, (), "C", good)
            if of is not None:
                return ("leaf", (), (kind, "n", "n", dtype, "C", (), s, good)), of
    return None


class Operands:
    """One operand of each kind of n rows: its line, operator and Node."""

    def __init__(self, n, dtype="float64", seed=0):
        self.n, self.dtype = n, dtype
        self.lines, self.made, self.nodes = {}, {}, {}
        for i, kind in enumerate(leaves.kinds()):
            found = line_of(kind, n, seed + 100 * i, dtype)
            if found is None:
                continue
            line, of = found
            self.lines[kind], self.made[kind] = line, of.build()
            wide = np.dtype("c16" if reference.dtype_of(of.types()).kind == "c" else "f8")
            self.nodes[kind] = reference.leaf(of, wide)
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, COLUMNS))
        self.u = reference.width([np.dtype(dtype)])

    def combined(self, head, x, y):
        return reference.combine(head, (), [x, y], self.u, {"n": self.n})


def tried(operands, A, node, asks):
    """Raises Wrong where one of the asks of A is."""
    tol = 8 * node.s * operands.u
    if "toarray" in asks:
        agree(attempt(A.toarray, "toarray"), node.V, tol * node.M, "toarray")
    if "apply" in asks:
        X = operands.X
        got = attempt(lambda: A @ X, "product")
        agree(got, node.V @ X, tol * (node.M @ np.abs(X)), "product")
    if "solve" not in asks:
        return
    try:
        Y, _, rows = reference.inverse(node)
        reference.sure(node, Y, operands.u)
    except reference.Unsure:
        return
    X = operands.X
    want = Y @ X
    size = reference.norm(node.M) * np.linalg.norm(want, axis=0) + np.linalg.norm(X, axis=0)
    agree(attempt(lambda: pl.solve(A, X), "solve"), want, tol * rows * size, "solve")
    sign, logdet = np.linalg.slogdet(node.V)
    first = (rows[:, 0] * reference.length(node.M, 0)[0]).sum()
    got = attempt(lambda: pl.slogdet(A), "slogdet")
    agree(got[1], logdet, tol * (first + abs(logdet) + operands.n), "slogdet")
    agree(got[0], sign, min(1, tol * (first + operands.n)), "sign")


def program_of(operands, kinds, heads):
    """The sum, difference or product of kinds, from the left, and all that is asked of it."""
    lines = [operands.lines[k] for k in kinds]
    last = 0
    for i, head in enumerate(heads):
        lines.append((head, (last, i + 1), ()))
        last = len(lines) - 1
    common = (0, COLUMNS, operands.dtype, "C", 0, "")
    asks = [(ask, (last,), common) for ask in ("toarray", "apply", "solve", "slogdet")]
    return Program({"n": operands.n}, lines, asks)


def pairs(operands, first=None):
    """(kinds, heads, operator, Node, asks) of all pairs, of those that begin with kind `first`."""
    made, nodes = operands.made, operands.nodes
    for p, q in itertools.product(made, made):
        if first in (None, p):
            for head in PAIRED:
                A = {
                    "add": lambda a, b: a + b,
                    "sub": lambda a, b: a - b,
                    "matmul": lambda a, b: a @ b,
                }[head](made[p], made[q])
                yield (
                    (p, q),
                    (head,),
                    A,
                    operands.combined(head, nodes[p], nodes[q]),
                    (
                        "toarray",
                        "apply",
                        "solve",
                    ),
                )


def triples(operands, first=None):
    """Likewise of all sums of three with signs."""
    made, nodes = operands.made, operands.nodes
    for p, q in itertools.product(made, made):
        if first not in (None, p):
            continue
        for s in (1, -1):
            head = "add" if s > 0 else "sub"
            two = operands.combined(head, nodes[p], nodes[q])
            A = made[p] + made[q] if s > 0 else made[p] - made[q]
            for r, t in itertools.product(made, (1, -1)):
                other = "add" if t > 0 else "sub"
                B = A + made[r] if t > 0 else A - made[r]
                node = operands.combined(other, two, nodes[r])
                yield (p, q, r), (head, other), B, node, ("toarray", "apply")


def wrong_ones(operands, cases):
    """Yields (what is wrong, program) of those that are; the count of cases last."""
    count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for kind in (*QUIET, pl.FallbackWarning):
            warnings.simplefilter("ignore", kind)
        for kinds, heads, A, node, asks in cases:
            count += 1
            try:
                tried(operands, A, node, asks)
            except Wrong as e:
                if known(str(e)) is None:
                    yield f"{kinds} {heads}: {e}", program_of(operands, kinds, heads)
    yield count, None


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "pairs"
    sizes = [int(n) for n in sys.argv[2:]] or {"pairs": [16, 17, 40, 400], "triples": [16, 17, 40]}[
        what
    ]
    bad = 0
    for n in sizes:
        begun, operands = time.monotonic(), Operands(n)
        for said, program in wrong_ones(
            operands, {"pairs": pairs, "triples": triples}[what](operands)
        ):
            if program is None:
                print(f"{what} of {len(operands.made)} kinds, n = {n}: {said} cases, "
                      f"{time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
                continue
            bad += 1
            print(said)
            if bad <= 20:
                small, message = shrink.smallest(program, said)
                print(message, written(small), sep="\n", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
