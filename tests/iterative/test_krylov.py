"""cg, minres, gmres, bicgstab, lsqr, lsmr under SciPy's names, beside SciPy's."""

import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import pylinop as pl

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def same_numbers_whatever_ran_before():
    global RNG
    RNG = np.random.default_rng(11)


SQUARE = ("cg", "minres", "gmres", "bicgstab")
LEAST = ("lsqr", "lsmr")


def laplacian(m):
    t = pl.Tridiagonal(-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1))
    return pl.KronSum(t, t)


def matrix(name, n, dtype):
    """A well conditioned matrix that the method takes: Hermitian for cg and minres."""
    a = RNG.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * RNG.standard_normal((n, n)).astype(a.real.dtype)
    if name in ("cg", "minres"):
        q = np.linalg.qr(a)[0]
        d = np.linspace(1, 20, n)
        if name == "minres":
            d[::3] *= -1
        a = (q * d) @ q.conj().T
        return ((a + a.conj().T) / 2).astype(dtype)
    return (a / np.sqrt(n) + 3 * np.eye(n)).astype(dtype)


def both(name, a, b, **options):
    if name == "gmres" and "callback" in options:
        options.setdefault("callback_type", "pr_norm")
    return getattr(pl, name)(a, b, **options), getattr(sl, name)(a, b, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", SQUARE)
def test_the_same_as_scipy(name, dtype):
    if name == "minres" and dtype.startswith("complex"):
        pytest.skip("SciPy's minres is for real matrices; test_minres_is_for_hermitian_matrices")
    n = 40
    a = matrix(name, n, dtype)
    b = (a @ np.ones(n)).astype(dtype)
    options = {} if name == "minres" else {"atol": 0.0}
    ours, theirs = both(name, a, b, rtol=1e-4, **options)
    assert len(ours) == len(theirs) == 2 and ours[1] == theirs[1] == 0
    assert ours[0].dtype == dtype and ours[0].shape == (n,)
    assert theirs[0].dtype == dtype or name == "minres"  # SciPy's goes over to float64
    tight = 1e-4 if name in ("cg", "gmres") else 1e-2  # rounding errors grow faster
    np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=tight)
    assert np.linalg.norm(a @ ours[0] - b) <= (
        10 if name == "minres" else 1.01
    ) * 1e-4 * np.linalg.norm(b)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("limit", [1, 3])
def test_too_few_iterations_give_scipys_info(name, limit):
    a = matrix(name, 40, "float64")
    b = np.ones(40)
    options = {"restart": 5} if name == "gmres" else {}
    ours, theirs = both(name, a, b, rtol=1e-12, maxiter=limit, **options)
    assert ours[1] == theirs[1] == limit
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-12)
    assert not ours.converged
    assert not getattr(pl, name)(a, b, maxiter=0)[0].any()


@pytest.mark.parametrize("name", SQUARE)
def test_preconditioners_and_first_iterates(name):
    n = 60
    a = matrix(name, n, "float64") + 5 * np.diag(np.linspace(1, 50, n))
    m = pl.Diag(1 / np.abs(np.diag(a)))
    b = RNG.standard_normal(n)
    x0 = RNG.standard_normal(n)
    plain = getattr(pl, name)(a, b, rtol=1e-8)
    shaped, theirs = both(name, a, b, rtol=1e-8, M=m, x0=x0)
    assert shaped[1] == theirs[1] == 0 and plain[1] == 0
    np.testing.assert_allclose(shaped[0], np.linalg.solve(a, b), rtol=1e-5, atol=1e-6)
    assert shaped.iterations < plain.iterations
    again = getattr(pl, name)(a, b, rtol=1e-6, x0=shaped[0])
    assert again.iterations <= 1
    start, _ = both(name, a, b, rtol=1e-8, M=m, x0="Mb")
    np.testing.assert_allclose(start[0], shaped[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SQUARE)
def test_callbacks_get_what_scipys_get(name):
    a = matrix(name, 30, "float64")
    b = RNG.standard_normal(30)
    seen = {"ours": [], "theirs": []}
    options = {"callback_type": "pr_norm"} if name == "gmres" else {}
    for who, module in (("ours", pl), ("theirs", sl)):
        getattr(module, name)(
            a, b, rtol=1e-6, callback=lambda v, who=who: seen[who].append(np.copy(v)), **options
        )
    assert len(seen["ours"]) == len(seen["theirs"]) > 3
    np.testing.assert_allclose(seen["ours"], seen["theirs"], rtol=1e-5, atol=1e-5)


def test_what_a_callback_keeps_does_not_change():
    kept = []
    x, _ = pl.cg(pl.Diag(np.arange(1.0, 9.0)), np.ones(8), rtol=1e-12, callback=kept.append)
    assert len({k.tobytes() for k in kept}) == len(kept) and np.array_equal(kept[-1], x)


def test_gmres_callback_types():
    a, b = matrix("gmres", 40, "float64"), np.ones(40)
    for kind in ("x", "pr_norm", "legacy"):
        seen = {}
        for who, module in (("ours", pl), ("theirs", sl)):
            got = []
            found = module.gmres(
                a,
                b,
                rtol=1e-9,
                restart=4,
                maxiter=7,
                callback_type=kind,
                callback=lambda v, got=got: got.append(np.copy(v)),
            )
            seen[who] = got, found[1]
        assert len(seen["ours"][0]) == len(seen["theirs"][0]) > 0
        assert seen["ours"][1] == seen["theirs"][1]
        np.testing.assert_allclose(seen["ours"][0], seen["theirs"][0], rtol=1e-6, atol=1e-10)
    with pytest.warns(DeprecationWarning, match="callback_type"):
        pl.gmres(a, b, callback=print and (lambda v: None))
    with pytest.raises(ValueError, match="Unknown callback_type"):
        pl.gmres(a, b, callback_type="y")


def test_gmres_stays_orthogonal_where_gram_schmidt_alone_does_not():
    n = 60
    u, v = (np.linalg.qr(RNG.standard_normal((n, n)))[0] for _ in range(2))
    a = (u * np.logspace(0, -9, n)) @ v
    b = a @ np.ones(n)
    ours, _ = pl.gmres(a, b, rtol=1e-14, atol=0, restart=n, maxiter=2)
    eta = np.linalg.norm(b - a @ ours) / (np.linalg.norm(ours) + np.linalg.norm(b))
    assert eta < 1e-14


def test_minres_is_for_hermitian_matrices():
    a = matrix("minres", 40, "complex128")
    b = RNG.standard_normal(40) + 1j * RNG.standard_normal(40)
    x, info = pl.minres(a, b, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(a @ x, b, rtol=1e-9, atol=1e-9)
    shifted, _ = pl.minres(a, b, rtol=1e-12, shift=0.3)
    np.testing.assert_allclose((a - 0.3 * np.eye(40)) @ shifted, b, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="non-symmetric matrix"):
        pl.minres(np.triu(np.ones((5, 5))), np.arange(5.0), check=True)
    with pytest.raises(ValueError, match="indefinite preconditioner"):
        pl.minres(np.eye(3), np.ones(3), M=-np.eye(3))


def test_minres_of_a_singular_matrix_that_has_a_solution():
    d = np.r_[np.arange(1.0, 10.0), 0.0]
    ours, theirs = both("minres", pl.Diag(d), d, rtol=1e-10)
    np.testing.assert_allclose(ours[0], [1] * 9 + [0], atol=1e-8)
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-8)


def test_minres_shows(capsys):
    pl.minres(np.diag([1.0, 2.0]), np.ones(2), show=True)
    assert "iteration     residual" in capsys.readouterr().out.replace("    iteration", "iteration")


@pytest.mark.parametrize("name", LEAST)
@pytest.mark.parametrize("options", [{}, {"damp": 0.5}, {"atol": 1e-12, "btol": 1e-12}])
@pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 30)])
def test_least_squares_as_scipy(name, options, shape):
    a = RNG.standard_normal(shape) + (30 * np.eye(30) if shape == (30, 30) else 0)
    b = RNG.standard_normal(shape[0])
    ours, theirs = both(name, a, b, **options)
    assert len(ours) == len(theirs)
    assert ours[1] == theirs[1] and abs(ours[2] - theirs[2]) <= 1
    assert isinstance(ours[1], int) and isinstance(ours[3], float)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def test_least_squares_of_a_square_matrix_and_x0_and_variances():
    a, b = RNG.standard_normal((50, 12)), RNG.standard_normal(50)
    x0 = RNG.standard_normal(12)
    for name in LEAST:
        ours, theirs = both(name, a, b, x0=x0, damp=0.1, atol=1e-10, btol=1e-10)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-7)
    ours, theirs = both("lsqr", a, b, calc_var=True, atol=1e-10, btol=1e-10)
    np.testing.assert_allclose(ours[9], theirs[9], rtol=1e-6)
    with pytest.raises(ValueError, match="incompatible"):
        pl.lsmr(a, np.ones(49))


def test_least_squares_by_callables_and_complex():
    a = RNG.standard_normal((40, 10)) + 1j * RNG.standard_normal((40, 10))
    b = RNG.standard_normal(40) + 1j * RNG.standard_normal(40)
    op = pl.MatVec((40, 10), lambda v: a @ v, rmatvec=lambda v: a.conj().T @ v, dtype=complex)
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    for name in LEAST:
        found = getattr(pl, name)(op, b, atol=1e-12, btol=1e-12)
        np.testing.assert_allclose(found[0], want, rtol=1e-8)
        assert found.matvecs == 2 * found.iterations + 1


def test_several_right_sides_converge_each_alone():
    a = laplacian(12)
    b = RNG.standard_normal((144, 5))
    b[:, 2] = 0
    b[:, 3] = a @ np.ones(144)
    x, info = found = pl.cg(a, b, rtol=1e-10)
    assert info == 0 and x.shape == b.shape and found.converged
    assert found.matvecs == found.iterations
    for j in range(5):
        alone, _ = pl.cg(a, b[:, j], rtol=1e-10)
        np.testing.assert_allclose(x[:, j], alone, rtol=1e-7, atol=1e-9)
    assert not x[:, 2].any()
    wide = RNG.standard_normal((144, 37)).astype(np.float32)
    x, info = pl.cg(a.astype(np.float32), wide, rtol=1e-4)
    assert info == 0 and x.dtype == np.float32
    assert (np.linalg.norm(a @ x - wide, axis=0) < 2e-4 * np.linalg.norm(wide, axis=0)).all()


def test_real_problems():
    n = 4000
    t = pl.Toeplitz(0.5 ** np.arange(n)) + pl.Diag(np.linspace(1, 3, n))
    b = RNG.standard_normal(n)
    k = pl.Kron(pl.Toeplitz([4.0, 1, 0, 0]), laplacian(10)) + pl.Diag(np.linspace(1, 2, 400))
    for op, side in ((t, b), (k, b[:400]), (laplacian(40), b[:1600])):
        x, info = pl.cg(op, side, rtol=1e-9)
        assert info == 0
        assert np.linalg.norm(op @ x - side) <= 1.1e-9 * np.linalg.norm(side)
    sparse = sp.random_array((500, 500), density=0.01, rng=RNG) + 5 * sp.eye_array(500)
    for name in ("gmres", "bicgstab"):
        x, info = getattr(pl, name)(sparse, b[:500], rtol=1e-9)
        assert info == 0 and np.linalg.norm(sparse @ x - b[:500]) < 1.1e-9 * np.linalg.norm(b[:500])


def test_the_record():
    found = pl.cg(laplacian(10), np.ones(100), rtol=1e-6)
    assert isinstance(found, tuple) and isinstance(found, pl.IterativeResult)
    assert found.converged and found.reason is None and found.time > 0
    assert len(found.residuals) == found.iterations + 1 and found.matvecs == found.iterations
    assert found.residuals[0] == pytest.approx(10) and found.residuals[-1] < 1e-5
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is pl.IterativeResult and again.iterations == found.iterations
    x, info = found
    assert info == 0 and x.shape == (100,)


@pytest.mark.parametrize("name", SQUARE + LEAST)
def test_zero_right_sides_and_small_sizes(name):
    solver = getattr(pl, name)
    found = solver(np.eye(4) * 2, np.zeros(4))
    assert not found[0].any() and found[1] == 0 and found.converged
    assert solver([[2.0]], [3.0])[0] == pytest.approx(1.5)
    assert solver(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)
    column = solver(np.diag([1.0, 2.0]), np.ones((2, 1)))[0]
    assert column.shape == (2,)
    if name in SQUARE:
        found = solver(np.eye(4) * 2, np.zeros(4), x0=np.ones(4))
        assert not found[0].any() or name == "minres"


@pytest.mark.parametrize("name", SQUARE + LEAST)
def test_nan_ends_the_run_and_is_told(name):
    a = np.diag([1.0, 2.0, np.nan])
    found = getattr(pl, name)(a, np.ones(3))
    assert not found.converged and "not finite" in found.reason
    found = getattr(pl, name)(np.eye(3), np.array([1.0, np.nan, 0.0]))
    assert not found.converged


def test_breakdowns_are_told_and_make_no_nan():
    found = pl.cg(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.ones(2))  # p^H A p is 0
    assert found[1] > 0 and np.isfinite(found[0]).all() and "p^H A p is 0" in found.reason
    found = pl.bicgstab(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.ones(2))
    assert found[1] == sl.bicgstab(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.ones(2))[1] == -11
    assert np.isfinite(found[0]).all() and found.reason
    found = pl.gmres(np.zeros((3, 3)), np.ones(3), maxiter=3)
    assert found[1] > 0 and np.isfinite(found[0]).all() and not found.converged


@pytest.mark.parametrize("name", SQUARE)
def test_integers_and_mixed_dtypes(name):
    a = np.diag([2, 3, 5])
    x, info = getattr(pl, name)(a, np.array([2, 3, 5]), rtol=1e-10)
    assert x.dtype == np.float64 and info == 0
    np.testing.assert_allclose(x, 1, rtol=1e-6)
    x, _ = getattr(pl, name)(a.astype(np.float32), np.ones(3), rtol=1e-10)
    assert x.dtype == np.float64
    x, _ = getattr(pl, name)(a.astype(float), np.array([2j, 3, 5]), rtol=1e-10)
    np.testing.assert_allclose(x, [1j, 1, 1], atol=1e-6)


@pytest.mark.parametrize("name", SQUARE)
def test_wrong_arguments(name):
    solver = getattr(pl, name)
    with pytest.raises(ValueError, match="square"):
        solver(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match="incompatible"):
        solver(np.eye(3), np.ones(4))
    with pytest.raises(ValueError, match="different shapes"):
        solver(np.eye(3), np.ones(3), M=np.eye(2))
    with pytest.raises(ValueError, match="x0 has shape"):
        solver(np.eye(3), np.ones(3), x0=np.ones(2))
    with pytest.raises(ValueError, match="'Mb'"):
        solver(np.eye(3), np.ones(3), x0="b")
    with pytest.raises(TypeError, match="progress"):
        solver(np.eye(3), np.ones(3), progress=3)
    if name != "minres":
        for atol in ("legacy", None, -1.0):
            with pytest.raises(ValueError, match="invalid `atol`"):
                solver(np.eye(3), np.ones(3), atol=atol)


def test_exceptions_of_callables_and_callbacks_arrive():
    def broken(v):
        raise KeyError("mine")

    op = pl.MatVec((3, 3), broken, dtype=float)
    for name in SQUARE:
        with pytest.raises(KeyError, match="mine"):
            getattr(pl, name)(op, np.ones(3))
        with pytest.raises(KeyError, match="mine"):
            getattr(pl, name)(np.diag([1.0, 2.0, 3.0]), np.ones(3), M=op)
        options = {"callback_type": "x"} if name == "gmres" else {}
        with pytest.raises(KeyError, match="mine"):
            getattr(pl, name)(np.diag([1.0, 2.0, 3.0]), np.ones(3), callback=broken, **options)
    with pytest.raises(TypeError, match="cannot be cast"):
        pl.cg(pl.MatVec((2, 2), lambda v: v * 1j, dtype=float), np.ones(2))


def test_progress():
    seen = []

    def slow(v):
        time.sleep(0.02)
        return np.arange(1.0, 31.0) * v

    op = pl.MatVec((30, 30), slow, dtype=float)
    pl.cg(op, np.ones(30), rtol=1e-12, progress=lambda i, r: seen.append((i, r)))
    assert 2 <= len(seen) <= 12 and all(r > 0 for _, r in seen)
    pl.cg(op, np.ones(30), maxiter=3, progress=True)  # whatever is there to show it with


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")
@pytest.mark.parametrize("how", ["in C", "in a callable", "in a callback"])
def test_an_interrupt_ends_the_run_and_all_is_usable(how):
    n = 2000
    d = np.logspace(0, 12, n)
    diag = pl.Diag(d)
    op = diag if how != "in a callable" else pl.MatVec((n, n), lambda v: d * v, dtype=float)
    call = (lambda x: None) if how == "in a callback" else None

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            pl.cg(op, np.ones(n), rtol=0, maxiter=10**9, callback=call)
        assert time.monotonic() - begin < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert pl.cg(op, d, rtol=1e-3, maxiter=5)[0].shape == (n,)
    np.testing.assert_array_equal(diag @ np.ones(n), d)


def test_the_operator_is_read_at_the_beginning_of_each_call():
    a = np.diag([1.0, 2.0, 4.0])
    op, b = pl.inv(pl.Dense(a)) + pl.Identity(3), np.ones(3)
    before = pl.cg(op, b, rtol=1e-12)[0]
    a[0, 0] = 0.5
    after = pl.cg(op, b, rtol=1e-12)[0]
    np.testing.assert_allclose(before, 1 / (1 / np.array([1.0, 2, 4]) + 1))
    np.testing.assert_allclose(after, 1 / (1 / np.array([0.5, 2, 4]) + 1))


def test_the_same_bits_again_and_in_threads():
    op, b = laplacian(20), RNG.standard_normal(400)
    want = pl.cg(op, b, rtol=1e-9)[0]
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(pl.cg(op, b, rtol=1e-9)[0])) for _ in range(6)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 6 and all(np.array_equal(x, want) for x in found)


def test_scipy_operators_and_lazy_arrays():
    a = np.diag([1.0, 2.0, 4.0])
    for form in (sl.aslinearoperator(a), sp.csr_array(a), pl.lazy(a), pl.lazy(a) @ pl.lazy(a)):
        x, info = pl.cg(form, np.ones(3), rtol=1e-12)
        assert info == 0
    np.testing.assert_allclose(x, [1, 0.25, 0.0625])


def test_nothing_is_left_behind():
    from pylinop import _core

    before = _core.live()
    for name in SQUARE + LEAST:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(pl, name)(pl.Diag([1.0, 2.0, 4.0]), np.ones(3))
    _core._clear_store()
    assert _core.live() <= before


# -- lsqr and lsmr of tall sparse matrices: one sweep for both products --


def tall_sparse(dtype, index=np.int32, m=4000, n=25):
    g = np.random.default_rng(0)
    a = sp.random_array((m, n), density=0.5, rng=g, format="csr").astype(dtype)
    if np.dtype(dtype).kind == "c":
        a.data += 1j * g.standard_normal(a.nnz)
    a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
    b = g.standard_normal(m).astype(dtype)
    return a, b


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
@pytest.mark.parametrize("form", ["csr", "transposed csc", "transposed csr", "adjoint"])
def test_a_sweep_gives_what_two_products_do(name, dtype, index, form):
    a, b = tall_sparse(dtype, index)
    flipped = sp.csc_array((a.data, a.indices, a.indptr), shape=a.shape[::-1])
    assert a.nnz >= 64 * a.shape[1]
    op = {
        "csr": pl.Sparse(a),
        "transposed csc": pl.Sparse(flipped).T,
        "transposed csr": pl.Sparse(sp.csr_array(a.T)).T,
        "adjoint": pl.Sparse(sp.csc_array(a.conj().T)).H,
    }[form]
    np.testing.assert_allclose(op.toarray(), a.toarray())
    want = np.linalg.lstsq(a.toarray(), b)[0]
    for damp in (0.0, 30.0):
        got = getattr(pl, name)(op, b, damp=damp, atol=1e-14, btol=1e-14)
        plain = getattr(pl, name)(pl.MatVec(a.shape, a.dot, rmatvec=a.conj().T.dot, dtype=dtype),
                                  b, damp=damp, atol=1e-14, btol=1e-14)  # fmt: skip
        np.testing.assert_allclose(got[0], plain[0], rtol=0, atol=1e-12 * abs(want).max())
        assert abs(int(got[2]) - int(plain[2])) <= 1
        if not damp:
            np.testing.assert_allclose(got[0], want, rtol=0, atol=1e-12 * abs(want).max())
    again = pl.lstsq(op, b, method=name, rtol=1e-9)
    np.testing.assert_allclose(again[0], want, rtol=0, atol=1e-7 * abs(want).max())


@pytest.mark.parametrize("n", [1, 3])
def test_a_sweep_over_empty_rows_and_few_columns(n):
    a = sp.random_array((500, n), density=0.9, rng=np.random.default_rng(1), format="csr")
    a = sp.csr_array(sp.vstack([sp.csr_array((300, n)), a, sp.csr_array((200, n))]))
    assert a.nnz >= 64 * n
    b = np.random.default_rng(2).standard_normal((1000, 2))[::-1, 0]  # strided, backwards
    b.setflags(write=False)
    a.data.setflags(write=False)
    want = np.linalg.lstsq(a.toarray(), b)[0]
    for x0 in (None, np.ones(n)):
        for name in ("lsqr", "lsmr"):
            x = getattr(pl, name)(pl.Sparse(a), b, x0=x0, atol=1e-14, btol=1e-14)[0]
            np.testing.assert_allclose(x, want, rtol=0, atol=1e-13)
    for dtype in (np.float32, np.int32):  # cast in each product: two of them
        part = (10 * a).astype(dtype)
        x = pl.lsmr(pl.Sparse(part), b, atol=1e-14, btol=1e-14)[0]
        want = np.linalg.lstsq(part.toarray().astype(float), b)[0]
        np.testing.assert_allclose(x, want, rtol=0, atol=1e-12)


def test_a_sweep_has_the_same_bits_on_any_number_of_threads():
    a, b = tall_sparse("float64", m=60_000, n=100)  # enough for threads
    found = []
    before = pl._core._blas()["threads"]
    try:
        for count in (1, 2, 5):
            pl.config(threads=count)
            found.append(pl.lsmr(pl.Sparse(a), b, maxiter=9)[0])
    finally:
        pl.config(threads=before)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def test_a_sweep_tells_bad_indices_and_what_is_not_finite():
    a, b = tall_sparse("float64")
    for at, wrong in ((5, 25), (-1, -1), (a.nnz // 2, 2**31 - 1)):
        bad = a.copy()
        bad.indices[at] = wrong
        with pytest.raises(IndexError, match="out of bounds for the 4000 x 25"):
            pl.lsmr(pl.Sparse(bad), b)
    bad = a.copy()
    bad.indptr[2000] = bad.indptr[-1] + 1
    with pytest.raises(IndexError):
        pl.lsqr(pl.Sparse(bad), b)
    bad.indptr[1:-1] = bad.indptr[-2:0:-1].copy()  # descends: parts stay apart
    with pytest.raises(IndexError):
        pl.lsqr(pl.Sparse(bad), b)
    holed = a.copy()
    holed.data[7] = np.nan
    assert pl.lsmr(pl.Sparse(holed), b)[1] == 7
    x = pl.lsmr(pl.Sparse(a), b, atol=1e-12, btol=1e-12)[0]  # and as usable as before
    np.testing.assert_allclose(x, np.linalg.lstsq(a.toarray(), b)[0], atol=1e-9)
    for scale in (1e120, 1e-120):  # as far as their tests let them go
        big = a * scale
        plain = pl.MatVec(a.shape, big.dot, rmatvec=big.T.dot, dtype=float)
        y, z = (pl.lsmr(op, b * scale, maxiter=8)[0] for op in (pl.Sparse(big), plain))
        np.testing.assert_allclose(y, z, rtol=1e-9)
    assert (pl.lsmr(pl.Sparse(a), 0 * b)[0] == 0).all()
