"""Print small faults of the planner's sources, for tests/mutants/engine.txt.

    python tools/mutants_list.py [--seed N] > candidates.txt

Each is one line of a file of src/c/core that occurs there once, and what it becomes: a condition
negated, a comparison or a number off by one, a flag flipped, two arguments swapped, a line dropped.
The same sources give the same list; of each file it takes a share (QUOTAS), spread over the file.
What is kept in engine.txt stays there by its text, wherever the line moves.
"""

import argparse
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).resolve().parent.parent / "src" / "c" / "core"
QUOTAS = {
    "fuse": 10, "emit": 10, "keep": 8, "exec": 12, "infer": 8, "explore": 6, "store": 4, "plan": 12,
    "plan_check": 6, "plan_check_flow": 8, "plan_check_memory": 8,
    "rewrite": 10, "plans": 4, "guards": 6, "chain": 5, "chain_build": 4, "chain_read": 4,
    "chain_rows": 4, "chain_search": 6, "builds": 4, "builds_band": 3, "builds_blocks": 3,
    "builds_kron": 3, "builds_lowrank": 3, "builds_slice": 3, "builds_spectral": 3,
    "builds_update": 3, "builds_det": 3, "builds_quasi": 2, "builds_toep": 2, "builds_conv": 2,
    "builds_mix": 2, "builds_normal": 2,
}  # fmt: skip
TURNS = [
    ("a comparison off by one", r" < ", " <= "),
    ("a comparison off by one", r" <= ", " < "),
    ("a comparison off by one", r" > ", " >= "),
    ("a comparison off by one", r" >= ", " > "),
    ("an equality turned round", r" == ", " != "),
    ("an equality turned round", r" != ", " == "),
    ("and for or", r" && ", " || "),
    ("or for and", r" \|\| ", " && "),
    ("a flag flipped", r"\btrue\b", "false"),
    ("a flag flipped", r"\bfalse\b", "true"),
    ("one less", r" \+ 1\b", ""),
    ("one more", r" - 1\b", ""),
    ("a flag lost", r" \| LOP_[A-Z_]+", ""),
    ("two arguments swapped", r"\((\w+), (\w+)\)", r"(\2, \1)"),
]
STATEMENT = re.compile(
    r"^(?!return|break|continue|free|for|else|\w+ [\w*]+ =|\w+ = \{)"
    r"[\w>.\[\]*-]+( [|&+-]?= |\().*;$"
)
LEFT_OUT = re.compile(
    r"^(#|\*|/\*|static|const|LOP_ASSERT|typedef|enum)|\bfree\(|_free\(|lop_fail|\""
)


def faults(line: str) -> Iterator[tuple[str, str]]:
    """What may go wrong in a line, stripped: what it is, the line that it becomes."""
    if LEFT_OUT.search(line):
        return
    for what, pattern, to in TURNS:
        turned = re.sub(pattern, to, line, count=1)
        if turned != line:
            yield what, turned
    whole = re.match(r"^(if|while) \((.*)\)( \{| return .*;| continue;| break;|)$", line)
    if whole and whole[2].count("(") == whole[2].count(")"):
        yield "a condition negated", f"{whole[1]} (!({whole[2]})){whole[3]}"
    if STATEMENT.match(line) and line.count("(") == line.count(")"):
        yield "a line dropped", ";"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for stem, quota in QUOTAS.items():
        lines = [s.strip() for s in (CORE / f"{stem}.c").read_text().splitlines()]
        once = [i for i, s in enumerate(lines) if lines.count(s) == 1]
        found = [(i, *fault) for i in once for fault in faults(lines[i])]
        drawn = {f: zlib.crc32(f"{args.seed} {lines[f[0]]} {f[2]}".encode()) for f in found}
        size = max(len(lines) / quota, 1)  # one of each stretch of the file
        for k in range(quota):
            here = [f for f in found if k * size <= f[0] < (k + 1) * size]
            if here:
                i, what, turned = min(here, key=drawn.__getitem__)
                print(f"[{stem} {k + 1}] {what}\n- {lines[i]}\n+ {turned}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
