"""`pl.program`: functions of arrays that are planned once, cut in two halves, and called from C."""

import gc
import threading
import weakref

import numpy as np
import pytest
from contract.c_face import as_c, last_error, run_program

import pylinop as pl
from pylinop import _core

SIZES = (1, 2, 15, 17, 100)


def problem(rng, n):
    y = rng.standard_normal(n)

    def f(d, U):
        K = pl.Diag(d) + pl.LowRank(U)
        return {"x": pl.solve(K, y), "log": pl.logdet(K)}

    return f, y, (rng.uniform(1, 2, n), rng.standard_normal((n, 3)))


def matrix(d, U):
    return np.diag(d) + U @ U.T


def slopes(d, U, y, gx, gl):
    """The cotangents of d and U by dense forms."""
    inverse = np.linalg.inv(matrix(d, U))
    G = -np.outer(inverse @ gx, inverse @ y) + gl * inverse
    return G.diagonal(), (G + G.T) @ U


@pytest.mark.parametrize("n", SIZES)
def test_values_and_cotangents(n, rng):
    f, y, args = problem(rng, n)
    p = pl.program(f)
    for _ in range(4):
        d, U = args = tuple(a * (1 + 0.1 * rng.random()) for a in args)
        if n > 1:
            y[:] = rng.standard_normal(n)  # what f holds is read at each call
        got, residual = p.cut(*args)
        np.testing.assert_allclose(matrix(d, U) @ got["x"], y, atol=1e-9 * (1 + np.abs(U).max()))
        np.testing.assert_allclose(got["log"], np.linalg.slogdet(matrix(d, U))[1], rtol=1e-9)
        np.testing.assert_array_equal(p(*args)["x"], got["x"])
        for _ in range(2):  # as often as wanted
            gx, gl = rng.standard_normal(n), rng.standard_normal()
            found = residual({"x": gx, "log": gl})
            for g, due in zip(found, slopes(d, U, y, gx, gl), strict=True):
                np.testing.assert_allclose(g, due, rtol=1e-7, atol=1e-8 * (1 + np.abs(due).max()))


def test_complex_cotangents_are_pytorchs(rng):
    n = 6
    A = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)) + 5 * np.eye(n)
    b = rng.standard_normal(n)
    p = pl.program(lambda A, b: pl.solve(A, b))
    x, residual = p.cut(A, b)
    g = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    by_A, by_b = residual(g)
    back = np.linalg.solve(A.conj().T, g)
    np.testing.assert_allclose(by_A, -np.outer(back, x.conj()), rtol=1e-10)
    np.testing.assert_allclose(by_b, back.real, rtol=1e-10)
    assert by_b.dtype == b.dtype


def test_nested_arguments_and_numbers(rng):
    p = pl.program(lambda t, more: t["a"] * np.sum(more[0]) + more[1])
    x, y = rng.standard_normal(3), rng.standard_normal(4)
    got, residual = p.cut({"a": 2.0}, [x, y])
    np.testing.assert_allclose(got, 2 * x.sum() + y)
    first, (by_x, by_y) = residual(np.ones(4))
    np.testing.assert_allclose(first["a"], 4 * x.sum())
    np.testing.assert_allclose(by_x, np.full(3, 8.0))
    np.testing.assert_allclose(by_y, np.ones(4))


def test_the_first_half_is_of_the_arguments_as_they_were(rng):
    p = pl.program(lambda x: np.exp(x))
    x = rng.standard_normal(5)
    got, residual = p.cut(x)
    x[:] = 0
    np.testing.assert_allclose(residual(np.ones(5))[0], got)


def test_what_the_function_holds_must_not_change_in_between(rng):
    f, y, args = problem(rng, 8)
    _, residual = pl.program(f).cut(*args)
    y[3] += 1
    with pytest.raises(RuntimeError, match=r"shape \(8,\)"):
        residual({"x": np.ones(8), "log": 1.0})
    y[3] -= 1
    y[3] = y[3] + 0.0


def test_the_residual_is_freed_when_dropped(rng):
    p = pl.program(lambda x: np.sin(x))
    residual = p.cut(rng.standard_normal(100))[1]
    (kept,) = residual._kept.arrays
    seen = weakref.ref(kept)
    residual(np.ones(100))
    del kept, residual
    gc.collect()
    assert seen() is None


def test_value_and_grad_of_a_program(rng):
    calls = []

    def f(d, U):
        calls.append(1)
        return pl.logdet(pl.Diag(d) + pl.LowRank(U)) + np.sum(d)

    p = pl.program(f)
    both, plain = pl.value_and_grad(p, (1, 0)), pl.value_and_grad(f, (1, 0))
    for n in SIZES:
        for _ in range(4):
            args = rng.uniform(1, 2, n), rng.standard_normal((n, 2))
            before = len(calls)
            value, grads = both(*args)
            assert len(calls) - before <= 1
            due, slopes = plain(*args)
            np.testing.assert_allclose(value, due, rtol=1e-10)
            for g, s in zip(grads, slopes, strict=True):
                np.testing.assert_allclose(g, s, rtol=1e-8, atol=1e-10)
    d, U = args
    np.testing.assert_allclose(pl.grad(p)(d, U), grads[1], rtol=1e-9)
    np.testing.assert_allclose(
        pl.hvp(p)(d, U, np.ones(len(d))), pl.hvp(f)(d, U, np.ones(len(d))), rtol=1e-8
    )
    assert pl.jacobian(p)(d, U).shape == d.shape


@pytest.mark.no_verify  # verified programs leave no tape
def test_a_program_runs_from_a_tape(rng):
    f, _, args = problem(rng, 20)
    p = pl.program(f)
    most = 0
    for _ in range(30):  # on a busy machine the first calls may take too long for tapes
        before = _core._tape_counts()[1]
        p(*args)
        most = max(most, _core._tape_counts()[1] - before)
    assert most == 1


def test_threads_get_the_same_bits(rng):
    f, _, args = problem(rng, 40)
    p = pl.program(f)
    gx = rng.standard_normal(40)
    due = None
    for _ in range(4):
        got, residual = p.cut(*args)
        due = [got["x"], *residual({"x": gx, "log": 0.7})]
    wrong = []

    def work():
        for _ in range(50):
            got, residual = p.cut(*args)
            found = [got["x"], *residual({"x": gx, "log": 0.7})]
            wrong.extend(a for a, b in zip(found, due, strict=True) if a.tobytes() != b.tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def called(text, arrays, outs):
    run = run_program()
    return run(text, len(text), len(arrays), as_c(arrays), len(outs), as_c(outs), 0)


def test_compiled_code_calls_both_halves(rng):
    y = rng.standard_normal(12)
    y.flags.writeable = False
    p = pl.program(lambda d, U: (pl.solve(pl.Diag(d) + pl.LowRank(U), y), np.sum(d)))
    for _ in range(5):
        d, U = rng.uniform(1, 2, 12), rng.standard_normal((12, 3))
        x, s = np.empty(12), np.empty(())
        assert called(p.text(), [d, U], [x, s]) == 0, last_error()
        np.testing.assert_allclose(matrix(d, U) @ x, y, atol=1e-9)
        gx, gs = rng.standard_normal(12), np.asarray(rng.standard_normal())
        by_d, by_U = np.empty(12), np.empty((12, 3))
        assert called(p.pullback_text(2), [d, U, gx, gs], [by_d, by_U]) == 0, last_error()
        due = slopes(d, U, y, gx, 0.0)
        np.testing.assert_allclose(by_d, due[0] + gs, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(by_U, due[1], rtol=1e-7, atol=1e-8)


def test_compiled_code_gets_a_value_and_its_gradients_of_one_call(rng):
    """One factor for both, where the texts of the two halves make one each."""
    y = rng.standard_normal(40)
    y.flags.writeable = False
    f = lambda d, U: y @ pl.solve(pl.Diag(d) + pl.LowRank(U), y)
    p = pl.program(f)
    for _ in range(5):
        d, U = rng.uniform(1, 2, 40), rng.standard_normal((40, 3))
        value, by_d, by_U = np.empty(()), np.empty(40), np.empty((40, 3))
        assert called(p.gradients_text(2), [d, U], [value, by_d, by_U]) == 0, last_error()
        due, (due_d, due_U) = pl.value_and_grad(f, (0, 1))(d, U)
        np.testing.assert_allclose(value, due, rtol=1e-9)
        np.testing.assert_allclose(by_d, due_d, rtol=0, atol=1e-9 * np.max(np.abs(due_d)))
        np.testing.assert_allclose(by_U, due_U, rtol=0, atol=1e-9 * np.max(np.abs(due_U)))
    assert called(p.gradients_text(2), [d], [value, by_d, by_U]) == 2
    assert "1 arrays for 2 arguments" in last_error()[1]


def test_compiled_code_follows_what_the_function_holds(rng):
    y = rng.standard_normal(5)
    p = pl.program(lambda x: x * y)
    for _ in range(5):
        y[:] = rng.standard_normal(5)
        x, out = rng.standard_normal(5), np.empty(5)
        assert called(p.text(), [x], [out]) == 0, last_error()
        np.testing.assert_array_equal(out, x * y)


def test_texts_that_hold_no_more(rng):
    p = pl.program(lambda x: 2 * x)
    text, out = p.text(), np.empty(3)
    assert called(text, [np.ones(3)], [np.empty(4)]) == 2
    assert "(4,)" in last_error()[1]
    assert called(p.pullback_text(1), [np.ones(3)], [out]) == 2
    del p
    gc.collect()
    assert called(text, [np.ones(3)], [out]) == 2
    assert "gone" in last_error()[1]
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="number of arguments"):
            pl.program(np.sin).pullback_text(bad)


def test_wrong_use(rng):
    x = rng.standard_normal(3)
    with pytest.raises(TypeError, match="takes a function"):
        pl.program(3)
    p = pl.program(lambda x: np.sum(x * x))
    for bad in (np.arange(3), np.array([True]), 3):
        with pytest.raises(TypeError, match="dtype"):
            p(bad)
    with pytest.raises(TypeError, match="make operators within"):
        p(pl.Diag(x))
    with pytest.raises(TypeError, match="LazyArray is due"):
        pl.program(lambda x: 1.0)(x)
    with pytest.raises(TypeError, match="was asked for"):
        pl.program(lambda x: x if x[0] > 0 else -x)(x)
    with pytest.raises(NotImplementedError, match=r"pl\.value_and_grad"):
        pl.program(lambda x: pl.custom_vjp(lambda x: x * x, lambda y, a, g: (g,), shape=(3,))(x))(x)
    _, residual = p.cut(x)
    for bad in (np.ones(3), np.ones((1,))):
        with pytest.raises(ValueError, match="shape"):
            residual(bad)
    with pytest.raises(ValueError, match="cotangents"):
        residual((1.0, 2.0))
    with pytest.raises(TypeError, match="complex"):
        residual(1j)
    with pytest.raises(np.linalg.LinAlgError):
        pl.program(lambda a: pl.inv(a) @ np.ones(2))(np.zeros((2, 2)))
