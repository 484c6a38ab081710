"""Products, inverses, powers and slices of a structure and a low rank are one again when they are
multiplied out: solves, determinants and inverses of sums of such go by Woodbury's formula, beside
NumPy, also where that cancels, near singular matrices, and of fewer rows than it is for."""

import numpy as np
import pytest
import scipy.sparse as sp
from drawn import values

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")
inv = pl.inv
N, K = 120, 4


def given(dtype, seed, n=N, k=K):
    """Operators and their dense forms, by name."""
    r = np.random.default_rng(seed)
    real = np.zeros(1, dtype).real.dtype
    d, g = (r.uniform(1, 2, n).astype(real) for _ in range(2))
    e = (r.random(n - 1) / 4).astype(real)
    u, v = (values(r, (n, k), dtype) / np.sqrt(n).astype(real) for _ in range(2))
    c = values(r, (k, k), dtype)
    c = (c @ c.conj().T + np.eye(k)).astype(dtype)
    q = sp.random_array((n, n), density=1.5 / n, rng=r)
    q = (q + q.T + 4 * sp.eye_array(n)).tocsr().astype(real)
    one = np.full((n, n), 1 / n, real)
    U, V = pl.Dense(u), pl.Dense(v)
    o = {
        "D": pl.Diag(d),
        "G": pl.Diag(g),
        "T": pl.Tridiagonal(e, d, e),
        "Q": pl.Sparse(q),
        "U": U,
        "V": V,
        "C": pl.Dense(c),
        "I": pl.Identity(n),
        "one": pl.Full((n, n), real.type(1 / n)),
    }
    a = {
        "D": np.diag(d),
        "G": np.diag(g),
        "T": np.diag(d) + np.diag(e, 1) + np.diag(e, -1),
        "Q": q.toarray(),
        "U": u,
        "V": v,
        "C": c,
        "I": np.eye(n),
        "one": one,
    }
    a = {name: x.astype(np.result_type(x, np.float64)) for name, x in a.items()}
    for m, x in ((o, pl.Dense), (a, np.asarray)):
        U, V, C = m["U"], m["V"], m["C"]
        h = (lambda z: z.H) if x is pl.Dense else (lambda z: z.conj().T)
        m["Uh"], m["Vh"] = h(U), h(V)
        m["P"] = m["D"] + U @ h(U)
        m["R"] = m["G"] + U @ C @ h(V)
        m["Ph"], m["Rh"] = h(m["P"]), h(m["R"])
        m["B"] = m["T"] + 0.5 * (V @ h(V))
    o["L"] = pl.LowRankUpdate(o["G"], o["U"], o["V"], o["C"])
    a["L"] = a["R"]
    return r, o, a


SUMS = {
    "square": "P @ P + G",
    "power": "P**2 + 0.5 * G",
    "cube": "P**3 + G",
    "adjoint": "P @ Ph + G",
    "not its own": "R @ Rh + I",
    "two": "P @ R + 2 * I",
    "a kind": "L @ P - 0.25 * L + G",
    "between": "P @ G @ P + D",
    "left": "G @ P @ G + D",
    "anticommutator": "P @ G + G @ P",
    "projected band": "(I - U @ Vh) @ T @ (I - V @ Uh) + D",
    "centred sparse": "(I - one) @ Q @ (I - one) + D",
    "centred, multiplied out": "Q + D - one @ Q - Q @ one + one @ Q @ one",
    "reflected": "(I - 2 * one) @ T @ (I - 2 * one) + 0.5 * I",
    "band beside": "B @ D + T",
    "an inverse": "G @ inv(P) @ G + D",
    "an inverse beside": "inv(P) + T",
    "inverse of a band and columns": "I + G @ inv(R) @ P",
    "two inverses": "inv(P) @ T @ inv(P) + D",
    "residual maker": "(I - U @ inv(Uh @ U) @ Uh) @ T @ (I - U @ inv(Uh @ U) @ Uh) + D",
    "scaled": "-(0.5 * (P @ R)) + 3 * I",
}
SLICES = {
    "of a sum": ("P", slice(0, 90)),
    "of a band and columns": ("B", slice(30, None)),
    "every other": ("R", slice(1, None, 2)),
    "of an inverse": ("inv(P)", slice(0, 90)),
    "of a product": ("P @ R + G", slice(7, 100)),
    "by index": ("P", np.array([3, 1, 60, 61, 62, 8, 99, 44] + list(range(64, 96)))),
}


def made(text, o, a, cut=None):
    A, x = eval(text, {"inv": inv, **o}), eval(text, {"inv": np.linalg.inv, **a})
    if "**" in text:
        power = int(text.split("**")[1][0])
        x = np.linalg.matrix_power(a["P"], power) + (a["G"] * 0.5 if power == 2 else a["G"])
    return (A, x) if cut is None else (A[cut][:, cut], x[cut][:, cut])


def looked_at(A, D, b, digits, dense=True):
    def close(x, y, times=1):
        np.testing.assert_allclose(x, y, rtol=digits, atol=times * digits * np.abs(y).max())

    close(pl.solve(A, b), np.linalg.solve(D, b))
    close(pl.solve(A.H, b[:, 0]), np.linalg.solve(D.conj().T, b[:, 0]))
    close(pl.solve(A.T, b[:, 0]), np.linalg.solve(D.T, b[:, 0]))
    sign, log = pl.slogdet(A)
    found = np.linalg.slogdet(D)
    assert abs(sign - found[0]) < 20 * digits
    assert abs(log - found[1]) < 20 * digits * (1 + abs(found[1]))
    whole = np.linalg.inv(D)
    close(inv(A).diagonal(), np.diagonal(whole))
    close(pl.trace(inv(A)), np.trace(whole), 10)
    if dense:
        close(inv(A).toarray(), whole)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_beside_dense(name, dtype):
    r, o, a = given(dtype, [1, len(name)])
    A, x = made(SUMS[name], o, a)
    looked_at(A, x, values(r, (N, 3), dtype), 2e-2 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("name", SLICES)
def test_slices_beside_dense(name, dtype):
    r, o, a = given(dtype, [2, len(name)])
    text, cut = SLICES[name]
    A, x = made(text, o, a, cut)
    looked_at(A, x, values(r, (len(x), 3), dtype), 2e-2 if dtype == "float32" else 1e-9)


def test_what_stands_beside_as_it_is():
    """Slices that are square though they are no principal ones, and high powers."""
    r, o, a = given("float64", 14, 2 * N)
    wide = np.vstack([a["T"], a["T"]])
    _, p, q = given("float64", 15)
    b = values(r, (N, 2), "float64")
    for S, s in (
        (o["T"][:N, 30 : N + 30], a["T"][:N, 30 : N + 30]),
        (o["T"][N:, 1 : N + 1], a["T"][N:, 1 : N + 1]),
        (o["P"][:N, N:], a["P"][:N, N:]),
        (pl.Block([[o["T"]], [o["T"]]])[: 2 * N][5 : N + 5, :N], wide[5 : N + 5, :N]),
        ((0.1 * p["P"]) ** 7, np.linalg.matrix_power(0.1 * q["P"], 7)),
    ):
        A, x = S + p["P"] @ p["P"] + p["G"], s + q["P"] @ q["P"] + q["G"]
        looked_at(A, x, b, 1e-9)


@pytest.mark.parametrize("n", [6, 31, 32, 33, 40])
@pytest.mark.parametrize("name", ["square", "an inverse beside", "centred sparse", "left"])
def test_few_rows(name, n):
    r, o, a = given("float64", 3, n, 1)
    A, x = made(SUMS[name], o, a)
    looked_at(A, x, values(r, (n, 2), "float64"), 1e-9)


@pytest.mark.parametrize("name", SUMS)
def test_nothing_is_factored_whole(name):
    """Of 480 rows: less than a product with as many columns as all the thin factors have."""
    n = 480
    _, o, a = given("float64", 4, n, 3)
    A, _ = made(SUMS[name], o, a)
    asked = [A.explain("solve", np.ones(n)), A.explain("logdet"), inv(A).explain("diagonal")]
    for e in asked:
        assert e.flops < n**3 / 40, (name, e.flops / n**3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_products_have_in_inverses(dtype):
    """diag((P R)^-1), of a product alone."""
    _, o, a = given(dtype, 5)
    A, x = inv(o["P"] @ o["R"]), np.linalg.inv(a["P"] @ a["R"])
    np.testing.assert_allclose(A.diagonal(), np.diagonal(x), rtol=1e-10)
    n = 480
    _, o, _ = given("float64", 4, n, 3)
    assert inv(o["P"] @ o["R"]).explain("diagonal").flops < n**3 / 40


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("what", ["base", "inner", "difference", "projector"])
def test_where_it_cancels(small, what):
    """Of a base, or of a small matrix, near a singular one; of what is little beside its
    terms; near a projector: as accurate as from the matrix as it is written."""
    r, o, a = given("float64", 6)
    D, P, U, I = (o[k] for k in "D P U I".split())
    u, eye = a["U"], a["I"]
    b = values(r, (N, 2), "float64")
    if what == "base":  # D - mean has numbers near 0
        d = np.r_[small, np.diagonal(a["D"])[1:]]
        W = pl.Diag(d) + U @ U.T
        w = np.diag(d) + u @ u.T
        A, x = W @ o["G"] @ W + small * I, w @ a["G"] @ w + small * eye
    elif what == "inner":
        v = u[:, :1] * ((1 - small) ** 0.5 / np.linalg.norm(u[:, 0]))
        W, w = I - pl.LowRank(v), eye - v @ v.T
        A, x = W @ o["G"] @ W + small**2 * I, w @ a["G"] @ w + small**2 * eye
    elif what == "difference":
        A = I - P @ inv(P + small * D)
        x = small * a["D"] @ np.linalg.inv(a["P"] + small * a["D"])
    else:
        M, m = I - U @ inv(U.T @ U) @ U.T, eye - u @ np.linalg.solve(u.T @ u, u.T)
        A, x = M @ o["T"] @ M + small * I, m @ a["T"] @ m + small * eye
    digits = 1e-13 * np.linalg.cond(x)
    if what == "difference":
        digits = 1e-13 / small * np.linalg.cond(x)
    got, want = pl.solve(A, b), np.linalg.solve(x, b)
    assert np.linalg.norm(got - want) <= digits * np.linalg.norm(want)
    log = np.linalg.slogdet(x)
    if digits < 1e-2:
        assert pl.slogdet(A)[0] == log[0]
        assert abs(pl.slogdet(A)[1] - log[1]) <= N * digits
    whole = np.linalg.inv(x)
    assert np.abs(inv(A).diagonal() - np.diagonal(whole)).max() <= digits * np.abs(whole).max()


def test_singular_ones_say_so():
    _, o, _ = given("float64", 7)
    M = o["I"] - pl.LowRank(np.eye(N)[:, :1])  # a row and a column of zeros
    A = M @ o["G"] @ M + M @ o["D"] @ M
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(A, np.ones(N))
    assert pl.logdet(A) == -np.inf
    B = pl.Diag(np.zeros(N)) @ o["P"] + pl.Diag(np.zeros(N))
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(B, np.ones(N))
    assert pl.logdet(B) == -np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_comes_through(bad):
    _, o, a = given("float64", 8)
    u = a["U"].copy()
    u[3, 1] = bad
    P = o["D"] + pl.Dense(u) @ pl.Dense(u).T
    with np.errstate(all="ignore"):
        assert not np.isfinite(pl.logdet(P @ P + o["G"]))


@pytest.mark.parametrize("narrow", ["U", "D"])
def test_fewer_digits_beside_doubles(narrow):
    """A part of single precision: the formula is computed in double."""
    r, o, a = given("float64", 9)
    wide = {name: a[name] for name in ("U", "D")}
    wide[narrow] = wide[narrow].astype(np.float32)
    D, U = pl.Diag(np.diagonal(wide["D"]).copy()), pl.Dense(wide["U"])
    P, G = D + U @ U.T, o["G"]
    p = wide["D"].astype(float) + wide["U"].astype(float) @ wide["U"].astype(float).T
    b = values(r, (N, 2), "float64")
    for A, x in ((P @ P + G, p @ p + a["G"]), (inv(P) + o["T"], np.linalg.inv(p) + a["T"])):
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(x, b), rtol=1e-11, atol=1e-12)
        assert abs(pl.logdet(A) - np.linalg.slogdet(x)[1]) < 1e-10


def test_thin_factors_of_fewer_digits():
    """U C of single precision beside a V of double: their product is one of doubles."""
    r, o, a = given("float64", 13)
    u, c = a["U"].astype(np.float32), a["C"].astype(np.float32)
    P = o["D"] + pl.Dense(u) @ pl.Dense(c) @ o["Vh"]
    p = a["D"] + u.astype(float) @ c.astype(float) @ a["Vh"]
    for A, x in ((P @ P + o["G"], p @ p + a["G"]), (P[:90, :90], p[:90, :90])):
        b = values(r, (len(x), 2), "float64")
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(x, b), rtol=1e-11, atol=1e-12)
        assert abs(pl.logdet(A) - np.linalg.slogdet(x)[1]) < 1e-11


def test_numbers_that_change_in_place():
    r, o, a = given("float64", 10)
    u, d = a["U"].copy(), np.diagonal(a["D"]).copy()
    P = pl.Diag(d) + pl.Dense(u) @ pl.Dense(u).T
    A = P @ o["T"] @ P + o["G"]
    for _ in range(3):
        p = np.diag(d) + u @ u.T
        assert abs(pl.logdet(A) - np.linalg.slogdet(p @ a["T"] @ p + a["G"])[1]) < 1e-9
        u[:] = values(r, u.shape, "float64") / 9
        d[:] = r.uniform(1, 3, N)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("signs", [(0.5, 1.5), (0.5, -0.2), (-0.1, 2.0)])
def test_two_low_ranks_and_their_multiples(signs, dtype):
    """a U U^H + b V V^H + D: half a product for the small matrix."""
    r, o, a = given(dtype, 11)
    c, d = (np.float32(s) if dtype == "float32" else s for s in signs)
    A = o["D"] + c * (o["U"] @ o["Uh"]) + d * pl.LowRank(o["V"])
    x = a["D"] + float(c) * a["U"] @ a["Uh"] + float(d) * a["V"] @ a["Vh"]
    looked_at(A, x, values(r, (N, 3), dtype), 2e-2 if dtype == "float32" else 1e-9)
    n, k = 800, 40
    _, o, _ = given("float64", 12, n, k)
    A = o["D"] + 0.5 * (o["U"] @ o["Uh"]) + 1.5 * pl.LowRank(o["V"])
    assert A.explain("solve", np.ones(n)).flops < 1.5 * n * (2 * k) ** 2
