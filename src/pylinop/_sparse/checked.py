"""What sparse solves share, whatever the matrix is factored as: each solution is refined and
checked, columns that are not finite pass through, and how near the matrix is to a singular one is
found once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import conditioning
from . import assemble_program

EPS = float(np.finfo(np.float64).eps)
_PAIRS = 64  # places of A^-1 for each entry of all
DECLINED, SINGULAR = False, True  # the core's codes for "no answer" and "there is none"


def scipy_sparse() -> Any:
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse


def probe(n: int, dtype: Any) -> Any:
    """n signs in an order of their own."""
    return 1 - 2 * (np.arange(n) * 7 // 5 % 2).astype(dtype)


class Checked:
    """A square sparse matrix A to solve with: of ``n`` rows, of ``dtype``, ``finite`` or not, with
    its inf- and 1-norm in ``norms``. Those who inherit say how it is solved with and applied."""

    n: int
    dtype: Any
    finite: bool
    norms: list[float]

    def __init__(self) -> None:
        self.singular = False
        self.none = False  # it has been found that there is no answer
        self.trusted: bool | None = None
        self.rcond: dict[float, float] = {}

    @property
    def nbytes(self) -> int:
        raise NotImplementedError

    def solves(self, eps: Any) -> bool:
        """Does `near` take solves?"""
        raise NotImplementedError

    def _raw(self, b: Any, mode: Any) -> Any:
        """mode(A)^-1 b without a check, for b of A's dtype."""
        raise NotImplementedError

    def _apply(self, x: Any, mode: Any) -> Any:
        """mode(A) x."""
        raise NotImplementedError

    def _accurate(self, b: Any, mode: Any) -> Any:
        """mode(A)^-1 b as good as a direct solution, or a code."""
        raise NotImplementedError

    def entries(self, row: Any, col: Any) -> Any:
        """Entries of the inverse."""
        raise NotImplementedError

    def near(self, eps: Any, asked: str = "") -> Any:
        """How near A is to a singular matrix, found once for each rounding unit: the reciprocal
        condition number by this factor, for a band by its pivots; 1.0 where it is far from eps."""
        if eps not in self.rcond and self.solves(eps) and self.n:
            self.rcond[eps] = conditioning.by_solves(
                lambda b, adjoint: self._raw(b[:, None], 3 if adjoint else 0)[:, 0],
                self.n,
                self.dtype,
                self.norms[1],
                eps,
            )
        return self.rcond.get(eps, 1.0)

    def sound(self, eta: float) -> bool:
        """Is a backward error as of a direct solve?"""
        return bool(eta <= 4 * EPS * np.sqrt(self.n))

    def _solved(self, b: Any, mode: Any) -> tuple[Any, float]:
        """The solution by this factor after at most two refinements, and its backward error."""
        norm = self.norms[mode & 1]
        x, top = self._raw(b, mode), _top(b)
        for step in range(3):
            with np.errstate(all="ignore"):
                r = b - self._apply(x, mode)
                size = norm * _top(x) + top
                eta = _top(r) / np.where(size > 0, size, 1)  # r is 0 where all terms are
            worst = float(eta.max(initial=0))
            if self.sound(worst) or step == 2 or np.isnan(worst):
                return x, worst
            x = x + self._raw(r, mode)
        raise AssertionError("the third step gives its answer")

    def solve(self, b: Any, mode: Any) -> Any:
        """mode(A)^-1 b for b of shape (n, k)."""
        if b.dtype.kind == "c" and self.dtype.kind != "c":
            k = b.shape[1]
            x = self.solve(np.hstack([b.real, b.imag]), mode)
            return x if isinstance(x, bool) else x[:, :k] + 1j * x[:, k:]
        b = b.astype(self.dtype, copy=False)
        if not self.finite or b.shape[1] == 0:
            return DECLINED
        good = np.isfinite(b)
        if good.all():
            return self._accurate(b, mode)
        good = good.all(axis=0)
        x = np.full(b.shape, np.nan, b.dtype)  # NaN and inf pass through
        if good.any():
            part = self._accurate(b[:, good], mode)
            if isinstance(part, bool):
                return part
            x[:, good] = part
        return x

    def trace(self, program: Any, arrays: Any) -> Any:
        """tr(A^-1 B)."""
        B = scipy_sparse().coo_array(assemble_program.form_of(program, arrays))
        B.sum_duplicates()
        row, col = B.coords
        x = self.entries(col, row)
        return x if isinstance(x, bool) else np.asarray(np.sum(x * B.data))

    def rows(self, program: Any, arrays: Any) -> Any:
        """The diagonal of U A^-1 W^T, of a program for [U W]."""
        both = scipy_sparse().csr_array(assemble_program.form_of(program, arrays))
        both.sum_duplicates()
        n, m = self.n, both.shape[0]
        left = both.indices < n
        row = np.repeat(np.arange(m), np.diff(both.indptr))
        count = [np.bincount(row[side], minlength=m) for side in (left, ~left)]
        pairs = count[0] * count[1]
        if pairs.sum() > _PAIRS * (both.nnz + n):
            return DECLINED
        # the pairs of a row in order: each of U's entries with all of W's
        of = np.repeat(np.arange(m), pairs)
        at = np.arange(len(of)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        first = np.concatenate([[0], np.cumsum(count[0])])[of] + at // count[1][of]
        second = np.concatenate([[0], np.cumsum(count[1])])[of] + at % count[1][of]
        i = both.indices[left].astype(np.int64)[first]
        j = both.indices[~left].astype(np.int64)[second] - n
        places, which = np.unique(i * n + j, return_inverse=True)
        x = self.entries(places // n, places % n)
        if isinstance(x, bool):
            return x
        terms = both.data[left][first] * x[which] * both.data[~left][second]
        sums = [np.bincount(of, part, minlength=m) for part in (terms.real, terms.imag)]
        return sums[0] + 1j * sums[1] if np.iscomplexobj(terms) else sums[0]


def _top(x: Any) -> Any:
    """The largest modulus of each column."""
    size = np.abs(x)
    return size.max(initial=0) if x.shape[1] == 1 else size.max(axis=0, initial=0)
