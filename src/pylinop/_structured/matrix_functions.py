"""Functions of operators, f(c A + s I); kind by kind in `kinds`.

Four questions share most rows (`functions_row`): exp, log, powers, and the caller's own functions.
A Hermitian operator goes by its eigenvectors, and the result is an Eigen, whose products, powers,
solves and determinants are cheap; factors, blocks, circulants, triangles and thin matrices keep
their kind. Logarithms and powers are the principal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.checks import square
from .._base.dtypes import inexact, real_of
from .._operators.convert import as_operator
from .dispatch import Question
from .eigh import eigenbasis, thin_hermitian
from .matrix_functions_dense import general
from .operands import keep_within
from .properties import GRAM, known, measured
from .questions import hermitian, looks_hermitian, read_hermitian
from .scalar_function import Function
from .unitary import complex_of

if TYPE_CHECKING:
    from .._base.type_variables import Registered


def _dense_function(a: Any, f: Any, op: Any) -> Any:
    written = op._head != "dense" and known(op, "hermitian as written")
    if written or measured(a, "hermitian", GRAM):
        w, q = eigenbasis.of_dense(op, "L", array=a)
        return _core.Eigen(q, f.of_spectrum(w))
    keep_within(op, f.arrays)
    return _core.Dense(general(a, f))


def _instead(op: Any, f: Function) -> str | None:
    """A Hermitian array goes by its eigenvectors."""
    if op._head == "dense" and op._init is not None:
        looks = measured(np.asarray(op._given("a")), "hermitian", GRAM)
    else:
        looks = looks_hermitian(op)
    return "that of eigh" if looks else None


def _doubt(op: Any, f: Function) -> Any:
    """Only the dense form shows whether it is Hermitian."""
    held = op._head == "dense" and op._init is not None
    unknown = not held and read_hermitian(op) is None
    return ("where it is Hermitian", [eigenbasis]) if unknown else None


def _question(name: str, how: str, cost: str = "O(n^3)") -> Question:
    return Question(
        _dense_function,
        name=name,
        how=how,
        cost=cost,
        kept="function",
        whole=True,
        arrays=5.1,
        instead=_instead,
        doubt=_doubt,
    )


expm = _question("expm", "Hermitian: heevd and an Eigen; else scipy.linalg.expm")
logm = _question("logm", "Hermitian: heevd and an Eigen; else scipy.linalg.logm, checked by expm")
power = _question(
    "sqrtm, fractional_matrix_power",
    "Hermitian: heevd and an Eigen; else scipy.linalg.sqrtm, checked, or fractional_matrix_power",
)
funm = _question(
    "funm", "Hermitian: heevd and an Eigen; else Schur and Parlett, with an estimate of the error"
)
ALL = (expm, logm, power, funm)


def functions_row(
    *heads: str,
    of: Any = ALL,
    how: str = "",
    cost: str = "",
    guard: str = "",
    asks: Any = None,
    called: str = "",
    calls: int = 2,
    doubt: Any = "",
    instead: Any = None,
) -> Callable[[Registered], Registered]:
    more: Any = {"how": how, "cost": cost, "guard": guard, "asks": asks, "called": called}
    more |= {"doubt": doubt, "instead": instead}

    def add(answer: Registered) -> Registered:
        for question in of:
            question.row(*heads, calls=calls, **more)(answer)
        return answer

    return add


def _by_basis(op: Any, f: Any) -> Any:
    """Makes f(A) from the eigenvectors of a Hermitian A."""
    w, q = eigenbasis(op, "L")
    return _core.Eigen(q, f.of_spectrum(w.astype(real_of(op.dtype), copy=False)))


def _hermitian_only(op: Any, f: Any) -> Any:
    """Takes operators that are Hermitian because of their parts as Hermitian, whatever rounding
    does to their entries: beside a branch cut rounding would decide."""
    return _by_basis(op, f) if hermitian(op) else NotImplemented


def _identity_times(c: Any, op: Any) -> Any:
    """c I in op's size and precision; c is a number, or an array over the batch."""
    c = np.asarray(c)
    precision = real_of(op.dtype)
    c = c.astype(complex_of(precision) if np.iscomplexobj(c) else precision)
    return _core.Diag(np.broadcast_to(c[..., None], (*c.shape, op.shape[-1])).copy())


# -- factors and blocks --


def named(f: Any) -> Any:
    """The question of a function."""
    return {"exp": expm, "log": logm, "power": power, "any": funm}[f.name]


# -- by spectra --


def _one_apart(op: Any, f: Any, w: Any, v: Any) -> Any:
    """f of a matrix with the eigenvalue w_1 at the unit vector v, and w_0 everywhere else."""
    both = f.of_spectrum(w, op.shape[-1])
    more = both[..., 1:, None] - both[..., :1, None]
    if not both[..., 0].any():
        return _core.LowRank(v[..., :, None], None, more)
    return _core.LowRankUpdate(_identity_times(both[..., 0], op), v[..., :, None], None, more)


@functions_row(
    "laplacian",
    "hadamard",
    "tridiagonal",
    called="hermitian",
    how="Hermitian: by eigh",
    cost="that of eigh",
    guard="hermitian",
)
def _(op: Any, f: Any) -> Any:
    return _by_basis(op, f)


# -- thin matrices --


def _thin(op: Any, f: Any, c: Any = 0) -> Any:
    """f(c I + U C U^H) = f(c) I + Q (f(c + w) - f(c)) Q^H, where Q has k orthonormal columns."""
    found = thin_hermitian(op)
    if found is None:
        return NotImplemented if c else _hermitian_only(op, f)
    q, m = found
    values, vectors = np.linalg.eigh(m)
    at = np.zeros((*values.shape[:-1], 1), values.dtype)
    both = f.shifted(c).of_spectrum(np.concatenate([at, values], axis=-1), op.shape[-1])
    base, more = both[..., 0], both[..., 1:] - both[..., :1]
    q = q @ vectors
    if not base.any():
        return _core.LowRank(q, None, _core.Diag(more))
    return _core.LowRankUpdate(_identity_times(base, op), q, None, _core.Diag(more))


# -- triangles, matrices with assumptions --


def applied(question: Any, A: Any, f: Any) -> Any:
    """f(A) in the precision of A; complex where A or the result is."""
    op = square(as_operator(A))
    if 0 in op.shape[-2:]:
        return _core.Dense(np.zeros(op.shape, inexact(op.dtype)))
    found = question(op, f)
    dtype = inexact(op.dtype)
    dtype = np.result_type(dtype, np.complex64) if found.dtype.kind == "c" else dtype
    return found if found.dtype == dtype else found.astype(dtype)


def exponential(op: Any) -> Any:
    """exp(op), in the precision of op."""
    return applied(expm, op, Function("exp"))
