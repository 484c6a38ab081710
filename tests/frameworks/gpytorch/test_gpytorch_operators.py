"""linear_operator's own tests on pylinop's operators, and conversions both ways."""

import unittest

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("linear_operator")

import linear_operator.operators as theirs
from linear_operator.test.linear_operator_test_case import LinearOperatorTestCase

import pylinop.torch as pt
from pylinop.torch.linear_operator import as_linear_operator, from_linear_operator


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def definite(*shape):
    a = drawn(*shape)
    return a @ a.mT + shape[-1] * torch.eye(shape[-1], dtype=torch.float64)


class Own(LinearOperatorTestCase, unittest.TestCase):
    """Their test case, of an operator made of one tensor of float32. Conjugate gradients are never
    called; Lanczos is where it is asked for by name."""

    __test__ = False
    seed = 0
    should_test_sample = True
    should_call_cg = False
    should_call_lanczos = False
    should_call_lanczos_diagonalization = True

    def test_half(self):
        with self.assertRaisesRegex(TypeError, "float16"):
            self.create_linear_op().half().to_dense()

    def create_linear_op(self):
        return as_linear_operator(self.made(self.tensor().float().requires_grad_()))

    def evaluate_linear_op(self, linear_op):
        return self.written(linear_op._args[-1])

    def _test_solve(self, rhs, lhs=None, cholesky=False):
        """Gradients by a matrix of which nothing is assumed, as torch.linalg.solve's: theirs are
        symmetrized."""
        A = self.create_linear_op()
        dense = self.evaluate_linear_op(A)
        due = torch.linalg.solve(dense.expand(*rhs.shape[: max(rhs.ndim - 2, 0)], *A.shape), rhs)
        due = due if lhs is None else lhs @ due
        got = A.solve(rhs) if lhs is None else A.solve(rhs, lhs)
        self.assertAllClose(got, due, rtol=1e-4, atol=1e-5)
        g = torch.randn_like(due)
        pair = (torch.autograd.grad(x, A._args[-1], g, retain_graph=True)[0] for x in (got, due))
        self.assertAllClose(*pair, rtol=1e-3, atol=1e-4)


class TestDense(Own):
    __test__ = True

    def tensor(self):
        return definite(5, 5)

    def made(self, a):
        return pt.Dense(a)

    def written(self, a):
        return a


class TestDiagonal(Own):
    __test__ = True

    def tensor(self):
        return 1 + torch.rand(6, dtype=torch.float64)

    def made(self, d):
        return pt.Diag(d)

    def written(self, d):
        return torch.diag(d)


class TestKron(Own):
    """Of two matrices: kron(a, a) has pairs of equal eigenvalues, and the gradients that their test
    compares with, torch's through eigenvectors, are NaN where the two come out equal."""

    __test__ = True
    first = torch.tensor([[2.0, 0.5, 0.0], [0.5, 3.0, 0.25], [0.0, 0.25, 5.0]])

    def tensor(self):
        return definite(3, 3)

    def made(self, a):
        return pt.Kron(pt.Dense(self.first), pt.Dense(a)) + 2.0 * pt.Identity(9)

    def written(self, a):
        return torch.kron(self.first, a) + 2 * torch.eye(9)


class TestLowRank(Own):
    __test__ = True

    def tensor(self):
        return drawn(5, 2)

    def made(self, u):
        return pt.Diag(torch.arange(1.0, 6.0)) + pt.LowRank(u)

    def written(self, u):
        return torch.diag(torch.arange(1.0, 6.0)) + u @ u.mT


def them():
    c = torch.tensor([4.0, 1.0, 0.5], dtype=torch.float64)
    dense, root, d = definite(3, 3), drawn(3, 2), drawn(3).exp()
    lower = torch.linalg.cholesky(dense)
    t, D = theirs, theirs.DenseLinearOperator(dense)
    toeplitz, diag = t.ToeplitzLinearOperator(c), t.DiagLinearOperator(d)
    one = t.ConstantDiagLinearOperator(drawn(1).exp(), 9)
    kron = t.KroneckerProductLinearOperator(D, toeplitz)
    lower_op = t.TriangularLinearOperator(lower)
    upper_op = t.TriangularLinearOperator(lower.mT.contiguous(), upper=True)
    return {
        "dense": D,
        "batch": t.DenseLinearOperator(definite(2, 3, 3)),
        "diag": diag,
        "constant diag": t.ConstantDiagLinearOperator(drawn(1).exp(), 3),
        "batch of constants": t.ConstantDiagLinearOperator(drawn(2, 1).exp(), 3),
        "identity": t.IdentityLinearOperator(3, dtype=torch.float64),
        "zero": t.ZeroLinearOperator(3, 3, dtype=torch.float64),
        "toeplitz": toeplitz,
        "kron": kron,
        "kron diag": t.KroneckerProductDiagLinearOperator(diag, diag),
        "kron triangles": t.KroneckerProductTriangularLinearOperator(lower_op, lower_op),
        "kron plus diag": t.KroneckerProductAddedDiagLinearOperator(kron, one),
        "sum of krons": t.SumKroneckerLinearOperator(kron, kron),
        "sum": D + toeplitz,
        "added diag": t.AddedDiagLinearOperator(D, diag),
        "psd sum": t.PsdSumLinearOperator(D, toeplitz),
        "root": t.RootLinearOperator(drawn(3, 4)),
        "thin root": t.RootLinearOperator(root),
        "low rank root": t.LowRankRootLinearOperator(root),
        "low rank plus diag": t.LowRankRootAddedDiagLinearOperator(
            t.LowRankRootLinearOperator(root), diag
        ),
        "chol": t.CholLinearOperator(lower_op),
        "chol, upper": t.CholLinearOperator(upper_op, upper=True),
        "triangle": lower_op,
        "upper triangle": upper_op,
        "multiple": t.ConstantMulLinearOperator(D, torch.tensor(2.0, dtype=torch.float64)),
        "multiples": t.ConstantMulLinearOperator(
            t.DenseLinearOperator(definite(2, 3, 3)), drawn(2)
        ),
        "product": t.MatmulLinearOperator(D, t.DenseLinearOperator(root)),
        "elements": t.MulLinearOperator(t.RootLinearOperator(root), t.RootLinearOperator(root)),
        "blocks": t.BlockDiagLinearOperator(t.DenseLinearOperator(definite(2, 3, 3))),
        "masked": t.MaskedLinearOperator(
            D, torch.tensor([True, False, True]), torch.tensor([True, True, False])
        ),
        "permutation": t.PermutationLinearOperator(torch.tensor([2, 0, 1])).type(torch.float64),
    }


@pytest.mark.parametrize("name", list(them()))
def test_from_theirs(name):
    A = them()[name]
    K = from_linear_operator(A)
    due = A.to_dense().double()
    assert tuple(K.shape) == tuple(due.shape)
    x = drawn(*due.shape[:-2], due.shape[-1], 2)
    for got, dense in ((K.toarray(), due), (K @ x, due @ x)):
        assert torch.allclose(got.to(dense.dtype), dense, rtol=1e-12, atol=1e-12)
    back = as_linear_operator(K)
    assert (
        isinstance(back, theirs.LinearOperator)
        and from_linear_operator(back)._node.name == K._node.name
    )
    assert torch.allclose(back.to_dense().to(due.dtype), due, rtol=1e-12, atol=1e-12)


def test_structure_is_kept():
    names = {"toeplitz": "Toeplitz", "kron": "Kron", "thin root": "LowRank", "blocks": "BlockDiag"}
    for name, kind in names.items():
        assert from_linear_operator(them()[name])._node.name == kind


def test_gradients_flow_through_conversions():
    c = torch.tensor([4.0, 1.0, 0.5], dtype=torch.float64)
    y = drawn(3)

    def value(c, s):
        A = theirs.ToeplitzLinearOperator(c).add_diagonal(s)
        quad, logdet = as_linear_operator(from_linear_operator(A)).inv_quad_logdet(y[:, None], True)
        return quad + logdet

    s = torch.tensor([0.3], dtype=torch.float64)
    given = (c.requires_grad_(), s.requires_grad_())
    assert torch.autograd.gradcheck(value, given)
    assert torch.autograd.gradgradcheck(value, given)


@pytest.mark.parametrize("name", ["masked", "permutation", "dense"])
def test_to_another_dtype(name):
    """Indices among the tensors stay integers."""
    A = as_linear_operator(from_linear_operator(them()[name]))
    for B in (A.to(torch.float32), A.to(dtype=torch.float32, device="cpu"), A.float()):
        assert B.dtype == B.to_dense().dtype == torch.float32
        assert torch.allclose(B.to_dense().to(A.dtype), A.to_dense(), rtol=1e-6)


@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_inv_quad_logdet(columns, batch):
    a = definite(*batch, 4, 4)
    if columns is None and batch:
        return
    b = drawn(*batch, 4) if columns is None else drawn(*batch, 4, columns)
    A = as_linear_operator(pt.Dense(a, "pos"))
    column = b.unsqueeze(-1) if columns is None else b
    due = (column * torch.linalg.solve(a, column)).sum(-2)
    for reduced in (True, False):
        quad, logdet = A.inv_quad_logdet(b, True, reduce_inv_quad=reduced)
        want = due.sum(-1) if reduced or columns is None else due
        assert quad.shape == want.shape and torch.allclose(quad, want, rtol=1e-10)
        assert torch.allclose(logdet, torch.logdet(a), rtol=1e-10)
        assert torch.allclose(A.inv_quad(b, reduced), want, rtol=1e-10)
    assert torch.allclose(A.inv_quad_logdet(logdet=True)[1], torch.logdet(a), rtol=1e-10)
    assert np.allclose(A.inv_quad_logdet(b)[1], 0)


def test_wrong_use():
    base = theirs.InterpolatedLinearOperator(theirs.DenseLinearOperator(definite(3, 3)))
    with pytest.raises(NotImplementedError, match=r"InterpolatedLinearOperator.*to_dense"):
        from_linear_operator(base)
    with pytest.raises(TypeError, match="not a Tensor"):
        from_linear_operator(drawn(3, 3))
    with pytest.raises(TypeError, match="not a Tensor"):
        as_linear_operator(drawn(3, 3))
    with pytest.raises(NotImplementedError, match="batches of block diagonals"):
        from_linear_operator(
            theirs.BlockDiagLinearOperator(theirs.DenseLinearOperator(drawn(2, 2, 3, 3)))
        )
    A = as_linear_operator(pt.Dense(definite(3, 3)))
    with pytest.raises(RuntimeError, match="neither"):
        A.inv_quad_logdet()


def test_inverse_square_roots_are_exact():
    """Theirs, by quadrature and Lanczos, are NaN of an identity."""
    x, w = torch.randn(5, 3, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
    A = torch.randn(5, 5, dtype=torch.float64)
    for K in (pt.Dense(A @ A.T + torch.eye(5)), 4.0 * pt.Identity(5, dtype="float64")):
        values, vectors = torch.linalg.eigh(K.toarray())
        root = vectors @ torch.diag(values**-0.5) @ vectors.T
        ours = as_linear_operator(K)
        product, quad = ours.sqrt_inv_matmul(x, w)
        for got, due in (
            (product, w @ root @ x),
            (ours.sqrt_inv_matmul(x), root @ x),
            (quad, (w @ root).square().sum(-1)),
        ):
            torch.testing.assert_close(got, due, rtol=1e-9, atol=1e-10)
