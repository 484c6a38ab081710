"""Looking at operators: pictures and Graphviz compute nothing, spy shows the entries, the dot test
finds a wrong adjoint."""

import xml.etree.ElementTree

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl


@pytest.mark.parametrize("kind", ref.KINDS)
def test_pictures(kind, rng):
    for m, n in ((6, 6), (2, 9), (0, 3)):
        d = leaf(kind, rng, m, n, "float64")
        if d is None:
            continue
        A = ref.build(d)
        for op in (A, A.T, A + A, A @ A.T, 2 * A, (A + A) @ A.T):
            text = op._repr_html_()
            xml.etree.ElementTree.fromstring(text.replace("&nbsp;", " "))
            assert "<svg" in text and type(op).__name__ in text
            dot = op.to_dot()
            assert dot.count("{") == dot.count("}") == 1 and type(op).__name__ in dot


def test_pictures_compute_nothing():
    def never(x):
        raise AssertionError("computed")

    A = pl.MatVec((5, 5), never, dtype=float)
    (A + A.T @ A)._repr_html_(), (A + A.T @ A).to_dot()
    pl.Identity(10**12)._repr_html_()
    deep = A
    for _ in range(2000):
        deep = deep + A
    assert deep.to_dot().count("->") == 4000
    deep._repr_html_()


def test_shared_parts_are_drawn_once():
    A = pl.Dense(np.eye(2))
    assert (A @ A + A).to_dot().count("Dense") == 1


def test_spy(rng):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from pylinop._operators import draw

    A = pl.Diag(np.ones(50)) + pl.Zeros((50, 50))
    ax = A.spy()
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(50))
    assert "50x50" in ax.get_title()
    shown, step = draw._thinned(A, 0, 10)
    assert step == (5, 5)
    np.testing.assert_array_equal(shown, np.eye(10))
    assert not draw._thinned(2 * A, 2.0, 100)[0].any()
    assert A.spy(plt.figure().gca(), markersize=1).lines
    with pytest.raises(ValueError, match="one matrix"):
        pl.Dense(np.ones((2, 3, 3))).spy()
    plt.close("all")


def test_the_dot_test(rng):
    a = rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))
    good = pl.MatVec(a.shape, lambda x: a @ x, lambda y: a.conj().T @ y, dtype=a.dtype)
    assert pl.check_adjoint(good) < 1e-14
    transposed = pl.MatVec(a.shape, lambda x: a @ x, lambda y: a.T @ y, dtype=a.dtype)
    with pytest.raises(ValueError, match="not the adjoint"):
        pl.check_adjoint(transposed)
    slightly = pl.MatVec(
        a.shape, lambda x: a @ x, lambda y: 1.000001 * (a.conj().T @ y), dtype=a.dtype
    )
    with pytest.raises(ValueError, match="not the adjoint"):
        pl.check_adjoint(slightly)
    assert 0 < pl.check_adjoint(slightly, rtol=1e-5) < 1e-6
    nan = pl.MatVec((3, 3), lambda x: x * np.nan, lambda y: y, dtype=float)
    with pytest.raises(ValueError):
        pl.check_adjoint(nan)
    for kind in ref.KINDS:
        pl.check_adjoint(ref.build(leaf(kind, rng, 4, 4, "complex128")))
