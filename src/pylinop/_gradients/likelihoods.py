"""Likelihoods of Markov processes within an expression that is differentiated by numbers: parts of
it that are b^T A^-1 b or log det A, in whatever spelling, A a multiple of a Matern covariance of
points on a line, or of a given quasi-separable matrix, plus noise, become what one sweep with
derivatives gives (markov_jets.py). Where that sweep does not say, and for third derivatives, the
expression as it was stands for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, cast

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.checks import is_lazy
from .._lazy import numpy_functions, text
from .._lazy.build import inverse, slogdet
from .._lazy.kinds import Kind, parameters
from .._lazy.leaves import lazy
from .._lazy.program import evaluate
from .._operators.convert import as_operator
from .._operators.parameters import written
from .._operators.quasiseparable_formulas import markov_rows, matern
from .._structured import determinants
from . import markov_jets, markov_order
from .held import is_apart
from .markov_jets import Process, split
from .matrices import given_by_name, head_of
from .pieces import call, one
from .sweep import named, sweep_of_derivative
from .watched import is_watch

__all__ = ["shortened", "within"]

_FLOAT = np.dtype(np.float64)


class _Found(NamedTuple):
    """The numbers variance, rate and noise, what the process is of, what else is read but b."""

    numbers: tuple[Any, ...]
    own: tuple[Any, ...]
    rest: tuple[Any, ...]
    said: Process


class _States(NamedTuple):
    """A process without noise; `numbers`: its variance and rate."""

    by: str
    order: int
    numbers: tuple[Any, Any]
    own: tuple[Any, ...]


# Of a Kernel: small ones are computed in C as they are, without a call.
_POINTS = 256


# -- what stands for the sweep ---------------------------------------------------------------------


def _covariance(theta: Any, own: Any, said: Process) -> Any:
    if said.by == "generators":
        return _core.QuasiSeparable(*own) * theta[0]
    name, length = f"matern{2 * said.order + 1}2", math.sqrt(2 * said.order + 1) / theta[1]
    if said.by == "points":
        return _core.Kernel(name, own[0], variance=theta[0], length_scale=length)
    return _core.QuasiSeparable(*matern(name, own[0], theta[0], length))


def _both(theta: Any, arrays: Any, said: Process) -> tuple[Any, Any]:
    """b^T A^-1 b and log det A as expressions of theta."""
    own, b, scale, more = split([lazy(a) for a in arrays], said)
    noise = _core.Identity(b.size) * theta[2] if scale is None else _core.Diag(scale * theta[2])
    A = _covariance(theta, own, said) + noise
    A = A if more is None else A + _core.Diag(more)
    if said.modulus:
        log = slogdet(A)[1]
    else:
        log = _core._LazyArray("of form", (A,), (), _FLOAT, (determinants.logdet, {}))
    return b @ (inverse(A) @ b), log


def general(theta: Any, weights: Any, arrays: tuple[Any, ...], said: Process) -> Any:
    """As markov_jets.jets, or with weights as markov_jets.along, by the ways that are open to all
    matrices; of LazyArrays a LazyArray."""
    t = lazy(theta)
    pair = _both(t, arrays, said)
    slopes = [sweep_of_derivative(x, {id(t): t}, one(_FLOAT))[id(t)] for x in pair]
    if weights is None:
        if is_lazy(theta):
            return np.concatenate([np.stack(pair)[:, None], np.stack(slopes)], axis=1)
        found = evaluate(*pair, *slopes)
        return np.stack([np.r_[found[k], found[2 + k]] for k in range(2)])
    w = lazy(weights)
    total = np.sum(w[0] * slopes[0]) + np.sum(w[1] * slopes[1])
    if is_lazy(theta) or is_lazy(weights):
        return sweep_of_derivative(total, {id(t): t}, one(_FLOAT))[id(t)]
    return np.asarray(sweep_of_derivative(total, {id(t): t}, one(_FLOAT))[id(t)])


# -- where it stands -------------------------------------------------------------------------------


def _is_call(x: Any, function: Any) -> bool:
    return is_lazy(x) and x._head == "call" and x._more[0] is function


def _is_leaf(x: Any) -> bool:
    """Is x an array as it is, watched or not?"""
    return (x._head == "leaf" and x._more is None) or is_watch(x)


def _first_of(x: Any, function: Any) -> Any:
    """The first argument of a call of a function; without a function x itself; None of others."""
    return x if function is None else x._args[0] if _is_call(x, function) else None


def _array(x: Any, ndim: int) -> Any:
    """The memory of a constant array in double precision, NaN-free or not; None of others."""
    if is_lazy(x):
        x = x._args[0] if _is_leaf(x) else None
    return x if type(x) is np.ndarray and x.dtype == _FLOAT and x.ndim == ndim else None


def _number(x: Any) -> Any:
    """A real number in double precision, also a LazyArray, as which arrays are read when it is
    computed; None of others."""
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return float(x)
    real = getattr(x, "dtype", None) == _FLOAT and getattr(x, "shape", None) == ()
    if not real or isinstance(x, _core.Operator):
        return None
    return x if is_lazy(x) else lazy(x)


def _over(c: float, x: Any) -> Any:
    """c / x; None where that is a number that is not."""
    return c / x if is_lazy(x) or x != 0 else None


def _product(x: Any) -> tuple[Any, Any] | None:
    """Factors of a product of a number with a vector, the number first."""
    if not _is_call(x, np.multiply) or len(x._args) != 2 or x._more[1]:
        return None
    a, b = x._args
    if _number(a) is None:
        a, b = b, a
    return (a, b) if _number(a) is not None and _array(b, 1) is not None else None


def _is_vector(x: Any) -> bool:
    """Is it a LazyArray of real numbers in double precision?"""
    return is_lazy(x) and x.ndim == 1 and x.dtype == _FLOAT and x._guard is None


def _spread(x: Any) -> Any:
    """The number that fills an array; None of others."""
    return _first_of(x, np.broadcast_to)


def _matern(x: Any) -> _States | None:
    """A covariance of `quasiseparable` of LazyArrays."""
    d, p, q, a = x._args
    variance = _number(_spread(d))
    if variance is None or not _is_call(p, markov_rows) or not _is_call(a, markov_rows):
        return None
    order = p._more[1]["order"]
    if p._more[1] != {"order": order, "moves": False, "derivative": 0}:
        return None
    if a._more[1] != {"order": order, "moves": True, "derivative": 0}:
        return None
    q = _first_of(_first_of(q, numpy_functions.reshaped), np.multiply if order == 2 else None)
    parts = _product(p._args[0])
    if p._args[0] is not a._args[0] or _spread(q) is not variance or parts is None:
        return None
    return _States("steps", order, (variance, parts[0]), (parts[1],))


def _kernel(values: dict[str, Any]) -> _States | None:
    """A Matern `Kernel` of points on a line."""
    order = _ORDERS.get(values["function"]) if isinstance(values["function"], str) else None
    x = _array(values["x"], 2)
    if order is None or x is None or values.get("y") is not None or x.shape[1] != 1:
        return None
    given = [values.get(name) for name in ("variance", "length_scale")]
    variance, length = (_number(1.0 if c is None else c) for c in given)
    rate = None if length is None else _over(math.sqrt(2 * order + 1), length)
    if variance is None or rate is None or x.shape[0] < _POINTS:
        return None
    return _States("points", order, (variance, rate), (values["x"],))


_ORDERS = {"matern12": 0, "matern32": 1, "matern52": 2}


def _given(held: Any, triangular: bool) -> _States | None:
    """A quasi-separable matrix of few states, of constant arrays."""
    dims = [1, 2, 2, 2]
    arrays = [_array(a, k) for a, k in zip(held, dims, strict=True)]
    if triangular or any(a is None for a in arrays):
        return None
    states = arrays[1].shape[-1]
    return _States("generators", states - 1, (1.0, 1.0), tuple(held)) if 0 < states < 4 else None


def _quasiseparable(x: Any, values: dict[str, Any]) -> _States | None:
    if x._head == "made" and len(x._args) == 4 and (found := _matern(x)) is not None:
        return found
    return _given([values[name] for name in "dpqa"], bool(values.get("triangular")))


_PROCESSES: dict[str, Callable[[Any, dict[str, Any]], _States | None]] = {
    "quasiseparable": _quasiseparable,
    "kernel": lambda x, values: _kernel(values),
}


def _head(x: Any) -> str:
    """The head of a kind, of arrays or of LazyArrays."""
    if x._head == "operator":
        return str(x._args[0]._head)
    made = x._head == "made" and isinstance(x._more[0], Kind)
    return str(head_of(x._more[0].cls)) if made else ""


def _states(x: Any) -> _States | None:
    """The process that a term is; None of others."""
    if x._head != "operator":
        return _PROCESSES[_head(x)](x, given_by_name(x))
    op = x._args[0]
    if op._init is None:
        return None
    names = parameters(cast(Any, type(op)))
    return _PROCESSES[op._head](x, {name: op._given(name) for name, _ in names})


class _Noise(NamedTuple):
    """number * scale (None: 1) on the diagonal."""

    number: Any
    scale: Any


def _diagonal(x: Any, times: Any) -> _Noise | None:
    """A term that is diagonal, times a number."""
    if x._head == "operator":
        op = x._args[0]
        if op._head == "identity":
            return _Noise(times, None)
        if op._head != "diag" or op._init is None or op.shape[0] != op.shape[1]:
            return None
        d = op._given("d")
        return _Noise(times, d) if _array(d, 1) is not None and d.size == op.shape[0] else None
    if x._head != "made" or not isinstance(x._more[0], Kind) or head_of(x._more[0].cls) != "diag":
        return None
    if len(x._args) != 1 or x._args[0].shape != x.shape[:1]:
        return None
    d = x._args[0]
    if _array(d, 1) is not None:
        return _Noise(times, d)
    filled = _number(_spread(d))
    if filled is not None:
        return _Noise(_times(filled, times), None)
    parts = _product(d)
    if parts is not None:
        return _Noise(_times(parts[0], times), parts[1])
    return _Noise(times, d) if _is_vector(d) else None


def _times(a: Any, b: Any) -> Any:
    if not is_lazy(a) and not is_lazy(b):
        return float(a) * float(b)
    return b if not is_lazy(a) and a == 1 else a if not is_lazy(b) and b == 1 else a * b


def _terms(A: Any) -> list[tuple[Any, Any]] | None:
    """(term, number it is multiplied by) of a real symmetric sum; None where one is no number."""
    found: list[tuple[Any, Any]] = []
    stack: list[tuple[Any, Any]] = [(A, 1.0)]
    while stack and len(found) < 16:
        x, times = stack.pop()
        if x._head == "add":
            stack += [(y, times) for y in x._args[::-1]]
        elif x._head == "view":
            stack.append((x._args[0], times))
        elif x._head in ("scale", "over"):
            c = _number(x._args[1])
            if c is not None and x._head == "over":
                c = _over(1.0, c)
            if c is None:
                return None
            stack.append((x._args[0], _times(c, times)))
        elif x._head == "operator" and written(x._args[0], "scaled", "sum"):
            op = x._args[0]
            c = _number(op._operands[1]) if op._by == "scaled" else 1.0
            if c is None:
                return None
            parts = op._operands[:1] if op._by == "scaled" else op._operands[::-1]
            stack += [(lazy(as_operator(a)), _times(c, times)) for a in parts]
        else:
            found.append((x, times))
    return None if stack else found


def _gathered(noises: list[_Noise]) -> tuple[Any, Any, Any] | None:
    """noise, scale and more of the terms together; None where they are no such form."""
    plain: Any = 0.0
    own: list[_Noise] = []
    for noise in noises:
        if noise.scale is None:
            plain = noise.number if not is_lazy(plain) and plain == 0 else plain + noise.number
        else:
            own.append(noise)
    constant = [x for x in own if not is_lazy(x.number) and x.number == 1]
    own = [x for x in own if is_lazy(x.number) or x.number != 1]
    if len(constant) > 1 or len(own) > 1 or (own and (is_lazy(plain) or plain != 0)):
        return None
    more = constant[0].scale if constant else None
    return (own[0].number, own[0].scale, more) if own else (plain, None, more)


def _process(A: Any) -> _Found | None:
    """A Matern process with noise; None of what else A may be."""
    if not is_lazy(A) or A.ndim != 2 or A.dtype != _FLOAT:
        return None
    terms = _terms(A)
    states, noises = None, []
    for x, times in terms or ():
        if _head(x) in _PROCESSES:
            if states is not None:
                return None
            states, multiple = _states(x), times
            if states is None:
                return None
            continue
        noise = _diagonal(x, times)
        if noise is None:
            return None
        noises.append(noise)
    gathered = _gathered(noises)
    if states is None or gathered is None:
        return None
    noise, scale, more = gathered
    variance, rate = states.numbers
    rest = tuple(a for a in (scale, more) if a is not None)
    said = Process(states.by, states.order, scale is not None, more is not None, False)
    return _Found((_times(variance, multiple), rate, noise), states.own, rest, said)


def _key(x: Any) -> int | None:
    """By which a vector is known again: a constant's memory, or a LazyArray; None of others."""
    a = _array(x, 1)
    return id(a) if a is not None else id(x) if _is_vector(x) else None


def _same(u: Any, v: Any) -> bool:
    """Are they one vector?"""
    return _key(u) is not None and _key(u) == _key(v)


def _inverse_times(x: Any) -> tuple[Any, Any] | None:
    """A and b of A^-1 b, A symmetric; also b A^-1."""
    if not is_lazy(x) or x._head != "matmul" or x.ndim != 1:
        return None
    a, b = x._args
    if is_lazy(b) and b._head == "inverse":
        a, b = b, a
    return (a._args[0], b) if is_lazy(a) and a._head == "inverse" else None


def _quadratic(x: Any) -> tuple[Any, Any, Any] | None:
    """A and both places of b in b^T A^-1 b."""
    if x.ndim or x.dtype != _FLOAT:
        return None
    parts: tuple[Any, ...] = x._args if x._head == "matmul" else ()
    if x._head == "call" and x._more[0] is np.sum and is_lazy(x._args[0]):
        inner = x._args[0]
        plain = x._more[1].get("axis") is None and set(x._more[1]) <= {"axis"}
        if plain and inner.ndim == 1 and _is_call(inner, np.multiply) and not inner._more[1]:
            parts = inner._args
    for u, v in (parts, parts[::-1]) if len(parts) == 2 else ():
        found = _inverse_times(v)
        if found is not None and _same(u, found[1]):
            return found[0], u, found[1]
    return None


def _of_determinant(x: Any) -> Any:
    """A of log |det A|; None of others."""
    if x._head == "of form" and x._more[0] is determinants.logdet:
        return x._args[0]
    return x._args[0]._args[0] if _is_call(x, determinants.logabs_of) else None


def _leads(found: _Found, wanted: Collection[int]) -> bool:
    """Does a number depend on what is wanted, and what the process is of does not?"""
    if any(id(a) in wanted for a in found.own):
        return False
    lazies = [x for x in found.numbers if is_lazy(x)]
    return any(id(y) in wanted for x in lazies for y in text.postorder(x))


def _in_order(A: Any, wanted: Collection[int]) -> markov_order.Sorted | None:
    """A sum with Matern kernels of points on a line, as far as numbers of theirs depend on what is
    wanted, in the order of the points; None of what else A may be."""
    if not is_lazy(A) or A.ndim != 2 or A.dtype != _FLOAT:
        return None
    found: list[_Found] = []
    kernels, noises, low = list[Any](), list[Any](), list[Any]()
    for x, times in _terms(A) or ():
        if _head(x) in _PROCESSES:
            states = _states(x)
            if states is None or states.by != "points":
                return None
            said = Process(states.by, states.order, False, False, False)
            found.append(_Found((*states.numbers, 0.0), states.own, (), said))
            kernels.append((times, functools.partial(_generators, states)))
        elif (noise := _diagonal(x, times)) is not None:
            noises.append(noise)
        elif (U := markov_order.low_rank(x)) is not None:
            low.append((times, U))
        else:
            return None
    if not found or len({_place(f.own[0]) for f in found}) > 1:
        return None
    if any(id(a) in wanted for f in found for a in f.own):
        return None
    if not any(_leads(f, wanted) for f in found):
        return None
    return markov_order.Sorted(A, found[0].own[0], kernels, noises, low)


def _place(x: Any) -> tuple[Any, ...]:
    """Where the numbers of a constant lie: the same of two views of one array."""
    a = _array(x, 2)
    return a.__array_interface__["data"][0], a.shape, a.strides


def _generators(states: _States, steps: Any) -> tuple[Any, ...]:
    length = math.sqrt(2 * states.order + 1) / states.numbers[1]
    if is_lazy(length):
        length = call(markov_order.positive, (length,), (), _FLOAT)
    return matern(f"matern{2 * states.order + 1}2", steps, states.numbers[0], length)


def _replaced(order: list[Any], wanted: Collection[int]) -> dict[int, Any]:
    """What stands for the parts of an expression that are such, by their ids."""
    known: dict[int, _Found | None] = {}
    made: dict[Any, Any] = {}
    vectors: dict[int, Any] = {}
    moduli: set[int] = set()
    parts: list[tuple[Any, Any, Any, int]] = []
    for x in order:
        A, u, b = _quadratic(x) or (_of_determinant(x), None, None)
        while is_lazy(A) and A._head == "view":
            A = A._args[0]  # which is symmetric
        if A is None or (u is not b and (id(u) in wanted or id(b) in wanted)):
            continue
        if id(A) not in known:
            found = _process(A)
            known[id(A)] = found if found is not None and _leads(found, wanted) else None
        if known[id(A)] is not None:
            parts.append((x, A, b, 1 if b is None else 0))
            if b is not None:
                vectors.setdefault(id(A), b)
            elif x._head == "call":
                moduli.add(id(A))
    replaced = {}
    for x, A, b, which in parts:
        found = known[id(A)]
        assert found is not None
        b = vectors.get(id(A)) if b is None else b
        modulus = id(A) in moduli and (which == 0 or x._head == "call")
        key = id(A), None if b is None else id(b) if id(b) in wanted else _key(b), modulus
        if key not in made:
            b = np.broadcast_to(0.0, (A.shape[-1],)) if b is None else b
            numbers = tuple(c if is_lazy(c) else lazy(np.array(c)) for c in found.numbers)
            arrays = (*found.own, b, *found.rest)
            said = found.said._replace(modulus=modulus)
            made[key] = markov_jets.values(numbers, arrays, said, general, _both)
        replaced[id(x)] = made[key][which]
    return replaced


def shortened(value: Any, wanted: dict[int, Any]) -> Any:
    """The value, or one that is equal: its likelihoods of Markov processes, as far as numbers of
    theirs depend on what is wanted, and nothing else in them does, are found by one sweep each."""
    if config.get("verify") or not all(is_lazy(x) and _is_leaf(x) for x in wanted.values()):
        return value
    order = text.postorder(value)
    made = _replaced(order, wanted)
    known: dict[int, markov_order.Sorted | None] = {}

    def sorted_of(A: Any) -> markov_order.Sorted | None:
        if id(A) not in known:
            known[id(A)] = _in_order(A, wanted)
        return known[id(A)]

    uses = markov_order.Uses(sorted_of)
    for x in order:
        if id(x) in made:
            continue
        args = tuple([made.get(id(a), a) if is_lazy(a) else a for a in x._args])
        found = uses.of(x, args)
        if found is None and any(a is not b for a, b in zip(args, x._args, strict=True)):
            found = _core._LazyArray(x._head, args, x.shape, x.dtype, x._more)
        if found is not None:
            if x._guard is not None:
                return value
            made[id(x)] = found
    return made.get(id(value), value)


def within(value: Any, wanted: Collection[Any]) -> None:
    """Raises NotImplementedError where a derivative is wanted by what stood within a likelihood
    that was shortened before: by parts that are no arrays of their own, and by operators."""
    inner = [x for x in wanted if isinstance(x, _core.Operator) or (is_lazy(x) and not _is_leaf(x))]
    if not inner:
        return
    for y in text.postorder(value):
        for x in inner:
            if _is_lost(x, y, value):
                raise NotImplementedError(
                    f"a derivative of the likelihood of a Markov process by its numbers has "
                    f"{named(x)} in another form, which does not lead to it: there is no further "
                    "derivative by it. Take it by the arrays that it is made of" + errors.built(y)
                )


def _is_lost(x: Any, y: Any, value: Any) -> bool:
    """Did a part x of what was differentiated lead to what stands there now as y, and does not?"""
    if _is_call(y, markov_jets.jets):
        read = {id(a) for a in text.postorder(y)}
        return id(x) not in read and not is_apart(y, x, frozenset())
    if not _is_call(y, markov_order.steps_of):
        return False
    found = markov_order.lost(y, x) if is_lazy(x) else None
    A = markov_order.sum_of(y)
    return not is_apart(value if A is None else A, x, frozenset()) if found is None else found
