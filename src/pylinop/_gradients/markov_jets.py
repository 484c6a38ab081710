"""b^T A^-1 b and log det A of a Markov process with noise, with their derivatives by its variance,
rate and noise: numbers that one sweep carries along (k_markov.c), for gradients of first and second
order. Which parts of an expression are that, and what stands for it where the sweep does not say,
is in likelihoods.py, which hands it down as `general`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config
from .._structured import trees
from .pieces import Through, call

_FLOAT = np.dtype(np.float64)


class Process(NamedTuple):
    """Of smoothness order + 1/2, by what its first arrays are: 'steps', or 'points' of a `Kernel`,
    in any order; or a multiple of a matrix of order + 1 states, 'generators'. Behind these and b
    may be arrays: what the noise is multiplied by, what is added to it. `modulus`: of log |det A|,
    which matrices that are not definite have too."""

    by: str
    order: int
    scaled: bool
    more: bool
    modulus: bool


General = Callable[[Any, Any, tuple[Any, ...], Process], Any]


def split(arrays: Any, said: Process) -> tuple[Any, Any, Any, Any]:
    """What the process is of, b, scale and more; None where there is no such array."""
    own = 4 if said.by == "generators" else 1
    rest = list(arrays[own + 1 :])
    scale = rest.pop(0) if said.scaled else None
    return arrays[:own], arrays[own], scale, rest.pop(0) if said.more else None


def _swept(theta: Any, arrays: tuple[Any, ...], said: Process, along: Any) -> Any:
    """2 x 8 numbers (lopk_markov_jets); None where the sweep does not say."""
    held = [np.ascontiguousarray(a, _FLOAT) for a in arrays]
    if said.by == "points":
        held = _sorted(held)
    own, b, scale, more = split(held, said)
    numbers = (float(theta[0]), float(theta[1]), float(theta[2]))
    if said.by == "points" and not 0 < numbers[1] < np.inf:
        return None  # a length that is none: by the Kernel, which says so
    out, given = np.empty((2, 8)), own if said.by == "generators" else ()
    steps = b if given else own[0]
    began = time.perf_counter()
    fits = _core._markov_jets(said.order, numbers, steps, b, scale, more, along, out, *given)
    if fits and config.recording():
        price = (1 if along is None else 3) * 30.0 * b.size * (said.order + 1) ** 3
        trees.noted("markov-jets", "likelihood of a Markov process", b, price, began)
    return out if fits else None


def _sorted(held: list[Any]) -> list[Any]:
    """By the steps between points on a line, all in their order."""
    t = held[0].reshape(-1)
    if not (t[1:] >= t[:-1]).all():
        order = np.argsort(t, kind="stable")
        t, *rest = (a.reshape(-1)[order] for a in held)
        held = [t, *rest]
    return [np.diff(t, prepend=t[:1]), *held[1:]]


def jets(theta: Any, *arrays: Any, said: Process, general: General) -> Any:
    """Both values and their derivatives by theta: the variance, the rate and the noise."""
    found = _swept(theta, arrays, said, None)
    return general(theta, None, arrays, said) if found is None else found[:, :4]


def along(theta: Any, weights: Any, *arrays: Any, said: Process, general: General) -> Any:
    """The derivatives by theta of the sum of weights times first derivatives, 2 x 3 of both."""
    found = np.zeros(3)
    for share, direction in _directions(np.ascontiguousarray(weights, _FLOAT)):
        swept = _swept(theta, arrays, said, direction)
        if swept is None:
            return general(theta, weights, arrays, said)
        found += share @ swept[:, 5:]
    return found


def _directions(weights: Any) -> list[tuple[Any, Any]]:
    """(shares of both, direction) of which the weights are the sum: one, where the rows are
    multiples of each other, as for any function of the value of a likelihood."""
    first = weights[np.argmax(np.abs(weights).max(axis=1))]
    at = np.argmax(np.abs(first))
    if first[at] == 0:
        return []
    share = weights[:, at] / first[at]
    if (np.abs(weights - np.outer(share, first)) <= 4e-16 * np.abs(first[at])).all():
        return [(share, first)]
    return [(np.eye(2)[k], weights[k]) for k in range(2)]


def three(variance: Any, rate: Any, noise: Any) -> Any:
    return np.array([variance, rate, noise], _FLOAT)


def values_of(found: Any, theta: Any, *arrays: Any, said: Process, both: Any) -> Any:
    return found[:, 0]


def slopes_of(found: Any, theta: Any) -> Any:
    return found[:, 1:4]


def values(
    numbers: tuple[Any, ...], arrays: tuple[Any, ...], said: Process, general: Any, both: Any
) -> Any:
    """b^T A^-1 b and log det A, deferred; ``both`` has them as expressions."""
    theta = call(three, numbers, (3,), _FLOAT)
    found = call(jets, (theta, *arrays), (2, 4), _FLOAT, said=said, general=general)
    return call(values_of, (found, theta, *arrays), (2,), _FLOAT, said=said, both=both)


def cotangent(y: Any, g: Any, k: int) -> Any:
    """Of theta; of its parts, and of the weights of second derivatives; of arrays by `general`."""
    f = y._more[0]
    if f is three:
        return g[k]
    if f is values_of or f is slopes_of:
        return _of_part(y, g, k)
    if f is jets and k == 0:
        return None  # what they say of theta its own place has
    if any(x is y._args[k] for x in y._args[:k]):
        return None  # an array that is there twice: of both together the first one's is
    said, general = y._more[1]["said"], y._more[1]["general"]
    theta, *rest = y._args
    weights = None if f is jets else rest.pop(0)
    return Through(general(theta, weights, tuple(rest), said), g, y._args)


def _of_part(y: Any, g: Any, k: int) -> Any:
    """Of values or slopes: of theta, of the arrays of values, or of the jets, for those of slopes.
    Values say by themselves what their arrays change: A^-1 b, and a diagonal of A^-1."""
    found, theta, *arrays = y._args
    if y._more[0] is slopes_of:
        if k == 0:
            return g @ np.eye(3, 4, 1)
        return call(along, (theta, g, *found._args[1:]), (3,), _FLOAT, **found._more[1])
    if k == 0 or any(x is y._args[k] for x in y._args[1:k]):
        return None
    if k == 1:
        slopes = call(slopes_of, (found, theta), (2, 3), _FLOAT)
        return np.sum(np.reshape(g, (2, 1)) * slopes, axis=0)
    pair = y._more[1]["both"](theta, arrays, y._more[1]["said"])
    return Through(np.stack(pair), g, y._args[1:])


FUNCTIONS = frozenset((three, jets, along, values_of, slopes_of))
