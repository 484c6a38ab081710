"""Sparse direct solves for the core (sparse_solver.h): a narrow band, CHOLMOD or SciPy's SuperLU.

A `Factor` is a derived value of the core: made when the arrays of the matrix are new, kept within
`pl.config(cache_limit=...)`, dropped when they were written to. Its answers are checked: if the
backward error exceeds the bound after two refinements, the matrix is factored again with full
pivoting; if that does not help, the core uses the dense form."""

from __future__ import annotations

import copy
import weakref
from typing import Any

import numpy as np

from .. import _core
from .._base import conditioning, config, errors
from . import block_lu, cholmod, fill, selected_inverse
from .checked import DECLINED, EPS, SINGULAR, Checked, probe, scipy_sparse

_BAND = 16  # up to so many diagonals the solver of bands is quicker


def _sla() -> Any:
    import scipy.sparse.linalg  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse.linalg


_ROOM = 20  # what SuperLU sets aside at first, in entries of the matrix


class Factor(Checked):
    """A square sparse matrix and the factor that solves with it, made when first needed."""

    def __init__(self, A: Any, blocks: int = 1) -> None:
        super().__init__()
        self.blocks = blocks  # 2 of [B X; 0 C], 3 of [A X 0; 0 A Y; 0 0 A]
        self.A = A = _with_mirror(A, blocks) if blocks > 1 else _by_columns(A)
        self.dtype = A.dtype
        self.n = A.shape[0]
        self.finite = bool(np.isfinite(A.data).all())
        self.op: Any = None  # A as an operator, for residuals
        self.lu: Any = None  # SuperLU's, or cholmod.Cholesky with the same members
        self.band: Any = None
        self.order: Any = None  # for a band: the order of its rows and columns
        self.inverse: Any = None  # its entries on the factor's pattern: selected_inverse
        self.pivoted = False
        self.tried: Factor | bool | str | None = None  # what `believed` found; "own": this one
        self.safer: Factor | None = None  # the same with full pivoting, where it was needed
        self.unbanded: Factor | None = None
        self.parts: list[Factor] = []  # of several blocks those on the diagonal, once asked for
        self._looked_at()
        at = A.indices, np.repeat(np.arange(self.n), np.diff(A.indptr))
        size = np.abs(A.data)
        self.diagonal_alone = np.array_equal(*at)
        self.norms = [float(np.bincount(i, size).max(initial=0)) for i in at]  # inf, 1
        if self.finite and not self._as_band(*at):
            self._factor()

    @property
    def nbytes(self) -> int:
        A = self.A
        kept = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
        for one in (self, self.safer, self.unbanded, *self.parts):
            if one is None or one.lu is None:
                continue
            entries = one.lu.nnz
            if not isinstance(one.lu, cholmod.Cholesky):  # its room, and L and U once more
                entries += max(entries, _ROOM * one.A.nnz)
            kept += entries * (A.dtype.itemsize + 4)
            kept += selected_inverse.room(one) * (2 * A.dtype.itemsize + 8)
        if self.band is not None:
            kept += self.band.nbytes
        return int(kept)

    @property
    def how(self) -> Any:
        """The method of the solve, for explanations."""
        if self.safer is not None:
            return self.safer.how
        if self.band is not None:
            return "band"
        return "CHOLMOD" if isinstance(self.lu, cholmod.Cholesky) else "SuperLU"

    # -- making it

    def _looked_at(self) -> None:
        """Is the pattern symmetric, and is the matrix its own adjoint? Found once."""
        A = self.A
        arrays = A.indptr, A.indices, A.data  # by columns: the transpose by rows
        ptr, index, data = _core._csr_transpose((*arrays, self.n, self.n), False)
        self.alike = np.array_equal(A.indptr, ptr) and np.array_equal(A.indices, index)
        self.hermitian = self.alike and np.array_equal(A.data, data.conj())

    def _as_band(self, row: Any, col: Any) -> bool:
        """A matrix of few diagonals, as it stands or in reverse Cuthill-McKee order."""
        n, A = self.n, self.A
        if A.nnz > _BAND * n:
            return False
        low, up = _widths(row, col)
        if low + up + 1 > _BAND:
            from scipy.sparse.csgraph import (  # type: ignore[import-untyped, unused-ignore]
                reverse_cuthill_mckee,
            )

            pattern = A
            if not self.alike:
                ones = np.ones(A.nnz, np.int8)
                pattern = scipy_sparse().csr_matrix((ones, A.indices, A.indptr), shape=A.shape)
                pattern = pattern + pattern.T
            order = reverse_cuthill_mckee(pattern, True)
            rank = np.empty(n, np.int64)
            rank[order] = np.arange(n)
            row, col = rank[row], rank[col]
            low, up = _widths(row, col)
            if low + up + 1 > _BAND:
                return False
            self.order = order
        ab = np.zeros((low + up + 1, n), A.dtype)
        ab[up + row - col, col] = A.data
        self.band = _core.Banded((low, up), ab)
        return True

    def _factor(self) -> None:
        """Factors by Cholesky where possible, else by LU; with diagonal pivots where the pattern is
        symmetric, which keeps the fill small."""
        if self.blocks > 1:
            self._factor_blocks()
            return
        A = self.A
        d = A.diagonal()
        symmetric = not self.pivoted and self.alike and bool(np.all(d != 0))
        if symmetric:
            up, down = bool(np.all(d.real > 0)), bool(np.all(d.real < 0))
            definite = self.hermitian and (up or down)
            if definite:
                self.lu = cholmod.factor(_small_indices(A), 1 if up else -1)
                if self.lu is not None:
                    self.singular = False
                    return
            how = {
                "permc_spec": "MMD_AT_PLUS_A",
                "diag_pivot_thresh": 0.0 if definite else 0.1,
                "options": {"SymmetricMode": True},
            }
        else:
            self.pivoted = True
            how = {"permc_spec": "COLAMD", "diag_pivot_thresh": 1.0}
        small = _small_indices(A)
        fill.refuse(small, how)
        try:
            self.lu = _sla().splu(small, **how)
            self.singular = False
        except RuntimeError as error:
            if "singular" not in str(error).lower():
                raise MemoryError(f"sparse LU of {A.shape} failed: {error}") from None
            self.lu = None
            if symmetric:
                self.pivoted = True
                self._factor()
            else:
                self.singular = True

    def _factor_blocks(self) -> None:
        small = _small_indices(self.A)
        self.lu = block_lu.factored(small, self.blocks, self.pivoted)
        if self.lu is None and not self.pivoted:
            self.pivoted = True
            self.lu = block_lu.factored(small, self.blocks, True)
        self.singular = self.lu is None

    def again(self) -> Factor | None:
        """The factor with full pivoting, beside this one, which stays as it is: what comes after
        is solved as if nothing had been before. None where this one is it."""
        if self.pivoted:
            return None
        if self.safer is None:
            made = self._beside()
            made.pivoted = True
            made._factor()
            self.safer = made
        return self.safer

    def _beside(self) -> Factor:
        """The same, not factored yet."""
        made = copy.copy(self)
        made.band = made.order = made.lu = made.tried = made.safer = made.unbanded = None
        made.inverse = None
        made.rcond = {}
        return made

    # -- solves

    def near(self, eps: Any, asked: str = "") -> Any:
        """Of parts of the inverse of [B X; 0 C] as of B and C, since those are what is inverted:
        its own is as their product."""
        if self.blocks > 1 and asked in ("diagonal", "trace", "entries"):
            if not self.parts:
                h = self.n // self.blocks
                at = [slice(k * h, (k + 1) * h) for k in range(self.blocks)]
                self.parts = [factor_of_matrix(self.A[k, k]) for k in at[:2]]  # of three A is one
            singular = any(f.believed() is SINGULAR for f in self.parts)
            return 0.0 if singular else min(f.near(eps) for f in self.parts)
        return super().near(eps) if self.safer is None else self.safer.near(eps)

    def solves(self, eps: Any) -> bool:
        """Does `near` take solves? Of a band in double precision its own solve tells."""
        return self.lu is not None or (self.band is not None and eps > EPS)

    def _raw(self, b: Any, mode: Any) -> Any:
        """mode(A)^-1 b without a check, for b of A's dtype."""
        if self.band is not None:
            b = b if self.order is None else b[self.order]
            op = _core._build("view", self.band, None, mode) if mode else self.band
            with conditioning.collecting() as found:
                x = _core._build("solver", op) @ b
            self.rcond[EPS] = min([*found, self.rcond.get(EPS, 1.0)])
            if self.order is not None:
                back = np.empty_like(x)
                back[self.order] = x
                x = back
            return x
        conj = mode == 2
        x = self.lu.solve(np.asfortranarray(b.conj() if conj else b), ("N", "T", "N", "H")[mode])
        return x.conj() if conj else x

    def _apply(self, x: Any, mode: Any) -> Any:
        if self.op is None:
            self.op = _core.Sparse(self.A)
        return (_core._build("view", self.op, None, mode) if mode else self.op) @ x

    def _accurate(self, b: Any, mode: Any) -> Any:
        return self._by_either(b, mode)[0]

    def _by_either(self, b: Any, mode: Any) -> tuple[Any, Factor]:
        """`_accurate`, and the factor that it is by."""
        best, by = None, self
        while not by.singular:
            try:
                x, eta = by._solved(b, mode)
            except np.linalg.LinAlgError:  # of a band
                break
            if self.sound(eta):
                return x, by
            if best is None or eta < best[1]:
                best = x, eta
            safer = by.again()
            if safer is None:
                return (best[0] if best[1] <= 5 * self.n * EPS else self._decline()), by
            by = safer
        return SINGULAR, by

    def _decline(self) -> bool:
        """Declines, so that the dense form is used, if there is memory for it."""
        need = self.n * self.n * self.dtype.itemsize
        limit = config.get("memory_limit")
        free = config.free_memory() if limit is None else limit
        if free is not None and need > free:
            raise errors.MaterializationError(
                f"sparse LU of the {self.A.shape} matrix was not accurate enough, and its dense "
                f"form needs {need:,} bytes; {free:,} are free or allowed "
                "(pl.config(memory_limit=...))"
            )
        return DECLINED

    def believed(self) -> Factor | bool:
        """The factor by which a solve passes the check; else the code that says what there is."""
        if self.tried is None:
            x, by = self._by_either(probe(self.n, self.dtype)[:, None], 0)
            found = "own" if by is self else by  # no cycle: what is dropped goes at once
            self.tried = x if isinstance(x, bool) else found
        return self if isinstance(self.tried, str) else self.tried

    # -- determinants

    def det(self) -> Any:
        """The determinant as (re, im, exponent of 2)."""
        if not self.finite:
            return DECLINED
        if self.singular:
            return 0.0, 0.0, 0.0
        if self.band is not None:
            m, e = self.band._scaledet().tolist()
            m, e = complex(m), e.real
            return m.real, m.imag, float(e)
        by = self.believed()
        if isinstance(by, bool):
            return (0.0, 0.0, 0.0) if by == SINGULAR else DECLINED
        fill.refuse_entries(  # SciPy takes L and U out of SuperLU's factor, to get at the pivots
            self.A, 2 * by.lu.nnz, "the determinant by sparse LU", "pl.estimate_logdet needs none"
        )
        m, e = product_of(by.lu.U.diagonal())
        sign = _parity(by.lu.perm_r) * _parity(by.lu.perm_c)
        return sign * m.real, sign * m.imag, float(e)

    # -- parts of the inverse

    def diagonal(self, k: int) -> Any:
        """Diagonal k of the inverse."""
        n = self.n
        at = np.arange(max(n - abs(k), 0))
        return self.entries(at + max(-k, 0), at + max(k, 0))

    def entries(self, row: Any, col: Any) -> Any:
        """Entries of the inverse."""
        if not self.finite:
            return DECLINED
        if self.diagonal_alone:
            d = self.A.diagonal()
            return SINGULAR if np.any(d == 0) else np.where(row == col, 1 / d[row], 0)
        by = self.believed()
        return by if isinstance(by, bool) else selected_inverse.entries(by, row, col)

    def by_pivots(self) -> Factor:
        """This one, or beside a band the same without it, made now."""
        if self.lu is not None or self.singular:
            return self
        if self.unbanded is None:
            made = self._beside()
            made._factor()
            self.unbanded = made
        return self.unbanded


_living: weakref.WeakValueDictionary[Any, Factor] = weakref.WeakValueDictionary()


def factor_of_matrix(A: Any, blocks: int = 1) -> Factor:
    """The factor of a sparse matrix: that of the same numbers at the same places, as long as
    another expression holds it. A covariance and its derivatives spell one matrix in several ways,
    with views and casts that are none."""
    A = _by_columns(A)
    parts = A.indptr, A.indices, A.data
    prints = ((a.dtype.char, _core._printed(np.ascontiguousarray(a).view(np.uint8))) for a in parts)
    key = (blocks, A.shape, *prints)
    found = _living.get(key)
    if found is None:
        found = _living[key] = Factor(A, blocks)
    return found


def _by_columns(A: Any) -> Any:
    A = scipy_sparse().csc_array(A)
    A.sum_duplicates()
    return A


def _with_mirror(A: Any, blocks: int) -> Any:
    """[B X; 0 C] with zeros where any of B, X, C or their transposes has entries, in all four
    blocks: what is checked, [B X] times the columns on the right of the inverse, is of the pattern
    then. So ordered, the factor has four times the entries of that of B + X + C; of three blocks
    nine times."""
    C, part = A.tocoo(), A.shape[0] // blocks
    row, col = C.coords
    one = scipy_sparse().csr_array((np.ones(len(row)), (row % part, col % part)), (part, part))
    at = scipy_sparse().coo_array(one + one.T).coords
    each = [k * part for k in range(blocks)]
    rows = [row, *(at[0] + i for i in each for _ in each)]
    cols = [col, *(at[1] + j for _ in each for j in each)]
    data = np.concatenate([C.data, np.zeros(blocks**2 * len(at[0]), A.dtype)])
    return scipy_sparse().csc_array((data, (np.concatenate(rows), np.concatenate(cols))), A.shape)


def _widths(row: Any, col: Any) -> tuple[int, int]:
    gap = row.astype(np.int64) - col
    return int(gap.max(initial=0)), int((-gap).max(initial=0))


def _small_indices(A: Any) -> Any:
    if A.indices.dtype == np.int32:
        return A
    if A.nnz >= 2**31 - 1 or A.shape[0] >= 2**31 - 1:
        raise MemoryError(f"SuperLU takes fewer than 2^31 entries, got {A.nnz}")
    parts = A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return scipy_sparse().csc_array(parts, shape=A.shape)


def product_of(v: Any) -> tuple[complex, int]:
    """The product as (mantissa, exponent of 2), so that nothing over- or underflows."""
    _, e = np.frexp(np.maximum(np.abs(v.real), np.abs(v.imag)))
    m, total = v * np.ldexp(1.0, -e), int(e.sum())
    m = m.astype(np.complex128)
    while len(m) > 1:
        m = np.append(m, 1.0) if len(m) % 2 else m
        m = m[::2] * m[1::2]
        _, e = np.frexp(np.maximum(np.abs(m.real), np.abs(m.imag)))
        m, total = m * np.ldexp(1.0, -e), total + int(e.sum())
    return (complex(m[0]) if len(m) else 1.0 + 0j), total


def _parity(p: Any) -> int:
    """The sign of a permutation: (-1)^(n - cycles)."""
    from scipy.sparse.csgraph import (  # type: ignore[import-untyped, unused-ignore]
        connected_components,
    )

    n = len(p)
    if n == 0:
        return 1
    graph = scipy_sparse().csr_matrix((np.ones(n, np.int8), p, np.arange(n + 1)), shape=(n, n))
    cycles = connected_components(graph, directed=False, return_labels=False)
    return -1 if (n - cycles) % 2 else 1
