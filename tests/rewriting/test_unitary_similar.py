"""Q X Q^H + c I with a unitary Q is solved with as Q (X + c I) Q^H: beside dense NumPy, by the
steps that run, and where it is not to be done."""

import numpy as np
import pytest
from drawn import values

import pylinop as pl

FACTORS = {"potrf", "getrf", "sytrf", "hetrf", "heevd"}


def draw(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def tridiagonal(rng, n, dtype):
    e = draw(rng, dtype, n - 1)
    return pl.Tridiagonal(e, draw(rng, dtype, n) + 9, 0.5 * e)


def permuted_dft(rng, n, dtype):
    return pl.Permutation(rng.permutation(n)) @ pl.DFT(n, norm="ortho")


BASES = {
    "DFT": lambda rng, n, dtype: pl.DFT(n, norm="ortho"),
    "DFT.H": lambda rng, n, dtype: pl.DFT(n, norm="ortho").H,
    "DCT": lambda rng, n, dtype: pl.DCT(n, norm="ortho"),
    "Householder": lambda rng, n, dtype: pl.Householder(draw(rng, dtype, n)),
    "Permutation": lambda rng, n, dtype: pl.Permutation(rng.permutation(n)),
    "orthogonal": lambda rng, n, dtype: pl.Dense(
        np.linalg.qr(draw(rng, dtype, n, n))[0], "orthogonal"
    ),
    "Permutation DFT": permuted_dft,
}
MIDDLES = {
    "Diag": lambda rng, n, dtype: pl.Diag(draw(rng, dtype, n) + 5),
    "tridiagonal": tridiagonal,
    "2 Diag": lambda rng, n, dtype: 2.0 * pl.Diag(draw(rng, dtype, n) + 5),
}


def close(got, want, dtype):
    single = np.finfo(dtype).eps > 1e-10
    np.testing.assert_allclose(
        got, want, rtol=0, atol=(2e-4 if single else 1e-11) * (1 + np.abs(want).max())
    )


@pytest.mark.sweep(8)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 23, 64, 130])
@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("basis", BASES)
def test_beside_dense(basis, middle, n, dtype, rng):
    Q, X = BASES[basis](rng, n, dtype), MIDDLES[middle](rng, n, dtype)
    b, K = draw(rng, dtype, n), draw(rng, dtype, 3, n)
    for c in (0.5, 1.0, -1.0, None):
        A = Q @ X @ Q.H if c is None else c * pl.Identity(n) + Q @ X @ Q.H
        dense = Q.toarray() @ X.toarray() @ Q.toarray().conj().T + (c or 0) * np.eye(n)
        for op, full in ((A, dense), (A.T, dense.T), (A.H, dense.conj().T)):
            inverse = np.linalg.inv(full)
            close(pl.solve(op, b), inverse @ b, dtype)
            sign, log = pl.slogdet(op)
            close(
                sign * np.exp(log - np.linalg.slogdet(full)[1]), np.linalg.slogdet(full)[0], dtype
            )
            close(pl.inv(op).diagonal(), inverse.diagonal(), dtype)
            close(pl.trace(pl.inv(op)), np.trace(inverse), dtype)
            close(
                pl.diagonal(pl.Dense(K) @ pl.inv(op) @ pl.Dense(K).H),
                (K @ inverse @ K.conj().T).diagonal(),
                dtype,
            )


@pytest.mark.parametrize("basis", ["DFT", "DCT", "Householder", "Permutation", "two"])
def test_nothing_of_n_by_n_is_made(basis, rng):
    n = 400
    d, b = rng.uniform(1, 2, n), rng.standard_normal(n)
    P, F = pl.Permutation(rng.permutation(n)), pl.DFT(n, norm="ortho")
    Q = None if basis == "two" else BASES[basis](rng, n, "float64")
    A = Q @ pl.Diag(d) @ Q.H if Q else P @ F @ pl.Diag(d) @ F.H @ P.T
    A = A + 0.5 * pl.Identity(n)
    with pl.explaining() as log:
        pl.solve(A, b)
        pl.slogdet(A)
        pl.trace(pl.inv(A))
    ran = {s["name"] for plan in log.plans for s in plan.steps}
    assert not ran & FACTORS
    assert all(plan.memory < 100 * 16 * n for plan in log.plans)


def test_of_a_dense_basis_no_factor(rng):
    """The determinant of an assumed orthogonal matrix is not computed twice for Q X Q^T."""
    n = 200
    Q = pl.Dense(np.linalg.qr(rng.standard_normal((n, n)))[0], "orthogonal")
    with pl.explaining() as log:
        pl.slogdet(Q @ pl.Diag(rng.uniform(1, 2, n)) @ Q.T)
    assert not {s["name"] for plan in log.plans for s in plan.steps} & FACTORS


def test_products_stay_as_written(rng):
    """There c x would be rounded as Q (c I) Q^H x is: one row of x beside zeros is not smeared."""
    n = 64
    Q, d, x = pl.DFT(n, norm="ortho"), rng.standard_normal(n), np.zeros(n)
    x[3] = 1
    A = Q @ pl.Diag(d) @ Q.H + 1e12 * pl.Identity(n)
    small = (Q @ pl.Diag(d) @ Q.H).toarray()[:, 3]
    got = A @ x
    np.testing.assert_allclose(np.delete(got, 3), np.delete(small, 3), rtol=0, atol=1e-14)


def test_a_basis_of_fewer_digits_is_not_trusted_with_more(rng):
    n = 48
    q = np.linalg.qr(rng.standard_normal((n, n)))[0].astype(np.float32)
    d, b = rng.uniform(1, 2, n), rng.standard_normal(n)
    Q = pl.Dense(q, "orthogonal")
    wide = q.astype(float)
    dense = wide @ np.diag(d) @ wide.T + 3 * np.eye(n)
    A = Q @ pl.Diag(d) @ Q.T + 3.0 * pl.Identity(n)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-12)
    np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=1e-13)
    np.testing.assert_allclose(pl.trace(pl.inv(A)), np.linalg.inv(dense).trace(), rtol=1e-12)


def test_singular_and_nan(rng):
    n = 40
    d = rng.uniform(1, 2, n)
    d[7] = -0.5
    F = pl.DFT(n, norm="ortho")
    A = F @ pl.Diag(d) @ F.H + 0.5 * pl.Identity(n)
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(A, np.ones(n))
    assert pl.slogdet(A)[1] == -np.inf
    d[7] = np.nan
    assert np.isnan(pl.solve(A, np.ones(n))).all()
    assert np.isnan(pl.slogdet(A)[1])


def test_not_where_it_is_no_adjoint(rng):
    n = 32
    F, d, b = pl.DFT(n, norm="ortho"), rng.uniform(5, 6, n), rng.standard_normal(n)
    two = pl.Householder(rng.standard_normal(n))
    for A in (
        F @ pl.Diag(d) @ F.T + 0.5 * pl.Identity(n),
        F @ pl.Diag(d) @ two + 0.5 * pl.Identity(n),
        F @ pl.Diag(d) @ (-1.0 * F.H) + 0.5 * pl.Identity(n),
        pl.DFT(n) @ pl.Diag(d) @ pl.DFT(n).H + 0.5 * pl.Identity(n),
    ):
        dense = A.toarray()
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=0, atol=1e-9)
        np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=1e-9)
        np.testing.assert_allclose(
            pl.trace(pl.inv(A)), np.linalg.inv(dense).trace(), rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_between_an_inverse_and_its_matrix(dtype):
    """A^-1 X A + c I is solved with, and has a determinant, by X + c I."""
    r = np.random.default_rng(6)
    n = 90
    a = (values(r, (n, n), dtype) / 9 + 2 * np.eye(n)).astype(dtype)
    d = r.uniform(1, 2, n).astype(a.real.dtype)
    p = (a @ a.conj().T / n + np.eye(n)).astype(dtype)
    digits = 1e-2 if dtype == "float32" else 1e-9
    for M, m in ((pl.Dense(a), a), (pl.Dense(p, "pos"), p)):
        wide = m.astype(np.result_type(m, np.float64))
        for S, s in (
            (pl.inv(M) @ pl.Diag(d) @ M, np.linalg.solve(wide, d[:, None] * wide)),
            (M @ pl.Diag(d) @ pl.inv(M), wide @ (d[:, None] * np.linalg.inv(wide))),
        ):
            S, s = 2 * S + 0.5 * pl.Identity(n), 2 * s + 0.5 * np.eye(n)
            b = values(r, (n, 2), dtype)
            x = np.linalg.solve(s, b)
            np.testing.assert_allclose(
                pl.solve(S, b), x, rtol=digits, atol=digits * np.abs(x).max()
            )
            assert abs(pl.slogdet(S)[0] - 1) < digits
            assert abs(pl.slogdet(S)[1] - np.log(2 * d + 0.5).sum()) < n * digits
            i = np.diagonal(np.linalg.inv(s))
            np.testing.assert_allclose(
                pl.inv(S).diagonal(), i, rtol=digits, atol=digits * np.abs(i).max()
            )
            assert S.explain("logdet").flops < 0.8 * n**3 * (4 if dtype == "complex128" else 1)


def test_a_matrix_without_an_inverse_says_so():
    a = np.diag([1.0, 0.0, 2.0, 3.0])
    S = pl.inv(pl.Dense(a)) @ pl.Diag([1.0, 2.0, 3.0, 4.0]) @ pl.Dense(a) + pl.Identity(4)
    for ask in (pl.logdet, lambda A: pl.solve(A, np.ones(4)), lambda A: pl.inv(A).diagonal()):
        with pytest.raises(np.linalg.LinAlgError):
            ask(S)
