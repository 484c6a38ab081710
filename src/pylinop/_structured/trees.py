"""What a function of an operator does, as a tree: planned before it runs, or recorded meanwhile.

A node is a question about an operator: the row that answers it, or the dense form; the rows that
fitted and were refused; its own share of flops, bytes, time and memory; and what it asked of the
parts. `planned` computes nothing; `Trace` fills the same nodes while a question runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from .. import _core
from .._base import config
from .._base.explanation import Explanation
from .._base.trampoline import run
from .._operators import parameters
from .prices import NOTHING, Price


class Node:
    """One question about one operator."""

    def __init__(self, name: str, op: Any) -> None:
        self.name = name
        self.what = f"{type(op).__name__} {op.shape}"
        self.rule = ""  # of the row that answered; "": the dense form, or not known yet
        self.label = ""  # of work that no row does
        self.by = "dense"
        self.fired = True  # False: a heading, an answer from the cache, or nothing to compute
        self.empty = 0 in op.shape
        self.price = NOTHING
        self.took: float | None = None
        self.refused: list[dict[str, Any]] = []
        self.parts: list[Node] = []
        self.note = ""
        self.unsure = ""  # where another way is taken, which only numbers say
        self.instead: Node | None = None  # that way

    def answered(self, row: Any, op: Any) -> None:
        """A row answers."""
        self.rule, self.by = row.name, row.by
        self.price, self.fired = row.price(op), not self.empty

    def computed(self, question: Any, op: Any, args: tuple[Any, ...], before: int) -> None:
        """The dense form has answered; where another question's dense form did that for it, as the
        parts since ``before`` say, its price is theirs."""
        self.fired, self.note = not self.empty, ""
        if not any(part.fired and part.by == "dense" for part in self.parts[before:]):
            self.price = question.dense_price(op, args)

    def cached(self) -> None:
        """The answer was made by a call before."""
        self.fired, self.price, self.note = True, NOTHING, "from the cache"

    def refuse(self, row: Any, by: str, guard: str | None, why: str) -> None:
        self.refused.append(
            {"name": row.name, "outcome": "refused", "by": by, "guard": guard, "why": why}
        )

    def walk(self) -> Iterator[Node]:
        """Its parts before itself, in the order in which they are computed; no recursion."""
        found, stack = [], [self]
        while stack:
            node = stack.pop()
            found.append(node)
            stack += node.parts
        return reversed(found)

    @property
    def total(self) -> Price:
        """Of the node and all that it asks."""
        return Price(self.by, 0.0, 0.0, 0.0, 0).plus(*(node.price for node in self.walk()))


# -- before it runs --


def _leaf(name: str, op: Any, action: str) -> Node:
    """What the core's plan of an action is estimated to take."""
    node = Node(name, op)
    if op._opaque:
        node.note = "products of a callable, which have no price"
    elif 0 not in op.shape:
        asked = _core._build("inverse", op) if action == "solve" else op
        said = asked.explain("apply" if action == "solve" else action)
        node.by = "plan"
        node.price = Price("plan", said.flops, said.seconds, said.bytes, said.memory)
    return node


def leaf(name: str, op: Any, price: Price) -> Node:
    """Work of its own, where no question does it: of the dense form."""
    node = Node(name, op)
    node.label, node.price = name, price
    if op._head != "dense" or op._init is None:
        node.parts.append(_leaf("dense form", op, "dense"))
    return node


def _asks(question: Any, op: Any, args: tuple[Any, ...], made: set[int]) -> Any:
    """The node of a question, priced; a generator for `run`."""
    if isinstance(question, str):
        return _leaf(question, op, question)
    op = parameters.declared(op)
    node = Node(question.word, op)
    if node.empty:
        node.fired = False
        return node
    row = question.row_of(op)
    if row is not None:
        parts = None
        if question.allows(row, op, node, False):
            parts = row.parts(question, op, args)
            if parts is None:
                node.refuse(row, "right side", None, "left as written")
        if parts is not None:
            node.answered(row, op)
            for ask in parts:
                node.parts.append((yield (*ask, made)))
            if row.passes and node.parts:
                node.by = node.parts[0].by
            where, others = row.doubt(op, args) or (node.unsure, None)
            if where:
                node.unsure, node.instead = where, Node(question.word, op)
                if others is None:
                    _by_dense(node.instead, question, op, args, set())
                else:
                    node.instead.fired = False
                    for ask in others:
                        if ask is None:
                            node.instead.fired = True
                            _by_dense(node.instead, question, op, args, set())
                        else:
                            node.instead.parts.append((yield (*ask, set())))
            return node
    node.unsure = ""
    _by_dense(node, question, op, args, made)
    return node


def _by_dense(node: Node, question: Any, op: Any, args: tuple[Any, ...], made: set[int]) -> None:
    """The node of an answer by the dense form."""

    def parts(questions: Any) -> list[Node]:
        found = []
        for other in questions:
            found.append(Node(other.word, op))
            found[-1].price = other.dense_price(op, other.defaults)
        return found

    node.parts += parts(question.dense_asks(op, args))
    node.price = question.dense_price(op, args)
    held = op._head == "dense" and op._init is not None
    if not held and id(op) not in made:
        made.add(id(op))
        node.parts.insert(0, _leaf("dense form", op, "dense"))
    doubt = question.doubt(op, *args) if question.doubt is not None else None
    if doubt is not None:
        node.unsure, node.instead = doubt[0], Node(question.word, op)
        node.instead.parts = parts(doubt[1])


def planned(question: Any, op: Any, *args: Any) -> Node:
    """The tree of a question, priced; nothing is computed."""
    node: Node = run(_asks, question, op, args, set())
    return node


def dense_forms(question: Any, op: Any, *args: Any) -> set[int]:
    """The operators, by `id`, whose dense forms the answer takes, as it is planned."""
    made: set[int] = set()
    run(_asks, question, op, args, made)
    return made


# -- while it runs --


class Trace:
    """What runs within one call, filled in by the questions that run."""

    def __init__(self, root: Node, record: list[dict[str, Any]]) -> None:
        self.stack = [root]
        self._record, self._seen, self._spent = record, len(record), 0.0

    @property
    def top(self) -> Node:
        return self.stack[-1]

    def _own(self, started: float, spent: float) -> float:
        """The time since ``started`` without that of nested questions, and of plans, which have
        records of their own."""
        new = self._record[self._seen :]
        self._seen = len(self._record)
        plans = sum(data["took"] or 0.0 for data in new)
        return time.perf_counter() - started - (self._spent - spent) - plans

    @contextlib.contextmanager
    def node(self, name: str, op: Any) -> Iterator[Node]:
        """A part of what runs, with its time."""
        node = Node(name, op)
        node.fired = False
        self.top.parts.append(node)
        self.stack.append(node)
        started, spent = time.perf_counter(), self._spent
        try:
            yield node
        finally:
            self.stack.pop()
            node.took = max(self._own(started, spent), 0.0)
            self._spent = spent + time.perf_counter() - started

    def ask(self, question: Any, op: Any, *args: Any) -> Any:
        """Answers a question as `run` does, with a node for each request."""
        frames: list[tuple[Any, Node]] = []
        whole, before = time.perf_counter(), self._spent
        above = len(self.stack)

        def enter(operand: Any, *more: Any) -> None:
            node = Node(question.word, operand)
            node.fired, node.took = False, 0.0
            self.top.parts.append(node)
            self.stack.append(node)
            frames.append((question._steps(operand, *more), node))

        value: Any = None
        try:
            enter(op, *args)
            while frames:
                generator, node = frames[-1]
                started, spent = time.perf_counter(), self._spent
                try:
                    asked = generator.send(value)
                except StopIteration as done:
                    frames.pop()
                    self.stack.pop()
                    value = done.value
                else:
                    enter(*asked)
                    value = None
                finally:
                    node.took = (node.took or 0.0) + max(self._own(started, spent), 0.0)
        finally:
            del self.stack[above:]
            self._spent = before + time.perf_counter() - whole
        return value


_trace: ContextVar[Trace | None] = ContextVar("pylinop.trace", default=None)


def here() -> Trace | None:
    """The trace of what runs here and now, if someone wants to see it."""
    return _trace.get()


@contextlib.contextmanager
def recorded(
    name: str, op: Any, why: str = "", others: list[dict[str, Any]] | None = None
) -> Iterator[None]:
    """Within ``pl.explaining()``, what the questions of a block do becomes one record."""
    record = config.record()
    if record is None or _trace.get() is not None:
        yield
        return
    root = Node(name, op)
    root.fired = False
    trace = Trace(root, record)
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)
        if root.parts:
            record.append(data(name, op, root, why, others))


def noted(label: str, name: str, operand: Any, flops: float, began: float) -> None:
    """Within ``pl.explaining()``: one piece of work that is no question, and its time so far."""
    record = config.record()
    if record is None:
        return
    root, node = Node(name, operand), Node(name, operand)
    root.fired, node.label = False, label
    node.price = Price("structure", flops, flops * 3e-10, float(operand.nbytes), 0)
    node.took = time.perf_counter() - began
    root.parts.append(node)
    record.append(data(name, operand, root, "", None))


# -- as an explanation --


def _step(node: Node) -> dict[str, Any]:
    return {
        "name": _label(node), "writes": "out", "reads": [node.what], "flops": node.price.flops,
        "bytes": node.price.bytes, "seconds": node.price.seconds, "took": node.took,
        "conditional": False,
    }  # fmt: skip


def _label(node: Node) -> str:
    return node.rule or node.label or (node.name if node.by == "plan" else f"{node.name}-dense")


def _doubts(nodes: list[Node]) -> list[dict[str, Any]]:
    """What else may run, where numbers say that; each once."""
    found: dict[str, dict[str, Any]] = {}
    left = [node for node in reversed(nodes) if node.instead is not None]
    while left:
        node = left.pop()
        other = node.instead
        if other is not None:
            inner = list(other.walk())
            left += [n for n in reversed(inner) if n.instead is not None]
            words = [f"{_label(n)} of {n.what}" for n in inner if n.fired]
            text = f"{', '.join(words)}, {node.unsure}"
            found.setdefault(text, other.total._asdict() | {"text": text})
    return list(found.values())


def _rules(nodes: list[Node]) -> list[dict[str, Any]]:
    """Fired and refused, each once with its count."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for node in nodes:
        said = list(node.refused)
        if node.rule:
            fired = {"outcome": "fired", "by": None, "guard": None, "why": None}
            said.append({"name": node.rule} | fired)
        for row in said:
            found.setdefault((row["name"], row["outcome"]), row | {"count": 0})["count"] += 1
    return list(found.values())


def _text(action: str, op: Any, nodes: list[Node], made: dict[str, Any], why: str) -> str:
    """As the core's explanations read."""
    fired = [r for r in made["rules"] if r["outcome"] == "fired"]
    text = f"written   {action} of {type(op).__name__} {op.shape}\n"
    if why:
        text += f"method    {why}\n"
    if fired:
        names = ", ".join(r["name"] for r in fired)
        text += f"rules     {sum(r['count'] for r in fired)} fired: {names}\n"
    off = [r["name"] for r in made["rules"] if r["by"] == "config"]
    if off:
        text += f"off       {', '.join(off)}\n"
    refused = [r for r in made["rules"] if r["outcome"] == "refused" and r["by"] != "config"]
    if refused:
        why_not = [f"guard {r['guard']}" if r["guard"] else r["why"] for r in refused]
        words = [f"{r['name']} ({said})" for r, said in zip(refused, why_not, strict=True)]
        text += f"refused   {', '.join(words)}\n"
    for other in made["alternatives"]:
        text += f"instead   {other['text']}: estimated {other['seconds']:.3g} s\n"
    text += f"steps     {len(nodes)}\n"
    for i, (node, step) in enumerate(zip(nodes, made["steps"], strict=True)):
        note = f"   [{node.note}]" if node.note else ""
        text += f"  {i:2} {step['name']:14} {node.what}{note}\n"
        text += f"     {step['flops']:.3g} flops, {step['bytes']:.3g} bytes\n"
        took = "" if node.took is None else f", took {node.took:.3g} s"
        text += f"     estimated {step['seconds']:.3g} s{took}\n"
    text += f"total     {made['flops']:.3g} flops, {made['bytes']:.3g} bytes moved, "
    text += f"estimated {made['seconds']:.3g} s\n"
    if made["took"] is not None:
        text += f"          took {made['took']:.3g} s\n"
    return text + f"memory    {made['memory']} bytes at most\n"


def data(
    action: str, op: Any, root: Node, why: str = "", others: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """An explanation as the core gives it."""
    nodes = [node for node in root.walk() if node.fired]
    others = [*(others or ()), *_doubts(nodes)]
    total = Price("", 0.0, 0.0, 0.0, 0).plus(*(node.price for node in nodes))
    took = [node.took for node in nodes if node.by != "plan"]
    made: dict[str, Any] = {
        "action": action, "order": None, "reserve": 0,
        "rules": _rules(nodes), "steps": [_step(node) for node in nodes],
        "alternatives": [{"rule": "", **other} for other in others],
        "flops": total.flops, "bytes": total.bytes, "seconds": total.seconds,
        "memory": total.memory,
        "took": sum(t for t in took if t is not None) if None not in took else None,
    }  # fmt: skip
    made["text"] = _text(action, op, nodes, made, why)
    return made


def explained(
    action: str, op: Any, root: Node, why: str = "", others: list[dict[str, Any]] | None = None
) -> Explanation:
    """The tree as an explanation."""
    return Explanation._of(data(action, op, root, why, others))
