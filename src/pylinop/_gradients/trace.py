"""One call of a function on watched arguments: what derivatives of functions are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.checks import is_lazy
from .._base.dlpack import as_array
from .._lazy.leaves import lazy
from .._lazy.program import evaluate
from . import nested, operands, trees
from .watched import release, watched

_Function = Callable[..., Any]


class Trace:
    """One call of a function on watched arguments."""

    def __init__(self, f: _Function, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> None:
        __tracebackhide__ = True
        self.name = getattr(f, "__name__", type(f).__name__)
        several = isinstance(argnums, (tuple, list))
        self.numbers = [
            _number(k, len(args), self.name) for k in (argnums if several else [argnums])
        ]
        if len(set(self.numbers)) < len(self.numbers):
            raise ValueError(f"argnums={argnums} names an argument of {self.name} twice")
        self.parameters: list[Any] = []
        self.structures = []
        held = list(args)
        for k in self.numbers:
            parts: list[Any] = []
            structure = trees.flatten(args[k], parts)
            start = len(self.parameters)
            self.parameters += [_parameter(x, f"{self.name}, argument {k}") for x in parts]
            self.structures.append((structure, start))
            held[k] = trees.filled(structure, [p.lazy for p in self.parameters[start:]])
        self.several = several
        self.is_nested = any(isinstance(p, nested.OfLazy) for p in self.parameters)
        try:
            made = f(*held, **kwargs)
        finally:
            for p in self.parameters:
                p.release()
        self.aux = None
        if has_aux:
            made, self.aux = made
        self.value = made

    def number(self) -> Any:
        """The value, which has to be one number."""
        value = self.lazy_value()
        if value.shape != ():
            raise ValueError(
                f"{self.name} gave an array of shape {value.shape}; a gradient is of one real "
                "number: sum it up, or use pl.vjp or pl.jacobian" + errors.built(value)
            )
        if value.dtype.kind == "c":
            raise TypeError(
                f"{self.name} gave a complex number; a gradient is of a real one: take .real or "
                "np.abs" + errors.built(value)
            )
        return value

    def lazy_value(self) -> Any:
        if not is_lazy(self.value):
            raise TypeError(
                f"{self.name} gave a {type(self.value).__name__}, which does not depend on its "
                "arguments as a LazyArray does: the gradient would be lost"
            )
        return self.value

    def wanted(self) -> dict[int, Any]:
        return {id(x): x for p in self.parameters for x in p.wanted()}

    def gathered(self, found: dict[int, Any]) -> list[list[Any]]:
        """For each parameter the LazyArrays of its gradient."""
        return [p.gradient(found) for p in self.parameters]

    def converted(self, arrays: list[Any]) -> list[Any]:
        """Gradients by arrays as they are handed out: numbers as numbers."""
        return [p.finished([a]) for p, a in zip(self.parameters, arrays, strict=True)]

    def shaped(self, values: list[Any]) -> Any:
        """Gradients, one a parameter, as the arguments were nested."""
        made = tuple(
            trees.filled(structure, values[start:]) for structure, start in self.structures
        )
        return made if self.several else made[0]


def _parameter(x: Any, name: str) -> Any:
    if is_lazy(x) and nested.is_watched(x):
        if x.dtype.kind not in "fc":
            raise TypeError(f"{name}: a derivative by a LazyArray of dtype {x.dtype}")
        return nested.OfLazy(x)
    made = trees.as_parameter(x, name)
    return OfOperator(made) if isinstance(made, _core.Operator) else OfArray(made)


def _number(k: Any, n: int, name: str) -> int:
    if not hasattr(k, "__index__"):
        raise TypeError(f"argnums={k!r}: the numbers of arguments are integers")
    at = k.__index__() + (n if k < 0 else 0)
    if not 0 <= at < n:
        raise ValueError(f"argnums={k}: {name} was called with {n} arguments")
    return int(at)


class OfArray:
    """An array that is a parameter."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.lazy = watched(array)

    def release(self) -> None:
        release(self.lazy)

    def wanted(self) -> list[Any]:
        return [self.lazy]

    def tangents(self, t: Any) -> list[Any]:
        if isinstance(t, _core.Operator):
            raise TypeError(f"a tangent of an array is an array, not a {type(t).__name__}")
        if np.shape(t) != self.array.shape:
            raise ValueError(f"a tangent of shape {np.shape(t)} for an array of {self.array.shape}")
        dtype = t.dtype if hasattr(t, "dtype") else np.asarray(t).dtype
        if dtype.kind == "c" and self.array.dtype.kind != "c":
            raise TypeError(f"a tangent of dtype {dtype} for an array of {self.array.dtype}")
        return [as_array(t)]

    def gradient(self, found: dict[int, Any]) -> list[Any]:
        g = found.get(id(self.lazy))
        return [lazy(np.zeros_like(self.array)) if g is None else g]

    def finished(self, values: list[Any]) -> Any:
        value = values[0]
        return self.array.dtype.type(value) if value.ndim == 0 else value.astype(self.array.dtype)


class OfOperator:
    """An operator that is a parameter: its arrays are. The function gets it again, of arrays of its
    own: what it holds in two places, what two arguments hold, or the function does too, has a
    cotangent for each."""

    def __init__(self, op: Any) -> None:
        self.op, self.arrays = operands.own(op)
        self.lazy = lazy(self.op)

    def release(self) -> None:
        pass

    def wanted(self) -> list[Any]:
        return self.arrays

    def tangents(self, t: Any) -> list[Any]:
        """Its arrays', of an operator of the same kind."""
        alike = type(t) is type(self.op) and t.shape == self.op.shape
        held = operands.own(t)[1] if alike else []
        shapes = [tuple(a.shape) for a in self.arrays]
        if not alike or [tuple(a.shape) for a in held] != shapes:
            shown = f"{type(t).__name__} {getattr(t, 'shape', ())}"
            raise ValueError(
                f"a tangent of a {type(self.op).__name__} {self.op.shape} is one too, with arrays "
                f"of shapes {shapes}: got {shown}"
            )
        return [np.array(a) for a in held]  # copies: they may be the arrays that are wanted

    def gradient(self, found: dict[int, Any]) -> list[Any]:
        return [lazy(np.zeros_like(a)) if id(a) not in found else found[id(a)] for a in self.arrays]

    def finished(self, values: list[Any]) -> Any:
        return operands.filled(self.op, values)


def finished(
    trace: Trace, extra: list[Any], groups: list[list[Any]]
) -> tuple[list[Any], list[Any]]:
    """The values of LazyArrays and of gradients, computed by one plan. Where results are NaN for
    want of a definite matrix, so are the gradients of such a value."""
    flat = [g for group in groups for g in group]
    if trace.is_nested:  # all as LazyArrays
        if len(flat) != len(groups) or any(isinstance(p, OfOperator) for p in trace.parameters):
            raise NotImplementedError(
                f"{trace.name}: derivatives by operators within a function that is differentiated"
            )
        return extra, flat
    asked = list(extra)
    by_nan = config.get("not_definite") == "nan"
    if by_nan and not extra and trace.value.ndim == 0:
        asked.append(trace.value)
    values = evaluate(*asked, *flat) if len(asked) + len(flat) > 1 else (evaluate(*asked, *flat),)
    head, rest = list(values[: len(asked)]), list(values[len(asked) :])
    if by_nan and any(np.isnan(x).any() for x in head):
        rest = [np.full(x.shape, np.nan, x.dtype) for x in rest]
    made = []
    for p, group in zip(trace.parameters, groups, strict=True):
        own, rest = rest[: len(group)], rest[len(group) :]
        made.append(p.finished(own))
    return head[: len(extra)], made
