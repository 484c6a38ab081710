"""Keys that add axes (np.newaxis, single booleans) or move them (index arrays apart from one
another, or of several dimensions): NumPy's array, of operators and of LazyArrays."""

import numpy as np
import pytest

import pylinop as pl

PARTS = [
    None, 0, -1, np.s_[:], np.s_[1:3], np.s_[::-1], Ellipsis, [0, 1], [1, 0, 1],
    np.array([[0], [1]]), np.array([[0, 1], [1, 0]]), True, False, np.array([True, False]),
    np.s_[0:0], np.array([], int),
]  # fmt: skip


def operators(rng):
    a = rng.standard_normal((4, 4))
    yield pl.Kron(a[:2, :3], a[:3, :2])
    yield pl.Toeplitz(a[0])
    yield pl.Dense(rng.standard_normal((2, 3, 4)))
    yield pl.Diag(rng.standard_normal((2, 3, 4)))
    yield pl.Kernel("rbf", rng.standard_normal((2, 4, 2)))
    yield pl.MatVec((4, 4), lambda x: 2 * x, dtype=float)
    yield pl.Dense(a) @ pl.Diag(a[0])


def outcome(a, key):
    try:
        found = a[key]
    except IndexError:
        return IndexError
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def test_random_keys(rng):
    for A in operators(rng):
        a = A.toarray()
        lazy = pl.lazy(a)
        for _ in range(600):
            key = tuple(PARTS[i] for i in rng.integers(len(PARTS), size=rng.integers(1, 5)))
            if sum(k is Ellipsis for k in key) > 1:
                continue
            want = outcome(a, key)
            for of in (A, lazy):
                got = outcome(of, key)
                if want is IndexError or got is IndexError:
                    assert want is got, (type(of), key)
                    continue
                assert got.shape == want.shape and got.dtype == want.dtype, (type(of), key)
                np.testing.assert_allclose(got, want, atol=1e-12, err_msg=str(key))


@pytest.mark.parametrize(
    "key", [None, np.s_[:, None], True, np.s_[[[0, 1], [1, 2]]], np.s_[np.True_, 0]], ids=str
)
def test_axes_are_added(key):
    """These are arrays, computed now."""
    a = np.arange(12.0).reshape(3, 4)
    got = (2 * pl.Dense(a))[key]
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, 2 * a[key])


def test_only_what_the_key_is_about_is_made():
    """Of a matrix that would not fit in memory."""
    u = np.arange(1e6)[:, None]
    A = pl.LowRank(u, u)
    with pl.config(memory_limit=2**20):
        got = A[[[0, 5]], [[7], [9]], None]
        np.testing.assert_array_equal(got[..., 0], [[0, 35], [0, 45]])
        with pytest.raises(pl.MaterializationError):
            A[:, None]


def test_out_of_bounds_is_an_error():
    A = pl.Toeplitz(np.ones(3))
    for key in (np.s_[None, 3], np.s_[None, [0, 7]], np.s_[None, 0, 0, 0], np.s_[True, "a"]):
        with pytest.raises(IndexError):
            A[key]
