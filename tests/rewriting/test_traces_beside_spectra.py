"""Traces of inverses of sums of Krons beside other sums of Krons: by the spectrum, in any order."""

import numpy as np
import pytest

import pylinop as pl


def factor(rng, n, dtype, hermitian=True):
    a = rng.standard_normal((n, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((n, n))
    return ((a @ a.conj().T) / n if hermitian else a).astype(dtype)


def places(rng, sizes, dtype):
    return [pl.Dense(factor(rng, n, dtype), assume_a="pos") for n in sizes]


def sum_over(ops, sizes, only=None):
    """The Krons of one factor and identities, added."""
    terms = [
        pl.Kron(*[op if i == k else pl.Identity(n) for i, n in enumerate(sizes)])
        for k, op in enumerate(ops)
        if only is None or k == only
    ]
    return sum(terms[1:], terms[0])


PRODUCTS = {
    "S^-1 X": lambda S, X: pl.inv(S) @ X,
    "X S^-1": lambda S, X: X @ pl.inv(S),
    "S^-1 X S^-1": lambda S, X: pl.inv(S) @ X @ pl.inv(S),
    "S^-1 S^-1 X": lambda S, X: pl.inv(S) @ pl.inv(S) @ X,
    "X (S^-1 S^-1)": lambda S, X: X @ (pl.inv(S) @ pl.inv(S)),
    "(S^-1 + S^-1) X": lambda S, X: (pl.inv(S) + pl.inv(1 * S)) @ X,
    "3 S^-1 X (-2 S^-1)": lambda S, X: 3 * pl.inv(S) @ X @ (-2 * pl.inv(S)),
    "S^-1 X S^-1 S^-1": lambda S, X: pl.inv(S) @ X @ pl.inv(S) @ pl.inv(S),
    "S^-1 X X": lambda S, X: pl.inv(S) @ X @ X,
    "(2 S^-1 - S^-1 S^-1) X": lambda S, X: (2 * pl.inv(S) - pl.inv(S) @ pl.inv(S)) @ X,
    "(S^-1 + S^-2) X (S^-1 - 3 S^-1)": lambda S, X: (
        (pl.inv(S) + pl.inv(S) @ pl.inv(S)) @ X @ (pl.inv(S) - 3 * pl.inv(1 * S))
    ),
    "S^-1 S^-1": lambda S, X: pl.inv(S) @ pl.inv(S),
    "S^-1 (S^-1 + X)": lambda S, X: pl.inv(S) @ (pl.inv(S) + X),
    "S^-H X": lambda S, X: pl.inv(S).H @ X,
    "S^-T X": lambda S, X: pl.inv(S).T @ X,
}


@pytest.mark.parametrize("dtype", ["f8", "D", "f4"])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("sizes", [(3, 4), (9, 7), (8, 8), (12, 13), (5, 4, 6)])
def test_traces(product, sizes, dtype):
    """Beside the dense form, at sizes on both sides of what eigenvectors pay from."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng([len(product), *sizes])
    ops = places(rng, sizes, dtype)
    n = int(np.prod(sizes))
    c, s = dtype.type(0.7), dtype.type(1.3)
    S = c * sum_over(ops, sizes) + s * pl.Identity(n)
    others = places(rng, sizes, dtype)
    tol = 2e4 * n * np.finfo(dtype).eps
    for X in (
        sum_over(ops, sizes),
        sum_over(others, sizes),
        sum_over(ops, sizes, 1) - 2 * pl.Identity(n),
        pl.Kron(*others),
        pl.KronSum(*ops) if len(sizes) == 2 else sum_over(others, sizes, 0),
        pl.Diag(rng.standard_normal(n).astype(dtype)),
    ):
        A = PRODUCTS[product](S, X)
        dense = PRODUCTS[product](pl.Dense(S.toarray()), pl.Dense(X.toarray())).toarray()
        size = np.abs(dense).sum()
        assert abs(pl.trace(A) - np.trace(dense)) <= tol * size


def test_what_is_not_hermitian_or_not_definite():
    rng = np.random.default_rng(3)
    sizes, n = (11, 10), 110
    a, b = (pl.Dense(factor(rng, k, np.dtype("f8"), False)) for k in sizes)
    X = pl.Kron(a, pl.Identity(10)) + pl.Kron(pl.Identity(11), b)
    S = 0.3 * X + 2.0 * pl.Identity(n)
    for A in (pl.inv(S) @ X, X @ pl.inv(S) @ pl.inv(S)):
        np.testing.assert_allclose(pl.trace(A), np.trace(A.toarray()), rtol=1e-8, atol=1e-8)
    h = pl.Dense(factor(rng, 11, np.dtype("f8")) - 1.5 * np.eye(11), assume_a="sym")
    Y = pl.Kron(h, pl.Identity(10)) + pl.Kron(pl.Identity(11), b.T @ b)
    S = Y + 0.01 * pl.Identity(n)
    np.testing.assert_allclose(
        pl.trace(pl.inv(S) @ X), np.trace(np.linalg.solve(S.toarray(), X.toarray())), rtol=1e-7
    )


def test_singular_is_an_error():
    e = np.diag([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    A = pl.Dense(e - 3 * np.eye(10), assume_a="sym")
    B = pl.Dense(e - 2 * np.eye(10), assume_a="sym")
    S = pl.Kron(A, pl.Identity(10)) + pl.Kron(pl.Identity(10), B)
    with pytest.raises(np.linalg.LinAlgError):
        pl.trace(pl.inv(S) @ pl.Kron(B, pl.Identity(10)))


@pytest.mark.parametrize("kind", ["dense", "band", "laplacian"])
def test_gradients_make_no_whole_matrix(kind):
    """log det and trace of the inverse of t (A (x) I + I (x) A) + s I by t and s."""
    rng = np.random.default_rng(5)
    a = 30
    A = {
        "dense": lambda: pl.Dense(factor(rng, a, np.dtype("f8")), assume_a="pos"),
        "band": lambda: pl.Tridiagonal(-np.ones(a - 1), 2.0 + np.arange(a), -np.ones(a - 1)),
        "laplacian": lambda: -1.0 * pl.Laplacian((a,), "dirichlet"),
    }[kind]()
    X = pl.Kron(A, pl.Identity(a)) + pl.Kron(pl.Identity(a), A)

    y = rng.standard_normal(a * a)

    def f(p):
        Q = p["t"] * X + p["s"] * pl.Identity(a * a)
        return pl.logdet(Q @ Q) + pl.trace(pl.inv(Q)) + y @ (Q @ y)

    p = {"t": np.array(0.8), "s": np.array(0.6)}
    value, g = pl.value_and_grad(f)(p)
    w = np.linalg.eigvalsh(X.toarray())
    q = 0.8 * w + 0.6
    quadratic = y @ (X @ y)
    whole = (2 * np.log(q) + 1 / q).sum() + 0.8 * quadratic + 0.6 * y @ y
    np.testing.assert_allclose(value, whole, rtol=1e-12)
    np.testing.assert_allclose(g["t"], (2 * w / q - w / q**2).sum() + quadratic, rtol=1e-10)
    np.testing.assert_allclose(g["s"], (2 / q - 1 / q**2).sum() + y @ y, rtol=1e-10)
    with pl.explaining() as e:
        pl.grad(f)({"t": np.array(0.81), "s": np.array(0.61)})
    whole = [s["name"] for s in e.steps if f"{a * a}, {a * a}" in s["writes"] and s.get("took")]
    assert whole == []
