"""What is assumed of a matrix (`assume_a`) says which part of its array is the matrix: in every
function, in what is made of it, and in first and second derivatives, what lies elsewhere is not
read."""

import pickle
import warnings

import numpy as np
import pytest

import pylinop as pl

N = 6
WORDS = ("sym", "her", "pos", "lower triangular", "upper triangular", "diagonal", "tridiagonal")


def drawn(word, kind):
    """(a, the same with numbers where it is not read)."""
    rng = np.random.default_rng([len(word), kind == "c"])
    a = rng.normal(size=(N, N)) + (1j * rng.normal(size=(N, N)) if kind == "c" else 0)
    a = 0.3 * a + 3 * np.eye(N)
    i, j = np.indices((N, N))
    read = {
        "lower triangular": j <= i,
        "upper triangular": j >= i,
        "diagonal": i == j,
        "tridiagonal": abs(i - j) <= 1,
    }.get(word, j >= i)
    if word == "sym":
        a = np.triu(a) + np.triu(a, 1).T
    elif word in ("her", "pos"):
        a = np.triu(a) + np.triu(a, 1).conj().T
        a[np.diag_indices(N)] = a.diagonal().real
    else:
        a = np.where(read, a, 0)
    return a, np.where(read, a, rng.normal(size=(N, N)) + 7)


def functions(kind):
    rng = np.random.default_rng(3)
    x, X, B = rng.normal(size=N), rng.normal(size=(N, 3)), rng.normal(size=(N, N))
    d, s = rng.normal(size=N) + 5, 0.3 * rng.normal(size=(N, N))
    return {
        "dense form": lambda A: A.toarray(),
        "products": lambda A: A @ x + x @ A + (A @ X)[:, 0] + A.T @ x + A.H @ x + A.conj() @ x,
        "dense product": lambda A: (pl.Dense(B) @ A @ pl.Dense(B)).toarray(),
        "sums": lambda A: (2 * A + pl.Diag(d) - A.T).toarray(),
        "elements": lambda A: np.array([A[i, j] for i in (0, 2, 5) for j in (1, 3, 4)]),
        "lines": lambda A: A[2] + A[:, 3] + A[[1, 2, 0, 3, 3, 1], [4, 1, 0, 3, 2, 5]],
        "slices": lambda A: A[1:4, 2:].toarray() + A[3:, :4] @ B[:4, :4] + A[1:4, 1:4] @ B[:3, :4],
        "turned slices": lambda A: A[::-1, ::-1].toarray() + A[:, ::-1].toarray(),
        "blocks beside": lambda A: np.stack([A[:2, 3:].toarray(), A[4:, :3].toarray()]),
        "diagonals": lambda A: np.concatenate([A.diagonal(), A.diagonal(2), A.diagonal(-1)]),
        "trace": lambda A: pl.trace(A) + pl.trace(A @ B),
        "elementwise": lambda A: pl.multiply(A, B).toarray(),
        "kron": lambda A: pl.Kron(A, B).toarray() + pl.Kron(B, A) @ np.eye(N * N),
        "blocks": lambda A: pl.Block([[A, B], [B, A.T]]).toarray(),
        "many blocks": lambda A: pl.BlockDiag(*[A, A.T] * 5) @ np.ones(10 * N),
        "a stack": lambda A: (A @ pl.Dense(np.stack([B, X @ X.T]))).toarray(),
        "solve": lambda A: pl.solve(A, x) + pl.solve(A + pl.Diag(d), x) + pl.solve(A.T, x),
        "solves of products": lambda A: pl.solve(A @ A.H + pl.Identity(N), x),
        "inverse": lambda A: pl.inv(A).toarray() + pl.inv(A + pl.Dense(s)).toarray(),
        "determinants": lambda A: np.array([pl.det(A), pl.det(A + pl.Diag(d))]),
        "low rank": lambda A: pl.solve(pl.LowRankUpdate(A, X), x) + pl.solve(A + pl.LowRank(X), x),
        "lstsq": lambda A: pl.lstsq(A[:, :4], x)[0] + pl.lstsq(A, x)[0][:4],
        "pinv": lambda A: pl.pinv(A[:, :4]).toarray(),
        "svdvals": lambda A: pl.svdvals(A),
        "qr": lambda A: abs(pl.qr(A)[1].toarray()),
        "expm": lambda A: pl.expm(A).toarray() + pl.expm(A + pl.Diag(d / 9)).toarray(),
        "expm of views": lambda A: pl.expm(2 * A.T - A).toarray() + pl.expm(A.conj()).toarray(),
        "norm": lambda A: pl.matrix_norm(A) + pl.matrix_norm(A, 1) + pl.matrix_norm(A, 2),
        "powers": lambda A: (A**3).toarray(),
        "solve by cg": lambda A: pl.solve(A.H @ A, x, method="cg"),
        "lazily": lambda A: np.asarray(pl.lazy(A) @ B + np.exp(0.1 * pl.lazy(A))),
        "einsum": lambda A: pl.einsum("ij,jk->ik", A, B),
        "numpy": lambda A: np.asarray(A) + np.sin(np.asarray(A)),
        "cast": lambda A: A.astype(complex).toarray(),
        "beside a callable": lambda A: (A + pl.MatVec((N, N), lambda v: 2 * v)) @ x,
        "copies": lambda A: A.copy().toarray() + pl.lazy(A).toarray(),
    }


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("word", WORDS)
def test_values_by_what_is_named(word, kind):
    plain, filled = drawn(word, kind)
    wrong = []
    for rubbish in (filled, np.where(filled == plain, plain, np.nan)):
        for name, f in functions(kind).items():
            want, got = f(pl.Dense(plain)), f(pl.Dense(rubbish, assume_a=word))
            assert np.isfinite(want).all()
            if not np.allclose(want, got, rtol=1e-9, atol=1e-9):
                wrong.append((name, "nan" if np.isnan(rubbish).any() else "numbers"))
    assert not wrong


VALUES = (
    lambda A: A,
    lambda A: np.exp(0.1 * A) + np.exp(A / 9),
    lambda A: np.sin(A),
    lambda A: np.sum(A) + np.max(np.real(A)) + A.mean(),
    lambda A: A.sum(0) + A[2] + A[:, 1] + A[1, 4] + A[4, 1],
    lambda A: np.concatenate([A, A.T]),
    lambda A: A.reshape(-1) + A.ravel(),
    lambda A: np.tril(A) - np.where(np.real(A) > 0, A, 0),
    lambda A: np.diag(A) + np.diag(A, 1)[0] + np.trace(A),
    lambda A: A.astype(complex),
    lambda A: pl.einsum("ij->i", A) + np.einsum("ij,j->i", A, np.ones(N)),
    lambda A: np.linalg.norm(A) + np.linalg.det(A),
    lambda A: A[::-1, ::-1] + A[[2, 0, 1, 3, 4, 5]] + A[:, ::-1],
    lambda A: A * np.ones((N, 1)) + A * A + A**2,
    lambda A: pl.evaluate(A @ np.ones(N), np.exp(A))[1],
)


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("word", WORDS)
def test_values_of_lazy_arrays(word, kind):
    plain, filled = drawn(word, kind)
    for at, f in enumerate(VALUES):
        want = np.asarray(f(pl.lazy(plain)))
        for rubbish in (filled, np.where(filled == plain, plain, np.nan)):
            np.testing.assert_allclose(
                np.asarray(f(pl.lazy(rubbish, assume_a=word))), want, 1e-10, 1e-10, err_msg=str(at)
            )
            np.testing.assert_allclose(
                np.asarray(f(pl.lazy(pl.Dense(rubbish, assume_a=word)))), want, 1e-10, 1e-10
            )


def test_integers_by_what_is_named():
    a = np.arange(25).reshape(5, 5)
    for word, want in (
        ("sym", np.triu(a) + np.triu(a, 1).T),
        ("lower triangular", np.tril(a)),
        ("tridiagonal", np.triu(np.tril(a, 1), -1)),
    ):
        A = pl.Dense(a, assume_a=word)
        np.testing.assert_array_equal(A.toarray(), want)
        np.testing.assert_array_equal(A @ np.arange(5), want @ np.arange(5))
        np.testing.assert_array_equal(A[1:, :3].toarray(), want[1:, :3])


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "long rows": lambda a: np.pad(a, ((0, 0), (0, 5)))[:, : len(a)],
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
}


def half_and_whole(n, word, dtype):
    """An array of NaN where it is not read, and the matrix."""
    rng = np.random.default_rng([n, len(word)])
    a = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    a = (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)
    turned = a.T if word == "sym" else a.T.conj()
    whole = np.triu(a) + np.tril(turned, -1)
    if word == "her":
        whole[np.diag_indices(n)] = whole.diagonal().real
        a[np.diag_indices(n)] = whole.diagonal() + (3j if np.dtype(dtype).kind == "c" else 0)
    return np.where(np.tri(n, k=-1) > 0, np.nan, a).astype(dtype), whole


# Sizes beside squares of vectors (4, 8), tiles (48, 240) and the turn to the whole matrix (2 k > n,
# k > 100); columns beside loops of their own (1, 2, 4) and pieces of 32.
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("word", ["sym", "her"])
@pytest.mark.parametrize("n", [1, 2, 5, 9, 31, 47, 48, 49, 97, 130, 203, 290])
def test_products_by_half(n, word, dtype):
    a, whole = half_and_whole(n, word, dtype)
    rng, eps = np.random.default_rng(n), np.finfo(dtype).eps
    columns = [0, 1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 48, 49, 65, 100, 101]
    some = list(columns[n % 2 :: 2]) if n < 203 else [0, 2, 5, 33, 100, 101]
    for at, (name, layout) in enumerate(LAYOUTS.items()):
        A = pl.Dense(layout(a), assume_a=word)
        np.testing.assert_array_equal(A.toarray(), whole)
        for k in some:
            x = rng.normal(size=(n, k) if k else n) + 1j * rng.normal(size=(n, k) if k else n)
            x = (x if A.dtype.kind == "c" else x.real).astype(dtype)
            x = np.asarray(x, order="CF"[(at + k) % 2])
            x = x[::-1].copy()[::-1] if (at + k) % 3 == 0 else x
            for op, value in (
                (A, whole),
                (A.T, whole.T),
                (A.H, whole.conj().T),
                (A.conj(), whole.conj()),
            ):
                got, want = op @ x, value.astype(complex) @ x.astype(complex)
                size = np.abs(whole).astype(float) @ np.abs(x).astype(float)
                assert (np.abs(got - want) <= 4 * (n + 4) * eps * size).all(), (name, k)
                np.testing.assert_array_equal(got, op @ x)


def test_what_makes_a_product_by_half():
    """The whole matrix is made where more columns share it."""
    half, whole = "half-gemm", "named"
    for n, k, dtype, made in (
        (200, 100, float, half),
        (199, 100, float, whole),
        (520, 256, np.float32, half),
        (520, 257, float, whole),
        (400, 100, complex, half),
        (400, 101, complex, whole),
    ):
        A = pl.Dense(np.eye(n, dtype=dtype), assume_a="sym")
        assert A.explain("apply", np.ones((n, k), dtype)).steps[0]["name"] == made
    A = pl.Dense(np.eye(n), assume_a="sym")
    assert A.explain("apply", np.ones(n)).steps[0]["name"] == "symv"


@pytest.mark.parametrize("layout", ["C", "F", "strided", "stacked"])
@pytest.mark.parametrize("n", [1, 3, 31, 65, 130])
def test_one_column_by_half(n, layout):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    want = np.triu(a) + np.triu(a, 1).T
    given = {"C": a, "F": np.asfortranarray(a), "stacked": np.stack([a, a])}.get(layout)
    if layout == "strided":
        given = np.zeros((2 * n, 3 * n))[::2, ::3]
        given[...] = a
    for dtype in (np.float32, np.float64):
        A, x = pl.Dense(given.astype(dtype), assume_a="sym"), rng.normal(size=n).astype(dtype)
        size = np.abs(want) @ np.abs(x)
        bound = 4 * n * np.finfo(dtype).eps * size
        assert (np.abs(A @ x - want @ x.astype(float)) <= bound).all()
        assert (np.abs(2 * (A.T @ x) - A @ x - want @ x.astype(float)) <= 4 * bound).all()


def test_functions_by_what_is_named():
    for word in ("pos", "her", "sym"):
        plain, filled = drawn(word, "c" if word == "her" else "f")
        want, got = pl.Dense(plain, assume_a=word), pl.Dense(filled, assume_a=word)
        for f in (
            lambda A: pl.eigvalsh(A),
            lambda A: pl.eigvalsh(A + A.conj() + pl.Identity(N)),
            lambda A: pl.cholesky(A).toarray(),
            lambda A: pl.cholesky(2 * A + pl.Identity(N)).toarray(),
            lambda A: pl.eigh(A.T)[0],
            lambda A: pl.sqrtm(A + 2 * pl.Identity(N)).toarray(),
            lambda A: pl.logm(2 * A).toarray(),
            lambda A: pl.factorized(A).solve(np.ones(N)),
            lambda A: pl.sample(A, rng=np.random.default_rng(1)),
            lambda A: pl.solve(A, np.ones(N), method="cg"),
            lambda A: pl.solve(A.astype(np.complex64), np.ones(N)),
            lambda A: pickle.loads(pickle.dumps(A)) @ np.ones(N),
            lambda A: pl.MultivariateNormal(np.zeros(N), A).logpdf(np.ones(N)),
            lambda A: A.tosparse().toarray(),
            lambda A: pl.aslinearoperator(A).matvec(np.ones(N)),
            lambda A: pl.cond(A),
            lambda A: pl.matrix_rank(A),
            lambda A: pl.diagonal(pl.inv(A)),
            lambda A: pl.inv_quad_logdet(A, np.ones(N)),
        ):
            np.testing.assert_allclose(f(got), f(want), rtol=1e-9, atol=1e-9)


# -- derivatives: of a LazyArray, along directions that are what is assumed

FUNCTIONS = {
    "product": lambda A, s: (np.sin(A @ s) * s).sum(),
    "view and sum": lambda A, s: (np.cos((2 * A.T + 0.5 * A.conj()) @ s) * s).sum(),
    "solve": lambda A, s: (pl.solve(A, s) * s).sum(),
    "solve of a sum": lambda A, s: (pl.solve(A + np.diag(s * s + 4), s) * s).sum(),
    "logdet": lambda A, s: pl.logdet(A @ A.conj().T + np.eye(N)),
    "elementwise": lambda A, s: (np.exp(0.1 * A) * np.outer(s, s)).sum(),
    "expm": lambda A, s: (pl.expm(0.3 * A) @ s * s).sum(),
    "expm of views": lambda A, s: (pl.expm(0.1 * (2 * A.T - A.conj())) @ s * s).sum(),
    "expm of a sum": lambda A, s: (pl.expm(0.2 * A + 0.1 * np.diag(s)) @ s * s).sum(),
    "sqrtm": lambda A, s: (pl.sqrtm(A) @ s * s).sum(),
    "sqrtm of a view": lambda A, s: (pl.sqrtm(2 * A.T + np.eye(N)) @ s * s).sum(),
    "logm": lambda A, s: (pl.logm(A.conj() + 0.5 * np.eye(N)) @ s * s).sum(),
    "exponentials": lambda A, s: (np.exp(A / 9) @ s * s).sum() + np.sin(A).sum() + A[4, 1],
    "trace of a part": lambda A, s: (A[1:4, 1:4] @ s[:3]).sum() + (A[:2, 3:] @ s[:3]).sum(),
}


def _directions(word, kind):
    rng = np.random.default_rng(9)
    plain, _ = drawn(word, kind)
    v = rng.normal(size=(N, N)) + (1j * rng.normal(size=(N, N)) if kind == "c" else 0)
    if word == "sym":
        return v + v.T
    if word in ("her", "pos"):
        return v + v.conj().T
    return np.where(plain != 0, v, 0)


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("word", WORDS)
def test_derivatives_by_what_is_named(word, kind):
    plain, filled = drawn(word, kind)
    s = np.random.default_rng(5).normal(size=N)
    v = _directions(word, kind)
    wrong = []
    for name, f in FUNCTIONS.items():

        def declared(a, f=f):
            return np.real(f(pl.lazy(a, assume_a=word), s))

        def general(a, f=f):
            return np.real(f(a, s))

        for a in (filled, np.where(filled == plain, plain, np.nan)):
            got = [pl.grad(declared)(a), pl.hvp(declared)(a, v)]
            want = [pl.grad(general)(plain), pl.hvp(general)(plain, v)]
            for order, (one, two) in enumerate(zip(got, want, strict=True)):
                two = _projected(word, two)
                if not np.allclose(one, two, rtol=1e-7, atol=1e-7 * np.abs(two).max()):
                    wrong.append((name, order + 1, "nan" if np.isnan(a).any() else "numbers"))
    assert not wrong


def _projected(word, g):
    if word == "sym":
        return (g + g.T) / 2
    if word in ("her", "pos"):
        return (g + g.conj().T) / 2
    keep = {"lower triangular": np.tril, "upper triangular": np.triu}.get(word)
    k = int(word == "tridiagonal")
    return keep(g) if keep else np.triu(np.tril(g, k), -k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("definite", [True, False])
def test_factors_of_the_triangle_alone(dtype, definite):
    """Cholesky reads the array as it is given, its failure too, beside products or not; one factor
    serves what is asked together and apart."""
    rng, n = np.random.default_rng(8), 120
    a = rng.normal(size=(n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(n, n))
    whole = (a @ a.conj().T / n + np.eye(n)) if definite else (a + a.conj().T)
    whole = whole.astype(dtype)
    b, tol = rng.normal(size=n).astype(dtype), 400 * n * np.finfo(dtype).eps
    logs = (lambda L: [pl.logdet(L).real]) if definite else lambda L: []  # which is refused
    for below in (np.nan, 7.0):
        given = np.where(np.tri(n, k=-1, dtype=bool), below, whole).astype(dtype)
        A, L = pl.Dense(given, "pos"), pl.lazy(given, "pos")
        x = np.linalg.solve(whole.astype(complex), b)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pl.FallbackWarning)
            got = [
                pl.solve(A, b),
                (pl.inv(A) @ b),
                *pl.evaluate(pl.inv(L) @ b, L @ (pl.inv(L) @ b), *logs(L)),
            ]
            inverse = pl.inv(A).toarray()
        scale = np.abs(x).max()
        for y in got[:3]:
            assert np.abs(y - x).max() <= tol * scale * np.linalg.cond(whole)
        assert np.abs(got[3] - b).max() <= tol * np.linalg.cond(whole)
        if definite:
            log = np.linalg.slogdet(whole.astype(complex))[1]
            assert abs(got[4] - log) <= tol * np.linalg.cond(whole)
        want = np.linalg.inv(whole.astype(complex))
        assert np.abs(inverse - want).max() <= tol * np.abs(want).max() * np.linalg.cond(whole)
    steps = [s["name"] for s in pl.inv(A).explain("apply", b).steps]
    assert steps[0] == "potrf" and "named" not in steps
