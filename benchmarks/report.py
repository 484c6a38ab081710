"""RESULTS.md and its plot from the lines of run.py: ``python benchmarks/report.py LINES``.

Of several files of lines each contender has its least time of all runs."""

import argparse
import json
import os
import statistics
import textwrap

from harness import human

HERE = os.path.dirname(os.path.abspath(__file__))
BEST = "best form by hand"
LOSS = 1.03  # a contender must be this much ahead to count as ahead
ORDER = {"pylinop": 0, "hand": 1, "peer": 2, "floor": 3, "unit": 4}


def read(paths):
    about, cases, goals = {}, {}, {}
    for path in paths:
        with open(path) as f:
            for line in f:
                row = json.loads(line)
                if "about" in row:
                    about = about or row["about"]
                elif "goal" in row:
                    goals.setdefault((row["goal"], row["line"], row["said"]), []).append(row)
                else:
                    keep(cases.setdefault((row["group"], row["case"]), []), row)
    return about, cases, [of_runs(runs) for runs in goals.values()]


def keep(rows, row):
    """The quicker of two runs of one contender, in the place of the first."""
    for i, other in enumerate(rows):
        if other["contender"] == row["contender"]:
            if not row["problem"] and (other["problem"] or row["min"] < other["min"]):
                rows[i] = row
            return
    rows.append(row)


def of_runs(runs):
    """A goal's line from those of several runs."""
    if len(runs) == 1 or any(row["ratio"] is None for row in runs):
        return runs[0]
    us, them = (min(row[name] for row in runs) for name in ("seconds", "seconds_against"))
    return runs[0] | {
        "ratio": us / them,
        "ratio_median": statistics.median(row["ratio_median"] for row in runs),
        "seconds": us,
        "seconds_against": them,
    }


def ours(rows):
    """pylinop's row that stands for a case: the first that was timed."""
    return next((r for r in rows if r["role"] == "pylinop" and not r["problem"]), None)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def paragraph(text):
    return textwrap.fill(" ".join(text.split()), 100, break_long_words=False) + "\n"


# -- the parts -------------------------------------------------------------------------------------


def part_head(about, runs):
    m, v = about["machine"], about["versions"]
    text = paragraph(
        f"""{m["cpu"]} ({m["vectors"]}, {m["cpus"]} CPUs, virtual and shared with other work),
        {m["system"]}, {about["date"]}. Threads: {about["threads"]}. """
        + ", ".join(f"{name} {number}" for name, number in v.items())
        + "."
    )
    if about["missing"]:
        text += "\n" + paragraph(
            "Not installed here, so not measured: " + ", ".join(about["missing"]) + "."
        )
    text += "\n" + paragraph(
        """All contenders of a work take turns in one process, batch by batch; each answer is
        checked before it is timed. Times are minima over the rounds, for one call, float64, the
        operators built beforehand unless the row says otherwise; the ratio is to pylinop's first
        row (above 1: pylinop is faster). With one thread the clock is the process's CPU time, which
        leaves out what other processes take of a shared machine; with more it is the wall clock,
        and threads of several BLAS libraries wait for each other. Trust ratios, not times; between
        runs on such a machine ratios move by 10 to 20 %, and those of work bound by memory by
        more."""
        + (" Of several runs of a work each contender has its least time." if runs > 1 else "")
    )
    text += (
        "\nMade by `python benchmarks/run.py --json FILE` and `python benchmarks/report.py FILE`.\n"
        "\nContractions, their goals and losses: [RESULTS_einsum.md](RESULTS_einsum.md).\n"
    )
    return text


def part_goals(goals):
    rows = []
    for g in goals:
        if g["ratio"] is None:
            rows.append((g["line"], g["said"], "not measured", "", "", "", ""))
            continue
        reached = "yes" if g["ratio"] <= g["to_reach"] else "**no**"
        rows.append(
            (
                g["line"],
                g["said"],
                f"{g['ratio']:.2f} (median {g['ratio_median']:.2f})",
                f"{g['to_reach']:.2f}",
                reached,
                human(g["seconds"]),
                human(g["seconds_against"]),
            )
        )
    count = sum(1 for r in rows if r[4] == "yes")
    head = ("work", "goal", "ratio", "to reach", "reached", "pylinop", "against")
    return f"{count} of {len(rows)} reached.\n\n" + table(head, rows)


def part_losses(cases):
    """Where others who do the same work are ahead: the fastest, for each row of ours."""
    rows = []
    for (group, case), results in cases.items():
        timed = [r for r in results if not r["problem"]]
        rivals = [r for r in timed if r["role"] in ("hand", "peer")]
        for us in (r for r in timed if r["role"] == "pylinop"):
            ahead = sorted(
                (r for r in rivals if r["min"] * LOSS < us["min"]), key=lambda r: r["min"]
            )
            if ahead:
                best = ahead[0]
                ratio = us["min"] / best["min"]
                times = human(us["min"]), human(best["min"])
                title = f"{group}/{case}"
                rows.append(
                    (
                        ratio,
                        title,
                        us["contender"],
                        times[0],
                        best["contender"],
                        times[1],
                        len(ahead) - 1,
                    )
                )
    rows.sort(reverse=True)
    head = ("work", "ours", "time", "fastest rival", "time", "others ahead", "ours / theirs")
    return table(head, [(*r[1:], f"{r[0]:.2f}") for r in rows]) if rows else "None.\n"


def part_problems(cases):
    rows = [
        (f"{group}/{case}", r["contender"], r["problem"])
        for (group, case), results in cases.items()
        for r in results
        if r["problem"]
    ]
    text = paragraph(
        """linear_operator adds and transposes dense matrices at once, so it has no row for those
        nodes. jax stands beside LAAB alone; MKL is not among the contenders."""
    )
    return (
        text
        + "\n"
        + (table(("work", "contender", "what happened"), rows) if rows else "All others ran.\n")
    )


def part_kinds(cases):
    """One row a case: pylinop beside the fastest of the others."""
    rows = []
    for (_, case), results in cases.items():
        us = ours(results)
        others = [r for r in results if r["role"] in ("hand", "peer") and not r["problem"]]
        if us and others:
            best = min(others, key=lambda r: r["min"])
            ratio = us["min"] / best["min"]
            shown = f"**{ratio:.2f}**" if ratio > 1.1 else f"{ratio:.2f}"
            rows.append((case, human(us["min"]), best["contender"], human(best["min"]), shown))
    text = paragraph(
        """Each kind's product and its solve beside the fastest of: NumPy, BLAS, LAPACK or scipy.fft
        by hand, and SciPy's own function. The size stands last, then 16 where there are 16 columns.
        Solves with what was factored kept; anew: from the arrays on. Above 1.1 others are ahead."""
    )
    head = ("work", "pylinop", "fastest other", "time", "pylinop / other")
    return text + "\n" + (table(head, rows) if rows else "Not measured.\n")


def loss(rows):
    """LAAB's loss of pylinop as written, and whether that passes; None where not measured."""
    by_name = {r["contender"]: r for r in rows if not r["problem"] and "quartiles" in r}
    us, best, bad = (by_name.get(k) for k in ("pylinop, as written", BEST, "NumPy, as written"))
    if not us or not best:
        return None

    def slowdown(r):
        apart = best["quartiles"][1] <= r["quartiles"][0]
        return max(0.0, r["median"] / best["median"] - 1) if apart else 0.0

    negative = slowdown(bad) if bad else 0.0
    return slowdown(us) / negative if negative > slowdown(us) else slowdown(us)


def part_laab(cases):
    """The expressions of LAAB and LAMP, one row each."""
    rows, passed, near = [], 0, 0
    for (group, case), results in cases.items():
        by_name = {r["contender"]: r for r in results if not r["problem"]}
        us, best, bad = (by_name.get(k) for k in ("pylinop, as written", BEST, "NumPy, as written"))
        lost = loss(results)
        if lost is None:
            continue
        ratio = us["min"] / best["min"]
        passed += group == "laab" and lost <= 0.05
        near += group == "laab" and ratio <= 1.3
        shown = f"**{ratio:.2f}**" if ratio > 1.3 else f"{ratio:.2f}"
        there = f"{bad['min'] / best['min']:.2f}" if bad else ""
        said = f"{lost:.3f}" if lost <= 0.05 else f"**{lost:.3f}**"
        rows.append((f"{group}/{case}", human(us["min"]), human(best["min"]), shown, said, there))
    if not rows:
        return "Not measured.\n"
    count = sum(r[0].startswith("laab/") for r in rows)
    text = paragraph(
        f"""As written through `pl.lazy`, float32, beside the best form by hand. Passed by the
        authors' rule (loss at most 0.05): {passed} of LAAB's {count}; within 1.3 of the best form:
        {near}. `benchmarks/laab.py` has the expressions and the rule."""
    )
    head = ("expression", "pylinop", "best form", "pylinop / best", "loss", "NumPy / best")
    return text + "\n" + table(head, rows)


def part_all(cases):
    rows = []
    for (group, case), results in cases.items():
        us = ours(results)
        title = f"**{group}/{case}**"
        for r in sorted(results, key=lambda r: ORDER[r["role"]]):
            if r["problem"]:
                continue
            rows.append(
                (
                    title,
                    r["contender"],
                    r["role"],
                    human(r["min"]),
                    human(r["median"]),
                    f"{r['min'] / us['min']:.2f}" if us else "",
                    f"{r['gflops']:.1f}" if "gflops" in r else "",
                )
            )
            title = ""
    return table(("work", "contender", "role", "minimum", "median", "ratio", "Gflop/s"), rows)


def plot(cases, path):
    """One line a case: everybody's time over pylinop's, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "pylinop"
    plt.rcParams["font.size"] = 8
    shown = [(key, rows) for key, rows in cases.items() if ours(rows)][::-1]
    fig, ax = plt.subplots(figsize=(8, 0.23 * len(shown) + 1.2))
    style = {
        "peer": ("o", "#c44e52", "peers"),
        "hand": ("s", "#4c72b0", "NumPy or scipy.fft by hand"),
        "floor": ("|", "#222222", "floor: the arithmetic alone"),
    }
    for role, (marker, colour, label) in style.items():
        xs, ys = [], []
        for y, (_, rows) in enumerate(shown):
            us = ours(rows)
            flops = us.get("gflops", 0) * us["min"]
            for r in rows:
                if r["role"] != role or r["problem"]:
                    continue
                same = not flops or abs(r["gflops"] * r["min"] / flops - 1) < 1e-6
                xs.append(r["min"] / us["min"] if same else us["gflops"] / r["gflops"])
                ys.append(y)
        ax.scatter(
            xs,
            ys,
            s=60 if marker == "|" else 16,
            marker=marker,
            color=colour,
            label=label,
            zorder=3,
        )
    ax.axvline(1, color="#55a868", lw=2, label="pylinop", zorder=2)
    ax.set_xscale("log")
    ax.set_yticks(range(len(shown)), [f"{case}" for (_, case), _ in shown])
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_xlabel("time / pylinop's time: right of the line pylinop is faster")
    ax.grid(axis="both", color="#dddddd", lw=0.5)
    ax.set_axisbelow(True)
    fig.legend(loc="upper center", ncols=4, frameon=False)
    fig.tight_layout(rect=(0, 0, 1, 1 - 0.35 / fig.get_figheight()))
    fig.savefig(path, metadata={"Date": None, "Creator": None})


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("lines", nargs="+")
    p.add_argument("--out", default=os.path.join(HERE, "RESULTS.md"))
    p.add_argument("--no-plot", dest="plot", action="store_false")
    args = p.parse_args()
    about, cases, goals = read(args.lines)
    kinds = {key: rows for key, rows in cases.items() if key[0] == "kinds"}
    cases = {key: rows for key, rows in cases.items() if key[0] != "kinds"}
    picture = os.path.splitext(args.out)[0].lower() + ".svg"
    figure = ""
    try:
        if args.plot:
            plot(cases, picture)
            figure = f"![time over pylinop's time, case by case]({os.path.basename(picture)})\n"
    except ImportError:
        figure = "(no plot: matplotlib is not installed)\n"
    parts = [
        "# Results\n",
        part_head(about, len(args.lines)),
        "## Goals of this stage\n",
        part_goals(goals),
        *(("## Everything at a glance\n", figure) if figure else ()),
        "## Where pylinop loses\n",
        part_losses(cases),
        "## Kind by kind\n",
        part_kinds(kinds),
        "## LAAB and LAMP\n",
        part_laab({key: rows for key, rows in cases.items() if key[0] in ("laab", "lamp")}),
        "## Not comparable\n",
        part_problems({**cases, **kinds}),
        "## All figures\n",
        part_all(cases),
    ]
    with open(args.out, "w") as f:
        f.write("\n".join(parts))
    print(args.out)


if __name__ == "__main__":
    main()
