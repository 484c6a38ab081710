"""The cost table, which prices plans: the shipped one, or one measured here and read from a
file."""

import os
import struct
from typing import Any

from .. import _core
from .lazy_import import Standard

_json = Standard("json")

VERSION = 1  # of the file: which figures there are and what they mean
_FIGURES = {
    "flop_rate": "flops a second of our own loops",
    "gemm_rate": "flops a second of a large float64 gemm",
    "bandwidth": "bytes a second from memory",
    "overhead": "seconds a step",
}


class Table:
    """The figures of a table, and where they came from."""

    def __init__(self, figures: dict[str, float], version: int, source: str) -> None:
        self.figures, self.version, self.source = figures, version, source
        self.packed = struct.pack("=i4d", version, *(figures[name] for name in _FIGURES))

    def __str__(self) -> str:
        return self.source


def shipped() -> Table:
    """The table that the library ships."""
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
    """The table that ``pl.config(costs=value)`` names."""
    if value is None or isinstance(value, Table):
        return value
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"costs must be the path of a file of pl.calibrate(), got {value!r}")
    try:
        with open(os.path.expanduser(value), encoding="utf-8") as file:
            data = _json.load(file)
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
