"""The cost table of this machine, measured."""

import os
import platform
import time
from typing import Any

import numpy as np

from .. import _core
from . import cost_table, replace_file
from .config import config
from .lazy_import import Standard

__all__ = ["calibrate"]
_json = Standard("json")


def _seconds(run: Any, least: float = 0.02, tries: int = 5) -> float:
    """The median time of a call; each try runs long enough to be measured."""
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
    return float(np.median(found))


def _measured() -> dict[str, float]:
    rng = np.random.default_rng(1)
    n = 512
    A, X = _core.Dense(rng.standard_normal((n, n))), rng.standard_normal((n, n))
    gemm = 2 * n**3 / _seconds(lambda: A @ X)
    n = 2000  # in the cache: the loop is what counts
    T = _core.Tridiagonal(np.ones(n - 1), np.ones(n), np.ones(n - 1))
    block = rng.standard_normal((n, 8))
    loop = 5 * n * 8 / _seconds(lambda: T @ block)
    with config(fft=False):
        C, x = _core.Circulant(rng.standard_normal(256)), rng.standard_normal(256)
        loop = max(loop, 2 * 256**2 / _seconds(lambda: C @ x))
    n = 4_000_000  # 32 MB an array
    D, x, y = _core.Diag(rng.standard_normal(n)), rng.standard_normal(n), np.empty(n)
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
    """A product of k factors that no rule makes shorter."""
    made: Any = _core.Permutation([1, 0])
    for i in range(k - 1):
        made = made @ (_core.Circulant([1.0, 0.5]) if i % 2 == 0 else _core.Permutation([1, 0]))
    return made


def _own_file() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    return os.path.join(base, "pylinop", "costs.json")


def calibrate(path: str | os.PathLike[str] | None = None) -> str:
    """Measure this machine's rates for the cost table and write them to a file, nothing else.

    Plans are priced by the shipped table, so that the same expression gives the same plan
    everywhere. Your own table is used only if you ask for it by ``pl.config(costs=path)``.
    Measuring takes about two seconds; let the machine be idle, and set the threads of OpenBLAS to
    the number that you will use.

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
    target = os.path.expanduser(_own_file() if path is None else path)
    figures = _measured()
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    data = {
        "version": cost_table.VERSION,
        "figures": figures,
        "measured": {
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "blas": _core._blas()["config"],
            "threads": _core._blas()["threads"],
        },
    }
    text = _json.dumps(data, indent=2) + "\n"
    with replace_file.replacing(target) as file:  # never half a file
        file.write(text.encode())
    return target
