"""The patterns of einops' tutorials (rearrange, reduce, repeat, einsum) as equations: beside the
same in NumPy's words, and beside einops itself where it is installed."""

import numpy as np
import pytest

import pylinop as pl

try:
    import einops
except ImportError:  # the table below is NumPy's
    einops = None

# pattern, sizes, NumPy on an array of axes b h w c, 6 x 8 x 12 x 3
REARRANGED = [
    ("b h w c -> b c h w", {}, lambda t: t.transpose(0, 3, 1, 2)),
    ("b h w c -> h (b w) c", {}, lambda t: t.transpose(1, 0, 2, 3).reshape(8, 72, 3)),
    ("b h w c -> h (w b) c", {}, lambda t: t.transpose(1, 2, 0, 3).reshape(8, 72, 3)),
    ("b h w c -> (b h w c)", {}, np.ravel),
    ("b ... c -> b (...) c", {}, lambda t: t.reshape(6, 96, 3)),
    ("b h w c -> b 1 h w 1 c", {}, lambda t: t[:, None, :, :, None]),
    ("b h w c -> b (h w) c ()", {}, lambda t: t.reshape(6, 96, 3, 1)),
    (
        "(p q) h w c -> (q h) (p w) c",
        {"p": 2},
        lambda t: t.reshape(2, 3, 8, 12, 3).transpose(1, 2, 0, 3, 4).reshape(24, 24, 3),
    ),
    (
        "b (h i) (w j) c -> b h w (c i j)",
        {"i": 2, "j": 4},
        lambda t: t.reshape(6, 4, 2, 3, 4, 3).transpose(0, 1, 3, 5, 2, 4).reshape(6, 4, 3, 24),
    ),
    (
        "b h (w n) c -> (b h) (n w) c",
        {"n": 3},
        lambda t: t.reshape(6, 8, 4, 3, 3).transpose(0, 1, 3, 2, 4).reshape(48, 12, 3),
    ),
]
SUMMED = [
    ("b h w c -> h w c", {}, lambda t: t.sum(0)),
    ("b h w c -> b 1 1 c", {}, lambda t: t.sum((1, 2), keepdims=True)),
    ("b ... c -> b c", {}, lambda t: t.sum((1, 2))),
    ("b h w c ->", {}, np.sum),
    ("b (h 2) (w 2) c -> b h w c", {}, lambda t: t.reshape(6, 4, 2, 6, 2, 3).sum((2, 4))),
    ("b (h i) w c -> h (i w) c", {"i": 4}, lambda t: t.sum(0).reshape(2, 48, 3)),
]
REPEATED = [
    ("b h w c -> b r h w c", {"r": 2}, lambda t: np.stack([t, t], 1)),
    ("b h w c -> b h 3 w c", {}, lambda t: np.stack([t] * 3, 2)),
    ("b h w c -> b (2 h) (w r) c", {"r": 3}, lambda t: np.tile(t, (1, 2, 1, 1)).repeat(3, 2)),
    ("... -> ... 4", {}, lambda t: np.stack([t] * 4, -1)),
]
WAYS = [(t, s, f, "rearrange") for t, s, f in REARRANGED]
WAYS += [(t, s, f, "reduce") for t, s, f in SUMMED] + [(t, s, f, "repeat") for t, s, f in REPEATED]


@pytest.mark.parametrize("dtype", ["f8", "F", "i4"])
@pytest.mark.parametrize("text,sizes,by_numpy,name", WAYS, ids=[w[0] for w in WAYS])
def test_a_pattern(text, sizes, by_numpy, name, dtype):
    rng = np.random.default_rng(5)
    t = (10 * rng.normal(size=(6, 8, 12, 3))).astype(dtype)
    want = by_numpy(t)
    if einops is not None:
        more = ("sum",) if name == "reduce" else ()
        theirs = getattr(einops, name)(t, text, *more, **sizes)
        np.testing.assert_allclose(theirs, want, rtol=1e-4, atol=1e-3)
    for x in (t, t, pl.lazy(t)):  # the second call looks up what the first one left
        got = np.asarray(pl.einsum(text, x, sizes=sizes))
        assert got.shape == np.shape(want)
        if name == "reduce":
            assert abs(got - want).max() <= 1e-5 * abs(t).sum()
        else:
            np.testing.assert_array_equal(got, want)


def test_what_is_moved_is_not_multiplied():
    """Repeated, infinities of complex numbers stay what they are: 1 times them is inf + nan j."""
    x = np.array([np.inf, complex(1, -np.inf), -0.0])
    got = pl.einsum("i j -> i r j", x[None], sizes={"r": 2})
    np.testing.assert_array_equal(got[0, 1], x)


def test_products_with_more_axes_than_the_operands_have():
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=4)
    for x, y in ((a, b), (pl.lazy(a), b), (pl.lazy(a), pl.lazy(b))):
        got = np.asarray(pl.einsum("i j, j -> r i 2", x, y, sizes={"r": 3}))
        assert got.shape == (3, 3, 2)
        assert abs(got - (a @ b)[:, None]).max() < 1e-14
    got = pl.einsum("i j -> i r j", pl.Diag(b), sizes={"r": 2})
    np.testing.assert_array_equal(np.asarray(got), np.stack([np.diag(b)] * 2, 1))


@pytest.mark.parametrize(
    "text,said",
    [
        ("b 2 -> b 2", "an axis that stays has a name"),
        ("b 3 -> b", "an axis written 3 has size 2"),
        ("b c -> b d", "axis 'd' of the result is in no operand"),
        ("b (c 3) -> b c", "no multiple of 3"),
    ],
)
def test_mistakes(text, said):
    with pytest.raises(ValueError, match=said):
        pl.einsum(text, np.ones((3, 2)))


@pytest.mark.parametrize("lazily", [False, True])
def test_a_number_is_the_size_also_beside_an_axis_of_one(lazily):
    """It broadcast, and the sum was three times what is there."""
    x = np.ones((5, 1))
    with pytest.raises(ValueError, match="an axis written 3 has size 1 in operand 0"):
        pl.einsum("b 3 -> b", pl.lazy(x) if lazily else x)
    n = pl.symbols("n")
    with pytest.raises(ValueError, match="1"):
        pl.einsum("b 3 -> b", pl.placeholder((n, 1))).shape


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_path_of_repeated_axes_is_taken_again(count):
    """That of einsum_path, which names the ones, and one of the operands alone."""
    rng = np.random.default_rng(count)
    operands = [rng.normal(size=k + 2) for k in range(count)]
    labels = "ijkl"[:count]
    text = f"{', '.join(labels)} -> {labels[0]} r {labels[-1]}"
    due = pl.einsum(text, *operands, sizes={"r": 2})
    path, _ = pl.einsum_path(text, *operands, sizes={"r": 2})
    for taken in (path, ["einsum_path"] + [(0, 1)] * (count - 1), [tuple(range(count))]):
        got = pl.einsum(text, *operands, sizes={"r": 2}, optimize=taken)
        assert got.shape == due.shape and abs(got - due).max() < 1e-13
    D = pl.Diag(operands[0])
    got = pl.einsum("i j -> i r j", D, sizes={"r": 2}, optimize=["einsum_path", (0,)])
    np.testing.assert_array_equal(np.asarray(got)[:, 1], np.diag(operands[0]))


def test_a_repeated_tensor_with_a_gradient_is_said():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="would lose its gradient"):
        pl.einsum("b -> b 2", torch.ones(3, requires_grad=True))
