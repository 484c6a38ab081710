"""Sparse Cholesky factors by scikit-sparse: by the real one where it is installed, and by stand-ins
with the names of its releases 0.4 and 0.5, which factor densely in reversed order."""

import types

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from test_sparse_solve import eta, indefinite, laplacian, saddle, uneven

import pylinop as pl
from pylinop import _core
from pylinop._sparse import cholmod as _cholmod

SIDE = 21


class CholmodError(Exception):
    pass


def without_pivots(a):
    L, d = np.tril(a), np.empty(len(a))
    for j in range(len(L)):
        d[j] = L[j, j].real
        L[j:, j] /= d[j]
        below = L[j + 1 :, j]
        L[j + 1 :, j + 1 :] -= np.tril(np.outer(below * d[j], below.conj()))
    return L, d


class Reversed:
    """L and D of L D L^H = A[::-1, ::-1]; without pivots."""

    def __init__(self, A):
        a = A.toarray()
        self.p = np.arange(len(a))[::-1].astype(np.int32)
        turned = a[self.p][:, self.p]
        try:
            L = np.linalg.cholesky(turned)
            self.unit, self.d = L / L.diagonal(), L.diagonal().real ** 2
        except np.linalg.LinAlgError:
            self.unit, self.d = without_pivots(turned)

    def root(self):
        return sp.csc_array(self.unit * np.sqrt(self.d))

    def answer(self, b):
        assert b.flags.writeable
        y = sl.solve_triangular(self.unit, b[self.p], lower=True, unit_diagonal=True)
        x = np.empty_like(y)
        x[self.p] = sl.solve_triangular(
            self.unit, y / self.d[:, None], lower=True, unit_diagonal=True, trans=2
        )
        return x


class Factor5(Reversed):
    def __init__(self, A):
        super().__init__(A)
        if not self.d.min() > 0:
            raise CholmodError("not positive definite")
        self.rcond = self.d.min() / self.d.max()
        self.nnz = np.count_nonzero(self.unit)
        self.solve = self.answer

    def get_perm(self):
        return self.p

    def get_factor(self, kind, lower):
        assert (kind, lower) == ("LL", True)
        return self.root()


class Factor4(Reversed):
    P = lambda self: self.p  # noqa: E731
    D = lambda self: self.d  # noqa: E731
    L = Reversed.root
    solve_A = Reversed.answer


def stand_in(**members):
    return types.SimpleNamespace(CholmodError=CholmodError, **members)


@pytest.fixture(params=["0.4", "0.5", "real"])
def cholmod(request, monkeypatch):
    if request.param == "real":
        module = pytest.importorskip("sksparse.cholmod")
    elif request.param == "0.4":
        module = stand_in(cholesky=Factor4)
    else:
        module = stand_in(cho_factor=lambda A, lower: Factor5(A))
    monkeypatch.setattr(_cholmod, "_module", module)
    _core._clear_store()
    yield module
    _core._clear_store()


def made_by(run):
    """The names of the steps that ran."""
    with pl.explaining() as e:
        run()
    return [step["name"] for step in e.steps if step["took"] is not None]


def hermitian(rng, side):
    a = sp.csr_array(laplacian(side, complex))
    turn = np.exp(1j * rng.standard_normal(side * side))
    return sp.csr_array(sp.diags_array(turn) @ a @ sp.diags_array(turn.conj()))


def matrices(rng):
    a = hermitian(rng, SIDE)
    a = sp.csr_array((a + a.conj().T) / 2)
    return {
        "laplacian": pl.Sparse(laplacian(SIDE)),
        "by columns": pl.Sparse(sp.csc_array(laplacian(SIDE))),
        "negative": -3 * pl.Sparse(laplacian(SIDE)),
        "odd and negative": -1 * pl.Sparse(laplacian(SIDE)),
        "sum": pl.Sparse(laplacian(SIDE)) + pl.Diag(rng.random(SIDE**2)),
        "float32": pl.Sparse(laplacian(SIDE, np.float32)),
        "complex": pl.Sparse(a),
        "transposed": pl.Sparse(a).T,
        "conjugate": pl.Sparse(a).conj(),
    }


@pytest.mark.parametrize("name", list(matrices(np.random.default_rng(0))))
def test_solves_determinants_and_inverses(cholmod, name, rng):
    op = matrices(rng)[name]
    a = op.toarray().astype(np.result_type(op.dtype, np.float64))
    single = op.dtype == np.float32
    b = rng.standard_normal((len(a), 3)).astype(op.dtype)
    assert "CHOLMOD" in made_by(lambda: pl.solve(op, b))
    for right in (b, b[:, 0], b[:, :0], b[::-1, ::2]):
        assert pl.solve(op, right).shape == right.shape
        if right.size:
            assert eta(a, pl.solve(op, right), right) < (1e-6 if single else 1e-14)
    assert eta(a.T, pl.solve(op.T, b), b) < (1e-6 if single else 1e-14)
    assert eta(a.conj().T, pl.solve(op.H, b), b) < (1e-6 if single else 1e-14)
    sign, log = np.linalg.slogdet(a)
    got = pl.slogdet(op)
    assert abs(got.sign - sign) < 1e-9
    assert abs(got.logabsdet - log) < (1e-4 if single else 1e-10) * abs(log)
    inverse = np.linalg.inv(a)
    for k in (0, 2, -1):
        want = np.diagonal(inverse, k)
        found = pl.diagonal(pl.inv(op), k)
        assert abs(found - want).max() < (1e-4 if single else 1e-10) * abs(want).max()
    assert abs(pl.trace(pl.inv(op) @ op) - len(a)) < (1e-2 if single else 1e-8)


def test_complex_right_sides_and_nan(cholmod, rng):
    a = laplacian(SIDE)
    op = pl.Sparse(a)
    b = rng.standard_normal((a.shape[0], 2)) + 1j * rng.standard_normal((a.shape[0], 2))
    b[3, 1] = np.nan
    x = pl.solve(op, b)
    assert eta(a.toarray(), x[:, 0], b[:, 0]) < 1e-14
    assert np.isnan(x[:, 1]).all()


def test_other_matrices_go_to_superlu(cholmod, rng):
    n = SIDE**2
    swapped = sp.csr_array(
        laplacian(SIDE) + sp.diags_array([-3.0, -3.0], offsets=[-7, 7], shape=(n, n))
    )
    graded = sp.diags_array(np.logspace(0, -20, n))
    for a in (
        indefinite(SIDE),
        swapped,  # a positive diagonal, but not definite
        sp.csr_array(graded @ laplacian(SIDE) @ graded),  # definite, pivots from 1 to 1e-40
        saddle(rng, SIDE),
        uneven(rng, SIDE),
    ):
        op = pl.Sparse(a)
        b = rng.standard_normal(a.shape[0])
        ran = made_by(lambda op=op, b=b: pl.solve(op, b))
        assert "SuperLU" in ran and "CHOLMOD" not in ran
        assert eta(a.toarray(), pl.solve(op, b), b) < 1e-13
        sign, log = np.linalg.slogdet(a.toarray())
        got = pl.slogdet(op)
        assert got.sign == sign and abs(got.logabsdet - log) < 1e-8 * abs(log)


def test_narrow_matrices_stay_bands(cholmod, rng):
    n = 500
    a = sp.diags_array([-1.0, 3.0, -1.0], offsets=[-2, 0, 2], shape=(n, n), format="csr")
    op, b = pl.Sparse(a), rng.standard_normal(n)
    assert "band" in made_by(lambda: pl.solve(op, b))
    assert eta(a.toarray(), pl.solve(op, b), b) < 1e-14


def test_writes_are_seen_and_bits_stay(cholmod, rng):
    a = laplacian(SIDE)
    op = pl.Sparse(a)
    b = rng.standard_normal(a.shape[0])
    first = pl.solve(op, b)
    pl.slogdet(op), pl.diagonal(pl.inv(op))
    np.testing.assert_array_equal(pl.solve(op, b), first)
    _core._clear_store()
    np.testing.assert_array_equal(pl.solve(op, b), first)
    a.data *= 4
    np.testing.assert_array_equal(pl.solve(op, b), first / 4)
    a.setdiag(a.diagonal() - 7)  # definite no more
    assert "SuperLU" in made_by(lambda: pl.solve(op, b))
    assert eta(a.toarray(), pl.solve(op, b), b) < 1e-13


def test_a_factor_that_is_no_good_is_replaced(monkeypatch, rng):
    class Wrong(Factor5):
        def answer(self, b):
            return super().answer(b) * np.linspace(0.5, 2, len(b))[:, None]

    monkeypatch.setattr(_cholmod, "_module", stand_in(cho_factor=lambda A, lower: Wrong(A)))
    _core._clear_store()
    a = laplacian(SIDE)
    op, b = pl.Sparse(a), rng.standard_normal(a.shape[0])
    assert "SuperLU" in made_by(lambda: pl.solve(op, b))
    assert eta(a.toarray(), pl.solve(op, b), b) < 1e-14
    _core._clear_store()


@pytest.mark.parametrize("error", [MemoryError, CholmodError])
def test_errors_of_cholmod(monkeypatch, rng, error):
    def fails(A, lower):
        raise error("no")

    monkeypatch.setattr(_cholmod, "_module", stand_in(cho_factor=fails))
    _core._clear_store()
    a = laplacian(SIDE)
    op, b = pl.Sparse(a), rng.standard_normal(a.shape[0])
    assert "SuperLU" in made_by(lambda: pl.solve(op, b))
    assert eta(a.toarray(), pl.solve(op, b), b) < 1e-14


def test_without_scikit_sparse(monkeypatch):
    import builtins

    real = builtins.__import__

    def absent(name, *args, **how):
        if name.startswith("sksparse"):
            raise ImportError(name)
        return real(name, *args, **how)

    monkeypatch.setattr(_cholmod, "_module", None)
    monkeypatch.setattr(builtins, "__import__", absent)
    assert _cholmod.factor(sp.csc_array(laplacian(3)), 1) is None
    assert _cholmod._module is False
