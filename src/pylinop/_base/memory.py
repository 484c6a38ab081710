"""The memory limit: what passes it is refused before it is made, and a large dense form that nobody
asked for warns."""

from __future__ import annotations

import warnings
from typing import Any

from . import conditioning, config, errors


def materialising(
    op: Any, nbytes: int, asked: bool, seconds: float = 0.0, act: int | None = None
) -> None:
    """Called before a large dense form is made: warns when nobody asked for it, raises when memory
    is short. A plan passes the seconds that it is estimated to take, and the action's number."""
    limit = config.get("memory_limit")
    free = limit
    if limit is None and nbytes > 1 << 20:  # asking the system costs more than a small dense form
        free = config.free_memory()
    if free is not None and nbytes > free:
        raise errors.make_error(
            "MaterializationError",
            f"the dense form of {op.shape} needs {nbytes:,} bytes; "
            + (
                f"pl.config(memory_limit=...) allows {free:,}"
                if limit is not None
                else f"{free:,} are free"
            ),
            op,
            "materialise",
            -1,
        )
    if not asked and nbytes > config.get("warn_limit"):
        warnings.warn(
            f"{type(op).__name__} {op.shape} has no structured way here and is made dense: "
            f"{nbytes:,} bytes" + conditioning.instead_of_dense(op, seconds, act),
            errors.MaterializationWarning,
            stacklevel=errors.outside(),
        )


def beyond(op: Any, needed: int, of_it: str) -> Exception:
    """The error for something that takes more than the memory limit."""
    return errors.make_error(
        "MaterializationError",
        f"this needs {needed:,} bytes beside its operands, {of_it}; "
        f"pl.config(memory_limit=...) allows {config.get('memory_limit'):,}",
        op,
        "compute",
        -1,
    )


def passes_limit(op: Any, sizes: tuple[int, ...]) -> None:
    """Called for a plan that takes more than the memory limit."""
    needed, result, kept = sizes
    raise beyond(
        op, needed, f"{result:,} of them for the result, {kept:,} for what is kept (factors, ...)"
    )


def copies_pass_limit(op: Any, sizes: tuple[int, ...]) -> None:
    """Called for operands whose copies, made for each run, take more than the memory limit."""
    needed, copied = sizes
    raise beyond(
        op,
        needed,
        f"{copied:,} of them for copies of operands that no kernel takes as they lie (overlapping, "
        "with steps along both axes, unaligned or in another byte order): give "
        "np.ascontiguousarray of them",
    )


def room(op: Any, nbytes: int, what: str) -> None:
    """Raises where that much memory would pass the limit, before any is taken."""
    limit = config.get("memory_limit")
    free = limit
    if limit is None and nbytes > 1 << 20:
        free = config.free_memory()
    if free is not None and nbytes > free:
        text = f"{what} of {op.shape} needs {nbytes:,} bytes; "
        text += "pl.config(memory_limit=...) allows" if limit is not None else "free are"
        raise errors.make_error("MaterializationError", f"{text} {free:,}", op, "solve", -1)
