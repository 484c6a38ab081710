"""How a program runs on tensors: one call, whatever the program does.

Outside of transforms and graphs it is an autograd Function, whose backward is a program again, run
by the same Function, so that there are derivatives of any order; so is its forward-mode derivative.
Of real numbers (logdet, ...) value and gradient come by one plan. Within transforms of `torch.func`
and in graphs it is an operator of the dispatcher (compiled.py)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad

from .. import _core
from .._programs import tapes
from .._programs.formulas import Parts
from .._programs.programs import Formula, Program, WithGradients
from . import compiled, derived
from .arrays import numpys
from .values import avals, conj
from .values import values as _values

__all__ = ["kind_of", "run"]

_Function: Any = torch.autograd.Function
_C: Any = torch._C
_PROXY = _C._TorchDispatchModeKey.PROXY
_is_batch = _C._functorch.is_legacy_batchedtensor


class _How(NamedTuple):
    """What a call gives: `values` values and, of each, the gradients by the tensors in `by`, all of
    them by the program `whole`, in these shapes and dtypes."""

    whole: Program
    by: tuple[int, ...]
    values: int
    kinds: Any


@functools.lru_cache(maxsize=2048)
def _how(program: Program, given: Any, asked: tuple[int, ...]) -> _How:
    """Of tensors of these shapes and dtypes, of which some ask for gradients."""
    avals = tuple((tuple(shape), numpys(dtype, shape)) for shape, dtype in given)
    kinds = program.kinds(avals)
    by = asked if asked and derived.has_gradients(program, kinds) else ()
    whole = WithGradients(program, by) if by else program
    return _How(whole, by, len(kinds), whole.kinds(avals) if by else kinds)


class _Plain(_Function):  # type: ignore[misc]
    """(program, how, the tensors' arrays or None, tensors) -> values; gradients that came with them
    are kept. Without `setup_context`: one binds its arguments by name at each call, which takes
    longer than a small program."""

    @staticmethod
    def forward(ctx: Any, program: Program, how: _How, held: Any, *tensors: Any) -> Any:
        found = _computed(how, held, tensors)
        ctx.known = how.by
        return derived.keep(ctx, program, tensors, found[: how.values], found[how.values :])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        asked = ctx.needs_input_grad[3:]
        if ctx.known and not torch.is_grad_enabled() and forward_ad._current_level < 0:
            return None, None, None, *derived.by_gradients(ctx, asked, cotangents)
        bound = functools.partial(_known, ctx, cotangents) if ctx.known else _bound
        return None, None, None, *derived.backward(ctx, bound, asked, cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return derived.jvp(ctx, _bound, tangents[3:])


class _Given(_Plain):
    """A program's values, where they are known."""

    @staticmethod
    def forward(ctx: Any, program: Program, values: Any, unused: None, *tensors: Any) -> Any:
        ctx.known = ()
        return derived.keep(ctx, program, tensors, values, ())


# Without looks for dead stand-ins of torch.func, which `_core._foreign_all` has had.
_applied: Any = super(_Function, _Plain).apply


def _computed(how: _How, held: Any, tensors: Any) -> list[Any]:
    """Values and gradients."""
    found = None if held is None else tapes.quick(how.whole, held, how.kinds)
    return _values(how.whole, tensors) if found is None else [torch.from_numpy(a) for a in found]


def _transformed() -> bool:
    """Is the call to be seen by a transform, or to stand in a graph? (That of `torch.jit.trace`
    would have the values as constants.)"""
    return bool(
        _C._are_functorch_transforms_active()
        or _C._get_dispatch_mode(_PROXY) is not None
        or _C._get_tracing_state() is not None
    )


def _bound(program: Program, sizes: Any, flags: Any, tensors: Any) -> list[Any]:
    """The values, with derivatives; there are no batches."""
    if _transformed():
        return compiled.called(program, tensors)
    held = _core._foreign_all(tensors)
    if held is None and any(map(_is_batch, tensors)):
        return compiled.called_of_batches(program, tensors)
    asked = derived.asking(tensors)
    how = _how(program, tuple([(x.shape, x.dtype) for x in tensors]), asked)
    if held is None:
        return list(_Plain.apply(program, how, None, *tensors))
    if not asked:  # nor are there tangents
        return _computed(how, held, tensors)
    return list(_applied(program, how, held, *tensors))


def _known(
    ctx: Any, cotangents: Any, program: Program, sizes: Any, flags: Any, tensors: Any
) -> Any:
    """The pullback's values, of gradients that are known: its derivatives are the program's."""
    if _transformed() or any(map(_is_batch, tensors)):
        return _bound(program, sizes, flags, tensors)
    with torch.no_grad(), forward_ad._set_fwd_grad_enabled(False):
        whole = derived.by_gradients(ctx, [True] * len(ctx.flags), cotangents)
        values = [conj(whole[k]) for k in program.parts[1]]
    return list(_Given.apply(program, values, None, *tensors))


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
    """The values of a program, of tensors; in a graph those of a formula's parts."""
    if torch.compiler.is_dynamo_compiling():
        return compiled.in_graph(program, tensors)
    if all(map(_plain, tensors)):
        return _bound(program, (), (), list(tensors))
    for x in tensors:
        if not (_plain(x) or _traced(x)):
            raise TypeError(
                f"pylinop.torch takes plain tensors, not a {type(x).__name__} of shape "
                f"{tuple(x.shape)}"
            )
    return compiled.called(program, list(tensors))
