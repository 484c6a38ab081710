"""Gradients by stacks: kinds with batches of parameters, some of them shared, are compared with the
gradients of their elements one by one."""

import numpy as np
import pytest
from gradients.test_gradients_of_kinds import FAMILIES, KINDS, Make

import pylinop as pl

N = 7
B = 3
ONE_ONLY = {"sparse", "sparsetriangular"}  # a pattern, with one set of numbers
NONE = {"multitoeplitz", "full"}  # without sizes all dimensions are levels; one number


def stacks(name, dtype):
    """(make, arrays for each element)."""
    elements = []
    for k in range(B):
        m = Make("float64" if dtype == "f" else "complex128")
        m.rng = np.random.default_rng(50 + k)
        make, arrays = KINDS[name](m)
        elements.append(arrays)
    return make, elements


def shared_or_not(count):
    """All parameters have the batch; only the first; all but the first."""
    found = [(True,) * count]
    if count > 1:
        found += [(True,) + (False,) * (count - 1), (False,) + (True,) * (count - 1)]
    return found


def compare(f, elements, batched, rtol=1e-9):
    """The gradients of f summed over a stack against those of its elements."""
    each = [
        [own if b else first for own, first, b in zip(one, elements[0], batched, strict=True)]
        for one in elements
    ]
    stacked = [
        np.stack([one[i] for one in each]) if b else each[0][i] for i, b in enumerate(batched)
    ]
    every = tuple(range(len(stacked)))
    value, found = pl.value_and_grad(lambda *p: np.sum(f(*p)), every)(*stacked)
    singles = [pl.value_and_grad(lambda *p: np.sum(f(*p)), every)(*one) for one in each]
    whole = sum(v for v, _ in singles)
    assert np.allclose(value, whole, rtol=rtol, atol=rtol * abs(whole) + 1e-12)
    for i, b in enumerate(batched):
        parts = [g[i] for _, g in singles]
        wanted = np.stack(parts) if b else sum(parts)
        assert found[i].shape == stacked[i].shape == wanted.shape
        scale = max(np.abs(g).max(initial=0.0) for _, gs in singles for g in gs)
        assert np.abs(found[i] - wanted).max(initial=0.0) <= rtol * max(scale, 1e-3), i


def size_of(make, arrays):
    return pl.evaluate(make(*map(pl.lazy, arrays))).shape


def names():
    return [n for n in KINDS if n.split(",")[0] not in ONE_ONLY and n not in NONE]


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", names())
def test_applied_and_dense(name, dtype):
    make, elements = stacks(name, dtype)
    rows, cols = size_of(make, elements[0])
    m = Make("float64" if dtype == "f" else "complex128")
    x, w, v = m.a(cols, 2), m.a(rows, 2), m.a(rows, cols)
    for batched in shared_or_not(len(elements[0])):
        compare(lambda *p: np.real(np.conj(w) * (make(*p) @ x)), elements, batched)
        compare(lambda *p: np.abs(make(*p) * v) ** 2, elements, batched)
        compare(lambda *p: np.real(pl.diagonal(make(*p), 1)), elements, batched)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", names())
def test_solved_and_determinant(name, dtype):
    make, elements = stacks(name, dtype)
    rows, cols = size_of(make, elements[0])
    if rows != cols or name in ("lowrank, U", "offdiag"):
        pytest.skip("not square, or singular")
    m = Make("float64" if dtype == "f" else "complex128")
    b, w = m.a(rows, 2), m.a(rows, 2)
    for batched in shared_or_not(len(elements[0])):
        compare(lambda *p: np.real(np.conj(w) * pl.solve(make(*p), b)), elements, batched)
        compare(lambda *p: pl.slogdet(make(*p))[1] ** 2, elements, batched)
        compare(lambda *p: np.abs(pl.diagonal(pl.inv(make(*p)))) ** 2, elements, batched)
        compare(lambda *p: np.abs(pl.trace(pl.inv(make(*p)))) ** 2, elements, batched)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels(family):
    rng = np.random.default_rng(3)
    own = FAMILIES[family]
    elements = [
        [rng.standard_normal((N, 2)), rng.uniform(0.5, 1.5, 2), np.array(0.7 + 0.1 * k)]
        + [v * (1 + 0.1 * k) for v in own.values()]
        for k in range(B)
    ]
    b, w = rng.standard_normal((N, 2)), rng.standard_normal((N, 2))

    def kernel(x, length, variance, *more):
        given = dict(zip(own, more, strict=True))
        return pl.Kernel(family, x, variance=variance, length_scale=length, **given)

    noise = 0.3 * pl.Identity(N)
    for batched in shared_or_not(len(elements[0])):
        compare(lambda *p: w * (kernel(*p) @ b), elements, batched)
        compare(lambda *p: w * pl.solve(kernel(*p) + noise, b), elements, batched, rtol=1e-7)
        compare(lambda *p: pl.logdet(kernel(*p) + noise), elements, batched, rtol=1e-7)


def test_one_vector_for_a_stack():
    m = Make("float64")
    elements = [[m.square(N), m.a(N)] for _ in range(B)]
    for batched in ((True, False), (False, True)):
        if batched[0]:
            compare(lambda a, x: (pl.Dense(a) @ x) ** 2, elements, batched)
            compare(lambda a, x: (x @ pl.Dense(a)) ** 2, elements, batched)
    columns = [[m.square(N), m.a(N, 2)] for _ in range(B)]
    compare(lambda a, x: (pl.lazy(a) @ x) ** 2, columns, (False, True))
    compare(lambda a, x: pl.solve(pl.lazy(a), x) ** 2, columns, (False, True))
    compare(lambda a, x: pl.solve(pl.lazy(a), x) ** 2, columns, (True, False))


@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (0,), (1,)])
def test_several_and_empty_batches(shape):
    rng = np.random.default_rng(9)
    d, U = 3 + rng.random((*shape, N)), rng.standard_normal((3, N, 2))
    if shape == (0,):
        U = U[:1]

    def f(d, U):
        K = pl.Diag(d) + pl.LowRank(U)
        return np.sum(pl.logdet(K)) + np.sum(pl.solve(K, np.ones((N, 1))) ** 2)

    if shape == (1,):
        U = U[0]
    value, (gd, gU) = pl.value_and_grad(f, (0, 1))(d, U)
    batch = np.broadcast_shapes(shape, U.shape[:-2])
    wanted_d, wanted_U = np.zeros_like(np.broadcast_to(d, (*batch, N))), np.zeros(batch + (N, 2))
    whole = 0.0
    for at in np.ndindex(*batch):
        one, other = np.broadcast_to(d, (*batch, N))[at], np.broadcast_to(U, (*batch, N, 2))[at]
        v, (wanted_d[at], wanted_U[at]) = pl.value_and_grad(f, (0, 1))(one, other)
        whole += v

    def summed(g, like):
        g = g.sum(axis=tuple(range(g.ndim - like.ndim)))
        axes = tuple(k for k, s in enumerate(like.shape) if s == 1 != g.shape[k])
        return g.sum(axis=axes, keepdims=True)

    assert np.isclose(value, whole)
    assert gd.shape == d.shape and gU.shape == U.shape
    assert np.allclose(gd, summed(wanted_d, d)) and np.allclose(gU, summed(wanted_U, U))


@pytest.mark.parametrize("name", names())
def test_second_derivatives(name):
    make, elements = stacks(name, "f")
    rows, n = size_of(make, elements[0])
    b = np.random.default_rng(1).standard_normal((n, 1))

    def f(*p):
        K = make(*p)
        value = np.sum((K @ b) ** 3)
        if rows != n or name in ("lowrank, U", "offdiag"):
            return value
        return value / 1e3 + np.sum(pl.solve(K, b) ** 2) + np.sum(pl.slogdet(K)[1])

    every = tuple(range(len(elements[0])))
    for batched in shared_or_not(len(elements[0])):
        each = [
            [own if own_one else first for own, first, own_one in zip(*sets, strict=True)]
            for sets in ((one, elements[0], batched) for one in elements)
        ]
        stacked = [
            np.stack([one[i] for one in each]) if own_one else each[0][i]
            for i, own_one in enumerate(batched)
        ]
        rng = np.random.default_rng(2)
        way = tuple(rng.standard_normal(a.shape) for a in stacked)
        ways = [[w[k] if own else w for w, own in zip(way, batched, strict=True)] for k in range(B)]
        if name.startswith("reflections"):
            continue  # of first order, also of one
        found = pl.hvp(f, every)(*stacked, way)
        parts = [pl.hvp(f, every)(*one, tuple(w)) for one, w in zip(each, ways, strict=True)]
        for i, own in enumerate(batched):
            own_parts = [g[i] for g in parts]
            wanted = np.stack(own_parts) if own else sum(own_parts)
            scale = max(1e-3, *(np.abs(g).max() for g in own_parts))
            assert np.abs(found[i] - wanted).max() <= 1e-8 * scale


def test_traces_and_diagonals_of_stacks_are_deferred():
    rng = np.random.default_rng(4)
    a = rng.standard_normal((2, 3, N, N + 1))
    x = pl.lazy(a)
    for offset in (-8, -2, 0, 1, 9):
        for f in (np.linalg.diagonal, np.linalg.trace):
            found = f(x, offset=offset)
            assert isinstance(found, pl.LazyArray) and found.shape == f(a, offset=offset).shape
            assert np.allclose(found, f(a, offset=offset))
        assert np.allclose(pl.diagonal(x, offset), np.linalg.diagonal(a, offset=offset))
    assert np.allclose(pl.trace(x), np.linalg.trace(a))
    assert np.allclose(np.trace(x), np.trace(a)) and np.allclose(x.diagonal(), a.diagonal())
    ints = rng.integers(-5, 5, (2, 4, 4)).astype(np.int8)
    assert np.linalg.trace(pl.lazy(ints)).dtype == np.linalg.trace(ints).dtype
    assert (np.asarray(np.linalg.trace(pl.lazy(ints))) == np.linalg.trace(ints)).all()
