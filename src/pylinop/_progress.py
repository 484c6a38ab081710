"""What ``progress=`` shows: a bar of tqdm where it is there, else a line now and then."""

import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["shown"]


class _Lines:
    """A line a second on stderr."""

    def __init__(self, name: str) -> None:
        self._name, self._last = name, time.monotonic()

    def __call__(self, iteration: int, residual: float) -> None:
        if time.monotonic() - self._last >= 1:
            self._last = time.monotonic()
            print(f"{self._name}: iteration {iteration}, residual {residual:.3g}", file=sys.stderr)

    def close(self) -> None:
        pass


class _Bar:
    """A bar of tqdm's; without an end where it is not known how many iterations there may be."""

    def __init__(self, name: str, tqdm: Any, total: int | None) -> None:
        self._bar = tqdm(desc=name, unit="it", total=total)

    def __call__(self, iteration: int, residual: float) -> None:
        self._bar.set_postfix_str(f"residual {residual:.3g}", refresh=False)
        self._bar.update(max(iteration - self._bar.n, 0))

    def close(self) -> None:
        self._bar.close()


def shown(
    progress: Any, name: str, total: int | None = None
) -> tuple[Callable[..., Any] | None, Any]:
    """What the core calls as f(iteration, residual), ten times a second at most, and what is to be
    closed at the end; two times None where nothing is to be shown."""
    if progress is None or progress is False:
        return None, None
    if callable(progress):
        return progress, None
    if progress is not True:
        raise TypeError(f"progress is True, False or a callable, got {progress!r}")
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        made: Any = _Lines(name)
    else:
        made = _Bar(name, tqdm, total)
    return made, made
