"""What is known of a loop, as plain values: for the routes, the page and the metrics.

Every function takes an `Engine` and the name of a loop, and only reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..agent.context_fields import Field, encode
from ..agent.difference import Difference
from ..bandits.arms import candidates
from ..printing import count_of
from .charts import number
from .engine import Engine
from .loops import LARGEST_CHOICE, UNIFORM

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
    found = decisions(engine, name, [event_id])
    if not found:
        raise LookupError(event_id)
    return found[0]


def decisions(engine: Engine, name: str, events: Sequence[str]) -> list[dict[str, Any]]:
    """Return what `explain` does of several decisions, in their order; unknown are left out."""
    learner = engine.find(name)
    places, found = ",".join("?" * len(events)), dict[str, dict[str, Any]]()
    with engine.store.reading() as connection:
        rows = connection.rows(
            f"SELECT kind, event_id, at, body FROM events WHERE loop = ? AND event_id IN ({places})"
            " ORDER BY id",
            learner.loop.id, *events,
        )  # fmt: skip
    fields = [field for field, _ in learner.loop.arms.context or ()]
    for kind, event_id, at, text in rows:
        held = json.loads(text)
        if kind == "decide":
            found[event_id] = _explained(event_id, at, held, fields)
        elif kind == "reward" and event_id in found:
            given = {key: value for key, value in held.items() if key != "learn"}
            found[event_id]["rewards"].append({"at": at, **given})
    return [found[each] for each in events if each in found]


def _explained(event_id: str, at: float, held: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    columns = ("action", "estimate", "lower", "upper", "probability")
    return {
        "event_id": event_id, "at": at, "group": held["group"],
        "version": held["version"], "chosen": held["chosen"],
        "context": dict(zip(fields, held["context"], strict=True)),
        "ranking": [dict(zip(columns, each, strict=True)) for each in held["ranking"]],
        "sentence": _why(held), "rewards": [],
    }  # fmt: skip


def _why(held: dict[str, Any]) -> str:
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


def gain(engine: Engine, name: str, delta: float = 0.05) -> dict[str, Any] | None:
    """Return whether the agent is better than its baseline, None where there is no holdout.

    The interval of the difference holds at all times at once; numbers that are not known are None.
    ``verdict`` is better, worse, undecided, or unknown where there is no difference yet.
    """
    learner = engine.find(name)
    settings = learner.loop.settings
    if not settings.holdout:
        return None
    found = learner.agent.gain(delta)
    numbers = {
        "agent": found.means[0], "baseline": found.means[1], "difference": found.value,
        "lower": found.lower, "upper": found.upper,
    }  # fmt: skip
    verdict = "better" if found.lower > 0 else "worse" if found.upper < 0 else "undecided"
    verdict = verdict if isfinite(found.value) else "unknown"
    waits = f"; each waits at most {settings.reward_wait:g} s for its reward"
    return {
        **{key: value if isfinite(value) else None for key, value in numbers.items()},
        "delta": delta, "verdict": verdict,
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


def health(engine: Engine, name: str) -> list[dict[str, Any]]:
    """Return what is odd about a loop, each finding with a sentence and what to do about it."""
    learner = engine.find(name)
    found = {
        each.name: each._asdict() | {"advice": each.advice and ADVICE.get(each.name, each.advice)}
        for each in learner.agent.health() if each.name not in OTHERWISE
    }  # fmt: skip
    for what, count, text, advice in (
        ("refused contexts", learner.unusable, "context", UNUSABLE),
        ("refused rewards", learner.refused, "reward", UNLEARNT),
    ):
        said = f"{count_of(count, text)} refused since this process started."
        found[what] = {"name": what, "value": count, "sentence": said,
                       "advice": advice if count else ""}  # fmt: skip
    return list(found.values())


def collisions(kinds: Sequence[Field], contexts: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return for each field of hashed words in how many contexts another word has its column."""
    found = []
    for (field, kind), words in zip(kinds, zip(*contexts, strict=True), strict=False):
        if not isinstance(kind, int):
            continue
        column = {word: encode([(field, kind)], [word]).index(1.0) for word in set(words)}
        shared = Counter(column.values())
        share = sum(shared[column[word]] > 1 for word in words) / len(words)
        found.append({
            "name": f"collisions of {field}", "value": share,
            "sentence": f"{100 * share:.0f} % of the last {len(words):,} contexts have a "
            f"{field!r} that shares its column with another.",
            "advice": COLLIDING if share > CROWDED else "",
        })  # fmt: skip
    return found


def effects(
    engine: Engine, name: str, contexts: Sequence[Sequence[Any]], actions: Sequence[str]
) -> dict[str, Any] | None:
    """Return what actions earn in a typical context, and where one of its fields differs.

    A typical context has the median of each number and the most frequent of words in ``contexts``;
    others have a number's 10 % and 90 % quantiles, and further frequent words. ``changes`` come
    with the largest difference first. None where no decision was taken yet.
    """
    if not contexts or not actions:
        return None
    learner = engine.find(name)
    arms = learner.arms
    fields = arms.context or ()
    usual, others = list[Any](), list[tuple[str, Any]]()
    for (field, kind), values in zip(fields, zip(*contexts, strict=True), strict=False):
        if kind is None:
            low, middle, high = np.quantile(values, (0.1, 0.5, 0.9)).tolist()
            usual, others = [*usual, middle], [*others, (field, low), (field, high)]
        else:
            (first, _), *rest = Counter(values).most_common(WORDS)
            usual, others = [*usual, first], [*others, *((field, word) for word, _ in rest)]
    work = len(actions) * arms.dim**2
    others = others[: max(int(LARGEST_CHOICE // work), 1)]
    at = {field: i for i, (field, _) in enumerate(fields)}
    rows = [usual, *([*usual[: at[f]], v, *usual[at[f] + 1 :]] for f, v in others)]
    x = np.concatenate([arms.matrix(row, actions) for row in rows])
    known = learner.view.known(candidates(x, arms.dim)).reshape(3, len(rows), len(actions))
    told: Any = known.astype(object)
    told[~np.isfinite(known)] = None
    names = ("estimate", "lower", "upper")
    means = [
        {"action": action, **dict(zip(names, told[:, 0, k], strict=True))}
        for k, action in enumerate(actions)
    ]
    changes = [
        {"action": action, "field": field, "value": value, "usual": told[0, 0, k],
         "change": told[0, i, k] - told[0, 0, k],
         **dict(zip(names, told[:, i, k], strict=True))}
        for i, (field, value) in enumerate(others, 1) for k, action in enumerate(actions)
        if np.isfinite(known[:, [0, i], k]).all()
    ]  # fmt: skip
    changes.sort(key=lambda each: -abs(each["change"]))
    return {
        "context": dict(zip(at, usual, strict=False)), "means": means,
        "changes": [each for each in changes if each["change"]],
    }  # fmt: skip
