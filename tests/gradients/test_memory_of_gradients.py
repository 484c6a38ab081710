"""Gradients make no array as large as the matrix that their value did not need."""

import math
import re

import numpy as np
import pytest
from gradients.differences import check, check_second
from gradients.test_gradients_of_kinds import FAMILIES

import pylinop as pl

# On both sides of what is read together: 16 rows, 64 of a pair, 512 columns.
SIZES = [(1, 1), (2, 3), (15, 15), (16, 17), (17, 16), (64, 64), (65, 513), (130, 511), (512, 63)]


def most(call):
    """The bytes that the plan of a call takes at most, the largest of its plans."""
    with pl.explaining() as record:
        call()
    found = [re.search(r"memory\s+(\d+) bytes", str(p)) for p in record.plans]
    return max((int(m[1]) for m in found if m), default=0)


def gradients(f, args):
    return pl.grad(f, argnums=tuple(range(len(args))))(*args)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_sums_of_kernels_by_pairs_and_diagonals(family, size):
    """Against those by the same cotangent as an array."""
    m, n = size
    rng = np.random.default_rng([14, m, n])
    own, few = FAMILIES[family], min(m, n)
    lengths = np.array([1.4, 0.9, 2.0]) if m % 2 else np.array(1.4)
    x = rng.standard_normal((m, 3))
    y = x if m == n else rng.standard_normal((n, 3))
    b, c = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    u, v, d = rng.standard_normal(m), rng.standard_normal(n), rng.random(few)
    one = np.zeros((m, n))
    one[np.arange(few), np.arange(few)] = d

    def kernel(x, y, variance, length, *more):
        given = dict(zip(own, more, strict=True))
        return pl.Kernel(family, x, y, variance=variance, length_scale=length, **given)

    z = (c[:, 0] - 1j * c[:, 1], b[:, 0] + 1j * b[:, 1])
    pairs = {
        "thin": (lambda K: np.sum(c * (K @ b)), c @ b.T),
        "transposed": (lambda K: np.sum((K.T @ c) * b), c @ b.T),
        "one column, a multiple": (lambda K: -2.5 * (u @ (K @ v)), -2.5 * np.outer(u, v)),
        "a diagonal": (lambda K: np.sum(d * pl.diagonal(K)), one),
        "complex": (lambda K: np.sum(np.real(z[0] * (K @ z[1]))), np.real(np.outer(*z))),
        "a sum": (
            lambda K: np.sum(c * (K @ b)) + 0.3 * (u @ (K @ v)) - np.sum(d * pl.diagonal(K)),
            c @ b.T + 0.3 * np.outer(u, v) - one,
        ),
    }
    if m == n:
        pairs["a trace"] = (pl.trace, np.eye(n))
    for y_own in (y, y.copy()):
        args = (x, y_own, np.array(0.8), lengths, *own.values())
        for name, (loss, weights) in pairs.items():
            one_set = y_own is x
            given = (args[0], *args[2:]) if one_set else args
            made = lambda *p, s=one_set: kernel(p[0], None, *p[1:]) if s else kernel(*p)
            got = gradients(lambda *p, f=loss, k=made: f(k(*p)), given)
            due = gradients(lambda *p, w=weights, k=made: np.sum(w * k(*p)), given)
            scale = max(np.max(np.abs(a)) for a in due)
            for a, b_ in zip(got, due, strict=True):
                assert np.max(np.abs(a - b_)) <= 1e-12 * max(scale, 1) * math.sqrt(m * n), name


def test_a_batch_of_kernels_by_pairs(rng):
    x, b = rng.standard_normal((4, 30, 2)), rng.standard_normal((4, 30, 1))
    lengths = 0.5 + rng.random(4)
    f = lambda x, v, s: np.sum((pl.Kernel("rbf", x, variance=v, length_scale=s) @ b) ** 2)
    got = gradients(f, (x, np.array(0.8), lengths[:, None]))
    for k in range(4):
        one = lambda x, v, s, k=k: np.sum(
            (pl.Kernel("rbf", x, variance=v, length_scale=s) @ b[k]) ** 2
        )
        due = gradients(one, (x[k], np.array(0.8), lengths[k]))
        np.testing.assert_allclose(got[0][k], due[0], atol=1e-11)
        np.testing.assert_allclose(got[2][k], [due[2]], atol=1e-11)


N = 700
PRODUCTS = {
    "K @ x": lambda K, x, Z: np.sum((K @ x) ** 2),
    "K @ Z": lambda K, x, Z: np.sum((K @ Z) ** 2),
    "K @ (K @ x)": lambda K, x, Z: np.sum((K @ (K @ x)) ** 2),
    "K.T @ x": lambda K, x, Z: np.sum((K.T @ x) ** 2),
    "x @ K @ x": lambda K, x, Z: x @ (K @ x),
    "D @ K @ x": lambda K, x, Z: np.sum((pl.Diag(x) @ (K @ x)) ** 2),
    "a sum of two": lambda K, x, Z: x @ (K @ x) + 0.2 * np.sum((K @ Z) ** 2),
    "noise": lambda K, x, Z: np.sum(((K + 0.3 * pl.Identity(N)) @ x) ** 2),
    "trace": lambda K, x, Z: pl.trace(K),
    "diagonal": lambda K, x, Z: np.sum(x * pl.diagonal(K)),
    "trace(K @ D)": lambda K, x, Z: pl.trace(K @ pl.Diag(x)),
    "trace(K @ U U')": lambda K, x, Z: pl.trace(K @ pl.LowRank(Z)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PRODUCTS)
def test_no_array_of_all_entries_under_kernels(name, dtype, rng):
    X, x = rng.standard_normal((N, 3)).astype(dtype), rng.standard_normal(N).astype(dtype)
    Z = rng.standard_normal((N, 4)).astype(dtype)
    f = lambda X, v, s: PRODUCTS[name](pl.Kernel("rbf", X, variance=v, length_scale=s), x, Z)
    numbers = (dtype(1.1), dtype(0.7))
    value = most(lambda: pl.program(f)(X, *numbers))  # in single precision by the dense form
    assert most(lambda: gradients(f, (X, *numbers))) < 0.3 * N * N * 8 + value


def structured(side, dtype=float):
    """Losses of kinds, the shapes of what they are of; for a matrix of side**2 rows."""
    rng, n = np.random.default_rng(7), side * side
    more = (lambda *s: 1j * rng.standard_normal(s)) if dtype is complex else (lambda *s: 0.0)
    d = rng.standard_normal(n) + more(n)
    U, V = (rng.standard_normal((n, 3)) + more(n, 3) for _ in range(2))
    two, far = [(side, side)] * 2, 3 * side * np.eye(side)
    real = np.real
    return {
        "diagonal of a Kron": (lambda A, B: real(np.sum(d * pl.diagonal(pl.Kron(A, B)))), two),
        "trace(Kron @ D)": (lambda A, B: real(pl.trace(pl.Kron(A, B) @ pl.Diag(d))), two),
        "trace(D @ KronSum.T)": (
            lambda A, B: real(pl.trace(pl.Diag(d) @ pl.KronSum(A, B).T)),
            two,
        ),
        "trace(Kron @ U V')": (lambda A, B: real(pl.trace(pl.Kron(A, B) @ pl.LowRank(U, V))), two),
        "trace(U V' @ Kron.H)": (
            lambda A, B: real(pl.trace(pl.LowRank(U, V) @ pl.Kron(A, B).H)),
            two,
        ),
        "trace of the inverse of a Kron": (
            lambda A, B: real(pl.trace(pl.inv(pl.Kron(A + far, B + far)))),
            two,
        ),
        "trace(D @ Toeplitz @ D)": (
            lambda d, c: real(pl.trace(pl.Diag(d) @ pl.Toeplitz(c) @ pl.Diag(d))),
            [(n,)] * 2,
        ),
        "norm of a Circulant": (lambda c: pl.matrix_norm(pl.Circulant(c), "fro"), [(n,)]),
        "product of a MultilevelToeplitz": (
            lambda c: real(np.sum((pl.MultilevelToeplitz(c) @ U) * V)),
            [(2 * side - 1, 2 * side - 1)],
        ),
    }


@pytest.mark.parametrize("name", structured(1))
def test_no_array_of_all_entries_of_a_structured_matrix(name, rng):
    side = 28
    f, shapes = structured(side)[name]
    args = [rng.standard_normal(shape) for shape in shapes]
    value = most(lambda: pl.program(f)(*args))
    assert most(lambda: gradients(f, args)) < 0.5 * side**4 * 8 + value


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("side", [1, 2, 4])
@pytest.mark.parametrize("name", structured(1))
def test_these_gradients_against_differences(name, side, dtype, rng):
    f, shapes = structured(side, dtype)[name]
    draw = lambda s: (
        rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype is complex else 0)
    )
    check(f, *map(draw, shapes))


def updated(n, dtype=float):
    """Determinants and diagonals of inverses of a structure and thin factors: losses, and where."""
    rng = np.random.default_rng(8)
    more = (lambda *s: 1j * rng.standard_normal(s)) if dtype is complex else (lambda *s: 0.0)
    draw = lambda *s: rng.standard_normal(s) + more(*s)
    k = max(1, min(3, n // 4))
    c = 0.4 ** np.arange(n) * (1 + 0.1 * draw(n))
    c[:1] = 4.0
    U, V = draw(n, k) / n**0.5, draw(n, k) / n**0.5
    C = np.eye(k) + 0.1
    b = max(1, n // 2)
    blocks = 4 * np.eye(2) + 0.1 * draw(b, 2, 2), 0.3 * draw(b - 1, 2, 2), 0.3 * draw(b - 1, 2, 2)
    t = np.cumsum(rng.random(n))
    logdet = lambda A: pl.slogdet(A)[1]
    return {
        "Toeplitz + U U'": (lambda c, U: logdet(pl.Toeplitz(c) + pl.LowRank(U)), (c, U)),
        "U @ U.H + Toeplitz": (lambda c, U: logdet(U @ np.conj(U).T + pl.Toeplitz(c)), (c, U)),
        "Toeplitz + U C V'": (
            lambda c, r, U, V: logdet(pl.LowRankUpdate(pl.Toeplitz(c, r), U, V, C)),
            (c, 0.7 * c, U, V),
        ),
        "(Toeplitz - U V').T": (
            lambda c, U, V: logdet((pl.Toeplitz(c) - pl.LowRank(U, V)).T),
            (c, U, V),
        ),
        "Circulant + U U'": (lambda c, U: logdet(pl.Circulant(c) + pl.LowRank(U)), (c, U)),
        "Hankel + U V'": (
            lambda c, r, U: logdet(pl.Hankel(c[::-1], r) + pl.LowRank(U, V)),
            (c, np.concatenate([c[:1], 0.3 * c[1:]]), U),
        ),
        "BlockTridiagonal + U U'": (
            lambda d, l, u, U: logdet(pl.BlockTridiagonal(l, d, u) + pl.LowRank(U)),
            (*blocks, U[: 2 * b] if n > 1 else draw(2, 1)),
        ),
        "Markov + c I + U U'": (
            lambda p, U: logdet(
                pl.quasiseparable("matern32", t, variance=p[0], length_scale=p[1])
                + p[2] * pl.Identity(n)
                + pl.LowRank(U)
            ),
            (np.array([1.3, 2.0, 0.4]), np.real(U)),
        ),
    }


@pytest.mark.parametrize("name", updated(8))
def test_no_array_of_all_entries_of_an_update(name):
    n = 720
    f, args = updated(n)[name]
    value = most(lambda: pl.program(f)(*args))
    assert most(lambda: gradients(f, args)) < 0.4 * n * n * 8 + value


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 40, 120])
@pytest.mark.parametrize("name", updated(8))
def test_gradients_of_updates_against_differences(name, n, dtype):
    f, args = updated(n, dtype)[name]
    with pl.config(check_plans=True):
        check(f, *args)


@pytest.mark.parametrize("base", [1e-9, 1e-13, 0.0])
def test_a_base_that_is_nearer_to_a_singular_matrix_than_the_whole(base):
    """T = 1 1^T + base I: the formula would lose what the dense form keeps."""
    n = 30
    U = np.random.default_rng(3).standard_normal((n, 7))
    U[:, :1] = 1.0
    c = np.ones(n)
    c[0] += base
    e = np.eye(n)[:, :7]
    f = lambda c: pl.slogdet(pl.Toeplitz(c) + pl.LowRank(np.hstack([U, e])) + pl.Identity(n))[1]
    A = np.ones((n, n)) + base * np.eye(n) + np.hstack([U, e]) @ np.hstack([U, e]).T + np.eye(n)
    inverse = np.linalg.inv(A)
    due = np.array([(1 if k == 0 else 2) * np.trace(inverse, k) for k in range(n)])
    np.testing.assert_allclose(pl.grad(f)(c), due, atol=1e-9 * np.abs(due).max())
    g = lambda c: pl.slogdet(pl.Toeplitz(c) + pl.LowRank(np.hstack([U, e])))[1]
    inverse = np.linalg.pinv(A - np.eye(n))
    if np.linalg.cond(A - np.eye(n)) < 1e12:
        due = np.array([(1 if k == 0 else 2) * np.trace(inverse, k) for k in range(n)])
        np.testing.assert_allclose(pl.grad(g)(c), due, rtol=1e-4, atol=1e-4 * np.abs(due).max())


def squared(n, dtype=float):
    """Losses whose gradients, or second derivatives, read S^-1 X S^-1 and S^-2."""
    rng = np.random.default_rng(9)
    more = (lambda *s: 1j * rng.standard_normal(s)) if dtype is complex else (lambda *s: 0.0)
    draw = lambda *s: rng.standard_normal(s) + more(*s)
    c, r = 0.3 ** np.arange(n) * (1 + 0.1 * draw(n)), 0.2 ** np.arange(n) * (1 + 0.1 * draw(n))
    c[:1] = 3.0
    s, eye = np.array(0.6), pl.Identity(n)
    x, m = rng.standard_normal((n, 1)), max(1, round(n**0.5))
    u, v = rng.standard_normal((2, m, 1))
    kernel = lambda length, x: pl.Kernel("rbf", x, length_scale=length)
    trace, logdet = lambda A: np.real(pl.trace(pl.inv(A))), lambda A: pl.slogdet(A)[1]
    lengths = np.array([0.4, 0.7])
    return {
        "trace of the inverse, Toeplitz": (lambda c: trace(pl.Toeplitz(c)), (c,)),
        "of two vectors": (lambda c, r: trace(pl.Toeplitz(c, r)), (c, r)),
        "Toeplitz + c I": (lambda c, s: trace(pl.Toeplitz(c) + s * eye), (c, s)),
        "Circulant": (lambda c: trace(pl.Circulant(c)), (c,)),
        "Circulant.T + c I": (lambda c, s: trace(pl.Circulant(c).T + s * eye), (c, s)),
        "Kron + c I": (
            lambda p, s: trace(pl.Kron(kernel(p[0], u), kernel(p[1], v)) + s * pl.Identity(m * m)),
            (lengths, s),
        ),
        "KronSum": (
            lambda p: trace(pl.KronSum(kernel(p[0], u) + pl.Identity(m), kernel(p[1], v))),
            (lengths,),
        ),
        "logdet, Toeplitz + c I": (lambda c, s: logdet(pl.Toeplitz(c) + s * eye), (c, s)),
        "logdet, Circulant + c I": (lambda c, s: logdet(pl.Circulant(c) + s * eye), (c, s)),
        "quadratic form": (
            lambda c, s: np.real(x[:, 0] @ pl.solve(pl.Toeplitz(c) + s * eye, x[:, 0])),
            (c, s),
        ),
    }


@pytest.mark.parametrize("name", [k for k in squared(4) if k != "of two vectors"])
def test_no_array_of_all_entries_of_squares_of_inverses(name):
    n = 729
    f, args = squared(n)[name]
    numbers, along = tuple(range(len(args))), tuple(0.1 * a for a in args)
    assert most(lambda: pl.value_and_grad(f, numbers)(*args)) < 0.4 * n * n * 8
    if "logdet" in name or "form" in name:
        assert most(lambda: pl.hvp(f, numbers)(*args, along)) < 0.4 * n * n * 8


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 9, 36, 100])
@pytest.mark.parametrize("name", squared(4))
def test_squares_of_inverses_against_differences(name, n, dtype):
    f, args = squared(n, dtype)[name]
    with pl.config(check_plans=True):
        check(f, *args)
        check_second(f, *args)


def of_products(n, dtype=float):
    """Determinants of products of structured matrices, alone and beside solves."""
    rng = np.random.default_rng(10)
    more = (lambda *s: 1j * rng.standard_normal(s)) if dtype is complex else (lambda *s: 0.0)
    draw = lambda *s: rng.standard_normal(s) + more(*s)
    d, y = 2 + 0.3 * draw(n), draw(n)
    c = 0.3 ** np.arange(n) * (1 + 0.1 * draw(n))
    c[:1] = 3.0
    logdet, D, T = lambda A: pl.slogdet(A)[1], pl.Diag, pl.Toeplitz
    return {
        "D T D": lambda d, c: logdet(D(d) @ T(c) @ D(d)),
        "D (T D)": lambda d, c: logdet(D(d) @ (T(c, 0.7 * c) @ D(d))),
        "2 (D T).H": lambda d, c: logdet(2.0 * (D(d) @ T(c)).H),
        "beside a solve": lambda d, c: (lambda A: logdet(A) + np.real(y @ pl.solve(A, y)))(
            D(d) @ T(c) @ D(d)
        ),
        "det": lambda d, c: np.abs(pl.det(D(d) @ T(c / 3) / 2.0)),
    }, (d, c)


@pytest.mark.parametrize("name", of_products(4)[0])
def test_no_array_of_all_entries_of_products(name):
    n = 729
    found, args = of_products(n)
    assert most(lambda: pl.value_and_grad(found[name], (0, 1))(*args)) < 0.4 * n * n * 8


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.parametrize("name", of_products(4)[0])
def test_determinants_of_products_against_differences(name, n, dtype):
    found, args = of_products(n, dtype)
    check(found[name], *args)
    check_second(found[name], *args)


def test_a_singular_factor_keeps_the_other_ones_derivative():
    """det(A B) = det(A) det(B), whose gradient by B is det(A) times that of det(B)."""
    A, B = np.diag([1.0, 0.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
    g = pl.grad(lambda B: pl.det(pl.lazy(A) @ B))(B)
    np.testing.assert_array_equal(g, np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(lambda A: pl.slogdet(A @ pl.lazy(B))[1])(A)


@pytest.mark.parametrize("n", [30, 200])
def test_single_precision_beside_double_keeps_double_accuracy(n):
    rng = np.random.default_rng(3)
    A = (rng.standard_normal((n, n)) / n**0.5 + np.diag(10.0 ** -np.linspace(0, 4, n))).astype("f4")
    B = rng.standard_normal((n, n)) / n**0.5 + 2 * np.eye(n)
    g = pl.grad(lambda A: pl.slogdet(A @ pl.lazy(B))[1])(A)
    due = np.linalg.inv(A.astype(float)).T
    assert np.abs(g - due).max() <= 1e-6 * np.abs(due).max()
