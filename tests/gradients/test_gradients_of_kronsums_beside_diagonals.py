"""Gradients of determinants of KronSum + Diag by the bands it is made of: off diagonals of its
inverse, beside dense forms and differences."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl


def bands(m, seed):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.standard_normal(m - 1), 2 + rng.random(m), 0.3 * rng.standard_normal(m - 1)


@pytest.mark.parametrize("sizes", [(2, 3), (3, 40), (40, 3), (9, 11), (3, 4, 12)])
def test_of_tridiagonal_axes(sizes):
    n = int(np.prod(sizes))
    y = np.random.default_rng(0).standard_normal(n)

    def f(w, *lines):
        axes = [pl.Tridiagonal(*lines[3 * i : 3 * i + 3]) for i in range(len(sizes))]
        K = pl.KronSum(*axes) + pl.Diag(w)
        return pl.slogdet(K)[1] + y @ pl.solve(K, y)

    lines = [b for i, m in enumerate(sizes) for b in bands(m, i)]
    w = 0.5 + np.random.default_rng(1).random(n)
    with pl.config(check_plans=True, verify=True):
        check(f, w, *lines)
        check_second(f, w, *lines)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_beside_dense_forms(dtype):
    m, n = 7, 9
    wide = "complex128" if dtype == "complex128" else "float64"
    (a, b, c), (d, e, f) = ([x.astype(dtype) for x in bands(k, k)] for k in (m, n))
    w = np.linspace(1, 2, m * n).astype(dtype)
    if wide == "complex128":
        b, e = b + 0.3j, e - 0.1j

    def made(lines, kind):
        A, B = pl.Tridiagonal(*lines[:3]), pl.Tridiagonal(*lines[3:])
        if kind:
            return np.real(pl.slogdet(pl.KronSum(A, B) + pl.Diag(w))[1])
        at = (-1, 0, 1)
        first = sum(np.kron(_line(v, k, m), np.eye(n)) for v, k in zip(lines[:3], at, strict=True))
        then = sum(np.kron(np.eye(m), _line(v, k, n)) for v, k in zip(lines[3:], at, strict=True))
        dense = first + then
        return np.real(pl.slogdet(dense + np.diag(w))[1])

    lines = (a, b, c, d, e, f)
    every = tuple(range(6))
    got = pl.grad(lambda *x: made(x, True), every)(*lines)
    wanted = pl.grad(lambda *x: made(x, False), every)(*(x.astype(wide) for x in lines))
    for g, v in zip(got, wanted, strict=True):
        assert np.linalg.norm(g - v) <= (1e-4 if dtype == "float32" else 1e-11) * np.linalg.norm(v)


def _line(v, k, n):
    """A LazyArray on diagonal k of n x n."""
    rows = np.arange(len(v)) + max(0, -k)
    left, right = np.zeros((n, len(v))), np.zeros((len(v), n))
    left[rows, np.arange(len(v))] = 1
    right[np.arange(len(v)), rows + k] = 1
    return (left * v) @ right


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_dense_form():
    m, n = 30, 40
    lines = [*bands(m, 0), *bands(n, 1)]

    def f(*x):
        return pl.logdet(
            pl.KronSum(pl.Tridiagonal(*x[:3]), pl.Tridiagonal(*x[3:])) + pl.Diag(np.ones(m * n))
        )

    held = [pl.lazy(x) for x in lines]
    text = "".join(g.explain() for g in pl.gradients(f(*held), held))
    assert "diagonal-of-partial" in text
    assert "(1200, 1200)" not in text
