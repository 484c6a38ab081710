"""``pl.config`` sets options: for the process as a statement, for one context in a ``with``."""

import contextvars
import dis
import operator
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np

from .. import _core
from . import blas, cost_table
from .lazy_import import Standard


class _Options(TypedDict, total=False):
    fft: bool
    provenance: bool
    cache_limit: int
    warn_limit: int
    slow_limit: float | None
    memory_limit: int | None
    threads: int | None
    disable_rules: Iterable[str]
    costs: str | os.PathLike[str] | None
    check: Literal["none", "cheap", "full"]
    not_definite: Literal["fallback", "raise", "nan"]
    precision: Literal["working", "mixed"]
    accuracy: Literal["exact", "estimate"]
    iterate: bool
    check_plans: bool
    verify: bool


_DEFAULTS: dict[str, Any] = {
    "fft": True,
    "provenance": True,
    "cache_limit": 256 << 20,
    "warn_limit": 64 << 20,
    "slow_limit": 10.0,
    "memory_limit": None,
    "threads": None,
    "disable_rules": (),
    "costs": None,
    "check": "cheap",
    "not_definite": "fallback",
    "precision": "working",
    "accuracy": "exact",
    "iterate": True,
    "check_plans": False,
    "verify": False,
}
_difflib = Standard("difflib")
_CHECKS = ("cheap", "none", "full")  # by number in the core
_WORDS = {
    "not_definite": ("fallback", "raise", "nan"),
    "precision": ("working", "mixed"),
    "accuracy": ("exact", "estimate"),
}
_DOC = {
    "fft": "products may go through the FFT (normwise accuracy); False: componentwise",
    "provenance": "operators remember the line that built them (about 35 ns each)",
    "cache_limit": "bytes kept of derived values (spectra, factors), and as many of freed blocks",
    "warn_limit": "bytes from which an unasked dense form warns",
    "slow_limit": "estimated seconds from which what begins warns; None: never",
    "memory_limit": "bytes that a call may take; None: dense forms, half of the machine's memory",
    "threads": "threads of OpenBLAS; None: as OpenBLAS has them",
    "disable_rules": "names of rules that do not act",
    "costs": "file of pl.calibrate() that plans are priced by; None: the shipped table",
    "check": "what is tested of assumptions: none, cheap (next to no cost), full",
    "not_definite": "where one assumed positive definite is not: fallback (LU), raise, nan",
    "precision": "of the factors that solves go by; mixed: half of it, refined",
    "accuracy": "exact; estimate: trace and logdet may be estimates where these are cheaper",
    "iterate": "solves go by iteration where that is cheaper, to working accuracy",
    "check_plans": "every plan is checked after each step of its making (for finding our bugs)",
    "verify": "results are compared with the expression as written, else VerificationError",
}
# Options that one context cannot have for itself, and why.
_PROCESS_ONLY = {
    "cache_limit": "the store of derived values is one for all threads",
    "threads": "OpenBLAS has one pool of threads for the process",
}
# The road of a call, which Python chooses: the core's tapes are of one such choice.
_BY_PYTHON = ("accuracy", "iterate")
_IN_CORE = {
    *("fft", "provenance", "_off", "_costs", "_record", "_check", "_mixed", "memory_limit"),
    *("check_plans", "verify"),
    *_BY_PYTHON,
}
_process = dict(_DEFAULTS)
_process_in_core: dict[str, bytes | None] = {"_off": None, "_costs": None}
_setter: dict[str, "config"] = {}  # who set the process's value last
_lock = threading.RLock()
structure_rules: dict[str, Any] = {}  # the rows of _structured, by name: they act in Python
estimates = False  # was accuracy= ever set? Else nobody needs to look


class _Local(dict[str, Any]):
    """The options of a context. The core looks for them as long as any such context lives."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.in_core = not _IN_CORE.isdisjoint(options)
        if self.in_core:
            _core._watch(_local, 1)

    def __del__(self) -> None:
        if self.in_core:
            _core._watch(_local, -1)


# The core takes these two as bytes that begin with a number, one number for each content, since #
# cached plans are found by it. "_off" is a bit a rule, "_costs" a table.
_numbers: dict[tuple[str, Any], bytes] = {}
_MOST = {"_off": 2**20 - 1, "_costs": 2**12 - 1}


def _numbered(name: str, content: bytes) -> bytes:
    with _lock:
        known = _numbers.get((name, content))
        if known is None:
            number = 1 + sum(kind == name for kind, _ in _numbers)
            if number > _MOST[name]:
                raise ValueError(f"more than {_MOST[name]} different {name[1:]} in one process")
            known = _numbers[name, content] = struct.pack("=i", number) + content
        return known


def _off(names: tuple[str, ...]) -> bytes | None:
    names = tuple(name for name in names if name not in structure_rules)
    if not names:
        return None
    places = _core._places()
    at = [places[name] for name in names]
    mask = bytearray(max(at) // 8 + 1)
    for i in at:
        mask[i // 8] |= 1 << i % 8
    return _numbered("_off", bytes(mask))


def _in_core(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the values in the form that the core takes."""
    made = dict(options)
    if "disable_rules" in options:
        made["_off"] = _off(options["disable_rules"])
    if "costs" in options:
        made["_costs"] = options["costs"] and _numbered("_costs", options["costs"].packed)
    if "check" in options:
        made["_check"] = _CHECKS.index(options["check"])
    if "precision" in options:
        made["_mixed"] = options["precision"] == "mixed"
    return made


_local: contextvars.ContextVar[_Local | None] = contextvars.ContextVar(
    "pylinop.config", default=None
)


def record() -> list[dict[str, Any]] | None:
    """What pl.explaining() records into here and now; None outside of its blocks."""
    local = _local.get()
    return None if local is None else local.get("_record")


def recording() -> bool:
    """Is pl.explaining() recording what is computed?"""
    return record() is not None


def get(name: str) -> Any:
    """The value of one option here and now."""
    local = _local.get()
    return local[name] if local and name in local else _process[name]


def _threads() -> int:
    return int(_core._blas()["threads"])


_roads: list[Any] = []  # as tapes were made


def _tell_core(threads: int | None = None) -> None:
    roads = [_process[name] for name in _BY_PYTHON]
    if roads != _roads:
        _roads[:] = roads
        _core._tape_forget()
    _core._options(
        _process["fft"],
        _process["provenance"],
        _process["cache_limit"],
        threads or 0,
        _CHECKS.index(_process["check"]),
        _process["precision"] == "mixed",
        _process["memory_limit"],
        _process_in_core["_off"],
        _process_in_core["_costs"],
        _process["check_plans"],
        _process["verify"],
    )


def _number(name: str, value: Any, what: str, low: int, high: int) -> int:
    __tracebackhide__ = True
    try:
        if isinstance(value, bool | np.bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {what}, got {value!r}") from None
    if not low <= number <= high:
        raise ValueError(f"{name} must be {what} from {low} to {high}, got {value!r}")
    return number


def _seconds(value: Any) -> float:
    if isinstance(value, bool | np.bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"slow_limit must be a number of seconds or None, got {value!r}")
    if not value >= 0:
        raise ValueError(f"slow_limit must be 0 seconds or more, got {value!r}")
    return float(value)


def near(name: str, names: Iterable[str]) -> str:
    """The end of an error message: the names that come close, in whatever case."""
    written: dict[str, str] = {}
    for known in names:
        written.setdefault(known.lower(), known)
    close = [written[n] for n in _difflib.get_close_matches(name.lower(), list(written), 3, 0.5)]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def there_are(name: str, names: Iterable[str]) -> str:
    """The end of the error of a keyword: those that there are, and which comes close."""
    names = list(names)
    return f"; there are {', '.join(names)}{near(name, names)}" if names else ""


_in_core_rules: set[str] = set()  # names that have been asked for: to list all takes milliseconds


def _rules(value: Any) -> tuple[str, ...]:
    wrong = TypeError(f"disable_rules must be a list of names of rules, got {value!r}")
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise wrong
    names = list(value)
    if not all(isinstance(name, str) for name in names):
        raise wrong
    if all(name in _in_core_rules or name in structure_rules for name in names):
        return tuple(sorted(set(names)))
    rows = _core.rules()
    _in_core_rules.update(row["name"] for row in rows if row["origin"] == "table")
    known = [*(row["name"] for row in rows), *structure_rules]
    for name in names:
        if name not in known:
            raise ValueError(f"no rule {name!r}: pl.rules() lists them{near(name, known)}")
    return tuple(sorted(set(names)))


def _checked(name: str, value: Any) -> Any:
    """The value of an option, or a TypeError or ValueError that shows it."""
    __tracebackhide__ = True
    if name == "disable_rules":
        return _rules(value)
    if name == "costs":
        return cost_table.table(value)
    if name == "check":
        if value not in _CHECKS:
            raise ValueError(f"check must be one of 'none', 'cheap', 'full', got {value!r}")
        return value
    if name in _WORDS:
        if value not in _WORDS[name]:
            words = ", ".join(map(repr, _WORDS[name][:-1])) + f" or {_WORDS[name][-1]!r}"
            raise ValueError(f"{name} must be {words}, got {value!r}")
        return str(value)
    if name in ("fft", "provenance", "iterate", "check_plans", "verify"):
        if not isinstance(value, bool | np.bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")
        return bool(value)
    if value is None and (_DEFAULTS[name] is None or name == "slow_limit"):
        return None
    if name == "slow_limit":
        return _seconds(value)
    if name == "threads":
        return _number(name, value, "a number of threads", 1, 1024)
    return _number(name, value, "a number of bytes (10**9 for 1 GB)", 0, 2**63 - 1)


_CACHE = dis.opmap.get("CACHE", -1)
_WITH = dis.opmap.get("BEFORE_WITH", -1)


def _heads_with(frame: FrameType) -> bool:
    """Is the call that runs in ``frame`` the head of a ``with``?

    If so, nothing needs to be set for the process, where other threads would see it until the block
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
        Whether products may go through the FFT. False uses the direct loops, which have a
        componentwise error bound.
    provenance : bool
        Whether operators remember the line that built them.
    cache_limit : int
        Bytes of derived values (spectra, factors) that are kept, of all operators together; the
        least recently used go first. What `pl.factorized` holds does not count. As many bytes of
        freed blocks (results, workspaces, of 64 KiB on) are kept for the next of their size.
        ``show_config()`` shows all three. Process-wide only.
    warn_limit : int
        The size in bytes from which a dense form that nobody asked for warns: any intermediate
        matrix that is larger than all operands and the result together, whoever makes it.
    memory_limit : int
        Bytes that one call may take beside its operands: dense forms, factors, workspace, results
        without an ``out=``. A call that needs more raises `MaterializationError` before it starts,
        with both numbers; method "auto" takes a different route where there is one; iterations and
        blocks of rows are cut to fit. None, the default: only dense forms of what was not given
        dense are looked at: with all that is made of them they may take half of the machine's
        memory (or of what its control group allows), and no more than is free.
    slow_limit : float
        Estimated seconds from which a product, solve, determinant, contraction or decomposition
        warns before it begins, with `SlowComputationWarning`; what takes less than 0.01 s never
        does, nor what iterates or factors a sparse matrix, whose time is not known before. None:
        never.
    threads : int
        Threads of OpenBLAS. Process-wide only.
    disable_rules : list of str
        Rules to switch off, by the names that ``pl.rules()`` and explanations show; ``[]`` switches
        all on. An expression that cannot be computed without a rule raises when the rule is off;
        a function of an operator (rules of the phase "structure") goes by the dense form then.
    costs : path
        A file that ``pl.calibrate()`` wrote: plans are priced by it. None: the shipped table, the
        same everywhere. A file of a different version raises ValueError.
    check : {"none", "cheap", "full"}
        What is tested of assumptions (``assume_a``) before a solve or a determinant relies on them.
        "cheap" reports a failed Cholesky (a solve warns with FallbackWarning and uses LU; a
        determinant, its logarithm and `inv_quad_logdet` raise LinAlgError), and tests that an
        orthogonal matrix keeps lengths (otherwise ValueError). "full" also tests, wherever a matrix
        with an assumption stands and whatever is asked, that the triangles of a symmetric,
        Hermitian or positive definite `Dense`, `Banded` or `Tridiagonal` agree, that the other side
        of a triangular one is zero, as is what lies beside a diagonal or tridiagonal one, and that
        Q^H Q is the identity; otherwise it raises a
        ValueError that shows an element. "none" notices only what fails by itself; determinants too
        then use LU, with a FallbackWarning. On the arrays of other libraries "none" also leaves out
        the test by which Woodbury's formula is NaN where C would solve the dense form.
    not_definite : {"fallback", "raise", "nan"}
        What comes where Cholesky fails for a matrix that is assumed positive definite. "fallback":
        a solve goes on by LU, with a FallbackWarning, and a determinant raises LinAlgError (see
        ``check``). "raise": both raise LinAlgError. "nan": the results are NaN, without a word; of
        a batch those of the elements that fail. That is for samplers and line searches, which take
        NaN for "not here". On a GPU "nan" holds for what is symmetric too, which goes by LU there
        otherwise (In PyTorch, On a GPU).
    precision : {"working", "mixed"}
        "mixed": double-precision solves by LU or Cholesky of a dense form factor in single
        precision and refine the solution to the same backward error; where that does not converge,
        they factor in double precision as usual.
    accuracy : {'exact', 'estimate'}
        Whether ``pl.trace`` and ``pl.logdet`` with ``method="auto"`` may return an `Estimate` where
        that is priced lower.
    iterate : bool
        Whether solves may go by iteration, in place of a factor of a dense form that nobody asked
        for, where products are so much cheaper that a bounded number of them, a third of the
        factor's price, reaches working accuracy (docs/iterative.md). False: always by the factor.
    check_plans : bool
        Whether every plan is checked after each pass that makes or changes it: each value is
        written before it is read on every path through the plan, nothing is lost, values that live
        at the same time share no memory, derived values are found by everything they depend on. A
        wrong plan is a bug of this library: a RuntimeError then shows it, in place of a wrong
        result. Planning takes some microseconds more (5 for a product of 10 operands), running
        takes none; plans cached before are made anew.
    verify : bool
        Whether every result of a plan is compared with the expression as written, computed by plain
        NumPy and by none of the plan's rules or steps. A result that is further off than the
        promised accuracy raises `VerificationError`. ``pl.explaining()`` says what could not be
        verified. Costs: docs/verified.md.

    Raises
    ------
    TypeError, ValueError
        For unknown options and values that do not fit; nothing is changed then. Also for
        ``cache_limit`` and ``threads`` in a ``with``: they cannot hold for one block.

    Notes
    -----
    In a ``with`` block the options hold for its context (`contextvars`): other threads and other
    asyncio tasks do not see them, tasks made in the block do. Inside the block they override a
    statement.

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
            close = near(min(unknown), _DEFAULTS)
            raise TypeError(f"no option {sorted(unknown)}; there are {sorted(_DEFAULTS)}{close}")
        self._options = {name: _checked(name, value) for name, value in options.items()}
        if "accuracy" in self._options:
            global estimates
            estimates = True
        self._before: dict[str, Any] = {}
        self._threads = 0
        self._tokens: list[contextvars.Token[_Local | None]] = []
        if not _heads_with(sys._getframe(1)):
            self._set_process()

    @staticmethod
    def _tell(threads: int | None) -> None:
        made = _in_core({name: _process[name] for name in ("disable_rules", "costs")})
        _process_in_core.update({name: made[name] for name in _process_in_core})
        _tell_core(threads)

    def _set_process(self) -> None:
        with _lock:
            threads = self._options.get("threads")
            self._threads = _threads()
            for name, value in self._options.items():
                self._before[name] = _process[name]
                _process[name] = value
                _setter[name] = self
            self._tell(threads)

    def _reset_process(self) -> None:
        with _lock:
            threads = self._threads if _setter.get("threads") is self else None
            for name, value in self._before.items():
                if _setter.get(name) is self:  # nobody has set it since
                    _process[name] = value
                    del _setter[name]
            self._before = {}
            self._tell(threads)

    def __enter__(self) -> Self:
        if self._before:  # it was taken for a statement
            self._reset_process()
        for name in self._options:
            if name in _PROCESS_ONLY:
                raise ValueError(
                    f"{name} holds for the whole process and cannot be set in a with block "
                    f"({_PROCESS_ONLY[name]}): use the statement pl.config({name}=...)"
                )
        self._tokens.append(_local.set(_Local({**(_local.get() or {}), **_in_core(self._options)})))
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
        value = get(name)
        shown = ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
        print(f"{name:14} {shown:>12}  {_DOC[name]}")
    own = [row["name"] for row in _core.rules() if row["origin"] == "user"]
    count = len(_core.rules()) + len(structure_rules)
    print(f"{'rules':14} {count:>12}  of them users': {', '.join(own) or 'none'}")
    kept = _core._store()
    print(
        f"{'derived':14} {kept['bytes']:>12}  bytes kept of derived values now, in "
        f"{kept['entries']} of them; beside these {kept['held']:,} held by pl.factorized objects"
    )
    print(
        f"{'spare':14} {kept['spare']:>12}  bytes of freed blocks, kept for the next of their size"
    )
    for line in cost_table.lines(get("costs")):
        print(line)
    for line in blas.lines(_core):
        print(line)


def machine_memory() -> int | None:
    """Bytes of memory of the machine, or of the control group that this process is in; None where
    the system does not say."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        pass
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            with open(f"/sys/fs/cgroup/{name}") as f:
                text = f.read().strip()
        except OSError:
            continue
        if text.isdigit():  # else it is "max"
            found.append(int(text))
    return min(found, default=None)


# Until when an answer of room_by_default holds, and what of it has not been given yet. Asking the
# system takes 60 us, as long as a dense form of 400 rows and columns.
_HOLDS = 0.1  # seconds
_seen = (0.0, 0)


def room_by_default(nbytes: int | None = None) -> int | None:
    """Bytes that dense forms may take where no limit is set: half of the machine's memory, and no
    more than is free. With `nbytes`, what is asked for, the system is not asked again where that is
    a small part of what it had a moment ago."""
    global _seen
    until, left = _seen
    now = time.monotonic()
    if nbytes is not None and nbytes <= left // 64 and now < until:
        _seen = until, left - nbytes
        return left
    whole, free = machine_memory(), free_memory()
    known = [x for x in (whole and whole // 2, free) if x is not None]
    room = min(known, default=None)
    _seen = now + _HOLDS, room or 0
    return room


def free_memory() -> int | None:
    """Bytes of free memory, or None where the system does not say."""
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
