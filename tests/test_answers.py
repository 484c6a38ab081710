"""Norms, singular values, ranks, eigenvalues, pseudo-inverses and determinants of every kind by its
structure, against numpy.linalg on the dense form."""

import numpy as np
import pytest
import ref
import scipy.linalg
from samples import leaf

import pylinop as pl

ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
KINDS = [*ref.LEAVES, "Hadamard"]
CLOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def instance(kind, rng, m, n, dtype, batch=(), invertible=False):
    """An operator and its dense form in floats, or None."""
    if kind == "Hadamard":
        if m != n or m & (m - 1) or batch:
            return None
        return pl.Hadamard(n, dtype), scipy.linalg.hadamard(n).astype(dtype)
    d = leaf(kind, rng, m, n, dtype, batch, invertible=invertible)
    if d is None:
        return None
    a = ref.dense(d)
    return ref.build(d), np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-2]), *a.shape[-2:]))


def close(got, want, dtype, size=1.0):
    tol = CLOSE[str(np.dtype(dtype))] * np.max(size)
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert np.array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(invalid="ignore"):
        ok = (np.abs(got - want) <= tol) | (got == want)
    assert np.all(ok | np.isnan(want)), (got, want, tol)


def shapes(kind):
    return ((4, 4), (3, 5), (5, 3), (1, 1)) if kind != "Hadamard" else ((4, 4), (2, 2), (1, 1))


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_against_numpy(kind, dtype, rng):
    for m, n in shapes(kind):
        for batch in ((), (2,)):
            for _ in range(3):
                found = instance(kind, rng, m, n, dtype, batch)
                if found is None:
                    continue
                for A, a in views(*found):
                    same_answers(A, a, A.dtype)


def views(A, a):
    yield A, a
    yield A.T, np.swapaxes(a, -1, -2)
    yield A.H, ref.adj(a)
    yield 3 * A, 3 * a


def same_answers(A, a, dtype):
    norm = max(1.0, np.linalg.norm(a, axis=(-2, -1)).max())
    s = np.linalg.svdvals(a)
    for order in ORDERS:
        got = pl.matrix_norm(A, order)
        close(got, np.linalg.matrix_norm(a, ord=order), dtype, 8 * norm)
        assert np.asarray(got).dtype == np.empty(0, dtype).real.dtype
    close(pl.svdvals(A), s, dtype, 8 * norm)
    k = 0.5 * norm
    if np.all(np.abs(s - k) > 1e-3 * norm):
        np.testing.assert_array_equal(pl.matrix_rank(A, tol=k), (s > k).sum(-1))
    if a.shape[-1] == a.shape[-2]:
        close(pl.det(A), np.linalg.det(a), dtype, 50 * norm ** a.shape[-1])
    with np.errstate(all="ignore"):
        worst = np.where(s[..., -1] > 0, s[..., 0] / s[..., -1], np.inf)
    if np.all(worst < 1e3):
        for p in ORDERS if a.shape[-1] == a.shape[-2] else (2, -2):
            want = np.linalg.cond(a, p)
            close(pl.cond(A, p), want, dtype, 8 * worst.max() ** 2 * a.shape[-1])
        P = pl.pinv(A, 1e-5)
        close(P.toarray(), np.linalg.pinv(a, 1e-5), dtype, 50 * worst.max() ** 2 / s[..., -1].min())
    else:
        cut = 1e-2
        if np.all(np.abs(s - cut * s[..., :1]) > 1e-4 * s[..., :1]):
            P = pl.pinv(A, cut)
            close(P.toarray(), np.linalg.pinv(a, cut), dtype, 1e6 / max(s.max(), 1e-3))
