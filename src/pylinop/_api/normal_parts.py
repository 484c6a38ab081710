"""What `MultivariateNormal` is made of: its matrix, looked at; indices; residuals as columns."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from .. import _core
from .._base import config, dlpack, errors, kind_flags
from .._base.checks import is_lazy, square
from .._base.dtypes import inexact
from .._operators.convert import as_operator
from .._structured.cholesky import element_text
from .factorized import Factorized
from .norms import eigvalsh


def without_noise() -> NotImplementedError:
    """The error of H x seen exactly where the precision is given."""
    return NotImplementedError(
        "observations H x without noise, of a distribution given by its precision: the "
        "result has no precision. Give cov=, or noise="
    )


# What scipy.stats, torch and textbooks call it, and what has it here.
_CALLED = {
    "conditional": "d.condition(y, index)",
    "covariance": "d.cov",
    "covariance_matrix": "d.cov",
    "fit": "pl.MultivariateNormal(x.mean(axis=0), np.cov(x.T))",
    "log_prob": "d.logpdf(x)",
    "loc": "d.mean",
    "mu": "d.mean",
    "posterior": "d.condition(y, H=H, noise=r)",
    "precision_matrix": "d.precision",
    "prob": "d.pdf(x)",
    "rsample": "d.sample(size, rng)",
    "stddev": "d.std()",
    "variance": "d.var()",
}


def elsewhere(name: str, known: Iterable[str]) -> NoReturn:
    """The error of an attribute that a distribution does not have."""
    text = f"'MultivariateNormal' object has no attribute {name!r}"
    if name in _CALLED:
        text += f": write {_CALLED[name]}"
    elif not name.startswith("_"):
        text += config.near(name, [k for k in known if not k.startswith("_")])
    raise AttributeError(text, name=name)


_NOT = "a {what} of a normal distribution must be positive definite"


class Held(Factorized):
    """A factor that is made when it is first asked for: a distribution may never need one."""

    def __init__(self, op: Any, what: str) -> None:
        self._what, self._seen = what, False
        super().__init__(assembled(op))

    def __reduce__(self) -> Any:
        return Held, (self.A, self._what)

    def _try(self) -> None:
        pass

    def definite(self) -> Held:
        """The factor, of a matrix that is positive definite as far as a factor shows. Looked at
        once: the sign of the determinant, a leaf's diagonal, one quadratic form of random signs;
        all eigenvalues under ``pl.config(check="full")``."""
        if not self._seen and 0 not in self.shape:
            with config.config(not_definite="raise"):
                self._look()
        self._seen = True
        return self

    def _look(self) -> None:
        A: Any = self.A
        found = A.diagonal() if A._init is not None else np.ones(1)
        if (bad := np.isnan(found).any(axis=-1)).any():
            raise _unusable(self._what, "holds NaN", A, ValueError, bad)
        if (bad := (found.real <= 0).any(axis=-1)).any():
            least = found.real[_first(bad)].min()
            raise _unusable(self._what, f"has {least:.3g} on its diagonal", A, bad=bad)
        if config.get("check") == "full" and (bad := (w := eigvalsh(A)).min(axis=-1) <= 0).any():
            raise _unusable(
                self._what, f"has the eigenvalue {w[_first(bad)].min():.3g}", A, bad=bad
            )
        try:
            sign, size = self.slogdet()
        except errors.LinAlgError as error:
            held = A.ndim > 2 and A._head == "dense" and A._init is not None
            bad = np.linalg.eigvalsh(A._given("a")).min(axis=-1) <= 0 if held else False
            raise _unusable(self._what, "is not", A, bad=bad) from error
        if (bad := np.isnan(size)).any():
            raise _unusable(self._what, "holds NaN", A, ValueError, bad)
        if (bad := np.real(sign) <= 0).any():
            raise _unusable(self._what, "has a determinant that is not positive", A, bad=bad)
        z = np.random.default_rng(7).choice([-1.0, 1.0], self.shape[-1])
        if (bad := ~(np.real(self.inv_quad(z)) > 0)).any():
            raise _unusable(self._what, "has a negative quadratic form", A, bad=bad)


def _first(bad: Any) -> tuple[int, ...]:
    """The position of the first True."""
    return tuple(int(i) for i in np.argwhere(bad)[0]) if np.ndim(bad) else ()


def _unusable(
    what: str, has: str, op: Any, kind: Any = errors.LinAlgError, bad: Any = False
) -> Exception:
    """The error; of a batch it names the first element of the ``bad`` ones."""
    which = element_text(bad) if np.any(bad) else ""
    text = f"{_NOT.format(what=what)}, and this one{which} {has}"
    made: Exception = kind(f"{text}\n  in: {errors.describe(op)}{errors.built(op)}")
    return made


def not_positive(what: str, op: Any) -> NoReturn:
    """The error of a quadratic form that came out negative."""
    raise _unusable(what, "has a negative quadratic form", op)


def matrix_of(name: str, x: Any, mean: Any) -> Any:
    """A covariance or precision as an operator or LazyArray: numbers are multiples of the
    identity, vectors diagonals, arrays are taken to be positive definite."""
    if is_lazy(x):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"{name} must be a square matrix, got a LazyArray of shape {x.shape}")
        return x
    if isinstance(x, _core.Operator) or hasattr(x, "tocsr"):
        op = as_operator(x)
        if op._head == "dense" and op._init is not None and op._given("assume_a") is None:
            return _array(name, op._given("a"))
        return square(op)
    if hasattr(x, "covariance") and hasattr(x, "log_pdet"):  # scipy.stats.Covariance
        x = np.linalg.inv(x.covariance) if name == "precision" else x.covariance
    a = dlpack.as_array(x)
    if a.ndim == 0:
        if not a > 0:
            raise ValueError(f"{name} must be positive, got {a[()]!r}")
        return a[()] * _core.Identity(np.shape(mean)[-1] if np.ndim(mean) else 1)
    return _core.Diag(a) if a.ndim == 1 else _array(name, a)


def _array(name: str, a: Any) -> Any:
    """An array, which must be Hermitian, as an operator that is positive definite."""
    a = np.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} must be a square matrix, got an array of shape {a.shape}")
    bad = ~np.isfinite(a)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite, got {a[at]} at {at}")
    off = np.abs(a - np.conj(np.swapaxes(a, -1, -2)))
    dtype = inexact(a.dtype)
    if a.size and off.max() > np.finfo(dtype).eps ** 0.5 * np.abs(a).max():
        i = np.unravel_index(off.argmax(), off.shape)
        at, to = (tuple(int(k) for k in (*i[:-2], *last)) for last in (i[-2:], i[:-3:-1]))
        raise ValueError(
            f"{name} must be symmetric (Hermitian): entry {at} is {a[at]}, entry {to} is {a[to]}"
        )
    return _core.Dense(a, "pos")


_ONE = kind_flags.heads("one_entry")
_WIDE, _LEAST = 40, 200  # entries a row, and rows, of what is assembled


def _width(op: Any) -> float:
    """Entries a row, at most; inf where that is not seen from the kinds. Of low expressions."""
    head, below = op._head, [o for o in op._operands if isinstance(o, _core.Operator)]
    if op._init is not None:
        below = [as_operator(o) for o in op._init if isinstance(o, _core.Operator)]
    if head in _ONE or head == "zeros":
        return 1
    if head == "tridiagonal":
        return 3
    if head == "dense":
        return float(max(op.shape))
    if head == "banded":
        return float(sum(op._given("l_and_u")) + 1)
    if head == "sparse" and op._init is not None:
        S = op.tosparse()
        return float(S.nnz / max(1, min(S.shape)))
    if head in ("scaled", "view") and below:
        return _width(below[0])
    if head == "sum":
        return float(sum(map(_width, below)))
    if head in ("prod", "kron"):
        return float(np.prod([_width(o) for o in below]))
    if head == "blockdiag":
        return max(map(_width, below), default=0.0)
    return np.inf


def assembled(op: Any) -> Any:
    """Sums and products of matrices with few entries a row as one band or sparse matrix, positive
    definite: solves, determinants, diagonals of the inverse and roots have one factor then."""
    inner = op
    while inner._head == "view" and inner._init is None:
        inner = inner._operands[0]
    if inner._head not in ("sum", "prod") or op.ndim != 2 or op.shape[-1] < _LEAST:
        return op
    if sum(1 for _ in errors.parts(op, 301)) > 300 or not _width(op) <= _WIDE:
        return op
    S = op.tosparse("coo")
    S.sum_duplicates()
    w = int(np.abs(S.row - S.col).max(initial=0))
    if w > _WIDE:
        return _core.Sparse(S.tocsr())
    ab = np.zeros((2 * w + 1, op.shape[-1]), inexact(S.dtype))
    ab[w + S.row - S.col, S.col] = S.data
    return _core.Banded((w, w), ab, "pos")


def information(prior: Any, H: Any, weigh: Held) -> Any:
    """prior + H^H R^-1 H, as an array where H is one and is not wide: it is no larger than H."""
    R: Any = weigh.A
    scaled = R._head == "scaled" and R._operands[0]._head == "identity"
    if scaled or R._head == "identity":
        c = R._operands[1] if scaled else 1
        more = (1 / np.asarray(c)[()]) * (H.H @ H)
    elif R._head == "diag" and R._init is not None:
        more = H.H @ _core.Diag(1 / R.diagonal()) @ H
    else:
        more = H.H @ weigh.inv() @ H
    if H._head == "dense" and H.shape[0] >= H.shape[1]:
        whole = more.toarray() + prior.toarray()
        return _core.Dense((whole + np.conj(whole.T)) / 2, "pos")
    return prior + more


def mean_of(mean: Any, matrix: Any) -> Any:
    """The mean as an array (..., n) or a LazyArray."""
    n, batch = matrix.shape[-1], matrix.shape[:-2]
    if is_lazy(mean):
        m = mean
    else:
        m = np.zeros(n) if mean is None else dlpack.as_array(mean)
        if m.dtype.kind not in "biufc":
            raise TypeError(f"mean of dtype {m.dtype}: numbers are taken")
        m = dlpack.immutable_copy(
            np.broadcast_to(m, (n,)) if m.ndim == 0 else m.astype(inexact(m.dtype), copy=False)
        )
    if m.ndim < 1 or m.shape[-1] != n:
        raise ValueError(f"mean of shape {m.shape} does not fit a matrix of shape {matrix.shape}")
    if batch and m.shape[:-1] not in ((), batch):
        raise ValueError(
            f"means of shape {m.shape} do not fit matrices of shape {matrix.shape}: one mean, or "
            f"means of shape {(*batch, n)}"
        )
    return m


def indices(index: Any, n: int, what: str = "index") -> Any:
    """Integers in [0, n), each once, of an integer, a slice, integers or a mask."""
    if isinstance(index, slice):
        return np.arange(n)[index]
    i = np.asarray(index)
    if i.dtype == bool:
        if i.shape != (n,):
            raise IndexError(f"{what}: a mask must have shape ({n},), got {i.shape}")
        return np.flatnonzero(i)
    if i.ndim == 0:
        i = np.asarray([operator.index(index)])
    if i.ndim != 1 or (i.dtype.kind not in "iu" and i.size):
        raise TypeError(f"{what} must be integers, a slice or a mask, got {index!r}")
    i = i.astype(np.int64)
    if ((i < -n) | (i >= n)).any():
        far = i[(i < -n) | (i >= n)][0]
        raise IndexError(f"{what} {far} is out of bounds for a distribution of dimension {n}")
    i = np.where(i < 0, i + n, i)
    if len(np.unique(i)) < len(i):
        raise ValueError(f"{what} must name each entry once, got {index!r}")
    return i


def others(i: Any, n: int) -> Any:
    """The entries that the indices leave, in order."""
    rest = np.ones(n, bool)
    rest[i] = False
    return np.flatnonzero(rest)


def block_of(A: Any, rows: Any, columns: Any) -> Any:
    """A block of one matrix as an operator. What is cut out at random has no structure: it is
    taken out of arrays at once."""
    found = A[np.ix_(rows, columns)]
    if np.array_equal(rows, columns) and found._head == "dense":
        return _core.Dense(found.toarray(), "pos")
    return found


def observed(y: Any, m: int) -> Any:
    """Observations as an array (..., m) of finite numbers."""
    a = dlpack.as_array(y)
    a = a.reshape(1) if a.ndim == 0 and m == 1 else a
    if a.ndim < 1 or a.shape[-1] != m:
        raise ValueError(f"y must have shape ({m},) or (..., {m}), got {a.shape}")
    bad = ~np.isfinite(a)
    if bad.any():
        at = int(np.argwhere(bad)[0, -1])
        raise ValueError(
            f"y must be finite: {int(bad.sum())} values are not, the first at {at}. Leave missing "
            "values out: seen = np.flatnonzero(np.isfinite(y)), condition(y[seen], index=seen)"
        )
    return a.astype(inexact(a.dtype), copy=False)


def noise_of(noise: Any, m: int) -> Any:
    """The covariance of the noise of m observations."""
    R = matrix_of("noise", noise, np.zeros(m))
    if R.shape != (m, m):
        raise ValueError(
            f"noise must be a variance, {m} variances or a covariance of shape {(m, m)}, got "
            f"shape {np.shape(noise)}"
        )
    return R


def as_columns(r: Any, batch: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Residuals (..., n) as columns (*batch, n, k), and the leading shape that the k stand for."""
    n, d = r.shape[-1], len(batch)
    full = np.broadcast_shapes(r.shape[:-1], batch)
    lead = full[: len(full) - d]
    r = np.broadcast_to(r, (*full, n))
    flat = r.reshape(-1 if 0 not in full[d:] else 0, *batch, n) if d else r.reshape(-1, n)
    return np.moveaxis(flat, 0, -1), lead
