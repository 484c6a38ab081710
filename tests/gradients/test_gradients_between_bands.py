"""Gradients of traces of inverses of bands, and second derivatives of their determinants, read
A^-1 X A^-1 on the band alone: no n x n array. What is not known to be accurate goes by the dense
form."""

import re

import numpy as np
import pytest
from gradients.differences import check, check_second
from gradients.test_memory_of_gradients import gradients, most

import pylinop as pl


def trace(A):
    return np.real(pl.trace(pl.inv(A)))


def logdet(A):
    return pl.slogdet(A)[1]


def losses(n, dtype=float):
    rng = np.random.default_rng(n)
    more = (lambda *s: 1j * rng.standard_normal(s)) if dtype is complex else (lambda *s: 0.0)
    draw = lambda *s: rng.standard_normal(s) + more(*s)
    far = max(n - 1, 0)
    low, main, up = 0.5 * draw(far), 4 + 0.3 * draw(n), 0.5 * draw(far)
    real = 4 + rng.random(n)
    b = max(1, n // 2)
    blocks = 0.3 * draw(b - 1, 2, 2), 5 * np.eye(2) + 0.2 * draw(b, 2, 2), 0.3 * draw(b - 1, 2, 2)
    c = max(2, n // 4)
    wide = 0.2 * draw(c - 1, 4, 4), 6 * np.eye(4) + 0.2 * draw(c, 4, 4), 0.2 * draw(c - 1, 4, 4)
    five = 0.3 * draw(5, n)
    five[2] += 5
    T, w, weights = pl.Tridiagonal, real / 4, rng.random(2 * b)
    found = {
        "Tridiagonal": (lambda l, d, u: trace(T(l, d, u)), (low, main, up)),
        "its transpose": (lambda l, d, u: trace(T(l, d, u).T), (low, main, up)),
        "its adjoint": (lambda l, d, u: trace(2 * T(l, d, u).H), (low, main, up)),
        "declared": (lambda d, u: trace(T(u, d, u, assume_a="pos")), (real, 0.3 * np.real(up))),
        "plus c I": (
            lambda d, s: trace(T(low, d, up) + s * pl.Identity(n)),
            (main, np.array(0.4)),
        ),
        "Banded": (lambda ab: trace(pl.Banded((2, 2), ab)), (five,)),
        "Banded, one sided more": (lambda ab: trace(pl.Banded((1, 2), ab)), (five[:4] + 0,)),
        "BlockTridiagonal": (lambda l, d, u: trace(pl.BlockTridiagonal(l, d, u)), blocks),
        "blocks of four rows": (lambda l, d, u: trace(pl.BlockTridiagonal(l, d, u)), wide),
        "weighted": (
            lambda l, d, u: np.real(np.sum(w * pl.diagonal(pl.inv(T(l, d, u))))),
            (low, main, up),
        ),
        "weighted blocks": (
            lambda l, d, u: np.real(
                np.sum(weights * pl.diagonal(pl.inv(pl.BlockTridiagonal(l, d, u))))
            ),
            blocks,
        ),
        "logdet": (lambda l, d, u: logdet(T(l, d, u)), (low, main, up)),
        "logdet, declared": (
            lambda d, u: logdet(T(u, d, u, assume_a="pos")),
            (real, 0.3 * np.real(up)),
        ),
        "logdet, Banded": (lambda ab: logdet(pl.Banded((2, 2), ab)), (five,)),
        "logdet, blocks": (lambda l, d, u: logdet(pl.BlockTridiagonal(l, d, u)), blocks),
    }
    return found


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [4, 5, 6, 7, 8, 9, 12, 13, 40])
@pytest.mark.parametrize("name", losses(4))
def test_against_differences(name, n, dtype):
    f, args = losses(n, dtype)[name]
    with pl.config(check_plans=True):
        check(f, *args)
        check_second(f, *args)


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("name", losses(4))
def test_no_array_of_all_entries(name):
    n = 720
    f, args = losses(n)[name]
    assert most(lambda: gradients(f, args)) < 0.3 * n * n * 8
    if "logdet" in name:
        numbers, along = tuple(range(len(args))), tuple(0.1 * a for a in args)
        assert most(lambda: pl.hvp(f, numbers)(*args, along)) < 0.3 * n * n * 8


def dense(l, d, u):
    return np.diag(d) + np.diag(l, -1) + np.diag(u, 1)


def due(l, d, u):
    """The gradient of tr(A^-1) by the dense form."""
    inverse = np.linalg.inv(dense(l, d, u))
    g = -(inverse @ inverse).T
    return np.diagonal(g, -1), np.diagonal(g), np.diagonal(g, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("small", [0.0, 1e-14, 1e-3])
def test_what_exchanges_of_rows_would_mend_goes_by_the_dense_form(small, scale, dtype):
    """Pivots that are small beside their rows: LU without exchanges loses what these say."""
    rng = np.random.default_rng(2)
    n = 60
    l, d, u = (scale * (2 + rng.random(k)) for k in (n - 1, n, n - 1))
    d[::2] *= small
    d[1::2] *= 3
    given = [a.astype(dtype) for a in (l, d, u)]
    found = pl.grad(lambda *a: trace(pl.Tridiagonal(*a)), (0, 1, 2))(*given)
    best = due(*(a.astype(float) for a in given))
    cond = np.linalg.cond(dense(*given).astype(float))
    for a, b in zip(found, best, strict=True):
        assert np.abs(a - b).max() <= 50 * n * cond * np.finfo(dtype).eps * np.abs(b).max()


@pytest.mark.parametrize("assume", [None, "sym", "pos"])
@pytest.mark.parametrize("gap", [1e-3, 1e-8])
def test_near_singular(gap, assume):
    """The Laplacian of a line, moved to a smallest eigenvalue of `gap`."""
    n = 80
    lowest = 2 - 2 * np.cos(np.pi / (n + 1))
    d, u = np.full(n, 2 - lowest + gap), np.full(n - 1, -1.0)
    f = lambda d, u: trace(pl.Tridiagonal(u, d, u, assume_a=assume))
    g = pl.grad(f)(d, u)
    want = due(u, d, u)[1]
    np.testing.assert_allclose(g, want, atol=1e-13 / gap * np.abs(want).max())


def test_not_definite_and_singular():
    n = 30
    d, u = np.full(n, 3.0), np.full(n - 1, 1.0)
    d[7] = -1.0
    f = lambda d: trace(pl.Tridiagonal(u, d, u))
    np.testing.assert_allclose(pl.grad(f)(d), due(u, d, u)[1], atol=1e-12)
    d[:] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(lambda d: trace(pl.Tridiagonal(u[:28], d, u[:28])))(d[:29])


def test_nan_and_strides():
    rng = np.random.default_rng(1)
    n = 50
    l, d, u = (
        rng.random((n, 3)).T[:, : n - 1],
        4 + rng.random(2 * n)[::2],
        rng.random(2 * n)[1:-1:2],
    )
    l, u = l[0], u[::1]
    f = lambda l, d, u: trace(pl.Tridiagonal(l, d, u))
    for a, b in zip(pl.grad(f, (0, 1, 2))(l, d, u), due(l, d, u), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)
    d[4] = np.nan
    assert np.isnan(pl.grad(f, 1)(l, d, u)).any()


def test_single_beside_double():
    """The whole in the accuracy of the whole's dtype."""
    rng = np.random.default_rng(8)
    n = 40
    l, d, u = rng.random(n - 1).astype("f4"), 4 + rng.random(n), rng.random(n - 1).astype("f4")
    g = pl.grad(lambda d: trace(pl.Tridiagonal(l, d, u)))(d)
    want = due(l.astype(float), d, u.astype(float))[1]
    np.testing.assert_allclose(g, want, rtol=1e-12)


def test_steps_are_counted():
    n = 500
    d, u = np.full(n, 4.0), np.full(n - 1, 1.0)
    with pl.explaining() as record:
        pl.grad(lambda d: trace(pl.Tridiagonal(u, d, u)))(d)
    assert len(re.findall(r"\d+ band-between ", "\n".join(map(str, record.plans)))) == 1
