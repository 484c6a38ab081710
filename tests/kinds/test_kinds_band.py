"""Permutations, offset diagonals, bands, triangles and the other small kinds against NumPy and
SciPy: solves, assumptions, limits, what closes to what."""

import numpy as np
import pytest
import ref
import scipy.linalg as sl
from samples import values

import pylinop as pl

floats = pytest.mark.parametrize("dtype", ref.FLOATS)


def close(got, want, *scales):
    """Relative to the sizes met on the way, in the precision of `got`."""
    size = np.prod([1.0, *(np.abs(s).max(initial=1) for s in scales)]) * want.shape[0]
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.all(np.abs(got - want) <= 100 * np.finfo(want.dtype).eps * max(size, 1))


def spd(rng, n, dtype, width=1):
    """A well-conditioned Hermitian matrix of that many diagonals on either side."""
    a = values(rng, (n, n), dtype)
    a = np.triu(np.tril(a + a.conj().T, width), -width)
    return a + 12 * (width + 1) * np.eye(n, dtype=dtype)


def right_sides(rng, n, dtype):
    yield values(rng, (n,), dtype)
    yield values(rng, (n, 3), dtype)
    yield np.asfortranarray(values(rng, (n, 2), dtype))
    yield values(rng, (n, 0), dtype)


def solves(A, a, rng, dtype):
    """A, A.T, A.H and conj(A) undo themselves."""
    n = a.shape[-1]
    for b in right_sides(rng, n, dtype):
        for B, m in ((A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())):
            close(pl.inv(B) @ b, np.linalg.solve(m, b).astype(dtype), b)


# ---- permutations ----


def test_permutations_close():
    rng = np.random.default_rng(0)
    p, q = rng.permutation(7), rng.permutation(7) - 7
    P, Q = pl.Permutation(p), pl.Permutation(q)
    x = rng.standard_normal((7, 2))
    for A, want in (
        (P @ Q, x[q][p]),
        (P.T, x[np.argsort(p)]),
        (pl.inv(Q), x[np.argsort(q % 7)]),
        ((P @ Q).H, x[np.argsort((q % 7)[p])]),
        (P.conj(), x[p]),
        (P.T @ P, x),
        (pl.inv(P.T @ Q), x[p][np.argsort(q % 7)]),
    ):
        assert type(A) is pl.Permutation
        np.testing.assert_array_equal(A @ x, want)
    assert (P @ np.arange(7)).dtype == np.int64
    np.testing.assert_array_equal((2 * P).T @ x, 2 * x[np.argsort(p)])


@pytest.mark.parametrize(
    "ask", ["P @ x", "P.T @ x", "pl.inv(P) @ x", "P.diagonal()", "(P @ P) @ x"]
)
def test_permutations_are_checked_on_each_call(ask):
    p, x = np.array([2, 0, 1]), np.ones(3)
    P = pl.Permutation(p)
    env = {"P": P, "x": x, "pl": pl}
    eval(ask, env)
    p[:] = [0, 1, 1]
    with pytest.raises(ValueError, match="1 at position 2 is there before"):
        eval(ask, env)
    p[:] = [0, 1, -2]
    with pytest.raises(ValueError, match="-2 at position 2"):
        eval(ask, env)
    p[:] = [0, 1, 3]
    with pytest.raises(IndexError, match="index 3 at position 2 is out of bounds for size 3"):
        eval(ask, env)
    p[:] = [1, 2, 0]
    eval(ask, env)


# ---- Diag with an offset or a shape ----


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_diag_is_numpys(k, n):
    d = np.arange(1.0, n + 1)
    D = pl.Diag(d, k)
    want = np.diag(d, k)
    assert type(D) is pl.Diag and D.k == k
    np.testing.assert_array_equal(D.toarray(), want)
    np.testing.assert_array_equal(D.T.toarray(), want.T)
    x = np.arange(2.0, 2 + len(want))
    np.testing.assert_array_equal(D @ x, want @ x)
    for A, a in ((D.T, want.T), (3 * D, 3 * want), (D + D, 2 * want), (D - 2 * D, -want)):
        assert type(A) is pl.Diag
        np.testing.assert_array_equal(A.toarray(), a)
    for other in (pl.Diag(np.ones(len(want))), pl.Identity(len(want)), pl.Diag(d, -k)):
        for A, a in ((D @ other, want @ other.toarray()), (other + D, other.toarray() + want)):
            np.testing.assert_array_equal(A.toarray(), a)
            np.testing.assert_array_equal(A.diagonal(), np.diagonal(a))
            assert A.trace() == np.trace(a)


@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (4, 4), (3, 0)])
def test_rectangular_diag(shape):
    for k in range(-shape[0] - 1, shape[1] + 2):
        want = np.zeros(shape)
        d = np.arange(1.0, 1 + len(np.diagonal(want, k)) if -shape[0] <= k <= shape[1] else 1)
        at = np.arange(len(d))
        want[at + max(-k, 0), at + max(k, 0)] = d
        D = pl.Diag(d, k, shape)
        np.testing.assert_array_equal(D.toarray(), want)
        np.testing.assert_array_equal((D.T @ D).toarray(), want.T @ want)
        with pytest.raises(ValueError, match=f"has {len(d)} elements, got {len(d) + 1}"):
            pl.Diag(np.ones(len(d) + 1), k, shape)
    assert pl.Diag(np.ones(4), 0, (4, 4))._head == "diag"


def test_diag_refuses():
    for bad in (1.5, None, "1", True):
        with pytest.raises(TypeError, match="expected an integer"):
            pl.Diag(np.ones(2), k=bad)
    with pytest.raises(ValueError):
        pl.Diag(np.ones(2), k=2**63 - 1)
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(pl.Diag(np.ones(2), k=1)) @ np.ones(3)


# ---- tridiagonal and banded ----


@floats
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 50])
def test_tridiagonal_solves(n, dtype, rng):
    dl, d, du = (values(rng, (k,), dtype) for k in (max(n - 1, 0), n, max(n - 1, 0)))
    a = (np.diag(d) + np.diag(dl, -1) + np.diag(du, 1)) if n > 1 else np.diag(d)
    if n and np.linalg.cond(a) > 1e3:
        d += 3
        a += 3 * np.eye(n, dtype=dtype)
    solves(pl.Tridiagonal(dl, d, du), a, rng, dtype)
    h = spd(rng, n, dtype)
    lower, upper = np.diag(h, -1) if n > 1 else dl, np.diag(h, 1) if n > 1 else du
    solves(pl.Tridiagonal(lower, np.diag(h), upper, "pos"), h, rng, dtype)


def test_tridiagonal_exchanges_rows():
    """Without exchanges the first pivot is zero, or tiny."""
    for first in (0.0, 1e-18):
        d = np.array([first, 1.0, 2.0, 0.0])
        T = pl.Tridiagonal([1.0, 3.0, 1.0], d, [2.0, 1.0, 1.0])
        b = np.array([1.0, 2.0, 3.0, 4.0])
        np.testing.assert_allclose(T @ (pl.inv(T) @ b), b, rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError, match="pivot 2 of 2 is exactly zero"):
        pl.inv(pl.Tridiagonal([1.0], [1.0, 1.0], [1.0])) @ np.ones(2)
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(pl.Tridiagonal([0.0], [0.0, 1.0], [1.0])) @ np.ones(2)


def test_a_false_assumption_falls_back():
    T = pl.Tridiagonal([5.0], [1.0, 1.0], [5.0], assume_a="pos")
    B = pl.Banded((1, 1), [[0.0, 5.0], [1.0, 1.0], [5.0, 0.0]], "pos")
    for A in (T, B):
        with pytest.warns(
            pl.FallbackWarning, match=r"assumed positive definite \(assume_a='pos'\) and is not"
        ):
            x = pl.inv(A) @ np.array([6.0, 6.0])
        np.testing.assert_allclose(x, [1, 1], rtol=1e-14)


@floats
def test_assumptions_read_the_upper_half(dtype, rng):
    n = 6
    h = spd(rng, n, dtype)
    b = values(rng, (n, 2), dtype)
    nans = np.full(n - 1, np.nan, dtype)
    T = pl.Tridiagonal(nans, np.diag(h), np.diag(h, 1), "pos")
    close(pl.inv(T) @ b, np.linalg.solve(h, b), b)
    close(pl.inv(T.H) @ b, np.linalg.solve(h, b), b)
    close(pl.inv(T.T) @ b, np.linalg.solve(h.T, b), b)
    close(pl.inv(2 * T) @ b, np.linalg.solve(2 * h, b), b)
    close(pl.inv(T + 3 * pl.Identity(n)) @ b, np.linalg.solve(h + 3 * np.eye(n, dtype=dtype), b), b)
    ab = np.vstack([np.append(0, np.diag(h, 1)), np.diag(h), np.append(nans, 0)]).astype(dtype)
    B = pl.Banded((1, 1), ab, "pos")
    close(pl.inv(B) @ b, np.linalg.solve(h, b), b)
    close(pl.inv(B.T) @ b, np.linalg.solve(h.T, b), b)


def test_tridiagonal_closes(rng):
    v = [values(rng, (k,), "complex128") for k in (4, 5, 4)]
    T, D = pl.Tridiagonal(*v), pl.Diag(values(rng, (5,), "float64"))
    t, d = T.toarray(), D.toarray()
    eye = np.eye(5)
    for A, a in (
        (T + T, 2 * t),
        (2j * T, 2j * t),
        (T.H, t.conj().T),
        (T + D, t + d),
        (D + T, t + d),
        (T + pl.Identity(5), t + eye),
        (T - 3 * pl.Identity(5), t - 3 * eye),
        (2 * pl.Identity(5) + T.T, t.T + 2 * eye),
    ):
        assert type(A) is pl.Tridiagonal
        np.testing.assert_allclose(A.toarray(), a, rtol=1e-14)
        x = values(rng, (5,), "complex128")
        np.testing.assert_allclose(pl.inv(A) @ x, np.linalg.solve(a, x), rtol=1e-9)
    R = pl.Tridiagonal([1.0], [4.0, 4.0], [1.0], "pos")
    for A, kept in ((3 * R, "3"), (-R, "2"), (R + R, "3"), (R + pl.Diag([1.0, 1.0]), "2")):
        assert A._text.startswith(f"(tridiagonal:{kept},"), A._text
    assert (1j * R)._text.startswith("(tridiagonal:0,")


@floats
@pytest.mark.parametrize("lu", [(0, 0), (1, 0), (0, 2), (2, 1), (3, 3), (7, 9)])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_banded_is_scipys(lu, n, dtype, rng):
    lower, upper = lu
    ab = values(rng, (lower + upper + 1, n), dtype)
    ab[upper] += 6 * (lower + upper + 1)
    for k in range(-lower, upper + 1):  # what lies outside is not used
        ab[upper - k, : max(k, 0)] = np.nan
        ab[upper - k, max(n + min(k, 0), 0) :] = np.nan
    B = pl.Banded(lu, ab)
    a = B.toarray()
    assert a.shape == (n, n) and np.all(np.isfinite(a))
    for i in range(n):
        for j in range(n):
            inside = -upper <= i - j <= lower
            assert a[i, j] == (ab[upper + i - j, j] if inside else 0)
    for x in right_sides(rng, n, dtype):
        close(B @ x, a @ x, x, ab[upper])
        close(B.H @ x, a.conj().T @ x, x, ab[upper])
        if max(lower, upper) < n and x.size:
            want = sl.solve_banded(lu, np.nan_to_num(ab), x)
            close(pl.inv(B) @ x, want.astype(dtype), x)
    solves(B, a, rng, dtype)
    if lower == upper:
        h = spd(rng, n, dtype, lower)
        hb = np.zeros_like(ab)
        for k in range(-min(lower, n - 1), min(lower, n - 1) + 1):
            hb[upper - k, max(k, 0) : n + min(k, 0)] = np.diag(h, k)
        P = pl.Banded(lu, hb, assume_a="pos")
        solves(P, h, rng, dtype)
        b = values(rng, (n, 2), dtype)
        if lower < n:
            close(pl.inv(P) @ b, sl.solveh_banded(hb[: upper + 1], b).astype(dtype), b)


def test_banded_refuses():
    for bad, error in (((1,), TypeError), (3, TypeError), ((1, -1), ValueError)):
        with pytest.raises(error):
            pl.Banded(bad, np.ones((3, 4)))
    with pytest.raises(ValueError, match="l = 1 and u = 2 .* got 3"):
        pl.Banded((1, 2), np.ones((3, 4)))
    with pytest.raises(ValueError, match="as many diagonals below as above, got 1 and 0"):
        pl.Banded((1, 0), np.ones((2, 4)), "pos")
    with pytest.raises(np.linalg.LinAlgError, match="exactly zero"):
        pl.inv(pl.Banded((0, 1), [[0.0, 1.0], [1.0, 0.0]])) @ np.ones(2)
    with pytest.raises(ValueError, match="3 elements goes with 2 below and above, got 3 and 2"):
        pl.Tridiagonal(np.ones(3), np.ones(3), np.ones(2))


def test_factors_follow_the_array(rng):
    ab = values(rng, (3, 5), "float64")
    ab[1] += 9
    B, b = pl.Banded((1, 1), ab), np.ones(5)
    first = pl.inv(B) @ b
    ab[1] *= 2
    again = pl.inv(B) @ b
    assert not np.allclose(first, again)
    np.testing.assert_allclose(B @ again, b, rtol=1e-13)


def test_batches_of_bands(rng):
    d = values(rng, (3, 1, 4), "float64") + 9
    T = pl.Tridiagonal(values(rng, (3,), "float64"), d, values(rng, (2, 3), "float64"))
    assert T.shape == (3, 2, 4, 4)
    b = values(rng, (4, 2), "float64")
    np.testing.assert_allclose(pl.inv(T) @ b, np.linalg.solve(T.toarray(), b), rtol=1e-12)
    B = pl.Banded((1, 2), values(rng, (2, 4, 5), "complex128") + 4)
    b = values(rng, (3, 1, 5, 2), "complex128")
    np.testing.assert_allclose(pl.inv(B) @ b, np.linalg.solve(B.toarray(), b), rtol=1e-9)


# ---- triangular, full, Householder ----


@floats
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 64, 65, 150])
def test_the_other_triangle_is_never_read(n, lower, unit, dtype, rng):
    a = values(rng, (n, n), dtype) / max(n, 1) + 2 * np.eye(n, dtype=dtype)
    t = np.tril(a) if lower else np.triu(a)
    a[~np.tri(n, n, 0 if lower else -1, dtype=bool) if lower else np.tri(n, n, -1, bool)] = np.nan
    if unit:
        np.fill_diagonal(a, np.nan)
        np.fill_diagonal(t, 1)
    for memory in (a, np.asfortranarray(a)):
        A = pl.Triangular(memory, lower, unit)
        for B, b in ((A, t), (A.T, t.T), (A.H, t.conj().T), (A.conj(), t.conj())):
            assert type(B) is pl.Triangular
            np.testing.assert_array_equal(B.toarray(), b)
            np.testing.assert_array_equal(B.diagonal(-1), np.diagonal(b, -1))
            assert n == 0 or B[n - 1, 0] == b[n - 1, 0]
            for x in (values(rng, (n,), dtype), values(rng, (n, 7), dtype)):
                close(B @ x, b @ x, x)
                if n:
                    want = sl.solve_triangular(b, x, lower=np.allclose(b, np.tril(b)))
                    close(pl.inv(B) @ x, want.astype(dtype), x)
    if n:
        T = pl.Triangular(np.where(np.isnan(a), 0, a), lower, unit)
        assert not isinstance(T @ T, pl.Triangular)
        close((T @ T).toarray(), t @ t, t)


def test_triangular_refuses():
    a = np.eye(4)
    a[2, 2] = 0
    with pytest.raises(np.linalg.LinAlgError, match="element 2 of the diagonal is exactly zero"):
        pl.inv(pl.Triangular(a)) @ np.ones(4)
    np.testing.assert_array_equal(pl.inv(pl.Triangular(a, True, True)) @ np.ones(4), np.ones(4))
    with pytest.raises(ValueError, match=r"square, got shape \(3, 4\)"):
        pl.Triangular(np.ones((3, 4)))
    with pytest.raises(TypeError, match="lower=1.0"):
        pl.Triangular(a, 1.0)


@pytest.mark.parametrize("c", [2, 2.5, 1 - 2j, True, np.float32(0.1), np.int8(3), np.complex64(1j)])
def test_full(c, rng):
    F = pl.Full((3, 5), c)
    weak = type(c) in (int, float, complex, bool)
    dt = np.dtype(complex if type(c) is complex else float) if weak else np.dtype(type(c))
    want = np.full((3, 5), c, dt)
    assert F.dtype == dt and F.c is c
    np.testing.assert_array_equal(F.toarray(), want)
    for other in ("float32", "complex128", "int8", "bool"):
        x = values(rng, (5, 2), other)
        result = np.result_type(c if weak and type(c) is not bool else x.dtype if weak else dt, x)
        if weak and result.kind in "iu" and other == "bool":
            continue
        got = F @ x
        assert got.dtype == result, (got.dtype, result)
        np.testing.assert_allclose(got, np.full((3, 5), c, result) @ x.astype(result), 1e-5, 1e-6)
    for A, a in ((F.T, want.T), (F.H, want.conj().T), (3 * F, 3 * want), (2j * F, 2j * want)):
        assert type(A) is pl.Full and A.dtype == a.dtype
        np.testing.assert_array_equal(A.toarray(), a)
    np.testing.assert_allclose(pl.Full((4, 4), c).trace(), np.trace(np.full((4, 4), c, dt)))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_full_passes_what_is_not_finite(bad):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(pl.Full((2, 2), bad) @ np.ones(2), [2 * bad] * 2)
        np.testing.assert_array_equal((2 * pl.Full((2, 2), bad)).toarray(), np.full((2, 2), bad))
    with pytest.raises(TypeError, match="expected a number"):
        pl.Full((2, 2), "1")


@floats
def test_householder(dtype, rng):
    v = values(rng, (6,), dtype)
    H = pl.Householder(v)
    h = np.eye(6, dtype=dtype) - 2 / np.vdot(v, v).real * np.outer(v, v.conj())
    assert H.dtype == dtype
    close(H.toarray(), h.astype(dtype))
    close((H @ H).toarray(), np.eye(6, dtype=dtype))
    assert type(pl.inv(H)) is type(H.H) is type(H.T) is pl.Householder
    x = values(rng, (6, 3), dtype)
    close(pl.inv(H) @ (H @ x), x, x)
    close(pl.inv(H.T) @ (H.T @ x), x, x)
    tau = values(rng, (1,), dtype)[0]
    K, k = pl.Householder(v, tau), np.eye(6, dtype=dtype) - tau * np.outer(v, v.conj())
    for B, b in ((K, k), (K.T, k.T), (K.H, k.conj().T), (K.conj(), k.conj())):
        close(B @ x, b @ x, x, v, v)
        np.testing.assert_allclose(B.diagonal(1), np.diagonal(b, 1), rtol=1e-5)
    close(
        pl.inv(pl.Householder(v, 0.01)) @ x,
        np.linalg.solve(np.eye(6) - 0.01 * np.outer(v, v.conj()), x).astype(dtype),
        x,
        v,
        v,
    )
    assert pl.Householder(v, 0.5).dtype == dtype


def test_householder_is_scaled_and_late():
    for size in (1e-300, 1e-170, 1e170, 1e300):
        H = pl.Householder(np.array([3 * size, 4 * size]))
        np.testing.assert_allclose(H @ np.array([1.0, 2.0]), [-1.64, -1.52], rtol=1e-14)
    v = np.array([0.0, 0.0])
    H = pl.Householder(v)
    with pytest.raises(np.linalg.LinAlgError, match="zero vector"):
        H @ np.ones(2)
    v[:] = [1, 0]
    np.testing.assert_array_equal(H @ np.ones(2), [-1, 1])


# ---- differences and grids ----


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 7])
def test_differences_are_numpys(n, order, rng):
    for kind in ("forward", "backward"):
        D = pl.FiniteDifference(n, order, kind)
        for x in (values(rng, (n,), "float64"), rng.integers(-9, 9, (n, 3), dtype="int8")):
            want = np.diff(x, order, axis=0)
            assert (D @ x).dtype == x.dtype
            np.testing.assert_allclose(D @ x, want, atol=1e-12)
        np.testing.assert_array_equal(D.toarray(), np.diff(np.eye(n), order, axis=0))
        assert D.kind == kind and D.boundary == "valid" and D.order == order


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_differences_converge(order):
    """On a smooth periodic function each kind has its order of accuracy."""
    derivative = [np.cos, np.sin, np.cos, np.sin][order - 1]
    sign = [1, -1, -1, 1][order - 1]
    for kind, accuracy in (("forward", 1), ("backward", 1), ("central", 2)):
        errors = []
        for n in (64, 128):
            t = 2 * np.pi * np.arange(n) / n
            D = pl.FiniteDifference(n, order, kind, "periodic")
            errors.append(np.abs(D @ np.sin(t) / t[1] ** order - sign * derivative(t)).max())
        assert errors[0] / errors[1] > 0.9 * 2**accuracy
    zero = pl.FiniteDifference(6, 1, "central", "zero").toarray()
    np.testing.assert_array_equal(zero, (np.eye(6, k=1) - np.eye(6, k=-1)) / 2)
    np.testing.assert_array_equal(
        pl.FiniteDifference(4, 1, "backward", "zero").toarray(), np.eye(4) - np.eye(4, k=-1)
    )


def test_differences_refuse():
    for args, error in (
        ((-1,), ValueError),
        ((4, 51), ValueError),
        ((4, -1), ValueError),
        ((4, 1, "sideways"), ValueError),
        ((4, 1, 3), TypeError),
        ((4.5,), TypeError),
        ((4, 1, "central", "zero", "int8"), TypeError),
        ((4, 1, "forward", "zero", "uint8"), TypeError),
    ):
        with pytest.raises(error):
            pl.FiniteDifference(*args)
    assert pl.FiniteDifference(4, 1, "central").dtype == np.float64
    assert (pl.FiniteDifference(4, 1, "central") @ np.ones(4, "int8")).dtype == np.float64


@pytest.mark.parametrize("bc", ["dirichlet", "neumann", "periodic"])
@pytest.mark.parametrize("grid", [(5,), (2,), (3, 4), (2, 2), (2, 3, 4), (3, 2, 2, 2)])
def test_laplacian_is_scipys(grid, bc, rng):
    from scipy.sparse.linalg import LaplacianNd

    S, L = LaplacianNd(grid, boundary_conditions=bc), pl.Laplacian(grid, bc)
    want = S.toarray()
    assert L.shape == S.shape and L.dtype == want.dtype == np.int8
    np.testing.assert_array_equal(L.toarray(), want)
    np.testing.assert_array_equal(L.T.toarray(), want)
    n = want.shape[0]
    for k in range(-n, n + 1):
        np.testing.assert_array_equal(L.diagonal(k), np.diagonal(want, k))
    assert L.trace() == np.trace(want.astype(int)) and L[n - 1, 0] == want[n - 1, 0]
    for x in (
        values(rng, (n,), "float64"),
        values(rng, (n, 3), "complex64"),
        np.asfortranarray(values(rng, (n, 4), "float32")),
        rng.integers(-9, 9, (n, 2), dtype="int16"),
    ):
        assert (L @ x).dtype == x.dtype
        np.testing.assert_allclose(L @ x, want @ x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(L @ x, S @ x, rtol=1e-5, atol=1e-5)
    values_of = np.linalg.eigvalsh(L.toarray().astype(float))
    assert values_of.max() < 1e-12
    np.testing.assert_allclose(np.sort(S.eigenvalues()), values_of, atol=1e-10)
    assert pl.Laplacian(grid, boundary_conditions=bc).boundary_conditions == bc


def test_laplacian_dtypes_and_refusals():
    L = pl.Laplacian((3, 2))
    assert L.dtype == np.int8 and L.grid_shape == (3, 2)
    assert pl.Laplacian(4, dtype=None).dtype == np.float64
    assert pl.Laplacian(4, "periodic", "float32").astype("complex64").dtype == np.complex64
    np.testing.assert_array_equal(pl.Laplacian((1, 3)).toarray(), pl.Laplacian(3).toarray())
    np.testing.assert_array_equal(pl.Laplacian(1, "dirichlet").toarray(), [[-2]])
    np.testing.assert_array_equal(pl.Laplacian(1, "periodic").toarray(), [[0]])
    for args, error in (
        (((),), ValueError),
        (((-1, 2),), ValueError),
        (("ab",), TypeError),
        ((4, "open"), ValueError),
        ((4, "neumann", "uint8"), TypeError),
        (((2**40, 2**40),), ValueError),
    ):
        with pytest.raises(error):
            pl.Laplacian(*args)


@floats
@pytest.mark.parametrize("bands", [(3, 0), (0, 2), (0, 0), (17, 0)])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_determinants_of_bands_on_one_side(bands, n, dtype, rng):
    """Exchanges of rows lost digits, half of them at a condition number of 1e10."""
    ab = values(rng, (sum(bands) + 1, n), dtype)
    ab[bands[1]] *= 2.0 ** rng.integers(-9, 9, n)
    B = pl.Banded(bands, ab)
    d = B.diagonal().astype("clongdouble" if np.iscomplexobj(ab) else "longdouble")
    want = np.sum(np.log(np.abs(d)))
    for C, conjugated in ((B, False), (B.T, False), (B.H, True)):
        sign, log = pl.slogdet(C)
        assert abs(log - want) <= 4 * n * np.finfo(dtype).eps * (
            1 + np.abs(np.log(np.abs(d))).max()
        )
        direction = np.prod(d / np.abs(d))
        direction = direction.conj() if conjugated else direction
        assert abs(sign - direction) <= 4 * n * np.finfo(dtype).eps
    zero = ab.copy()
    zero[bands[1], n // 2] = 0
    assert pl.slogdet(pl.Banded(bands, zero))[1] == -np.inf


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
@pytest.mark.parametrize("n", [2, 3, 16, 41])
def test_inverse_diagonals_of_bands_that_are_sums_of_integers(dtype, n, rng):
    """An inverse computes in floats, the sum of two parameters within it too: True + True is 2."""
    high = 2 if dtype == "bool" else 100
    d = rng.integers(high // 2, high, n).astype(dtype)
    e = rng.integers(0, 2, (2, n - 1)).astype(dtype)
    e[1] *= dtype != "bool"  # not singular then
    T = pl.Tridiagonal(e[0], d, e[1])
    B = pl.Banded((1, 1), np.vstack([np.r_[0, e[1]], d, np.r_[e[0], 0]]).astype(dtype))
    for A in (T + pl.Diag(d), T + pl.Identity(n), B + B, B + T):
        want = np.diag(pl.solve(A, np.eye(n)))
        np.testing.assert_allclose(pl.diagonal(pl.inv(A)), want, rtol=1e-12)
        np.testing.assert_allclose(pl.trace(pl.inv(A)), want.sum(), rtol=1e-12)
        np.testing.assert_allclose(pl.diagonal(pl.inv(A.T)), want, rtol=1e-12)
