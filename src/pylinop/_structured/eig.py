"""Eigenvalues and eigenvectors of operators that need not be Hermitian; kind by kind in `kinds`.

An operator that is Hermitian in all its entries goes by eigh: then its vectors are orthonormal, and
its values exactly real."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .dispatch import Question
from .eigh import (
    _dense_basis,
    eigenbasis,
)
from .operands import small_dense
from .properties import known, measured
from .questions import eigvalsh, looks_hermitian, read_hermitian
from .unitary import complex_of

if TYPE_CHECKING:
    from .._base.type_variables import Registered


def _is_hermitian(a: Any, op: Any) -> bool:
    """As it is written, whatever rounding did to its entries, or by these."""
    written = op._head != "dense" and known(op, "hermitian as written")
    return bool(written) or measured(a, "hermitian")


def _dense_pairs(a: Any, op: Any) -> Any:
    if _is_hermitian(a, op):
        small = small_dense(op) is not None
        return _dense_basis(a, "L") if small else eigenbasis.of_dense(op, "L", array=a)
    w, v = np.linalg.eig(a)
    return w, _core.Dense(v)


def _dense_values(a: Any, op: Any) -> Any:
    return np.linalg.eigvalsh(a) if _is_hermitian(a, op) else np.linalg.eigvals(a)


def _instead(op: Any) -> str | None:
    """A Hermitian matrix goes by eigh; a triangle is in Schur form, and its vectors are solves."""
    if looks_hermitian(op):
        return "that of eigh"
    return "4 n^3" if min(op._known("band")) == 0 else None


def _doubt(op: Any) -> Any:
    """Only the dense form shows whether it is Hermitian."""
    held = op._head == "dense" and op._init is not None
    unknown = not held and read_hermitian(op) is None
    return ("where it is Hermitian", [eigenbasis]) if unknown else None


pairs = Question(
    _dense_pairs,
    name="eig",
    how="geev, Hermitian: heevd (NumPy)",
    cost="O(n^3)",
    kept="eig",
    whole=True,
    arrays=7,
    instead=_instead,
    doubt=_doubt,
)
eigvals = Question(
    _dense_values,
    name="eigvals",
    how="geev, Hermitian: heevd (NumPy)",
    cost="O(n^3)",
    kept="eigvals",
    whole=True,
    arrays=2,
    instead=lambda op: "4 n^3 / 3" if looks_hermitian(op) else None,
)


def pairs_row(
    *heads: str,
    how: str = "",
    cost: str = "",
    guard: str = "",
    called: str = "",
    calls: int = 1,
    asks: Any = None,
    doubt: Any = "",
) -> Callable[[Registered], Registered]:
    """Registers a row of both questions; ``vectors`` tells it which one is asked, and ``asks`` and
    ``doubt``."""

    def add(answer: Registered) -> Registered:
        more: Any = {"how": how, "guard": guard, "called": called, "calls": calls}

        def of(given: Any, vectors: bool) -> Any:
            return (lambda op: given(op, vectors)) if callable(given) else given

        both: Any = functools.wraps(answer)(lambda op: answer(op, True))
        alone: Any = functools.wraps(answer)(lambda op: answer(op, False))
        pairs.row(*heads, cost=cost, asks=of(asks, True), doubt=of(doubt, True), **more)(both)
        cheaper = cost.replace("that of eigh", "that of `eigvalsh`")
        own: Any = {"asks": of(asks, False), "doubt": of(doubt, False), **more}
        eigvals.row(*heads, cost=cheaper, **own)(alone)
        return answer

    return add


def _pair(w: Any, v: Any, vectors: bool) -> Any:
    """The answer that is asked for: (w, v()) or w alone."""
    return (w, v()) if vectors else w


def _split(found: Any, vectors: bool) -> Any:
    return found if vectors else (found, None)


def asks_eigh(op: Any, vectors: bool) -> Any:
    """What a row asks that goes `by_eigh` where that is Hermitian, by its parameters."""
    return [("eigh" if vectors else "eigvalsh", op, "L")] if looks_hermitian(op) else []


def doubt_eigh(op: Any, vectors: bool) -> Any:
    unknown = read_hermitian(op) is None
    asked = ("eigh" if vectors else "eigvalsh", op, "L")
    return ("where it is Hermitian", [asked]) if unknown else None


def by_eigh(op: Any, vectors: bool) -> Any:
    return eigenbasis(op, "L") if vectors else eigvalsh(op, "L")


# -- other kinds --


@pairs_row(
    "laplacian",
    "hadamard",
    "root",
    "tridiagonal",
    called="hermitian",
    how="of Hermitian ones: eigh",
    cost="that of eigh",
    guard="hermitian",
)
def _(op: Any, vectors: bool) -> Any:
    return by_eigh(op, vectors)


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
    w = _dense_values(a, op) if a is not None else np.asarray(eigvals(op))
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
