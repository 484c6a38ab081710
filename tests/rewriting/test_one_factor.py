"""No program factors one operator twice or by two methods: solves from both sides, columns, the
quadratic form, the determinant, the diagonal, the trace and the whole of an inverse, asked for
together, over all kinds and composites, by counted factor steps."""

from collections import Counter

import numpy as np
import pytest
from composites import CASES, Make

import pylinop as pl
from pylinop import _core

DENSE, DIAGONAL, TRACE, DET = 0, 1, 2, 4
FACTORS = {
    "getrf", "potrf", "sytrf", "hetrf", "gbtrf", "pbtrf", "toeplitz-factor", "SuperLU",
    "CHOLMOD/SuperLU", "heevd", "hegvd", "gees", "geqrf", "block-lu", "block-cholesky",
    "quasi-factor",
}  # fmt: skip
# What has several parts has a factor for each: those named, at most; else one.
PARTS = {
    "Kron": {"getrf": 2},
    "Kron of three": {"getrf": 2},
    "Kron + c I": {"heevd": 1, "gees": 2},  # that it is not Hermitian is seen at one look
    "own Kron + c I": {"heevd": 2},
    "KronSum": {"heevd": 1, "gees": 2},
    "own KronSum": {"heevd": 2},
    "sum of own Krons": {"hegvd": 2},
    "BlockDiag of composites": {"getrf": 4},
    "Block": {"getrf": 2},  # a block, and its Schur complement
    # of about 50 rows five columns by the dense form, diagonals of the inverse by the recursion
    "Toeplitz(c)": {"toeplitz-factor": 1, "potrf": 1, "getrf": 1},
    "Sliced": {"toeplitz-factor": 1, "potrf": 1, "getrf": 1},
    "Toeplitz + LowRank": {"getrf": 1, "toeplitz-factor": 1},
    "Kron + Kron": {"hegvd": 1, "getrf": 2, "gees": 2},  # a pencil is tried, then Schur forms
    "Kron + LowRank": {"getrf": 3},
    "Toeplitz + LowRankUpdate": {"potrf": 1, "getrf": 1, "toeplitz-factor": 1},
    "mixed model": {"potrf": 1, "gbtrf": 1, "getrf": 1},
    "BlockDiag + LowRank": {"getrf": 3},
    "Sparse + LowRank": {"SuperLU": 1, "getrf": 1},
    "Kron of composites": {"getrf": 1, "potrf": 1},
    "product of Dense": {"getrf": 2},
    # both small: solves go by P alone, the diagonal of the inverse by P^2 multiplied out
    "power": {"getrf": 2},
}


def asked(a, whole):
    n, rng = a.shape[-1], np.random.default_rng()
    b, c = (pl.Dense(rng.standard_normal((n, k)).astype(a.dtype)) for k in (1, 5))
    inverse = pl.inv(a)
    questions = [
        (a, DET, 0, 0),
        (inverse @ b, DENSE, 0, 0),
        (b.H @ inverse, DENSE, 0, 0),
        (b.H @ inverse @ b, DENSE, 0, 0),
        (inverse @ c, DENSE, 0, 0),
        (inverse, DIAGONAL, 0, 0),
        (inverse, TRACE, 0, 0),
    ]
    return questions + [(inverse, DENSE, 0, 0)] * whole, b, c


def ran(questions):
    _core._clear_store()
    with pl.explaining() as e:
        values = _core._results(questions)
    steps = [s for p in e.plans for s in p.steps if s["took"] is not None]
    return values, Counter(s["name"] for s in steps if s["kept"] and s["name"] in FACTORS)


def check(case, dtype, whole):
    a = CASES[case](Make(dtype))
    questions, b, c = asked(a, whole)
    with pl.config(check_plans=True):
        values, made = ran(questions)
    allowed = PARTS.get(case)
    if allowed is None:
        assert sum(made.values()) <= 1, made
    else:
        assert all(count <= allowed.get(name, 0) for name, count in made.items()), made
    dense = a.toarray()
    inverse = np.linalg.inv(dense.astype(np.complex128))
    b, c = b.toarray(), c.toarray()
    want = [inverse @ b, b.conj().T @ inverse, b.conj().T @ inverse @ b, inverse @ c]
    want += [inverse.diagonal(), inverse.trace(), inverse]
    sign, log = np.linalg.slogdet(dense)
    real = values[0].reshape(-1)
    assert np.isfinite(real).all()
    np.testing.assert_allclose(*map(np.asarray, (pl.slogdet(a)[1], log)), rtol=1e-9, atol=1e-9)
    for got, value in zip(values[1:], want, strict=False):
        size = np.abs(value).max()
        assert np.abs(got.reshape(value.shape) - value).max() <= 1e-9 * size
    return sign


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_one_factor_serves_all_uses(case, whole, dtype):
    check(case, dtype, whole)


SPELLED = {  # (matrix of n rows, the factors that it may take)
    "Toeplitz": (lambda m, n: toeplitz_of(m, n, False), 1),
    "own Toeplitz": (lambda m, n: toeplitz_of(m, n, True), 1),
    "Hankel": (lambda m, n: hankel_of(m, n), 1),
    "sum of bands": (lambda m, n: band_of(m, n, 2, 1) + band_of(m, n, 1, 2), 1),
    "product of bands": (lambda m, n: band_of(m, n, 1, 1) @ band_of(m, n, 1, 1), 2),
    "Diag + U V^H": (lambda m, n: pl.Diag(m.d(n)) + pl.LowRank(m.a(n, 3), m.a(n, 3)), 1),
    "2 (Diag + U V)": (
        lambda m, n: 2.0 * (pl.Diag(m.d(n)) + pl.Dense(m.a(n, 2)) @ pl.Dense(m.a(2, n))),
        1,
    ),
    "Diag - U U^H": (lambda m, n: pl.Diag(m.positive(n) + 9 * n) - pl.LowRank(m.a(n, 3)), 1),
}


def toeplitz_of(m, n, own):
    c, r = 0.2 * m.a(n), 0.2 * m.a(n)
    c[0] = r[0] = 4 * n
    return pl.Toeplitz(c, None if own else r)


def hankel_of(m, n):
    c, r = 0.2 * m.a(n), 0.2 * m.a(n)
    c[-1] = r[0] = 4 * n
    return pl.Hankel(c, r)


def band_of(m, n, lower, upper):
    ab = m.a(lower + upper + 1, n)
    ab[upper] += 12
    return pl.Banded((lower, upper), ab)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n", [16, 39, 40, 95, 96, 97, 150])
@pytest.mark.parametrize("spelled", SPELLED)
def test_sizes_on_both_sides_of_thresholds(spelled, n, dtype):
    make, most = SPELLED[spelled]
    a = make(Make(dtype), n)
    wide = a.toarray().astype(np.complex128)
    eps, inverse = np.finfo(dtype).eps, np.linalg.inv(wide)
    near = 1e4 * eps * np.abs(inverse).max()
    for whole in (False, True):
        questions, b, c = asked(a, whole)
        # beside diagonals of the inverse, by structure, five columns may go by the dense form
        for program in (questions[:5] + questions[7:], questions[:3] + questions[5:]):
            with pl.config(check_plans=True):
                values, made = ran(program)
            assert sum(made.values()) <= most, made
            np.testing.assert_allclose(values[1], inverse @ b.toarray(), atol=near)
            np.testing.assert_allclose(values[2], b.toarray().conj().T @ inverse, atol=near)
            if whole:
                np.testing.assert_allclose(values[5], inverse, atol=near)
        np.testing.assert_allclose(values[3], inverse.diagonal(), atol=near)
        np.testing.assert_allclose(values[4], inverse.trace(), atol=n * near)


def test_least_squares_over_a_kernel_on_a_line_stays_with_its_states():
    """X (X^T S^-1 X)^-1 X^T S^-1 y took the dense form of S beside the states of S."""
    n = 400
    r = np.random.default_rng(2)
    t, y = np.sort(r.random(n)) * 20, r.standard_normal(n)
    X = np.c_[np.ones(n), t]
    S = pl.Kernel("matern12", t[:, None], length_scale=1.3) + pl.Diag(0.3 + r.random(n))
    lazy = pl.lazy(S)
    Z = pl.solve(lazy, X)
    M = pl.Dense(X.T @ Z)
    rest = y - X @ pl.solve(M, Z.T @ y)
    with pl.explaining() as e:
        found = pl.evaluate(rest @ pl.solve(lazy, rest), pl.logdet(lazy))
    names = [s["name"] for s in e.steps if s["when"] is None]
    assert "potrf" not in names and names.count("quasi-factor") == 1
    A = S.toarray()
    left = y - X @ np.linalg.solve(X.T @ np.linalg.solve(A, X), X.T @ np.linalg.solve(A, y))
    assert abs(found[0] - left @ np.linalg.solve(A, left)) <= 1e-10 * found[0]
    assert abs(found[1] - np.linalg.slogdet(A)[1]) <= 1e-9
