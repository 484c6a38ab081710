"""QR, least squares and null spaces of transforms that are unitary up to their scale; and Frobenius
norms of Kronecker sums, in which diagonals may cancel."""

import numpy as np
import pytest

import pylinop as pl

NORMS = (None, "backward", "ortho", "forward")


def fired(e):
    return {rule["name"] for plan in e.plans for rule in plan.rules if rule["outcome"] == "fired"}


def transforms():
    for norm in NORMS:
        yield pl.DFT(6, norm)
        yield pl.DFT((2, 3), norm, np.complex64)
        for kind in (1, 2, 3, 4):
            yield pl.DCT(6, kind, norm)
        yield pl.DCT((3, 2), 2, norm, np.float32)


def test_least_squares_of_every_norm(rng):
    """By the scaled transform; of the one type whose values are not known, by the dense form."""
    for F in transforms():
        a = F.toarray()
        atol = 60 * np.finfo(a.dtype).eps
        b = rng.standard_normal((6, 2)).astype(a.real.dtype)
        with pl.explaining() as e:
            x, rest, rank, s = pl.lstsq(F, b)
        known = not (isinstance(F, pl.DCT) and F.type == 1 and F.norm != "ortho")
        assert ("lstsq-transforms" in fired(e)) == known
        np.testing.assert_allclose(x, np.linalg.lstsq(a, b)[0], atol=atol)
        np.testing.assert_allclose(s, np.linalg.svdvals(a), atol=atol * s.max())
        assert rank == 6 and s.dtype == a.real.dtype and x.dtype == a.dtype
        assert pl.null_space(F).shape == (6, 0)
        q = pl.orth(F).toarray()
        np.testing.assert_allclose(q.conj().T @ q, np.eye(6), atol=atol)


@pytest.mark.parametrize("norm", NORMS)
def test_qr_of_every_norm(norm):
    for F in (pl.DFT(6, norm), pl.DFT((2, 3), norm, np.complex64)):
        a = F.toarray()
        atol = 60 * np.finfo(a.dtype).eps
        for mode in ("reduced", "complete"):
            with pl.explaining() as e:
                Q, R = pl.qr(F, mode)
            assert "qr-transforms" in fired(e) and Q.dtype == R.dtype == a.dtype
            q, r = Q.toarray(), R.toarray()
            np.testing.assert_allclose(q @ r, a, atol=6 * atol)
            np.testing.assert_allclose(q.conj().T @ q, np.eye(6), atol=atol)
            assert not np.tril(r, -1).any()
        np.testing.assert_allclose(pl.qr(F, "r").toarray(), r, atol=atol)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_frobenius_norm_of_a_kronecker_sum(rng, dtype):
    """Also where the diagonals of the operands cancel: nothing is subtracted that is large."""
    a, b, c = (rng.standard_normal((2, n, n)) for n in (3, 4, 2))
    a, b, c = (x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0] for x in (a, b, c))
    near = 1e8 * np.eye(3) + 1e-3 * a, -1e8 * np.eye(4) + 1e-3 * b
    for parts in ((a, b), (a, b, c), near):
        K = pl.KronSum(*(x.astype(dtype) for x in parts))
        with pl.explaining() as e:
            got = pl.matrix_norm(K)
        want = np.linalg.norm(K.toarray().astype(np.complex128))
        assert abs(got - want) <= 8 * np.finfo(dtype).eps * want
        assert fired(e) == {"matrix_norm-values"}
