"""Contractions on the arrays of other libraries, and their cotangents, against C on NumPy's."""

import numpy as np
import pytest
from formulas import elsewhere

import pylinop as pl
import pylinop.array_api as pa
from pylinop._lazy.leaves import lazy
from pylinop._namespace import formulas

CASES = [
    ("abcijk,ijkd->abcd", [(2, 3, 4, 2, 2, 3), (2, 2, 3, 5)], {}),
    ("aij,akj,ck->ci", [(2, 3, 4), (2, 5, 4), (3, 5)], {}),
    ("iiij,jkk->ki", [(3, 3, 3, 4), (4, 2, 2)], {}),
    ("abc,cfd,dbe,efa->", [(3, 3, 3)] * 4, {}),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)], {}),
    ("a,b,c,d->bdac", [(2,), (3,), (1,), (2,)], {}),
    ("i j, j k -> k", [(1, 4), (4, 5)], {}),
    ("a b, c -> a", [(3, 4), (0,)], {}),
    ("(h w) c, w -> h c", [(12, 3), (4,)], {}),
    ("b i, b j -> (i b) j", [(3, 4), (3, 2)], {}),
    ("b (2*y + i) (x - j + 1) c, i j c d -> b y x d", [(1, 7, 6, 2), (3, 2, 2, 3)], {}),
    (
        "b (y + 2*i - 1) (x + j - 1) c, i j c d -> b y x d",
        [(1, 7, 6, 2), (3, 3, 2, 3)],
        {"outside": 0, "sizes": {"y": 7, "x": 6}},
    ),
    ("(o - w), w -> o", [(9,), (4,)], {"outside": "wrap", "sizes": {"o": 9}}),
    ("(o + 20), o -> o", [(9,), (4,)], {"outside": 0}),
    ("(i + i)", [(7,)], {"sizes": {"i": 4}}),
]


class Made:
    """A program of a function of LazyArrays."""

    def __init__(self, function):
        self.build = lambda leaves: function(*leaves)


@pytest.mark.parametrize("name", ["numpy", "torch", "strict", "jax"])
def test_contractions_and_their_cotangents(name):
    pytest.importorskip(elsewhere.LIBRARIES[name][0].partition(".")[0])
    library, rng = elsewhere.Library(name), np.random.default_rng(5)
    for text, shapes, how in CASES[:: 3 if name == "jax" else 1]:  # JAX compiles each step
        arrays = [rng.standard_normal(s) for s in shapes]
        if len(arrays) % 2:
            arrays = [a + 1j * rng.standard_normal(a.shape) for a in arrays]

        def both(*x, text=text, how=how):
            y = pl.einsum(text, *x, **how)
            return [lazy(y), *map(lazy, pl.gradients(np.sum(np.real(y * y)), list(x)))]

        due = [np.asarray(x) for x in both(*map(pl.lazy, arrays))]
        found = formulas.computed(Made(both), [library.put(a) for a in arrays])
        for got, want in zip(map(library.back, found), due, strict=True):
            assert got.shape == want.shape, text
            size = np.max(np.abs(want), initial=0)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * (1 + size))


def test_einsum_where_the_arrays_lie():
    pa, rng = pytest.importorskip("pylinop.array_api"), np.random.default_rng(7)
    a, b = rng.standard_normal((2, 9, 3)).astype("f"), rng.standard_normal((3, 3, 4)).astype("f")
    how = {"sizes": {"o": 9}, "outside": 0}
    text = "b (o + i - 1) c, i c d -> b o d"
    got = pa.einsum(text, a, b, **how)
    assert got.dtype == np.float32 and got.flags.owndata
    np.testing.assert_allclose(got, pl.einsum(text, a, b, **how), rtol=0, atol=1e-5)
    with pytest.raises(TypeError, match="one library, not a list"):
        pa.einsum("i,i->", [1.0], np.ones(1))
    with pytest.raises(ValueError, match="axis 'j' has size 3"):
        pa.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((2, 3)))


def test_a_path_that_is_given_and_another_dtype():
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal(s) for s in ((3, 4), (4, 5), (5, 2))]
    path = ["einsum_path", (1, 2), (0, 1)]
    for how in ({"optimize": path}, {"dtype": "complex128"}):
        due = np.einsum("ij,jk,kl->il", *arrays, **how)
        made = Made(lambda *x, how=how: [lazy(pl.einsum("ij,jk,kl->il", *x, **how))])
        (got,) = formulas.computed(made, arrays)
        assert got.dtype == due.dtype
        np.testing.assert_allclose(got, due, rtol=1e-13)


def test_operators_in_a_contraction():
    strict = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(4)
    a, d, x = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=(2, 4, 3))
    D, T = pa.Diag(strict.asarray(d)), pa.Toeplitz(strict.asarray(d))
    dense = pl.Toeplitz(d).toarray()
    for got, due in (
        (pa.einsum("ij,jk,ki->", D, strict.asarray(a), T), np.trace(np.diag(d) @ a @ dense)),
        (pa.einsum("ij,bjc->bic", T, strict.asarray(x)), dense @ x),
        (pa.einsum("ij,jk->ik", D, T).toarray(), d[:, None] * dense),
    ):
        np.testing.assert_allclose(np.asarray(got), due, atol=1e-12)
