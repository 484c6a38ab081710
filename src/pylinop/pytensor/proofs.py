"""The proof of a program's tree (`definite`), in the rows that C takes it in (exec/tape_proof.h):
(kind, entries with those below it, arrays, offsets), the tree in pre-order."""

from __future__ import annotations

from typing import Any

from .program import BAND, divisors, innermost, offset_of

__all__ = ["Untold", "rows"]

(
    _TRUE,
    _DENSE,
    _SYMMETRIC,
    _DIAGONAL,
    _NONNEGATIVE,
    _CONGRUENCE,
    _TOEPLITZ,
    _KRON,
    _ALL,
    _SCALED,
    _FRESH,
    _SUM,
    _BAND,
    _EQUAL,
    _REGULAR,
) = range(15)
_MOST = 16  # arrays of one row
_LEAVES = {
    "dense": _DENSE,
    "symmetric": _SYMMETRIC,
    "diagonal": _DIAGONAL,
    "identity": _DIAGONAL,
    "constant": _NONNEGATIVE,
    "toeplitz": _TOEPLITZ,
}
_WITHIN = {"blocks": _ALL, "inverse": _FRESH, "sum": _SUM}


class Untold(Exception):
    """There is no such row."""


def _row(kind: int, arrays: Any = (), below: Any = (), offsets: Any = None) -> list[Any]:
    if len(arrays) > _MOST:
        raise Untold(f"{len(arrays)} arrays in one proof")
    given = (0,) * len(arrays) if offsets is None else tuple(offsets)
    return [(kind, 1 + len(below), tuple(arrays), given), *below]


def _rows(tree: Any) -> list[Any]:
    name, *rest = tree
    if name in ("written", "root"):
        return _row(_TRUE)
    if name == "general":
        return _row(_ALL, (), [row for i in divisors(rest[0]) for row in _row(_REGULAR, [i])])
    if name in _LEAVES:
        return _row(_LEAVES[name], rest)
    if name == "weighted":
        return _row(_NONNEGATIVE, rest[1:])
    if name == "congruence":
        return _row(_CONGRUENCE, rest)
    if name == "kron" and all(t[0] in ("dense", "symmetric", "unit") for t in rest):
        return _row(_KRON, [t[1] for t in rest])
    if name == "framed":
        return _row(_FRESH, (), _row(_DIAGONAL, rest[:1]) + _rows(rest[1]))
    if name == "rotated":
        return _row(_FRESH, (), _row(_DIAGONAL, rest[1:]))
    if name == "scaled":
        return _row(_SCALED, rest[:1], _rows(rest[1]))
    if name == "sum" and any(t[0] == "off" for t in rest):
        if any(t[0] not in BAND for t in rest):
            raise Untold("a band beside other terms")
        return _row(_BAND, [t[-1] for t in rest], (), map(offset_of, rest))
    if name in _WITHIN:
        return _row(_WITHIN[name], (), [row for t in rest for row in _rows(t)])
    raise Untold(f"a proof of {name!r}")


def rows(spec: Any) -> tuple[Any, ...]:
    """Those of a program's text."""
    return tuple(_rows(innermost(spec)[0][1]))
