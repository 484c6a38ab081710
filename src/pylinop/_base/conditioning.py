"""Warnings of solves and determinants about their matrix: it is singular to working precision, it
was assumed positive definite and is not, it was made dense."""

import contextlib
import contextvars
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import config, errors, kind_flags

_SUMS = kind_flags.heads("adds")
_FAR = 1e5, 1e2  # how far a probe may fall short of the true growth, in double and single precision

# Where solves within a larger factor leave their numbers, in place of a warning.
_collected: contextvars.ContextVar[list[float] | None] = contextvars.ContextVar(
    "collected", default=None
)


@contextlib.contextmanager
def collecting() -> Iterator[list[float]]:
    """Collects the reciprocal condition numbers of the solves within, which then do not warn."""
    found: list[float] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def by_solves(
    solve: Callable[[np.ndarray, bool], np.ndarray], n: int, dtype: Any, norm: float, eps: float
) -> float:
    """The reciprocal condition number in the 1-norm, as far as it matters, from solve(b, adjoint)
    with a factor of the matrix, whose 1-norm is `norm`. One solve with signs tells whether it can
    be near eps; if it cannot, the result is 1.0. Otherwise about five more solves give LAPACK's
    estimate (Hager 1984, Higham 1988)."""
    signs = 1.0 - 2 * ((np.arange(n, dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(16)) & 1)
    with np.errstate(all="ignore"):
        grown = float(np.abs(solve(signs.astype(dtype), False)).sum()) * norm
        if np.isnan(grown) or not grown * _FAR[eps > 1e-10] > 1 / eps:
            return 1.0
        size = _inverse_norm(solve, n, dtype) * norm
    return 1.0 if np.isnan(size) else min(1.0, 1 / size) if size > 0 else 1.0


def _inverse_norm(solve: Callable[[np.ndarray, bool], np.ndarray], n: int, dtype: Any) -> float:
    """A lower bound of |A^-1|_1, by LAPACK's xLACN2."""
    v = solve(np.full(n, 1 / n, dtype), False)
    found = float(np.abs(v).sum())
    for _ in range(4):
        size = np.abs(v)
        z = np.abs(solve(np.where(size > 0, v / np.where(size > 0, size, 1), 1), True))
        if not np.isfinite(z).all():
            break
        v = np.zeros(n, dtype)
        v[z.argmax()] = 1
        v = solve(v, False)
        now = float(np.abs(v).sum())
        if not now > found:
            break
        found = now
    slope = (1 + np.arange(n) / max(n - 1, 1)) * (1 - 2.0 * (np.arange(n) % 2))
    other = 2 * float(np.abs(solve(slope.astype(dtype), False)).sum()) / (3 * n)
    return other if other > found else found


def ill_conditioned(op: Any, rcond: float) -> None:
    """Warns about the least reciprocal condition number of a call; a hook of the core's."""
    within = _collected.get()
    if within is not None:
        within.append(rcond)
        return
    found = errors.culprits("LinAlgError", op)
    culprit = found[0] if len(found) == 1 else op
    solved = culprit._operands[0] if culprit._head == "inverse" else culprit
    what = (
        "the range of a diagonal; each component of its solution is right, sums of them may have "
        "no correct digit"
        if solved._head == "diag"
        else "singular to working precision, so that the solution may have no correct digit"
    )
    warnings.warn(
        f"Ill-conditioned matrix (rcond={rcond:.6g}): {what}; pl.lstsq and pl.pinv give one of "
        "least norm\n"
        f"  in: {errors.describe(culprit)}{errors.built(culprit)}",
        errors.IllConditionedWarning,
        stacklevel=errors.outside(),
    )


def _is_broken(part: Any) -> bool:
    """Is what was assumed positive definite not so, by itself?"""
    try:
        with config.config(not_definite="raise", verify=False):
            part._scaledet()
    except np.linalg.LinAlgError:
        return True
    return False


def _to_blame(op: Any) -> list[Any] | None:
    """The operators whose assumption may be false where a Cholesky factor failed. Of a sum (or
    what is one) with others these are put to the test, each by itself; None: all of them hold, so
    that the sum is as good as singular: P + U U^H of a tiny P and a large thin U has no factor in
    working precision."""
    found = errors.assumed_positive(op)
    if not found or not any(o._head in _SUMS for o in errors.parts(op)):
        return found
    return [o for o in found if _is_broken(o)] or None


def fell_back(op: Any, count: int, determinant: bool = False) -> bool:
    """Reports that Cholesky failed for a matrix assumed positive definite; a hook of the core's.
    True: the result is to be NaN. A solve goes on by LU, with a warning. For a determinant it is an
    error, since its value would look as if it were meant. Nothing is said where what was assumed
    holds, and a sum with it is singular to working precision."""
    __tracebackhide__ = True
    then = config.get("not_definite")
    blamed = _to_blame(op)
    if blamed is None or then == "nan":
        return blamed is not None
    text = (
        f"{errors.name_assumed(blamed, op)} assumed positive definite (assume_a='pos') and is not"
    )
    if then == "raise":
        raise errors.make_error(
            "LinAlgError", text + "; pl.config(not_definite='raise') is set", op, "compute", -1
        )
    if determinant:
        raise errors.make_error(
            "LinAlgError",
            text
            + ": it has no log-determinant to rely on. Leave assume_a out, or take LU's number "
            "under pl.config(check='none'), or nan under pl.config(not_definite='nan')",
            op,
            "compute",
            -1,
        )
    warnings.warn(
        text + (f" in {count} solves" if count > 1 else "") + ": solved by LU instead of Cholesky",
        errors.FallbackWarning,
        stacklevel=errors.outside(),
    )
    return False


def instead_of_dense(op: Any, seconds: float, act: int | None) -> str:
    """What a warning about a dense form adds: the time it takes, and a method that needs none."""
    text = f", about {seconds:.2g} s for all" if seconds else ""
    inverse = any(o._head == "inverse" or o._by == "inverse" for o in errors.parts(op, 100))
    if inverse and act is not None and act < _DENSE:
        return text + '; pl.solve(..., method="cg") or "gmres" needs products alone'
    estimate = None if act is None else _ESTIMATES.get(act)
    return text + f"; {estimate} estimates it from products" if estimate else text


def instead_of_all(name: str) -> str:
    """A way to less than a whole decomposition, which does not take as long."""
    found = _FEWER.get(name)
    return f"; {found} takes products alone" if found else ""


_FEWER = {
    "eigh": "pl.eigh(A, k=6)",
    "eigvalsh": "pl.eigsh(A, k=6, return_eigenvectors=False)",
    "svd": "pl.svds(A, k=6)",
    "svdvals": "pl.svds(A, k=6, return_singular_vectors=False)",
    "eig": "pl.eigs(A, k=6)",
    "eigvals": "pl.eigs(A, k=6, return_eigenvectors=False)",
    "lstsq": 'pl.lstsq(A, b, method="lsmr")',
    "pinv": 'pl.lstsq(A, b, method="lsmr")',
    "expm": "pl.expm_multiply(A, v)",
    "logm": "pl.funm_multiply(A, np.log, v)",
    "sqrtm, fractional_matrix_power": "pl.funm_multiply(A, np.sqrt, v)",
}
_DENSE = 8  # of the core's numbers of actions; less: applied to an array
_ESTIMATES = {
    9: 'pl.diagonal(..., method="hutch++")',
    10: 'pl.trace(..., method="hutch++")',
    12: 'pl.logdet(..., method="slq")',
}
