"""The autograd Function that runs a program: one call, whatever the program does.

Its backward is a program again, run by the same Function, so that there are derivatives of any
order; so is its forward-mode derivative. Of real numbers (logdet, ...) value and gradient come by
one plan. Batches of `torch.func.vmap` are a loop over programs without them, from C where these
have left a tape.

PyTorch's convention is ours; programs speak JAX's, in which cotangents are conjugate."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from .._namespace import formulas as in_place
from .._programs import tapes
from .._programs.programs import Program, Pullback, Pushforward, WithGradients
from .arrays import as_array, dtype_of, out_dtype

__all__ = ["run"]


def _avals(tensors: Any) -> tuple[Any, ...]:
    return tuple((tuple(x.shape), dtype_of(x)) for x in tensors)


def _is_elsewhere(tensors: Any) -> bool:
    """Do tensors lie where C cannot compute? Several devices are refused where they are met."""
    return any(x.device.type != "cpu" for x in tensors)


def _in_place(program: Program, tensors: Any) -> list[Any]:
    """Of tensors on another device, by its own functions: nothing is moved, nothing waited for."""
    kinds = program.kinds(_avals(tensors))
    found = in_place.computed(program, [x.detach() for x in tensors])
    made = []
    known = {x.untyped_storage().data_ptr() for x in tensors}
    for value, (shape, dtype) in zip(found, kinds, strict=True):
        due = out_dtype(dtype)
        value = value.real if value.is_complex() and not due.is_complex else value
        value = value.to(due).expand(shape).contiguous()
        made.append(value.clone() if value.untyped_storage().data_ptr() in known else value)
    return made


def _values(program: Program, tensors: Any) -> list[Any]:
    """Of plain tensors."""
    if _is_elsewhere(tensors):
        return _in_place(program, tensors)
    held = [as_array(x) for x in tensors]
    kinds = program.kinds(_avals(tensors))
    found = tapes.values(program, held, kinds)
    return [torch.from_numpy(a if a.flags.writeable else a.copy()) for a in found]


def _is_number(kind: Any) -> bool:
    shape, dtype = kind
    return bool(shape == () and dtype.kind == "f")


def _conj(x: Any) -> Any:
    return x.conj().resolve_conj() if x.is_complex() else x


def _like(x: Any, tensor: Any) -> Any:
    """A cotangent in the dtype of what it is the cotangent of."""
    if x.is_complex() and not tensor.is_complex():
        x = x.real
    return x if x.dtype == tensor.dtype else x.to(tensor.dtype)


def _is_bare(x: Any) -> bool:
    """Is x a tensor by which nothing is differentiated, in no transform?"""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(x)
    return not (x.requires_grad or wrapped or forward_ad._current_level >= 0)


def _mapped(program: Program, size: int, dims: Any, tensors: Any) -> list[Any]:
    """The values for each element of a batch, along a dimension of each tensor or none."""
    avals = tuple(
        (tuple(n for k, n in enumerate(x.shape) if d is None or k != d % x.ndim), dtype_of(x))
        for x, d in zip(tensors, dims, strict=True)
    )
    held = [
        as_array(x) if d is None else np.moveaxis(as_array(x), d, 0)
        for x, d in zip(tensors, dims, strict=True)
    ]
    kinds = program.kinds(avals)
    made = [np.empty((size, *shape), dtype) for shape, dtype in kinds]
    tapes.mapped(program, (size,), [(d is not None,) for d in dims], held, kinds, made)
    return [torch.from_numpy(a) for a in made]


_Function: Any = torch.autograd.Function


def _computed(program: Program, by: Any, tensors: Any) -> Any:
    return tuple(_values(WithGradients(program, by) if by else program, tensors))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    """What the derivatives need."""
    program, by, *tensors = inputs
    ctx.program, ctx.by, ctx.count = program, by, len(tensors)
    ctx.values = len(output) // (1 + len(by))
    ctx.save_for_backward(*tensors, *output[ctx.values :])
    ctx.save_for_forward(*tensors)
    ctx.mark_non_differentiable(*output[ctx.values :])
    ctx.set_materialize_grads(False)


class _Derived(_Function):  # type: ignore[misc]
    """(program, gradients asked for, tensors) -> (values, gradients of the values)."""

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = ctx.saved_tensors
        tensors, gradients = saved[: ctx.count], saved[ctx.count :]
        given = cotangents[: ctx.values]
        live = tuple(k for k in range(ctx.count) if ctx.needs_input_grad[2 + k])
        made: list[Any] = [None] * ctx.count
        if not live or all(g is None for g in given):
            return (None, None, *made)
        if ctx.by and not torch.is_grad_enabled():
            for j, k in enumerate(ctx.by):
                terms = [
                    g * gradients[i * len(ctx.by) + j] for i, g in enumerate(given) if g is not None
                ]
                made[k] = _like(sum(terms[1:], terms[0]), tensors[k])
            return (None, None, *made)
        kinds = ctx.program.kinds(_avals(tensors))
        whole = [
            torch.zeros(shape, dtype=out_dtype(dtype), device=tensors[0].device)
            if g is None
            else _conj(g)
            for g, (shape, dtype) in zip(given, kinds, strict=True)
        ]
        found = _bound(Pullback(ctx.program, live, len(whole)), [*tensors, *whole])
        for k, x in zip(live, found, strict=True):
            made[k] = _like(_conj(x), tensors[k])
        return (None, None, *made)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        given = tangents[2:]
        live = tuple(k for k, t in enumerate(given) if t is not None)
        found = _bound(
            Pushforward(ctx.program, live), [*ctx.saved_tensors, *(given[k] for k in live)]
        )
        return (*found, *(None for _ in range(ctx.values * len(ctx.by))))


class _Plain(_Derived):
    """Outside of torch.func: a Function with `setup_context` binds its arguments by name at each
    call, which takes longer than a small program."""

    @staticmethod
    def forward(ctx: Any, program: Program, by: Any, *tensors: Any) -> Any:
        output = _computed(program, by, tensors)
        _keep(ctx, (program, by, *tensors), output)
        return output


class _Run(_Derived):
    """Within torch.func's transforms."""

    @staticmethod
    def forward(program: Program, by: Any, *tensors: Any) -> Any:
        return _computed(program, by, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _keep(ctx, inputs, output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, program: Program, by: Any, *tensors: Any) -> Any:
        dims = in_dims[2:]
        if not _is_elsewhere(tensors) and all(map(_is_bare, tensors)):
            whole = WithGradients(program, by) if by else program
            values = tuple(_mapped(whole, info.batch_size, dims, tensors))
            return values, (0,) * len(values)
        made = []
        for at in range(info.batch_size):
            one = [x if d is None else x.select(d, at) for x, d in zip(tensors, dims, strict=True)]
            made.append(_Run.apply(program, by, *one))
        values = tuple(torch.stack(x) for x in zip(*made, strict=True))
        return values, (0,) * len(values)


_is_transformed: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def _bound(program: Program, tensors: Any) -> list[Any]:
    """The values, with derivatives."""
    by: tuple[int, ...] = ()
    if torch.is_grad_enabled() and not isinstance(program, (Pullback, Pushforward)):
        asked = tuple(k for k, x in enumerate(tensors) if x.requires_grad)
        if asked and all(map(_is_number, program.kinds(_avals(tensors)))):
            by = asked
    function = _Run if _is_transformed() else _Plain
    found: Any = function.apply(program, by, *tensors)
    return list(found[: len(found) // (1 + len(by))])


def _plain(x: Any) -> bool:
    """Has x numbers of its own? Those of FakeTensors and kin have none."""
    return type(x) in (torch.Tensor, torch.nn.Parameter)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def run(program: Program, tensors: Any) -> list[Any]:
    """The values of a program, of tensors."""
    for x in tensors:
        if not _plain(x):
            raise TypeError(
                f"pylinop.torch takes plain tensors, not a {type(x).__name__} of shape "
                f"{tuple(x.shape)}"
            )
    return _bound(program, list(tensors))
