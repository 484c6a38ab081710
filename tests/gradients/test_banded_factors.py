"""Precisions by a banded factor, P = L L^H or L^H L: derivatives of what is read of P^-1 beside the
same loss of dense arrays; without n x n arrays, however the bands were put together."""

import numpy as np
import pytest

import pylinop as pl


def bands(r, n, width, dtype):
    ab = r.standard_normal((width + 1, n)) / 4
    if np.dtype(dtype).kind == "c":
        ab = ab + 1j * r.standard_normal((width + 1, n)) / 4
    ab[0] = 1.5 + np.abs(ab[0])
    return ab.astype(dtype)


def dense_of(ab, upper):
    """L as a dense formula."""
    n = ab.shape[1]
    where = [np.eye(n, k=k if upper else -k) for k in range(ab.shape[0])]
    rows = [ab[ab.shape[0] - 1 - k] if upper else ab[k] for k in range(ab.shape[0])]
    return sum(pl.Dense(w) @ pl.Diag(x) for w, x in zip(where, rows, strict=True))


def loss_of(L, w, Y, turned):
    P = L.H @ L if turned else L @ L.H
    return (
        np.sum(w * pl.diagonal(pl.inv(P)).real)
        + np.sum(pl.diagonal(pl.inv(P)).real ** 2)
        + np.sum(np.conj(Y) * (P @ Y)).real
        - 3 * pl.logdet(P).real
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n, width", [(6, 1), (9, 2), (33, 1), (40, 3), (90, 2)])
def test_beside_dense(n, width, upper, turned, dtype):
    r = np.random.default_rng([n, width])
    ab = bands(r, n, width, dtype)
    if upper:
        ab = ab[::-1].copy()
    w = r.random(n)
    Y = r.standard_normal((n, 2)).astype(dtype)

    def banded(ab):
        return loss_of(pl.Banded((0, width) if upper else (width, 0), ab), w, Y, turned)

    def dense(ab):
        return loss_of(dense_of(ab, upper), w, Y, turned)

    if upper and width:  # where what stands outside the matrix is not read
        for k in range(1, width + 1):
            ab[width - k, :k] = 0
    found, due = pl.value_and_grad(banded)(ab), None
    if not upper:
        due = pl.value_and_grad(lambda ab: dense(ab))(ab)
        for k in range(1, width + 1):
            due[1][k, n - k :] = 0
        assert abs(found[0] - due[0]) <= 1e-11 * abs(due[0])
        assert np.abs(found[1] - due[1]).max() <= 1e-10 * np.abs(due[1]).max()
    d = r.standard_normal(ab.shape).astype(ab.dtype)
    h = 1e-3
    at = [float(pl.evaluate(banded(pl.lazy(ab + t * h * d)))) for t in (-3, -2, -1, 1, 2, 3)]
    slope = (45 * (at[3] - at[2]) - 9 * (at[4] - at[1]) + at[5] - at[0]) / (60 * h)
    assert abs(np.sum(np.conj(found[1]) * d).real - slope) <= 1e-8 * max(1, abs(slope))


@pytest.mark.parametrize("made", ["leaf", "stack", "vstack", "concatenate", "flat"])
def test_no_square_array_however_it_is_made(made):
    n = 500
    r = np.random.default_rng(3)
    d, e = 2 + r.random(n), r.random(n - 1) / 4
    Y = r.standard_normal((n, 3))

    def joined(d, e):
        rows = [d, np.concatenate([e, [0.0]])]
        if made == "stack":
            return np.stack(rows)
        if made == "vstack":
            return np.vstack(rows)
        if made == "concatenate":
            return np.concatenate([np.reshape(x, (1, n)) for x in rows])
        return np.reshape(np.concatenate(rows), (2, n))

    def f(d, e):
        ab = joined(d, e) if made != "leaf" else d
        return loss_of(pl.Banded((1, 0), ab), np.ones(n), Y, False)

    first = np.stack([d, np.append(e, 0.0)]) if made == "leaf" else d
    with pl.config(memory_limit=1_500_000):
        found = pl.grad(f, argnums=0 if made == "leaf" else (0, 1))(first, e)
    due = pl.grad(lambda ab: loss_of(pl.Banded((1, 0), ab), np.ones(n), Y, False))(
        np.stack([d, np.append(e, 0.0)])
    )
    if made == "leaf":
        assert np.array_equal(found, due)
    else:
        assert np.allclose(found[0], due[0], rtol=1e-12, atol=1e-14)
        assert np.allclose(found[1], due[1, :-1], rtol=1e-12, atol=1e-14)


def test_parts_of_one_gradient_together_are_read_off_one_array():
    """Slices of it took the matrices that they shared as values, n x n."""
    n = 500
    r = np.random.default_rng(4)
    ab = pl.lazy(np.stack([2 + r.random(n), r.random(n) / 4]))
    value = loss_of(pl.Banded((1, 0), ab), np.ones(n), r.standard_normal((n, 3)), False)
    g = pl.gradients(value, ab)
    with pl.config(memory_limit=1_500_000):
        first, second = pl.evaluate(g[0], g[1, :-1])
    whole = pl.evaluate(g)
    assert np.array_equal(first, whole[0]) and np.array_equal(second, whole[1, :-1])
