"""The one thread that writes: what waits is written together, and answered once on the disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeVar

from ..web.answers import Answer, Refused
from .store import Connection, Doubled, Store, Unavailable

TOGETHER = 500  # events in a transaction
ATTEMPTS = 4  # where another process has inserted the same row meanwhile
FOUND = "SELECT e.loop, e.event_id, e.kind, e.reward_id, e.at, e.body FROM "
INSERTED = "INSERT INTO events (loop, event_id, kind, reward_id, at, body) VALUES (?,?,?,?,?,?)"
T = TypeVar("T")
log = logging.getLogger("noisewise")


class Row(NamedTuple):
    """A row of the log, whose number is given later."""

    loop: int
    event_id: str
    kind: str
    reward_id: str
    at: float
    body: str


class Event(Protocol):
    """What a client asks to be written about one event."""

    @property
    def loop(self) -> int:
        """The number of the loop."""

    @property
    def event_id(self) -> str:
        """The name of the event."""

    def settle(self, found: list[Row]) -> tuple[Answer | Refused, Row | None]:
        """Return the answer, and the row to be inserted if there is one.

        ``found`` are the rows of the same event, which nobody else changes meanwhile.
        """


@dataclass(eq=False)
class Append:
    """Events of one request, which share a transaction with those of others."""

    events: Sequence[Event]
    future: Future[list[Answer | Refused]] = field(default_factory=Future)


@dataclass(eq=False)
class Task:
    """What has a transaction of its own."""

    run: Callable[[Connection], Any]
    future: Future[Any] = field(default_factory=Future)


class Writer(Thread):
    """The one writer of a process. ``afterwards`` runs in each transaction that inserts events.

    It ends where events can't be written for another reason than the database; everybody who waits,
    or asks later, is answered.
    """

    def __init__(self, store: Store, afterwards: Callable[[Connection, set[int]], None]) -> None:
        super().__init__(name="noisewise-writer", daemon=True)
        self.store, self.afterwards = store, afterwards
        self.connection = Connection(store)
        self.queue: SimpleQueue[Append | Task | None] = SimpleQueue()
        self._ended = False
        self.written: Callable[[], None] = lambda: None

    def append(self, events: Sequence[Event]) -> Future[list[Answer | Refused]]:
        """Write events; the future has the answer to each once all are durable."""
        job = Append(events)
        job.future.set_running_or_notify_cancel()  # written also where nobody waits any more
        self._put(job)
        return job.future

    def do(self, task: Callable[[Connection], T]) -> T:
        """Run a task in a transaction, and return its result once it is durable."""
        return self.later(task).result()

    def later(self, task: Callable[[Connection], T]) -> Future[T]:
        """Run a task in a transaction of its own."""
        job = Task(task)
        self._put(job)
        return job.future

    def run(self) -> None:
        """Write what waits, until there is a None."""
        try:
            self._serve()
        finally:
            self._ended = True
            self._refuse()
            self.connection.close()

    def _put(self, job: Append | Task) -> None:
        self.queue.put(job)
        if self._ended:  # maybe after its last look at the queue
            self._refuse()

    def _refuse(self) -> None:
        """Answer those that wait for a writer that has ended."""
        try:
            while True:
                if (job := self.queue.get_nowait()) is not None:
                    job.future.set_exception(Unavailable("the service is ending"))
        except Empty:
            return

    def _serve(self) -> None:
        job = self.queue.get()
        while job is not None:
            jobs, count = list[Append](), 0
            while isinstance(job, Append):
                jobs.append(job)
                count += len(job.events)
                if count >= TOGETHER or self.queue.empty():
                    break
                job = self.queue.get()
            try:
                if jobs:
                    self._write(jobs)
            except Exception as error:  # of the code, or a damaged row: for all who wait, and here
                waiting: list[Append | Task] = [*jobs]
                if isinstance(job, Task):  # taken out behind them
                    waiting.append(job)
                for each in waiting:
                    each.future.set_exception(error)
                raise
            if isinstance(job, Task):
                self._run(job)
            self.written()
            if job is not None:
                job = self.queue.get()

    def stop(self) -> None:
        """Write what waits, then end."""
        self.queue.put(None)
        self.join()

    def _run(self, job: Task) -> None:
        try:
            with self.connection.promptly() as connection:
                result = job.run(connection)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it, and others go on
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    def _write(self, jobs: list[Append]) -> None:
        """Write events in one transaction, or let all of them fail."""
        events = [event for job in jobs for event in job.events]
        for attempt in range(ATTEMPTS):
            try:
                answers = iter(self._insert(events))
                break
            except Unavailable as error:
                if isinstance(error, Doubled) and attempt < ATTEMPTS - 1:
                    continue
                log.error("nothing was written", extra={"cause": str(error)})
                for job in jobs:
                    job.future.set_exception(error)
                return
        for job in jobs:
            job.future.set_result([next(answers) for _ in job.events])

    def _insert(self, events: list[Event]) -> list[Answer | Refused]:
        names = sorted({(event.loop, event.event_id) for event in events})
        with self.connection.promptly() as connection:
            found: dict[tuple[int, str], list[Row]] = {name: [] for name in names}
            for row in self._found(connection, names):
                found[row.loop, row.event_id].append(row)
            answers, new = list[Answer | Refused](), list[Row]()
            for event in events:
                rows = found[event.loop, event.event_id]
                answer, added = event.settle(rows)
                answers.append(answer)
                if added is not None:
                    rows.append(added)
                    new.append(added)
            connection.many(INSERTED, new)
            self.afterwards(connection, {row.loop for row in new})
        return answers

    def _found(self, connection: Connection, names: list[tuple[int, str]]) -> list[Row]:
        """Return the rows of events; on PostgreSQL their decisions are locked first."""
        places = ",".join(["(?,?)"] * len(names))
        values = [part for name in names for part in name]
        if self.store.embedded:  # which reads the whole table for rows IN a list
            where = (
                f"(VALUES {places}) v CROSS JOIN events e "
                "ON e.loop = v.column1 AND e.event_id = v.column2"
            )
        else:
            where = f"events e WHERE (e.loop, e.event_id) IN ({places})"
            connection.rows(
                f"SELECT id FROM {where} AND kind = 'decide' ORDER BY loop, event_id FOR UPDATE",
                *values,
            )
        return [Row(*row) for row in connection.rows(f"{FOUND} {where} ORDER BY e.id", *values)]
