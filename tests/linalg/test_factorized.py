"""pl.factorized: all that is asked of a factor, of every sort of matrix, from what it was."""

import copy
import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import pylinop as pl
from pylinop import _core

N = 24
RNG = np.random.default_rng(5)
H = RNG.standard_normal((N, N))
P = H @ H.T + N * np.eye(N)
C = H + 1j * RNG.standard_normal((N, N))
CP = C @ C.conj().T + np.eye(N)
S = sp.random(N, N, 0.1, random_state=0, format="csr") + 10 * sp.eye(N)
OPS = {
    "lu": lambda: pl.Dense(H),
    "float32": lambda: pl.Dense(P.astype(np.float32)),
    "complex": lambda: pl.Dense(C),
    "pos": lambda: pl.Dense(P, assume_a="pos"),
    "complex pos": lambda: pl.Dense(CP, assume_a="pos"),
    "csr": lambda: pl.Sparse(S.tocsr()),
    "coo": lambda: pl.Sparse(S.tocoo()),
    "dia": lambda: pl.Sparse(sp.diags([np.full(N, 3.0), np.ones(N - 1)], [0, 1])),
    "toeplitz": lambda: pl.Toeplitz(0.5 ** np.arange(N)),
    "circulant": lambda: pl.Circulant(np.r_[3.0, 1, np.zeros(N - 3), 1]),
    "kron": lambda: pl.Kron(P[:4, :4], P[:6, :6]),
    "kron + c": lambda: pl.Kron(P[:4, :4], P[:6, :6]) + 2 * pl.Identity(N),
    "woodbury": lambda: pl.LowRank(H[:, :3]) + pl.Diag(np.arange(1.0, N + 1)),
    "gram": lambda: pl.Dense(H).T @ pl.Dense(H) + pl.Identity(N),
    "blocks": lambda: pl.BlockDiag(P[:14, :14], P[14:, 14:]),
    "tridiagonal": lambda: pl.Tridiagonal(-np.ones(N - 1), np.full(N, 3.0), -np.ones(N - 1)),
    "callable": lambda: pl.MatVec((N, N), matvec=lambda v: P @ v, dtype=float),
    "kernel": lambda: pl.Kernel("rbf", H[:, :2]) + pl.Identity(N),
    "adjoint": lambda: pl.Dense(C).H,
    "slice": lambda: pl.Dense(RNG.standard_normal((30, 30)))[:N, :N],
    "batch": lambda: pl.Dense(np.stack([P, H, P + H])),
    "identity": lambda: pl.Identity(N),
}


def tolerance(D):
    """Rounding, and the condition of the matrix."""
    return 100 * D.shape[-1] * np.finfo(D.dtype).eps * np.max(np.linalg.cond(D))


def close(x, y, D):
    assert np.shape(x) == np.shape(y)
    size = max(np.abs(y).max(initial=0), 1e-300)
    assert np.abs(x - y).max(initial=0) <= tolerance(D) * size


def all_right(F, D, b):
    inverse = np.linalg.inv(D)
    close(F.solve(b), inverse @ b, D)
    close(F(b[:, 0]), inverse @ b[:, 0], D)
    close(F.solve_H(b), np.conj(np.swapaxes(inverse, -1, -2)) @ b, D)
    close(F.diagonal(), np.diagonal(inverse, axis1=-2, axis2=-1), D)
    close(F.trace(), np.trace(inverse, axis1=-2, axis2=-1), D)
    close(F.inv_quad(b), (b.conj() * (inverse @ b)).sum(axis=-2), D)
    sign, size = np.linalg.slogdet(D)
    close(F.slogdet().sign, sign, D)
    close(F.slogdet().logabsdet, size, D)
    with np.errstate(invalid="ignore"):
        want = np.log(sign) + size if D.dtype.kind == "c" else np.where(sign > 0, size, np.nan)
    assert np.allclose(F.logdet(), want, rtol=1e-5, equal_nan=True)
    assert F.shape == D.shape


@pytest.mark.parametrize("name", OPS)
def test_every_sort_of_matrix(name):
    op = OPS[name]()
    D = op.toarray()
    F = pl.factorized(op)
    b = RNG.standard_normal((N, 3)).astype(D.real.dtype)
    all_right(F, D, b)
    all_right(pickle.loads(pickle.dumps(F)), D, b)
    assert copy.copy(F) is F and copy.deepcopy(F) is F
    assert F.dtype == np.linalg.inv(D).dtype


@pytest.mark.parametrize("name", [name for name in OPS if name != "batch"])
def test_changes_of_every_sort(name):
    op = OPS[name]()
    D = op.toarray()
    F = pl.factorized(op)
    U, V = RNG.standard_normal((2, N, 2)).astype(D.real.dtype)
    u, bottom = U[:, 0], np.r_[V[:, 1], 1].astype(D.real.dtype)[:, None]
    corner = (5 * np.eye(2)).astype(D.real.dtype)
    larger = np.block([[D + U @ U.T, u[:, None]], [u[None], np.array([[100.0]], u.dtype)]])
    cases = [
        (F.update(U), D + U @ U.T),
        (F.update(u), D + np.outer(u, u)),
        (F.update(U, V), D + U @ V.T),
        (F.update(U, -U), D - U @ U.T),
        (F.update(U).update(V, U), D + U @ U.T + V @ U.T),
        (F.append(U, 10 * corner), np.block([[D, U], [U.T, 10 * corner]])),
        (F.append(U, corner, V.T), np.block([[D, U], [V.T, corner]])),
        (F.update(U).append(u, 100.0).update(bottom), larger + bottom @ bottom.T),
    ]
    for G, want in cases:
        b = RNG.standard_normal((len(want), 2)).astype(D.real.dtype)
        all_right(G, want, b)
        close(G.A.toarray(), want, want)
    all_right(pickle.loads(pickle.dumps(cases[-1][0])), cases[-1][1], b)


def test_complex_changes():
    U, V = C[:, :2].copy(), C[:, 2:4].copy()
    b = RNG.standard_normal((N, 2)) * (1 + 1j)
    F = pl.factorized(CP, assume_a="pos")
    all_right(F.update(U), CP + U @ U.conj().T, b)
    all_right(F.update(U, V), CP + U @ V.conj().T, b)
    D = np.block([[CP, U], [U.conj().T, 50 * np.eye(2)]])
    all_right(F.append(U, 50 * np.eye(2)), D, np.ones((N + 2, 2)))
    D = np.block([[CP, U], [V.T, 50j * np.eye(2)]])
    all_right(F.append(U, 50j * np.eye(2), V.T), D, np.ones((N + 2, 2)))


def test_many_columns_are_factored_anew():
    F = pl.factorized(P, assume_a="pos")
    thin, wide = F.update(H[:, :6]), F.update(H[:, :7])
    assert type(wide) is pl.Factorized is not type(thin)
    all_right(thin, P + H[:, :6] @ H[:, :6].T, np.ones((N, 1)))
    all_right(wide, P + H[:, :7] @ H[:, :7].T, np.ones((N, 1)))
    twice = F.update(H[:, :4]).update(H[:, 4:8])
    assert type(twice) is pl.Factorized and twice.A.assume_a == "pos"


@pytest.mark.parametrize("size", [1e-9, 1e-15])
def test_an_ill_conditioned_base_costs_no_accuracy(size):
    """Woodbury on a nearly singular matrix loses digits that the new one has."""
    base = np.diag(np.r_[size, np.ones(N - 1)])
    u = np.r_[1.0, np.zeros(N - 1)]
    q = np.linalg.qr(H)[0]
    A = q @ base @ q.T
    F = pl.factorized(A).update(q @ u)
    new = A + np.outer(q @ u, q @ u)
    b = RNG.standard_normal(N)
    for x, D in ((F.solve(b), new), (F.solve_H(b), new.T)):
        eta = np.linalg.norm(b - D @ x) / (np.linalg.norm(D, 2) * np.linalg.norm(x))
        assert eta <= 5 * N * np.finfo(float).eps


def test_the_way_is_left_where_it_is_not_accurate(monkeypatch):
    F = pl.factorized(P).update(H[:, :2])
    monkeypatch.setattr(type(F), "_through", lambda self, b, adjoint: np.zeros_like(b) + 1)
    D = P + H[:, :2] @ H[:, :2].T
    close(F.solve(H[:, 0]), np.linalg.solve(D, H[:, 0]), D)
    assert F._by_itself is not None


def test_it_is_a_snapshot():
    a, d = P.copy(), np.ones(N)
    A = pl.Dense(a) + pl.Diag(d)
    b = RNG.standard_normal(N)
    F = pl.factorized(A)
    first = F.solve(b)
    a[...], d[...] = H, 7.0
    assert F.solve(b).tobytes() == first.tobytes()
    close(F.update(b).solve(b), np.linalg.solve(P + np.eye(N) + np.outer(b, b), b), P)
    close(pl.solve(A, b), np.linalg.solve(H + 7 * np.eye(N), b), H)
    s = S.copy().tocsr()
    G = pl.factorized(s)
    s.data[...] = 0
    close(G.solve(b), np.linalg.solve(S.toarray(), b), S.toarray())


def test_frozen_arrays_are_shared():
    a = pl.freeze(P)
    own = pl.factorized(pl.Dense(a)).A.args[0]
    assert np.shares_memory(own, a)
    b = P.copy()
    assert not np.shares_memory(pl.factorized(b).A.args[0], b)


def test_one_array_stays_one():
    """So that the snapshot is seen to be Hermitian as the formula is, and is held once."""
    A = pl.Dense(H).T @ pl.Dense(H) + pl.Identity(N)
    F = pl.factorized(A)
    b = np.ones(N)
    names = [[step["name"] for step in op.explain("solve", b).steps] for op in (A, F.A)]
    assert names[0] == names[1] and "potrf" in names[0]
    assert H.nbytes <= F.nbytes - _core._owned(F._owner.number) < 2 * H.nbytes


def test_what_it_derives_is_its_own():
    gc.collect()
    before = _core._store()
    F = pl.factorized(P, assume_a="pos")
    F.logdet(), F.sample(rng=0)
    held = _core._store()["held"] - before["held"]
    assert held >= 8 * N * N and F.nbytes >= held + P.nbytes
    assert _core._store()["bytes"] == before["bytes"]
    misses = _core._store()["misses"]
    limit = pl._base.config.get("cache_limit")
    try:
        pl.config(cache_limit=0)
        F.solve(P[0]), F.solve_H(P[0]), F.sample(rng=1)
    finally:
        pl.config(cache_limit=limit)
    assert _core._store()["misses"] == misses
    A = F.A
    del F
    gc.collect()
    assert _core._store()["held"] == before["held"]
    pl.solve(A, P[0])  # outlives it, as any other operator
    assert _core._store()["held"] == before["held"]


def test_it_reads_nothing_again():
    """No fingerprints: what was written where nobody may write is not seen."""
    F = pl.factorized(P)
    with pl.config(verify=False):
        first = F.solve(P[0])
        own = F.A.args[0]
        import ctypes

        ctypes.memset(own.ctypes.data, 0, own.nbytes)
        assert F.solve(P[0]).tobytes() == first.tobytes()


@pytest.mark.parametrize("change", [None, "update", "append"])
@pytest.mark.parametrize("dtype", [float, complex])
def test_draws_have_the_covariance(change, dtype):
    n = 3
    A = np.array([[2.0, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1.5]]).astype(dtype)
    if dtype is complex:
        A[0, 1], A[1, 0] = 0.5j, -0.5j
    F = pl.factorized(A, assume_a="pos")
    want = A
    u = np.array([1.0, -1, 0.5]) * (1j if dtype is complex else 1)
    if change == "update":
        F, want = F.update(u), A + np.outer(u, u.conj())
    elif change == "append":
        F = F.append(u / 2, 4.0)
        want = np.block([[A, u[:, None] / 2], [u.conj()[None] / 2, np.array([[4.0]])]])
    x = F.sample(40_000, rng=1)
    assert x.shape == (40_000, len(want)) and F.sample(rng=2).shape == (len(want),)
    assert F.sample((2, 3), rng=2).shape == (2, 3, len(want))
    assert np.abs(x.T @ x.conj() / len(x) - want).max() <= 5 * 4 * np.sqrt(2 / len(x))
    assert F.sample(3, rng=4).tobytes() == F.sample(3, rng=4).tobytes()
    assert n <= len(want)


def test_draws_where_something_is_taken_away():
    u = np.array([0.5, 0.5])
    x = pl.factorized(np.eye(2)).update(u, -u).sample(40_000, rng=3)
    assert np.abs(x.T @ x / len(x) - (np.eye(2) - 0.25)).max() <= 0.05


def test_out():
    F = pl.factorized(P)
    b = RNG.standard_normal((N, 2))
    want = F.solve(b)
    out = np.empty((N, 2))
    assert F.solve(b, out=out) is out and out.tobytes() == want.tobytes()
    assert F.solve(b, out=b) is b and b.tobytes() == want.tobytes()
    with pytest.raises(ValueError, match="out must be an array of shape"):
        F.solve(want, out=np.empty(N))
    with pytest.raises(TypeError):
        F.solve(want, out=np.empty((N, 2), int))


def test_as_scipys():
    A = S.tocsc()
    b = RNG.standard_normal(N)
    assert np.allclose(pl.factorized(A)(b), sla.factorized(A)(b), rtol=1e-12, atol=0)


def test_lazy_arrays():
    L = pl.lazy(P) + pl.lazy(np.eye(N))
    close(pl.factorized(L).solve(P[0]), np.linalg.solve(P + np.eye(N), P[0]), P)


def test_sizes_without_numbers():
    F = pl.factorized(np.empty((0, 0)))
    assert F.solve(np.empty((0, 2))).shape == (0, 2) and F.logdet() == 0
    assert pl.factorized([[2.0]]).append([1.0], 3.0).update([0.0, 1.0]).solve([1.0, 4.0]).shape == (
        2,
    )


def test_errors():
    with pytest.raises(pl.LinAlgError, match="square"):
        pl.factorized(np.ones((2, 3)))
    with pytest.raises(pl.LinAlgError, match="(?i)singular"):
        pl.factorized(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="assume_a says something of an array"):
        pl.factorized(pl.Toeplitz([1.0, 0.0]), assume_a="pos")
    F = pl.factorized(P)
    G = F.update(H[:, 0])
    for call in (F.solve, F.solve_H, G.solve, G.solve_H, F.inv_quad):
        with pytest.raises(ValueError, match="Dimension mismatch"):
            call(np.ones(N + 1))
        with pytest.raises(ValueError, match="Dimension mismatch"):
            call(1.0)
    with pytest.raises(ValueError, match="U must have shape"):
        F.update(np.ones(N + 1))
    with pytest.raises(ValueError, match="they must be alike"):
        F.update(H[:, :1], H[:, :2])
    with pytest.raises(ValueError, match="D must have shape"):
        F.append(H[:, :2], 1.0)
    with pytest.raises(ValueError, match="C must have shape"):
        F.append(H[:, :2], np.eye(2), H[:, :2])
    with pytest.raises(ValueError, match="of one matrix"):
        pl.factorized(np.stack([P, P])).update(H[:, 0])
    with pytest.raises(pl.LinAlgError, match="(?i)singular"):
        pl.factorized(np.eye(2)).update([1.0, 0.0], [-1.0, 0.0])
    with pytest.raises(TypeError, match="numbers"):
        F.update(np.array(["a"] * N))


def test_nan_passes_through():
    b = np.full(N, np.nan)
    F = pl.factorized(P).update(H[:, 0])
    assert np.isnan(F.solve(b)).all() and F._by_itself is None


def test_repr_says_how_large_it_is():
    F = pl.factorized(P)
    assert repr(F) == f"<{N}x{N} Factorized of Dense, {F.nbytes:,} bytes>"
    assert F.update(H[:, 0]).nbytes > F.nbytes


def test_what_an_object_holds_stays_where_the_bound_drops_the_rest():
    rng = np.random.default_rng(3)
    a, other = (x @ x.T + 60 * np.eye(60) for x in rng.standard_normal((2, 60, 60)))
    F = pl.factorized(a, assume_a="pos")
    F.solve(np.ones(60))
    held = F.nbytes
    pl.solve(pl.Dense(other, "pos"), np.ones(60))
    limit = _core._store()["limit"]
    try:
        pl.config(cache_limit=1)
        assert F.nbytes == held
    finally:
        pl.config(cache_limit=limit)
