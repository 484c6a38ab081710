"""Products with kernel matrices that are never formed, beside KeOps and NumPy in blocks.

KeOps compiles its formula at first use: while the answers are compared, before anything is timed.
"""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def in_blocks(x, y, v, entries, block=500):
    """NumPy's way: |x|^2 + |y|^2 - 2 x y by blocks of rows."""
    out = np.empty((len(x), *v.shape[1:]), v.dtype)
    ys = np.einsum("ij,ij->i", y, y)
    for at in range(0, len(x), block):
        p = x[at : at + block]
        r2 = p @ y.T
        r2 *= -2
        r2 += np.einsum("ij,ij->i", p, p)[:, None]
        r2 += ys
        np.maximum(r2, 0, out=r2)
        out[at : at + block] = entries(r2) @ v
    return out


def gauss(r2, scale):
    r2 *= -0.5 / scale**2
    return np.exp(r2, out=r2)


def matern(r2, scale):
    r = np.sqrt(r2, out=r2)
    r *= 3**0.5 / scale
    e = np.exp(-r)
    return e + r * e


def by_keops(name, x, y, scale):
    keops = peer("pykeops.numpy")
    if not keops:
        return None
    X, Y = keops.LazyTensor(x[:, None, :]), keops.LazyTensor(y[None, :, :])
    r2 = ((X - Y) ** 2).sum(-1)
    if name == "rbf":
        return (-r2 * float(0.5 / scale**2)).exp()
    r = r2.sqrt() * float(3**0.5 / scale)
    return (1 + r) * (-r).exp()


def products():
    for name, function in (("rbf", gauss), ("matern32", matern)):
        for n, d, k, dtype in (
            (2_000, 3, 1, "f8"),
            (20_000, 3, 1, "f8"),
            (20_000, 3, 1, "f4"),
            (5_000, 3, 16, "f8"),
            (5_000, 30, 1, "f8"),
        ):
            if name != "rbf" and n != 20_000:
                continue

            def build(name=name, function=function, n=n, d=d, k=k, dtype=dtype):
                g, scale = rng(), 0.5 * d**0.5
                x, y = g.random((n, d)).astype(dtype), g.random((n, d)).astype(dtype)
                v = g.standard_normal((n, k) if k > 1 else n).astype(dtype)

                def blocks(x, y, v):
                    return in_blocks(x, y, v, lambda r2: function(r2, scale))

                K = pl.Kernel(name, x, y, length_scale=scale)
                rtol = 1e-10 if dtype == "f8" else 1e-3
                case = Case("", "", blocks(x, y, v), rtol=rtol)
                case.add("pylinop", "pylinop", "K @ v", K=K, v=v)
                S, ours = pl.Kernel(name, x, length_scale=scale), "pylinop, y is x"
                case.add("pylinop", ours, "S @ v", "want", S=S, v=v, want=case.expected)
                case.add("hand", "numpy in blocks", "f(x, y, v)", f=blocks, x=x, y=y, v=v)
                keops, flat = by_keops(name, x, y, scale), v if k > 1 else v[:, None]
                case.add("peer", "KeOps", "L @ v", "_.reshape(s)", L=keops, v=flat, s=v.shape)
                if n == 20_000 and name == "rbf" and dtype == "f8":
                    case.goal("pylinop", "KeOps", 1, "Gaussian kernel", "0.35 of 1.04 s")
                return case

            yield f"kernel/{name}-{n}x{d}{'' if k == 1 else f'-{k}'}-{dtype}", build


MAKERS = [products]
