"""Traps, each of which raises or is right: no gradient is zero, detached or stale without an
error. Stand-ins of torch.func, forward mode, strides of zero, modes, threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from frameworks.reading_functions import WAYS

import pylinop as pl
import pylinop.torch as pt
from pylinop.torch import function, values

func = torch.func
N = 6


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def value(d, U, y):
    quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
    return quad + logdet


def dense(d, U, y):
    C = torch.diag(d) + U @ U.T
    return y @ torch.linalg.solve(C, y) + torch.logdet(C)


@pytest.fixture
def at():
    return draw(N).abs() + 1, draw(N, 2), draw(N)


def close(got, due):
    torch.testing.assert_close(got, due, rtol=1e-9, atol=1e-10)


# -- torch.func outside of pylinop.torch


PLAIN = {
    "Diag": pl.Diag,
    "Dense": pl.Dense,
    "@": lambda t: pl.Identity(N) @ t,
    "solve": lambda t: pl.solve(np.eye(N), t),
    "lstsq": lambda t: pl.lstsq(np.eye(N), t),
    "cg": lambda t: pl.cg(np.eye(N), t),
    "bicgstab": lambda t: pl.bicgstab(np.eye(N), t),
    "lazy": pl.lazy,
    "ufunc": lambda t: pl.lazy(np.ones(N)) * t,
    "multiple": lambda t: t.sum() * pl.Identity(N),
}
TRANSFORMS = {
    "grad": lambda f, x: func.grad(f)(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "vmap": lambda f, x: func.vmap(f)(torch.stack([x, x])),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "functionalize": lambda f, x: func.functionalize(f)(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PLAIN)
def test_stand_ins_of_torch_func_are_named(name, transform):
    seen = []

    def f(t):
        seen.append(PLAIN[name](t))
        return t.sum()

    with pytest.raises(TypeError, match=r"torch\.func maps or differentiates.*pylinop\.torch"):
        TRANSFORMS[transform](f, draw(N))
    assert not seen


def test_plain_tensors_are_taken_by_iterative_solvers():
    b = draw(N)
    for solver in (pl.cg, pl.bicgstab, pl.gmres, pl.minres):
        np.testing.assert_allclose(solver(2 * np.eye(N), b)[0], b.numpy() / 2)


# -- memory


def strided():
    """(name, a matrix of which not each entry has a place of its own, or not in order)"""
    yield "transposed", draw(N, N).T
    yield "stepped", draw(2 * N, 3 * N)[::2, ::3]
    yield "expanded", draw(N, 1).expand(N, N)
    yield "zero strides", draw(1, 1).expand(N, N)
    yield "overlapping", draw(2 * N).as_strided((N, N), (1, 1))
    yield "with an offset", draw(N + 2, N + 2)[1:-1, 2:]
    yield "flipped", draw(N, N).flip(0)


@pytest.mark.parametrize("name, a", list(strided()))
def test_strides(name, a):
    x, shift = draw(N), N * torch.eye(N, dtype=torch.float64)
    due, found = a.clone().requires_grad_(), a.detach().requires_grad_()
    for f in (
        lambda A, op: op(A) @ x,
        lambda A, op: op(A).T @ A[0],
        lambda A, op: A @ (op(A) @ x),
    ):
        ours, theirs = f(found, pt.Dense), f(due, lambda A: A)
        close(ours, theirs)
        weights = torch.arange(1.0, N + 1).double()
        (g,) = torch.autograd.grad(ours @ weights, found)
        (h,) = torch.autograd.grad(theirs @ weights, due)
        assert g.shape == a.shape
        close(g, h)
    (g,) = torch.autograd.grad(pt.logdet(pt.Dense(found.T @ found + shift)), found)
    (h,) = torch.autograd.grad(torch.logdet(due.T @ due + shift), due)
    close(g, h)


def test_cotangents_with_strides_of_zero():
    """`sum` sends back an expanded number."""
    U, y = draw(N, 2).requires_grad_(), draw(N)
    found = torch.autograd.grad(pt.solve(pt.Identity(N) + pt.LowRank(U), y).sum(), U)
    due = torch.autograd.grad(torch.linalg.solve(torch.eye(N) + U @ U.T, y).sum(), U)
    close(found, due)


# -- modes


def test_inference_mode(at):
    with torch.inference_mode():
        inside = [a.clone() for a in at]
        close(value(*inside), dense(*at))
        K = pt.Diag(inside[0]) + pt.LowRank(inside[1])
    close(pt.logdet(K), torch.logdet(K.toarray()))
    d = at[0].clone().requires_grad_()
    with pytest.raises(RuntimeError, match=r"(?i)inference tensor"):
        value(d, inside[1], at[2]).backward()


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
def test_autocast(low, at):
    for dtype in (torch.float32, torch.float64):
        arrays = [a.to(dtype).requires_grad_() for a in at]
        due = torch.autograd.grad(value(*arrays), arrays)
        with torch.autocast("cpu", dtype=low):
            y = value(*arrays)
            got = torch.autograd.grad(y, arrays)
            if dtype == torch.float32:  # which torch itself lowers
                with pytest.raises(TypeError, match=str(low)):
                    pt.logdet(pt.Dense(arrays[1] @ arrays[1].T))
        assert y.dtype == dtype
        for a, b in zip(got, due, strict=True):
            assert torch.equal(a, b)


def test_no_grad_is_not_remembered(at):
    d = at[0].clone().requires_grad_()
    K = pt.Diag(d) + pt.LowRank(at[1])
    with torch.no_grad():
        assert not pt.logdet(K).requires_grad
    assert pt.logdet(K).requires_grad
    assert not pt.logdet(pt.Diag(d.detach())).requires_grad


def test_forward_mode_outside_of_func(at):
    import torch.autograd.forward_ad as fwd

    d, U, y = at
    step = draw(N)
    with fwd.dual_level():
        dual = fwd.make_dual(d, step)
        tangent = fwd.unpack_dual(value(dual, U, y)).tangent
        with pytest.raises(TypeError, match="with a tangent would lose it"):
            pl.Diag(dual)
    close(tangent, func.jvp(lambda d: dense(d, U, y), (d,), (step,))[1])


# -- threads


def test_one_operator_in_threads(at):
    """Values, graphs that are walked back together, and transforms, of the same operator."""
    d, U, y = (a.clone().requires_grad_() for a in at)
    K = pt.Diag(d) + pt.LowRank(U)
    due = torch.autograd.grad(dense(d, U, y), (d, U))
    shared = sum(pt.inv_quad_logdet(K, y))
    start = threading.Barrier(4)

    def work(k):
        if k < 4:
            start.wait(30)
        if k % 3 == 0:
            return torch.autograd.grad(sum(pt.inv_quad_logdet(K, y)), (d, U)), due
        if k % 3 == 1:
            return torch.autograd.grad(shared, (d, U), retain_graph=True), due
        return func.grad(value, (0, 1))(d.detach(), U.detach(), y.detach()), due

    with ThreadPoolExecutor(4) as pool:
        for got, expected in pool.map(work, range(24)):
            for a, b in zip(got, expected, strict=True):
                close(a, b)


def test_an_operator_keeps_the_memory_it_was_given():
    for change in (
        lambda t: setattr(t, "data", torch.zeros(9, dtype=torch.float64)),
        lambda t: t.set_(torch.zeros(9, dtype=torch.float64)),
    ):
        t = torch.arange(50_000, dtype=torch.float64)
        D = pl.Diag(t)
        change(t)
        others = [torch.full((50_000,), 7.0, dtype=torch.float64) for _ in range(4)]
        np.testing.assert_array_equal(D @ np.ones(50_000), np.arange(50_000.0))
        del others


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_numbers_that_a_function_reads_are_those_of_the_call(way, elsewhere, monkeypatch):
    """Whenever they change: before or after programs leave tapes and records."""
    monkeypatch.setattr(values, "is_elsewhere", lambda tensors: elsewhere)
    if elsewhere:  # the tape would be taken before anyone asks where tensors are
        monkeypatch.setattr(function.tapes, "quick", lambda *args: None)
    f, write = WAYS[way]()
    g = pt.program(f)
    d = (torch.rand(3, dtype=torch.float64) + 1).requires_grad_()
    for c in (1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 1.0, 2.0):
        write(c)
        close(g(d.detach()), torch.log(c * d).sum())
        close(torch.autograd.grad(g(d), d)[0], 1 / d)


def test_results_are_nested_as_for_the_shapes_of_the_call():
    f = pt.program(lambda x: [np.sum(x)] * 2 if len(x) == 2 else {"x": 2 * x})
    two, three = torch.ones(2), torch.ones(3)
    for _ in range(3):
        assert type(f(two)) is list and len(f(two)) == 2
        close(f(three)["x"], 2 * three)


def test_attributes_that_no_code_names_do_not_count():
    class Model:
        c, steps = 2.0, 0

        def f(self, d):
            return self.c * d * d

    model, d = Model(), torch.ones(3, requires_grad=True)
    f = pt.program(model.f)
    found = f(d)
    model.steps += 1
    found.sum().backward()
    close(d.grad, 4 * d)


def test_a_number_that_changed_before_the_derivative_is_an_error():
    c = 2.0
    f = pt.program(lambda d: c * d * d)
    d = torch.ones(3, requires_grad=True)
    found = f(d)
    c = 3.0
    with pytest.raises(RuntimeError, match=r"c, which .* was 2\.0 .* is 3\.0 now.*argument"):
        found.sum().backward()
    close(torch.autograd.grad(f(d).sum(), d)[0], 6 * d)


def test_what_a_function_writes_itself_is_no_other_function():
    seen, count = [], [0]

    def f(d):
        seen.append(1)
        count[0] += 1
        return np.sum(d * d)

    g, d = pt.program(f), torch.ones(3, requires_grad=True)
    for _ in range(4):
        g(d).backward()
    known = len(seen)
    for _ in range(4):
        g(d).backward()
    assert len(seen) == known == count[0]


def sparse(change):
    sp = pytest.importorskip("scipy.sparse")

    class Own(sp.csr_array):
        """A user's class of them."""

    made = Own if change == "own" else sp.csr_array
    S = made(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]]))
    return S.tocoo() if change == "coo" else S.tolil() if change == "lil" else S


@pytest.mark.filterwarnings("ignore:Changing the sparsity")
@pytest.mark.parametrize("change", ["in place", "data", "indices", "entry", "coo", "lil", "own"])
def test_other_arrays_in_a_matrix_of_scipy(change):
    """A new operator is of what is there now, and one from before of the arrays of before, in their
    present content."""
    S, y = sparse(change), torch.arange(1.0, 4, dtype=torch.float64)
    changes = {
        "in place": lambda: S.data.__imul__(3),
        "data": lambda: setattr(S, "data", S.data * 3),
        "indices": lambda: setattr(S, "indices", S.indices[[1, 0, 2, 3, 4]]),
        "coo": lambda: setattr(S, "data", S.data * 3),
        "own": lambda: setattr(S, "data", S.data * 3),
    }
    before, old = pt.Sparse(S), torch.tensor(S.toarray())
    new = lambda y: (pt.Sparse(S) @ y).square().sum()
    for _ in range(4):  # from the third call on by a tape
        close = lambda a, b: np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        A = torch.tensor(S.toarray())
        close(pt.Sparse(S) @ y, A @ y)
        close(pt.solve(pt.Sparse(S), y), torch.linalg.solve(A, y))
        close(torch.func.grad(new)(y), 2 * A.T @ (A @ y))
        close(torch.func.vmap(lambda y: pt.Sparse(S) @ y)(torch.stack([y, y]))[1], A @ y)
        if change in ("data", "indices", "coo", "lil", "own"):
            close(before @ y, old @ y)
        changes.get(change, lambda: S.__setitem__((0, 1), S[0, 1] + 1))()
