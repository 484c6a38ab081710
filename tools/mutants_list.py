"""Print small faults of the planner's sources, for tests/mutants/engine.txt.

    python tools/mutants_list.py [--seed N] > candidates.txt

Each is one line of a file of src/c that occurs there once, and what it becomes: a condition
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

CORE = Path(__file__).resolve().parent.parent / "src" / "c"
QUOTAS = {
    "plan/fuse_sums": 10,
    "plan/emit": 10,
    "plan/derived_keys": 8,
    "exec/exec": 12,
    "expr/properties": 7,
    "expr/unitary": 5,
    "expr/coefficients": 3,
    "plan/user_rule_search": 6,
    "exec/derived_cache": 4,
    "plan/compile": 3,
    "plan/lower": 4,
    "plan/place": 3,
    "plan/price": 8,
    "plan/plan_check": 6,
    "plan/plan_check_flow": 8,
    "plan/plan_check_memory": 8,
    "rewrite/rewrite": 10,
    "plan/plan_cache": 2,
    "plan/signature": 2,
    "rewrite/guards": 6,
    "planner/chain_cost": 5,
    "planner/chain_build": 4,
    "planner/chain_read": 4,
    "planner/chain_rules": 4,
    "planner/chain_search": 6,
    "rules/views_scalars_elements": 4,
    "rules/bands_permutations_triangles": 3,
    "rules/blocks": 3,
    "rules/kron": 3,
    "rules/low_rank": 1,
    "rules/low_rank_inverse": 2,
    "rules/slices": 3,
    "rules/solve_eigenbasis": 2,
    "rules/sum_of_krons": 1,
    "rules/solve_woodbury": 3,
    "rules/determinants": 3,
    "rules/quasiseparable": 2,
    "rules/toeplitz_hankel": 2,
    "rules/circulant_transforms": 2,
    "rules/khatri_rao": 2,
    "rules/solve_normal_equations": 2,
    "rules/results": 3,
    "ops/actions/op_results": 12,
}
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
