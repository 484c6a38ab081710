"""`Structured` for JAX: importing this module registers it. On the CPU XLA calls pylinop's handler
in C with its own memory, elsewhere Python through a callback; with the same guards. Its derivative
by JAX (numpyro takes one) is the program's pullback."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.link.jax.dispatch.basic import jax_funcify

from .._programs.entry import ran
from ..jax import handler
from .ops import Structured
from .program import Tree, arrays_of, like
from .running import results, shape_of

__all__ = ["funcify"]


def _by_handler(text: str, due: Any, *arrays: Any) -> Any:
    """By C, from a tape where there is one."""
    a, b = handler.of_text(f"pytensor\n{text}")
    call = jax.ffi.ffi_call(handler.NAME, tuple(due), vmap_method="sequential")
    return call(*arrays, a=a, b=b)


def _called_back(text: str, dtypes: tuple[str, ...], due: Any, *arrays: Any) -> Any:
    """Through Python: wherever XLA runs."""

    def values(*held: Any) -> Any:
        ran(f"pytensor\n{text}", "XLA calls back")
        return tuple(results(text, [np.asarray(a) for a in held], dtypes))

    return jax.pure_callback(values, tuple(due), *arrays, vmap_method="sequential")


def _called(spec: Tree, dtypes: tuple[str, ...]) -> Any:
    """The program as a function of JAX: a tuple of arrays."""
    text, kinds = repr(spec), like(spec)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def structured(*arrays: Any) -> Any:
        shapes = [a.shape for a in arrays]
        due = [
            jax.ShapeDtypeStruct(shape_of(k, shapes), np.dtype(d))
            for k, d in zip(kinds, dtypes, strict=True)
        ]
        if not handler.there():
            return _called_back(text, dtypes, due, *arrays)
        return jax.lax.platform_dependent(
            *arrays,
            cpu=functools.partial(_by_handler, text, due),
            default=functools.partial(_called_back, text, dtypes, due),
        )

    def forward(*arrays: Any) -> Any:
        return structured(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        by = tuple(range(arrays_of(spec)))
        back = _called(
            ("pullback", spec, by, len(kinds)), tuple(str(np.dtype(a.dtype)) for a in arrays)
        )
        return back(*arrays, *cotangents)

    structured.defvjp(forward, backward)
    return structured


@jax_funcify.register(Structured)  # type: ignore[untyped-decorator]
def funcify(op: Structured, node: Any, **kwargs: Any) -> Any:
    """The JAX function of a program."""
    run = _called(op.spec, tuple(out.dtype for out in node.outputs))

    def structured(*arrays: Any) -> Any:
        found = run(*map(jnp.asarray, arrays))
        return found[0] if len(found) == 1 else found

    return structured
