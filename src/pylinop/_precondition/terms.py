"""The terms of a sum, from which preconditioners are made, and the record of a proposal."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import errors, sparse_arrays
from .._base.dtypes import inexact
from .._base.kind_flags import DIAGONAL, heads
from .._base.multiples import product
from .._operators.parameters import written
from .._structured.operands import diagonal_of

if TYPE_CHECKING:
    from .._operators.linear_operator import LinearOperator

__all__ = ["Proposal"]


@dataclass(frozen=True)
class Proposal:
    """What `preconditioner` made, and why: the attribute ``proposal`` of what it returns.

    Parameters
    ----------
    kind : str
        The name of the kind, as `preconditioner` takes it.
    reason : str
        Why this kind was chosen, with the numbers that decided.
    positive : bool
        Whether it is Hermitian positive definite by construction, as cg and minres need.
    nbytes : int
        Memory that it holds beside A's.
    details : dict
        More that the kind reports: a shift, a rank, the trace that is left.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.preconditioner(pl.Dense([[4.0, 1.0], [1.0, 3.0]]), "jacobi").proposal.positive
    True
    """

    kind: str
    reason: str
    positive: bool
    nbytes: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        sort = "positive definite" if self.positive else "not positive definite, as far as known"
        more = "".join(f"; {k} {v:.3g}" for k, v in self.details.items() if v is not None)
        return f"{self.kind} ({self.reason}); {sort}; {self.nbytes:,} bytes{more}"


def told(
    M: "LinearOperator",
    op: Any,
    kind: str,
    reason: str,
    positive: bool,
    nbytes: int = 0,
    **details: Any,
) -> "LinearOperator":
    """M with its proposal attached; M is never one of the user's own operators."""
    if M is op or any(M is p for p in op._operands):
        M = 1 * M
    vars(M)["proposal"] = Proposal(kind, reason, positive, nbytes, details)
    return M


def terms(op: Any) -> list[tuple[Any, Any]]:
    """The terms of a sum as (coefficient, operator), multiples taken apart."""
    found, stack = [], [(1, op)]
    while stack:
        c, a = stack.pop()
        if written(a, "sum"):
            stack += [(c, a._operands[1]), (c, a._operands[0])]
        elif written(a, "scaled"):
            stack.append((product(c, a._operands[1]), a._operands[0]))
        elif a._head == "toeplitz" and a._by == "sum" and is_diagonal(a._operands[1]):
            stack += [(c, a._operands[1]), (c, a._operands[0])]
        elif a._head == "lowrankupdate" and a._by == "sum":
            stack += [(c, a._operands[1]), (c, a._operands[0])]
        elif a._head == "lowrankupdate" and a._init is not None:
            base, u, v, m = a._given("base", "U", "V", "C")
            stack += [(c, base), (c, _core.LowRank(u, v, m))]
        else:
            found.append((c, a))
    return found


def is_diagonal(op: Any) -> bool:
    while written(op, "scaled"):
        op = op._operands[0]
    return op._head in DIAGONAL


def split(op: Any) -> tuple[Any, Any]:
    """X and d with op = X + Diag(d): d an array, or None where no term is diagonal; X None where
    all are. X is as it was written, less the diagonal terms."""
    rest, d = None, None
    for c, a in terms(op):
        if is_diagonal(a):
            own = c * diagonal_of(a)
            d = own if d is None else d + own
        else:
            a = a if isinstance(c, int) and c == 1 else c * a
            rest = a if rest is None else rest + a
    return rest, d


def main_diagonal(op: Any) -> Any:
    """The diagonal as floats; NotFit where it is not available."""
    try:
        d = np.asarray(op.diagonal())
    except MemoryError as error:
        raise errors.NotFit(f"its diagonal takes a dense form: {error}") from None
    return d.astype(inexact(d.dtype), copy=False)


def positive_part(d: Any) -> Any:
    """The real part of a diagonal that is real, up to rounding, and positive; else None."""
    if d.dtype.kind == "c" and (np.abs(d.imag) > 100 * np.finfo(d.dtype).eps * np.abs(d)).any():
        return None
    return d.real if bool((d.real > 0).all()) and bool(np.isfinite(d.real).all()) else None


def sparse_of(op: Any) -> Any:
    """The operator as a CSR array of floats without duplicates, on its own memory where
    possible."""
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

    written = op._head == "sparse" and op._init is not None
    S = sparse_arrays.matrix_of(op) if written else op.tosparse()
    S = sp.csr_array(S)
    if not S.has_canonical_format:  # abs() and others of SciPy's sort and shorten it in place
        S = S.copy()
        S.sum_duplicates()
    return S.astype(inexact(S.dtype), copy=False)


def is_hermitian(S: Any) -> bool:
    """Is a CSR array its own adjoint, up to rounding?"""
    if S.shape[0] != S.shape[1]:
        return False
    gap = abs(S - S.conj().T)
    top = abs(S).max() if S.nnz else 0
    return bool(gap.nnz == 0 or gap.max() <= 10 * np.finfo(S.dtype).eps * top)


_SPARSE, _SCATTERED = heads("few_entries"), heads("scattered")
_WITHIN = "sum prod scaled view kron kronsum blockdiag power".split()


def is_sparse(op: Any) -> bool:
    """Do its kinds, all the way down, say that it has few nonzero elements?"""
    stack, some = [op], False
    while stack:
        a = stack.pop()
        if not isinstance(a, _core.Operator):
            continue
        if a._head in _SPARSE:
            some = some or a._head in _SCATTERED
        elif a._head in _WITHIN:
            stack += a._operands or a._init or ()
        else:
            return False
    return some


def columns(op: Any, j: Any) -> Any:
    """Column j, as floats."""
    return np.asarray(op[:, j])
