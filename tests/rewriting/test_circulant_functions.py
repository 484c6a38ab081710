"""Functions of circulants that hold inverses are one pair of transforms, whatever their spelling,
and as near as circulants within rounding of those written."""

import warnings

import mpmath
import numpy as np
import pytest
from drawn import values

import pylinop as pl

inv = pl.inv

SPELLINGS = {
    "a resolvent": (
        lambda O, P, I: O @ inv(O + 0.5 * I),
        lambda O, P, I: inv(O + 0.5 * I) @ O,
        lambda O, P, I: I - 0.5 * inv(O + 0.5 * I),
        lambda O, P, I: inv(I + 0.5 * inv(O)),
    ),
    "a difference": (
        lambda O, P, I: inv(O) - inv(O + I),
        lambda O, P, I: inv(O) @ inv(O + I),
        lambda O, P, I: inv(O @ O + O),
        lambda O, P, I: inv(O @ (O + I)),
    ),
    "a parallel sum": (
        lambda O, P, I: O @ inv(O + P) @ P,
        lambda O, P, I: inv(inv(O) + inv(P)),
        lambda O, P, I: O - O @ inv(O + P) @ O,
    ),
    "one of views": (
        lambda O, P, I: inv(O.T + 0.5 * I) @ (P.T @ inv(O.T)),
        lambda O, P, I: (inv(O) @ P @ inv(O + 0.5 * I)).T,
    ),
}


def drawn(r, n, dtype, levels=1):
    c = values(r, n, dtype) / n
    c[0] = 3
    return pl.Circulant(c if levels == 1 else c.reshape(3, -1), levels=levels)


def asked(A, b):
    return {
        "@ x": (A @ b, A.explain("apply", b)),
        "dense": (A.toarray(), A.explain("dense")),
        "diagonal": (A.diagonal(), A.explain("diagonal")),
        "trace": (A.trace(), A.explain("trace")),
        "solve": (pl.solve(A, b), A.explain("solve", b)),
        "of the inverse": (inv(A).diagonal(), inv(A).explain("diagonal")),
        "determinant": (pl.slogdet(A)[1], A.explain("logdet")),
    }


@pytest.mark.parametrize(
    "dtype, levels", [("float64", 1), ("float64", 2), ("complex128", 1), ("float32", 1)]
)
@pytest.mark.parametrize("what", SPELLINGS)
def test_spellings_agree(what, dtype, levels):
    seed = int(np.random.default_rng().integers(2**31))
    r, u = np.random.default_rng(seed), np.finfo(dtype).eps
    for n in (3, 6, 33, 120):
        O, P = (drawn(r, n, dtype, levels) for _ in range(2))
        I, b = pl.Identity(n, dtype=dtype), values(r, (n, 2), dtype)
        first, *others = (asked(spell(O, P, I), b) for spell in SPELLINGS[what])
        for found in others:
            for name, (value, _) in found.items():
                want = first[name][0]
                room = 200 * n * u * (1 + np.linalg.norm(want))
                assert np.linalg.norm(value - want) <= room, (seed, n, name)


@pytest.mark.parametrize("what", ["a resolvent", "a difference"])
def test_each_is_one_pair_of_transforms(what, n=480):
    r = np.random.default_rng(2)
    O, b = drawn(r, n, "float64"), r.standard_normal(n)
    ways = [asked(spell(O, O, pl.Identity(n)), b) for spell in SPELLINGS[what]]
    for name in ("@ x", "dense", "diagonal", "trace", "of the inverse"):
        flops = [way[name][1].flops for way in ways]
        assert max(flops) <= 1.3 * min(flops) + 20 * n, name
    for way in ways:
        assert sum("quotient" in s["name"] for s in way["dense"][1].steps) <= 1


@pytest.mark.parametrize("low", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("what", ["a resolvent", "a difference", "a parallel sum"])
def test_near_singular_ones(what, low, n=12):
    seed = int(np.random.default_rng().integers(2**31))
    r, u = np.random.default_rng(seed), 2.0**-53
    columns = [
        np.fft.irfft(r.permutation(np.geomspace(k, 1, n // 2 + 1)), n) for k in (low, low**0.5)
    ]

    def whole(c):
        return mpmath.matrix([[c[(i - j) % n] for j in range(n)] for i in range(n)])

    O, P = map(pl.Circulant, columns)
    b = r.standard_normal(n)
    with mpmath.workdps(60):
        o, p, one, s = *map(whole, columns), mpmath.eye(n), mpmath.mpf(1) / 2
        exact = {
            "a resolvent": lambda: o * (o + s * one) ** -1,
            "a difference": lambda: o**-1 * (o + one) ** -1,
            "a parallel sum": lambda: o * (o + p) ** -1 * p,
        }[what]()
        size = float(mpmath.mnorm(exact, "f"))
        right = mpmath.matrix(b.tolist())
        for i, spell in enumerate(SPELLINGS[what]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pl.IllConditionedWarning)
                A = spell(O, P, pl.Identity(n))
                x, y = pl.solve(A, b), A @ b
            off = float(mpmath.norm(right - exact * mpmath.matrix(x.tolist())))
            eta = off / ((size + 1) * np.linalg.norm(x) + np.linalg.norm(b))  # |O|, |P| = 1
            # a circulant within 3 u log2(n) |O| of O has a spectrum of this relative error
            far = 20 * n * u / low
            assert eta <= far if what == "a difference" else eta <= 50 * n * u, (seed, i)
            wrong = float(mpmath.norm(exact * right - mpmath.matrix(y.tolist())))
            assert wrong <= far * size * np.linalg.norm(b), (seed, i)


def test_mixed_dtypes_batches_of_right_sides_and_verified():
    r, n = np.random.default_rng(3), 40
    O, I = drawn(r, n, "float32"), pl.Identity(n, dtype="float32")
    o, eye = O.toarray().astype(float), np.eye(n)
    want = o @ np.linalg.inv(o + 0.5 * eye)
    for b in (
        values(r, (3, n, 2), "float64"),
        values(r, (n,), "complex64"),
        values(r, (2, n, 1), "complex128"),
    ):
        A = O @ inv(O + 0.5 * I)
        with pl.config(verify=True, check_plans=True):
            y, x = A @ b, pl.solve(A, b)
        assert y.dtype == x.dtype == np.result_type(b, np.float32)
        u = np.finfo(y.dtype).eps if y.dtype.char in "FfdD" else 0
        np.testing.assert_allclose(y, want @ b, atol=2000 * u)
        np.testing.assert_allclose(x, np.linalg.solve(want, b), atol=20000 * u)


def test_singular_ones_and_nan():
    n = 24
    C, D, I = pl.Circulant(np.ones(n)), pl.Circulant(np.eye(n)[0] * 3), pl.Identity(n)
    for A in (inv(C) - inv(C + I), D @ inv(C), inv(C) @ inv(C + I)):
        for ask in (lambda A=A: A @ np.ones(n), lambda A=A: A.diagonal(), lambda A=A: A.toarray()):
            with pytest.raises(np.linalg.LinAlgError):
                ask()
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(C @ inv(C + I), np.ones(n))
    c = np.ones(n)
    c[1] = np.nan
    N = pl.Circulant(c)
    assert np.isnan(N @ inv(N + I) @ np.ones(n)).all()


def test_a_column_that_is_written_into_is_seen():
    c = np.eye(64)[0] * 2
    c[1] = 0.5
    O, I, b = pl.Circulant(c), pl.Identity(64), np.arange(64.0)
    A = O @ inv(O + I)
    before = A @ b
    c[2] = 0.25
    o = O.toarray()
    after = A @ b
    assert not np.allclose(before, after)
    np.testing.assert_allclose(after, o @ np.linalg.solve(o + np.eye(64), b), atol=1e-12)
