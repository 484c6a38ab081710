"""What a library's namespace of arrays can do, by one set of names: the array API's functions, and
PyTorch's, whose names differ.

No function reads a value: errors of factorisations come out as NaN or inf, as on a GPU that is not
waited for."""

from __future__ import annotations

import contextlib
import importlib
import math
from typing import Any

import numpy as np

from .._base import memory

__all__ = ["Namespace", "device_text", "is_traced", "namespace_of"]


class Namespace:
    """The array API (numpy, cupy, jax.numpy, array_api_strict), on the device of an array."""

    def __init__(self, xp: Any, like: Any) -> None:
        self.xp, self.device = xp, getattr(like, "device", None)
        self._where = device_text(like)

    def where_text(self) -> str:
        """Where arrays lie, as text."""
        return self._where

    def current(self) -> Any:
        """Within it the library makes arrays on the device."""
        return contextlib.nullcontext()

    # -- making arrays

    def dtype(self, name: str) -> Any:
        """The library's dtype by NumPy's name."""
        return getattr(self.xp, "bool" if name == "bool" else name)

    def name_of(self, x: Any) -> str:
        """NumPy's name of an array's dtype."""
        return str(x.dtype).rpartition(".")[2]

    def constant(self, a: Any, dtype: str | None = None) -> Any:
        """An array of NumPy that holds nobody's values, on the device."""
        a = np.asarray(a)
        return self.xp.asarray(a, dtype=self.dtype(dtype or a.dtype.name), **self._there())

    def _there(self) -> dict[str, Any]:
        return {} if self.device is None else {"device": self.device}

    def zeros(self, shape: Any, dtype: str) -> Any:
        return self.xp.zeros(tuple(shape), dtype=self.dtype(dtype), **self._there())

    def ones(self, shape: Any, dtype: str) -> Any:
        return self.xp.ones(tuple(shape), dtype=self.dtype(dtype), **self._there())

    def arange(self, n: int, dtype: str = "int64") -> Any:
        return self.xp.arange(n, dtype=self.dtype(dtype), **self._there())

    def eye(self, m: int, n: int, k: int, dtype: str) -> Any:
        """Ones on diagonal k."""
        return self.xp.eye(m, n, k=k, dtype=self.dtype(dtype), **self._there())

    def cast(self, x: Any, dtype: str) -> Any:
        name = self.name_of(x)
        if name.startswith("complex") and not dtype.startswith("complex"):
            x = self.real(x)
            name = self.name_of(x)
        if dtype.startswith("uint") and name.startswith("float"):
            between = "int32" if dtype in ("uint8", "uint16") else "int64"
            x = self._cast(x, self.dtype(between))  # numbers below zero wrap: JAX makes them 0
        return x if name == dtype else self._cast(x, self.dtype(dtype))

    def _cast(self, x: Any, dtype: Any) -> Any:
        return self.xp.astype(x, dtype)

    def copied(self, x: Any) -> Any:
        """An array of its own memory: results must not lie in what they were made of."""
        return self.xp.asarray(x, copy=True)

    # -- shapes

    def reshape(self, x: Any, shape: Any) -> Any:
        return self.xp.reshape(x, tuple(shape))

    def expand(self, x: Any, shape: Any) -> Any:
        return x if tuple(x.shape) == tuple(shape) else self.xp.broadcast_to(x, tuple(shape))

    def moved(self, x: Any, axes: Any) -> Any:
        return self.xp.permute_dims(x, tuple(axes))

    def mT(self, x: Any) -> Any:
        return self.moved(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])

    def concat(self, parts: Any, axis: int) -> Any:
        return parts[0] if len(parts) == 1 else self.xp.concat(tuple(parts), axis=axis)

    def stack(self, parts: Any, axis: int) -> Any:
        return self.xp.stack(tuple(parts), axis=axis)

    def flip(self, x: Any, axes: Any) -> Any:
        return self.xp.flip(x, axis=tuple(axes))

    def diagonal(self, a: Any, k: int) -> Any:
        return self.xp.linalg.diagonal(a, offset=k)

    def shifted(self, a: Any, c: Any) -> Any:
        """A square matrix and a multiple of the identity."""
        return a + self.eye(a.shape[-1], a.shape[-1], 0, self.name_of(a)) * c

    def take(self, x: Any, index: Any, axis: int) -> Any:
        """Along an axis by a vector of integers: NumPy's, or the library's own."""
        if isinstance(index, np.ndarray) and self.xp is not np:
            index = self.constant(index, "int64")
        return self.xp.take(x, index, axis=axis)

    # -- arithmetic

    def matmul(self, a: Any, b: Any) -> Any:
        return self.xp.matmul(a, b)

    fuses = False  # are the next three one function each?

    def plus_scaled(self, total: Any, x: Any, c: Any) -> Any:
        return total + x * c

    def plus_times(self, total: Any, a: Any, x: Any, c: Any) -> Any:
        return total + a * x * c

    def plus_product(self, total: Any, a: Any, x: Any, c: Any) -> Any:
        return total + self.matmul(a, x) * c

    def dot(self, x: Any, y: Any) -> Any:
        """Of vectors."""
        return self.sum(x * y, -1)

    def conj(self, x: Any) -> Any:
        return self.xp.conj(x) if self.name_of(x).startswith("complex") else x

    def real(self, x: Any) -> Any:
        return self.xp.real(x) if self.name_of(x).startswith("complex") else x

    def imag(self, x: Any) -> Any:
        return self.xp.imag(x) if self.name_of(x).startswith("complex") else x * 0

    def sum(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return self.xp.sum(x, axis=axis, keepdims=keep, dtype=x.dtype)

    def max(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return self.xp.max(x, axis=axis, keepdims=keep)

    def prod(self, x: Any, axis: int) -> Any:
        return self.xp.prod(x, axis=axis, dtype=x.dtype)

    def all(self, x: Any, axis: int) -> Any:
        return self.xp.all(x, axis=axis)

    def largest(self, x: Any) -> Any:
        """Of columns, the largest modulus."""
        return self.max(self.abs(x), -2) if x.shape[-2] else self.sum(self.abs(x), -2)

    def norms(self, x: Any) -> Any:
        """Of columns, the 2-norms; scaled to a largest modulus of 1 before they are squared, so
        that nothing leaves the range."""
        x = self.abs(x)
        if not x.shape[-2]:
            return self.sum(x, -2)
        most = self.max(x, -2, True)
        x = x / self.where(most > 0, most, self.ones((), self.name_of(most)))
        return self.sqrt(self.sum(x * x, -2)) * most[..., 0, :]

    def where(self, test: Any, a: Any, b: Any) -> Any:
        return self.xp.where(test, a, b)

    def or_nan(self, test: Any, x: Any) -> Any:
        return self.where(test, x, self.ones((), self.name_of(x)) * float("nan"))

    def abs(self, x: Any) -> Any:
        return self.xp.abs(x)

    def sign(self, x: Any) -> Any:
        """x / |x|, or 0."""
        return self.xp.sign(x)

    def sqrt(self, x: Any) -> Any:
        return self.xp.sqrt(x)

    def exp(self, x: Any) -> Any:
        return self.xp.exp(x)

    def sin(self, x: Any) -> Any:
        return self.xp.sin(x)

    def log(self, x: Any) -> Any:
        return self.xp.log(x)

    def log1p(self, x: Any) -> Any:
        return self.xp.log1p(x)

    def ceil(self, x: Any) -> Any:
        return self.xp.ceil(x)

    def triu(self, x: Any, k: int = 0) -> Any:
        return self.xp.triu(x, k=k)

    def tril(self, x: Any, k: int = 0) -> Any:
        return self.xp.tril(x, k=k)

    # -- what is only an extension of the array API

    def fft(self, x: Any, axis: int, inverse: bool = False, length: int | None = None) -> Any:
        """Of zeros behind x up to the length."""
        one = self.xp.fft.ifft if inverse else self.xp.fft.fft
        wide = {"float32": "complex64", "float64": "complex128"}
        x = self.cast(x, wide.get(self.name_of(x), self.name_of(x)))
        return one(x, n=length, axis=axis) if length or x.shape[axis] else x

    def rfft(self, x: Any, axis: int, length: int) -> Any:
        """The first half, of a real array with zeros behind it up to the length."""
        return self.xp.fft.rfft(x, n=length, axis=axis)

    def irfft(self, x: Any, axis: int, length: int) -> Any:
        return self.xp.fft.irfft(x, n=length, axis=axis)

    def solve(self, a: Any, b: Any) -> Any:
        """Of matrices; b may have fewer batch dimensions."""
        return self.xp.linalg.solve(a, b)

    def lu(self, a: Any) -> Any:
        """A factor for `lu_solve` and `lu_slogdet`. The array API has none: the matrix itself."""
        return a

    def lu_solve(self, factor: Any, b: Any, mode: int) -> Any:
        """The solution with a matrix through a mode."""
        factor = self.mT(factor) if mode & 1 else factor
        return self.solve(self.conj(factor) if mode & 2 else factor, b)

    def lu_parts(self, factor: Any) -> Any:
        """Numbers whose moduli, and others whose signs have the determinant as their product; None
        where the library does not show them."""
        return None

    def lu_slogdet(self, factor: Any) -> Any:
        return self.slogdet(factor)

    def inv(self, a: Any) -> Any:
        return self.xp.linalg.inv(a)

    def lu_inv(self, factor: Any) -> Any:
        return self.inv(factor)

    def hermitian(self, a: Any) -> Any:
        """By the triangle that is named: the upper one."""
        return self.triu(a) + self.conj(self.mT(self.triu(a, 1)))

    def cholesky(self, a: Any) -> Any:
        """The lower factor, of a Hermitian matrix by its upper triangle."""
        return self.xp.linalg.cholesky(self.hermitian(a))

    def eigh(self, a: Any) -> Any:
        """(values, vectors) of a Hermitian matrix by its upper triangle."""
        return tuple(self.xp.linalg.eigh(self.hermitian(a)))

    def substitute(self, a: Any, b: Any, lower: bool) -> Any:
        """The solution with a triangle, in whose other half are zeros."""
        return self.solve(a, b)

    def slogdet(self, a: Any) -> Any:
        return tuple(self.xp.linalg.slogdet(a))

    def each_once(self, index: Any) -> Any:
        """Does every vector of a batch hold 0 ... n - 1, each once? One truth value."""
        n = int(index.shape[-1])
        if index.ndim > 1 or not self._adds_by_index:
            return self.xp.all(self.sorted(index) == self.arange(n, self.name_of(index)))
        count = self.scatter(self.ones((n, 1), "int32"), index, n)
        return self.xp.all(count == 1) & self.xp.all(index >= 0)  # one below would wrap again

    _adds_by_index = False

    def sorted(self, x: Any) -> Any:
        return self.xp.sort(x, axis=-1)

    def scatter(self, values: Any, index: Any, count: int) -> Any:
        """Sums of rows of values (..., k, c) that go to the same of `count` rows. The array API
        has none: a product with a matrix of zeros and ones, count x k."""
        shape = (count, int(index.shape[0]))
        nbytes = math.prod(shape) * np.dtype(self.name_of(values)).itemsize
        memory.materialising_elsewhere("a sum by index", shape, nbytes, self._where, False)
        at = self.arange(count, self.name_of(index))
        chosen = self.cast(at[:, None] == index[None, :], self.name_of(values))
        return self.matmul(chosen, values)


class _NumPy(Namespace):
    _adds_by_index = True

    def scatter(self, values: Any, index: Any, count: int) -> Any:
        out = np.zeros((*values.shape[:-2], count, values.shape[-1]), values.dtype)
        at: Any = (..., np.asarray(index), slice(None))
        np.add.at(out, at, values)
        return out


class _Jax(Namespace):
    _adds_by_index = True

    def dtype(self, name: str) -> Any:
        """The one of 32 bits where JAX has no others."""
        return importlib.import_module("jax").dtypes.canonicalize_dtype(name)

    def matmul(self, a: Any, b: Any) -> Any:
        """On a GPU JAX rounds single precision to 10 bits, unless it is told or asked not to."""
        said = importlib.import_module("jax").config.jax_default_matmul_precision
        return self.xp.matmul(a, b, precision=said or "highest")

    def scatter(self, values: Any, index: Any, count: int) -> Any:
        out = self.zeros((*values.shape[:-2], count, values.shape[-1]), self.name_of(values))
        return out.at[..., index, :].add(values)

    def substitute(self, a: Any, b: Any, lower: bool) -> Any:
        own = importlib.import_module("jax.scipy.linalg")
        return own.solve_triangular(a, b, lower=lower)


class _CuPy(Namespace):
    """CuPy, whose arrays do not name their namespace, and lie on a device that is made current."""

    _adds_by_index = True

    def current(self) -> Any:
        return self.device

    def _there(self) -> dict[str, Any]:
        return {}

    def _cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def diagonal(self, a: Any, k: int) -> Any:
        return self.xp.diagonal(a, k, -2, -1)

    def solve(self, a: Any, b: Any) -> Any:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        b = self.expand(b, (*batch, *b.shape[-2:]))
        if not b.size:  # which CuPy divides by
            return self._nothing(a, b)
        return self.xp.linalg.solve(self.expand(a, (*batch, *a.shape[-2:])), b)

    def _nothing(self, a: Any, b: Any) -> Any:
        """A solution without numbers."""
        return self.xp.zeros(b.shape, np.result_type(a.dtype, b.dtype))

    def cholesky(self, a: Any) -> Any:
        """CuPy leaves numbers where it fails, and says so only where the device is waited for."""
        with importlib.import_module("cupyx").errstate(linalg="raise"):
            return super().cholesky(a)

    def substitute(self, a: Any, b: Any, lower: bool) -> Any:
        own = importlib.import_module("cupyx.scipy.linalg")
        return own.solve_triangular(a, b, lower=lower) if b.size else self._nothing(a, b)

    def scatter(self, values: Any, index: Any, count: int) -> Any:
        name = self.name_of(values)
        if name.startswith("complex"):  # CuPy adds neither these nor small integers
            parts = [self.scatter(x, index, count) for x in (values.real, values.imag)]
            return parts[0] + 1j * parts[1]
        if not name.startswith("float") and values.dtype.itemsize < 4:
            wide = self.scatter(values.astype("int64"), index, count)
            return (wide != 0) if name == "bool" else wide.astype(name)
        out = self.zeros((*values.shape[:-2], count, values.shape[-1]), self.name_of(values))
        at: Any = (..., index, slice(None))
        self.xp.add.at(out, at, values)
        return out


class _Torch(Namespace):
    """PyTorch, whose functions wait for no device: those that look at errors have an _ex form."""

    _adds_by_index = True

    def constant(self, a: Any, dtype: str | None = None) -> Any:
        """A copy from memory that is not pinned waits for the device."""
        due = self.dtype(dtype or np.asarray(a).dtype.name)
        x = self.xp.from_numpy(np.array(a, order="C"))
        if self.device is None or self.device.type != "cuda":
            return x.to(device=self.device, dtype=due)
        return x.to(due).pin_memory().to(self.device, non_blocking=True)

    def eye(self, m: int, n: int, k: int, dtype: str) -> Any:
        if not k:
            return self.xp.eye(m, n, dtype=self.dtype(dtype), device=self.device)
        return self.cast(self.arange(m)[:, None] + k == self.arange(n), dtype)

    def _cast(self, x: Any, dtype: Any) -> Any:
        return (x if dtype.is_complex else self.real(x)).to(dtype)

    def moved(self, x: Any, axes: Any) -> Any:
        return x.permute(tuple(axes))

    def concat(self, parts: Any, axis: int) -> Any:
        return parts[0] if len(parts) == 1 else self.xp.cat(tuple(parts), dim=axis)

    def stack(self, parts: Any, axis: int) -> Any:
        return self.xp.stack(tuple(parts), dim=axis)

    def flip(self, x: Any, axes: Any) -> Any:
        return self.xp.flip(x, tuple(axes))

    def diagonal(self, a: Any, k: int) -> Any:
        return a.diagonal(k, -2, -1)

    def shifted(self, a: Any, c: Any) -> Any:
        return a.diagonal_scatter(a.diagonal(0, -2, -1) + c, 0, -2, -1)

    def take(self, x: Any, index: Any, axis: int) -> Any:
        if isinstance(index, np.ndarray):
            index = self.constant(index, "int64")
        return self.xp.index_select(x, axis, index)

    def matmul(self, a: Any, b: Any) -> Any:
        if a.dtype != b.dtype:
            wide = self.xp.promote_types(a.dtype, b.dtype)
            a, b = a.to(wide), b.to(wide)
        return self.xp.matmul(a, b)

    fuses = True

    def plus_scaled(self, total: Any, x: Any, c: Any) -> Any:
        return self.xp.sub(total, x) if c == -1 else self.xp.add(total, x, alpha=c)

    def plus_times(self, total: Any, a: Any, x: Any, c: Any) -> Any:
        return self.xp.addcmul(total, a, x, value=c)

    def plus_product(self, total: Any, a: Any, x: Any, c: Any) -> Any:
        if total.ndim == a.ndim == x.ndim == 2 and total.dtype == a.dtype == x.dtype:
            return self.xp.addmm(total, a, x, alpha=c)
        return self.plus_scaled(total, self.matmul(a, x), c)

    def dot(self, x: Any, y: Any) -> Any:
        plain = x.ndim == y.ndim == 1 and x.dtype == y.dtype
        if plain and (x.is_complex() or x.is_floating_point()):
            return self.xp.dot(x, y)
        return super().dot(x, y)

    def conj(self, x: Any) -> Any:
        return x.conj().resolve_conj() if x.is_complex() else x

    def sign(self, x: Any) -> Any:
        return self.xp.sgn(x)

    def real(self, x: Any) -> Any:
        return x.real if x.is_complex() else x

    def sum(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return self.xp.sum(x, dim=axis, keepdim=keep, dtype=x.dtype)

    def max(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return self.xp.amax(x, dim=axis, keepdim=keep)

    def prod(self, x: Any, axis: int) -> Any:
        return self.xp.prod(x, dim=axis, dtype=x.dtype)

    def all(self, x: Any, axis: int) -> Any:
        return self.xp.all(x, dim=axis)

    def largest(self, x: Any) -> Any:
        if not x.shape[-2]:
            return super().largest(x)
        return self.xp.linalg.vector_norm(x, float("inf"), dim=-2)

    def or_nan(self, test: Any, x: Any) -> Any:
        return self.xp.where(test, x, float("nan"))

    def sorted(self, x: Any) -> Any:
        return self.xp.sort(x, dim=-1)[0]

    def triu(self, x: Any, k: int = 0) -> Any:
        return self.xp.triu(x, k)

    def tril(self, x: Any, k: int = 0) -> Any:
        return self.xp.tril(x, k)

    def fft(self, x: Any, axis: int, inverse: bool = False, length: int | None = None) -> Any:
        n = x.shape[axis] if length is None else length
        if not x.numel():  # MKL refuses what has no numbers
            shape = list(x.shape)
            shape[axis] = n
            return x.new_zeros(shape, dtype=x.dtype.to_complex())
        return (self.xp.fft.ifft if inverse else self.xp.fft.fft)(x, n=length, dim=axis)

    def rfft(self, x: Any, axis: int, length: int) -> Any:
        return self.xp.fft.rfft(x, n=length, dim=axis)

    def irfft(self, x: Any, axis: int, length: int) -> Any:
        return self.xp.fft.irfft(x, n=length, dim=axis)

    def solve(self, a: Any, b: Any) -> Any:
        batch = self.xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        wide = self.xp.promote_types(a.dtype, b.dtype)
        a, b = a.to(wide), b.to(wide).expand(*batch, *b.shape[-2:])
        return self.xp.linalg.solve_ex(a.expand(*batch, *a.shape[-2:]), b)[0]

    def lu(self, a: Any) -> Any:
        """Where it fails there is an exact zero on the diagonal: solutions are inf or NaN."""
        factor, pivots, _ = self.xp.linalg.lu_factor_ex(a)
        return factor, pivots

    def lu_solve(self, factor: Any, b: Any, mode: int) -> Any:
        a, pivots = factor
        batch = self.xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, pivots = a.expand(*batch, *a.shape[-2:]), pivots.expand(*batch, pivots.shape[-1])
        b = b.expand(*batch, *b.shape[-2:])
        turned = mode in (1, 2)  # what torch has is the adjoint
        b = self.conj(b) if turned else b
        x = self.xp.linalg.lu_solve(a, pivots, b, adjoint=bool(mode & 1))
        return self.conj(x) if turned else x

    def lu_parts(self, factor: Any) -> Any:
        a, pivots = factor
        d, own = a.diagonal(dim1=-2, dim2=-1), self.arange(pivots.shape[-1], "int32") * 2 + 3
        turned = self.xp.sub(own, pivots, alpha=2)  # 1, or less than 0 where rows were swapped
        return d, d * turned

    def lu_slogdet(self, factor: Any) -> Any:
        d, signed = self.lu_parts(factor)
        return self.sign(signed).prod(-1), d.abs().log().sum(-1)

    def inv(self, a: Any) -> Any:
        return self._unless(*self.xp.linalg.inv_ex(a))

    def lu_inv(self, factor: Any) -> Any:
        n = factor[0].shape[-1]
        return self.lu_solve(factor, self.eye(n, n, 0, self.name_of(factor[0])), 0)

    def cholesky(self, a: Any) -> Any:
        """Of the adjoint the lower triangle is that: by the upper one a GPU takes twice as long."""
        return self._unless(*self.xp.linalg.cholesky_ex(a.mH))

    def eigh(self, a: Any) -> Any:
        return tuple(self.xp.linalg.eigh(a.mH))

    def _unless(self, x: Any, failed: Any) -> Any:
        """NaN where a factorisation failed: torch leaves numbers there that are not of it."""
        return self.xp.where((failed == 0)[..., None, None], x, float("nan"))

    def substitute(self, a: Any, b: Any, lower: bool) -> Any:
        return self.xp.linalg.solve_triangular(a, b, upper=not lower)

    def scatter(self, values: Any, index: Any, count: int) -> Any:
        out = self.zeros((*values.shape[:-2], count, values.shape[-1]), self.name_of(values))
        return out.index_add(-2, index, values)


def namespace_of(x: Any) -> Namespace:
    """What computes with an array, on its device."""
    root = type(x).__module__.partition(".")[0]
    if isinstance(x, (np.ndarray, np.generic)):
        return _NumPy(np, None)
    if root == "torch" or hasattr(x, "__torch_function__"):
        return _Torch(importlib.import_module("torch"), x)
    if root == "cupy":
        return _CuPy(importlib.import_module("cupy"), x)
    if root in ("jax", "jaxlib"):
        made = _Jax(importlib.import_module("jax.numpy"), x)
        made.device = None  # traced arrays have none; untraced ones follow each other
        return made
    if hasattr(x, "__array_namespace__"):
        return Namespace(x.__array_namespace__(), x)
    raise TypeError(f"a {type(x).__name__} is no array of the array API")


def is_traced(x: Any) -> bool:
    """Is x what stands for an array in a transformation of JAX?"""
    root = type(x).__module__.partition(".")[0]
    return root == "jax" and getattr(x, "device", None) is None


def device_text(x: Any) -> str:
    """Where an array lies, as text."""
    return str(getattr(x, "device", None) or "cpu")
