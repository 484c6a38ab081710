"""Pickling, copying, rebuilding: an operator as a flat program over its leaves.

The root pickles a list in post-order, with one entry for each object; so chains of any length
pickle without recursion, shared parts are stored once, and derived values are left out."""

from __future__ import annotations

import copy as _copy
import copyreg
from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack, scipy_bridge, sparse_arrays


def _state(op: Any) -> dict[Any, Any]:
    """The attributes that a user's class keeps: __dict__ and slots."""
    state = dict(op.__dict__)
    for name in copyreg._slotnames(type(op)):  # type: ignore[attr-defined]  # typeshed leaves it out
        if hasattr(op, name):
            state[name] = getattr(op, name)
    return state


def _set_state(op: Any, state: Any) -> None:
    for name, value in state.items():
        setattr(op, name, value)


def _bare(cls: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An instance made without __init__; if its class defines shape or dtype, these are not set."""
    op = _core.Operator.__new__(cls)
    for name, value in (("shape", shape), ("dtype", dtype)):
        if not isinstance(getattr(cls, name), property):
            setattr(op, name, value)
    return op


def program(op: Any) -> list[Any]:
    """Entries (kind, ...) in post-order; operands are numbers of earlier entries."""
    entries: list[Any] = []
    number: dict[int, int] = {}
    stack = [(op, False)]
    while stack:
        o, done = stack.pop()
        if id(o) in number:
            continue
        below = [p for p in (*o._operands, *(o._init or ())) if isinstance(p, _core.Operator)]
        if not done and below:
            stack.append((o, True))
            stack += [(p, False) for p in reversed(below)]
            continue
        number[id(o)] = len(entries)
        entries.append(_entry(o, number))
    return entries


def _refs(values: Any, number: dict[int, int]) -> tuple[Any, ...]:
    return tuple(
        ("op", number[id(v)]) if isinstance(v, _core.Operator) else ("is", v) for v in values
    )


def _entry(o: Any, number: dict[int, int]) -> Any:
    state = _state(o)
    if o._operands:
        return ("make", o._by, o._mode, _refs(o._operands, number), state)
    cls = scipy_bridge.real_class(type(o))
    if o._init is not None:
        init = [sparse_arrays.matrix_of(o) if scipy_bridge.issparse(v) else v for v in o._init]
        return ("kind", cls, o._mode or None, _refs(init, number), state)
    return ("user", cls, None, (("is", o.shape), ("is", o.dtype)), state)


def build(entries: Any) -> Any:
    """Runs a program."""
    made: list[Any] = []
    for kind, what, mode, refs, state in entries:
        args = [made[v] if tag == "op" else v for tag, v in refs]
        if kind == "make":
            op = _make(what, mode, args)
        elif kind == "kind":
            op = what(*nested(args, mode))
        else:
            op = _bare(what, *args)
        _set_state(op, state)
        made.append(op)
    return made[-1]


def _make(what: str, mode: int, args: Any) -> Any:
    if what == "sum":
        return args[0] + args[1]
    if what == "prod":
        return args[0] @ args[1]
    if what == "scaled":
        return args[0] * args[1]
    if what == "power":
        return args[0] ** args[1]
    if what == "sliced":
        return _core._sliced(*args)
    return _core._build(what, args[0], args[1] if len(args) > 1 else None, mode)


def nested(args: Any, rows: Any) -> Any:
    """A constructor's arguments from those that an operator keeps: a Block gets a list of rows."""
    if not rows:
        return args
    columns, rest = divmod(len(args), rows) if rows > 0 else (0, 1)
    if rest or not columns:
        raise ValueError(f"{len(args)} blocks do not make {rows} rows")
    return [[list(args[i * columns : (i + 1) * columns]) for i in range(rows)]]


def reduce(op: Any, protocol: Any) -> Any:
    return build, (program(op),)


def _copied(value: Any, memo: Any) -> Any:
    if scipy_bridge.issparse(value):
        return value.copy()
    return _copy.deepcopy(value, memo)


def deepcopy(op: Any, memo: Any) -> Any:
    entries = [
        (
            kind,
            what,
            mode,
            tuple((tag, v if tag == "op" else _copied(v, memo)) for tag, v in refs),
            _copy.deepcopy(state, memo),
        )
        for kind, what, mode, refs, state in program(op)
    ]
    made = build(entries)
    memo[id(op)] = made
    return made


def _frozen(value: Any, owner: dlpack.Owner, done: dict[int, Any]) -> Any:
    if scipy_bridge.issparse(value):
        S = value if value.format in ("csr", "csc", "coo") else value.tocsr()
        parts = tuple(_frozen(a, owner, done) for a in sparse_arrays.parts_of(S))
        return sparse_arrays.made(S.format, parts, S.shape)
    if not isinstance(value, np.ndarray):
        return value
    if id(value) not in done:  # what is one array stays one: the value is held, so that ids last
        same = dlpack.is_immutable(value)
        made = (dlpack.immutable if same else dlpack.immutable_copy)(value, owner)
        done[id(value)] = made, value
    return done[id(value)][0]


def snapshot(op: Any, owner: dlpack.Owner) -> Any:
    """The operator as it is now, on arrays that nobody can write to; those that are such already
    are shared, not copied. What is derived of them belongs to the owner."""
    done: dict[int, Any] = {}
    entries = [
        (
            kind,
            what,
            mode,
            tuple((tag, v if tag == "op" else _frozen(v, owner, done)) for tag, v in refs),
            state,
        )
        for kind, what, mode, refs, state in program(op)
    ]
    return build(entries)


def shallow(op: Any) -> Any:
    if op._operands or op._init is not None:
        return op
    made = _bare(scipy_bridge.real_class(type(op)), op.shape, op.dtype)
    _set_state(made, _state(op))
    return made


def rebuilt(op: Any, change: Any, dtype: Any) -> Any:
    """The same leaf kind over changed arrays and factors; a dtype argument is replaced."""
    head = {"offdiag": "diag"}.get(op._head, op._head)  # one class for both
    params = [p for row in _core.kinds() if row["head"] == head for p in row["params"]]
    names = [p["name"] for p in params]
    index = {p["name"] for p in params if p["role"] == "index"}
    args = []
    for i, value in enumerate(op._init):
        name = names[min(i, len(names) - 1)]
        if head == "full" and name == "c":
            value = change(np.asarray(value))[()]
        elif isinstance(value, np.ndarray) and name not in index:
            value = change(value)
        elif isinstance(value, _core.Operator):
            value = value.astype(dtype)  # type: ignore[attr-defined]  # of LinearOperator
        elif name == "dtype":
            value = dtype
        args.append(value)
    return type(op)(*nested(args, op._mode))
