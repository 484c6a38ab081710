"""What is singular by how it is written raises LinAlgError, whoever solves with it."""

import numpy as np
import pytest

import pylinop as pl

L = {
    "neumann": lambda: pl.Laplacian((3, 4)),
    "periodic": lambda: pl.Laplacian((3, 4), "periodic"),
    "one axis": lambda: pl.Laplacian(12),
    "difference": lambda: pl.FiniteDifference(12, boundary="periodic"),
    "multiple": lambda: -2.5 * pl.Laplacian((3, 4)),
    "view": lambda: pl.FiniteDifference(12, boundary="periodic").T,
    "power": lambda: pl.Laplacian((3, 4)) ** 3,
    "product": lambda: pl.Diag(np.arange(1.0, 13)) @ pl.Laplacian((3, 4)),
    "product, left": lambda: pl.Laplacian((3, 4)) @ pl.Diag(np.arange(1.0, 13)),
    "sum": lambda: pl.Laplacian((3, 4)) + 3 * pl.Laplacian((3, 4), "periodic"),
    "kron": lambda: pl.Kron(pl.Laplacian(3), np.eye(4) * 2),
    "kronsum": lambda: pl.KronSum(pl.Laplacian(3), pl.Laplacian(4)),
    "blockdiag": lambda: pl.BlockDiag(np.eye(5), pl.Laplacian(7)),
    "offdiag": lambda: pl.OffDiag(np.ones(11), 1) if hasattr(pl, "OffDiag") else pl.Zeros((12, 12)),
    "full": lambda: pl.Full((12, 12), 2.0),
    "lowrank": lambda: pl.LowRank(np.ones((12, 2))),
    "diag": lambda: pl.Diag(np.r_[0.0, np.ones(11)]),
    "circulant": lambda: pl.Circulant(np.r_[1.0, -1, np.zeros(10)]),
    "triangular": lambda: pl.Triangular(np.tril(np.ones((12, 12)), -1)),
    "congruence": lambda: pl.Diag(np.ones(12)) @ pl.Full((12, 12), 1.0) @ pl.Diag(np.ones(12)),
}
ASKED = {
    "solve": lambda a: pl.solve(a, np.arange(12.0)),
    "solve, columns": lambda a: pl.solve(a, np.eye(12)),
    "inv @": lambda a: pl.inv(a) @ np.arange(12.0),
    "inv, adjoint": lambda a: pl.inv(a).H @ np.arange(12.0),
    "inv": lambda a: pl.inv(a).toarray(),
    "diagonal": lambda a: pl.inv(a).diagonal(),
    "trace": lambda a: pl.trace(pl.inv(a)),
    "quad": lambda a: pl.inv_quad_logdet(a, np.arange(12.0)),
    "lazy": lambda a: np.asarray(pl.lazy(np.eye(12)) @ pl.inv(a)),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", L)
def test_singular_is_an_error(kind, asked):
    with pytest.raises(np.linalg.LinAlgError):
        ASKED[asked](L[kind]())


@pytest.mark.parametrize("kind", L)
def test_its_determinant_is_zero(kind):
    assert pl.det(L[kind]()) == 0
    assert pl.logdet(L[kind]()) == -np.inf


def test_a_large_grid():
    for boundary in ("neumann", "periodic"):
        with pytest.raises(np.linalg.LinAlgError, match="1599, of 1600 rows"):
            pl.solve(pl.Laplacian((40, 40), boundary), np.ones(1600))


@pytest.mark.parametrize(
    "regular",
    [
        lambda: pl.Laplacian((3, 4), "dirichlet"),
        lambda: pl.Laplacian((3, 4)) - 0.5 * pl.Identity(12),
        lambda: pl.Laplacian((3, 4)) + pl.Diag(np.r_[-1.0, np.zeros(11)]),
        lambda: pl.KronSum(pl.Laplacian(3), -np.eye(4)),
        lambda: pl.FiniteDifference(12),
        lambda: pl.FiniteDifference(12, 0, boundary="periodic"),
        lambda: pl.Laplacian((3, 4)) ** 0,
    ],
)
def test_what_only_looks_like_it_is_solved(regular):
    a = regular()
    if a.shape[0] != a.shape[1]:
        return
    x = np.arange(12.0)
    np.testing.assert_allclose(pl.solve(a, a @ x), x, atol=1e-9)
