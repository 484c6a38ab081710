"""Functions of a `Block` by its structure: bordered matrices, block circulants."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._structured import arrowhead

# -- bordered matrices --


def _bordered(rng, first, k, complex_=False):
    """[A B; B^H D], definite, with that A."""
    n = first.shape[0]
    B = rng.standard_normal((n, k)) + (1j * rng.standard_normal((n, k)) if complex_ else 0)
    B *= 0.5 / np.linalg.norm(B)
    D = rng.standard_normal((k, k))
    return pl.Block([[first, B], [B.conj().T, D @ D.T + np.eye(k)]])


FIRSTS = {
    "Diag": lambda r, n: pl.Diag(r.uniform(1, 2, n)),
    "Banded": lambda r, n: pl.Banded((1, 1), np.array([[0.3], [1.0], [0.3]]).repeat(n, axis=1)),
    "Kron": lambda r, n: pl.Kron(np.diag([1.0, 2.0]) + 0.5, np.eye(n // 2) + 0.2),
    "BlockDiag": lambda r, n: pl.BlockDiag(np.eye(n // 2) + 0.1, pl.Diag(np.full(n // 2, 3.0))),
    "Identity": lambda r, n: pl.Identity(n),
}  # fmt: skip


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", FIRSTS)
def test_cholesky_of_bordered_matrices(kind, k, complex_, rng):
    A = _bordered(rng, FIRSTS[kind](rng, 32), k, complex_)
    want = np.linalg.cholesky(A.toarray())
    for upper in (False, True):
        L = pl.cholesky(A, upper=upper)
        assert type(L) is pl.Block and L.dtype == want.dtype
        got = L.toarray()
        np.testing.assert_allclose(got, want.conj().T if upper else want, rtol=1e-10, atol=1e-13)
    b = rng.standard_normal(32 + k)
    x = pl.solve(pl.cholesky(A), b)
    np.testing.assert_allclose(want @ x, b, atol=1e-11)
    assert {"cholesky-block"} <= set(A.explain("cholesky").fired)


def test_cholesky_of_bordered_matrices_reads_one_triangle(rng):
    A = _bordered(rng, pl.Diag(rng.uniform(1, 2, 32)), 2)
    (a, b), (c, d) = ([x.toarray() for x in row] for row in A._given("blocks"))
    want = np.linalg.cholesky(A.toarray())
    lower = pl.Block([[pl.Diag(np.diagonal(a)), np.full_like(b, 9.0)], [c, np.tril(d)]])
    np.testing.assert_allclose(pl.cholesky(lower).toarray(), want, atol=1e-13)
    upper = pl.Block([[pl.Diag(np.diagonal(a)), b], [np.full_like(c, 9.0), np.triu(d)]])
    np.testing.assert_allclose(pl.cholesky(upper, upper=True).toarray(), want.T, atol=1e-13)


def test_cholesky_of_bordered_matrices_that_are_not_definite(rng):
    for first, last in ((np.ones(32), 0.1), (np.r_[np.ones(31), -1.0], 99.0)):
        A = pl.Block([[pl.Diag(first), np.ones((32, 1))], [np.ones((1, 32)), [[last]]]])
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            pl.cholesky(A)
    wide = _bordered(rng, pl.Diag(np.ones(8)), 4)  # too wide a border: the dense form
    np.testing.assert_allclose(pl.cholesky(wide).toarray(), np.linalg.cholesky(wide.toarray()))
    assert "cholesky-block" not in wide.explain("cholesky").fired


# -- arrowheads --


def _arrowhead(d, z, a):
    """The operator, and its dense form."""
    d = d if isinstance(d, pl.LinearOperator) else pl.Diag(d)
    A = pl.Block([[d, z[:, None]], [z.conj()[None], np.array([[a]], z.dtype)]])
    return A, A.toarray()


def _check_arrowhead(A, a):
    w, Q = pl.eigh(A)
    q, size = Q.toarray(), np.abs(np.linalg.eigvalsh(a)).max()
    assert {"eigh-block"} <= set(A.explain("eigh").fired) and q.dtype == a.dtype
    tolerance = 50 * len(a) ** 0.5 * np.finfo(a.dtype).eps
    np.testing.assert_allclose(q.conj().T @ q, np.eye(len(a)), atol=tolerance)
    np.testing.assert_allclose(a @ q, q * w, atol=tolerance * size)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=tolerance * size)
    values = pl.eigvalsh(A)
    assert values.dtype == w.dtype
    np.testing.assert_allclose(values, w, atol=tolerance * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("n", [199, 200, 250, 420])
def test_arrowheads(n, dtype, rng):
    d, z = rng.standard_normal(n), rng.standard_normal(n).astype(dtype)
    z = z * np.exp(1j * rng.uniform(0, 6, n)) if dtype == np.complex128 else z
    _check_arrowhead(*_arrowhead(d.astype(np.finfo(dtype).dtype), z, 0.7))


@pytest.mark.parametrize(
    "d",
    [
        lambda r, n: np.zeros(n),
        lambda r, n: np.round(r.standard_normal(n), 1),  # many equal
        lambda r, n: 1 + 1e-16 * r.integers(0, 50, n) * r.random(n),  # equal to rounding
        lambda r, n: 10.0 ** r.uniform(-12, 3, n),
        lambda r, n: np.sort(r.standard_normal(n))[::-1].copy(),
    ],
)
@pytest.mark.parametrize(
    "z",
    [
        lambda r, n: np.zeros(n),
        lambda r, n: r.standard_normal(n) * (r.random(n) < 0.5),
        lambda r, n: r.standard_normal(n) * 10.0 ** r.uniform(-20, 0, n),
        lambda r, n: 1e6 * r.standard_normal(n),
    ],
)
def test_arrowheads_that_split(d, z, rng):
    _check_arrowhead(*_arrowhead(d(rng, 401), z(rng, 401), float(rng.standard_normal())))


@pytest.mark.parametrize("first", ["Kron", "BlockDiag", "Identity"])
def test_arrowheads_beside_structure(first, rng):
    z = rng.standard_normal(450)
    _check_arrowhead(*_arrowhead(FIRSTS[first](rng, 450), z, -0.3))
    _check_arrowhead(*_arrowhead(FIRSTS[first](rng, 450), z * (1 + 2j), -0.3))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-155, 1e150, 1e155, 1e300])
def test_arrowheads_of_any_scale(scale, dtype, rng):
    """Values relative to the norm, and orthogonal vectors, as LAPACK has them."""
    d, z = rng.standard_normal(401), rng.standard_normal(401).astype(dtype)
    z = z * np.exp(1j * rng.uniform(0, 6, 401)) if dtype == np.complex128 else z
    A, a = _arrowhead(scale * d, scale * z, 0.7 * scale)
    a /= scale
    np.testing.assert_allclose(pl.eigvalsh(A) / scale, np.linalg.eigvalsh(a), atol=1e-12)
    A, a = _arrowhead(scale * d[:201], scale * z[:201], 0.7 * scale)
    a /= scale
    w, q = pl.eigh(A)
    q = q.toarray()
    np.testing.assert_allclose(q.conj().T @ q, np.eye(202), atol=1e-12)
    np.testing.assert_allclose(a @ q, q * (w / scale), atol=1e-11)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("graded", ["poles", "weights", "both", "corner"])
def test_arrowheads_of_all_scales_in_one(graded, rng):
    d, z = rng.standard_normal(401), rng.standard_normal(401)
    steps = 10.0 ** np.linspace(-150, 150, 401)
    d *= steps if graded in ("poles", "both") else 1
    z *= rng.permutation(steps) if graded in ("weights", "both") else 1
    A, a = _arrowhead(d, z, 1e150 if graded == "corner" else 0.7)
    _check_arrowhead(A, a)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_arrowheads_that_are_not_finite_go_the_road_of_lapack(bad, rng):
    for k in range(3):
        parts = [rng.standard_normal(450), rng.standard_normal(450), rng.standard_normal(1)]
        parts[k][0] = bad
        A, a = _arrowhead(parts[0], parts[1], parts[2][0])
        got, want = [], []
        for f, x, to in ((pl.eigvalsh, A, got), (np.linalg.eigvalsh, a, want)):
            try:
                to.append(f(x))
            except np.linalg.LinAlgError as e:
                to.append(type(e))
        if want[0] is np.linalg.LinAlgError:
            assert issubclass(got[0], want[0])
        else:
            np.testing.assert_array_equal(got[0], want[0])


def test_arrowheads_read_one_triangle(rng):
    d, z, nan = rng.standard_normal(401), rng.standard_normal(401), np.full(401, np.nan)
    A, a = _arrowhead(d, z, 0.5)
    last = np.array([[0.5]])
    lower = pl.Block([[pl.Diag(d), nan[:, None]], [z[None], last]])
    upper = pl.Block([[pl.Diag(d), z[:, None]], [nan[None], last]])
    want = np.linalg.eigvalsh(a)
    for A, side in ((lower, "L"), (upper, "U")):
        np.testing.assert_allclose(pl.eigvalsh(A, side), want, atol=1e-12)
        np.testing.assert_allclose(pl.eigh(A, side)[0], want, atol=1e-12)


def test_arrowheads_are_kept(rng, monkeypatch):
    """Until what they are made of changes."""
    calls, pairs = [], arrowhead.pairs
    monkeypatch.setattr(arrowhead, "pairs", lambda *a: calls.append(a) or pairs(*a))
    d = rng.standard_normal(450)
    A, a = _arrowhead(d, rng.standard_normal(450), 0.5)
    for f in (lambda: pl.eigh(A)[0], lambda: pl.eigvalsh(A)):
        calls.clear()
        np.testing.assert_array_equal(f(), f())
        assert len(calls) == 1
    d += 1
    want = np.linalg.eigvalsh(A.toarray())
    np.testing.assert_allclose(pl.eigh(A)[0], want, atol=1e-12)
    np.testing.assert_allclose(pl.eigvalsh(A), want, atol=1e-12)


def test_arrowheads_hold_no_more_than_they_may(rng):
    A, a = _arrowhead(rng.standard_normal(500), rng.standard_normal(500), 0.5)
    with pl.config(memory_limit=501 * 501 * 8 // 2):
        np.testing.assert_allclose(pl.eigvalsh(A), np.linalg.eigvalsh(a), atol=1e-12)
        with pytest.raises(pl.MaterializationError):
            pl.eigh(A)


# -- block circulants --


def _block_circulant(rng, p, m, dtype, hermitian):
    """The operator, of p blocks, and its dense form."""
    c = [rng.standard_normal((m, m)).astype(dtype) for _ in range(p)]
    if dtype == np.complex128:
        c = [x + 1j * rng.standard_normal((m, m)) for x in c]
    if hermitian:
        c[0] = c[0] + c[0].conj().T
        for k in range(1, p):
            c[-k] = c[k].conj().T if k != p - k else c[k] + c[k].conj().T
        if p % 2 == 0:
            c[p // 2] = c[p // 2] + c[p // 2].conj().T
    A = pl.Block([[c[(i - j) % p] for j in range(p)] for i in range(p)])
    return A, np.block([[c[(i - j) % p] for j in range(p)] for i in range(p)])


@pytest.mark.parametrize("p, m", [(2, 3), (3, 1), (4, 2), (5, 4), (8, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_block_circulants(p, m, dtype, rng):
    A, a = _block_circulant(rng, p, m, dtype, False)
    assert A.explain("svdvals").fired == ["svdvals-block"]
    np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(a), atol=1e-12)
    np.testing.assert_allclose(pl.matrix_norm(A, 2), np.linalg.norm(a, 2))
    np.testing.assert_allclose(pl.eigvalsh(A), np.linalg.eigvalsh(a), atol=1e-12)  # one triangle
    H, h = _block_circulant(rng, p, m, dtype, True)
    assert np.array_equal(h, h.conj().T)
    with pl.explaining() as e:
        w = pl.eigvalsh(H)
    assert "eigvalsh-block" in e.explanation.fired
    np.testing.assert_allclose(w, np.linalg.eigvalsh(h), atol=1e-12)
    w, Q = pl.eigh(H)
    q = Q.toarray()
    assert q.dtype == dtype and w.dtype == np.float64
    np.testing.assert_allclose(q * w @ q.conj().T, h, atol=1e-12)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(p * m), atol=1e-12)
    assert "eigh-block" in H.explain("eigh").fired


def test_what_is_no_block_circulant(rng):
    """Equal numbers in other arrays, other shapes, NaN: the dense form, and the same answer."""
    A, a = _block_circulant(rng, 3, 2, np.float64, False)
    rows = [[x.toarray() for x in row] for row in A._given("blocks")]
    copies = pl.Block(rows)
    assert copies.explain("svdvals").fired == []
    np.testing.assert_allclose(pl.svdvals(copies), pl.svdvals(A), atol=1e-12)
    rows = A._given("blocks")
    other = pl.Block([rows[0], rows[1], [rows[2][1], rows[2][0], rows[2][2]]])
    np.testing.assert_allclose(pl.svdvals(other), np.linalg.svdvals(other.toarray()), atol=1e-12)
    x, zero = rng.standard_normal((2, 2)), pl.Zeros(2)
    Z = pl.Block([[x, zero, zero], [zero, x, zero], [zero, zero, x]])
    assert Z.explain("svdvals").fired == ["svdvals-block"]
    np.testing.assert_allclose(pl.svdvals(Z), np.linalg.svdvals(Z.toarray()), atol=1e-12)
    x[0, 0] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        pl.svdvals(pl.Block([[x, x], [x, x]]))
