"""Arrays are told apart by contents where a column of small integers has changed its order alone:
the low halves of such doubles are 0, and two orders of one block once had one fingerprint."""

import numpy as np

import pylinop as pl

FIRST = [8, 9, 12, 11, 0, 14, 7, 2, 5, 3, 15, 4, 6, 1, 13, 10]
SECOND = [8, 10, 7, 2, 0, 11, 1, 12, 9, 13, 14, 15, 4, 6, 5, 3]


def test_powers_of_two_in_two_orders(rng):
    X = rng.standard_normal((40, 8))
    for order in (FIRST, SECOND):
        X[15:31, 0] = np.exp2(order)
        s = pl.svdvals(X)
        np.testing.assert_allclose(s, np.linalg.svd(X, compute_uv=False), rtol=1e-12)
        Q, R = (np.asarray(f) for f in pl.qr(X))
        np.testing.assert_allclose(Q @ R, X, atol=1e-13 * s[0])
        np.testing.assert_allclose(pl.pinv(X) @ X, np.eye(8), atol=1e-12)


def test_orders_of_a_block(rng):
    """The singular vector of one column, in many orders."""
    A = np.zeros((16, 8))
    A[:, 0] = np.exp2(np.arange(16))
    seen = set()
    for _ in range(300):
        A[:, 0] = A[rng.permutation(16), 0]
        U = pl.svd(A, full_matrices=False)[0]
        first = np.abs(np.asarray(U)[:, 0]) * np.linalg.norm(A[:, 0])
        np.testing.assert_allclose(first, A[:, 0], rtol=1e-9, atol=1e-9)
        seen.add(A[:, 0].tobytes())
    assert len(seen) > 290
