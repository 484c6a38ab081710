"""Blocks of 2 x 2 with a diagonal block that is cheap to solve for: by its Schur complement,
checked; against the dense form."""

import numpy as np
import pytest
from drawn import figures

import pylinop as pl

P, Q = 40, 5


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def pivot(name, rng, dtype):
    d = (1 + rng.random(P)).astype(dtype)
    return {
        "diag": lambda: pl.Diag(d),
        "scaled": lambda: -2 * pl.Diag(d),
        "identity": lambda: pl.Identity(P),
        "kron": lambda: pl.Kron(values(rng, (4, 4), dtype), values(rng, (P // 4, P // 4), dtype)),
        "tridiagonal": lambda: pl.Tridiagonal(d[1:] / 4, d, d[1:] / 5),
        "circulant": lambda: pl.Circulant(np.r_[9, d[1:] / 8].astype(dtype)),
        "blocks": lambda: pl.BlockDiag(
            values(rng, (P - 3, P - 3), dtype), values(rng, (3, 3), dtype)
        ),
        "update": lambda: (
            pl.Diag(d) + pl.LowRank(values(rng, (P, 3), dtype), values(rng, (P, 3), dtype))
        ),
        "sum": lambda: (
            pl.Dense(values(rng, (P, 5), dtype)) @ pl.Dense(values(rng, (5, P), dtype))
            + pl.Tridiagonal(d[1:] / 4, d, d[1:] / 5)
        ),
    }[name]()


def bordered(A, rng, dtype, last=False, D=None):
    B, C = values(rng, (P, Q), dtype), values(rng, (Q, P), dtype)
    D = values(rng, (Q, Q), dtype) if D is None else D
    return pl.Block([[D, C], [B, A]] if last else [[A, B], [C, D]])


def eta(S, x, b):
    r = np.linalg.norm(b - S @ x, axis=-2)
    size = np.linalg.norm(S, 2, axis=(-2, -1))[..., None]
    return np.max(r / (size * np.linalg.norm(x, axis=-2) + np.linalg.norm(b, axis=-2)))


def check(A, dtype, rng):
    D = A.toarray()
    X = values(rng, (D.shape[-1], 3), dtype)
    u = np.finfo(D.dtype).eps / 2
    for op, dense in ((A, D), (A.T, D.swapaxes(-1, -2)), (A.H, D.conj().swapaxes(-1, -2))):
        x = pl.solve(op, X)
        assert x.dtype == np.result_type(D.dtype, dtype)
        assert eta(dense, x, X) <= 10 * len(X) * u
    wide = D.astype(np.result_type(D.dtype, np.float64))
    sign, log = pl.slogdet(A)
    exact_sign, exact_log = np.linalg.slogdet(wide)
    worst = 20 * len(X) * u * np.linalg.cond(wide).max()
    np.testing.assert_allclose(log, exact_log, rtol=0, atol=worst)
    np.testing.assert_allclose(sign, exact_sign, rtol=0, atol=worst)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "name",
    "diag scaled identity kron tridiagonal circulant blocks update sum".split(),
)
def test_agrees_with_the_dense_form(name, last, dtype, rng):
    A = bordered(pivot(name, rng, dtype), rng, dtype, last)
    check(A, dtype, rng)
    dense = name in ("update", "sum") and np.finfo(dtype).bits < 64  # too few digits to refine
    assert ("solve-bordered" in A.explain("solve", np.ones(P + Q, dtype)).fired) != dense
    assert pl.solve(A, np.ones(P + Q, dtype)).shape == (P + Q,)


def test_two_that_are_cheap(rng):
    """The larger is the pivot."""
    big, small = pivot("kron", rng, float), pl.Diag(1 + rng.random(12))
    B, C = rng.standard_normal((P, 12)), rng.standard_normal((12, P))
    for A in (pl.Block([[big, B], [C, small]]), pl.Block([[small, C], [B, big]])):
        check(A, float, rng)


def test_saddle_points(rng):
    B = rng.standard_normal((P, Q))
    A = pl.Block([[pl.Diag(1 + rng.random(P)), B], [pl.Dense(B).T, pl.Zeros((Q, Q))]])
    check(A, float, rng)


def test_batches(rng):
    D = pl.Diag(1 + rng.random((2, P)))
    A = pl.Block([[D, rng.standard_normal((3, 1, P, Q))], [rng.standard_normal((Q, P)), np.eye(Q)]])
    assert A.shape == (3, 2, P + Q, P + Q)
    check(A, float, rng)


@pytest.mark.parametrize("small", [0, 1e-14, 1e-9])
def test_a_pivot_that_is_all_but_singular(small, rng):
    """The whole is not: what the pivot loses is seen."""
    d = 1 + rng.random(P)
    d[3] = small
    check(bordered(pl.Diag(d), rng, float), float, rng)


def test_singular_ones_raise(rng):
    B = np.zeros((P, Q))
    B[0, :] = 1
    A = pl.Block([[pl.Identity(P), B], [pl.Dense(B).T, np.ones((Q, Q))]])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(A.toarray(), np.ones(P + Q))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        pl.solve(A, np.ones(P + Q))
    assert pl.slogdet(A) == (0, -np.inf)


def test_a_write_is_seen_and_bits_stay(rng):
    d, B = 1 + rng.random(P), rng.standard_normal((P, Q))
    A = pl.Block([[pl.Diag(d), B], [rng.standard_normal((Q, P)), np.eye(Q)]])
    b = rng.standard_normal(P + Q)
    cold = pl.solve(A, b)
    pl.slogdet(A)
    assert np.array_equal(cold, pl.solve(A, b))
    for change in (lambda: d.__imul__(2), lambda: B.__setitem__((1, 1), 7.0)):
        change()
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-9)
        assert pl.slogdet(A)[1] == pytest.approx(np.linalg.slogdet(A.toarray())[1])


def test_large_ones_are_not_formed(rng):
    """Dense it would take 80 GB."""
    n = 100_000
    d, B = 1 + rng.random(n), rng.standard_normal((n, 3))
    A = pl.Block([[pl.Diag(d), B], [pl.Dense(B).T, pl.Zeros((3, 3))]])
    b = rng.standard_normal(n + 3)
    x = pl.solve(A, b)
    assert np.linalg.norm(A @ x - b) <= 1e-12 * np.linalg.norm(b)
    sign, log = np.linalg.slogdet(-B.T @ (B / d[:, None]))
    assert pl.slogdet(A)[0] == sign
    assert pl.slogdet(A)[1] == pytest.approx(log + np.log(d).sum(), rel=1e-12)


def corners(A, cuts=(slice(None, P), slice(P, None))):
    return [pl.inv(A)[cut, cut] for cut in cuts]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", ["diag", "tridiagonal", "kron", "circulant"])
def test_corners_of_the_inverse(kind, dtype):
    """By the Schur complement, on verified plans: none of P rows is factored densely."""
    r = np.random.default_rng(4)
    A = pivot(kind, r, dtype)
    B, D = values(r, (P, Q), dtype) / 9, pl.Dense(values(r, (Q, Q), dtype) + 9 * np.eye(Q))
    M = pl.Block([[A, B], [B.T.copy(), D]])
    whole = np.linalg.inv(M.toarray())
    b = values(r, P + Q, dtype)
    for cut, op in zip((slice(None, P), slice(P, None)), corners(M), strict=True):
        a = whole[cut, cut]
        asked = (
            (lambda X: pl.solve(X, b[cut]), np.linalg.solve(a, b[cut])),
            (pl.slogdet, np.linalg.slogdet(a)),
            (lambda X: pl.inv(X).diagonal(), np.diagonal(np.linalg.inv(a))),
            (lambda X: X.diagonal(), np.diagonal(a)),
            (lambda X: X.trace(), np.trace(a)),
            (lambda X: X.toarray(), a),
        )
        for ask, want in asked:
            x, flops = figures(ask, op)
            most = 1e-12 * np.linalg.cond(M.toarray())
            for got, w in zip(np.atleast_1d(x), np.atleast_1d(want), strict=True):
                assert np.abs(got - w).max() <= most * max(np.abs(w).max(), 1)
            most = 0.6 * (P + Q) ** 3  # LU and an inverse: 2 and more
            assert flops <= most or kind == "circulant", (kind, flops)  # transforms of 40 columns


@pytest.mark.parametrize("small", [1e-4, 1e-10, 1e-15, 0.0])
@pytest.mark.parametrize("where", [0, 1])
def test_corners_beside_nearly_singular_blocks(small, where):
    """Of a pivot that is (nearly) singular while the whole is not: checked, as LU of the whole."""
    r = np.random.default_rng(9)
    d = 1 + r.random(P)
    d[3] = small
    B, D = r.standard_normal((P, Q)), r.standard_normal((Q, Q))
    M = pl.Block([[pl.Diag(d), B], [B.T.copy(), pl.Dense(D)]])
    whole = np.linalg.inv(M.toarray())
    cut = (slice(None, P), slice(P, None))[where]
    op, a = pl.inv(M)[cut, cut], whole[cut, cut]
    most = 1e-12 * np.linalg.cond(M.toarray()) * np.abs(whole).max()
    with pl.config(check_plans=True, verify=True):
        assert np.abs(op.diagonal() - np.diagonal(a)).max() <= most
        assert np.abs(op.toarray() - a).max() <= most
        assert abs(op.trace() - np.trace(a)) <= P * most
    if where == 0:
        return
    if small == 0:  # det A = 0: then the corner has no inverse
        assert pl.slogdet(op)[1] == -np.inf
        with pytest.raises(np.linalg.LinAlgError):
            pl.solve(op, np.ones(Q))
    else:
        want = np.log(np.abs(np.prod(d))) - np.linalg.slogdet(M.toarray())[1]
        assert abs(pl.slogdet(op)[1] - want) <= 1e-9
        y = pl.solve(op, np.ones(Q))
        want = D @ np.ones(Q) - B.T @ ((B @ np.ones(Q)) / d)
        assert np.abs(y - want).max() <= 1e-12 * np.abs(want).max()


def test_what_is_no_corner():
    """Other cuts, other grids, rectangles within: as before."""
    r = np.random.default_rng(1)
    A, D = pl.Diag(2 + r.random(8)), pl.Dense(r.standard_normal((6, 6)) + 9 * np.eye(6))
    B, C = r.standard_normal((8, 6)), r.standard_normal((6, 8))
    M = pl.Block([[A, B], [C, D]])
    whole = np.linalg.inv(M.toarray())
    for rows, cols in (
        (slice(0, 7), slice(0, 7)),
        (slice(1, 8), slice(1, 8)),
        (slice(0, 8), slice(8, 14)),
        (slice(0, 8, 2), slice(0, 8, 2)),
        (slice(8, 14), slice(8, 13)),
        (slice(14, 14), slice(14, 14)),
    ):
        op = pl.inv(M)[rows, cols]
        assert np.abs(op.toarray() - whole[rows, cols]).max(initial=0) <= 1e-12
        d = np.diagonal(whole[rows, cols])
        assert np.abs(op.diagonal() - d).max(initial=0) <= 1e-12
    N = pl.Block([[np.eye(3), np.zeros((3, 2))], [np.ones((2, 3)), 2 * np.eye(2)]])
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(N @ pl.Zeros((5, 5)))[:3, :3].toarray()


@pytest.mark.parametrize("small", [1e-2, 1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_updates_near_singular_ones(small, dtype, rng):
    """Of I - u u^H much nearer to a singular matrix than the whole: solved with by an update, whose
    errors determinants and diagonals of the inverse would see squared."""
    n, q = 200, 2
    u = values(rng, (n, 1), dtype)
    u *= (1 - small) / np.linalg.norm(u)
    B, C, D = (values(rng, shape, dtype) for shape in ((n, q), (q, n), (q, q)))
    M = pl.Block([[pl.Identity(n) - pl.LowRank(u, u), B], [C, D]])
    wide = M.toarray().astype(np.complex128)
    inv, digits = np.linalg.inv(wide), 40 * np.linalg.cond(wide) * np.finfo(dtype).eps
    b = values(rng, (n + q, 3), dtype)
    x = np.linalg.solve(wide, b)
    assert np.linalg.norm(pl.solve(M, b) - x) <= 2 * digits * np.linalg.norm(x)
    assert np.max(np.abs(pl.diagonal(pl.inv(M)) - np.diagonal(inv))) <= digits * np.abs(inv).max()
    assert abs(pl.trace(pl.inv(M)) - np.trace(inv)) <= digits * np.sum(np.abs(np.diagonal(inv)))
    assert abs(pl.slogdet(M)[1] - np.linalg.slogdet(wide)[1]) <= digits


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("cut", [slice(None, P), slice(P, None)])
@pytest.mark.parametrize("small", [1.0, 1e-6, 1e-14])
def test_between_two_diagonals(small, cut, dtype):
    """A Hermitian Block: a corner costs what its complement, written out, does; also where the
    block that is not asked for is nearly singular."""
    r = np.random.default_rng()
    d, e = (2 + r.random(P)).astype(dtype), (2 + r.random(P)).astype(dtype)
    (d if cut.start else e)[7] = small
    B = pl.Dense(values(r, (P, P), dtype) / 9)
    M = pl.Block([[pl.Diag(d), B], [B.H, pl.Diag(e)]])
    D, E, C = (pl.Diag(e), pl.Diag(d), B.H) if cut.start else (pl.Diag(d), pl.Diag(e), B)
    X, Y = pl.inv(M)[cut, cut], pl.inv(D - C @ pl.inv(E) @ C.H)
    m = M.toarray().astype(np.result_type(dtype, "float64"))
    whole, x = np.linalg.inv(m), values(r, P, dtype)
    most = 20 * P * np.finfo(dtype).eps * np.linalg.cond(m) * np.abs(whole).max()
    a = whole[cut, cut]
    with pl.config(check_plans=True, verify=True):
        for got, want in (
            (X.toarray(), a),
            (X.diagonal(), np.diagonal(a)),
            (X @ x, a @ x),
        ):
            assert np.abs(got - want).max() <= most * max(1, np.abs(x).sum())
    for ask in ("dense", "diagonal", "trace", "logdet"):
        assert X.explain(ask).flops <= 1.5 * Y.explain(ask).flops + 60 * P * P
    assert pl.inv(X).explain("diagonal").flops <= 10 * P * P


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("cut", [slice(None, 12), slice(12, None)])
@pytest.mark.parametrize("small", [0.0, 1e-6, 1e-14])
def test_beside_a_definite_block(small, cut, dtype):
    """A corner by the other block's Cholesky factor, whatever the sign of the whole; checked where
    that block is nearly singular."""
    r, n = np.random.default_rng(), 12 + P
    x = values(r, (n, n), dtype)
    a = (x @ x.conj().T / n + np.eye(n)).astype(dtype)
    if small:  # one direction of the other block
        q = slice(12, None) if cut.start is None else slice(0, 12)
        w, v = np.linalg.eigh(a[q, q].astype(np.result_type(dtype, "float64")))
        w[0] = small if np.finfo(dtype).eps < small else 1e-3
        a[q, q] = (v * w) @ v.conj().T
    a = ((a + a.conj().T) / 2).astype(dtype)
    parts = a[:12, :12], a[:12, 12:], a[12:, 12:]
    B = pl.Dense(parts[1])
    M = pl.Block([[pl.Dense(parts[0], "pos"), B], [B.H, pl.Dense(parts[2], "pos")]])
    whole = np.linalg.inv(a.astype(np.result_type(dtype, "float64")))
    most = 40 * n * np.finfo(dtype).eps * np.linalg.cond(a) * np.abs(whole).max()
    X, want = pl.inv(M)[cut, cut], whole[cut, cut]
    with pl.config(check_plans=True):
        assert np.abs(X.toarray() - want).max() <= most
        assert np.abs(X.diagonal() - np.diagonal(want)).max() <= most
        assert abs(X.trace() - np.trace(want)) <= len(want) * most
    if cut.start is None:
        assert X.explain("dense").flops < n**3  # LU and an inverse: 2 and more


def test_few_diagonal_rows_beside_many():
    """Of a Block that is not Hermitian too the corner of the many rows is not made dense."""
    r, n, k = np.random.default_rng(3), 4000, 4
    M = pl.Block(
        [
            [pl.Diag(2 + r.random(n)), r.standard_normal((n, k)) / n],
            [r.standard_normal((k, n)) / n, pl.Diag(2 + r.random(k))],
        ]
    )
    X = pl.inv(M)[:n, :n]
    assert X.explain("diagonal").flops < 200 * n * k
