"""Callables and user subclasses: what happens for the hooks of SciPy that a class leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import H, N, T
from .._fallback import interpreter
from . import pickling


def _of_kind(op: Any) -> Any:
    """The operator without its class's overrides, for super()._matvec in a subclass of a kind."""
    if op._init is None and not op._operands:
        return None
    if not op._opaque or op._operands:
        return op
    for cls in type(op).__mro__:
        if cls.__module__ == "pylinop" and cls.__name__ != "LinearOperator":
            return cls(*pickling.nested(op._init, op._mode))
    return None


def default_matvec(op: Any, x: Any) -> Any:
    kind = _of_kind(op)
    if kind is not None:
        return interpreter.apply(kind, np.asarray(x), N, True)
    if type(op)._matmat is _base()._matmat:
        raise NotImplementedError(f"{type(op).__name__} defines neither _matvec nor _matmat")
    return op._matmat(x[..., np.newaxis])[..., 0]


def default_matmat(op: Any, X: Any) -> Any:
    kind = _of_kind(op) if type(op)._matvec is _base()._matvec else None
    if kind is not None:
        return interpreter.apply(kind, np.asarray(X), N, False)
    if X.shape[-1] == 0:
        batch = interpreter._broadcast(op.shape[:-2], X.shape[:-2])
        return np.zeros((*batch, op.shape[-2], 0), dtype=np.result_type(X, op.dtype or X.dtype))
    columns = [np.asarray(op._matvec(X[..., :, j])) for j in range(X.shape[-1])]
    m = op.shape[-2]
    columns = [c.reshape(*interpreter._broadcast(op.shape[:-2], X.shape[:-2]), m) for c in columns]
    return np.stack(columns, axis=-1)


def default_rmatvec(op: Any, x: Any) -> Any:
    kind = _of_kind(op)
    if kind is not None:
        return interpreter.apply(kind, np.asarray(x), H, True)
    if type(op)._adjoint is not _base()._adjoint:
        return op._adjoint()._matvec(x) if not _is_core(op) else op._adjoint().matvec(x)
    if type(op)._rmatmat is _base()._rmatmat or (_is_matvec(op) and op._callables[3] is None):
        raise NotImplementedError(
            f"the adjoint of {type(op).__name__} is not known: "
            "define _rmatvec, _rmatmat or _adjoint" + errors.built(op)
        )
    return op._rmatmat(x[..., np.newaxis])[..., 0]


def default_rmatmat(op: Any, X: Any) -> Any:
    kind = _of_kind(op) if type(op)._rmatvec is _base()._rmatvec else None
    if kind is not None:
        return interpreter.apply(kind, np.asarray(X), H, False)
    if type(op)._adjoint is not _base()._adjoint:
        return op._adjoint().matmat(X)
    m = op.shape[-1]
    batch = interpreter._broadcast(op.shape[:-2], X.shape[:-2])
    if X.shape[-1] == 0:
        return np.zeros((*batch, m, 0), dtype=np.result_type(X, op.dtype or X.dtype))
    return np.stack(
        [np.asarray(op._rmatvec(X[..., :, j])).reshape(*batch, m) for j in range(X.shape[-1])],
        axis=-1,
    )


def _base() -> Any:
    return _core._LinearOperator


def _is_core(op: Any) -> bool:
    return type(op).__module__ == "pylinop"


def _is_matvec(op: Any) -> bool:
    return hasattr(op, "_callables")


def user_view(op: Any, mode: int) -> Any:
    """Calls a user's own _adjoint or _transpose for .H and .T; None where there is none."""
    base = _base()
    kind = type(op)
    if mode == H and kind._adjoint is not base._adjoint:
        return op._adjoint()
    if mode == T and kind._transpose is not base._transpose:
        return op._transpose()
    return None


def user_attribute(op: Any, name: str) -> Any:
    """A shape or dtype that a user's class defines itself (a property); None where it does not."""
    for cls in type(op).__mro__:
        if name in vars(cls):
            return None if cls is _core.Operator else getattr(op, name)
    return None


def overrides_hooks(cls: Any) -> bool:
    """Does a subclass of a kind define products of its own?"""
    base = _base()
    names = ("_matvec", "_matmat", "_rmatvec", "_rmatmat", "_adjoint", "_transpose")
    return any(getattr(cls, name) is not getattr(base, name) for name in names)


def infer_dtype(op: Any) -> np.dtype[Any]:
    """The dtype of a callable: that of its result on int8 zeros; called exactly once."""
    try:
        y = np.asarray(op._matvec(np.zeros(op.shape[-1], dtype=np.int8)))
    except (OverflowError, TypeError, RuntimeError):
        return np.dtype(int)
    return y.dtype


_ROLES: dict[str, list[str]] = {}  # class name -> role of each parameter


def _dtypes_of_kind(op: Any) -> list[Any]:
    """The dtypes that determine the dtype of a kind over arrays that C does not know."""
    if not _ROLES:
        _ROLES.update({row["name"]: [p["role"] for p in row["params"]] for row in _core.kinds()})
    roles = next((_ROLES[c.__name__] for c in type(op).__mro__ if c.__name__ in _ROLES), None)
    if roles is None:  # a user's own class
        return []
    pairs = [(role, p) for role, p in zip(roles, op._init) if p is not None]
    found = [np.dtype(p) for role, p in pairs if role == "dtype"]
    found += [p.dtype for role, p in pairs if role in ("array", "foreign")]
    found += [p for role, p in pairs if role == "scalar"]
    if isinstance(op, _core.DFT):
        found.append(np.dtype(np.complex64))
    return found or [np.dtype(np.float64)]


def foreign_dtype(op: Any) -> Any:
    """The dtype of an expression with parts that C does not know; None if a callable has none."""
    found, stack, seen = [], [op], set()
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        below = [p for p in (*o._operands, *(o._init or ())) if isinstance(p, _core.Operator)]
        numbers = [p for p in o._operands if not isinstance(p, _core.Operator)]
        if "scaled" in (o._head, o._by):  # closed kinds too
            found += numbers  # Python's stay weak
        if below:
            stack += below
        elif o._init is not None and o._opaque:
            found += _dtypes_of_kind(o)
        elif not o._weak:
            if o.dtype is None:
                return None
            found.append(o.dtype)
    return np.result_type(*found) if found else None
