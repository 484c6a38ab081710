"""Random formulas with a fresh seed at every run (tests/formulas); they find what is wrong.

The seed is in pytest's header; PYLINOP_SEED=... repeats a run. What fails says how to repeat it
alone, and is printed as small as it could be made. `make formulas T=3600` looks for an hour."""

import itertools
import os
import re
import zlib

import numpy as np
import pytest
from formulas import (
    exhaustive,
    generate,
    hunt,
    leaves,
    patterns,
    program,
    reference,
    run,
    shrink,
    thresholds,
)
from formulas.kept import KEPT
from formulas.known import known

import pylinop as pl

CHUNKS, EACH = 40, 45  # a minute of two cores


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_formulas(chunk):
    first = int(os.environ["PYLINOP_SEED"]) + chunk * EACH
    for seed in range(first, first + EACH):
        found = hunt.one(seed)
        if found:
            pytest.fail(hunt.report(seed, *found), pytrace=False)


@pytest.mark.parametrize("what,kept", KEPT, ids=[what for what, _ in KEPT])
def test_formulas_that_were_wrong_once(what, kept):
    assert run.check(kept) > 0


def test_a_seed_is_one_formula():
    for seed in range(50):
        assert repr(generate.program(seed)) == repr(generate.program(seed))
        assert eval(repr(generate.program(seed)), vars(program) | {"np": np})


def test_what_is_printed_can_be_run():
    """The Python of a formula builds what the formula builds."""
    for seed in range(60):
        p = generate.program(seed)
        space = {}
        with np.errstate(all="ignore"):
            try:
                exec(program.written(p), space)
            except pl.LinAlgError:
                continue
        made = run.build(p, reference.operands_of(p))
        for i, v in enumerate(made):
            assert space[f"v{i}"].shape == v.shape


def test_answers_are_compared(monkeypatch):
    """Of the questions asked most have a verdict."""
    monkeypatch.setitem(run.WATCHED, "verify", False)
    asked = answered = 0
    for seed in range(200):
        p = generate.program(seed)
        asked += sum(head != "write" for head, _, _ in p.asks)
        answered += run.check(p)
    assert answered > 0.5 * asked


@pytest.mark.parametrize(
    "head,form", [("sub", "{0} + {1}"), ("H", "{0}.T"), ("neg", "{0}"), ("scale", "{0}")]
)
def test_an_operation_that_is_wrong_is_found_and_made_small(head, form, monkeypatch):
    monkeypatch.setitem(run.WATCHED, "verify", False)  # the comparison with the reference alone
    right = program.OPERATORS[head]
    for seed in range(1000):  # drawn from the rules too: which one shows it changes with each row
        monkeypatch.setitem(program.OPERATORS, head, form)
        found = hunt.one(seed)
        monkeypatch.setitem(program.OPERATORS, head, right)
        if found and "Error" not in found[0] and hunt.one(seed):
            continue
        monkeypatch.setitem(program.OPERATORS, head, form)
        if found and "Error" not in found[0]:
            small, said = shrink.smallest(found[1], found[0])
            assert head in [line[0] for line in small.lines]
            assert len(small.lines) <= 4 and len(small.asks) == 1 and "Error" not in said
            assert max(small.sizes.values()) <= 8
            return
    pytest.fail("not found in 1000 formulas")


def test_known_faults_are_named():
    assert known("nothing of the kind") is None


# -- what is drawn --


def test_every_kind_is_drawn():
    met = set()
    for seed in range(1500):
        p = generate.program(seed)
        met |= {line[2][0] for line in p.lines if line[0] == "leaf"}
    assert met == set(leaves.kinds())


def test_every_operation_and_question_is_drawn():
    heads, asks = set(), set()
    for seed in range(1500):
        p = generate.program(seed)
        heads |= {(p.lazy, line[0]) for line in p.lines}
        asks |= {ask[0] for ask in p.asks}
    for lazy, table in ((False, program.OPERATORS), (True, program.ARRAYS)):
        assert {h for h in table if (lazy, h) not in heads} == set()
    assert set(run.ASKS) <= asks


def test_rules_are_placed():
    """Rules whose left side holds operators are placed, but for bare letters and arrays' rows, and
    what only gradients ask: random gradients are in test_formulas_of_gradients.py."""
    placed = {name for name, _ in patterns.rules()}
    for row in pl.rules():
        if row["phase"] == "structure":
            continue
        text = row["left"]
        arrays = re.match(r"\((cast|swap|add|mul|conjugate|\w+@d \((joint|results))\b", text)
        letter = re.fullmatch(r"\(\w+(@\w+)? \?a( \?x)?\)", text)
        projection = re.match(r"\((diagonal_sums|entry_sums|kron_partial|generator_sums)\b", text)
        if not arrays and not letter and not projection:
            assert row["name"] in placed, text


def test_patterns_are_instances():
    """Each pattern has an instance in square dimensions, and it is right."""
    unfit = []
    for name, tree in patterns.rules():
        drawing = generate.Drawing(np.random.default_rng(1))
        drawing.sizes, drawing.names = {"a": 4, "b": 4}, ["a", "b", "a*b", "a+b"]
        drawing.batches, drawing.dtypes = [()], ["float64"]
        for d in ("a", "a*b", "a+b") * 5:
            try:
                patterns.instance(drawing, tree, d, d, 1, {})
                break
            except patterns.Unfit:
                continue
        else:
            unfit.append(name)
    assert unfit == []


# -- thresholds --


def test_thresholds_are_found():
    found = {(c.name, c.value) for c in thresholds.constants()}
    for known_one in [
        ("LEAST", 16),  # fuse_sums.c
        ("TINY", 12),  # k_blas.c: the smallest products
        ("FEWEST", 400),  # op_sparse_factor_solve.c
        ("NARROW", 24),  # k_cholesky_update.c
        ("TILE", 32),  # k_loops.c
        ("_EXACT", 400),  # _structured/spectral_bounds_proven.py
        ("_SMALL", 144),  # _structured/dispatch.py
        ("LOPK_KRON_OWN", 4096),
        ("work", 1 << 20),  # k_small_gemm.c, compared with a hexadecimal float
    ]:
        assert known_one in found, known_one
    sizes = thresholds.sizes()
    assert {12, 16, 24, 32, 64, 128, 144, 400, 512} <= set(sizes)
    assert set(thresholds.crossovers()) <= set(sizes)
    assert thresholds.crossovers()


def test_a_new_threshold_is_found(tmp_path):
    (tmp_path / "a.c").write_text(
        "enum { FEW = 3, MANY = 7 << 2 };\nstatic const int64_t LONG = (int64_t)1 << 9;\n"
        "#define SIDE 77 /* rows */\n  if (s->n >= 37 || m < 0x1p5) return;\n"
    )
    (tmp_path / "b.py").write_text("_ROWS = 41  # rows\n_OTHER: int = 1 << 8\nif n > 99:\n")
    got = {v for _, v, _ in thresholds.of_c(tmp_path / "a.c")}
    assert got >= {3, 28, 512, 77, 37, 32}
    assert {v for _, v, _ in thresholds.of_python(tmp_path / "b.py")} >= {41, 256, 99}
    (tmp_path / "c.c").write_text(
        "if (n >= LONG / 4 && 3 * k < n && k > 5 * FEW) return n < WIDE * 2;\n"
    )
    named = {("LONG", "c.c"): 512, ("LONG", "b.c"): 8, ("FEW", None): 3, ("WIDE", None): 50}
    got = {v for _, v, _ in thresholds.scaled(tmp_path / "c.c", "c.c", named)}
    assert got == {128, 15, 100}
    assert ("LOP_BLOCKED/4", 16) in {(c.name, c.value) for c in thresholds.constants()}


def test_thresholds_of_each_folder_are_found():
    """Nothing that holds named numbers of rows is passed over: rules, kinds, and Python's ways."""
    files = [c.file for c in thresholds.constants() if c.name.isupper()]
    for folder in ("c/rules", "c/ops/kinds", "c/ops/solves", "c/planner", "c/plan", "c/kernels"):
        assert any(f.startswith(folder + "/") for f in files), folder
    for folder in (
        "_structured",
        "_iterative",
        "_sparse",
        "_eigen",
        "_precondition",
        "_stochastic",
    ):
        assert any(f.startswith(f"pylinop/{folder}/") for f in files), folder


# -- all pairs, all triples (python -m formulas.exhaustive has all of them) --


@pytest.mark.sweep(12)
@pytest.mark.parametrize("n", [16, 17, 40])
@pytest.mark.parametrize("first", leaves.kinds())
def test_pairs_and_triples_of_kinds(first, n):
    """Of the triples that begin with a kind about one in thirty, others for each kind and size."""
    operands = exhaustive.Operands(n)
    start = zlib.crc32(f"{first} {n}".encode()) % 31
    few = itertools.islice(exhaustive.triples(operands, first), start, None, 31)
    for cases in (exhaustive.pairs(operands, first), few):
        for said, wrong in exhaustive.wrong_ones(operands, cases):
            if wrong is not None:
                pytest.fail(f"{said}\n{program.written(wrong)}", pytrace=False)


def test_a_wrong_pair_is_found(monkeypatch):
    """Here a wrong reference: every sum of it is."""
    operands = exhaustive.Operands(5)
    monkeypatch.setattr(operands.nodes["Dense"], "V", operands.nodes["Dense"].V + 1)
    *found, (count, none) = exhaustive.wrong_ones(operands, exhaustive.pairs(operands, "Dense"))
    assert none is None and len(found) > 0.8 * count
