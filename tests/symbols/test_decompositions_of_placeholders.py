"""Decompositions, norms and functions of placeholders: shapes, dtypes and values are those of the
functions of arrays, wide, tall and square; what has several results is computed once."""

import pickle

import numpy as np
import pytest

import pylinop as pl

# Functions of X (N, K), y (N,), S (N, N), P (N, N) positive definite.
NUMPY = {
    "slogdet": lambda X, y, S, P: np.linalg.slogdet(S),
    "eigh": lambda X, y, S, P: np.linalg.eigh(P),
    "eigh U": lambda X, y, S, P: np.linalg.eigh(P, UPLO="U")[0],
    "eigvalsh": lambda X, y, S, P: np.linalg.eigvalsh(P),
    "cholesky": lambda X, y, S, P: np.linalg.cholesky(P),
    "upper": lambda X, y, S, P: np.linalg.cholesky(P, upper=True),
    "qr": lambda X, y, S, P: np.linalg.qr(X),
    "qr complete": lambda X, y, S, P: np.linalg.qr(X, mode="complete"),
    "r": lambda X, y, S, P: np.linalg.qr(X, "r"),
    "r of a product": lambda X, y, S, P: np.linalg.qr(S @ X)[1] @ X.T,
    "svd": lambda X, y, S, P: np.linalg.svd(X, full_matrices=False),
    "svd full": lambda X, y, S, P: np.linalg.svd(X),
    "svd values": lambda X, y, S, P: np.linalg.svd(X, compute_uv=False),
    "svdvals": lambda X, y, S, P: np.linalg.svdvals(X),
    "pinv": lambda X, y, S, P: np.linalg.pinv(X) @ y,
    "pinv to a tolerance": lambda X, y, S, P: np.linalg.pinv(X, 0.3) @ y,
    "pinv of a Hermitian one": lambda X, y, S, P: np.linalg.pinv(P, hermitian=True),
    "lstsq": lambda X, y, S, P: np.linalg.lstsq(X, y),
    "lstsq of columns": lambda X, y, S, P: np.linalg.lstsq(X, S),
    "norms": lambda X, y, S, P: (
        np.linalg.norm(X),
        np.linalg.norm(X, 1),
        np.linalg.norm(X, axis=1),
        np.linalg.norm(X, axis=0, keepdims=True),
        np.linalg.norm(y, 3),
        np.linalg.norm(X, "nuc", (0, 1), True),
        np.linalg.vector_norm(X),
        np.linalg.vector_norm(X, axis=0, ord=1),
        np.linalg.vector_norm(X, keepdims=True),
        np.linalg.matrix_norm(X, ord=np.inf, keepdims=True),
    ),
    "cond": lambda X, y, S, P: (np.linalg.cond(X), np.linalg.cond(S, 1)),
    "matrix_rank": lambda X, y, S, P: np.linalg.matrix_rank(X),
    "matrix_rank to tolerances": lambda X, y, S, P: (
        np.linalg.matrix_rank(X, 0.5),
        np.linalg.matrix_rank(X, rtol=0.5),
        np.linalg.matrix_rank(P, hermitian=True),
    ),
    "eig": lambda X, y, S, P: np.sum(np.linalg.eig(S.astype(complex))[0]),
    "eigvals": lambda X, y, S, P: np.prod(np.linalg.eigvals(S + 0j)),
    "multi_dot": lambda X, y, S, P: np.linalg.multi_dot([y, S, P, X]),
    "outer": lambda X, y, S, P: np.linalg.outer(y, X[0]),
    "tensordot": lambda X, y, S, P: np.linalg.tensordot(S, X, axes=1),
    "transposed": lambda X, y, S, P: np.linalg.matrix_transpose(X),
    "vecdot": lambda X, y, S, P: (np.vecdot(S, y), np.linalg.vecdot(X, X, axis=0)),
}
if hasattr(np, "matvec"):
    NUMPY["matvec"] = lambda X, y, S, P: np.matvec(S, y) + np.vecmat(y, S)
OURS = {
    "slogdet": lambda X, y, S, P: pl.slogdet(S),
    "eigh": lambda X, y, S, P: pl.eigh(P),
    "eigvalsh": lambda X, y, S, P: pl.eigvalsh(P),
    "cholesky": lambda X, y, S, P: pl.cholesky(P),
    "qr": lambda X, y, S, P: pl.qr(X),
    "r": lambda X, y, S, P: pl.qr(X, mode="r"),
    "svd": lambda X, y, S, P: pl.svd(X, full_matrices=False),
    "svdvals": lambda X, y, S, P: pl.svdvals(X),
    "pinv to a tolerance": lambda X, y, S, P: pl.pinv(X, rtol=0.3) @ y,
    "matrix_rank to a tolerance": lambda X, y, S, P: pl.matrix_rank(X, rtol=0.5),
    "funm": lambda X, y, S, P: pl.funm(P, np.log1p),
    "power": lambda X, y, S, P: (
        pl.fractional_matrix_power(P, 0.3),
        pl.fractional_matrix_power(P, 2),
    ),
    "lu": lambda X, y, S, P: pl.lu(X),
    "lu of rows": lambda X, y, S, P: pl.lu(X, p_indices=True),
    "lu permuted": lambda X, y, S, P: pl.lu(X, permute_l=True),
    "ldl": lambda X, y, S, P: pl.ldl(P),
    "pinv": lambda X, y, S, P: pl.pinv(X),
    "lstsq": lambda X, y, S, P: pl.lstsq(X, y)[0],
    "norm": lambda X, y, S, P: pl.norm(X, 1) + pl.matrix_norm(X),
    "cond": lambda X, y, S, P: pl.cond(S),
    "matrix_rank": lambda X, y, S, P: pl.matrix_rank(X),
    "matrix_power": lambda X, y, S, P: pl.matrix_power(S, 3),
    "expm": lambda X, y, S, P: pl.expm(P / 100),
    "logm": lambda X, y, S, P: pl.logm(P),
    "sqrtm": lambda X, y, S, P: pl.sqrtm(P),
    "inv_quad_logdet": lambda X, y, S, P: pl.inv_quad_logdet(P, y),
    "inv_quad of columns": lambda X, y, S, P: pl.inv_quad_logdet(P, X),
    "sqrt_inv_matmul": lambda X, y, S, P: (pl.sqrt_inv_matmul(P, X), pl.sqrt_inv_matmul(P, y)),
    "cg": lambda X, y, S, P: pl.solve(P, y, method="cg", rtol=1e-12),
}


def dense(x):
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


def check(run, m, n, rng, dtype=float):
    N, K = pl.symbols("N K")
    places = [pl.placeholder(s, dtype) for s in ((N, K), N, (N, N), (N, N))]
    made = run(*places)
    f = pl.function(tuple(places), made)
    X, y, S = (rng.normal(size=s).astype(dtype) for s in ((m, n), m, (m, m)))
    P = S @ S.T + 3 * np.eye(m, dtype=dtype)
    want = run(X, y, S, P)
    want = want if isinstance(want, tuple) else (want,)
    for g in (f, f, f, pickle.loads(pickle.dumps(f))):  # from the third call on by a recipe
        got = g(X, y, S, P)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(want)
        for a, b in zip(got, want):
            assert isinstance(a, pl.LazyArray)
            a, b = dense(a), dense(b)
            assert a.shape == b.shape
            assert a.dtype == b.dtype or a.dtype.kind == b.dtype.kind == "i"  # a rank: int32
            u = np.finfo(b.dtype).eps if b.dtype.kind == "f" else 0
            np.testing.assert_allclose(
                a, b, rtol=0, atol=1e4 * u * max(1, np.abs(b).max(initial=0))
            )
    return made


@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (4, 4), (1, 1), (17, 16)])
@pytest.mark.parametrize("name", NUMPY)
def test_numpys_functions(name, m, n, rng):
    check(NUMPY[name], m, n, rng)


@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (4, 4), (1, 1)])
@pytest.mark.parametrize("name", OURS)
def test_our_functions(name, m, n, rng):
    check(OURS[name], m, n, rng)


@pytest.mark.parametrize("name", ["slogdet", "qr", "svd", "pinv", "eigh", "cholesky"])
def test_single_precision(name, rng):
    check(NUMPY[name], 6, 4, rng, np.float32)


def test_results_are_named_as_those_of_arrays(rng):
    N = pl.symbols("N")
    S = pl.placeholder((N, N))
    assert np.linalg.slogdet(S).logabsdet.shape == ()
    assert type(np.linalg.qr(S)) is type(np.linalg.qr(np.eye(2)))
    assert type(pl.slogdet(S)) is type(pl.slogdet(np.eye(2)))
    assert str(pl.svd(S).S.shape) == "(N,)"  # the sides are equal: no minimum is written


def test_the_smaller_side_is_followed_both_ways():
    N, K = pl.symbols("N K")
    X = pl.placeholder((N, K))
    values = np.linalg.svdvals(X)
    assert str(values.shape) == "(min(K, N),)"
    sizes = pl.unify((values, 5), (X[0], 7))
    assert sizes[X] == (5, 7)
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.unify((values, 5), (X, (4, 7)))
    with pytest.raises(ValueError, match="N may be any size from 5 on"):
        pl.unify((values, 5), (X[0], 5))[X]
    M = pl.symbols("M", least=0)
    assert str(np.linalg.svdvals(pl.placeholder((N + M, N))).shape) == "(N,)"
    f = pl.function(X, values)
    assert f.sizes(N=3, K=8) == {"N": 3, "K": 8}
    assert f.bind(N=3)(np.ones((3, 9))).shape == (3,)


@pytest.mark.parametrize("function", [np.linalg.slogdet, pl.cholesky, pl.expm, pl.eigh, pl.ldl])
def test_what_is_not_square(function):
    with pytest.raises(ValueError, match="no sizes fit"):
        function(pl.placeholder((4, 3)))
    N = pl.symbols("N")
    with pytest.raises(ValueError, match="a matrix, got shape"):
        function(pl.placeholder(N))


def test_what_is_refused_is_named():
    N, K = pl.symbols("N K")
    X, S = pl.placeholder((N, K)), pl.placeholder((N, N))
    for run, match in [
        (lambda: np.linalg.eig(S), r"eig of S \(N, N\): whether .* depends on its values"),
        (lambda: pl.null_space(X), r"null_space of X \(N, K\): how many columns"),
        (lambda: pl.orth(X), "orth of X"),
        (lambda: np.linalg.pinv(X, X[0]), "pinv of placeholders: rcond is a number, got Symbolic"),
        (lambda: pl.matrix_rank(X, tol=[0.1]), "matrix_rank of placeholders: tol is a number"),
        (lambda: X[0, [0.5]], r"arrays of integers and masks, got list \(1,\) float64"),
        (lambda: X[X > 0], r"index by .* of bool: how many it takes, its values say"),
        (lambda: X[True], "got bool"),
        (lambda: np.linalg.svd(S, hermitian=True), r"svd\(hermitian=True\) of placeholders"),
        (lambda: np.linalg.qr(X, mode="raw"), "qr of placeholders in mode 'raw'"),
        (lambda: pl.eigh(S, k=2), "pl.eigh of placeholders takes no k"),
        (lambda: pl.cholesky(S, jitter=0.1), "pl.cholesky of placeholders takes no jitter"),
        (lambda: pl.lstsq(S[None], S), "lstsq of placeholders: of a matrix"),
        (lambda: pl.inv_quad_logdet(S[None], S), "inv_quad_logdet of placeholders: of a matrix"),
    ]:
        with pytest.raises(NotImplementedError, match=match):
            run()
    for run in (lambda: pl.eigsh(S), lambda: pl.sample(S)):
        with pytest.raises(TypeError, match=r"has no value: f = pl.function"):
            run()


def test_arguments_that_no_function_has():
    N = pl.symbols("N")
    S = pl.placeholder((N, N))
    for run, match in [
        (lambda: pl.pinv(S, tol=0.1), "tol"),
        (lambda: np.linalg.multi_dot([S], S), "multi_dot"),
        (lambda: pl.matrix_rank(S, 0.1, True, 3), "3 positional arguments"),
    ]:
        with pytest.raises(TypeError, match=match):
            run()
    for f in (np.linalg.multi_dot, pl.multi_dot):
        with pytest.raises(ValueError, match="at least two"):
            f([S])
    with pytest.raises(ValueError, match="can't be both set"):
        np.linalg.matrix_rank(S, 0.1, rtol=0.1)
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.pinv(pl.placeholder((3, 4)), hermitian=True)


@pytest.mark.parametrize("places", [[0, -3], np.array([[2, 0], [1, 1]]), [], np.array([1], "u1")])
def test_indices_by_arrays(rng, places):
    N, K = pl.symbols("N K")
    X, v = pl.placeholder((N, K)), pl.placeholder(N)
    f = pl.function((X, v), (v[places], X[1:, places], X[..., None, places, :]))
    for n in (3, 4, 17):
        x, w = rng.standard_normal((n, n + 1)), rng.standard_normal(n)
        for got, want in zip(
            f(x, w), (w[places], x[1:, places], x[..., None, places, :]), strict=True
        ):
            np.testing.assert_array_equal(got, want)
    if np.size(places) > 1:
        with pytest.raises(ValueError, match="N >= 3: an index of X"):
            f(np.ones((2, 3)), np.ones(2))


def test_dtypes_as_numpy():
    N = pl.symbols("N")
    assert (pl.placeholder(N, bool) ** 2).dtype == (np.ones(1, bool) ** 2).dtype
    S, v = pl.placeholder((N, N)), pl.placeholder(N)
    a, b = np.eye(3), np.ones(3)
    rank = np.linalg.lstsq(a, b)[2]
    for f in (np.linalg.lstsq, pl.lstsq):
        assert f(S, v)[2].dtype == f(pl.lazy(a), b)[2].dtype == rank.dtype
        assert np.asarray(f(pl.lazy(a), b)[2]).dtype == rank.dtype
    for A in (a, pl.Dense(a), pl.Kron(a, a), pl.Tridiagonal(b[1:], 3 * b, b[1:]), np.ones((4, 2))):
        assert pl.lstsq(A, np.ones(A.shape[0]))[2].dtype == rank.dtype
