"""The warning that a matrix was solved with that is singular to working precision."""

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
