"""How a program runs on tensors: one call, whatever the program does.

Outside of transforms and graphs it is an autograd Function, whose backward is a program again, run
by the same Function, so that there are derivatives of any order; so is its forward-mode derivative.
Of real numbers (logdet, ...) value and gradient come by one plan. Within transforms of `torch.func`
and in graphs it is an operator of the dispatcher (compiled.py)."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from .._programs.formulas import Parts
from .._programs.programs import Formula, Program, WithGradients
from . import compiled, derived
from .values import avals
from .values import values as _values

__all__ = ["kind_of", "run"]

_Function: Any = torch.autograd.Function
_C: Any = torch._C
_PROXY = _C._TorchDispatchModeKey.PROXY


class _Plain(_Function):  # type: ignore[misc]
    """(program, gradients asked for, tensors) -> (values, gradients of the values). Without
    `setup_context`: one binds its arguments by name at each call, which takes longer than a small
    program."""

    @staticmethod
    def forward(ctx: Any, program: Program, by: Any, *tensors: Any) -> Any:
        found = _values(WithGradients(program, by) if by else program, tensors)
        return derived.keep(ctx, program, by, (), ("",) * len(tensors), tensors, found)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        asked = ctx.needs_input_grad[2:]
        return None, None, *derived.backward(ctx, _bound, asked, cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return derived.jvp(ctx, _bound, tangents[2:])


def _bound(program: Program, sizes: Any, flags: Any, tensors: Any) -> list[Any]:
    """The values, with derivatives; there are no batches."""
    if _C._are_functorch_transforms_active() or _C._get_dispatch_mode(_PROXY) is not None:
        return compiled.called(program, tensors)
    by = derived.gradients_with(program, flags, tensors)
    found: Any = _Plain.apply(program, by, *tensors)
    return list(found[: len(found) // (1 + len(by))])


def _plain(x: Any) -> bool:
    """Has x numbers of its own? Those of FakeTensors and kin have none."""
    return type(x) in (torch.Tensor, torch.nn.Parameter)


def _traced(x: Any) -> bool:
    """Does x stand for a tensor in a graph?"""
    return isinstance(x, (FakeTensor, FunctionalTensor))


def kind_of(parts: Parts, tensors: Any) -> Any:
    """Shape and dtype of the first value of a formula, of tensors."""
    if torch.compiler.is_dynamo_compiling():
        return compiled.kind_in_graph(parts, tensors)
    return Formula(parts).kinds(avals(tensors))[0]


def run(program: Any, tensors: Any) -> Any:
    """The values of a program, of tensors; in a graph that of a formula."""
    if torch.compiler.is_dynamo_compiling():
        return compiled.in_graph(program.flat, tensors)
    if all(map(_plain, tensors)):
        return _bound(program, (), ("",) * len(tensors), list(tensors))
    for x in tensors:
        if not (_plain(x) or _traced(x)):
            raise TypeError(
                f"pylinop.torch takes plain tensors, not a {type(x).__name__} of shape "
                f"{tuple(x.shape)}"
            )
    return compiled.called(program, list(tensors))
