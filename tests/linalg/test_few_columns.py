"""Products with two to eight columns or rows, of any layout, on both sides of the sizes at which
they go by BLAS without packing, by products with vectors, or by own loops; and traces of products
whose lines lie side by side."""

import numpy as np
import pytest

import pylinop as pl


def laid(a, layout):
    """The same matrix in rows, in columns, within rows of a larger one, and from its end."""
    if layout == "rows":
        return np.ascontiguousarray(a)
    if layout == "columns":
        return np.asfortranarray(a)
    if layout == "wide":
        room = np.zeros((a.shape[0], a.shape[1] + 3), a.dtype)
        room[:, : a.shape[1]] = a
        return room[:, : a.shape[1]]
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


LAYOUTS = ["rows", "columns", "wide", "back"]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("m, n", [(15, 64), (63, 64), (64, 64), (65, 130), (300, 90), (1300, 800)])
def test_few_columns_and_rows(m, n, dtype, rng):
    if m > 1000 and dtype in "FD":
        m, n = 130, 80
    a = rng.standard_normal((m, n)).astype(dtype)
    if dtype in "FD":
        a = a + 1j * rng.standard_normal((m, n)).astype(dtype)
    near = 2e-6 if dtype in "fF" else 4e-15
    for k in (2, 3, 4, 5, 8, 9):
        x, z = rng.standard_normal((n, k)), rng.standard_normal((k, m))
        for i in range(4):
            A = pl.Dense(laid(a, LAYOUTS[rng.integers(4)]))
            b, c = (laid(v.astype(dtype), LAYOUTS[i]) for v in (x, z))
            size = np.linalg.norm(a.astype("D"), axis=1).max() * np.linalg.norm(b, axis=0).max()
            want = a.astype("D") @ b.astype("D")
            np.testing.assert_allclose(A @ b, want, rtol=0, atol=near * size)
            np.testing.assert_allclose(A.T.T @ b, want, rtol=0, atol=near * size)
            size = np.linalg.norm(a.astype("D"), axis=0).max() * np.linalg.norm(c, axis=1).max()
            want = c.astype("D") @ a.astype("D")
            np.testing.assert_allclose(c @ A, want, rtol=0, atol=near * size)
            np.testing.assert_allclose((A.T @ c.T).T, want, rtol=0, atol=near * size)


@pytest.mark.parametrize("dtype", "fd")
def test_what_is_no_number_stays_in_its_row_and_column(dtype, rng):
    """Also where the result's memory held one before."""
    for n in (70, 400):
        a, x = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal((n, 3)).astype(dtype)
        out = np.full((n, 3), np.nan, dtype)
        A = pl.Dense(a)
        np.testing.assert_allclose(A.matmat(x), a @ x, rtol=1e-3, atol=1e-3)
        out[:] = A @ x
        assert np.isfinite(out).all()
        a[5, 7], x[9, 1] = np.nan, np.inf
        got = A @ x
        bad = ~np.isfinite(got)
        assert bad[5].all() and bad[:, 1].all() and bad.sum() == n + 2


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1025, 2049, 4097])
def test_traces_and_diagonals_of_lines_side_by_side(n, dtype, rng):
    a, b = (rng.standard_normal((40, n)) for _ in range(2))
    if dtype in "FD":
        a, b = a + 1j * b, b - 2j * a
    a, b = a.astype(dtype), b.astype(dtype)
    A, B = pl.Dense(a), pl.Dense(b)
    near = 1e-5 if dtype in "fF" else 1e-13
    for X, x in ((A.T, a.T), (A.H, a.conj().T)):
        want = np.einsum("ij,ji->i", x.astype("D"), b.astype("D"))
        scale = np.einsum("ij,ji->i", abs(x), abs(b)).astype("d")
        assert (abs((X @ B).diagonal() - want) <= near * scale).all()
        assert abs(pl.trace(X @ B) - want.sum()) <= near * scale.sum()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 15, 20, 32, 33])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 40])
def test_columns_of_one_small_definite_matrix_have_their_bits(dtype, n, k):
    """Eight of its columns go side by side, as eight matrices of a batch do: the same bits."""
    rng = np.random.default_rng(n + k)
    A = rng.standard_normal((n, n))
    A = (A @ A.T + n * np.eye(n)).astype(dtype)
    b = rng.standard_normal((n, k)).astype(dtype)
    op = pl.Dense(A, assume_a="pos")
    x = pl.solve(op, b)
    assert np.abs(A @ x - b).max() <= 100 * n * np.finfo(dtype).eps * np.abs(x).max() * n
    for right in (np.asfortranarray(b), np.repeat(b, 2, axis=1)[:, ::2]):
        assert (pl.solve(op, right) == x).all()
    if n <= 32:  # those of more rows are LAPACK's
        assert all((pl.solve(op, b[:, j]) == x[:, j]).all() for j in range(k))
        stack = pl.Dense(np.broadcast_to(A, (9, n, n)), assume_a="pos")
        assert (pl.solve(stack, b) == x).all()
