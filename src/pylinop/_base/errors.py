"""Exceptions, warnings, and the text that is added to an error of the core."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.linalg import LinAlgError

from . import config, kind_flags

if TYPE_CHECKING:
    from types import FrameType

_Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = [
    "ConvergenceError",
    "FallbackWarning",
    "IllConditionedWarning",
    "LinAlgError",
    "MaterializationError",
    "MaterializationWarning",
    "SlowComputationWarning",
    "VerificationError",
]


class MaterializationWarning(UserWarning):
    """An operator without a structured route was made dense, and it was large."""


class MaterializationError(MemoryError):
    """A call would take more memory than ``pl.config(memory_limit=...)`` allows, or a dense form
    more than half of the machine's memory, or than is free."""


class SlowComputationWarning(UserWarning):
    """What begins now is estimated to take longer than ``pl.config(slow_limit=...)``, 10 s."""


class VerificationError(ArithmeticError):
    """A result differs from the expression as written (``pl.config(verify=True)``).

    Attributes
    ----------
    error, allowed : float
        How far off the result is, and what the promised accuracy allows, at its worst entry.
    plan : str
        The plan that it was computed by.
    """

    error: float
    allowed: float
    plan: str


class Apart(Exception):
    """A program of several results has something to say of one of its operators: each result is to
    be computed by itself. Never raised to users."""


class NoValue(TypeError):
    """The value of a placeholder was asked for. Functions of pylinop catch it, and are called again
    when there is one."""

    def __init__(self, message: str, placeholder: Any) -> None:
        super().__init__(message)
        self.placeholder = placeholder

    def deferred(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """The function's formula, or this error where its shape is not known."""
        return self.placeholder._of(function, args, kwargs, self)


def deferrable(f: _Function) -> _Function:
    """What it decorates gives formulas of placeholders, where its rule is known."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return f(*args, **kwargs)
        except NoValue as error:
            return error.deferred(call, *args, **kwargs)

    return call  # type: ignore[return-value]


def of_placeholders(cls: Any, args: Any, kwargs: Any, error: Any) -> Any:
    """A kind of placeholders, or None; a hook."""
    if not isinstance(error, NoValue):
        return None
    return error.placeholder._kind(cls, args, kwargs or {})


class FallbackWarning(UserWarning):
    """An assumption did not hold; the safer method was used instead."""


class IllConditionedWarning(RuntimeWarning):
    """The matrix of a solve is singular to working precision: its reciprocal condition number is
    below the rounding unit, as for scipy.linalg.LinAlgWarning."""


class ConvergenceError(LinAlgError):
    """An iterative solver did not reach its tolerance.

    Attributes
    ----------
    best : ndarray
        The iterate with the least residual; also as ``x``.
    residual : float
        Its |b - A x| / |b|.
    iterations : int
    record : object
        How the run went.
    """

    def __init__(self, message: str, x: Any = None, record: Any = None) -> None:
        super().__init__(message)
        self.x = self.best = x
        self.record = record
        self.residual = getattr(record, "residual", None)
        self.iterations = getattr(record, "iterations", None)


_CLASSES = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "IndexError": IndexError,
    "MemoryError": MemoryError,
    "RuntimeError": RuntimeError,
    "NotImplementedError": NotImplementedError,
    "LinAlgError": LinAlgError,
    "MaterializationError": MaterializationError,
}


_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@functools.lru_cache(maxsize=1024)
def _is_ours(file: str) -> bool:
    return os.path.abspath(file).startswith(_HOME)


def outside(between: str = "") -> int:
    """The ``stacklevel`` that names the first line outside this package, and outside of the one
    that calls lead through."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and (_is_ours(frame.f_code.co_filename) or _is_of(frame, between)):
        frame, level = frame.f_back, level + 1
    return level


def _is_of(frame: FrameType, package: str) -> bool:
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return bool(package) and root == package


def asked() -> tuple[str, str]:
    """(name of the function of ours that was called, "file.py:12: source line") of the first line
    outside this package that leads here; NumPy's and SciPy's functions count as ours."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None:
        code = frame.f_code
        if not (_is_ours(code.co_filename) or _is_of(frame, "numpy") or _is_of(frame, "scipy")):
            return name, _line(code.co_filename, frame.f_lineno)
        name, frame = _called(frame), frame.f_back
    return name, ""


def _called(frame: FrameType) -> str:
    """The name of the function that a frame runs; of those that pass on others', theirs."""
    name, held = frame.f_code.co_name, frame.f_locals
    if name == "call" and "f" in held:  # signatures.py
        return str(getattr(held["f"], "__name__", name))
    if name == "__array_function__" and "func" in held:
        func = held["func"]
        module = str(func.__module__).replace("numpy", "np", 1)
        return f"{module}.{func.__name__}, which computes at once here"
    if name in ("array_ufunc", "__array_ufunc__") and "ufunc" in held:
        said = " with out=" if held.get("out") is not None else ""
        return f"np.{held['ufunc'].__name__}{said}"
    return name


def where(op: Any) -> str | None:
    """'file.py:12: source line' of the line that built ``op``, or None."""
    origin = op._origin
    if origin is None:
        return None
    return _line(*origin)


def _line(file: str, line: int) -> str:
    source = linecache.getline(file, line).strip()
    return (
        f"{os.path.relpath(file) if os.path.isabs(file) and os.path.exists(file) else file}:{line}"
        + (f": {source}" if source else "")
    )


def built(x: Any) -> str:
    """A line of text that says where x was built, with its type and shape; empty if not known."""
    line = where(x)
    return f"\n  {type(x).__name__} {x.shape} built at {line}" if line else ""


def describe(op: Any, depth: int = 3) -> str:
    """The expression with shapes, a few levels deep: 'Sum (3, 3) of [Diag (3, 3), Kron (3, 3)]'."""
    name = f"{type(op).__name__} {op.shape}"
    below = [o for o in op._operands if hasattr(o, "_operands")]
    if not below or depth == 0:
        return name
    return f"{name} of [{', '.join(describe(o, depth - 1) for o in below[:4])}]"


def parts(op: Any, limit: int = 10000) -> Iterator[Any]:
    """The operators an expression is made of, itself first, each once."""
    stack, seen = [op], set[int]()
    while stack and len(seen) < limit:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        yield o
        stack += [p for p in (*o._operands, *(o._init or ())) if hasattr(p, "_operands")]


def _assumed(op: Any) -> Any:
    """The word that a matrix was assumed by, None where there is none."""
    try:
        return op._given("assume_a")
    except AttributeError:  # its kind has no such parameter, or it is an expression's result
        return None


def assumed_positive(op: Any) -> list[Any]:
    """The operators of an expression that were assumed positive definite."""
    return [o for o in parts(op) if _assumed(o) in ("pos", "positive definite")]


def name_assumed(found: list[Any], op: Any) -> str:
    """'Dense (3, 3), built at ..., was'; op: what is named where none was found."""
    names = []
    for o in found[:4]:
        built = where(o)
        names.append(f"{type(o).__name__} {o.shape}" + (f", built at {built}," if built else ""))
    if len(names) > 1:
        return f"one of {' '.join(names[:-1])} and {names[-1]} was"
    return f"{names[0] if names else type(op).__name__} was"


_INSTEAD = (
    ("Singular matrix", "; pl.lstsq(A, b) and pl.pinv(A) @ b give a solution of least norm"),
    (
        "Matrix is not positive definite",
        "; pl.ldl takes indefinite matrices, jitter= adds to the diagonal until it is definite",
    ),
)
_CULPRITS = {"LinAlgError": frozenset({"inverse"}), "IndexError": kind_flags.heads("indices")}


def culprits(name: str, op: Any) -> list[Any]:
    """The parts of an expression that can raise this error: inverses, index-driven kinds."""
    heads = _CULPRITS.get(name, frozenset())
    found = [o for o in parts(op) if o._head in heads or o._by in heads]
    return found[:4] or [op]


def make_error(name: str, text: str, op: Any, action: str, batch: int) -> Exception:
    """The exception for a status of the core: what was wrong, where, in which expression."""
    if batch >= 0 and op is not None and len(op.shape) > 2:
        text += f" (batch element {batch})"
    for begins, instead in _INSTEAD:
        text += instead if name == "LinAlgError" and text.startswith(begins) else ""
    off = config.get("disable_rules") if name == "NotImplementedError" else ()
    if off:
        text += f" (rules switched off here: {', '.join(off)})"
    if op is not None:
        text += f"\n  in: {describe(op)}"
        lines = set()
        for part in culprits(name, op):
            inside = part._operands[:1] if part._head == "inverse" else ()
            for o in (part, *inside):
                built = where(o)
                if built and built not in lines:
                    text += f"\n  {type(o).__name__} {o.shape} built at {built}"
                    lines.add(built)
    return _CLASSES.get(name, RuntimeError)(text)


def shape_error(op: Any, what: str, want: Any, got: Any) -> Exception:
    """A ValueError in SciPy's words, with ours: shapes, expression, line."""
    text = f"Dimension mismatch: {what} of an operator of shape {op.shape} takes {want}, "
    text += f"got shape {got}"
    return make_error("ValueError", text, op, "apply", -1)


class NotFit(LinAlgError):
    """This preconditioner cannot be made of this operator."""
