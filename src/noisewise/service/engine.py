"""The loops of a process, kept up with the log: numbered, learnt, expired, saved."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache, partial
from threading import Event as Signal
from threading import Lock, Thread

import numpy as np

from ..agent.explanations.reasons import reasons
from . import loops
from .choices import Request, decide
from .learner import Learner, build, digest, saved
from .log import upkeep
from .log.events import DecideBody, Decided, RewardBody, Rewarded, fingerprint
from .log.owners import RENEWED, Owner
from .log.store import Connection, Store, Unavailable
from .log.writer import Event, Writer
from .loops import Settings
from .web import tokens
from .web.answers import Answer, Refused
from .web.tokens import Token

NEARLY_IDLE = 0.05  # seconds between looks at the log
EVERY_SECOND = 1.0
SNAPSHOTS = 10_000  # rows between them
HOUR = 3600.0
log = logging.getLogger("noisewise")


class Engine(Thread):
    """All loops of a process. Its thread is the only one that learns."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="noisewise-learner", daemon=True)
        self.store, self.owner = store, Owner(store)
        self.writer = Writer(store, self._number)
        self.learners: dict[str, Learner] = {}
        self.rng = np.random.default_rng()
        self.tokens: list[Token] = []  # at most a second old
        self.reached = True  # whether the log could be read just now
        self._awake, self._ended = Signal(), False
        self._serving = Lock()  # held where settings that were read are put into a learner
        self._connection = Connection(store)
        self._saved: dict[int, int] = {}  # the number of each loop's last snapshot
        self._done: dict[str, float] = {}

    def open(self) -> Engine:
        """Learn what the log holds, and start to write and to learn."""
        self.store.claim()
        try:
            self.store.migrate()
        except ValueError:
            self.store.close()
            raise
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
        if self.reached:
            for learner in self.learners.values():
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

    def asked(self, learner: Learner, body: DecideBody) -> Request:
        """Check a request for a decision."""
        try:
            return Request(learner.loop, body)
        except ValueError:
            learner.unusable += 1
            raise

    def decided(self, learner: Learner, asked: list[Request], now: float) -> list[Decided]:
        """Take decisions, which are yet to be written."""
        loop, view = learner.loop, learner.view
        return [
            Decided(
                loop.id, each.body.event_id or secrets.token_hex(12), now,
                {
                    "context": list(each.values), "chosen": choice.chosen,
                    "ranking": choice.ranking, "group": choice.group, "version": view.version,
                    "top": each.body.top, "subject": each.body.subject,
                    "asked": fingerprint(each.body),
                },
                loop.paused,
            )
            for each, choice in zip(asked, decide(view, asked, loop.salt, self.rng), strict=True)
        ]  # fmt: skip

    def rewarded(self, learner: Learner, event_id: str, body: RewardBody, now: float) -> Rewarded:
        """Check a reward, which is yet to be written."""
        s = learner.loop.settings
        if s.rewards != "continuous":
            if not 0 <= body.value <= 1:
                raise ValueError(f"value is {body.value:g}; rewards of this loop lie in [0, 1]")
            if body.sigma is not None:
                raise ValueError("sigma was given; pass trials= for shares of several trials")
        if s.aggregate == "sum" and (body.trials or body.sigma):
            raise ValueError("trials or sigma was given; rewards of this loop are summed")
        if s.rewards == "binary" and body.value not in (0, 1) and body.trials is None:
            raise ValueError(f"value is {body.value:g}; pass 0 or 1, or a share with trials")
        return Rewarded(learner.loop.id, event_id, now, body, s.reward_wait, s.aggregate == "sum")

    def append(self, events: Sequence[Event]) -> Future[list[Answer | Refused]]:
        """Write what was decided or rewarded; the future has the answers once they are durable."""
        if not self.alive:
            raise Unavailable("the service is ending")
        return self.writer.append(events)

    def create(self, name: str, settings: Settings) -> None:
        """Create a loop."""
        self.writer.do(lambda connection: loops.insert(connection, name, settings))
        self._serve(name)

    def change(self, name: str, settings: dict[str, object], paused: bool | None = None) -> None:
        """Change some settings, or pause."""
        self.writer.do(lambda connection: loops.update(connection, name, settings, paused))
        self._serve(name)

    def rollback(self, name: str, version: int) -> None:
        """Let the state be again what it was after so many rows."""
        self.writer.do(lambda connection: loops.roll_back(connection, name, version))

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
        with self._serving, self.store.reading() as connection:
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
                self.reached = True
            except Unavailable as error:
                self.reached = False
                log.warning("the log can't be read or written", extra={"cause": str(error)})
                self._connection.close()
                time.sleep(NEARLY_IDLE)

    def _tick(self) -> None:
        if self._due("renewed", RENEWED):
            self._own()
        if self._due("refreshed", EVERY_SECOND):
            self._refresh()
        self._catch_up()
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
        """Read the tokens, and the loops; other processes create, change and delete some."""
        self.tokens = tokens.every(self._connection)
        before = {name: each.loop for name, each in [*self.learners.items()]}
        there = {loop.name: loop for loop in loops.every(self._connection)}
        for name in {*before} - {*there}:
            self.learners.pop(name, None)
        for name, loop in there.items():
            known = self.learners.get(name)
            if known is None or known.loop.id != loop.id:
                learner = build(self._connection, loop, loop.seq)
                self.learners.setdefault(name, learner)
                self._saved.setdefault(loop.id, learner.version)
                self._done.pop("renewed", None)
            elif (loop.settings, loop.paused) != (known.loop.settings, known.loop.paused):
                with self._serving:
                    if known.loop is before.get(name):  # else it was changed after it was read
                        known.loop = loop

    def _catch_up(self) -> None:
        """Number new rows where this process is the owner, and learn what was numbered."""
        new = self._connection.rows("SELECT DISTINCT loop FROM events WHERE seq IS NULL")
        for (loop,) in new:
            if loop not in self.owner.fences:
                continue
            if self.store.embedded:  # a command has inserted them
                self.writer.do(partial(self.owner.number, loop=loop))
            else:
                with self._connection.promptly() as connection:
                    self.owner.number(connection, loop)
        there: dict[int, int] = dict(self._connection.rows("SELECT id, seq FROM loops"))
        for learner in [*self.learners.values()]:
            behind = learner.version < there.get(learner.loop.id, 0)
            if behind and learner.learn_page(self._connection):
                self._awake.set()  # the rest, after a look at the clock
            if learner.view.version < learner.version:
                learner.publish(patient=not self._ended)

    def _expire(self, learner: Learner) -> None:
        """Let the wait for rewards end where it is over."""
        while self.writer.do(partial(upkeep.expire, owner=self.owner, loop=learner.loop)):
            pass

    def _save(self, learner: Learner) -> None:
        """Keep a snapshot, unless there is one of the last row."""
        loop, version = learner.loop.id, learner.version
        if loop not in self.owner.fences or self._saved.get(loop) == version:
            return
        kept = digest(learner.agent), saved(learner.agent)
        try:
            self.writer.do(lambda each: upkeep.keep(each, self.owner, learner.loop, version, *kept))
            self._saved[loop] = version
        except Unavailable as error:
            log.warning("no snapshot was kept", extra={"cause": str(error)})

    def _retain(self, learner: Learner) -> None:
        """Delete rows older than ``retain_days`` that a snapshot stands for."""
        if learner.loop.settings.retain_days is not None:
            self._save(learner)
            self.writer.do(partial(upkeep.retain, owner=self.owner, loop=learner.loop))


@cache
def _warm_up() -> None:
    """Compile, or load, what the first decision would wait for."""
    for rewards in ("binary", "continuous"):
        agent = Settings(actions=["a", "b"], rewards=rewards).agent()
        for key in range(3):
            agent.adopt({}, "a", key=key)
            reasons(agent.policy, agent.state, np.eye(2))
        agent.learn(0, 1.0)
