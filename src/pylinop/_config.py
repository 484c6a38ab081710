"""``pl.config``: options, process-wide as a statement, for one context as ``with``."""

import contextvars
import os

from . import _core

_DEFAULTS = {
    "fft": True,
    "provenance": True,
    "cache_limit": 256 << 20,
    "warn_limit": 64 << 20,
    "memory_limit": None,
}
_DOC = {
    "fft": "products may go through the FFT (normwise accuracy); False: componentwise",
    "provenance": "operators remember the line that built them (about 35 ns each)",
    "cache_limit": "bytes kept of derived values (spectra, factors), all operators together",
    "warn_limit": "bytes from which an unasked dense form warns",
    "memory_limit": "bytes beyond which a dense form raises; None: what the machine has free",
}
_process = dict(_DEFAULTS)
_local: contextvars.ContextVar = contextvars.ContextVar("pylinop.config", default=None)
_PROCESS_ONLY = {"cache_limit", "provenance", "fft"}


def get(name):
    """The value of one option here and now."""
    local = _local.get()
    return local[name] if local and name in local else _process[name]


def _tell_core():
    _core._options(_process["fft"], _process["provenance"], int(_process["cache_limit"]))


class config:
    """Set options: ``pl.config(fft=False)`` for the process, ``with pl.config(...):`` for a block.

    Parameters
    ----------
    fft : bool
        May products go through the FFT? False gives the direct loops with a componentwise bound.
    provenance : bool
        Do operators remember the line that built them?
    cache_limit : int
        Bytes kept of derived values (spectra, factors).
    warn_limit, memory_limit : int
        Bytes from which an unasked dense form warns; beyond which any dense form raises (None: the
        free memory of the machine).

    Notes
    -----
    ``fft``, ``provenance`` and ``cache_limit`` are read by the C core and hold for the process,
    in a ``with`` block too (they are put back at its end); the limits are context-local.

    Examples
    --------
    >>> import pylinop as pl
    >>> with pl.config(fft=False):
    ...     y = pl.Toeplitz([2.0, 1.0, 0.0]) @ [1.0, 1.0, 1.0]
    >>> y
    array([3., 4., 3.])
    """

    def __init__(self, **options):
        unknown = set(options) - set(_DEFAULTS)
        if unknown:
            raise TypeError(f"no option {sorted(unknown)}; there are {sorted(_DEFAULTS)}")
        for name in ("cache_limit", "warn_limit", "memory_limit"):
            value = options.get(name)
            if value is not None and (not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be a number of bytes >= 0, got {value!r}")
        self._options = options
        self._before = dict(_process)
        _process.update(options)
        _tell_core()

    def __enter__(self):
        local = {k: v for k, v in self._options.items() if k not in _PROCESS_ONLY}
        for name in local:  # what is context-local must not stay process-wide
            _process[name] = self._before[name]
        self._token = _local.set({**(_local.get() or {}), **local})
        return self

    def __exit__(self, *exc):
        _local.reset(self._token)
        for name in self._options:
            if name in _PROCESS_ONLY:
                _process[name] = self._before[name]
        _tell_core()
        return False


def show_config():
    """Print the options and what they mean."""
    for name in _DEFAULTS:
        print(f"{name:14} {get(name)!s:>12}  {_DOC[name]}")
    info = _core._blas()
    print(f"{'blas':14} {info['threads']:>12}  threads; {info['config']}")


def free_memory():
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
