"""What a solve or a determinant says of its matrix: singular to working precision, declared
positive definite and not so, made dense."""

import warnings
from typing import Any

from . import _errors


def ill_conditioned(op: Any, rcond: float) -> None:
    """Warns of the least reciprocal condition number of a call; a hook of the core's."""
    found = _errors.culprits("LinAlgError", op)
    culprit = found[0] if len(found) == 1 else op
    warnings.warn(
        f"Ill-conditioned matrix (rcond={rcond:.6g}): singular to working precision, so that the "
        "solution may have no correct digit; pl.lstsq and pl.pinv give one of least norm\n"
        f"  in: {_errors.describe(culprit)}{_errors.built(culprit)}",
        _errors.IllConditionedWarning,
        stacklevel=_errors.outside(),
    )


def fell_back(op: Any, count: int, determinant: bool = False) -> None:
    """Tells that Cholesky has failed where a matrix was declared positive definite; a hook of the
    core's. A solve goes on by LU, with a warning. A determinant would look as if it were meant."""
    text = f"{_errors.declared_positive(op)} declared positive definite (assume_a='pos') and is not"
    if determinant:
        raise _errors.make_error(
            "LinAlgError",
            text
            + ": it has no log-determinant to rely on. Leave assume_a out, or take LU's number "
            "under pl.config(check='none')",
            op,
            "compute",
            -1,
        )
    warnings.warn(
        text + (f" in {count} solves" if count > 1 else "") + ": solved by LU instead of Cholesky",
        _errors.FallbackWarning,
        stacklevel=_errors.outside(),
    )


def instead_of_dense(op: Any, seconds: float, act: int | None) -> str:
    """What a warning about a dense form adds: the time it takes, and what would do without one."""
    text = f", about {seconds:.2g} s for all" if seconds else ""
    inverse = any(o._head == "inverse" or o._by == "inverse" for o in _errors.parts(op, 100))
    if inverse and act is not None and act < _DENSE:
        return text + '; pl.solve(..., method="cg") or "gmres" needs products alone'
    if act == _DETERMINANT:
        return text + '; pl.logdet(..., method="slq") estimates it from products'
    return text


_DENSE, _DETERMINANT = 8, 12  # the core's numbers of actions; less: applied to an array
