"""Programs on other devices by the record of what they asked torch for: on a GPU, else on the CPU
with C left out."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pylinop as pl
import pylinop.torch as pt
from pylinop.torch import recorded, values

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    monkeypatch.setattr(values, "is_elsewhere", lambda tensors: True)
    recorded._slot.cache_clear()


@pytest.fixture
def walks(monkeypatch):
    """How often a formula was walked."""
    seen = []
    whole = values._walked
    monkeypatch.setattr(values, "_walked", lambda *args: (seen.append(1), whole(*args))[1])
    return seen


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64, device=DEVICE)


def likelihood(d, U, y):
    quad, logdet = pt.inv_quad_logdet(pt.Diag(d) + pt.LowRank(U), y)
    return quad + logdet


def dense(d, U, y):
    K = torch.diag(d) + U @ U.T
    return y @ torch.linalg.solve(K, y) + torch.logdet(K)


def test_the_third_call_is_by_the_record(walks):
    for _ in range(5):
        arguments = 1 + torch.rand(20, device=DEVICE).double(), normal(20, 3), normal(20)
        torch.testing.assert_close(likelihood(*arguments), dense(*arguments))
    assert len(walks) == 2


def test_gradients_of_any_order(walks):
    y, U = normal(6), normal(6, 2).requires_grad_()
    f = lambda U: likelihood(torch.ones_like(y), U, y)
    for _ in range(3):
        assert torch.autograd.gradcheck(f, U) and torch.autograd.gradgradcheck(f, U)
    count = len(walks)
    torch.autograd.gradgradcheck(f, U)
    assert len(walks) == count


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_other_strides_are_recorded_anew(n, walks):
    """A reshape of what is not contiguous is a copy, which a record of contiguous ones has not."""
    a, x = normal(n, n), normal(n, n, 3)
    for y in (x[..., 0], x[..., 0].contiguous(), x[..., 0].T, x[..., 0]):
        for _ in range(3):
            torch.testing.assert_close(pt.Dense(a) @ y, a @ y)


def test_results_are_the_users(walks):
    """They may be written to: the next ones do not see it. Nor do arguments."""
    d = 1 + torch.rand(4, device=DEVICE).double()
    for _ in range(5):
        for K in (pt.Identity(4) @ pt.Diag(d), pt.Dense(torch.diag(d)), pt.Identity(4) * d[0]):
            found = K.toarray()
            torch.testing.assert_close(found, torch.diag(K.diagonal()))
            found.fill_(7.0)
    assert float(d.min()) >= 1 and float(d.max()) <= 2
    both = pt.program(lambda x: [pl.lazy(x) * 1.0, pl.lazy(x) * 1.0, pl.lazy(np.zeros(4)) * x])
    for _ in range(4):
        first, second, third = both(d)
        first.zero_()
        torch.testing.assert_close(second, d)
        assert not third.any()
        third.fill_(1.0)


def test_arrays_that_a_program_holds_are_read_at_each_call(walks):
    held = np.ones(3)
    f = pt.program(lambda x: pl.Diag(held) @ x)
    x = normal(3)
    for k in range(5):
        held[:] = k
        torch.testing.assert_close(f(x), k * x)
    assert len(walks) == 5


def test_dense_forms_are_announced_at_each_call(walks):
    c = torch.cat([torch.tensor([4.0]), torch.rand(29) / 30]).double().to(DEVICE)
    for _ in range(4):
        with pl.config(warn_limit=100), pytest.warns(pl.MaterializationWarning) as seen:
            found = pt.solve(pt.Toeplitz(c), c)
        assert len(seen) == 1 and seen[0].filename == __file__
        assert "Toeplitz (30, 30)" in str(seen[0].message)
        torch.testing.assert_close(pt.Toeplitz(c) @ found, c)
    assert len(walks) == 4  # of the solve, and of the product
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pt.solve(pt.Toeplitz(c), c)
    with pl.config(memory_limit=100), pytest.raises(pl.MaterializationError):
        pt.solve(pt.Toeplitz(c), c)


def test_options_are_those_of_the_call():
    c = torch.cat([torch.ones(1), torch.full((99,), 1e-30)]).double().to(DEVICE)
    x = torch.cat([torch.zeros(99), torch.ones(1)]).double().to(DEVICE)
    for _ in range(4):
        with pl.config(fft=False):
            assert torch.equal((pt.Toeplitz(c) @ x)[:99], c[1:].flip(0))
        assert not torch.equal((pt.Toeplitz(c) @ x)[:99], c[1:].flip(0))


def test_what_is_large_is_not_kept(walks):
    """An identity of 800 rows is more than a record keeps of one constant."""
    n = 800
    a = normal(n, n) + n * torch.eye(n, device=DEVICE)
    before = len(walks)
    for _ in range(4):
        found = pt.inv(pt.Dense(a)).toarray()
    torch.testing.assert_close(found @ a, torch.eye(n, device=DEVICE).double())
    assert len(walks) == before + 2


def test_what_comes_twice_is_called_once():
    y, d, U = normal(9), 1 + torch.rand(9, device=DEVICE).double(), normal(9, 2)
    f = pt.program(lambda d, U, y: [pl.solve(pl.Diag(d) + pl.LowRank(U), y) for _ in range(2)])
    counts = []

    class Counted(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            counts[-1] += "lu_factor" in str(func) or "lu_solve" in str(func)
            return func(*args, **(kwargs or {}))

    for _ in range(3):
        counts.append(0)
        with Counted():
            one, two = f(d, U, y)
        torch.testing.assert_close(one, torch.linalg.solve(torch.diag(d) + U @ U.T, y))
        assert torch.equal(one, two) and one.data_ptr() != two.data_ptr()
    assert counts[2] <= 3 and counts[2] <= counts[0]


def test_autocast_leaves_the_precision():
    a, x = normal(40, 40).float(), normal(40, 2).float()
    due = a.double() @ (a.double() @ x.double())
    for on in (True, False, True, True, False):  # a record of one is the other's
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=on):
            found = (pt.Dense(a) @ pt.Dense(a)) @ x
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), due, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("f", [lambda h, x: pl.Diag(h) @ x, lambda h, x: (pl.lazy(h) * 2 + 1) * x])
def test_arrays_that_were_thawed_are_read_at_each_call(f):
    """Who owns an array that is read-only may write to it again: pl.freeze promises more."""
    held, x = np.zeros(3), normal(3)
    held.flags.writeable = False
    program = pt.program(lambda x: f(held, x))
    for k in range(5):
        held.flags.writeable = True
        held[:] = k
        held.flags.writeable = False
        torch.testing.assert_close(program(x), due(f, held, x))


def due(f, held, x):
    return torch.from_numpy(np.array(f(held, pl.lazy(x.cpu().numpy())))).to(x.device)


def test_a_frozen_array_is_recorded(walks):
    held, x = pl.freeze(np.arange(3.0)), normal(3)
    program = pt.program(lambda x: pl.Diag(held) @ x)
    for _ in range(5):
        torch.testing.assert_close(program(x), torch.arange(3.0, device=DEVICE).double() * x)
    assert len(walks) == 2


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (16, 17)])
def test_sums_along_axes(axis, kept, shape):
    x = normal(*shape)
    for f in (np.sum, np.mean):
        found = pt.program(lambda x: f(x, axis=axis, keepdims=kept))(x)
        assert np.allclose(found.cpu(), f(x.cpu().numpy(), axis=axis, keepdims=kept))


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_quadratic_forms_of_several_columns(columns):
    d, y = 1 + normal(6).abs(), normal(6, columns)
    quad, logdet = pt.inv_quad_logdet(pt.Diag(d), y)
    torch.testing.assert_close(quad.sum(), (y**2 / d[:, None]).sum())
    torch.testing.assert_close(logdet, d.log().sum())


KEYS = [np.s_[::-1], np.s_[::-2, 1:], np.s_[..., ::-1], np.s_[3:0:-2, None, ::-1], np.s_[1:3:-1]]


@pytest.mark.parametrize("key", KEYS)
def test_steps_backwards(key):
    x = normal(5, 4)
    found = pt.program(lambda x: pl.lazy(x)[key] * 1.0)(x)
    assert np.array_equal(found.cpu(), x.cpu().numpy()[key])


def test_determinants_of_nothing_and_of_nan():
    for K in (pt.Circulant(normal(0)), pt.Diag(normal(0))):
        assert [float(v) for v in pt.slogdet(K)] == [1, 0]
    for d in ([np.nan, 1.0], [0.0, np.nan]):
        found = pt.slogdet(pt.Diag(torch.tensor(d, device=DEVICE)))
        assert all(v.isnan() for v in found)


def test_all_records_keep_so_much(walks, monkeypatch):
    """The oldest one goes, and is made anew."""
    monkeypatch.setattr(recorded, "_records", {})
    programs = [
        pt.program(lambda x, k=k: pl.Diag(pl.freeze(np.full(200, k))) @ x) for k in (1.0, 2.0)
    ]
    x = normal(200)
    for k, f in enumerate(programs):
        for _ in range(4):
            torch.testing.assert_close(f(x), (k + 1) * x)
        (kept,) = recorded._records.values()
        assert kept >= x.nbytes
        monkeypatch.setattr(recorded, "_ALL", kept * 3 // 2)
    assert len(walks) == 4 and len(recorded._records) == 1
    torch.testing.assert_close(programs[0](x), x)
    assert len(walks) == 5


def test_a_call_that_raised_is_no_last_word(walks, monkeypatch):
    x, f = normal(3), pt.program(lambda x: pl.lazy(x) * 2.0)
    f(x)
    whole = values._walked

    def raising(*args):
        raise MemoryError

    monkeypatch.setattr(values, "_walked", raising)
    with pytest.raises(MemoryError):
        f(x)
    monkeypatch.setattr(values, "_walked", whole)
    for _ in range(3):
        torch.testing.assert_close(f(x), 2 * x)
    assert len(walks) == 2


def test_what_a_cuda_graph_captures_is_not_recorded(walks, monkeypatch):
    """Nothing is computed while a graph is captured: constants made there would hold no values.
    What a graph was given by a record stays."""
    arguments = 1 + torch.rand(20, device=DEVICE).double(), normal(20, 3), normal(20)
    with monkeypatch.context() as capturing:
        capturing.setattr(recorded, "_is_captured", lambda device: True)
        for _ in range(3):
            likelihood(*arguments)
    assert len(walks) == 3
    before = set(recorded._captured)
    for _ in range(4):
        likelihood(*arguments)
    assert len(walks) == 5
    monkeypatch.setattr(recorded, "_is_captured", lambda device: True)
    likelihood(*arguments)
    assert len(walks) == 5 and recorded._captured - before
