"""Records an iterative solve within ``with pl.explaining()`` as one computation."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import config, errors
from .._base.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Iterator


def product_plan(op: Any, x: Any) -> Explanation | None:
    return None if op._opaque else Explanation._of(op._explain(0, x, 0, 0))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing within is recorded by ``pl.explaining()``."""
    local = config._local.get()
    off = config._Local({k: v for k, v in (local or {}).items() if k != "_record"})
    token = config._local.set(off)
    try:
        yield
    finally:
        config._local.reset(token)


@contextlib.contextmanager
def noted(p: Any, records: list[Any]) -> Iterator[None]:
    """Records a solve within ``with pl.explaining()`` as one computation, in place of its
    products."""
    record = config.record()
    if record is None:
        yield
        return
    known = len(records)
    try:
        with quiet():
            yield
        run = records[-1] if len(records) > known else None
    except errors.ConvergenceError as error:
        run = error.record
        raise
    except BaseException:
        run = None
        raise
    finally:
        if run is not None:
            record.append(_data(p, run, product_plan(*p.said)))


def _data(p: Any, run: Any, one: Explanation | None) -> dict[str, Any]:
    """An explanation as the core gives it."""
    op, b = p.said
    kind, shape = type(op).__name__, op.shape
    products = f"{run.matvecs} products"
    lines = [("written", f"solve {kind} {shape}, b {b.shape}, {p.dtype}")]
    lines.append(("method", f"{run.method} ({run.why})"))
    lines += [("tried", f"{name}: {why}") for name, why in run.tried[:-1]]
    if p.M is not None:
        how = getattr(p.M, "proposal", None)
        lines.append(("M", f"{how or repr(p.M)}"))
    lines.append(("took", f"{run.iterations} iterations, {products}, {run.passes} passes"))
    ends = f"by the {run.criterion}" if run.criterion else "not converged"
    lines.append(("residual", f"{run.residual:.3g} |b|, recomputed: {ends}"))
    if run.backward_error is not None:
        lines.append(("backward", f"error {run.backward_error:.3g}"))
    flops, moved, seconds, memory = (
        (one.flops, one.bytes, one.seconds, one.memory) if one else (0.0, 0.0, 0.0, 0)
    )
    memory += run.memory
    total = {"flops": flops * run.matvecs, "bytes": moved * run.matvecs}
    total["seconds"] = seconds * run.matvecs
    lines.append(("total", f"{total['flops']:.3g} flops, estimated {total['seconds']:.3g} s, "
        f"took {run.time:.3g} s"))  # fmt: skip
    lines.append(("memory", f"{memory} bytes at most"))
    step = {"name": run.method, "writes": "x", "reads": [kind, "b"], "took": run.time, **total}
    return {
        "text": "".join(f"{name:9} {text}\n" for name, text in lines), "action": "solve",
        "rules": [], "steps": [step], "order": None, "alternatives": [], **total,
        "memory": memory, "reserve": 0, "took": run.time, "answer": "to its tolerance",
        "iterations": run.iterations, "residual": run.residual, "method": run.method,
    }  # fmt: skip


def least_squares_data(op: Any, found: Any, memory: int, took: float) -> dict[str, Any]:
    """Of an iterative ``lstsq``, likewise: an iteration, or a pass, takes two products."""
    x = found[0]
    one = product_plan(op, x)
    count = 2 * int(sum(found.iterations)) if x.ndim > 1 else 2 * int(found.iterations)
    columns = x.shape[-1] if x.ndim > 1 else 1
    flops, moved, seconds = (one.flops, one.bytes, one.seconds) if one else (0.0, 0.0, 0.0)
    each = count / columns
    total = {"flops": flops * each, "bytes": moved * each, "seconds": seconds * each}
    kind, problems = type(op).__name__, found.problem
    problems = problems if isinstance(problems, str) else ", ".join(dict.fromkeys(problems))
    lines = [
        ("written", f"lstsq {kind} {op.shape}, x {x.shape}, {x.dtype}"),
        ("method", found.method),
        ("took", f"{count // 2} iterations or passes of two products, {columns} columns"),
        ("residual", f"{np.max(found.residual, initial=0.0):.3g}, recomputed: {problems}"),
        ("total", f"{total['flops']:.3g} flops, estimated {total['seconds']:.3g} s, "
         f"took {took:.3g} s"),
        ("memory", f"{memory} bytes at most"),
    ]  # fmt: skip
    step = {"name": found.method, "writes": "x", "reads": [kind, "b"], "took": took, **total}
    return {
        "text": "".join(f"{name:9} {text}\n" for name, text in lines), "action": "lstsq",
        "rules": [], "steps": [step], "order": None, "alternatives": [], **total,
        "memory": memory, "reserve": 0, "took": took, "answer": "to its tolerance",
        "method": found.method,
    }  # fmt: skip
