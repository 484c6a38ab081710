"""pl.config(check=...): what is found of assumed properties that do not hold, and when."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

N = 30


def _matrix(word, broken):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((N, N))
    a = {
        "sym": a + a.T,
        "her": a + a.T + 1j * (a - a.T),
        "pos": a @ a.T + N * np.eye(N),
        "lower triangular": np.tril(a) + N * np.eye(N),
        "upper triangular": np.triu(a) + N * np.eye(N),
        "orthogonal": np.linalg.qr(a)[0],
    }[word]
    if broken:
        i, j = (20, 3) if word != "lower triangular" else (3, 20)
        a[i, j] += 0.5
    return a


WORDS = ["sym", "her", "pos", "lower triangular", "upper triangular", "orthogonal"]


@pytest.mark.parametrize("word", WORDS)
def test_full_finds_what_is_false(word):
    b = np.ones(N)
    good, bad = (pl.Dense(_matrix(word, broken), word) for broken in (False, True))
    with pl.config(check="full"):
        np.testing.assert_allclose(
            pl.solve(good, b), np.linalg.solve(_matrix(word, False), b), rtol=1e-8, atol=1e-12
        )
        assert np.isfinite(pl.slogdet(good)[1])
        for view in (bad, bad.T, bad.H, 2 * bad):
            with pytest.raises(ValueError, match="assumed"):
                pl.solve(view, b)
        with pytest.raises(ValueError, match="assumed"):
            np.asarray(pl.inv(pl.lazy(_matrix(word, True), word)) @ b)
        for f in (pl.logdet, pl.svdvals, pl.expm, pl.trace, lambda A: A @ b, lambda A: A.toarray()):
            with pytest.raises(ValueError, match="assumed"):
                f(bad)
    names = [s["name"] for s in good.explain("solve", b).steps]
    assert "test-assumption" not in names
    with pl.config(check="full"):
        assert "test-assumption" in [s["name"] for s in good.explain("solve", b).steps]


def _bands(word, broken):
    """Kinds with an assumption that hold bands: none of them symmetric where ``broken``."""
    i = 1j if word == "her" else 0
    low, up = np.full(N - 1, 1.0 + i), np.full(N - 1, 1.0 - i)
    ab = np.zeros((5, N), complex if i else float)
    ab[2], ab[1, 1:], ab[3, :-1], ab[0, 2:], ab[4, :-2] = 9, up, low, 0.5, 0.5
    ab[0, :2] = ab[4, -2:] = ab[1, 0] = ab[3, -1] = np.nan  # not within the matrix
    if broken:
        low[7] += 0.5
        ab[4, 7] += 0.5
    below, above = np.full((N // 2 - 1, 2, 2), 0.25 + i), np.full((N // 2 - 1, 2, 2), 0.25 - i)
    on = np.tile(np.array([[9.0, 1 - i], [1 + i, 9.0]]), (N // 2, 1, 1))
    if broken:
        on[4, 0, 1] += 0.5  # element (8, 9)
    return (
        pl.Tridiagonal(low, np.full(N, 4.0 + 0 * i), up, word),
        pl.Banded((2, 2), ab, word),
        pl.BlockTridiagonal(below, on, above, assume_a=word),
        pl.BlockTridiagonal(below, on, assume_a=word),
    )


@pytest.mark.parametrize("word", ["sym", "her", "pos"])
def test_full_tests_every_kind_that_is_assumed(word):
    b = np.ones(N)
    with pl.config(check="full"):
        for A in _bands(word, False):
            np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-9)
            assert np.isfinite(pl.logdet(A)) and "test-assumption" in [
                s["name"] for s in A.explain("solve", b).steps
            ]
        for A in _bands(word, True):
            for view in (A, A.T, A.H, A.conj()):
                for f in (pl.logdet, pl.eigvalsh, pl.cholesky, lambda V: pl.solve(V, b)):
                    with pytest.raises(ValueError, match=r"assumed .*\(([89], 7|7, [89]|8, 9)\)"):
                        f(view)
    for A in _bands(word, True):
        assert "test-assumption" not in [s["name"] for s in A.explain("solve", b).steps]


@pytest.mark.parametrize("word", ["sym", "her", "pos", "orthogonal"])
def test_full_tests_what_stands_within_expressions(word):
    D = pl.Diag(np.full(N, 50.0))
    small = pl.Dense(np.ones((N, 1)))
    for A in (pl.Dense(_matrix(word, True), word), *(() if word[0] == "o" else _bands(word, True))):
        wholes = [
            *(A + D, A + A, A @ D, 2 * A - D, pl.Kron(A, pl.Diag([1.0, 2.0])), pl.BlockDiag(D, A)),
            *(pl.LowRankUpdate(A, small), pl.Block([[A, D], [D, D]]), pl.KronSum(A, D)),
            *(D @ A @ D, A.H @ D @ A, pl.inv(A) + D),
        ]
        with pl.config(check="full"):
            for i, whole in enumerate(wholes):
                for f in (pl.logdet, lambda W: pl.solve(W, np.ones(W.shape[0])), pl.svdvals):
                    with pytest.raises(ValueError, match="assumed"):
                        print(i, f(whole))


def _kinds_that_take_an_assumption():
    return {k["name"] for k in _core.kinds() if any(p["name"] == "assume_a" for p in k["params"])}


def test_no_kind_that_is_assumed_goes_untested():
    tested = {type(A).__name__ for A in _bands("sym", True)} | {"Dense"}
    assert _kinds_that_take_an_assumption() == tested


def test_blocks_are_compared_above_and_below():
    d = np.tile(np.eye(2), (3, 1, 1))
    low = np.ones((2, 2, 2))
    up = low.copy()
    up[1, 0, 1] = 2  # element (2, 5), beside (5, 2)
    with pl.config(check="full"):
        with pytest.raises(ValueError, match=r"\(5, 2\) is 1.*\(2, 5\) is 2"):
            pl.BlockTridiagonal(low, d, up, assume_a="pos") @ np.ones(6)
        with pytest.raises(ValueError, match="assumed symmetric"):  # the adjoints stand above
            pl.BlockTridiagonal(low * 1j, d, assume_a="sym") @ np.ones(6)
        for blocks in (0, 1):
            A = pl.BlockTridiagonal(np.ones((0, 2, 2)), d[:blocks], assume_a="her")
            np.testing.assert_array_equal(A @ np.ones(2 * blocks), np.ones(2 * blocks))
        stacked = np.stack([low, low + np.eye(2)]), np.stack([d, d]), np.stack([low, low])
        with pytest.raises(ValueError, match="assumed"):
            pl.BlockTridiagonal(*stacked, assume_a="sym") @ np.ones((6, 1))
        T = pl.Tridiagonal([2.0], [0.0, 0.0], [0.5], "orthogonal")  # nothing relies on it
        np.testing.assert_array_equal(T @ [1.0, 1.0], [0.5, 2.0])


def test_what_follows_from_single_nodes_is_not_hurt_by_testing():
    n, A = 3000, pl.Dense(np.eye(2), "sym")
    with pl.config(check="full"):
        S = A
        for _ in range(n):
            S = S + A
        np.testing.assert_allclose(S @ np.ones(2), n + 1.0)
        np.testing.assert_allclose(pl.solve(pl.Dense(np.eye(3)[None], "pos"), np.ones((3, 1))), 1)
        np.testing.assert_allclose(pl.Dense(np.zeros((0, 0)), "her") @ np.ones(0), np.ones(0))
        assert pl.logdet(pl.Tridiagonal(np.ones(0), [2.0], np.ones(0), "pos")) == np.log(2.0)
        t = pl.Tridiagonal(np.ones((4, 2)), np.full(3, 4.0), np.ones(2), "pos")
        assert pl.solve(t, np.ones((3, 1))).shape == (4, 3, 1)


@pytest.mark.no_verify("what was assumed does not hold, so the answers are no solutions")
def test_cheap_finds_lengths_that_are_not_kept():
    b = np.random.default_rng(0).standard_normal((N, 2))
    good, bad = (pl.Dense(_matrix("orthogonal", broken), "orthogonal") for broken in (False, True))
    np.testing.assert_allclose(good @ pl.solve(good, b), b, atol=1e-12)
    for view in (bad, bad.T):
        with pytest.raises(ValueError, match="length"):
            pl.solve(view, b)
    with pl.config(check="none"):
        np.testing.assert_array_equal(pl.solve(bad, b), bad.H @ b)


@pytest.mark.parametrize("check", ["none", "cheap", "full"])
def test_a_failed_cholesky_is_told_at_every_level(check):
    a = np.diag([1.0, -1.0, 2.0])
    with pl.config(check=check), pytest.warns(pl.FallbackWarning):
        np.testing.assert_allclose(pl.solve(pl.Dense(a, "pos"), np.ones(3)), [1.0, -1.0, 0.5])


def test_full_shows_the_elements():
    a = np.eye(4)
    a[1, 2] = 5
    with pl.config(check="full"), pytest.raises(ValueError, match=r"\(1, 2\) is 5.*\(2, 1\) is 0"):
        pl.solve(pl.Dense(a, "sym"), np.ones(4))


def test_nan_passes_and_single_precision_is_not_taken_for_false():
    a = _matrix("orthogonal", False).astype(np.float32)
    b = np.ones(N, np.float32)
    with pl.config(check="full"):
        assert pl.solve(pl.Dense(a, "orthogonal"), b).dtype == np.float32
        s = np.full((3, 3), np.nan)
        assert np.isnan(pl.solve(pl.Dense(s, "sym"), np.ones(3))).all()


def test_stacks_are_tested_one_by_one():
    a = np.stack([np.eye(3), np.eye(3)])
    a[1, 0, 2] = 1
    with pl.config(check="full"), pytest.raises(ValueError, match="assumed"):
        pl.solve(pl.Dense(a, "sym"), np.ones((3, 1)))


def test_bad_levels_raise():
    with pytest.raises(ValueError, match="'none', 'cheap', 'full'"):
        pl.config(check="all")
    with pytest.raises(ValueError, match="check"):
        pl.config(check=2)
