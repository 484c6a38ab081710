"""pylinop.torch within autograd, torch.func, modules, optimizers; traps that must raise or be
right."""

import copy
import io
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pylinop as pl
import pylinop.torch as pt
from pylinop import _core
from pylinop._base import config

N, K = 12, 3


@pytest.fixture
def arrays():
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)
    return draw(N).abs() + 1, draw(N, K), draw(N)


def nll(d, U, y):
    quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
    return 0.5 * (quad + logdet)


def by_hand(d, U, y):
    C = torch.diag(d) + U @ U.T
    return 0.5 * (y @ torch.linalg.solve(C, y) + torch.linalg.slogdet(C)[1])


def solved(d, U, y):
    return pt.solve(pt.Diag(d) + pt.LowRank(U), y)


def by_hand_solved(d, U, y):
    return torch.linalg.solve(torch.diag(d) + U @ U.T, y)


def asked(arrays):
    return [a.clone().requires_grad_() for a in arrays]


@pytest.mark.parametrize("f, ref", [(nll, by_hand), (solved, by_hand_solved)])
def test_value_and_gradient(f, ref, arrays):
    ours, theirs = asked(arrays), asked(arrays)
    a, b = f(*ours), ref(*theirs)
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)
    (a * a).sum().backward()
    (b * b).sum().backward()
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", [nll, solved])
def test_checks_of_torch(f, arrays):
    small = [a[:4].clone().requires_grad_() for a in arrays]
    gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    assert gradcheck(f, small, check_forward_ad=True, check_batched_grad=False)
    assert gradgradcheck(f, small)


def test_a_number_costs_one_program(arrays, monkeypatch):
    """Value and gradient of real numbers come by one plan; backward computes nothing."""
    from pylinop.torch import function

    seen = []
    whole = function._values
    monkeypatch.setattr(
        function, "_values", lambda p, t: seen.append(type(p).__name__) or whole(p, t)
    )
    ours = asked(arrays)
    value = nll(*ours)
    assert seen == ["WithGradients"]
    value.backward()
    assert seen == ["WithGradients"]
    with torch.no_grad():
        nll(*ours)
    assert seen == ["WithGradients", "Formula"]


def test_zero_gradients_leave_tapes_and_are_the_caller_s(arrays):
    """The determinant does not depend on the right side: zeros that each call gives anew."""
    d, U, y = asked(arrays)
    for call in range(6):
        runs = _core._tape_counts()[1]
        quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
        ran = _core._tape_counts()[1] - runs
        zero = torch.autograd.grad(logdet, y, retain_graph=True)[0]
        assert not zero.any()
        zero.add_(1)
        due = torch.autograd.grad(by_hand(d, U, y), y)[0]
        torch.testing.assert_close(torch.autograd.grad((quad + logdet) / 2, y)[0], due)
    assert ran == 1, call


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_hessians_in_all_orders(outer, inner, arrays):
    func = torch.func
    h = getattr(func, outer)(getattr(func, inner)(nll, (0, 1)), (0, 1))(*arrays)
    due = func.hessian(by_hand, (0, 1))(*arrays)
    for i in range(2):
        for j in range(2):
            torch.testing.assert_close(h[i][j], due[i][j], rtol=1e-10, atol=1e-11)


def test_func(arrays):
    func, (d, U, y) = torch.func, arrays
    torch.testing.assert_close(func.grad(nll, 1)(d, U, y), func.grad(by_hand, 1)(d, U, y))
    t = tuple(torch.ones_like(a) for a in arrays)
    got, due = func.jvp(solved, arrays, t), func.jvp(by_hand_solved, arrays, t)
    for a, b in zip(got, due, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)
    value, pullback = func.vjp(solved, *arrays)
    for a, b in zip(
        pullback(torch.ones_like(value)),
        func.vjp(by_hand_solved, *arrays)[1](torch.ones(N, dtype=torch.float64)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)
    ys = torch.stack([y, 2 * y, y - 1])
    got = func.vmap(func.grad(nll, 2), (None, None, 0))(d, U, ys)
    torch.testing.assert_close(got, torch.stack([func.grad(by_hand, 2)(d, U, y) for y in ys]))
    ds = torch.stack([d, d + 1])
    got = func.vmap(solved, (0, None, None), out_dims=1)(ds, U, y)
    torch.testing.assert_close(got, torch.stack([by_hand_solved(d, U, y) for d in ds], 1))
    nested = func.vmap(func.vmap(solved, (None, None, 0)), (0, None, None))(ds, U, ys)
    assert nested.shape == (2, 3, N)
    torch.testing.assert_close(nested[1, 2], by_hand_solved(ds[1], U, ys[2]))


def test_modules_and_optimizers():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.log_d = torch.nn.Parameter(torch.zeros(N, dtype=torch.float64))
            self.U = torch.nn.Parameter(torch.ones(N, 1, dtype=torch.float64))

        def forward(self, y):
            return nll(torch.exp(self.log_d), self.U, y)

    torch.manual_seed(0)
    y, model = torch.randn(N, dtype=torch.float64), Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 1
    held = io.BytesIO()
    torch.save(model.state_dict(), held)
    held.seek(0)
    other = Model()
    other.load_state_dict(torch.load(held))
    assert other(y).item() == model(y).item() == copy.deepcopy(model)(y).item()


def test_operators_hold_the_tensors(arrays):
    """A change in place is seen by the next result, and refused between forward and backward."""
    d, U, y = asked(arrays)
    A = pt.Diag(d) + pt.LowRank(U)
    before = pt.solve(A, y)
    with torch.no_grad():
        d += 1
    torch.testing.assert_close(pt.solve(A, y), by_hand_solved(d, U, y))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.sum().backward()


def test_functions_of_torch(arrays):
    d, U, y = arrays
    A = pt.Diag(d) + pt.LowRank(U)
    a = A.toarray()
    for ours, theirs in (
        (torch.linalg.solve(A, y), torch.linalg.solve(a, y)),
        (torch.linalg.slogdet(A)[1], torch.linalg.slogdet(a)[1]),
        (torch.logdet(A), torch.logdet(a)),
        (torch.trace(A), torch.trace(a)),
        (torch.matmul(A, y), a @ y),
        (y @ A, y @ a),
        (torch.linalg.inv(A) @ y, torch.linalg.inv(a) @ y),
        ((2.0 * A - A / 2) @ y, 1.5 * a @ y),
        ((a + A) @ y, 2 * a @ y),
        (torch.linalg.eigvalsh(A), torch.linalg.eigvalsh(a)),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    with pytest.raises(TypeError, match="toarray"):
        torch.exp(A)
    with pytest.raises(TypeError, match="array of NumPy by itself"):
        np.asarray(A)


def test_programs(arrays):
    @pt.program
    def both(d, U, y):
        C = pl.Diag(d) + pl.LowRank(U)
        x = pl.solve(C, y)
        return {"value": y @ x + pl.logdet(C), "x": x}

    ours, theirs = asked(arrays), asked(arrays)
    found = both(*ours)
    (found["value"] + found["x"].sum()).backward()
    x = by_hand_solved(*theirs)
    (2 * by_hand(*theirs) + x.sum()).backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-11, atol=1e-12)
    with pytest.raises(TypeError, match="LazyArray is due"):
        pt.program(lambda d: 3.0)(arrays[0])


def test_no_path_gives_zero_or_stale_gradients(arrays):
    """torch.compile of a function, and of its gradient."""
    d, U, y = arrays
    due = torch.func.grad(by_hand)(d, U, y)
    compiled = torch.compile(lambda d: nll(d, U, y), backend="eager")
    x = d.clone().requires_grad_()
    compiled(x).backward()
    torch.testing.assert_close(x.grad, due)
    gradient = torch.func.grad(lambda d: nll(d, U, y))
    torch.testing.assert_close(torch.compile(gradient, backend="eager", fullgraph=True)(d), due)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: torch.ones(3).to_sparse(), TypeError, "layout"),
        (lambda: torch.ones(3, dtype=torch.bfloat16), TypeError, "bfloat16"),
        (lambda: np.array(["a", "b"]), TypeError, "dtype"),
    ],
)
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        pt.Diag(make()) @ torch.ones(3)
    with pytest.raises(error, match=text):
        pt.Diag(torch.ones(3)) @ make()


def test_fake_tensors_beside_others_are_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(3)
    with pytest.raises(Exception, match="FakeTensor"):
        pt.Diag(x) @ torch.ones(3)
    assert type(pt.Diag(x) @ x).__name__ == "FakeTensor"


def test_subclasses_of_tensors_are_refused():
    class Other(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="Other"):
        pt.Diag(torch.ones(3).as_subclass(Other)) @ torch.ones(3)


def test_views_of_tensors(arrays):
    """Conjugate and negative bits, strides, expanded tensors, NumPy's arrays."""
    c = torch.randn(N, dtype=torch.complex128)
    y = torch.ones(N, dtype=torch.complex128)
    torch.testing.assert_close(pt.Diag(c.conj()) @ y, c.conj().resolve_conj())
    torch.testing.assert_close(pt.Diag(c.conj().imag) @ torch.ones(N, dtype=torch.float64), -c.imag)
    d, U, y = arrays
    wide = torch.stack([d, d])[:, ::2]
    torch.testing.assert_close(pt.Diag(wide[1]) @ y[: N // 2], d[::2] * y[: N // 2])
    one = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    pt.logdet(pt.Diag(one.expand(N))).backward()
    assert one.grad.item() == N / 2
    torch.testing.assert_close(pt.Diag(d.numpy()) @ y, d * y)


def test_errors_are_ours():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pt.solve(pt.Diag(torch.zeros(3)), torch.ones(3))
    with pytest.raises(ValueError, match="inner dimensions|shape"):
        pt.Diag(torch.ones(3)) @ torch.ones(4)


def test_second_derivatives_by_reflections():
    x = torch.randn(5, dtype=torch.float64)
    v = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda v: pt.Reflections(v, 5) @ x, v)


def test_missing_derivatives_are_errors():
    x = torch.rand(4, 1, dtype=torch.float64)
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = pt.Kernel("rbf", x, length_scale=scale).toarray().sum()
    for _ in range(2):
        (y,) = torch.autograd.grad(y, scale, create_graph=True)
    with pytest.raises(NotImplementedError, match="derivative"):
        torch.autograd.grad(y, scale)


def test_modes_and_threads(arrays):
    ours = asked(arrays)
    with torch.inference_mode():
        assert not nll(*ours).requires_grad
    with torch.no_grad():
        assert not nll(*ours).requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nll(*ours).dtype == torch.float64
    due = torch.autograd.grad(nll(*ours), ours)

    def again(_):
        return torch.autograd.grad(nll(*ours), ours)

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(again, range(24)):
            for a, b in zip(got, due, strict=True):
                assert torch.equal(a, b)


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
def test_programs_run_from_c():
    f = pt.program(lambda d, U, y, s: pl.inv_quad_logdet(s * pl.Diag(d) + pl.LowRank(U), y)[0])
    r = torch.Generator().manual_seed(3)

    def drawn(*shape):
        return torch.rand(shape, dtype=torch.float64, generator=r) + 0.5

    for _ in range(5):
        before = pl._core._tape_counts()[1]
        d, U, y, s = drawn(9).requires_grad_(), drawn(9, 2), drawn(9), drawn()
        value = f(d, U, y, s)
        value.backward()
        K = torch.diag(s * d.detach()) + U @ U.T
        x = torch.linalg.solve(K, y)
        torch.testing.assert_close(value.detach(), y @ x, rtol=1e-10, atol=0)
        torch.testing.assert_close(d.grad, -s * x**2, rtol=1e-9, atol=0)
    assert pl._core._tape_counts()[1] > before
    with pytest.warns(pl.IllConditionedWarning):  # for Python, which says so
        f(torch.zeros(9, dtype=torch.float64), U, y, s)


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
@pytest.mark.parametrize("size", [0, 1, 7])
def test_each_element_of_a_batch_runs_from_c(size):
    f = pt.program(lambda d, U, s: pl.logdet(s * pl.Diag(d) + pl.LowRank(U)))
    d, U = torch.rand(size, 6, dtype=torch.float64) + 1, torch.rand(6, 2, size).double()
    s = torch.rand(size, dtype=torch.float64) + 0.5
    mapped = torch.func.vmap(f, in_dims=(0, 2, 0))
    for _ in range(4):
        before = pl._core._tape_counts()[1]
        found = mapped(d, U, s)
        assert found.shape == (size,) and found.dtype == torch.float64
    assert pl._core._tape_counts()[1] == before + size
    for k in range(size):
        K = s[k] * torch.diag(d[k]) + U[:, :, k] @ U[:, :, k].T
        torch.testing.assert_close(found[k], torch.logdet(K), rtol=1e-11, atol=1e-12)
    if size:
        grads = torch.func.vmap(torch.func.grad(f), in_dims=(0, 2, 0))(d, U, s)
        for k in range(size):
            K = s[k] * torch.diag(d[k]) + U[:, :, k] @ U[:, :, k].T
            due = s[k] * torch.diagonal(torch.linalg.inv(K))
            torch.testing.assert_close(grads[k], due, rtol=1e-10, atol=1e-12)
        live = d.clone().requires_grad_()
        mapped(live, U, s).sum().backward()
        torch.testing.assert_close(live.grad, grads, rtol=1e-12, atol=0)


def test_arrays_that_a_function_holds_are_read_at_each_call():
    weights, factor = np.ones(5), np.array(1.0)
    f = pt.program(lambda d: (pl.lazy(weights) * d).sum() * pl.lazy(factor))
    d = torch.arange(5.0, dtype=torch.float64).requires_grad_()
    for k in range(6):
        weights[:] = k + 1
        factor[...] = 2 + k
        value = f(d)
        assert value.item() == 10 * (k + 1) * (k + 2)
        (grad,) = torch.autograd.grad(value, d)
        np.testing.assert_array_equal(grad, np.full(5, (k + 1.0) * (k + 2)))


def test_parameters_are_taken_where_no_tensor_was():
    """Of a process of its own: once a plain tensor was seen, a Parameter is known as well."""
    code = (
        "import torch; from pylinop import _core; p = torch.nn.Parameter(torch.arange(3.0)); "
        "(a,) = _core._foreign_all([p]); assert a.tolist() == [0, 1, 2], a"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_operators_that_are_alike_are_not_taken_for_one_another():
    """Formulas are looked up by what is alike: not so are the dtypes and shapes of their arrays,
    numbers, words, and which of the arrays are one."""
    rng = np.random.default_rng(8)
    draw = lambda *shape: torch.tensor(rng.standard_normal(shape) + 4)
    for n, k in ((3, 1), (4, 2), (3, 1)):
        d, U, V, x = draw(n), draw(n, k), draw(n, k), draw(n)
        for left, right in ((U, V), (U, U), (V, U)):
            due = torch.diag(d) + left @ right.T
            K = pt.Diag(d) + pt.LowRank(left, right)
            assert K.shape == (n, n) and torch.allclose(K @ x, due @ x)
            quad, logdet = pt.inv_quad_logdet(K, x)
            assert torch.allclose(quad, x @ torch.linalg.solve(due, x))
            assert torch.allclose(logdet, torch.logdet(due))
        for c in (2, 2.5, True, -0.5):
            assert torch.allclose((c * pt.Diag(d)) @ x, c * d * x)
        assert (1 * pt.Diag(d.float())).dtype == torch.float32
        assert (1 * pt.Diag(d)).dtype == torch.float64
        a = draw(n, n)
        assert torch.allclose(pt.Triangular(a, lower=True).toarray(), torch.tril(a))
        assert torch.allclose(pt.Triangular(a, lower=False).toarray(), torch.triu(a))
        D = pt.Diag(d)
        assert torch.allclose((D @ D + D).toarray(), torch.diag(d * d + d))
        assert torch.allclose((D @ pt.Diag(x) + D).toarray(), torch.diag(d * x + d))
    with pytest.raises(ValueError, match="shape"):
        pt.Diag(draw(3)) + pt.LowRank(draw(4, 1))


def test_copies_are_looked_up_as_what_they_are_copies_of():
    d, x = torch.tensor([2.0, 3.0]), torch.ones(2)
    K = pt.Diag(d) + pt.LowRank(torch.ones(2, 1))
    due = pt.solve(K, x)
    for other in (copy.deepcopy(K), pickle.loads(pickle.dumps(K))):
        assert other._node.shape is K._node.shape
        assert torch.equal(pt.solve(other, x), due)
    other = copy.deepcopy(K)
    d += 1  # the copy has its own
    assert torch.equal(pt.solve(other, x), due) and not torch.equal(pt.solve(K, x), due)
