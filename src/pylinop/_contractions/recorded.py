"""Contractions as ``with pl.explaining()`` records them, deferred ones and those computed now: the
plan in C, or who computes instead."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base import config
from . import equations, show
from .equations import Task


def _sized(name: str, shape: Any) -> str:
    return f"{name}({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _steps(data: dict[str, Any]) -> list[dict[str, Any]]:
    names = [_sized(slot["name"], slot["shape"]) for slot in data["slots"]]
    each = np.dtype(data["slots"][0]["dtype"]).itemsize
    made = []
    for step in data["steps"]:
        uses = [k for k in (step["a"], step["b"]) if k >= 0]
        count = [math.prod(data["slots"][k]["shape"]) for k in (step["c"], *uses)]
        made.append(
            {
                "name": step["why"] or step["how"],
                "writes": names[step["c"]],
                "reads": [names[k] for k in uses],
                "flops": step["flops"],
                "bytes": float(each * sum(count)),
                "seconds": step["seconds"],
                "took": None,
            }
        )
    return made


def run(task: Task, arrays: Sequence[Any], out: Any = None) -> Any:
    """The value, with what made it in the record, where there is one. What an operator computes (a
    Toeplitz matrix, a weighted Gram matrix) has told it there already."""
    __tracebackhide__ = True
    record = config.record()
    if record is None:
        return equations.run(task, arrays, out)
    known, start = len(record), time.perf_counter()
    value = equations.run(task, arrays, out)
    took = time.perf_counter() - start
    if len(record) > known:
        return value
    record.append(_said(task, arrays, value, took))
    return value


def _said(task: Task, arrays: Sequence[Any], value: Any, took: float) -> dict[str, Any]:
    """An explanation as the core gives it."""
    data, _, _ = equations.plan(task, arrays)
    said = show.path(task, arrays)[1].splitlines()
    lines = [("written", said[0]), *(("", line) for line in said[1:])]
    steps = [] if data is None else _steps(data)
    total = {
        "flops": 0.0 if data is None else data["flops"],
        "bytes": sum((s["bytes"] for s in steps), 0.0),
        "seconds": 0.0 if data is None else data["seconds"],
    }
    dtype = equations.dtype_of(task, arrays)
    size = np.size(value) * dtype.itemsize  # of objects a Python number, which has no bytes
    memory = size + (0 if data is None else data["workspace"])
    lines += [
        ("total", f"{total['flops']:.3g} flops, estimated {total['seconds']:.3g} s, "
         f"took {took:.3g} s"),
        ("memory", f"{memory} bytes at most, the result included"),
        ("steps", str(len(steps) or "by numpy.einsum's loops")),
    ]  # fmt: skip
    text = "".join(f"{a:9} {b}\n" if a else f"          {b.strip()}\n" for a, b in lines)
    text += "".join(
        f"   {i} {s['name']:14} {s['writes']} <- {' '.join(s['reads'])}\n"
        for i, s in enumerate(steps)
    )
    exact = dtype.kind in "biu"
    return {
        "text": text, "action": "contraction", "rules": [], "steps": steps, "order": None,
        "alternatives": [], **total, "memory": memory, "reserve": 0, "took": took,
        "answer": "exact" if exact else "exact to rounding",
    }  # fmt: skip


class Deferred:
    """The contraction of a `Task`, as the function of a LazyArray's node."""

    __name__ = "einsum"

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, *arrays: Any) -> Any:
        return np.asarray(run(self.task, [np.asarray(a) for a in arrays]), order="C")
