"""Programs on devices that C does not reach, by JAX's own functions: within `jit` they are part of
the graph, outside of it they are compiled. Nothing goes through the host.

A formula is walked when it is traced, so that what it reads besides its arguments is of that time.
Outside of `jit` one that holds arrays of NumPy, which may be written to, is walked at each call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._base import config
from .._namespace import formulas
from .._programs.programs import Program
from .arrays import out_dtype

__all__ = ["at_once", "is_elsewhere", "of_one_element", "placed"]


def _computed(program: Program, held: list[Any], *arrays: Any) -> tuple[Any, ...]:
    kinds = program.kinds(tuple((tuple(x.shape), np.dtype(x.dtype)) for x in arrays))
    given = [jnp.asarray(x) for x in arrays]
    found = formulas.computed(program, given, held, jnp.zeros(()))
    made = []
    for value, (shape, dtype) in zip(found, kinds, strict=True):
        due = out_dtype(dtype)
        if jnp.iscomplexobj(value) and due.kind != "c":
            value = jnp.real(value)
        made.append(jnp.broadcast_to(jnp.asarray(value, due), shape))
    return tuple(made)


def of_one_element(
    program: Program, sizes: Any, flags: Any, held: list[Any]
) -> Callable[..., tuple[Any, ...]]:
    """The program as a function of JAX, mapped over its batches. It puts into `held` the arrays of
    NumPy that it reads and others may write to."""
    if not sizes:
        return functools.partial(_computed, program, held)
    inner = of_one_element(program, sizes[1:], tuple(f[1:] for f in flags), held)
    axes = tuple(0 if f[0] else None for f in flags)
    found: Callable[..., tuple[Any, ...]] = jax.vmap(inner, in_axes=axes, axis_size=sizes[0])
    return found


class _Compiled:
    """A program compiled once, and whether it may be: one that reads arrays of NumPy is not."""

    def __init__(self, program: Program, sizes: Any, flags: Any) -> None:
        self._plain = program, sizes, flags
        self._reads: list[Any] = []
        self._call = jax.jit(self._traced)

    def _traced(self, *arrays: Any) -> Any:
        held: list[Any] = []
        found = of_one_element(*self._plain, held)(*arrays)
        self._reads += held[:1]
        return found

    def __call__(self, arrays: Any) -> Any:
        if self._reads or config.recording():
            return of_one_element(*self._plain, [])(*arrays)
        return self._call(*arrays)


@functools.lru_cache(maxsize=512)
def _compiled(program: Program, sizes: Any, flags: Any, options: Any) -> _Compiled:
    return _Compiled(program, sizes, flags)


def at_once(program: Program, sizes: Any, flags: Any, arrays: Any) -> list[Any]:
    """The values, where the arrays lie: JAX says which they are where these are several places."""
    return list(_compiled(program, sizes, flags, formulas.settings())(arrays))


@functools.cache
def _there_is_one_place() -> bool:
    """Is all of this process's memory for arrays that of one CPU? Where it is told of several
    platforms, JAX counts the devices of the first alone."""
    if "," in (jax.config.jax_platforms or ""):
        return False
    return len(jax.devices()) == 1 and jax.devices()[0].platform == "cpu"


def is_elsewhere(arrays: Any) -> bool:
    """Does any of them, and without one what is made anew, lie on a device other than a CPU?"""
    if _there_is_one_place():
        return False
    found = {d.platform for x in arrays if isinstance(x, jax.Array) for d in x.devices()}
    return (found or {jax.default_backend()}) != {"cpu"}


def placed(values: Callable[[], Any], arrays: Any) -> list[Any]:
    """Arrays of NumPy as JAX's, on the device on which the arguments lie, and bound to it as they
    are. Those that are bound to different ones are refused, as by JAX."""
    if _there_is_one_place():
        return [jnp.asarray(x) for x in values()]
    held = [x for x in arrays if isinstance(x, jax.Array)]
    bound = [x for x in held if getattr(x, "committed", True)]
    on = {frozenset(x.devices()) for x in bound or held}
    if bound and len(on) > 1:
        formulas.on_one_device(bound)
    one = next(iter(on)) if len(on) == 1 else frozenset()
    if len(one) != 1:
        return [jnp.asarray(x) for x in values()]
    (device,) = one
    if bound:
        return [jax.device_put(x, device) for x in values()]
    with jax.default_device(device):
        return [jnp.asarray(x) for x in values()]
