"""What the engine looks for, placed in formulas: the left side of every rule as pl.rules() prints
it, and the patterns that plans are fused by. An operand of a pattern is drawn as any other; a
letter that stands twice is one operand twice."""

import functools
import itertools
import re

import pylinop as pl

from . import leaves

# What plan/fuse_sums.c, planner/chain_cost.c and plan/derived_keys.c look for, as rules say it.
FUSIONS = """
(sum ?x (prod ?a ?b))
(sum (prod ?a ?b) ?x)
(sum (sum ?x (prod ?a ?b)) (prod ?c ?d))
(sum ?x (scaled@c (prod ?a ?b)))
(sum (scaled@c (prod ?a ?b)) ?x)
(sum ?x (view:1 (prod ?a ?b)))
(sum ?x (view:3 (scaled@c (prod ?a ?b))))
(sum ?x (scaled@c (view:1 (prod ?a ?b))))
(diff ?x (prod ?a ?b))
(diff (prod ?a ?b) ?x)
(diff ?x ?y)
(sum (diff ?x ?y) ?z)
(sum ?z (diff ?x ?y))
(diff (diff ?x ?y) ?z)
(diff ?z (diff ?x ?y))
(diff ?z (sum (diff ?x ?y) ?w))
(sum (diff ?x (view:1 ?y)) (view:3 ?z))
(diff (prod ?a ?b) (prod ?c ?d))
(diff (diff ?x (prod ?a ?b)) (prod ?c (diff ?d ?e)))
(sum (prod ?a ?b) (view:3 (prod ?a ?b)))
(sum (prod ?a ?b) (prod (view:3 ?b) (view:3 ?a)))
(prod ?a (view:3 ?a))
(prod (view:1 ?a) ?a)
(sum ?x (prod ?a (view:3 ?a)))
(sum (prod ?a ?b) (prod ?a ?c))
(sum (prod ?a ?c) (prod ?b ?c))
(prod (sum ?a ?b) (sum ?c ?d))
(prod (prod ?a ?b) (prod ?a ?b))
(sum (prod ?a (prod ?b ?c)) (prod ?a ?b))
(prod (inverse ?a) (sum ?b ?c))
(sum (inverse ?a) (prod (inverse ?a) ?b))
(diff (scaled@c ?x) (scaled@d ?y))
(sum (scaled@c ?x) (scaled@d ?x))
""".strip().splitlines()
ACTIONS = ("apply", "solve", "todense", "diagonal", "element", "trace", "scaledet")
# heads of arrays within a kind's parameters: the operation of operators that makes them
PARAMETERS = {
    ("diag", "mul"): "(prod (diag) (diag))",
    ("diag", "recip"): "(inverse (diag))",
    ("diag", "scale"): "(scaled@c (diag))",
    ("circulant", "circular_convolution"): "(prod (circulant) (circulant))",
    ("circulant", "circulant_flip"): "(view:1 (circulant))",
    ("circulant", "conjugate"): "(view:2 (circulant))",
    ("permutation", "inverse_permutation"): "(inverse (permutation))",
    ("triangular", "swap"): "(view:1 (triangular))",
}
OPERATIONS = {
    "prod": "matmul", "sum": "add", "diff": "sub", "elementwise": "multiply", "scaled": "scale",
    "inverse": "inv", "power": "power", "congruence": "congruence", "root": "root", "kron": "kron",
    "blockdiag": "blockdiag", "kronsum": "kronsum", "khatrirao": "khatrirao", "sliced": "cut",
    "part": "real",
}  # fmt: skip


def read(text):
    """A nested tuple: (head, attribute, operands...), a letter as it is."""
    stack = [[]]
    for token in re.findall(r"\(|\)|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        elif stack[-1] or token.startswith("?"):
            stack[-1].append(token)
        else:
            head, attr = re.fullmatch(r"(\w+\*?)([@:].*)?", token).groups()
            stack[-1] += [head, attr]
    (tree,) = stack[0]
    return tree


MULTIPLES = {"identity": "scaled", "eye": "scale"}


def variants(tree):
    """What a pattern stands for: (sum* a b) for both orders, (identity@c) for the identity and for
    a multiple of it."""
    if isinstance(tree, str):
        return [tree]
    head, attr, *below = tree
    if head in MULTIPLES and attr:
        return [(head, None), (MULTIPLES[head], attr, (head, None))]
    found = [(head.rstrip("*"), attr, *b) for b in itertools.product(*map(variants, below))]
    if head.endswith("*"):
        found += [(h, a, y, x) for h, a, x, y in found]
    return found


def placeable(tree):
    """The pattern as operators alone: actions and arrays within parameters taken off; None where
    it speaks of arrays only."""
    if isinstance(tree, str):
        return tree
    head, attr, *below = tree
    if head in ACTIONS:
        return placeable(below[0])
    for x in below:
        if not isinstance(x, str) and (head, x[0]) in PARAMETERS:
            return read(PARAMETERS[head, x[0]])
    if head == "view" or head in OPERATIONS:
        below = [placeable(x) for x in below]
        if head == "sliced" and below:
            below = below[:1]
        return None if None in below else (head, attr, *below)
    if head in leaves.heads():
        return (head, attr)
    return None


@functools.cache
def rules():
    """(name, pattern) of every rule that can be placed, after the fusions; no letter alone."""
    out = [(f"fusion {i}", placeable(read(text))) for i, text in enumerate(FUSIONS)]
    for row in pl.rules():
        if row["phase"] == "structure":  # no formulas: functions of operators
            continue
        for tree in map(placeable, variants(read(row["left"]))):
            if tree is not None and not isinstance(tree, str):
                out.append((row["name"], tree))
    return out


@functools.cache
def distinct():
    """The patterns, each once; the fusions twice as often in all as one would expect."""
    trees = list(dict.fromkeys(tree for _, tree in rules()))
    fusions = [placeable(read(text)) for text in FUSIONS]
    return trees + fusions * 2


class Unfit(Exception):  # noqa: N818
    """The pattern has no instance of these dimensions."""


def place(drawing, d, e, depth):
    """The line of a pattern's instance of dimensions d x e; None where none was found."""
    for _ in range(4):
        tree = drawing.pick(distinct())
        kept = len(drawing.lines)
        try:
            return instance(drawing, tree, d, e, depth - 1, {})
        except Unfit:
            del drawing.lines[kept:], drawing.dims[kept:]
    return None


def instance(drawing, tree, d, e, depth, letters):
    if isinstance(tree, str):
        key = (tree, d, e)
        if any(k[0] == tree and k != key for k in letters):
            raise Unfit
        if key not in letters:
            letters[key] = drawing.operator(d, e, depth)
        return letters[key]
    head, attr, *below = tree

    def sub(i, f, g):
        return instance(drawing, below[i], f, g, depth - 1, letters)

    if head == "view":
        mode = int(attr[1]) if attr[1].isdigit() else int(drawing.rng.integers(1, 4))
        turned = (d, e) if mode == 2 else (e, d)
        name = {1: "T", 2: "conj", 3: "H"}[mode]
        return drawing.add(name, (sub(0, *turned),), (), (d, e))
    if head in OPERATIONS and below:
        return operation(drawing, head, below, sub, d, e)
    if head in ("kron", "blockdiag", "kronsum", "khatrirao", "sliced"):
        made = drawing.made(OPERATIONS[head], d, e, depth)
        if made is not None:
            return made
    name = leaves.heads().get(head)
    made = drawing.leaf(d, e, name) if name else None
    if made is None:
        raise Unfit
    return made


def operation(drawing, head, below, sub, d, e):
    name = OPERATIONS[head]
    if head in ("sum", "diff", "elementwise"):
        return drawing.add(name, (sub(0, d, e), sub(1, d, e)), (), (d, e))
    if head == "prod":
        k = d if d == e and drawing.rng.random() < 0.4 else drawing.pick(drawing.names)
        return drawing.add(name, (sub(0, d, k), sub(1, k, e)), (), (d, e))
    if head == "part":
        return drawing.add(drawing.pick(["real", "imag"]), (sub(0, d, e),), (), (d, e))
    if head == "scaled":
        return drawing.add(name, (sub(0, d, e),), (drawing.number(),), (d, e))
    if d != e and head in ("inverse", "power", "congruence", "root"):
        raise Unfit
    if head == "power":
        return drawing.add(name, (sub(0, d, d),), (int(drawing.rng.integers(0, 4)),), (d, e))
    if head == "inverse":
        return drawing.add(name, (sub(0, d, d),), (), (d, e))
    if head == "congruence":
        k = drawing.pick(drawing.names)
        return drawing.add(name, (sub(0, d, k), sub(1, k, k)), (), (d, e))
    if head == "root":
        return drawing.add(name, (sub(0, d, drawing.pick(drawing.names)),), (), (d, e))
    made = drawing.made(name, d, e, 1)
    if made is None:
        raise Unfit
    return made
