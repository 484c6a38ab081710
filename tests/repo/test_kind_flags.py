"""What kinds have in common is said in their own tables (src/c/expr/kind_flags.def): lists of kinds
by name, which a new kind would have to be added to, are nowhere; and the flags are true."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl
from pylinop._base import kind_flags

ROOT = Path(__file__).resolve().parents[2]
FLAGS = pl._core._kind_flags()
KINDS = {row["name"]: row["head"] for row in pl._core.kinds() if row["signature"]}
# The reference that results are checked against shares no table with what it checks.
APART = ("_verify",)
REGISTERS = ("row", "_row", "like", "rule")


def is_register(node):
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", None)) in REGISTERS


def compared(node):
    """The words that one thing is compared with, one after the other: x == "a" or x == "b"."""
    if not isinstance(node, ast.BoolOp):
        return []
    found = {}
    for part in node.values:
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq | ast.NotEq):
            word = getattr(part.comparators[0], "value", None)
            found.setdefault(ast.dump(part.left), []).append(word)
    return max(found.values(), key=len, default=[])


def words(node):
    if isinstance(node, ast.BoolOp):
        return compared(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        classes = [getattr(e, "attr", getattr(e, "id", None)) for e in node.elts]
        return [e.value for e in node.elts if isinstance(e, ast.Constant)] or [
            c if c in KINDS else None for c in classes
        ]
    return []


def lists_of_kinds(text):
    """The lines with a list of kinds, by head or by name, and the list. Not those that register a
    row for kinds, keys of tables, and what is compared as a whole: a pattern."""
    tree = ast.parse(text)
    apart = set()
    for node in ast.walk(tree):
        whole = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)
        if is_register(node) or whole:
            apart.update(id(n) for n in ast.walk(node))
    for node in ast.walk(tree):
        found = [] if id(node) in apart else words(node)
        heads = set(found) & set(KINDS.values())
        if len(found) > 1 and (set(found) <= set(KINDS) or len(heads) >= max(2, 0.75 * len(found))):
            yield node.lineno, found


def python_files():
    files = sorted((ROOT / "src" / "pylinop").rglob("*.py"))
    return [f for f in files if not set(APART) & set(f.parts)]


@pytest.mark.parametrize("path", python_files(), ids=lambda p: p.stem)
def test_no_lists_of_kinds(path):
    assert list(lists_of_kinds(path.read_text())) == []


@pytest.mark.parametrize(
    "text, seen",
    [
        ('A = ("diag", "identity")', True),
        ('A = "kron blockdiag dft".split()', True),
        ('if op._head in ("dft", "sum", "dct", "kron", "diag"): pass', True),
        ('A = {"Kron", "BlockDiag"}', True),
        ('@svd.row("kron", "blockdiag")\ndef f(): pass', False),
        ('A = {"kron": 1, "diag": 2}', False),
        ('A = op._head == "kron"', False),
        ('A = {o._head for o in ops} == {"diag", "lowrank"}', False),
        ('A = ("diag", "sum", "prod")', False),
        ('if op._head == "diag" or op._head == "kron": pass', True),
        ('if op._head == "diag" and b._head == "kron": pass', False),
        ("if isinstance(op, (pl.Kron, pl.BlockDiag)): pass", True),
    ],
)
def test_what_is_a_list_of_kinds(text, seen):
    assert bool(list(lists_of_kinds(text))) == seen


def test_no_lists_of_kinds_in_rules_and_guards():
    """Of three kinds or more; operations (sums, views) are no kinds."""
    one = r"[\w\[\]>-]+ == &lop_op_\w+"
    chain = re.compile(rf"{one}(?:\s*\|\|\s*{one})+")
    seen = 0
    for folder in ("rewrite", "rules", "planner", "plan"):
        for path in sorted((ROOT / "src" / "c" / folder).glob("*.c")):
            for found in chain.findall(path.read_text()):
                seen += 1
                kinds = set(re.findall(r"&lop_op_(\w+)", found)) & set(KINDS.values())
                assert len(kinds) < 3, (path.name, found)
    assert seen > 10


def test_flags_are_had_and_asked():
    used = "".join(p.read_text() for p in (ROOT / "src" / "pylinop").rglob("*.py"))
    guards = "".join(
        p.read_text() for d in ("rewrite", "rules") for p in (ROOT / "src" / "c" / d).glob("*.c")
    )
    for flag, kinds in FLAGS.items():
        assert len(kinds) > 1, flag
        assert f'"{flag}"' in used or f"LOP_FLAG_{flag}" in guards, f"nothing asks for {flag}"
    with pytest.raises(KeyError):
        kind_flags.heads("nothing")
    assert kind_flags.names("of_parts") == {"Kron", "BlockDiag"}
    assert kind_flags.heads("of_parts") == kind_flags.OF_PARTS == {"kron", "blockdiag"}


# What a flag says of the dense form.
TRUE = {
    "diagonal": lambda a: (a == np.diag(a.diagonal())).all(),
    "one_entry": lambda a: (np.count_nonzero(a, axis=1) <= 1).all(),
    "constant": lambda a: (a == a.ravel()[0]).all(),
    "transform": lambda a: np.allclose(
        (g := a.conj().T @ a) / np.sqrt(np.outer(g.diagonal(), g.diagonal())), np.eye(len(a)),
        atol=0.4,  # the DCT of the first kind has two columns more that are not quite orthogonal
    ),
}  # fmt: skip


@pytest.mark.parametrize("flag", TRUE)
def test_flags_are_true(flag, rng):
    met = 0
    for _, name in FLAGS[flag]:
        for _ in range(4):
            d = leaf(name, rng, 8, 8, "complex128") if name in ref.LEAVES else None
            op = getattr(pl, name)(8) if name == "Hadamard" else ref.build(d) if d else None
            if op is None or op.shape[-2] != op.shape[-1]:
                continue
            met += 1
            assert TRUE[flag](np.asarray(op.toarray())), name
    assert met > 0
