"""Solves with b B + c U M V written out as sums: Woodbury and push-through, checked against the
dense form; the backward error is that of a direct solve whatever the conditioning."""

import mpmath
import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

N, R = 90, 12


def eta(S, x, b):
    """The normwise backward error, the worst of the columns."""
    S, x, b = (np.asarray(a, "complex128").reshape(len(S), -1) for a in (S, x, b))
    r = np.linalg.norm(b - S @ x, axis=0)
    return np.max(
        r / (np.linalg.norm(S, 2) * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0))
    )


def rules(op, x):
    return op.explain("apply", x).fired


@pytest.fixture
def parts(rng, request):
    dtype = request.param
    p = {
        "U": values(rng, (N, R), dtype),
        "V": values(rng, (N, R), dtype),
        "d": (rng.random(N) + 0.5).astype(dtype),
        "P": positive(rng, N, dtype, 0.1),
        "C": positive(rng, R, dtype, 0.1),
        "w": (rng.random(R) + 0.5).astype(dtype),
        "x": values(rng, N, dtype),
        "X": values(rng, (N, 3), dtype),
        "y": values(rng, R, dtype),
        "Y": values(rng, (R, 3), dtype),
    }
    ops = {k: p[k] if k in "xXyY" else pl.Dense(p[k]) for k in p if k not in "dw"}
    ops |= {"D": pl.Diag(p["d"]), "W": pl.Diag(p["w"]), "I": pl.Identity(N)}
    ops |= {"P": pl.Dense(p["P"], assume_a="pos"), "C": pl.Dense(p["C"], assume_a="pos")}
    ops |= {"inv": pl.inv, "K": pl.Kron(pl.Identity(2), pl.Diag(p["d"][: N // 2]))}
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    plain = {k: a.astype(wide) for k, a in p.items()}
    plain |= {"D": np.diag(plain["d"]), "W": np.diag(plain["w"]), "I": np.eye(N)}
    plain |= {"inv": np.linalg.inv, "K": np.kron(np.eye(2), np.diag(plain["d"][: N // 2]))}
    return (
        dtype,
        ops,
        {k: Hermitian(a) if isinstance(a, np.ndarray) else a for k, a in plain.items()},
    )


class Hermitian(np.ndarray):
    """An array that has .H too."""

    def __new__(cls, a):
        return np.asarray(a).view(cls)

    @property
    def H(self):
        return self.conj().T


SUMS = (
    "D + U @ U.H",
    "2.0 * I + U @ U.H",
    "U @ V.H - D",
    "K + 0.5 * U @ V.H",
    "D + U @ C @ U.H",
    "D - 0.25 * U @ W @ V.H",
    "I + U @ inv(C) @ U.H",
    "3.0 * D + U @ U.T",
)
dtypes = pytest.mark.parametrize("parts", ["f4", "f8", "c8", "c16"], indirect=True)


def close(got, want, dtype):
    tol = 2e-3 if np.dtype(dtype).char in "fF" else 1e-9
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * np.abs(want).max())
    assert got.dtype == dtype


@dtypes
@pytest.mark.parametrize("rhs", ["x", "X"])
@pytest.mark.parametrize("formula", SUMS)
def test_any_right_side(parts, formula, rhs):
    dtype, ops, plain = parts
    S = pl.inv(eval(formula, {}, ops))
    close(S @ ops[rhs], np.linalg.solve(eval(formula, {}, plain), plain[rhs]), dtype)
    assert "solve-thin-sum" in rules(S, ops[rhs])


PUSHED = {
    "inv(2.0 * I + U @ U.H) @ U": "push",
    "inv(D + U @ V.H) @ U": "push",
    "inv(D - U @ C @ U.H) @ U @ C": "as written: C has no immediate inverse",
    "inv(inv(P) + U @ inv(C) @ U.H) @ U @ inv(C)": "push",
    "inv(inv(P) + U @ inv(C) @ U.H) @ U": "push",
    "inv(D + 2.0 * U @ W @ U.H) @ U @ W": "push",
    "inv(D + 2.0 * U @ W @ U.H) @ U": "push",
    "inv(2.0 * inv(P) + 0.5 * U @ V.H) @ U": "push",
}


@dtypes
@pytest.mark.parametrize("rhs", ["y", "Y"])
@pytest.mark.parametrize("formula", PUSHED)
def test_right_side_made_with_u(parts, formula, rhs):
    dtype, ops, plain = parts
    G = eval(formula, {}, ops)
    close(G @ ops[rhs], eval(formula, {}, plain) @ plain[rhs], dtype)
    if PUSHED[formula] == "push":
        assert "solve-thin-sum" in rules(G, ops[rhs])
        text = G.explain("apply", ops[rhs]).split("accept ")[0]
        for k in range(4):
            text = text.replace(f"a{k}({N}, {N})", "")
        made = [line for line in text.splitlines() if f"({N}, {N})" in line]
        assert all(line.split()[1] in ("named", "potrf") for line in made)  # P, for its factor


@pytest.mark.parametrize("small", [1e-2, 1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("where", ["one", "all"])
def test_backward_error_with_small_bases(rng, small, where):
    u = rng.standard_normal((N, R))
    d = np.full(N, small) if where == "all" else np.ones(N)
    d[3] = small
    S = np.diag(d) + u @ u.T
    U, D = pl.Dense(u), pl.Diag(d)
    for b in (rng.standard_normal(N), u @ rng.standard_normal(R), u[:, 0]):
        x = pl.inv(D + U @ U.T) @ b
        assert eta(S, x, b) <= max(10 * eta(S, np.linalg.solve(S, b), b), 10 * N * 2.0**-53)
    y = rng.standard_normal(R)
    x = (pl.inv(D + U @ U.T) @ U) @ y
    b = u @ y
    assert eta(S, x, b) <= max(10 * eta(S, np.linalg.solve(S, b), b), 10 * N * 2.0**-53)


@pytest.mark.parametrize("power", [2, 6, 10, 14])
def test_backward_error_of_ridge(rng, power):
    q, _ = np.linalg.qr(rng.standard_normal((N, R)))
    g, _ = np.linalg.qr(rng.standard_normal((R, R)))
    x = g * np.logspace(0, -power / 2, R) @ q.T  # singular values from 1 down
    lam = 10.0**-power
    X, I = pl.Dense(x), pl.Identity(N)
    S = x.T @ x + lam * np.eye(N)
    for y in (rng.standard_normal(R), g[:, -1], g[:, 0]):
        b = x.T @ y
        got = (pl.inv(X.T @ X + lam * I) @ X.T) @ y
        assert eta(S, got, b) <= max(10 * eta(S, np.linalg.solve(S, b), b), 10 * N * 2.0**-53)


def test_singular_base_is_answered(rng):
    u = rng.standard_normal((N, R))
    d = np.ones(N)
    d[5] = 0
    S, b = np.diag(d) + u @ u.T, rng.standard_normal(N)
    np.testing.assert_allclose(
        pl.inv(pl.Diag(d) + pl.Dense(u) @ pl.Dense(u).T) @ b, np.linalg.solve(S, b), rtol=1e-8
    )


def test_singular_sum_raises_or_is_what_lu_finds():
    u = np.ones((4, 1))
    A = pl.Identity(4) - 0.25 * (pl.Dense(u) @ pl.Dense(u).T)
    S = np.eye(4) - 0.25 * u @ u.T
    try:
        x = pl.inv(A) @ np.ones(4)
    except np.linalg.LinAlgError:
        return
    assert eta(S, x, np.ones(4)) < 1e-12  # near singular by rounding: whatever LU finds


def test_wide_updates_stay_dense(rng):
    u = rng.standard_normal((20, 15))
    A = pl.Diag(np.ones(20)) + pl.Dense(u) @ pl.Dense(u).T
    assert "solve-thin-sum" not in rules(pl.inv(A), np.ones(20))


def test_mutation_is_seen(rng):
    u, d = rng.standard_normal((N, R)), np.ones(N)
    U = pl.Dense(u)
    A, b = pl.inv(pl.Diag(d) + U @ U.T), rng.standard_normal(N)
    for change in (lambda: None, lambda: u.__setitem__((2, 3), 9.0), lambda: d.__setitem__(7, 0.2)):
        change()
        np.testing.assert_allclose(A @ b, np.linalg.solve(np.diag(d) + u @ u.T, b), rtol=1e-9)


def test_hermitian_by_form_takes_cholesky(rng):
    X = pl.Dense(rng.standard_normal((40, 8)))
    W = pl.Diag(rng.random(40))
    for A in (X.T @ X, X.T @ W @ X, X.T @ X + pl.Identity(8), (X.T @ W @ X) * 2):
        assert "potrf" in pl.inv(A).explain("apply", np.ones(8))
        want = np.linalg.solve(A.toarray(), np.ones(8))
        np.testing.assert_allclose(pl.inv(A) @ np.ones(8), want, rtol=1e-9)
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(A.toarray())[1], rtol=1e-12)
    Z = pl.Dense(rng.standard_normal((40, 8)) + 1j * rng.standard_normal((40, 8)))
    assert "potrf" in pl.inv(Z.H @ Z).explain("apply", np.ones(8))
    assert "potrf" not in pl.inv(Z.T @ Z).explain("apply", np.ones(8))  # symmetric, not Hermitian
    b = np.ones(8)
    np.testing.assert_allclose(
        pl.inv(Z.T @ Z) @ b, np.linalg.solve((Z.T @ Z).toarray(), b), rtol=1e-9
    )


def test_hermitian_but_indefinite_falls_to_lu_silently(rng, recwarn):
    X = pl.Dense(rng.standard_normal((40, 8)))
    A = X.T @ pl.Diag(rng.standard_normal(40)) @ X
    want = np.linalg.solve(A.toarray(), np.ones(8))
    np.testing.assert_allclose(pl.inv(A) @ np.ones(8), want, rtol=1e-8)
    s, l = pl.slogdet(A)
    np.testing.assert_allclose((s, l), np.linalg.slogdet(A.toarray()), rtol=1e-10)
    assert not recwarn.list


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_quadratic_forms_in_an_inverse(rng, dtype):
    k, x = positive(rng, 40, dtype, 0.1), values(rng, (40, 6), dtype)
    K, X = pl.Dense(k, assume_a="pos"), pl.Dense(x)
    for A, S in ((K, k), (K + 0.5 * pl.Identity(40), k + 0.5 * np.eye(40, dtype=dtype))):
        Q = X.H @ pl.inv(A) @ X
        assert "trsm-syrk" in Q.explain("dense")
        close(Q.toarray(), x.conj().T @ np.linalg.solve(S, x), np.dtype(dtype))
    if np.dtype(dtype).kind == "c":  # symmetric in form only
        Q = X.T @ pl.inv(K) @ X
        assert "trsm-syrk" not in Q.explain("dense")
        close(Q.toarray(), x.T @ np.linalg.solve(k, x), np.dtype(dtype))


def test_quadratic_form_where_the_assumption_is_false(rng):
    k = np.diag(np.r_[-1.0, np.ones(9)])
    x = rng.standard_normal((10, 2))
    Q = pl.Dense(x).T @ pl.inv(pl.Dense(k, assume_a="pos")) @ pl.Dense(x)
    with pytest.warns(pl.FallbackWarning):
        got = Q.toarray()
    np.testing.assert_allclose(got, x.T @ np.linalg.solve(k, x), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinants_by_the_lemma(rng, dtype):
    u, d = values(rng, (200, 3), dtype), (rng.random(200) + 0.5).astype(dtype)
    U, D = pl.Dense(u), pl.Diag(d)
    for A, a in (
        (D + U @ U.H, np.diag(d) + u @ u.conj().T),
        (0.5 * (U @ U.T) - 2.0 * D, 0.5 * (u @ u.T) - 2 * np.diag(d)),
    ):
        assert "scaledet-thin-sum" in pl.explain(A, "det").fired
        sign, log = pl.slogdet(A)
        want = np.linalg.slogdet(a)
        np.testing.assert_allclose(sign, want.sign, rtol=1e-9)
        np.testing.assert_allclose(log, want.logabsdet, rtol=1e-11)


def test_parallel_sum(rng):
    a, b = positive(rng, 30, "f8"), positive(rng, 30, "f8")
    A, B = pl.Dense(a, assume_a="pos"), pl.Dense(b)
    x = rng.standard_normal((30, 2))
    S = pl.inv(pl.inv(A) + 2.0 * pl.inv(B))
    want = np.linalg.solve(np.linalg.inv(a) + 2 * np.linalg.inv(b), x)
    np.testing.assert_allclose(S @ x, want, rtol=1e-9)
    first = S.explain("apply", x).split("accept ")[0]
    assert "eye" not in first  # no inverse is formed, unless the check fails


def spread(rng, n, condition):
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    a = q * np.logspace(0, -np.log10(condition), n) @ q.T
    return (a + a.T) / 2


def exact_eta(S, x, b):
    r = mpmath.matrix(b) - S * mpmath.matrix(x)
    size = mpmath.sqrt(sum(e * e for e in S)) * mpmath.norm(mpmath.matrix(x))
    return float(mpmath.norm(r) / (size + mpmath.norm(mpmath.matrix(b))))


@pytest.mark.parametrize("conditions", [(1e2, 1e6), (1e6, 1e6), (1e10, 1e6), (1e13, 1e12)])
def test_backward_error_of_parallel_sums(rng, conditions):
    n = 14
    with mpmath.workdps(60):
        for scale in (1e-3, 1.0, 1e4):
            a, b = (spread(rng, n, c) for c in conditions)
            b, x = b * scale, rng.standard_normal(n)
            S = mpmath.matrix(a) ** -1 + mpmath.matrix(b) ** -1
            got = pl.inv(pl.inv(pl.Dense(a)) + pl.inv(pl.Dense(b))) @ x
            plain = np.linalg.solve(np.linalg.inv(a) + np.linalg.inv(b), x)
            limit = max(10 * exact_eta(S, plain, x), 10 * n * 2.0**-53)
            assert exact_eta(S, got, x) <= limit


@pytest.mark.parametrize("conditions", [(1.0, 1e6), (1e4, 1e12), (1e8, 1e12), (1e12, 1e12)])
def test_one_factor_serves_a_formula_with_an_ill_conditioned_part(rng, conditions):
    """Two factors of one ill-conditioned R would not fit together: eta was 1e-6 here."""
    n, m = 16, 4
    with mpmath.workdps(60):
        for scale in (1e-6, 1.0, 1e4):
            p, r = spread(rng, n, conditions[0]), spread(rng, m, conditions[1]) * scale
            h, z = rng.standard_normal((m, n)), rng.standard_normal(m)
            P, R = pl.Dense(p, assume_a="pos"), pl.Dense(r, assume_a="pos")
            H, mh = pl.Dense(h), mpmath.matrix(h)
            S = mpmath.matrix(p) ** -1 + mh.T * mpmath.matrix(r) ** -1 * mh
            b = mh.T * (mpmath.matrix(r) ** -1 * mpmath.matrix(z))
            got = (pl.inv(pl.inv(P) + H.T @ pl.inv(R) @ H) @ H.T @ pl.inv(R)) @ z
            assert exact_eta(S, got, b) <= 1e-10


@pytest.mark.parametrize("c", [3.0, -0.25, 1.0])
def test_shifts_touch_the_diagonal_alone(rng, c):
    a = rng.standard_normal((5, 5))
    a[1, 2], a[3, 3] = np.nan, np.inf
    A = pl.Dense(a) @ pl.Identity(5) + c * pl.Identity(5)
    np.testing.assert_array_equal(A.toarray(), a + c * np.eye(5))
    B = pl.Dense(rng.standard_normal((4, 5, 5)))
    want = B.toarray().swapaxes(1, 2) @ B.toarray() + c * np.eye(5)
    np.testing.assert_allclose((B.T @ B + c * pl.Identity(5)).toarray(), want, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_products_that_are_hermitian_are_half_made(rng, dtype):
    x = values(rng, (150, 130), dtype)
    w = rng.standard_normal(150).astype(np.empty(0, dtype).real.dtype)
    h = values(rng, (150, 150), dtype)
    h = h + h.conj().T
    X = pl.Dense(x)
    for M, m, step in (
        (pl.Diag(w), np.diag(w), "scaled-gram"),
        (pl.Dense(h, assume_a="her"), h, "gemm-half"),
    ):
        Q = X.H @ M @ X
        assert step in Q.explain("dense")
        close(Q.toarray(), x.conj().T @ m @ x, np.dtype(dtype))
    if np.dtype(dtype).kind == "c":  # of another middle, or under T, there is no such half
        for other in (X.T @ pl.Diag(w) @ X, X.H @ pl.Diag(1j * w) @ X):
            said = other.explain("dense")
            assert "gemm-half" not in said and "scaled-gram" not in said
