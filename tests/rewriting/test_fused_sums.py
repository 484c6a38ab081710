"""Sums whose parts fuse_sums.c joins, on both sides of its threshold of 16 rows and columns."""

import itertools
import mmap

import numpy as np
import pytest

import pylinop as pl

SIGNS = list(itertools.product((1, -1), repeat=3))
LEFT = {
    "lazy": lambda a: (pl.lazy(a), a),
    "Dense": lambda a: (pl.Dense(a), a),
    "Diag": lambda a: (pl.Diag(a[0]), np.diag(a[0])),
    "Toeplitz": lambda a: (pl.Toeplitz(a[0]), pl.Toeplitz(a[0]).toarray()),
    "product": lambda a: (pl.Dense(a) @ pl.Dense(a.T), a @ a.T),
}


def combine(signs, parts):
    total = None
    for sign, part in zip(signs, parts):
        if total is None:
            total = part if sign == 1 else -part
        else:
            total = total + part if sign == 1 else total - part
    return total


@pytest.mark.parametrize("n", [15, 16, 17, 40])
@pytest.mark.parametrize("kinds", list(itertools.product(LEFT, repeat=3)), ids="-".join)
def test_sums_of_three_with_signs(rng, kinds, n):
    if "lazy" in kinds and set(kinds) != {"lazy"}:
        kinds = ["Dense" if kind == "lazy" else kind for kind in kinds]
    made = [LEFT[kind](a) for kind, a in zip(kinds, rng.standard_normal((3, n, n)))]
    x = rng.standard_normal((n, n))
    for signs in SIGNS:
        expected = combine(signs, [dense for _, dense in made])
        formula = combine(signs, [part for part, _ in made])
        np.testing.assert_allclose(np.asarray(formula.toarray()), expected, atol=1e-11)
        np.testing.assert_allclose(np.asarray(formula @ x), expected @ x, atol=1e-10)


@pytest.mark.parametrize("n", [15, 16, 17, 40])
def test_parts_of_other_expressions(rng, n):
    a, b, c = rng.standard_normal((3, n, n))
    A, B = pl.Dense(a), pl.Dense(b)
    D, E = pl.Diag(a[0]), pl.Diag(5 + c[0])
    dd, de = np.diag(a[0]), np.diag(5 + c[0])
    made = (pl.Diag(c[0]) + A @ (B - D)).toarray()
    np.testing.assert_allclose(made, np.diag(c[0]) + a @ (b - dd), atol=1e-11)
    system = a - dd @ b + de
    x = pl.solve(A - D @ B + E, np.ones(n))
    np.testing.assert_allclose(system @ x, np.ones(n), atol=1e-9)
    np.testing.assert_allclose(pl.slogdet(A - D @ B + E), np.linalg.slogdet(system), rtol=1e-9)


@pytest.mark.parametrize("n", [15, 16, 17, 40])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_transposed_product_in_a_sum_that_is_a_block(n, batch, rng):
    """The product is made turned; a block of a larger array cannot be written so."""
    U, d = rng.standard_normal((*batch, n, 2)), rng.standard_normal((*batch, 2))
    A, B = rng.standard_normal((2, *batch, n, n))
    E = pl.Eigen(U, d)
    e = (U * d[..., None, :]) @ np.swapaxes(U, -1, -2)
    for op, want in (
        (pl.Block([[E + pl.Dense(A) @ E], [pl.Dense(B)]]), np.concatenate([e + A @ e, B], -2)),
        (pl.Block([[pl.Dense(B), E - pl.Dense(A) @ E]]), np.concatenate([B, e - A @ e], -1)),
        (pl.BlockDiag(E + 2 * pl.Dense(A) @ E, pl.Dense(B)), None),
    ):
        with pl.config(check_plans=True):
            got = op.toarray()
        if want is None:
            got, want = got[..., :n, :n], e + 2 * A @ e
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def rank_ones(rng, dtype, m, n, count):
    columns = rng.standard_normal((count, m, 1)).astype(dtype)
    rows = rng.standard_normal((count, 1, n)).astype(dtype)
    return columns, rows


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m, n", [(15, 16), (16, 15), (16, 16), (40, 70), (200, 33)])
def test_products_of_a_column_and_a_row_are_added_where_the_sum_is(rng, m, n, order, dtype):
    """The matrix is read once, in the pass of the first product or (complex) by a copy."""
    base = np.asarray(rng.standard_normal((m, n)), dtype, order=order)
    columns, rows = rank_ones(rng, dtype, m, n, 3)
    sum_, want = pl.lazy(base), base.astype("c16")
    for c, u, v in zip((1.0, -0.5, 2.0), columns, rows, strict=True):
        sum_ = sum_ + c * (pl.lazy(u) @ pl.lazy(v))
        want = want + c * (u.astype("c16") @ v.astype("c16"))
    with pl.explaining() as e:
        got = sum_.toarray()
    tol = 1e-5 if dtype == "f4" else 1e-13
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)
    names = [s["name"] for p in e.plans for s in p.steps]
    if min(m, n) >= 16:
        made = [s for s in names if s in ("start", "rank-one", "gemm-add")]
        first = ["start", "gemm-add"] if dtype == "c16" else ["rank-one"]
        assert made == [*first, "gemm-add", "gemm-add"]
    np.testing.assert_array_equal(base, np.asarray(base, order=order))


@pytest.mark.parametrize("n", [15, 16, 17, 60])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("out", ["new", "C", "F", "strided"])
@pytest.mark.parametrize("base", ["C", "F", "strided", "transposed", "read-only"])
def test_a_matrix_and_a_column_times_a_row_in_one_pass(rng, base, out, dtype, n):
    """Whatever the layouts are, the matrix itself stays as it was, and later writes are seen."""
    m = n + 3
    a = rng.standard_normal((n, m)).T if base == "transposed" else rng.standard_normal((m, n))
    a = a.astype(dtype, order="K" if base == "transposed" else "F" if base == "F" else "C")
    if base == "strided":
        a = np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3]
    u, v = rng.standard_normal((m, 1)).astype(dtype), rng.standard_normal((1, n)).astype(dtype)
    if base == "read-only":
        a.setflags(write=False)
    tol = 1e-5 if dtype == "f4" else 1e-13
    A, before = pl.Dense(a), a.copy()
    for op, want in (
        (A - 0.5 * (pl.Dense(u) @ pl.Dense(v)), lambda: a - 0.5 * (u @ v)),
        (A.T + (pl.Dense(u) @ pl.Dense(v)).T, lambda: a.T + (u @ v).T),
        (A + (pl.Dense(v).T @ pl.Dense(u).T).T, lambda: a + u @ v),
    ):
        for _ in range(2):
            if out == "new":
                y = op.toarray()
            else:
                y = np.full(op.shape[::-1] if out == "F" else op.shape, np.nan, dtype)
                y = y.T if out == "F" else y
                if out == "strided":
                    y = np.full((2 * op.shape[0], 2 * op.shape[1]), np.nan, dtype)[::2, ::2]
                np.matmul(op, np.eye(op.shape[1], dtype=dtype), out=y)
            np.testing.assert_allclose(y, want(), rtol=tol, atol=tol)
            np.testing.assert_array_equal(a, before)
            u += 1


def test_sums_with_products_take_little_memory_beside_the_result(rng):
    n = 300
    a, u, v = rng.standard_normal((n, n)), rng.standard_normal((n, 2)), rng.standard_normal((2, n))
    for dtype in ("f8", "c16"):
        A, U, V = (pl.lazy(x.astype(dtype)) for x in (a, u, v))
        with pl.explaining() as e:
            got = np.asarray(A - 0.5 * (U @ V))
        np.testing.assert_allclose(got, a - 0.5 * (u @ v), rtol=1e-12, atol=1e-12)
        size = got.nbytes
        assert sum(p.memory for p in e.plans) < size + size // 4


@pytest.mark.parametrize("n", [20, 1000])
def test_products_that_blas_cannot_add_go_some_rows_at_a_time(rng, n):
    """A factor whose rows lie too far apart for BLAS's integers; one piece of rows, and several."""
    m, apart = 17, 2**31 + 8
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        memory = mmap.mmap(-1, m * apart * 8, flags=flags)
    except (OSError, AttributeError, OverflowError):
        pytest.skip("so much address space is not to be had")
    u = np.ndarray((m, 3), "f8", memory, strides=(apart * 8, 8))
    u[:] = rng.standard_normal((m, 3))
    a, v = rng.standard_normal((m, n)), rng.standard_normal((3, n))
    got = np.asarray(pl.lazy(a) - 0.5 * (pl.lazy(u) @ pl.lazy(v)))
    np.testing.assert_allclose(got, a - 0.5 * (u @ v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_a_column_and_a_row_in_any_layout(rng, stride, turned):
    u, v = rng.standard_normal((60, 2))[:, :1], rng.standard_normal((1, 80))[:, ::stride]
    a = pl.Dense(u) @ pl.Dense(v)
    want = np.outer(u[:, 0], v[0])
    np.testing.assert_allclose((a.T if turned else a).toarray(), want.T if turned else want)
    y = np.full(want.shape, np.nan)
    np.matmul(pl.Dense(u), np.ascontiguousarray(v), out=y)
    np.testing.assert_allclose(y, want)


def test_a_sum_that_is_read_twice_is_not_built_over(rng):
    a, b = rng.standard_normal((2, 40, 40))
    u, v = rng.standard_normal((40, 1)), rng.standard_normal((1, 40))
    A, U, V, B = (pl.lazy(x) for x in (a, u, v, b))
    first = A + B @ B
    got = pl.evaluate(first, first + U @ V)
    np.testing.assert_allclose(got[0], a + b @ b)
    np.testing.assert_allclose(got[1], a + b @ b + u @ v)


@pytest.mark.parametrize("batch", [(), (1,), (1, 1), (2,)])
@pytest.mark.parametrize("n", [15, 16, 17])
def test_a_stack_of_one_plus_a_product(rng, n, batch):
    """The product is written transposed into the sum, whose shape has a leading one more."""
    a = rng.standard_normal((*batch, n, n)) + 1j
    u, v = rng.standard_normal((2, n, 1)) * (1 + 2j)
    with pl.config(check_plans=True):
        for s in (2 - 1j, 3.0):
            got = (s * (pl.Dense(a) + pl.LowRank(u, v))).toarray()
            np.testing.assert_allclose(got, s * (a + u @ v.conj().T), rtol=1e-12, atol=1e-12)


def half_of(rng, n, dtype, layout, adjoint):
    """(an array whose upper triangle alone is the matrix, the matrix)"""
    a = rng.standard_normal((n, n)).astype(dtype)
    if dtype[0] == "c":
        a = a + (1j * rng.standard_normal((n, n))).astype(dtype)
    b = np.triu(a, 1)
    d = np.diag(a).real if adjoint else np.diag(a)
    whole = b + (b.conj().T if adjoint else b.T) + np.diag(d)
    a[np.tril_indices(n, -1)] = np.nan
    if layout == "F":
        a = np.asfortranarray(a)
    elif layout == "strided":
        a = np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3]
    return a, whole.astype(dtype)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("word", ["sym", "her"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 64, 65, 130, 521])
def test_two_halves_are_added_before_they_are_mirrored(rng, n, dtype, word, layout):
    """Bit by bit what the whole matrices add up to; what is not named is not seen."""
    (a, whole_a), (b, whole_b) = (half_of(rng, n, dtype, layout, word == "her") for _ in range(2))
    A, B = pl.lazy(a, assume_a=word), pl.lazy(b, assume_a=word)
    with pl.explaining() as e, pl.config(check_plans=True):
        got = np.asarray(A + B)
    assert [s["name"] for p in e.plans for s in p.steps] == ["add-halves"]
    np.testing.assert_array_equal(got, whole_a + whole_b)
    np.testing.assert_array_equal(got, np.asarray(pl.lazy(b, assume_a=word) + A))
    if word == "sym" and dtype[0] == "c":
        other, whole = half_of(rng, n, dtype, layout, True)
        mixed = np.asarray(A + pl.lazy(other, assume_a="her"))
        np.testing.assert_array_equal(mixed, whole_a + whole)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("n", [17, 64, 150, 300])
def test_sums_in_fast_branches_are_fused(rng, n, dtype):
    """A parallel sum: its check is not passed for nothing, nor is the fallback another value."""
    tol = 2e-3 if dtype == "f4" else 1e-9
    u = rng.standard_normal((2, n, n)).astype(dtype)
    P, Q = u @ u.conj().mT + n * np.eye(n, dtype=dtype)
    x, z = rng.standard_normal((2, n)).astype(dtype)
    for scale in (1.0, 1e-4):
        p, q = P.copy(), (scale * Q).astype(dtype)
        want = np.linalg.solve(
            np.linalg.inv(p) + np.linalg.inv(q), np.linalg.solve(p, x) + np.linalg.solve(q, z)
        )
        for a in (p, q):
            a[np.tril_indices(n, -1)] = np.nan
        lp, lq = pl.lazy(p, "pos"), pl.lazy(q, "pos")
        with pl.config(check_plans=True):
            got = np.asarray(pl.inv(pl.inv(lp) + pl.inv(lq)) @ (pl.inv(lp) @ x + pl.inv(lq) @ z))
        np.testing.assert_allclose(got, want, rtol=0, atol=tol * np.abs(want).max())


def test_a_factor_of_two_declared_halves_that_is_not_definite(rng):
    """Cholesky fails: LU takes the whole matrix."""
    for n in (5, 40, 200):
        (a, whole_a), (b, whole_b) = (half_of(rng, n, "f8", "C", True) for _ in range(2))
        x = rng.standard_normal(n)
        with pl.config(check="none"):
            got = np.asarray(pl.inv(pl.lazy(a, "pos") + pl.lazy(b, "pos")) @ x)
        np.testing.assert_allclose((whole_a + whole_b) @ got, x, rtol=0, atol=1e-9)
