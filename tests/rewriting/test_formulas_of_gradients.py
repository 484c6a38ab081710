"""What random formulas ask of gradients: that most have a verdict, and wrong ones are found."""

import numpy as np
import pytest
from formulas import generate, hunt, reference, run, tangents

from pylinop._gradients import functions


def of_gradients(count):
    """Seeds of formulas that ask for a gradient."""
    seeds = range(40 * count)
    asking = (s for s in seeds if any(q[0] == "gradient" for q in generate.program(s).asks))
    return [s for _, s in zip(range(count), asking, strict=False)]


def verdicts(seeds, monkeypatch):
    found = []
    first = run.check_gradient
    monkeypatch.setattr(run, "check_gradient", lambda *a: found.append(first(*a)) or found[-1])
    for seed in seeds:
        assert hunt.one(seed) is None
    return found


def test_most_gradients_are_compared(monkeypatch):
    monkeypatch.setitem(run.WATCHED, "verify", False)
    found = verdicts(of_gradients(60), monkeypatch)
    assert len(found) > 30 and sum(found) > 0.5 * len(found)


@pytest.mark.parametrize("name", ["multiply", "sin"])
def test_a_wrong_derivative_is_found(name, monkeypatch):
    monkeypatch.setitem(run.WATCHED, "verify", False)
    right = functions.ELEMENTWISE[name]
    monkeypatch.setitem(functions.ELEMENTWISE, name, lambda y, g, k: 1.001 * right(y, g, k))
    for seed in of_gradients(200):
        found = hunt.one(seed)
        if found:
            assert "gradient" in found[0]
            return
    pytest.fail("not found in 200 gradients")


# heads that stand within others alone
WITHIN = {"kron", "lowrank", "multiplied", "vmatrix", "circulant", "toeplitz"}
OTHERS = {"inv", "solve", "vsolve", "nlogdet", "sin", "tanh", "abs", "over", "loglike", "noisy"}
KINKS = {"abs", "over", "maximum", "minimum", "where", "max0", "min1", "hypot", "vnorm"}
STEP = 1e-4


def slopes(p, operands, away):
    """Of the reference's values, by differences of fourth order; None where one has no verdict."""
    moved = []
    for k in (-2, -1, 1, 2):
        there = dict(operands)
        for i, d in away.items():
            at = p.lines[i][1][0]
            native = operands[at].astype(operands[at].dtype.newbyteorder("="))
            there[at] = native + k * STEP * d
        moved.append(reference.evaluate(p, there)[0])
    for a, b, c, d in zip(*moved, strict=True):
        if any(isinstance(x, reference.Unsure) for x in (a, b, c, d)):
            yield None
        else:
            yield (8 * (c.V - b.V) - (d.V - a.V)) / (12 * STEP)


def test_tangents_are_those_of_the_values():
    """The reference's derivatives against differences of its own values, of all its heads."""
    wanted = {*tangents.MULTILINEAR, *tangents.LINEAR, *OTHERS} - WITHIN
    met = set()
    for seed in range(20_000):
        p = generate.program(seed)
        asked = any(q[0] == "gradient" for q in p.asks)
        if not asked or max(p.sizes.values()) > 40 or not {q[0] for q in p.lines} & (wanted - met):
            continue
        operands = reference.operands_of(p)
        nodes, u = reference.evaluate(p, operands)
        if u > 1e-10:
            continue
        away = tangents.directions(p, operands, np.random.default_rng(seed))
        found = tangents.evaluate(p, nodes, away, u)
        for i, slope in enumerate(slopes(p, operands, away)):
            head, tangent = p.lines[i][0], found[i]
            if head == "array" or slope is None or isinstance(tangent, reference.Unsure):
                continue
            scale = 1 + np.max(tangent.M, initial=0) + np.max(nodes[i].M, initial=0)
            right = np.abs(slope - tangent.V).max(initial=0) <= 1e-6 * scale
            assert right or KINKS & {line[0] for line in p.lines[: i + 1]}, (seed, i, head)
            if right:
                met.add(head)
        if wanted <= met:
            return
    assert wanted <= met
