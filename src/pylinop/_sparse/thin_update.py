"""Sparse sums D + U1 C1 V1^H + U2 C2 V2^H + ... of a diagonal D and thin products, by the factor of
the small sparse matrix of Woodbury's formula: mixed models and other normal equations, whose
assembled form has a block for each group and fills in.

    A^-1 = D^-1 - D^-1 U S^-1 V^H D^-1,  S = I + V^H D^-1 U,  det A = det D det S

with U = [U1 C1, U2 C2, ...]; where a product is its own adjoint and its middle positive, its root
goes to both sides, and S is definite. The patterns decide, which are known when the factor is made
(Henderson 1953 for mixed models; Gill, Murray, Saunders 1992, section 3, for which is sooner): an
update costs the pairs of entries within the rows of U, the assembled form those within its columns.
Solutions are checked as all are; what fails goes by the assembled form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._base.lengths import length
from . import assemble_program
from .blocks import factor_of_blocks
from .checked import DECLINED, Checked, probe, scipy_sparse
from .factor import Factor, factor_of_matrix, product_of

_GAIN = 2.0  # so many times fewer pairs
_GRADED = 1e8  # the largest of D over the least, at most


def factor_of(program: Any, arrays: Any) -> Checked:
    """The factor of what the core wrote down: of an update where that is sooner."""
    update = _read(program, arrays) if assemble_program.has_thin_product(program) else None
    blocks = assemble_program.blocks_of(program)
    return update or factor_of_blocks(assemble_program.form_of(program, arrays), blocks)


class _Thin(NamedTuple):
    """The term c U W V^H, W the diagonal between (None: the identity)."""

    c: complex | float
    u: Any
    weights: Any
    vh: Any


def _read(program: Any, arrays: Any) -> Update | None:
    d: Any = 0.0
    thin = []
    for c, factors in assemble_program.terms_of(program, arrays):
        line = _diagonal(factors[0]) if len(factors) == 1 else None
        if line is not None:
            d = d + c * line
        elif len(factors) > 1 and min(f.shape[1] for f in factors[:-1]) < factors[0].shape[0]:
            thin.append(_split(c, factors))
        else:
            return None
    if not thin or np.ndim(d) == 0 or not _pays(d, thin):
        return None
    left, right = zip(*map(_halves, thin), strict=True)
    # copies: the arrays are the core's, for this call
    U = scipy_sparse().csr_array(scipy_sparse().hstack(left), copy=True)
    VH = scipy_sparse().csr_array(scipy_sparse().vstack(right), copy=True)
    with np.errstate(all="ignore"):  # what is not finite goes by the assembled form
        made = Update(d, U, VH)
    return None if made.small.singular or not made.finite else made


def _diagonal(A: Any) -> Any:
    """Of a matrix without other entries, else None."""
    if A.shape[0] != A.shape[1] or A.nnz > A.shape[0]:
        return None
    A = scipy_sparse().coo_array(A)
    row, col = A.coords
    if not np.array_equal(row, col):
        return None
    d = np.zeros(A.shape[0], A.dtype)
    np.add.at(d, row, A.data)
    return d


def _split(c: Any, factors: list[Any]) -> _Thin:
    """At the diagonal in the middle, or where the product is thinnest."""
    at, odd = divmod(len(factors), 2)
    weights = _diagonal(factors[at]) if odd else None
    if weights is None:
        at = min(range(1, len(factors)), key=lambda k: factors[k].shape[0])
        odd = 0
    return _Thin(c, _product(factors[:at]), weights, _product(factors[at + odd :]))


def _halves(t: _Thin) -> tuple[Any, Any]:
    """c U W and V^H; where V is U and c W not negative, the root of c W on both sides."""
    by = np.broadcast_to(t.c if t.weights is None else t.c * t.weights, t.u.shape[1])
    positive = bool(np.isreal(by).all() and (by.real >= 0).all())
    if not positive or not _mirrored(t.u, t.vh):
        return t.u @ scipy_sparse().diags_array(by), t.vh
    root = scipy_sparse().diags_array(np.sqrt(by.real))
    return t.u @ root, root @ t.vh


def _product(factors: list[Any]) -> Any:
    one = scipy_sparse().csr_array(factors[0])
    for f in factors[1:]:
        one = one @ scipy_sparse().csr_array(f)
    return one


def _mirrored(u: Any, vh: Any) -> bool:
    if u.shape != vh.shape[::-1] or u.nnz != vh.nnz:
        return False
    return bool((u != vh.T.conj()).nnz == 0)


def _pays(d: Any, thin: list[_Thin]) -> bool:
    size, n = np.abs(d), len(d)
    q = sum(t.u.shape[1] for t in thin)
    if q >= n or not (size.min(initial=np.inf) > 0 and size.max() <= _GRADED * size.min()):
        return False
    rows = sum(_counts(t.u, 1) for t in thin), sum(_counts(t.vh, 0) for t in thin)
    within = _pairs(*rows)
    across = sum(_pairs(_counts(t.u, 0), _counts(t.vh, 1)) for t in thin)
    return bool(_GAIN * (within + 2 * q) < across)


def _counts(A: Any, axis: int) -> Any:
    """How many entries there are in each row (axis 1) or column."""
    return np.diff(A.indptr) if axis else np.bincount(A.indices, minlength=A.shape[1])


def _pairs(*counts: Any) -> float:
    return float(sum(np.square(c.astype(np.float64)).sum() for c in counts))


def _lengths(A: Any) -> Any:
    """The 2-norms of the columns, by the largest entry of all."""
    size = abs(A)
    top = size.max() if size.nnz else 0
    scaled = size / top if 0 < top < np.inf else size
    return top * np.sqrt(scaled.power(2).sum(axis=0))


class Update(Checked):
    """D + U V^H by the factor of its small matrix, or of the assembled form if that fails."""

    def __init__(self, d: Any, U: Any, VH: Any) -> None:
        super().__init__()
        self.dtype = np.result_type(d, U.dtype, VH.dtype)
        self.n, self.d, self.U, self.VH = len(d), d, U, VH
        self.whole: Factor | None = None
        self.WU, self.VW = (
            scipy_sparse().csr_array(U / d[:, None]),
            scipy_sparse().csr_array(VH / d),
        )
        small = VH @ self.WU + scipy_sparse().eye_array(U.shape[1])
        self.finite = bool(np.isfinite(small.data).all() and np.isfinite(d).all())
        self.small = factor_of_matrix(small)
        probes = np.stack([np.ones(self.n), probe(self.n, float)], axis=1)  # norms from below
        self.norms = [float(np.abs(self._apply(probes, mode)).max(initial=0)) for mode in (0, 1)]

    @property
    def nbytes(self) -> int:
        own = sum(a.data.nbytes + a.indices.nbytes for a in (self.U, self.VH, self.WU, self.VW))
        return int(own + self.d.nbytes + self.small.nbytes)

    @property
    def how(self) -> Any:
        return f"an update, its small matrix by {self.small.how}"

    def solves(self, eps: Any) -> bool:
        return True

    def _assembled(self) -> Factor:
        """The factor of the assembled form, made once."""
        if self.whole is None:
            self.whole = factor_of_matrix(scipy_sparse().diags_array(self.d) + self.U @ self.VH)
        return self.whole

    def _apply(self, x: Any, mode: Any) -> Any:
        x = x.conj() if mode & 2 else x
        U, VH = (self.VH.T, self.U.T) if mode & 1 else (self.U, self.VH)
        y = self.d[:, None] * x + U @ (VH @ x)
        return y.conj() if mode & 2 else y

    def _raw(self, b: Any, mode: Any) -> Any:
        b = b.conj() if mode & 2 else b
        U, VH = (self.VW.T, self.WU.T) if mode & 1 else (self.WU, self.VW)
        t = np.ascontiguousarray(VH @ b).astype(self.dtype, copy=False)
        x = b / self.d[:, None] - U @ self.small._raw(t, mode & 1)
        return x.conj() if mode & 2 else x

    def _updated(self, b: Any, mode: Any) -> Any:
        """The solution by the update, None where it is not as good as a direct one."""
        try:
            x, eta = self._solved(b, mode)
        except np.linalg.LinAlgError:  # of a small band
            return None
        return x if self.sound(eta) else None

    def _accurate(self, b: Any, mode: Any) -> Any:
        x = self._updated(b, mode)  # whatever earlier ones did: the same bits again
        return self._assembled()._accurate(b, mode) if x is None else x

    # -- determinants and parts of the inverse

    def _serves(self) -> bool:
        """Is a solution good, and D no nearer to a singular matrix than A, as far as U sees?"""
        if self.trusted is None:
            x = self._updated(probe(self.n, self.dtype)[:, None], 0)
            self.trusted = x is not None
            if self.trusted:
                with np.errstate(all="ignore"):
                    most = 10 * self.n * float(length(x[:, 0])) / np.sqrt(self.n)
                    grown, size = (_lengths(a) for a in (self.WU, self.U))
                    self.trusted = bool(np.all(grown <= most * size))
        return self.trusted

    def det(self) -> Any:
        small = self.small.det() if self._serves() else DECLINED
        if isinstance(small, bool):
            return self._assembled().det()
        m, e = product_of(self.d)
        m = complex(small[0], small[1]) * m
        return m.real, m.imag, float(e + small[2])

    def diagonal(self, k: int) -> Any:
        if k == 0 and self._serves():
            found = self._main_diagonal()
            if found is not None:
                return found
        return self._assembled().diagonal(k)

    def _main_diagonal(self) -> Any:
        """1 / d - diag(D^-1 U S^-1 V^H D^-1): entries of S^-1 where a row of U meets one of V."""
        places = scipy_sparse().coo_array(abs(self.U.T) @ abs(self.VH.T))  # the pattern of S^T
        row, col = places.coords
        found = self.small.entries(row, col)
        if isinstance(found, bool):
            return None
        inner = scipy_sparse().csr_array((found, (row, col)), shape=places.shape)
        out = 1 / self.d - np.asarray((self.WU @ inner).multiply(self.VW.T).sum(axis=1)).ravel()
        return out.astype(self.dtype, copy=False)

    def entries(self, row: Any, col: Any) -> Any:
        if np.array_equal(row, col):
            main = self.diagonal(0)
            return main if isinstance(main, bool) else main[row]
        return self._assembled().entries(row, col)
