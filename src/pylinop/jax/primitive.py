"""The primitive that runs a program: one call, whatever the program does.

Its rules are the derivatives (programs again), the transpose of what is linear, and batches. Under
`jax.jit` on the CPU the call goes to a handler in C, through `jax.pure_callback` where JAX has no
place for one; outside of `jit` it is made at once, so that errors are pylinop's own. On other
devices it is what JAX's own functions make of the formula (in_place.py).

A batch is a loop over programs without it: `sizes` are the batch dimensions, `flags` say of each
array which of them it has, in front."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .._programs import tapes
from .._programs.programs import Program, Pullback, Pushforward, WithGradients, as_results
from . import handler, in_place
from .arrays import out_dtype

__all__ = ["run"]

_run: Any = Primitive("pylinop")
_run.multiple_results = True


def run(program: Program, arrays: Any) -> list[Any]:
    """The values of a program, of arrays of JAX."""
    found: list[Any] = _bound(program, arrays, (), ((),) * len(arrays))
    return found


def _varying(aval: Any) -> frozenset[Any]:
    """The axes of the mesh of a `shard_map` along which what is abstracted so differs."""
    found: frozenset[Any] = getattr(aval, "vma", None) or frozenset()
    return found or getattr(getattr(aval, "mat", None), "varying", frozenset())


def _alike(arrays: Any) -> Any:
    """All of them varying where one is, as JAX's own functions do it: only so has the cotangent of
    one that does not vary its sum over the devices."""
    if not any(isinstance(a, jax.core.Tracer) for a in arrays):
        return arrays
    axes = [_varying(jax.typeof(a)) for a in arrays]
    whole = frozenset().union(*axes)
    if not whole:
        return arrays
    lacking = [tuple(sorted(whole - own, key=str)) for own in axes]
    return [a if not more else _cast(a, more) for a, more in zip(arrays, lacking, strict=True)]


def _cast(a: Any, axes: Any) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(a, axes, to="varying")
    return jax.lax.pvary(a, axes)


def _bound(program: Program, arrays: Any, sizes: Any, flags: Any) -> Any:
    arrays = _alike(arrays)
    return _run.bind(*arrays, program=program, sizes=tuple(sizes), flags=tuple(flags))


def _avals(arrays: Any, flags: Any) -> tuple[Any, ...]:
    """(shape, dtype) of each array without its batches."""
    return tuple(
        (tuple(a.shape)[sum(f) :], np.dtype(a.dtype)) for a, f in zip(arrays, flags, strict=True)
    )


# -- running ---------------------------------------------------------------------------------------


def _filled(program: Program, sizes: Any, flags: Any, held: Any, out: Any) -> None:
    """Writes the values into arrays of NumPy, in their dtypes (a thread of XLA does not know how
    many bits JAX has here); of batches one after the other."""
    kinds = program.kinds(_avals(held, flags))
    if not sizes:
        for whole, value in zip(out, as_results(program(held), kinds, np.dtype), strict=True):
            whole[...] = value
        return
    tapes.mapped(program, sizes, flags, held, kinds, out)


def _executed(program: Program, results: Any, sizes: Any, flags: Any, *arrays: Any) -> Any:
    """The values, as arrays of NumPy, of the shapes and dtypes of `results`."""
    held = [np.asarray(a) for a in arrays]
    made = [np.empty(r.shape, r.dtype) for r in results]
    if sizes:
        _filled(program, sizes, flags, held, made)
        return tuple(made)
    found = tapes.values(program, held, program.kinds(_avals(held, flags)))
    return tuple(x.astype(r.dtype, copy=False) for x, r in zip(found, results, strict=True))


def _at_once(*arrays: Any, program: Program, sizes: Any, flags: Any) -> list[Any]:
    if in_place.is_elsewhere(arrays):
        return in_place.at_once(program, sizes, flags, arrays)
    results = _abstract(*arrays, program=program, sizes=sizes, flags=flags)
    made = functools.partial(_executed, program, results, sizes, flags, *arrays)
    return in_place.placed(made, arrays)


def _abstract(*arrays: Any, program: Program, sizes: Any, flags: Any) -> list[Any]:
    kinds = program.kinds(_avals(arrays, flags))
    made = ShapedArray
    if arrays and _varying(arrays[0]):
        mesh = arrays[0].sharding.mesh
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        made = functools.partial(arrays[0].update, weak_type=False, sharding=whole)
    return [made((*sizes, *shape), out_dtype(dtype)) for shape, dtype in kinds]


_run.def_impl(_at_once)
_run.def_abstract_eval(_abstract)


def _promised(program: Program, sizes: Any, flags: Any, arrays: Any) -> tuple[Any, ...]:
    """Shapes and dtypes of the results. The formula is built: what has no derivative says so here,
    not at run time."""
    avals = _avals(arrays, flags)
    Program._kinds(program, avals)
    return tuple(
        jax.ShapeDtypeStruct((*sizes, *shape), out_dtype(dtype))
        for shape, dtype in program.kinds(avals)
    )


def _called_back(*arrays: Any, program: Program, sizes: Any, flags: Any) -> Any:
    """Through Python."""
    results = _promised(program, sizes, flags, arrays)
    called = functools.partial(_executed, program, results, sizes, flags)
    return jax.pure_callback(called, results, *arrays)


def _called(*arrays: Any, program: Program, sizes: Any, flags: Any) -> Any:
    """By our handler, on XLA's memory."""
    results = _promised(program, sizes, flags, arrays)
    run = functools.partial(_filled, program, sizes, flags)
    a, b = handler.registered(handler.digest(program, sizes, flags), run)
    return jax.ffi.ffi_call(handler.NAME, results)(*arrays, a=a, b=b)


def _in_place(*arrays: Any, program: Program, sizes: Any, flags: Any) -> Any:
    """By JAX's own functions."""
    _promised(program, sizes, flags, arrays)
    return in_place.of_one_element(program, sizes, flags, [])(*arrays)


_on_cpu = _called if handler.there() else _called_back
mlir.register_lowering(_run, mlir.lower_fun(_in_place, multiple_results=True))
mlir.register_lowering(_run, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")


# -- derivatives -----------------------------------------------------------------------------------


def _is_zero(t: Any) -> bool:
    return type(t) is ad.Zero


def _zeros(values: Any) -> list[Any]:
    return [ad.Zero(jax.typeof(v).to_tangent_aval()) for v in values]


def _is_number(kind: Any) -> bool:
    shape, dtype = kind
    return bool(shape == () and dtype.kind == "f")


def _jvp(primals: Any, tangents: Any, *, program: Program, sizes: Any, flags: Any) -> Any:
    live = [k for k, t in enumerate(tangents) if not _is_zero(t)]
    if not live:
        values = _bound(program, primals, sizes, flags)
        return values, _zeros(values)
    if set(live) <= program.linear():
        values = _bound(program, primals, sizes, flags)
        moved = [
            (jnp.zeros_like(p) if _is_zero(t) else t) if k in program.linear() else p
            for k, (p, t) in enumerate(zip(primals, tangents, strict=True))
        ]
        return values, _bound(program, moved, sizes, flags)
    kinds = program.kinds(_avals(primals, flags))
    if all(map(_is_number, kinds)):
        return _by_gradients(primals, tangents, live, program, sizes, flags, len(kinds))
    values = _bound(program, primals, sizes, flags)
    given = [*primals, *(tangents[k] for k in live)]
    more = (*flags, *(flags[k] for k in live))
    return values, _bound(Pushforward(program, tuple(live)), given, sizes, more)


def _by_gradients(
    primals: Any, tangents: Any, live: list[int], program: Program, sizes: Any, flags: Any, n: int
) -> Any:
    """Of real numbers value and gradient come by one plan; the tangent is the inner product."""
    found = _bound(WithGradients(program, tuple(live)), primals, sizes, flags)
    values, rest = found[:n], found[n:]
    made = []
    for i in range(n):
        total = jnp.zeros_like(values[i])
        for g, k in zip(rest[i * len(live) :], live, strict=False):
            t = tangents[k]
            behind = np.ndim(primals[k]) - sum(flags[k])
            shown = _in_front(t, sizes, flags[k])
            terms = jnp.real(jnp.conj(g) * shown) if jnp.iscomplexobj(g) else g * shown
            axes = tuple(range(len(sizes), len(sizes) + behind))
            total = total + jnp.sum(terms, axis=axes).astype(total.dtype)
        made.append(total)
    return values, made


def _in_front(t: Any, sizes: Any, flag: Any) -> Any:
    """t with a dimension of 1 for each batch that it does not have."""
    own = iter(np.shape(t))
    front = [next(own) if on else 1 for on in flag] if sizes else []
    return jnp.reshape(t, (*front, *own))


def _transposed(cts: Any, *arrays: Any, program: Program, sizes: Any, flags: Any) -> Any:
    asked = [k for k, a in enumerate(arrays) if ad.is_undefined_primal(a)]
    if not set(asked) <= program.linear():
        raise NotImplementedError(f"a program of {program!r} is not linear: it has no transpose")
    base = program.base if isinstance(program, (Pullback, Pushforward)) else program
    own = [
        ad.instantiate_zeros(ad.Zero(a.aval)) if ad.is_undefined_primal(a) else a for a in arrays
    ]
    own = own[: base.arrays]
    whole = (True,) * len(sizes)
    kinds = program.kinds(
        tuple(
            (tuple(a.aval.shape)[sum(f) :], np.dtype(a.aval.dtype))
            if ad.is_undefined_primal(a)
            else (tuple(a.shape)[sum(f) :], np.dtype(a.dtype))
            for a, f in zip(arrays, flags, strict=True)
        )
    )
    given = [
        jnp.zeros((*sizes, *shape), out_dtype(dtype)) if _is_zero(ct) else ct
        for ct, (shape, dtype) in zip(cts, kinds, strict=True)
    ]
    numbers = [k - base.arrays for k in asked]  # among the tangents or cotangents
    more = (*flags[: base.arrays], *(whole for _ in given))
    if isinstance(program, Pullback):
        values = _bound(Pushforward(base, program.by), [*own, *given], sizes, more)
        found = [values[j] for j in numbers]
    else:
        by = tuple(program.by[j] for j in numbers) if isinstance(program, Pushforward) else asked
        found = _bound(Pullback(base, tuple(by), len(given)), [*own, *given], sizes, more)
    made: list[Any] = [None] * len(arrays)
    for k, value in zip(asked, found, strict=True):
        axes = tuple(i for i, on in enumerate(flags[k]) if not on)
        total = jnp.sum(value, axis=axes) if axes else value
        made[k] = total.astype(arrays[k].aval.dtype)
    return made


ad.primitive_jvps[_run] = _jvp
ad.primitive_transposes[_run] = _transposed


# -- batches ---------------------------------------------------------------------------------------


def _batched(arrays: Any, dims: Any, *, program: Program, sizes: Any, flags: Any) -> Any:
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    moved = [a if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, dims, strict=True)]
    more = [(d is not None, *f) for d, f in zip(dims, flags, strict=True)]
    values = _bound(program, moved, (size, *sizes), more)
    return values, [0] * len(values)


batching.primitive_batchers[_run] = _batched
