"""Derivatives of expm, logm and sqrtm of matrices with structure: in that structure, and right
beside what is like it and has another derivative."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._gradients import matrix_functions

N = 12
rng = np.random.default_rng(11)
SYM = rng.standard_normal((3, 3))
SYM = SYM @ SYM.T + np.eye(3)
X = rng.uniform(1, 2, N)
Y = rng.standard_normal(N)
CIRC = np.r_[4.0, rng.uniform(-0.3, 0.3, N - 1)]
TOEP = np.r_[5.0, rng.uniform(-0.3, 0.3, N - 1)]
BLOCKS = 3 * np.eye(3) + 0.3 * rng.standard_normal((4, 3, 3))
LAPLACIAN = pl.Laplacian((3, 4))
LEVELS = pl.Circulant(0.3 * CIRC.reshape(4, 3), levels=2)
FIXED = pl.Toeplitz(TOEP, TOEP * 0.7)
TURN = np.exp(0.3j)

# name: (parameters, the matrix, does the derivative keep to the structure)
MODELS = {
    "Diag": ([X], lambda d: pl.Diag(d), True),
    "Diag of a function": ([X], lambda d: pl.Diag(np.exp(0.1 * d)), True),
    "sum of Diags": ([X, np.array(0.3)], lambda d, c: pl.Diag(d) + c * pl.Identity(N) + pl.Diag(X)),
    "multiple of a Diag": ([X, np.array(1.3)], lambda d, c: c * pl.Diag(d) / (1 + c)),
    "Circulant": ([CIRC], lambda c: pl.Circulant(c)),
    "seen Circulant": (
        [CIRC, np.array(0.7)],
        lambda c, s: (s * pl.Circulant(c)).T + pl.Identity(N),
    ),
    "two Circulants": ([CIRC], lambda c: pl.Circulant(c) + 0.5 * pl.Circulant(c).T),
    "complex Circulant": ([CIRC + 0.2j], lambda c: pl.Circulant(c) + TURN * pl.Identity(N)),
    "complex Diag": ([X + 0.5j], lambda d: TURN * pl.Diag(d).H + pl.Diag(d)),
    "KronSum": ([SYM, X[:4]], lambda A, d: pl.KronSum(A, pl.Diag(d))),
    "KronSum of three": (
        [SYM, np.array(0.2)],
        lambda A, c: -c * pl.KronSum(A, pl.Diag(X[:2]), X[:4].reshape(2, 2)) + c * pl.Identity(N),
    ),
    "seen KronSum": ([SYM], lambda A: pl.KronSum(A, BLOCKS[0, :2, :2]).T / 3.0),
    "BlockDiag": ([BLOCKS], lambda B: pl.BlockDiag(*(B[i] for i in range(4)))),
    "seen BlockDiag": (
        [BLOCKS, np.array(0.4)],
        lambda B, c: c * (pl.BlockDiag(B[0], B[1], BLOCKS[2]).T + c * pl.Identity(9)),
    ),
    "multiple of what is given": ([np.array(0.8)], lambda c: c * FIXED),
    "multiple and shift": (
        [np.array(0.8), np.array(0.6)],
        lambda c, s: c * FIXED + s * pl.Identity(N),
    ),
    "Laplacian and shift": (
        [np.array(0.2), np.array(0.6)],
        lambda c, s: s * pl.Identity(12) - c * LAPLACIAN,
    ),
    # What does not commute: the numbers of both, or two matrices.
    "multiple of what moves": (
        [np.array(0.8), TOEP],
        lambda c, t: c * pl.Toeplitz(t) + pl.Identity(N),
    ),
    "Diag and Circulant": ([X, CIRC], lambda d, c: pl.Diag(d) + pl.Circulant(c)),
    "two matrices": ([np.array(0.3), np.array(0.5)], lambda a, b: a * FIXED + b * pl.Diag(X)),
    "off the main diagonal": (
        [X[:-1], np.array(0.4)],
        lambda d, c: pl.Diag(d, k=1, shape=(N, N)) + (1 + c) * pl.Identity(N),
    ),
    "given off the main diagonal": (
        [X, np.array(0.4)],
        lambda d, c: pl.Diag(d) + c * pl.lazy(pl.Diag(X[:-1], k=-1)),
    ),
    "Circulants of other levels": (
        [CIRC, np.array(0.4)],
        lambda c, s: (
            0.5 * pl.Circulant(c) + s * pl.Circulant(np.reshape(0.3 * c, (3, 4)), levels=2).T
        ),
    ),
    "given Circulants of other levels": (
        [CIRC, np.array(0.4)],
        lambda c, s: pl.Circulant(c) - s * pl.lazy(2 * LEVELS.T),
    ),
    "a matrix and its transpose": ([np.array(0.3)], lambda a: FIXED + a * FIXED.T),
}
STRUCTURED = [
    "Diag", "Diag of a function", "sum of Diags", "multiple of a Diag", "Circulant",
    "seen Circulant", "two Circulants", "complex Circulant", "complex Diag", "Laplacian and shift",
    "multiple of what is given", "multiple and shift",
]  # fmt: skip
USES = {
    "trace": lambda F, v: np.real(pl.trace(F)),
    "form": lambda F, v: np.real(v @ (F @ v)),
    "elements": lambda F, v: np.sum(np.sin(0.01 * np.real(pl.lazy(F)[2:5]))),
}


def draw(p):
    v = rng.standard_normal(p.shape)
    return v + 1j * rng.standard_normal(p.shape) if p.dtype.kind == "c" else v


def along(f, params, dirs, h=2e-3):
    """The derivative, by differences of the sixth order."""
    total = 0.0
    for c, k in ((3 / 4, 1), (-3 / 20, 2), (1 / 60, 3)):
        up, down = ([p + s * k * h * d for p, d in zip(params, dirs)] for s in (1, -1))
        total += c * (float(f(*up)) - float(f(*down)))
    return total / h


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm"])
@pytest.mark.parametrize("model", MODELS)
def test_gradients(model, name, use):
    params, matrix = MODELS[model][:2]
    function, v = getattr(pl, name), np.cos(np.arange(12.0))
    if name != "expm" and model in ("KronSum of three",):
        pytest.skip("its eigenvalues are not positive")

    def f(*p):
        F = matrix(*p)
        return USES[use](function(F), v[: F.shape[-1]])

    where = tuple(range(len(params)))
    grads = pl.grad(f, argnums=where)(*params)
    dirs = [draw(p) for p in params]
    due = along(f, params, dirs)
    found = sum(np.sum(np.real(np.conj(g) * d)) for g, d in zip(grads, dirs))
    assert abs(found - due) < 1e-6 * max(1, abs(due)), (found, due)
    again = pl.hvp(f, where)(*params, tuple(dirs))
    h = 1e-4
    up = pl.grad(f, argnums=where)(*(p + h * d for p, d in zip(params, dirs)))
    down = pl.grad(f, argnums=where)(*(p - h * d for p, d in zip(params, dirs)))
    for a, b, c in zip(again, up, down):
        np.testing.assert_allclose(a, (b - c) / (2 * h), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", STRUCTURED)
@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm"])
def test_no_dense_derivative_is_made(model, name, monkeypatch):
    def refused(*args, **kwargs):
        raise AssertionError("a derivative was made as a matrix")

    monkeypatch.setattr(matrix_functions, "derivative", refused)
    params, matrix = MODELS[model][:2]

    def f(*p):
        F = getattr(pl, name)(matrix(*p))
        return np.real(pl.trace(F)) + np.real(Y @ (F @ Y))

    for g in pl.grad(f, argnums=tuple(range(len(params))))(*params):
        assert np.isfinite(g).all()


def test_values_of_parts_are_those_of_the_whole():
    A, d = pl.lazy(SYM), pl.lazy(X[:4])
    for op, dense in (
        (pl.KronSum(A, pl.Diag(d)), pl.KronSum(SYM, pl.Diag(X[:4]))),
        (pl.BlockDiag(A, pl.Diag(d)), pl.BlockDiag(SYM, pl.Diag(X[:4]))),
    ):
        for name in ("expm", "sqrtm", "logm"):
            f = getattr(pl, name)
            np.testing.assert_allclose(
                np.asarray(f(op)), f(dense).toarray(), atol=1e-12, rtol=1e-12
            )
    many = pl.BlockDiag(*(pl.lazy(SYM) for _ in range(70)))
    np.testing.assert_allclose(np.asarray(pl.sqrtm(many))[:3, :3], pl.sqrtm(SYM).toarray())
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.expm(pl.lazy(np.ones((2, 3))))


SIGNS = np.where(np.arange(N) % 3, 1.0, -1.0)


@pytest.mark.parametrize("name", ["logm", "sqrtm"])
@pytest.mark.parametrize(
    "matrix",
    [
        lambda p: pl.Diag((p * SIGNS).astype(complex)),
        lambda p: pl.Diag(p * SIGNS + 0j).H,
        lambda p: (-1 + 0j) * pl.Diag(p * SIGNS),
        lambda p: p[0] * pl.lazy(pl.Diag(SIGNS + 0j)),
        lambda p: pl.Circulant(np.concatenate([p[:7], p[5:0:-1]]) + 0j),
    ],
)
def test_negative_numbers(matrix, name):
    """The conjugate of their root is not the root of their conjugate."""

    def f(p):
        return np.sum(np.cos(Y) * np.imag(getattr(pl, name)(matrix(p)) @ Y))

    d = np.cos(np.arange(N))
    due = along(f, [X], [d], 1e-3)
    assert abs(pl.grad(f)(X) @ d - due) < 1e-6 * max(1, abs(due))
    h = 1e-5
    second = (pl.grad(f)(X + h * d) - pl.grad(f)(X - h * d)) / (2 * h)
    np.testing.assert_allclose(pl.hvp(f)(X, d), second, rtol=1e-4, atol=1e-4)


SINGLE = SYM.astype(np.float32)
TIMES = np.float64(0.7)


@pytest.mark.parametrize(
    "kind, args, of",
    [
        (pl.BlockDiag, (SINGLE, BLOCKS[0]), lambda A: A),
        (pl.BlockDiag, (np.diag([1, 2, 3]), SINGLE), lambda A: 2 * A),
        (pl.BlockDiag, (SINGLE, SINGLE), lambda A: A + pl.lazy(pl.Identity(6, dtype=float))),
        (pl.KronSum, (BLOCKS[0], SINGLE), lambda A: A),
        (pl.KronSum, (SINGLE, SINGLE), lambda A: A + pl.lazy(TIMES) * pl.Identity(9)),
        (pl.BlockDiag, (np.diag([-1.0, 2.0]), SYM * TURN), lambda A: A),
        (pl.KronSum, (BLOCKS[0], SYM * TURN), lambda A: A),
    ],
)
def test_parts_are_as_exact_as_the_whole(kind, args, of):
    """And logarithms and roots of real blocks beside complex ones are complex."""
    whole = of(kind(*map(pl.lazy, args)))
    for name in ("expm", "logm", "sqrtm"):
        if kind is pl.KronSum and name != "expm":
            continue
        found = getattr(pl, name)(whole)
        due = getattr(pl, name)(pl.Dense(np.asarray(whole))).toarray()
        assert found.dtype == due.dtype
        np.testing.assert_allclose(np.asarray(found), due, rtol=1e-11, atol=1e-11)


def test_parts_in_a_list():
    for kind in (pl.KronSum, pl.BlockDiag):
        found = pl.expm(kind([pl.lazy(SYM), BLOCKS[0]]))
        np.testing.assert_allclose(np.asarray(found), pl.expm(kind([SYM, BLOCKS[0]])).toarray())
        g = pl.grad(lambda A, of=kind: pl.trace(pl.expm(of([A, BLOCKS[0]]))))(SYM)
        due = pl.grad(lambda A, of=kind: pl.trace(pl.expm(of(A, BLOCKS[0]))))(SYM)
        np.testing.assert_allclose(g, due)


def test_singular_matrices_say_so():
    d = X.copy()
    d[3] = 0.0
    for name in ("sqrtm", "logm"):
        with pytest.raises(np.linalg.LinAlgError):
            pl.grad(lambda p: pl.trace(getattr(pl, name)(pl.Diag(p))))(d)


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_hermitian_matrices_on_the_cut_say_so(name):
    """Of a complex Hermitian matrix with a negative eigenvalue rounding chose the branch."""
    B = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    for sign in (1, -1):
        M = B + B.conj().T + sign * 20 * np.eye(4)

        def f(c, M=M):
            return np.real(pl.trace(getattr(pl, name)(pl.lazy(M) + c * pl.lazy(B @ B.conj().T))))

        for differentiate in (pl.grad(f), lambda c, f=f: pl.hvp(f)(c, 1.0)):
            if sign > 0:
                assert np.isfinite(differentiate(0.1))
            else:
                with pytest.raises(np.linalg.LinAlgError, match="branch cut"):
                    differentiate(0.1)


@pytest.mark.parametrize("zero", [0, 0.0, 0j])
def test_over_zero_is_as_numpy_has_it(zero):
    A = pl.BlockDiag(pl.lazy(np.eye(2)), np.ones((1, 1)))
    with np.errstate(all="ignore"):
        assert np.isnan(np.asarray(pl.expm(A / zero))).any()
    assert pl.expm(pl.lazy(pl.Diag(X)) / zero).shape == (N, N)
