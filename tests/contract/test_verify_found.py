"""What was wrong with verified answers' own road once: right results pass, wrong ones are found."""

import numpy as np
import pytest
import samples
import scipy.sparse

import pylinop as pl
from pylinop._verify import compare


@pytest.fixture(autouse=True)
def verified():
    with pl.config(verify=True):
        compare.tally.clear()
        compare.strict = True
        yield
        compare.perturb = None


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float64"])
def test_adjoints_of_parts_of_complex_arrays(dtype, rng):
    """The conjugate of an imaginary part is itself, of a complex right side too."""
    a = samples.values(rng, (5, 5), dtype)
    for part, w in ((np.imag(pl.Dense(a)), a.imag), (np.real(pl.Dense(a)), a.real)):
        inner = part + 3 * pl.Identity(5)
        for x in (samples.values(rng, (5, 2), dtype), samples.values(rng, (5,), "float32")):
            for op, b in ((part.H, w.T), (part.conj(), w), (part.T, w.T), (part, w)):
                np.testing.assert_allclose(op @ x, b @ x, rtol=1e-4, atol=1e-5)
            pl.solve(inner.H, x)
        for op in (pl.Congruence(part, pl.Dense(a)), pl.LowRank(part, pl.Dense(a)), part.H - a):
            op.H @ samples.values(rng, (5, 2), dtype)
            op.toarray()
    assert not [k for k in compare.tally if k[1] != "verified"]


def test_an_array_of_single_precision_within_a_wide_expression(rng):
    """Each operator is applied in the promotion of it and the array: wide at the end alone."""
    a, b = rng.standard_normal((6, 6)), rng.standard_normal((6, 6)).astype("f4")
    for op in (
        np.float64(1.5) * pl.Dense(b),
        pl.LowRank(pl.Dense(a), pl.Dense(b)),
        pl.Dense(a) @ pl.Dense(b),
        pl.Dense(a) + pl.Dense(b),
        pl.inv(pl.Dense(a)) @ pl.Dense(b),
    ):
        whole = np.arange(18, dtype="i2").reshape(6, 3)
        for x in (rng.standard_normal((6, 3)).astype("f4"), whole):
            for y in (op @ x, op.H @ x, x.T @ op):
                assert y.dtype == np.float64
        assert compare.perturb is None
        off = _shifted(1e-10)
        for ask in (lambda op=op: op @ rng.standard_normal((6, 3)), op.toarray):
            compare.perturb = off
            with pytest.raises(pl.VerificationError):
                ask()
            compare.perturb = None


def _shifted(by):
    def perturb(action, made):
        made += by * np.abs(made).max()

    return perturb


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64"])
def test_differences_of_high_order_wrap(dtype, rng):
    """Binomial coefficients beyond the dtype are those modulo 2^w."""
    for order in (9, 34):
        D = pl.FiniteDifference(order + 2, order=order, boundary="valid", dtype=dtype)
        x = samples.values(rng, (order + 2, 2), dtype)
        for ask in (lambda: D @ x, lambda: x[:2].T @ D, D.toarray):
            ask()
    assert not [k for k in compare.tally if k[1] != "verified"]


def test_batches_that_broadcast_and_sizes_that_are_left_out(rng):
    c, r = rng.standard_normal((3, 1, 9)), rng.standard_normal((2, 12))
    for kind in (pl.Hankel, pl.Toeplitz):
        A = kind(c, r)
        A @ rng.standard_normal((12, 2))
        A.toarray()
    M = pl.MultilevelToeplitz([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
    M @ rng.standard_normal(4)
    M.toarray()
    H = pl.Hadamard(8, "bool")
    H @ np.zeros(8, bool)
    H @ np.eye(8, dtype=bool)
    assert not [k for k in compare.tally if k[1] != "verified"]


def test_determinants_whose_logarithms_round_alike():
    """NumPy sums up a thousand logarithms, each rounded the same way."""
    sign, log = pl.slogdet(pl.Diag(np.full(1000, -0.001)))
    assert sign == 1 and abs(log + 1000 * np.log(1000)) < 1e-11
    compare.perturb = lambda action, made: made.__imul__(1 + 1e-6)
    with pytest.raises(pl.VerificationError):
        pl.slogdet(pl.Diag(np.full(1000, -0.001)))


def test_determinants_of_triangles_that_nobody_named():
    """LU with exchanges of rows sees no zeros, and may be off by the condition number."""
    t = np.tril(np.random.default_rng(1).standard_normal((60, 60)))
    pl.slogdet(pl.Dense(t))
    compare.perturb = lambda action, made: made.__imul__(1 + 1e-9)
    with pytest.raises(pl.VerificationError):  # the diagonal is all of it here
        pl.slogdet(pl.Dense(t, "lower triangular"))


def test_the_plan_of_a_product_from_the_right_is_shown(rng):
    A, x = pl.Dense(rng.standard_normal((3, 5))), rng.standard_normal((2, 3))
    compare.perturb = lambda action, made: made.__iadd__(1)
    with pytest.raises(pl.VerificationError, match="gemm"):
        x @ A
    with pytest.raises(pl.VerificationError, match="gem[mv]"):
        x[0] @ A


def test_inverses_whose_zeros_are_filled_in(rng):
    """LU with pivoting leaves rounding where a triangular inverse has zeros."""
    a = rng.standard_normal((8, 8))
    for op in (pl.Triangular(np.tril(a)), pl.Sparse(scipy.sparse.csr_array(np.triu(a)))):
        inverse = pl.inv(op)
        for part in (inverse[:, 7:], inverse[:, :1], inverse[4:], inverse[:4]):
            part.toarray()
    D = pl.DCT(8)  # of the second kind, which is left out
    D.toarray(), D.T @ np.ones(8)
    assert not [k for k in compare.tally if k[1] != "verified"]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [1, 40, 420])
def test_products_of_parts_that_have_values(n, dtype, rng):
    """Their length counts though nothing of them is walked: rows that are alike round alike."""
    a = np.broadcast_to(samples.values(rng, (n,), dtype), (n, n))
    v = pl.lazy(a) @ pl.lazy(samples.values(rng, (n,), dtype))
    other = np.linalg.slogdet(pl.lazy(np.eye(3, dtype=dtype)))[1]
    pl.evaluate(other, v.conj() @ v)
    kept = np.asarray(v)
    np.testing.assert_allclose(np.asarray(v.conj() @ v), np.vdot(kept, kept), rtol=1e-4)


FAINT = {  # whose steps as written underflow, where the plan's do not, or the other way round
    "Kron": lambda a, x: (
        pl.Kron(1e-200 * pl.Dense(a), 1e200 * pl.Dense(a)) @ np.outer(x, x).ravel()
    ),
    "Kron turned": lambda a, x: (
        pl.Kron(1e200 * pl.Dense(a), 1e-200 * pl.Dense(a)) @ np.outer(x, x).ravel()
    ),
    "Toeplitz": lambda a, x: (1e300 * pl.Toeplitz(1e-310 * a[0])) @ (1e75 * x),
    "Krons of LazyArrays": lambda a, x: np.asarray(
        pl.lazy(1e200 * a) @ (pl.lazy(1e-200 * a) @ (1e-75 * x))
    ),
    "single": lambda a, x: (
        (np.float32(1e30) * (np.float32(1e-30) * pl.Dense(a.astype("f4"))))
        @ (1e55 * x).astype("f4")
    ),
    "dense form": lambda a, x: (
        1e200 * (1e-200 * (pl.Dense(1e-75 * a) @ pl.Dense(1e-75 * a)))
    ).toarray(),
    "determinant": lambda a, x: pl.slogdet(pl.Dense(1e-310 * a) @ pl.Dense(a)),
    "a large determinant": lambda a, x: pl.slogdet(pl.Dense(1e160 * a) @ pl.Dense(a)),
}


@pytest.mark.parametrize("n", [3, 24])
@pytest.mark.parametrize("name", FAINT)
def test_what_underflows_on_either_road(name, n, rng):
    """The walk, which takes the steps as written, loses what a plan keeps; so does the reverse."""
    a, x = rng.standard_normal((n, n)), 1e-75 * rng.standard_normal(n)
    FAINT[name](a, x)
    assert compare.tally and all(said == "verified" for _, said in compare.tally)


def test_faint_numbers_do_not_hide_wrong_ones(rng):
    """What underflow may lose is far below what is there: errors of a millionth are found."""
    a, x = rng.standard_normal((12, 12)), rng.standard_normal(12)
    for scale in (1e-290, 1e-150, 1.0, 1e290):

        def spoil(action, made):
            made[0] *= 1 + 1e-6

        compare.perturb = spoil
        with pytest.raises(pl.VerificationError):
            pl.Dense(scale * a) @ x
        with pytest.raises(pl.VerificationError):
            pl.solve(pl.Dense(scale * a + 40 * scale * np.eye(12)), scale * x)
        compare.perturb = None


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200])
def test_determinants_far_from_one(scale, rng):
    a = scale * (rng.standard_normal((3, 8, 8)) + 1j * rng.standard_normal((3, 8, 8)))
    pl.slogdet(pl.Dense(a))
    assert set(compare.tally) == {("det", "verified")}

    def spoil(action, made):
        made[..., 1] += 1  # a power of two

    compare.perturb = spoil
    with pytest.raises(pl.VerificationError, match="det"):
        pl.slogdet(pl.Dense(a, copy=True))


@pytest.mark.parametrize("word", ["pos", "her"])
@pytest.mark.parametrize("n", [2, 17, 40])
def test_single_precision_that_is_hermitian_to_its_rounding(word, n, rng):
    """A product that BLAS rounds otherwise above the diagonal than below: views of what is assumed
    of it are right to single precision, in double precision too."""
    a = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    g = (a @ a.conj().T / n + np.eye(n)).astype("c8")
    g[0, -1] *= np.float32(1 + 1e-6)
    y = rng.standard_normal((n, 2))
    asked = {
        "left": lambda A: y.T @ A,
        "transpose": lambda A: A.T @ y,
        "adjoint": lambda A: A.H @ y,
        "kron": lambda A: pl.Kron(A, np.eye(2)).T @ np.ones((2 * n, 1)),
        "sum": lambda A: (A + pl.Diag(rng.random(n))).T @ y,
        "lazy": lambda A: np.asarray(pl.lazy(A).T @ y),
        "solve": lambda A: pl.solve(A.T, y),
    }
    with pl.config(verify=True):
        for f in asked.values():
            f(pl.Dense(g, word))
        g[0, -1] += 0.5
        whole = np.triu(g) + np.triu(g, 1).conj().T
        whole[np.diag_indices(n)] = g.diagonal().real
        A = pl.Dense(g, word)  # its upper triangle is the matrix
        np.testing.assert_allclose(asked["left"](A), y.T @ whole, rtol=0, atol=1e-4 * n)
        np.testing.assert_allclose(asked["adjoint"](A), whole @ y, rtol=0, atol=1e-4 * n)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 7, 449])
def test_columns_that_are_not_finite_are_left_out(bad, at, rng):
    """Those that are compared entry by entry too, the first and the last; the rest is compared."""
    d, z = rng.standard_normal(450), rng.standard_normal(450)
    d[at] = bad
    A = pl.Block([[pl.Diag(d), z[:, None]], [z[None], np.ones((1, 1))]])
    with pl.explaining() as log:
        A.toarray()
    assert "450 finite columns of 451" in str(log)
    compare.perturb = lambda action, y: y[:, 1:-2].__iadd__(1e-3)
    with pytest.raises(pl.VerificationError):
        A.toarray()


@pytest.mark.parametrize("n", [2048, 2049])
def test_drawn_diagonals_of_inverses_of_a_batch(n):
    """From 2049 rows on entries are drawn, and the bound has the batch's dimensions."""
    rng = np.random.default_rng(n)
    d, U = rng.uniform(1, 2, (2, n)), rng.standard_normal((2, n, 3))
    with pl.config(verify=True):
        found = pl.diagonal(pl.inv(pl.Diag(d) + pl.LowRank(U)))
    assert found.shape == (2, n)
