"""`program`: a function of LazyArrays as one call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .._base.checks import is_lazy
from .._lazy.leaves import lazy
from .._programs.programs import Written
from .._programs.surroundings import Calls, Surroundings, fitting
from .arrays import as_leaf, is_array
from .primitive import run

__all__ = ["program"]


class _Calls(Calls):
    """A function on the leaves of its arguments, and how its results are nested."""

    def __init__(self, f: Callable[..., Any], structure: Any, read: Surroundings) -> None:
        super().__init__(f, read)
        self.structure = structure

    def __call__(self, leaves: Any) -> list[Any]:
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        found, nested = jax.tree.flatten(self.run(*args, **kwargs), is_leaf=is_lazy)
        self.nests(leaves, nested)
        for x in found:
            if not is_lazy(x):
                name = getattr(self.f, "__name__", "the function")
                raise TypeError(
                    f"{name} gave a {type(x).__name__} where a LazyArray is due: "
                    "use pylinop's and NumPy's functions of its arguments"
                )
        return [lazy(x) for x in found]


def program(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function written with LazyArrays, as one call in JAX, planned as a whole.

    Parameters
    ----------
    f : callable
        Gets LazyArrays in place of the arrays in its arguments (nested tuples, lists, dicts) and
        returns LazyArrays, nested. It runs again for each derivative that is taken: it must give
        the same formula for the same shapes. Numbers that it reads besides its arguments are
        looked at in each call, under ``jit`` when it is traced.

    Returns
    -------
    callable
        Of arrays of JAX, traced or not, to arrays of JAX.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, pylinop as pl, pylinop.jax as pj
    >>> f = pj.program(lambda d: pl.logdet(pl.Diag(d)))
    >>> jax.grad(f)(jnp.array([1.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    known: dict[Any, Any] = {}

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        for x in leaves:
            if not (is_array(x) or isinstance(x, (int, float, complex))):
                raise TypeError(f"a program takes arrays and numbers, not a {type(x).__name__}")
        arrays = [as_leaf(x if is_array(x) else np.asarray(x)[()]) for x in leaves]
        some = known.setdefault(structure, [])
        calls = fitting(some, f, functools.partial(_Calls, f, structure))
        made = run(Written(calls, calls, len(arrays)), arrays)
        return jax.tree.unflatten(calls.nested(arrays), made)

    return called
