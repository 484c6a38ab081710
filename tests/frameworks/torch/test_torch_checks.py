"""Woodbury's formula on tensors elsewhere, where the matrix that is updated is nearly singular:
NaN, matrix by matrix of a batch, and never a number that is wrong; and what the test costs."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode

import pylinop as pl
import pylinop.torch as pt
from pylinop._programs import tapes
from pylinop.torch import values

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def in_place(monkeypatch):
    """Programs go to the tensors' own functions on the CPU too."""
    monkeypatch.setattr(tapes, "quick", lambda *args: None)
    monkeypatch.setattr(values, "is_elsewhere", lambda tensors: True)


def drawn(rng, dtype, batch, deepest):
    """(d, U, V, b): of some matrices a few of d are as small as 10^-deepest."""
    n, k, columns = int(rng.integers(4, 30)), int(rng.integers(1, 4)), int(rng.integers(1, 7))
    d = rng.uniform(0.5, 2, (*batch, n))
    for at in np.ndindex(batch):
        for _ in range(int(rng.integers(k + 2))):
            d[(*at, int(rng.integers(n)))] *= 10.0 ** -rng.uniform(0, deepest)
    wide = batch if rng.integers(2) else ()
    U = rng.standard_normal((*wide, n, k))
    V = U if rng.integers(2) else rng.standard_normal((*wide, n, k))
    b = rng.standard_normal((*(batch if rng.integers(2) else ()), n, columns))
    return [x.astype(dtype) for x in (d, U, V, b)]


def asked(d, U, V, b):
    """Solution, determinant, diagonal of the inverse."""
    d, U, V, b = (torch.from_numpy(x).to(DEVICE) for x in (d, U, V, b))
    A = pt.Diag(d) + pt.LowRank(U, V)
    sign, log = pt.slogdet(A)
    found = pt.solve(A, b), sign * torch.exp(log), pt.diagonal(pt.inv(A))
    return [x.cpu().numpy() for x in found]


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_no_matrix_of_a_batch_is_wrong(batch, dtype):
    rng, eps, nans, numbers = np.random.default_rng(31), float(np.finfo(dtype).eps), 0, 0
    for _ in range(48 // max(1, int(np.prod(batch)))):
        d, U, V, b = drawn(rng, dtype, batch, 20)
        found = asked(d, U, V, b)
        for at in np.ndindex(batch):
            one, u, v, c = (x[at] if x.ndim > m else x for x, m in ((d, 1), (U, 2), (V, 2), (b, 2)))
            dense = np.diag(one).astype("complex128") + u.astype("complex128") @ v.T
            cond = np.linalg.cond(dense)
            if cond * eps * len(one) > 1e-2:
                continue
            inverse = np.linalg.inv(dense)
            due = inverse @ c, np.linalg.det(dense), np.diag(inverse)
            more = np.linalg.norm(inverse) * np.array([np.linalg.norm(c), 0, 1])
            for whole, x, size in zip(found, due, more, strict=True):
                got = whole[at]
                if np.isnan(got).any():
                    nans += 1
                    continue
                numbers += 1
                bound = 100 * len(one) * eps * cond * (np.linalg.norm(x) + size)
                assert np.linalg.norm(got - x) <= bound
    assert nans > 20 and numbers > 20  # both were there to be found


def test_one_singular_matrix_leaves_the_others():
    d = np.array([[1.0, 2.0, 3.0], [1e-20, 2.0, 3.0], [2.0, 1.0, 5.0]])
    U, b = np.array([[1.0], [3.0], [-1.0]]), np.ones((3, 2))
    found = asked(d, U, U, b)
    for x in found:
        assert [bool(np.isnan(x[k]).any()) for k in range(3)] == [False, True, False]
    for k in (0, 2):
        np.testing.assert_allclose(found[0][k], np.linalg.solve(np.diag(d[k]) + U @ U.T, b))


class Calls(TorchDispatchMode):
    """Counts functions that compute something."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("check, most", [("cheap", 60), ("none", 36)])
def test_how_many_functions_a_likelihood_takes(check, most):
    """54 and 30; 84 and 49 before sums took products in."""
    rng = np.random.default_rng(32)
    d, U, y = 1 + rng.random(40), rng.standard_normal((40, 5)), rng.standard_normal(40)
    given = [torch.from_numpy(x).to(DEVICE) for x in (d, U, y)]
    with pl.config(check=check):
        for _ in range(4):  # from the third on a record is called
            with Calls() as calls:
                quad, log = pt.inv_quad_logdet(pt.Diag(given[0]) + pt.LowRank(given[1]), given[2])
    assert calls.count <= most
    dense = np.diag(d) + U @ U.T
    np.testing.assert_allclose(quad.cpu(), y @ np.linalg.solve(dense, y), rtol=1e-10)
    np.testing.assert_allclose(log.cpu(), np.linalg.slogdet(dense)[1], rtol=1e-10)


@pytest.mark.parametrize("d", [[-1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [np.nan, 1.0, 2.0]])
@pytest.mark.parametrize("swapped", [False, True])
def test_signs_of_determinants(d, swapped):
    """Also where a sign is that of NaN, which torch's own functions call 0."""
    d = np.array(d)
    A = np.array([[0.0, 2.0, 1.0], [1.0, 0.5, 0.0], [0.0, 0.0, 1.0]]) if swapped else np.diag(d)
    made = pt.Dense(torch.from_numpy(A).to(DEVICE))
    product = pt.Diag(torch.from_numpy(d).to(DEVICE)) @ made
    with np.errstate(all="ignore"):
        sign, log = np.linalg.slogdet(np.diag(d) @ A)
    found = pt.slogdet(product)
    np.testing.assert_allclose(float(found.logabsdet), log, rtol=1e-12)
    if np.isnan(log):
        assert np.isnan(float(found.sign))
    else:
        assert float(found.sign) == sign
    np.testing.assert_allclose(float(pt.det(product)), np.linalg.det(np.diag(d) @ A), atol=1e-12)
