"""The questions that operators are asked, each with the comparison of its answer."""

import numpy as np
import samples

import pylinop as pl

from . import reference
from .reference import Unsure, inverse, length, norm, sure, t


class Wrong(Exception):  # noqa: N818
    """An answer that is outside its bounds, or an error where an answer is due."""


class Asked:
    """One question: the operator A and its Node, a random generator for right-hand sides. `u`: the
    rounding unit that its parts have, where they are not in the dtype of the result."""

    def __init__(self, A, node, rng, p, exact, u=None):
        self.A, self.node, self.rng, self.p, self.exact = A, node, rng, p, exact
        self.loose = u is not None
        self.dtype = node.V.dtype if exact else reference.dtype_of(node.types)
        self.u = u if u is not None else reference.width([self.dtype])
        if reference.EITHER in node.types and self.dtype.char in "fF":
            self.dtype = None  # a weak float of an inverse and integers are float64
        self.weak = not any(isinstance(x, np.dtype) for x in node.types)

    def vector(self, n, batch_free=True):
        """A right-hand side of n rows: a vector, one or several columns, of some dtype, layout."""
        columns, dtype, layout = self.p[1:4]
        shape = (n,) if columns is None else (n, columns)
        return samples.arrange(samples.values(self.rng, shape, dtype), layout)

    def unit(self, x=None):
        """Of the dtype of the result: all is computed in it, but beside callables."""
        if x is None:
            return self.u
        own = [x.dtype.newbyteorder("=")]
        if self.loose:
            return max(self.u, reference.width(own))
        return reference.width([reference.dtype_of([*self.node.types, *own])])

    def tolerance(self, bound, x=None, more=0):
        return 8 * (self.node.s + more) * (self.unit(x) * bound + tiny(self.unit(x)))

    def inverse(self):
        if self.node.V.shape[-1] != self.node.V.shape[-2]:
            raise Unsure("not square")
        X, bound, rows = inverse(self.node)
        sure(self.node, X, self.u)
        return X, bound, rows


def tiny(u):
    """What underflow may lose: numbers below the normal ones."""
    return float(np.finfo("f4" if u > 1e-10 else "f8").tiny)


def agree(got, want, tol, what, dtype=None):
    got = np.asarray(got)
    if got.shape != np.shape(want):
        raise Wrong(f"{what}: shape {got.shape}, not {np.shape(want)}")
    if dtype is not None and got.dtype.newbyteorder("=") != dtype:
        raise Wrong(f"{what}: dtype {got.dtype}, not {dtype}")
    if got.dtype.kind in "biu":
        if not np.array_equal(got, want):
            raise Wrong(f"{what}: integers differ")
        return
    if tol is None:
        raise Wrong(f"{what}: dtype {got.dtype} where integers are due")
    with np.errstate(all="ignore"):
        off = np.abs(got - want)
        bad = ~(off <= tol)
    if bad.any():
        at = np.unravel_index(np.argmax(np.where(bad, off, -1)), off.shape)
        tol = np.broadcast_to(tol, off.shape)
        raise Wrong(
            f"{what}: {bad.sum()} of {bad.size} elements are wrong; at {tuple(map(int, at))} "
            f"{got[at]} for {np.asarray(want)[at]}, allowed {tol[at]:.2e}"
        )


# -- questions: each returns (the computing function, the comparing one) --


def ask_toarray(q):
    n = q.node
    return lambda: q.A.toarray(), lambda got: agree(got, n.V, q.tolerance(n.M), "toarray", q.dtype)


def product(q, call, V, M, rows):
    x = q.vector(rows)
    if x.ndim == 2 and q.p[4] == -3:  # a stack of right-hand sides
        x = np.stack([x, x if x.dtype == bool else 2 * x])
    want = V @ (x.astype(V.dtype) if q.exact else x)
    tol = None if q.exact else q.tolerance(M @ np.abs(x), x)
    dt = q.dtype if q.exact else reference.dtype_of([*q.node.types, x.dtype.newbyteorder("=")])
    if reference.EITHER in q.node.types and dt.char in "fF":
        dt = None  # a weak float of an inverse and integers are float64, integers alone are not
    elif not q.exact and dt.kind in "iu":  # a kind without a dtype takes that of the integers
        want = want.astype(np.int64).astype(dt)
    return lambda: call(x), lambda got: agree(got, want, tol, "product", dt)


def into(A, x):
    """A @ x, into an array of Fortran's order that is full of NaN."""
    dtype = np.result_type(A.dtype, x.dtype)
    batch = np.broadcast_shapes(A.shape[:-2], x.shape[:-2])
    out = np.full((*batch, x.shape[-1], A.shape[-2]), np.nan, dtype)
    out = t(out)
    return np.matmul(A, x, out=out)


def ask_apply(q):
    """By the operator, by NumPy into an array, by SciPy's names."""

    def call(x):
        if x.ndim == 1:
            return q.A.matvec(x) if q.p[4] == 1 and q.A.ndim == 2 else q.A @ x
        if q.p[4] == 0 and not q.exact and not q.weak:
            return into(q.A, x)
        return q.A.matmat(x) if q.p[4] == 2 and x.ndim == 2 else q.A @ x

    return product(q, call, q.node.V, q.node.M, q.node.V.shape[-1])


def ask_left(q):
    return product(
        q,
        lambda x: t(t(x) @ q.A) if x.ndim > 1 else x @ q.A,
        t(q.node.V),
        t(q.node.M),
        q.node.V.shape[-2],
    )


def ask_adjoint(q):
    return product(q, lambda x: q.A.H @ x, t(q.node.V.conj()), t(q.node.M), q.node.V.shape[-2])


def ask_transpose(q):
    return product(q, lambda x: q.A.T @ x, t(q.node.V), t(q.node.M), q.node.V.shape[-2])


def ask_rmatmat(q):
    def call(x):
        return q.A.rmatvec(x) if x.ndim == 1 else q.A.rmatmat(x)

    return product(q, call, t(q.node.V.conj()), t(q.node.M), q.node.V.shape[-2])


def solved(q, call, V, M, X, rows):
    """X b, its rows' errors by the promised backward error."""
    b = q.vector(V.shape[-1])
    if V.ndim > 2 and b.ndim == 1:
        b = b[:, None]
    want = X @ b
    columns = want if want.ndim > 1 else want[:, None]
    right = np.abs(b if b.ndim > 1 else b[:, None])
    size = norm(M) * length(columns, -2)
    tol = rows * (size + length(right, -2))
    tol = tol if want.ndim > 1 else tol[:, 0]
    grown = 4 * growth(V, b, want)
    return lambda: call(b), lambda got: agree(got, want, q.tolerance(tol, b) + grown, "solve")


def growth(V, b, want):
    """What LAPACK's LU in double precision is off by: seldom more than conditioning says, but
    elements may grow under partial pivoting. A solve is as good as LAPACK's."""
    work = complex if np.iscomplexobj(V) or np.iscomplexobj(b) else float
    try:
        with np.errstate(all="ignore"):
            off = np.abs(np.linalg.solve(V.astype(work), b.astype(work)) - want).max(initial=0)
    except np.linalg.LinAlgError:
        return 0.0
    return float(off) if np.isfinite(off) else 0.0


def ask_solve(q):
    X, _, rows = q.inverse()
    return solved(q, lambda b: pl.solve(q.A, b), q.node.V, q.node.M, X, rows)


def ask_inverse_apply(q):
    X, _, rows = q.inverse()
    return solved(q, lambda b: pl.inv(q.A) @ b, q.node.V, q.node.M, X, rows)


def ask_solve_left(q):
    X, _, _ = q.inverse()
    rows = length(X, -2)[..., 0, :, None]

    def call(b):
        return b @ pl.inv(q.A) if b.ndim == 1 else t(t(b) @ pl.inv(q.A))

    return solved(q, call, t(q.node.V), t(q.node.M), t(X), rows)


def ask_solve_adjoint(q):
    X, _, _ = q.inverse()
    rows = length(X, -2)[..., 0, :, None]
    call = lambda b: pl.solve(q.A.H, b)  # noqa: E731
    return solved(q, call, t(q.node.V.conj()), t(q.node.M), t(X.conj()), rows)


def ask_inv(q):
    X, bound, _ = q.inverse()
    return lambda: pl.inv(q.A).toarray(), lambda got: agree(got, X, q.tolerance(bound), "inv")


def ask_inv_diagonal(q):
    X, bound, _ = q.inverse()
    d, b = (np.diagonal(x, 0, -2, -1) for x in (X, bound))
    return lambda: pl.inv(q.A).diagonal(), lambda got: agree(got, d, q.tolerance(b), "inv diagonal")


def ask_inv_trace(q):
    X, bound, _ = q.inverse()
    d, b = (np.trace(x, 0, -2, -1) for x in (X, bound))
    more = X.shape[-1]
    return lambda: pl.trace(pl.inv(q.A)), lambda got: agree(
        got, d, q.tolerance(b, more=more), "inv trace"
    )


def log_error(q, X, logdet):
    """d log det A = trace(A^-1 dA), and the rounding of n logarithms."""
    n = X.shape[-1]
    first = (length(X, -1)[..., 0] * length(q.node.M, -2)[..., 0, :]).sum(-1)
    return q.tolerance(first + np.abs(logdet) + n)


def ask_slogdet(q):
    X, _, _ = q.inverse()
    sign, logdet = np.linalg.slogdet(q.node.V)
    tol = log_error(q, X, logdet)

    def compare(got):
        agree(got[1], logdet, tol, "slogdet")
        agree(got[0], sign, np.minimum(tol, 1), "sign")

    return lambda: pl.slogdet(q.A), compare


def ask_logdet(q):
    X, _, _ = q.inverse()
    sign, logdet = np.linalg.slogdet(q.node.V)
    if np.iscomplexobj(sign) or (sign <= 0).any():
        raise Unsure("the determinant is not positive")
    tol = log_error(q, X, logdet)
    return lambda: pl.logdet(q.A), lambda got: agree(got, logdet, tol, "logdet")


def ask_det(q):
    X, _, _ = q.inverse()
    sign, logdet = np.linalg.slogdet(q.node.V)
    if (np.abs(logdet) > 80).any():
        raise Unsure("the determinant is out of range")
    det = sign * np.exp(logdet)
    tol = log_error(q, X, logdet) * np.abs(det)
    return lambda: pl.det(q.A), lambda got: agree(got, det, tol, "det")


def ask_trace(q):
    d, b = (np.trace(x, 0, -2, -1) for x in (q.node.V, q.node.M))
    more = q.node.V.shape[-1]
    return lambda: pl.trace(q.A), lambda got: agree(got, d, q.tolerance(b, more=more), "trace")


def ask_diagonal(q):
    k = q.p[4]
    d, b = (np.diagonal(x, k, -2, -1) for x in (q.node.V, q.node.M))
    return lambda: q.A.diagonal(k), lambda got: agree(got, d, q.tolerance(b), f"diagonal({k})")


def ask_part(q):
    m, n = q.node.V.shape[-2:]
    if not (m and n):
        raise Unsure("no elements")
    i, j = int(q.rng.integers(-m, m)), int(q.rng.integers(-n, n))
    at = [
        (..., i, j),
        (..., i, slice(None)),
        (..., slice(None), j),
        (..., slice(i % m, None), slice(None, None, 2)),
        (..., slice(None, None, -1), slice(j % n, None)),
    ][q.p[4] % 5]

    def call():
        got = q.A[at]
        return got if not hasattr(got, "toarray") else got.toarray()

    return call, lambda got: agree(got, q.node.V[at], q.tolerance(q.node.M[at]), f"[{at}]")


def ask_sums(q):
    axis = (None, 0, 1)[q.p[4] % 3] if q.node.V.ndim == 2 else None
    if q.node.V.ndim > 2:
        raise Unsure("of one matrix")
    if q.exact:
        want = q.node.V.sum(axis)
        return lambda: np.sum(q.A, axis), lambda got: agree(got, want, None, "sum", want.dtype)
    V, M = q.node.V.sum(axis), q.node.M.sum(axis)
    more = sum(q.node.V.shape)
    return lambda: np.sum(q.A, axis), lambda got: agree(got, V, q.tolerance(M, more=more), "sum")


def ask_norm(q):
    if q.node.V.ndim > 2:
        raise Unsure("of one matrix")
    word = ("fro", 1, np.inf)[q.p[4] % 3]
    V, M = (np.linalg.norm(x, word) if x.size else 0.0 for x in (q.node.V, q.node.M))
    more = sum(q.node.V.shape)
    if not q.node.V.size:
        raise Unsure("no elements")
    return lambda: np.linalg.norm(q.A, word), lambda got: agree(
        got, V, q.tolerance(M, more=more), f"norm {word}"
    )


def ask_quad(q):
    """inv_quad_logdet of A^H A + c I."""
    n = q.node.V.shape[-1]
    if q.node.V.ndim > 2 or not n:
        raise Unsure("of one matrix")
    c = float(2 ** np.ceil(np.log2(norm(q.node.M).max() ** 2 + 1)))
    if c > (1e30 if q.u > 1e-10 else 1e150):
        raise Unsure("out of range")
    B = q.A.H @ q.A + c * pl.Identity(n)
    V, M = (t(x.conj()) @ x + c * np.eye(n) for x in (q.node.V, q.node.M))
    X, b = np.linalg.inv(V), q.vector(n)
    want = np.einsum("i...,i...->...", b.conj(), X @ b).real
    first = length(X, -1)[..., 0] * length(M, -2)[..., 0, :]
    logdet = np.linalg.slogdet(V)[1]
    size = np.linalg.norm(b, axis=0) ** 2 * np.linalg.norm(X, 2)
    tol = q.tolerance(size * (np.linalg.norm(M) * np.linalg.norm(X, 2) + 1), b, 3 * n)

    def compare(got):
        agree(got[0], want, tol, "inv_quad")
        agree(got[1], logdet, q.tolerance(first.sum() + abs(logdet) + n, more=3 * n), "its logdet")

    return lambda: pl.inv_quad_logdet(B, b), compare


def hermitian(q):
    if q.node.V.ndim > 2 or q.node.V.shape[0] != q.node.V.shape[1] or not q.node.V.size:
        raise Unsure("of one square matrix")
    return q.A + q.A.H, q.node.V + t(q.node.V.conj()), q.node.M + t(q.node.M)


def ask_cholesky(q):
    B, V, M = hermitian(q)
    n = V.shape[-1]
    c = float(2 ** np.ceil(np.log2(norm(M).max() + 1)))
    B, V, M = B + c * pl.Identity(n), V + c * np.eye(n), M + c * np.eye(n)

    def compare(L):
        L = np.asarray(L)
        agree(np.triu(L, 1), np.zeros((n, n)), 0, "cholesky above the diagonal")
        agree(L @ t(L.conj()), V, q.tolerance(norm(M), more=n), "L L^H")

    return lambda: pl.cholesky(B).toarray(), compare


def ask_eigh(q):
    B, V, M = hermitian(q)
    n = V.shape[-1]

    def call():
        w, Q = pl.eigh(B)
        return np.asarray(w), np.asarray(Q)

    def compare(got):
        w, Q = got
        agree((Q * w) @ t(Q.conj()), V, q.tolerance(norm(M), more=n), "Q w Q^H")
        agree(t(Q.conj()) @ Q, np.eye(n), q.tolerance(1, more=n), "Q^H Q")

    return call, compare


def ask_eigvalsh(q):
    B, V, M = hermitian(q)
    w = np.linalg.eigvalsh(V)
    return lambda: pl.eigvalsh(B), lambda got: agree(
        got, w, q.tolerance(norm(M)[0], more=len(w)), "eigvalsh"
    )


def ask_svdvals(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or not V.size:
        raise Unsure("of one matrix")
    w = np.linalg.svd(V, compute_uv=False)
    more = sum(V.shape)
    return lambda: pl.svdvals(q.A), lambda got: agree(
        got, w, q.tolerance(norm(M)[0], more=more), "svdvals"
    )


def ask_qr(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or not V.size:
        raise Unsure("of one matrix")

    def call():
        Q, R = pl.qr(q.A)
        return np.asarray(Q), np.asarray(R)

    def compare(got):
        Q, R = got
        agree(Q @ R, V, q.tolerance(norm(M), more=sum(V.shape)), "Q R")

    return call, compare


def ask_lstsq(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or not V.size:
        raise Unsure("of one matrix")
    s = np.linalg.svd(V, compute_uv=False)
    loss = 8 * q.node.s * q.u * norm(M).max() / s[-1] if s[-1] else np.inf
    if not loss < 1e-3:
        raise Unsure("ill-conditioned")
    b = q.vector(V.shape[0])
    want = np.linalg.pinv(V) @ b
    kappa = norm(M).max() / s[-1]
    size = np.linalg.norm(b, axis=0) / s[-1]
    tol = q.tolerance(size * kappa * (kappa + 1), b, sum(V.shape))
    return lambda: pl.lstsq(q.A, b)[0], lambda got: agree(got, want, tol, "lstsq")


def ask_svd(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or not V.size:
        raise Unsure("of one matrix")

    def call():
        U, s, Vh = pl.svd(q.A, full_matrices=False)
        return np.asarray(U), np.asarray(s), np.asarray(Vh)

    def compare(got):
        U, s, Vh = got
        agree((U * s) @ Vh, V, q.tolerance(norm(M), more=sum(V.shape)), "U s V^H")

    return call, compare


def ask_lu(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or V.shape[0] != V.shape[1] or not V.size:
        raise Unsure("of one square matrix")

    def call():
        return tuple(np.asarray(x) for x in pl.lu(q.A))

    def compare(got):
        P, L, U = got
        allowed = q.tolerance(norm(M) * max(1.0, float(np.abs(L).max() * len(V))), more=len(V))
        agree(P @ L @ U, V, allowed, "P L U")

    return call, compare


def ask_pinv(q):
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or not V.size:
        raise Unsure("of one matrix")
    s = np.linalg.svd(V, compute_uv=False)
    kappa = norm(M).max() / s[-1] if s[-1] else np.inf
    if not 8 * (q.node.s + sum(V.shape)) * q.u * kappa < 1e-4:
        raise Unsure("ill-conditioned")
    tol = q.tolerance(kappa * (kappa + 1) / s[-1], more=sum(V.shape))

    def call():
        got = pl.pinv(q.A)
        return got.toarray() if hasattr(got, "toarray") else np.asarray(got)

    return call, lambda got: agree(got, np.linalg.pinv(V), tol, "pinv")


def ask_expm(q):
    """Of A / |A|, so that it is of the size of 1."""
    V, M = q.node.V, q.node.M
    if V.ndim > 2 or V.shape[0] != V.shape[1] or not V.size:
        raise Unsure("of one square matrix")
    c = float(2 ** np.ceil(np.log2(norm(M).max() + 1)))
    want, more, term = np.eye(len(V)), np.eye(len(V)), np.eye(len(V))
    for i in range(1, 24):
        term, more = term @ V / (c * i), term @ V / (c * i)
        want = want + more
    return lambda: pl.expm(q.A / c).toarray(), lambda got: agree(
        got, want, q.tolerance(8.0, more=len(V)), "expm"
    )


def ask_inverse_product(q):
    """A^-1 (A + A^H) A^-1, and its trace and diagonal."""
    X, _, rows = q.inverse()
    V, M = q.node.V + t(q.node.V.conj()), q.node.M + t(q.node.M)
    if V.ndim > 2:
        raise Unsure("of one matrix")
    inv = pl.inv(q.A)
    B = inv @ (q.A + q.A.H) @ inv
    want = X @ V @ X
    first = norm(X)[0, 0]
    tol = q.tolerance(
        first**2 * norm(M)[0, 0] * (1 + 2 * first * norm(q.node.M)[0, 0]), more=len(V)
    )
    what = q.p[4] % 3
    call = (lambda: B.toarray(), lambda: B.diagonal(), lambda: pl.trace(B))[what]
    want = (want, np.diagonal(want), np.trace(want))[what]
    return call, lambda got: agree(got, want, tol * (len(V) if what == 2 else 1), "A^-1 B A^-1")


ASKS = {name[4:]: f for name, f in list(globals().items()) if name.startswith("ask_")}
VALUES = ("toarray", "trace", "diagonal", "part", "sums")
EXACT = (*VALUES, "apply", "left", "adjoint", "transpose", "rmatmat")
