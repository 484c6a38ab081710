"""Operators of pylinop.torch have what tensors have: a device, a dtype, and others of these."""

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")

import pylinop.torch as pt


def covariance(dtype=torch.float32):
    d, U = torch.ones(5, dtype=dtype), torch.randn(5, 2, dtype=dtype)
    return pt.Diag(d) + pt.LowRank(U), d, U


def test_device_and_gradients_are_those_of_the_tensors():
    K, d, U = covariance()
    assert K.device == torch.device("cpu") and not K.requires_grad
    U.requires_grad_()
    assert K.requires_grad and not K.detach().requires_grad
    assert torch.equal(K.detach().toarray(), K.toarray().detach())
    d.zero_()  # detached ones see the same memory
    assert torch.equal(K.detach().diagonal(), (U * U).sum(-1).detach())
    assert pt.Identity(3).device == torch.device("cpu") and not pt.Identity(3).requires_grad


def test_other_precisions():
    K, d, U = covariance()
    for wide in (K.double(), K.to(torch.float64), K.to(dtype=torch.float64), K.to(d.double())):
        assert wide.dtype == torch.float64
        torch.testing.assert_close(wide.toarray(), K.toarray().double())
    assert K.double().float().dtype == torch.float32
    assert K.to(torch.complex128).dtype == torch.complex128
    A = pt.Dense(torch.randn(3, 3, dtype=torch.complex64))
    assert A.double().dtype == torch.complex128 and A.float().dtype == torch.complex64
    torch.testing.assert_close(A.double().toarray(), A.toarray().to(torch.complex128))


def test_gradients_flow_to_the_tensors_given():
    K, d, U = covariance()
    U.requires_grad_()
    y = torch.randn(5, dtype=torch.float64)
    (found,) = torch.autograd.grad(pt.logdet(K.double()) + y @ (K.double() @ y), U)
    wide = U.double()
    whole = torch.diag(d.double()) + wide @ wide.T
    (due,) = torch.autograd.grad(torch.logdet(whole) + y @ whole @ y, U)
    torch.testing.assert_close(found, due)


def test_indices_stay_integers():
    S = pt.Selection(torch.tensor([2, 0]), 3)
    assert torch.equal((S.double() @ torch.arange(3.0).double()), torch.tensor([2.0, 0.0]).double())
    pattern = scipy.sparse.coo_array(([1.0, 2.0], ([0, 2], [1, 0])), (3, 2))
    A = pt.Sparse(pattern, torch.tensor([3.0, 4.0]))
    x = torch.ones(2, dtype=torch.float64)
    assert torch.equal(A.double() @ x, torch.tensor([3.0, 0.0, 4.0], dtype=torch.float64))


def test_a_tensor_at_two_places_is_one():
    U = torch.randn(4, 2, requires_grad=True)
    K = (pt.LowRank(U) + pt.Dense(U) @ pt.Dense(U).T).to(torch.float64)
    (found,) = torch.autograd.grad(pt.trace(K), U)
    torch.testing.assert_close(found, 4 * U.detach())


def test_other_devices():
    K, d, U = covariance()
    away = K.to("meta")
    assert away.device.type == "meta" and away.toarray().shape == (5, 5)
    mixed = pt.Diag(d) + pt.LowRank(U.to("meta"))
    with pytest.raises(ValueError, match=r"arrays on cpu.*on meta"):
        mixed.device  # noqa: B018
    assert mixed.to("meta").device.type == "meta"
    if torch.cuda.is_available():
        assert K.cuda().device.type == "cuda" and K.cuda().cpu().device.type == "cpu"
        torch.testing.assert_close(K.cuda().toarray().cpu(), K.toarray())
    else:
        with pytest.raises((RuntimeError, AssertionError), match=r"(?i)cuda|nvidia"):
            K.cuda()


def test_numbers_do_not_widen():
    """By torch's rules; a number that is NumPy's is one of Python to it."""
    a = torch.eye(3)
    A = pt.Dense(a)
    two = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for c in (
        2.0,
        np.float64(2),
        np.float32(2),
        np.int64(2),
        two,
        torch.tensor(2),
        np.complex128(2),
    ):
        due = (a * c).dtype
        assert (A * c).dtype is (A / c).dtype is due
        assert ((A * c) @ torch.ones(3)).dtype is due
    assert (pt.Dense(a.double()) * torch.tensor(2.0)).dtype is torch.float64
    assert (A + torch.tensor(2.0) * pt.Identity(3)).dtype is torch.float32
    pt.trace(A * two).backward()
    assert two.grad.dtype is torch.float64 and two.grad == 3


def test_wrong_dtypes():
    K, _, _ = covariance()
    with pytest.raises(TypeError, match=r"real or complex numbers, not of torch.int64"):
        K.to(torch.int64)
