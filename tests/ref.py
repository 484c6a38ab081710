"""An independent dense oracle.

A description is a nested tuple: a leaf is (kind, parameters...), a composite (head, children...).
From one come the pylinop expression (`build`), the dense NumPy array (`dense`), the dtype NumPy 2
gives (`dtype`) and a matrix of absolute values which bounds the error (`tolerance`):

    |computed - exact| <= 8 u steps |A| |x|

where |A| is |B| |C| for a product, |B| + |C| for a sum, |B^-1| |B| |B^-1| for an inverse; for a
Toeplitz leaf it is |symbol|_2 everywhere, as products by FFT are accurate normwise only. Integers
are exact.
"""

import bands
import numpy as np
import scipy.fft
import scipy.sparse as sp

import pylinop as pl

KINDS = (
    "Dense MatVec Identity Zeros Diag Selection Kron Toeplitz LowRank Sparse "
    "Circulant Hankel MultilevelToeplitz Convolution"
).split()
KINDS += [k for k in bands.KINDS if k not in bands.FLOATS]
# kinds whose operands are operators
COMPOSITES = (
    "Kron BlockDiag Block LowRankUpdate KronSum Congruence Root Eigen HadamardProduct KhatriRao"
).split()
KINDS += COMPOSITES[1:]
LEAVES = [
    *KINDS,
    "DFT",
    "DCT",
    *bands.FLOATS,
]  # those of any dtype, and those that are never integer
FLOATS = "float32 float64 complex64 complex128".split()
INTS = "int8 int64 uint8 bool".split()


class Apply:
    """x -> a x for vectors (columns=False) or matrices; picklable."""

    def __init__(self, a, columns, adjoint=False):
        self.a, self.columns, self.adjoint = a, columns, adjoint

    def __call__(self, x):
        a = adj(self.a) if self.adjoint else self.a
        if self.columns or (x.ndim == 1 and a.ndim == 2):
            return a @ x
        return (a @ x[..., None])[..., 0]


def adj(a):
    return np.swapaxes(a, -1, -2).conj()  # the function makes int8 of bool


def build(d):
    head, p = d[0], d[1:]
    if head == "MatVec":
        a, more = p[0], {}
        if p[1]:
            more = {"matmat": Apply(a, True), "rmatmat": Apply(a, True, True)}
        return pl.MatVec(
            a.shape,
            Apply(a, False),
            Apply(a, False, True),
            dtype=a.dtype.newbyteorder("="),
            **more,
        )
    if head in LEAVES and head not in COMPOSITES:
        return getattr(pl, bands.CLASSES.get(head, head))(*p)
    x = [build(q) if isinstance(q, tuple) else q for q in p]
    return {
        "Sum": lambda: x[0] + x[1],
        "Sub": lambda: x[0] - x[1],
        "Product": lambda: x[0] @ x[1],
        "Neg": lambda: -x[0],
        "T": lambda: x[0].T,
        "H": lambda: x[0].H,
        "Conj": lambda: x[0].conj(),
        "Inverse": lambda: pl.inv(x[0]),
        "Scaled": lambda: x[0] * x[1],
        "Power": lambda: x[0] ** x[1],
        "Kron": lambda: pl.Kron(*x),
        "BlockDiag": lambda: pl.BlockDiag(*x),
        "Block": lambda: pl.Block(rows_of(x)),
        **{k: (lambda k=k: getattr(pl, k)(*x)) for k in COMPOSITES[4:]},
        "LowRankUpdate": lambda: pl.LowRankUpdate(*x),
    }[head]()


def rows_of(x):
    """Blocks in rows: the number of rows comes first."""
    c = (len(x) - 1) // x[0]
    return [list(x[1 + i * c : 1 + (i + 1) * c]) for i in range(x[0])]


def stacked(parts, axis):
    batch = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
    return np.concatenate([np.broadcast_to(p, batch + p.shape[-2:]) for p in parts], axis=axis)


def kron(x):
    out = x[0]
    for b in x[1:]:
        out = out[..., :, None, :, None] * b[..., None, :, None, :]
        out = out.reshape(
            out.shape[:-4] + (out.shape[-4] * out.shape[-3], out.shape[-2] * out.shape[-1])
        )
    return out


def types(d):
    """dtypes of the leaves; weak ones as Python scalars (bool adopts all; -1 is an integer)."""
    head, p = d[0], d[1:]
    if head in ("FiniteDifference", "Laplacian"):
        return [1 if p[-1] is None else p[-1]]
    if head in ("Identity", "Zeros", "Selection", *bands.WEAK):
        return [True if p[-1] is None else p[-1]]
    if head in ("DFT", "DCT"):
        return [(1j if head == "DFT" else 1.0) if p[-1] is None else p[-1]]
    if head in LEAVES and head not in COMPOSITES:
        return [q.dtype.newbyteorder("=") for q in p if hasattr(q, "dtype")]
    alpha = [getattr(p[0], "dtype", p[0])] if head == "Scaled" else []
    arrays = [q.dtype.newbyteorder("=") for q in p if isinstance(q, np.ndarray)]  # Eigen's
    return sum((types(q) for q in p if isinstance(q, tuple)), alpha + arrays)


def dtype(d, *arrays):
    t = types(d) + [a.dtype.newbyteorder("=") for a in arrays]
    if not any(isinstance(q, np.dtype) for q in t):
        return np.dtype("complex128" if any(isinstance(q, complex) for q in t) else "float64")
    return np.result_type(*[q if isinstance(q, np.dtype) else type(q)(1) for q in t])


def dense(d, dt=None, bound=False):
    """Exact values: integers in dtype `dt` (wrapping), the rest in double. Or the bound on them."""
    dt = dtype(d) if dt is None else dt
    w = np.dtype(float) if bound else np.dtype({"f": "f8", "c": "c16"}.get(dt.kind, dt))
    head, p = d[0], d[1:]

    def get(q):
        q = q.toarray() if sp.issparse(q) else np.asarray(q)
        return (np.abs(q) if bound else q).astype(w)

    if head in bands.KINDS:
        return bands.dense(head, p, get, w, bound)
    if head in ("Dense", "MatVec", "Sparse"):
        return get(p[0])
    if head == "Identity":
        return np.eye(p[0], dtype=w)
    if head == "Zeros":
        return np.zeros(p[0], w)
    if head == "Diag":
        return get(p[0])[..., None] * np.eye(p[0].shape[-1], dtype=w)
    if head == "Selection":
        return np.eye(p[1], dtype=w)[p[0].astype(int)]
    if head == "Toeplitz":
        c, r = get(p[0]), get(p[0].conj() if p[1] is None else p[1])
        m, n = c.shape[-1], r.shape[-1]
        s = np.concatenate([r[..., :0:-1], c], axis=-1)
        t = np.zeros(s.shape[:-1] + (m, n), w)
        if m and n:
            t[...] = s[..., np.arange(m)[:, None] - np.arange(n) + n - 1]
        return np.zeros_like(t) + np.linalg.norm(s, axis=-1)[..., None, None] if bound else t
    if head == "Circulant":
        return circulant(get(p[0]), p[1], bound)
    if head in ("DFT", "DCT"):
        return transform(head, p, bound).astype(w)
    if head == "Hankel":
        c, r = get(p[0]), get(np.zeros_like(p[0]) if p[1] is None else p[1])
        return hankel(c, r, bound)
    if head == "MultilevelToeplitz":
        n = np.atleast_1d(p[1])
        return shifted(get(p[0]), np.array(p[0].shape[-len(n) :]) - n + 1, n, n - 1, False, bound)
    if head == "Convolution":
        n = np.atleast_1d(p[1])
        k = np.array(p[0].shape[-len(n) :])
        less = np.minimum(k, n)
        m = {"full": n + k - 1, "valid": n + k + 1 - 2 * less}.get(p[2], n)
        shift = {"same": (k - 1) // 2, "valid": less - 1}.get(p[2], 0 * n)
        return shifted(get(p[0]), np.where(n, m, 0), n, shift, p[2] == "circular", bound)
    if head == "LowRank":
        U, V = get(p[0]), get(p[0] if p[1] is None else p[1])
        return (U if p[2] is None else U @ get(p[2])) @ adj(V)
    x = [dense(q, dt, bound) if isinstance(q, tuple) else q for q in p]
    if head == "Kron":
        return kron(x)
    if head == "KronSum":
        eyes = [np.eye(a.shape[-1], dtype=w) for a in x]
        terms = [kron([a if i == j else e for j, e in enumerate(eyes)]) for i, a in enumerate(x)]
        out = terms[0]
        for t in terms[1:]:
            out = out + t
        return out
    if head == "BlockDiag":
        x = [
            [b if i == j else np.zeros((a.shape[-2], b.shape[-1]), w) for j, b in enumerate(x)]
            for i, a in enumerate(x)
        ]
        return stacked([stacked(row, -1) for row in x], -2)
    if head == "LowRankUpdate":
        U, V = x[1], x[1] if x[2] is None else x[2]
        return x[0] + (U if x[3] is None else U @ x[3]) @ adj(V)
    if head == "Block":
        return stacked([stacked(row, -1) for row in rows_of(x)], -2)
    if head == "Power":
        out = (
            x[0] @ np.eye(x[0].shape[-1], dtype=w)
            if x[1]
            else x[0] ** 0 * np.eye(x[0].shape[-1], dtype=w)
        )
        for _ in range(x[1] - 1):
            out = x[0] @ out
        return out
    if head == "Inverse":
        a = np.linalg.inv(dense(p[0], dt))
        return np.abs(a) @ x[0] @ np.abs(a) if bound else a
    return {
        "Sum": lambda: x[0] + x[1],
        "Sub": lambda: x[0] + x[1] if bound else x[0] - x[1],
        "Product": lambda: x[0] @ x[1],
        "Congruence": lambda: x[0] @ x[1] @ adj(x[0]),
        "Root": lambda: x[0] @ adj(x[0]),
        "Eigen": lambda: (x[0] * get(x[1])[..., None, :]) @ adj(x[0]),
        "HadamardProduct": lambda: x[0] * x[1],
        "KhatriRao": lambda: (x[0][..., :, None, :] * x[1][..., None, :, :]).reshape(
            np.broadcast_shapes(x[0].shape[:-2], x[1].shape[:-2])
            + (x[0].shape[-2] * x[1].shape[-2], x[0].shape[-1])
        ),
        "Scaled": lambda: (abs(x[0]) if bound else w.type(x[0])) * x[1],
        "Neg": lambda: x[0] if bound else -x[0],
        "T": lambda: np.swapaxes(x[0], -1, -2),
        "Conj": lambda: x[0].conj(),
        "H": lambda: adj(x[0]),
    }[head]()


def circulant(c, levels, bound):
    """Entry (i, j), raveled, is c[(i - j) mod n], level by level."""
    n = c.shape[-levels:]
    index = np.indices(n).reshape(levels, -1)
    d = (index[:, :, None] - index[:, None, :]) % np.reshape(n, (-1, 1, 1))
    t = c[(..., *d)] if index.size else np.zeros(c.shape[:-levels] + (0, 0), c.dtype)
    norm = np.sqrt((c * c).sum(axis=tuple(range(-levels, 0)))) if bound else None
    return np.zeros_like(t) + norm[..., None, None] if bound else t


def transform(head, p, bound):
    """By NumPy and SciPy, on the columns of the identity; errors are normwise."""
    n = tuple(np.atleast_1d(p[0]))
    N, axes = int(np.prod(n)), tuple(range(1, len(n) + 1))
    if N == 0:
        return np.zeros((0, 0))
    eye = np.eye(N).reshape(N, *n)
    if head == "DFT":
        t = np.fft.fftn(eye, axes=axes, norm=p[1])
    else:
        t = scipy.fft.dctn(eye, p[1], axes=axes, norm=p[2])
    t = t.reshape(N, N).T
    return np.full((N, N), np.abs(t).max()) if bound else t


def norm_of(t, g, levels):
    norm = np.sqrt((g * g).sum(axis=tuple(range(-levels, 0))))
    return np.zeros_like(t) + norm[..., None, None]


def hankel(c, r, bound):
    m, n = c.shape[-1], r.shape[-1]
    h = np.concatenate([c, r[..., 1:]], axis=-1)
    h = np.concatenate([h, np.zeros(h.shape[:-1] + (1,), h.dtype)], axis=-1)
    t = h[..., np.minimum(np.arange(m)[:, None] + np.arange(n), h.shape[-1] - 1)]
    return norm_of(t, h, 1) if bound else t


def shifted(g, m, n, shift, circular, bound):
    """Entry (i, j), raveled, is g[i - j + shift], level by level; 0 outside, or wrapped round."""
    L = len(n)
    i, j = (np.indices(tuple(v)).reshape(L, -1) for v in (m, n))
    d = i[:, :, None] - j[:, None, :] + np.reshape(shift, (-1, 1, 1))
    if circular and d.size:
        f = np.zeros((*g.shape[:-L], *n), g.dtype)
        for k in np.ndindex(*g.shape[-L:]):
            f[(..., *np.mod(k, n))] += g[(..., *k)]
        t = f[(..., *(d % np.reshape(n, (-1, 1, 1))))]
    else:
        size = np.reshape(g.shape[-L:], (-1, 1, 1))
        at = tuple(np.clip(d, 0, size - 1)) if d.size else tuple(d)
        t = np.where(np.all((d >= 0) & (d < size), axis=0), g[(..., *at)], np.zeros((), g.dtype))
    return norm_of(t, g, L) if bound else t


def steps(d):
    """Roundings met by one result on its way."""
    if d[0] in LEAVES and d[0] not in COMPOSITES:
        return max(dense(d, np.dtype(float), True).shape[-2:]) + 4
    inner = 2 + sum(steps(q) for q in d[1:] if isinstance(q, tuple))
    return inner * (8 if d[0] == "Inverse" else d[2] + 1 if d[0] == "Power" else 1)


def tolerance(d, *arrays):
    """Allowed error of the dense form; times |x| of a product. u is of the lowest precision."""
    t = [np.dtype(q) for q in types(d) + [a.dtype for a in arrays] if isinstance(q, np.dtype)]
    u = max([np.finfo(q).eps for q in t if q.kind in "fc"], default=np.finfo(float).eps)
    return 8 * steps(d) * u * dense(d, None, True)


def check(got, want, dt=None, tol=0):
    """Shape, dtype, and |got - want| <= tol; integers are equal."""
    assert np.shape(got) == np.shape(want), (np.shape(got), np.shape(want))
    got = np.asarray(got)
    assert dt is None or got.dtype == dt, (got.dtype, dt)
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        assert np.all(np.abs(got - want) <= tol), np.max(np.abs(got - want) - tol)
