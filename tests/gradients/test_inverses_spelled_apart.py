"""Gradients of traces and determinants of inverses of low-rank updates whose two sides are arrays
of their own, which are not known to be each other's transpose: by the update, as of one array."""

import numpy as np
import pytest

import pylinop as pl


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


LOSSES = {
    "trace": lambda S: np.real(pl.trace(S)),
    "with its determinant": lambda S: np.real(pl.trace(S)) - pl.slogdet(S)[1],
    "determinant": lambda S: pl.slogdet(S)[1],
    "weighted diagonal": lambda S: np.sum(np.cos(np.arange(S.shape[0])) * np.real(pl.diagonal(S))),
    "trace of its square": lambda S: np.real(pl.trace(S @ S)),
    "transposed": lambda S: np.real(pl.trace(S.T)) + np.real(pl.trace(S.T @ S.T)),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("n, k", [(3, 1), (15, 2), (17, 2), (40, 3)])
def test_gradients(n, k, dtype, loss):
    rng = np.random.default_rng(n)
    U, V = drawn(rng, dtype, n, k) / np.sqrt(n), drawn(rng, dtype, k, n) / np.sqrt(n)
    params = rng.uniform(1, 2, n), rng.uniform(0.5, 1, k), U, V

    def f(d, c, U, V):
        return LOSSES[loss](pl.inv(pl.lazy(U) @ pl.Diag(c) @ V + pl.Diag(d)))

    def dense(d, c, U, V):
        return float(LOSSES[loss](pl.Dense(np.linalg.inv((U * c) @ V + np.diag(d)))))

    grads = pl.grad(f, argnums=(0, 1, 2, 3))(*params)
    dirs = [drawn(rng, p.dtype, *p.shape) for p in params]
    due, h = 0.0, 1e-3
    for c, j in ((3 / 4, 1), (-3 / 20, 2), (1 / 60, 3)):
        up, down = ([p + s * j * h * v for p, v in zip(params, dirs)] for s in (1, -1))
        due += c * (dense(*up) - dense(*down)) / h
    found = sum(np.sum(np.real(np.conj(g) * v)) for g, v in zip(grads, dirs))
    assert abs(found - due) < 1e-7 * max(1, abs(due))


def test_no_matrix_of_all_rows_is_made():
    n, rng = 600, np.random.default_rng(0)
    U = rng.standard_normal((n, 4)) / np.sqrt(n)
    V = rng.standard_normal((4, n)) / np.sqrt(n)

    def f(d):
        return pl.trace(pl.inv(pl.lazy(U) @ V + pl.Diag(d)))

    with pl.explaining() as e:
        pl.grad(f)(rng.uniform(1, 2, n))
    ran = [s for s in e.steps if s["took"] is not None]
    assert not [s for s in ran if f"({n}, {n})" in s["writes"]]
