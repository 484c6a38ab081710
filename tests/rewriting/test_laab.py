"""The 17 expressions of LAAB (arXiv 2202.09888), and related ones: as written they are planned as
the best hand-written form. Judged by the plan's flops, not by time; values against float64."""

import re

import numpy as np
import pytest

import pylinop as pl

N = 60


@pytest.fixture(scope="module")
def ops():
    rng = np.random.default_rng(5)
    a = {k: rng.standard_normal((N, N)).astype("f") for k in "ABCH"}
    a |= {k: rng.standard_normal((N, 1)).astype("f") for k in "xy"}
    a["L"] = np.tril(a["A"])
    kinds = {k: pl.Dense(v) for k, v in a.items() if k != "L"}
    kinds["L"] = pl.Dense(a["L"], assume_a="lower triangular")
    a["D"] = rng.standard_normal(N).astype("f")
    kinds["D"] = pl.Diag(a["D"])
    bands = [rng.standard_normal(N - k).astype("f") for k in (1, 0, 1)]
    a["T"] = np.diag(bands[0], -1) + np.diag(bands[1]) + np.diag(bands[2], 1)
    kinds["T"] = pl.Tridiagonal(*bands)
    kinds["W"], a["W"] = pl.Dense(a["T"]), a["T"]
    return kinds, {k: np.diag(v) if v.ndim == 1 else v.astype("d") for k, v in a.items()}


def flops(text):
    return float(re.search(r"^total\s+([\d.e+]+) flops", text, re.M).group(1))


n2, n3 = N**2, N**3
# what is written, and the flops of the best form (a sum or a scaling counts one an element)
FORMS = {
    "1a": ("A.T @ B", 2 * n3),
    "1b": ("L @ B", n3),
    "1c": ("A @ A.T", n3 + n2),
    "1d": ("T @ B", 6 * n2),
    "1d, an array without a word": ("W @ B", 2 * n3),  # its zeros are not looked for
    "1d, diagonal": ("D @ B", n2),
    "2a": ("A.T @ B + A.T @ B", 2 * n3 + n2),
    "2b": ("(A.T @ B).T @ (A.T @ B)", 3 * n3 + n2),
    "2c": ("(A.T @ B).T @ A.T @ B", 3 * n3 + n2),
    "2d": ("A.T @ B @ A.T @ B @ y", 8 * n2),
    "3a": ("H.T @ H @ x", 4 * n2),
    "3b": ("y.T @ H.T @ H", 4 * n2),
    "3c": ("H.T @ y @ x.T @ H", 6 * n2),
    "4a": ("A @ B + A @ C", 2 * n3 + n2),
    "4b": ("(A - H.T @ H) @ x", 6 * n2 + 2 * N),
    "4c": ("B.T @ A @ A.T @ B", 3 * n3 + n2),
    "a mirror image of 4a": ("B @ A + C @ A", 2 * n3 + n2),
    "not expanded": ("(A + B) @ C", 2 * n3 + n2),
    "cancels": ("A @ B - A @ B", 0),
    "a sum and its transpose": ("A @ B + B.T @ A.T", 2 * n3 + n2),
    "outer": ("x @ y.T @ A", 4 * n2),
    "solve for a vector": ("pl.inv(A) @ B @ x", 2 * n3 / 3 + 4 * n2),
    "solve from the right": ("y.T @ B @ pl.inv(A)", 2 * n3 / 3 + 4 * n2),
}


@pytest.mark.parametrize("name", FORMS)
def test_best_form(ops, name):
    formula, best = FORMS[name]
    op = eval(formula, {"pl": pl}, ops[0])
    text = op.explain("dense")
    assert flops(text) <= 1.02 * best + 10 * N, text
    want = eval(formula.replace("pl.inv", "inv"), {"inv": np.linalg.inv}, ops[1])
    np.testing.assert_allclose(op.todense(), want, rtol=0, atol=2e-4 * max(1, abs(want).max()))


def test_5a_the_same_node_is_computed_once(ops):
    P = ops[0]["A"] @ ops[0]["B"]
    text = (P + 2 * P).explain("dense")
    assert flops(text) <= 2.05 * n3
    assert text.count("gemm") == 1


# tests/c/test_chain.c counts their flops
@pytest.mark.parametrize("formula", ["A + B", "A @ B", "A.T @ B", "A @ B @ C", "A @ D @ B.T"])
def test_5b_5c_element(ops, formula):
    op = eval(formula, {}, ops[0])
    want = eval(formula, {}, ops[1])
    np.testing.assert_allclose(op[2, 3], want[2, 3], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("action", "formula", "best"),
    [
        ("trace", "A @ B", 2 * n2),
        ("trace", "x @ y.T @ A", 2 * n2),
        ("trace", "A @ B @ C", 2 * n3 + 2 * n2),
        ("trace", "y @ x.T @ B @ A", 4 * n2),
        ("diagonal", "A @ B", 2 * n2),
        ("diagonal", "A @ x @ y.T", 2 * n2),
    ],
)
def test_trace_and_diagonal(ops, action, formula, best):
    op = eval(formula, {}, ops[0])
    assert flops(op.explain(action)) <= 1.05 * best + 10 * N
    full = eval(formula, {}, ops[1])
    want = np.trace(full) if action == "trace" else np.diag(full)
    got = op.trace() if action == "trace" else op.diagonal()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * max(1, np.abs(want).max()))


def test_order_is_said(ops):
    H, y, x = (ops[0][k] for k in "Hyx")
    text = (H.T @ y @ x.T @ H).explain("dense")
    assert re.search(r"^planned +\(\(A' B\) \(C' A\)\)$", text, re.M)
    assert re.search(r"as written 4\.46e\+05 flops, chosen 2\.16e\+04", text)


def test_integers_run_as_written():
    a = pl.Dense(np.array([[100, 3], [5, 7]], np.int8))
    b = np.array([[2], [90]], np.int8)
    want = a.toarray() @ (a.toarray() @ b)
    np.testing.assert_array_equal((a @ a) @ b, want)
    assert "planned" not in (a @ a).explain("apply", b)


@pytest.mark.parametrize("dtype", "dD")
def test_random_chains(dtype):
    rng = np.random.default_rng(9)

    def matrix(m, n):
        a = rng.standard_normal((m, n))
        return a + 1j * rng.standard_normal((m, n)) if dtype == "D" else a

    for _ in range(60):
        sizes = rng.choice([1, 2, 7, 7, 30], rng.integers(3, 8))
        made, op, want = {}, None, None
        for m, n in zip(sizes, sizes[1:], strict=False):
            if (m, n) not in made or rng.random() < 0.3:
                made[m, n] = matrix(m, n)
            f, g = pl.Dense(made[m, n]), made[m, n]
            if (n, m) in made and rng.random() < 0.5:
                f, g = pl.Dense(made[n, m]).H, made[n, m].conj().T
            if rng.random() < 0.3:
                other = matrix(m, n)
                f, g = f + 2 * pl.Dense(other), g + 2 * other
            op, want = (f, g) if op is None else (op @ f, want @ g)
        np.testing.assert_allclose(op.todense(), want, rtol=1e-9, atol=1e-9 * abs(want).max())
        x = matrix(sizes[-1], 1)[:, 0]
        np.testing.assert_allclose(op @ x, want @ x, rtol=1e-8, atol=1e-9 * abs(want).max())
