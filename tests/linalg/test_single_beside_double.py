"""Parameters in single precision beside what is double: the answer is that of the parameters as
given, to double precision, whichever array a rule makes of them on the way."""

import numpy as np
import pytest
import ref
import samples
import scipy.sparse as sp

import pylinop as pl

KINDS = """Dense Diag Circulant Toeplitz Hankel Tridiagonal Banded Convolution Triangular Sparse
MultilevelToeplitz LowRankUpdate Householder BlockDiag Kron KronSum KhatriRao HadamardProduct
SparseTriangular Congruence Root Eigen Block MatVec""".split()
WIDE = {"float32": "float64", "complex64": "complex128"}


def operand(kind, dtype, n=4):
    drawn = samples.leaf(kind, np.random.default_rng(7), n, n, dtype, invertible=True)
    return ref.build(drawn), np.asarray(ref.dense(drawn, np.dtype(WIDE[dtype])))


def close(got, want):
    assert got.dtype.char in "dD"
    assert np.abs(got - want).max() <= 1e-11 * max(np.abs(want).max(), 1e-3)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind(kind, dtype):
    A, a = operand(kind, dtype)
    B, b = operand("Circulant", dtype)
    x = samples.values(np.random.default_rng(3), (4,), WIDE[dtype])
    D, d = pl.Diag(x), np.diag(x)
    forms = {
        "A": (A, a),
        "A B": (A @ B, a @ b),
        "inv(A) B": (pl.inv(A) @ B, np.linalg.solve(a, b)),
        "inv(A) + B": (pl.inv(A) + B, np.linalg.inv(a) + b),
        "A + 0.1 B": (A + 0.1 * B, a + 0.1 * b),
        "A^3": (A**3, a @ a @ a),
    }
    for C, c in forms.values():
        inverse = np.linalg.inv(c)
        close(C @ x, c @ x)
        close(C.H @ x, c.conj().T @ x)
        close(pl.solve(C, x), inverse @ x)
        close(pl.inv(C).T @ x, inverse.T @ x)
        close((pl.inv(C) @ D).toarray(), inverse @ d)
        close(pl.diagonal(C @ D), np.diag(c) * x)
        close(pl.diagonal(pl.inv(C) @ D), np.diag(inverse) * x)
        close(pl.trace(pl.inv(C) @ D), np.trace(inverse @ d))
        close(np.float64(pl.slogdet(C @ D)[1]), np.linalg.slogdet(c @ d)[1])


@pytest.mark.parametrize("dtype", WIDE)
def test_of_convolutions_that_wrap_round_more_than_once(dtype):
    taps = samples.values(np.random.default_rng(1), (11,), dtype)
    taps[0] += 20
    C = pl.Convolution(taps, 3, mode="circular")
    column = np.zeros(3, WIDE[dtype])
    np.add.at(column, np.arange(11) % 3, taps)
    c = np.stack([np.roll(column, j) for j in range(3)], axis=1)
    x = np.arange(1.0, 4)
    close(pl.inv(C) @ x, np.linalg.solve(c, x))
    close(pl.solve(pl.inv(C), pl.inv(C) @ x), x)
    close(pl.diagonal(pl.inv(C) @ pl.Diag(x)), np.diag(np.linalg.inv(c)) * x)


def test_of_functions():
    r = np.random.default_rng(2)
    n = 6
    a = (r.standard_normal((n, n)) + 9 * np.eye(n)).astype(np.float32)
    b = r.standard_normal((n, n)).astype(np.float32)

    def real(x):
        assert x.dtype.kind == "f"  # asked by real columns, of whatever is solved for
        return a @ x

    A = pl.MatVec((n, n), real, dtype=np.float32)
    shifted = a.astype(float) + 0.1 * np.eye(n)
    for x in (r.standard_normal(n), r.standard_normal(n) + 1j * r.standard_normal(n)):
        close(pl.solve(A + 0.1 * pl.Identity(n), x), np.linalg.solve(shifted, x))
        close(pl.multiply(A + 0.1 * pl.Identity(n), pl.Dense(b)) @ x, (shifted * b) @ x)
    assert pl.solve(A, np.ones(n, np.float32)).dtype == np.float32


def test_diagonals_between_sparse_matrices(rng):
    """What stands between them is added up in the precision of the whole."""
    n = 40
    s = sp.random(n, n, 0.1, random_state=1, format="csr")
    d, u = rng.uniform(1, 2, n).astype("f"), rng.standard_normal((n, 5)).astype("f")
    S, wide = pl.Sparse(s), d.astype(float)
    low = u.astype(float) @ u.T
    for W, w in (
        (pl.Diag(d) + pl.Identity(n), np.diag(wide + 1)),
        (pl.LowRankUpdate(pl.Diag(d), u) + pl.Identity(n), np.diag(wide + 1) + low),
    ):
        due = s.toarray() @ w @ s.toarray().T
        np.testing.assert_allclose((S @ W @ S.T).diagonal(), np.diag(due), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose((S @ W @ S.T).toarray(), due, rtol=1e-12, atol=1e-12)
