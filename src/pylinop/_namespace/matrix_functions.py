"""Exponential, logarithm and square root of operators on arrays of a namespace. No value is looked
at: what C raises for is NaN.

    Diag, BlockDiag, c * Diag   by their parts, and operators again; exp(KronSum) is a Kron
    known to be Hermitian       by eigenvalues
    other exponentials          scaling and squaring (Higham 2005): Pade's [13/13] of A / 2^s,
                                squared s times, at most `_SQUARINGS`; NaN where that is too few
    other roots and logarithms  none: they go by Schur's form, which these libraries have not

Their first derivatives are those of C (function_derivatives.py): by divided differences at the
eigenvalues, and of exponentials at the top right of exp([[A, G], [0, A]]). Second ones
(function_second_derivatives.py): of roots by eigenvalues, of exponentials by three blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._lazy.kinds import Kind
from .._lazy.matrix_functions import OfForm
from .._structured.function_derivatives import named_triangle
from .._structured.properties import known

__all__ = ["by_parts", "is_function", "value"]

_NUMBERS: dict[str, Callable[..., Any]] = {"expm": np.exp, "logm": np.log, "sqrtm": np.sqrt}
_DERIVATIVES = {f"derivative of {name}": name for name in _NUMBERS}
_SECOND = {f"second derivative of {name}": name for name in _NUMBERS}
_SQUARINGS = 24  # of what has a 1-norm of up to 9e7
_THETA = 5.371920351148152  # up to which Pade's is right to double precision
_PADE = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000),
    *(10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)  # fmt: skip


def is_function(a: Any) -> bool:
    """Is a LazyArray such a function of a matrix?"""
    if a._head != "made" or not isinstance(a._more[0], OfForm):
        return False
    return any(a._more[0].name in names for names in (_NUMBERS, _DERIVATIVES, _SECOND))


# -- structure: LazyArrays of LazyArrays --


def _operands_first(root: Any) -> list[Any]:
    """The matrices that one is made of, each once."""
    order: list[Any] = []
    seen: set[int] = set()
    stack = [(root, False)]
    while stack:
        a, ready = stack.pop()
        if ready:
            order.append(a)
        elif id(a) not in seen:
            seen.add(id(a))
            stack.append((a, True))
            stack += [(x, False) for x in a._args if is_lazy(x) and x.ndim >= 2]
    return order


def by_parts(root: Any, leaf: Callable[[Any], Any] | None = None) -> Any:
    """The same LazyArray with functions of what has structure as operators of their parts, and the
    others as leaves."""
    order = _operands_first(root)
    if not any(map(is_function, order)):
        return root
    made: dict[int, Any] = {}
    for a in order:
        parts = _structured(a) if is_function(a) else None
        if parts is not None and (parts.shape, parts.dtype) == (a.shape, a.dtype):
            made[id(a)] = by_parts(parts, leaf)
            continue
        if is_function(a) and leaf is not None:
            made[id(a)] = leaf(a)
            continue
        args = tuple([made.get(id(x), x) for x in a._args])
        same = all(x is y for x, y in zip(args, a._args, strict=True))
        made[id(a)] = a if same else _core._LazyArray(a._head, args, a.shape, a.dtype, a._more)
    return made[id(root)]


def _structured(a: Any) -> Any:
    """Of a function by the parts of what it is of; None where there is no such form."""
    f, of, c = a._more[0], a._args[0], None
    if f.name not in _NUMBERS:
        return None
    if f.name == "expm" and of._head == "scale":
        of, c = of._args
    kind = of._more[0] if of._head == "made" else None
    if not isinstance(kind, Kind) or kind.kwargs or len(kind.args) != len(of._args):
        return None
    parts = of._args if c is None else [c * x for x in of._args]
    if kind.cls is _core.Diag:
        return kind(_NUMBERS[f.name](parts[0]))
    of_operators = kind.cls is _core.BlockDiag or (kind.cls is _core.KronSum and f.name == "expm")
    if of_operators and all(x.shape[-1] == x.shape[-2] for x in parts):
        functions = [_core._LazyArray("made", (x,), x.shape, a.dtype, a._more) for x in parts]
        return (_core.BlockDiag if kind.cls is _core.BlockDiag else _core.Kron)(*functions)
    return None


# -- values --


def value(run: Any, a: Any) -> Any:
    """The matrix, of one that has no parts."""
    of, name = a._args[0], a._more[0].name
    base = _DERIVATIVES.get(name) or _SECOND.get(name, name)
    uplo = run.about(of, lambda op: named_triangle(op) if known(op, "hermitian") is True else None)
    is_hermitian = uplo is not None
    if (base != "expm" and not is_hermitian) or name == "second derivative of logm":
        raise NotImplementedError(
            f"{name} of shape {a.shape} has no form on the arrays of other libraries but of "
            "what is known to be Hermitian, as by Dense(a, assume_a='her'), and of Diag and "
            "BlockDiag of these: compute it on the CPU"
        )
    m = run.ns.cast(run.value(of), a.dtype.name)
    if not a.shape[-1]:
        return m
    if is_hermitian:
        m = run.ns.hermitian(m if uplo == "U" else run.ns.conj(run.ns.mT(m)))
    if name in _DERIVATIVES:
        g = run.ns.cast(run.value(a._args[1]), a.dtype.name)
        return _of_block(run.ns, m, g) if base == "expm" else _by_differences(run.ns, base, m, g)
    if name in _SECOND:
        g, h = (run.ns.cast(run.value(x), a.dtype.name) for x in a._args[1:])
        return (_of_three if base == "expm" else _of_root_twice)(run.ns, m, g, h)
    return _by_eigenvalues(run.ns, name, m) if is_hermitian else _exponential(run.ns, m)


def _sized(ns: Any, g: Any) -> tuple[Any, Any]:
    """A block that is not too large, of which a function is accurate, and its size."""
    size = ns.max(ns.max(ns.abs(g), -1, True), -2, True)
    size = ns.where(size > 0, size, size * 0 + 1)
    return g / size, size


def _of_block(ns: Any, m: Any, g: Any) -> Any:
    """The derivative of the exponential at m^H along g."""
    n, adjoint = m.shape[-1], ns.conj(ns.mT(m))
    g, size = _sized(ns, g)
    batch = np.broadcast_shapes(tuple(adjoint.shape[:-2]), tuple(g.shape[:-2]))
    adjoint, g = (ns.expand(x, (*batch, n, n)) for x in (adjoint, g))
    lines = ns.concat([adjoint, g], -1), ns.concat([adjoint * 0, adjoint], -1)
    return _exponential(ns, ns.concat(lines, -2))[..., :n, n:] * size


def _of_three(ns: Any, m: Any, g: Any, h: Any) -> Any:
    """The second derivative of the exponential at m^H along g and h^H."""
    n, adjoint = m.shape[-1], ns.conj(ns.mT(m))
    (u, size), (v, other) = _sized(ns, g), _sized(ns, ns.conj(ns.mT(h)))
    batch = np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in (adjoint, u, v)))
    adjoint, u, v = (ns.expand(x, (*batch, n, n)) for x in (adjoint, u, v))
    zero = adjoint * 0

    def corner(u: Any, v: Any) -> Any:
        rows = [adjoint, u, zero], [zero, adjoint, v], [zero, zero, adjoint]
        whole = ns.concat([ns.concat(row, -1) for row in rows], -2)
        return _exponential(ns, whole)[..., :n, 2 * n :]

    return (corner(u, v) + corner(v, u)) * size * other


def _of_root_twice(ns: Any, m: Any, g: Any, h: Any) -> Any:
    """Likewise of the root of a Hermitian matrix, whose second differences are products; NaN where
    it is not definite."""
    values, q = ns.eigh(m)
    root = ns.sqrt(ns.or_nan(values > _noise(ns, values), values))
    over, back = 1 / (root[..., :, None] + root[..., None, :]), ns.conj(ns.mT(q))
    u, v = (over * ns.matmul(ns.matmul(back, x), q) for x in (g, ns.conj(ns.mT(h))))
    inner = -over * (ns.matmul(u, v) + ns.matmul(v, u))
    return ns.matmul(ns.matmul(q, inner), back)


def _by_differences(ns: Any, name: str, m: Any, g: Any) -> Any:
    """Of a root or logarithm of a Hermitian matrix; NaN where it is not definite."""
    values, q = ns.eigh(m)
    values = ns.or_nan(values > _noise(ns, values), values)
    a, b, back = values[..., :, None], values[..., None, :], ns.conj(ns.mT(q))
    with np.errstate(invalid="ignore", divide="ignore"):
        if name == "sqrtm":
            divided = 1 / (ns.sqrt(a) + ns.sqrt(b))
        else:
            z = (a - b) / (a + b)
            other = ns.where(z == 0, z * 0 + 0.5, z)
            ratio = ns.log1p(2 * other / (1 - other)) / (2 * other)
            divided = 2 * ns.where(z == 0, z * 0 + 1, ratio) / (a + b)
    inner = ns.matmul(ns.matmul(back, g), q)
    return ns.matmul(ns.matmul(q, inner * divided), back)


def _noise(ns: Any, values: Any) -> Any:
    """How large an eigenvalue is by rounding alone."""
    most = ns.max(ns.abs(values), -1, True)
    return (values.shape[-1] * float(np.finfo(ns.name_of(values)).eps)) * most


def _by_eigenvalues(ns: Any, name: str, m: Any) -> Any:
    values, vectors = ns.eigh(m)
    if name != "expm":  # what is there by rounding alone counts as zero, which has no logarithm
        is_zero = ns.abs(values) <= _noise(ns, values)
        values = ns.where(is_zero, values * 0, values)
        values = ns.or_nan(~is_zero, values) if name == "logm" else values
    values = ns.cast(values, ns.name_of(m))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {"expm": ns.exp, "logm": ns.log, "sqrtm": ns.sqrt}[name](values)
    return ns.matmul(vectors * found[..., None, :], ns.conj(ns.mT(vectors)))


def _exponential(ns: Any, m: Any) -> Any:
    norm = ns.max(ns.sum(ns.abs(m), -2), -1)
    s = ns.ceil(ns.log(norm / _THETA + 1e-30) / float(np.log(2.0)))
    s = ns.where(s > 0, s, s * 0)
    a = m * ns.cast((s * 0 + 2.0) ** -s, ns.name_of(m))[..., None, None]
    x = _pade(ns, a)
    for k in range(_SQUARINGS):
        x = ns.where((s > k)[..., None, None], ns.matmul(x, x), x)
    return ns.or_nan((s <= _SQUARINGS)[..., None, None], x)


def _pade(ns: Any, a: Any) -> Any:
    """Of a matrix whose 1-norm is at most `_THETA`."""
    b = [x / _PADE[0] for x in _PADE]  # so that single precision holds them
    n = a.shape[-1]
    a2 = ns.matmul(a, a)
    a4 = ns.matmul(a2, a2)
    a6 = ns.matmul(a4, a2)
    eye = ns.eye(n, n, 0, ns.name_of(a))
    odd = ns.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = ns.matmul(a, odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = ns.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    return ns.solve(even - odd, even + odd)
