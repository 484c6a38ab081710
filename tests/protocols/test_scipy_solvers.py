"""SciPy's solvers on our operators, and our operators among SciPy's, in every order."""

import functools
import pickle
import warnings

import bands
import numpy as np
import pytest
import ref
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from samples import leaf, values

import pylinop as pl

N = 24


@pytest.fixture
def spd(rng):
    """A positive definite sum of several kinds, and its dense form."""
    t = 0.6 ** np.arange(N)
    u = values(rng, (N, 2), "float64")
    f = values(rng, (4, 4), "float64")
    S = pl.Selection(rng.permutation(N), N)
    A = (
        S @ pl.Toeplitz(t) @ S.T
        + pl.LowRank(u)
        + pl.Kron(f @ f.T, np.eye(6))
        + 2 * pl.Identity(N)
        + pl.Diag(np.linspace(0, 1, N))
        + pl.Sparse(sp.csr_array(sp.eye_array(N)))
    )
    a = A.toarray()
    assert np.linalg.eigvalsh(a)[0] > 1
    return A, a


@pytest.fixture
def general(rng):
    a = values(rng, (N, N), "float64") + 6 * np.eye(N)
    return pl.Dense(a) @ pl.Diag(np.linspace(1, 2, N)) + pl.Toeplitz(
        values(rng, (N,), "float64"), np.ones(N)
    )


@pytest.fixture
def tall(rng):
    A = pl.Dense(values(rng, (N, 7), "float64")) @ pl.Diag(np.arange(1.0, 8)) + pl.LowRank(
        values(rng, (N, 2), "float64"), values(rng, (7, 2), "float64")
    )
    return A, A.toarray()


@pytest.mark.parametrize(
    "solver",
    ["cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "gcrotmk", "tfqmr"],
)
def test_krylov(solver, spd, rng):
    A, a = spd
    b = values(rng, (N,), "float64")
    more = {"restart": N} if solver == "gmres" else {}
    x, info = getattr(spl, solver)(A, b, rtol=1e-12, maxiter=5000, **more)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("solver", ["gmres", "bicgstab", "lgmres"])
def test_krylov_not_symmetric(solver, general, rng):
    A = general
    b = values(rng, (N,), "float64")
    x, info = getattr(spl, solver)(A, b, rtol=1e-11, maxiter=5000)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-6, atol=1e-8)


def test_krylov_complex_and_preconditioned(rng):
    h = values(rng, (N, N), "complex128")
    A = pl.Dense(h @ h.conj().T) + 30 * pl.Identity(N)
    b = values(rng, (N,), "complex128")
    M = pl.inv(pl.Diag(A.diagonal()))
    x, info = spl.cg(A, b, M=M, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-8)
    x, info = spl.cg(spl.aslinearoperator(A.toarray()), b, M=M, rtol=1e-12)
    assert info == 0


@pytest.mark.parametrize("solver", ["lsqr", "lsmr"])
def test_least_squares_iterations(solver, tall, rng):
    A, a = tall
    b = values(rng, (N,), "float64")
    x = getattr(spl, solver)(A, b, atol=1e-13, btol=1e-13, conlim=1e12)[0]
    np.testing.assert_allclose(x, np.linalg.lstsq(a, b)[0], rtol=1e-6, atol=1e-9)


def test_eigs(general):
    A = general
    w, v = spl.eigs(A, k=4, which="LM", v0=np.ones(N))
    a = A.toarray()
    all_ = np.linalg.eigvals(a)
    for value, vector in zip(w, v.T):
        assert np.min(np.abs(all_ - value)) < 1e-8 * abs(value)
        np.testing.assert_allclose(a @ vector, value * vector, atol=1e-7)


def test_eigsh_and_lobpcg(spd, rng):
    A, a = spd
    w = np.linalg.eigvalsh(a)
    np.testing.assert_allclose(spl.eigsh(A, k=3, which="LA", v0=np.ones(N))[0], w[-3:], rtol=1e-9)
    np.testing.assert_allclose(spl.eigsh(A, k=2, which="SA", v0=np.ones(N))[0], w[:2], rtol=1e-8)
    shift = spl.eigsh(A, k=2, sigma=0.0, OPinv=pl.inv(pl.Dense(a)), v0=np.ones(N))[0]
    np.testing.assert_allclose(np.sort(shift), w[:2], rtol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        top = spl.lobpcg(A, values(rng, (N, 3), "float64"), tol=1e-10, maxiter=500, largest=True)[0]
    np.testing.assert_allclose(np.sort(top), w[-3:], rtol=1e-7)


@pytest.mark.parametrize("solver", ["arpack", "lobpcg", "propack"])
def test_svds(solver, tall):
    A, a = tall
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        s = spl.svds(
            A,
            k=3,
            solver=solver,
            return_singular_vectors=False,
            v0=np.ones(7 if solver != "propack" else N),
        )
    np.testing.assert_allclose(
        np.sort(s), np.sort(np.linalg.svd(a, compute_uv=False))[-3:], rtol=1e-6
    )


def test_expm_multiply_and_onenormest(spd, rng):
    A, a = spd
    B = A / np.linalg.norm(a, 2)
    for b in (values(rng, (N,), "float64"), values(rng, (N, 3), "float64")):
        want = scipy.linalg.expm(-B.toarray()) @ b
        got = spl.expm_multiply(-B, b, traceA=-B.trace())
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
        got = spl.expm_multiply(-B, b, start=0, stop=1, num=3, endpoint=True, traceA=-B.trace())
        np.testing.assert_allclose(got[-1], want, rtol=1e-9, atol=1e-11)
    norm = np.linalg.norm(a, 1)
    assert spl.onenormest(A, t=N) == pytest.approx(norm, rel=1e-10)  # exact with N columns
    assert norm / 3 <= spl.onenormest(A) <= norm * (1 + 1e-10)


def test_optimize(tall, rng):
    A, a = tall
    b = values(rng, (N,), "float64")
    for bounds in ((-np.inf, np.inf), (-0.01, 0.01)):
        got = scipy.optimize.lsq_linear(
            A, b, bounds=bounds, tol=1e-12, lsq_solver="lsmr", lsmr_tol=1e-13, max_iter=500
        )
        want = scipy.optimize.lsq_linear(a, b, bounds=bounds, tol=1e-12, max_iter=500)
        assert got.success
        np.testing.assert_allclose(got.x, want.x, rtol=1e-4, atol=1e-6)
    fit = scipy.optimize.least_squares(
        lambda x: a @ np.tanh(x) - b * 1e-2,
        np.zeros(7),
        tr_solver="lsmr",
        jac=lambda x: A @ pl.Diag(1 - np.tanh(x) ** 2),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    direct = scipy.optimize.least_squares(
        lambda x: a @ np.tanh(x) - b * 1e-2,
        np.zeros(7),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
        jac=lambda x: a @ np.diag(1 - np.tanh(x) ** 2),
    )
    np.testing.assert_allclose(fit.x, direct.x, rtol=1e-5, atol=1e-7)
    H = pl.Dense(a.T @ a) + pl.Identity(7)
    best = scipy.optimize.minimize(
        lambda x: 0.5 * x @ (H @ x) - x.sum(),
        np.zeros(7),
        jac=lambda x: H @ x - 1,
        hess=lambda x: H,
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12},
    )
    np.testing.assert_allclose(
        best.x, np.linalg.solve(H.toarray(), np.ones(7)), rtol=1e-5, atol=1e-7
    )


# ---- who is what ----


@pytest.mark.parametrize("kind", ref.KINDS)
def test_isinstance(kind, rng):
    A = ref.build(leaf(kind, rng, 4, 4, "float64"))
    for B in (A, A.T, A + A, 2 * A, A @ A, A**2):
        assert isinstance(B, spl.LinearOperator) and isinstance(B, pl.LinearOperator)
        assert spl.aslinearoperator(B) is B
        assert issubclass(B.__class__, spl.LinearOperator)
        assert (
            B.__class__.__name__ == type(B).__name__
            and B.__class__.__module__ == type(B).__module__
        )
        assert pl.aslinearoperator(B) is B
    assert not isinstance(np.ones(3), pl.LinearOperator)
    assert isinstance(A, getattr(pl, bands.CLASSES.get(kind, kind))) and not isinstance(A, pl.Sum)


IDENTITY = """
import copy, functools, pickle, sys
import numpy as np
import pylinop as pl

def scipy_is_loaded():
    return any(m == "scipy" or m.startswith("scipy.") for m in sys.modules)

assert not scipy_is_loaded(), "importing pylinop imported SciPy"

@functools.singledispatch
def what(x):
    return "object"

@what.register(pl.LinearOperator)
def _(x):
    return "operator"

@what.register(pl.Diag)
def _(x):
    return "diagonal"

def round(D, A):
    assert what(D) == "diagonal" and what(A) == "operator" and what(1) == "object"
    for B in (pickle.loads(pickle.dumps(D)), copy.copy(D), copy.deepcopy(D),
              D.__class__(np.arange(3.0)), type(D)(np.arange(3.0))):
        assert type(B) is pl.Diag, type(B)
        assert isinstance(B, pl.Diag) and what(B) == "diagonal"
        np.testing.assert_array_equal(B @ np.ones(3), np.arange(3.0))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        B = pickle.loads(pickle.dumps(A + 2 * D, protocol))
        assert type(B) is pl.Sum
        np.testing.assert_array_equal(B.toarray(), np.eye(3) + 2 * np.diag(np.arange(3.0)))

    class Mine(D.__class__):
        pass

D, A = pl.Diag(np.arange(3.0)), pl.Dense(np.eye(3))
early = pickle.dumps(D)
round(D, A)
x = np.ones(3)
A @ x, A.toarray(), D.trace(), repr(A + D), A.T @ np.ones((3, 2)), pl.inv(A) @ x, np.asarray(D)
assert not scipy_is_loaded(), "using pylinop imported SciPy"
import scipy.sparse.linalg as spl
assert isinstance(D, spl.LinearOperator) and isinstance(A, spl.LinearOperator)
round(D, A)
round(pl.Diag(np.arange(3.0)), pl.Dense(np.eye(3)))
round(pickle.loads(early), A)

@functools.singledispatch
def theirs(x):
    return "object"

@theirs.register(spl.LinearOperator)
def _(x):
    return "scipy"

assert theirs(D) == "scipy" and theirs(A) == "scipy"
theirs.register(pl.LinearOperator, lambda x: "ours")
assert theirs(D) == "ours" and theirs(spl.aslinearoperator(np.eye(2))) == "scipy"
assert D.__class__ is D.__class__ and D.__class__ is pl.Diag(np.ones(2)).__class__
print("done")
"""


def test_identity_before_and_after_scipys_import(python):
    assert python(IDENTITY).strip() == "done"


def test_pickles_cross_the_import(python):
    out = python(
        "import pickle, sys, numpy as np, scipy.sparse.linalg, pylinop as pl\n"
        "A = pl.Diag(np.arange(3.0)) + pl.Dense(np.eye(3))\n"
        "sys.stdout.write(pickle.dumps(A, 0).decode('latin1'))"
    )
    A = pickle.loads(out.encode("latin1"))
    np.testing.assert_array_equal(A.toarray(), np.diag([1.0, 2, 3]))
    out = python(
        "import pickle, sys; import pylinop as pl; A = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "assert not any(m.startswith('scipy') for m in sys.modules); print(A.trace())",
        pickle.dumps(A).hex(),
    )
    assert float(out) == 6


def test_subclass_of_ours_is_scipys():
    class Mine(pl.LinearOperator):
        def __init__(self, n):
            super().__init__(np.dtype(float), (n, n))

        def _matvec(self, x):
            return 2 * x

    A = Mine(3)
    assert isinstance(A, spl.LinearOperator) and isinstance(A, Mine)
    assert isinstance(self_class := A.__class__(4), Mine) and self_class.shape == (4, 4)
    x, info = spl.gmres(A, np.ones(3))
    np.testing.assert_allclose(x, 0.5)
    assert functools.singledispatch(lambda x: 0)(A) == 0


# ---- mixing ----


def ours(rng):
    yield from ((k, ref.build(leaf(k, rng, 4, 4, "float64"))) for k in ref.KINDS)
    yield "Sum", pl.Dense(values(rng, (4, 4), "float64")) + pl.Identity(4)
    yield "Transpose", pl.Dense(values(rng, (4, 4), "float64")).T


def test_scipy_operators_mix(rng):
    for dtype in ("float64", "complex128"):
        b = values(rng, (4, 4), dtype)
        B = spl.aslinearoperator(b)
        x = values(rng, (4,), "float64")
        for name, A in ours(rng):
            a = A.toarray()
            for got, want in (
                (A @ B, a @ b),
                (A + B, a + b),
                (A - B, a - b),
                (A.dot(B), a @ b),
                (A * B, a @ b),
                (B @ A, b @ a),
                (B + A, b + a),
                (B - A, b - a),
                (2 * B + 3 * A, 2 * b + 3 * a),
            ):
                assert isinstance(got, spl.LinearOperator), (name, type(got))
                np.testing.assert_allclose(got @ x, want @ x, rtol=1e-10, atol=1e-10)
                np.testing.assert_allclose(
                    got.rmatvec(x), want.conj().T @ x, rtol=1e-10, atol=1e-10
                )
            for got in (A @ B, A + B, A - B):
                assert isinstance(got, pl.LinearOperator) and got.shape == (4, 4)
            assert (A @ B).dtype == np.result_type(A.dtype, dtype)
            assert (A @ B).args[0] is A


def test_scipy_operators_of_other_shapes_raise(rng):
    A, B = pl.Dense(np.ones((4, 3))), spl.aslinearoperator(np.ones((4, 2)))
    for bad in (lambda: A @ B, lambda: A + B, lambda: B + A, lambda: B @ A):
        with pytest.raises(ValueError):
            bad()


@pytest.mark.parametrize(
    "form",
    [
        "csr_array",
        "csc_array",
        "coo_array",
        "bsr_array",
        "dia_array",
        "lil_array",
        "dok_array",
        "csr_matrix",
        "csc_matrix",
        "coo_matrix",
    ],
)
def test_sparse_matrices_mix(form, rng):
    b = np.where(rng.random((4, 4)) < 0.6, values(rng, (4, 4), "float64"), 0)
    B = getattr(sp, form)(b)
    x = values(rng, (4,), "float64")
    A = pl.aslinearoperator(B)
    assert type(A) is pl.Sparse and A.dtype == B.dtype
    np.testing.assert_allclose(A @ x, b @ x, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(A.toarray(), b)
    for name, A in ours(rng):
        a = A.toarray()
        sums = [(A + B, a + b), (A - B, a - b), (B + A, a + b), (B - A, b - a)]
        if name == "Sparse":
            for got, want in ((A @ B, a @ b), (B @ A, b @ a), (A.dot(B), a @ b)):
                assert sp.issparse(got), type(got)
                np.testing.assert_allclose(got.toarray(), want, rtol=1e-12, atol=1e-13)
        elif name != "MatVec":
            sums += [(A @ B, a @ b), (B @ A, b @ a)]
        for got, want in sums:
            assert isinstance(got, pl.LinearOperator), (name, type(got))
            np.testing.assert_allclose(got @ x, want @ x, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(x @ got, x @ want, rtol=1e-10, atol=1e-10)


def test_matvec_without_matmat_and_sparse(rng):
    a = values(rng, (4, 4), "float64")
    B = sp.csr_array(np.eye(4))
    A = pl.MatVec((4, 4), lambda x: a @ x, dtype=float)
    for bad in (lambda: A @ B, lambda: B @ A):
        with pytest.raises(TypeError, match="aslinearoperator"):
            bad()
    assert isinstance(A @ pl.aslinearoperator(B), pl.Product)
    C = pl.MatVec(
        (4, 4), lambda x: a @ x, matmat=lambda x: sp.csr_array(sp.csr_array(a) @ x), dtype=float
    )
    np.testing.assert_allclose((C @ B).toarray(), a)


def test_arrays_mix(rng):
    b, x = values(rng, (4, 4), "float64"), values(rng, (4,), "float64")
    for name, A in ours(rng):
        a = A.toarray()
        for got, want in ((A + b, a + b), (b + A, a + b), (A - b, a - b), (b - A, b - a)):
            assert isinstance(got, pl.LinearOperator), name
            np.testing.assert_allclose(got @ x, want @ x, rtol=1e-10, atol=1e-10)
        for got, want in ((A @ b, a @ b), (b @ A, b @ a)):
            assert type(got) is np.ndarray
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_matrices_of_numpy(rng):
    a, x = values(rng, (3, 4), "float64"), values(rng, (4, 1), "float64")
    A = pl.aslinearoperator(np.asmatrix(a))
    assert type(A) is pl.Dense
    m = np.asmatrix(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert type(A.matvec(m)) is np.matrix and A.matvec(m).shape == (3, 1)
        assert type(A @ m) is np.ndarray and type(A.dot(m)) is np.ndarray
    np.testing.assert_allclose(A.matvec(m), a @ x)
    np.testing.assert_allclose(A @ m, a @ x)


def test_aslinearoperator_takes_what_has_matvec(rng):
    a = values(rng, (3, 4), "float64")

    class Has:
        shape, dtype = (3, 4), np.dtype(float)
        matvec = staticmethod(lambda x: a @ x)
        rmatvec = staticmethod(lambda x: a.T @ x)

    A = pl.aslinearoperator(Has())
    assert isinstance(A, pl.MatVec) and A.dtype == float
    np.testing.assert_allclose(A @ np.ones(4), a.sum(1))
    np.testing.assert_allclose(A.H @ np.ones(3), a.sum(0))
    np.testing.assert_allclose(A @ np.ones((4, 2)), a @ np.ones((4, 2)))
    assert pl.aslinearoperator(np.ones(3)).shape == (1, 3)  # as SciPy's: at least 2-D
    for bad in ("text", object(), None, 3, lambda x: x):
        with pytest.raises(TypeError):
            pl.aslinearoperator(bad)


def test_scipys_own_composites_of_ours(rng):
    """expm_multiply and least_squares build such things."""
    a = values(rng, (4, 4), "float64")
    A, x = pl.Dense(a), np.ones(4)
    shifted = A - 2.0 * spl._interface.IdentityOperator((4, 4), dtype=float)
    np.testing.assert_allclose(shifted @ x, a @ x - 2 * x)
    both = spl._interface.IdentityOperator((4, 4), dtype=float) @ A + A
    np.testing.assert_allclose(both.H @ x, 2 * a.T @ x)
    wrapped = spl.LinearOperator((4, 4), matvec=A.matvec, rmatvec=A.rmatvec)
    np.testing.assert_allclose((wrapped @ A) @ x, a @ (a @ x))


def test_column_vectors_warn_as_scipys(rng):
    a = values(rng, (3, 4), "float64")
    for A in (
        pl.Dense(a),
        pl.MatVec((3, 4), lambda x: a @ x, lambda x: a.T @ x, dtype=float),
        pl.Dense(a) + pl.Zeros((3, 4)),
    ):
        with pytest.warns(FutureWarning, match="Calling `matvec` on 'column vectors'") as seen:
            got = A.matvec(np.ones((4, 1)))
        assert seen[0].filename == __file__
        np.testing.assert_allclose(got, a @ np.ones((4, 1)))
        with pytest.warns(FutureWarning, match="Calling `rmatvec` on 'column vectors'"):
            got = A.rmatvec(np.ones((3, 1)))
        np.testing.assert_allclose(got, a.T @ np.ones((3, 1)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            A @ np.ones((4, 1)), A.matmat(np.ones((4, 1))), A.dot(np.ones((4, 1)))


def test_columns_reach_callables_as_vectors(rng):
    seen = []

    def matvec(x):
        seen.append((x.shape, x.dtype))
        return x

    A = pl.MatVec((3, 3), matvec, dtype=float)
    A @ np.ones(3), A @ np.ones((3, 1)), A @ np.ones((3, 2)), A.matvec(np.ones((5, 3)))
    assert [s for s, _ in seen] == [(3,), (3,), (3,), (3,), (5, 3)]
    pl.MatVec((3, 3), matvec)
    assert seen[-1] == ((3,), np.dtype("int8")) and len(seen) == 6
