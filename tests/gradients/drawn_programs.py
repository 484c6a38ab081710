"""What random programs do with matrices and vectors, and a program of a seed."""

import numpy as np
from gradients import drawn_matrices  # noqa: F401, fills its table
from gradients.drawer import Drawer, Skip, takes

import pylinop as pl


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
