"""What is known of an operator by how it is written, and what its entries show.

`known` asks the core, which computes nothing. `measured` compares the entries of a dense form with
itself turned round, or those of thin factors: the only place that does. Tolerances:

- EXACT, each entry equal: it decides which algorithm runs, where both are right, as between `eig`
  and `eigh`, so what is nearly Hermitian is not taken for it.
- ROUNDED, 16 n eps of the largest entry: of what ought to be Hermitian, as the factors of a Kron
  that are to have a Cholesky factor; what is further off is refused, or goes by the dense form.
- THIN, 4 n eps of the largest entry of C: I + Y C Y^H is unitary where C + C^H + C^H (Y^H Y) C is
  0; what is further off is no rounding of reflections.
- GRAM, n eps sqrt(a_ii a_jj), the rounding of forming X^H X: functions with a branch cut, where
  rounding alone would decide on which side of it the least eigenvalues lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .dispatch import dense

EXACT, ROUNDED, GRAM, THIN = "exact", "rounded", "gram", "thin"
_ENTRIES = 1 << 12  # that are compared at once


def known(op: Any, name: str) -> Any:
    """Is it "hermitian", "semidefinite", "unitary", "regular", "real" or "diagonal": True, False or
    None, not known; likewise "hermitian as written", whatever is assumed of its arrays. Or its
    "rank", at the most, or its "band", (below, above). Or "unitary but": the pairs of thin factors
    that have to be `measured` to be unitary for it to be unitary, or None."""
    return op._known(name)


def rounding(a: Any) -> Any:
    """How far two entries that should be equal may differ, relative to the largest."""
    return 16 * max(a.shape[-1], 1) * np.finfo(inexact(a.dtype)).eps


def largest(a: Any, b: Any = None, conjugate: bool = False) -> Any:
    """The largest modulus of each matrix, or of a - b, b conjugated or not: some rows at a time, in
    little memory."""
    found = np.zeros(a.shape[:-2], real_of(inexact(a.dtype)))
    step = max(1, _ENTRIES // max(a.size // max(a.shape[-2], 1), 1))
    for i in range(0, a.shape[-2], step):
        part = a[..., i : i + step, :]
        if b is not None:
            other = b[..., i : i + step, :]
            part = part - (other.conj() if conjugate else other)
        found = np.maximum(found, np.abs(part).max(axis=(-2, -1), initial=0))
    return found


def measured(A: Any, name: str, tolerance: str = EXACT) -> bool:
    """Do the entries of an array, or of an operator's dense form, show it to be "hermitian",
    "symmetric", or "centrohermitian": Hermitian, and its own conjugate with rows and columns
    reversed? Those of a pair (Y, C), that I + Y C Y^H is "unitary"?"""
    if name == "unitary":
        return _reflects(*A)
    a = A if type(A) is np.ndarray or not isinstance(A, _core.Operator) else dense(A)
    if a.shape[-1] != a.shape[-2]:
        return False
    if name == "centrohermitian":
        return measured(a, "hermitian") and np.array_equal(a, a[..., ::-1, ::-1].conj())
    same = _core._mirrored(a, name == "hermitian") if a.dtype.char in "fdFD" else None
    if same or (same is not None and tolerance == EXACT):
        return same
    other, conjugate = a.swapaxes(-1, -2), name == "hermitian" and a.dtype.kind == "c"
    if same is None:  # batches, and other dtypes
        same = bool((a == (other.conj() if conjugate else other)).all())
    if same or tolerance == EXACT:
        return same
    if tolerance == ROUNDED:
        return bool((largest(a, other, conjugate) <= rounding(a) * largest(a)).all())
    d = np.sqrt(np.maximum(np.diagonal(a, 0, -2, -1).real, 0))
    off = a.shape[-1] * np.finfo(a.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        for i in range(a.shape[-2]):
            row = other[..., i, :].conj() if conjugate else other[..., i, :]
            if not (np.abs(a[..., i, :] - row) <= off * d[..., i, None] * d).all():
                return False
    return True


def _reflects(y: Any, c: Any) -> bool:
    other = c.swapaxes(-1, -2).conj()
    gram = other @ (y.swapaxes(-1, -2).conj() @ y) @ c
    eps = max(np.finfo(inexact(p.dtype)).eps for p in (y, c))
    size = largest(c) * eps * y.shape[-2]
    return bool((largest(c + other + gram) <= 4 * size).all())
