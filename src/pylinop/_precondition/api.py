"""Preconditioners by name. The modules that make them are imported when they are needed."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from .._base import errors
from .._base.config import near
from .._base.errors import NotFit
from .._base.lazy_import import Later
from .._base.signatures import listed
from .._operators.convert import as_operator

if TYPE_CHECKING:
    from .._core import _OperatorLike
    from .._operators.linear_operator import LinearOperator

__all__ = ["make", "preconditioner"]
_choose = Later("_precondition.choose")


def make(A: Any, name: Any = "auto", **options: Any) -> Any:
    """The preconditioner of that name for A; an operator or None is returned as it is."""
    if name is None or not isinstance(name, str):
        if options:
            raise TypeError(f"options {sorted(options)} belong to a preconditioner named by a str")
        return None if name is None else as_operator(name)
    op: Any = as_operator(A)
    if op.shape[-1] != op.shape[-2]:
        raise errors.make_error(
            "LinAlgError", f"preconditioner takes a square matrix, got {op.shape}", op, "solve", -1
        )
    plain = name.lower().replace("-", "_").replace(" ", "_")
    plain = {"incomplete_cholesky": "ic", "none": "identity"}.get(plain, plain)
    if plain == "auto":
        if options:
            raise TypeError(f"kind='auto' takes no options, got {sorted(options)}: name a kind")
        return _choose.auto(op)
    if plain not in _choose.KINDS:
        known = ["auto", *_choose.KINDS]
        raise ValueError(f"no preconditioner {name!r}; there are {known}{near(plain, known)}")
    way = _choose.KINDS[plain]
    takes = list(inspect.signature(way).parameters)[1:]
    if set(options) - set(takes):
        close = near(min(set(options) - set(takes)), takes)
        raise TypeError(f"{plain} takes {takes or 'no options'}, got {sorted(options)}{close}")
    if len(op.shape) > 2 and plain not in ("jacobi", "identity", "exact"):
        raise ValueError(f"{plain} takes one matrix, got a batch of shape {op.shape}")
    try:
        return way(op, **options)
    except NotFit as error:
        text = str(error)
    raise errors.make_error("LinAlgError", text, op, "solve", -1)


class Options(TypedDict, total=False):
    """The options of all kinds; each takes some."""

    block: Any
    omega: float
    drop: float
    fill: int
    shift: float
    rank: int | None
    rtol: float
    noise: Any
    mu: float | None
    rng: Any


def preconditioner(
    A: _OperatorLike, kind: str = "auto", **options: Unpack[Options]
) -> LinearOperator:
    """An operator that approximates the inverse of A, for iterative solvers (their ``M=``).

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
        It is read now: later writes to it are not followed. Batches are for "jacobi" only.
    kind : str, optional
        "auto" takes what A's structure proposes. Or a name, with its options:

        - "jacobi": 1 / diagonal;
        - "block_jacobi": the inverses of blocks on the diagonal (``block``: their size, 32, or a
          list of sizes; for a Block its own blocks);
        - "ssor": a sweep forward and one back (``omega``, 1), for Hermitian sparse matrices;
        - "ic", "ict": incomplete Cholesky on A's pattern, or dropping small elements (relative to
          their column: ``drop``, 1e-3) and keeping ``fill``, 10, elements a column beyond A's;
          ``shift`` is the first one tried;
        - "circulant", "strang", "chan": circulants near a Toeplitz matrix, of several levels too;
        - "kronecker": the nearest Kronecker product, or Kron + Kron for Kron + Diag;
        - "pivoted_cholesky": of X + noise, from X's diagonal and ``rank`` of its columns, 100,
          until ``rtol``, 1e-8, of the trace is left (``noise``: give it where the sum does not show
          it);
        - "nystrom": of X + mu I, by ``rank`` products with random vectors (None: 16, doubled to at
          most 256 until the last eigenvalue is below 10 mu), ``mu``, ``rng``;
        - "exact": the inverse itself; "identity": none.

    Returns
    -------
    LinearOperator
        Structured where it can be (a Diag, a BlockDiag, a Circulant, a Kron, a LowRankUpdate, a
        product with triangular solves). Its attribute ``proposal`` says which kind it is and why,
        whether it is positive definite by construction, and how many bytes it holds.

    Raises
    ------
    LinAlgError
        A is not square, or this kind cannot be made from it (A is not Hermitian, has a zero on the
        diagonal, has no definite circulant). "auto" then goes on to the next kind, and says so.
    ValueError, TypeError
        The kind is unknown; or an option belongs to a different kind.
    MaterializationError
        It would hold more than ``pl.config(memory_limit=...)`` or the machine allows.

    Notes
    -----
    docs/preconditioners.md lists costs, memory and sources. "auto" proposes nothing stochastic, and
    nothing for callables.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> M = pl.preconditioner(pl.Toeplitz(0.5 ** np.arange(100)))
    >>> M
    <100x100 Circulant with dtype=float64>
    >>> M.proposal.kind, M.proposal.positive
    ('strang', True)
    """
    made: LinearOperator = make(A, kind, **options)
    return made


listed(preconditioner, Options, ...)
