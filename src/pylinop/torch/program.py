"""`program`: a function of LazyArrays as one call; `einsum`, which is one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .._base.checks import is_lazy
from .._lazy.leaves import lazy
from .._programs.contractions import einsum_by
from .._programs.programs import Written, hollow
from .._programs.surroundings import Calls, Surroundings, fitting
from . import compiled
from .arrays import as_leaf, is_array
from .function import run
from .operators import FUNCTIONS
from .tracer import constant, when_traced

__all__ = ["einsum", "program"]


_LEAVES = (torch.Tensor, torch.nn.Parameter, int, float)  # no nests of others


_OTHER = "a program in a graph of torch.compile gives tuples, lists and dicts, no other nests"


class _Calls(Calls):
    """A function on the leaves of its arguments, and how its results are nested."""

    def __init__(self, f: Callable[..., Any], structure: Any, read: Surroundings) -> None:
        super().__init__(f, read)
        self.structure = structure
        self.program = Written(self, self, structure.num_leaves)

    def __call__(self, leaves: Any) -> list[Any]:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.structure)
        found, nested = pytree.tree_flatten(self.run(*args, **kwargs))
        self.nests(leaves, nested)
        for x in found:
            if not is_lazy(x):
                name = getattr(self.f, "__name__", "the function")
                raise TypeError(
                    f"{name} gave a {type(x).__name__} where a LazyArray is due: "
                    "use pylinop's and NumPy's functions of its arguments"
                )
        return [lazy(x) for x in found]


def _outside(called: Any, args: Any, kwargs: Any) -> Any:
    """What has no place in a graph: a call behind a break of it."""
    return called(*args, **kwargs)


@when_traced
def _break_there() -> None:
    global _outside
    takes = inspect.signature(torch.compiler.disable).parameters
    why = {"reason": _OTHER} if "reason" in takes else {}  # not in PyTorch 2.6
    _outside = torch.compiler.disable(_outside, **why)


def program(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function written with LazyArrays, as one call in PyTorch, planned as a whole.

    Parameters
    ----------
    f : callable
        Gets LazyArrays in place of the tensors in its arguments (nested tuples, lists, dicts) and
        returns LazyArrays, nested. It runs again for each derivative that is taken: it must give
        the same formula for the same shapes. Numbers that it reads besides its arguments are
        looked at in each call; what changes often is better given as an argument.

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
    known: dict[Any, Any] = {}  # by the nest of arguments: it, and what was called
    in_graphs: set[Any] = set()  # programs, to be found as long as the function is there

    def calls(key: Any, nest: Any) -> Any:
        if key not in known:
            known[key] = pytree.tree_flatten(nest)[1], []
        structure, found = known[key]
        return fitting(found, f, functools.partial(_Calls, f, structure))

    def opened(nest: Any, avals: Any) -> Any:
        """For a graph: the program's text, and how its results are nested."""
        whole = _filled(nest, [0] * len(avals))
        found = calls(str(pytree.tree_flatten(whole)[1]), whole)
        text = compiled.written(found.program, avals)
        in_graphs.add(found.program)
        nested = found.nested([hollow(a, False) for a in avals])
        leaves: list[Any] = []
        out = _nest(pytree.tree_unflatten([0] * nested.num_leaves, nested), leaves)
        return text, out if len(leaves) == nested.num_leaves else "other"

    constant(opened)

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            found: list[Any] = []
            nest = _nest((args, kwargs), found)
            tensors = [_as_tensor(x) for x in found]
            text, out = opened(nest, compiled.avals_in_graph(tensors))
            if out == "other":
                return _outside(called, args, kwargs)
            return _filled(out, list(compiled.text_in_graph(text, tensors)))
        flat = not kwargs and all(type(x) in _LEAVES for x in args)
        leaves, structure = (args, None) if flat else pytree.tree_flatten((args, kwargs))
        tensors = [_as_tensor(x) for x in leaves]
        key = len(args) if flat else str(structure)
        one = calls(key, (args, kwargs))
        made = run(one.program, tensors)
        nested = one.nested(tensors)
        return made[0] if nested.is_leaf() else pytree.tree_unflatten(made, nested)

    called.opened = opened  # type: ignore[attr-defined]
    return called


_contractions: set[Any] = set()  # of graphs: words alone


@constant
def _contraction(key: Any, nest: Any, avals: Any) -> Any:
    found = einsum.known(*key)
    _contractions.add(found)
    return found.opened(nest, avals)


def _contracted(known: Any, key: Any, operands: Any) -> Any:
    if not torch.compiler.is_dynamo_compiling():
        return known(*key)(*operands)
    found: list[Any] = []
    nest = _nest((operands, {}), found)
    tensors = [_as_tensor(x) for x in found]
    text, _ = _contraction(key, nest, compiled.avals_in_graph(tensors))
    return compiled.text_in_graph(text, tensors)[0]


einsum: Any = einsum_by(program, FUNCTIONS, _contracted)


def _as_tensor(x: Any) -> Any:
    if is_array(x):
        return as_leaf(x)
    if not isinstance(x, (int, float, complex)):
        raise TypeError(f"a program takes tensors and numbers, not a {type(x).__name__}")
    return torch.tensor(x, dtype=_number_dtype(x))


def _nest(x: Any, leaves: list[Any]) -> Any:
    """How x is nested, in words and tuples, which a graph has; its leaves are appended."""
    if type(x) is dict:
        return "dict", tuple([(k, _nest(v, leaves)) for k, v in x.items()])
    if type(x) is list or type(x) is tuple:
        return type(x).__name__, tuple([_nest(y, leaves) for y in x])
    leaves.append(x)
    return None


def _filled(nest: Any, leaves: list[Any]) -> Any:
    """Leaves in a nest; they are taken off the list."""
    if nest is None:
        return leaves.pop(0)
    kind, parts = nest
    if kind == "dict":
        return {k: _filled(v, leaves) for k, v in parts}
    made = [_filled(y, leaves) for y in parts]
    return made if kind == "list" else tuple(made)


def _number_dtype(x: Any) -> Any:
    if isinstance(x, int):
        return torch.int64
    wide = torch.get_default_dtype() is torch.float64
    if isinstance(x, complex):
        return torch.complex128 if wide else torch.complex64
    return torch.get_default_dtype()
