"""What questions about operators are made of.

A question is a table: it has a row for each head that answers by structure; all others go by NumPy
on the dense form. A row that asks the same question of an operand yields the request, so that no
expression is too deep. The questions themselves are in questions.py and in the modules of the
factorisations, the rows of a kind in `kinds`."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import types
import weakref
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.dtypes import inexact
from .._base.kind_flags import heads
from .._base.trampoline import run
from .._fallback import interpreter
from .._fallback.dense_forms import named_form
from .._operators import parameters
from .._operators.convert import as_operator
from . import prices, result_cache, trees
from .operands import (
    _is_put_together,
    announce,
    has_small_parts,
    keep_within,
    small_array,
    small_dense,
)
from .rows import GUARDS, QUESTIONS, Row

if TYPE_CHECKING:
    from .._base.type_variables import Registered

_asked: dict[tuple[int, str], weakref.ref[Any]] = {}  # small Krons, of late
_MOST = 512  # of those
_CAST_WHOLE, _CLOSES = heads("cast_whole"), heads("closes")
_QUICK = 1 << 16  # entries up to which no answer takes long
_SHORT = 0.34  # times 1 + _HALF / n: how much longer small ones take (dsyevd, 2026-11-26)
_HALF = 300  # rows at which LAPACK runs at half its speed (dgetrf, dpotrf, 2026-11-26, one core)

# -- operands --


def mirrored(u: Any, v: Any) -> bool:
    """Does V of U C V^H, None where it was not given, hold the numbers of U?"""
    if v is None or v is u:
        return True
    u, v = as_operator(u), as_operator(v)
    if u.shape != v.shape:
        return False
    if u._head == v._head == "sparse":  # which may have no dense form that fits
        return bool((u.tosparse() != v.tosparse()).nnz == 0)
    return np.array_equal(dense(u), dense(v))


def dense(op: Any, arrays: float = 0.0) -> Any:
    """The dense form for NumPy; integers become float64 at the leaves already, as in solves.

    Warns when it is large, and raises when there is not enough memory for it and for so many
    ``arrays`` more, as in `keep_within`."""
    if arrays:
        keep_within(op, arrays)
    op = parameters.declared(op)
    if op._head == "dense" and op._init is not None:
        a, assumed = op._given("a", "assume_a")
        a = np.asarray(a)
        a = a.astype(np.float64) if a.dtype.kind in "biu" else a
        return named_form(a, assumed)
    announce(op)
    memo = _shared()
    if memo is None:
        return _made(op)
    content = result_cache.content(op)
    found = memo.get(id(op))
    if found is None or found[2] != content:
        a = _made(op).view()  # an array of the user's own stays writable
        a.setflags(write=False)  # the next who asks in this call gets it too
        found = op, a, content
        memo[id(op)] = found
    return found[1]


def _made(op: Any) -> Any:
    product = _shifted(op) if _is_wanted(op) else None
    if product is not None:  # functions of the sum may take the product's form too
        return interpreter.toarray(
            functools.reduce(
                operator.add,
                [_core.Dense(dense(f)) if f is product else f for f in op._operands],
            )
        )
    if op.dtype is None or op.dtype.kind not in "biu":
        return interpreter.toarray(op)
    if op._opaque or op._head in _CAST_WHOLE:
        return interpreter.toarray(op).astype(np.float64)
    return interpreter.toarray(op @ _core.Identity(op.shape[-1], np.float64))


# -- one call --

# Operator, dense form, what the arrays held: a callable may write to them, and ask again. Of
# operators over callables nobody knows that, and their form is the call's.
_Made = tuple[Any, Any, bytes | None]
_memo: ContextVar[dict[int, _Made] | None] = ContextVar("pylinop.memo", default=None)


def _shared() -> dict[int, _Made] | None:
    """The dense forms that were made in this call, by operator; None outside of one, and where a
    memory limit counts each alone."""
    return _memo.get() if config.get("memory_limit") is None else None


class _Little(dict[int, _Made]):
    """Dense forms of several functions, as many as need no warning together."""

    def __init__(self) -> None:
        super().__init__()
        self.left = config.get("warn_limit")
        self.wanted: dict[int, Any] = {}  # operators of whose forms several functions make use

    def __setitem__(self, key: int, made: _Made) -> None:
        if key in self:
            self.left += self.pop(key)[1].nbytes
        if made[1].nbytes <= self.left:
            self.left -= made[1].nbytes
            super().__setitem__(key, made)


def want(op: Any) -> None:
    """Within one evaluation: several functions make use of the dense form of ``op``."""
    memo = _shared()
    if isinstance(memo, _Little):
        memo.wanted[id(op)] = op


def _is_wanted(op: Any) -> bool:
    memo = _shared()
    return isinstance(memo, _Little) and id(op) in memo.wanted


def shared_form(op: Any) -> Any:
    """The dense form of ``op`` where functions of one evaluation share it; None elsewhere. The
    operator's arrays have to hold what they held."""
    memo = _shared()
    if not isinstance(memo, _Little) or not (id(op) in memo or id(op) in memo.wanted):
        return None
    return dense(op)


def _shifted(op: Any) -> Any:
    """P of P + c I, a product; None of others."""
    terms = op._operands if op._head == "sum" and op._init is None else ()
    found = [f for f in terms if f._head == "prod"]
    rest = [f for f in terms if f._head == "scaled" and f._operands[0]._head == "identity"]
    return found[0] if len(found) == 1 and len(rest) == len(terms) - 1 else None


@contextlib.contextmanager
def one_evaluation() -> Iterator[None]:
    """The functions of a block share the dense forms that they make of the same operators."""
    token = _memo.set(_Little()) if _memo.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _memo.reset(token)


def may_hold(nbytes: int) -> bool:
    """Within one evaluation: may a dense form of this size be held for its functions?"""
    memo = _shared()
    return isinstance(memo, _Little) and nbytes <= config.get("warn_limit")


def hold(op: Any, array: Any) -> None:
    """Within one evaluation: what the dense form of ``op`` is."""
    memo = _shared()
    if memo is not None:
        memo[id(op)] = op, array, result_cache.content(op)


def one_call(name: str) -> Callable[[Registered], Registered]:
    """A function of an operator, its first argument, within which each dense form is made once, and
    which `pl.explaining()` shows as one."""

    def made(function: Any) -> Any:
        @functools.wraps(function)
        def call(op: Any, *args: Any, **how: Any) -> Any:
            token = _memo.set({}) if _memo.get() is None else None
            try:
                if not config.recording():
                    return function(op, *args, **how)
                with trees.recorded(name, op):
                    return function(op, *args, **how)
            finally:
                if token is not None:
                    _memo.reset(token)

        return call

    return made


@contextlib.contextmanager
def step(name: str, op: Any, price: prices.Price) -> Iterator[trees.Node | None]:
    """Work of its own within a call, as `pl.explaining()` shows it, where no question does it:
    yields that node."""
    trace = trees.here()
    if trace is None:
        yield None
        return
    with trace.node(name, op) as node:
        yield node
        node.fired, node.price, node.label = True, price, name


class Question:
    """One question about operators: ``rows`` by head, ``dense`` for all others.

    A question with a ``name``, that of its function, is in the printed table of algorithms and
    costs, and its rows are rules: ``how`` and ``cost`` describe the dense form's answer, and each
    row has its own.

    ``arrays`` says how many arrays of m n entries the dense form's answer takes at most beside the
    dense form, including its result (measured 2026-11); it may be a function of (m, n, *args).

    With ``kept``, a name or a function that makes a name from the arguments, the dense form's
    answers are cached between calls, and so are those of rows that say so. With ``whole``,
    ``dense`` is called with (array, *args, op). ``plans`` is a function of (op, *args) that answers
    from the factor that plans keep; it returns NotImplemented where they keep none. ``instead`` is
    a function of (op, *args) that says, as a cost, what the dense form's answer takes where that is
    not ``cost``, else None. ``defaults``: the arguments with which another question asks it. With
    ``known``, the core's inference may answer, by that name. ``doubt`` is a function of (op, *args)
    that says on which numbers the dense form's answer depends: (where it goes another way, the
    questions whose dense answers that takes), or None."""

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
        instead: Callable[..., str | None] | None = None,
        defaults: tuple[Any, ...] = (),
        known: str = "",
        doubt: Callable[..., Any] | None = None,
    ) -> None:
        self.rows: dict[str, Row] = {}
        self.dense, self.arrays = dense, arrays
        self.kept, self.whole, self.plans = kept, whole, plans
        self.text = (how, cost)
        self.name, self.word = name, name.partition(",")[0]
        self.instead, self.defaults, self.known, self.doubt = instead, defaults, known, doubt
        if name:
            QUESTIONS[name] = self

    @property
    def texts(self) -> dict[str, tuple[str, str]]:
        """How and at which cost each head is answered."""
        return {head: (row.how, row.cost) for head, row in self.rows.items()}

    def row(
        self, *heads: str, how: str = "", cost: str = "", kept: bool = False, guard: str = "",
        asks: Callable[..., Any] | None = None, by: str = "structure", called: str = "",
        calls: int = 1, holds: str = "", instead: Callable[[Any], str | None] | None = None,
        far: str = "", doubt: Callable[..., Any] | str = "",
    ) -> Callable[[Registered], Registered]:  # fmt: skip
        """Registers an answer: a function of (op, *args), or a generator that yields
        (operand, *args) and is sent its answer; NotImplemented sends op to the dense form. The rule
        is named by the first head, or ``called`` otherwise where it is of many."""

        def add(answer: Registered) -> Registered:
            name = f"{self.word}-{called or heads[0]}" if self.word else ""
            made = Row(name, answer, how, cost, guard, asks, by, calls, holds, instead, far, doubt)
            made.kept = kept  # of a function, not of a generator
            if name:
                config.structure_rules[name] = made
            self.rows.update(dict.fromkeys(heads, made))
            return answer

        return add

    def like(self, head: str, *heads: str) -> None:
        """Has these heads answered by the row of ``head``, which several kinds share."""
        self.rows.update(dict.fromkeys(heads, self.rows[head]))

    def row_of(self, op: Any) -> Row | None:
        """The row that answers. A view or multiple uses the row "view" or "scaled", whatever kind
        it closed to (but kinds with the flag "closes"); a closed inverse uses the row
        "inverse"."""
        by = op._by if op._init is None else ""
        if by in ("view", "scaled") and op._head not in _CLOSES:
            return self.rows.get(by)
        if by == "inverse" and op._head in ("view", "scaled"):
            return self.rows.get(by)
        return self.rows.get(op._head)

    def allows(self, row: Row, op: Any, node: Any, runs: bool) -> bool:
        """May the row act? Says why not to ``node``, if that is wanted. Before it ``runs``, what is
        not known of a guard is noted, and taken to hold."""
        if row.name and row.name in config.get("disable_rules"):
            if node is not None:
                node.refuse(row, "config", None, "disabled")
            return False
        for name in row.guards:
            guard = GUARDS[name]
            holds = guard.holds(op) if runs else guard.known(op)
            if holds is None and node is None:
                continue
            if holds is None:
                node.note = f"if {name}, looked at when it runs"
                node.unsure = f"where the guard {name} does not hold"
            elif not holds:
                if node is not None:
                    node.refuse(row, "guard", name, guard.doc)
                return False
        return True

    def _steps(self, op: Any, *args: Any) -> Generator[Any, Any, Any]:
        if self.known:
            found = op._known(self.known)
            if found is not None:
                return found
        if op._head == "dense" and "dense" not in self.rows:  # a part: a whole one is cached
            a = small_dense(op)
            if a is not None and config.get("memory_limit") is None:
                return self.dense(a, *args, op) if self.whole else self.dense(a, *args)
        op = parameters.declared(op)
        trace = trees.here() if self.name else None
        node = None if trace is None else trace.top
        row = self.row_of(op)
        if row is not None and 0 not in op.shape[-2:] and self.allows(row, op, node, True):
            ran = True
            if row.holds:
                row.keep_within(op)
            if row.kept:
                found, ran = self._kept_row(row, op, args)
            else:
                found = row.answer(op, *args)
            if type(found) is types.GeneratorType:  # isinstance would ask operators for __class__
                found = yield from found
            if found is not NotImplemented:
                row.fired += 1
                if node is not None:
                    node.answered(row, op)
                    if not ran:
                        node.cached()
                return found
            if node is not None:
                node.refuse(row, "right side", None, "left as written")
        return self.of_dense(op, *args)

    def _kept_row(self, row: Row, op: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The answer of a row that is cached, and whether it ran for that."""
        ran = []

        def make() -> Any:
            ran.append(row)
            return row.answer(op, *args)

        again = announce if row.by == "dense" else lambda op: None
        return self._keep(op, args, make, lambda: again(op)), bool(ran)

    def _keep(
        self, op: Any, args: tuple[Any, ...], make: Callable[[], Any], announce: Callable[[], None]
    ) -> Any:
        name = self.kept(*args) if callable(self.kept) else self.kept
        word = result_cache.word_of(name, () if callable(self.kept) else args) if name else None
        if word is None or 0 in op.shape:
            return make()
        off = config.get("disable_rules")
        if off:
            word += f" without {' '.join(off)}"
        return result_cache.answer(word, op, make, announce)

    def of_dense(self, op: Any, *args: Any, array: Any = None) -> Any:
        """The answer of the dense form, which may be cached."""
        trace = trees.here() if self.name else None
        if trace is None:
            return self._of_dense(op, args, array, None)
        if array is None:
            return self._of_dense(op, args, array, trace.top)
        with trace.node(self.word, op) as node:
            return self._of_dense(op, args, array, node)

    def _of_dense(self, op: Any, args: tuple[Any, ...], array: Any, node: Any) -> Any:
        def make() -> Any:
            if self.plans and array is None:
                found = self.plans(op, *args)
                if found is not NotImplemented:
                    if node is not None:
                        node.fired, node.note = True, "by the factor that solves keep"
                    return found
            keep_within(op, self.arrays, *args)
            told = self._tell_time(op, args)
            before = 0 if node is None else len(node.parts)
            a = dense(op) if array is None else array
            with memory.told() if told else contextlib.nullcontext():
                made = self.dense(a, *args, op) if self.whole else self.dense(a, *args)
            if node is not None:
                node.computed(self, op, args, before)
            return made

        if node is not None:
            node.cached()
        return self._keep(op, args, make, lambda: announce(op))

    def dense_price(self, op: Any, args: tuple[Any, ...]) -> prices.Price:
        """What the dense form's answer takes, without the dense form."""
        if 0 in op.shape:
            return prices.NOTHING
        cost = self.instead(op, *args) if self.instead is not None else None
        own = prices.read(cost or self.text[1]).price(op, "dense")
        if cost is None and self.word in memory.CUBES and self.word != "eigh":
            own = own._replace(seconds=self._measured(op))
        else:  # costs that are right of large ones
            slow = max(1.0, _SHORT * (1 + _HALF / max(min(op.shape[-2:]), 1)))
            own = own._replace(seconds=prices.ROW + slow * (own.seconds - prices.ROW))
        arrays = self.arrays(*op.shape[-2:], *args) if callable(self.arrays) else self.arrays
        held = int(arrays * op.size * inexact(op.dtype).itemsize)
        return own._replace(memory=held or own.memory)

    def _measured(self, op: Any) -> float:
        """What LAPACK and SciPy were measured to take on the dense form."""
        *batch, m, n = op.shape
        cubes = memory.CUBES.get(self.word, 0) * max(m, n) * min(m, n) ** 2 * math.prod(batch)
        complex_ = 4 if inexact(op.dtype).kind == "c" else 1
        small = (1 + _HALF / max(math.sqrt(m * n), 1)) / (1 + _HALF / 1000)  # blocks are short
        small = 1.0 if self.word in ("eig", "eigvals") else small  # which run at the memory's rate
        return float(cubes * complex_ * small / _core._costs()["gemm_rate"]) + prices.ROW

    def dense_asks(self, op: Any, args: tuple[Any, ...]) -> list[Question]:
        """The questions whose dense answers the dense form's answer takes."""
        cost = self.instead(op, *args) if self.instead is not None else None
        return [QUESTIONS[name] for name, _ in prices.read(cost or self.text[1]).asks]

    def _tell_time(self, op: Any, args: tuple[Any, ...]) -> bool:
        """Warns of an answer that takes long. Did it?"""
        if not self.name or op.size < _QUICK or config.get("slow_limit") is None:
            return False
        dtype = inexact(op.dtype)
        arrays = self.arrays(*op.shape[-2:], *args) if callable(self.arrays) else self.arrays
        cost = self.instead(op, *args) if self.instead is not None else None
        if self.name in memory.CUBES and cost is None:
            seconds = self._measured(op)
        else:  # as a norm by singular values; what reads each entry once does not take long
            seconds = self.dense_price(op, args).seconds
        nbytes = int((1 + arrays) * op.size * dtype.itemsize)
        return memory.slow(op, seconds, nbytes, -1, self.name)

    def __call__(self, op: Any, *args: Any) -> Any:
        if config.get("check") == "full" and not op._opaque:
            op @ np.zeros(op.shape[-1], op.dtype)  # tests the assumptions about its parts
        if self.name and (trees.here() is not None or config.recording()):
            return self._traced(op, args)
        if op._head == "dense" and "dense" not in self.rows and parameters.declared(op) is op:
            found = op._known(self.known) if self.known else None
            return self.of_dense(op, *args) if found is None else found
        if has_small_parts(op) and not (self.kept and self._was_asked(op)):
            return self._of_small(op, args)  # of arrays: there are no dense forms to share
        token = _memo.set({}) if _memo.get() is None else None
        try:
            if self.kept and _is_put_together(op):
                return self._keep(op, args, lambda: run(self._steps, op, *args), lambda: None)
            return run(self._steps, op, *args)
        finally:
            if token is not None:
                _memo.reset(token)

    def _was_asked(self, op: Any) -> bool:
        """Was this object asked this before?"""
        key = id(op), self.word
        known = _asked.get(key)
        if known is not None and known() is op:
            return True
        if len(_asked) >= _MOST:
            _asked.clear()
        _asked[key] = weakref.ref(op)
        return False

    def _of_small(self, op: Any, args: tuple[Any, ...]) -> Any:
        """The answer of a Kron or BlockDiag of small arrays, when it is first asked for: by the
        same row as any, but each part by LAPACK at once, and nothing kept, since keeping takes as
        long as making."""
        row = self.rows.get(op._head)
        if row is None or row.kept or not self.allows(row, op, None, True):
            return self.of_dense(op, *args)
        found = row.answer(op, *args)
        if type(found) is types.GeneratorType:
            by_array = "dense" not in self.rows
            try:
                asked = next(found)
                while True:
                    part, *more = asked
                    a = small_array(part) if by_array and type(part) is _core.Dense else None
                    if a is None:
                        value = run(self._steps, part, *more)
                    else:
                        value = self.dense(a, *more, part) if self.whole else self.dense(a, *more)
                    asked = found.send(value)
            except StopIteration as done:
                found = done.value
        if found is NotImplemented:
            return self.of_dense(op, *args)
        row.fired += 1
        return found

    def _traced(self, op: Any, args: tuple[Any, ...]) -> Any:
        """The answer, with a node of the tree that `pl.explaining()` shows."""
        trace = trees.here()
        if trace is None:
            return one_call(self.word)(lambda op: self._traced(op, args))(op)
        if not _is_put_together(op):
            return trace.ask(self, op, *args)
        with trace.node(self.word, op) as node:
            node.note = "from the cache"

            made = []

            def make() -> Any:
                made.append(True)
                return trace.ask(self, op, *args)

            found = self._keep(op, args, make, lambda: None)
            if not made:
                node.cached()
            return found
