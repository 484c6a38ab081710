"""The memory limit: what passes it is refused before it is made, and a large dense form that nobody
asked for warns."""

from __future__ import annotations

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from typing import Any

from . import conditioning, config, errors


def warns(nbytes: int) -> bool:
    """Is a dense form of so many bytes, which nobody asked for, worth a warning?"""
    return nbytes > int(config.get("warn_limit"))


def materialising(
    op: Any,
    nbytes: int,
    asked: bool,
    seconds: float = 0.0,
    act: int | None = None,
    whole: int = 0,
) -> None:
    """Called before a large dense form is made: warns when nobody asked for it, raises when memory
    is short. A plan passes the seconds that it is estimated to take, the action's number, and the
    bytes of all that it makes."""
    __tracebackhide__ = True
    limit = config.get("memory_limit")
    free = limit
    needed = nbytes
    if limit is None and nbytes > 1 << 20:  # asking the system costs more than a small dense form
        needed = max(nbytes, whole)
        free = config.room_by_default(needed)
    if free is not None and needed > free:
        raise errors.make_error(
            "MaterializationError",
            f"the dense form of {op.shape} needs {nbytes:,} bytes"
            + (f", {needed:,} with all that is made of it" if needed > nbytes else "")
            + (_by_config(free) if limit is not None else _allowed(free))
            + conditioning.instead_of_dense(op, 0.0, act),
            op,
            "materialise",
            -1,
        )
    if not asked and warns(nbytes):
        warnings.warn(
            f"{type(op).__name__} {op.shape} has no structured way here and is made dense: "
            f"{nbytes:,} bytes" + conditioning.instead_of_dense(op, seconds, act),
            errors.MaterializationWarning,
            stacklevel=errors.outside(),
        )


# Whoever wants to know of which dense forms the following has warned, to say it again.
heard: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("heard", default=None)


def materialising_elsewhere(
    kind: str, shape: tuple[int, ...], nbytes: int, device: str, asked: bool
) -> None:
    """As `materialising`, of what is made dense among the arrays of another library. Where no limit
    is set, memory that is not this machine's is left to the library."""
    limit = room = config.get("memory_limit")
    if limit is None and nbytes > 1 << 20 and "cpu" in device.lower():
        room = config.room_by_default(nbytes)
    if room is not None and nbytes > room:
        raise errors.make_error(
            "MaterializationError",
            f"the dense form of {kind} {shape} on {device} needs {nbytes:,} bytes"
            + (_by_config(room) if limit is not None else _allowed(room)),
            None,
            "materialise",
            -1,
        )
    if not asked and warns(nbytes):
        told = heard.get()
        if told is not None:
            told.append((kind, shape, nbytes, device, asked))
        warnings.warn(
            f"{kind} {shape} has no structured way on {device} and is made dense: {nbytes:,} bytes",
            errors.MaterializationWarning,
            stacklevel=errors.outside("torch"),  # whose autograd calls
        )


def _by_config(room: int) -> str:
    return f"; pl.config(memory_limit=...) allows {room:,}"


def _allowed(room: int) -> str:
    """What is allowed where no limit is set."""
    whole = config.machine_memory()
    if whole is not None and room == whole // 2:
        return (
            f"; {room:,} are allowed, half of this machine's memory, as no "
            "pl.config(memory_limit=) says otherwise"
        )
    return f"; {room:,} are free"


_ACTIONS = {8: "the dense form", 9: "the diagonal", 10: "the trace", 11: "an element"}


# What decompositions take: m n^2 at gemm's rate (NumPy's, SciPy's; n = 1000, one thread, 2026-11).
CUBES = {
    "cholesky": 0.4,
    "cond": 10,
    "eig": 70,
    "eigh": 12,
    "eigvals": 38,
    "eigvalsh": 4,
    "expm": 25,
    "ldl": 1.5,
    "logm": 200,
    "lstsq": 8,
    "lu": 0.7,
    "pinv": 30,
    "qr": 5,
    "sample": 0.4,
    "sqrtm": 60,
    "svd": 30,
    "svdvals": 10,
}


_told: contextvars.ContextVar[bool] = contextvars.ContextVar("pylinop.told", default=False)


def is_slow(seconds: float) -> bool:
    """Is what is estimated to take so long to be warned of?"""
    limit = config.get("slow_limit")
    return limit is not None and seconds > limit


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Within it no decomposition warns: it is a part of one that did."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def slow(op: Any, seconds: float, nbytes: int, act: int, name: str = "") -> bool:
    """Called before what is estimated to take long: warns, and says whether it did. `act` is the
    action's number, of a decomposition -1 and its name."""
    if not is_slow(seconds) or (act == -1 and _told.get()):
        return False
    shown = f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
    what = name or _ACTIONS.get(act, "the determinant" if act == 12 else "the product or solve")
    warnings.warn(
        f"{what} of {type(op).__name__} {op.shape} is estimated to take {shown} s and "
        f"{nbytes:,} bytes"
        + conditioning.instead_of_dense(op, 0.0, act)
        + conditioning.instead_of_all(name)
        + "; pl.config(slow_limit=None) switches this warning off\n"
        f"  in: {errors.describe(op)}{errors.built(op)}",
        errors.SlowComputationWarning,
        stacklevel=errors.outside(),
    )
    return True


def slow_einsum(seconds: float, nbytes: int) -> None:
    """Called before a contraction of arrays that is estimated to take long: warns."""
    if is_slow(seconds):
        warnings.warn(
            f"this contraction is estimated to take {seconds:,.2g} s and {nbytes:,} bytes of "
            "temporaries; pl.einsum_path shows its steps; pl.config(slow_limit=None) switches this "
            "warning off",
            errors.SlowComputationWarning,
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
        free = config.room_by_default(nbytes)
    if free is not None and nbytes > free:
        text = f"{what} of {op.shape} needs {nbytes:,} bytes; "
        text += "pl.config(memory_limit=...) allows" if limit is not None else "free are"
        raise errors.make_error("MaterializationError", f"{text} {free:,}", op, "solve", -1)
