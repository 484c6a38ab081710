"""Second derivatives by the points and numbers of a `Kernel`, as LazyArrays: `kernel_sums` has what
they are. Each is linear in the directions it is along and in the cotangent it is of, with another
of them for its adjoint; by the arrays once more, which is the third order, there is none."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._lazy.kinds import FORM, lazily, parameters
from .._lazy.leaves import lazy
from .._lazy.numpy_functions import diagonal
from . import inverses, kernel_sums, matrices
from .kernel_sums import Said
from .pieces import call
from .shapes import unbroadcast

_NAMES = ("x", "y", "variance", "length_scale", "alpha", "period", "offset")
_together: weakref.WeakValueDictionary[tuple[int, ...], Any] = weakref.WeakValueDictionary()
_directions: dict[int, Any] = {}
_leaves: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _leaf(a: Any) -> Any:
    """An array as a LazyArray, the same one each time."""
    found = None if is_lazy(a) else _leaves.get(id(a))
    if found is not None and found._args[0] is a:
        return found
    made = lazy(a)
    if made is not a:
        _leaves[id(a)] = made
    return made


def _said(values: dict[str, Any]) -> tuple[Said, tuple[Any, ...]]:
    function = values["function"]
    held = {k: values[k] for k in _NAMES if values.get(k) is not None}
    one_set = "y" not in held or held["y"] is held["x"]
    if one_set:
        held.pop("y", None)
    degree = 1 if function == "linear" else values.get("degree")
    said = Said(function, 3 if degree is None else int(degree), one_set, tuple(held))
    return said, tuple(_leaf(a) for a in held.values())


def _sizes(said: Said, arrays: tuple[Any, ...]) -> tuple[int, int, int]:
    held = dict(zip(said.given, arrays, strict=True))
    return kernel_sums.sizes(held["x"], held.get("y", held["x"]), held.get("length_scale"))


def _batch(said: Said, arrays: tuple[Any, ...], *rest: tuple[Any, int]) -> tuple[int, ...]:
    own = {"x": 2, "y": 2, "length_scale": 1}
    shapes = [
        tuple(a.shape[: a.ndim - min(a.ndim, own.get(name, 0))])
        for name, a in zip(said.given, arrays, strict=True)
    ]
    return np.broadcast_shapes(*shapes, *(tuple(a.shape[: a.ndim - k]) for a, k in rest))


def _made(f: Any, said: Said, arrays: tuple[Any, ...], *rest: Any) -> Any:
    """A node, found again where it is there."""
    key = (*map(id, (f, *arrays, *rest)), said.points)
    found = _together.get(key)
    if found is not None and found._more[1]["said"] == said:
        return found
    of_g = f is kernel_sums.cotangents
    own = [(a, 2 if of_g and k == 1 else 1) for k, a in enumerate(rest)]
    batch = _batch(said, arrays, *own)
    x, y = arrays[0], arrays[0 if said.one_set else 1]
    shape = rest[0].shape[-1:] if of_g else (x.shape[-2], y.shape[-2])
    dtype = np.result_type(*(a.dtype for a in arrays), *(a.dtype for a in rest))
    dtype = np.empty(0, dtype).real.dtype
    made = call(f, (*arrays, *rest), (*batch, *shape), dtype, said=said, batch=batch, dtype=dtype)
    _together[key] = made
    return made


def grown(y: Any, h: Any) -> Any:
    """Of a cotangent of a Kernel's points x or y, or of its numbers: what its matrix grows by when
    they grow by h, a matrix of the shape of these points, or one with the numbers on its diagonal.
    None for other kinds."""
    op, child = y._args[0], y._more[0].child
    if not is_lazy(op) and op._init is None:
        return None
    cls, args, kwargs = matrices.arguments(op)
    if matrices.head_of(cls) != "kernel":
        return None
    names = [name for name, _ in parameters(cls)]
    said, arrays = _said(dict(zip(names, args, strict=False)) | kwargs)
    at = (child, id(h), *map(id, arrays))
    if (found := _together.get(at)) is not None and found._more[1]["said"] == said:
        return found
    n = _sizes(said, arrays)
    batch = tuple(h.shape[:-2])
    flat = diagonal(h) if child == 2 else np.reshape(h, (*batch, math.prod(h.shape[-2:])))
    before, behind = sum(n[:child]), sum(n[child + 1 :])
    zeros = [np.zeros((*batch, k), h.dtype) for k in (before, behind)]
    along = np.concatenate([zeros[0], flat, zeros[1]], -1)
    made = _together[at] = _made(kernel_sums.tangent, said, arrays, along)
    _directions[id(made)] = h  # `at` names it
    weakref.finalize(made, _directions.pop, id(made), None)
    return made


def _first(said: Said, arrays: tuple[Any, ...], g: Any) -> Any:
    """The cotangents of all arrays, from that of the matrix: the kind's own."""
    more: dict[str, Any] = {"degree": said.degree} if said.function == "polynomial" else {}
    K = _core.Kernel(said.function, **dict(zip(said.given, arrays, strict=True)), **more)
    x, y = arrays[0], arrays[0 if said.one_set else 1]
    n = _sizes(said, arrays)
    batch = np.broadcast_shapes(tuple(K.shape[:-2]), tuple(g.shape[:-2]))
    dtype = np.empty(0, np.result_type(K.dtype, g.dtype)).real.dtype
    parts = []
    for child, points in enumerate((x, y)):
        shape = (*batch, *points.shape[-2:])
        part = lazily(
            matrices.Cotangent(child, (child + 1, 0)), (K, g), bytes((FORM, FORM)), shape, dtype
        )
        parts.append(np.reshape(part, (*batch, n[child])))
    if set(said.given) <= {"x", "y"}:
        parts.append(np.zeros((*batch, n[2]), dtype))
    else:
        shape = (*batch, n[2], n[2])
        key = (3, 0)
        parts.append(
            diagonal(lazily(matrices.Cotangent(2, key), (K, g), bytes((FORM, FORM)), shape, dtype))
        )
    return np.concatenate(parts, axis=-1)


def _part(said: Said, arrays: tuple[Any, ...], k: int, whole: Any) -> Any:
    """Of the cotangents of all arrays, that of one."""
    name, like, n = said.given[k], arrays[k], _sizes(said, arrays)
    at = n[0] + n[1]
    if name == "x":
        part = whole[..., : n[0]] + whole[..., n[0] : at] if said.one_set else whole[..., : n[0]]
    elif name == "y":
        part = whole[..., n[0] : at]
    elif name == "length_scale":
        part = whole[..., at + 1 : -1]
    else:
        part = whole[..., at if name == "variance" else -1]
    own = {"x": 2, "y": 2}.get(name, min(like.ndim, 1) if name == "length_scale" else 0)
    part = np.reshape(part, (*whole.shape[:-1], *like.shape[like.ndim - own :]))
    return unbroadcast(part, like)


def cotangent(y: Any, g: Any, k: int) -> Any:
    """The cotangent of argument k of a node of `kernel_sums`."""
    f, said = y._more[0], y._more[1]["said"]._replace(points=True)
    count = len(said.given)
    arrays, rest = y._args[:count], y._args[count:]
    if f is kernel_sums.tangent:
        if k < count:
            some = said._replace(points=said.given[k] in ("x", "y"))
            of = inverses.by_values(g) if arrays[0].shape[-1] > 1 else g
            return _part(said, arrays, k, _made(kernel_sums.cotangents, some, arrays, *rest, of))
        found = _first(said, arrays, g)
    elif k < count:
        raise NotImplementedError(
            "third derivatives by the points and numbers of a Kernel are not there"
            + errors.built(y)
        )
    elif f is kernel_sums.twice:
        found = _made(kernel_sums.cotangents, said, arrays, rest[count - k + 1], g)
    elif k == count:
        found = _made(kernel_sums.cotangents, said, arrays, g, rest[1])
    else:
        found = _made(kernel_sums.twice, said, arrays, rest[0], g)
    return unbroadcast(found, y._args[k])


FUNCTIONS = frozenset((kernel_sums.tangent, kernel_sums.twice, kernel_sums.cotangents))
