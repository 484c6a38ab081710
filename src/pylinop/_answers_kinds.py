"""Immediate answers of the kinds: rows for the questions of _answers.

Two questions more serve the norms: the sums of moduli along rows or columns, and the Frobenius norm.
What is not immediate for a kind (NotImplemented) goes by the dense form."""

import functools
import math
import operator

import numpy as np

from . import _core, _scipy, _walk
from ._answers import (
    _T,
    _diagonal,
    _factors,
    _modulus,
    _norm_of_values,
    _outer,
    _Question,
    _within,
    cond,
    dense,
    eigvalsh,
    hermitian,
    inexact,
    norm,
    pinv,
    real_of,
    svdvals,
)
from ._forms import as_operator
from ._functions import inv

# -- values --


def _float(a):
    a = np.asarray(a)
    return a.astype(inexact(a.dtype), copy=False)


def _vector_room(op):
    """All eigenvalues at once: a vector, which the memory rule covers too."""
    _walk.materialising(op, op.shape[-1] * real_of(op.dtype).itemsize, False)


def _descending(s):
    return np.sort(s, axis=-1)[..., ::-1]


def _padded(s, op):
    """With zeros up to min(m, n) values."""
    rest = min(op.shape[-2:]) - s.shape[-1]
    s = np.broadcast_to(s, (*op.shape[:-2], s.shape[-1]))
    return np.concatenate([s, np.zeros((*s.shape[:-1], rest), s.dtype)], axis=-1)


def _joined(op, parts):
    """Vectors of the blocks one behind the other, over the whole batch."""
    batch = op.shape[:-2]
    return np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


def _det(op):
    from . import _linalg

    return np.asarray(_linalg.det(op))


def _reflection(op):
    """The one eigenvalue of a Householder that is not 1: its determinant."""
    return _det(op)[..., None]


def _with_ones(value, op):
    return np.concatenate([value, np.ones((*value.shape[:-1], op.shape[-1] - 1))], axis=-1)


def _check_permutation(op):
    op.diagonal()  # reads the indices: each once, within bounds


def _is_unitary(Q):
    """Is Q known to be square and unitary?"""
    if Q.shape[-1] != Q.shape[-2]:
        return False
    if Q._head in ("identity", "permutation"):
        return True
    if Q._init is None:
        return Q._by == "view" and _is_unitary(Q._operands[0])
    if Q._head == "dense":
        return Q._init[1] == "orthogonal"
    if Q._head == "householder":
        return Q._init[1] is None
    return (Q._head, "ortho") in (("dft", Q._init[-2]), ("dct", Q._init[-2]))


# -- circulants --


def _levels_of(op):
    """The sizes of a circulant's levels, of one that sums or products closed to too."""
    while op._init is None:
        op = next(f for f in op._operands if getattr(f, "_head", None) == "circulant")
    c, levels = op._init
    return c.shape[c.ndim - (levels or 1) :]


def _spectrum(op):
    """The eigenvalues of a circulant in the order of its frequencies, level by level."""
    sizes = _levels_of(op)
    if op._init is not None:
        c = _float(op._init[0])
    else:
        first = np.zeros(op.shape[-1], inexact(op.dtype))
        first[0] = 1
        c = op @ first
    c = c.reshape(*op.shape[:-2], *sizes)
    return np.fft.fftn(c, axes=tuple(range(-len(sizes), 0)))


def _eigenvalues(op):
    w = _spectrum(op)
    return w.reshape(*op.shape[:-2], op.shape[-1])


def _circulant_of(spectrum, op):
    """The circulant with those eigenvalues, real where ``op`` is."""
    axes = tuple(range(len(op.shape) - 2 - spectrum.ndim, 0))
    c = np.fft.ifftn(spectrum, axes=axes)
    c = c if op.dtype.kind == "c" else np.ascontiguousarray(c.real)
    return _core.Circulant(c.astype(inexact(op.dtype), copy=False), len(axes))


# -- transforms --


def _level_values(head, n, type_, norm):
    """Singular values of one level of a transform; None where they are not known."""
    if head == "dct":
        ends = {2: 2.0, 3: 0.5, 4: 1.0}.get(
            type_, 1.0
        )  # squared, that of one vector by the others'
        if type_ == 1 and norm != "ortho":
            return None
        size = 2 * (n - 1) if type_ == 1 else 2 * n
    else:
        ends, size = 1.0, n
    if norm == "ortho":
        return np.ones(n)
    s = np.full(n, math.sqrt(size) if norm in (None, "backward") else 1 / math.sqrt(size))
    s[0] *= math.sqrt(ends)
    return s


TRANSFORMS = ("dft", "dct", "hadamard")


def _inverse_transform(op):
    return op._by == "inverse" and op._operands[0]._head in TRANSFORMS


@svdvals.row("inverse", *TRANSFORMS)
def _(op):
    if op._init is None:
        if not _inverse_transform(op):
            return NotImplemented
        return (1 / (yield (op._operands[0],)))[..., ::-1]
    if op._head == "hadamard":
        return np.full(op.shape[-1], math.sqrt(op.shape[-1]))
    sizes = op._init[0]
    sizes = tuple(sizes) if np.iterable(sizes) else (int(sizes),)
    type_ = op._init[1] if op._head == "dct" else 0
    parts = [_level_values(op._head, n, 2 if type_ is None else type_, op._init[-2]) for n in sizes]
    if any(p is None for p in parts):
        return NotImplemented
    _vector_room(op)
    return _descending(functools.reduce(_outer, parts))


# -- singular values --


@svdvals.row("permutation")
def _(op):
    _check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


@svdvals.row("householder")
def _(op):
    w = np.abs(_reflection(op))
    return NotImplemented if np.isnan(w).any() else _descending(_with_ones(w, op))


@svdvals.row("circulant")
def _(op):
    return _descending(np.abs(_eigenvalues(op)))


@svdvals.row("blockdiag")
def _(op):
    parts = []
    for block in _factors(op):
        if 0 not in block.shape[-2:]:
            parts.append((yield (block,)))
    if not parts:
        return np.zeros((*op.shape[:-2], min(op.shape[-2:])))
    return _padded(_descending(_joined(op, parts)), op)


@svdvals.row("offdiag")
def _(op):
    if op._init is None:
        return NotImplemented
    return _padded(_descending(np.abs(_float(op._init[0]))), op)


@svdvals.row("full")
def _(op):
    if op._init is None:
        return NotImplemented
    one = np.full((*op.shape[:-2], 1), _modulus(op._init[1]))
    return _padded(one * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2]), op)


@svdvals.row("eigen")
def _(op):
    if op._init is None or not _is_unitary(op._init[0]):
        return NotImplemented
    return _padded(_descending(np.abs(_float(op._init[1]))), op)


@svdvals.row("root")
def _(op):
    if op._init is None:
        return NotImplemented
    return _padded((yield (op._init[0],)) ** 2, op)


@svdvals.row("kronsum")
def _(op):
    if not hermitian(op):  # else not normal
        return NotImplemented
    return _descending(np.abs(eigvalsh(op, "L")))


@svdvals.row("laplacian")
def _(op):
    return -np.asarray(eigvalsh(op, "L"))


@svdvals.row("tridiagonal")
def _(op):
    return _descending(np.abs(eigvalsh(op, "L"))) if hermitian(op) else NotImplemented


@svdvals.row("lowrank")
def _(op):
    found = _core_of(op)
    if found is None:
        return NotImplemented
    return _padded(np.linalg.svdvals(found[1]), op)


# -- low rank: U C V^H by QR of U and V --


def _low_rank(op):
    """U, C, V as arrays in the dtype of the whole; None where products closed to it."""
    if op._init is None or op._head != "lowrank":
        return None
    u, v, c = (*op._init, None, None)[:3]
    dtype = inexact(op.dtype)
    u = dense(u).astype(dtype, copy=False)
    v = u if v is None else dense(v).astype(dtype, copy=False)
    return u, None if c is None else dense(c).astype(dtype, copy=False), v


def _adjoint(a):
    return np.swapaxes(a, -1, -2).conj()


def _core_of(op):
    """(Q, M, P) with U C V^H = Q M P^H, Q and P of orthonormal columns; None where that is no
    smaller."""
    if op._init is None or as_operator(op._init[0]).shape[-1] >= min(op.shape[-2:]):
        return None
    u, c, v = _low_rank(op)
    q, r = np.linalg.qr(u)
    p, s = (q, r) if v is u else np.linalg.qr(v)
    return q, (r if c is None else r @ c) @ _adjoint(s), p


# -- sums of moduli: axis -2 of columns, -1 of rows --

sums = _Question(lambda a, axis: np.abs(a).sum(axis=axis))


@sums.row("diag", "identity")
def _(op, axis):
    return np.abs(_diagonal(op))


@sums.row("zeros")
def _(op, axis):
    return np.zeros((*op.shape[:-2], op.shape[-1 if axis == -2 else -2]))


@sums.row("scaled")
def _(op, axis):
    return _modulus(op._operands[1]) * (yield _within(op), axis)


@sums.row("view")
def _(op, axis):
    return (yield op._operands[0], -3 - axis if op._mode & _T else axis)


@sums.row("kron")
def _(op, axis):
    _walk.materialising(op, max(op.shape[-2:]) * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in _factors(op):
        s = _outer(s, (yield f, axis))
    return s


@sums.row("blockdiag")
def _(op, axis):
    parts = []
    for block in _factors(op):
        parts.append((yield block, axis))
    return _joined(op, parts)


@sums.row("block")
def _(op, axis):
    if op._init is None:
        return NotImplemented
    rows = op.blocks if axis == -1 else list(zip(*op.blocks, strict=True))
    parts = []
    for line in rows:
        total = 0.0
        for block in line:
            total = total + (yield block, axis)
        parts.append(total)
    return _joined(op, parts)


@sums.row("permutation")
def _(op, axis):
    _check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


@sums.row("full")
def _(op, axis):
    if op._init is None:
        return NotImplemented
    other, own = (-2, -1) if axis == -2 else (-1, -2)
    return np.full((*op.shape[:-2], op.shape[own]), _modulus(op._init[1]) * op.shape[other])


@sums.row("inverse", "dft", "hadamard")
def _(op, axis):
    if op._init is None:
        if op._by != "inverse" or op._operands[0]._head not in ("dft", "hadamard"):
            return NotImplemented
        return op.shape[-1] / (yield op._operands[0], axis)  # moduli are all the same
    n, norm = op.shape[-1], op._init[-2] if op._head == "dft" else None
    return np.full(n, {"ortho": math.sqrt(n), "forward": 1.0}.get(norm, float(n)))


@sums.row("circulant")
def _(op, axis):
    if op._init is None:
        return NotImplemented
    s = np.abs(_float(op._init[0])).reshape(*op.shape[:-2], -1).sum(axis=-1, keepdims=True)
    return np.broadcast_to(s, (*op.shape[:-2], op.shape[-1]))


@sums.row("householder")
def _(op, axis):
    if op._init is None:
        return NotImplemented
    v, tau = _float(op._init[0]), op._init[1]
    if tau is None:
        top = np.abs(v).max(axis=-1, keepdims=True)
        if not (np.isfinite(top) & (top > 0)).all():
            return NotImplemented
        v = v / top
        tau = 2 / (np.abs(v) ** 2).sum(axis=-1)
    tau = _float(tau)[..., None]
    size = np.abs(v)
    rest = size.sum(axis=-1, keepdims=True) - size
    return np.abs(1 - tau * size**2) + np.abs(tau) * size * rest


def _bands(op):
    """(offset, diagonal) of a band, floats; None where they cannot be had."""
    if op._head == "tridiagonal":
        if op._init is None and op.dtype.kind in "biu":
            return None  # may wrap
        return [(k, _float(op.diagonal(k))) for k in (-1, 0, 1)]
    if op._init is None:
        return None
    (lower, upper), ab = op._init[0], op._init[1]
    n = ab.shape[-1]
    return [
        (k, _float(ab[..., upper - k, max(k, 0) : n + min(k, 0)]))
        for k in range(-min(lower, n - 1), min(upper, n - 1) + 1)
    ]


@sums.row("tridiagonal", "banded")
def _(op, axis):
    bands = _bands(op)
    if bands is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for k, d in bands:
        at = max(k, 0) if axis == -2 else max(-k, 0)
        total[..., at : at + d.shape[-1]] += np.abs(d)
    return total


def _row_blocks(op):
    """The triangle, some rows at a time: (first row, rows)."""
    a, lower, unit = op._init
    n = a.shape[-1]
    for at in range(0, n, 256):
        end = min(at + 256, n)
        rows, keep = _float(a[..., at:end, :]), np.arange(at, end)[:, None] - np.arange(n)
        inside = keep >= (1 if unit else 0) if lower else keep <= (-1 if unit else 0)
        rows = np.where(inside, rows, 0)
        if unit:
            rows[..., np.arange(end - at), np.arange(at, end)] = 1
        yield at, rows


@sums.row("triangular")
def _(op, axis):
    if op._init is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for at, rows in _row_blocks(op):
        if axis == -2:
            total += np.abs(rows).sum(axis=-2)
        else:
            total[..., at : at + rows.shape[-2]] = np.abs(rows).sum(axis=-1)
    return total


def _entries(op):
    """Rows, columns and values of a Sparse, each place once."""
    a = op._init[0]
    parts = a.tocsr(copy=True) if a.format != "csr" else a.copy()
    parts.sum_duplicates()
    parts = parts.tocoo()
    return parts.row, parts.col, _float(parts.data)


@sums.row("sparse")
def _(op, axis):
    if op._init is None or not _scipy.issparse(op._init[0]) or op._init[0].dtype.kind in "bui":
        return NotImplemented
    i, j, v = _entries(op)
    own = -1 if axis == -2 else -2
    return np.bincount(j if axis == -2 else i, weights=np.abs(v), minlength=op.shape[own])


def _toeplitz(op):
    """First column and first row, floats; None where they cannot be had."""
    if op._init is None:
        return None
    c, r = op._init
    c = _float(c)
    return c, c.conj() if r is None else _float(r)


def _windows(before, after, count, width):
    """Sums of ``width`` neighbours of [before reversed, after], ``count`` of them, from the end of
    ``before`` on: entries of a column of a Toeplitz matrix as it moves to the right."""
    line = np.concatenate([np.abs(before)[..., ::-1], np.abs(after)[..., 1:]], axis=-1)
    first = line[..., : width + count - 1]
    return np.lib.stride_tricks.sliding_window_view(first, width, axis=-1).sum(axis=-1)


@sums.row("toeplitz")
def _(op, axis):
    found = _toeplitz(op)
    if found is None:
        return NotImplemented
    c, r = found if axis == -2 else found[::-1]
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = np.broadcast_to(c, (*batch, m)).copy(), np.broadcast_to(r, (*batch, n))
    if axis == -1:
        c[..., 0] = r[..., 0]  # the corner is the column's
    return _windows(c, r, n, m)


# -- Frobenius norms --

frobenius = _Question(lambda a: np.linalg.norm(a, axis=(-2, -1)))


def _root_of_squares(parts):
    """sqrt of a sum of squares that neither over- nor underflows."""
    return functools.reduce(np.hypot, parts, np.zeros(()))


def _length(v):
    """The 2-norm along the last axis, likewise."""
    top = np.abs(v).max(axis=-1, keepdims=True, initial=0)
    scale = np.where((top > 0) & np.isfinite(top), top, 1)
    return scale[..., 0] * np.linalg.norm(v / scale, axis=-1)


@frobenius.row("diag", "identity")
def _(op):
    return _length(_diagonal(op))


@frobenius.row("zeros")
def _(op):
    return np.zeros(op.shape[:-2])


@frobenius.row("scaled")
def _(op):
    return _modulus(op._operands[1]) * (yield (_within(op),))


@frobenius.row("view")
def _(op):
    return (yield (op._operands[0],))


@frobenius.row("kron")
def _(op):
    parts = []
    for f in _factors(op):
        parts.append((yield (f,)))
    return functools.reduce(operator.mul, parts)


@frobenius.row("blockdiag")
def _(op):
    parts = []
    for block in _factors(op):
        parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


@frobenius.row("block")
def _(op):
    if op._init is None:
        return NotImplemented
    parts = []
    for line in op.blocks:
        for block in line:
            parts.append((yield (block,)))
    return _root_of_squares(parts) + np.zeros(op.shape[:-2])


@frobenius.row("tridiagonal", "banded")
def _(op):
    bands = _bands(op)
    if bands is None:
        return NotImplemented
    return _root_of_squares([_length(d) for _, d in bands]) + np.zeros(op.shape[:-2])


@frobenius.row("triangular")
def _(op):
    if op._init is None:
        return NotImplemented
    return _root_of_squares([_length(_length(rows)) for _, rows in _row_blocks(op)])


@frobenius.row("sparse")
def _(op):
    if op._init is None or not _scipy.issparse(op._init[0]) or op._init[0].dtype.kind in "bui":
        return NotImplemented
    return _length(_entries(op)[2])


@frobenius.row("toeplitz")
def _(op):
    found = _toeplitz(op)
    if found is None:
        return NotImplemented
    (c, r), (m, n) = found, op.shape[-2:]
    down = np.minimum(m - np.arange(m), n)  # how often each stands there
    across = np.minimum(n - np.arange(1, n), m)
    return np.hypot(_length(c * np.sqrt(down)), _length(r[..., 1:] * np.sqrt(across)))


@frobenius.row("circulant")
def _(op):
    if op._init is None:
        return NotImplemented
    c = _float(op._init[0]).reshape(*op.shape[:-2], -1)
    return math.sqrt(op.shape[-1]) * _length(c)


@frobenius.row("full")
def _(op):
    if op._init is None:
        return NotImplemented
    size = _modulus(op._init[1]) * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2])
    return np.full(op.shape[:-2], size)


@frobenius.row("lowrank")
def _(op):
    found = _core_of(op)
    return NotImplemented if found is None else np.linalg.norm(found[1], axis=(-2, -1))


@frobenius.row("permutation", "householder", "inverse", "offdiag", "eigen", "root", *TRANSFORMS)
@frobenius.row("kronsum", "laplacian")
def _(op):
    known = op._head in ("permutation", "householder") or _inverse_transform(op)
    if op._init is None and not known:
        return NotImplemented
    return _length(svdvals(op))


# -- norms and condition --

VALUED = ("permutation", "householder", "dft", "dct", "hadamard", "circulant", "blockdiag", "full")
VALUED += ("inverse", "offdiag", "eigen", "root", "kronsum", "laplacian", "lowrank", "tridiagonal")
SUMMED = ("block", "banded", "triangular", "sparse", "toeplitz")


@norm.row(*VALUED, *SUMMED)
def _(op, ord):
    if ord == "fro":
        return frobenius(op)
    if ord in (1, -1, np.inf, -np.inf):
        s = sums(op, -2 if abs(ord) == 1 else -1)
        return s.max(axis=-1) if ord > 0 else s.min(axis=-1)
    return NotImplemented if op._head in SUMMED else _norm_of_values(svdvals(op), ord)


def _of_inverse(op, p):
    """The norm of a structured inverse; None where there is none, inf where op is singular."""
    if op._head == "circulant":
        w = _spectrum(op)
        if (w == 0).any():
            return None if op.shape[:-2] else np.inf
        return norm(_circulant_of(1 / w, op), p)
    if op._head == "blockdiag" and any(f.shape[-1] != f.shape[-2] for f in _factors(op)):
        return None
    try:
        return norm(inv(op), p)
    except np.linalg.LinAlgError:
        return None if op.shape[:-2] else np.inf


@cond.row(*VALUED)
def _(op, p):
    if p in (2, -2):
        s = svdvals(op)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            c = s[..., 0] / s[..., -1] if p == 2 else s[..., -1] / s[..., 0]
        return np.where(np.isnan(c) & ~np.isnan(s).any(axis=-1), np.inf, c)  # 0/0: singular
    if op._head not in ("permutation", "circulant", "blockdiag", *TRANSFORMS):
        return NotImplemented
    other = _of_inverse(op, p)
    return NotImplemented if other is None else norm(op, p) * other


# -- eigenvalues of Hermitian operators --


@hermitian.row("permutation")
def _(op):
    at = np.arange(op.shape[-1], dtype=float)
    return bool(np.array_equal(op @ (op @ at), np.broadcast_to(at, (*op.shape[:-2], at.size))))


@hermitian.row("householder")
def _(op):
    if op._init is None:
        return NotImplemented
    return op._init[1] is None or not np.imag(op._init[1]).any()


@hermitian.row("hadamard", "laplacian")
def _(op):
    return True


@hermitian.row("circulant")
def _(op):
    if op._init is None:
        return NotImplemented
    sizes = _levels_of(op)
    c = _float(op._init[0])
    axes = tuple(range(-len(sizes), 0))
    turned = np.roll(np.flip(c, axes), 1, axes)  # c[-k]
    return bool(np.array_equal(turned.conj(), c))


@hermitian.row("blockdiag", "kronsum")
def _(op):
    if op._head == "kronsum" and op._init is None:
        return NotImplemented
    for f in _factors(op):
        if f.shape[-1] != f.shape[-2] or (f.size and not (yield (f,))):
            return False
    return True


@hermitian.row("tridiagonal", "banded")
def _(op):
    bands = _bands(op)
    if bands is None:
        return NotImplemented
    d = dict(bands)
    return all(np.array_equal(d.get(-k, np.zeros_like(v)), v.conj()) for k, v in d.items())


@hermitian.row("toeplitz")
def _(op):
    found = _toeplitz(op)
    if found is None:
        return NotImplemented
    c, r = found
    square = op.shape[-1] == op.shape[-2]
    return square and not np.imag(c[..., 0]).any() and np.array_equal(c[..., 1:].conj(), r[..., 1:])


@hermitian.row("eigen")
def _(op):
    if op._init is None:
        return NotImplemented
    return not np.imag(op._init[1]).any() or NotImplemented


@hermitian.row("root")
def _(op):
    return True


@eigvalsh.row("permutation")
def _(op, uplo):
    if not hermitian(op):
        return NotImplemented
    n = op.shape[-1]
    minus = np.round((n - np.asarray(op.trace(), float)) / 2)
    return np.where(np.arange(n) < minus[..., None], -1.0, 1.0)


@eigvalsh.row("householder")
def _(op, uplo):
    if op._init is None or not hermitian(op):
        return NotImplemented
    w = _reflection(op).real
    return NotImplemented if np.isnan(w).any() else np.sort(_with_ones(w, op), axis=-1)


@eigvalsh.row("hadamard")
def _(op, uplo):
    if op._init is None:
        return NotImplemented
    n = op.shape[-1]
    return np.where(np.arange(n) < n // 2, -1.0, 1.0) * math.sqrt(n)


@eigvalsh.row("circulant")
def _(op, uplo):
    return np.sort(_eigenvalues(op).real, axis=-1) if hermitian(op) else NotImplemented


@eigvalsh.row("blockdiag")
def _(op, uplo):
    parts = []
    for block in _factors(op):
        if block.shape[-1] != block.shape[-2]:
            return NotImplemented
        if block.size:
            parts.append((yield block, uplo))
    return np.sort(_joined(op, parts), axis=-1)


@eigvalsh.row("kronsum")
def _(op, uplo):
    if op._init is None:
        return NotImplemented
    _vector_room(op)
    w = np.zeros(1)
    for f in _factors(op):
        one = yield f, uplo
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], -1)
    return np.sort(w, axis=-1)


def _axis_values(n, bc):
    """Eigenvalues of second differences on an axis, as scipy.sparse.linalg.LaplacianNd has them."""
    k = np.arange(n)
    if bc == "dirichlet":
        angle = np.pi * (k + 1) / (2 * (n + 1))
    elif bc == "neumann":
        angle = np.pi * k / (2 * n)
    else:
        angle = np.pi * ((k + 1) // 2) / n
    return -4 * np.sin(angle) ** 2


@eigvalsh.row("laplacian")
def _(op, uplo):
    if op._init is None:
        return NotImplemented
    _vector_room(op)
    grid, bc = op._init[:2]
    w = np.zeros(1)
    for n in tuple(grid) if np.iterable(grid) else (int(grid),):
        w = np.add.outer(w, _axis_values(n, "neumann" if bc is None else bc)).ravel()
    return np.sort(w)


@eigvalsh.row("tridiagonal")
def _(op, uplo):
    bands = _bands(op)
    if bands is None or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    lower, main, upper = (d for _, d in bands)
    batch, n = op.shape[:-2], op.shape[-1]
    d = np.broadcast_to(main.real, (*batch, n)).astype(np.float64)
    e = np.abs(lower if uplo == "L" else upper)  # a diagonal unitary makes them real
    e = np.broadcast_to(e, (*batch, n - 1)).astype(np.float64)
    for i in np.ndindex(*batch):
        if not _core._sterf(d[i], e[i]):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return d


@eigvalsh.row("eigen")
def _(op, uplo):
    if op._init is None or not _is_unitary(op._init[0]) or not hermitian(op):
        return NotImplemented
    w = np.sort(_float(op._init[1]).real, axis=-1)
    return np.broadcast_to(w, (*op.shape[:-2], op.shape[-1]))


@eigvalsh.row("root")
def _(op, uplo):
    return NotImplemented if op._init is None else svdvals(op)[..., ::-1]


@eigvalsh.row("full")
def _(op, uplo):
    if op._init is None or complex(op._init[1]).imag:
        return NotImplemented
    w = np.zeros((*op.shape[:-2], op.shape[-1]))
    w[..., 0 if op._init[1] < 0 else -1] = float(op._init[1]) * op.shape[-1]
    return w


@eigvalsh.row("lowrank")
def _(op, uplo):
    found = None
    if op._init is not None and (len(op._init) < 2 or op._init[1] is None):
        found = _core_of(op)
    if found is None or not np.array_equal(found[1], found[1]):
        return NotImplemented
    if len(op._init) > 2 and op._init[2] is not None and not hermitian(as_operator(op._init[2])):
        return NotImplemented
    w = np.linalg.eigvalsh((found[1] + _adjoint(found[1])) / 2)
    return np.sort(_padded(w, op), axis=-1)


# -- pseudo-inverses --


def _relative(how, op):
    """The relative cut-off that NumPy takes."""
    r = how.get("rtol", how.get("rcond"))
    if r is None and "rtol" in how:
        return max(op.shape[-2:]) * np.finfo(real_of(op.dtype)).eps
    return 1e-15 if r is None else np.asarray(r)


def _reciprocals(d, cut):
    return np.divide(1, d, where=np.abs(d) > cut, out=np.zeros_like(d))


@pinv.row("permutation")
def _(op, how):
    _check_permutation(op)
    return op.T


@pinv.row("dft", "dct", "hadamard")
def _(op, how):
    return inv(op)


@pinv.row("householder")
def _(op, how):
    if op._init is None or op._init[1] is not None or np.isnan(_reflection(op)).any():
        return NotImplemented
    return op


@pinv.row("circulant")
def _(op, how):
    w = _spectrum(op)
    top = np.abs(_eigenvalues(op)).max(axis=-1)
    cut = np.asarray(_relative(how, op) * top)
    cut = cut.reshape(*cut.shape, *[1] * (w.ndim - cut.ndim))
    return _circulant_of(_reciprocals(w, cut), op)


@pinv.row("blockdiag")
def _(op, how):
    blocks = _factors(op)
    if any(f.shape[:-2] != op.shape[:-2] for f in blocks):  # each batch element has its own cut-off
        return NotImplemented
    tops = [norm(f, 2) if f.size else np.zeros(()) for f in blocks]
    cut = _relative(how, op) * functools.reduce(np.maximum, tops)
    parts = []
    for f, top in zip(blocks, tops, strict=True):
        if not f.size:
            parts.append(_core.Zeros((*f.shape[:-2], f.shape[-1], f.shape[-2]), inexact(f.dtype)))
            continue
        own = np.divide(cut, top, where=np.asarray(top) > 0, out=np.ones(np.shape(cut + top)))
        hermitian_too = {"hermitian": True} if how.get("hermitian") else {}
        parts.append((yield f, {"rcond": own} | hermitian_too))
    return _core.BlockDiag(*parts)


@pinv.row("full")
def _(op, how):
    if op._init is None:
        return NotImplemented
    c, (m, n) = op._init[1], op.shape[-2:]
    shape = (*op.shape[:-2], n, m)
    return _core.Full(shape, 1 / c / m / n) if c else _core.Zeros(shape, inexact(op.dtype))


@pinv.row("lowrank")
def _(op, how):
    found = _core_of(op)
    if found is None:
        return NotImplemented
    q, middle, p = found
    return _core.LowRank(p, q, np.linalg.pinv(middle, rcond=_relative(how, op)))


@pinv.row("eigen")
def _(op, how):
    if op._init is None or not _is_unitary(op._init[0]):
        return NotImplemented
    d = _float(op._init[1])
    cut = _relative(how, op) * np.abs(d).max(axis=-1)
    return _core.Eigen(op._init[0], _reciprocals(d, np.asarray(cut)[..., None]))
