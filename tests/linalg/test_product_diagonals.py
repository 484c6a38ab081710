"""Diagonals and traces of products of structured matrices: part by part, or by few unit vectors at
a time."""

import re

import numpy as np
import pytest

import pylinop as pl


def draw(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def operands():
    rng = np.random.default_rng(0)

    def dense(*shape):
        return pl.Dense(draw(rng, *shape))

    k = pl.Kron(dense(3, 4), dense(5, 2))
    m = pl.Kron(dense(3, 4), dense(5, 2))
    wide = pl.Block([[k, pl.Toeplitz(draw(rng, 15), draw(rng, 15))]])
    grid = pl.Block([[k, dense(15, 3)], [pl.Zeros((7, 8)), dense(7, 3)]])
    uneven = pl.Block([[dense(6, 2), pl.Kron(dense(2, 3), dense(3, 2))]])
    return {
        "Kron.H @ Kron": k.H @ m,
        "Kron @ Kron.T": k @ m.T,
        "vstack.T @ vstack": pl.vstack([k, m]).T @ pl.vstack([m, k]),
        "vstack.H @ vstack": pl.vstack([k, m]).H @ pl.vstack([k, m]),
        "row @ row.H": wide @ wide.H,
        "row.H @ row": wide.H @ wide,
        "grid @ grid.H": grid @ grid.H,
        "grid.H @ grid": grid.H @ grid,
        "uneven": uneven.H @ uneven,
        "other sizes": uneven @ pl.Block([[dense(2, 4)], [dense(6, 4)]]),
        "sum": 2.0 * (wide @ wide.H) + pl.Identity(15),
        "batch": pl.vstack([pl.Dense(draw(rng, 2, 3, 4)), pl.Dense(draw(rng, 3, 4))]).H
        @ pl.vstack([pl.Dense(draw(rng, 3, 4)), pl.Toeplitz(draw(rng, 3), draw(rng, 4))]),
        "of few numbers": pl.Block([[pl.Identity(4), pl.Diag([1, 2, 3, 4])]])
        @ pl.Block([[pl.Diag([5, 6, 7, 8])], [pl.Identity(4)]]),
    }


@pytest.mark.parametrize("name", list(operands()))
def test_right(name):
    P = operands()[name]
    expected = P.toarray()
    for k in (0, 1, -2):
        got = pl.diagonal(P, k)
        np.testing.assert_allclose(got, np.diagonal(expected, k, -2, -1), rtol=1e-11, atol=1e-11)
        assert got.dtype == expected.dtype
    if P.shape[-1] == P.shape[-2]:
        np.testing.assert_allclose(P.trace(), np.trace(expected, 0, -2, -1), rtol=1e-11)


def test_no_dense_form():
    """65,536 columns: 240 GB by dense factors."""
    rng = np.random.default_rng(0)
    m = 256
    a, b = rng.random((m, m)), rng.random((m, m))
    A = pl.vstack([pl.Kron(pl.Dense(a), pl.Dense(b)), pl.Kron(pl.Dense(b), pl.Dense(a))])
    p, q = (a * a).sum(0), (b * b).sum(0)
    expected = np.kron(p, q) + np.kron(q, p)
    with pl.config(memory_limit=16 << 20), pl.explaining() as e:
        np.testing.assert_allclose((A.T @ A).diagonal(), expected, rtol=1e-12)
        np.testing.assert_allclose((A.T @ A).trace(), expected.sum(), rtol=1e-12)
    assert max(int(x) for x in re.findall(r"memory +(\d+) bytes", str(e))) < 16 << 20
    assert isinstance(pl.preconditioner(A.T @ A), pl.Diag)


class Narrow(pl.LinearOperator):
    """Takes eight columns and has no room for more."""

    def __init__(self, a):
        self.a = a
        super().__init__(a.dtype, a.shape)

    def _matvec(self, x):
        return self.a @ x

    def _matmat(self, x):
        if x.shape[1] > 8:
            raise MemoryError("no room")
        return self.a @ x

    def _rmatvec(self, x):
        return self.a.conj().T @ x


class NoDiagonal(Narrow):
    def _diagonal(self, k=0):
        raise MemoryError("no room")


def test_fewer_unit_vectors():
    """Where memory is short, fewer columns are taken at a time."""
    a = np.random.default_rng(0).random((50, 50))
    np.testing.assert_allclose(Narrow(a).diagonal(), np.diag(a))
    np.testing.assert_allclose(Narrow(a).trace(), np.trace(a))


def test_preconditioner_without_a_diagonal():
    """A diagonal that cannot be had is no reason to fail: the identity is left."""
    a = np.random.default_rng(0).random((50, 50)) / 50
    op = NoDiagonal(a @ a.T + np.eye(50))
    assert isinstance(pl.preconditioner(op), pl.Identity)
    x = pl.solve(op, np.ones(50), method="cg", M="auto")
    np.testing.assert_allclose(op.a @ x, np.ones(50), rtol=1e-6)
