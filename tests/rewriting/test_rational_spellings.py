"""Rational functions of one matrix, products around an inverse, corners of a Block's inverse and
Krons by their axes: what another spelling costs, on verified plans, and what the looks accept."""

import numpy as np
import pytest
from drawn import figures, positive, values

import pylinop as pl

N = 120
inv = pl.inv


class Given:
    def __init__(self, dtype="float64"):
        r = self.r = np.random.default_rng(5)
        real = np.empty(0, dtype).real.dtype
        self.S = pl.Dense(positive(r, N, dtype), "pos")
        self.U = pl.Dense(values(r, (N, 4), dtype) / 8)
        e, d = (0.3 * r.random(N - 1)).astype(real), (2 + r.random(N)).astype(real)
        self.T = pl.Tridiagonal(e, d, e)
        self.Z = pl.Toeplitz((np.exp(-np.arange(N) / 5.0)).astype(dtype))
        self.P = [pl.Dense(positive(r, n, dtype), "pos") for n in (4, 5, 6)]
        self.K = pl.Kron(pl.Kron(*self.P[:2]), self.P[2])
        self.K2 = pl.Kron(pl.Dense(positive(r, 12, dtype), "pos"), self.Q)
        self.D = pl.Diag((1 + r.random(N)).astype(real))
        self.I = pl.Identity(N)

    @property
    def Q(self):
        return pl.Dense(positive(np.random.default_rng(6), 10, self.S.dtype), "pos")


def diagonal(A):
    return A.diagonal()


def of_inverse(A):
    return inv(A).diagonal()


ASKS = {"solve": pl.solve, "logdet": pl.logdet, "diagonal": diagonal, "of inverse": of_inverse}
# The dearer spelling (of k), the cheaper one, and how many times that it may cost.
SPELLED = {
    "product of inverses": lambda g, k: (
        inv(k) @ inv(g.I + g.U @ g.U.H @ inv(k)),
        inv(k + g.U @ g.U.H),
    ),
    "the other side": lambda g, k: (
        inv(g.I + inv(k) @ g.U @ g.U.H) @ inv(k),
        inv(k + g.U @ g.U.H),
    ),
    "Woodbury, a factor out": lambda g, k: (
        inv(k) @ (g.I - g.U @ inv(pl.Identity(4) + g.U.H @ inv(k) @ g.U) @ g.U.H @ inv(k)),
        inv(k + g.U @ g.U.H),
    ),
    "difference": lambda g, k: (inv(k) - inv(k + g.I), inv(k) @ inv(k + g.I)),
    "twice a difference": lambda g, k: (
        2.0 * inv(k + 0.5 * g.I) - 2.0 * inv(k),
        -inv(k + 0.5 * g.I) @ inv(k),
    ),
}
KINDS = [
    ("S", "complex128"),
    ("T", "float64"),
    ("Z", "float64"),
    ("K2", "complex128"),
    ("D", "complex128"),
]


def dense(A):
    return np.asarray(A.toarray())


def answer(ask, a, b):
    if ask == "solve":
        return np.linalg.solve(a, b)
    if ask == "logdet":
        return np.linalg.slogdet(a)[1]
    return np.diagonal(np.linalg.inv(a) if ask == "of inverse" else a)


def same(got, want, most):
    assert np.abs(np.asarray(got) - want).max() <= most * max(np.abs(want).max(), 1)


@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize("name", SPELLED)
def test_another_spelling_costs_as_much(name, kind, dtype):
    g = Given(dtype)
    k = getattr(g, kind)
    one, two = SPELLED[name](g, k)
    m, b = dense(k), values(g.r, N, dtype)
    u = dense(g.U)
    plain = (
        np.linalg.inv(m + u @ u.conj().T)
        if "difference" not in name
        else np.linalg.inv(m) @ np.linalg.inv(m + np.eye(N))
        if name == "difference"
        else -np.linalg.inv(m + 0.5 * np.eye(N)) @ np.linalg.inv(m)
    )
    for ask, what in ASKS.items():
        if ask == "logdet" and name == "twice a difference":
            continue  # of an even number of rows: the same; signs are looked at by slogdet
        args = (b,) if ask == "solve" else ()
        x, fx = figures(what, one, *args)
        y, fy = figures(what, two, *args)
        same(x, answer(ask, plain, b), 1e-10)
        same(y, answer(ask, plain, b), 1e-10)
        if ask != "diagonal" or "difference" not in name:
            assert fx <= 3 * fy + 60 * N, (ask, fx, fy)


@pytest.mark.parametrize("kind, dtype", KINDS[:4])
def test_diagonals_of_two_shifted_inverses(kind, dtype):
    """By the difference of two diagonals, in three spellings and as a trace."""
    g = Given(dtype)
    k = getattr(g, kind)
    m = dense(k)
    want = np.diagonal(np.linalg.inv(m @ m + m))
    least = figures(diagonal, inv(k) - inv(k + g.I))[1]
    for A in (inv(k) @ inv(k + g.I), inv(k + g.I) @ inv(k), inv(k @ (k + g.I)), inv(k @ k + k)):
        x, f = figures(diagonal, A)
        same(x, want, 1e-11)
        t, ft = figures(lambda A: A.trace(), A)
        same(t, want.sum(), 1e-11)
        assert max(f, ft) <= 3 * least + 60 * N, (f, ft, least)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("sign", [1, -1])
def test_what_would_cancel_goes_by_the_product(scale, sign):
    """Of a large K the two diagonals are nearly the same; the digits are those of the product."""
    r = np.random.default_rng(3)
    q = np.linalg.qr(r.standard_normal((60, 60)))[0]
    w = scale * np.linspace(1, 3, 60)
    w[0] *= 1.5 if sign > 0 else -0.3  # no -1
    k = (q * w) @ q.T
    K, I = pl.Dense((k + k.T) / 2), pl.Identity(60)
    want = (q**2) @ (1 / (w * (w + 1)))
    got = (inv(K) @ inv(K + I)).diagonal()
    size = np.abs(1 / w).max() * np.abs(1 / (w + 1)).max() * np.linalg.cond(k + np.eye(60))
    assert np.abs(got - want).max() <= 1e-13 * size


SINGULAR = {
    "Dense": lambda n: pl.Dense(np.ones((n, n))),
    "Diag": lambda n: pl.Diag(np.arange(n) * 1.0),
    "Tridiagonal": lambda n: pl.Tridiagonal(np.zeros(n - 1), np.arange(n) * 1.0, np.zeros(n - 1)),
    "Circulant": lambda n: pl.Circulant(np.ones(n)),
}


@pytest.mark.parametrize("n", [3, 16, 40])
@pytest.mark.parametrize("kind", SINGULAR)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_falls_out_is_to_have_an_inverse(kind, n, dtype):
    """Where inv(B) stands and B is singular, values are no more than products with it are; solves
    take the inverse back."""
    r = np.random.default_rng(n)
    B, I, J = SINGULAR[kind](n).astype(dtype), pl.Identity(n), pl.Identity(2)
    U, M = pl.Dense(values(r, (n, 2), dtype)), pl.Dense(values(r, (n, n), dtype))
    low = U @ inv(J + U.H @ inv(B) @ U) @ U.H
    by_m = dense(B) + dense(M)
    by_u = dense(B) + dense(U) @ dense(U).conj().T
    b = values(r, n, dtype)
    for A, t in (
        (inv(B) @ inv(I + M @ inv(B)), by_m),
        (inv(I + inv(B) @ M) @ inv(B), by_m),
        (inv(B) - inv(B) @ low @ inv(B), by_u),
        (inv(B) @ (I - low @ inv(B)), by_u),
    ):
        for ask in (dense, diagonal, pl.slogdet, lambda X: X.trace(), lambda X: X @ b):
            with pytest.raises(np.linalg.LinAlgError):
                ask(A)
        same(pl.solve(A, b), t @ b, 1e-12)
        same(inv(A).diagonal(), np.diagonal(t), 1e-12)


BANDS = {
    "I + s inv(T)": lambda g: (
        g.I + 0.5 * inv(g.T),
        lambda t, d: np.eye(N) + 0.5 * np.linalg.inv(t),
    ),
    "inv(T) + inv(D)": lambda g: (
        inv(g.T) + inv(g.D),
        lambda t, d: np.linalg.inv(t) + np.linalg.inv(d),
    ),
    "I + inv(T) D": lambda g: (
        g.I + inv(g.T) @ g.D,
        lambda t, d: np.eye(N) + np.linalg.inv(t) @ d,
    ),
    "D - D inv(T + D) D": lambda g: (
        g.D - g.D @ inv(g.T + g.D) @ g.D,
        lambda t, d: d - d @ np.linalg.inv(t + d) @ d,
    ),
    "I - s inv(T + s I)": lambda g: (
        g.I - 0.5 * inv(g.T + 0.5 * g.I),
        lambda t, d: np.eye(N) - 0.5 * np.linalg.inv(t + 0.5 * np.eye(N)),
    ),
    "2 inv(I + 0.1 T) - I": lambda g: (
        2.0 * inv(g.I + 0.1 * g.T) - g.I,
        lambda t, d: 2 * np.linalg.inv(np.eye(N) + 0.1 * t) - np.eye(N),
    ),
}


@pytest.mark.parametrize("name", BANDS)
def test_inverses_beside_bands(name):
    g = Given()
    A, plain = BANDS[name](g)
    a = plain(dense(g.T), dense(g.D))
    x, f = figures(of_inverse, A)
    same(x, np.diagonal(np.linalg.inv(a)), 1e-11)
    assert f <= 400 * N, f  # 1,100 N and more by the dense form
    d, f = figures(pl.logdet, A)
    same(d, np.linalg.slogdet(a)[1], 1e-11)
    if name in ("I + s inv(T)", "2 inv(I + 0.1 T) - I"):
        assert f <= 200 * N, f


def test_a_singular_matrix_within_is_said():
    """Where the formula inverts it: the other spelling would only multiply by it."""
    t = np.zeros(40)
    t[0] = 1.0
    T, I = pl.Tridiagonal(np.zeros(39), t, np.zeros(39)), pl.Identity(40)
    D = pl.Diag(np.ones(40))
    for A in (I + inv(T), inv(T) + D):
        with pytest.raises(np.linalg.LinAlgError):
            inv(A).diagonal()


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("low", [0, -4, -8, -12])
@pytest.mark.parametrize("sign", [1, -1])
def test_graded_bands(low, sign):
    """Errors are some u |A^-1| cond, as of the formula as written."""
    r, n = np.random.default_rng(8), 50
    d = 10.0 ** np.linspace(0, low, n) * (2 + r.random(n))
    d[7] *= sign
    e = 0.3 * np.sqrt(np.abs(d[1:] * d[:-1]))
    T, I, D = pl.Tridiagonal(e, d, e), pl.Identity(n), pl.Diag(1 + r.random(n))
    t, dd = dense(T), dense(D)
    it = np.linalg.inv(t)
    for A, a in (
        (I + 0.5 * inv(T), np.eye(n) + 0.5 * it),
        (inv(T) + inv(D), it + np.linalg.inv(dd)),
    ):
        want = (
            np.diagonal(np.linalg.solve(2 * t + np.eye(n), 2 * t))
            if A.args[0] is I
            else (np.diagonal(dd @ np.linalg.solve(t + dd, t)))
        )
        got = inv(A).diagonal()
        most = 1e-13 * np.linalg.cond(t) * max(np.abs(want).max(), 1)
        assert np.abs(got - want).max() <= most
        assert np.isfinite(a).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_krons_by_their_axes(dtype):
    g = Given(dtype)
    A, B, C = g.P
    eye = pl.Identity
    whole = pl.Kron(A, B, C)
    k = dense(whole)
    cases = {
        "axes": (pl.Kron(A, eye(30)) @ pl.Kron(eye(4), B, eye(6)) @ pl.Kron(eye(20), C), k),
        "nested": (pl.Kron(A, B, C) @ pl.Kron(pl.Kron(A, B), C), k @ k),
        "a KronSum": (
            pl.Kron(A, B) @ pl.KronSum(inv(A), inv(B)),
            np.kron(np.eye(4), dense(B)) + np.kron(dense(A), np.eye(5)),
        ),
        "a sum": (whole @ (pl.Identity(120) + inv(whole)), k + np.eye(120)),
        "one factor": (
            pl.Kron(A, B) - 2 * pl.Kron(A, B @ B),
            np.kron(dense(A), dense(B - 2 * B @ B)),
        ),
        "beside I": (pl.Kron(eye(6), B, eye(2)) + 3 * pl.Identity(60), None),
    }
    cases["beside I"] = (
        cases["beside I"][0],
        np.kron(np.kron(np.eye(6), dense(B)), np.eye(2)) + 3 * np.eye(60),
    )
    for name, (op, want) in cases.items():
        n = len(want)
        b = values(g.r, n, dtype)
        for ask, what in (
            ("apply", lambda X: X @ b),
            ("dense", dense),
            ("diagonal", diagonal),
            ("trace", lambda X: X.trace()),
            ("solve", lambda X: pl.solve(X, b)),
            ("logdet", pl.logdet),
        ):
            x, f = figures(what, op)
            full = {"apply": want @ b, "dense": want, "trace": np.trace(want)}.get(ask)
            if full is None:
                full = answer(ask, want, b)
            same(x, full, 1e-9)
            if ask in ("diagonal", "trace"):
                assert f <= 40 * n, (name, ask, f)  # n^2 and more before


def test_krons_that_do_not_meet():
    """Other cuts, rectangles, batches, singular factors and no rows: as written, and right."""
    r = np.random.default_rng(2)
    a, b = r.standard_normal((4, 4)), r.standard_normal((6, 6))
    eye = pl.Identity
    for op, want in (
        (pl.Kron(a, b) @ pl.Kron(b, a), np.kron(a, b) @ np.kron(b, a)),
        (
            pl.Kron(eye(4), b[:2]) @ pl.Kron(a, eye(6)),
            np.kron(np.eye(4), b[:2]) @ np.kron(a, np.eye(6)),
        ),
        (pl.Kron(eye(6), a) @ pl.Kron(eye(4), b), np.kron(np.eye(6), a) @ np.kron(np.eye(4), b)),
        (pl.Kron(a, b) + pl.Kron(b, a), np.kron(a, b) + np.kron(b, a)),
        (pl.Kron(a[:, :3], b) + pl.Kron(a[:, 1:], b), np.kron(a[:, :3] + a[:, 1:], b)),
    ):
        for x, y in ((dense(op), want), (op.diagonal(), np.diagonal(want))):
            same(x, y, 1e-12)
    many = r.standard_normal((2, 3, 3))
    batch = pl.Kron(many, eye(2)) @ pl.Kron(eye(3), a[:2, :2])
    same(dense(batch), np.stack([np.kron(m, a[:2, :2]) for m in many]), 1e-12)
    none = pl.Kron(eye(0), a) @ pl.Kron(eye(2), np.zeros((0, 0)))
    assert dense(none).shape == (0, 0)
    p = np.ones((3, 3))
    S = pl.Kron(pl.Dense(p), eye(2)) @ (pl.Kron(inv(pl.Dense(p)), eye(2)) + pl.Identity(6))
    with pytest.raises(np.linalg.LinAlgError):
        S.diagonal()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_dense_forms_and_diagonals_of_inverses_of_products(dtype):
    g = Given(dtype)
    A = pl.Dense(values(g.r, (N, N), dtype) + 20 * np.eye(N))
    a, s, d = dense(A), dense(g.S), dense(g.D)
    x, f = figures(dense, inv(g.D @ inv(g.S) @ g.D))
    same(x, np.linalg.inv(d) @ s @ np.linalg.inv(d), 1e-11)
    assert f <= 4 * N**2
    x, f = figures(of_inverse, inv(g.S) @ inv(A))
    same(x, np.diagonal(a @ s), 1e-11)
    assert f <= 4 * N**2
    small = g.Q
    K = pl.Kron(small, small) ** 2
    q = dense(small)
    x, f = figures(dense, K)
    same(x, np.kron(q @ q, q @ q), 1e-11)
    assert f <= 4 * 100**2
    x, f = figures(of_inverse, K)
    same(x, np.diagonal(np.linalg.inv(np.kron(q @ q, q @ q))), 1e-10)
    assert f <= 12 * 10**3


def test_a_quadratic_of_a_toeplitz():
    """K K + c K by two solves with Toeplitz matrices, checked; of indefinite ones too."""
    r = np.random.default_rng(4)
    for c in (np.exp(-np.arange(N) / 5.0), 0.9 ** np.arange(N) - 0.3, r.standard_normal(N)):
        K, b = pl.Toeplitz(c), r.standard_normal(N)
        k = dense(K)
        a = k @ k + 0.5 * k
        x = pl.solve(K @ K + 0.5 * K, b)
        size = np.linalg.norm(a, 2) * np.linalg.norm(x) + np.linalg.norm(b)
        assert np.linalg.norm(b - a @ x) <= 20 * N * np.finfo(float).eps * size
    Z = Given().Z
    assert figures(pl.solve, Z @ Z + Z, np.ones(N))[1] <= 0.5 * N**3
