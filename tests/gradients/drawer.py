"""Random programs of functions that have derivatives, to compare their gradients with sixth-order
differences of their values: `python -m gradients.hunt seconds`, from tests/.

A program is a list of lines; each makes one value of those before it. What is random in a line is
fixed when it is drawn, so that the program is a function of its leaves."""

import numpy as np

import pylinop as pl

SIZES = (1, 2, 3, 4, 6, 9, 17, 42)
KERNELS = ("rbf", "matern12", "matern32", "matern52", "rational_quadratic", "periodic", "linear",
           "polynomial")  # fmt: skip
PRODUCERS, CONSUMERS = {}, {}
DEFINITE = frozenset(
    "diag update gram toeplitz kernel kernel_of_points markov kron kronsum columnwise "
    "toeplitz_and_noise".split()
)


def makes(f):
    """A matrix that is well conditioned, of a vector's size."""
    PRODUCERS[f.__name__] = f
    return f


def takes(f):
    CONSUMERS[f.__name__] = f
    return f


class Skip(Exception):
    """The draw does not fit; another is drawn."""


class Program:
    """`lines`: (name, function of earlier values, their places). The first are the leaves."""

    def __init__(self, leaves):
        self.leaves, self.lines = leaves, []

    def run(self, leaves):
        env = list(leaves)
        for _, f, at in self.lines:
            env.append(f(*[env[k] for k in at]))
        return env[-1]

    def __str__(self):
        rows = [f"  x{k} = {a.dtype} {a.shape}" for k, a in enumerate(self.leaves)]
        for k, (name, _, at) in enumerate(self.lines, len(rows)):
            rows.append(f"  x{k} = {name}({', '.join(f'x{j}' for j in at)})")
        return "\n".join(rows)


class Drawer:
    """Draws one program. `env` holds values for the shapes alone."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.complex = rng.random() < 0.25
        self.n = int(rng.choice(SIZES, p=np.array([2, 3, 4, 4, 3, 2, 1, 1]) / 20))
        self.program = Program([self.array(*s) for s in self.leaf_shapes()])
        self.env = [pl.lazy(a) for a in self.program.leaves]
        self.solid, self.definite = [], []  # places of matrices that are well conditioned

    def leaf_shapes(self):
        n = self.n
        shapes = [(n,), (n,), (n, n), (), (n, max(1, n // 3))]
        keep = self.rng.random(len(shapes)) < 0.75
        keep[self.rng.integers(len(shapes))] = True
        return [s for s, k in zip(shapes, keep, strict=True) if k]

    def array(self, *shape, real=False):
        a = self.rng.standard_normal(shape)
        if self.complex and not real:
            a = a + 1j * self.rng.standard_normal(shape)
        return np.asarray(a / (1 if a.ndim < 2 else np.sqrt(max(1, shape[-1]))))

    def add(self, name, f, *at):
        value = f(*[self.env[k] for k in at])
        self.program.lines.append((name, f, at))
        self.env.append(value)
        return len(self.env) - 1

    def places(self, test):
        return [k for k, a in enumerate(self.env) if test(a)]

    def one(self, test):
        found = self.places(test)
        if not found:
            raise Skip
        late = found[-3:] if self.rng.random() < 0.6 else found
        return int(self.rng.choice(late))

    def one_of(self, places):
        if not places:
            raise Skip
        return int(self.rng.choice(places))

    def vector(self, n=None, real=False):
        return self.one(lambda a: a.ndim == 1 and (n is None or a.shape[0] == n)
                        and a.size > 0 and not (real and a.dtype.kind == "c"))  # fmt: skip

    def scalar(self, real=False):
        return self.one(lambda a: a.ndim == 0 and not (real and a.dtype.kind == "c"))

    def matrix(self, square=False):
        return self.one(lambda a: a.ndim == 2 and min(a.shape) > 0
                        and (not square or a.shape[0] == a.shape[1]))  # fmt: skip

    def choice(self, *of):
        return of[self.rng.integers(len(of))]

    def chance(self, p):
        return self.rng.random() < p

    def draw(self):
        """The program, whose last line is a real number."""
        count = int(self.rng.integers(2, 10))
        for _ in range(60):
            if count == 0:
                break
            table = PRODUCERS if self.chance(0.35) else CONSUMERS
            name = self.choice(*table)
            try:
                table[name](self)
            except Skip:
                continue
            if table is PRODUCERS:
                self.solid.append(len(self.env) - 1)
                if (
                    name in DEFINITE
                    and self.env[-1].ndim == 2
                    and "r)" not in self.program.lines[-1][0]
                ):
                    self.definite.append(len(self.env) - 1)
            count -= 1
        self.close()
        return self.program

    def close(self):
        """A number of the values that nothing uses yet."""
        used = {k for _, _, at in self.program.lines for k in at}
        parts = [k for k in range(len(self.env)) if k not in used]
        weights = [self.array(*self.env[k].shape) / (1 + self.env[k].size ** 0.5) for k in parts]

        def total(*xs):
            found = 0.0
            for x, w in zip(xs, weights, strict=True):
                term = np.sum(x * w) if x.ndim < 2 else np.sum((x @ w.T.copy()).diagonal())
                found = found + (term.real if term.dtype.kind == "c" else term)
            return found

        self.add("total", total, *parts)


def up(x):
    """Positive numbers near 1."""
    return 1.0 + 0.5 * (x * x.conj()).real if x.dtype.kind == "c" else 1.0 + 0.5 * x * x
