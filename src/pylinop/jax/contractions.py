"""`einsum` of arrays of JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._programs import contractions
from .program import program

__all__ = ["einsum"]

_known: dict[Any, Any] = {}
_MOST = 256


def einsum(
    equation: str,
    *operands: Any,
    sizes: Mapping[str, int] | None = None,
    outside: Any = None,
) -> Any:
    key = contractions.key(equation, sizes, outside)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST:
            _known.clear()
        found = _known[key] = program(contractions.formula(equation, sizes, outside))
    return found(*operands)


einsum.__doc__ = contractions.DOC
