"""Gradients through pylinop's functions from matrices to matrices, singular vectors, QR, norms,
least squares and iterative solves."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl
from pylinop._structured import function_derivatives, matrix_functions

N = 5


def matrix(rng, dtype, m=N, n=N):
    a = rng.standard_normal((m, n))
    return a + 1j * rng.standard_normal((m, n)) if dtype == "c" else a


def definite(a):
    return a @ a.H / 4 + 3 * pl.Identity(a.shape[0])


FUNCTIONS = {
    "expm": lambda a: pl.expm(a / 3),
    "logm": lambda a: pl.logm(definite(a)),
    "sqrtm": lambda a: pl.sqrtm(definite(a)),
    "power": lambda a: pl.fractional_matrix_power(definite(a), -0.3),
    "cholesky": lambda a: pl.cholesky(definite(a)),
    "upper": lambda a: pl.cholesky(definite(a), upper=True),
    "pinv": lambda a: pl.pinv(a[:, :3]),
}


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_matrices(name, dtype, rng):
    a, f = matrix(rng, dtype), FUNCTIONS[name]
    w = matrix(rng, dtype, *f(pl.lazy(a)).shape)
    check(lambda a: np.sum(np.real(w * f(a))), a)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name, rng):
    a, f = matrix(rng, "f"), FUNCTIONS[name]
    x = rng.standard_normal(f(pl.lazy(a)).shape[1])
    check_second(lambda a: np.sum((f(a) @ x) ** 2), a, rtol=1e-6)


def test_a_function_that_is_not_symmetric(rng):
    """Of a matrix far from normal, along which the adjoint is not the derivative itself."""
    a, w = np.triu(matrix(rng, "f")) + np.diag(np.arange(1.0, 6)), matrix(rng, "f")
    check(lambda a: np.sum(w * pl.expm(a / 4)), a)
    check(lambda a: np.sum(w * pl.logm(a @ a + pl.Identity(N) * 9)), a)
    check(lambda a: np.sum(w * pl.sqrtm(a @ a + pl.Identity(N) * 9)), a)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_eigenvalues_and_vectors(dtype, rng):
    a, w = matrix(rng, dtype), matrix(rng, dtype)

    def f(a):
        values, Q = pl.eigh(definite(a))
        return np.sum(np.abs(w @ Q) ** 2 * values)

    check(f, a)


@pytest.mark.parametrize("svd", [pl.svd, np.linalg.svd])
@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 4), (5, 1)])
def test_singular_vectors_up_to_their_phase(svd, dtype, shape, rng):
    a = matrix(rng, dtype, *shape)
    k = min(shape)
    w, v, s = (
        matrix(rng, dtype, 3, shape[0]),
        matrix(rng, dtype, shape[1], 3),
        np.arange(1.0, k + 1),
    )

    def of_u(a):
        return np.sum(np.abs(w @ svd(a, full_matrices=False)[0]) ** 2 * s)

    def of_v(a):
        return np.sum(np.abs(svd(a, full_matrices=False)[2] @ v) ** 2 * s[:, None])

    def of_both(a):
        U, S, Vh = svd(a, full_matrices=False)
        return np.sum(np.real((w @ (U * np.sqrt(S)) @ Vh) * np.conjugate(v.T)))

    for f in (of_u, of_v, of_both):
        check(f, a, rtol=1e-7)
    check(lambda a: np.sum(s * svd(a)[1]), a)


def test_singular_vectors_without_a_derivative(rng):
    a = rng.standard_normal((5, 3))
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        pl.grad(lambda a: np.sum(np.linalg.svd(a)[0] ** 3))(a)
    w = rng.standard_normal((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="repeated"):
        pl.grad(lambda a: np.sum(w * pl.svd(a)[0]))(np.eye(3))


@pytest.mark.parametrize("qr", [pl.qr, np.linalg.qr])
@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 4), (5, 1), (4, 6), (1, 2), (3, 17)])
def test_qr(qr, dtype, shape, rng):
    a, k = matrix(rng, dtype, *shape), min(shape)
    w, v = matrix(rng, dtype, shape[0], k), matrix(rng, dtype, k, shape[1])
    check(lambda a: np.sum(np.real(w * qr(a)[0])), a)
    check(lambda a: np.sum(np.real(v * qr(a)[1])), a)
    check(lambda a: np.sum(np.real(v * qr(a, mode="r"))), a)
    if shape[0] > shape[1]:
        with pytest.raises(NotImplementedError, match=r"(?s)reduced.*built at .*mode=.complete"):
            pl.grad(lambda a: np.sum(np.real(qr(a, mode="complete")[0])))(a)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
def test_norms_of_matrices(order, shape, rng):
    a = matrix(rng, "f", *shape)
    check(lambda a: np.linalg.norm(a, order), a)
    check(lambda a: pl.matrix_norm(a, "fro" if order is None else order), a)
    if shape[0] == shape[1] and order != "nuc":
        check(lambda a: np.linalg.cond(a, order), a, rtol=1e-7)


@pytest.mark.parametrize("order", [None, 2, 1, 3, 0.5, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_norms_of_vectors(order, dtype, rng):
    x, w = matrix(rng, dtype)[0], rng.standard_normal(N)
    check(lambda x: np.linalg.norm(x, order), x)
    a = matrix(rng, dtype)
    check(lambda a: np.sum(w * np.linalg.norm(a, order, axis=1)), a)
    check(lambda a: np.sum(w[:, None] * np.linalg.norm(a, order, axis=1, keepdims=True) ** 2), a)
    check_second(lambda x: np.linalg.norm(x, order) ** 2, x.real, rtol=1e-6)


def test_a_norm_at_zero_has_the_gradient_zero():
    for order in (None, 1, 2, 3, np.inf):
        g = pl.grad(lambda x, order=order: np.linalg.norm(x, order))(np.zeros(3))
        assert np.array_equal(g, np.zeros(3))


@pytest.mark.parametrize("lstsq", [pl.lstsq, np.linalg.lstsq])
@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4)])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_least_squares(lstsq, dtype, shape, columns, rng):
    a = matrix(rng, dtype, *shape)
    b = (
        matrix(rng, dtype, shape[0], 3)[:, : columns[0]]
        if columns
        else matrix(rng, dtype, shape[0])[:, 0]
    )
    x, rest, rank, s = lstsq(pl.lazy(a), pl.lazy(b))
    want = np.linalg.lstsq(a, b)
    for got, wanted in zip((x, rest, rank, s), want, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=0, atol=1e-12 * 30)
        assert got.shape == np.shape(wanted)
    w = matrix(rng, dtype, shape[1], *(columns or (1,))).reshape(want[0].shape)
    check(lambda a, b: np.sum(np.real(w * lstsq(a, b)[0])), a, b)
    if shape[0] > shape[1]:
        check(lambda a, b: np.sum(lstsq(a, b)[1]), a, b)


def test_least_squares_of_lower_rank(rng):
    """Has a value, as in NumPy, and no derivative."""
    a, b = np.outer(np.arange(1.0, 5), [1.0, 2.0]), rng.standard_normal(4)
    np.testing.assert_allclose(np.asarray(pl.lstsq(pl.lazy(a), b)[0]), np.linalg.lstsq(a, b)[0])
    with pytest.raises(np.linalg.LinAlgError, match="rank 1, not 2"):
        pl.grad(lambda a: np.sum(pl.lstsq(a, b)[0]))(a)


@pytest.mark.parametrize("method", ["cg", "minres", "gmres", "bicgstab"])
def test_iterative_solves(method, rng):
    """The adjoint system by the same method, to the same tolerance."""
    a, b, w = matrix(rng, "f"), rng.standard_normal(N), rng.standard_normal(N)
    made = definite if method in ("cg", "minres") else lambda a: a + 5 * pl.Identity(N)
    check(lambda a, b: w @ pl.solve(made(a), b, method=method, rtol=1e-13), a, b)


def test_the_adjoint_system_is_solved_to_the_same_tolerance():
    """Where the iteration does not reach it, the gradient says so."""

    def f(A, b, maxiter):
        return np.sum(pl.solve(A, b, method="gmres", rtol=1e-12, maxiter=maxiter) * b)

    A = np.eye(30) + np.diag(np.ones(29), -1)  # b = the last unit vector takes one step, b^H 30
    last = np.eye(30)[-1]
    assert float(f(pl.lazy(A), last, 3)) == 1.0
    with pytest.raises(pl.ConvergenceError):
        pl.grad(lambda A: f(A, last, 3))(A)
    assert np.isfinite(pl.grad(lambda A: f(A, last, 200))(A)).all()


def test_an_iterative_solve_by_a_callable_preconditioner(rng):
    a, b = matrix(rng, "f"), rng.standard_normal(N)

    def f(a):
        return np.sum(pl.solve(definite(a), b, method="cg", M=lambda v: v / 3))

    np.testing.assert_allclose(
        float(f(pl.lazy(a))), np.sum(np.linalg.solve(a @ a.T / 4 + 3 * np.eye(N), b)), rtol=1e-8
    )
    with pytest.raises(NotImplementedError, match="callable for M"):
        pl.grad(f)(a)


def test_structure_is_kept(rng):
    """Factors of a Kron are Krons, also of LazyArrays; nothing of 1,600 x 1,600 is made."""
    a, b = (matrix(rng, "f", 40, 40) for _ in range(2))

    def f(a, b):
        K = pl.Kron(a @ a.T + 40 * pl.Identity(40), b @ b.T + 40 * pl.Identity(40))
        L = pl.cholesky(K)
        w, Q = pl.eigh(K)
        return np.sum((L @ np.ones(1600)) ** 2) + np.sum(np.log(w))

    with pl.config(memory_limit=8_000_000):  # a dense form has 20,480,000 bytes
        value = float(f(pl.lazy(a), pl.lazy(b)))
    A, B = a @ a.T + 40 * np.eye(40), b @ b.T + 40 * np.eye(40)
    L = np.kron(np.linalg.cholesky(A), np.linalg.cholesky(B))
    wanted = np.sum(L.sum(1) ** 2) + 40 * (np.linalg.slogdet(A)[1] + np.linalg.slogdet(B)[1])
    assert abs(value - wanted) < 1e-9 * abs(wanted)


def test_complex_results_of_real_matrices_are_refused():
    a = pl.lazy(np.diag([1.0, -4.0]))
    with pytest.raises(np.linalg.LinAlgError, match="astype"):
        np.asarray(pl.sqrtm(a))
    np.testing.assert_allclose(np.asarray(pl.sqrtm(a.astype(complex))), np.diag([1, 2j]))


@pytest.mark.parametrize("f", [pl.cholesky, pl.eigh, pl.expm, pl.logm, pl.sqrtm])
def test_matrices_that_are_not_square(f):
    with pytest.raises(np.linalg.LinAlgError, match=r"square matrix, got shape \(2, 3\)"):
        f(pl.lazy(np.ones((2, 3))))


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("m, n", [(4, 4), (6, 3), (3, 5)])
@pytest.mark.parametrize(
    "of_a, of_b", [((2, 3), (2, 3)), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((3,), None)]
)
def test_least_squares_of_stacks(of_a, of_b, m, n, dtype):
    r = np.random.default_rng(31)
    a = r.standard_normal((*of_a, m, n))
    b = r.standard_normal(m) if of_b is None else r.standard_normal((*of_b, m, 2))
    if dtype == "c":
        a, b = a + 1j * r.standard_normal(a.shape), b + 1j * r.standard_normal(b.shape)
    norm = lambda a, b: np.sum(np.abs(pl.lstsq(a, b)[0]) ** 2)
    value = check(norm, a, b)[0]
    columns = b if b.ndim > 1 else b[:, None]
    x = np.linalg.pinv(a) @ columns
    assert np.isclose(value, np.sum(np.abs(x) ** 2))
    check_second(norm, a, b)
    if m > n:
        rest = check(lambda a, b: np.sum(pl.lstsq(a, b)[1]), a, b)[0]
        assert np.isclose(rest, np.sum(np.abs(columns - a @ x) ** 2))
    for found, wanted in zip(pl.lstsq(pl.lazy(a), b), pl.lstsq(a, b), strict=True):
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_least_squares_of_stacks_without_full_rank():
    b = np.ones((2, 4, 1))
    with pytest.raises(np.linalg.LinAlgError, match=r"this one has rank \[1 1\], not 3"):
        pl.grad(lambda a: np.sum(pl.lstsq(a, b)[0]))(np.ones((2, 4, 3)))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.lstsq(pl.lazy(np.ones((2, 4, 3))), b)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("size", [None, 3, (2, 2)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_draws(size, batch, dtype):
    r = np.random.default_rng(51)
    a = r.standard_normal((*batch, 4, 4))
    a = a + 1j * r.standard_normal(a.shape) if dtype == "c" else a
    of = lambda a: a @ np.swapaxes(a.conj(), -1, -2) + 4 * np.eye(4)
    found = pl.sample(of(pl.lazy(a)), size, rng=7)
    wanted = pl.sample(pl.Dense(of(a)), size, rng=7)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    check(lambda a: np.sum(np.abs(pl.sample(of(a), size, rng=7) - 1) ** 2), a)


def test_draws_of_kinds_keep_their_structure():
    d, a = np.array([1.0, 4.0, 9.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
    f = lambda d, a: np.sum(pl.sample(pl.Kron(pl.Diag(d), a), 5, rng=1) ** 3)
    value = check(lambda d: f(d, a), d)[0]
    assert np.isclose(value, np.sum(pl.sample(pl.Kron(pl.Diag(d), a), 5, rng=1) ** 3))
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(lambda d: np.sum(pl.sample(pl.Diag(d), rng=0)))(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="negative"):
        pl.sample(pl.lazy(np.eye(2)), -1)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_inverse_roots_times_vectors_and_eigenvalues_of_complex_matrices(n, dtype):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype == "c" else 0)
    b = rng.standard_normal((n, 2))
    spd = lambda A: A @ A.conj().T + n * pl.Identity(n)

    def whitened(A, b):
        x = pl.sqrt_inv_matmul(spd(A), b)
        return np.sum(np.abs(x[:, 0] - 0.5 * x[:, 1]) ** 2) + np.sum(np.real(x[:, 1]))

    check(whitened, A, b)
    for eigenvalues in (np.linalg.eigvals, pl.eigvals, lambda A: np.linalg.eig(A)[0]):
        check(lambda A: np.sum(np.real(eigenvalues(A) ** 3)), A + 0j, rtol=1e-7)
        check(lambda A: np.sum(np.abs(eigenvalues(A)) ** 2), A + np.diag(3.0 * np.arange(n)) + 0j)


PAIRED = {
    "expm": (None, lambda m, x: m.exp(x), (-30.0, 30.0)),
    "logm": (None, lambda m, x: m.log(x), (1e-8, 1e8)),
    "sqrtm": (0.5, lambda m, x: m.sqrt(x), (1e-8, 1e8)),
    "fractional_matrix_power": (-1.7, lambda m, x: m.power(x, m.mpf(-1.7)), (1e-8, 1e8)),
}


@pytest.mark.parametrize("name", PAIRED)
def test_divided_differences_keep_their_digits(name, rng):
    """At values equal, one unit apart, and as far apart as there are."""
    mpmath = pytest.importorskip("mpmath")
    p, f, (low, high) = PAIRED[name]
    a = rng.uniform(low, high, 40) if low < 0 else np.exp(rng.uniform(*np.log((low, high)), 40))
    apart = [0, 2e-16, 1e-15, 1e-12, 1e-8, 1e-4, 0.1, 0.49, 0.51, 0.9, 2.0, 50.0]
    with mpmath.workdps(60):
        for step in apart:
            b = np.clip(a + step * np.abs(a) * rng.choice([-1, 1], 40), low, high)
            found = function_derivatives.DIFFERENCES[name](a, b, p)
            for x, y, got in zip(a, b, found, strict=True):
                s, t = mpmath.mpf(float(x)), mpmath.mpf(float(y))
                slope = mpmath.diff(lambda z: f(mpmath, z), s)
                wanted = float(slope if s == t else (f(mpmath, s) - f(mpmath, t)) / (s - t))
                assert abs(got - wanted) <= 5e-14 * abs(wanted), (x, y, got, wanted)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm", "power"])
def test_hermitian_matrices_go_by_their_eigenvectors(name, dtype, batch, rng, monkeypatch):
    """Also where eigenvalues repeat; as the block form finds it."""
    n, f = 7, FUNCTIONS[name] if name == "expm" else getattr(pl, name, None)
    f = f or (lambda a: pl.fractional_matrix_power(a, -0.3))
    q = np.linalg.qr(matrix(rng, "c" if dtype[0] == "c" else "f", n, n))[0]
    w = np.array([1.0, 1.0, 1.0, 1.0 + 1e-13, 2.0, 2.0, 700.0 if name != "expm" else 4.0])
    a = np.broadcast_to((q * w) @ q.conj().T, (*batch, n, n)).astype(dtype)
    a = (a + a.conj().swapaxes(-1, -2)) / 2
    g = rng.standard_normal((*batch, n, n)).astype(dtype)
    whole = np.zeros((*batch, 2 * n, 2 * n), np.result_type(dtype, "f8"))
    whole[..., :n, :n] = whole[..., n:, n:] = a
    whole[..., :n, n:] = g
    wanted = np.asarray(f(pl.lazy(whole)))[..., :n, n:]
    monkeypatch.setattr(matrix_functions, "general", None)  # what other matrices go by
    value = lambda x: np.sum(np.real(np.conjugate(f(x)) * g))  # noqa: E731
    found = pl.grad(value)(a)
    assert found.dtype == dtype
    tolerance = (2e-4 if dtype in ("f4", "c8") else 1e-11) * np.abs(wanted).max()
    assert np.abs(found - wanted).max() <= tolerance


SINGULAR = {
    "sqrtm": pl.sqrtm,
    "power": lambda a: pl.fractional_matrix_power(a, 0.7),
    "logm": pl.logm,
}


@pytest.mark.parametrize("rank", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrices_have_no_derivative(name, dtype, rank, rng):
    """Where rounding decides what stands for the zeros, numbers of 1e7 to 1e291 came."""
    u = matrix(rng, "c" if dtype[0] == "c" else "f", 6, rank)
    # of whole numbers, so that it is singular in single precision as well
    a = (np.round(4 * u) @ np.round(4 * u).conj().T).astype(dtype)
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(lambda a: np.sum(np.real(SINGULAR[name](a))))(a)


def test_powers_above_one_have_one_at_singular_matrices(rng):
    q, p = np.linalg.qr(matrix(rng, "f", 3, 3))[0], 1.7
    w = np.array([1.0, 0.0, 2.0])
    divided = np.array(
        [[p, 1, 2**p - 1], [1, 0, 2 ** (p - 1)], [2**p - 1, 2 ** (p - 1), p * 2 ** (p - 1)]]
    )
    wanted = q @ (divided * (q.T @ np.ones((3, 3)) @ q)) @ q.T
    a = (q * w) @ q.T
    found = pl.grad(lambda a: np.sum(pl.fractional_matrix_power(a, p)))((a + a.T) / 2)
    assert np.abs(found - wanted).max() <= 1e-10


def test_small_entries_of_a_diagonal_are_no_noise():
    d = np.array([1.0, 1e-18, 2.0])
    found = pl.grad(lambda d: pl.trace(pl.sqrtm(pl.Diag(d))))(d)
    np.testing.assert_allclose(found, 0.5 / np.sqrt(d), rtol=1e-13)


def test_derivatives_of_functions_keep_the_memory_limit(rng):
    a = matrix(rng, "f", 100, 100)
    with pl.config(memory_limit=300_000), pytest.raises(MemoryError, match="memory_limit"):
        pl.grad(lambda a: np.sum(pl.sqrtm(a)))(a @ a.T + np.eye(100))


DECLARED = {
    "itself": lambda A: A,
    "transposed": lambda A: A.T,
    "adjoint": lambda A: 2 * A.H,
    "shifted": lambda A: 2 * A - pl.Identity(3),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm"])
def test_only_the_named_triangle_is_read(name, dtype):
    """Values did, derivatives read the other one."""
    rng = np.random.default_rng(7)
    a = rng.standard_normal((3, 3)) + (1j if dtype[0] == "c" else 0) * rng.standard_normal((3, 3))
    whole = (a @ a.conj().T / 3 + np.eye(3)).astype(dtype)
    half = whole.copy()
    half[np.tril_indices(3, -1)] = 7
    for made in DECLARED.values():

        def f(a, made=made):
            y = getattr(pl, name)(made(pl.Dense(a, assume_a="her")))
            return np.sum(np.real(y) ** 2)

        due = pl.grad(f)(whole)
        close = 1e-3 if dtype == "float32" else 1e-9
        assert np.abs(pl.grad(f)(half) - due).max() <= close * np.abs(due).max()
