"""`einsum` on the arrays of another library: one call of the library's `program`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .._api.contractions import einsum
from .._lazy.leaves import lazy
from .functions import Functions
from .operators import Operator

__all__ = ["einsum_by"]


def einsum_by(
    program: Callable[..., Any], functions: Functions, call: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The library's `einsum`, by its `program`; with operators in it by its `functions`.
    `call(known, key, operands)`: of the program `known(*key)`, where it is not simply called."""

    @functools.lru_cache(maxsize=256)
    def known(equation: str, sizes: tuple[tuple[str, int], ...], outside: Any) -> Any:
        def contracted(*operands: Any) -> Any:
            given = dict(sizes) or None
            return lazy(einsum(equation, *map(lazy, operands), sizes=given, outside=outside))

        return program(contracted)

    def einsum_of_arrays(
        equation: str,
        *operands: Any,
        sizes: Mapping[str, int] | None = None,
        outside: Any = None,
    ) -> Any:
        """Sums of products over named axes: `pylinop.einsum` as one call of a program.

        Parameters
        ----------
        equation : str
            Letters, names between blanks, groups, index equations.
        *operands : arrays of the library, or its operators
            Traced or not; their derivatives, of any order, are contractions. An operator is applied
            by its structure along its axes.
        sizes, outside : optional
            As of `pylinop.einsum`.

        Returns
        -------
        array of the library
            An operator where only operators meet and two axes stay.

        Raises
        ------
        TypeError
            The equation is no text.
        """
        if not isinstance(equation, str):
            kind = type(equation).__name__
            raise TypeError(f"einsum takes the equation as text first, not a {kind}")
        if any(isinstance(x, Operator) for x in operands):
            given = {"sizes": dict(sizes)} if sizes else {}
            given |= {} if outside is None else {"outside": outside}
            return functions.einsum(equation, operands, **given)
        key = equation, tuple(sorted((sizes or {}).items())), outside
        return known(*key)(*operands) if call is None else call(known, key, operands)

    einsum_of_arrays.__name__ = einsum_of_arrays.__qualname__ = "einsum"
    einsum_of_arrays.known = known  # type: ignore[attr-defined]
    return einsum_of_arrays
