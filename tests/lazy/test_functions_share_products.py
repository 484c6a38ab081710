"""Functions of a product of matrices, within `pl.evaluate`: those that take its dense form share
it."""

import numpy as np
import pytest
from drawn import close, positive

import pylinop as pl

FUNCTIONS = {
    "cholesky": pl.cholesky,
    "eigh": lambda L: pl.eigh(L)[0],
    "eigvalsh": pl.eigvalsh,
    "svd": lambda L: pl.svd(L)[1],
    "qr": lambda L: pl.qr(L)[1],
    "ldl": lambda L: pl.ldl(L)[1],
    "pinv": pl.pinv,
    "logm": pl.logm,
    "sqrtm": pl.sqrtm,
    "fractional_matrix_power": lambda L: pl.fractional_matrix_power(L, 0.3),
    "funm": lambda L: pl.funm(L, np.cos),
    "matrix_norm": pl.matrix_norm,
    "cond": pl.cond,
    "matrix_rank": pl.matrix_rank,
    "inv_quad_logdet": lambda L: pl.inv_quad_logdet(L, np.ones(9))[0],
}


def products(e):
    """How many were formed: of those that a plan finds no time is told."""
    steps = [step for plan in e.plans for step in plan.steps]
    return sum(s["name"] in ("syrk", "herk") and s["took"] is not None for s in steps)


def gram(x, shift=0.0):
    X = pl.lazy(x)
    L = X.T.conj() @ X
    return L + shift * pl.Identity(L.shape[0]) if shift else L


@pytest.fixture
def x():
    return np.random.default_rng(3).standard_normal((20, 9))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_with_the_plan(name, x):
    f, b, g = FUNCTIONS[name], np.ones(9), x.T @ x
    L = gram(x)
    value, applied, logdet, solved = pl.evaluate(f(L), L @ b, pl.logdet(L), pl.solve(L, b))
    alone = f(gram(x))
    if name == "matrix_rank":
        assert int(value) == int(alone) == 9
    else:
        close(value, alone.toarray())
    close(applied, g @ b)
    close(logdet, np.linalg.slogdet(g)[1])
    close(solved, np.linalg.solve(g, b))


def test_with_each_other(x):
    """All at once: the product is formed for all of them, for factors that are kept, and as a value
    that several share, not ten times; and each again where a limit counts them alone."""
    L = gram(x)
    with pl.explaining() as e:
        found = pl.evaluate(*(f(L) for f in FUNCTIONS.values()))
    assert products(e) <= 4
    with pl.config(memory_limit=1 << 20):
        limited = pl.evaluate(*(f(gram(x)) for f in FUNCTIONS.values()))
    for name, one, other in zip(FUNCTIONS, found, limited, strict=True):
        close(one, other) if name != "matrix_rank" else None


LARGE = FUNCTIONS | {
    "svdvals": pl.svdvals,
    "np.linalg.eigh": lambda L: np.linalg.eigh(L)[1],
    "sum": lambda L: np.sum(pl.eigvalsh(L)),
    "f(A) @ b": lambda L: pl.expm(L) @ np.ones(L.shape[-1]),
    "inv_quad_logdet": lambda L: pl.inv_quad_logdet(L, np.ones(L.shape[-1]))[0],
}


def large(dtype, m=400, n=200):
    x = np.random.default_rng(4).standard_normal((m, n)) / 20
    return x * (1 + 0.5j) if dtype == "complex128" else x


@pytest.mark.parametrize(("dtype", "shift"), [("float64", 0.5), ("complex128", 0.0)])
def test_large_ones_share_with_the_plan(dtype, shift):
    """A function, a solve and a determinant form the product once, and give the bits that each
    gives alone."""
    x, b = large(dtype), np.ones(200)
    solved = np.asarray(pl.solve(gram(x, shift), b))
    logdet = np.asarray(pl.logdet(gram(x, shift)))
    for name, f in LARGE.items():
        pl._core._clear_store()
        L = gram(x, shift)
        with pl.explaining() as e:
            found = pl.evaluate(f(L), pl.solve(L, b), pl.logdet(L))
        assert products(e) == 1, name
        pl._core._clear_store()
        for one, other in zip(found, (f(gram(x, shift)), solved, logdet), strict=True):
            np.testing.assert_array_equal(one, np.asarray(other), name)


@pytest.mark.parametrize("solves", [False, True])
@pytest.mark.parametrize(("dtype", "shift"), [("float64", 0.5), ("complex128", 0.0)])
def test_cholesky_shares_with_all(dtype, shift, solves):
    """A factor beside other functions, the matrix itself, and solves: one product, and what each
    gives alone."""
    x, b = large(dtype), np.ones(200)
    s = x.conj().T @ x + shift * np.eye(200)
    for names in (["eigvalsh"], ["svdvals", "matrix_norm"], ["itself"]):
        pl._core._clear_store()
        L = gram(x, shift)
        asked = [L if name == "itself" else LARGE[name](L) for name in names]
        with pl.explaining() as e:
            factor, *found = pl.evaluate(
                pl.cholesky(L), *asked, *([pl.solve(L, b), pl.logdet(L)] if solves else [])
            )
        assert products(e) == 1, names
        close(np.asarray(factor), np.linalg.cholesky(s))
        for name, one in zip(names, found, strict=False):
            close(one, s if name == "itself" else np.asarray(LARGE[name](pl.Dense(s))))
        if solves:
            close(found[-2], np.linalg.solve(s, b))
            close(found[-1], np.linalg.slogdet(s)[1])


def test_cholesky_of_a_shared_form_that_is_not_definite():
    """It is known as that, and the next call sees what the arrays hold by then."""
    x = large("float64")
    L = gram(x, -1.0)
    with pytest.raises(np.linalg.LinAlgError):
        pl.evaluate(pl.cholesky(L), pl.eigvalsh(L))
    for scale in (1.0, 3.0):
        x *= scale
        L = gram(x, 0.5)
        factor, w = pl.evaluate(pl.cholesky(L), pl.eigvalsh(L))
        s = x.T @ x + 0.5 * np.eye(200)
        close(np.asarray(factor), np.linalg.cholesky(s))
        close(w, np.linalg.eigvalsh(s))


def test_large_ones_are_fresh_and_fail_alone():
    """What was shared is forgotten; a matrix of too low a rank is still known as that."""
    x, b = large("float64"), np.ones(200)
    for _ in range(2):
        L = gram(x)
        w, s = pl.evaluate(pl.eigvalsh(L), pl.solve(L, b))
        close(w, np.linalg.eigvalsh(x.T @ x))
        close(s, np.linalg.solve(x.T @ x, b))
        x[:5] *= 2
    wide = large("float64", 150)
    L = gram(wide)
    with pytest.raises(np.linalg.LinAlgError, match="of rank at most 150"):
        pl.evaluate(pl.matrix_norm(L), pl.solve(L, b))
    with pl.config(memory_limit=1 << 22):
        w, s = pl.evaluate(pl.eigvalsh(gram(x)), pl.solve(gram(x), b))
    close(w, np.linalg.eigvalsh(x.T @ x))
    with pl.config(verify=True):
        L = gram(x)
        w, s = pl.evaluate(pl.eigvalsh(L), pl.solve(L, b))
    close(w, np.linalg.eigvalsh(x.T @ x))


def test_results_do_not_keep_the_dense_form():
    """A solution of 200 numbers lay in one block with 40,000, for as long as it lived."""
    L, b = gram(large("float64"), 0.5), np.ones(200)
    for value in pl.evaluate(pl.eigvalsh(L), pl.solve(L, b), pl.logdet(L), L @ b):
        while value.base is not None:
            value = value.base
        assert value.nbytes <= 8 * 200
        assert not value.flags.writeable


def test_small_ones_are_not_asked():
    """Asking takes longer than forming one again."""
    L = gram(large("float64", 40, 60))
    with pl.explaining() as e:
        pl.evaluate(pl.eigvalsh(L), L @ np.ones(60), pl.matrix_norm(L, 2))
    assert products(e) == 1


def test_numpys_singular_values_go_by_structure():
    """So do those of LazyArrays, which are NumPy's."""
    for values in (np.linalg.svdvals, lambda A: np.linalg.svdvals(pl.lazy(A)).toarray()):
        with pl.explaining() as e:
            found = values(pl.Kron(np.diag([3.0, -1.0]), np.ones((2, 2))))
        assert any(s["name"] == "svdvals-kron" for plan in e.plans for s in plan.steps)
        close(found, np.array([6.0, 2.0, 0.0, 0.0]))


def test_what_is_shared_is_little(x):
    """No dense form is held for others that is so large that it warns."""
    a = positive(np.random.default_rng(1), 9, "float64")
    with pl.config(warn_limit=9 * 9 * 8 - 1), pytest.warns(pl.MaterializationWarning):
        w, s = pl.evaluate(pl.eigvalsh(pl.lazy(a) @ a), pl.svdvals(pl.lazy(a) @ a))
    close(s[::-1], np.abs(np.sort(np.linalg.svdvals(a @ a))))


def test_what_fails_fails_alone(x):
    """A product that is singular raises where that counts, and is right where it does not."""
    L = gram(x[:5])
    with pytest.raises(np.linalg.LinAlgError):
        pl.evaluate(pl.matrix_norm(L), pl.solve(L, np.ones(9)))
    L = gram(x[:5])
    norm, applied = pl.evaluate(pl.matrix_norm(L), L @ np.ones(9))
    close(norm, np.linalg.norm(x[:5].T @ x[:5]))
    close(applied, x[:5].T @ (x[:5] @ np.ones(9)))


@pytest.mark.parametrize(
    "asked",
    [
        lambda K, M: pl.evaluate(pl.svdvals(pl.lazy(K)), pl.svdvals(pl.lazy(M)), pl.cond(K)),
        lambda K, M: pl.sqrtm(pl.Kron(K, M)),
        lambda K, M: pl.svdvals(pl.BlockDiag(K, M)),
        lambda K, M: pl.funm(pl.BlockDiag(K, M), np.cos),
    ],
)
def test_what_a_callable_writes_is_seen(asked, x):
    """A callable that runs within a function writes to K and asks of K: it was told of the dense
    form of before. So does what is asked behind it."""
    X = pl.Dense(x)
    K, wrote = X.T @ X, []

    def doubled(v):
        if not wrote:
            wrote.append(True)
            x[:] *= 2
            close(pl.eigvalsh(K), np.linalg.eigvalsh(x.T @ x))
            close(np.linalg.svdvals(K), np.linalg.svdvals(x.T @ x))
        return 2 * v

    asked(K, pl.MatVec((9, 9), doubled, rmatvec=doubled, dtype=float))
    assert wrote
    close(pl.eigvalsh(K), np.linalg.eigvalsh(x.T @ x))


def test_what_a_callable_writes_is_seen_of_many_arrays():
    """Of more arrays than the core reads for a fingerprint the form of before was taken."""
    g = np.random.default_rng(70)
    arrays = list(g.standard_normal((70, 6, 6)))
    K, wrote = pl.Dense(arrays[0]), []
    for a in arrays[1:]:
        K = K + pl.Dense(a)

    def doubled(v):
        if not wrote:
            wrote.append(True)
            for a in arrays:
                a *= 2
            close(np.linalg.svdvals(K), np.linalg.svdvals(sum(arrays)))
        return 2 * v

    M = pl.MatVec((6, 6), doubled, rmatvec=doubled, dtype=float)
    pl.evaluate(pl.svdvals(pl.lazy(K)), pl.svdvals(pl.lazy(M)))
    assert wrote
