"""Determinants, solves, norms and kin against numpy.linalg on the dense form."""

import decimal
import inspect
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import ref
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import leaf, values
from test_properties import expressions

import pylinop as pl

ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
UNIT = 2.0**-53
LARGEST = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-9, "complex128": 1e-9}


@st.composite
def cases(draw, dtypes, square=True, batches=((),)):
    m = draw(st.integers(1, 6))
    n = m if square else draw(st.integers(1, 6))
    return draw(expressions(m, n, draw(st.integers(0, 4)), dtypes, batches))


def spread(d):
    """What rounding may change in the dense form: LU's and SVD's backward error is normwise."""
    tol = ref.tolerance(d)
    n = max(tol.shape[-2:])
    return 16 * n * tol + 4 * n * tol.max(axis=(-1, -2), keepdims=True)


def room(a, t):
    """How far a determinant can move when the entries move by t: Hadamard's inequality by rows."""
    rows, more = np.linalg.norm(a, axis=-1), np.linalg.norm(t, axis=-1)
    return np.prod(rows + more, axis=-1) - np.prod(rows, axis=-1) + 1e-30


# -- determinants --


@given(cases(ref.FLOATS))
def test_det(d):
    A, a = ref.build(d), ref.dense(d)
    want, off, dt = np.linalg.det(a), room(a, spread(d)), ref.dtype(d)
    got = pl.det(A)
    assert got.dtype == dt and np.shape(got) == ()
    assert abs(got - want) <= off + 1e-6 * abs(want) * (dt.itemsize < 8 or dt == "complex64")
    s = pl.slogdet(A)
    assert isinstance(s, type(np.linalg.slogdet(np.eye(1))))
    assert s.sign.dtype == dt and s.logabsdet.dtype == np.empty(0, dt).real.dtype
    assert abs(abs(s.sign) - (got != 0 or s.sign != 0)) < 1e-5
    value = s.sign.astype(complex) * np.exp(float(s.logabsdet))
    assert abs(value - want) <= 1.1 * off + 1e-4 * abs(want)
    log = pl.logdet(A)
    if dt.kind == "c":
        assert s.sign == 0 or abs(np.exp(complex(log)) - value) <= 1e-4 * abs(value) + 1e-30
    elif s.sign > 0:
        assert log == s.logabsdet
    else:
        assert log == -np.inf if s.sign == 0 else np.isnan(log)


@given(cases(ref.FLOATS, batches=((), (2,), (3, 1))))
@settings(max_examples=60)
def test_det_of_batches(d):
    A, a = ref.build(d), ref.dense(d)
    got = pl.det(A)
    assert got.shape == a.shape[:-2]
    off = room(a, spread(d)) + 1e-6 * abs(np.linalg.det(a))
    assert np.all(abs(got - np.linalg.det(a)) <= off)
    sign, log = pl.slogdet(A)
    assert sign.shape == log.shape == pl.logdet(A).shape == a.shape[:-2]
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(sign * np.exp(log), got, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("kind", ref.KINDS)
def test_det_of_integers(kind, dtype, rng):
    d = leaf(kind, rng, 4, 4, dtype)
    A, a = ref.build(d), ref.dense(d)
    if dtype == "int8" and kind != "MatVec":
        A, a = 100 * (A @ A.T), 100.0 * (a.astype(float) @ a.T.astype(float))  # beyond int8
    elif dtype == "bool" and kind == "KronSum":
        a = np.kron(ref.dense(d[1]) * 1, np.eye(len(ref.dense(d[2])))) + np.kron(
            np.eye(len(ref.dense(d[1]))), ref.dense(d[2]) * 1
        )  # leaves count as float64: 1 + 1 is 2
    got = pl.det(A)
    assert got.dtype == np.float64
    off = room(a, 4 * len(a) * UNIT * np.abs(a))  # entries that LU rounds; some are singular
    assert abs(got - exact_det(a)) <= off


def exact_det(a):
    """Of integers, by elimination with fractions."""
    rows, value = [[Fraction(int(x)) for x in row] for row in a], Fraction(1)
    for j in range(len(rows)):
        at = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if at is None:
            return 0.0
        value *= rows[at][j] * (1 if at == j else -1)
        rows[j], rows[at] = rows[at], rows[j]
        for row in rows[j + 1 :]:
            t = row[j] / rows[j][j]
            row[j:] = [x - t * y for x, y in zip(row[j:], rows[j][j:])]
    return float(value)


@pytest.mark.parametrize("kind", ref.KINDS)
def test_not_square(kind, rng):
    for m, n in ((2, 3), (3, 2)):
        d = leaf(kind, rng, m, n, "float64")
        if d is None:
            continue
        A, a = ref.build(d), ref.dense(d)
        for name in ("det", "slogdet", "logdet", "inv", "eigvalsh"):
            with pytest.raises(np.linalg.LinAlgError, match="must be square"):
                getattr(pl, name)(A)
        with pytest.raises(np.linalg.LinAlgError, match="must be square"):
            pl.solve(A, np.ones(m))
        with pytest.raises(np.linalg.LinAlgError, match="must be square"):
            pl.cond(A, 1)
        np.testing.assert_allclose(pl.matrix_norm(A), np.linalg.norm(a))


def exact_log(numbers):
    """The logarithm of the modulus of a product of doubles, rounded once."""
    whole = math.prod((Fraction(float(x)) for x in numbers), start=Fraction(1))
    with decimal.localcontext(prec=60):
        over, under = decimal.Decimal(abs(whole.numerator)), decimal.Decimal(whole.denominator)
        return float(over.ln() - under.ln())


def test_determinants_beyond_the_range_of_doubles(rng):
    n = 500
    small, large = np.full(n, 1e-3), np.full(n, 1e3)
    for dt in ("float32", "float64", "complex128"):
        s, g = small.astype(dt), large.astype(dt)
        for d, A in (
            (s, pl.Diag(s)),
            (g, pl.Diag(g)),
            (s, pl.Diag(s).H),
        ):
            sign, log = pl.slogdet(A)
            want, u = exact_log(d.real), np.finfo(dt).eps / 2
            assert sign == 1 and abs(log - want) <= (n + 2 * abs(want)) * u
            with np.errstate(over="ignore"):
                assert pl.det(A) == 0 if want < 0 else np.isinf(pl.det(A).real)
    A = pl.Diag(small) @ pl.Diag(large)
    want = exact_log(small) + exact_log(large)
    assert abs(pl.logdet(A) - want) < 1e-12 and abs(pl.det(A) - math.exp(want)) < 1e-12
    tiny = np.full(n, 1e-200)  # its square is 0 in double, that of the determinant is not
    assert abs(pl.logdet(pl.Diag(tiny) @ pl.Diag(tiny)) - 2 * exact_log(tiny)) < 1e-9
    assert abs(pl.logdet(1e-200 * pl.Diag(tiny)) - 2 * exact_log(tiny)) < 1e-9
    assert abs(pl.logdet(pl.inv(pl.Diag(tiny))) + exact_log(tiny)) < 1e-9
    wild = np.exp(rng.uniform(-600, 600, n)) * rng.choice([-1, 1], n)
    sign, log = pl.slogdet(pl.Diag(wild))
    assert sign == np.prod(np.sign(wild)) and abs(log - exact_log(wild)) < 1e-10
    subnormal = np.array([5e-324, 1e308, -3e-310])
    sign, log = pl.slogdet(pl.Diag(subnormal))
    assert sign == -1 and abs(log - exact_log(subnormal)) < 1e-10


def test_large_products(rng):
    a, b = rng.standard_normal((7, 7)), rng.standard_normal((40, 40)) * 1e3
    K = pl.Kron(a, pl.Diag(np.full(1000, -1e-5)), pl.Dense(b))
    l1, l2 = np.linalg.slogdet(a).logabsdet, np.linalg.slogdet(b).logabsdet
    want = 40000 * l1 + 7 * 40 * 1000 * math.log(1e-5) + 7000 * l2
    got = pl.slogdet(K)
    assert got.sign == 1 and abs(got.logabsdet - want) < 1e-11 * abs(want)
    got = pl.slogdet((2 * K) ** 3 @ pl.inv(K).T)
    assert got.sign == 1
    assert abs(got.logabsdet - (2 * want + 3 * 280000 * math.log(2))) < 1e-11 * abs(want)
    m = rng.standard_normal((300, 300)) * 1e-3
    s, log = np.linalg.slogdet(m)
    got = pl.slogdet(pl.Dense(m))
    assert got.sign == s and abs(got.logabsdet - log) < 1e-9
    got = pl.slogdet(-1e-3 * pl.Dense(m))
    assert got.sign == s and abs(got.logabsdet - log - 300 * math.log(1e-3)) < 1e-9


def test_near_one():
    """log det is accurate relatively where the determinant is near 1 from either side."""
    for x in (1 + 2**-40, 1 - 2**-40):
        assert pl.logdet(pl.Diag([x])) == math.log(x)
        assert pl.slogdet(pl.Diag([0.5, x, 2.0])).logabsdet == math.log(x)


def test_assumed(rng):
    g = rng.standard_normal((2, 6, 6)) + 1j * rng.standard_normal((2, 6, 6))
    a = g @ ref.adj(g) + np.eye(6)
    np.testing.assert_allclose(pl.det(pl.Dense(a, "pos")), np.linalg.det(a), rtol=1e-12)
    assert "scaledet-positive" in pl.Dense(a, "pos").explain("det").fired
    t = np.triu(g) + np.tril(np.full((6, 6), np.nan), -1)  # not read
    for A in (pl.Dense(t, "upper triangular"), pl.Dense(t, "upper triangular").T):
        np.testing.assert_allclose(pl.det(A), np.prod(np.diagonal(g, 0, 1, 2), -1), rtol=1e-13)
    np.testing.assert_allclose(
        pl.det(pl.Dense(t, "upper triangular").H), np.prod(np.diagonal(g, 0, 1, 2), -1).conj()
    )
    not_positive = np.array([[1.0, 2.0], [2.0, 1.0]])
    A = pl.Dense(not_positive, "pos")
    for f in (pl.det, lambda A: pl.solve(A, np.eye(2)), lambda A: pl.inv(2 * A) @ np.eye(2)):
        told = pytest.warns(pl.FallbackWarning, match=r"Dense \(2, 2\),? built at .*test_linalg.py")
        with pl.config(check="none"), told:
            f(A)
    with pl.config(check="none"), pytest.warns(pl.FallbackWarning, match="in 2 solves"):
        pl.slogdet(pl.Dense(np.stack([not_positive, np.eye(2), not_positive]), "pos"))
    none = pl.Dense(np.zeros((2, 2)), "pos")
    with pytest.raises(np.linalg.LinAlgError, match=r"Dense \(2, 2\),? built at .*test_linalg.py"):
        pl.solve(none, np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"Dense \(2, 2\)"):
        pl.solve(np.array([[1.0, 2.0], [0.0, 0.0]]), np.ones(2), "upper triangular")


def test_singular_and_special():
    ones = pl.Dense(np.ones((3, 3)))
    for A in (ones, pl.Zeros((3, 3)), pl.Diag([1.0, 0.0]), pl.Kron(ones, np.eye(2)), 0 * ones):
        assert pl.det(A) == 0 and pl.logdet(A) == -np.inf
        assert pl.slogdet(A) == (0, -np.inf)
    assert pl.det(pl.LowRank(np.ones((5, 2)))) == 0  # by its rank
    assert pl.logdet(1j * pl.Zeros((2, 2))) == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.det(pl.inv(ones))
    assert pl.det(ones**0) == 1
    for A in (pl.Identity(0), pl.Zeros((0, 0)), pl.Dense(np.ones((0, 0))), pl.Diag(np.ones(0))):
        assert pl.det(A) == 1 and pl.logdet(A) == 0
    assert pl.det(pl.Kron(np.ones((0, 0)), ones)) == 1
    assert pl.det(pl.Dense(np.ones((2, 0, 3, 3)))).shape == (2, 0)
    assert pl.logdet(pl.Diag([-1.0, 1.0])) != pl.logdet(pl.Diag([-1.0, 1.0]))
    np.testing.assert_allclose(pl.logdet(pl.Diag([-1.0 + 0j, 1.0])), 1j * np.pi)
    for bad in (np.nan, np.inf):
        for A in (pl.Diag([2.0, bad]), pl.Dense(np.diag([2.0, bad]))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                np.testing.assert_equal(pl.det(A), bad)
                np.testing.assert_equal(pl.slogdet(A).logabsdet, bad)


def test_a_singular_operand_may_be_mended():
    a = np.ones((3, 3))
    A = pl.Dense(a)
    for _ in range(2):  # the factor is kept, zero pivot and all
        with pytest.raises(np.linalg.LinAlgError, match="pivot 2 of 3"):
            pl.solve(A, np.ones(3))
        assert pl.det(A) == 0
    a[:] = 2 * np.eye(3)
    np.testing.assert_array_equal(pl.solve(A, np.ones(3)), np.full(3, 0.5))
    assert pl.det(A) == 8


def test_one_factor_serves_solve_and_det(rng):
    a = rng.standard_normal((50, 50))
    A = pl.Dense(a)
    for _ in range(3):
        np.testing.assert_allclose(pl.det(A), np.linalg.det(a), rtol=1e-9)
        np.testing.assert_allclose(pl.solve(A, np.ones(50)), np.linalg.solve(a, np.ones(50)))
        a[3] *= 2  # and a write is seen


def test_plain_walk(rng):
    a = rng.standard_normal((4, 4))
    M = pl.MatVec((4, 4), lambda x: a @ x, dtype=float)
    np.testing.assert_allclose(pl.det(2 * M @ M), np.linalg.det(2 * a @ a))
    np.testing.assert_allclose(pl.slogdet(M), np.linalg.slogdet(a))
    np.testing.assert_allclose(pl.solve(M, np.ones(4)), np.linalg.solve(a, np.ones(4)))
    np.testing.assert_allclose(pl.matrix_norm(pl.Kron(M, a), 2), np.linalg.norm(a, 2) ** 2)
    np.testing.assert_allclose(pl.cond(M), np.linalg.cond(a))
    with pytest.raises(TypeError):
        pl.det(pl.Dense(np.eye(2, dtype=np.longdouble)))

    class Known(pl.LinearOperator):
        def _matvec(self, x):
            return x

        def _logdet(self):
            return 42.0

    assert pl.logdet(Known(float, (3, 3))) == 42.0


def spectral_norm(A):
    return pl.matrix_norm(A, 2)


def test_memory_rule(rng):
    A = pl.Toeplitz(rng.standard_normal(300))
    with pl.config(memory_limit=1000):
        for f in (pl.svdvals, pl.cond, spectral_norm, pl.pinv, pl.eigvalsh):
            with pytest.raises(pl.MaterializationError):
                f(A)
    with pl.config(warn_limit=1000):
        for f in (pl.svdvals, pl.cond):  # of a new one: what is kept makes no dense form
            with pytest.warns(pl.MaterializationWarning):
                f(pl.Toeplitz(rng.standard_normal(300)))


# -- solves --


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", [k for k in ref.KINDS if k not in ("Zeros", "LowRank")])
def test_solve(kind, dtype, rng):
    batch = () if kind.startswith("Sparse") else (2,)
    d = leaf(kind, rng, 4, 4, dtype, batch, invertible=True)
    if d is None:
        d = leaf(kind, rng, 4, 4, dtype, (), invertible=True)
    if d is None:
        pytest.skip(f"no invertible {kind}")
    A, a = ref.build(d), ref.dense(d)
    for B, b in ((A, a), (A.T, np.swapaxes(a, -1, -2)), (A.H, ref.adj(a)), (A @ A, a @ a)):
        for shape in ((4,), (4, 3), (3, 1, 4, 2)):
            x = values(rng, shape, dtype)
            got = pl.solve(B, x)
            want = np.linalg.solve(b, x)
            assert got.shape == want.shape and got.dtype == ref.dtype(d, x)
            np.testing.assert_allclose(got, want, rtol=LARGEST[dtype], atol=LARGEST[dtype])


def test_solve_takes(rng):
    a, b = rng.standard_normal((3, 3)), rng.standard_normal((3, 2))
    s = a @ a.T + np.eye(3)
    for words in (None, "gen", "sym", "pos", "upper triangular"):
        np.testing.assert_allclose(
            pl.solve(np.triu(s) if words == "upper triangular" else s, b, words),
            scipy.linalg.solve(np.triu(s) if words == "upper triangular" else s, b),
        )
    X = pl.solve(a, pl.Dense(b))
    assert isinstance(X, pl.LinearOperator)
    np.testing.assert_allclose(X.toarray(), np.linalg.solve(a, b))
    np.testing.assert_allclose(pl.solve(sp.csr_array(s), [1, 2, 3]), np.linalg.solve(s, [1, 2, 3]))
    assert pl.solve(np.eye(2, dtype=int), np.array([1, 2])).dtype == np.float64
    np.testing.assert_allclose(pl.solve(pl.Dense(s), b, assume_a="pos"), np.linalg.solve(s, b))
    with pytest.raises(ValueError, match="knows its own structure"):
        pl.solve(pl.Diag([1.0]), np.ones(1), assume_a="pos")
    for bad in (np.ones(4), np.ones((2, 3)), np.ones(())):
        with pytest.raises(ValueError, match="solve"):
            pl.solve(a, bad)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.solve(np.ones((2, 2)), np.ones(2))


# -- norms, singular values, rank --


def agrees(got, want, off):
    assert np.shape(got) == np.shape(want)
    assert np.all(np.abs(got - want) <= off), (got, want, off)


@given(cases(ref.FLOATS, square=False, batches=((), (2,))), st.sampled_from(ORDERS))
def test_matrix_norm(d, order):
    A, a, t = ref.build(d), ref.dense(d), spread(d)
    off = 10 * np.linalg.norm(t, axis=(-1, -2)) + 1e-30
    got = pl.matrix_norm(A, order)
    agrees(got, np.linalg.matrix_norm(a, ord=order), off)
    assert np.asarray(got).dtype == np.empty(0, ref.dtype(d)).real.dtype
    assert pl.matrix_norm(A, order, keepdims=True).shape == (*a.shape[:-2], 1, 1)
    agrees(pl.svdvals(A), np.linalg.svdvals(a), off[..., None])
    k = pl.matrix_rank(A, tol=1.0)
    s = np.linalg.svdvals(a)
    assert np.all(k <= (s > 1.0 - off[..., None]).sum(-1))
    assert np.all(k >= (s > 1.0 + off[..., None]).sum(-1))


INT_FIVE = np.full((1, 1), 5, np.int8)
STRUCTURED = {
    "diag": lambda r: pl.Diag(r.standard_normal(4)),
    "diag of int8": lambda r: pl.Diag(np.array([-128, 100, 3], np.int8)),
    "product of int8": lambda r: (
        pl.Diag(np.array([-128, 100, 3], np.int8)) ** 1 @ pl.Diag(np.array([100, 100, 2], np.int8))
    ),
    "complex": lambda r: pl.Diag(r.standard_normal(3) + 1j * r.standard_normal(3)),
    "batch": lambda r: pl.Diag(r.standard_normal((2, 1, 3))),
    "identity": lambda r: pl.Identity(3),
    "scaled": lambda r: (-2 + 1j) * pl.Diag(r.standard_normal(3)),
    "int multiple": lambda r: np.int8(-128) * pl.Diag(np.array([1.0, 2.0], np.float32)),
    "mixed": lambda r: np.float64(0.1) * pl.Diag(r.standard_normal(3).astype("f")),
    "kron": lambda r: pl.Kron(r.standard_normal((3, 3)), pl.Diag(r.standard_normal(2))),
    "kron of int": lambda r: pl.Kron(np.array([[101, 100], [100, 101]], np.int8), INT_FIVE),
    "kron mixed": lambda r: pl.Kron(r.standard_normal((2, 2)).astype("f"), np.eye(2) / 3),
    "kron view": lambda r: pl.Kron(r.standard_normal((3, 3)), pl.Identity(2)).T,
    "kron product": lambda r: (
        pl.Kron(r.standard_normal((2, 2)), r.standard_normal((3, 3)))
        @ pl.Kron(pl.Identity(2), r.standard_normal((3, 3)))
    ),
    "kron inverse": lambda r: pl.inv(pl.Kron(r.standard_normal((2, 2)), np.eye(2) * 3)),
    "kron odd": lambda r: pl.Kron(r.standard_normal((2, 3)), r.standard_normal((3, 2))),
    "kron tall": lambda r: pl.Kron(r.standard_normal((3, 2)), r.standard_normal((4, 3))),
    "kron batch": lambda r: pl.Kron(r.standard_normal((2, 1, 2, 2)), r.standard_normal((3, 2, 2))),
    "nested": lambda r: 2 * pl.Kron(3 * pl.Kron(r.standard_normal((2, 2)), np.eye(2)).T, [[2.0]]).H,
    "toeplitz": lambda r: pl.Toeplitz(r.standard_normal(4)),
    "product": lambda r: pl.Dense(r.standard_normal((3, 3))) @ pl.Diag(r.standard_normal(3)),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_by_structure(name, rng):
    A = STRUCTURED[name](rng)
    a = A.toarray()
    if name == "product of int8":
        a = np.diag([-12800.0, 10000, 6])
    if name == "kron of int":
        a = np.kron([[101.0, 100.0], [100.0, 101.0]], [[5.0]])
    a = a.astype(np.result_type(a.dtype, np.float32 if a.dtype.kind == "f" else np.float64))
    close = {"rtol": 1e-5 if a.dtype.itemsize == 4 else 1e-10, "atol": 1e-12}
    for order in ORDERS:
        np.testing.assert_allclose(
            pl.matrix_norm(A, order), np.linalg.matrix_norm(a, ord=order), **close
        )
        if name == "kron odd":
            continue
        if a.shape[-1] == a.shape[-2] or order in (2, -2):
            np.testing.assert_allclose(pl.cond(A, order), np.linalg.cond(a, order), **close)
    np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(a), **close)
    np.testing.assert_array_equal(pl.matrix_rank(A), np.linalg.matrix_rank(a))
    np.testing.assert_array_equal(pl.matrix_rank(A, rtol=0.5), np.linalg.matrix_rank(a, rtol=0.5))
    P = pl.pinv(A)
    assert isinstance(P, pl.LinearOperator)
    np.testing.assert_allclose(P.toarray(), np.linalg.pinv(a), rtol=1e-4, atol=1e-6)
    if a.shape[-1] == a.shape[-2]:
        np.testing.assert_allclose(pl.det(A), np.linalg.det(a), **close)


def test_structure_is_used():
    n = 10**5
    big = pl.Kron(pl.Diag(np.linspace(1, 2, n)), -3 * pl.Identity(n), [[2.0, 0.0], [0.0, 1.0]])
    assert pl.matrix_norm(big, 2) == 12 and pl.matrix_norm(big, -2) == 3
    assert pl.cond(2 * big.H) == 4
    assert pl.matrix_norm(pl.Zeros((n, n)), "nuc") == 0
    assert pl.cond(pl.Zeros((n, n))) == np.inf
    assert pl.matrix_rank(pl.Identity(n)) == n
    assert type(pl.pinv(pl.Diag(np.ones(n)))) is pl.Diag
    assert type(pl.pinv(big)) is pl.Kron
    deep = pl.Diag(np.ones(3))
    A = pl.Dense(np.eye(3))
    for _ in range(5000):
        A = 2 * A.T if _ % 2 else 0.5 * A.H
    assert pl.matrix_norm(A, 2) == 1 and pl.det(A) == 1 and pl.det(deep) == 1
    assert pl.eigvalsh(A).tolist() == [1, 1, 1] and pl.cond(A) == 1


def test_norm_arguments(rng):
    a = rng.standard_normal((2, 3, 4))
    A = pl.Dense(a)
    for axis in ((1, 2), (2, 1), (-2, -1), (-1, -2)):
        for order in (None, 1, np.inf, "nuc"):
            for keep in (False, True):
                np.testing.assert_allclose(
                    pl.linalg.norm(A, order, axis, keep).squeeze(),
                    np.linalg.norm(a, order, axis, keep).squeeze(),
                )
    np.testing.assert_allclose(pl.linalg.norm(A), np.linalg.norm(a))
    assert pl.linalg.norm(a, axis=0).shape == (3, 4)
    with pytest.raises(NotImplementedError):
        pl.linalg.norm(A, axis=0)
    for bad in (3, "x", 0):
        with pytest.raises(ValueError, match="Invalid norm order"):
            pl.matrix_norm(A, bad)
    with pytest.raises(ValueError):
        pl.matrix_rank(A, tol=1, rtol=1)
    with pytest.raises(ValueError):
        pl.eigvalsh(pl.Identity(2), "X")
    with pytest.raises(TypeError):
        pl.pinv(A, rtoll=1)
    with pytest.raises(np.linalg.LinAlgError, match="empty"):
        pl.cond(pl.Zeros((0, 2)))
    assert pl.matrix_norm(pl.Zeros((0, 2))) == 0


# -- eigenvalues, pseudo-inverses --


def test_eigvalsh(rng):
    def her(n, dt="complex128"):
        a = values(rng, (n, n), dt)
        return a + ref.adj(a)

    h, k = her(3), her(2)
    for A in (
        pl.Dense(h),
        pl.Dense(h).T,
        pl.Dense(h, "her").conj(),
        pl.Kron(h, k),
        -2 * pl.Kron(h, k, pl.Diag([1.0, -2.0])),
        pl.Kron(1j * h, -1j * k),
        pl.Diag(rng.standard_normal((2, 5))),
        pl.Identity(3),
        pl.Zeros((3, 3)),
        pl.Dense(h) + pl.Diag([1.0, 2.0, 3.0]),
        pl.Toeplitz([1.0, 2.0, 3.0]),
    ):
        for uplo in "LU":
            got = pl.eigvalsh(A, uplo)
            np.testing.assert_allclose(
                got, np.linalg.eigvalsh(A.toarray(), uplo), rtol=1e-11, atol=1e-11
            )
    low = np.tril(h)
    np.testing.assert_allclose(pl.eigvalsh(pl.Dense(low)), np.linalg.eigvalsh(h))
    np.testing.assert_allclose(pl.eigvalsh(3 * pl.Dense(low).T, "U"), 3 * np.linalg.eigvalsh(h))


def test_pinv_cutoffs():
    d = np.array([1.0, 1e-3, 0.0])
    for how in ({}, {"rcond": 1e-2}, {"rtol": 1e-2}, {"rtol": None}, {"rcond": 1e-20}):
        np.testing.assert_allclose(
            pl.pinv(pl.Diag(d), **how).toarray(), np.linalg.pinv(np.diag(d), **how)
        )
    np.testing.assert_allclose(pl.pinv(0 * pl.Dense(np.ones((2, 3)))).toarray(), np.zeros((3, 2)))
    assert pl.pinv(pl.Identity(3, np.int8)).dtype == np.float64
    assert pl.pinv(pl.Zeros((2, 3))).shape == (3, 2)
    with pytest.raises(ValueError):
        pl.pinv(pl.Diag(d), 1e-3, rtol=1e-3)
    h = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(pl.pinv(pl.Dense(h), hermitian=True).toarray(), np.linalg.inv(h))
    assert pl.matrix_rank(pl.Dense(h), hermitian=True) == 2


# -- the module --


NAMED = """
solve lstsq inv pinv det slogdet logdet trace diagonal cholesky ldl lu qr eigh eigvalsh eig
eigvals svd svdvals matrix_norm cond matrix_rank matrix_power null_space orth expm logm sqrtm
fractional_matrix_power funm inv_quad_logdet sqrt_inv_matmul log_pdet cholesky_append
cholesky_update sample
"""


@pytest.mark.parametrize("name", NAMED.split())
def test_functions_stand_at_top_level_too(name):
    assert getattr(pl, name).__name__ == getattr(pl.linalg, name).__name__ == name
    assert name in pl.__all__ and name in pl.linalg.__all__


def test_matrix_power_at_top_level():
    np.testing.assert_allclose(pl.matrix_power(pl.Diag([2.0, 4.0]), -2).diagonal(), [0.25, 0.0625])
    with pytest.raises(TypeError, match="integer"):
        pl.matrix_power(pl.Diag([2.0]), 0.5)
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.matrix_power(np.ones((2, 3)), 2)


@pytest.mark.parametrize("name", pl.linalg.__all__)
def test_linalg_mirrors_numpy(name):
    ours, theirs = getattr(pl.linalg, name), getattr(np.linalg, name, None)
    if theirs is None:
        ours = (
            "logdet log_pdet cholesky_append cholesky_update inv_quad_logdet sample sqrt_inv_matmul"
        )
        assert name in ours.split() or any(
            hasattr(module, name) for module in (scipy.linalg, scipy.sparse.linalg)
        )
        return
    if not inspect.isfunction(ours) or name in ("trace", "diagonal", "pinv", "matmul"):
        return
    skip = {"a", "x", "A"}
    want = [p for p in inspect.signature(theirs).parameters if p not in skip]
    got = [p for p in inspect.signature(ours).parameters if p not in skip]
    assert set(want) <= set(got), (want, got)


def test_matrix_power(rng):
    a = rng.standard_normal((3, 3))
    for n in (-2, -1, 0, 1, 3):
        np.testing.assert_allclose(
            pl.linalg.matrix_power(pl.Dense(a), n).toarray(), np.linalg.matrix_power(a, n)
        )
    with pytest.raises(TypeError):
        pl.linalg.matrix_power(a, 0.5)
    with pytest.raises(np.linalg.LinAlgError):
        pl.linalg.matrix_power(np.ones((2, 3)), 2)
    np.testing.assert_allclose(pl.linalg.matmul(pl.Dense(a), a), a @ a)
    assert pl.linalg.matrix_transpose(a).shape == (3, 3)
    for how in ({}, {"offset": 1}, {"offset": -2}, {"dtype": "complex64"}, {"offset": 5}):
        got = pl.linalg.trace(pl.Dense(a), **how)
        np.testing.assert_allclose(got, np.linalg.trace(a, **how), rtol=1e-6)
    assert pl.linalg.trace(pl.Dense(np.full((2, 2), 100, np.int8)), dtype=np.int8) == -56
