"""Sparse sums of a diagonal and thin products, whose small matrix is factored where that is sooner:
mixed models with one effect and with two, against the dense form, beside the assembled form."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._sparse import thin_update

N = 450  # more than the core's least


def groups(rng, *counts, n=N):
    """The design of effects: a one a row and effect."""
    parts = [
        sp.csr_array((np.ones(n), (np.arange(n), rng.integers(0, g, n))), shape=(n, g))
        for g in counts
    ]
    return sp.csr_array(sp.hstack(parts))


def made(monkeypatch):
    """Whether each factor that is made was an update."""
    kinds, before = [], thin_update.factor_of

    def watched(program, arrays):
        factor = before(program, arrays)
        kinds.append(isinstance(factor, thin_update.Update))
        return factor

    from pylinop._sparse import solver

    monkeypatch.setattr(solver, "factor_of", watched)
    return kinds


def check(A, D, rng, complex_too=False):
    n = D.shape[0]
    b = rng.standard_normal((n, 3))
    if complex_too:
        b = b + 1j * rng.standard_normal((n, 3))
    norm, size = np.linalg.norm(D, 2), np.linalg.norm(np.linalg.inv(D), 2)
    for op, M in ((A, D), (A.T, D.T), (A.H, D.conj().T), (A.conj(), D.conj())):
        x = pl.solve(op, b)
        left = np.linalg.norm(b - M @ x) / (norm * np.linalg.norm(x) + np.linalg.norm(b))
        assert left <= 1e-14
    sign, log = pl.slogdet(A)
    wanted = np.linalg.slogdet(D)
    assert abs(log - wanted[1]) <= 1e-12 * (abs(wanted[1]) + norm * size)
    assert abs(sign - wanted[0]) <= 1e-11 * norm * size
    diagonal = pl.diagonal(pl.inv(A))
    np.testing.assert_allclose(
        diagonal, np.diagonal(np.linalg.inv(D)), rtol=0, atol=1e-13 * size * norm * size
    )


SUMS = {
    "multiple": lambda Z, W, d, t: 0.7 * Z @ Z.T + pl.Identity(N),
    "negative multiple": lambda Z, W, d, t: pl.Diag(100 * d) - 0.05 * Z @ Z.T,
    "weights": lambda Z, W, d, t: Z @ pl.Diag(t) @ Z.T + pl.Diag(d),
    "some weights 0": lambda Z, W, d, t: Z @ pl.Diag(np.where(t > 1, t, 0)) @ Z.T + pl.Diag(d),
    "weights of both signs": lambda Z, W, d, t: Z @ pl.Diag(t - 1.1) @ Z.T + pl.Diag(100 * d),
    "two products": lambda Z, W, d, t: 0.5 * Z @ Z.T + pl.Diag(d) + 2 * (W @ W.T),
    "not its own adjoint": lambda Z, W, d, t: Z @ pl.Sparse(V_OF(Z)) + pl.Diag(d),
    "two diagonals": lambda Z, W, d, t: pl.Diag(d) + Z @ Z.T + 3 * pl.Identity(N),
    "views": lambda Z, W, d, t: (Z @ (2 * pl.Diag(t)) @ Z.T).T + pl.Diag(d),
}


def V_OF(Z):
    rng = np.random.default_rng(5)
    V = sp.csr_array(Z.tosparse().T)
    V.data = rng.uniform(0.1, 1, len(V.data))
    return V


@pytest.mark.parametrize("name", SUMS)
def test_agrees_with_the_dense_form(name, rng, monkeypatch):
    kinds = made(monkeypatch)
    Z, W = pl.Sparse(groups(rng, 90, 60)), pl.Sparse(groups(rng, 100))
    d, t = rng.uniform(1, 2, N), rng.uniform(0.2, 2, 150)
    A = SUMS[name](Z, W, d, t)
    check(A, np.asarray(A), rng)
    assert kinds and all(kinds)


def test_complex_ones(rng, monkeypatch):
    kinds = made(monkeypatch)
    z = groups(rng, 90, 60).astype(complex)
    z.data *= np.exp(1j * rng.uniform(0, 6, len(z.data)))
    for A in (
        0.5 * pl.Sparse(z) @ pl.Sparse(z).H + pl.Diag(rng.uniform(1, 2, N)),
        (0.5 + 1j) * pl.Sparse(z) @ pl.Sparse(z).T + pl.Diag(20 + 1j * rng.uniform(1, 2, N)),
    ):
        check(A, np.asarray(A), rng, True)
    assert kinds and all(kinds)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_designs_as_they_come(form, dtype, rng, monkeypatch):
    """One-hot columns are often of bools or small integers, which must not wrap in Z Z'."""
    kinds = made(monkeypatch)
    z = groups(rng, 90, 60).astype(dtype).asformat(form)
    d, t, b = rng.uniform(1, 2, N), rng.uniform(0.2, 2, 150), rng.standard_normal((N, 2))
    A = pl.Sparse(z) @ pl.Diag(t) @ pl.Sparse(z).T + pl.Diag(d)
    Z = z.toarray().astype(complex).real
    D = Z @ np.diag(t) @ Z.T + np.diag(d)
    x = pl.solve(A, b)
    left = np.linalg.norm(b - D @ x)
    assert left <= 1e-13 * (np.linalg.norm(D, 2) * np.linalg.norm(x) + np.linalg.norm(b))
    assert pl.solve(A, b[:, :0]).shape == (N, 0)
    assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(D)[1], rel=1e-12)
    assert kinds and all(kinds)


def test_integers_among_themselves_are_as_in_the_dense_form(rng, monkeypatch):
    """Z Z' of int8 is one, whatever stands beside it: nothing sparse is made of it."""
    kinds = made(monkeypatch)
    Z = pl.Sparse(sp.random_array((N, 60), density=0.1, rng=0, format="csr", dtype=np.int8))
    A = 0.5 * (Z @ Z.T) + 200 * pl.Identity(N)
    M, b = A.toarray(), rng.standard_normal(N)
    assert np.linalg.norm(M @ pl.solve(A, b) - b) <= 1e-11 * np.linalg.norm(b)
    assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(M)[1])
    assert not kinds


def test_the_patterns_decide(rng, monkeypatch):
    """Differences have as few entries in a column as in a row, and the assembled form is a band."""
    kinds = made(monkeypatch)
    D = pl.Sparse(sp.diags_array([np.ones(N), -np.ones(N - 1)], offsets=[0, 1]))
    near = pl.Sparse(sp.random_array((N, N), density=3 / N, rng=3))
    for A in (D.T @ D + pl.Identity(N), near @ near.T + pl.Identity(N)):
        check(A, np.asarray(A), rng)
    assert kinds and not any(kinds)


@pytest.mark.parametrize(("ratio", "update"), [(1e7, True), (1e9, False)])
def test_a_graded_diagonal_goes_by_the_assembled_form(ratio, update, rng, monkeypatch):
    kinds = made(monkeypatch)
    Z, d = pl.Sparse(groups(rng, 90, 60)), np.geomspace(1, ratio, N)
    A = Z @ Z.T + pl.Diag(d)
    x, b = rng.standard_normal((2, N))
    M = np.asarray(A)
    x = pl.solve(A, b)
    assert np.linalg.norm(b - M @ x) <= 1e-13 * (np.linalg.norm(M, 2) * np.linalg.norm(x) + 1)
    assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(M)[1], rel=1e-12)
    assert set(kinds) == {update}


def test_a_zero_on_the_diagonal(rng):
    Z, d = pl.Sparse(groups(rng, 90, 60)), rng.uniform(1, 2, N)
    d[7] = 0
    A = Z @ Z.T + pl.Diag(d)
    M, b = np.asarray(A), rng.standard_normal(N)
    x = pl.solve(A, b)
    assert np.linalg.norm(b - M @ x) <= 1e-13 * (np.linalg.norm(M, 2) * np.linalg.norm(x) + 10)


def test_singular_and_not_finite_ones(rng):
    z = groups(rng, 90)
    count = np.asarray((z.T @ z).diagonal())
    some = int(np.argmax(count))
    t = np.ones(90)
    t[some] = -1 / count[some]  # 1 + t z'z = 0
    Z = pl.Sparse(z)
    A = Z @ pl.Diag(t) @ Z.T + pl.Identity(N)
    b = rng.standard_normal(N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((np.linalg.LinAlgError, pl.IllConditionedWarning)):
            pl.solve(A, b)
    B = Z @ Z.T + pl.Identity(N)
    b[3] = np.nan
    good = rng.standard_normal(N)
    x = pl.solve(B, np.stack([b, good], axis=1))
    assert np.isnan(x[:, 0]).all() and np.allclose(np.asarray(B) @ x[:, 1], good)


def test_the_factor_is_the_answer_of_new_values_too(rng):
    """Arrays that were written to: the factor is made anew, and the old one held none of them."""
    z = groups(rng, 90, 60)
    d, t = rng.uniform(1, 2, N), rng.uniform(0.2, 2, 150)
    Z = pl.Sparse(z)
    A = Z @ pl.Diag(t) @ Z.T + pl.Diag(d)
    b = rng.standard_normal(N)
    pl.solve(A, b)
    for a in (d, t, z.data):
        a *= 1.5
        M = z.toarray() @ np.diag(t) @ z.toarray().T + np.diag(d)
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(M, b), rtol=0, atol=1e-11)


def test_where_the_small_matrix_does_not_serve(rng, monkeypatch):
    """A factor that gives nonsense is replaced by that of the assembled form."""
    Z = pl.Sparse(groups(rng, 90, 60))
    A = 0.3 * Z @ Z.T + pl.Identity(N)
    M, b = np.asarray(A), rng.standard_normal(N)
    monkeypatch.setattr(thin_update.Update, "_raw", lambda self, b, mode: 2 * b)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(M, b), rtol=0, atol=1e-12)
    assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(M)[1])
    np.testing.assert_allclose(
        pl.diagonal(pl.inv(A)), np.diagonal(np.linalg.inv(M)), rtol=0, atol=1e-12
    )


def test_gradients_of_a_mixed_model(rng):
    """The derivative by the weights and the noise, which read entries of the inverse."""
    Z = pl.Sparse(groups(rng, 90, 60))
    z = Z.tosparse().toarray()
    y = rng.standard_normal(N)

    def loss(t, d):
        A = Z @ pl.Diag(t) @ Z.T + pl.Diag(d)
        return y @ pl.solve(A, y) + pl.logdet(A)

    t, d = rng.uniform(0.5, 1, 150), rng.uniform(1, 2, N)
    inv = np.linalg.inv(z @ np.diag(t) @ z.T + np.diag(d))
    x = inv @ y
    by_t, by_d = pl.grad(loss, argnums=(0, 1))(t, d)
    np.testing.assert_allclose(
        by_t, np.diagonal(z.T @ inv @ z) - (z.T @ x) ** 2, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(by_d, np.diagonal(inv) - x**2, rtol=0, atol=1e-10)


def test_what_failed_before_changes_no_bit(rng, monkeypatch):
    """Right-hand sides that the update is no good for go by the assembled form; others, and the
    determinant, as if they had not been."""
    kinds = made(monkeypatch)
    z, d = groups(rng, 90, 60), 1e-12 * rng.uniform(1, 2, N)
    z.data = rng.uniform(0.5, 1.5, len(z.data))
    good, bad = np.ones(N), z @ (z.T @ np.ones(N))
    one, other = (pl.Sparse(z.copy()) @ pl.Sparse(z.copy()).T + pl.Diag(d) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = pl.solve(one, good), pl.slogdet(one)
        x = pl.solve(other, bad)
        again = pl.solve(other, good), pl.slogdet(other)
    A = np.asarray(one)
    left = np.linalg.norm(A @ x - bad)
    assert left <= 1e-13 * (np.linalg.norm(A, 2) * np.linalg.norm(x) + np.linalg.norm(bad))
    assert kinds == [True, True]
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1] == again[1]


@pytest.mark.parametrize("c", [1e-200, 1e150])
def test_scales_whose_squares_leave_the_range(c, rng, monkeypatch):
    kinds = made(monkeypatch)
    z, d = groups(rng, 90, 60), rng.uniform(1, 2, N)
    A, plain = (t * pl.Sparse(z) @ pl.Sparse(z).T + pl.Diag(t * d) for t in (c, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        sign, log = pl.slogdet(A)
    assert sign == 1
    assert abs(log - N * np.log(c) - pl.logdet(plain)) <= 1e-12 * abs(log)
    x, wanted = pl.solve(A, c * np.ones(N)), pl.solve(plain, np.ones(N))
    assert np.linalg.norm(x - wanted) <= 1e-11 * np.linalg.norm(wanted)
    assert kinds and all(kinds)
