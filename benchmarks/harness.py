"""Timing of contenders side by side: the same work by several libraries, interleaved in a process.

A *case* is one piece of work; its *contenders* are statements that do it. Each answer is checked
before anything is timed; a contender that fails, or answers wrongly, is reported and not timed.
Then rounds: in each, every contender runs one batch (the order turns from round to round), so that
a slow second of a shared machine hits all alike. Reported: minimum and median over the rounds.

Statements are timed by timeit: no call of a Python function lies between two of them, and the
garbage collector rests. With one thread the clock is the process's CPU time, so that what other
processes of a shared machine take away does not count, and a peer that starts threads unasked pays
for them; with more it is wall time. Ratios are of minima unless said.
"""

import fnmatch
import importlib
import json
import platform
import statistics
import time
import timeit
import warnings
from dataclasses import dataclass, field

import numpy as np

# -- what is there ---------------------------------------------------------------------------------

PEERS = (
    "scipy",
    "linear_operator",
    "cola",
    "pylops",
    "pykronecker",
    "pyfastkron",
    "lazylinop",
    "torch",
    "celerite2",
    "pykeops.numpy",
)
_modules: dict = {}
use_peers = True
threads = 1


def peer(name):
    """The module if it is installed and imports, else None."""
    if name.partition(".")[0] != "scipy" and not use_peers:
        return None
    if name not in _modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _modules[name] = importlib.import_module(name)
            except Exception:
                _modules[name] = None
            if name == "torch" and _modules[name]:
                _modules[name].set_num_threads(threads)
                _modules[name].set_grad_enabled(False)
    return _modules[name]


def tensor(a):
    """The array as a torch tensor that shares its memory."""
    return peer("torch").from_numpy(a)


def cpu_name():
    """The processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cpu_features():
    """The widest vectors the processor has."""
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line.split() for line in f if line.startswith("flags")), [])
    except OSError:
        return ""
    return next((name for name in ("avx512f", "avx2", "sse2") if name in flags), "")


def machine():
    """The machine and the versions, without the machine's name."""
    import os
    from importlib.metadata import PackageNotFoundError, version

    import pylinop

    names = {"cola": "cola-ml"}
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    versions["pylinop"] = getattr(pylinop, "__version__", "?")
    for name in PEERS:
        if peer(name) is None:
            continue
        try:
            versions[name] = version(names.get(name, name))
        except PackageNotFoundError:
            versions[name] = "?"
    return {
        "machine": {
            "cpu": cpu_name(),
            "vectors": cpu_features(),
            "cpus": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "threads": threads,
        "date": time.strftime("%Y-%m-%d"),
        "versions": versions,
        "missing": [name for name in PEERS if use_peers and peer(name) is None],
    }


# -- cases -----------------------------------------------------------------------------------------


@dataclass
class Contender:
    """One way to do the work: `code` is a statement over the names in `names`.

    role: "pylinop", "hand" (NumPy or scipy.fft by hand), "peer", "floor" (what cannot be beaten:
    the arithmetic alone) or "unit" (a yardstick that does other work). check: an expression over
    the result `_` that gives an array. flops: where they differ from the case's.
    """

    name: str
    role: str
    code: str
    names: dict
    check: str = "_"
    flops: float = 0
    setup: str = "pass"


@dataclass
class Goal:
    """`contender`'s time over `against`'s is to be at most `ratio` (rates, where flops differ)."""

    contender: str
    against: str
    ratio: float
    line: str  # the work, as in the table of goals
    said: str  # the goal in words


@dataclass
class Case:
    group: str
    name: str
    expected: object = None  # array, or None: nothing to compare
    rtol: float = 1e-10
    flops: float = 0
    goals: list = field(default_factory=list)
    contenders: list = field(default_factory=list)

    def add(self, role, name, code, check="_", flops=0, setup="pass", **names):
        """Add a contender; a missing module among the names (None) leaves it out."""
        if not any(v is None for v in names.values()):
            self.contenders.append(Contender(name, role, code, names, check, flops, setup))
        return self

    def goal(self, contender, against, ratio, line, said):
        self.goals.append(Goal(contender, against, ratio, line, said))
        return self

    @property
    def title(self):
        return f"{self.group}/{self.name}"


def as_array(value):
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return np.asarray(value)


def problem(case, c):
    """None if the contender's answer is right, else what is wrong with it."""
    scope = {**c.names, "np": np}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(c.setup, scope)
            try:
                scope["_"] = eval(c.code, scope)
            except SyntaxError:
                exec(c.code, scope)
            if case.expected is None:
                return None
            got = as_array(eval(c.check, scope))
    except Exception as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0][:120] if str(e) else ''}"
    want = np.asarray(case.expected)
    if got.shape != want.shape:
        return f"wrong shape {got.shape}, not {want.shape}"
    scale = float(np.max(np.abs(want))) if want.size else 0.0
    error = float(np.max(np.abs(got - want))) if want.size else 0.0
    return (
        None if error <= case.rtol * scale else f"wrong: off by {error / scale:.1e} of the largest"
    )


# -- timing ----------------------------------------------------------------------------------------


@dataclass
class Budget:
    batch: float = 4e-3  # seconds a batch lasts at least
    seconds: float = 6.0  # what a case may take, contenders that are far behind apart
    least: int = 9  # rounds, whatever they take
    most: int = 80
    behind: int = 3  # rounds of a contender that is far behind: over FAR x the fastest of its case


QUICK = Budget(batch=5e-4, seconds=0.5, least=3, most=25, behind=1)
FAR = 8


def clock():
    return time.process_time if threads == 1 else time.perf_counter


def batches(timer, batch):
    """Calls a batch needs to last as long as asked, and the seconds it took; warms up as well."""
    number = 1
    while True:
        took = timer.timeit(number)
        if took >= batch:
            return number, took
        number = max(number + 1, int(number * min(10, 1.2 * batch / max(took, 1e-9))))


@dataclass
class Timed:
    contender: Contender
    row: dict
    timer: timeit.Timer
    number: int
    took: float  # seconds of one batch
    times: list = field(default_factory=list)

    @property
    def first(self):
        return self.took / self.number


def measure(case, budget):
    """One dict a contender, timed ones with their figures."""
    rows, timed = [], []
    for c in case.contenders:
        row = {"contender": c.name, "role": c.role, "problem": problem(case, c)}
        rows.append(row)
        if row["problem"] is None:
            timer = timeit.Timer(c.code, c.setup, clock(), globals={**c.names, "np": np})
            timed.append(Timed(c, row, timer, *batches(timer, budget.batch)))
    works = [t for t in timed if t.contender.role not in ("unit", "floor")]
    best = min((t.first for t in works), default=0)
    near = [t for t in timed if t not in works or t.first <= FAR * best]
    once = sum(t.took for t in near)
    rounds = int(min(budget.most, max(budget.least, budget.seconds / max(once, 1e-9))))
    for r in range(rounds):
        for i in range(len(timed)):
            t = timed[(i + r) % len(timed)]
            if t in near or r < (budget.behind if t.took < budget.seconds / 4 else 1):
                t.times.append(t.timer.timeit(t.number) / t.number)
    for t in timed:
        t.row["number"], t.row["repeats"] = t.number, len(t.times)
        t.row["min"], t.row["median"] = min(t.times), statistics.median(t.times)
        twice = t.times * 2 if len(t.times) == 1 else t.times
        low, _, high = statistics.quantiles(twice, n=4, method="inclusive")
        t.row["quartiles"] = [low, high]
        flops = t.contender.flops or case.flops
        if flops:
            t.row["gflops"] = flops / t.row["min"] / 1e9
    return rows


def judge(case, rows):
    """The goals of a case with the ratios measured."""
    by_name = {row["contender"]: row for row in rows}
    flops = {c.name: c.flops or case.flops or 1.0 for c in case.contenders}
    out = []
    for g in case.goals:
        a, b = by_name.get(g.contender), by_name.get(g.against)
        if not a or not b or a["problem"] or b["problem"]:
            out.append({"line": g.line, "said": g.said, "ratio": None})
            continue
        per = flops[g.against] / flops[g.contender]  # to the time for the same number of flops
        out.append(
            {
                "line": g.line,
                "said": g.said,
                "contender": g.contender,
                "against": g.against,
                "to_reach": g.ratio,
                "ratio": a["min"] / b["min"] * per,
                "ratio_median": a["median"] / b["median"] * per,
                "seconds": a["min"],
                "seconds_against": b["min"] / per,
            }
        )
    return out


def human(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def show(case, rows, goals):
    print(f"\n{case.title}", flush=True)
    ours = next((r for r in rows if r["role"] == "pylinop" and not r["problem"]), None)
    for row in rows:
        if row["problem"]:
            print(f"  {row['contender']:<34} {row['problem']}")
            continue
        ratio = f"{row['min'] / ours['min']:8.2f} x" if ours else ""
        rate = f"{row['gflops']:7.1f} GF/s" if "gflops" in row else ""
        times = f"{human(row['min']):>10}  median {human(row['median']):>10}"
        print(f"  {row['contender']:<34} {times} {ratio} {rate}")
    for g in goals:
        if g["ratio"] is not None:
            word = "reached" if g["ratio"] <= g["to_reach"] else "NOT reached"
            ratio = f"{g['ratio']:.3f}, to reach {g['to_reach']:.3g}"
            print(f"  -> {g['contender']} / {g['against']} = {ratio}: {word}")


def run(makers, pattern="*", budget=None, sink=None):
    """Make, check, time, print the cases whose title fits; one JSON line a result into `sink`."""
    budget = budget or Budget()
    for make in makers:
        # a maker yields (title, function that makes the case): inputs are made only when wanted
        for title, build in make():
            if not (fnmatch.fnmatch(title, f"*{pattern}*")):
                continue
            case = build()
            case.group, case.name = title.split("/", 1)
            rows = measure(case, budget)
            goals = judge(case, rows)
            show(case, rows, goals)
            if sink:
                for row in rows:
                    line = {"group": case.group, "case": case.name, "threads": threads, **row}
                    print(json.dumps(line), file=sink)
                for g in goals:
                    print(json.dumps({"goal": case.title, **g}), file=sink)
                sink.flush()
