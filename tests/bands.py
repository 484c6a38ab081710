"""Permutations, offset diagonals, bands, triangles and the other small kinds: random instances and
dense forms, for `samples` and `ref`."""

import numpy as np

KINDS = "Permutation OffDiag".split()
CLASSES = {"OffDiag": "Diag"}
WEAK = ("Permutation",)
SQUARE = ("Permutation",)


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
    raise AssertionError(kind)


def dense(head, p, get, w, bound):
    if head == "Permutation":
        return np.eye(p[0].shape[-1], dtype=w)[p[0].astype(int)]
    if head == "OffDiag":
        d, k = get(p[0]), p[1]
        out = np.zeros(d.shape[:-1] + p[2], w)
        at = np.arange(d.shape[-1])
        out[..., at + max(-k, 0), at + max(k, 0)] = d
        return out
    raise AssertionError(head)
