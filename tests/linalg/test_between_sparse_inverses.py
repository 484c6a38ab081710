"""Traces, diagonals and entries of A^-1 X A^-1 of sparse A and X, and gradients and second
derivatives that read them, beside NumPy: no dense inverse is made."""

import numpy as np
import pytest

import pylinop as pl

sp = pytest.importorskip("scipy.sparse")

N = 441


def laplacian():
    a = int(N**0.5)
    line = sp.diags_array([-np.ones(a - 1), 2 * np.ones(a), -np.ones(a - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(line, sp.eye_array(a)) + sp.kron(sp.eye_array(a), line))


def matrices(kind, dtype=np.float64):
    """A and X: Hermitian or not, X of a pattern of its own."""
    rng = np.random.default_rng(2)
    L = laplacian()
    A = L + 0.5 * sp.eye_array(N)
    X = sp.random_array((N, N), density=0.004, rng=rng) + sp.eye_array(N)
    if kind != "symmetric":
        A = A + 0.4 * sp.triu(L, 1)
    if np.dtype(dtype).kind == "c":
        A, X = A + 0.3j * sp.triu(L, 1), X * (1 - 0.5j)
    return sp.csr_array(A.astype(dtype)), sp.csr_array(X.astype(dtype))


def ran(f):
    with pl.explaining() as e:
        value = np.asarray(f())
    assert not [s["name"] for s in e.steps if s["took"] and f"({N}, {N})" in s["writes"]]
    return value


def close(found, exact, rel=1e-11):
    np.testing.assert_allclose(found, exact, atol=rel * np.abs(exact).max(), rtol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("kind", ["symmetric", "general"])
@pytest.mark.parametrize("view", ["", "T", "H"])
def test_values(kind, dtype, view):
    a, x = matrices(kind, dtype)
    A, X, D = pl.Sparse(a), pl.Sparse(x), pl.Diag(np.linspace(1, 2, N))
    W = getattr(pl.inv(A), view) if view else pl.inv(A)
    w = np.linalg.inv(a.toarray())
    w = {"": w, "T": w.T, "H": w.conj().T}[view]
    x, d = x.toarray(), np.diag(np.linspace(1, 2, N))
    close(ran(lambda: pl.trace(W @ X @ W @ A)), np.trace(w @ x @ w @ a.toarray()))
    close(ran(lambda: pl.trace(X @ W @ D @ W)), np.trace(x @ w @ d @ w))
    close(ran(lambda: pl.trace(2 * (X @ (-3 * W)) @ (X @ W))), -6 * np.trace(x @ w @ x @ w))
    close(ran(lambda: pl.diagonal(W @ X @ W)), np.diag(w @ x @ w))
    close(ran(lambda: pl.diagonal(W @ W)), np.diag(w @ w))


def test_inverses_of_two_matrices_are_told_apart():
    a, x = matrices("general")
    A, B, X = pl.Sparse(a), pl.Sparse(a + sp.eye_array(N)), pl.Sparse(x)
    v, w = np.linalg.inv(a.toarray()), np.linalg.inv(a.toarray() + np.eye(N))
    close(pl.trace(pl.inv(A) @ X @ pl.inv(B) @ X), np.trace(v @ x @ w @ x))
    close(pl.trace(pl.inv(A) @ X @ pl.inv(A).T @ X), np.trace(v @ x @ v.T @ x))
    close(pl.diagonal(pl.inv(A) @ X @ pl.inv(A).T), np.diag(v @ x @ v.T))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_gradients_by_entries(form):
    """Of tr(A^-1 X) by the numbers of A, at their places."""
    a, x = matrices("general")
    a = a.asformat(form)
    w = np.linalg.inv(a.toarray())
    row, col = a.tocoo().coords
    value = pl.lazy(a.data.copy())
    grad = pl.gradients(pl.trace(pl.inv(pl.Sparse(a, data=value)) @ pl.Sparse(x)), value)
    close(ran(lambda: grad), -(w @ x @ w).T[row, col])


def loss(p, A, eye, y):
    Q = p["c"] * A + p["s"] * eye
    return pl.trace(pl.inv(Q)) + np.sum(np.log(pl.diagonal(pl.inv(Q)))) + y @ pl.solve(Q, y)


def dense_loss(p, A, y):
    Q = p["c"] * A + p["s"] * np.eye(N)
    w = np.linalg.inv(Q)
    return np.trace(w) + np.sum(np.log(np.diag(w))) + y @ w @ y


def differences(f, p, k, h=1e-2):
    def at(t):
        return f(p | {k: p[k] + t})

    return sum(c * (at(i * h) - at(-i * h)) for i, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)


def test_gradients_of_traces_and_diagonals():
    L, y = laplacian(), np.random.default_rng(4).standard_normal(N)
    p = {"c": np.array(0.8), "s": np.array(0.6)}
    A, eye = pl.Sparse(L), pl.Identity(N)
    with pl.explaining() as e:
        grads = pl.grad(lambda p: loss(p, A, eye, y))(p)
    assert not [s["name"] for s in e.steps if s["took"] and f"({N}, {N})" in s["writes"]]
    for k in p:
        exact = differences(lambda p: dense_loss(p, L.toarray(), y), p, k)
        assert grads[k] == pytest.approx(exact, rel=1e-8)


def test_second_derivatives_of_determinants():
    L = laplacian()
    p, d = {"c": np.array(0.8), "s": np.array(0.6)}, {"c": np.array(1.0), "s": np.array(-0.4)}
    A, eye = pl.Sparse(L), pl.Identity(N)
    w = np.linalg.inv(0.8 * L.toarray() + 0.6 * np.eye(N))
    along = w @ (L.toarray() - 0.4 * np.eye(N)) @ w

    def f(p):
        return pl.logdet(p["c"] * A + p["s"] * eye)

    second = pl.hvp(f)(p, d)
    assert second["c"] == pytest.approx(-np.sum(along * L.toarray()), rel=1e-10)
    assert second["s"] == pytest.approx(-np.trace(along), rel=1e-10)


def test_single_precision():
    a, x = matrices("symmetric", np.float32)
    w = np.linalg.inv(a.toarray().astype(np.float64))
    found = pl.diagonal(pl.inv(pl.Sparse(a)) @ pl.Sparse(x) @ pl.inv(pl.Sparse(a)))
    assert found.dtype == np.float32
    close(found, np.diag(w @ x @ w), 1e-5)
    mixed = pl.trace(pl.inv(pl.Sparse(a)) @ pl.Sparse(x.astype(np.float64)) @ pl.inv(pl.Sparse(a)))
    close(mixed, np.trace(w @ x @ w), 1e-9)


def test_singular_matrices_are_an_error():
    L = sp.csr_array(sp.diags_array(laplacian().sum(0)) - laplacian() * 0)
    data = L.toarray()
    data[0] = 0  # a row of zeros, in the pattern or not
    A, X = pl.Sparse(sp.csr_array(data + np.diag(np.r_[0, np.ones(N - 1)]))), pl.Identity(N)
    X = pl.Sparse(laplacian())
    with pytest.raises(np.linalg.LinAlgError):
        pl.trace(pl.inv(A) @ X @ pl.inv(A) @ X)


def test_what_is_nearly_singular_goes_by_the_dense_form_or_warns():
    """The block on the right is checked by itself: its numbers are 1e16 times those of A^-1."""
    a = laplacian() - (2 - 2 * np.cos(np.pi / 22)) * 2 * sp.eye_array(N) + 1e-9 * sp.eye_array(N)
    a, x = sp.csr_array(a), laplacian()
    w = np.linalg.inv(a.toarray())
    A, X = pl.Sparse(a), pl.Sparse(x)
    found = pl.diagonal(pl.inv(A) @ X @ pl.inv(A))
    np.testing.assert_allclose(found, np.diag(w @ x @ w), rtol=1e-4)


def test_a_triangle_of_two_equal_halves_is_as_ill_conditioned_as_it_is():
    """It looks like [B X; 0 B], and is warned about by its own condition, not by that of B."""
    n = 400
    S = sp.diags_array([np.ones(n), -3 * np.ones(n - 1)], offsets=[0, 1]).tocsr()
    with pytest.warns(pl.IllConditionedWarning):
        pl.solve(pl.Sparse(S + 0 * S.T), np.ones(n))
