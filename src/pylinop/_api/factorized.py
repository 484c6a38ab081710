"""``factorized``: a factor as an object, with what is asked of a factor as its methods.

    operator --snapshot--> the same on arrays that nobody can write to --inv, logdet, ...--> plans
                                                      |
                          what they derive (factors, spectra, roots) is held for the object

A snapshot is solved with as any operator is, by the ways of its kind; what its plans derive is told
by name alone, so that no call reads the operands to see whether they have changed, and it lasts as
long as the object. Factors of matrices that differ little from one are built on its solves:

A + U V^H          x = A^-1 b - W S^-1 V^H A^-1 b,   W = A^-1 U,  S = I + V^H W
    [[A, B], [C, D]]   x2 = S^-1 (b2 - C A^-1 b1),  x1 = A^-1 b1 - W x2,   W = A^-1 B,  S = D - C W

Woodbury's identity and the Schur complement are not backward stable where A is much worse
conditioned than the new matrix (Yip, SIAM J. Sci. Stat. Comput. 7, 1986, section 3; Higham,
Accuracy and Stability of Numerical Algorithms, section 13.2). So each solution's backward error is
computed, with the new matrix as an operator; corrections are made at most twice, then the new
matrix is factored by itself. Determinants and diagonals of inverses show no residual. A solution
for random signs does, and how much longer its part A^-1 b is than x says what cancels in them
(`_Changed._trusted`). What is decided does not depend on what was asked before."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import number, square
from .._base.dtypes import inexact
from .._iterative.scipy_api import operator_of
from .._operators import pickling
from .._operators.block_constructors import block
from .._structured import determinants, dispatch
from .covariance import sample
from .factor_parts import (
    adjoint_of,
    columns,
    either,
    finer,
    norm_below,
    normal,
    norms,
    plain,
    product,
    sides,
    size_of,
)
from .solve import assuming

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._core import _OperatorLike
    from .._operators.linear_operator import LinearOperator

__all__ = ["Factorized", "factorized"]
_REFINED = 2  # corrections of a solution, at the most
_LOST = 10  # digits that may be lost beside an LU of the new matrix, in units of n u, as in solves
_POSITIVE = ("pos", "positive definite")


def factorized(A: _OperatorLike, assume_a: str | None = None) -> Factorized:
    """A factor of A as it is now, for many solves, determinants and draws.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        It is read now. Later writes to its arrays are not seen.
    assume_a : str, optional
        What to assume of an array, in scipy.linalg.solve's words, as in `Dense`.

    Returns
    -------
    Factorized
        It is callable: ``F(b)`` is ``F.solve(b)``, as with SciPy's function of this name.

    Raises
    ------
    LinAlgError
        When A is not square, or exactly singular.

    Notes
    -----
    A is factored by the way of its kind, as `solve` does it with ``method="direct"``: Cholesky, LU,
    Woodbury, spectra of Kronecker sums and products, bands, SuperLU. The object holds a copy of
    A's arrays (none of those that `freeze` has made) and what is derived of them, apart from
    ``pl.config(cache_limit=...)``; ``F.nbytes`` says how much that is, and it goes with the object.
    An operator made of callables is made dense.

    A call of a function, ``pl.solve(A, b)``, keeps its factor too, and reads all of A each time to
    see whether it has changed. This object need not.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> F = pl.factorized(np.array([[4.0, 2.0], [2.0, 3.0]]), assume_a="pos")
    >>> F.solve([8.0, 8.0]), round(float(F.logdet()), 3)
    (array([1., 2.]), 2.079)
    >>> F.update(np.array([1.0, 0.0])).solve([9.0, 8.0])
    array([1., 2.])
    """
    op = operator_of(A)
    if assume_a is not None:
        op = assuming(A, op, assume_a)
    return Factorized(square(op))


class Factorized:
    """A factor of a matrix as it was when the object was made (`factorized`).

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    A : LinearOperator
        The matrix, on arrays that nobody can write to.
    nbytes : int
    """

    def __init__(self, op: Any) -> None:
        if op._opaque:
            op = _core.Dense(dispatch.dense(op), getattr(op, "assume_a", None))
        owner = dlpack.Owner()
        self._owner = owner
        weakref.finalize(self, owner.release).atexit = False
        self.A: LinearOperator = pickling.snapshot(op, owner)
        self._prepare()

    def _prepare(self) -> None:
        """Sets up what solves need, and factors."""
        op: Any = self.A
        self.shape: tuple[int, ...] = op.shape
        self.dtype: np.dtype[Any] = inexact(op.dtype or np.dtype(np.float64))
        self._inverse = _core._build("inverse", op)
        vars(self._inverse)["_direct"] = True  # by the factor, whatever iterating would cost
        self._adjoint: Any = None
        self._known: dict[str, Any] = {}
        self._try()

    def _try(self) -> None:
        """Factors: a singular matrix is found here."""
        if 0 not in self.shape:
            self.solve(np.ones(self.shape[-1], self.dtype))

    # -- solves

    def __call__(self, b: ArrayLike) -> NDArray[Any]:
        """``solve(b)``."""
        return self.solve(b)

    def solve(self, b: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The x with A x = b.

        Parameters
        ----------
        b : array_like, shape (n,) or (..., n, k)
        out : ndarray, optional
            Where the solution is to lie; it may be b.
        """
        if out is None and type(b) is np.ndarray and b.dtype == self.dtype:
            x: NDArray[Any] = self._solved(b, False)  # which looks at the shapes
            return x
        x = self._into(self._solved(sides(self.A, b), False), out)
        return x

    def solve_H(self, b: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The x with A^H x = b, from the same factor; arguments as for `solve`."""
        x: NDArray[Any] = self._into(self._solved(sides(self.A, b), True), out)
        return x

    def _solved(self, b: Any, adjoint: bool) -> Any:
        if not adjoint:
            return self._inverse @ b
        if self._adjoint is None:
            self._adjoint = self._inverse.H
        return self._adjoint @ b

    @staticmethod
    def _into(x: Any, out: Any) -> Any:
        if out is None:
            return x
        if not isinstance(out, np.ndarray) or out.shape != x.shape:
            raise ValueError(f"out must be an array of shape {x.shape}, got {np.shape(out)}")
        np.copyto(out, x, casting="same_kind")
        return out

    def inv_quad(self, b: ArrayLike) -> Any:
        """b^H A^-1 b, one number a column."""
        right = sides(self.A, b)
        x = self._solved(right, False)
        return number((np.conj(right) * x).sum(axis=-1 if right.ndim == 1 else -2))

    # -- numbers

    def slogdet(self) -> Any:
        """Sign and logarithm of the modulus of the determinant, as `slogdet`."""
        return self._once("slogdet", lambda: determinants.slogdet(self.A))

    def logdet(self) -> Any:
        """The logarithm of the determinant, as `logdet`."""
        return self._once("logdet", lambda: determinants.logdet(self.A))

    def diagonal(self) -> NDArray[Any]:
        """The diagonal of the inverse, shape (..., n): variances, where A is a precision."""
        found: NDArray[Any] = self._once("diagonal", self._inverse_diagonal).copy()
        return found

    def _inverse_diagonal(self) -> Any:
        return self._inverse.diagonal()

    def trace(self) -> Any:
        """The trace of the inverse."""
        return number(self._once("diagonal", self._inverse_diagonal).sum(axis=-1))

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._known:
            self._known[name] = make()
        return self._known[name]

    def sample(
        self,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> NDArray[Any]:
        """Draws from N(0, A), as `sample`; A is positive semidefinite."""
        return sample(self.A, size, rng)

    # -- other matrices

    def inv(self) -> LinearOperator:
        """The inverse as an operator, which solves with this factor."""
        return _core._build("inverse", self.A)

    def update(self, U: ArrayLike, V: ArrayLike | None = None) -> Factorized:
        """A factor of A + U V^H, a new object.

        Parameters
        ----------
        U, V : array_like, shape (n,) or (n, k)
            V is U by default. Columns of V that are those of U times -1 take away what was added.

        Notes
        -----
        By Woodbury's identity, on this factor: k solves now, two thin products more in each solve
        later. Each solution is checked by its backward error, refined at most twice, and where that
        does not reach rounding the new matrix is factored by itself: at once, if all updates have
        more columns than a quarter of the rows of a dense matrix. Determinants and diagonals come
        from this factor where A is not much nearer to a singular matrix than the new matrix is.
        """
        return _updated(self, U, V)

    def append(self, B: ArrayLike, D: ArrayLike, C: ArrayLike | None = None) -> Factorized:
        """A factor of [[A, B], [C, D]], a new object.

        Parameters
        ----------
        B : array_like, shape (n,) or (n, k)
        D : array_like, shape () or (k, k)
        C : array_like, shape (n,) or (k, n), optional
            B^H by default.

        Notes
        -----
        By the Schur complement D - C A^-1 B, on this factor: k solves now, and a solve with the
        complement in each solve later. All is checked as after `update`.
        """
        return _appended(self, B, D, C)

    # -- itself

    @property
    def nbytes(self) -> int:
        """Bytes that the object holds now: the matrix, factors, spectra, roots."""
        known = sum(np.asarray(v).nbytes for v in self._known.values())
        return size_of(self.A) + int(_core._owned(self._owner.number)) + known

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"<{size} {type(self).__name__} of {type(self.A).__name__}, {self.nbytes:,} bytes>"

    def __reduce__(self) -> Any:
        return Factorized, (self.A,)

    def __copy__(self) -> Factorized:
        return self

    def __deepcopy__(self, memo: Any) -> Factorized:
        return self


# -- factors by way of others --


def _assumed(op: Any) -> str | None:
    """'pos' where the matrix is one that was assumed positive definite."""
    positive = op._head == "dense" and op._init is not None and op._given("assume_a") in _POSITIVE
    return "pos" if positive else None


def _one_matrix(F: Factorized, what: str) -> None:
    if len(F.shape) > 2:
        raise ValueError(f"{what} takes a factor of one matrix, not of a batch of shape {F.shape}")


class _Changed(Factorized):
    """A factor made of that of another matrix."""

    def __init__(self, base: Factorized, form: Any) -> None:
        self._base, self.A = base, form
        self._owner = dlpack.Owner(0)
        self._by_itself: Factorized | None = None
        self.shape = form.shape
        self.dtype = inexact(form.dtype)
        self._known = {}
        self._norm = norm_below(form, self.dtype)
        self._ways: tuple[bool, bool, bool] | None = None

    def _small(self, S: Any, assume_a: str | None) -> Factorized:
        """A factor of the small matrix. Where rounding has made it singular, or indefinite, the new
        matrix says itself whether it is that."""
        try:
            return Factorized(_core.Dense(S, assume_a))
        except np.linalg.LinAlgError:
            self._ways = False, False, False
            return self._own()

    def _through(self, b: Any, adjoint: bool) -> Any:
        raise NotImplementedError

    def _own(self) -> Factorized:
        """The factor of the new matrix by itself."""
        if self._by_itself is None:
            self._by_itself = Factorized(self.A)
        return self._by_itself

    def _solved(self, b: Any, adjoint: bool) -> Any:
        if b.ndim == 0 or b.shape[-1 if b.ndim == 1 else -2] != self.shape[-1]:
            sides(self.A, b)
        x = self._refined(b, adjoint)[0] if self._trusted()[0] else None
        return self._own()._solved(b, adjoint) if x is None else x

    def _refined(self, b: Any, adjoint: bool) -> tuple[Any, int]:
        """The solution and how often it was corrected; None where that is not enough."""
        op: Any = self.A.H if adjoint else self.A
        x = self._through(b, adjoint)
        most = 5 * self.shape[-1] * float(np.finfo(x.dtype).eps)
        size = norms(b)
        for done in range(_REFINED + 1):
            r = b - op @ x
            with np.errstate(invalid="ignore"):
                good = norms(r) <= most * (self._norm * norms(x) + size)
            if np.all(good | ~np.isfinite(size)):
                return x, done
            x = x + self._through(r, adjoint).astype(x.dtype, copy=False)
        return None, _REFINED

    def _trusted(self) -> tuple[bool, bool, bool]:
        """Whether solutions, determinants and diagonals are taken by way of the base.

        With b of random signs, x = M^-1 b and y = A^-1 b, of the new matrix M and the base A, are
        as long as the Frobenius norms of the inverses, in the mean. The errors of det A det S are
        some u |A| |A^-1|, where an LU of M has u |M| |M^-1|; those of the diagonals, from which the
        result is subtracted, are longer by |A^-1| again. Both may be _LOST n times an LU's."""
        if self._ways is None:
            self._ways = self._probed()
        return self._ways

    def _probed(self) -> tuple[bool, bool, bool]:
        n, m = self._base.shape[-1], self.shape[-1]
        if m == 0:
            return True, True, True
        b = np.random.default_rng(17).choice([-1.0, 1.0], m).astype(self.dtype)
        with np.errstate(all="ignore"):
            x, corrected = self._refined(b, False)
            if x is None or corrected or finer(self.dtype, self._base.dtype):
                return x is not None, False, False
            longer = float(norms(self._base._solved(b[:n], False)) / norms(x))
            norm = norm_below(self._base.A, self._base.dtype)
            lost = norm * longer
            most = _LOST * m * self._norm
            return True, lost <= most, lost * max(1.0, longer) <= most

    def slogdet(self) -> Any:
        return self._once("slogdet", self._slogdet if self._trusted()[1] else self._own().slogdet)

    def logdet(self) -> Any:
        return _logarithm(self)

    def _inverse_diagonal(self) -> Any:
        return self._diagonal() if self._trusted()[2] else self._own()._inverse_diagonal()

    def _slogdet(self) -> Any:
        raise NotImplementedError

    def _diagonal(self) -> Any:
        raise NotImplementedError

    def inv(self) -> Any:
        return self._own().inv()

    @property
    def nbytes(self) -> int:
        own = self._by_itself.nbytes if self._by_itself is not None else 0
        return self._base.nbytes + self._more() + own

    def _more(self) -> int:
        raise NotImplementedError

    def sample(self, size: Any = None, rng: Any = None) -> Any:
        return sample(self._own().A, size, rng)


class _Updated(_Changed):
    """Of A + U V^H."""

    def __init__(self, base: Factorized, U: Any, V: Any) -> None:
        self._U, self._V = U, V
        right = U if V is None else V
        low = _core.LowRank(U) if V is None else _core.LowRank(U, V)
        super().__init__(base, base.A + low)
        self._W = base._solved(U, False)
        S = np.eye(U.shape[1]) + adjoint_of(right) @ self._W
        self._S = self._small(S, None)
        self._Z: Any = None

    def _adjoint_columns(self) -> Any:
        if self._Z is None:
            self._Z = self._base._solved(self._U if self._V is None else self._V, True)
        return self._Z

    def _through(self, b: Any, adjoint: bool) -> Any:
        V = self._U if self._V is None else self._V
        x = self._base._solved(b, adjoint)
        if adjoint:
            return x - self._adjoint_columns() @ self._S._solved(adjoint_of(self._U) @ x, True)
        return x - self._W @ self._S._solved(adjoint_of(V) @ x, False)

    def _slogdet(self) -> Any:
        return product(self._base.slogdet(), self._S.slogdet())

    def _diagonal(self) -> Any:
        thin = self._S._solved(adjoint_of(self._adjoint_columns()), False)
        return self._base._inverse_diagonal() - (self._W * thin.T).sum(axis=-1)

    def sample(self, size: Any = None, rng: Any = None) -> Any:
        if self._V is not None:
            return super().sample(size, rng)
        generator = np.random.default_rng(rng)
        x = self._base.sample(size, generator)
        return x + normal(self._U, x.shape[:-1], generator) @ self._U.T

    def _more(self) -> int:
        own = [self._U, self._V, self._W, self._Z]
        return self._S.nbytes + sum(int(a.nbytes) for a in own if a is not None)

    def __reduce__(self) -> Any:
        return _updated, (self._base, np.array(self._U), None if self._V is None else self._V)


class _Appended(_Changed):
    """Of [[A, B], [C, D]]."""

    def __init__(self, base: Factorized, B: Any, D: Any, C: Any) -> None:
        self._B, self._D, self._C = B, D, C
        low = adjoint_of(B) if C is None else C
        super().__init__(
            base, block([[base.A, _core.Dense(B)], [_core.Dense(low), _core.Dense(D)]])
        )
        self._W = base._solved(B, False)
        positive = _assumed(base.A) if C is None else None
        self._S = self._small(D - low @ self._W, positive)
        self._Z: Any = None

    def _adjoint_columns(self) -> Any:
        if self._Z is None:
            self._Z = self._base._solved(self._B if self._C is None else adjoint_of(self._C), True)
        return self._Z

    def _through(self, b: Any, adjoint: bool) -> Any:
        n = self._base.shape[-1]
        wide = b[:, None] if b.ndim == 1 else b
        first, last = wide[..., :n, :], wide[..., n:, :]
        C = adjoint_of(self._B) if self._C is None else self._C
        W, C = (self._adjoint_columns(), adjoint_of(self._B)) if adjoint else (self._W, C)
        y = self._base._solved(np.ascontiguousarray(first), adjoint)
        z = self._S._solved(last - C @ y, adjoint)
        x = np.concatenate([y - W @ z, z], axis=-2)
        return x[:, 0] if b.ndim == 1 else x

    def _slogdet(self) -> Any:
        return product(self._base.slogdet(), self._S.slogdet())

    def _diagonal(self) -> Any:
        thin = self._S._solved(adjoint_of(self._adjoint_columns()), False)
        first = self._base._inverse_diagonal() + (self._W * thin.T).sum(axis=-1)
        return np.concatenate([first, self._S._inverse_diagonal()], axis=-1)

    def sample(self, size: Any = None, rng: Any = None) -> Any:
        if self._C is not None:
            return super().sample(size, rng)
        generator = np.random.default_rng(rng)
        first = self._base.sample(size, generator)
        rest = self._S.sample(size, generator)
        return np.concatenate([first, first @ np.conj(self._W) + rest], axis=-1)

    def _more(self) -> int:
        own = [self._B, self._D, self._C, self._W, self._Z]
        return self._S.nbytes + sum(int(a.nbytes) for a in own if a is not None)

    def __reduce__(self) -> Any:
        return _appended, (self._base, *map(plain, (self._B, self._D, self._C)))


def _logarithm(F: Factorized) -> Any:
    sign, size = F.slogdet()
    if np.iscomplexobj(sign):
        return np.log(sign) + size
    return size if sign > 0 else type(size)(-np.inf if sign == 0 else np.nan)


def _updated(F: Any, U: Any, V: Any) -> Factorized:
    """`Factorized.update`."""
    _one_matrix(F, "update")
    n = F.shape[-1]
    U = columns("U", U, n)
    V = None if V is None else columns("V", V, n)
    if V is not None and V.shape != U.shape:
        raise ValueError(f"U has shape {U.shape}, V {V.shape}: they must be alike")
    base, pos = F, V is None and _assumed(F.A) is not None
    if isinstance(F, _Updated):
        base = F._base
        pos = V is None and F._V is None and _assumed(base.A) is not None
        right = None if V is None and F._V is None else [either(F._U, F._V), either(U, V)]
        U = dlpack.immutable(np.hstack([F._U, U]))
        V = None if right is None else dlpack.immutable(np.hstack(right))
    if base.A._head == "dense" and 4 * U.shape[1] > n:
        made = base.A.toarray() + U @ adjoint_of(U if V is None else V)
        return Factorized(_core.Dense(made, "pos" if pos else None))
    return _Updated(base, U, V)


def _appended(F: Any, B: Any, D: Any, C: Any) -> Factorized:
    """`Factorized.append`."""
    _one_matrix(F, "append")
    n = F.shape[-1]
    B = columns("B", B, n)
    k = B.shape[1]
    corner = dlpack.as_array(D)
    corner = corner.reshape(1, 1) if corner.size == 1 and corner.ndim < 2 else corner
    if corner.shape != (k, k):
        raise ValueError(
            f"D must have shape ({k}, {k}) beside B of shape {B.shape}, got {np.shape(D)}"
        )
    corner = columns("D", corner, k)
    if C is not None:
        rows = dlpack.as_array(C)
        rows = rows[None, :] if rows.ndim == 1 else rows
        if rows.shape != (k, n):
            raise ValueError(
                f"C must have shape ({k}, {n}) below A of shape {F.shape}, got {np.shape(C)}"
            )
        C = columns("C", rows, k)
    return _Appended(F, B, corner, C)
