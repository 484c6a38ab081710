"""Several results in one plan; formulas of vectors as one expression of columns."""

import gc

import numpy as np
import pytest
from drawn import DTYPES, Wide, close, positive, values

import pylinop as pl
from pylinop._lazy.program import planned

M, N = 30, 80


@pytest.fixture
def parts(rng, request):
    dtype = getattr(request, "param", "float64")
    p = {"A": values(rng, (M, N), dtype), "B": values(rng, (N, N), dtype)}
    p |= {"P": positive(rng, N, dtype), "R": positive(rng, M, dtype)}
    p |= {"x": values(rng, N, dtype), "y": values(rng, M, dtype), "z": values(rng, N, dtype)}
    lazy = {k: pl.lazy(a, "pos" if k in "PR" else None) for k, a in p.items()}
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    plain = {k: a.astype(wide).view(Wide) for k, a in p.items()}
    return (
        lazy | {"inv": pl.inv, "np": np, "a": p["x"][::-1]},
        plain
        | {"inv": lambda a: np.linalg.inv(a).view(Wide), "np": np, "a": p["x"][::-1].astype(wide)},
    )


GAIN = "P @ A.H @ inv(A @ P @ A.H + R)"
JOINT = [
    (f"x + {GAIN} @ (y - A @ x)", f"P - {GAIN} @ A @ P"),
    ("A @ A.H", "A @ A.H + R", "A @ x"),
    ("B @ B", "B @ B @ x", "x @ B @ B", "x @ B @ B @ x"),
    ("B - B", "B @ P"),
    ("inv(P) @ x", "x @ inv(P) @ x", "B @ inv(P) @ B.H", "inv(P)"),
    ("2 * B @ x - x", "(B @ x).T", "-(B @ (B @ x))"),
    ("np.exp(A @ x)", "A @ x", "(A @ x) * 2", "A @ (B @ x)"),
    ("A @ A.H", "(A @ A.H).trace()", "np.abs(A @ A.H)", "(A @ A.H)[0]"),
    ("B.T", "B", "B + P", "B[:3] @ P"),
    *[tuple(f"B @ P - {i}.0 * B" for i in range(1, 12))],
]


@pytest.mark.parametrize("parts", DTYPES, indirect=True)
@pytest.mark.parametrize("formulas", JOINT)
def test_several_results(parts, formulas):
    lazy, plain = parts
    got = pl.evaluate(*(eval(f, lazy) for f in formulas))
    for f, g in zip(formulas, got, strict=True):
        close(np.asarray(g), eval(f, plain))
        assert g.flags.writeable is False


def test_a_filter_step_is_one_plan(parts):
    lazy, _ = parts
    state, cov = (eval(f, lazy) for f in JOINT[0])
    with pl.explaining() as e:
        pl.evaluate(state, cov)
    assert len(e.plans) == 1
    names = [s["name"] for s in e.explanation.steps]
    assert names.count("potrf") == 1
    assert sum("gemm" in s for s in names if "getrs" not in s) <= 5
    assert ";" in str(e)


def test_values_are_kept_and_outlive_each_other(parts):
    lazy, plain = parts
    S, v = lazy["B"] @ lazy["P"], lazy["B"] @ (lazy["P"] @ lazy["x"])
    a, b = pl.evaluate(S, v)
    assert S._computed() is a and v._computed() is b
    del a, S
    gc.collect()
    close(b, plain["B"] @ plain["P"] @ plain["x"])
    again = pl.evaluate(v, v, v)
    assert all(x is b for x in again)


def test_operands_of_other_kinds_and_dtypes_join_as_far_as_they_can(rng):
    T, d = pl.Toeplitz(rng.standard_normal(20)), pl.Diag(rng.random(20) + 1)
    t, x = T.toarray(), rng.standard_normal(20)
    i8, f4 = np.arange(400).reshape(20, 20) % 7, rng.standard_normal((20, 20)).astype("f4")
    lt, ld, lx, li, lf = map(pl.lazy, (T, d, x, i8, f4))
    got = pl.evaluate(lt @ ld, lt @ (ld @ lx), li @ li, lf @ lf, lf @ lf @ lf, li @ lf)
    dd = d.toarray()
    want = (t @ dd, t @ dd @ x, i8 @ i8, f4 @ f4, f4 @ f4 @ f4, i8 @ f4)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-4 if w.dtype == "f4" else 1e-12, atol=1e-4)


def test_stacks_and_callables_do_not_join(rng):
    stack, b = rng.standard_normal((3, 5, 5)), rng.standard_normal((5, 5))
    op = pl.MatVec((5, 5), matvec=lambda v: 2 * v, dtype=float)
    s, l, o = pl.lazy(stack), pl.lazy(b), pl.lazy(op)
    got = pl.evaluate(s @ l, l @ l, o @ l, l @ l.T)
    for g, w in zip(got, (stack @ b, b @ b, 2 * b, b @ b.T), strict=True):
        np.testing.assert_allclose(g, w, atol=1e-12)


def test_an_error_in_one_names_its_line(rng):
    A = pl.lazy(np.ones((70, 70)))
    b = A @ A
    s = pl.inv(A) @ A.T
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix.*") as e:
        pl.evaluate(b, s)
    assert "test_several_results.py" in str(e.value)
    np.testing.assert_array_equal(b.toarray(), np.full((70, 70), 70.0))


# -- vectors --

DEEP = [
    "A @ (B @ x)",
    "(y @ A) @ B",
    "y @ A @ B @ x",
    "x @ inv(P) @ x",
    "x @ inv(P) @ z",
    "inv(P) @ (B @ x - 2 * z)",
    "A.H @ (y - A @ x) + x",
    "B @ (-(B @ (a + z)))",
    "B @ x + B.H @ x - 0.5 * (P @ x)",
    "P @ A.H @ inv(A @ P @ A.H + R) @ (y - A @ x) + z",
    "inv(A.H @ inv(R) @ A + inv(P)) @ A.H @ inv(R) @ (y - A @ x)",
    "B @ (np.exp(-np.abs(B @ x)) * z)",
    "B @ ((x @ z) * (B @ x))",
    "B @ (x + (B @ z)[::-1])",
    "(B @ (B @ x)) / 3.0",
    "(x @ B @ x) * (B @ (B @ x))",
]


@pytest.mark.parametrize("parts", DTYPES, indirect=True)
@pytest.mark.parametrize("formula", DEEP)
def test_formulas_of_vectors(parts, formula):
    lazy, plain = parts
    x = eval(formula, lazy)
    assert str(pl.explain(x))
    close(np.asarray(x), eval(formula, plain))


def test_a_formula_of_vectors_is_one_plan(parts):
    lazy, _ = parts
    x = eval("inv(A.T @ A + P) @ (A.T @ y - P @ inv(A.T @ A + P) @ (A.T @ y - x))", lazy)
    with pl.explaining() as e:
        x.toarray()
    assert len(e.plans) == 1
    assert [s["name"] for s in e.explanation.steps].count("potrf") == 1


def test_a_leaf_vector_is_one_leaf(parts):
    lazy, _ = parts
    q = eval("x @ inv(P) @ x", lazy)
    with pl.explaining() as e:
        float(np.real(q.toarray()))
    assert "trsm-syrk" in [s["name"] for s in e.explanation.steps]


def test_vectors_that_change_between_evaluations(rng):
    b, x = rng.standard_normal((9, 9)), rng.standard_normal(9)
    B, v = pl.lazy(b), pl.lazy(x)
    first = (B @ (B @ v)).toarray()
    np.testing.assert_allclose(first, b @ b @ x)
    x[0] += 1
    np.testing.assert_allclose((B @ (B @ v)).toarray(), b @ b @ x)
    np.testing.assert_allclose((B @ (B @ pl.lazy(x[::-1]))).toarray(), b @ b @ x[::-1])


@pytest.mark.parametrize("n", [0, 1])
def test_tiny_vectors(n):
    b, x = np.full((n, n), 2.0), np.full(n, 3.0)
    B, v = pl.lazy(b), pl.lazy(x)
    got = pl.evaluate(B @ (B @ v), v @ B @ v, v @ (B @ (B @ v)), B @ B)
    for g, w in zip(got, (b @ b @ x, x @ b @ x, x @ b @ b @ x, b @ b), strict=True):
        np.testing.assert_array_equal(g, w)


def test_long_chains_of_vectors(rng):
    b = rng.standard_normal((4, 4)) / 4
    x = rng.standard_normal(4)
    B, v, w = pl.lazy(b), pl.lazy(x), x
    for i in range(3000):
        v = B @ v + x if i % 2 else B @ v
        w = b @ w + x if i % 2 else b @ w
    np.testing.assert_allclose(v.toarray(), w, atol=1e-12)


def test_kinds_without_a_dtype_take_that_of_the_others(rng):
    x = rng.standard_normal((6, 3)).astype("f4")
    X, eye = pl.lazy(x), pl.Identity(3)
    for e in (X.T @ X + 0.5 * eye, eye + X.T @ X, X @ eye, pl.inv(X.T @ X + 2 * eye) @ X.T,
              (2 * pl.lazy(eye)).T + X.T @ X, X.T @ X - eye):  # fmt: skip
        assert e.dtype == e.toarray().dtype == np.float32
    assert (pl.lazy(eye) + pl.lazy(eye)).dtype == np.float64
    for e in (X.T @ X + 1j * pl.lazy(eye), X.T @ X + pl.lazy(1j * eye)):
        assert e.dtype == e.toarray().dtype == np.complex64


def test_planned_is_what_runs(rng):
    """The plans of several results, without computing them."""
    n = 40
    K = pl.lazy(positive(rng, n, "float64"), "pos")
    B = pl.lazy(rng.standard_normal((n, 3)))

    def asked():
        return [pl.lazy(pl.logdet(K)), np.diagonal(B.T @ (pl.inv(K) @ B)), pl.inv(K) @ B]

    [due] = planned(asked())
    assert [s["name"] for s in due.steps].count("potrf") == 1
    with pl.explaining() as e:
        pl.evaluate(*asked())
    [ran] = e.plans
    assert [s["name"] for s in due.steps] == [s["name"] for s in ran.steps]
    assert due.flops == ran.flops and due.took is None
    assert planned([pl.lazy(np.ones(3))]) == []
    with pytest.raises(TypeError, match="a list of what is asked"):
        pl._core._results_explained([])
    with pytest.raises(TypeError, match="not an operator"):
        pl._core._results_explained([(3, 0, 0, 0)])
