"""The gradient by c of what is made of c A: by A's parameters, without a dense form."""

import re

import numpy as np
import pytest
import scipy.sparse

import pylinop as pl


def near_identity(a):
    return a / (4 * np.abs(a).sum())


def made(name, n, dtype, rng):
    """Parameters of a matrix, and the function that makes it of them, plus what is definite."""

    def drawn(*shape):
        a = rng.standard_normal(shape)
        a = a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a
        return near_identity(a).astype(dtype)

    k = round(n**0.5)
    pattern = scipy.sparse.random_array((n, n), density=0.3, rng=rng, format="csr")
    grid = [n, 1] if k * k != n else [k, k]
    return {
        "diag": ([drawn(n)], pl.Diag),
        "offset": ([drawn(n - 1)], lambda d: pl.Diag(d, 1, (n, n))),
        "tridiagonal": ([drawn(n - 1), drawn(n), drawn(n - 1)], pl.Tridiagonal),
        "toeplitz": ([drawn(n), drawn(n)], pl.Toeplitz),
        "toeplitz of one": ([drawn(n)], pl.Toeplitz),
        "hankel": ([drawn(n), drawn(n)], pl.Hankel),
        "circulant": ([drawn(n)], pl.Circulant),
        "kron": ([drawn(g, g) for g in grid], pl.Kron),
        "kronsum": ([drawn(g, g) for g in grid], pl.KronSum),
        "blockdiag": ([drawn(n - 1, n - 1), drawn(1, 1)], pl.BlockDiag),
        "block": (
            [drawn(n - 1, n - 1), drawn(n - 1, 1), drawn(1, n - 1), drawn(1, 1)],
            lambda a, b, c, d: pl.Block([[a, b], [c, d]]),
        ),
        "sparse": ([near_identity(pattern.data + 1).astype(dtype)],
                   lambda data: pl.Sparse(pattern, data)),
        "quasiseparable": (
            [drawn(n).real.astype(dtype), drawn(n, 2), drawn(n, 2), drawn(n, 2)],
            pl.QuasiSeparable,
        ),
        "lowrank": ([drawn(n, 2), drawn(n, 2)], pl.LowRank),
        "dense": ([drawn(n, n)], pl.lazy),
    }[name]  # fmt: skip


KINDS = (
    "diag offset tridiagonal toeplitz hankel circulant kron kronsum blockdiag block sparse "
    "quasiseparable lowrank dense"
).split() + ["toeplitz of one"]


def dense(make, params, n):
    held = make(*params)
    return np.asarray(held.toarray() if hasattr(held, "toarray") else held).reshape(n, n)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("n", [2, 4, 17, 60])
@pytest.mark.parametrize("name", KINDS)
def test_by_the_number_of_a_multiple(name, n, dtype):
    rng = np.random.default_rng([n, len(name)])
    params, make = made(name, n, dtype, rng)
    y, c, s = rng.standard_normal(n), 1.7, 2.3
    shift = np.eye(n)
    forms = {
        "c A": (lambda A, c: c * A, lambda a: a),
        "c (A.T + 2 A)": (lambda A, c: c * (A.T + 2 * A), lambda a: a.T + 2 * a),
        "A.H / c": (lambda A, c: A.conj().T / c, lambda a: a.conj().T),
    }
    for said, (form, plain) in forms.items():
        for constant in (True, False):

            def f(c, form=form, constant=constant):
                A = pl.lazy(make(*params)) if constant else make(*map(pl.lazy, params))
                K = form(A, c) + s * pl.Identity(n)
                return pl.slogdet(K)[1] + (y @ pl.solve(K, y)).real

            with pl.config(check_plans=True, verify=n < 20):
                value, found = pl.value_and_grad(f)(c)
            a = plain(dense(make, params, n).astype(complex))
            over = said.endswith("/ c")
            K = (a / c if over else c * a) + s * shift
            inverse = np.linalg.inv(K)
            x = inverse @ y
            slope = np.trace(inverse @ a) - (y @ inverse) @ (a @ x)
            slope = (-slope / c**2 if over else slope).real
            assert abs(value - np.linalg.slogdet(K)[1] - (y @ x).real) < 1e-9 * (1 + abs(value))
            assert abs(found - slope) < 1e-9 * (1 + np.abs(a).sum()), (said, constant)


def test_second_derivatives():
    rng = np.random.default_rng(0)
    for name in ("toeplitz of one", "tridiagonal", "sparse", "quasiseparable", "kron"):
        params, make = made(name, 16, "f8", rng)
        y = rng.standard_normal(16)

        def f(c, p, make=make, params=params, y=y):
            K = c * make(p, *params[1:]) + 2 * pl.Identity(16)
            return pl.slogdet(K)[1] + y @ pl.solve(K, y)

        grads = pl.grad(f, (0, 1))
        v, w = 0.7, rng.standard_normal(params[0].shape) / 50
        got = pl.hvp(f, (0, 1))(1.5, params[0], (v, w))
        h, due = 1e-3, [0.0, 0.0]
        for k, weight in {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}.items():
            for sign in (1, -1):
                at = grads(1.5 + sign * k * h * v, params[0] + sign * k * h * w)
                due = [d + sign * weight * g / h for d, g in zip(due, at, strict=True)]
        for a, b in zip(got, due, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "name", ["toeplitz of one", "tridiagonal", "sparse", "quasiseparable", "circulant"]
)
def test_no_matrix_of_n_rows_is_made(name):
    rng, n = np.random.default_rng(1), 576
    params, make = made(name, n, "f8", rng)
    if name == "sparse":
        pattern = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n)], offsets=[-1, 0]).tocsr()
        params, make = [pattern.data / 4], lambda data: pl.Sparse(pattern, data)

    def f(c):
        K = c * make(*map(pl.lazy, params)) + 2.0 * pl.Identity(n)
        return pl.slogdet(K)[1]

    with pl.explaining() as e:
        pl.value_and_grad(f)(1.3)
    shapes = [
        np.prod([int(k) for k in found.split(",") if k.strip()])
        for step in e.explanation.steps
        if step["took"] is not None
        for found in re.findall(r"\(([\d, ]+)\)", step["writes"])
    ]
    assert max(shapes) < n * n / 10


def test_a_multiple_of_a_long_sum():
    T = pl.Tridiagonal(np.full(2, 0.1), np.full(3, 0.5), np.full(2, 0.1))
    for long in (3, 3000):

        def f(c, long=long):
            A = pl.lazy(T)
            total = A
            for _ in range(long - 1):
                total = total + A
            return np.trace(pl.inv(c * total + pl.Identity(3)))

        A = T.toarray() * long
        inverse = np.linalg.inv(1.5 * A + np.eye(3))
        slope = -np.trace(inverse @ A @ inverse)
        np.testing.assert_allclose(pl.grad(f)(1.5), slope, rtol=1e-9)


@pytest.mark.parametrize("c", [0.7, 0.3 - 0.4j])
@pytest.mark.parametrize("n", [3, 300])
def test_a_multiple_of_a_full_matrix(n, c):
    """Equicorrelation, scaled on both sides: by the sum of what the inverse holds."""
    rng = np.random.default_rng(n)
    y, h = rng.standard_normal(n), 0.2 * rng.standard_normal(n)
    full = np.full((n, n), c / abs(c))

    def f(p):
        R = (1 - p["r"]) * pl.Identity(n) + p["r"] * pl.Full((n, n), full[0, 0])
        D = pl.Diag(np.exp(p["h"]))
        H = D @ R @ D
        return pl.slogdet(H)[1] + np.real(y @ pl.inv(H) @ y)

    def by_hand(r, h):
        H = np.exp(h)[:, None] * ((1 - r) * np.eye(n) + r * full) * np.exp(h)
        return np.linalg.slogdet(H)[1] + (y @ np.linalg.solve(H, y)).real

    with pl.explaining() as e:
        value, g = pl.value_and_grad(f)({"r": np.array(0.3), "h": h})
    np.testing.assert_allclose(value, by_hand(0.3, h), rtol=1e-10)
    t = 1e-5
    slope = (by_hand(0.3 + t, h) - by_hand(0.3 - t, h)) / (2 * t)
    np.testing.assert_allclose(g["r"], slope, rtol=1e-6)
    k = rng.standard_normal(n)
    slope = (by_hand(0.3, h + t * k) - by_hand(0.3, h - t * k)) / (2 * t)
    np.testing.assert_allclose(g["h"] @ k, slope, rtol=1e-6)
    whole = [s["name"] for s in e.steps if f"{n}, {n}" in s["writes"] and s.get("took")]
    assert n < 100 or np.iscomplexobj(c) or not whole
