"""What the planner's passes save, told by their plans: a pass that does nothing gives right answers
too, so faults of tests/mutants/engine.txt that only lose a saving are found here."""

import numpy as np
import pytest

import pylinop as pl


def steps(plan):
    """The names of the steps, in order."""
    lines = str(plan).splitlines()
    first = next(i for i, s in enumerate(lines) if s.split()[:1] == ["steps"])
    told = [s.split() for s in lines[first + 1 :]]
    return [s[1] for s in told if len(s) > 2 and s[0].isdigit() and "<-" in s]


SUMS = {  # the steps below 16 rows and columns, and from there on
    "(a.T @ b).T + 2.0 * (c @ d)": ("gemm gemm scale add", "gemm gemm-add"),
    "a @ b - c @ d": ("gemm gemm sub", "gemm gemm-add"),
    "c - a @ b": ("gemm sub", "start gemm-add"),
    "a @ b @ c - d": ("gemm gemm sub", "gemm gemm sub"),
    "a @ b + c @ d + a.T": ("gemm gemm add swap add", "gemm gemm-add swap add"),
    "c - (a @ b).T": ("swap gemm sub", "swap start gemm-add"),
    "a @ b @ (a @ b - c @ d)": ("gemm gemm sub gemm", "gemm start gemm-add gemm"),
}


@pytest.mark.parametrize("n", [15, 16, 40])
@pytest.mark.parametrize("formula", SUMS)
def test_parts_of_sums_are_joined(rng, formula, n):
    arrays = dict(zip("abcd", rng.standard_normal((4, n, n))))
    made = eval(formula, {}, {k: pl.lazy(v) for k, v in arrays.items()})
    assert steps(made.explain()) == SUMS[formula][n >= 16].split()
    np.testing.assert_allclose(made.toarray(), eval(formula, {}, arrays), atol=1e-11)


@pytest.mark.parametrize("n", [15, 16])
def test_a_product_of_another_dtype_or_size_is_the_right_one(rng, n):
    a, b, c = rng.standard_normal((3, n, n))
    narrow = pl.lazy(a.astype("f4")) @ pl.lazy(b.astype("f4"))
    got = (pl.lazy(c) + narrow).toarray()
    np.testing.assert_allclose(got, c + a.astype("f4") @ b.astype("f4"), atol=1e-4)
    row = pl.lazy(a[:1]) @ pl.lazy(b)
    np.testing.assert_allclose((pl.lazy(c) + row).toarray(), c + a[:1] @ b, atol=1e-12)
    np.testing.assert_allclose((pl.lazy(c) - row).toarray(), c - a[:1] @ b, atol=1e-12)


@pytest.mark.parametrize("n", [3, 20, 60])
def test_a_part_of_the_result_that_a_kept_value_is_made_of_is_written_each_time(rng, n):
    a, b = rng.standard_normal((2, n, n))
    part = pl.multiply(pl.lazy(a), pl.lazy(b))
    want = np.vstack([a * b, np.linalg.inv(a * b)])
    whole = pl.block([[part], [pl.inv(part)]])
    for _ in range(3):  # the factors are found from the second time on
        np.testing.assert_allclose(whole.toarray(), want, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("c", [complex(1, np.inf), complex(np.nan, 1), complex(1, np.nan), 1 + 2j])
def test_a_multiple_of_the_identity_that_is_not_finite_is_written_out(rng, c):
    """c I has c * 0 beside its diagonal, which is no number there: it cannot go to a diagonal."""
    a = rng.standard_normal((4, 4)) + 1j
    made = pl.lazy(a) + c * pl.Identity(4)
    assert ("add-shift" in made.explain().fired) == np.isfinite(c)
    with np.errstate(invalid="ignore"):
        want = a + c * np.eye(4)
    np.testing.assert_array_equal(np.isnan(made.toarray()), np.isnan(want))
    if np.isfinite(c):
        np.testing.assert_allclose(made.toarray(), want, rtol=1e-15)


@pytest.mark.parametrize("small", [0, 1, 12, 19, 20, 24, 30])
def test_the_pivot_of_a_bordered_matrix_is_cheap_and_no_less_than_half_the_other(rng, small):
    """A pivot block is solved for alone, the rest beside it: the dense block takes getrf there. A
    cheap block of less than half the rows of the other does not pay, nor does a dense one."""
    large = 40
    b, c = rng.standard_normal((large, small)), rng.standard_normal((small, large))
    wide, thin = pl.Diag(1 + rng.random(large)), pl.Diag(1 + rng.random(small))
    dense = [pl.Dense(rng.standard_normal((n, n)) + 9 * np.eye(n)) for n in (large, small)]
    x = rng.standard_normal(large + small)
    for first, last, fires in (
        (wide, dense[1], True),
        (dense[0], thin, 2 * small >= large),
        (dense[0], dense[1], False),
    ):
        for A in (pl.Block([[first, b], [c, last]]), pl.Block([[last, c], [b, first]])):
            assert ("solve-bordered" in A.explain("solve", x).fired) == fires
            got, want = pl.solve(A, x), np.linalg.solve(A.toarray(), x)
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * abs(want).max())


@pytest.mark.parametrize("sizes", [(9, 2, 9, 2, 9), (4, 4, 4, 4, 4), (60, 3, 50, 4, 70)])
def test_halves_multiplied_by_one_another_are_told_with_their_price(rng, sizes):
    """(A B) (C D), of which neither side is a factor, is the plan or an alternative to it."""
    A, B, C, D = (pl.Dense(rng.standard_normal(s)) for s in zip(sizes, sizes[1:], strict=False))
    told = (A @ B @ C @ D).explain("dense")
    a, b, c, d, e = sizes
    pairs = ((a, b, c), (c, d, e), (a, c, e))
    seconds = 0.0
    for m, k, n in pairs:
        work = 2 * m * k * n * (1 + 8 / min(m, k, n)) / 4e10
        seconds += max(work, 8 * (m * k + k * n + m * n) / 1.2e10) + 2e-8
    found = {o["text"]: o["seconds"] for o in told.alternatives}
    assert found["((A B) (C D))"] == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_rows_of_a_power_are_rows_of_the_first_factor(rng, p):
    """From the second power on: two rows of A^p are two rows of A times p - 1 times A."""
    n = 30
    A = pl.Dense(rng.standard_normal((n, n)))
    want = np.linalg.matrix_power(A.toarray(), p)
    for rows, columns in ((np.s_[3:5], np.s_[:]), (np.s_[:], np.s_[3:5])):
        part = (A**p)[rows, columns]
        assert part.explain("dense").flops == (p - 1) * 2 * 2 * n * n
        np.testing.assert_allclose(part.toarray(), want[rows, columns], atol=1e-11)


@pytest.mark.parametrize("factors", [7, 8, 9])
def test_the_spectra_of_eight_factors_and_of_more(rng, factors):
    """Of up to eight each turns into its own basis; nine are a dense matrix."""
    a = rng.standard_normal((factors, 2, 2))
    parts = [pl.Dense(x @ x.T + np.eye(2), assume_a="pos") for x in a]
    S = pl.Kron(*parts) + 0.5 * pl.Identity(2**factors)
    b = rng.standard_normal(2**factors)
    assert ("solve-spectral-sum" in S.explain("solve", b).fired) == (factors <= 8)
    np.testing.assert_allclose(S @ pl.solve(S, b), b, atol=1e-10)


@pytest.mark.parametrize("n", [39, 40, 95, 96])
def test_a_toeplitz_solve_by_recursion_counts_half_where_it_is_hermitian(rng, n):
    """Of a Hermitian one, seen by how it is written, from 40 rows on; of another from 96 on."""
    c, r, b = rng.standard_normal((3, n))
    c[0] = r[0] = 9 * np.sqrt(n)
    hermitian = pl.Toeplitz(c), pl.Toeplitz(c + 0j * r), pl.Toeplitz(c) + pl.Toeplitz(r)
    general = pl.Toeplitz(c, r), pl.Toeplitz(c + 0j * r, c + 1j * r), pl.Toeplitz(c, 2 * c)
    for T, fewest in [(T, 40) for T in hermitian] + [(T, 96) for T in general]:
        assert ("solve-toeplitz" in T.explain("solve", b).fired) == (n >= fewest)
        want = np.linalg.solve(T.toarray(), b)
        np.testing.assert_allclose(pl.solve(T, b), want, rtol=1e-10, atol=1e-12)


def test_the_work_as_written_of_a_product_seen_transposed(rng):
    """Each factor with k columns takes 2 m n k flops, on either side and either way."""
    A, B = (pl.Dense(rng.standard_normal(s)) for s in ((30, 20), (20, 40)))
    S, one = A @ B, 2 * 30 * 20 + 2 * 20 * 40
    for op, flops in ((S, one), (S.T, one), (S.T @ S, 2 * one), (S @ S.T @ S, 3 * one)):
        told = str(op.explain("apply", np.ones(op.shape[1])))
        written = next(s for s in told.splitlines() if "as written" in s).split()[2]
        assert float(written) == pytest.approx(flops, rel=1e-2)


@pytest.mark.parametrize("given", range(4))
def test_a_kernel_between_cut_points_is_computed_in_the_dtype_of_what_it_meets(rng, given):
    """The points and up to three parameters of float32 with an array of float64."""
    x, b = rng.standard_normal((12, 2)).astype("f4"), rng.standard_normal(7)
    names = ("variance", "length_scale", "alpha")[:given]
    more = {k: np.full(2 if k == "length_scale" else (), 0.7, "f4") for k in names}
    K = pl.Kernel("rational_quadratic", x, **more)
    wide = {k: v.astype("f8") for k, v in more.items()}
    want = pl.Kernel("rational_quadratic", x.astype("f8"), **wide).toarray()[1:7, 2:9] @ b
    got = K[1:7, 2:9] @ b
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def test_a_quasiseparable_sum_is_added_in_the_dtype_of_what_it_meets(rng):
    """Four parameters, each an expression: the diagonals are added in float64, not in float32."""
    n, b = 9, rng.standard_normal(9)
    d, e, p, q, a = rng.standard_normal((5, n, 2)).astype("f4")
    terms = (d[:, 0], p, q, a), (e[:, 0], q, a, p)
    one, two = (pl.QuasiSeparable(*t) for t in terms)
    wide = [pl.QuasiSeparable(*(v.astype("f8") for v in t)) for t in terms]
    made = one + two
    assert type(made) is pl.QuasiSeparable and made.dtype == np.float32
    want = (wide[0] + wide[1]) @ b
    np.testing.assert_allclose(made @ b, want, rtol=1e-12, atol=1e-12)


def test_a_kronecker_sum_of_narrow_bands_is_a_band(rng):
    n = 40
    T = pl.Tridiagonal(np.ones(n - 1), 4 + rng.random(n), np.ones(n - 1))
    A = pl.KronSum(pl.Diag(3 + rng.random(2)), T)
    b = rng.standard_normal(2 * n)
    for what in ("solve", "slogdet"):
        assert "by banded LU of 3 x 80" in A.explain(what)
    np.testing.assert_allclose(A.toarray() @ pl.solve(A, b), b, rtol=1e-12, atol=1e-12)


def test_equal_leaves_made_apart_are_one(rng):
    """Two numbers that fill matrices of one size: one factor serves."""
    n = 20
    A = pl.Dense(rng.standard_normal((n, n)) + 9 * np.eye(n))
    both = pl.inv(A + pl.Full((n, n), 2.0)) + pl.inv(A + pl.Full((n, n), 2.0))
    text = both.explain("apply")
    assert text.count("getrf ") == 1 and text.count("fill ") == 1
    apart = pl.inv(A + pl.Full((n, n), 2.0)) + pl.inv(A + pl.Full((n, n), 3.0))
    assert apart.explain("apply").count("getrf ") == 2


def test_the_order_of_a_chain_and_the_next_best_are_told(rng):
    A, B, C, S = (rng.standard_normal(s) for s in ((30, 400), (400, 20), (20, 300), (30, 30)))
    A, B, C, S = (pl.Dense(a) for a in (A, B, C, S))
    for formula, order, other in (
        (A @ B @ C, "((A B) C)", "(A (B C))"),
        (pl.inv(S) @ A @ B, "(A^-1 (B C))", "((A^-1 B) C)"),
        ((A @ B + A @ B) @ C, "((A B) C)", "(A (B C))"),
        (C.T @ (A @ B).T, "(A' (B' C'))", "((A' B') C')"),
    ):
        text = formula.explain("dense")
        assert f"planned   {order}\n" in text and f"\ninstead   {other}: " in text, text


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [3, 20])
def test_a_plan_is_taken_again_with_other_numbers(rng, n, dtype):
    """Of one structure: the numbers are put in where the plan runs."""
    for c, k in ((2.0, 0.5), (-3.0, 7.0), (0.1, 1.5), (0.1 + 2j, 3.0), (4.0 - 1j, -2j)):
        a, b, d = rng.standard_normal((3, n, n)).astype(dtype)
        x = rng.standard_normal(n)
        formulas = (
            ((c * pl.Dense(a) + k * pl.Dense(b)) @ x, (c * a + k * b) @ x),
            (pl.solve(c * pl.Dense(a) + 9 * n * pl.Identity(n), x),
             np.linalg.solve(c * a + 9 * n * np.eye(n), x)),
            ((k * (pl.Dense(a) @ pl.Dense(b)) - c * pl.Dense(d)).toarray(), k * (a @ b) - c * d),
            (np.asarray(c * (pl.lazy(a) @ b) + k * pl.lazy(d)), c * (a @ b) + k * d),
        )  # fmt: skip
        for got, want in formulas:
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [4, 60])
def test_half_a_cholesky_is_for_what_is_positive_definite(rng, n):
    """X^H A^-1 X of any other matrix is a solve and a product; so it is of small ones."""
    a = rng.standard_normal((n, n)) + n * np.eye(n)
    X = pl.Dense(rng.standard_normal((n, 3)))
    for matrix, word in ((a + a.T, "her"), (a + a.T, "sym"), (a, None), (a @ a.T, "pos")):
        A = X.T @ pl.inv(pl.Dense(matrix, assume_a=word)) @ X
        half = word == "pos" and n > 32
        assert ("trsm-syrk" in A.explain("dense")) == half
        x = X.toarray()
        np.testing.assert_allclose(A.toarray(), x.T @ np.linalg.solve(matrix, x), rtol=1e-9)


@pytest.mark.parametrize("terms", [15, 16, 17, 24, 47, 48, 49])
@pytest.mark.parametrize("n", [3, 20])
def test_sums_of_more_terms_than_are_planned_together(rng, n, terms):
    """16 of one sum, 48 of all in a formula; what is beyond is a term by itself."""
    a, b = rng.standard_normal((2, terms, n, n))
    x = rng.standard_normal((n, 2))
    products = (pl.Dense(p) @ pl.Dense(q) for p, q in zip(a[1:], b[1:], strict=True))
    A = sum(products, start=pl.Dense(a[0]))
    want = (a[1:] @ b[1:]).sum(0) + a[0]
    C = pl.Dense(b[0]) @ A @ A.T
    with pl.config(check_plans=True, verify=True):
        np.testing.assert_allclose(A.toarray(), want, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(A @ x, want @ x, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(C @ x, b[0] @ want @ (want.T @ x), rtol=1e-10, atol=1e-9)


def test_sums_are_multiplied_out_where_parts_are_shared(rng):
    """(A + B) C beside A C and B C is their sum; (A + B) C T + A C S + B C U is
    A C (T + S) + B C (T + U)."""
    n = 60
    a, b, c, *more = rng.standard_normal((6, n, n))
    x, y, z = (pl.lazy(v) for v in (a, b, c))
    with pl.explaining() as told:
        got = pl.evaluate((x + y) @ z, x @ z, y @ z)
    assert str(told).count(" gemm ") == 2
    for one, want in zip(got, ((a + b) @ c, a @ c, b @ c), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-11, atol=1e-11)
    A, B, C, S, T, U = (pl.Dense(v) for v in (a, b, c, *more))
    E = (A + B) @ C @ T + A @ C @ S + B @ C @ U
    assert sum(s.startswith("gemm") for s in steps(E.explain("dense"))) == 4
    s, t, u = more
    want = (a + b) @ c @ t + a @ c @ s + b @ c @ u
    np.testing.assert_allclose(E.toarray(), want, rtol=1e-9, atol=1e-9)


def test_a_product_within_an_inverse_and_beside_it_is_computed_once(rng):
    n = 60
    a, b, c, p = rng.standard_normal((4, n, n))
    p += 20 * n * np.eye(n)
    P, A, B, C = (pl.Dense(v) for v in (p, a, b, c))
    inverse = np.linalg.inv(p + a @ b)
    for E, want, gemms in (
        (pl.inv(P + A @ B) @ (A @ B), inverse @ (a @ b), 1),
        (pl.inv(P + A @ B) @ C + (A @ B) @ C, (inverse + a @ b) @ c, 2),
    ):
        assert sum(s.startswith("gemm") for s in steps(E.explain("dense"))) == gemms
        np.testing.assert_allclose(E.toarray(), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("eye", ["kron", "blocks"])
def test_identities_written_twice_are_one(rng, eye):
    """Leaves without numbers are the same where they mean the same: one matrix, one factor."""
    a = rng.standard_normal((20, 20))
    A, d, x = pl.Dense(a @ a.T + np.eye(20), "pos"), 1 + rng.random(60), rng.standard_normal(60)
    D = pl.Diag(d)

    def whole():
        if eye == "kron":
            return pl.lazy(pl.Kron(pl.Identity(3), A) + D)
        return pl.lazy(pl.BlockDiag(pl.Identity(5), A, pl.Identity(35)) + D)

    with pl.explaining() as plan:
        got, logdet = pl.evaluate(pl.solve(whole(), x), pl.logdet(whole()))
    assert steps(plan).count("potrf") == 1
    dense = np.asarray(whole())
    np.testing.assert_allclose(got, np.linalg.solve(dense, x), rtol=1e-10)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(dense)[1])


@pytest.mark.parametrize("terms", [15, 16, 17, 30, 48, 49, 70])
def test_sums_of_more_terms_than_the_planner_reads_are_right(rng, terms):
    """16 terms are looked at together, and 48 in all; what is longer goes as written."""
    a, b = rng.standard_normal((2, terms, 3, 3))
    made = sum((pl.lazy(p) @ pl.lazy(q) for p, q in zip(a[1:], b[1:])), pl.lazy(a[0]) @ b[0])
    assert ("dense-sum" in made.explain().fired) == (terms > 16)
    np.testing.assert_allclose(made.toarray(), (a @ b).sum(0), rtol=1e-12, atol=1e-12)
    nested = (pl.lazy(b[0]) + pl.lazy(b[1])) @ made + made
    want = (b[0] + b[1]) @ (a @ b).sum(0) + (a @ b).sum(0)
    np.testing.assert_allclose(nested.toarray(), want, rtol=1e-11, atol=1e-11)


def test_sums_are_multiplied_out_where_a_part_is_shared(rng):
    a, b, x = rng.standard_normal((3, 200, 200))
    A, B, v, X = pl.lazy(a), pl.lazy(b), pl.lazy(x[0]), pl.lazy(x[:, :50])
    both = (A + B) @ v + A @ v
    assert steps(both.explain()) == "gemm scale gemm add".split()
    np.testing.assert_allclose(both.toarray(), 2 * a @ x[0] + b @ x[0], atol=1e-11)
    with pl.explaining() as plan:
        first, second = pl.evaluate((A + B) @ X, A @ X)
    assert steps(plan) == "gemm start gemm-add".split()
    np.testing.assert_allclose(first, (a + b) @ x[:, :50], atol=1e-11)
    np.testing.assert_allclose(second, a @ x[:, :50], atol=1e-11)


def test_what_stands_inside_and_outside_of_an_inverse_is_computed_once(rng):
    p, h = rng.standard_normal((80, 80)), rng.standard_normal((30, 80))
    p = p @ p.T
    P, H, R = pl.lazy(p, "pos"), pl.lazy(h), pl.lazy(np.eye(30), "pos")
    gain = P @ H.T @ pl.inv(H @ P @ H.T + R)
    made = steps(gain.explain())
    assert made.count("half-gemm") == 1 and made.count("gemm-add") == 1  # P H^T, and H (P H^T) + R
    want = p @ h.T @ np.linalg.inv(h @ p @ h.T + np.eye(30))
    np.testing.assert_allclose(gain.toarray(), want, rtol=1e-7, atol=1e-9)


CUTS = (np.s_[1:, :], np.s_[:, 2:], np.s_[2:, 1:], np.s_[::2, 1::2])


@pytest.mark.parametrize("m, n", [(9, 7), (7, 9)])
def test_slices_of_slices_of_a_toeplitz(rng, m, n):
    c, r = rng.standard_normal(m), rng.standard_normal(n)
    T = pl.Toeplitz(c, np.r_[c[0], r[1:]])
    dense = np.array([[c[i - j] if i >= j else r[j - i] for j in range(n)] for i in range(m)])
    for seen, want in ((T, dense), (T.T, dense.T)):
        np.testing.assert_array_equal(seen.toarray(), want)
        turned = (2.0 * pl.lazy(seen)).T  # written column by column
        np.testing.assert_array_equal(turned.toarray(), 2 * want.T)
        for one in CUTS:
            for two in CUTS:
                np.testing.assert_array_equal(seen[one][two].toarray(), want[one][two])


def test_a_sum_of_two_inverses_is_solved_without_either(rng):
    a, b = rng.standard_normal((2, 12, 12))
    a, b, x = a @ a.T + np.eye(12), b @ b.T + np.eye(12), rng.standard_normal(12)
    both = pl.inv(pl.Dense(a, "pos")) + pl.inv(pl.Dense(b, "pos"))
    plan = both.explain("solve", x)
    assert "solve-thin-sum" in plan.fired and "add-halves" in steps(plan)[:3]  # A (A + B)^-1 B x
    want = np.linalg.solve(np.linalg.inv(a) + np.linalg.inv(b), x)
    np.testing.assert_allclose(pl.solve(both, x), want, rtol=1e-8, atol=1e-9)


def test_what_is_assumed_orthogonal_is_solved_by_a_product(rng):
    q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    Q, x = pl.Dense(q, "orthogonal"), rng.standard_normal(20)
    assert "getrf" not in steps(Q.explain("solve", x))
    np.testing.assert_allclose(pl.solve(Q, x), q.T @ x, rtol=1e-12, atol=1e-12)
    y = pl.lazy(rng.standard_normal((20, 3)))
    assert steps((Q.H @ (Q @ (2 * y))).explain()) == ["scale"]
    with pl.config(check="full"):  # what is put to the test is not left out
        assert len(steps((Q.H @ (Q @ (2 * y))).explain())) > 1
        with pytest.raises(ValueError, match="assumed orthogonal"):
            wrong = pl.Dense(2 * q, "orthogonal")
            np.asarray(wrong.H @ (wrong @ y))


@pytest.mark.parametrize("c", [1, 0.5, -0.25])
@pytest.mark.parametrize("n", [15, 16, 17, 100])
def test_multiples_of_a_thin_product_keep_their_number(rng, n, c):
    d, u, v = rng.uniform(4, 5, n), rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    U, V = pl.Dense(u), pl.Dense(v)
    for A, a in (
        (pl.Diag(d) + c * (U @ U.T), np.diag(d) + c * u @ u.T),
        (pl.Diag(d) + c * (U @ V.T), np.diag(d) + c * u @ v.T),
        (pl.Diag(d) + c * (U @ U.T) + c * (U @ U.T), np.diag(d) + 2 * c * u @ u.T),
        (pl.Diag(d) + pl.Kron(c * (U @ U.T)), np.diag(d) + c * u @ u.T),
    ):
        b = rng.standard_normal(n)
        np.testing.assert_allclose(a @ pl.solve(A, b), b, rtol=0, atol=1e-9 * np.linalg.cond(a))
        sign, value = np.linalg.slogdet(a)
        assert pl.slogdet(A).sign == sign and abs(pl.slogdet(A).logabsdet - value) < 1e-10 * n


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("n", [60, 100])
def test_a_determinant_of_one_column_more_needs_no_safer_way(rng, n, k):
    """S is a number of one sign: however the diagonal is graded, its determinant loses nothing."""
    d, u = 1e2 ** np.arange(n), rng.standard_normal((n, k))
    A = pl.Diag(d) + pl.Dense(u) @ pl.Dense(u).T
    with pl.explaining() as told:
        sign, logdet = pl.slogdet(A)
    beside = [s for p in told.plans for s in p.steps if s["late"] is not None]
    assert beside and any(s["took"] is not None for s in beside) == (k > 1)
    small = np.eye(k) + u.T @ (u / d[:, None])
    assert sign == 1
    np.testing.assert_allclose(logdet, np.log(d).sum() + np.linalg.slogdet(small)[1], rtol=1e-13)


@pytest.mark.parametrize("n", [3, 20])
def test_a_sum_within_the_sum_that_is_being_read(rng, n):
    """What undoes an inverse before it is read, and forgotten: the next sum is read in its place,
    and within it the same sum once more."""
    a, b, c, x = rng.standard_normal((4, n, n))
    a, b = a @ a.T + np.eye(n), b @ b.T + np.eye(n)
    A, B, C, X = pl.Dense(a, "pos"), pl.Dense(b, "pos"), pl.Dense(c), pl.Dense(x)
    made = (X @ pl.inv(A + B)) @ ((A + B) @ (A + (A + B) @ C))
    want = x @ (a + (a + b) @ c)
    np.testing.assert_allclose(made.toarray(), want, rtol=1e-9, atol=1e-9 * abs(want).max())
