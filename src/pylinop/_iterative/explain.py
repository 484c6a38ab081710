"""Explanations of iterative solves, by ``op.explain("solve", b, method=...)`` before they run and
in ``with pl.explaining()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config
from .._base.explanation import Explanation, explaining
from . import batches, by_price, scipy_api, solve
from . import memory as _memory
from .problem import METHODS, Problem, default_rtol, options_of, refuse
from .record import product_plan

if TYPE_CHECKING:
    pass


# -- explanations --


def _said(method: str, dtype: Any, options: dict[str, Any]) -> str:
    rtol = default_rtol(dtype) if options.get("rtol") is None else options["rtol"]
    atol = options.get("atol")
    bound = f"{rtol:g} |b|" if not atol else f"max({rtol:g} |b|, {atol:g})"
    name = "cg, minres, gmres where A looks Hermitian, else gmres, bicgstab"
    return (
        f"solve by {name if method == 'iterative' else method}: until |b - A x| <= {bound}, "
        "recomputed, or the backward error is at working accuracy; each iteration:\n"
    )


def explained(op: Any, run: bool, b: Any = None, method: Any = "auto", **options: Any) -> Any:
    """Explains how ``solve(op, b, method=method)`` goes; with ``run``, from the record of the
    run."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"no method {method!r}; there are {', '.join(METHODS)}")
    assumed = options.pop("assume_a", None)
    options = {**options_of(options), "assume_a": assumed}
    dtype = op.dtype or np.dtype(np.float64)
    side = np.zeros(op.shape[-2], dtype) if b is None else np.asarray(b)
    working = False
    if method in ("auto", "direct"):
        refuse(method, {k: v for k, v in options.items() if k != "assume_a"})
        plan = None if op._opaque else Explanation._of(_inverse_plan(op, side))
        working = method == "auto" and too_large(op, plan)
        offered = method == "auto" and by_price.offered(op, side, plan)
        if offered:
            return _by_price(op, side, plan, offered, run, working)
        if not working:
            parts = [(f"solve directly, method={method!r}\n", plan or "by LU of the dense form\n")]
            return _with_other(
                parts, "a product, as an iteration takes one", product_plan(op, side)
            )
    x = np.zeros(side.shape, scipy_api.work_dtype(op, side))
    one: Any = product_plan(op, x) or "the operator's own product\n"
    title = _said("iterative" if working else method, x.dtype, options)
    if working:
        title = (
            "method='auto': the dense form would pass the memory limit, so it is tried by cg, "
            "minres, gmres where A looks Hermitian, else gmres, bicgstab, until the backward error "
            "is at working accuracy, recomputed; each iteration:\n"
        )
    parts = [(title, one)]
    M = options["M"]
    if isinstance(M, str) and len(op.shape) == 2:  # what "auto" takes is known once it is made
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
        _vectors_of(name, op, M, x) if whole is None else _memory.memory_of(name, whole)
        for name in names
    ]
    limit = config.get("memory_limit")  # a method that would pass the limit is not tried
    if limit is not None:
        limit -= _memory.product_of(op, x)
    vectors = max((n for n in needed if limit is None or n <= limit), default=min(needed))
    parts.append(("vectors\n", f"{vectors:,} bytes at most, beside a product's\n"))
    if run:
        _, records = solve.iterate(op, side, "iterative" if working else method, options, working)
        parts.append(("it took\n", "".join(f"{r!r} ({r.why})\n" for r in records)))
    plan = None if op._opaque else Explanation._of(_inverse_plan(op, side))
    made = _with_other(parts, "directly", plan)
    made._data["memory"] += vectors
    return made


def _by_price(op: Any, side: Any, plan: Any, offered: Any, run: bool, beyond: bool) -> Explanation:
    """That a solve is tried by iteration first."""
    title = (
        f"method='auto': {offered.products:,} products at {offered.each:.3g} s, a third of the "
        "factor's price, are granted to cg and minres where A looks Hermitian (preconditioned "
        "where a sum has Kronecker products), else gmres, until the backward error is at working "
        "accuracy, recomputed, for b and a vector of signs; each iteration:\n"
    )
    parts: list[tuple[str, Explanation | str]] = [(title, product_plan(op, side) or "")]
    if run:
        with explaining() as seen:
            _core._build("inverse", op) @ side
        parts += [("it took\n", one) for one in seen.plans]
    rest = "where that does not reach it, and with method='direct', the factor:\n"
    if beyond:
        rest = (
            "where that does not reach it, more of them, as the dense form would pass the memory "
            "limit; with method='direct' the factor:\n"
        )
    parts.append((rest, plan))
    return Explanation._joined(parts)


def _vectors_of(name: str, op: Any, M: Any, x: Any) -> int:
    """Bytes of the vectors of one run, as the memory limit counts them."""
    x = x if x.ndim < 3 or len(op.shape) > 2 else batches.columns_of(x)
    x = x.reshape(x.shape[-2:]) if x.ndim < 3 or not x.size else x[(0,) * (x.ndim - 2)]
    M = None if isinstance(M, str) else M
    return _memory.memory_of(name, Problem(op, M, x, x, {}))


def _with_other(parts: Any, text: str, plan: Explanation | None) -> Explanation:
    """The explanation of the parts, with the alternatives and their estimates."""
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
    """Is that more than the memory limit, or than the free memory?"""
    limit = config.get("memory_limit")
    free = config.free_memory() if limit is None else limit
    return free is not None and size > free
