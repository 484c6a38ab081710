"""What a plan keeps of a batch, some of whose matrices went another way: it is found by other plans
only where it is right for all of them."""

import itertools

import numpy as np
import pytest

import pylinop as pl

N = 16


def banded(which, dtype):
    """A batch of two, of which one needs pivots."""
    ab = np.zeros((2, 3, N), dtype)
    ab[:, 0, 1:], ab[:, 1], ab[:, 2, :-1] = 1, 4, 1
    ab[which, 1, 0] = 0
    return ab


KINDS = {
    "Banded": lambda ab: pl.Banded((1, 1), ab),
    "Banded + Diag": lambda ab: pl.Banded((1, 1), ab) + pl.Diag(np.zeros(N)),
    "Tridiagonal + Diag": lambda ab: (
        pl.Tridiagonal(ab[:, 2, :-1].copy(), ab[:, 1].copy(), ab[:, 0, 1:].copy())
        + pl.Diag(np.zeros(N))
    ),
    "beside another dtype": lambda ab: pl.Banded((1, 1), ab) + pl.Diag(np.zeros(N, complex)),
    "low rank": lambda ab: pl.Diag(ab[:, 1] + 1e-7) + pl.LowRank(np.eye(N)[:, :1] * 3.0),
}
ASKED = {
    "diagonal": (
        lambda A: pl.inv(A).diagonal(),
        lambda a: np.diagonal(np.linalg.inv(a), axis1=-2, axis2=-1),
    ),
    "solve": (
        lambda A: pl.inv(A) @ np.ones(N),
        lambda a: np.linalg.solve(a, np.ones((N, 1)))[..., 0],
    ),
    "complex solve": (
        lambda A: pl.inv(A) @ np.full(N, 1j),
        lambda a: np.linalg.solve(a, np.full((N, 1), 1j))[..., 0],
    ),
    "determinant": (lambda A: pl.slogdet(A)[1], lambda a: np.linalg.slogdet(a)[1]),
    "sum with another": (
        lambda A: (pl.inv(pl.Diag(np.full(N, 3 + 0j))) + 2 * pl.inv(A)).diagonal(),
        lambda a: 1 / 3 + 2 * np.diagonal(np.linalg.inv(a), axis1=-2, axis2=-1),
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_in_any_order(kind, which, dtype):
    for first, second in itertools.permutations(ASKED, 2):
        A = KINDS[kind](banded(which, dtype))
        a = A.toarray().astype(np.result_type(A.dtype, np.float64))
        tol = 1e3 * np.finfo(dtype).eps * np.linalg.cond(a).max()
        for name in (first, second):
            ask, due = ASKED[name]
            want = due(a)
            np.testing.assert_allclose(ask(A), want, rtol=0, atol=tol * np.abs(want).max())
