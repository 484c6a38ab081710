"""What is said of iterative solves: before, by ``op.explain("solve", b, method=...)``, and in
``with pl.explaining()``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.explanation import Explanation
from . import memory as _memory
from . import scipy_api

if TYPE_CHECKING:
    from collections.abc import Iterator


# -- while it is explained --


@contextlib.contextmanager
def noted(p: Any, records: list[Any]) -> Iterator[None]:
    """Writes down a solve within ``with pl.explaining()``, as one, in place of its products."""
    local = config._local.get()
    record = local.get("_record") if local else None
    if local is None or record is None:
        yield
        return
    quiet = config._Local({k: v for k, v in local.items() if k != "_record"})
    known = len(records)
    token = config._local.set(quiet)
    try:
        yield
        run = records[-1] if len(records) > known else None
    except errors.ConvergenceError as error:
        run = error.record
        raise
    except BaseException:
        run = None
        raise
    finally:
        one = _product(*p.said)
        config._local.reset(token)
        if run is not None:
            record.append(_data(p, run, one))


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
        "memory": memory, "reserve": 0, "took": run.time,
        "iterations": run.iterations, "residual": run.residual, "method": run.method,
    }  # fmt: skip


# -- explanations --


def _said(method: str, dtype: Any, options: dict[str, Any]) -> str:
    from .solve import _default_rtol

    rtol = _default_rtol(dtype) if options.get("rtol") is None else options["rtol"]
    atol = options.get("atol")
    bound = f"{rtol:g} |b|" if not atol else f"max({rtol:g} |b|, {atol:g})"
    name = "cg, minres, gmres where A looks Hermitian, else gmres, bicgstab"
    return (
        f"solve by {name if method == 'iterative' else method}: until |b - A x| <= {bound}, "
        "recomputed, or the backward error is at working accuracy; each iteration:\n"
    )


def explained(op: Any, run: bool, b: Any = None, method: Any = "auto", **options: Any) -> Any:
    """How ``solve(op, b, method=method)`` goes; ``run``: with the record of the run."""
    from . import batches
    from . import solve as it

    if not isinstance(method, str) or method not in it.METHODS:
        raise ValueError(f"no method {method!r}; there are {', '.join(it.METHODS)}")
    promise = options.pop("assume_a", None)
    options = {**it._options(options), "assume_a": promise}
    dtype = op.dtype or np.dtype(np.float64)
    side = np.zeros(op.shape[-2], dtype) if b is None else np.asarray(b)
    working = False
    if method in ("auto", "direct"):
        it._refuse(method, {k: v for k, v in options.items() if k != "assume_a"})
        plan = None if op._opaque else Explanation._of(_inverse_plan(op, side))
        working = method == "auto" and too_large(op, plan)
        if not working:
            parts = [(f"solve directly, method={method!r}\n", plan or "by LU of the dense form\n")]
            return _with_other(parts, "a product, as an iteration takes one", _product(op, side))
    x = np.zeros(side.shape, scipy_api.work_dtype(op, side))
    one: Any = _product(op, x) or "the operator's own product\n"
    title = _said("iterative" if working else method, x.dtype, options)
    if working:
        title = (
            "method='auto': the dense form would pass the memory limit, so it is tried by cg, "
            "minres, gmres where A looks Hermitian, else gmres, bicgstab, until the backward error "
            "is at working accuracy, recomputed; each iteration:\n"
        )
    parts = [(title, one)]
    M = options["M"]
    if isinstance(M, str) and len(op.shape) == 2:  # which one "auto" takes is known once it is made
        M = options["M"] = scipy_api.preconditioner(M, op)
    if not isinstance(M, str):  # a name, of a batch
        M = scipy_api.operator_or_name(M, op)
        x = x.astype(scipy_api.work_dtype(op, x, M), copy=False)
    if M is not None:
        how = getattr(M, "proposal", None)
        parts.append(("preconditioned by\n", f"{how or repr(M)}\n"))
    names = ("cg", "minres", "gmres") if working or method == "iterative" else (method,)
    whole = None
    if len(op.shape) > 2 and x.size:
        start = np.empty(x.shape, x.dtype)
        whole = batches.problem_of(op, start, M, names[-1], options, x.dtype)
    needed = [
        _vectors_of(name, op, M, x) if whole is None else it.memory_of(name, whole)
        for name in names
    ]
    limit = config.get("memory_limit")  # what would pass it is not tried
    if limit is not None:
        limit -= _memory.product_of(op, x)
    vectors = max((n for n in needed if limit is None or n <= limit), default=min(needed))
    parts.append(("vectors\n", f"{vectors:,} bytes at most, beside a product's\n"))
    if run:
        _, records = it.iterate(op, side, "iterative" if working else method, options, working)
        parts.append(("it took\n", "".join(f"{r!r} ({r.why})\n" for r in records)))
    plan = None if op._opaque else Explanation._of(_inverse_plan(op, side))
    made = _with_other(parts, "directly", plan)
    made._data["memory"] += vectors
    return made


def _vectors_of(name: str, op: Any, M: Any, x: Any) -> int:
    """Bytes of the vectors of one run, as the limit counts them."""
    from . import batches
    from . import solve as it

    x = x if x.ndim < 3 or len(op.shape) > 2 else batches.columns_of(x)
    x = x.reshape(x.shape[-2:]) if x.ndim < 3 or not x.size else x[(0,) * (x.ndim - 2)]
    M = None if isinstance(M, str) else M
    return it.memory_of(name, it._Problem(op, M, x, x, {}))


def _product(op: Any, x: Any) -> Explanation | None:
    return None if op._opaque else Explanation._of(op._explain(0, x, 0, 0))


def _with_other(parts: Any, text: str, plan: Explanation | None) -> Explanation:
    """The parts, and what else there was, with its estimates."""
    if plan is None:
        return Explanation._joined(parts)
    line = f"{text}: estimated {plan.seconds:.3g} s, {plan.memory:,} bytes at most\n"
    made = Explanation._joined([*parts, ("instead\n", line)])
    made._data["alternatives"].append({"text": text, "rule": None, "seconds": plan.seconds})
    return made


def _inverse_plan(op: Any, side: Any) -> Any:
    return _core._build("inverse", op)._explain(0, side, 0, 0)


def too_large(op: Any, plan: Any) -> bool:
    dense = op.size * np.dtype(op.dtype or np.float64).itemsize
    return passes(dense if plan is None else min(dense, plan.memory))


def passes(size: int) -> bool:
    """Is it more than the memory limit, or what is free?"""
    limit = config.get("memory_limit")
    free = config.free_memory() if limit is None else limit
    return free is not None and size > free
