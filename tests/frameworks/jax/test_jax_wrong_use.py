"""What must raise with our text, or be right: dtypes, tracers, donated buffers, errors of plans."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import pylinop as pl
import pylinop.jax as pj


def test_double_precision_without_x64():
    with jax.enable_x64(False):
        with pytest.raises(TypeError, match="float64 and shape .3,., but JAX runs in 32 bits"):
            pj.Diag(np.ones(3))
        with pytest.raises(TypeError, match=r"complex128.*astype\('complex64'\)"):
            pj.solve(pj.Diag(jnp.ones(3)), np.ones(3) * 1j)
        K = 2.0 * pj.Diag(np.ones(3, np.float32)) + np.float64(1.5) * pj.Identity(3)
        assert K.dtype == np.float32
        x = pj.solve(K, jnp.ones(3))
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, 1 / 3.5, rtol=1e-6)
        assert pj.Identity(3).toarray().dtype == np.float32


def test_single_precision_keeps_the_contract():
    rng = np.random.default_rng(0)
    d, U = rng.random(50) + 2, rng.standard_normal((50, 4))
    b = rng.standard_normal(50)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            small = [jnp.asarray(a, jnp.float32) for a in (d, U, b)]
            f = jax.jit(lambda d, U, b: pj.solve(pj.Diag(d) + pj.LowRank(U), b))
            x = np.asarray(f(*small))
            assert x.dtype == np.float32
            A = np.diag(d) + U @ U.T
            eta = np.linalg.norm(b - A @ x) / (np.linalg.norm(A) * np.linalg.norm(x))
            assert eta <= 10 * 50 * np.finfo(np.float32).eps / 2
            g = jax.grad(lambda *a: jnp.sum(f(*a)), (0, 1, 2))(*small)
            assert [a.dtype for a in g] == [np.float32] * 3


def test_tracers_in_the_plain_face():
    @jax.jit
    def wrong(d):
        return pl.Diag(d)

    with pytest.raises(TypeError, match=r"pylinop\.jax"):
        wrong(jnp.ones(3))
    for use in (lambda d: pl.Identity(3) @ d, lambda d: pl.solve(np.eye(3), d), pl.lazy):
        with pytest.raises(TypeError, match=r"pylinop\.jax"):
            jax.jit(use)(jnp.ones(3))
        with pytest.raises(TypeError, match=r"pylinop\.jax"):
            jax.grad(use)(jnp.ones(3))


def test_arrays_in_the_plain_face_stay():
    x = jnp.ones(3)
    D = pl.Diag(x)
    assert type(D) is pl.Diag and type(D @ x) is np.ndarray


def test_operators_of_the_other_face():
    with pytest.raises(TypeError):
        pl.solve(pj.Diag(jnp.ones(3)), np.ones(3))
    with pytest.raises(TypeError, match=r"pylinop\.jax takes its own operators"):
        pj.solve(pl.Diag(np.ones(3)), jnp.ones(3))


def test_donated_buffers():
    d = jnp.full(200, 2.0)
    K = pj.Diag(d)

    def f(d, b):
        return pj.solve(pj.Diag(d) + pj.LowRank(jnp.ones((200, 1))), b) + d

    b = jnp.arange(200.0)
    due = f(d, b)
    got = jax.jit(f, donate_argnums=(0, 1))(jnp.array(d), jnp.array(b))
    np.testing.assert_allclose(got, due, rtol=1e-6)
    d.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        K @ jnp.ones(200)


def test_errors_of_plans():
    K = pj.Diag(jnp.zeros(3))
    with pytest.raises(pl.LinAlgError, match="element 0 of the diagonal is exactly zero"):
        pj.solve(K, jnp.ones(3))
    with pytest.raises(Exception, match="element 0 of the diagonal is exactly zero"):
        jax.jit(pj.solve)(K, jnp.ones(3)).block_until_ready()
    bad = pj.Dense(-jnp.eye(3), assume_a="pos")
    with pytest.raises(Exception, match="definite"):
        jax.jit(pj.logdet)(bad).block_until_ready()


def test_shapes():
    D = pj.Diag(jnp.ones(3))
    with pytest.raises(ValueError, match="3 and 4"):
        D @ jnp.ones(4)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        D + jnp.ones((2, 3))
    with pytest.raises(ValueError, match="no matrix"):
        D + jnp.ones(3)
    with pytest.raises(ValueError, match="@"):
        D * jnp.ones(3)
    with pytest.raises(ValueError, match="multiply"):
        D * D
    with pytest.raises(pl.LinAlgError, match="square"):
        pj.inv(pj.LowRank(jnp.ones((3, 1)), jnp.ones((2, 1)))).shape
    with pytest.raises(ValueError, match="jit|3 and 4"):
        jax.jit(lambda x: D @ x)(jnp.ones(4))
    with pytest.raises(ValueError, match="neither true nor false"):
        bool(D)


def test_not_an_array_by_itself():
    D = pj.Diag(jnp.ones(3))
    with pytest.raises(TypeError, match="toarray"):
        np.asarray(D)
    with pytest.raises(TypeError):
        jnp.sum(D)
    ones = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(ones[0] @ D, ones[0])
    np.testing.assert_array_equal((ones + D).toarray(), ones + np.eye(3))
    assert isinstance(np.float32(2) * D, pj.Operator)


def test_no_derivative_is_an_error():
    """Kinds without derivatives by their arrays raise; as constants they are right."""
    rows, cols = np.array([0, 1, 2]), np.array([0, 1, 2])

    def f(data):
        return pj.logdet(pj.Sparse((data, (rows, cols)), (3, 3)) + pj.Identity(3))

    data = jnp.array([1.0, 2.0, 3.0])
    try:
        got = jax.grad(f)(data)
    except (NotImplementedError, TypeError) as error:
        assert "Sparse" in str(error) or "derivative" in str(error) or "value" in str(error)
    else:
        np.testing.assert_allclose(got, 1 / (1 + data), rtol=1e-5)
