"""Pickling, copying, rebuilding: an operator as a flat program over its leaves.

The root pickles a list in post-order, each entry one object; so chains of any length pickle without
recursion, shared parts once, and nothing derived travels along."""

import copy as _copy

import numpy as np

from . import _core, _scipy

_COMPOSITES = {"sum", "prod", "scaled", "power", "view", "inverse", "part"}


def _is_composite(op):
    return bool(op._operands)


def program(op):
    """Entries (kind, ...) in post-order; operands are numbers of earlier entries."""
    entries, number, stack = [], {}, [(op, False)]
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


def _refs(values, number):
    return tuple(("op", number[id(v)]) if isinstance(v, _core.Operator) else ("is", v) for v in values)


def _entry(o, number):
    state = dict(o.__dict__)
    if _is_composite(o):
        how, mode = _how(o)
        return ("make", how, mode, _refs(o._operands, number), state)
    cls = _scipy.real_class(type(o))
    if o._init is not None:
        return ("kind", cls, None, _refs(o._init, number), state)
    return ("user", cls, None, (("is", o.shape), ("is", o.dtype)), state)


def _how(o):
    """How a composite came about: the operation, also of closed results."""
    head = o._head
    if head in _COMPOSITES:
        return head, o._mode
    a, rest = o._operands[0], o._operands[1:]
    if rest and isinstance(rest[0], _core.Operator):
        return ("prod" if _closed_product(o) else "sum"), 0
    if rest:
        return "scaled", 0
    for mode in (1, 2, 3):  # a closed view or inverse: the one that gives the same text
        if _core._build("view", a, None, mode)._text == o._text:
            return "view", mode
    return "inverse", 0


def _closed_product(o):
    a, b = o._operands
    try:
        return (a @ b)._text == o._text
    except ValueError:
        return False


def build(entries, copy=False):
    """Runs a program."""
    made = []
    for kind, what, mode, refs, state in entries:
        args = [made[v] if tag == "op" else v for tag, v in refs]
        if kind == "make":
            op = _make(what, mode, args)
        elif kind == "kind":
            op = what(*args)
        else:
            op = _core.Operator.__new__(what)
            op.shape, op.dtype = args
        if state:
            op.__dict__.update(state)
        made.append(op)
    return made[-1]


def _make(what, mode, args):
    if what == "sum":
        return args[0] + args[1]
    if what == "prod":
        return args[0] @ args[1]
    if what == "scaled":
        return args[0] * args[1]
    if what == "power":
        return args[0] ** args[1]
    return _core._build(what, args[0], None, mode)


def reduce(op, protocol):
    return build, (program(op),)


def _copied(value, memo):
    if _scipy.issparse(value):
        return value.copy()
    return _copy.deepcopy(value, memo)


def deepcopy(op, memo):
    entries = [
        (kind, what, mode, tuple((tag, v if tag == "op" else _copied(v, memo)) for tag, v in refs), _copy.deepcopy(state, memo))
        for kind, what, mode, refs, state in program(op)
    ]
    made = build(entries)
    memo[id(op)] = made
    return made


def shallow(op):
    if op._operands or op._init is not None:
        return op
    made = _core.Operator.__new__(_scipy.real_class(type(op)))
    made.shape, made.dtype = op.shape, op.dtype
    made.__dict__.update(op.__dict__)
    return made


def rebuilt(op, change, dtype):
    """The same leaf kind over changed arrays; factors are changed in turn, a dtype argument replaced."""
    names = [p["name"] for row in _core.kinds() if row["head"] == op._head for p in row["params"]]
    index = {p["name"] for row in _core.kinds() if row["head"] == op._head for p in row["params"] if p["role"] == "index"}
    args = []
    for i, value in enumerate(op._init):
        name = names[min(i, len(names) - 1)]
        if isinstance(value, np.ndarray) and name not in index:
            value = change(value)
        elif isinstance(value, _core.Operator):
            value = value.astype(dtype)
        elif name == "dtype":
            value = dtype
        args.append(value)
    return type(op)(*args)
