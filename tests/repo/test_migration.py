"""The migration pages: every expression of ours in their tables runs; SciPy's gives the same."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

import pylinop as pl

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "migration").glob("*.md"))


def rows(page):
    """(line, theirs, ours): the code in the first two cells of each row of a page's table."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if line.startswith("| `"):
            yield number, *(re.findall(r"`([^`]+)`", c) for c in cells[:2])


def names():
    """What the expressions speak of."""
    n = 4
    a = np.arange(16.0).reshape(n, n) % 7 + 10 * np.eye(n)
    c = a.T + np.eye(n)
    S = scipy.sparse.csr_array(np.triu(a))
    A, B = pl.Dense(a), pl.Dense(c)
    ab = np.ones((3, n)) + 4 * np.eye(3, n, 1)[[1, 0, 2]]
    ab[1] = 4
    v = np.arange(1.0, n + 1)
    return {
        "np": np, "pl": pl, "scipy": scipy, "lsqr": scipy.sparse.linalg.lsqr,
        "n": n, "m": n, "k": 1, "mode": "same", "offset": 1, "grid": (2, 2), "diag": np.ones(n * n),
        "A": A, "B": B, "a": a, "c": c, "x": v, "y": v, "b": v, "d": v, "S": S, "ab": ab,
        "p": a @ a.T, "dl": v[:-1], "du": v[:-1], "c1": v, "column": v, "row": v,
        "r": np.array([1.0, 3.0, 0.0, 2.0]),
        "h": np.array([1.0, 2.0]), "kernel": np.ones((2, 2)), "vec": v[:, None], "beta": 2.0,
        "data": S.data, "indices": S.indices, "indptr": S.indptr, "index": np.array([2, 0]),
        "rows": slice(0, 2), "columns": [1, 3], "shape": (n, n), "blocks": [a, c], "L": a[:, :2],
        "T": np.tril(a), "f": lambda x: 2 * x, "fc": lambda x: 2 * x, "matvec": lambda x: 2 * x,
    }  # fmt: skip


SPECIAL = {  # what they mean on one page alone
    "cola.md": {"p": np.array([2, 0, 3, 1]), "c": 3.0},
    "linear_operator.md": {"c": 2.0, "x": np.eye(4)},
    "einops.md": {
        "t": np.ones((2, 3, 4)),
        "q": np.ones((2, 3, 4)),
        "s": np.ones((2, 5, 4)),
        "v": np.ones(4),
        "X": pl.placeholder((4, 4)),
        "Y": pl.placeholder((4, 4)),
    },  # fmt: skip
}


def dense(value):
    """As an array, by products where it is SciPy's operator."""
    if isinstance(value, scipy.sparse.linalg.LinearOperator):
        return value @ np.eye(value.shape[1])
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_our_side_runs(page):
    count = 0
    scope = {**names(), **SPECIAL.get(page.name, {})}
    for number, _, ours in rows(page):
        for code in ours:
            try:
                value = eval(code, scope)
            except Exception as error:
                raise AssertionError(f"{page.name}:{number}: `{code}` raises {error!r}") from error
            if isinstance(value, pl.LinearOperator):
                assert np.isfinite(value @ np.ones(value.shape[1])).all(), code
            count += 1
    assert count >= 15


def test_scipy_gives_the_same():
    compared = 0
    for number, theirs, ours in rows(PAGES[-1]):
        assert PAGES[-1].name == "scipy.md" and len(theirs) == len(ours) == 1, f"line {number}"
        scope = names()
        want, got = (dense(eval(code, scope)) for code in (theirs[0], ours[0]))
        np.testing.assert_allclose(got, want, atol=1e-12, err_msg=f"{theirs[0]}, line {number}")
        compared += 1
    assert compared >= 20
