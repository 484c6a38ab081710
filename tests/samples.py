"""Random instances of every kind, as descriptions for `ref`: values, layouts, shapes, batches."""

import bands
import numpy as np
import scipy.sparse as sp

LAYOUTS = "C F negative strided readonly misaligned swapped".split()


def values(rng, shape, dtype, wide=False):
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dt.kind in "iu":
        lo, hi = (np.iinfo(dt).min, np.iinfo(dt).max) if wide else (-5 * (dt.kind == "i"), 5)
        return rng.integers(lo, hi, shape, dtype=dt, endpoint=True)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dt.kind == "c" else a).astype(dt)


def arrange(a, layout):
    """The same values in other memory."""
    if layout == "negative":
        return np.ascontiguousarray(a[..., ::-1])[..., ::-1]
    if layout == "swapped":
        return a.astype(a.dtype.newbyteorder())
    if layout == "strided":
        b = np.zeros([2 * s for s in a.shape], a.dtype)[
            tuple(slice(None, None, 2) for _ in a.shape)
        ]
    elif layout == "misaligned":
        b = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    else:
        b = np.empty_like(a, order="F" if layout == "F" else "C")
    b[...] = a
    b.flags.writeable = layout != "readonly"
    return b


def leaf(kind, rng, m, n, dtype, batch=(), layout="C", invertible=False):
    """A random instance of shape batch + (m, n); None where the kind has none of that shape."""

    if kind in bands.KINDS:
        return bands.leaf(kind, rng, m, n, dtype, batch, layout, invertible)

    def v(*shape):
        return arrange(values(rng, batch + shape, dtype), layout)

    adopt = None if rng.integers(2) else np.dtype(dtype)
    if (
        (kind in ("Identity", "Diag", "Circulant", "DFT", "DCT") or invertible)
        and m != n
        or (kind in ("Sparse", "DFT", "DCT") and batch)
        or (kind in ("KronSum", "Congruence", "Root", "Eigen") and m != n)
        or (invertible and kind in ("Zeros", "LowRank"))
        or (kind == "MultilevelToeplitz" and m + n == 0)
        or (kind == "Convolution" and m != n and not (m and n))
        or (kind == "Selection" and m and not n)
    ):
        return None
    if kind in ("Dense", "MatVec", "Sparse"):
        a = values(rng, batch + (m, n), dtype)
        if invertible:
            a = a + np.asarray(4 * n * np.eye(n), a.dtype)
        if kind == "Sparse":
            a = np.where(rng.random((m, n)) < (1 if invertible else 0.5), a, np.zeros((), a.dtype))
            return (kind, sp.coo_array(a).asformat(str(rng.choice(["csr", "csc", "coo"]))))
        return (kind, arrange(a, layout)) + ((bool(rng.integers(2)),) if kind == "MatVec" else ())
    if kind == "Identity":
        return (kind, n, adopt)
    if kind == "Zeros":
        return (kind, batch + (m, n), adopt)
    if kind == "Diag":
        d = values(rng, batch + (n,), dtype)
        return (
            kind,
            arrange(np.where(d.real < 0, d - 1, d + 1).astype(dtype) if invertible else d, layout),
        )
    if kind == "Selection":
        i = rng.permutation(n) if invertible else rng.integers(-n, max(n, 1), batch + (m,))
        return (kind, arrange(i, layout), n, adopt)
    if kind == "Kron":
        p = int(rng.choice([k for k in range(1, m + 1) if m % k == 0] or [1]))
        q = p if invertible else int(rng.choice([k for k in range(1, n + 1) if n % k == 0] or [1]))
        second = "Diag" if m // p == n // q and rng.integers(2) else "Dense"
        return (
            kind,
            leaf("Dense", rng, p, q, dtype, batch, layout, invertible),
            leaf(second, rng, m // p, n // q, dtype, (), layout, invertible),
        )
    if kind == "Circulant":
        L = 2 if n and n % 2 == 0 and rng.integers(2) else 1
        c = values(rng, batch + ((n // 2, 2) if L == 2 else (n,)), dtype)
        if invertible:
            c[(..., *[0] * L)] += np.asarray(8 * n, c.dtype)
        return (kind, arrange(c, layout), L)
    if kind in ("DFT", "DCT"):
        own = np.dtype(dtype).kind in ("c" if kind == "DFT" else "fc")
        norm = str(rng.choice(["backward", "ortho", "forward"]))
        size = (n // 2, 2) if n and n % 2 == 0 and rng.integers(2) else n
        type_ = int(rng.integers(1 if np.min(size) > 1 else 2, 5))
        return (kind, size, *([type_] if kind == "DCT" else []), norm, adopt if own else None)
    if kind == "Hankel":
        c, r = values(rng, batch + (m,), dtype), values(rng, batch + (n,), dtype)
        if invertible:
            c[..., -1:] += np.asarray(8 * n, c.dtype)
        return (
            kind,
            arrange(c, layout),
            None if m == n and rng.integers(2) else arrange(r, layout),
        )
    if kind == "MultilevelToeplitz":
        two = m and n and m % 2 == 0 and n % 2 == 0 and rng.integers(2)
        t = values(rng, batch + ((m // 2 + n // 2 - 1, 3) if two else (m + n - 1,)), dtype)
        if invertible:
            t[(..., n // 2 - 1, 1) if two else (..., n - 1)] += np.asarray(8 * n, t.dtype)
        return (kind, arrange(t, layout), (n // 2, 2) if two else n)
    if kind == "Convolution":
        mode = "full" if m > n else "valid" if m < n else str(rng.choice(["same", "circular"]))
        k = abs(m - n) + 1 if m != n else int(rng.integers(1, n + 2))
        two = mode == "circular" and n and n % 2 == 0 and rng.integers(2)
        kernel = values(rng, batch + ((2, 3) if two else (k,)), dtype)
        if invertible:
            at = 0 if mode == "circular" else (k - 1) // 2
            kernel[(..., 0, 0) if two else (..., at)] += np.asarray(8 * n, kernel.dtype)
        return (kind, arrange(kernel, layout), (n // 2, 2) if two else n, mode)
    if kind == "BlockDiag":
        p = int(rng.integers(0, m + 1))
        q = p if invertible else int(rng.integers(0, n + 1))
        second = "Diag" if m - p == n - q and rng.integers(2) else "Dense"
        return (
            kind,
            leaf("Dense", rng, p, q, dtype, batch, layout, invertible),
            leaf(second, rng, m - p, n - q, dtype, (), layout, invertible),
        )
    if kind == "LowRankUpdate":
        first = "Diag" if m == n and rng.integers(2) else "Dense"
        U, V = (leaf("Dense", rng, s, 2, dtype, (), layout) for s in (m, n))
        return (
            kind,
            leaf(first, rng, m, n, dtype, batch, layout, invertible),
            U,
            None if m == n and (invertible or rng.integers(2)) else V,
            None if invertible or rng.integers(2) else leaf("Dense", rng, 2, 2, dtype),
        )
    if kind == "KronSum":
        p = int(rng.choice([k for k in range(1, n + 1) if n % k == 0] or [1]))
        second = "Diag" if rng.integers(2) else "Dense"
        return (
            kind,
            leaf("Dense", rng, p, p, dtype, batch, layout, invertible),
            leaf(second, rng, n // p, n // p, dtype, (), layout, invertible),
        )
    if kind in ("Congruence", "Root", "Eigen"):
        k = n if invertible else int(rng.integers(1, 4))
        first = leaf("Dense", rng, n, k, dtype, batch, layout, invertible)
        if kind == "Root":
            return (kind, first)
        if kind == "Eigen":
            return (kind, first, leaf("Diag", rng, k, k, dtype, (), layout, invertible)[1])
        return (kind, first, leaf("Diag" if rng.integers(2) else "Dense", rng, k, k, dtype, (),
                                  layout, invertible))  # fmt: skip
    if kind == "HadamardProduct":
        second = "Dense" if m != n or rng.integers(2) or invertible else "Toeplitz"
        return (
            kind,
            leaf("Dense", rng, m, n, dtype, batch, layout, invertible),
            leaf(second, rng, m, n, dtype, (), layout, invertible),
        )
    if kind == "KhatriRao":
        p = 1 if invertible else int(rng.choice([k for k in range(1, m + 1) if m % k == 0] or [1]))
        return (
            kind,
            leaf("Dense", rng, p, n, dtype, batch, layout),
            leaf("Dense", rng, m // p, n, dtype, (), layout, invertible),
        )
    if kind == "Block":
        p, q = int(rng.integers(0, m + 1)), int(rng.integers(0, n + 1))
        if invertible:
            p = q = n // 2
        first = "Diag" if p == q and rng.integers(2) else "Dense"
        zeros = "Zeros" if not invertible and rng.integers(2) else "Dense"
        return (
            kind,
            2,
            leaf(first, rng, p, q, dtype, batch, layout, invertible),
            leaf(zeros, rng, p, n - q, dtype, (), layout),
            leaf("Dense", rng, m - p, q, dtype, (), layout),
            leaf("Dense", rng, m - p, n - q, dtype, (), layout, invertible),
        )
    if kind == "Toeplitz":
        c, r = values(rng, batch + (m,), dtype), values(rng, batch + (n,), dtype)
        if invertible:
            c[..., :1] += np.asarray(8 * n, c.dtype)
        return (
            kind,
            arrange(c, layout),
            None if m == n and rng.integers(2) else arrange(r, layout),
        )
    k = int(rng.integers(1, 4))
    V = None if m == n and rng.integers(2) else v(n, k)
    return (kind, v(m, k), V, None if rng.integers(2) else v(k, k))
