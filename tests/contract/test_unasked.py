"""Arrays that nobody asked for: whatever plan makes a matrix larger than all its operands says so.

The plans' own texts tell what is written; what was asked for are the operands and the result."""

import itertools
import re
import warnings

import numpy as np
import pytest

import pylinop as pl
from pylinop._base import errors

K = 18
N = K * K  # bytes enough for a word, even in int8
rng = np.random.default_rng(14)
keep = np.sort(rng.permutation(600)[:N])
thin = rng.standard_normal((N, 5))
LEAVES = {
    "I": lambda: pl.Identity(N),
    "diag": lambda: pl.Diag(1 + np.arange(N) / N),
    "kron": lambda: pl.Kron(np.eye(K) + 0.1, np.eye(K)),
    "lowrank": lambda: pl.LowRank(thin),
    "update": lambda: pl.LowRank(thin) + pl.Diag(np.ones(N)),
    "toeplitz": lambda: pl.Toeplitz(np.r_[4.0, 1 / np.arange(1.0, N)]),
    "circulant": lambda: pl.Circulant(np.r_[4.0, 1 / np.arange(1.0, N)]),
    "tridiagonal": lambda: pl.Tridiagonal(np.ones(N - 1), np.full(N, 4.0), np.ones(N - 1)),
    "banded": lambda: pl.Banded((2, 2), np.ones((5, N)) + 4 * np.eye(5)[2][:, None]),
    "laplacian": lambda: pl.Laplacian((K, K), "dirichlet"),
    "permutation": lambda: pl.Permutation(np.arange(N)[::-1]),
    "selected": lambda: (
        pl.Selection(keep, 600) @ pl.Kron(np.eye(25), np.eye(24) + 0.1) @ pl.Selection(keep, 600).T
    ),
    "kernel": lambda: pl.Kernel("rbf", np.arange(float(N))[:, None]),
    "blockdiag": lambda: pl.BlockDiag(pl.Toeplitz(np.r_[4.0, np.ones(199)]), pl.Identity(N - 200)),
    "gram": lambda: (
        pl.vstack([pl.Kron(np.eye(K) + 0.2, np.eye(K))] * 2).T
        @ pl.vstack([pl.Kron(np.eye(K) + 0.1, np.eye(K))] * 2)
    ),
    "dense": lambda: pl.Dense(np.eye(N) + 0.001),
    "kronsum": lambda: pl.KronSum(np.eye(K), np.eye(K) + 0.1),
    "hadamard": lambda: pl.Householder(np.ones(N)),
    "dft": lambda: pl.DFT(N),
}
ASKED = {
    "apply": lambda a: a @ np.ones(N),
    "columns": lambda a: a @ np.ones((N, 3)),
    "solve": lambda a: pl.solve(a, np.ones(N)),
    "diagonal": lambda a: a.diagonal(),
    "trace": lambda a: a.trace(),
    "logdet": lambda a: pl.logdet(a),
    "inv": lambda a: pl.inv(a).diagonal(),
}


def expressions():
    yield from LEAVES.items()
    for i, ((a, f), (b, g)) in enumerate(itertools.combinations(LEAVES.items(), 2)):
        if i % 9 and "selected" not in (a, b):
            continue  # one in nine
        yield f"{a} + {b}", lambda f=f, g=g: f() + g()
        yield f"{a} @ {b}", lambda f=f, g=g: f() @ g()


def given_of(op):
    """Elements of the arrays that an expression is made of."""
    arrays = {}
    for part in errors.parts(op):
        for x in part._init or ():
            if isinstance(x, np.ndarray):
                arrays[id(x)] = x.size
    return sum(arrays.values())


WRITTEN = re.compile(r"^t\d+\((\d+), (\d+)\)$")


def largest(found, columns):
    """The largest matrix that a plan writes beside its result, in elements, and the widest band."""
    most = bands = 0
    for step in found.steps:
        size = WRITTEN.match(step["writes"])
        if not size or step["guarded"] or step["conditional"]:
            continue
        m, n = map(int, size.groups())
        if step["name"] == "bandprobe":
            bands = m * n
        if m > columns and n > columns:
            most = max(most, m * n)
    return most, bands


def warned(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            f()
        except (np.linalg.LinAlgError, NotImplementedError):
            return None
    texts = [str(w.message) for w in caught if w.category is pl.MaterializationWarning]
    return max((int(t.split(" bytes")[0].split()[-1].replace(",", "")) for t in texts), default=0)


@pytest.mark.parametrize("asked", ASKED)
def test_every_matrix_that_nobody_asked_for_is_told(asked):
    seen = 0
    for name, make in expressions():
        op = make()
        columns = {"columns": 3}.get(asked, 1)
        with pl.config(warn_limit=1), pl.explaining() as found:
            told = warned(lambda op=op: ASKED[asked](op))
        if told is None:
            continue
        for plan in found.plans:
            most, bands = largest(plan, columns)
            bound = given_of(op) + N * columns * 2 + 8 * 600 + 2 * bands
            if most > bound and most > 1 << 16:
                seen += 1
                assert told >= most, (name, most, told)  # a byte an element at least
    assert seen >= (0 if asked in ("apply", "columns") else 10)


@pytest.mark.parametrize("asked", ["apply", "columns", "solve", "logdet"])
@pytest.mark.parametrize(
    "kind", ["diag", "kron", "update", "toeplitz", "circulant", "tridiagonal", "dense", "kronsum"]
)
def test_what_has_a_way_does_not_warn(kind, asked):
    with pl.config(warn_limit=1):
        assert warned(lambda: ASKED[asked](LEAVES[kind]())) in (0, None)


def test_closed_forms_are_seen():
    """A multiple of the identity and a Diag, the one closed, the other not: both are told."""
    for c in (0.1 * pl.Identity(N), pl.Diag(np.full(N, 0.1))):
        a = LEAVES["selected"]() + c
        for f in (lambda a=a: pl.solve(a, np.ones(N)), lambda a=a: pl.logdet(a)):
            with pl.config(warn_limit=1):
                assert warned(f) >= N * N * 8


def test_the_words():
    a = LEAVES["selected"]() + 0.1 * pl.Identity(N)
    with pl.config(warn_limit=1):
        with pytest.warns(pl.MaterializationWarning, match=r'bytes, about .* s .*method="cg"'):
            pl.solve(a, np.ones(N))
        with pytest.warns(pl.MaterializationWarning, match=r'bytes, about .* s .*method="slq"'):
            pl.logdet(a)


def test_diagonals_of_products_by_unit_vectors():
    """Where the dense factors do not fit, blocks of unit vectors do."""
    k = rng.standard_normal((2, 2, 32, 32))
    a = pl.vstack([pl.Kron(*k[0]), pl.Kron(*k[1])])
    want = sum(np.kron((x * x).sum(0), (y * y).sum(0)) for x, y in k)
    gram = a.T @ a
    with pl.config(memory_limit=4_000_000), warnings.catch_warnings():
        warnings.simplefilter("error", pl.MaterializationWarning)
        np.testing.assert_allclose(gram.diagonal(), want, rtol=1e-12)
        assert gram.trace() == pytest.approx(want.sum(), rel=1e-12)
