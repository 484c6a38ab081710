"""Random programs of functions that have derivatives, for comparing their gradients with sixth-order
differences of their values: `python -m gradients.hunt seconds`, from tests/.

A program is a list of lines; each makes one value of those before it. What is random in a line is
fixed when it is drawn, so that the program is a function of its leaves."""

import numpy as np

import pylinop as pl

SIZES = (1, 2, 3, 4, 6, 9, 17, 42)
KERNELS = ("rbf", "matern12", "matern32", "matern52", "rational_quadratic", "periodic", "linear",
           "polynomial")  # fmt: skip
PRODUCERS, CONSUMERS = {}, {}
DEFINITE = "diag update gram toeplitz kernel kernel_of_points markov kron kronsum".split()


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


# -- matrices ---------------------------------------------------------------------------------------


@makes
def diag(d):
    k = d.vector()
    d.add("Diag(up)", lambda v: pl.Diag(up(v)), k)


@makes
def update(d):
    k = d.vector()
    n = d.env[k].shape[0]
    u = d.one(lambda a: a.ndim == 2 and a.shape[0] == n)
    low = d.choice(
        ("LowRank", lambda U: pl.LowRank(U)),
        ("Root", lambda U: pl.Root(pl.Dense(U))),
        ("U @ U.H", lambda U: U @ U.conj().T),
    )
    d.add("Diag(up) + " + low[0], lambda v, U: pl.Diag(up(v)) + low[1](U), k, u)


@makes
def gram(d):
    k, c = d.matrix(), d.scalar(real=True)
    m = d.env[k].shape[0]
    d.add("A @ A.H + up(c) I", lambda A, c: A @ A.conj().T + up(c) * pl.Identity(m), k, c)


@makes
def toeplitz(d):
    k = d.vector(real=True)
    n = d.env[k].shape[0]
    unit = (np.arange(n) == 0) * (2.0 + 2 * n)
    if d.chance(0.3):
        j = d.vector(n)
        d.add("Toeplitz(c + u, r)", lambda c, r: pl.Toeplitz(c + unit, r + unit), k, j)
    else:
        d.add("Toeplitz(c + u)", lambda c: pl.Toeplitz(np.tanh(c) + unit), k)


@makes
def circulant(d):
    k = d.vector()
    n = d.env[k].shape[0]
    unit = (np.arange(n) == 0) * (2.0 + 2 * n)
    d.add("Circulant", lambda c: pl.Circulant(c + unit), k)


@makes
def hankel(d):
    k = d.vector()
    n = d.env[k].shape[0]
    unit = (np.arange(n) == n - 1) * (2.0 + 2 * n)
    d.add("Hankel", lambda c: pl.Hankel(c + unit, c[::-1] + unit[::-1]), k)


@makes
def tridiagonal(d):
    k = d.vector(real=True)
    j = d.vector(d.env[k].shape[0])
    d.add("Tridiagonal", lambda a, b: pl.Tridiagonal(0.3 * b[1:], 2.0 + a * a, 0.2 * b[:-1]), k, j)


@makes
def triangular(d):
    k = d.matrix(square=True)
    n, lower, unit = d.env[k].shape[0], d.chance(0.5), d.chance(0.3)
    d.add(
        f"Triangular(lower={lower}, unit={unit})",
        lambda A: pl.Triangular(A + 2.0 * np.eye(n), lower=lower, unit_diagonal=unit),
        k,
    )


@makes
def dense(d):
    k = d.matrix(square=True)
    n = d.env[k].shape[0]
    d.add("A + 4 I", lambda A: A + 4.0 * pl.Identity(n), k)


@makes
def kernel(d):
    s, t = d.scalar(real=True), d.scalar(real=True)
    name, n, more = d.choice(*KERNELS), int(d.rng.integers(1, 12)), {}
    x = d.array(n, 2, real=True)
    if name == "polynomial":
        more["degree"] = 2
    both = d.chance(0.5)

    def made(a, b):
        given = dict(more)
        if name == "periodic":
            given["period"] = 2.0 + np.tanh(b)
        if name == "rational_quadratic":
            given["alpha"] = up(b)
        K = pl.Kernel(name, x, variance=up(a), length_scale=1.0 + up(b), **given)
        return K + up(a) * pl.Identity(n) if both else K + 2.0 * pl.Identity(n)

    d.add(f"Kernel({name!r}) + c I", made, s, t)


@makes
def kernel_of_points(d):
    k = d.one(lambda a: a.ndim == 2 and a.dtype.kind != "c" and min(a.shape) > 0)
    s = d.scalar(real=True)
    n, name = d.env[k].shape[0], d.choice("rbf", "matern52", "rational_quadratic", "linear")
    d.add(
        f"Kernel({name!r}, points) + c I",
        lambda X, b: pl.Kernel(name, X, length_scale=1.0 + up(b)) + up(b) * pl.Identity(n),
        k,
        s,
    )


@makes
def markov(d):
    s, t = d.scalar(real=True), d.scalar(real=True)
    n, name = int(d.rng.integers(1, 12)), d.choice("matern12", "matern32", "matern52")
    at = np.sort(d.rng.random(n)) * n

    def made(a, b):
        K = pl.quasiseparable(name, at, variance=up(a), length_scale=up(b))
        return K + up(a) * pl.Identity(n)

    d.add(f"quasiseparable({name!r}) + c I", made, s, t)


@makes
def kron(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    p, q = d.env[a].shape[0], d.env[b].shape[0]
    if p * q > 150:
        raise Skip
    shift = d.chance(0.6)

    def made(A, B):
        A, B = (X @ X.conj().T / (1.0 + len(X)) + 1.0 * pl.Identity(len(X)) for X in (A, B))
        K = pl.Kron(A, B)
        return K + 0.7 * pl.Identity(p * q) if shift else K

    d.add(f"Kron(A A.H + I, B B.H + I){' + c I' if shift else ''}", made, a, b)


@makes
def kronsum(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    if d.env[a].size * d.env[b].size > 150**2:
        raise Skip

    def made(A, B):
        A, B = (X @ X.conj().T / (1.0 + len(X)) + 1.0 * pl.Identity(len(X)) for X in (A, B))
        return pl.KronSum(A, B)

    d.add("KronSum", made, a, b)


@makes
def blocks(d):
    a, b = d.matrix(square=True), d.matrix(square=True)
    p, q = d.env[a].shape[0], d.env[b].shape[0]
    if d.chance(0.5):
        d.add("BlockDiag(A + 4 I, B + 4 I)", lambda A, B: pl.BlockDiag(
            A + 4.0 * pl.Identity(p), B + 4.0 * pl.Identity(q)), a, b)  # fmt: skip
        return
    C = d.array(p, q)
    d.add("Block([[A + 6 I, C], [C.H, B + 6 I]])", lambda A, B: pl.Block(
        [[A + 6.0 * pl.Identity(p), C], [C.conj().T, B + 6.0 * pl.Identity(q)]]), a, b)  # fmt: skip


@makes
def blocktridiagonal(d):
    k = d.matrix(square=True)
    b, n = d.env[k].shape[0], int(d.rng.integers(1, 4))
    if n * b > 40:
        raise Skip
    side = d.array(n - 1, b, b)
    eye = 6.0 * np.broadcast_to(np.eye(b), (n, b, b))

    def made(A):
        stack = np.stack([A * (1.0 + 0.3 * j) for j in range(n)]) + eye
        return pl.BlockTridiagonal(side, stack, 0.5 * side)

    d.add("BlockTridiagonal", made, k)


@makes
def hadamard(d):
    k = d.one(lambda a: a.ndim == 2 and min(a.shape) > 0 and a.shape[0] == a.shape[1])
    n = d.env[k].shape[0]
    B = d.array(n, n)
    d.add("A o B + 4 I", lambda A: pl.HadamardProduct(A, B) + 4.0 * pl.Identity(n), k)


@makes
def squares(d):
    k = d.matrix(square=True)
    n = d.env[k].shape[0]
    d.add("(A / 2) @ (A / 2) + 4 I", lambda A: A @ A / 4.0 + 4.0 * pl.Identity(n), k)


# -- what is done with them -------------------------------------------------------------------------


def solid(d):
    """The place of a matrix that is well conditioned."""
    return d.one_of(d.solid)


def definite(d):
    """The place of one that is positive definite."""
    return d.one_of(d.definite)


@takes
def logdet(d):
    d.add("logdet", lambda A: pl.logdet(A), definite(d))


@takes
def slogdet(d):
    d.add("slogdet[1]", lambda A: pl.slogdet(A)[1], solid(d))


@takes
def solve(d):
    k = solid(d)
    n = d.env[k].shape[0]
    b = d.one(lambda a: a.ndim in (1, 2) and a.shape[0] == n)
    view = d.choice("", ".T", ".H")
    f = {"": lambda A: A, ".T": lambda A: A.T, ".H": lambda A: A.conj().T}[view]
    d.add(f"solve(A{view}, b)", lambda A, b: pl.solve(f(A), b), k, b)


@takes
def quad(d):
    k = definite(d)
    b = d.vector(d.env[k].shape[0])
    d.add("inv_quad_logdet", lambda A, b: sum(pl.inv_quad_logdet(A, b)), k, b)


@takes
def inverse(d):
    d.add("inv", lambda A: pl.inv(A), solid(d))


@takes
def trace_inv(d):
    k = solid(d)
    other = d.one(lambda a: a.ndim == 2 and a.shape == d.env[k].shape)
    d.add("trace(inv(A) @ B)", lambda A, B: (pl.inv(A) @ B).trace(), k, other)


@takes
def diagonal_inv(d):
    d.add("diagonal(inv(A))", lambda A: pl.inv(A).diagonal(), solid(d))


@takes
def trace(d):
    d.add("trace", lambda A: A.trace(), d.matrix(square=True))


@takes
def diagonal(d):
    k = d.matrix()
    o = int(d.choice(0, 0, 1, -1))
    if not -d.env[k].shape[0] < o < d.env[k].shape[1]:
        raise Skip
    d.add(f"diagonal({o})", lambda A: A.diagonal(o), k)


@takes
def product(d):
    a = d.matrix()
    n = d.env[a].shape[1]
    b = d.one(lambda x: x.ndim in (1, 2) and x.shape[0] == n and x.size > 0)
    if d.env[b].ndim == 2 and d.env[a].shape[0] * d.env[b].shape[1] > 4000:
        raise Skip
    d.add("A @ B", lambda A, B: A @ B, a, b)


@takes
def added(d):
    a = d.matrix()
    b = d.one(lambda x: x.shape == d.env[a].shape)
    d.add("A - B", lambda A, B: A - 0.5 * B, a, b)


@takes
def eigen(d):
    k = definite(d)
    what = d.choice("values", "function")
    if what == "values":
        d.add("eigvalsh", lambda A: pl.eigvalsh(A), k)
    else:

        def of(A):
            w, Q = pl.eigh(A)
            return (Q * np.log(w)) @ Q.conj().T

        d.add("Q log(w) Q.H", of, k)


@takes
def factor(d):
    d.add("cholesky", lambda A: pl.cholesky(A), definite(d))


@takes
def of_matrix(d):
    name = d.choice("expm", "sqrtm", "logm")
    k = definite(d)
    n = d.env[k].shape[0]
    d.add(name, lambda A: getattr(pl, name)(A / (1.0 + n)), k)


@takes
def pinv(d):
    d.add("pinv", lambda A: pl.pinv(A), solid(d))


@takes
def lstsq(d):
    k = solid(d)
    b = d.vector(d.env[k].shape[0])
    d.add("lstsq", lambda A, b: pl.lstsq(A, b)[0], k, b)


@takes
def norms(d):
    k = d.matrix()
    p = d.choice("fro", "nuc", 2)
    d.add(f"matrix_norm({p!r})", lambda A: pl.matrix_norm(A, p), k)


@takes
def singular(d):
    d.add("svdvals", lambda A: pl.svdvals(A), d.matrix())


@takes
def einsum(d):
    a = d.matrix()
    m, n = d.env[a].shape
    b = d.one(lambda x: x.shape == (n,))
    d.add("einsum('ij,j,ij->i')", lambda A, b: np.einsum("ij,j,ij->i", A, b, A), a, b)


@takes
def elementwise(d):
    k = d.one(lambda a: a.ndim <= 2)
    name = d.choice("sin", "tanh", "exp", "square", "cos", "arctan", "expm1")
    if d.env[k].dtype.kind == "c" and name in ("tanh", "arctan", "expm1"):
        raise Skip
    d.add(f"{name}(x / 4)", lambda x: getattr(np, name)(x / 4.0), k)


@takes
def positive(d):
    k = d.one(lambda a: a.ndim <= 1 and a.dtype.kind != "c")
    name = d.choice("log", "sqrt", "log1p", "reciprocal", "log10", "cbrt")
    d.add(f"{name}(1 + x x)", lambda x: getattr(np, name)(1.0 + x * x), k)


@takes
def binary(d):
    a = d.one(lambda x: x.ndim <= 2)
    b = d.one(lambda x: x.ndim == 0 or x.shape == d.env[a].shape)
    op = d.choice("a * b", "a / (2 + b conj b)", "a - b", "where(a.real > b.real, a, b)")
    f = {
        "a * b": lambda x, y: x * y,
        "a / (2 + b conj b)": lambda x, y: x / (2.0 + (y * y.conj())),
        "a - b": lambda x, y: x - y,
        "where(a.real > b.real, a, b)": lambda x, y: np.where(x.real > y.real, x, y),
    }[op]
    if d.env[a].ndim == 2:
        raise Skip
    d.add("" + op, f, a, b)


@takes
def shapes(d):
    k = d.matrix()
    m, n = d.env[k].shape
    how = d.choice("T", "H", "rows", "turn", "sum0", "sum1", "mean", "cumsum", "stack", "roll",
                   "reshape", "element", "sorted")  # fmt: skip
    at = int(d.rng.integers(m)), int(d.rng.integers(n))
    f = {
        "T": lambda A: A.T,
        "H": lambda A: A.conj().T,
        "rows": lambda A: A[: (m + 1) // 2],
        "turn": lambda A: A[::-1],
        "sum0": lambda A: A.sum(axis=0),
        "sum1": lambda A: A.sum(axis=1),
        "mean": lambda A: A.mean(),
        "cumsum": lambda A: np.cumsum(A, axis=0),
        "stack": lambda A: np.concatenate([A, 2.0 * A], axis=1),
        "roll": lambda A: np.roll(A, 1, axis=0),
        "reshape": lambda A: A.reshape(-1),
        "element": lambda A: A[at],
        "sorted": lambda A: np.sort(A.real, axis=0),
    }[how]
    d.add(f"{how}", f, k)


@takes
def outer(d):
    k = d.vector()
    if d.env[k].shape[0] > 50:
        raise Skip
    d.add("outer", lambda v: np.outer(v, v.conj()) / (1.0 + len(v)), k)


@takes
def vectors(d):
    k = d.vector()
    how = d.choice("norm", "cumsum", "flip", "part", "dot", "concat", "maximum")
    n = d.env[k].shape[0]
    f = {
        "norm": lambda v: np.linalg.norm(v),
        "cumsum": lambda v: np.cumsum(v),
        "flip": lambda v: v[::-1],
        "part": lambda v: v[: (n + 1) // 2],
        "dot": lambda v: np.vdot(v, v).real,
        "concat": lambda v: np.concatenate([v, 0.5 * v]),
        "maximum": lambda v: np.maximum(v.real, 0.3 * v[::-1].real),
    }[how]
    d.add(f"{how}", f, k)


def drawn(seed):
    """The program of a seed."""
    return Drawer(seed).draw()
