"""QuasiSeparable: likelihoods from both ends, and what is not definite, by the band with the
states; against dense NumPy and, in ninety digits, mpmath."""

import mpmath
import numpy as np
import pytest
from drawn import DTYPES, close, values
from test_quasiseparable import definite, dense, generators

import pylinop as pl

UNIT = 2.0**-53
SHAPES = [(1, False), (2, False), (3, False), (4, False), (5, False), (2, True), (3, True)]


def backward_error(a, size, x, b):
    size = size * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return np.max(np.linalg.norm(b - a @ x, axis=0) / size)


# -- likelihoods --


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_likelihoods(dtype, right, rng):
    """Those of the dense form: the determinant's is the matrix's, whatever the vector is."""
    A = pl.QuasiSeparable(*definite(rng, 5, 2, dtype, False))
    got, due = (pl.inv_quad_logdet(K, np.ones(5, right)) for K in (A, A.toarray()))
    assert [x.dtype for x in got] == [x.dtype for x in due]
    assert got.logdet.dtype == pl.logdet(A).dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), SHAPES)
def test_likelihoods(J, full, dtype, rng):
    for n in (1, 2, 3, 4, 7, 30):
        d, p, q, a = definite(rng, n, J, dtype, full)
        want = dense(d, p, q, a)
        p[0] = q[-1] = a[0] = a[-1] = np.nan  # not read
        for kind in (dtype, "float64", "complex128"):
            b = values(rng, (n,), kind)
            quad, log = pl.inv_quad_logdet(pl.QuasiSeparable(d, p, q, a), b)
            wide = want.astype(np.result_type(dtype, kind, np.float64))
            np.testing.assert_allclose(quad, b.conj() @ np.linalg.solve(wide, b), rtol=1e-5)
            np.testing.assert_allclose(log, np.linalg.slogdet(wide)[1], rtol=1e-5)
            if np.dtype(dtype).itemsize > 8 or dtype == "float64":
                np.testing.assert_allclose(quad, b.conj() @ np.linalg.solve(wide, b), rtol=1e-12)
                np.testing.assert_allclose(log, np.linalg.slogdet(wide)[1], rtol=1e-12)


def test_likelihoods_of_large_and_small_numbers(rng):
    """Determinants beyond 1e308, of pivots near either end; states of very different size."""
    for scale in (1e-150, 1e150):
        d, p, q, a = definite(rng, 40, 2, "float64", full=True)
        A = pl.QuasiSeparable(d * scale * scale, p * scale, q * scale, a)
        b = values(rng, (40,), "float64")
        plain = pl.inv_quad_logdet(pl.QuasiSeparable(d, p, q, a), b)
        quad, log = pl.inv_quad_logdet(A, b)
        np.testing.assert_allclose(quad * scale * scale, plain.inv_quad, rtol=1e-13)
        np.testing.assert_allclose(log, plain.logdet + 80 * np.log(scale), rtol=1e-13)
    d, p, q, a = definite(rng, 41, 2, "float64")
    units = np.array([1e90, 1e-60])
    given = pl.inv_quad_logdet(pl.QuasiSeparable(d, p * units, q / units, a), d)
    np.testing.assert_allclose(given, pl.inv_quad_logdet(pl.QuasiSeparable(d, p, q, a), d))
    D = np.array([1e300, 1e-300, 1e308, 1e300, 1e-308])
    zeros = np.zeros((5, 1))
    log = pl.inv_quad_logdet(pl.QuasiSeparable(D, zeros, zeros, zeros), np.zeros(5)).logdet
    np.testing.assert_allclose(log, np.log(D).sum(), rtol=1e-15)


def test_halves_that_nearly_determine_each_other(rng):
    """I - S Z is nearly singular: the recursion alone, then checked solves."""
    t = np.sort(rng.uniform(0, 1, 60))
    y = rng.standard_normal(60)
    for kernel in ("matern12", "matern32", "matern52"):
        for noise in (1e-2, 1e-6, 1e-10):
            K = pl.quasiseparable(kernel, t, length_scale=30.0) + noise * pl.Identity(60)
            a = K.toarray()
            quad, log = pl.inv_quad_logdet(K, y)
            allowed = 60 * UNIT * np.linalg.cond(a)
            assert abs(log - np.linalg.slogdet(a)[1]) <= allowed
            np.testing.assert_allclose(quad, y @ np.linalg.solve(a, y), rtol=allowed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_ldl(full, dtype, rng):
    """Of definite ones without a dense form; else LAPACK's, with exchanges."""
    small = 1e-12 if np.finfo(dtype).eps < 1e-10 else 1e-5
    for n in (1, 2, 30):
        d, p, q, a = definite(rng, n, 2, dtype, full)
        A = pl.QuasiSeparable(d, p, q, a)
        outer, middle, order = pl.ldl(A)
        assert type(outer).__name__ == "QuasiSeparable" and type(middle).__name__ == "Diag"
        assert outer.dtype == middle.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(order, np.arange(n))
        low = outer.toarray()
        assert (np.triu(low, 1) == 0).all() and (np.diagonal(low) == 1).all()
        found = low @ middle.toarray() @ low.conj().T
        np.testing.assert_allclose(found, A.toarray(), rtol=0, atol=small * np.abs(d).max())
    upper = pl.ldl(A, lower=False)[0]
    assert (np.tril(upper.toarray(), -1) == 0).all()
    outer, middle, _ = pl.ldl(A - 30 * pl.Identity(30))
    low = outer.toarray()
    found = low @ middle.toarray() @ low.conj().T
    np.testing.assert_allclose(
        found, A.toarray() - 30 * np.eye(30), rtol=0, atol=small * np.abs(d).max()
    )


def test_ldl_is_linear(rng):
    n = 50_000
    t = np.cumsum(rng.exponential(size=n))
    K = pl.quasiseparable("matern32", t) + 0.1 * pl.Identity(n)
    outer, middle, _ = pl.ldl(K)
    b = rng.standard_normal(n)
    np.testing.assert_allclose(outer @ (middle @ (outer.H @ b)), K @ b, rtol=0, atol=1e-11)


# -- the band with the states --


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), SHAPES)
def test_indefinite(J, full, dtype, rng):
    n = 32 * J + 32
    for units in (1.0, 10.0 ** rng.uniform(-8, 8, J)):
        d, p, q, a = generators(rng, n, J, dtype, full)
        d[::3] = 0
        A = pl.QuasiSeparable(d, (p * units).astype(dtype), (q / units).astype(dtype), a)
        want = A.astype(np.result_type(dtype, np.float64)).toarray()
        b = values(rng, (n, 9), dtype)
        x = pl.solve(A, b)
        assert x.dtype == np.dtype(dtype)
        spectrum = np.abs(np.linalg.eigvalsh(want))
        size = spectrum.max()
        small = 1e-14 if np.finfo(dtype).eps < 1e-10 else 1e-6
        assert backward_error(want, size, x, b) < small
        assert backward_error(want.T, size, pl.solve(A.T, b), b) < small
        sign, log = np.linalg.slogdet(want)
        found = pl.slogdet(A)
        assert found.sign.real == pytest.approx(sign.real)
        allowed = n * UNIT * size / spectrum.min() + small
        np.testing.assert_allclose(found.logabsdet, log, atol=allowed)
        assert "quasi-band-factor" in str(A.explain("solve", b))


def test_indefinite_batches_and_writes(rng):
    d, p, q, a = generators(rng, 80, 2, "float64", full=True, batch=(2,))
    d[:] = 0
    A = pl.QuasiSeparable(d, p, q, a)
    b = values(rng, (80, 3), "float64")
    for _ in range(2):
        want = dense(d, p, q, a)
        x = pl.solve(A, b)
        for i in range(2):
            assert backward_error(want[i], np.linalg.norm(want[i], 2), x[i], b) < 1e-14
        close(pl.slogdet(A).logabsdet, np.linalg.slogdet(want)[1])
        assert (pl.solve(A, b) == x).all()
        p *= 0.5


def test_large_indefinite_without_dense_forms(rng):
    n = 60_000
    t = np.cumsum(rng.exponential(0.1, n))
    K = pl.quasiseparable("matern32", t)
    A = K - pl.Diag(K.diagonal())  # zeros on the diagonal
    b = rng.standard_normal(n)
    x = pl.solve(A, b)
    assert np.linalg.norm(b - A @ x) <= 1e-14 * np.linalg.norm(x)
    assert np.isfinite(pl.logdet(A)) or pl.slogdet(A).sign == -1
    with pytest.raises(np.linalg.LinAlgError, match="pivot"):
        pl.solve(K - K, b)
    assert pl.logdet(K - K) == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), SHAPES)
def test_inverse_diagonal_of_indefinite(J, full, dtype, rng):
    n = 32 * J + 33
    for units in (1.0, 10.0 ** rng.uniform(-8, 8, J)):
        d, p, q, a = generators(rng, n, J, dtype, full)
        d[::3] = 0
        A = pl.QuasiSeparable(d, (p * units).astype(dtype), (q / units).astype(dtype), a)
        wide = A.astype(np.result_type(dtype, np.float64)).toarray()
        inverse = np.linalg.inv(wide)
        found = pl.inv(A).diagonal()
        assert found.dtype == np.dtype(dtype)
        small = UNIT if np.finfo(dtype).eps < 1e-10 else 2.0**-24
        allowed = 100 * n * small * np.linalg.norm(inverse, 2)
        allowed *= max(1, UNIT / small * np.linalg.cond(wide))
        np.testing.assert_allclose(found, np.diagonal(inverse), rtol=0, atol=allowed)
        trace = pl.trace(pl.inv(A))
        assert abs(trace - np.diagonal(inverse).sum()) <= n * allowed
        assert "quasi-band-inverse-diagonal" in str(pl.inv(A).explain("diagonal"))


def test_inverse_diagonal_of_indefinite_batches_and_writes(rng):
    d, p, q, a = generators(rng, 80, 2, "float64", full=True, batch=(2,))
    d[:] = 0
    A = pl.QuasiSeparable(d, p, q, a)
    for _ in range(2):
        want = np.diagonal(np.linalg.inv(dense(d, p, q, a)), axis1=1, axis2=2)
        np.testing.assert_allclose(pl.inv(A).diagonal(), want, rtol=1e-9)
        p *= 0.5


def test_large_inverse_diagonal_of_indefinite(rng):
    """No dense form; against solves, in the middle of ill-conditioned leading blocks too."""
    n = 60_000
    t = np.cumsum(rng.exponential(0.1, n))
    K = pl.quasiseparable("matern32", t)
    for A in (K - pl.Diag(K.diagonal()), K - 0.9 * pl.Identity(n)):
        found = pl.inv(A).diagonal()
        for k in (0, 1, n // 3, n - 1):
            unit = np.zeros(n)
            unit[k] = 1
            np.testing.assert_allclose(found[k], pl.solve(A, unit)[k], rtol=1e-9)
        np.testing.assert_allclose(pl.trace(pl.inv(A)), found.sum(), rtol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="pivot"):
        pl.inv(K - K).diagonal()


def test_nan_in_the_band(rng):
    d, p, q, a = generators(rng, 100, 1, "float64")
    b = np.ones(100)
    for place in (d, p, q, a):
        kept = place[50].copy()
        place[50] = np.nan
        A = pl.QuasiSeparable(d, p, q, a)
        assert np.isnan(pl.solve(A, b)).all() and np.isnan(pl.logdet(A))
        assert np.isnan(pl.inv(A).diagonal()).all()
        place[50] = kept
    d[:] = 0
    assert np.isnan(pl.solve(pl.QuasiSeparable(d, p, q, a), b * np.nan)).all()


# -- between times --


def matern32(r, variance, length_scale):
    x = np.sqrt(3) * r / length_scale
    return variance * (1 + x) * np.exp(-x)


def test_between_times(rng):
    given = {"variance": 2.0, "length_scale": 1.3}
    for m, n in ((7, 30), (1, 5), (0, 4), (4, 0)):
        t, x = rng.uniform(-1, 11, m), rng.uniform(0, 10, n)  # in any order
        known = min(m, n) // 2
        t[:known] = x[:known]
        C = pl.quasiseparable("matern32", t, x, **given)
        want = matern32(np.abs(t[:, None] - x), **given)
        assert C.shape == want.shape and C.dtype == np.float64
        close(C.toarray(), want)
        for k in (1, 3):
            y, z = values(rng, (n, k), "float64"), values(rng, (m, k), "float64")
            close(C @ y, want @ y)
            close(C.T @ z, want.T @ z)
    noise = 0.3 * pl.Identity(30)
    x, t = np.sort(rng.uniform(0, 10, 30)), rng.uniform(-1, 11, 8)
    K = pl.quasiseparable("matern32", x, **given) + pl.quasiseparable("matern12", x) + noise
    C = pl.quasiseparable("matern32", t, x, **given) + pl.quasiseparable("matern12", t, x)
    y = rng.standard_normal(30)
    r = np.abs(t[:, None] - x)
    want = (matern32(r, **given) + np.exp(-r)) @ np.linalg.solve(K.toarray(), y)
    close(C @ pl.solve(K, y), want)
    single = pl.quasiseparable("matern12", np.zeros(2, np.float32), np.ones(3, np.float32))
    assert single.dtype == np.float32 and single.shape == (2, 3)


def test_between_times_is_linear(rng):
    m, n = 30_000, 40_000
    C = pl.quasiseparable("matern52", rng.uniform(0, 1e3, m), rng.uniform(0, 1e3, n))
    x, y = rng.standard_normal(n), rng.standard_normal(m)
    np.testing.assert_allclose(y @ (C @ x), x @ (C.T @ y), rtol=1e-10)


def test_between_times_refuses():
    for t, x in (([np.nan], [1.0]), ([1.0], [np.inf]), ([[1.0]], [1.0]), ([1.0], [[1.0]])):
        with pytest.raises(ValueError, match="between t and x"):
            pl.quasiseparable("matern12", t, x)
    with pytest.raises(ValueError, match="real"):
        pl.quasiseparable("matern12", [1.0], 1j)
    with pytest.raises(TypeError, match="'period'"):
        pl.quasiseparable("matern12", [1.0], [2.0], period=1.0)


def test_parameters_that_are_no_numbers():
    for bad in ("1", None, 1j, [1.0], 10**400):
        with pytest.raises(ValueError, match="length_scale=.*positive number"):
            pl.quasiseparable("matern12", [0.0], length_scale=bad)
    with pytest.raises(ValueError, match="too large"):
        pl.quasiseparable("oscillator", [0.0], frequency=1e200, quality=1e-200)
    t = np.arange(3.0)
    K = pl.quasiseparable("oscillator", t, quality=1e300).toarray()
    np.testing.assert_allclose(K, np.cos(np.abs(t[:, None] - t)), atol=1e-12)


# -- ninety digits --


def exactly(d, p, q, a):
    """The matrix of these very numbers, of one state."""
    n = len(d)
    out = mpmath.matrix(n, n)
    for j in range(n):
        out[j, j] = mpmath.mpf(d[j])
        s = mpmath.mpf(q[j, 0])
        for i in range(j + 1, n):
            if i > j + 1:
                s *= mpmath.mpf(a[i - 1, 0])
            out[i, j] = out[j, i] = mpmath.mpf(p[i, 0]) * s
    return out


def eliminated(d, p, q, a, b):
    """x of A x = b and det A by the recursion without exchanges, which digits make up for."""
    p, q, a = ([mpmath.mpf(v) for v in g[:, 0]] for g in (p, q, a))
    n, S, f, h = len(d), 0, 0, 0
    D, W, z = [], [], []
    for i in range(n):
        v, move = (S * p[i], a[i]) if i else (0, 0)
        D.append(mpmath.mpf(d[i]) - p[i] * v)
        z.append(mpmath.mpf(b[i]) - (p[i] * f if i else 0))
        W.append((q[i] - move * v) / D[i])
        S, f = move * move * S + D[i] * W[i] ** 2, move * f + W[i] * z[i]
    x = [0] * n
    for i in reversed(range(n)):
        x[i] = z[i] / D[i] - W[i] * h
        h = a[i] * h + p[i] * x[i]
    return mpmath.matrix(x), mpmath.fprod(D)


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8, 1e11, 1e14])
def test_conditions(condition, definite, rng):
    """Backward error below 1e-14; the rest as the condition allows."""
    n = 64
    d, p, q, a = generators(rng, n, 1, "float64")
    a *= 1.5
    d[:] = 0
    spectrum = np.linalg.eigvalsh(dense(d, p, q, a))
    size = np.abs(spectrum).max()
    d += size / condition - spectrum[0 if definite else n // 2]
    b = rng.standard_normal(n)
    A = pl.QuasiSeparable(d, p, q, a)
    x, found, (quad, log) = pl.solve(A, b), pl.slogdet(A), pl.inv_quad_logdet(A, b)
    cond = 4 * condition
    with mpmath.workdps(90):
        want, right = exactly(d, p, q, a), mpmath.matrix(b.tolist())
        got = mpmath.matrix(x.tolist())
        exact, det = eliminated(d, p, q, a, b)
        assert mpmath.norm(right - want * exact) < 1e-50 * mpmath.norm(exact)
        left = right - want * got
        assert mpmath.norm(left) <= 1e-14 * (size * np.linalg.norm(x) + np.linalg.norm(b))
        assert mpmath.norm(exact - got) <= 100 * UNIT * cond * mpmath.norm(exact)
        allowed = n * UNIT * cond
        assert found.sign == mpmath.sign(det) or allowed > 0.1
        assert abs(found.logabsdet - mpmath.log(abs(det))) <= allowed
        true = (right.T * exact)[0]
        assert abs(quad - true) <= 100 * UNIT * cond * mpmath.norm(right) * mpmath.norm(exact)
        if det > 0 and found.sign > 0:
            assert abs(log - mpmath.log(det)) <= allowed
