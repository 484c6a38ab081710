"""CPU arrays of other libraries are taken as they lie; dense results go back by DLPack. The small
library written here has NumPy's protocol and no other; torch and JAX are tried where installed."""

import numpy as np
import pytest

import pylinop as pl


class Foreign:
    """An array that speaks DLPack only."""

    def __init__(self, a, device=(1, 0)):
        self._a, self._device = a, device
        self.shape, self.dtype = a.shape, a.dtype

    def __dlpack__(self, **kwargs):
        return self._a.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._device


def test_taken_without_copying(rng):
    a, x = rng.standard_normal((4, 4)), rng.standard_normal(4)
    A = pl.Dense(Foreign(a))
    np.testing.assert_array_equal(A @ Foreign(x), a @ x)
    np.testing.assert_array_equal(pl.Dense(a) @ Foreign(x), a @ x)
    np.testing.assert_array_equal(A.matvec(Foreign(x)), a @ x)
    np.testing.assert_array_equal(A.matmat(Foreign(a)), a @ a)
    np.testing.assert_array_equal((A + Foreign(a)).toarray(), 2 * a)
    np.testing.assert_array_equal((pl.Diag(Foreign(x)) @ A).toarray(), x[:, None] * a)
    np.testing.assert_array_equal(pl.aslinearoperator(Foreign(a)).toarray(), a)
    np.testing.assert_array_equal(pl.Kron(Foreign(a), Foreign(a)).toarray(), np.kron(a, a))
    a[1, 2] = 7
    assert A[1, 2] == 7 and A.toarray()[1, 2] == 7


def test_other_devices_are_refused(rng):
    gpu = Foreign(rng.standard_normal((3, 3)), (2, 0))
    for take in (pl.Dense, pl.aslinearoperator, lambda g: pl.Identity(3) @ g):
        with pytest.raises(TypeError, match="only CPU memory"):
            take(gpu)


def test_results_are_handed_out(rng):
    A = pl.Diag(np.arange(1.0, 4))
    y = np.from_dlpack(Foreign(A @ np.ones(3)))
    np.testing.assert_array_equal(y, [1, 2, 3])
    np.testing.assert_array_equal(np.from_dlpack(A.toarray()), np.diag([1.0, 2, 3]))


def test_torch(rng):
    torch = pytest.importorskip("torch")
    a, x = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    A = pl.Dense(a)
    want = a.numpy() @ x.numpy()
    np.testing.assert_allclose(A @ x, want)
    np.testing.assert_allclose(A @ x.numpy(), want)
    np.testing.assert_allclose(pl.Dense(a.T).T @ x, want)  # strided memory
    with torch.no_grad():
        a[0, 0] = 5
    assert A[0, 0] == 5
    np.testing.assert_allclose(torch.from_dlpack(A @ x).numpy(), a.numpy() @ x.numpy())
    for bad, word in (
        (x.clone().requires_grad_(), "requires_grad"),
        (torch.randn(4, dtype=torch.complex128).conj(), "resolve_conj"),
        (torch.randn(4, dtype=torch.complex128).conj().imag, "resolve_neg"),
        (x.to(torch.bfloat16), "bfloat16"),
        (torch.empty(4, device="meta"), "meta"),
    ):
        with pytest.raises(TypeError, match=word):
            A @ bad
        with pytest.raises(TypeError, match=word):
            pl.Diag(bad)


def test_jax(rng):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    a, x = jnp.asarray(rng.standard_normal((4, 4)), "float32"), jnp.ones(4, "float32")
    A = pl.Dense(a)
    np.testing.assert_allclose(A @ x, np.asarray(a) @ np.asarray(x), rtol=1e-5)
    np.testing.assert_allclose(A.toarray(), np.asarray(a))
    with pytest.raises((TypeError, jax.errors.TracerArrayConversionError)):
        jax.jit(lambda v: A @ v)(x)
    np.testing.assert_allclose(jnp.from_dlpack(A @ x), np.asarray(a) @ np.asarray(x), rtol=1e-5)
