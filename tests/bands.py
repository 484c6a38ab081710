"""Permutations, offset diagonals, bands, triangles and the other small kinds: random instances and
dense forms, for `samples` and `ref`."""

import numpy as np

KINDS = "Permutation OffDiag Tridiagonal Banded".split()
CLASSES = {"OffDiag": "Diag"}
WEAK = ("Permutation",)
SQUARE = ("Permutation", "Tridiagonal", "Banded")


def leaf(kind, rng, m, n, dtype, batch, layout, invertible):
    from samples import arrange, values

    def v(*shape):
        return arrange(values(rng, batch + shape, dtype), layout)

    adopt = None if rng.integers(2) else np.dtype(dtype)
    if m != n and (invertible or kind in SQUARE):
        return None
    if kind == "Permutation":
        p = np.array([rng.permutation(n) for _ in range(int(np.prod(batch)))], int)
        p = p.reshape(batch + (n,))
        return kind, arrange(np.where(rng.random(p.shape) < 0.5, p, p - n), layout), adopt
    if kind == "OffDiag":
        k = int(rng.integers(-m, n + 1)) if m and n and not invertible else 0
        d = values(rng, batch + (np.eye(m, n, k).astype(int).sum(),), dtype)
        if invertible:
            d = np.where(d.real < 0, d - 1, d + 1).astype(dtype)
        return kind, arrange(d, layout), k, (m, n)
    if kind == "Tridiagonal":
        d = values(rng, batch + (n,), dtype)
        d = (d + np.asarray(8, d.dtype)).astype(dtype) if invertible else d
        return kind, v(max(n - 1, 0)), arrange(d, layout), v(max(n - 1, 0))
    if kind == "Banded":
        lower, upper = (int(k) for k in rng.integers(0, 4, 2))
        ab = values(rng, batch + (lower + upper + 1, n), dtype)
        if invertible:
            ab[..., upper, :] += np.asarray(16, ab.dtype)
        return kind, (lower, upper), arrange(ab, layout)
    raise AssertionError(kind)


def on(d, k, w):
    """The square matrix with d on its diagonal k."""
    at = np.arange(d.shape[-1])
    n = d.shape[-1] + abs(k)
    out = np.zeros(d.shape[:-1] + (n, n), w)
    out[..., at + max(-k, 0), at + max(k, 0)] = d
    return out


def tridiagonal(dl, d, du, w):
    out = on(d, 0, w)
    return out + on(dl, -1, w) + on(du, 1, w) if d.shape[-1] > 1 else out


def dense(head, p, get, w, bound):
    if head == "Permutation":
        return np.eye(p[0].shape[-1], dtype=w)[p[0].astype(int)]
    if head == "OffDiag":
        d, k = get(p[0]), p[1]
        out = np.zeros(d.shape[:-1] + p[2], w)
        at = np.arange(d.shape[-1])
        out[..., at + max(-k, 0), at + max(k, 0)] = d
        return out
    if head == "Tridiagonal":
        return tridiagonal(*map(get, p[:3]), w)
    if head == "Banded":
        (lower, upper), ab = p[0], get(p[1])
        n = ab.shape[-1]
        out = np.zeros(ab.shape[:-2] + (n, n), w)
        for k in range(-min(lower, n - 1), min(upper, n - 1) + 1):
            out += on(ab[..., upper - k, max(k, 0) : n + min(k, 0)], k, w)
        return out
    raise AssertionError(head)
