"""`pl.einsum` beside numpy.einsum (as it is, and with optimize=True), opt_einsum's kept expression,
torch and jax.jit, over thirty equations that people have complained of, and convolutions as views.

    python benchmarks/einsum_patterns.py [--rounds 7] [NAME ...]

Interleaved in one process, in another order each round, one call more in front of those that are
timed (einsum_tccg.py says why), CPU time of one call on one thread (on more the time that passes),
minimum over the rounds, and of the ratio, taken in each round, the median; each answer is checked
first. Threads: OPENBLAS_NUM_THREADS, 1 if it is not set. Sources of the equations: issues of NumPy,
opt_einsum and PyTorch, TCCG (Springer and Bientinesi 2018), attention, convolutions in the layout
of images."""

import argparse
import functools
import math
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pylinop as pl

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("names", nargs="*")
options = parser.parse_args()
THREADS = int(os.environ["OPENBLAS_NUM_THREADS"])
clock = time.process_time if THREADS == 1 else time.perf_counter


def optional(name):
    try:
        return __import__(name)
    except ImportError:
        return None


opt_einsum, torch, jax = (optional(name) for name in ("opt_einsum", "torch", "jax"))
if torch:
    torch.set_num_threads(THREADS)
if jax:
    jax.config.update("jax_enable_x64", True)

# name, equation, sizes, dtype
PATTERNS = [
    ("inner contraction", "abcijk,ijkd->abcd", "a8 b12 c12 i5 j5 k3 d32", "f8"),
    ("inner contraction f32", "abcijk,ijkd->abcd", "a8 b28 c28 i5 j5 k3 d32", "f4"),
    ("inner contraction, tiny", "abcijk,ijkd->abcd", "a2 b2 c3 i3 j3 k3 d8", "f8"),
    ("numpy 19647", "qij,qjk->qik", "q100 i100 j120 k100", "f8"),
    ("numpy 22604", "thd,Thd->thT", "t256 T256 h64 d128", "f4"),
    ("attention q k", "bqhd,bkhd->bhqk", "b2 q128 k128 h12 d64", "f4"),
    ("attention a v", "bhqk,bkhd->bqhd", "b2 q128 k128 h12 d64", "f4"),
    ("bilinear", "bi,oij,bj->bo", "b64 i96 j96 o32", "f8"),
    ("quadratic forms", "bi,ij,bj->b", "b1000 i128 j128", "f8"),
    ("TCCG abc", "bda,dc->abc", "a96 b48 c96 d96", "f8"),
    ("TCCG abcd dbea", "dbea,ec->abcd", "a24 b24 c24 d24 e24", "f8"),
    ("TCCG abcd ea", "ea,ebcd->abcd", "a48 b24 c24 d48 e32", "f8"),
    ("TCCG ab cad", "cad,dcb->ab", "a96 b96 c96 d96", "f8"),
    ("TCCG abcd aebf", "aebf,dfce->abcd", "a24 b24 c24 d24 e24 f24", "f8"),
    ("TCCG abcd aecf", "aecf,fbed->abcd", "a24 b24 c24 d24 e24 f24", "f8"),
    ("TCCG abcdef", "dega,gfbc->abcdef", "a12 b10 c12 d10 e12 f10 g14", "f8"),
    ("TCCG abcde", "efbad,cf->abcde", "a24 b16 c24 d24 e16 f24", "f8"),
    ("numpy 11686", "abcr,cref->abef", "a40 b40 c16 r80 e4 f4", "f8"),
    ("opt_einsum 234", "ijkl,jmik,jmil->jm", "i8 j10 k32 l32 m12", "c16"),
    ("numpy 21019", "i,i,ijk,ilk->ijl", "i20000 j3 k3 l3", "f8"),
    ("pytorch 10661", "ac,abc->cb", "a5 b30 c20", "f8"),
    ("numpy 10357", "ij,j->i", "i3 j3", "f8"),
    ("trace", "ij,ji->", "i2000 j2000", "f8"),
    ("diagonal", "iij,jk->ik", "i50 j60 k40", "f8"),
    ("outer", "bi,bj->bij", "b100 i100 j200", "f8"),
    ("stack of 16 x 16", "xyij,xyjk->xyik", "x16 y16 i16 j16 k16", "f8"),
    ("weighted Gram", "ki,k,kj,k->ij", "k10000 i100 j100", "f8"),
    ("MPS, numpy 32111", "ijk,klmn,nop,jmp->ilo", "i20 j8 k20 l4 m8 n20 o20 p8", "f8"),
    ("opt_einsum 8", "abc,cfd,dbe,efa->", "a20 b20 c20 d20 e20 f20", "f8"),
    ("chain", "ij,jk,k->i", "i1000 j1000 k1000", "f8"),
    ("15,000 of 3 x 3", "qij,qjk->qik", "q15000 i3 j3 k3", "f8"),
]
# name, image (batch, rows, columns, channels), kernel, step
CONVOLUTIONS = [
    ("conv 3 x 3 x 64 to 64", (8, 58, 58, 64), (3, 3, 64, 64), 1),
    ("conv 3 x 3 x 64, step 2", (8, 57, 57, 64), (3, 3, 64, 64), 2),
    ("conv 5 x 5 x 3 to 32", (8, 36, 36, 3), (5, 5, 3, 32), 1),
    ("conv 3 x 3 x 256 to 256", (2, 16, 16, 256), (3, 3, 256, 256), 1),
]


def timed(contenders):
    """us of each in each round, by turns."""
    times = {name: [] for name in contenders}
    batch = {}
    for name, f in contenders.items():
        f()
        start = clock()
        f()
        batch[name] = max(1, int(3e-3 / max(clock() - start, 1e-7)))
    rng = np.random.default_rng(0)
    for _ in range(options.rounds):
        for name in rng.permutation(list(contenders)):
            f = contenders[name]
            f()
            start = clock()
            for _ in range(batch[name]):
                f()
            times[name].append((clock() - start) / batch[name] * 1e6)
    return times


def to_the_best(times):
    """As in einsum_tccg.py."""
    ours = np.array(times["pylinop"])
    return max(float(np.median(ours / t)) for name, t in times.items() if name != "pylinop")


def on_jax(f, arrays):
    on = [jax.numpy.asarray(a) for a in arrays]
    run = jax.jit(f)
    return lambda: run(*on).block_until_ready()


def pattern(equation, sizes, dtype):
    n = {word[0]: int(word[1:]) for word in sizes.split()}
    rng = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.normal(size=[n[c] for c in t]).astype(dtype) for t in terms]
    if equation.startswith("ki,k,kj"):
        arrays[2:] = arrays[:2]
    found = {"pylinop": lambda: pl.einsum(equation, *arrays)}
    total = math.prod(n.values())
    if total < 3e7 and len(arrays) < 4:
        found["numpy"] = lambda: np.einsum(equation, *arrays)
    found["numpy, optimize"] = lambda: np.einsum(equation, *arrays, optimize=True)
    if opt_einsum:
        kept = opt_einsum.contract_expression(equation, *(a.shape for a in arrays))
        found["opt_einsum, kept"] = lambda: kept(*arrays)
    if torch:
        on = [torch.from_numpy(a) for a in arrays]
        found["torch"] = lambda: torch.einsum(equation, *on)
    if jax:
        found["jax.jit"] = on_jax(lambda *x: jax.numpy.einsum(equation, *x), arrays)
    flops = float(pl.einsum_path(equation, *arrays)[1].rpartition(" flops, ")[0].split()[-1])
    once = {id(a): a.nbytes for a in arrays}
    size = sum(once.values()) + np.asarray(found["pylinop"]()).nbytes
    return found, flops, (flops, size, dtype)


def convolution(image, kernel, step):
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype("f4") for s in (image, kernel))
    equation = f"b ({step}*y + i) ({step}*x + j) c, i j c d -> b y x d"
    found = {"pylinop": lambda: pl.einsum(equation, x, w)}
    out = pl.einsum(equation, x, w)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel[:2], axis=(1, 2))[:, ::step, ::step]
    found["numpy, optimize"] = lambda: np.tensordot(view, w, ((4, 5, 3), (0, 1, 2)))
    if torch:
        tx = torch.from_numpy(x).permute(0, 3, 1, 2)  # its memory stays in this order
        tw = torch.from_numpy(w).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        found["torch"] = lambda: torch.nn.functional.conv2d(tx, tw, stride=step).permute(0, 2, 3, 1)
    if jax:
        dims = ("NHWC", "HWIO", "NHWC")

        def run(a, b):
            return jax.lax.conv_general_dilated(a, b, (step, step), "VALID", dimension_numbers=dims)

        found["jax.jit"] = on_jax(run, [x, w])
    flops = 2.0 * out.size * math.prod(kernel[:3])
    return found, flops, (flops, x.nbytes + w.nbytes + out.nbytes, "f4")


@functools.cache
def gemm_rate(dtype):
    """Flops a second of NumPy's product of two matrices of 1000 rows and columns."""
    a = np.random.default_rng(0).normal(size=(1000, 1000)).astype(dtype)
    out = np.empty_like(a)
    return 2e9 / least(lambda: np.matmul(a, a, out=out))


@functools.cache
def copy_rate():
    """Bytes a second, read and written, of a copy of 32 MiB."""
    a = np.ones(1 << 22)
    out = np.ones_like(a)
    return 2 * a.nbytes / least(lambda: np.copyto(out, a))


def least(f, times=9):
    found = math.inf
    for _ in range(times):
        start = clock()
        f()
        found = min(found, clock() - start)
    return found


def bound(flops, size, dtype):
    """us that it takes at gemm's rate, or to move its arrays once."""
    return max(flops / gemm_rate(dtype), size / copy_rate()) * 1e6


def main():
    rows = [(name, pattern, args) for name, *args in PATTERNS]
    rows += [(name, convolution, args) for name, *args in CONVOLUTIONS]
    names = ["pylinop", "numpy", "numpy, optimize", "opt_einsum, kept", "torch", "jax.jit"]
    print(
        f"| us, {THREADS} thread | " + " | ".join(names) + " | to the best other | GF/s |"
        " to the bound |"
    )
    print("|---" * (len(names) + 4) + "|")
    ratios, bounds = [], []
    for name, make, args in rows:
        if options.names and not any(part in name for part in options.names):
            continue
        found, flops, work = make(*args)
        want = np.asarray(found["pylinop"]())
        for f in found.values():
            np.testing.assert_allclose(
                np.asarray(f()), want, rtol=1e-2, atol=1e-3 * abs(want).max()
            )
        times = timed(found)
        ratio = to_the_best(times)
        times = {name: min(t) for name, t in times.items()}
        ratios.append(ratio)
        cells = " | ".join(f"{times[n]:.4g}" if n in times else "" for n in names)
        rate = flops / times["pylinop"] / 1e3
        if flops >= 1e7 and make is pattern:
            bounds.append(times["pylinop"] / bound(*work))
        near = f"{bounds[-1]:.2f}" if flops >= 1e7 and make is pattern else ""
        print(f"| {name} | {cells} | {ratio:.2f} | {rate:.3g} | {near} |", flush=True)
    print(f"\ngeometric mean {math.exp(np.mean(np.log(ratios))):.2f} over {len(ratios)}")
    if bounds:
        mean = math.exp(np.mean(np.log(bounds)))
        print(f"to the larger of flops at gemm's rate and bytes {mean:.2f} over {len(bounds)}")


if __name__ == "__main__":
    main()
