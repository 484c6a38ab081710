"""explain() before a call names what explaining() sees run: each row, on each operand; or says
which numbers decide, and what runs where they decide otherwise."""

from collections import Counter

import numpy as np
import pytest
import ref
import scipy.sparse as sp
from samples import leaf

import pylinop as pl
from pylinop._api import explain_functions
from pylinop._structured.rows import QUESTIONS

FUNCTIONS = {name: f for name, (f, _) in explain_functions.FUNCTIONS.items()}
FUNCTIONS |= {"eigh": pl.eigh, "eigvalsh": pl.eigvalsh}
REFUSED = (np.linalg.LinAlgError, ValueError, NotImplementedError, ImportError)
LABELS = {f"{name.partition(',')[0]}-dense" for name in QUESTIONS} | {"lstsq-within-band"}
LABELS |= {row["name"] for row in pl.rules() if row["phase"] == "structure"}


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


SPARSE = sp.random_array((500, 500), density=0.003, rng=np.random.default_rng(1), format="csr")
SPARSE = SPARSE + SPARSE.T + 9 * sp.eye_array(500)
LAST = pl.Diag(np.linspace(1, 2, 12))

MADE = {
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
    "no rows": lambda: pl.Kron(np.ones((0, 0)), np.eye(2)),
}  # fmt: skip
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


def rows(*explanations):
    """Rows and dense forms of the functions, with their operands, each as often as it ran."""
    steps = [step for e in explanations for step in e.steps]
    return Counter(
        f"{step['name']} of {step['reads'][0]}" for step in steps if step["name"] in LABELS
    )


@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_said_runs(name):
    alike, sure, wrong = 0, 0, []
    for kind in MADE:
        op = built(kind)
        if op is None:
            continue
        args = arguments(name, op)
        pl._core._clear_store()  # kinds without arrays are the same ones again
        try:
            said = op.explain(name, *args)
            with pl.explaining() as e:
                FUNCTIONS[name](built(kind), *args)
        except REFUSED:
            continue
        before, after = rows(said), rows(*e.plans)
        otherwise = " ".join(other["text"] for other in said.alternatives)
        told = all(row in otherwise for row in after - before)
        told = told and (not before - after or "where" in otherwise)
        alike, sure = alike + told, sure + (before == after)
        if not told:
            wrong.append(f"{kind}: said {dict(before - after)}, ran {dict(after - before)}")
    assert not wrong, "\n".join(wrong)
    assert alike >= 20 and sure >= 0.7 * alike  # not by naming everything


def test_both_ways_are_priced():
    """Which of two ways is taken, only numbers say: both have a price, and the reason is told."""
    A = pl.Kron(pl.Dense(array(1, 9, 9)), pl.Dense(definite(2, 8)))
    said = A.explain("eigh")
    (other,) = [a for a in said.alternatives if "eigh-dense of Kron (72, 72)" in a["text"]]
    assert "where the guard hermitian does not hold" in other["text"]
    assert other["flops"] >= 9 * 72**3 > said.flops > 0 and other["seconds"] > said.seconds
    assert "instead" in str(said)
    assert not pl.Kron(pl.Diag(np.ones(3)), pl.Identity(2)).explain("eigh").alternatives
