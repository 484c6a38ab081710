"""Element-wise nodes, pieces and joins of arrays: one function a head, of (walk, node)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._fallback.dense_forms import HALVES
from . import kinds, products

__all__ = ["HEADS"]


def _add(w: Any, row: Any) -> Any:
    return w.whole(row, 0) + w.whole(row, 1)


def _mul(w: Any, row: Any) -> Any:
    return w.whole(row, 0) * w.whole(row, 1)


def _div(w: Any, row: Any) -> Any:
    """Tall ones are read in several places, and kept."""

    def make() -> Any:
        return w.whole(row, 0) / w.whole(row, 1)[..., None]

    shape = w.rows[row.children[0]].shape
    return w.once_of("quotient", row, make) if 2 * shape[-1] <= shape[-2] else make()


def _scale(w: Any, row: Any) -> Any:
    c = w.coefficient(row)
    return w.whole(row, 0) if not row.num and c == 1 else w.whole(row, 0) * c


def _shift(w: Any, row: Any) -> Any:
    def make() -> Any:
        return w.ns.shifted(w.whole(row, 0), w.coefficient(row))

    small = w.rows[row.children[0]].head == "top_square" and not row.num
    return w.once_of(("shift", row.c), row, make) if small else make()


def _conjugate(w: Any, row: Any) -> Any:
    if isinstance(w.value(row.children[0]), tuple):
        sign, log = w.value(row.children[0])
        return w.ns.conj(sign), log
    return w.ns.conj(w.child(row, 0))


def _same(w: Any, row: Any) -> Any:
    return w.value(row.children[0])


def _swap(w: Any, row: Any) -> Any:
    return kinds.seen(w.ns, w.child(row, 0), row.i[0])


def _recip(w: Any, row: Any) -> Any:
    return 1.0 / w.whole(row, 0)


def _diagpow(w: Any, row: Any) -> Any:
    d = w.whole(row, 0)
    d = d ** row.i[0] if row.i[0] else d * 0 + 1
    return d if len(row.children) == 1 else d[..., None] * w.whole(row, 1)


def _eye(w: Any, row: Any) -> Any:
    return w.ns.eye(*row.shape[-2:], 0, row.dtype)


def _unit(w: Any, row: Any) -> Any:
    n, columns = row.shape[-2:]
    return w.ns.cast(w.ns.arange(n)[:, None] == row.i[0] + w.ns.arange(columns), row.dtype)


def _first_unit(w: Any, row: Any) -> Any:
    return w.ns.cast(w.ns.arange(row.shape[-1]) == 0, row.dtype)


def _ones(w: Any, row: Any) -> Any:
    return w.ns.ones(row.shape, row.dtype)


def _repeat(w: Any, row: Any) -> Any:
    return w.child(row, 0)[..., None]


def _element(w: Any, row: Any) -> Any:
    i, j = row.i[:2]
    x = w.child(row, 0)
    return x[..., i, j] if w.rows[row.children[0]].core == 2 else x[..., i]


def _array_diagonal(w: Any, row: Any) -> Any:
    return w.ns.diagonal(w.child(row, 0), row.i[0])


def _by_half(ns: Any, a: Any, adjoint: bool) -> Any:
    """The matrix whose upper triangle is the array's."""
    above, dtype = ns.triu(a, 1), ns.name_of(a)
    if not adjoint or not dtype.startswith("complex"):
        return ns.triu(a) + ns.mT(above)
    main = ns.triu(ns.tril(ns.cast(ns.real(a), dtype)))
    return above + main + ns.conj(ns.mT(above))


def _named(w: Any, row: Any) -> Any:
    return _by_half(w.ns, w.child(row, 0), bool(row.i[0]))


def _named_band(w: Any, row: Any) -> Any:
    a, width, ns = w.child(row, 0), row.i[1], w.ns
    dtype = ns.name_of(a)
    adjoint = bool(row.i[0]) and dtype.startswith("complex")
    n = a.shape[-1]
    lines = [a[..., k, :] for k in range(width)]
    lines.append(ns.cast(ns.real(a[..., width, :]), dtype) if adjoint else a[..., width, :])
    for k in range(1, width + 1):
        d = a[..., width - k, k:]
        d = ns.conj(d) if adjoint else d
        lines.append(kinds.padded(ns, d, d.ndim - 1, 0, n))
    return ns.concat([x[..., None, :] for x in lines], a.ndim - 2)


def _named_blocks(w: Any, row: Any) -> Any:
    a, b = w.child(row, 0), row.i[1]
    whole = w.ns.reshape(a, (*a.shape[:-1], a.shape[-1] // (b * b) if b else 0, b, b))
    made = w.ns.mT(whole) if row.i[2] else _by_half(w.ns, whole, bool(row.i[0]))
    return w.ns.reshape(made, a.shape)


def named_part(ns: Any, a: Any, word: str) -> Any:
    """The matrix that an array is declared to be by scipy.linalg.solve's word."""
    if word in ("lower triangular", "upper triangular"):
        return ns.tril(a) if word[0] == "l" else ns.triu(a)
    if word in ("diagonal", "tridiagonal"):
        k = int(word == "tridiagonal")
        return ns.triu(ns.tril(a, k), -k)
    if word in HALVES:
        return _by_half(ns, a, word[0] != "s")
    return a


def _product_diagonal(w: Any, row: Any) -> Any:
    a, b = (kinds.seen(w.ns, w.child(row, j), row.i[1 + j]) for j in (0, 1))
    k, n = row.i[0], row.shape[-1]
    a = a[..., max(-k, 0) : max(-k, 0) + n, :]
    b = w.ns.mT(b)[..., max(k, 0) : max(k, 0) + n, :]
    return w.ns.sum(a * b, -1)


def _sumall(w: Any, row: Any) -> Any:
    core = w.rows[row.children[0]].core
    x = w.whole(row, 0)
    return w.ns.sum(x, tuple(range(-core, 0))) if core else x


def _kronarray(w: Any, row: Any) -> Any:
    a, b = w.whole(row, 0), w.whole(row, 1)
    if row.core == 1:
        out = a[..., :, None] * b[..., None, :]
        return w.ns.reshape(out, (*out.shape[:-2], row.shape[-1]))
    out = a[..., :, None, :, None] * b[..., None, :, None, :]
    return w.ns.reshape(out, (*out.shape[:-4], *row.shape[-2:]))


def _gram(w: Any, row: Any) -> Any:
    a = w.child(row, 0)
    return w.ns.matmul(kinds.seen(w.ns, a, row.i[0]), a)


def _weighted(w: Any, row: Any) -> Any:
    """A^H D^-1 A."""

    def make() -> Any:
        a = w.whole(row, 0)
        w.tell(row, (*row.shape[:-2], row.shape[-1], row.shape[-1]))
        return w.ns.matmul(kinds.seen(w.ns, a, 3), _div(w, row))

    return w.once_of("weighted", row, make)


def _weighted_gram(w: Any, row: Any) -> Any:
    a, inner = w.whole(row, 0), _weighted(w, row)
    squares = w.ns.sum(w.ns.conj(a) * a, -2, True)
    return w.ns.concat([inner, w.ns.expand(squares, (*inner.shape[:-2], 1, inner.shape[-1]))], -2)


def _scaled_gram(w: Any, row: Any) -> Any:
    a, d = w.child(row, 0), w.child(row, 1)
    return w.ns.matmul(kinds.seen(w.ns, a, 3), a * d[..., None])


def _top_square(w: Any, row: Any) -> Any:
    """The squares below a weighted Gram matrix are not computed for it."""
    of = w.rows[row.children[0]]
    if of.head == "weighted_gram":
        return w.ns.cast(_weighted(w, of), row.dtype)
    return w.child(row, 0)[..., : row.shape[-2], :]


def _gemm_triangle(w: Any, row: Any) -> Any:
    return w.ns.matmul(kinds.seen(w.ns, w.child(row, 0), 3), w.child(row, 1))


def _line(w: Any, row: Any) -> Any:
    x, at = w.child(row, 0), row.i[1]
    return x[..., :, at : at + 1] if row.i[0] else x[..., at : at + 1, :]


def _slice(w: Any, row: Any) -> Any:
    r, rows, c, columns = row.i
    return w.child(row, 0)[..., r : r + rows, c : c + columns]


def _parts(w: Any, row: Any) -> list[Any]:
    core = row.core
    batch = tuple(row.shape[: len(row.shape) - core])
    found = [w.whole(row, k) for k in range(len(row.children))]
    return [w.ns.expand(x, (*batch, *x.shape[x.ndim - core :])) for x in found]


def _cholesky_batch(w: Any, row: Any) -> Any:
    return w.ns.stack([w.whole(row, k) for k in range(len(row.children))], 0)


def _grid(w: Any, row: Any) -> Any:
    parts = _parts(w, row)
    if row.core == 1:
        return w.ns.concat(parts, -1)
    width = row.i[1]
    lines = [w.ns.concat(parts[k : k + width], -1) for k in range(0, len(parts), width)]
    return w.ns.concat(lines, -2)


def _block_products(w: Any, row: Any) -> Any:
    x, at, parts = w.child(row, 0), 0, []
    for k in range(1, len(row.children)):
        a = kinds.seen(w.ns, w.child(row, k), row.i[0])
        parts.append(w.ns.matmul(a, x[..., at : at + a.shape[-1], :]))
        at += a.shape[-1]
    return w.ns.concat(parts, -2)


def _concat(w: Any, row: Any) -> Any:
    """Of a Hankel matrix: the first column, and the last row without its first number."""
    c, r = _parts(w, row)
    return w.ns.concat([c, r[..., min(1, r.shape[-1]) :]], -1)


def _blocks(w: Any, row: Any) -> Any:
    return blocks(w.ns, _parts(w, row), row.dtype)


def blocks(ns: Any, parts: Any, dtype: str) -> Any:
    """Along the diagonal, zeros elsewhere."""
    columns, lines, at = sum(x.shape[-1] for x in parts), [], 0
    for x in parts:
        pad = [(*x.shape[:-1], at), (*x.shape[:-1], columns - at - x.shape[-1])]
        lines.append(ns.concat([ns.zeros(pad[0], dtype), x, ns.zeros(pad[1], dtype)], -1))
        at += x.shape[-1]
    return ns.concat(lines, -2)


def _blocks_of_rows(w: Any, row: Any) -> Any:
    a, g = w.child(row, 0), row.i[0]
    m = a.shape[-2] // g
    return blocks(w.ns, [a[..., k * m : (k + 1) * m, :] for k in range(g)], row.dtype)


def _ravel(w: Any, row: Any) -> Any:
    return w.ns.reshape(w.child(row, 0), row.shape)


def _unfold(w: Any, row: Any) -> Any:
    x = w.child(row, 0)
    batch = x.shape[: x.ndim - w.rows[row.children[0]].core]
    tail = _tail(row)
    if row.head == "kron_fold":
        batch = batch if row.i[0] == 1 else batch[:-1]
    return w.ns.reshape(x, (*batch, *tail))


def _tail(row: Any) -> tuple[int, ...]:
    L, n, R, k = row.i
    if row.head == "kron_fold":
        return (L * n * R, k)
    return (n, R * k) if L == 1 else (L, n, R * k)


def _gather(w: Any, row: Any) -> Any:
    x, (L, n, R, k) = w.child(row, 0), row.i
    b = x.ndim - 2
    x = w.ns.reshape(x, (*x.shape[:-2], L, n, R * k))
    x = w.ns.moved(x, [*range(b), b + 1, b, b + 2])
    return w.ns.reshape(x, (*x.shape[:b], n, L * R * k))


def _spread(w: Any, row: Any) -> Any:
    x, (L, n, R, k) = w.child(row, 0), row.i
    b = x.ndim - 2
    x = w.ns.reshape(x, (*x.shape[:-2], n, L, R * k))
    x = w.ns.moved(x, [*range(b), b + 1, b, b + 2])
    return w.ns.reshape(x, (*x.shape[:b], L * n * R, k))


def _khatri_rao(w: Any, row: Any) -> Any:
    a, b = w.whole(row, 0), w.whole(row, 1)
    out = a[..., :, None, :] * b[..., None, :, :]
    return w.ns.reshape(out, (*out.shape[:-3], *row.shape[-2:]))


def _rowmix(w: Any, row: Any) -> Any:
    a, g = w.whole(row, 0), w.whole(row, 1)
    if not a.shape[-1]:
        return w.ns.zeros(row.shape, row.dtype)
    g = w.ns.reshape(g, (*g.shape[:-1], a.shape[-1], row.i[0]))
    return w.ns.matmul(a[..., None, :], g)[..., 0, :]


def _diag_gather(w: Any, row: Any) -> Any:
    a, (k, s, t, length) = w.child(row, 0), row.i
    m, n = a.shape[-2:]
    x, y = np.arange(length) + max(-k, 0), np.arange(length) + max(k, 0)
    at = (x // s % m) * n + y // t % n
    return w.ns.take(w.ns.reshape(a, (*a.shape[:-2], m * n)), at, a.ndim - 2)


def _diag_scatter(w: Any, row: Any) -> Any:
    """Diagonal k of a Kron of the four diagonals of its factors (op_krondiag.c)."""
    k, n, length = row.i[:3]
    r, low = k % n, max(-k, 0)
    d = (k - r) // n
    i = low + np.arange(length)
    a, b, parts = i // n, i % n, []
    for one, two, shift, offset in ((0, 1, d, r), (2, 3, d + 1, r - n)):
        inside = (b < n - r) if one == 0 else (b >= n - r)
        u, v = w.whole(row, one), w.whole(row, two)
        if not (u.shape[-1] and v.shape[-1] and inside.any()):
            continue
        at = np.where(inside, np.clip(a - max(-shift, 0), 0, u.shape[-1] - 1), 0)
        by = np.where(inside, np.clip(b - max(-offset, 0), 0, v.shape[-1] - 1), 0)
        both = w.ns.take(u, at, u.ndim - 1) * w.ns.take(v, by, v.ndim - 1)
        parts.append(both * w.ns.constant(inside, row.dtype))
    return sum(parts[1:], parts[0]) if parts else w.ns.zeros(row.shape, row.dtype)


def _bandprobe(w: Any, row: Any) -> Any:
    n, width = row.shape[-2:]
    at, ns = w.ns.arange(n)[:, None], w.ns
    return ns.cast(at % max(width, 1) == ns.arange(width), row.dtype)


def _band_from_products(w: Any, row: Any) -> Any:
    """ab[u + i - j, j] is element (i, j mod w) of the product."""
    a, (low, up) = w.child(row, 0), row.i[:2]
    n, width = a.shape[-2:]
    lines, j = np.arange(low + up + 1)[:, None], np.arange(n)[None]
    i = j + lines - up
    inside = (i >= 0) & (i < n)
    at = np.where(inside, i, 0) * width + j % width
    flat = w.ns.reshape(a, (*a.shape[:-2], n * width))
    found = w.ns.take(flat, at.reshape(-1), flat.ndim - 1)
    found = w.ns.reshape(found, (*flat.shape[:-1], *at.shape))
    return found * w.ns.constant(inside, row.dtype)


def _circulant_flip(w: Any, row: Any) -> Any:
    sizes = w.rows[row.children[1]].shape if len(row.children) > 1 else row.shape[-1:]
    at = kinds.flipped(sizes)
    c = w.child(row, 0)
    return w.ns.take(c, at, c.ndim - 1)


def _joint(w: Any, row: Any) -> Any:
    parts = [w.whole(row, k) for k in range(len(row.children))]
    return w.ns.concat([w.ns.reshape(x, (-1, 1)) for x in parts], 0)


def _results(w: Any, row: Any) -> Any:
    return [w.value(k) for k in row.children]


def _apply(w: Any, row: Any) -> Any:
    return products.apply(w, row.children[0], 0, w.child(row, 1), row.dtype)


def _todense(w: Any, row: Any) -> Any:
    return kinds.dense(w, row.children[0], row.dtype)


def _diagonal(w: Any, row: Any) -> Any:
    return kinds.diagonal(w, row.children[0], row.i[0], row.dtype)


def _op_element(w: Any, row: Any) -> Any:
    return kinds.dense(w, row.children[0], row.dtype)[..., row.i[0], row.i[1]]


def _transitions(w: Any, x: Any, states: int) -> Any:
    """Row by row as matrices; those of one column for each state are diagonal."""
    if x.shape[-1] != states:
        return w.ns.reshape(x, (*x.shape[:-1], states, states))
    return x[..., None] * w.ns.eye(states, states, 0, w.ns.name_of(x))


def _quasi_join(w: Any, row: Any) -> Any:
    """Generators of sums and element-wise products of two QuasiSeparable matrices."""
    ns, (how, first, second) = w.ns, row.i[:3]
    lines = row.shape[:-1]
    x, y = (ns.expand(w.whole(row, k), (*lines, w.rows[row.children[k]].shape[-1])) for k in (0, 1))
    if how == 0:  # beside each other
        return ns.concat([x, y], -1)
    if how == 2:  # products of each with each
        return ns.reshape(x[..., :, None] * y[..., None, :], row.shape)
    x, y = _transitions(w, x, first), _transitions(w, y, second)
    if how == 1:  # blocks on the diagonal
        right, left = (
            ns.zeros((*lines, *s), row.dtype) for s in ((first, second), (second, first))
        )
        rows = ns.concat([x, right], -1), ns.concat([left, y], -1)
        return ns.reshape(ns.concat(rows, -2), row.shape)
    both = x[..., :, None, :, None] * y[..., None, :, None, :]
    return ns.reshape(both, row.shape)


def _nothing(w: Any, row: Any) -> Any:
    return None


HEADS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "mul": _mul,
    "div": _div,
    "scale": _scale,
    "shift": _shift,
    "conjugate": _conjugate,
    "cast": _same,
    "swap": _swap,
    "recip": _recip,
    "diagpow": _diagpow,
    "eye": _eye,
    "unit": _unit,
    "first_unit": _first_unit,
    "ones": _ones,
    "repeat": _repeat,
    "array_element": _element,
    "array_diagonal": _array_diagonal,
    "named": _named,
    "named_band": _named_band,
    "named_blocks": _named_blocks,
    "product_diagonal": _product_diagonal,
    "sumall": _sumall,
    "kronarray": _kronarray,
    "gram": _gram,
    "weighted_gram": _weighted_gram,
    "scaled_gram": _scaled_gram,
    "top_square": _top_square,
    "gemm_triangle": _gemm_triangle,
    "matvec_row": _line,
    "slice": _slice,
    "cholesky_batch": _cholesky_batch,
    "grid": _grid,
    "concat": _concat,
    "blocks": _blocks,
    "block_products": _block_products,
    "blocks_of_rows": _blocks_of_rows,
    "ravel": _ravel,
    "sizes": _nothing,
    "kron_unfold": _unfold,
    "kron_fold": _unfold,
    "gather": _gather,
    "spread": _spread,
    "khatri_rao_array": _khatri_rao,
    "rowmix": _rowmix,
    "kron_diag_gather": _diag_gather,
    "kron_diag_scatter": _diag_scatter,
    "bandprobe": _bandprobe,
    "band_from_products": _band_from_products,
    "circulant_flip": _circulant_flip,
    "quasijoin": _quasi_join,
    "joint_array": _joint,
    "results_array": _results,
    "apply": _apply,
    "todense": _todense,
    "diagonal": _diagonal,
    "element": _op_element,
}
