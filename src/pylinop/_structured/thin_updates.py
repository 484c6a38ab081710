"""Factors of D + U C U^H with a diagonal D, as the QuasiSeparable matrix that it is: below the
diagonal row i is u_i C and column j is u_j^H, with transitions of one. So L has k states and takes
O(n k^2).

Of another base B = L L^H there would be L (I + W C W^H) L^H with W = L^-1 U. Its error is that
of L times |W|^2, which grows with the condition of B, where the dense form's does not: that one
is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._operators.convert import as_operator
from .dispatch import dense
from .eigenvalues_hermitian import constant_of, update_parts
from .operands import diagonal_of
from .questions import hermitian


def _fits(op: Any) -> bool:
    """Is the base a diagonal, and k at most an eighth of n? Beyond, the dense form is no dearer."""
    parts = update_parts(op)
    if parts is None or op.dtype.kind not in "fc" or op.shape[-1] != op.shape[-2]:
        return False
    base, thin = parts
    if thin._init is None or (constant_of(base) is None and base._head != "diag"):
        return False
    return bool(8 * as_operator(thin._given("U")).shape[-1] <= op.shape[-1])


def _asks(op: Any, *args: Any) -> Any:
    return [] if _fits(op) else None


def as_quasiseparable(op: Any) -> Any:
    """The operator as a QuasiSeparable; None where it does not fit, or is not Hermitian."""
    parts = update_parts(op) if _fits(op) else None
    if parts is None or not hermitian(parts[0]) or not hermitian(parts[1]):
        return None
    base, thin = parts
    one = constant_of(base)
    u, c = thin._given("U", "C")
    u = as_operator(u)
    dtype = np.result_type(op.dtype, np.float64)
    u = dense(u).astype(dtype)
    p = u if c is None else u @ dense(as_operator(c)).astype(dtype)
    main = np.full(op.shape[-1], one) if one is not None else diagonal_of(base)
    d = main.real + (p * u.conj()).sum(axis=-1).real
    d, p, u = d.astype(dtype), np.ascontiguousarray(p), np.ascontiguousarray(u)
    return _core.QuasiSeparable(d, p, u.conj(), np.ones(p.shape))


def _in_precision(found: Any, op: Any) -> Any:
    return found if found.dtype == op.dtype else found.astype(op.dtype)
