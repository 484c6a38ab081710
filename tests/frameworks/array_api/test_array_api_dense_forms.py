"""Nothing is made dense without a word: products that have a form of their own make nothing, all
other dense forms warn above the configured size and raise above the memory limit."""

import warnings

import numpy as np
import pytest
import scipy.sparse

xp = pytest.importorskip("array_api_strict")

import pylinop as pl
import pylinop.array_api as pa

SIZES = [7, 60, 70]  # on both sides of where FFTs begin


@pytest.fixture
def rng():
    return np.random.default_rng()


class Source:
    """The same numbers again, as arrays of a library."""

    def __init__(self, seed, put):
        self.put, self.standard_normal = put, np.random.default_rng(seed).standard_normal


def draw(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x
    return rng.put(x) if isinstance(rng, Source) else x


def toeplitz(m, rng, n, dtype):
    return m.Toeplitz(draw(rng, dtype, n), draw(rng, dtype, n + 3))


def hankel(m, rng, n, dtype):
    return m.Hankel(draw(rng, dtype, n), draw(rng, dtype, n + 5))


def circulant(m, rng, n, dtype):
    return m.Circulant(draw(rng, dtype, n))


def of_levels(m, rng, n, dtype):
    return m.MultilevelToeplitz(draw(rng, dtype, n + 4, 6), (5, 2))


def convolution(mode):
    def made(m, rng, n, dtype):
        return m.Convolution(draw(rng, dtype, 7, 3), (n, 4), mode=mode)

    return made


def longer_kernel(m, rng, n, dtype):
    return m.Convolution(draw(rng, dtype, 2 * n + 1), n, mode="circular")


def dft(norm):
    return lambda m, rng, n, dtype: m.DFT((n, 2), norm)


def dct(kind, norm):
    return lambda m, rng, n, dtype: m.DCT((n, 2), kind, norm)


def turned_dct(m, rng, n, dtype):
    return m.DCT(n, 2, "forward").T


def hadamard(m, rng, n, dtype):
    return m.Hadamard(8 if n < 10 else 64)


def full(m, rng, n, dtype):
    return m.Full((n, n + 2), 1.5)


def banded(m, rng, n, dtype):
    return m.Banded((1, 2), draw(rng, dtype, 4, n))


def tridiagonal(m, rng, n, dtype):
    return m.Tridiagonal(draw(rng, dtype, n - 1), draw(rng, dtype, n), draw(rng, dtype, n - 1))


def zeros(m, rng, n, dtype):
    return m.Diag(draw(rng, dtype, n)) @ m.Zeros((n, n + 1), dtype)


def blocks(m, rng, n, dtype):
    low, middle, up = (draw(rng, dtype, n - k, 3, 3) for k in (1, 0, 1))
    return m.BlockTridiagonal(low, middle, up)


def hermitian_blocks(m, rng, n, dtype):
    return m.BlockTridiagonal(draw(rng, dtype, n - 1, 2, 2), draw(rng, dtype, n, 2, 2))


def reflections(m, rng, n, dtype):
    return m.Reflections(draw(rng, dtype, n, 3), n)


NORMS = ("backward", "ortho", "forward")
WAYS = {f.__name__: f for f in (toeplitz, hankel, circulant, of_levels, longer_kernel)}
WAYS |= {f.__name__: f for f in (turned_dct, hadamard, full, banded, tridiagonal)}
WAYS |= {f.__name__: f for f in (zeros, blocks, hermitian_blocks, reflections)}
WAYS |= {f"convolution {mode}": convolution(mode) for mode in ("full", "same", "valid", "circular")}
WAYS |= {f"dft {norm}": dft(norm) for norm in NORMS}
WAYS |= {f"dct {kind} {norm}": dct(kind, norm) for kind in (1, 2, 3, 4) for norm in NORMS}


@pytest.mark.parametrize("put", [np.asarray, xp.asarray])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", WAYS)
def test_products_are_those_of_the_dense_form(name, n, dtype, put, rng):
    seed = int(rng.integers(1 << 30))
    ours = WAYS[name](pa, Source(seed, put), n, dtype)
    plain = WAYS[name](pl, Source(seed, np.asarray), n, dtype)
    A = np.asarray(plain.toarray())
    for mode, B in ((ours, A), (ours.T, A.T), (ours.H, A.conj().T)):
        for x in (draw(rng, dtype, B.shape[1]), draw(rng, "complex128", B.shape[1], 2)):
            with pl.config(warn_limit=64 * 64 * 16), warnings.catch_warnings():
                warnings.simplefilter("error", pl.MaterializationWarning)
                y = np.asarray(mode @ put(x))
            due = B @ x
            assert y.shape == due.shape and y.dtype == due.dtype
            assert np.max(np.abs(y - due)) <= 1e-13 * np.linalg.norm(B) * np.linalg.norm(x)


def test_products_through_the_fft_can_be_forbidden(rng):
    c = np.r_[1.0, np.full(99, 1e-30)]
    with pl.config(fft=False):
        y = pa.Toeplitz(c) @ np.r_[np.zeros(99), 1.0]
    assert np.array_equal(y[:99], c[:0:-1])  # componentwise


# (what, the kind that is named, a call on arrays of n rows)
DENSE = {
    "Toeplitz solve": ("Toeplitz", lambda n: pa.solve(pa.Toeplitz(decaying(n)), np.ones(n))),
    "Toeplitz logdet": ("Toeplitz", lambda n: pa.logdet(pa.Toeplitz(decaying(n)))),
    "Tridiagonal solve": ("Tridiagonal", lambda n: pa.solve(three(n), np.ones(n))),
    "Banded logdet": ("Banded", lambda n: pa.logdet(banded_matrix(n))),
    "Laplacian product": ("Laplacian", lambda n: pa.Laplacian((n,)) @ np.ones(n)),
    "Kernel product": ("Kernel", lambda n: pa.Kernel("rbf", np.ones((n, 1))) @ np.ones(n)),
}


def decaying(n):
    return np.r_[4.0, 0.5 ** np.arange(1, n)]


def banded_matrix(n):
    return pa.Banded((1, 2), np.ones((4, n)) + 4 * (np.arange(4) == 2)[:, None])


def three(n):
    return pa.Tridiagonal(np.ones(n - 1), 4 * np.ones(n), np.ones(n - 1))


@pytest.mark.parametrize("name", DENSE)
def test_dense_forms_are_announced(name):
    kind, call = DENSE[name]
    n = int(np.random.default_rng().integers(30, 60))
    nbytes = n * n * 8
    with pl.config(warn_limit=nbytes), warnings.catch_warnings():
        warnings.simplefilter("error", pl.MaterializationWarning)
        due = call(n)
    text = rf"{kind} \({n}, {n}\) has no structured way on cpu .*made dense: {nbytes:,} bytes"
    with pl.config(warn_limit=nbytes - 1), pytest.warns(pl.MaterializationWarning, match=text) as w:
        assert np.array_equal(call(n), due)
    assert w[0].filename == __file__
    text = rf"{kind} \({n}, {n}\) on cpu needs {nbytes:,} bytes; .*memory_limit.* {nbytes - 1:,}"
    with pl.config(memory_limit=nbytes - 1), pytest.raises(pl.MaterializationError, match=text):
        call(n)


def test_what_is_asked_for_does_not_warn_but_has_a_limit():
    with pl.config(warn_limit=0), warnings.catch_warnings():
        warnings.simplefilter("error")
        pa.Toeplitz(decaying(40)).toarray()
    with pl.config(memory_limit=40 * 40 * 8 - 1), pytest.raises(pl.MaterializationError):
        pa.Toeplitz(decaying(40)).toarray()


def test_sums_by_index_are_announced_where_the_library_has_none():
    rows, cols = np.array([0, 2, 2, 1]), np.array([0, 1, 0, 1])
    data, x = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0])
    pattern = scipy.sparse.coo_array((data, (rows, cols)), (3, 2))

    def product(put):
        return np.asarray(pa.Sparse(pattern, put(data)) @ put(x))

    text = r"a sum by index \(3, 4\) .* 96 bytes"
    with pl.config(warn_limit=0), pytest.warns(pl.MaterializationWarning, match=text):
        y = product(xp.asarray)
    assert np.array_equal(y, [1.0, 8.0, 7.0])
    with pl.config(warn_limit=0), warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy has one
        assert np.array_equal(product(np.asarray), y)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_weighted_gram_elsewhere(dtype, rng):
    """Where the planner takes one triangle, the walk takes the product."""
    X = rng.normal(size=(300, 130)).astype(dtype)
    X = X * 1j if X.dtype.kind == "c" else X
    w = rng.normal(size=300)
    device = xp.Device("device1")
    D, d = (xp.asarray(a, device=device) for a in (X, w))
    form = pa.Dense(D).H @ pa.Diag(d) @ pa.Dense(D)
    made = np.asarray(xp.asarray(form.toarray(), device=xp.Device("CPU_DEVICE")))
    np.testing.assert_allclose(made, X.conj().T @ (w[:, None] * X), atol=1e-10)
    plain = pl.Dense(X).H @ pl.Diag(w) @ pl.Dense(X)
    assert "scaled-gram" in plain.explain("dense")
