"""The loops of a process, kept up with the log: numbered, learnt, expired, saved."""

from __future__ import annotations

import json
import logging
import secrets
import time
from asyncio import AbstractEventLoop
from asyncio import Future as AsyncFuture
from threading import Event as Signal
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from ..agent.reasons import reasons
from . import loops
from .events import DecideBody, Decided, RewardBody, Rewarded, fingerprint
from .learner import Learner, Request, build, decide, digest, saved
from .loops import COLUMNS, Loop, Settings, dumped, loop_of
from .owners import RENEWED, Owner
from .store import Connection, Store, Unavailable
from .writer import Writer

NEARLY_IDLE = 0.05  # seconds between looks at the log
EVERY_SECOND = 1.0
SNAPSHOTS = 10_000  # rows between them
KEPT = 3  # snapshots beside the oldest
HOUR = 3600.0
EXPIRED = 500  # decisions at once
log = logging.getLogger("noisewise")


class Asked(NamedTuple):
    """A request for a decision, as it came and as it is read."""

    body: DecideBody
    request: Request


class Engine(Thread):
    """All loops of a process. Its thread is the only one that learns."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="noisewise-learner", daemon=True)
        self.store, self.owner = store, Owner(store)
        self.writer = Writer(store, self._number)
        self.learners: dict[str, Learner] = {}
        self.rng = np.random.default_rng()
        self._awake, self._ended = Signal(), False
        self._connection = Connection(store)
        self._saved: dict[int, int] = {}  # the number of each loop's last snapshot
        self._done: dict[str, float] = {}

    def open(self) -> Engine:
        """Learn what the log holds, and start to write and to learn."""
        self.store.claim()
        self.store.migrate()
        self.writer.written = self._awake.set
        self.writer.start()
        _warm_up()
        self._refresh()
        self._own()
        self.start()
        return self

    def close(self) -> None:
        """Write what waits, save what was learnt, and end."""
        self._ended = True
        self._awake.set()
        self.join()
        for learner in self.learners.values():
            self._catch_up(learner)
            self._save(learner)
        self.writer.later(self.owner.release).exception()
        self.writer.stop()
        self._connection.close()
        self.store.close()

    @property
    def alive(self) -> bool:
        """Whether it writes and learns."""
        return self.is_alive() and self.writer.is_alive()

    def find(self, name: str) -> Learner:
        """Return the learner of a loop; LookupError where there is none."""
        if name not in self.learners:
            raise LookupError(name)
        return self.learners[name]

    # what clients ask for

    def asked(self, learner: Learner, body: DecideBody) -> Asked:
        """Check a request for a decision."""
        try:
            return Asked(body, Request(learner.loop.settings, learner.agent, body))
        except ValueError:
            learner.unusable += 1
            raise

    def decided(self, learner: Learner, asked: list[Asked], now: float) -> list[Decided]:
        """Take decisions, which are yet to be written."""
        loop, view = learner.loop, learner.view
        choices = decide(view, [each.request for each in asked], loop.salt, self.rng)
        return [
            Decided(
                loop.id, body.event_id or secrets.token_hex(12), now, fingerprint(body),
                {
                    "context": list(request.values), "chosen": choice.chosen,
                    "ranking": choice.ranking, "group": choice.group, "version": view.version,
                    "top": body.top, "subject": body.subject,
                },
            )
            for (body, request), choice in zip(asked, choices, strict=True)
        ]  # fmt: skip

    def rewarded(self, learner: Learner, event_id: str, body: RewardBody, now: float) -> Rewarded:
        """Check a reward, which is yet to be written."""
        s = learner.loop.settings
        if s.rewards != "continuous":
            if not 0 <= body.value <= 1:
                raise ValueError(f"value is {body.value:g}; rewards of this loop lie in [0, 1]")
            if body.sigma is not None:
                raise ValueError("sigma was given; pass trials= for shares of several trials")
        if s.rewards == "binary" and body.value not in (0, 1) and body.trials is None:
            raise ValueError(f"value is {body.value:g}; pass 0 or 1, or a share with trials")
        return Rewarded(learner.loop.id, event_id, now, body, s.reward_wait, s.aggregate == "sum")

    def append(self, events: list[Any], home: AbstractEventLoop) -> AsyncFuture[list[Any]]:
        """Write what was decided or rewarded; the future has the answers once they are durable."""
        if not self.alive:
            raise Unavailable("the service is ending")
        return self.writer.append(events, home)

    def create(self, name: str, settings: Settings) -> None:
        """Create a loop."""
        self.writer.do(lambda connection: loops.insert(connection, name, settings))
        self._serve(name)

    def change(self, learner: Learner, settings: Settings, paused: bool) -> None:
        """Change settings, or pause."""
        loop = learner.loop
        self.writer.do(lambda connection: loops.update(connection, loop, settings, paused))
        self._serve(loop.name)

    def rollback(self, learner: Learner, version: int) -> None:
        """Let the state be again what it was after so many rows."""
        loop = learner.loop
        self.writer.do(lambda connection: loops.roll_back(connection, loop, version))

    def delete(self, learner: Learner) -> None:
        """Delete a loop with its log."""
        loop = learner.loop
        self.learners.pop(loop.name, None)
        self.writer.do(
            lambda connection: connection.change("DELETE FROM loops WHERE id = ?", loop.id)
        )

    def _number(self, connection: Connection, written: set[int]) -> None:
        """Number rows in the transaction that inserts them, where no other process writes."""
        if self.store.embedded:
            for loop in written & {*self.owner.fences}:
                self.owner.number(connection, loop)

    def _serve(self, name: str) -> None:
        """Serve a loop that was written just now, with its new settings."""
        with self.store.reading() as connection:
            loop = loops.named(connection, name)
        if name in self.learners:
            self.learners[name].loop = loop
            return
        self.learners.setdefault(name, Learner(loop))
        self._done.pop("renewed", None)

    # what its thread does

    def run(self) -> None:
        """Keep up with the log until `close`."""
        while not self._ended:
            self._awake.wait(NEARLY_IDLE)
            self._awake.clear()
            try:
                self._tick()
            except Unavailable as error:
                log.warning("the log can't be read or written", extra={"cause": str(error)})
                self._connection.close()
                time.sleep(NEARLY_IDLE)

    def _tick(self) -> None:
        if self._due("renewed", RENEWED):
            self._own()
        if self._due("refreshed", EVERY_SECOND):
            self._refresh()
        for learner in [*self.learners.values()]:
            self._catch_up(learner)
        if self._due("expired", EVERY_SECOND):
            for learner in self._owned():
                self._expire(learner)
        for learner in self._owned():
            if learner.version - self._saved.get(learner.loop.id, 0) >= SNAPSHOTS:
                self._save(learner)
        if self._due("retained", HOUR):
            for learner in self._owned():
                self._retain(learner)

    def _due(self, what: str, after: float) -> bool:
        now = time.monotonic()
        if now - self._done.get(what, -after) < after:
            return False
        self._done[what] = now
        return True

    def _owned(self) -> list[Learner]:
        return [each for each in self.learners.values() if each.loop.id in self.owner.fences]

    def _own(self) -> None:
        known = sorted(each.loop.id for each in self.learners.values())
        self.writer.do(lambda connection: self.owner.renew(connection, known))

    def _refresh(self) -> None:
        """Read the loops that there are; other processes create, change and delete some."""
        known_before = {*self.learners}
        rows = self._connection.rows(f"SELECT {COLUMNS} FROM loops ORDER BY id")
        there = {row[1]: row for row in rows}
        for name in known_before - {*there}:
            self.learners.pop(name, None)
        for name, row in there.items():
            known = self.learners.get(name)
            if known is None or known.loop.id != row[0]:
                loop = loop_of(row)
                learner = build(self._connection, loop, loop.seq)
                self.learners.setdefault(name, learner)
                self._saved.setdefault(loop.id, learner.version)
                self._done.pop("renewed", None)
            elif self._changed(known.loop, row):
                known.loop = loop_of(row)

    def _changed(self, loop: Loop, row: tuple[Any, ...]) -> bool:
        return bool(row[4]) != loop.paused or json.loads(row[3]) != loop.settings.model_dump()

    def _catch_up(self, learner: Learner) -> None:
        """Number new rows where this process is the owner, and learn what was numbered."""
        loop = learner.loop.id
        if loop in self.owner.fences and self._unnumbered(loop):
            if self.store.embedded:  # a command has inserted them
                self.writer.do(lambda connection: self.owner.number(connection, loop))
            else:
                with self._connection.transaction() as connection:
                    self.owner.number(connection, loop)
        learner.catch_up(self._connection)
        if learner.view.version < learner.version:
            learner.publish(patient=not self._ended)

    def _unnumbered(self, loop: int) -> bool:
        """Whether there are rows without a number."""
        return bool(
            self._connection.rows(
                "SELECT 1 FROM events WHERE loop = ? AND seq IS NULL LIMIT 1", loop
            )
        )

    def _expire(self, learner: Learner) -> None:
        """Let the wait for rewards end where it is over: what was not learnt is, or never will."""
        loop, s = learner.loop.id, learner.loop.settings

        def task(connection: Connection) -> int:
            self.owner.check(connection, loop)
            ((done,),) = connection.rows("SELECT expired FROM loops WHERE id = ?", loop)
            lock = "" if self.store.embedded else " FOR UPDATE"
            rows = connection.rows(
                "SELECT seq, event_id, at, body FROM events WHERE loop = ? AND kind = 'decide' "
                f"AND seq > ? ORDER BY seq LIMIT {EXPIRED}{lock}",
                loop, done,
            )  # fmt: skip
            late = connection.now() - s.reward_wait
            due = []
            for row in rows:
                if row[2] >= late:
                    break
                due.append(row)
            if not due:
                return 0
            places = ",".join("?" * len(due))
            given: dict[str, list[dict[str, Any]]] = {}
            for event_id, body in connection.rows(
                "SELECT event_id, body FROM events WHERE loop = ? AND kind = 'reward' "
                f"AND event_id IN ({places})",
                loop, *(row[1] for row in due),
            ):  # fmt: skip
                given.setdefault(event_id, []).append(json.loads(body))
            new = []
            for _, event_id, _, text in due:
                slots = len(json.loads(text)["chosen"])
                rewards = final(slots, given.get(event_id, []), s)
                if rewards is not None:
                    new.append(
                        (loop, event_id, "expire", time.time(), dumped({"rewards": rewards}))
                    )
            connection.many(
                "INSERT INTO events (loop, event_id, kind, at, body) VALUES (?,?,?,?,?)", new
            )
            connection.change("UPDATE loops SET expired = ? WHERE id = ?", due[-1][0], loop)
            self._number(connection, {loop})
            return len(due)

        while self.writer.do(task) == EXPIRED:
            pass

    def _save(self, learner: Learner) -> None:
        """Keep a snapshot, and the newest few of the others."""
        loop, version = learner.loop.id, learner.version
        if loop not in self.owner.fences or self._saved.get(loop) == version:
            return
        held, state = digest(learner.agent), saved(learner.agent)

        def task(connection: Connection) -> None:
            self.owner.check(connection, loop)
            connection.change(
                "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?) ON CONFLICT (loop, seq) DO NOTHING",
                loop, version, time.time(), held, state,
            )  # fmt: skip
            kept = connection.rows(
                "SELECT seq FROM snapshots WHERE loop = ? ORDER BY seq DESC", loop
            )
            connection.many(
                "DELETE FROM snapshots WHERE loop = ? AND seq = ?",
                [(loop, seq) for (seq,) in kept[KEPT:-1]],
            )

        try:
            self.writer.do(task)
            self._saved[loop] = version
        except Unavailable as error:
            log.warning("no snapshot was kept", extra={"cause": str(error)})

    def _retain(self, learner: Learner) -> None:
        """Delete rows older than ``retain_days`` that a snapshot stands for."""
        loop, days = learner.loop.id, learner.loop.settings.retain_days
        if days is None:
            return
        self._save(learner)

        def task(connection: Connection) -> None:
            self.owner.check(connection, loop)
            retain(connection, loop, connection.now() - days * 86400)

        self.writer.do(task)


def _warm_up() -> None:
    """Compile, or load, what the first decision would wait for."""
    for rewards in ("binary", "continuous"):
        agent = Settings(actions=["a", "b"], rewards=rewards).agent()
        for key in range(3):
            agent.adopt({}, "a", key=key)
            reasons(agent.policy, agent.state, np.eye(2))
        agent.learn(0, 1.0)


def final(slots: int, given: list[dict[str, Any]], settings: Settings) -> list[float | None] | None:
    """Return what is learnt for each slot once the wait is over, None where all was learnt before.

    >>> s = Settings(actions=["a"], rewards="continuous", aggregate="sum")
    >>> final(1, [{"slot": 0, "value": each, "late": False} for each in (2.0, 1.0)], s)
    [3.0]
    """
    sums: dict[int, float] = {}
    learnt: set[int] = set()
    for each in given:
        if each["late"]:
            continue
        if settings.aggregate == "sum":
            sums[each["slot"]] = sums.get(each["slot"], 0.0) + each["value"]
        elif each["learn"]:
            learnt.add(each["slot"])
    if len(learnt) == slots:
        return None
    usual = settings.default_reward
    return [None if slot in learnt else sums.get(slot, usual) for slot in range(slots)]


def retain(connection: Connection, loop: int, since: float) -> None:
    """Delete the rows up to the last snapshot that only older rows are in."""
    rows = connection.rows(
        "SELECT max(s.seq) FROM snapshots s WHERE s.loop = ? AND NOT EXISTS (SELECT 1 FROM "
        "events e WHERE e.loop = s.loop AND e.seq <= s.seq AND e.at >= ?)",
        loop, since,
    )  # fmt: skip
    if rows[0][0] is not None:
        connection.change("DELETE FROM events WHERE loop = ? AND seq <= ?", loop, rows[0][0])
        connection.change("DELETE FROM snapshots WHERE loop = ? AND seq < ?", loop, rows[0][0])
