"""Random programs. Dimensions come from a few sizes, drawn beside the thresholds of the sources;
operands already there are used again as often as not, so that patterns are tied to what surrounds
them; a rule's left side or a fusion's pattern is placed where a pattern fits (patterns.py)."""

import functools

import numpy as np
import ref
import samples

import pylinop as pl

from . import leaves, patterns, thresholds
from .lazily import Lazily
from .program import Program, size
from .run import ASKS, EXACT

PLAIN = [k for k in samples.LAYOUTS if k != "swapped"]
SCALARS = [2, -1, 0.5, 3, 1 - 2j, -0.25, np.float64(1.5)]
# of programs of several dtypes: numbers of Python's, which are weak, and of NumPy's, which widen
STRONG = [
    *(2, 3, 0.5, -0.25, 1 - 2j, np.float32(1.5), np.float32(-0.3), np.float64(1 / 3)),
    *(np.float64(-2), np.int16(-3), np.int64(7), np.uint8(3), np.int8(2), np.complex64(1 + 2j)),
]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "bool"]
MOST_ENTRIES = 640 * 640
UNARY = ["real", "imag", "scale", "neg", "T", "H", "conj", "inv", "power", "divide", "turn"]
BINARY = ["add", "sub", "matmul", "matmul", "add", "sub", "multiply"]


def sizes(rng):
    """Names and sizes: two or three base sizes, small or beside thresholds, few of them large."""
    limit = rng.choice([6, 24, 48, 130, 300, thresholds.MOST], p=[0.2, 0.3, 0.25, 0.17, 0.05, 0.03])
    near = [n for n in thresholds.sizes() if n <= limit]

    def one():
        if rng.random() < 0.12:
            return int(rng.choice([0, 1, 2]))
        if rng.random() < 0.2:
            return int(rng.integers(1, limit + 1))
        return int(rng.choice(near)) + int(rng.choice([-1, 0, 0, 1]))

    return {name: one() for name in "abc"[: int(rng.integers(1, 4))]}


class Drawing(Lazily):
    """A program on its way."""

    def __init__(self, rng, lazy=False, integer=None, several=False):
        self.rng, self.lazy, self.integer, self.several = rng, lazy, integer, several
        self.sizes = sizes(rng)
        self.lines, self.dims = [], []
        self.regulars = {}  # of lazy programs: matrices with an inverse, by dimension
        self.names = list(self.sizes)
        small = [n for n in self.names if self.sizes[n] <= 24]
        if small and rng.random() < 0.3:
            x, y = rng.choice(small, 2)
            self.names.append(f"{x}*{y}" if rng.random() < 0.6 else f"{x}+{y}")
        weights = np.array([0.45, 0.25, 0.15, 0.15])
        main = str(rng.choice(ref.FLOATS, p=weights[[1, 0, 3, 2]]))
        self.dtypes = [main] if rng.random() < 0.7 else [main, str(rng.choice(ref.FLOATS))]
        if integer:
            self.dtypes = [integer]
        if several:
            pool = [WHOLE, [*WHOLE, *ref.FLOATS], ref.FLOATS][int(rng.integers(3))]
            pool = [d for d in pool if d != "bool" or not lazy]  # whose differences NumPy refuses
            self.dtypes = [str(d) for d in rng.choice(pool, int(rng.integers(1, 4)))]
        self.batches = [()]
        if not lazy and rng.random() < 0.1 and max(self.sizes.values()) <= 40:
            self.batches = [(), (2,), (3, 1)]
        self.layout = "C" if rng.random() < 0.4 else None

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def n(self, dim):
        return size(dim, self.sizes)

    def add(self, head, over, p, dims):
        self.lines.append((head, tuple(over), tuple(p)))
        self.dims.append(dims)
        return len(self.lines) - 1

    # -- operators

    def leaf(self, d, e, kind=None, invertible=None):
        """A leaf of dimensions d x e; None where `kind` has none."""
        m, n = self.n(d), self.n(e)
        square = d == e
        for _ in range(30):
            k = kind or self.pick(leaves.kinds())
            if self.lazy and k == "DFT":  # complex among real ones
                continue
            seed = int(self.rng.integers(1 << 30))
            dtype = self.pick(self.dtypes)
            layout = self.layout or self.pick(PLAIN if k in leaves.OWN else samples.LAYOUTS)
            batch = self.pick(self.batches)
            good = bool(square and self.rng.random() < 0.65) if invertible is None else invertible
            good = good and square and not self.integer
            if max(m, n) > 150 and k in ("Reflections", "KhatriRao", "Kernel"):
                if kind:
                    return None
                continue
            made = leaves.draw(k, np.random.default_rng(seed), m, n, dtype, batch, layout, good)
            if made is None and batch:
                batch = ()
                made = leaves.draw(k, np.random.default_rng(seed), m, n, dtype, batch, layout, good)
            if made is not None:
                return self.add("leaf", (), (k, d, e, dtype, layout, batch, seed, good), (d, e))
            if kind and not good:
                return None
            if kind:
                invertible = False
        return self.add("leaf", (), ("Dense", d, e, self.dtypes[0], "C", (), 1, False), (d, e))

    def again(self, d, e):
        """An operator of these dimensions that is there, or is when turned."""
        same = [i for i, x in enumerate(self.dims) if x == (d, e)]
        turned = [i for i, x in enumerate(self.dims) if x == (e, d) and d != e]
        if same and (not turned or self.rng.random() < 0.7):
            return self.pick(same)
        if turned:
            return self.add(self.pick(["T", "H"]), (self.pick(turned),), (), (d, e))
        return None

    def operator(self, d, e, depth):
        """The line of an operator of dimensions d x e and depth at most `depth`."""
        if self.rng.random() < 0.25:
            there = self.again(d, e)
            if there is not None:
                return there
        if depth <= 0:
            return self.leaf(d, e)
        if self.rng.random() < 0.3 and not self.integer:
            placed = patterns.place(self, d, e, depth)
            if placed is not None:
                return placed
        return self.operation(d, e, depth)

    def operation(self, d, e, depth):
        square = d == e
        choices = BINARY * 2 + UNARY + ["update", "lowrank", "cut"]
        if square:
            choices += ["congruence", "root", "inv"]
        for mark, heads in (
            ("*", ["kron"] * 6 + ["kronsum", "khatrirao"] * 2),
            ("+", ["vstack", "hstack", "blockdiag"] * 4),
        ):
            if mark in d or mark in e:
                choices += heads
        for _ in range(20):
            head = self.pick(choices)
            made = self.made(head, d, e, depth - 1)
            if made is not None:
                return made
        return self.leaf(d, e)

    def number(self):
        if self.integer:
            return int(self.rng.integers(0, 4))
        return self.pick(STRONG if self.several else SCALARS)

    def made(self, head, d, e, depth):
        """The operation `head` of operands drawn for it; None where it does not fit."""
        square, rng, op = d == e, self.rng, self.operator
        if head in ("add", "sub", "multiply"):
            return self.add(head, (op(d, e, depth), op(d, e, depth)), (), (d, e))
        if head == "matmul":
            k = self.pick(self.names)
            if self.n(k) > 3 * (self.n(d) + self.n(e)) + 8:
                return None
            return self.add(head, (op(d, k, depth), op(k, e, depth)), (), (d, e))
        if head in ("scale", "divide"):
            if head == "divide" and self.integer:
                return None
            p = self.number()
            if head == "divide" and isinstance(p, np.generic):
                p = p.item()
            return self.add(head, (op(d, e, depth),), (p,), (d, e))
        if head in ("real", "imag") and self.integer:
            return None
        if head in ("neg", "conj", "turn", "real", "imag"):
            return self.add(head, (op(d, e, depth),), (), (d, e))
        if head in ("T", "H"):
            return self.add(head, (op(e, d, depth),), (), (d, e))
        if head == "inv":
            if not square or self.integer:
                return None
            return self.add(head, (self.solvable(d, depth),), (), (d, e))
        if head == "power":
            if not square:
                return None
            p = int(rng.integers(0, 4))
            return self.add(head, (op(d, d, min(depth, 1)),), (p,), (d, e))
        if head == "cut":
            return self.cut(d, e, depth)
        return self.composite(head, d, e, depth)

    def solvable(self, d, depth):
        """An operator that is well-conditioned more often than not."""
        if depth <= 0 or self.rng.random() < 0.3:
            return self.leaf(d, d, invertible=True)
        return self.operator(d, d, depth)

    def cut(self, d, e, depth):
        rows = [x for x in self.names if self.n(x) >= self.n(d) and d != "1"]
        cols = [x for x in self.names if self.n(x) >= self.n(e) and e != "1"]
        if not rows or not cols:
            return None
        f, g = self.pick(rows), self.pick(cols)
        if f == d and g == e:
            return None
        draw = self.lazily if self.lazy else self.operator
        parts = tuple(
            (":", False) if x == y else (x, bool(self.rng.integers(2))) for x, y in ((d, f), (e, g))
        )
        return self.add("cut", (draw(f, g, depth),), parts, (d, e))

    def composite(self, head, d, e, depth):
        op, square = self.operator, d == e
        k = self.pick(self.names)
        if head == "kron":
            x, y = (s.split("*", 1) if "*" in s and "+" not in s else None for s in (d, e))
            if x is None or y is None:
                return None
            return self.add(head, (op(x[0], y[0], depth), op(x[1], y[1], depth)), (), (d, e))
        if head in ("vstack", "hstack", "blockdiag"):
            x, y = (s.split("+", 1) if "+" in s else None for s in (d, e))
            if head == "vstack" and x:
                return self.add(head, (op(x[0], e, depth), op(x[1], e, depth)), (), (d, e))
            if head == "hstack" and y:
                return self.add(head, (op(d, y[0], depth), op(d, y[1], depth)), (), (d, e))
            if head == "blockdiag" and x and y:
                return self.add(head, (op(x[0], y[0], depth), op(x[1], y[1], depth)), (), (d, e))
            return None
        if head == "kronsum":
            if not square or "*" not in d or "+" in d:
                return None
            x, y = d.split("*", 1)
            return self.add(head, (op(x, x, depth), op(y, y, depth)), (), (d, e))
        if head == "khatrirao":
            if "*" not in d or "+" in d:
                return None
            x, y = d.split("*", 1)
            return self.add(head, (op(x, e, depth), op(y, e, depth)), (), (d, e))
        if head in ("update", "lowrank") and self.integer:
            return None
        if head == "update":
            base = op(d, e, depth)
            return self.add(head, (base, op(d, k, 0), op(e, k, 0)), (), (d, e))
        if head == "lowrank":
            return self.add(head, (op(d, k, depth), op(e, k, depth)), (), (d, e))
        if head == "congruence":
            return (
                self.add(head, (op(d, k, depth), op(k, k, depth)), (), (d, e)) if square else None
            )
        if head == "root":
            return self.add(head, (op(d, k, depth),), (), (d, e)) if square else None
        raise ValueError(head)


OFTEN = ["toarray", "toarray", "apply", "apply", "solve", "slogdet", "trace", "diagonal", "left"]


def questions(drawing, roots):
    """Asks of some of the lines, with writes and repetitions between."""
    rng, out = drawing.rng, []
    names = list(EXACT) if drawing.integer else [*ASKS, *OFTEN * 2]
    leaf_lines = [i for i, line in enumerate(drawing.lines) if line[0] == "leaf"]
    for _ in range(int(rng.integers(1, 5))):
        if out and rng.random() < 0.2 and leaf_lines:
            out.append(("write", (int(rng.choice(leaf_lines)),), ()))
            out += [q for q in out[:-1] if q[0] != "write"][-1:]
            continue
        head = str(rng.choice(names))
        dtype = drawing.integer or str(rng.choice([*drawing.dtypes, *drawing.dtypes, "float64"]))
        if drawing.several and rng.random() < 0.3:
            dtype = str(rng.choice([*WHOLE[:-1], *ref.FLOATS]))
        columns = [None, 1, 2, 3, 8, 17, 64, 65][int(rng.integers(8))]
        columns = columns if max(drawing.batches, key=len) == () or columns else 2
        again = ["", "", "", "again", "threads"][int(rng.integers(5))]
        layout = str(rng.choice(PLAIN))
        p = (int(rng.integers(1 << 30)), columns, dtype, layout, int(rng.integers(-3, 4)), again)
        out.append((head, (int(rng.choice(roots)),), p))
    return out


def configured(rng):
    """Options under which every answer is the same, if it is not refused."""
    some = [str(rng.choice(names())) for _ in range(3)]
    choices = [
        {"fft": False},
        {"check": "full"},
        {"check": "none"},
        {"precision": "mixed"},
        {"memory_limit": int(2 ** rng.integers(10, 22))},
        {"disable_rules": some},
        {"disable_rules": some[:1]},
    ]
    return choices[int(rng.integers(len(choices)))]


@functools.cache
def names():
    """Of all rules of plans."""
    return [row["name"] for row in pl.rules() if row["phase"] != "structure"]


def program(seed):
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    what = rng.random()
    lazy, integer, several = what < 0.3, None, 0.78 < what < 0.92 or what < 0.08
    if what > 0.92:
        integer = str(rng.choice(["int8", "int64", "uint8", "int32"]))
    drawing = Drawing(rng, lazy, integer, several)
    depth = int(rng.choice([1, 2, 3, 4, 5, 6], p=[0.1, 0.2, 0.3, 0.2, 0.12, 0.08]))
    if max(drawing.n(x) for x in drawing.names) > 130:
        depth = min(depth, 3)
    if integer or any(d in WHOLE for d in drawing.dtypes):
        drawing.sizes = {k: min(v, 40) for k, v in drawing.sizes.items()}
    options = {}
    if lazy:
        dims = [*drawing.names, *drawing.names, "1"]
        roots = []
        for _ in range(int(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15]))):
            d, e, what = drawing.pick(dims), drawing.pick(dims), rng.random()
            if what < 0.65:
                roots.append(drawing.lazily(d, e, depth))
            else:
                roots.append(drawing.vector(d, depth) if what < 0.87 else drawing.scalar(depth))
        options["together"] = bool(rng.random() < 0.6)
        options["again"] = bool(rng.random() < 0.3)
        asks = [("value", (i,), ()) for i in dict.fromkeys(roots)]
        if not several and rng.random() < 0.5:
            asks.append(("gradient", (drawing.pick(roots),), (int(rng.integers(1 << 30)),)))
        return Program(drawing.sizes, drawing.lines, asks, True, options)
    d = drawing.pick(drawing.names)
    e = d if rng.random() < 0.7 else drawing.pick(drawing.names)
    root = drawing.operator(d, e, depth)
    if rng.random() < 0.1:
        options["pickle"] = True
    if integer:
        options["integer"] = integer
    if rng.random() < 0.3:
        options["anew"] = True
    if rng.random() < 0.15:
        options["config"] = configured(rng)
    asks = questions(drawing, [root])
    return Program(drawing.sizes, drawing.lines, asks, False, options)
