"""What the core knows of drawn expressions of two or three operators, complex ones that are not
Hermitian among them, against the dense form: a wrong yes or no is a fault."""

import hermitian
import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl

KINDS = [kind for kind in ref.LEAVES if kind != "MatVec"]
REFUSED = (ValueError, NotImplementedError, np.linalg.LinAlgError)  # shapes, batches, no inverse


def near(a, b, size):
    return np.abs(a - b).max(initial=0) <= 1e-9 * size


def is_hermitian(a, size):
    return near(a, a.conj().T, size)


HOLDS = {
    "hermitian": is_hermitian,
    "hermitian as written": is_hermitian,
    "semidefinite": lambda a, size: (
        is_hermitian(a, size) and np.linalg.eigvalsh(a).min(initial=0) >= -1e-9 * size
    ),
    "unitary": lambda a, size: near(a.conj().T @ a, np.eye(len(a)), 1),
    "regular": lambda a, size: np.linalg.svd(a, compute_uv=False).min(initial=size) > 1e-13 * size,
    "real": lambda a, size: near(a.imag, 0, size),
    "diagonal": lambda a, size: near(a, np.diag(np.diag(a)), size),
}


def drawn_leaf(rng, n, dtype):
    """Of all kinds, Hermitian ones too; assumed definite, symmetric or unitary ones."""
    while True:
        a = values(rng, (n, n), dtype)
        pick = rng.integers(9)
        if pick == 0:
            how = str(rng.choice(["pos", "her"]))
            return pl.Dense(a @ a.conj().T + np.eye(n), how)
        if pick == 1:
            return pl.Dense(np.linalg.qr(a)[0], "orthogonal")
        if pick == 2:
            return pl.Dense(a + a.T, "sym")
        if pick < 5:
            op = hermitian.KINDS[str(rng.choice(list(hermitian.KINDS)))](rng, dtype)
            if op.shape == (n, n):
                return op
            continue
        own = dtype if rng.integers(3) else "float64"
        batch = () if rng.integers(5) else (2,)
        d = leaf(str(rng.choice(KINDS)), rng, n, n, own, batch, invertible=bool(rng.integers(2)))
        if d is not None:
            return ref.build(d)


def drawn(rng, n, dtype, depth):
    if not depth:
        return drawn_leaf(rng, n, dtype)
    A, B = (drawn(rng, n, dtype, int(rng.integers(depth))) for _ in range(2))
    c = complex(*rng.standard_normal(2)) if dtype[0] == "c" and rng.integers(2) else -1.5
    small = drawn_leaf(rng, int(rng.integers(1, 4)), dtype)
    U, V = (values(rng, (n, 2), dtype) for _ in range(2))
    ways = [
        lambda: A + B, lambda: A @ B, lambda: A.H @ A, lambda: A @ A.T, lambda: A.T @ A,
        lambda: A + A.H, lambda: A + A.T, lambda: A - A.H, lambda: c * A, lambda: A.conj(),
        lambda: A.T, lambda: A @ B @ A.H, lambda: A.T @ B @ A, lambda: A + c * pl.Identity(n),
        lambda: A**2, lambda: A**3, lambda: pl.inv(A), lambda: pl.Congruence(A, B),
        lambda: pl.HadamardProduct(A, B), lambda: pl.LowRankUpdate(A, U),
        lambda: pl.LowRankUpdate(A, U, V), lambda: A @ A.conj(), lambda: A[1:, 1:],
        lambda: pl.Root(A), lambda: pl.inv(A).H @ B @ pl.inv(A), lambda: pl.Kron(A, small),
        lambda: pl.BlockDiag(A, small), lambda: pl.KronSum(A, small), lambda: pl.Kron(A, A.conj()),
        lambda: pl.Block([[A, U], [V.conj().T, np.eye(2)]]), lambda: pl.Eigen(A, np.arange(n)),
        lambda: pl.Block([[A, B], [B.H, A]]),
    ]  # fmt: skip
    return ways[rng.integers(len(ways))]()


def wrong(op):
    """What is said of an operator that does not hold; what is known to hold."""
    try:
        whole = op.toarray()
    except REFUSED:
        return [], 0
    if not whole.size or not np.isfinite(whole).all():
        return [], 0
    found, met = [], 0
    size = np.abs(whole).max()
    matrices = whole.reshape(-1, *whole.shape[-2:])
    for name, holds in HOLDS.items() if whole.shape[-1] == whole.shape[-2] else ():
        known = op._known(name)
        met += known is True
        if known is not None and known != all(holds(a, max(size, 1e-5)) for a in matrices):
            found.append(f"{name}: {known}")
    below, above = op._known("band")
    for a in matrices:
        outside = np.abs(np.tril(a, -below - 1)) + np.abs(np.triu(a, above + 1))
        if outside.max() > 1e-12 * max(size, 1e-5):
            found.append(f"a band of {below} and {above}")
        if op._known("rank") < np.linalg.matrix_rank(a):
            found.append(f"of rank {op._known('rank')}")
    return found, met


@pytest.mark.no_verify
@pytest.mark.sweep(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("seed", range(10))
def test_what_is_known_of_drawn_expressions(seed, part, dtype):
    rng = np.random.default_rng([21, seed, part])
    met = 0
    for _ in range(120):
        n = int(rng.choice([1, 2, 3, 4, 6]))
        try:
            op = drawn(rng, n, dtype, int(rng.choice([0, 1, 1, 2, 2, 3])))
        except REFUSED:
            continue
        found, holds = wrong(op)
        assert not found, f"{op!r} is said to be {found}"
        met += holds
    assert met > 40
