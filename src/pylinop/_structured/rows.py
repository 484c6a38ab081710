"""Rows: how a question is answered for some heads, under which guards, at which price.

Each is a rule of `pl.rules()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base import config, memory
from .._base.dtypes import inexact
from .._operators.convert import as_operator
from . import prices
from .operands import factors_of, within

if TYPE_CHECKING:
    from .dispatch import Question

QUESTIONS: dict[str, Question] = {}  # those with a name: docs/factorisations.md, pl.rules()


class Guard(NamedTuple):
    """A condition on rows: a sentence; what decides when a row runs; and what is known before, by
    how the operator is written (None: not known)."""

    doc: str
    holds: Callable[[Any], Any]
    known: Callable[[Any], bool | None]


def _is_given(op: Any) -> bool:
    return op._init is not None


def guard_of(doc: str, holds: Callable[[Any], Any]) -> Guard:
    """One that needs no numbers, so that it is known before."""
    return Guard(doc, holds, lambda op: bool(holds(op)))


GUARDS = {
    "given": guard_of("of the kind as it was given, not what an operation closed to", _is_given),
    "single": guard_of("one matrix, not a batch", lambda op: op.ndim == 2),
    "upper": guard_of(
        "an upper triangle as it was given", lambda op: _is_given(op) and not op._given("lower")
    ),
    "square": guard_of("square", lambda op: op.shape[-1] == op.shape[-2]),
    "square_parts": guard_of(
        "each part square", lambda op: all(f.shape[-1] == f.shape[-2] for f in factors_of(op))
    ),
    "real_constant": guard_of("its c is real", lambda op: not complex(op._given("c")).imag),
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
    that it is, "structure", "band" or "dense"; ``calls``: how many rows' Python it is worth;
    ``instead``: a function of op that says, as a cost, what the row takes where that is not
    ``cost``, else None; ``holds``: how many entries it has in memory at once, as a formula, where
    that does not follow from the cost; the memory limit is held by it; ``far``: how many entries it
    reads one by one, each in a page of its own; ``doubt``: a function of (op, *args) that says on
    which numbers it depends whether it answers, which no guard says: (where it does not, what is
    asked instead, as ``asks`` says it, with None for the dense form), or None; or that sentence, of
    a row without which the dense form answers."""

    def __init__(
        self, name: str, answer: Callable[..., Any], how: str, cost: str, guard: str, asks: Any,
        by: str, calls: int, holds: str, instead: Callable[[Any], str | None] | None,
        far: str, doubt: Callable[..., Any] | str,
    ) -> None:  # fmt: skip
        self.name, self.answer, self.how, self.cost = name, answer, how, cost
        self.guards, self.asks, self.by = guard.split(), asks, by
        self.fired, self.kept, self.calls, self.holds = 0, False, calls, holds
        self.instead, self.far, self._doubt = instead, far, doubt

    def price(self, op: Any) -> prices.Price:
        """Its own share, without what it asks."""
        later = (self.calls - 1) * prices.ROW
        later += prices.entries(self.far, op) * prices.FAR if self.far else 0.0
        more = prices.Price(self.by, 0.0, later, 0.0, 0)
        said = self.instead(op) if self.instead is not None else None
        own = self.own if said is None else prices.read(said)
        whole = own.price(op, self.by).plus(more)
        return whole._replace(memory=self.memory(op)) if self.holds else whole

    def memory(self, op: Any) -> int:
        """The bytes that it ``holds``, in double precision at least."""
        wide = np.result_type(inexact(op.dtype), np.float64).itemsize
        return int(prices.entries(self.holds, op) * wide)

    def keep_within(self, op: Any) -> None:
        """Raises where what it ``holds`` passes the memory limit, if one is set."""
        limit = config.get("memory_limit")
        if self.holds and limit is not None and 0 not in op.shape:
            if (needed := self.memory(op)) > limit:
                raise memory.beyond(op, needed, f"{self.name} holds {self.holds} numbers")

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
            return _named(self.asks(op, *args))
        found = []
        for name, of in self.own.asks:
            which: Any = QUESTIONS.get(name, name) if name else question
            operands = _operands(op, of)
            if operands is None:
                return None
            more = args if which is question else getattr(which, "defaults", ())
            found += [(which, one, more) for one in operands]
        return found

    def doubt(self, op: Any, args: tuple[Any, ...]) -> tuple[str, Any] | None:
        """Where it does not answer, and what is asked then, as `parts` says it."""
        if isinstance(self._doubt, str):
            return (self._doubt, None) if self._doubt else None
        found = self._doubt(op, *args)
        return None if found is None else (found[0], _named(found[1]))


def _named(asks: Any) -> Any:
    """What is asked, with the questions themselves for their names."""
    if asks is None:
        return None
    found = []
    for ask in asks:
        if ask is not None:
            name, operand, *more = ask
            ask = (QUESTIONS.get(name, name) if isinstance(name, str) else name, operand, more)
        found.append(ask)
    return found


def rules() -> list[dict[str, Any]]:
    """The rows as `pl.rules()` lists them."""
    made = []
    for question in QUESTIONS.values():
        for row in dict.fromkeys(question.rows.values()):
            heads = "|".join(head for head, r in question.rows.items() if r is row)
            made.append(
                {"name": row.name, "phase": "structure", "tier": "kind",
                 "left": f"({question.word} ({heads}))", "right": None,
                 "guard": " ".join(row.guards) or None, "cost": "always",
                 "source": row.how, "origin": "table", "fired": row.fired, "price": row.cost}
            )  # fmt: skip
    return made
