"""Kernel: against dense NumPy; callables; structure by points; approximations by name."""

import copy
import pickle

import numpy as np
import pytest

import pylinop as pl

OWN = {
    "rational_quadratic": {"alpha": 0.7},
    "periodic": {"period": 1.3},
    "polynomial": {"degree": 4, "offset": 0.5},
}
NAMES = [
    "rbf",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "periodic",
    "polynomial",
    "linear",
]


def dense(name, x, y=None, variance=1, length_scale=1, alpha=1, period=1, degree=3, offset=1):
    """The matrix as the docstring has it, in long double."""
    x = np.asarray(x, np.longdouble)
    y = x if y is None else np.asarray(y, np.longdouble)
    D = x[..., :, None, :] - y[..., None, :, :]
    length = np.asarray(length_scale, np.longdouble)
    length = length[..., None, None, :] if length.ndim else length
    r2 = np.sum((D / length) ** 2, axis=-1)
    r = np.sqrt(r2)
    dot = np.sum(x[..., :, None, :] * y[..., None, :, :] / length**2, axis=-1)
    a, b = np.sqrt(np.longdouble(3)) * r, np.sqrt(np.longdouble(5)) * r
    turn = np.arccos(np.longdouble(-1)) * D / period
    k = {
        "rbf": lambda: np.exp(-r2 / 2),
        "matern12": lambda: np.exp(-r),
        "matern32": lambda: (1 + a) * np.exp(-a),
        "matern52": lambda: (1 + b + b**2 / 3) * np.exp(-b),
        "rational_quadratic": lambda: (1 + r2 / (2 * alpha)) ** (-np.longdouble(alpha)),
        "periodic": lambda: np.exp(-2 * np.sum((np.sin(turn) / length) ** 2, axis=-1)),
        "polynomial": lambda: (dot + offset) ** degree,
        "linear": lambda: dot,
    }[name]()
    return k * np.asarray(variance)[..., None, None]


def close(got, want, size, n=1, dtype=None):
    """Within 30 n eps of the size."""
    eps = np.finfo(dtype or got.dtype).eps
    assert np.shape(got) == np.shape(want)
    assert np.all(np.abs(got - want) <= 30 * n * eps * np.max(size, initial=0) + np.spacing(0.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_every_function(rng, name, dtype):
    for d in (1, 2, 3, 4, 7, 10, 100):
        for twice in (False, True):
            x = rng.standard_normal((43, d)).astype(dtype)
            y = None if twice else rng.standard_normal((31, d)).astype(dtype)
            for length in (0.9 * d**0.5, ((rng.random(d) + 0.5) * d**0.5).astype(dtype)):
                said = {"variance": 1.7, "length_scale": length, **OWN.get(name, {})}
                K = pl.Kernel(name, x, y, **said)
                R = dense(name, x, y, **said)
                assert K.dtype == dtype and K.shape == R.shape
                close(K.toarray(), R, abs(R))
                v = rng.standard_normal(K.shape[1]).astype(dtype)
                close(K @ v, R @ v, abs(R) @ abs(v), dtype=dtype)
                u = rng.standard_normal((K.shape[0], 3)).astype(dtype)
                close(K.T @ u, R.T @ u, abs(R).T @ abs(u), dtype=dtype)
                close(K.diagonal(-2), np.diagonal(R, -2), abs(R))
                close(K[5, 7], R[5, 7], abs(R), dtype=dtype)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 300), (300, 1), (257, 65)])
def test_sizes(rng, shape):
    x, y = (rng.standard_normal((n, 2)) for n in shape)
    K, R = pl.Kernel("matern32", x, y), dense("matern32", x, y)
    for v in (rng.standard_normal(shape[1]), rng.standard_normal((shape[1], 2))):
        close(K @ v, R @ v, abs(R) @ abs(v) if R.size else [0.0])
    close(K.toarray(), R, abs(R))
    close(K.diagonal(), np.diagonal(R), abs(R))
    none = pl.Kernel("rbf", np.zeros((4, 0)))
    assert (none.toarray() == 1).all()


def test_columns_and_dtypes(rng):
    x = rng.standard_normal((300, 3))
    K, R = pl.Kernel("rbf", x), dense("rbf", x)
    for k in (2, 5, 300):  # more than a piece of columns
        V = rng.standard_normal((300, k))
        close(K @ V, R @ V, abs(R) @ abs(V))
        close(K @ np.asfortranarray(V), R @ V, abs(R) @ abs(V))
        close(K @ V[:, ::-1], R @ V[:, ::-1], abs(R) @ abs(V))
    for k in ((), (4,)):
        z = rng.standard_normal((300, *k)) + 1j * rng.standard_normal((300, *k))
        got = K @ z
        assert got.dtype == np.complex128
        close(got, (R @ z).astype(complex), abs(R) @ abs(z), dtype=float)
    half = pl.Kernel("rbf", x.astype(np.float32), length_scale=2.0)
    assert half.dtype == np.float32 and (half @ np.ones(300, np.float32)).dtype == np.float32
    assert (half @ np.ones(300)).dtype == np.float64  # the points cast, not the entries
    want = dense("rbf", x.astype(np.float32), length_scale=2.0)
    close(half @ np.ones(300), want @ np.ones(300), want @ np.ones(300))
    whole = pl.Kernel("linear", np.arange(6).reshape(3, 2))
    assert whole.dtype == np.float64
    assert np.array_equal(whole.toarray(), [[1, 3, 5], [3, 13, 23], [5, 23, 41]])
    assert np.array_equal(
        pl.Kernel("rbf", x[::2, ::-1]).toarray(), pl.Kernel("rbf", x[::2, ::-1].copy()).toarray()
    )


def test_batches(rng):
    x, y = rng.standard_normal((4, 20, 3)), rng.standard_normal((15, 3))
    length, variance = rng.random((4, 3)) + 0.5, np.arange(4.0) + 1
    K = pl.Kernel("rbf", x, y, length_scale=length, variance=variance)
    R = dense("rbf", x, y, length_scale=length, variance=variance)
    v = rng.standard_normal((4, 15, 2))
    assert K.shape == (4, 20, 15)
    close(K.toarray(), R, abs(R))
    close(K @ v, R @ v, abs(R) @ abs(v))
    close(K[2].toarray(), R[2], abs(R))
    assert type(K[2]) is pl.Kernel
    one = pl.Kernel("rational_quadratic", y, alpha=np.array([0.5, 2.0]))
    R = np.stack([dense("rational_quadratic", y, alpha=a) for a in (0.5, 2.0)])
    close(one @ v[0], R @ v[0], abs(R) @ abs(v[0]))


def test_closes(rng):
    x, y = rng.standard_normal((30, 2)), rng.standard_normal((25, 2))
    K, S = pl.Kernel("matern52", x, y), pl.Kernel("matern52", x)
    A, B = K.toarray(), S.toarray()
    at = np.array([3, -1, 7])
    for part, want in (
        (K.T, A.T),
        (K.H, A.T),
        (K[4:20, :], A[4:20]),
        (K[:, ::3], A[:, ::3]),
        (K[4:20:2, 5:9], A[4:20:2, 5:9]),
        (K[at, :], A[at]),
        (S[5:10, 5:10], B[5:10, 5:10]),
        (S[5:10, :].T, B[5:10].T),
    ):
        assert type(part) is pl.Kernel
        close(part.toarray(), want, abs(want))
        v = rng.standard_normal(part.shape[1])
        close(part @ v, want @ v, abs(want) @ abs(v))
    close(K[3], A[3], abs(A))
    close(K[:, 3], A[:, 3], abs(A))
    assert np.isclose(S.trace(), 30)
    text = str(S[5:10, 5:10].explain("solve", np.ones(5)))
    assert "potrf" in text  # seen to be symmetric


def test_products_of_kernels_are_one(rng):
    x, y, t = (
        rng.standard_normal((40, 2)),
        rng.standard_normal((30, 2)),
        rng.standard_normal((40, 1)),
    )
    u = rng.standard_normal((30, 1))
    parts = [
        pl.Kernel("rbf", x, y, length_scale=[1.0, 2.0], variance=2.0),
        pl.Kernel("periodic", t, u, period=0.7),
        pl.Kernel("polynomial", x, y, degree=2),
        pl.Kernel("matern12", x.copy(), y.copy()),
        pl.Kernel("linear", t, u, length_scale=2.0),
        pl.Kernel("rbf", t, u),
    ]
    v = rng.standard_normal(30)
    P, R = parts[0], parts[0].toarray()
    for i, K in enumerate(parts[1:], 2):
        P, R = pl.multiply(P, K), R * K.toarray()
        close(P @ v, R @ v, abs(R) @ abs(v), n=4)
        close(P.toarray(), R, abs(R), n=4)
        close(P.T @ (R @ v), R.T @ (R @ v), abs(R).T @ abs(R @ v), n=4)
        text = str(pl.explain(pl.lazy(P) @ v))
        assert ("kernel-dense" in text) == (i > 5)  # five factors at most are one
    tree = pl.multiply(pl.multiply(parts[0], parts[1]), pl.multiply(parts[2], parts[3]))
    assert "kernel-dense" not in str(pl.explain(pl.lazy(tree) @ v))
    close(tree.diagonal(), np.diagonal(tree.toarray()), abs(tree.toarray()))
    total = parts[0] + 2 * parts[3]
    R = parts[0].toarray() + 2 * parts[3].toarray()
    close(total @ v, R @ v, abs(R) @ abs(v))


def test_solves_and_determinants(rng):
    x = rng.standard_normal((60, 2))
    b = rng.standard_normal(60)
    K = pl.Kernel("matern32", x, length_scale=0.5) + 0.1 * pl.Identity(60)
    A = K.toarray()
    assert np.allclose(pl.solve(K, b), np.linalg.solve(A, b))
    assert np.isclose(pl.logdet(K), np.linalg.slogdet(A)[1])
    assert "potrf" in str(K.explain("solve", b))


def test_freshness(rng):
    x, length, variance = rng.standard_normal((50, 2)), np.array([1.0, 2.0]), np.array(1.5)
    scale = np.array(0.8)
    K = pl.Kernel("rbf", x, length_scale=length, variance=variance)
    L = pl.Kernel("rbf", x, length_scale=scale)
    v = rng.standard_normal(50)
    before = K @ v
    assert np.array_equal(before, K @ v)
    for change in (
        lambda: x.__setitem__(0, 3.0),
        lambda: length.__setitem__(1, 0.5),
        lambda: variance.__setitem__((), 4.0),
        lambda: scale.__setitem__((), 0.3),
    ):
        change()
        now = pl.Kernel("rbf", x.copy(), length_scale=length.copy(), variance=variance.copy())
        assert np.array_equal(K @ v, now @ v)
        assert np.array_equal(L @ v, pl.Kernel("rbf", x, length_scale=float(scale)) @ v)
    kept = pl.Kernel("rbf", x, copy=True)
    want = kept @ v
    x[:] = 0
    assert np.array_equal(kept @ v, want)


def test_pickle_and_copy(rng):
    x = rng.standard_normal((20, 2))
    K = pl.Kernel("rational_quadratic", x, alpha=0.5, length_scale=[1.0, 2.0])
    P = pl.multiply(K, pl.Kernel("linear", x))
    for A in (K, K[2:9, 4:6], K.T, P):
        for B in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A), copy.copy(A)):
            assert np.array_equal(A.toarray(), B.toarray())
    assert "potrf" in str(pickle.loads(pickle.dumps(K)).explain("solve", np.ones(20)))


def test_memory_does_not_grow(rng):
    n = 30_000
    x, v = rng.random((n, 2)).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    K = pl.Kernel("rbf", x, length_scale=0.1)
    with pl.config(memory_limit=64 << 20):
        y = K @ v
        with pytest.raises(pl.MaterializationError):
            K.toarray()
    rows = np.array([0, 12_345, n - 1])
    R = dense("rbf", x[rows], x, length_scale=0.1)
    close(y[rows], R @ v, abs(R) @ abs(v), dtype=np.float32)


def test_entries_are_accurate(rng):
    """Some units in the last place, also for points far from the origin."""
    for shift in (0.0, 1e6):
        x = rng.standard_normal((200, 2)) + shift
        for name in NAMES[:5]:
            K, R = (
                pl.Kernel(name, x, **OWN.get(name, {})).toarray(),
                dense(name, x, **OWN.get(name, {})),
            )
            error = np.abs(K - R) / (R * (1 + np.abs(np.log(R))))
            assert error.max() < 4 * np.finfo(float).eps, name
    far = 1000 * np.arange(5.0)[:, None] + 0.25 * rng.random((5, 1))
    R = dense("periodic", far, period=7.0)
    assert np.abs(pl.Kernel("periodic", far, period=7.0).toarray() - R).max() < 1e-11
    tiny = np.array([[0.0], [1e-160], [3e-160]])
    close(
        pl.Kernel("matern12", tiny, length_scale=1e-160).toarray(),
        dense("matern12", tiny, length_scale=np.longdouble(1e-160)),
        [1.0],
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ends_of_the_range(dtype):
    x = np.array([[0.0], [1.0], [30.0], [60.0], [1e30], [np.inf], [np.nan]], dtype)
    for name in ("rbf", "matern12", "matern32", "matern52"):
        K = pl.Kernel(name, x, length_scale=0.5).toarray()
        assert K[0, 0] == 1 and K[0, 4] == 0 and K[0, 5] == 0
        assert np.isnan(K[6]).all() and np.isnan(K[:, 6]).all() and np.isnan(K[5, 5])
        small = K[np.isfinite(K) & (K > 0)]
        assert (small >= np.finfo(dtype).tiny).all()  # below that 0, no denormals
        y = pl.Kernel(name, x, length_scale=0.5) @ np.ones(7, dtype)
        assert np.isnan(y).all()
        assert np.isfinite(pl.Kernel(name, x[:5]) @ np.ones(5, dtype)).all()
    assert np.isnan(pl.Kernel("rbf", x[:2], length_scale=np.nan).toarray()).all()
    q = pl.Kernel("rational_quadratic", x, alpha=0.5).toarray()
    assert q[0, 5] == 0 and np.isnan(q[6]).all()


def test_errors(rng):
    x = rng.standard_normal((5, 2))
    for kwargs, words in (
        ({"alpha": 1.0}, "alpha"),
        ({"period": 1.0}, "period"),
        ({"degree": 2}, "degree"),
        ({"length_scale": [1.0, 2.0, 3.0]}, "expected a number or 2"),
    ):
        with pytest.raises(ValueError, match=words):
            pl.Kernel("rbf", x, **kwargs)
    with pytest.raises(ValueError, match="one of: rbf"):
        pl.Kernel("gauss", x)
    with pytest.raises(ValueError, match="coordinates"):
        pl.Kernel("rbf", x, x[:, :1])
    with pytest.raises(ValueError, match="2 dimensions"):
        pl.Kernel("rbf", x[0])
    with pytest.raises(ValueError, match="0 to 255"):
        pl.Kernel("polynomial", x, degree=256)
    with pytest.raises(TypeError, match="real"):
        pl.Kernel("rbf", x * 1j)
    with pytest.raises(TypeError, match="float32, float64"):
        pl.Kernel("rbf", x.astype(np.longdouble))
    with pytest.raises(TypeError, match="unexpected keyword"):
        pl.Kernel("rbf", x, scale=2)
    for name, value in (("length_scale", 0.0), ("length_scale", -1.0)):
        with pytest.raises(ValueError, match="positive"):
            pl.Kernel("rbf", x, **{name: value}) @ np.ones(5)
    with pytest.raises(ValueError, match="alpha"):
        pl.Kernel("rational_quadratic", x, alpha=-1.0).toarray()
    with pytest.raises(ValueError, match="period"):
        pl.Kernel("periodic", x, period=0.0).toarray()


# -- callables


def laplace(X, Y):
    return np.exp(-np.abs(X[:, None] - Y[None]).sum(-1))


def test_callable(rng):
    x, y = rng.standard_normal((300, 2)), rng.standard_normal((40, 2))
    K, R = pl.Kernel(laplace, x, y), laplace(x, y)
    assert type(K) is pl.CallableKernel and K.shape == (300, 40)
    v, u = rng.standard_normal(40), rng.standard_normal((300, 2))
    assert np.allclose(K @ v, R @ v) and np.allclose(K.T @ u, R.T @ u)
    assert np.allclose(K @ (v + 1j), R @ (v + 1j))
    V, U = rng.standard_normal((3, 40, 2)), rng.standard_normal((2, 300, 1)) + 1j
    assert np.allclose(K @ V, R @ V) and np.allclose(K.H @ U, R.T @ U)
    assert np.array_equal(K.toarray(), R)
    for k in (0, 3, -200):
        assert np.allclose(K.diagonal(k), np.diagonal(R, k))
    S = pl.Kernel(function=laplace, x=x)
    A = laplace(x, x) + np.eye(300)
    assert np.allclose((S + pl.Identity(300)) @ u, A @ u)
    assert np.allclose(pl.solve(S, u), np.linalg.solve(laplace(x, x), u))
    x[0] = 5.0
    assert np.allclose(K @ v, laplace(x, y) @ v)
    assert np.array_equal(pickle.loads(pickle.dumps(K)).toarray(), K.toarray())


def test_callable_blocks_are_bounded(rng):
    sizes = []

    def f(X, Y):
        sizes.append((len(X), len(Y)))
        return np.ones((len(X), len(Y)))

    K = pl.Kernel(f, rng.random((5000, 1)), rng.random((6000, 1)))
    assert np.array_equal(K @ np.ones(6000), np.full(5000, 6000.0))
    assert max(p * q for p, q in sizes) <= 1 << 20
    assert sum(p * q for p, q in sizes) == 5000 * 6000
    sizes.clear()
    assert K.diagonal().shape == (5000,) and sum(p * q for p, q in sizes) <= 5000 * 64
    with pl.config(memory_limit=1 << 20), pytest.raises(pl.MaterializationError):
        K.toarray()


def test_callable_errors(rng):
    x = rng.random((6, 2))
    with pytest.raises(ValueError, match=r"gave shape \(3,\)"):
        pl.Kernel(lambda X, Y: np.ones(3), x) @ np.ones(6)
    with pytest.raises(TypeError, match="complex128"):
        pl.Kernel(lambda X, Y: 1j * laplace(X, Y), x) @ np.ones(6)
    z = pl.Kernel(lambda X, Y: 1j * laplace(X, Y), x, dtype=complex)
    assert np.allclose(z.H @ np.ones(6), -1j * laplace(x, x) @ np.ones(6))
    with pytest.raises(TypeError, match="partial"):
        pl.Kernel(laplace, x, length_scale=2.0)
    with pytest.raises(ValueError, match="coordinates"):
        pl.Kernel(laplace, x, x[:, :1])
    with pytest.raises(ValueError, match=r"shape \(..., n, d\)"):
        pl.Kernel(laplace, x[0])
    with pytest.raises(ZeroDivisionError):
        pl.Kernel(lambda X, Y: 1 // 0, x) @ np.ones(6)
    with pytest.raises(TypeError, match="callable"):
        pl.CallableKernel("rbf", x)
    with pytest.raises(TypeError, match="masked"):
        pl.Kernel(laplace, np.ma.array(x))


# -- structure


def grid(*axes):
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


@pytest.mark.parametrize("name", NAMES)
def test_structure(rng, name):
    a, b, odd = np.linspace(-1, 2, 13), np.linspace(0, 1, 6), np.array([0.0, 0.1, 0.5, 2.0])
    stationary, factors = name in NAMES[:6], name in ("rbf", "periodic")
    for x, kind in (
        (a[:, None], pl.Toeplitz if stationary else pl.Kernel),
        (a[::-1, None], pl.Toeplitz if stationary else pl.Kernel),
        (odd[:, None], pl.Kernel),
        (grid(a, b), (pl.Kron if factors else pl.MultilevelToeplitz) if stationary else pl.Kernel),
        (grid(a, odd), pl.Kron if factors else pl.Kernel),
        (grid(b, b, b[:3]), pl.Kron if factors else pl.MultilevelToeplitz if stationary else None),
        (rng.permutation(grid(a, b)), pl.Kernel),
        (rng.random((9, 2)), pl.Kernel),
    ):
        scales = 0.3 + 0.1 * np.arange(x.shape[1])
        K = pl.Kernel(name, x, length_scale=scales, **OWN.get(name, {}))
        T = pl.kernel_structure(K)
        assert type(T) is (kind or pl.Kernel)
        R = K.toarray()
        close(T.toarray(), R, abs(R), n=4)
    K = pl.Kernel(name, grid(a, b), variance=2.0, **OWN.get(name, {}))
    close(pl.kernel_structure(K).toarray(), K.toarray(), abs(K.toarray()), n=4)


def test_structure_errors(rng):
    x = rng.random((6, 2))
    with pytest.raises(TypeError, match="as constructed"):
        pl.kernel_structure(pl.Kernel("rbf", x)[1:3, 1:3])
    with pytest.raises(TypeError, match="Kernel"):
        pl.kernel_structure(pl.Identity(3))
    with pytest.raises(ValueError, match="one set of points"):
        pl.kernel_structure(pl.Kernel("rbf", x, x + 1))


# -- approximations


def test_nystrom(rng):
    x = rng.random((200, 2))
    for K in (pl.Kernel("rbf", x, length_scale=0.7), pl.Kernel(laplace, x)):
        R = K.toarray()
        for k in (1, 40, 200):
            A, error = pl.nystrom(K, k, rng=3, return_error=True)
            assert type(A) is pl.LowRank and A.dtype == K.dtype
            D = R - A.toarray()
            assert abs(error - np.trace(D)) < 1e-10 * 200
            assert np.linalg.norm(D, 2) <= error + 1e-10
        assert np.linalg.norm(D) < 1e-6  # all columns
        B = pl.nystrom(K, 40, rng=np.random.default_rng(3))
        assert np.array_equal(B.toarray(), pl.nystrom(K, 40, rng=3).toarray())
    half = pl.nystrom(pl.Kernel("rbf", x.astype(np.float32)), 20, rng=0)
    assert half.dtype == np.float32


def test_nystrom_errors(rng):
    x = rng.random((9, 2))
    with pytest.raises(ValueError, match="1 to 9"):
        pl.nystrom(pl.Kernel("rbf", x), 10)
    with pytest.raises(ValueError, match="square"):
        pl.nystrom(pl.Kernel("rbf", x, x[:3]), 2)
    with pytest.raises(TypeError, match="takes a Kernel"):
        pl.nystrom(np.eye(3), 2)
    with pytest.raises(TypeError, match="integer"):
        pl.nystrom(pl.Kernel("rbf", x), 2.5)
    part = pl.Kernel("rbf", x)[2:8, 2:8]
    close(pl.nystrom(part, 6, rng=0).toarray(), part.toarray(), [1e6])
    for K in (
        pl.Kernel("rbf", x, x + 1),
        pl.Kernel("rbf", x)[:5, 4:],
        pl.Kernel(laplace, x, x[::-1].copy()),
    ):
        with pytest.raises(ValueError, match="symmetric"):
            pl.nystrom(K, 1, rng=0)
    with pytest.raises(pl.LinAlgError, match="semidefinite"):
        pl.nystrom(pl.Kernel("rbf", x, variance=-1.0), 5, rng=0)


@pytest.mark.parametrize("name", NAMES[:5])
def test_random_features(rng, name):
    x, y = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    said = {"variance": 1.5, "length_scale": [1.0, 2.0, 0.7], **OWN.get(name, {})}
    for points in ((x,), (x, y)):
        K = pl.Kernel(name, *points, **said)
        A = pl.random_features(K, 8_000, rng=1)
        D = A.toarray() - K.toarray()
        assert type(A) is pl.LowRank and A.shape == K.shape
        assert np.abs(D).max() < 5 * 1.5 * np.sqrt(2 / 8_000)  # five standard deviations
        assert np.array_equal(A.toarray(), pl.random_features(K, 8_000, rng=1).toarray())
        if len(points) == 1:
            assert np.allclose(A.diagonal(), 1.5)


def test_random_features_errors(rng):
    x = rng.random((9, 2))
    for k in (0, 7):
        with pytest.raises(ValueError, match="positive even"):
            pl.random_features(pl.Kernel("rbf", x), k)
    for name in ("periodic", "polynomial", "linear"):
        with pytest.raises(ValueError, match="spectral density"):
            pl.random_features(pl.Kernel(name, x), 10)
    with pytest.raises(ValueError, match="variance"):
        pl.random_features(pl.Kernel("rbf", x, variance=-1.0), 10)
    with pytest.raises(ValueError, match="positive"):
        pl.random_features(pl.Kernel("rbf", x, length_scale=-1.0), 10)
    with pytest.raises(TypeError, match="as constructed"):
        pl.random_features(pl.Kernel("rbf", x)[:3, :], 10)
