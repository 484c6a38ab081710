"""Engines know where the parts of an operator lie, ask all of them, and add up their answers.

    start(specs)                     place the parts
    gather(method, *common, each=)   one answer a part, in their order
    total(method, *common, each=)    the answers' sum, in that order
    here(method, *common, each=)     one answer a part of this process: all, but with MPI
    held(n, edges)                   how solvers hold vectors of n numbers (held.py)

All solvers are written on these. An engine that can lose a worker makes the lost parts anew
elsewhere, brings them to where they were by what `recover` says, and asks them again; so a solver
sees complete answers or an exception."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .held import Held, Split
from .part import Part, Spec

__all__ = ["Engine", "MPI", "Serial", "Threads", "WorkerLost"]

# What each part gets beside what all get: a tuple a part, by its number.
Each = Sequence[Any] | Mapping[int, Any] | None


class WorkerLost(RuntimeError):
    """Raised when workers died more often than an engine tries again."""


def add(total: Any, answer: Any) -> Any:
    """total + answer, for numbers, arrays and tuples of them; arrays of the total are reused."""
    if isinstance(answer, tuple):
        return tuple(add(t, a) for t, a in zip(total, answer, strict=True))
    if isinstance(total, np.ndarray):
        return np.add(total, answer, out=total)
    return total + answer


def own(answer: Any) -> Any:
    """The answer with arrays that nobody else writes to."""
    if isinstance(answer, tuple):
        return tuple(own(a) for a in answer)
    return answer.copy() if isinstance(answer, np.ndarray) else answer


class Engine:
    """The base of engines, which run the parts. A subclass defines `start` and `gather`.

    Attributes
    ----------
    workers : int
        How many parts can be at work at once.
    split : int
        How many workers share one memory limit (1: each worker has its own).
    writes : bool
        Whether this process writes checkpoints and shows progress.
    losses : int
        How many parts were made anew since the start.
    pieces : bool
        Whether solvers take and give x as this process's piece of it.
    recover : callable or None
        ``recover(number)`` gives the (method, arguments) that bring a part made anew to where the
        lost one was.
    """

    workers = 1
    split = 1
    writes = True
    losses = 0
    pieces = False
    placed: Any = None  # the list of Spec last started: an engine has the parts of one operator
    recover: Callable[[int], list[tuple[str, tuple[Any, ...]]]] | None = None

    def start(self, specs: Sequence[Spec]) -> None:
        """Place the parts; parts of an earlier start are given up."""
        raise NotImplementedError

    def gather(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """Call ``method(*common)``, or ``method(*common, *each[i])``, of all parts for answers."""
        raise NotImplementedError

    def total(self, method: str, *common: Any, each: Each = None) -> Any:
        """Return the sum of the answers, added part after part."""
        answers = self.gather(method, *common, each=each)
        total = own(answers[0])
        for answer in answers[1:]:
            total = add(total, answer)
        return total

    def mine(self) -> range:
        """Return the numbers of the parts that `here` asks."""
        return range(len(self.placed))

    def here(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """Return the answers of this process's parts, which are all parts but with MPI."""
        return self.gather(method, *common, each=each)

    def held(self, n: int, edges: Sequence[int] | None = None, grain: int = 1) -> Held:
        """Say how solvers hold vectors of n numbers: in one piece for each part, between ``edges``,
        or in any, multiples of ``grain`` long."""
        return Held(self, n, edges)

    def any(self, flag: bool) -> bool:
        """Is ``flag`` true in one of the processes that run the solver?"""
        return flag

    def agree(self, error: Exception | None) -> None:
        """Raise an error of one process in all."""
        if error is not None:
            raise error

    def close(self) -> None:
        """Give up the parts and what the engine started."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def arguments(i: int, common: tuple[Any, ...], each: Each) -> tuple[Any, ...]:
    """The arguments that part i is called with."""
    return common if each is None else (*common, *each[i])


class Serial(Engine):
    """An engine that runs all parts in this thread, one after the other."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = self.split = max(1, int(workers))
        self._parts: list[Part] = []

    def start(self, specs: Sequence[Spec]) -> None:
        """Make the parts."""
        self._parts = [Part(spec) for spec in specs]

    def gather(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """See `Engine.gather`."""
        return [p.call(method, arguments(i, common, each)) for i, p in enumerate(self._parts)]

    def close(self) -> None:
        """Give up the parts."""
        self._parts, self.placed = [], None


class Threads(Serial):
    """An engine that runs the parts in threads of this process, without the interpreter's lock.

    Parameters
    ----------
    workers : int, optional
        Threads, and parts; the processors this process may use when not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers or len(os.sched_getaffinity(0)))
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None

    def gather(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """See `Engine.gather`."""
        if len(self._parts) == 1:
            return super().gather(method, *common, each=each)
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self.workers, "pylinop")
        asked = [
            self._pool.submit(part.call, method, arguments(i, common, each))
            for i, part in enumerate(self._parts)
        ]
        concurrent.futures.wait(asked)  # none is at work any more when one's error goes on
        return [a.result() for a in asked]

    def close(self) -> None:
        """Give up the parts and the threads."""
        super().close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class Gone(Exception):
    """A worker did not answer and is not there any more."""


class Remote(Engine):
    """What engines with workers in other processes share: asking again after a loss.

    A subclass defines ``_place(spec)``, which makes a part on a living worker, and
    ``_ask(number, method, args)``, which gives a function that waits for the answer or raises
    `Gone`. ``retries`` is how many deaths one question survives."""

    retries = 5

    def __init__(self) -> None:
        self._specs: list[Spec] = []

    def _place(self, spec: Spec) -> None:
        raise NotImplementedError

    def _ask(self, number: int, method: str, args: tuple[Any, ...]) -> Callable[[], Any]:
        raise NotImplementedError

    def start(self, specs: Sequence[Spec]) -> None:
        """Place the parts on the workers."""
        self._specs = list(specs)
        for spec in self._specs:
            self._tried(spec.number, "start", partial(self._place, spec))

    def gather(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """See `Engine.gather`."""
        args = [arguments(i, common, each) for i in range(len(self._specs))]
        waits = [self._ask(i, method, a) for i, a in enumerate(args)]
        answers: list[Any] = []
        error: BaseException | None = None
        lost = []
        for i, wait in enumerate(waits):
            answers.append(None)
            try:
                answers[i] = wait()
            except Gone:
                lost.append(i)
            except Exception as raised:  # the others are waited for before it goes on
                error = error or raised
        if error is not None:
            raise error
        for i in lost:
            answers[i] = self._again(i, method, args[i])
        return answers

    def _again(self, number: int, method: str, args: tuple[Any, ...]) -> Any:
        """The answer of a part made anew."""

        def attempt() -> Any:
            self.losses += 1
            self._place(self._specs[number])
            for before, theirs in self.recover(number) if self.recover is not None else ():
                self._ask(number, before, theirs)()
            return self._ask(number, method, args)()

        return self._tried(number, method, attempt)

    def _tried(self, number: int, what: str, attempt: Callable[[], Any]) -> Any:
        cause: BaseException | None = None
        for _ in range(self.retries):
            try:
                return attempt()
            except Gone as gone:
                cause = gone.__cause__
        raise WorkerLost(
            f"the worker of part {number} died {self.retries} times during {what!r}: perhaps its "
            "blocks do not fit into its memory (memory_limit=, smaller blocks)"
        ) from cause


class MPI(Engine):
    """An engine with the parts on the ranks of an MPI communicator; each rank runs the program.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        Anything with mpi4py's ``Get_rank``, ``Get_size``, ``allgather``, ``bcast``, ``Allreduce``,
        ``Allgatherv`` and ``Reduce_scatter``; MPI.COMM_WORLD when not given.
    pieces : bool, optional
        True: each rank's x is its piece of the solution, numbers ``record.piece[0]`` to
        ``record.piece[1]``, in results and callbacks, and x0 may be one. False: x is whole on
        every rank, which is the only place where a rank has to hold it.

    Notes
    -----
    Each rank makes the operator of the same blocks and reads only those of its own part. Solvers
    split their vectors: a rank holds its piece of x and of all that the iteration carries along.
    What a sweep needs whole is gathered for it (Allgatherv), and what it adds to is summed to
    pieces (Reduce_scatter). The sums' order is MPI's. Rank 0 writes checkpoints, which the others
    send it piece by piece. A rank that dies takes the others with it, as MPI does: resume from the
    checkpoint, on as many ranks as there are then. Start with ``mpiexec -n 4 python program.py``.
    """

    def __init__(self, comm: Any = None, pieces: bool = False) -> None:
        if comm is None:
            from mpi4py import MPI as mpi  # type: ignore[import-not-found, unused-ignore]

            comm = mpi.COMM_WORLD
        self.comm, self.pieces = comm, bool(pieces)
        self.workers = int(comm.Get_size())
        self.rank = int(comm.Get_rank())
        self.writes = self.rank == 0
        self._parts: list[Part] = []
        self._count = 0

    def start(self, specs: Sequence[Spec]) -> None:
        """Make this rank's share of the parts."""
        self._count = len(specs)
        self._parts = [Part(specs[i]) for i in self.mine()]

    def _first(self, rank: int) -> int:
        """The number of a rank's first part."""
        return -(-rank * self._count // self.workers)

    def mine(self) -> range:
        """Return the numbers of this rank's parts."""
        return range(self._first(self.rank), self._first(self.rank + 1))

    def held(self, n: int, edges: Sequence[int] | None = None, grain: int = 1) -> Held:
        """Vectors lie in pieces: those of the parts, or else pieces of about one length."""
        ranks = range(self.workers + 1)
        if edges is None:
            grains = -(-n // grain)
            return Split(self, n, [min(n, grains * r // self.workers * grain) for r in ranks])
        return Split(self, n, [edges[self._first(r)] for r in ranks], edges)

    def any(self, flag: bool) -> bool:
        """Is ``flag`` true on one of the ranks?"""
        return any(self.comm.allgather(bool(flag)))

    def agree(self, error: Exception | None) -> None:
        """Raise an error of one rank in all, so that none waits for it."""
        for rank, said in enumerate(self.comm.allgather(None if error is None else repr(error))):
            if said is not None:
                raise error or RuntimeError(f"rank {rank} failed: {said}")

    def here(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """Return the answers of this rank's parts."""
        answers, error = [], None
        try:
            for part in self._parts:
                answers.append(part.call(method, arguments(part.spec.number, common, each)))
        except Exception as raised:
            error = raised
        self.agree(error)
        return answers

    def gather(self, method: str, *common: Any, each: Each = None) -> list[Any]:
        """As `Engine.gather`, on all ranks."""
        answers = self.here(method, *common, each=each)
        return [a for rank in self.comm.allgather(answers) for a in rank]

    def total(self, method: str, *common: Any, each: Each = None) -> Any:
        """See `Engine.total`; on all ranks, the order of their sums is the communicator's."""
        answers = self.here(method, *common, each=each)
        total = own(answers[0]) if answers else None
        for answer in answers[1:]:
            total = add(total, answer)
        if self._count < self.workers:  # a rank without a part has no shape
            found = [t for t in self.comm.allgather(total) if t is not None]
            total = own(found[0])
            for answer in found[1:]:
                total = add(total, answer)
            return total
        return self._reduce(total)

    def _reduce(self, total: Any) -> Any:
        if isinstance(total, tuple):
            return tuple(self._reduce(t) for t in total)
        array = np.ascontiguousarray(total)
        result = np.empty_like(array)
        self.comm.Allreduce(array, result)
        return result if isinstance(total, np.ndarray) else result[()].item()

    def close(self) -> None:
        """Give up this rank's parts."""
        self._parts, self.placed = [], None
