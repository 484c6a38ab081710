"""Several right-hand sides in one run, block conjugate gradients, flexible GMRES, assumptions, the
memory limit, and what explaining() writes down."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

TOGETHER = ("cg", "block_cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr")
DTYPES = ("float32", "float64", "complex64", "complex128")


def rng():
    return np.random.default_rng(5)


def laplacian(m):
    t = pl.Tridiagonal(-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1))
    return pl.KronSum(t, t)


def hermitian(n, dtype, indefinite=False):
    g = rng()
    a = g.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * g.standard_normal((n, n))
    q = np.linalg.qr(a)[0]
    d = np.linspace(1, 20, n)
    d[::4] *= -1 if indefinite else 1
    a = (q * d) @ q.conj().T
    return ((a + a.conj().T) / 2).astype(dtype)


def errors(a, x, b):
    return np.linalg.norm(a @ x - b, axis=-2) / np.linalg.norm(b, axis=-2)


def counted(a):
    """The matrix as callables, and the widths of the blocks they were given."""
    seen = []

    def times(m):
        def f(v):
            seen.append(v.shape[1] if v.ndim == 2 else 0)
            return m @ v

        return f

    n = a.shape[0]
    op = pl.MatVec((n, n), times(a), rmatvec=times(a.conj().T), matmat=times(a),
        rmatmat=times(a.conj().T), dtype=a.dtype)  # fmt: skip
    return op, seen


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", TOGETHER)
def test_columns_of_unlike_size_converge_each_alone(method, dtype):
    n = 48
    a = hermitian(n, dtype, indefinite=method == "minres")
    b = rng().standard_normal((n, 7)).astype(dtype)
    b[:, 1] *= 1e-6
    b[:, 2] = 0
    b[:, 3] *= 1e5
    b[:, 4] = b[:, 0]
    b[:, 5] = a @ np.ones(n, dtype)
    x = pl.solve(a, b, method=method)
    assert x.dtype == dtype and not x[:, 2].any()
    tight = 1e-10 if np.finfo(dtype).eps < 1e-10 else 1e-5
    keep = [0, 1, 3, 4, 5, 6]
    assert (errors(a, x[:, keep], b[:, keep]) <= 1.1 * tight).all()


@pytest.mark.parametrize("name", ["cg", "minres", "gmres", "bicgstab"])
def test_each_column_is_what_it_is_alone(name):
    a = laplacian(9)
    b = rng().standard_normal((81, 5))
    b[:, 1] = a @ np.ones(81)
    b[:, 2] = 0
    options = {"rtol": 1e-9} | ({} if name == "minres" else {"atol": 1e-12})
    for m in (None, pl.Diag(np.linspace(0.2, 0.4, 81))):
        x, info = found = getattr(pl, name)(a, b, M=m, **options)
        assert info == 0 and found.converged and x.shape == b.shape
        for j in range(5):
            alone = getattr(pl, name)(a, b[:, j], M=m, **options)
            # sums are taken in another order, which bicgstab amplifies
            np.testing.assert_allclose(x[:, j], alone[0], rtol=0, atol=1e-6)
            assert found.iterations >= alone.iterations - 2
        assert getattr(pl, name)(a, b, M=m, maxiter=2, **options)[1] == 2


@pytest.mark.parametrize("method", TOGETHER)
def test_one_product_an_iteration_for_all(method):
    a = hermitian(40, "float64")
    op, seen = counted(a)
    b = rng().standard_normal((40, 6))
    x = pl.solve(op, b, method=method)
    assert errors(a, x, b).max() <= 1e-10
    blocks = [w for w in seen if w]
    alone, count = counted(a)
    pl.solve(alone, b[:, 0], method=method)
    assert max(blocks) == 6 and len(blocks) < 2.5 * len(count)


@pytest.mark.parametrize("method", TOGETHER)
def test_a_bad_column_does_not_spoil_the_others(method):
    a = np.diag(np.r_[np.nan, np.arange(1.0, 8.0)])
    b = rng().standard_normal((8, 3))
    b[0, :2] = 0
    if method == "block_cg":  # which mixes the columns
        with pytest.raises(pl.ConvergenceError):
            pl.solve(a, b, method=method)
        return
    # A callable for which NaN stays where it is: 0 * NaN would be NaN in a dense product.
    d = np.diagonal(a)[:, None]

    def f(v):
        w = v if v.ndim == 2 else v[:, None]
        return np.where(w == 0, 0, d * w).reshape(v.shape)

    op = pl.MatVec((8, 8), f, rmatvec=f, matmat=f, rmatmat=f, dtype=float)
    with pytest.raises(pl.ConvergenceError, match="not finite") as caught:
        pl.solve(op, b, method=method)
    best = caught.value.best
    assert np.isfinite(best).all()
    np.testing.assert_allclose(best[1:, :2], b[1:, :2] / d[1:], rtol=1e-8)


def test_breakdown_of_one_column_in_c():
    a = np.diag([1.0, 2.0, -1.0, 3.0])
    b = np.eye(4)[:, [0, 2, 1]] * 2
    found = pl.cg(a, b, rtol=1e-12)
    np.testing.assert_allclose(found[0][:, [0, 2]], np.linalg.solve(a, b)[:, [0, 2]])
    turned = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 2]])
    side = np.array([[1.0, 0], [1, 0], [0, 4]])
    x, info = found = pl.bicgstab(turned, side)
    assert info == -11 and found.reason and x[2, 1] == pytest.approx(2) and np.isfinite(x).all()
    x, info = pl.minres(np.diag([1.0, 2, 0]), np.array([[1.0, 0], [2, 2], [0, 0]]), rtol=1e-10)
    np.testing.assert_allclose(x[:2], [[1, 0], [1, 1]], atol=1e-9)


def test_minres_begins_with_the_shifted_residual():
    a = hermitian(30, "float64", indefinite=True)
    b, x0 = rng().standard_normal((2, 30, 3))
    for j in (slice(None), 0):
        x, info = pl.minres(a, b[:, j], x0=x0[:, j], shift=0.2, rtol=1e-12)
        assert info == 0
        np.testing.assert_allclose((a - 0.2 * np.eye(30)) @ x, b[:, j], atol=1e-9)


def test_right_sides_of_a_batch_are_columns():
    a = hermitian(30, "float64")
    op, seen = counted(a)
    b = rng().standard_normal((2, 3, 30, 2))
    x = pl.solve(op, b, method="cg")
    assert x.shape == b.shape and errors(a, x, b).max() <= 1e-10
    assert 12 in seen and 2 not in seen
    x = pl.solve(op, b, method="minres", x0=np.ones((30, 1)))
    assert errors(a, x, b).max() <= 1e-10


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_least_squares_of_several_columns(method, dtype):
    g = rng()
    a = g.standard_normal((60, 9)).astype(dtype)
    b = g.standard_normal((60, 21)).astype(dtype)
    b[:, 3] = a @ np.arange(9)  # consistent
    b[:, 4] = 0
    b[:, 5] *= 1e4
    seen = []

    def f(m):
        return lambda v: (seen.append(v.shape), m @ v)[1]

    op = pl.MatVec((60, 9), f(a), rmatvec=f(a.conj().T), matmat=f(a), rmatmat=f(a.conj().T),
        dtype=dtype)  # fmt: skip
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    tight = {"rtol": 1e-2 if dtype == "float32" else 1e-6, "atol": 1e-3}
    found = pl.lstsq(op, b, method=method)
    np.testing.assert_allclose(found[0], want, **tight)
    assert max(s[1] for s in seen if len(s) == 2) == 64 // np.dtype(dtype).itemsize
    assert len(found.iterations) == 21 and found.problem[3] == "consistent"
    assert found.iterations[4] == 0
    alone = pl.lstsq(op, b[:, 0], method=method)
    np.testing.assert_allclose(found[0][:, 0], alone[0], **tight)
    assert found[1][0] == pytest.approx(alone[1][0], rel=1e-3)
    seen.clear()
    np.testing.assert_allclose(pl.lstsq(op, b, method=method, callback=lambda x: None)[0], want,
        **tight)  # fmt: skip
    damped = pl.lstsq(a, sp.csr_array(b[:, :3]), method=method, damp=0.5, x0=np.ones((9, 3)))
    full = np.concatenate([a, 0.5 * np.eye(9)])
    side = np.concatenate([b[:, :3], np.zeros((9, 3))])
    np.testing.assert_allclose(damped[0], np.linalg.lstsq(full, side, rcond=None)[0], **tight)
    with pytest.raises(pl.ConvergenceError, match="in column 0 in 2 iterations"):
        pl.lstsq(a, b, method=method, maxiter=2)
    b[7, 2] = np.nan
    with pytest.raises(pl.ConvergenceError, match="in column 2"):
        pl.lstsq(a, b, method=method)
    with pl.config(memory_limit=8000 * a.itemsize // 4):
        with pytest.raises(pl.MaterializationError, match=f"lstsq by {method}"):
            pl.lstsq(np.ones((5000, 2), dtype), np.ones((5000, 2)), method=method)


def test_sgd_says_that_a_row_is_not_finite():
    a = rng().standard_normal((40, 3))
    a[7, 1] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        pl.lstsq(a, np.ones(40), method="sgd", rng=0)


# -- block conjugate gradients --


def test_block_cg_takes_fewer_iterations_than_cg():
    a = laplacian(25)
    b = rng().standard_normal((625, 12))
    with pl.explaining() as e:
        x = pl.solve(a, b, method="block_cg")
        y = pl.solve(a, b, method="cg")
    assert errors(a, x, b).max() <= 1e-10
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-6)
    block, plain = (plan._data["iterations"] for plan in e.plans)
    assert block < 0.6 * plain


@pytest.mark.parametrize("dtype", DTYPES)
def test_block_cg_of_dependent_columns(dtype):
    a = hermitian(30, dtype)
    b = rng().standard_normal((30, 4)).astype(dtype)
    b = np.concatenate([b, b @ np.ones((4, 3), dtype), np.zeros((30, 1), dtype)], axis=1)
    op, seen = counted(a)
    x = pl.solve(op, b, method="block_cg")
    np.testing.assert_allclose(a @ x, b, atol=1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-8)
    # 4 directions; the checks' products have 8, after the first pass fewer
    assert seen.count(4) > 3 and seen.count(8) <= 2


@pytest.mark.parametrize("shape", [(5, 8), (1, 1), (3, 1), (4, 0), (0, 3), (6,), (0,)])
def test_block_cg_of_few_rows(shape):
    n = shape[0]
    a = hermitian(n, "float64") if n else np.zeros((0, 0))
    b = rng().standard_normal(shape)
    x = pl.solve(a, b, method="block_cg")
    assert x.shape == b.shape
    np.testing.assert_allclose(a @ x, b, atol=1e-8)


def test_block_cg_with_a_preconditioner():
    g = rng()
    a = laplacian(20) + pl.Diag(np.logspace(0, 4, 400))
    b = g.standard_normal((400, 8))
    with pl.explaining() as e:
        x = pl.solve(a, b, method="block_cg", M="jacobi")
        pl.solve(a, b, method="block_cg")
    assert errors(a, x, b).max() <= 1e-10
    shaped, plain = (p._data["iterations"] for p in e.plans if p._data["action"] == "solve")
    assert shaped < plain / 2
    seen = []
    pl.solve(a, b, method="block_cg", M="jacobi", callback=seen.append, progress=lambda i, r: None)
    assert len(seen) == shaped and seen[0].shape == b.shape
    np.testing.assert_allclose(seen[-1], x, rtol=1e-6, atol=1e-12)
    seen.clear()
    pl.solve(a, b[:, 0], method="block_cg", M="jacobi", callback=seen.append)
    assert seen[0].shape == (400,)


def test_block_cg_says_what_is_not_definite():
    b = rng().standard_normal((6, 2))
    with pytest.raises(pl.ConvergenceError, match="not positive definite"):
        pl.solve(np.diag([1.0, 2, 3, -4, 5, -6]), b, method="block_cg")
    with pytest.raises(pl.ConvergenceError, match="not Hermitian"):
        pl.solve(np.triu(np.full((6, 6), 3.0)), b, method="block_cg")
    with pytest.raises(pl.ConvergenceError, match="M is not positive definite"):
        pl.solve(hermitian(6, "float64"), b, method="block_cg", M=-np.eye(6))
    with pytest.raises(pl.ConvergenceError):
        pl.solve(np.diag([1.0, 2, 3, 4, 5, np.nan]), b, method="block_cg")

    def broken(v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pl.solve(pl.MatVec((6, 6), broken, dtype=float), b, method="block_cg")


def test_block_cg_of_an_ill_conditioned_matrix():
    d = np.logspace(0, 8, 300)
    b = rng().standard_normal((300, 10))
    x = pl.solve(pl.Diag(d), b, method="block_cg", maxiter=20000)
    assert errors(np.diag(d), x, b).max() <= 1e-10


# -- flexible gmres --


def general(n, dtype="float64"):
    g = rng()
    a = g.standard_normal((n, n)) / np.sqrt(n) + 3 * np.eye(n)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * g.standard_normal((n, n)) / np.sqrt(n)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fgmres(dtype):
    a = general(60, dtype) + np.diag(np.linspace(0, 50, 60)).astype(dtype)
    b = (a @ np.ones(60)).astype(dtype)
    tight = 1e-10 if np.finfo(dtype).eps < 1e-10 else 1e-5
    m = pl.Diag(1 / np.diagonal(a))
    for given in (None, m):
        x = pl.solve(a, b, method="fgmres", M=given)
        assert x.dtype == dtype and np.linalg.norm(a @ x - b) <= 1.1 * tight * np.linalg.norm(b)
    b = np.stack([b, 2j * b if dtype.startswith("c") else -b, np.zeros_like(b)], axis=1)
    x = pl.solve(a, b, method="fgmres", M=m)
    assert not x[:, 2].any() and errors(a, x[:, :2], b[:, :2]).max() <= 1.1 * tight


def test_fgmres_takes_a_preconditioner_that_changes():
    a = laplacian(20)
    b = rng().standard_normal(400)
    calls = []

    def inner(v):
        calls.append(1)
        return pl.cg(a, v, rtol=[0.1, 0.5, 0.02][len(calls) % 3])[0]

    with pl.explaining() as e:
        x = pl.solve(a, b, method="fgmres", M=inner)
        pl.solve(a, b, method="fgmres")
    assert np.linalg.norm(a @ x - b) <= 1e-10 * np.linalg.norm(b)
    with_m, without = (plan._data["iterations"] for plan in e.plans)
    assert 3 < with_m == len(calls) < without / 4
    with pytest.raises(ValueError, match="shape"):
        pl.solve(a, b, method="fgmres", M=np.eye(3))


# -- assumptions, sparse and lazy operands --


def test_an_assumption_chooses_the_method():
    a, b = hermitian(30, "float64"), rng().standard_normal(30)

    def methods(*args, **kwargs):
        with pl.explaining() as e:
            x = pl.solve(*args, method="iterative", **kwargs)
        assert np.linalg.norm(a @ x - b) <= 1e-10 * np.linalg.norm(b)
        return e.plans[-1]

    sparse = pl.Sparse(sp.csr_array(a))
    assert "cg (A is said to be 'pos')" in methods(sparse, b, assume_a="pos")
    assert "minres (A is said to be 'sym')" in methods(sparse, b, assume_a="sym")
    assert "minres (A is said to be 'her')" in methods(a, b, assume_a="her")
    assert "cg (A is said to be 'pos')" in methods(pl.Dense(a, assume_a="pos"), b)
    assert "cg (A looks Hermitian" in methods(a, b)
    assert "cg (A looks Hermitian" in methods(a, b, assume_a="gen")
    with pytest.raises(ValueError, match="assume_a='xx'"):
        pl.solve(sparse, b, assume_a="xx", method="iterative")
    assert "said to be 'pos'" in sparse.explain(
        "solve", b, method="iterative", assume_a="pos", run=True
    )


def test_a_false_assumption_is_told():
    a = np.diag([1.0, -2.0, 3.0])
    with pytest.warns(pl.FallbackWarning, match="assume_a='pos', but"):
        x = pl.solve(pl.Sparse(sp.csr_array(a)), np.ones(3), assume_a="pos", method="iterative")
    np.testing.assert_allclose(x, [1, -0.5, 1 / 3])
    c = np.array([[2, 1j], [1j, 3]])  # symmetric, not Hermitian
    x = pl.solve(pl.Sparse(sp.csr_array(c)), np.ones(2), assume_a="sym", method="iterative")
    np.testing.assert_allclose(c @ x, 1, atol=1e-9)


@pytest.mark.parametrize("method", ["cg", "block_cg", "gmres", "fgmres", "iterative"])
def test_sparse_and_lazy_operands(method):
    a, b = hermitian(12, "float64"), rng().standard_normal((12, 3))
    want = np.linalg.solve(a, b)
    for side in (sp.csr_array(b), sp.coo_array(b)):
        x = pl.solve(sp.csr_array(a), side, method=method)
        assert type(x) is np.ndarray
        np.testing.assert_allclose(x, want, rtol=1e-7)
    x = pl.solve(a, sp.coo_array(b[:, 0]), method=method)
    assert x.shape == (12,)
    for left, right in ((pl.lazy(a), b), (a, pl.lazy(b)), (pl.lazy(a), pl.lazy(b))):
        x = pl.solve(left, right, method=method)
        assert isinstance(x, pl.LazyArray)
        np.testing.assert_allclose(x, want, rtol=1e-7)


@pytest.mark.parametrize("name", ["cg", "minres", "gmres", "bicgstab", "lsqr", "lsmr"])
def test_scipys_names_take_sparse_columns_and_refuse_what_is_no_number(name):
    a, b = hermitian(8, "float64"), np.ones((8, 1))
    x = getattr(pl, name)(a, sp.csr_array(b))[0]
    np.testing.assert_allclose(a @ x, b[:, 0], atol=1e-3)
    for wrong in (np.array([None] * 8), np.array(["a"] * 8)):
        with pytest.raises(TypeError, match="numbers"):
            getattr(pl, name)(a, wrong)
        with pytest.raises(TypeError, match="numbers"):
            pl.solve(a, wrong, method=name)


def test_arguments_that_were_taken_silently():
    a, b = hermitian(6, "float64"), np.ones(6)
    for method in ("cg", "block_cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr"):
        with pytest.raises(pl.ConvergenceError, match="not finite"):
            pl.solve(a, np.r_[np.inf, np.ones(5)], method=method)
        with pytest.raises(ValueError, match="maxiter must be 0 or more, got -1"):
            pl.solve(a, b, method=method, maxiter=-1)
        with pytest.raises(ValueError, match=r"x0 has shape \(2,\), the solution \(6,\)"):
            pl.solve(a, b, method=method, x0=np.ones(2))
        x = pl.solve(a, b, method=method, x0=np.ones((6, 1)))
        np.testing.assert_allclose(a @ x, b, atol=1e-9)


# -- memory, and what is said --


@pytest.mark.parametrize("method", ["cg", "block_cg", "minres", "gmres", "fgmres", "bicgstab",
                                    "lsqr", "lsmr"])  # fmt: skip
def test_the_memory_limit_counts_the_vectors(method):
    n, k = 5000, 4
    a, b = pl.Diag(np.linspace(1, 2, n)), np.ones((n, k))
    said = a.explain("solve", b, method=method)
    assert "bytes at most, beside a product's" in said and said.memory > 8 * n * k
    with pl.explaining() as e:
        pl.solve(a, b, method=method)
    stated = e.plans[-1].memory
    with pl.config(memory_limit=8 * n * k * 6):
        with pytest.raises(pl.MaterializationError, match=f"solve by {method} .* bytes"):
            pl.solve(a, b, method=method)
    wide = a.astype(np.float32)
    assert (
        said.memory
        < 2
        * wide.explain(
            "solve", b.astype("f"), method=method, M=None if method[0] == "l" else a
        ).memory
        + 2**20
    )  # M's dtype counts
    with pl.config(memory_limit=stated):
        x = pl.solve(a, b, method=method)
    assert errors(np.diag(np.linspace(1, 2, n)[:4]), x[:4], b[:4]).max() <= 1e-9


_PEAK = """
import sys, numpy as np, pylinop as pl

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

n, k = 150_000, 4
b = np.random.default_rng(0).standard_normal((n, k))
for method in sys.argv[1:]:
    a = pl.Diag(np.linspace(1, 2, n))
    pl.solve(pl.Diag(np.linspace(1, 2, 99)), np.ones((99, k)), method=method)
    stated = a.explain("solve", b, method=method).memory
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    pl.solve(a, b, method=method, rtol=1e-4)
    peak = status("VmHWM") - before
    assert 4 * b.nbytes < peak <= stated, (method, peak, stated)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")
@pytest.mark.no_asan  # peaks of the process
def test_the_stated_memory_is_kept():
    methods = ["block_cg", "minres", "lsmr"]
    ran = subprocess.run([sys.executable, "-c", _PEAK, *methods], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_explaining_writes_a_solve_down_as_one():
    a, b = laplacian(10), rng().standard_normal((100, 3))
    with pl.explaining() as e:
        a @ b
        pl.solve(a, b, method="cg", M="jacobi")
        with pytest.raises(pl.ConvergenceError):
            pl.solve(a, b, method="minres", maxiter=2)
    cg, minres = e.plans[-2:]  # before them the product, and the diagonal
    assert len(e.plans) == 4
    for text in ("method    cg (named)", "jacobi", "products", "by the residual", "bytes at most"):
        assert text in cg
    assert cg.steps[0]["name"] == "cg" and cg.took > 0 and cg.flops > 0 and cg.memory > 0
    assert "not converged" in minres
    assert "cg" in e.explanation and e._repr_html_()
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]])
    with pl.explaining() as e:
        pl.solve(pl.MatVec((2, 2), lambda v: turned @ v, dtype=float), np.ones(2),
                 method="iterative")  # fmt: skip
    assert "gmres (A is not Hermitian" in e.plans[-1]


def test_explain_shows_the_choice_where_the_dense_form_is_too_large():
    n = 3000
    a = pl.Toeplitz(np.r_[4.0, 1.0, np.zeros(n - 2)]) + pl.Diag(np.linspace(1, 5, n))
    assert "would pass the memory limit" not in a.explain("solve", np.ones(n))
    with pl.config(memory_limit=1 << 21):
        assert "would pass the memory limit" in a.explain("solve", np.ones(n))
        x = pl.solve(a, np.ones(n))
    assert np.linalg.norm(a @ x - 1) < 1e-10 * np.sqrt(n)


def test_nothing_is_left_behind():
    from pylinop import _core

    a, b = hermitian(9, "float64"), np.ones((9, 2))
    before = _core.live()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (*TOGETHER, "fgmres"):
            pl.solve(pl.Dense(a), b, method=method, M=None if method[0] == "l" else pl.Identity(9))
    _core._clear_store()
    assert _core.live() <= before
