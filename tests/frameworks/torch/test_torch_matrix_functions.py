"""Exponentials, roots and logarithms on tensors elsewhere, where no value is looked at: against C,
with their first derivatives; what has no form says so."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pylinop as pl
import pylinop.torch as pt
from pylinop._namespace import matrix_functions
from pylinop._programs import tapes
from pylinop.torch import values

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def chosen(monkeypatch):
    """chosen(True): by the tensors' own functions; (False): by C."""
    monkeypatch.setattr(tapes, "quick", lambda *args: None)
    return lambda on: monkeypatch.setattr(values, "is_elsewhere", lambda tensors: on)


def definite(a):
    return a @ a.mT.conj() + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


EXPONENTS = {
    "dense": pt.Dense,
    "large": lambda a: -40.0 * pt.Dense(definite(a)),
    "triangular": pt.Triangular,
    "diagonal": lambda a: pt.Diag(a[..., 0, :]),
    "multiple": lambda a: 0.3 * pt.Diag(a[..., 0, :]),
    "toeplitz": lambda a: pt.Toeplitz(a[..., 0, :]),
    "circulant": lambda a: pt.Circulant(a[..., 0, :]),
    "sum of krons": lambda a: 0.5 * pt.KronSum(pt.Dense(a), pt.Dense(a[..., :2, :2])),
    "blocks": lambda a: pt.BlockDiag(pt.Dense(a), pt.Diag(a[..., 0, :])),
}
HERMITIAN = {
    "declared": lambda a: pt.Dense(definite(a), assume_a="her"),
    "a sum": lambda a: pt.Dense(definite(a), assume_a="her") + pt.Identity(a.shape[-1]),
    "diagonal": lambda a: pt.Diag(1 + a[..., 0, :].real ** 2),
    "blocks": lambda a: pt.BlockDiag(pt.Dense(definite(a), assume_a="her"), pt.Identity(2)),
}
CASES = [("expm", name, f) for name, f in (EXPONENTS | HERMITIAN).items()]
CASES += [(name, key, f) for name in ("sqrtm", "logm") for key, f in HERMITIAN.items()]


def asked(name, make, a):
    """The matrix, its product with a vector, a solution, the trace; and a gradient."""
    f = getattr(pt, name)(make(a))
    n = f.shape[-1]
    y = torch.linspace(0.5, 1, n, dtype=torch.float64, device=a.device).to(a.dtype)
    found = [f.toarray(), f @ y, pt.trace(f)]
    weights = torch.cos(torch.arange(n * n, dtype=torch.float64, device=a.device).reshape(n, n) / 3)
    (gradient,) = torch.autograd.grad((found[0].real * weights).sum() + found[2].real, a)
    return [x.detach().cpu().numpy() for x in (*found, gradient)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name, key, make", CASES, ids=[f"{a} {b}" for a, b, _ in CASES])
def test_values_and_gradients_are_those_of_c(name, key, make, dtype, chosen):
    rng = np.random.default_rng(51)
    a = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if dtype[0] == "c" else 0)
    found = []
    for on in (True, False):
        chosen(on)
        given = torch.from_numpy(a).to(DEVICE if on else "cpu").requires_grad_()
        found.append(asked(name, make, given))
    for x, y in zip(*found, strict=True):
        assert x.shape == y.shape and np.abs(x - y).max() <= 1e-9 * max(np.abs(y).max(), 1e-3)


def test_batches_and_what_is_out_of_reach(chosen):
    chosen(True)
    a = torch.from_numpy(np.random.default_rng(52).standard_normal((3, 4, 4))).to(DEVICE)
    a = a * torch.tensor([1.0, 30.0, 1e12], dtype=a.dtype, device=DEVICE)[:, None, None]
    found = pt.expm(pt.Dense(a)).toarray().cpu()
    due = torch.linalg.matrix_exp(a[:2].cpu())
    for k in (0, 1):
        assert (found[k] - due[k]).abs().max() <= 1e-10 * due[k].abs().max()
    assert torch.isnan(found[2]).all()
    negative = torch.tensor([-1.0, 2.0], dtype=a.dtype, device=DEVICE)
    for f in (pt.sqrtm, pt.logm):  # C raises: the result is complex
        assert torch.isnan(f(pt.Diag(negative)) @ negative)[0]
        assert torch.isnan(f(pt.Dense(torch.diag(negative), assume_a="her")).toarray()).any()
    singular = pt.sqrtm(pt.Dense(torch.ones_like(a[0]), assume_a="her")).toarray()
    torch.testing.assert_close(singular @ singular, torch.ones_like(a[0]))


def test_what_is_singular_by_rounding_is_not_a_number(chosen):
    """Whatever sign its least eigenvalues have: C raises, but for the root itself."""
    chosen(True)
    for seed in range(8):
        a = torch.from_numpy(np.random.default_rng(seed).standard_normal((12, 11))).to(DEVICE)
        a = (a @ a.mT).requires_grad_()
        root, logarithm = (f(pt.Dense(a, assume_a="her")).toarray() for f in (pt.sqrtm, pt.logm))
        torch.testing.assert_close(root @ root, a)
        assert torch.isnan(logarithm).all()
        for y in (root, logarithm):
            assert torch.isnan(torch.autograd.grad(y.sum(), a)[0]).all()


@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm"])
@pytest.mark.parametrize("see", [lambda A: A, lambda A: 2 * A.mT], ids=["itself", "transposed"])
def test_only_the_named_triangle_is_read(name, see, chosen):
    chosen(True)
    whole = definite(torch.from_numpy(np.random.default_rng(54).standard_normal((4, 4)) / 2))
    half = whole.triu() + 7 * torch.ones_like(whole).tril(-1)
    found = []
    for a in (whole, half):
        a = a.to(DEVICE).requires_grad_()
        y = getattr(pt, name)(see(pt.Dense(a, assume_a="her"))).toarray()
        found.append([y.detach(), *torch.autograd.grad(y.square().sum(), a)])
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-8)


def test_blocks_that_are_not_square_and_operands_that_are_shared(chosen):
    chosen(True)
    a = torch.from_numpy(np.random.default_rng(53).standard_normal((5, 5)) / 3).to(DEVICE)
    blocks = pt.BlockDiag(pt.Dense(a[:2, :3]), pt.Dense(a[2:, :2]))
    found = pt.expm(blocks).toarray()
    torch.testing.assert_close(found, torch.linalg.matrix_exp(blocks.toarray()))
    x = pl.lazy(a.cpu().numpy())
    for _ in range(60):  # 2^60 ways to the first
        x = np.block([[x]]) @ x
    assert len(matrix_functions._operands_first(x)) < 200


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_what_goes_by_schur_says_so(name, chosen):
    chosen(True)
    A = getattr(pt, name)(pt.Dense(torch.eye(3, dtype=torch.float64, device=DEVICE)))
    for f in (lambda: A.toarray(), lambda: A @ torch.ones(3, device=DEVICE).double()):
        with pytest.raises(NotImplementedError, match="known to be Hermitian"):
            f()


def twice(name, make, a):
    """A product with the Hessian."""
    n, v = (
        a.shape[-1],
        torch.sin(
            torch.arange(a.numel(), dtype=torch.float64, device=a.device).reshape(a.shape) + 1.0
        ),
    )
    weights = torch.cos(torch.arange(n * n, dtype=torch.float64, device=a.device).reshape(n, n) / 3)
    f = getattr(pt, name)(make(a)).toarray()
    (gradient,) = torch.autograd.grad((f.abs() ** 2 * weights).sum(), a, create_graph=True)
    (along,) = torch.autograd.grad((gradient * v.to(a.dtype)).real.sum(), a)
    return along.detach().cpu().numpy()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name, key", [("expm", "dense"), ("expm", "a sum"), ("sqrtm", "declared")])
def test_second_derivatives_are_those_of_c(name, key, dtype, chosen):
    rng = np.random.default_rng(56)
    a = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if dtype[0] == "c" else 0)
    make, found = (EXPONENTS | HERMITIAN)[key], []
    for on in (True, False):
        chosen(on)
        given = torch.from_numpy(a / 2).to(DEVICE if on else "cpu").requires_grad_()
        found.append(twice(name, make, given))
    assert np.abs(found[0] - found[1]).max() <= 1e-8 * np.abs(found[1]).max()


def test_second_derivatives_of_logarithms_have_no_form(chosen):
    chosen(True)
    a = torch.eye(3, dtype=torch.float64, device=DEVICE).requires_grad_()
    with pytest.raises(NotImplementedError, match="logm of shape"):
        twice("logm", HERMITIAN["declared"], a)
