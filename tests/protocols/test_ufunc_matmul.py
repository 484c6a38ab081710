"""np.matmul on operators, from both sides, with out=: C's short way and the long one agree."""

import numpy as np
import pytest
from samples import values

import pylinop as pl
from pylinop._operators import numpy_protocols


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def kinds(rng, dtype):
    a = values(rng, (3, 4), dtype)
    return [
        pl.Dense(a),
        pl.Dense(a).T,
        pl.Diag(a[0]) @ pl.Dense(values(rng, (4, 4), dtype)),
        pl.Kron(a, a),
        pl.Dense(values(rng, (2, 3, 4), dtype)),
        pl.MatVec((3, 4), lambda x: x @ a.T, lambda x: x @ a.conj(), dtype=a.dtype),
    ]


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int8", "float16"])
def test_both_ways_agree(dtype, rng):
    for A in kinds(rng, dtype):
        m, n = A.shape[-2:]
        right = [values(rng, s, dtype) for s in ((n,), (n, 2), (2, n, 3), (n, 1))]
        left = [values(rng, s, dtype) for s in ((m,), (2, m), (2, 3, m))]
        for pair in [(A, x) for x in right] + [(x, A) for x in left]:
            want = numpy_protocols.array_ufunc(A, np.matmul, "__call__", *pair)
            for got in (np.matmul(*pair), pair[0] @ pair[1]):
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            for layout in ("C", "F"):
                out = np.zeros(want.shape, want.dtype, layout)
                assert np.matmul(*pair, out=out) is out and np.matmul(*pair, out=(out,)) is out
                np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def test_what_is_not_for_the_short_way(rng):
    A = pl.Dense(values(rng, (3, 3), "float64"))
    a, x = A.toarray(), np.arange(3.0)
    np.testing.assert_allclose(np.matmul(A, [1, 2, 3]), a @ [1, 2, 3])
    np.testing.assert_allclose(np.matmul(A, x[::-1], out=x[::-1]), a @ np.arange(3.0)[::-1])
    x = np.arange(3.0)
    assert isinstance(np.matmul(A, A), pl.LinearOperator)
    assert isinstance(np.matmul(A, a.view(np.matrix)), np.ndarray)
    with pytest.raises(TypeError, match="masked"):
        np.matmul(A, np.ma.masked_array(x, [0, 1, 0]))
    for bad in (np.ones(4), np.ones((2, 2)), np.array(2.0)):
        with pytest.raises(ValueError):
            np.matmul(A, bad)
        with pytest.raises(ValueError):
            np.matmul(bad, A)
    with pytest.raises(ValueError, match=r"out has shape \(4,\)"):
        np.matmul(A, x, out=np.empty(4))
    with pytest.raises((TypeError, ValueError)):
        np.matmul(A, x, out=np.empty(3, "int8"))
    with pytest.warns(pl.MaterializationWarning):  # other arguments: the dense form
        np.matmul(A, x, dtype="float64")
    with pytest.raises(TypeError, match="operator cannot be the out"):
        np.matmul(x, x, out=A)


def test_subclasses_keep_their_word(rng):
    class Mine(pl.Dense):
        def _matvec(self, x):
            return np.full(3, 7.0)

    class Other(pl.Dense):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return "mine"

    assert (np.matmul(Mine(np.eye(3)), np.ones(3)) == 7).all()
    assert np.matmul(Other(np.eye(3)), np.ones(3)) == "mine"
    assert np.ones(3) @ Other(np.eye(3)) == "mine"
