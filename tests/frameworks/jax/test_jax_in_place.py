"""Programs on devices that C does not reach, without such a device: on the CPU with C left out,
and lowered for one that is not there."""

import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from frameworks.framework_kinds import tables
from jax.interpreters import mlir

import pylinop as pl
import pylinop.jax as pj
from pylinop.jax import in_place, primitive

OURS, PLAIN = tables(pj), tables(pl)
NAMES = list(PLAIN.KINDS)
SINGULAR = {"lowrank, U", "offdiag"}
NO_FORM = {"reflections", "reflections, all"}  # of their gradients


@pytest.fixture
def elsewhere(monkeypatch):
    """As if the CPU were a GPU, in double precision."""

    def lowered_by(rule):
        jax.clear_caches()
        in_place._compiled.cache_clear()
        of = mlir.lower_fun(rule, multiple_results=True)
        mlir.register_lowering(primitive._run, of, platform="cpu")

    monkeypatch.setattr(in_place, "is_elsewhere", lambda arrays: True)
    monkeypatch.setattr(primitive, "_executed", None)  # nothing goes by C
    lowered_by(primitive._in_place)
    with jax.enable_x64(True):
        yield
    lowered_by(primitive._on_cpu)


def close(got, due, factor=1.0):
    scale = max(1.0, float(np.max(np.abs(due), initial=0)))
    assert np.shape(got) == np.shape(due)
    assert np.max(np.abs(np.asarray(got) - due), initial=0) <= factor * 1e-10 * scale


def given(name, dtype):
    m = PLAIN.Make(dtype)
    plain, held = PLAIN.KINDS[name](m)
    ours, _ = OURS.KINDS[name](OURS.Make(dtype))
    return ours, plain, [jnp.asarray(a) for a in held], held, m


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_values_of_every_kind(elsewhere, name, dtype):
    ours, plain, arrays, held, m = given(name, dtype)
    A = np.asarray(pl.lazy(plain(*held)).toarray())
    x, X, w = m.a(A.shape[1]), m.a(A.shape[1], 3), m.a(A.shape[0])
    square = A.shape[0] == A.shape[1] and name not in SINGULAR

    def values(x, X, w, *p):
        K = ours(*p)
        found = [K.toarray(), K @ x, K @ X, K.H @ w, K.T @ w, pj.diagonal(K)]
        return [*found, pj.solve(K, w), pj.slogdet(K)[1], pj.trace(K)] if square else found

    due = [A, A @ x, A @ X, A.conj().T @ w, A.T @ w, np.diagonal(A)]
    if square:
        due += [np.linalg.solve(A, w), np.linalg.slogdet(A)[1], np.trace(A)]
    for got, one in zip(jax.jit(values)(x, X, w, *arrays), due, strict=True):
        close(got, one, 100)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_every_kind(elsewhere, name):
    ours, plain, arrays, held, m = given(name, "float64")
    shape = plain(*held).shape
    x, w = m.a(shape[1]), m.a(shape[0])
    square = shape[0] == shape[1] and name not in SINGULAR

    def f(make, pl_, np_):
        def value(x, w, *p):
            K = make(*p)
            found = np_.sum((K @ x) ** 2 * w) + np_.sum(pl_.diagonal(K) ** 2)
            if square:
                found = found + np_.sum(pl_.solve(K, x) * w) + pl_.slogdet(K)[1]
            return found

        return value

    number = tuple(range(len(arrays) + 2))
    due = pl.grad(f(plain, pl, np), number)(x, w, *held)
    asked = jax.jit(jax.grad(f(ours, pj, jnp), number))
    if name in NO_FORM:
        with pytest.raises(NotImplementedError, match="compute it on the CPU"):
            asked(jnp.asarray(x), jnp.asarray(w), *arrays)
        return
    got = asked(jnp.asarray(x), jnp.asarray(w), *arrays)
    for one, other in zip(got, due, strict=True):
        close(one, other, 1000)


def drawn(n=20, k=3):
    rng = np.random.default_rng(5)
    arrays = 1 + rng.random(n), rng.standard_normal((n, k)), rng.standard_normal(n)
    return [jnp.asarray(a) for a in arrays]


def ours(d, U, y):
    quad, logdet = pj.inv_quad_logdet(pj.Diag(d) + pj.LowRank(U), y)
    return quad + logdet


def dense(d, U, y):
    K = jnp.diag(d) + U @ U.T
    return y @ jnp.linalg.solve(K, y) + jnp.linalg.slogdet(K)[1]


def test_transforms(elsewhere):
    d, U, y = drawn()
    rows = jnp.stack([d, d + 1, d + 2])
    along = lambda f: jax.jvp(lambda d: f(d, U, y), (d,), (y,))[1]
    ways = {
        "eager": lambda f: f(d, U, y),
        "jit": lambda f: jax.jit(f)(d, U, y),
        "hessian": lambda f: jax.jit(jax.hessian(f))(d, U, y),
        "forward": along,
        "map of grad": lambda f: jax.jit(jax.vmap(jax.grad(f, 1), (0, None, None)))(rows, U, y),
        "two maps": lambda f: jax.vmap(
            lambda y: jax.vmap(f, (0, None, None))(rows, U, y), in_axes=1, out_axes=1
        )(U),
        "scan": lambda f: jax.lax.scan(lambda d, _: (d * 1.1, f(d, U, y)), d, None, length=3)[1],
    }
    for way in ways.values():
        close(way(ours), way(dense), 1000)


def test_formulas_without_arrays(elsewhere):
    """On the device that is JAX's default."""
    held = np.arange(3.0)
    asked = {
        "trace": (lambda: pj.trace(2.0 * pj.Identity(3)), 6),
        "matrix": (lambda: pj.DFT(4).toarray(), np.fft.fft(np.eye(4))),
        "held": (pj.program(lambda: 2 * pl.lazy(held)), 2 * held),
    }
    for f, due in asked.values():
        close(f(), due)
        close(jax.jit(f)(), due)


@pytest.mark.filterwarnings("error")
def test_single_precision(elsewhere):
    with jax.enable_x64(False):
        arrays = [x.astype("float32") for x in drawn()]
        found = jax.jit(ours)(*arrays)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, dense(*arrays), rtol=1e-4)


def test_arrays_that_the_formula_holds_are_read_at_each_call(elsewhere):
    """Outside of jit, where a formula is compiled otherwise."""
    x, held = jnp.ones(4), np.arange(4.0)
    f = pj.program(lambda x: pl.lazy(held) * x)
    for add in (0, 1, 2):
        np.testing.assert_array_equal(f(x), np.arange(4.0) + add)
        held += 1


def test_what_is_singular_is_not_a_number(elsewhere):
    for f in (pj.solve, jax.jit(pj.solve)):
        assert not np.isfinite(f(pj.Dense(jnp.zeros((3, 3))), jnp.ones(3))).any()


def test_settings_are_those_of_the_call(elsewhere):
    K = pj.Toeplitz(jnp.asarray([1.0, 2.0, 0.0]))  # indefinite
    assert np.isfinite(pj.slogdet(K)[1])
    with pl.config(not_definite="nan"):
        assert np.isnan(pj.slogdet(K)[1])
    assert np.isfinite(pj.slogdet(K)[1])


def test_what_has_no_form_says_so(elsewhere):
    with pytest.raises(NotImplementedError, match="other libraries"):
        pj.program(lambda x: pl.svdvals(pl.lazy(x)))(jnp.eye(3))


def test_no_call_to_the_host_is_lowered_for_a_gpu():
    """The text for a device that is not there."""
    f = lambda c, x: pj.Toeplitz(c) @ x
    x = jnp.ones(100, "float32")
    text = jax.jit(f).trace(x, x).lower(lowering_platforms=("cuda",)).as_text()
    assert "callback" not in text and "pylinop_run" not in text and "fft" in text
    text = jax.jit(f).trace(x, x).lower(lowering_platforms=("cpu",)).as_text()
    assert "pylinop_run" in text


def test_a_second_platform_is_looked_for():
    """Where it is named behind the CPU, `jax.devices()` does not tell of it."""
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", "cpu,cuda")
    try:
        assert not in_place._there_is_one_place.__wrapped__()
    finally:
        jax.config.update("jax_platforms", before)


_TWO_DEVICES = """
import jax, jax.numpy as jnp
import pylinop.jax as pj
first, second = jax.devices()
x = jax.device_put(jnp.ones(5), second)
for f in (lambda x: pj.Diag(x) @ x, lambda x: pj.logdet(pj.Diag(x))):
    assert f(x).devices() == {second} == jax.jit(f)(x).devices()
    assert f(jnp.ones(5)).devices() == {first}
assert (pj.Diag(jnp.ones(5)) @ x).devices() == {second}  # what is bound to none goes along
try:
    pj.Diag(jax.device_put(x, first)) @ x
except ValueError as error:
    assert "move them to one device" in str(error)
else:
    raise AssertionError("two devices")
"""


def test_results_lie_with_the_arguments():
    """Two CPUs stand for two devices."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    code = f"import sys; sys.path[:] = {sys.path!r}\n{_TWO_DEVICES}"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | flags)


@pytest.mark.parametrize("c", [3.0, 1.25, 0.8, -1.0])
def test_multiples_of_multiples(elsewhere, c, rng):
    a = jnp.asarray(rng.standard_normal((6, 6)) + 9 * np.eye(6))
    b, eye = jnp.asarray(rng.standard_normal(6)), jnp.eye(6)

    def loss(A, E, of, s, t):
        return jnp.sum(of(c * (s * A) - t * (s * E) + c * E, b) ** 2)

    ours = lambda s, t: loss(pj.Dense(a), pj.Identity(6), pj.solve, s, t)
    plain = lambda s, t: loss(a, eye, jnp.linalg.solve, s, t)
    got, due = (jax.jit(jax.value_and_grad(f, (0, 1)))(0.37, 0.9) for f in (ours, plain))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(due), strict=True):
        close(x, np.asarray(y))
