"""Every kind's product beside the same work by hand; kind_solves.py has the solves.

A row makes an operator and the ways to do its work without it: NumPy, BLAS or FFT by hand (what
one would write instead; the first is what is right), then SciPy's and other libraries' own.
Small sizes show what a call costs, large ones what the arithmetic costs."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

PRODUCTS = []
SMALL, LARGE = 10, 1_000_000


def product(name, *sizes, columns=False):
    """Registers ``make(g, n) -> (A, ways)``; a way is (role, name, code over x, names)."""

    def add(make):
        PRODUCTS.extend((name, n, 1, make) for n in sizes or (SMALL, LARGE))
        if columns:
            PRODUCTS.append((name, columns, 16, make))
        return make

    return add


def hand(code, name="numpy by hand", **names):
    return "hand", name, code, names


def other(name, code, **names):
    return "peer", name, code, names


def products():
    if not peer("scipy"):
        return
    for name, n, k, make in PRODUCTS:

        def build(n=n, k=k, make=make):
            g = rng()
            A, ways = make(g, n)
            x = g.standard_normal((A.shape[1], k) if k > 1 else A.shape[1])
            _, _, code, names = ways[0]
            case = Case("", "", eval(code, {"np": np, "x": x, **names}), rtol=1e-9)
            case.add("pylinop", "pylinop A @ x", "A @ x", A=A, x=x)
            for role, label, code, names in ways:
                case.add(role, label, code, x=x, **names)
            return case

        yield f"kinds/{name}-{n}" + (f"-{k}" if k > 1 else ""), build


# -- products: no numbers, few numbers -------------------------------------------------------------


def column(d, x):
    """d as it multiplies the rows of x."""
    return d if x.ndim == 1 else d[:, None]


@product("dense", 10, 1000, columns=1000)
def _(g, n):
    a = g.standard_normal((n, n))
    return pl.Dense(a), [hand("a @ x", a=a)]


@product("identity")
def _(g, n):
    return pl.Identity(n), [hand("x.copy()")]


@product("zeros")
def _(g, n):
    return pl.Zeros((n, n)), [hand("zeros(n)", zeros=np.zeros, n=n)]


@product("full")
def _(g, n):
    return pl.Full((n, n), 0.5), [hand("full(n, 0.5 * x.sum())", full=np.full, n=n)]


@product("permutation", columns=100_000)
def _(g, n):
    p = g.permutation(n)
    return pl.Permutation(p), [hand("x[p]", p=p), hand("x.take(p, 0)", "numpy take", p=p)]


@product("selection", columns=100_000)
def _(g, n):
    i = np.sort(g.choice(n, n // 2 + 1, replace=False))
    return pl.Selection(i, n), [hand("x[i]", i=i), hand("x.take(i, 0)", "numpy take", i=i)]


@product("selection-transposed")
def _(g, n):
    i = np.sort(g.choice(n, n // 2 + 1, replace=False))
    code = "bincount(i, x, n)"
    return pl.Selection(i, n).T, [hand(code, bincount=np.bincount, i=i, n=n)]


# -- products: diagonals and bands -----------------------------------------------------------------


@product("diag", columns=100_000)
def _(g, n):
    d = g.standard_normal(n)
    return pl.Diag(d), [hand("column(d, x) * x" if n == 100_000 else "d * x", d=d, column=column)]


@product("diag-offset")
def _(g, n):
    d = g.standard_normal(n - 1)

    def by_hand(x):
        y = np.zeros(n)
        np.multiply(d, x[1:], out=y[:-1])
        return y

    return pl.Diag(d, k=1), [hand("f(x)", f=by_hand)]


def dia(a, offsets, n):
    sp = peer("scipy.sparse")
    return sp and sp.dia_array((a, offsets), shape=(n, n))


@product("tridiagonal", columns=100_000)
def _(g, n):
    dl, d, du = g.standard_normal(n - 1), g.standard_normal(n), g.standard_normal(n - 1)

    def by_hand(x):
        y = column(d, x) * x
        y[1:] += column(dl, x) * x[:-1]
        y[:-1] += column(du, x) * x[1:]
        return y

    A = pl.Tridiagonal(dl, d, du)
    S = dia(np.array([np.append(dl, 0), d, np.append(0, du)]), [-1, 0, 1], n)
    return A, [hand("f(x)", f=by_hand), other("scipy dia_array", "A @ x", A=S)]


@product("banded-5-5", 12, 100_000, columns=100_000)
def _(g, n):
    ab = g.standard_normal((11, n))
    F, blas = np.asfortranarray(ab), peer("scipy.linalg.blas")
    S = dia(ab, range(5, -6, -1), n)
    ways = [other("scipy dia_array", "A @ x", A=S)]
    code = "f(n, n, 5, 5, 1.0, ab, x) if x.ndim == 1 else A @ x"
    if blas:
        ways = [hand(code, "BLAS dgbmv", f=blas.dgbmv, ab=F, n=n, A=S), *ways]
    return pl.Banded((5, 5), ab), ways


@product("triangular", 10, 1000, columns=1000)
def _(g, n):
    a = g.standard_normal((n, n))
    blas = peer("scipy.linalg.blas")
    ways = [hand("a @ x", "numpy, other half zeros", a=np.tril(a))]
    if blas:
        F = np.asfortranarray(a)
        code = "f(a, x, lower=1) if x.ndim == 1 else g(1.0, a, x, lower=1)"
        ways.append(hand(code, "BLAS dtrmv, dtrmm", f=blas.dtrmv, g=blas.dtrmm, a=F))
    return pl.Triangular(a), ways


@product("householder")
def _(g, n):
    v = g.standard_normal(n)
    tau = 2 / (v @ v)
    return pl.Householder(v), [hand("x - (tau * (v @ x)) * v", v=v, tau=tau)]


@product("difference", columns=100_000)
def _(g, n):
    return pl.FiniteDifference(n), [
        hand("diff(x, axis=0)", "numpy diff", diff=np.diff),
        hand("x[1:] - x[:-1]", "numpy slices"),
    ]


@product("difference-2-central")
def _(g, n):
    A = pl.FiniteDifference(n, 2, "central", "valid")
    return A, [hand("x[2:] - 2 * x[1:-1] + x[:-2]")]


@product("laplacian-2d", 9, LARGE)
def _(g, n):
    m = round(n**0.5)

    def by_hand(x):
        x = x.reshape(m, m)
        y = -4 * x
        y[1:] += x[:-1]
        y[:-1] += x[1:]
        y[:, 1:] += x[:, :-1]
        y[:, :-1] += x[:, 1:]
        return y.ravel()

    sla = peer("scipy.sparse.linalg")
    theirs = sla and sla.LaplacianNd((m, m), boundary_conditions="dirichlet", dtype=float)
    A = pl.Laplacian((m, m), "dirichlet")
    return A, [hand("f(x)", f=by_hand), other("scipy LaplacianNd", "A @ x", A=theirs)]


@product("sparse-10-a-row", 10, 100_000, columns=100_000)
def _(g, n):
    a = peer("scipy.sparse").random_array((n, n), density=min(1, 10 / n), rng=g, format="csr")
    return pl.Sparse(a), [other("scipy csr_array", "a @ x", a=a)]


# -- products: convolutions and transforms ---------------------------------------------------------


def kept_spectrum(run, take, fft):
    """irfft(S * rfft(x)) of an even length that suits, S kept."""
    N = fft.next_fast_len(len(run), real=True)
    first = np.concatenate([run, np.zeros(N - len(run))])
    return {"S": fft.rfft(first), "N": N, "rfft": fft.rfft, "irfft": fft.irfft, "take": take}


FFT = "irfft(S * rfft(x, N), N)[take]"


@product("toeplitz", 10, 100_000)
def _(g, n):
    c, r = g.standard_normal(n), g.standard_normal(n)
    sl, fft = peer("scipy.linalg"), peer("scipy.fft")
    N = fft.next_fast_len(2 * n - 1, real=True)
    run = np.concatenate([c, np.zeros(N - 2 * n + 1), r[:0:-1]])
    ways = [hand(FFT, "scipy.fft, spectrum kept", **kept_spectrum(run, slice(n), fft))]
    if n <= 1000:
        ways.append(hand("a @ x", "numpy dense", a=sl.toeplitz(c, r)))
    ways.append(other("scipy matmul_toeplitz", "f(c, x)", f=sl.matmul_toeplitz, c=(c, r)))
    return pl.Toeplitz(c, r), ways


@product("circulant", 10, 1000, 100_000, 2**20)
def _(g, n):
    c, fft, sl = g.standard_normal(n), peer("scipy.fft"), peer("scipy.linalg")
    names = {"S": fft.rfft(c), "n": n, "rfft": fft.rfft, "irfft": fft.irfft}
    ways = [hand("irfft(S * rfft(x), n)", "scipy.fft, spectrum kept", **names)]
    if n <= 1000:
        ways.append(hand("a @ x", "numpy dense", a=sl.circulant(c)))
    return pl.Circulant(c), ways


@product("hankel", 10, 100_000)
def _(g, n):
    h, sl, fft = g.standard_normal(2 * n - 1), peer("scipy.linalg"), peer("scipy.fft")
    N = fft.next_fast_len(2 * n - 1, real=True)
    names = kept_spectrum(h, slice(n - 1, 2 * n - 1), fft)
    code = "irfft(S * rfft(x[::-1], N), N)[take]"
    ways = [hand(code, "scipy.fft, spectrum kept", **names)]
    if n <= 1000:
        ways.append(hand("a @ x", "numpy dense", a=sl.hankel(h[:n], h[n - 1 :])))
    assert N >= 2 * n - 1
    return pl.Hankel(h[:n], h[n - 1 :]), ways


@product("multilevel-toeplitz", 9, 90_000)
def _(g, n):
    m, fft = round(n**0.5), peer("scipy.fft")
    t = g.standard_normal((2 * m - 1, 2 * m - 1))
    N = fft.next_fast_len(2 * m - 1, real=True)
    wide = np.zeros((N, N))
    wide[: 2 * m - 1, : 2 * m - 1] = t
    names = {"S": fft.rfft2(wide), "m": m, "N": N, "rfft2": fft.rfft2, "irfft2": fft.irfft2}
    at = "[m - 1:2 * m - 1, m - 1:2 * m - 1].ravel()"
    code = "irfft2(S * rfft2(x.reshape(m, m), (N, N)), (N, N))" + at
    ways = [hand(code, "scipy.fft, spectrum kept", **names)]
    A = pl.MultilevelToeplitz(t)
    if n <= 1000:
        ways.append(hand("a @ x", "numpy dense", a=A.toarray()))
    return A, ways


@product("convolution-9-full", 10, LARGE)
def _(g, n):
    h = g.standard_normal(9)
    return pl.Convolution(h, n), [hand("convolve(x, h)", convolve=np.convolve, h=h)]


@product("convolution-1000-same", 100_000, LARGE)
def _(g, n):
    h, signal, fft = g.standard_normal(1001), peer("scipy.signal"), peer("scipy.fft")
    names = kept_spectrum(np.concatenate([h, np.zeros(n - 1)]), slice(500, 500 + n), fft)
    ways = [hand(FFT, "scipy.fft, spectrum kept", **names)]
    ways.append(other("scipy oaconvolve", "f(x, h, 'same')", f=signal.oaconvolve, h=h))
    return pl.Convolution(h, n, "same"), ways


@product("dft", 16, 1000, 2**17)
def _(g, n):
    fft = peer("scipy.fft")
    return pl.DFT(n), [hand("fft(x)", "scipy.fft.fft", fft=fft.fft)]


@product("dct", 16, 1000, 2**17)
def _(g, n):
    fft = peer("scipy.fft")
    return pl.DCT(n), [hand("dct(x)", "scipy.fft.dct", dct=fft.dct)]


@product("hadamard", 16, 2**17)
def _(g, n):
    def by_hand(x):
        h = 1
        while h < n:
            x = x.reshape(-1, 2, h)
            x = np.stack([x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]], 1)
            h *= 2
        return x.ravel()

    ways = [hand("f(x)", f=by_hand)]
    if n <= 1000:
        ways.append(hand("a @ x", "numpy dense", a=pl.Hadamard(n, float).toarray()))
    return pl.Hadamard(n), ways


# -- products: of operators ------------------------------------------------------------------------


@product("kron-2", 9, 90_000)
def _(g, n):
    m = round(n**0.5)
    a, b = g.standard_normal((m, m)), g.standard_normal((m, m))
    return pl.Kron(a, b), [hand("(a @ x.reshape(m, m) @ b.T).ravel()", a=a, b=b, m=m)]


@product("kronsum-2", 9, 90_000)
def _(g, n):
    m = round(n**0.5)
    a, b = g.standard_normal((m, m)), g.standard_normal((m, m))

    def by_hand(x):
        x = x.reshape(m, m)
        return (a @ x + x @ b.T).ravel()

    return pl.KronSum(a, b), [hand("f(x)", f=by_hand)]


@product("blockdiag-20", 40, 20_000)
def _(g, n):
    a = g.standard_normal((n // 20, 20, 20))
    A = pl.BlockDiag(*a)
    return A, [hand("(a @ x.reshape(-1, 20, 1)).ravel()", "numpy, batched", a=a)]


@product("block-2x2", 10, 1000)
def _(g, n):
    a, b, c, d = g.standard_normal((4, n // 2, n // 2))
    h = n // 2

    def by_hand(x):
        p, q = x[:h], x[h:]
        return np.concatenate([a @ p + b @ q, c @ p + d @ q])

    ways = [hand("f(x)", f=by_hand), hand("e @ x", "numpy dense", e=np.block([[a, b], [c, d]]))]
    return pl.Block([[a, b], [c, d]]), ways


@product("lowrank-10", 20, 100_000, columns=100_000)
def _(g, n):
    u, v = g.standard_normal((n, 10)), g.standard_normal((n, 10))
    return pl.LowRank(u, v), [hand("u @ (v.T @ x)", u=u, v=v)]


@product("lowrank-update-10", 20, 100_000)
def _(g, n):
    d, u = g.standard_normal(n), g.standard_normal((n, 10))
    return pl.LowRankUpdate(pl.Diag(d), u), [hand("d * x + u @ (u.T @ x)", d=d, u=u)]


@product("congruence", 10, 1000)
def _(g, n):
    a, d = g.standard_normal((n, n)), g.standard_normal(n)
    return pl.Congruence(a, pl.Diag(d)), [hand("a @ (d * (a.T @ x))", a=a, d=d)]


@product("root", 10, 1000)
def _(g, n):
    a = g.standard_normal((n, n))
    return pl.Root(a), [hand("a @ (a.T @ x)", a=a)]


@product("eigen", 10, 1000)
def _(g, n):
    q, w = np.linalg.qr(g.standard_normal((n, n)))[0], g.standard_normal(n)
    return pl.Eigen(q, w), [hand("q @ (w * (q.T @ x))", q=q, w=w)]


@product("hadamard-product", 10, 1000)
def _(g, n):
    a, b = g.standard_normal((n, n)), g.standard_normal((n, n))
    kept = hand("c @ x", "numpy, a * b kept", c=a * b)
    return pl.HadamardProduct(a, b), [hand("(a * b) @ x", a=a, b=b), kept]


@product("khatri-rao", 4, 300)
def _(g, n):
    a, b = g.standard_normal((n, n)), g.standard_normal((n, n))
    return pl.KhatriRao(a, b), [hand("((a * x) @ b.T).ravel()", a=a, b=b)]


@product("matvec", 10)
def _(g, n):
    d = g.standard_normal(n)
    A = pl.MatVec((n, n), lambda x: d * x, dtype=float)
    return A, [hand("f(x)", "the callable", f=lambda x: d * x)]


MAKERS = [products]
