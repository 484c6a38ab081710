"""pylinop.array_api on arrays of CuPy, and of JAX on its GPU, where there is one (`make gpu`)."""

import numpy as np
import pytest
from frameworks.array_api.compared_kinds import NAMES, close, compared

import pylinop.array_api as pa


@pytest.fixture
def cupy():
    library = pytest.importorskip("cupy")
    if not library.is_available():
        pytest.skip("no GPU")
    return library


@pytest.fixture
def jax():
    library = pytest.importorskip("jax")
    if library.default_backend() != "gpu":
        pytest.skip("no GPU")
    with library.enable_x64(True):
        yield library


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_cupy(name, dtype, cupy):
    def back(x):
        assert isinstance(x, cupy.ndarray)
        return x.get()

    compared(name, dtype, cupy.asarray, back)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_jax(name, dtype, jax):
    def back(x):
        assert {d.platform for d in x.devices()} == {"gpu"}
        return np.asarray(x)

    compared(name, dtype, jax.numpy.asarray, back)


def test_what_is_not_definite_in_cupy(cupy):
    """CuPy leaves numbers in a factor that failed: they must not come out."""
    K = pa.Dense(cupy.asarray([[1.0, 2.0], [2.0, 1.0]]), "pos")
    for asked in (lambda: pa.solve(K, cupy.ones(2)), lambda: pa.logdet(K)):
        with pytest.raises(np.linalg.LinAlgError):
            asked()


def test_batches_in_cupy(cupy):
    a = np.random.default_rng().standard_normal((3, 5, 5)) + 6 * np.eye(5)
    b = np.arange(5.0)
    found = pa.solve(pa.Dense(cupy.asarray(a)), cupy.asarray(b[:, None]))
    close(found.get(), np.linalg.solve(a, np.broadcast_to(b[:, None], (3, 5, 1))))
    log = pa.slogdet(pa.Dense(cupy.asarray(a))).logabsdet
    close(log.get(), np.linalg.slogdet(a)[1])


def test_arrays_on_two_devices_are_named(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    with cupy.cuda.Device(1):
        d = cupy.ones(3)
    with pytest.raises(ValueError, match=r"Device 1.*Device 0|Device 0.*Device 1"):
        pa.Diag(d) @ cupy.ones(3)
    assert (pa.Diag(d) @ d).device.id == 1
