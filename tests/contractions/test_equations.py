"""Equations over names, groups and indices: against Python loops and NumPy's views; sizes that
follow, errors that say the axis; LazyArrays, operators, plans, pickles, threads, memory."""

import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pylinop as pl


def looped(terms, out, sizes, arrays, outside):
    """`terms`: of each operand its axes as (constant, {label: coefficient})."""
    labels = sorted(sizes)
    made = np.zeros([sizes[x] for x in out])
    for at in itertools.product(*(range(sizes[x]) for x in labels)):
        where = dict(zip(labels, at))
        value = 1.0
        for axes, a in zip(terms, arrays):
            index = [c + sum(k * where[x] for x, k in t.items()) for c, t in axes]
            beyond = any(not 0 <= i < n for i, n in zip(index, a.shape))
            if beyond and outside == 0:
                value = 0.0
            else:
                value *= a[tuple(i % n for i, n in zip(index, a.shape))]
        made[tuple(where[x] for x in out)] += value
    return made


@st.composite
def index_equations(draw):
    labels = "owxy"[: draw(st.integers(1, 4))]
    sizes = {x: draw(st.integers(1, 4)) for x in labels}
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        axes = []
        for _ in range(draw(st.integers(1, 2))):
            t = {x: draw(st.integers(-3, 3)) for x in draw(st.sets(st.sampled_from(labels)))}
            t = {x: k for x, k in t.items() if k} or {labels[0]: 1}
            axes.append((draw(st.integers(-2, 4)), t))
        terms.append(axes)
    known = sorted({x for axes in terms for _, t in axes for x in t})
    out = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
    outside = draw(st.sampled_from([None, 0, "wrap"]))
    return {x: sizes[x] for x in known}, terms, out, outside, draw(st.integers(0, 2**31))


def written(c, t):
    parts = [f"{k}*{x}" if k >= 0 else f"- {-k}*{x}" for x, k in t.items()]
    return "(" + " + ".join(parts).replace("+ -", "-") + (f" + {c}" if c >= 0 else f" - {-c}") + ")"


@given(index_equations())
@settings(max_examples=300, deadline=None)
def test_index_equations(problem):
    sizes, terms, out, outside, seed = problem
    rng = np.random.default_rng(seed)
    arrays, inside = [], True
    for axes in terms:
        shape = []
        for c, t in axes:
            ends = [k * (sizes[x] - 1) for x, k in t.items()]
            low, high = c + sum(min(0, e) for e in ends), c + sum(max(0, e) for e in ends)
            n = (
                int(rng.integers(1, 8))
                if outside is not None
                else max(1, high + 1 + rng.integers(0, 2))
            )
            inside = inside and low >= 0 and high < n
            shape.append(n)
        arrays.append(rng.normal(size=shape))
    text = ", ".join(" ".join(written(c, t) for c, t in axes) for axes in terms)
    text += " -> " + " ".join(out)
    if outside is None and not inside:
        with pytest.raises(ValueError, match="runs from"):
            pl.einsum(text, *arrays, sizes=sizes)
        return
    got = pl.einsum(text, *arrays, sizes=sizes, outside=outside)
    np.testing.assert_allclose(
        got, looped(terms, out, sizes, arrays, outside), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_of_images(stride, dilation, dtype, rng):
    x = rng.normal(size=(2, 17, 16, 3)).astype(dtype)
    w = rng.normal(size=(3, 2, 3, 5)).astype(dtype)
    text = f"b ({stride}*y + {dilation}*i) ({stride}*x + {dilation}*j) c, i j c d -> b y x d"
    got = pl.einsum(text, x, w)
    seen = np.lib.stride_tricks.sliding_window_view(
        x, (1 + 2 * dilation, 1 + dilation), axis=(1, 2)
    )[:, ::stride, ::stride, :, ::dilation, ::dilation]
    np.testing.assert_allclose(got, np.einsum("byxcij,ijcd->byxd", seen, w), rtol=1e-3, atol=1e-4)
    assert got.shape == (2, (17 - 1 - 2 * dilation) // stride + 1, (15 - dilation) // stride + 1, 5)
    flat = "b (y+i) (x+j) c, i j c d -> b y x d"
    same = pl.einsum(flat, x, w, sizes={"y": 17, "x": 16}, outside=0)
    padded = np.pad(x, ((0, 0), (0, 2), (0, 1), (0, 0)))
    np.testing.assert_allclose(same, pl.einsum(flat, padded, w), rtol=1e-3, atol=1e-4)


def test_groups(rng):
    x = rng.normal(size=(2, 12, 5))
    got = pl.einsum("b (h w) c -> h (b c) 1 w", x, sizes={"h": 3})
    np.testing.assert_array_equal(
        got, x.reshape(2, 3, 4, 5).transpose(1, 0, 3, 2).reshape(3, 10, 1, 4)
    )
    heads = pl.einsum(
        "b (head k), b (head k) -> b head", *rng.normal(size=(2, 4, 6)), sizes={"k": 2}
    )
    assert heads.shape == (4, 3)
    assert pl.einsum("1 a, b 1 -> a b", np.ones((1, 3)), np.ones((2, 1))).shape == (3, 2)
    np.testing.assert_array_equal(
        pl.einsum("(h w) -> h w", x[:, :, 0].T[::-1].T[0], sizes={"w": 4}),
        x[0, ::-1, 0].reshape(3, 4),
    )


@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2), (3, 1, 5, 2), (3, 0, 2)])
def test_an_ellipsis_merged_in_the_result(shape, rng):
    x = rng.normal(size=shape)
    for text, want in [
        ("b ... -> b (...)", x.reshape(3, -1) if x.size else x.reshape(3, 0)),
        ("b ... c -> (b ...) c", x.reshape(-1, 2)),
        ("b ... c -> (... c) b", np.moveaxis(x, 0, -1).reshape(-1, 3)),
        ("b ... c -> c 1 (...) b", np.moveaxis(x, (-1, 0), (0, -1)).reshape(2, 1, x.size // 6, 3)),
    ]:
        np.testing.assert_array_equal(pl.einsum(text, x), want)
        deferred = pl.einsum(text, pl.lazy(x))
        assert isinstance(deferred, pl.LazyArray)
        np.testing.assert_array_equal(deferred.toarray(), want)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("batch, size", [(8, 36), (7, 36), (1, 90), (5, 33)])
@pytest.mark.parametrize("step, out", [(1, "b y x d"), (1, "d b x y"), (2, "y b d x")])
def test_windows_are_copied_in_parts(batch, size, step, out, dtype, rng):
    x = (rng.normal(size=(batch, size, size, 3)) * (1 + 2j * (dtype == "c16"))).astype(dtype)
    w = (rng.normal(size=(5, 5, 3, 32)) * (1 + 2j * (dtype == "c16"))).astype(dtype)
    seen = pl.view(x, f"b ({step}*y + i) ({step}*x + j) c -> b y x i j c", sizes={"i": 5, "j": 5})
    want = np.tensordot(seen, w, 3).transpose(["byxd".index(k) for k in out.split()])
    text = f"b ({step}*y + i) ({step}*x + j) c, i j c d -> {out}"
    with pl.config(verify=True):
        got = pl.einsum(text, x, w)
    u = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=400 * u * np.abs(want).max())
    into = np.full(want.shape[::-1], np.nan, dtype).T
    pl.einsum(text, x, w, out=into)
    np.testing.assert_allclose(into, want, rtol=0, atol=400 * u * np.abs(want).max())


def test_parts_are_shown_and_take_little_memory(rng):
    x, w = rng.normal(size=(8, 10, 10, 128)), rng.normal(size=(3, 3, 128, 128))
    text = pl.einsum_path("b (y + i) (x + j) c, i j c d -> b y x d", x, w)[1]
    assert "in 8 parts, each:" in text
    assert "589824 bytes of temporaries (589824 at once)" in text


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_windows_of_few_channels_are_not_copied(dtype, rng):
    """Rows of windows lie within each other: terms come in groups, on either side."""
    x = rng.normal(size=(2, 36, 36, 3)).astype(dtype)
    w = rng.normal(size=(5, 5, 3, 32)).astype(dtype)
    for text, args in (
        ("b (y + i) (x + j) c, i j c d -> b y x d", (x, w)),
        ("i j c d, b (y + i) (x + j) c -> b y x d", (w, x)),
    ):
        shown = pl.einsum_path(text, *args)[1]
        assert "k75 in 5 windows of 15, 64 calls" in shown
        assert "nothing packed" in shown
        view = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (1, 2))
        want = np.einsum("byxcij,ijcd->byxd", view.astype("f8"), w.astype("f8"))
        np.testing.assert_allclose(
            pl.einsum(text, *args), want, rtol=0, atol=300 * np.finfo(dtype).eps * 30
        )


MISTAKES = [
    ("ij,jk->ik", ((2, 3), (4, 5)), r"axis 'j' has size 3 in operand 0 of shape \(2, 3\) and 4 in"),
    ("ij->ik", ((2, 3),), "'k' of the result is in no operand"),
    ("ij->ii", ((2, 3),), "'i' is twice in the result"),
    ("row,row->", ((3,), (3,)), "3 labels of a letter each"),
    ("b i, b j k -> b", ((2, 3), (2, 3)), "operand 1 has 2 dimensions, its axes are 3"),
    ("b (h w) -> b h w", ((2, 6),), "say the size of 'h' by sizes="),
    ("b (h w), h -> b w", ((2, 7), (3,)), "no multiple of 3"),
    ("(o + w) -> o", ((5,),), "leaves the sizes of 'o' and 'w' open"),
    ("(o + w), w -> o", ((5,), (7,)), "runs from 0 to 6 for one 'o' already"),
    ("(o*w), w -> o", ((5,), (2,)), "is not linear"),
    ("b (h w -> b", ((5, 2),), "a parenthesis is open"),
    ("i j -> (i+j)", ((5, 2),), "is computed, not read"),
    ("i->i->i", ((5,),), "two arrows"),
    ("i->i,i", ((5,),), "a comma behind the arrow"),
    ("...i...->i", ((5,),), "ellipsis is there twice"),
    ("...i->i", ((5, 5),), "the result has no ellipsis"),
    ("i,i", ((5,),), "1 operands for an equation of 2"),
    ("a 2b -> a", ((5, 2),), "'2' is no axis"),
    ("a b % -> a", ((5, 2),), "'%' is no axis"),
]


@pytest.mark.parametrize("text, shapes, said", MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes(text, shapes, said):
    for make in (lambda a: a, pl.lazy):
        with pytest.raises(ValueError, match=said):
            pl.einsum(text, *(make(np.ones(s)) for s in shapes))


@given(st.text(alphabet="ijk ab(),->.*+-012_", max_size=24), st.integers(1, 3))
@settings(max_examples=1500, deadline=None)
def test_any_text_is_read_or_refused(text, n):
    arrays = [np.ones((2, 3, 2)[: k + 1]) for k in range(n)]
    try:
        pl.einsum(text, *arrays)
    except (ValueError, NotImplementedError) as e:
        assert len(str(e)) > 10


def test_more_mistakes():
    a = np.ones((3, 3))
    with pytest.raises(ValueError, match="there are none"):
        pl.einsum()
    with pytest.raises(TypeError, match="an equation as text"):
        pl.einsum(a)
    with pytest.raises(ValueError, match="outside must be"):
        pl.einsum("ij->i", a, outside=1)
    with pytest.raises(ValueError, match="negative"):
        pl.einsum("a (b c) -> a", a, sizes={"b": -1})
    with pytest.raises(TypeError, match="ndarray"):
        pl.einsum("ij->i", a, out=[0, 0, 0])
    with pytest.raises(ValueError, match=r"out has shape \(2,\)"):
        pl.einsum("ij->i", a, out=np.ones(2))
    with pytest.raises(TypeError, match="Cannot cast"):
        pl.einsum("ij->i", a, dtype="float32")
    assert pl.einsum("ij->i", a, dtype="float32", casting="same_kind").dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        out = np.ones(3)
        out.flags.writeable = False
        pl.einsum("ij->i", a, out=out)
    with pytest.raises(NotImplementedError, match="256"):
        pl.einsum(*(x for k in range(300) for x in (np.ones(2), [k])), [])
    with pytest.raises(ValueError, match="the path's step"):
        pl.einsum("ij,jk,kl", a, a, a, optimize=[(0, 3), (0, 1)])
    with pl.config(memory_limit=10), pytest.raises(pl.MaterializationError, match="temporaries"):
        b = np.ones((30, 30))
        pl.einsum("ij,jk,kl->il", b, b, b)
    assert pl.einsum("ij,jk,kl->il", a, a, a)[0, 0] == 9


def test_many_labels_and_operands(rng):
    """Chains of more matrices than the exact search takes, of more labels than letters."""
    for n in (9, 10, 11, 12, 60, 200):
        matrices = [rng.normal(size=(3, 3)) / 1.5 for _ in range(n)]
        args = [x for k, m in enumerate(matrices) for x in (m, [k, k + 1])]
        want = np.linalg.multi_dot(matrices)
        np.testing.assert_allclose(pl.einsum(*args, [0, n]), want, rtol=1e-9, atol=1e-12)


def test_out_may_overlap(rng):
    a = rng.normal(size=(40, 40))
    want = a @ a
    assert pl.einsum("ij,jk->ik", a, a, out=a) is a
    np.testing.assert_allclose(a, want, rtol=1e-12, atol=1e-12)
    x = rng.normal(size=81)
    want = x[:80] * 2
    pl.einsum("i,->i", x[:80], 2.0, out=x[1:])
    np.testing.assert_array_equal(x[1:], want)


def test_other_layouts_and_kinds_of_array(rng):
    a = rng.normal(size=(6, 5))
    want = a.T @ a
    odd = np.zeros(a.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(6, 5)
    odd[...] = a
    fields = np.zeros((6, 5), [("x", "i2"), ("y", "f8")])
    fields["y"] = a
    for b in (a.astype(">f8"), odd, fields["y"], np.asfortranarray(a), a.tolist(), pl.freeze(a)):
        np.testing.assert_allclose(pl.einsum("ki,kj->ij", b, b), want, rtol=1e-12, atol=1e-12)
    half = a.astype(np.float16)
    assert pl.einsum("ki,kj->ij", half, half).dtype == np.float16
    big = a.astype(np.longdouble)
    assert pl.einsum("ki,kj->ij", big, big).dtype == np.longdouble
    mixed = pl.einsum("ki,kj->ij", a.astype(np.float32), a)
    assert mixed.dtype == np.float64


def test_gram_is_symmetric_and_not_taken_for_two_arrays(rng):
    for n in (3, 63, 64, 65, 200):
        a, b = rng.normal(size=(2, n, n))
        got = pl.einsum("ki,kj->ij", a, a)
        np.testing.assert_allclose(got, a.T @ a, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(pl.einsum("ki,kj->ij", a, b), a.T @ b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            pl.einsum("ki,kj->ij", a, a.T), a.T @ a.T, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            pl.einsum("ki,kj->ij", a, a[::-1]), a.T @ a[::-1], rtol=1e-12, atol=1e-12
        )


# -- LazyArrays, operators


def test_lazy(rng):
    x, w = rng.normal(size=(4, 9, 3)), rng.normal(size=(2, 3, 5))
    X = pl.lazy(x)
    text = "b (o + i) c, i c d -> b o d"
    made = pl.einsum(text, X, w)
    assert isinstance(made, pl.LazyArray) and made.shape == (4, 8, 5)
    want = pl.einsum(text, x, w)
    total = (made * 2).sum()
    one, two = pl.evaluate(made, total)
    np.testing.assert_allclose(one, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(two, 2 * want.sum(), rtol=1e-10, atol=1e-10)
    again = pickle.loads(pickle.dumps(pl.einsum(text, pl.lazy(x), w)))
    np.testing.assert_allclose(np.asarray(again), want, rtol=1e-12, atol=1e-12)
    t = np.einsum("abc,dc->abd", X, np.ones((2, 3)), optimize=True)
    assert isinstance(t, pl.LazyArray)
    np.testing.assert_allclose(np.asarray(t), np.einsum("abc,dc->abd", x, np.ones((2, 3))))
    lists = np.einsum(X, [0, 1, 2], [2, 0])
    np.testing.assert_allclose(np.asarray(lists), x.sum(1).T, rtol=1e-12, atol=1e-12)
    assert np.einsum("abc->", X, dtype=complex).dtype == complex
    assert "einsum" in repr(made)


def test_operators_keep_their_structure(rng):
    d = rng.normal(size=50)
    D, T = pl.Diag(d), pl.Toeplitz(d)
    x = rng.normal(size=50)
    with pl.config(memory_limit=50 * 50 * 8 - 1):
        np.testing.assert_allclose(pl.einsum("ij,j->i", D, x), d * x)
        np.testing.assert_allclose(
            pl.einsum("ij,jk,k->i", T, D, x), T @ (d * x), rtol=1e-10, atol=1e-10
        )
        np.testing.assert_allclose(pl.einsum("ii->", T), 50 * d[0])
    assert isinstance(pl.einsum("ij,jk->ik", D, T), pl.LinearOperator)
    dense = T.toarray()
    y = rng.normal(size=(3, 50, 2))
    np.testing.assert_allclose(
        pl.einsum("ij,ajb->aib", T, y), np.einsum("ij,ajb->aib", dense, y), rtol=1e-10, atol=1e-12
    )


KINDS = [
    lambda rng, n: pl.Diag(rng.normal(size=n)),
    lambda rng, n: pl.Toeplitz(rng.normal(size=n)),
    lambda rng, n: pl.Identity(n),
    lambda rng, n: pl.Permutation(rng.permutation(n)),
    lambda rng, n: pl.Kron(rng.normal(size=(3, 3)), rng.normal(size=(n // 3, n // 3))),
    lambda rng, n: pl.inv(pl.Diag(rng.random(n) + 1)),
    lambda rng, n: pl.LowRank(rng.normal(size=(n, 2))) + pl.Identity(n),
]


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize(
    "text, slots",
    [
        ("ij,ajb->aib", "Tx"),
        ("ij,aib->ajb", "Tx"),
        ("ajb,ij->ab", "xT"),
        ("ij,ajk,kl->ail", "TyT"),
        ("ij,jk,akb->abi", "TTx"),
        ("ij,aijb->ab", "Tz"),
        ("ij,ajb->aijb", "Tx"),
    ],
)
def test_operators_in_every_slot(kind, text, slots, rng):
    n = 12
    shapes = {"x": (3, n, 2), "y": (3, n, n), "z": (2, n, n, 3)}
    operands = [KINDS[kind](rng, n) if s == "T" else rng.normal(size=shapes[s]) for s in slots]
    dense = [o.toarray() if isinstance(o, pl.LinearOperator) else o for o in operands]
    want = np.einsum(text, *dense)
    lazily = [o if isinstance(o, pl.LinearOperator) else pl.lazy(o) for o in operands]
    for got in (pl.einsum(text, *operands), pl.einsum(text, *lazily), np.einsum(text, *lazily)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-10)
    if "aij" not in text:
        big = KINDS[kind](rng, 3000)
        x = rng.normal(size=(2, 3000, 2))
        with pl.config(memory_limit=3000 * 3000):
            assert pl.einsum("ij,ajb->aib", big, x).shape == x.shape


def test_threads():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 40, 30, 20))
    want = np.einsum("abc,dbc->ad", a, b)
    found = []

    def work(k):
        for i in range(40):
            n = 20 + (i + k) % 20
            got = pl.einsum("abc,dbc->ad", a[:n], b)
            found.append(np.allclose(got, want[:n]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 160 and all(found)


def test_the_plan_as_text(rng):
    a = rng.normal(size=(8, 12, 12, 5, 5, 3))
    w = rng.normal(size=(5, 5, 3, 32))
    path, text = pl.einsum_path("abcijk,ijkd->abcd", a, w)
    assert path == ["einsum_path", (0, 1)] and "gemm m1152 n32 k75" in text
    assert "1 call" in text and "nothing packed" in text
    path, text = pl.einsum_path("ij,jk,k->i", *(np.ones((100, 100)),) * 2, np.ones(100))
    assert path == ["einsum_path", (1, 2), (0, 1)]
    assert (
        pl.einsum("ij,jk,k->i", *(np.ones((100, 100)),) * 2, np.ones(100), optimize=path)[0] == 1e4
    )
    path, text = pl.einsum_path("ij,jk->ik", *(np.ones((3, 3), int),) * 2)
    assert "numpy.einsum's loops" in text
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 5, 8):
        ops = [rng.normal(size=(3, 4)) for _ in range(n)]
        args = [x for k, m in enumerate(ops) for x in (m, [0, k + 1])]
        path = pl.einsum_path(*args, [0])[0]
        live = n
        for step in path[1:]:
            assert all(0 <= k < live for k in step)
            live -= len(step) - 1
        assert live == 1
        np.testing.assert_allclose(
            pl.einsum(*args, [0], optimize=path), np.einsum(*args, [0]), rtol=1e-9
        )


@pytest.mark.parametrize("char", "dFi")
@pytest.mark.parametrize("lazily", [False, True])
def test_a_size_that_only_sizes_says_broadcasts(lazily, char, rng):
    """Where each array has size 1 along a label."""
    x = rng.integers(-4, 5, (1, 3)).astype(char)
    one = rng.integers(1, 5, 1).astype(char)
    wide = np.broadcast_to(x, (4, 3))
    for text, arrays, want in (
        ("i j -> j i", (x,), wide.T),
        ("i j -> (i j)", (x,), wide.ravel()),
        ("i j ->", (x,), wide.sum()),
        ("i j, i -> j", (x, one), 4 * x[0] * one),
        ("(i) j, i -> j i", (np.array(wide), one), wide.T * one),
        ("(i + k) j, k i -> i j", (np.array(wide), np.ones((1, 1), char)), wide),
    ):
        given = [pl.lazy(a) if lazily else a for a in arrays]
        with pl.config(verify=True, check_plans=True):
            made = pl.einsum(text, *given, sizes={"i": 4})
        assert made.shape == want.shape
        np.testing.assert_array_equal(np.asarray(made), want)
    with pytest.raises(ValueError, match="axis 'j' has size 1 in sizes= and 3"):
        pl.einsum("i j -> j i", x, sizes={"j": 1})
    if char != "i":
        y = pl.lazy(x)
        made = np.real(np.sum(pl.einsum("i j, i -> j i", y, one, sizes={"i": 4})))
        (g,) = pl.gradients(made, [y])
        np.testing.assert_allclose(g, np.broadcast_to(4 * np.conj(one), (1, 3)))
        (g,) = pl.gradients(np.real(pl.einsum("i j ->", y, sizes={"i": 4})), [y])
        np.testing.assert_array_equal(g, np.full((1, 3), 4))


@pytest.mark.parametrize("char", "di")
def test_a_diagonal_of_a_broadcast_axis(char, rng):
    x = rng.integers(-4, 5, (4, 1)).astype(char)
    np.testing.assert_array_equal(pl.einsum("ii->i", x), x[:, 0])
    np.testing.assert_array_equal(pl.einsum("ii", x.T), x.sum())


def test_groups_say_sizes_one_after_the_other():
    made = pl.einsum("(b c) x, (a b) -> a b c x", np.ones((6, 2)), np.ones(4), sizes={"a": 2})
    assert made.shape == (2, 2, 3, 2)
    with pytest.raises(ValueError, match="say the size of 'b' by sizes="):
        pl.einsum("(b c) x, (a b) -> a b c x", np.ones((6, 2)), np.ones(4))


def test_an_operator_without_rows_or_columns_times_none():
    M = pl.Contraction("ik,i->ik", np.ones((0, 3)), np.ones(0), rows="i", cols="k")
    assert M.toarray().shape == (0, 3)
    assert M.T.toarray().shape == (3, 0)
    M = pl.Contraction("iq,jjq->ijq", np.ones((0, 2)), np.ones((1, 1, 2)), rows="qji", cols="j")
    assert M.T.toarray().shape == (1, 0)
