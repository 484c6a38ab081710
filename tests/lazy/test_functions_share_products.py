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
    return sum(step["name"] == "syrk" for plan in e.plans for step in plan.steps)


def gram(x):
    X = pl.lazy(x)
    return X.T @ X


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
