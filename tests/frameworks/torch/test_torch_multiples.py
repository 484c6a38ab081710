"""Multiples of multiples by tensors and by numbers, on tensors elsewhere: what stands for a tensor
within an operator may not be lost in a product of coefficients, nor be taken for a number that is
written."""

import pytest

torch = pytest.importorskip("torch")

import pylinop.torch as pt
from pylinop._programs import tapes
from pylinop.torch import values

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    monkeypatch.setattr(tapes, "quick", lambda *args: None)
    monkeypatch.setattr(values, "is_elsewhere", lambda tensors: True)


def inverse(a):
    return torch.linalg.inv(a) if torch.is_tensor(a) else pt.inv(a)


FORMULAS = {
    "negated": lambda A, E, G, K, s, t: -(s * A),
    "difference": lambda A, E, G, K, s, t: A - s * E,
    "a number twice": lambda A, E, G, K, s, t: 3.0 * (s * A),
    "within": lambda A, E, G, K, s, t: s * (3.0 * A),
    "two tensors": lambda A, E, G, K, s, t: t * (s * A),
    "over a tensor": lambda A, E, G, K, s, t: (s * A) / t,
    "over itself": lambda A, E, G, K, s, t: (s * A) / s,
    "over a number": lambda A, E, G, K, s, t: (s * A) / 2,
    "a view between": lambda A, E, G, K, s, t: 2 * (s * A).T,
    "a view outside": lambda A, E, G, K, s, t: t * (2 * (s * A)).mT,
    "four": lambda A, E, G, K, s, t: 2 * (s * (t * (3 * A))),
    "a product": lambda A, E, G, K, s, t: (s * A) @ (t * G),
    "diagonals": lambda A, E, G, K, s, t: (s * G) @ (t * G),
    "a sum": lambda A, E, G, K, s, t: 2 * (s * A) - t * (s * G) + 3 * (t * E),
    "a multiple of a sum": lambda A, E, G, K, s, t: s * (A + t * G),
    "one tensor twice": lambda A, E, G, K, s, t: s * (s * E) + A,
    "terms that meet": lambda A, E, G, K, s, t: s * A + t * A - A,
    "noise": lambda A, E, G, K, s, t: s * E + 2 * E + A,
    "a Kron": lambda A, E, G, K, s, t: s * (0.3 * K) + t * E,
    "over two": lambda A, E, G, K, s, t: A / s / t,
    "an inverse": lambda A, E, G, K, s, t: t * inverse(s * A),
    "a negated inverse": lambda A, E, G, K, s, t: -inverse(2 * (s * A)),
    "an inverse of one": lambda A, E, G, K, s, t: inverse(t * inverse(s * A)),
    "squares": lambda A, E, G, K, s, t: (s * A) @ (s * A) + 0.7 * (0.3 * E),
    **{
        f"beside {c}": lambda A, E, G, K, s, t, c=c: c * A + s * (t * E)
        for c in (1.25, 0.8, 1.2578125, -1.25, 0.1)
    },
}
ACTIONS = {
    "product": (lambda op, b: op @ b, lambda a, b: a @ b),
    "solve": (pt.solve, torch.linalg.solve),
    "logdet": (lambda op, b: pt.slogdet(op)[1], lambda a, b: torch.linalg.slogdet(a)[1]),
    "diagonal": (lambda op, b: pt.diagonal(op), lambda a, b: torch.diagonal(a)),
    "trace": (lambda op, b: pt.trace(op), lambda a, b: torch.trace(a)),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_gradients(name, action):
    torch.manual_seed(7)
    draw = lambda *n: torch.randn(*n, dtype=torch.float64, device=DEVICE)
    a, b, c, d = draw(6, 6), draw(6), draw(2, 2), draw(3, 3)
    a, g = a @ a.T + 9 * torch.eye(6, dtype=a.dtype, device=DEVICE), 1 + draw(6) ** 2
    eye = torch.eye(6, dtype=a.dtype, device=DEVICE)
    of, dense = FORMULAS[name], ACTIONS[action][1]
    found = []
    for one in (True, False):
        s, t = (torch.tensor(x, dtype=a.dtype, device=DEVICE).requires_grad_() for x in (0.37, 0.9))
        if one:
            kinds = pt.Dense(a), pt.Identity(6), pt.Diag(g), pt.Kron(pt.Dense(c), pt.Dense(d))
            y = ACTIONS[action][0](of(*kinds, s, t), b)
        else:
            y = dense(of(a, eye, torch.diag(g), torch.kron(c, d), s, t), b)
        grads = torch.autograd.grad(torch.sum(torch.cos(y)), (s, t), allow_unused=True)
        found.append([y.detach(), *(torch.zeros(()) if x is None else x.cpu() for x in grads)])
    for x, y in zip(*found, strict=True):
        assert torch.allclose(x, y, rtol=1e-9, atol=1e-9), (x, y)


@pytest.mark.parametrize("name", ["negated", "difference", "a number twice", "beside 0.1", "four"])
@pytest.mark.parametrize("number", ["float32", "int64", "int16", "bool"])
def test_tensors_of_other_dtypes(name, number):
    """A stand-in is a number of the tensor's dtype, as the operator rounds it; of an integer it
    may be none that is written."""
    single = number == "float32"
    dtype = torch.float32 if single else torch.float64
    a = torch.randn(6, 6, dtype=dtype, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    eye, b = torch.eye(6, dtype=dtype, device=DEVICE), a[0]
    for value in (0, 1, 3):
        s, t = (torch.tensor(x, device=DEVICE).to(getattr(torch, number)) for x in (value, 2))
        kinds = (
            pt.Dense(a),
            pt.Identity(6),
            pt.Diag(b),
            pt.Kron(pt.Dense(a[:2, :2]), pt.Dense(a[:3, :3])),
        )
        got = FORMULAS[name](*kinds, s, t) @ b
        if name == "negated":  # torch negates no truth values
            due = -(s * a) @ b
        else:
            due = FORMULAS[name](a, eye, torch.diag(b), torch.kron(a[:2, :2], a[:3, :3]), s, t) @ b
        assert got.dtype == due.dtype
        assert torch.allclose(
            got, due, rtol=1e-5 if single else 1e-12, atol=1e-5 if single else 1e-12
        )


def test_integers_times_an_array_of_one_number_are_refused():
    s = torch.tensor(3, device=DEVICE)
    with pytest.raises(NotImplementedError, match="integers"):
        (s * pt.Dense(torch.arange(9, device=DEVICE).reshape(3, 3))) @ torch.ones(3, device=DEVICE)


def test_a_complex_number_times_a_multiple_is_refused():
    """No name is complex."""
    s = torch.tensor(0.3, dtype=torch.float64, device=DEVICE)
    a = torch.eye(3, dtype=torch.float64, device=DEVICE)
    with pytest.raises(NotImplementedError, match="coefficient"):
        (1j * (s * pt.Dense(a))) @ torch.ones(3, dtype=torch.complex128, device=DEVICE)
