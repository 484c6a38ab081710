"""``pl.config``: options, process-wide as a statement, for one context as ``with``."""

import contextvars
import dis
import operator
import os
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np

from . import _core


class _Options(TypedDict, total=False):
    fft: bool
    provenance: bool
    cache_limit: int
    warn_limit: int
    memory_limit: int | None
    threads: int | None


_DEFAULTS: dict[str, Any] = {
    "fft": True,
    "provenance": True,
    "cache_limit": 256 << 20,
    "warn_limit": 64 << 20,
    "memory_limit": None,
    "threads": None,
}
_DOC = {
    "fft": "products may go through the FFT (normwise accuracy); False: componentwise",
    "provenance": "operators remember the line that built them (about 35 ns each)",
    "cache_limit": "bytes kept of derived values (spectra, factors), all operators together",
    "warn_limit": "bytes from which an unasked dense form warns",
    "memory_limit": "bytes beyond which a dense form raises; None: what the machine has free",
    "threads": "threads of OpenBLAS; None: as OpenBLAS has them",
}
# What one context cannot have for itself, and why.
_PROCESS_ONLY = {
    "cache_limit": "the store of derived values is one for all threads",
    "threads": "OpenBLAS has one pool of threads for the process",
}
_IN_CORE = {"fft", "provenance"}
_process = dict(_DEFAULTS)
_setter: dict[str, "config"] = {}  # who set the process's value last
_lock = threading.Lock()


class _Local(dict[str, Any]):
    """The options of a context. The core looks for them as long as one with its options lives."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.in_core = not _IN_CORE.isdisjoint(options)
        if self.in_core:
            _core._watch(_local, 1)

    def __del__(self) -> None:
        if self.in_core:
            _core._watch(_local, -1)


_local: contextvars.ContextVar[_Local | None] = contextvars.ContextVar(
    "pylinop.config", default=None
)


def get(name: str) -> Any:
    """The value of one option here and now."""
    local = _local.get()
    return local[name] if local and name in local else _process[name]


def _threads() -> int:
    return int(_core._blas()["threads"])


def _tell_core(threads: int | None = None) -> None:
    _core._options(_process["fft"], _process["provenance"], _process["cache_limit"], threads or 0)


def _number(name: str, value: Any, what: str, low: int, high: int) -> int:
    try:
        if isinstance(value, bool | np.bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {what}, got {value!r}") from None
    if not low <= number <= high:
        raise ValueError(f"{name} must be {what} from {low} to {high}, got {value!r}")
    return number


def _checked(name: str, value: Any) -> Any:
    """The value of an option, or a TypeError or ValueError that shows it."""
    if name in ("fft", "provenance"):
        if not isinstance(value, bool | np.bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")
        return bool(value)
    if value is None and _DEFAULTS[name] is None:
        return None
    if name == "threads":
        return _number(name, value, "a number of threads", 1, 1024)
    return _number(name, value, "a number of bytes", 0, 2**63 - 1)


_CACHE = dis.opmap.get("CACHE", -1)
_WITH = dis.opmap.get("BEFORE_WITH", -1)


def _heads_with(frame: FrameType) -> bool:
    """Is the call that runs in ``frame`` the head of a ``with``?

    Then nothing needs to be set for the process, where other threads would see it until the block
    is entered. (ExitStack and the like set it for that moment.)"""
    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while at < len(code) and code[at] == _CACHE:
        at += 2
    return at < len(code) and code[at] == _WITH


class config:
    """Set options: ``pl.config(fft=False)`` for the process, ``with pl.config(...):`` for a block.

    Parameters
    ----------
    fft : bool
        May products go through the FFT? False gives the direct loops with a componentwise bound.
    provenance : bool
        Do operators remember the line that built them?
    cache_limit : int
        Bytes kept of derived values (spectra, factors). Process-wide only.
    warn_limit, memory_limit : int
        Bytes from which an unasked dense form warns; beyond which any dense form raises (None: the
        free memory of the machine).
    threads : int
        Threads of OpenBLAS. Process-wide only.

    Raises
    ------
    TypeError, ValueError
        For options that do not exist and values that do not fit; then nothing is changed. For
        ``cache_limit`` and ``threads`` in a ``with``: they cannot be one block's.

    Notes
    -----
    In a ``with`` block the options hold for its context (`contextvars`): other threads and other
    asyncio tasks do not see them, tasks made in the block do. Inside, they win over a statement.

    Examples
    --------
    >>> import pylinop as pl
    >>> with pl.config(fft=False):
    ...     y = pl.Toeplitz([2.0, 1.0, 0.0]) @ [1.0, 1.0, 1.0]
    >>> y
    array([3., 4., 3.])
    """

    def __init__(self, **options: Unpack[_Options]) -> None:
        unknown = set(options) - set(_DEFAULTS)
        if unknown:
            raise TypeError(f"no option {sorted(unknown)}; there are {sorted(_DEFAULTS)}")
        self._options = {name: _checked(name, value) for name, value in options.items()}
        self._before: dict[str, Any] = {}
        self._threads = 0
        self._tokens: list[contextvars.Token[_Local | None]] = []
        if not _heads_with(sys._getframe(1)):
            self._set_process()

    def _set_process(self) -> None:
        with _lock:
            threads = self._options.get("threads")
            self._threads = _threads()
            for name, value in self._options.items():
                self._before[name] = _process[name]
                _process[name] = value
                _setter[name] = self
            _tell_core(threads)

    def _reset_process(self) -> None:
        with _lock:
            threads = self._threads if _setter.get("threads") is self else None
            for name, value in self._before.items():
                if _setter.get(name) is self:  # nobody has set it since
                    _process[name] = value
                    del _setter[name]
            self._before = {}
            _tell_core(threads)

    def __enter__(self) -> Self:
        if self._before:  # it was taken for a statement
            self._reset_process()
        for name in self._options:
            if name in _PROCESS_ONLY:
                raise ValueError(
                    f"{name} holds for the whole process and cannot be set in a with block "
                    f"({_PROCESS_ONLY[name]}): use the statement pl.config({name}=...)"
                )
        self._tokens.append(_local.set(_Local({**(_local.get() or {}), **self._options})))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        _local.reset(self._tokens.pop())
        return False


def show_config() -> None:
    """Print the options and what they mean."""
    for name in _DEFAULTS:
        print(f"{name:14} {get(name)!s:>12}  {_DOC[name]}")
    info = _core._blas()
    print(f"{'blas':14} {info['threads']:>12}  threads in use; {info['config']}")


def free_memory() -> int | None:
    """Bytes that can still be had, or None where the system does not say."""
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
