"""Preconditioners by structure: diagonals, blocks, circulants, Kronecker products."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .._base.errors import NotFit
from .._base.memory import room
from .._operators.convert import inverse
from .._structured.dispatch import dense
from .._structured.operands import factors_of
from .terms import (
    is_diagonal,
    is_sparse,
    main_diagonal,
    positive_part,
    sparse_of,
    split,
    terms,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._operators.linear_operator import LinearOperator

_MANY = 512  # blocks from which one sparse matrix beats a step for each (2026-11, an AMD EPYC)


def identity(op: Any, why: str = "asked for") -> LinearOperator:
    """The identity, which does not precondition at all."""
    return told(_core.Identity(op.shape[-1], inexact(op.dtype)), op, "identity", why, True)


def exact(op: Any, why: str = "its inverse costs about as much as a product") -> LinearOperator:
    """The inverse itself."""
    return told(inverse(op), op, "exact", f"{why}; definite if A is", True)


def jacobi(op: Any, why: str = "the diagonal is known") -> LinearOperator:
    """1 / diagonal."""
    d = main_diagonal(op)
    if not bool((d != 0).all()) or not bool(np.isfinite(d).all()):
        at = int(np.flatnonzero(~((d != 0) & np.isfinite(d)).reshape(-1))[0])
        raise NotFit(f"jacobi: element {at} of the diagonal is {d.reshape(-1)[at]}")
    real = positive_part(d)
    if real is None:
        why += "; it is not positive throughout, so cg cannot use it"
    M = _core.Diag(1 / (d if real is None else real))
    return told(M, op, "jacobi", why, real is not None, d.nbytes)


def _bounds(op: Any, block: int | Sequence[int] | None) -> tuple[Any, str]:
    n = op.shape[-1]
    if block is None and op._head == "block" and op._init is not None:
        blocks = op._given("blocks")
        rows = [r[0].shape[0] for r in blocks]
        if rows == [b.shape[1] for b in blocks[0]]:
            return np.cumsum([0, *rows]), "the blocks on the diagonal of the Block"
        raise NotFit("block_jacobi: the Block has no square blocks on its diagonal: give block=")
    if block is None:
        block = 32
    if isinstance(block, (int, np.integer)):
        if block < 1:
            raise ValueError(f"block must be a size of at least 1, got {block}")
        ends = np.append(np.arange(0, n, block), n) if n else np.zeros(1, int)
        return ends, f"blocks of {block} rows"
    sizes = np.asarray(block, int)
    if sizes.ndim != 1 or (sizes < 1).any() or sizes.sum() != n:
        raise ValueError(f"the blocks' sizes must be positive and add to {n}, got {block!r}")
    return np.cumsum([0, *sizes]), f"{len(sizes)} blocks"


def _blocks(op: Any, ends: Any) -> list[Any]:
    """The blocks on the diagonal, as arrays."""
    found = []
    if is_sparse(op):
        S = sparse_of(op)
        return [S[i:j, i:j].toarray() for i, j in zip(ends, ends[1:])]
    for i, j in zip(ends.tolist(), ends[1:].tolist()):
        b = op[i:j, i:j].toarray()
        found.append(b.astype(inexact(b.dtype), copy=False))
    return found


def block_jacobi(op: Any, block: int | Sequence[int] | None = None) -> LinearOperator:
    """The inverses of blocks on the diagonal."""
    ends, why = _bounds(op, block)
    width = np.diff(ends)
    nbytes = int((width.astype(np.int64) ** 2).sum()) * inexact(op.dtype).itemsize
    room(op, 2 * nbytes, "block Jacobi")
    positive, made = True, []
    for k, b in enumerate(_blocks(op, ends)):
        try:
            scale = np.abs(b).max(initial=0)
            if np.abs(b - b.conj().T).max(initial=0) > 10 * np.finfo(b.dtype).eps * scale:
                positive = False
            elif positive:
                np.linalg.cholesky(b)
        except np.linalg.LinAlgError:
            positive = False
        try:
            x = np.linalg.inv(b)
        except np.linalg.LinAlgError:
            raise NotFit(f"block_jacobi: block {k}, of {len(b)} rows, is singular") from None
        made.append((x + x.conj().T) / 2 if positive else x)
    if not positive:
        why += "; not all of them are Hermitian positive definite, so cg cannot use it"
    if len(made) > _MANY:
        M: Any = _core.Sparse(_on_diagonal(made, ends))
    else:
        M = _core.BlockDiag(*made) if made else _core.Identity(0, inexact(op.dtype))
    return told(M, op, "block_jacobi", why, positive, nbytes)


def _on_diagonal(blocks: list[Any], ends: Any) -> Any:
    """The blocks on the diagonal as one CSR array."""
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

    width = np.diff(ends)
    per_row = np.repeat(width, width)
    ptr = np.concatenate([[0], np.cumsum(per_row)])
    first = np.repeat(ends[:-1], width)
    index = np.arange(ptr[-1]) - np.repeat(ptr[:-1], per_row) + np.repeat(first, per_row)
    data = np.concatenate([b.reshape(-1) for b in blocks])
    return sp.csr_array((data, index, ptr), shape=(ends[-1], ends[-1]))


# -- Toeplitz: the nearest circulants, level by level --


def _chan(t: Any, n: int, axis: int) -> Any:
    """T. Chan 1988: the circulant nearest in the Frobenius norm; t by lags 1 - n to n - 1."""
    t = np.moveaxis(t, axis, -1)
    k = np.arange(n)
    back = np.concatenate([np.zeros((*t.shape[:-1], 1), t.dtype), t[..., : n - 1]], -1)
    return np.moveaxis(((n - k) * t[..., n - 1 :] + k * back) / n, -1, axis)


def _strang(t: Any, n: int, axis: int) -> Any:
    """Strang 1986: the middle diagonals, wrapped round."""
    t = np.moveaxis(t, axis, -1)
    k = np.arange(n)
    lag = np.where(k <= (n - 1) // 2, k, k - n)
    c = t[..., lag + n - 1]
    if n % 2 == 0 and n:
        c[..., n // 2] = (t[..., n // 2 + n - 1] + t[..., n // 2 - 1]) / 2
    return np.moveaxis(c, -1, axis)


def _lags(op: Any) -> tuple[Any, tuple[int, ...]] | None:
    """The elements of a square Toeplitz matrix by lag, and the sizes of its levels."""
    if op._head == "toeplitz":
        n = op.shape[-1]
        if n == 0:
            return np.zeros(0, inexact(op.dtype)), (0,)
        return np.concatenate([op[0, :][:0:-1], op[:, 0]]), (n,)
    if op._head == "multitoeplitz" and op._init is not None:
        t = np.asarray(op._given("t"))
        sizes = tuple((s + 1) // 2 for s in t.shape)
        odd = t.shape == tuple(2 * s - 1 for s in sizes)
        # Levels m_i x n_i have m_i + n_i - 1 lags: the means multiply to the size where m_i is n_i.
        return (t, sizes) if odd and op.shape == (math.prod(sizes),) * 2 else None
    return None


def toeplitz_parts(op: Any) -> tuple[Any, tuple[int, ...], Any] | None:
    """Lags, sizes of the levels, and the mean of a diagonal beside it; None if it is not such a
    sum."""
    rest, d = split(op)
    found = None if rest is None else _lags(rest)
    if found is None:
        found, d = _lags(op), None
    if found is None:
        return None
    return (*found, 0 if d is None or d.size == 0 else d.mean())


def circulant(op: Any, which: str = "circulant", why: str = "") -> LinearOperator:
    """The inverse of a circulant near a Toeplitz matrix."""
    parts = toeplitz_parts(op)
    if parts is None:
        raise NotFit(
            f"{which}: it takes a square Toeplitz or MultilevelToeplitz matrix, or one "
            f"plus a diagonal, got {type(op).__name__}"
        )
    lags, sizes, shift = parts
    real = np.asarray(lags).dtype.kind != "c" and np.asarray(shift).dtype.kind != "c"
    lags = np.asarray(lags, inexact(np.result_type(lags, shift)))
    hermitian = bool(np.array_equal(lags, lags[(slice(None, None, -1),) * lags.ndim].conj()))
    hermitian = hermitian and np.imag(shift) == 0
    tried = []
    for name in ("strang", "chan") if which == "circulant" else (which,):
        c = lags
        for axis, n in enumerate(sizes):
            c = (_strang if name == "strang" else _chan)(c, n, axis)
        c = c.copy()
        if c.size:
            c[(0,) * c.ndim] += shift
        values: Any = np.fft.fftn(c)
        values = values.real if hermitian else values
        least, most = np.abs(values).min(initial=np.inf), np.abs(values).max(initial=0)
        positive = hermitian and bool((values > 0).all())
        tried.append(f"{name}: eigenvalues from {values.min(initial=np.inf).real:.2g}")
        good = least > 1e3 * np.finfo(lags.dtype).eps * most and (positive or not hermitian)
        if good or c.size == 0:
            break
    else:
        raise NotFit(f"{which}: no definite circulant is near ({'; '.join(tried)})")
    x = np.fft.ifftn(1 / values).astype(lags.dtype if not real else np.result_type(lags, 1j))
    x = np.ascontiguousarray(x.real if real else x).astype(lags.dtype)
    why = why or f"{'Strang' if name == 'strang' else 'T. Chan'}'s circulant"
    if not hermitian:
        why += "; the matrix is not Hermitian, so cg cannot use it"
    M = _core.Circulant(x, len(sizes)) if x.size else _core.Identity(0, lags.dtype)
    return told(M, op, name, why, positive, x.nbytes, least=float(least), most=float(most))


# -- Kronecker --


def _kron_terms(op: Any) -> tuple[list[Any], Any, tuple[int, ...]]:
    """Kronecker terms as lists of factors, the diagonal of the rest, and the sizes."""
    krons, d, sizes = [], None, None
    for c, a in terms(op):
        if a._head == "kron":
            factors = factors_of(a)
            own = tuple(f.shape[-1] for f in factors)
            if any(f.shape[0] != f.shape[1] for f in factors) or (sizes or own) != own:
                raise NotFit("kronecker: the factors' sizes differ from term to term")
            sizes = own
            krons.append([c * factors[0], *factors[1:]])
        elif is_diagonal(a):
            e = c * a.diagonal()
            d = e if d is None else d + e
        else:
            raise NotFit(f"kronecker: a term is neither a Kron nor diagonal: {type(a).__name__}")
    if sizes is None:
        raise NotFit(f"kronecker: it takes a sum with Kron terms, got {type(op).__name__}")
    return krons, d, sizes


def _nearest_diagonal(d: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Positive vectors whose Kronecker product is near d: for two, the nearest."""
    d = d.reshape(sizes)
    if len(sizes) == 2:
        u, s, vh = np.linalg.svd(d, full_matrices=False)
        root = np.sqrt(s[0])
        return [np.abs(u[:, 0]) * root, np.abs(vh[0]) * root]
    mean = d.mean()
    axes = range(len(sizes))
    parts = [d.mean(tuple(j for j in axes if j != i)) / mean for i in axes]
    parts[0] = parts[0] * mean
    return parts


def _by_pencils(op: Any, factors: list[Any], d: Any, sizes: tuple[int, ...]) -> LinearOperator:
    """For Kron + Diag: takes the Diag's nearest Kronecker product, then eigenvectors of each
    pencil."""
    diagonal = positive_part(np.asarray(d))
    if diagonal is None:
        raise NotFit("kronecker: the diagonal beside the Kron is not positive")
    parts = _nearest_diagonal(diagonal, sizes)
    left: list[Any] = []
    values: list[Any] = []
    for f, part in zip(factors, parts, strict=True):
        a, root = dense(f), 1 / np.sqrt(np.maximum(part, np.finfo(part.dtype).tiny))
        if np.abs(a - a.conj().T).max() > 1e-10 * np.abs(a).max():
            raise NotFit("kronecker: a factor is not Hermitian")
        w, q = np.linalg.eigh(root[:, None] * a * root)
        left.append(root[:, None] * q)
        values.append(w)
    sum_ = reduce(np.multiply.outer, values).reshape(-1) + 1
    if not bool((sum_ > 1e-12).all()):
        raise NotFit(f"kronecker: not definite (a pencil's eigenvalue is {sum_.min():.2g})")
    V = _core.Kron(*left)
    M = V @ _core.Diag(1 / sum_) @ V.H
    far = np.linalg.norm(diagonal - reduce(np.multiply.outer, parts).reshape(-1))
    details = {"distance": float(far / np.linalg.norm(diagonal))}
    nbytes = sum_.nbytes + sum(v.nbytes for v in left)
    why = "Kron + Diag, the Diag replaced by its nearest Kronecker product"
    return told(M, op, "kronecker", why, True, nbytes, **details)


def kronecker(op: Any) -> LinearOperator:
    """The inverse of a Kronecker product, or of a sum of two, near a sum with Krons."""
    krons, d, sizes = _kron_terms(op)
    itemsize = inexact(op.dtype).itemsize
    room(op, 3 * itemsize * sum(n * n for n in sizes) + 2 * itemsize * op.shape[-1], "kronecker")
    if len(krons) == 1 and d is not None:
        return _by_pencils(op, krons[0], d, sizes)
    if len(krons) == 1:
        M = _core.Kron(*(inverse(f) for f in krons[0]))
        return told(M, op, "kronecker", "the inverses of the factors; definite if A is", True)
    if len(sizes) != 2:
        raise NotFit(f"kronecker: sums of Krons take two factors, got {len(sizes)}")
    pairs = [[dense(f) for f in factors] for factors in krons]
    if d is not None:
        diagonal = positive_part(np.asarray(d))
        if diagonal is None:
            raise NotFit("kronecker: the diagonal beside the Krons is not positive")
        pairs.append([np.diag(v) for v in _nearest_diagonal(diagonal, sizes)])
    a, b = (np.stack([p[i].reshape(-1) for p in pairs], 1) for i in (0, 1))
    (qa, ra), (qb, rb) = np.linalg.qr(a), np.linalg.qr(b)
    u, s, vh = np.linalg.svd(ra @ rb.T)
    A, B = ((q @ v).reshape(n, n) for q, v, n in zip((qa, qb), (u[:, 0], vh[0]), sizes))
    turn = np.trace(A) / max(abs(np.trace(A)), np.finfo(float).tiny)
    A, B = s[0] * A / turn, B * turn
    made, positive = [], True
    for x in (A, B):
        x = (x + x.conj().T) / 2 if _near_hermitian(x) else x
        try:
            positive = positive and _near_hermitian(x)
            np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            positive = False
        y = np.linalg.inv(x)
        made.append((y + y.conj().T) / 2 if positive else y)
    why = f"the nearest Kronecker product to {len(pairs)} terms (Van Loan and Pitsianis 1993)"
    rest = float(np.sqrt((s[1:] ** 2).sum()) / np.linalg.norm(s))
    nbytes = sum(x.nbytes for x in made)
    return told(_core.Kron(*made), op, "kronecker", why, positive, nbytes, distance=rest)


def _near_hermitian(a: Any) -> bool:
    return bool(np.abs(a - a.conj().T).max(initial=0) <= 1e-10 * np.abs(a).max(initial=0))
