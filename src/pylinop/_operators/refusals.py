"""What operators do not do, though arrays or other libraries' matrices do: each error names the
spelling that works."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

# Attributes that people look for, and what has them here: functions that are no methods, then other
# names, then what arrays have.
_FUNCTIONS = (
    "cond eig eigsh eigvals expm ldl logm lstsq lu matrix_rank qr sqrtm svds svdvals".split()
)
_OF_ENTRIES = "argmax argmin flatten max mean min ravel reshape round sum tolist".split()
ELSEWHERE = {
    **{name: f"pl.{name}(A)" for name in _FUNCTIONS},
    "lstsq": "pl.lstsq(A, b)",
    "eigsh": "pl.eigsh(A, k)",
    "svds": "pl.svds(A, k)",
    "I": "A.inv()",
    "determinant": "A.det()",
    "diag": "A.diagonal()",
    "dims": "pylops.aslinearoperator(A), which PyLops' functions take",
    "dimsd": "pylops.aslinearoperator(A), which PyLops' functions take",
    "inverse": "A.inv()",
    "numpy": "A.toarray()",
    "rank": "pl.matrix_rank(A)",
    "sqrt": "pl.sqrtm(A)",
    "to_dense": "A.todense()",
    "to_numpy": "A.toarray()",
    "to_sparse": "A.tosparse()",
    **{
        name: f"A.toarray().{name}(), or pl.lazy(A).{name}() for when it is asked for"
        for name in _OF_ENTRIES
    },
    "sum": "A @ np.ones(A.shape[1]) for the sums of its rows, A.toarray().sum() for all",
}


class Elsewhere:
    """An attribute that there is not: the AttributeError says what to write. A ``__getattr__``
    would be asked for each of NumPy's protocols too, whenever an array is made of the object."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead
        self.__doc__ = f"Not there: {instead}."

    def __get__(self, op: Any, owner: type) -> NoReturn:
        # Without the object the interpreter adds no suggestion of its own.
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: {self._instead}",
            name=self._name,
        )


def power(p: Any) -> None:
    """Raises for a number that ``**`` does not take; the core refuses what is no number."""
    whole = isinstance(p, (int, np.integer))
    if (whole and p >= 0) or not (whole or isinstance(p, (float, np.floating))):
        return
    if not whole and not math.isfinite(p):
        return
    n = int(p)
    if p == -1:
        instead = "A.inv() is the inverse"
    elif p == n and n >= 0:
        instead = f"write A ** {n}"
    elif p == n:
        instead = f"pl.matrix_power(A, {n}) is a power of the inverse"
    elif p == 0.5:
        instead = "pl.sqrtm(A) is the square root"
    else:
        instead = f"pl.fractional_matrix_power(A, {p}) takes real powers"
    raise ValueError(f"a power must be a non-negative integer, got {p!r}: {instead}")


def addend(op: Any, number: Any) -> NoReturn:
    """The error of ``A + 1``, which is one thing to some and another to others."""
    m, n = op.shape[-2:]
    text = f"the number {number} is not added to an operator of shape {op.shape}: "
    if m == n:
        text += f"c * pl.Identity({n}) adds c to the diagonal, "
    text += f"pl.Full({(m, n)}, c) to every entry, as A.toarray() + c does"
    if number == 0:
        text += "; sum(operators) begins with 0: sum(operators[1:], start=operators[0])"
    raise TypeError(text)


def order(number: Any, sign: str) -> Any:
    """The error of ``A > 0``; NotImplemented for what is no number of Python."""
    if type(number) not in (bool, int, float, complex):
        return NotImplemented
    raise TypeError(
        f"an operator is not compared with a number: A.toarray() {sign} {number} compares every "
        f"entry, pl.lazy(A) {sign} {number} when it is asked for"
    )


def absolute() -> NoReturn:
    raise TypeError(
        "abs() of an operator is not defined: abs(A.toarray()) is that of every entry, "
        "abs(pl.lazy(A)) when it is asked for, pl.linalg.norm(A) a number"
    )


def write(op: Any) -> NoReturn:
    """The error of ``A[0, 0] = 1`` and ``del A[0]``."""
    raise TypeError(
        f"{type(op).__name__!r} object does not support item assignment: write to the arrays that "
        "it was made of, which it sees, or to a dense copy, A.toarray()"
    )
