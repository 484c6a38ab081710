"""Eigenpairs by structure have a price, part by part; what method= names is run, and "auto" takes
the cheaper way."""

import numpy as np
import pytest

import pylinop as pl


def sym(rng, n, decay=1.0):
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    a = (q * decay ** np.arange(n)) @ q.T
    return (a + a.T) / 2


def lapack(n, vectors=True):
    return (9 if vectors else 4 / 3) * n**3


def test_parts_are_priced(rng):
    """A Kron, KronSum or BlockDiag takes what its parts take, and a sort."""
    a, b = sym(rng, 40), sym(rng, 60)
    both = lapack(40) + lapack(60)
    for A in (pl.Kron(a, b), pl.KronSum(a, b), pl.BlockDiag(a, b)):
        said = A.explain("eigh")
        assert both <= said.flops <= 1.3 * both
        assert said.seconds > 0 and said.bytes > 0 and said.memory > 0
        assert "structure" in str(said)
        only = A.explain("eigvalsh")
        assert 0 < only.flops < said.flops
    large = pl.Kron(sym(rng, 300), sym(rng, 300)).explain("eigh")  # parts of any size
    assert 2 * lapack(300) <= large.flops <= 1.3 * 2 * lapack(300)


@pytest.mark.parametrize(
    "A",
    [
        pl.Diag(np.arange(50.0)),
        pl.Circulant(np.ones(50)),
        pl.Laplacian((10, 5)),
        pl.Hadamard(64),
        pl.LowRank(np.ones((50, 2))),
        pl.Full((50, 50), 2.0),
    ],
)
def test_closed_forms_are_priced(A):
    """Nothing is free, and nothing of these takes n^3."""
    for B in (A, 2 * A, A.T, A + 3 * pl.Identity(A.shape[0])):
        said = B.explain("eigh")
        assert 0 < said.flops < lapack(A.shape[0]) / 4 and said.seconds > 0, type(B)


def test_the_price_does_not_depend_on_the_spelling(rng):
    """Views, multiples and shifts cost what the matrix does, and a sort of its values."""
    A = pl.Kron(sym(rng, 40), sym(rng, 30))
    plain = A.explain("eigh").flops
    for B in (A.T, A.H, 2 * A, -A, A + 2 * pl.Identity(1200), pl.inv(A), A[:1200]):
        assert plain <= B.explain("eigh").flops <= 1.3 * plain


def test_batches_are_counted(rng):
    """Two matrices take what each does."""
    a = sym(rng, 30)
    one = pl.Dense(a).explain("eigh")
    two = pl.Dense(np.stack([a, a])).explain("eigh")
    assert two.flops == 2 * one.flops and two.memory == 2 * one.memory


def lanczos_ran(call):
    """Was the callback of Lanczos called?"""
    told = []
    call(told.append)
    return bool(told) and all("Lanczos" in t["method"] for t in told)


def blocks(rng, count, n):
    return [(i + 1) * sym(rng, n, 0.9) for i in range(count)]


def test_iterative_is_iterative(rng):
    """What method= names is run, whatever the structure."""
    for A in (pl.BlockDiag(*blocks(rng, 4, 20)), pl.Diag(np.arange(90.0)), 2 * pl.Identity(80)):
        want = np.linalg.eigvalsh(A.toarray())[-1:]
        assert lanczos_ran(lambda tell, A=A: pl.eigh(A, k=1, method="iterative", callback=tell))
        w, q = pl.eigh(A, k=1, method="iterative")
        np.testing.assert_allclose(w, want, rtol=1e-10)
        np.testing.assert_allclose(A @ q.toarray(), q.toarray() * w, atol=1e-8 * want[0])
        np.testing.assert_allclose(pl.eigvalsh(A, k=1, method="iterative"), want, rtol=1e-10)
        np.testing.assert_allclose(pl.eigh(A, k=1, method="direct")[0], want, rtol=1e-10)


def test_the_cheaper_way(rng):
    """Blocks too large for one value are left to Lanczos; small ones are taken apart."""
    made = blocks(rng, 8, 300)
    want = max(np.linalg.eigvalsh(b)[-1] for b in made)
    few = pl.BlockDiag(*blocks(rng, 3, 12))
    assert "iterative (method='auto', the cheaper)" in pl.BlockDiag(*made).explain("eigh", k=1)
    assert few.explain("eigh", k=1).fired == ["eigh-blockdiag"]
    w, v = pl.eigsh(pl.BlockDiag(*made), 1)
    np.testing.assert_allclose(w, [want], rtol=1e-10)
    assert lanczos_ran(lambda tell: pl.eigsh(pl.BlockDiag(*made), 1, callback=tell))
    assert lanczos_ran(lambda tell: pl.eigh(pl.BlockDiag(*made), k=1, callback=tell))
    assert not lanczos_ran(lambda tell: pl.eigsh(few, 1, callback=tell))
    near = pl.eigsh(pl.BlockDiag(*made), 1, which="SM")  # for which Lanczos is no way
    assert near.record["method"] == "structure"


def test_structure_where_lanczos_gives_up(rng):
    """One restart finds nothing: the blocks decide, as they did before there was a price."""
    made = [a + a.T for a in rng.standard_normal((8, 300, 300))]
    found = pl.eigsh(pl.BlockDiag(*made), 1, which="LA", maxiter=1, ncv=3)
    assert found.record["method"] == "structure"
    np.testing.assert_allclose(found[0], [max(np.linalg.eigvalsh(a)[-1] for a in made)])


def test_what_is_computed_in_a_block_is_written_down(rng):
    """explaining() knows of eigh and eigvalsh without method=."""
    with pl.explaining() as e:
        pl.eigh(sym(rng, 30))
        pl.eigvalsh(pl.Kron(sym(rng, 8), sym(rng, 9)))
    said = str(e)
    assert "direct (method='auto', all pairs)" in said and "eigvalsh" in said
    assert "structure (method='auto', all pairs)" in said
