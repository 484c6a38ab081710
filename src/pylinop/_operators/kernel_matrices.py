"""Kernel matrices beside the kind in C: of callables, with structure, and approximations of
them."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np

from .. import _core
from .._base import memory
from .._base.dlpack import as_array
from .._base.errors import LinAlgError
from .linear_operator import LinearOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import DTypeLike, NDArray

    _Array = NDArray[Any]

__all__ = ["CallableKernel", "kernel_structure", "nystrom", "random_features"]

_BLOCK = 1 << 20  # entries of a block: 8 MiB of float64
_STATIONARY = ("rbf", "matern12", "matern32", "matern52", "rational_quadratic", "periodic")


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(at, min(at + size, n)) for at in range(0, n, size))


class CallableKernel(LinearOperator):
    """The kernel matrix f(x_i, y_j) of a Python function on blocks; ``pl.Kernel(f, x, y)``.

    Parameters
    ----------
    function : callable
        f(X, Y) gives the block of shape (p, q) for points X (p, d) and Y (q, d). It is called
        anew in each product, for one matrix of a batch at a time, and must not keep or change what
        it is given.
    x : array_like, shape (..., m, d)
        The points of the rows. Borrowed.
    y : array_like, shape (..., n, d), optional
        The points of the columns; those of the rows if None. Batches broadcast.
    dtype : dtype, optional
        The dtype of the blocks, which must cast to it within their kind; None takes that of the
        points, or float64 for integers.
    copy : bool
        Copy the points.

    Raises
    ------
    ValueError
        The points have fewer than two dimensions, not the same number of coordinates, or batches
        that do not broadcast; when used: a block whose shape is not (p, q).
    TypeError
        `function` cannot be called; the points are masked; when used: a block of another
        kind of dtype.

    Cost
    ----
    A product with k columns computes all blocks once, of at most 2^20 entries (or one row) each,
    and takes 2 m n k flops. The diagonal computes blocks of 64 x 64 along it. Solves use LU of the
    dense form.

    Notes
    -----
    Nothing is assumed of f, not even symmetry. Exceptions in f pass through.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x = np.arange(4.0)[:, None]
    >>> K = pl.Kernel(lambda X, Y: np.abs(X - Y.T), x)
    >>> K @ np.ones(4)
    array([6., 4., 4., 6.])
    """

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        x: Any,
        y: Any = None,
        *,
        dtype: DTypeLike | None = None,
        copy: bool = False,
    ) -> None:
        if not callable(function):
            raise TypeError(f"CallableKernel: function must be callable, got {function!r}")
        self.function = function
        self.x = as_array(x)
        self.y = self.x if y is None or y is x else as_array(y)
        if copy:
            same, self.x = self.y is self.x, self.x.copy()
            self.y = self.x if same else self.y.copy()
        for name, points, given in (("x", self.x, x), ("y", self.y, y)):
            if isinstance(given, np.ma.MaskedArray):
                raise TypeError(
                    f"Kernel({name}=...): masked arrays are not taken; fill or select first"
                )
            if points.ndim < 2:
                raise ValueError(
                    f"Kernel({name}=...): expected points of shape (..., n, d), got {points.shape}"
                )
        if self.x.shape[-1] != self.y.shape[-1]:
            raise ValueError(
                f"Kernel: points x of shape {self.x.shape} and y of shape {self.y.shape} have "
                "different numbers of coordinates"
            )
        if dtype is None:
            dtype = np.result_type(self.x, self.y)
            dtype = dtype if dtype.kind in "fc" else np.float64
        try:
            batch = np.broadcast_shapes(self.x.shape[:-2], self.y.shape[:-2])
        except ValueError:
            raise ValueError(
                f"Kernel: the batches of points x of shape {self.x.shape} and y of shape "
                f"{self.y.shape} do not broadcast"
            ) from None
        shape = (*batch, self.x.shape[-2], self.y.shape[-2])
        LinearOperator.__init__(self, np.dtype(dtype), shape)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return _core.Operator.__new__(cls)

    def block(self, rows: slice, columns: slice) -> _Array:
        """The entries of these rows and columns, by one call of the function for each matrix of a
        batch."""
        X, Y = self.x[..., rows, :], self.y[..., columns, :]
        batch = self.shape[:-2]
        if not batch:
            return self._one(X, Y)
        X, Y = (np.broadcast_to(P, (*batch, *P.shape[-2:])) for P in (X, Y))
        found = np.empty((*batch, X.shape[-2], Y.shape[-2]), self.dtype)
        for at in np.ndindex(*batch):
            found[at] = self._one(X[at], Y[at])
        return found

    def _one(self, X: _Array, Y: _Array) -> _Array:
        found = np.asarray(self.function(X, Y))
        if found.shape != (len(X), len(Y)):
            raise ValueError(
                f"the kernel function gave shape {found.shape} for points of shapes {X.shape} and "
                f"{Y.shape}: expected {(len(X), len(Y))}"
            )
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"the kernel function gave dtype {found.dtype} in a Kernel of dtype {self.dtype}: "
                "say dtype="
            )
        return found.astype(self.dtype, copy=False)

    def _tiles(self) -> Iterator[tuple[slice, slice]]:
        *batch, m, n = self.shape
        wide = min(n, 4096) or 1
        high = max(1, _BLOCK // (wide * max(1, math.prod(batch))))
        for rows in _blocks(m, high):
            for columns in _blocks(n, wide):
                yield rows, columns

    def _zeros(self, m: int, X: Any) -> _Array:
        batch = np.broadcast_shapes(X.shape[:-2], self.shape[:-2])
        shape = (*batch, m, X.shape[-1])
        return np.zeros(shape, np.result_type(X.dtype, self.dtype))

    def _matmat(self, X: Any) -> Any:
        y = self._zeros(self.shape[-2], X)
        for rows, columns in self._tiles():
            y[..., rows, :] += self.block(rows, columns) @ X[..., columns, :]
        return y

    def _rmatmat(self, X: Any) -> Any:
        y = self._zeros(self.shape[-1], X)
        for rows, columns in self._tiles():
            y[..., columns, :] += (
                np.swapaxes(self.block(rows, columns).conj(), -1, -2) @ X[..., rows, :]
            )
        return y

    def _diagonal(self, k: int) -> _Array:
        i, j = max(-k, 0), max(k, 0)
        *batch, m, n = self.shape
        count = max(0, min(m - i, n - j))
        d = np.empty((*batch, count), self.dtype)
        for at in _blocks(count, 64):
            rows, columns = (slice(o + at.start, o + at.stop) for o in (i, j))
            d[..., at] = self.block(rows, columns).diagonal(axis1=-2, axis2=-1)
        return d

    def toarray(self, out: Any = None) -> Any:
        """The dense form, block by block."""
        memory.materialising(self, self.size * self.dtype.itemsize, True)
        y = np.empty(self.shape, self.dtype) if out is None else out
        for rows, columns in self._tiles():
            y[..., rows, columns] = self.block(rows, columns)
        return y

    def _solve(self, b: Any) -> _Array:
        return np.linalg.solve(self.toarray(), b)


def callable_kernel(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallableKernel:
    """What ``pl.Kernel`` gives for a callable."""
    kwargs = dict(kwargs)
    own = {k: kwargs.pop(k) for k in ("function", "x", "y", "dtype", "copy") if k in kwargs}
    if kwargs or len(args) > 3:
        raise TypeError(
            "Kernel of a callable takes x, y, dtype and copy; its own parameters belong into the "
            f"function (functools.partial): {', '.join(kwargs) or 'too many arguments'}"
        )
    return CallableKernel(*args, **own)


# -- the parameters of a kernel


def _said(K: Any, what: str) -> dict[str, Any]:
    """The parameters that a Kernel was constructed with."""
    if not isinstance(K, _core.Operator) or K._head != "kernel" or K._init is None:
        raise TypeError(
            f"{what} takes a Kernel as constructed by name, got {type(K).__name__}"
            + (" of an expression" if getattr(K, "_head", None) == "kernel" else "")
        )
    names = "function x y variance length_scale alpha period degree offset".split()
    return {k: v for k, v in zip(names, K._given(*names), strict=True) if v is not None}


def _square(said: dict[str, Any], what: str) -> _Array:
    x = said.pop("x")
    if "y" in said or x.ndim != 2:
        raise ValueError(f"{what} takes one set of points (y is x) without batches")
    return np.asarray(x)


# -- structure


def kernel_structure(K: Any) -> Any:
    """The same kernel matrix with the structure that its points give it, or K itself.

    This reads the points once; the result does not follow later writes to them. On a regular
    grid of one dimension a stationary kernel is a `Toeplitz`. On a product grid, the points in C
    order (the last coordinate moves fastest), 'rbf' and 'periodic' are a `Kron` with one operator
    for each axis, a Toeplitz where that axis is regular; other stationary kernels are a
    `MultilevelToeplitz` where all axes are regular.

    Parameters
    ----------
    K : Kernel
        Constructed by name, with one set of points.

    Returns
    -------
    LinearOperator
        `Toeplitz`, `Kron`, `MultilevelToeplitz`, or K where nothing was recognised.

    Raises
    ------
    TypeError
        K is not a Kernel as constructed by name.
    ValueError
        y is not x, or the points have batch dimensions.

    Notes
    -----
    A grid is regular where its points lie within 4 units in the last place of the largest from
    equal steps; the entries are those of the first row. So they differ from K's entries by the
    effect of such a shift of the points. Products by FFT are accurate normwise.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x = np.linspace(0, 1, 50)
    >>> T = pl.kernel_structure(pl.Kernel("matern32", x[:, None], length_scale=0.2))
    >>> type(T).__name__, T.shape
    ('Toeplitz', (50, 50))
    """
    said = _said(K, "kernel_structure")
    x = _square(said, "kernel_structure")
    axes = _axes(x)
    if said["function"] not in _STATIONARY or axes is None:
        return K
    regular = [_is_regular(a) for a in axes]
    if len(axes) == 1:
        return _axis(said, axes[0], 0, True) if regular[0] else K
    if said["function"] in ("rbf", "periodic"):
        variance = said.pop("variance", None)
        parts = [_axis(said, a, k, r) for k, (a, r) in enumerate(zip(axes, regular, strict=True))]
        product = _core.Kron(*parts)
        return product if variance is None else product * variance[()]
    return _levels(said, axes) if all(regular) else K


def _axes(x: _Array) -> list[_Array] | None:
    """The axes of a product grid in C order; None where x is not such a grid."""
    if x.size == 0 or not np.isfinite(x).all():
        return None
    axes = []
    for column in x.T:
        _, first = np.unique(column, return_index=True)
        axes.append(column[np.sort(first)])
    if np.prod([len(a) for a in axes], dtype=float) != len(x):
        return None
    grid = np.meshgrid(*axes, indexing="ij")
    same = all(np.array_equal(g.ravel(), c) for g, c in zip(grid, x.T, strict=True))
    return axes if same else None


def _is_regular(a: _Array) -> bool:
    a = a if a.dtype.kind == "f" else a.astype(float)
    if len(a) < 3:
        return True
    step = (float(a[-1]) - float(a[0])) / (len(a) - 1)
    off = np.abs(a.astype(float) - (float(a[0]) + step * np.arange(len(a))))
    return bool(off.max() <= 4 * np.spacing(np.abs(a).max()))


def _axis(said: dict[str, Any], a: _Array, k: int, regular: bool) -> Any:
    own = dict(said)
    if "length_scale" in own and own["length_scale"].shape[-1] > 1:
        own["length_scale"] = own["length_scale"][..., k]
    if not regular:
        return _core.Kernel(x=a[:, None], **own)
    return _core.Toeplitz(_core.Kernel(x=a[:, None], y=a[:1, None], **own).toarray()[:, 0])


def _levels(said: dict[str, Any], axes: list[_Array]) -> Any:
    """All differences of points of a regular grid, each once."""
    steps = [np.concatenate([a[0] - a[:0:-1], a - a[0]]) for a in axes]
    grid = np.stack([g.ravel() for g in np.meshgrid(*steps, indexing="ij")], axis=1)
    row = _core.Kernel(x=grid, y=np.zeros_like(grid[:1]), **said).toarray()[:, 0]
    return _core.MultilevelToeplitz(row.reshape([len(s) for s in steps]))


# -- approximations


@overload
def nystrom(K: Any, k: int, *, rng: Any = None, return_error: Literal[False] = False) -> Any: ...
@overload
def nystrom(
    K: Any, k: int, *, rng: Any = None, return_error: Literal[True]
) -> tuple[Any, float]: ...
def nystrom(K: Any, k: int, *, rng: Any = None, return_error: bool = False) -> Any:
    """A low-rank approximation of a kernel matrix by k of its columns (Nystrom).

    K is replaced by C W^+ C^T, with C the columns of k points drawn without replacement, all
    equally likely, and W their rows.

    Parameters
    ----------
    K : Kernel or CallableKernel
        Symmetric and positive semidefinite, one set of points.
    k : int
        How many columns, 1 to n.
    rng : numpy.random.Generator or int, optional
        The generator, or a seed, that draws the points.
    return_error : bool
        Also return the trace of K minus the approximation.

    Returns
    -------
    LowRank
        U U^T of rank at most k, computed now. It does not follow later writes to the points.
    float
        With `return_error`: the trace of the residual. The residual is positive semidefinite, so
        its 2-norm and Frobenius norm are at most this trace, which is exact up to rounding, some n
        eps times the trace of K.

    Raises
    ------
    TypeError
        K is not a Kernel; k is not an integer.
    ValueError
        K is not square, not symmetric or has batches, or k is out of range.
    LinAlgError
        W has an eigenvalue below -100 k eps times the largest: K is not semidefinite.

    Cost
    ----
    It computes n k entries, takes 2 n k^2 flops for the basis of eigenvectors, and holds n k
    numbers.

    Notes
    -----
    Eigenvalues of W below k eps times the largest are left out.

    References
    ----------
    Williams and Seeger, Using the Nystrom method to speed up kernel machines, NIPS 2001.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> A, error = pl.nystrom(pl.Kernel("rbf", x, length_scale=0.3), 30, rng=0, return_error=True)
    >>> type(A).__name__, A.shape, error < 1e-6
    ('LowRank', (200, 200), True)
    """
    if not isinstance(K, _core.Operator) or (
        K._head != "kernel" and not isinstance(K, CallableKernel)
    ):
        raise TypeError(f"nystrom takes a Kernel, got {type(K).__name__}")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"nystrom takes one square kernel matrix, got shape {K.shape}")
    n, k = K.shape[0], operator.index(k)
    if not 1 <= k <= n:
        raise ValueError(f"nystrom(k={k}): expected 1 to {n}, the number of points")
    at = np.sort(np.random.default_rng(rng).choice(n, k, replace=False))
    C = _columns(K, at)
    values, vectors = np.linalg.eigh((C[at] + C[at].T) / 2)
    eps, top = np.finfo(C.dtype).eps, np.abs(values).max()
    if not values[0] >= -100 * k * eps * top:
        raise LinAlgError(
            f"nystrom: the kernel matrix of {k} of the points has the eigenvalue {values[0]:.3g} "
            f"beside {top:.3g}: it is not positive semidefinite"
        )
    keep = values > k * eps * top
    U = C @ (vectors[:, keep] / np.sqrt(values[keep]))
    if not return_error:
        return _core.LowRank(U)
    rest = K.diagonal().astype(float) - np.einsum("ij,ij->i", U, U, dtype=float)
    return _core.LowRank(U), float(rest.sum())


def _columns(K: Any, at: _Array) -> _Array:
    """K[:, at] of a symmetric K; if K is not known to be symmetric, these rows are compared."""
    if isinstance(K, CallableKernel):
        C = CallableKernel(K.function, K.x, K.y[at], dtype=K.dtype).toarray()
        rows = CallableKernel(K.function, K.x[at], K.y, dtype=K.dtype).toarray()
    else:
        C = np.asarray(K[:, at].toarray())
        if K._init is not None and K._given("y") is None:
            return C
        rows = K[at, :].toarray()
    far = np.abs(C - rows.T.conj()).max(initial=0)
    if far > 1000 * np.finfo(C.dtype).eps * np.abs(C).max(initial=0):
        raise ValueError(f"nystrom takes a symmetric kernel matrix: K and K^H differ by {far:.3g}")
    return np.asarray(C)


def random_features(K: Any, k: int, *, rng: Any = None) -> Any:
    """A rank-k approximation of a stationary kernel matrix, by random Fourier features.

    By Bochner's theorem a stationary kernel is the mean of cos(w . (x - y)) over its spectral
    density; k / 2 frequencies w are drawn from that density. Unlike `nystrom`, the method does not
    look at the points, and is unbiased.

    Parameters
    ----------
    K : Kernel
        'rbf', 'matern12', 'matern32', 'matern52' or 'rational_quadratic', as constructed by name,
        without batches.
    k : int
        How many features: an even number, since each frequency gives a cosine and a sine.
    rng : numpy.random.Generator or int, optional
        The generator, or a seed, that draws the frequencies.

    Returns
    -------
    LowRank
        U V^T of rank k, computed now. It does not follow later writes to the points.

    Raises
    ------
    TypeError
        K is not a Kernel as constructed by name.
    ValueError
        Its function has no such features, the points have batches, k is odd or not positive, a
        parameter is negative.

    Cost
    ----
    It takes (m + n) k d flops and k (m + n) cosines and sines.

    Notes
    -----
    The mean of each entry is that of K; its standard deviation is at most variance sqrt(2 / k), and
    variance / sqrt(k) for 'rbf'. So errors fall only with sqrt(k).

    References
    ----------
    Rahimi and Recht, Random features for large-scale kernel machines, NIPS 2007.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> K = pl.Kernel("rbf", np.linspace(0, 1, 50)[:, None])
    >>> A = pl.random_features(K, 2000, rng=0)
    >>> type(A).__name__, bool(abs(A.toarray() - K.toarray()).max() < 0.1)
    ('LowRank', True)
    """
    said = _said(K, "random_features")
    x, y, name = np.asarray(said["x"]), said.get("y"), said["function"]
    if K.ndim != 2:
        raise ValueError(f"random_features takes one kernel matrix, got shape {K.shape}")
    if k < 2 or k % 2:
        raise ValueError(f"random_features(k={k}): expected a positive even number")
    K[:1, :1].toarray()  # looks at the parameters
    variance = float(said.get("variance", 1.0))
    if variance < 0:
        raise ValueError(f"random_features: expected a variance of at least 0, got {variance}")
    rng = np.random.default_rng(rng)
    d, half = x.shape[1], k // 2
    w = rng.standard_normal((half, d)).astype(K.dtype)
    freedom = {"matern12": 1, "matern32": 3, "matern52": 5}.get(name)
    if freedom:
        w /= np.sqrt(rng.chisquare(freedom, (half, 1)) / freedom)
    elif name == "rational_quadratic":
        alpha = float(said.get("alpha", 1.0))
        w *= np.sqrt(rng.gamma(alpha, 1 / alpha, (half, 1)))
    elif name != "rbf":
        raise ValueError(f"random_features knows no spectral density of {name!r}")
    w = w / said.get("length_scale", np.ones(1, K.dtype))
    scale = np.sqrt(variance / half)

    def features(points: Any) -> _Array:
        found: _Array = (scale * _waves(np.asarray(points) @ w.T)).astype(K.dtype)
        return found

    return _core.LowRank(features(x)) if y is None else _core.LowRank(features(x), features(y))


def _waves(angle: _Array) -> _Array:
    both: _Array = np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
    return both


CallableKernel.__module__ = "pylinop"
