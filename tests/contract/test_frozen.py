"""Memory that cannot change is not read again to find what is kept; all other memory is."""

import ctypes
import warnings

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import dlpack

N = 40


def overwrite(a, value):
    """Writes where nobody may: what still has the old answer has not looked."""
    ctypes.memmove(a.ctypes.data, np.full_like(a, value).ctypes.data, a.nbytes)


def foreign(a):
    """As an array of JAX is taken."""
    return dlpack.immutable_copy(a)


def definite(n=N, seed=1):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


FORMULAS = {
    "lu": lambda a: pl.Dense(a),
    "cholesky": lambda a: pl.Dense(a, assume_a="pos"),
    "normal": lambda a: pl.Dense(a).T @ pl.Dense(a) + pl.Identity(a.shape[1]),
    "toeplitz": lambda a: pl.Toeplitz(pl.freeze(a[0])) + pl.Dense(a),
    "complex": lambda a: pl.Dense(a) + 1j * pl.Identity(len(a)),
}
QUESTIONS = {
    "solve": lambda A: pl.solve(A, np.ones(A.shape[1])),
    "logdet": pl.logdet,
    "eigvalsh": pl.eigvalsh,
    "svdvals": pl.svdvals,
}


@pytest.mark.parametrize("freeze", [pl.freeze, foreign])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("formula", FORMULAS)
def test_frozen_operands_are_not_read_again(formula, question, freeze):
    if formula == "complex" and question == "eigvalsh":
        pytest.skip("not Hermitian")
    a = freeze(definite())
    with pl.config(verify=False):
        A = FORMULAS[formula](a)
        ask = QUESTIONS[question]
        first = np.asarray(ask(A))
        overwrite(a, 7.0)
        assert np.asarray(ask(A)).tobytes() == first.tobytes()


def test_own_copies_are_frozen():
    a = definite()
    A = pl.Dense(a, copy=True)
    own = A.args[0]
    assert not own.flags.writeable and own is not a
    with pytest.raises(ValueError):
        own.flags.writeable = True
    with pl.config(verify=False):
        first = pl.solve(A, a[0])
        a[...] = 3.0
        assert pl.solve(A, np.eye(N)[0]) is not None
        overwrite(own, 7.0)
        assert pl.solve(A, definite()[0]).tobytes() == first.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_own_copies_keep_their_order(order):
    a = np.array(definite(5), order=order)
    own = pl.Dense(a, copy=True).args[0]
    assert own.strides == a.strides and (own == a).all()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("formula", ["lu", "cholesky", "normal"])
def test_read_only_views_of_writable_memory_are_read(formula, question):
    a = definite()
    view = a.view()
    view.flags.writeable = False
    A, ask = FORMULAS[formula](view), QUESTIONS[question]
    ask(A)
    a[...] = definite(seed=2)
    assert np.asarray(ask(A)).tobytes() == np.asarray(ask(FORMULAS[formula](a.copy()))).tobytes()


def test_one_operand_that_can_change_is_enough():
    d, a = np.ones(N), pl.freeze(definite())
    A = pl.Dense(a) + pl.Diag(d)
    pl.solve(A, a[0])
    d[...] = 5.0
    again = pl.solve(A, a[0])
    assert again.tobytes() == pl.solve(pl.Dense(a) + pl.Diag(np.full(N, 5.0)), a[0]).tobytes()


def test_a_frozen_array_with_other_strides_is_another():
    a = pl.freeze(definite() + np.triu(np.ones((N, N))))
    A = pl.Dense(a)
    pl.solve(A, np.ones(N))
    with warnings.catch_warnings():  # newer NumPy deprecates it
        warnings.simplefilter("ignore", DeprecationWarning)
        a.strides = a.strides[::-1]
    assert pl.solve(A, np.ones(N)).tobytes() == pl.solve(pl.Dense(a), np.ones(N)).tobytes()


def test_frozen_and_not_give_the_same_bits():
    a, b = definite(), np.arange(N, dtype=float)
    for formula in FORMULAS.values():
        once = pl.solve(formula(a), b)
        A = formula(pl.freeze(a))
        assert pl.solve(A, b).tobytes() == pl.solve(A, b).tobytes() == once.tobytes()


def test_jax_arrays_are_frozen():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(definite().astype(np.float32))
    assert type(pl.Dense(x).args[0].base) is dlpack.Immutable


def test_show_config_tells_what_is_kept(capsys):
    _core._clear_store()
    pl.solve(pl.Dense(definite()), np.ones(N))
    pl.show_config()
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("derived"))
    assert f" {_core._store()['bytes']} " in line and _core._store()["bytes"] >= 8 * N * N


def test_copies_of_arrays_of_other_classes_are_copies():
    matrix = np.eye(3).view(np.matrix)
    A = pl.Dense(matrix, copy=True)
    matrix[0, 0] = 9.0
    assert A.toarray()[0, 0] == 1.0
