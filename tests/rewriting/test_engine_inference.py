"""What the planner infers of operators from their parts chooses the factorization: too much is a
wrong answer, too little is a saving lost, which the answer does not show."""

import numpy as np
import pytest

import pylinop as pl


def factorizations(plan):
    return {"potrf", "sytrf", "hetrf", "getrf", "gesv"} & {s["name"] for s in plan.steps}


@pytest.mark.parametrize(
    ("first", "second", "hermitian"),
    [(1, 1, True), (2, 2, True), (2, 3, False), (2, -2, False), (1, 3, False)],
)
def test_a_product_beside_its_transpose_is_symmetric_with_one_factor(rng, first, second, hermitian):
    a, b = rng.standard_normal((2, 20, 20))
    c = rng.standard_normal((20, 3))
    whole = first * (pl.lazy(a) @ pl.lazy(b)) + second * (pl.lazy(b).T @ pl.lazy(a).T)
    solved = pl.solve(whole, pl.lazy(c))
    # Cholesky's factorization is tried, and what follows on its failure is a second way.
    expected = {"potrf", "gesv"} if hermitian else {"getrf"}
    assert factorizations(solved.explain()) == expected
    want = np.linalg.solve(first * a @ b + second * (a @ b).T, c)
    np.testing.assert_allclose(solved.toarray(), want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("first", "second", "hermitian"),
    [(2, 2, True), (2 + 1j, 2 - 1j, True), (2 + 1j, 2 + 1j, False), (2, 3, False)],
)
def test_a_product_beside_its_adjoint_is_hermitian_with_conjugate_factors(
    rng, first, second, hermitian
):
    a, b = rng.standard_normal((2, 20, 20)) + 1j * rng.standard_normal((2, 20, 20))
    c = rng.standard_normal((20, 3))
    whole = first * (pl.lazy(a) @ pl.lazy(b)) + second * (pl.lazy(b).H @ pl.lazy(a).H)
    solved = pl.solve(whole, pl.lazy(c))
    assert ("potrf" in factorizations(solved.explain())) == hermitian
    want = np.linalg.solve(first * a @ b + second * (a @ b).conj().T, c)
    np.testing.assert_allclose(solved.toarray(), want, rtol=1e-8, atol=1e-8)
