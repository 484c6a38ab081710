"""What ``progress=`` shows: a bar of tqdm if that is installed, otherwise a line now and then.

Unless ``progress=False``, what takes longer than two seconds in a notebook shows one by itself."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self

__all__ = ["Meter", "in_notebook", "shown"]
_PATIENCE = 2.0  # seconds before a bar that nobody asked for appears


class _Lines:
    """Prints a line a second on stderr."""

    def __init__(self, name: str, what: str, delay: float = 0.0) -> None:
        self._name, self._what = name, what
        self._last = time.monotonic() + max(0.0, delay - 1)

    def __call__(self, iteration: int, residual: float) -> None:
        if time.monotonic() - self._last >= 1:
            self._last = time.monotonic()
            print(f"{self._name}: {iteration}, {self._what} {residual:.3g}", file=sys.stderr)

    def close(self) -> None:
        pass


class _Bar:
    """A bar of tqdm's, without an end where the number of iterations is not known."""

    def __init__(
        self, name: str, what: str, tqdm: Any, total: int | None, delay: float = 0.0
    ) -> None:
        self._what = what
        self._bar = tqdm(desc=name, unit="it", total=total, delay=delay)

    def __call__(self, iteration: int, residual: float) -> None:
        self._bar.set_postfix_str(f"{self._what} {residual:.3g}", refresh=False)
        self._bar.update(max(iteration - self._bar.n, 0))

    def close(self) -> None:
        self._bar.close()


def in_notebook() -> bool:
    """Does this run in a notebook's kernel?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def shown(
    progress: Any, name: str, what: str = "residual", total: int | None = None
) -> tuple[Callable[..., Any] | None, Any]:
    """Returns (tell, bar) for True, False, a callable, or 'auto' and None, which are the same: the
    core calls tell(iteration, value) at most ten times a second, and bar is closed at the end;
    (None, None) if nothing is shown. ``what`` labels the value."""
    auto = progress is None or (isinstance(progress, str) and progress == "auto")
    if progress is False or (auto and not in_notebook()):
        return None, None
    if callable(progress):
        return progress, None
    if progress is not True and not auto:
        raise TypeError(f"progress is True, False, 'auto' or a callable, got {progress!r}")
    delay = _PATIENCE if auto else 0.0
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        made: Any = _Lines(name, what, delay)
    else:
        made = _Bar(name, what, tqdm, total, delay)
    return made, made


class Meter:
    """Reports how far a long run is: to the user's callback and to the progress bar. Use it in a
    ``with`` statement, which closes the bar whatever is raised."""

    def __init__(self, name: str, what: str, callback: Any, progress: Any) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"{name}: callback must be callable, got {callback!r}")
        self.callback = callback
        self._show, self._bar = shown(progress, name, what)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.close()

    @property
    def watched(self) -> bool:
        """Is anybody told?"""
        return self.callback is not None or self._show is not None

    def count(self, done: int, size: float) -> None:
        """Reports how much is done, and how large the error still is."""
        if self._show is not None:
            self._show(done, size)
