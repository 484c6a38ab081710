"""Operands of random formulas: of every kind of pl.kinds(), as descriptions for `ref` where it
knows the kind, and for the others their constructor's arguments and dense forms here.

A kind that neither knows is built from its signature alone, its parameters drawn by their roles,
and its dense form is that of its products with unit vectors: weaker, but it is drawn at once."""

import functools

import bands
import numpy as np
import ref
import samples

import pylinop as pl

FLOATING = ("DFT", "DCT", *bands.FLOATS)
NOT_LEAVES = {
    "Sum",
    "Product",
    "Scaled",
    "Power",
    "Inverse",
    "Part",
    "Sliced",
}  # made by operations


@functools.cache
def kinds():
    """Names of kinds that can be constructed; the offset diagonal is a kind of its own to `ref`."""
    names = [k["name"] for k in pl.kinds() if k["signature"] and k["name"] not in NOT_LEAVES]
    return (*names, "MatVec", "OffDiag", "Assumed")


@functools.cache
def heads():
    """The head in rules and plans: the kind."""
    out = {k["head"]: k["name"] for k in pl.kinds() if k["signature"]}
    return out | {"offdiag": "OffDiag"}


class Leaf:
    """One operand: `build()` makes the operator anew over the same arrays, `arrays` are what may be
    written to, `dense(dtype, bound)` its exact entries or the bound on them."""

    def __init__(self, kind, description):
        self.kind, self.description = kind, description

    def build(self):
        return ref.build(self.description)

    def dense(self, dtype, bound):
        return ref.dense(self.description, dtype, bound)

    def types(self):
        return ref.types(self.description)

    @property
    def arrays(self):
        return list(arrays_of(self.description))


def arrays_of(d):
    for q in d[1:]:
        if isinstance(q, tuple) and q and isinstance(q[0], str):
            yield from arrays_of(q)
        elif isinstance(q, np.ndarray):
            yield q
        elif hasattr(q, "nnz"):
            yield q.data


class Own(Leaf):
    """Of a kind that `ref` does not know: a function of the arrays gives the dense form."""

    alike = False  # whether that function of the arrays' absolute values bounds what is added up

    def __init__(self, kind, make, dense, arrays, types=None):
        self.kind, self.make, self.entries = kind, make, dense
        self.own, self.own_types = arrays, types

    def build(self):
        return self.make(*self.own)

    def dense(self, dtype, bound):
        dt = ref.dtype(("Dense", np.zeros(0))) if dtype is None else np.dtype(dtype)
        w = np.dtype({"f": "f8", "c": "c16"}.get(dt.kind, dt))
        if bound and self.alike:  # sums of products of the entries' sizes
            return self.entries(*map(np.abs, self.own)).astype(float)
        out = self.entries(*self.own)
        return (np.abs(out) if bound else out).astype(float if bound else w)

    def types(self):
        if self.own_types is not None:
            return self.own_types
        return [a.dtype.newbyteorder("=") for a in self.own]

    @property
    def arrays(self):
        return self.own


def draw(kind, rng, m, n, dtype, batch=(), layout="C", invertible=False):
    """A Leaf of shape batch + (m, n), or None where the kind has none of that shape."""
    invertible = invertible and m > 0
    if kind in ref.KINDS or kind in ref.LEAVES:
        if np.dtype(dtype).kind in "biu":
            if kind in (*FLOATING, "MatVec") or invertible:  # callables go by their dense form
                return None
        if kind == "FiniteDifference" and n - m > 50:
            return None
        d = samples.leaf(kind, rng, m, n, dtype, batch, layout, invertible)
        return Leaf(kind, d) if d else None
    if kind in OWN:
        return OWN[kind](rng, m, n, np.dtype(dtype), batch, layout, invertible)
    return unknown(kind, rng, m, n, dtype)


# -- kinds that `ref` does not know ---------------------------------------------------------------


def hadamard(rng, m, n, dtype, batch, layout, invertible):
    if m != n or n == 0 or n & (n - 1) or batch or dtype.kind in "bu":
        return None
    adopt = None if rng.integers(2) else dtype

    def entries():
        h = np.ones((1, 1))
        while len(h) < n:
            h = np.block([[h, h], [h, -h]])
        return h

    types = [1 if adopt is None else adopt]
    return Own("Hadamard", lambda: pl.Hadamard(n, adopt), entries, [], types)


def quasi(rng, m, n, dtype, batch, layout, invertible):
    if m != n or n == 0 or dtype.kind in "biu":
        return None
    J, triangular = int(rng.integers(1, 5)), bool(rng.integers(2))
    v = samples.values
    parts = [v(rng, (*batch, n), dtype)] + [v(rng, (*batch, n, J), dtype) for _ in range(2)]
    full = rng.integers(3) == 0
    a = (v(rng, (*batch, n, J * J if full else J), dtype) / (2 * J)).astype(dtype)
    parts = [samples.arrange(x, layout) for x in (*parts, a)]
    if invertible:
        parts[0] = (np.abs(parts[0]) + 8 * J).astype(dtype)

    def entries(d, p, q, a):
        wide = np.result_type(*(x.dtype.newbyteorder("=") for x in (d, p, q, a)), float)
        out = np.zeros((*d.shape, n), wide)
        state = np.zeros((*d.shape[:-1], J, n), wide)  # of every column, at the row reached
        for i in range(n):
            out[..., i, :] = (p[..., i, None, :] @ state)[..., 0, :]
            out[..., i, i] = d[..., i] if triangular else d[..., i].real
            t = a[..., i, :]
            if a.shape[-1] == J and not full:
                state = t[..., :, None] * state
            else:
                state = t.reshape(*t.shape[:-1], J, J) @ state
            state[..., :, i] = q[..., i, :]
        if not triangular:
            low = np.tril(out, -1)
            out = out + np.swapaxes(low, -1, -2).conj()
        return out

    leaf = Own("QuasiSeparable", lambda *x: pl.QuasiSeparable(*x, triangular), entries, parts)
    leaf.alike = True
    return leaf


def kernel(rng, m, n, dtype, batch, layout, invertible):
    if dtype.kind != "f" or m == 0 or n == 0:
        return None
    d = int(rng.integers(1, 4))
    x = samples.arrange(samples.values(rng, (*batch, m, d), dtype), layout)
    same = m == n and rng.integers(2)
    parts = [x] if same else [x, samples.values(rng, (n, d), dtype)]
    name = str(rng.choice(["rbf", "matern12", "matern32", "matern52", "linear", "polynomial"]))

    def entries(x, y=None):
        x = x.astype(float)
        y = x if y is None else y.astype(float)
        inner = x @ np.swapaxes(y, -1, -2)
        if name == "linear":
            return inner
        if name == "polynomial":
            return (inner + 1) ** 3
        gap = x[..., :, None, :] - y[..., None, :, :]
        r = np.sqrt((gap * gap).sum(-1))
        s3, s5 = np.sqrt(3.0) * r, np.sqrt(5.0) * r
        return {
            "rbf": lambda: np.exp(-r * r / 2),
            "matern12": lambda: np.exp(-r),
            "matern32": lambda: (1 + s3) * np.exp(-s3),
            "matern52": lambda: (1 + s5 + s5 * s5 / 3) * np.exp(-s5),
        }[name]()

    leaf = Own("Kernel", lambda *x: pl.Kernel(name, *x), entries, parts)
    leaf.normwise = True  # squares of distances cancel: errors are those of the largest entry
    return leaf


def blocktridiagonal(rng, m, n, dtype, batch, layout, invertible):
    if m != n or n == 0 or dtype.kind in "biu":
        return None
    b = int(rng.choice([k for k in (1, 2, 3, 4, 5, 8) if n % k == 0]))
    N = n // b
    lower, diag, upper = (
        samples.values(rng, (*batch, k, b, b), dtype) for k in (max(N - 1, 0), N, max(N - 1, 0))
    )
    if invertible:
        diag = (diag + np.asarray(12 * b * np.eye(b), dtype)).astype(dtype)
    parts = [samples.arrange(x, layout) for x in (lower, diag, upper)]

    def entries(lower, diag, upper):
        out = np.zeros((*diag.shape[:-3], n, n), diag.dtype.newbyteorder("="))
        for k in range(N):
            here, after = slice(k * b, (k + 1) * b), slice((k + 1) * b, (k + 2) * b)
            out[..., here, here] = diag[..., k, :, :]
            if k + 1 < N:
                out[..., after, here] = lower[..., k, :, :]
                out[..., here, after] = upper[..., k, :, :]
        return out

    return Own("BlockTridiagonal", lambda *x: pl.BlockTridiagonal(*x), entries, parts)


def assumed(rng, m, n, dtype, batch, layout, invertible):
    """A dense matrix of which something is assumed, and it is true."""
    if m != n or n == 0 or dtype.kind in "biu":
        return None
    a = samples.values(rng, (*batch, n, n), dtype)
    word = str(
        rng.choice(["pos", "her", "sym", "lower triangular", "upper triangular", "diagonal"])
    )
    shift = np.asarray(4 * n * np.eye(n) * (invertible or word == "pos"), dtype)
    turned = np.swapaxes(a, -1, -2)
    a = {
        "pos": lambda: a + turned.conj(),
        "her": lambda: a + turned.conj(),
        "sym": lambda: a + turned,
        "lower triangular": lambda: np.tril(a),
        "upper triangular": lambda: np.triu(a),
        "diagonal": lambda: a * np.eye(n, dtype=dtype),
    }[word]()
    a = samples.arrange((a + shift).astype(dtype), layout)
    return Own("Assumed", lambda a: pl.Dense(a, word), lambda a: a, [a])


def unknown(kind, rng, m, n, dtype):
    """By the parameters' roles; None where they are not known or do not fit."""
    (row,) = [k for k in pl.kinds() if k["name"] == kind]
    args, arrays = [], []
    for p in row["params"]:
        if p["default"] is not None:
            break
        if p["role"] == "array":
            arrays.append(samples.values(rng, (m, n)[-p["rank"] :], dtype))
            args.append(arrays[-1])
        elif p["role"] in ("operator", "operators"):
            arrays.append(samples.values(rng, (m, n), dtype))
            args.append(arrays[-1])
        elif p["role"] in ("int", "offset"):
            args.append(n)
        elif p["role"] == "shape":
            args.append((m, n))
        else:
            return None
    try:
        made = getattr(pl, kind)(*args)
    except (ValueError, TypeError, AttributeError):
        return None
    if made.shape != (m, n):
        return None

    def entries(*_):
        eye = np.eye(n, dtype=made.dtype)
        return np.stack([made @ e for e in eye], axis=1) if n else np.zeros((m, 0), made.dtype)

    return Own(kind, lambda *_: getattr(pl, kind)(*args), entries, arrays, [made.dtype])


OWN = {
    "Hadamard": hadamard,
    "QuasiSeparable": quasi,
    "Kernel": kernel,
    "BlockTridiagonal": blocktridiagonal,
    "Assumed": assumed,
}
