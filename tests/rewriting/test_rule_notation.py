"""What the texts of rules may say: operands either way round, the identity or a multiple of it, and
each operand of a Kron or BlockDiag; of the table's rows and of users'."""

import itertools

import numpy as np
import pytest

import pylinop as pl


@pytest.fixture(autouse=True)
def checked():
    with pl.config(check_plans=True, verify=True):
        yield


def fired(name):
    return next(row["fired"] for row in pl.rules() if row["name"] == name)


@pytest.mark.parametrize("c", [1, 2.5, -1j])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17])
@pytest.mark.parametrize("kind", ["diag", "toeplitz", "tridiagonal", "blockdiag"])
def test_one_row_for_either_order_and_any_multiple(rng, kind, n, c):
    d = rng.standard_normal(n)
    A = {
        "diag": lambda: pl.Diag(d),
        "toeplitz": lambda: pl.Toeplitz(d, d),
        "tridiagonal": lambda: pl.Tridiagonal(d[1:], d, d[1:]),
        "blockdiag": lambda: pl.BlockDiag(rng.standard_normal((n, n)), pl.Diag(d)),
    }[kind]()
    eye = pl.Identity(A.shape[0])
    eye = eye if c == 1 else c * eye
    name = f"close-{kind}-plus-identity"
    dense = A.toarray() + c * np.eye(A.shape[0])
    for a, b in itertools.permutations((A, eye)):
        before = fired(name)
        S = a + b
        assert fired(name) == before + 1
        x = rng.standard_normal(A.shape[0])
        np.testing.assert_allclose(S @ x, dense @ x, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(S.toarray(), dense, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("join", [pl.Kron, pl.BlockDiag])
@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_each_operand(rng, join, parts):
    """More operands than a text has room for."""
    a, b = rng.standard_normal((2, parts, 2, 2)) + 1j * rng.standard_normal((2, parts, 2, 2))
    A, B = join(*a), join(*b)
    x = rng.standard_normal(A.shape[1])
    np.testing.assert_allclose(A.H @ x, A.toarray().conj().T @ x, rtol=1e-12)
    np.testing.assert_allclose((A @ B) @ x, A.toarray() @ (B.toarray() @ x), rtol=1e-11, atol=1e-11)
    if parts < 9:
        np.testing.assert_allclose(
            pl.solve(A, x), np.linalg.solve(A.toarray(), x), rtol=1e-7, atol=1e-7
        )


def test_a_users_rule_of_each_operand(rng):
    a = rng.standard_normal((3, 2, 2))
    pl.register_rule(
        "mine", "(todense@k (view:1 (kron)))", "(todense@k (kron (view:1 ?*)))", cost="always"
    )
    try:
        assert fired("mine") == 0
        K = pl.Kron(*a)
        np.testing.assert_allclose(K.T.toarray(), K.toarray().T)
    finally:
        pl.unregister_rule("mine")


@pytest.mark.parametrize(
    "left, right, why",
    [
        ("(prod ?a ?b)", "(sum* ?a ?b)", "belongs on the left"),
        ("(view@m ?a)", "(kron (view@m ?*))", "stand on the right"),
        ("(view@m (kron))", "?*", "stand on the right"),
        ("(prod ?a ?*)", "?a", "stand on the right"),
        ("(inverse* ?a)", "?a", "two operands go with"),
    ],
)
def test_wrong_texts_are_refused(left, right, why):
    with pytest.raises(ValueError, match=why):
        pl.register_rule("mine", left, right)
