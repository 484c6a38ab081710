"""The derivative of exp at A^H along a pair u v^H of few columns, as a pair of few columns.

    L(A^H, u v^H) = integral over s from 0 to 1 of exp(s A^H) u (exp((1 - s) A) v)^H

(Higham, Functions of matrices (2008), 10.15), by Gauss and Legendre's rule, whose error for
exp(s m) is below m^2q (q!)^4 / ((2q + 1) (2q)!^3) of the largest value (Davis and Rabinowitz,
Numerical integration, 2.7): m is at most the width of the spectrum of a Hermitian A, twice the norm
of others. As many nodes as make that a rounding are a few more than m. The exponentials are made as
those of `exponential_action`, where A is one whose products are cheaper than its dense form; a
Chebyshev series has the terms of all nodes in common."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .._iterative.record import quiet
from .._structured.function_derivatives import derivative
from . import exponential_action

_MOST = 150  # nodes
_THIN = 4  # rows a column of what is made, at least


def _nodes_for(width: float, grown: float, u: float) -> int | None:
    """How many nodes; ``grown``: the logarithm of how much larger values within may be than what
    is made."""
    for q in range(2, _MOST + 1):
        bound = 2 * q * math.log(max(width, 1e-300)) + 4 * math.lgamma(q + 1)
        bound -= math.log(2 * q + 1) + 3 * math.lgamma(2 * q + 1)
        if bound + grown <= math.log(u / 4):
            return q
    return None


@functools.lru_cache(maxsize=32)
def _rule(q: int) -> tuple[Any, Any]:
    x, w = np.polynomial.legendre.leggauss(q)
    return (1 + x) / 2, w / 2


def _pair(A: Any, u: Any, v: Any) -> Any:
    """As a LowRank; None where that is not the cheaper way."""
    made = exponential_action.offered(A, True)
    if made is None:
        return None
    width, grown = made.way.spread()
    q = _nodes_for(width, grown, float(np.finfo(made.dtype).eps) / 2)
    if q is None or _THIN * q * u.shape[-1] > A.shape[-1] or not made.is_by_products(u.shape[-1]):
        return None
    times, weights = _rule(q)
    with quiet(), np.errstate(over="ignore", invalid="ignore"):
        left, right = made.way.seen(True).at(u, times), made.way.at(v, times)
    if left is None or right is None:
        return None
    n, real = A.shape[-1], u.real.dtype.type
    left = np.stack([x * real(w) for x, w in zip(left, weights, strict=True)], axis=1)
    right = np.stack(right[::-1], axis=1)
    return _core.LowRank(left.reshape(n, -1), right.reshape(n, -1))


def along_pair(form: Any, u: Any, v: Any, by: Any, of: str, **kwargs: Any) -> Any:
    """The derivative of exp at A^H along u v^H: as few columns, or as a matrix."""
    if form.ndim == 2 and np.isfinite(u).all() and np.isfinite(v).all():
        dtype = np.result_type(inexact(form.dtype), u, v)
        A = form if form.dtype == dtype else form.astype(dtype)
        found = _pair(A, u.astype(dtype), v.astype(dtype))
        if found is not None:
            return found
    return derivative(form, u @ v.conj().swapaxes(-1, -2), by, of, **kwargs)
