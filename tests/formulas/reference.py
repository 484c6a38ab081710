"""What a program means, by dense NumPy in double precision, and how far a result may lie from it.

With each value V goes a running bound M >= |V| of what was added up on the way and a count s of the
roundings met: the promise of a product, n u |A| |B|, says that an error is at most 8 s u M. It is
taken through functions by their Lipschitz constants. Of an inverse, the promised backward error
|b - A x| <= 10 n u (|A| |x| + |b|) bounds column x of X by |X[i, :]| (|M| |x| + 1) in row i.
Integers are exact: they wrap as NumPy's do."""

import numpy as np
import ref

from . import parameters
from .program import operand, size


class Unsure(Exception):  # noqa: N818
    """No verdict is possible: a bound is as large as what it bounds."""


class Node:
    def __init__(self, V, M, s, types):
        self.V, self.M, self.s, self.types = V, M, s, types

    @property
    def shape(self):
        return self.V.shape


def width(types):
    """The rounding unit of the least precise of some dtypes."""
    eps = [np.finfo(t).eps for t in types if isinstance(t, np.dtype) and t.kind in "fc"]
    return max(eps, default=np.finfo(float).eps)


EITHER = object()  # among dtypes: what may be a weak float (an inverse of kinds without numbers)


def dtype_of(types):
    """ref.dtype's rule: weak ones as Python scalars."""
    types = [q for q in types if q is not EITHER]
    if not any(isinstance(q, np.dtype) for q in types):
        return np.dtype("complex128" if any(isinstance(q, complex) for q in types) else "float64")
    return np.result_type(*[q if isinstance(q, np.dtype) else type(q)(1) for q in types])


def t(x):
    return np.swapaxes(x, -1, -2)


def magnitudes(x):
    """|x| in floats: NumPy's of the least integer is negative."""
    return np.abs(x.astype(float) if x.dtype.kind in "iu" else x).astype(float)


def length(x, axis):
    """The root of the sum of squares, whose squares do not leave the range."""
    size = magnitudes(x)
    top = size.max(axis=axis, keepdims=True, initial=0.0)
    top = np.where((top > 0) & np.isfinite(top), top, 1.0)
    return top * np.sqrt(((size / top) ** 2).sum(axis=axis, keepdims=True))


def norm(x):
    """Frobenius, of each matrix of a batch."""
    return length(x, (-2, -1))


def inverse(a):
    """Of a Node: the values, the bound on the inverse's entries (times 8 s u), and |rows of it|."""
    try:
        X = np.linalg.inv(a.V.astype(complex if a.V.dtype.kind == "c" else float))
    except np.linalg.LinAlgError:
        raise Unsure("singular") from None
    if not np.isfinite(X).all():
        raise Unsure("singular")
    rows, columns = length(X, -1), length(X, -2)
    return X, rows * (norm(a.M) * columns + 1), rows


def sure(a, X, u):
    """Raises Unsure unless the errors of `a` leave its inverse known."""
    loss = 8 * a.s * u * (norm(X) * norm(a.M)).max(initial=0)
    if not loss < 0.02:
        raise Unsure(f"ill-conditioned: {loss:.1e}")


def selections(p, sizes):
    out = []
    for dim, last in p:
        n = None if dim == ":" else size(dim, sizes)
        out.append(slice(None) if n is None else slice(-n, None) if last and n else slice(None, n))
    return (..., *out)


def times(a, b):
    return a @ b


def khatri(a, b):
    out = a[..., :, None, :] * b[..., None, :, :]
    return out.reshape(*out.shape[:-3], out.shape[-3] * out.shape[-2], out.shape[-1])


def kron_sum(a, b):
    w = a.dtype if a.dtype.kind in "biu" else np.dtype(float)
    return ref.kron([a, np.eye(b.shape[-1], dtype=w)]) + ref.kron([np.eye(a.shape[-1], dtype=w), b])


# of values and, with absolute values within, of bounds alike
ALIKE = {
    "add": lambda a, b: a + b,
    "matmul": times,
    "einsum": times,
    "times": lambda a, b: a * b,
    "multiply": lambda a, b: a * b,
    "T": t,
    "swap": t,
    "kron": lambda a, b: ref.kron([a, b]),
    "kronsum": kron_sum,
    "blockdiag": lambda a, b: ref.stacked(
        [
            ref.stacked([a, np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)], -1),
            ref.stacked([np.zeros((*b.shape[:-1], a.shape[-1]), b.dtype), b], -1),
        ],
        -2,
    ),
    "hstack": lambda a, b: ref.stacked([a, b], -1),
    "vstack": lambda a, b: ref.stacked([a, b], -2),
    "update": lambda a, u, v: a + u @ t(v.conj()),
    "lowrank": lambda u, v: u @ t(v.conj()),
    "congruence": lambda a, b: a @ b @ t(a.conj()),
    "root": lambda a: a @ t(a.conj()),
    "khatrirao": khatri,
    "turn": lambda a: a[..., ::-1, :],
    "sum0": lambda a: a.sum(-2, keepdims=True),
    "sum1": lambda a: a.sum(-1, keepdims=True),
    "sum": lambda a: a.sum((-2, -1), keepdims=True),
    "mean0": lambda a: a.mean(-2, keepdims=True),
    "mean1": lambda a: a.mean(-1, keepdims=True),
    "cumsum": lambda a: np.cumsum(a, -1),
    "square": lambda a: a * a,
}
ALIKE |= {
    "matvec": times,
    "vecmat": times,
    "vdot": times,
    "quad": lambda v, a, w: v @ a @ w,
    "vadd": lambda a, b: a + b,
    "nadd": lambda a, b: a + b,
    "vtimes": lambda a, b: a * b,
    "ntimes": lambda a, b: a * b,
    "multiple": lambda a, b: a * b,
    "colscale": lambda a, b: a * b,
    "rowscale": lambda a, b: a[:, None] * b,
    "vreverse": lambda a: a[::-1],
    "vdiagonal": np.diagonal,
    "rowsums": lambda a: a.sum(1),
    "vsum": lambda a: a.sum(),
    "ntrace": np.trace,
    "outer": np.outer,
    "upright": lambda a: a[:, None],
    "flat": lambda a: a[None, :],
    "single": lambda a: np.asarray(a)[None, None],
}
# values; bounds are those of ALIKE["add"] or of the operand
OTHERS = {
    "sub": lambda a, b: a - b,
    "neg": lambda a: -a,
    "vsub": lambda a, b: a - b,
    "vneg": lambda a: -a,
    "vconj": np.conj,
    "vnorm": np.linalg.norm,
    "conj": np.conj,
    "H": lambda a: t(a.conj()),
    "real": np.real,
    "imag": np.imag,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "where": np.maximum,
    "hypot": np.hypot,
    "max0": lambda a: a.max(-2, keepdims=True),
    "min1": lambda a: a.min(-1, keepdims=True),
}
ENLARGED = {
    "sub": lambda a, b: a + b,
    "vsub": lambda a, b: a + b,
    "vnorm": np.linalg.norm,
    "H": t,
    "max0": lambda a: a.max(-2, keepdims=True),
    "min1": lambda a: a.max(-1, keepdims=True),
    "maximum": lambda a, b: a + b,
    "minimum": lambda a, b: a + b,
    "where": lambda a, b: a + b,
    "hypot": lambda a, b: a + b,
    "sin": lambda a: a + 1,
    "cos": lambda a: a + 1,
}


def combine(head, p, x, u, sizes, wraps=False):
    """The Node of an operation on Nodes. `wraps`: integers are in the dtypes that NumPy has for
    each."""
    if head in parameters.COMPOSED:
        step = lambda h, *y, p=(): combine(h, p, list(y), u, sizes)  # noqa: E731
        return parameters.COMPOSED[head](step, p, *x)
    types = sum((a.types for a in x), [])
    s = 2 + sum(a.s for a in x)
    V, M = [a.V for a in x], [a.M for a in x]
    if head in parameters.PRIMITIVE:
        return Node(*map(np.asarray, parameters.primitive(head, p, V, M, sizes)), s + 4, types)
    if head in ("inv", "solve"):
        X, bound, rows = inverse(x[0])
        sure(x[0], X, u)
        if not any(map(is_inexact, types)):  # of integers in float64
            types.append(1.0 if any(isinstance(q, np.dtype) for q in types) else EITHER)
        if head == "inv":
            return Node(X, bound, 8 * s, types)
        value = X @ V[1]
        size_of = length(value, -2)
        right = length(M[1], -2)
        return Node(value, rows * (norm(M[0]) * size_of + right), 8 * s, types)
    if head == "vsolve":
        X, _, rows = inverse(x[0])
        sure(x[0], X, u)
        value = X @ V[1]
        bound = rows[:, 0] * (norm(M[0])[0, 0] * np.linalg.norm(value) + np.linalg.norm(M[1]))
        return Node(value, bound, 8 * s, types)
    if head == "nlogdet":
        X, _, _ = inverse(x[0])
        sure(x[0], X, u)
        value = np.linalg.slogdet(V[0].astype(complex if V[0].dtype.kind == "c" else float))[1]
        bound = abs(value) + len(X) * (norm(M[0]) * norm(X))[0, 0]
        if not any(map(is_inexact, types)):
            types.append(1.0 if any(isinstance(q, np.dtype) for q in types) else EITHER)
        types = [np.finfo(q).dtype if is_complex(q) else parted(q) for q in types]
        return Node(np.asarray(value), np.asarray(bound), 8 * s, types)
    if head in ("row", "ventry"):
        return Node(np.asarray(V[0][p[0]]), np.asarray(M[0][p[0]]), s, types)
    if head in ("column", "entry"):
        at = (slice(None), p[0]) if head == "column" else (p[0], p[0])
        return Node(np.asarray(V[0][at]), np.asarray(M[0][at]), s, types)
    if head in ("scale", "vscale", "divide"):
        w = V[0].dtype
        number = p[0]
        if head == "divide":
            types += [weak(p[0]), 1.0]  # integers too are divided as floats
            return Node(V[0] / complex_or_real(p[0]), M[0] / abs(p[0]), s, types)
        if w.kind not in "biu" or isinstance(number, (float, complex, np.inexact)):
            number = complex_or_real(number)
        elif not wraps:  # all in the dtype of the result
            number = w.type(int(number))
        return Node(number * V[0], M[0] * abs(p[0]), s, [*types, weak(p[0])])
    if head == "over":
        value = V[0] / (2 + np.abs(V[1]))
        below = np.abs((2 + np.abs(V[1])).astype(float))  # of small integers squares would wrap
        bound = M[0] / below + magnitudes(V[0]) / below**2 * M[1]
        return Node(value, bound, s + 4, [*types, 1.0])
    if head == "power":
        n = V[0].shape[-1]
        value = np.broadcast_to(np.eye(n, dtype=V[0].dtype), V[0].shape)
        bound = np.broadcast_to(np.eye(n), M[0].shape)
        for _ in range(p[0]):
            value, bound = V[0] @ value, M[0] @ bound
        return Node(value, bound, s * (p[0] + 1), types)
    if head == "cut":
        at = selections(p, sizes)
        return Node(V[0][at], M[0][at], s, types)
    if head in ALIKE:
        s += sum(V[0].shape[-2:]) if head in SUMMING else 0
        return Node(np.asarray(ALIKE[head](*V)), np.asarray(ALIKE[head](*M)), s, types)
    if head in ("sub", "neg"):  # of truth values -1 times them, as SciPy says it
        own = known(x[-1].types)
        types = [*types, np.dtype(int) if own == [np.dtype(bool)] else 1]
    if head in ("real", "imag"):
        of_zeros = head == "imag" and all(isinstance(q, int) for q in types)
        types = [np.finfo(q).dtype if is_complex(q) else parted(q) for q in types]
        types = [True] if of_zeros else types  # weak zeros take any dtype
    bound = ENLARGED.get(head, lambda *m: m[0])(*M)
    s += V[0].size if head == "vnorm" else 4
    return Node(np.asarray(OTHERS[head](*V)), np.asarray(bound), s, types)


def is_inexact(q):
    return q.kind in "fc" if isinstance(q, np.dtype) else isinstance(q, (float, complex))


def is_complex(q):
    return isinstance(q, np.dtype) and q.kind == "c"


def parted(q):
    return 1.0 if isinstance(q, complex) else q


SUMMING = (
    "sum0",
    "sum1",
    "sum",
    "mean0",
    "mean1",
    "cumsum",
    "congruence",
    "root",
    "lowrank",
    "update",
    "matvec",
    "vecmat",
    "vdot",
    "quad",
    "rowsums",
    "vsum",
    "ntrace",
)


def weak(p):
    return getattr(p, "dtype", p)


def complex_or_real(p):
    return complex(p) if isinstance(p, (complex, np.complexfloating)) else float(p)


def known(types):
    """The dtypes below a node as what the node has: one dtype, or weak ones."""
    if not any(isinstance(q, np.dtype) for q in types):
        return types
    own = dtype_of(types)
    return [own, EITHER] if EITHER in types and own.char not in "dD" else [own]


def leaf(of, dt):
    V = of.dense(dt, False)
    M = of.dense(np.dtype(float) if dt is None or dt.kind in "fc" else dt, True)
    if getattr(of, "normwise", False) and M.size:
        M = np.zeros_like(M) + M.max() * 64
    M = magnitudes(M)
    return Node(V, M, max(V.shape[-2:], default=0) + 4, known(of.types()))


def evaluate(program, operands, dt=None):
    """The Nodes of all lines; dt: the dtype of an integer program, None for floats. A line that has
    no verdict gives an Unsure, as those do that use it."""
    types = []
    for head, _, _ in program.lines:
        types += [None] if head is None else []
    for of in operands.values():
        types += of.types() if hasattr(of, "types") else [of.dtype.newbyteorder("=")]
    types += [weak(p[0]) for head, _, p in program.lines if head in ("scale", "vscale", "divide")]
    u = width([x for x in types if isinstance(x, np.dtype)])
    wide = np.dtype(
        "c16"
        if any(np.dtype(type(x) if not isinstance(x, np.dtype) else x).kind == "c" for x in types)
        else "f8"
    )
    target = dt if dt is not None else wide
    nodes = []
    for i, (head, over, p) in enumerate(program.lines):
        below = [nodes[j] for j in over]
        failed = [b for b in below if isinstance(b, Unsure)]
        if failed:
            nodes.append(failed[0])
            continue
        if head == "leaf":
            node = leaf(operands[i], target)
        elif head == "array":
            a = operands[i]
            own = [a.dtype.newbyteorder("=")]
            V = a.astype(own[0] if program.lazy and own[0].kind in "iu" else target)
            node = Node(V, magnitudes(a), 1, own)
        elif head == "lazy":
            node = below[0]
        else:
            try:
                node = combine(head, p, below, u, program.sizes, program.lazy)
            except Unsure as e:
                node = e
        if isinstance(node, Node):
            node.types = known(node.types)
            if program.lazy and node.V.dtype.kind in "biu":  # exact, and may have wrapped
                node.M = magnitudes(node.V)
        if isinstance(node, Node) and node.V.dtype.kind in "fc" and node.V.size:
            top = node.M.max()
            if not (np.isfinite(top) and top < (1e30 if u > 1e-10 else 1e150)):
                node = Unsure("too large")
        nodes.append(node)
    return nodes, u


def operands_of(program):
    """Leaves and arrays by line; None where a size fits none."""
    out = {}
    for i, line in enumerate(program.lines):
        if line[0] in ("leaf", "array"):
            out[i] = operand(line, program.sizes)
            if out[i] is None:
                return None
    return out
