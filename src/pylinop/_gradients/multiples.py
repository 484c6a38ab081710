"""The cotangent of c of a multiple c A, c real: the inner product of A with the cotangent G of c A.
Where A's entries are linear in the parameters of its kind, that is the sum of the parameters' inner
products with their own cotangents, which go by the form of G; trace(A^H G) would take the dense
form of a determinant's."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.kind_flags import heads, names
from .._lazy import numpy_functions
from .._lazy.build import inverse, scaled, view
from .._lazy.functions_of_structure import kind_of, terms
from .._lazy.kinds import Kind, filled
from .._lazy.leaves import lazy
from .._lazy.matrix_functions import made
from . import matrices

__all__ = ["ALONG_PAIR", "SLOPES", "THIN", "inner", "traced"]

_SPECTRAL = names("joins") - names("entries")  # eigenvectors are those of the operands
_TERMS = 8  # of a cotangent, each by itself
_MOST = 64  # sums, multiples and views within each other that are taken apart

THIN = 8  # of a pair: as many rows a column, at least
ALONG_PAIR = "derivative of expm along a pair"

# Of the others their dense form has as few numbers.
_JOINTLY = heads("linear") - heads("held")
_IN_SOME = {"quasiseparable": (0, 2), "sparse": (1,)}  # linear in these, the others as they are


def inner(a: Any, g: Any) -> Any:
    """Re sum(conj(a) g) of two matrices: of each term of a sum by itself, where they are few."""
    apart = [(_under_function(a, x), x) for x in _terms(g)]
    if any(found is not None for found, _ in apart):
        return sum(inner(a, x) if found is None else found for found, x in apart)
    found: list[Any] = []
    stack: list[tuple[Any, Any, list[Any]]] = [(a, g, [])]
    for _ in range(_MOST):
        if not stack:
            break
        x, h, numbers = stack.pop()
        if x._head == "add":
            stack += [(term, h, numbers) for term in x._args[::-1]]
        elif x._head == "view":
            stack.append((x._args[0], view(h, x._more), numbers))
        elif x._head == "scale" and _is_real(x._args[1]):
            stack.append((x._args[0], h, [*numbers, x._args[1]]))
        else:
            beside = kind_of(x) is _core.Sparse and _holds_inverse(h)
            spectral = _is_spectral(x) or kind_of(x) is _core.Identity
            term = _by_spectrum(x, h) if spectral else None
            term = term if beside or term is not None else _by_parameters(x, h)
            term = traced(x, h) if term is None else term
            for c in numbers:
                term = term * c
            found.append(term)
    return traced(a, g) if stack else sum(found[1:], found[0])


def _terms(g: Any) -> list[Any]:
    """The terms of a sum, and of multiples of sums, where they are few; else g itself."""
    found: list[Any] = []
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(g, ())]
    while waiting:
        x, numbers = waiting.pop()
        if x._head == "add":
            waiting += [(y, numbers) for y in x._args[::-1]]
        elif x._head == "scale" and _is_real(x._args[1]) and _holds_sum(x):
            waiting.append((x._args[0], (*numbers, x._args[1])))
        else:
            found.append(functools.reduce(scaled, numbers, x))
        if len(found) + len(waiting) > _TERMS:
            return [g]
    return found


def _holds_inverse(g: Any) -> bool:
    """Is a term of g an inverse times something? The entries of that, which would be read where
    those of a sparse matrix stand, have no way of their own; the trace of all together has."""
    waiting = [(g, False)]
    for _ in range(_MOST):
        if not waiting:
            break
        x, within = waiting.pop()
        x = _bare(x)
        if x._head == "inverse" and within:
            return True
        if x._head in ("matmul", "add"):
            waiting += [(part, within or x._head == "matmul") for part in x._args]
    return False


def _chains(g: Any) -> list[list[tuple[Any, int]]] | None:
    """The products that g is the sum of, each as its factors and how they are seen; None: many."""
    done: list[list[tuple[Any, int]]] = []
    waiting: list[tuple[list[tuple[Any, int]], list[tuple[Any, int]]]] = [([], [(g, 0)])]
    for _ in range(8 * _MOST):
        if not waiting:
            return done
        before, rest = waiting.pop()
        if not rest:
            done.append(before)
            continue
        (x, mode), *rest = rest
        if x._head == "view":
            waiting.append((before, [(x._args[0], mode ^ x._more), *rest]))
        elif x._head == "matmul":
            two = [(y, mode) for y in x._args]
            waiting.append((before, two[:: -1 if mode & 1 else 1] + rest))
        elif x._head == "add":
            waiting += [(before, [(y, mode), *rest]) for y in x._args[::-1]]
        elif x._head == "scale" and _bare(x)._head in ("add", "matmul") and _is_real(x._args[1]):
            number = scaled(lazy(_core.Identity(x.shape[-1])), x._args[1])
            waiting.append((before, [(x._args[0], mode), (number, 0), *rest]))
        else:
            waiting.append(([*before, (x, mode)], rest))
        if len(waiting) + len(done) > 4 * _TERMS:
            return None
    return None


def _bare(x: Any) -> Any:
    """Without multiples and views."""
    while x._head in ("scale", "view"):
        x = x._args[0]
    return x


def _of_spectrum(a: Any, factors: list[tuple[Any, int]]) -> bool:
    """Are these sums of a and the identity alone, and inverses of such?"""
    held = (_bare(x) for x, _ in factors)
    return all(_commutes(a, x._args[0] if x._head == "inverse" else x) for x in held)


def _is_spectral(x: Any) -> bool:
    cls = kind_of(x)
    return cls is not None and cls.__name__ in _SPECTRAL


def _spectral_in(chains: list[list[tuple[Any, int]]]) -> Any:
    """The Kron or KronSum in the first inverse there is; None: it has none."""
    inverses = (_bare(x) for factors in chains for x, _ in factors)
    M = next((x._args[0] for x in inverses if x._head == "inverse"), None)
    held = (terms(M) if M is not None else None) or []
    return next((x for x, _, _ in held if _is_spectral(x)), None)


def _by_spectrum(a: Any, g: Any) -> Any:
    """Of what is a sum of products of sums of K and the identity, and inverses of such, and of
    pairs, a being K or the identity: the traces of those beside a are sums over the eigenvalues of
    K, and so are further derivatives; partial traces take dense forms. None of another one."""
    chains = _chains(g)
    K = a if _is_spectral(a) else _spectral_in(chains or [])
    if (
        K is None
        or not chains
        or not all(
            _of_spectrum(K, factors) or min(x.shape[-1] for x, _ in factors) * THIN <= a.shape[-1]
            for factors in chains
        )
    ):
        return None
    found = [_trace_of_chain([view(a, 3), *(view(x, m) for x, m in chain)]) for chain in chains]
    return sum(found[1:], found[0])


def _trace_of_chain(factors: list[Any]) -> Any:
    """Round to the first thin factor, if there is one: thin products alone, and a sum."""
    thin = next((k for k, x in enumerate(factors) if x.shape[-1] < x.shape[-2]), None)
    if thin is None:
        return np.real(numpy_functions.trace(functools.reduce(operator.matmul, factors)))
    rows = functools.reduce(operator.matmul, [*factors[thin + 1 :], *factors[:thin]])
    return np.real(np.sum(rows * np.swapaxes(factors[thin], -1, -2)))


# f'(M), of M and f(M)
SLOPES: dict[str, Callable[[Any, Any], Any]] = {
    "expm": lambda M, y: y,
    "logm": lambda M, y: inverse(M),
    "sqrtm": lambda M, y: scaled(inverse(y), 0.5),
}
_DERIVATIVES = (ALONG_PAIR, *(f"derivative of {name}" for name in SLOPES))


def _under_function(a: Any, g: Any) -> Any:
    """Where g is the cotangent of a matrix under a function of matrices, and a commutes with that,
    being what it is a multiple of, but for terms c I; else None."""
    if g._head == "scale" and _is_real(g._args[1]):
        found = _under_function(a, g._args[0])
        return None if found is None else found * g._args[1]
    if g._head != "made" or getattr(g._more[0], "name", "") not in _DERIVATIVES:
        return None
    M, *P = g._args
    more = dict(g._more[0].kwargs)
    name, function = more.pop("of"), more.pop("by")
    if name not in SLOPES or not _commutes(a, M):
        return None
    along = SLOPES[name](M, made(name, function, M, M.shape, **more))
    if len(P) == 1:
        return traced(a @ along, P[0])
    u, v = P  # a function that is only applied need not be made
    return np.real(np.sum(np.conjugate(u) * (a @ (along @ v))))


def _commutes(a: Any, M: Any) -> bool:
    """Is M a sum of multiples of a and of the identity?"""
    if kind_of(a) is _core.Identity:
        return True
    parts = terms(M)
    return parts is not None and all(
        kind_of(x) is _core.Identity or (not mode and _is_same(x, a)) for x, _, mode in parts
    )


def _is_same(x: Any, y: Any) -> bool:
    if x._head == "operator" and y._head == "operator":
        return x._args[0] is y._args[0]
    return x is y


def traced(a: Any, g: Any) -> Any:
    """By the trace of a^H g, term by term of g, a pair, an inverse: each has a way of its own."""
    found: list[Any] = []
    stack: list[tuple[Any, list[Any]]] = [(g, [])]
    while stack:
        x, times = stack.pop()
        if x._head == "add" and len(stack) + len(found) < _TERMS:
            stack += [(y, times) for y in x._args[::-1]]
        elif x._head == "scale" and _is_real(x._args[1]) and _holds_sum(x._args[0]):
            stack.append((x._args[0], [*times, x._args[1]]))
        else:
            value = np.real(numpy_functions.trace(view(a, 3) @ x))
            for c in times:
                value = value * c
            found.append(value)
    return sum(found[1:], found[0])


def _holds_sum(x: Any) -> bool:
    while x._head == "scale":
        x = x._args[0]
    return bool(x._head == "add")


def _is_real(c: Any) -> bool:
    return np.result_type(c.dtype if is_lazy(c) else c).kind != "c"


def _by_parameters(a: Any, g: Any) -> Any:
    """By those of a kind; None where A is none that is linear in them."""
    if a._head == "operator":
        return _of_operator(a._args[0], g)
    if a._head != "made" or not isinstance(a._more[0], Kind):
        return None
    cls = a._more[0].cls
    head = matrices.head_of(cls)
    if not _is_linear(head):
        return None
    args, kwargs = filled((a._more[0].args, a._more[0].kwargs), a._args)
    if _arrays((args, kwargs.values())):  # constants beside LazyArrays
        a = cls(*map(_lazily, args), **{k: _lazily(x) for k, x in kwargs.items()})
        if a._head != "made" or not isinstance(a._more[0], Kind) or a._more[0].cls is not cls:
            return None
    counted = [
        (x, matrices.of_kind(a, g, k))
        for k, (x, hole) in enumerate(zip(a._args, a._more[0].holes, strict=True))
        if _counts(head, *hole)
    ]
    return _total(counted)


def _of_operator(op: Any, g: Any) -> Any:
    if op._head == "full" and op._init is not None and op.ndim == 2:
        return np.real(np.conjugate(op._given("c")) * np.sum(g))
    if op._init is None or not _is_linear(op._head):
        return None
    parts = matrices.parts(op)
    if len(parts) < len(_arrays(list(op._init))):
        return None  # some are of integers
    return _total(
        [(lazy(x), matrices.of_part(op, g, k, x)) for k, x in parts if _counts(op._head, *k)]
    )


def _total(counted: list[tuple[Any, Any]]) -> Any:
    """The sum of inner products of pairs."""
    total: Any = None
    for x, cot in counted:
        if cot is None or x.dtype.kind not in "fc":
            return None
        form = x.ndim == 2 and x._head in ("operator", "made", "add", "view", "scale")
        term = inner(x, cot) if form else np.sum(np.real(np.conjugate(x) * cot))
        total = term if total is None else total + term
    return total


def _is_linear(head: str) -> bool:
    return head in _JOINTLY or head in _IN_SOME or head == "kron"


def _counts(head: str, number: int, place: int) -> bool:
    """Is the parameter one of those that a kind is linear in? Of a Kron, one factor is enough."""
    return place == 0 if head == "kron" else number in _IN_SOME.get(head, (number,))


def _arrays(x: Any) -> list[Any]:
    """The arrays and operators within arguments."""
    if isinstance(x, (np.ndarray, _core.Operator)):
        return [x]
    if isinstance(x, (list, tuple)) or type(x) is type({}.values()):
        return [a for y in x for a in _arrays(y)]
    return []


def _lazily(x: Any) -> Any:
    if isinstance(x, (np.ndarray, _core.Operator)):
        return lazy(x)
    return type(x)(map(_lazily, x)) if type(x) in (list, tuple) else x
