"""Plans as data: what another executor reads."""

import gc
import pickle

import numpy as np
import pytest
from drawn import close, values

import pylinop as pl


def seen(mode, a):
    a = a.T if mode & 1 else a
    return a.conj() if mode & 2 else a


KERNELS = {  # a product reads its right side first
    "gemm": lambda s, x, a: seen(s["integers"][0], a) @ x,
    "add": lambda s, a, b: a + b,
    "scale": lambda s, a: (s["number"] if s["number"].imag else s["number"].real) * a,
    "sub": lambda s, a, b: a - b,
    "swap": lambda s, a: seen(s["integers"][0], a),
    "copy": lambda s, a: a,
    "start": lambda s, a: a,
    "array_diagonal": lambda s, a: np.diagonal(a, s["integers"][0]),
    "sumall": lambda s, a: np.asarray(a.sum()),
}


class Executor:
    """Runs a plan of these kernels by NumPy, from what the explanation says alone."""

    def __init__(self, plan):
        self.plan, self.memory = plan, {}
        for i, slot in enumerate(plan.slots):
            if slot["kind"] == "leaf":
                self.memory[i] = plan.leaves[slot["number"]]
            elif slot["alias"] is None:
                self.memory[i] = np.empty(slot["shape"], slot["dtype"])

    def at(self, i):
        slot = self.plan.slots[i]
        other = slot["alias"]
        if other is None:
            return self.memory[i]
        whole = self.at(other["of"])
        if other["as"] == "transpose":
            return whole.T
        m, n = [1, 1, *slot["shape"]][-2:] if len(slot["shape"]) != 1 else (*slot["shape"], 1)
        if other["as"] == "block":
            return whole[other["row"] : other["row"] + m, other["column"] : other["column"] + n]
        dtype = np.dtype(slot["dtype"])
        return np.ndarray(slot["shape"], dtype, whole, other["from"] * dtype.itemsize)

    def run(self):
        for step in self.plan.steps:
            assert step["when"] is None and step["derived"] is None
            out, *read = step["arguments"]
            if step["by_strides"]:
                continue
            if step["places"]:
                x, i, j = self.at(read[0]), *step["integers"][:2]
                self.at(out)[i : i + x.shape[0], j : j + x.shape[1]] = x
                continue
            adds = step["accumulates"]
            name = step["name"].removesuffix("-add")
            made = KERNELS[name](step, *map(self.at, read))
            if adds:
                made = self.at(out) + (step["number"].real or 1) * made
            self.at(out)[...] = made
        return self.at(self.plan.result)


@pytest.mark.parametrize("n", [3, 16, 40])
@pytest.mark.parametrize(
    "formula",
    [
        lambda A, B: A @ B,
        lambda A, B: A @ B + B.T,
        lambda A, B: 2 * A @ B.T - B @ A @ A,
        lambda A, B: (A + B).T @ A + A @ B.T,
        lambda A, B: pl.hstack([A @ B, B]),
    ],
)
def test_a_plan_is_run_from_its_data(rng, n, formula):
    a, b = values(rng, (n, n), "float64"), values(rng, (n, n), "float64")
    op = formula(pl.Dense(a), pl.Dense(b))
    close(Executor(op.explain("dense")).run(), op.toarray())


def test_a_program_is_run_from_its_data(rng):
    a, b = values(rng, (9, 9), "float64"), values(rng, (9, 9), "float32")
    A, B = pl.lazy(a), pl.lazy(b)
    with pl.explaining() as e:
        pl.evaluate(A @ A, np.trace(A), B @ B, np.diagonal(B))
    plan = e.plans[0]
    assert plan.slots[plan.result]["dtype"] == "uint8"
    found = bytes(Executor(plan).run())
    want = [np.trace(a), a @ a, b @ b, np.diagonal(b)]
    sizes = [np.asarray(x).nbytes for x in want]
    assert sum(sizes) == len(found)


def test_what_each_part_says(rng):
    T = pl.Toeplitz(np.r_[4.0, np.ones(99) / 99])
    x = pl.explain(T, "solve", np.ones(100))
    assert [s["name"] for s in x.steps][0] == "toeplitz-factor"
    masks = {s["when"][0] for s in x.steps if s["when"]}
    for i in masks:
        assert x.slots[i]["dtype"] == "bool"
    for k, made in enumerate(x.derived):
        step = x.steps[made["step"]]
        assert step["derived"] == k and x.slots[step["arguments"][0]]["number"] == k
        assert x.slots[step["arguments"][0]]["kind"] == "derived"
        assert set(made["leaves"]) <= set(range(len(x.leaves)))
    update = pl.explain(
        pl.Diag(np.ones(100)) + pl.LowRank(np.ones((100, 2))), "solve", np.ones(100)
    )
    escapes = [s["escapes"] for s in update.steps if s["escapes"]]
    masks = {s["when"][0] for s in update.steps if s["when"]}
    assert escapes and all(mask in masks and step > 0 for mask, step in escapes)
    assert x.slots[x.result]["kind"] == "result" and x.slots[x.result]["shape"] == (100, 1)
    assert sum(a is None for a in x.leaves) == 1  # the right-hand side


def test_leaves_are_not_kept_alive(rng):
    a = values(rng, (50, 50), "float64")
    x = pl.explain(pl.Dense(a) @ pl.Dense(a.T.copy()), "dense")
    assert x.leaves[0] is a and x.leaves[1] is None
    other = pickle.loads(pickle.dumps(x))
    assert other.leaves == [] and other.slots == x.slots and other == x
    del a
    gc.collect()
    assert x.leaves[0] is None
