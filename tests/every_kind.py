"""Operators of every kind and composites of them, on which rows of the functions on structure act,
and arguments of these functions: what tests walk over."""

import hermitian
import numpy as np
import ref
import scipy.sparse as sp
from samples import leaf

import pylinop as pl
from pylinop._api import explain_functions

FUNCTIONS = {name: f for name, (f, _) in explain_functions.FUNCTIONS.items()}
FUNCTIONS |= {"eigh": pl.eigh, "eigvalsh": pl.eigvalsh}
NORMS = ("fro", 2, "nuc", 1, -2, np.inf)


def array(seed, *shape, dtype=float):
    a = np.random.default_rng(seed).standard_normal((2, *shape))
    return a[0] + 1j * a[1] if dtype is complex else a[0]


def definite(seed, n, dtype=float):
    a = array(seed, n, n, dtype=dtype)
    return a @ a.conj().T + n * np.eye(n)


def band(seed, n, w):
    ab = 0.1 * array(seed, 2 * w + 1, n)
    ab[w] = 4
    for k in range(1, w + 1):  # symmetric
        ab[w + k, : n - k] = ab[w - k, k:]
    return pl.Banded((w, w), ab)


def circulant_of_blocks(dtype, hermitian):
    a = [definite(1, 3, dtype), *(0.2 * definite(k, 3, dtype) for k in (2, 3))]
    blocks = [pl.Dense(x) for x in (a[:2] + [a[1].conj().T] if hermitian else a)]
    return pl.Block([[blocks[(i - j) % 3] for j in range(3)] for i in range(3)])


def bordered(n, k):
    side = array(1, n, k)
    return pl.Block([[pl.Diag(np.linspace(5, 9, n)), side], [side.T, 10 * n * np.eye(k)]])


SPARSE = sp.random_array((500, 500), density=0.003, rng=np.random.default_rng(1), format="csr")
SPARSE = SPARSE + SPARSE.T + 9 * sp.eye_array(500)
LAST = pl.Diag(np.linspace(1, 2, 12))

MADE = {
    "LowRank in a shift": lambda: (
        pl.BlockDiag(pl.LowRank(array(1, 5, 2)), definite(1, 3)) + pl.Identity(8)
    ),
    "Full in a shift": lambda: pl.BlockDiag(pl.Full((3, 3), 0.5), definite(1, 3)) + pl.Identity(6),
    "Zeros in a shift": lambda: pl.BlockDiag(pl.Zeros((2, 2)), definite(1, 3)) + pl.Identity(5),
    "Dense": lambda: pl.Dense(definite(1, 12)),
    "Dense pos": lambda: pl.Dense(definite(1, 12), "pos"),
    "Dense tall": lambda: pl.Dense(array(1, 14, 9)),
    "stack": lambda: pl.Dense(np.stack([definite(1, 7), definite(2, 7)])),
    "Kron": lambda: pl.Kron(definite(1, 4), definite(2, 5)),
    "Kron complex": lambda: pl.Kron(definite(1, 4, complex), definite(2, 3, complex)),
    "Kron not Hermitian": lambda: pl.Kron(array(1, 4, 4), array(2, 5, 5)),
    "Kron tall": lambda: pl.Kron(array(1, 4, 2), array(2, 5, 3)),
    "Kron tall and wide": lambda: pl.Kron(array(1, 4, 2), array(2, 2, 4)),
    "Kron beside identities": lambda: pl.Kron(pl.Identity(3), array(2, 5, 5), 2 * pl.Identity(2)),
    "Kron of Grams": lambda: pl.Kron(
        pl.Dense(array(1, 9, 4)).T @ pl.Dense(array(1, 9, 4)), definite(2, 3)
    ),
    "-Kron": lambda: -1.0 * pl.Kron(definite(1, 4), definite(2, 5)),
    "Kron.T": lambda: pl.Kron(definite(1, 4), array(2, 5, 5)).T,
    "Kron + c I": lambda: pl.Kron(definite(1, 4), definite(2, 3)) + 0.5 * pl.Identity(12),
    "inv(Kron)": lambda: pl.inv(pl.Kron(definite(1, 4), definite(2, 3))),
    "KronSum": lambda: pl.KronSum(definite(1, 4), definite(2, 3)),
    "KronSum + c I": lambda: pl.KronSum(array(1, 3, 3), definite(2, 3)) + pl.Identity(9),
    "BlockDiag": lambda: pl.BlockDiag(definite(1, 4), 3 * pl.Identity(2), band(3, 8, 1)),
    "BlockDiag of tall and wide": lambda: pl.BlockDiag(array(1, 4, 2), array(2, 2, 4)),
    "Block": lambda: pl.Block([[LAST, array(2, 12, 2)], [array(2, 12, 2).T, definite(3, 2)]]),
    "Circulant": lambda: pl.Circulant([4.0, 1.0, 0.5, 0.0, 0.5, 1.0]),
    "Circulant complex": lambda: pl.Circulant(array(1, 6, dtype=complex)),
    "Toeplitz": lambda: pl.Toeplitz(0.5 ** np.arange(9)),
    "Toeplitz not Hermitian": lambda: pl.Toeplitz(array(1, 9), array(2, 9)),
    "Toeplitz + c I": lambda: pl.Toeplitz(0.5 ** np.arange(9)) + pl.Identity(9),
    "Toeplitz + Diag": lambda: pl.Toeplitz(0.5 ** np.arange(12)) + LAST,
    "Tridiagonal": lambda: pl.Tridiagonal(np.ones(9), np.full(10, 4.0), np.ones(9)),
    "Tridiagonal, not definite": lambda: pl.Tridiagonal(np.ones(9), np.ones(10), np.ones(9)),
    "Banded": lambda: band(1, 15, 3),
    "Banded.T": lambda: pl.Banded((2, 1), array(1, 4, 15)).T,
    "rows of a band": lambda: band(1, 15, 3)[2:12, 2:12],
    "Triangular": lambda: pl.Triangular(np.tril(definite(1, 9))),
    "Triangular.T": lambda: pl.Triangular(np.tril(definite(1, 9))).T,
    "LowRank": lambda: pl.LowRank(array(1, 12, 2)),
    "LowRank not Hermitian": lambda: pl.LowRank(array(1, 12, 2), array(2, 12, 2)),
    "LowRank C": lambda: pl.LowRank(array(1, 12, 2), None, array(3, 2, 2)),
    "c I + U U^T": lambda: pl.LowRankUpdate(2 * pl.Identity(12), array(1, 12, 1)),
    "c I + U V^T": lambda: pl.LowRankUpdate(2 * pl.Identity(12), array(1, 12, 1), array(2, 12, 1)),
    "Diag + U U^T": lambda: pl.LowRankUpdate(LAST, array(1, 12, 1)),
    "Sparse": lambda: pl.Sparse(SPARSE),
    "-Laplacian": lambda: -pl.Laplacian((4, 3), "dirichlet", np.float64),
    "Householder": lambda: pl.Householder(array(1, 7)),
    "Householder tau": lambda: pl.Householder(array(1, 7), tau=0.3),
    "Permutation": lambda: pl.Permutation([2, 0, 1, 4, 3]),
    "Selection": lambda: pl.Selection([2, 0, 2, 1], 4),
    "Eigen": lambda: pl.Eigen(pl.DFT(8, "ortho"), array(1, 8)),
    "Root": lambda: pl.Root(array(1, 9, 2)),
    "Root square": lambda: pl.Root(np.tril(definite(1, 5))),
    "Congruence": lambda: pl.Congruence(pl.DFT(6, "ortho"), definite(1, 6)),
    "QuasiSeparable": lambda: (
        pl.quasiseparable("matern32", np.linspace(0, 3, 20)) + 0.1 * pl.Identity(20)
    ),
    "BlockTridiagonal": lambda: pl.BlockTridiagonal(
        np.full((3, 2, 2), 0.1), np.tile(definite(1, 2), (4, 1, 1)), np.full((3, 2, 2), 0.1)
    ),
    "Hankel": lambda: pl.Hankel(array(1, 7), array(2, 7)),
    "A @ B": lambda: pl.Toeplitz(0.5 ** np.arange(12)) @ LAST,
    "Q A": lambda: pl.DFT(8, "ortho") @ pl.Dense(array(1, 8, 8)),
    "A**3": lambda: pl.Toeplitz(0.5 ** np.arange(9)) ** 3,
    "inv(Toeplitz)": lambda: pl.inv(pl.Toeplitz(0.5 ** np.arange(9))),
    "c A, c complex": lambda: (1 + 2j) * pl.Kron(definite(1, 3), definite(2, 3)),
    "A + c I, c complex": lambda: pl.Toeplitz(0.5 ** np.arange(9)) + 2j * pl.Identity(9),
    "c Toeplitz, c complex": lambda: (1 + 2j) * pl.Toeplitz(0.5 ** np.arange(9)),
    "inv(KronSum)": lambda: pl.inv(pl.KronSum(array(1, 3, 3), definite(2, 3))),
    "A**2": lambda: pl.KronSum(array(1, 3, 3), definite(2, 3)) ** 2,
    "Kron of unknowns": lambda: pl.Kron(
        pl.LowRank(array(1, 4, 2)) - 1.5 * pl.Identity(4), pl.inv(pl.Dense(definite(1, 3)))
    ),
    "conj of a triangle": lambda: pl.Triangular(np.tril(array(1, 6, 6, dtype=complex))).conj(),
    "one row": lambda: pl.LowRankUpdate(1.5 * pl.Identity(1), np.ones((1, 1))),
    "Householder of one row": lambda: pl.Householder(np.ones(1)),
    "norms within": lambda: pl.BlockDiag(
        pl.Householder(array(1, 5)), pl.Root(array(1, 4, 2)), pl.DFT(3).conj()
    ),
    "a closed Toeplitz": lambda: pl.Toeplitz(array(1, 6, dtype=complex)) + 2 * pl.Identity(6),
    "a closed Tridiagonal": lambda: (
        pl.Tridiagonal(np.ones(5), np.ones(6), np.ones(5)) + 0.5 * pl.Identity(6)
    ),
    "inv(DCT)": lambda: pl.inv(pl.DCT(5, 3)),
    "semidefinite terms": lambda: pl.LowRank(array(1, 6, 2)) + -0.1 * pl.Diag(np.ones(6)),
    "a form in a band": lambda: pl.KronSum(band(1, 6, 1), pl.Root(array(1, 3, 2))),
    "block circulant": lambda: circulant_of_blocks(float, True),
    "block circulant complex": lambda: circulant_of_blocks(complex, True),
    "block circulant, not Hermitian": lambda: circulant_of_blocks(float, False),
    "bordered": lambda: bordered(60, 2),
    "Triangular upper": lambda: pl.Triangular(np.triu(definite(1, 7)), lower=False),
    "X^H X": lambda: (lambda X: X.H @ X)(pl.Dense(array(1, 9, 5))),
    "2 Kron": lambda: 2.0 * pl.Kron(definite(1, 3), definite(2, 4)),
    "X X^H": lambda: (lambda X: X @ X.H)(pl.Dense(array(1, 9, 5, dtype=complex))),
    "conj of a Dense": lambda: pl.Dense(definite(1, 5, complex)).conj(),
    "no rows": lambda: pl.Kron(np.ones((0, 0)), np.eye(2)),
}  # fmt: skip
LARGE = {  # beyond sizes from which rows act: the functions that have such
    "arrowhead": (lambda: bordered(200, 1), ("eigh", "eigvalsh")),
    "Toeplitz of 720": (lambda: pl.Toeplitz(0.5 ** np.arange(720)), ("cholesky",)),
}
for _kind in ref.LEAVES:
    for _dtype in ("float64", "complex128"):
        MADE[f"{_kind} {_dtype}"] = lambda kind=_kind, dtype=_dtype: leaf(
            kind, np.random.default_rng(5), 6, 6, dtype
        )


def built(name):
    made = MADE[name]()
    return made if made is None or isinstance(made, pl.LinearOperator) else ref.build(made)


def arguments(name, op):
    if name in ("lstsq", "sqrt_inv_matmul"):
        return (np.ones(op.shape[-2]),)
    return {"fractional_matrix_power": (0.3,), "funm": (np.cos,)}.get(name, ())


def all_arguments(name, op):
    """Likewise, all that send a function another way."""
    if name == "matrix_norm":
        return [(ord,) for ord in NORMS]
    return [(), (1,), ("fro",), (-2,)] if name == "cond" else [arguments(name, op)]


def many():
    """(name, what makes the operator): of all kinds, Hermitian ones, rectangular ones, of one row,
    batches and singular ones, real and complex."""
    yield from ((name, lambda name=name: built(name)) for name in MADE)
    for dtype in ("float64", "complex128"):
        for name, make in hermitian.KINDS.items():
            yield (
                f"Hermitian {name} {dtype}",
                lambda f=make, t=dtype: f(np.random.default_rng(3), t),
            )
        for kind in ref.LEAVES:
            for m, n, batch, invertible in SHAPES:

                def make(how=(kind, m, n, dtype, batch), invertible=invertible):
                    kind, m, n, dtype, batch = how
                    rng = np.random.default_rng(6)
                    d = leaf(kind, rng, m, n, dtype, batch, invertible=invertible)
                    return None if d is None else ref.build(d)

                yield f"{kind} {(*batch, m, n)} {dtype} {'regular' * invertible}", make


SHAPES = [
    (m, n, batch, invertible)
    for m, n in ((6, 6), (6, 4), (3, 6), (1, 1))
    for batch in ((), (2,))
    for invertible in (False, True)
    if m == n or not invertible
]
