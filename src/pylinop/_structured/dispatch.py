"""Questions about operators that have immediate answers: singular values, norms, condition numbers,
Hermitian eigenvalues, pseudo-inverses.

A question is a table: it has a row for each head that answers by structure; all others go by NumPy
on the dense form. A row that asks the same question of an operand yields the request, so that no
expression is too deep. This module has the questions, with the rows of composites and diagonals;
the rows of the other kinds are in singular_values.py, eigenvalues_hermitian.py, norms.py and
pinv.py."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, memory, multiples
from .._base.dtypes import TRANSPOSED, inexact, real_of
from .._base.trampoline import run
from .._fallback import interpreter
from .._operators import parameters
from . import result_cache

if TYPE_CHECKING:
    from .._base.type_variables import Registered

_LITTLE = 1 << 14  # entries up to which an answer joined from those of factors is cached too
_SMALL = 144  # entries up to which LAPACK's spectra are as quick as a look into the cache

# -- operands --


def tolerance_of(name: str, value: Any) -> Any:
    """A user's tolerance, which must be numbers, as an array."""
    a = np.asarray(value)
    if a.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a number or an array of such, got {value!r}")
    return a


def keep_within(op: Any, arrays: Any, *args: Any) -> None:
    """Raises where the dense form and so many arrays of op's size, as LAPACK needs them, would pass
    the memory limit, if one is set; NumPy computes in double precision. ``arrays`` may be a
    function of (m, n, *args)."""
    limit = config.get("memory_limit")
    if limit is None or 0 in op.shape:
        return
    if callable(arrays):
        arrays = arrays(*op.shape[-2:], *args)
    dtype = inexact(op.dtype)
    own = op.size * dtype.itemsize
    wide = np.result_type(dtype, np.float64).itemsize
    if wide > dtype.itemsize:
        arrays += 1  # the cast
    if op._head == "dense" and op._init is not None and dtype == op.dtype:
        own = 0
    needed = own + int(arrays * op.size * wide)
    if needed > limit:
        raise memory.beyond(op, needed, f"{own:,} of them for the dense form")


def dense(op: Any, arrays: float = 0.0) -> Any:
    """The dense form for NumPy; integers become float64 at the leaves already, as in solves.

    Warns when it is large, and raises when there is not enough memory for it and for so many
    ``arrays`` more, as in `keep_within`."""
    if arrays:
        keep_within(op, arrays)
    op = parameters.declared(op)
    if op._head == "dense" and op._init is not None:
        a, assumed = op._given("a", "assume_a")
        triangle = {"lower triangular": np.tril, "upper triangular": np.triu}.get(assumed)
        a = np.asarray(a)
        a = a.astype(np.float64) if a.dtype.kind in "biu" else a
        return triangle(a) if triangle else a
    announce(op)
    if op.dtype is None or op.dtype.kind not in "biu":
        return interpreter.toarray(op)
    if op._opaque or op._head in ("identity", "zeros", "selection", "sparse"):
        return interpreter.toarray(op).astype(np.float64)
    return interpreter.toarray(op @ _core.Identity(op.shape[-1], np.float64))


def small_dense(op: Any) -> Any:
    """The array of a Dense so small that its spectra are computed at once, without a look into the
    cache; None for all others."""
    if op._head != "dense" or op._init is None or not 0 < op.size <= _SMALL:
        return None
    a, assumed = op._given("a", "assume_a")
    return a if assumed is None and type(a) is np.ndarray and a.dtype.char in "fdFD" else None


def _is_put_together(op: Any) -> Any:
    """Are answers about it cached as a whole? They are for a Kron or BlockDiag so small that making
    the answer says nothing about dense forms, which an answer from the cache would not repeat."""
    if op._head not in ("kron", "blockdiag") or op.size > _LITTLE or op.dtype is None:
        return False
    bytes_ = op.size * inexact(op.dtype).itemsize
    return config.get("memory_limit") is None and bytes_ <= config.get("warn_limit")


def announce(op: Any) -> None:
    """Warns that the dense form is needed, where it is large."""
    if op._head != "dense" or op._init is None:
        memory.materialising(op, op.size * inexact(op.dtype).itemsize, False)


def diagonal_of(op: Any) -> Any:
    """The main diagonal of a Diag or Identity, inexact."""
    if op.dtype.kind not in "biu":
        return op.diagonal()
    if op._init is None and op._head == "diag":
        op = op @ _core.Diag(np.ones(op.shape[-1]))
    return op.diagonal().astype(np.float64)


def within(op: Any) -> Any:
    """The operand of a multiple or a view, in the precision of the whole operator."""
    return _as_precise(op._operands[0], op)


def _as_precise(f: Any, op: Any) -> Any:
    real = real_of(op.dtype)
    if f.dtype is None or real_of(f.dtype).itemsize >= real.itemsize:
        return f
    dtype = np.result_type(f.dtype, real)
    if f._init is None and f._head == "diag":
        return f @ _core.Diag(np.ones(f.shape[-1], dtype))
    return f.astype(dtype)


def modulus(c: Any) -> float:
    return abs(complex(c))


def _view(op: Any, mode: int) -> Any:
    return _core._build("view", op, None, mode)


def factors_of(op: Any) -> list[Any]:
    """The factors of a Kron or the blocks of a BlockDiag, also of one that products, views,
    inverses or slices closed to."""
    return [_as_precise(f, op) for f in parameters.factors(op)]


def blocks_of(op: Any) -> list[list[Any]]:
    """The rows of a Block, likewise."""
    return [[_as_precise(block, op) for block in row] for row in op._given("blocks")]


QUESTIONS: dict[str, Question] = {}  # those with a name, for docs/factorisations.md


class Question:
    """One question about operators: ``rows`` by head, ``dense`` for all others.

    A question with a ``name``, that of its function, is in the printed table of algorithms and
    costs: ``how`` and ``cost`` describe the dense form's answer, and each row has its own.

    ``arrays`` says how many arrays of m n entries the dense form's answer takes at most beside the
    dense form, including its result (measured 2026-11); it may be a function of (m, n, *args).

    With ``kept``, a name or a function that makes a name from the arguments, the dense form's
    answers are cached between calls, and so are those of rows that say so. With ``whole``,
    ``dense`` is called with (array, *args, op). ``plans`` is a function of (op, *args) that answers
    from the factor that plans keep; it returns NotImplemented where they keep none."""

    def __init__(
        self,
        dense: Callable[..., Any],
        name: str = "",
        how: str = "",
        cost: str = "",
        kept: Any = "",
        whole: bool = False,
        plans: Callable[..., Any] | None = None,
        arrays: Any = 1.5,
    ) -> None:
        self.rows: dict[str, Callable[..., Any]] = {}
        self.kept_rows: set[Callable[..., Any]] = set()
        self.dense, self.arrays = dense, arrays
        self.kept, self.whole, self.plans = kept, whole, plans
        self.texts: dict[str, tuple[str, str]] = {}
        self.text = (how, cost)
        self.name = name
        if name:
            QUESTIONS[name] = self

    def row(
        self, *heads: str, how: str = "", cost: str = "", kept: bool = False
    ) -> Callable[[Registered], Registered]:
        """Registers an answer: a function of (op, *args), or a generator that yields
        (operand, *args) and is sent its answer; NotImplemented sends op to the dense form."""

        def add(answer: Registered) -> Registered:
            if kept:  # of a function, not of a generator
                self.kept_rows.add(answer)
            self.rows.update(dict.fromkeys(heads, answer))
            self.texts.update(dict.fromkeys(heads, (how, cost)))
            return answer

        return add

    def _row_of(self, op: Any) -> Any:
        """The row that answers. A view or multiple uses the row "view" or "scaled", whatever kind
        it closed to (but Diag, Identity, Zeros and Kron); a closed inverse uses the row
        "inverse"."""
        by = op._by if op._init is None else ""
        if by in ("view", "scaled") and op._head not in ("diag", "identity", "zeros", "kron"):
            return self.rows.get(by)
        if by == "inverse" and op._head in ("view", "scaled"):
            return self.rows.get(by)
        return self.rows.get(op._head)

    def _steps(self, op: Any, *args: Any) -> Generator[Any, Any, Any]:
        op = parameters.declared(op)
        row = self._row_of(op)
        if row is not None and 0 not in op.shape[-2:]:
            if row in self.kept_rows:
                found = self._keep(op, args, lambda: row(op, *args), lambda: None)
            else:
                found = row(op, *args)
            if type(found) is types.GeneratorType:  # isinstance would ask operators for __class__
                found = yield from found
            if found is not NotImplemented:
                return found
        return self.of_dense(op, *args)

    def _keep(
        self, op: Any, args: tuple[Any, ...], make: Callable[[], Any], announce: Callable[[], None]
    ) -> Any:
        name = self.kept(*args) if callable(self.kept) else self.kept
        word = result_cache.word_of(name, () if callable(self.kept) else args) if name else None
        if word is None or 0 in op.shape:
            return make()
        return result_cache.answer(word, op, make, announce)

    def of_dense(self, op: Any, *args: Any, array: Any = None) -> Any:
        """The answer of the dense form, which may be cached."""

        def make() -> Any:
            if self.plans and array is None:
                found = self.plans(op, *args)
                if found is not NotImplemented:
                    return found
            keep_within(op, self.arrays, *args)
            self._tell_time(op)
            a = dense(op) if array is None else array
            return self.dense(a, *args, op) if self.whole else self.dense(a, *args)

        return self._keep(op, args, make, lambda: announce(op))

    def _tell_time(self, op: Any) -> None:
        """Warns of an answer that takes long."""
        *batch, m, n = op.shape
        cubes = memory.CUBES.get(self.name, 0) * max(m, n) * min(m, n) ** 2 * math.prod(batch)
        if cubes < 1e10:
            return
        dtype = inexact(op.dtype)
        seconds = cubes * (4 if dtype.kind == "c" else 1) / _core._costs()["gemm_rate"]
        arrays = self.arrays if not callable(self.arrays) else 2
        memory.slow(op, seconds, int((1 + arrays) * op.size * dtype.itemsize), -1, self.name)

    def __call__(self, op: Any, *args: Any) -> Any:
        if config.get("check") == "full" and not op._opaque:
            op @ np.zeros(op.shape[-1], op.dtype)  # tests the assumptions about its parts
        if _is_put_together(op):
            return self._keep(op, args, lambda: run(self._steps, op, *args), lambda: None)
        return run(self._steps, op, *args)


# -- singular values --


def outer(a: Any, b: Any) -> Any:
    """All products of an element of a and an element of b, in a row."""
    both = a[..., :, None] * b[..., None, :]
    return both.reshape(*both.shape[:-2], a.shape[-1] * b.shape[-1])


svdvals = Question(
    lambda a: np.linalg.svdvals(a),
    "svdvals",
    how="LAPACK's gesdd",
    cost="4 m n^2",
    kept="svdvals",
)


@svdvals.row("diag", "identity", how="moduli, sorted", cost="O(n log n)")
def _(op: Any) -> Any:
    return np.sort(np.abs(diagonal_of(op)), axis=-1)[..., ::-1]


@svdvals.row("zeros", how="zeros", cost="O(n)")
def _(op: Any) -> Any:
    return np.zeros((*op.shape[:-2], min(op.shape[-2:])), real_of(op.dtype))


@svdvals.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield (within(op),))


@svdvals.row("view", how="A's", cost="A's")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@svdvals.row("kron", how="all products of the factors', sorted", cost="the factors', n log n")
def _(op: Any) -> Generator[Any, Any, Any]:
    k = min(op.shape[-2:])
    memory.materialising(op, k * real_of(op.dtype).itemsize, False)
    s = np.ones(1)
    for f in factors_of(op):
        s = outer(s, (yield (f,)))
    rest = np.zeros((*s.shape[:-1], k - s.shape[-1]))  # tall and wide factors together
    return np.concatenate([np.sort(s, axis=-1)[..., ::-1], rest], axis=-1)


# -- norms --

ORDERS = ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def _norm_of_array(a: Any, ord: Any) -> Any:
    """NumPy's norm; where only its squares leave the range, of the array scaled to one."""
    with np.errstate(over="ignore", under="ignore"):
        if ord == "fro" and a.ndim == 2:
            found = np.linalg.norm(a)  # without an array of squares
        else:
            found = np.linalg.matrix_norm(a, ord=ord)
    if ord != "fro" or not a.size or (np.isfinite(found) & (found > 0)).all():
        return found
    if a.dtype.kind == "c":
        size = np.abs(a).max(axis=(-2, -1), keepdims=True)
    else:  # without another array
        size = np.maximum(a.max((-2, -1), keepdims=True), -a.min((-2, -1), keepdims=True))
    if not size.any():
        return found
    scale = np.where(np.isfinite(size) & (size > 0), size, 1)
    found = scale[..., 0, 0] * np.linalg.matrix_norm(a / scale, ord=ord)
    return np.where(np.isposinf(size[..., 0, 0]), size[..., 0, 0], found)[()]


norm = Question(
    _norm_of_array,
    "matrix_norm",
    how="from all elements, 2, -2 and nuc by gesdd",
    cost="m n, or 4 m n^2",
    kept=lambda ord: f"norm {ord}" if ord in (2, -2, "nuc") else "",
)


def _turned(ord: Any, mode: int) -> Any:
    """The order of the transpose's norm that equals this one."""
    other = {1: np.inf, np.inf: 1, -1: -np.inf, -np.inf: -1}
    return other.get(ord, ord) if mode & TRANSPOSED else ord


def norm_of_values(s: Any, ord: Any) -> Any:
    """The norm of diag(s), s not negative."""
    if ord == "fro":
        return np.linalg.norm(s, axis=-1)
    if ord == "nuc":
        return s.sum(axis=-1)
    return s.max(axis=-1) if ord > 0 else s.min(axis=-1)


@norm.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, ord: Any) -> Any:
    return norm_of_values(np.abs(diagonal_of(op)), ord)


@norm.row("zeros", how="0", cost="O(1)")
def _(op: Any, ord: Any) -> Any:
    return np.zeros(op.shape[:-2])


@norm.row("scaled", how="|c| times A's", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return modulus(op._operands[1]) * (yield within(op), ord)


@norm.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(ord, op._mode))


@norm.row("kron", how="product of the factors'", cost="sum of the factors'")
def _(op: Any, ord: Any) -> Generator[Any, Any, Any]:
    if ord == -2 and not _full_rank_possible(op):
        return np.zeros(op.shape[:-2])
    whole = np.ones(())
    for f in factors_of(op):
        whole = whole * (yield f, ord)
    return whole


def _full_rank_possible(op: Any) -> bool:
    """Are all factors of a Kron tall, or all wide? If not, the least singular value is 0."""
    shapes = [f.shape[-2:] for f in factors_of(op)]
    return all(m >= n for m, n in shapes) or all(m <= n for m, n in shapes)


# -- condition, rank --

cond = Question(
    lambda a, p: np.linalg.cond(a, p),
    "cond",
    how="from gesdd, or the inverse",
    cost="4 m n^2",
    kept="cond",
    arrays=4,
)


@cond.row("diag", "identity", how="of the vector", cost="O(n)")
def _(op: Any, p: Any) -> Any:
    s = np.abs(diagonal_of(op))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if p in (2, -2):
            c = norm_of_values(s, p) / norm_of_values(s, -p)
        else:
            c = norm_of_values(s, p) * norm_of_values(1 / s, p)
    return np.where(np.isnan(c) & ~np.isnan(s).any(axis=-1), np.inf, c)  # 0/0: singular


@cond.row("zeros", how="inf", cost="O(1)")
def _(op: Any, p: Any) -> Any:
    return np.full(op.shape[:-2], np.inf)


@cond.row("scaled", how="A's", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not 0 < modulus(op._operands[1]) < np.inf:
        return NotImplemented
    return (yield within(op), p)


@cond.row("view", how="A's, 1 and inf exchanged for a transpose", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], _turned(p, op._mode))


@cond.row(
    "kron",
    how="product of the factors'; inf where some are tall, some wide",
    cost="sum of the factors'",
)
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if not _full_rank_possible(op):
        return np.full(op.shape[:-2], 0.0 if p == -2 else np.inf)
    whole = np.ones(())
    for f in factors_of(op):
        whole = whole * (yield f, p)
    return whole


# -- eigenvalues of Hermitian operators --


hermitian = Question(lambda a: bool(np.array_equal(a, np.swapaxes(a, -1, -2).conj())))


@hermitian.row("diag", "identity")
def _(op: Any) -> bool:
    return not np.iscomplexobj(d := diagonal_of(op)) or not d.imag.any()


@hermitian.row("zeros")
def _(op: Any) -> Any:
    return op.shape[-1] == op.shape[-2]


@hermitian.row("scaled")
def _(op: Any) -> Generator[Any, Any, Any]:
    return complex(op._operands[1]).imag == 0 and (yield (op._operands[0],))


@hermitian.row("view")
def _(op: Any) -> Generator[Any, Any, Any]:
    return (yield (op._operands[0],))


@hermitian.row("kron")
def _(op: Any) -> Generator[Any, Any, Any]:
    for f in factors_of(op):
        if f.shape[-1] != f.shape[-2] or not (yield (f,)):
            return False
    return True


eigvalsh = Question(
    lambda a, uplo: np.linalg.eigvalsh(a, uplo),
    "eigvalsh",
    how="LAPACK's syevd",
    cost="4 n^3 / 3",
    kept="eigvalsh",
)


@eigvalsh.row("diag", "identity", how="sorted", cost="O(n log n)")
def _(op: Any, uplo: str) -> Any:
    return np.sort(diagonal_of(op).real, axis=-1)


@eigvalsh.row("zeros", how="zeros", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    return np.zeros(op.shape[:-1], real_of(op.dtype))


@eigvalsh.row("scaled", how="c times A's, c real", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    if c.imag:
        return NotImplemented
    return np.sort(c.real * (yield within(op), uplo), axis=-1)


@eigvalsh.row("view", how="A's", cost="A's")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    return (yield op._operands[0], {"L": "U", "U": "L"}[uplo] if op._mode & TRANSPOSED else uplo)


@eigvalsh.row(
    "kron", how="all products of the factors', Hermitian ones, sorted", cost="the factors', n log n"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if not hermitian(op):  # (iA) (x) (-iB) may be Hermitian, its factors are not
        return NotImplemented
    w = np.ones(1)
    for f in factors_of(op):
        w = outer(w, (yield f, uplo))
    return np.sort(w, axis=-1)


# -- pseudo-inverse --

pinv = Question(
    lambda a, how: _core.Dense(np.linalg.pinv(a, **how)),
    "pinv",
    how="SVD, a Dense",
    cost="as an SVD with vectors",
    kept="pinv",
    arrays=9,
)


@pinv.row("diag", how="reciprocals, a Diag", cost="O(n)")
def _(op: Any, how: Any) -> Any:
    d = diagonal_of(op)
    s = np.abs(d)
    r = how.get("rtol", how.get("rcond"))
    r = 1e-15 if r is None and "rtol" not in how else r
    r = d.shape[-1] * np.finfo(s.dtype).eps if r is None else np.asarray(r)[..., None]
    keep = s > r * s.max(axis=-1, keepdims=True)
    return _core.Diag(np.divide(1, d, where=keep, out=np.zeros_like(d)))


@pinv.row("identity", how="itself", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return op if op._weak or op.dtype.kind in "fc" else _core.Identity(op.shape, np.float64)


@pinv.row("zeros", how="Zeros", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    dtype = None if op._weak else inexact(op.dtype)
    return _core.Zeros((*op.shape[:-2], op.shape[-1], op.shape[-2]), dtype)


@pinv.row("scaled", how="1/c times A's", cost="A's")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    c = op._operands[1]
    size = modulus(c)
    if not 0 < size < math.inf or math.isinf(1 / size):
        return NotImplemented
    return multiples.divide((yield within(op), how), c)


@pinv.row("view", how="A's, seen so", cost="A's")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    return _view((yield op._operands[0], how), op._mode)


@pinv.row("kron", how="a Kron of the factors', each with its own cut", cost="sum of the factors'")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    found = []
    for f in factors_of(op):
        found.append((yield f, how))
    return _core.Kron(*found)
