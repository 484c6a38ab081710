"""What is assumed of a matrix is tested to the rounding of the precision that it was given in, not
of what it is applied to."""

import numpy as np
import pytest

import pylinop as pl


@pytest.fixture(params=["cheap", "full"])
def check(request):
    with pl.config(check=request.param):
        yield


def orthogonal(rng, n, dtype):
    a = rng.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((n, n))
    return np.linalg.qr(a)[0].astype(dtype)


@pytest.mark.no_verify("what is orthogonal to float32's rounding solves to that, not to double's")
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 20, 100])
def test_single_precision_with_double(dtype, n, rng, check):
    """A float32 matrix is orthogonal to float32's rounding."""
    q = orthogonal(rng, n, dtype)
    b = rng.standard_normal((n, 3))
    want = q.conj().T.astype(complex) @ b
    for x in (b[:, 0], b, b + 0j, b.astype("f4")):
        got = pl.solve(pl.Dense(q, "orthogonal"), x)
        np.testing.assert_allclose(got, want[:, 0] if x.ndim == 1 else want, atol=1e-5)
    np.testing.assert_allclose(pl.inv(pl.Dense(q, "orthogonal")) @ b, want, atol=1e-5)
    np.testing.assert_allclose(pl.solve(pl.Dense(q, "orthogonal").T, b), q.conj() @ b, atol=1e-5)
    np.testing.assert_allclose(np.asarray(pl.solve(pl.lazy(q, "orthogonal"), b)), want, atol=1e-5)
    two = pl.Dense(np.stack([q, q]), "orthogonal")
    np.testing.assert_allclose(pl.solve(two[[1, 0]], b)[0], want, atol=1e-5)
    wide = pl.Dense(q, "orthogonal").astype("complex128")
    np.testing.assert_allclose(pl.solve(wide, b), want, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_false_is_found(dtype, rng, check):
    """A matrix off by more than that is refused, in either precision, with either right side."""
    q = orthogonal(rng, 20, dtype) * np.dtype(dtype).type(1 + 1e-3)
    for to in ("float32", "float64"):
        with pytest.raises(ValueError, match="assumed orthogonal"):
            pl.solve(pl.Dense(q, "orthogonal"), np.ones(20, to))


def test_double_precision_is_held_to_its_own(rng, check):
    """float64's rounding counts for what was given in float64."""
    q = orthogonal(rng, 20, "float64") * (1 + 1e-6)
    with pytest.raises(ValueError, match="assumed orthogonal"):
        pl.solve(pl.Dense(q, "orthogonal"), np.ones(20))


def test_symmetry(rng, check):
    """Of triangles that differ by float32's rounding, with float64 on the right."""
    s = rng.standard_normal((20, 20)).astype("f4")
    p = s @ s.T + 20 * np.eye(20, dtype="f4")
    p[0, 1] = np.nextafter(p[1, 0], np.float32(9))
    b = rng.standard_normal(20)
    for word in ("pos", "sym", "her"):
        got = pl.solve(pl.Dense(np.stack([p, p]), word)[[0, 1, 0]], b[:, None])[0, :, 0]
        np.testing.assert_allclose(got, np.linalg.solve(p.astype(float), b), rtol=1e-5)
