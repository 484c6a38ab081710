"""Operands of other libraries with an arithmetic of their own: units, variables of modelling
languages, SciPy's sparse constructors."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 5


class Unit(np.ndarray):
    """Numbers with a unit, as libraries for those write them."""

    def __new__(cls, a):
        return np.asarray(a, float).view(cls)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented


class Memory(np.ndarray):
    """A subclass whose numbers are all that it is, as np.memmap."""


def _operator():
    rng = np.random.default_rng(1)
    U = rng.standard_normal((N, 2))
    return pl.Diag(rng.random(N) + 1) + pl.LowRank(U, U)


v, M, one = np.arange(1.0, N + 1), np.eye(N) + 1.0, np.float64(2.0)
FORMS = {
    "K @ v": lambda K, x, v, M, c: K @ v,
    "v @ K": lambda K, x, v, M, c: v @ K,
    "K @ M": lambda K, x, v, M, c: K @ M,
    "K.matvec": lambda K, x, v, M, c: K.matvec(v),
    "K * c": lambda K, x, v, M, c: K * c,
    "c * K": lambda K, x, v, M, c: c * K,
    "K + M": lambda K, x, v, M, c: K + M,
    "Full": lambda K, x, v, M, c: pl.Full((3, 3), c),
    "Diag": lambda K, x, v, M, c: pl.Diag(v),
    "Kron": lambda K, x, v, M, c: pl.Kron(M, np.eye(2)),
    "Kernel": lambda K, x, v, M, c: pl.Kernel("rbf", v[:, None]),
    "solve": lambda K, x, v, M, c: pl.solve(K, v),
    "logdet": lambda K, x, v, M, c: pl.logdet(M),
    "lazy": lambda K, x, v, M, c: pl.lazy(v),
    "x * c": lambda K, x, v, M, c: x * c,
    "c * x": lambda K, x, v, M, c: c * x,
    "v / x": lambda K, x, v, M, c: v / x,
    "x + v": lambda K, x, v, M, c: x + v,
    "maximum": lambda K, x, v, M, c: np.maximum(x, v),
    "where": lambda K, x, v, M, c: np.where(x > 0, x, v),
    "einsum": lambda K, x, v, M, c: np.einsum("i,i", x, v),
    "pl.einsum": lambda K, x, v, M, c: pl.einsum("ij,j", M, v),
    "K / c": lambda K, x, v, M, c: K / c,
    "multi_dot": lambda K, x, v, M, c: pl.multi_dot([M, np.eye(N), v]),
    "quasiseparable": lambda K, x, v, M, c: pl.quasiseparable("matern32", v),
    "logpdf": lambda K, x, v, M, c: pl.MultivariateNormal(np.zeros(N), K).logpdf(v),
    "logpdf of a lazy mean": lambda K, x, v, M, c: pl.MultivariateNormal(x, K).logpdf(v),
    "gradients": lambda K, x, v, M, c: pl.grad(lambda y: (y * y).sum())(v),
}


@pytest.mark.parametrize("form", FORMS)
def test_units_are_not_dropped(form):
    K, x = _operator(), pl.lazy(v)
    with pytest.raises(TypeError, match=r"arithmetic of its own|expected a number"):
        np.asarray(FORMS[form](K, x, Unit(v), Unit(M), Unit(one)))


@pytest.mark.parametrize("form", [f for f in FORMS if f != "Full"])
def test_plain_subclasses_are_taken(form):
    K, x = _operator(), pl.lazy(v)
    b, B, c = (np.array(a).view(Memory) for a in (v, M, one))
    dense = [FORMS[form](K, x, *a) for a in ((v, M, one), (b, B, c))]
    dense = [y.toarray() if isinstance(y, pl.LinearOperator) else np.asarray(y) for y in dense]
    np.testing.assert_array_equal(dense[0], dense[1])


class Variable:
    """A variable of a modelling language: it has a shape, a reflected method, no numbers."""

    shape = (N,)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "ufunc", inputs[0]

    def __rmatmul__(self, other):
        return "matmul", other

    def __radd__(self, other):
        return "add", other

    def __rsub__(self, other):
        return "subtract", other


def test_variables_take_over():
    K, x = _operator(), Variable()
    assert K @ x == ("matmul", K)
    assert K + x == ("add", K)
    assert K - x == ("subtract", K)


def test_without_a_reflected_method_it_is_refused():
    class Nothing:
        shape = (N,)

    with pytest.raises(TypeError):
        _operator() @ Nothing()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("of", ["array", "matrix"])
def test_sparse_constructors_take_operators(form, of):
    K = _operator()
    np.testing.assert_array_equal(getattr(sp, f"{form}_{of}")(K).toarray(), K.toarray())


def test_sparse_functions_take_operators():
    K, S = _operator(), sp.eye_array(N, format="csr")
    np.testing.assert_array_equal(sp.hstack([S, K]).toarray(), np.hstack([np.eye(N), K.toarray()]))
    np.testing.assert_array_equal(sp.kron(np.eye(2), K).toarray(), np.kron(np.eye(2), K.toarray()))
    for made, dense in ((S + K, np.eye(N) + K.toarray()), (S @ K, K.toarray())):
        assert isinstance(made, pl.LinearOperator)
        np.testing.assert_allclose(made.toarray(), dense, rtol=1e-14)


@pytest.mark.parametrize("shape", [(N,), (3, N), (1, N), (2, 3, N), (N, N)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_products_in_place_have_structure(shape, dtype, recwarn):
    K = _operator()
    x = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    expected, kept, t = x @ K.toarray(), x, x.T.copy().T
    x @= K
    t @= K
    assert x is kept
    np.testing.assert_allclose(x, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(t, expected, rtol=1e-13, atol=1e-13)
    assert not recwarn.list


def test_products_in_place_keep_their_dtype():
    x = np.ones((2, N), np.float32)
    with pytest.raises(TypeError, match="same_kind|cast"):
        x @= 1j * _operator()
    np.testing.assert_array_equal(x, 1)
