"""Solves and determinants of Toeplitz and Hankel matrices, against dense NumPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.linalg as sl

import pylinop as pl

UNIT = 2.0**-53


def backward_error(a, x, b):
    """The largest of |b - A x| / (|A| |x| + |b|) over the columns."""
    r = b - a @ x
    v = np.ones(len(a)) + 0.5 * np.cos(np.arange(len(a)))
    for _ in range(20):  # |A| from below
        v = v / np.linalg.norm(v)
        v = a.conj().T @ (a @ v)
    norm = np.sqrt(np.linalg.norm(v))
    size = norm * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return np.max(np.linalg.norm(r, axis=0) / size)


def kernels(n):
    k = np.arange(n)
    d = np.sqrt(5) * k / 20
    w = 2 * np.pi * 0.2 * np.maximum(k, 1)
    sinc = np.where(k == 0, 0.4, np.sin(w) / (np.pi * np.maximum(k, 1)))
    return {
        "kms": 0.5**k,
        "exponential": np.exp(-k / 50),
        "matern": (1 + d + d * d / 3) * np.exp(-d) + 1e-4 * (k == 0),
        "rbf": np.exp(-0.5 * (k / 20) ** 2) + 1e-6 * (k == 0),
        "prolate": sinc + 1e-6 * (k == 0),
    }


def general(rng, n, dtype):
    c, r = (rng.standard_normal((2, n)) for _ in range(2))
    c, r = ((v[0] + 1j * v[1] if np.dtype(dtype).kind == "c" else v[0]) for v in (c, r))
    return c.astype(dtype), r.astype(dtype)


def steps_of(op, b):
    return str(op.explain("solve", b))


@pytest.mark.parametrize("name", list(kernels(4)))
@pytest.mark.parametrize("n", [130, 300, 1600])
def test_kernels(name, n, rng):
    c = kernels(n)[name]
    a, b = sl.toeplitz(c), rng.standard_normal((n, 2))
    T = pl.Toeplitz(c)
    assert "toeplitz-factor" in steps_of(T, b)
    assert backward_error(a, pl.solve(T, b), b) < 1e-14
    sign, log = np.linalg.slogdet(a)
    got = pl.slogdet(T)
    assert got.sign == 1 == sign
    cond = 1 + np.abs(a[0]).sum() * 1e6  # or less, of all of them
    assert abs(got.logabsdet - log) < 4 * UNIT * n * cond + 1e-12 * abs(log)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [20, 140, 300])
def test_general(dtype, n, rng):
    c, r = general(rng, n, dtype)
    a, (b, _) = sl.toeplitz(c, r), general(rng, n, dtype)
    T = pl.Toeplitz(c, r)
    unit = np.finfo(dtype).eps / 2
    for op, m in ((T, a), (T.T, a.T), (T.H, a.conj().T), (T.conj(), a.conj())):
        x = pl.solve(op, b)
        assert x.dtype == dtype
        assert backward_error(m.astype(np.promote_types(dtype, "f8")), x, b) < 10 * unit
    sign, log = np.linalg.slogdet(a.astype(np.promote_types(dtype, "f8")))
    got = pl.slogdet(T)
    tol = 1e-8 if unit < 1e-10 else 1e-3
    assert abs(got.sign - sign) < tol and abs(got.logabsdet - log) < tol * abs(log)


def test_hermitian(rng):
    n = 150
    c = general(rng, n, "complex128")[0] / (1 + np.arange(n)) ** 2
    for first in (8.0, 0.1, -3.0, 2 + 1j):  # positive, indefinite twice, not Hermitian
        c[0] = first
        a, b = sl.toeplitz(c, c.conj()), rng.standard_normal(n)
        T = pl.Toeplitz(c)
        assert backward_error(a, pl.solve(T, b), b) < 1e-14
        np.testing.assert_allclose(pl.det(T), np.linalg.det(a), rtol=1e-10)
    assert pl.slogdet(pl.Toeplitz(c)).sign.dtype == "complex128"


@pytest.mark.parametrize("first", [1e-12, 0.0, 1e-300])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_leading_minors_that_nearly_vanish(first, dtype, rng):
    n = 300
    c, r = general(rng, n, dtype)
    c[0] = first
    a, b = sl.toeplitz(c, r), general(rng, n, dtype)[0]
    T = pl.Toeplitz(c, r)
    assert backward_error(a, pl.solve(T, b), b) < 1e-14
    np.testing.assert_allclose(pl.slogdet(T), np.linalg.slogdet(a), rtol=1e-9)
    np.testing.assert_allclose(pl.solve(T.H, b), np.linalg.solve(a.conj().T, b), rtol=1e-7)


def levinson(c, b):
    """T^-1 b and log det T for symmetric T, by Levinson's recursion in mpmath's precision."""
    a, x, s = [mpmath.mpf(1)], [b[0] / c[0]], c[0]
    log = mpmath.log(s)
    for m in range(1, len(c)):
        k = mpmath.fdot(c[m:0:-1], a) / s
        a = [u - k * v for u, v in zip(a + [0], [0, *a[::-1]], strict=True)]
        s *= 1 - k * k
        log += mpmath.log(s)
        y = (b[m] - mpmath.fdot(c[m:0:-1], x)) / s
        x = [u + y * v for u, v in zip(x + [0], a[::-1], strict=True)]
    return np.array(x).astype(float), float(log)


@pytest.mark.parametrize("name", ["rbf", "prolate", "matern"])
def test_ill_conditioned_against_mpmath(name):
    """The error is that of a backward stable way: cond(A) u, at condition 1e5 and more."""
    n = 130
    c = kernels(n)[name]
    a, b = sl.toeplitz(c), np.cos(np.arange(n))
    with mpmath.workdps(60):
        want, log = levinson([mpmath.mpf(float(v)) for v in c], [mpmath.mpf(float(v)) for v in b])
    assert "toeplitz-factor" in steps_of(pl.Toeplitz(c), b)
    error = np.linalg.norm(pl.solve(pl.Toeplitz(c), b) - want) / np.linalg.norm(want)
    assert error < 10 * UNIT * np.linalg.cond(a)
    assert abs(pl.logdet(pl.Toeplitz(c)) - log) < n * UNIT * np.linalg.cond(a)


def test_refused_columns_go_by_the_dense_form(rng):
    n = 200
    a, b = sl.toeplitz(kernels(n)["prolate"] - 1e-6 * (np.arange(n) == 0)), rng.standard_normal(n)
    assert np.linalg.cond(a) > 1e16
    assert backward_error(a, pl.solve(pl.Toeplitz(a[:, 0]), b), b) < 1e-14
    h = np.concatenate([rng.standard_normal(n), np.zeros(n - 1)])  # a triangle: cond beyond 1e20
    H = sl.hankel(h[:n])
    x = pl.solve(pl.Hankel(h[:n]), b)
    assert np.isfinite(x).all() and backward_error(H, x, b) < 1e-13


def test_singular():
    for n in (3, 40, 300):
        for c in (np.ones(n), np.zeros(n)):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                pl.solve(pl.Toeplitz(c), np.ones(n))
            assert pl.det(pl.Toeplitz(c)) == 0


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33])
def test_small(n, rng):
    c, r = general(rng, n, "float64")
    a = sl.toeplitz(c, r) if n else np.zeros((0, 0))
    b = rng.standard_normal((n, 3))
    T = pl.Toeplitz(c, r)
    np.testing.assert_allclose(pl.solve(T, b), np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(pl.det(T), np.linalg.det(a), rtol=1e-9)
    assert pl.solve(T, b[:, :0]).shape == (n, 0)


def test_cost_chooses(rng):
    c = kernels(600)["kms"]
    T, small = pl.Toeplitz(c), pl.Toeplitz(c[:20])
    assert "toeplitz-factor" in steps_of(T, c) and "toeplitz-factor" not in steps_of(small, c[:20])
    many = np.zeros((600, 2000))
    assert "toeplitz-factor" not in steps_of(T, many)  # gemm's rate makes up for the factor
    with pl.config(fft=False):
        b = rng.standard_normal(600)
        np.testing.assert_allclose(pl.solve(T, b), np.linalg.solve(sl.toeplitz(c), b), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_hankel(dtype, rng):
    n = 200
    h = general(rng, 2 * n - 1, dtype)[0]
    a, b = sl.hankel(h[:n], h[n - 1 :]), general(rng, n, dtype)[0]
    H = pl.Hankel(h[:n], h[n - 1 :])
    assert "toeplitz-factor" in steps_of(H, b)
    for op, m in ((H, a), (H.T, a), (H.H, a.conj()), (H.conj(), a.conj())):
        assert backward_error(m, pl.solve(op, b), b) < 1e-14
    for size in (n, n - 1, n - 2, n - 3):  # every sign of the order of rows turned round
        a = sl.hankel(h[:size], h[size - 1 : 2 * size - 1])
        np.testing.assert_allclose(
            pl.slogdet(pl.Hankel(h[:size], h[size - 1 : 2 * size - 1])),
            np.linalg.slogdet(a),
            rtol=1e-9,
        )


def test_shifted(rng):
    n = 400
    c = np.exp(-0.5 * (np.arange(n) / 30) ** 2)
    a, b = 2 * sl.toeplitz(c) + 0.1 * np.eye(n), rng.standard_normal(n)
    identity = pl.Identity(n)
    for A in (2 * pl.Toeplitz(c) + 0.1 * identity, 0.1 * identity + 2 * pl.Toeplitz(c)):
        assert type(A) is pl.Toeplitz and "toeplitz-factor" in steps_of(A, b)
        np.testing.assert_allclose(A.toarray(), a, rtol=1e-15)
        assert backward_error(a, pl.solve(A, b), b) < 1e-14
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(a)[1], rtol=1e-11)
    assert type(identity + pl.Toeplitz(c)) is type(pl.Toeplitz(c) + identity) is pl.Toeplitz
    np.testing.assert_allclose((pl.Toeplitz(c) + identity)[0, 0], 2)
    c[:] = c / 2  # it follows its leaves
    np.testing.assert_allclose(A.toarray(), sl.toeplitz(2 * c) + 0.1 * np.eye(n), rtol=1e-15)
    Z = pl.Toeplitz(c) + 1j * identity
    assert Z.dtype == "complex128" and Z[1, 1] == c[0] + 1j
    wide = pl.Toeplitz(np.array([1, 2, 3])) + 0.5 * pl.Identity(3)
    np.testing.assert_array_equal(wide.toarray(), sl.toeplitz([1, 2, 3]) + 0.5 * np.eye(3))
    oblong = pl.Toeplitz(np.ones(3), np.ones(4))
    with pytest.raises(ValueError):
        oblong + pl.Identity(3)


def log_det_long(a):
    """log |det a| by elimination with row exchanges in long doubles, where 40 digits of mpmath take
    many seconds; x86's are 2,000 times as accurate as what it is compared with."""
    a, total = a.astype(np.longdouble), np.longdouble(0)
    for k in range(len(a)):
        best = k + np.argmax(abs(a[k:, k]))
        a[[k, best]] = a[[best, k]]
        total += np.log(abs(a[k, k]))
        a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
    return float(total)


def test_batches_and_layouts(rng):
    n = 90
    c = kernels(n)["exponential"] * rng.uniform(1, 2, (3, 1, 1))
    c[1] = 0
    c[1, :, 1] = 1  # leading minors are 0
    r = c.copy()
    r[2] = rng.standard_normal(n)
    b = rng.standard_normal((2, n, 4))[..., ::-1, ::2]
    T = pl.Toeplitz(c[:, 0, ::-1][:, ::-1][:, None, :], r)
    got = pl.solve(T, b)
    assert got.shape == (3, 2, n, 2)
    for i in range(3):
        a = sl.toeplitz(c[i, 0], r[i, 0])
        for j in range(2):
            assert backward_error(a, got[i, j], b[j]) < 1e-14
    # The third one's condition is 1.6e15: no routine finds four digits of its determinant. With the
    # row's end damped it is a few thousand, and u times it what LU's rounding may change.
    r[2] /= 1 + np.arange(n)
    log = np.squeeze(pl.slogdet(T).logabsdet)
    for i in range(3):
        a = sl.toeplitz(c[i, 0], r[i, 0])
        want = log_det_long(a)
        assert (cond := np.linalg.cond(a)) < 1e5
        assert abs(log[i] - want) <= n * UNIT * (cond + abs(want))


def test_integers_and_mixed_dtypes(rng):
    n = 100
    c = np.zeros(n, int)
    c[:3] = 5, 2, 1
    b = rng.standard_normal(n)
    a = sl.toeplitz(c)
    np.testing.assert_allclose(pl.solve(pl.Toeplitz(c), b), np.linalg.solve(a, b), rtol=1e-13)
    x = pl.solve(pl.Toeplitz(c.astype("f4")), b.astype("f4") * 1j)
    assert x.dtype == "complex64"
    np.testing.assert_allclose(x, np.linalg.solve(a, b * 1j), rtol=1e-5, atol=1e-6)


def test_ranges(rng):
    n = 80
    c, r = general(rng, n, "float64")
    a, b = sl.toeplitz(c, r), rng.standard_normal(n)
    x = pl.solve(pl.Toeplitz(c, r), b)
    for t, s in ((1e300, 1), (1e-300, 1e-290), (1e-160, 1e100), (1e200, 1e-80)):
        got = pl.solve(pl.Toeplitz(c * t, r * t), b * s)
        np.testing.assert_allclose(got, x * (s / t), rtol=1e-10)
        log = np.linalg.slogdet(a)[1] + n * np.log(t)
        np.testing.assert_allclose(pl.slogdet(pl.Toeplitz(c * t, r * t)).logabsdet, log, rtol=1e-12)
    both = np.stack([b, b], axis=1)
    both[3, 1] = np.nan
    got = pl.solve(pl.Toeplitz(c, r), both)  # what is no number stays in its column
    assert np.isnan(got[:, 1]).all()
    np.testing.assert_allclose(got[:, 0], x, rtol=1e-12)


def test_changed_in_place(rng):
    n = 500
    c = kernels(n)["exponential"].copy()
    T, b = pl.Toeplitz(c), rng.standard_normal(n)
    for change in (1.0, 2.0, 0.25):
        c[0] = change + 1
        for _ in range(2):
            a = sl.toeplitz(c)
            assert backward_error(a, pl.solve(T, b), b) < 1e-14
            np.testing.assert_allclose(pl.logdet(T), np.linalg.slogdet(a)[1], rtol=1e-12)
            np.testing.assert_allclose(pl.solve(T.T, b), pl.solve(T, b), rtol=1e-10)


def test_same_bits_cold_and_warm(rng):
    n = 1500
    for c in kernels(n).values():
        b = rng.standard_normal((n, 2))
        T = pl.Toeplitz(c)
        cold = pl.solve(T, b)
        assert (pl.solve(T, b) == cold).all()
        assert (pl.solve(pl.Toeplitz(c.copy()), b) == cold).all()
        assert (pl.solve(T, b[:, 1]) == cold[:, 1]).all()


def test_inverse_as_operator(rng):
    n = 120
    c, r = general(rng, n, "float64")
    a, b = sl.toeplitz(c, r), rng.standard_normal((n, 2))
    T = pl.Toeplitz(c, r)
    np.testing.assert_allclose(pl.inv(T) @ b, np.linalg.solve(a, b), rtol=1e-8)
    np.testing.assert_allclose(b.T @ pl.inv(T), np.linalg.solve(a.T, b).T, rtol=1e-8)
    np.testing.assert_allclose(pl.solve(3 * T, b), np.linalg.solve(3 * a, b), rtol=1e-8)
    np.testing.assert_allclose(
        pl.solve(pl.Kron(T, np.eye(2)), np.ones(2 * n)),
        np.repeat(np.linalg.solve(a, np.ones(n)), 2),
        rtol=1e-8,
    )


@pytest.mark.parametrize("kind", ["spd", "general", "hankel"])
def test_low_rank_updates_go_by_the_fast_solve(kind):
    rng = np.random.default_rng(4)
    n = 300
    c = np.exp(-np.arange(n) / 30)
    c[0] += 0.5
    base = {
        "spd": lambda: pl.Toeplitz(c),
        "general": lambda: pl.Toeplitz(np.r_[20.0, c[1:]], rng.standard_normal(n)),
        "hankel": lambda: pl.Hankel(rng.standard_normal(n), rng.standard_normal(n)),
    }[kind]()
    U, V = rng.standard_normal((2, n, 3))
    A = pl.LowRankUpdate(base, U, V)
    dense = A.toarray()
    b = rng.standard_normal((n, 2))
    x = pl.solve(A, b)
    assert "solve-update" in A.explain("solve", b).fired
    residual = np.abs(b - dense @ x).max() / (np.abs(dense).sum(1).max() * np.abs(x).max())
    assert residual < 1e-13
    np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=1e-10)


def decaying(n, dtype):
    """Columns of whose recursions most sums are 0 or nothing beside 1; some come back later."""
    k = np.arange(n)
    lag = np.where(k == 0, 1.0, 0) + 0.3 * (k == 50) - 0.2 * (k == 213)
    swing = np.exp(0.3j * k) if np.dtype(dtype).kind == "c" else np.cos(0.3 * k)
    columns = [
        lag,
        0.5**k + 0.1 * (k == 0),
        np.exp(-0.7 * k),
        np.where(k < 60, 0.9**k, 0) + 5.0 * (k == 0),
    ]
    return [(c * swing).astype(dtype) for c in columns]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [51, 214, 701])
def test_recursions_that_leave_out_what_is_nothing(n, dtype, rng):
    b = rng.standard_normal(n).astype(dtype)
    for c in decaying(n, dtype):
        T, a = pl.Toeplitz(c), sl.toeplitz(c)
        sign, log = np.linalg.slogdet(a)
        got = pl.slogdet(T)
        assert abs(got.sign - sign) < 1e-12
        assert abs(got.logabsdet - log) <= 1e-13 * n
        assert backward_error(a, pl.solve(T, b)[:, None], b[:, None]) < 1e-14
    for c, r in zip(decaying(n, dtype), decaying(n, dtype)[1:], strict=False):
        r = np.r_[c[0], 0.5 * r[1:]]  # not Hermitian
        T, a = pl.Toeplitz(c, r), sl.toeplitz(c, r)
        assert backward_error(a, pl.solve(T, b)[:, None], b[:, None]) < 1e-14
