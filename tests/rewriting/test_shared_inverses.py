"""What stands both inside and outside an inverse is computed once; products accumulate into sums;
the inverse itself and the diagonal of R^H A^-1 R come from the factor."""

import numpy as np
import pytest
from drawn import DTYPES, Wide, close, positive, values

import pylinop as pl

M, N = 20, 60


def steps(x):
    return [s["name"] for s in pl.explain(x).steps]


@pytest.fixture
def parts(rng, request):
    dtype = request.param
    p = {"H": values(rng, (M, N), dtype), "G": values(rng, (N, M), dtype)}
    p |= {"A": values(rng, (N, N), dtype), "S": values(rng, (N, 5), dtype)}
    p |= {"P": positive(rng, N, dtype), "R": positive(rng, M, dtype)}
    lazy = {k: pl.lazy(a, "pos" if k in "PR" else None) for k, a in p.items()}
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    return lazy | {"inv": pl.inv, "I": pl.Identity(N, dtype=dtype)}, {
        **{k: a.astype(wide).view(Wide) for k, a in p.items()},
        "inv": lambda a: np.linalg.inv(a).view(Wide),
        "I": np.eye(N).view(Wide),
    }


# formula, factorisations, products as wide as N on both sides of an inverse
FORMULAS = [
    ("P @ H.H @ inv(H @ P @ H.H + R)", 1),
    ("P - P @ H.H @ inv(H @ P @ H.H + R) @ H @ P", 1),
    ("P @ H.H @ inv(H @ P @ G + R)", 1),
    ("inv(H @ A @ G + R) @ H @ A", 1),
    ("inv(H @ A @ G + R).T @ H @ A.conj()", 1),
    ("S @ inv(S.H @ A.H @ P @ A @ S) @ S.H @ A.H", 1),
    ("A + (I - S @ inv(S.H @ P @ S) @ S.H @ P) @ A", 1),
    ("inv(inv(H @ P @ H.H + R) + R) @ H @ P", 2),
    ("A @ G @ inv(H @ A @ G) @ H @ A - 2.0 * A", 1),
]


@pytest.mark.parametrize("parts", DTYPES, indirect=True)
@pytest.mark.parametrize(("formula", "factors"), FORMULAS)
def test_values(parts, formula, factors):
    lazy, plain = parts
    x = eval(formula, lazy)
    names = steps(x)
    close(x, np.asarray(eval(formula, plain)))
    assert names.count("potrf") + names.count("getrf") <= factors


@pytest.mark.parametrize("parts", ["float64"], indirect=True)
def test_the_shared_product_is_computed_once(parts):
    lazy, _ = parts
    gain = eval("P @ H.T @ inv(H @ P @ H.T + R)", lazy)
    assert [s for s in steps(gain) if "gemm" in s] == ["half-gemm", "gemm-add"]
    assert "S1^-1" in str(pl.explain(gain))


@pytest.mark.parametrize("parts", ["float64"], indirect=True)
def test_an_inverse_is_not_opened_for_what_stands_inside_it_alone(parts):
    lazy, _ = parts
    x = eval("inv(H @ A @ G + H @ A @ A @ G) @ S[:20]", lazy)
    assert "S1^-1" not in str(pl.explain(x))


def test_a_sum_that_vanishes_has_no_inverse(rng):
    A, B = pl.lazy(rng.standard_normal((N, N))), pl.lazy(rng.standard_normal((N, N)))
    with pytest.raises(np.linalg.LinAlgError):
        (A @ B @ pl.inv(A @ B - A @ B)).toarray()


# -- products that accumulate --

SUMS = [
    ("A - G @ H", ["start", "gemm-add"]),
    ("G @ H - A", None),
    ("A + 2.5 * (G @ H)", ["start", "gemm-add"]),
    ("A - G @ H - G @ H @ A", None),
    ("A @ A - A", None),
    ("A.T - G @ H", None),
    ("(A - G @ H).T", None),
    ("A - (G @ H).T", None),
    ("2 * A - 3 * (G @ H)", None),
    ("A - A", None),
    ("H - 2 * H @ A + 1.5 * H.conj()", None),
    ("A[::2, ::-1] - G[::2] @ H[:, ::-1]", None),
]


@pytest.mark.parametrize("parts", DTYPES, indirect=True)
@pytest.mark.parametrize(("formula", "names"), SUMS)
def test_sums_with_products(parts, formula, names):
    lazy, plain = parts
    before = {k: lazy[k].toarray() for k in "AGH"}
    x = eval(formula, lazy)
    assert names is None or steps(x) == names
    close(x, np.asarray(eval(formula, plain)))
    for k in before:
        assert (before[k] == np.asarray(lazy[k])).all()


def test_what_the_sum_needs_elsewhere_is_not_overwritten(rng):
    A, B, C = (pl.Dense(rng.standard_normal((30, 30))) for _ in range(3))
    a, b, c = (np.asarray(x) for x in (A, B, C))
    s = a @ b
    S = A @ B
    for op, want in (
        (S @ C - S, s @ c - s),
        (C - S - S @ S, c - s - s @ s),
        ((C - S) @ S + S, (c - s) @ s + s),
    ):
        close(op.toarray(), want)
        close(op.toarray(), want)


def test_accumulation_in_strided_memory(rng):
    big = rng.standard_normal((3, 90, 90))
    a, g, h = big[0, ::2, ::3], big[1, ::2, 5:25:2], big[2, 7:27:2, ::3]
    x = pl.lazy(a) - pl.lazy(g) @ pl.lazy(h)
    close(x, a - g @ h)
    out = np.empty((90, 60))[::2, ::2]
    np.matmul(pl.Dense(a) - pl.Dense(g) @ pl.Dense(h), np.eye(30), out=out)
    close(out, a - g @ h)


def test_infinities_pass_through_accumulation(rng):
    a = rng.standard_normal((20, 20))
    a[3, 4], a[5, 6] = np.inf, np.nan
    g = rng.standard_normal((20, 20))
    got = (pl.lazy(a) - pl.lazy(g) @ pl.lazy(g)).toarray()
    assert np.isposinf(got[3, 4]) and np.isnan(got[5, 6]) and np.isfinite(got).sum() == 398


# -- inverses and diagonals from the factor --


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 100])
def test_the_inverse_itself(rng, dtype, n):
    a, p = values(rng, (n, n), dtype), positive(rng, n, dtype)
    for op, plain in (
        (pl.Dense(a), a),
        (pl.Dense(p, assume_a="pos"), p),
        (pl.Dense(a).H @ pl.Dense(a) + pl.Identity(n), a.conj().T @ a + np.eye(n)),
    ):
        with pl.config(check_plans=True, verify=True):
            inverse, eps = pl.inv(op).toarray(), np.finfo(dtype).eps
        wide = np.asarray(plain, "complex128")
        bound = 10 * n * eps * (np.linalg.norm(wide, 2) * np.linalg.norm(inverse, axis=0) + 1)
        assert (np.linalg.norm(wide @ inverse - np.eye(n), axis=0) <= bound).all()
        assert inverse.dtype == dtype


@pytest.mark.parametrize("n", [32, 33])
def test_the_inverse_of_few_rows_is_a_solve(rng, n):
    names = [
        s["name"] for s in pl.inv(pl.Dense(positive(rng, n, "f8"), "pos")).explain("dense").steps
    ]
    assert ("potri" in names) == (n == 33) and ("potrs" in names) == (n == 32)


def test_the_inverse_itself_by_its_routines(rng):
    a, p = pl.Dense(rng.standard_normal((80, 80))), pl.Dense(positive(rng, 80, "f8"), "pos")
    assert [s["name"] for s in pl.inv(a).explain("dense").steps] == ["getrf", "lu-inverse"]
    assert [s["name"] for s in pl.inv(p).explain("dense").steps] == ["potrf", "potri", "lu-inverse"]
    stack = rng.standard_normal((3, 70, 70))
    np.testing.assert_allclose(
        pl.inv(pl.Dense(stack)).toarray() @ stack, [np.eye(70)] * 3, atol=1e-9
    )
    ones = np.ones((70, 70))
    with pytest.raises(np.linalg.LinAlgError, match="pivot 2 of 70"):
        pl.inv(pl.Dense(ones)).toarray()
    with pytest.warns(pl.FallbackWarning):
        got = pl.inv(pl.Dense(-np.asarray(p), "pos")).toarray()
    np.testing.assert_allclose(got, -np.linalg.inv(np.asarray(p)), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_by_half_a_solve(rng, dtype):
    X, W = values(rng, (300, 150), dtype), positive(rng, 150, dtype)
    x, w = pl.Dense(X), pl.Dense(W, "pos")
    for op, plain in (
        (x @ pl.inv(x.H @ x + w) @ x.H, X @ np.linalg.inv(X.conj().T @ X + W) @ X.conj().T),
        (x @ pl.inv(w) @ x.H, X @ np.linalg.inv(W) @ X.conj().T),
    ):
        assert "trsm-squares" in [s["name"] for s in op.explain("diagonal").steps]
        close(op.diagonal(), np.diagonal(plain))
        close(op.diagonal(3), np.diagonal(plain, 3))


def test_diagonal_by_half_a_solve_where_the_assumption_is_false(rng):
    W, X = -positive(rng, 150, "f8"), rng.standard_normal((300, 150))
    op = pl.Dense(X) @ pl.inv(pl.Dense(W, "pos")) @ pl.Dense(X).T
    with pytest.warns(pl.FallbackWarning):
        got = op.diagonal()
    close(got, np.diagonal(X @ np.linalg.inv(W) @ X.T))


def test_trace_of_an_inverse_and_a_matrix(rng):
    K, D = positive(rng, 90, "f8"), rng.standard_normal((90, 90))
    op = pl.inv(pl.Dense(K, "pos")) @ pl.Dense(D)
    assert "potri" in [s["name"] for s in op.explain("trace").steps]
    close(op.trace(), np.trace(np.linalg.solve(K, D)))


@pytest.mark.parametrize("complex_", [False, True])
def test_the_half_of_a_hermitian_sum_is_factored(complex_):
    rng = np.random.default_rng(7)
    a, b, c = (
        rng.standard_normal((60, 40)) + 1j * complex_ * rng.standard_normal((60, 40)) for _ in "abc"
    )
    if not complex_:
        a, b, c = a.real.copy(), b.real.copy(), c.real.copy()
    A, B, C = pl.lazy(a), pl.lazy(b), pl.lazy(c)
    for f, gemms in [
        (lambda A, B, C: A @ B.T.conj() + B @ A.T.conj() + A @ A.T.conj(), 1),
        (lambda A, B, C: 2 * (A @ B.T.conj() + B @ A.T.conj()) - 3 * (A @ A.T.conj()), 1),
        (lambda A, B, C: A @ B.T.conj() + B @ A.T.conj() + A @ C.T.conj() + C @ A.T.conj(), 1),
    ]:
        formula = f(A, B, C)
        names = [s["name"] for s in pl.explain(formula).steps]
        assert names.count("gemm") == gemms and "syrk" not in names and "herk" not in names
        got = np.asarray(formula)
        np.testing.assert_allclose(got, f(a, b, c), atol=1e-12 * 40)
        np.testing.assert_array_equal(got, got.T.conj())
    # of a transpose that is no adjoint there are no halves
    formula = A @ B.T + B @ A.T + 1j * (A @ A.T.conj())
    np.testing.assert_allclose(
        np.asarray(formula), a @ b.T + b @ a.T + 1j * (a @ a.T.conj()), atol=1e-10
    )


@pytest.mark.parametrize(("n", "p"), [(2, 4), (40, 50)])
def test_a_shared_product_keeps_its_rank(n, p, rng):
    """What is computed once for two uses is as singular as it is written: LinAlgError."""
    X, y = pl.lazy(rng.standard_normal((n, p))), rng.standard_normal(n)
    a = rng.standard_normal((n, n))
    for A in (pl.lazy(a @ a.T + np.eye(n), "pos"), pl.lazy(a + 9 * np.eye(n))):
        inner = pl.inv(X.T @ pl.inv(A) @ X)
        for formula in (
            inner @ X.T @ pl.inv(A) @ y,
            y @ X @ inner @ X.T @ pl.inv(A) @ y,
            y - X @ inner @ X.T @ pl.inv(A) @ y,
            pl.trace(X @ inner @ X.T @ pl.inv(A)),
        ):
            with pytest.raises(np.linalg.LinAlgError, match=f"rank at most {n}, of {p} rows"):
                np.asarray(formula)
