"""The parts in processes that this one starts, without a cluster or a scheduler; the death of a
process is survived."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .engines import Gone, Remote
from .part import Part, Spec

__all__ = ["Processes"]


def send(pipe: Any, message: Any) -> None:
    """A message, its arrays' memory as it lies."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    raw = [b.raw() for b in buffers]
    pipe.send_bytes(pickle.dumps((head, [r.nbytes for r in raw])))
    fd = pipe.fileno()
    for left in raw:
        while left:
            left = left[os.write(fd, left) :]


def receive(pipe: Any) -> Any:
    """What `send` sent; its arrays can be written to."""
    head, sizes = pickle.loads(pipe.recv_bytes())
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        _fill(pipe, buffer.data)
    return pickle.loads(head, buffers=buffers)


def _fill(pipe: Any, left: memoryview) -> None:
    """Read so many bytes to where they stay: the pipe's own method copies them twice."""
    fd = pipe.fileno()
    while left:
        count = os.readv(fd, [left])
        if not count:
            raise EOFError
        left = left[count:]


def serve(pipe: Any) -> None:
    """What a worker does until its pipe closes."""
    parts: dict[int, Part] = {}
    while True:
        try:
            number, method, args = receive(pipe)
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            if method == "make":
                parts[number] = Part(args[0])
                answer: Any = (True, os.getpid())
            elif method == "drop":
                parts.clear()
                answer = (True, None)
            else:
                answer = (True, parts[number].call(method, args))
        except BaseException as error:
            answer = (False, error)
        try:
            send(pipe, answer)
        except (AttributeError, TypeError, pickle.PicklingError):
            send(pipe, (False, RuntimeError(f"an answer does not pickle: {answer[1]!r}")))
        except OSError:
            return


class _Worker:
    """One process and the pipe to it; one question at a time."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.gone = False

    def ask(self, message: Any) -> Any:
        try:
            send(self.pipe, message)
            good, answer = receive(self.pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self.gone = True
            raise Gone from error
        if not good:
            raise answer
        return answer

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(2)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()


class Processes(Remote):
    """The parts in processes on this machine, started with "spawn".

    Parameters
    ----------
    workers : int, optional
        Processes; the processors this process may use when not given.

    Notes
    -----
    A program that uses it needs ``if __name__ == "__main__":``, as with `multiprocessing`. A
    process that dies is started again, its blocks are read again, and the iteration goes on.
    """

    def __init__(self, workers: int | None = None) -> None:
        super().__init__()
        self.workers = int(workers or len(os.sched_getaffinity(0)))
        self._workers: list[_Worker] = []
        self._lines: list[concurrent.futures.ThreadPoolExecutor] = []

    @property
    def pids(self) -> list[int | None]:
        """The processes' numbers."""
        return [w.process.pid for w in self._workers]

    def start(self, specs: Sequence[Spec]) -> None:
        """Start the processes and make the parts."""
        if not self._workers:
            self._workers = [_Worker() for _ in range(self.workers)]
            self._lines = [
                concurrent.futures.ThreadPoolExecutor(1, "pylinop") for _ in self._workers
            ]
        super().start(specs)

    def _at(self, number: int) -> int:
        return number * self.workers // len(self._specs)

    def _place(self, spec: Spec) -> None:
        worker = self._workers[self._at(spec.number)]
        if worker.gone or not worker.process.is_alive():
            worker.stop()
            worker.start()
        self._ask(spec.number, "make", (spec,))()

    def _ask(self, number: int, method: str, args: tuple[Any, ...]) -> Callable[[], Any]:
        at = self._at(number)
        asked = self._lines[at].submit(self._workers[at].ask, (number, method, args))
        return asked.result

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()
        for line in self._lines:
            line.shutdown()
        self._workers, self._lines, self.placed = [], [], None

    def __del__(self) -> None:
        for worker in getattr(self, "_workers", []):
            worker.pipe.close()
