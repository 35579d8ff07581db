"""The one thread that writes: what waits is written together, and answered once on the disk."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from asyncio import Future as AsyncFuture
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol

from .store import Connection, Doubled, Store, Unavailable

TOGETHER = 500  # events in a transaction
ATTEMPTS = 4  # where another process has inserted the same row meanwhile
FOUND = "SELECT e.loop, e.event_id, e.kind, e.reward_id, e.at, e.body FROM "
INSERTED = "INSERT INTO events (loop, event_id, kind, reward_id, at, body) VALUES (?,?,?,?,?,?)"
log = logging.getLogger("noisewise")

Row = tuple[int, str, str, str, float, str]  # loop, event_id, kind, reward_id, at, body


class Event(Protocol):
    """What a client asks to be written about one event."""

    loop: int
    event_id: str

    def settle(self, found: list[Row]) -> tuple[Any, Row | None]:
        """Return the answer, and the row to be inserted if there is one.

        ``found`` are the rows of the same event, which nobody else changes meanwhile.
        """


@dataclass(eq=False)
class Job:
    """Events of one request, or anything else that is to be done in a transaction of its own."""

    events: list[Event]
    task: Callable[[Connection], Any] | None
    future: Any
    home: AbstractEventLoop | None  # of the future, where it is one of asyncio
    result: Any = None
    error: BaseException | None = None


class Writer(Thread):
    """The one writer of a process. ``afterwards`` runs in each transaction that inserts events."""

    def __init__(self, store: Store, afterwards: Callable[[Connection, set[int]], None]) -> None:
        super().__init__(name="noisewise-writer", daemon=True)
        self.store, self.afterwards = store, afterwards
        self.connection = Connection(store)
        self.queue: SimpleQueue[Job | None] = SimpleQueue()
        self.written: Callable[[], None] = lambda: None

    def append(self, events: list[Event], home: AbstractEventLoop) -> AsyncFuture[list[Any]]:
        """Write events; the future has the answer to each once all are durable."""
        future: AsyncFuture[list[Any]] = home.create_future()
        self.queue.put(Job(events, None, future, home))
        return future

    def do(self, task: Callable[[Connection], Any]) -> Any:
        """Run a task in a transaction, and return its result once it is durable."""
        return self.later(task).result()

    def later(self, task: Callable[[Connection], Any]) -> Future[Any]:
        """Run a task in a transaction."""
        future: Future[Any] = Future()
        self.queue.put(Job([], task, future, None))
        return future

    def run(self) -> None:
        """Write what waits, until there is a None."""
        while (job := self.queue.get()) is not None:
            jobs, ends = [job], False
            while sum(len(each.events) or TOGETHER for each in jobs) < TOGETHER:
                try:
                    more = self.queue.get_nowait()
                except Empty:
                    break
                if more is None:
                    ends = True
                    break
                jobs.append(more)
            self._write([each for each in jobs if each.task is None])
            for each in jobs:
                if each.task is not None:
                    self._run(each)
            self._answer(jobs)
            self.written()
            if ends:
                break
        self.connection.close()

    def stop(self) -> None:
        """Write what waits, then end."""
        self.queue.put(None)
        self.join()

    def _run(self, job: Job) -> None:
        assert job.task is not None
        try:
            with self.connection.transaction() as connection:
                job.result = job.task(connection)
        except (Unavailable, ValueError, LookupError) as error:
            job.error = error

    def _write(self, jobs: list[Job]) -> None:
        """Write events in one transaction, or let all of them fail."""
        for attempt in range(ATTEMPTS):
            try:
                if jobs:
                    self._insert(jobs)
                return
            except Doubled as error:
                if attempt == ATTEMPTS - 1:
                    self._fail(jobs, error)
            except Unavailable as error:
                self._fail(jobs, error)
                return

    def _insert(self, jobs: list[Job]) -> None:
        events = [event for job in jobs for event in job.events]
        names = sorted({(event.loop, event.event_id) for event in events})
        with self.connection.transaction() as connection:
            found: dict[tuple[int, str], list[Row]] = {name: [] for name in names}
            for row in self._found(connection, names):
                found[row[0], row[1]].append(row)
            new = []
            for job in jobs:
                job.result = []
                for event in job.events:
                    rows = found[event.loop, event.event_id]
                    answer, row = event.settle(rows)
                    job.result.append(answer)
                    if row is not None:
                        rows.append(row)
                        new.append(row)
            connection.many(INSERTED, new)
            self.afterwards(connection, {row[0] for row in new})

    def _found(self, connection: Connection, names: list[tuple[int, str]]) -> list[Any]:
        """Return the rows of events; on PostgreSQL their decisions are locked first."""
        places = ",".join(["(?,?)"] * len(names))
        values = [part for name in names for part in name]
        if self.store.embedded:  # which reads the whole table for rows IN a list
            return connection.rows(
                f"{FOUND} (VALUES {places}) v CROSS JOIN events e "
                "ON e.loop = v.column1 AND e.event_id = v.column2 ORDER BY e.id",
                *values,
            )
        connection.rows(
            f"SELECT id FROM events WHERE (loop, event_id) IN ({places}) AND kind = 'decide' "
            "ORDER BY loop, event_id FOR UPDATE",
            *values,
        )
        return connection.rows(
            f"{FOUND} events e WHERE (e.loop, e.event_id) IN ({places}) ORDER BY e.id", *values
        )

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        log.error("nothing was written", extra={"cause": str(error)})
        for job in jobs:
            job.error = error

    def _answer(self, jobs: list[Job]) -> None:
        """Answer all jobs, with one call into each event loop."""
        homes: dict[AbstractEventLoop, list[Job]] = {}
        for job in jobs:
            if job.home is None:
                resolve([job])
            else:
                homes.setdefault(job.home, []).append(job)
        for home, theirs in homes.items():
            if not home.is_closed():
                home.call_soon_threadsafe(resolve, theirs)


def resolve(jobs: list[Job]) -> None:
    """Give jobs their results or errors, unless nobody waits any more."""
    for job in jobs:
        if job.future.cancelled() or job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
