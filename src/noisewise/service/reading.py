"""What is known of a loop, as plain values: for the routes, the page and the metrics.

Every function takes an `Engine` and the name of a loop, and only reads.
"""

from __future__ import annotations

import json
import time
from math import isfinite
from typing import Any

from .engine import Engine
from .learner import Learner
from .store import Connection

# what an agent that adopts decisions can't see of them; `counts` has it by group
OTHERWISE = ("exploration",)


def loop_state(engine: Engine, name: str, digest: bool = False) -> dict[str, Any]:
    """Return settings and state of a loop, with ``digest`` what tells one state from another."""
    learner = engine.find(name)
    loop = learner.loop
    return {
        "name": loop.name, "settings": loop.settings.model_dump(), "paused": loop.paused,
        "created": loop.created, "version": learner.version,
        "learnt": learner.agent.state.count, "pending": learner.agent.state.pending,
        "restarts": learner.agent.state.restarts, "refused": learner.refused,
        "owner": loop.id in engine.owner.fences,
        **({"digest": learner.digest} if digest else {}),
    }  # fmt: skip


def known(engine: Engine, name: str) -> dict[str, Any]:
    """Return what is known of a loop now: its state, gain and health."""
    return {
        **loop_state(engine, name), "gain": gain(engine, name), "health": health(engine, name)
    }  # fmt: skip


def names(engine: Engine) -> list[str]:
    """Return the names of all loops."""
    return sorted(engine.learners)


def counts(engine: Engine, name: str, minutes: int = 60) -> dict[str, Any]:
    """Return decisions, rewards and late rewards per minute, and decisions by action and group.

    Times are seconds since 1970 at which each minute began; minutes without a row are left out.
    """
    learner, since = engine.find(name), time.time() - 60 * minutes
    found: dict[str, Any] = {"minutes": {}, "actions": {}, "groups": {}, "late": 0}
    with engine.store.reading() as connection:
        for kind, at, body in _rows_since(connection, learner, since):
            minute = int(at // 60) * 60
            row = found["minutes"].setdefault(minute, {"decide": 0, "reward": 0, "expire": 0})
            if kind in row:
                row[kind] += 1
            held = json.loads(body)
            if kind == "decide":
                for what, value in (("actions", held["chosen"][0]), ("groups", held["group"])):
                    found[what][value] = found[what].get(value, 0) + 1
            found["late"] += kind == "reward" and held["late"]
    return found


def _rows_since(connection: Connection, learner: Learner, since: float) -> list[Any]:
    """Return kind, time and body of the rows of a time, at most a hundred thousand."""
    return connection.rows(
        "SELECT kind, at, body FROM events WHERE loop = ? AND seq > ? AND at >= ? ORDER BY seq",
        learner.loop.id, learner.version - 100_000, since,
    )  # fmt: skip


def recent_events(
    engine: Engine, name: str, after: int | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """Return rows of the log with a number above ``after``, or else the last ones, in order."""
    learner = engine.find(name)
    if after is None:
        after = max(learner.version - limit, 0)
    with engine.store.reading() as connection:
        rows = connection.rows(
            "SELECT seq, event_id, kind, reward_id, at, body FROM events "
            "WHERE loop = ? AND seq > ? ORDER BY seq LIMIT ?",
            learner.loop.id, after, limit,
        )  # fmt: skip
    keys = ("seq", "event_id", "kind", "reward_id", "at")
    return [
        {**dict(zip(keys, row[:5], strict=True)), "body": shown(row[2], json.loads(row[5]))}
        for row in rows
    ]


def shown(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a row without what only serves to compare requests."""
    return {name: value for name, value in body.items() if name != "asked"}


def explain(engine: Engine, name: str, event_id: str) -> dict[str, Any]:
    """Return why a decision was taken, as known then, and its rewards; LookupError if unknown."""
    learner = engine.find(name)
    with engine.store.reading() as connection:
        rows = connection.rows(
            "SELECT kind, at, body FROM events WHERE loop = ? AND event_id = ? ORDER BY id",
            learner.loop.id, event_id,
        )  # fmt: skip
    if not rows or rows[0][0] != "decide":
        raise LookupError(event_id)
    held = json.loads(rows[0][2])
    fields = [field for field, _ in learner.loop.settings.arms.context or ()]
    best = held["ranking"][0]
    why = {
        "agent": "its estimate and what may still be learnt of it were best together",
        "explore": "it was drawn at random among all actions",
        "holdout": "this decision belongs to the holdout, which plays the baseline",
    }[held["group"]]
    known = "nothing was known of it yet" if best[1] is None else f"its estimate was {best[1]:.3g}"
    return {
        "event_id": event_id, "at": rows[0][1], "group": held["group"],
        "version": held["version"], "chosen": held["chosen"],
        "context": dict(zip(fields, held["context"], strict=True)),
        "ranking": [
            dict(zip(("action", "estimate", "lower", "upper", "probability"), each, strict=True))
            for each in held["ranking"]
        ],
        "sentence": f"{held['chosen'][0]!r} was played: {why}; {known}.",
        "rewards": [
            {"at": at, **{k: v for k, v in json.loads(body).items() if k != "learn"}}
            for kind, at, body in rows if kind == "reward"
        ],
    }  # fmt: skip


def gain(engine: Engine, name: str, delta: float = 0.05) -> dict[str, Any] | None:
    """Return whether the agent is better than its baseline, None where there is no holdout.

    The interval of the difference holds at all times at once; numbers that are not known are None.
    """
    learner = engine.find(name)
    if not learner.loop.settings.holdout:
        return None
    found = learner.agent.gain(delta)
    numbers = {
        "agent": found.means[0], "baseline": found.means[1], "difference": found.value,
        "lower": found.lower, "upper": found.upper,
    }  # fmt: skip
    return {
        **{key: value if isfinite(value) else None for key, value in numbers.items()},
        "delta": delta, "sentence": found.sentence, "lines": found.lines(),
        "counts": {what: list(pair) for what, pair in found.counts},
    }  # fmt: skip


def health(engine: Engine, name: str) -> list[dict[str, Any]]:
    """Return what is odd about a loop, each finding with a sentence and what to do about it."""
    found = engine.find(name).agent.health()
    return [each._asdict() for each in found if each.name not in OTHERWISE]


def effects(engine: Engine, name: str, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return estimate, interval and largest contributions of each action in a context, best first.

    Raises ValueError for a context that can't be used.
    """
    return [
        {"action": each.action, "estimate": each.estimate, "lower": each.lower,
         "upper": each.upper, "parts": [list(part) for part in each.parts[:5]]}
        for each in engine.find(name).agent.explain(context)
    ]  # fmt: skip
