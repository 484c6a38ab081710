"""torch.compile: one graph without breaks, of values, derivatives and batches, which is right; what
has no place in a graph breaks it or raises with a sentence. No gradient is silently zero."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pylinop as pl
import pylinop.torch as pt
from pylinop._programs import formulas
from pylinop._programs.text import program_of

func = torch.func
N = 6
VERSION = torch.torch_version.TorchVersion(torch.__version__)
BACKENDS = ["eager", "aot_eager"]


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def value(d, U, y):
    quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
    return quad + logdet


def dense(d, U, y):
    """By functions whose derivatives are right in both modes; logdet's are not (torch 2.13)."""
    C = torch.diag(d) + U @ U.T
    return y @ torch.linalg.inv(C) @ y + 2 * torch.linalg.cholesky(C).diagonal().log().sum()


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()


@pytest.fixture
def at():
    return draw(N).abs() + 1, draw(N, 2), draw(N)


def close(got, due):
    torch.testing.assert_close(got, due, rtol=1e-9, atol=1e-10)


def whole(f, backend="eager", **how):
    return torch.compile(f, backend=backend, fullgraph=True, **how)


def derived(f, at):
    """What is compiled: functions of d whose value is asked for, by derivative."""
    d, U, y = at
    one = lambda d: f(d, U, y)
    step = torch.ones_like(d)
    found = {
        "value": one,
        "grad": func.grad(one),
        "jvp": lambda d: func.jvp(one, (d,), (step,))[1],
        "vmap": func.vmap(one),
        "vmap of grad": func.vmap(func.grad(one)),
        "grad of vmap": func.grad(lambda D: func.vmap(one)(D).sum()),
        "grad of vmap by what is shared": lambda D: func.grad(
            lambda U: func.vmap(f, (0, None, None))(D, U, y).sum()
        )(U),
        "vmap of vmap": func.vmap(func.vmap(f, (None, None, 0)), (0, None, None)),
        "jvp of grad": lambda d: func.jvp(func.grad(one), (d,), (step,))[1],
        "grad of jvp": func.grad(lambda d: func.jvp(one, (d,), (step,))[1]),
        "third": func.jacrev(func.jacfwd(func.grad(one))),
    }
    for outer in ("jacfwd", "jacrev"):
        for inner in ("jacfwd", "jacrev"):
            found[f"{outer} of {inner}"] = getattr(func, outer)(getattr(func, inner)(one))
    return found


WHAT = list(derived(value, [torch.ones(1)] * 3))


@pytest.mark.parametrize("what", WHAT)
def test_transforms(what, at):
    """As they are, and in one graph by each backend."""
    x = torch.stack([at[0], at[0] + 1]) if "vmap" in what else at[0]
    if what == "vmap of vmap":
        ours, theirs = (
            (lambda D, f=f: derived(f, at)[what](D, at[1], torch.stack([at[2], 2 * at[2]])))
            for f in (value, dense)
        )
    else:
        ours, theirs = derived(value, at)[what], derived(dense, at)[what]
    due = theirs(x)
    assert due.abs().max() > 0
    close(ours(x), due)
    for backend in BACKENDS:
        close(whole(ours, backend)(x), due)


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_steps(backend, at):
    """Of a program, of operators, of parameters that change between calls."""
    ours, theirs = ([a.clone().requires_grad_() for a in at] for _ in range(2))
    program = pt.program(
        lambda d, U, y: (
            y @ pl.solve(pl.Diag(d) + pl.LowRank(U), y) + pl.logdet(pl.Diag(d) + pl.LowRank(U))
        )
    )
    step = whole(lambda *p: (2 * program(*p)).sin() + value(*p).cos(), backend)
    for _ in range(3):
        for p in ours + theirs:
            p.grad = None
        step(*ours).backward()
        ((2 * dense(*theirs)).sin() + dense(*theirs).cos()).backward()
        with torch.no_grad():
            for a, b in zip(ours, theirs, strict=True):
                close(a.grad, b.grad)
                a -= 0.01 * a.grad
                b.copy_(a)


def test_second_derivatives_outside_of_the_graph(at):
    """`create_graph` of a graph by the eager backend, whose backward is the dispatcher's."""
    d = at[0].clone().requires_grad_()
    (g,) = torch.autograd.grad(whole(value)(d, *at[1:]), d, create_graph=True)
    (h,) = torch.autograd.grad((g * at[2]).sum(), d)
    close(h, func.hessian(lambda d: dense(d, *at[1:]))(at[0]) @ at[2])


def results(K, B, y):
    """Functions of an operator, and operators by torch's functions."""
    m = torch.matmul
    eye = torch.eye(N, dtype=y.dtype)
    yield "solve", lambda: (pt.solve(K, y), torch.linalg.solve(K, y))
    yield "products", lambda: (m(K, y), m(y, K), m(K, m(B, y)), m(m(K, pt.Dense(B)), y), K[0])
    yield "order", lambda: (m(pt.Dense(B), y), m(y, pt.Dense(B)), m(pt.Dense(B)[1:4, :], y))
    yield "views", lambda: (m(pt.Dense(B).T, y), m(pt.Dense(B).H, y), m(pt.Dense(B).conj(), y))
    yield "sums", lambda: (m(K + eye, y), m(eye + K, y), m(K - eye, y), m(eye - K, y))
    yield (
        "multiples",
        lambda: (m(2 * K, y), m(y[0] * K, y), m(K * y[0], y), m(K / y[0], y), m(-K, y)),
    )
    yield "numbers", lambda: (*pt.slogdet(K), pt.trace(K), pt.logdet(K), pt.det(K), K.trace())
    yield "arrays", lambda: (pt.diagonal(K), K.toarray(), pt.eigvalsh(K), pt.svdvals(K))
    yield "operators", lambda: (m(pt.inv(K), y), m(K**2, y), m(pt.pinv(K), y), m(pt.cholesky(K), y))
    yield "shapes", lambda: (y * K.shape[0] * K.ndim, m(pt.Identity(N, dtype=np.float64), y))
    yield "without tensors", lambda: (y + pt.logdet(pt.Identity(3)),)
    yield "of NumPy's arrays", lambda: (m(pt.Dense(np.eye(N)), y), m(pt.Dense(HELD), y))
    yield "multi_dot", lambda: (pt.multi_dot([K, B, y]), pt.einsum("ij,j->i", B, y))


HELD = np.arange(N * N, dtype=float).reshape(N, N)
NAMES = [name for name, _ in results(*[torch.ones(1)] * 3)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("held", [False, True])
def test_results(name, held, at):
    """Of an operator that is made in the graph, and of one that was there."""
    if name == "multiples" and VERSION < (2, 13):
        pytest.skip("this tracer compares no dtypes of NumPy, by which multiples are narrowed")
    d, U, y = at
    B = draw(N, N)
    K = pt.Diag(d) + pt.LowRank(U)

    def f(d, U, y):
        op = K if held else pt.Diag(d) + pt.LowRank(U)
        return dict(results(op, B, y))[name]()

    for got, due in zip(whole(f)(d, U, y), f(d, U, y), strict=True):
        close(got, due)


def test_nested_arguments_of_programs(at):
    d, U, y = at

    @pt.program
    def f(d, more, scale=1.0):
        K = pl.Diag(d) + pl.LowRank(more["U"])
        return {"x": pl.solve(K, more["y"][0]), "both": (scale * pl.logdet(K), [2 * pl.lazy(d)])}

    def g(d):
        return f(d, {"y": [y], "U": U}, scale=3.0)

    got, due = whole(g)(d), g(d)
    assert (
        list(got) == ["x", "both"] and type(got["both"]) is tuple and type(got["both"][1]) is list
    )
    close(got, due)
    close(whole(func.grad(lambda d: g(d)["both"][0]))(d), func.grad(lambda d: g(d)["both"][0])(d))


def test_other_nests_of_programs_break_the_graph(at):
    f = pt.program(lambda d: pl.slogdet(pl.Diag(d)))
    g = lambda d: 2 * f(d).logabsdet
    close(torch.compile(g, backend="eager")(at[0]), g(at[0]))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="no other nests"):
        whole(g)(at[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.complex128])
def test_other_dtypes(dtype):
    a, y = draw(N, N, dtype=dtype) + 4 * N * torch.eye(N), draw(N, dtype=dtype)
    f = lambda a: pt.solve(pt.Dense(a), y).abs().sum()
    tol = 1e-4 if dtype in (torch.float32, torch.complex64) else 1e-10
    due = func.grad(lambda a: torch.linalg.solve(a, y).abs().sum())(a)
    torch.testing.assert_close(whole(func.grad(f), "aot_eager")(a), due, rtol=tol, atol=tol)


@pytest.mark.parametrize("dynamic", [None, True])
def test_other_shapes(dynamic):
    """A graph is for its shapes; others make another one."""
    f = whole(lambda y: torch.matmul(pt.Diag(y) + pt.LowRank(y[:, None]), y), dynamic=dynamic)
    for n in (3, 4, 5, 4, 7):
        y = draw(n)
        close(f(y), y * y + y * (y @ y))


@pytest.mark.parametrize("nested", [False, True])
def test_products_with_the_tensor_first_break_the_graph(nested, at):
    """PyTorch's tracer shows them as it shows the other order, and may go on behind a break."""
    B = draw(N, N)
    f = lambda y: y @ pt.Dense(B) + 1
    with torch._dynamo.config.patch(nested_graph_breaks=nested):
        close(torch.compile(f, backend="eager")(at[2]), f(at[2]))
        torch._dynamo.reset()
        why = "Observed exception" if nested else r"Write torch\.matmul\(x, A\)"
        with pytest.raises(Exception, match=why):
            whole(f)(at[2])


def test_products_by_the_sign(at):
    """Of square and other matrices that are not symmetric; vectors, matrices, chains."""
    B, C, y = draw(N, N), draw(N - 2, N), at[2]
    for f, due in (
        (lambda y: pt.Dense(B) @ y, lambda y: B @ y),
        (lambda y: pt.Dense(C) @ y, lambda y: C @ y),
        (lambda y: pt.Dense(B) @ (B * y), lambda y: B @ (B * y)),
        (lambda y: pt.Dense(C) @ pt.Dense(B).T @ (2 * y), lambda y: C @ (B.T @ (2 * y))),
        (lambda y: pt.expm(pt.Dense(B)) @ y, lambda y: torch.linalg.matrix_exp(B) @ y),
    ):
        torch._dynamo.reset()
        close(whole(f, "aot_eager")(y), due(y))
        close(whole(func.jacrev(f), "aot_eager")(y), func.jacrev(due)(y))


def test_wrong_shapes_are_named(at):
    f = whole(lambda d: torch.matmul(pt.Diag(d), torch.ones(N + 1)))
    with pytest.raises(Exception, match="inner dimensions differ"):
        f(at[0])
    with pytest.raises(Exception, match="no tensors of dtype"):
        whole(lambda d: pt.logdet(pt.Diag(d.half())))(at[0])


def test_gradients_that_are_not_there_raise(at):
    d = at[0].clone().requires_grad_()
    f = lambda d: pt.solve(pt.MultilevelToeplitz(d.reshape(2, 3)), at[2][:2]).sum()
    for g in (f, whole(f)):
        with pytest.raises(Exception):  # noqa: B017
            g(d).backward()


def test_graphs_hold_words_alone(at):
    """The program of a graph is text that another process reads."""
    texts = []

    def backend(graph, inputs):
        texts.extend(n.args[0] for n in graph.graph.nodes if "pylinop" in str(n.target))
        return graph.forward

    f = torch.compile(lambda *p: value(*p), backend=backend, fullgraph=True)
    due = f(*at)
    (text,) = texts
    assert program_of(text) == program_of(text)
    code = (
        "import torch, pylinop.torch\n"
        f"at = [torch.tensor(x, dtype=torch.float64) for x in {[a.tolist() for a in at]}]\n"
        f"print(sum(torch.ops.pylinop.run({text!r}, [], ',,', at)).item())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    close(torch.tensor(float(found.stdout), dtype=torch.float64), due)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_d = torch.nn.Parameter(draw(N))
        self.U = torch.nn.Parameter(draw(N, 2))
        self.fixed = pt.Diag(torch.arange(1.0, N + 1).double())

    def forward(self, y):
        K = pt.Diag(torch.exp(self.log_d)) + pt.LowRank(self.U) + self.fixed
        return sum(pt.inv_quad_logdet(K, y)).tanh()


def test_modules(at):
    """Parameters, and an operator that the module holds."""
    model, y = Model(), at[2]
    compiled = whole(model, "aot_eager")
    for _ in range(2):
        found = []
        for f in (model, compiled):
            model.zero_grad()
            f(y).backward()
            found.append([p.grad.clone() for p in model.parameters()])
        close(*found)
        with torch.no_grad():
            model.log_d += 0.1
    for strict in (False, True):
        exported = torch.export.export(model, (y,), strict=strict)
        close(exported.module()(2 * y), model(2 * y))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx(mode, at):
    from torch.fx.experimental.proxy_tensor import make_fx

    f = lambda d: func.grad(lambda d: pt.solve(pt.Diag(d) + pt.LowRank(at[1]), at[2]).sum())(d)
    if mode != "real":  # tensors of the outside have no place there
        f = lambda d: func.grad(lambda d: pt.solve(pt.Diag(d), d * d).sum())(d)
    graph = make_fx(f, tracing_mode=mode)(at[0])
    close(graph(at[0] + 1), f(at[0] + 1))


def test_tensors_without_values_give_shapes(at):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        y, U = torch.ones(4, 2), torch.ones(4, 1, dtype=torch.complex128, requires_grad=True)
        x = pt.solve(pt.Identity(4) + pt.LowRank(U), y)
        (g,) = torch.autograd.grad(x.abs().sum(), U)
    assert x.shape == (4, 2) and x.dtype == torch.complex128 and type(x).__name__ == "FakeTensor"
    assert g.shape == U.shape and g.dtype == U.dtype


def test_a_function_of_another_process_is_refused():
    text = repr(("Here", "0" * 32, 0))
    with pytest.raises(RuntimeError, match="another process"):
        torch.ops.pylinop.run(text, [], "", [torch.ones(2)])


def test_opcheck(at):
    """PyTorch's own look at an operator: schema, shapes without values, tracing."""
    texts = []

    def backend(graph, inputs):
        texts.extend(n.args[0] for n in graph.graph.nodes if "pylinop" in str(n.target))
        return graph.forward

    torch.compile(lambda *p: value(*p), backend=backend, fullgraph=True)(*at)
    given = [a.clone().requires_grad_() for a in at]
    torch.library.opcheck(torch.ops.pylinop.run.default, (texts[0], [], ",,", given))
    more = [torch.stack([a.detach(), a.detach() + 1]).requires_grad_() for a in given]
    torch.library.opcheck(torch.ops.pylinop.run.default, (texts[0], [2], "1,1,1", more))


def test_matrices_of_scipy():
    """Made within the graph or before, of data or not; another matrix is another graph, and what is
    written to one is read."""
    sp = pytest.importorskip("scipy.sparse")
    S = sp.coo_array((np.ones(4), ([0, 1, 2, 0], [0, 1, 2, 2])), shape=(3, 3)).tocsr()
    v = torch.ones(3, dtype=torch.float64)
    x = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64, requires_grad=True)
    before = pt.Sparse(S, x) + pt.Identity(3)
    if VERSION < (2, 12):  # its tracer hands no objects on
        with pytest.raises(Exception, match=r"no part of a graph before PyTorch 2\.12"):
            whole(lambda x: pt.logdet(pt.Sparse(S, x)))(x)
        return
    for f in (
        lambda x: torch.matmul(pt.Sparse(S, x), v).square().sum(),
        lambda x: pt.logdet(pt.Sparse(S, x.exp()) + pt.Identity(3)),
        lambda x: pt.solve(pt.Sparse(S), x[1:]) @ v,
        lambda x: (pt.solve(before, v) * x[:3]).sum(),
    ):
        torch._dynamo.reset()
        (due,) = torch.autograd.grad(f(x), x)
        (found,) = torch.autograd.grad(torch.compile(f, backend="aot_eager", fullgraph=True)(x), x)
        assert torch.equal(found, due) and torch.count_nonzero(due) >= 2

    held = [S]
    f = torch.compile(lambda v: pt.Sparse(held[0]) @ v, backend="eager", fullgraph=True)
    for change in (lambda: None, lambda: held.__setitem__(0, 2 * S), lambda: S.data.__imul__(3)):
        change()
        assert torch.equal(f(v), torch.from_numpy(held[0] @ v.numpy()))
    held[0] = S
    assert torch.equal(f(v), torch.from_numpy(S @ v.numpy()))


@pytest.mark.skipif(VERSION < (2, 12), reason="its tracer hands no objects on")
@pytest.mark.parametrize("backend", BACKENDS)
def test_other_arrays_in_a_matrix_of_scipy(backend):
    """They are read in the next call of a graph, by its derivatives too."""
    sp = pytest.importorskip("scipy.sparse")
    S, y = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])), draw(3)
    f = lambda y: pt.solve(pt.Sparse(S), y).square().sum()
    value_, gradient = whole(f, backend), whole(func.grad(f), backend)
    p = y.clone().requires_grad_()
    for k in range(1, 4):
        S.data = S.data + k
        due = func.grad(lambda y: torch.linalg.solve(torch.tensor(S.toarray()), y).square().sum())(
            y
        )
        close(gradient(y), due)
        close(*torch.autograd.grad(value_(p), p), due)


@pytest.mark.skipif(VERSION < (2, 12), reason="its tracer hands no objects on")
def test_objects_of_graphs_go_with_them():
    sp = pytest.importorskip("scipy.sparse")

    def ran():
        S, y = sp.eye_array(3, format="csr") * 2.0, draw(3)
        close(whole(lambda y: pt.Sparse(S) @ y)(y), 2 * y)
        return weakref.ref(S), formulas.number_of(S)

    seen, number = ran()
    torch._dynamo.reset()
    gc.collect()
    assert seen() is None and number not in formulas._kept
    with pytest.raises(RuntimeError, match="is gone: keep it"):
        formulas.numbered(number)


def test_the_tracer_is_imported_when_it_is_used():
    """And then knows what is to be known of programs, and of products, that were there before."""
    code = """
import sys, torch
import pylinop as pl, pylinop.torch as pt
f = pt.program(lambda d: pl.logdet(pl.Diag(d)))
several = pt.program(lambda d: pl.slogdet(pl.Diag(d)))
d = torch.full((3,), 2.0, dtype=torch.float64)
before = f(d)
assert "torch._dynamo" not in sys.modules
whole = lambda f: torch.compile(f, backend="eager", fullgraph=True)
assert "torch._dynamo" not in sys.modules or torch.equal(f(d), before)
assert torch.equal(whole(lambda d: 2 * f(d))(d), 2 * before)
assert torch.equal(whole(lambda d: pt.Diag(d) @ d)(d), d * d)
assert torch.equal(torch.compile(lambda d: several(d).logabsdet, backend="eager")(d), before)
try:
    whole(lambda d: several(d).logabsdet)(d)
except Exception as e:
    assert "no other nests" in str(e)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tracer_is_told_by_whatever_way_it_comes():
    """Who restores what imports go by, as runners of tests do, takes our finder away."""
    code = """
import sys, torch
import pylinop as pl
before = list(sys.meta_path)
import pylinop.torch as pt
sys.meta_path[:] = before
import torch._dynamo
f = pt.program(lambda d: pl.logdet(pl.Diag(d)))
d = torch.full((3,), 2.0, dtype=torch.float64)
whole = torch.compile(lambda d: f(d) + (pt.Diag(d) @ d).sum(), backend="eager", fullgraph=True)
assert torch.equal(whole(d), f(d) + 12)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_callables_break_the_graph():
    f = lambda x: pt.Kernel(lambda a, b: a @ b.T, x[:, None]).toarray()
    x = torch.ones(3, dtype=torch.float64)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"Kernel of a.*a program\(f\)"):
        torch.compile(f, backend="eager", fullgraph=True)(x)
