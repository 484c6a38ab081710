"""Functions of operators as methods: ``A.solve(b)`` is ``pl.solve(A, b)``."""

import inspect
import pickle

import numpy as np
import pytest

import pylinop as pl

NAMES = [
    *("solve", "inv", "logdet", "slogdet", "det", "cholesky", "eigh", "eigvalsh", "svd", "pinv"),
    *("norm", "sample", "factorized"),
]
D = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 1.0], [0.5, 1.0, 6.0]])


def function(name):
    return pl.linalg.norm if name == "norm" else getattr(pl, name)


class Mine(pl.LinearOperator):
    def __init__(self, a):
        self.a = a
        super().__init__(a.dtype, a.shape)

    def _matvec(self, x):
        return self.a @ x


OPERATORS = {
    "dense": lambda: pl.Dense(D),
    "assumed": lambda: pl.Dense(D, assume_a="pos"),
    "batch": lambda: pl.Dense(np.stack([D, 2 * D])),
    "complex": lambda: pl.Dense(D + 1j * (np.triu(D, 1) - np.tril(D, -1))),
    "diag": lambda: pl.Diag([3.0, 1.0, 2.0]),
    "toeplitz": lambda: pl.Toeplitz([4.0, 1.0, 0.5]),
    "kron": lambda: pl.Kron(D, pl.Diag([1.0, 2.0])),
    "tridiagonal": lambda: pl.Tridiagonal([1.0, 1.0], [4.0, 5.0, 6.0], [1.0, 1.0]),
    "sum": lambda: pl.Dense(D) + pl.Identity(3),
    "inverse": lambda: pl.inv(pl.Dense(D)),
    "user": lambda: Mine(D),
}
ARGUMENTS = {
    "solve": lambda A: ((np.arange(1.0, A.shape[-1] + 1),), {"method": "direct"}),
    "cholesky": lambda A: ((), {"upper": True}),
    "norm": lambda A: ((2, (-2, -1)), {"keepdims": True}),
    "sample": lambda A: ((2,), {"rng": 3}),
    "svd": lambda A: ((False,), {}),
    "eigh": lambda A: (("U",), {}),
    "logdet": lambda A: (("direct",), {}),
}


def numbers(x):
    """All arrays of a result, in order."""
    if isinstance(x, pl.Factorized):
        return [x.solve(np.ones(x.shape[-1]))]
    if isinstance(x, pl.LinearOperator):
        return [x.toarray()]
    if isinstance(x, tuple):
        return [a for part in x for a in numbers(part)]
    return [np.asarray(x)]


@pytest.mark.parametrize("kind", OPERATORS)
@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_the_function(kind, name):
    A = OPERATORS[kind]()
    args, words = ARGUMENTS.get(name, lambda A: ((), {}))(A)
    want, got = function(name)(A, *args, **words), getattr(A, name)(*args, **words)
    assert type(got) is type(want)
    for g, w in zip(numbers(got), numbers(want), strict=True):
        np.testing.assert_array_equal(g, w)


def test_the_list_is_whole():
    assert sorted(NAMES) == pl._METHODS.split()


@pytest.mark.parametrize("name", NAMES)
def test_signature_and_docstring(name):
    A, f = pl.Dense(D), function(name)
    whole = inspect.signature(f)
    first, *rest = whole.parameters.values()
    assert first.name == "A"
    assert inspect.signature(getattr(A, name)) == whole.replace(parameters=rest)
    assert inspect.signature(getattr(pl.LinearOperator, name)) == whole
    assert getattr(A, name).__doc__ == f.__doc__ and f.__doc__
    assert getattr(A, name).__name__ == name and name in dir(A) and name in dir(pl.Diag)


def test_errors_are_the_functions():
    A = pl.Dense(D)
    with pytest.raises(pl.LinAlgError, match="square"):
        pl.Zeros((2, 3)).inv()
    with pytest.raises(TypeError, match="unexpected keyword argument 'assume'.*mean assume_a"):
        A.solve(np.ones(3), assume="pos")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        A.solve()
    with pytest.raises(pl.LinAlgError, match="definite"):
        (-A).cholesky()


def test_an_operator_as_right_side():
    A, B = pl.Dense(D), pl.Diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(A.solve(B).toarray(), np.linalg.solve(D, B.toarray()))


@pytest.mark.parametrize("name", NAMES)
def test_lazy_arrays_have_them(name):
    K = pl.Dense(pl.lazy(D))  # one too
    assert type(K) is pl.LazyArray
    args, words = ((np.ones(3),), {}) if name == "solve" else ((), {})
    if name == "sample":
        words = {"rng": 1}
    want, got = function(name)(K, *args, **words), getattr(K, name)(*args, **words)
    assert type(got) is type(want) and inspect.signature(getattr(pl.LazyArray, name))
    for g, w in zip(numbers(got), numbers(want), strict=True):
        np.testing.assert_array_equal(g, w)


def test_gradients():
    b = np.array([1.0, 2.0, 3.0])

    def likelihood(a):
        K = pl.Dense(a)
        return b @ K.solve(b) + K.logdet()

    inverse = np.linalg.inv(D)
    np.testing.assert_allclose(
        pl.grad(likelihood)(D), inverse.T - np.outer(inverse.T @ b, inverse @ b)
    )


class Own(Mine):
    def solve(self, b):
        return "own", pl.solve(self, b)

    @property
    def det(self):
        return "a property"


def test_subclasses_may_have_their_own():
    A = Own(D)
    said, x = A.solve(np.ones(3))
    assert said == "own" and A.det == "a property"
    np.testing.assert_allclose(x, np.linalg.solve(D, np.ones(3)))
    np.testing.assert_allclose(A.inv() @ np.ones(3), x)  # by the function, not the method
    np.testing.assert_allclose(pl.det(A), np.linalg.det(D))
    A.inv = 3
    assert A.inv == 3


def test_a_parameter_of_that_name_stays():
    F = pl.DFT(4, "ortho")
    assert F.norm == "ortho" and pl.DCT(4).norm is None
    assert pl.linalg.norm(F) == pytest.approx(2.0)


def test_pickling():
    A, b = pl.Dense(D), np.ones(3)
    again = pickle.loads(pickle.dumps(A))
    np.testing.assert_array_equal(again.solve(b), A.solve(b))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(A.solve))(b), A.solve(b))
    assert pickle.loads(pickle.dumps(pl.solve)) is pl.solve
