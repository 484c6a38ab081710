"""`pl.einsum` on the 48 contractions of TCCG's benchmark beside numpy.einsum (optimize=True),
opt_einsum's kept expression and torch.

    python benchmarks/einsum_tccg.py [--bytes 4194304] [--dtype f8] [--rounds 5] [PART ...]

Equations and the rule for sizes: Springer and Bientinesi, Design of a high-performance GEMM-like
tensor-tensor multiplication (ACM TOMS 44, 2018), github.com/HPAC/tccg. There the largest array has
200 MiB; here it has --bytes. Arrays are row-major, so that each term is written from the other end.
By turns in one process, in another order each round, one call more in front of those that are
timed: who comes behind a contender whose results lie in small pages pays for that (1.22 for 0.99 of
NumPy's time, where the order stood and all calls were timed). CPU time of a call on one thread (on
more the time that passes), minimum over the rounds; of the ratio, which is taken in each round, the
median; each answer is checked first. Results lie as each library leaves them; `layout` says whether
ours is in C order, as NumPy's, or in an order of its own. Threads: OPENBLAS_NUM_THREADS, 1 if it is
not set."""

import argparse
import math
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harness
import numpy as np

import pylinop as pl

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--bytes", type=int, default=1 << 22)
parser.add_argument("--dtype", default="f8")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("parts", nargs="*", help="contractions that begin with one of these")
options = parser.parse_args()
THREADS = int(os.environ["OPENBLAS_NUM_THREADS"])
clock = time.process_time if THREADS == 1 else time.perf_counter

harness.threads = THREADS
opt_einsum, torch = harness.peer("opt_einsum"), harness.peer("torch")

CCSD = """ij-ik-kj ij-ikl-ljk ij-kil-lkj ijk-ikl-lj ijk-il-jlk ijk-ilk-jl ijk-ilk-lj ijk-ilmk-mjl
ijkl-imjn-lnkm ijkl-imjn-nlmk ijkl-imkn-jnlm ijkl-imkn-njml ijkl-imln-jnkm ijkl-imln-njmk
ijkl-imnj-nlkm ijkl-imnk-njml ijkl-minj-nlmk ijkl-mink-jnlm ijkl-minl-njmk"""
AO2MO = "aqrs-pa-pqrs abrs-qb-aqrs abcs-rc-abrs"
INTENSLI = """abj-bka-kj ajb-kba-jk abjc-cbka-kj ajbc-ckba-jk abjc-kbac-jk abjcd-dkbac-jk
adbjc-cbdka-kj ajbdc-ckbad-jk"""
CCSD_T = """abcijk-ijma-mkbc abcijk-ijmb-mkac abcijk-ijmc-mkab abcijk-ikma-mjbc abcijk-ikmb-mjac
abcijk-ikmc-mjab abcijk-jkma-mibc abcijk-jkmb-miac abcijk-jkmc-miab abcijk-eiab-jkec
abcijk-eiac-jkeb abcijk-eibc-jkea abcijk-ejab-ikec abcijk-ejac-ikeb abcijk-ejbc-ikea
abcijk-ekab-ijec abcijk-ekac-ijeb abcijk-ekbc-ijea"""
GROUPS = [(CCSD, {}), (AO2MO, {}), (INTENSLI, {"j": 24}), (CCSD_T, {})]


def sizes_of(terms, known):
    """The rule of the benchmark: all axes alike; those of unit stride a multiple of 24, the others
    of 4, the nearest one."""
    most = options.bytes / np.dtype(options.dtype).itemsize
    mean = most ** (1 / max(map(len, terms)))
    found = dict(known)
    for x in sorted(set("".join(terms)) - set(found)):
        if any(t[0] == x for t in terms):
            found[x] = math.ceil(mean / 24) * 24
        else:
            found[x] = max(4, 4 * round(mean / 4))
    return found


def timed(contenders):
    """us of each in each round, by turns."""
    times = {name: [] for name in contenders}
    rng = np.random.default_rng(0)
    for _ in range(options.rounds):
        for name in rng.permutation(list(contenders)):
            f = contenders[name]
            f()
            start = clock()
            f()
            f()
            times[name].append((clock() - start) / 2 * 1e6)
    return times


def to_the_best(times):
    """Our time to that of the others round by round, the median, of the one where it is largest:
    what slows all of a round is in neither."""
    ours = np.array(times["pylinop"])
    return max(float(np.median(ours / t)) for name, t in times.items() if name != "pylinop")


def contenders(equation, a, b):
    found = {"pylinop": lambda: pl.einsum(equation, a, b)}
    found["numpy"] = lambda: np.einsum(equation, a, b, optimize=True)
    if opt_einsum:
        kept = opt_einsum.contract_expression(equation, a.shape, b.shape)
        found["opt_einsum"] = lambda: kept(a, b)
    if torch:
        on = torch.from_numpy(a), torch.from_numpy(b)
        found["torch"] = lambda: torch.einsum(equation, *on)
    return found


def main():
    rng = np.random.default_rng(0)
    print(f"largest array {options.bytes} bytes, {options.dtype}, {THREADS} thread(s)\n")
    print(
        "| us | pylinop | numpy | opt_einsum | torch | to the best other | GF/s | layout | plan |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for words, known in GROUPS:
        for word in words.split():
            if options.parts and not word.startswith(tuple(options.parts)):
                continue
            n = sizes_of(word.split("-"), known)
            c, left, right = (t[::-1] for t in word.split("-"))
            equation = f"{left},{right}->{c}"
            a, b = (rng.normal(size=[n[x] for x in t]).astype(options.dtype) for t in (left, right))
            ways = contenders(equation, a, b)
            want = np.einsum(equation, a, b, optimize=True)
            made = ways["pylinop"]()
            alike = "as NumPy's" if made.strides == want.strides else "own"
            layout = "C" if made.flags.c_contiguous else alike
            close = np.abs(made - want).max() / np.abs(want).max()
            assert close < (1e-3 if options.dtype == "f4" else 1e-10), (word, close)
            times = timed(ways)
            ratios.append(to_the_best(times))
            times = {name: min(t) for name, t in times.items()}
            speed = 2 * math.prod(n.values()) / times["pylinop"] / 1e3
            text = pl.einsum_path(equation, a, b)[1]
            steps = [x.split("    ")[-1].strip() for x in text.splitlines() if "<-" in x]
            plan = "; ".join(x.split(", ")[0] for x in steps)
            row = [
                f"{times[x]:.0f}" if x in times else "" for x in ("numpy", "opt_einsum", "torch")
            ]
            print(
                f"| {word} | {times['pylinop']:.0f} | {' | '.join(row)} | {ratios[-1]:.2f} |"
                f" {speed:.0f} | {layout} | {plan} |",
                flush=True,
            )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    ahead, late = sum(r < 1 for r in ratios), sum(r > 1.1 for r in ratios)
    print(f"\ngeometric mean {mean:.2f} over {len(ratios)}, ahead in {ahead}, above 1.1 in {late}")


if __name__ == "__main__":
    main()
