"""Functions of `Householder` and `Reflections`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.dtypes import real_of
from ..eig import _pair, pairs_row
from ..eigh import eigenbasis
from ..matrix_functions import _hermitian_only, _one_apart, functions_row
from ..norms import sums
from ..questions import eigvalsh, hermitian, pinv, read_hermitian, svdvals
from ..singular_values import descending, determinant, floats
from ..svd import _ones, singular
from ..unitary import reflector

# -- singular values, norms, eigenvalues --


def reflection_of(op: Any) -> Any:
    """The only eigenvalue of a Householder that is not 1, which is its determinant."""
    return determinant(op)[..., None]


def _with_ones(value: Any, op: Any) -> Any:
    return np.concatenate([value, np.ones((*value.shape[:-1], op.shape[-1] - 1))], axis=-1)


@svdvals.row("reflections", how="ones", cost="O(n)")
def _(op: Any) -> Any:
    return np.ones((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))


@svdvals.row("householder", how="1 and its determinant", cost="O(n)")
def _(op: Any) -> Any:
    w = np.abs(reflection_of(op))
    return NotImplemented if np.isnan(w).any() else descending(_with_ones(w, op))


@hermitian.row("householder")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return op._given("tau") is None or not np.imag(op._given("tau")).any()


@eigvalsh.row("householder", how="1 and its determinant", cost="O(n)", guard="given hermitian")
def _(op: Any, uplo: str) -> Any:
    w = reflection_of(op).real
    return NotImplemented if np.isnan(w).any() else np.sort(_with_ones(w, op), axis=-1)


# -- norms --


@sums.row("householder")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    v, tau = op._given("v", "tau")
    v = floats(v)
    if tau is None:
        top = np.abs(v).max(axis=-1, keepdims=True)
        if not (np.isfinite(top) & (top > 0)).all():
            return NotImplemented
        v = v / top
        tau = 2 / (np.abs(v) ** 2).sum(axis=-1)
    tau = floats(tau)[..., None]
    size = np.abs(v)
    rest = size.sum(axis=-1, keepdims=True) - size
    return np.abs(1 - tau * size**2) + np.abs(tau) * size * rest


# -- pseudo-inverses --


@pinv.row("reflections", how="the adjoint", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return op.H


@pinv.row(
    "householder", how="itself, with its own tau", cost="O(n)", guard="given",
    asks=lambda op, how: [] if op._given("tau") is None else None,
)  # fmt: skip
def _(op: Any, how: Any) -> Any:
    if op._init is None or op._given("tau") is not None or np.isnan(reflection_of(op)).any():
        return NotImplemented
    return op


# -- eigh --


def _first(value: Any, n: int) -> Any:
    """The eigenvalue of the first column, then those of the others."""
    return np.concatenate([value, np.ones((*value.shape[:-1], n - 1))], axis=-1)


def reflection_parts(op: Any) -> tuple[Any, Any] | None:
    """(the vector, the one eigenvalue that is not 1) of a Householder; None where there is no such
    vector."""
    if op._init is None:
        return None
    v, value = floats(op._given("v")), reflection_of(op)
    top = np.abs(v).max(axis=-1)
    good = np.isfinite(top) & (top > 0) & np.isfinite(value[..., 0])
    return (v, value) if np.all(good) else None


@eigenbasis.row("householder", how="a Householder", cost="O(n)", guard="given hermitian")
def _(op: Any, uplo: str) -> Any:
    found = reflection_parts(op)
    if found is None:
        return NotImplemented
    v, value = found
    return _first(value.real, op.shape[-1]), reflector(v)


# -- eig --


@pairs_row("householder", how="a Householder", cost="O(n)", guard="given")
def _(op: Any, vectors: bool) -> Any:
    found = reflection_parts(op)
    if found is None:
        return NotImplemented
    return _pair(_first(found[1], op.shape[-1]), lambda: reflector(found[0]), vectors)


# -- svd --


@singular.row("reflections", how="itself; ones", cost="O(n)")
def _(op: Any, full: bool) -> Any:
    return _ones(op, op.copy())


# -- exp, log, powers --


def _apart_asks(op: Any, f: Any) -> Any:
    if op._init is not None and op.shape[-1] > 1:
        return []
    return [("eigh", op, "L")] if read_hermitian(op) else None


@functions_row("householder", how="f(1) I and one rank", cost="O(n)", asks=_apart_asks)
def _(op: Any, f: Any) -> Any:
    found = reflection_parts(op)
    if found is None or op.shape[-1] == 1:
        return _hermitian_only(op, f)
    v, value = found
    v = v / np.abs(v).max(axis=-1, keepdims=True)
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return _one_apart(op, f, np.concatenate([np.ones_like(value), value], axis=-1), v)
