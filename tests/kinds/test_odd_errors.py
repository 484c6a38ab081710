"""Errors keep their class and their text, whoever's code runs while they are raised; what is
crafted ends, in an error."""

import ctypes
import pickle

import numpy as np
import pytest
from test_dlpack import _Tensor

import pylinop as pl
from pylinop._operators import pickling

_RAN = []


def _delete(address):
    """Calls Python's C API as any library's deleter may."""
    _RAN.append(address)
    try:
        int("no number")
    except ValueError:
        pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)


class Exported:
    """An array whose memory is given back by Python code."""

    _kept: list = []

    def __init__(self, a):
        self._a, self.shape, self.dtype = a, a.shape, a.dtype

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        shape = (ctypes.c_int64 * self._a.ndim)(*self._a.shape)
        deleter = ctypes.cast(_DELETER, ctypes.c_void_p)
        t = _Tensor(
            self._a.ctypes.data, (1, 0), len(shape), (2, 64, 1, 0), shape, None, 0, None, deleter
        )
        self._kept.append((shape, t))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.byref(t), b"dltensor", None)


V, M, W = np.ones(3), np.ones((3, 3)), np.ones((3, 2))
E = Exported


@pytest.mark.parametrize("make, error", [
    (lambda: pl.Dense(E(V)), ValueError),
    (lambda: pl.Toeplitz(E(V), "x"), TypeError),
    (lambda: pl.Kron(E(M), "x"), TypeError),
    (lambda: pl.Kron(E(M), V), ValueError),
    (lambda: pl.KronSum(E(W)), ValueError),
    (lambda: pl.Tridiagonal(E(V), E(V), E(V)), ValueError),
    (lambda: pl.Block([[E(M), E(np.ones((2, 2)))]]), ValueError),
    (lambda: pl.LowRank(E(M), E(np.ones((2, 2)))), ValueError),
    (lambda: pl.Banded((1, 1), E(V)), ValueError),
    (lambda: pl.Diag(E(V), shape=(1, 1)), ValueError),
    (lambda: pl.Selection(E(V), 3), (TypeError, ValueError)),
    (lambda: pl.Eigen(E(M), E(np.ones(2))), ValueError),
    (lambda: pl.Identity(4) @ E(V), ValueError),
    (lambda: pl.Dense(E(M)) @ pl.Dense(E(np.ones((2, 2)))), ValueError),
    (lambda: pl.Dense(E(M)) + E(np.ones((2, 2))), ValueError),
    (lambda: pl.solve(pl.Dense(E(W)), E(V)), (ValueError, np.linalg.LinAlgError)),
])  # fmt: skip
def test_a_deleter_that_runs_python(make, error):
    before = len(_RAN)
    with pytest.raises(error) as info:
        make()
    assert not isinstance(info.value, SystemError)
    del info
    assert len(_RAN) > before


class Mine(Exception):
    pass


@pytest.mark.parametrize("which", ["A", "B", "M"])
@pytest.mark.parametrize("error", [Mine, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("after", [0, 3])
def test_lobpcg_raises_what_a_callable_raised(which, error, after, rng):
    calls = []

    def product(x):
        calls.append(x)
        if len(calls) > after:
            raise error("mine")
        return (x.T * np.linspace(1, 2, 50)).T

    ops = {"A": pl.Diag(np.arange(1.0, 51)), "B": None, "M": None}
    ops[which] = pl.MatVec((50, 50), product, matmat=product, dtype=float)
    with pytest.raises(error, match="mine"):
        pl.lobpcg(ops["A"], rng.standard_normal((50, 3)), B=ops["B"], M=ops["M"], maxiter=20)


def test_lobpcg_with_operators_everywhere(rng):
    d = np.arange(1.0, 51)
    w, v = pl.lobpcg(
        pl.Diag(d), rng.standard_normal((50, 3)), B=pl.Diag(np.full(50, 2.0)),
        M=pl.Diag(1 / d), largest=False, tol=1e-9, maxiter=200,
    )  # fmt: skip
    np.testing.assert_allclose(np.sort(w), [0.5, 1, 1.5], rtol=1e-6)


@pytest.mark.parametrize("rows", [2**31 - 1, 2**62, -1, 0, 3])
def test_a_crafted_pickle_of_blocks_ends(rows):
    leaf = ("kind", pl.Dense, None, (("is", np.eye(2)), ("is", None)), {})
    blocks = ("kind", pl.Block, rows, tuple(("op", 0) for _ in range(4)), {})
    crafted = pickle.loads(pickle.dumps([leaf, blocks]))
    if rows == 0:
        with pytest.raises((TypeError, ValueError)):
            pickling.build(crafted)
    else:
        with pytest.raises(ValueError, match=f"4 blocks do not make {rows} rows"):
            pickling.build(crafted)


TAKE_LISTS = (
    "Kron KronSum BlockDiag block_diag Block block hstack vstack Dense Diag LowRank Toeplitz "
    "Permutation KhatriRao Eigen lazy aslinearoperator solve logdet"
).split()


@pytest.mark.parametrize("kind", TAKE_LISTS)
def test_lists_that_hold_themselves(kind):
    endless: list = []
    endless.append(endless)
    for args in ((endless,), (endless, endless), ([endless, np.eye(2)],), ([[endless]],)):
        with pytest.raises((TypeError, ValueError)):
            getattr(pl, kind)(*args)
