"""Verified answers of contractions: right ones pass, whatever the equation; wrong ones raise."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._verify import compare, contractions


@pytest.fixture
def checked():
    """How many answers were compared in a block."""
    before = compare.tally["einsum", "verified"]
    with pl.config(verify=True):
        yield lambda: compare.tally["einsum", "verified"] - before


EQUATIONS = [
    ("ij,jk->ik", ((1, 1), (1, 1)), {}),
    ("abcijk,ijkd->abcd", ((2, 3, 4, 5, 5, 3), (5, 5, 3, 7)), {}),
    ("ij,jk,k->", ((17, 16), (16, 15), (15,)), {}),
    ("iij,j,->i", ((4, 4, 5), (5,), ()), {}),
    ("...ij,...jk->...ik", ((1, 3, 4), (5, 4, 2)), {}),
    ("b h q d, b h k d -> b h q k", ((2, 1, 5, 4), (2, 3, 6, 4)), {}),
    ("b (h w) c, c d -> b h (w d)", ((2, 12, 3), (3, 5)), {"sizes": {"w": 4}}),
    ("b (2*y + i) (x + j) c, i j c d -> b y x d", ((2, 11, 9, 3), (3, 2, 3, 4)), {}),
    ("(o + w), w -> o", ((900,), (100,)), {}),
    ("(o - w), w -> o", ((60,), (50,)), {"outside": "wrap", "sizes": {"o": 70}}),
    ("(o + w - 2) c, w c d -> o d", ((30, 3), (5, 3, 4)), {"outside": 0, "sizes": {"o": 30}}),
    ("(3*o - w + 7), w -> o w", ((40,), (8,)), {}),
    ("(i - j), j b -> i b", ((700,), (300, 2)), {"outside": 0, "sizes": {"i": 700}}),
    ("abc,cfd,dbe,efa->", ((9, 8, 7), (7, 6, 5), (5, 8, 4), (4, 6, 9)), {}),
    ("ij,kj->ik", ((0, 3), (4, 3)), {}),
    ("ij,kj->ik", ((4, 0), (4, 0)), {}),
    # more products than are compared in full
    ("ij,jk->ik", ((300, 310), (310, 290)), {}),
    ("bij,bjk,bk->bi", ((5, 200, 190), (5, 190, 180), (5, 180)), {}),
    ("b (y + i) (x + j) c, i j c d -> b y x d", ((3, 40, 41, 8), (3, 3, 8, 16)), {}),
    ("(o + w), w d -> o d", ((9000,), (800, 3)), {}),
    ("aij,bij->", ((30, 80, 90), (31, 80, 90)), {}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("text, shapes, how", EQUATIONS)
def test_right_answers_pass(text, shapes, how, dtype, rng, checked):
    arrays = [rng.normal(size=s) for s in shapes]
    if np.dtype(dtype).kind == "c":
        arrays = [a + 1j * rng.normal(size=a.shape) for a in arrays]
    arrays = [np.asarray(a, dtype) * np.array(1e3, dtype) for a in arrays]
    made = [np.asarray(pl.einsum(text, *arrays, **how)) for _ in range(2)]
    np.testing.assert_array_equal(*made)
    assert checked() == 2
    with pl.config(verify=False):
        np.testing.assert_array_equal(pl.einsum(text, *arrays, **how), made[0])
    out = np.empty_like(made[0])
    pl.einsum(text, *arrays, out=out, **how)
    np.testing.assert_allclose(out, made[0], rtol=1e-4, atol=1e-4 * np.abs(made[0]).max(initial=1))
    assert checked() == 3


def test_cancellation_is_no_alarm(rng, checked):
    a = rng.normal(size=(40, 2000))
    b = np.concatenate([a, -a], axis=1) * 1e10
    pl.einsum("ij,kj->ik", b, np.ones((30, 4000)))
    s = np.zeros(3000)
    s[::7] = 1e12
    pl.einsum("(o + w), w -> o", s, np.where(np.arange(500) == 3, 1e-12, 1.0))
    assert checked() == 2


FAULTS = [
    ("ij,jk->ik", ((30, 20), (20, 40)), lambda y: y.__setitem__((0, -1), y[0, -1] + 1e-9)),
    ("bij,bjk->bik", ((3, 4, 5), (3, 5, 6)), lambda y: y.__setitem__((2, 3), 0)),
    ("ijk,ikl->ijl", ((40, 300, 41), (40, 41, 290)), lambda y: y.__imul__(1 + 1e-9)),
    ("ij,jk->ik", ((300, 310), (310, 290)), lambda y: y.__setitem__((0, 0), 1 + y[0, 0])),
    ("ij,jk->ik", ((300, 310), (310, 290)), lambda y: y.__setitem__((-1, 17), 1 + y[-1, 17])),
    ("abc,cfd,dbe,efa->", ((9, 8, 7), (7, 6, 5), (5, 8, 4), (4, 6, 9)), lambda y: y.__iadd__(1e-6)),
    ("(o + w), w -> o", ((9000,), (800,)), lambda y: y.__setitem__(0, y[0] + 1e-3)),
    ("(o + w), w -> o", ((9000,), (800,)), lambda y: y.__setitem__(slice(None), y[::-1].copy())),
    ("b (y + i) c, i c d -> b y d", ((3, 400, 8), (3, 8, 160)), lambda y: y.__imul__(1 + 1e-9)),
]


@pytest.mark.parametrize("text, shapes, fault", FAULTS)
@pytest.mark.parametrize("lazily", [False, True])
def test_wrong_answers_raise(text, shapes, fault, lazily, rng, monkeypatch):
    arrays = [rng.normal(size=s) for s in shapes]

    def perturb(action, made):
        if action == "einsum":
            fault(made)

    monkeypatch.setattr(compare, "perturb", perturb)
    given = [pl.lazy(a) if lazily and i == 0 else a for i, a in enumerate(arrays)]
    if lazily and "einsum" not in repr(pl.einsum(text, *given)):
        return  # products of matrices: the core's, which tests/contract/test_verify.py has
    with pl.config(verify=True):
        with pytest.raises(pl.VerificationError, match="einsum") as missed:
            np.asarray(pl.einsum(text, *given))
        assert missed.value.error > missed.value.allowed
        out = np.full(_shape(text, arrays), 7.0)
        with pytest.raises(pl.VerificationError):
            pl.einsum(text, *arrays, out=out)
        assert (out == 7).all()


def _shape(text, arrays):
    with pl.config(verify=False):
        return np.shape(pl.einsum(text, *arrays))


def test_what_is_not_verified_is_said(rng, checked):
    a = rng.integers(0, 9, (3, 4))
    np.testing.assert_array_equal(pl.einsum("ij,kj->ik", a, a), a @ a.T)  # NumPy's own loops
    many = [x for k in range(55) for x in (rng.normal(size=(2, 2)), [k, k + 1])]
    said = ("einsum", "not verified: an equation of more than 50 labels")
    before = compare.tally[said]
    pl.einsum(*many, [0])
    assert (checked(), compare.tally[said]) == (0, before + 1)


def test_gradients_are_verified(rng, checked):
    x, w = rng.normal(size=(2, 9, 3)), rng.normal(size=(3, 3, 4))

    def f(x, w):
        y = pl.einsum("b (o + i) c, i c d -> b o d", x, w)
        return np.sum(y * y)

    pl.value_and_grad(f, argnums=(0, 1))(x, w)
    assert checked() >= 3


LARGE = [
    ("b (y + i) (x + j) c, i j c d -> b y x d", ((3, 40, 41, 8), (3, 3, 8, 16))),
    ("ij,jk->ik", ((300, 310), (310, 290))),
    ("aij,bij->ab", ((90, 80, 30), (91, 80, 30))),
]


@pytest.mark.parametrize("text, shapes", LARGE)
def test_large_parts_are_verified_at_drawn_entries(text, shapes, rng, checked, monkeypatch):
    monkeypatch.setattr(contractions, "_MOST", 1 << 13)
    arrays = [rng.normal(size=s) for s in shapes]
    pl.einsum(text, *arrays)
    assert checked() == 1

    def perturb(action, made):
        made *= 1 + 1e-8

    monkeypatch.setattr(compare, "perturb", perturb)
    with pytest.raises(pl.VerificationError, match="drawn entries"):
        pl.einsum(text, *arrays)


def test_a_sum_of_too_many_entries_is_not_verified_and_says_so(rng, checked, monkeypatch):
    monkeypatch.setattr(contractions, "_MOST", 1 << 13)
    a = rng.normal(size=(3000, 1500))
    said = ("einsum", "not verified: a sum over more than 2^24 entries of an operand")
    before = compare.tally[said]
    pl.einsum("ij,ij->", a, a)
    assert (checked(), compare.tally[said]) == (0, before + 1)
