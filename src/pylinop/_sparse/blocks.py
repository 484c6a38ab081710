"""[B X; 0 C] and [A X 0; 0 A Y; 0 0 A], whose inverses have B^-1 X C^-1 and A^-1 X A^-1 Y A^-1 in
their corners: what derivatives of inverses read.

With pivots on the diagonal what is zero below the blocks stays so, and what is rounded in the
factor of A is as if it had been in A alone: the corner is as good as a product of three inverses,
where an exchange of rows between blocks would make it as bad as the inverse of all, whose
condition is that of A to the third power. Powers of two bring X and Y to the size of A. Where such
pivots are no good, rows and columns are exchanged within the blocks, as a factor of A does.

Of Hermitian A, X and Y the matrix with Y before X has the adjoint of this one's corner: with J for
the blocks in reverse order

    M = J M'^H J,  M^-1 = J M'^-H J

and one of the two is factored, which their numbers tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checked import Checked, scipy_sparse
from .factor import Factor, factor_of_matrix


def factor_of_blocks(A: Any, blocks: int) -> Checked:
    """The factor of a matrix of so many blocks a side, or of what it is made from."""
    if blocks == 1:
        return factor_of_matrix(A)
    A = scipy_sparse().csr_array(A)
    A.sum_duplicates()
    h = A.shape[0] // blocks
    part = [slice(k * h, (k + 1) * h) for k in range(blocks)]
    own, beside = [A[p, p] for p in part], [A[p, q] for p, q in zip(part, part[1:], strict=False)]
    turned = blocks == 3 and _comes_first(beside[1], beside[0])
    turned = turned and all(_is_hermitian(M) for M in (own[0], *beside))
    if turned:
        beside = beside[::-1]
    power = np.zeros(blocks, np.int64)
    for k, M in enumerate(beside):
        power[k + 1] = power[k] + _gap(own[k], M)
        beside[k] = M * float(np.ldexp(1.0, power[k + 1] - power[k]))
    rows = [[None] * blocks for _ in part]
    for k in range(blocks):
        rows[k][k] = own[k]
    for k, M in enumerate(beside):
        rows[k][k + 1] = M
    M = scipy_sparse().block_array(rows)
    return InBlocks(factor_of_matrix(M, blocks), blocks, turned, power)


def _gap(A: Any, X: Any) -> int:
    """By which power of two X is as large as A; 0 where that is not defined."""
    sizes = [float(np.abs(M.data).max(initial=0)) for M in (A, X)]
    if not all(0 < s < np.inf for s in sizes):
        return 0
    a, x = (int(np.frexp(s)[1]) for s in sizes)
    return min(max(a - x, -_FURTHEST), _FURTHEST)


_FURTHEST = 300  # twice that, and the exponents of the matrix itself, are in range


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


class InBlocks(Checked):
    """D M D^-1, or J (D M D^-1)^H J, by the factor of M; D has a power of two for each block."""

    def __init__(self, of: Factor, blocks: int, turned: bool, power: Any) -> None:
        super().__init__()
        self.of, self.blocks, self.turned, self.power = of, blocks, turned, power
        self.n, self.dtype, self.finite = of.n, of.dtype, of.finite

    @property
    def nbytes(self) -> int:
        return self.of.nbytes

    @property
    def how(self) -> Any:
        return self.of.how

    def _times(self, x: Any, sign: int) -> Any:
        """D x, or D^-1 x."""
        by = np.repeat(np.ldexp(1.0, sign * self.power), self.n // self.blocks)
        return x * by[:, None]

    def _reversed(self, x: Any) -> Any:
        b = self.blocks
        return x.reshape(b, self.n // b, *x.shape[1:])[::-1].reshape(x.shape)

    def solve(self, b: Any, mode: Any) -> Any:
        mode = mode ^ 3 if self.turned else mode
        sign = 1 if mode & 1 else -1
        b = self._times(self._reversed(b) if self.turned else b, sign)
        x = self.of.solve(b, mode)
        if isinstance(x, bool):
            return x
        x = self._times(x, -sign)
        return self._reversed(x) if self.turned else x

    def near(self, eps: Any, asked: str = "") -> Any:
        return self.of.near(eps, asked)

    def det(self) -> Any:
        found = self.of.det()
        turned = self.turned and not isinstance(found, bool)
        return (found[0], -found[1], found[2]) if turned else found

    def diagonal(self, k: int) -> Any:
        at = np.arange(max(self.n - abs(k), 0))
        return self.entries(at + max(-k, 0), at + max(k, 0))

    def entries(self, row: Any, col: Any) -> Any:
        h = max(1, self.n // self.blocks)
        if self.turned:
            last = self.blocks - 1
            row, col = (last - col // h) * h + col % h, (last - row // h) * h + row % h
        found = self.of.entries(row, col)
        if isinstance(found, bool):
            return found
        found = found * np.ldexp(1.0, self.power[row // h] - self.power[col // h])
        return found.conj() if self.turned else found
