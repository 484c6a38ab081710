"""Where a row stands in the table decides little: rows of a root are asked by tier, and in a tier
the one that names more first. What is left are rows of one left side, alternatives that stand
together, and the pairs below, where each says why its order may be either. tests/c/test_ruleset.c
compiles the table in another order and gets the same plans."""

import fnmatch

from formulas.patterns import read

import pylinop as pl

TIERS = ["veto", "whole", "kind", "inferred", "generic", "dense"]
ROWS = [
    row
    for row in pl.rules()
    if row["origin"] == "table" and row["phase"] in ("close", "first", "push")
]
LEFT = {row["name"]: read(row["left"]) for row in ROWS}

# Neither left side is the more special one, and both may fit one expression.
MIRROR = "one identity, written from either side: both give the same"
EITHER = {
    ("first-prod-zeros", "first-zeros-prod"): MIRROR,
    (
        "first-*elementwise*",
        "first-*elementwise*",
    ): "a diagonal, a constant or zeros on one side: where both "
    "sides are, either is diagonal, or zeros, by its own row next",
    ("apply-elementwise-lowrank", "apply-lowrank-elementwise"): MIRROR,
    ("solve-sum-lowrank", "solve-lowrank-sum"): MIRROR,
    ("diagonal-diag-prod", "diagonal-prod-diag"): MIRROR,
    ("diagonal-inverse-sum-lowrank", "diagonal-inverse-lowrank-sum"): MIRROR,
    ("trace-diag-prod", "trace-prod-diag"): MIRROR,
    ("trace-inverse-*", "trace-*"): "tr(A^-1 B^-1): along either band or pattern",
    ("trace-band-inverse", "trace-inverse-sparse"): "likewise",
    ("scaledet-sum-lowrank", "scaledet-lowrank-sum"): MIRROR,
    ("add-shift", "shift-add"): MIRROR,
    ("add-eye", "eye-add"): MIRROR,
}


def hole(tree):
    return isinstance(tree, str)


def fixed(tree):
    return (tree[1] or "").startswith(":")


def meets(a, b):
    """May one expression fit both, letters and guards aside?"""
    if hole(a) or hole(b):
        return True
    if a[0] != b[0] or (fixed(a) and fixed(b) and a[1] != b[1]):
        return False
    if len(a) == 2 or len(b) == 2:
        return True
    return len(a) == len(b) and all(map(meets, a[2:], b[2:]))


def covers(a, b):
    """Does ``a`` fit wherever ``b`` does?"""
    if hole(a):
        return True
    if hole(b) or a[0] != b[0] or (fixed(a) and a[1] != b[1]):
        return False
    return len(a) == 2 or (len(a) == len(b) and all(map(covers, a[2:], b[2:])))


def named(tree):
    """How many heads it names, and then how many attributes."""
    if hole(tree):
        return 0, 0
    below = [named(t) for t in tree[2:]]
    return 1 + sum(n for n, _ in below), fixed(tree) + sum(n for _, n in below)


def rank(row):
    n, attributes = named(LEFT[row["name"]])
    return TIERS.index(row["tier"]), -n, -attributes


def pairs():
    for i, a in enumerate(ROWS):
        for b in ROWS[i + 1 :]:
            x, y = LEFT[a["name"]], LEFT[b["name"]]
            if a["phase"] == b["phase"] and x[0] == y[0] and meets(x, y):
                yield a, b, x, y


def fits(pair, names):
    return all(map(fnmatch.fnmatchcase, names, pair))


def listed(*names):
    return any(fits(pair, names) for pair in EITHER)


def test_more_special_rows_come_first_in_their_tier():
    for a, b, x, y in pairs():
        if covers(x, y) != covers(y, x) and a["tier"] == b["tier"]:
            special, other = (a, b) if covers(y, x) else (b, a)
            assert rank(special) < rank(other), (a["name"], b["name"])


def test_what_the_order_of_the_table_still_decides_is_listed():
    used = set()
    for a, b, x, y in pairs():
        if rank(a) != rank(b) or (covers(x, y) and covers(y, x)):
            continue
        assert listed(a["name"], b["name"]), (a["name"], b["name"])
        used.add((a["name"], b["name"]))
    for pair in EITHER:
        assert any(listed(*u) and fits(pair, u) for u in used), pair


def test_rows_of_one_left_side_stand_together():
    """Alternatives are tried as they are listed, so they are in one file, one below the other: no
    row of another left side that may fit the same lies between them in their tier."""
    for a, b, x, y in pairs():
        if not (covers(x, y) and covers(y, x)) or a["tier"] != b["tier"]:
            continue
        i, j = ROWS.index(a), ROWS.index(b)
        between = [r for r in ROWS[i + 1 : j] if r["phase"] == a["phase"] and rank(r) == rank(a)]
        for row in between:
            tree = LEFT[row["name"]]
            other = meets(tree, x) and not (covers(tree, x) and covers(x, tree))
            assert not other or listed(a["name"], row["name"]) or listed(row["name"], b["name"])
