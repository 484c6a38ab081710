"""Functions of operators, f(c A + s I), kind by kind.

Four questions share most rows: exp, log, powers, and the caller's own functions. A Hermitian
operator goes by its eigenvectors, and the result is an Eigen, whose products, powers, solves and
determinants are cheap; factors, blocks, circulants, triangles and thin matrices keep their kind.
Logarithms and powers are the principal ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.checks import square
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact, real_of
from .._operators.convert import as_operator
from .dispatch import (
    GUARDS,
    Question,
    _as_precise,
    dense,
    diagonal_of,
    factors_of,
    keep_within,
    within,
)
from .eig import eigvals
from .eigenvalues_hermitian import multiple_of_identity, shift_of, shifted_thin
from .eigh import by_cycles, cycles_of, eigenbasis, reflection_parts, thin_hermitian
from .matrix_functions_dense import general
from .questions import eigvalsh, hermitian, looks_hermitian
from .scalar_function import Function
from .singular_values import circulant_of, floats, spectrum_of
from .unitary import complex_of, is_unitary

if TYPE_CHECKING:
    from .._base.type_variables import Registered


def _is_adjoint(a: Any) -> bool:
    """True if `a` is Hermitian up to the rounding of forming X^H X; otherwise rounding alone would
    decide on which side of a branch cut its tiny negative eigenvalues lie."""
    other = np.swapaxes(a, -1, -2).conj()
    if np.array_equal(a, other):
        return True
    d = np.sqrt(np.maximum(np.diagonal(a, 0, -2, -1).real, 0))
    off = a.shape[-1] * np.finfo(a.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.abs(a - other) <= off * d[..., :, None] * d[..., None, :]).all())


def _dense_function(a: Any, f: Any, op: Any) -> Any:
    if _is_adjoint(a):
        w, q = eigenbasis.of_dense(op, "L", array=a)
        return _core.Eigen(q, f.of_spectrum(w))
    keep_within(op, f.arrays)
    return _core.Dense(general(a, f))


def _instead(op: Any, f: Function) -> str | None:
    """A Hermitian array goes by its eigenvectors."""
    return "that of eigh" if looks_hermitian(op) else None


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


def _rows(
    *heads: str,
    of: Any = ALL,
    how: str = "",
    cost: str = "",
    guard: str = "",
    asks: Any = None,
    called: str = "",
    calls: int = 2,
) -> Callable[[Registered], Registered]:
    more: Any = {"how": how, "cost": cost, "guard": guard, "asks": asks, "called": called}

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


# -- diagonals, multiples, views, shifts --


@_rows("diag", how="of the diagonal", cost="O(n)", calls=1)
def _(op: Any, f: Any) -> Any:
    return _core.Diag(f(diagonal_of(op)))


@_rows("identity", how="f(1) I", cost="O(1)")
def _(op: Any, f: Any) -> Any:
    one = _core.Identity(op.shape, None if op._weak else inexact(op.dtype))
    c = f(np.ones(1, None if op._weak else real_of(op.dtype))).tolist()[0]
    return one if c == 1 else c * one


@_rows("zeros", how="f(0) I", cost="O(n)")
def _(op: Any, f: Any) -> Any:
    return _core.Diag(f(np.zeros(op.shape[:-1], real_of(op.dtype))))


@_rows("scaled", how="of A, the multiple within the function", cost="that of A")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    return (yield within(op), f.scaled(op._operands[1]))


@_rows("sum", how="of A + c I: of A, the shift within the function", cost="that of A")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    return (yield found[0], f.shifted(found[1]))


@_rows("view", how="of A, seen so; .conj() beside a branch cut only of Hermitian A", cost="A's")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    mode, below = op._mode, op._operands[0]
    if mode & CONJUGATED and f.name != "exp":
        if not hermitian(below):
            return NotImplemented
        mode ^= TRANSPOSED | CONJUGATED  # A^H is A
    elif mode & CONJUGATED:
        f = f.conj()
    found = yield below, f
    return _core._build("view", found, None, mode) if mode else found


@_rows("inverse", "power", how="of a Hermitian A: by its eigenvectors", cost="that of eigh")
def _(op: Any, f: Any) -> Any:
    if op._init is not None or op._by not in ("inverse", "power") or not hermitian(op):
        return NotImplemented
    return _by_basis(op, f)


# -- factors and blocks --


@_rows("blockdiag", how="block by block, square ones", cost="sum of the blocks'")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    blocks, found = factors_of(op), []
    if any(b.shape[-1] != b.shape[-2] for b in blocks):
        return NotImplemented
    for block in blocks:
        found.append((yield block, f) if block.shape[-1] else block)
    return _core.BlockDiag(*found)


def _principal(factors: Any) -> bool:
    """Is the principal function of the product that of the factors? It is if the arguments of any
    choice of eigenvalues add up to less than pi, or if all factors but one have only positive
    eigenvalues."""
    total, others = 0.0, 0
    for factor in factors:
        if hermitian(factor):
            w = eigvalsh(factor, "L")
            floor = -w.shape[-1] * np.finfo(w.dtype).eps * np.abs(w).max(axis=-1, keepdims=True)
            widest = 0.0 if (w >= floor).all() else math.pi
        else:
            w = eigvals(factor)
            widest = float(np.abs(np.angle(w)).max())
        total, others = total + widest, others + (widest > 0)
    return others <= 1 or total < math.pi * (1 - 1e-8)


def _square(factors: Any) -> bool:
    return all(a.shape[-1] == a.shape[-2] for a in factors)


def _kron_parts(op: Any, f: Any) -> list[Any] | None:
    """The factors, where f can be applied factor by factor; else None."""
    factors = factors_of(op)
    return factors if f.plain and _square(factors) and _principal(factors) else None


def _alone_asks(op: Any, f: Any) -> Any:
    """What `_kron_otherwise` asks: f of the one factor that is no multiple of I, or eigh."""
    others = [a for a in factors_of(op) if multiple_of_identity(a) is None]
    if len(others) == 1:
        return [(named(f), others[0], f)]
    return [("eigh", op, "L")] if op._known("hermitian") is not False else None


def named(f: Any) -> Any:
    """The question of a function."""
    return {"exp": expm, "log": logm, "power": power, "any": funm}[f.name]


def _kron_otherwise(op: Any, f: Any) -> Generator[Any, Any, Any]:
    """If all factors but one are identities, f of that one; if Hermitian, by the factors'
    vectors."""
    factors = factors_of(op)
    alone = [multiple_of_identity(a) for a in factors]
    others = [i for i, c in enumerate(alone) if c is None]
    if len(others) == 1 and _square(factors):
        at = others[0]
        inside = f
        for c in alone:
            inside = inside if c is None else inside.scaled(c)
        found = [_core.Identity(a.shape) for a in factors]
        found[at] = yield factors[at], inside
        return _core.Kron(*found)
    return _by_basis(op, f) if hermitian(op) else NotImplemented


@power.row(
    "kron",
    how="factor by factor where the branches add up, or all but one are c I; Hermitian: by eigh",
    cost="sum of the factors'",
)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    factors = _kron_parts(op, f)
    if factors is None:
        return (yield from _kron_otherwise(op, f))
    found: list[Any] = []
    for factor in factors:
        found.append((yield factor, f if not found else Function("power", f.p)))
    return _core.Kron(*found)


@logm.row(
    "kron",
    how="KronSum of the factors' where the branches add up, else as `funm`",
    cost="sum of the factors'",
)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    factors = _kron_parts(op, f)
    if factors is None:
        return (yield from _kron_otherwise(op, f))
    found: list[Any] = []
    for factor in factors:
        found.append((yield factor, f if not found else Function("log")))
    return _core.KronSum(*found)


@_rows(
    "kron",
    of=(expm, funm),
    how="all factors but one are c I: of that one; Hermitian: by eigh, a Kron of vectors",
    cost="sum of the factors'",
    asks=_alone_asks,
)
def _(op: Any, f: Any) -> Any:
    return _kron_otherwise(op, f)


@expm.row("kronsum", how="Kron of the operands'", cost="sum of the operands'", guard="given")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    found: list[Any] = []
    for operand in factors_of(op):
        inside = f if not found else Function("exp", scale=f.scale)
        found.append((yield operand, inside))
    return _core.Kron(*found)


@_rows(
    "kronsum", of=(logm, power, funm), how="Hermitian: by eigh, a Kron of vectors", cost="eigh's"
)
def _(op: Any, f: Any) -> Any:
    return _by_basis(op, f) if op._init is not None and hermitian(op) else NotImplemented


# -- by spectra --


def _mirrored(w: Any, axes: Any) -> Any:
    """conj(w[-k])"""
    return np.roll(np.flip(w, axes), 1, axes).conj()


@_rows("circulant", how="of the spectrum, a Circulant", cost="O(n log n)")
def _(op: Any, f: Any) -> Any:
    own, w = hermitian(op), spectrum_of(op)
    levels = w.ndim - (op.ndim - 2)
    axes = tuple(range(-levels, 0))
    if op.dtype.kind != "c":
        w = (w + _mirrored(w, axes)) / 2  # a spectrum that is its own mirror image is real
    flat = w.reshape(*op.shape[:-2], op.shape[-1])
    flat = flat.real if own else flat
    y = f.of_spectrum(flat, math.log2(op.shape[-1]) + 1)
    x = f.inner(flat)
    keeps = op.dtype.kind != "c" and not np.iscomplexobj(f.scale) and not np.iscomplexobj(f.shift)
    if keeps and own:
        keeps = not np.iscomplexobj(y)  # the spectrum is even, and so is f of it
    elif keeps and f.name in ("log", "power"):
        keeps = not ((x.imag == 0) & (x.real < 0)).any()
    elif keeps and f.name == "any":
        other = _mirrored(y.reshape(w.shape), axes).reshape(y.shape)
        keeps = np.allclose(y, other, rtol=1e3 * np.finfo(y.dtype).eps, atol=0)
    y = y.reshape(w.shape)
    if keeps:
        return circulant_of(y, op)
    c = np.fft.ifftn(y, axes=axes)
    return _core.Circulant(c.astype(complex_of(real_of(op.dtype)), copy=False), levels)


@_rows("permutation", how="a circulant a cycle length", cost="O(n log n)", guard="single", calls=25)
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    op.diagonal()  # each index once
    dtype, found = inexact(op.dtype), {}
    for k in cycles_of(op)[1]:
        first = np.zeros(k, dtype)
        first[-1] = 1
        found[k] = yield _core.Circulant(first), f
    return by_cycles(op, lambda k: found[k])


@_rows("eigen", how="of d, where Q is known to be unitary", cost="O(n)")
def _(op: Any, f: Any) -> Any:
    if op._init is None or not is_unitary(as_operator(op._given("Q"))):
        return _hermitian_only(op, f)
    return _core.Eigen(op._given("Q").copy(), f(floats(op._given("d"))))


@_rows("householder", how="f(1) I and one rank", cost="O(n)")
def _(op: Any, f: Any) -> Any:
    found = reflection_parts(op)
    if found is None or op.shape[-1] == 1:
        return _hermitian_only(op, f)
    v, value = found
    v = v / np.abs(v).max(axis=-1, keepdims=True)
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return _one_apart(op, f, np.concatenate([np.ones_like(value), value], axis=-1), v)


def _one_apart(op: Any, f: Any, w: Any, v: Any) -> Any:
    """f of a matrix with the eigenvalue w_1 at the unit vector v, and w_0 everywhere else."""
    both = f.of_spectrum(w, op.shape[-1])
    more = both[..., 1:, None] - both[..., :1, None]
    if not both[..., 0].any():
        return _core.LowRank(v[..., :, None], None, more)
    return _core.LowRankUpdate(_identity_times(both[..., 0], op), v[..., :, None], None, more)


@_rows("full", how="f(0) I and one rank", cost="O(n)")
def _(op: Any, f: Any) -> Any:
    n, dtype = op.shape[-1], inexact(op.dtype)
    if op._init is None or n == 1:
        return NotImplemented
    c = np.asarray(op._given("c")).astype(dtype)
    w = np.broadcast_to(np.stack([0 * c, n * c], axis=-1), (*op.shape[:-2], 2))
    return _one_apart(op, f, w, np.full(n, n**-0.5, dtype))


@_rows(
    "laplacian",
    "hadamard",
    "tridiagonal",
    called="hermitian",
    how="Hermitian: by eigh",
    cost="that of eigh",
)
def _(op: Any, f: Any) -> Any:
    return _hermitian_only(op, f)


@_rows("congruence", how="A f(B) A^H where A is known to be unitary", cost="that of B")
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    if op._init is None or not is_unitary(op._given("A")):
        return _hermitian_only(op, f)
    inner = yield _as_precise(as_operator(op._given("B")), op), f
    return _core.Congruence(op._given("A").copy(), inner)


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


@_rows("lowrank", how="of k x k, QR of U", cost="O(n k^2)")
def _(op: Any, f: Any) -> Any:
    return _thin(op, f)


@_rows("root", how="as the low rank it is, L thin; by the svd of L", cost="O(n k^2)", guard="given")
def _(op: Any, f: Any) -> Any:
    root = _as_precise(as_operator(op._given("L")), op)
    if root._head == "dense" and 2 * root.shape[-1] <= root.shape[-2]:
        return _thin(_core.LowRank(root), f)
    return _by_basis(op, f)


@_rows(
    "lowrankupdate",
    how="of c I + U C U^H: f(c) I and a low rank; of another base that is Hermitian by eigh",
    cost="O(n k^2)",
    asks=lambda op, f: [] if GUARDS["thin_shift"].holds(op) else [("eigh", op, "L")],
)
def _(op: Any, f: Any) -> Any:
    found = shifted_thin(op)
    answer = NotImplemented if found is None else _thin(found[0], f, found[1])
    return _hermitian_only(op, f) if answer is NotImplemented else answer


# -- triangles, matrices with assumptions --

ASSUMED_HERMITIAN = ("her", "hermitian", "pos", "positive definite")
SYMMETRIC = ("sym", "symmetric")


@_rows("triangular", how="SciPy on the triangle; Triangular", cost="O(n^3)", guard="given")
def _(op: Any, f: Any) -> Any:
    a, lower = dense(op, f.arrays), op._given("lower")
    if not lower:
        return _core.Triangular(general(a, f), False)
    turned = general(np.ascontiguousarray(np.swapaxes(a, -1, -2)), f)
    return _core.Triangular(np.swapaxes(turned, -1, -2))


def _is_assumed_hermitian(op: Any) -> bool:
    word = op._given("assume_a") if op._init is not None else None
    return word in ASSUMED_HERMITIAN or (word in SYMMETRIC and op.dtype.kind != "c")


@_rows(
    "dense",
    how="assumed Hermitian: heevd of its upper triangle, an Eigen",
    cost="9 n^3",
    asks=lambda op, f: [] if _is_assumed_hermitian(op) else None,
)
def _(op: Any, f: Any) -> Any:
    if not _is_assumed_hermitian(op):
        return NotImplemented
    w, q = eigenbasis.of_dense(op, "U", array=floats(op._given("a")))
    return _core.Eigen(q, f.of_spectrum(w))


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
