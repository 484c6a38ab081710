"""The promise on accuracy, against mpmath at conditions up to 1e14: a solve's backward error is at
most ten times that of the formula as written, or 10 n u; logarithms of determinants and products
likewise by their own measures."""

import mpmath as mp
import numpy as np
import pytest

import pylinop as pl

N, R, M = 8, 2, 14
CASES = [("f8", 2), ("f8", 8), ("f8", 11), ("f8", 14), ("f4", 2), ("f4", 5), ("c16", 9), ("c8", 4)]
cases = pytest.mark.parametrize(("dtype", "log"), CASES)
POSITIVE = ("P", "O", "C", "Q")


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a


def conditioned(rng, m, n, log, dtype, positive=False):
    u = np.linalg.qr(values(rng, (m, n), dtype))[0]
    v = u if positive else np.linalg.qr(values(rng, (n, n), dtype))[0]
    a = u * np.logspace(0, -log, n) @ v.conj().T
    return ((a + a.conj().T) / 2 if positive else a).astype(dtype)


class Exact:
    """A matrix of 40 digits, with the operators that formulas use."""

    def __init__(self, a):
        if isinstance(a, np.ndarray):
            a = mp.matrix([[mp.mpmathify(v.item()) for v in row] for row in a.reshape(len(a), -1)])
        self.a = a

    H = property(lambda self: Exact(self.a.H))
    __matmul__ = lambda self, other: Exact(self.a * other.a)  # noqa: E731
    __add__ = lambda self, other: Exact(self.a + other.a)  # noqa: E731
    __sub__ = lambda self, other: Exact(self.a - other.a)  # noqa: E731
    __rmul__ = lambda self, c: Exact(mp.mpf(c) * self.a)  # noqa: E731

    def inv(self):
        return Exact(self.a**-1)


class Plain(np.ndarray):
    """An array that has .H too."""

    H = property(lambda self: self.conj().T)


def operands(rng, dtype, log):
    """Arrays by name, and the same as operators, as lazy arrays, plain, and exact."""
    half = log / 2
    d = np.ones(N)
    d[3] = 10.0**-log
    diagonals = {"D": d, "E": np.logspace(0, -log, N), "W": np.logspace(0, -min(log, 5), M)}
    diagonals = {k: v.astype(dtype) for k, v in diagonals.items()}
    arrays = {
        "A": conditioned(rng, N, N, log, dtype),
        "B": conditioned(rng, N, N, half, dtype),
        "P": conditioned(rng, N, N, log, dtype, True),
        "O": conditioned(rng, N, N, half, dtype, True),
        "C": conditioned(rng, R, R, min(log, 5), dtype, True),
        "Q": conditioned(rng, M, M, min(log, 5), dtype, True),
        "X": conditioned(rng, M, N, half, dtype),
        "Y": conditioned(rng, M, N, 1, dtype),
        "U": values(rng, (N, R), dtype).astype(dtype),
        "V": values(rng, (N, R), dtype).astype(dtype),
        "Z": values(rng, (R, N), dtype).astype(dtype),
        "b": values(rng, (N, 1), dtype).astype(dtype),
        "w": values(rng, (R, 1), dtype).astype(dtype),
        "y": values(rng, (M, 1), dtype).astype(dtype),
    }
    c = float(np.dtype(dtype).type(10.0**-log).real)
    ops = {k: pl.Dense(a, "pos" if k in POSITIVE else None) for k, a in arrays.items()}
    ops |= {k: pl.Diag(v) for k, v in diagonals.items()} | {"I": pl.Identity(N)}
    ops |= {"b": arrays["b"], "w": arrays["w"], "y": arrays["y"]}
    whole = {**arrays, **{k: np.diag(v) for k, v in diagonals.items()}, "I": np.eye(N, dtype=dtype)}
    plain = {k: a.view(Plain) for k, a in whole.items()}
    exact = {k: Exact(a) for k, a in whole.items()}
    extra = {"c": c}
    return (
        {**ops, "inv": pl.inv, **extra},
        {**plain, "inv": np.linalg.inv, "c": np.dtype(dtype).type(c)},
        {**exact, "inv": Exact.inv, **extra},
    )


def norm(a):
    return mp.norm(a, 2) if a.cols == 1 else mp.mnorm(a, "f")


def eta(S, x, b):
    return float(norm(b - S * x) / (mp.mnorm(S, "f") * norm(x) + norm(b)))


def unit(dtype):
    return float(np.finfo(dtype).eps) / 2


SOLVES = [  # S, b: the formula is inv(S) @ b
    ("A", "b"),
    ("P", "b"),
    ("A @ B", "b"),
    ("P @ O", "b"),
    ("B.H @ P @ B", "b"),
    ("X.H @ X", "X.H @ y"),
    ("X.H @ X", "b"),
    ("2.0 * X.H @ X", "X.H @ y"),
    ("X.H @ W @ X", "X.H @ W @ y"),
    ("X.H @ Q @ X", "X.H @ Q @ y"),
    ("X.H @ inv(Q) @ X", "X.H @ inv(Q) @ y"),
    ("X.H @ X + c * I", "X.H @ y"),
    ("X.H @ X + Y.H @ Y", "X.H @ y"),
    ("Z.H @ Z + c * I", "Z.H @ w"),
    ("Z.H @ Z + c * I", "b"),
    ("Z.H @ inv(C) @ Z + D", "Z.H @ inv(C) @ w"),
    ("Z.H @ inv(C) @ Z + inv(P)", "Z.H @ inv(C) @ w"),
    ("D + U @ U.H", "b"),
    ("D + U @ U.H", "U @ w"),
    ("E + U @ U.H", "b"),
    ("E + U @ U.H", "U @ w"),
    ("D + U @ C @ U.H", "U @ C @ w"),
    ("D - U @ V.H", "U @ w"),
    ("P + U @ U.H", "U @ w"),
    ("inv(P) + U @ U.H", "U @ w"),
    ("inv(P) + inv(O)", "b"),
    ("inv(P) + inv(O)", "inv(P) @ b"),
]


@cases
def test_backward_error_of_solves(dtype, log):
    rng = np.random.default_rng(log)
    ops, plain, exact = operands(rng, dtype, log)
    with mp.workdps(40):
        for S, b in SOLVES:
            matrix, right = eval(S, {}, exact).a, eval(b, {}, exact).a
            formula = f"inv({S}) @ {b}"
            try:
                written = eta(matrix, Exact(np.asarray(eval(formula, {}, plain))).a, right)
            except np.linalg.LinAlgError:  # rounded, it is singular: what is left is 10 n u
                written = 0
            got = np.asarray(eval(formula, {}, ops))
            assert got.dtype == dtype
            limit = max(10 * written, 10 * N * unit(dtype))
            assert eta(matrix, Exact(got).a, right) <= limit, formula


DETERMINANTS = [
    "P",
    "D + U @ U.H",
    "E + U @ C @ U.H",
    "Z.H @ Z + c * I",
    "X.H @ X",
    "O + P",
    "A @ B",
]


@cases
def test_logarithms_of_determinants(dtype, log):
    """To n u cond(S), what LU of S has."""
    rng = np.random.default_rng(100 + log)
    ops, plain, exact = operands(rng, dtype, log)
    with mp.workdps(40):
        for S in DETERMINANTS:
            matrix = eval(S, {}, exact).a
            want = float(mp.log(abs(mp.det(matrix))))
            condition = float(mp.mnorm(matrix, "f") * mp.mnorm(matrix**-1, "f"))
            written = abs(np.linalg.slogdet(np.asarray(eval(S, {}, plain)))[1] - want)
            got = pl.slogdet(eval(S, {}, ops))[1]
            limit = max(10 * written, 10 * N * unit(dtype) * min(condition, 1 / unit(dtype)))
            assert abs(got - want) <= limit + 10 * unit(dtype) * abs(want), S


PRODUCTS = [
    "A @ B @ b",
    "A @ B @ P",
    "X.H @ X @ b",
    "(P - X.H @ X) @ b",
    "A @ B + A @ P",
    "A @ B + P @ B",
    "X @ A @ X.H",
    "X.H @ Q @ X",
    "U @ V.H @ A @ U",
    "A @ B @ A @ B",
    "A @ U @ V.H @ b",
    "A @ B.H + B @ A.H",
    "(A @ B).H @ (A @ B)",
]


@cases
def test_products_entry_by_entry(dtype, log):
    """To n u |A| |B| |C| for each of the products, whatever the order."""
    rng = np.random.default_rng(200 + log)
    ops, plain, exact = operands(rng, dtype, log)
    sizes = {k: abs(np.asarray(a, complex)).view(Plain) for k, a in plain.items() if np.ndim(a)}
    with mp.workdps(40):
        for formula in PRODUCTS:
            want = eval(formula, {}, exact).a
            got = eval(formula, {}, ops)
            got = Exact(got if isinstance(got, np.ndarray) else got.todense()).a
            size = eval(formula.replace("-", "+"), {}, sizes)
            for i in range(want.rows):
                for j in range(want.cols):
                    most = 4 * (M + 2) * unit(dtype) * float(size[i, j])
                    assert abs(got[i, j] - want[i, j]) <= most, (formula, i, j)


@pytest.mark.parametrize("log", [2, 6, 8, 10, 12])
def test_least_squares_forward(log):
    """Written as normal equations, yet not worse than by QR where these have no digits left."""
    rng = np.random.default_rng(log)
    x = conditioned(rng, 20, N, log, "f8")
    want = rng.standard_normal((N, 1))
    y = x @ want
    with mp.workdps(40):
        X, Y = Exact(x), Exact(y)
        best = ((X.H @ X).inv() @ X.H @ Y).a
        X = pl.Dense(x)
        got = Exact((pl.inv(X.T @ X) @ X.T) @ y).a
        error = float(norm(got - best) / norm(best))
    cond = 10.0**log
    allowed = cond if log >= 8 else cond**2
    assert error <= 100 * N * unit("f8") * allowed
