"""Where a row stands in the table decides little: rows of a root are asked by tier, and in a tier
the one that names more first. What is left are rows of one left side, alternatives that stand
together, and the pairs below, where each says why its order may be either. tests/c/test_ruleset.c
compiles the table in another order and gets the same plans."""

import fnmatch

from formulas.patterns import read, variants

import pylinop as pl

TIERS = ["veto", "whole", "kind", "inferred", "generic", "dense"]
ROWS = [
    row
    for row in pl.rules()
    if row["origin"] == "table" and row["phase"] in ("close", "first", "push", "both")
]
LEFT = {row["name"]: read(row["left"]) for row in ROWS}
FORMS = {name: variants(tree) for name, tree in LEFT.items()}

# Neither left side is the more special one, and both may fit one expression.
MIRROR = "one identity, written from either side: both give the same"
EITHER = {
    (
        "first-*elementwise*",
        "first-*elementwise*",
    ): "a diagonal, a constant or zeros on one side: where both "
    "sides are, either is diagonal, or zeros, by its own row next",
    ("diagonal-diag-prod", "diagonal-prod-diag"): MIRROR,
    ("apply-*circulants", "apply-*circulants"): "one way of computing",
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


def meet(a, b):
    """May one expression fit both rows?"""
    return any(meets(x, y) for x in FORMS[a["name"]] for y in FORMS[b["name"]])


def over(a, b):
    """Does row ``a`` fit wherever ``b`` does?"""
    return all(any(covers(x, y) for x in FORMS[a["name"]]) for y in FORMS[b["name"]])


def asked(row):
    """The phases in which a row is asked."""
    return {"close", "push"} if row["phase"] == "both" else {row["phase"]}


def pairs():
    """Two rows that one expression may fit, and which of them fits wherever the other does."""
    for i, a in enumerate(ROWS):
        for b in ROWS[i + 1 :]:
            if asked(a) & asked(b) and meet(a, b):
                yield a, b, over(a, b), over(b, a)


def fits(pair, names):
    return all(map(fnmatch.fnmatchcase, names, pair))


def listed(*names):
    return any(fits(pair, names) for pair in EITHER)


def test_more_special_rows_come_first_in_their_tier():
    for a, b, general, special in pairs():
        if general != special and a["tier"] == b["tier"]:
            first, other = (a, b) if special else (b, a)
            assert rank(first) < rank(other), (a["name"], b["name"])


def test_what_the_order_of_the_table_still_decides_is_listed():
    used = set()
    for a, b, general, special in pairs():
        if rank(a) == rank(b) and not (general and special):
            assert listed(a["name"], b["name"]), (a["name"], b["name"])
            used.add((a["name"], b["name"]))
    for pair in EITHER:
        assert any(fits(pair, u) for u in used), pair


def test_rows_of_one_left_side_stand_together():
    """Alternatives are tried as they are listed, so they are in one file, one below the other: no
    row of another left side that may fit the same lies between them in their tier."""
    for a, b, general, special in pairs():
        if not (general and special) or a["tier"] != b["tier"]:
            continue
        for row in ROWS[ROWS.index(a) + 1 : ROWS.index(b)]:
            if not asked(row) & asked(a) & asked(b) or rank(row) != rank(a) or not meet(row, a):
                continue
            alike = over(row, a) and over(a, row)
            assert alike or listed(a["name"], row["name"]) or listed(row["name"], b["name"])
