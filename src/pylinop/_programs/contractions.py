"""`einsum` on the arrays of another library: the formula that its program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._api.contractions import einsum
from .._lazy.leaves import lazy

__all__ = ["formula"]

DOC = """Sums of products over named axes: `pylinop.einsum` as one call of a program.

    Parameters
    ----------
    equation : str
        Letters, names between blanks, groups, index equations.
    *operands : arrays of the library
        Traced or not; their derivatives, of any order, are contractions.
    sizes, outside : optional
        As of `pylinop.einsum`.

    Returns
    -------
    array of the library
    """


def formula(equation: str, sizes: Any, outside: Any) -> Callable[..., Any]:
    """The contraction as a function of LazyArrays; what of it is no array is bound."""

    def contracted(*operands: Any) -> Any:
        return lazy(einsum(equation, *map(lazy, operands), sizes=sizes, outside=outside))

    return contracted


def key(equation: Any, sizes: Any, outside: Any) -> tuple[Any, ...]:
    """By which a program is found again."""
    if not isinstance(equation, str):
        raise TypeError(f"einsum takes the equation as text first, not a {type(equation).__name__}")
    return equation, tuple(sorted((sizes or {}).items())), outside
