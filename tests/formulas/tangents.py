"""Derivatives of random formulas by dense NumPy: the tangent of each line along directions of the
leaves, and the bound of what was added up for it, beside the values of reference.py.

Forward, line by line, by the chain rule as it is in a book; the library goes backward."""

import numpy as np

from . import parameters, reference
from .reference import Node, Unsure

MULTILINEAR = ("matmul", "einsum", "times", "matvec", "vecmat", "vdot", "vtimes", "ntimes",
               "multiple", "colscale", "rowscale", "outer", "kron", "lowrank", "quad")  # fmt: skip
LINEAR = ("add", "sub", "T", "swap", "hstack", "vstack", "turn", "sum0", "sum1", "sum", "mean0",
          "mean1", "cumsum", "vadd", "nadd", "vsub", "vreverse", "vdiagonal", "rowsums", "vsum",
          "ntrace", "upright", "flat", "single", "neg", "vneg", "vconj", "conj", "H", "real",
          "imag", "cut", "row", "column", "entry", "ventry", "scale", "vscale", "divide",
          "multiplied", *parameters.LINEAR)  # fmt: skip


class Pair:
    """A Node and its tangent, which is a Node too."""

    def __init__(self, node, tangent):
        self.node, self.tangent = node, tangent


def still(node):
    """The tangent of a constant."""
    return Node(np.zeros_like(node.V), np.zeros_like(node.M), 1, node.types)


def total(nodes):
    return Node(sum(n.V for n in nodes), sum(n.M for n in nodes), 1, nodes[0].types)


def close(a, b, M, u):
    """Where two values may be in either order, or one be 0."""
    return np.abs(a - b) <= 1e3 * u * M


def chosen(first, x, dx, u):
    """The tangents of the greater (first) or smaller of two; where they may be equal, what they
    are of must be."""
    (a, b), (da, db) = (n.V for n in x), (n.V for n in dx)
    M = x[0].M + x[1].M
    if (close(a, b, M, u) & (da != db)).any():
        raise Unsure("a tie")
    take = a >= b if first else a <= b
    return np.where(take, da, db), dx[0].M + dx[1].M


def extreme(first, axis, x, dx, u):
    """Likewise along an axis."""
    a, at = x.V, np.expand_dims((np.argmax if first else np.argmin)(x.V, axis), axis)
    best, way = np.take_along_axis(a, at, axis), np.take_along_axis(dx.V, at, axis)
    if (close(a, best, x.M.max(axis, keepdims=True), u) & (dx.V != way)).any():
        raise Unsure("a tie")
    return way, dx.M.max(axis, keepdims=True)


def magnitude(a, da, M, dM, u):
    """Of absolute values: Re(conj(a) da) / |a|."""
    r = np.abs(a)
    if ((r <= 1e3 * u * M) & (dM > 0)).any():
        raise Unsure("the absolute value of what may be 0")
    r = np.where(r, r, 1)
    return (a.conj() * da).real / r, dM * (1 + M / r)


def derivative(head, x, dx, out, u):
    """Values and bounds of the tangent of what is not linear."""
    (V, M), (dV, dM) = (x[0].V, x[0].M), (dx[0].V, dx[0].M)
    if head in ("sin", "cos", "tanh", "arctan"):
        slope = {
            "sin": lambda: np.cos(V),
            "cos": lambda: -np.sin(V),
            "tanh": lambda: 1 - np.tanh(V) ** 2,
            "arctan": lambda: 1 / (1 + V * V),
        }[head]()
        return slope * dV, (1 + M) * dM
    if head == "square":
        return 2 * V * dV, 2 * M * dM
    if head == "lift":
        return 2 * (V.conj() * dV).real, 2 * M * dM
    if head == "abs":
        return magnitude(V, dV, M, dM, u)
    if head == "hypot":
        r = np.hypot(V, x[1].V)
        if (r <= 1e3 * u * out.M).any():
            raise Unsure("hypot of what may be 0")
        return (V * dV + x[1].V * dx[1].V) / r, (dM + dx[1].M) * (1 + out.M / r)
    if head == "vnorm":
        r = np.linalg.norm(V)
        if r <= 1e3 * u * out.M:
            raise Unsure("the norm of what may be 0")
        return np.vdot(V, dV).real / r, np.linalg.norm(dM) * (1 + out.M / r)
    if head in ("maximum", "minimum"):
        return chosen(head == "maximum", x, dx, u)
    if head == "where":
        return chosen(True, x, dx, u)
    if head == "max0":
        return extreme(True, -2, x[0], dx[0], u)
    if head == "min1":
        return extreme(False, -1, x[0], dx[0], u)
    if head == "over":
        away, more = magnitude(x[1].V, dx[1].V, x[1].M, dx[1].M, u)
        below = 2 + np.abs(x[1].V)
        bound = dM / below + M * more / below**2
        return dV / below - V * away / below**2, bound * (1 + x[1].M / below)
    return of_inverses(head, x, dx, out)


def of_inverses(head, x, dx, out):
    X, bound, _ = reference.inverse(x[0])
    dV, dM = dx[0].V, dx[0].M
    if head == "inv":
        return -X @ dV @ X, np.abs(X) @ dM @ bound + bound @ dM @ np.abs(X)
    if head in ("solve", "vsolve"):
        dV = X @ (dx[1].V - dV @ out.V)
        return dV, bound @ (dx[1].M + dM @ np.abs(out.V)) + np.abs(X) @ dM @ out.M
    if head == "nlogdet":
        return np.asarray(np.sum(X.T * dV).real), np.asarray(np.sum(bound.T * dM))
    raise KeyError(head)


def combine(head, p, pairs, u, sizes):
    """The Pair of an operation on Pairs."""
    if head in parameters.COMPOSED:
        step = lambda h, *x, p=(): combine(h, p, x, u, sizes)  # noqa: E731
        return parameters.COMPOSED[head](step, p, *pairs)
    x, dx = [q.node for q in pairs], [q.tangent for q in pairs]
    node = reference.combine(head, p, x, u, sizes)
    do = lambda operands: reference.combine(head, p, operands, u, sizes)  # noqa: E731
    if head in LINEAR:
        return Pair(node, do(dx))
    if head in MULTILINEAR:
        return Pair(node, total([do([*x[:i], dx[i], *x[i + 1 :]]) for i in range(len(x))]))
    if head == "root":
        both = [([dx[0], x[0]]), ([x[0], dx[0]])]
        parts = [reference.combine("lowrank", (), q, u, sizes) for q in both]
        return Pair(node, total(parts))
    if head == "rbf":
        n, length = len(node.V), x[0].V
        slope = node.V * parameters.gaps(n) / length**3
        bound = np.full((n, n), 64.0 * slope.max(initial=0))
        return Pair(node, Node(slope * dx[0].V, bound * dx[0].M, 1, node.types))
    V, M = derivative(head, x, dx, node, u)
    return Pair(node, Node(np.asarray(V), np.asarray(M), 1, node.types))


def evaluate(program, nodes, directions, u, at_once=()):
    """The tangents of all lines along the directions, by line, that the leaves move in. A line that
    has no verdict gives an Unsure, as those do that use it, and functions of NumPy's that are
    computed at once, which have no derivative."""
    pairs = []
    for i, (head, over, p) in enumerate(program.lines):
        below = [pairs[j] for j in over]
        failed = [q for q in [nodes[i], *below] if isinstance(q, Unsure)]
        if failed:
            pairs.append(failed[0])
        elif head in ("leaf", "array"):
            pairs.append(Pair(nodes[i], still(nodes[i])))
        elif head == "lazy":
            d = directions[i]
            pairs.append(Pair(nodes[i], Node(d, np.abs(d), 1, nodes[i].types)))
        elif i in at_once:
            pairs.append(Unsure("computed at once"))
        else:
            try:
                pairs.append(combine(head, p, below, u, program.sizes))
            except Unsure as e:
                pairs.append(e)
    return [q if isinstance(q, Unsure) else q.tangent for q in pairs]


def directions(program, operands, rng):
    """One for each LazyArray of an array, by line."""
    out = {}
    for i, (head, over, _) in enumerate(program.lines):
        if head == "lazy":
            of = operands[over[0]]
            d = rng.standard_normal(of.shape)
            if of.dtype.kind == "c":
                d = d + 1j * rng.standard_normal(d.shape)
            out[i] = d
    return out
