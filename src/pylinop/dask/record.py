"""What a solver reports: its result with a record, progress, and checkpoints on disk."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.progress import shown
from .._base.replace_file import regular, replacing
from .held import Held, Streamed

__all__ = ["Record", "Result", "Watch", "load", "save", "stored"]


_MARK = "method.npy"  # that of each solver's checkpoints


@dataclass
class Record:
    """How a solve went.

    Attributes
    ----------
    method : str
    iterations : int
    residuals : list of float
        |r| at each iteration, by the recurrence.
    normal_residuals : list of float
        |A^H r - damp^2 (x - x0)| at each iteration, by the recurrence; empty for `cg`.
    true_residual, true_normal_residual : float or None
        Computed from x at the end.
    restarts : int
        How often the iteration began anew from x, as the true residual did not confirm the estimate
        or what a dead worker held could not be restored accurately.
    losses : int
        Parts made anew because their worker died.
    parts : int
        Parts that sums were made of; the same number gives the same bits.
    piece : (int, int)
        The range of x that the result holds: the whole, unless `MPI` has ``pieces=True``.
    resumed : int
        The iteration at which a checkpoint was taken up, or 0.
    seconds : float
    """

    method: str
    iterations: int = 0
    residuals: list[float] = field(default_factory=list)
    normal_residuals: list[float] = field(default_factory=list)
    true_residual: float | None = None
    true_normal_residual: float | None = None
    restarts: int = 0
    losses: int = 0
    parts: int = 1
    piece: tuple[int, int] = (0, 0)
    resumed: int = 0
    seconds: float = 0.0


class Result(tuple):  # type: ignore[type-arg]
    """SciPy's tuple, which also has a ``record``."""

    record: Record

    def __new__(cls, values: Sequence[Any], record: Record) -> Result:
        made = super().__new__(cls, values)
        made.record = record
        return made

    def __reduce__(self) -> Any:
        return Result, (tuple(self), self.record)


def save(path: str, arrays: Iterator[tuple[str, Any]]) -> None:
    """An .npz of arrays that are made one after the other; there whole, or as it was before."""
    with replacing(path, sync=True) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as z:
            for name, array in arrays:
                with z.open(f"{name}.npy", "w", force_zip64=True) as f:
                    if not isinstance(array, Streamed):
                        np.lib.format.write_array(f, np.asanyarray(array), allow_pickle=False)
                        continue
                    said = {"descr": array.dtype.str, "fortran_order": False, "shape": (array.n,)}
                    np.lib.format.write_array_header_1_0(f, said)
                    for chunk in array.chunks:
                        f.write(chunk.tobytes())


def replaceable(path: str) -> None:
    """FileExistsError where the path names what is neither a checkpoint nor an empty file."""
    if not regular(path) or os.path.getsize(path) == 0:
        return
    try:
        with zipfile.ZipFile(path) as z:
            if _MARK in z.namelist():
                return
    except zipfile.BadZipFile:
        pass
    raise FileExistsError(
        f"checkpoint={path!r} is there and is no checkpoint: it is not replaced; name another "
        "path, or remove it"
    )


def load(path: str, expected: dict[str, Any]) -> Any:
    """The arrays of a checkpoint, read one by one; a ValueError where it is of another problem."""
    try:
        z = np.load(path, allow_pickle=False)
        z.files  # noqa: B018  # a .npy file has none
    except (zipfile.BadZipFile, EOFError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a checkpoint, or not a whole one: {error}") from error
    for name, value in expected.items():
        found = z[name] if name in z.files else None
        if found is None or found.tolist() != (
            value.tolist() if hasattr(value, "tolist") else value
        ):
            said = "nothing" if found is None else found.tolist()
            z.close()
            raise ValueError(
                f"{path} is not a checkpoint of this problem: {name} is {value!r} here, "
                f"{said!r} there"
            )
    return z


def stored(z: Any, name: str, at: slice) -> Any:
    """The numbers ``at`` of a vector in a checkpoint; no others are held."""
    with z.zip.open(f"{name}.npy") as f:
        np.lib.format.read_magic(f)
        (n,), _, dtype = np.lib.format.read_array_header_1_0(f)
        f.seek(at.start * dtype.itemsize, os.SEEK_CUR)
        found = np.empty(at.stop - at.start, dtype)
        if at.stop > n or f.readinto(found.view(np.uint8)) != found.nbytes:
            raise ValueError(f"{name} has {n} numbers in the checkpoint, {at.stop} are needed")
        return found


def _drained(arrays: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The same; pieces that the one who asks leaves are made nevertheless: others send them."""
    for name, array in arrays:
        yield name, array
        if isinstance(array, Streamed):
            for _ in array.chunks:
                pass


class Watch:
    """callback=, progress=, checkpoint= of a solver.

    ``every`` is iterations (an int) or seconds (a float) between checkpoints."""

    def __init__(
        self,
        engine: Any,
        maxiter: int,
        callback: Callable[[Any], Any] | None,
        progress: Any,
        checkpoint: str | os.PathLike[str] | None,
        every: float,
    ) -> None:
        self.engine, self.callback = engine, callback
        self.seen = engine.any(callback is not None)  # x is gathered for it on all ranks
        self.path = None if checkpoint is None else os.fspath(checkpoint)
        self.every = every
        if self.path is not None:
            if not float(every) > 0:
                raise ValueError(f"checkpoint_every={every!r} must be positive")
            home = os.path.dirname(os.path.abspath(self.path))
            if not os.path.isdir(home):  # not only when the first one is due
                raise FileNotFoundError(f"checkpoint={self.path!r}: there is no folder {home}")
            replaceable(self.path)
        self.begun = self.last = time.monotonic()
        self.progress, self.bar = shown(
            progress if engine.writes else None, "iteration", total=maxiter
        )

    def due(self, iteration: int) -> bool:
        """Is it time for a checkpoint?"""
        if self.path is None:
            return False
        if isinstance(self.every, int):
            return iteration % self.every == 0
        late = self.engine.writes and time.monotonic() - self.last >= self.every
        return bool(self.engine.any(late))

    def save(self, arrays: Iterator[tuple[str, Any]]) -> None:
        """A checkpoint: all ranks ask for the arrays, one writes them."""
        assert self.path is not None
        arrays, error = _drained(arrays), None
        try:
            if self.engine.writes:
                replaceable(self.path)
                save(self.path, arrays)
        except Exception as raised:
            error = raised
        for _ in arrays:
            pass
        self.engine.agree(error)
        self.last = time.monotonic()

    def tell(
        self, iteration: int, held: Held, x: Any, residual: float, normal: float | None
    ) -> None:
        """After an iteration."""
        if self.seen:
            x = held.given(x)
        if self.callback is not None:
            self.callback(x)
        if self.bar is not None:
            self.bar(iteration, residual)
        elif self.progress is not None:
            self.progress(iteration, residual, normal)

    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.begun

    def close(self) -> None:
        """The bar goes."""
        if self.bar is not None:
            self.bar.close()
