"""Functions of a Kron where branch cuts decide: f of the factors where the arguments of their
eigenvalues add up within a branch, of the one factor beside multiples of I, or by eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .eig import eigvals
from .eigenvalues_hermitian import multiple_of_identity
from .matrix_functions import _by_basis, named
from .operands import factors_of
from .questions import hermitian, looks_hermitian, read_hermitian
from .scalar_function import Function


def principal(factors: Any) -> bool:
    """Is the principal function of the product that of the factors? It is if the arguments of any
    choice of eigenvalues add up to less than pi, or if all factors but one have only positive
    eigenvalues."""
    total, others = 0.0, 0
    for factor in factors:
        w = eigvals(factor)
        if not np.iscomplexobj(w):
            floor = -w.shape[-1] * np.finfo(w.dtype).eps * np.abs(w).max(axis=-1, keepdims=True)
            widest = 0.0 if (w >= floor).all() else math.pi
        else:
            widest = float(np.abs(np.angle(w)).max())
        total, others = total + widest, others + (widest > 0)
    return others <= 1 or total < math.pi * (1 - 1e-8)


def all_square(factors: Any) -> bool:
    return all(a.shape[-1] == a.shape[-2] for a in factors)


def each_alone(op: Any, f: Any) -> list[Any] | None:
    """The factors, where f can be applied factor by factor; else None."""
    factors = factors_of(op)
    return factors if f.plain and all_square(factors) and principal(factors) else None


def alone_asks(op: Any, f: Any) -> Any:
    """What `otherwise` asks: f of the one factor that is no multiple of I, or eigh."""
    factors = factors_of(op)
    alone = [multiple_of_identity(a) for a in factors]
    others = [a for a, c in zip(factors, alone, strict=True) if c is None]
    if len(others) == 1 and all_square(factors):
        return [(named(f), others[0], _inside(f, alone))]
    return [("eigh", op, "L")] if read_hermitian(op) is not False and all_square(factors) else None


def alone_doubt(op: Any, f: Any) -> Any:
    """None where `otherwise` is sure to answer."""
    alone = sum(multiple_of_identity(a) is None for a in factors_of(op)) == 1
    return None if alone or read_hermitian(op) else ("where it is not Hermitian", None)


def branches_asks(op: Any, f: Any) -> Any:
    """The eigenvalues of the factors, which say whether the branches add up, and f of these."""
    factors = factors_of(op)
    if not f.plain or not all_square(factors):
        return alone_asks(op, f)
    first, *rest = factors
    other = Function("power", f.p) if f.name == "power" else Function(f.name)
    values = [("eigvals", a) for a in factors]
    return [*values, (named(f), first, f), *((named(f), a, other) for a in rest)]


def branches_doubt(op: Any, f: Any) -> Any:
    if not f.plain:
        return alone_doubt(op, f)
    factors = factors_of(op)
    values: list[Any] = [("eigvals", a) for a in factors]
    more = alone_asks(op, f) or [None]
    if not all(map(looks_hermitian, factors)) and more != [None]:
        more.append(None)  # numbers say whether it is Hermitian, too
    return "where the branches do not add up", values + more


def _inside(f: Any, alone: list[Any]) -> Any:
    """f of the one factor beside multiples of I."""
    for c in alone:
        f = f if c is None else f.scaled(c)
    return f


def otherwise(op: Any, f: Any) -> Generator[Any, Any, Any]:
    """If all factors but one are identities, f of that one; if Hermitian, by the factors'
    vectors."""
    factors = factors_of(op)
    alone = [multiple_of_identity(a) for a in factors]
    others = [i for i, c in enumerate(alone) if c is None]
    if len(others) == 1 and all_square(factors):
        at = others[0]
        found = [_core.Identity(a.shape) for a in factors]
        found[at] = yield factors[at], _inside(f, alone)
        return _core.Kron(*found)
    return _by_basis(op, f) if hermitian(op) else NotImplemented
