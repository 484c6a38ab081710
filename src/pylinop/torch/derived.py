"""The derivatives of a program's values, which are programs again: what the autograd Functions of
function.py and compiled.py do. A Function keeps on its context the program, the arrays by which
gradients came with the values (`by`), the sizes of its batches, and for each tensor a word that
says which of them it has.

PyTorch's convention is ours; programs speak JAX's, in which cotangents are conjugate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._programs.programs import Program, Pullback, Pushforward, WithGradients
from .arrays import out_dtype
from .values import conj, is_number, kinds_of, like

__all__ = [
    "asking",
    "backward",
    "by_gradients",
    "gradients_with",
    "has_gradients",
    "jvp",
    "keep",
    "keep_all",
]

Bound = Callable[[Program, Any, Any, Any], list[Any]]


def has_gradients(program: Program, kinds: Any) -> bool:
    """Do gradients come with the values? Of real numbers they do, unless these are derivatives."""
    if isinstance(program, (Pullback, Pushforward, WithGradients)):
        return False
    return all(map(is_number, kinds))


def asking(tensors: Any) -> tuple[int, ...]:
    """The tensors that ask for gradients."""
    if not torch.is_grad_enabled():
        return ()
    return tuple([k for k, x in enumerate(tensors) if x.requires_grad])


def gradients_with(program: Program, flags: Any, tensors: Any) -> tuple[int, ...]:
    """By which tensors gradients are to come with the values: by all that ask."""
    asked = asking(tensors)
    return asked if asked and has_gradients(program, kinds_of(program, flags, tensors)) else ()


def keep(ctx: Any, program: Program, tensors: Any, values: Any, gradients: Any) -> Any:
    """What the derivatives of a Function without batches need. Gives its output."""
    ctx.program, ctx.by, ctx.sizes, ctx.flags = program, (), (), ("",) * len(tensors)
    ctx.values = len(values)
    ctx.save_for_backward(*tensors, *gradients)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(False)
    return tuple(values)


def keep_all(
    ctx: Any, program: Program, by: Any, sizes: Any, flags: Any, tensors: Any, out: Any
) -> Any:
    """Likewise of one with batches, whose gradients are outputs behind the values."""
    values = len(out) // (1 + len(by))
    keep(ctx, program, tensors, out[:values], out[values:])
    ctx.by, ctx.sizes, ctx.flags = by, sizes, flags
    return tuple(out)


def by_gradients(ctx: Any, asked: Any, cotangents: Any) -> list[Any]:
    """The cotangents of the tensors by the gradients, in `ctx.known`, that came with the values;
    nothing is recorded."""
    count, by = len(ctx.flags), ctx.known
    gradients = ctx.saved_tensors[count:]
    made: list[Any] = [None] * count
    for j, k in enumerate(by):
        if not asked[k]:
            continue
        for g, x in zip(cotangents, gradients[j :: len(by)], strict=True):
            if g is not None:
                term = g * x
                term = term if term.dtype is x.dtype else term.to(x.dtype)
                made[k] = term if made[k] is None else made[k] + term
    return made


def _without(x: Any, flag: str, tensor: Any) -> Any:
    """The cotangent of a tensor: the sum over the batches that it does not have."""
    absent = [k for k, on in enumerate(flag) if on == "0"]
    return like(x.sum(absent) if absent else x, tensor)


def backward(ctx: Any, bound: Bound, asked: Any, cotangents: Any) -> list[Any]:
    """The cotangents of the tensors; `asked` says for which. Gradients that came with the values
    are outputs of the same node, so that what is made of them has derivatives."""
    count, sizes = len(ctx.flags), ctx.sizes
    saved = ctx.saved_tensors
    tensors, gradients = saved[:count], saved[count:]
    live = tuple(k for k in range(count) if asked[k])
    made: list[Any] = [None] * count
    if not live:
        return made
    if not ctx.by or any(g is not None for g in cotangents[ctx.values :]):
        given = [None if ctx.by and k < ctx.values else g for k, g in enumerate(cotangents)]
        program = WithGradients(ctx.program, ctx.by) if ctx.by else ctx.program
        found = _pulled_back(ctx, program, bound, live, tensors, given)
        for k, x in zip(live, found, strict=True):
            made[k] = x
    for j, k in enumerate(ctx.by):
        for g, x in zip(cotangents, gradients[j :: len(ctx.by)], strict=False):
            if g is not None:
                term = (g.reshape(*sizes, *(1,) * (x.ndim - len(sizes))) if sizes else g) * x
                term = _without(term, ctx.flags[k], tensors[k])
                made[k] = term if made[k] is None else made[k] + term
    return made


def _pulled_back(
    ctx: Any, program: Program, bound: Bound, live: Any, tensors: Any, given: Any
) -> list[Any]:
    """By the program's pullback."""
    sizes = ctx.sizes
    if all(g is None for g in given):
        return [None] * len(live)
    whole = [
        torch.zeros((*sizes, *shape), dtype=out_dtype(dtype), device=tensors[0].device)
        if g is None
        else conj(g)
        for g, (shape, dtype) in zip(given, kinds_of(program, ctx.flags, tensors), strict=True)
    ]
    flags = (*ctx.flags, *("1" * len(sizes) for _ in whole))
    found = bound(Pullback(program, live, len(whole)), sizes, flags, [*tensors, *whole])
    return [_without(conj(x), ctx.flags[k], tensors[k]) for k, x in zip(live, found, strict=True)]


def jvp(ctx: Any, bound: Bound, tangents: Any) -> tuple[Any, ...]:
    """The tangents of the values and the gradients, of those of the tensors."""
    live = tuple(k for k, t in enumerate(tangents) if t is not None)
    flags = (*ctx.flags, *(ctx.flags[k] for k in live))
    tensors = [*ctx.saved_tensors[: len(ctx.flags)], *(tangents[k] for k in live)]
    program = WithGradients(ctx.program, ctx.by) if ctx.by else ctx.program
    return tuple(bound(Pushforward(program, live), ctx.sizes, flags, tensors))
