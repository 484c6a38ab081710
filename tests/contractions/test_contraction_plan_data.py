"""Plans as data say all that is computed: read by loops over memory in Python, they give what C
gives, windows, parts and copies among them."""

import itertools
import math

import numpy as np
import pytest

import pylinop as pl
from pylinop._contractions import equations, views


def _address(a):
    return a.__array_interface__["data"][0]


def _product(step, at, memory):
    """c (+)= a b at one place of the loops: every element's index by the step's strides."""
    (m, n, k), (cm, cn), (am, ak), (bk, bn) = step["sizes"], *step["strides"]
    group, apart = step["group"]
    i, j, t = np.ogrid[:m, :n, :k]
    a_of, b_of = t * ak, t * bk
    if group:
        rows = cm != 1 if n <= 1 else cn == 1  # the windows are the left operand's
        windows = t // group * apart + t % group * (ak if rows else bk)
        a_of, b_of = (windows, b_of) if rows else (a_of, windows)
    if step["how"] == "gram":
        assert step["a"] == step["b"]
    a, b = (memory[step[x]] for x in "ab")
    return a[at[1] + i * am + a_of] * b[at[2] + b_of + j * bn]


def _run_step(step, start, memory):
    loops = step["loops"]
    c = memory[step["c"]]
    for index in itertools.product(*(range(loop["size"]) for loop in loops)):
        at = [
            start[k] + sum(i * loop["strides"][k] for i, loop in zip(index, loops))
            for k in range(3)
        ]
        add = any(i and loop["summed"] for i, loop in zip(index, loops))
        if step["how"] == "nest":
            made = memory[step["a"]][at[1]]
            if step["b"] >= 0:
                made = made * memory[step["b"]][at[2]]
            c[at[0]] = c[at[0]] + made if add else made
            continue
        products = _product(step, at, memory)
        m, n, _ = step["sizes"]
        cm, cn = step["strides"][0]
        where = at[0] + np.arange(m)[:, None] * cm + np.arange(n) * cn
        made = products.sum(axis=2)
        c[where] = c[where] + made if add else made


def interpreted(data, arrays, seen, shape, dtype):
    """The result of a plan as data, of arrays in C order, of which views are `seen`."""
    n = data["operands"]
    size = np.dtype(dtype).itemsize
    work = np.full(data["workspace"] // size + 1, np.nan, dtype)
    out = np.full(math.prod(shape), np.nan, dtype)
    memory = dict(enumerate([*(a.reshape(-1) for a in arrays), out]))
    starts = {k: (_address(v) - _address(a)) // size for k, (a, v) in enumerate(zip(arrays, seen))}
    starts[n] = 0
    for k, place in enumerate(data["places"]):
        memory[n + 1 + k], starts[n + 1 + k] = work, place // size
    if data["zero"]:
        out[:] = 0
    for p in range(data["parts"]):
        for step in data["steps"]:
            start = []
            for k in (step["c"], step["a"], step["b"]):
                moved = p * data["part"][k] if data["part"] and 0 <= k <= n else 0
                start.append(starts[k] + moved if k >= 0 else 0)
            _run_step(step, start, memory)
    strides = [x * size for x in data["strides"]]
    return np.lib.stride_tricks.as_strided(out, shape, strides)


CASES = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("qij,qjk->qik", [(6, 3, 3), (6, 3, 3)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
    ("aj,akj->k", [(3, 4), (3, 5, 4)]),
    ("abc,cfd,dbe,efa->", [(3, 3, 3)] * 4),
    ("iij,jk->ik", [(3, 3, 4), (4, 2)]),
    ("i,i,ijk,ilk->ijl", [(40,), (40,), (40, 3, 3), (40, 3, 3)]),
    ("ab,ab->", [(0, 3), (0, 3)]),
    ("b (2*y + i) (x - j + 1) c, i j c d -> b y x d", [(1, 7, 6, 2), (3, 2, 2, 3)]),
    ("b (y + i) (x + j) c, i j c d -> b y x d", [(1, 12, 12, 3), (3, 3, 3, 32)]),
    ("b (y + i) (x + j) c, i j c d -> b d y x", [(1, 12, 12, 3), (3, 3, 3, 32)]),
    ("(o + w) , w k -> o k", [(40,), (5, 33)]),
]


@pytest.mark.parametrize("text, shapes", CASES)
@pytest.mark.parametrize("char", "fd")
def test_plans_as_data_are_what_is_computed(text, shapes, char, rng):
    arrays = [rng.integers(-4, 5, s).astype(char) for s in shapes]
    task, _ = equations.task_of((text, *arrays), None, None, None, "safe", True)
    data, s, _ = equations.plan(task, arrays)
    want = pl.einsum(text, *arrays)
    seen = [views.view(task.equation, s, i, a, None)[0] for i, a in enumerate(arrays)]
    made = interpreted(data, arrays, seen, np.shape(want), char)
    np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("seed", range(4))
def test_random_plans_as_data(seed):
    """Read by the loops above, with plans checked: what they say is NumPy's sum."""
    rng = np.random.default_rng(seed)
    temporaries = 0
    for _ in range(25):
        sizes = dict(zip("abcdef", rng.choice([1, 2, 3, 5, 8], 6)))
        labels = list("abcdef")[: rng.integers(2, 7)]
        terms = ["".join(rng.choice(labels, rng.integers(1, 4))) for _ in range(rng.integers(1, 5))]
        known = sorted(set("".join(terms)))
        out = "".join(rng.permutation(known)[: rng.integers(0, len(known) + 1)])
        arrays = [rng.integers(-3, 4, [sizes[x] for x in t]).astype(float) for t in terms]
        text = ",".join(terms) + "->" + out
        task, _ = equations.task_of((text, *arrays), None, None, None, "safe", True)
        with pl.config(check_plans=True):
            data, s, _ = equations.plan(task, arrays)
        seen = [views.view(task.equation, s, i, a, None)[0] for i, a in enumerate(arrays)]
        want = np.einsum(text, *arrays)
        made = interpreted(data, arrays, seen, np.shape(want), "d")
        np.testing.assert_array_equal(made, want, err_msg=text)
        for slot, step in ((data["slots"][step["c"]], step) for step in data["steps"]):
            assert slot["dtype"] == "float64"
            temporaries += slot["name"][0] == "t"
            if slot["name"] == "out":
                assert slot["shape"] == np.shape(want)
    assert temporaries > 5


def test_windows_are_in_the_plan_and_in_its_text(rng):
    x, w = np.ones((8, 36, 36, 3), "f"), np.ones((5, 5, 3, 32), "f")
    text = "b (y + i) (x + j) c, i j c d -> b y x d"
    task, _ = equations.task_of((text, x, w), None, None, None, "safe", True)
    data, _, _ = equations.plan(task, [x, w])
    steps = [step for step in data["steps"] if step["group"][0]]
    if not steps:
        pytest.skip("windows are copied first by the prices of this CPU's loops")
    (group, apart), (_, _, k) = steps[0]["group"], steps[0]["sizes"]
    assert k % group == 0
    assert apart in (3, 36 * 3)
    assert f"in {k // group} windows of {group}" in pl.einsum_path(text, x, w)[1]


@pytest.mark.parametrize("columns, c_order", [(1536, False), (48, True)])
def test_rows_that_are_gathered_for_few_others_cost(columns, c_order):
    """32 x 48 times 48 x 1536 in C order gathers 48 rows for 32 others: 1.6 times the time of the
    product whose result has the 32 last; 48 columns are used where they lie."""
    a, b = np.zeros((32, 48), "f"), np.zeros((32, 48, columns), "f")
    made = pl.einsum("rc,acs->ars", a, b)
    assert (made.strides[-1] == made.itemsize) == c_order
