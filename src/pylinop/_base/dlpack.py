"""Arrays of other libraries, by DLPack: CPU memory is used in place, never copied; and memory that
nobody can write to, of which what is derived needs no second look at its bytes.

What a pointer cannot carry is refused by name: gradients and tangents would be lost silently,
conjugate and negative bits would be ignored, a device might only pretend to be the CPU, and a
tensor without memory would be read as whatever lies there."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import _core

_CPU = (1, 3, 11)  # kDLCPU, and host memory pinned for CUDA and ROCm


_numbers = itertools.count(1)


class Owner:
    """A factor object, or the second half of a program, as the core knows it: what is derived of
    its arrays is held under ``number``, until that is 0."""

    __slots__ = ("number",)

    def __init__(self, number: int | None = None) -> None:
        self.number = next(_numbers) if number is None else number

    def release(self) -> None:
        """Lets go of what is held."""
        held, self.number = self.number, 0
        _core._release(held)

    def holding(self, f: Callable[..., Any], *args: Any) -> Any:
        """`f(*args)`: what this thread derives in it is held under the number, whatever it is
        of."""
        return _core._hold(self.number, f, *args)


class Immutable:
    """The base of arrays that nobody can write to: our own copies, and arrays of JAX.

    NumPy does not let a view of it be made writeable. The core knows this class, and asks it for
    the number of its owner, 0 for none."""

    __slots__ = ("_array", "_owner")

    def __init__(self, array: Any, owner: Owner | None = None) -> None:
        self._array, self._owner = array, owner

    @property
    def owner(self) -> int:
        return 0 if self._owner is None else self._owner.number

    @property
    def __array_interface__(self) -> dict[str, Any]:
        made: dict[str, Any] = self._array.__array_interface__
        address, _ = made["data"]
        return {**made, "data": (address, True)}


def immutable(array: Any, owner: Owner | None = None) -> Any:
    """A view of an array of numbers that nobody else can write to."""
    return np.asarray(Immutable(array, owner))


def is_immutable(array: Any) -> bool:
    """Can nobody write to its memory?"""
    root: Any = array
    while isinstance(root, np.ndarray) and not root.flags.writeable:
        root = root.base
    return isinstance(root, (bytes, Immutable))


_own: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def fixed(a: Any) -> Any:
    """An array of our own, which no user sees and which no values are in: of shapes and places
    alone. What is made of it may be kept."""
    a.flags.writeable = False
    _own[id(a)] = a
    return a


def is_own(a: Any) -> bool:
    """Did `fixed` give it?"""
    return a is not None and _own.get(id(a)) is a


def is_fixed(a: Any) -> bool:
    """Does it keep its numbers? Whoever owns an array that is read-only may thaw it."""
    return isinstance(a, (np.number, np.bool_)) or is_own(a) or is_immutable(a)


def immutable_copy(array: Any, owner: Owner | None = None) -> Any:
    """A copy that nobody can write to, in the same order."""
    own = np.array(array, order="K")
    return immutable(own, owner) if own.dtype.kind in "biufc" else own


def given(x: Any) -> bool:
    """Is x an array of a library other than NumPy?"""
    own = isinstance(x, (np.ndarray, np.generic, _core.Lazy))
    return not own and hasattr(type(x), "__dlpack__")


def _refuse(x: Any, why: str) -> NoReturn:
    raise TypeError(f"a {type(x).__module__}.{type(x).__name__} {why}")


def _has_tangent(x: Any) -> bool:
    """Is it a dual number of torch's forward mode? These exist only within its context."""
    forward = sys.modules.get("torch.autograd.forward_ad")
    if forward is None or getattr(forward, "_current_level", 0) < 0:
        return False
    try:
        return forward.unpack_dual(x).tangent is not None
    except Exception:
        return False  # an array of a library other than NumPy


def _is_traced(x: Any) -> bool:
    """Is it one of JAX's stand-ins for an array, in jit, grad or vmap?"""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def _is_wrapped(x: Any) -> bool:
    """Is it one of torch.func's stand-ins for a tensor, in vmap, grad or jvp?"""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor):
        return False
    known = getattr(torch._C, "_functorch", None)
    return known is not None and bool(known.is_functorch_wrapped_tensor(x))


def _where_taken(x: Any) -> str:
    """Who takes arrays of this library that lie on another device."""
    library = type(x).__module__.split(".")[0]
    room = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}.get(library, "array_api")
    return f"only CPU memory is taken here; pylinop.{room} has the same names for it, where it lies"


def _elsewhere(x: Any) -> Any:
    """The device, if it is not a CPU by its own name: DLPack does not know some devices."""
    device = getattr(x, "device", None)
    if device is None or callable(device):
        return None
    return None if "cpu" in str(device).lower() else device


def as_array(x: Any) -> Any:
    """An argument as an array: arrays of other libraries in place, or refused with the reason."""
    if isinstance(x, np.ndarray):
        if type(x) is np.ndarray:
            return x
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError("masked arrays are not taken: fill them first")
        if type(x).__array_ufunc__ is not np.ndarray.__array_ufunc__:  # as a unit has
            _refuse(
                x,
                "has an arithmetic of its own (units, say), which results would not have: give its "
                "numbers as an array, np.asarray(x)",
            )
        return np.asarray(x)
    if given(x):
        return taken(x)
    a = np.asarray(x)
    if a.ndim == 0 and a.dtype == object and getattr(x, "shape", ()) != ():
        _refuse(x, f"of shape {x.shape} has no way to NumPy: bring it to CPU memory as an array")
    return a


# Devices of JAX's arrays whose own view of NumPy's was found to be on their memory, by the class.
_viewed: dict[type, set[Any]] = {}


def _view(x: Any) -> Any:
    """The array's own view where it is known to be on its memory; None: it is to be looked at."""
    devices = _viewed.get(type(x))
    if devices is None or x.device not in devices:
        return None
    try:
        a = np.asarray(x)
    except RuntimeError:  # its memory was given away
        return None
    fits = a.dtype.char in "?bBhHiIlLqQfdFD" and not (a.flags.writeable or a.flags.owndata)
    return immutable(a) if fits else None


def taken(x: Any) -> Any:
    """The array in x's own memory (read-only where x says so)."""
    plain = _core._foreign(x)
    if plain is None:
        plain = _view(x)
    if plain is not None:
        return plain
    if _is_traced(x):
        _refuse(
            x,
            f"of shape {x.shape} stands for an array that JAX traces (jit, grad, vmap), which has "
            "no values here: pylinop.jax has the same names for these",
        )
    if _is_wrapped(x):
        _refuse(
            x,
            f"of shape {tuple(x.shape)} stands for a tensor that torch.func maps or differentiates "
            "(vmap, grad, jvp), which is not in memory as it reads: pylinop.torch has the same "
            "names for these",
        )
    if _has_tangent(x):
        _refuse(x, "with a tangent would lose it here: unpack_dual() it")
    if getattr(x, "requires_grad", False):
        _refuse(
            x, "with requires_grad would lose its gradient here: use pylinop.torch, or detach() it"
        )
    for bit, cure in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        flag = getattr(x, bit, None)
        if callable(flag) and flag():
            _refuse(x, f"with its {bit[3:]} bit set is not in memory as it reads: {cure}() it")
    try:
        device = x.__dlpack_device__()[0]
    except Exception:
        return np.asarray(x)  # a tracer and the like: it says itself what is wrong
    if device not in _CPU:
        _refuse(x, f"lies on {getattr(x, 'device', device)}: {_where_taken(x)}")
    if (other := _elsewhere(x)) is not None:
        _refuse(x, f"lies on {other}: {_where_taken(x)}")
    try:
        a = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        dtype = getattr(x, "dtype", "?")
        raise TypeError(
            f"a {type(x).__module__}.{type(x).__name__} of dtype {dtype} cannot be taken: {error}"
        ) from error
    if a.size and a.flags.owndata:  # NumPy's own memory: what was exported pointed nowhere
        _refuse(x, f"of shape {a.shape} has no memory behind it (is it a fake, or on 'meta'?)")
    own = type(x).__module__.split(".")[0] in ("jax", "jaxlib")  # its arrays never change
    if not own or a.dtype.kind not in "biufc" or a.flags.writeable:
        return a
    if a.size and np.asarray(x).__array_interface__["data"] == a.__array_interface__["data"]:
        _viewed.setdefault(type(x), set()).add(x.device)
    return immutable(a)
