"""pylinop.array_api on array_api_strict's second device, and on arrays of JAX."""

import numpy as np
import pytest

xp = pytest.importorskip("array_api_strict")

from formulas import elsewhere
from frameworks.array_api.compared_kinds import NAMES, close, compared

import pylinop as pl
import pylinop.array_api as pa

DEVICE = xp.Device("device1")


def put(a):
    return xp.asarray(a, device=DEVICE)


def back(x):
    assert x.device == DEVICE
    return np.asarray(xp.asarray(x, device=xp.Device("CPU_DEVICE")))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_strict(name, dtype):
    compared(name, dtype, put, back)


@pytest.mark.parametrize("name", NAMES[::4])
def test_jax(name):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        compared(name, "float64", jax.numpy.asarray, np.asarray)


@pytest.mark.parametrize("name", NAMES[::4])
def test_numpy(name):
    compared(name, "float64", np.asarray, np.asarray)


def test_numbers_that_are_arrays():
    c, U = 0.3, np.random.default_rng(3).standard_normal((6, 2))
    K = pa.Identity(6) * put(np.asarray(c)) + pa.LowRank(put(U))
    due = c * np.eye(6) + U @ U.T
    close(back(K.toarray()), due)
    close(back(pa.solve(K, put(U[:, 0]))), np.linalg.solve(due, U[:, 0]))
    close(back(pa.logdet(K)), np.linalg.slogdet(due)[1])
    close(back(pa.logdet(K / put(np.asarray(2.0)))), np.linalg.slogdet(due / 2)[1])
    close(back((pa.Full((2, 3), 2.0) * put(np.asarray(c))) @ put(np.ones(3))), np.full(2, 6 * c))


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "strict"])
def test_numbers_below_zero_wrap(name):
    """Of a kind that has such, beside integers without a sign, as C casts them."""
    pytest.importorskip(elsewhere.LIBRARIES[name][0].partition(".")[0])
    library = elsewhere.Library(name)
    for K in (pl.Hadamard(4) @ pl.Dense(np.full((4, 4), 3, "B")), pl.Hadamard(4, dtype="B")):
        due = K.toarray()
        found = library.walked(K, elsewhere.DENSE)
        assert found.dtype == due.dtype == np.uint8 and np.array_equal(found, due)


def test_results_do_not_lie_in_arguments():
    a = np.ones((3, 3))
    for K in (pa.Dense(a), pa.Dense(a).T):
        K.toarray()[...] = 0
    assert np.array_equal(a, np.ones((3, 3)))


def test_wrong_use():
    K = pa.Diag(put(np.ones(3)))
    with pytest.raises(ValueError, match=r"CPU_DEVICE.*device1|device1.*CPU_DEVICE"):
        K @ xp.asarray(np.ones(3))
    with pytest.raises(ValueError, match="of no arrays"):
        pa.Identity(3).toarray()
    with pytest.raises(TypeError, match="its own operators and arrays"):
        pa.solve("a", put(np.ones(3)))
    with pytest.raises(ValueError, match="batch dimensions|inner dimensions"):
        K @ put(np.ones(4))
    with pytest.raises(TypeError, match="is not made an array of NumPy by itself"):
        np.asarray(K)
