"""What questions about operators are made of.

A question is a table: it has a row for each head that answers by structure; all others go by NumPy
on the dense form. A row that asks the same question of an operand yields the request, so that no
expression is too deep. The questions themselves are in questions.py and in the modules of the
factorisations."""

from __future__ import annotations

import contextlib
import functools
import math
import types
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.dtypes import inexact, real_of
from .._base.trampoline import run
from .._fallback import interpreter
from .._operators import parameters
from .._operators.convert import as_operator
from . import prices, result_cache, trees
from .unitary import is_unitary

if TYPE_CHECKING:
    from .._base.type_variables import Registered

_LITTLE = 1 << 14  # entries up to which an answer joined from those of factors is cached too
_QUICK = 1 << 16  # entries up to which no answer takes long
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
    memo = _shared()
    if memo is None:
        return _made(op)
    found = memo.get(id(op))
    if found is None:
        a = _made(op).view()  # an array of the user's own stays writable
        a.setflags(write=False)  # the next who asks in this call gets it too
        found = memo[id(op)] = op, a
    return found[1]


def _made(op: Any) -> Any:
    if op.dtype is None or op.dtype.kind not in "biu":
        return interpreter.toarray(op)
    if op._opaque or op._head in ("identity", "zeros", "selection", "sparse"):
        return interpreter.toarray(op).astype(np.float64)
    return interpreter.toarray(op @ _core.Identity(op.shape[-1], np.float64))


def small_dense(op: Any) -> Any:
    """The array of a Dense so small that its spectra are computed at once, without a look into the
    cache; None for all others."""
    if op._head != "dense" or op._init is None or not 0 < math.prod(op.shape) <= _SMALL:
        return None
    if config.recording():  # the question's own road is the one that is seen
        return None
    a, assumed = op._given("a", "assume_a")
    return a if assumed is None and type(a) is np.ndarray and a.dtype.char in "fdFD" else None


def _is_put_together(op: Any) -> Any:
    """Are answers about it cached as a whole? They are for a Kron or BlockDiag so small that making
    the answer says nothing about dense forms, which an answer from the cache would not repeat."""
    if op._head not in ("kron", "blockdiag") or op.dtype is None:
        return False
    size = math.prod(op.shape)
    if size > _LITTLE:
        return False
    bytes_ = size * inexact(op.dtype).itemsize
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
    dtype = op.dtype
    return [f if f.dtype is dtype else _as_precise(f, op) for f in parameters.factors(op)]


def blocks_of(op: Any) -> list[list[Any]]:
    """The rows of a Block, likewise."""
    return [[_as_precise(block, op) for block in row] for row in op._given("blocks")]


QUESTIONS: dict[str, Question] = {}  # those with a name: docs/factorisations.md, pl.rules()

# -- guards, and what rows ask --


class Guard(NamedTuple):
    """A condition on rows: a sentence; what decides when a row runs; and what is known before, by
    how the operator is written (None: not known)."""

    doc: str
    holds: Callable[[Any], Any]
    known: Callable[[Any], bool | None]


def _is_given(op: Any) -> bool:
    return op._init is not None


def _guard(doc: str, holds: Callable[[Any], Any]) -> Guard:
    """One that needs no numbers, so that it is known before."""
    return Guard(doc, holds, lambda op: bool(holds(op)))


GUARDS = {
    "given": _guard("of the kind as it was given, not what an operation closed to", _is_given),
    "single": _guard("one matrix, not a batch", lambda op: op.ndim == 2),
    "unitary_q": _guard("its Q is known to be unitary", lambda op: is_unitary(op._given("Q"))),
    "unitary_a": _guard("its A is known to be unitary", lambda op: is_unitary(op._given("A"))),
    "upper": _guard(
        "an upper triangle as it was given", lambda op: _is_given(op) and not op._given("lower")
    ),
    "real_constant": _guard("its c is real", lambda op: not complex(op._given("c")).imag),
}

# The operand that "A" means in a row's cost, of heads where it is not the first.
OPERAND: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda op: within(op),
    "congruence": lambda op: as_operator(op._given("B")) if op._init is not None else None,
}


def _operand(op: Any) -> Any:
    by = op._by if op._init is None else ""
    if op._head in OPERAND:
        return OPERAND[op._head](op)
    return op._operands[0] if by and op._operands else None


def _operands(op: Any, of: str) -> list[Any] | None:
    """The parts that a cost names; None where the row will find none either."""
    if of == "itself":
        return [op]
    if of == "parts":
        return factors_of(op) if op._init is not None or op._by else None
    if of in ("B", "L"):
        return [as_operator(op._given(of))] if op._init is not None else None
    found = _operand(op)
    return None if found is None else [found]


class Row:
    """How a question is answered for some heads: a rule, as `pl.rules()` lists it.

    ``guard`` names what must hold; ``cost`` says the row's own share of the price and what it asks
    of the parts (prices.py), ``asks`` what it asks where those words do not: a function of (op,
    *args), which returns a list of (question or its name, operand, *its arguments). ``by``: the way
    that it is, "structure", "band" or "dense"."""

    def __init__(
        self, name: str, answer: Callable[..., Any], how: str, cost: str, guard: str, asks: Any,
        by: str,
    ) -> None:  # fmt: skip
        self.name, self.answer, self.how, self.cost = name, answer, how, cost
        self.guards, self.asks, self.by = guard.split(), asks, by
        self.fired, self.kept = 0, False

    def __call__(self, op: Any, *args: Any) -> Any:
        return self.answer(op, *args)

    @property
    def own(self) -> prices.Cost:
        """Its cost, read."""
        return prices.read(self.cost)

    @property
    def passes(self) -> bool:
        """Does it hand the question on to its operand?"""
        return self.own.asks == [("", "A")]

    def parts(self, question: Question, op: Any, args: tuple[Any, ...]) -> Any:
        """What it asks, as (question, operand, arguments); None where it will refuse."""
        if self.asks is not None:
            given = self.asks(op, *args)
            if given is None:
                return None
            return [(QUESTIONS.get(q, q) if isinstance(q, str) else q, o, more)
                    for q, o, *more in given]  # fmt: skip
        found = []
        for name, of in self.own.asks:
            which: Any = QUESTIONS.get(name, name) if name else question
            operands = _operands(op, of)
            if operands is None:
                return None
            more = args if which is question else getattr(which, "defaults", ())
            found += [(which, one, more) for one in operands]
        return found


def rules() -> list[dict[str, Any]]:
    """The rows as `pl.rules()` lists them."""
    made = []
    for question in QUESTIONS.values():
        for row in dict.fromkeys(question.rows.values()):
            heads = "|".join(head for head, r in question.rows.items() if r is row)
            made.append(
                {"name": row.name, "phase": "structure", "left": f"({question.word} ({heads}))",
                 "right": None, "guard": " ".join(row.guards) or None, "cost": "always",
                 "source": row.how, "origin": "table", "fired": row.fired, "price": row.cost}
            )  # fmt: skip
    return made


# -- one call --

_memo: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("pylinop.memo", default=None)


def _shared() -> dict[int, tuple[Any, Any]] | None:
    """The dense forms that were made in this call, by operator; None outside of one, and where a
    memory limit counts each alone."""
    return _memo.get() if config.get("memory_limit") is None else None


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
def step(name: str, op: Any, price: prices.Price) -> Iterator[None]:
    """Work of its own within a call, as `pl.explaining()` shows it, where no question does it."""
    trace = trees.here()
    if trace is None:
        yield
        return
    with trace.node(name, op) as node:
        yield
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
    ``known``, the core's inference may answer, by that name."""

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
    ) -> None:
        self.rows: dict[str, Row] = {}
        self.dense, self.arrays = dense, arrays
        self.kept, self.whole, self.plans = kept, whole, plans
        self.text = (how, cost)
        self.name, self.word = name, name.partition(",")[0]
        self.instead, self.defaults, self.known = instead, defaults, known
        if name:
            QUESTIONS[name] = self

    @property
    def texts(self) -> dict[str, tuple[str, str]]:
        """How and at which cost each head is answered."""
        return {head: (row.how, row.cost) for head, row in self.rows.items()}

    def row(
        self, *heads: str, how: str = "", cost: str = "", kept: bool = False, guard: str = "",
        asks: Callable[..., Any] | None = None, by: str = "structure", called: str = "",
    ) -> Callable[[Registered], Registered]:  # fmt: skip
        """Registers an answer: a function of (op, *args), or a generator that yields
        (operand, *args) and is sent its answer; NotImplemented sends op to the dense form. The rule
        is named by the first head, or ``called`` otherwise where it is of many."""

        def add(answer: Registered) -> Registered:
            name = f"{self.word}-{called or heads[0]}" if self.word else ""
            made = Row(name, answer, how, cost, guard, asks, by)
            made.kept = kept  # of a function, not of a generator
            if name:
                config.structure_rules[name] = made
            self.rows.update(dict.fromkeys(heads, made))
            return answer

        return add

    def row_of(self, op: Any) -> Row | None:
        """The row that answers. A view or multiple uses the row "view" or "scaled", whatever kind
        it closed to (but Diag, Identity, Zeros and Kron); a closed inverse uses the row
        "inverse"."""
        by = op._by if op._init is None else ""
        if by in ("view", "scaled") and op._head not in ("diag", "identity", "zeros", "kron"):
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
            if holds is None:
                node.note = f"if {name}, looked at when it runs"
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
            if row.kept:
                found, ran = self._kept_row(row, op, args)
            else:
                found = row.answer(op, *args)
            if type(found) is types.GeneratorType:  # isinstance would ask operators for __class__
                found = yield from found
            if found is not NotImplemented:
                row.fired += 1
                if node is not None:
                    node.answered(row, op, row.by)
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

        return self._keep(op, args, make, lambda: None), bool(ran)

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
            self._tell_time(op)
            before = 0 if node is None else len(node.parts)
            a = dense(op) if array is None else array
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
        arrays = self.arrays(*op.shape[-2:], *args) if callable(self.arrays) else self.arrays
        held = int(arrays * op.size * inexact(op.dtype).itemsize) if 0 not in op.shape else 0
        return own._replace(memory=max(held, own.memory))

    def _measured(self, op: Any) -> float:
        """What LAPACK and SciPy were measured to take on the dense form."""
        *batch, m, n = op.shape
        cubes = memory.CUBES.get(self.word, 0) * max(m, n) * min(m, n) ** 2 * math.prod(batch)
        complex_ = 4 if inexact(op.dtype).kind == "c" else 1
        return float(cubes * complex_ / _core._costs()["gemm_rate"]) + prices.ROW

    def dense_asks(self, op: Any, args: tuple[Any, ...]) -> list[Question]:
        """The questions whose dense answers the dense form's answer takes."""
        cost = self.instead(op, *args) if self.instead is not None else None
        return [QUESTIONS[name] for name, _ in prices.read(cost or self.text[1]).asks]

    def _tell_time(self, op: Any) -> None:
        """Warns of an answer that takes long."""
        if self.name not in memory.CUBES or op.size < _QUICK:
            return
        dtype = inexact(op.dtype)
        arrays = self.arrays if not callable(self.arrays) else 2
        memory.slow(
            op, self._measured(op), int((1 + arrays) * op.size * dtype.itemsize), -1, self.name
        )

    def __call__(self, op: Any, *args: Any) -> Any:
        if config.get("check") == "full" and not op._opaque:
            op @ np.zeros(op.shape[-1], op.dtype)  # tests the assumptions about its parts
        if self.name and (trees.here() is not None or config.recording()):
            return self._traced(op, args)
        if op._head == "dense" and "dense" not in self.rows and parameters.declared(op) is op:
            found = op._known(self.known) if self.known else None
            return self.of_dense(op, *args) if found is None else found
        token = _memo.set({}) if _memo.get() is None else None
        try:
            if self.kept and _is_put_together(op):
                return self._keep(op, args, lambda: run(self._steps, op, *args), lambda: None)
            return run(self._steps, op, *args)
        finally:
            if token is not None:
                _memo.reset(token)

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
