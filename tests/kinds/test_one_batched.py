"""A batch in one parameter, the others shared: each element is its own matrix."""

import numpy as np
import pytest

import pylinop as pl

N = 4


KINDS = {
    "Tridiagonal": (pl.Tridiagonal, ((N - 1,), (N,), (N - 1,)), 1),
    "Toeplitz": (pl.Toeplitz, ((N,), (N,)), None),
    "LowRank": (
        lambda u, v, c: pl.Diag(np.full(N, 7.0)) + pl.LowRank(u, v, C=c),
        ((N, 2), (N, 2), (2, 2)),
        None,
    ),
    "LowRankUpdate": (lambda d, u, v: pl.Diag(d) + pl.LowRank(u, v), ((N,), (N, 2), (N, 2)), 0),
    "Kron": (pl.Kron, ((2, 2), (2, 2)), None),
    "KronSum": (pl.KronSum, ((2, 2), (2, 2)), None),
    "BlockDiag": (pl.BlockDiag, ((2, 2), (2, 2)), None),
    "product": (lambda a, b: pl.Diag(a) @ pl.Dense(b), ((N,), (N, N)), 0),
    "sum": (lambda a, b: pl.Diag(a) + pl.Dense(b), ((N,), (N, N)), 0),
}


def arrays(name, which, rng):
    _, shapes, heavy = KINDS[name]
    out = []
    for i, shape in enumerate(shapes):
        a = rng.normal(size=((2, *shape) if i == which else shape))
        if heavy is None and len(shape) == 2 and shape[0] == shape[1]:
            a = a + 3 * np.eye(shape[0])
        out.append(a + 5 if i == heavy else a)
    if name == "Toeplitz":
        out[0][..., 0] = 5
        out[1][..., 0] = 5
    return out


def cases():
    return [(name, which) for name, kind in KINDS.items() for which in range(len(kind[1]))]


@pytest.mark.parametrize(("name", "which"), cases())
@pytest.mark.parametrize("columns", [1, 3])
def test_each_element_is_its_own_matrix(name, which, columns, rng):
    make = KINDS[name][0]
    given = arrays(name, which, rng)
    a = make(*given)
    each = [make(*(g[i] if j == which else g for j, g in enumerate(given))) for i in (0, 1)]
    dense = np.stack([e.toarray() for e in each])
    assert np.allclose(a.toarray(), dense, rtol=1e-13, atol=1e-13)
    for b in (rng.normal(size=(N, columns)), rng.normal(size=(2, N, columns))):
        rows = b if b.ndim == 3 else np.stack([b, b])
        assert np.allclose(a @ b, dense @ rows, rtol=1e-12, atol=1e-12)
        assert np.allclose(pl.solve(a, b), np.linalg.solve(dense, rows), rtol=1e-10, atol=1e-12)
    assert np.allclose(a.diagonal(), np.diagonal(dense, axis1=-2, axis2=-1))
    assert np.allclose(pl.slogdet(a)[1], np.linalg.slogdet(dense)[1])
