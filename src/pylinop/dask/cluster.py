"""The parts as actors on the workers of a dask cluster.

An actor keeps its part between calls, so that an iteration is one call a worker: the vector goes
there, the sum of its rows comes back. dask does not restore a lost actor; here its part is made
anew on a living worker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from .collections import Lying
from .engines import Gone, Remote, WorkerLost
from .part import Part, Spec

__all__ = ["Dask"]


class Host:
    """The actor: a part. Its errors come back as answers, so that they are not taken for losses."""

    def __init__(self, spec: Spec, held: list[int], chunks: list[Any]) -> None:
        blocks, self.error = list(spec.blocks), None
        try:
            for i, beside in zip(held, chunks, strict=True):
                blocks[i] = blocks[i].made(beside)
        except Exception as error:
            self.error = error
        self.part = Part(spec._replace(blocks=tuple(blocks)))

    def ask(self, method: str, args: tuple[Any, ...]) -> tuple[bool, Any]:
        """(True, the answer) or (False, the error)."""
        try:
            if self.error is not None:
                raise self.error
            return True, self.part.call(method, args)
        except Exception as error:
            return False, error


class Dask(Remote):
    """The parts on the workers of a dask cluster (`distributed`).

    Parameters
    ----------
    client : distributed.Client, optional
        The client in use when not given, or else one of a LocalCluster of its own with one thread
        a process, which `close` ends.
    workers : int, optional
        How many workers to use: all that are there; of a cluster of its own, two.

    Notes
    -----
    By default a client talks to workers through the scheduler, which then carries every vector;
    with ``Client(..., direct_to_workers=True)`` it talks to them itself. A worker that dies costs
    what reading its blocks again costs; ``wait`` is how many seconds to wait for another worker
    when none is left.
    """

    wait = 60.0

    def __init__(self, client: Any = None, workers: int | None = None) -> None:
        super().__init__()
        import distributed  # type: ignore[import-not-found, unused-ignore]

        self._own: list[Any] = []
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                cluster = distributed.LocalCluster(
                    n_workers=int(workers or 2),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                )
                client = distributed.Client(cluster, direct_to_workers=True)
                self._own = [client, cluster]
        self.client = client
        there = len(self._alive())
        self.workers = min(int(workers), there) if workers else there
        self._actors: dict[int, tuple[Any, str]] = {}

    def _alive(self) -> list[str]:
        """Addresses of the workers; waits for one where there is none."""
        found = sorted(self.client.nthreads())
        if not found:
            try:
                self.client.wait_for_workers(1, timeout=self.wait)
            except TimeoutError as error:
                text = f"no worker came within {self.wait:g} s"
                raise WorkerLost(text) from error
            found = sorted(self.client.nthreads())
        return found

    def start(self, specs: Sequence[Spec]) -> None:
        """Make an actor a part, evenly over the workers."""
        self._actors = {}
        super().start(specs)

    def _place(self, spec: Spec) -> None:
        alive = self._alive()
        load = dict.fromkeys(alive, 0)
        for number, (_, address) in self._actors.items():
            if number != spec.number and address in load:
                load[address] += 1
        address = min(alive, key=lambda a: (load[a], a))
        self._actors.pop(spec.number, None)
        # blocks that lie on the cluster: dask brings their chunks to the worker
        held = [i for i, b in enumerate(spec.blocks) if isinstance(b, Lying)]
        made = self.client.submit(
            Host,
            spec,
            held,
            [list(spec.blocks[i].futures) for i in held],
            actor=True,
            workers=[address],
            pure=False,
            key=f"pylinop-part-{spec.number}-{uuid.uuid4().hex}",
        )
        with self.client.as_current():  # the actor talks to the client that it finds
            actor = self._wait_for(made, address)
        self._actors[spec.number] = (actor, address)

    def _wait_for(self, future: Any, address: str) -> Any:
        """The result; `Gone` where its worker is not there any more."""
        while True:
            try:
                return future.result(timeout=2)
            except TimeoutError as error:
                if address not in self.client.nthreads():
                    raise Gone from error
            except Exception as error:  # errors of the part are answers: this is the connection
                raise Gone from error

    def _ask(self, number: int, method: str, args: tuple[Any, ...]) -> Callable[[], Any]:
        actor, address = self._actors[number]
        try:
            future = actor.ask(method, args)
        except Exception as error:  # dask knows already that it is lost
            gone = error

            def lost() -> Any:
                raise Gone from gone

            return lost

        def wait() -> Any:
            good, answer = self._wait_for(future, address)
            if not good:
                raise answer
            return answer

        return wait

    def close(self) -> None:
        """Give up the actors, and the cluster if it is its own."""
        self._actors, self.placed = {}, None
        for thing in self._own:
            thing.close()
        self._own = []
