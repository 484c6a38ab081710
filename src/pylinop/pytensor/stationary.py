"""Matrices whose entries depend on i - j alone, as functions of the lag: what is written on a
constant regular grid, as `pm.gp.cov` writes it, or of constant |i - j|."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from . import constants
from ._compat import (
    AdvancedSubtensor,
    Constant,
    DimShuffle,
    Dot,
    Elemwise,
    scalars,
)
from .views import number_of, op_of, plain

__all__ = ["Lags", "lags"]


class Lags(NamedTuple):
    """A matrix by its entries below the diagonal, one for each lag."""

    values: Any
    odd: bool  # those above the diagonal have the other sign; else they are the same


# -- polynomials of the points of a grid -----------------------------------------------------------

Powers = tuple[int, int]  # of x_i and of x_j


class Coefficient(NamedTuple):
    """A number times powers of variables that are numbers."""

    number: float
    powers: frozenset[tuple[Any, int]]

    def times(self, other: Coefficient) -> Coefficient:
        """The product."""
        total: Counter[Any] = Counter(dict(self.powers))
        for v, p in other.powers:
            total[v] += p
        kept = frozenset((v, p) for v, p in total.items() if p)
        return Coefficient(self.number * other.number, kept)

    def to(self, power: int) -> Coefficient:
        """A whole power."""
        return Coefficient(self.number**power, frozenset((v, p * power) for v, p in self.powers))

    def variable(self, dtype: str) -> Any:
        """As a variable."""
        made = pt.constant(np.asarray(self.number, dtype))
        for v, p in sorted(self.powers, key=lambda pair: str(pair[0])):
            made = made * number_of(v) ** p
        return made


class Polynomial(NamedTuple):
    """Of x_i and x_j, the points of one grid; of degree 2 at most."""

    terms: dict[Powers, Coefficient]
    grid: bytes | None  # None where there is no point in it

    def turned(self) -> Polynomial:
        """With i and j exchanged."""
        return Polynomial({(q, p): c for (p, q), c in self.terms.items()}, self.grid)


NOTHING: frozenset[tuple[Any, int]] = frozenset()
Memo = dict[Any, Polynomial | None]  # each variable is read once


def _power(v: Any) -> int | None:
    """k of what is written as a whole power x ** k from 1 on, or as a square."""
    if isinstance(v.owner.op.scalar_op, scalars.Sqr):
        return 2
    if not isinstance(v.owner.op.scalar_op, scalars.Pow):
        return None
    k = v.owner.inputs[1]
    if not isinstance(k, Constant) or not all(k.type.broadcastable):
        return None
    power = float(np.asarray(k.data).reshape(()))
    return int(power) if power.is_integer() and 1 <= power <= 64 else None


def _coefficient(v: Any) -> Coefficient:
    """A number as a product of powers, as far as it is written as one."""
    if isinstance(v, Constant):
        return Coefficient(float(np.asarray(v.data).reshape(())), NOTHING)
    op = op_of(v)
    if isinstance(op, DimShuffle) and all(v.owner.inputs[0].type.broadcastable):
        return _coefficient(v.owner.inputs[0])
    atom = Coefficient(1.0, frozenset([(v, 1)]))
    if not isinstance(op, Elemwise):
        return atom
    given = v.owner.inputs
    if isinstance(op.scalar_op, scalars.Mul):
        made = _coefficient(given[0])
        for x in given[1:]:
            made = made.times(_coefficient(x))
        return made
    if isinstance(op.scalar_op, scalars.TrueDiv):
        below = _coefficient(given[1])
        return atom if below.number == 0 else _coefficient(given[0]).times(below.to(-1))
    power = _power(v)
    return atom if power is None else _coefficient(given[0]).to(power)


def _points(v: Any) -> Polynomial | None:
    """Constant points along one axis, at regular distances."""
    data = np.asarray(v.data)
    if data.size != max(data.shape, default=0) or not constants.is_regular(data.ravel()):
        return None
    along_j = data.ndim == 2 and data.shape[0] == 1
    powers = (0, 1) if along_j else (1, 0)
    grid = np.asarray(data.ravel(), float).tobytes()
    return Polynomial({powers: Coefficient(1.0, NOTHING)}, grid)


def _sum(a: Polynomial, b: Polynomial) -> Polynomial | None:
    if a.grid and b.grid and a.grid != b.grid:
        return None
    terms = dict(a.terms)
    for powers, c in b.terms.items():
        there = terms.get(powers)
        if there is None:
            terms[powers] = c
        elif there.powers == c.powers:
            terms[powers] = Coefficient(there.number + c.number, c.powers)
        else:
            return None
    return Polynomial(terms, a.grid or b.grid)


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    if a.grid and b.grid and a.grid != b.grid:
        return None
    total: Polynomial | None = Polynomial({}, a.grid or b.grid)
    for (p, q), c in a.terms.items():
        for (r, s), d in b.terms.items():
            if p + q + r + s > 2:
                return None
            if total is not None:
                total = _sum(total, Polynomial({(p + r, q + s): c.times(d)}, total.grid))
    return total


def _shuffled(v: Any, memo: Memo) -> Polynomial | None:
    inner = v.owner.inputs[0]
    found = _polynomial(inner, memo)
    order = v.owner.op.new_order
    if found is None or inner.ndim > 2 or v.ndim > 2:
        return None
    if order in ((1, 0), ("x", 0)) or (order == (1,) and inner.ndim == 2):
        return found.turned()
    return found if order in ((0, 1), (0, "x"), (0,)) else None


def _elementwise(v: Any, memo: Memo) -> Polynomial | None:
    kind = v.owner.op.scalar_op
    given = v.owner.inputs
    if isinstance(kind, scalars.TrueDiv):
        if number_of(given[1]) is None:
            return None
        above, below = _polynomial(given[0], memo), _coefficient(given[1])
        if above is None or below.number == 0:
            return None
        return _product(above, Polynomial({(0, 0): below.to(-1)}, None))
    if _power(v) == 2:
        base = _polynomial(given[0], memo)
        return None if base is None else _product(base, base)
    parts = [_polynomial(x, memo) for x in given]
    total = parts[0]
    if isinstance(kind, scalars.Neg):
        parts.append(Polynomial({(0, 0): Coefficient(-1.0, NOTHING)}, None))
    elif isinstance(kind, scalars.Sub) and parts[1] is not None:
        parts[1] = _product(parts[1], Polynomial({(0, 0): Coefficient(-1.0, NOTHING)}, None))
    elif not isinstance(kind, (scalars.Add, scalars.Mul)):
        return None
    join = _sum if isinstance(kind, (scalars.Add, scalars.Sub)) else _product
    for part in parts[1:]:
        if total is None or part is None:
            return None
        total = join(total, part)
    return total


def _read(v: Any, memo: Memo) -> Polynomial | None:
    if v.ndim > 2:
        return None
    if number_of(v) is not None:
        return Polynomial({(0, 0): _coefficient(v)}, None)
    if isinstance(v, Constant):
        return _points(v)
    op = op_of(v)
    if isinstance(op, DimShuffle):
        return _shuffled(v, memo)
    if isinstance(op, Dot):
        left, right = v.owner.inputs
        if left.ndim != 2 or right.ndim != 2 or not left.type.broadcastable[1]:
            return None
        parts = _polynomial(left, memo), _polynomial(right, memo)
        return None if parts[0] is None or parts[1] is None else _product(parts[0], parts[1])
    return _elementwise(v, memo) if isinstance(op, Elemwise) else None


def _polynomial(v: Any, memo: Memo) -> Polynomial | None:
    """v as a polynomial of the points of a grid; None where it is not seen to be one."""
    if v not in memo:
        memo[v] = _read(v, memo)
    return memo[v]


def _multiple(a: Coefficient, of: Any, v: Any, odd: bool) -> Lags:
    made = a.variable(v.dtype) * pt.constant(of.astype(v.dtype))
    return Lags(made if made.dtype == v.dtype else made.astype(v.dtype), odd)


def _of_grid(v: Any, memo: Memo) -> Lags | None:
    """a (x_i - x_j) or a (x_i - x_j)^2."""
    found = _polynomial(v, memo) if v.ndim == 2 and not any(v.type.broadcastable) else None
    if found is None or found.grid is None:
        return None
    terms = {powers: c for powers, c in found.terms.items() if c.number != 0}
    x = np.frombuffer(found.grid)
    a: Any
    if set(terms) == {(1, 0), (0, 1)}:
        a, b = terms[1, 0], terms[0, 1]
        if a.powers == b.powers and a.number == -b.number:
            return _multiple(a, x - x[0], v, odd=True)
    if set(terms) == {(2, 0), (1, 1), (0, 2)}:
        a, b, c = terms[2, 0], terms[1, 1], terms[0, 2]
        if a == c and a.powers == b.powers and b.number == -2 * a.number:
            return _multiple(a, (x - x[0]) ** 2, v, odd=False)
    return None


# -- functions of the lag --------------------------------------------------------------------------


def _of_constant(v: Any) -> Lags | None:
    core = plain(v)
    found = None if core is None else constants.lags(np.asarray(core.data))
    return None if found is None else Lags(pt.constant(found[0]), found[1])


def _picked(v: Any) -> Lags | None:
    """c[constant |i - j|]."""
    if len(v.owner.inputs) != 2:
        return None
    of, at = v.owner.inputs
    if of.ndim != 1 or not isinstance(at, Constant):
        return None
    found = constants.lags(np.asarray(at.data))
    return None if found is None or found[1] else Lags(of[found[0]], False)


def _is_odd(kind: Any, given: list[tuple[Any, bool]]) -> bool | None:
    """Is the function odd in the lag? None where it is neither odd nor even. `given` are the
    inputs, each with whether it is odd."""
    odd = sum(is_odd for _, is_odd in given)
    if odd == 0:
        return False
    if isinstance(kind, scalars.Sqr | scalars.Abs | scalars.Cos):
        return False
    if isinstance(kind, scalars.Pow) and not given[1][1] and isinstance(given[1][0], Constant):
        power = float(np.asarray(given[1][0].data).reshape(-1)[0])
        return bool(power % 2) if power.is_integer() else None
    if isinstance(kind, scalars.Mul | scalars.TrueDiv | scalars.Neg | scalars.Sin | scalars.Tanh):
        return odd % 2 == 1
    return True if isinstance(kind, scalars.Add | scalars.Sub) and odd == len(given) else None


def lags(v: Any) -> Lags | None:
    """A matrix as a function of i - j; None where it is not seen to be one.

    Constant grids count as regular where they are so to 4 units in the last place of the largest
    point, constant matrices to 16 of the largest entry."""
    return _lags(v, {}, {})


def _lags(v: Any, memo: Memo, known: dict[Any, Lags | None]) -> Lags | None:
    if v not in known:
        known[v] = _of_grid(v, memo) or _of_parts(v, memo, known)
    return known[v]


def _of_parts(v: Any, memo: Memo, known: dict[Any, Lags | None]) -> Lags | None:
    if isinstance(v, Constant):
        return _of_constant(v)
    op = op_of(v)
    if isinstance(op, AdvancedSubtensor):
        return _picked(v)
    if not isinstance(op, Elemwise) or len(v.owner.outputs) > 1:
        return None
    made, given = [], []
    for x in v.owner.inputs:
        number = number_of(x)
        part = None if number is not None else _lags(x, memo, known)
        if number is None and part is None:
            return None
        made.append(part.values if part is not None else number.dimshuffle("x"))
        given.append((x, part is not None and part.odd))
    if all(x.type.broadcastable == (True,) for x in made):
        return None
    odd = _is_odd(op.scalar_op, given)
    return None if odd is None else Lags(op(*made), odd)
