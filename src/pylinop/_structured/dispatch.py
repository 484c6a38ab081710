"""What questions about operators are made of.

A question is a table: it has a row for each head that answers by structure; all others go by NumPy
on the dense form. A row that asks the same question of an operand yields the request, so that no
expression is too deep. The questions themselves are in questions.py and in the modules of the
factorisations."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.dtypes import inexact, real_of
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
