"""What is its own adjoint by how it is written is solved by Cholesky, whichever kind says it:
Toeplitz of one vector, Krons and Hadamard products of such, sums and congruences with them, the
same rows as columns; and what only looks like it is not."""

import numpy as np
import pytest

import pylinop as pl

N = 60


def column(rng, n=N):
    return np.exp(-np.arange(n) / 4.0) + 1e-3 * rng.random(n)


def rows(rng, n=N):
    return np.sort(rng.permutation(n)[: n - 12])


def selected(rng, inner):
    s = pl.Selection(rows(rng), N)
    return s @ inner @ s.T + 0.5 * pl.Identity(N - 12)


def of_one_vector(rng):
    c = column(rng)
    return pl.Toeplitz(c, c)


def kron(rng):
    return pl.Kron(pl.Toeplitz(column(rng, 12)), pl.Toeplitz(column(rng, 5)))


def indexed(rng, second=None):
    i = rows(rng)
    j = i if second is None else second(i)
    return (pl.Toeplitz(column(rng)) + 0.5 * pl.Identity(N))[np.ix_(i, j)]


OWN = {
    "S T S.T + c I": lambda r: selected(r, pl.Toeplitz(column(r))),
    "S T(c, c) S.T + c I": lambda r: selected(r, of_one_vector(r)),
    "S Kron S.T + c I": lambda r: selected(r, kron(r)),
    "T + T": lambda r: selected(r, pl.Toeplitz(column(r)) + of_one_vector(r)),
    "3 T": lambda r: selected(r, 3.0 * pl.Toeplitz(column(r))),
    "Kron + Diag": lambda r: kron(r) + pl.Diag(1 + r.random(N)),
    "T o T": lambda r: pl.HadamardProduct(
        pl.Dense((lambda x: x @ x.T + N * np.eye(N))(r.random((N, N))), "pos"), of_one_vector(r)
    ),
    "(T + c I)[i, i]": indexed,
    "(T + c I)[i, copy of i]": lambda r: indexed(r, np.copy),
    "M Kron M.T + c I": lambda r: (
        lambda m, k: m @ k @ m.T + 0.5 * pl.Identity(50)
    )(pl.Dense(r.random((50, N))), kron(r)),
    "(T + Diag)[a:, a:]": lambda r: (pl.Toeplitz(column(r)) + pl.Diag(1 + r.random(N)))[5:, 5:],
}  # fmt: skip
OTHER = {
    "S T(c, r) S.T + c I": lambda r: selected(r, pl.Toeplitz(2 * column(r), column(r))),
    "other columns": lambda r: indexed(r, lambda i: i[::-1]),
    "T + T.T of another": lambda r: selected(
        r, pl.Toeplitz(column(r)) + pl.Toeplitz(0.1 * column(r), 0.2 * column(r))
    ),
    "an imaginary c[0]": lambda r: selected(r, pl.Toeplitz(column(r) * np.exp(0.3j))),
}


def factorizations(a, b):
    with pl.explaining() as e:
        x = pl.solve(a, b)
    return x, {s["name"] for p in e.plans for s in p.steps} & {"potrf", "getrf"}


@pytest.mark.parametrize("case", OWN)
def test_what_is_its_own_adjoint_goes_by_cholesky(rng, case):
    a = OWN[case](rng)
    b = rng.standard_normal((a.shape[0], 2))
    x, used = factorizations(a, b)
    assert used == {"potrf"}
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-9, atol=1e-10)
    sign, log = pl.slogdet(a)
    np.testing.assert_allclose((sign, log), np.linalg.slogdet(a.toarray()), rtol=1e-9)


@pytest.mark.parametrize("case", OTHER)
def test_what_only_looks_like_it_does_not(rng, case):
    a = OTHER[case](rng)
    b = rng.standard_normal((a.shape[0], 2))
    x, used = factorizations(a, b)
    assert used == {"getrf"}
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-8, atol=1e-9)


def test_an_array_given_twice_follows_later_writes(rng):
    c = column(rng)
    t = pl.Toeplitz(c, c)
    x = rng.standard_normal(N)
    t @ x
    c[3] = 7.0
    i = np.arange(N)
    np.testing.assert_allclose(t @ x, c[np.abs(i[:, None] - i)] @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("of", [lambda a: pl.LowRank(a), lambda a: pl.LowRank(a, C=np.eye(N) * 2)])
def test_a_low_rank_of_square_parts_is_solved_part_by_part(rng, of):
    t = np.tril(rng.standard_normal((N, N))) + 10 * np.eye(N)
    a, b = of(pl.Triangular(t)), rng.standard_normal(N)
    x, used = factorizations(a, b)
    assert "potrf" not in used
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-9, atol=1e-12)


def test_a_matrix_is_one_operand_however_often_it_is_given(rng):
    """Wherever it lies in memory: the plan of a a^T + I must not depend on an address."""
    kept = []
    for _ in range(200):
        a = rng.standard_normal((12, 12))
        kept.append((a, pl.lazy(a)))
        made = pl.lazy(a) @ pl.lazy(rng.standard_normal((12, 12))) @ pl.lazy(a).T
        whole = made + made.T + kept[-1][1] @ pl.lazy(a).T
        told = pl.solve(whole, pl.lazy(np.ones(12))).explain()
        assert "potrf" in {s["name"] for s in told.steps}
