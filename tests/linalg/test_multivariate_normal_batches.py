"""Parts of a batch of normal distributions, against each distribution by itself."""

import numpy as np
import pytest

import pylinop as pl


def fresh():
    return np.random.default_rng()


def batch(n, rng, dtype=float, shape=(3,)):
    a = rng.standard_normal((*shape, n, 2 * n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    return a @ np.conj(np.swapaxes(a, -1, -2)) / n + np.eye(n)


def alike(got, each):
    """Is got the batch of these?"""
    index = list(np.ndindex(got.batch_shape))
    assert len(index) == len(each) > 1
    mean = np.broadcast_to(got.mean, (*got.batch_shape, got.dim))
    for i, one in zip(index, each, strict=True):
        np.testing.assert_allclose(mean[i], one.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got.cov.toarray()[i], one.cov.toarray(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("by", ["cov", "precision"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [2, 16, 17])
@pytest.mark.parametrize("shared", [False, True])
def test_each_is_as_by_itself(by, dtype, n, shared):
    rng = fresh()
    A, m = batch(n, rng, dtype), rng.standard_normal(n if shared else (3, n))
    d = pl.MultivariateNormal(m, **{by: A})
    one = [pl.MultivariateNormal(m if shared else m[k], **{by: A[k]}) for k in range(3)]
    i = rng.permutation(n)[: max(1, n // 3)]
    alike(d.marginal(i), [p.marginal(i) for p in one])
    many = rng.permutation(n)[: n - 1]
    alike(d[many], [p[many] for p in one])
    y = rng.standard_normal(len(i))
    alike(d.condition(y, i), [p.condition(y, i) for p in one])
    ys = rng.standard_normal((3, len(i)))
    alike(d.condition(ys, i), [p.condition(ys[k], i) for k, p in enumerate(one)])
    H, b = rng.standard_normal((3, n)), rng.standard_normal(3)
    for noise in (0.5, np.array([0.5, 1.0, 2.0]), np.eye(3) + 0.1):
        got = d.condition(np.ones(3), H=H, noise=noise)
        alike(got, [p.condition(np.ones(3), H=H, noise=noise) for p in one])
    each = rng.standard_normal((3, 3))
    got = d.condition(each, H=H, noise=0.5)
    alike(got, [p.condition(each[k], H=H, noise=0.5) for k, p in enumerate(one)])
    K = pl.Diag(np.arange(1.0, n + 1))
    alike(K @ d + 1.0, [K @ p + 1.0 for p in one])
    alike(d.affine(H[:1], b[:1]), [p.affine(H[:1], b[:1]) for p in one])
    kl = d.kl_divergence(pl.MultivariateNormal(np.zeros(n), 2.0))
    want = [p.kl_divergence(pl.MultivariateNormal(np.zeros(n), 2.0)) for p in one]
    np.testing.assert_allclose(kl, want, rtol=1e-9)
    other = batch(n, rng, dtype)
    kl = d.kl_divergence(pl.MultivariateNormal(m, other))
    want = [p.kl_divergence(pl.MultivariateNormal(p.mean, other[k])) for k, p in enumerate(one)]
    np.testing.assert_allclose(kl, want, rtol=1e-9)
    assert d.condition(y, i).sample(5, rng=1).shape == (5, 3, n - len(i))


def test_structure_and_two_batch_dimensions():
    rng = fresh()
    t = np.exp(-np.arange(6.0)) * rng.uniform(1, 2, (2, 3, 1))
    d = pl.MultivariateNormal(0, pl.Toeplitz(t))
    one = [pl.MultivariateNormal(0, pl.Toeplitz(c)) for c in t.reshape(6, 6)]
    alike(d.condition([1.0, 2.0], [0, 5]), [p.condition([1.0, 2.0], [0, 5]) for p in one])
    alike(d[1:3], [p[1:3] for p in one])


def test_errors():
    rng = fresh()
    d = pl.MultivariateNormal(0, batch(4, rng))
    with pytest.raises(ValueError, match=r"observations of shape \(2, 1\) do not fit .*\(3,\)"):
        d.condition(np.ones((2, 1)), [0])
    with pytest.raises(ValueError, match=r"must have shape \(m, 4\)"):
        d.condition(np.ones(2), H=np.ones((2, 3)), noise=1.0)
    p = pl.MultivariateNormal(0, precision=batch(4, rng))
    with pytest.raises(NotImplementedError, match="Give cov=, or noise="):
        p.condition(np.ones(2), H=np.ones((2, 4)))
    with pytest.raises(NotImplementedError, match="K.toarray"):
        pl.MultivariateNormal(np.zeros(4), pl.lazy(batch(4, rng))).marginal([0])


def test_the_element_at_fault_is_named():
    """Whatever shows it: the diagonal, the determinant or a quadratic form, an eigenvalue."""
    rng = fresh()

    def text(spoil, error=np.linalg.LinAlgError, shape=(3,), **options):
        A = batch(4, rng, shape=shape)
        spoil(A[(2,) if len(shape) == 1 else (1, 0)])
        with pl.config(**options), pytest.raises(error) as caught:
            pl.MultivariateNormal(np.zeros(4), A).logpdf(np.ones(4))
        return str(caught.value)

    def entry(value, *places):
        def spoil(a):
            for i, j in places:
                a[i, j] = value

        return spoil

    assert "this one (batch element 2) has -3 on its diagonal" in text(entry(-3.0, (1, 1)))
    assert "(batch element (1, 0)) has" in text(entry(-3.0, (1, 1)), shape=(2, 2))
    assert "(batch element 2) " in text(entry(99.0, (0, 1), (1, 0)))
    assert "(batch element 2) has the eigenvalue" in text(entry(99.0, (0, 1), (1, 0)), check="full")
