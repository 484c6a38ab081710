"""Kinds on the arrays of a library, compared with dense ones: for the tests beside this."""

import numpy as np
from frameworks.framework_kinds import tables

import pylinop as pl
import pylinop.array_api as pa

OURS, PLAIN = tables(pa), tables(pl)
NAMES = list(PLAIN.KINDS)


def close(got, due):
    assert np.shape(got) == np.shape(due)
    size = max(1, np.max(np.abs(due), initial=0))
    assert np.max(np.abs(got - due), initial=0) <= 1e-8 * size


def compared(name, dtype, put, back):
    """Of a kind's name; `put` makes an array of the library of one of NumPy, `back` the reverse."""
    plain, arrays = PLAIN.KINDS[name](PLAIN.Make(dtype))
    ours, _ = OURS.KINDS[name](OURS.Make(dtype))
    K, m = ours(*map(put, arrays)), PLAIN.Make(dtype)
    A = np.asarray(pl.lazy(plain(*arrays)).toarray())
    x, w = m.a(A.shape[1]), m.a(A.shape[0])
    assert K.shape == A.shape
    close(back(K.toarray()), A)
    close(back(K @ put(x)), A @ x)
    close(back(K.T @ put(w)), w @ A)  # strict's arrays do not leave the operation to us
    close(back(K.H @ put(w)), A.conj().T @ w)
    close(back(pa.diagonal(K)), np.diagonal(A))
    if A.shape[0] != A.shape[1]:
        return
    close(back(pa.trace(K)), np.trace(A))
    if np.linalg.cond(A) < 1e8:
        close(back(pa.solve(K, put(w))), np.linalg.solve(A, w))
        close(back(pa.slogdet(K).logabsdet), np.linalg.slogdet(A)[1])
        close(back(pa.inv_quad_logdet(K, put(w))[0]), w.conj() @ np.linalg.solve(A, w))
