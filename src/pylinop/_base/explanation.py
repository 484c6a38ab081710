"""Explanations say how something is computed, as text, as data and as a table in a notebook."""

import textwrap
from types import TracebackType
from typing import Any, Literal, Self

from . import config
from .explanation_text import EXACT, amount, arranged, asked, in_reserve, in_short, time
from .lazy_import import Standard

_html = Standard("html")

WIDTH = 100


def _wrapped(text: str, width: int = WIDTH) -> str:
    lines = []
    for line in text.rstrip("\n").split("\n"):
        if len(line) <= width:
            lines.append(line)
            continue
        hang = " " * (10 if line[:1].strip() else len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(
            line, width, subsequent_indent=hang, drop_whitespace=True, break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def _full(part: str) -> str:
    """The text before wrapping."""
    return str(part._data["text"]) if isinstance(part, Explanation) else part


class Explanation(str):
    """How something is computed: text, and the same as data.

    Attributes
    ----------
    rules : list of dict
        Rules that fired or were refused, in order: name, outcome ('fired' or 'refused'), by
        ('guard', 'right side', 'cost', 'config'), guard, why, count. ``fired``: names alone.
    steps : list of dict
        The steps: name, writes, reads, flops, bytes, seconds (estimated), took (measured; None if
        it did not run: a transpose by strides, a branch not taken, a step for a value that was
        cached).
        As data for other programs: arguments (numbers of slots, the output first), integers and
        number (parameters of the kernel), by_strides (nothing is moved), accumulates (adds to its
        output), places (writes a block of it); when, late: (mask, value), the slot of flags that
        say whether it runs, None: always; fails_into: the mask that a failure sets instead of
        being an error; escapes: (mask, step) where a failure goes on; derived: which one it makes.
    slots : list of dict
        The arrays that steps read and write: kind ('leaf', 'temporary', 'result', 'derived'),
        dtype, shape, core (how many trailing dimensions are not batch), number (of the leaf or
        derived value), alias (None, or of which slot it is another name: of, as ('transpose',
        'block', 'window', 'whole'), row, column, from).
    derived : list of dict
        What is kept for later calls: step, bytes (of one batch element), leaves (on whose content
        it rests; None: too many to tell).
    leaves : list of ndarray or None
        The operands' arrays, by number, as long as they live; None for a right-hand side, and of a
        plan that was made for other operands of the same structure.
    result : int or None
        The slot of the result; None where several plans are run.
    alternatives : list of dict
        Other ways that were priced and not taken: text or rule, and the estimated seconds.
    plans : list of Explanation
        The parts, where several plans are run; else the explanation itself.
    verified : list of dict
        With ``pl.config(verify=True)``: text, and the ratio of the largest error to what is
        allowed.
    rcond : float or None
        The least reciprocal condition number of what was run, an estimate from its factors and
        spectra.
    flops, bytes, seconds, memory, took
        Totals, all estimated except took, which is None where nothing was run. ``memory`` is the
        most bytes at one time, without your own arrays.
    """

    _data: dict[str, Any]
    plans: "list[Explanation]"

    @classmethod
    def _of(cls, data: dict[str, Any]) -> "Explanation":
        if data.get("rcond") is not None and "\nrcond " not in data["text"]:
            known = f"rcond     {data['rcond']:.3g} at most, by the factors and spectra at hand\n"
            data = data | {"text": data["text"] + known}
        lines = data.get("lines") or arranged(data)
        data = data | {"lines": lines, "text": f"{in_short(data)}\n{lines}"}
        made = cls(_wrapped(data["text"]))
        made._data = data
        made.plans = [made]
        return made

    @classmethod
    def _joined(cls, parts: "list[tuple[str, Explanation | str]]") -> "Explanation":
        """Several plans, or calls of NumPy, each under its own heading."""
        text = "".join(
            _wrapped(title) + textwrap.indent(_wrapped(_full(part), WIDTH - 2), "  ")
            for title, part in parts
        )
        plans = [p for _, part in parts if isinstance(part, Explanation) for p in part.plans]
        sums: dict[str, Any] = {
            key: [row for p in plans for row in p._data[key]]
            for key in ("rules", "steps", "alternatives")
        }
        for key in ("flops", "bytes", "seconds"):
            sums[key] = sum((p._data[key] for p in plans), 0.0)
        took = [p._data["took"] for p in plans]
        sums["took"] = sum(took) if took and None not in took else None
        known = [p.rcond for p in plans if p.rcond is not None]
        sums["rcond"] = min(known, default=None)
        sums["memory"] = max((p._data["memory"] for p in plans), default=0)
        sums["answer"] = " and ".join(dict.fromkeys(p._data.get("answer", EXACT) for p in plans))
        sums["verified"] = [row for p in plans for row in p.verified]
        if len(plans) > 1:
            text = _wrapped(f"{in_short({**sums, 'action': f'{len(plans)} plans'})}") + text
        made = cls(text or "nothing was computed\n")
        made.plans, made._data = plans, sums | {"text": text}
        return made

    def __repr__(self) -> str:
        return str.__str__(self)

    def _called(self, action: str) -> "Explanation":
        """What was asked, where the plan is that of another action's product."""
        if "action" not in self._data:
            return self
        return Explanation._of(self._data | {"action": action})

    def __reduce__(self) -> Any:
        data = {k: v for k, v in self._data.items() if k != "leaves"}
        return _rebuild, (str.__str__(self), data, [] if self.plans == [self] else self.plans)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Rules that fired or were refused, in the order of their first mention."""
        return list(self._data["rules"])

    @property
    def fired(self) -> list[str]:
        """Names of the rules that fired, each once."""
        names = [row["name"] for row in self._data["rules"] if row["outcome"] == "fired"]
        return list(dict.fromkeys(names))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps."""
        return list(self._data["steps"])

    @property
    def slots(self) -> list[dict[str, Any]]:
        """The arrays of the plan."""
        return list(self._data.get("slots", ()))

    @property
    def derived(self) -> list[dict[str, Any]]:
        """The values that are kept for later calls."""
        return list(self._data.get("derived", ()))

    @property
    def leaves(self) -> list[Any]:
        """The operands' arrays."""
        return [a and a() for a in self._data.get("leaves", ())]

    @property
    def result(self) -> int | None:
        """The slot of the result."""
        value = self._data.get("result")
        return None if value is None else int(value)

    @property
    def alternatives(self) -> list[dict[str, Any]]:
        """What else was priced."""
        return list(self._data["alternatives"])

    @property
    def flops(self) -> float:
        """Flops of all steps."""
        return float(self._data["flops"])

    @property
    def bytes(self) -> float:
        """Bytes that all steps move."""
        return float(self._data["bytes"])

    @property
    def seconds(self) -> float:
        """The estimated time."""
        return float(self._data["seconds"])

    @property
    def memory(self) -> int:
        """The most bytes at one time, arrays of yours apart."""
        return int(self._data["memory"])

    @property
    def took(self) -> float | None:
        """The measured time; None where nothing was run."""
        value = self._data["took"]
        return None if value is None else float(value)

    @property
    def rcond(self) -> float | None:
        """The least reciprocal condition number that a factor or a spectrum has shown; None where
        nothing was run, or where none is known: a test that finds it far from the rounding unit
        goes no further."""
        value = self._data.get("rcond")
        return None if value is None else float(value)

    @property
    def verified(self) -> list[dict[str, Any]]:
        """What was verified with ``pl.config(verify=True)``: text, and the ratio of the largest
        error to what is allowed (None: not verified, the text says why)."""
        said = self._data.get("verified") or []
        return [said] if isinstance(said, dict) else list(said)

    def _repr_html_(self) -> str:
        return "".join(map(_table, self.plans)) or f"<pre>{_html.escape(str.__str__(self))}</pre>"


def _rebuild(text: str, data: dict[str, Any], plans: list[Explanation]) -> Explanation:
    made = Explanation(text)
    made._data = data
    made.plans = plans or [made]
    return made


def _cells(tag: str, values: Any) -> str:
    """A row: the first columns are words, the others numbers, which do not break."""
    made = []
    for i, v in enumerate(values):
        left = " style='text-align:left'" if 0 < i < 4 else ""
        made.append(f"<{tag}{left}>{_html.escape(str(v))}</{tag}>")
    return f"<tr>{''.join(made)}</tr>"


def _whole(text: str) -> str:
    """Text that is not broken between lines."""
    return text.replace(" ", "\u00a0")


def _framed(rows: str) -> str:
    """A table that is moved sideways where it is wider than the page."""
    return f"<div style='overflow-x:auto'><table>{rows}</table></div>"


def _step_rows(steps: list[tuple[int, dict[str, Any]]], timed: bool) -> str:
    rows = []
    for i, s in steps:
        row = [i, s["name"], _whole(s["writes"]), " ".join(map(_whole, s["reads"]))]
        numbers = [amount(s["flops"], ""), amount(s["bytes"], "B"), time(s["seconds"])]
        if timed:
            numbers.append("" if s["took"] is None else time(s["took"]))
        row += map(_whole, numbers)
        rows.append(_cells("td", row))
    return "".join(rows)


def _table(plan: Explanation) -> str:
    """One plan: what is done, its steps as a table, the rest folded."""
    data = plan._data
    timed = data["took"] is not None
    head = ["", "step", "writes", "reads", "flops", "bytes", "expected"]
    sums = [amount(data["flops"], ""), amount(data["bytes"], "B"), time(data["seconds"])]
    if timed:
        head.append("took")
        sums.append(time(data["took"]))
    total = ["", "total", "", "", *map(_whole, sums)]
    steps = list(enumerate(data["steps"]))
    road = _step_rows([(i, s) for i, s in steps if not in_reserve(s)], timed)
    reserve = [(i, s) for i, s in steps if in_reserve(s)]
    fired = [r["name"] for r in data["rules"] if r["outcome"] == "fired"]
    refused = [f"{r['name']} ({r['why']})" for r in data["rules"] if r["outcome"] == "refused"]
    other = [
        f"{o['text'] or 'by ' + o['rule']}: {time(o['seconds'])}" for o in data["alternatives"]
    ]
    lines = [("planned", [data.get("order") or ""])]
    lines += [("instead", other)]
    lines += [("rcond", [] if plan.rcond is None else [f"{plan.rcond:.3g}"])]
    lines += [("verified", [row["text"] for row in plan.verified])]
    said = "".join(
        f"<div><b>{name}</b> {_html.escape(', '.join(words))}</div>"
        for name, words in lines
        if any(words)
    )
    if reserve:
        table = _framed(_cells("th", head) + _step_rows(reserve, timed))
        said += _fold(f"{len(reserve)} more steps, where one fails", table)
    formula = "\n".join(_formula(data["text"]))
    what = asked(data)
    said_first = _html.escape(in_short(data)[len(what) :])
    return (
        f"<div><b>{_html.escape(what)}</b>{said_first}</div>"
        f"{_framed(_cells('th', head) + road + _cells('th', total))}{said}"
        f"{_folded('fired', fired)}{_folded('refused', refused)}"
        + (_fold("as written", f"<pre>{_html.escape(formula)}</pre>") if formula else "")
    )


def _formula(text: str) -> list[str]:
    """The lines of the formula, as written and in canonical form."""
    lines = text.splitlines()
    found = [i for i, line in enumerate(lines) if line.startswith("written")]
    return lines[found[-1] :] if found else []


def _fold(summary: str, inner: str) -> str:
    return f"<details><summary>{summary}</summary>{inner}</details>"


def _folded(name: str, words: list[str]) -> str:
    """Names of rules behind a line that says how many there are."""
    if not words:
        return ""
    shown = _html.escape(", ".join(words))
    return _fold(f"{len(words)} rules {name}", shown)


class explaining:
    """Record how everything in a block is computed: ``with pl.explaining() as e:``.

    After the block (and in it) ``e`` describes what has been computed so far in its context, not in
    other threads: as text when printed, with the time that each step took; as data in ``e.plans``,
    ``e.rules``, ``e.steps``, ``e.alternatives``. Every computation is planned a second time for
    this, which costs time. Functions of operators (eigh, cholesky, expm, ...) are recorded as trees
    of rules; of arrays on other devices the nodes, without times. Callables, and what NumPy
    computes alone, are not recorded.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Dense(np.ones((3, 3)))
    >>> with pl.explaining() as e:
    ...     t = (A @ A).trace()
    ...     y = A @ np.ones(3)
    >>> len(e.plans), [step["name"] for step in e.plans[1].steps]
    (2, ['gemm'])
    """

    def __init__(self) -> None:
        self._record: list[dict[str, Any]] = []
        self._made: list[Explanation] = []
        self._tokens: list[Any] = []

    def __enter__(self) -> Self:
        local = config._local
        made = config._Local({**(local.get() or {}), "_record": self._record})
        self._tokens.append(local.set(made))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        config._local.reset(self._tokens.pop())
        outer = config.record()
        if outer is not None:  # a block within a block
            outer += self._record
        return False

    @property
    def plans(self) -> list[Explanation]:
        """One explanation for each plan that was run, in order."""
        for data in self._record[len(self._made) :]:
            self._made.append(Explanation._of(data))
        return list(self._made)

    @property
    def explanation(self) -> Explanation:
        """All plans as one explanation."""
        plans = self.plans
        if len(plans) == 1:
            return plans[0]
        return Explanation._joined([(f"{i}. {p._data['action']}", p) for i, p in enumerate(plans)])

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Rules that fired or were refused, in the order of their first mention."""
        return self.explanation.rules

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps."""
        return self.explanation.steps

    @property
    def alternatives(self) -> list[dict[str, Any]]:
        """What else was priced."""
        return self.explanation.alternatives

    @property
    def rcond(self) -> float | None:
        """The least reciprocal condition number known."""
        return self.explanation.rcond

    @property
    def verified(self) -> list[dict[str, Any]]:
        """What was verified."""
        return self.explanation.verified

    def __str__(self) -> str:
        return str(self.explanation)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()
