"""Random programs of LazyArrays: the methods of generate.Drawing that draw them."""

import numpy as np
import samples

LAYOUTS = [*samples.LAYOUTS, "broadcast"]


class Lazily:
    """Draws matrices, vectors and numbers that are LazyArrays."""

    def with_operators(self):
        """Do they meet an operator here? Not of integers: NumPy knows no kinds' dtypes."""
        return not self.several and self.rng.random() < 0.25

    # -- LazyArrays: dimensions may be "1", which broadcasts

    def array(self, d, e, dominant=False):
        dtype = self.pick(self.dtypes)
        layout = self.pick(LAYOUTS) if self.layout is None else "C"
        seed = int(self.rng.integers(1 << 30))
        i = self.add("array", (), ((d, e), dtype, layout, (), seed, dominant), None)
        return self.add("lazy", (i,), (), (d, e))

    def regular(self, d):
        """A matrix with an inverse: often one that the program has inverted already."""
        known = self.regulars.setdefault(d, [])
        if not known or self.rng.random() < 0.4:
            known.append(self.array(d, d, True))
        return self.pick(known)

    def lazily(self, d, e, depth):
        rng, op = self.rng, self.lazily
        same = [i for i, x in enumerate(self.dims) if x == (d, e)]
        if same and rng.random() < 0.3:
            return self.pick(same)
        if depth <= 0:
            return self.array(d, e)
        real = all(np.dtype(x).kind == "f" for x in self.dtypes)
        for _ in range(30):
            stacks = ["hstack"] * ("+" in e) + ["vstack"] * ("+" in d) + ["kronof"] * ("*" in d)
            head = self.pick(stacks if stacks and rng.random() < 0.3 else LAZY)
            if head in REAL and not real or (self.several and head in HALVES):
                continue
            if head in ("add", "sub", "times", "over", "maximum", "minimum", "hypot", "where"):
                f, g = (d, e)
                wide = [(f, g)] * 3 + [("1", g), (f, "1"), ("1", "1")]
                other = op(*self.pick(wide), depth - 1)
                both = (op(d, e, depth - 1), other)
                if rng.random() < 0.3 and head != "over":
                    both = both[::-1]
                return self.add(head, both, (), (d, e))
            if head in ("matmul", "einsum"):
                k = self.pick(self.names)
                left = op(d, k, depth - 1)
                if head == "matmul" and self.with_operators() and "1" not in (d, k):
                    left = self.leaf(d, k)
                    self.dims[left] = None
                return self.add(head, (left, op(k, e, depth - 1)), (), (d, e))
            if head in ("scale", "divide"):
                p = self.pick(STRONG if self.several else [2, -1, 0.5, 3.0])
                return self.add(head, (op(d, e, depth - 1),), (p,), (d, e))
            if head in ("T", "H", "swap"):
                return self.add(head, (op(e, d, depth - 1),), (), (d, e))
            if head in ("sum0", "mean0", "max0") and d == "1":
                f = self.pick(self.names)
                if self.n(f) or head == "sum0":
                    return self.add(head, (op(f, e, depth - 1),), (), (d, e))
            if head in ("sum1", "mean1", "min1") and e == "1":
                f = self.pick(self.names)
                if self.n(f) or head == "sum1":
                    return self.add(head, (op(d, f, depth - 1),), (), (d, e))
            if head == "sum" and d == e == "1":
                f, g = self.pick(self.names), self.pick(self.names)
                return self.add(head, (op(f, g, depth - 1),), (), (d, e))
            if head == "cut":
                made = self.cut(d, e, depth - 1)
                if made is None:
                    continue
                return made
            if head in KINDS:
                made = self.of_kinds(head, d, e, depth - 1)
                if made is None:
                    continue
                return made
            if head in VECTORS:
                return self.of_vectors(head, d, e, depth - 1)
            if head in SINGLE:
                return self.add(head, (op(d, e, depth - 1),), (), (d, e))
            if head == "inv" and d == e != "1":
                return self.add(head, (self.regular(d),), (), (d, e))
            if head == "solve" and d != "1":
                a = self.regular(d)
                if rng.random() < 0.3:
                    a = self.add("add", (a, op(d, d, 0)), (), (d, d))
                return self.add(head, (a, op(d, e, depth - 1)), (), (d, e))
            if head == "hstack" and "+" in e:
                x, y = e.split("+", 1)
                return self.add(head, (op(d, x, depth - 1), op(d, y, depth - 1)), (), (d, e))
            if head == "vstack" and "+" in d:
                x, y = d.split("+", 1)
                return self.add(head, (op(x, e, depth - 1), op(y, e, depth - 1)), (), (d, e))
        return self.array(d, e)

    def of_vectors(self, head, d, e, depth):
        """A matrix made of vectors or numbers."""
        vec = self.vector
        if head == "single" and d == e == "1":
            return self.add(head, (self.scalar(depth),), (), (d, e))
        if head in ("upright", "single") and e == "1":
            return self.add("upright", (vec(d, depth),), (), (d, e))
        if head in ("flat", "single") and d == "1":
            return self.add("flat", (vec(e, depth),), (), (d, e))
        if head == "rowscale":
            return self.add(head, (vec(d, depth), self.lazily(d, e, depth)), (), (d, e))
        if head == "colscale":
            return self.add(head, (self.lazily(d, e, depth), vec(e, depth)), (), (d, e))
        if head == "multiple":
            return self.add(head, (self.lazily(d, e, depth), self.scalar(depth)), (), (d, e))
        return self.add("outer", (vec(d, depth), vec(e, depth)), (), (d, e))

    def of_kinds(self, head, d, e, depth):
        """What a kind whose parameters are lazy makes of a matrix; None where it does not fit."""
        op, vec, k = self.lazily, self.vector, self.pick(self.names)
        if self.several or "1" in (d, e) or not self.n(d) or not self.n(k):
            return None
        if head in ("diagof", "circof"):
            return self.add(head, (vec(d, depth), op(d, e, depth)), (), (d, e))
        if head == "toepof":
            return self.add(head, (vec(d, depth), vec(k, depth), op(k, e, depth)), (), (d, e))
        if head == "thinof":
            j = self.pick(self.names)
            over = (op(d, k, depth), op(j, k, depth), op(j, e, depth))
            return self.add(head, over, (), (d, e))
        if head == "kronof":
            if "*" not in d or "+" in d:
                return None
            x, y = d.split("*", 1)
            if not k.isalpha() or self.n(f"{x}*{k}") > 600:
                return None
            over = (op(x, x, depth), op(y, k, depth), op(f"{x}*{k}", e, depth))
            return self.add(head, over, (), (d, e))
        if head == "updated":
            return self.add(head, (vec(d, depth), op(d, k, depth), op(d, e, depth)), (), (d, e))
        if head == "noisy":
            over = (self.scalar(depth), op(d, k, depth), op(d, e, depth))
            return self.add(head, over, (d,), (d, e))
        if not all(np.dtype(x).kind == "f" for x in self.dtypes) or self.n(d) > 150:
            return None
        return self.add(head, (self.scalar(depth), op(d, e, depth)), (d,), (d, e))

    def vector(self, d, depth):
        """The line of a lazy vector of dimension d."""
        rng, op, vec = self.rng, self.lazily, self.vector
        same = [i for i, x in enumerate(self.dims) if x == (d,)]
        if same and rng.random() < 0.4:
            return self.pick(same)
        if depth <= 0:
            seed, dtype = int(rng.integers(1 << 30)), self.pick(self.dtypes)
            layout = self.pick(samples.LAYOUTS) if self.layout is None else "C"
            i = self.add("array", (), ((d,), dtype, layout, (), seed, False), None)
            return self.add("lazy", (i,), (), (d,))
        k = self.pick(self.names)
        head = self.pick(["matvec"] * 4 + ["vecmat"] * 2 + ["vadd", "vsub", "multiple"] * 2
                         + ["vsolve", "vscale", "vneg", "vconj", "vreverse", "row", "column",
                            "vdiagonal", "rowsums", "vtimes"])  # fmt: skip
        if head == "matvec":
            if self.with_operators() and "1" not in (d, k):
                left = self.leaf(d, k)
                self.dims[left] = None
            else:
                left = op(d, k, depth - 1)
            return self.add(head, (left, vec(k, depth - 1)), (), (d,))
        if head == "vecmat":
            return self.add(head, (vec(k, depth - 1), op(k, d, depth - 1)), (), (d,))
        if head in ("vadd", "vsub", "vtimes"):
            return self.add(head, (vec(d, depth - 1), vec(d, depth - 1)), (), (d,))
        if head == "multiple":
            return self.add(head, (vec(d, depth - 1), self.scalar(depth - 1)), (), (d,))
        if head == "vsolve" and d != "1":
            return self.add(head, (self.regular(d), vec(d, depth - 1)), (), (d,))
        if head == "vscale":
            p = self.pick(STRONG if self.several else [2, -1, 0.5])
            return self.add(head, (vec(d, depth - 1),), (p,), (d,))
        if head == "row" and self.n(k):
            return self.add(head, (op(k, d, depth - 1),), (self.pick([0, -1]),), (d,))
        if head == "column" and self.n(k):
            return self.add(head, (op(d, k, depth - 1),), (self.pick([0, -1]),), (d,))
        if head == "vdiagonal":
            return self.add(head, (op(d, d, depth - 1),), (), (d,))
        if head == "rowsums":
            return self.add(head, (op(d, k, depth - 1),), (), (d,))
        head = head if head in ("vneg", "vconj", "vreverse") else "vneg"
        return self.add(head, (vec(d, depth - 1),), (), (d,))

    def scalar(self, depth):
        """The line of a lazy number."""
        op, vec = self.lazily, self.vector
        k, j = self.pick(self.names), self.pick(self.names)
        head = self.pick(["vdot", "quad", "entry", "ventry", "vsum", "ntrace", "vnorm", "nadd",
                          "ntimes", "nlogdet", "loglike", "quadof"])  # fmt: skip
        some = self.n(k) > 0
        if head == "quad":
            return self.add(
                head, (vec(k, depth - 1), op(k, j, depth - 1), vec(j, depth - 1)), (), ()
            )
        if head in ("entry", "ventry") and some:
            what = op(k, k, depth - 1) if head == "entry" else vec(k, depth - 1)
            return self.add(head, (what,), (self.pick([0, -1]),), ())
        if head == "ntrace":
            return self.add(head, (op(k, k, depth - 1),), (), ())
        if head == "nlogdet":
            return self.add(head, (self.regular(k),), (), ())
        if head in ("loglike", "quadof") and not self.several and some and self.n(j):
            over = (vec(k, depth - 1), op(k, j, depth - 1))
            over += (vec(k, depth - 1),) if head == "quadof" else ()
            return self.add(head, over, (), ())
        if head in ("vsum", "vnorm"):
            return self.add(head, (vec(k, depth - 1),), (), ())
        if head in ("nadd", "ntimes") and depth > 0:
            return self.add(head, (self.scalar(depth - 1), self.scalar(depth - 1)), (), ())
        return self.add("vdot", (vec(k, depth - 1), vec(k, depth - 1)), (), ())


# numbers that widen, or do not, what they meet
STRONG = [2, 3, 0.5, -0.25, np.float32(1.5), np.float64(1 / 3), np.int16(3), np.int64(-7)]
HALVES = ("sin", "cos", "tanh", "arctan", "hypot")  # of int8 in half precision
VECTORS = ("upright", "flat", "single", "rowscale", "colscale", "multiple", "outer")
KINDS = ("diagof", "circof", "toepof", "thinof", "kronof", "updated", "noisy", "kernelof")
REAL = ("sin", "cos", "tanh", "arctan", "maximum", "minimum", "hypot", "max0", "min1", "where")
SINGLE = (
    "neg",
    "conj",
    "real",
    "imag",
    "sin",
    "cos",
    "tanh",
    "arctan",
    "abs",
    "square",
    "cumsum",
    "turn",
)
LAZY = ["add", "sub", "times", "matmul"] * 6 + [
    "over", "matmul", "scale", "divide", "T", "H", "swap", "sum0", "mean0", "max0", "sum1", "mean1",
    "min1", "sum", "inv", "solve", "solve", "cut", "einsum", "maximum", "minimum",
    "hypot", "where", *SINGLE, *VECTORS, *VECTORS, *KINDS,
]  # fmt: skip
