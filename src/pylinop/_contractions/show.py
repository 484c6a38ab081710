"""A contraction's plan as text, and its path as NumPy writes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import equations, toeplitz, views
from .equations import Task


def _name(slot: int, operands: int) -> str:
    if slot < operands:
        return f"a{slot}"
    return "out" if slot == operands else f"t{slot - operands}"


def pairs(data: dict[str, Any]) -> list[tuple[int, int]]:
    n = data["operands"]
    live = list(range(n))
    made, new = [], n
    holds = {i: i for i in range(n)}  # which tensor lies in a slot
    for step in data["steps"]:
        if step["b"] < 0:
            holds[step["c"]] = holds[step["a"]]
            continue
        a, b = holds[step["a"]], holds[step["b"]]
        i, j = sorted((live.index(a), live.index(b)))
        made.append((i, j))
        live = [x for x in live if x not in (a, b)] + [new]
        holds[step["c"]] = new
        new += 1
    return made


def _line(step: dict[str, Any], operands: int) -> str:
    def name(slot: int) -> str:
        return _name(slot, operands)

    loops = step["loops"][: -2 if step["how"] == "nest" else None]
    calls = math.prod(loop["size"] for loop in loops)
    if step["how"] == "nest":
        inner = " x ".join(str(loop["size"]) for loop in step["loops"][-2:])
        what = f"{step['why'] or 'nest'} {inner}{', in tiles' if step['tiles'] else ''}"
    else:
        m, n, k = step["sizes"]
        what = f"{step['how']} m{m} n{n} k{k}"
        if step["group"][0]:
            what += f" in {k // step['group'][0]} windows of {step['group'][0]}"
    of = name(step["a"]) + (f", {name(step['b'])}" if step["b"] >= 0 else "")
    times = "1 call" if calls == 1 else f"{calls} {'products' if step['each'] else 'calls'}"
    return f"  {name(step['c']):4} <- {of:10} {what}, {times}, {step['flops']:.3g} flops"


def path(task: Task, arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[Any], str]:
    data, sized, labels = equations.plan(task, arrays)
    said = [f"einsum {task.equation.text}"]
    matrix = toeplitz.found(sized) if data is not None and task.path is None else None
    if matrix is not None:
        m, n = sized.sizes[matrix.row], sized.sizes[matrix.col]
        said.append(f"  recognised: the product with a Toeplitz matrix, {m} x {n}; else")
    said.append("  sizes " + ", ".join(f"{label} {n}" for label, n in sized.sizes.items()))
    for i, (a, axes) in enumerate(zip(arrays, labels)):
        said.append(f"  a{i}: {' '.join(axes) or '-'} of {a.dtype} {a.shape}")
    if data is None:
        text = f"  by numpy.einsum's loops, as written: {equations.dtype_of(task, arrays)}"
        return ["einsum_path", tuple(range(len(arrays)))], "\n".join([*said, text])
    if data["zero"]:
        said.append("  nothing to add up: zeros")
    if data["parts"] > 1:
        said.append(f"  in {data['parts']} parts, each:")
    said += [_line(step, data["operands"]) for step in data["steps"]]
    packed = sum(step["why"] in ("pack", "unpack") for step in data["steps"])
    said.append(
        f"  {data['flops']:.3g} flops, {data['bytes']} bytes of temporaries"
        f" ({data['workspace']} at once), {'nothing' if not packed else packed} packed,"
        f" estimated {data['seconds']:.2g} s"
    )
    result = views.merged_shape(sized)
    said.append(f"  result {result}")
    steps: list[Any] = pairs(data) if not data["zero"] else [(0, 1)] * (len(arrays) - 1)
    return ["einsum_path", *(steps or [(0,)])], "\n".join(said)
