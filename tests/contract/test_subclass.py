"""User classes with SciPy's hooks."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from samples import values

import pylinop as pl

A0 = np.arange(12.0).reshape(3, 4) + 1j * np.arange(12.0)[::-1].reshape(3, 4)


class OnlyMatvec(pl.LinearOperator):
    def __init__(self, a=A0):
        super().__init__(a.dtype, a.shape)
        self.a = a

    def _matvec(self, x):
        assert x.ndim == 1
        return self.a @ x


class WithRmatvec(OnlyMatvec):
    def _rmatvec(self, x):
        assert x.ndim == 1
        return self.a.conj().T @ x


class OnlyMatmat(pl.LinearOperator):
    def __init__(self, a=A0):
        super().__init__(dtype=a.dtype, shape=a.shape)
        self.a = a

    def _matmat(self, x):
        assert x.ndim == 2
        return self.a @ x


class WithRmatmat(OnlyMatmat):
    def _rmatmat(self, x):
        assert x.ndim == 2
        return self.a.conj().T @ x


class WithAdjoint(OnlyMatvec):
    def _adjoint(self):
        return WithAdjoint(self.a.conj().T)


class WithTranspose(WithRmatvec):
    def _transpose(self):
        return WithTranspose(self.a.T)


class NoInit(pl.LinearOperator):
    """Never calls our __init__; shape and dtype are plain attributes."""

    args = ()

    def __init__(self, a=A0):
        self.shape = a.shape
        self.dtype = a.dtype
        self.a = a

    def _matvec(self, x):
        return self.a @ x

    def _rmatvec(self, x):
        return self.a.conj().T @ x


class Slots(pl.LinearOperator):
    __slots__ = ("a",)

    def __init__(self, a=A0):
        super().__init__(a.dtype, a.shape)
        self.a = a

    def _matvec(self, x):
        return self.a @ x

    def _rmatvec(self, x):
        return self.a.conj().T @ x


class Properties(pl.LinearOperator):
    """shape and dtype computed."""

    a = A0

    def __init__(self):
        pass

    shape = property(lambda self: self.a.shape)
    dtype = property(lambda self: self.a.dtype)

    def _matvec(self, x):
        return self.a @ x

    def _rmatvec(self, x):
        return self.a.conj().T @ x


TWO_SIDED = [WithRmatvec, WithRmatmat, WithAdjoint, WithTranspose, NoInit, Slots, Properties]
EVERY = TWO_SIDED + [OnlyMatvec, OnlyMatmat]


@pytest.mark.parametrize("cls", EVERY)
def test_products(cls, rng):
    A = cls()
    assert isinstance(A, pl.LinearOperator) and isinstance(A, cls) and type(A) is cls
    assert A.shape == (3, 4) and A.dtype == complex and A.ndim == 2
    for x in (
        values(rng, (4,), "float64"),
        values(rng, (4, 2), "complex128"),
        values(rng, (4, 1), "float32"),
    ):
        np.testing.assert_allclose(A @ x, A0 @ x)
        np.testing.assert_allclose(A.dot(x), A0 @ x)
        np.testing.assert_allclose(A(x), A0 @ x)
        np.testing.assert_allclose((2j * A) @ x, 2j * A0 @ x)
        np.testing.assert_allclose((A + pl.Dense(A0)) @ x, 2 * A0 @ x)
        np.testing.assert_allclose((pl.Diag([1.0, 2, 3]) @ A) @ x, np.diag([1.0, 2, 3]) @ A0 @ x)
        np.testing.assert_allclose((A - A) @ x, 0 * (A0 @ x))
    np.testing.assert_allclose(A.matvec(np.ones(4)), A0.sum(1))
    np.testing.assert_allclose(A.matmat(np.eye(4)), A0)
    np.testing.assert_allclose(A.toarray(), A0)
    np.testing.assert_allclose(A.diagonal(1), np.diagonal(A0, 1))
    assert A[1, 2] == A0[1, 2]
    assert repr(A) == f"<3x4 {cls.__name__} with dtype=complex128>"


@pytest.mark.parametrize("cls", TWO_SIDED)
def test_adjoints(cls, rng):
    A, h = cls(), A0.conj().T
    for y in (values(rng, (3,), "complex128"), values(rng, (3, 2), "float64")):
        np.testing.assert_allclose(A.H @ y, h @ y)
        np.testing.assert_allclose(A.adjoint() @ y, h @ y)
        np.testing.assert_allclose(A.T @ y, A0.T @ y)
        np.testing.assert_allclose(A.transpose() @ y, A0.T @ y)
        np.testing.assert_allclose(y.T @ A, y.T @ A0)
        np.testing.assert_allclose((2j * A).H @ y, -2j * h @ y)
        np.testing.assert_allclose((2j * A).T @ y, 2j * A0.T @ y)
        np.testing.assert_allclose((A + A).H @ y, 2 * h @ y)
        np.testing.assert_allclose((A @ pl.Identity(4)).H @ y, h @ y)
    np.testing.assert_allclose(A.rmatvec(np.ones(3)), h.sum(1))
    np.testing.assert_allclose(A.rmatmat(np.eye(3)), h)
    np.testing.assert_allclose((A.H @ A).toarray(), h @ A0)
    np.testing.assert_allclose(A.H.H @ np.ones(4), A0.sum(1))
    np.testing.assert_allclose(A.conj() @ np.ones(4), A0.conj().sum(1))
    np.testing.assert_allclose(A.real @ np.ones(4), A0.real.sum(1))
    np.testing.assert_allclose(np.matmul(np.ones(3), A), A0.sum(0))


@pytest.mark.parametrize("cls", [OnlyMatvec, OnlyMatmat])
def test_no_adjoint(cls):
    A = cls()
    for call in (
        lambda: A.rmatvec(np.ones(3)),
        lambda: A.H @ np.ones(3),
        lambda: A.T @ np.ones(3),
        lambda: np.ones(3) @ A,
        lambda: A.rmatmat(np.ones((3, 2))),
    ):
        with pytest.raises(NotImplementedError):
            call()


@pytest.mark.parametrize("cls", EVERY)
def test_pickle_and_copy(cls):
    A = cls()
    A.note = "kept"
    for B in [pickle.loads(pickle.dumps(A, p)) for p in range(2 if cls is Slots else 0, 6)] + [
        copy.copy(A),
        copy.deepcopy(A),
    ]:
        assert type(B) is cls and B.note == "kept" and B.shape == A.shape and B.dtype == A.dtype
        np.testing.assert_allclose(B @ np.ones(4), A0.sum(1))
        C = pickle.loads(pickle.dumps(B + pl.Dense(A0)))
        assert type(C.args[0]) is cls and C.args[0].note == "kept"
        np.testing.assert_allclose(C @ np.ones(4), 2 * A0.sum(1))


def test_attributes_are_the_users():
    A = WithRmatvec()
    A.anything, A.other = [1], A
    assert A.__dict__["anything"] == [1] and vars(A)["other"] is A
    for B in (pl.Diag(np.ones(3)), pl.Identity(3), pl.Dense(np.eye(3)) + pl.Identity(3), A.T):
        B.label = "mine"
        assert B.label == "mine" and B.__dict__["label"] == "mine"
        del B.label
        assert not hasattr(B, "label")


def test_shape_and_dtype_may_be_assigned():
    A = NoInit()
    E = A + A
    np.testing.assert_allclose(E @ np.ones(4), 2 * A0.sum(1))
    A.a = A0[:2].real.copy()
    A.shape, A.dtype = (2, 4), np.dtype(float)
    assert A.shape == (2, 4) and (A @ np.ones(4)).shape == (2,) and (A + A).dtype == float
    A.dtype = "float32"
    assert np.dtype(A.dtype) == np.float32
    A.dtype = None
    assert A.dtype is None and "unspecified dtype" in repr(A)
    for bad in ((3,), (-1, 4), "ab", 5):
        B = NoInit()
        with pytest.raises((ValueError, TypeError)):
            B.shape = bad
            B @ np.ones(4)
    with pytest.raises((AttributeError, TypeError)):
        pl.Diag(np.ones(3)).shape = (4, 4)


def test_dtype_none_stays_none():
    class Weak(pl.LinearOperator):
        def __init__(self):
            super().__init__(None, (3, 3))

        def _matvec(self, x):
            return x

    A = Weak()
    assert A.dtype is None and repr(A) == "<3x3 Weak with unspecified dtype>"
    np.testing.assert_array_equal(A @ np.arange(3), np.arange(3))
    np.testing.assert_array_equal((A + pl.Identity(3)) @ np.arange(3.0), 2 * np.arange(3.0))
    np.testing.assert_array_equal((2 * A) @ np.arange(3.0), 2 * np.arange(3.0))


def test_forgotten_init_says_so():
    class Forgot(pl.LinearOperator):
        def __init__(self):
            pass

        def _matvec(self, x):
            return x

    A = Forgot()
    for use in (lambda: A.shape, lambda: A @ np.ones(3), lambda: A + A, lambda: A.T):
        with pytest.raises((AttributeError, ValueError, TypeError)):
            use()


def test_missing_hooks_warn_at_construction():
    class Empty(pl.LinearOperator):
        pass

    with pytest.warns(RuntimeWarning, match="should implement at least") as seen:
        A = Empty(np.dtype(float), (3, 3))
    assert seen[0].filename == __file__
    with pytest.raises((NotImplementedError, RecursionError)):
        A @ np.ones(3)
    with pytest.warns(RuntimeWarning), pytest.raises(TypeError):
        Empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WithRmatvec()


def test_constructor_checks(rng):
    class Mine(pl.LinearOperator):
        def _matvec(self, x):
            return x

    assert Mine(float, (3, 3)).dtype == np.dtype(float)
    assert Mine(dtype="f4", shape=[3, 3], xp=None).dtype == np.float32
    assert Mine(None, (2, 3, 4, 4)).ndim == 4
    for bad in ((3,), (3, -3), (3, 2.5), ("a", 3)):
        with pytest.raises((ValueError, TypeError)):
            Mine(float, bad)


def test_subclasses_of_kinds():
    class Mass(pl.Diag):
        """A diagonal of masses."""

        def total(self):
            return self.trace()

    M = Mass(np.array([1.0, 2, 3]))
    assert M.total() == 6 and isinstance(M, pl.Diag)
    np.testing.assert_array_equal(M @ np.ones(3), [1, 2, 3])
    np.testing.assert_array_equal((M @ M).diagonal(), [1, 4, 9])
    assert type(M) is Mass and type(copy.copy(M)) is Mass and type(M @ M) is pl.Diag


def test_overridden_hooks_of_a_kind_are_used():
    class Twice(pl.Dense):
        def _matvec(self, x):
            return 2 * (np.asarray(self.args[0]) @ x)

    A = Twice(np.eye(3))
    np.testing.assert_array_equal(A @ np.ones(3), np.full(3, 2.0))
    np.testing.assert_array_equal((A + pl.Identity(3)) @ np.ones(3), np.full(3, 3.0))


def test_optional_hooks():
    class Known(WithRmatvec):
        calls = 0

        def _diagonal(self, offset=0):
            type(self).calls += 1
            return np.diagonal(self.a, offset)

    A = Known()
    np.testing.assert_array_equal(A.diagonal(1), np.diagonal(A0, 1))
    assert Known.calls == 1

    class Solves(OnlyMatvec):
        def _solve(self, b):
            return b / 2

    B = Solves(2 * np.eye(3))
    np.testing.assert_array_equal(pl.inv(B) @ np.ones(3), np.full(3, 0.5))


def test_user_leaves_never_close_and_keep_identity():
    A = WithRmatvec()
    for E in (A + A, A @ A.H, 2 * A):
        assert E.args[0] is A
    assert type(A + A) is pl.Sum and type(A @ A.H) is pl.Product and type(2 * A) is pl.Scaled
    assert type(A @ pl.Identity(4)) is pl.Product


def test_base_class_makes_callables():
    A = pl.LinearOperator(
        (3, 4), lambda x: A0 @ x, rmatvec=lambda x: A0.conj().T @ x, dtype=complex
    )
    assert type(A) is pl.MatVec and A.args == () and isinstance(A, pl.LinearOperator)
    np.testing.assert_allclose(A.H @ np.ones(3), A0.conj().sum(0))
    B = pl.LinearOperator(
        shape=(3, 4),
        matvec=lambda x: A0 @ x,
        rmatvec=None,
        matmat=lambda x: A0 @ x,
        dtype=None,
        rmatmat=None,
        xp=None,
    )
    assert B.dtype == complex
    np.testing.assert_allclose(B @ np.ones((4, 2)), A0 @ np.ones((4, 2)))
    assert pl.LinearOperator[float]  # for annotations
    for hook in ("_matvec", "_matmat", "_rmatvec", "_rmatmat", "_adjoint", "_transpose"):
        for op in (A, pl.Identity(3), pl.Dense(A0).T, pl.Diag(np.ones(3)) + pl.Dense(np.eye(3))):
            assert callable(getattr(op, hook))
    np.testing.assert_allclose(pl.Dense(A0)._matvec(np.ones(4)), A0.sum(1))
    np.testing.assert_allclose(pl.Dense(A0)._rmatvec(np.ones(3)), A0.conj().sum(0))


def test_batched_subclass(rng):
    a = values(rng, (5, 3, 4), "float64")

    class Batched(pl.LinearOperator):
        def _matvec(self, x):
            return (a @ x[..., None])[..., 0]

        def _rmatvec(self, x):
            return (np.swapaxes(a, -1, -2) @ x[..., None])[..., 0]

    A = Batched(shape=a.shape, dtype=a.dtype)
    assert A.shape == (5, 3, 4) and A.ndim == 3
    x = values(rng, (2, 1, 4, 2), "float64")
    np.testing.assert_allclose(A @ x, a @ x)
    np.testing.assert_allclose((A + pl.Dense(a)) @ x, 2 * a @ x)
    np.testing.assert_allclose(A.H @ np.ones((3, 1)), np.swapaxes(a, -1, -2) @ np.ones((3, 1)))
    np.testing.assert_allclose(A.matvec(np.ones(4)), a.sum(-1))
    np.testing.assert_allclose(A.toarray(), a)


class Solves(pl.LinearOperator):
    """A matrix that is never made dense: products, `_solve`, `_diagonal` and `_logdet` alone."""

    def __init__(self, a):
        super().__init__(a.dtype, a.shape)
        self.a = a

    def _matvec(self, x):
        raise AssertionError("a product was not due")

    def _solve(self, b):
        return np.linalg.solve(self.a, b)

    def _diagonal(self, k):
        return np.diagonal(self.a, k)

    def _logdet(self):
        return np.linalg.slogdet(self.a)[1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_own_solve_diagonal_and_logdet(dtype, rng):
    a = values(rng, (4, 4), dtype) + 8 * np.eye(4, dtype=dtype)
    d = values(rng, 4, dtype) + np.asarray(4, dtype)
    c = np.complex64(2 + 1j) if np.dtype(dtype).kind == "c" else np.float32(2)
    A, D = Solves(a), pl.Diag(d)
    tol = 500 * np.finfo(dtype).eps
    for E, e in (
        (A, a),
        (c * A, c * a),
        (D @ A, d[:, None] * a),
        (A @ D, a * d),
        (A @ A @ (c * A), c * a @ a @ a),
        (A.conj(), a.conj()),
        ((2 * A).conj(), 2 * a.conj()),
        ((D @ A).conj(), (d[:, None] * a).conj()),
    ):
        for b in (values(rng, 4, dtype), values(rng, (4, 2), dtype), values(rng, (3, 4, 1), dtype)):
            x, want = pl.solve(E, b), np.linalg.solve(e, b)
            assert x.dtype == want.dtype and x.shape == want.shape
            np.testing.assert_allclose(x, want, rtol=0, atol=tol * np.abs(want).max())
    np.testing.assert_array_equal(A.diagonal(1), np.diagonal(a, 1))
    np.testing.assert_allclose(A.trace(), np.trace(a), rtol=1e-6)
    np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(a)[1])


def test_own_solve_is_not_asked_of_what_has_none(rng):
    """A transpose, a sum, a multiple by zero: as dense forms."""
    a = rng.standard_normal((4, 4)) + 8 * np.eye(4)

    class Products(Solves):
        def _matmat(self, X):
            return self.a @ X

    A, b = Products(a), rng.standard_normal(4)
    np.testing.assert_allclose(pl.solve(A.T, b), np.linalg.solve(a.T, b), rtol=1e-10)
    np.testing.assert_allclose(pl.inv(A).T @ b, np.linalg.solve(a.T, b), rtol=1e-10)
    np.testing.assert_allclose(pl.inv(A @ (2 * A)).H @ b, np.linalg.solve(2 * (a @ a).T, b))
    np.testing.assert_allclose(pl.solve(A + A, b), np.linalg.solve(2 * a, b), rtol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(0 * A, b)
    tall = pl.MatVec((4, 3), lambda x: a[:, :3] @ x, dtype=float)
    wide = pl.MatVec((3, 3), lambda x: a[:3, :3] @ x, dtype=float)
    both = pl.Dense(a[:3, :]) @ tall @ wide  # a product whose first factors are not square
    np.testing.assert_allclose(
        pl.solve(both, b[:3]), np.linalg.solve(a[:3] @ a[:, :3] @ a[:3, :3], b[:3]), rtol=1e-8
    )
