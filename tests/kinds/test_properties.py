"""Random expressions over all kinds against the dense oracle, within the promised error."""

import pickle

import numpy as np
import ref
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, arrange, leaf, values

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint64"]


@st.composite
def expressions(draw, m, n, depth, dtypes, batches=((),)):
    """A description of shape (..., m, n) and depth at most `depth`."""
    integer = np.dtype(dtypes[0]).kind in "iu"

    def sub(p, q, d=depth - 1):
        return draw(expressions(p, q, d, dtypes, batches))

    heads = ["leaf"]
    if depth > 0:
        heads += ["Sum", "Sub", "Product", "Scaled", "Neg", "T", "H", "Conj", "Kron"]
        heads += ["Power"] if m == n and depth == 1 else []
        heads += ["Inverse"] if m == n and not integer else []
    head = draw(st.sampled_from(heads))
    seed = np.random.default_rng(draw(st.integers(0, 2**20)))
    dtype = draw(st.sampled_from(dtypes))
    if head == "leaf" or head == "Inverse":
        kinds = [
            k
            for k in ref.KINDS
            if leaf(k, np.random.default_rng(0), m, n, dtype, invertible=head != "leaf")
        ]
        kind = draw(st.sampled_from(kinds))
        batch = () if kind.startswith("Sparse") else draw(st.sampled_from(batches))
        layout = draw(st.sampled_from(LAYOUTS))
        d = leaf(kind, seed, m, n, dtype, batch, layout, invertible=head != "leaf")
        if head == "leaf":
            return d
        for turn in draw(st.lists(st.sampled_from(["T", "H", "Conj"]), max_size=1)):
            d = (turn, d)
        return ("Inverse", d)
    if head in ("Sum", "Sub"):
        return (head, sub(m, n), sub(m, n))
    if head == "Product":
        k = draw(st.integers(1, 5))
        return (head, sub(m, k), sub(k, n))
    if head == "Scaled":
        scalars = (
            [2, 3, 1, 0] if integer else [2, -1, 0.5, 1 - 2j, 0, np.float32(2), np.complex64(1j)]
        )
        return (head, draw(st.sampled_from(scalars)), sub(m, n))
    if head == "Kron":
        p = draw(st.sampled_from([k for k in range(1, m + 1) if m % k == 0]))
        q = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
        return (head, sub(p, q), sub(m // p, n // q))
    if head == "Power":
        return (head, sub(m, n), draw(st.integers(0, 3)))
    return (head, sub(n, m) if head in "TH" else sub(m, n))


sizes = st.integers(1, 6)


@st.composite
def cases(draw, dtypes, batches=((),)):
    m = draw(sizes)
    n = draw(st.sampled_from([m, draw(sizes)]))
    e = draw(expressions(m, n, draw(st.integers(0, 4)), dtypes, batches))
    return e, np.random.default_rng(draw(st.integers(0, 2**20)))


def product(A, a, d, x, layout="C"):
    tol = ref.tolerance(d, x) @ np.abs(x)
    ref.check(A @ arrange(x, layout), a @ x, ref.dtype(d, x), tol)


@given(cases(ref.FLOATS), st.sampled_from(ref.FLOATS), st.sampled_from(LAYOUTS))
def test_products(case, dtype, layout):
    d, rng = case
    A, a = ref.build(d), ref.dense(d)
    m, n = a.shape
    assert A.shape == a.shape and A.dtype == ref.dtype(d)
    for shape in ((n,), (n, 2), (3, n, 1)):
        product(A, a, d, values(rng, shape, dtype), layout)
    for shape in ((m,), (2, m)):
        y = values(rng, shape, dtype)
        ref.check(arrange(y, layout) @ A, y @ a, ref.dtype(d, y), np.abs(y) @ ref.tolerance(d, y))
        product(A.H, ref.adj(a), ("H", d), y.T)
        product(A.T, a.T, ("T", d), y.T)
    y = values(rng, (m,), dtype)
    ref.check(A.rmatvec(y), ref.adj(a) @ y, ref.dtype(d, y), ref.tolerance(d, y).T @ np.abs(y))


@given(cases(ref.FLOATS))
def test_forms(case):
    d, rng = case
    A, a, tol = ref.build(d), ref.dense(d), ref.tolerance(d)
    m, n = a.shape
    dt = ref.dtype(d)
    ref.check(A.toarray(), a, dt, tol)
    ref.check(A.H.toarray(), ref.adj(a), dt, tol.T)
    for k in range(1 - m, n):
        ref.check(A.diagonal(k), np.diagonal(a, k), dt, np.diagonal(tol, k))
    ref.check(A.trace(), np.trace(a), dt, 2 * np.trace(tol))
    for i in range(m):
        ref.check(A[i, -1], a[i, -1], dt, tol[i, -1])
    B = pickle.loads(pickle.dumps(A))
    assert type(B) is type(A) and repr(B) == repr(A)
    np.testing.assert_array_equal(B.toarray(), A.toarray())


@given(cases(ref.FLOATS, ((), (2,), (3, 1))))
@settings(max_examples=80)
def test_batches(case):
    d, rng = case
    A, a, tol = ref.build(d), ref.dense(d), ref.tolerance(d)
    m, n = a.shape[-2:]
    assert A.shape == a.shape
    ref.check(A.toarray(), a, None, tol)
    ref.check(A.diagonal(), np.diagonal(a, 0, -2, -1), None, np.diagonal(tol, 0, -2, -1))
    for shape in ((n,), (n, 2), (2, n, 1)):
        product(A, a, d, values(rng, shape, "complex128"))
    y = values(rng, (2, m), "float32")
    ref.check(y @ A, y @ a, None, np.abs(y) @ ref.tolerance(d, y))


@given(st.sampled_from(INTEGERS).flatmap(lambda t: st.tuples(st.just(t), cases([t]))))
def test_integers_are_exact(drawn):
    dtype, (d, rng) = drawn
    A, dt = ref.build(d), np.dtype(dtype)
    a = ref.dense(d, dt)
    m, n = a.shape
    x, y = values(rng, (n, 2), dtype), values(rng, (m,), dtype)
    ref.check(A @ x, a @ x, dt)
    ref.check(A @ x[:, 0], a @ x[:, 0], dt)
    ref.check(y @ A, y @ a, dt)
    ref.check(A.rmatvec(y), a.T @ y, dt)
    if A.dtype == dt:
        ref.check(A.toarray(), a, dt)
        ref.check(A.diagonal(), np.diagonal(a), dt)
        ref.check(A[m - 1, 0], a[m - 1, 0], dt)
        assert A.trace() == np.trace(a)
