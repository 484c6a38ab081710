"""Eigenvectors, singular vectors and functions of matrices on tensors, with their derivatives."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck

import pylinop.torch as pt


@pytest.fixture
def positive():
    g = torch.Generator().manual_seed(3)
    a = torch.randn(5, 5, dtype=torch.float64, generator=g)
    return (a @ a.mT + torch.eye(5, dtype=torch.float64)).requires_grad_()


def even(a):
    return (a + a.mT) / 2


W = torch.linspace(-1, 2, 5, dtype=torch.float64)

FUNCTIONS = {
    "eigenvalues": lambda a: pt.eigh(pt.Dense(even(a))).eigenvalues,
    "projections": lambda a: pt.eigh(pt.Dense(even(a))).eigenvectors[:, :2].square(),
    "singular-values": lambda a: pt.svd(a[:3]).S,
    "put-together": lambda a: (pt.svd(a[:, :3]).U * pt.svd(a[:, :3]).S ** 2) @ pt.svd(a[:, :3]).Vh,
    "exponential": lambda a: pt.expm(pt.Dense(a * 0.1)) @ W,
    "root": lambda a: pt.sqrtm(pt.Dense(even(a), "her")) @ W,
    "logarithm": lambda a: pt.logm(pt.Dense(even(a), "her")).toarray(),
    "of-a-formula": lambda a: pt.eigh(pt.Diag(a[0]) + pt.LowRank(a[:, :2])).eigenvalues,
    "of-an-operator": lambda a: pt.logdet(pt.expm(pt.Diag(a[0]))),
    "multiplied": lambda a: (pt.sqrtm(pt.Dense(even(a), "her")) @ pt.Diag(a[0])) @ W,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, positive):
    assert gradcheck(FUNCTIONS[name], positive)


@pytest.mark.parametrize("name", ["eigenvalues", "singular-values", "exponential"])
def test_second_derivatives(name, positive):
    assert gradgradcheck(FUNCTIONS[name], positive)


def test_values(positive):
    a = positive.detach()
    A = pt.Dense(a, "her")
    w, v = pt.eigh(A)
    torch.testing.assert_close((v * w) @ v.mT, a)
    torch.testing.assert_close(pt.expm(A * 0.1).toarray(), torch.linalg.matrix_exp(a * 0.1))
    root = pt.sqrtm(A)
    torch.testing.assert_close(root @ (root @ W), a @ W)
    torch.testing.assert_close(pt.expm(pt.logm(A)) @ W, a @ W)
    assert A.mT.shape == (5, 5)


def test_functions_of_torch(positive):
    a = positive.detach()
    A = pt.Dense(a, "her")
    torch.testing.assert_close(torch.linalg.eigh(A)[0], torch.linalg.eigh(a)[0])
    torch.testing.assert_close(torch.linalg.matrix_exp(A * 0.1) @ W, torch.matrix_exp(a * 0.1) @ W)
