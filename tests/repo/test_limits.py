"""docs/limits.md is true: what a row says happens today does, and what it says to do instead works.

A row whose limit has gone fails here, so that it leaves the page too."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import pylinop as pl
import pylinop.dask as pld

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
ROWS = {}
for line in PAGE.read_text(encoding="utf-8").splitlines():
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    if line.startswith("| ") and cells[0] != "you want":
        ROWS[cells[0]] = cells[1:]

RNG = np.random.default_rng(0)
A20 = RNG.standard_normal((20, 20))
H20 = A20 @ A20.T / 20 + np.eye(20)
LAG = np.abs(np.arange(-19, 20))
LEVELS = np.exp(-0.3 * (LAG[:, None] + LAG)) + 0.5 * (LAG[:, None] + LAG == 0)
CHECKS = {}


def check(*starts):
    """The test of the rows that begin so."""

    def add(function):
        CHECKS.update(dict.fromkeys(starts, function))
        return function

    return add


def steps(op, *args):
    return [step["name"] for step in op.explain(*args).steps]


def goes_dense(op):
    """Is it solved with by a factor of the dense form, and by nothing before that?"""
    names = steps(op, "solve", np.ones(op.shape[-1]))
    return {"getrf", "potrf"} & set(names) and "checked" not in names


def solves(op, **options):
    b = np.ones(op.shape[-1])
    x = pl.solve(op, b, **options)
    return np.linalg.norm(op @ x - b) <= 1e-9 * np.linalg.norm(b)


@check("`logdet` and `diagonal(inv(A))` by iteration")
def _():
    T = [pl.Toeplitz(c ** np.arange(n)) for c, n in ((0.5, 40), (0.6, 33))]
    A = pl.Kron(*T) + pl.Diag(np.linspace(1, 2, 1320))
    assert {"getrf", "potrf"} & set(steps(A, "logdet"))
    assert "are granted" in A.explain("solve", np.ones(1320))
    assert abs(pl.logdet(A, method="slq", rng=0).value / pl.logdet(A) - 1) <= 0.1


@check("third derivatives")
def _():
    first = lambda s: pl.grad(lambda s: np.sum(pl.Kernel("rbf", np.eye(3), length_scale=s)))(s)
    assert np.isfinite(first(0.5))

    def second(s):
        found = pl.gradients(np.sum(pl.Kernel("rbf", np.eye(3), length_scale=s)), s)
        return pl.gradients(found, s)

    with pytest.raises(NotImplementedError, match="third derivatives"):
        pl.grad(second)(0.5)
    t, h = 0.3, 1e-5
    A, dA = pl.Dense(H20 + t * np.eye(20)), pl.Diag(np.ones(20))
    at = [float(pl.logdet(H20 + (t + s) * np.eye(20))) for s in (-h, h)]
    np.testing.assert_allclose(pl.trace(pl.inv(A) @ dA), (at[1] - at[0]) / (2 * h), rtol=1e-6)
    b = np.ones(20)
    x = pl.solve(A, b)
    at = [b @ np.linalg.solve(H20 + (t + s) * np.eye(20), b) for s in (-h, h)]
    np.testing.assert_allclose(-(x @ (dA @ x)), (at[1] - at[0]) / (2 * h), rtol=1e-6)


@check("a few eigenpairs of each matrix of a batch")
def _():
    A = pl.Dense(np.stack([H20, 2 * H20]))
    for function in (pl.eigsh, pl.svds, lambda A, k: pl.eigh(A, k=k)):
        with pytest.raises(ValueError, match="batch|square|two-dim"):
            function(A, 2)
    found = [pl.eigsh(A[i], 2)[0] for i in range(A.shape[0])]
    np.testing.assert_allclose(found, pl.eigh(A).eigenvalues[:, -2:], rtol=1e-8)


@check("solves with `Kron + Diag`")
def _():
    A = pl.Kron(H20, H20) + pl.Diag(1 + RNG.random(400))
    assert goes_dense(A) and solves(A, method="cg", M="kronecker")
    A = pl.MultilevelToeplitz(LEVELS)
    assert goes_dense(A) and solves(A, method="cg", M="auto")


@check("a Cholesky factor of `Circulant`")
def _():
    T = pl.Toeplitz(0.5 ** np.arange(40))
    L = pl.LowRankUpdate(T + pl.Diag(np.arange(40.0)), np.ones((40, 1)))
    C = pl.Circulant(np.r_[4.0, 1.0, np.zeros(37), 1.0])
    for A in (L, C, pl.Block([[T, None], [None, T]])):
        assert type(pl.cholesky(A)) in (pl.Triangular, pl.Dense), A
    with pl.explaining() as e:
        pl.sample(T, rng=0)
    assert "potrf" not in [step["name"] for plan in e.plans for step in plan.steps]


@check("solves with a `Kernel`, but for Matern functions of points on a line")
def _():
    x = RNG.random((200, 2))
    A = pl.Kernel("rbf", x, length_scale=0.5) + 0.1 * pl.Identity(200)
    assert goes_dense(A) and solves(A, method="cg", M="auto")
    assert pl.preconditioner(A).proposal.kind == "pivoted_cholesky"


@check("solves with sums of `Kron`s")
def _():
    A = pl.Kron(H20, H20) + pl.Kron(H20 @ H20, np.diag(np.arange(1.0, 21))) + pl.Identity(400)
    with pl.explaining() as e:
        pl.solve(A, np.ones(400))
    assert "getrf" in {step["name"] for plan in e.plans for step in plan.steps if step["took"]}
    assert solves(A, method="cg", M="auto")


@check("a preconditioner of a matrix that is not Hermitian")
def _():
    S = sp.csc_array(sp.eye_array(20) * 25 + sp.csc_array(np.triu(A20)))
    with pytest.raises(pl.LinAlgError, match="not Hermitian"):
        pl.preconditioner(pl.Sparse(S), "ic")
    M = sla.LinearOperator(S.shape, sla.spilu(S).solve)
    assert solves(pl.Sparse(S), method="gmres", M=M)


@check("LU, QR or singular values of a `Sparse` matrix")
def _():
    S = pl.Sparse(sp.diags_array([4.0, 1.0, 1.0], offsets=[0, 40, -40], shape=(500, 500)))
    assert "SuperLU" in " ".join(steps(S, "solve", np.ones(500)))
    with pl.config(memory_limit=500 * 500):
        for function in (pl.lu, pl.qr, pl.svdvals):
            with pytest.raises(pl.MaterializationError):
                function(S)
    assert np.allclose(S @ pl.lstsq(S, np.ones(500), method="lsmr")[0], 1)
    assert pl.svds(S, 2)[1].shape == (2,)


@check("solves with a `Block` of three rows or more")
def _():
    K, D = pl.Kron(H20[:4, :4], H20[:5, :5]), pl.Diag(np.full(20, 0.1))
    A = pl.Block([[K, D, D], [D, K, D], [D, D, K]])
    assert goes_dense(A) and solves(A, method="gmres", M="block_jacobi")


@check("determinants and diagonals of inverses, and below about a thousand rows")
def _():
    n, T = 60, pl.Toeplitz(np.r_[4.0, 1 / np.arange(1, 60) ** 2])
    D, W = pl.Diag(np.linspace(1, 2, n)), pl.Toeplitz(np.r_[4.0, 1 / np.arange(1, 70) ** 2])
    S, K = pl.Selection(np.arange(5, 65), 70), pl.Kron(H20[:6, :6], H20[:10, :10])
    for A in (
        T + D,
        (W + pl.Diag(np.linspace(1, 2, 70)))[5:-5, 5:-5],
        pl.Circulant(np.r_[4.0, np.ones(n - 1) / n]) + D,
        T @ T.T + 0.5 * pl.Identity(n),
        D @ T @ D + 0.5 * pl.Identity(n),
        S @ W @ S.T + 0.5 * pl.Identity(n),
        pl.inv(T) + D,
        pl.inv(D + pl.LowRank(np.ones((n, 1)))) + D,
        K + D,
        pl.Block([[T, 0.1 * T], [0.1 * T, T]]),
        pl.inv(W)[5:-5, 5:-5],
    ):
        with pl.explaining() as e:
            pl.slogdet(A)
            pl.inv(A).diagonal()
        taken = {step["name"] for plan in e.plans for step in plan.steps if step["took"]}
        assert taken & {"potrf", "getrf", "sytrf"}


@check("solves with a `KronSum` of three")
def _():
    A = pl.KronSum(*[5 * np.eye(6) + A20[:6, :6]] * 3)
    with pl.explaining() as e:
        pl.solve(A, np.ones(216))
    assert "getrf" in {step["name"] for plan in e.plans for step in plan.steps if step["took"]}
    assert solves(A, method="gmres")


@check("solves with a product of `QuasiSeparable`")
def _():
    K = pl.quasiseparable("matern12", np.arange(60.0), length_scale=2.0)
    assert type(K @ K) is pl.Product and goes_dense(K[:50, :50] + pl.Identity(50))
    assert goes_dense(K @ K + pl.Identity(60))


@check("all eigenvectors of a wide band")
def _():
    B = pl.Banded((2, 2), np.ones((5, 40)))
    for A in (B, pl.Block([[B, B], [B, 2 * B]])):
        assert type(pl.eigh(A)[1]) is pl.Dense
    assert pl.eigh(B, k=6)[0].shape == (6,)


@check("functions (`expm`")
def _():
    assert type(pl.expm(pl.Toeplitz([1.0, 2.0], [1.0, 3.0]))) is pl.Dense
    np.testing.assert_allclose(
        pl.expm_multiply(pl.Dense(A20), np.ones(20)), pl.expm(A20) @ np.ones(20), rtol=1e-8
    )


@check("eigenvectors of `eigsh` and `svds` as operators")
def _():
    assert type(pl.eigsh(H20, 2)[1]) is np.ndarray and type(pl.svds(A20, 2)[0]) is np.ndarray


@check("`cgs`, `qmr`")
def _():
    for name in re.findall(r"`(\w+)`", "".join(key for key in ROWS if key.startswith("`cgs`"))):
        assert not hasattr(pl, name), name
    x, info = sla.cgs(pl.Dense(H20), np.ones(20), rtol=1e-10)
    assert info == 0
    assert solves(pl.Dense(H20), method="fgmres")


@check("`pl.lsqr` or `pl.lsmr` with several")
def _():
    for function in (pl.lsqr, pl.lsmr):
        with pytest.raises(ValueError):
            function(A20, np.ones((20, 2)))
    assert pl.lstsq(A20, np.ones((20, 2)), method="lsmr")[0].shape == (20, 2)


@check("the diagonal or trace of a product")
def _():
    T = pl.Toeplitz(0.5 ** np.arange(40))
    assert any(name.endswith("-dense") for name in steps(T @ T @ T, "diagonal"))
    e = pl.estimate_trace(T @ T, rng=0)
    assert e.interval[0] <= float(pl.trace(T @ T)) <= e.interval[1]
    assert pl.estimate_diagonal(T @ T, rng=0).value.shape == (40,)


@check("the diagonal or trace of the inverse")
def _():
    T, d = pl.Toeplitz(0.5 ** np.arange(120)), pl.Diag(np.linspace(1, 2, 120))
    stein = pl.Kron(A20 / 20, A20) + pl.Identity(400)
    for A in (pl.Hankel(0.5 ** np.arange(120), np.eye(1, 120)[0]), T + d, stein):
        assert {"getrf", "potrf", "eye"} & set(steps(pl.inv(A), "diagonal"))
    e = pl.estimate_trace(pl.inv(T + d), rng=0)
    assert e.interval[0] <= float(pl.trace(pl.inv(T + d))) <= e.interval[1]
    assert pl.estimate_diagonal(pl.inv(T + d), rng=0).value.shape == (120,)


@check("`pl.multiply(S, K)`")
def _():
    S, K = sp.random_array((40, 40), density=0.1, rng=0), pl.Toeplitz(0.5 ** np.arange(40))
    A = pl.multiply(pl.Sparse(S), K)
    assert any(name.endswith("-dense") for name in steps(A, "apply", np.ones(40)))
    np.testing.assert_allclose(pl.Sparse(A.tosparse()).toarray(), S.toarray() * K.toarray())


@check("NumPy's other functions")
def _():
    with pytest.warns(pl.MaterializationWarning):
        assert type(np.sin(pl.Dense(A20))) is np.ndarray


@check("assignment")
def _():
    a = np.eye(2)
    A = pl.Dense(a)
    with pytest.raises(TypeError, match="assignment"):
        A[0, 0] = 1
    a[0, 0] = 5
    assert A[0, 0] == 5


@check("structured, masked, datetime or object arrays")
def _():
    for a in (np.ma.ones((2, 2)), np.zeros((2, 2), "M8[s]"), np.ones((2, 2), object)):
        with pytest.raises(TypeError):
            pl.Dense(a)


@check("speed in float16")
def _():
    for dtype in (np.float16, np.longdouble, np.clongdouble):
        A = pl.Dense(np.eye(2, dtype=dtype))
        with pytest.raises(NotImplementedError):
            A.explain("apply", np.ones(2, dtype))
    A = pl.Dense(np.eye(2, dtype=np.longdouble)).astype(np.float64)
    assert A.dtype == np.float64 and pl.explain(A, "apply", np.ones(2)).steps


@check("more than 6 batch dimensions")
def _():
    assert pl.Dense(np.ones((1,) * 8)).ndim == 8
    with pytest.raises(ValueError, match="at most 6 of batch"):
        pl.Dense(np.ones((1,) * 9))


class Twice(pl.LinearOperator):
    def __init__(self):
        super().__init__(float, (4, 4))
        self.solved = 0

    def _matvec(self, x):
        return 2 * x

    def _rmatvec(self, x):
        return 2 * x

    def _solve(self, b):
        self.solved += 1
        return b / 2


@check("rules, plans and `explain()`")
def _():
    with pytest.raises(NotImplementedError):
        (Twice() @ pl.Identity(4)).explain("apply", np.ones(4))


@check("hooks (`_solve`")
def _():
    A = Twice()
    for whole in (A + pl.Identity(4), A.T, pl.Kron(A, A)):
        pl.solve(whole, np.ones(whole.shape[0]))
        assert not A.solved
    pl.solve(2 * A @ pl.Identity(4), np.ones(4))
    assert A.solved == 1


@check("the cheapest order")
def _():
    def flops(n):
        op = pl.Dense(np.ones((8, 2)))
        for i in range(1, n):
            op = op @ pl.Dense(np.ones((2, 8) if i % 2 else (8, 2)))
        return op.explain("dense").flops

    pair = 2 * 2 * 8 * 2 + 2 * 2 * 2 * 2  # of an inner product, and where it is taken in
    assert flops(24) - flops(20) <= 2 * pair
    assert flops(30) - flops(26) > 2 * pair


@check("`inv(A) @ A` to cancel")
def _():
    A, P = pl.Dense(H20), pl.Dense(H20, assume_a="pos")
    B, x = pl.Dense(A20), np.ones(20)
    assert "getrf" in steps(pl.inv(A) @ A @ B, "apply", x)
    assert "potrf" not in steps(pl.inv(P) @ P @ B, "apply", x)


@check("structure found in the numbers")
def _():
    t = np.diag(np.ones(9)) + np.diag(np.ones(8), 1)
    assert "getrf" in steps(pl.Dense(t), "solve", np.ones(9))
    assert "getrf" not in steps(pl.Dense(t, assume_a="upper triangular"), "solve", np.ones(9))


@check("functions of LazyArrays")
def _():
    X = pl.lazy(H20)
    for made in (pl.solve(X, np.ones(20)), pl.inv(X), pl.det(X), pl.logdet(X), pl.trace(X)):
        assert type(made) is pl.LazyArray
    for made in (*pl.slogdet(X), pl.matrix_norm(X), pl.eigvalsh(X), *np.linalg.eigh(X)):
        assert type(made) is pl.LazyArray
    for made in (pl.expm(X), pl.cholesky(X), *pl.eigh(X), pl.solve(X, np.ones(20), method="cg")):
        assert type(made) is pl.LazyArray
    for made in (*pl.lu(X), *pl.ldl(X), pl.sqrt_inv_matmul(X, np.ones(20))):
        assert type(made) is pl.LazyArray
    for made in (*pl.eig(X), pl.null_space(X), pl.orth(X), *pl.cg(X, np.ones(20))):
        assert type(made) is not pl.LazyArray


@check("`BlockOperator` with several")
def _():
    A = pld.BlockOperator([H20, H20])
    with pytest.raises(ValueError):
        pld.lsmr(A, np.ones((40, 2)))
    with pytest.raises(NotImplementedError):
        A.explain("apply", np.ones(20))


# Of other libraries, devices and systems, or of what a short test cannot see.
ELSEWHERE = (
    "arrays on a GPU",
    "fast `eigs`",
    "batches of sparse matrices",
    "mixed precision",
    "more threads in our own loops",
    "^C in the midst of LAPACK",
    "Windows, macOS",
)


def test_the_table_is_short():
    assert 20 <= len(ROWS) <= 40
    assert all(len(cells) == 2 and cells[0] for cells in ROWS.values())


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_true(row):
    starts = [start for start in (*CHECKS, *ELSEWHERE) if row.startswith(start)]
    assert len(starts) == 1, f"which check is that of {row!r}? {starts}"
    if starts[0] in CHECKS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pl.IllConditionedWarning)
            CHECKS[starts[0]]()


def test_no_check_is_left_over():
    for start in (*CHECKS, *ELSEWHERE):
        assert any(row.startswith(start) for row in ROWS), f"{start!r} is in no row"
