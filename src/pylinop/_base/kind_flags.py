"""Which kinds have something in common, as their tables in the core say: src/c/expr/kind_flags.def
names the flags and says what each means."""

from __future__ import annotations

from .. import _core

_FLAGS = _core._kind_flags()


def heads(flag: str) -> frozenset[str]:
    """The heads of the kinds that have a flag."""
    return frozenset(head for head, _ in _FLAGS[flag])


def names(flag: str) -> frozenset[str]:
    """The names of their classes."""
    return frozenset(name for _, name in _FLAGS[flag])


DIAGONAL, AT_HAND, BAND, OF_PARTS = map(heads, ("diagonal", "at_hand", "band", "of_parts"))
