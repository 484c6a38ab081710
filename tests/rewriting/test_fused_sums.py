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
