"""Time and peak memory of a block of code, and the checks that the examples make of themselves."""

import sys
import time
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def _resident(field):
    """One figure of /proc/self/status in bytes: VmRSS is now, VmHWM the highest so far."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


def _peak():
    """Return the process's highest resident memory so far in bytes, or None where unknown."""
    try:
        return _resident("VmHWM")
    except (OSError, KeyError):
        pass
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _start_level():
    """Return what the peak is counted from; on Linux the kernel's high-water mark starts anew."""
    try:
        _CLEAR_REFS.write_text("5")
        return _resident("VmRSS")
    except (OSError, KeyError):
        return _peak()


class Meter:
    """Measure a ``with`` block: ``seconds``, and ``peak`` bytes above what was held at its start.

    ``peak`` is resident memory, so it counts what NumPy, BLAS and C code take, to within a page or
    two, and misses only memory that the allocator still held from before. Outside Linux the mark
    cannot be set back: run the leaner block first. ``peak`` is None where nothing is known.
    """

    def __enter__(self):
        self._base = _start_level()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.seconds = time.perf_counter() - self._start
        top = _peak()
        self.peak = None if top is None else max(0, top - self._base)

    def __str__(self):
        return f"{self.seconds:8.2f} s  {size(self.peak):>10}"


def size(n_bytes):
    """Return a number of bytes as text for people, '398.6 GB' (powers of ten)."""
    if n_bytes is None:
        return "unknown"
    units = ["TB", "GB", "MB", "kB"]
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    while n_bytes >= 1000 and units:
        n_bytes, unit = n_bytes / 1000, units.pop()
    return f"{n_bytes:.1f} {unit}"


class Checks:
    """Collect named checks, print each, and give the exit status."""

    def __init__(self):
        self.failed = []

    def at_most(self, what, value, limit):
        """Check ``value <= limit``; NaN fails."""
        self._record(what, f"{value:.3g} <= {limit:g}", value <= limit)

    def between(self, what, value, low, high):
        """Check ``low <= value <= high``; NaN fails."""
        self._record(what, f"{low:.3f} <= {value:.3f} <= {high:.3f}", low <= value <= high)

    def _record(self, what, text, passed):
        print(f"  check  {what}: {text}  {'ok' if passed else 'FAILED'}", flush=True)
        if not passed:
            self.failed.append(what)

    def exit_status(self):
        """Return 0 when all passed, else 1 after naming what failed on stderr."""
        if self.failed:
            print("FAILED: " + "; ".join(self.failed), file=sys.stderr)
        return 1 if self.failed else 0
