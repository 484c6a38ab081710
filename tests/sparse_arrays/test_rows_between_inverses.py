"""Diagonals of U A^-1 X A^-1 W^T, all sparse: what gradients by the weights of edges, rows of a
smoother or observations read, beside dense ones."""

import numpy as np
import pytest

import pylinop as pl

sp = pytest.importorskip("scipy.sparse")
pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")


def problem(rng, n, m, dtype, hermitian=True):
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, 6, m)) % n
    k = np.arange(m)
    w = rng.standard_normal(2 * m)
    w = w + 1j * rng.standard_normal(2 * m) if np.dtype(dtype).kind == "c" else w
    B = sp.csr_array((w.astype(dtype), (np.r_[k, k], np.r_[i, j])), shape=(m, n))
    S = B.conj().T @ B + sp.diags_array(1 + rng.random(n).astype(dtype))
    if not hermitian:
        S = S + sp.random_array((n, n), density=2 / n, rng=rng, dtype=np.float64).astype(dtype)
    return B, sp.csr_array(S.astype(dtype))


PRODUCTS = {
    "two": lambda B, i, X: B @ i @ i @ B.T,
    "between": lambda B, i, X: B @ i @ X @ i @ B.H,
    "of three": lambda B, i, X: B @ i @ X @ i @ X @ i @ B.T,
    "views": lambda B, i, X: B @ i.H @ X.T @ i.H @ (2.0 * B.T),
    "as one": lambda B, i, X: B @ (i @ X @ i) @ B.T,
    "a sum between": lambda B, i, X: B @ i @ (X + 0.5 * X.T) @ i @ B.T,
    "other rows": lambda B, i, X: (0.5 * B) @ i @ X @ i @ (B @ X).T,
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("n, m", [(30, 31), (60, 33), (90, 180)])
@pytest.mark.parametrize("hermitian", [True, False])
def test_beside_dense(hermitian, n, m, product, dtype):
    rng = np.random.default_rng([n, m, len(product)])
    B, S = problem(rng, n, m, dtype, hermitian)
    X = sp.csr_array(problem(rng, n, n, dtype)[1])
    f = PRODUCTS[product]
    got = f(pl.Sparse(B), pl.inv(pl.Sparse(S)), pl.Sparse(X)).diagonal()
    wide = np.result_type(dtype, np.float64)

    class Array(np.ndarray):
        @property
        def H(self):
            return self.conj().T

    b, s, x = (a.toarray().astype(wide).view(Array) for a in (B, S, X))
    want = np.asarray(f(b, np.linalg.inv(s).view(Array), x)).diagonal()
    eps = np.finfo(dtype).eps * np.linalg.cond(s) ** (3 if product == "of three" else 2)
    np.testing.assert_allclose(got, want, rtol=0, atol=30 * eps * np.abs(want).max())


@pytest.mark.no_verify  # whose own dense forms would be counted
def test_the_gradient_of_a_smoother_by_its_weights():
    rng = np.random.default_rng(0)
    n, m = 1000, 1400
    B, _ = problem(rng, n, m, np.float64)
    P = pl.Sparse(B)

    def f(w):
        return pl.trace(pl.inv(P.T @ pl.Diag(np.exp(w)) @ P + 0.7 * pl.Identity(n)))

    w = 0.1 * rng.standard_normal(m)
    with pl.explaining() as record:
        value, grad = pl.value_and_grad(f)(w)
    ran = [s for p in record.plans for s in p.steps if s["took"] is not None]
    assert not [
        s["name"] for s in ran if f"({n}, {n})" in s["writes"] or f"({m}, {n})" in s["writes"]
    ]
    b = B.toarray()
    inverse = np.linalg.inv(b.T @ np.diag(np.exp(w)) @ b + 0.7 * np.eye(n))
    assert value == pytest.approx(np.trace(inverse), rel=1e-12)
    due = -np.exp(w) * np.einsum("ij,jk,ik->i", b, inverse @ inverse, b)
    np.testing.assert_allclose(grad, due, rtol=1e-10, atol=1e-12)


SUMS = {
    "in front": lambda B, i, X, u, v: B @ (i @ X @ i + i @ i @ (2.0 * X) @ i) @ B.T,
    "turned": lambda B, i, X, u, v: B @ (0.5 * (i @ X @ i).T - i @ X @ i @ X @ i) @ B.T,
    "within": lambda B, i, X, u, v: B @ i @ (X @ i + i @ X) @ i @ B.H,
    "at two depths": lambda B, i, X, u, v: B @ (i @ (X @ i @ X + X) @ i + i @ X) @ B.T,
    "of few columns": lambda B, i, X, u, v: B @ (i @ X @ i + u @ v.T - 2.0 * (v @ u.T).T) @ B.T,
    "few columns alone": lambda B, i, X, u, v: B @ i @ (u @ v.T + v @ u.H) @ i @ B.T,
    "with one inverse": lambda B, i, X, u, v: B @ (i @ X @ i + i) @ B.T,
    "without one": lambda B, i, X, u, v: B @ (i @ X @ i + 0.25 * X) @ B.T,
    "on one side": lambda B, i, X, u, v: (i @ X @ i + i @ i.H) @ X,
    "adjoints": lambda B, i, X, u, v: B @ (i.H @ X @ i - i.T @ i) @ B.T,
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("product", SUMS)
@pytest.mark.parametrize("n, m", [(9, 40), (60, 33), (90, 180)])
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("act", [pl.diagonal, pl.trace])
def test_sums_beside_dense(act, hermitian, n, m, product, dtype):
    rng = np.random.default_rng([n, m, len(product), 7])
    B, S = problem(rng, n, m, dtype, hermitian)
    X = sp.csr_array(problem(rng, n, n, dtype)[1])
    u, v = (problem(rng, n, n, dtype)[1].toarray()[:, :1] for _ in range(2))
    f = SUMS[product]
    thin = (pl.Dense(u), pl.Dense(v))
    got = act(f(pl.Sparse(B), pl.inv(pl.Sparse(S)), pl.Sparse(X), *thin))
    wide = np.result_type(dtype, np.float64)

    class Array(np.ndarray):
        @property
        def H(self):
            return self.conj().T

    b, s, x, u, v = (
        a.astype(wide).view(Array) for a in (B.toarray(), S.toarray(), X.toarray(), u, v)
    )
    want = np.asarray(f(b, np.linalg.inv(s).view(Array), x, u, v))
    size = np.abs(want).max() * (1 if act is pl.diagonal else len(want))
    want = want.diagonal() if act is pl.diagonal else want.trace()
    eps = np.finfo(dtype).eps * np.linalg.cond(s) ** 3
    np.testing.assert_allclose(got, want, rtol=0, atol=30 * eps * size)


def quadratic(A, y):
    x = pl.solve(A, y)
    return x @ x


@pytest.mark.no_verify
@pytest.mark.parametrize(
    "loss",
    [
        lambda A, y: y @ pl.solve(A, y) + pl.logdet(A),
        lambda A, y: pl.trace(pl.inv(A)),
        quadratic,
        lambda A, y: quadratic(A, y) + pl.trace(pl.inv(A)),
    ],
)
@pytest.mark.parametrize("n, m", [(40, 70), (600, 900)])
def test_second_derivatives_by_weights_of_rows(n, m, loss):
    rng = np.random.default_rng([n, 3])
    B, _ = problem(rng, n, m, np.float64)
    P, y = pl.Sparse(B), rng.standard_normal(n)

    def model(make):
        def f(c, w):
            return loss(make(c, w), y)

        return f

    f = model(lambda c, w: pl.Identity(n) + np.exp(c[0]) * (P.T @ pl.Diag(np.exp(w)) @ P))
    p, d = ((x * rng.standard_normal(1), x * rng.standard_normal(m)) for x in (0.1, 1.0))
    second = pl.hvp(f, argnums=(0, 1))
    with pl.explaining() as record:
        got = second(*p, d)
    ran = [s for q in record.plans for s in q.steps if s["took"] is not None]
    square = [f"({a}, {b})" for a in (n, m) for b in (n, m)]
    if n > 100:
        assert not [s["name"] for s in ran if any(x in s["writes"] for x in square)]

    both = pl.value_and_grad(f, argnums=(0, 1))

    def at(t):
        return np.concatenate(both(*(x + t * z for x, z in zip(p, d, strict=True)))[1])

    h = 1e-3
    due = 45 * (at(h) - at(-h)) - 9 * (at(2 * h) - at(-2 * h)) + at(3 * h) - at(-3 * h)
    got = np.concatenate(got)
    np.testing.assert_allclose(got, due / (60 * h), rtol=0, atol=1e-8 * np.abs(due / h).max())
    if n < 100:
        b = B.toarray()
        dense = model(
            lambda c, w: pl.Dense(np.eye(n)) + np.exp(c[0]) * (b.T * np.exp(w)) @ pl.Dense(b)
        )
        plain = np.concatenate(pl.hvp(dense, argnums=(0, 1))(*p, d))
        np.testing.assert_allclose(got, plain, rtol=0, atol=1e-11 * np.abs(plain).max())
