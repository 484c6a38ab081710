"""Formulas nobody tuned for, as the paper has them, beside the best way by hand: of
formulas_strangers.py and strangers_losses.py.

    OPENBLAS_NUM_THREADS=1 python benchmarks/strangers.py [--gradients] [--small] [NAME ...]
    python benchmarks/strangers.py --mixed [NAME ...]

Each value is compared with NumPy's of the dense matrices, then timed: CPU time of one thread,
minimum and median of interleaved calls, every operand changed before each, so that nothing that was
kept is used again. --small: at n = 13, values and times. --mixed: wall time, BLAS's threads as they
come, with a product of NumPy's before each call. --gradients: losses alone, value and gradient, and
Hessian times a vector, beside torch in float64 (if it is there), in value and in time."""

import argparse
import functools
import json
import statistics
import sys
import time
import warnings

import formulas_strangers
import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
import strangers_losses
from formulas import Hand
from harness import Case, cpu_name

import pylinop as pl

SMALL = 13
ROWS = formulas_strangers.ROWS + [row[:-1] for row in strangers_losses.ROWS]
BY = {row[0]: row[-1] for row in strangers_losses.ROWS}  # what losses are derived by

# -- what the names in a formula are ------------------------------------------------------------


def by_eigenvalues(a, f):
    w, v = np.linalg.eigh(a)
    return (v * f(w)) @ v.T


def both(*results):
    return np.concatenate([np.ravel(x) for x in results])


DENSE = {
    **{k: getattr(np, k) for k in "exp log cos tanh abs sign maximum real tril hstack".split()},
    **{k: getattr(np, k) for k in "trace diagonal eye outer diag block".split()},
    "inv": np.linalg.inv,
    "logdet": lambda a: np.linalg.slogdet(a)[1],
    "eigh": np.linalg.eigh,
    "expm": sla.expm,
    "sqrtm": lambda a: by_eigenvalues(a, np.sqrt),
    "power": lambda a, p: by_eigenvalues(a, lambda w: w**p),
    "nuclear": lambda a: np.linalg.norm(a, "nuc"),
    "kron": lambda *a: functools.reduce(np.kron, a),
    "khatri_rao": sla.khatri_rao,
    "fulldiag": np.diag,
    "both": both,
}
OURS = {
    **DENSE,
    **{k: getattr(pl, k) for k in "inv logdet eigh expm sqrtm trace diagonal".split()},
    "eye": pl.Identity,
    "diag": pl.Diag,
    "block": pl.Block,
    "kron": pl.Kron,
    "outer": lambda u, v: pl.LowRank(u[:, None], v[:, None]),
    "power": pl.fractional_matrix_power,
    "khatri_rao": pl.KhatriRao,
    "both": lambda *results: both(*pl.evaluate(*results)),
}
HAND = {
    "h": Hand(),
    "np": np,
    "sp": sp,
    "toeplitz": sla.toeplitz,
    "splu": spla.splu,
    "expm_multiply": spla.expm_multiply,
    "both": both,
}


def selection(index, n):
    return np.eye(n)[index]


def dense_operand(a, how, n):
    """What an operand is among dense matrices."""
    made = {"diag": np.diag, "toeplitz": sla.toeplitz, "sparse": lambda a: a.toarray()}
    made["select"] = lambda a: selection(a, n)
    return made[how](a) if how in made else a


def our_operand(a, how, n):
    """What an operand is to somebody who has read the tutorial; also of a LazyArray."""
    made = {"diag": pl.Diag, "toeplitz": pl.Toeplitz, "sparse": pl.Sparse}
    made["select"] = lambda a: pl.Selection(a, n)
    if how in made:
        return made[how](a)
    return a if np.ndim(a) == 0 else pl.lazy(a, how)


class Formula:
    """A row with its operands at a size."""

    def __init__(self, row, small=False):
        self.title, n, make, self.known, text, hand = row
        self.n = SMALL if small else n
        self.operands = make(np.random.default_rng(7), self.n)
        self.text, self.hand = (
            compile(t if "_ = " in t else f"_ = {t}", self.title, "exec") for t in (text, hand)
        )

    def scope(self, kinds, operand):
        """The names of the formula over its operands."""
        made = {k: operand(a, self.known.get(k), self.n) for k, a in self.operands.items()}
        return {"n": self.n, "len": len, **kinds, **made}

    def run(self, text, scope):
        exec(text, scope)
        return scope["_"]

    def dense(self):
        return np.asarray(self.run(self.text, self.scope(DENSE, dense_operand)))

    def ours(self):
        scope = self.scope(OURS, our_operand)
        return lambda: np.asarray(self.run(self.text, scope))

    def by_hand(self):
        scope = {"n": self.n, **HAND, **self.operands}
        return lambda: self.run(self.hand, scope)

    def turn(self):
        """Changes each operand by a last bit."""
        for a in self.operands.values():
            if sp.issparse(a):
                a.data *= 1 + 2.0**-52
            elif a.dtype.kind in "fc":
                a.reshape(-1)[:1].view(np.int64)[:1] += 1

    # -- derivatives ----------------------------------------------------------------------------

    def loss(self):
        """A function of the arrays that the loss is derived by."""
        fixed, by = self.scope(OURS, our_operand), BY[self.title]

        def f(*arrays):
            for k, a in zip(by, arrays, strict=True):
                fixed[k] = our_operand(a, self.known.get(k), self.n)
            return self.run(self.text, fixed)

        return f

    def torch_loss(self, torch):
        tensors = torch_names(torch)

        def tensor(a, how, n):
            return torch.from_numpy(np.array(dense_operand(a, how, n)))

        fixed, by = self.scope(tensors, tensor), BY[self.title]

        def f(*arrays):
            for k, a in zip(by, arrays, strict=True):
                fixed[k] = torch.diag(a) if self.known.get(k) == "diag" else a
            return self.run(self.text, fixed)

        return f

    def points(self):
        return [np.array(self.operands[k]) for k in BY[self.title]]

    def projected(self, grads):
        """The gradient by what is known to be symmetric is."""
        known = (self.known.get(k) for k in BY[self.title])
        return [(g + g.T) / 2 if how in ("pos", "sym") else g for g, how in zip(grads, known)]


def torch_names(torch):
    """The names of formulas over tensors."""

    def eigen(a, f):
        w, v = torch.linalg.eigh(a)
        return (v * f(w)) @ v.mH

    return {
        **{k: getattr(torch, k) for k in "exp log cos tanh abs trace diagonal diag".split()},
        "eye": lambda n: torch.eye(n, dtype=torch.float64),
        "inv": torch.linalg.inv,
        "logdet": lambda a: torch.linalg.slogdet(a)[1],
        "expm": torch.linalg.matrix_exp,
        "sqrtm": lambda a: eigen(a, torch.sqrt),
        "nuclear": lambda a: torch.linalg.svdvals(a).sum(),
        "real": lambda a: a.real,
        "kron": lambda *a: functools.reduce(torch.kron, a),
    }


# -- values and times ---------------------------------------------------------------------------


def apart(got, want):
    """The largest difference beside the largest number."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return np.inf
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def times(formula, calls, seconds, clock, before=lambda: None):
    """Minimum and median of interleaved calls of each."""
    spent, rounds = {k: [] for k in calls}, 0
    end = time.perf_counter() + seconds
    while rounds < 5 or (time.perf_counter() < end and rounds < 300):
        for k in list(calls) if rounds % 2 else list(calls)[::-1]:
            formula.turn()
            before()
            start = clock()
            calls[k]()
            spent[k].append(clock() - start)
        rounds += 1
    return {k: (min(t), statistics.median(t)) for k, t in spent.items()}


def value_row(row, options):
    """Values apart from dense NumPy's, times, ratios; or what was raised."""
    formula = Formula(row, options.small)
    said = {"title": formula.title, "n": formula.n}
    want, hand = formula.dense(), formula.by_hand()
    said["hand apart"] = apart(hand(), want)
    try:
        ours = formula.ours()
        said["apart"] = apart(ours(), want)
    except Exception as e:
        return {**said, "raised": f"{type(e).__name__}: {e}"}
    g = np.random.default_rng(0).standard_normal((300, 300))
    before = (lambda: g @ g) if options.mixed else (lambda: None)
    clock = time.perf_counter if options.mixed else time.process_time
    took = times(formula, {"ours": ours, "hand": hand}, options.seconds, clock, before)
    (a, b), (c, d) = took["ours"], took["hand"]
    return {**said, "ms": 1e3 * a, "hand ms": 1e3 * c, "ratio": a / c, "of medians": b / d}


def as_tensors(torch, arrays, **more):
    return [torch.from_numpy(np.array(a)).requires_grad_() for a in arrays]


def gradient_calls(formula, torch):
    """Of pylinop and torch: value and gradients in one call, the Hessian times v in another."""
    points, which = formula.points(), tuple(range(len(BY[formula.title])))
    ways = [np.ones_like(p) + 0.5 * np.cos(np.arange(p.size)).reshape(p.shape) for p in points]
    ways = formula.projected(ways)
    f, ft = formula.loss(), torch and formula.torch_loss(torch)
    both_of, second = pl.value_and_grad(f, which), pl.hvp(f, which)

    def theirs():
        x = as_tensors(torch, points)
        value = ft(*x)
        return value.detach().numpy(), [g.numpy() for g in torch.autograd.grad(value, x)]

    def theirs_second():
        x = as_tensors(torch, points)
        grads = torch.autograd.grad(ft(*x), x, create_graph=True)
        return [g.numpy() for g in torch.autograd.grad(grads, x, as_tensors(torch, ways))]

    ours = {
        "ours": lambda: both_of(*points),
        "ours hvp": lambda: second(*points, tuple(ways)),
    }
    return ours | ({"torch": theirs, "torch hvp": theirs_second} if torch else {})


def gradient_row(row, options, torch):
    formula = Formula(row, options.small)
    said = {"title": formula.title, "n": formula.n}
    calls = gradient_calls(formula, torch)
    calls["value"] = formula.ours()
    for what in ("ours", "ours hvp"):
        try:
            got = calls[what]()
        except Exception as e:
            said["raised"] = f"{what}: {type(e).__name__}: {e}"
            calls.pop(what)
            continue
        if torch:
            want = calls[what.replace("ours", "torch")]()
            got, want = (x if "hvp" in what else x[1] for x in (got, want))
            got = got if isinstance(got, (tuple, list)) else [got]
            said[f"{what} apart"] = max(map(apart, got, formula.projected(want)))
    took = times(formula, calls, options.seconds, time.process_time)
    said |= {f"{k} ms": 1e3 * t[0] for k, t in took.items()}
    for a, b in (("ours", "torch"), ("ours hvp", "torch hvp"), ("ours", "value")):
        if a in took and b in took:
            said[f"{a} / {b}"] = took[a][0] / took[b][0]
    return said


def shown(said):
    parts = [f"{said['title']:30s} n={said['n']:5d}"]
    for k, v in said.items():
        if isinstance(v, float):
            parts.append(f"{k} {v:.1e}" if "apart" in k else f"{k} {v:.3g}")
    return "  ".join([*parts, said.get("raised", "")])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--gradients", action="store_true")
    p.add_argument("--mixed", action="store_true", help="wall time, NumPy's products between")
    p.add_argument("--small", action="store_true", help=f"n = {SMALL}")
    p.add_argument("--seconds", type=float, default=1.0, help="a formula")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("names", nargs="*")
    options = p.parse_args()
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        torch = None
    warnings.simplefilter("ignore")
    print(cpu_name())
    rows = [r for r in ROWS if not options.names or any(n in r[0] for n in options.names)]
    found = []
    for row in rows:
        if options.gradients and row[0] not in BY:
            continue
        found.append(
            gradient_row(row, options, torch) if options.gradients else value_row(row, options)
        )
        print(shown(found[-1]), flush=True)
    ratios = [r["ratio"] for r in found if "ratio" in r]
    if ratios:
        worse = [sum(r > bar for r in ratios) for bar in (1.3, 2.0)]
        mean = np.exp(np.mean(np.log(ratios)))
        middle = statistics.median(ratios)
        print(f"{len(ratios)}: mean {mean:.3f}, median {middle:.3f}, above 1.3 and 2: {worse}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump(found, f, indent=1)


# -- for run.py -----------------------------------------------------------------------------------


def case_of(row):
    formula = Formula(row)
    case = Case("", "", formula.dense(), 1e-6)
    turn = formula.turn
    case.add("pylinop", "pylinop, as written", "turn(); _ = f()", f=formula.ours(), turn=turn)
    case.add("floor", "by hand", "turn(); _ = f()", f=formula.by_hand(), turn=turn)
    return case.goal("pylinop, as written", "by hand", 1.3, f"formula: {row[0]}", "1.3 x by hand")


def strangers():
    for row in ROWS:
        yield f"strangers/{row[0]}", functools.partial(case_of, row)


MAKERS = [strangers]

if __name__ == "__main__":
    sys.exit(main())
