"""CPU arrays of other libraries are taken as they lie; dense results go back by DLPack. The small
library written here has NumPy's protocol and no other; torch and JAX are tried where installed."""

import ctypes
import gc
import sys
import types

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


def test_tensors_are_taken_by_c():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this version of torch does not export from C")
    floats = (torch.float32, torch.float64, torch.complex64, torch.complex128)
    whole = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)
    for dtype in (*floats, *whole):
        t = (torch.arange(12).reshape(3, 4) % 2).to(dtype)
        for view in (t, t.T, t[::2, 1:], t[:, :1].expand(3, 5), t[1, 2]):
            a, due = pl._core._foreign(view), view.numpy()
            np.testing.assert_array_equal(a, due)
            assert a.dtype == due.dtype and a.strides == due.strides and a.flags.writeable
            assert np.shares_memory(a, due)
    t = torch.arange(5.0)
    a = pl._core._foreign(t)
    del t
    gc.collect()  # the array keeps the memory that it is on
    np.testing.assert_array_equal(a, np.arange(5))
    x = torch.ones(3, dtype=torch.float64)
    np.testing.assert_array_equal(pl.Diag(x) @ x, np.ones(3))
    np.testing.assert_array_equal(x @ pl.Diag(x), np.ones(3))
    with pytest.raises(ValueError):
        pl.Diag(x) @ torch.ones(4)


def test_tensors_that_c_leaves_to_python():
    torch = pytest.importorskip("torch")
    z = torch.ones(3, dtype=torch.complex128).conj()

    class Own(torch.Tensor):
        pass

    left = (
        torch.ones(3).requires_grad_(),
        torch.nn.Parameter(torch.ones(3)),
        z,
        z.imag,
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, device="meta"),
        torch.ones(3).to_sparse(),
        torch.ones(0),
        torch._efficientzerotensor(3),
        torch.ones(3).as_subclass(Own),
        np.ones(3),
        [1.0],
        None,
    )
    for x in left:
        assert pl._core._foreign(x) is None
    seen = []
    torch.func.vmap(lambda x: seen.append(pl._core._foreign(x)) or x)(torch.ones(2, 3))
    torch.func.grad(lambda x: seen.append(pl._core._foreign(x)) or x.sum())(torch.ones(3))
    with torch.autograd.forward_ad.dual_level():
        seen.append(pl._core._foreign(torch.autograd.forward_ad.make_dual(z, z)))
        seen.append(pl._core._foreign(torch.ones(3)))
    assert seen == [None] * 4
    assert pl._core._foreign(torch.ones(3)) is not None or not hasattr(
        torch.Tensor, "__dlpack_c_exchange_api__"
    )


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


# -- what only looks like an array here ------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Fake:
    """An array of float64 that exports a pointer to nothing, as torch's FakeTensor does."""

    def __init__(self, *shape):
        self.shape, self.dtype = shape, np.dtype(float)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        self._kept = (
            shape,
            _Tensor(None, (1, 0), len(self.shape), (2, 64, 1, 0), shape, None, 0, None, None),
        )
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p] + [ctypes.c_void_p],
        )
        return make(ctypes.byref(self._kept[1]), b"dltensor", None)


TAKES = {
    "Dense": pl.Dense,
    "operator": pl.aslinearoperator,
    "lazy": pl.lazy,
    "product": lambda g: pl.Identity(3) @ g,
    "lazy product": lambda g: pl.lazy(np.eye(3)) @ g,
    "solve": lambda g: pl.solve(pl.Diag([1.0, 2, 3]), g),
    "solve by cg": lambda g: pl.solve(pl.Diag([1.0, 2, 3]), g, method="cg"),
    "cg": lambda g: pl.cg(pl.Diag([1.0, 2, 3]), g[0] if isinstance(g, np.ndarray) else g),
    "lstsq": lambda g: pl.lstsq(np.eye(3), g),
    "lsmr": lambda g: pl.lstsq(np.eye(3), g, method="lsmr"),
    "expm_multiply": lambda g: pl.expm_multiply(pl.Diag([1.0, 2, 3]), g),
    "sqrt_inv_matmul": lambda g: pl.sqrt_inv_matmul(pl.Diag([1.0, 2, 3]), g),
    "inv_quad_logdet": lambda g: pl.inv_quad_logdet(pl.Diag([1.0, 2, 3]), g),
    "kron": lambda g: pl.Kron(g, np.eye(2)),
    "freeze": pl.freeze,
}


@pytest.mark.parametrize("take", TAKES)
def test_no_memory_behind_it(take):
    with pytest.raises(TypeError, match="no memory behind it"):
        TAKES[take](Fake(3, 3))


def test_nothing_needs_no_memory():
    assert pl.Dense(Fake(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("take", TAKES)
def test_other_devices_are_refused_everywhere(take, rng):
    with pytest.raises(TypeError, match="only CPU memory"):
        TAKES[take](Foreign(rng.standard_normal((3, 3)), (2, 0)))


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("device, refused", [("device1", True), ("cpu", False), ("cuda:0", True)])
def test_a_device_that_dlpack_does_not_know(take, device, refused, rng):
    """As array_api_strict's: its memory is the CPU's, its arrays say they are elsewhere."""
    x = Foreign(np.eye(3))
    x.device = device
    if not refused:
        TAKES[take](x)
        return
    with pytest.raises(TypeError, match=f"lies on {device}: only CPU memory"):
        TAKES[take](x)


class OnGpu:
    """An array that knows no DLPack and no way to NumPy."""

    shape, dtype = (3,), np.dtype(float)


@pytest.mark.parametrize("take", ["solve", "cg", "lstsq", "product", "solve by cg", "lsmr"])
def test_no_way_to_numpy(take):
    with pytest.raises(TypeError, match=r"OnGpu of shape \(3,\) has no way to NumPy|OnGpu"):
        TAKES[take](OnGpu())


def test_tangents_are_refused(monkeypatch, rng):
    """torch's dual numbers, by a module that has what is asked of torch's."""
    x = Foreign(rng.standard_normal((3, 3)))
    duals = {id(x)}

    def unpack_dual(t):
        return types.SimpleNamespace(tangent=t if id(t) in duals else None)

    module = types.SimpleNamespace(_current_level=0, unpack_dual=unpack_dual)
    monkeypatch.setitem(sys.modules, "torch.autograd.forward_ad", module)
    for take in (pl.Dense, TAKES["solve"], TAKES["product"]):
        with pytest.raises(TypeError, match="tangent"):
            take(x)
        take(Foreign(np.eye(3)))
    module._current_level = -1  # outside a context there are none
    pl.Dense(x)


def test_torch_duals_and_fakes():
    torch = pytest.importorskip("torch")
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3, 3), torch.ones(3, 3))
        with pytest.raises(TypeError, match="tangent"):
            pl.Dense(dual)
        pl.Dense(torch.ones(3, 3))
    with fake.FakeTensorMode():
        nothing = torch.ones(3, 3)
    with pytest.raises((TypeError, RuntimeError)):
        pl.Dense(nothing)


def test_array_api_strict(rng):
    xp = pytest.importorskip("array_api_strict")
    a = rng.standard_normal((3, 3))
    np.testing.assert_array_equal(pl.Dense(xp.asarray(a)).toarray(), a)
    with pytest.raises(TypeError, match="device1"):
        pl.Dense(xp.asarray(a, device=xp.Device("device1")))


def test_lazy_arrays_are_handed_out():
    """To libraries, as copies: who is given memory may write to it."""
    x = pl.lazy(np.arange(6.0).reshape(2, 3)).T * 2
    due = np.arange(6.0).reshape(2, 3).T * 2
    np.testing.assert_array_equal(np.from_dlpack(x), due)
    np.testing.assert_array_equal((x + 1).toarray(), due + 1)  # it is no array of another library
    assert pl.lazy(x) is x and x.__dlpack_device__() == (1, 0)
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(x)
    t.zero_()
    np.testing.assert_array_equal(np.asarray(x), due)
