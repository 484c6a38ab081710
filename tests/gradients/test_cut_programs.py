"""Programs in two halves: what the first half factors the second one does not factor again."""

import copy
import gc
import pickle

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._gradients.contents import printed
from pylinop._programs import halves
from pylinop._programs.halves import _derive

PROGRAMS = {}


@pytest.fixture(autouse=True)
def _held_however_small(monkeypatch):
    """Halves this small make their factors for themselves, which is faster."""
    monkeypatch.setattr(halves, "_WORTH", 0.0)
    _derive.clear()
    yield
    _derive.clear()


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def likelihood(K, y):
    quad, log = pl.inv_quad_logdet(K, y)
    return 0.5 * (quad + log)


def definite(rng, n):
    A = rng.standard_normal((n, n))
    return A @ A.T / n + np.eye(n)


@program
def dense(rng):
    y = rng.standard_normal(60)
    return lambda A: likelihood(pl.Dense(A, "pos"), y), (definite(rng, 60),)


@program
def general(rng):
    A, b = rng.standard_normal((60, 60)) + 9 * np.eye(60), rng.standard_normal(60)
    return lambda A: np.sum(pl.solve(A, b) ** 2) + pl.slogdet(A)[1], (A,)


@program
def kernel(rng):
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)

    def f(p):
        K = pl.Kernel("rbf", X, variance=np.exp(p[0]), length_scale=np.exp(p[1]))
        return likelihood(K + np.exp(p[2]) * pl.Identity(60), y)

    return f, (np.array([0.1, -0.2, -1.0]),)


@program
def low_rank(rng):
    y = rng.standard_normal(300)
    return (
        lambda d, U: likelihood(pl.Diag(np.exp(d)) + pl.LowRank(U), y),
        (0.3 * rng.standard_normal(300), rng.standard_normal((300, 4))),
    )


@program
def band(rng):
    ab = rng.standard_normal((5, 200)) / 4
    ab[2] += 5
    y = rng.standard_normal(200)
    return (
        lambda ab: (
            np.sum(pl.solve(pl.Banded((2, 2), ab), y) ** 2) + pl.slogdet(pl.Banded((2, 2), ab))[1]
        ),
        (ab,),
    )


@program
def markov(rng):
    t = np.sort(rng.random(200)) * 20
    y = np.sin(t)

    def f(p):
        K = pl.quasiseparable("matern32", t, variance=np.exp(p[0]), length_scale=np.exp(p[1]))
        return likelihood(K + np.exp(p[2]) * pl.Identity(200), y)

    return f, (np.array([0.1, 0.2, -1.0]),)


@program
def kron_and_noise(rng):
    y = rng.standard_normal(120)

    def f(A, B, s):
        K = pl.Kron(pl.Dense(A, "pos"), pl.Dense(B, "pos")) + np.exp(s) * pl.Identity(120)
        return likelihood(K, y)

    return f, (definite(rng, 12), definite(rng, 10), np.array(-0.3))


@program
def kron(rng):
    y = rng.standard_normal(120)
    return (
        lambda A, B: likelihood(pl.Kron(pl.Dense(A, "pos"), pl.Dense(B, "pos")), y),
        (definite(rng, 12), definite(rng, 10)),
    )


@program
def batch(rng):
    A, y = np.stack([definite(rng, 20) for _ in range(30)]), rng.standard_normal((30, 20, 1))
    return lambda A: np.sum(pl.inv_quad_logdet(pl.Dense(A, "pos"), y)[1]), (A,)


@program
def several_values(rng):
    y = rng.standard_normal(60)
    return (
        lambda A: (pl.logdet(pl.Dense(A, "pos")) * 1.0, pl.solve(pl.Dense(A, "pos"), y)),
        (definite(rng, 60),),
    )


def ones_like(values):
    return tuple(np.ones_like(v) for v in values) if isinstance(values, tuple) else 1.0


def factored(call):
    """What derived values a call makes, and what it gives."""
    with pl.explaining() as record:
        found = call()
    steps = [s for p in record.plans for s in p.steps if s["kept"] and not s["conditional"]]
    return [s["name"] for s in steps if s["took"] is not None], found


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("limit", [None, 0])
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "general"])  # see below
def test_one_factor_over_both_halves(name, limit, rng):
    f, args = PROGRAMS[name](rng)
    p = pl.program(f)
    if limit is not None:
        pl.config(cache_limit=limit)  # the frame holds them, not the cache
    try:
        for _ in range(2):
            first, (values, residual) = factored(lambda: p.cut(*args))
            assert first, "nothing is factored"
            again, grads = factored(lambda: residual(ones_like(values)))
            assert not set(first) & set(again), (first, again)
    finally:
        if limit is not None:
            pl.config(cache_limit=256 << 20)

    def total(*args):
        made = f(*args)
        return made if not isinstance(made, tuple) else made[0] + np.sum(made[1])

    due = pl.grad(total, tuple(range(len(args))))(*args)
    for g, d in zip(grads, due, strict=True):
        assert np.abs(g - d).max() <= 1e-9 * (1 + np.abs(d).max())


@pytest.mark.no_verify
def test_the_inverse_transposed_takes_the_factor_of_the_first_half(rng):
    """Its columns are solutions by substitution the other way (tests/linalg/test_inverse_columns
    .py)."""
    f, args = PROGRAMS["general"](rng)
    first, (values, residual) = factored(lambda: pl.program(f).cut(*args))
    again, grads = factored(lambda: residual(ones_like(values)))
    assert (first.count("getrf"), again.count("getrf")) == (1, 0)
    due = pl.grad(f)(*args)
    assert np.abs(grads[0] - due).max() <= 1e-9 * (1 + np.abs(due).max())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_half_gives_the_same_bits_whenever_it_is_run(name, rng):
    f, args = PROGRAMS[name](rng)
    p = pl.program(f)
    values, residual = p.cut(*args)
    ct = ones_like(values)
    due = residual(ct)
    other = p.cut(*[1.5 * a for a in args])
    other[1](ct)
    del other
    gc.collect()
    for found in (residual(ct), p.cut(*args)[1](ct)):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found, due, strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_held_goes_with_the_second_half(name, rng):
    f, args = PROGRAMS[name](rng)
    p = pl.program(f)
    p.cut(*args)
    gc.collect()
    before = _core._store()["held"]
    values, residual = p.cut(*args)
    own = sum(a.nbytes for a in args)
    held = _core._store()["held"] - before
    assert held > 0 and residual.nbytes >= own + held
    residual(ones_like(values))
    del residual
    gc.collect()
    assert _core._store()["held"] == before


def test_arguments_may_change_between_the_halves(rng):
    f, (A,) = PROGRAMS["dense"](rng)
    p = pl.program(f)
    _, residual = p.cut(A)
    (due,) = residual(1.0)
    A[:] = 2 * np.eye(len(A))
    assert residual(1.0)[0].tobytes() == due.tobytes()
    due[:] = 0  # what is handed out is the caller's
    assert np.abs(residual(1.0)[0]).max() > 0


def test_a_matrix_the_function_holds_must_not_change(rng):
    K, y = definite(rng, 50), rng.standard_normal(50)
    p = pl.program(lambda s: likelihood(pl.Dense(K, "pos") + s * pl.Identity(50), y))
    _, residual = p.cut(np.array(0.3))
    residual(1.0)
    K[3, 3] += 1
    with pytest.raises(RuntimeError, match=r"shape \(50, 50\)"):
        residual(1.0)
    K[3, 3] -= 1


@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")
def test_halves_that_are_not_definite():
    """What is false is told by the half that needs it; NaN where that is asked for."""
    A, y = np.diag([1.0, -1.0, 2.0]), np.ones(3)
    p = pl.program(lambda A: likelihood(pl.Dense(A, "pos"), y))
    with pytest.raises(pl.LinAlgError):
        p.cut(A)
    with pl.config(not_definite="nan"):
        value, residual = p.cut(A)
        assert np.isnan(value)
        assert np.isnan(residual(1.0)[0]).all()


def test_what_is_in_the_cache_already_does_not_matter():
    """A matrix that the function holds may have been factored before: the halves give the bits
    that they give without, also ever after."""
    rng = np.random.default_rng(5)
    K, y, b = definite(rng, 60), rng.standard_normal(60), rng.standard_normal(60)

    def f(c, b):
        return pl.inv_quad_logdet(pl.Dense(K, "pos"), b)[0] * c

    found = []
    for warm in (False, True):
        _derive.clear()
        _core._clear_store()
        if warm:
            pl.solve(pl.Dense(K, "pos"), y)
        p = pl.program(f)
        for _ in range(2):
            value, residual = p.cut(np.array(0.7), b)
            found.append([np.asarray(a).tobytes() for a in (value, *residual(1.0))])
            _core._clear_store()
    assert all(a == found[0] for a in found)


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy])
def test_copies_of_a_second_half_hold_for_themselves(copied, rng):
    f, args = PROGRAMS["dense"](rng)
    p = pl.program(f)
    p.cut(*args)
    gc.collect()
    before = _core._store()["held"]
    residual = p.cut(*args)[1]
    (due,) = residual(1.0)
    other = copied(residual)
    del residual
    assert _core._store()["held"] == before
    assert other(1.0)[0].tobytes() == due.tobytes()
    assert _core._store()["held"] > before
    del other
    gc.collect()
    assert _core._store()["held"] == before


@pytest.mark.parametrize(("n", "held"), [(40, False), (400, True)])
def test_what_is_made_in_no_time_is_not_held(n, held, rng, monkeypatch):
    monkeypatch.undo()
    A, y = definite(rng, n), rng.standard_normal(n)
    f = lambda A: likelihood(pl.Dense(A, "pos"), y)
    p = pl.program(f)
    before = _core._store()["held"]
    for _ in range(4):
        value, residual = p.cut(A)
        (found,) = residual(1.0)
    due_value, due = pl.value_and_grad(f)(A)
    assert np.isclose(value, due_value, rtol=1e-12)
    assert np.abs(found - due).max() <= 1e-12 * np.abs(due).max()
    assert residual(1.0)[0].tobytes() == found.tobytes()
    assert (_core._store()["held"] > before + 8 * n * n) is held
    assert (residual.nbytes > 16 * n * n) is held  # else the argument and its gradient


def test_bytes_tell_arrays_apart():
    a = np.arange(24.0).reshape(4, 6)
    same = [a, a.copy(), np.asfortranarray(a), np.repeat(a, 2, axis=0)[::2]]
    assert len({printed(x) for x in same}) == 1
    others = [a + 1e-13 * (a == 23), -a, a[:, :5], a.astype("f4"), a + 0j, np.array(1.0), a[:0]]
    assert len({printed(x) for x in [a, *others]}) == 1 + len(others)
    for n in (1, 7, 8, 9, 63, 64, 65, 1000):
        base = np.zeros(n)
        found = {printed(base)}
        for k in range(n):
            moved = base.copy()
            moved[k] = 5e-324
            found.add(printed(moved))
        assert len(found) == n + 1


@program
def toeplitz_solution(rng):
    y = rng.standard_normal(300)
    c = 0.5 ** np.arange(300.0)
    return lambda c: np.sum(pl.solve(pl.Toeplitz(c), y) ** 2), (c,)


@program
def toeplitz_likelihood(rng):
    y = rng.standard_normal(300)
    return lambda c: likelihood(pl.Toeplitz(c), y), (0.5 ** np.arange(300.0),)


SOLVES = {"potrs", "getrs", "toeplitz-solve", "kron-solve", "trsm"}


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("name", ["dense", "kron_and_noise", "toeplitz_solution"])
def test_what_waits_for_no_cotangent_is_solved_in_the_first_half(name, rng):
    """The first half keeps the solutions; the second has none to make but for determinants."""
    f, args = PROGRAMS[name](rng)
    for g in (1.0, -2.5):
        value, residual = pl.program(f).cut(*args)
        with pl.explaining() as record:
            found = residual(g)
        steps = [s for p in record.plans for s in p.steps if s["took"] is not None]
        assert not SOLVES & {s["name"] for s in steps}
        kept = sum(v.nbytes for _, v in residual._kept._solved)
        assert kept > 0 and residual.nbytes > kept
        whole = pl.grad(f, argnums=tuple(range(len(args))))(*args)
        for a, b in zip(found, whole, strict=True):
            np.testing.assert_allclose(a, g * b, rtol=0, atol=1e-10 * np.max(np.abs(b)))
        assert repr(residual(g)) == repr(found)


@pytest.mark.no_verify
def test_a_determinant_and_solves_have_one_toeplitz_factor(rng):
    f, args = toeplitz_likelihood(rng)
    p = pl.program(f)
    first, (_, residual) = factored(lambda: p.cut(*args))
    second, _ = factored(lambda: residual(1.0))
    assert "toeplitz-factor" in first and "toeplitz-factor" not in second


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_number_of_any_dtype(dtype, rng):
    A, y = definite(rng, 40).astype(dtype), rng.standard_normal(40).astype(dtype)
    p = pl.program(lambda A, y: y @ pl.solve(pl.Dense(A, "pos"), y))
    value, residual = p.cut(A, y)
    by_A, by_y = residual(dtype(0.5))
    x = np.linalg.solve(A.astype(float), y.astype(float))
    assert by_A.dtype == by_y.dtype == value.dtype == dtype
    tol = 100 * np.finfo(dtype).eps * np.linalg.cond(A) * np.max(np.abs(x)) ** 2
    np.testing.assert_allclose(by_A, -0.5 * np.outer(x, x), rtol=0, atol=tol)
    np.testing.assert_allclose(by_y, x, rtol=0, atol=tol)


def test_a_singular_matrix_of_which_the_value_is_there(rng):
    """The first half gives -inf; the second one says why it has nothing."""
    U = rng.standard_normal((60, 3))
    p = pl.program(lambda A: pl.slogdet(U.T @ (A @ U))[1] + np.sum(A))
    A = definite(rng, 60)
    p.cut(A)
    value, residual = p.cut(np.zeros((60, 60)))
    assert value == -np.inf
    with pytest.raises(np.linalg.LinAlgError):
        residual(1.0)


def test_a_short_one_has_its_gradient_with_its_value(rng, monkeypatch):
    """Both halves take as long as one program, and the second one computes nothing."""
    monkeypatch.setattr(halves, "_WORTH", 1.0)
    f, args = low_rank(rng)
    p = pl.program(f)
    for _ in range(4):
        value, residual = p.cut(*args)
        with pl.explaining() as record:
            found = residual(-3.0)
        assert not record.plans
        due_value, due = pl.value_and_grad(p, (0, 1))(*args)
        assert value == due_value
        for a, b in zip(found, due, strict=True):
            assert a.flags.writeable and np.array_equal(a, -3.0 * b)
    assert residual.nbytes == 2 * sum(a.nbytes for a in args)
    again = copy.deepcopy(residual)
    assert all(map(np.array_equal, again(-3.0), found))


@pytest.mark.parametrize("n", [3, 300])
def test_a_value_without_a_gradient_is_the_first_halfs(n, rng):
    """What the first half makes for the second may fail: that is then the second one's to say."""
    there = np.ones(n)
    there[n // 2] = 0.0
    value, back = pl.program(lambda d: pl.logdet(pl.Diag(d))).cut(there)
    assert value == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="zero"):
        back(1.0)

    def steps(A):
        return np.sum(pl.inv(A) @ np.ones(n)) + np.sum(np.nextafter(A, 1.0))

    A = rng.standard_normal((n, n)) + 3 * n * np.eye(n)
    value, back = pl.program(steps).cut(A)
    np.testing.assert_allclose(value, np.sum(np.linalg.inv(A)) + np.sum(A), rtol=1e-9)
    with pytest.raises(NotImplementedError, match="nextafter"):
        back(1.0)
