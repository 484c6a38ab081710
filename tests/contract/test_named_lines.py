"""What is assumed of a Tridiagonal, Banded or BlockTridiagonal says which half of its numbers is
the matrix: no function reads the rest."""

import numpy as np
import pytest

import pylinop as pl

N = 6


def _other(word):
    return np.array if word == "sym" else np.conjugate


def _whole(upper, d, word):
    upper, d = np.triu(upper, 1), d if word == "sym" else np.real(d)
    return upper + np.diag(d) + _other(word)(upper).T


def drawn(word, kind, fill):
    """(operator, its dense form)."""
    rng = np.random.default_rng([len(word), kind == "c"])

    def numbers(*shape):
        return rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "c" else 0)

    d, du = numbers(N) + 12, numbers(N - 1)
    yield pl.Tridiagonal(np.full_like(du, fill), d, du, word), _whole(np.diag(du, 1), d, word)
    ab = numbers(5, N)
    ab[2] += 12
    ab[3:] = fill
    up = np.diag(ab[1, 1:], 1) + np.diag(ab[0, 2:], 2)
    yield pl.Banded((2, 2), ab, word), _whole(up, ab[2], word)
    for b in (2, 9):
        low, D = numbers(2, b, b), numbers(3, b, b) + 30 * np.eye(b)
        M = np.zeros((3 * b, 3 * b), low.dtype)
        for i in range(3):
            at = slice(i * b, i * b + b)
            M[at, at] = _whole(D[i], D[i].diagonal(), word)
            if i < 2:
                M[(i + 1) * b : (i + 2) * b, at] = low[i]
                M[at, (i + 1) * b : (i + 2) * b] = _other(word)(low[i]).T
        D[:, np.arange(b)[:, None] > np.arange(b)] = fill
        yield pl.BlockTridiagonal(low, D, np.full_like(low, fill), word), M


def functions(n):
    rng = np.random.default_rng(3)
    x, X = rng.normal(size=n), rng.normal(size=(n, 3))
    D, I = pl.Diag(5 + rng.random(n)), pl.Identity(n)
    return {
        "dense": lambda A: A.toarray(),
        "products": lambda A: A @ x + A.T @ x + A.H @ x + A.conj() @ x + (A @ X)[:, 0],
        "solve": lambda A: pl.solve(A, x) + pl.solve(A.T, x) + pl.solve(A + D, x),
        "sums": lambda A: (2 * A - 3j * A + A.T + D + A.H).toarray(),
        "multiples": lambda A: (-A + I).toarray() + (A.conj() + D).toarray(),
        "elements": lambda A: np.array([A[1, 0], A[0, 1], A[2, 2]]),
        "slices": lambda A: A[1:4, 1:4].toarray() + A[2:5, :3].toarray(),
        "diagonals": lambda A: pl.diagonal(A, -1) + pl.diagonal(A, 1),
        "inverse": lambda A: pl.diagonal(pl.inv(A)) + pl.trace(pl.inv(A) @ A),
        "determinants": lambda A: np.array([*pl.slogdet(A), *pl.slogdet(A - 2 * I)]),
        "norms": lambda A: np.array([pl.matrix_norm(A, k) for k in (1, 2, "fro", np.inf)]),
        "svdvals": lambda A: pl.svdvals(A),
        "eigenvalues": lambda A: pl.eigvalsh(A + A.H),
        "expm": lambda A: pl.expm(0.1 * A).toarray(),
        "sparse": lambda A: A.tosparse().toarray(),
        "lazily": lambda A: np.asarray(np.sin(pl.lazy(A)) + pl.lazy(A)[0]),
        "beside a callable": lambda A: (A + pl.MatVec((n, n), lambda v: 2 * v)) @ x,
        "wide numbers": lambda A: (A @ x.astype("g")).astype(complex),
        "cast": lambda A: A.astype(np.complex128).toarray(),
    }


@pytest.mark.parametrize("fill", [7.0, np.nan])
@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("word", ["sym", "her", "pos"])
def test_values_by_the_named_half(word, kind, fill):
    wrong = []
    for A, M in drawn(word, kind, fill):
        with pl.config(verify=True):
            pl.solve(A, np.ones(len(M)))
            A @ np.ones(len(M))
        for name, f in functions(len(M)).items():
            want, got = f(pl.Dense(M)), f(A)
            if not np.allclose(want, got, rtol=1e-9, atol=1e-9):
                wrong.append((type(A).__name__, name))
    assert not wrong


def test_a_half_that_is_written_to_is_read_anew():
    du, d = np.ones(3), np.full(4, 5.0)
    A = pl.Tridiagonal(np.zeros(3), d, du, "pos")
    A @ np.ones(4), pl.solve(A, np.ones(4))
    du[1] = 2
    M = np.diag(d) + np.diag(du, 1) + np.diag(du, -1)
    np.testing.assert_allclose(A @ np.ones(4), M @ np.ones(4))
    np.testing.assert_allclose(pl.solve(A, np.ones(4)), np.linalg.solve(M, np.ones(4)))
