"""cholesky, lu and ldl have the factor that solves and determinants keep, and leave it to them: the
store's counters show that nothing is factored twice, in either order; the bits are the same."""

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

DTYPES = ["f4", "f8", "c8", "c16"]
SIZES = [1, 2, 20, 40]  # Cholesky's of real matrices of up to 32 rows lie interleaved
BATCHES = [(), (2, 3)]


def made():
    return _core._store()["misses"]


def any_matrix(rng, n, dtype, batch):
    a = rng.normal(size=(*batch, n, n))
    if dtype[0] == "c":
        a = a + 1j * rng.normal(size=(*batch, n, n))
    return (a + 2 * np.eye(n)).astype(dtype)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def close(got, want):
    size = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=2000 * np.finfo(want.dtype).eps * size)


def assumed(rng, n, dtype, batch):
    a = any_matrix(rng, n, dtype, batch)
    return pl.Dense(a @ adjoint(a) + np.eye(n).astype(dtype), "pos")


def written(rng, n, dtype, batch):
    X = pl.Dense(any_matrix(rng, n, dtype, batch))
    return X.H @ X + pl.Identity(n)


def cholesky_parts(A):
    L = pl.cholesky(A)
    return [L], L.toarray() @ adjoint(L.toarray())


def lu_parts(A):
    P, L, U = pl.lu(A)
    return [P, L, U], P.toarray() @ L.toarray() @ U.toarray()


def ldl_parts(A, hermitian=True):
    L, D, order = pl.ldl(A, hermitian=hermitian)
    low = L.toarray()
    assert not np.triu(np.take_along_axis(low, order[..., None], -2), 1).any()
    return [L, D, pl.Permutation(order)], low @ D.toarray() @ (
        adjoint(low) if hermitian else low.swapaxes(-1, -2)
    )


def symmetric(rng, n, dtype, batch):
    a = any_matrix(rng, n, dtype, batch)
    return pl.Dense(a + a.swapaxes(-1, -2), "sym")


def hermitian(rng, n, dtype, batch):
    a = any_matrix(rng, n, dtype, batch)
    return pl.Dense(a + adjoint(a), "her")


def plus_ones(rng, n, dtype, batch):
    return pl.Dense(any_matrix(rng, n, dtype, batch)) + pl.Full((n, n), np.ones((), dtype)[()])


CASES = {
    "cholesky, assumed": (assumed, cholesky_parts),
    "cholesky, written": (written, cholesky_parts),
    "lu": (lambda *how: pl.Dense(any_matrix(*how)), lu_parts),
    "lu of a sum": (plus_ones, lu_parts),
    "ldl, symmetric": (symmetric, lambda A: ldl_parts(A, False)),
    "ldl, Hermitian": (hermitian, ldl_parts),
}


def same_bits(one, other):
    return all(
        f.toarray().tobytes() == g.toarray().tobytes() for f, g in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_one_factor_serves_all(case, dtype, batch, rng):
    make, factors = CASES[case]
    for n in SIZES:
        A = make(rng, n, dtype, batch)
        if n == 1 and A._head != "dense":
            continue  # a diagonal
        b = np.ones((n, 2), dtype)
        _core._clear_store()
        before = made()
        parts, product = factors(A)
        close(product, A.toarray())
        assert made() > before
        count = made()
        x, log = pl.solve(A, b), pl.slogdet(A)
        assert made() == count, n  # it was there
        _core._clear_store()
        assert pl.solve(A, b).tobytes() == x.tobytes()
        again = pl.slogdet(A)
        assert again.logabsdet.tobytes() == log.logabsdet.tobytes()
        count = made()
        other, _ = factors(A)
        assert made() == count + 1, n  # the answer, no factor
        assert same_bits(parts, other), n


def test_views_and_krons_share_it_too(rng):
    A, B = assumed(rng, 40, "c16", ()), pl.Dense(any_matrix(rng, 6, "f8", ()))
    b = np.ones((240, 1), complex)
    pl.cholesky(A)
    pl.lu(B.astype(complex))
    count = made()
    pl.solve(A.T, np.ones(40, complex))
    pl.solve(A.conj(), np.ones(40, complex))
    pl.solve(2 * A, np.ones(40, complex))
    pl.cholesky(3 * A.conj())
    assert made() == count
    pl.solve(pl.Kron(A, pl.Identity(6)), b)
    assert made() == count
    pl.sample(A, rng=0)
    assert made() == count


def test_a_write_in_place_makes_both_anew(rng):
    for n in (20, 40):
        a = np.asarray(assumed(rng, n, "f8", ()).args[0]).copy()
        A = pl.Dense(a, "pos")
        for _ in range(3):
            L, x = pl.cholesky(A).toarray(), pl.solve(A, np.ones(n))
            close(L @ L.T, a)
            close(a @ x, np.ones(n))
            a[np.diag_indices(n)] += 1


def test_the_factor_outlives_the_store(rng):
    for n in (20, 40):
        A = assumed(rng, n, "f8", ())
        L = pl.cholesky(A)
        want = L.toarray()
        _core._clear_store()
        del A
        gc.collect()
        for k in range(20):  # other factors, perhaps in its place
            pl.cholesky(assumed(rng, n, "f8", ())) @ np.ones(n)
        np.testing.assert_array_equal(L.toarray(), want)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(L)).toarray(), want)
        with pytest.raises(ValueError, match="read-only"):
            L.a[0, 0] = 1.0


def test_the_interpreter_ends_with_a_factor_seen():
    code = (
        "import builtins, numpy as np, pylinop as pl\n"
        "builtins.kept = pl.cholesky(pl.Dense(np.eye(40) + 1, 'pos'))\n"
        "builtins.array = builtins.kept.a\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and not run.stderr, run.stderr


@pytest.mark.parametrize("n", [5, 40])
def test_what_is_not_definite_is_named(n):
    both = np.stack([np.eye(n), -np.eye(n)])
    for A in (pl.Dense(both, "pos"), pl.Dense(both) @ pl.Dense(both).H - 2 * pl.Identity(n)):
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
                pl.cholesky(A)
    with pytest.raises(np.linalg.LinAlgError, match="batch element 1"):
        pl.cholesky(pl.Dense(both, "pos"))
    with pytest.warns(pl.FallbackWarning, match="Cholesky"):  # after that, solves fall back as ever
        x = pl.solve(pl.Dense(-np.eye(n), "pos"), np.ones(n))
    np.testing.assert_array_equal(x, -np.ones(n))


def test_singular_and_not_finite(rng):
    a = np.diag([1.0, 0.0, 2.0])
    P, L, U = pl.lu(pl.Dense(a))
    np.testing.assert_array_equal((P @ L @ U).toarray(), a)
    low, D, _ = pl.ldl(pl.Dense(a, "sym"))
    np.testing.assert_array_equal((low @ D @ low.T).toarray(), a)
    bad = np.full((4, 4), np.nan)
    assert np.isnan(pl.lu(pl.Dense(bad))[2].toarray()[0]).all()
    with pytest.raises(np.linalg.LinAlgError):
        pl.cholesky(pl.Dense(bad, "pos"))


def test_the_assumed_triangle_is_the_one_that_is_read(rng):
    for n in (6, 40):
        whole = np.asarray(assumed(rng, n, "f8", ()).args[0])
        A = pl.Dense(np.triu(whole), "pos")
        L = pl.cholesky(A).toarray()
        close(L @ L.T, whole)
        close(whole @ pl.solve(A, np.ones(n)), np.ones(n))
        low, D, _ = pl.ldl(pl.Dense(np.triu(whole), "sym"))
        close((low @ D @ low.T).toarray(), whole)


def test_integers_and_what_solves_keep_no_factor_of(rng):
    a = np.array([[4, 2], [2, 5]])
    np.testing.assert_array_equal(pl.cholesky(pl.Dense(a, "pos")).toarray(), [[2, 0], [1, 2]])
    assert pl.Dense(a)._factored(1) is NotImplemented
    assert pl.Dense(a)._factored(2) is NotImplemented
    assert pl.Dense(a, "lower triangular")._factored(0) is NotImplemented
    assert pl.Dense(np.zeros((0, 0)), "pos")._factored(1) is NotImplemented
    assert pl.Dense(np.ones((2, 3)))._factored(0) is NotImplemented
    with pytest.raises(ValueError, match="no such factor"):
        pl.Dense(a)._factored(7)
    with pytest.raises(TypeError):
        pl.Dense(a)._factored("lu")


@pytest.mark.parametrize("word", ["pos", "her", "sym"])
def test_views_read_the_assumed_triangle_alone(word, rng):
    for n in (6, 40):
        a = any_matrix(rng, n, "c16", ())
        whole = {"pos": a @ adjoint(a), "her": a + adjoint(a), "sym": a + a.T}[word]
        A, b = pl.Dense(np.triu(whole), word), rng.normal(size=n)
        pl.solve(A, b)
        count = made()
        for B, m in ((A.T, whole.T), (A.conj(), whole.conj()), (A.H, adjoint(whole))):
            close(pl.solve(B, b), np.linalg.solve(m, b))
        assert made() == count
