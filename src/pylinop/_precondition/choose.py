"""The kinds of preconditioners by name, and the one that a matrix's structure proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import kind_flags
from .._base.errors import NotFit
from .._operators.parameters import written
from .incomplete import incomplete_cholesky, ssor
from .low_rank import nystrom, pivoted_cholesky
from .structured import block_jacobi, circulant, exact, identity, jacobi, kronecker, toeplitz_parts
from .terms import Proposal, is_diagonal, is_sparse, split, terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._operators.linear_operator import LinearOperator


def _chan(op: Any) -> LinearOperator:
    return circulant(op, "chan")


def _strang(op: Any) -> LinearOperator:
    return circulant(op, "strang")


def _ict(op: Any, drop: float = 1e-3, fill: int = 10, shift: float = 0.0) -> LinearOperator:
    return incomplete_cholesky(op, drop, fill, shift)


def _ic(op: Any, shift: float = 0.0) -> LinearOperator:
    return incomplete_cholesky(op, shift=shift)


def _circulant(op: Any) -> LinearOperator:
    return circulant(op)


def _identity(op: Any) -> LinearOperator:
    return identity(op)


def _exact(op: Any) -> LinearOperator:
    return exact(op)


def _jacobi(op: Any) -> LinearOperator:
    return jacobi(op)


def _pivoted(op: Any, rank: int = 100, rtol: float = 1e-8, noise: Any = None) -> LinearOperator:
    return pivoted_cholesky(op, rank, rtol, noise)


KINDS: dict[str, Callable[..., LinearOperator]] = {
    "identity": _identity,
    "exact": _exact,
    "jacobi": _jacobi,
    "block_jacobi": block_jacobi,
    "ssor": ssor,
    "ic": _ic,
    "ict": _ict,
    "circulant": _circulant,
    "strang": _strang,
    "chan": _chan,
    "kronecker": kronecker,
    "pivoted_cholesky": _pivoted,
    "nystrom": nystrom,
}

# Kinds whose inverse is applied in about the time of a product.
_AT_ONCE, _COLUMNS = map(kind_flags.heads, ("at_once", "columns"))


def _at_once(op: Any) -> bool:
    while written(op, "scaled", "view"):
        op = op._operands[0]
    if op._head == "lowrankupdate":
        parts = [a for _, a in terms(op)]
        return sum(is_diagonal(a) for a in parts) == 1 and len(parts) == 2
    if op._by == "inverse":
        return True
    if op._head in kind_flags.OF_PARTS and op._init is not None:
        return all(f.shape[0] == f.shape[1] and f.shape[0] <= 512 for f in op._given("ops"))
    return op._head in _AT_ONCE


def _low_rank_beside(op: Any) -> bool:
    """Is it X + Diag, where X is positive semidefinite and its columns are cheap?"""
    rest, d = split(op)
    if rest is None or d is None:
        return False
    base = rest
    while written(base, "scaled"):
        base = base._operands[0]
    return (base._head in _COLUMNS or base._head == "sum") and not base._opaque


def _ways(op: Any) -> list[Callable[[Any], LinearOperator]]:
    """The kinds to try, best first."""
    if len(op.shape) > 2:
        return [jacobi]
    if op._opaque:
        return []
    found: list[Callable[[Any], LinearOperator]] = []
    if _at_once(op):
        found.append(exact)
    if is_sparse(op):
        found.append(lambda a: incomplete_cholesky(a, why="sparse and Hermitian"))
    if toeplitz_parts(op) is not None:
        found.append(circulant)
    if any(a._head == "kron" for _, a in terms(op)):
        found.append(kronecker)
    if op._head == "block":
        found.append(block_jacobi)
    if _low_rank_beside(op):
        found.append(pivoted_cholesky)
    return [*found, jacobi]


def auto(op: Any) -> LinearOperator:
    """The first kind that can be made, with the reasons against those before it."""
    against = []
    for way in _ways(op):
        try:
            M = way(op)
        except (NotFit, np.linalg.LinAlgError) as error:
            against.append(str(error).split("\n")[0])
            continue
        if against:
            old = vars(M)["proposal"]
            reason = f"{old.reason}; before it: {'; '.join(against)}"
            vars(M)["proposal"] = Proposal(old.kind, reason, old.positive, old.nbytes, old.details)
        return M
    why = "; ".join(against) if against else "nothing is known of a callable but its products"
    return identity(op, why)
