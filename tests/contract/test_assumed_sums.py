"""Sums of what was assumed positive definite and of semidefinite terms: determinants."""

import warnings

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("n", [4, 30])
def test_sums_of_what_is_not_positive(n, rng):
    P = pl.Dense(np.diag(np.where(np.arange(n) % 2, -3.0, 2.0)), assume_a="pos")
    X = pl.Dense(rng.standard_normal((n - 1, n)))
    for A in (P + 0.5 * pl.Identity(n), P + P, P + 0.01 * (X.T @ X), 0.5 * pl.Identity(n) + P):
        for f in (pl.logdet, pl.slogdet, pl.det):
            with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                f(A)
    sign = pl.slogdet(P - 0.5 * pl.Identity(n)).sign  # nothing was assumed of a difference
    assert sign == (-1) ** (n // 2)


def broken(n, dtype="float64"):
    """Assumed positive definite, and of n // 2 negative eigenvalues: its determinant is positive
    for the sizes used here."""
    return pl.Dense(np.diag(np.where(np.arange(n) % 2, -3.0, 2.0)).astype(dtype), assume_a="pos")


DETERMINANTS = (
    pl.logdet,
    pl.slogdet,
    pl.det,
    lambda A: pl.inv_quad_logdet(A, np.ones(A.shape[-1])),
)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("n", [4, 32, 120])
def test_beside_terms_of_unknown_signs(n, dtype, rng):
    """P + D: where Cholesky of the sum fails, P itself is factored, and that says whose fault it
    is."""
    P, d = broken(n, dtype), 0.1 + rng.random(n)
    X, F = rng.standard_normal((n, 2)), rng.standard_normal((n + 1, n))
    points = rng.random((n, 1))
    for A in (
        P + pl.Diag(d),
        pl.Diag(d) + P,
        3 * (P + pl.Diag(d)),
        pl.inv(P + pl.Diag(d)),
        P + pl.LowRank(X),
        P + pl.Diag(d) + pl.Dense(X) @ pl.Dense(X).T,
        P + pl.Kernel("rbf", points),
        pl.Kron(P + pl.Diag(d), np.eye(2)),
        pl.Diag(np.r_[d, 1]) + pl.Dense(F) @ P @ pl.Dense(F).T,
    ):
        for f in DETERMINANTS:
            with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                f(A)
        with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
            assert np.isfinite(pl.slogdet(A).logabsdet)


@pytest.mark.parametrize("n", [4, 32, 120])
def test_an_assumption_that_holds_beside_what_is_negative(n, rng):
    """Of a true P the sum's determinant is the number that it is."""
    a = rng.standard_normal((n, n))
    a = a @ a.T + n * np.eye(n)
    d = -40.0 * n * (np.arange(n) == 1)
    P = pl.Dense(a, assume_a="pos")
    for A in (P + pl.Diag(d), P + pl.Diag(d) + pl.Dense(a[:1]).T @ pl.Dense(a[:1])):
        want = np.linalg.slogdet(A.toarray())
        assert want[0] == -1
        found = pl.slogdet(A)
        assert found.sign == -1
        np.testing.assert_allclose(found.logabsdet, want[1], rtol=1e-12)
        assert np.isnan(pl.logdet(A))
    A = P + pl.Diag(np.where(np.arange(n) == 1, np.nan, 1.0))
    assert np.isnan(pl.logdet(A))


@pytest.mark.parametrize("n", [4, 32])
def test_one_of_a_batch(n, rng):
    good = np.eye(n)
    bad = broken(n).toarray()
    d = 0.1 + rng.random((3, n))
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.logdet(pl.Dense(np.stack([good, bad, good]), assume_a="pos") + pl.Diag(d))
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.logdet(broken(n) + pl.Diag(d))
    d[1] -= 2 + d[1]  # one sum is indefinite, and what is assumed holds
    A = pl.Dense(np.stack([good, good, good]), assume_a="pos") + pl.Diag(d)
    want = np.linalg.slogdet(A.toarray())
    np.testing.assert_array_equal(pl.slogdet(A).sign, want[0])
    np.testing.assert_allclose(pl.slogdet(A).logabsdet, want[1], rtol=1e-12)


def banded(w, d, off=0.1):
    """Ones beside the diagonal d, and faint ones out to w."""
    ab = np.full((2 * w + 1, d.shape[-1]), off, d.dtype)
    ab[w - 1] = ab[w + 1] = 1
    ab[w] = d
    return ab


BANDS = {
    "Tridiagonal": lambda d: pl.Tridiagonal(1 + 0 * d[1:], d, 1 + 0 * d[1:], assume_a="pos"),
    "Banded of 1": lambda d: pl.Banded((1, 1), banded(1, d), assume_a="pos"),
    "Banded of 3": lambda d: pl.Banded((3, 3), banded(3, d), assume_a="pos"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [6, 16, 17, 100])
@pytest.mark.parametrize("kind", BANDS)
def test_bands_that_are_not_what_was_assumed(kind, n, dtype, rng):
    """Two eigenvalues below zero: the determinant has the sign of a definite matrix."""
    B = BANDS[kind](np.where(np.arange(n) < 2, -3.0, 4.0).astype(dtype))
    d = 0.1 + 0.1 * rng.random(n)
    wide = pl.Toeplitz(0.01 * 0.5 ** np.arange(n))
    other = pl.Tridiagonal(0.1 + 0 * d[1:], d, 0.1 + 0 * d[1:], assume_a="her")
    with pl.config(check_plans=True):
        for A in (
            B + pl.Diag(d),
            pl.Diag(d) + B,
            2 * B + pl.Diag(d),
            pl.Diag(d) + B.T,
            pl.inv(B + pl.Diag(d)),
            B + pl.Diag(d) + 0.5 * pl.Identity(n),
            B + (other if kind != "Tridiagonal" else pl.Diag(d)),  # two of them are one that is not
            B + pl.Diag(d) + wide,
            B + pl.Diag(d) + pl.LowRank(0.1 * rng.standard_normal((n, 1))),
        ):
            for f in DETERMINANTS:
                with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                    f(A)
            with pl.config(not_definite="nan"):
                assert np.isnan(pl.logdet(A))
        want = np.linalg.slogdet((B + pl.Diag(d)).toarray())
        with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
            found = pl.slogdet(B + pl.Diag(d))
    rtol = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found.sign, want[0], rtol=rtol)
    np.testing.assert_allclose(found.logabsdet, want[1], rtol=rtol)


@pytest.mark.parametrize("n", [6, 17, 100])
@pytest.mark.parametrize("kind", BANDS)
def test_bands_whose_sum_is_definite_or_whose_assumption_holds(kind, n, rng):
    """What is only semidefinite by itself, as in smoothing, is no error beside what helps it; of a
    true one the sum's determinant is the number that it is."""
    faint = BANDS[kind](np.full(n, 1.5))
    good = BANDS[kind](np.full(n, 4.0))
    low = -40.0 * (np.arange(n) == 1)
    for A, sign in ((faint + pl.Diag(4 + rng.random(n)), 1), (good + pl.Diag(low), -1)):
        with pl.config(check_plans=True, verify=True):
            found = pl.slogdet(A)
        want = np.linalg.slogdet(A.toarray())
        assert found.sign == want[0] == sign
        np.testing.assert_allclose(found.logabsdet, want[1], rtol=1e-12)
    assert np.isnan(pl.logdet(good + pl.Diag(low)))
    A = good + pl.Diag(np.where(np.arange(n) == 1, np.nan, 1.0))
    assert np.isnan(pl.logdet(A))


@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("kind", BANDS)
def test_bands_beside_batches(kind, n, rng):
    d = 0.1 + rng.random((3, n))
    good, bad = np.full(n, 4.0), np.where(np.arange(n) < 2, -3.0, 4.0)
    A = BANDS[kind](good) + pl.Diag(d)
    np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(A.toarray())[1], rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.logdet(BANDS[kind](bad) + pl.Diag(d))
    d[1] = -40.0 * (np.arange(n) == 1)
    A = BANDS[kind](good) + pl.Diag(d)
    want = np.linalg.slogdet(A.toarray())
    np.testing.assert_array_equal(pl.slogdet(A).sign, want[0])
    np.testing.assert_allclose(pl.slogdet(A).logabsdet, want[1], rtol=1e-12)


def declared(kind, d):
    return pl.Dense(np.diag(d) + 0.01, assume_a="pos") if kind == "Dense" else BANDS[kind](d)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n", [(5, 6), (16, 17), (20, 21)])
@pytest.mark.parametrize("kind", [*BANDS, "Dense"])
def test_sums_by_eigenvalues(kind, m, n, dtype, rng):
    """Of an even number of negative ones the determinant has the sign of a definite matrix."""
    good = declared(kind, np.full(n, 4.0, dtype))
    bad = declared(kind, np.where(np.arange(m) < 2, -9.0, 4.0).astype(dtype))
    rtol = 1e-5 if dtype == "float32" else 1e-12
    with pl.config(check_plans=True):
        for make in (
            lambda a, b: pl.KronSum(a, b),
            lambda a, b: pl.KronSum(b, a) + 0.5 * pl.Identity(a.shape[0] * b.shape[0]),
            lambda a, b: pl.Kron(a, b) + 0.5 * pl.Identity(a.shape[0] * b.shape[0]),
            lambda a, b: 2 * pl.KronSum(a, b),
        ):
            for f in DETERMINANTS:
                with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                    f(make(bad, good))
            A = make(bad, good)
            want = np.linalg.slogdet(A.toarray().astype(float))
            with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
                found = pl.slogdet(A)
            assert found.sign == want[0]
            np.testing.assert_allclose(found.logabsdet, want[1], rtol=rtol)
            A = make(declared(kind, np.full(m, 3.0, dtype)), good)
            with pl.config(verify=True):
                found = pl.logdet(A)
            want = np.linalg.slogdet(A.toarray().astype(float))[1]
            np.testing.assert_allclose(found, want, rtol=rtol)
    A = pl.KronSum(bad, good) - 40 * pl.Identity(m * n)  # nothing was assumed of a difference
    want = np.linalg.slogdet(A.toarray().astype(float))
    assert pl.slogdet(A).sign == want[0]
    np.testing.assert_allclose(pl.slogdet(A).logabsdet, want[1], rtol=rtol)


def tridiagonal(d, off=1.0, word="pos"):
    return pl.Tridiagonal(off + 0 * d[1:], d, off + 0 * d[1:], assume_a=word)


def blocks(b):
    def make(d, off=0.1, word="pos"):
        """Blocks of b rows, with the diagonal d."""
        D = np.full((len(d) // b, b, b), off, d.dtype)
        D[:, range(b), range(b)] = d.reshape(-1, b)
        return pl.BlockTridiagonal(np.full((len(D) - 1, b, b), off, d.dtype), D, assume_a=word)

    return make


CLOSED = {"Tridiagonal": tridiagonal, "blocks of 2": blocks(2), "blocks of 10": blocks(10)}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("kind", CLOSED)
def test_sums_that_are_of_the_kind_again(kind, n, dtype, rng):
    """Which remember what was assumed in them."""
    make = CLOSED[kind]
    B = make(np.where(np.arange(n) < 2, -3.0, 4.0).astype(dtype))
    other = make((0.1 + 0.1 * rng.random(n)).astype(dtype), 0.05, "her")
    D = pl.Diag((0.1 + 0.1 * rng.random(n)).astype(np.zeros(0, dtype).real.dtype))
    I = pl.Identity(n)
    with pl.config(check_plans=True):
        for A in (
            B + D,
            D + B,
            B + other,
            other + B,
            B + other + D,
            D + (other + B) + other,
            2 * (B + D) + other,
            (B + D).conj() + other,
            (B + other).T + D,
            3 * (other + B),
            B + B,
            B + other + B,
            B + other + 0.5 * I,
            pl.inv(B + other),
            pl.Kron(B + other, np.eye(2)),
            (B + other).astype("complex128"),
        ):
            for f in DETERMINANTS:
                with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                    f(A)
            with pl.config(not_definite="nan"):
                assert np.isnan(pl.logdet(A))
        want = np.linalg.slogdet((B + other).toarray())
        with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
            found = pl.slogdet(B + other)
    rtol = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found.sign, want[0], rtol=rtol)
    np.testing.assert_allclose(found.logabsdet, want[1], rtol=rtol)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("kind", CLOSED)
def test_sums_of_the_kind_whose_assumptions_hold(kind, n, rng):
    make = CLOSED[kind]
    good, faint = make(4 + rng.random(n)), make(np.full(n, -0.1))
    low = make(-40.0 * (np.arange(n) == 1), 0.0, "her")
    nothing = make(1 + rng.random(n), 0.2, "gen")
    positive = make(9 + rng.random(n), 0.2, "her")
    for A, sign in (
        (good + low, -1),
        (low + good, -1),
        (2 * (low + good), -1),
        (good + nothing, 1),
        (faint + positive, 1),
        (good + good, 1),
        (good - low, 1),
    ):
        with pl.config(check_plans=True, verify=True):
            found = pl.slogdet(A)
        want = np.linalg.slogdet(A.toarray())
        assert found.sign == want[0] == sign
        np.testing.assert_allclose(found.logabsdet, want[1], rtol=1e-12)
        b = rng.standard_normal(n)
        np.testing.assert_allclose(A @ pl.solve(A, b), b, rtol=1e-9, atol=1e-9)
    assert np.isnan(pl.logdet(good + low))
    broken = make(np.where(np.arange(n) < 2, -9.0, 4.0))  # nothing is assumed of a difference
    A = positive - broken
    np.testing.assert_allclose(pl.slogdet(A).logabsdet, np.linalg.slogdet(A.toarray())[1])


@pytest.mark.parametrize("kind", CLOSED)
def test_sums_of_the_kind_in_batches(kind, rng):
    make, n = CLOSED[kind], 20
    good, other = make(4 + rng.random(n)), make(1 + rng.random(n), 0.2, "her")
    stack = pl.Diag(0.1 + rng.random((3, n)))
    A = good + other + stack
    want = np.linalg.slogdet(A.toarray())
    np.testing.assert_allclose(pl.logdet(A), want[1], rtol=1e-12)
    bad = make(np.where(np.arange(n) < 2, -9.0, 4.0))
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.logdet(bad + other + stack)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("kind", CLOSED)
def test_sums_of_two_assumptions_of_which_one_is_false(kind, n, rng):
    """Both are remembered: whichever is the false one, it is found."""
    make = CLOSED[kind]
    true, false = make(0.4 + 0 * rng.random(n), 0.05), make(np.where(np.arange(n) < 2, -3.0, 4.0))
    other, D = make(0.1 + 0.1 * rng.random(n), 0.05, "her"), pl.Diag(0.1 + 0.1 * rng.random(n))
    with pl.config(check_plans=True):
        for A, B in ((true, false), (false, true)):
            for made in (
                (A + D) + B,
                B + (A + D),
                (A + other) + (B + other),
                (A + D) + 2 * (other + B),
                ((A + D) + (B + D)) + other,
                (A + other + D) + (A + D) + (D + B),
                (A + D) + (A + other) + 3 * ((A + D) + (B + D)),
            ):
                assert type(made) is type(A)
                for f in DETERMINANTS:
                    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                        f(made)
        good = (true + D) + (make(4 + rng.random(n)) + other)
        with pl.config(verify=True):
            found = pl.logdet(good)
        np.testing.assert_allclose(found, np.linalg.slogdet(good.toarray())[1], rtol=1e-12)


@pytest.mark.parametrize("kind", CLOSED)
def test_a_sum_that_is_too_long_to_be_remembered_is_a_number(kind, rng):
    """21 steps back are kept: beyond them nothing is tested, and nothing is wrong."""
    A = CLOSED[kind](np.where(np.arange(20) < 2, -3.0, 4.0))
    for terms in range(1, 41):
        A = A + pl.Diag(0.001 * rng.random(20))
        if terms <= 20:
            with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
                pl.logdet(A)
        else:
            want = np.linalg.slogdet(A.toarray())
            np.testing.assert_allclose(pl.slogdet(A), want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["fallback", "nan", "raise"])
def test_a_singular_sum_is_not_blamed_on_what_is_true(mode, rng):
    """X A X^T and 0 A are semidefinite alone: that their sum has no Cholesky factor says nothing
    of A."""
    X, R = rng.standard_normal((6, 3)), rng.standard_normal((3, 3))
    Y = np.column_stack([X[:, :2], rng.standard_normal(6)])
    A = pl.Dense(R @ R.T + np.eye(3), "pos")
    P = pl.Dense(X @ X.T + np.eye(6), "pos")
    S = pl.Dense(X) @ A @ pl.Dense(X).T + pl.Dense(Y) @ pl.Dense(Y).T
    b = S @ rng.standard_normal(6)
    with pl.config(not_definite=mode), warnings.catch_warnings():
        warnings.simplefilter("error", pl.FallbackWarning)
        warnings.simplefilter("ignore", pl.IllConditionedWarning)
        for made in (S, 0.0 * P + pl.Dense(Y) @ pl.Dense(Y).T):
            try:
                assert not np.isnan(pl.solve(made, b)).any()
            except np.linalg.LinAlgError as error:
                assert "assumed" not in str(error)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("k", [2, 15, 16, 17, 60, 100])
def test_inverses_within_products_say_what_is_false(k, dtype, rng):
    """P H^T inv(H P H^T + R): the planner opens the inverse, and says of R what a solve says."""

    def drawn(*shape):
        a = rng.standard_normal(shape)
        return a + 1j * rng.standard_normal(shape) if dtype == "complex128" else a

    n = k + 20
    G = drawn(n, n)
    H = pl.Dense(drawn(k, n))
    P = pl.Dense(G @ G.conj().T / n + np.eye(n), "pos")
    Q = np.linalg.qr(drawn(k, k))[0]
    far = -1e3 - 30 * np.linalg.norm((H @ P @ H.H).toarray(), 2)
    false = pl.Dense((Q * np.where(np.arange(k) < 1, far, 1.0)) @ Q.conj().T, "pos")
    true = pl.Dense(Q @ Q.conj().T + np.eye(k), "pos")
    y, x = drawn(k), drawn(n)
    asked = (
        lambda S: P @ H.H @ pl.inv(S) @ y,
        lambda S: (P @ H.H @ pl.inv(S)).toarray(),
        lambda S: (P - P @ H.H @ pl.inv(S) @ H @ P).toarray(),
        lambda S: (H.H @ pl.inv(S) @ H).toarray(),
        lambda S: pl.diagonal(P @ H.H @ pl.inv(S) @ H @ P),
        lambda S: pl.inv(S) @ (H @ x) + pl.solve(S, y),
    )
    with pl.config(check_plans=True):
        for i, f in enumerate(asked):
            S = H @ P @ H.H + false
            with pytest.warns(pl.FallbackWarning, match=rf"Dense \({k}, {k}\)"):
                got = f(S)
            want = np.linalg.inv(S.toarray())
            if i == 1:
                want = P.toarray() @ H.toarray().conj().T @ want
                np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7 * abs(want).max())
            with pl.config(not_definite="nan"):
                assert np.isnan(f(S)).any()
            with (
                pl.config(not_definite="raise"),
                pytest.raises(np.linalg.LinAlgError, match=rf"Dense \({k}, {k}\)"),
            ):
                f(S)
            with pl.config(not_definite="raise", verify=True):
                f(H @ P @ H.H + true)


@pytest.mark.parametrize("mode", ["fallback", "nan", "raise"])
@pytest.mark.parametrize("n", [2, 15, 17, 60, 100])
def test_a_true_assumption_beside_large_terms_is_not_blamed(n, mode, rng):
    """1e-19 I + U U^T has no Cholesky factor in working precision: that says nothing of the
    first."""
    U = pl.Dense(rng.standard_normal((n, n // 2)))
    tiny = 1e-19 * np.eye(n)
    lines = np.full(n - 1, 1e-21)
    b = rng.standard_normal(n)
    for D in (
        pl.Dense(tiny, "pos"),
        pl.Banded((0, 0), np.full((1, n), 1e-19), assume_a="pos"),
        pl.Tridiagonal(lines, np.full(n, 1e-19), lines, assume_a="pos"),
    ):
        with pl.config(not_definite=mode, check_plans=True), warnings.catch_warnings():
            warnings.simplefilter("error", pl.FallbackWarning)
            warnings.simplefilter("ignore", pl.IllConditionedWarning)
            for f in (
                lambda A: pl.solve(A, b),
                lambda A: pl.inv(A).toarray(),
                lambda A: pl.diagonal(pl.inv(A)),
                lambda A: pl.slogdet(A).logabsdet,
            ):
                try:
                    assert not np.isnan(f(D + U @ U.T)).any()
                except np.linalg.LinAlgError as error:
                    assert "assumed" not in str(error)  # LU met a pivot that is 0
    bad = pl.Dense(-tiny, "pos")
    with pl.config(not_definite="raise"):
        with pytest.raises(np.linalg.LinAlgError, match="Dense .* was assumed"):
            pl.solve(bad, b)
