"""Resolvents and smoothers, K (K + s I)^-1 in its spellings, cost what the cheapest does, and are
as accurate as what is written."""

import math
from fractions import Fraction

import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

N, S = 96, 0.5
inv = pl.inv


def matrices(dtype):
    r = np.random.default_rng(5)
    real = np.empty(0, dtype).real.dtype
    e = (r.random(N - 1) / 3).astype(real)
    i = np.arange(N)
    column = (np.exp(-i / 5.0) + (i == 0)).astype(real)
    ring = np.exp(-np.minimum(i, N - i) / 5.0).astype(real)
    left, right = (pl.Dense(positive(r, n, dtype), "pos") for n in (12, 8))
    return {
        "pos": pl.Dense(positive(r, N, dtype), "pos"),
        "band": pl.Tridiagonal(e, (2 + r.random(N)).astype(real), e),
        "Toeplitz": pl.Toeplitz(column),
        "Kron": pl.Kron(left, right),
        "Circulant": pl.Circulant(ring),
    }


def spellings(K, s=S):
    eye = pl.Identity(N)
    return (
        K @ inv(K + s * eye),
        inv(K + s * eye) @ K,
        eye - s * inv(K + s * eye),
        inv(eye + s * inv(K)),
    )


ASKS = {
    "@ x": lambda A, b: A @ b,
    "diagonal": lambda A, b: A.diagonal(),
    "trace": lambda A, b: A.trace(),
    "solve": pl.solve,
    "logdet": lambda A, b: pl.slogdet(A)[1],
    "diagonal of the inverse": lambda A, b: inv(A).diagonal(),
}
APART = {(kind, name) for kind in ("Circulant", "Toeplitz") for name in ("diagonal", "trace")} | {
    (kind, "diagonal of the inverse") for kind in ("band", "Circulant", "Toeplitz")
}  # not proved definite, or to have an inverse at all: products with n columns


def figures(ask, A, b):
    with pl.config(check_plans=True, verify=True), pl.explaining() as e:
        value = ask(A, b)
    return np.asarray(value), e.explanation.flops


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("kind", ["pos", "band", "Toeplitz", "Kron", "Circulant"])
def test_spellings_of_a_resolvent(kind, dtype):
    K = matrices(dtype)[kind]
    b = values(np.random.default_rng(1), N, K.dtype)
    wide = K.astype("complex128").toarray()
    a = wide @ np.linalg.inv(wide + S * np.eye(N))
    eps = np.finfo(dtype).eps * 100 * N * np.linalg.cond(wide)
    want = (a @ b, np.diag(a), np.trace(a), np.linalg.solve(a, b), np.linalg.slogdet(a)[1])
    want += (np.diag(np.linalg.inv(a)),)
    for (name, ask), right in zip(ASKS.items(), want, strict=True):
        told = [figures(ask, A, b) for A in spellings(K)]
        for got, _ in told:
            assert np.abs(got - right).max() <= eps * np.abs(right).max(), name
        flops = [f for _, f in told]
        if (kind, name) not in APART:
            most = 4.5 * min(flops) + 60 * N if kind == "pos" else N**3 + 60 * N
            assert max(flops) <= most, (name, flops)  # nothing is inverted, and what checks cost


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("power", [0, 4, 9, 14])
@pytest.mark.parametrize("s", [1e-10, 1e-3, 1.0, 1e6])
def test_graded(power, s):
    """The backward error is at most ten times that of the formula as it is written."""
    r = np.random.default_rng(power)
    q = np.linalg.qr(r.standard_normal((N, N)))[0]
    d = 10.0 ** -np.linspace(0, power, N)
    k = q * d @ q.T
    k = (k + k.T) / 2
    K, b = pl.Dense(k, "pos"), r.standard_normal(N)
    written = np.eye(N) - s * np.linalg.inv(k + s * np.eye(N))
    a = q * (d / (d + s)) @ q.T
    u, norm = np.finfo(float).eps, (d / (d + s)).max()

    def error(x):
        return np.linalg.norm(b - a @ x) / (norm * np.linalg.norm(x) + np.linalg.norm(b))

    try:
        x = pl.solve(pl.Identity(N) - s * inv(K + s * pl.Identity(N)), b)
    except np.linalg.LinAlgError:
        assert np.linalg.cond(written) > 1e13
        return
    # what a itself is known to: k is given to u |k|, which K (K + s I)^-1 divides by s
    known = 10 * N * u * (1 + min(1, 1 / s) / norm)
    assert error(x) <= 10 * error(np.linalg.solve(written, b)) + known


@pytest.mark.parametrize("size", [1e-9, 0.04, 0.06, 1.0])
@pytest.mark.parametrize("one", [1.0, 1e-9])
def test_diagonals_where_the_difference_loses(size, one):
    """K beside s on both sides of what is asked of it, also where one element of K is small: all
    digits that the product has."""
    r = np.random.default_rng(3)
    x = r.standard_normal((N, N))
    d = np.ones(N)
    d[5] = one
    k = size * d[:, None] * (x @ x.T / N + np.eye(N)) * d
    K, eye = pl.Dense(k, "pos"), pl.Identity(N)
    want = np.linalg.solve(k + eye.toarray(), k)
    for A in (K @ inv(K + eye), inv(K + eye) @ K, (2 * K) @ inv(2 * K + 2 * eye)):
        with pl.config(check_plans=True, verify=True):
            near = np.abs(A.diagonal() - np.diag(want))
            assert (near <= 1e-12 * np.diag(want)).all()
            assert abs(A.trace() - np.trace(want)) <= 1e-12 * np.trace(want)


def test_what_is_not_definite():
    """Symmetric with eigenvalues of both signs, some at - s: as written."""
    r = np.random.default_rng(4)
    q = np.linalg.qr(r.standard_normal((N, N)))[0]
    d = np.linspace(-3, 3, N)
    k = q * d @ q.T
    K, eye, b = pl.Dense((k + k.T) / 2, "sym"), pl.Identity(N), r.standard_normal(N)
    for s in (0.5, -0.5):
        a = np.eye(N) - s * np.linalg.inv(K.toarray() + s * np.eye(N))
        A = eye - s * inv(K + s * eye)
        with pl.config(check_plans=True, verify=True):
            np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(a, b), rtol=1e-8, atol=1e-8)
            assert abs(pl.logdet(A @ A) - np.linalg.slogdet(a @ a)[1]) < 1e-8
            smooth = (K @ inv(K + s * eye)).diagonal()
            np.testing.assert_allclose(smooth, np.diag(a), rtol=1e-9, atol=1e-9)


def exact_logdet(k, c, a, d):
    """log |d I + a (k + c I)^-1| of the numbers as they are, by fractions."""
    n = len(k)
    m = [[Fraction(float(x)) for x in row] for row in k]
    for i in range(n):
        m[i][i] += Fraction(c)
    g = [row[:] for row in m]
    for i in range(n):
        g[i][i] += Fraction(a) / Fraction(d)
    ratio = Fraction(d) ** n * determinant(g) / determinant(m)
    return math.log(abs(ratio.numerator)) - math.log(ratio.denominator)


def determinant(m):
    m, det = [row[:] for row in m], Fraction(1)
    for i in range(len(m)):
        det *= m[i][i]
        for j in range(i + 1, len(m)):
            by = m[j][i] / m[i][i]
            m[j] = [y - by * x for x, y in zip(m[i], m[j], strict=True)]
    return det


@pytest.mark.parametrize(
    ("kind", "a"),
    [("pos", a) for a in (-1.0, -1e-3, 1e-3, 1.0, 1e5)]
    + [(band, a) for band in ("band", "sym band") for a in (-1.0, -1e-3, 1e-6, 1e3, 1e12)],
)
def test_determinants_near_one_lose_nothing(kind, a):
    """Where A / d is near I, log det G - log det M would have the errors of both. K from 1e3 to
    1e11, and a band with eigenvalues of both signs."""
    r, n, d, c = np.random.default_rng(6), 12, 2.0, 0.5
    if kind == "pos":
        q = np.linalg.qr(r.standard_normal((n, n)))[0]
        k = q * np.logspace(3, 11, n) @ q.T
        K = pl.Dense((k + k.T) / 2, "pos")
    else:
        e = np.logspace(1, 9, n - 1)
        K = pl.Tridiagonal(e, (2 if kind == "band" else -1) * np.logspace(3, 11, n), e)
    eye = pl.Identity(n)
    A = d * eye + a * inv(K + c * eye)
    want = exact_logdet(K.toarray(), c, a, d)
    written = d * np.eye(n) + a * np.linalg.inv(K.toarray() + c * np.eye(n))
    error = abs(np.linalg.slogdet(written)[1] - want)
    assert abs(pl.slogdet(A)[1] - want) <= 100 * error + 1e-14 * (n + abs(want))


def test_determinant_of_a_sum_of_two_inverses():
    """P^-1 is little beside Q^-1: det(P + Q) / det P would lose cond(P), which the sum has not."""
    r, n = np.random.default_rng(7), 12
    q = np.linalg.qr(r.standard_normal((n, n)))[0]
    x = r.standard_normal((n, n)) / 9
    p, o = q * np.logspace(3, 11, n) @ q.T, np.eye(n) + x @ x.T
    P, O = (pl.Dense((m + m.T) / 2, "pos") for m in (p, o))
    exact = [[[Fraction(float(v)) for v in row] for row in m.toarray()] for m in (P, O)]
    both = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(*exact, strict=True)]
    ratio = determinant(both) / determinant(exact[0]) / determinant(exact[1])
    want = math.log(ratio.numerator) - math.log(ratio.denominator)
    written = np.linalg.inv(P.toarray()) + np.linalg.inv(O.toarray())
    error = abs(np.linalg.slogdet(written)[1] - want)
    assert abs(pl.slogdet(inv(P) + inv(O))[1] - want) <= 100 * error + 1e-14 * (n + abs(want))


def test_what_has_no_inverse():
    """M^-1 of a matrix without one is an error, also where A^-1 = M (M + I)^-1 has a value."""
    kinds = [
        pl.Tridiagonal(np.ones(1), np.ones(2), np.ones(1)),
        pl.Tridiagonal(np.zeros(2), np.array([1.0, 0, 1]), np.zeros(2)),
        pl.Toeplitz(np.ones(3)),
    ]
    for M in kinds:
        A = pl.Identity(M.shape[0]) + inv(M)
        for ask in ASKS.values():
            with pytest.raises(np.linalg.LinAlgError):
                ask(A, np.ones(M.shape[0]))
        with pytest.raises(np.linalg.LinAlgError):
            inv(A).trace()


@pytest.mark.parametrize("p", [2, 3, 4])
def test_powers_are_priced_as_products(p):
    r = np.random.default_rng(2)
    kinds = [
        pl.Kron(r.standard_normal((12, 12)), r.standard_normal((8, 8))),
        pl.Dense(positive(r, N, "float64"), "pos"),
        pl.Toeplitz(r.standard_normal(N)),
    ]
    for A in kinds:
        product = A
        for _ in range(p - 1):
            product = product @ A
        dense = np.linalg.matrix_power(A.toarray(), p)
        for ask in (pl.diagonal, pl.trace):
            x, fx = figures(lambda op, _, ask=ask: ask(op), A**p, None)
            _, fy = figures(lambda op, _, ask=ask: ask(op), product, None)
            np.testing.assert_allclose(x, ask(dense), rtol=1e-9, atol=1e-9 * abs(dense).max())
            assert fx <= 1.3 * fy + 40 * N, (p, fx, fy)
        np.testing.assert_allclose((A**p).toarray(), dense, rtol=1e-9, atol=1e-9 * abs(dense).max())


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_determinants_beside_a_circulant_that_is_not_hermitian(dtype):
    """Near I the dense form is factored: by Cholesky it is taken to be its own adjoint."""
    r, n = np.random.default_rng(8), 16
    c = values(r, n, dtype)
    K = pl.Circulant(c) + 20 * pl.Identity(n)
    for by in (1e-3, 1.0):
        A = 2 * pl.Identity(n) + by * inv(K)
        sign, size = np.linalg.slogdet(2 * np.eye(n) + by * np.linalg.inv(K.toarray()))
        got = pl.slogdet(A)
        assert abs(got[0] - sign) < 1e-12
        assert abs(got[1] - size) < 1e-12


@pytest.mark.parametrize("c", [2 + 1j, 0.5j])
def test_complex_multiples_of_the_identity_beside_a_covariance(c):
    """What stands in for the short way is of a matrix that is not its own adjoint."""
    r, n = np.random.default_rng(9), 8
    p, b, d = positive(r, n, "complex128"), values(r, n, "complex128"), values(r, n, "complex128")
    P = pl.Dense(p, "pos")
    for D in (c * pl.Identity(n), pl.Diag(c * (1 + abs(d))), pl.Diag(3 + d)):
        want = np.linalg.solve(np.linalg.inv(p) + D.toarray(), b)
        with pl.config(check_plans=True):
            got = pl.solve(inv(P) + D, b)
        assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("even", [True, False, None])
def test_dense_smoothers(even, size, dtype):
    """P (P + E)^-1 and (P + E)^-1 P of a diagonal E as arrays: each column, or row, as a solve has
    it, whatever E is beside P and within itself; by the inverse alone where that keeps this."""
    r = np.random.default_rng()
    n, real = 96, np.dtype(dtype)
    k = positive(r, n, dtype)
    if r.random() < 0.5:
        scale = 10.0 ** r.uniform(-2, 2, n)
        k = (k * scale[:, None] * scale).astype(dtype)
    P = pl.Dense(k, "pos")
    e = (size * (1 + r.random(n)) if even else size * 10.0 ** r.uniform(-3, 3, n)).astype(dtype)
    M = P + (pl.Diag(e) if even is not None else float(size) * pl.Identity(n, dtype=dtype))
    m, p = M.toarray().astype(np.longdouble), k.astype(np.longdouble)
    u, norm = np.finfo(real).eps / 2, np.linalg.norm(m.astype(float), 2)
    if np.linalg.cond(m.astype(float)) * u > 1e-2:
        return
    for A, turned in ((inv(M) @ P, False), (P @ inv(M), True)):
        a, _ = figures(lambda A, b: A.toarray(), A, None)
        x = a.T if turned else a
        left = np.linalg.norm((m @ x - p).astype(float), axis=0)
        right = norm * np.linalg.norm(x.astype(float), axis=0) + np.linalg.norm(
            k.astype(float), axis=0
        )
        assert (left / right).max() <= 10 * n * u
    assert (P @ inv(M)).explain("dense").flops <= 1.3 * inv(M).explain("dense").flops + 20 * n * n
