"""What is computed on arrays elsewhere, as ``with pl.explaining()`` tells it: the nodes that were
walked, in order, and the rules by which a formula came to them. Nothing is timed: a device works on
while Python goes ahead."""

from __future__ import annotations

from typing import Any

from .._base import config

__all__ = ["Told"]


class Told:
    """One program's nodes."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.rules: list[dict[str, Any]] = []
        self.ways: dict[str, bool] = {}  # which nodes C looks at; are they tested where they lie?

    def step(self, name: str, shape: Any, reads: list[str]) -> None:
        """A node, or a function of NumPy's by its name."""
        at = len(self.steps)
        written = f"v{at}({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        self.steps.append(
            {
                "name": name, "writes": written, "reads": reads, "took": None,
                "flops": 0.0, "bytes": 0.0, "seconds": 0.0,
            }
        )  # fmt: skip

    def rows(self, op: Any, action: int, x: Any, k: int) -> None:
        """The rules by which an operator's action came to its nodes: those of its plan."""
        known = {(r["name"], r["outcome"]) for r in self.rules}
        found = op._explain(action, x, k, 0)["rules"]
        self.rules += [r for r in found if (r["name"], r["outcome"]) not in known]

    def record(self, program: Any, library: str, device: str) -> None:
        """Into the block that asks."""
        record = config.record()
        if record is None:
            return
        where = f"{len(self.steps)} nodes, by functions of {library} on {device}, not timed"
        lines = [("written", repr(program)), ("method", where)]
        untested = [head for head, tested in self.ways.items() if not tested]
        if untested:
            why = f"no value is looked at: {', '.join(untested)} by the way that needs none"
            lines.append(("planned", why))
        if any(self.ways.values()):
            names = ", ".join(head for head, tested in self.ways.items() if tested)
            lines.append(("checks", f"{names}: NaN where the test fails, which nothing waits for"))
        lines.append(("steps", str(len(self.steps))))
        lines += [
            ("", f"{k:4} {s['name']:14} {s['writes']} <- {' '.join(s['reads'])}".rstrip())
            for k, s in enumerate(self.steps)
        ]
        fired = [r["name"] for r in self.rules if r["outcome"] == "fired"]
        if fired:
            lines.append(("rules", f"{len(fired)} fired: {', '.join(fired)}"))
        record.append(
            {
                "text": "".join(f"{a:9} {b}\n" if a else f"{b}\n" for a, b in lines),
                "action": repr(program), "rules": self.rules, "steps": self.steps,
                "order": None, "alternatives": [], "flops": 0.0, "bytes": 0.0, "seconds": 0.0,
                "memory": 0, "reserve": 0, "took": None, "where": where,
            }
        )  # fmt: skip
