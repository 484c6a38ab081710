"""The cost table: what plans are priced by. Shipped, or measured here and read from a file."""

import json
import os
import platform
import statistics
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from . import replace_file

VERSION = 1  # of the file: which figures there are and what they mean
_FIGURES = {
    "flop_rate": "flops a second of our own loops",
    "gemm_rate": "flops a second of a large float64 gemm",
    "bandwidth": "bytes a second from memory",
    "overhead": "seconds a step",
}


class Table:
    """Figures and where they came from."""

    def __init__(self, figures: dict[str, float], version: int, source: str) -> None:
        self.figures, self.version, self.source = figures, version, source
        self.packed = struct.pack("=i4d", version, *(figures[name] for name in _FIGURES))

    def __str__(self) -> str:
        return self.source


def shipped() -> Table:
    """The table of the library."""
    row = _core._costs()
    return Table({name: row[name] for name in _FIGURES}, row["version"], "shipped")


def lines(own: Table | None) -> list[str]:
    """The tables as ``show_config`` prints them: the shipped one, and the one in use."""
    tables = [shipped()] + ([own] if own else [])
    text = []
    for name, doc in _FIGURES.items():
        shown = " / ".join(f"{t.figures[name]:.3g}" for t in tables)
        text.append(f"{name:14} {shown:>12}  {doc}")
    words = "in use: shipped" if own is None else f"shipped / in use: {own}"
    text.append(f"{'cost table':14} {f'version {tables[-1].version}':>12}  {words}")
    return text


def table(value: Any) -> Table | None:
    """What ``pl.config(costs=value)`` is given."""
    if value is None or isinstance(value, Table):
        return value
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"costs must be the path of a file of pl.calibrate(), got {value!r}")
    path = Path(value).expanduser()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        version, figures = data["version"], data["figures"]
        found = {name: float(figures[name]) for name in _FIGURES}
    except OSError as error:
        raise ValueError(f"costs={str(value)!r} cannot be read: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"costs={str(value)!r} is no file of pl.calibrate() ({error!r})") from None
    if version != VERSION:
        raise ValueError(
            f"costs={str(value)!r} is a table of version {version!r}, this pylinop reads version "
            f"{VERSION}: call pl.calibrate() again"
        )
    for name, number in found.items():
        if not 0 < number < 1e30:
            raise ValueError(f"costs={str(value)!r}: {name} must be above 0, got {number!r}")
    return Table(found, version, str(value))


# -- measuring -------------------------------------------------------------------------------------


def _seconds(run: Any, least: float = 0.02, tries: int = 5) -> float:
    """The median time of a call, each try long enough to be read off."""
    run()
    count, spent = 1, 0.0
    while spent < least:
        start = time.perf_counter()
        for _ in range(count):
            run()
        spent = time.perf_counter() - start
        count = count if spent >= least else 2 * count
    found = []
    for _ in range(tries):
        start = time.perf_counter()
        for _ in range(count):
            run()
        found.append((time.perf_counter() - start) / count)
    return statistics.median(found)


def _measured() -> dict[str, float]:
    from .. import Circulant, Dense, Diag, Tridiagonal
    from .config import config

    rng = np.random.default_rng(1)
    n = 512
    A, X = Dense(rng.standard_normal((n, n))), rng.standard_normal((n, n))
    gemm = 2 * n**3 / _seconds(lambda: A @ X)
    n = 2000  # in the cache: the loop is what counts
    T = Tridiagonal(np.ones(n - 1), np.ones(n), np.ones(n - 1))
    block = rng.standard_normal((n, 8))
    loop = 5 * n * 8 / _seconds(lambda: T @ block)
    with config(fft=False):
        C, x = Circulant(rng.standard_normal(256)), rng.standard_normal(256)
        loop = max(loop, 2 * 256**2 / _seconds(lambda: C @ x))
    n = 4_000_000  # 32 MB an array
    D, x, y = Diag(rng.standard_normal(n)), rng.standard_normal(n), np.empty(n)
    bandwidth = 3 * 8 * n / _seconds(lambda: D.matvec(x, out=y))
    few, many = (_chain(k) for k in (4, 20))
    one = np.ones(2)
    overhead = (_seconds(lambda: many @ one) - _seconds(lambda: few @ one)) / 16
    return {
        "flop_rate": loop,
        "gemm_rate": gemm,
        "bandwidth": bandwidth,
        "overhead": max(overhead, 1e-9),
    }


def _chain(k: int) -> Any:
    """k factors that stay k steps."""
    from .. import Circulant, Permutation

    made: Any = Permutation([1, 0])
    for i in range(k - 1):
        made = made @ (Circulant([1.0, 0.5]) if i % 2 == 0 else Permutation([1, 0]))
    return made


def _folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "pylinop"


def calibrate(path: str | os.PathLike[str] | None = None) -> str:
    """Measure this machine's rates for the cost table and write them to a file; nothing else.

    Plans are priced by a table that is shipped, so that the same expression gives the same plan
    everywhere. A table of one's own is used only where it is asked for, by
    ``pl.config(costs=path)``. It takes about two seconds; let the machine be idle, and set the
    threads of OpenBLAS as they will be.

    Parameters
    ----------
    path : str or path, optional
        The file, overwritten; ``costs.json`` in the user's configuration folder
        (``$XDG_CONFIG_HOME/pylinop`` or ``~/.config/pylinop``).

    Returns
    -------
    str
        The path, for ``pl.config(costs=...)``.

    Examples
    --------
    >>> import pylinop as pl
    >>> path = pl.calibrate("costs.json")  # doctest: +SKIP
    >>> pl.config(costs=path)  # doctest: +SKIP
    """
    target = Path(path).expanduser() if path is not None else _folder() / "costs.json"
    figures = _measured()
    target.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "version": VERSION,
        "figures": figures,
        "measured": {
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "blas": _core._blas()["config"],
            "threads": _core._blas()["threads"],
        },
    }
    text = json.dumps(data, indent=2) + "\n"
    with replace_file.replacing(str(target)) as file:  # never half a file
        file.write(text.encode())
    return str(target)
