"""SciPy's names for a few eigenpairs, singular triplets and exp(A) B; bases by Lanczos and
Arnoldi."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._base import dlpack
from .._base.dtypes import inexact
from .._base.errors import LinAlgError
from .._base.lazy_import import Later
from .._base.progress import Meter
from .._base.signatures import hinted
from .._base.trampoline import run
from .._operators.convert import as_operator, inverse
from .._structured import matrix_functions

_Call = Callable[[dict[str, Any]], Any] | None
_Show = bool | Callable[[int, float], Any] | None

__all__ = ["arnoldi", "eigs", "eigsh", "expm_multiply", "lanczos", "lobpcg", "svds"]
_memory = Later("_eigen.memory")
_eigsh = Later("_eigen.eigsh")


@hinted
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
    *,
    callback: _Call = None,
    progress: _Show = None,
) -> Any:
    """Some eigenvalues and eigenvectors of a Hermitian operator; scipy.sparse.linalg's signature.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (n, n)
    k : int
        How many, fewer than n.
    sigma : float, optional
        Find those near sigma: ``which`` then refers to 1 / (w - sigma). Solves with A - sigma I use
        its structure.
    which : {'LM', 'SM', 'LA', 'SA', 'BE'}
        Largest or smallest modulus; largest or smallest value; from both ends.
    v0 : array_like, shape (n,), optional
        Where to begin.
    ncv, maxiter : int, optional
        ncv is the number of vectors kept: when None, max(2 k + 1, 20), or 2 k + 20 where products
        cost more than keeping vectors orthogonal. maxiter is the most restarts: 10 n when None.
    tol : float
        Relative to each value; 0: working precision.
    return_eigenvectors : bool
    M, Minv, OPinv, mode
        As in SciPy; these go to SciPy's ARPACK. Where it needs the inverse of M or of A - sigma M,
        solves use the structure.
    rng : numpy.random.Generator or int, optional
        Where v0 comes from: 0 when None, so that the same call gives the same bits.
    callback : callable, optional
        Called with a dict after each restart: method, products, restarts, and the Ritz values that
        are wanted with their residuals (of 1 / (w - sigma) with ``sigma``). By ARPACK after each
        product, where both are None.
    progress : bool or callable, optional
        True shows a bar (tqdm where it is there); a callable gets (products, largest residual).

    Returns
    -------
    w : ndarray, shape (k,), ascending
    v : ndarray, shape (n, k)
        As a tuple with ``record``, a dict: method, products, restarts, residuals |A v - w M v|.

    Raises
    ------
    scipy.sparse.linalg.ArpackNoConvergence
        After ``maxiter`` restarts; has what did converge.
    LinAlgError
        When A v - w v is not small in the end: A is not Hermitian.

    Notes
    -----
    By structure, exactly, where eigh of A comes from closed forms and parts (Diag, Circulant,
    Laplacian, Kron, KronSum, BlockDiag, LowRank, c I beside these) and all of that is estimated to
    take less than Lanczos does. Else by our thick-restart Lanczos (Wu and Simon, 2000), which takes
    0.6 to 1 of the products of SciPy's ARPACK and about its time where they are cheap. Pencils (M),
    OPinv and modes go to ARPACK.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> w, v = pl.eigsh(-pl.Laplacian((300, 400), "dirichlet"), 3, which="SA")
    >>> w.round(6)
    array([0.00017 , 0.000354, 0.000497])
    """
    how = {"v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "rng": rng}
    more = {"M": M, "Minv": Minv, "OPinv": OPinv, "mode": mode}
    with Meter("eigsh", "residual", callback, progress) as meter:
        return _eigsh.eigsh(A, k, sigma, which, return_eigenvectors, how, more, meter)


@hinted
def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
    rng: Any = None,
    options: dict[str, Any] | None = None,
    *,
    callback: _Call = None,
    progress: _Show = None,
) -> Any:
    """Some singular values and vectors; scipy.sparse.linalg's signature.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (m, n)
    k : int
        How many, fewer than min(m, n).
    ncv, tol, v0, maxiter, rng
        As in `eigsh`, of the smaller of A^H A and A A^H.
    which : {'LM', 'SM'}
        The largest, or the smallest.
    return_singular_vectors : {True, False, 'u', 'vh'}
    solver : {'arpack', 'lobpcg', 'propack'}
        The last two are SciPy's, always.
    options : dict, optional
        As SciPy has them.
    callback, progress
        As in `eigsh`, of the eigenvalues of A^H A; with SciPy's solvers after each product.

    Returns
    -------
    u : ndarray, shape (m, k)
    s : ndarray, shape (k,), ascending
    vh : ndarray, shape (k, n)
        As a tuple with ``record``.

    Raises
    ------
    scipy.sparse.linalg.ArpackNoConvergence
        After ``maxiter`` restarts.
    ValueError
        When k or ``which`` does not fit.

    Notes
    -----
    By structure for LowRank, Kron of small factors, Diag, Circulant; else by our thick-restart
    Lanczos on A^H A. As with SciPy's, singular values below 1e-8 of the largest have few correct
    digits then.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> u, s, vh = pl.svds(pl.LowRank(np.eye(1000)[:, :3] * [1.0, 2.0, 3.0], np.eye(500)[:, :3]), 2)
    >>> s.round(6), vh.shape
    (array([2., 3.]), (2, 500))
    """
    how = {"v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "rng": rng}
    with Meter("svds", "residual", callback, progress) as meter:
        return _eigsh.svds(A, k, which, return_singular_vectors, solver, options, how, meter)


def _needs_scipy(name: str) -> Any:
    try:
        import scipy.sparse.linalg as sl  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(f"{name} needs SciPy: pip install scipy") from error
    return sl


@hinted
def eigs(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: complex | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    OPpart: str | None = None,
    rng: Any = None,
    *,
    callback: _Call = None,
    progress: _Show = None,
) -> Any:
    """Some eigenvalues and eigenvectors of a square operator, by SciPy's ARPACK.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (n, n)
    k, M, which, v0, ncv, maxiter, tol, return_eigenvectors, Minv, OPinv, OPpart
        As in scipy.sparse.linalg.eigs.
    sigma : complex, optional
        Those near sigma. Without M and OPinv, A - sigma I is solved with by its structure.
    rng : numpy.random.Generator or int, optional
        Where v0 comes from: 0 when None, so that the same call gives the same bits.
    callback, progress
        As in `eigsh`: after each product, without Ritz values.

    Returns
    -------
    w : ndarray, shape (k,)
    v : ndarray, shape (n, k)

    Raises
    ------
    scipy.sparse.linalg.ArpackNoConvergence
        After ``maxiter`` restarts.
    LinAlgError
        When ARPACK finds no basis: A has products that are not finite, or is zero.
    ImportError
        Without SciPy.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> w, v = pl.eigs(pl.Toeplitz(0.5 ** np.arange(50.0), 0.2 ** np.arange(50.0)), 2)
    >>> w.real.round(3)
    array([1.92 , 1.906])
    """
    sl = _needs_scipy("eigs")
    op = _eigsh.computable(as_operator(A), "eigs")
    if op.ndim != 2 or op.shape[0] != op.shape[1]:
        raise ValueError(f"expected square matrix (shape={op.shape})")
    if op.dtype is not None and op.dtype.kind != "c" and complex(sigma or 0).imag:
        op = op.astype(np.complex128)
    _memory.arpack(op, k, ncv, 4)
    if M is not None:
        M = as_operator(M)
    if sigma is not None and OPinv is None:
        OPinv = _eigsh.shifted_inverse(op, sigma, M)
    elif M is not None and Minv is None and OPinv is None:
        Minv = inverse(M)
    if v0 is None:
        v0 = np.random.default_rng(0 if rng is None else rng).standard_normal(op.shape[0])
        v0 = v0.astype(inexact(op.dtype))
    with Meter("eigs", "residual", callback, progress) as meter:
        watched = _eigsh.Counted(meter, "ARPACK (SciPy)")
        try:
            return sl.eigs(
                watched(op, OPinv is None), k, M=M, sigma=sigma, which=which, v0=v0, ncv=ncv,
                maxiter=maxiter, tol=tol, return_eigenvectors=return_eigenvectors, Minv=Minv,
                OPinv=watched(OPinv), OPpart=OPpart,
            )  # fmt: skip
        except sl.ArpackError as error:
            raise _eigsh.no_basis(op, error) from error


@hinted
def lobpcg(
    A: Any,
    X: Any,
    B: Any = None,
    M: Any = None,
    Y: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    verbosityLevel: int = 0,
    retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False,
    restartControl: int = 20,
    *,
    callback: _Call = None,
    progress: _Show = None,
) -> Any:
    """Some extreme eigenpairs of a Hermitian operator with a preconditioner, by SciPy's lobpcg.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (n, n)
    X : array_like, shape (n, k)
        Where to begin: k linearly independent columns.
    B, M : operator, array_like or sparse, optional
        The other matrix of the pencil; the preconditioner, about the inverse of A: an operator of
        ours, ``pl.inv(...)`` say, is applied to all columns at once.
    Y, tol, maxiter, largest, verbosityLevel
        As scipy.sparse.linalg.lobpcg has them.
    retLambdaHistory, retResidualNormsHistory, restartControl
        As scipy.sparse.linalg.lobpcg has them.
    callback, progress
        As in `eigsh`: after each product with a block, without values.

    Returns
    -------
    w : ndarray, shape (k,)
    v : ndarray, shape (n, k)

    Raises
    ------
    ValueError
        When X is not an n by k array.
    ImportError
        Without SciPy.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Tridiagonal(np.full(199, -1.0), np.linspace(2, 9, 200), np.full(199, -1.0))
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> w, v = pl.lobpcg(A, X, M=pl.inv(A), largest=False, tol=1e-8)
    >>> np.allclose(w, np.linalg.eigvalsh(A.toarray())[:2])
    True
    """
    sl = _needs_scipy("lobpcg")
    ops: list[Any] = [as_operator(A), *(None if x is None else as_operator(x) for x in (B, M))]
    X = np.asarray(X)
    n = ops[0].shape[-1]
    if X.ndim != 2 or X.shape[0] != n:
        raise ValueError(f"X must be ({n}, k), got {X.shape}")
    _memory.lobpcg(ops[0], X.shape[1])
    X = X.copy()  # SciPy's writes into it

    with Meter("lobpcg", "residual", callback, progress) as meter:
        counted = _eigsh.Counted(meter, "lobpcg (SciPy)")
        B, M = counted.watched(ops[1]), counted.watched(ops[2])
        with counted.first_failure():
            return sl.lobpcg(
                counted(ops[0]), X, B=B, M=M, Y=Y, tol=tol, maxiter=maxiter, largest=largest,
                verbosityLevel=verbosityLevel, retLambdaHistory=retLambdaHistory,
                restartControl=restartControl, retResidualNormsHistory=retResidualNormsHistory,
            )  # fmt: skip


# -- bases --


def _begin(A: Any, v: Any, k: Any) -> tuple[Any, Any, int]:
    op = as_operator(A)
    if op.ndim != 2 or op.shape[0] != op.shape[1]:
        raise LinAlgError(f"a Krylov basis is of one square matrix, not of shape {op.shape}")
    k, n = int(k.__index__()), op.shape[0]
    x = dlpack.as_array(v)
    if x.shape != (n,):
        raise ValueError(f"v must be of shape ({n},), got {x.shape}")
    if not 0 < k <= n:
        raise ValueError(f"k must be from 1 to {n}, got {k}")
    dtype = np.result_type(inexact(op.dtype), inexact(x.dtype))
    size = np.linalg.norm(x)
    if not (np.isfinite(size) and size > 0):
        raise ValueError("v must be finite and not all zero")
    return op, (x / size).astype(dtype), k


def lanczos(A: Any, v: Any, k: int) -> tuple[Any, Any, Any]:
    """An orthonormal basis of the Krylov space of a Hermitian operator, where it is tridiagonal.

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
        Assumed to be Hermitian.
    v : array_like, shape (n,)
    k : int
        Steps.

    Returns
    -------
    V : ndarray, shape (n, j)
        Orthonormal columns, the first v / |v|; j = k, or fewer where the space is invariant.
    alpha : ndarray, shape (j,)
    beta : ndarray, shape (j,)
        A V = V T + beta[-1] r e_j^T, with T of diagonal alpha and off-diagonal beta[:-1], r a unit
        vector orthogonal to V. beta[-1] = 0 where the space is invariant.

    Raises
    ------
    ValueError
        For a k not from 1 to n, and a v that is zero or not finite.
    LinAlgError
        When A is not one square matrix.

    Notes
    -----
    k products, 2 n k^2 flops: each vector is made orthogonal to all before.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> V, alpha, beta = pl.lanczos(pl.Diag([1.0, 2.0, 3.0]), np.ones(3), 2)
    >>> alpha.round(6), beta.round(6)
    (array([2., 2.]), array([0.816497, 0.57735 ]))
    """
    V, H, last = _basis(*_begin(A, v, k), True)
    alpha = np.diagonal(H).real.copy()
    return V, alpha, np.append(np.diagonal(H, -1).real, last)


def arnoldi(A: Any, v: Any, k: int) -> tuple[Any, Any]:
    """An orthonormal basis of the Krylov space of a square operator, where it is Hessenberg.

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
    v : array_like, shape (n,)
    k : int
        Steps.

    Returns
    -------
    V : ndarray, shape (n, j + 1) or (n, j)
        Orthonormal columns, the first v / |v|. One column fewer where the space is invariant, which
        may be before k steps.
    H : ndarray, shape (j + 1, j) or (j, j)
        Upper Hessenberg, A V[:, :j] = V H.

    Raises
    ------
    ValueError
        For a k not from 1 to n, and a v that is zero or not finite.
    LinAlgError
        When A is not one square matrix.

    Notes
    -----
    k products, 2 n k^2 flops and as many again where a second pass is due.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Toeplitz([2.0, 1.0, 0.0, 0.0], [2.0, 0.5, 0.0, 0.0])
    >>> V, H = pl.arnoldi(A, [1.0, 0.0, 0.0, 0.0], 2)
    >>> H.shape, np.allclose(A @ V[:, :2], V @ H)
    ((3, 2), True)
    """
    op, x, k = _begin(A, v, k)
    V, H, last = _basis(op, x, k, False)
    if last == 0:
        return V, H
    j = H.shape[1]
    w = op @ V[:, -1] - V @ H[:, -1]
    w = w - V @ (V.conj().T @ w)
    H = np.vstack([H, np.zeros((1, j), H.dtype)])
    H[j, j - 1] = last
    return np.column_stack([V, w / np.linalg.norm(w)]), H


def grown(op: Any, x: Any, k: int) -> Iterator[tuple[Any, Any, float, float]]:
    """The Arnoldi basis of op from the unit vector x, step by step: its rows so far, the Hessenberg
    matrix, the next off-diagonal (0 where the space is invariant, which ends it), the size of its
    columns. The arrays are the same ones each time, and of k steps."""
    n, dtype = x.shape[0], x.dtype
    eps = float(np.finfo(dtype).eps)
    apply = _eigsh._bound(op, dtype)
    rows, H = np.empty((k, n), dtype), np.zeros((k, k), dtype)
    rows[0], scale = x, 0.0
    for j in range(k):
        basis = rows[: j + 1]
        w = np.array(apply(rows[j]))
        before = np.linalg.norm(w)
        for _ in range(3):
            c = basis.conj() @ w
            w = w - c @ basis
            H[: j + 1, j] += c
            after = np.linalg.norm(w)
            if after > 0.7 * before:
                break
            before = after
        last = float(after)
        scale = max(scale, float(np.abs(H[: j + 1, j]).max()) + last)
        if last <= 4 * eps * np.sqrt(n) * scale or j + 1 == n:
            yield basis, H[: j + 1, : j + 1], 0.0, scale
            return
        yield basis, H[: j + 1, : j + 1], last, scale
        if j + 1 < k:
            H[j + 1, j] = last
            rows[j + 1] = w / last


def refuse_other(op: Any, H: Any, scale: float) -> None:
    """Raises where what Lanczos made is not Hermitian."""
    off = np.abs(H - H.conj().T)
    if off.max(initial=0) > 1e-6 * max(scale, 1e-300) and np.finfo(H.dtype).eps < 1e-10:
        raise LinAlgError(f"{type(op).__name__} {op.shape} is not Hermitian: see pl.arnoldi")


def _basis(op: Any, x: Any, k: int, hermitian: bool) -> tuple[Any, Any, float]:
    """(V, H, the last off-diagonal), V of j columns, H (j, j)."""
    for step in grown(op, x, k):
        rows, H, last, scale = step
    if hermitian:
        refuse_other(op, H, scale)
    return rows.T, H, last


# -- exp(A) B --


@hinted
def expm_multiply(
    A: Any,
    B: Any,
    start: float | None = None,
    stop: float | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: complex | None = None,
) -> Any:
    """exp(t A) B for t = 1, or for times from start to stop; scipy.sparse.linalg's signature.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (n, n)
    B : array_like, shape (n,) or (n, k)
    start, stop, num, endpoint
        The times, as numpy.linspace takes them (``num`` 50 and ``endpoint`` True when None).
    traceA : complex, optional
        The trace of A; computed by structure when not given.

    Returns
    -------
    ndarray, shape B.shape or (num, *B.shape)

    Raises
    ------
    LinAlgError
        When A is not one square matrix.
    ImportError
        Without SciPy, where the structure does not do.

    Notes
    -----
    Where exp(A) is at hand by structure (Diag, Circulant, Laplacian, Kron sums of small operands,
    BlockDiag, thin matrices and c I beside them): that, applied. Else SciPy's (Al-Mohy and Higham,
    2011) over our products.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x = pl.expm_multiply(0.1 * pl.Laplacian((200, 200), "neumann"), np.ones(40_000))
    >>> np.allclose(x, 1)
    True
    """
    op = as_operator(A)
    if op.ndim != 2 or op.shape[0] != op.shape[1]:
        raise LinAlgError(f"expm_multiply takes one square matrix, not shape {op.shape}")
    x = dlpack.as_array(B)
    if x.ndim not in (1, 2) or x.shape[0] != op.shape[0]:
        raise ValueError(f"B must be ({op.shape[0]},) or ({op.shape[0]}, k), got {x.shape}")
    times = (start, stop, num, endpoint)
    if run(_eigsh._small_parts, op) and 0 not in op.shape:
        if start is None and stop is None and num is None and endpoint is None:
            return matrix_functions.exponential(op) @ x
        count, end = 50 if num is None else num, True if endpoint is None else endpoint
        if start is None or stop is None:
            raise ValueError("start and stop belong together")
        t = np.linspace(start, stop, count, endpoint=end)
        return np.stack([matrix_functions.exponential(float(s) * op) @ x for s in t])
    _memory.expm_multiply(op, x, None if start is None else 50 if num is None else int(num))
    sl = _needs_scipy("expm_multiply")
    if traceA is None:
        traceA = op.trace()
    return sl.expm_multiply(op, x, *times, traceA=traceA)
