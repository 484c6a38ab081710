"""Some eigenpairs and singular triplets: by structure, by our Lanczos, or by SciPy's ARPACK.

Structure is used where all pairs come from small parts (Kron, circulants, thin matrices, ...);
otherwise thick-restart Lanczos, which with a shift runs on the inverse by the structure of A -
sigma I; pencils and modes go to ARPACK. Our Lanczos takes some 0.6 to 1 of ARPACK's products, and
misses no eigenvalue 0 of a diagonal matrix (that of SciPy 1.17 does)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack, errors, kind_flags
from .._base.dtypes import inexact, real_of
from .._base.errors import LinAlgError
from .._base.progress import Meter
from .._iterative.scipy_api_least_squares import lsmr
from .._operators.convert import as_operator, inverse
from .._operators.parameters import written
from .._structured import dispatch, eigh_price, operands, questions, svd
from .._structured.eigenvalues_hermitian import shift_of
from .._structured.eigh import eigenbasis
from . import memory, thick_restart_lanczos

_SMALL = 1000  # rows of a part up to which its dense form is decomposed
_PLAIN = "fdFDbBhHiIlLqQ?"  # dtypes that our Lanczos computes in
_WHICH = ("LM", "LA", "SA", "SM", "BE")
_CLOSED, _JOINED = kind_flags.heads("closed_spectrum"), kind_flags.heads("joins")


class Found(tuple):  # type: ignore[type-arg]
    """A tuple like SciPy's, with ``record``, a dict that says how it was found (method, products,
    restarts, residuals)."""

    record: dict[str, Any]

    @classmethod
    def _with(cls, values: Any, record: dict[str, Any]) -> Found:
        made = cls(values)
        made.record = record
        return made


# -- by structure --


def _small_parts(op: Any) -> Any:
    """Does eigh of op come from closed forms and small dense parts?"""
    head, by = op._head, op._by if op._init is None else ""
    if op._opaque or op.ndim != 2 or op.shape[0] != op.shape[1]:
        return False
    if head in _CLOSED:
        return True
    if by in ("scaled", "view", "power", "inverse"):
        return (yield (op._operands[0],))
    if written(op, "sum"):
        found = shift_of(op)
        return False if found is None else (yield (found[0],))
    if head in _JOINED:
        for f in operands.factors_of(op):
            if f.shape[0] != f.shape[1]:
                return False
            if f.shape[0] > min(_SMALL, op.shape[0] // 2) and not (yield (f,)):
                return False
        return True
    if head == "lowrank" and op._init is not None:
        return bool(as_operator(op._given("U")).shape[-1] <= _SMALL)
    return False


def is_slower_than_lanczos(op: Any, price: Any, seconds: float, how: dict[str, Any]) -> bool:
    """Is the price of all pairs by structure above that of some pairs by Lanczos? Never for the
    values nearest to 0 without ``sigma``, for which Lanczos takes many more restarts."""
    slow = how.get("which") == "SM" and how.get("sigma") is None
    return not slow and not op._opaque and bool(price.seconds > seconds)


def _by_parts(op: Any) -> bool:
    return bool(eigh_price.direct(op, True).by == "structure")


def _is_at_hand(op: Any, k: int, which: str, sigma: Any) -> bool:
    """Is it cheaper to compute all pairs by structure than k of them by Lanczos?"""
    if op._opaque or op.shape[0] != op.shape[1] or 0 in op.shape:
        return False
    price = eigh_price.direct(op, True)
    if price.by != "structure" or k >= op.shape[0]:
        return bool(price.by == "structure")
    inner = op if sigma is None else shifted_inverse(op, sigma, None)
    seconds = eigh_price.iterative(op, k, inner).seconds
    return not is_slower_than_lanczos(op, price, seconds, {"which": which, "sigma": sigma})


def _structured(op: Any, k: int, which: str, sigma: Any) -> tuple[Any, Any, dict[str, Any]] | None:
    if not written(op, "sum") and not questions.hermitian(op):
        return None  # factors may be skew
    w, q = eigenbasis(op, "L")
    w = np.broadcast_to(w, op.shape[:1])
    order = np.argsort(w, kind="stable")
    if sigma is None:
        at = order[thick_restart_lanczos.picked(w[order], k, which)]
    else:
        with np.errstate(divide="ignore"):
            nu = 1 / (w - sigma)
        order = np.argsort(nu, kind="stable")
        at = order[thick_restart_lanczos.picked(nu[order], k, which)]
    at = at[np.argsort(w[at], kind="stable")]
    units = np.zeros((op.shape[0], k), q.dtype if q.dtype.kind in "fc" else np.float64)
    units[at, np.arange(k)] = 1
    return w[at], q @ units, {"method": "structure", "products": 0, "restarts": 0}


# -- by Lanczos --


def _basis_size(op: Any, k: int, ncv: Any, products: int = 1) -> int:
    """How many vectors the basis has: more, for fewer restarts, where a product costs more than
    keeping a vector orthogonal to them."""
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
    """SciPy's exception where SciPy is installed, else ours."""
    sl = _scipy()
    if sl is None:
        return errors.ConvergenceError(text, vectors, {"eigenvalues": values})
    return sl.ArpackNoConvergence(text, values, vectors)  # type: ignore[no-any-return]


def _lanczos(
    op: Any, apply: Any, k: int, which: str, v0: Any, ncv: Any, maxiter: Any, tol: Any, rng: Any,
    watch: Any,
) -> Any:  # fmt: skip
    """Pairs of the operator whose products `apply` gives, in op's dtype."""
    n, dtype = op.shape[0], inexact(op.dtype)
    m = int(ncv)
    if not k < m <= n and n > k:
        raise ValueError(f"ncv must be k<ncv<=n, ncv={m}")
    g = np.random.default_rng(0 if rng is None else rng)
    start = g.standard_normal(n) if v0 is None else dlpack.as_array(v0).reshape(n)
    if dtype.kind != "c" and np.iscomplexobj(start):
        raise ValueError("v0 is complex, the operator real")
    if not np.linalg.norm(start) > 0 or not np.isfinite(start).all():
        raise ValueError("v0 must be a vector of finite numbers, not all zero")
    most = 10 * n if maxiter is None else int(maxiter)
    if most <= 0:
        raise ValueError(f"maxiter must be positive, maxiter={maxiter}")
    return thick_restart_lanczos.restarted(
        apply, n, dtype, k, which, start.astype(dtype), m, most, float(tol), g, watch, v0 is None
    )


def _bound(op: Any, dtype: Any) -> Any:
    """Products with vectors, bound once where possible."""
    if op._opaque or dtype.kind not in "fc" or op.ndim != 2:
        return lambda x: np.asarray(op @ x).reshape(op.shape[0], *x.shape[1:])
    return _core._Applied(op, dtype)


def _watch(meter: Meter, method: str, each: int = 1) -> Any:
    """Reports the progress of our Lanczos, where each of its products counts as ``each`` of A's."""
    if not meter.watched:
        return None

    def tell(values: Any, residuals: Any, products: int, restart: int) -> None:
        meter.count(each * products, float(residuals.max(initial=0)))
        if meter.callback is not None:
            meter.callback(
                {"method": method, "products": each * products, "restarts": restart,
                 "values": values, "residuals": residuals}
            )  # fmt: skip

    return tell


def _ours(op: Any, k: int, sigma: Any, which: str, how: dict[str, Any], meter: Meter) -> Any:
    """(values, vectors, record) by our Lanczos, of A or of (A - sigma)^-1."""
    dtype = inexact(op.dtype)
    size = _basis_size(op, k, how["ncv"]) if sigma is None else min(2 * k + 20, op.shape[0])
    given = how["ncv"] is not None
    size = int(how["ncv"]) if given else size
    method = "thick-restart Lanczos" + ("" if sigma is None else ", shift and invert")
    made = op if sigma is None else shifted_inverse(op, sigma, None)
    how = how | {"ncv": memory.basis_within(op, op.shape[0], k, size, given, made)}
    pairs = _lanczos(op, _bound(made, dtype), k, which, **how, watch=_watch(meter, method))
    w = pairs.values
    if sigma is not None:
        with np.errstate(divide="ignore"):
            w = sigma + 1 / pairs.values
    order = np.argsort(w, kind="stable")
    w, v, good = w[order], pairs.vectors[:, order], pairs.converged[order]
    if not good.all():
        raise no_convergence(
            f"No convergence ({pairs.restarts} iterations, {int(good.sum())}/{k} eigenvectors "
            f"converged)", w[good], v[:, good],
        )  # fmt: skip
    off = _checked(op, w, v, sigma, how["tol"], pairs.scale)
    record = {"method": method, "products": pairs.products, "restarts": pairs.restarts}
    return w, v, record | {"residuals": off}


def _checked(op: Any, w: Any, v: Any, sigma: Any, tol: float, scale: float, M: Any = None) -> Any:
    """|A v - w M v| of each pair; LinAlgError where that is more than the rounding of |A|, which
    without sigma is about ``scale``."""
    av, mv = op @ v, v if M is None else M @ v
    off = np.linalg.norm(av - mv * w, axis=0)
    eps = float(np.finfo(inexact(op.dtype)).eps)
    size = np.linalg.norm(av, axis=0).max(initial=0)
    if sigma is None:
        size = max(size, scale)
    allowed = 1e3 * max(tol, eps) * max(size, eps ** (2 / 3)) * np.sqrt(op.shape[0])
    if sigma is not None or M is not None:  # the solves' accuracy is that of |A|
        allowed = max(allowed, 1e-6 * size, 1e-6)
    if not off.max(initial=0) <= allowed:
        raise LinAlgError(
            f"eigsh of {type(op).__name__} {op.shape}: |A v - w v| is {off.max():.3g} where "
            f"{allowed:.3g} is allowed: the operator is not Hermitian, or its products are not "
            f"accurate"
        )
    return off


# -- by SciPy --


def computable(op: Any, name: str) -> Any:
    """A in a dtype that SciPy's solvers compute in: integers become float64."""
    if op.dtype is not None and op.dtype.kind in "biu":
        return op.astype(np.float64)
    if op.dtype is None or op.dtype.char not in "fdFD":
        raise TypeError(
            f"{name} takes operators of integers, float32, float64, complex64 and complex128; "
            f"this {type(op).__name__} {op.shape} has another dtype"
        )
    return op


def shifted_inverse(op: Any, sigma: Any, M: Any) -> Any:
    """(A - sigma M)^-1 by its structure; if M is None, it is I."""
    real = op.dtype is None or op.dtype.kind != "c"
    sigma = complex(sigma).real if real else complex(sigma)
    return inverse(op - sigma * (_core.Identity(op.shape[0]) if M is None else M))


def no_basis(op: Any, error: Any) -> Any:
    """ARPACK's errors in our own words, except that it did not converge, which is raised as it
    is."""
    if isinstance(error, _scipy().ArpackNoConvergence):
        return error
    return LinAlgError(
        f"ARPACK found no basis for {type(op).__name__} {op.shape}: it is zero, or has products "
        f"that are not finite ({error})"
    )


class Counted:
    """Operators for SciPy's solvers whose products are counted and reported."""

    def __init__(self, meter: Meter, method: str) -> None:
        self._meter, self._method = meter, method
        self.products = 0
        self.failed: list[BaseException] = []  # what a product raised

    def __call__(self, op: Any, counts: bool = True) -> Any:
        return self._made(op, True) if op is not None and counts else op

    def watched(self, op: Any) -> Any:
        """An operator that is not counted, but keeps what its products raise."""
        return None if op is None else self._made(op, False)

    def _made(self, op: Any, counts: bool) -> Any:
        shape, dtype = op.shape, getattr(op, "dtype", None)
        made = as_operator(op)
        adjoint, failed = made.H, self.failed

        def times(x: Any) -> Any:
            y = made @ x
            if not counts:
                return y
            self.products += 1
            self._meter.count(self.products, float("nan"))
            if self._meter.callback is not None:
                self._meter.callback(
                    {"method": self._method, "products": self.products, "restarts": None,
                     "values": None, "residuals": None}
                )  # fmt: skip
            return y

        def once(product: Any) -> Any:
            """Makes callbacks raise the same error again: PROPACK goes on calling them after one
            has raised."""

            def called(x: Any) -> Any:
                if failed:
                    raise failed[0]
                try:
                    return product(x)
                except BaseException as error:
                    failed.append(error)
                    raise

            return called

        forth, back = once(times), once(lambda x: adjoint @ x)
        return _scipy().LinearOperator(
            shape, matvec=forth, matmat=forth, rmatvec=back, rmatmat=back, dtype=dtype
        )

    @contextlib.contextmanager
    def first_failure(self) -> Iterator[None]:
        """Raises what a product raised, whatever SciPy makes of it: PROPACK wraps it, lobpcg goes
        on without the product."""
        try:
            yield
        except BaseException as error:
            if not self.failed or self.failed[0] is error:
                raise
        if self.failed:
            raise self.failed[0]


def _arpack(
    op: Any, k: int, sigma: Any, which: str, how: dict[str, Any], more: dict[str, Any], meter: Meter
) -> Any:
    """SciPy's ARPACK, for pencils, modes and inverses that the user gives."""
    sl = _scipy()
    if sl is None:
        raise ImportError("eigsh with M, Minv, OPinv or mode needs SciPy: pip install scipy")
    op = computable(op, "eigsh")
    memory.arpack(op, k, how["ncv"])
    how, more = dict(how), {name: x for name, x in more.items() if x is not None}
    M = more.get("M")
    if M is not None:
        more["M"] = M = as_operator(M)
    if sigma is not None and "OPinv" not in more:
        more["OPinv"] = shifted_inverse(op, sigma, M)
    elif sigma is None and M is not None and "Minv" not in more:
        more["Minv"] = inverse(M)
    if how["v0"] is None:
        g = np.random.default_rng(0 if how["rng"] is None else how["rng"])
        how["v0"] = g.standard_normal(op.shape[0]).astype(op.dtype)
    del how["rng"]
    counted = Counted(meter, "ARPACK (SciPy)")
    if "OPinv" in more:
        more["OPinv"] = counted(more["OPinv"])
    given = counted(op, "OPinv" not in more)
    try:
        w, v = sl.eigsh(given, k, sigma=sigma, which=which, **how, **more)
    except sl.ArpackError as error:
        raise no_basis(op, error) from error
    order = np.argsort(w, kind="stable")
    w, v = w[order], v[:, order]
    scale = float(np.linalg.norm(op @ how["v0"]) / np.linalg.norm(how["v0"]))
    off = _checked(op, w, v, sigma, how["tol"], scale, M)
    record = {"method": "ARPACK (SciPy)", "products": counted.products, "restarts": None}
    return w, v, record | {"residuals": off}


def eigsh(
    A: Any, k: int, sigma: Any, which: str, vectors: bool, how: dict[str, Any],
    more: dict[str, Any], meter: Meter, structured: bool = True,
) -> Any:  # fmt: skip
    """See `pylinop.eigsh`; without ``structured`` by Lanczos, whatever A is."""
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
    special = any(more[name] is not None for name in ("M", "Minv", "OPinv"))
    found = None
    if special or more["mode"] != "normal":
        found = _arpack(op, k, sigma, which, how, more, meter)
    elif op.dtype is None or op.dtype.char not in _PLAIN:
        computable(op, "eigsh")  # which says why it cannot
    elif k <= n:
        if structured and _is_at_hand(op, k, which, sigma):
            found = _structured(op, k, which, sigma)
        if found is None and k >= n and not isinstance(A, _core.Operator):
            found = _all_pairs(op, k, which, sigma)
    if found is None and k >= n:
        raise TypeError(
            f"Cannot use eigsh for an operator with k >= N (k={k}, N={n}): use pl.eigh(A)"
        )
    if found is None:
        try:
            found = _ours(op, k, sigma, which, how, meter)
        except (errors.ConvergenceError, RuntimeError) as error:
            words = ("ConvergenceError", "ArpackNoConvergence")
            if not structured or type(error).__name__ not in words or not _by_parts(op):
                raise
            found = _structured(op, k, which, sigma)  # dearer, but sure
            if found is None:
                raise
    w, v, record = found
    real = real_of(op.dtype)
    w = np.asarray(w).astype(real, copy=False)
    if not vectors:
        return w
    v = np.asarray(v).astype(inexact(op.dtype), copy=False)
    return Found._with((w, v), {"residuals": None} | record)


def _all_pairs(op: Any, k: int, which: str, sigma: Any) -> Any:
    """All pairs of an array, where k is the number of rows: SciPy takes eigh."""
    w, v = np.linalg.eigh(dispatch.dense(op, 4.6))
    at = np.sort(thick_restart_lanczos.picked(w, min(k, w.size), which))
    return w[at], v[:, at], {"method": "eigh", "products": 0, "restarts": 0}


# -- singular triplets --


def _thin(op: Any) -> bool:
    """Is its svd cheap, as of a low rank, a diagonal, a Kron of small factors?"""
    if op._opaque or op.ndim != 2:
        return False
    if op._head == "lowrank" and op._init is not None:
        return bool(as_operator(op._given("U")).shape[-1] <= _SMALL)
    if op._head == "kron" and op._init is not None:
        return all(max(f.shape) <= min(_SMALL, max(op.shape) // 2) for f in operands.factors_of(op))
    row = svd.singular.row_of(op) if op._head in _CLOSED else None
    return row is not None and svd.singular.allows(row, op, None, True)


def svds(
    A: Any, k: int, which: str, vectors: Any, solver: str, options: Any, how: dict[str, Any],
    meter: Meter,
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
    if not any(vectors is x or vectors == x for x in words):
        raise ValueError(f"`return_singular_vectors` must be in {words}.")
    record: dict[str, Any]
    if solver == "arpack" and _thin(op):
        U, s, Vh = svd.descending(op, False, False)
        at = np.arange(k) if which == "LM" else np.arange(s.size - k, s.size)
        at = at[::-1]  # ascending, as SciPy's ARPACK
        units = np.zeros((s.size, k))
        units[at, np.arange(k)] = 1
        u, s, vh = U @ units, s[at], (Vh.H @ units).conj().T
        record = {"method": "structure", "products": 0}
    elif solver == "arpack" and op.dtype is not None and op.dtype.char in _PLAIN:
        size = min(_basis_size(op, k, how["ncv"], 2), least)
        sides = (3 * k + 2) * max(op.shape) * inexact(op.dtype).itemsize
        size = memory.basis_within(op, least, k, size, how["ncv"] is not None, op, sides)
        u, s, vh, record = _by_gram(op, k, which, how | {"ncv": size}, meter)
    else:
        how = how | {"which": which, "solver": solver, "options": options}
        return _scipy_svds(op, k, how | {"return_singular_vectors": vectors}, meter)
    if vectors is False:
        return s
    found = (None if vectors == "vh" else u, s, None if vectors == "u" else vh)
    return Found._with(found, record)


def _scipy_svds(op: Any, k: int, how: dict[str, Any], meter: Meter) -> Any:
    sl = _scipy()
    if sl is None:
        raise ImportError(f"svds with solver={how['solver']!r} needs SciPy: pip install scipy")
    counted = Counted(meter, f"{how['solver']} (SciPy)")
    given = {name: value for name, value in how.items() if value is not None}
    with counted.first_failure():
        found = sl.svds(counted(computable(op, "svds")), k, **given)
    record = {"method": f"{how['solver']} (SciPy)", "products": counted.products}
    return Found._with(found, record) if isinstance(found, tuple) else found


def _left(one: Any, u: Any, s: Any, v: Any) -> Any:
    """(u, |A^H u - v s|): left vectors of a tall A for which A v = u s is known.

    Where s is only rounding, they are arbitrary unit vectors so far, and A^H u is not v s: they are
    drawn anew, and their part in the range of A is removed by least squares."""
    eps = float(np.finfo(u.dtype).eps)
    norm = float(np.linalg.norm(one @ np.ones(one.shape[1], u.dtype))) / math.sqrt(one.shape[1])
    norm = max(float(s.max(initial=0)), norm)
    allowed = math.sqrt(eps) * norm
    off = np.linalg.norm(one.H @ u - v * s, axis=0)
    bad = off > allowed
    if bad.any():
        rng, others = np.random.default_rng(0), u[:, ~bad]
        for _ in range(int(bad.sum())):
            x = rng.standard_normal(u.shape[0]).astype(u.dtype)
            for _ in range(2):  # the second takes away what rounding left
                x = x - one @ lsmr(one, x, atol=eps, btol=eps, conlim=0)[0].astype(u.dtype)
                x = x - others @ (others.conj().T @ x)
                x = x / np.linalg.norm(x)
            others = np.column_stack([others, x])
        u = u.copy()
        u[:, bad] = others[:, -int(bad.sum()) :]
        off = np.linalg.norm(one.H @ u - v * s, axis=0)
    if not off.max(initial=0) <= 1e3 * allowed:
        raise LinAlgError(
            f"svds of {type(one).__name__} {one.shape}: |A^H u - v s| is {off.max():.3g} where "
            f"{1e3 * allowed:.3g} is allowed: a singular value of 0 has no accurate vector here"
        )
    return u, off


def _by_gram(op: Any, k: int, which: str, how: dict[str, Any], meter: Meter) -> Any:
    """Eigenvectors V of the smaller of A^H A and A A^H, then the svd of A V, as SciPy does it."""
    wide = op.shape[0] < op.shape[1]
    one = op.H if wide else op  # tall
    dtype = inexact(op.dtype)
    first, second = _bound(one, dtype), _bound(one.H, dtype)
    gram = one.H @ one
    method = "thick-restart Lanczos on A^H A"
    how = how | {"watch": _watch(meter, method, 2)}
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
    u, residuals = _left(one, u, s, vh.conj().T)
    if wide:
        u, vh = vh.conj().T, u.conj().T
    record = {"method": method, "products": 2 * pairs.products + k,
              "restarts": pairs.restarts, "residuals": residuals}  # fmt: skip
    return u, s, vh, record
