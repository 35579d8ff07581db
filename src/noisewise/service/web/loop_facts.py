"""What is known of a loop, as plain values: for the routes, the page and the metrics.

All functions only read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import TypedDict

import numpy as np

from ...agent.actions.context_fields import Field, Value, encode
from ...agent.comparison.difference import Difference
from ...agent.explanations.health import Finding
from ...bandits.arms import candidates
from ...protocols import Array
from ...support.printing import count_of
from ..engine import Engine
from ..learner import Learner
from ..log.events import DecisionRow, ranking
from ..loops import LARGEST_CHOICE, UNIFORM
from .charts import number

WORDS = 5  # of a field, at most, that effects are shown of
CROWDED = 0.05  # share of contexts whose hashed words may collide
OTHERWISE = ("exploration",)  # what an agent that adopts decisions can't see of them
# what to do, in settings of a loop
ADVICE = {
    "without reward": "If no reward means none, set default_reward: decisions without a reward "
    "teach nothing, and the agent expects the others to be like those that came.",
    "oldest pending": "Shorten reward_wait, so that what gets no reward is given up sooner.",
    "largest share of an action": "Others may have become better: a loop with a larger explore "
    "notices that sooner.",
}
UNUSABLE = "Read the answers with status 422: fields are missing, or of another kind than declared."
UNLEARNT = "They are too large to compute with: rescale rewards."
COLLIDING = "Such words are learnt as one: a loop with more columns for them tells them apart."


class Explained(TypedDict):
    """A decision, as known when it was taken, and its rewards."""

    event_id: str
    at: float
    group: str
    version: int
    chosen: list[str]
    context: dict[str, Value]
    ranking: list[dict[str, object]]
    sentence: str
    rewards: list[dict[str, object]]


class Gain(TypedDict):
    """What an agent earns more than its baseline; numbers that are not known are None.

    ``verdict`` is better, worse, undecided, or unknown where there is no difference yet.
    """

    agent: float | None
    baseline: float | None
    difference: float | None
    lower: float | None
    upper: float | None
    delta: float
    verdict: str
    sentence: str
    lines: list[str]
    counts: dict[str, list[int]]


class Mean(TypedDict):
    """What an action earns in a context."""

    action: str
    estimate: float
    lower: float
    upper: float


class Change(Mean):
    """What an action earns where one field of a typical context differs."""

    field: str
    value: Value
    usual: float
    change: float


class Effects(TypedDict):
    """What actions earn in a typical context, and the largest changes first."""

    context: dict[str, Value]
    means: list[Mean]
    changes: list[Change]


def loop_state(engine: Engine, learner: Learner, digest: bool = False) -> dict[str, object]:
    """Return settings and state of a loop, with ``digest`` what tells one state from another."""
    loop, state = learner.loop, learner.agent.state
    return {
        "name": loop.name, "settings": loop.settings.model_dump(), "paused": loop.paused,
        "created": loop.created, "version": learner.version, "learnt": state.count,
        "pending": state.pending, "restarts": state.restarts, "refused": learner.refused,
        "owner": loop.id in engine.owner.fences, **({"digest": learner.digest} if digest else {}),
    }  # fmt: skip


def recent_events(
    engine: Engine, learner: Learner, after: int, limit: int
) -> list[dict[str, object]]:
    """Return rows of the log with a number above ``after``, in order."""
    with engine.store.reading() as connection:
        rows = connection.rows(
            "SELECT seq, event_id, kind, reward_id, at, body FROM events "
            "WHERE loop = ? AND seq > ? ORDER BY seq LIMIT ?",
            learner.loop.id, after, limit,
        )  # fmt: skip
    keys = ("seq", "event_id", "kind", "reward_id", "at")
    found = []
    for *cells, text in rows:
        body = json.loads(text)
        body.pop("asked", None)  # which only serves to compare requests
        found.append({**dict(zip(keys, cells, strict=True)), "body": body})
    return found


def decisions(engine: Engine, learner: Learner, events: Sequence[str]) -> list[Explained]:
    """Return why decisions were taken, as known then, in order; those not known are left out."""
    places, found = ",".join("?" * len(events)), dict[str, Explained]()
    with engine.store.reading() as connection:
        rows = connection.rows(
            f"SELECT kind, event_id, at, body FROM events WHERE loop = ? AND event_id IN ({places})"
            " ORDER BY id",
            learner.loop.id, *events,
        )  # fmt: skip
    fields = [field for field, _ in learner.arms.context or ()]
    for kind, event_id, at, text in rows:
        if kind == "decide":
            held: DecisionRow = json.loads(text)
            found[event_id] = {
                "event_id": event_id, "at": at, "group": held["group"],
                "version": held["version"], "chosen": held["chosen"],
                "context": dict(zip(fields, held["context"], strict=True)),
                "ranking": ranking(held), "sentence": _why(held), "rewards": [],
            }  # fmt: skip
        elif kind == "reward" and event_id in found:
            given = json.loads(text)
            del given["learn"]
            found[event_id]["rewards"].append({"at": at, **given})
    return [found[each] for each in events if each in found]


def _why(held: DecisionRow) -> str:
    """Return in a sentence why actions were played, as far as the log says."""
    names = " and ".join(repr(each) for each in held["chosen"])
    played = f"{names} {'were' if len(held['chosen']) > 1 else 'was'} played"
    if held["group"] == "explore":
        return f"{played}: drawn at random among all actions, to keep learning."
    if held["group"] == "holdout":
        return f"{played}: this decision belongs to the holdout, which gets the baseline."
    if held["group"] == "import":
        return f"{played} before it was imported."
    if held["top"]:
        return f"{played}: their sums of estimate and exploration were the largest, in this order."
    (first, mine, *_), *others = held["ranking"]
    if mine is None:
        return f"{played}: nothing was known of it yet."
    other, best = max(
        ((name, estimate) for name, estimate, *_ in others if estimate is not None),
        key=lambda each: each[1], default=(first, mine),
    )  # fmt: skip
    if mine == best and others:
        return f"{played}: no other had a higher estimate than {mine:.3g}."
    if mine >= best:
        return f"{played}: it had the highest estimate, {mine:.3g}."
    return (
        f"{played}: estimated {mine:.3g}, less than {other!r} with {best:.3g}, but uncertain "
        "enough to be worth trying."
    )


def gain(learner: Learner, delta: float = 0.05) -> Gain | None:
    """Return whether the agent is better than its baseline, None where there is no holdout.

    The interval of the difference holds at all times at once.
    """
    settings = learner.loop.settings
    if not settings.holdout:
        return None
    found = learner.agent.gain(delta)
    numbers = (*found.means, found.value, found.lower, found.upper)
    agent, baseline, difference, lower, upper = (n if isfinite(n) else None for n in numbers)
    verdict = "better" if found.lower > 0 else "worse" if found.upper < 0 else "undecided"
    verdict = verdict if difference is not None else "unknown"
    waits = f"; each waits at most {settings.reward_wait:g} s for its reward"
    return {
        "agent": agent, "baseline": baseline, "difference": difference, "lower": lower,
        "upper": upper, "delta": delta, "verdict": verdict,
        "sentence": _verdict(verdict, found, settings.baseline),
        "lines": [line.replace("; forget(key) gives one up", waits) for line in found.lines()],
        "counts": {what: list(pair) for what, pair in found.counts},
    }  # fmt: skip


def _verdict(verdict: str, found: Difference, baseline: str) -> str:
    """Return what the comparison says so far, in a sentence."""
    other = f"the baseline {baseline!r}" if baseline != UNIFORM else "actions drawn at random"
    if verdict == "unknown":
        return found.sentence
    if not isfinite(found.lower):
        return f"There are too few rewards to compare the agent with {other}."
    low, high = (number(abs(e), "", found.upper - found.lower) for e in (found.lower, found.upper))
    if verdict == "undecided":
        return (
            f"So far it is open which is better: per decision the agent has earned between {low} "
            f"less and {high} more than {other} would have."
        )
    ends, more = ((low, high), "more") if verdict == "better" else ((high, low), "less")
    return (
        f"So far the agent has earned between {ends[0]} and {ends[1]} {more} per decision than "
        f"{other} would have."
    )


def health(learner: Learner) -> list[Finding]:
    """Return what is odd about a loop, each finding with a sentence and what to do about it."""
    found = [
        each._replace(advice=each.advice and ADVICE.get(each.name, each.advice))
        for each in learner.agent.health()
        if each.name not in (*OTHERWISE, "refused contexts")
    ]
    for name, count, text, advice in (
        ("refused contexts", learner.unusable, "context", UNUSABLE),
        ("refused rewards", learner.refused, "reward", UNLEARNT),
    ):
        said = f"{count_of(count, text)} refused since this process started."
        found.append(Finding(name, count, said, advice if count else ""))
    return found


def collisions(kinds: Sequence[Field], contexts: Sequence[Sequence[Value]]) -> list[Finding]:
    """Return for each field of hashed words in how many contexts another word has its column."""
    found = []
    for (field, kind), words in zip(kinds, zip(*contexts, strict=True), strict=False):
        if not isinstance(kind, int):
            continue
        column = {word: encode([(field, kind)], [word]).index(1.0) for word in set(words)}
        shared = Counter(column.values())
        share = sum(shared[column[word]] > 1 for word in words) / len(words)
        said = (
            f"{100 * share:.0f} % of the last {len(words):,} contexts have a {field!r} that shares "
            "its column with another."
        )
        advice = COLLIDING if share > CROWDED else ""
        found.append(Finding(f"collisions of {field}", share, said, advice))
    return found


def effects(
    learner: Learner, contexts: Sequence[Sequence[Value]], actions: Sequence[str]
) -> Effects | None:
    """Return what actions earn in a typical context, and where one of its fields differs.

    A typical context has the median of each number and the most frequent of words in ``contexts``;
    others have a number's 10 % and 90 % quantiles, and further frequent words. None where no
    decision was taken yet.
    """
    if not contexts or not actions:
        return None
    arms = learner.arms
    fields = [field for field, _ in arms.context or ()]
    typical, others = list[Value](), list[tuple[int, Value]]()
    for i, ((_, kind), values) in enumerate(
        zip(arms.context or (), zip(*contexts, strict=True), strict=False)
    ):
        if kind is None:
            low, middle, high = np.quantile(values, (0.1, 0.5, 0.9)).tolist()
            typical, others = [*typical, middle], [*others, (i, low), (i, high)]
        else:
            (first, _), *rest = Counter(values).most_common(WORDS)
            typical, others = [*typical, first], [*others, *((i, word) for word, _ in rest)]
    others = others[: max(int(LARGEST_CHOICE // (len(actions) * arms.dim**2)), 1)]
    rows = [typical, *([*typical[:i], value, *typical[i + 1 :]] for i, value in others)]
    x = np.concatenate([arms.matrix(row, actions) for row in rows])
    known = learner.view.known(candidates(x, arms.dim)).reshape(3, len(rows), len(actions))
    there = np.isfinite(known[0]) & np.isfinite(known[1]) & np.isfinite(known[2])
    means = {
        action: _mean(action, known[:, 0, k]) for k, action in enumerate(actions) if there[0, k]
    }
    changes = list[Change]()
    for r, (i, value) in enumerate(others, 1):
        for k, action in enumerate(actions):
            if action in means and there[r, k]:
                mean, usual = _mean(action, known[:, r, k]), means[action]["estimate"]
                change = mean["estimate"] - usual
                changes.append(
                    {**mean, "field": fields[i], "value": value, "usual": usual, "change": change}
                )
    changes.sort(key=lambda each: -abs(each["change"]))
    return {
        "context": dict(zip(fields, typical, strict=False)), "means": [*means.values()],
        "changes": [each for each in changes if each["change"]],
    }  # fmt: skip


def _mean(action: str, known: Array) -> Mean:
    estimate, lower, upper = known.tolist()
    return {"action": action, "estimate": estimate, "lower": lower, "upper": upper}
