"""``method=`` of trace, logdet and diagonal: the way that was asked for, the ways that the allowed
accuracy leaves open, and the price of each. (_eigen/choose_method.py does the same for eigh.)

"auto" is the direct way. Only under ``pl.config(accuracy="estimate")`` may it be an estimate, and
then it is one where that is priced lower."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import config, explanation
from .._operators.convert import as_operator
from . import estimators
from .sampling import Sampling

NAMES = {
    "trace": ("auto", "direct", "hutchinson", "hutch++", "xtrace"),
    "logdet": ("auto", "direct", "slq"),
    "diagonal": ("auto", "direct", "hutchinson", "hutch++"),
}
_PROBES, _STEPS = 30, 20  # with which an estimate is priced


def canonical(method: Any, names: tuple[str, ...]) -> str:
    """The method's name; "exact" is "direct"."""
    method = "direct" if method == "exact" else method
    if method not in names:
        said = ", ".join(map(repr, names))
        raise ValueError(f"method must be one of {said}, got {method!r}")
    return str(method)


def row_of(text: str) -> dict[str, Any]:
    """A way without a price."""
    return {"text": text, "seconds": np.inf, "flops": 0.0, "bytes": 0.0, "memory": 0}


def _direct(op: Any, action: str) -> dict[str, Any]:
    row = row_of("direct")
    if op._opaque or 0 in op.shape:
        return row
    planned = op.explain("det" if action == "logdet" else action)
    return row | {key: getattr(planned, key) for key in ("seconds", "flops", "bytes", "memory")}


def _estimated(op: Any, action: str, method: str, probes: int) -> dict[str, Any]:
    """The price of an estimate that takes so many probes."""
    columns = {"hutch++": 1.5, "xtrace": 2.0, "slq": float(_STEPS)}.get(method, 1.0) * probes
    row = row_of(method)
    if op._opaque or 0 in op.shape:
        return row
    planned = op.explain("apply")
    for key in ("seconds", "flops", "bytes"):
        row[key] = columns * getattr(planned, key)
    n, item = op.shape[-1], 8
    kept = _STEPS * probes if method == "slq" else 2 * probes
    return row | {"memory": kept * n * item}


def options(op: Any, action: str, method: str, probes: Any, price: bool) -> Any:
    """(the way taken, why, all ways with their prices, that one first). A method that the user
    names is taken; the others are then priced only where someone wants to see the prices."""
    names = NAMES[action]
    method = canonical(method, names)
    if not price and method != "auto":
        return method, f"method={method!r}", [{"text": method}]
    wanted = probes if isinstance(probes, int) and not isinstance(probes, bool) else _PROBES
    rows = [_direct(op, action)]
    rows += [_estimated(op, action, name, wanted) for name in names[2:]]
    why = f"method={method!r}"
    if method == "auto":
        allowed = config.get("accuracy")
        method, why = "direct", f"accuracy={allowed!r}"
        if allowed == "estimate" and action != "diagonal":
            cheap = rows[1]
            if op._opaque or cheap["seconds"] < rows[0]["seconds"]:
                method = cheap["text"]
            why += ", the cheaper"
    rows.sort(key=lambda row: row["text"] != method)
    return method, why, rows


def others(rows: list[Any]) -> list[dict[str, Any]]:
    return [{"text": r["text"], "rule": "", "seconds": r["seconds"]} for r in rows[1:]]


def data(op: Any, action: str, why: str, rows: list[Any], took: float | None) -> dict[str, Any]:
    """An explanation as the core gives it."""
    row = rows[0]
    step = {"name": row["text"], "writes": "out", "reads": [type(op).__name__], "took": took}
    step |= {key: row[key] for key in ("flops", "bytes", "seconds")}
    text = f"written   {type(op).__name__} {op.shape}\n"
    text += f"method    {row['text']} ({why})\n"
    for other in rows[1:]:
        text += f"instead   {other['text']}: estimated {other['seconds']:.3g} s\n"
    text += f"total     {row['flops']:.3g} flops, {row['bytes']:.3g} bytes moved, estimated "
    text += f"{row['seconds']:.3g} s\nmemory    {row['memory']} bytes at most\n"
    return {
        "text": text, "action": action, "rules": [], "steps": [step], "order": None,
        "alternatives": others(rows),
        "flops": row["flops"], "bytes": row["bytes"], "seconds": row["seconds"],
        "memory": row["memory"], "reserve": 0, "took": took,
        "answer": "to its tolerance" if action.startswith("eig") else "an estimate",
    }  # fmt: skip


def explained(op: Any, action: str, method: str, how: dict[str, Any]) -> Any:
    """The explanation of an action with a method."""
    chosen, why, rows = options(op, action, method, how.get("num_samples"), True)
    if chosen == "direct":
        more = {"offset": how.get("offset", 0)} if action == "diagonal" else {}
        made = op.explain("det" if action == "logdet" else action, **more)
        made._data = made._data | {"alternatives": made.alternatives + others(rows)}
        return made
    return explanation.Explanation._of(data(op, action, why, rows, None))


_WORDS = ("method", "bounds", "steps", *Sampling.__annotations__)


def number(
    A: Any, action: str, method: str, how: dict[str, Any], exact: Callable[[Any], Any]
) -> Any:
    """Trace, log-determinant or diagonal by a method; ``how`` has the options of the estimates."""
    op = as_operator(A)
    record = config.record()
    if method == "auto" and config.get("accuracy") == "exact":
        method = "direct"
    chosen, why, rows = options(op, action, method, how.get("num_samples"), record is not None)
    if chosen == "direct":
        if how and config.get("accuracy") == "exact":
            misspelt = [k for k in how if k not in _WORDS]
            if misspelt:
                word = misspelt[0]
                raise TypeError(
                    f"{action}() got an unexpected keyword argument {word!r}"
                    f"{config.near(word, _WORDS)}"
                )
            raise TypeError(
                f"{', '.join(how)}: that belongs to an estimate, "
                f"method={' or '.join(map(repr, NAMES[action][2:]))}"
            )
        return exact(op)
    if action == "logdet":
        made = estimators.estimate_logdet(op, **how)
    elif action == "trace":
        made = estimators.estimate_trace(op, method=chosen, **how)
    else:
        made = estimators.estimate_diagonal(op, method=chosen, **how)
    made.info |= {"why": why, "alternatives": rows[1:]}
    if record is not None:
        record.append(data(op, action, why, rows, None))
    return made
