"""Cotangents of the arguments of a LazyArray, by its head: dL = Re sum(conj(g) dy), as in PyTorch.

A matrix has a matrix for its cotangent, a LazyArray with an operator form: what the planner sees is
``g x^H``, ``inv(A).H``, their sums, never their dense forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._base.dlpack import fixed
from .._base.kind_flags import heads
from .._contractions.recorded import Deferred
from .._contractions.scatter import Scattered
from .._lazy import evaluate, numpy_functions
from .._lazy.build import inverse, scaled, view
from .._lazy.decompositions import Function
from .._lazy.kinds import Handed, Kind
from .._lazy.leaves import lazy
from .._lazy.matrix_functions import OfForm
from .._structured import determinants
from . import (
    blocks_together,
    cholesky_pulled,
    contractions,
    decompositions,
    estimates,
    inverses,
    kernels,
    markov_jets,
    markov_order,
    matrices,
    matrix_functions,
    multiples,
    reflections,
    slices,
)
from .pieces import along_rows, column_form, conj, pair, real_form, stop, times
from .shapes import row_of, unbroadcast


def refuse(y: Any, what: str) -> Any:
    """Raises NotImplementedError: the function has no derivative here."""
    raise NotImplementedError(f"{what} has no derivative here" + errors.built(y))


_DEEPEST = 16  # multiples, views and sums within each other that are looked through

# -- pieces ----------------------------------------------------------------------------------------


def _identity(g: Any, shape: Any, offset: int = 0) -> Any:
    """Each number of g along a diagonal of a matrix of a stack of this shape."""
    m, n = shape[-2:]
    if len(shape) == 2 and m == n and offset == 0:
        return times(lazy(_core.Identity(n)), g)
    count = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    if len(shape) == 2:
        return times(lazy(_core.Diag(fixed(np.ones(count)), offset, (m, n))), g)
    return _core.Diag(along_rows(g, count), offset, (m, n))


def _inner(a: Any, g: Any) -> Any:
    """sum(conj(a) g), of matrices as a trace."""
    if a.ndim < 2:
        return np.sum(conj(a) * g)
    found = numpy_functions.trace(view(a, 3) @ g)
    return found if found.ndim == 0 else np.sum(found)


# -- linear heads ----------------------------------------------------------------------------------


def _of_determinant(y: Any, g: Any, part: Any, rest: Any, depth: int = _DEEPEST) -> Any:
    """Of a part of y, a product of square matrices, a multiple or a view, where terms of g are
    c y^-H, as of a determinant: as (A B)^-H B^H = A^-H these are c A^-H of the part alone. `rest`
    has those of other terms. None: there are no such terms."""
    if depth == 0 or not is_lazy(g) or part.ndim != 2:
        return None
    if part.shape != y.shape or part.dtype != y.dtype:
        return None
    if g._head == "add":
        made = [_of_determinant(y, x, part, rest, depth - 1) for x in g._args]
        if made[0] is None and made[1] is None:
            return None
        first, second = (rest(x) if m is None else m for m, x in zip(made, g._args, strict=True))
        return first + second
    if g._head == "scale" and not (is_lazy(g._args[1]) and g._args[1].ndim):
        found = _of_determinant(y, g._args[0], part, rest, depth - 1)
        return None if found is None else times(found, g._args[1])
    of = g._args[0] if g._head == "view" else None
    if of is None or of._head != "inverse" or of._args[0] is not y:
        return None
    adjoint = g._more == 3 or (g._more == 1 and y.dtype.kind != "c")
    return view(inverse(part), 3) if adjoint else None


def _or_rest(y: Any, g: Any, part: Any, rest: Any) -> Any:
    found = _of_determinant(y, g, part, rest)
    return rest(g) if found is None else found


def _matmul(y: Any, g: Any, k: int) -> Any:
    a, b = y._args
    if max(a.ndim, b.ndim) > 2:
        return _stacked(a, b, g, k)
    if a.ndim == b.ndim == 1:
        return g * conj(y._args[1 - k])
    if b.ndim == 1:
        return pair(g, b) if k == 0 else view(a, 3) @ g
    if a.ndim == 1:
        return b.conj() @ g if k == 0 else pair(conj(a), conj(g))
    if a.shape != b.shape:
        return _beside(a, b, g, k)
    return _or_rest(y, g, y._args[k], lambda g: _beside(a, b, g, k))


def _beside(a: Any, b: Any, g: Any, k: int) -> Any:
    """g b^H, or a^H g: term by term where the other one has few entries, so that pairs stay
    pairs."""
    if is_lazy(g) and g._head in ("add", "scale") and _has_few_entries(b if k == 0 else a):
        if g._head == "scale":
            return scaled(_beside(a, b, g._args[0], k), g._args[1])
        found = [_beside(a, b, x, k) for x in _terms(g)[::-1]]
        return sum(found[1:], found[0])
    return g @ view(b, 3) if k == 0 else view(a, 3) @ g


# Not the stencils, whose products with sums meet in a spectrum.
_FEW_ENTRIES = (heads("few_entries") - heads("composed")) | heads("diagonal")


def _has_few_entries(x: Any, depth: int = _DEEPEST) -> bool:
    while x._head in ("view", "scale"):
        x = x._args[0]
    if x._head == "add":
        return depth > 0 and all(is_lazy(a) and _has_few_entries(a, depth - 1) for a in x._args)
    if x._head == "operator":
        return _is_light(x._args[0], depth)
    kind = x._more[0] if x._head == "made" else None
    return isinstance(kind, Kind) and matrices.head_of(kind.cls) in _FEW_ENTRIES


def _is_light(op: Any, depth: int) -> bool:
    while op._head in ("view", "scaled"):
        op = op.args[0]
    if op._head == "sum":
        return depth > 0 and all(_is_light(a, depth - 1) for a in op.args)
    return op._head in _FEW_ENTRIES


def _stacked(a: Any, b: Any, g: Any, k: int) -> Any:
    """Of a product of stacks; what one matrix is multiplied with counts as one wide matrix."""
    if a.ndim == 1:
        row = np.reshape(a, (1, -1))
        found = _stacked(row, b, np.reshape(g, (*g.shape[:-1], 1, -1)), k)
        return np.reshape(unbroadcast(found, row), a.shape) if k == 0 else found
    if b.ndim == 1:
        column = np.reshape(b, (-1, 1))
        found = _stacked(a, column, np.reshape(g, (*g.shape, 1)), k)
        return np.reshape(unbroadcast(found, column), b.shape) if k == 1 else found
    if k == 1:
        return view(a, 3) @ g
    if a.ndim == 2 and b.shape[:-2] == g.shape[:-2] and b._head in ("leaf", "call"):
        return _side_by_side(g) @ view(_side_by_side(b), 3)
    return g @ view(b, 3)


def _side_by_side(x: Any) -> Any:
    """The matrices of a stack side by side."""
    return np.reshape(np.moveaxis(x, -2, 0), (x.shape[-2], -1))


def _scale(y: Any, g: Any, k: int) -> Any:
    a, c = y._args
    if k == 0 and a.ndim < 2:
        return g * conj(c)
    if k == 0:
        return _or_rest(y, g, a, lambda g: times(g, conj(c)))
    return _of_number(a, g, c)


def _of_number(a: Any, g: Any, c: Any) -> Any:
    real = a.ndim == 2 and c.dtype.kind != "c"
    return multiples.inner(a, g) if real else _inner(a, g)


def _over(y: Any, g: Any, k: int) -> Any:
    a, c = y._args
    if k == 0:
        return _or_rest(y, g, a, lambda g: g / conj(c))
    return -_of_number(a, g, c) / conj(c * c)


def _inverse(y: Any, g: Any, k: int) -> Any:
    return scaled(_between(view(y, 3), g), -1)


_FEW = 8  # a product through fewer than one in so many columns is thin


def _terms(g: Any) -> list[Any]:
    """What a sum is of."""
    found, stack = [], [g]
    while stack:
        x = stack.pop()
        if is_lazy(x) and x._head == "add":
            stack += x._args
        else:
            found.append(x)
    return found


def _thin_factors(g: Any) -> Any:
    """U and V^H of a LowRank(U, V) of LazyArrays that is thin; None of others."""
    if g._head != "made" or not isinstance(g._more[0], Kind) or g._more[0].cls is not _core.LowRank:
        return None
    held = matrices.given_by_name(g)
    u, v = held["U"], held.get("V")
    u, v = lazy(u), lazy(u if v is None else v)
    wide = u.shape[-1] * _FEW > max(_FEW, g.shape[-1])
    return None if wide or held.get("C") is not None or g.ndim > 2 else (u, view(v, 3))


def _thin_between(h: Any, g: Any, depth: int) -> Any:
    """h g h of a product of thin matrices, a multiple or a view: h times each of them, which is
    shared and makes no matrix of the size of h. None for others."""
    if not is_lazy(g) or depth == 0:
        return None
    if _is_inverse_of(h, g):
        return h
    if g._head == "scale":
        inner = _between(h, g._args[0], depth - 1)
        return None if inner is None else scaled(inner, g._args[1])
    if g._head == "view":
        inner = _between(view(h, g._more), g._args[0], depth - 1)
        return None if inner is None else view(inner, g._more)
    pair_of = _as_pair(g, depth, max(_FEW, g.shape[-1]))
    return None if pair_of is None else (h @ pair_of[0]) @ (pair_of[1] @ h)


def _as_pair(g: Any, depth: int, rows: int) -> Any:
    """a and b of a product a @ b through few columns, which may stand within either factor of
    another product; None of others."""
    if not is_lazy(g) or depth == 0 or g.ndim != 2:
        return None
    if g._head == "scale":
        found = _as_pair(g._args[0], depth - 1, rows)
        return None if found is None else (scaled(found[0], g._args[1]), found[1])
    if g._head != "matmul":
        return _thin_factors(g)
    a, b = g._args
    if a.shape[-1] * _FEW <= rows:
        return a, b
    if (found := _as_pair(a, depth - 1, rows)) is not None:
        return found[0], found[1] @ b
    found = _as_pair(b, depth - 1, rows)
    return None if found is None else (a @ found[0], found[1])


def _is_inverse_of(h: Any, g: Any) -> bool:
    """Is one the inverse of the other, both seen through a mode? Determinants of inverses lead
    here."""
    if h._head == "view" and g._head == "view" and h._more == g._more:
        h, g = h._args[0], g._args[0]
    return any(x._head == "inverse" and x._args[0] is y for x, y in ((h, g), (g, h)))


def _between(h: Any, g: Any, depth: int = _DEEPEST) -> Any:
    """h g h, the thin terms of g by themselves; None where there are none, but at the top."""
    made: list[Any] = []
    rest: list[Any] = []
    for x in _terms(g):
        found = _thin_between(h, x, depth)
        (rest if found is None else made).append(x if found is None else found)
    if not made:
        if depth != _DEEPEST:
            return None
        by_value = inverses.between(h, g)
        return h @ g @ h if by_value is None else by_value
    if rest:
        made.append(h @ sum(rest[1:], rest[0]) @ h)
    return sum(made[1:], made[0])


def _index(y: Any, g: Any, k: int) -> Any:
    return slices.cotangent(y._args[0].shape, y._more, g)


# -- functions of forms ----------------------------------------------------------------------------


def _determinant(y: Any, g: Any, k: int) -> Any:
    f, a = y._more[0], y._args[0]
    by = g if f is determinants.logdet else g * conj(y)
    return times(view(inverse(a), 3), by)


def _trace(y: Any, g: Any, k: int) -> Any:
    return _identity(g, y._args[0].shape, y._more[1].get("offset", 0))


def _diagonal(y: Any, g: Any, k: int) -> Any:
    return _core.Diag(g, y._more[1].get("offset", 0), tuple(y._args[0].shape[-2:]))


def _sum(y: Any, g: Any, k: int) -> Any:
    a, kwargs = y._args[0], y._more[1]
    if a.ndim != 2 or kwargs.get("keepdims") or kwargs.get("dtype") is not None:
        row = row_of(y._more[0])
        return row(y, g, k) if row else refuse(y, "this sum")
    m, n = a.shape
    c = g / (a.size / max(1, y.size)) if y._more[0] is np.mean else g
    axis = kwargs.get("axis")
    if type(axis) is tuple and len(axis) == 1:
        axis = axis[0]
    if axis is None or type(axis) is tuple:
        return times(pair(lazy(fixed(np.ones(m))), lazy(fixed(np.ones(n)))), c)
    if axis % 2 == 0:
        return pair(lazy(fixed(np.ones(m))), conj(c))
    return pair(c, lazy(fixed(np.ones(n))))


_OF_FORM: dict[Any, Callable[[Any, Any, int], Any]] = {
    determinants.det: _determinant,
    determinants.logdet: _determinant,
    evaluate.trace: _trace,
    evaluate.diagonal: _diagonal,
    np.sum: _sum,
    np.mean: _sum,
}


def _of_form(y: Any, g: Any, k: int) -> Any:
    f = y._more[0]
    if decompositions.is_part(y):
        return decompositions.part(y, g)
    if estimates.is_samples(y):
        return estimates.cotangent(y, g)
    row = _OF_FORM.get(f)
    if row is None and isinstance(f, Function) and f.name in decompositions.WHOLE:
        return decompositions.WHOLE[f.name](y, g)
    if row is None:
        name = getattr(f, "__name__", type(f).__name__).lstrip("_")
        return refuse(y, name if "." not in name else f"np.{name}")
    return row(y, g, k)


# -- calls -----------------------------------------------------------------------------------------


def sources(y: Any) -> list[tuple[Any, Any]]:
    """(key, argument) of each argument that may have a cotangent. The sign and logarithm of one
    determinant are functions of its matrix."""
    if y._head in ("call", "made"):
        f = y._more[0]
        if f is stop:
            return []
        if isinstance(f, Formula):
            return list(enumerate(y._args))[1:]
        if y._head == "call" and decompositions.is_part(y):
            return [(0, y._args[0]._args[0])]
        if f in (determinants.sign_of, determinants.logabs_of):
            return [(0, y._args[0]._args[0])]
        if isinstance(f, matrices.Cotangent):
            return matrices.sources(y)
    return list(enumerate(y._args))


def _call(y: Any, g: Any, k: int) -> Any:
    f = y._more[0]
    if f is determinants.logabs_of:
        return times(view(inverse(y._args[0]._args[0]), 3), g)
    if f is determinants.sign_of:
        a = y._args[0]._args[0]
        if y.dtype.kind != "c":
            return times(lazy(_core.Zeros(tuple(a.shape), a.dtype)), 1)
        phase = np.imag(g * np.conjugate(y)) * 1j
        return times(view(inverse(a), 3), phase)
    if decompositions.is_part(y):
        return decompositions.part(y, g)
    if isinstance(f, (Differentiated, decompositions.OfValues, cholesky_pulled.Pulled)):
        return f.cotangent(y, g, k)
    if isinstance(f, Deferred):
        return contractions.cotangent(y, g, k)
    if isinstance(f, Scattered):
        return contractions.gathered(f, g)
    if k == 0 and f in reflections.LINEAR:
        return reflections.again(y, g)
    if k == 1 and f in reflections.LINEAR:
        return unbroadcast(reflections.LINEAR[f](y, g), y._args[k])
    if f is reflections.second_of_reflections:
        return reflections.once_more(y, g)
    if f in kernels.FUNCTIONS:
        return kernels.cotangent(y, g, k)
    if f in markov_jets.FUNCTIONS:
        return markov_jets.cotangent(y, g, k)
    if f in markov_order.FUNCTIONS:
        return markov_order.cotangent(y, g, k)
    row = row_of(f)
    if row is None:
        name = getattr(f, "__name__", type(f).__name__).lstrip("_")
        return refuse(y, f"{name} of a LazyArray")
    like = y._args[k]
    return unbroadcast(row(y, g, k), like)


class Differentiated:
    """A function of values with a rule of its own: (value, arguments, cotangent) -> cotangents."""

    skip = 0  # arguments that the rule says nothing of, the first ones

    def __init__(self, function: Any, rule: Any) -> None:
        self.function, self.rule = function, rule
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def cotangent(self, y: Any, g: Any, k: int) -> Any:
        args = y._args[self.skip :]
        found = self.rule(y, args, g)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(args):
            raise ValueError(
                f"the rule of {self.__name__} gave {len(found)} cotangents for "
                f"{len(args)} arguments"
            )
        if found[k - self.skip] is None:
            return None
        got, shape = lazy(found[k - self.skip]), tuple(y._args[k].shape)
        if tuple(got.shape) != shape:
            raise ValueError(
                f"the rule of {self.__name__} gave a cotangent of shape {got.shape} for an "
                f"argument of shape {shape}"
            )
        return got


class Formula(Differentiated):
    """A formula with a rule of its own; the formula is the first argument."""

    skip = 1

    def __call__(self, *args: Any) -> Any:
        return args[0]


def _made(y: Any, g: Any, k: int) -> Any:
    f = y._more[0]
    if isinstance(f, Kind):
        found = blocks_together.of_block(y, g, k)
        return matrices.of_kind(y, g, k) if found is None else found
    if isinstance(f, matrices.Cotangent):
        return matrices.of_cotangent(y, g, k, kernels.grown(y, g))
    if isinstance(f, OfForm):
        return matrix_functions.of_form(y, g, k)
    if isinstance(f, Handed):
        return refuse(y, f"a gradient by an operator, a {f.__name__},")
    if decompositions.is_part(y):
        return decompositions.part(y, g)
    if f is column_form:
        return np.reshape(g, y._args[0].shape)
    if f is real_form:
        return g
    return refuse(y, getattr(f, "__name__", "this"))


RULES: dict[str, Callable[[Any, Any, int], Any]] = {
    "matmul": _matmul,
    "add": lambda y, g, k: g,
    "scale": _scale,
    "over": _over,
    "view": lambda y, g, k: _or_rest(y, g, y._args[0], lambda g: view(g, y._more)),
    "inverse": _inverse,
    "made": _made,
    "index": _index,
    "of form": _of_form,
    "call": _call,
}
