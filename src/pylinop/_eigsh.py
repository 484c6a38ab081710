"""Some eigenpairs and singular triplets: by structure, by our Lanczos, or by SciPy's ARPACK.

By structure where all pairs come from small parts (Kron, circulants, thin matrices, ...); else by
thick-restart Lanczos, with a shift on the inverse by the structure of A - sigma I; pencils and
modes by ARPACK. Beside ARPACK ours takes some 0.6 to 1 of the products, and misses no eigenvalue 0
of a diagonal matrix (SciPy 1.17's does)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _answers, _core, _errors, _restarted
from ._errors import LinAlgError
from ._forms import as_operator
from ._functions import inv
from ._spectra_eigh import eigenbasis
from ._spectra_values import shift_of
from ._steps import run

_SMALL = 1000  # rows of a part up to which its dense form is decomposed
_PLAIN = "fdFDbBhHiIlLqQ?"  # dtypes that ours computes in
_WHICH = ("LM", "LA", "SA", "SM", "BE")
_CLOSED = ("diag", "identity", "zeros", "circulant", "laplacian", "hadamard", "full", "householder",
           "permutation", "eigen")  # fmt: skip


class Found(tuple):  # type: ignore[type-arg]
    """A tuple as SciPy's, with how it was found: ``record``, a dict (method, products, restarts,
    residuals)."""

    record: dict[str, Any]

    @classmethod
    def _with(cls, values: Any, record: dict[str, Any]) -> Found:
        made = cls(values)
        made.record = record
        return made


# -- by structure --


def _small_parts(op: Any) -> Any:
    """Does eigh of it come from closed forms and small dense parts?"""
    head, by = op._head, op._by if op._init is None else ""
    if op._opaque or op.ndim != 2 or op.shape[0] != op.shape[1]:
        return False
    if head in _CLOSED:
        return True
    if by in ("scaled", "view", "power", "inverse"):
        return (yield (op._operands[0],))
    if head == "sum":
        found = shift_of(op)
        return False if found is None else (yield (found[0],))
    if head in ("kron", "kronsum", "blockdiag"):
        for f in _answers.factors_of(op):
            if f.shape[0] != f.shape[1]:
                return False
            if f.shape[0] > min(_SMALL, op.shape[0] // 2) and not (yield (f,)):
                return False
        return True
    if head == "lowrank" and op._init is not None:
        return bool(as_operator(op._init[0]).shape[-1] <= _SMALL)
    return False


def _structured(op: Any, k: int, which: str, sigma: Any) -> tuple[Any, Any, dict[str, Any]] | None:
    if not run(_small_parts, op):
        return None
    if op._head != "sum" and not _answers.hermitian(op):
        return None  # factors may be skew
    w, q = eigenbasis(op, "L")
    w = np.broadcast_to(w, op.shape[:1])
    order = np.argsort(w, kind="stable")
    if sigma is None:
        at = order[_restarted.picked(w[order], k, which)]
    else:
        with np.errstate(divide="ignore"):
            nu = 1 / (w - sigma)
        order = np.argsort(nu, kind="stable")
        at = order[_restarted.picked(nu[order], k, which)]
    at = at[np.argsort(w[at], kind="stable")]
    units = np.zeros((op.shape[0], k), q.dtype if q.dtype.kind in "fc" else np.float64)
    units[at, np.arange(k)] = 1
    return w[at], q @ units, {"method": "structure", "products": 0, "restarts": 0}


# -- by Lanczos --


def _basis_size(op: Any, k: int, ncv: Any, products: int = 1) -> int:
    """Vectors of the basis: more, for fewer restarts, where products cost more than keeping a
    vector orthogonal to them."""
    n = op.shape[1]
    if ncv is not None:
        return int(ncv)
    m = 2 * k + 20
    cheap = not op._opaque and products * op.explain("apply").seconds < 1.6e-9 * m * n
    return int(min(n, max(2 * k + 1, 20) if cheap else m))


def _scipy() -> Any:
    try:
        import scipy.sparse.linalg as sl  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return sl


def no_convergence(text: str, values: Any, vectors: Any) -> Exception:
    """SciPy's exception where SciPy is there, else ours."""
    sl = _scipy()
    if sl is None:
        return _errors.ConvergenceError(text, vectors, {"eigenvalues": values})
    return sl.ArpackNoConvergence(text, values, vectors)  # type: ignore[no-any-return]


def _lanczos(
    op: Any, apply: Any, k: int, which: str, v0: Any, ncv: Any, maxiter: Any, tol: Any, rng: Any
) -> Any:
    """Pairs of the operator whose products `apply` gives, in op's dtype."""
    n, dtype = op.shape[0], _answers.inexact(op.dtype)
    m = int(ncv)
    if not k < m <= n and n > k:
        raise ValueError(f"ncv must be k<ncv<=n, ncv={m}")
    g = np.random.default_rng(0 if rng is None else rng)
    start = g.standard_normal(n) if v0 is None else np.asarray(v0).reshape(n)
    if dtype.kind != "c" and np.iscomplexobj(start):
        raise ValueError("v0 is complex, the operator real")
    if not np.linalg.norm(start) > 0 or not np.isfinite(start).all():
        raise ValueError("v0 must be a vector of finite numbers, not all zero")
    most = 10 * n if maxiter is None else int(maxiter)
    if most <= 0:
        raise ValueError(f"maxiter must be positive, maxiter={maxiter}")
    return _restarted.restarted(
        apply, n, dtype, k, which, start.astype(dtype), m, most, float(tol), g
    )


def _bound(op: Any, dtype: Any) -> Any:
    """Products with vectors, bound once where that can be."""
    if op._opaque or dtype.kind not in "fc" or op.ndim != 2:
        return lambda x: np.asarray(op @ x).reshape(x.shape)
    return _core._Applied(op, dtype)


def _residuals(op: Any, w: Any, v: Any) -> Any:
    return np.linalg.norm(op @ v - v * w, axis=0)


def _ours(op: Any, k: int, sigma: Any, which: str, how: dict[str, Any]) -> Any:
    """(values, vectors, record) by our Lanczos, of A or of (A - sigma)^-1."""
    dtype = _answers.inexact(op.dtype)
    size = _basis_size(op, k, how["ncv"]) if sigma is None else min(2 * k + 20, op.shape[0])
    how = how | {"ncv": size if how["ncv"] is None else how["ncv"]}
    if sigma is None:
        pairs = _lanczos(op, _bound(op, dtype), k, which, **how)
        w, method = pairs.values, "thick-restart Lanczos"
    else:
        inverse = inv(op - sigma * _core.Identity(op.shape[0]))
        pairs = _lanczos(op, _bound(inverse, dtype), k, which, **how)
        with np.errstate(divide="ignore"):
            w = sigma + 1 / pairs.values
        method = "thick-restart Lanczos, shift and invert"
    order = np.argsort(w, kind="stable")
    w, v, good = w[order], pairs.vectors[:, order], pairs.converged[order]
    if not good.all():
        raise no_convergence(
            f"No convergence ({pairs.restarts} iterations, {int(good.sum())}/{k} eigenvectors "
            f"converged)", w[good], v[:, good],
        )  # fmt: skip
    off = _residuals(op, w, v)
    eps = float(np.finfo(dtype).eps)
    size = np.abs(w).max(initial=0) if sigma is None else np.linalg.norm(op @ v, axis=0).max()
    allowed = 1e3 * max(how["tol"], eps) * max(size, eps ** (2 / 3)) * np.sqrt(op.shape[0])
    if sigma is not None:  # the solves' accuracy is that of |A|
        allowed = max(allowed, 1e-6 * size, 1e-6)
    if not off.max(initial=0) <= allowed:
        raise LinAlgError(
            f"eigsh of {type(op).__name__} {op.shape}: |A v - w v| is {off.max():.3g} where "
            f"{allowed:.3g} is allowed: the operator is not Hermitian, or its products are not "
            f"accurate"
        )
    record = {"method": method, "products": pairs.products, "restarts": pairs.restarts}
    return w, v, record | {"residuals": off}


def _arpack(op: Any, A: Any, k: int, sigma: Any, which: str, how: dict[str, Any], more: Any) -> Any:
    sl = _scipy()
    opinv = more.pop("OPinv", None)
    if sigma is not None and opinv is None and more.get("M") is None:
        opinv = inv(op - sigma * _core.Identity(op.shape[0]))
    rng, v0 = how.pop("rng"), how.pop("v0")
    if v0 is None and more.get("M") is None:
        g = np.random.default_rng(0 if rng is None else rng)
        v0 = g.standard_normal(op.shape[0]).astype(_answers.inexact(op.dtype))
    extra = {name: value for name, value in more.items() if value is not None}
    given = A if more.get("M") is not None and not isinstance(A, _core.Operator) else op
    return sl.eigsh(given, k, sigma=sigma, which=which, v0=v0, OPinv=opinv, **how, **extra)


def eigsh(
    A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None,
    ncv: Any = None, maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True,
    Minv: Any = None, OPinv: Any = None, mode: str = "normal", rng: Any = None,
) -> Any:  # fmt: skip
    """See `pylinop.eigsh`."""
    op = as_operator(A)
    if op.ndim != 2 or op.shape[0] != op.shape[1]:
        raise ValueError(f"expected square matrix (shape={op.shape})")
    k, n = int(k.__index__()), op.shape[0]
    if k <= 0:
        raise ValueError(f"k={k} must be greater than 0.")
    if which not in _WHICH:
        raise ValueError(f"which must be one of {' '.join(_WHICH)}")
    if sigma is not None:
        if complex(sigma).imag or not np.isfinite(complex(sigma)):
            raise ValueError(f"sigma must be real and finite, got {sigma!r}; pl.eigs takes others")
        sigma = complex(sigma).real
    how = {"v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "rng": rng}
    special = M is not None or Minv is not None or OPinv is not None or mode != "normal"
    foreign = op.dtype is None or op.dtype.char not in _PLAIN
    found = None
    if not special and not foreign and k <= n:
        found = _structured(op, k, which, sigma)
        if found is None and k >= n and not isinstance(A, _core.Operator):
            found = _all_pairs(op, k, which, sigma)
        if found is None and k >= n:
            raise TypeError(
                f"Cannot use eigsh for an operator with k >= N (k={k}, N={n}): use pl.eigh(A)"
            )
        if found is None:
            found = _ours(op, k, sigma, which, how)
    if found is None:
        if _scipy() is None:
            raise ImportError("eigsh with M, Minv, OPinv or mode needs SciPy: pip install scipy")
        more = {"M": M, "Minv": Minv, "OPinv": OPinv, "mode": mode}
        found = _arpack(op, A, k, sigma, which, how | {"return_eigenvectors": return_eigenvectors},
                        more)  # fmt: skip
        record = {"method": "ARPACK (SciPy)"}
        return Found._with(found, record) if return_eigenvectors else found
    w, v, record = found
    real = _answers.real_of(op.dtype)
    w = np.asarray(w).astype(real, copy=False)
    if not return_eigenvectors:
        return w
    v = np.asarray(v).astype(_answers.inexact(op.dtype), copy=False)
    return Found._with((w, v), {"residuals": None} | record)


def _all_pairs(op: Any, k: int, which: str, sigma: Any) -> Any:
    """Of an array with as many pairs as rows: SciPy takes eigh."""
    w, v = np.linalg.eigh(_answers.dense(op))
    at = np.sort(_restarted.picked(w, min(k, w.size), which))
    return w[at], v[:, at], {"method": "eigh", "products": 0, "restarts": 0}


# -- singular triplets --


def _thin(op: Any) -> bool:
    """Is its svd at hand: of low rank, diagonal, a Kron of small factors?"""
    if op._opaque or op.ndim != 2:
        return False
    if op._head in ("lowrank",) and op._init is not None:
        return bool(as_operator(op._init[0]).shape[-1] <= _SMALL)
    if op._head == "kron" and op._init is not None:
        return all(max(f.shape) <= min(_SMALL, max(op.shape) // 2) for f in _answers.factors_of(op))
    return op._head in ("diag", "identity", "circulant", "permutation", "zeros", "hadamard")


def svds(
    A: Any, k: int = 6, ncv: Any = None, tol: float = 0, which: str = "LM", v0: Any = None,
    maxiter: Any = None, return_singular_vectors: Any = True, solver: str = "arpack",
    rng: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """See `pylinop.svds`."""
    op = as_operator(A)
    if op.ndim != 2:
        raise ValueError(f"A must be two-dimensional, got shape {op.shape}")
    k, least = int(k.__index__()), min(op.shape)
    if not 0 < k < least + (solver == "propack"):
        raise ValueError(f"`k` must be an integer satisfying `0 < k < min(A.shape)`, got {k}")
    if which not in ("LM", "SM"):
        raise ValueError("`which` must be in {'LM', 'SM'}.")
    words = (True, False, "u", "vh")
    if not any(return_singular_vectors is x or return_singular_vectors == x for x in words):
        raise ValueError(f"`return_singular_vectors` must be in {words}.")
    record: dict[str, Any]
    if solver == "arpack" and _thin(op):
        from ._spectra import svd

        U, s, Vh = svd(op, full_matrices=False)
        at = np.arange(k) if which == "LM" else np.arange(s.size - k, s.size)
        at = at[::-1]  # ascending, as SciPy's ARPACK
        units = np.zeros((s.size, k))
        units[at, np.arange(k)] = 1
        u, s, vh = U @ units, s[at], (Vh.H @ units).conj().T
        record = {"method": "structure", "products": 0}
    elif solver == "arpack" and op.dtype is not None and op.dtype.char in _PLAIN:
        size = min(_basis_size(op, k, ncv, 2), least)
        u, s, vh, record = _by_gram(op, k, which, {"v0": v0, "ncv": size, "maxiter": maxiter,
                                                   "tol": tol, "rng": rng})  # fmt: skip
    else:
        return _scipy_svds(op, k, ncv, tol, which, v0, maxiter, return_singular_vectors, solver,
                           rng, options)  # fmt: skip
    if return_singular_vectors is False:
        return s
    found = (None if return_singular_vectors == "vh" else u, s,
             None if return_singular_vectors == "u" else vh)  # fmt: skip
    return Found._with(found, record)


def _scipy_svds(op: Any, k: int, *rest: Any) -> Any:
    sl = _scipy()
    names = ("ncv", "tol", "which", "v0", "maxiter", "return_singular_vectors", "solver", "rng",
             "options")  # fmt: skip
    how = {name: value for name, value in zip(names, rest, strict=True) if value is not None}
    found = sl.svds(op, k, **how)
    record = {"method": f"{how['solver']} (SciPy)"}
    return Found._with(found, record) if isinstance(found, tuple) else found


def _by_gram(op: Any, k: int, which: str, how: dict[str, Any]) -> Any:
    """Eigenvectors V of the smaller of A^H A and A A^H; then the svd of A V, as SciPy's."""
    wide = op.shape[0] < op.shape[1]
    one = op.H if wide else op  # tall
    dtype = _answers.inexact(op.dtype)
    first, second = _bound(one, dtype), _bound(one.H, dtype)
    gram = one.H @ one
    pairs = _lanczos(gram, lambda x: second(first(x)), k, which[0] + "M", **how)
    if not pairs.converged.all():
        good = pairs.converged
        raise no_convergence(
            f"No convergence ({pairs.restarts} iterations, {int(good.sum())}/{k} singular vectors "
            f"converged)", np.sqrt(np.maximum(pairs.values[good], 0)), pairs.vectors[:, good],
        )  # fmt: skip
    v = np.linalg.qr(pairs.vectors)[0]
    x, s, yh = np.linalg.svd(one @ v, full_matrices=False)
    u, s, vh = x[:, ::-1], s[::-1], (yh @ v.conj().T)[::-1]
    if wide:
        u, vh = vh.conj().T, u.conj().T
    record = {"method": "thick-restart Lanczos on A^H A", "products": 2 * pairs.products + k,
              "restarts": pairs.restarts}  # fmt: skip
    return u, s, vh, record
