"""[A X 0; 0 A Y; 0 0 A] of Hermitian A, X and Y is the adjoint of that with Y before X, its blocks in
reverse order J: second derivatives of traces and diagonals of inverses read A^-1 X A^-1 Y A^-1 and
A^-1 Y A^-1 X A^-1, which so are entries of one inverse.

    M = J M'^H J,  M^-1 = J M'^-H J

Which of the two is factored is told by their numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checked import Checked, scipy_sparse
from .factor import Factor, factor_of_matrix


def factor_of_blocks(A: Any, blocks: int) -> Checked:
    """The factor of a matrix of so many blocks a side, or of what it is the adjoint of."""
    if blocks != 3:
        return factor_of_matrix(A, blocks)
    A = scipy_sparse().csr_array(A)
    A.sum_duplicates()
    h = A.shape[0] // 3
    own, x, y = A[:h, :h], A[:h, h : 2 * h], A[h : 2 * h, 2 * h :]
    if not (_comes_first(y, x) and all(_is_hermitian(M) for M in (own, x, y))):
        return factor_of_matrix(A, blocks)
    other = scipy_sparse().block_array([[own, y, None], [None, own, x], [None, None, own]])
    return Turned(factor_of_matrix(other, blocks))


def _is_hermitian(A: Any) -> bool:
    return bool((A != A.T.conj()).nnz == 0)


def _comes_first(x: Any, y: Any) -> bool:
    """Does x stand before y by its number of entries, or by the first number that differs?"""
    if x.nnz != y.nnz:
        return bool(x.nnz < y.nnz)
    for a, b in ((x.indptr, y.indptr), (x.indices, y.indices), (x.data, y.data)):
        differ = np.flatnonzero(a != b)
        if len(differ):
            p, q = a[differ[0]], b[differ[0]]
            return bool((p.real, p.imag) < (q.real, q.imag))
    return False


class Turned(Checked):
    """J M^H J by the factor of M."""

    def __init__(self, of: Factor) -> None:
        super().__init__()
        self.of = of
        self.n, self.dtype, self.finite, self.norms = of.n, of.dtype, of.finite, of.norms[::-1]

    @property
    def nbytes(self) -> int:
        return self.of.nbytes

    @property
    def how(self) -> Any:
        return self.of.how

    def _blocks_reversed(self, x: Any) -> Any:
        return x.reshape(3, self.n // 3, *x.shape[1:])[::-1].reshape(x.shape)

    def _at(self, place: Any) -> Any:
        h = self.n // 3
        return (2 - place // h) * h + place % h

    def solve(self, b: Any, mode: Any) -> Any:
        x = self.of.solve(self._blocks_reversed(b), mode ^ 3)
        return x if isinstance(x, bool) else self._blocks_reversed(x)

    def near(self, eps: Any, asked: str = "") -> Any:
        return self.of.near(eps, asked)

    def det(self) -> Any:
        found = self.of.det()
        return found if isinstance(found, bool) else (found[0], -found[1], found[2])

    def diagonal(self, k: int) -> Any:
        at = np.arange(max(self.n - abs(k), 0))
        return self.entries(at + max(-k, 0), at + max(k, 0))

    def entries(self, row: Any, col: Any) -> Any:
        found = self.of.entries(self._at(col), self._at(row))
        return found if isinstance(found, bool) else found.conj()
