"""Second derivatives of traces and diagonals of inverses of sparse matrices: entries of products
with three inverses, by the factor of a matrix of three times three blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from gradients.differences import check_second

import pylinop as pl

N = 420  # from 400 rows on factors are made


def graph(rng, n=N, more=2):
    """A Laplacian of a ring with chords, and the identity's half."""
    i = np.r_[np.arange(n), rng.integers(0, n, more * n // 4)]
    j = np.r_[(np.arange(n) + 1) % n, rng.integers(0, n, more * n // 4)]
    w = sp.coo_array((rng.random(len(i)) + 0.1, (i, j)), shape=(n, n)).tocsr()
    w = w + w.T
    return sp.csr_array(sp.diags_array(w.sum(axis=1)) - w + 0.5 * sp.eye_array(n))


def drawn(rng, n=N, dtype=float):
    """No symmetry, diagonally dominant; most of it near the diagonal."""
    i, far = rng.integers(0, n, 2 * n), rng.random(2 * n) < 0.02
    j = np.where(far, rng.integers(0, n, 2 * n), (i + rng.integers(-5, 6, 2 * n)) % n)
    a = sp.coo_array((rng.standard_normal(2 * n), (i, j)), shape=(n, n)).tocsr()
    if np.dtype(dtype).kind == "c":
        a = a + 1j * sp.csr_array(a.T)
    return sp.csr_array(a + sp.diags_array(2 + abs(a).sum(axis=1)))


def formulas(rng, Q, X, y, w):
    n = N
    return {
        "trace": lambda *c: np.real(pl.trace(pl.inv(Q(*c)))),
        "trace beside": lambda *c: np.real(pl.trace(pl.inv(Q(*c)) @ X)),
        "diagonal": lambda *c: np.sum(w * np.abs(pl.inv(Q(*c)).diagonal()) ** 2),
        "twice": lambda *c: np.real(pl.trace(pl.inv(Q(*c)) @ pl.inv(Q(*c)))),
        "turned": lambda *c: np.real(pl.trace(X.T @ pl.inv(Q(*c)).T)),
        "cross validation": lambda *c: (
            np.sum(np.abs(y - pl.solve(Q(*c), y)) ** 2)
            / (n - 0.1 * np.real(pl.trace(pl.inv(Q(*c))))) ** 2
        ),
    }


NAMES = list(formulas(None, None, None, None, None))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["symmetric", "general", "complex"])
def test_by_numbers(name, kind):
    rng = np.random.default_rng(NAMES.index(name))
    if kind == "symmetric":
        L, M = graph(rng), graph(rng)
    else:
        L, M = (drawn(rng, dtype=complex if kind == "complex" else float) for _ in range(2))
    L, M, X = pl.Sparse(L), pl.Sparse(M), pl.Sparse(graph(rng))

    def Q(a, b):
        return a * pl.lazy(L) + b * pl.Identity(N) if name != "twice" else a * L + b * M

    f = formulas(rng, Q, X, rng.standard_normal(N), rng.random(N))[name]
    with pl.config(check_plans=True):
        check_second(f, np.array(1.1), np.array(0.7), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_by_all_numbers_of_a_sparse_matrix(name):
    rng = np.random.default_rng(10 + NAMES.index(name))
    L, X = graph(rng), pl.Sparse(drawn(rng))
    f = formulas(rng, lambda d: pl.Sparse(L, d), X, rng.standard_normal(N), rng.random(N))[name]
    with pl.config(check_plans=True):
        check_second(f, L.data.copy(), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES[:3])
def test_by_a_diagonal(name):
    rng = np.random.default_rng(20)
    L, X = pl.Sparse(graph(rng)), pl.Sparse(graph(rng))
    f = formulas(rng, lambda d: L + pl.Diag(np.exp(d)), X, rng.standard_normal(N), rng.random(N))[
        name
    ]
    check_second(f, rng.standard_normal(N) / 4, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [399, 400, 520])
def test_values_of_products(n, dtype):
    """As they are written, beside dense ones; in any spelling."""
    rng = np.random.default_rng(n)
    a, x, y = (drawn(rng, n, dtype).astype(dtype) for _ in range(3))
    A, X, Y = map(pl.Sparse, (a, x, y))
    wide = "c16" if np.dtype(dtype).kind == "c" else "f8"
    inverse = np.linalg.inv(a.toarray().astype(wide))
    x, y = (m.toarray().astype(wide) for m in (x, y))
    P = inverse @ x @ inverse @ y @ inverse
    rtol = 1e-3 if dtype in ("f4", "c8") else 1e-10
    scale = np.abs(P).max()
    In = pl.inv(A)
    spelled = [
        In @ X @ In @ Y @ In,
        (2.0 * In @ (X @ In)) @ (Y @ (0.5 * In)),
        (In.H @ Y.H @ In.H @ X.H @ In.H).H,
        In @ (In.T @ X.T).T @ (In.T @ Y.T).T,
    ]
    with pl.config(check_plans=True, verify=True):
        for B in spelled:
            np.testing.assert_allclose(B.diagonal(), np.diagonal(P), rtol=0, atol=rtol * scale)
            np.testing.assert_allclose(B.trace(), np.trace(P), rtol=0, atol=n * rtol * scale)
            np.testing.assert_allclose(
                (B @ X).trace(), np.trace(P @ x), rtol=0, atol=n * rtol * scale
            )
            np.testing.assert_allclose(
                (X @ B).trace(), np.trace(P @ x), rtol=0, atol=n * rtol * scale
            )
        S = In @ (X @ In @ Y - 3 * (Y @ In @ X)) @ In
        D = P - 3 * (inverse @ y @ inverse @ x @ inverse)
        np.testing.assert_allclose(S.diagonal(), np.diagonal(D), rtol=0, atol=rtol * scale * 4)
        np.testing.assert_allclose(S.trace(), np.trace(D), rtol=0, atol=n * rtol * scale * 4)


def test_no_matrix_of_n_rows_is_made():
    rng = np.random.default_rng(3)
    m = 40
    e = np.ones(m)
    D = sp.diags_array([-e[:-1], 2 * e, -e[:-1]], offsets=[-1, 0, 1])
    L = sp.csr_array(sp.kron(D, sp.eye_array(m)) + sp.kron(sp.eye_array(m), D))
    n = m * m
    y = rng.standard_normal(n)

    def f(c):
        Q = (c[0] * pl.lazy(pl.Sparse(L)) + c[1] * pl.Identity(n)) / c[1]
        rest = y - pl.solve(Q, y)
        return np.sum(rest * rest) / (n - pl.trace(pl.inv(Q))) ** 2 + pl.logdet(Q) / n

    with pl.config(memory_limit=8 * n * n):
        found = pl.hvp(f)(np.array([1.0, 0.4]), np.array([0.5, -0.7]))
    h = 1e-4
    grad = pl.grad(f)
    at = lambda k: grad(np.array([1.0, 0.4]) + k * h * np.array([0.5, -0.7]))
    wanted = (45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + at(3) - at(-3)) / (60 * h)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_both_orders_are_one_factor():
    """Of Hermitian ones inv(A) X inv(A) Y inv(A) is the adjoint of that with Y before X."""
    rng = np.random.default_rng(4)
    for dtype in (float, complex):
        a, x, y = (graph(rng).astype(dtype) for _ in range(3))
        if dtype is complex:
            for m in (a, x, y):
                k = sp.triu(m, 1) * 0.3j
                m += k - k.T
        A, X, Y = map(pl.Sparse, (a, x, y))
        In, inverse = pl.inv(A), np.linalg.inv(a.toarray())
        places = drawn(rng).tocoo().coords
        for first, second, u, v in ((X, Y, x, y), (Y, X, y, x)):
            B = In @ first @ In @ second @ In
            P = inverse @ u.toarray() @ inverse @ v.toarray() @ inverse
            np.testing.assert_allclose(B.diagonal(), np.diagonal(P), rtol=1e-9, atol=1e-12)
            Z = pl.Sparse(sp.coo_array((np.ones(len(places[0])), places), shape=(N, N)).tocsr())
            np.testing.assert_allclose((B @ Z).trace(), np.trace(P @ Z.toarray()), rtol=1e-10)


def test_singular_and_not_finite():
    rng = np.random.default_rng(5)
    a, x = graph(rng), pl.Sparse(graph(rng))
    lap = sp.csr_array(a - sp.diags_array(a.sum(axis=1)))  # rows sum to zero
    lap[:, [7]] = 0
    lap.eliminate_zeros()
    In = pl.inv(pl.Sparse(sp.csr_array(lap)))
    with pytest.raises(np.linalg.LinAlgError):
        (In @ x @ In @ x @ In).diagonal()
    bad = a.copy()
    bad.data[3] = np.nan
    In = pl.inv(pl.Sparse(bad))
    assert np.isnan((In @ x @ In @ x @ In).diagonal()).any()
    good = pl.inv(pl.Sparse(a))
    y = pl.Sparse(sp.csr_array(x.toarray() * np.where(np.arange(N) == 5, np.nan, 1)))
    assert np.isnan((good @ x @ good @ y @ good).trace())


@pytest.mark.parametrize("kind", ["exchanged", "indefinite", "permuted"])
def test_where_pivots_on_the_diagonal_are_no_good(kind):
    rng = np.random.default_rng(7)
    a, x, y = drawn(rng), drawn(rng), drawn(rng)
    if kind == "exchanged":  # zeros on the diagonal
        a = sp.csr_array(a[np.arange(N)[::-1]] - sp.diags_array(a[np.arange(N)[::-1]].diagonal()))
        a = sp.csr_array(a + sp.csr_array(np.eye(N)[:, ::-1]))
    elif kind == "indefinite":
        a = sp.csr_array(graph(rng) - 2.3 * sp.eye_array(N))
    else:
        a = a[rng.permutation(N)]
    In, inverse = pl.inv(pl.Sparse(a)), np.linalg.inv(a.toarray())
    x, y = x.toarray(), y.toarray()
    X, Y = pl.Sparse(sp.csr_array(x)), pl.Sparse(sp.csr_array(y))
    with pl.config(verify=True):
        for B, P in (
            (In @ X @ In, inverse @ x @ inverse),
            (In @ X @ In @ Y @ In, inverse @ x @ inverse @ y @ inverse),
        ):
            np.testing.assert_allclose(
                B.diagonal(), np.diagonal(P), rtol=0, atol=1e-9 * abs(P).max()
            )
            np.testing.assert_allclose((B @ X).trace(), np.trace(P @ x), rtol=1e-8)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_of_any_size(size):
    """X and Y large or small beside A, A near a singular one."""
    rng = np.random.default_rng(6)
    a, x, y = graph(rng), size * drawn(rng), drawn(rng) / size
    a = sp.csr_array(a - 0.4999 * sp.eye_array(N))
    In, inverse = pl.inv(pl.Sparse(a)), np.linalg.inv(a.toarray())
    P = inverse @ x.toarray() @ inverse @ y.toarray() @ inverse
    found = (In @ pl.Sparse(x) @ In @ pl.Sparse(y) @ In).diagonal()
    np.testing.assert_allclose(found, np.diagonal(P), rtol=1e-8, atol=1e-8 * np.abs(P).max())
    P = inverse @ x.toarray() @ inverse
    found = (In @ pl.Sparse(x) @ In).diagonal()
    np.testing.assert_allclose(found, np.diagonal(P), rtol=1e-8, atol=1e-8 * np.abs(P).max())
