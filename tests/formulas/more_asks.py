"""Further questions: entries of inverses, Gram matrices, views of views, lazy right-hand sides,
objects that keep a factor, arrays that results go into."""

import numpy as np

import pylinop as pl

from .asks import Unsure, Wrong, agree, log_error, product, solved, t
from .reference import dtype_of, length, norm


def single(q):
    """The Node of one matrix of floats that has elements."""
    if q.node.V.ndim > 2 or not q.node.V.size:
        raise Unsure("of one matrix")
    if q.dtype is None or q.dtype.kind in "biu":
        raise Unsure("integers are compared exactly elsewhere")
    if not q.node.M.max() < 1e12:
        raise Unsure("its squares may leave the range of single precision")
    return q.node.V, q.node.M


def ask_inv_part(q):
    """An entry, a row, a column, slices of the inverse."""
    X, bound, _ = q.inverse()
    n = X.shape[-1]
    if not n:
        raise Unsure("no elements")
    i, j = (int(q.rng.integers(-n, n)) for _ in range(2))
    at = [
        (..., i, j),
        (..., i, slice(None)),
        (..., slice(None), j),
        (..., slice(i % n, None), slice(None, j % n + 1)),
        (..., slice(None, None, -1), slice(None, None, 2)),
    ][q.p[4] % 5]

    def call():
        got = pl.inv(q.A)[at]
        return got.toarray() if hasattr(got, "toarray") else got

    return call, lambda got: agree(got, X[at], q.tolerance(bound[at]), f"inv[{at}]")


def ask_gram(q):
    """A^H A or A A^H: dense, its diagonal, its trace, times a vector."""
    V, M = single(q)
    A, of = q.A, q.p[4] % 4
    left = bool(q.rng.integers(2))
    V, M = (V, M) if left else (t(V.conj()), t(M))
    B = A.H @ A if left else A @ A.H
    V, M, more = t(V.conj()) @ V, t(M) @ M, sum(V.shape)
    if of == 0:
        return lambda: B.toarray(), lambda got: agree(got, V, q.tolerance(M, more=more), "Gram")
    if of == 1:
        d, b = np.diagonal(V), np.diagonal(M)
        return lambda: B.diagonal(), lambda got: agree(
            got, d, q.tolerance(b, more=more), "its diagonal"
        )
    if of == 2:
        d, b = np.trace(V), np.trace(M)
        return lambda: pl.trace(B), lambda got: agree(
            got, d, q.tolerance(b, more=2 * more), "its trace"
        )
    x = q.vector(V.shape[-1])
    if q.weak and x.dtype.kind in "biu":
        raise Unsure("kinds without a dtype take whole numbers as they are")
    tol = q.tolerance(M @ np.abs(x), x, more)
    return lambda: B @ x, lambda got: agree(got, V @ x, tol, "Gram product")


def ask_cut_of_cut(q):
    """Rows, then columns, then rows of these, turned: times a vector, or dense."""
    V, M = single(q)
    m, n = V.shape
    i, j = int(q.rng.integers(0, m)), int(q.rng.integers(0, n))
    k = int(q.rng.integers(1, 3))

    def cut(a, turned):
        a = turned(a[i:, :])
        a = turned(a[j:, :])
        return a[..., ::-k, :]

    C, W, N = cut(q.A, lambda a: a.T), cut(V, t), cut(M, t)
    if q.p[4] % 2:
        return lambda: np.asarray(C), lambda got: agree(got, W, q.tolerance(N), "view of a view")
    return product(q, lambda x: C @ x, W, N, W.shape[-1])


def ask_strip(q):
    """One row, or one column, as a matrix."""
    V, M = single(q)
    i, j = int(q.rng.integers(0, V.shape[0])), int(q.rng.integers(0, V.shape[1]))
    of = q.p[4] % 3
    if of == 0:
        return product(q, lambda x: q.A[i : i + 1, :] @ x, V[i : i + 1], M[i : i + 1], V.shape[1])
    if of == 1:
        return product(q, lambda x: q.A[:, j : j + 1] @ x, V[:, j : j + 1], M[:, j : j + 1], 1)
    V, M = V[i : i + 1] @ t(V[i : i + 1].conj()), M[i : i + 1] @ t(M[i : i + 1])
    tol = q.tolerance(M, more=sum(q.node.V.shape))
    return lambda: np.asarray(q.A[i : i + 1] @ q.A[i : i + 1].H), lambda got: agree(
        got, V, tol, "a row's square"
    )


def ask_lazy_right(q):
    """A @ x of a LazyArray x and what else is made of it, at once."""
    V, M = single(q)
    x = q.vector(V.shape[1])
    if x.ndim > 2 or x.dtype.kind in "biu":
        raise Unsure("of floats")
    y, size = V @ x, M @ np.abs(x)
    back, more = t(V.conj()) @ y, t(M) @ size

    def call():
        lazy = pl.lazy(x)
        p = q.A @ lazy
        return pl.evaluate(p, p.sum(), q.A.H @ p, 2 * p - p)

    def compare(got):
        agree(got[0], y, q.tolerance(size, x), "product")
        agree(got[1], y.sum(), q.tolerance(size.sum(), x, y.size), "its sum")
        agree(got[2], back, q.tolerance(more, x, sum(V.shape)), "A^H A x")
        agree(got[3], y, q.tolerance(3 * size, x, 2), "2 y - y")

    return call, compare


def ask_factorized(q):
    """The object that keeps a factor: solves, into an array too, determinant, diagonal."""
    X, bound, rows = q.inverse()
    V, M = single(q)
    adjoint = q.p[4] % 2 == 1
    sign, logdet = np.linalg.slogdet(V)
    tol = log_error(q, X, logdet)
    d, b = np.diagonal(X), np.diagonal(bound)
    if adjoint:
        V, M, rows, X = t(V.conj()), t(M), length(X, -2)[0, :, None], t(X.conj())

    def call(b):
        F = pl.factorized(q.A)
        x = F.solve_H(b) if adjoint else F.solve(b)
        out = np.full(x.shape, np.nan, x.dtype, "F" if q.p[4] > 0 else "C")
        (F.solve_H if adjoint else F.solve)(b, out=out)
        if not np.array_equal(out, x, equal_nan=True):
            raise Wrong("other numbers with out=")
        return x, F.slogdet(), F.diagonal()

    solve, compare = solved(q, call, V, M, X, rows)

    def all_of(got):
        compare(got[0])
        agree(got[1][1], logdet, tol, "slogdet")
        agree(got[1][0], sign, np.minimum(tol, 1), "sign")
        agree(got[2], d, q.tolerance(b), "inverse's diagonal")

    return solve, all_of


def ask_solve_operator(q):
    """A^-1 A^H, an operator on the right."""
    X, _, rows = q.inverse()
    V, M = single(q)
    want = X @ t(V.conj())
    tol = q.tolerance(rows * (norm(M) * length(want, -2) + length(t(M), -2)), more=len(V))
    return lambda: np.asarray(pl.solve(q.A, q.A.H)), lambda got: agree(got, want, tol, "A^-1 A^H")


def ask_residual(q):
    """b - A x, and b + c A x into an array that is there."""
    V, M = single(q)
    x, b = q.vector(V.shape[1]), q.vector(V.shape[0])
    if x.ndim > 2 or x.dtype.kind in "biu":
        raise Unsure("of floats")
    want, size = b - V @ x, np.abs(b) + M @ np.abs(x)
    if q.p[4] % 2:
        return lambda: pl.evaluate(b - q.A @ pl.lazy(x)), lambda got: agree(
            got, want, q.tolerance(size, x, 1), "b - A x"
        )
    dtype = dtype_of([*q.node.types, x.dtype.newbyteorder("=")])

    def call():
        y = b.astype(np.result_type(dtype, b.dtype), copy=True)
        y -= q.A @ x
        return y

    return call, lambda got: agree(got, want, q.tolerance(size, x, 1), "b -= A x")


MORE = {name[4:]: f for name, f in list(globals().items()) if name.startswith("ask_")}
