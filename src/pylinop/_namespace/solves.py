"""Solves and determinants on arrays of a namespace. A determinant is a pair: its sign (a number of
modulus 1, or 0) and the logarithm of its modulus."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import config
from . import kinds, products

__all__ = ["HEADS"]

_T = 1


def _is_mirrored(w: Any, at: int) -> bool:
    """May a Hermitian matrix be one by what is said of it, so that only a triangle is to be read?
    Of what is made of a kind of other numbers all is there, and alike."""
    stack, seen = [(at, False)], {at}
    while stack:
        k, of_kind = stack.pop()
        row = w.rows[k]
        if row.head == "assume" or (row.head == "dense" and row.i[0]):
            return True
        if row.head == "array" and row.core == 2 and not of_kind:
            return True
        if row.head in ("gram", "weighted_gram", "scaled_gram"):
            continue  # which are computed whole
        of_kind = of_kind or row.head == "todense"
        stack += [(below, of_kind) for below in row.children if below not in seen]
        seen.update(row.children)
    return False


def _lu(w: Any, at: int, dtype: str, hermitian: bool = False) -> Any:
    """Once; `hermitian`: of one that is so by its upper triangle."""
    hermitian = hermitian and _is_mirrored(w, at)

    def make() -> Any:
        a = w.ns.cast(w.value(at), dtype)
        return w.ns.lu(w.ns.hermitian(a) if hermitian else a)

    return w.once(("lu", dtype, hermitian), at, make)


def _lu_solve(w: Any, row: Any) -> Any:
    """The factor is of the matrix that is seen through a mode, as in gradients: once for both."""
    at, mode = row.children[0], row.i[0]
    while w.rows[at].head == "swap":
        at, mode = w.rows[at].children[0], mode ^ w.rows[at].i[0]
    if _is_symmetric(w, at):
        return _by_triangle(w, row, at, True)
    return w.ns.lu_solve(_lu(w, at, row.dtype), w.whole(row, 1), mode)


def _is_symmetric(w: Any, at: int) -> bool:
    """Is it a real Toeplitz matrix of one vector? The rules solve it by its structure first, and
    leave LU for what fails there."""
    row = w.rows[at]
    of = w.rows[row.children[0]] if row.head == "todense" else row
    one = of.head == "toeplitz" and of.children[0] == of.children[1]
    return bool(one and row.dtype.startswith("float"))


def _cholesky(w: Any, at: int, dtype: str, tried: bool) -> Any:
    """The lower factor, or None where definiteness is only tried: there LU does without it, but
    where NaN is asked for instead. Which of both it is would be known to the device alone."""
    if tried and config.get("not_definite") != "nan":
        return None
    return w.once(("cholesky", dtype), at, lambda: w.ns.cholesky(w.ns.cast(w.value(at), dtype)))


def _by_triangle(w: Any, row: Any, at: int, tried: bool) -> Any:
    """The solution with a Hermitian matrix at a place, by its upper triangle."""
    ns, b, factor = w.ns, w.whole(row, 1), _cholesky(w, at, row.dtype, tried)
    if factor is None:
        return ns.lu_solve(_lu(w, at, row.dtype, True), b, 0)
    if w.rows[row.children[1]].head == "eye" and row.shape[-1] == row.shape[-2]:
        return _inverse_of(ns, factor)
    batch = np.broadcast_shapes(tuple(factor.shape[:-2]), tuple(b.shape[:-2]))
    b = ns.expand(b, (*batch, *b.shape[-2:]))
    factor = ns.expand(factor, (*batch, *factor.shape[-2:]))
    return ns.substitute(kinds.seen(ns, factor, 3), ns.substitute(factor, b, True), False)


def _cholesky_solve(w: Any, row: Any) -> Any:
    return _by_triangle(w, row, row.children[0], bool(row.i[0]))


def _invert(w: Any, row: Any) -> Any:
    """How: 0 by LU, 1 by Cholesky, beyond by one that is tried (op_invert.c). What is seen through
    a mode is inverted as it is, so that its factor is that of a solve."""
    ns, at, how, mode = w.ns, row.children[0], row.i[0], 0
    while not how and w.rows[at].head == "swap":
        at, mode = w.rows[at].children[0], mode ^ w.rows[at].i[0]
    factor = _cholesky(w, at, row.dtype, how > 1) if how else None
    if factor is not None:
        return _inverse_of(ns, factor)
    return kinds.seen(ns, ns.lu_inv(_lu(w, at, row.dtype, bool(how))), mode)


def _inverse_of(ns: Any, factor: Any) -> Any:
    """Of L L^H: one substitution and a product, which is the faster one of the two."""
    n = factor.shape[-1]
    eye = ns.eye(n, n, 0, ns.name_of(factor))
    half = ns.substitute(factor, ns.expand(eye, factor.shape), True)
    return ns.matmul(kinds.seen(ns, half, 3), half)


def _half_solve(w: Any, row: Any) -> Any:
    r = w.whole(row, 1)
    x = _by_triangle(w, row, row.children[0], bool(row.i[0]))
    if row.i[1]:
        return w.ns.sum(w.ns.conj(r) * x, -2)
    return w.ns.matmul(kinds.seen(w.ns, r, 3), x)


def _triangular_solve(w: Any, row: Any) -> Any:
    lower, mode, unit = row.i[:3]
    ns, a, b = w.ns, w.whole(row, 0), w.whole(row, 1)
    a = ns.tril(a, -1 if unit else 0) if lower else ns.triu(a, 1 if unit else 0)
    if unit:
        a = a + ns.eye(a.shape[-1], a.shape[-1], 0, row.dtype)
    batch = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    a, b = (ns.expand(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return ns.substitute(kinds.seen(ns, a, mode), b, bool(lower) != bool(mode & _T))


def _ldl_solve(w: Any, row: Any) -> Any:
    a = w.whole(row, 0)
    upper = w.ns.triu(a, 1)
    below = w.ns.mT(upper)
    a = w.ns.triu(a) + (w.ns.conj(below) if row.i[0] else below)
    return w.ns.solve(a, w.whole(row, 1))


def _normal_solve(w: Any, row: Any) -> Any:
    return w.ns.solve(w.whole(row, 0), w.whole(row, 1))


def _circulant_solve(w: Any, row: Any) -> Any:
    sizes = w.rows[row.children[1]].shape
    c = products.turned(w, w.child(row, 0), sizes, row.i[0])
    b = w.child(row, 2)
    real = not row.dtype.startswith("complex")
    return products.by_spectrum(w, 1 / products.spectrum(w, c, sizes), sizes, b, real)


def _circulant_spectrum(w: Any, row: Any) -> Any:
    """The eigenvalues of a circulant: of a real one half of its last level."""
    sizes = w.rows[row.children[1]].shape
    found = products.spectrum(w, w.whole(row, 0), sizes)
    if math.prod(sizes) != row.shape[-1]:
        found = w.ns.take(found, np.arange(sizes[-1] // 2 + 1), found.ndim - 1)
    return w.ns.reshape(found, tuple(row.shape))


def _whole_spectrum(w: Any, half: Any, sizes: Any) -> Any:
    """All of one of which half of the last level is there: conjugates of those turned round."""
    n, at = sizes[-1], np.indices(sizes)
    beyond = 2 * at[-1] > n
    back = [np.where(beyond, (-i) % k, i) for i, k in zip(at, sizes, strict=True)]
    index = np.ravel_multi_index(back, (*sizes[:-1], n // 2 + 1)).ravel()
    both = w.ns.concat([half, w.ns.conj(half)], -1)
    return w.ns.take(both, index + half.shape[-1] * beyond.ravel(), both.ndim - 1)


def _circulant_quotient(w: Any, row: Any) -> Any:
    """F^-1 diag(t / (b1 b2 ...)) F x."""
    sizes = w.rows[row.children[0]].shape
    values, *by = (w.values[k] for k in row.children[2:])  # complex, whatever the result is
    for divisor in by:
        values = values / divisor
    if values.shape[-1] != math.prod(sizes):
        values = _whole_spectrum(w, values, sizes)
    values = w.ns.reshape(values, (*values.shape[:-1], *sizes))
    real = not row.dtype.startswith("complex")
    return products.by_spectrum(w, values, sizes, w.child(row, 1), real)


def _of_kind(head: str, arrays: int) -> Callable[..., Any]:
    """A solve by the dense form of a kind whose children and attributes the node has."""

    def solved(w: Any, row: Any) -> Any:
        b = w.whole(row, arrays)
        n = b.shape[-2]
        at = row._replace(head=head, shape=(*_batch(w, row, arrays), n, n))
        return w.ns.solve(kinds.form(w, at), b)

    return solved


def _batch(w: Any, row: Any, arrays: int) -> tuple[int, ...]:
    shapes = [w.rows[k] for k in row.children[:arrays]]
    return tuple(np.broadcast_shapes(*(r.shape[: len(r.shape) - r.core] for r in shapes)))


def _band_solve(w: Any, row: Any) -> Any:
    n, b = row.shape[-2], w.whole(row, 1)
    at = row._replace(head="banded", shape=(*_batch(w, row, 1), n, n))
    return w.ns.solve(kinds.seen(w.ns, kinds.form(w, at), row.i[3]), b)


def _sparse_triangular_solve(w: Any, row: Any) -> Any:
    ns, n = w.ns, row.shape[-2]
    at = row._replace(head="sparse", children=row.children[:3], shape=(n, n))
    a = kinds.form(w, at)
    lower, unit = row.i[2] & 1, row.i[2] & 2
    a = ns.tril(a, -1 if unit else 0) if lower else ns.triu(a, 1 if unit else 0)
    if unit:
        a = a + ns.eye(n, n, 0, row.dtype)
    mode, b = row.i[1], w.whole(row, 3)
    a = ns.expand(a, (*b.shape[:-2], n, n))
    return ns.substitute(kinds.seen(ns, a, mode), b, bool(lower) != bool(mode & _T))


def _quasi_triangular_solve(w: Any, row: Any) -> Any:
    ns, n, b, mode = w.ns, row.shape[-2], w.whole(row, 4), row.i[0]
    shape = (*_batch(w, row, 4), n, n)
    a = kinds.form(w, row._replace(head="quasiseparable", shape=shape, i=(1, *row.i[1:])))
    batch = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    a, b = ns.expand(a, (*batch, n, n)), ns.expand(b, (*batch, *b.shape[-2:]))
    return ns.substitute(kinds.seen(ns, a, mode), b, not mode & _T)


def _grid_solve(w: Any, row: Any) -> Any:
    return w.ns.solve(kinds.dense(w, row.children[0], row.dtype), w.whole(row, 1))


# -- eigenvalues of what is Hermitian; `walk.py` takes no other branch --


def _eigh(w: Any, row: Any) -> Any:
    at = row.children[0]
    return w.once("eigh", at, lambda: w.ns.eigh(w.value(at)))


def _eigval(w: Any, row: Any) -> Any:
    return _eigh(w, row)[0]


def _eigvec(w: Any, row: Any) -> Any:
    return kinds.seen(w.ns, _eigh(w, row)[1], row.i[1])


# -- determinants --


def _product(w: Any, d: Any) -> Any:
    """Of the elements of a vector."""
    return _of_parts(w, d, d)


def _of_parts(w: Any, d: Any, signed: Any) -> Any:
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf
        return w.ns.prod(w.ns.sign(signed), -1), w.ns.sum(w.ns.log(w.ns.abs(d)), -1)


def _vector_det(w: Any, row: Any) -> Any:
    return _product(w, w.child(row, 0))


def _dense_det(w: Any, row: Any) -> Any:
    a = w.child(row, 0)
    if not a.shape[-1]:
        return _one(w, row)
    if _is_symmetric(w, row.children[0]):
        return _by_cholesky(w, row, True)
    return w.ns.lu_slogdet(_lu(w, row.children[0], row.dtype))


def _ldl_det(w: Any, row: Any) -> Any:
    ns, a = w.ns, w.child(row, 0)
    below = ns.mT(ns.triu(a, 1))
    return ns.slogdet(ns.triu(a) + (ns.conj(below) if row.i[0] else below))


def _cholesky_det(w: Any, row: Any) -> Any:
    a = w.child(row, 0)
    if not a.shape[-1]:
        return _one(w, row)
    return _by_cholesky(w, row, bool(row.i[0]))


def _by_cholesky(w: Any, row: Any, tried: bool) -> Any:
    """The determinant of a Hermitian matrix."""
    factor = _cholesky(w, row.children[0], row.dtype, tried)
    if factor is None:
        return w.ns.lu_slogdet(_lu(w, row.children[0], row.dtype, True))
    d = w.ns.real(w.ns.diagonal(factor, 0))
    log = 2 * w.ns.sum(w.ns.log(d), -1)
    return w.ns.cast(w.ns.ones(log.shape, w.ns.name_of(log)), row.dtype), log


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _one(w: Any, row: Any) -> Any:
    batch = row.shape[:-1]
    return w.ns.ones(batch, row.dtype), w.ns.zeros(batch, _real(row.dtype))


def _mul_det(w: Any, row: Any) -> Any:
    """Of numbers side by side where those of both are there."""
    if w.sums is None or row.children[0] not in w.sums.within:
        (s, a), (t, b) = (w.value(k) for k in row.children)
        return s * t, a + b
    parts = [_numbers(w, k) for k in row.children]
    if None in parts or len({tuple(p[0].shape[:-1]) for p in parts}) > 1:
        (s, a), (t, b) = (HEADS[w.rows[k].head](w, w.rows[k]) for k in row.children)
        return s * t, a + b
    sides = ([w.ns.cast(v, row.dtype) for v in side] for side in zip(*parts, strict=True))
    return _of_parts(w, *(w.ns.concat(side, -1) for side in sides))


def _numbers(w: Any, at: int) -> Any:
    """The numbers that a determinant is the product of, by modulus and by sign; None of others."""
    row = w.rows[at]
    x = w.child(row, 0)
    if row.head == "vector_det":
        return x, x
    if not x.shape[-1] or _cholesky(w, row.children[0], row.dtype, bool(row.i[0])) is not None:
        return None
    return w.ns.lu_parts(_lu(w, row.children[0], row.dtype, True))


def _pow_det(w: Any, row: Any) -> Any:
    s, a = w.value(row.children[0])
    p = row.i[0]
    if not p:
        return _one(w, row)
    powered = w.ns.ones((), w.ns.name_of(s)) + 0 * s
    base = s if p >= 0 else w.ns.conj(s)
    for bit in bin(abs(p))[2:]:
        powered = powered * powered
        powered = powered * base if bit == "1" else powered
    return powered, a * float(p)


def _conj_det(w: Any, row: Any) -> Any:
    s, a = w.value(row.children[0])
    return w.ns.conj(s), a


def _scale_det(w: Any, row: Any) -> Any:
    s, a = w.value(row.children[0])
    n, c = row.i[3], row.c
    if row.num:
        c = w.coefficient(row)
        size = w.ns.abs(c)
        turn = c / size
        turn = turn if n % 2 else turn * turn
        return s * turn, a + n * w.ns.log(size)
    size = abs(c)
    if not size:
        return (s * 0, a * 0 - np.inf) if n else (s, a)
    turn = (c / size) ** n
    turn = turn if row.dtype.startswith("complex") else turn.real
    return s * turn, a + n * float(np.log(size))


def _const_det(w: Any, row: Any) -> Any:
    s, a = _one(w, row)
    return (s, a) if row.i[0] else (s * 0, a - np.inf)


def _closed_det(w: Any, row: Any) -> Any:
    t, b, h, s = row.i
    turn = 1j**t
    one, zero = _one(w, row)
    turn = turn if row.dtype.startswith("complex") else turn.real
    return one * turn, zero + float(h / 2 * np.log(b) + s / 2 * np.log(2))


def _circulant_det(w: Any, row: Any) -> Any:
    sizes = w.rows[row.children[1]].shape
    if 0 in sizes:
        return _one(w, row)
    values = products.spectrum(w, w.child(row, 0), sizes)
    flat = w.ns.reshape(values, (*values.shape[: values.ndim - len(sizes)], -1))
    s, a = _product(w, flat)
    return (s if row.dtype.startswith("complex") else w.ns.real(s)), a


def _det_of_kind(head: str, arrays: int) -> Callable[..., Any]:
    def found(w: Any, row: Any) -> Any:
        n = _length(w, row, head)
        children = row.children[:arrays]
        at = row._replace(head=head, shape=(*row.shape[:-1], n, n), children=children)
        return w.ns.slogdet(kinds.form(w, at)) if n else _one(w, row)

    return found


def _length(w: Any, row: Any, head: str) -> int:
    at = 1 if head == "tridiagonal" else 0
    return int(w.rows[row.children[at]].shape[-1])


def _householder_det(w: Any, row: Any) -> Any:
    if len(row.children) == 1:
        s, a = _one(w, row)
        return (s * -1 if w.rows[row.children[0]].shape[-1] else s), a  # of no rows it is 1
    v, tau = w.whole(row, 0), w.whole(row, 1)
    d = 1 - tau * w.ns.sum(w.ns.conj(v) * v, -1)
    return _product(w, d[..., None])


def _grid_shift_det(w: Any, row: Any) -> Any:
    return w.ns.slogdet(kinds.dense(w, row.children[0], row.dtype))


def _permutation_det(w: Any, row: Any) -> Any:
    """The sign of the order: of the matrix itself."""
    index = w.value(row.children[0])
    n = int(index.shape[-1])
    at = row._replace(shape=(*index.shape, n), head="permutation")
    return w.ns.slogdet(kinds.form(w, at)) if n else _one(w, row)


def _reflections_det(w: Any, row: Any) -> Any:
    """-1 for each vector that is not zero."""
    v = w.child(row, 0)
    square = w.ns.sum(w.ns.real(w.ns.conj(v) * v), -1)
    one = w.ns.ones((), w.ns.name_of(square))
    s, a = _one(w, row)
    return s * w.ns.prod(w.ns.where(square != 0, -one, one), -1), a


def _joint_det(w: Any, row: Any) -> Any:
    s, a = w.value(row.children[0])
    return w.ns.prod(s, -1), w.ns.sum(a, -1)


def _laplacian_det(w: Any, row: Any) -> Any:
    sizes = tuple(w.rows[row.children[0]].shape)
    found = np.linalg.slogdet(_core.Laplacian(sizes, boundary_conditions="dirichlet").toarray())
    s, a = _one(w, row)
    return s * float(found[0]), a + float(found[1])


HEADS: dict[str, Callable[..., Any]] = {
    "lu_solve": _lu_solve,
    "cholesky_solve": _cholesky_solve,
    "invert": _invert,
    "half_solve": _half_solve,
    "triangular_solve": _triangular_solve,
    "ldl_solve": _ldl_solve,
    "normal_equations_solve": _normal_solve,
    "circulant_solve": _circulant_solve,
    "circulant_spectrum": _circulant_spectrum,
    "circulant_quotient": _circulant_quotient,
    "tridiagonal_solve": _of_kind("tridiagonal", 3),
    "band_solve": _band_solve,
    "sparse_triangular_solve": _sparse_triangular_solve,
    "quasitri": _quasi_triangular_solve,
    "vector_det": _vector_det,
    "lu_det": _dense_det,
    "cholesky_det": _cholesky_det,
    "ldl_det": _ldl_det,
    "mul_det": _mul_det,
    "pow_det": _pow_det,
    "conj_det": _conj_det,
    "scale_det": _scale_det,
    "const_det": _const_det,
    "closed_det": _closed_det,
    "circulant_det": _circulant_det,
    "triangular_det": _det_of_kind("tridiagonal", 3),
    "banded_det": _det_of_kind("banded", 1),
    "householder_det": _householder_det,
    "joint_det": _joint_det,
    "grid_solve": _grid_solve,
    "eigval": _eigval,
    "eigvec": _eigvec,
    "grid_shift_det": _grid_shift_det,
    "permutation_det": _permutation_det,
    "reflections_det": _reflections_det,
    "grid_det": _laplacian_det,
}
