"""Every kind that has derivatives, and every action, on tensors: values against the dense form,
gradients against pylinop's own (which are tested against differences) and by gradcheck."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from frameworks.framework_kinds import tables

import pylinop as pl
import pylinop.torch as pt

OURS, PLAIN = tables(pt), tables(pl)
NAMES = list(PLAIN.KINDS)
SINGULAR = {"lowrank, U", "offdiag"}


def given(name, dtype="float64"):
    """What makes the operator of tensors, the plain one, tensors, arrays, and what draws more."""
    plain, arrays = PLAIN.KINDS[name](PLAIN.Make(dtype))
    ours, _ = OURS.KINDS[name](OURS.Make(dtype))
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    return ours, plain, tensors, arrays, PLAIN.Make(dtype)


def dense(plain, arrays):
    return np.asarray(pl.lazy(plain(*arrays)).toarray())


def close(got, due):
    scale = max(1.0, float(np.max(np.abs(due), initial=0)))
    got = got.detach().numpy() if isinstance(got, torch.Tensor) else got
    assert np.shape(got) == np.shape(due)
    assert np.max(np.abs(np.asarray(got) - due), initial=0) <= 1e-10 * scale


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name, dtype):
    ours, plain, tensors, arrays, m = given(name, dtype)
    A, K = dense(plain, arrays), ours(*tensors)
    assert K.shape == A.shape and K.dtype == getattr(torch, str(A.dtype))
    x, X, w = (torch.tensor(v) for v in (m.a(A.shape[1]), m.a(A.shape[1], 3), m.a(A.shape[0])))
    close(K.toarray(), A)
    close(K @ x, A @ x.numpy())
    close(K @ X, A @ X.numpy())
    close(w @ K, w.numpy() @ A)
    close(K.H @ w, A.conj().T @ w.numpy())
    close(2 * K.T @ w - K.T @ w, A.T @ w.numpy())
    close(pt.trace(K), np.trace(A))
    close(pt.diagonal(K), np.diagonal(A))
    if A.shape[0] == A.shape[1] and name not in SINGULAR:
        close(pt.solve(K, w), np.linalg.solve(A, w.numpy()))
        close(pt.inv(K) @ w, np.linalg.solve(A, w.numpy()))
        close(pt.slogdet(K).logabsdet, np.linalg.slogdet(A)[1])
        close(pt.det(K), np.linalg.det(A))


def actions(name, shape, m):
    """Real numbers by every action, of a face (pt or pl) and its operator."""
    x, w = m.a(shape[1]), m.a(shape[0])
    real = lambda z: z.real if isinstance(z, torch.Tensor) and z.is_complex() else np.real(z)
    made = lambda face, v: torch.tensor(v) if face is pt else v
    found = {
        "apply": lambda f, K: real(made(f, w) @ (K @ made(f, x))),
        "dense": lambda f, K: real(
            ((K.toarray() if f is pt else K) * made(f, np.outer(w, x))).sum()
        ),
        "trace": lambda f, K: real(f.trace(K) * 1.0),
    }
    if shape[0] == shape[1] and name not in SINGULAR:
        found["solve"] = lambda f, K: real(made(f, w) @ f.solve(K, made(f, x)))
        found["logdet"] = lambda f, K: f.slogdet(K)[1]
    return found


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name, dtype):
    ours, plain, tensors, arrays, m = given(name, dtype)
    shape = dense(plain, arrays).shape
    for f in actions(name, shape, m).values():
        got = torch.autograd.grad(f(pt, ours(*tensors)), tensors, allow_unused=True)
        held = [pl.lazy(a) for a in arrays]
        due = pl.gradients(f(pl, plain(*held)), held, allow_unused=True)
        for g, d, a in zip(got, due, arrays, strict=True):
            close(np.zeros_like(a) if g is None else g, np.asarray(d))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_transforms(name, dtype):
    """Of torch.func, where a program is the dispatcher's operator of its text: as in autograd, and
    in batches as one by one."""
    ours, plain, tensors, arrays, m = given(name, dtype)
    places = [k for k, t in enumerate(tensors) if t.is_floating_point() or t.is_complex()]
    f = actions(name, dense(plain, arrays).shape, m)
    f = f.get("solve", f["apply"])
    one = lambda *t: f(pt, ours(*t))
    due = torch.autograd.grad(one(*tensors), [tensors[k] for k in places], allow_unused=True)
    held = [t.detach() for t in tensors]
    got = torch.func.grad(one, tuple(places))(*held)
    for g, d in zip(got, due, strict=True):
        close(g, np.zeros(g.shape) if d is None else d.numpy())
    pairs = [torch.stack([t, t * (1 + 2.0**-6)]) if t.ndim else torch.stack([t, t]) for t in held]
    dims = tuple(0 if k in places else None for k in range(len(held)))
    given_ = [p if d == 0 else t for p, d, t in zip(pairs, dims, held, strict=True)]
    values, gradients = torch.func.vmap(
        lambda *t: (one(*t), torch.func.grad(one, tuple(places))(*t)), dims
    )(*given_)
    close(values[0], one(*held).numpy())
    last = [x[1] if d == 0 else x for x, d in zip(given_, dims, strict=True)]
    close(values[1], one(*last).numpy())
    for g, d in zip(gradients, torch.func.grad(one, tuple(places))(*last), strict=True):
        close(g[1], d.numpy())


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name):
    ours, plain, tensors, arrays, m = given(name)
    shape = dense(plain, arrays).shape
    for f in actions(name, shape, m).values():
        assert torch.autograd.gradcheck(lambda *t, f=f: f(pt, ours(*t)), tensors, fast_mode=True)


@pytest.mark.parametrize("name", ["dense", "diag", "lowrankupdate, U", "kron", "toeplitz, square"])
def test_gradgradcheck(name):
    ours, plain, tensors, arrays, m = given(name)
    shape = dense(plain, arrays).shape
    for f in actions(name, shape, m).values():
        used = lambda *t, f=f: f(pt, ours(*t))
        assert torch.autograd.gradgradcheck(used, tensors, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_dtypes(dtype):
    d = torch.full((4,), 2.0, dtype=dtype, requires_grad=True)
    x = pt.solve(pt.Diag(d), torch.ones(4, dtype=dtype))
    assert x.dtype == dtype
    x.real.sum().backward()
    assert d.grad.dtype == dtype
    np.testing.assert_allclose(d.grad.numpy(), -0.25 * np.ones(4), rtol=1e-6)
