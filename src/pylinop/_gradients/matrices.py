"""Cotangents of an operator's parameters and operands, made by the core from the operator's own
cotangent when it is needed."""

from __future__ import annotations

import functools
import math
import weakref
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import fixed
from .._base.kind_flags import heads
from .._lazy.build import inverse, scaled, view
from .._lazy.kinds import FORM, filled, lazily, parameters
from .._lazy.leaves import lazy
from .._lazy.numpy_functions import diagonal
from . import slices
from .pieces import Through, real_of
from .reflections import BY_FORMULA

_RAVELED = heads("raveled")
TOGETHER = (-1, 0)
_COMPOSITES = ("sum", "prod", "scaled", "view", "inverse", "power", "part")


class Slot(NamedTuple):
    """Where a parameter stands among the children of a kind's node."""

    children: tuple[int, ...]
    start: int = 0  # of a parameter that is a part of its child
    size: int | None = None  # and of that child
    mirrored: bool = False  # the second child is the parameter's conjugate
    first: bool = True  # is the first number read?
    raveled: bool = False  # the child is a vector, whatever the parameter's shape


class Cotangent:
    """The cotangent of one child of an operator, of the operator and its own cotangent. `key` says
    which parameter that is: its number in the kind's table, and in a list of operators; TOGETHER
    for several that are found together, raveled, one after the other."""

    def __init__(self, child: int, key: Any) -> None:
        self.child, self.key = child, key
        self.__name__ = "cotangent"

    def __call__(self, op: Any, g: Any) -> Any:
        found = _core._cotangent(op, g, self.child)
        if found is NotImplemented and (op.ndim > 2 or g.ndim > 2):
            found = self._one_by_one(op, g)
        if found is NotImplemented:
            raise NotImplementedError(
                f"{type(op).__name__} {op.shape} has no derivative by its operand {self.child} yet"
            )
        return found

    def _one_by_one(self, op: Any, g: Any) -> Any:
        """The cotangents of the elements of a stack, each computed, as one array."""
        batch = np.broadcast_shapes(op.shape[:-2], g.shape[:-2])
        parts = []
        for at in np.ndindex(*batch):
            one, other = (
                x[
                    tuple(
                        0 if d == 1 else k for k, d in zip(at[-x.ndim + 2 :], x.shape, strict=False)
                    )
                ]
                if x.ndim > 2
                else x
                for x in (op, g)
            )
            part = _core._cotangent(one, other, self.child)
            if part is NotImplemented:
                return part
            parts.append(part)
        if not parts:
            return NotImplemented
        is_diagonal = all(isinstance(x, _core.Diag) for x in parts)
        arrays = [x.diagonal() if is_diagonal else x.toarray() for x in parts]
        whole = np.stack(arrays).reshape(*batch, *arrays[0].shape)
        return _core.Diag(whole) if is_diagonal else _core.Dense(whole)

    def tangent_of(self, y: Any, h: Any) -> tuple[Any, Any]:
        """The cotangent h of y, which this made, in the shape of the parameter, and the operator's
        tangent."""
        part = _as_parameter(y, h)
        return part, lazy(tangent(y._args[0], self.key, part, self.child))

    def __reduce__(self) -> Any:
        return Cotangent, (self.child, self.key)


@functools.cache
def _differentiable() -> frozenset[str]:
    return frozenset(row["head"] for row in _core.kinds() if row["differentiable"])


@functools.cache
def head_of(cls: Any) -> str:
    rows: dict[str, str] = {row["name"]: row["head"] for row in _core.kinds()}
    return next(rows[c.__name__] for c in cls.__mro__ if c.__name__ in rows)


def slot_of(cls: Any, number: int, place: int, given: dict[int, Any]) -> Slot:
    """The slot of a parameter; `given` holds the parameters by number, None where there is none."""
    head, rows = head_of(cls), parameters(cls)
    if head not in _differentiable():
        raise NotImplementedError(f"{cls.__name__} has no derivatives by its parameters yet")
    role = rows[number][1]
    if role in ("operators", "blocks"):
        return Slot((place,))
    at = sum(given.get(k) is not None for k in range(number) if rows[k][1] in ("array", "operator"))
    if head == "lowrank":
        return Slot((0, 1) if number == 0 and given.get(1) is None else (number,))
    if head == "toeplitz":
        return (
            Slot((0, 1), mirrored=True)
            if given.get(1) is None
            else Slot((number,), first=not number)
        )
    if head == "hankel":
        c, r = given[0], given.get(1)
        all_of_them = c.shape[-1] + (c if r is None else r).shape[-1] - 1
        return Slot((0,), (c.shape[-1] - 1) * number, all_of_them, first=not number)
    if head == "sparse":
        return Slot((0,))
    if head == "kernel":
        return _kernel_slot(number, given)
    if head == "lowrankupdate":
        return Slot((1, 2) if number == 1 and given.get(2) is None else (number,))
    return Slot((at,), raveled=head in _RAVELED)


def _kernel_slot(number: int, given: dict[int, Any]) -> Slot:
    """Of a Kernel(function, x, y, variance, length_scale, alpha, period, degree, offset): points,
    or a part of the vector of variance, lengths and the one more."""
    if number < 3:
        return Slot((0, 1) if number == 1 and given.get(2) is None else (number - 1,))
    length = given.get(4)
    lengths = 1 if length is None or np.ndim(length) == 0 else length.shape[-1]
    start = {3: 0, 4: 1}.get(number, 1 + lengths)
    return Slot((2,), start, 2 + lengths)


def _cotangent_dtype(like: Any, g: Any) -> Any:
    """The dtype of a part's cotangent: real where the part is."""
    own = like.dtype
    if own is None:
        return g.dtype
    part = np.empty(0, g.dtype).real.dtype if own.kind != "c" else g.dtype
    return np.result_type(own, part)


# What is found once for several parts, by the ids of an operator and its own cotangent.
together: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()


def _of_generators(op: Any, g: Any, number: int, held: dict[int, Any]) -> Any:
    """The cotangent of p, q or a of a QuasiSeparable, a part of that of all three, which is found
    once: it holds op and g, so that they are what their ids say as long as it is there."""
    three = [held[k] for k in (1, 2, 3)]
    sizes = [math.prod(x.shape[-2:]) for x in three]
    batch = np.broadcast_shapes(tuple(op.shape[:-2]), tuple(g.shape[:-2]))
    whole = together.get((id(op), id(g)))
    if whole is None:
        size, dtype = sum(sizes), np.result_type(g.dtype, *(x.dtype for x in three))
        made = lazily(
            Cotangent(4, TOGETHER), (op, g), bytes((FORM, FORM)), (*batch, size, size), dtype
        )
        whole = together[id(op), id(g)] = diagonal(made)
    start, like = sum(sizes[: number - 1]), three[number - 1]
    part = whole[..., start : start + sizes[number - 1]].reshape(batch + tuple(like.shape[-2:]))
    return part.real if part.dtype.kind == "c" and like.dtype.kind != "c" else part


def _diagonal_of(op: Any, g: Any, child: int, key: Any, shape: Any, dtype: Any) -> Any:
    """The cotangent of a child that is a vector; where it is that of several parameters together,
    it is found once, as that of generators is."""
    at = (id(op), id(g), child, np.dtype(dtype))
    found = together.get(at) if key == TOGETHER else None
    if found is None:
        found = diagonal(lazily(Cotangent(child, key), (op, g), bytes((FORM, FORM)), shape, dtype))
        if key == TOGETHER:
            together[at] = found
    return found


def _own_dimensions(op: Any, number: int, like: Any) -> int:
    """How many dimensions of a parameter are no batch."""
    if isinstance(like, _core.Operator):
        return 2
    cls: Any = op._more[0].cls if is_lazy(op) else type(op)
    rank: int = _ranks(cls)[number]
    own: int = min(rank, like.ndim) if rank >= 0 else like.ndim - (op.ndim - 2)
    return own


@functools.cache
def _ranks(cls: Any) -> list[int]:
    rows = {row["name"]: row["params"] for row in _core.kinds()}
    params = next(rows[c.__name__] for c in cls.__mro__ if c.__name__ in rows)
    matrices = ("operator", "operators", "blocks")
    return [2 if p["role"] in matrices else p["rank"] for p in params]


def cotangent(op: Any, g: Any, key: Any, slot: Slot, like: Any, own: int = 2) -> Any:
    """The cotangent of a parameter or operand of `op`, an operator or a LazyArray of a kind, of the
    shape of `like`, whose last `own` dimensions are no batch. That of an operand has the batch of
    `op` and `g`."""
    batch = np.broadcast_shapes(tuple(op.shape[:-2]), tuple(g.shape[:-2]))
    shape, total = tuple(like.shape[like.ndim - own :]), None
    dtype = _cotangent_dtype(like, g)
    matrix = own == 2 and not slot.raveled
    count = math.prod(shape)
    size = count if slot.size is None else slot.size
    for child in slot.children:
        if matrix:
            part = lazily(
                Cotangent(child, key), (op, g), bytes((FORM, FORM)), (*batch, *shape), dtype
            )
        else:
            which = key if slot.size is None else TOGETHER
            part = _diagonal_of(op, g, child, which, (*batch, size, size), dtype)
            part = part if slot.size is None else part[..., slot.start : slot.start + count]
            part = part if part.shape == batch + shape else part.reshape(batch + shape)
            if not slot.first or (slot.mirrored and child):
                part = part * fixed(np.arange(count) > 0)
            if slot.mirrored and child and part.dtype.kind == "c":
                part = np.conjugate(part)
        total = part if total is None else total + part
    return total


# -- kinds of LazyArrays ---------------------------------------------------------------------------


def _given(a: Any) -> dict[int, Any]:
    """The parameters of a kind of LazyArrays, by number."""
    made = a._more[0]
    names = [name for name, _ in parameters(made.cls)]
    args, kwargs = filled((made.args, made.kwargs), a._args)
    found = dict(enumerate(args))
    found.update({names.index(k): v for k, v in kwargs.items() if k in names})
    return found


def given_by_name(a: Any) -> dict[str, Any]:
    """The parameters of a kind of LazyArrays, by name."""
    names = [name for name, _ in parameters(a._more[0].cls)]
    return {names[k]: x for k, x in _given(a).items()}


def of_kind(a: Any, g: Any, position: int) -> Any:
    """The cotangent of argument `position` of a kind of LazyArrays."""
    made = a._more[0]
    number, place = made.holes[position]
    listed = parameters(made.cls)[number][1] == "operators"  # of many, each by its place alone
    held = {} if listed else _given(a)
    head = head_of(made.cls)
    if head in BY_FORMULA:
        return BY_FORMULA[head](held, g, number)
    slot = slot_of(made.cls, number, place, held)
    if number and head == "quasiseparable":
        return _of_generators(a, g, number, held)
    part = a._args[position]
    return cotangent(a, g, (number, place), slot, part, _own_dimensions(a, number, part))


# -- operators -------------------------------------------------------------------------------------


def parts(op: Any) -> list[tuple[Any, Any]]:
    """(key, part) of each array and operator that an operator was made of: as written, or the
    parameters of its kind."""
    if op._init is None:
        return [(k, x) for k, x in enumerate(op._operands) if isinstance(x, _core.Operator)]
    listed = _is_list(type(op))
    found: list[tuple[Any, Any]] = []
    if op._head == "sparse":
        return [((1, 0), op._arrays[0])] if op._arrays[0].dtype.kind in "fc" else []
    for k, x in enumerate(op._init):
        if isinstance(x, _core.Operator) or (isinstance(x, np.ndarray) and x.dtype.kind in "fc"):
            found.append(((0, k) if listed else (k, 0), x))
    return found


def _is_list(cls: Any) -> bool:
    rows = parameters(cls)
    return bool(rows) and rows[0][1] in ("operators", "blocks")


_MOST = 12  # powers up to here have their cotangent from the core


def _of_power(op: Any, g: Any) -> Any:
    """Of the base of a power; None where it does not depend on it."""
    A, p = op._operands
    return Through(_powers(lazy(A), p - 1, lazy(A), 0), g, ()) if p else None


def of_part(op: Any, g: Any, key: Any, part: Any) -> Any:
    """The cotangent of a part of an operator."""
    if op._init is None:
        if op._by == "sliced":
            return slices.of_operator(op, g)
        if op._by == "power" and not 0 < op._operands[1] <= _MOST:
            return _of_power(op, g)
        if op._by not in _COMPOSITES:
            raise NotImplementedError(
                f"{type(op).__name__} {op.shape} made by '{op._by}' has no derivative by its "
                "operands yet"
            )
        return cotangent(op, g, (key, 0), Slot((key,)), part)
    held = {} if _is_list(type(op)) else dict(enumerate(op._init))
    number, place = key
    if op._head in BY_FORMULA:
        return BY_FORMULA[op._head](held, g, number)
    if number and op._head == "quasiseparable":
        return _of_generators(op, g, number, held)
    own = _own_dimensions(op, number, part)
    return cotangent(op, g, key, slot_of(type(op), number, place, held), part, own)


# -- cotangents of cotangents: <h, C(K, G)> = Re sum(conj(G) T), where T is the tangent of K, what
#    it grows by when the parameter grows by h


_JOINTLY, _EACH = heads("linear"), heads("multilinear")  # the others are zero in a tangent of those


def _powers(A: Any, p: int, h: Any, q: int) -> Any:
    """A^p h A^q."""
    for _ in range(p):
        h = A @ h
    for _ in range(q):
        h = h @ A
    return h


def _grown(op: Any, k: int, h: Any) -> Any:
    """The tangent of an operator that an operation made."""
    held = [lazy(x) if isinstance(x, _core.Operator) else x for x in op._operands]
    if op._by == "sum":
        return h
    if op._by == "prod":
        return held[0] @ h if k else h @ held[1]
    if op._by == "scaled":
        return h * held[1]
    if op._by == "view":
        return view(h, op._mode)
    if op._by == "inverse":
        y = inverse(held[0])
        return scaled(y @ h @ y, -1)
    if op._by == "power":
        A, p = held[0], op._operands[1]
        return sum((_powers(A, k, h, p - 1 - k) for k in range(1, p)), _powers(A, 0, h, p - 1))
    if op._by == "part":
        return np.imag(h) if op._mode else real_of(h)
    raise NotImplementedError(
        f"second derivatives through a {type(op).__name__} {op.shape} that '{op._by}' made are not "
        "there yet: write the operations on LazyArrays"
    )


def arguments(op: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """Class, positional and keyword arguments of an operator or a LazyArray of a kind."""
    if is_lazy(op):
        made = op._more[0]
        args, kwargs = filled((made.args, made.kwargs), op._args)
        if head_of(made.cls) != "block" and _is_list(made.cls) and type(args[0]) in (list, tuple):
            args = args[0]  # of one list of operators
        return made.cls, list(args), dict(kwargs)
    return type(op), given(op), {}


def given(op: Any) -> list[Any]:
    """The positional arguments that make an operator of a kind."""
    if op._head == "sparse":
        return [op._given("A"), op._arrays[0]]
    if op._head != "block":
        return list(op._init)
    columns = op._attrs[1]
    return [[list(row) for row in zip(*[iter(op._init)] * columns, strict=True)]]


def _zero(x: Any) -> Any:
    """Zeros in place of a parameter."""
    if x is None or not hasattr(x, "shape") or x.dtype is None or x.dtype.kind not in "fc":
        return x
    if isinstance(x, _core.Operator):
        return _core.Zeros(tuple(x.shape), x.dtype)
    return fixed(np.zeros(x.shape, x.dtype))


def _leaf(x: Any) -> Any:
    """An operator or array as a LazyArray: as a constant within a kind it has no cotangent."""
    if not isinstance(x, (_core.Operator, np.ndarray)) or x.dtype is None:
        return x
    return lazy(x) if x.dtype.kind in "fc" else x


def _grown_states(cls: Any, values: dict[str, Any], number: int, h: Any) -> Any:
    """Of a QuasiSeparable: it is linear in each of p and q; where a transition grows, what comes
    down from q moves on into states of its own, which p reads."""
    d, p, q, a = (x if is_lazy(x) else lazy(x) for x in (values[k] for k in "dpqa"))
    tri = bool(values.get("triangular"))
    if number == 0:
        return _core.Diag(h) if tri or h.dtype.kind != "c" else _core.Diag(h.real)
    batch, at, grown = tuple(h.shape[:-1]), 0, []
    n, J = p.shape[-2:]
    for x in (p, q, a):
        size = math.prod(x.shape[-2:])
        grown.append(h[..., at : at + size].reshape(batch + tuple(x.shape[-2:])))
        at += size
    p, q, a = (_in_batch(x, batch) for x in (p, q, a))
    moves, grows = (_as_matrices(x, n, J) for x in (a, grown[2]))
    above = np.concatenate([moves, grows], axis=-1)
    below = np.concatenate([0.0 * moves, moves], axis=-1)
    both = np.concatenate([above, below], axis=-2).reshape((*batch, n, 4 * J * J))
    # (p + dp) and (q + dq) beside what the states of their own carry
    first = np.concatenate([p, grown[0]], axis=-1), np.concatenate([grown[1], q], axis=-1)
    return cls(0.0 * d, *first, both, tri)


def _in_batch(x: Any, batch: tuple[int, ...]) -> Any:
    """Matrices, one for each element of a batch."""
    return x if tuple(x.shape[:-2]) == batch else x + np.zeros((*batch, *x.shape[-2:]), x.dtype)


def _as_matrices(a: Any, n: int, J: int) -> Any:
    """Transitions, n x J or n x J^2, as n x J x J."""
    batch = tuple(a.shape[:-2])
    if a.shape[-1] == J:
        return a.reshape((*batch, n, J, 1)) * np.eye(J)
    return a.reshape((*batch, n, J, J))


def _halves(head: str, name: str, values: dict[str, Any], child: int) -> str:
    """Where one parameter stands for two, as in LowRank(U), both are filled in; gives the name of
    the one that is the node's child."""
    at = {"lowrank": 1, "lowrankupdate": 2}.get(head)  # V among the children
    if at is not None and name == "U" and values.get("V") is None:
        values["V"] = values["U"]
        return "V" if child == at else "U"
    if head == "toeplitz" and values.get("r") is None:
        values["r"] = np.conj(values["c"])
        return "r" if child == 1 else "c"
    return name


def _of_list(op: Any, grown: dict[int, Any]) -> Any:
    """The tangent of an operator that is linear in its list of operands, which grow at these
    places."""
    cls, args, kwargs = arguments(op)
    if head_of(cls) != "block":
        return cls(*(grown.get(k, _zero(x)) for k, x in enumerate(args)), **kwargs)
    return cls(
        [
            [grown.get(r * len(row) + c, _zero(x)) for c, x in enumerate(row)]
            for r, row in enumerate(args[0])
        ]
    )


def tangent(op: Any, key: Any, h: Any, child: int = 0) -> Any:
    """The change of an operator, to first order, when the parameter at `key`, as the node's child,
    changes by h."""
    number, place = key
    if not is_lazy(op) and op._init is None:
        return _grown(op, number, h)
    cls, args, kwargs = arguments(op)
    head = head_of(cls)
    names = [name for name, _ in parameters(cls)]
    values = dict(zip(names, args, strict=False)) | kwargs
    if _is_list(cls) and head in _JOINTLY:
        return _of_list(op, {place: h})
    if _is_list(cls):
        rest = [_leaf(x) for x in args]
        rest[place] = h
        return cls(*rest, **kwargs)
    name = _halves(head, names[number], values, child)
    if head == "hankel":
        m = values["c"].shape[-1]
        n = m if values.get("r") is None else values["r"].shape[-1]
        return cls(h[..., :m], h[..., m - 1 : m + n - 1])
    if head == "sparse":
        return cls(values["A"], h) if h.ndim == 1 else slices.at_entries(values["A"], h)
    if head == "sparsetriangular":
        n = h.shape[-1]
        half = _core.Triangular(np.broadcast_to(1.0, (n, n)), lower=values.get("lower", True))
        inside = _core.HadamardProduct(h, half)
        unit = values.get("unit_diagonal")
        return inside - _core.Diag(diagonal(h)) if unit else inside
    if head == "triangular" and values.get("unit_diagonal"):
        return cls(**{**values, name: h}) - _core.Identity(h.shape[-1])
    if head == "quasiseparable":
        return _grown_states(cls, values, number, h)
    if head in _JOINTLY:
        return cls(**{**{k: _zero(v) for k, v in values.items()}, name: h})
    if head in _EACH:
        return cls(**{**{k: _leaf(v) for k, v in values.items()}, name: h})
    if head == "lowrankupdate":
        if name == "base":
            return h
        del values["base"]
        return _core.LowRank(**{**{k: _leaf(v) for k, v in values.items()}, name: h})
    made = {k: v if is_lazy(v) else lazy(v) for k, v in values.items() if v is not None}
    if head == "root":
        return h @ made["L"].H + made["L"] @ h.H
    if head == "congruence":
        A, B = made["A"], made["B"]
        return A @ h @ A.H if name == "B" else h @ B @ A.H + A @ B @ h.H
    if head != "eigen":
        raise NotImplementedError(f"{cls.__name__} has no second derivatives by its parameters yet")
    if name == "d":
        return _core.Eigen(made["Q"], h)
    D = _core.Diag(made["d"])
    return h @ D @ made["Q"].H + made["Q"] @ D @ h.H


def _as_parameter(y: Any, h: Any) -> Any:
    """The cotangent h of a cotangent, in the shape of the parameter."""
    op, (number, _) = y._args[0], y._more[0].key
    if not is_lazy(op) and op._init is None:
        return h
    cls, args, kwargs = arguments(op)
    if _is_list(cls):
        return h
    if number < 0:
        return diagonal(h)
    name = parameters(cls)[number][0]
    x = kwargs[name] if name in kwargs else args[number]
    own = _own_dimensions(op, number, x)
    if own == 2 and head_of(cls) not in _RAVELED:
        return h
    v, shape = diagonal(h), tuple(x.shape[x.ndim - own :])
    return v.reshape(v.shape[:-1] + shape) if v.shape[-1] == math.prod(shape) else v


def sources(y: Any) -> list[tuple[Any, Any]]:
    """(key, argument) of a cotangent: the operator's own cotangent, then the parameters."""
    op = y._args[0]
    held = [x for _, x in parts(op)] if isinstance(op, _core.Operator) else list(op._args)
    unique = {id(x): x for x in held if hasattr(x, "shape")}
    return [(-1, y._args[1]), *enumerate(unique.values())]


_last: tuple[Any, ...] = ()  # a cotangent, its own, both results of `_tangent_of`: weakly


def _tangent_of(y: Any, h: Any) -> tuple[Any, Any]:
    """The cotangent h of a cotangent, in the shape of the parameter, and the operator's tangent:
    the same ones for all arguments of y, which are asked for one after the other."""
    global _last
    held = [ref() for ref in _last]
    if held and held[0] is y and held[1] is h and held[2] is not None and held[3] is not None:
        return held[2], held[3]
    part, grown = y._more[0].tangent_of(y, h)
    _last = tuple(weakref.ref(x) for x in (y, h, part, grown))
    return part, grown


def of_cotangent(y: Any, h: Any, key: int, grown: Any = None) -> Any:
    """The cotangent of an argument of a `Through` or a `Cotangent`; `grown` is its tangent, where
    the caller knows it."""
    if grown is None:
        h, grown = _tangent_of(y, h)
    if key < 0:
        return lazy(grown)
    return Through(lazy(grown), y._args[1], (h, *(x for k, x in sources(y) if k >= 0)))


def list_of(y: Any) -> Any:
    """What cotangents have in common whose own cotangents make one tangent of their operator: that
    by operands of one list, which it is linear in, for one cotangent of it. None of others."""
    f = y._more[0] if is_lazy(y) and y._head == "made" else None
    if type(f) is not Cotangent:
        return None
    op, g = y._args
    if not is_lazy(op) and op._init is None:
        return None
    cls: Any = op._more[0].cls if is_lazy(op) else type(op)
    return (id(op), id(g)) if _is_list(cls) and head_of(cls) in _JOINTLY else None


def of_list(found: list[tuple[Any, Any]]) -> Any:
    """The cotangent of g of cotangents of one list, from each of these with its own: a tangent in
    which all operands grow, where that of each makes as many operators as there are operands, and
    their sum as many products as there are pairs. The operands themselves have none."""
    grown: dict[int, Any] = {}
    for y, h in found:
        place, part = y._more[0].key[1], _as_parameter(y, h)
        grown[place] = grown[place] + part if place in grown else part
    return lazy(_of_list(found[0][0]._args[0], grown))
