"""What is singular itself and regular with a low rank: a graph's Laplacian and a constant, a row of
zeros and what fills it. The sparse factor of the base says that there is no answer, and the sum has
one; all ask for it in their own ways, so do gradients."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")


def star(n):
    A = sp.lil_array((n, n))
    A[0, 1:] = A[1:, 0] = -1
    A.setdiag(1)
    A[0, 0] = n - 1
    return A.tocsr(), np.ones((n, 1)) / n**0.5


def path(n):
    d = np.r_[1, np.full(n - 2, 2.0), 1]
    return sp.diags_array([-np.ones(n - 1), d, -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr(), (
        np.ones((n, 1)) / n**0.5
    )


def grid(n):
    k = round(n**0.5)
    A, _ = path(k)
    eye = sp.eye_array(k)
    return (sp.kron(A, eye) + sp.kron(eye, A)).tocsr(), np.ones((k * k, 1)) / k


def row_of_zeros(n):
    rng = np.random.default_rng(n)
    q = sp.random_array((n, n), density=3 / n, rng=rng)
    A = (q + q.T + 8 * sp.eye_array(n)).tolil()
    A[5, :] = A[:, 5] = 0
    return A.tocsr(), np.eye(n)[:, [5]] * 2 + 0.1 * rng.standard_normal((n, 1))


def two_of_one_place(n):
    """Two columns with numbers in one row alone: singular by how it is written."""
    rng = np.random.default_rng(n)
    A = (sp.random_array((n, n), density=2 / n, rng=rng) + 6 * sp.eye_array(n)).tolil()
    A[:, [3, 8]] = 0
    A[3, 3], A[3, 8] = 1, 2
    return A.tocsr(), np.c_[np.eye(n)[:, [8]] * 3, rng.standard_normal((n, 1)) / 9]


BASES = {f.__name__: f for f in (star, path, grid, row_of_zeros, two_of_one_place)}
WRITTEN = {
    "a sum": lambda B, U: pl.Sparse(B) + pl.LowRank(U),
    "an update": lambda B, U: pl.LowRankUpdate(pl.Sparse(B), U),
    "a product": lambda B, U: pl.Dense(U) @ pl.Dense(U).T + pl.Sparse(B),
    "a multiple": lambda B, U: 2 * (pl.Sparse(B) / 2 + pl.LowRank(U, 0.5 * U)),
    "a diagonal apart": lambda B, U: (
        pl.Sparse(B - sp.diags_array(B.diagonal())) + pl.Diag(B.diagonal()) + pl.LowRank(U)
    ),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("n", [49, 400])
@pytest.mark.parametrize("base", BASES)
def test_all_that_is_asked(base, n, written, rng):
    B, U = BASES[base](n)
    dense = B.toarray() + U @ U.T
    inverse, (sign, log) = np.linalg.inv(dense), np.linalg.slogdet(dense)
    A, b = WRITTEN[written](B, U), rng.standard_normal((len(dense), 2))
    n = len(dense)
    own = rng.standard_normal(n)
    lazy = pl.lazy(A)
    both = pl.evaluate(pl.solve(lazy, b), pl.slogdet(lazy)[1], pl.diagonal(pl.inv(lazy)))
    asked = [
        (pl.solve(A, b), inverse @ b),
        (pl.solve(A.T, b[:, 0]), inverse.T @ b[:, 0]),
        (pl.slogdet(A), (sign, log)),
        (pl.inv(A).diagonal(), inverse.diagonal()),
        (pl.diagonal(pl.inv(A), 2), inverse.diagonal(2)),
        (pl.diagonal(pl.inv(A), -1), inverse.diagonal(-1)),
        (pl.inv(A).trace(), inverse.trace()),
        ((pl.inv(A) @ pl.Diag(own)).trace(), inverse.diagonal() @ own),
        ((pl.inv(A) @ pl.Sparse(B)).trace(), np.trace(inverse @ B.toarray())),
        ((pl.Dense(b).T @ pl.inv(A) @ pl.Dense(b)).toarray(), b.T @ inverse @ b),
        (pl.inv(A)[2, :9], inverse[2, :9]),
        (pl.inv(A).toarray(), inverse),
        (both[0], inverse @ b),
        (both[1], log),
        (both[2], inverse.diagonal()),
    ]
    bound = 1e-11 * np.linalg.cond(dense)
    for got, due in asked:
        assert np.abs(np.asarray(got) - due).max() <= bound * max(1, np.abs(due).max())


@pytest.mark.parametrize("base", BASES)
def test_gradients(base, rng):
    B, U = BASES[base](400)
    n = B.shape[0]
    y = rng.standard_normal(n)

    def f(u):
        A = pl.Sparse(B) + pl.LowRank(u)
        return pl.slogdet(A)[1] + y @ pl.solve(A, y)

    inverse = np.linalg.inv(B.toarray() + U @ U.T)
    by = inverse.T - np.outer(inverse.T @ y, inverse @ y)
    due = (by + by.T) @ U
    assert np.abs(pl.grad(f)(U) - due).max() <= 1e-9 * np.abs(due).max()


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_dtypes(dtype, rng):
    B, U = star(400)
    turn = np.exp(1j * np.arange(400)) if np.dtype(dtype).kind == "c" else np.ones(400)
    B = (sp.diags_array(turn) @ B @ sp.diags_array(turn.conj())).astype(dtype).tocsr()
    U = (turn[:, None] * U).astype(dtype)
    A = pl.Sparse(B) + pl.LowRank(U)
    inverse = np.linalg.inv((B.toarray() + U @ U.conj().T).astype(complex))
    y = rng.standard_normal(400).astype(dtype)
    bound = 1e3 * 400 * np.finfo(dtype).eps
    assert np.abs(pl.solve(A, y) - inverse @ y).max() <= bound * np.abs(inverse @ y).max()
    due = inverse.diagonal()
    assert np.abs(pl.inv(A).diagonal() - due).max() <= bound * np.abs(due).max()
    assert abs(pl.inv(A).trace() - due.sum()) <= bound * abs(due.sum())


@pytest.mark.parametrize("base", [b for b in BASES if b != "grid"])  # no pivot of its is zero
def test_what_is_singular_as_a_whole(base):
    """Of one kind with the base, or beside a low rank that does not help."""
    B, _ = BASES[base](400)
    n = B.shape[0]
    for A in (pl.Sparse(B), pl.Sparse(B) + pl.LowRank(np.zeros((n, 1)))):
        for ask in (
            lambda A=A: pl.solve(A, np.arange(n) * 1.0),
            lambda A=A: pl.inv(A).diagonal(),
            lambda A=A: pl.inv(A).trace(),
        ):
            with pytest.raises(np.linalg.LinAlgError):
                ask()


def test_diagonals_and_traces_form_nothing():
    B, U = grid(1600)
    A = pl.Sparse(B) + pl.LowRank(U)
    for ask in (pl.inv(A).diagonal, pl.inv(A).trace):
        with pl.explaining() as e:
            ask()
        flops = sum(s["flops"] for p in e.plans for s in p.steps if s["took"] is not None)
        assert flops < 1e8  # 5e9 by the dense form
