"""What random formulas (test_formulas.py) found, each by hand."""

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl


@pytest.mark.parametrize("first", [(1, 7), (7, 1), (1, 3, 4), (1, 1, 5), (2, 1, 6), (1, 2, 3, 1)])
@pytest.mark.parametrize("bc", ["dirichlet", "neumann", "periodic"])
def test_bands_of_grids_with_axes_of_one_point(first, bc):
    """A Laplacian on (1, 7), periodic, is no tridiagonal matrix: the ends of the long axis meet."""
    L = pl.Laplacian(first, bc)
    n = L.shape[0]
    a, d = L.toarray().astype(float), np.linspace(9, 11, n)
    for A, w in (
        (L + pl.Diag(d), a + np.diag(d)),
        (pl.Tridiagonal(d[1:] / 9, d, d[1:] / 7) + L @ L, None),
        (pl.Laplacian(n, "dirichlet", float) + L, None),
    ):
        w = A.toarray() if w is None else w
        np.testing.assert_allclose(A.toarray(), w, rtol=1e-13)
        np.testing.assert_allclose(pl.slogdet(A), np.linalg.slogdet(w), rtol=1e-10)
        np.testing.assert_allclose(pl.solve(A, d), np.linalg.solve(w, d), rtol=1e-9)
        np.testing.assert_allclose(pl.inv(A).diagonal(), np.diag(np.linalg.inv(w)), rtol=1e-9)


@pytest.mark.parametrize("known", [True, False])
def test_parts_of_callables_are_real(known, rng):
    """The conjugate of an imaginary part is itself, not that of the conjugate."""
    a = values(rng, (4, 4), "complex128")
    M = ref.build(("MatVec", a, True))
    for A, w in ((np.imag(M), a.imag), (np.real(M), a.real), (np.imag(2j * M), (2j * a).imag)):
        B, b = (A, w) if known else (A + M, w + a)
        for x in (values(rng, (4,), "float64"), values(rng, (4, 3), "complex128")):
            np.testing.assert_allclose(B.conj() @ x, b.conj() @ x, rtol=1e-13)
            np.testing.assert_allclose(B.H @ x, b.conj().T @ x, rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(B.T @ x, b.T @ x, rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(np.imag(B).H @ x, b.imag.T @ x, rtol=1e-13, atol=1e-14)


def test_a_callable_to_the_power_of_nought(rng):
    """Batches and dtypes are those of any other power."""
    for batch, dtype in (((), "complex128"), ((3, 1), "float32"), ((2,), "float64")):
        M = ref.build(("MatVec", values(rng, (*batch, 3, 3), dtype), False))
        for x in (np.ones((3, 2), "f4"), np.ones((3, 2))):
            one, two = M**0 @ x, M**2 @ x
            assert one.dtype == two.dtype and one.shape == two.shape
            np.testing.assert_array_equal(one, np.broadcast_to(x, one.shape))


@pytest.mark.parametrize("weak", ["Identity", "Zeros", "Permutation"])
def test_weak_kinds_times_callables_element_by_element(weak, rng):
    W = {
        "Identity": pl.Identity(3),
        "Zeros": pl.Zeros((3, 3)),
        "Permutation": pl.Permutation([1, 2, 0]),
    }[weak]
    M = ref.build(("MatVec", values(rng, (3, 3), "complex64"), True))
    A = pl.multiply(W, M)
    assert A.dtype == (A @ np.ones(3, "f4")).dtype == A.toarray().dtype == np.complex64


@pytest.mark.parametrize("kind", ["Identity", "Selection", "Permutation", "Laplacian"])
def test_imaginary_parts_of_weak_kinds_are_weak(kind, rng):
    d = None
    while d is None or d[-1] is not None:
        d = leaf(kind, rng, 4, 4, "float64")
    A = np.imag(ref.build(d))
    assert (A @ np.ones(4, "f4")).dtype == np.float32
    assert (A + pl.Dense(np.ones((4, 4), "c8"))).dtype == np.complex64


@pytest.mark.parametrize("n", [1, 3])
def test_a_lazy_matrix_over_a_number_made_of_its_value(n):
    a = np.arange(1.0, n * n + 1).reshape(n, n)
    v = pl.lazy(a)
    for f in (
        lambda w: w / abs(w).sum(),
        lambda w: w / (2 + abs(w))[0, 0],
        lambda w: (w + w) / np.linalg.norm(w),
        lambda w: (w / w.max()) @ w,
    ):
        np.testing.assert_allclose(np.asarray(f(v @ v)), f(a @ a), rtol=1e-13)
        np.testing.assert_allclose(np.asarray(f(v + 1j * v)), f(a + 1j * a), rtol=1e-13)
    w = v * v
    np.testing.assert_allclose(np.asarray(w / (2 + abs(w))), a * a / (2 + a * a))


def test_inverses_that_closed_to_multiples(rng):
    """inv(Hadamard) is a Scaled whose one operand is the Hadamard."""
    A, a = pl.inv(pl.Hadamard(4)), np.linalg.inv(pl.Hadamard(4).toarray())
    assert type(A) is pl.Scaled
    w, Q = pl.eigh(A + A.H)
    np.testing.assert_allclose((np.asarray(Q) * w) @ np.asarray(Q).T, 2 * a, atol=1e-14)
    S, b = pl.Diag(np.arange(4.0) + 9) + A, np.diag(np.arange(4.0) + 9) + a
    np.testing.assert_allclose(pl.preconditioner(S) @ (S @ np.ones(4)), np.ones(4), atol=0.2)
    np.testing.assert_allclose(pl.eigsh(S, 2)[0], np.linalg.eigvalsh(b)[-2:], rtol=1e-12)
    np.testing.assert_allclose(pl.expm(pl.logm(S)).toarray(), b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["Dense", "Toeplitz", "Kron", "Circulant", "Hankel"])
def test_svd_of_operands_that_need_a_cast(kind, rng):
    """What astype makes of a sum is its product with an identity, which svd took apart for ever."""
    a, b = (ref.build(leaf(kind, rng, 6, 6, t)) for t in ("complex64", "float32"))
    for A in (
        np.float64(1.5) * (a + b),
        (a + b).astype("complex128"),
        (a + b) @ pl.Permutation(np.arange(6)[::-1], np.float64),
        (a @ b).astype("complex128").T,
    ):
        assert A.dtype == np.complex128
        U, s, Vh = pl.svd(A)
        w = A.toarray()
        np.testing.assert_allclose((np.asarray(U) * s) @ np.asarray(Vh), w, atol=1e-5)
        np.testing.assert_allclose(pl.svdvals(A), np.linalg.svd(w)[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [None, "int8", "int64", "float32"])
@pytest.mark.parametrize("n", [1, 64, 128, 512])
def test_inverses_of_hadamard_matrices_of_integers(n, dtype, rng):
    """An inverse computes in its own dtype: the sums of integers, divided by n after, wrapped."""
    H, h = pl.Hadamard(n, dtype), pl.Hadamard(n).toarray()
    for x in (np.ones((n, 2), "int8"), rng.integers(0, 256, (n, 2), "uint8")):
        w = h @ x.astype(float) / n
        Inv = pl.inv(H)
        for y in (Inv @ x, pl.solve(H, x), Inv.T @ x, (x.T @ Inv).T, pl.inv(H.T) @ x):
            np.testing.assert_allclose(y, w, atol=1e-4)
    single = dtype in (None, "float32")
    assert (pl.inv(H) @ np.ones(n, "float32")).dtype == ("float32" if single else "float64")


def test_a_khatri_rao_product_of_a_callable_without_columns():
    for m, k in ((0, 0), (2, 3)):
        K = pl.KhatriRao(ref.build(("MatVec", np.zeros((m, 0)), False)), pl.Dense(np.zeros((k, 0))))
        assert (np.zeros((3, m * k)) @ K).shape == (3, 0)
        np.testing.assert_array_equal(K @ np.zeros((0, 2)), np.zeros((m * k, 2)))
