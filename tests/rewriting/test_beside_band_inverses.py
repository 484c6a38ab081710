"""Sums of bands and of products around the inverse of one, I + T^-1 D or D - D (T + D)^-1 D, are
solved with by one band and have their determinants by bands, checked: as accurate as what is
written, whatever the condition."""

import mpmath
import numpy as np
import pytest
from drawn import values

import pylinop as pl

inv = pl.inv


def tridiagonal(r, n, dtype):
    e = values(r, n - 1, dtype) / 4
    return pl.Tridiagonal(e, (4 + r.random(n)).astype(dtype), values(r, n - 1, dtype) / 4)


def banded(r, n, dtype):
    ab = values(r, 5 * n, dtype).reshape(5, n) / 4
    ab[2] += 6
    return pl.Banded((2, 2), ab)


# What is written, of bands T, diagonals D and G
SUMS = {
    "I + T^-1 D": lambda T, D, G, I: I + inv(T) @ D,
    "I - D T^-1": lambda T, D, G, I: 2 * I - 0.3 * (D @ inv(T)),
    "G + T^-1 D": lambda T, D, G, I: G + inv(T) @ D,
    "D - D (T + D)^-1 D": lambda T, D, G, I: D - D @ inv(T + D) @ D,
    "the same, the products otherwise": lambda T, D, G, I: D - D @ (inv(T + D) @ D),
    "multiples": lambda T, D, G, I: 2 * D - (0.5 * D) @ inv(2 * (T + D)) @ G,
    "the other side": lambda T, D, G, I: D + 0.5 * G @ inv(T) @ D,
    "bands on both": lambda T, D, G, I: T + 0.1 * inv(T + G) @ (T + D),
    "a product": lambda T, D, G, I: inv(T @ T) + D,
    "I - (T + D)^-1 D": lambda T, D, G, I: I - inv(T + D) @ D,
}


@pytest.mark.parametrize(
    "kind, dtype", [(tridiagonal, "complex128"), (tridiagonal, "float32"), (banded, "float64")]
)
@pytest.mark.parametrize("written", SUMS)
def test_solves_and_determinants_take_bands(written, kind, dtype):
    r = np.random.default_rng(3)
    n, u = 100, np.finfo(dtype).eps
    T, D, G = kind(r, n, dtype), *(pl.Diag((1 + r.random(n)).astype(dtype)) for _ in range(2))
    A = SUMS[written](T, D, G, pl.Identity(n, dtype=dtype))
    b = values(r, n, dtype)
    for B in (A, A.H):
        a = B.toarray()
        x, flops = pl.solve(B, b), B.explain("solve", b).flops
        assert flops < 1500 * n * (4 if kind is banded else 1), (written, flops)
        assert np.linalg.norm(a @ x - b) <= 100 * n * u * np.linalg.norm(a, 2) * np.linalg.norm(x)
    sign, log = pl.slogdet(A)
    want = np.linalg.slogdet(A.toarray().astype(complex if dtype == "complex128" else float))
    assert abs(log - want[1]) <= 1000 * n * u
    assert abs(sign - want[0]) <= 1000 * n * u


SYMMETRIC = ["I + T^-1 D", "I - D T^-1", "D - D (T + D)^-1 D", "I - (T + D)^-1 D"]


@pytest.mark.parametrize("written", SYMMETRIC)
def test_determinants_of_symmetric_ones_take_bands(written):
    r, n = np.random.default_rng(4), 200
    e = r.random(n - 1) / 3
    T = pl.Tridiagonal(e, 2 + r.random(n), e)
    D, I = pl.Diag(1 + r.random(n)), pl.Identity(n)
    A = SUMS[written](T, D, D, I)
    assert A.explain("logdet").flops < 400 * n
    assert abs(pl.logdet(A) - np.linalg.slogdet(A.toarray())[1]) < 1e-11
    assert (inv(T) + D).explain("logdet").flops < 400 * n


# -- accuracy

BANDS = {
    "kind": lambda r, n: (-r.random(n - 1), 3 + r.random(n)),
    "nearly singular": lambda r, n: (
        -np.ones(n - 1),
        np.r_[1.0, np.full(n - 2, 2.0), 1.0] + 1e-12,
    ),
    "graded": lambda r, n: (lambda s: (0.4 * s[1:] * s[:-1], 2 * s * s))(
        10.0 ** np.linspace(-4, 4, n)
    ),
    "indefinite": lambda r, n: (-np.ones(n - 1), np.ones(n) * 1.1),
    "negative": lambda r, n: (np.ones(n - 1), np.full(n, -2.5)),
}
DIAGONALS = {
    "ones": lambda r, n: 1 + r.random(n),
    "small": lambda r, n: 1e-9 * (1 + r.random(n)),
    "large": lambda r, n: 1e9 * (1 + r.random(n)),
    "graded": lambda r, n: 10.0 ** r.uniform(-8, 8, n),
    "both signs": lambda r, n: r.standard_normal(n),
    "some zero": lambda r, n: np.where(np.arange(n) % 3, 1.0, 0.0),
    "half of them huge": lambda r, n: np.r_[np.full(n // 2, 1e25), np.full(n - n // 2, 1e-3)],
    "subnormal": lambda r, n: np.full(n, 1e-310),
}
FORMULAS = {
    "T^-1 + D": (lambda T, D, I: inv(T) + D, lambda t, d, i: t**-1 + d),
    "I + T^-1 D": (lambda T, D, I: I + inv(T) @ D, lambda t, d, i: i + t**-1 * d),
    "D - D (T + D)^-1 D": (
        lambda T, D, I: D - D @ inv(T + D) @ D,
        lambda t, d, i: d - d * (t + d) ** -1 * d,
    ),
    "2 D - T^-1 / 4": (lambda T, D, I: 2 * D - 0.25 * inv(T), lambda t, d, i: 2 * d - t**-1 / 4),
}


def exact(a):
    return mpmath.matrix(a.tolist())


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.filterwarnings("ignore")
def test_as_accurate_as_what_is_written(band, formula, n=12):
    """The determinant is within ten times numpy's of the dense form's, or 40 n^2 u and what a
    factor of the inverse costs; the backward error likewise."""
    u, written = 2.0**-53, FORMULAS[formula]
    for name, draw in DIAGONALS.items():
        r = np.random.default_rng(5)
        e, main = BANDS[band](r, n)
        d, b = draw(r, n), r.standard_normal(n)
        t = np.diag(main) + np.diag(e, 1) + np.diag(e, -1)
        A = written[0](pl.Tridiagonal(e, main, e), pl.Diag(d), pl.Identity(n))
        with mpmath.workdps(60):
            a = written[1](exact(t), exact(np.diag(d)), mpmath.eye(n))
            det = mpmath.det(a)
            if det == 0:
                with pytest.raises(np.linalg.LinAlgError):
                    pl.solve(A, b)
                continue
            log = mpmath.log(abs(det))
            a64 = np.array([[float(a[i, j]) for j in range(n)] for i in range(n)])
            own = A.toarray()
            sign, mine = pl.slogdet(A)
            x, his = pl.solve(A, b), np.linalg.slogdet(own)[1]

            def eta(x, a=a, a64=a64, b=b):
                r = exact(b[:, None]) - a * exact(x[:, None])
                size = np.linalg.norm(a64, 2) * np.linalg.norm(x) + np.linalg.norm(b)
                return float(mpmath.norm(r)) / size

            off, theirs = (abs(float(mpmath.mpf(float(v)) - log)) for v in (mine, his))
            known = n * u * min(np.linalg.cond(t) + np.linalg.cond(own), 1 / u)
            room = 10 * theirs + 40 * n * n * u + 4 * u * abs(float(log)) + known
            assert off <= room, (name, off, theirs)
            assert known > 1e-3 or theirs > 1e-3 or sign == mpmath.sign(det), name
            by_them = np.linalg.solve(own, b)
            if np.isfinite(by_them).all():
                assert eta(x) <= max(10 * eta(by_them), 10 * n * u), name


@pytest.mark.parametrize("shift", [1e-12, 1e-6, 2e-4, 1e-3, 1.0])
def test_what_the_look_accepts_has_all_its_digits(shift):
    """Of an inverse with a large part and D beside which that part is nothing: log det(D + T^-1) is
    exact to n^2 u where t_ii (T^-1)_ii is at most n, and as written beyond."""
    n = 40
    main = np.r_[1.0, np.full(n - 2, 2.0), 1.0] + shift
    e = -np.ones(n - 1)
    T = pl.Tridiagonal(e, main, e)
    for d in (1e-3, 1.0, 1e14):
        A = inv(T) + pl.Diag(np.full(n, d))
        with mpmath.workdps(60):
            t = exact(np.diag(main) + np.diag(e, 1) + np.diag(e, -1))
            log = mpmath.log(mpmath.det(t + mpmath.eye(n) / d)) - mpmath.log(mpmath.det(t))
            log += n * mpmath.log(d)
            off = abs(float(mpmath.mpf(float(pl.logdet(A))) - log))
        theirs = abs(np.linalg.slogdet(A.toarray())[1] - float(log))
        known = n * 2.0**-53 * np.linalg.cond(A.toarray())  # of a factor of the dense form
        assert off <= 40 * n * n * 2.0**-53 + 10 * theirs + 1e-15 * abs(float(log)) + known


def test_singular_ones_say_so():
    n = 40
    main, e = np.r_[1.0, np.full(n - 2, 2.0), 1.0], -np.ones(n - 1)
    T, D = pl.Tridiagonal(e, main, e), pl.Diag(np.ones(n))  # constants vanish: T is singular
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(
            pl.Identity(n) + inv(pl.Diag(np.r_[0.0, main[1:]]) @ pl.Identity(n)) @ D, np.ones(n)
        )
    assert pl.logdet(D - D @ inv(T + D) @ D) < -20  # 0, or what rounding leaves of it


# -- diagonals of products


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_diagonals_of_products_with_inverses_of_bands(dtype):
    r, n = np.random.default_rng(6), 90
    u = np.finfo(dtype).eps
    for T in (tridiagonal(r, n, dtype), banded(r, n, dtype)):
        D, G = (pl.Diag(values(r, n, dtype)) for _ in range(2))
        M = T + pl.Identity(n, dtype=dtype)
        for P in (T @ inv(M), inv(M) @ T, D @ inv(M) @ T, T @ inv(M) @ D @ G, T.T @ inv(M.T)):
            p = P.toarray()
            most = 100 * n * u * np.linalg.cond(M.toarray()) * np.abs(p).max()
            assert np.abs(P.diagonal() - np.diagonal(p)).max() <= most
            assert abs(P.trace() - np.trace(p)) <= n * most
            assert P.explain("diagonal").flops < 1500 * n


@pytest.mark.parametrize("band", ["graded", "nearly singular", "indefinite"])
def test_such_diagonals_of_ill_conditioned_ones(band):
    r, n = np.random.default_rng(7), 40
    e, main = BANDS[band](r, n)
    t, d = np.diag(main) + np.diag(e, 1) + np.diag(e, -1), 10.0 ** r.uniform(-4, 4, n)
    T = pl.Tridiagonal(e, main, e)
    got = (T @ inv(T + pl.Diag(d))).diagonal()
    with mpmath.workdps(60):
        m = exact(t + np.diag(d)) ** -1
        p = exact(t) * m
        off = np.array([float(abs(p[i, i] - mpmath.mpf(float(got[i])))) for i in range(n)])
        size = float(mpmath.mnorm(m, "f")) * np.linalg.cond(t + np.diag(d))
    assert np.all(off <= n * 2.0**-53 * np.linalg.norm(t, axis=1) * size)
