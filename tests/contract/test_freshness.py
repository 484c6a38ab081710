"""Operands changed in place between calls: the answer is the new one, whatever had been derived."""

import copy

import numpy as np
import pytest
import ref
import scipy.sparse as sp
from samples import arrange, leaf, values

import pylinop as pl

BORROWING = [
    k for k in ref.KINDS if k not in ("Identity", "Zeros", "Full", "FiniteDifference", "Laplacian")
]


def arrays_of(d):
    for p in d[1:]:
        if isinstance(p, tuple):
            yield from arrays_of(p)
        elif sp.issparse(p):
            yield p.data
        elif isinstance(p, np.ndarray):
            yield p


def change(d, rng):
    """New content in the same memory, of the same sort."""
    for a in arrays_of(d):
        if a.dtype.kind in "iu":
            a[...] = np.roll(a, 1, axis=-1)
        else:
            a[...] = values(rng, a.shape, a.dtype)


def sparse(form, m, n, density):
    rng = np.random.default_rng(0)
    return sp.coo_array(np.where(rng.random((m, n)) < density, rng.random((m, n)), 0)).asformat(
        form
    )


def everything(A, x, y):
    return [
        A @ x,
        A @ x,
        y @ A,
        A.rmatvec(y),
        A.T @ y,
        A.toarray(),
        A.diagonal(),
        A.diagonal(1),
        A.trace(),
        A[1, 2],
        A.tosparse().toarray(),
        (A + A) @ x,
        (A.H @ A) @ x,
        (2 * A - A) @ x,
        np.asarray(A),
    ]


@pytest.mark.parametrize("kind", BORROWING)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("layout", ["C", "F", "negative", "strided", "misaligned", "swapped"])
def test_every_kind(kind, dtype, layout, rng):
    for m, n in ((6, 6), (4, 6)):
        d = leaf(kind, rng, m, n, dtype, layout=layout)
        if d is None:
            continue
        A = ref.build(d)
        S, P = A + A.conj(), A @ A.H
        x, y = values(rng, (n,), dtype), values(rng, (m,), dtype)
        for _ in range(3):
            got = everything(A, x, y) + [S @ x, P @ y, S.toarray(), P.trace()]
            again = ref.build(copy.deepcopy(d))
            want = everything(again, x, y) + [
                (again + again.conj()) @ x,
                (again @ again.H) @ y,
                (again + again.conj()).toarray(),
                (again @ again.H).trace(),
            ]
            u = 0 if layout == "C" else 1e3 * np.finfo(dtype).eps  # deep copies are compact
            for g, w in zip(got, want):
                np.testing.assert_allclose(g, w, rtol=0, atol=u * (1 + np.abs(w).max()))
            ref.check(got[0], ref.dense(d) @ x, None, ref.tolerance(d, x) @ np.abs(x))
            change(d, rng)


@pytest.mark.parametrize("n", [5, 300, 3000])
def test_spectra(n, rng):
    """A Toeplitz operator keeps the transform of its symbol."""
    c, r, x = (values(rng, (n,), "float64") for _ in range(3))
    T = pl.Toeplitz(c, r)
    S = T.T
    for i in (0, n // 2, n - 1):
        T @ x, S @ x
        c[i] += 1
        r[(i + 1) % n] -= 2
        np.testing.assert_array_equal(T @ x, pl.Toeplitz(c.copy(), r.copy()) @ x)
        np.testing.assert_array_equal(S @ x, pl.Toeplitz(c.copy(), r.copy()).T @ x)
    T @ x
    c[:] = 0
    r[:] = 0
    assert not np.any(T @ x)


@pytest.mark.parametrize("kind", ["Dense", "Diag", "Kron", "Toeplitz", "Sparse"])
def test_factors(kind, rng):
    """An inverse keeps its factors."""
    d = leaf(kind, rng, 6, 6, "float64", invertible=True)
    x = values(rng, (6,), "float64")
    A = ref.build(d)
    inverses = [pl.inv(A), pl.inv(A + A), pl.inv(A.T), pl.inv(A @ A), (pl.inv(A) @ A).T]
    for _ in range(3):
        first = [B @ x for B in inverses]
        for B, b in zip(inverses, first):
            np.testing.assert_array_equal(B @ x, b)  # the kept factor gives the same bits
        again = ref.build(copy.deepcopy(d))
        fresh = [
            pl.inv(again),
            pl.inv(again + again),
            pl.inv(again.T),
            pl.inv(again @ again),
            (pl.inv(again) @ again).T,
        ]
        for B, b in zip(fresh, first):
            np.testing.assert_array_equal(B @ x, b)
        np.testing.assert_allclose(A @ first[0], x, atol=1e-9)
        for a in arrays_of(d):
            a *= 1.5
        if kind == "Dense":
            d[1][2, 3] += 0.25  # one element among many


def test_one_plan_for_many(rng):
    """Operators built the same way share a plan, never what is derived from their numbers."""
    n = 2000
    made = [pl.Toeplitz(values(rng, (n,), "float64")) for _ in range(3)]
    x = values(rng, (n,), "float64")
    want = [T.toarray() @ x for T in made]
    for _ in range(2):
        for T, w in zip(made, want):
            S = 2.0 * T + T.T @ pl.Identity(n)  # anew each time
            np.testing.assert_allclose(S @ x, 2 * w + T.toarray().T @ x, atol=1e-10)
            np.testing.assert_allclose(T @ x, w, atol=1e-10)
    a = values(rng, (4, 4), "float64")
    A, B, y = pl.Dense(a), pl.Dense(a.T.copy()), x[:4]
    for P, p in (
        (A @ B, a @ a.T),
        (A @ A, a @ a),
        (B @ A, a.T @ a),
        (3 * A, 3 * a),
        (4 * A, 4 * a),
    ):
        np.testing.assert_allclose(P @ y, p @ y, rtol=1e-12, atol=1e-12)


def test_one_bit_is_seen(rng):
    a = values(rng, (200, 200), "float64") + 100 * np.eye(200)
    inv = pl.inv(pl.Dense(a))
    x = np.ones(200)
    before = inv @ x
    a[199, 0] = np.nextafter(a[199, 0], np.inf)
    np.testing.assert_array_equal(inv @ x, pl.inv(pl.Dense(a.copy())) @ x)
    a[199, 0] = np.nextafter(a[199, 0], -np.inf)
    np.testing.assert_array_equal(inv @ x, before)
    z = np.zeros(300)
    z[0] = 1
    T = pl.Toeplitz(z, z)
    y = T @ np.ones(300)
    z[1] = -0.0
    np.testing.assert_array_equal(T @ np.ones(300), y)


def test_memory_seen_through_other_arrays(rng):
    base = values(rng, (400, 2), "float64")
    T = pl.Toeplitz(base[:, 0], base[:, 1])
    x = np.ones(400)
    T @ x
    base *= 2
    np.testing.assert_array_equal(T @ x, pl.Toeplitz(base[:, 0].copy(), base[:, 1].copy()) @ x)
    locked = base[:, 0]
    locked.flags.writeable = False  # read-only here, writeable there
    T = pl.Toeplitz(locked)
    T @ x
    base[3, 0] += 1
    np.testing.assert_array_equal(T @ x, pl.Toeplitz(base[:, 0].copy()) @ x)


def test_frozen_and_copied_operands_stay(rng):
    a, x = values(rng, (4, 4), "float64"), np.ones(4)
    f = pl.freeze(a)
    assert isinstance(f, np.ndarray) and not f.flags.writeable and not np.shares_memory(f, a)
    with pytest.raises(ValueError):
        f.flags.writeable = True
    with pytest.raises(ValueError):
        f[0, 0] = 1
    assert np.shares_memory(pl.freeze(f), f)  # once is enough
    A, B, C = pl.Dense(f), pl.Dense(a, copy=True), pl.Dense(a)
    D, d = pl.Diag(a[0], copy=True), a[0].copy()
    want, inverse = a @ x, pl.inv(A) @ x
    C @ x
    a += 1
    np.testing.assert_allclose(A @ x, want)
    np.testing.assert_allclose(B @ x, want)
    np.testing.assert_array_equal(pl.inv(A) @ x, inverse)
    np.testing.assert_array_equal(D @ x, d)
    np.testing.assert_allclose(C @ x, a @ x)


def test_a_changed_shape_or_dtype_raises():
    a, x = np.ones((4, 6)), np.ones(6)
    A = pl.Dense(a)
    A @ x
    a.resize((6, 4), refcheck=False)
    with pytest.raises(ValueError, match="shape|changed"):
        A @ x
    a.resize((4, 6), refcheck=False)
    np.testing.assert_array_equal(A @ x, np.full(4, 6.0))
    d = np.ones(4)
    D = pl.Diag(d)
    D @ d
    d.resize((2,), refcheck=False)
    for use in (
        lambda: D @ np.ones(4),
        lambda: D.diagonal(),
        lambda: (D + D) @ np.ones(4),
        lambda: D[3, 3],
    ):
        with pytest.raises(ValueError, match="shape|changed"):
            use()


def test_indices_are_checked_on_each_call(rng):
    index = np.array([0, 2, 1])
    S = pl.Selection(index, 3)
    S @ np.ones(3)
    for bad in (3, -4, 2**40, -(2**62)):
        index[1] = bad
        for use in (
            lambda: S @ np.ones(3),
            lambda: np.ones(3) @ S,
            lambda: S.toarray(),
            lambda: (S @ S) @ np.ones(3),
            lambda: S.T @ np.ones((3, 2)),
            lambda: S.diagonal(),
            lambda: S.trace(),
        ):
            with pytest.raises((IndexError, ValueError)):
                use()
    index[1] = 2
    np.testing.assert_array_equal(S @ np.arange(3.0), [0, 2, 1])
    for form in ("csr", "csc", "coo"):
        A = sparse(form, 5, 4, 0.7)
        B, x = pl.Sparse(A), np.ones(4)
        want = B @ x
        indices = [A.indices] if form != "coo" else list(A.coords)
        for a in indices + ([A.indptr] if form != "coo" else []):
            for at in (0, len(a) // 2, len(a) - 1):
                keep = a[at]
                for bad in (2**30, -1, -(2**31), 100):
                    a[at] = bad
                    try:  # an error, or an answer from within bounds; never a crash
                        B @ x, np.ones(5) @ B, B.toarray(), B.diagonal(), B[0, 0], B.trace()
                    except (IndexError, ValueError):
                        pass
                    if bad == 2**30 and any(a is i for i in indices):
                        with pytest.raises((IndexError, ValueError), match="5 x 4|(5, 4)"):
                            B @ x
                a[at] = keep
        np.testing.assert_array_equal(B @ x, want)


def test_sparse_is_borrowed(rng):
    for form in ("csr", "csc", "coo"):
        A = sparse(form, 50, 40, 0.2)
        B = pl.Sparse(A)
        x = np.ones(40)
        first = B @ x
        A.data *= 3
        np.testing.assert_allclose(B @ x, 3 * first, rtol=1e-13)
        np.testing.assert_allclose(B @ x, A @ x, rtol=1e-13)


def test_layouts_may_change_under_an_operator(rng):
    """Pointer, strides and content are read anew at each call."""
    a = values(rng, (4, 4), "float64")
    A = pl.Dense(a)
    B = pl.inv(A)
    x = np.ones(4)
    first = A @ x, B @ x
    b = arrange(a, "C")
    a[...] = b.T
    np.testing.assert_allclose(A @ x, b.T @ x)
    np.testing.assert_allclose(B @ x, np.linalg.solve(b.T, x))
    a[...] = b
    np.testing.assert_array_equal(A @ x, first[0])
    np.testing.assert_array_equal(B @ x, first[1])
