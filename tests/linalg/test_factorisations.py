"""Cholesky, LDL, LU, QR, least squares, null spaces and ranges, roots: of every kind, rebuilt and
compared with NumPy and SciPy on the dense form, with the structure they keep."""

import numpy as np
import pytest
import ref
import scipy.linalg
from samples import leaf

import pylinop as pl

KINDS = [*ref.LEAVES, "Hadamard"]
EPS = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def tolerance(dtype, size=1.0):
    return EPS[str(np.dtype(dtype))] * max(1.0, float(np.max(size)))


def close(got, want, dtype, size=1.0):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape[-2:] == want.shape[-2:], (got.shape, want.shape)
    assert np.all(np.abs(got - want) <= tolerance(dtype, size) * 16), np.abs(got - want).max()


def adj(a):
    return np.swapaxes(a, -1, -2).conj()


def instance(kind, rng, m, n, dtype, batch=(), invertible=False):
    """An operator and its dense form, or None."""
    if kind == "Hadamard":
        if m != n or m & (m - 1) or batch or m == 0:
            return None
        return pl.Hadamard(n, dtype), scipy.linalg.hadamard(n).astype(dtype)
    d = leaf(kind, rng, m, n, dtype, batch, invertible=invertible)
    return None if d is None else (ref.build(d), ref.dense(d))


def instances(kind, rng, dtype, shapes=((4, 4), (6, 4), (3, 6), (1, 1))):
    """Each kind, seen in all ways; in double precision also in a batch and in other shapes."""
    double = np.finfo(dtype).eps < 1e-10
    for i, (m, n) in enumerate(shapes if double else shapes[:1]):
        for batch in ((), (2,)) if i == 0 and double else ((),):
            found = instance(kind, rng, m, n, dtype, batch)
            if found is not None:
                A, a = found
                yield A, a
                yield A.T, np.swapaxes(a, -1, -2)
                if i == 0:
                    yield A.conj(), a.conj()
                    yield -2 * A, -2 * a


def span(a):
    return np.linalg.norm(a, axis=(-2, -1)).max(initial=0)


# -- every kind --


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_qr(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype):
        for mode in ("reduced", "complete"):
            Q, R = pl.qr(A, mode)
            m, n = a.shape[-2:]
            k = m if mode == "complete" else min(m, n)
            q, r = Q.toarray(), R.toarray()
            assert q.shape[-2:] == (m, k) and r.shape[-2:] == (k, n)
            assert not np.tril(r, -1).any()
            close(q @ r, a, A.dtype, span(a) * n)
            close(adj(q) @ q, np.eye(k), A.dtype, n)
            assert np.result_type(Q.dtype, R.dtype) == A.dtype
        close(pl.qr(A, "r").toarray(), pl.qr(A).R.toarray(), A.dtype, span(a) * n)


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_lu(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype):
        m, n = a.shape[-2:]
        k = min(m, n)
        P, L, U = pl.lu(A)
        p, low, up = P.toarray(), L.toarray(), U.toarray()
        assert low.shape[-2:] == (m, k) and up.shape[-2:] == (k, n)
        assert not np.tril(up, -1).any() and not np.triu(low, 1).any()
        assert (np.diagonal(low, axis1=-2, axis2=-1) == 1).all()
        assert (np.sort(p, axis=-1)[..., -1] == 1).all() and (p.sum(-2) == 1).all()
        close(p @ low @ up, a, A.dtype, span(a) * n)
        index, low, up = pl.lu(A, p_indices=True)
        rows = np.take_along_axis((low @ up).toarray(), index[..., :, None], -2)
        close(rows, a, A.dtype, span(a) * n)
        PL, up = pl.lu(A, permute_l=True)
        close((PL @ up).toarray(), a, A.dtype, span(a) * n)


@pytest.mark.parametrize("order", [">f4", ">f8", ">c8", ">c16"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 3), (3, 5), (16, 16)])
def test_lu_of_numbers_in_the_other_byte_order(order, shape, rng):
    a = rng.standard_normal(shape).astype(order)
    for A in (pl.Dense(a), pl.BlockDiag(a), pl.BlockDiag(a, a), pl.Kron(pl.Identity(2), a)):
        P, L, U = pl.lu(A)
        got = (P @ L @ U).toarray()
        np.testing.assert_allclose(
            got, A.toarray(), atol=1e-4 if order in (">f4", ">c8") else 1e-12
        )


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_ldl(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype, ((4, 4), (1, 1))):
        for S, hermitian in ((A + A.H, True), (pl.BlockDiag(A.H + A, A @ A.H), True), (A, False)):
            s = S.toarray()
            for lower in (True, False):
                L, D, order = pl.ldl(S, lower, hermitian)
                low, d = L.toarray(), D.toarray()
                triangle = np.take_along_axis(low, order[..., :, None], -2)
                assert not (np.triu(triangle, 1) if lower else np.tril(triangle, -1)).any()
                whole = low @ d @ (adj(low) if hermitian else np.swapaxes(low, -1, -2))
                t = np.tril(s, -1) if lower else np.triu(s, 1)
                t = t + (adj(t) if hermitian else np.swapaxes(t, -1, -2))
                main = np.diagonal(s, axis1=-2, axis2=-1)
                main = main.real if hermitian else main
                t = t + main[..., None] * np.eye(s.shape[-1])
                close(whole, t, A.dtype, span(s) * 100)


def definite(A, a):
    """A positive definite operator of the same kinds, and its dense form."""
    n = a.shape[-1]
    c = float(2 * span(a) + 1)
    yield pl.Root(A), a @ adj(a)
    yield A @ A.H + c * pl.Identity(n), a @ adj(a) + c * np.eye(n)


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_cholesky(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype, ((4, 4), (1, 1))):
        for S, s in definite(A, a):
            if np.linalg.cond(s).max() > 1e3:
                continue
            L, U = pl.cholesky(S), pl.cholesky(S, upper=True)
            want = np.linalg.cholesky(s)
            close(L.toarray(), want, A.dtype, span(s) * 1e3)
            close(U.toarray(), adj(want), A.dtype, span(s) * 1e3)
            assert L.dtype == A.dtype


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_lstsq(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype):
        s = np.linalg.svdvals(a)
        cut = 1e-3
        if np.any(np.abs(s - cut * s[..., :1]) < 5e-4 * s[..., :1]):
            continue
        m, n = a.shape[-2:]
        for b in (rng.standard_normal(m), rng.standard_normal((m, 3))):
            b = b.astype(dtype)
            x, rest, rank, values = pl.lstsq(A, b, cut)
            assert x.shape[-b.ndim :] == (n, *b.shape[1:])
            want = np.linalg.pinv(a, cut) @ (b if b.ndim == 2 else b[:, None])
            x = x if b.ndim == 2 else x[..., None]
            close(x, want, A.dtype, 1e4 * (1 + span(want)))
            np.testing.assert_array_equal(rank, (s > cut * s[..., :1]).sum(-1))
            close(values[..., None], s[..., None], A.dtype, span(a) * n)
            if a.ndim == 2:
                theirs = np.linalg.lstsq(a, b, cut)
                assert rest.shape == theirs[1].shape
                assert x.dtype == np.result_type(A.dtype, b.dtype)
                if rest.size:
                    close(rest[None], theirs[1][None], A.dtype, 1e4 * (1 + span(want)))


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_null_space_and_range(kind, dtype, rng):
    for A, a in instances(kind, rng, dtype):
        s = np.linalg.svdvals(a)
        cut = 1e-3
        if np.any(np.abs(s - cut * s[..., :1]) < 5e-4 * s[..., :1]):
            continue
        rank = (s > cut * s[..., :1]).sum(-1)
        if np.any(rank != rank.flat[0]):
            with pytest.raises(ValueError, match="one element after the other"):
                pl.orth(A, cut)
            continue
        k = int(rank.flat[0])
        N, Q = pl.null_space(A, cut), pl.orth(A, cut)
        assert N.shape[-2:] == (a.shape[-1], a.shape[-1] - k) and Q.shape[-2:] == (a.shape[-2], k)
        close(a @ N.toarray(), np.zeros((a.shape[-2], N.shape[-1])), A.dtype, 1e2 * span(a))
        for B in (N, Q):
            b = B.toarray()
            close(adj(b) @ b, np.eye(b.shape[-1]), A.dtype, 10)
        q = Q.toarray()
        close(q @ (adj(q) @ a), a, A.dtype, 1e2 * span(a))


@pytest.mark.filterwarnings("ignore:.*negative by rounding")  # terms of a sum may be singular
@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_roots(kind, dtype, rng):
    from pylinop._structured import square_roots

    for A, a in instances(kind, rng, dtype, ((4, 4), (1, 1))):
        for S, s in definite(A, a):
            if np.linalg.cond(s).max() > 1e3:
                continue
            R = square_roots.root(S)
            r = R.toarray()
            close(r @ adj(r), s, A.dtype, span(s) * 10)
            b = rng.standard_normal((s.shape[-1], 2)).astype(dtype)
            w, q = np.linalg.eigh(s)
            want = (q / np.sqrt(w)[..., None, :]) @ adj(q) @ b
            close(pl.sqrt_inv_matmul(S, b), want, A.dtype, 1e3 * (1 + span(want)))
            found = pl.inv_quad_logdet(S, b)
            x = np.linalg.solve(s, np.broadcast_to(b, (*s.shape[:-2], *b.shape)))
            close(found.inv_quad[..., None], (b.conj() * x).sum(-2)[..., None], dtype, 1e4)
            close(np.real(found.logdet)[..., None, None],
                  np.linalg.slogdet(s)[1][..., None, None], dtype, 1e3)  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (3, 0), (2, 0, 2), (0, 3, 3), (0, 2, 3)])
def test_empty(shape):
    """No rows, no columns, no elements of the batch: shapes as NumPy's and SciPy's."""
    a = np.zeros(shape)
    *batch, m, n = shape
    k = min(m, n)
    made = [pl.Dense(a), pl.Zeros(shape), pl.Kron(a, np.eye(2)), pl.BlockDiag(a, a)]
    if m == n:
        d, e = np.zeros((*batch, n)), np.zeros((*batch, max(n - 1, 0)))
        made += [pl.Diag(d)] + [pl.Circulant(d), pl.Tridiagonal(e, d, e)] * (n > 0)
    for A in made:
        m, n = A.shape[-2:]
        k = min(m, n)
        want = np.linalg.qr(np.zeros(A.shape))
        Q, R = pl.qr(A)
        assert (Q.shape, R.shape) == (want.Q.shape, want.R.shape)
        P, L, U = pl.lu(A)
        assert (P.shape, L.shape, U.shape) == (
            (*batch, m, m),
            (*batch, m, k),
            (*batch, k, n),
        )
        x, _, rank, s = pl.lstsq(A, np.ones((m, 2)))
        assert x.shape == (*batch, n, 2)
        assert s.shape == (*batch, k)
        assert np.shape(rank) == tuple(batch)
        assert pl.null_space(A).shape[-2] == n
        assert pl.orth(A).shape[-2] == m
        if m == n:
            assert pl.cholesky(A).shape == pl.cholesky(A, upper=True).shape == A.shape
            assert pl.inv_quad_logdet(A, np.ones(n)).inv_quad.shape == tuple(batch)
            assert pl.sqrt_inv_matmul(A, np.ones((n, 2))).shape == (*batch, n, 2)
            assert pl.sample(A, 2).shape == (2, *batch, n)
            assert pl.ldl(A)[2].shape == (*batch, n)


def test_cholesky_of_complex_products_of_inverses(rng):
    """They are Hermitian as they are written: the kept factor is of the diagonal's real part."""
    for n in (2, 17, 100):
        a = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
        A = pl.Dense(a + a.conj().T + np.diag(rng.standard_normal(n)))
        G = pl.inv(A).H @ pl.inv(A)
        L, want = pl.cholesky(G).toarray(), G.toarray()
        np.testing.assert_allclose(L @ L.conj().T, want, atol=1e-8 * np.abs(want).max())
    declared = pl.Dense(np.diag([1 + 1j, 2]), "her")  # the matrix is that of the real diagonal
    np.testing.assert_array_equal(declared.toarray(), np.diag([1, 2]))
    np.testing.assert_allclose(pl.cholesky(declared).toarray(), np.diag([1, 2**0.5]))
    with pytest.raises(np.linalg.LinAlgError, match="not real"):
        pl.cholesky(pl.Diag([1 + 1j, 2]))
