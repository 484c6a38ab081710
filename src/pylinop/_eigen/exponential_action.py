"""exp(A) as an operator that makes thin products by products with A where these are cheaper.

    expm(A) --> of A without a quick form of its own: A as it is now, and a plan of products
            --> E @ X, thin X: by the plan, where that takes half the time of the dense form

Hermitian A: a Chebyshev series between the ends of the spectrum, which a few of Lanczos's steps
find (Druskin and Knizhnerman, 1989). Nothing cancels there: all its terms are below exp of the
upper end, and the error is that of eigenvectors, u |exp(A)| |x|. An eigenvalue that was not seen
makes the last term grow, which is looked at. Others: Taylor's series in steps (Al-Mohy and Higham,
2011), each of a norm up to 3.5 after the mean of the diagonal has been taken out. The sum of its
terms' sizes, over that of the result, bounds what cancels: where it is above 64 the step is halved.
So each step is that of a matrix near to A, by some roundings.

The way depends on A and the number of columns alone, never on what ran before."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, sparse_arrays
from .._base.dtypes import inexact
from .._base.kind_flags import AT_HAND, DIAGONAL, OF_PARTS, heads
from .._base.lazy_import import Later
from .._base.trampoline import run
from .._iterative.record import quiet
from .._operators.linear_operator import LinearOperator
from .._structured import dispatch, matrix_functions, operands, prices, trees
from .._structured.properties import GRAM, measured
from .._structured.questions import read_hermitian
from .._structured.scalar_function import Function
from . import eigsh as _eigsh
from . import norm_bounds

_tosparse = Later("_sparse.tosparse")

_LEAST = 100  # rows, and
_WORTH = 2e-3  # seconds of the dense form: below, it takes less than to ask
_EXP = Function("exp")
_GAIN = 0.5  # of the dense form's time that the products may take
_SPARSE = heads("few_entries")
_STEPS = (12, 24, 48, 96)  # of Lanczos, until the upper end is known
_NEAR = 2.0  # by which it may be overestimated: exp(2) roundings
_BY_VECTORS = 0.5  # eigenvectors take half of what the exponential of a general matrix does
_STRIDE = 3.5  # the norm of a step of Taylor's series
_TERMS = 40  # of one step
_CANCELS = 64.0  # sizes of terms over that of the result, at most
_CALL = 9e-6  # seconds of one term's Python (2026-11-27, beside a product of no size)
_DEEP = 64  # operators of a formula that are looked at


class _Held(NamedTuple):
    """A as it is now; ``array``: CSR, but for a diagonal beside it, or dense; None of other
    kinds."""

    op: Any
    array: Any
    beside: Any
    hermitian: bool


class _Costs(NamedTuple):
    """Seconds of a product with A, once and a column; its flops a column; seconds of the dense
    form."""

    once: float
    each: float
    flops: float
    whole: float


# -- what is held ----------------------------------------------------------------------------------


def _leaves(op: Any) -> list[Any] | None:
    """The kinds that sums, multiples and views are of; None of very many."""
    stack: list[Any] = [op]
    found: list[Any] = []
    for _ in range(_DEEP):
        if not stack:
            return found
        f = stack.pop()
        if f._by in ("sum", "scaled", "view") and f._head == f._by:
            stack += [g for g in f._operands if isinstance(g, _core.Operator)]
        else:
            found.append(f)
    return None


def _scipy_sparse() -> bool:
    try:
        import scipy.sparse  # type: ignore[import-untyped, unused-ignore] # noqa: F401
    except ImportError:
        return False
    return True


def _one_sparse(op: Any) -> tuple[Any, Any] | None:
    """(S, d), copies: A = S + diag(d) of a sum of multiples of one Sparse and diagonals; None of
    others."""
    stack, sparse, beside = [(op, op.dtype.type(1))], None, np.zeros(op.shape[0], op.dtype)
    while stack:
        f, c = stack.pop()
        if f._head == "sparse" and f._init is not None and sparse is None:
            a = sparse_arrays.matrix_of(f).asformat("csr")
            sparse = type(a)((a.data * c, a.indices.copy(), a.indptr.copy()), shape=a.shape)
        elif f._head in DIAGONAL:
            beside += c * operands.diagonal_of(f)
        elif f._head == f._by == "scaled":
            stack.append((f._operands[0], c * f._operands[1]))
        elif f._head == f._by == "sum":
            stack += [(g, c) for g in f._operands]
        elif f._head != "zeros":
            return None
    if sparse is None or sparse.dtype != op.dtype or not sparse.has_canonical_format:
        return None
    return sparse, beside


def _held(op: Any, sparse: bool) -> _Held:
    """A in memory of its own."""
    if op._head == "dense" and op._init is not None:
        a = np.array(dispatch.dense(op))
        return _Held(_core.Dense(a), a, None, bool(measured(a, "hermitian", GRAM)))
    found = _one_sparse(op) if sparse else None
    if found is not None:
        a, d = found
        whole = _core.Sparse(a) + _core.Diag(d) if d.any() else _core.Sparse(a)
        return _Held(whole, a, d, _is_hermitian(a) and not d.imag.any())
    if sparse:
        a = _tosparse.tosparse(op).copy()
        a.sum_duplicates()
        return _Held(_core.Sparse(a), a, np.zeros(a.shape[0], a.dtype), _is_hermitian(a))
    return _Held(op.copy(), None, None, bool(read_hermitian(op)))


def _is_hermitian(a: Any) -> bool:
    b = a.T.tocsr()
    same = np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)
    return np.array_equal(a.data, b.data.conj()) if same else not (a != b.conj()).nnz


def _of_hermitian(op: Any) -> bool:
    """Are its parts Hermitian, by how it is written or by their arrays? Nothing is computed."""
    while op._init is None and op._by in ("scaled", "view", "power", "inverse"):
        op = op._operands[0]
    if op._head == "lowrank" and op._init is not None:
        return op._given("V") is None
    parts = operands.factors_of(op) if op._head in OF_PARTS and op._init is not None else [op]
    for f in parts:
        plain = f._head == "dense" and f._init is not None
        if not (measured(dispatch.dense(f), "hermitian", GRAM) if plain else read_hermitian(f)):
            return False
    return True


def _reads_part(op: Any) -> bool:
    """Is it a callable, whose numbers nobody sees, or an array of which one triangle is read?"""
    return op._opaque or (op._head == "dense" and op._init is not None and op._given("assume_a"))


class _Shifted:
    """scale (A - mid I) as something that is applied."""

    def __init__(self, held: _Held, mid: Any, scale: float) -> None:
        a, number = held.array, held.op.dtype.type
        self.op, self.c, self.beside = held.op, scale, np.full(1, number(-scale * mid))
        if a is None:
            return
        self.c = 1.0
        if isinstance(a, np.ndarray):
            b = a.copy()
            b[np.diag_indices_from(b)] -= mid
            b *= scale
            self.op, self.beside = _core.Dense(b), np.zeros(1, a.dtype)
            return
        whole = type(a)((a.data * number(scale), a.indices, a.indptr), shape=a.shape)
        self.op, self.beside = _core.Sparse(whole), number(scale) * (held.beside - number(mid))

    def seen(self, conjugate: bool) -> _Shifted:
        """Of the transpose, or the adjoint."""
        found = copy.copy(self)
        found.op = self.op.H if conjugate else self.op.T
        found.beside = self.beside.conj() if conjugate else self.beside
        return found

    def __call__(self, x: Any) -> Any:
        y, d = self.op @ x, self.beside  # which the verifier may hold, so it is not written to
        if self.c != 1:
            y = y * y.real.dtype.type(self.c)
        if d.size > 1 or d[0] != 0:
            z = (d if x.ndim == 1 else d[:, None]) * x
            z += y
            return z
        return y


# -- Hermitian: Chebyshev's series -----------------------------------------------------------------


def _ritz(op: Any, dtype: Any) -> tuple[float, float] | None:
    """Ends of the spectrum of a Hermitian A, as far as Lanczos's steps show them: the lower one
    below, the upper one by at most `_NEAR` too high."""
    n, limit = op.shape[-1], config.get("memory_limit")
    start = np.random.default_rng(0).standard_normal(n).astype(dtype)
    basis = np.empty((0, n), dtype)
    w: Any = start
    a: list[float] = []
    b: list[float] = [float(np.linalg.norm(start))]
    for most in _STEPS:
        if limit is not None and 2 * most * n * dtype.itemsize > limit:
            return None
        basis = np.concatenate([basis, np.empty((min(most, n) - len(basis), n), dtype)])
        while len(a) < min(most, n):
            k = len(a)
            np.divide(w, dtype.type(b[-1]), out=basis[k])
            q = basis[: k + 1]
            w = op @ q[-1]
            c = q.conj() @ w
            a.append(float(c[-1].real))
            w = w - c @ q
            w = w - (q.conj() @ w) @ q
            b.append(float(np.linalg.norm(w)))
            if not b[-1] > 1e-6 * (abs(a[0]) + b[1]):
                break  # the space is invariant, but for rounding
        if not np.isfinite([*a, *b]).all():
            return None
        k = len(a)
        t, s = np.linalg.eigh(np.diag(a) + np.diag(b[1:k], 1) + np.diag(b[1:k], -1))
        low, high = b[-1] * abs(s[-1, 0]), b[-1] * abs(s[-1, -1])
        if high <= _NEAR:
            return float(t[0] - low), float(t[-1] + high)
        if k < most:
            break
    return None


def _coefficients(r: float, u: float) -> list[float]:
    """Those of exp(r (x - 1)) on [-1, 1], as many as count: 2 exp(-r) I_k(r), by Miller's
    recurrence downwards."""
    most = int(math.sqrt(100 * r)) + 40
    c = [0.0] * most
    above, here = 0.0, 1e-280
    for k in range(most - 1, -1, -1):
        c[k] = here
        above, here = here, above + (2 * k / r) * here if k else 0.0
        if here > 1e250:
            c = [x * 1e-250 for x in c]
            above, here = above * 1e-250, here * 1e-250
    c[0] /= 2
    whole = math.fsum(c)
    while len(c) > 2 and c[-1] <= whole * u / 4:
        c.pop()
    return [x / whole for x in c]


class _Chebyshev:
    """exp(A) X by a Chebyshev series."""

    def __init__(self, held: _Held, low: float, high: float, u: float) -> None:
        self.mid, self.r = (low + high) / 2, max((high - low) / 2, 1e-2)
        self.c, self.top, self.u = _coefficients(self.r, u), self.mid + self.r, u
        self.apply = _Shifted(held, self.mid, 2 / self.r)
        self.products = len(self.c) - 1
        self.words = f"a Chebyshev series of degree {self.products}"

    def seen(self, conjugate: bool) -> _Chebyshev:
        """Of the transpose, or the adjoint."""
        found = copy.copy(self)
        found.apply = self.apply.seen(conjugate)
        return found

    def spread(self) -> tuple[float, float]:
        """The width of the spectrum; nothing grows beyond exp(A)."""
        return 2 * self.r, 0.0

    def at(self, x: Any, times: Any) -> Any:
        """exp(t A) x for some t up to 1, of the same terms; None as below."""
        return self._summed(x, [_coefficients(t * self.r, self.u) for t in times], times)

    def __call__(self, x: Any) -> Any:
        """None where a part of the spectrum was not seen."""
        found = self._summed(x, [self.c], (1.0,))
        return None if found is None else found[0]

    def _summed(self, x: Any, series: list[list[float]], times: Any) -> Any:
        real: Any = x.real.dtype.type
        before, now = x, self.apply(x) * 0.5
        sums = [real(c[0]) * before + real(c[1]) * now for c in series]
        for j in range(2, max(map(len, series))):
            before, now = now, self.apply(now) - before
            for c, y in zip(series, sums, strict=True):
                if j < len(c):
                    y += real(c[j]) * now
        size, last = np.linalg.norm(x, axis=0), np.linalg.norm(now, axis=0)
        if not (last <= 1.5 * size).all():
            return None
        for t, y in zip(times, sums, strict=True):
            y *= np.exp(real(t * self.top))
        return sums


# -- others: Taylor's series -----------------------------------------------------------------------


def _taylor_plan(held: _Held, u: float) -> _Taylor | None:
    op, a, n = held.op, held.array, held.op.shape[-1]
    mid: Any = 0.0
    sums: Any
    if a is None:
        found = norm_bounds.shifted(op)
        if found is None:
            return None
        mid, sums = found
    elif isinstance(a, np.ndarray):
        mid, moduli = a.trace() / n, np.abs(a)
        moduli[np.diag_indices_from(moduli)] = np.abs(a.diagonal() - mid)
        sums = [moduli.sum(axis=axis) for axis in (0, 1)]
    else:
        d = a.diagonal()
        whole = d + held.beside
        mid, moduli = whole.sum() / n, abs(a)
        off = np.abs(whole - mid) - np.abs(d)
        sums = [moduli.sum(axis=axis) + off for axis in (0, 1)]
    sizes = [float(np.max(s)) * (1 + 1e-3) for s in sums]
    if not np.isfinite(sizes).all():
        return None
    return _Taylor(_Shifted(held, mid, 1.0), mid, (sizes[0], sizes[1]), u)


class _Taylor:
    """exp(A) X by steps of Taylor's series; ``sizes``: A's norms by columns, and by rows."""

    def __init__(self, apply: _Shifted, mid: Any, sizes: tuple[float, float], u: float) -> None:
        self.mid, self.u, self.apply, self.sizes = mid, u, apply, sizes
        self.size = sizes[0]
        self.steps = max(1, math.ceil(self.size / _STRIDE))
        beta, bound, terms = self.size / self.steps, 1.0, 0
        while bound > u and terms < _TERMS:
            terms += 1
            bound *= beta / terms
        self.products = self.steps * (terms + 1)
        self.words = f"{self.steps} steps of Taylor's series"

    def seen(self, conjugate: bool) -> _Taylor:
        """Of the transpose, or the adjoint."""
        mid = np.conj(self.mid) if conjugate else self.mid
        return _Taylor(self.apply.seen(conjugate), mid, self.sizes[::-1], self.u)

    def spread(self) -> tuple[float, float]:
        """Twice the norm of A less its mean, and what its exponentials may be apart."""
        size = max(self.sizes)
        return 2 * size, 2 * size

    def at(self, x: Any, times: Any) -> Any:
        """exp(t A) x for rising t; None where it overflows."""
        found: list[Any] = []
        for before, t in itertools.pairwise([0.0, *times]):
            x = self._over(x, t - before)
            if x is None:
                return None
            found.append(x)
        return found

    def __call__(self, x: Any) -> Any:
        return self._over(x, 1.0)

    def _over(self, x: Any, t: float) -> Any:
        left = max(1, math.ceil(t * self.size / _STRIDE))
        h = t / left
        while left:
            found = self._step(x, h)
            if found is not None and not np.isfinite(found).all():
                return None
            if found is None:
                left, h = 2 * left, h / 2
            else:
                x, left = found, left - 1
        return x

    def _step(self, x: Any, h: float) -> Any:
        """exp(h A) x; None where too much cancels in it."""
        real: Any = x.real.dtype.type
        y, term = x.copy(), x
        last = sizes = np.abs(x).sum(axis=0)
        whole = sizes
        for k in range(1, 2 * _TERMS):
            term = self.apply(term) * real(h / k)
            y += term
            size = np.abs(term).sum(axis=0)
            sizes = sizes + size
            if k >= 2 * h * self.size or k % 4 == 0:
                whole = np.abs(y).sum(axis=0)
                if k > h * self.size and (size + last <= self.u * whole).all():
                    break
            last = size
        else:
            return None  # the norm was no bound
        if h * self.size > 0.5 and (sizes > _CANCELS * whole).any():
            return None
        return y * np.exp(y.dtype.type(h * self.mid))


# -- the operator ----------------------------------------------------------------------------------


class Exponential(LinearOperator):
    """exp(A), whose products are made when they are asked for: of thin matrices by products with A
    where that is cheaper, else by the dense form. It is of A as it was when it was made."""

    def __init__(self, of: Any, hermitian: bool, way: Any, costs: _Costs) -> None:
        self.of, self.hermitian, self.way, self.costs = of, hermitian, way, costs
        self.once = True  # False: it is taken as a whole beside its products
        LinearOperator.__init__(self, of.dtype, of.shape)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _core.Operator.__new__(cls)

    def _whole(self) -> Any:
        """By the dense form, which is kept as that of any operator."""
        return matrix_functions.exponential(self.of)

    def price(self, columns: int) -> prices.Price:
        """Of the products with A."""
        once, each, flops, _ = self.costs
        flops *= self.way.products * columns
        seconds = self.way.products * (_CALL + once + columns * each)
        memory = 6 * columns * self.shape[0] * self.dtype.itemsize
        return prices.Price("iterative", flops, seconds, 4 * flops, memory)

    def is_by_products(self, columns: int) -> bool:
        return self.once and self.price(columns).seconds <= _GAIN * self.costs.whole

    @property
    def most(self) -> int:
        """Columns up to which products with A are taken."""
        once, each, _, whole = self.costs
        left = _GAIN * whole / self.way.products - _CALL - once
        return max(0, min(self.shape[-1], int(left / each)))

    def _explained(self, action: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """How a product goes; all else, and products by the dense form, as of that."""
        x = np.asarray(args[0]) if action == "apply" and args else np.empty(self.shape[-1])
        columns = 1 if x.ndim == 1 else x.shape[-1]
        if action == "logdet" and self.dtype.kind == "f":
            return self.of.explain("trace")
        if action != "apply" or not self.is_by_products(columns):
            return self._whole().explain(action, *args, **kwargs)
        node = trees.Node("apply", self.of)
        node.label, node.by = f"products with A: {self.way.words}", "iterative"
        node.price = self.price(columns)
        return trees.explained("apply", self, node)

    def _times(self, x: Any) -> Any:
        dtype = np.result_type(self.dtype, x.dtype)
        columns = 1 if x.ndim == 1 else x.shape[-1]
        if dtype.char in "fdFD" and x.ndim <= 2 and self.is_by_products(columns):
            found = _product(self, x.astype(dtype), columns)
            if found is not None:
                return found
        whole = self._whole()
        n = self.shape[-1]
        if x.shape == (n, n) and np.count_nonzero(x) == n and (x.diagonal() == 1).all():
            return whole.toarray().astype(dtype, copy=False)
        return whole @ x

    def _matmat(self, X: Any) -> Any:
        return self._times(X)

    def _matvec(self, x: Any) -> Any:
        return self._times(x)

    def _seen(self, conjugate: bool) -> Any:
        """Of the transpose, or the adjoint, which take as long."""
        if self.hermitian and (conjugate or self.dtype.kind == "f"):
            return self
        of = self.of.H if conjugate else self.of.T
        made = Exponential(of, self.hermitian, self.way.seen(conjugate), self.costs)
        made.once = self.once
        return made

    def _transpose(self) -> Any:
        return self._seen(False)

    def _adjoint(self) -> Any:
        return self._seen(True)

    def _rmatmat(self, X: Any) -> Any:
        return self._adjoint() @ X

    def _rmatvec(self, x: Any) -> Any:
        return self._adjoint() @ x

    def _diagonal(self, k: int) -> Any:
        return self._whole().diagonal(k)

    def _logdet(self) -> Any:
        return self.of.trace() if self.dtype.kind == "f" else self._whole().logdet()

    def _solve(self, b: Any) -> Any:
        return self._whole().solve(b)


@dispatch.one_call("expm(A) @ x")
def _product(op: Exponential, x: Any, columns: int) -> Any:
    with dispatch.step(f"products with A: {op.way.words}", op, op.price(columns)):
        if not np.isfinite(x).all():
            return None
        with quiet(), np.errstate(over="ignore", invalid="ignore"):
            y = op.way(x)
        return y if y is not None and np.isfinite(y).all() else None


def _costs(held: _Held, whole: float) -> _Costs:
    """Of one product, a term's other work included."""
    op, a, costs = held.op, held.array, _core._costs()
    n, item = op.shape[0], op.dtype.itemsize
    vectors = 6 * item * n / costs["bandwidth"]
    if a is None:
        plan = op.explain("apply")
        return _Costs(0.0, vectors + float(plan.seconds), float(plan.flops), whole)
    work = 8 if op.dtype.kind == "c" else 2
    if isinstance(a, np.ndarray):
        flops = float(work * n * n)
        once = a.nbytes / costs["bandwidth"]
        return _Costs(once, vectors + flops / costs["gemm_rate"], flops, whole)
    flops = float(work * a.nnz)
    seconds = prices.rated("", flops, (item + 4) * a.nnz, 0).seconds
    return _Costs(0.0, vectors + seconds, flops, whole)


def offered(op: Any, once: bool) -> Exponential | None:
    """exp(op) by products with op, where they are the cheaper way to one column; None elsewhere.
    ``once``: is what is asked for computed but once? If not, a product that is not cheaper than one
    with the dense form is left to that."""
    if op._opaque or op.ndim != 2 or op.dtype is None or op.shape[0] < _LEAST:
        return None
    if op.dtype.kind not in "iufc" or inexact(op.dtype).char not in "fdFD":
        return None
    op = op if op.dtype.char in "fdFD" else op.astype(inexact(op.dtype))
    leaves = _leaves(op)
    if leaves is None or any(_reads_part(f) for f in leaves):
        return None
    kinds = {f._head for f in leaves}
    dense = op._head == "dense" and op._init is not None
    sparse = kinds <= _SPARSE and not kinds <= AT_HAND and _scipy_sparse()
    whole = matrix_functions.expm._measured(op)
    if "sparse" not in kinds:
        way = trees.planned(matrix_functions.expm, op, _EXP)
        if not dense and run(_eigsh._small_parts, op) and (not way.unsure or _of_hermitian(op)):
            return None  # by structure
        whole = whole if way.unsure else way.total.seconds
    if whole < _WORTH or (dense and not once):
        return None
    with quiet():
        return _planned(op, sparse, whole)


def _planned(op: Any, sparse: bool, whole: float) -> Exponential | None:
    held = _held(op, sparse)
    u = float(np.finfo(op.dtype).eps) / 2
    way: Any = None
    if held.hermitian:
        ends = _ritz(held.op, inexact(op.dtype))
        if ends is not None and ends[1] < math.log(float(np.finfo(op.dtype).max)) - 8:
            way = _Chebyshev(held, *ends, u)
    else:
        way = _taylor_plan(held, u)
    if way is None:
        return None
    whole *= _BY_VECTORS if held.hermitian and sparse else 1
    made = Exponential(held.op, held.hermitian, way, _costs(held, whole))
    return made if made.is_by_products(1) else None
