# ruff: noqa: E501  # a formula stays on its line
"""The 17 expressions of LAAB (arXiv 2202.09888) and those of LAMP (arXiv 1911.09421), float32.

Contenders: *as written* through `pl.lazy`, *best form* (what someone writes by hand who knows the
rewrite, in NumPy or by BLAS and LAPACK), *NumPy as written*, and torch and jax where they are
installed. Answers are checked against float64. A plain array has no structure here: that T is
tridiagonal or L triangular is said by a kind or by `assume_a`, as in pylinop's own use; T as a
plain array stands beside it.

The authors' rule: slowdown = median / median of the best form - 1, or 0 where the quartiles overlap;
loss = slowdown over that of a negative reference, for which we take NumPy as written (where that is
not slower than the best form, the loss is the slowdown itself); passed where loss <= 0.05. Our goal
beside it: 1.3 times the best form.

Before each call all contenders change one element of each operand by its last bit, so that nothing
that was kept from the call before may be used again.
"""

import functools

import numpy as np
from harness import Case, peer

import pylinop as pl

n, m = 1500, 200


@functools.cache
def pool():
    """Operands by name; float32, well conditioned."""
    g = np.random.default_rng(11)
    a = {k: g.standard_normal((n, n)) for k in "ABCH"}
    a |= {k: g.standard_normal((n, 1)) for k in "xyz"}
    a |= {"P": g.standard_normal((m, n)), "Q": g.standard_normal((n, m))}
    a["R"] = g.standard_normal((m, m))
    a["G"] = a["A"] + 3 * n**0.5 * np.eye(n)
    a["L"] = np.tril(a["A"]) / n + np.eye(n)
    a["S"] = a["B"] @ a["B"].T / n + np.eye(n)
    a["d"] = g.random(n) + 1
    a |= {"e": g.standard_normal(n - 1), "f": g.standard_normal(n), "h": g.standard_normal(n - 1)}
    a["T"] = np.diag(a["e"], -1) + np.diag(a["f"]) + np.diag(a["h"], 1)
    half = n // 2
    a |= {"M": a["G"][:half, :half].copy(), "N": a["G"][half:, half:].copy()}
    return {k: np.ascontiguousarray(v, np.float32) for k, v in a.items()}


# What is not a plain array as written: from the pool's arrays, the lazy operand and the dense one.
KINDS = {
    "L": ("L", lambda p: pl.lazy(p["L"], "lower triangular"), lambda p: p["L"]),
    "S": ("S", lambda p: pl.lazy(p["S"], "pos"), lambda p: p["S"]),
    "D": ("d", lambda p: pl.lazy(pl.Diag(p["d"])), lambda p: np.diag(p["d"])),
    "T": ("efh", lambda p: pl.lazy(pl.Tridiagonal(p["e"], p["f"], p["h"])), lambda p: p["T"]),
    "K": (
        "MN",
        lambda p: pl.lazy(pl.BlockDiag(p["M"], p["N"])),
        lambda p: np.block(
            [
                [p["M"], np.zeros((n // 2, n // 2), "f")],
                [np.zeros((n // 2, n // 2), "f"), p["N"]],
            ]
        ),
    ),
}

# group, title, names, as written, best form; {} of the names in the pool that the best form reads
LAAB = [
    ("1a", "AB", "A.T @ B", "A.T @ B"),
    ("1b", "LB", "L @ B", "blas.strmm(1.0, L.T, B.T, side=1).T"),
    ("1c", "A", "A @ A.T", "A @ A.T"),
    (
        "1d",
        "TB",
        "T @ B",
        "_ = f[:, None] * B; _[1:] += e[:, None] * B[:-1]; _[:-1] += h[:, None] * B[1:]",
    ),
    ("2a", "AB", "A.T @ B + A.T @ B", "S_ = A.T @ B; S_ *= 2; _ = S_"),
    ("2b", "AB", "(A.T @ B).T @ (A.T @ B)", "S_ = A.T @ B; _ = S_.T @ S_"),
    ("2c", "AB", "(A.T @ B).T @ A.T @ B", "S_ = A.T @ B; _ = S_.T @ S_"),
    ("2d", "ABy", "A.T @ B @ A.T @ B @ y", "A.T @ (B @ (A.T @ (B @ y)))"),
    ("3a", "Hx", "H.T @ H @ x", "H.T @ (H @ x)"),
    ("3b", "Hy", "y.T @ H.T @ H", "(y.T @ H.T) @ H"),
    ("3c", "Hxy", "H.T @ y @ x.T @ H", "(H.T @ y) @ (x.T @ H)"),
    ("4a", "ABC", "A @ B + A @ C", "A @ (B + C)"),
    ("4b", "AHx", "(A - H.T @ H) @ x", "A @ x - H.T @ (H @ x)"),
    ("4c", "AB", "B.T @ A @ A.T @ B", "S_ = A.T @ B; _ = S_.T @ S_"),
    (
        "5a",
        "ABxyz",
        "[A @ B + v @ v.T for v in (x, y, z)][-1]",
        "S_ = A @ B; _ = [S_ + v @ v.T for v in (x, y, z)][-1]",
    ),
    ("5b", "AB", "(A + B)[2, 2]", "A[2, 2] + B[2, 2]"),
    ("5c", "AB", "(A @ B)[2, 2]", "A[2] @ B[:, 2]"),
]
LAMP = [
    ("syr2k", "AB", "A @ B.T + B @ A.T", "S_ = A @ B.T; _ = S_ + S_.T"),
    (
        "gemm-update",
        "ABC",
        "0.5 * (A @ B) + 2.0 * C",
        "blas.sgemm(0.5, B.T, A.T, 2.0, C.T).T",
    ),
    ("inverse-times", "GB", "inv(G) @ B", "lapack.sgesv(G, B)[2]"),
    ("inverse-times-vector", "GB", "inv(G) @ B[:, 0]", "lapack.sgesv(G, B[:, 0])[2]"),
    ("inverse-from-the-right", "GB", "B @ inv(G)", "lapack.sgesv(G.T, B.T)[2].T"),
    ("chain-left", "PQR", "P @ Q @ P @ Q", "S_ = P @ Q; _ = S_ @ S_"),
    ("chain-right", "ABQy", "A @ B @ Q @ Q.T @ y", "A @ (B @ (Q @ (Q.T @ y)))"),
    ("chain-mixed", "AQPB", "Q @ P @ A @ Q", "Q @ ((P @ A) @ Q)"),
    ("chain-outer", "Axy", "A @ x @ y.T @ A", "(A @ x) @ (y.T @ A)"),
    ("solve-positive", "SB", "inv(S) @ B", "lapack.sposv(S.T, B)[1]"),
    ("solve-triangular", "LB", "inv(L) @ B", "blas.strsm(1.0, L.T, B.T, side=1).T"),
    ("solve-diagonal", "DB", "inv(D) @ B", "B / d[:, None]"),
    (
        "solve-block-diagonal",
        "KB",
        "inv(K) @ B",
        "i = n // 2; _ = np.concatenate([lapack.sgesv(M, B[:i])[2], lapack.sgesv(N, B[i:])[2]])",
    ),
    ("column", "AB", "(A @ B)[:, 2]", "A @ B[:, 2]"),
    ("row", "AB", "(A @ B)[2]", "A[2] @ B"),
    ("diagonal", "AB", "np.diagonal(A @ B)", "np.einsum('ij,ji->i', A, B)"),
    ("trace", "AB", "np.trace(A @ B)", "np.einsum('ij,ji->', A, B)"),
]


class Turn:
    """Called: the first element of each array becomes the next larger number, never one it was."""

    def __init__(self, arrays):
        self.words = [a.reshape(-1)[:1].view(np.int32) for a in arrays]

    def __call__(self):
        for w in self.words:
            w += 1


def assigned(code):
    return code if "_ = " in code else f"_ = {code}"


def jitted(written, names):
    """A function of jax's of the operands, compiled, and the operands; None without jax."""
    jax, jnp = peer("jax"), peer("jax.numpy")
    if not jax or not jnp:
        return None, {}
    inside = {"inv": jnp.linalg.inv, "np": jnp}
    f = jax.jit(eval(f"lambda {', '.join(names)}: {written}", inside))
    return f, {k: jnp.asarray(v) for k, v in names.items()}


def build(letters, written, best):
    p = pool()
    kinds = {k: KINDS[k] for k in letters if k in KINDS}
    dense = {k: kinds[k][2](p) if k in kinds else p[k] for k in letters}
    wide = {k: v.astype(np.float64) for k, v in dense.items()}
    expected = eval(written, {"np": np, "inv": np.linalg.inv, **wide})
    case = Case("", "", np.asarray(expected), 3e-4)
    read = dict.fromkeys("".join(kinds[k][0] if k in kinds else k for k in letters))
    turn = Turn([p[k] for k in read])

    def add(role, name, code, names):
        case.add(role, name, f"turn(); {assigned(code)}", turn=turn, **names)

    ours = {k: kinds[k][1](p) if k in kinds else pl.lazy(p[k]) for k in letters}
    add("pylinop", "pylinop, as written", f"np.asarray({written})", {"inv": pl.inv, **ours})
    if "T" in kinds:
        plain = {**ours, "T": pl.lazy(p["T"])}
        add("pylinop", "pylinop, T a plain array", f"np.asarray({written})", plain)
    if peer("scipy"):
        la = peer("scipy.linalg")
        hand = {**p, "blas": la.blas, "lapack": la.lapack, "n": n}
        add("floor", "best form by hand", best, hand)
    add("peer", "NumPy, as written", written, {"inv": np.linalg.inv, **dense})
    if peer("torch") and "np." not in written:
        torch = peer("torch")
        tensors = {k: torch.from_numpy(v) for k, v in dense.items()}
        add("peer", "torch, as written", written, {"inv": torch.linalg.inv, **tensors})
    f, there = jitted(written, dense)
    if f:
        call = f"f({', '.join(there)}).block_until_ready()"
        add("peer", "jax.jit, as written", call, {"f": f, **there})
    return case.goal(
        "pylinop, as written", "best form by hand", 1.3, f"{written}", "1.3 x the best form"
    )


def laab():
    for title, *row in LAAB:
        yield f"laab/{title}", functools.partial(build, *row)
    for title, *row in LAMP:
        yield f"lamp/{title}", functools.partial(build, *row)


MAKERS = [laab]
