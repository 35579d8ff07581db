"""What happened in a loop of late, counted from its log as it grows."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from threading import Lock

from ...agent.actions.context_fields import Value
from ..learner import NUMBERED, Learner
from ..log.events import DecisionRow, RewardRow
from ..log.store import Store
from . import loop_facts

WINDOWS = {"10m": (600, 10), "1h": (3600, 60), "1d": (86_400, 1800), "30d": (2_592_000, 43_200)}
MOST = 50_000  # rows of the log that are read when a process starts
PAGE = 2000
SLOW, SHARE = 0.02, 0.05  # seconds that a comparison may take, and else its share of the time
CONTEXTS, DECISIONS, POINTS = 1000, 10, 240  # that are kept


@dataclass
class Bucket:
    """Counts of some seconds; ``width`` sums the intervals of ``known`` actions that were played.

    ``known`` leaves out actions of which nothing was known when they were played.
    """

    decisions: int = 0
    rewards: int = 0
    late: int = 0
    width: float = 0.0
    known: int = 0
    actions: Counter[str] = field(default_factory=Counter)

    def decided(self, taken: DecisionRow) -> None:
        """Count a decision."""
        self.decisions += 1
        self.actions.update(taken["chosen"])
        _, _, lower, upper, _ = taken["ranking"][0]
        if lower is not None and upper is not None:
            self.width += upper - lower
            self.known += 1

    def rewarded(self, given: RewardRow) -> None:
        """Count a reward."""
        self.rewards += 1
        self.late += given["late"]


class Recent:
    """Buckets of a loop's log in windows up to now, and how its gain has moved.

    Attributes
    ----------
    buckets : dict of dicts
        For each window the bucket that began at a time, in seconds since 1970.
    contexts, events : deque
        The last contexts, as tuples of values, and the identities of the last decisions.
    gain : Gain or None
        What `loop_facts.gain` said last.
    gains : list of (float, Gain)
        Times and what it said then, evenly spaced since this process started.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner, self._seq, self._lock = learner, 0, Lock()
        self.buckets: dict[str, dict[int, Bucket]] = {name: {} for name in WINDOWS}
        self.contexts: deque[tuple[Value, ...]] = deque(maxlen=CONTEXTS)
        self.events: deque[str] = deque(maxlen=DECISIONS)
        self.gains: list[tuple[float, loop_facts.Gain]] = []
        self.gain: loop_facts.Gain | None = None
        self._every, self._imported = 2.0, ""
        self._compared, self._due, self._cost = -1, 0.0, 0.0

    def refresh(self, store: Store) -> None:
        """Count the rows that are new, of very many only the last, and compare again."""
        with self._lock, store.reading() as connection:
            loop, upto = self.learner.loop.id, self.learner.version
            self._seq = max(self._seq, upto - MOST)
            while rows := connection.rows(NUMBERED, loop, self._seq, upto, PAGE):
                for seq, kind, event_id, at, text in rows:
                    self._seq = seq
                    self._add(kind, event_id, at, text)
            now = time.time()
            for name, (span, _) in WINDOWS.items():
                held = self.buckets[name]
                for began in [each for each in held if each < now - 2 * span]:
                    del held[began]
            self._compare(now)

    def _add(self, kind: str, event_id: str, at: float, text: str) -> None:
        """Count a row of the log; what was imported is no traffic."""
        buckets = (
            self.buckets[name].setdefault(int(at // step) * step, Bucket())
            for name, (_, step) in WINDOWS.items()
        )
        if kind == "decide":
            taken: DecisionRow = json.loads(text)
            if taken["group"] == "import":
                self._imported = event_id
                return
            for bucket in buckets:
                bucket.decided(taken)
            self.contexts.append(tuple(taken["context"]))
            self.events.append(event_id)
        elif kind == "reward" and event_id != self._imported:
            given: RewardRow = json.loads(text)
            for bucket in buckets:
                bucket.rewarded(given)

    def _compare(self, now: float) -> None:
        """Compare with the holdout where rows are new; where that is slow, not too often."""
        version, began = self.learner.version, time.thread_time()
        if version != self._compared and now >= self._due:
            self.gain, self._compared = loop_facts.gain(self.learner), version
            before, self._cost = self._cost, time.thread_time() - began
            slow = min(before, self._cost) > SLOW  # the first one imports what it needs
            self._due = now + (self._cost / SHARE if slow else 0.0)
        if self.gain is not None and self.gain["difference"] is not None:
            self._keep(self.gain, now)

    def _keep(self, gain: loop_facts.Gain, now: float) -> None:
        """Keep a point of the curve, unless the last one is as good; thin them when many."""
        if self.gains and now - self.gains[-1][0] < self._every:
            return
        self.gains.append((now, gain))
        if len(self.gains) > POINTS:
            self.gains, self._every = self.gains[::2], 2 * self._every

    def window(self, name: str, now: float) -> list[tuple[float, Bucket]]:
        """Return the buckets of a window, oldest first: for how many seconds each is, and counts.

        They begin with the loop, if it is younger; the last one is still growing.
        """
        span, step = WINDOWS[name]
        last = int(now // step) * step
        created = min(self.learner.loop.created, now)
        first = max(last - span + step, int(created // step) * step)
        with self._lock:
            held = self.buckets[name]
            return [
                (min(began + step, now) - max(began, created), held.get(began, Bucket()))
                for began in range(first, last + step, step)
            ]

    def usual(self, now: float) -> str:
        """Return the shortest window that holds all there is, or a hundred decisions."""
        for name, (span, _) in WINDOWS.items():
            count = sum(bucket.decisions for _, bucket in self.window(name, now))
            if now - self.learner.loop.created < span or (count >= 100 and name != "10m"):
                return name
        return "30d"
