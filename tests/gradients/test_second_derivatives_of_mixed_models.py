"""Second derivatives of likelihoods of sums with sparse sides and of sparse fields beside noise:
traces of two inverses by matrices of as many rows as the sides have columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from gradients.differences import check_second

import pylinop as pl

N = 90


def groups(rng, n, k):
    i = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return sp.csr_array((np.ones(n), (np.arange(n), rng.permutation(i))), shape=(n, k))


def precision(rng, m):
    """Sparse, definite."""
    a = sp.csr_array(np.tril(rng.standard_normal((m, m)) * (rng.random((m, m)) < 2 / m), -1) / 3)
    t = sp.csr_array(sp.identity(m)) + a
    return pl.Sparse(sp.csr_array(t.T @ sp.diags_array(rng.random(m) + 0.5) @ t))


def crossed(rng, n=N):
    Z, W = (pl.Sparse(groups(rng, n, k)) for k in (12, 7))
    return lambda a, b, s: a * Z @ Z.T + b * W @ W.T + s * pl.Identity(n)


def weighted(rng, n=N):
    Z, D = pl.Sparse(groups(rng, n, 12)), pl.Diag(rng.random(n) + 0.5)
    return lambda a, b, s: s * D + (a + b) * Z @ Z.T


def slopes(rng):
    z = groups(rng, N, 9)
    Z = pl.Sparse(sp.csr_array(sp.hstack([z, sp.diags_array(rng.standard_normal(N)) @ z])))
    return lambda a, b, s: (
        Z @ pl.Kron(pl.Diag(np.stack([a, b])), pl.Identity(9)) @ Z.T + s * pl.Identity(N)
    )


def pedigree(rng, n=N):
    P = precision(rng, n)
    return lambda a, b, s: (a + b) * pl.inv(P) + s * pl.Identity(n)


def seen(rng):
    P, Z = precision(rng, 30), pl.Sparse(groups(rng, N, 30))
    return lambda a, b, s: (a + b) * Z @ pl.inv(P) @ Z.T + s * pl.Identity(N)


def scaled_precision(rng):
    P, Z = precision(rng, 30), pl.Sparse(groups(rng, N, 30))
    return lambda a, b, s: Z @ pl.inv(b * P + a * pl.Identity(30)) @ Z.T + s * pl.Identity(N)


MODELS = [crossed, weighted, slopes, pedigree, seen, scaled_precision]
AT = tuple(np.array(x) for x in (0.7, 0.4, 0.9))


@pytest.mark.parametrize("make", MODELS)
def test_against_differences(rng, make):
    V, y, X = make(rng), rng.standard_normal(N), rng.standard_normal((N, 2))

    def f(a, b, s):
        A = V(a, b, s)
        W = X.T @ pl.inv(A) @ X
        return pl.logdet(A) + y @ pl.solve(A, y) + pl.logdet(W)

    check_second(f, *AT)


@pytest.mark.parametrize("s", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("make", MODELS[:-1])  # which are linear
def test_noise_of_all_sizes(rng, make, s):
    """Noise that is far smaller than the rest, and far larger."""
    V = make(rng)
    at, way = np.array([0.7, 0.4, s]), np.array([0.3, -0.5, s])
    got = pl.hvp(lambda a, b, s: pl.logdet(V(a, b, s)), (0, 1, 2))(
        *map(np.array, at), tuple(map(np.array, way))
    )
    parts = [V(*map(np.array, row)).toarray() for row in np.eye(3)]
    inverse = np.linalg.inv(V(*map(np.array, at)).toarray())
    along = inverse @ sum(w * x for w, x in zip(way, parts, strict=True))
    want = [-np.sum((inverse @ x) * along.T) for x in parts]
    assert np.allclose(got * at, want * at, rtol=1e-8, atol=1e-8 * np.abs(want * at).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_traces_of_pairs_against_numpy(rng, dtype):
    """A^-1 X A^-1 Y of every X and Y that has a way of its own, and of others."""
    z = groups(rng, N, 11).astype(dtype)
    if np.dtype(dtype).kind == "c":
        z = sp.csr_array(sp.diags_array(np.exp(1j * rng.random(N))) @ z)
    Z, W = pl.Sparse(z), pl.Sparse(groups(rng, N, 6).astype(dtype))
    eye = pl.Identity(N, dtype=dtype)
    A = dtype(0.6) * Z @ Z.H + W @ W.H + dtype(0.8) * eye
    P = pl.Sparse(precision(rng, N).tosparse().astype(dtype))
    B = dtype(0.5) * pl.inv(P) + dtype(0.8) * eye
    C = Z @ pl.Diag(np.arange(1, 12).astype(dtype)) @ Z.H
    S = pl.Sparse(sp.random_array((N, N), density=0.02, rng=rng).astype(dtype))
    u = rng.standard_normal((N, 1)).astype(dtype)
    parts = {
        "sides": [
            eye,
            Z @ Z.H,
            W @ W.H,
            C,
            Z @ Z.H + 2 * eye,
            A,
            pl.Diag(rng.random(N)),
            S,
            u @ u.T,
        ],
        "field": [eye, pl.inv(P), 2 * pl.inv(P) + eye, B, pl.Diag(rng.random(N)), S, u @ u.T],
    }
    tol = 1e-4 if dtype is np.float32 else 1e-10
    for name, M in (("sides", A), ("field", B)):
        inverse = np.linalg.inv(M.toarray().astype(np.complex128))
        for k, X in enumerate(parts[name]):
            for Y in parts[name][k::2]:
                x, y = (pl.aslinearoperator(k).toarray() for k in (X, Y))
                want = np.trace(inverse @ x @ inverse @ y)
                size = np.sum(np.abs(inverse @ x) * np.abs(inverse @ y).T)
                pair = pl.inv(M) @ X @ pl.inv(M) @ Y
                got = pl.trace(pair.T if k % 2 else pair)
                assert abs(got - want) <= tol * size


@pytest.mark.parametrize("make", [crossed, weighted, pedigree])
def test_nothing_of_all_rows_and_columns(rng, make):
    """The way that is taken has no room for a matrix of as many rows and columns as A."""
    n = 480
    V, y = make(rng, n), rng.standard_normal(n)

    def f(a, b, s):
        A = V(a, b, s)
        return pl.logdet(A) + y @ pl.solve(A, y)

    with pl.explaining() as seen:
        pl.hvp(f, (0, 1, 2))(*AT, AT)
    assert "trace-pushed-pair" in {
        r["name"] for p in seen.plans for r in p.rules if r["outcome"] == "fired"
    }
    assert all(p.memory < n * n * 8 for p in seen.plans)


def test_in_place(rng):
    """Numbers that change between calls are read anew."""
    z, y = groups(rng, N, 12), rng.standard_normal(N)

    def f(a, s, Z):
        A = a * Z @ Z.T + s * pl.Identity(N)
        return pl.logdet(A) + y @ pl.solve(A, y)

    Z, at, way = pl.Sparse(z), (AT[0], AT[2]), (np.array(1.0), np.array(0.5))
    for _ in range(3):
        got = pl.hvp(f, (0, 1))(*at, Z, way)
        want = pl.hvp(f, (0, 1))(*at, pl.Sparse(sp.csr_array(z.toarray())), way)
        assert np.allclose(got, want, rtol=1e-9)
        z.data *= 1.25
