"""The functions on structure: estimates beside times, small Krons, frames of a call, few eigenpairs
of blocks, products of a spin chain.

    python benchmarks/system.py                 all but the estimates of the largest size
    python benchmarks/system.py estimates 300 1000
    python benchmarks/system.py estimates 1000 Root Hankel       of these kinds alone
    python benchmarks/system.py kron8 frames blocks spins

Ratios are of minima, both sides in turn in one process, of the process's CPU time, which a loaded
machine does not stretch. ``explain`` is asked of an operator of its own before the call, so nothing
is kept; the best of two calls or more counts."""

import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import pylinop as pl

RNG = np.random.default_rng(0)


def best(call, make, least=2, seconds=0.02):
    """The least time that this thread takes for ``call(make())``; making is not timed."""
    times = []
    while len(times) < least or (sum(times) < seconds and len(times) < 300):
        made = make()
        pl._core._clear_store()  # operators without arrays are the same ones again
        start = time.thread_time()
        call(made)
        times.append(time.thread_time() - start)
    return min(times)


def in_turn(*pairs, rounds=20):
    """The least times of several (call, make), in turn."""
    found = [np.inf] * len(pairs)
    for _ in range(rounds):
        for i, (call, make) in enumerate(pairs):
            made = make()
            start = time.process_time()
            call(made)
            found[i] = min(found[i], time.process_time() - start)
    return found


# -- estimates --


def symmetric(n):
    a = RNG.standard_normal((n, n))
    return a + a.T


def definite(n):
    return symmetric(n) + 5 * n**0.5 * np.eye(n)


def kinds(n):
    """Operators of n rows, Hermitian and definite ones, and others."""
    k = int(n**0.5)
    e = np.full(n - 1, 0.5)
    ring = np.r_[4.0, np.full(2, 0.5), np.zeros(n - 5), np.full(2, 0.5)]
    decay = 0.5 ** np.arange(n)
    band = np.r_[np.full((4, n), 0.2), np.full((1, n), 4.0), np.full((4, n), 0.2)]
    u = RNG.standard_normal((n, 5))
    lap = sp.random_array((n, n), density=5 / n, rng=RNG, format="csr")
    return {
        "Dense": lambda: pl.Dense(definite(n)),
        "Dense, not Hermitian": lambda: pl.Dense(RNG.standard_normal((n, n)) / n**0.5),
        "Diag": lambda: pl.Diag(RNG.uniform(1, 2, n)),
        "Kron": lambda: pl.Kron(definite(k), definite(k)),
        "Kron + c I": lambda: pl.Kron(definite(k), definite(k)) + 2 * pl.Identity(k * k),
        "KronSum": lambda: pl.KronSum(definite(k), definite(k)),
        "BlockDiag": lambda: pl.BlockDiag(*(definite(n // 4) for _ in range(4))),
        "Circulant": lambda: pl.Circulant(ring.copy()),
        "Toeplitz": lambda: pl.Toeplitz(decay.copy()),
        "Toeplitz, not Hermitian": lambda: pl.Toeplitz(decay.copy(), 0.9 * decay),
        "Tridiagonal": lambda: pl.Tridiagonal(e.copy(), np.full(n, 4.0), e.copy()),
        "Banded": lambda: pl.Banded((4, 4), band.copy()),
        "LowRank": lambda: pl.LowRank(u.copy()),
        "LowRankUpdate": lambda: pl.LowRankUpdate(pl.Diag(np.linspace(1, 2, n)), u.copy()),
        "c I + U U^T": lambda: pl.LowRankUpdate(2 * pl.Identity(n), u.copy()),
        "Sparse": lambda: pl.Sparse(lap + lap.T + 9 * sp.eye_array(n)),
        "Laplacian": lambda: -pl.Laplacian((k, k), "dirichlet", np.float64),
        "Householder": lambda: pl.Householder(RNG.standard_normal(n)),
        "Permutation": lambda: pl.Permutation(RNG.permutation(n)),
        "Triangular": lambda: pl.Triangular(np.tril(definite(n))),
        "Eigen": lambda: pl.Eigen(pl.DFT(n, "ortho"), RNG.uniform(1, 2, n)),
        "Root": lambda: pl.Root(RNG.standard_normal((n, 8))),
        "QuasiSeparable": lambda: (
            pl.quasiseparable("matern32", np.sort(RNG.uniform(0, 9, n))) + 0.1 * pl.Identity(n)
        ),
        "BlockTridiagonal": lambda: pl.BlockTridiagonal(
            np.full((n // 10 - 1, 10, 10), 0.1),
            np.broadcast_to(definite(10) + 9 * np.eye(10), (n // 10, 10, 10)).copy(),
            np.full((n // 10 - 1, 10, 10), 0.1),
        ),
        "Hankel": lambda: pl.Hankel(RNG.standard_normal(2 * n - 1)[:n], RNG.standard_normal(n)),
        "A + B": lambda: pl.Toeplitz(decay.copy()) + pl.Diag(np.linspace(1, 2, n)),
        "A @ B": lambda: pl.Toeplitz(decay.copy()) @ pl.Diag(np.linspace(1, 2, n)),
    }


FUNCTIONS = {
    "eigh": pl.eigh, "eigvalsh": pl.eigvalsh, "svd": pl.svd, "svdvals": pl.svdvals,
    "eig": pl.eig, "eigvals": pl.eigvals, "cholesky": pl.cholesky, "qr": pl.qr, "lu": pl.lu,
    "ldl": pl.ldl, "lstsq": pl.lstsq, "null_space": pl.null_space, "pinv": pl.pinv,
    "matrix_norm": pl.matrix_norm, "cond": pl.cond, "expm": pl.expm, "logm": pl.logm,
    "sqrtm": pl.sqrtm, "sample": pl.sample, "sqrt_inv_matmul": pl.sqrt_inv_matmul,
}  # fmt: skip
HERMITIAN = ("eigh", "eigvalsh", "ldl", "sample", "sqrt_inv_matmul", "cholesky")


_LONG = 0.3  # seconds that are said, beyond which pairs of more than 1,000 rows are left out


def estimates(*asked):
    sizes = [int(x) for x in asked if x.isdigit()]
    names = [x for x in asked if not x.isdigit()]
    for n in sizes or (300, 1000):
        _estimates(n, names)


def _estimates(n, names):
    ratios, left = [], 0
    for kind, make in kinds(n).items():
        if names and kind not in names:
            continue
        a = make().toarray()
        hermitian = np.array_equal(a, a.T.conj())
        for name, function in FUNCTIONS.items():
            if name in HERMITIAN and not hermitian:
                continue
            more = (np.ones(len(a)),) if name in ("lstsq", "sqrt_inv_matmul") else ()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    said = make().explain(name, *more).seconds
                    if n > 1000 and said > _LONG:
                        left += 1
                        continue
                    took = best(lambda op, f=function, more=more: f(op, *more), make)
            except (np.linalg.LinAlgError, NotImplementedError, ValueError):
                continue
            ratios.append((said / took, n, kind, name, said, took))
            print(f"{n} {kind}: {name} {said:.3g} {took:.3g}", file=sys.stderr, flush=True)
    within = sum(1 / 3 <= r[0] <= 3 for r in ratios)
    print(f"estimates: {within} of {len(ratios)} within a factor 3 ({within / len(ratios):.0%})")
    print(f"  {left} left out, said to take more than {_LONG} s") if left else None
    for ratio, n, kind, name, said, took in sorted(ratios):
        if not 1 / 3 <= ratio <= 3:
            print(f"  {name:16} {kind:24} {n:5}  said {said:9.3g}, took {took:9.3g}: {ratio:.2f}")


# -- small Krons --


def kron8():
    """Anew: nothing of the operator is kept. NumPy's on the two factors."""

    def make():
        return definite(8), definite(8)

    b = np.ones(64)
    for name, ours, numpys in (
        ("eigh", lambda f: pl.eigh(pl.Kron(*f)), lambda f: [np.linalg.eigh(x) for x in f]),
        ("cholesky", lambda f: pl.cholesky(pl.Kron(*f)),
         lambda f: [np.linalg.cholesky(x) for x in f]),
        ("lstsq", lambda f: pl.lstsq(pl.Kron(*f), b), lambda f: [np.linalg.svd(x) for x in f]),
        ("svdvals", lambda f: pl.svdvals(pl.Kron(*f)), lambda f: [np.linalg.svdvals(x) for x in f]),
    ):  # fmt: skip
        one, other = in_turn((ours, make), (numpys, make), rounds=400)
        print(f"kron8 {name:9} {one * 1e6:6.0f} us, NumPy {other * 1e6:6.0f}: {one / other:.1f} x")


def frames():
    """Python calls of ours in a first eigh(Kron), and how many files they are in."""
    seen = []

    def watch(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and f"{os.sep}pylinop{os.sep}" in file:
            seen.append(file)

    for _ in range(2):  # the second: nothing is imported
        A = pl.Kron(definite(8), definite(8))
        seen.clear()
        sys.setprofile(watch)
        pl.eigh(A)
        sys.setprofile(None)
    print(f"frames of ours in a first eigh(Kron): {len(seen)} in {len(set(seen))} files")


# -- few eigenpairs of blocks --


def blocks():
    parts = []
    for i in range(12):
        q, _ = np.linalg.qr(RNG.standard_normal((900, 900)))
        b = (q * (0.9 ** np.arange(900) * (1 + i))) @ q.T
        parts.append((b + b.T) / 2)

    def make():
        return pl.BlockDiag(*(b.copy() for b in parts))

    ways = {
        "pl.eigsh(B, k=1)": lambda B: pl.eigsh(B, k=1),
        "pl.eigh(B, k=1)": lambda B: pl.eigh(B, k=1),
        'pl.eigh(B, k=1, method="iterative")': lambda B: pl.eigh(B, k=1, method="iterative"),
        "scipy.sparse.linalg.eigsh": lambda B: sla.eigsh(B, k=1),
    }
    found = in_turn(*((call, make) for call in ways.values()), rounds=3)
    for name, took in zip(ways, found, strict=True):
        print(f"blocks {name:38} {took:.3f} s: {took / found[-1]:.2f} x SciPy's eigsh")


# -- a spin chain --


def spins(N=14):
    """sum over neighbours of X X + Z Z: 2 (N - 1) Krons, times a vector of 2^N entries."""
    N = int(N)
    x, z = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])

    def term(op, i, kron, eye):
        return kron(kron(eye(2**i), op), eye(2 ** (N - i - 2)))

    H = C = None
    for i in range(N - 1):
        for p in (x, z):
            one = term(np.kron(p, p), i, pl.Kron, pl.Identity)
            two = term(sp.csr_array(np.kron(p, p)), i, sp.kron, sp.eye_array)
            H, C = (one, two) if H is None else (H + one, C + two)
    C = sp.csr_array(C)
    v = RNG.standard_normal(2**N)
    H @ v
    one, other = in_turn(
        (lambda _: H @ v, lambda: None), (lambda _: C @ v, lambda: None), rounds=60
    )
    print(f"spins N = {N}: {one * 1e3:.2f} ms, SciPy's CSR {other * 1e3:.2f}: {one / other:.2f} x")


PARTS = {"estimates": estimates, "kron8": kron8, "frames": frames, "blocks": blocks, "spins": spins}

if __name__ == "__main__":
    asked = sys.argv[1:] or list(PARTS)
    if asked[0] == "estimates" and len(asked) > 1:
        estimates(*asked[1:])
    else:
        for part in asked:
            PARTS[part]()
