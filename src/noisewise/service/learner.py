"""The state of a loop as a function of its numbered log, and decisions from that state."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ..agent.agent import Agent
from ..bandits.arms import candidates
from ..protocols import Array
from .events import DecideBody
from .loops import UNIFORM, Loop, Settings
from .store import Connection

PAGE = 1000  # rows read at once
SHARE = 0.1  # of the learner's time, at most, that goes into copies of the state
NUMBERED = (
    "SELECT seq, kind, event_id, body FROM events WHERE loop = ? AND seq > ? AND seq <= ? "
    "ORDER BY seq LIMIT ?"
)


@dataclass(frozen=True)
class View:
    """The state as it was after ``version`` rows, from which decisions are taken.

    Decisions taken from it count as pending in it, so that a batch does not repeat one.
    """

    agent: Agent
    state: Any
    version: int

    def index(self, x: Array) -> Array:
        """Return the index of every arm, given all decisions that are pending."""
        policy: Any = self.agent.policy
        found: Array = policy.index(self.state, x)
        return found

    def known(self, x: Array) -> Array:
        """Return the estimate and the interval of every arm, rounded, (3, n)."""
        policy: Any = self.agent.policy
        return _short(np.array([policy.mean(self.state, x), *policy.interval(self.state, x)]))


class Learner:
    """An agent that has learnt the numbered rows up to ``version``, and no other thing."""

    def __init__(self, loop: Loop, snapshots: bool = True) -> None:
        self.loop, self.agent, self.version = loop, loop.settings.agent(loop.salt), 0
        self.snapshots = snapshots  # whether a rollback may start from one
        self._copied = self._cost = 0.0
        self.refused = 0  # rewards that the agent can't learn
        self.unusable = 0  # contexts that it can't use
        self.publish()

    def catch_up(self, connection: Connection, upto: int | None = None) -> int:
        """Learn the rows numbered since, up to one of them; return how many there were."""
        count, last = 0, 2**62 if upto is None else upto
        while rows := connection.rows(NUMBERED, self.loop.id, self.version, last, PAGE):
            for seq, kind, event_id, body in rows:
                self._apply(connection, seq, kind, event_id, json.loads(body))
                self.version = seq
            count += len(rows)
            self.publish(patient=True)
        return count

    def _apply(
        self, connection: Connection, seq: int, kind: str, event_id: str, body: dict[str, Any]
    ) -> None:
        """Learn one row: the only thing that changes the state."""
        if kind == "decide":
            held, subject = self._compared(event_id, body)
            for slot, action in enumerate(body["chosen"]):
                key = key_of(event_id, slot)
                self.agent.adopt(body["context"], action, key, baseline=held, subject=subject)
        elif kind == "reward" and body["learn"]:
            self._learn(connection, event_id, body["slot"], body)
        elif kind == "expire":
            for slot, reward in enumerate(body["rewards"]):
                if reward is not None:
                    self._learn(connection, event_id, slot, {"value": reward})
                elif self.agent.is_pending(key_of(event_id, slot)):
                    self.agent.forget(key_of(event_id, slot))
        elif kind == "rollback":
            twin = build(connection, self.loop, body["version"], snapshots=self.snapshots)
            self.agent = twin.agent
            self.forget_pending()

    def _compared(self, event_id: str, body: dict[str, Any]) -> tuple[bool | None, str | None]:
        """Return whether a decision was held out, None where it was imported; and for whom it was.

        Where some decisions have a subject, and for several actions, one without is for itself.
        """
        kept, subject = self.agent.experiment, body["subject"]
        if subject is None and kept and (kept.subjects is not None or len(body["chosen"]) > 1):
            subject = event_id
        return None if body["group"] == "import" else body["group"] == "holdout", subject

    def _learn(
        self, connection: Connection, event_id: str, slot: int, reward: dict[str, Any]
    ) -> None:
        """Learn a reward of a decision, also of one that the agent does not count any more."""
        key: Any = key_of(event_id, slot)
        if not self.agent.is_pending(key):
            key = self._features(connection, event_id, slot)
        sigma, trials = reward.get("sigma"), reward.get("trials")
        try:
            self.agent.learn(key, reward["value"], sigma=sigma, trials=trials)
        except ValueError:  # too large to compute with: the log keeps it, the state is as it was
            self.refused += 1
            if key_of(event_id, slot) == key:
                self.agent.forget(key)

    def _features(self, connection: Connection, event_id: str, slot: int) -> Array:
        """Return the arm of a decision in the log."""
        ((text,),) = connection.rows(
            "SELECT body FROM events WHERE loop = ? AND event_id = ? AND kind = 'decide'",
            self.loop.id, event_id,
        )  # fmt: skip
        body, arms = json.loads(text), self.agent.arms
        assert arms is not None
        values = arms.read(body["context"], clip=True)
        return arms.matrix(values, [body["chosen"][slot]])[0]

    def forget_pending(self) -> None:
        """Count no decision as pending after a rollback: their rewards are learnt all the same."""
        for key in self.agent.pending:
            self.agent.forget(key)

    def publish(self, patient: bool = False) -> None:
        """Let decisions be taken from the state as it is now; when ``patient``, not too often."""
        began = time.perf_counter()
        if patient and began - self._copied < self._cost / SHARE:
            return
        self.view = View(self.agent, self.agent.state.copy(), self.version)
        self._copied = time.perf_counter()
        self._cost = self._copied - began

    @property
    def digest(self) -> str:
        """What tells one state from another, to the last bit."""
        return digest(self.agent)


def key_of(event_id: str, slot: int) -> str:
    """Return the key of a slot of a decision."""
    return f"{event_id}#{slot}"


def digest(agent: Agent) -> str:
    """Return a digest of all that was learnt, and of what is pending."""
    found = blake2b(digest_size=16)
    for field in fields(agent.state):
        value = getattr(agent.state, field.name)
        found.update(np.ascontiguousarray(value).tobytes())
    found.update(repr((agent.pending, agent.dropped)).encode())
    return found.hexdigest()


def build(connection: Connection, loop: Loop, upto: int, *, snapshots: bool = True) -> Learner:
    """Return the learner after the rows up to one of them, from the nearest snapshot.

    Without ``snapshots`` only the oldest row of the log may follow one: what retention has left.
    """
    found = connection.rows(
        "SELECT max(seq) FROM events WHERE loop = ? AND kind = 'rollback' AND seq <= ?",
        loop.id, upto,
    )  # fmt: skip
    back = found[0][0] or 0
    start = _snapshot(connection, loop, upto, snapshots)
    if back > start[0]:
        ((body,),) = connection.rows(
            "SELECT body FROM events WHERE loop = ? AND seq = ?", loop.id, back
        )
        learner = build(connection, loop, json.loads(body)["version"], snapshots=snapshots)
        learner.version = back
        learner.forget_pending()
    else:
        learner = Learner(loop, snapshots)
        if start[1] is not None:
            learner.agent, learner.version = loaded(start[1]), start[0]
    learner.catch_up(connection, upto)
    learner.publish()
    return learner


def _snapshot(
    connection: Connection, loop: Loop, upto: int, latest: bool
) -> tuple[int, bytes | None]:
    """Return the last snapshot up to a row; or, unless the ``latest`` is asked for, the base."""
    if latest:
        rows = connection.rows(
            "SELECT seq, state FROM snapshots WHERE loop = ? AND seq <= ? "
            "ORDER BY seq DESC LIMIT 1",
            loop.id, upto,
        )  # fmt: skip
    else:
        rows = connection.rows(
            "SELECT seq, state FROM snapshots WHERE loop = ? AND seq < (SELECT coalesce(min(seq), "
            "(SELECT seq + 1 FROM loops WHERE id = ?)) FROM events WHERE loop = ? AND "
            "seq IS NOT NULL) ORDER BY seq DESC LIMIT 1",
            loop.id, loop.id, loop.id,
        )  # fmt: skip
    return (rows[0][0], bytes(rows[0][1])) if rows else (0, None)


def saved(agent: Agent) -> bytes:
    """Return an agent as the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        agent.save(path)
        return path.read_bytes()


def loaded(held: bytes) -> Agent:
    """Return the agent of a file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        path.write_bytes(held)
        return Agent.load(path)


@dataclass(frozen=True)
class Choice:
    """A decision: what was played in each slot, and what was known of the arms."""

    chosen: list[str]
    ranking: list[tuple[Any, ...]]  # action, estimate, lower, upper, probability
    group: str


class Request:
    """A request for a decision, read and checked before anything is drawn or stored."""

    def __init__(self, settings: Settings, agent: Agent, body: DecideBody) -> None:
        arms = agent.arms
        assert arms is not None
        self.values = arms.read(body.context, clip=True)
        self.names = arms.actions if body.actions is None else tuple(body.actions)
        self.x = candidates(arms.matrix(self.values, self.names), arms.dim)
        self.top, self.subject, self.settings = body.top or 1, body.subject, settings
        if self.top > len(self.names):
            raise ValueError(f"top is {body.top}, of {len(self.names)} actions; pass fewer")

    def decide(self, view: View, known: Array, salt: str, rng: np.random.Generator) -> Choice:
        """Return a decision, and count it as pending in the view; ``known`` is of these arms."""
        index = view.index(self.x)
        best = np.lexsort((rng.random(len(index)), -index)).tolist()  # equal ones in any order
        group, order, p = self._drawn(best, salt, rng)
        chosen = order[: self.top]
        for k in chosen:
            view.agent.policy.expect(view.state, self.x[k])  # type: ignore[attr-defined]
        shown = chosen if self.top > 1 else [*chosen, *(k for k in best if k != chosen[0])]
        slots = np.arange(len(shown)) if self.top > 1 else 0
        names = [self.names[k] for k in shown]
        held = known[:, shown].astype(object)
        held[~np.isfinite(known[:, shown])] = None
        columns = held.tolist()
        ranking = list(zip(names, *columns, p[slots, shown].tolist(), strict=True))
        return Choice(names[: self.top], ranking, group)

    def _drawn(
        self, best: list[int], salt: str, rng: np.random.Generator
    ) -> tuple[str, list[int], Array]:
        """Return the group, all arms in the order of play, and the probabilities in each slot.

        A holdout plays the baseline, first, then the others in any order.
        """
        K, s = len(self.names), self.settings
        h = s.holdout if s.baseline == UNIFORM or s.baseline in self.names else 0.0
        share = rng.random() if self.subject is None else _hashed(salt, self.subject)
        held, explored, order = share < h, rng.random() < s.explore, rng.permutation(K).tolist()
        p = np.full((self.top, K), s.explore / K)
        p[np.arange(self.top), best[: self.top]] += 1 - s.explore
        base = np.full((self.top, K), 1 / K)
        if s.baseline in self.names:
            first = self.names.index(s.baseline)
            base[:], base[:, first] = 1 / max(K - 1, 1), 0.0
            base[0] = np.arange(K) == first
            if held:
                order = [first, *(k for k in order if k != first)]
        p = h * base + (1 - h) * p
        if held:
            return "holdout", order, p
        return ("explore", order, p) if explored else ("agent", best, p)


def decide(
    view: View, requests: list[Request], salt: str, rng: np.random.Generator
) -> list[Choice]:
    """Return decisions, each of which counts as pending for the next."""
    known = view.known(np.concatenate([each.x for each in requests]))
    ends = np.cumsum([len(each.x) for each in requests])[:-1]
    parts = np.split(known, ends, axis=1)
    return [each.decide(view, part, salt, rng) for each, part in zip(requests, parts, strict=True)]


def _hashed(salt: str, subject: str) -> float:
    """Return a number from 0 to 1, the same for a subject each time."""
    text = f"{salt} {subject}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=7).digest(), "big") / 2**56


def _short(values: Array) -> Array:
    """Return numbers with six digits, which is what a row of the log has room for.

    >>> _short(np.array([0.12345678, -12345678.0, np.inf])).tolist()
    [0.123457, -12345700.0, inf]
    """
    with np.errstate(all="ignore"):
        scale = 10.0 ** (5 - np.floor(np.log10(np.abs(values))))
        found = np.where(
            scale > 1, np.rint(values * scale) / scale, np.rint(values * scale) * (1 / scale)
        )
    return np.where(np.isfinite(scale) & np.isfinite(found), found, values)


SAME, CLOSE, DIFFERENT = "equal", "equal to 1e-9", "DIFFERENT"


def verify(connection: Connection, loop: Loop) -> list[tuple[int, str]]:
    """Compare each snapshot with the state that the rows up to it lead to, without snapshots."""
    found = []
    rows = connection.rows("SELECT seq, digest FROM snapshots WHERE loop = ? ORDER BY seq", loop.id)
    for seq, held in rows:
        agent = build(connection, loop, seq, snapshots=False).agent
        ((state,),) = connection.rows(
            "SELECT state FROM snapshots WHERE loop = ? AND seq = ?", loop.id, seq
        )
        kept = loaded(bytes(state))
        if digest(agent) == held == digest(kept):
            found.append((seq, SAME))
        else:
            found.append((seq, CLOSE if _close(agent.state, kept.state) else DIFFERENT))
    return found


def _close(one: Any, other: Any) -> bool:
    """Whether two states differ by rounding alone."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    return all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
        for a, b in pairs
    )
