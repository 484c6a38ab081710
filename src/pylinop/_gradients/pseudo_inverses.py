"""What a tolerance adds to the derivative of a pseudo-inverse: singular values that it cuts turn
into those that it keeps.

P^H = U f(S) V^H with f(s) = 1 / s where s is kept and 0 where it is cut, so that its derivative
along U M V^H has the entries of M times differences of f, and of M^H times differences of f and of
f's odd extension (Noferini, A formula for the Frechet derivative of a generalized matrix function,
2017). Between kept values the formula for matrices of one rank has them all; between kept and cut
ones it has them as though the cut ones were zero, and here is the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import errors
from .._lazy.build import view
from .functions import Row
from .pieces import call, stopped


def _decomposed(A: Any, P: Any) -> tuple[Any, Any, Any, Any]:
    """(U, s, V^H, which are kept), by what P does with the vectors: each factor of a Kron has a
    tolerance of its own."""
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    share = np.einsum("...km,...mk->...k", Vh @ P, U)
    return U, s, Vh, np.real(share) * s > 0.5


def across(A: Any, P: Any, g: Any) -> Any:
    """The part between kept and cut values of the derivative of P^H along g, which is the part of
    its adjoint too."""
    U, s, Vh, kept = _decomposed(A, P)
    k = s.shape[-1]
    mixed = kept[..., :, None] & ~kept[..., None, :]
    mixed |= mixed.mT
    own = np.broadcast_to(s[..., :, None], mixed.shape)
    first = np.where(kept[..., :, None], own, own.mT)[mixed]  # the kept one of two
    second = np.where(kept[..., :, None], own.mT, own)[mixed]
    apart = (first - second) / first
    if (np.abs(apart) <= 8 * k * np.finfo(s.dtype).eps).any():
        raise errors.LinAlgError(
            "pinv has no derivative where one of two equal singular values is cut and the other "
            "kept: choose a tolerance (rcond, rtol) between values that differ"
        )
    M = U.conj().mT @ g @ Vh.conj().mT
    q = second / first
    inner = np.zeros_like(M)
    inner[mixed] = (q * M[mixed] + M.conj().mT[mixed]) * (q / (first * first * apart * (1 + q)))
    return U @ inner @ Vh


def nothing_cut(A: Any, P: Any, g: Any) -> Any:
    """Zeros, which the second derivative of `across` is where no value is cut; else an error."""
    kept = _decomposed(A, P)[-1]
    if not kept.all():
        raise errors.LinAlgError(
            "pinv has second derivatives here where its tolerance cuts no singular value; it cuts "
            f"{int((~kept).sum())} of {kept.size}"
        )
    return np.zeros_like(A)


def correction(A: Any, P: Any, g: Any) -> Any:
    """What to add to the cotangent of A; of P it is no function: A says what is kept."""
    return call(across, (A, stopped(P), view(g, 3)), A.shape, np.result_type(A.dtype, g.dtype))


def _row(y: Any, g: Any, k: int) -> Any:
    A, P, h = y._args
    if k == 2:
        return call(across, (A, P, g), h.shape, np.result_type(A.dtype, g.dtype))
    return call(nothing_cut, (A, P, g), y._args[k].shape, y.dtype)


ROWS: dict[Any, Row] = {across: _row, nothing_cut: _row}
