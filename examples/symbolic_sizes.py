"""loop_tool's examples of sizes that follow both ways, line by line.

Bram Wasti's loop_tool (github.com/facebookresearch/loop_tool; its tutorial.ipynb, and the post
"Loop_tool's lazy frontend", dev-discuss.pytorch.org, 2021) writes a convolution as the index
equation x = x_o + k, finds |x_o| = |x| - |k| + 1 from it, and the sizes of inputs from that of an
output. The lines in comments are his tutorial's; the program of two convolutions is written after
the sizes that the post reports, not after its text. His dimensions have names, so that
``a.to(K) * b.to(K, N)`` is a product over names; here an equation says them.

Run ``python examples/symbolic_sizes.py``. The exit status is 1 when a check fails.
"""

import sys

import numpy as np

import pylinop as pl

SEED = 5
failed = []


def check(what, found, expected):
    ok = found == expected
    print(f"  check  {what}: {found}  {'ok' if ok else f'IS NOT {expected}'}")
    failed.extend([] if ok else [what])


def near(what, found, expected):
    check(what, bool(np.allclose(found, expected, rtol=1e-12, atol=1e-12)), True)


# def mm(a, b):
#   M, N, K = lt.Symbol("M"), lt.Symbol("N"), lt.Symbol("K")
#   c = a.to(M, K) * b.to(K, N)
#   return c.sum(K)
def mm(a, b):
    return pl.einsum("m k, k n -> m n", a, b)


# def conv(x, w):
#   Ni, No, K = lt.Symbol("Ni"), lt.Symbol("No"), lt.Symbol("K")
#   xcol = x.to(Ni).to(No, K, constraints=[(Ni, No + K)])
#   return (xcol * w.to(K)).sum(K)
def conv(x, w):
    return pl.einsum("(o + k), k -> o", x, w)


def values(rng):
    print("A product of matrices and a convolution, of arrays")
    x, y = rng.normal(size=(128, 128)), rng.normal(size=(128, 128))
    near("mm(x, y)", mm(x, y), x @ y)
    x, w = rng.normal(size=128), rng.normal(size=5)
    near("conv(x, w)", conv(x, w), np.correlate(x, w, mode="valid"))


def vector_times_matrix():
    print("Sizes of a product")
    # M = lt.Symbol("M"); a = lt.Tensor(M); b = lt.Tensor(8, 5)
    # N, K = lt.Symbol("N"), lt.Symbol("K")
    # c = (a.to(K) * b.to(K, N)).sum(K)
    # c.unify() # derive all shapes
    a, b = pl.placeholder(pl.symbols("M")), pl.placeholder((8, 5))
    c = pl.einsum("k, k n -> n", a, b)
    sizes = pl.unify(c)
    check("c.shape[0]", sizes[c][0], 5)
    check("a.shape[0]", sizes[a][0], 8)


def backwards():
    print("The size of an input, from those of a window and of what the result is multiplied with")
    # _ = lt.Symbol("unknown"); a = lt.Tensor(_); b = lt.Tensor(3); c = lt.Tensor(8)
    # N = lt.Symbol("N")
    # d = (conv(a, b).to(N) * c.to(N)).sum(N)
    # d.unify(); print(a.shape)
    a, b, c = pl.placeholder(pl.symbols("unknown")), pl.placeholder(3), pl.placeholder(8)
    d = np.sum(conv(a, b) * c)
    check("a.shape", pl.unify(d)[a], (10,))
    # W0.set(np.ones(3)); W1.set(np.ones(8)); X.set(np.ones(10)); assert Z.numpy() == 24
    f = pl.function((a, b, c), d)
    check("of ones", float(f(np.ones(10), np.ones(3), np.ones(8))), 24.0)


def twice():
    print("Two convolutions of 128 rows: sizes of both inputs from that of the output")
    N, K = pl.symbols("N K")
    X, W, C = pl.placeholder(N), pl.placeholder(K), pl.placeholder((128, 20))

    def rows(x, w):
        return pl.einsum("c (o + k), k -> c o", x, w)

    Y = rows(rows(pl.einsum("c x, x -> c x", C, X), W), W)
    print("  Y is", Y)
    sizes = pl.unify((Y, (128, 16)))
    check("X, W", (sizes[X], sizes[W]), ((20,), (3,)))
    for shape in ((128, 17), (127, 16), (128, 30)):
        try:
            pl.unify((Y, shape))
        except ValueError as error:
            print("  Y as", shape, "-", error)
        else:
            failed.append(str(shape))
    f = pl.function((C, X, W), Y)
    rng = np.random.default_rng(SEED)
    c, x, w = rng.normal(size=(128, 20)), rng.normal(size=20), rng.normal(size=3)
    by_hand = [np.correlate(np.correlate(row * x, w), w) for row in c]
    near("f(c, x, w)", f(c, x, w).toarray(), by_hand)


def strides(rng):
    print("Strides by differentiation: x = 2 x_o + k")
    # differentiate(2 * N_o + K, N_o) == 2: stride(x_o) = 2 stride(x)
    x = rng.normal(size=11)
    v = pl.view(x, "(2*o + k) -> o k", sizes={"k": 3})
    check("strides, in elements", tuple(s // x.itemsize for s in v.strides), (2, 1))
    check("is it the same memory", bool(np.shares_memory(v, x)), True)
    N = pl.symbols("N")
    X, W = pl.placeholder(N), pl.placeholder(7)
    Y = pl.einsum("(2*o + k), k -> o", X, W)
    print("  |x_o| is", Y.shape[0])
    check("|x| of |x_o| = 112", pl.unify((Y, 112)).interval(N), (229, 230))


def padded(rng):
    print("A padded convolution keeps the size")
    # {xi + k / 2, xp}, {|xp|, |xi| + |k| / 2}, {xp, xo + k}, |xo| = 100, |k| = 3
    N = pl.symbols("N")
    X, W = pl.placeholder(N), pl.placeholder(3)
    Y = pl.einsum("(o + k - 1), k -> o", X, W, outside=0, sizes={"o": N})
    check("|x| of |x_o| = 100", pl.unify((Y, 100))[X], (100,))
    x, w = rng.normal(size=100), rng.normal(size=3)
    f = pl.function((X, W), Y)
    near("as numpy.correlate", f(x, w).toarray(), np.correlate(x, w, mode="same"))


def main():
    rng = np.random.default_rng(SEED)
    values(rng)
    vector_times_matrix()
    backwards()
    twice()
    strides(rng)
    padded(rng)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
