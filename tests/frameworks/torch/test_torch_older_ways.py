"""Ways of PyTorch's that are older than torch.func and see programs by other doors: autograd's own
map of gradients, forward mode over a backward, traces."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch._vmap_internals as autograds
import torch.autograd.forward_ad as forward
from torch.autograd import functional, gradcheck, gradgradcheck

import pylinop.torch as pt

N = 5


@pytest.fixture
def at():
    rng = np.random.default_rng(3)
    d, U, y = rng.random(N) + 1, rng.standard_normal((N, 2)), rng.standard_normal(N)
    return tuple(torch.from_numpy(a).requires_grad_() for a in (d, U, y))


def operator(d, U):
    return pt.Diag(d) + pt.LowRank(U)


def matrix(d, U):
    return torch.diag(d) + U @ U.T


def value(d, U, y):
    quad, logdet = pt.inv_quad_logdet(operator(d, U), y)
    return quad + logdet


def dense_value(d, U, y):
    return y @ torch.linalg.inv(matrix(d, U)) @ y + torch.logdet(matrix(d, U))


def solution(d, U, y):
    return pt.solve(operator(d, U), y)


def dense_solution(d, U, y):
    return torch.linalg.inv(matrix(d, U)) @ y


PAIRS = [(value, dense_value), (solution, dense_solution)]


def close(got, due):
    if isinstance(got, (tuple, list)):
        for a, b in zip(got, due, strict=True):
            close(a, b)
    else:
        torch.testing.assert_close(got, due, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("ours, dense", PAIRS)
def test_batches_of_gradients(ours, dense, at):
    """Those with `create_graph` came out detached."""
    d = at[0]

    def found(f):
        v = f(*at)
        given = torch.arange(3 * v.numel(), dtype=d.dtype).reshape(3, *v.shape)
        g = torch.autograd.grad(v, d, given, is_grads_batched=True, create_graph=True)[0]
        (second,) = torch.autograd.grad((g * g).sum(), d)
        return g, second

    close(found(ours), found(dense))
    assert gradcheck(ours, at, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradgradcheck(ours, at, check_fwd_over_rev=True, check_batched_grad=True)


def test_functional(at):
    for strategy in ("reverse-mode", "forward-mode"):
        kept = {"vectorize": True, "strategy": strategy}
        close(
            functional.jacobian(solution, at, **kept),
            functional.jacobian(dense_solution, at),
        )
        kept = {"vectorize": True, "outer_jacobian_strategy": strategy}
        close(functional.hessian(value, at, **kept), functional.hessian(dense_value, at))


def test_autograds_map_within_itself(at):
    d, U, y = (x.detach() for x in at)
    ys = torch.stack([y, 2 * y, d])
    mapped = lambda f: autograds._vmap(f, 1, 1)(ys.T)
    close(mapped(lambda y: solution(d, U, y)), torch.linalg.inv(matrix(d, U)) @ ys.T)
    with pytest.raises(NotImplementedError, match="within another one"):
        autograds._vmap(lambda z: autograds._vmap(lambda y: solution(d, U, y))(z))(
            torch.stack([ys, ys])
        )


@pytest.mark.parametrize("ours, dense", PAIRS)
@pytest.mark.parametrize("recorded", [False, True])
def test_forward_mode_over_a_backward(ours, dense, recorded, at):
    """The gradient that came with the value had no tangent."""
    d, U, y = at
    due = torch.func.jvp(
        torch.func.grad(lambda d: dense(d, U, y).sum()), (d.detach(),), (y.detach(),)
    )
    with forward.dual_level():
        dual = forward.make_dual(d, y.detach())
        (g,) = torch.autograd.grad(ours(dual, U, y).sum(), dual, create_graph=recorded)
        got = forward.unpack_dual(g)
        close((got.primal, got.tangent), due)
        assert got.tangent.requires_grad == recorded


@pytest.mark.filterwarnings("ignore")
def test_traces(at):
    """The value was a constant of the trace."""
    at = tuple(x.detach() for x in at)
    others = tuple(x * 1.5 for x in at)
    for ours, dense in PAIRS:
        traced = torch.jit.trace(ours, at)
        close(traced(*others), dense(*others))
    product = torch.jit.trace(lambda d, U, y: operator(d, U) @ y, at)
    close(product(*others), matrix(*others[:2]) @ others[2])
