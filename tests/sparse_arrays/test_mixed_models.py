"""E + sum_i U_i V_i^H of a diagonal E and thin sparse sides, the covariance of a mixed model:
traces of its inverse, alone and beside one of the sides, and diagonals of what stands between
others and a side, beside NumPy; gradients by the components of the variance; what no step may be
as large as."""

import numpy as np
import pytest
import scipy.sparse as sp
from gradients.differences import check_second
from sparse_arrays.test_sparse_fields import close, largest

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned", "ignore:.*large dense")


def groups(r, n, k):
    """Each row in one group."""
    return sp.csr_array((np.ones(n), (np.arange(n), r.integers(0, k, n))), shape=(n, k))


def slopes(r, n, k):
    return sp.csr_array(groups(r, n, k).multiply(r.standard_normal((n, 1))))


def drawn(r, n, effects, dtype, hermitian, noise):
    """Sides, the matrix, and the same in NumPy."""
    imag = np.dtype(dtype).kind == "c"
    V = v = None
    sides = []
    for _ in range(effects):
        k = int(r.integers(1, max(2, n // (2 * effects))))
        u, w = (f(r, n, k) for f in (groups, slopes))
        if imag:
            u, w = (sp.csr_array(a.multiply(np.exp(1j * r.uniform(0, 6, (n, 1))))) for a in (u, w))
        u, w = (a.astype(dtype) for a in (u, w))
        w = u if hermitian else sp.csr_array(0.3 * w).astype(dtype)
        c = float(r.uniform(0.2, 2))
        d = r.uniform(0.5, 2, k).astype(dtype)
        U, W = pl.Sparse(u), pl.Sparse(w)
        middle = int(r.integers(3))
        term = [c * U @ W.H, U @ (c * W.H), U @ pl.Diag(d) @ W.H][middle]
        dense = u.toarray() @ ((c if middle < 2 else d[:, None]) * w.toarray().conj().T)
        V, v = (term, dense) if V is None else (V + term, v + dense)
        sides.append((U, u.toarray()))
    e = r.uniform(0.5, 2, n).astype(dtype) if noise == "diagonal" else np.full(n, 0.7, dtype)
    E = pl.Diag(e) if noise == "diagonal" else 0.7 * pl.Identity(n)
    return sides, (V + E if r.integers(2) else E + V), v + np.diag(e)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("n", [63, 64, 65, 130, 400])
@pytest.mark.parametrize("effects", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("noise", ["number", "diagonal"])
def test_beside_dense(n, effects, dtype, hermitian, noise):
    r = np.random.default_rng([n, effects, np.dtype(dtype).itemsize, hermitian, len(noise)])
    digits = 1e-4 if dtype == np.float32 else 1e-11
    sides, V, v = drawn(r, n, effects, dtype, hermitian, noise)
    inv = np.linalg.inv(v.astype(np.complex128 if v.dtype.kind == "c" else np.float64))
    U, u = sides[int(r.integers(effects))]
    k = u.shape[1]
    y = sp.random_array((k, n), density=0.1, rng=r).astype(dtype)
    Y, y = pl.Sparse(y), y.toarray()
    I, H = np.eye(n), inv.conj().T
    for got, left, a, right in (
        (pl.trace(pl.inv(V)), I, inv, I),
        (pl.trace(pl.inv(V.T)), I, inv, I),
        (pl.trace(U.H @ pl.inv(V) @ U), u.conj().T, inv, u),
        (pl.trace(pl.inv(V) @ U @ U.T), I, inv, u @ u.T),
        (pl.trace(pl.inv(V).H @ U @ U.H), I, H, u @ u.conj().T),
        (pl.trace(pl.inv(V) @ U @ Y), I, inv, u @ y),
        (pl.trace(U @ (2 * Y) @ pl.inv(V)), 2 * u @ y, inv, I),
        (pl.diagonal(U.H @ pl.inv(V) @ U), u.conj().T, inv, u),
        (pl.diagonal(Y @ pl.inv(V) @ U), y, inv, u),
        (pl.diagonal(Y @ pl.inv(V) @ U @ Y @ Y.T), y, inv, u @ y @ y.T),
    ):
        due, sizes = np.diagonal(left @ a @ right), np.diagonal(abs(left) @ abs(a) @ abs(right))
        due, sizes = (due, sizes) if np.ndim(got) else (due.sum(), sizes.sum())
        assert np.all(np.abs(np.asarray(got) - due) <= digits * np.max(sizes))


def likelihood(Z, y, term=lambda c, U: c * U @ U.T):
    def f(*numbers):
        V = numbers[-1] * pl.Identity(len(y))
        for c, U in zip(numbers, Z, strict=False):
            V = V + term(c, U)
        return pl.logdet(V) + y @ pl.solve(V, y)

    return f


def of_groups(r, n, sizes):
    z = [groups(r, n, k) for k in sizes]
    return [pl.Sparse(a) for a in z], [a.toarray() for a in z]


@pytest.mark.parametrize("sizes", [(20,), (30, 7), (10, 10, 10)])
@pytest.mark.parametrize("n", [60, 90, 500])
def test_gradients(sizes, n):
    r = np.random.default_rng([n, *sizes])
    Z, z = of_groups(r, n, sizes)
    y, at = r.standard_normal(n), [np.array(x) for x in r.uniform(0.3, 2, len(sizes) + 1)]
    every = tuple(range(len(at)))
    value, grad = pl.value_and_grad(likelihood(Z, y), every)(*at)
    v = sum(c * a @ a.T for c, a in zip(at, z, strict=False)) + at[-1] * np.eye(n)
    inv = np.linalg.inv(v)
    x = inv @ y
    close(value, np.linalg.slogdet(v)[1] + y @ x, 1e-12)
    due = [np.trace(inv @ a @ a.T) - np.sum((a.T @ x) ** 2) for a in z]
    close(np.array(grad), np.array([*due, np.trace(inv) - x @ x]), 1e-10)
    if n < 500:
        check_second(likelihood(Z, y), *at, rtol=1e-6)


TERMS = {
    "factor": lambda c, U: c * U @ U.T,
    "product": lambda c, U: c * (U @ U.T),
    "product turned": lambda c, U: (c * (U @ U.T)).T,
    "factor turned": lambda c, U: (U @ (c * U.T)).T,
    "Diag": lambda c, U: U @ pl.Diag(c * np.ones(U.shape[1])) @ U.T,
}


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("sizes", [(60,), (60, 20)])
def test_no_step_of_the_size_of_the_matrix_runs(sizes, term):
    n = 900
    r = np.random.default_rng(sizes)
    Z, _ = of_groups(r, n, sizes)
    at = [np.array(x) for x in r.uniform(0.3, 2, len(sizes) + 1)]
    y = r.standard_normal(n)
    with pl.explaining() as record:
        value, grad = pl.value_and_grad(likelihood(Z, y, TERMS[term]), tuple(range(len(at))))(*at)
    assert record.plans
    for p in record.plans:
        assert largest(p) <= 100 * n
        assert not any(step["name"] == "sparse-trace" for step in p.steps)
    due, first = pl.value_and_grad(likelihood(Z, y), tuple(range(len(at))))(*at)
    close(value, due, 1e-12)
    close(np.array(grad), np.array(first), 1e-9)


WHOLE = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64]


def of_integers(r, n, k, dtype, largest=1):
    """As many entries a row as a design has, up to ``largest``."""
    z = sp.random_array((n, k), density=2 / k, rng=r)
    z.data = r.integers(1, largest + 1, z.nnz).astype(float)
    return sp.csr_array(z.astype(dtype))


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("n", [15, 70, 399, 500])
@pytest.mark.parametrize("largest", [1, 90])
def test_integers_and_truth_values(dtype, n, largest):
    """They count as float64 from their leaves on: none wraps, and none is "or"."""
    r = np.random.default_rng([n, largest, np.dtype(dtype).itemsize])
    z, w, s = (of_integers(r, *mk, dtype, largest) for mk in ((n, 15), (15, n), (n, n)))
    (Z, W, S), (a, b, c) = map(pl.Sparse, (z, w, s)), (x.toarray().astype(float) for x in (z, w, s))
    y, I, few = r.standard_normal(n), np.eye(n), 3000.0 * np.eye(n) * largest**2
    for V, v in (
        (0.5 * Z @ Z.T + pl.Identity(n), 0.5 * a @ a.T + I),
        (Z @ (0.5 * Z.T) + pl.Identity(n), 0.5 * a @ a.T + I),
        (0.5 * (Z @ Z.T) + pl.Identity(n), 0.5 * a @ a.T + I),
        (0.25 * (S + S.T) + pl.Diag(np.diag(few)), 0.25 * (c + c.T) + few),
        (0.25 * (S @ S.T + S) + pl.Diag(np.diag(few)), 0.25 * (c @ c.T + c) + few),
    ):
        inv = np.linalg.inv(v)
        close(pl.slogdet(V)[1], np.linalg.slogdet(v)[1], 1e-9)
        close(pl.solve(V, y), inv @ y, 1e-7)
        size = np.abs(inv).sum() * float(largest) ** 2
        for got, due in (
            (pl.trace(pl.inv(V) @ Z @ W), np.trace(inv @ a @ b)),
            (pl.trace(W @ pl.inv(V) @ Z), np.trace(b @ inv @ a)),
            (pl.trace(pl.inv(V) @ (Z @ W)), np.trace(inv @ a @ b)),
            (pl.trace(pl.inv(V) @ (Z @ W).T), np.trace(inv @ (a @ b).T)),
            (pl.trace(S @ pl.inv(V) @ S), np.trace(c @ inv @ c)),
            (pl.trace(pl.inv(V) @ (S @ S)), np.trace(inv @ c @ c)),
            (pl.diagonal(Z.T @ pl.inv(V) @ Z).sum(), np.trace(a.T @ inv @ a)),
        ):
            assert abs(got - due) <= 1e-9 * size, (got, due)


@pytest.mark.parametrize("dtype", WHOLE)
def test_gradients_of_integers(dtype):
    r = np.random.default_rng(3)
    n, at = 300, [np.array(0.4), np.array(1.1)]
    z = groups(r, n, 20)
    y = r.standard_normal(n)
    for term in TERMS.values():
        got = pl.value_and_grad(likelihood([pl.Sparse(z.astype(dtype))], y, term), (0, 1))(*at)
        due = pl.value_and_grad(likelihood([pl.Sparse(z)], y, term), (0, 1))(*at)
        close(got[0], due[0], 1e-12)
        close(np.array(got[1]), np.array(due[1]), 1e-10)


def test_designs_by_parameters_of_their_own():
    """The side is a parameter: its entries' derivatives are read where it has some."""
    r = np.random.default_rng(5)
    z = slopes(r, 200, 12)
    y = r.standard_normal(200)

    def f(data, c):
        U = pl.Sparse(z, data=data)
        return likelihood([U], y)(c, np.array(0.5))

    def dense(data, c):
        a = np.zeros(z.shape)
        a[np.repeat(np.arange(200), np.diff(z.indptr)), z.indices] = data
        v = c * a @ a.T + 0.5 * np.eye(200)
        inv = np.linalg.inv(v)
        x = inv @ y
        G = 2 * c * (inv - np.outer(x, x)) @ a
        return G[np.repeat(np.arange(200), np.diff(z.indptr)), z.indices]

    close(pl.grad(f)(z.data, np.array(0.8)), dense(z.data, 0.8), 1e-10)


@pytest.mark.parametrize("small", [1e-6, 1e-10, 1e-14])
def test_small_noise(small):
    """Of components that the noise is little beside; and where some rows have next to none."""
    r = np.random.default_rng(int(-np.log10(small)))
    n, k = 300, 20
    z = groups(r, n, k)
    Z, counts = pl.Sparse(z), np.asarray(z.sum(axis=0)).ravel()
    V = Z @ Z.T + small * pl.Identity(n)
    seen = counts > 0
    due = np.sum(1 / (counts[seen] + small) * counts[seen])  # the eigenvalues that Z sees
    close(pl.trace(Z.T @ pl.inv(V) @ Z), due, 1e-12)
    close(pl.diagonal(Z.T @ pl.inv(V) @ Z), counts / (counts + small), 1e-12)
    close(pl.trace(pl.inv(V)), (n - seen.sum()) / small + np.sum(1 / (counts[seen] + small)), 1e-12)
    e = np.where(np.arange(n) % 7 == 0, small, 1.0)
    V, v = Z @ Z.T + pl.Diag(e), (z @ z.T).toarray() + np.diag(e)
    due = z.T @ np.linalg.solve(v, z.toarray())
    close(pl.trace(Z.T @ pl.inv(V) @ Z), np.trace(due), 1e-9)
    close(pl.diagonal(Z.T @ pl.inv(V) @ Z), np.diagonal(due), 1e-9)


def test_singular_and_not_numbers():
    r = np.random.default_rng(8)
    z = groups(r, 100, 10)
    Z = pl.Sparse(z)
    V = Z @ Z.T + pl.Diag(np.zeros(100))
    with pytest.raises(np.linalg.LinAlgError):
        pl.trace(Z.T @ pl.inv(V) @ Z)
    e = np.ones(100)
    e[3] = 0.0  # E is singular, the whole is not
    V, v = Z @ Z.T + pl.Diag(e), (z @ z.T).toarray() + np.diag(e)
    close(pl.trace(Z.T @ pl.inv(V) @ Z), np.trace(z.T @ np.linalg.solve(v, z.toarray())), 1e-9)
    e[3] = np.nan
    assert np.isnan(pl.trace(Z.T @ pl.inv(Z @ Z.T + pl.Diag(e)) @ Z))
    V = pl.Identity(100) - 0.08 * Z @ Z.T  # indefinite: some groups have more than 12 rows
    v = np.eye(100) - 0.08 * (z @ z.T).toarray()
    close(pl.trace(Z.T @ pl.inv(V) @ Z), np.trace(z.T @ np.linalg.solve(v, z.toarray())), 1e-10)


def test_traces_of_what_is_not_square():
    """As NumPy has them: these do not turn round."""
    r = np.random.default_rng(11)
    n, k = 130, 15
    z, y = slopes(r, n, k), sp.random_array((k, n - 3), density=0.2, rng=r)
    V = 0.7 * pl.Sparse(z) @ pl.Sparse(z).T + pl.Diag(np.ones(n))
    a = np.linalg.solve(0.7 * (z @ z.T).toarray() + np.eye(n), z.toarray())
    close(pl.trace(pl.inv(V) @ pl.Sparse(z)), np.trace(a), 1e-11)
    close(pl.trace(pl.inv(V) @ pl.Sparse(z) @ pl.Sparse(y)), np.trace(a @ y.toarray()), 1e-11)
