"""NumPy's functions on operators: every row of the table against NumPy on the dense form, what has
no row too; nothing lazy computes."""

import inspect
import warnings

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl
from pylinop._api import numpy_functions

TABLE = {name: (route, note) for name, route, note in numpy_functions.table()}

SAME = {
    "shape": [()],
    "ndim": [()],
    "size": [(), (0,), (1,)],
    "iscomplexobj": [()],
    "isrealobj": [()],
    "transpose": [(), ((1, 0),), ((0, 1),)],
    "matrix_transpose": [()],
    "linalg.matrix_transpose": [()],
    "swapaxes": [(0, 1), (-1, -2)],
    "moveaxis": [(0, 1), (-1, 0)],
    "real": [()],
    "imag": [()],
    "copy": [()],
    "trace": [(), (1,), (-2,), (1, 1, 0)],
    "linalg.trace": [()],
    "diagonal": [(), (1,), (-1,), (1, 1, 0)],
    "linalg.diagonal": [()],
    "diag": [(), (1,), (-3,)],
    "sum": [(), (0,), (1,), (-1,), ((0, 1),)],
    "mean": [(), (0,), (1,), ((0, 1),)],
    "any": [(), (0,)],
    "all": [(), (1,)],
}


def numpy_function(name):
    f = np
    for part in name.split("."):
        f = getattr(f, part)
    return f


def dense(x):
    return x.toarray() if isinstance(x, pl.LinearOperator) else x


def near(got, want, scale=1.0):
    got = dense(got)
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    u = np.finfo(np.asarray(want).dtype).eps if np.asarray(want).dtype.kind in "fc" else 0
    np.testing.assert_allclose(
        got, want, rtol=0, atol=1e3 * u * (scale + np.abs(want).max(initial=0))
    )


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int8"])
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("kind", ref.KINDS)
def test_one_operand(name, kind, dtype, rng):
    if not hasattr(np, name.split(".")[0]):
        pytest.skip("not in this NumPy")
    f = numpy_function(name)
    for m, n in ((4, 4), (3, 5)):
        d = leaf(kind, rng, m, n, dtype)
        if d is None:
            continue
        A = ref.build(d)
        a = A.toarray()
        for args in SAME[name]:
            near(f(A, *args), f(a, *args), scale=30)


def pair(rng, dtype="float64", m=4, k=5, n=3):
    a, b = values(rng, (m, k), dtype), values(rng, (k, n), dtype)
    return pl.Dense(a), a, pl.Dense(b), b


PRODUCTS = [
    ("dot", lambda f, A, B: f(A, B)),
    ("linalg.matmul", lambda f, A, B: f(A, B)),
    ("linalg.multi_dot", lambda f, A, B: f([A, B, B.T])),
    ("inner", lambda f, A, B: f(A, B.T)),
    ("tensordot", lambda f, A, B: f(A, B, 1)),
    ("tensordot", lambda f, A, B: f(A, B, ([1], [0]))),
    ("tensordot", lambda f, A, B: f(B, A, (0, 1))),
    ("tensordot", lambda f, A, B: f(A, A)),
    ("tensordot", lambda f, A, B: f(A, A.T, ([0, 1], [1, 0]))),
    ("vdot", lambda f, A, B: f(A, A)),
    ("kron", lambda f, A, B: f(A, B)),
    ("einsum", lambda f, A, B: f("ij,jk->ik", A, B)),
    ("einsum", lambda f, A, B: f("ij,jk->ki", A, B)),
    ("einsum", lambda f, A, B: f("ij,jk", A, B)),
    ("einsum", lambda f, A, B: f("ji,kj->ik", A.T, B.T)),
    ("einsum", lambda f, A, B: f("ij,ij->", A, A)),
    ("einsum", lambda f, A, B: f("ij,ji->", A, A.T)),
    ("einsum", lambda f, A, B: f("ij,ij->i", A, A)),
    ("einsum", lambda f, A, B: f("ij,ij->j", A, A)),
    ("einsum", lambda f, A, B: f("ij,jk,kl->il", A, B, B.T)),
    ("einsum", lambda f, A, B: f("ij,jk,ki->", A, B, B.T @ A.T)),
    ("einsum", lambda f, A, B: f("ij,jk->", A, B)),
    ("einsum", lambda f, A, B: f("ij,jk->i", A, B)),
    ("einsum", lambda f, A, B: f("ii", A @ A.T)),
    ("einsum", lambda f, A, B: f("ii->i", A @ A.T)),
    ("einsum", lambda f, A, B: f("ij->ji", A)),
    ("einsum", lambda f, A, B: f("ba", A)),
    ("einsum", lambda f, A, B: f("ij->", A)),
    ("einsum", lambda f, A, B: f("ij->j", A)),
    ("einsum", lambda f, A, B: f("ij->ij", A)),
    ("einsum", lambda f, A, B: f("ij,kl->ijkl", A, B)),
    ("einsum", lambda f, A, B: f("ij,ij->ij", A, A)),
    ("einsum", lambda f, A, B: f("...j,jk->...k", A, B)),
]


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
@pytest.mark.parametrize("i", range(len(PRODUCTS)))
def test_products(i, dtype, rng):
    name, call = PRODUCTS[i]
    A, a, B, b = pair(rng, dtype)
    f = numpy_function(name)
    want = call(f, a, b)
    for x, y in ((A, B), (A, b), (a, B)):
        near(call(f, x, y), want, scale=100)


def test_products_with_vectors(rng):
    A, a, B, b = pair(rng)
    x, y = values(rng, 5, "float64"), values(rng, 4, "float64")
    for call in (
        lambda M: np.dot(M, x),
        lambda M: np.dot(y, M),
        lambda M: np.dot(M, 2.0),
        lambda M: np.inner(M, x),
        lambda M: np.einsum("ij,j->i", M, x),
        lambda M: np.einsum("i,ij->j", y, M),
        lambda M: np.einsum("i,ij,j->", y, M, x),
        lambda M: np.einsum("i,ij->ij", y, M),
        lambda M: np.tensordot(M, x, 1),
        lambda M: np.linalg.multi_dot([y, M, x]),
        lambda M: np.linalg.multi_dot([M, M.T, y]),
    ):
        near(call(A), call(a), scale=30)
    out = np.zeros(4)
    assert np.dot(A, x, out=out) is out
    near(out, a @ x)
    for bad in ("ij,jk", "ij,j->k", "ij,"):
        with pytest.raises(ValueError):
            np.einsum(bad, A, y)
    with pytest.raises(ValueError):
        np.einsum("ij,jk->ik", A, A)


def test_routes(rng):
    """Lazy rows give operators, structured ones arrays and numbers; none a large dense form."""
    n = 3000
    A = pl.Diag(np.ones(n)) + pl.Identity(n)
    T = pl.Toeplitz(np.arange(n, dtype=float))
    with warnings.catch_warnings(), pl.config(memory_limit=20 * n * 8, warn_limit=8 * n * 8):
        warnings.simplefilter("error")
        for lazy in (
            np.transpose(T),
            np.real(T),
            np.imag(T),
            np.kron(T, T),
            np.dot(T, A),
            np.einsum("ij,jk->ki", T, A),
            np.zeros_like(T),
            np.linalg.matrix_power(T, 3),
            np.astype(T, "complex128") if hasattr(np, "astype") else A,
        ):
            assert isinstance(lazy, pl.LinearOperator)
        assert np.trace(A) == 2 * n
        np.testing.assert_allclose(np.sum(T, axis=0)[0], n * (n - 1) / 2)
        assert np.mean(A) == pytest.approx(2 / n)
        assert np.shape(T) == (n, n) and np.size(T) == n * n and np.ndim(T) == 2
        np.einsum("i,ij,j->", np.ones(n), T, np.ones(n))
        np.result_type(T, np.complex64)
        assert np.result_type(T, np.complex64) == np.complex128
        assert np.can_cast(T, np.float64) and not np.can_cast(T, np.int64)
        with pytest.raises(pl.MaterializationError):
            np.sort(T)
    assert np.shares_memory(A, A) and not np.shares_memory(A, T)


EVERYTHING_ELSE = [
    lambda a: np.abs(np.fft.fft(a)),
    lambda a: np.sort(a, axis=0),
    lambda a: np.cumsum(a, axis=1),
    lambda a: np.max(a),
    lambda a: np.argmax(a, axis=1),
    lambda a: np.prod(a),
    lambda a: np.std(a),
    lambda a: np.ravel(a),
    lambda a: np.reshape(a, (2, -1)),
    lambda a: np.outer(a, [1.0, 2.0]),
    lambda a: np.triu(a),
    lambda a: np.tril(a, -1),
    lambda a: (
        np.where(a > 0, 1, 2) if isinstance(a, np.ndarray) else np.where(np.asarray(a) > 0, 1, 2)
    ),
    lambda a: np.stack([a, a]),
    lambda a: np.round(a, 1),
    lambda a: np.trace(a, dtype="float32"),
    lambda a: np.sum(a, dtype="float32"),
    lambda a: np.isclose(a, 0.0),
    lambda a: np.array(a, ndmin=3),
    lambda a: np.interp(a, [0, 1], [2, 3]),
    lambda a: np.linalg.svd(a, compute_uv=False),
]


@pytest.mark.parametrize("i", range(len(EVERYTHING_ELSE)))
def test_the_rest_runs_on_the_dense_form(i, rng):
    a = values(rng, (4, 4), "float64")
    got, want = EVERYTHING_ELSE[i](pl.Dense(a) + pl.Zeros((4, 4))), EVERYTHING_ELSE[i](a)
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want)


def test_decompositions_hand_out_operators(rng):
    a = values(rng, (4, 4), "float64")
    s = a @ a.T + np.eye(4)
    L = np.linalg.cholesky(pl.Dense(s))
    assert isinstance(L, pl.LinearOperator)
    near(L @ L.T, s)
    Q, R = np.linalg.qr(pl.Dense(a))
    near(Q @ R, a)
    near(np.linalg.lstsq(pl.Dense(a), a[0])[0], np.linalg.solve(a, a[0]))
    w, V = np.linalg.eigh(pl.Dense(s))
    near(V @ pl.Diag(w) @ V.T, s)
    U, sv, Vh = np.linalg.svd(pl.Dense(a))
    near(U @ pl.Diag(sv) @ Vh, a)
    assert type(np.linalg.eigh(pl.Dense(s))).__name__ == "EighResult"


def test_equality_and_closeness(rng):
    a = values(rng, (300, 400), "float64")
    A = pl.Dense(a)
    assert np.array_equal(A, a) and np.allclose(A, a) and np.array_equal(A, A)
    b = a.copy()
    b[299, 399] += 1e-3
    assert not np.array_equal(A, b) and not np.allclose(a, pl.Dense(b))
    assert not np.array_equal(A, a[:-1])
    b[:] = a
    b[3, 4] = np.nan
    assert not np.array_equal(pl.Dense(b), b)
    assert np.array_equal(pl.Dense(b), b, equal_nan=True)
    assert np.any(A) and not np.all(pl.Identity(400)) and not np.any(pl.Zeros((300, 300)))


LINALG = {
    "det": [()],
    "slogdet": [()],
    "cond": [(), (1,), (np.inf,)],
    "matrix_rank": [()],
    "eigvalsh": [()],
    "svdvals": [()],
    "norm": [(), ("fro",), (1,), (2,), (np.inf,), ("nuc",)],
    "matrix_norm": [()],
    "inv": [()],
    "pinv": [()],
}


@pytest.mark.parametrize("name", LINALG)
@pytest.mark.parametrize("kind", ref.KINDS)
def test_numpy_linalg(name, kind, rng):
    f = getattr(np.linalg, name)
    d = leaf(kind, rng, 4, 4, "float64", invertible=True)
    d = leaf(kind, rng, 4, 4, "float64") if d is None else d
    A = ref.build(d)
    a = A.toarray()
    if name in ("inv", "slogdet") and np.linalg.matrix_rank(a) < 4:
        pytest.skip("singular, or regular by rounding alone: tests/linalg/test_linalg.py")
    for args in LINALG[name]:
        got, want = f(A, *args), f(a, *args)
        for g, w in zip(np.atleast_1d(dense(got)), np.atleast_1d(want)):
            if name == "cond" and np.max(w) > 1e12:
                assert np.min(g) > 1e12
            else:
                np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)


def test_numpy_linalg_solve_and_norms_of_others(rng):
    a, b = values(rng, (4, 4), "float64") + 4 * np.eye(4), values(rng, (4, 2), "float64")
    np.testing.assert_allclose(np.linalg.solve(pl.Dense(a), b), np.linalg.solve(a, b))
    np.testing.assert_allclose(np.linalg.norm(pl.Dense(a), axis=(0, 1)), np.linalg.norm(a))
    np.testing.assert_allclose(
        np.linalg.norm(pl.Dense(a), keepdims=True), np.linalg.norm(a, keepdims=True)
    )
    with pytest.raises(NotImplementedError, match="toarray"):
        np.linalg.norm(pl.Dense(a), axis=0)


def test_joined(rng):
    A, a, B, b = pair(rng, m=3, k=3, n=3)
    for call in (
        lambda A, B: np.concatenate([A, B]),
        lambda A, B: np.concatenate((A, B), axis=1),
        lambda A, B: np.concatenate([A, B], axis=-1),
        lambda A, B: np.concat([A, B], -2),
        lambda A, B: np.hstack([A, B, A]),
        lambda A, B: np.vstack((A, B)),
        lambda A, B: np.column_stack([A, B]),
        lambda A, B: np.block([[A, B], [B, A]]),
        lambda A, B: np.block([A, B]),
        lambda A, B: np.permute_dims(A, (1, 0)),
    ):
        want = call(a, b)
        for x, y in ((A, B), (A, b), (a, B)):
            got = call(x, y)
            near(got, want)
            if x is A:
                assert isinstance(got, pl.LinearOperator)
    near(np.concatenate([A, B], dtype="complex64"), np.concatenate([a, b], dtype="complex64"))
    near(np.hstack([A @ np.ones(3), b[0]]), np.hstack([a @ np.ones(3), b[0]]))
    for bad in (lambda: np.hstack([A, pl.Identity(4)]), lambda: np.block([[A], [pl.Identity(4)]])):
        with pytest.raises(ValueError, match="4"):
            bad()
    near(np.linalg.tensordot(A, B, axes=1), a @ b)
    assert np.may_share_memory(A, a) and not np.may_share_memory(A, b)
    assert np.array_equiv(A, a) and not np.array_equiv(A, b)
    assert np.common_type(A, np.float32(1).reshape(1)) == np.float64
    assert set(np.linalg.eigvals(A)) == set(np.linalg.eig(A).eigenvalues)
    w, V = np.linalg.eig(A)
    np.testing.assert_allclose((A @ V).toarray(), (V @ pl.Diag(w)).toarray(), atol=1e-12)


def test_dtypes_outside_c(rng):
    """float16 kinds have no dtype of ours: the dense form."""
    a = np.ones((3, 3), np.float16)
    for f in (np.sum, np.mean, np.trace):
        assert f(pl.Dense(a)) == f(a)
    swapped = a.astype(">f8")
    assert np.mean(pl.lazy(swapped)).dtype == np.mean(swapped).dtype
    for A in (pl.FiniteDifference(5), pl.Laplacian(5, dtype=None)):
        x = np.array([True, False, True, True, False])
        np.testing.assert_array_equal(A @ x, A.toarray() @ x)  # -1 is no bool


def test_every_row_is_tried(rng):
    """A row without a test is a row that may be wrong."""
    text = inspect.getsource(inspect.getmodule(test_every_row_is_tried))
    untried = [n for n in TABLE if f"np.{n}(" not in text and f'"{n}"' not in text]
    assert set(untried) <= {f"linalg.{n}" for n in LINALG}
