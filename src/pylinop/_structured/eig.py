"""Eigenvalues and eigenvectors of operators that need not be Hermitian, kind by kind.

An operator that is Hermitian in all its entries goes by eigh: then its vectors are orthonormal, and
its values exactly real."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact, real_of
from .._operators.convert import as_operator
from .dispatch import Question, diagonal_of, factors_of, small_dense, within
from .eigenvalues_hermitian import constant_of, reciprocal, shift_of, update_parts
from .eigh import (
    _dense_basis,
    _first,
    cycle_values,
    cycle_vectors,
    eigenbasis,
    eye,
    reflection_parts,
)
from .questions import eigvalsh, hermitian, looks_hermitian, outer
from .singular_values import (
    _levels_of,
    _padded,
    check_permutation,
    core_of,
    eigenvalues_of,
    floats,
    joined,
    vector_room,
)
from .unitary import complex_of, fourier, is_unitary, reflector

if TYPE_CHECKING:
    from .._base.type_variables import Registered


def _is_adjoint(a: Any) -> bool:
    return bool((a == np.swapaxes(a, -1, -2).conj()).all())


def _dense_pairs(a: Any, op: Any) -> Any:
    if _is_adjoint(a):
        small = small_dense(op) is not None
        return _dense_basis(a, "L") if small else eigenbasis.of_dense(op, "L", array=a)
    w, v = np.linalg.eig(a)
    return w, _core.Dense(v)


def _dense_values(a: Any) -> Any:
    return np.linalg.eigvalsh(a) if _is_adjoint(a) else np.linalg.eigvals(a)


pairs = Question(
    _dense_pairs,
    name="eig",
    how="geev, Hermitian: heevd (NumPy)",
    cost="O(n^3)",
    kept="eig",
    whole=True,
    arrays=7,
    instead=lambda op: "that of eigh" if looks_hermitian(op) else None,
)
eigvals = Question(
    _dense_values,
    name="eigvals",
    how="geev, Hermitian: heevd (NumPy)",
    cost="O(n^3)",
    kept="eigvals",
    arrays=2,
    instead=lambda op: "4 n^3 / 3" if looks_hermitian(op) else None,
)


def _both(
    *heads: str, how: str = "", cost: str = "", guard: str = "", called: str = ""
) -> Callable[[Registered], Registered]:
    """Registers a row of both questions; ``vectors`` tells it which one is asked."""

    def add(answer: Registered) -> Registered:
        more: Any = {"how": how, "guard": guard, "called": called}
        pairs.row(*heads, cost=cost, **more)(lambda op: answer(op, True))
        alone = cost.replace("that of eigh", "that of `eigvalsh`")
        eigvals.row(*heads, cost=alone, **more)(lambda op: answer(op, False))
        return answer

    return add


def _pair(w: Any, v: Any, vectors: bool) -> Any:
    """The answer that is asked for: (w, v()) or w alone."""
    return (w, v()) if vectors else w


def _split(found: Any, vectors: bool) -> Any:
    return found if vectors else (found, None)


def by_eigh(op: Any, vectors: bool) -> Any:
    return eigenbasis(op, "L") if vectors else eigvalsh(op, "L")


# -- diagonals, multiples, views --


@_both("diag", "identity", how="the diagonal; V is the identity", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    return _pair(diagonal_of(op), lambda: eye(op), vectors)


@_both("zeros", how="zeros; V is the identity", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    return _pair(np.zeros(op.shape[:-1], real_of(op.dtype)), lambda: eye(op), vectors)


@_both("scaled", how="A's V, c times its values", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    w, v = _split((yield (within(op),)), vectors)
    return _pair(op._operands[1] * w, lambda: v, vectors)


@pairs.row("view", how="A's V, conjugated; of .T where V is known to be unitary", cost="that of A")
def _(op: Any) -> Generator[Any, Any, Any]:
    w, v = yield (op._operands[0],)
    mode = op._mode
    if mode & TRANSPOSED and not is_unitary(v):
        return NotImplemented
    return w.conj() if mode & CONJUGATED else w, v.conj() if mode in (TRANSPOSED, CONJUGATED) else v


@eigvals.row("view", how="A's, conjugated", cost="that of A")
def _(op: Any) -> Generator[Any, Any, Any]:
    w = yield (op._operands[0],)
    return w.conj() if op._mode & CONJUGATED else w


@_both("sum", how="of A + c I: A's V, c added to its values", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    w, v = _split((yield (found[0],)), vectors)
    return _pair(w + found[1], lambda: v, vectors)


@_both("inverse", how="A's V, 1 / w", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    w, v = _split((yield (op._operands[0],)), vectors)
    return _pair(reciprocal(w, op._operands[0]), lambda: v, vectors)


@_both("power", how="A's V, w^p", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    if op._operands[0].dtype.kind in "biu":
        return NotImplemented
    w, v = _split((yield (op._operands[0],)), vectors)
    return _pair(w ** op._operands[1], lambda: v, vectors)


# -- factors and blocks --


@_both("kron", how="factor by factor, square ones; V is a Kron", cost="sum of the factors'")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in factors):
        return NotImplemented
    vector_room(op)
    w, parts = np.ones(1), []
    for f in factors:
        one, v = _split((yield (f,)), vectors)
        w = outer(w, one)
        parts.append(v)
    return _pair(w, lambda: _core.Kron(*parts), vectors)


@_both("kronsum", how="operand by operand; V is a Kron", cost="sum of the operands'")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    if op._init is None:
        return NotImplemented
    vector_room(op)
    w, parts = np.zeros(1), []
    for f in factors_of(op):
        one, v = _split((yield (f,)), vectors)
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
        parts.append(v)
    return _pair(w, lambda: _core.Kron(*parts), vectors)


@_both("blockdiag", how="block by block, square ones; V is a BlockDiag", cost="sum of the blocks'")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[-1] != f.shape[-2] for f in blocks):
        return NotImplemented
    values, parts = [], []
    for block in blocks:
        one, v = _split((yield (block,)), vectors)
        values.append(one)
        parts.append(v)
    return _pair(joined(op, values), lambda: _core.BlockDiag(*parts), vectors)


# -- other kinds --


@_both("circulant", how="one FFT; V by the DFT, of symmetric ones as eigh's", cost="O(n log n)")
def _(op: Any, vectors: bool) -> Any:
    if hermitian(op):
        return by_eigh(op, vectors)
    basis = lambda: fourier(_levels_of(op), inexact(op.dtype))
    return _pair(eigenvalues_of(op), basis, vectors)


@_both("permutation", how="roots of unity, a DFT a cycle length", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    if op.ndim != 2:
        return NotImplemented
    check_permutation(op)
    if hermitian(op):
        return by_eigh(op, vectors)
    complex_ = np.result_type(inexact(op.dtype), np.complex64)
    basis = lambda: cycle_vectors(op, lambda k: fourier((k,), complex_))
    return _pair(cycle_values(op), basis, vectors)


@_both("householder", how="a Householder", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    found = reflection_parts(op)
    if found is None:
        return NotImplemented
    return _pair(_first(found[1], op.shape[-1]), lambda: reflector(found[0]), vectors)


@_both("eigen", how="its own, where Q is known to be unitary", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    if op._init is None or not is_unitary(op._given("Q")):
        return NotImplemented
    return _pair(floats(op._given("d")), lambda: op._given("Q").copy(), vectors)


@_both("congruence", how="A V of B's, where A is known to be unitary", cost="that of B")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    if op._init is None or not is_unitary(op._given("A")):
        return NotImplemented
    w, v = _split((yield (as_operator(op._given("B")),)), vectors)
    return _pair(w, lambda: op._given("A").copy() @ v, vectors)


@_both(
    "laplacian",
    "hadamard",
    "root",
    "tridiagonal",
    called="hermitian",
    how="of Hermitian ones: eigh",
    cost="that of eigh",
)
def _(op: Any, vectors: bool) -> Any:
    return by_eigh(op, vectors) if hermitian(op) else NotImplemented


@eigvals.row("triangular", how="the diagonal", cost="O(n)")
def _(op: Any) -> Any:
    return floats(op.diagonal())


@_both("full", how="one value, c n; V is a Householder", cost="O(n)")
def _(op: Any, vectors: bool) -> Any:
    if op._init is None or op.shape[-1] != op.shape[-2]:
        return NotImplemented
    c = np.asarray(op._given("c")).astype(inexact(op.dtype))
    w = np.zeros(op.shape[:-1], inexact(op.dtype))
    w[..., 0] = c * op.shape[-1]
    return _pair(w, lambda: reflector(np.ones(op.shape[-1], inexact(op.dtype))), vectors)


@_both("lowrank", how="QR of the factors; Hermitian: eigh of k x k", cost="O(n k^2)")
def _(op: Any, vectors: bool) -> Any:
    if hermitian(op):
        return by_eigh(op, vectors)
    found = core_of(op)
    if found is None or not np.isfinite(found[1]).all():
        return NotImplemented
    q, middle, p = found
    if not vectors:  # those of (P^H Q) M and zeros
        small = np.swapaxes(p, -1, -2).conj() @ q @ middle
        return _padded(np.linalg.eigvals(small), op)
    return NotImplemented


@_both(
    "lowrankupdate",
    how="of c I + U C V^H: as U C V^H, c added",
    cost="O(n k^2)",
    guard="thin_shift",
)
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    parts = update_parts(op)
    c = None if parts is None else constant_of(parts[0])
    if parts is None or c is None or parts[0].shape[-1] != parts[0].shape[-2]:
        return NotImplemented
    w, v = _split((yield (parts[1],)), vectors)
    return _pair(w + c, lambda: v, vectors)


# -- answers in NumPy's dtypes --


def _typed(w: Any, op: Any, vectors: Any = None) -> Any:
    """Casts to the dtype of NumPy's answer: complex where the operator, a value or the basis is."""
    dtype = real_of(op.dtype)
    complex_ = inexact(op.dtype).kind == "c" or (np.iscomplexobj(w) and w.imag.any())
    if complex_ or (vectors is not None and vectors.dtype.kind == "c"):
        return complex_of(dtype)
    return dtype


def values_of(op: Any) -> Any:
    """The result of eigvals."""
    a = small_dense(op)
    w = _dense_values(a) if a is not None else np.asarray(eigvals(op))
    dtype = _typed(w, op)
    w = w if dtype.kind == "c" else w.real
    return np.broadcast_to(w, op.shape[:-1]).astype(dtype)


def pairs_of(op: Any) -> Any:
    """The result of eig."""
    a = small_dense(op)
    w, v = _dense_pairs(a, op) if a is not None else pairs(op)
    dtype = _typed(w, op, v)
    w = w if dtype.kind == "c" else w.real
    if v.shape != op.shape:
        v = v @ _core.Identity(op.shape)
    w = np.broadcast_to(w, op.shape[:-1]).astype(dtype)
    return w, v if v.dtype == dtype else v.astype(dtype)
