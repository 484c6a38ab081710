"""Large sizes: Kronecker, Toeplitz, sparse, diagonal and low-rank products."""

import numpy as np
from harness import Case, peer, tensor
from overhead import add_krons, rng

import pylinop as pl

# -- Kronecker -------------------------------------------------------------------------------------


def kron_rotate(factors, x):
    """By hand: each factor on the leading axis, which then goes last; BLAS takes the transposes."""
    k = 1 if x.ndim == 1 else x.shape[1]
    for a in factors:
        x = x.reshape(a.shape[1], -1).T @ a.T
    return x.ravel() if k == 1 else x.reshape(k, -1).T


def kron_batches(factors, x):
    """By hand: each factor on its own axis by numpy's batched matmul, nothing transposed."""
    shape, left, right = x.shape, 1, x.size
    for a in factors:
        right //= a.shape[1]
        x = a @ x.reshape(left, a.shape[1], right) if right > 1 else x.reshape(left, -1) @ a.T
        left *= a.shape[0]
    return x.reshape(left, *shape[1:])


def kron():
    for n, p in ((64, 3), (512, 2), (4, 8)):
        for k in (1, 16):

            def build(n=n, p=p, k=k):
                g = rng()
                fs = [g.standard_normal((n, n)) for _ in range(p)]
                N = n**p
                x = g.standard_normal((N, k) if k > 1 else N)
                y = np.empty_like(x)
                flops = 2.0 * p * n * N * k
                case = Case("", "", kron_rotate(fs, x), flops=flops)
                K = pl.Kron(*fs)
                case.add("pylinop", "pylinop K @ x", "K @ x", K=K, x=x)
                out = "matvec" if k == 1 else "matmat"
                case.add(
                    "pylinop", f"pylinop K.{out}(x, out=y)", f"K.{out}(x, out=y)", K=K, x=x, y=y
                )
                case.add(
                    "hand", "numpy by hand, axes rotate", "f(fs, x)", f=kron_rotate, fs=fs, x=x
                )
                case.add(
                    "hand", "numpy by hand, batched matmul", "f(fs, x)", f=kron_batches, fs=fs, x=x
                )
                add_krons(case, fs, x)
                X, Y = x.reshape(n, -1), np.empty((n, N * k // n))
                code = "; ".join(["np.matmul(a, X, out=Y)"] * p)
                case.add(
                    "floor",
                    "dgemm, these sizes",
                    code,
                    "want",
                    a=fs[0],
                    X=X,
                    Y=Y,
                    want=case.expected,
                )
                add_dgemm(case)
                if n > 4:
                    case.goal(
                        "pylinop K @ x",
                        "dgemm, 1024 x 1024",
                        1 / 0.85,
                        f"Kron {n}^{p}, {k} column{'s' * (k > 1)}",
                        "0.85 of dgemm's rate (1.18 x its time a flop)",
                    )
                elif peer("pyfastkron"):
                    case.goal(
                        "pylinop K @ x",
                        "pyfastkron",
                        0.5,
                        f"Kron 4^8, {k} column{'s' * (k > 1)}",
                        "0.5 x pyfastkron",
                    )
                return case

            yield f"throughput/kron-{n}^{p}-{k}", build


def add_dgemm(case):
    """dgemm's own rate on this machine, as a yardstick for rates."""
    g = rng()
    a, b, c = (
        g.standard_normal((1024, 1024)),
        g.standard_normal((1024, 1024)),
        np.empty((1024, 1024)),
    )
    code = "np.matmul(a, b, out=c)"
    case.add(
        "floor",
        "dgemm, 1024 x 1024",
        code,
        "want",
        a=a,
        b=b,
        c=c,
        want=case.expected,
        flops=2.0 * 1024**3,
    )


# -- Toeplitz --------------------------------------------------------------------------------------


def toeplitz_cached(n, fft, S, x, N):
    return fft.irfft(S * fft.rfft(x, N), N)[:n]


def toeplitz():
    for n, k in ((100, 1), (1000, 1), (10_000, 1), (10_000, 16), (100_000, 1), (1_000_000, 1)):

        def build(n=n, k=k):
            g = rng()
            c = np.exp(-((np.arange(n) / (0.1 * n)) ** 2)) + 1e-3 * g.standard_normal(n)
            x = g.standard_normal((n, k) if k > 1 else n)
            T = pl.Toeplitz(c)
            run = np.concatenate([c, c[:0:-1]])
            spectrum = np.fft.rfft(run)
            full = np.fft.irfft(
                spectrum.reshape(-1, *[1] * (x.ndim - 1)) * np.fft.rfft(x, 2 * n - 1, axis=0),
                2 * n - 1,
                axis=0,
            )
            case = Case("", "", full[:n], flops=5.0 * 2 * n * np.log2(2 * n) * k)
            case.add("pylinop", "pylinop T @ x", "T @ x", T=T, x=x)
            frozen = pl.Toeplitz(pl.freeze(c))
            case.add("pylinop", "pylinop T @ x, c frozen", "T @ x", T=frozen, x=x)
            sl, sf = peer("scipy.linalg"), peer("scipy.fft")
            if sf and k == 1:
                N = sf.next_fast_len(2 * n - 1, real=True)
                S = sf.rfft(np.concatenate([c, np.zeros(N - 2 * n + 1), c[:0:-1]]))
                code = "irfft(S * rfft(x, N), N)[:n]"
                case.add(
                    "hand",
                    "scipy.fft, spectrum kept",
                    code,
                    irfft=sf.irfft,
                    rfft=sf.rfft,
                    S=S,
                    x=x,
                    N=N,
                    n=n,
                )
                case.goal(
                    "pylinop T @ x",
                    "scipy.fft, spectrum kept",
                    0.5 if n == 1_000_000 else 1.0,
                    f"Toeplitz times vector, n = {n}",
                    "half of scipy.fft's time, spectrum kept"
                    if n == 1_000_000
                    else "ahead of scipy.fft, spectrum kept",
                )
            if sf and k > 1:
                N = sf.next_fast_len(2 * n - 1, real=True)
                S = sf.rfft(np.concatenate([c, np.zeros(N - 2 * n + 1), c[:0:-1]]))[:, None]
                code = "irfft(S * rfft(x, N, axis=0), N, axis=0)[:n]"
                case.add(
                    "hand",
                    "scipy.fft, spectrum kept",
                    code,
                    irfft=sf.irfft,
                    rfft=sf.rfft,
                    S=S,
                    x=x,
                    N=N,
                    n=n,
                )
            if peer("torch") and sf and k == 1:
                f = peer("torch").fft
                S = tensor(S)
                case.add(
                    "peer",
                    "torch.fft, spectrum kept",
                    code,
                    irfft=f.irfft,
                    rfft=f.rfft,
                    S=S,
                    x=tensor(x),
                    N=N,
                    n=n,
                )
            if sl:
                case.add(
                    "peer",
                    "scipy.linalg.matmul_toeplitz",
                    "f(c, x)",
                    f=sl.matmul_toeplitz,
                    c=c,
                    x=x,
                )
                if n <= 1000:
                    case.add("hand", "numpy dense a @ x", "a @ x", a=sl.toeplitz(c), x=x)
                if n == 100:
                    case.goal(
                        "pylinop T @ x",
                        "numpy dense a @ x",
                        1.0,
                        "Toeplitz times vector, n = 100",
                        "ahead of dense",
                    )
            if peer("linear_operator"):
                L = peer("linear_operator.operators").ToeplitzLinearOperator(tensor(c))
                case.add("peer", "linear_operator", "T @ x", T=L, x=tensor(x))
            return case

        yield f"throughput/toeplitz-{n}-{k}", build


def gridded():
    """The operator of the CO2 example: weeks of a regular grid, some missing, plus noise."""

    def build():
        n = 2284
        g = rng()
        t = np.arange(n) / 52
        c = np.exp(-(t**2) / 2)
        keep = np.flatnonzero(g.random(n) < 0.97)
        x = g.standard_normal(len(keep))
        S, T = pl.Selection(keep, n), pl.Toeplitz(c)
        A = S @ T @ S.T + 0.1 * pl.Identity(len(keep))
        dense = c[np.abs(keep[:, None] - keep[None])]
        case = Case("", "", dense @ x + 0.1 * x)
        case.add("pylinop", "pylinop (S T S' + s I) @ x", "A @ x", A=A, x=x)
        case.add("hand", "numpy dense a @ x", "a @ x", a=dense + 0.1 * np.eye(len(keep)), x=x)
        sf = peer("scipy.fft")
        if sf:
            N = sf.next_fast_len(2 * n - 1, real=True)
            spectrum = sf.rfft(np.concatenate([c, np.zeros(N - 2 * n + 1), c[:0:-1]]))

            def by_hand(x):
                z = np.zeros(n)
                z[keep] = x
                return sf.irfft(spectrum * sf.rfft(z, N), N)[keep] + 0.1 * x

            case.add("hand", "scipy.fft by hand", "f(x)", f=by_hand, x=x)
        return case

    yield "throughput/gridded-2284", build


# -- sparse, diagonal, low rank --------------------------------------------------------------------


def random_csr(m, n, per_row):
    g = rng()
    sp = peer("scipy.sparse")
    indices = g.integers(0, n, (m, per_row), dtype=np.int32)
    indices.sort(axis=1)
    pointers = np.arange(m + 1, dtype=np.int32) * np.int32(per_row)
    return sp.csr_array((g.standard_normal(m * per_row), indices.ravel(), pointers), shape=(m, n))


def sparse():
    if not peer("scipy.sparse"):
        return
    for m, n, per_row in (
        (100, 100, 5),
        (10_000, 10_000, 10),
        (100_000, 100_000, 10),
        (1_000_000, 100_000, 10),
    ):
        for what, code, k in (
            ("vector", "A @ x", 1),
            ("16", "A @ x", 16),
            ("transposed", "A.T @ x", 1),
        ):
            if (
                what != "vector"
                and m in (100, 1_000_000)
                and not (what == "transposed" and m == 1_000_000)
            ):
                continue

            def build(m=m, n=n, per_row=per_row, what=what, code=code, k=k):
                a = random_csr(m, n, per_row)
                length = m if what == "transposed" else n
                x = rng().standard_normal((length, k) if k > 1 else length)
                A = pl.Sparse(a)
                case = Case(
                    "", "", a.T @ x if what == "transposed" else a @ x, flops=2.0 * a.nnz * k
                )
                case.add("pylinop", f"pylinop {code}", code, A=A, x=x)
                case.add("peer", f"scipy csr_array {code}", code, A=a, x=x)
                if peer("torch") and what != "transposed":
                    t = peer("torch")
                    parts = tensor(a.indptr), tensor(a.indices), tensor(a.data)
                    import warnings

                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        case.add(
                            "peer",
                            "torch sparse_csr",
                            code,
                            A=t.sparse_csr_tensor(*parts, size=a.shape),
                            x=tensor(x),
                        )
                return case

            yield f"throughput/csr-{m}x{n}-{what}", build


def diagonal():
    for n in (10_000, 100_000, 1_000_000):

        def build(n=n):
            g = rng()
            d, x, y = g.standard_normal(n), g.standard_normal(n), np.empty(n)
            D = pl.Diag(d)
            case = Case("", "", d * x)
            case.add("pylinop", "pylinop D @ x", "D @ x", D=D, x=x)
            case.add("pylinop", "pylinop D.matvec(x, out=y)", "D.matvec(x, out=y)", D=D, x=x, y=y)
            case.add("hand", "numpy d * x", "d * x", d=d, x=x)
            case.add(
                "floor", "numpy multiply(d, x, out=y)", "np.multiply(d, x, out=y)", d=d, x=x, y=y
            )
            if peer("linear_operator"):
                L = peer("linear_operator.operators").DiagLinearOperator(tensor(d))
                case.add("peer", "linear_operator", "D @ x", D=L, x=tensor(x))
            return case

        yield f"throughput/diag-{n}", build


def low_rank():
    for n, r, k in ((1000, 10, 1), (100_000, 50, 1), (100_000, 50, 16)):

        def build(n=n, r=r, k=k):
            g = rng()
            u, v = g.standard_normal((n, r)), g.standard_normal((n, r))
            x = g.standard_normal((n, k) if k > 1 else n)
            A = pl.LowRank(u, v)
            case = Case("", "", u @ (v.T @ x), rtol=1e-9, flops=4.0 * n * r * k)
            case.add("pylinop", "pylinop LowRank(u, v) @ x", "A @ x", A=A, x=x)
            case.add("hand", "numpy u @ (v.T @ x)", "u @ (v.T @ x)", u=u, v=v, x=x)
            if peer("linear_operator"):
                ops = peer("linear_operator.operators")
                L = ops.MatmulLinearOperator(tensor(u), tensor(v).mT)
                case.add("peer", "linear_operator", "A @ x", A=L, x=tensor(x))
            if peer("cola"):
                s = peer("cola").ops.Dense
                case.add("peer", "CoLA", "A @ x", A=s(u) @ s(v).T, x=x)
            return case

        yield f"throughput/lowrank-{n}-{r}-{k}", build


MAKERS = [kron, toeplitz, gridded, sparse, diagonal, low_rank]
