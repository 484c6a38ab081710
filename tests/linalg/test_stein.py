"""Solves and determinants of c I + k Kron(A, B), the Stein equation, by Schur forms, against the
dense form: the backward error is that of a direct solve, the route is told by explain()."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg as sla

import pylinop as pl

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
VIEWS = {
    "N": lambda a: a,
    "T": lambda a: a.T,
    "C": lambda a: a.conj(),
    "H": lambda a: a.conj().T,
}
# On both sides of LOP_SPECTRAL_ROWS, of where the forms pay, and of a block of columns.
SIZES = [(1, 1), (1, 17), (2, 15), (15, 2), (5, 8), (7, 6), (15, 16), (16, 17), (17, 15), (33, 6)]


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def square(rng, n, dtype, radius=None):
    """No normal matrix: eigenvalues of every kind under a skewed basis."""
    a = values(rng, (n, n), dtype) + 3 * np.triu(values(rng, (n, n), dtype), 1)
    size = np.abs(np.linalg.eigvals(a)).max() if radius else 1
    return (a * ((radius or 1) / size)).astype(dtype)


def precision(dtype):
    return float(np.finfo(dtype).eps) / 2


def eta(D, x, b, norm=None):
    """The normwise backward error, the worst of the columns; ``norm`` is that of D, if known."""
    norm = np.linalg.norm(D, 2) if norm is None else norm
    D, x, b = (np.asarray(a, "complex128") for a in (D, x, b))
    r, size, given = (np.linalg.norm(v, axis=0) for v in (b - D @ x, x, b))
    return np.max(r / (norm * size + given))


def steps(A, b):
    return {s["name"] for s in A.explain("solve", b).steps}


def taken(call):
    """The names of the steps that ran, as often as they did."""
    with pl.explaining() as e:
        call()
    return [s["name"] for p in e.plans for s in p.steps if s["took"] is not None]


def check(A, D, X, dtype):
    n, u = D.shape[0], precision(dtype)
    exact = D.astype(np.result_type(dtype, np.float64))
    spectrum = np.linalg.svdvals(exact)
    x = pl.solve(A, X)
    assert x.dtype == np.dtype(dtype)
    assert eta(D, x, X, spectrum[0]) <= 10 * n * u
    y = X.T @ pl.inv(A)
    assert eta(D.T, y.T, X, spectrum[0]) <= 10 * n * u
    sign, log = pl.slogdet(A)
    exact_sign, exact_log = np.linalg.slogdet(exact)
    worst = 20 * n * u * spectrum[0] / spectrum[-1]
    np.testing.assert_allclose(log, exact_log, rtol=0, atol=worst)
    np.testing.assert_allclose(sign, exact_sign, rtol=0, atol=worst)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_agrees_with_the_dense_form(sizes, dtype, rng):
    m, n = sizes
    a, b = square(rng, m, dtype), square(rng, n, dtype)
    X = values(rng, (m * n, 3), dtype)
    eye = pl.Identity(m * n)
    for k, c in ((-1, 1), (1.0, -1.0), (0.3, 2.5)):
        D = (k * np.kron(a, b) + c * np.eye(m * n)).astype(dtype)
        check(k * pl.Kron(a, b) + c * eye, D, X, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_view_of_both_factors(dtype, rng):
    m, n = 7, 9
    a, b = square(rng, m, dtype), square(rng, n, dtype)
    X = values(rng, (m * n, 2), dtype)
    for one, two, whole in itertools.product(VIEWS, VIEWS, VIEWS):
        k, c = rng.uniform(0.5, 2, 2).tolist()
        A = VIEWS[whole](
            k * pl.Kron(VIEWS[one](pl.Dense(a)), VIEWS[two](pl.Dense(b))) + c * pl.Identity(m * n)
        )
        D = VIEWS[whole](k * np.kron(VIEWS[one](a), VIEWS[two](b)) + c * np.eye(m * n))
        assert "stein" in steps(A, X)
        check(A, D.astype(dtype), X, dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_coefficients_and_real_factors(dtype, rng):
    real = np.zeros(1, dtype).real.dtype
    a, b = square(rng, 8, real), square(rng, 7, real)
    X = values(rng, (56, 2), dtype)
    for k, c in ((1j, 2), (0.5 - 1j, 1 + 2j), (1.0, 3j)):
        A = k * pl.Kron(a, b) + c * pl.Identity(56)
        check(A, (k * np.kron(a, b) + c * np.eye(56)).astype(dtype), X, dtype)
        check(A.H, (k * np.kron(a, b) + c * np.eye(56)).conj().T.astype(dtype), X, dtype)


@pytest.mark.parametrize("radius", [0.3, 0.99, 1.0001, 5.0])
@pytest.mark.parametrize("n", [7, 24, 61])
def test_the_lyapunov_equation(n, radius, rng):
    F = square(rng, n, float, radius)
    Q = values(rng, (n, n), float)
    A = pl.Identity(n * n) - pl.Kron(F, F)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no dense form, no safer way
        X = pl.solve(A, Q.ravel()).reshape(n, n)
    parts = np.linalg.norm(F, 2) ** 2 * np.linalg.norm(X) + np.linalg.norm(X) + np.linalg.norm(Q)
    assert np.linalg.norm(X - F @ X @ F.T - Q) <= 100 * n * precision(float) * parts
    if radius < 1 and n < 61:
        hand = sla.solve_discrete_lyapunov(F, Q)
        scale = np.linalg.cond(np.eye(n * n) - np.kron(F, F)) * np.abs(hand).max()
        np.testing.assert_allclose(X, hand, rtol=0, atol=100 * n * precision(float) * scale)


def test_one_form_for_each_factor_whatever_is_asked(rng):
    """Every view and the determinant take the kept forms, for other coefficients too."""
    a, b = square(rng, 9, float), square(rng, 8, float)
    x = values(rng, (72,), float)
    A = pl.Identity(72) - pl.Kron(a, b)
    names = taken(lambda: pl.solve(A, x))
    assert names.count("gees") == 2 and "stein" in names
    other = 3 * pl.Identity(72) + 0.7 * pl.Kron(a, b)
    for call in (
        lambda: pl.solve(A, values(rng, (72, 2), float)),
        lambda: pl.solve(A.T, x),
        lambda: x @ pl.inv(A),
        lambda: pl.solve(other, x),
        lambda: pl.slogdet(other),
        lambda: pl.slogdet(A.H),
    ):
        assert {"stein", "stein_det"} & set(names := taken(call))
        assert "getrf" not in names
        assert names.count("gees") == 0


def test_what_is_hermitian_without_saying_so_goes_by_eigenvectors(rng):
    a, b = square(rng, 9, float), square(rng, 8, float)
    x = values(rng, (72,), float)
    one = pl.Kron(a + a.T, b + b.T) + pl.Identity(72)
    assert not {"gees", "stein", "getrf"} & set(taken(lambda: pl.solve(one, x)))
    for two in (pl.Kron(a + a.T, b) + pl.Identity(72), pl.Kron(a, b + b.T) + pl.Identity(72)):
        names = taken(lambda two=two: pl.solve(two, x))
        assert "stein" in names and "getrf" not in names
        assert eta(two.toarray(), pl.solve(two, x)[:, None], x[:, None]) <= 720 * precision(float)


def test_coefficients_are_numbers_of_the_run(rng):
    a, b = square(rng, 9, float), square(rng, 8, float)
    x = values(rng, (72,), float)
    for k, c in rng.uniform(0.5, 2, (4, 2)).tolist():
        A = k * pl.Kron(a, b) + c * pl.Identity(72)
        np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(A.toarray(), x), rtol=1e-6)
        assert pl.slogdet(A)[1] == pytest.approx(np.linalg.slogdet(A.toarray())[1], rel=1e-9)


def test_nearly_singular_ones_keep_a_small_residual(rng):
    """A pivot of 1e-10 among others of size 1; at rounding error the dense form decides."""
    n = 8
    F = square(rng, n, float, 1.0)
    near = np.linalg.eigvals(F)
    top = near[np.argmax(np.abs(near))]
    b = values(rng, (n * n,), float)
    for gap in (1e-6, 1e-10, 1e-13):
        c = abs(top) ** 2 * (1 + gap)  # conj pairs or the square of a real one
        A = c * pl.Identity(n * n) - pl.Kron(F, F)
        D = c * np.eye(n * n) - np.kron(F, F)
        x = pl.solve(A, b)
        assert eta(D, x[:, None], b[:, None]) <= 10 * n * n * precision(float)


def test_singular_ones_raise():
    a = np.kron(np.eye(4), [[0.0, 1], [0, 0]])
    a[0, 0] = 1
    A = pl.Identity(64) - pl.Kron(a, a)
    assert np.linalg.matrix_rank(A.toarray()) < 64
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        pl.solve(A, np.ones(64))
    assert pl.slogdet(A) == (0, -np.inf)


def test_pairs_of_very_unequal_off_diagonals(rng):
    """2 x 2 blocks [a b; c a] with b / c of 1e12: the residual decides."""
    block = np.array([[0.5, 1e6], [-1e-6, 0.5]])
    F = sla.block_diag(*[block * s for s in (1, 0.7, 0.3, 0.1)])
    A = pl.Identity(64) - pl.Kron(F, F)
    b = values(rng, (64, 2), float)
    with pytest.warns(pl.IllConditionedWarning):
        x = pl.solve(A, b)
    assert eta(A.toarray(), x, b) <= 640 * precision(float)


def test_nan_passes_through(rng):
    a, b = square(rng, 8, float), square(rng, 7, float)
    a[2, 3] = np.nan
    A = pl.Identity(56) + pl.Kron(a, b)
    assert np.isnan(pl.solve(A, np.ones(56))).any()
    assert np.isnan(pl.slogdet(A)[1])
    good = pl.Identity(56) + pl.Kron(square(rng, 8, float), b)
    assert np.isnan(pl.solve(good, np.full(56, np.nan))).all()


def test_batches(rng):
    a, b = values(rng, (3, 1, 7, 7), float), values(rng, (2, 8, 8), float)
    A = pl.Kron(a, b) + 0.5 * pl.Identity(56)
    x = values(rng, (56, 2), float)
    np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(A.toarray(), x), rtol=1e-6)
    np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(A.toarray())[1], rtol=1e-9)


def test_sizes_without_rows_and_without_columns(rng):
    empty = np.zeros((0, 0))
    A = pl.Identity(0) - pl.Kron(empty, square(rng, 5, float))
    assert pl.solve(A, np.zeros((0, 2))).shape == (0, 2)
    assert pl.det(A) == 1
    A = pl.Identity(56) - pl.Kron(square(rng, 8, float), square(rng, 7, float))
    assert pl.solve(A, np.zeros((56, 0))).shape == (56, 0)


def test_small_and_lopsided_ones_go_by_the_dense_form(rng):
    """Forms of 60 rows cost more than LU of 120; 36 rows are too few."""
    for m, n, there in ((2, 60, False), (6, 6, False), (6, 7, True), (5, 60, True), (3, 60, False)):
        A = pl.Kron(square(rng, m, float), square(rng, n, float)) + pl.Identity(m * n)
        assert ("stein" in steps(A, np.ones(m * n))) == there, (m, n)


def test_a_thin_update_goes_by_woodbury(rng):
    n = 40
    F, U = square(rng, n, float, 0.8), values(rng, (n * n, 2), float)
    A = pl.Identity(n * n) - pl.Kron(F, F) + pl.LowRank(U)
    b = values(rng, (n * n,), float)
    assert "stein" in steps(A, b)
    D = A.toarray()
    assert eta(D, pl.solve(A, b)[:, None], b[:, None]) <= 10 * n * n * precision(float)


def test_large_ones_are_not_formed(rng):
    """Dense it would take 12.8 GB."""
    n = 200
    F = square(rng, n, float, 0.9)
    A = pl.Identity(n * n) - pl.Kron(F, F)
    x = values(rng, (n * n,), float)
    with pl.config(memory_limit=10**8):
        b = A @ x
        y = pl.solve(A, b)
        pl.slogdet(A)
    size = (1 + np.linalg.norm(F, 2) ** 2) * np.linalg.norm(y) + np.linalg.norm(b)
    assert np.linalg.norm(A @ y - b) <= 100 * n * precision(float) * size
