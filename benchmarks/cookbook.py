"""The recipes of docs/cookbook beside what one writes by hand: the figures of its pages.

    python benchmarks/cookbook.py [--write] [NAME ...]

Each round runs a recipe's data anew (what is drawn is drawn afresh, and what was derived before is
dropped, so that no run finds its answer ready; within one run the calls share what they keep, as
they do for a user), then both ways in turn, each timed alone: on one thread, in CPU time, which
leaves out what other processes of a shared machine take. The ratio is of the
minima over the rounds. --write puts the ratios into the pages and the table, losses first, into
RESULTS_cookbook.md.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import gc  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import cookbook  # noqa: E402
import harness  # noqa: E402

import pylinop as pl  # noqa: E402

BUDGET = 4.0  # seconds a recipe, and
ROUNDS = 5, 60  # at least and at most


def seconds(recipe, part, names):
    """CPU seconds of one run; the code is compiled before the clock starts."""
    code = compile(getattr(recipe, part), recipe.title, "exec")
    gc.collect()
    start = time.process_time()
    exec(code, names)
    return time.process_time() - start


def forget():
    """Drops all that is kept of earlier runs."""
    limit = pl._base.config.get("cache_limit")
    pl.config(cache_limit=0)
    pl.config(cache_limit=limit)


def measure(recipe, names):
    """The least time of both ways; a way that is quick is repeated until the clock sees it."""
    best, began, rounds = {"ours": 1e9, "hand": 1e9}, time.perf_counter(), 0
    while rounds < ROUNDS[0] or (rounds < ROUNDS[1] and time.perf_counter() - began < BUDGET):
        recipe.run("data", names)
        forget()
        for part in ("ours", "hand") if rounds % 2 else ("hand", "ours"):
            best[part] = min(best[part], seconds(recipe, part, names))
        rounds += 1
    return best["ours"], best["hand"]


def phrase(ratio):
    """What the page says over the way by hand."""
    said = f"By hand: pylinop takes {ratio:.2g} of its time"
    return said if ratio <= 1.1 else f"By hand, and faster: pylinop takes {ratio:.2g} times as long"


def write_pages(rows):
    for recipe, ours, hand in rows:
        text = recipe.page.read_text(encoding="utf-8")
        head, mark, tail = text.partition(f"## {recipe.title}\n")
        summary = f"<details><summary>{phrase(ours / hand)}</summary>\n"
        tail = cookbook.SUMMARY.sub(summary, tail, count=1)
        recipe.page.write_text(head + mark + tail, encoding="utf-8")


def table(rows):
    facts = harness.machine()
    shown = ("python", "numpy", "scipy", "pylinop")
    versions = ", ".join(f"{k} {v}" for k, v in facts["versions"].items() if k in shown)
    slower = sum(ours > 1.1 * hand for _, ours, hand in rows)
    cpu = facts["machine"]
    lines = f"""\
# The cookbook's recipes beside what one writes by hand

{cpu["cpu"]} ({cpu["vectors"]}, {cpu["cpus"]} CPUs, shared with other work that loaded it),
{facts["date"]}. One thread, CPU time. {versions}.
Made by `python benchmarks/cookbook.py --write`, which says how. Fresh data each time, nothing
kept from one run to the next; ratios are of minima, and move by 10 to 20 % on such a machine, more
where a recipe takes less than 0.5 ms.

{len(rows) - slower} of {len(rows)} recipes take at most 1.1 of the time by hand; the other
{slower} come first.

| I have, I want | pylinop, ms | by hand, ms | ratio |
|---|---|---|---|
""".splitlines()
    for recipe, ours, hand in sorted(rows, key=lambda row: -row[1] / row[2]):
        lines.append(
            f"| {recipe.title} | {1e3 * ours:.3g} | {1e3 * hand:.3g} | {ours / hand:.2g} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="the pages and RESULTS_cookbook.md")
    parser.add_argument("names", nargs="*", help="recipes whose id has one of these in it")
    options = parser.parse_args()
    harness.use_peers = False
    pages, rows = {}, []
    for recipe in cookbook.recipes():
        names = pages.setdefault(recipe.page, {})
        if not names:
            recipe.run("opening", names)
        if not recipe.hand or (options.names and not any(n in recipe.id for n in options.names)):
            recipe.run("data", names)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, hand = measure(recipe, names)
        rows.append((recipe, ours, hand))
        print(
            f"{ours / hand:6.2f}  {1e3 * ours:9.3f} ms {1e3 * hand:9.3f} ms  {recipe.title}",
            flush=True,
        )
    if options.write:
        write_pages(rows)
        (ROOT / "benchmarks/RESULTS_cookbook.md").write_text(table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
