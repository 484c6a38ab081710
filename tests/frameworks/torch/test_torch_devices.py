"""Tensors that C cannot reach. Without a GPU: on the CPU with C left out, against C; on the meta
device, which has no values; under a dispatch mode that forbids reads by the host."""

import contextlib
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from frameworks.framework_kinds import tables
from torch.utils._python_dispatch import TorchDispatchMode

import pylinop as pl
import pylinop.torch as pt
from pylinop._namespace import arrays
from pylinop._programs import tapes
from pylinop.torch import values

OURS, PLAIN = tables(pt), tables(pl)
NAMES = list(PLAIN.KINDS)
MISSING = (
    "cotangent_of_reflections",
    "band_entry_sums",
    "SparseTriangular",
)
DEVICES = ["cuda"] if torch.cuda.is_available() else ["cpu", "meta"]


class NoReads(TorchDispatchMode):
    """A value that is asked for is an error: on a GPU all that was queued would be waited for."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        assert "_local_scalar_dense" not in name and "nonzero" not in name, name
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def no_waits():
    """On a GPU what waits for it is an error."""
    if DEVICES != ["cuda"]:
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture(autouse=True)
def eigenvalues_wait(monkeypatch):
    """torch has them in no form that does not."""
    whole = arrays._Torch.eigh

    def waiting(self, a):
        mode = torch.cuda.get_sync_debug_mode() if DEVICES == ["cuda"] else 0
        if mode:
            torch.cuda.set_sync_debug_mode("default")
        found = whole(self, a)
        if mode:
            torch.cuda.set_sync_debug_mode(mode)
        return found

    monkeypatch.setattr(arrays._Torch, "eigh", waiting)


@pytest.fixture
def in_place(monkeypatch):
    """Programs go to the tensors' own functions on the CPU too, whatever tapes there are."""
    monkeypatch.setattr(tapes, "quick", lambda *args: None)

    def chosen(on):
        monkeypatch.setattr(values, "is_elsewhere", lambda tensors: on)

    return chosen


def actions(square):
    """Functions of an operator and vectors of as many numbers as it has columns and rows."""
    yield lambda K, x, w: K.toarray()
    yield lambda K, x, w: K @ x
    yield lambda K, x, w: w @ K
    yield lambda K, x, w: K.diagonal()
    if square:
        yield lambda K, x, w: pt.trace(K)
        yield lambda K, x, w: pt.solve(K, x)
        yield lambda K, x, w: pt.slogdet(K).logabsdet
        yield lambda K, x, w: pt.inv_quad_logdet(K, x)[0]


def moved(tensors):
    """The same tensors on the device that is tried."""
    return [x.detach().to(DEVICES[0]).requires_grad_(x.requires_grad) for x in tensors]


def with_gradients(action, ours, tensors, vectors):
    value = action(ours(*tensors), *vectors)
    ones = torch.ones_like(value)
    grads = torch.autograd.grad(value, tensors, ones, allow_unused=True)
    return [value.detach(), *(torch.zeros(()) if g is None else g for g in grads)]


def both(action, ours, tensors, vectors, chosen):
    """Value and gradients by C and in place; None where one of them has none."""
    try:
        chosen(False)
        due = with_gradients(action, ours, tensors, vectors)
        chosen(True)
        there, those = moved(tensors), moved(vectors)
        others = [(x.detach() * 1.001).requires_grad_(x.requires_grad) for x in there]
        with NoReads(), no_waits():
            for x in (others, others, there):  # the third call is by the record of the second
                found = with_gradients(action, ours, x, those)
    except NotImplementedError as error:
        assert any(word in str(error) for word in MISSING) or "no derivative" in str(error), error
        return None
    except np.linalg.LinAlgError:
        return None
    return due, [x.cpu() for x in found]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [k for k in NAMES if k != "lowrank, U"])
def test_values_and_gradients_are_those_of_c(name, dtype, in_place):
    _, arrays = PLAIN.KINDS[name](PLAIN.Make(dtype))
    ours, _ = OURS.KINDS[name](OURS.Make(dtype))
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    m = PLAIN.Make(dtype)
    shape = ours(*tensors).shape
    x, w = torch.tensor(m.a(shape[1])), torch.tensor(m.a(shape[0]))
    compared = 0
    for action in actions(shape[0] == shape[1]):
        pair = both(action, ours, tensors, (x, w), in_place)
        if pair is None:
            continue
        size = max([1.0, *(float(abs(a).max()) for a in pair[0] if a.numel())])
        for due, got in zip(*pair, strict=True):
            assert due.shape == got.shape and due.dtype == got.dtype
            finite = torch.isfinite(due)
            assert torch.equal(finite, torch.isfinite(got))
            assert float(abs((due - got)[finite]).max() if finite.any() else 0) <= 1e-8 * size
        compared += 1
    assert compared or any(k in name for k in ("reflections", "sparsetriangular"))


def test_second_derivatives_and_transforms(in_place):
    in_place(True)
    U = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    d = torch.rand(6, dtype=torch.float64, requires_grad=True)
    s = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = torch.randn(6, dtype=torch.float64)

    def f(U, d, s):
        K = pt.Diag(1 + d) + pt.LowRank(U) + s * pt.Identity(6)
        quad, logdet = pt.inv_quad_logdet(K, y)
        return quad + logdet

    assert torch.autograd.gradcheck(f, (U, d, s))
    assert torch.autograd.gradgradcheck(f, (U, d, s))
    direct = torch.func.hessian(lambda d: f(U.detach(), d, s.detach()))(d.detach())
    dense = torch.autograd.functional.hessian(lambda d: f(U.detach(), d, s.detach()), d.detach())
    assert torch.allclose(direct, dense, atol=1e-10)


def test_dense_forms_are_announced_where_they_are_asked_for(in_place):
    in_place(True)
    n = 40
    c = torch.cat([torch.tensor([4.0]), torch.rand(n - 1) / n]).double().requires_grad_()
    text = rf"Toeplitz \({n}, {n}\) has no structured way on cpu .* {n * n * 8:,} bytes"
    with pl.config(warn_limit=n * n * 8 - 1), pytest.warns(pl.MaterializationWarning) as seen:
        found = pt.solve(pt.Toeplitz(c), torch.ones(n, dtype=torch.float64))
    assert seen[0].filename == __file__ and re.match(text, str(seen[0].message))
    with pl.config(warn_limit=n * n * 8 - 1), pytest.warns(pl.MaterializationWarning) as seen:
        found.sum().backward()  # gradients go by dense forms too
    assert {w.filename for w in seen} == {__file__}
    text = rf"Toeplitz \({n}, {n}\) on meta needs .*memory_limit"
    with pl.config(memory_limit=n), pytest.raises(pl.MaterializationError, match=text):
        pt.logdet(pt.Toeplitz(c.detach().to("meta")))


@pytest.mark.parametrize("assume", [None, "pos"])
def test_solve_and_logdet_factor_once(assume, in_place, monkeypatch):
    seen = []
    for name in ("lu", "cholesky", "solve", "slogdet", "inv"):
        whole = getattr(arrays._Torch, name)

        def counted(self, *args, name=name, whole=whole):
            seen.append(name)
            return whole(self, *args)

        monkeypatch.setattr(arrays._Torch, name, counted)
    in_place(True)
    n = 9
    a, y = torch.randn(n, n, dtype=torch.float64), torch.randn(n, dtype=torch.float64)
    a, U = a @ a.T + n * torch.eye(n), torch.randn(n, 2, dtype=torch.float64)
    c = torch.cat([torch.ones(1), torch.rand(n - 1) / (2 * n)]).double()
    dense = pt.Dense(a) if assume is None else pt.Dense(a, assume)
    for K in (dense, pt.Diag(a.diagonal()) + pt.LowRank(U), pt.Toeplitz(c)):
        seen.clear()
        quad, logdet = pt.inv_quad_logdet(K, y)
        assert seen == (["cholesky"] if assume and K is dense else ["lu"])
        due = K.toarray()
        torch.testing.assert_close(quad, y @ torch.linalg.solve(due, y), rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(logdet, torch.logdet(due), rtol=1e-11, atol=1e-12)
    seen.clear()
    x = a.clone().requires_grad_()
    sum(pt.inv_quad_logdet(pt.Dense(x) if assume is None else pt.Dense(x, assume), y)).backward()
    assert seen == ["lu" if assume is None else "cholesky"]
    seen.clear()
    b = a + torch.rand(n, n)
    found = pt.program(lambda a, b, y: [pl.solve(pl.Dense(x), y) for x in (a, b, a)])(a, b, y)
    assert seen == ["lu", "lu"] and torch.equal(found[0], found[2])
    torch.testing.assert_close(found[1], torch.linalg.solve(b, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_failed_factorisations_are_nan(dtype, in_place):
    """What torch leaves in a factor that failed is no solution."""
    in_place(True)
    a, b = torch.tensor([[1, 2], [2, 1]], dtype=dtype), torch.ones(2, dtype=dtype)
    K = pt.Dense(torch.stack([a, a + 3 * torch.eye(2)]), "pos")
    x = pt.solve(K, b[:, None])
    assert torch.isnan(x[0]).all()
    torch.testing.assert_close(x[1, :, 0], b / 6)
    assert torch.isnan(pt.logdet(K)[0]) and torch.isfinite(pt.logdet(K)[1])
    singular = pt.Dense(torch.ones(2, 2, dtype=dtype))
    assert not torch.isfinite(pt.solve(singular, torch.arange(2).to(dtype))).any()
    assert pt.slogdet(singular).logabsdet == -torch.inf


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "cpu"])
def test_results_are_on_the_device(device):
    U = torch.ones(5, 2, dtype=torch.float64, device=device, requires_grad=True)
    d = torch.ones(5, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.ones(5, dtype=torch.float64, device=device)
    K = pt.Diag(d) + pt.LowRank(U)
    quad, logdet = pt.inv_quad_logdet(K, y)
    found = [quad, logdet, K @ y, K.toarray(), pt.solve(K, y), pt.trace(K), pt.inv(K).diagonal()]
    found += torch.autograd.grad(quad + logdet, (U, d))
    for x in found:
        assert x.device.type == device and x.dtype == torch.float64
    assert [tuple(x.shape) for x in found] == [(), (), (5,), (5, 5), (5,), (), (5,), (5, 2), (5,)]


def test_all_kinds_on_meta():
    """No values are there to be looked at."""
    for name in NAMES:
        ours, arrays = OURS.KINDS[name](OURS.Make("float64"))
        K = ours(*(torch.tensor(a).to("meta") for a in arrays))
        x = torch.ones(K.shape[1], dtype=torch.float64, device="meta")
        assert (K @ x).device.type == "meta" and (K @ x).shape == (K.shape[0],)
        assert K.toarray().shape == tuple(K.shape)
        if K.shape[0] == K.shape[1] and name not in ("lowrank, U", "offdiag"):  # singular
            assert pt.solve(K, x).shape == x.shape
            assert pt.slogdet(K).logabsdet.device.type == "meta"


def test_results_do_not_lie_in_arguments(in_place):
    in_place(True)
    a = torch.ones(3, 3)
    for K in (pt.Dense(a), pt.Dense(a).T):
        K.toarray().zero_()
    assert torch.equal(a, torch.ones(3, 3))


def test_mixed_devices_are_named():
    K = pt.Diag(torch.ones(3))
    with pytest.raises(ValueError, match=r"arrays on cpu.*on meta.*one device"):
        K @ torch.ones(3, device="meta")
    with pytest.raises(ValueError, match=r"arrays on meta.*on cpu"):
        (pt.Diag(torch.ones(3, device="meta")) + pt.LowRank(torch.ones(3, 1))).toarray()


def test_explaining_tells_what_ran(in_place):
    """What was walked, in order, by which rules, and where; before and after it has a record."""
    in_place(True)
    device = DEVICES[0]
    d, U = torch.rand(9, device=device) + 1, torch.rand(9, 2, device=device)
    y = torch.rand(9, device=device)
    A = pt.Diag(d) + pt.LowRank(U)
    for _ in range(4):
        with pl.explaining() as e:
            pt.solve(A, y)
            pl.logdet(pl.Diag(np.ones(3)))
            pt.program(lambda d: np.sum(np.exp(d)))(d)
        solve, *_, last = e.plans
        assert "Woodbury's formula" in solve.splitlines()[0] and f"torch on {device}" in str(solve)
        assert "solve-update" in solve.fired and "checked_update" in solve
        assert "checks    checked: NaN where the test fails" in str(solve)
        names = [step["name"] for step in solve.steps]
        assert names.index("weighted_gram") < names.index("cholesky_solve")
        assert solve.steps[-1]["writes"].endswith("(9, 1)") and solve.took is None
        assert [step["name"] for step in last.steps] == ["exp", "sum"]
        pt.solve(A, y)
    assert len(e.plans) == 3  # outside of a block nothing is told


def test_what_looks_at_values_says_so():
    A = torch.ones(3, 3, device="meta")
    with pytest.raises(NotImplementedError, match=r"eigvalsh|no form|values"):
        pt.eigvalsh(pt.Dense(A))


@pytest.mark.parametrize("name", ["sqrtm", "logm", "cholesky", "pinv"])
def test_functions_from_matrices_to_matrices_say_that_they_have_no_form(name, in_place):
    """Some were those of zeros: of what stands for a tensor while a formula is written."""
    in_place(True)
    A = pt.Dense(2 * torch.eye(4, dtype=torch.float64, device=DEVICES[0]))
    y = torch.ones(4, dtype=torch.float64, device=DEVICES[0])
    for asked in (lambda f: f @ y, lambda f: f.toarray(), pt.trace, lambda f: pt.solve(f, y)):
        with pytest.raises(NotImplementedError, match="no form on the arrays of other libraries"):
            asked(getattr(pt, name)(A))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_sums_of_krons_go_by_eigenvalues(dtype, in_place):
    """No dense form is made, of the value or of the gradient."""
    m, n = 5, 7
    a, b = (torch.randn(k, k, dtype=dtype) for k in (m, n))
    a, b = (x @ x.mH + len(x) * torch.eye(len(x)) for x in (a, b))
    s, y = torch.tensor(0.7, dtype=torch.float64), torch.randn(m * n, dtype=dtype)
    name = "her" if dtype.is_complex else "sym"
    tensors = [x.to(DEVICES[0]).requires_grad_() for x in (a, b, s)]

    def f(a, b, s):
        K = pt.Kron(pt.Dense(a, assume_a=name), pt.Dense(b, assume_a=name))
        quad, logdet = pt.inv_quad_logdet(K + s * pt.Identity(m * n), y.to(a.device))
        return (quad + logdet).real

    in_place(False)
    value = f(*(x.cpu() for x in tensors))
    due = value, *torch.autograd.grad(value, tensors)
    in_place(True)
    with pl.config(memory_limit=(m * n) ** 2 * 8 - 1):
        value = f(*tensors)
        found = value, *torch.autograd.grad(value, tensors)
    # of both ways: m n roundings of the inverse, by the condition of K + s I
    ends = (torch.linalg.eigvalsh(x.detach().cpu()) for x in (a, b))
    eigenvalues = torch.kron(*ends) + s.detach().cpu()
    cond = float(eigenvalues.max() / eigenvalues.min())
    for got, x in zip(found, due, strict=True):
        size = float(x.detach().abs().max())
        apart = float((got.detach().cpu() - x.detach().cpu()).abs().max())
        assert apart <= 20 * m * n * 2.2e-16 * cond * size


TRIANGLE = {
    "solve": lambda K, y: pt.solve(K, y),
    "logdet": lambda K, y: pt.logdet(K),
    "inv": lambda K, y: pt.inv(K).toarray(),
    "both": lambda K, y: sum(pt.inv_quad_logdet(K, y)),
    "shifted solve": lambda K, y: pt.solve(K + 0.3 * pt.Identity(len(y)), y),
    "shifted logdet": lambda K, y: pt.logdet(K + 0.3 * pt.Identity(len(y))),
    "form": lambda K, y: y @ (pt.inv(K) @ y),
}


@pytest.mark.parametrize("assume", ["pos", "sym"])
@pytest.mark.parametrize("name", TRIANGLE)
def test_the_upper_triangle_alone_is_read(name, assume, in_place):
    n = 9
    a, y = torch.randn(n, n, dtype=torch.float64), torch.randn(n, dtype=torch.float64)
    a = a @ a.T + n * torch.eye(n)
    a = torch.triu(a) + torch.tril(torch.full((n, n), 7.0), -1)
    found = []
    for on in (False, True):
        in_place(on)
        device = DEVICES[0] if on else "cpu"
        x = a.clone().to(device).requires_grad_()
        value = TRIANGLE[name](pt.Dense(x, assume), y.to(device))
        found.append((value, *torch.autograd.grad(value.sum(), x)))
    for got, due in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got.cpu(), due, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("definite", [True, False])
def test_cholesky_where_nan_is_asked_for(definite, in_place, monkeypatch):
    """What is symmetric, and not known to be definite, goes by LU else."""
    seen = []
    for name in ("lu", "cholesky"):
        whole = getattr(arrays._Torch, name)
        monkeypatch.setattr(
            arrays._Torch, name, lambda self, a, n=name, f=whole: (seen.append(n), f(self, a))[1]
        )
    in_place(True)
    c = torch.tensor([3.0 if definite else 0.5, 1.0, 0.2, 0.0, 0.0], dtype=torch.float64)
    y = torch.randn(5, dtype=torch.float64)
    due = torch.linalg.solve(pt.Toeplitz(c).toarray(), y)
    seen.clear()
    torch.testing.assert_close(pt.solve(pt.Toeplitz(c), y), due, rtol=1e-11, atol=1e-12)
    assert seen == ["lu"]
    with pl.config(not_definite="nan"):
        x = pt.solve(pt.Toeplitz(c), y)
    assert seen == ["lu", "cholesky"]
    if definite:
        torch.testing.assert_close(x, due, rtol=1e-11, atol=1e-12)
    else:
        assert torch.isnan(x).all()


KERNELS = {
    "rbf": (),
    "matern12": (),
    "matern32": (),
    "matern52": (),
    "rational_quadratic": ("alpha",),
    "periodic": ("period",),
    "polynomial": ("offset",),
    "linear": (),
}


@pytest.mark.parametrize("lengths", [0, 1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_those_of_c(name, lengths, in_place):
    """Values, and gradients by points and numbers; of one set of points without lengths."""
    own = torch.Generator().manual_seed(int(torch.randint(1 << 30, ())))
    draw = lambda *shape: torch.rand(*shape, dtype=torch.float64, generator=own)
    numbers = {"variance": 0.5 + draw(())} if lengths else {}
    numbers |= {k: 0.5 + draw(()) for k in KERNELS[name]}
    if lengths:
        numbers["length_scale"] = 0.5 + (draw(()) if lengths == 1 else draw(lengths))
    points = [draw(7, 3), draw(5, 3)] if lengths else [draw(7, 3)]
    more = {"degree": 3} if name == "polynomial" else {}
    tensors, b = [*points, *numbers.values()], draw(points[-1].shape[0], 2)

    def asked(b, *tensors):
        given = dict(zip(numbers, tensors[len(points) :], strict=True))
        K = pt.Kernel(name, *tensors[: len(points)], **given, **more)
        whole = K.toarray()
        return (K @ b).square().sum() + (whole * torch.cos(whole)).sum()

    found = []
    for on in (False, True):
        in_place(on)
        device = DEVICES[0] if on else "cpu"
        x, v = [t.clone().to(device).requires_grad_() for t in tensors], b.to(device)
        with NoReads() if on else contextlib.nullcontext(), no_waits():
            for _ in range(3 if on else 1):
                value = asked(v, *x)
                result = [value.detach(), *torch.autograd.grad(value, x)]
        found.append(result)
    for got, due in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got.cpu(), due, rtol=1e-9, atol=1e-10)


def test_gradients_by_a_kernels_numbers(in_place):
    in_place(True)
    x, y = torch.randn(6, 2, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    length = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)
    noise = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)

    def f(length, noise):
        K = pt.Kernel("rbf", x, length_scale=length) + noise * pt.Identity(6)
        return sum(pt.inv_quad_logdet(K, y))

    assert torch.autograd.gradcheck(f, (length, noise))


def test_what_a_graph_is_given_begins_its_memory(in_place):
    """Compiled code relies on the alignment that the operator promised: a piece of a longer
    convolution, which begins at 199 numbers, was refused by it on a GPU."""
    in_place(True)
    column, x = (torch.rand(200, dtype=torch.float64, device=DEVICES[0]) for _ in range(2))
    seen = []

    def backend(graph, inputs):
        return lambda *given: seen.extend(graph(*given)) or tuple(seen)

    torch.compile(lambda c, x: pt.Toeplitz(c) @ x, fullgraph=True, backend=backend)(column, x)
    assert [y.storage_offset() for y in seen] == [0]
    assert seen[0].untyped_storage().nbytes() == seen[0].nbytes
    at = torch.arange(200, device=column.device)
    torch.testing.assert_close(seen[0], column[abs(at[:, None] - at)] @ x)


@pytest.mark.skipif(DEVICES != ["cuda"], reason="asks for a GPU")
def test_cuda_graphs():
    """What is captured computes anew at each replay, in one launch; eager calls before it is
    replayed are right too."""
    dense = lambda d, U, y: torch.linalg.solve(torch.diag(d) + U @ U.T, y)
    ours = lambda d, U, y: pt.solve(pt.Diag(d) + pt.LowRank(U), y)

    def drawn(grad=False):
        made = 1 + torch.rand(150), torch.randn(150, 4), torch.randn(150)
        return [x.double().cuda().requires_grad_(grad) for x in made]

    for warm in (1, 3):
        given = drawn()
        for _ in range(warm):
            ours(*given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = ours(*given)
        for _ in range(3):
            torch.testing.assert_close(ours(*(x := drawn())), dense(*x))
        for x, y in zip(given, drawn(), strict=True):
            x.copy_(y)
        graph.replay()
        torch.testing.assert_close(out, dense(*given))
    called = torch.cuda.make_graphed_callables(ours, tuple(drawn(True)))
    for _ in range(3):
        x = drawn(True)
        found, due = (torch.autograd.grad(f(*x).square().sum(), x) for f in (called, dense))
        torch.testing.assert_close(found, due)


@pytest.mark.skipif(DEVICES != ["cuda"], reason="asks for a GPU")
def test_constants_of_a_record_are_waited_for_on_another_stream():
    at = torch.arange(300, device="cuda")
    for n in range(200, 220):
        c, x = (torch.rand(n, dtype=torch.float64, device="cuda") for _ in range(2))
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(3_000_000)
            pt.logdet(pt.Toeplitz(c) + 300 * pt.Identity(n))
            pt.logdet(pt.Toeplitz(c) + 300 * pt.Identity(n))
        with torch.cuda.stream(torch.cuda.Stream()):
            found = pt.logdet(pt.Toeplitz(c) + 300 * pt.Identity(n))
        torch.cuda.synchronize()
        T = c[abs(at[:n, None] - at[:n])] + 300 * torch.eye(n, device="cuda").double()
        torch.testing.assert_close(found, torch.logdet(T))
        assert torch.isfinite(pt.Toeplitz(c) @ x).all()
