"""Is the matrix of a tree positive definite, and as symmetric as its structure says? By bounds that
are cheap; where they do not tell, the matrix is taken as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import diags_array, eye_array
from scipy.sparse.linalg import splu

from .patterns import unpacked
from .program import BAND, divisors, innermost, offset_of

__all__ = ["proved"]

_SAFE = 0.8  # of what the definite terms give may be taken away by the others


def _is_own_transpose(a: Any, rows: int = 128) -> bool:
    """Bit for bit; by panels that stay in the cache."""
    return all(
        np.array_equal(a[i : i + rows, i:], a[i:, i : i + rows].T) for i in range(0, len(a), rows)
    )


def _symmetric(a: Any) -> bool:
    """To rounding; in most cases exactly."""
    if a.shape[0] != a.shape[1]:
        return False
    return _is_own_transpose(a) or bool(
        np.abs(a - a.T).max(initial=0.0) <= 8 * np.finfo(a.dtype).eps * _size(a)
    )


def _size(a: Any) -> float:
    return float(np.abs(a).max(initial=0.0))


def _above(a: Any, slack: float) -> bool:
    """Is a + slack I positive definite, by Cholesky?"""
    if not (_symmetric(a) and np.isfinite(a).all()):
        return False
    try:
        np.linalg.cholesky(a + slack * np.eye(len(a), dtype=a.dtype))
    except np.linalg.LinAlgError:
        return False
    return True


def _norm(a: Any) -> float:
    return float(np.linalg.norm(a))


def _root(arrays: Any, slack: float, i: int) -> bool:
    return True


def _weighted(arrays: Any, slack: float, i: int, j: int) -> bool:
    return bool((arrays[j] >= 0).all() and np.isfinite(arrays[j]).all())


def _congruence(arrays: Any, slack: float, i: int, j: int) -> bool:
    size = _norm(arrays[i]) ** 2
    return _above(arrays[j], slack / size if size > 0 else 0.0)


def _constant(arrays: Any, slack: float, i: int) -> bool:
    return bool(arrays[i] >= 0 and np.isfinite(arrays[i]))


def _diagonal(arrays: Any, slack: float, i: int) -> bool:
    return bool((arrays[i] > -slack).all() and np.isfinite(arrays[i]).all())


def _dense(arrays: Any, slack: float, i: int) -> bool:
    return _symmetric(arrays[i])  # the rest Cholesky itself tells


def _symmetric_alone(arrays: Any, slack: float, i: int) -> bool:
    return _above(arrays[i], slack)


def _kron(arrays: Any, slack: float, *trees: Any) -> bool:
    """Eigenvalues are products: of factors above -s_k none is below minus the sum of s_k times the
    norms of the others."""
    factors = [arrays[t[1]] for t in trees]
    sizes = [_norm(a) for a in factors]
    if not all(np.isfinite(sizes)) or 0.0 in sizes:
        return False
    whole = float(np.prod(sizes))
    shares = [slack * size / whole / len(factors) for size in sizes]
    return all(_above(a, 0.9 * s) for a, s in zip(factors, shares, strict=True))


def _toeplitz(arrays: Any, slack: float, i: int) -> bool:
    """By the eigenvalues of a circulant matrix that it is a part of, or by Durbin's recursion."""
    c = np.array(arrays[i], float)
    if not np.isfinite(c).all():
        return False
    c[:1] += slack
    if np.fft.rfft(np.concatenate([c, c[:0:-1]])).real.min(initial=np.inf) > 0:
        return True
    return _all_reflections_small(c)


def _all_reflections_small(c: Any) -> bool:
    if len(c) and c[0] <= 0:
        return False
    a, error = np.zeros(0), float(c[0])
    for k in range(1, len(c)):
        r = (c[k] - a @ c[k - 1 : 0 : -1]) / error
        error *= 1 - r * r
        if not error > 0:
            return False
        a = np.concatenate([a - r * a[::-1], [r]])
    return True


def _blocks(arrays: Any, slack: float, *trees: Any) -> bool:
    return all(_proved(t, arrays, slack) for t in trees)


def _scaled(arrays: Any, slack: float, i: int, tree: Any) -> bool:
    c = float(arrays[i])
    return c > 0 and _proved(tree, arrays, slack / c)


def _framed(arrays: Any, slack: float, i: int, tree: Any) -> bool:
    return _diagonal(arrays, 0.0, i) and _proved(tree, arrays, 0.0)


def _rotated(arrays: Any, slack: float, i: int, j: int) -> bool:
    return _diagonal(arrays, 0.0, j)


def _general(arrays: Any, slack: float, tree: Any) -> bool:
    """Of numbers by which it divides none is zero or not finite: what these make of the rest the
    matrix as written tells."""
    return all(bool(arrays[i].all() and np.isfinite(arrays[i]).all()) for i in divisors(tree))


def _band(arrays: Any, terms: Any) -> bool:
    """Is it symmetric? Whether it is definite its own Cholesky tells."""
    total: dict[int, Any] = {}
    for t in terms:
        k = offset_of(t)
        total[k] = total.get(k, 0.0) + arrays[t[-1]]
    return all(
        k == 0 or (-k in total and bool(np.allclose(v, total[-k], rtol=1e-14, atol=0)))
        for k, v in total.items()
    )


def _by_rows(arrays: Any, slack: float, terms: Any) -> bool:
    """Bands and sparse matrices: does the diagonal outweigh the rest of each row, or are the pivots
    of its factors without row exchanges positive?"""
    band = [t for t in terms if t[0] in BAND]
    if any(t[0] not in (*BAND, "sparse") for t in terms) or not _band(arrays, band):
        return False
    whole = sum(_placed(t, arrays) for t in terms if t[0] == "sparse")
    n = whole.shape[0]
    for t in band:
        v = arrays[t[-1]]
        whole = whole + diags_array(np.full(n, v) if np.ndim(v) == 0 else v, offsets=offset_of(t))
    whole = (whole + slack * eye_array(n)).tocsc()
    if not np.isfinite(whole.data).all():
        return False
    centre = whole.diagonal()
    if (2 * centre > (1 + 1e-12) * abs(whole).sum(axis=0)).all():
        return True
    try:
        factors = splu(whole, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return False
    exchanged = (factors.perm_r != factors.perm_c).any()
    return not exchanged and bool((factors.U.diagonal() > 0).all())


def _placed(term: Any, arrays: Any) -> Any:
    made = unpacked(term[1]).copy()
    made.data = np.array(arrays[term[2]], float)
    return made


def _sum(arrays: Any, slack: float, *terms: Any) -> bool:
    """What diagonals give above zero the other terms may take away."""
    if any(t[0] == "sparse" for t in terms):
        return _by_rows(arrays, slack, terms)
    if any(t[0] == "off" for t in terms):
        return all(t[0] in BAND for t in terms) and _band(arrays, terms)
    own = [t for t in terms if t[0] in ("diagonal", "identity")]
    least = sum(float(np.min(arrays[t[1]], initial=np.inf)) for t in own)
    if not all(np.isfinite(arrays[t[1]]).all() for t in own):
        return False
    rest = [t for t in terms if t not in own]
    if own and not (np.isfinite(least) and least + slack > 0):
        return False
    share = _SAFE * (slack + (least if own else 0.0)) / max(len(rest), 1)
    return all(_proved(t, arrays, share) for t in rest)


_KINDS: dict[str, Any] = {
    "dense": _dense,
    "off": lambda arrays, slack, k, i: False,
    "sparse": lambda arrays, slack, *rest: _by_rows(arrays, slack, [("sparse", *rest)]),
    "inverse": lambda arrays, slack, tree: _proved(tree, arrays, 0.0),
    "symmetric": _symmetric_alone,
    "diagonal": _diagonal,
    "identity": _diagonal,
    "constant": _constant,
    "root": _root,
    "weighted": _weighted,
    "congruence": _congruence,
    "toeplitz": _toeplitz,
    "kron": _kron,
    "blocks": _blocks,
    "scaled": _scaled,
    "framed": _framed,
    "rotated": _rotated,
    "sum": _sum,
    "written": lambda arrays, slack, tree: True,
    "general": _general,
}


def _proved(tree: Any, arrays: Any, slack: float) -> bool:
    """Is the matrix + slack I positive definite, and of the structure that the tree says?"""
    return bool(_KINDS[tree[0]](arrays, slack, *tree[1:]))


def proved(spec: Any, arrays: Any) -> bool:
    """Is the matrix of a program positive definite for sure?"""
    with np.errstate(all="ignore"):
        return _proved(innermost(spec)[0][1], arrays, 0.0)
