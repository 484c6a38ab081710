"""Permutations, offset diagonals, bands, triangles and the other small kinds: random instances and
dense forms, for `samples` and `ref`."""

import numpy as np
import scipy.sparse as sp

KINDS = "Permutation OffDiag Tridiagonal Banded Triangular Full Householder Reflections".split()
KINDS += ["FiniteDifference", "Laplacian", "SparseTriangular"]
FLOATS = ["Reflections"]  # never integer
CLASSES = {"OffDiag": "Diag"}
WEAK = ("Permutation", "FiniteDifference", "Laplacian")
SQUARE = ("Permutation", "Tridiagonal", "Banded", "Triangular", "Householder", "Laplacian")
SQUARE += ("SparseTriangular", "Reflections")


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
    if kind == "Triangular":
        a = values(rng, batch + (n, n), dtype)
        if invertible:
            a = (a + np.asarray(4 * n * np.eye(n), a.dtype)).astype(dtype)
        lower, unit = (bool(k) for k in rng.integers(0, 2, 2))
        a = np.where((np.tril if lower else np.triu)(np.ones((n, n))), a, np.ones((), dtype))
        return kind, arrange(a.astype(dtype), layout), lower, unit and not invertible
    if kind == "SparseTriangular":
        if batch:
            return None
        a = values(rng, (n, n), dtype)
        a = np.where(rng.random((n, n)) < 0.5, a, np.zeros((), a.dtype))
        if invertible:
            a = (a + np.asarray(4 * n * np.eye(n), a.dtype)).astype(dtype)
        lower, unit = (bool(k) for k in rng.integers(0, 2, 2))
        S = sp.coo_array(a.astype(dtype)).asformat(str(rng.choice(["csr", "csc"])))
        return kind, S, lower, unit and not invertible
    if np.dtype(dtype).kind in "bu" and kind in ("FiniteDifference", "Laplacian"):
        adopt = None  # they have negative entries
    if kind == "FiniteDifference":
        order = int(rng.integers(0, 4)) if m == n else n - m
        kinds = ["forward", "backward"]
        central = adopt is not None and adopt.kind in "fc" or order % 2 == 0
        how = str(rng.choice(kinds + ["central"] * central)) if m == n else "forward"
        boundary = str(rng.choice(["zero", "periodic"])) if m == n else "valid"
        if m > n or (invertible and order):
            return (kind, n, 0, "forward", "zero", adopt) if m == n else None
        return kind, n, order, how, boundary, adopt
    if kind == "Laplacian":
        axis = int(rng.choice([k for k in range(1, n + 1) if n % k == 0] or [1]))
        grid = (axis, n // axis) if n % max(axis, 1) == 0 else (n,)
        bc = "dirichlet" if invertible else str(rng.choice(["dirichlet", "neumann", "periodic"]))
        return kind, grid, bc, adopt
    if kind == "Full":
        return None if invertible else (kind, batch + (m, n), values(rng, (1,), dtype)[0])
    if kind == "Householder":
        exact = np.dtype(dtype).kind in "biu"
        tau = values(rng, batch, dtype) if exact or rng.integers(2) else None
        if tau is not None and invertible:
            tau = np.asarray(tau * 0 + 0.25 / n).astype(dtype)
        return kind, v(n), tau if tau is None else np.asarray(tau)
    if kind == "Reflections":
        if np.dtype(dtype).kind in "biu":
            return None  # of integers it is of floats
        return kind, v(int(rng.integers(0, n + 1)), int(rng.integers(1, 4))), n
    raise AssertionError(kind)


def on(d, k, w):
    """The square matrix with d on its diagonal k."""
    at = np.arange(d.shape[-1])
    n = d.shape[-1] + abs(k)
    out = np.zeros(d.shape[:-1] + (n, n), w)
    out[..., at + max(-k, 0), at + max(k, 0)] = d
    return out


def reflections(v, n, w, bound):
    out = np.zeros(v.shape[:-2] + (n, n), w) + np.eye(n, dtype=w)
    for j in range(v.shape[-2]):
        u = np.zeros(v.shape[:-2] + (n, 1), w)
        row = v[..., j, : n - j]
        u[..., j : j + row.shape[-1], 0] = row
        square = (np.abs(u) ** 2).sum(axis=(-2, -1), keepdims=True)
        h = 2 / np.where(square > 0, square, 1) * (u * u.conj().swapaxes(-1, -2))
        out = (out @ (np.eye(n) + h if bound else np.eye(n) - h)).astype(w)
    return out


def tridiagonal(dl, d, du, w):
    out = on(d, 0, w)
    return out + on(dl, -1, w) + on(du, 1, w) if d.shape[-1] > 1 else out


def difference(n, order, kind, boundary):
    """Differences of the identity's columns, on a line with enough room beyond the ends."""
    pad = 2 * order + 4
    wide = np.zeros((n + 2 * pad, n))
    for t in range(n + 2 * pad):
        if pad <= t < pad + n:
            wide[t, t - pad] = 1
        elif boundary == "periodic" and n:
            wide[t, (t - pad) % n] = 1
    d = np.diff(wide, order, axis=0)
    begin = {"forward": 0, "backward": -order, "central": -(order // 2)}[kind]
    if kind == "central" and order % 2:
        d, begin = (d[1:] + d[:-1]) / 2, -((order + 1) // 2)
        order += 1
    if boundary == "valid":
        return d[pad : pad + max(n - order, 0)]
    return d[pad + begin : pad + begin + n]


def laplacian(grid, bc):
    """The sum over axes of second differences, as integers."""
    total = np.zeros((int(np.prod(grid)),) * 2, int)
    for i, n in enumerate(grid):
        one = -2 * np.eye(n, dtype=int) + np.eye(n, k=1, dtype=int) + np.eye(n, k=-1, dtype=int)
        if bc == "neumann" and n:
            one[0, 0] += 1
            one[-1, -1] += 1
        if bc == "periodic" and n:
            one[0, -1] += 1
            one[-1, 0] += 1
        left = np.eye(int(np.prod(grid[:i])), dtype=int)
        total += np.kron(np.kron(left, one), np.eye(int(np.prod(grid[i + 1 :])), dtype=int))
    return total


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
    if head in ("Triangular", "SparseTriangular"):
        a, lower, unit = get(p[0]), p[1], p[2]
        n = a.shape[-1]
        keep = np.tri(n, n, -1) if lower else np.tri(n, n, -1).T
        return a * (keep + (not unit) * np.eye(n)).astype(w) + (np.eye(n, dtype=w) * w.type(unit))
    if head == "FiniteDifference":
        out = difference(*p[:4])
        return (abs(out) if bound else out).astype(w if w.kind in "fc" else int).astype(w)
    if head == "Laplacian":
        out = laplacian(p[0], p[1])
        return (abs(out) if bound else out).astype(w if w.kind in "fc" else int).astype(w)
    if head == "Full":
        return np.zeros(p[0], w) + np.asarray(abs(p[1]) if bound else p[1]).astype(w)
    if head == "Householder":
        v = get(p[0])
        square = (np.abs(v) ** 2).sum(-1, initial=0) + (v.shape[-1] == 0) if p[1] is None else 1
        tau = 2 / square if p[1] is None else get(p[1])
        both = np.asarray(tau)[..., None, None] * (v[..., :, None] * v[..., None, :].conj())
        eye = np.eye(v.shape[-1], dtype=w)
        if w.kind == "b":
            return eye | both.astype(bool)
        return (eye + both if bound else eye - both).astype(w)
    if head == "Reflections":
        return reflections(get(p[0]), p[1], w, bound)
    if head == "Banded":
        (lower, upper), ab = p[0], get(p[1])
        n = ab.shape[-1]
        out = np.zeros(ab.shape[:-2] + (n, n), w)
        for k in range(-min(lower, n - 1), min(upper, n - 1) + 1):
            out += on(ab[..., upper - k, max(k, 0) : n + min(k, 0)], k, w)
        return out
    raise AssertionError(head)
