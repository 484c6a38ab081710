"""Gradients of values that were computed before: of arrays that were written to in between they are
an error, or still those of the value; never of old and new numbers together."""

import copy
import pickle
import threading

import numpy as np
import pytest

import pylinop as pl
from pylinop._gradients import unchanged


def arrays(dtype, n, seed):
    rng = np.random.default_rng(seed)

    def drawn(*shape):
        a = rng.standard_normal(shape)
        return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(
            dtype
        )

    A = drawn(n, n)
    return drawn(n), drawn(n), A @ A.conj().T + n * np.eye(n, dtype=dtype), drawn(n, 2)


FORMULAS = {
    "exp(x) y": lambda x, y, A, U: np.sum(np.exp(x / 4) * y).real,
    "x @ y": lambda x, y, A, U: (x @ y).real,
    "x A y": lambda x, y, A, U: (x @ A @ y).real,
    "row": lambda x, y, A, U: np.sum(A[0] * y).real,
    "trace": lambda x, y, A, U: np.trace(A @ A.T).real + np.sum(abs(U) ** 2),
    "y inv(A) y": lambda x, y, A, U: (y.conj() @ pl.solve(A, y)).real,
    "logdet": lambda x, y, A, U: pl.slogdet(A)[1] + np.sum(abs(x)),
    "low rank": lambda x, y, A, U: (
        sum(pl.inv_quad_logdet(pl.Diag(np.exp(abs(x))) + pl.LowRank(U), y)).real
    ),
    "two uses": lambda x, y, A, U: (np.sum(np.exp(x / 4) * y) + y @ x + x @ (A @ y)).real,
}
HOW = {
    "alone": lambda value, g: g.toarray(),
    "within": lambda value, g: 0.5 * np.asarray(2 * g),
    "both": lambda value, g: pl.evaluate(value, g)[1],
}


@pytest.mark.parametrize("before", [True, False], ids=["swept first", "value first"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_of_changed_arrays_it_is_an_error_or_that_of_the_value(name, how, before, dtype):
    given = arrays(dtype, 5, 1)
    raised = 0
    for by in range(4):
        for changed in range(4):
            x = [pl.lazy(a) for a in given]
            value = FORMULAS[name](*x)
            g = pl.gradients(value, x[by], allow_unused=True)
            wanted = g.toarray()
            x = [pl.lazy(a) for a in given]
            value = FORMULAS[name](*x)
            if before:
                g = pl.gradients(value, x[by], allow_unused=True)
            value.toarray()
            kept = given[changed].copy()
            given[changed][...] = given[changed] * 1.5 + 0.25
            if not before:
                g = pl.gradients(value, x[by], allow_unused=True)
            try:
                found = HOW[how](value, g)
            except RuntimeError as error:
                assert "written to between a value and its gradient" in str(error)
                assert f"{__file__.rpartition('/')[2]}:" in str(error).partition("built at")[2]
                raised += 1
                given[changed][...] = kept  # and as it was, it is content
                found = HOW[how](value, g)
            given[changed][...] = kept
            np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype == "f4" else 1e-10)
    assert raised > 0


def test_parts_that_are_known():
    """A value of two that were computed, and gradients one after the other."""
    d, y = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0, 0.5])
    x, b = pl.lazy(d), pl.lazy(y)
    K = pl.Diag(np.exp(x))
    quad, logdet = b @ pl.solve(K, b), pl.logdet(K)
    pl.evaluate(quad, logdet)
    g, h = pl.gradients(quad + logdet, [x, b])
    first = g.toarray()
    np.testing.assert_allclose(first, 1 - y * y / np.exp(d), rtol=1e-13)
    d += 1
    with pytest.raises(RuntimeError, match=r"exp\(a0\) of shape \(3,\), computed before"):
        h.toarray()
    np.testing.assert_array_equal(g.toarray(), first)


def test_arrays_of_operators():
    d, y = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0, 0.5])
    D = pl.Diag(d)
    x = pl.lazy(y)
    value = x @ pl.solve(pl.lazy(D), x)
    float(value)
    np.testing.assert_allclose(pl.gradients(value, d).toarray(), -((y / d) ** 2), rtol=1e-13)
    by_d, by_x = pl.gradients(value, [d, x])
    d += 1
    for g in (by_d, by_x):
        with pytest.raises(RuntimeError, match="has been written to between"):
            g.toarray()


def test_second_derivatives_of_known_ones():
    d = np.array([1.0, 2.0, 4.0])
    x = pl.lazy(d)
    value = np.sum(np.exp(x) * x)
    g = pl.gradients(value, x)
    pl.evaluate(value, g)
    h = pl.gradients(np.sum(g), x)
    d[:] = d[::-1].copy()
    with pytest.raises(RuntimeError, match="has been written to between"):
        h.toarray()
    d[:] = d[::-1].copy()
    np.testing.assert_allclose(h.toarray(), np.exp(d) * (2 + d), rtol=1e-13)


def test_plans_that_round_otherwise_are_no_change():
    """A value computed beside others, not finite ones too."""
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((40, 40)), rng.standard_normal(40)
    x, y = pl.lazy(A), pl.lazy(b)
    value, other = y @ (x @ (x @ y)), x @ x
    pl.evaluate(value, other)
    g = pl.gradients(value, x).toarray()
    np.testing.assert_allclose(g, np.outer(b, A @ b) + np.outer(A.T @ b, b), rtol=1e-10, atol=1e-10)
    z = pl.lazy(np.array([0.0, -1.0, 4.0]))
    with np.errstate(all="ignore"):
        roots = np.sqrt(z)
        total = np.sum(roots)
        float(total)
        np.testing.assert_array_equal(pl.gradients(total, z).toarray(), [0.0, np.nan, 0.25])


def test_a_formula_that_cannot_be_computed_any_more():
    A = np.eye(3)
    x = pl.lazy(A)
    value = np.sum(pl.inv(x))
    float(value)
    g = pl.gradients(value, x)
    A[:] = 0
    with pytest.raises(RuntimeError, match="has been written to between"):
        g.toarray()


def test_together_nothing_is_computed_twice(monkeypatch):
    counted = []
    again = unchanged.again
    monkeypatch.setattr(unchanged, "again", lambda *a: counted.append(1) or again(*a))
    x = pl.lazy(np.array([1.0, 3.0]))
    value = np.sum(np.exp(x))
    pl.evaluate(value, pl.gradients(value, x))
    assert not counted
    pl.gradients(value, x).toarray()
    assert counted


def test_threads_that_ask_together_all_see_the_change():
    for _ in range(10):
        a = np.full(50, 2.0)
        x = pl.lazy(a)
        value = np.sum(np.exp(x) * x)
        value.toarray()
        a[3] = 9
        g, found = pl.gradients(value, x), []

        def ask(g=g, found=found):
            try:
                found.append(g.toarray())
            except RuntimeError:
                found.append(None)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert found == [None] * 4


def test_copies_see_the_change_too():
    a = np.zeros(3)
    x = pl.lazy(a)
    value = np.sum(np.exp(x) * x)
    value.toarray()
    g = pl.gradients(value, x)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(2 * g)).toarray(), [2, 2, 2])
    g = pl.gradients(value, x)
    a[0] = 5
    for ask in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="written to between"):
            ask(2 * g)


@pytest.mark.parametrize("by", [1, 4])
def test_a_small_number_beside_a_large_one(by):
    """It may change by much, and be less than a rounding of the large one."""
    a = np.array([1e10, 1.0, 2.0])
    x = pl.lazy(a)
    cubes = x * x * x
    value = np.sum(cubes * cubes * np.array([0.0, 1.0, 0.0]))
    cubes.toarray()
    a[1] *= by
    g = pl.gradients(value, x)
    if by == 1:
        np.testing.assert_allclose(g, [0, 6, 0])
        return
    with pytest.raises(RuntimeError, match="written to between"):
        g.toarray()


def spread(n, cond, seed):
    """A positive definite matrix of that condition."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q * np.geomspace(1, 1 / cond, n) @ Q.T
    return (A + A.T) / 2


def nothing(x, y, A, U):
    """Zero but for rounding, as two plans of it find it."""
    return y @ (A @ x) - np.sum(y * (A @ x))


# The formula, and what the first of its arrays is multiplied by so that more changes than rounding
# may; U is of singles.
SENSITIVE = {
    "of singles": (lambda x, y, A, U: x @ (pl.Diag(y) @ (U @ U.T)) @ y, 100),
    "nothing left": (nothing, None),
    "cancels": (lambda *a: np.exp(nothing(*a)) - 1 + nothing(*a) * (a[0] @ a[0]), None),
    "beside it": (lambda *a: nothing(*a) + 100 * np.finfo(a[0].dtype).eps * (a[0] @ a[0]), 100),
    "a step": (lambda *a: np.sum(np.sign(nothing(*a)) * a[0]), None),
    "minus infinity": (lambda *a: np.log(abs(nothing(*a))) + a[0] @ a[0], None),
    "nearly singular": (lambda x, y, A, U: y @ pl.solve(A, x), 100),
    "determinant": (lambda x, y, A, U: np.exp(pl.slogdet(A)[1]) * (x @ x), 100),
    "of many sizes": (lambda x, y, A, U: np.sin(np.exp(9 * x) * (A @ np.exp(9 * y))) @ x, None),
}


def moved(a, rng):
    """By a rounding each; what is symmetric stays it."""
    signs = rng.choice([-1, 1], a.shape)
    signs = np.triu(signs) + np.triu(signs, 1).T if a.ndim == 2 and len(a) == len(a.T) else signs
    return (a * (1 + np.finfo(a.dtype).eps * signs)).astype(a.dtype)


@pytest.mark.parametrize("name", SENSITIVE)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pylinop.IllConditionedWarning")
def test_rounding_is_no_change(name, dtype, monkeypatch):
    """The kept value is as of a plan that rounds otherwise: of numbers that are moved by a rounding
    each. Where the arrays were written to it is an error, if more than rounding is left."""
    suspected = []
    reach = unchanged.Roundings.reach
    monkeypatch.setattr(
        unchanged.Roundings, "reach", lambda *a: suspected.append(reach(*a)) or suspected[-1]
    )
    f, by = SENSITIVE[name]
    for seed in range(6 if dtype == "f8" else 24):
        rng = np.random.default_rng(seed)
        x, y, U = (rng.standard_normal(s) for s in (12, 12, (12, 3)))
        A = spread(12, 1e10 if dtype == "f8" else 1e4, seed)
        given = [*(a.astype(dtype) for a in (x, y, A)), U.astype("f4")]
        other = [moved(a, rng) for a in given]
        wrt = [pl.lazy(a) for a in given]
        value = f(*wrt)
        value._value = np.array(f(*[pl.lazy(a) for a in other]).toarray())
        found = pl.gradients(value, wrt[0]).toarray()
        assert found.shape == (12,)
        if by is not None:
            wrt = [pl.lazy(a) for a in given]
            value = f(*wrt)
            value.toarray()
            given[0][...] *= given[0].dtype.type(by)
            with pytest.raises(RuntimeError, match="written to between"):
                pl.gradients(value, wrt[0]).toarray()
    few = dtype == "f4" and name in ("of singles", "determinant")  # half of the digits are left
    assert any(suspected) or few
