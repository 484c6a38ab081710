"""eigh, eig, eigvals, svd, log_pdet of every kind, against numpy.linalg on the dense form."""

import gc

import hermitian
import mpmath
import numpy as np
import pytest
import ref
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import values
from test_norms_svdvals import KINDS, instance, shapes, views
from test_properties import expressions

import pylinop as pl

CLOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}
REAL = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}


def size(a):
    return 8 * max(1.0, np.linalg.norm(a, axis=(-2, -1)).max(initial=0))


def off(got, want):
    """The largest difference, of arrays of one shape."""
    assert got.shape == want.shape
    return np.abs(got - want).max(initial=0)


def is_orthonormal(q, dtype):
    """Are the columns so?"""
    eye = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    assert off(ref.adj(q) @ q, eye) <= 10 * CLOSE[dtype]


# -- eigh --


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("name", hermitian.KINDS)
def test_eigh(name, dtype, rng):
    whole = hermitian.KINDS[name](rng, dtype)
    for A in (whole, whole.T, whole.conj(), whole.H, -3 * whole):
        a = A.toarray()
        dt = str(A.dtype)
        for uplo in "LU":
            w, Q = pl.eigh(A, uplo)
            assert isinstance(Q, pl.LinearOperator) and Q.dtype == dt and w.dtype == REAL[dt]
            q = Q.toarray()
            assert w.shape == a.shape[:-1] and (np.diff(w) >= 0).all()
            assert off(w, np.linalg.eigvalsh(a, uplo)) <= size(a) * CLOSE[dt]
            assert off(pl.eigvalsh(A, uplo), w) <= size(a) * CLOSE[dt]
            assert off((q * w[..., None, :]) @ ref.adj(q), a) <= size(a) * CLOSE[dt]
            is_orthonormal(q, dt)


def test_eigh_reads_the_named_triangle(rng):
    for dtype in ("float64", "complex128"):
        h = hermitian.her(rng, 4, dtype)
        low, up = np.tril(h), np.triu(h)
        for A, uplo, m in (
            (pl.Dense(low), "L", h),
            (pl.Dense(up), "u", h),
            (pl.Dense(up).T, "L", h.T),
            (pl.Dense(low).H, "U", h),
            (pl.Dense(up).conj(), "U", h.conj()),
            (3 * pl.Dense(low), "L", 3 * h),
            (pl.Dense(low) + 2 * pl.Identity(4), "L", h + 2 * np.eye(4)),
        ):
            w, Q = pl.eigh(A, uplo)
            np.testing.assert_allclose((Q.toarray() * w) @ Q.H.toarray(), m, atol=1e-12)
    for e, f, uplo in ((np.ones(2), np.full(2, 7.0), "L"), (np.full(2, 7.0), np.ones(2), "U")):
        w, _ = pl.eigh(pl.Tridiagonal(e, np.zeros(3), f), uplo)
        np.testing.assert_allclose(w, [-np.sqrt(2), 0, np.sqrt(2)], atol=1e-14)


N = 4096


def large_kinds(r):
    """Operators whose dense form would need 128 MiB and more, and what Q is made of."""
    thin = r.standard_normal((N, 3))
    return {
        "Kron": (pl.Kron(hermitian.her(r, 64, "f8"), hermitian.her(r, 64, "f8")), "Product"),
        "KronSum": (pl.KronSum(hermitian.her(r, 64, "f8"), hermitian.her(r, 64, "f8")), "Product"),
        "shifted": (pl.Kron(hermitian.her(r, 64, "f8"), pl.Identity(64)) + pl.Identity(N), None),
        "Circulant": (pl.Circulant(hermitian.turn(r.standard_normal(N))), None),
        "Laplacian": (pl.Laplacian((64, 64), "dirichlet"), "Product"),
        "Diag": (pl.Diag(r.standard_normal(N)), "Permutation"),
        "Identity": (3 * pl.Identity(N), "Identity"),
        "BlockDiag": (pl.BlockDiag(*[hermitian.her(r, 8, "f8")] * (N // 8)), None),
        "Householder": (pl.Householder(r.standard_normal(N)), "Householder"),
        "Hadamard": (pl.Hadamard(N), "Product"),
        "LowRank": (pl.LowRank(thin), None),
        "thin and noise": (pl.LowRank(thin) + 0.1 * pl.Identity(N), None),
        "power": (pl.Kron(hermitian.her(r, 64, "f8"), pl.Identity(64)) ** 3, None),
        "inverse": (pl.inv(pl.Laplacian((64, 64), "dirichlet")), None),
        "Permutation": (pl.Permutation(hermitian.exchanges(N)), None),
        "Full": (pl.Full((N, N), 2.0), None),
    }


@pytest.mark.parametrize("name", large_kinds(np.random.default_rng(0)))
def test_eigh_keeps_structure(name, rng):
    """Under a limit that neither the dense form nor dense vectors keep."""
    A, kind = large_kinds(rng)[name]
    x = rng.standard_normal((N, 2))
    with pl.config(memory_limit=2**25):
        w, Q = pl.eigh(A)
        assert kind is None or type(Q).__name__ == kind
        y = Q @ (w[:, None] * (Q.H @ x))
        want = A @ x if name != "inverse" else None
        if want is None:
            y, want = A.args[0] @ y, x
        assert np.linalg.norm(y - want) <= 1e-10 * np.linalg.norm(want) * (1 + abs(w).max())
        assert np.linalg.norm(Q.H @ (Q @ x) - x) <= 1e-11 * np.linalg.norm(x)
        assert Q.dtype == np.float64 and (np.diff(w) >= 0).all()
        if name != "Full":
            np.testing.assert_allclose(pl.eigvalsh(A), w, atol=1e-9 * abs(w).max())


def test_eigh_takes_bands(rng):
    """Vectors of a Tridiagonal by its three diagonals; for orthogonality at clustered values."""
    n = 200
    T = pl.Tridiagonal(np.full(n - 1, 1e-8), np.ones(n), np.full(n - 1, 1e-8))  # nearly a multiple
    w, Q = pl.eigh(T)
    is_orthonormal(Q.toarray(), "float64")
    k = np.arange(1, n + 1)
    np.testing.assert_allclose(w, np.sort(1 + 2e-8 * np.cos(np.pi * k / (n + 1))), atol=1e-15)
    T = pl.Tridiagonal(np.ones(20), np.abs(np.arange(21) - 10.0), np.ones(20))  # Wilkinson's W21+
    w, Q = pl.eigh(T)
    is_orthonormal(Q.toarray(), "float64")
    np.testing.assert_allclose(w[-1], 10.746194182903393, rtol=1e-14)
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError):
        pl.eigh(pl.Tridiagonal(np.ones(19), np.ones(20), np.ones(19)))


@pytest.mark.parametrize("dtype", ref.FLOATS)
def test_values_of_bands(dtype, rng):
    for batch in ((), (2,)):
        for lower, upper in ((2, 2), (0, 3), (3, 1), (0, 0), (7, 7)):
            A = pl.Banded((lower, upper), values(rng, (*batch, lower + upper + 1, 5), dtype))
            for uplo in "LU":
                want = np.linalg.eigvalsh(A.toarray(), uplo)
                assert off(pl.eigvalsh(A, uplo), want) <= size(A.toarray()) * CLOSE[dtype]
            assert off(pl.svdvals(A), np.linalg.svdvals(A.toarray())) <= 50 * CLOSE[dtype]
    d, e = np.ones(5000), np.full(5000, 0.25)
    A = pl.Banded((1, 1), np.stack([e, d, e]))
    with pl.config(memory_limit=2**22):
        assert off(pl.svdvals(A)[:1], np.array([1.5])) <= 1e-6
        np.testing.assert_allclose(pl.cond(A, 2), 3.0, rtol=1e-5)


def test_eigh_arguments():
    for f in (pl.eigh, pl.eig, pl.eigvals, pl.log_pdet, pl.expm):
        with pytest.raises(np.linalg.LinAlgError, match=r"must be square: \(2, 3\)"):
            f(pl.Zeros((2, 3)))
    with pytest.raises(ValueError, match="UPLO"):
        pl.eigh(pl.Identity(2), "X")
    for f in (pl.eigh, pl.eig, pl.eigvals, pl.svd, pl.sqrtm):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            f(pl.inv(pl.Dense([[1.0, 1.0], [1.0, 1.0]])))
    w = pl.eigvals(pl.inv(pl.Triangular(np.diag([1.0, 1e-20]))))  # not singular
    np.testing.assert_allclose(np.sort(w), [1, 1e20])
    t = np.array([[2.0, 1.0], [np.nan, 3.0]])  # what is assumed is read alone
    np.testing.assert_allclose(pl.svdvals(pl.Dense(t, "upper triangular")) @ [1, 0], 3.2566165)
    np.testing.assert_allclose(pl.eigvals(pl.Dense(t, "upper triangular")), [2, 3])
    w, Q = pl.eigh([[2, 1], [1, 2]])  # lists of integers
    assert w.dtype == Q.dtype == np.float64 and w.round(9).tolist() == [1, 3]
    assert type(pl.eigh(np.eye(2))) is type(np.linalg.eigh(np.eye(2)))
    assert type(pl.eig(np.eye(2))) is type(np.linalg.eig(np.eye(2)))
    assert type(pl.svd(np.eye(2))) is type(np.linalg.svd(np.eye(2)))
    assert type(np.linalg.eigh(pl.Identity(2)).eigenvectors) is pl.Identity
    assert type(np.linalg.svd(pl.Diag([1.0, 2.0]), False).U) is pl.Permutation
    np.testing.assert_array_equal(np.linalg.eigvals(pl.Diag([1.0, 2.0])), [1, 2])
    assert np.linalg.eig(pl.Diag([1.0, 2.0])).eigenvectors.shape == (2, 2)
    for m, n in ((0, 0), (0, 2), (3, 0)):
        U, S, Vh = pl.svd(pl.Zeros((m, n)))
        assert (U.shape, S.shape, Vh.shape) == ((m, m), (0,), (n, n))
    assert pl.eigh(pl.Zeros((2, 0, 0))).eigenvectors.shape == (2, 0, 0)
    assert pl.eigvals(pl.Dense(np.ones((0, 3, 3)))).shape == (0, 3)


def test_integers_count_as_floats():
    a = np.array([[100, 27], [27, -100]], np.int8)
    A = pl.Dense(a) @ pl.Dense(a)  # wraps as a dense int8
    want = a.astype(float) @ a
    for f in (pl.eigh, pl.eig):
        w, Q = f(A)
        np.testing.assert_allclose((Q.toarray() * w) @ Q.toarray().T, want, atol=1e-10)
    np.testing.assert_allclose(pl.svdvals(A), pl.svd(A).S)
    np.testing.assert_allclose(pl.expm(1e-4 * A).toarray(), scipy.linalg.expm(1e-4 * want))
    assert pl.eigh(pl.Permutation([1, 0], np.int8)).eigenvectors.dtype == np.float64
    assert pl.sqrtm(pl.Identity(2, np.int8)).dtype == np.float64


def test_results_are_of_their_own(rng):
    """A later write to the operand changes neither values nor vectors; the next call sees it."""
    q = hermitian.uni(rng, 4, "f8")
    d = np.arange(4.0)
    p = rng.permutation(5)
    for A, arrays, call in (
        (pl.Eigen(pl.Dense(q, "orthogonal"), d), (q, d), lambda A: pl.eigh(A)[1]),
        (pl.Eigen(pl.Dense(q, "orthogonal"), d), (q, d), lambda A: pl.eig(A)[1]),
        (pl.Eigen(pl.Dense(q, "orthogonal"), d), (q, d), pl.sqrtm),
        (pl.Permutation(p), (p,), lambda A: pl.svd(A)[0]),
        (pl.Dense(q, "orthogonal") @ pl.Diag(d), (q, d), lambda A: pl.svd(A)[0]),
        (pl.Diag(d), (d,), lambda A: pl.funm(A, lambda w: w)),
    ):
        keep = [x.copy() for x in arrays]
        found = call(A)
        before = found.toarray()
        for x in arrays:
            x[:] = x[::-1].copy()
        np.testing.assert_array_equal(found.toarray(), before)
        assert not np.allclose(call(A).toarray(), before)
        for x, kept in zip(arrays, keep, strict=True):
            x[:] = kept
        np.testing.assert_allclose(call(A).toarray(), before, atol=1e-12)


def test_long_chains():
    A = pl.Dense(hermitian.her(np.random.default_rng(1), 3, "f8"))
    a = A.toarray()
    B = A
    for k in range(3000):
        B = (2 * B.T if k % 2 else 0.5 * B.H) + (1 if k % 4 < 2 else -1) * pl.Identity(3)
    assert pl.eigh(B).eigenvalues.shape == (3,)
    np.testing.assert_allclose(pl.eigvals(B), pl.eigh(B).eigenvalues)
    np.testing.assert_allclose(pl.expm(B).toarray(), pl.expm(B.toarray()).toarray(), rtol=1e-9)
    C = pl.Permutation([1, 0, 2])
    for _ in range(3000):
        C = pl.Dense(np.eye(3), "orthogonal") @ C
    assert np.allclose(pl.svd(C @ A).S, pl.svdvals(a))
    del B, C
    gc.collect()


# -- eig --


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_eig(kind, dtype, rng):
    for n in (4, 2, 1):
        for batch in ((), (2,)):
            found = instance(kind, rng, n, n, dtype, batch)
            for A, a in views(*found) if found is not None else ():
                dt = str(A.dtype)
                w, V = pl.eig(A)
                v = V.toarray()
                assert w.shape == a.shape[:-1] and v.shape == a.shape and w.dtype == V.dtype
                assert A.dtype.kind == "f" or w.dtype == A.dtype
                assert off(a @ v, v * w[..., None, :]) <= 10 * size(a) * CLOSE[dt]
                np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, atol=10 * CLOSE[dt])
                mine, theirs = pl.eigvals(A), np.linalg.eigvals(a.astype(A.dtype))
                assert mine.shape == theirs.shape
                # defective ones are only known to the root of the precision: by characteristic
                # polynomials, at points around
                top = 1 + np.abs(theirs).max()
                for z in (2 * top, 2j * top, -2 * top):
                    ratio = np.prod((z - mine) / (z - theirs), axis=-1)
                    np.testing.assert_allclose(ratio, 1, atol=1e3 * CLOSE[dt])


def test_eig_keeps_structure(rng):
    a, b = rng.standard_normal((2, 40, 40))
    with pl.config(memory_limit=2**22):
        for A, kind in (
            (pl.Kron(a, b, pl.Identity(4)), pl.Kron),
            (pl.KronSum(a, b, a[:4, :4]), pl.Kron),
            (pl.BlockDiag(*[a, b] * 50), pl.BlockDiag),
            (pl.Circulant(rng.standard_normal(5000)), pl.Conj),
            (pl.Permutation(rng.permutation(5000)), pl.Product),
            (pl.Householder(rng.standard_normal(5000), 0.1), pl.Householder),
            (2j * pl.Kron(a, b) + 3 * pl.Identity(1600), pl.Kron),
            (pl.inv(pl.Kron(a, b)), pl.Kron),
            (pl.Full((2000, 2000), 1j), pl.Householder),
        ):
            w, V = pl.eig(A)
            assert type(V) is kind
            x = rng.standard_normal(A.shape[-1])
            y = A @ (V @ x) if not isinstance(A, pl.Inverse) else None
            if y is not None:
                assert np.linalg.norm(y - V @ (w * x)) <= 1e-9 * np.linalg.norm(y)
        L = pl.LowRank(rng.standard_normal((5000, 2)), rng.standard_normal((5000, 2)))
        w = pl.eigvals(L)
        assert np.count_nonzero(w) == 2
        np.testing.assert_allclose(w.sum(), L.trace(), rtol=1e-10)
        t = pl.eigvals(pl.Triangular(rng.standard_normal((300, 300))))
        assert t.shape == (300,)


def test_hermitian_ones_have_orthonormal_vectors(rng):
    """numpy.linalg.eig gives parallel ones for repeated values of symmetric matrices at times."""
    u = hermitian.uni(rng, 6, "f8")
    s = (u * [1, 1, 1, 2, 2, 3]) @ u.T
    s = (s + s.T) / 2
    w, V = pl.eig(pl.Dense(s))
    is_orthonormal(V.toarray(), "float64")
    assert w.dtype == np.float64
    c = np.array([[1, 2j], [2j, 1]])  # complex symmetric is not Hermitian
    np.testing.assert_allclose(np.sort_complex(pl.eigvals(c)), [1 - 2j, 1 + 2j])


# -- svd --


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_svd(kind, dtype, rng):
    for m, n in shapes(kind):
        for batch in ((), (2,)):
            found = instance(kind, rng, m, n, dtype, batch)
            for A, a in views(*found) if found is not None else ():
                for full in (True, False):
                    same_svd(A, a, full)


def same_svd(A, a, full):
    dt = str(A.dtype)
    U, S, Vh = pl.svd(A, full)
    for got, want in zip((U, S, Vh), np.linalg.svd(a, full), strict=True):
        assert got.shape == want.shape
    assert U.dtype == Vh.dtype == A.dtype and S.dtype == REAL[dt]
    assert (S >= 0).all() and (np.diff(S) <= 0).all()
    assert off(S, np.linalg.svdvals(a)) <= size(a) * CLOSE[dt]
    u, vh, k = U.toarray(), Vh.toarray(), S.shape[-1]
    assert off((u[..., :k] * S[..., None, :]) @ vh[..., :k, :], a) <= size(a) * CLOSE[dt]
    is_orthonormal(u, dt)
    is_orthonormal(ref.adj(vh), dt)


@pytest.mark.parametrize("name", hermitian.KINDS)
def test_svd_of_hermitian(name, rng):
    for dtype in ("float64", "complex64"):
        A = hermitian.KINDS[name](rng, dtype)
        a = A.toarray()
        same_svd(A, a, True)
        U, S, Vh = pl.svd(A, hermitian=True)
        dt = str(A.dtype)
        assert off((U.toarray() * S[..., None, :]) @ Vh.toarray(), a) <= size(a) * CLOSE[dt]
        np.testing.assert_allclose(pl.svd(A, True, False), S, atol=size(a) * CLOSE[dt])
        np.testing.assert_allclose(pl.svd(A, True, False, True), S, atol=size(a) * CLOSE[dt])


SHAPES = [(3, 2), (2, 3), (2, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", SHAPES)
def test_svd_of_mixed_factors(first, second, rng):
    """Tall beside wide: U and V hold columns that belong to no value of the factors."""
    for batch in ((), (2,)):
        parts = [values(rng, (*batch, *s), "complex128") for s in (first, second)]
        for A in (pl.Kron(*parts), pl.BlockDiag(*parts), pl.Kron(pl.BlockDiag(*parts), parts[0])):
            for full in (True, False):
                same_svd(A, A.toarray(), full)


def test_svd_keeps_structure(rng):
    a, b = rng.standard_normal((40, 30)), rng.standard_normal((50, 20))
    u, v = rng.standard_normal((30000, 3)), rng.standard_normal((2000, 3))
    with pl.config(memory_limit=2**24):
        for A, full, kinds in (
            (pl.Kron(a, b), False, ("Product", "Product")),
            (pl.Kron(a, b.T), False, ("Product", "Product")),
            (pl.BlockDiag(*[a, b] * 40), False, ("Product", "Product")),
            (pl.LowRank(u, v), True, ("Product", None)),
            (pl.LowRank(u, v), False, ("Product", None)),
            (pl.Diag(rng.standard_normal(5000)), True, ("Product", "Permutation")),
            (pl.Circulant(rng.standard_normal(5000)), True, ("Product", None)),
            (pl.DFT(5000), True, ("DFT", "Identity")),
            (pl.Permutation(rng.permutation(5000)), True, ("Permutation", "Identity")),
            (pl.DCT((50, 100), 3), True, ("Product", "Permutation")),
            (pl.Full((3000, 2000), -2.0), True, (None, "Householder")),
            (pl.Householder(rng.standard_normal(3000)), True, (None, None)),
            (pl.DFT(3000, "ortho") @ pl.Diag(np.ones(3000)), True, (None, None)),
            (pl.KronSum(hermitian.her(rng, 40, "f8"), pl.Identity(50)), True, (None, None)),
        ):
            U, S, Vh = pl.svd(A, full)
            for q, kind in ((U, kinds[0]), (Vh, kinds[1])):
                assert kind is None or type(q).__name__ == kind, (type(A), type(q))
            k, x = S.shape[-1], rng.standard_normal(A.shape[-1])
            y = (Vh @ x)[:k] * S
            y = U @ (np.concatenate([y, np.zeros(U.shape[-1] - k)]) if full else y)
            assert np.linalg.norm(y - A @ x) <= 1e-10 * np.linalg.norm(A @ x)


def test_real_operators_have_real_vectors(rng):
    for A in (
        pl.Circulant(rng.standard_normal(6)),
        pl.Circulant(rng.standard_normal((4, 5)), 2),
        pl.Circulant(hermitian.turn(rng.standard_normal(7))),
        pl.Laplacian((3, 4), "periodic", "float64"),
    ):
        U, S, Vh = pl.svd(A)
        assert U.dtype == Vh.dtype == np.float64
        same_svd(A, A.toarray(), True)
    assert pl.eigh(pl.Laplacian((3, 4), "periodic")).eigenvectors.dtype == np.float64


# -- pseudo-determinants --


def test_log_pdet(rng):
    for n, r in ((5, 5), (6, 3), (4, 1)):
        x = rng.standard_normal((n, r))
        s = x @ x.T
        w = np.linalg.eigvalsh(x.T @ x)
        np.testing.assert_allclose(pl.log_pdet(pl.LowRank(x)), np.log(w).sum(), rtol=1e-10)
        np.testing.assert_allclose(pl.log_pdet(s, rtol=1e-8), np.log(w).sum(), rtol=1e-8)
        covariance = scipy.stats.Covariance.from_eigendecomposition(np.linalg.eigh(s + np.eye(n)))
        np.testing.assert_allclose(pl.log_pdet(s + np.eye(n)), covariance.log_pdet, rtol=1e-10)
    big = pl.Kron(np.ones((2, 2)), pl.Diag(np.full(5000, 1e-200)))
    np.testing.assert_allclose(pl.log_pdet(big), 5000 * (np.log(2) - 200 * np.log(10)))
    assert pl.log_pdet(pl.Zeros((3, 3))) == 0
    assert np.isnan(pl.log_pdet(pl.Diag([1.0, -2.0]))) and pl.log_pdet(pl.Diag([-2.0, -0.5])) == 0
    assert pl.log_pdet(pl.Diag([1e-3, 1.0]), rtol=1e-2) == 0
    d = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 4.0]])
    np.testing.assert_allclose(pl.log_pdet(pl.Diag(d)), np.log([2.0, 4.0]))
    assert pl.log_pdet(pl.Diag(d.astype("f4"))).dtype == np.float32
    assert np.isnan(pl.log_pdet(pl.Diag([np.nan, 1.0])))


# -- ill-conditioned families --


def hilbert(n):
    return 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)


def test_kron_of_ill_conditioned(rng):
    """Values of a Kron of Hilbert matrices are as good as the factors' are: against mpmath."""
    with mpmath.workdps(40):
        exact = mpmath.eigsy(mpmath.matrix(hilbert(8).tolist()), eigvals_only=True)
        exact = np.array([float(x) for x in exact])
    w, Q = pl.eigh(pl.Kron(hilbert(8), hilbert(8)))
    want = np.sort(np.outer(exact, exact).ravel())
    assert off(w, want) <= 1e-15 * 8 * want[-1]
    is_orthonormal(Q.toarray(), "float64")
    graded = np.diag(10.0 ** -np.arange(0, 16, 2)) + 0
    _, S, _ = pl.svd(pl.Kron(pl.Diag(np.diag(graded)), pl.Diag(np.diag(graded))))
    np.testing.assert_allclose(
        S, np.sort(np.outer(np.diag(graded), np.diag(graded)).ravel())[::-1], rtol=1e-15
    )


def test_bases_are_known_to_be_unitary(rng):
    """So that functions of functions go on by structure; and nothing else is taken for one."""
    from pylinop._structured import unitary

    for A in (
        pl.Laplacian((3, 4), "dirichlet"),
        pl.Laplacian((1,), "dirichlet", "float32"),
        pl.Laplacian((3, 4), "neumann"),
        pl.Laplacian((3, 4), "periodic"),
        pl.Circulant(hermitian.turn(rng.standard_normal(5))),
        pl.Circulant(hermitian.turn(values(rng, 5, "complex64"))),
        pl.LowRank(rng.standard_normal((9, 2))),
        pl.LowRank(values(rng, (2, 9, 2), "complex64")),
        pl.Permutation([1, 0, 2]),
        pl.Householder(rng.standard_normal(4)),
        pl.Hadamard(8),
        pl.Dense(hermitian.her(rng, 3, "f8")),
    ):
        Q = pl.eigh(A).eigenvectors
        assert unitary.is_unitary(Q) and unitary.is_unitary(Q.H)
    F = pl.DFT(4, "ortho")
    y = rng.standard_normal((5, 2))
    for Q in (
        F.real,
        F.real + 2 * F.imag,
        pl.DFT(4).real - pl.DFT(4).imag,
        F.real - 2 * F.imag,
        pl.DFT(8)[1:4, 1:4].imag,
        -(0.5**0.5) * pl.DFT(8)[1:4, 0:3].imag,
        pl.LowRankUpdate(pl.Identity(5), y, None, -np.eye(2)),
        pl.LowRankUpdate(pl.Identity(5), y),
        pl.Dense(np.eye(3)),
        pl.BlockDiag(np.eye(2)) + pl.BlockDiag(np.eye(2)),
        2 * pl.Kron(pl.Identity(2), pl.Identity(2)),
        pl.Selection([0, 1], 3),
    ):
        q = Q.toarray()
        assert not np.allclose(ref.adj(q) @ q, np.eye(q.shape[-1])) or type(Q) is pl.Dense
        assert not unitary.is_unitary(Q)


# -- expressions --


@st.composite
def cases(draw, square, batches=((), (2,))):
    m = draw(st.integers(1, 6))
    n = m if square else draw(st.integers(1, 6))
    return draw(expressions(m, n, draw(st.integers(0, 3)), ref.FLOATS, batches))


@given(cases(False), st.booleans())
@settings(max_examples=60)
def test_svd_of_expressions(d, full):
    A, a = ref.build(d), ref.dense(d)
    U, S, Vh = pl.svd(A, full)
    u, s, vh = np.linalg.svd(a, full)
    assert (U.shape, S.shape, Vh.shape) == (u.shape, s.shape, vh.shape)
    allowed = 20 * np.linalg.norm(ref.tolerance(d), axis=(-2, -1)).max() + 1e-30
    assert off(S, s) <= allowed
    k = s.shape[-1]
    back = (U.toarray()[..., :k] * S[..., None, :]) @ Vh.toarray()[..., :k, :]
    assert off(back, a) <= allowed + 1e-3 * s.max(initial=0) * (A.dtype.itemsize < 8)


@given(cases(True))
@settings(max_examples=60)
def test_eigh_of_expressions(d):
    A = ref.build(d) + ref.build(d).H
    a = ref.dense(d) + ref.adj(ref.dense(d))
    w, Q = pl.eigh(A)
    allowed = 40 * np.linalg.norm(ref.tolerance(d), axis=(-2, -1)).max() + 1e-30
    assert off(w, np.linalg.eigvalsh(a)) <= allowed
    q = Q.toarray()
    loose = 1e-3 if real_eps(A) > 1e-10 else 1e-10
    assert off((q * w[..., None, :]) @ ref.adj(q), a) <= allowed + loose * np.abs(w).max(initial=0)
    x = pl.expm((0.5 / max(1.0, np.abs(w).max())) * A)
    want = np.exp(0.5 / max(1.0, np.abs(w).max()) * w)
    got = np.linalg.eigvalsh(x.toarray())
    np.testing.assert_allclose(got, want, atol=loose + allowed)


def real_eps(A):
    return np.finfo(A.dtype).eps
