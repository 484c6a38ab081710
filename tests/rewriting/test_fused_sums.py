"""Sums whose parts fuse_sums.c joins, on both sides of its threshold of 16 rows and columns."""

import itertools

import numpy as np
import pytest

import pylinop as pl

SIGNS = list(itertools.product((1, -1), repeat=3))
LEFT = {
    "lazy": lambda a: (pl.lazy(a), a),
    "Dense": lambda a: (pl.Dense(a), a),
    "Diag": lambda a: (pl.Diag(a[0]), np.diag(a[0])),
    "Toeplitz": lambda a: (pl.Toeplitz(a[0]), pl.Toeplitz(a[0]).toarray()),
    "product": lambda a: (pl.Dense(a) @ pl.Dense(a.T), a @ a.T),
}


def combine(signs, parts):
    total = None
    for sign, part in zip(signs, parts):
        if total is None:
            total = part if sign == 1 else -part
        else:
            total = total + part if sign == 1 else total - part
    return total


@pytest.mark.parametrize("n", [15, 16, 17, 40])
@pytest.mark.parametrize("kinds", list(itertools.product(LEFT, repeat=3)), ids="-".join)
def test_sums_of_three_with_signs(rng, kinds, n):
    if "lazy" in kinds and set(kinds) != {"lazy"}:
        kinds = ["Dense" if kind == "lazy" else kind for kind in kinds]
    made = [LEFT[kind](a) for kind, a in zip(kinds, rng.standard_normal((3, n, n)))]
    x = rng.standard_normal((n, n))
    for signs in SIGNS:
        expected = combine(signs, [dense for _, dense in made])
        formula = combine(signs, [part for part, _ in made])
        np.testing.assert_allclose(np.asarray(formula.toarray()), expected, atol=1e-11)
        np.testing.assert_allclose(np.asarray(formula @ x), expected @ x, atol=1e-10)


@pytest.mark.parametrize("n", [15, 16, 17, 40])
def test_parts_of_other_expressions(rng, n):
    a, b, c = rng.standard_normal((3, n, n))
    A, B = pl.Dense(a), pl.Dense(b)
    D, E = pl.Diag(a[0]), pl.Diag(5 + c[0])
    dd, de = np.diag(a[0]), np.diag(5 + c[0])
    made = (pl.Diag(c[0]) + A @ (B - D)).toarray()
    np.testing.assert_allclose(made, np.diag(c[0]) + a @ (b - dd), atol=1e-11)
    system = a - dd @ b + de
    x = pl.solve(A - D @ B + E, np.ones(n))
    np.testing.assert_allclose(system @ x, np.ones(n), atol=1e-9)
    np.testing.assert_allclose(pl.slogdet(A - D @ B + E), np.linalg.slogdet(system), rtol=1e-9)


@pytest.mark.parametrize("n", [15, 16, 17, 40])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_transposed_product_in_a_sum_that_is_a_block(n, batch, rng):
    """The product is made turned; a block of a larger array cannot be written so."""
    U, d = rng.standard_normal((*batch, n, 2)), rng.standard_normal((*batch, 2))
    A, B = rng.standard_normal((2, *batch, n, n))
    E = pl.Eigen(U, d)
    e = (U * d[..., None, :]) @ np.swapaxes(U, -1, -2)
    for op, want in (
        (pl.Block([[E + pl.Dense(A) @ E], [pl.Dense(B)]]), np.concatenate([e + A @ e, B], -2)),
        (pl.Block([[pl.Dense(B), E - pl.Dense(A) @ E]]), np.concatenate([B, e - A @ e], -1)),
        (pl.BlockDiag(E + 2 * pl.Dense(A) @ E, pl.Dense(B)), None),
    ):
        with pl.config(check_plans=True):
            got = op.toarray()
        if want is None:
            got, want = got[..., :n, :n], e + 2 * A @ e
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def rank_ones(rng, dtype, m, n, count):
    columns = rng.standard_normal((count, m, 1)).astype(dtype)
    rows = rng.standard_normal((count, 1, n)).astype(dtype)
    return columns, rows


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m, n", [(15, 16), (16, 15), (16, 16), (40, 70), (200, 33)])
def test_products_of_a_column_and_a_row_are_added_where_the_sum_is(rng, m, n, order, dtype):
    """The matrix is copied once, however many products follow."""
    base = np.asarray(rng.standard_normal((m, n)), dtype, order=order)
    columns, rows = rank_ones(rng, dtype, m, n, 3)
    sum_, want = pl.lazy(base), base.astype("c16")
    for c, u, v in zip((1.0, -0.5, 2.0), columns, rows, strict=True):
        sum_ = sum_ + c * (pl.lazy(u) @ pl.lazy(v))
        want = want + c * (u.astype("c16") @ v.astype("c16"))
    with pl.explaining() as e:
        got = sum_.toarray()
    tol = 1e-5 if dtype == "f4" else 1e-13
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)
    names = [s["name"] for p in e.plans for s in p.steps]
    if min(m, n) >= 16:
        assert names.count("start") == 1 and names.count("gemm-add") == 3
    np.testing.assert_array_equal(base, np.asarray(base, order=order))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_a_column_and_a_row_in_any_layout(rng, stride, turned):
    u, v = rng.standard_normal((60, 2))[:, :1], rng.standard_normal((1, 80))[:, ::stride]
    a = pl.Dense(u) @ pl.Dense(v)
    want = np.outer(u[:, 0], v[0])
    np.testing.assert_allclose((a.T if turned else a).toarray(), want.T if turned else want)
    y = np.full(want.shape, np.nan)
    np.matmul(pl.Dense(u), np.ascontiguousarray(v), out=y)
    np.testing.assert_allclose(y, want)


def test_a_sum_that_is_read_twice_is_not_built_over(rng):
    a, b = rng.standard_normal((2, 40, 40))
    u, v = rng.standard_normal((40, 1)), rng.standard_normal((1, 40))
    A, U, V, B = (pl.lazy(x) for x in (a, u, v, b))
    first = A + B @ B
    got = pl.evaluate(first, first + U @ V)
    np.testing.assert_allclose(got[0], a + b @ b)
    np.testing.assert_allclose(got[1], a + b @ b + u @ v)
