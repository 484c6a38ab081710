"""Gradients of determinants by the blocks of a BlockTridiagonal: blocks of its inverse."""

import numpy as np
import pytest
from gradients.differences import check

import pylinop as pl

RNG = np.random.default_rng(71)
SIZES = [(1, 1), (1, 3), (2, 1), (3, 2), (5, 7), (4, 8), (7, 9), (3, 16), (20, 10), (2, 0)]


def blocks(N, b, dtype):
    """Below, on and above the diagonal."""

    def drawn(*shape):
        a = 0.3 * RNG.standard_normal(shape)
        return a + 0.3j * RNG.standard_normal(shape) if dtype == "complex128" else a

    D = drawn(N, b, b)
    D = D + D.conj().swapaxes(-1, -2) + 4 * max(1, b) * np.eye(b)
    return drawn(N - 1, b, b), D, drawn(N - 1, b, b)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("N", "b"), SIZES)
def test_of_the_determinant(N, b, dtype):
    L, D, U = blocks(N, b, dtype)

    def general(L, D, U):
        return pl.slogdet(pl.BlockTridiagonal(L, D, U))[1]

    def turned(L, D, U):
        return pl.slogdet(pl.BlockTridiagonal(L, D, U).T)[1]

    def positive(L, D):
        own = 0.5 * (D + np.conj(np.swapaxes(D, -1, -2)))
        return np.real(pl.logdet(pl.BlockTridiagonal(L, own, assume_a="pos")))

    with pl.config(check_plans=True, verify=True):
        check(general, L, D, U)
        check(turned, L, D, U)
        check(positive, L, D)


def test_of_stacks():
    L, D, U = (np.stack([x, 1.1 * x]) for x in blocks(4, 3, "float64"))
    check(lambda L, D, U: np.sum(pl.slogdet(pl.BlockTridiagonal(L, D, U))[1]), L, D, U)


def test_where_a_block_on_the_diagonal_is_singular():
    """The sweep by blocks fails there, the matrix does not."""
    L, U = np.ones((1, 1, 1)), np.ones((1, 1, 1))
    check(lambda L, D, U: pl.slogdet(pl.BlockTridiagonal(L, D, U))[1], L, np.zeros((2, 1, 1)), U)


def test_no_matrix_of_all_rows():
    L, D, U = blocks(500, 6, "float64")

    def f(L, D, U):
        return pl.slogdet(pl.BlockTridiagonal(L, D, U))[1]

    with pl.config(memory_limit=3000 * 3000 * 4):  # bytes: a dense form takes twice as many
        check(f, L, D, U)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("b, m", [(1, 40), (3, 10), (3, 11), (3, 20), (8, 20), (9, 20)])
def test_within_a_band_by_how_it_is_written(b, m, dtype):
    rng = np.random.default_rng([b, m])

    def blocks(n):
        x = rng.standard_normal((n, b, b))
        return (x + 1j * rng.standard_normal(x.shape) if dtype == np.complex128 else x) / (4 * b)

    given = [x.astype(dtype) for x in (blocks(m - 1), blocks(m), blocks(m - 1))]
    d = (3 + rng.random(b * m)).astype(dtype)
    forms = {
        "half": lambda P: (P + P.T) * 0.5 + pl.Diag(d),
        "turned": lambda P: P.T + pl.Diag(d),
        "adjoint": lambda P: 2.0 * pl.Diag(d) - 0.7 * P.H,
    }
    y = rng.standard_normal(b * m).astype(dtype)
    for name, form in forms.items():

        def loss(made, L, D, U, form=form):
            A = form(made(L, D, U))
            return np.real(pl.slogdet(A)[1]) + np.real(np.conj(y) @ pl.solve(A, y))

        def structured(*args):
            return loss(pl.BlockTridiagonal, *args)

        def dense(*args):
            return loss(lambda *x: pl.Dense(whole(*x)), *args)

        def whole(L, D, U):
            def at(x, k, p):
                return pl.Kron(
                    np.eye(m)[:, k + (p < 0)][:, None] @ np.eye(m)[k + (p > 0)][None], x[k]
                )

            parts = [at(x, k, p) for x, p in ((L, -1), (D, 0), (U, 1)) for k in range(x.shape[0])]
            return sum(parts[1:], parts[0])

        got = pl.grad(structured, (0, 1, 2))(*given)
        due = pl.grad(dense, (0, 1, 2))(*(x.astype(np.result_type(x, 1.0)) for x in given))
        for g, w in zip(got, due, strict=True):
            assert g.dtype == dtype
            np.testing.assert_allclose(
                g, w, rtol=0, atol=2e3 * np.finfo(dtype).eps * np.abs(w).max(), err_msg=name
            )
