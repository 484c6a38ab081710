"""A Block of 2 x 2 circulants by its Schur complement, a circulant too; one of diagonals or bands
by a sparse factor: beside dense NumPy, by the steps that run, and where the fast way fails."""

import numpy as np
import pytest

import pylinop as pl

FACTORS = {"potrf", "getrf", "sytrf", "hetrf"}


def draw(rng, dtype, n):
    x = rng.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(n)
    return x.astype(dtype)


def circulant(rng, n, dtype, top=4.0):
    c = draw(rng, dtype, n) / n**0.5
    c[0] += top
    return pl.Circulant(c)


def sums(rng, n, dtype):
    return circulant(rng, n, dtype) @ circulant(rng, n, dtype) + 0.5 * pl.Identity(n)


PARTS = {
    "circulants": lambda rng, n, dtype: [circulant(rng, n, dtype, t) for t in (6, 1, 1, 6)],
    "other tops": lambda rng, n, dtype: [circulant(rng, n, dtype, t) for t in (6, 1, 1, 60)],
    "sums": lambda rng, n, dtype: [
        sums(rng, n, dtype),
        circulant(rng, n, dtype, 1),
        circulant(rng, n, dtype, 1).T,
        sums(rng, n, dtype).T,
    ],
    "identities": lambda rng, n, dtype: [
        circulant(rng, n, dtype, 6), pl.Identity(n, dtype=dtype),
        pl.Identity(n, dtype=dtype), circulant(rng, n, dtype, 6),
    ],
    "of two levels": lambda rng, n, dtype: [
        pl.Circulant(np.r_[t, draw(rng, dtype, n - 1) / n].reshape(-1, 2).astype(dtype), levels=2)
        for t in (6, 1, 1, 6)
    ],
    "diagonals": lambda rng, n, dtype: [pl.Diag(draw(rng, dtype, n) + t) for t in (9, 1, 1, 9)],
    "bands": lambda rng, n, dtype: [
        pl.Tridiagonal(draw(rng, dtype, n - 1), draw(rng, dtype, n) + t, draw(rng, dtype, n - 1))
        for t in (12, 1, 1, 12)
    ],
}  # fmt: skip


def block(parts):
    return pl.Block([parts[:2], parts[2:]])


def check(A, rng, dtype, tolerance):
    n, dense = A.shape[0], A.toarray()
    b, B = draw(rng, dtype, n), np.stack([draw(rng, dtype, n) for _ in range(3)], 1)
    for op, full in ((A, dense), (A.T, dense.T), (A.H, dense.conj().T)):
        inverse = np.linalg.inv(full)
        size = np.abs(inverse).max()
        got = [pl.solve(op, b), pl.solve(op, B), pl.inv(op).diagonal(), pl.trace(pl.inv(op)) / n]
        want = [inverse @ b, inverse @ B, inverse.diagonal(), inverse.trace() / n]
        for x, y in zip(got, want, strict=True):
            assert np.abs(x - y).max() <= tolerance * n * size
        sign, log = pl.slogdet(op)
        wanted = np.linalg.slogdet(full)
        assert abs(sign - wanted[0]) <= tolerance * n and abs(log - wanted[1]) <= tolerance * n


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n", [2, 31, 32, 64, 66, 100])
@pytest.mark.parametrize("parts", PARTS)
def test_beside_dense(parts, n, dtype, rng):
    if parts == "of two levels" and n % 2:
        n += 1
    A = block(PARTS[parts](rng, n, dtype))
    check(A, rng, dtype, 1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("parts", PARTS)
def test_nothing_of_n_by_n_is_made(parts, rng):
    n = 2000
    A, b = block(PARTS[parts](rng, n, "float64")), rng.standard_normal(2 * n)
    with pl.explaining() as log:
        pl.solve(A, b)
        pl.slogdet(A)
        pl.inv(A).diagonal()
    taken = [s["name"] for plan in log.plans for s in plan.steps if not s.get("conditional")]
    assert not {name for name in taken if name in FACTORS}
    ran = sum(s["flops"] for p in log.plans for s in p.steps if s["took"] and not s["conditional"])
    assert ran < 20_000 * n


@pytest.mark.parametrize("lost", [1e-3, 1e-9, 1e-15, 0.0])
def test_a_pivot_near_to_singular(lost, rng):
    """A has an eigenvalue of `lost`, the whole is far from singular: the fast way loses digits."""
    n = 64
    spectrum = np.exp(0.1 * rng.standard_normal(n))
    spectrum = 0.5 * (spectrum + spectrum[(-np.arange(n)) % n])
    spectrum[0] = lost
    c = np.fft.ifft(spectrum).real
    others = [circulant(rng, n, "float64", 3) for _ in range(3)]
    A = pl.Block([[pl.Circulant(c), others[0]], [others[1], 0.01 * others[2]]])
    dense, b = A.toarray(), rng.standard_normal(2 * n)
    x = pl.solve(A, b)
    eta = np.linalg.norm(b - dense @ x) / (
        np.linalg.norm(dense, 2) * np.linalg.norm(x) + np.linalg.norm(b)
    )
    assert eta <= 10 * 2 * n * 1.2e-16
    np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=1e-10)
    inverse = np.linalg.inv(dense).diagonal()
    np.testing.assert_allclose(
        pl.inv(A).diagonal(), inverse, rtol=0, atol=1e-9 * np.abs(inverse).max()
    )


def test_singular_and_nan(rng):
    n = 40
    C = circulant(rng, n, "float64")
    A = pl.Block([[C, C], [C, C]])
    with pytest.raises(pl.LinAlgError, match="Singular"):
        pl.solve(A, rng.standard_normal(2 * n))
    c = np.ones(n)
    c[3] = np.nan
    A = pl.Block([[pl.Circulant(c), C], [C, C]])
    assert np.isnan(pl.slogdet(A)[1])
    assert np.isnan(pl.solve(A, np.ones(2 * n))).any()


def test_values_change_between_calls(rng):
    n = 50
    c = np.r_[6.0, rng.standard_normal(n - 1) / n]
    A = pl.Block([[pl.Circulant(c), circulant(rng, n, "float64", 1)],
                  [circulant(rng, n, "float64", 1), circulant(rng, n, "float64", 6)]])  # fmt: skip
    b = rng.standard_normal(2 * n)
    for _ in range(3):
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-10)
        c[1] += 0.5


def test_numbers_of_fewer_digits_beside_others(rng):
    n = 48
    kinds = (("float32", 6), ("float64", 1), ("float64", 1), ("float32", 6))
    check(block([circulant(rng, n, d, t) for d, t in kinds]), rng, "float64", 1e-13)
    parts = [circulant(rng, n, "float32", t) for t in (6, 1, 1, 6)]
    A, b = block(parts), rng.standard_normal(2 * n)
    dense = A.toarray().astype(float)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-11)
