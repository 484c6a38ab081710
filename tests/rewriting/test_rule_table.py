"""The rule table as a rewriting system: its texts make every expression smaller.

The measure: every head is a function of its operands' measures, strictly increasing in each but
the sizes of circulants; a rule written as text makes it smaller whatever its letters stand for. So
no chain of such rules is endless. Rows whose right side is computed are watched by the batteries,
which drive the whole table to an end and to a form that no row changes."""

import itertools
import re
from pathlib import Path

import pytest
from formulas.patterns import read

import pylinop as pl

VIEW = {1: lambda a: 2 * a + 1, 2: lambda a: 2 * a, 3: lambda a: 2 * a + 1}
MEASURE = {
    # operators: what a rule leaves out of a composite weighs more than what it puts in
    "prod": lambda a, b: a + b + 3,
    "sum": lambda a, b: a + b + 3,
    "elementwise": lambda a, b: a + b + 12,
    "power": lambda a: a + 3,
    "part": lambda a: a + 3,
    "scaled": lambda a: a + 3,
    "inverse": lambda a: 2 * a + 5,
    "congruence": lambda a, b: 3 * a + b + 8,
    "root": lambda a: 3 * a + 5,
    "eigen": lambda a, d: 3 * a + d + 9,
    "lowrank": lambda *a: 2 * sum(a) + 8,
    "circulant": lambda c, s: 4 * c + 10,
    # arrays
    "add": lambda a, b: a + b + 1,
    "mul": lambda a, b: a + b + 3,
    "scale": lambda a: a + 5,
    "cast": lambda a: 3 * a,
    "conjugate": lambda a: 2 * a + 3,
    "diagpow": lambda d, *x: d + 1 if not x else (d + 1) * x[0],
    "inverse_permutation": lambda p: 2 * p + 5,
    "circular_convolution": lambda a, b, s: a + b + 5,
    "circulant_flip": lambda c, s: 2 * c + 5,
    # actions: a product of operators becomes a chain of applications, so exponents
    "apply": lambda a, x: 2**a * x,
    "solve": lambda a, x: 2 ** (2 * a + 2) * x,
    "todense": lambda a: 2 ** (3 * a),
    "diagonal": lambda a: 2 ** (3 * a),
    "element": lambda a: 2 ** (3 * a),
    "diagonal_sums": lambda a: 2 ** (3 * a),
    "entry_sums": lambda a, p, q: 2 ** (3 * a) * (p + q),
    "kron_partial": lambda a, x: 2 ** (3 * a) * x,
    "generator_sums": lambda a, p, q, r: 2 ** (3 * a) * (p + q + r),
    "trace": lambda a: 2 ** (4 * a),
    "scaledet": lambda a: 2 ** (4 * a),
}
SIZES = {
    "circulant": 1,
    "circular_convolution": 2,
    "circulant_flip": 1,
}  # operands that no rule touches
# What goes to each operand, as (kron (view@m ?*)), is watched as what is computed.
ROWS = [row for row in pl.rules() if row["right"] and "?*" not in row["right"]]


def letters(tree):
    if isinstance(tree, str):
        return {tree}
    return set().union(*map(letters, tree[2:]))


def measure(tree, values, mode):
    """Of a tree, its letters and the mode of its views being given."""
    if isinstance(tree, str):
        return values[tree]
    head, attr, *below = tree
    below = [measure(b, values, mode) for b in below]
    if head == "view":
        return VIEW[mode if attr.startswith("@") else int(attr[1:])](*below)
    if not below:
        return 2
    return MEASURE.get(head, lambda *a: 1 + sum(a))(*below)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_texts_make_expressions_smaller(row):
    left, right = read(row["left"]), read(row["right"])
    names = sorted(letters(left))
    assert letters(right) <= set(names)
    for mode in (1, 2, 3):
        for given in itertools.product((2, 3, 6, 11), repeat=len(names)):
            values = dict(zip(names, given, strict=True))
            assert measure(left, values, mode) > measure(right, values, mode) >= 2, values


def test_the_measure_grows_with_every_operand():
    for head, f in [*MEASURE.items(), *((f"view:{m}", f) for m, f in VIEW.items())]:
        n = {"lowrank": 3}.get(head) or f.__code__.co_argcount
        for given in itertools.product((2, 3, 7), repeat=n):
            assert f(*given) >= 2
            for i in range(n):
                more = [v + (j == i) for j, v in enumerate(given)]
                assert f(*more) > f(*given) or SIZES.get(head) == i, (head, i)


def test_a_rule_turned_round_is_noticed():
    """The test above can fail: each row the other way round is refused by it."""
    for row in ROWS:
        left, right = read(row["left"]), read(row["right"])
        if letters(left) == letters(right):
            values = dict.fromkeys(letters(left), 4)
            assert not measure(right, values, 1) > measure(left, values, 1), row["name"]


def test_every_guard_has_a_name():
    """The guards in the source are those that pl.rules() and explanations name."""
    core = Path(__file__).resolve().parents[2] / "src" / "c" / "rules"
    text = "".join(
        (core / name).read_text("utf-8")
        for name in (
            "rules.c first.def close.def solve.def dense.def inverse.def traces.def "
            "determinants.def cast.def projections.def".split()
        )
    )
    rows = re.findall(r'\{"([\w-]+)",\s*LOP_(?:CLOSE|FIRST|PUSH|BOTH),(.*?)\},\n', text, re.DOTALL)
    table = [r for r in pl.rules() if r["origin"] == "table" and r["phase"] != "structure"]
    assert len(rows) == len(table)
    guards = {row["name"]: row["guard"] for row in table}
    for name, rest in rows:
        used = re.findall(r"lop_when_(\w+)", rest)
        assert guards[name] == (used[0] if used else None), f"{name}: add it to guards.def"


def test_computed_right_sides_are_counted_and_have_a_reason():
    """docs/add-rule.md says of which roots there are how many, and why."""
    text = (Path(__file__).parents[2] / "docs" / "add-rule.md").read_text()
    listed, all_ = re.search(r"\((\d+) of (\d+) rows\)", text).groups()
    engine = [r for r in pl.rules() if r["phase"] != "structure" and r["origin"] == "table"]
    roots = [re.match(r"\((\w+)", r["left"])[1] for r in engine if r["right"] is None]
    assert (int(listed), int(all_)) == (len(roots), len(engine))
    found = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (\d+) \|", text, re.M)
    assert len(found) > 4
    for names, count in found:
        mine = re.findall(r"\w+", names)
        assert sum(root in mine for root in roots) == int(count), mine
        roots = [root for root in roots if root not in mine]
    assert not roots


def test_nothing_stands_twice():
    """What a view does when it is written and again within a plan is one row, of both phases."""
    by = {}
    for row in pl.rules():
        if row["origin"] == "table":
            by.setdefault((row["left"], row["guard"]), []).append(row)
    for rows in by.values():
        phases = {row["phase"] for row in rows}
        assert phases != {"close", "push"} and ("both" not in phases or len(rows) == 1)
    assert sum(row["phase"] == "both" for row in pl.rules()) == 18
