"""The values of programs, of tensors that are not wrapped: on the CPU by C, elsewhere by torch's
own functions."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch

from .._namespace import formulas as in_place
from .._programs import tapes
from .._programs.programs import Program
from .arrays import as_array, dtype_of, out_dtype
from .recorded import by_record

__all__ = ["avals", "conj", "is_elsewhere", "is_number", "kinds_of", "like", "mapped", "values"]


def avals(tensors: Any) -> tuple[Any, ...]:
    """Shapes and dtypes of tensors. A shape that a graph leaves open is settled by it."""
    return tuple([(tuple(map(int, x.shape)), dtype_of(x)) for x in tensors])


def kinds_of(program: Program, flags: Any, tensors: Any) -> Any:
    """(shape, dtype) of the values, of one element of a batch: each word of `flags` says which of
    the dimensions in front are batches."""
    given = [
        (tuple(map(int, x.shape[f.count("1") :] if f else x.shape)), dtype_of(x))
        for x, f in zip(tensors, flags, strict=True)
    ]
    return program.kinds(tuple(given))


def is_elsewhere(tensors: Any) -> bool:
    """Do tensors lie where C cannot compute? Several devices are refused where they are met."""
    return any(x.device.type != "cpu" for x in tensors)


def _in_place(program: Program, tensors: Any) -> list[Any]:
    """Of tensors on another device, by its own functions: nothing is moved, nothing waited for."""
    in_place.on_one_device(tensors)
    given = avals(tensors)
    with _without_autocast(tensors[0].device.type):
        return by_record(
            lambda held, x: _walked(program, program.kinds(given), held, x),
            program,
            given,
            [x.detach() for x in tensors],
        )


def _without_autocast(device: str) -> Any:
    """Within it products stay in the precision of their factors."""
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def _walked(program: Program, kinds: Any, held: list[Any], tensors: list[Any]) -> list[Any]:
    found = in_place.computed(program, tensors, held)
    made = []
    known = {x.untyped_storage().data_ptr() for x in tensors}
    for value, (shape, dtype) in zip(found, kinds, strict=True):
        due = out_dtype(dtype)
        value = value.real if value.is_complex() and not due.is_complex else value
        value = value.to(due).expand(shape).contiguous()
        made.append(value.clone() if value.untyped_storage().data_ptr() in known else value)
    return made


def values(program: Program, tensors: Any) -> list[Any]:
    """Of plain tensors."""
    if is_elsewhere(tensors):
        return _in_place(program, tensors)
    held = [as_array(x) for x in tensors]
    kinds = program.kinds(avals(tensors))
    found = tapes.values(program, held, kinds)
    return [torch.from_numpy(a if a.flags.writeable else a.copy()) for a in found]


def mapped(program: Program, sizes: Any, flags: Any, tensors: Any) -> list[Any]:
    """For each element of batches of these sizes, in front of the tensors whose words say so."""
    kinds = kinds_of(program, flags, tensors)
    if not is_elsewhere(tensors):
        outs = [np.empty((*sizes, *shape), dtype) for shape, dtype in kinds]
        known = [[on == "1" for on in f] for f in flags]
        tapes.mapped(program, sizes, known, [as_array(x) for x in tensors], kinds, outs)
        return [torch.from_numpy(a) for a in outs]
    device = tensors[0].device
    made = [
        torch.empty((*sizes, *shape), dtype=out_dtype(dtype), device=device)
        for shape, dtype in kinds
    ]
    for at in np.ndindex(sizes):
        one = [_element(x, at, f) for x, f in zip(tensors, flags, strict=True)]
        for whole, value in zip(made, values(program, one), strict=True):
            whole[at] = value
    return made


def _element(x: Any, at: Any, flag: str) -> Any:
    return x[tuple(k for k, on in zip(at, flag, strict=True) if on == "1")]


def is_number(kind: Any) -> bool:
    shape, dtype = kind
    return bool(shape == () and dtype.kind == "f")


def conj(x: Any) -> Any:
    return x.conj().resolve_conj() if x.is_complex() else x


def like(x: Any, tensor: Any) -> Any:
    """A cotangent in the dtype of what it is the cotangent of."""
    if x.is_complex() and not tensor.is_complex():
        x = x.real
    return x if x.dtype == tensor.dtype else x.to(tensor.dtype)
