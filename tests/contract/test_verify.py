"""Verified answers: right ones pass, of all kinds, composites, dtypes and batches; wrong ones of
every kind of result are found."""

import threading

import numpy as np
import pytest
import ref
import samples

import pylinop as pl
from pylinop._verify import compare

DTYPES = ref.FLOATS + ref.INTS


@pytest.fixture(autouse=True)
def verified():
    with pl.config(verify=True):
        compare.tally.clear()
        compare.strict = True
        yield
        compare.perturb = None


def asked(op, rng, dtype):
    """All that plans answer of one operator, one after the other."""
    m, n = op.shape[-2:]
    yield lambda: op @ samples.values(rng, (n, 3), dtype)
    yield lambda: op.T @ samples.values(rng, (m,), dtype)
    yield lambda: op.H @ samples.values(rng, (m, 1), dtype)
    yield lambda: op.conj() @ samples.values(rng, (n,), dtype)
    yield lambda: samples.values(rng, (2, m), dtype) @ op
    yield lambda: op.toarray()
    yield lambda: op.diagonal(1)
    yield lambda: op.diagonal()
    if m and n:
        yield lambda: op[..., m - 1, 0]
    if m == n:
        yield lambda: op.trace()
        yield lambda: pl.slogdet(op)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ref.LEAVES)
def test_every_kind_passes(kind, dtype, rng):
    made = 0
    for m, n, batch in ((5, 5, ()), (6, 4, ()), (4, 6, (2,)), (8, 8, (3,)), (1, 1, ()), (0, 3, ())):
        d = samples.leaf(kind, rng, m, n, dtype, batch)
        if d is None:
            continue
        made += 1
        for ask in asked(ref.build(d), rng, dtype):
            ask()
    if made and kind != "MatVec":
        assert compare.tally["apply", "verified"] >= made


@pytest.mark.parametrize("kind", ref.LEAVES)
def test_larger_ones_pass_by_projections(kind, rng):
    """Beyond what is compared in full; the sizes where kinds go by FFT."""
    d = samples.leaf(kind, rng, 144, 144, "float64", (), "C", True)
    d = d or samples.leaf(kind, rng, 144, 144, "float64")
    op = ref.build(d)
    for ask in asked(op, rng, "float64"):
        ask()
    op @ rng.standard_normal((144, 144))
    if kind not in ("Zeros", "Full", "LowRank", "Root", "Eigen", "Congruence", "KhatriRao"):
        if kind != "MatVec" and np.linalg.matrix_rank(op.toarray()) == 144:
            pl.solve(op, rng.standard_normal((144, 3)))


@pytest.mark.parametrize("n", [600, 5000])
def test_large_kinds_pass_where_nothing_dense_is_made(n, rng):
    x, k = rng.standard_normal(n), rng.standard_normal(n // 3)
    kinds = [
        pl.Toeplitz(x, np.r_[x[0], k]),
        pl.Hankel(x, np.r_[x[-1], k]),
        pl.Circulant(x),
        pl.Circulant(x.reshape(-1, 8), 2),
        pl.Convolution(k, n, "full"),
        pl.Convolution(k, n, "same"),
        pl.Convolution(k, n, "valid"),
        pl.Convolution(k, n, "circular"),
        pl.Diag(x),
        pl.Tridiagonal(x[1:], x, x[1:]),
        pl.Householder(x),
        pl.Permutation(rng.permutation(n)),
        pl.FiniteDifference(n, 2),
        pl.Laplacian((8, n // 8), dtype="float64"),
    ]
    for op in [*kinds, pl.Toeplitz(x + 1j * x[::-1])]:
        for A in (op, op.T, op.H, op.conj()):
            A @ rng.standard_normal(A.shape[1])
        op @ rng.standard_normal((op.shape[1], 7))
    assert all(said == "verified" for _, said in compare.tally), compare.tally
    for op in kinds[:8]:
        compare.perturb = lambda action, y: last_wrong(y)
        with pytest.raises(pl.VerificationError):
            op @ rng.standard_normal(op.shape[1])
        compare.perturb = None


def operands(rng, n):
    a, b = rng.standard_normal((2, n, n))
    x = rng.standard_normal(n)
    yield "dense", pl.Dense(a)
    yield "definite", pl.Dense(a @ a.T + n * np.eye(n), assume_a="pos")
    yield "complex", pl.Dense(a + 1j * b)
    yield "single", pl.Dense(a.astype("f4")) @ pl.Dense(b.astype("f4"))
    yield "toeplitz", pl.Toeplitz(np.r_[4.0, x[1:] / n])
    yield "circulant", pl.Circulant(np.r_[4.0, x[1:] / n])
    yield "woodbury", pl.Diag(abs(x) + 1) + pl.LowRank(a[:, :3])
    yield "kron", pl.Kron(a[: n // 10, : n // 10], b[:10, :10])
    yield "bands", pl.Tridiagonal(x[1:], x + 8, x[:-1])
    yield "sum", pl.Dense(a) + pl.Toeplitz(x) - pl.Dense(b)
    yield "product", pl.Dense(a) @ pl.Dense(b) @ pl.Diag(x)
    yield "blocks", pl.BlockDiag(a, b)
    yield "hankel", pl.Hankel(x, x[::-1])
    yield "multiple", 3.5 * pl.Dense(a) - 2 * pl.Identity(n)
    yield "kernel", pl.Kernel("rbf", a[:, :2]) + pl.Identity(n)
    yield "hadamard", pl.HadamardProduct(a, b)
    yield "near singular", pl.Dense(a[:, :1] @ b[:1] + 1e-12 * np.eye(n))


@pytest.mark.parametrize("n", [30, 90])
def test_expressions_and_solves_pass(n, rng):
    for _, op in operands(rng, n):
        size = op.shape[0]
        x, X = rng.standard_normal(size), rng.standard_normal((size, 40))
        asks = [
            lambda op=op, x=x: pl.solve(op, x),
            lambda op=op, X=X: pl.solve(op.T, X),
            lambda op=op: pl.inv(op).toarray(),
            lambda op=op, x=x: (pl.inv(op) @ op.T @ op) @ x,
            lambda op=op, x=x: (op @ pl.inv(op) @ op.T) @ x,
            lambda op=op: (op + pl.inv(op)).toarray(),
            lambda op=op: (op @ op).trace(),
            lambda op=op: (pl.inv(op) @ op.T).trace(),
            lambda op=op: pl.inv(op).diagonal(),
            lambda op=op: pl.slogdet(op @ op),
        ]
        with np.errstate(all="ignore"):
            for ask in asks:
                ask()
    assert compare.tally["apply", "verified"] and compare.tally["dense", "verified"]
    assert all(said == "verified" for _, said in compare.tally), compare.tally


def test_functions_that_plan_more_than_once_pass(rng):
    a = rng.standard_normal((40, 40))
    A = pl.Kron(pl.Dense(a[:5, :5] @ a[:5, :5].T + np.eye(5), assume_a="pos"), pl.Identity(8))
    b = rng.standard_normal(40)
    pl.inv_quad_logdet(A, b)
    pl.lstsq(pl.Dense(a[:, :7]), b)
    pl.cholesky(A), pl.eigh(A), pl.svdvals(A), pl.expm(A), pl.pinv(A)
    assert compare.tally["apply", "verified"]


# -- wrong results are found --

N = 40


def results(rng):
    """One result of every kind: (name, how to compute it)."""
    a, b = rng.standard_normal((2, N, N))
    big, other = rng.standard_normal((2, 260, 260))
    A, B = pl.Dense(a), pl.Dense(b)
    spd = pl.Dense(a @ a.T + N * np.eye(N), assume_a="pos")
    x = rng.standard_normal(N)
    yield "vector", lambda: A @ x
    yield "from the left", lambda: x @ A
    yield "adjoint", lambda: (A + 1j * B).H @ x
    yield "matrix", lambda: (A @ B) @ b
    yield "batch", lambda: pl.Dense(np.stack([a, b])) @ x
    yield "projected", lambda: (pl.Dense(big) @ pl.Dense(other)) @ big
    yield "dense", lambda: (A @ B + A).toarray()
    yield "dense, projected", lambda: (pl.Dense(big) @ pl.Dense(other)).toarray()
    yield "solve", lambda: pl.solve(spd, x)
    yield "solve, projected", lambda: pl.solve(pl.Dense(big), other)
    yield "inverse", lambda: pl.inv(A).toarray()
    yield "inverse in a product", lambda: (B @ pl.inv(A)) @ x
    yield "toeplitz", lambda: pl.solve(pl.Toeplitz(np.r_[4.0, x[1:] / N]), x)
    yield "fft", lambda: pl.Circulant(big[0]) @ big
    yield "kron", lambda: pl.Kron(a[:4, :4], b) @ rng.standard_normal((4 * N, 3))
    yield "diagonal", lambda: (A @ B).diagonal()
    yield "trace", lambda: (A @ B).trace()
    yield "trace of an inverse", lambda: (pl.inv(spd) @ A).trace()
    yield "element", lambda: (A @ B)[3, 4]
    yield "determinant", lambda: pl.logdet(spd)
    yield "complex", lambda: (A + 1j * B) @ (x + 1j * x)


def scaled(y):
    y *= 1 + 1e-8


def negated(y):
    y *= -1


def last_wrong(y):
    y[(..., -1) if y.ndim else ()] += abs(y).max() * 1e-6


@pytest.mark.parametrize("fault", [scaled, negated, last_wrong])
@pytest.mark.parametrize("name", [name for name, _ in results(np.random.default_rng(0))])
def test_a_wrong_result_is_found(name, fault, rng):
    compute = dict(results(rng))[name]
    compute()
    compare.perturb = lambda action, y: fault(y)
    with pytest.raises(pl.VerificationError, match="not that of the expression as written"):
        compute()


def test_wrong_integers_are_found(rng):
    a = rng.integers(-99, 99, (200, 200))
    for A, x in ((pl.Dense(a), a), (pl.Dense(a[:9, :9]), a[:9]), (pl.Dense(a > 0), a > 0)):
        A @ x

        def wrong(action, y):
            y[..., -1, -1] ^= 1

        compare.perturb = wrong
        if A.dtype != bool:  # of truth values some columns are compared
            with pytest.raises(pl.VerificationError):
                A @ x
        compare.perturb = None


def test_integers_within_a_float_expression_do_not_wrap(rng):
    """What the number 0.5 makes float64 is float64 from its leaves on."""
    x = np.array([200, 100, 7], np.uint8)
    op = 0.5 * pl.FiniteDifference(3, 1, "forward", "zero")
    np.testing.assert_array_equal(op @ x, op.toarray() @ x)
    assert compare.tally["apply", "verified"]


def test_traces_of_large_products_take_one_pass(rng):
    a, b = rng.standard_normal((2, 700, 700))
    P = 2 * pl.Dense(a) @ pl.Dense(b) + pl.Dense(a).T - pl.Dense(b).T @ pl.Dense(a)
    P.trace()
    assert compare.tally["trace", "verified"] == 1
    for fault in (last_wrong, negated):
        compare.perturb = lambda action, y, fault=fault: fault(y)
        with pytest.raises(pl.VerificationError):
            P.trace()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_reflections_by_vectors_whose_squares_leave_the_range(scale, rng):
    v = scale * np.concatenate([rng.standard_normal((4, 5)), np.zeros((1, 5))])
    with pl.config(verify=True):
        for op in (pl.Householder(v[:4]), pl.Reflections(v.T, 5), pl.Reflections(1j * v.T, 5)):
            for seen in (op, op.T, op.H):
                found = np.asarray(seen.toarray())
                assert np.allclose(found @ found.mT.conj(), np.eye(5))


def test_single_precision_is_judged_by_its_own_unit(rng):
    A = pl.Dense(rng.standard_normal((50, 50)).astype("f4"))
    x = rng.standard_normal(50).astype("f4")
    A @ x
    compare.perturb = lambda action, y: y.__imul__(np.float32(1.01))
    with pytest.raises(pl.VerificationError):
        A @ x


# -- LazyArrays --


def formulas(rng, dtype=float):
    """(name, how to build a formula): of matrices, vectors and numbers."""
    a, b, c = (samples.values(rng, (N, N), dtype) for _ in range(3))
    x, y = (samples.values(rng, (N,), dtype) for _ in range(2))
    A, B, C, u, v = (pl.lazy(z) for z in (a, b, c, x, y))
    D = pl.Diag(abs(x) + 1)
    yield "product", lambda: A @ B @ C
    yield "sum", lambda: A - B + C
    yield "gram", lambda: A.T @ A + 2 * B
    yield "solve", lambda: pl.inv(A) @ B
    yield "vector solve", lambda: pl.inv(A @ B) @ u
    yield "from the left", lambda: u @ pl.inv(A)
    yield "ridge", lambda: pl.inv(A.T @ A + 3.0 * np.eye(N)) @ A.T @ v
    yield "deep", lambda: A @ (B @ u) + C @ (A @ v) - u
    yield "dot", lambda: u @ (A @ B @ v)
    yield "with an operator", lambda: A @ D + D @ B
    yield "over a number", lambda: (A + B) / 3.0
    yield "over a dot", lambda: (A + B) / (u @ u)
    yield "multiple by a dot", lambda: (u @ v) * (A @ B)
    yield "element", lambda: (A @ B)[3, 4]
    yield "row", lambda: (A @ B)[3]
    yield "inverse in a sum", lambda: A + pl.inv(B)
    yield "view", lambda: (A @ B).conj().T @ C
    yield "trace", lambda: (A @ B).trace()
    yield "diagonal", lambda: (A @ B).diagonal()
    yield "numpy within", lambda: np.exp(A / 9) @ B
    yield "norm", lambda: np.sum((A @ u - v) ** 2)


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("name", [name for name, _ in formulas(np.random.default_rng(0))])
def test_formulas_pass(name, dtype, rng):
    dict(formulas(rng, dtype))[name]().toarray()
    assert any(said == "verified" for _, said in compare.tally), compare.tally
    assert not any("not verified" in said for _, said in compare.tally), compare.tally


@pytest.mark.parametrize("fault", [scaled, negated, last_wrong])
@pytest.mark.parametrize("name", [name for name, _ in formulas(np.random.default_rng(0))])
def test_a_wrong_formula_is_found(name, fault, rng):
    a = dict(formulas(rng))[name]()
    compare.perturb = lambda action, y: fault(y)
    with pytest.raises(pl.VerificationError):
        a.toarray()
    compare.perturb = None
    a.toarray()  # nothing wrong was kept


def test_the_error_of_a_formula_shows_its_plan(rng):
    A, B = (pl.lazy(v) for v in rng.standard_normal((2, 5, 5)))
    e = A @ B + A
    e._args[0]._form = pl.Dense(np.eye(5))  # as if the product's form were wrong
    with pytest.raises(pl.VerificationError, match="test_verify.py") as caught:
        e.toarray()
    assert "(A0 @ B1) + A0" in str(caught.value) or "A0 @ A1 + A0" in str(caught.value)
    assert "gemm" in caught.value.plan or "add" in caught.value.plan


def test_a_wrong_form_of_a_formula_is_found(rng, monkeypatch):
    """A formula is compared as it was written, not the operator that was made of it."""
    A, B = (pl.lazy(v) for v in rng.standard_normal((2, 5, 5)))
    e = A @ B
    f = A - B
    e._args[0]._form = pl.Dense(np.asarray(B))  # as if A's form were B's
    with pytest.raises(pl.VerificationError, match=r"'evaluate'.*\n  in: A0 @ A1  \(5, 5\)"):
        e.toarray()
    with pytest.raises(pl.VerificationError):
        f.toarray()


def test_several_at_once_pass_and_are_found(rng):
    a, b = rng.standard_normal((2, N, N))
    A, B, u = pl.lazy(a), pl.lazy(b), pl.lazy(a[0])

    def several():
        S = A @ B
        return S @ A, S + B, S @ u, pl.inv(S) @ u, S.trace(), np.exp(S @ u)

    pl.evaluate(*several())
    assert compare.tally["evaluate", "verified"] >= 4
    for fault in (scaled, negated, last_wrong):
        compare.perturb = lambda action, y, fault=fault: fault(y)
        with pytest.raises(pl.VerificationError):
            pl.evaluate(*several())
    compare.perturb = None


def test_integer_formulas_pass(rng):
    for dtype in ref.INTS:
        a, b = (samples.values(rng, (7, 7), dtype) for _ in range(2))
        A, B = pl.lazy(a), pl.lazy(b)
        for e in (A @ B, A + B, (A @ B)[2, 3], A @ B @ pl.lazy(a[0]), (A @ B).trace()):
            e.toarray()


def test_stacks_and_long_formulas_pass(rng):
    A, B = (pl.lazy(v) for v in rng.standard_normal((2, 3, 6, 6)))
    x = rng.standard_normal(6)
    for e in (A @ B, A + B @ A, pl.inv(A) @ B, A @ x, (A @ B)[1]):
        e.toarray()
    e = pl.lazy(rng.standard_normal((3, 3)))
    for i in range(3000):
        e = e + np.eye(3) if i % 2 else -e
    e.toarray()


def test_a_formula_says_what_was_verified(rng):
    A = pl.lazy(rng.standard_normal((9, 9)))
    with pl.explaining() as e:
        (A @ A + A).toarray()
    assert "verified in full" in str(e)
    assert e.verified and e.verified[0]["ratio"] < 1


# -- what the error and the explanation say --


def test_the_error_says_what_is_needed(rng):
    A = pl.Dense(rng.standard_normal((6, 6))) @ pl.Dense(np.eye(6))
    compare.perturb = lambda action, y: negated(y)
    with pytest.raises(pl.VerificationError) as caught:
        A @ np.ones(6)
    text = str(caught.value)
    assert "Product (6, 6) of [Dense (6, 6), Dense (6, 6)]" in text
    assert "test_verify.py" in text and "pl.Dense(rng.standard_normal((6, 6)))" in text
    assert "steps" in text and "gemm" in text and "report" in text
    assert caught.value.error > 1 > caught.value.allowed > 0
    assert "gemm" in caught.value.plan
    assert isinstance(caught.value, ArithmeticError)


def test_explaining_says_what_was_verified(rng):
    A = pl.Dense(rng.standard_normal((6, 6)))
    with pl.explaining() as e:
        A @ np.ones(6)
        pl.solve(A, np.ones(6))
        pl.slogdet(pl.Diag(-np.ones(3000)))
    assert "verified  verified in full, error at most" in str(e.plans[0])
    assert "by the residual" in str(e.plans[1])
    assert "not verified: a determinant of 3000 rows" in str(e)


# -- manners --


def test_out_may_be_the_operand(rng):
    a = rng.standard_normal((9, 9))
    x = rng.standard_normal((9, 9))
    want = a @ x
    got = pl.Dense(a).matmat(x, out=x)
    assert got is x
    np.testing.assert_allclose(x, want, rtol=1e-12)
    b = a.copy()
    got = pl.Dense(a).matmat(b, out=a)  # into the operator's own memory
    np.testing.assert_allclose(a, b @ b, rtol=1e-12, atol=1e-12)


def test_a_wrong_result_leaves_out_alone(rng):
    A, out = pl.Dense(rng.standard_normal((9, 9))), np.full(9, 7.0)
    compare.perturb = lambda action, y: negated(y)
    with pytest.raises(pl.VerificationError):
        A.matvec(np.ones(9), out=out)
    assert (out == 7).all()


def test_callables_are_called_once(rng):
    calls = []
    a = rng.standard_normal((6, 6))

    def matvec(x):
        calls.append(1)
        return a @ x

    op = pl.MatVec((6, 6), matvec, dtype=float) + pl.Dense(a) @ pl.Dense(a)
    op @ np.ones(6)
    assert len(calls) == 1
    assert compare.tally["apply", "verified"] == 1  # the part that a plan computed


def test_nan_and_inf_pass(rng):
    a = rng.standard_normal((300, 300))
    a[3, 4], a[8, 8] = np.nan, np.inf
    A = pl.Dense(a)
    A @ np.ones(300)
    A @ a
    A.toarray()
    A.trace(), A.diagonal()
    (0 * A) @ np.ones(300)
    (A - A) @ np.ones(300)
    compare.perturb = lambda action, y: y.__setitem__((5, 5), np.nan)
    with pytest.raises(pl.VerificationError):
        pl.Dense(np.ones((9, 9))) @ np.ones((9, 9))


def test_written_to_between_calls(rng):
    a = rng.standard_normal((20, 20)) + 20 * np.eye(20)
    A, b = pl.Dense(a), np.ones(20)
    for _ in range(3):
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(a, b))
        a *= 1.5


def test_chains_of_any_length(rng):
    a, b = pl.Diag(np.full(3, 0.999999)), pl.Dense(np.eye(3))
    chain = a
    for i in range(20000):
        chain = chain + b if i % 2 else chain - b
    chain @ np.ones(3)
    assert compare.tally["apply", "verified"] == 1


def test_assumed_matrices_are_read_by_their_triangle(rng):
    a = rng.standard_normal((30, 30))
    s = a @ a.T + 30 * np.eye(30)
    told = pl.Dense(np.triu(s) + np.tri(30, k=-1) * 7, assume_a="pos")
    x = rng.standard_normal(30)
    np.testing.assert_allclose(pl.solve(told, x), np.linalg.solve(s, x))
    np.testing.assert_allclose(pl.solve(told.T, x), np.linalg.solve(s, x))
    pl.logdet(told), pl.inv(told).toarray()
    both = pl.Kron(told, pl.Identity(2)) + pl.Identity(60)
    pl.solve(both, np.ones(60))
    compare.perturb = lambda action, y: last_wrong(y)
    with pytest.raises(pl.VerificationError):
        pl.solve(told, x)


def test_sparse_arrays_with_room_behind_them(rng):
    sp = pytest.importorskip("scipy.sparse")
    a = sp.csr_array(rng.standard_normal((5, 5)))
    a.indices = np.concatenate([a.indices, np.full(3, 1 << 30, a.indices.dtype)])
    a.data = np.concatenate([a.data, np.full(3, np.nan)])
    pl.Sparse(a) @ np.ones(5)
    assert compare.tally["apply", "verified"] == 1


def test_threads_have_their_own_option(rng):
    A, found = pl.Dense(rng.standard_normal((30, 30))), []
    pl.config(verify=False)

    def work():
        with pl.config(verify=True):
            for _ in range(20):
                A @ np.ones(30)
            found.append(pl.explain(A))

    many = [threading.Thread(target=work) for _ in range(4)]
    for t in many:
        t.start()
    for t in many:
        t.join()
    assert compare.tally["apply", "verified"] == 80 and len(found) == 4


def test_draws_are_not_numpys(rng):
    A = pl.Dense(rng.standard_normal((200, 200)))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    A @ np.ones((200, 200))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_off_is_off(rng):
    A = pl.Dense(rng.standard_normal((5, 5)))
    with pl.config(verify=False):
        compare.perturb = lambda action, y: negated(y)
        A @ np.ones(5)
        assert not compare.tally
        assert A[0, 0] == A.toarray()[0, 0]


def test_the_option_is_checked():
    with pytest.raises(TypeError, match="verify must be True or False"):
        pl.config(verify=1)


def test_memory_limit_holds(rng):
    A = pl.Dense(rng.standard_normal((300, 300)))
    with pl.config(memory_limit=1 << 20):
        (A @ A) @ np.ones((300, 20))
    assert compare.tally["apply", "verified"] == 1


def test_the_memory_limit_holds_for_the_comparison_too(rng):
    A = pl.HadamardProduct(rng.standard_normal((300, 300)), rng.standard_normal((300, 300)))
    with pl.config(memory_limit=1 << 20):
        A @ np.ones(300)
    assert "not verified" in next(said for _, said in compare.tally)


def test_a_failure_of_the_other_road_is_a_warning(rng, monkeypatch):
    monkeypatch.setattr(compare, "strict", False)
    monkeypatch.setattr(compare, "_compared", lambda *asked: 1 / 0)
    with pytest.warns(RuntimeWarning, match="not verified: the other road failed, ZeroDivision"):
        y = pl.Dense(np.eye(3)) @ np.ones(3)
    assert (y == 1).all()
