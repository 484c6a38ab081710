"""Factors, spectra and functions of matrices are kept between calls: never stale, the same bits,
shared, within the bound, forgotten when that is asked for."""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pytest
import ref
from samples import leaf
from test_freshness import BORROWING, change

import pylinop as pl
from pylinop import _core

FUNCTIONS = {
    "cholesky": pl.cholesky,
    "cholesky upper": lambda A: pl.cholesky(A, upper=True),
    "ldl": pl.ldl,
    "lu": pl.lu,
    "qr": pl.qr,
    "r": lambda A: pl.qr(A, mode="r"),
    "eigh": pl.eigh,
    "eigvalsh": pl.eigvalsh,
    "eig": pl.eig,
    "svd": pl.svd,
    "svdvals": pl.svdvals,
    "norm 2": lambda A: pl.matrix_norm(A, ord=2),
    "cond": pl.cond,
    "matrix_rank": pl.matrix_rank,
    "pinv": pl.pinv,
    "null_space": pl.null_space,
    "orth": pl.orth,
    "lstsq": lambda A: pl.lstsq(A, np.ones(A.shape[-2])),
    "sqrtm": pl.sqrtm,
    "expm": lambda A: pl.expm(0.1 * A),
    "sample": lambda A: pl.sample(A, 2, rng=0),
    "sqrt_inv_matmul": lambda A: pl.sqrt_inv_matmul(A, np.ones(A.shape[-1])),
}
BY_DENSE = [k for k in FUNCTIONS if k not in ("lstsq", "matrix_rank")]


def counts():
    found = _core._store()
    return found["hits"], found["misses"]


def flat(value):
    """All numbers of an answer as bytes."""
    if isinstance(value, (tuple, list)):
        return [b for part in value for b in flat(part)]
    if isinstance(value, _core.Operator):
        value = value.toarray()
    return [np.asarray(value).tobytes()]


def asked(f, A):
    """An answer's bytes, or the type of its error."""
    try:
        return flat(f(A))
    except (np.linalg.LinAlgError, ValueError, TypeError, MemoryError) as error:
        return type(error)


def definite(rng, n, dtype="f8", batch=()):
    a = rng.normal(size=(*batch, n, n)) + (1j * rng.normal(size=(n, n)) if dtype[0] == "c" else 0)
    return (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("kind", BORROWING)
def test_every_kind_is_seen_to_have_changed(kind, rng):
    d = leaf(kind, rng, 5, 5, "float64")
    A = ref.build(d)
    for step in range(3):
        for name, f in FUNCTIONS.items():
            cold = asked(f, ref.build(copy.deepcopy(d)))
            assert asked(f, A) == cold, (name, step)
            assert asked(f, A) == cold, (name, step)
        change(d, rng)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_the_bits_are_those_of_a_cold_call(dtype, batch, rng):
    a = definite(rng, 6, dtype, batch)
    for name, f in FUNCTIONS.items():
        A = pl.Dense(a)
        _core._clear_store()
        cold = asked(f, A)
        assert cold == asked(f, A) == asked(f, pl.Dense(a.copy())), name
        a[..., 1, 1] += 1
        assert asked(f, A) == asked(f, pl.Dense(a.copy())), name
        assert name in ("matrix_rank", "null_space") or asked(f, A) != cold, name


@pytest.mark.parametrize("name", BY_DENSE)
def test_a_second_call_factors_nothing(name, rng):
    A = pl.Dense(definite(rng, 13))  # spectra of up to 12 rows are not kept
    if name == "null_space":
        A = pl.Dense(rng.normal(size=(3, 8)))
    FUNCTIONS[name](A)
    hits, misses = counts()
    FUNCTIONS[name](A)
    assert counts()[0] > hits and counts()[1] == misses


def test_expressions_share_the_parts_they_have_in_common(rng):
    a = definite(rng, 13)
    A = pl.Dense(a)
    L = pl.cholesky(A)
    misses = counts()[1]
    K = pl.cholesky(pl.Kron(A, 2 * A))
    pl.cholesky(pl.BlockDiag(A, pl.Diag([1.0])))
    pl.cholesky(4 * A)
    pl.sample(A, rng=0)
    pl.cholesky(a)  # the array itself
    assert counts()[1] == misses + 1  # what the BlockDiag puts together, no factor
    np.testing.assert_allclose(K.toarray(), np.sqrt(2) * np.kron(L.toarray(), L.toarray()))
    pl.eigh(A)
    misses = counts()[1]
    pl.sqrt_inv_matmul(A, np.ones(13))
    pl.eigh(pl.KronSum(A, A))
    assert counts()[1] == misses


@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "svdvals", "lu"])
@pytest.mark.parametrize("kind", [pl.Kron, pl.BlockDiag])
def test_what_is_put_together_is_kept_where_it_is_small(name, kind, rng):
    a, b = definite(rng, 3), definite(rng, 4)
    op = kind(pl.Dense(a), pl.Dense(b))

    def dense():
        return np.kron(a, b) if kind is pl.Kron else op.toarray()

    def values(answer):
        parts = answer if isinstance(answer, tuple) else (answer,)
        return [p.toarray() if isinstance(p, pl.LinearOperator) else p for p in parts]

    first = values(FUNCTIONS[name](op))
    second = values(FUNCTIONS[name](op))  # kept from here on: at first that takes as long
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))
    hits, misses = counts()
    again = values(FUNCTIONS[name](op))
    assert counts() == (hits + 1, misses)
    assert all(np.array_equal(x, y) for x, y in zip(first, again, strict=True))
    b *= 4.0
    for x, y in zip(values(FUNCTIONS[name](op)), values(FUNCTIONS[name](dense())), strict=True):
        np.testing.assert_allclose(np.sort(x, axis=None), np.sort(y, axis=None), atol=1e-12)


def test_what_is_put_together_keeps_to_the_memory_limit():
    op = pl.Kron(3 * np.eye(2), 2 * np.eye(3))
    np.testing.assert_allclose(pl.svdvals(op), 6)
    with pl.config(memory_limit=8), pytest.raises(MemoryError, match="needs 48 bytes"):
        pl.svdvals(op)


def test_sums_are_known_by_their_leaves(rng):
    x = rng.normal(size=(9, 5))
    X = pl.Dense(x)
    S = X.T @ X + pl.Diag(np.ones(5))
    w = pl.eigvalsh(S)
    misses = counts()[1]
    assert pl.eigvalsh(S).tobytes() == w.tobytes()
    assert pl.eigvalsh(X.T @ X + pl.Diag(np.ones(5))).tobytes() == w.tobytes()  # another diagonal
    assert counts()[1] == misses + 1
    x[3, 2] += 1
    np.testing.assert_allclose(pl.eigvalsh(S), np.linalg.eigvalsh(x.T @ x + np.eye(5)))
    assert pl.eigvalsh(2.0 * S - S).tobytes() != w.tobytes()


def test_what_is_asked_for_is_part_of_the_key(rng):
    a = rng.normal(size=(6, 6))
    A = pl.Dense(a)
    np.testing.assert_allclose(pl.eigvalsh(A), np.linalg.eigvalsh(a))
    np.testing.assert_allclose(pl.eigvalsh(A, UPLO="U"), np.linalg.eigvalsh(a, UPLO="U"))
    for r in (1e-15, 0.2, 0.5):
        np.testing.assert_allclose(pl.pinv(A, rtol=r).toarray(), np.linalg.pinv(a, rtol=r))
    b = np.stack([a, np.diag(np.arange(6.0))])
    cut = np.array([0.1, 0.5])
    for _ in range(2):
        got = pl.pinv(pl.Dense(b), rtol=cut).toarray()
        np.testing.assert_allclose(got, np.linalg.pinv(b, rtol=cut), atol=1e-12)
    h = a + a.T
    for f in (np.cos, np.sin):  # functions of the caller's are not kept, what they stand on is
        w, q = np.linalg.eigh(h)
        np.testing.assert_allclose(pl.funm(pl.Dense(h), f).toarray(), (q * f(w)) @ q.T, atol=1e-12)
    np.testing.assert_allclose(
        pl.fractional_matrix_power(pl.Dense(h @ h + np.eye(6)), 0.25).toarray() @ np.ones(6),
        pl.sqrtm(pl.sqrtm(pl.Dense(h @ h + np.eye(6)))) @ np.ones(6),
    )
    assumed = pl.Dense(a, assume_a="lower triangular")
    np.testing.assert_allclose(pl.svdvals(assumed), np.linalg.svdvals(np.tril(a)))
    np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(a))


def test_answers_are_the_callers_own(rng):
    A = pl.Dense(definite(rng, 13))
    w = pl.eigvalsh(A)
    again = w.copy()
    w[:] = -1
    np.testing.assert_array_equal(pl.eigvalsh(A), again)
    values, Q = pl.eigh(A)
    values[:] = 0
    q = Q.toarray()
    q[...] = 0
    np.testing.assert_allclose(
        pl.eigh(A)[1].toarray() @ np.diag(again) @ Q.T.toarray(), A.toarray()
    )
    s = pl.lstsq(A, np.ones(13))[3]
    s[:] = 0
    assert pl.lstsq(A, np.ones(13))[3].min() > 0
    for array in Q.args:
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


def test_the_bound_holds_and_the_least_used_goes(rng):
    limit = _core._store()["limit"]
    some = [pl.Dense(definite(rng, 20)) for _ in range(4)]
    try:
        _core._clear_store()
        pl.config(cache_limit=3 * 20 * 20 * 8 + 3 * 300)  # three factors
        for A in some:
            pl.cholesky(A)
        assert _core._store()["entries"] == 3 and _core._store()["bytes"] <= 3 * 3500
        hits, misses = counts()
        pl.cholesky(some[1])  # now the newest
        pl.cholesky(some[0])  # some[2] has to go
        pl.cholesky(some[1])
        assert counts() == (hits + 2, misses + 1)
        pl.cholesky(some[2])
        assert counts() == (hits + 2, misses + 2)
        pl.config(cache_limit=0)
        assert _core._store()["entries"] == 0
        cold = pl.cholesky(some[0]).toarray().tobytes()
        assert _core._store()["entries"] == 0
    finally:
        pl.config(cache_limit=limit)
    assert pl.cholesky(some[0]).toarray().tobytes() == cold


def test_clear_cache_forgets_one_operator(rng):
    a, b = definite(rng, 6), np.ones(6)
    A, others = pl.Dense(a), [pl.Dense(definite(rng, 6)) for _ in range(8)]
    _core._clear_store()
    for B in (A, *others):
        pl.cholesky(B)
    x = pl.solve(A, b)
    K = pl.Kron(A, A)
    L = [pl.cholesky(K).toarray() for _ in range(2)][1]  # small: kept when it is asked again
    entries = _core._store()["entries"]
    assert entries == 11  # nine factors, the LU of solve, what the Kron puts together
    assert A.clear_cache() is None
    left = _core._store()["entries"]
    assert 2 <= left <= entries - 2  # a few more may share its bit of 64
    misses = counts()[1]
    assert pl.solve(A, b).tobytes() == x.tobytes()
    assert pl.cholesky(K).toarray().tobytes() == L.tobytes()
    assert counts()[1] == misses + 2  # of the Kron as a whole: small parts are made, not looked up
    pl.MatVec((3, 3), lambda x: x, dtype=float).clear_cache()  # nothing is kept of it
    with pytest.raises(TypeError, match="operator"):
        _core._forget(a)


def test_callables_are_asked_again():
    scale = [1.0]
    A = pl.MatVec((4, 4), lambda x: scale[0] * x, dtype=float)
    np.testing.assert_allclose(pl.svdvals(A), 1)
    scale[0] = 3.0
    np.testing.assert_allclose(pl.svdvals(A), 3)


def test_warnings_and_errors_come_each_time():
    low, bad = pl.Dense(np.diag([1.0, -1e-17])), pl.Dense(-np.eye(3))
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            pl.cholesky(bad)
        with pytest.warns(pl.FallbackWarning, match="negative by rounding"):
            pl.sample(low, rng=1)


def test_memory_rules_hold_when_warm(rng):
    X = pl.Dense(rng.normal(size=(60, 4)))
    S = X @ X.T + pl.Identity(60)
    pl.svdvals(S)
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError):
        pl.svdvals(S)


def test_threads_ask_at_once(rng):
    from concurrent.futures import ThreadPoolExecutor

    ops = [pl.Dense(definite(rng, 30)) for _ in range(3)]
    want = [flat(pl.eigh(A)) for A in ops]
    _core._clear_store()
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda i: flat(pl.eigh(ops[i % 3])), range(60)))
    assert all(g == want[i % 3] for i, g in enumerate(got))


def test_functions_of_assumed_matrices_share_their_eigenvectors(rng):
    A = pl.Dense(definite(rng, 6), assume_a="pos")
    pl.expm(A)
    misses = counts()[1]
    pl.sqrtm(A)
    pl.logm(A)
    pl.eigh(A, UPLO="U")
    assert counts()[1] == misses


def test_the_interpreter_ends_with_factors_kept():
    code = (
        "import numpy as np, pylinop as pl, gc\n"
        "A = pl.Dense(np.eye(5) + 1)\n"
        "L = pl.cholesky(A); pl.eigh(A); pl.pinv(A)\n"
        "gc.collect()\n"
        "assert pl.cholesky(A) is L\n"
        "del A, L; gc.collect()\n"
        "import sys\n"
        "held = gc.get_referents(sys.modules['pylinop._core'])\n"
        "assert 'Triangular' in [type(o).__name__ for o in held]\n"  # seen by the collector
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and not run.stderr, run.stderr


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh", "eigh"])
def test_the_warning_of_a_dense_form_is_repeated(name):
    """An answer by a row that makes a dense form warns as often as it is given, from the cache
    too; a row that makes none never does."""
    T = pl.Toeplitz(0.5 ** np.arange(40.0))
    with pl.config(warn_limit=1000):
        for _ in range(3):
            with pytest.warns(pl.MaterializationWarning, match="is made dense"):
                getattr(pl, name)(T)
    B = pl.Tridiagonal(np.ones(39), np.full(40, 4.0), np.ones(39))
    if name != "eigh":  # whose vectors are an array
        with pl.config(warn_limit=1000), warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                getattr(pl, name)(B)
