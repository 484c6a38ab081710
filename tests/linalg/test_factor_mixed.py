"""precision="mixed": factors in single precision, answers in double, the fallback
branch where that does not converge."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl
from pylinop import _core

MIXED = {"precision": "mixed"}


def conditioned(rng, n, cond, dtype="f8"):
    """A matrix of that condition number."""
    q, p = (np.linalg.qr(draw(rng, (n, n), dtype))[0] for _ in range(2))
    return ((q * np.geomspace(1, 1 / cond, n)) @ p).astype(dtype)


def draw(rng, shape, dtype):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a


def eta(a, x, b):
    """The backward error, worst of the columns."""
    x, b = (v[:, None] if v.ndim == 1 else v for v in (x, b))
    norm = np.linalg.norm(a, np.inf)
    return (np.abs(b - a @ x).max(0) / (norm * np.abs(x).max(0) + np.abs(b).max(0))).max()


def ran(A, b):
    """Names of the steps that ran."""
    found = A.explain("solve", b, run=True).steps
    return [s["name"] for s in found if s["took"] is not None]


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("word", [None, "pos"])
@pytest.mark.parametrize("cond", [1e1, 1e4, 1e6])
def test_the_backward_error_is_that_of_double_precision(dtype, word, cond, rng):
    n = 60
    a = conditioned(rng, n, cond, dtype)
    if word:
        q = np.linalg.qr(a)[0]
        a = (q * np.geomspace(1, 1 / cond, n)) @ q.conj().T
        a = (a + a.conj().T) / 2
    A = pl.Dense(a, word)
    for b in (draw(rng, n, dtype), draw(rng, (n, 3), dtype), np.ones(n)):
        x = pl.solve(A, b, **MIXED)
        assert x.dtype == np.dtype(dtype) and x.shape == b.shape
        assert eta(a, x, b) < 2 * np.finfo(dtype).eps * np.sqrt(n)
        with pl.config(**MIXED):
            assert (pl.inv(A) @ b).tobytes() == x.tobytes()  # also from the kept factor
            names = ran(A, b)
        assert "refine" in names and "getrf" not in names and "potrf" not in names


@pytest.mark.parametrize("mode", ["T", "H", "conj"])
@pytest.mark.parametrize("word", [None, "pos"])
def test_views(mode, word, rng):
    a = draw(rng, (30, 30), "c16") + 20 * np.eye(30)
    a = a @ a.conj().T if word else a
    A, b = pl.Dense(a, word), draw(rng, (30, 2), "c16")
    view, dense = {"T": (A.T, a.T), "H": (A.H, a.conj().T), "conj": (A.conj(), a.conj())}[mode]
    with pl.config(**MIXED):
        x = pl.solve(view, b)
        assert "refine" in ran(view, b)
    assert eta(dense, x, b) < 1e-14


@pytest.mark.parametrize("word", [None, "pos"])
def test_what_does_not_converge_goes_by_double_precision(word, rng):
    n = 10
    a = scipy.linalg.hilbert(n)
    b = np.ones(n)
    A = pl.Dense(a, word)
    want = pl.solve(A, b)
    assert pl.solve(A, b, **MIXED).tobytes() == want.tobytes()
    with pl.config(**MIXED):
        names = ran(A, b)
    assert "refine" in names and ("potrs" if word else "getrs") in names
    for scale in (1e200, 1e-200):  # no single precision number
        got = pl.solve(scale * a, b, **MIXED)
        assert eta(a * scale, got, b) < 1e-14
    for big in (1e300, 1e-300, 0.0):  # right-hand sides may be as large or small as they like
        x = pl.solve(pl.Dense(np.eye(4) + 0.1), big * np.ones(4), **MIXED)
        np.testing.assert_allclose(x, big / 1.4, rtol=1e-14)


def test_singular_matrices_raise(rng):
    a = np.ones((4, 4))
    for word in (None, "pos"):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            pl.solve(pl.Dense(np.zeros((3, 3)), word), np.ones(3), **MIXED)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.solve(a, np.ones(4), **MIXED)
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-10]])  # singular in single precision
    x = pl.solve(nearly, np.ones(2), **MIXED)
    assert eta(nearly, x, np.ones(2)) < 1e-15
    with pytest.warns(pl.FallbackWarning):  # not definite, as without
        pl.solve(pl.Dense(np.diag([1.0, -1.0]), "pos"), np.ones(2), **MIXED)
    assert np.isnan(pl.solve(np.full((3, 3), np.nan), np.ones(3), **MIXED)).all()


def test_only_the_named_triangle_is_read(rng):
    a = draw(rng, (12, 12), "c16")
    a = a @ a.conj().T + np.eye(12)
    b = draw(rng, (12, 2), "c16")
    x = pl.solve(np.triu(a) + np.tril(np.full((12, 12), np.nan), -1), b, "pos", **MIXED)
    assert eta(a, x, b) < 1e-15


def test_each_element_of_a_batch_takes_its_own_arm(rng):
    a = np.stack([np.eye(8) + 0.1, scipy.linalg.hilbert(8), 3 * np.eye(8)])
    b = rng.standard_normal((8, 2))
    plain, got = pl.solve(pl.Dense(a), b), pl.solve(pl.Dense(a), b, **MIXED)
    assert got[1].tobytes() == plain[1].tobytes()
    for i in range(3):
        assert eta(a[i], got[i], b) < 1e-15
        assert pl.solve(a[i].copy(), b, **MIXED).tobytes() == got[i].tobytes()


def test_writes_are_seen_and_bits_stay(rng):
    a, b = draw(rng, (20, 20), "f8") + 10 * np.eye(20), np.ones(20)
    A = pl.Dense(a)
    for i in range(3):
        x = pl.solve(A, b, **MIXED)
        assert pl.solve(A, b, **MIXED).tobytes() == x.tobytes()
        _core._clear_store()
        assert pl.solve(A, b, **MIXED).tobytes() == x.tobytes()
        assert eta(a, x, b) < 1e-15
        a[i, i] += 1


@pytest.mark.parametrize("layout", ["C", "F", "negative", "strided"])
def test_layouts_and_small_sizes(layout, rng):
    a = draw(rng, (9, 9), "f8") + 5 * np.eye(9)
    seen = {
        "C": a,
        "F": np.asfortranarray(a),
        "negative": np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
        "strided": np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    }[layout]
    for b in (np.ones(9), np.asfortranarray(rng.standard_normal((9, 3))), np.ones((9, 0))):
        x = pl.solve(pl.Dense(seen), b, **MIXED)
        assert x.size == 0 or eta(a, x, b) < 1e-15
    assert pl.solve(np.array([[4]]), np.array([2]), **MIXED) == [0.5]
    assert pl.solve(np.zeros((0, 0)), np.zeros(0), **MIXED).shape == (0,)


def test_single_precision_and_structure_stay_as_they_are(rng):
    a, b = rng.standard_normal((6, 6)), rng.standard_normal(6)
    single = pl.Dense(a.astype("f4"))
    assert pl.solve(single, b.astype("f4"), **MIXED).dtype == np.float32
    T = pl.Tridiagonal(np.ones(5), 4 * np.ones(6), np.ones(5))
    assert pl.solve(T, b, **MIXED).tobytes() == pl.solve(T, b).tobytes()
    with pl.config(**MIXED):
        S = pl.Dense(a) + pl.Diag(np.full(6, 9.0))  # by a dense form
        assert "refine" in [s["name"] for s in S.explain("solve", b).steps]
        np.testing.assert_allclose(S @ pl.solve(S, b), b)
        np.testing.assert_allclose(pl.inv(pl.Dense(a)).toarray() @ a, np.eye(6), atol=1e-11)
    assert "refine" not in [s["name"] for s in S.explain("solve", b).steps]


def test_errors():
    a, b = np.eye(2), np.ones(2)
    with pytest.raises(ValueError, match="'working' or 'mixed', got 'half'"):
        pl.solve(a, b, precision="half")
    with pytest.raises(ValueError, match="precision"):
        pl.config(precision=3)
    with pytest.raises(TypeError, match="goes with factors, not with method="):
        pl.solve(a, b, precision="mixed", method="cg")
    for right in (pl.Dense(a), pl.lazy(b)):
        with pytest.raises(TypeError, match=r"pl.config\(precision=...\)"):
            pl.solve(a, right, precision="mixed")
    assert pl.solve(a, b, precision="working").tolist() == [1, 1]
    assert pl.solve(a, b, precision=None).tolist() == [1, 1]
