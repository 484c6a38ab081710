"""Functions of `DFT`, `DCT` and `Hadamard`: closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact, real_of
from ..._operators.convert import inverse
from ..eig import eigvals
from ..eigh import eigenbasis, eye
from ..least_squares import frames
from ..matrix_functions import functions_row
from ..qr import _of, qr
from ..questions import eigvalsh, outer, pinv
from ..rows import GUARDS, guard_of
from ..singular_values import _level_values, vector_room
from ..svd import _matched, _ones, singular
from ..unitary import unitary

# -- singular values, norms, eigenvalues --


@eigvalsh.row("hadamard", how="half of them sqrt(n), half -sqrt(n)", cost="O(n)", guard="given")
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    return np.where(np.arange(n) < n // 2, -1.0, 1.0) * math.sqrt(n)


# -- pseudo-inverses --


@pinv.row("dft", "dct", "hadamard", called="transforms", how="the inverse", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return inverse(op)


# -- eigh --


@eigenbasis.row("hadamard", how="Kron of 2 x 2 rotations", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    if op._init is None or n == 1:
        return NotImplemented
    c, s = math.cos(math.pi / 8), math.sin(math.pi / 8)
    turn = np.array([[c, -s], [s, c]], inexact(op.dtype).char.lower())
    w, root = np.ones(1), math.sqrt(2.0)
    levels = n.bit_length() - 1
    for _ in range(levels):
        w = np.concatenate([root * w, -root * w])
    one = unitary(turn)
    return w, one if levels == 1 else _core.Kron(*[one] * levels)


# -- svd --


@singular.row(
    "dft",
    "hadamard",
    called="transforms",
    how="itself, scaled to be unitary; all one value",
    cost="O(n)",
    guard="given",
)
def _(op: Any, full: bool) -> Any:
    vector_room(op)
    n = op.shape[-1]
    if op._head == "hadamard":
        return _ones(op, n**-0.5 * op, n**0.5)
    size, norm = op._given("n", "norm")
    unit = _core.DFT(size, "ortho", None if op._weak else op.dtype)
    return _ones(op, unit, {"ortho": 1.0, "forward": n**-0.5}.get(norm, n**0.5))


def _has_closed_values(op: Any) -> bool:
    if op._init is None or op._head != "dct":
        return op._init is not None
    return bool(op._given("norm") == "ortho" or op._given("type") != 1)


GUARDS["closed_values"] = guard_of(
    "its singular values have a closed form, as all but those of a scaled type 1",
    _has_closed_values,
)


@singular.row(
    "dct",
    how="the orthogonal DCT of its type; two values a level",
    cost="O(n)",
    guard="closed_values",
)
def _(op: Any, full: bool) -> Any:
    sizes, type_, norm = op._given("n", "type", "norm")
    type_ = type_ or 2
    sizes = tuple(sizes) if np.iterable(sizes) else (int(sizes),)
    s = np.ones(1)
    vector_room(op)
    for n in sizes:
        s = outer(s, _level_values("dct", n, type_, norm))
    unit = _core.DCT(sizes, type_, "ortho", None if op._weak else op.dtype)
    return _matched(eye(op), s, unit.T) if type_ == 2 else _matched(unit, s, eye(op))


# -- qr --


@qr.row(
    "hadamard",
    "dft",
    called="transforms",
    how="Q is itself, scaled to be unitary, R a multiple of the Identity",
    cost="O(n)",
    guard="given",
)
def _(op: Any, mode: str) -> Any:
    n, dtype = op.shape[-1], inexact(op.dtype)
    if op._head == "dft":
        size, norm = op._given("n", "norm")
        scale = {"ortho": 1.0, "forward": n**-0.5}.get(norm, n**0.5)
        q = _core.DFT(size, "ortho", dtype)
        if scale == 1:
            return _of(mode, q, _core.Identity(n, dtype))
    else:
        scale = float(np.sqrt(n))
        q = (1 / scale) * (op if op.dtype == dtype else op.astype(dtype))
    return _of(mode, q, _core.Diag(np.full(n, scale, dtype)))


# -- by known eigenvectors --


@frames.row(
    "dft", "dct", called="transforms", how="by svd, what is known of its type", cost="svd's",
    guard="closed_values", asks=lambda op, want: [("svd", op, True)],
)  # fmt: skip
def _(op: Any, want: str) -> Any:
    found = singular(op, True)
    return found.u, found.s.astype(real_of(op.dtype), copy=False), found.v


@frames.row("hadamard", how="itself over sqrt(n)", cost="a product", guard="given")
def _(op: Any, want: str) -> Any:
    n = op.shape[-1]
    s = np.full(op.shape[:-1], n**0.5, real_of(op.dtype))
    return n**-0.5 * op, s, _core.Identity(n, inexact(op.dtype))


# -- eigenvalues and functions of a DFT, whose fourth power is a multiple of the identity --


def _fourths(op: Any) -> tuple[Any, Any, Any, Any]:
    """(sizes, scale, four values, how many of each): the eigenvalues of an n x n DFT are 1, -i, -1
    and i times its scale, as many as McClellan and Parks (1972) count; of several levels, their
    products."""
    n, norm = op._given("n", "norm")
    sizes = tuple(int(k) for k in n) if np.iterable(n) else (int(n),)
    size = math.sqrt(math.prod(sizes))
    scale = {"ortho": 1.0, "forward": 1 / size}.get(norm, size)
    counts = np.array([1, 0, 0, 0])
    for k in sizes:
        own = np.array([k // 4 + 1, (k + 1) // 4, (k + 2) // 4, (k - 1) // 4])
        counts = sum(own[j] * np.roll(counts, j) for j in range(4))
    return sizes, scale, scale * np.array([1, -1j, -1, 1j]), counts


@eigvals.row("dft", how="its scale times 1, -i, -1, i", cost="O(n)", guard="given")
def _(op: Any) -> Any:
    *_, values, counts = _fourths(op)
    vector_room(op)
    return np.repeat(values, counts).astype(inexact(op.dtype))


@functions_row(
    "dft", how="a polynomial of degree 3 in it, by its four values", cost="O(n)", guard="given"
)
def _(op: Any, f: Any) -> Any:
    sizes, _, values, counts = _fourths(op)
    dtype = inexact(op.dtype)
    there = counts > 0
    at = np.zeros(4, dtype)
    at[there] = f(values[there].astype(dtype))
    turns = np.array([1, 1j, -1, -1j])  # one over the values
    c = [complex(x) for x in (at * turns ** np.arange(4)[:, None]).sum(axis=-1) / 4]
    back = np.arange(math.prod(sizes)).reshape(sizes)  # where the second power takes each index
    for axis in range(len(sizes)):
        back = np.roll(np.flip(back, axis), 1, axis)
    F = _core.DFT(sizes, "ortho", dtype)
    return (
        c[0] * _core.Identity(op.shape[-1], dtype)
        + c[1] * F
        + c[2] * _core.Permutation(back.ravel(), dtype)
        + c[3] * F.H
    )
