"""`program`: a function of LazyArrays as one call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .._base.checks import is_lazy
from .._lazy.leaves import lazy
from .._programs.programs import Written
from .arrays import as_leaf, is_array
from .function import run

__all__ = ["program"]


_LEAVES = (torch.Tensor, torch.nn.Parameter, int, float)  # no nests of others


class _Calls:
    """A function on the leaves of its arguments, and how its results are nested."""

    def __init__(self, f: Callable[..., Any], structure: Any) -> None:
        self.f, self.structure = f, structure
        self.nested: Any = None

    def __call__(self, leaves: Any) -> list[Any]:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.structure)
        found, self.nested = pytree.tree_flatten(self.f(*args, **kwargs))
        for x in found:
            if not is_lazy(x):
                name = getattr(self.f, "__name__", "the function")
                raise TypeError(
                    f"{name} gave a {type(x).__name__} where a LazyArray is due: "
                    "use pylinop's and NumPy's functions of its arguments"
                )
        return [lazy(x) for x in found]


def program(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function written with LazyArrays, as one call in PyTorch, planned as a whole.

    Parameters
    ----------
    f : callable
        Gets LazyArrays in place of the tensors in its arguments (nested tuples, lists, dicts) and
        returns LazyArrays, nested. It runs again for each derivative that is taken: it must give
        the same formula for the same shapes.

    Returns
    -------
    callable
        Of tensors to tensors.

    Examples
    --------
    >>> import torch, pylinop as pl, pylinop.torch as pt
    >>> f = pt.program(lambda d: pl.logdet(pl.Diag(d)))
    >>> d = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(d).backward()
    >>> d.grad
    tensor([1.0000, 0.5000])
    """
    known: dict[Any, Any] = {}

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        flat = not kwargs and all(type(x) in _LEAVES for x in args)
        leaves, structure = (args, None) if flat else pytree.tree_flatten((args, kwargs))
        for x in leaves:
            if not (is_array(x) or isinstance(x, (int, float, complex))):
                raise TypeError(f"a program takes tensors and numbers, not a {type(x).__name__}")
        tensors = [
            as_leaf(x) if is_array(x) else torch.tensor(x, dtype=_number_dtype(x)) for x in leaves
        ]
        key = len(args) if flat else str(structure)
        calls = known.get(key)
        if calls is None:
            structure = pytree.tree_flatten((args, kwargs))[1]
            calls = known[key] = _Calls(f, structure)
        made = run(Written(calls, calls, len(tensors)), tensors)
        return made[0] if calls.nested.is_leaf() else pytree.tree_unflatten(made, calls.nested)

    return called


def _number_dtype(x: Any) -> Any:
    if isinstance(x, int):
        return torch.int64
    wide = torch.get_default_dtype() is torch.float64
    if isinstance(x, complex):
        return torch.complex128 if wide else torch.complex64
    return torch.get_default_dtype()
