"""QuasiSeparable: products, solves, determinants, factors and covariances, against dense NumPy and
mpmath."""

import pickle

import mpmath
import numpy as np
import pytest
from drawn import DTYPES, close, values
from samples import LAYOUTS, arrange

import pylinop as pl

UNIT = 2.0**-53


def generators(rng, n, J, dtype, full=False, batch=()):
    a = values(rng, (*batch, n, J * J if full else J), dtype) / (2 * J)
    return (
        values(rng, (*batch, n), dtype),
        values(rng, (*batch, n, J), dtype),
        values(rng, (*batch, n, J), dtype),
        a.astype(dtype),
    )


def dense(d, p, q, a, triangular=False):
    """Element by element, by definition."""
    n, J = d.shape[-1], p.shape[-1]
    dtype = np.result_type(d, p, q, a)
    out = np.zeros((*d.shape, n), dtype)
    for i in range(n):
        out[..., i, i] = d[..., i] if triangular else d[..., i].real
        for j in range(i):
            s = q[..., j, :]
            for r in range(j + 1, i):
                if a.shape[-1] == J:
                    s = a[..., r, :] * s
                else:
                    m = a[..., r, :].reshape(*a.shape[:-2], J, J)
                    s = (m * s[..., None, :]).sum(-1)
            out[..., i, j] = (p[..., i, :] * s).sum(-1)
            if not triangular:
                out[..., j, i] = out[..., i, j].conj()
    return out


def definite(rng, n, J, dtype, full=False, batch=()):
    """With a diagonal that dominates."""
    d, p, q, a = generators(rng, n, J, dtype, full, batch)
    rows = np.abs(dense(0 * d, p, q, a)).sum(-1)
    return (rows + 1).astype(dtype), p, q, a


def backward_error(a, x, b):
    size = np.linalg.norm(a, 2) * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return np.max(np.linalg.norm(b - a @ x, axis=0) / size)


# -- the kind --


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), [(0, False), (1, False), (2, False), (2, True), (3, True)])
@pytest.mark.parametrize("triangular", [False, True])
def test_products(J, full, triangular, dtype, rng):
    for n, batch in ((0, ()), (1, ()), (2, ()), (13, ()), (6, (2,))):
        g = generators(rng, n, J, dtype, full, batch)
        A, a = pl.QuasiSeparable(*g, triangular), dense(*g, triangular)
        assert A.dtype == np.dtype(dtype) and A.shape == a.shape
        close(A.toarray(), a)
        for k in (0, 1, 3, 8, 11):
            x = values(rng, (n, k), dtype)
            close(A @ x, a @ x)
            close(A.H @ x, np.swapaxes(a, -1, -2).conj() @ x)
            close(A.T @ x, np.swapaxes(a, -1, -2) @ x)
            close(A.conj() @ x, a.conj() @ x)
        for k in (0, 1, -2):
            close(A.diagonal(k), np.diagonal(a, k, -2, -1))
        if n > 2:
            close(A[..., 1, 2], a[..., 1, 2])
            close(A[..., 2, 0], a[..., 2, 0])


def test_layouts(rng):
    g = definite(rng, 9, 2, "float64", full=True)
    x = values(rng, (9, 3), "float64")
    want = dense(*g)
    for layout in LAYOUTS:
        A = pl.QuasiSeparable(*(arrange(v, layout) for v in g))
        close(A @ arrange(x, layout), want @ x)
        close(pl.solve(A, arrange(x, layout)), np.linalg.solve(want, x))


def test_integers_are_float64(rng):
    g = [rng.integers(-3, 4, s) for s in ((5,), (5, 2), (5, 2), (5, 2))]
    A = pl.QuasiSeparable(*g)
    assert A.dtype == np.float64
    close(A.toarray(), dense(*(v.astype(float) for v in g)))
    close((2 * A + pl.Diag([1, 2, 3, 4, 5])).toarray(), 2 * A.toarray() + np.diag(range(1, 6)))


def test_unread_elements(rng):
    d, p, q, a = definite(rng, 6, 2, "float64")
    want = dense(d, p, q, a)
    p[0] = q[-1] = a[0] = a[-1] = np.nan
    A = pl.QuasiSeparable(d, p, q, a)
    b = values(rng, (6,), "float64")
    close(A.toarray(), want)
    close(A @ b, want @ b)
    close(pl.solve(A, b), np.linalg.solve(want, b))
    close(pl.logdet(A), np.linalg.slogdet(want)[1])
    close(pl.inv(A).diagonal(), np.diag(np.linalg.inv(want)))
    close(pl.cholesky(A).toarray(), np.linalg.cholesky(want))


def test_refuses(rng):
    d, p, q, a = generators(rng, 5, 2, "float64")
    for bad in ((d[1:], p, q, a), (d, p, q[:, :1], a), (d, p, q, a[:, :1]), (d, p, q[1:], a)):
        with pytest.raises(ValueError, match="goes with|transitions between"):
            pl.QuasiSeparable(*bad)
    with pytest.raises(ValueError, match="takes|dimension"):
        pl.QuasiSeparable(d, p[:, 0], q, a)


# -- what stays a QuasiSeparable --


@pytest.mark.parametrize("dtype", DTYPES)
def test_closed(dtype, rng):
    g, h = generators(rng, 7, 2, dtype), generators(rng, 7, 3, dtype, full=True)
    A, B = pl.QuasiSeparable(*g), pl.QuasiSeparable(*h)
    a, b = dense(*g), dense(*h)
    d = rng.standard_normal(7).astype(np.finfo(dtype).dtype)
    made = {
        "sum": (A + B, a + b),
        "alike": (A + A, a + a),
        "multiple": (-2.5 * A, -2.5 * a),
        "difference": (B - A, b - a),
        "diagonal": (A + pl.Diag(d), a + np.diag(d)),
        "other order": (pl.Diag(d) + A, a + np.diag(d)),
        "identity": (A + pl.Identity(7), a + np.eye(7)),
        "shift": (0.5 * pl.Identity(7) + A, a + 0.5 * np.eye(7)),
        "transpose": (A.T, a.T),
        "adjoint": (A.H, a),
    }
    if np.dtype(dtype).kind == "f":
        made["pairs"] = (pl.multiply(A, B), a * b)
        made["pairs plus"] = (pl.multiply(A, A) + pl.Identity(7), a * a + np.eye(7))
    x = values(rng, (7, 2), dtype)
    for name, (op, want) in made.items():
        assert type(op) is pl.QuasiSeparable, name
        close(op.toarray(), want)
        close(op @ x, want @ x)
        close(pickle.loads(pickle.dumps(op)).toarray(), want)
        close((op @ x.astype(np.clongdouble)).astype(np.result_type(dtype, 1j)), want @ x)
    close((A + pl.Diag(1j * d)).toarray(), a + np.diag(1j * d))
    close((1j * A).toarray(), 1j * a)
    close(pl.multiply(A, B).toarray(), a * b)


def test_closed_triangles(rng):
    g, h = generators(rng, 6, 1, "complex128"), generators(rng, 6, 2, "complex128")
    A, B = pl.QuasiSeparable(*g, True), pl.QuasiSeparable(*h, triangular=True)
    a, b = dense(*g, True), dense(*h, True)
    for op, want in ((A + B, a + b), (1j * A, 1j * a), (A + pl.Diag(1j * g[0]), None)):
        assert type(op) is pl.QuasiSeparable
        close(op.toarray(), a + np.diag(1j * g[0]) if want is None else want)
    close((A + B.T).toarray(), a + b.T)
    close(pl.multiply(A, B).toarray(), a * b)


def test_follows_writes(rng):
    d, p, q, a = definite(rng, 40, 2, "float64")
    e = np.ones(40)
    A = pl.QuasiSeparable(d, p, q, a) + pl.Diag(e)
    b = values(rng, (40,), "float64")
    for change in (None, d, p, q, a, e):
        if change is not None:
            change *= 0.875
        want = dense(d, p, q, a) + np.diag(e)
        close(pl.solve(A, b), np.linalg.solve(want, b))
        close(pl.logdet(A), np.linalg.slogdet(want)[1])
        close(pl.inv_quad_logdet(A, b).inv_quad, b @ np.linalg.solve(want, b))
        close(A @ b, want @ b)
    assert (pl.solve(A, b) == pl.solve(pl.QuasiSeparable(d, p, q, a) + pl.Diag(e), b)).all()


# -- solves --


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), [(1, False), (2, False), (2, True), (3, True), (4, True)])
def test_solves(J, full, dtype, rng):
    for n, batch in ((1, ()), (2, ()), (30, ()), (5, (3,))):
        g = definite(rng, n, J, dtype, full, batch)
        A, a = pl.QuasiSeparable(*g), dense(*g)
        for k in (1, 9):
            b = values(rng, (n, k), dtype)
            close(pl.solve(A, b), np.linalg.solve(a, np.broadcast_to(b, (*batch, n, k))))
            close(pl.solve(A.T, b), np.linalg.solve(a.conj(), np.broadcast_to(b, (*batch, n, k))))
        sign, log = np.linalg.slogdet(a)
        close(pl.logdet(A), log)
        close(pl.slogdet(A).sign, sign)
        close(pl.inv(A).diagonal(), np.diagonal(np.linalg.inv(a), 0, -2, -1))
        close(pl.trace(pl.inv(A)), np.trace(np.linalg.inv(a), 0, -2, -1))
        close(pl.cholesky(A).toarray(), np.linalg.cholesky(a))
        assert type(pl.cholesky(A)) is pl.QuasiSeparable
    explained = str(A.explain("solve", b))
    assert "quasi-factor" in explained and "solve-quasi" in explained


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solves(dtype, rng):
    for n, J, full in ((1, 1, False), (12, 1, False), (9, 2, True)):
        d, p, q, a = generators(rng, n, J, dtype, full)
        d = (d / np.abs(d) * 3).astype(dtype)
        L, low = pl.QuasiSeparable(d, p, q, a, True), dense(d, p, q, a, True)
        b = values(rng, (n, 3), dtype)
        views = ((L, low), (L.T, low.T), (L.H, low.conj().T), (L.conj(), low.conj()))
        for op, want in views:
            close(pl.solve(op, b), np.linalg.solve(want, b))
        close(pl.det(L), np.prod(d))
        close(pl.det(L.T), np.prod(d))
    d[n // 2] = 0
    with pytest.raises(np.linalg.LinAlgError, match="pivot"):
        pl.solve(pl.QuasiSeparable(d, p, q, a, True), b)


def test_indefinite(rng):
    """Pivots of any sign, and some that vanish: the fallback branch."""
    for n, J, full in ((7, 1, False), (20, 2, True)):
        for zero in (False, True):
            d, p, q, a = generators(rng, n, J, "float64", full)
            d *= not zero
            A, want = pl.QuasiSeparable(d, p, q, a), dense(d, p, q, a)
            b = values(rng, (n, 2), "float64")
            x = pl.solve(A, b)
            assert backward_error(want, x, b) < 1e-14
            sign, log = np.linalg.slogdet(want)
            assert pl.slogdet(A).sign == sign
            np.testing.assert_allclose(pl.slogdet(A).logabsdet, log, rtol=1e-8)
            np.testing.assert_allclose(
                pl.inv(A).diagonal(), np.diag(np.linalg.inv(want)), rtol=1e-7
            )
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                pl.cholesky(A)


def test_singular():
    for n in (2, 5):
        K = pl.quasiseparable("matern32", np.zeros(n))
        with pytest.raises(np.linalg.LinAlgError):
            pl.solve(K, np.ones(n))
        with pytest.raises(np.linalg.LinAlgError):
            pl.cholesky(K)
        assert pl.logdet(K) == -np.inf
    Z = pl.QuasiSeparable(np.zeros(3), *(np.zeros((3, 1)) for _ in range(3)))
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(Z, np.ones(3))


def test_nan_and_inf(rng):
    d, p, q, a = definite(rng, 6, 1, "float64")
    for bad in (np.nan, np.inf):
        e = d.copy()
        e[3] = bad
        A = pl.QuasiSeparable(e, p, q, a)
        assert not np.isfinite(A @ np.ones(6)).all()
        assert not np.isfinite(pl.logdet(A))


# -- covariances --


def oscillator(r, variance, frequency, quality):
    c = frequency / (2 * quality)
    if quality == 0.5:
        return variance * np.exp(-c * r) * (1 + c * r)
    eta = np.emath.sqrt(4 * quality**2 - 1)
    turn = 1j * eta * c * r  # of an overdamped one real
    even, odd = np.exp(turn - c * r), np.exp(-turn - c * r)
    return (variance * ((even + odd) / 2 + (even - odd) / 2j / eta)).real


def kernel_of(name, r, p):
    if name == "celerite":
        return np.exp(-p["c"] * r) * (p["a"] * np.cos(p["d"] * r) + p["b"] * np.sin(p["d"] * r))
    if name == "oscillator":
        return oscillator(r, **p)
    x = {"matern12": 1, "matern32": 3, "matern52": 5}[name] ** 0.5 * r / p["length_scale"]
    poly = {"matern12": 1, "matern32": 1 + x, "matern52": 1 + x + x * x / 3}[name]
    return p["variance"] * poly * np.exp(-x)


CASES = [
    *((f"matern{k}2", {"variance": 2.0, "length_scale": 1.7}) for k in (1, 3, 5)),
    ("celerite", {"a": 2.0, "b": 0.1, "c": 0.3, "d": 2.0}),
    ("celerite", {"a": 2.0, "b": 0.0, "c": 0.3, "d": 0.0}),
    *(
        ("oscillator", {"variance": 2.0, "frequency": 1.3, "quality": q})
        for q in (0.1, 0.4, 0.49999, 0.5, 0.50001, 0.59, 0.7, 20.0)
    ),
]


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_covariances(name, parameters, rng):
    t = np.sort(rng.uniform(0, 20, 60))
    t[30] = t[31]  # equal times
    t[40:42] = t[40], t[40] * (1 + 2 * UNIT)
    r = np.abs(t[:, None] - t)
    want = kernel_of(name, r, parameters)
    K = pl.quasiseparable(name, t, **parameters)
    np.testing.assert_allclose(K.toarray(), want, atol=1e-12)
    A, a = K + 0.01 * pl.Identity(60), want + 0.01 * np.eye(60)
    y = rng.standard_normal(60)
    quad, log = pl.inv_quad_logdet(A, y)
    np.testing.assert_allclose(quad, y @ np.linalg.solve(a, y), rtol=1e-11)
    np.testing.assert_allclose(log, np.linalg.slogdet(a)[1], rtol=1e-11, atol=1e-11)
    assert backward_error(a, pl.solve(A, y[:, None]), y[:, None]) < 1e-14
    low = pl.cholesky(A)
    np.testing.assert_allclose(low.toarray(), np.linalg.cholesky(a), atol=1e-12)
    np.testing.assert_allclose(
        pl.sample(A, rng=3), low @ np.random.default_rng(3).standard_normal(60)
    )
    single = pl.quasiseparable(name, t.astype(np.float32), **parameters)
    assert single.dtype == np.float32


def test_batches_of_times(rng):
    t = np.sort(rng.uniform(0, 9, (3, 12)), axis=-1)
    K = pl.quasiseparable("matern52", t) + pl.quasiseparable("matern12", t[0])
    want = [
        pl.quasiseparable("matern52", u).toarray() + pl.quasiseparable("matern12", t[0]).toarray()
        for u in t
    ]
    close(K.toarray(), np.array(want))
    close(
        pl.cholesky(K + pl.Identity(12)).toarray(), np.linalg.cholesky(np.array(want) + np.eye(12))
    )


def test_long_series_do_not_overflow(rng):
    t = np.cumsum(rng.uniform(0, 1e4, 300))
    K = pl.quasiseparable("matern32", t, length_scale=1e-2) + pl.Identity(300)
    b = rng.standard_normal(300)
    close(pl.solve(K, b), b / 2)


def test_constructor_refuses():
    with pytest.raises(ValueError, match=r"sorted, but t\[2\] = 1.0 after t\[1\] = 2.0"):
        pl.quasiseparable("matern12", [0.0, 2.0, 1.0])
    for t in ([0.0, np.nan], [np.nan], [0.0, np.inf]):
        with pytest.raises(ValueError, match="sorted|finite"):
            pl.quasiseparable("matern12", t)
    with pytest.raises(ValueError, match="expected one of"):
        pl.quasiseparable("rbf", [0.0])
    with pytest.raises(TypeError, match="'period'"):
        pl.quasiseparable("matern12", [0.0], period=1.0)
    for bad in ({"length_scale": 0.0}, {"length_scale": np.nan}, {"variance": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="number"):
            pl.quasiseparable("matern12", [0.0], **bad)
    with pytest.raises(ValueError, match="c >= 0"):
        pl.quasiseparable("celerite", [0.0], c=-1.0)
    with pytest.raises(ValueError, match="real"):
        pl.quasiseparable("matern12", 1j * np.ones(2))
    assert pl.quasiseparable("matern12", []).shape == (0, 0)


# -- accuracy --


def exact(t, length_scale, noise):
    """The Matern 3/2 matrix in mpmath."""
    n = len(t)
    a = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            x = mpmath.sqrt(3) * abs(mpmath.mpf(t[i]) - mpmath.mpf(t[j])) / mpmath.mpf(length_scale)
            a[i, j] = (1 + x) * mpmath.exp(-x) + (mpmath.mpf(noise) if i == j else 0)
    return a


@pytest.mark.parametrize("noise", [1e-2, 1e-8, 1e-12])
def test_ill_conditioned(noise, rng):
    """Tiny noise, near-equal times: as accurate as a dense Cholesky, against mpmath."""
    t = np.sort(np.concatenate([rng.uniform(0, 1, 14), 0.5 + 1e-9 * np.arange(6)]))
    K = pl.quasiseparable("matern32", t, length_scale=0.3) + noise * pl.Identity(20)
    y = rng.standard_normal((20, 1))
    a = K.toarray()
    assert backward_error(a, pl.solve(K, y), y) <= 1e-14
    with mpmath.workdps(60):
        want = exact(t, 0.3, noise)
        log = mpmath.log(mpmath.det(want))
        inverse = want**-1
        allowed = 20 * UNIT * float(mpmath.mnorm(want, "f") * mpmath.mnorm(inverse, "f"))
        assert abs(pl.logdet(K) - log) <= allowed
        right = mpmath.matrix(y.tolist())
        quad = (right.T * inverse * right)[0]
        got = pl.inv_quad_logdet(K, y[:, 0])
        assert abs(got.inv_quad - quad) <= allowed * quad
        assert abs(got.logdet - log) <= allowed
        diagonal = [float(inverse[i, i]) for i in range(20)]
    np.testing.assert_allclose(pl.inv(K).diagonal(), diagonal, rtol=allowed)


def test_large_without_dense_forms(rng):
    n = 50_000
    t = np.cumsum(rng.exponential(size=n))
    K = pl.quasiseparable("matern32", t, length_scale=30.0) + 0.1 * pl.Identity(n)
    b = rng.standard_normal(n)
    x = pl.solve(K, b)
    assert np.linalg.norm(b - K @ x) <= 1e-13 * np.linalg.norm(b)
    quad, log = pl.inv_quad_logdet(K, b)
    np.testing.assert_allclose([quad, log], [b @ x, pl.logdet(K)], rtol=1e-11)
    low = pl.cholesky(K)
    np.testing.assert_allclose(low @ (low.H @ b), K @ b, rtol=0, atol=1e-10)
    diagonal = pl.inv(K).diagonal()
    unit = np.zeros(n)
    unit[n // 2] = 1
    np.testing.assert_allclose(diagonal[n // 2], pl.solve(K, unit)[n // 2], rtol=1e-12)


def test_likelihood_falls_back_to_checked_solves(rng):
    """Pivots that have lost more than six digits are found by solves that are checked."""
    t = np.linspace(0, 1e-3, 20)
    K = pl.quasiseparable("matern32", t) + 1e-9 * pl.Identity(20)
    y = rng.standard_normal(20)
    quad, log = pl.inv_quad_logdet(K, y)
    np.testing.assert_allclose(quad, y @ pl.solve(K, y), rtol=1e-13)
    assert log == pl.logdet(K)
    many = rng.standard_normal((20, 3))
    close(pl.inv_quad_logdet(K, many).inv_quad, (many * pl.solve(K, many)).sum(0))


@pytest.mark.parametrize("scaled", ["the sum", "the noise", "the covariance"])
def test_wider_multiples_of_single_precision(scaled, rng):
    """The digits are those of the multiple's dtype, in factors too, not those of its operand."""
    n, J, c = 9, 2, np.float64(1.5)
    d, p, q, a = (rng.random(s).astype("f4") for s in ((n,), (n, J), (n, J), (n, J)))
    A, noise = pl.QuasiSeparable(d + 20, p, q, a), pl.Identity(n, dtype="f4") * np.float32(0.1)
    whole = {
        "the sum": lambda: c * (A + noise),
        "the noise": lambda: A + c * noise,
        "the covariance": lambda: c * A + noise,
    }[scaled]()
    one, two = (c if scaled in ("the sum", x) else 1 for x in ("the covariance", "the noise"))
    wide = pl.QuasiSeparable(*(g.astype(float) for g in (d + 20, p, q, a))).toarray()
    want = one * wide + two * float(np.float32(0.1)) * np.eye(n)
    low = pl.cholesky(whole).toarray()
    np.testing.assert_allclose(low @ low.T, want, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(pl.logdet(whole), np.linalg.slogdet(want)[1], rtol=1e-14)
    b = np.ones(n)
    found = pl.inv_quad_logdet(whole, b)[0]
    np.testing.assert_allclose(found, b @ np.linalg.solve(want, b), rtol=1e-13)
