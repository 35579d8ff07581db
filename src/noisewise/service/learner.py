"""The state of a loop as a function of its numbered log."""

from __future__ import annotations

import json
import tempfile
import time
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ..agent.actions.action_features import Arms
from ..agent.agent import Agent
from ..bandits.self_tuned_ucb import SelfTunedUCB
from ..protocols import Array
from ..storage.states import field_values
from .choices import View
from .log.events import DecisionRow, ExpireRow, RewardRow
from .log.store import Connection, Unavailable
from .loops import Loop, Settings, settings_at

PAGE = 1000  # rows read at once
SHARE = 0.1  # of the learner's time, at most, that goes into copies of the state
NUMBERED = (
    "SELECT seq, kind, event_id, at, body FROM events WHERE loop = ? AND seq > ? AND seq <= ? "
    "ORDER BY seq LIMIT ?"
)


class Learner:
    """An agent that has learnt the numbered rows up to ``version``, and no other thing."""

    def __init__(
        self, loop: Loop, snapshots: bool = True, settings: Settings | None = None
    ) -> None:
        self.loop, self.version = loop, 0
        self.agent = (settings or loop.settings).agent(loop.salt)  # of the first row, if given
        self.snapshots = snapshots  # whether a rollback may start from one
        self._copied = self._cost = 0.0
        self.refused = 0  # rewards that the agent can't learn
        self.unusable = 0  # contexts that it can't use
        self.publish()

    @property
    def arms(self) -> Arms:
        """The arms of the agent, to which rows of the log may add new ones."""
        assert self.agent.arms is not None
        return self.agent.arms

    def learn_page(self, connection: Connection, last: int = 2**62) -> bool:
        """Learn some of the rows numbered since; return whether there may be more."""
        rows = connection.rows(NUMBERED, self.loop.id, self.version, last, PAGE)
        for seq, kind, event_id, _, body in rows:
            self._apply(connection, kind, event_id, body)
            self.version = seq
        self.publish(patient=True)
        return len(rows) == PAGE

    def _apply(self, connection: Connection, kind: str, event_id: str, text: str) -> None:
        """Learn one row: the only thing that changes the state."""
        if kind == "decide":
            taken: DecisionRow = json.loads(text)
            held, subject = self._compared(event_id, taken)
            for slot, action in enumerate(taken["chosen"]):
                key = key_of(event_id, slot)
                self.agent.adopt(taken["context"], action, key, baseline=held, subject=subject)
        elif kind == "reward":
            given: RewardRow = json.loads(text)
            if given["learn"]:
                precision = given.get("sigma"), given.get("trials")
                self._learn(connection, event_id, given["slot"], given["value"], *precision)
        elif kind == "expire":
            over: ExpireRow = json.loads(text)
            for slot, reward in enumerate(over["rewards"]):
                if reward is not None:
                    self._learn(connection, event_id, slot, reward)
                elif self.agent.is_pending(key_of(event_id, slot)):
                    self.agent.forget(key_of(event_id, slot))
        elif kind == "settings":
            changed = json.loads(text)
            if "before" in changed:
                self.agent.arms = Settings.model_validate(changed["settings"]).arms
        elif kind == "rollback":
            arms, version = self.agent.arms, json.loads(text)["version"]
            self.agent = build(connection, self.loop, version, snapshots=self.snapshots).agent
            self.agent.arms = arms
            self.forget_pending()

    def _compared(self, event_id: str, taken: DecisionRow) -> tuple[bool | None, str | None]:
        """Return whether a decision was held out, None where it was imported; and for whom it was.

        Where some decisions have a subject, and for several actions, one without is for itself.
        """
        kept, subject = self.agent.experiment, taken["subject"]
        if subject is None and kept and (kept.subjects is not None or len(taken["chosen"]) > 1):
            subject = event_id
        return None if taken["group"] == "import" else taken["group"] == "holdout", subject

    def _learn(
        self, connection: Connection, event_id: str, slot: int, value: float,
        sigma: float | None = None, trials: float | None = None,
    ) -> None:  # fmt: skip
        """Learn a reward of a decision, also of one that the agent does not count any more."""
        key = key_of(event_id, slot)
        pending = self.agent.is_pending(key)
        arm = key if pending else self._features(connection, event_id, slot)
        try:
            self.agent.learn(arm, value, sigma=sigma, trials=trials)
        except ValueError:  # too large to compute with: the log keeps it, the state is as it was
            self.refused += 1
            if pending:
                self.agent.forget(key)

    def _features(self, connection: Connection, event_id: str, slot: int) -> Array:
        """Return the arm of a decision in the log."""
        rows = connection.rows(
            "SELECT body FROM events WHERE loop = ? AND event_id = ? AND kind = 'decide'",
            self.loop.id, event_id,
        )  # fmt: skip
        if not rows:
            raise Unavailable(f"the log of {self.loop.name} lacks the decision {event_id}")
        taken: DecisionRow = json.loads(rows[0][0])
        values = self.arms.read(taken["context"], clip=True)
        return self.arms.matrix(values, [taken["chosen"][slot]])[0]

    def forget_pending(self) -> None:
        """Count no decision as pending after a rollback: their rewards are learnt all the same."""
        for key in self.agent.pending:
            self.agent.forget(key)

    def publish(self, patient: bool = False) -> None:
        """Let decisions be taken from the state as it is now; when ``patient``, not too often."""
        began = time.perf_counter()
        if patient and began - self._copied < self._cost / SHARE:
            return
        policy = self.agent.policy
        assert isinstance(policy, SelfTunedUCB)
        self.view = View(policy, self.agent.state.copy(), self.version)
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
    for part in _parts(agent):
        found.update(np.ascontiguousarray(part).tobytes())
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
        learner.version, learner.agent.arms = back, settings_at(connection, loop, back).arms
        learner.forget_pending()
    else:
        learner = Learner(loop, snapshots, settings_at(connection, loop, 0))
        if start[1] is not None:
            learner.agent, learner.version = loaded(start[1]), start[0]
    while learner.learn_page(connection, upto):
        pass
    learner.publish()
    return learner


def _snapshot(
    connection: Connection, loop: Loop, upto: int, latest: bool
) -> tuple[int, bytes | None]:
    """Return the last snapshot up to a row; or, unless the ``latest`` is asked for, the base.

    The base is the snapshot that stands for the rows which retention has deleted.
    """
    if latest:
        rows = connection.rows(
            "SELECT seq, state FROM snapshots WHERE loop = ? AND seq <= ? "
            "ORDER BY seq DESC LIMIT 1",
            loop.id, upto,
        )  # fmt: skip
    else:
        rows = connection.rows(
            "SELECT s.seq, s.state FROM snapshots s JOIN loops l ON l.id = s.loop "
            "AND l.base = s.seq WHERE s.loop = ?",
            loop.id,
        )
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
            found.append((seq, CLOSE if _close(agent, kept) else DIFFERENT))
    return found


def _close(one: Agent, other: Agent) -> bool:
    """Whether two agents have learnt the same but for rounding."""
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
        for a, b in zip(_parts(one), _parts(other), strict=True)
    )


def _parts(agent: Agent) -> list[Array]:
    """Return all that was learnt."""
    return [np.asarray(each) for each in field_values(agent.state).values()]
