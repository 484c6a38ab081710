"""Contractions within formulas: what is linear algebra becomes products, scalings, traces, which
the planner sees with all else; the rest is one node."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._operators import einsum

SIZES = (1, 2, 3, 15, 16, 17, 33)


def number(a):
    """Its dtype with as many digits as there are."""
    return {"f": "d", "F": "D"}.get(a.dtype.char, a.dtype.char)


def agrees(text, arrays, got):
    want = np.einsum(text, *(a.astype(number(a)) for a in arrays))
    assert got.shape == want.shape and got.dtype == arrays[0].dtype, text
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=text)
        return
    bound = np.einsum(text, *(np.abs(a).astype("d") for a in arrays))
    terms = 16 * sum(a.size for a in arrays) + 64
    assert np.all(np.abs(got - want) <= terms * np.finfo(got.dtype).eps * bound), text


def some(rng, shape, char):
    a = rng.normal(size=shape) if char in "fdFD" else rng.integers(-4, 5, shape)
    return np.asarray(a + 1j * rng.normal(size=shape) if char in "FD" else a).astype(char)


def network(rng):
    """A random network of numbers, vectors and matrices, at times stacked."""
    count = int(rng.integers(1, 5))
    size = {x: int(rng.choice(SIZES)) for x in "abcd"[:count]} | {"s": 3}
    labels = list("abcd"[:count])
    terms = [
        "".join(rng.choice(labels, rng.integers(0, 3))) for _ in range(int(rng.integers(1, 6)))
    ]
    known = sorted(set("".join(terms)))
    out = "".join(rng.permutation(known)[: rng.integers(0, 3)]) if known else ""
    if rng.random() < 0.3:
        terms = [("s" + t if rng.random() < 0.7 else t) if len(t) == 2 else t for t in terms]
        out = "s" + out if any("s" in t for t in terms) else out
    return ",".join(terms) + "->" + out, [[size[x] for x in t] for t in terms]


@pytest.mark.parametrize("char", "fdFDlb?")
@pytest.mark.parametrize("verify", [False, True])
def test_random_networks(char, verify, rng):
    for _ in range(25 if verify else 60):
        text, shapes = network(rng)
        arrays = [some(rng, s, char) for s in shapes]
        for i in range(1, len(arrays)):
            if shapes[i] == shapes[0] and rng.random() < 0.3:
                arrays[i] = arrays[0]
        leaves = {id(a): pl.lazy(a) for a in arrays}
        with pl.config(check_plans=True, verify=verify):
            agrees(text, arrays, np.asarray(np.einsum(text, *(leaves[id(a)] for a in arrays))))


@pytest.mark.parametrize(
    "text, formula",
    [
        ("ij,jk,k->i", "A1 @ a2"),
        ("ki,k,kj->ij", "(Diag(a0) @ A1).T @ A2"),
        ("i,ij,j->ij", "Diag"),
        ("i,j->ij", "reshape(a0) @ reshape(a1)"),
        ("ij,jk,ki->", "trace("),
        ("ij,jk,ki->i", "diagonal("),
        ("ii,ij->j", "@ diagonal("),
        ("bij,bjk->bik", "A0 @ A1"),
        ("bij,jk->bki", "(A0 @ A1).T"),
        ("bij,bji->b", "trace("),
        ("i j, k l -> (i k) (j l)", "Kron(A0, A1)"),
        ("ij,ij,jk->ik", "(A0 * A1) @ A2"),
    ],
)
def test_what_it_becomes(text, formula, rng):
    size = {"b": 2, "i": 4, "j": 5, "k": 6, "l": 3}
    left = text.split("->")[0].replace(" ", "")
    arrays = [rng.normal(size=[size[x] for x in t]) for t in left.split(",")]
    square = "ii" in left
    arrays = [rng.normal(size=(4, 4)) if square and a.shape == (4, 4) else a for a in arrays]
    made = pl.einsum(text, *map(pl.lazy, arrays))
    assert "einsum" not in repr(made) and formula in repr(made), repr(made)
    np.testing.assert_allclose(made, pl.einsum(text, *arrays), atol=1e-12)


@pytest.mark.parametrize("text", ["ij,kj,lj->ikl", "ij,kj,lj->ik", "aij,ajk->ik", "ij,jk->ijk"])
def test_what_stays_one_node(text, rng):
    size = {"a": 3, "i": 4, "j": 5, "k": 6, "l": 7}
    arrays = [rng.normal(size=[size[x] for x in t]) for t in text.split("->")[0].split(",")]
    made = np.einsum(text, *map(pl.lazy, arrays))
    if text != "ij,kj,lj->ik":  # l is summed first
        assert "einsum" in repr(made)
    np.testing.assert_allclose(made, np.einsum(text, *arrays), atol=1e-12)


def test_operators_keep_their_kind(rng):
    T, d, x = pl.Toeplitz(rng.normal(size=7)), rng.normal(size=7), rng.normal(size=7)
    A = T.toarray()
    made = np.einsum("i,ij->ij", d, T)
    assert isinstance(made, pl.LinearOperator)
    np.testing.assert_allclose(made.toarray(), d[:, None] * A)
    np.testing.assert_allclose(np.einsum("i,ij,j->", d, T, x), d @ A @ x)
    np.testing.assert_allclose(np.einsum("ij,ij->ij", T, T), A * A)
    stays = np.einsum("ij,j,jk->ik", pl.lazy(T), d, pl.lazy(T))
    assert "einsum" not in repr(stays)
    np.testing.assert_allclose(stays, (A * d) @ A)


def test_the_chain_within_a_formula_meets_the_vector_first(rng):
    n = 300
    A, B, x = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=n)
    for made in (
        np.einsum("ij,jk,k->i", pl.lazy(A), B, x),
        np.einsum("ij,jk->ik", pl.lazy(A), B) @ x,
        np.einsum("ij,j->i", np.einsum("ij,jk->ki", pl.lazy(A), B).T, x),
    ):
        flops = float(made.explain().split("total")[1].split()[0])
        assert flops < 5 * n * n
        np.testing.assert_allclose(made, A @ (B @ x))


def test_what_formulas_share_is_computed_once(rng):
    A, B = pl.lazy(rng.normal(size=(400, 400))), pl.lazy(rng.normal(size=(400, 400)))
    one = np.einsum("ij,jk->ik", A, B)
    two = np.einsum("ij,jk,ki->", A, B, A)
    a, b = A.toarray(), B.toarray()
    got = pl.evaluate(one, two, np.einsum("ij,jk->ki", A, B))
    np.testing.assert_allclose(got[0], a @ b)
    np.testing.assert_allclose(got[1], np.trace(a @ b @ a))
    np.testing.assert_allclose(got[2], (a @ b).T)


def test_sizes_of_one_broadcast(rng):
    a, b = rng.normal(size=(4, 1)), rng.normal(size=(5, 6))
    for text in ("ij,jk->ik", "ij,jk->", "ij,jk->j"):
        np.testing.assert_allclose(
            np.einsum(text, pl.lazy(a), pl.lazy(b)), np.einsum(text, a, b), atol=1e-12
        )
    s, t = rng.normal(size=(1, 4, 5)), rng.normal(size=(3, 5, 6))
    np.testing.assert_allclose(np.einsum("sij,sjk->sik", pl.lazy(s), t), s @ t)


def test_gradients_go_through(rng):
    X, w = rng.normal(size=(6, 4)), rng.normal(size=6)

    def f(X, w):
        G = np.einsum("ki,k,kj->ij", X, w, X)
        return np.einsum("ij,ij->", G, G)

    _, (dX, dw) = pl.value_and_grad(f, argnums=(0, 1))(X, w)
    G = X.T @ (w[:, None] * X)
    np.testing.assert_allclose(dX, 4 * w[:, None] * (X @ G))
    np.testing.assert_allclose(dw, 2 * np.einsum("ki,ij,kj->k", X, G, X))


# -- the weighted Gram matrix: one triangle


def weighted(X, w):
    return pl.lazy(X).conj().T @ pl.Diag(w) @ pl.lazy(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 130])
def test_a_weighted_gram_is_one_triangle(n, dtype, rng):
    for m, order in ((1, "C"), (17, "F"), (2100, "C"), (900, "F")):
        X = rng.normal(size=(m, n))
        X = X + 1j * rng.normal(size=(m, n)) if np.dtype(dtype).kind == "c" else X
        X = np.asarray(X.astype(dtype), order=order)
        w = rng.normal(size=m).astype(X.real.dtype)
        w[:: max(m // 5, 1)] = 0
        half = "scaled-gram" in weighted(X, w).explain()
        assert half or m < 900 or n < 100
        assert not (half and n < 16)
        with pl.config(check_plans=True, verify=True):
            got = np.asarray(weighted(X, w))
        wide = X.astype(np.complex128)
        bound = np.abs(wide).T @ (np.abs(w)[:, None] * np.abs(wide))
        want = wide.conj().T @ (w[:, None] * wide)
        assert np.all(np.abs(got - want) <= (2 * m + 16) * np.finfo(dtype).eps * bound)
        if half:
            np.testing.assert_array_equal(got, got.conj().T)


def test_an_equation_with_one_leaf_twice_makes_one_triangle(rng):
    X, w = rng.normal(size=(500, 120)), rng.normal(size=500)
    A, v = pl.lazy(X), pl.lazy(w)
    for text in ("ki,k,kj->ij", "ki,kj,k->ji", "k,ki,kj->ij"):
        given = [A if len(t) == 2 else v for t in text.split("->")[0].split(",")]
        assert "scaled-gram" in np.einsum(text, *given).explain(), text
        np.testing.assert_allclose(np.einsum(text, *given), X.T @ (w[:, None] * X), atol=1e-11)
    for text in ("ki,kj->ij", "ik,jk->ij"):
        assert "syrk" in np.einsum(text, A, A).explain()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_weighted_grams_of_arrays(dtype, rng):
    X, v = some(rng, (1200, 40), np.dtype(dtype).char), some(rng, 1200, np.dtype(dtype).char)
    Y = X.copy()
    want = X.T @ (v[:, None] * X)
    close = 1e-3 if dtype is np.float32 else 1e-10
    for text, given, factor in (
        ("ki,k,kj->ij", (X, v, X), 1),
        ("k,ki,kj->ji", (v, X, X[:]), 1),
        ("ik,jk,k->ij", (X.T, X.T, v), 1),
        ("ki,k,kj,k->ij", (X, v, X, np.ones(1200, dtype)), 1),
        ("ki,k,kj->ij", (X, v, Y), 1),
        ("ki,k,kj->ij", (X, v[:1], X), None),
        ("ki,k,kj->ij", (X[:20], v[:20], X[:20]), None),
        ("ki,k,kj->ij", (X[::-1], v[::-1], X[::-1]), 1),
        ("ki,k,jk->ij", (X[:40], v[:40], X[:40]), None),
    ):
        for _ in range(2):
            got = pl.einsum(text, *given)
            right = want * factor if factor else np.einsum(text, *given)
            np.testing.assert_allclose(got, right, rtol=close, atol=close * np.abs(right).max())
            assert got.dtype == dtype and got.flags.writeable


def test_a_weighted_gram_of_special_numbers(rng):
    X = rng.normal(size=(150, 130))
    for bad in (np.nan, np.inf):
        w = np.ones(150)
        w[7] = bad
        assert "scaled-gram" in weighted(X, w).explain()
        assert not np.isfinite(np.asarray(weighted(X, w))).any()
    w = np.full(150, -1e-300)  # neither over- nor underflows
    made = np.asarray(weighted(1e200 * X, w))
    np.testing.assert_allclose(made, -1e100 * (X.T @ X), rtol=1e-10, atol=1e90)
    stack = rng.normal(size=(3, 40, 17))
    v = rng.normal(size=(3, 40))
    made = pl.lazy(stack).mT @ pl.Diag(v) @ pl.lazy(stack)
    np.testing.assert_allclose(made, stack.mT @ (v[..., None] * stack), atol=1e-12)


def test_the_steps_are_kept(rng):
    A, v = pl.lazy(rng.normal(size=(3, 3))), pl.lazy(rng.normal(size=3))
    np.einsum("ij,jk,k->i", A, A, v)
    found = einsum.steps.cache_info().misses
    np.einsum("ij,jk,k->i", A, A, v)
    assert einsum.steps.cache_info().misses == found


# -- parts of contractions that are one node


WHOLE = [
    ("aij,ajk->ik", ((3, 7, 5), (3, 5, 7))),
    ("aij,kjb,b->aik", ((2, 7, 5), (7, 5, 3), (3,))),
    ("ij,kj,lj->lik", ((4, 5), (4, 5), (6, 5))),
    ("iij,aj->ja", ((4, 4, 6), (6, 6))),
    ("...ij,...kj->...ik", ((2, 1, 3, 4), (5, 3, 4))),
    ("aij,bkj->abik", ((1, 3, 4), (1, 3, 4))),
]


@pytest.mark.parametrize("text, shapes", WHOLE)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("verify", [False, True])
def test_parts_of_a_contraction_are_contractions(text, shapes, dtype, verify, rng):
    arrays = [some(rng, s, np.dtype(dtype).char) for s in shapes]
    arrays = [a[:1] if a.shape[:1] == (2,) and "..." in text else a for a in arrays]
    want = np.einsum(text, *arrays)
    n = want.ndim

    def made():
        return np.einsum(text, *map(pl.lazy, arrays))

    ways = [
        lambda c: np.sum(c),
        lambda c: np.sum(c, axis=0),
        lambda c: np.sum(c, axis=(-1, 0)),
        lambda c: c[(1 % c.shape[0],) * 1],
        lambda c: c[..., -1],
        lambda c: c[tuple(np.minimum(2, np.array(c.shape) - 1))],
        lambda c: c[..., ::-2],
        lambda c: c[-1:, ..., 0],
        lambda c: c[0:0],
        lambda c: c[None, ..., 0],
        lambda c: c[..., [0, -1]],
        lambda c: c[0][..., 0],
        lambda c: np.sum(c[..., 0], axis=-1),
    ]
    if want.shape[-1] == want.shape[-2]:
        ways += [np.linalg.trace, np.linalg.diagonal]
        ways += [np.trace, np.diagonal, lambda c: np.trace(c, 1)] if n == 2 else []
    for k, way in enumerate(ways):
        with pl.config(check_plans=True, verify=verify):
            got = way(made())
            assert isinstance(got, pl.LazyArray) and got.dtype == want.dtype
            np.testing.assert_allclose(got, way(want), rtol=1e-10, atol=1e-11, err_msg=str(k))
    with pytest.raises(IndexError):
        made()[(0,) * n + (0,)]
    with pytest.raises(IndexError):
        made()[want.shape[0]]


def test_a_part_costs_less_than_the_whole(rng):
    a, b = rng.normal(size=(40, 600, 30)), rng.normal(size=(40, 30, 600))
    whole = np.einsum("aij,ajk->ik", pl.lazy(a), pl.lazy(b))
    with pl.config(memory_limit=600 * 600 * 8 // 2):  # which the whole passes
        element, row = whole[3, 4], np.asarray(whole[:2])
        np.testing.assert_allclose(np.trace(whole), np.einsum("aij,aji->", a, b))
    want = np.einsum("aij,ajk->ik", a[:, :4], b)
    np.testing.assert_allclose(element, want[3, 4])
    np.testing.assert_allclose(row, want[:2])
    np.testing.assert_allclose(np.sum(whole, axis=1), np.einsum("aij,ajk->i", a, b))


def test_of_integers_the_whole_is_made(rng):
    a = rng.integers(0, 100, (3, 4, 5)).astype(np.int8)
    c = np.einsum("aij,akj->ik", pl.lazy(a), pl.lazy(a))
    want = np.einsum("aij,akj->ik", a, a)
    assert np.sum(c).dtype == want.sum().dtype
    np.testing.assert_array_equal(np.sum(c), want.sum())
    np.testing.assert_array_equal(np.trace(c), np.trace(want))
    np.testing.assert_array_equal(c[1, 2], want[1, 2])


def test_gradients_of_parts(rng):
    a, b = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5, 4))

    def f(a, b):
        c = np.einsum("aij,ajk->ik", a, b)
        return np.trace(c) + 2 * c[1, 2] + np.sum(c[0])

    _, (da, db) = pl.value_and_grad(f, argnums=(0, 1))(a, b)
    g = np.eye(4)
    g[1, 2] += 2
    g[0] += 1
    np.testing.assert_allclose(da, np.einsum("ik,ajk->aij", g, b))
    np.testing.assert_allclose(db, np.einsum("ik,aij->ajk", g, a))


def test_a_long_chain_is_read_in_little_time():
    """Steps look at the terms along one label, not at all pairs."""
    labels = [str(k) for k in range(401)]
    terms = tuple((a, b) for a, b in zip(labels, labels[1:]))
    found = einsum.steps(terms, (("0",), ("400",)))
    assert found is not None and len(found) == 399


@pytest.mark.parametrize(
    "text, shapes",
    [
        ("i j -> (i j)", [(3, 4)]),
        ("i j -> (j i)", [(3, 4)]),
        ("i j, j -> (j i)", [(3, 4), (4,)]),
        ("i j, j k -> (i k)", [(3, 4), (4, 2)]),
        ("i, j -> (i j)", [(3,), (4,)]),
        ("i j, k l -> (i k) (j l)", [(3, 4), (2, 5)]),
        ("i j, k l -> (i k) (l j)", [(3, 4), (2, 5)]),
        ("i j, k l -> (i k j l)", [(3, 4), (2, 5)]),
        ("i j -> () (i j)", [(3, 4)]),
        ("i j -> 1 i j", [(3, 4)]),
        ("i j, i j -> ()", [(3, 4), (3, 4)]),
        ("i j, k -> (i k) j", [(3, 4), (2,)]),
    ],
)
def test_merged_axes_of_formulas(text, shapes, rng):
    """In formulas of matrices and vectors too, where axes that are merged stayed two."""
    arrays = [rng.normal(size=s) for s in shapes]
    want = pl.einsum(text, *arrays)
    made = pl.einsum(text, *map(pl.lazy, arrays))
    assert made.shape == want.shape
    np.testing.assert_allclose(np.asarray(made), want, rtol=1e-12, atol=1e-12)
    if all(a.ndim == 2 for a in arrays):
        made = pl.einsum(text, *map(pl.Dense, arrays))
        made = made.toarray() if isinstance(made, pl.LinearOperator) else made
        np.testing.assert_allclose(made, want, rtol=1e-12, atol=1e-12)


def test_explaining_records_what_contractions_do(rng):
    A, B = rng.normal(size=(20, 30, 6)), rng.normal(size=(30, 6, 8))
    with pl.explaining() as e:
        np.asarray(np.einsum("abc,bcd->ad", pl.lazy(A), pl.lazy(B)))
        for _ in range(2):  # the second call is a look-up
            pl.einsum("abc,bcd->ad", A, B)
        pl.einsum("(2*o + w), w -> o", A[:, 0, 0], B[:3, 0, 0])
        pl.einsum("ij,j", np.arange(6).reshape(2, 3), np.arange(3))
    assert [p._data["action"] for p in e.plans] == 5 * ["contraction"]
    assert (
        [s["name"] for s in e.plans[0].steps] == ["gemm"] == [s["name"] for s in e.plans[2].steps]
    )
    assert "gemm m20 n8 k180, 1 call" in str(e.plans[0]) and e.plans[0].took > 0
    assert "numpy.einsum's loops" in str(e.plans[4]) and "integer" not in str(e)
    with pl.explaining() as e:  # told by the operator that it is, once
        pl.einsum("(o + w), w -> o", rng.normal(size=5000), rng.normal(size=100))
    assert len(e.plans) == 1 and "contraction" not in str(e)
    X, w = rng.normal(size=(1000, 100)), rng.normal(size=1000)
    with pl.explaining() as e:
        pl.einsum("ki,k,kj->ij", X, w, X)
        np.asarray(pl.einsum("ki,k,kj->ij", pl.lazy(X), pl.lazy(w), pl.lazy(X)))
    assert [s["name"] for s in e.steps] == 2 * ["scaled-gram"]  # one triangle


@pytest.mark.parametrize("run", [False, True])
def test_explain_of_an_array_alone(rng, run):
    """It was a RuntimeError, `no value was set`; so was what an equation leaves as it is."""
    a = pl.lazy(rng.normal(size=(3, 2)))
    for x in (a, pl.einsum("i j -> i j", a)):
        assert isinstance(str(pl.explain(x, run=run)), str)
        assert np.shape(np.asarray(x)) == (3, 2)


def test_explaining_changes_no_result():
    """A number of objects is Python's, without bytes: it was an AttributeError."""
    x = np.array([[1, 2], [3, 4]], object)
    with pl.explaining() as e:
        assert pl.einsum("ij,ij->", x, x) == 30
    assert len(e.plans) == 1
